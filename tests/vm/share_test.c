// SPDX-License-Identifier: Apache-2.0
/* Buffers shared as dma-bufs: out to other files and drivers, in from other drivers, and their fences. */
#define _GNU_SOURCE
#include "dev.h"
#include "groups.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <linux/dma-buf.h>
#include <linux/dma-heap.h>
#include <linux/udmabuf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xf86drm.h>

#define SIZE (1u << 20)

static int share(int fd, uint32_t handle)
{
	int buf;

	assert_ok(drmPrimeHandleToFD(fd, handle, DRM_CLOEXEC | DRM_RDWR, &buf));
	return buf;
}

/* 0 or -errno. */
static int import_try(int fd, int buf, uint32_t *handle)
{
	struct drm_prime_handle args = { .fd = buf };
	int ret = neuron_call(fd, DRM_IOCTL_PRIME_FD_TO_HANDLE, &args);

	*handle = args.handle;
	return ret;
}

static uint32_t import(int fd, int buf)
{
	uint32_t handle;

	assert_ok(import_try(fd, buf, &handle));
	assert_int_not_equal(handle, 0);
	return handle;
}

static void cpu_access(int buf, uint64_t flags)
{
	struct dma_buf_sync sync = { .flags = flags };

	assert_ok(neuron_call(buf, DMA_BUF_IOCTL_SYNC, &sync));
}

/* --- out ------------------------------------------------------------------ */

static void own_buffers_come_back_as_themselves(void **state)
{
	for (int i = 0; i < 2; i++) {
		uint32_t bo = bo_new(FD, SIZE, i ? BO_HBM : BO_HOST);
		int buf = share(FD, bo), again = share(FD, bo);

		assert_int_equal(lseek(buf, 0, SEEK_END), SIZE);
		assert_int_equal(import(FD, buf), bo);
		assert_int_equal(import(FD, again), bo);
		/* The dma-buf keeps it without a handle. */
		bo_close(FD, bo);
		bo = import(FD, buf);
		assert_int_equal(bo_info(FD, bo).flags, i ? BO_HBM : BO_HOST);
		close(buf);
		close(again);
		bo_close(FD, bo);
	}
}

/* One file writes, another reads; the buffer outlives the file that paid for it. */
static void two_files_share_a_buffer(void **state)
{
	for (int i = 0; i < 2; i++) {
		int other = dev_open(), buf;
		uint32_t host = bo_new(FD, SIZE, BO_HOST | BO_MMAP);
		uint32_t bo = bo_new(other, SIZE, i ? BO_HBM : BO_HOST), mine, src;
		uint8_t *p = bo_map(FD, host), *q;

		buf = share(other, bo);
		mine = import(FD, buf);
		close(buf);
		assert_int_equal(dev_memory(FD).hbm_own, 0);
		src = bo_new(other, SIZE, BO_HOST | BO_MMAP);
		q = bo_map(other, src);
		bytes_fill(q, SIZE, i);
		bo_unmap(other, src, q);
		copy_now(other, bo, 0, src, 0, SIZE);
		dev_close(other);

		copy_now(FD, host, 0, mine, 0, SIZE);
		bytes_assert(p, SIZE, i);
		bo_unmap(FD, host, p);
		bo_close(FD, mine);
		bo_close(FD, host);
	}
}

static void shared_hbm_can_be_a_slot(void **state)
{
	const uint32_t bytes = TILE_PARTS * 4 * 4;
	uint32_t out = bo_new(FD, bytes, BO_HBM | BO_MMAP), in;
	int other = dev_open(), buf = share(FD, out);
	float *p = bo_map(FD, out);

	in = import(other, buf);
	assert_int_equal(launch_now(other, ctx_new(other, 0), prog_fill(other, 2.5f, 4), &in, 1),
			 1);
	for (uint32_t i = 0; i < bytes / 4; i++)
		assert_true(p[i] == 2.5f);
	bo_unmap(FD, out, p);
	close(buf);
	dev_close(other);
}

