// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "dev.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/sync_file.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>
#include <xf86drm.h>

/* --- device --------------------------------------------------------------- */

int neuron_call(int fd, unsigned long request, void *arg)
{
	int ret;

	do
		ret = ioctl(fd, request, arg);
	while (ret && (errno == EINTR || errno == EAGAIN));
	return ret ? -errno : 0;
}

int neuron_call_sized(int fd, unsigned long request, unsigned int size, void *arg)
{
	return neuron_call(fd, _IOC(_IOC_DIR(request), _IOC_TYPE(request), _IOC_NR(request), size),
			   arg);
}

static bool is_neuron(int fd)
{
	drmVersionPtr version = drmGetVersion(fd);
	bool yes = version && !strcmp(version->name, "neuron");

	drmFreeVersion(version);
	return yes;
}

/* The first neuron device from a minor on that is not this one; -1 if there is none. */
static int open_but(int first, dev_t not_this)
{
	struct stat st;
	char path[64];
	int fd;

	for (int i = first; i < 64; i++) {
		snprintf(path, sizeof(path), "/dev/accel/accel%d", i);
		fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd >= 0 && !fstat(fd, &st) && st.st_rdev != not_this && is_neuron(fd))
			return fd;
		if (fd >= 0)
			close(fd);
	}
	return -1;
}

int dev_open(void)
{
	const char *first = getenv("NEURON_TEST_DEVICE");
	int fd = open_but(first ? atoi(first) : 0, 0);

	if (fd < 0)
		fail_msg("no neuron device in /dev/accel: is the module loaded?");
	return fd;
}

int dev_open_other(int fd)
{
	struct stat st;

	int other;

	assert_ok(fstat(fd, &st));
	other = open_but((int)minor(st.st_rdev), st.st_rdev);
	return other < 0 ? open_but(0, st.st_rdev) : other;
}

uint32_t dev_arch(void)
{
	static uint32_t arch;
	int fd;

	if (!arch) {
		fd = dev_open();
		arch = dev_info(fd).arch;
		dev_close(fd);
	}
	return arch;
}

void dev_close(int fd)
{
	assert_ok(close(fd));
}

struct fixture {
	int fd; /* first: FD reads it */
	uint64_t hbm_used;
};

int dev_setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	if (!f)
		return -1;
	f->fd = dev_open();
	f->hbm_used = dev_memory(f->fd).hbm_used;
	*state = f;
	return 0;
}

int dev_teardown(void **state)
{
	struct fixture *f = *state;
	int fd;

	dev_close(f->fd);
	fd = dev_open();
	dev_wait_hbm(fd, f->hbm_used);
	dev_close(fd);
	free(f);
	return 0;
}

void dev_allow_hangs(bool allow)
{
	dev_debugfs_write("stall_detect", allow ? "0" : "1");
	dev_param_write("timeout_ms", allow ? "1000" : "10000");
}

int dev_hang_setup(void **state)
{
	int ret = dev_setup(state);

	dev_allow_hangs(true);
	return ret;
}

int dev_hang_teardown(void **state)
{
	dev_allow_hangs(false);
	return dev_teardown(state);
}

static void query_at(int fd, uint32_t block, uint32_t index, void *out, uint32_t size)
{
	struct drm_neuron_query args = {
		.block = block, .size = size, .ptr = (uintptr_t)out, .index = index
	};

	assert_ok(neuron_call(fd, DRM_IOCTL_NEURON_QUERY, &args));
	assert_int_equal(args.size, size);
}

static void query(int fd, uint32_t block, void *out, uint32_t size)
{
	query_at(fd, block, 0, out, size);
}

struct drm_neuron_query_device dev_info(int fd)
{
	struct drm_neuron_query_device device;

	query(fd, DRM_NEURON_QUERY_DEVICE, &device, sizeof(device));
	return device;
}

struct drm_neuron_query_memory dev_memory(int fd)
{
	struct drm_neuron_query_memory memory;

	query(fd, DRM_NEURON_QUERY_MEMORY, &memory, sizeof(memory));
	return memory;
}

struct drm_neuron_query_core dev_core(int fd, uint32_t core)
{
	struct drm_neuron_query_core block;

	query_at(fd, DRM_NEURON_QUERY_CORE, core, &block, sizeof(block));
	return block;
}

void dev_fdinfo(int fd, const char *key, char *value, int size)
{
	const size_t length = strlen(key);
	char path[64], line[256];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	file = fopen(path, "r");
	assert_non_null(file);
	value[0] = 0;
	while (!value[0] && fgets(line, sizeof(line), file))
		if (!strncmp(line, key, length) && line[length] == ':')
			snprintf(value, (size_t)size, "%s",
				 line + length + 1 + strspn(line + length + 1, " \t"));
	fclose(file);
	if (!value[0])
		fail_msg("no %s in fdinfo", key);
}

void dev_wait_hbm(int fd, uint64_t used)
{
	for (int i = 0; i < 1000 && dev_memory(fd).hbm_used != used; i++)
		usleep(10000);
	assert_int_equal(dev_memory(fd).hbm_used, used);
}

