/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of the runtime. Rules of the room:
 *
 * - nrt_* and nrta_* (nrt*.c) are written on nrtx_* (device.c, alloc.c,
 *   program.c, queue.c, copy.c), which are written on struct nrti_transport.
 *   Nothing but transport_*.c knows a device.
 * - A stream is one context for launches and one timeline. Operation n signals
 *   point n and waits for n - 1 unless both are launches, which the context
 *   keeps in order. What other streams are waited for comes on top.
 * - Objects hold a reference to their device, so that they may be freed after
 *   nrt_close(); until then they answer NRT_CLOSED.
 * - An error is made where it is known, by nrti_error(), with a whole sentence.
 * - Never exit, abort, or touch signals. After fork() the child gets an error.
 *
 * Lock order: runtime, stream table, stream, device.
 */
#ifndef NRTI_H
#define NRTI_H

#include <pthread.h>
#include <stdatomic.h>

#include <nrt/nrt_stream.h>

#include "log.h"
#include "neuron_program.h"
#include "transport.h"

#define NRTI_ERROR_BYTES 1024

struct nrti_device {
	const struct nrti_transport *transport;
	void *dev;
	unsigned int index;
	struct nrti_facts facts;
	uint64_t exec_timeout_ns;
	_Atomic unsigned int refs;
	_Atomic bool closed;
	pthread_mutex_t lock;
	struct nrtx_program *programs; /* loaded ones; under lock */
};

/* A core as applications count them: a logical one. */
struct nrti_core {
	struct nrti_device *device;
	uint32_t index; /* first of its cores on the device */
	uint32_t size; /* how many these are */
	_Atomic uint64_t to_device_bytes, to_host_bytes;
	pthread_mutex_t lock;
	struct nrtx_stats gone; /* of streams that were destroyed; under lock */
	struct nrtx_stats base; /* at the last reset; under lock */
};

#define NRTI_MAGIC_BUFFER  0x66756278u
#define NRTI_MAGIC_PROGRAM 0x67727078u
#define NRTI_MAGIC_STREAM  0x6d727478u

/* A buffer as another device knows it. */
struct nrti_peer {
	struct nrti_peer *next;
	struct nrti_device *device; /* reference */
	uint32_t handle;
};

struct nrtx_buffer {
	uint32_t magic;
	uint32_t handle;
	struct nrti_device *device;
	uint32_t core;
	uint64_t bytes;
	void *va; /* mapped on demand */
	struct nrti_peer *peers; /* under the device's lock */
};

struct nrtx_program {
	uint32_t magic;
	uint32_t handle;
	struct nrti_device *device;
	uint32_t core;
	uint32_t n_slots;
	uint32_t n_args; /* slots that are not scratch */
	uint64_t scratch_bytes;
	struct nprog_slot *slots;
	char name[NPROG_NAME_BYTES];
	struct nrtx_program *prev, *next; /* under device->lock */
};

/* Host memory that the device reaches, used as a ring. */
struct nrti_piece {
	uint64_t point; /* of the stream: then it is free */
	uint64_t end; /* count of bytes */
};

#define NRTI_PIECES 256

struct nrti_staging {
	uint32_t handle; /* 0: none yet */
	uint8_t *ptr;
	uint64_t bytes; /* power of two */
	uint64_t head, tail; /* counts of bytes */
	struct nrti_piece piece[NRTI_PIECES];
	uint32_t first, n;
};

/* Waits for other streams that the next operation takes along. */
#define NRTI_WAITS_MAX (NRTI_FENCES_MAX - 1)

enum nrti_last { NRTI_NOTHING, NRTI_LAUNCH, NRTI_COPY };

struct nrtx_stream {
	uint32_t magic;
	uint64_t id;
	_Atomic unsigned int refs;
	struct nrti_device *device;
	uint32_t core;
	uint64_t cores; /* of the device, where its contexts may be */
	uint32_t priority;
	uint32_t sync;
	_Atomic uint64_t seq; /* last operation */
	_Atomic uint64_t reached; /* known to be reached */
	pthread_mutex_t lock; /* for all below, and for queueing */
	uint32_t ctx; /* 0: none, could not be made again */
	uint32_t ctx_core; /* core of the device that the context is on */
	enum nrti_last last;
	struct nrtx_point wait[NRTI_WAITS_MAX];
	uint32_t n_waits;
	struct nrtx_stream *held[NRTI_WAITS_MAX]; /* references during a submission */
	uint32_t n_held;
	struct nrti_slot *slots; /* facts.slots_max */
	struct nrtx_buffer *scratch;
	struct nrti_staging staging;
	struct nrtx_stats gone; /* of contexts before this one */
	bool failed; /* everything is dropped until the error is reported */
	NRT_STATUS error;
	char error_text[NRTI_ERROR_BYTES];
	struct nrtx_fault fault; /* goes with error */
	struct nrtx_fault last_fault; /* as reported */
};

