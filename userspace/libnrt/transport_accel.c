// SPDX-License-Identifier: Apache-2.0
/* The accel node of the kernel driver: every ioctl of the runtime is here. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/sync_file.h>
#include <xf86drm.h>

#include "drm/neuron_accel.h"
#include "log.h"
#include "transport.h"

#define CLASS_DIR   "/sys/class/accel"
#define DEVICES_MAX 64

/* The same structures on both sides are passed on as they are. */
#define SAME(ours, theirs, member)                                                         \
	_Static_assert(offsetof(struct ours, member) == offsetof(struct theirs, member) && \
			       sizeof(((struct ours *)0)->member) ==                       \
				       sizeof(((struct theirs *)0)->member),               \
		       #ours " and " #theirs " differ")

SAME(nrti_slot, drm_neuron_slot, handle);
SAME(nrti_slot, drm_neuron_slot, flags);
SAME(nrti_slot, drm_neuron_slot, offset);
SAME(nrti_slot, drm_neuron_slot, size);
SAME(nrti_fence, drm_neuron_sync, handle);
SAME(nrti_fence, drm_neuron_sync, flags);
SAME(nrti_fence, drm_neuron_sync, point);
_Static_assert(NRTI_SLOT_INLINE == DRM_NEURON_SLOT_INLINE, "flags differ");
_Static_assert(NRTI_BO_HBM == DRM_NEURON_BO_HBM && NRTI_BO_HOST == DRM_NEURON_BO_HOST &&
		       NRTI_BO_MMAP == DRM_NEURON_BO_MMAP,
	       "flags differ");
_Static_assert(NRTI_CTX_OK == DRM_NEURON_CTX_OK && NRTI_CTX_FAULTED == DRM_NEURON_CTX_FAULTED &&
		       NRTI_CTX_TIMEDOUT == DRM_NEURON_CTX_TIMEDOUT &&
		       NRTI_CTX_INNOCENT == DRM_NEURON_CTX_INNOCENT,
	       "states differ");

/* The device is its file descriptor. */
static int fd_of(void *dev)
{
	return (int)(intptr_t)dev - 1;
}

static int call(void *dev, unsigned long request, void *arg)
{
	return drmIoctl(fd_of(dev), request, arg) ? -errno : 0;
}

/* --- discovery ----------------------------------------------------------------------- */

static bool is_neuron(int fd)
{
	drmVersionPtr version = drmGetVersion(fd);
	bool yes;

	if (!version)
		return false;
	yes = version->name_len == 6 && !memcmp(version->name, "neuron", 6);
	drmFreeVersion(version);
	return yes;
}

static int open_minor(unsigned int minor)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/dev/accel/accel%u", minor);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0) {
		nrti_log(NRTI_LOG_WARN, "%s can not be opened: %s%s", path, strerror(errno),
			 errno == EACCES ? " (is this user in the group 'render'?)" : "");
		return -1;
	}
	if (is_neuron(fd))
		return fd;
	close(fd);
	return -1;
}

static int by_number(const void *a, const void *b)
{
	const unsigned int x = *(const unsigned int *)a, y = *(const unsigned int *)b;

	return (x > y) - (x < y);
}

static unsigned int list_minors(unsigned int *minors)
{
	DIR *dir = opendir(CLASS_DIR);
	struct dirent *entry;
	unsigned int n = 0;

	if (!dir)
		return 0;
	while (n < DEVICES_MAX && (entry = readdir(dir))) {
		if (sscanf(entry->d_name, "accel%u", &minors[n]) == 1)
			n++;
	}
	closedir(dir);
	qsort(minors, n, sizeof(*minors), by_number);
	return n;
}

/* The index-th device of ours, or -1; *count is how many were seen on the way. */
static int find(unsigned int index, unsigned int *count)
{
	unsigned int minors[DEVICES_MAX];
	unsigned int n = list_minors(minors);

	*count = 0;
	for (unsigned int i = 0; i < n; i++) {
		int fd = open_minor(minors[i]);

		if (fd < 0)
			continue;
		if ((*count)++ == index)
			return fd;
		close(fd);
	}
	return -1;
}

