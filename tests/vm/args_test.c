// SPDX-License-Identifier: Apache-2.0
/* Bad arguments: each gets the errno that uapi/drm/neuron_accel.h promises, and nothing happens. */
#include "dev.h"
#include "groups.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- structures of other sizes -------------------------------------------- */

struct sized {
	const char *name;
	unsigned long request;
	unsigned int size;
	int exact; /* result of all zeroes but for the first words */
	uint32_t first[4];
};

#define SIZED(id, type, exact, ...)                                     \
	{                                                               \
		#id, DRM_IOCTL_NEURON_##id, sizeof(struct type), exact, \
		{                                                       \
			__VA_ARGS__                                     \
		}                                                       \
	}

/* Arguments that do nothing: the result shows that the call got as far as its own checks. */
static const struct sized sized[] = {
	SIZED(QUERY, drm_neuron_query, 0, DRM_NEURON_QUERY_MEMORY, 0),
	SIZED(BO_CREATE, drm_neuron_bo_create, -EINVAL, 4096, 0, 0),
	SIZED(BO_INFO, drm_neuron_bo_info, -ENOENT, 999),
	SIZED(CTX_CREATE, drm_neuron_ctx_create, -EINVAL, 999),
	SIZED(CTX_DESTROY, drm_neuron_ctx_destroy, -ENOENT, 999),
	SIZED(CTX_STATE, drm_neuron_ctx_state, -ENOENT, 999),
	SIZED(PROGRAM_LOAD, drm_neuron_program_load, -ENOEXEC, 0),
	SIZED(PROGRAM_UNLOAD, drm_neuron_program_unload, -ENOENT, 999),
	SIZED(SUBMIT, drm_neuron_submit, -ENOENT, 999),
	SIZED(COPY, drm_neuron_copy, -EINVAL, 999),
	SIZED(SUBMIT_BATCH, drm_neuron_submit_batch, -EINVAL, 999),
	SIZED(BO_PIN, drm_neuron_bo_pin, -EINVAL, 1),
	SIZED(STREAM_OPEN, drm_neuron_stream_open, -ENOENT, 999),
};

static void structures_may_be_shorter_or_longer(void **state)
{
	for (size_t i = 0; i < sizeof(sized) / sizeof(sized[0]); i++) {
		const struct sized *s = &sized[i];
		uint8_t buf[256] = { 0 };

		memcpy(buf, s->first, sizeof(s->first));
		if (neuron_call(FD, s->request, buf) != s->exact)
			fail_msg("%s: exact size", s->name);

		memset(buf, 0, sizeof(buf));
		memcpy(buf, s->first, sizeof(s->first));
		memset(buf + s->size, 0, sizeof(buf) - s->size);
		if (neuron_call_sized(FD, s->request, s->size + 64, buf) != s->exact)
			fail_msg("%s: longer, with zeroes", s->name);

		buf[s->size + 63] = 1;
		if (neuron_call_sized(FD, s->request, s->size + 64, buf) != -E2BIG)
			fail_msg("%s: longer, with something at the end", s->name);
		buf[s->size + 63] = 0;
		buf[s->size] = 1;
		if (neuron_call_sized(FD, s->request, s->size + 8, buf) != -E2BIG)
			fail_msg("%s: longer, with something at once", s->name);

		/* What is missing is zero: the same again without the last 8 bytes. */
		memset(buf, 0xff, sizeof(buf));
		memcpy(buf, s->first, sizeof(s->first));
		memset(buf + sizeof(s->first), 0, s->size > 24 ? s->size - 24 : 0);
		if (s->size > 24 && neuron_call_sized(FD, s->request, s->size - 8, buf) != s->exact)
			fail_msg("%s: shorter", s->name);

		if (neuron_call(FD, s->request, (void *)8) != -EFAULT)
			fail_msg("%s: bad pointer", s->name);
	}
}

static void unknown_ioctl_is_refused(void **state)
{
	uint64_t arg[8] = { 0 };

	assert_errno(neuron_call(FD, DRM_IOWR(DRM_COMMAND_END - 1, struct drm_neuron_copy), arg),
		     EINVAL);
}

/* --- query ---------------------------------------------------------------- */

