// SPDX-License-Identifier: Apache-2.0
/*
 * More buffers than HBM: contents survive the moves to host memory and back, mappings follow,
 * and what is in use stays. For devices with little HBM (neuron-model --hbm), as the host has to
 * hold what HBM does not; elsewhere the tests are skipped.
 */
#define _GNU_SOURCE
#include "dev.h"
#include "groups.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BO_MORE	 (BO_HBM | DRM_NEURON_BO_OVERCOMMIT)
#define HBM_MAX	 (1ull << 30)
#define PIECES_H 20 /* about as many make HBM full */
#define PIECES	 (2 * PIECES_H)
#define TILE	 (TILE_PARTS * 64ull)

/* --- what is in a buffer --------------------------------------------------- */

/* A host buffer of the size of a piece, to look through. */
struct window {
	int fd;
	uint32_t bo;
	uint8_t *p;
	uint64_t bytes;
};

static struct window window_new(int fd, uint64_t bytes)
{
	struct window w = { .fd = fd, .bo = bo_new(fd, bytes, BO_HOST | BO_MMAP), .bytes = bytes };

	w.p = bo_map(fd, w.bo);
	return w;
}

static void window_free(struct window *w)
{
	bo_unmap(w->fd, w->bo, w->p);
	bo_close(w->fd, w->bo);
}

static void put(struct window *w, uint32_t bo, uint32_t seed)
{
	bytes_fill(w->p, w->bytes, seed);
	copy_now(w->fd, bo, 0, w->bo, 0, w->bytes);
}

static void get(struct window *w, uint32_t bo)
{
	memset(w->p, 0xee, w->bytes);
	copy_now(w->fd, w->bo, 0, bo, 0, w->bytes);
}

static void assert_holds(struct window *w, uint32_t bo, uint32_t seed)
{
	get(w, bo);
	bytes_assert(w->p, w->bytes, seed);
}

/* --- HBM ------------------------------------------------------------------- */

static uint64_t piece_bytes(int fd, unsigned int in_hbm)
{
	struct drm_neuron_query_memory memory = dev_memory(fd);

	return memory.hbm_bytes / in_hbm & ~(memory.granule - 1);
}

static unsigned long long moves(const char *name)
{
	char path[128], line[128], format[64];
	unsigned long long value = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/sys/kernel/debug/accel/%s/evict", dev_pci_address());
	snprintf(format, sizeof(format), "%s %%llu", name);
	file = fopen(path, "r");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file) && sscanf(line, format, &value) != 1)
		;
	fclose(file);
	return value;
}

static int evict_setup(void **state)
{
	int ret = dev_setup(state);

	dev_param_write("evict_mib", "-1");
	return ret;
}

static int evict_teardown(void **state)
{
	dev_param_write("evict_mib", "-1");
	return dev_teardown(state);
}

/* Not a test's fault: the device is too large for it. */
#define need_small_hbm(fd)                              \
	do {                                            \
		if (dev_memory(fd).hbm_bytes > HBM_MAX) \
			skip();                         \
	} while (0)

/* --- tests ----------------------------------------------------------------- */

/* Twice as much as there is; each new one is zero, although others were there before. */
static void fill_twice(struct window *w, uint32_t *bo, uint32_t flags)
{
	for (unsigned int i = 0; i < PIECES; i++) {
		bo[i] = bo_new(w->fd, w->bytes, BO_MORE | flags);
		get(w, bo[i]);
		bytes_assert_all(w->p, w->bytes, 0);
		put(w, bo[i], i);
	}
}

