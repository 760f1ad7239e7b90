/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams, buffers and launches: the part of libnrt that frameworks build on.
 *
 * This header is an extension of this implementation (prefix nrtx_); the
 * published nrt_* calls of nrt.h are written on top of it. It hides whether the
 * device is /dev/accel/accelN or the virtual Trainium in this process.
 *
 * Cores are counted over all devices, in the order of device and core, after
 * NEURON_RT_VISIBLE_CORES. nrt_init() or the first call here opens them. With
 * NEURON_LOGICAL_NC_CONFIG=2 each is a logical one: two cores of the chip.
 *
 * Threading: every function may be called from any thread; calls on one stream
 * are serialised by the library in the order in which they arrive.
 *
 * Errors: functions return an NRT_STATUS; nrtx_error_text() of the same thread
 * then says what, where, which value and limit, and what to do. What fails
 * later on the device (a fault, a time-out) is kept in the stream and returned
 * once, by the next nrtx_stream_* call that waits; the stream then works again
 * on a fresh context, and everything queued behind the failed launch was
 * cancelled.
 */
#ifndef NRT_STREAM_H
#define NRT_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nrt/nrt_status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct nrtx_buffer nrtx_buffer_t;
typedef struct nrtx_program nrtx_program_t;
typedef struct nrtx_stream nrtx_stream_t;

/* Text of this thread's last failure, never NULL; valid until the thread's next call. */
const char *nrtx_error_text(void);

/* --- cores ------------------------------------------------------------------ */

struct nrtx_core_info {
	uint32_t arch; /* 2 trn1/inf2, 3 trn2, 4 trn3 */
	uint32_t device; /* device that the core is on */
	uint32_t core; /* its number there; of a logical core: that of its first */
	uint32_t sbuf_bytes; /* a partition, usable by programs */
	uint32_t psum_bytes; /* a partition */
	uint32_t virtual_device; /* 1: the virtual Trainium, in process or in the VM's PCI slot */
	uint64_t hbm_bytes; /* of the device, all its cores */
	uint64_t hbm_free; /* now */
	uint64_t serial;
	char transport[16]; /* "accel" or "model" */
	char name[32]; /* "Trainium2" ... */
	uint32_t cores; /* of the chip that it consists of, from core on */
};

NRT_STATUS nrtx_core_count(uint32_t *count);
NRT_STATUS nrtx_core_info(uint32_t core, struct nrtx_core_info *info);

/* --- memory ------------------------------------------------------------------ */

/*
 * Allocates zeroed HBM on the core's device. NRT_RESOURCE when HBM is full
 * (text: wanted, free, total). bytes > 0.
 */
NRT_STATUS nrtx_buffer_alloc(uint32_t core, uint64_t bytes, nrtx_buffer_t **buffer);

/* Frees it once nothing in flight uses it; returns at once. NULL is fine. */
void nrtx_buffer_free(nrtx_buffer_t *buffer);

/* Size after rounding up. */
uint64_t nrtx_buffer_bytes(const nrtx_buffer_t *buffer);

/* --- programs ---------------------------------------------------------------- */

/* Loads an image of hw/neuron_program.h; the bytes may be dropped afterwards. */
NRT_STATUS nrtx_program_load(uint32_t core, const void *image, size_t bytes,
			     nrtx_program_t **program);

/* Forgets it once nothing in flight uses it. NULL is fine. */
void nrtx_program_unload(nrtx_program_t *program);

/* --- streams ------------------------------------------------------------------ */

/*
 * A stream runs launches and copies in order; streams run beside each other.
 * priority: 0 normal, 1 low, 2 high. Of a logical core's cores it takes the one
 * with the fewest streams and other contexts, also of other processes.
 */
NRT_STATUS nrtx_stream_create(uint32_t core, uint32_t priority, nrtx_stream_t **stream);

/* Core of the device on which its launches run. After an error it may be another of the logical
 * core's. */
NRT_STATUS nrtx_stream_core(nrtx_stream_t *stream, uint32_t *core);

/* Waits for its work, then frees it. NULL is fine. */
void nrtx_stream_destroy(nrtx_stream_t *stream);