/* Ioctls of a display's master would follow pointers that a file of an accel node does not have. */
static void ioctls_for_a_master_are_refused(void **state)
{
	struct drm_unique unique = { 0 };

	assert_errno(neuron_call(FD, DRM_IOCTL_GET_UNIQUE, &unique), EACCES);
	assert_errno(neuron_call(FD, DRM_IOCTL_SET_MASTER, NULL), EACCES);
	assert_errno(neuron_call(FD, DRM_IOCTL_DROP_MASTER, NULL), EACCES);
}

static void query_negotiates_its_size(void **state)
{
	uint8_t buf[256];
	struct drm_neuron_query args = { .block = DRM_NEURON_QUERY_DEVICE };
	struct drm_neuron_query_device *device = (struct drm_neuron_query_device *)buf;

	assert_ok(neuron_call(FD, DRM_IOCTL_NEURON_QUERY, &args));
	assert_int_equal(args.size, sizeof(*device));

	memset(buf, 0xee, sizeof(buf));
	args.ptr = (uintptr_t)buf;
	args.size = 8;
	assert_ok(neuron_call(FD, DRM_IOCTL_NEURON_QUERY, &args));
	assert_int_equal(args.size, sizeof(*device));
	assert_int_equal(device->arch, 3);
	assert_int_in_range(device->cores, 1, 8);
	assert_int_equal(buf[8], 0xee);

	args.size = 200;
	assert_ok(neuron_call(FD, DRM_IOCTL_NEURON_QUERY, &args));
	assert_int_equal(args.size, sizeof(*device));
	assert_int_equal(device->pci_device, 0x7364);
	assert_int_equal(device->pci_revision, 255);
	for (size_t i = sizeof(*device); i < 200; i++)
		assert_int_equal(buf[i], 0);
	assert_int_equal(buf[200], 0xee);

	args.size = 48;
	args.ptr = 8;
	assert_errno(neuron_call(FD, DRM_IOCTL_NEURON_QUERY, &args), EFAULT);
	args.block = UINT32_MAX;
	assert_errno(neuron_call(FD, DRM_IOCTL_NEURON_QUERY, &args), EINVAL);
}

/* Blocks of all numbers have a size; only that of a core takes an index. */
static void query_takes_an_index_for_cores_only(void **state)
{
	uint32_t cores = dev_info(FD).cores;
	struct drm_neuron_query args = { 0 };

	for (uint32_t block = 0; block <= DRM_NEURON_QUERY_USAGE; block++) {
		args = (struct drm_neuron_query){ .block = block };
		assert_ok(neuron_call(FD, DRM_IOCTL_NEURON_QUERY, &args));
		assert_true(args.size && args.size % 8 == 0);
		args.pad = 1;
		assert_errno(neuron_call(FD, DRM_IOCTL_NEURON_QUERY, &args), EINVAL);
		args = (struct drm_neuron_query){ .block = block, .index = cores - 1 };
		assert_int_equal(neuron_call(FD, DRM_IOCTL_NEURON_QUERY, &args),
				 block == DRM_NEURON_QUERY_CORE ? 0 : -EINVAL);
	}
	args = (struct drm_neuron_query){ .block = DRM_NEURON_QUERY_CORE, .index = cores };
	assert_errno(neuron_call(FD, DRM_IOCTL_NEURON_QUERY, &args), EINVAL);
	args.index = UINT32_MAX;
	assert_errno(neuron_call(FD, DRM_IOCTL_NEURON_QUERY, &args), EINVAL);

	/* The structure of the first version ends before the index. */
	memset(&args, 0xff, sizeof(args));
	args.block = DRM_NEURON_QUERY_DEVICE;
	args.size = 0;
	assert_ok(neuron_call_sized(FD, DRM_IOCTL_NEURON_QUERY, 16, &args));
	assert_int_equal(args.size, sizeof(struct drm_neuron_query_device));
	assert_int_equal(args.index, UINT32_MAX);
}

/* --- buffers -------------------------------------------------------------- */