void file_write(const char *path, const char *value)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		fail_msg("%s: %s", path, strerror(errno));
	if (write(fd, value, strlen(value)) != (ssize_t)strlen(value))
		fail_msg("%s: %s", path, strerror(errno));
	close(fd);
}

char *file_read_glob(const char *pattern, char path[256])
{
	static char text[128 * 1024];
	ssize_t n = 0, got;
	glob_t found;
	int fd = -1;

	for (int i = 0; i < 500 && fd < 0; i++) {
		if (!glob(pattern, 0, NULL, &found)) {
			snprintf(path, 256, "%s", found.gl_pathv[0]);
			fd = open(path, O_RDONLY | O_CLOEXEC);
		}
		globfree(&found);
		if (fd < 0)
			usleep(10000);
	}
	if (fd < 0)
		return NULL;
	while ((got = read(fd, text + n, sizeof(text) - 1 - (size_t)n)) > 0)
		n += got;
	close(fd);
	text[n] = 0;
	return got < 0 ? NULL : text;
}

long long file_number(const char *pattern)
{
	char path[256], *text = file_read_glob(pattern, path);

	if (!text)
		fail_msg("%s can't be read: %s", pattern, strerror(errno));
	return strtoll(text, NULL, 10);
}

const char *dev_pci_address(void)
{
	static char address[32];
	char path[64], target[256];
	int fd = dev_open();
	struct stat st;
	ssize_t n;

	assert_ok(fstat(fd, &st));
	close(fd);
	snprintf(path, sizeof(path), "/sys/dev/char/%u:%u/device", major(st.st_rdev),
		 minor(st.st_rdev));
	n = readlink(path, target, sizeof(target) - 1);
	if (n < 0)
		fail_msg("%s: %s", path, strerror(errno));
	target[n] = 0;
	snprintf(address, sizeof(address), "%.31s", strrchr(target, '/') + 1);
	return address;
}

void dev_debugfs_write(const char *name, const char *value)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/kernel/debug/accel/%s/%s", dev_pci_address(), name);
	file_write(path, value);
}

void dev_param_write(const char *name, const char *value)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/module/neuron/parameters/%s", name);
	file_write(path, value);
}