static void host_buffers_are_mapped_through_the_dma_buf(void **state)
{
	uint32_t host = bo_new(FD, SIZE, BO_HOST | BO_MMAP), hbm = bo_new(FD, SIZE, BO_HBM);
	int buf = share(FD, host);
	uint8_t *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, buf, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	cpu_access(buf, DMA_BUF_SYNC_START | DMA_BUF_SYNC_WRITE);
	bytes_fill(p, SIZE, 3);
	cpu_access(buf, DMA_BUF_SYNC_END | DMA_BUF_SYNC_WRITE);
	copy_now(FD, hbm, 0, host, 0, SIZE);
	memset(p, 0, SIZE);
	/* Nothing but the dma-buf waits for this one. */
	assert_ok(copy_start(FD, host, 0, hbm, 0, SIZE, 0));
	cpu_access(buf, DMA_BUF_SYNC_START | DMA_BUF_SYNC_READ);
	bytes_assert(p, SIZE, 3);
	cpu_access(buf, DMA_BUF_SYNC_END | DMA_BUF_SYNC_READ);
	bo_close(FD, host);
	close(buf);
	/* The mapping keeps the memory. */
	bytes_assert(p, SIZE, 3);
	assert_ok(munmap(p, SIZE));
}

static void other_buffers_are_not_mapped_through_the_dma_buf(void **state)
{
	static const uint32_t flags[] = { BO_HBM, BO_HBM | BO_MMAP, BO_HOST };

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		int buf = share(FD, bo_new(FD, SIZE, flags[i]));

		assert_ptr_equal(mmap(NULL, SIZE, PROT_READ, MAP_SHARED, buf, 0), MAP_FAILED);
		assert_int_equal(errno, EACCES);
		close(buf);
	}
}

/* vgem is a device in name only: it takes host memory, and cannot reach a BAR. */
static void hbm_is_refused_to_who_cannot_reach_it(void **state)
{
	uint32_t handle;
	int vgem, buf;

	if (system("modprobe -q vgem"))
		skip();
	vgem = drmOpen("vgem", NULL);
	assert_true(vgem >= 0);
	buf = share(FD, bo_new(FD, SIZE, BO_HBM));
	assert_errno(import_try(vgem, buf, &handle), EOPNOTSUPP);
	close(buf);
	buf = share(FD, bo_new(FD, SIZE, BO_HOST));
	assert_ok(import_try(vgem, buf, &handle));
	close(buf);
	drmClose(vgem);
	assert_int_equal(system("modprobe -r vgem"), 0);
}

/* --- in ------------------------------------------------------------------- */

/* A dma-buf of the pages of a memfd, which is mapped at *ptr. */
static int foreign(uint8_t **ptr)
{
	struct udmabuf_create args = { .flags = UDMABUF_FLAGS_CLOEXEC, .size = SIZE };
	int memfd = memfd_create("share_test", MFD_CLOEXEC | MFD_ALLOW_SEALING), dev, buf;

	/* A module, or part of the kernel. */
	dev = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
	if (dev < 0 && !system("modprobe -q udmabuf"))
		dev = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
	if (dev < 0)
		fail_msg("the kernel has no udmabuf: %s", strerror(errno));
	assert_true(memfd >= 0);
	assert_ok(ftruncate(memfd, SIZE));
	assert_ok(fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK));
	*ptr = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	assert_ptr_not_equal(*ptr, MAP_FAILED);
	args.memfd = (uint32_t)memfd;
	buf = ioctl(dev, UDMABUF_CREATE, &args);
	assert_true(buf >= 0);
	close(dev);
	close(memfd);
	return buf;
}

