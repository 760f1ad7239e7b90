// SPDX-License-Identifier: Apache-2.0
/* Nothing of one owner reaches the next: HBM, whatever became of its owner, and a core's SBUF. */
#include "dev.h"
#include "groups.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES  (8ull << 20)
#define PIECES 16
#define COLS   64
#define TILE   (TILE_PARTS * COLS)

/* Fills HBM by copies and through mappings, says so, and waits to be killed with work in flight. */
static void scribble(int ready)
{
	int fd = dev_open();
	uint32_t host = bo_new(fd, BYTES, BO_HOST | BO_MMAP), bo;
	uint8_t *p = bo_map(fd, host);

	memset(p, 0xa5, BYTES);
	for (int i = 0; i < PIECES; i++) {
		bo = bo_new(fd, BYTES, BO_HBM | BO_MMAP);
		copy_now(fd, bo, 0, host, 0, BYTES);
		memset(bo_map(fd, bo), 0x5a, 4096);
	}
	for (int i = 0; i < 8; i++)
		copy_start(fd, bo, 0, host, 0, BYTES, 0);
	if (write(ready, "", 1) == 1)
		pause();
	_exit(1);
}

static void hbm_of_a_killed_process_is_zero(void **state)
{
	uint64_t used = dev_memory(FD).hbm_used, theirs;
	uint32_t host = bo_new(FD, BYTES, BO_HOST | BO_MMAP), bo;
	uint64_t *p = bo_map(FD, host);
	int ready[2], status;
	char byte;
	pid_t pid;

	assert_ok(pipe(ready));
	pid = fork();
	if (!pid)
		scribble(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	theirs = dev_memory(FD).hbm_used - used;
	assert_ok(kill(pid, SIGKILL));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(theirs, PIECES * BYTES);
	/* At once: the driver may still be busy with what the process left. */
	for (int i = 0; i < PIECES; i++) {
		bo = bo_new(FD, BYTES, BO_HBM);
		memset(p, 0xee, BYTES);
		copy_now(FD, host, 0, bo, 0, BYTES);
		for (uint64_t k = 0; k < BYTES / 8; k++)
			if (p[k])
				fail_msg("piece %d, word %llu: 0x%llx", i, (unsigned long long)k,
					 (unsigned long long)p[k]);
	}
	close(ready[0]);
	close(ready[1]);
	bo_unmap(FD, host, p);
}

/* Slot 0: output, of SBUF as it is found. */
static uint32_t prog_look(int fd)
{
	struct prog p = { 0 };
	unsigned int out = prog_slot(&p, NPROG_SLOT_OUTPUT, TILE);
	struct isa_inst *inst = prog_inst(&p, ISA_SYNC, ISA_DMA);

	inst->elem_bytes = 1;
	dma_slot(&inst->dma.dst, out, 0, TILE);
	dma_sbuf(&inst->dma.src, COLS);
	inst_signal(inst, 0);
	inst_wait(prog_inst(&p, ISA_SYNC, ISA_HALT), 0, 1);
	return prog_load(fd, &p);
}

/* How many bytes of SBUF are not zero for this file on a core. */
static unsigned int look(int fd, uint32_t core)
{
	uint32_t out = bo_new(fd, TILE, BO_HBM | BO_MMAP);
	uint8_t *p = bo_map(fd, out);
	unsigned int found = 0;

	memset(p, 0xee, TILE);
	assert_int_equal(launch_now(fd, ctx_new(fd, core), prog_look(fd), &out, 1), 1);
	for (unsigned int i = 0; i < TILE; i++)
		found += p[i] != 0;
	bo_unmap(fd, out, p);
	return found;
}

static void sbuf_is_zero_for_another_file(void **state)
{
	uint32_t cores = dev_info(FD).cores, bo[2];
	uint8_t *p;
	int other;

	bo[0] = bo_new(FD, TILE, BO_HBM | BO_MMAP);
	bo[1] = bo_new(FD, TILE, BO_HBM);
	p = bo_map(FD, bo[0]);
	memset(p, 0x77, TILE);
	for (uint32_t core = 0; core < cores; core += cores > 1 ? cores - 1 : 1) {
		assert_int_equal(
			launch_now(FD, ctx_new(FD, core), prog_through_sbuf(FD, COLS), bo, 2), 1);
		/* The owner finds what it left: the look sees something at all. */
		assert_int_equal(look(FD, core), TILE);
		other = dev_open();
		assert_int_equal(look(other, core), 0);
		dev_close(other);
		assert_int_equal(look(FD, core), 0);
	}
	bo_unmap(FD, bo[0], p);
}

const struct CMUnitTest scrub_tests[] = {
	TEST(hbm_of_a_killed_process_is_zero),
	TEST(sbuf_is_zero_for_another_file),
};
const size_t scrub_tests_count = sizeof(scrub_tests) / sizeof(scrub_tests[0]);
