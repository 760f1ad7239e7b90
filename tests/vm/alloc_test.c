// SPDX-License-Identifier: Apache-2.0
/*
 * Error paths: each memory allocation of each ioctl fails once, on a kernel with fault injection
 * (tests/debug-kernel); elsewhere the tests are skipped. A call that fails so says ENOMEM and has
 * done nothing: dev_teardown() finds what it left behind, and the checkers of that kernel the rest.
 */
#include "dev.h"
#include "groups.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* More allocations than any ioctl makes: reaching it means that the loop does not end. */
#define NTH_MAX 1000

static const char fail_nth[] = "/proc/thread-self/fail-nth";

/*
 * When an allocation of the kernel's buddy allocator fails, it frees a block that is still in its
 * tree (7.2, drivers/gpu/buddy.c: alloc_from_freetree() after split_block()), and the tree is broken
 * from then on. No driver can help that, so that function's allocations do not fail here.
 */
static void spare_split_block(void)
{
	FILE *symbols = fopen("/proc/kallsyms", "re");
	unsigned long long at, start = 0, end = 0;
	char line[512], name[256], text[32];

	assert_non_null(symbols);
	while (!end && fgets(line, sizeof(line), symbols)) {
		if (sscanf(line, "%llx %*c %255s", &at, name) != 2)
			continue;
		if (start && at > start)
			end = at;
		else if (!strncmp(name, "split_block", 11))
			start = at;
	}
	fclose(symbols);
	if (!end)
		fail_msg("no split_block in /proc/kallsyms: is it part of another function now?");
	snprintf(text, sizeof(text), "0x%llx", start);
	file_write("/sys/kernel/debug/failslab/reject-start", text);
	snprintf(text, sizeof(text), "0x%llx", end);
	file_write("/sys/kernel/debug/failslab/reject-end", text);
	file_write("/sys/kernel/debug/failslab/stacktrace-depth", "32");
}

/* Allocations that may sleep fail too; the kernel does not tell of each. */
int alloc_group_setup(void **state)
{
	static const char *const on[] = {
		"/sys/kernel/debug/failslab/ignore-gfp-wait",
		"/sys/kernel/debug/fail_page_alloc/ignore-gfp-wait",
	};
	static const char *const quiet[] = {
		"/sys/kernel/debug/failslab/verbose",
		"/sys/kernel/debug/fail_page_alloc/verbose",
	};

	(void)state;
	if (access(fail_nth, W_OK))
		return 0;
	for (int i = 0; i < 2; i++) {
		file_write(on[i], "N");
		file_write(quiet[i], "0");
	}
	spare_split_block();
	return 0;
}

/* What an ioctl of ours is called with: 0 or -errno; undo takes back what it did. */
struct call {
	int (*call)(int fd, struct call *c);
	void (*undo)(int fd, struct call *c);
	uint32_t ctx, program, hbm, host, sync, made;
	void *image;
	size_t image_bytes;
};

/* Whether the nth allocation of the call failed; false: it makes fewer than n. */
static bool call_failing(int fd, struct call *c, unsigned int nth)
{
	/* Opened first: opening it allocates. */
	int file = open(fail_nth, O_RDWR | O_CLOEXEC);
	char text[16] = "";
	int ret, size = snprintf(text, sizeof(text), "%u", nth);

	assert_int_equal(pwrite(file, text, (size_t)size, 0), size);
	ret = c->call(fd, c);
	memset(text, 0, sizeof(text));
	assert_true(pread(file, text, sizeof(text) - 1, 0) > 0);
	assert_int_equal(pwrite(file, "0", 1, 0), 1);
	close(file);
	/* The driver may do without what it did not get. */
	if (ret && ret != -ENOMEM)
		fail_msg("allocation %u failed and the call said %s", nth, strerror(-ret));
	if (!ret && c->undo)
		c->undo(fd, c);
	return atoi(text) == 0;
}

static void every_allocation_fails_once(int fd, struct call *c)
{
	unsigned int nth = 1;

	if (access(fail_nth, W_OK))
		skip();
	while (call_failing(fd, c, nth))
		if (++nth > NTH_MAX)
			fail_msg("still failing at allocation %u", nth);
	/* It was not the injection that ended the loop. */
	assert_ok(c->call(fd, c));
	if (c->undo)
		c->undo(fd, c);
	print_message("%u allocations\n", nth - 1);
}

static int call_query(int fd, struct call *c)
{
	struct drm_neuron_query_memory memory;
	struct drm_neuron_query args = { .block = DRM_NEURON_QUERY_MEMORY,
					 .size = sizeof(memory),
					 .ptr = (uintptr_t)&memory };

	(void)c;
	return neuron_call(fd, DRM_IOCTL_NEURON_QUERY, &args);
}

