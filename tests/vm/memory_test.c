// SPDX-License-Identifier: Apache-2.0
/* Buffers hold what was put into them: mappings, copies of every size, scrubbing, exhaustion. */
#include "dev.h"
#include "groups.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MIB (1ull << 20)

static void assert_zero(const uint8_t *p, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		if (p[i])
			fail_msg("byte %llu is 0x%x, not 0", (unsigned long long)i, p[i]);
}

static void new_buffers_are_zero(void **state)
{
	const uint64_t size = MIB + 4096;

	for (int round = 0; round < 4; round++) {
		uint32_t kind = round & 1 ? BO_HOST : BO_HBM;
		uint32_t bo = bo_new(FD, size, kind | BO_MMAP);
		uint8_t *p = bo_map(FD, bo);

		assert_zero(p, size);
		memset(p, 0xa5, size); /* for whoever gets it next */
		bo_unmap(FD, bo, p);
		bo_close(FD, bo);
	}
}

static void dirty_hbm_is_scrubbed_before_a_copy_sees_it(void **state)
{
	const uint64_t size = 8 * MIB;
	uint32_t host = bo_new(FD, size, BO_HOST | BO_MMAP);
	uint8_t *p = bo_map(FD, host);

	for (int round = 0; round < 3; round++) {
		uint32_t hbm = bo_new(FD, size, BO_HBM);

		copy_now(FD, host, 0, hbm, 0, size);
		assert_zero(p, size);
		memset(p, 0x5a, size);
		copy_now(FD, hbm, 0, host, 0, size);
		bo_close(FD, hbm);
	}
	bo_unmap(FD, host, p);
}

static void mappings_show_the_buffer(void **state)
{
	uint32_t hbm = bo_new(FD, 256 * 1024, BO_HBM | BO_MMAP);
	uint32_t host = bo_new(FD, 256 * 1024, BO_HOST | BO_MMAP);
	uint8_t *h = bo_map(FD, hbm), *m = bo_map(FD, host), *again;

	bytes_fill(h, 256 * 1024, 1);
	copy_now(FD, host, 0, hbm, 0, 256 * 1024);
	bytes_assert(m, 256 * 1024, 1);
	bytes_fill(m, 256 * 1024, 2);
	copy_now(FD, hbm, 0, host, 0, 256 * 1024);
	bytes_assert(h, 256 * 1024, 2);

	/* A second mapping, and a part of the first after the rest is gone. */
	again = bo_map(FD, hbm);
	assert_ok(munmap(h, 64 * 1024));
	assert_ok(munmap(h + 192 * 1024, 64 * 1024));
	h[100000] ^= 0xff;
	assert_int_equal(again[100000], bytes_pattern(100000, 2) ^ 0xff);
	assert_ok(munmap(h + 64 * 1024, 128 * 1024));

	/* A mapping keeps the memory after the handle is closed. */
	bo_close(FD, hbm);
	again[5] = 77;
	assert_int_equal(again[5], 77);
	assert_int_equal(dev_memory(FD).hbm_own, 256 * 1024);
	assert_ok(munmap(again, 256 * 1024));
	dev_wait_hbm(FD, 0);
}

static void round_trip(int fd, uint64_t size, uint64_t host_at, uint64_t hbm_at)
{
	uint32_t a = bo_new(fd, size + host_at, BO_HOST | BO_MMAP);
	uint32_t b = bo_new(fd, size + host_at + 1, BO_HOST | BO_MMAP);
	uint32_t hbm = bo_new(fd, size + hbm_at, BO_HBM);
	uint32_t other = bo_new(fd, size + hbm_at + 3, BO_HBM);
	uint8_t *pa = bo_map(fd, a), *pb = bo_map(fd, b);

	bytes_fill(pa + host_at, size, (uint32_t)size);
	copy_now(fd, hbm, hbm_at, a, host_at, size);
	copy_now(fd, other, hbm_at + 3, hbm, hbm_at, size);
	copy_now(fd, b, host_at + 1, other, hbm_at + 3, size);
	bytes_assert(pb + host_at + 1, size, (uint32_t)size);
	/* Nothing around it was touched. */
	assert_zero(pb, host_at + 1);
	assert_zero(pb + host_at + 1 + size, bo_info(fd, b).size - host_at - 1 - size);
	bo_unmap(fd, a, pa);
	bo_unmap(fd, b, pb);
	bo_close(fd, a);
	bo_close(fd, b);
	bo_close(fd, hbm);
	bo_close(fd, other);
}

static void copies_of_all_sizes_round_trip(void **state)
{
	static const uint64_t sizes[] = { 1,	 2,	3,	4,	 7,	 63,
					  64,	 511,	4095,	4096,	 4097,	 65535,
					  65536, 65537, 131072, 1000003, 3 * MIB };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		round_trip(FD, sizes[i], 0, 0);
		round_trip(FD, sizes[i], 1, 5);
		round_trip(FD, sizes[i], 4095, 4097);
	}
}

static void large_copies_round_trip(void **state)
{
	round_trip(FD, 64 * MIB, 0, 0);
	round_trip(FD, 64 * MIB - 12345, 777, 65530);
}

