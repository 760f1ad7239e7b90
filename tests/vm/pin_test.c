// SPDX-License-Identifier: Apache-2.0
/* Buffers of the caller's own memory: copies from and to it, its limit, and what is refused. */
#define _GNU_SOURCE
#include "dev.h"
#include "groups.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xf86drm.h>

#define PAGE 4096u
#define SIZE (1u << 20)

static int pin_try(int fd, uint64_t addr, uint64_t size, uint32_t *handle)
{
	struct drm_neuron_bo_pin args = { .addr = addr, .size = size };
	int ret = neuron_call(fd, DRM_IOCTL_NEURON_BO_PIN, &args);

	*handle = args.handle;
	return ret;
}

static uint32_t pin(int fd, void *ptr, uint64_t size)
{
	uint32_t handle;

	assert_ok(pin_try(fd, (uintptr_t)ptr, size, &handle));
	assert_int_not_equal(handle, 0);
	return handle;
}

static uint8_t *anonymous(int prot)
{
	void *ptr = mmap(NULL, SIZE, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(ptr, MAP_FAILED);
	return ptr;
}

/* What the kernel counts as pinned, KiB. */
static unsigned long pinned_kib(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	unsigned long kib = 0;
	char line[128];

	assert_non_null(f);
	while (fgets(line, sizeof(line), f) && sscanf(line, "VmPin: %lu kB", &kib) != 1)
		;
	fclose(f);
	return kib;
}

/* Copies in flight may hold a buffer a little longer than its handle. */
static void wait_unpinned(unsigned long kib)
{
	for (int i = 0; i < 1000 && pinned_kib() != kib; i++)
		usleep(10000);
	assert_int_equal(pinned_kib(), kib);
}

static void copies_read_and_write_pinned_memory(void **state)
{
	uint8_t *a = anonymous(PROT_READ | PROT_WRITE), *b = anonymous(PROT_READ | PROT_WRITE);
	uint32_t from, to, hbm = bo_new(FD, SIZE, BO_HBM);

	bytes_fill(a, SIZE, 8);
	from = pin(FD, a, SIZE);
	to = pin(FD, b, SIZE);
	assert_int_equal(bo_info(FD, from).flags, BO_HOST | DRM_NEURON_BO_USER);
	assert_int_equal(bo_info(FD, from).size, SIZE);
	assert_int_equal(bo_info(FD, from).mmap_offset, 0);
	assert_int_equal(pinned_kib(), 2 * SIZE / 1024);
	assert_int_equal(dev_memory(FD).host_own, 2 * SIZE);

	/* Across pages that lie anywhere, and from memory to memory. */
	copy_now(FD, hbm, 0, from, 0, SIZE);
	copy_now(FD, to, 4095, hbm, 4095, SIZE - 4099);
	copy_now(FD, to, 0, from, 0, 1);
	assert_int_equal(b[0], bytes_pattern(0, 8));
	bytes_assert_all(b + 1, 4094, 0);
	bytes_assert_from(b, 4095, SIZE - 4, 8);
	bytes_assert_all(b + SIZE - 4, 4, 0);
	bo_close(FD, from);
	bo_close(FD, to);
	wait_unpinned(0);
	assert_int_equal(dev_memory(FD).host_own, 0);
	assert_ok(munmap(a, SIZE));
	assert_ok(munmap(b, SIZE));
}

/* The buffer keeps the pages; what is mapped there next is something else. */
static void pinned_memory_may_be_unmapped(void **state)
{
	uint8_t *p = anonymous(PROT_READ | PROT_WRITE);
	uint32_t bo = pin(FD, p, SIZE), host = bo_new(FD, SIZE, BO_HOST | BO_MMAP);
	uint8_t *q = bo_map(FD, host), *again;

	memset(p, 0x5a, SIZE);
	assert_ok(munmap(p, SIZE));
	again = mmap(p, SIZE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	assert_ptr_equal(again, p);
	copy_now(FD, host, 0, bo, 0, SIZE);
	bytes_assert_all(q, SIZE, 0x5a);
	memset(q, 0xa5, SIZE);
	copy_now(FD, bo, 0, host, 0, SIZE);
	bytes_assert_all(again, SIZE, 0);
	bo_unmap(FD, host, q);
	assert_ok(munmap(again, SIZE));
}

/* A child gets copies of the pages; the parent's stay those that the device knows. */
static void pinned_memory_stays_with_the_parent(void **state)
{
	uint8_t *p = anonymous(PROT_READ | PROT_WRITE);
	uint32_t bo = pin(FD, p, SIZE), host = bo_new(FD, SIZE, BO_HOST | BO_MMAP);
	uint8_t *q = bo_map(FD, host);
	int status, go[2];
	char byte = 0;
	pid_t pid;

	memset(p, 0x11, SIZE);
	assert_ok(pipe(go));
	pid = fork();
	if (!pid) {
		/* Wait until the parent is done, then see what was there at the fork. */
		if (read(go[0], &byte, 1) != 1)
			_exit(1);
		for (size_t i = 0; i < SIZE; i++)
			if (p[i] != 0x11)
				_exit(2);
		memset(p, 0x33, SIZE);
		_exit(0);
	}
	memset(p, 0x22, SIZE / 2);
	copy_now(FD, host, 0, bo, 0, SIZE);
	bytes_assert_all(q, SIZE / 2, 0x22);
	bytes_assert_all(q + SIZE / 2, SIZE / 2, 0x11);
	memset(q, 0x44, SIZE);
	copy_now(FD, bo, 0, host, 0, SIZE);
	bytes_assert_all(p, SIZE, 0x44);
	assert_int_equal(write(go[1], &byte, 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	bytes_assert_all(p, SIZE, 0x44);
	close(go[0]);
	close(go[1]);
	bo_unmap(FD, host, q);
	assert_ok(munmap(p, SIZE));
}

static void pin_checks_its_arguments(void **state)
{
	uint8_t *p = anonymous(PROT_READ | PROT_WRITE), *ro = anonymous(PROT_READ);
	uint32_t handle, hbm = bo_new(FD, SIZE, BO_HBM | BO_MMAP);
	uint32_t host = bo_new(FD, SIZE, BO_HOST | BO_MMAP);
	uint8_t *device = bo_map(FD, hbm), *ours = bo_map(FD, host);
	struct drm_neuron_bo_pin args = { .addr = (uintptr_t)p, .size = SIZE, .flags = 1 };
	uintptr_t at = (uintptr_t)p;

	assert_errno(neuron_call(FD, DRM_IOCTL_NEURON_BO_PIN, &args), EINVAL);
	assert_errno(pin_try(FD, at, 0, &handle), EINVAL);
	assert_errno(pin_try(FD, at, 100, &handle), EINVAL);
	assert_errno(pin_try(FD, at + 64, PAGE, &handle), EINVAL);
	assert_errno(pin_try(FD, at, SIZE - 1, &handle), EINVAL);
	assert_errno(pin_try(FD, 0, PAGE, &handle), EFAULT);
	assert_errno(pin_try(FD, at, 0ull - PAGE, &handle), EFAULT);
	assert_errno(pin_try(FD, 0ull - PAGE, PAGE, &handle), EFAULT);
	assert_errno(pin_try(FD, 1ull << 63, PAGE, &handle), EFAULT);
	assert_errno(pin_try(FD, PAGE, 1ull << 45, &handle), ENOMEM);
	assert_errno(pin_try(FD, (uintptr_t)ro, SIZE, &handle), EFAULT);
	assert_errno(pin_try(FD, (uintptr_t)device, SIZE, &handle), EFAULT);
	assert_errno(pin_try(FD, (uintptr_t)ours, SIZE, &handle), EFAULT);
	/* The last page is missing: none stays pinned. */
	assert_ok(munmap(p + SIZE - PAGE, PAGE));
	assert_errno(pin_try(FD, at, SIZE, &handle), EFAULT);
	assert_int_equal(pinned_kib(), 0);
	assert_int_equal(dev_memory(FD).host_own, SIZE);
	bo_unmap(FD, hbm, device);
	bo_unmap(FD, host, ours);
	assert_ok(munmap(p, SIZE - PAGE));
	assert_ok(munmap(ro, SIZE));
}

static void pinned_memory_is_neither_mapped_nor_shared_nor_a_slot(void **state)
{
	uint8_t *p = anonymous(PROT_READ | PROT_WRITE);
	uint32_t bo = pin(FD, p, SIZE), out = sync_new(FD);
	struct drm_prime_handle args = { .handle = bo, .flags = DRM_RDWR };

	assert_errno(neuron_call(FD, DRM_IOCTL_PRIME_HANDLE_TO_FD, &args), EPERM);
	assert_errno(launch(FD, ctx_new(FD, 0), prog_fill(FD, 1.0f, 4), &bo, 1, out), EINVAL);
	assert_ok(munmap(p, SIZE));
}

/* RLIMIT_MEMLOCK, for who has no CAP_IPC_LOCK. 0: as expected, else a line number. */
static int limited(int fd, uint8_t *p)
{
	const struct rlimit limit = { .rlim_cur = SIZE / 2, .rlim_max = SIZE / 2 };
	uint32_t handle;

	if (setrlimit(RLIMIT_MEMLOCK, &limit) || setuid(65534))
		return __LINE__ % 256;
	if (pin_try(fd, (uintptr_t)p, SIZE, &handle) != -ENOMEM)
		return __LINE__ % 256;
	if (pin_try(fd, (uintptr_t)p, SIZE / 2, &handle))
		return __LINE__ % 256;
	if (pin_try(fd, (uintptr_t)p + SIZE / 2, PAGE, &handle) != -ENOMEM)
		return __LINE__ % 256;
	return 0;
}

static void pinned_memory_is_limited(void **state)
{
	uint8_t *p = anonymous(PROT_READ | PROT_WRITE);
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(limited(FD, p));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_ok(munmap(p, SIZE));
}

const struct CMUnitTest pin_tests[] = {
	TEST(copies_read_and_write_pinned_memory),
	TEST(pinned_memory_may_be_unmapped),
	TEST(pinned_memory_stays_with_the_parent),
	TEST(pin_checks_its_arguments),
	TEST(pinned_memory_is_neither_mapped_nor_shared_nor_a_slot),
	TEST(pinned_memory_is_limited),
};
const size_t pin_tests_count = sizeof(pin_tests) / sizeof(pin_tests[0]);