int dev_driver_write(const char *name, const char *address)
{
	char path[64];
	int fd, ret = 0;

	snprintf(path, sizeof(path), "/sys/bus/pci/drivers/neuron/%s", name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		fail_msg("%s: %s", path, strerror(errno));
	if (write(fd, address, strlen(address)) < 0)
		ret = -errno;
	close(fd);
	return ret;
}

/* --- bytes ----------------------------------------------------------------- */

/* Eight of them: buffers of hundreds of MiB are filled where no virtualisation helps. */
static uint64_t bytes_word(uint64_t i, uint32_t seed)
{
	uint64_t w = (i + seed * 0xd1b54a32d192ed03u) * 0x9e3779b97f4a7c15u;

	return w ^ w >> 32;
}

uint8_t bytes_pattern(uint64_t i, uint32_t seed)
{
	return (uint8_t)(bytes_word(i / 8, seed) >> 8 * (i % 8));
}

void bytes_fill(void *ptr, uint64_t n, uint32_t seed)
{
	uint8_t *p = ptr;

	for (uint64_t i = 0; i < n; i += 8) {
		uint64_t w = bytes_word(i / 8, seed);

		memcpy(p + i, &w, n - i < 8 ? n - i : 8);
	}
}

void bytes_assert_from(const void *ptr, uint64_t at, uint64_t n, uint32_t seed)
{
	const uint8_t *p = ptr;

	for (uint64_t i = at; i < n; i++) {
		uint64_t w = bytes_word(i / 8, seed);

		if (i % 8 == 0 && n - i >= 8 && !memcmp(p + i, &w, 8)) {
			i += 7;
			continue;
		}
		if (p[i] != bytes_pattern(i, seed))
			fail_msg("seed %u: byte %llu is 0x%x, not 0x%x", seed,
				 (unsigned long long)i, p[i], bytes_pattern(i, seed));
	}
}

void bytes_assert(const void *ptr, uint64_t n, uint32_t seed)
{
	bytes_assert_from(ptr, 0, n, seed);
}

void bytes_assert_all(const void *ptr, uint64_t n, uint8_t value)
{
	const uint8_t *p = ptr;

	if (!n || (p[0] == value && !memcmp(p, p + 1, n - 1)))
		return;
	for (uint64_t i = 0; i < n; i++)
		if (p[i] != value)
			fail_msg("byte %llu is 0x%x, not 0x%x", (unsigned long long)i, p[i], value);
}

/* --- buffers -------------------------------------------------------------- */

int bo_try(int fd, uint64_t size, uint32_t flags, uint32_t *handle)
{
	struct drm_neuron_bo_create args = { .size = size, .flags = flags };
	int ret = neuron_call(fd, DRM_IOCTL_NEURON_BO_CREATE, &args);

	*handle = args.handle;
	return ret;
}

uint32_t bo_new(int fd, uint64_t size, uint32_t flags)
{
	uint32_t handle;

	assert_ok(bo_try(fd, size, flags, &handle));
	assert_int_not_equal(handle, 0);
	return handle;
}

void bo_close(int fd, uint32_t handle)
{
	assert_ok(drmCloseBufferHandle(fd, handle));
}

struct drm_neuron_bo_info bo_info(int fd, uint32_t handle)
{
	struct drm_neuron_bo_info args = { .handle = handle };

	assert_ok(neuron_call(fd, DRM_IOCTL_NEURON_BO_INFO, &args));
	return args;
}

void *bo_map(int fd, uint32_t handle)
{
	struct drm_neuron_bo_info info = bo_info(fd, handle);
	void *ptr;

	assert_int_not_equal(info.mmap_offset, 0);
	ptr = mmap(NULL, info.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		   (off_t)info.mmap_offset);
	assert_ptr_not_equal(ptr, MAP_FAILED);
	return ptr;
}

void bo_unmap(int fd, uint32_t handle, void *ptr)
{
	assert_ok(munmap(ptr, bo_info(fd, handle).size));
}

/* --- fences --------------------------------------------------------------- */

uint32_t sync_new(int fd)
{
	uint32_t handle;

	assert_ok(drmSyncobjCreate(fd, 0, &handle));
	return handle;
}

void sync_close(int fd, uint32_t handle)
{
	assert_ok(drmSyncobjDestroy(fd, handle));
}

int sync_wait(int fd, uint32_t handle, uint64_t point, int timeout_ms)
{
	struct timespec now;
	int64_t end;

	clock_gettime(CLOCK_MONOTONIC, &now);
	end = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec + (int64_t)timeout_ms * 1000000;
	return drmSyncobjTimelineWait(fd, &handle, &point, 1, end, 0, NULL);
}

int sync_status(int fd, uint32_t handle)
{
	struct sync_file_info info = { 0 };
	int file;

	assert_ok(drmSyncobjExportSyncFile(fd, handle, &file));
	assert_ok(ioctl(file, SYNC_IOC_FILE_INFO, &info));
	close(file);
	return info.status;
}

int copy_start(int fd, uint32_t dst, uint64_t dst_offset, uint32_t src, uint64_t src_offset,
	       uint64_t size, uint32_t out)
{
	struct drm_neuron_sync sync = { .handle = out };
	struct drm_neuron_copy args = {
		.src = src,
		.dst = dst,
		.src_offset = src_offset,
		.dst_offset = dst_offset,
		.size = size,
		.out = ARRAY(&sync, out ? 1 : 0),
	};

	return neuron_call(fd, DRM_IOCTL_NEURON_COPY, &args);
}

void copy_now(int fd, uint32_t dst, uint64_t dst_offset, uint32_t src, uint64_t src_offset,
	      uint64_t size)
{
	uint32_t sync = sync_new(fd);

	assert_ok(copy_start(fd, dst, dst_offset, src, src_offset, size, sync));
	assert_ok(sync_wait(fd, sync, 0, 60000));
	assert_int_equal(sync_status(fd, sync), 1);
	sync_close(fd, sync);
}

/* --- contexts ------------------------------------------------------------- */

uint32_t ctx_new(int fd, uint32_t core)
{
	struct drm_neuron_ctx_create args = { .core = core };

	assert_ok(neuron_call(fd, DRM_IOCTL_NEURON_CTX_CREATE, &args));
	assert_int_not_equal(args.ctx, 0);
	return args.ctx;
}

void ctx_close(int fd, uint32_t ctx)
{
	struct drm_neuron_ctx_destroy args = { .ctx = ctx };

	assert_ok(neuron_call(fd, DRM_IOCTL_NEURON_CTX_DESTROY, &args));
}

struct drm_neuron_ctx_state ctx_state(int fd, uint32_t ctx)
{
	struct drm_neuron_ctx_state args = { .ctx = ctx };

	assert_ok(neuron_call(fd, DRM_IOCTL_NEURON_CTX_STATE, &args));
	return args;
}

int launch(int fd, uint32_t ctx, uint32_t program, const uint32_t *bo, unsigned int n, uint32_t out)
{
	struct drm_neuron_sync sync = { .handle = out };
	struct drm_neuron_slot slot[PROG_SLOTS] = { 0 };
	struct drm_neuron_submit args = {
		.ctx = ctx,
		.program = program,
		.slots = ARRAY(slot, n),
		.out = ARRAY(&sync, out ? 1 : 0),
	};

	for (unsigned int i = 0; i < n; i++) {
		slot[i].handle = bo[i];
		slot[i].size = bo_info(fd, bo[i]).size;
	}
	return neuron_call(fd, DRM_IOCTL_NEURON_SUBMIT, &args);
}

int launch_now(int fd, uint32_t ctx, uint32_t program, const uint32_t *bo, unsigned int n)
{
	uint32_t sync = sync_new(fd);
	int status;

	assert_ok(launch(fd, ctx, program, bo, n, sync));
	assert_ok(sync_wait(fd, sync, 0, 60000));
	status = sync_status(fd, sync);
	sync_close(fd, sync);
	return status;
}