static void overcommitted_buffers_keep_their_contents(void **state)
{
	struct drm_neuron_query_memory memory;
	uint32_t bo[PIECES], out, program, ctx;
	unsigned long long evictions, restores;
	struct window w;

	need_small_hbm(FD);
	evictions = moves("evictions");
	restores = moves("restores");
	w = window_new(FD, piece_bytes(FD, PIECES_H));
	fill_twice(&w, bo, 0);
	memory = dev_memory(FD);
	assert_true(memory.hbm_own <= memory.hbm_bytes);
	assert_int_equal(memory.hbm_own + memory.evicted_own, PIECES * w.bytes);
	assert_int_equal(memory.host_own, memory.evicted_own + w.bytes);
	assert_int_equal(moves("bytes"), memory.evicted_own);
	assert_true(moves("evictions") - evictions >= PIECES / 2);
	/* Copies take them where they are. */
	for (unsigned int i = 0; i < PIECES; i++)
		assert_holds(&w, bo[i], i);
	assert_int_equal(moves("restores"), restores);

	/* Launches bring them back: each passes the start of one on to the next. */
	out = bo_new(FD, TILE, BO_MORE);
	program = prog_through_sbuf(FD, TILE / TILE_PARTS);
	ctx = ctx_new(FD, 0);
	for (unsigned int i = 0; i < PIECES; i++) {
		assert_int_equal(launch_now(FD, ctx, program, (uint32_t[]){ bo[i], out }, 2), 1);
		copy_now(FD, w.bo, 0, out, 0, TILE);
		bytes_assert(w.p, TILE, i);
	}
	assert_true(moves("restores") - restores >= PIECES / 2);
	for (unsigned int i = 0; i < PIECES; i++)
		assert_holds(&w, bo[i], i);
	for (unsigned int i = 0; i < PIECES; i++)
		bo_close(FD, bo[i]);
	for (int i = 0; i < 1000 && moves("bytes"); i++)
		usleep(10000);
	assert_int_equal(moves("bytes"), 0);
	window_free(&w);
}

/* A mapping shows what a program wrote, and a program what was written through it. */
static void mappings_follow_the_buffer(void **state)
{
	uint32_t bo[PIECES], out, program, fill_program, ctx;
	uint8_t *p[PIECES];
	struct window w;
	float *f;

	need_small_hbm(FD);
	w = window_new(FD, piece_bytes(FD, PIECES_H));
	fill_twice(&w, bo, BO_MMAP);
	for (unsigned int i = 0; i < PIECES; i++) {
		p[i] = bo_map(FD, bo[i]);
		bytes_assert(p[i], w.bytes, i);
		/* By the CPU, wherever it is. */
		bytes_fill(p[i], TILE, i + 1000);
	}
	out = bo_new(FD, TILE, BO_MORE);
	program = prog_through_sbuf(FD, TILE / TILE_PARTS);
	fill_program = prog_fill(FD, 3.5f, 4);
	ctx = ctx_new(FD, 0);
	for (unsigned int i = 0; i < PIECES; i++) {
		assert_int_equal(launch_now(FD, ctx, program, (uint32_t[]){ bo[i], out }, 2), 1);
		copy_now(FD, w.bo, 0, out, 0, TILE);
		bytes_assert(w.p, TILE, i + 1000);
		assert_int_equal(launch_now(FD, ctx, fill_program, &bo[i], 1), 1);
	}
	for (unsigned int i = 0; i < PIECES; i++) {
		f = (void *)p[i];
		for (unsigned int k = 0; k < TILE_PARTS * 4; k++)
			assert_true(f[k] == 3.5f);
		for (uint64_t k = TILE; k < w.bytes; k += 4096)
			assert_int_equal(p[i][k], bytes_pattern(k, i));
		bo_unmap(FD, bo[i], p[i]);
	}
	window_free(&w);
}

/* What queued work names stays where the work thinks it is, while all others move. */
static void buffers_in_use_are_not_evicted(void **state)
{
	uint32_t busy, bo[PIECES], ctx, stall, held = sync_new(FD), done = sync_new(FD);
	struct drm_neuron_sync in = { .handle = held }, out = { .handle = done };
	struct drm_neuron_slot slot = { .size = TILE };
	struct drm_neuron_submit args = { .slots = ARRAY(&slot, 1),
					  .in = ARRAY(&in, 1),
					  .out = ARRAY(&out, 1) };
	unsigned long long evictions;
	struct window w;

	need_small_hbm(FD);
	evictions = moves("evictions");
	w = window_new(FD, piece_bytes(FD, PIECES_H));
	busy = bo_new(FD, w.bytes, BO_HBM);
	put(&w, busy, 77);
	/* Else the device would find that the launch cannot go on, and end it. */
	dev_debugfs_write("stall_detect", "0");
	stall = ctx_new(FD, 0);
	assert_ok(launch(FD, stall, prog_stall(FD), NULL, 0, held));
	ctx = ctx_new(FD, 1);
	slot.handle = busy;
	args.ctx = ctx;
	args.program = prog_fill(FD, 1.25f, 4);
	assert_ok(neuron_call(FD, DRM_IOCTL_NEURON_SUBMIT, &args));
	fill_twice(&w, bo, 0);
	assert_true(moves("evictions") > evictions);
	ctx_close(FD, stall);
	dev_debugfs_write("stall_detect", "1");
	assert_ok(sync_wait(FD, done, 0, 20000));
	/* A cancelled launch is an end like any other for who waits for it. */
	assert_int_equal(sync_status(FD, done), 1);
	get(&w, busy);
	for (unsigned int i = 0; i < TILE_PARTS * 4; i++)
		assert_true(((float *)w.p)[i] == 1.25f);
	bytes_assert_from(w.p, TILE_PARTS * 16, w.bytes, 77);
	for (unsigned int i = 0; i < PIECES; i++)
		assert_holds(&w, bo[i], i);
	window_free(&w);
}