static void foreign_buffers_are_copied_from_and_to(void **state)
{
	uint32_t hbm = bo_new(FD, SIZE, BO_HBM), host = bo_new(FD, SIZE, BO_HOST | BO_MMAP), bo;
	uint8_t *p, *q = bo_map(FD, host);
	int buf = foreign(&p);

	bo = import(FD, buf);
	assert_int_equal(import(FD, buf), bo);
	close(buf);
	assert_int_equal(bo_info(FD, bo).flags, BO_HOST);
	assert_int_equal(bo_info(FD, bo).size, SIZE);
	assert_int_equal(bo_info(FD, bo).mmap_offset, 0);
	assert_int_equal(dev_memory(FD).host_own, SIZE);

	bytes_fill(p, SIZE, 5);
	copy_now(FD, hbm, 0, bo, 0, SIZE);
	copy_now(FD, host, 0, hbm, 0, SIZE);
	bytes_assert(q, SIZE, 5);
	memset(p, 0xee, SIZE);
	copy_now(FD, bo, 4097, hbm, 4097, SIZE - 4098);
	assert_int_equal(p[4096], 0xee);
	assert_int_equal(p[SIZE - 1], 0xee);
	for (size_t i = 4097; i < SIZE - 1; i++)
		if (p[i] != bytes_pattern(i, 5))
			fail_msg("byte %zu is 0x%x, not 0x%x", i, p[i], bytes_pattern(i, 5));

	/* Out again it is what came in, and its end is everybody's. */
	buf = share(FD, bo);
	bo_close(FD, bo);
	assert_int_equal(lseek(buf, 0, SEEK_END), SIZE);
	close(buf);
	bo_unmap(FD, host, q);
	assert_ok(munmap(p, SIZE));
}

static void heap_buffers_are_taken_too(void **state)
{
	struct dma_heap_allocation_data args = { .len = SIZE, .fd_flags = O_RDWR | O_CLOEXEC };
	int heap = open("/dev/dma_heap/system", O_RDWR | O_CLOEXEC);
	uint32_t hbm = bo_new(FD, SIZE, BO_HBM), bo;
	uint8_t *p;

	if (heap < 0)
		skip();
	assert_ok(ioctl(heap, DMA_HEAP_IOCTL_ALLOC, &args));
	close(heap);
	p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, (int)args.fd, 0);
	assert_ptr_not_equal(p, MAP_FAILED);
	bo = import(FD, (int)args.fd);
	bytes_fill(p, SIZE, 6);
	copy_now(FD, hbm, 0, bo, 0, SIZE);
	memset(p, 0, SIZE);
	copy_now(FD, bo, 0, hbm, 0, SIZE);
	bytes_assert(p, SIZE, 6);
	assert_ok(munmap(p, SIZE));
	close((int)args.fd);
}

static void only_dma_bufs_are_imported(void **state)
{
	int memfd = memfd_create("share_test", MFD_CLOEXEC);
	uint32_t handle, host = bo_new(FD, SIZE, BO_HOST);
	struct drm_prime_handle args = { .handle = 999, .flags = DRM_RDWR };

	assert_errno(import_try(FD, memfd, &handle), EINVAL);
	assert_errno(import_try(FD, -1, &handle), EBADF);
	assert_errno(neuron_call(FD, DRM_IOCTL_PRIME_HANDLE_TO_FD, &args), ENOENT);
	args.handle = host;
	args.flags = ~0u;
	assert_errno(neuron_call(FD, DRM_IOCTL_PRIME_HANDLE_TO_FD, &args), EINVAL);
	close(memfd);
}

/* --- fences --------------------------------------------------------------- */

/* A fence that signals at signal_fence(), as a sync file. */
static int open_fence(int fd, uint32_t *ctx)
{
	uint32_t sync = sync_new(fd);
	int file;

	/* Else the device would find that the launch cannot go on, and end it. */
	dev_debugfs_write("stall_detect", "0");
	*ctx = ctx_new(fd, 0);
	assert_ok(launch(fd, *ctx, prog_stall(fd), NULL, 0, sync));
	assert_ok(drmSyncobjExportSyncFile(fd, sync, &file));
	return file;
}