static unsigned int accel_count(const struct nrti_config *config)
{
	unsigned int count;

	(void)config;
	find(DEVICES_MAX, &count);
	return count;
}

static int accel_open(const struct nrti_config *config, unsigned int index, void **dev)
{
	unsigned int count;
	int fd = find(index, &count);

	(void)config;
	if (fd < 0)
		return -ENODEV;
	*dev = (void *)(intptr_t)(fd + 1);
	return 0;
}

static void accel_close(void *dev)
{
	close(fd_of(dev));
}

/* --- queries --------------------------------------------------------------------------- */

static int query(void *dev, uint32_t block, void *data, uint32_t size)
{
	struct drm_neuron_query q = {
		.block = block,
		.size = size,
		.ptr = (uintptr_t)data,
	};

	memset(data, 0, size);
	return call(dev, DRM_IOCTL_NEURON_QUERY, &q);
}

static int accel_facts(void *dev, struct nrti_facts *facts)
{
	struct drm_neuron_query_topology place;
	struct drm_neuron_query_device q;
	int ret = query(dev, DRM_NEURON_QUERY_DEVICE, &q, sizeof(q));

	if (ret)
		return ret;
	/* Older drivers do not say, or know no such block. */
	if (query(dev, DRM_NEURON_QUERY_TOPOLOGY, &place, sizeof(place)) || !place.cores_joined)
		place.cores_joined = 1;
	*facts = (struct nrti_facts){
		.arch = q.arch,
		.cores = q.cores,
		.cores_joined = place.cores_joined,
		.exec_version = q.exec_version,
		.pci_device = q.pci_device,
		.pci_revision = q.pci_revision,
		.sbuf_bytes = q.sbuf_bytes,
		.psum_bytes = q.psum_bytes,
		.slots_max = q.slots_max,
		.inflight_max = q.inflight_max,
		.serial = q.serial,
	};
	return 0;
}

static int accel_memory(void *dev, struct nrti_memory *memory)
{
	struct drm_neuron_query_memory q;
	int ret = query(dev, DRM_NEURON_QUERY_MEMORY, &q, sizeof(q));

	if (ret)
		return ret;
	*memory = (struct nrti_memory){
		.hbm_bytes = q.hbm_bytes,
		.hbm_used = q.hbm_used,
		.granule = q.granule,
	};
	return 0;
}

/* --- buffers ----------------------------------------------------------------------------- */

static int accel_bo_create(void *dev, uint64_t *size, uint32_t flags, uint32_t *handle)
{
	struct drm_neuron_bo_create arg = { .size = *size, .flags = flags };
	int ret = call(dev, DRM_IOCTL_NEURON_BO_CREATE, &arg);

	if (ret)
		return ret;
	*size = arg.size;
	*handle = arg.handle;
	return 0;
}

static int accel_bo_map(void *dev, uint32_t handle, uint64_t size, void **ptr)
{
	struct drm_neuron_bo_info info = { .handle = handle };
	int ret = call(dev, DRM_IOCTL_NEURON_BO_INFO, &info);

	if (ret)
		return ret;
	if (!info.mmap_offset)
		return -EACCES;
	*ptr = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd_of(dev),
		    (off_t)info.mmap_offset);
	return *ptr == MAP_FAILED ? -errno : 0;
}

static void accel_bo_unmap(void *dev, void *ptr, uint64_t size)
{
	(void)dev;
	munmap(ptr, size);
}

static void accel_bo_close(void *dev, uint32_t handle)
{
	struct drm_gem_close arg = { .handle = handle };

	call(dev, DRM_IOCTL_GEM_CLOSE, &arg);
}

/* --- contexts and programs ----------------------------------------------------------------- */