struct release {
	int fd;
	uint32_t ctx;
	int64_t at_ms;
};

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000ll + now.tv_nsec / 1000000;
}

static void *release_later(void *arg)
{
	struct drm_neuron_ctx_destroy args;
	struct release *release = arg;

	usleep(700000);
	release->at_ms = now_ms();
	args = (struct drm_neuron_ctx_destroy){ .ctx = release->ctx };
	neuron_call(release->fd, DRM_IOCTL_NEURON_CTX_DESTROY, &args);
	return NULL;
}

#define SET 3

/* Slots of a whole buffer each, of which nothing is touched. */
static uint32_t prog_names(int fd)
{
	struct prog p = { 0 };

	for (int i = 0; i < SET; i++)
		prog_slot(&p, NPROG_SLOT_INPUT, 4096);
	prog_inst(&p, ISA_SYNC, ISA_HALT);
	return prog_load(fd, &p);
}

/* Two launches that do not fit HBM together: the second waits until the first is done. */
static void a_launch_waits_for_room(void **state)
{
	uint32_t x[SET], y[SET], held = sync_new(FD), first = sync_new(FD);
	struct drm_neuron_sync in = { .handle = held }, out = { .handle = first };
	struct drm_neuron_slot slots[SET];
	struct drm_neuron_submit args = { .slots = ARRAY(slots, SET),
					  .in = ARRAY(&in, 1),
					  .out = ARRAY(&out, 1) };
	struct release release = { .fd = FD };
	struct window w;
	pthread_t thread;

	need_small_hbm(FD);
	w = window_new(FD, piece_bytes(FD, 5));
	for (int i = 0; i < SET; i++) {
		x[i] = bo_new(FD, w.bytes, BO_HBM);
		put(&w, x[i], (uint64_t)i);
	}
	for (int i = 0; i < SET; i++) {
		y[i] = bo_new(FD, w.bytes, BO_MORE);
		put(&w, y[i], (uint64_t)i + 100);
	}
	dev_debugfs_write("stall_detect", "0");
	release.ctx = ctx_new(FD, 0);
	assert_ok(launch(FD, release.ctx, prog_stall(FD), NULL, 0, held));
	args.ctx = ctx_new(FD, 1);
	args.program = prog_names(FD);
	for (int i = 0; i < SET; i++)
		slots[i] = (struct drm_neuron_slot){ .handle = x[i], .size = 4096 };
	assert_ok(neuron_call(FD, DRM_IOCTL_NEURON_SUBMIT, &args));

	assert_int_equal(pthread_create(&thread, NULL, release_later, &release), 0);
	assert_int_equal(launch_now(FD, ctx_new(FD, 2), args.program, y, SET), 1);
	assert_true(now_ms() >= release.at_ms && release.at_ms);
	assert_int_equal(pthread_join(thread, NULL), 0);
	dev_debugfs_write("stall_detect", "1");
	assert_int_equal(sync_status(FD, first), 1);
	for (int i = 0; i < SET; i++) {
		assert_holds(&w, x[i], (uint64_t)i);
		assert_holds(&w, y[i], (uint64_t)i + 100);
	}
	window_free(&w);
}

/* Buffers of one file make room for another's, which sees nothing of them. */
static void files_make_room_for_each_other(void **state)
{
	uint32_t bo[PIECES], theirs;
	struct window w, v;
	int other;

	need_small_hbm(FD);
	w = window_new(FD, piece_bytes(FD, PIECES_H));
	fill_twice(&w, bo, 0);
	other = dev_open();
	v = window_new(other, w.bytes);
	for (unsigned int i = 0; i < PIECES_H; i++) {
		theirs = bo_new(other, w.bytes, BO_HBM);
		get(&v, theirs);
		bytes_assert_all(v.p, v.bytes, 0);
		put(&v, theirs, i + 500);
		assert_holds(&v, theirs, i + 500);
	}
	window_free(&v);
	dev_close(other);
	for (unsigned int i = 0; i < PIECES; i++)
		assert_holds(&w, bo[i], i);
	window_free(&w);
}