static void signal_fence(int fd, uint32_t ctx)
{
	ctx_close(fd, ctx);
	dev_debugfs_write("stall_detect", "1");
}

static void set_fence(int buf, int file, uint32_t flags)
{
	struct dma_buf_import_sync_file args = { .flags = flags, .fd = file };

	assert_ok(neuron_call(buf, DMA_BUF_IOCTL_IMPORT_SYNC_FILE, &args));
}

/* What the kernel answers for a fence that is not there yet. */
#define assert_waits(sync) assert_errno(sync_wait(FD, sync, 0, 100), ETIME)

/* The fence of what somebody who wants to do this has to wait for: 1 well, 0 open, -errno. */
static int fence_status(int buf, uint32_t flags)
{
	struct dma_buf_export_sync_file args = { .flags = flags };
	uint32_t sync;
	int fd = dev_open(), status;

	assert_ok(neuron_call(buf, DMA_BUF_IOCTL_EXPORT_SYNC_FILE, &args));
	sync = sync_new(fd);
	assert_ok(drmSyncobjImportSyncFile(fd, sync, args.fd));
	status = sync_status(fd, sync);
	close(args.fd);
	dev_close(fd);
	return status;
}

static void copies_wait_for_others(void **state)
{
	uint32_t hbm = bo_new(FD, SIZE, BO_HBM), read = sync_new(FD), write = sync_new(FD);
	uint32_t bo, ctx;
	uint8_t *p;
	int buf = foreign(&p), file = open_fence(FD, &ctx);

	/* Others read it: we may read, not write. */
	bo = import(FD, buf);
	bytes_fill(p, SIZE, 7);
	set_fence(buf, file, DMA_BUF_SYNC_READ);
	assert_int_equal(fence_status(buf, DMA_BUF_SYNC_WRITE), 0);
	copy_now(FD, hbm, 0, bo, 0, SIZE);
	memset(p, 0, SIZE);
	assert_int_equal(fence_status(buf, DMA_BUF_SYNC_WRITE), 0);
	assert_ok(copy_start(FD, bo, 0, hbm, 0, SIZE, write));
	assert_waits(write);
	assert_int_equal(p[1000], 0);
	/* Others write it: we may do neither. */
	set_fence(buf, file, DMA_BUF_SYNC_WRITE);
	assert_ok(copy_start(FD, hbm, 0, bo, 0, SIZE, read));
	assert_waits(read);
	signal_fence(FD, ctx);
	assert_ok(sync_wait(FD, write, 0, 30000));
	assert_ok(sync_wait(FD, read, 0, 30000));
	assert_int_equal(sync_status(FD, write), 1);
	assert_int_equal(sync_status(FD, read), 1);
	bytes_assert(p, SIZE, 7);
	assert_ok(munmap(p, SIZE));
	close(file);
	close(buf);
}

/* A copy that is held up by a fence of its own shows in the reservations of both sides. */
static void others_wait_for_copies(void **state)
{
	uint32_t src, dst, held = sync_new(FD), done = sync_new(FD), ctx;
	struct drm_neuron_sync in = { .handle = held }, out = { .handle = done };
	struct drm_neuron_copy args = { .size = SIZE, .in = ARRAY(&in, 1), .out = ARRAY(&out, 1) };
	int from, to, file = open_fence(FD, &ctx);
	uint8_t *p;

	from = foreign(&p);
	src = import(FD, from);
	dst = bo_new(FD, SIZE, BO_HOST);
	to = share(FD, dst);
	assert_ok(drmSyncobjImportSyncFile(FD, held, file));
	args.src = src;
	args.dst = dst;
	assert_ok(neuron_call(FD, DRM_IOCTL_NEURON_COPY, &args));
	assert_int_equal(fence_status(from, DMA_BUF_SYNC_READ), 1);
	assert_int_equal(fence_status(from, DMA_BUF_SYNC_WRITE), 0);
	assert_int_equal(fence_status(to, DMA_BUF_SYNC_READ), 0);
	assert_int_equal(fence_status(to, DMA_BUF_SYNC_WRITE), 0);
	signal_fence(FD, ctx);
	assert_ok(sync_wait(FD, done, 0, 30000));
	assert_int_equal(fence_status(to, DMA_BUF_SYNC_WRITE), 1);
	assert_ok(munmap(p, SIZE));
	close(file);
	close(from);
	close(to);
}