static void host_copies_work_too(void **state)
{
	uint32_t a = bo_new(FD, MIB, BO_HOST | BO_MMAP), b = bo_new(FD, MIB, BO_HOST | BO_MMAP);
	uint8_t *pa = bo_map(FD, a), *pb = bo_map(FD, b);

	bytes_fill(pa, MIB, 9);
	copy_now(FD, b, 11, a, 0, MIB - 11);
	bytes_assert(pb + 11, MIB - 11, 9);
	/* Within one buffer, side by side. */
	copy_now(FD, a, MIB / 2, a, 0, MIB / 2);
	bytes_assert(pa + MIB / 2, MIB / 2, 9);
	bo_unmap(FD, a, pa);
	bo_unmap(FD, b, pb);
}

#define CHAIN 40

/* Each copy waits for the one before by a timeline point; buffers are passed along a chain. */
static void timelines_order_copies(void **state)
{
	uint32_t bo[CHAIN + 1], timeline = sync_new(FD);
	uint8_t *p;

	for (int i = 0; i <= CHAIN; i++)
		bo[i] = bo_new(FD, 300000, i == 0 || i == CHAIN ? BO_HOST | BO_MMAP : BO_HBM);
	p = bo_map(FD, bo[0]);
	bytes_fill(p, 300000, 4);
	for (uint64_t i = 0; i < CHAIN; i++) {
		struct drm_neuron_sync in = { .handle = timeline, .point = i };
		struct drm_neuron_sync out = { .handle = timeline, .point = i + 1 };
		struct drm_neuron_copy args = {
			.src = bo[i],
			.dst = bo[i + 1],
			.size = 300000,
			.in = ARRAY(&in, i ? 1 : 0),
			.out = ARRAY(&out, 1),
		};

		assert_ok(neuron_call(FD, DRM_IOCTL_NEURON_COPY, &args));
	}
	assert_ok(sync_wait(FD, timeline, CHAIN, 30000));
	bo_unmap(FD, bo[0], p);
	p = bo_map(FD, bo[CHAIN]);
	bytes_assert(p, 300000, 4);
	bo_unmap(FD, bo[CHAIN], p);
}

/* More copies than the queue takes: the caller is slowed down, nothing is lost. */
static void many_copies_in_flight(void **state)
{
	uint32_t src = bo_new(FD, 65536, BO_HOST | BO_MMAP), dst = bo_new(FD, 65536, BO_HBM);
	uint32_t back = bo_new(FD, 65536, BO_HOST | BO_MMAP), sync = sync_new(FD);
	uint8_t *p = bo_map(FD, src), *q = bo_map(FD, back);

	bytes_fill(p, 65536, 6);
	for (uint32_t i = 0; i < 1024; i++)
		assert_ok(copy_start(FD, dst, i * 64, src, i * 64, 64, i == 1023 ? sync : 0));
	assert_ok(sync_wait(FD, sync, 0, 30000));
	copy_now(FD, back, 0, dst, 0, 65536);
	bytes_assert(q, 65536, 6);
	bo_unmap(FD, src, p);
	bo_unmap(FD, back, q);
}

/* The last buffer may be closed while a copy still uses it. */
static void buffers_outlive_their_handles(void **state)
{
	uint32_t src = bo_new(FD, 16 * MIB, BO_HOST), dst = bo_new(FD, 16 * MIB, BO_HBM);
	uint32_t sync = sync_new(FD);

	assert_ok(copy_start(FD, dst, 0, src, 0, 16 * MIB, sync));
	bo_close(FD, src);
	bo_close(FD, dst);
	assert_ok(sync_wait(FD, sync, 0, 30000));
	assert_int_equal(sync_status(FD, sync), 1);
	dev_wait_hbm(FD, 0);
}

#define PIECES 4096

static void hbm_runs_out_and_comes_back(void **state)
{
	struct drm_neuron_query_memory memory = dev_memory(FD);
	uint64_t piece = memory.hbm_bytes / 20 & ~(memory.granule - 1);
	uint32_t *bo = calloc(PIECES, sizeof(*bo)), extra;
	int n, ret;

	assert_non_null(bo);
	/* Else others would make room (evict_test.c). */
	dev_param_write("evict_mib", "0");
	for (int round = 0; round < 2; round++) {
		for (n = 0; n < PIECES; n++) {
			ret = bo_try(FD, piece, BO_HBM, &bo[n]);
			if (ret)
				break;
		}
		assert_errno(ret, ENOSPC);
		assert_int_in_range(n, 8, 20);
		assert_int_equal(dev_memory(FD).hbm_own, (uint64_t)n * piece);
		/* The message is about this one; a smaller one still fits or not, but nothing
		 * is lost by asking. */
		if (!bo_try(FD, memory.granule, BO_HBM, &extra))
			bo_close(FD, extra);
		/* One freed, one gets in. */
		bo_close(FD, bo[n / 2]);
		bo[n / 2] = bo_new(FD, piece, BO_HBM);
		while (n--)
			bo_close(FD, bo[n]);
		dev_wait_hbm(FD, memory.hbm_used);
	}
	dev_param_write("evict_mib", "-1");
	free(bo);
}

const struct CMUnitTest memory_tests[] = {
	TEST(new_buffers_are_zero),	     TEST(dirty_hbm_is_scrubbed_before_a_copy_sees_it),
	TEST(mappings_show_the_buffer),	     TEST(copies_of_all_sizes_round_trip),
	TEST(large_copies_round_trip),	     TEST(host_copies_work_too),
	TEST(timelines_order_copies),	     TEST(many_copies_in_flight),
	TEST(buffers_outlive_their_handles), TEST(hbm_runs_out_and_comes_back),
};
const size_t memory_tests_count = sizeof(memory_tests) / sizeof(memory_tests[0]);
