// SPDX-License-Identifier: Apache-2.0
/* The structures of the ioctls, and values for them: mostly right, so that calls get far. */
#include "fuzz.h"

#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <xf86drm.h>

/* --- chance ------------------------------------------------------------------ */

/* splitmix64 */
uint64_t fuzz_random(struct fuzz_thread *t)
{
	uint64_t z = t->rng += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

uint32_t fuzz_below(struct fuzz_thread *t, uint32_t n)
{
	return (uint32_t)((fuzz_random(t) >> 32) * n >> 32);
}

bool fuzz_once_in(struct fuzz_thread *t, uint32_t n)
{
	return !fuzz_below(t, n);
}

uint64_t fuzz_odd_number(struct fuzz_thread *t)
{
	switch (fuzz_below(t, 6)) {
	case 0:
		return fuzz_random(t);
	case 1:
		return fuzz_random(t) >> fuzz_below(t, 64);
	case 2:
		return UINT64_MAX - fuzz_below(t, 4);
	default:
		return (1ull << fuzz_below(t, 64)) + fuzz_below(t, 3) - 1;
	}
}

/* --- what structures are made of ----------------------------------------------- */

enum kind {
	K_ZERO, /* padding, flags without meaning yet */
	K_OUT, /* the kernel does not look at it */
	K_FLAGS, /* bits of arg */
	K_ENUM, /* below arg */
	K_INDEX, /* mostly 0, else below arg */
	K_SMALL, /* up to arg */
	K_BO_FLAGS, /* DRM_NEURON_BO_* */
	K_BO_BYTES, /* size of a new buffer */
	K_BYTES, /* size of a part of a buffer */
	K_FEW, /* handles of an array: see fuzz_tame() */
	K_OFFSET, /* into a buffer */
	K_POINT, /* of a timeline */
	K_SOON, /* absolute time */
	K_HANDLE, /* arg: pool */
	K_FILE, /* fd */
	K_HANDLES, /* address of FUZZ_HANDLES handles; arg: pool */
	K_POINTS, /* address of as many points */
	K_BUFFER, /* address of a page */
	K_PAGES, /* address of pages */
	K_PAGES_BYTES, /* and their size */
	K_IMAGE, /* address of a program; the next field takes its size */
	K_SIZE, /* size of the image before */
	K_ARRAY, /* struct drm_neuron_array of type */
};

struct fuzz_field {
	uint16_t at;
	uint16_t bytes;
	uint8_t kind;
	uint32_t arg;
	const struct fuzz_type *type;
};

/* One more than any has. */
#define FUZZ_FIELDS 14

struct fuzz_type {
	uint32_t bytes;
	struct fuzz_field field[FUZZ_FIELDS];
};

#define FIELD(s, m, kind_, arg_) \
	{ offsetof(struct s, m), sizeof(((struct s *)0)->m), kind_, arg_, NULL }
#define ARRAY_OF(s, m, type_) \
	{ offsetof(struct s, m), sizeof(((struct s *)0)->m), K_ARRAY, 0, &(type_) }

static const struct fuzz_type sync_type = { sizeof(struct drm_neuron_sync),
					    { FIELD(drm_neuron_sync, handle, K_HANDLE, POOL_SYNC),
					      FIELD(drm_neuron_sync, flags, K_ZERO, 0),
					      FIELD(drm_neuron_sync, point, K_POINT, 0) } };

static const struct fuzz_type slot_type = { sizeof(struct drm_neuron_slot),
					    { FIELD(drm_neuron_slot, handle, K_HANDLE, POOL_BO),
					      FIELD(drm_neuron_slot, flags, K_ZERO, 0),
					      FIELD(drm_neuron_slot, offset, K_OFFSET, 0),
					      FIELD(drm_neuron_slot, size, K_BYTES, 0) } };

static const struct fuzz_type query_type = {
	sizeof(struct drm_neuron_query),
	{ FIELD(drm_neuron_query, block, K_ENUM, 5), FIELD(drm_neuron_query, size, K_SMALL, 256),
	  FIELD(drm_neuron_query, ptr, K_BUFFER, 0), FIELD(drm_neuron_query, index, K_INDEX, 2),
	  FIELD(drm_neuron_query, pad, K_ZERO, 0) }
};

static const struct fuzz_type bo_create_type = {
	sizeof(struct drm_neuron_bo_create),
	{ FIELD(drm_neuron_bo_create, size, K_BO_BYTES, 0),
	  FIELD(drm_neuron_bo_create, flags, K_BO_FLAGS, 0),
	  FIELD(drm_neuron_bo_create, handle, K_OUT, 0) }
};

static const struct fuzz_type bo_info_type = { sizeof(struct drm_neuron_bo_info),
					       { FIELD(drm_neuron_bo_info, handle, K_HANDLE,
						       POOL_BO) } };

static const struct fuzz_type ctx_create_type = {
	sizeof(struct drm_neuron_ctx_create),
	{ FIELD(drm_neuron_ctx_create, core, K_INDEX, 2),
	  FIELD(drm_neuron_ctx_create, priority, K_ENUM, 3),
	  FIELD(drm_neuron_ctx_create, flags, K_ZERO, 0),
	  FIELD(drm_neuron_ctx_create, ctx, K_OUT, 0),
	  FIELD(drm_neuron_ctx_create, cores, K_FLAGS, 3) }
};

static const struct fuzz_type ctx_destroy_type = {
	sizeof(struct drm_neuron_ctx_destroy),
	{ FIELD(drm_neuron_ctx_destroy, ctx, K_HANDLE, POOL_CTX),
	  FIELD(drm_neuron_ctx_destroy, pad, K_ZERO, 0) }
};

static const struct fuzz_type ctx_state_type = { sizeof(struct drm_neuron_ctx_state),
						 { FIELD(drm_neuron_ctx_state, ctx, K_HANDLE,
							 POOL_CTX) } };

static const struct fuzz_type program_load_type = {
	sizeof(struct drm_neuron_program_load),
	{ FIELD(drm_neuron_program_load, image, K_IMAGE, 0),
	  FIELD(drm_neuron_program_load, size, K_SIZE, 0),
	  FIELD(drm_neuron_program_load, flags, K_ZERO, 0),
	  FIELD(drm_neuron_program_load, program, K_OUT, 0) }
};

static const struct fuzz_type program_unload_type = {
	sizeof(struct drm_neuron_program_unload),
	{ FIELD(drm_neuron_program_unload, program, K_HANDLE, POOL_PROG),
	  FIELD(drm_neuron_program_unload, pad, K_ZERO, 0) }
};

static const struct fuzz_type submit_type = {
	sizeof(struct drm_neuron_submit),
	{ FIELD(drm_neuron_submit, ctx, K_HANDLE, POOL_CTX),
	  FIELD(drm_neuron_submit, program, K_HANDLE, POOL_PROG),
	  FIELD(drm_neuron_submit, flags, K_ZERO, 0), FIELD(drm_neuron_submit, pad, K_ZERO, 0),
	  ARRAY_OF(drm_neuron_submit, slots, slot_type), ARRAY_OF(drm_neuron_submit, in, sync_type),
	  ARRAY_OF(drm_neuron_submit, out, sync_type) }
};

static const struct fuzz_type launch_type = { sizeof(struct drm_neuron_launch),
					      { FIELD(drm_neuron_launch, program, K_HANDLE,
						      POOL_PROG),
						FIELD(drm_neuron_launch, flags, K_ZERO, 0),
						ARRAY_OF(drm_neuron_launch, slots, slot_type) } };

static const struct fuzz_type submit_batch_type = {
	sizeof(struct drm_neuron_submit_batch),
	{ FIELD(drm_neuron_submit_batch, ctx, K_HANDLE, POOL_CTX),
	  FIELD(drm_neuron_submit_batch, flags, K_ZERO, 0),
	  FIELD(drm_neuron_submit_batch, refused, K_OUT, 0),
	  FIELD(drm_neuron_submit_batch, pad, K_ZERO, 0),
	  ARRAY_OF(drm_neuron_submit_batch, launches, launch_type),
	  ARRAY_OF(drm_neuron_submit_batch, in, sync_type),
	  ARRAY_OF(drm_neuron_submit_batch, out, sync_type) }
};

static const struct fuzz_type bo_pin_type = { sizeof(struct drm_neuron_bo_pin),
					      { FIELD(drm_neuron_bo_pin, addr, K_PAGES, 0),
						FIELD(drm_neuron_bo_pin, size, K_PAGES_BYTES, 0),
						FIELD(drm_neuron_bo_pin, flags, K_ZERO, 0),
						FIELD(drm_neuron_bo_pin, handle, K_OUT, 0) } };

static const struct fuzz_type stream_open_type = {
	sizeof(struct drm_neuron_stream_open),
	{ FIELD(drm_neuron_stream_open, ctx, K_HANDLE, POOL_CTX),
	  FIELD(drm_neuron_stream_open, flags, K_FLAGS, DRM_NEURON_STREAM_NONBLOCK),
	  FIELD(drm_neuron_stream_open, entries, K_SMALL, 64),
	  FIELD(drm_neuron_stream_open, fd, K_OUT, 0) }
};

static const struct fuzz_type copy_type = {
	sizeof(struct drm_neuron_copy),
	{ FIELD(drm_neuron_copy, src, K_HANDLE, POOL_BO),
	  FIELD(drm_neuron_copy, dst, K_HANDLE, POOL_BO),
	  FIELD(drm_neuron_copy, src_offset, K_OFFSET, 0),
	  FIELD(drm_neuron_copy, dst_offset, K_OFFSET, 0), FIELD(drm_neuron_copy, size, K_BYTES, 0),
	  FIELD(drm_neuron_copy, flags, K_ZERO, 0), FIELD(drm_neuron_copy, pad, K_ZERO, 0),
	  ARRAY_OF(drm_neuron_copy, in, sync_type), ARRAY_OF(drm_neuron_copy, out, sync_type) }
};

/* The kernel's own, for handles of ours. */

static const struct fuzz_type gem_close_type = { sizeof(struct drm_gem_close),
						 { FIELD(drm_gem_close, handle, K_HANDLE, POOL_BO),
						   FIELD(drm_gem_close, pad, K_ZERO, 0) } };

static const struct fuzz_type prime_type = { sizeof(struct drm_prime_handle),
					     { FIELD(drm_prime_handle, handle, K_HANDLE, POOL_BO),
					       FIELD(drm_prime_handle, flags, K_FLAGS,
						     DRM_CLOEXEC | DRM_RDWR),
					       FIELD(drm_prime_handle, fd, K_FILE, 0) } };

static const struct fuzz_type syncobj_create_type = { sizeof(struct drm_syncobj_create),
						      { FIELD(drm_syncobj_create, handle, K_OUT, 0),
							FIELD(drm_syncobj_create, flags, K_FLAGS,
							      DRM_SYNCOBJ_CREATE_SIGNALED) } };

static const struct fuzz_type syncobj_destroy_type = {
	sizeof(struct drm_syncobj_destroy),
	{ FIELD(drm_syncobj_destroy, handle, K_HANDLE, POOL_SYNC),
	  FIELD(drm_syncobj_destroy, pad, K_ZERO, 0) }
};

static const struct fuzz_type syncobj_handle_type = {
	sizeof(struct drm_syncobj_handle),
	{ FIELD(drm_syncobj_handle, handle, K_HANDLE, POOL_SYNC),
	  FIELD(drm_syncobj_handle, flags, K_FLAGS, 3), FIELD(drm_syncobj_handle, fd, K_FILE, 0),
	  FIELD(drm_syncobj_handle, pad, K_ZERO, 0) }
};

static const struct fuzz_type syncobj_wait_type = {
	sizeof(struct drm_syncobj_wait),
	{ FIELD(drm_syncobj_wait, handles, K_HANDLES, POOL_SYNC),
	  FIELD(drm_syncobj_wait, timeout_nsec, K_SOON, 0),
	  FIELD(drm_syncobj_wait, count_handles, K_FEW, 4),
	  FIELD(drm_syncobj_wait, flags, K_FLAGS, 15), FIELD(drm_syncobj_wait, pad, K_ZERO, 0) }
};

static const struct fuzz_type timeline_wait_type = {
	sizeof(struct drm_syncobj_timeline_wait),
	{ FIELD(drm_syncobj_timeline_wait, handles, K_HANDLES, POOL_SYNC),
	  FIELD(drm_syncobj_timeline_wait, points, K_POINTS, 0),
	  FIELD(drm_syncobj_timeline_wait, timeout_nsec, K_SOON, 0),
	  FIELD(drm_syncobj_timeline_wait, count_handles, K_FEW, 4),
	  FIELD(drm_syncobj_timeline_wait, flags, K_FLAGS, 15),
	  FIELD(drm_syncobj_timeline_wait, pad, K_ZERO, 0) }
};

static const struct fuzz_type syncobj_array_type = {
	sizeof(struct drm_syncobj_array),
	{ FIELD(drm_syncobj_array, handles, K_HANDLES, POOL_SYNC),
	  FIELD(drm_syncobj_array, count_handles, K_FEW, 4),
	  FIELD(drm_syncobj_array, pad, K_ZERO, 0) }
};

static const struct fuzz_type timeline_array_type = {
	sizeof(struct drm_syncobj_timeline_array),
	{ FIELD(drm_syncobj_timeline_array, handles, K_HANDLES, POOL_SYNC),
	  FIELD(drm_syncobj_timeline_array, points, K_POINTS, 0),
	  FIELD(drm_syncobj_timeline_array, count_handles, K_FEW, 4),
	  FIELD(drm_syncobj_timeline_array, flags, K_FLAGS, 1) }
};

static const struct fuzz_type transfer_type = {
	sizeof(struct drm_syncobj_transfer),
	{ FIELD(drm_syncobj_transfer, src_handle, K_HANDLE, POOL_SYNC),
	  FIELD(drm_syncobj_transfer, dst_handle, K_HANDLE, POOL_SYNC),
	  FIELD(drm_syncobj_transfer, src_point, K_POINT, 0),
	  FIELD(drm_syncobj_transfer, dst_point, K_POINT, 0),
	  /* Not WAIT_FOR_SUBMIT: that waits for ever. */
	  FIELD(drm_syncobj_transfer, flags, K_ZERO, 0),
	  FIELD(drm_syncobj_transfer, pad, K_ZERO, 0) }
};

static const struct fuzz_type eventfd_type = {
	sizeof(struct drm_syncobj_eventfd),
	{ FIELD(drm_syncobj_eventfd, handle, K_HANDLE, POOL_SYNC),
	  FIELD(drm_syncobj_eventfd, flags, K_FLAGS, 4),
	  FIELD(drm_syncobj_eventfd, point, K_POINT, 0), FIELD(drm_syncobj_eventfd, fd, K_FILE, 0),
	  FIELD(drm_syncobj_eventfd, pad, K_ZERO, 0) }
};

static const struct fuzz_type version_type = {
	sizeof(struct drm_version),
	{ FIELD(drm_version, name_len, K_SMALL, 64), FIELD(drm_version, name, K_BUFFER, 0),
	  FIELD(drm_version, date_len, K_SMALL, 64), FIELD(drm_version, date, K_BUFFER, 0),
	  FIELD(drm_version, desc_len, K_SMALL, 64), FIELD(drm_version, desc, K_BUFFER, 0) }
};

static const struct fuzz_type get_cap_type = { sizeof(struct drm_get_cap),
					       { FIELD(drm_get_cap, capability, K_SMALL, 24) } };

/* A new ioctl does not compile before it has a line here. */
static const struct fuzz_type *neuron_type(enum drm_neuron_ioctl_id id)
{
	switch (id) {
	case DRM_NEURON_QUERY:
		return &query_type;
	case DRM_NEURON_BO_CREATE:
		return &bo_create_type;
	case DRM_NEURON_BO_INFO:
		return &bo_info_type;
	case DRM_NEURON_CTX_CREATE:
		return &ctx_create_type;
	case DRM_NEURON_CTX_DESTROY:
		return &ctx_destroy_type;
	case DRM_NEURON_CTX_STATE:
		return &ctx_state_type;
	case DRM_NEURON_PROGRAM_LOAD:
		return &program_load_type;
	case DRM_NEURON_PROGRAM_UNLOAD:
		return &program_unload_type;
	case DRM_NEURON_SUBMIT:
		return &submit_type;
	case DRM_NEURON_COPY:
		return &copy_type;
	case DRM_NEURON_SUBMIT_BATCH:
		return &submit_batch_type;
	case DRM_NEURON_BO_PIN:
		return &bo_pin_type;
	case DRM_NEURON_STREAM_OPEN:
		return &stream_open_type;
	}
	return NULL;
}

#define NEURON(name, result, at, weight) \
	{ "neuron " #name, DRM_IOCTL_NEURON_##name, NULL, result, at, weight }
#define KERNEL(name, type, result, at, weight) \
	{ #name, DRM_IOCTL_##name, &(type), result, at, weight }
#define AT(s, m) offsetof(struct s, m)

const struct fuzz_call fuzz_calls[] = {
	NEURON(QUERY, RESULT_NONE, 0, 4),
	NEURON(BO_CREATE, RESULT_BO, AT(drm_neuron_bo_create, handle), 12),
	NEURON(BO_INFO, RESULT_NONE, 0, 3),
	NEURON(CTX_CREATE, RESULT_CTX, AT(drm_neuron_ctx_create, ctx), 8),
	NEURON(CTX_DESTROY, RESULT_NONE, 0, 3),
	NEURON(CTX_STATE, RESULT_NONE, 0, 4),
	NEURON(PROGRAM_LOAD, RESULT_PROG, AT(drm_neuron_program_load, program), 24),
	NEURON(PROGRAM_UNLOAD, RESULT_NONE, 0, 3),
	NEURON(SUBMIT, RESULT_NONE, 0, 40),
	NEURON(COPY, RESULT_NONE, 0, 30),
	NEURON(SUBMIT_BATCH, RESULT_NONE, 0, 16),
	NEURON(BO_PIN, RESULT_BO, AT(drm_neuron_bo_pin, handle), 4),
	NEURON(STREAM_OPEN, RESULT_FILE, AT(drm_neuron_stream_open, fd), 4),
	KERNEL(GEM_CLOSE, gem_close_type, RESULT_NONE, 0, 6),
	KERNEL(PRIME_HANDLE_TO_FD, prime_type, RESULT_FILE, AT(drm_prime_handle, fd), 3),
	KERNEL(PRIME_FD_TO_HANDLE, prime_type, RESULT_BO, AT(drm_prime_handle, handle), 3),
	KERNEL(SYNCOBJ_CREATE, syncobj_create_type, RESULT_SYNC, AT(drm_syncobj_create, handle), 6),
	KERNEL(SYNCOBJ_DESTROY, syncobj_destroy_type, RESULT_NONE, 0, 2),
	KERNEL(SYNCOBJ_HANDLE_TO_FD, syncobj_handle_type, RESULT_FILE, AT(drm_syncobj_handle, fd),
	       3),
	KERNEL(SYNCOBJ_FD_TO_HANDLE, syncobj_handle_type, RESULT_SYNC,
	       AT(drm_syncobj_handle, handle), 3),
	KERNEL(SYNCOBJ_WAIT, syncobj_wait_type, RESULT_NONE, 0, 6),
	KERNEL(SYNCOBJ_TIMELINE_WAIT, timeline_wait_type, RESULT_NONE, 0, 6),
	KERNEL(SYNCOBJ_RESET, syncobj_array_type, RESULT_NONE, 0, 2),
	KERNEL(SYNCOBJ_SIGNAL, syncobj_array_type, RESULT_NONE, 0, 2),
	KERNEL(SYNCOBJ_TIMELINE_SIGNAL, timeline_array_type, RESULT_NONE, 0, 3),
	KERNEL(SYNCOBJ_QUERY, timeline_array_type, RESULT_NONE, 0, 3),
	KERNEL(SYNCOBJ_TRANSFER, transfer_type, RESULT_NONE, 0, 3),
	KERNEL(SYNCOBJ_EVENTFD, eventfd_type, RESULT_NONE, 0, 2),
	KERNEL(VERSION, version_type, RESULT_NONE, 0, 1),
	KERNEL(GET_CAP, get_cap_type, RESULT_NONE, 0, 1),
};
const uint32_t fuzz_calls_count = sizeof(fuzz_calls) / sizeof(fuzz_calls[0]);

_Static_assert(sizeof(fuzz_calls) / sizeof(fuzz_calls[0]) < FUZZ_CALLS, "raise FUZZ_CALLS");

const struct fuzz_call *fuzz_maker(enum fuzz_pool pool)
{
	static const enum fuzz_result result[POOLS] = { RESULT_BO, RESULT_CTX, RESULT_PROG,
							RESULT_SYNC };
	const struct fuzz_call *call = fuzz_calls;

	while (call->result != result[pool])
		call++;
	return call;
}

uint32_t fuzz_weights(void)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < fuzz_calls_count; i++)
		sum += fuzz_calls[i].weight;
	return sum;
}

/* --- handles --------------------------------------------------------------------- */

/* True once in n times of the ops that are to be wrong somewhere. */
static bool odd(struct fuzz_thread *t, uint32_t n)
{
	return t->wild && fuzz_once_in(t, n);
}

uint32_t fuzz_handle(struct fuzz_thread *t, enum fuzz_pool pool)
{
	struct fuzz_device *device = t->device;
	uint32_t handle, at = fuzz_below(t, FUZZ_HANDLES);

	if (odd(t, 64))
		return (uint32_t)fuzz_odd_number(t);
	/* Another file's: a number that may mean something else here. */
	if (odd(t, 64))
		device = &t->world->device[fuzz_below(t, FUZZ_DEVICES)];
	for (uint32_t i = 0; i < FUZZ_HANDLES; i++) {
		handle = device->handle[pool][(at + i) % FUZZ_HANDLES];
		if (handle)
			return handle;
	}
	return 0;
}

void fuzz_keep(struct fuzz_thread *t, enum fuzz_pool pool, uint32_t handle)
{
	t->device->handle[pool][fuzz_below(t, FUZZ_HANDLES)] = handle;
}

int fuzz_file(struct fuzz_thread *t)
{
	if (odd(t, 16))
		return t->world->device[fuzz_below(t, FUZZ_DEVICES)].fd;
	if (odd(t, 32))
		return (int)fuzz_odd_number(t);
	return t->world->file[fuzz_below(t, FUZZ_FILES)];
}

/* --- values ------------------------------------------------------------------------ */

void *fuzz_alloc(struct fuzz_thread *t, uint32_t size)
{
	uint8_t *p = t->arena + t->used;

	size = (size + 7) & ~7u;
	if (size > FUZZ_ARENA - t->used)
		return NULL;
	t->used += size;
	return p;
}

/* An address that is none, or ends too early, or is mapped in an odd way. */
static uint64_t bad_pointer(struct fuzz_thread *t)
{
	uintptr_t end = (uintptr_t)t->arena + FUZZ_ARENA;

	switch (fuzz_below(t, 6)) {
	case 0:
		return 0;
	case 1:
		return end - fuzz_below(t, 64);
	case 2: /* memory of the device, or hole */
		return (uintptr_t)t->world->map[fuzz_below(t, FUZZ_MAPS)];
	case 3:
		return 0xffff888000000000u + fuzz_below(t, 1 << 20);
	case 4:
		return UINT64_MAX - fuzz_below(t, 4096);
	default:
		return (uintptr_t)t->arena + 1 + fuzz_below(t, 4096);
	}
}

static uint64_t pointer(struct fuzz_thread *t, const void *good)
{
	return odd(t, 48) ? bad_pointer(t) : (uintptr_t)good;
}

/* Bytes of most buffers and the wish of most slots of fuzz_prog.c. */
#define USUAL_BYTES 65536

static uint64_t bo_bytes(struct fuzz_thread *t)
{
	if (!t->wild)
		return USUAL_BYTES << 4 * fuzz_below(t, 2);
	switch (fuzz_below(t, 16)) {
	case 0:
		return fuzz_odd_number(t);
	case 1:
		return 1 + fuzz_below(t, 16 << 20);
	case 2:
		return 1 + fuzz_below(t, USUAL_BYTES);
	case 3:
	case 4:
		return 1 << 20;
	default:
		return USUAL_BYTES;
	}
}

static uint64_t bo_flags(struct fuzz_thread *t)
{
	if (odd(t, 16))
		return fuzz_random(t) & (fuzz_once_in(t, 4) ? UINT64_MAX : 31);
	return (fuzz_below(t, 5) ? DRM_NEURON_BO_HBM : DRM_NEURON_BO_HOST) |
	       (fuzz_below(t, 4) ? DRM_NEURON_BO_MMAP : 0) |
	       (odd(t, 2) ? DRM_NEURON_BO_OVERCOMMIT : 0);
}

static uint64_t some_bytes(struct fuzz_thread *t)
{
	if (!t->wild)
		return USUAL_BYTES;
	switch (fuzz_below(t, 16)) {
	case 0:
		return fuzz_odd_number(t);
	case 1:
		return 1 + fuzz_below(t, 1 << 20);
	case 2:
		return 1 + fuzz_below(t, USUAL_BYTES);
	case 3:
		return 4096u + fuzz_below(t, 3) - 1;
	default:
		return USUAL_BYTES;
	}
}

static uint64_t some_offset(struct fuzz_thread *t)
{
	if (odd(t, 24))
		return fuzz_odd_number(t);
	return odd(t, 4) ? fuzz_below(t, USUAL_BYTES) : 0;
}

static uint64_t some_time(struct fuzz_thread *t)
{
	struct timespec now;

	if (fuzz_once_in(t, 4))
		return 0;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec + fuzz_below(t, 10000000);
}

static uint64_t handles(struct fuzz_thread *t, enum fuzz_pool pool)
{
	uint32_t *p = fuzz_alloc(t, FUZZ_HANDLES * sizeof(*p));

	for (uint32_t i = 0; p && i < FUZZ_HANDLES; i++)
		p[i] = fuzz_handle(t, pool);
	return pointer(t, p);
}

/* Of the arena, which other ops write, or of a mapping of the device. */
static uint64_t pages(struct fuzz_thread *t)
{
	uint8_t *from = t->arena;

	if (odd(t, 8))
		return bad_pointer(t);
	if (odd(t, 4))
		from = t->world->map[fuzz_below(t, FUZZ_MAPS)];
	return (uintptr_t)from + 4096u * fuzz_below(t, FUZZ_ARENA / 4096);
}

static uint64_t some_point(struct fuzz_thread *t)
{
	if (odd(t, 32))
		return fuzz_odd_number(t);
	return fuzz_once_in(t, 2) ? 0 : fuzz_below(t, 64);
}

static uint64_t points(struct fuzz_thread *t)
{
	uint64_t *p = fuzz_alloc(t, FUZZ_HANDLES * sizeof(*p));

	for (uint32_t i = 0; p && i < FUZZ_HANDLES; i++)
		p[i] = some_point(t);
	return pointer(t, p);
}

static void fill(struct fuzz_thread *t, const struct fuzz_type *type, uint8_t *to);

/* Slots that the program drawn last takes, as far as known. */
static void fit_slots(struct fuzz_thread *t, struct drm_neuron_slot *slot, uint32_t count)
{
	uint32_t scalars = t->device->slots[t->program % FUZZ_PROGRAMS] >> 8;

	for (uint32_t i = 0; i < count; i++, slot++) {
		if (scalars & (1u << i))
			*slot = (struct drm_neuron_slot){ .flags = DRM_NEURON_SLOT_INLINE,
							  .offset = fuzz_random(t),
							  .size = 8 };
		else if (!odd(t, 8))
			slot->offset = 0;
	}
}

static void fill_array(struct fuzz_thread *t, const struct fuzz_type *type,
		       struct drm_neuron_array *array)
{
	bool fit = type == &slot_type && !odd(t, 8);
	uint32_t count = fuzz_below(t, 3) ? 0 : fuzz_below(t, 4), stride = type->bytes;
	uint8_t *p;

	if (fit)
		count = t->device->slots[t->program % FUZZ_PROGRAMS] & 0xff;
	else if (type == &launch_type && !odd(t, 8))
		count = 1 + fuzz_below(t, 4); /* a batch of none is refused before anything */
	else if (odd(t, 64))
		count = 1u << fuzz_below(t, 12);
	if (odd(t, 16))
		stride += 8 * fuzz_below(t, 4);
	p = fuzz_alloc(t, count * stride);
	for (uint32_t i = 0; p && i < count; i++) {
		memset(p + i * stride, 0, stride);
		fill(t, type, p + i * stride);
	}
	if (p && fit && stride == type->bytes)
		fit_slots(t, (struct drm_neuron_slot *)p, count);
	array->count = p ? count : 0;
	array->stride = odd(t, 32) ? (uint32_t)fuzz_odd_number(t) : stride;
	array->ptr = pointer(t, p);
	if (odd(t, 128))
		array->count = (uint32_t)fuzz_odd_number(t);
}

static uint32_t handle(struct fuzz_thread *t, enum fuzz_pool pool)
{
	uint32_t drawn = fuzz_handle(t, pool);

	if (pool == POOL_PROG)
		t->program = drawn;
	return drawn;
}

static uint64_t value(struct fuzz_thread *t, const struct fuzz_field *field, uint32_t *image_bytes)
{
	switch ((enum kind)field->kind) {
	case K_ZERO:
		return odd(t, 64) ? fuzz_odd_number(t) : 0;
	case K_OUT:
		return fuzz_random(t);
	case K_FLAGS:
		return fuzz_random(t) & (odd(t, 32) ? UINT64_MAX : field->arg);
	case K_ENUM:
		return odd(t, 32) ? fuzz_odd_number(t) : fuzz_below(t, field->arg);
	case K_INDEX:
		return fuzz_once_in(t, 4) ? fuzz_below(t, field->arg) : 0;
	case K_PAGES:
		return pages(t);
	case K_PAGES_BYTES:
		return odd(t, 16) ? fuzz_odd_number(t) : 4096u * (1 + fuzz_below(t, 16));
	case K_SMALL:
	case K_FEW:
		return odd(t, 64) ? fuzz_odd_number(t) : fuzz_below(t, field->arg + 1);
	case K_BO_FLAGS:
		return bo_flags(t);
	case K_BO_BYTES:
		return bo_bytes(t);
	case K_BYTES:
		return some_bytes(t);
	case K_OFFSET:
		return some_offset(t);
	case K_POINT:
		return some_point(t);
	case K_SOON:
		return some_time(t);
	case K_HANDLE:
		return handle(t, (enum fuzz_pool)field->arg);
	case K_FILE:
		return (uint64_t)fuzz_file(t);
	case K_HANDLES:
		return handles(t, (enum fuzz_pool)field->arg);
	case K_POINTS:
		return points(t);
	case K_BUFFER:
		return pointer(t, fuzz_alloc(t, 4096));
	case K_IMAGE:
		return pointer(t, fuzz_image(t, image_bytes));
	case K_SIZE:
		return odd(t, 32) ? fuzz_odd_number(t) : *image_bytes;
	case K_ARRAY:
		break;
	}
	return 0;
}

static void fill(struct fuzz_thread *t, const struct fuzz_type *type, uint8_t *to)
{
	uint32_t image_bytes = 0;
	uint64_t v;

	for (const struct fuzz_field *f = type->field; f < type->field + FUZZ_FIELDS && f->bytes;
	     f++) {
		if (f->kind == K_ARRAY) {
			struct drm_neuron_array array;

			fill_array(t, f->type, &array);
			memcpy(to + f->at, &array, sizeof(array));
			continue;
		}
		v = value(t, f, &image_bytes);
		memcpy(to + f->at, &v, f->bytes); /* little-endian, as the device */
	}
	if (odd(t, 128))
		to[fuzz_below(t, type->bytes)] ^= (uint8_t)(1u << fuzz_below(t, 8));
}

uint32_t fuzz_fill(struct fuzz_thread *t, const struct fuzz_call *call, void *arg)
{
	const struct fuzz_type *type = call->type;

	if (!type)
		type = neuron_type(
			(enum drm_neuron_ioctl_id)(_IOC_NR(call->request) - DRM_COMMAND_BASE));
	memset(arg, 0, FUZZ_ARG_MAX);
	fill(t, type, arg);
	return type->bytes;
}

/* A sync file made of a point is a fence chain, which becomes a point of another one unchecked. */
static void tame_import(struct drm_syncobj_handle *handle)
{
	const uint32_t both = DRM_SYNCOBJ_FD_TO_HANDLE_FLAGS_IMPORT_SYNC_FILE |
			      DRM_SYNCOBJ_FD_TO_HANDLE_FLAGS_TIMELINE;

	if ((handle->flags & both) == both)
		handle->flags &= ~(uint32_t)DRM_SYNCOBJ_FD_TO_HANDLE_FLAGS_TIMELINE;
}

void fuzz_tame(unsigned long request, void *arg)
{
	const uint32_t most = 65535;
	uint32_t count;

	if (_IOC_NR(request) == _IOC_NR(DRM_IOCTL_SYNCOBJ_FD_TO_HANDLE))
		tame_import(arg);
	for (const struct fuzz_call *call = fuzz_calls; call < fuzz_calls + fuzz_calls_count;
	     call++) {
		if (!call->type || _IOC_NR(call->request) != _IOC_NR(request))
			continue;
		for (const struct fuzz_field *f = call->type->field; f->bytes; f++) {
			memcpy(&count, (uint8_t *)arg + f->at, sizeof(count));
			if (f->kind == K_FEW && count > most)
				memcpy((uint8_t *)arg + f->at, &most, sizeof(most));
		}
	}
}