static int accel_bo_import(void *dev, void *owner, uint32_t owner_handle, uint32_t *handle)
{
	int fd, ret;

	if (drmPrimeHandleToFD(fd_of(owner), owner_handle, DRM_CLOEXEC | DRM_RDWR, &fd))
		return -errno;
	ret = drmPrimeFDToHandle(fd_of(dev), fd, handle) ? -errno : 0;
	close(fd);
	/* No DMA from here to there, as the driver says. */
	return ret == -EOPNOTSUPP || ret == -ENOSYS ? -EXDEV : ret;
}

static int accel_ctx_create(void *dev, uint64_t cores, uint32_t priority, uint32_t *ctx,
			    uint32_t *core)
{
	struct drm_neuron_ctx_create arg = { .priority = priority, .cores = cores };
	int ret;

	/* One alone is what older drivers take too. */
	if (cores && !(cores & (cores - 1))) {
		arg.core = (uint32_t)__builtin_ctzll(cores);
		arg.cores = 0;
	}
	ret = call(dev, DRM_IOCTL_NEURON_CTX_CREATE, &arg);
	*ctx = arg.ctx;
	*core = arg.core;
	return ret;
}

static void accel_ctx_destroy(void *dev, uint32_t ctx)
{
	struct drm_neuron_ctx_destroy arg = { .ctx = ctx };

	call(dev, DRM_IOCTL_NEURON_CTX_DESTROY, &arg);
}

static int accel_ctx_state(void *dev, uint32_t ctx, struct nrti_ctx_state *state)
{
	struct drm_neuron_ctx_state s = { .ctx = ctx };
	int ret = call(dev, DRM_IOCTL_NEURON_CTX_STATE, &s);

	if (ret)
		return ret;
	*state = (struct nrti_ctx_state){
		.state = s.state,
		.fault = s.fault,
		.engine = s.engine,
		.pc = s.pc,
		.opcode = s.opcode,
		.slot = s.slot,
		.program = s.program,
		.value = s.value,
		.limit = s.limit,
		.launches = s.launches,
		.device_ns = s.device_ns,
		.dma_bytes = s.dma_bytes,
	};
	for (int i = 0; i < 5; i++)
		state->insts[i] = s.insts[i];
	return 0;
}

static int accel_program_load(void *dev, const void *image, uint64_t size, uint32_t *program)
{
	struct drm_neuron_program_load arg = { .image = (uintptr_t)image, .size = size };
	int ret = call(dev, DRM_IOCTL_NEURON_PROGRAM_LOAD, &arg);

	*program = arg.program;
	return ret;
}

static void accel_program_unload(void *dev, uint32_t program)
{
	struct drm_neuron_program_unload arg = { .program = program };

	call(dev, DRM_IOCTL_NEURON_PROGRAM_UNLOAD, &arg);
}

/* --- work ------------------------------------------------------------------------------------ */

static struct drm_neuron_array fences(const struct nrti_fence *fence, uint32_t n)
{
	return (struct drm_neuron_array){
		.stride = sizeof(*fence),
		.count = n,
		.ptr = (uintptr_t)fence,
	};
}

static int accel_submit(void *dev, const struct nrti_submit *s)
{
	struct drm_neuron_submit arg = {
		.ctx = s->ctx,
		.program = s->program,
		.slots = {
			.stride = sizeof(struct nrti_slot),
			.count = s->n_slots,
			.ptr = (uintptr_t)s->slots,
		},
		.in = fences(s->in, s->n_in),
		.out = fences(&s->out, 1),
	};

	return call(dev, DRM_IOCTL_NEURON_SUBMIT, &arg);
}

static int accel_copy(void *dev, const struct nrti_copy *c)
{
	struct drm_neuron_copy arg = {
		.src = c->src,
		.dst = c->dst,
		.src_offset = c->src_offset,
		.dst_offset = c->dst_offset,
		.size = c->size,
		.in = fences(c->in, c->n_in),
		.out = fences(&c->out, 1),
	};

	return call(dev, DRM_IOCTL_NEURON_COPY, &arg);
}

/* --- timelines --------------------------------------------------------------------------------- */