static void bo_create_checks_its_arguments(void **state)
{
	uint64_t hbm = dev_memory(FD).hbm_bytes;
	uint32_t handle;

	assert_errno(bo_try(FD, 0, BO_HBM, &handle), EINVAL);
	assert_errno(bo_try(FD, 4096, 0, &handle), EINVAL);
	assert_errno(bo_try(FD, 4096, BO_MMAP, &handle), EINVAL);
	assert_errno(bo_try(FD, 4096, BO_HBM | BO_HOST, &handle), EINVAL);
	assert_errno(bo_try(FD, 4096, BO_HOST | DRM_NEURON_BO_USER, &handle), EINVAL);
	assert_errno(bo_try(FD, 4096, BO_HBM | 32, &handle), EINVAL);
	assert_errno(bo_try(FD, 4096, BO_HOST | DRM_NEURON_BO_OVERCOMMIT, &handle), EINVAL);
	assert_errno(bo_try(FD, 4096, BO_HBM | 1u << 31, &handle), EINVAL);
	assert_errno(bo_try(FD, hbm, BO_HBM, &handle), ENOSPC);
	assert_errno(bo_try(FD, 1ull << 40, BO_HBM, &handle), ENOSPC);
	assert_errno(bo_try(FD, UINT64_MAX, BO_HBM, &handle), ENOSPC);
	assert_errno(bo_try(FD, UINT64_MAX - 4095, BO_HBM, &handle), ENOSPC);
	assert_errno(bo_try(FD, 1ull << 63, BO_HOST, &handle), ENOMEM);
	assert_errno(bo_try(FD, 1ull << 45, BO_HOST, &handle), ENOMEM);
	assert_errno(bo_try(FD, UINT64_MAX, BO_HOST, &handle), ENOMEM);
	assert_int_equal(dev_memory(FD).hbm_own, 0);
	assert_int_equal(dev_memory(FD).host_own, 0);
}

static void bo_rounds_up_and_counts(void **state)
{
	uint64_t granule = dev_memory(FD).granule;
	struct drm_neuron_bo_create args = { .size = 1, .flags = BO_HBM };
	struct drm_neuron_bo_info info = { .handle = 12345 };
	uint32_t host;

	assert_ok(neuron_call(FD, DRM_IOCTL_NEURON_BO_CREATE, &args));
	assert_int_equal(args.size, granule);
	assert_int_equal(dev_memory(FD).hbm_own, granule);
	assert_int_equal(bo_info(FD, args.handle).size, granule);
	assert_int_equal(bo_info(FD, args.handle).flags, BO_HBM);
	assert_int_equal(bo_info(FD, args.handle).mmap_offset, 0);
	host = bo_new(FD, granule + 1, BO_HOST | BO_MMAP);
	assert_int_equal(dev_memory(FD).host_own, 2 * granule);
	assert_errno(neuron_call(FD, DRM_IOCTL_NEURON_BO_INFO, &info), ENOENT);
	info.handle = 0;
	assert_errno(neuron_call(FD, DRM_IOCTL_NEURON_BO_INFO, &info), ENOENT);
	bo_close(FD, args.handle);
	bo_close(FD, host);
	info.handle = host;
	assert_errno(neuron_call(FD, DRM_IOCTL_NEURON_BO_INFO, &info), ENOENT);
	dev_wait_hbm(FD, 0);
	assert_int_equal(dev_memory(FD).host_own, 0);
}

static void mmap_checks_its_arguments(void **state)
{
	uint32_t plain = bo_new(FD, 65536, BO_HBM);
	uint32_t hbm = bo_new(FD, 65536, BO_HBM | BO_MMAP);
	uint32_t host = bo_new(FD, 65536, BO_HOST | BO_MMAP);
	const int rw = PROT_READ | PROT_WRITE;
	int other;

	assert_int_equal(bo_info(FD, plain).mmap_offset, 0);
	for (int i = 0; i < 2; i++) {
		off_t at = (off_t)bo_info(FD, i ? hbm : host).mmap_offset;

		assert_ptr_equal(mmap(NULL, 65536, rw, MAP_PRIVATE, FD, at), MAP_FAILED);
		assert_int_equal(errno, EINVAL);
		assert_ptr_equal(mmap(NULL, 65536 + 4096, rw, MAP_SHARED, FD, at), MAP_FAILED);
		assert_int_equal(errno, EINVAL);
		assert_ptr_equal(mmap(NULL, 4096, rw, MAP_SHARED, FD, at + 4096), MAP_FAILED);
		assert_int_equal(errno, EINVAL);
	}
	/* Another file has not got the buffer. */
	other = dev_open();
	assert_ptr_equal(mmap(NULL, 65536, rw, MAP_SHARED, other,
			      (off_t)bo_info(FD, hbm).mmap_offset),
			 MAP_FAILED);
	assert_int_equal(errno, EACCES);
	dev_close(other);
}

