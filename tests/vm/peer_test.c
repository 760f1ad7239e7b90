// SPDX-License-Identifier: Apache-2.0
/*
 * Two devices: each copies from and to the other's HBM, without a stop in host memory, and follows
 * it when it moves. Skipped where there is one device only (tests/vm/run --devices 2).
 */
#include "dev.h"
#include "groups.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xf86drm.h>

#define SIZE	(1u << 20)
#define HBM_MAX (1ull << 30)
#define FILLERS 40

/* Host memory of a device, mapped. */
struct window {
	int fd;
	uint32_t bo;
	uint8_t *p;
};

static struct window window_new(int fd)
{
	struct window w = { .fd = fd, .bo = bo_new(fd, SIZE, BO_HOST | BO_MMAP) };

	w.p = bo_map(fd, w.bo);
	return w;
}

/* A mapping would keep the file open. */
static void window_free(struct window *w)
{
	bo_unmap(w->fd, w->bo, w->p);
	bo_close(w->fd, w->bo);
}

static void put(struct window *w, uint32_t bo, unsigned int seed)
{
	bytes_fill(w->p, SIZE, seed);
	copy_now(w->fd, bo, 0, w->bo, 0, SIZE);
}

static void assert_holds(struct window *w, uint32_t bo, unsigned int seed)
{
	memset(w->p, 0xee, SIZE);
	copy_now(w->fd, w->bo, 0, bo, 0, SIZE);
	bytes_assert(w->p, SIZE, seed);
}

/* A buffer of one device as the other sees it. */
static uint32_t pass(int from, uint32_t bo, int to)
{
	struct drm_prime_handle args = { .handle = bo, .flags = DRM_CLOEXEC | DRM_RDWR };
	int buf;

	assert_ok(neuron_call(from, DRM_IOCTL_PRIME_HANDLE_TO_FD, &args));
	buf = args.fd;
	args = (struct drm_prime_handle){ .fd = buf };
	assert_ok(neuron_call(to, DRM_IOCTL_PRIME_FD_TO_HANDLE, &args));
	close(buf);
	return args.handle;
}

static int other_device(int fd)
{
	int other = dev_open_other(fd);

	if (other < 0)
		skip();
	return other;
}

/* The other device, where the kernel can say whether it reaches this one's HBM. */
static int other_peer(int fd)
{
	FILE *file = fopen("/proc/kallsyms", "r");
	bool can = false;
	char line[256];

	assert_non_null(file);
	while (!can && fgets(line, sizeof(line), file))
		can = strstr(line, " pci_p2pdma_distance_many");
	fclose(file);
	if (!can) /* CONFIG_PCI_P2PDMA */
		skip();
	return other_device(fd);
}

static void hbm_is_copied_between_devices(void **state)
{
	int other = other_peer(FD);
	uint32_t mine = bo_new(FD, SIZE, BO_HBM), theirs = bo_new(other, SIZE, BO_HBM), seen;
	struct window w = window_new(FD), v = window_new(other);

	put(&w, mine, 1);
	seen = pass(FD, mine, other);
	assert_int_equal(bo_info(other, seen).flags, BO_HOST);
	assert_int_equal(bo_info(other, seen).size, SIZE);
	/* From HBM to HBM, there and, changed, back. */
	copy_now(other, theirs, 0, seen, 0, SIZE);
	assert_holds(&v, theirs, 1);
	put(&v, theirs, 2);
	copy_now(other, seen, 0, theirs, 0, SIZE);
	assert_holds(&w, mine, 2);
	copy_now(other, seen, 4097, theirs, 0, 3);
	copy_now(FD, w.bo, 0, mine, 0, SIZE);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(w.p[4097 + i], bytes_pattern(i, 2));
	assert_int_equal(w.p[4096], bytes_pattern(4096, 2));
	assert_int_equal(w.p[4100], bytes_pattern(4100, 2));
	window_free(&w);
	window_free(&v);
	dev_close(other);
}