static void evicted_memory_is_limited(void **state)
{
	struct drm_neuron_query_memory memory;
	uint32_t bo[PIECES];
	unsigned int n;
	uint64_t bytes;
	char mib[16];
	int ret = 0;

	need_small_hbm(FD);
	bytes = piece_bytes(FD, PIECES_H);
	/* None, then three pieces. */
	dev_param_write("evict_mib", "0");
	for (n = 0; n < PIECES && !ret; n += !ret)
		ret = bo_try(FD, bytes, BO_MORE, &bo[n]);
	assert_errno(ret, ENOSPC);
	assert_int_equal(dev_memory(FD).evicted_own, 0);
	snprintf(mib, sizeof(mib), "%llu", (unsigned long long)(3 * bytes >> 20));
	dev_param_write("evict_mib", mib);
	for (ret = 0; n < PIECES && !ret; n += !ret)
		ret = bo_try(FD, bytes, BO_MORE, &bo[n]);
	assert_errno(ret, ENOSPC);
	memory = dev_memory(FD);
	assert_int_in_range(memory.evicted_own, 2 * bytes, 3 * bytes);
}

/* Without the flag a file's buffers all fit, whatever others have. */
static void a_file_is_told_when_its_own_is_full(void **state)
{
	uint32_t bo[PIECES], theirs[PIECES];
	unsigned int n, m;
	int other, ret = 0;
	uint64_t bytes;

	need_small_hbm(FD);
	bytes = piece_bytes(FD, PIECES_H);
	for (n = 0; n < PIECES && !ret; n += !ret)
		ret = bo_try(FD, bytes, BO_HBM, &bo[n]);
	assert_errno(ret, ENOSPC);
	assert_true(n > PIECES_H / 2 && n <= PIECES_H);
	other = dev_open();
	for (m = 0, ret = 0; m < PIECES && !ret; m += !ret)
		ret = bo_try(other, bytes, BO_HBM, &theirs[m]);
	assert_errno(ret, ENOSPC);
	assert_int_equal(m, n);
	assert_true(dev_memory(FD).evicted_own + dev_memory(other).evicted_own > 0);
	bo_new(FD, bytes, BO_MORE);
	dev_close(other);
}

static uint64_t fdinfo_kib(int fd, const char *key)
{
	char text[64], unit[8] = "";
	unsigned long long value;

	dev_fdinfo(fd, key, text, sizeof(text));
	assert_true(sscanf(text, "%llu %7s", &value, unit) >= 1);
	return unit[0] == 'M' ? value << 10 : unit[0] == 'K' ? value : value >> 10;
}

static void fdinfo_tells_where_buffers_are(void **state)
{
	struct drm_neuron_query_memory memory;
	uint32_t bo[PIECES];
	struct window w;

	need_small_hbm(FD);
	w = window_new(FD, piece_bytes(FD, PIECES_H));
	fill_twice(&w, bo, 0);
	memory = dev_memory(FD);
	assert_int_equal(fdinfo_kib(FD, "drm-total-hbm"), PIECES * w.bytes >> 10);
	assert_int_equal(fdinfo_kib(FD, "drm-resident-hbm"), memory.hbm_own >> 10);
	assert_int_equal(fdinfo_kib(FD, "drm-total-memory"), w.bytes >> 10);
	assert_int_equal(fdinfo_kib(FD, "drm-resident-memory"), memory.host_own >> 10);
	assert_int_equal(fdinfo_kib(FD, "drm-active-hbm"), 0);
	window_free(&w);
}

#define EVICT_TEST(name) cmocka_unit_test_setup_teardown(name, evict_setup, evict_teardown)

const struct CMUnitTest evict_tests[] = {
	EVICT_TEST(overcommitted_buffers_keep_their_contents),
	EVICT_TEST(mappings_follow_the_buffer),
	EVICT_TEST(buffers_in_use_are_not_evicted),
	EVICT_TEST(a_launch_waits_for_room),
	EVICT_TEST(files_make_room_for_each_other),
	EVICT_TEST(evicted_memory_is_limited),
	EVICT_TEST(a_file_is_told_when_its_own_is_full),
	EVICT_TEST(fdinfo_tells_where_buffers_are),
};
const size_t evict_tests_count = sizeof(evict_tests) / sizeof(evict_tests[0]);