/* --- contexts ------------------------------------------------------------- */

static void ctx_create_checks_its_arguments(void **state)
{
	struct drm_neuron_ctx_create args = { .core = dev_info(FD).cores };

	assert_errno(neuron_call(FD, DRM_IOCTL_NEURON_CTX_CREATE, &args), EINVAL);
	args = (struct drm_neuron_ctx_create){ .core = UINT32_MAX };
	assert_errno(neuron_call(FD, DRM_IOCTL_NEURON_CTX_CREATE, &args), EINVAL);
	args = (struct drm_neuron_ctx_create){ .priority = 3 };
	assert_errno(neuron_call(FD, DRM_IOCTL_NEURON_CTX_CREATE, &args), EINVAL);
	args = (struct drm_neuron_ctx_create){ .flags = 1 };
	assert_errno(neuron_call(FD, DRM_IOCTL_NEURON_CTX_CREATE, &args), EINVAL);
}

static void ctx_ids_are_checked(void **state)
{
	struct drm_neuron_ctx_destroy destroy = { .ctx = ctx_new(FD, 0), .pad = 1 };
	struct drm_neuron_ctx_state get = { 0 };
	int other = dev_open();

	assert_errno(neuron_call(FD, DRM_IOCTL_NEURON_CTX_DESTROY, &destroy), EINVAL);
	destroy.pad = 0;
	assert_errno(neuron_call(other, DRM_IOCTL_NEURON_CTX_DESTROY, &destroy), ENOENT);
	assert_ok(neuron_call(FD, DRM_IOCTL_NEURON_CTX_DESTROY, &destroy));
	assert_errno(neuron_call(FD, DRM_IOCTL_NEURON_CTX_DESTROY, &destroy), ENOENT);
	get.ctx = destroy.ctx;
	assert_errno(neuron_call(FD, DRM_IOCTL_NEURON_CTX_STATE, &get), ENOENT);
	get.ctx = 0;
	assert_errno(neuron_call(FD, DRM_IOCTL_NEURON_CTX_STATE, &get), ENOENT);
	dev_close(other);
}

static void queues_run_out_and_come_back(void **state)
{
	struct drm_neuron_ctx_create args = { 0 };
	uint32_t ctx[256];
	int n = 0, ret;

	while (n < 256 && !(ret = neuron_call(FD, DRM_IOCTL_NEURON_CTX_CREATE, &args)))
		ctx[n++] = args.ctx;
	assert_int_in_range(n, 1, 255);
	assert_int_equal(ret, -ENOSPC);
	/* Another core has its own. */
	if (dev_info(FD).cores > 1)
		ctx_close(FD, ctx_new(FD, 1));
	for (int i = 0; i < 3; i++) {
		ctx_close(FD, ctx[i]);
		ctx[i] = ctx_new(FD, 0);
	}
	while (n--)
		ctx_close(FD, ctx[n]);
}