static void host_memory_is_shared_by_devices(void **state)
{
	int other = other_device(FD);
	struct window w = window_new(FD), v = window_new(other);
	uint32_t seen = pass(FD, w.bo, other), hbm = bo_new(other, SIZE, BO_HBM);

	bytes_fill(w.p, SIZE, 3);
	copy_now(other, hbm, 0, seen, 0, SIZE);
	assert_holds(&v, hbm, 3);
	window_free(&w);
	window_free(&v);
	dev_close(other);
}

/* Nobody waits but the devices, each for the other's last use. */
static void devices_wait_for_each_other(void **state)
{
	int other = other_peer(FD);
	uint32_t mine = bo_new(FD, SIZE, BO_HBM), theirs = bo_new(other, SIZE, BO_HBM);
	uint32_t seen = pass(FD, mine, other), done = sync_new(other);
	struct window w = window_new(FD), v = window_new(other);

	for (unsigned int round = 0; round < 20; round++) {
		bytes_fill(w.p, SIZE, round);
		assert_ok(copy_start(FD, mine, 0, w.bo, 0, SIZE, 0));
		assert_ok(copy_start(other, theirs, 0, seen, 0, SIZE, done));
		assert_ok(sync_wait(other, done, 0, 20000));
		assert_holds(&v, theirs, round);
	}
	window_free(&w);
	window_free(&v);
	dev_close(other);
}

/* The handle and the file that paid for it go first. */
static void a_peer_keeps_the_buffer(void **state)
{
	int other = other_peer(FD), owner = dev_open();
	uint64_t used = dev_memory(FD).hbm_used;
	uint32_t mine = bo_new(owner, SIZE, BO_HBM), seen = pass(owner, mine, other);
	struct window w = window_new(owner), v = window_new(other);

	put(&w, mine, 4);
	window_free(&w);
	dev_close(owner);
	assert_holds(&v, seen, 4);
	assert_int_equal(dev_memory(FD).hbm_used, used + SIZE);
	window_free(&v);
	dev_close(other);
	dev_wait_hbm(FD, used);
}

/* Evicted, the peer gets it from host memory, and from HBM again when it is back. */
static void peers_follow_a_buffer_that_moves(void **state)
{
	int other = other_peer(FD);
	uint32_t mine = bo_new(FD, SIZE, BO_HBM), seen = pass(FD, mine, other), filler[FILLERS];
	struct drm_neuron_query_memory memory = dev_memory(FD);
	uint64_t piece = memory.hbm_bytes / (FILLERS / 2) & ~(memory.granule - 1);
	struct window w, v;
	float *f;

	if (memory.hbm_bytes > HBM_MAX) {
		dev_close(other);
		skip();
	}
	w = window_new(FD);
	v = window_new(other);
	put(&w, mine, 5);
	assert_holds(&v, seen, 5);
	for (int i = 0; i < FILLERS; i++)
		filler[i] = bo_new(FD, piece, BO_HBM | DRM_NEURON_BO_OVERCOMMIT);
	/* The oldest is among the evicted. */
	assert_true(dev_memory(FD).evicted_own >= SIZE + piece);
	assert_holds(&v, seen, 5);
	put(&v, seen, 6);
	assert_holds(&w, mine, 6);
	/* Back, and written there. */
	memory = dev_memory(FD);
	assert_int_equal(launch_now(FD, ctx_new(FD, 0), prog_fill(FD, 2.25f, 4), &mine, 1), 1);
	copy_now(other, v.bo, 0, seen, 0, SIZE);
	f = (float *)v.p;
	for (unsigned int i = 0; i < TILE_PARTS * 4; i++)
		assert_true(f[i] == 2.25f);
	for (size_t i = TILE_PARTS * 16; i < SIZE; i++)
		assert_int_equal(v.p[i], bytes_pattern(i, 6));
	for (int i = 0; i < FILLERS; i++)
		bo_close(FD, filler[i]);
	window_free(&w);
	window_free(&v);
	dev_close(other);
}

const struct CMUnitTest peer_tests[] = {
	TEST(hbm_is_copied_between_devices),	TEST(host_memory_is_shared_by_devices),
	TEST(devices_wait_for_each_other),	TEST(a_peer_keeps_the_buffer),
	TEST(peers_follow_a_buffer_that_moves),
};
const size_t peer_tests_count = sizeof(peer_tests) / sizeof(peer_tests[0]);
