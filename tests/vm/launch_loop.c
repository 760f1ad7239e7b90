// SPDX-License-Identifier: Apache-2.0
/*
 * What a training process asks of the driver, over and over: launch_loop ROUNDS (0: for ever).
 * Programs are loaded, buffers come and go, batches are copied in, launches on two cores follow
 * each other through fences, results are copied out and compared.
 */
#include "dev.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CORES	2
#define STEPS	8
#define COLUMNS 128 /* bytes of each partition */
#define BATCH	(TILE_PARTS * COLUMNS)
#define BUFFERS 6

struct core {
	uint32_t ctx, program, sync;
	uint32_t bo[BUFFERS];
};

static void core_start(int fd, uint32_t index, struct core *core)
{
	core->ctx = ctx_new(fd, index);
	core->program = prog_through_sbuf(fd, COLUMNS);
	core->sync = sync_new(fd);
	for (int i = 0; i < BUFFERS; i++)
		core->bo[i] = bo_new(fd, BATCH, BO_HBM);
}

static void core_stop(int fd, const struct core *core)
{
	for (int i = 0; i < BUFFERS; i++)
		bo_close(fd, core->bo[i]);
	sync_close(fd, core->sync);
	prog_unload(fd, core->program);
	ctx_close(fd, core->ctx);
}

/* A batch goes through all buffers of each core in turn. */
static void round_of(int fd, uint32_t round)
{
	uint32_t in = bo_new(fd, BATCH, BO_HOST | BO_MMAP),
		 out = bo_new(fd, BATCH, BO_HOST | BO_MMAP);
	uint8_t *p = bo_map(fd, in), *q = bo_map(fd, out);
	struct core core[CORES];

	for (uint32_t i = 0; i < CORES; i++)
		core_start(fd, i % dev_info(fd).cores, &core[i]);
	for (uint32_t step = 0; step < STEPS; step++) {
		memset(p, (int)((round * STEPS + step) & 0xff), BATCH);
		for (uint32_t i = 0; i < CORES; i++) {
			copy_now(fd, core[i].bo[0], 0, in, 0, BATCH);
			for (uint32_t j = 1; j < BUFFERS; j++)
				assert_ok(launch(fd, core[i].ctx, core[i].program,
						 &core[i].bo[j - 1], 2,
						 j + 1 < BUFFERS ? 0 : core[i].sync));
		}
		for (uint32_t i = 0; i < CORES; i++) {
			assert_ok(sync_wait(fd, core[i].sync, 0, 60000));
			copy_now(fd, out, 0, core[i].bo[BUFFERS - 1], 0, BATCH);
			assert_memory_equal(p, q, BATCH);
		}
	}
	for (uint32_t i = 0; i < CORES; i++)
		core_stop(fd, &core[i]);
	bo_unmap(fd, in, p);
	bo_unmap(fd, out, q);
	bo_close(fd, in);
	bo_close(fd, out);
}

int main(int argc, char **argv)
{
	unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 0) : 1;
	int fd = dev_open();

	for (uint32_t round = 0; !rounds || round < rounds; round++)
		round_of(fd, round);
	dev_close(fd);
	return 0;
}