static void high_priority_needs_a_privilege(void **state)
{
	struct drm_neuron_ctx_create args = { .priority = DRM_NEURON_PRIORITY_HIGH };
	int status;
	pid_t pid;

	assert_ok(neuron_call(FD, DRM_IOCTL_NEURON_CTX_CREATE, &args));
	ctx_close(FD, args.ctx);
	args.priority = DRM_NEURON_PRIORITY_LOW;
	assert_ok(neuron_call(FD, DRM_IOCTL_NEURON_CTX_CREATE, &args));
	ctx_close(FD, args.ctx);

	pid = fork();
	if (!pid) {
		args.priority = DRM_NEURON_PRIORITY_HIGH;
		if (setuid(65534))
			_exit(2);
		_exit(neuron_call(FD, DRM_IOCTL_NEURON_CTX_CREATE, &args) != -EACCES);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* --- programs ------------------------------------------------------------- */

static void program_load_checks_its_arguments(void **state)
{
	struct prog p = { .slots = 0 };
	struct drm_neuron_program_load args = { 0 };
	uint32_t program;
	size_t size;
	void *image;

	prog_inst(&p, ISA_SYNC, ISA_HALT);
	image = prog_image(&p, &size);

	assert_errno(prog_try(FD, image, 0, &program), ENOEXEC);
	assert_errno(prog_try(FD, image, 255, &program), ENOEXEC);
	assert_errno(prog_try(FD, image, size - 64, &program), ENOEXEC);
	assert_errno(prog_try(FD, image, NPROG_IMAGE_MAX + 1ull, &program), E2BIG);
	assert_errno(prog_try(FD, image, UINT64_MAX, &program), E2BIG);
	assert_errno(prog_try(FD, (void *)8, size, &program), EFAULT);
	args.image = (uintptr_t)image;
	args.size = size;
	args.flags = 1;
	assert_errno(neuron_call(FD, DRM_IOCTL_NEURON_PROGRAM_LOAD, &args), EINVAL);
	assert_ok(prog_try(FD, image, size, &program));
	prog_unload(FD, program);
	dev_wait_hbm(FD, 0);
	free(image);
}

static void malformed_programs_are_refused(void **state)
{
	struct prog p = { .slots = 0 };
	struct nprog_header *h;
	uint32_t program;
	size_t size;
	void *image;

	prog_slot(&p, NPROG_SLOT_INPUT, 64);
	prog_inst(&p, ISA_SYNC, ISA_HALT);
	image = prog_image(&p, &size);
	h = image;
#define BREAK(member, value, error)                                       \
	do {                                                              \
		struct nprog_header good = *h;                            \
		h->member = (value);                                      \
		prog_seal(image, size);                                   \
		assert_errno(prog_try(FD, image, size, &program), error); \
		*h = good;                                                \
	} while (0)

	BREAK(magic, 0, ENOEXEC);
	BREAK(version_major, 2, EOPNOTSUPP);
	BREAK(version_minor, 9, EOPNOTSUPP);
	BREAK(arch, 2, EOPNOTSUPP);
	BREAK(header_bytes, 0, ENOEXEC);
	BREAK(image_bytes, 64, ENOEXEC);
	BREAK(flags, 1, ENOEXEC);
	BREAK(n_slots, UINT32_MAX, ENOEXEC);
	BREAK(slot_offset, UINT32_MAX - 63, ENOEXEC);
	BREAK(stream[4].count, UINT32_MAX, ENOEXEC);
	BREAK(stream[4].offset, 0, ENOEXEC);
	BREAK(const_bytes, 64, ENOEXEC);
	BREAK(pad1[50], 1, ENOEXEC);
#undef BREAK
	h->crc32c ^= 1;
	assert_errno(prog_try(FD, image, size, &program), ENOEXEC);
	assert_int_equal(dev_memory(FD).hbm_own, 0);
	free(image);
}

static void program_ids_are_checked(void **state)
{
	struct drm_neuron_program_unload args = { .program = prog_nop(FD), .pad = 1 };
	int other = dev_open();

	assert_errno(neuron_call(FD, DRM_IOCTL_NEURON_PROGRAM_UNLOAD, &args), EINVAL);
	args.pad = 0;
	assert_errno(neuron_call(other, DRM_IOCTL_NEURON_PROGRAM_UNLOAD, &args), ENOENT);
	assert_ok(neuron_call(FD, DRM_IOCTL_NEURON_PROGRAM_UNLOAD, &args));
	assert_errno(neuron_call(FD, DRM_IOCTL_NEURON_PROGRAM_UNLOAD, &args), ENOENT);
	dev_close(other);
}

/* --- submit --------------------------------------------------------------- */

/* A launch that would work, with slot 0 a buffer and slot 1 a value, and ways to spoil it. */
struct submit {
	struct drm_neuron_slot slot[2];
	struct drm_neuron_sync sync;
	struct drm_neuron_submit args;
};

static struct submit good_submit(int fd)
{
	static struct submit s;
	struct prog p = { .slots = 0 };

	memset(&s, 0, sizeof(s));
	prog_slot(&p, NPROG_SLOT_INOUT, 4096);
	prog_slot(&p, NPROG_SLOT_SCALAR, 8);
	prog_inst(&p, ISA_SYNC, ISA_HALT);
	s.args.ctx = ctx_new(fd, 0);
	s.args.program = prog_load(fd, &p);
	s.slot[0].handle = bo_new(fd, 8192, BO_HBM);
	s.slot[0].size = 8192;
	s.slot[1].flags = DRM_NEURON_SLOT_INLINE;
	s.slot[1].offset = UINT64_MAX;
	s.slot[1].size = 8;
	s.sync.handle = sync_new(fd);
	return s;
}

static int try_submit(int fd, struct submit s)
{
	if (!s.args.slots.ptr)
		s.args.slots.ptr = (uintptr_t)s.slot;
	if (!s.args.slots.stride)
		s.args.slots.stride = sizeof(s.slot[0]);
	if (!s.args.slots.count)
		s.args.slots.count = 2;
	if (!s.args.out.count)
		s.args.out = ARRAY(&s.sync, 1);
	return neuron_call(fd, DRM_IOCTL_NEURON_SUBMIT, &s.args);
}

#define BAD(member, value, error)                                                         \
	do {                                                                              \
		struct submit bad = s;                                                    \
		bad.member = (value);                                                     \
		if (try_submit(FD, bad) != -(error))                                      \
			fail_msg("%s = %s: expected %s, got %d", #member, #value, #error, \
				 try_submit(FD, bad));                                    \
	} while (0)

static void submit_checks_its_arguments(void **state)
{
	struct submit s = good_submit(FD);

	assert_ok(try_submit(FD, s));
	assert_ok(sync_wait(FD, s.sync.handle, 0, 10000));

	BAD(args.ctx, 0, ENOENT);
	BAD(args.ctx, 999, ENOENT);
	BAD(args.program, 0, ENOENT);
	BAD(args.program, 999, ENOENT);
	BAD(args.flags, 1, EINVAL);
	BAD(args.pad, 1, EINVAL);
	BAD(args.slots.count, 1, EINVAL);
	BAD(args.slots.count, 3, EINVAL);
	BAD(args.slots.count, UINT32_MAX, EINVAL);
	BAD(args.slots.stride, 16, EINVAL);
	BAD(args.slots.ptr, 8, EFAULT);
	BAD(args.in.count, UINT32_MAX, EINVAL);
	BAD(args.out.count, UINT32_MAX, EINVAL);
	BAD(sync.handle, 0, ENOENT);
	BAD(sync.handle, 999, ENOENT);
	BAD(sync.flags, 1, EINVAL);
}

static void submit_checks_its_slots(void **state)
{
	struct submit s = good_submit(FD);
	uint32_t host = bo_new(FD, 8192, BO_HOST);

	BAD(slot[0].handle, 0, ENOENT);
	BAD(slot[0].handle, 999, ENOENT);
	BAD(slot[0].handle, host, EINVAL);
	BAD(slot[0].flags, DRM_NEURON_SLOT_INLINE, EINVAL);
	BAD(slot[0].flags, 2, EINVAL);
	BAD(slot[0].size, 0, EINVAL);
	BAD(slot[0].size, 4095, EINVAL);
	BAD(slot[0].size, 8193, EINVAL);
	BAD(slot[0].size, UINT64_MAX, EINVAL);
	BAD(slot[0].offset, 1, EINVAL);
	BAD(slot[0].offset, 8192, EINVAL);
	BAD(slot[0].offset, UINT64_MAX, EINVAL);
	BAD(slot[0].offset, UINT64_MAX - 8191, EINVAL);
	BAD(slot[1].flags, 0, EINVAL);
	BAD(slot[1].flags, 3, EINVAL);
	BAD(slot[1].handle, s.slot[0].handle, EINVAL);
	BAD(slot[1].size, 4, EINVAL);
	BAD(slot[1].size, 16, EINVAL);
}

static void submit_takes_longer_elements(void **state)
{
	struct submit s = good_submit(FD);
	struct {
		struct drm_neuron_slot slot;
		uint64_t newer;
	} slot[2] = { { s.slot[0], 0 }, { s.slot[1], 0 } };

	s.args.slots = ARRAY(slot, 2);
	assert_ok(try_submit(FD, s));
	slot[1].newer = 1;
	assert_errno(try_submit(FD, s), E2BIG);
	s.args.slots.stride = 8192;
	assert_errno(try_submit(FD, s), E2BIG);
	assert_ok(sync_wait(FD, s.sync.handle, 0, 10000));
}

static void in_fences_must_exist(void **state)
{
	struct submit s = good_submit(FD);
	struct drm_neuron_sync in = { .handle = 999 };

	s.args.in = ARRAY(&in, 1);
	assert_errno(try_submit(FD, s), ENOENT);
	in.handle = sync_new(FD); /* without a fence */
	assert_errno(try_submit(FD, s), EINVAL);
	in.point = 7;
	assert_errno(try_submit(FD, s), EINVAL);
	in.flags = 1;
	assert_errno(try_submit(FD, s), EINVAL);
	in.flags = 0;
	s.args.in.stride = 8;
	assert_errno(try_submit(FD, s), EINVAL);
}

/* --- batches -------------------------------------------------------------- */

/* Three good launches. */
struct batch {
	struct submit s;
	struct drm_neuron_launch launch[3];
	struct drm_neuron_submit_batch args;
};

static struct batch good_batch(int fd)
{
	struct batch b = { .s = good_submit(fd) };

	b.args.ctx = b.s.args.ctx;
	b.args.refused = 123;
	for (int i = 0; i < 3; i++)
		b.launch[i].program = b.s.args.program;
	return b;
}

static int try_batch(int fd, struct batch b, uint32_t *refused)
{
	int ret;

	for (int i = 0; i < 3; i++)
		if (!b.launch[i].slots.count)
			b.launch[i].slots = ARRAY(b.s.slot, 2);
	if (!b.args.launches.count)
		b.args.launches = ARRAY(b.launch, 3);
	if (!b.args.out.count)
		b.args.out = ARRAY(&b.s.sync, 1);
	ret = neuron_call(fd, DRM_IOCTL_NEURON_SUBMIT_BATCH, &b.args);
	*refused = b.args.refused;
	return ret;
}

#define BAD_BATCH(member, value, error, which)                              \
	do {                                                                \
		struct batch bad = b;                                       \
		uint32_t index;                                             \
		bad.member = (value);                                       \
		assert_errno(try_batch(FD, bad, &index), error);            \
		assert_int_equal(index, (uint32_t)(which));                 \
		/* Nothing was taken: the fence is as it was. */            \
		assert_errno(sync_wait(FD, b.s.sync.handle, 0, 0), EINVAL); \
	} while (0)

static void batches_are_refused_as_a_whole(void **state)
{
	struct batch b = good_batch(FD);
	uint32_t refused;

	BAD_BATCH(args.ctx, 999, ENOENT, ~0u);
	BAD_BATCH(args.flags, 1, EINVAL, ~0u);
	BAD_BATCH(args.pad, 1, EINVAL, ~0u);
	BAD_BATCH(args.launches.count, dev_info(FD).batch_max + 1, EINVAL, ~0u);
	BAD_BATCH(args.launches.count, UINT32_MAX, EINVAL, ~0u);
	BAD_BATCH(args.launches, ((struct drm_neuron_array){ 8, 3, 4096 }), EINVAL, ~0u);
	BAD_BATCH(args.launches, ((struct drm_neuron_array){ 24, 3, 8 }), EFAULT, ~0u);
	BAD_BATCH(args.in.count, UINT32_MAX, EINVAL, ~0u);
	BAD_BATCH(s.sync.handle, 999, ENOENT, ~0u);
	BAD_BATCH(launch[0].program, 999, ENOENT, 0);
	BAD_BATCH(launch[1].flags, 1, EINVAL, 1);
	BAD_BATCH(launch[2].program, 0, ENOENT, 2);
	BAD_BATCH(launch[2].slots, ARRAY(b.s.slot, 1), EINVAL, 2);
	BAD_BATCH(launch[2].slots, ((struct drm_neuron_array){ 24, 2, 8 }), EFAULT, 2);
	BAD_BATCH(s.slot[0].size, 8193, EINVAL, 0);
	assert_int_equal(ctx_state(FD, b.args.ctx).launches, 0);

	assert_ok(try_batch(FD, b, &refused));
	assert_int_equal(refused, ~0u);
	assert_ok(sync_wait(FD, b.s.sync.handle, 0, 10000));
	assert_int_equal(ctx_state(FD, b.args.ctx).launches, 3);

	b.args.launches = (struct drm_neuron_array){ 0 };
	assert_errno(neuron_call(FD, DRM_IOCTL_NEURON_SUBMIT_BATCH, &b.args), EINVAL);
}

/* --- copy ----------------------------------------------------------------- */

static void copy_checks_its_arguments(void **state)
{
	uint32_t hbm = bo_new(FD, 8192, BO_HBM), host = bo_new(FD, 4096, BO_HOST);
	struct drm_neuron_copy args = { .src = host, .dst = hbm, .size = 64, .pad = 1 };
	struct drm_neuron_sync sync = { .handle = 999 };

	assert_errno(neuron_call(FD, DRM_IOCTL_NEURON_COPY, &args), EINVAL);
	args.pad = 0;
	args.flags = 1;
	assert_errno(neuron_call(FD, DRM_IOCTL_NEURON_COPY, &args), EINVAL);
	args.flags = 0;
	args.out = ARRAY(&sync, 1);
	assert_errno(neuron_call(FD, DRM_IOCTL_NEURON_COPY, &args), ENOENT);
	args.in = args.out;
	args.out.count = 0;
	assert_errno(neuron_call(FD, DRM_IOCTL_NEURON_COPY, &args), ENOENT);

	assert_errno(copy_start(FD, hbm, 0, host, 0, 0, 0), EINVAL);
	assert_errno(copy_start(FD, 0, 0, host, 0, 64, 0), ENOENT);
	assert_errno(copy_start(FD, hbm, 0, 999, 0, 64, 0), ENOENT);
	assert_errno(copy_start(FD, hbm, 0, host, 0, 4097, 0), EINVAL);
	assert_errno(copy_start(FD, hbm, 0, host, 4095, 2, 0), EINVAL);
	assert_errno(copy_start(FD, hbm, 8192, host, 0, 1, 0), EINVAL);
	assert_errno(copy_start(FD, hbm, 0, host, UINT64_MAX, 1, 0), EINVAL);
	assert_errno(copy_start(FD, hbm, UINT64_MAX, host, 0, 1, 0), EINVAL);
	assert_errno(copy_start(FD, hbm, 0, host, 0, UINT64_MAX, 0), EINVAL);
	assert_errno(copy_start(FD, hbm, 0, hbm, 0, 1, 0), EINVAL);
	assert_errno(copy_start(FD, hbm, 63, hbm, 0, 64, 0), EINVAL);
	assert_errno(copy_start(FD, hbm, 0, hbm, 63, 64, 0), EINVAL);
	copy_now(FD, hbm, 64, hbm, 0, 64);
}

const struct CMUnitTest args_tests[] = {
	TEST(structures_may_be_shorter_or_longer),
	TEST(unknown_ioctl_is_refused),
	TEST(ioctls_for_a_master_are_refused),
	TEST(query_negotiates_its_size),
	TEST(query_takes_an_index_for_cores_only),
	TEST(bo_create_checks_its_arguments),
	TEST(bo_rounds_up_and_counts),
	TEST(mmap_checks_its_arguments),
	TEST(ctx_create_checks_its_arguments),
	TEST(ctx_ids_are_checked),
	TEST(queues_run_out_and_come_back),
	TEST(high_priority_needs_a_privilege),
	TEST(program_load_checks_its_arguments),
	TEST(malformed_programs_are_refused),
	TEST(program_ids_are_checked),
	TEST(submit_checks_its_arguments),
	TEST(submit_checks_its_slots),
	TEST(submit_takes_longer_elements),
	TEST(in_fences_must_exist),
	TEST(batches_are_refused_as_a_whole),
	TEST(copy_checks_its_arguments),
};
const size_t args_tests_count = sizeof(args_tests) / sizeof(args_tests[0]);
