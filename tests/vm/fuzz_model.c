// SPDX-License-Identifier: Apache-2.0
/*
 * The fuzzer's programs on the device model alone, in this process: fuzz_model [SEED [PROGRAMS]].
 * With the sanitizers (tests/build asan) it looks for what a guest can do to the model; in any build
 * each launch has to end, and a program of known result has to give it afterwards.
 */
#include "fuzz.h"
#include "inproc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define BYTES	 65536
#define PROGRAMS 300
/* A launch of mischief may be long; one that the model cannot stop fails the test. */
#define LIMIT_NS 100000000u
#define WAIT_NS	 30000000000

static struct {
	struct nm_inproc *ip;
	uint32_t bo[2], sync;
	uint64_t point, faults[EXI_FAULTS + 1];
} dev;

static void quiet(void *user, int level, const char *text)
{
	(void)user;
	(void)level;
	(void)text;
}

static int64_t in(int64_t ns)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec + ns;
}

static void run(uint32_t program, uint32_t slots, uint32_t scalars)
{
	struct nm_inproc_slot slot[PROG_SLOTS] = { 0 };
	struct nm_inproc_sync out = { .handle = dev.sync, .point = ++dev.point };
	struct nm_inproc_submit submit = {
		.program = program, .n_slots = slots, .slots = slot, .n_out = 1, .out = &out
	};
	struct nm_inproc_ctx_state state;

	for (uint32_t i = 0; i < slots; i++) {
		slot[i].size = scalars & (1u << i) ? 8 : BYTES;
		slot[i].flags = scalars & (1u << i) ? NM_SLOT_INLINE : 0;
		slot[i].handle = scalars & (1u << i) ? 0 : dev.bo[i % 2];
	}
	assert_ok(nm_inproc_ctx_create(dev.ip, 1u << dev.point % 2, 0, &submit.ctx, NULL));
	if (nm_inproc_submit(dev.ip, &submit)) {
		/* What it was damaged to ask for is not there. */
		assert_ok(nm_inproc_sync_signal(dev.ip, dev.sync, dev.point));
	} else {
		assert_ok(nm_inproc_sync_wait(dev.ip, dev.sync, dev.point, in(WAIT_NS)));
		assert_ok(nm_inproc_ctx_state(dev.ip, submit.ctx, &state));
		dev.faults[state.state == NM_CTX_TIMEDOUT ? EXI_FAULTS : state.fault]++;
	}
	assert_ok(nm_inproc_ctx_destroy(dev.ip, submit.ctx));
}

int main(int argc, char **argv)
{
	struct nm_inproc_config config = {
		.cores = 2, .hbm_bytes = 64u << 20, .exec_timeout_ns = LIMIT_NS, .log = quiet
	};
	static struct fuzz_stats stats;
	static struct fuzz_world world;
	uint64_t size = BYTES, seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	unsigned long programs = argc > 2 ? strtoul(argv[2], NULL, 0) : PROGRAMS, loaded = 0;
	struct fuzz_thread t;
	uint32_t program, bytes;
	void *image;

	fuzz_world_init(&world, NULL);
	fuzz_thread_init(&t, &world, &stats, seed);
	assert_ok(nm_inproc_open(&config, &dev.ip));
	for (int i = 0; i < 2; i++)
		assert_ok(nm_inproc_bo_create(dev.ip, &size, NM_BO_HBM, &dev.bo[i]));
	assert_ok(nm_inproc_sync_create(dev.ip, &dev.sync));
	for (unsigned long i = 0; i < programs; i++) {
		t.used = 0;
		image = fuzz_image(&t, &bytes);
		/* At the end of memory of its own, where a read beyond it is seen. */
		void *copy = malloc(bytes);

		memcpy(copy, image, bytes);
		if (!nm_inproc_program_load(dev.ip, copy, bytes, &program)) {
			loaded++;
			run(program, t.image_slots, t.image_scalars);
			assert_ok(nm_inproc_program_unload(dev.ip, program));
		}
		free(copy);
	}
	printf("seed %llu: %lu programs, %lu loaded, %llu timed out; by fault (0: none):",
	       (unsigned long long)seed, programs, loaded,
	       (unsigned long long)dev.faults[EXI_FAULTS]);
	for (int i = 0; i < EXI_FAULTS; i++)
		if (dev.faults[i])
			printf(" %d: %llu", i, (unsigned long long)dev.faults[i]);
	putchar('\n');
	/* Half of them are not damaged: most of those that load have to run to their end. */
	assert_true(dev.faults[0] * 4 > loaded);
	nm_inproc_close(dev.ip);
	return 0;
}