/* --- error.c ------------------------------------------------------------------- */

/* Sets this thread's text and returns status. */
NRT_STATUS nrti_error(NRT_STATUS status, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* The same for a negative errno; its meaning is appended. */
NRT_STATUS nrti_errno(int error, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Status and sentence for a context that died. program may be NULL. */
NRT_STATUS nrti_fault_text(const struct nrti_ctx_state *state, const char *program, char *text,
			   size_t bytes);
void nrti_fault_of(const struct nrti_ctx_state *state, const char *program,
		   struct nrtx_fault *fault);

/* --- device.c ------------------------------------------------------------------ */

/* Opens the devices unless that is done. init: after nrt_close() too. */
NRT_STATUS nrti_runtime_open(bool init);
void nrti_runtime_close(void);
/* NRT_UNINITIALIZED or NRT_CLOSED with text unless nrt_init() was called. */
NRT_STATUS nrti_runtime_check(void);
void nrti_runtime_mark_init(void);
/* A core, or NULL with the thread's error set. Opens the runtime. */
struct nrti_core *nrti_core_get(uint32_t core, NRT_STATUS *status);
uint32_t nrti_core_total(void); /* without NEURON_RT_VISIBLE_CORES and _NUM_CORES */
struct nrti_device *nrti_device_get(struct nrti_device *device);
void nrti_device_put(struct nrti_device *device);
/* May calls be made? Else the thread's error is set. */
NRT_STATUS nrti_device_check(const struct nrti_device *device);
/* The same without an error, for what frees. */
bool nrti_device_alive(const struct nrti_device *device);
uint64_t nrti_now_ns(void);

/* --- alloc.c ------------------------------------------------------------------- */

NRT_STATUS nrti_buffer_alloc(uint32_t core, uint64_t bytes, uint32_t flags,
			     struct nrtx_buffer **buffer);
NRT_STATUS nrti_buffer_map(struct nrtx_buffer *buffer, void **va);
/* Handle of the buffer on a device, perhaps another than its own; -EXDEV: out of its reach. */
int nrti_buffer_handle(struct nrtx_buffer *buffer, struct nrti_device *device, uint32_t *handle);
NRT_STATUS nrti_buffer_check(const struct nrtx_buffer *buffer, uint64_t offset, uint64_t bytes,
			     const char *what);

/* --- program.c ----------------------------------------------------------------- */

/* Name of a loaded program; false: unloaded. */
bool nrti_program_name(struct nrti_device *device, uint32_t handle, char *name, size_t bytes);

/* --- queue.c ------------------------------------------------------------------- */

/* As nrtx_stream_create(), on one of the logical core's cores: of them the which-th. */
NRT_STATUS nrti_stream_create_at(uint32_t core, uint32_t which, struct nrtx_stream **stream);
NRT_STATUS nrti_stream_check(const struct nrtx_stream *stream);
/* In fences for the next operation; their handles are valid until fences_done. Lock held. */
uint32_t nrti_stream_fences(struct nrtx_stream *stream, enum nrti_last kind, struct nrti_fence *in);
void nrti_stream_fences_done(struct nrtx_stream *stream);
/* Waits for a point with the stream's lock held or not. 0 or -errno. */
int nrti_stream_wait_seq(struct nrtx_stream *stream, uint64_t seq);
/* Looks whether the context died; keeps the error. Lock held. */
void nrti_stream_look(struct nrtx_stream *stream);
/* Returns the kept error and makes the stream work again. Lock held. */
NRT_STATUS nrti_stream_report(struct nrtx_stream *stream);
/* After a failed submission: keeps a dead context's error (success then), else explains. */
NRT_STATUS nrti_stream_refused(struct nrtx_stream *stream, int error, const char *what);
/* Waits for everything queued on all streams of a device. */
void nrti_streams_drain(struct nrti_device *device);
/* Sums of the living streams of a core. */
void nrti_streams_stats(uint32_t core, struct nrtx_stats *sum);

/* --- copy.c -------------------------------------------------------------------- */

void nrti_staging_free(struct nrtx_stream *stream);
/* Queues setting bytes to a value. */
NRT_STATUS nrti_fill(struct nrtx_stream *stream, struct nrtx_buffer *dst, uint64_t offset,
		     int value, uint64_t bytes);

#endif /* NRTI_H */