static void query(void **state)
{
	every_allocation_fails_once(FD, &(struct call){ .call = call_query });
}

static int call_bo_hbm(int fd, struct call *c)
{
	return bo_try(fd, 1 << 20, BO_HBM | BO_MMAP, &c->made);
}

static int call_bo_host(int fd, struct call *c)
{
	return bo_try(fd, 1 << 20, BO_HOST | BO_MMAP, &c->made);
}

static void undo_bo(int fd, struct call *c)
{
	bo_close(fd, c->made);
}

static void bo_create(void **state)
{
	every_allocation_fails_once(FD, &(struct call){ .call = call_bo_hbm, .undo = undo_bo });
	every_allocation_fails_once(FD, &(struct call){ .call = call_bo_host, .undo = undo_bo });
}

static int call_ctx(int fd, struct call *c)
{
	struct drm_neuron_ctx_create args = { .core = 0 };
	int ret = neuron_call(fd, DRM_IOCTL_NEURON_CTX_CREATE, &args);

	c->made = args.ctx;
	return ret;
}

static void undo_ctx(int fd, struct call *c)
{
	ctx_close(fd, c->made);
}

static void ctx_create(void **state)
{
	every_allocation_fails_once(FD, &(struct call){ .call = call_ctx, .undo = undo_ctx });
}

static int call_stream(int fd, struct call *c)
{
	struct drm_neuron_stream_open args = { .ctx = c->ctx };
	int ret = neuron_call(fd, DRM_IOCTL_NEURON_STREAM_OPEN, &args);

	c->made = (uint32_t)args.fd;
	return ret;
}

static void undo_file(int fd, struct call *c)
{
	(void)fd;
	close((int)c->made);
}

static void stream_open(void **state)
{
	struct call c = { .call = call_stream, .undo = undo_file };

	c.ctx = ctx_new(FD, 0);
	every_allocation_fails_once(FD, &c);
}

static int call_program(int fd, struct call *c)
{
	return prog_try(fd, c->image, c->image_bytes, &c->made);
}

static void undo_program(int fd, struct call *c)
{
	prog_unload(fd, c->made);
}

static void program_load(void **state)
{
	struct call c = { .call = call_program, .undo = undo_program };
	struct prog p = { 0 };

	prog_inst(&p, ISA_SYNC, ISA_NOP);
	prog_inst(&p, ISA_SYNC, ISA_HALT);
	c.image = prog_image(&p, &c.image_bytes);
	every_allocation_fails_once(FD, &c);
	free(c.image);
}

static int call_submit(int fd, struct call *c)
{
	uint32_t bo[2] = { c->hbm, c->hbm };

	return launch(fd, c->ctx, c->program, bo, 2, c->sync);
}

static void undo_work(int fd, struct call *c)
{
	assert_ok(sync_wait(fd, c->sync, 0, 20000));
	assert_int_equal(sync_status(fd, c->sync), 1);
}

static void submit(void **state)
{
	struct call c = { .call = call_submit, .undo = undo_work };

	c.ctx = ctx_new(FD, 0);
	c.program = prog_through_sbuf(FD, 64);
	c.hbm = bo_new(FD, TILE_PARTS * 64, BO_HBM);
	c.sync = sync_new(FD);
	every_allocation_fails_once(FD, &c);
}

static int call_copy(int fd, struct call *c)
{
	return copy_start(fd, c->hbm, 0, c->host, 0, 1 << 20, c->sync);
}

static void copy(void **state)
{
	struct call c = { .call = call_copy, .undo = undo_work };

	c.hbm = bo_new(FD, 1 << 20, BO_HBM);
	c.host = bo_new(FD, 1 << 20, BO_HOST);
	c.sync = sync_new(FD);
	every_allocation_fails_once(FD, &c);
}

static int call_open(int fd, struct call *c)
{
	char path[64];
	int file;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	file = open(path, O_RDWR | O_CLOEXEC);
	c->made = (uint32_t)file;
	return file < 0 ? -errno : 0;
}

static void open_file(void **state)
{
	every_allocation_fails_once(FD, &(struct call){ .call = call_open, .undo = undo_file });
}

const struct CMUnitTest alloc_tests[] = {
	TEST(open_file),    TEST(query),  TEST(bo_create), TEST(ctx_create),
	TEST(program_load), TEST(submit), TEST(copy),	   TEST(stream_open),
};
const size_t alloc_tests_count = sizeof(alloc_tests) / sizeof(alloc_tests[0]);