static int accel_sync_create(void *dev, uint32_t *handle)
{
	struct drm_syncobj_create arg = { .flags = 0 };
	int ret = call(dev, DRM_IOCTL_SYNCOBJ_CREATE, &arg);

	*handle = arg.handle;
	return ret;
}

static void accel_sync_destroy(void *dev, uint32_t handle)
{
	struct drm_syncobj_destroy arg = { .handle = handle };

	call(dev, DRM_IOCTL_SYNCOBJ_DESTROY, &arg);
}

static int accel_sync_wait(void *dev, uint32_t handle, uint64_t point, int64_t deadline_ns)
{
	struct drm_syncobj_timeline_wait arg = {
		.handles = (uintptr_t)&handle,
		.points = (uintptr_t)&point,
		.timeout_nsec = deadline_ns,
		.count_handles = 1,
		.flags = DRM_SYNCOBJ_WAIT_FLAGS_WAIT_ALL | DRM_SYNCOBJ_WAIT_FLAGS_WAIT_FOR_SUBMIT,
	};

	return call(dev, DRM_IOCTL_SYNCOBJ_TIMELINE_WAIT, &arg);
}

static int accel_sync_query(void *dev, uint32_t handle, uint64_t *point)
{
	struct drm_syncobj_timeline_array arg = {
		.handles = (uintptr_t)&handle,
		.points = (uintptr_t)point,
		.count_handles = 1,
	};

	return call(dev, DRM_IOCTL_SYNCOBJ_QUERY, &arg);
}

/* The fence of a point as a sync file, which tells when it signalled. */
static int export_point(void *dev, uint32_t handle, uint64_t point, int *fd)
{
	struct drm_syncobj_transfer transfer = { .src_handle = handle, .src_point = point };
	struct drm_syncobj_handle export = {
		.flags = DRM_SYNCOBJ_HANDLE_TO_FD_FLAGS_EXPORT_SYNC_FILE
	};
	uint32_t binary;
	int ret = accel_sync_create(dev, &binary);

	if (ret)
		return ret;
	transfer.dst_handle = binary;
	export.handle = binary;
	export.fd = -1;
	ret = call(dev, DRM_IOCTL_SYNCOBJ_TRANSFER, &transfer);
	if (!ret)
		ret = call(dev, DRM_IOCTL_SYNCOBJ_HANDLE_TO_FD, &export);
	accel_sync_destroy(dev, binary);
	*fd = export.fd;
	return ret;
}

static int accel_sync_time(void *dev, uint32_t handle, uint64_t point, uint64_t *ns)
{
	struct sync_fence_info fence[16];
	struct sync_file_info info = {
		.num_fences = 16,
		.sync_fence_info = (uintptr_t)fence,
	};
	int fd, ret;

	*ns = 0;
	ret = export_point(dev, handle, point, &fd);
	if (ret)
		return ret;
	if (ioctl(fd, SYNC_IOC_FILE_INFO, &info))
		ret = -errno;
	close(fd);
	if (ret || info.status != 1)
		return ret;
	for (uint32_t i = 0; i < info.num_fences && i < 16; i++) {
		if (fence[i].timestamp_ns > *ns)
			*ns = fence[i].timestamp_ns;
	}
	return 0;
}

const struct nrti_transport nrti_transport_accel = {
	.name = "accel",
	.count = accel_count,
	.open = accel_open,
	.close = accel_close,
	.facts = accel_facts,
	.memory = accel_memory,
	.bo_create = accel_bo_create,
	.bo_map = accel_bo_map,
	.bo_unmap = accel_bo_unmap,
	.bo_close = accel_bo_close,
	.bo_import = accel_bo_import,
	.ctx_create = accel_ctx_create,
	.ctx_destroy = accel_ctx_destroy,
	.ctx_state = accel_ctx_state,
	.program_load = accel_program_load,
	.program_unload = accel_program_unload,
	.submit = accel_submit,
	.copy = accel_copy,
	.sync_create = accel_sync_create,
	.sync_destroy = accel_sync_destroy,
	.sync_wait = accel_sync_wait,
	.sync_query = accel_sync_query,
	.sync_time = accel_sync_time,
};
