// SPDX-License-Identifier: Apache-2.0
/*
 * A program that sleep must not disturb: fills HBM, says "ready", waits for a line, and then expects
 * all as it was: buffers, program, context, what was in flight. See tests/vm/sleep_steps.
 *
 *	sleep_helper READY GO     two fifos
 */
#include "dev.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB   (1ull << 20)
#define BYTES (TILE_PARTS * 4 * 256)

static const char *ready, *go;

static void sleep_now(void)
{
	FILE *file = fopen(ready, "we");
	char line[16];

	assert_non_null(file);
	assert_true(fputs("ready\n", file) >= 0);
	assert_int_equal(fclose(file), 0);
	file = fopen(go, "re");
	assert_non_null(file);
	assert_non_null(fgets(line, sizeof(line), file));
	fclose(file);
}

static void across_sleep(void **state)
{
	int fd = dev_open();
	uint32_t ctx = ctx_new(fd, 0), busy = ctx_new(fd, 1), fill = prog_fill(fd, 7, 256);
	uint32_t bo = bo_new(fd, BYTES, BO_HBM), big = bo_new(fd, 24 * MIB, BO_HBM | BO_MMAP);
	uint32_t host = bo_new(fd, 24 * MIB, BO_HOST | BO_MMAP), copied = sync_new(fd);
	uint32_t last = sync_new(fd);
	uint8_t *p = bo_map(fd, host), *q = bo_map(fd, big);

	(void)state;
	for (uint64_t i = 0; i < 24 * MIB; i++)
		p[i] = (uint8_t)(i * 13 >> 7);
	copy_now(fd, big, 0, host, 0, 24 * MIB);
	assert_int_equal(launch_now(fd, ctx, fill, &bo, 1), 1);

	/* In flight: launches and a copy, of which some will be before and some after. */
	for (int i = 0; i < 100; i++)
		assert_ok(launch(fd, busy, fill, &bo, 1, i == 99 ? last : 0));
	for (int i = 0; i < 8; i++)
		assert_ok(copy_start(fd, big, 0, host, 0, 24 * MIB, copied));
	sleep_now();

	assert_ok(sync_wait(fd, last, 0, 60000));
	assert_int_equal(sync_status(fd, last), 1);
	assert_ok(sync_wait(fd, copied, 0, 60000));
	assert_int_equal(sync_status(fd, copied), 1);
	assert_memory_equal(p, q, 24 * MIB);
	copy_now(fd, host, 0, bo, 0, BYTES);
	for (unsigned int i = 0; i < BYTES / 4; i++)
		assert_true(((float *)(void *)p)[i] == 7);
	/* The old context and program go on. */
	for (int i = 0; i < 70; i++)
		assert_int_equal(launch_now(fd, ctx, fill, &bo, 1), 1);
	assert_int_equal(ctx_state(fd, ctx).state, DRM_NEURON_CTX_OK);
	assert_int_equal(ctx_state(fd, ctx).launches, 71);
	bo_unmap(fd, host, p);
	bo_unmap(fd, big, q);
	dev_close(fd);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(across_sleep) };

	if (argc != 3)
		return 2;
	ready = argv[1];
	go = argv[2];
	return cmocka_run_group_tests_name("sleep", tests, NULL, NULL);
}