/* Launches: an input is read, an output written. */
static void others_wait_for_launches(void **state)
{
	uint32_t bo[2] = { bo_new(FD, TILE_PARTS * 64, BO_HBM),
			   bo_new(FD, TILE_PARTS * 64, BO_HBM) };
	int in = share(FD, bo[0]), out = share(FD, bo[1]), file;
	uint32_t ctx, stall, done = sync_new(FD);

	file = open_fence(FD, &stall);
	/* Others write the input: the launch waits for them, and readers of its output for it. */
	set_fence(in, file, DMA_BUF_SYNC_WRITE);
	ctx = ctx_new(FD, 0);
	assert_ok(launch(FD, ctx, prog_through_sbuf(FD, 64), bo, 2, done));
	assert_waits(done);
	assert_int_equal(fence_status(out, DMA_BUF_SYNC_READ), 0);
	signal_fence(FD, stall);
	assert_ok(sync_wait(FD, done, 0, 30000));
	assert_int_equal(sync_status(FD, done), 1);
	assert_int_equal(fence_status(out, DMA_BUF_SYNC_READ), 1);
	close(file);
	close(in);
	close(out);
}

/* Host memory of both kinds stays the user's when the driver goes, but no longer mapped for the device:
 * a kernel that watches DMA would complain of that. */
static void host_memory_outlives_the_driver(void **state)
{
	int fd = dev_open(), buf;
	char address[32];
	uint32_t own;
	uint8_t *p;

	(void)state;
	snprintf(address, sizeof(address), "%s", dev_pci_address());
	own = bo_new(fd, SIZE, BO_HOST);
	copy_now(fd, own, 0, bo_new(fd, SIZE, BO_HBM), 0, SIZE);
	buf = foreign(&p);
	bytes_fill(p, SIZE, 6);
	copy_now(fd, own, 0, import(fd, buf), 0, SIZE);

	assert_ok(dev_driver_write("unbind", address));
	bytes_assert(p, SIZE, 6);
	assert_errno(bo_try(fd, SIZE, BO_HOST, &own), ENODEV);
	close(buf);
	munmap(p, SIZE);
	dev_close(fd);
	assert_ok(dev_driver_write("bind", address));
	fd = dev_open();
	assert_int_equal(dev_memory(fd).hbm_used, 0);
	dev_close(fd);
}

const struct CMUnitTest share_tests[] = {
	TEST(own_buffers_come_back_as_themselves),
	TEST(two_files_share_a_buffer),
	TEST(shared_hbm_can_be_a_slot),
	TEST(host_buffers_are_mapped_through_the_dma_buf),
	TEST(other_buffers_are_not_mapped_through_the_dma_buf),
	TEST(hbm_is_refused_to_who_cannot_reach_it),
	TEST(foreign_buffers_are_copied_from_and_to),
	TEST(heap_buffers_are_taken_too),
	TEST(only_dma_bufs_are_imported),
	TEST(copies_wait_for_others),
	TEST(others_wait_for_copies),
	TEST(others_wait_for_launches),
	/* Without the fixture, whose file would keep the old device. */
	cmocka_unit_test(host_memory_outlives_the_driver),
};
const size_t share_tests_count = sizeof(share_tests) / sizeof(share_tests[0]);