/* What a launch finds in one slot: a range of a buffer, or for a scalar slot a value. */
struct nrtx_arg {
	nrtx_buffer_t *buffer; /* NULL: scalar */
	uint64_t offset; /* bytes; scalar: the value's bits, a shorter dtype in the low bytes */
	uint64_t bytes; /* visible from there; scalar: 8 */
};

/*
 * Queues a launch. args: one per slot of the program in order, without its
 * scratch slots, which the library binds to memory of the stream. Buffers and
 * program stay alive until the launch is done, even if freed before.
 */
NRT_STATUS nrtx_launch(nrtx_stream_t *stream, nrtx_program_t *program, const struct nrtx_arg *args,
		       uint32_t n_args);

/* Queues a copy to the device; returns when host may be changed. */
NRT_STATUS nrtx_copy_to_device(nrtx_stream_t *stream, nrtx_buffer_t *dst, uint64_t offset,
			       const void *host, uint64_t bytes);

/* Copies to the host and waits for it. */
NRT_STATUS nrtx_copy_to_host(nrtx_stream_t *stream, void *host, nrtx_buffer_t *src, uint64_t offset,
			     uint64_t bytes);

/* Queues a copy between buffers; the ranges do not overlap. One may be on another device than the
 * stream: what is to be read there must be complete. Neighbours copy over NeuronLink, without the host;
 * between others, the bytes pass through the host, and it returns when they are there. */
NRT_STATUS nrtx_copy_device(nrtx_stream_t *stream, nrtx_buffer_t *dst, uint64_t dst_offset,
			    nrtx_buffer_t *src, uint64_t src_offset, uint64_t bytes);

/* --- order between streams ---------------------------------------------------- */

/* A place in a stream: all that was queued before it. Zero: the beginning. */
struct nrtx_point {
	uint64_t stream; /* id of the stream, never used twice in a process */
	uint64_t seq;
};

/* The place after what is queued now. */
struct nrtx_point nrtx_stream_record(nrtx_stream_t *stream);

/* What is queued from now on waits for the point (of any stream; a destroyed stream's is reached). */
NRT_STATUS nrtx_stream_wait(nrtx_stream_t *stream, struct nrtx_point point);

/* Has the point been reached? */
bool nrtx_point_reached(struct nrtx_point point);

/* Waits for it; does not return the stream's error. */
void nrtx_point_sync(struct nrtx_point point);

/* Device time when it was reached, ns; 0 if not yet. */
uint64_t nrtx_point_device_ns(struct nrtx_point point);

/* Waits for all queued work; the stream's error, if any. */
NRT_STATUS nrtx_stream_sync(nrtx_stream_t *stream);

/* Is all work done? Does not wait and does not clear an error. */
bool nrtx_stream_idle(nrtx_stream_t *stream);

/* --- errors ------------------------------------------------------------------- */

/* The last fault of a stream, as returned by a waiting call. */
struct nrtx_fault {
	uint32_t status; /* EXI_FAULT_* of hw/neuron_queue.h; 0: none */
	uint32_t timed_out; /* 1: stopped by the time-out */
	uint32_t bad_index; /* 1: value, signed, is an index that names none of limit rows */
	char engine[12]; /* "vector" ..., "" if none in particular */
	char program[64]; /* name of the program */
	uint32_t pc; /* instruction index in the engine's stream */
	uint32_t opcode;
	uint32_t slot; /* ~0: none */
	uint64_t value;
	uint64_t limit;
};
void nrtx_stream_fault(nrtx_stream_t *stream, struct nrtx_fault *fault);

/* --- statistics ---------------------------------------------------------------- */

/* Sums over this process's streams on the core since the start or the last reset. */
struct nrtx_stats {
	uint64_t launches;
	uint64_t insts[5]; /* tensor, vector, scalar, gpsimd, sync */
	uint64_t device_ns; /* time that launches took, as the device timed them */
	uint64_t dma_bytes; /* moved by programs */
	uint64_t to_device_bytes;
	uint64_t to_host_bytes;
};
NRT_STATUS nrtx_stats(uint32_t core, struct nrtx_stats *stats, bool reset);

#ifdef __cplusplus
}
#endif

#endif /* NRT_STREAM_H */
