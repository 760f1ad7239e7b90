/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The virtual Trainium inside the calling process, behind calls with the
 * semantics of the kernel driver: buffers, contexts, programs, launches, copies
 * and timeline fences. Only the transport of the runtime uses it.
 *
 * All functions may be called from any thread. They return 0 or a negative
 * errno: EINVAL bad argument, ENOENT no such handle, ENOMEM no host memory, ENODEV
 * the device failed for good; others are named at each. Handles are never 0.
 */
#ifndef NM_INPROC_H
#define NM_INPROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "neuron_model.h"

struct nm_inproc;

struct nm_inproc_config {
	struct nm_server *server; /* as in nm_config, with the place in it; NULL: alone */
	unsigned int number;
	const char *chip; /* as in nm_config; NULL: trn2 */
	unsigned int cores; /* 0: as many as the chip has */
	uint64_t hbm_bytes; /* of each stack; 0: 4 GiB */
	uint64_t serial; /* 0: a fixed default */
	unsigned int device_id;
	uint64_t exec_timeout_ns; /* a launch that runs longer is stopped; 0: never */
	uint32_t check; /* NM_CHECK_* */
	const char *report; /* as in nm_config */
	unsigned int threads; /* as in nm_config */
	int log_level; /* NM_LOG_* */
	nm_log_fn log; /* NULL: stderr */
	void *user; /* passed to log */
};

/* Creates a device and its driver. Also EIO: the device does not answer as it should. */
int nm_inproc_open(const struct nm_inproc_config *config, struct nm_inproc **ip);
/* No call may be under way. Everything that is left is cancelled and freed. */
void nm_inproc_close(struct nm_inproc *ip);

/* As nm_device_flush(). */
void nm_inproc_flush(struct nm_inproc *ip);

struct nm_inproc_facts {
	uint32_t arch;
	uint32_t cores;
	uint32_t cores_joined; /* by the chip, from each multiple of this on; 1: none */
	uint32_t exec_version; /* major << 16 | minor */
	uint32_t pci_device;
	uint32_t pci_revision;
	uint32_t sbuf_bytes; /* a partition */
	uint32_t psum_bytes; /* a partition */
	uint32_t slots_max;
	uint32_t inflight_max;
	uint64_t serial;
};
void nm_inproc_facts(struct nm_inproc *ip, struct nm_inproc_facts *facts);

struct nm_inproc_memory {
	uint64_t hbm_bytes;
	uint64_t hbm_used;
	uint64_t host_used;
	uint64_t granule;
};
void nm_inproc_memory(struct nm_inproc *ip, struct nm_inproc_memory *memory);

/* --- buffers ------------------------------------------------------------------- */

#define NM_BO_HBM  1u /* device memory */
#define NM_BO_HOST 2u /* host memory that the device reaches */
#define NM_BO_MMAP 4u /* nm_inproc_bo_map() allowed */
#define NM_BO_PEER 8u /* HBM of a neighbour, for copies only */

/* Zeroed; *size is rounded up. Also ENOSPC: not enough HBM. */
int nm_inproc_bo_create(struct nm_inproc *ip, uint64_t *size, uint32_t flags, uint32_t *handle);
/* Address of its bytes, valid until it is closed. Also EACCES: without NM_BO_MMAP. */
int nm_inproc_bo_map(struct nm_inproc *ip, uint32_t handle, void **ptr);
/*
 * A handle for HBM of another device, to copy from and to over NeuronLink. EXDEV: the two are no
 * neighbours. The owner keeps the buffer until the handle is closed and its copies are done; this is
 * not looked at.
 */
int nm_inproc_bo_import(struct nm_inproc *ip, struct nm_inproc *owner, uint32_t owner_handle,
			uint32_t *handle);
/* The memory goes when nothing in flight uses it. */
int nm_inproc_bo_close(struct nm_inproc *ip, uint32_t handle);

/* --- timelines ------------------------------------------------------------------ */

struct nm_inproc_sync {
	uint32_t handle;
	uint32_t flags; /* zero */
	uint64_t point;
};

/* Most fences in or out of one submission; more give E2BIG. */
#define NM_INPROC_FENCES_MAX 16

int nm_inproc_sync_create(struct nm_inproc *ip, uint32_t *handle);
int nm_inproc_sync_destroy(struct nm_inproc *ip, uint32_t handle);
/* Waits until CLOCK_MONOTONIC deadline_ns, INT64_MAX for ever. Also ETIME. */
int nm_inproc_sync_wait(struct nm_inproc *ip, uint32_t handle, uint64_t point, int64_t deadline_ns);
/* Highest point reached. */
int nm_inproc_sync_query(struct nm_inproc *ip, uint32_t handle, uint64_t *point);
/* The point is reached by the host. EINVAL: not above all earlier ones. */
int nm_inproc_sync_signal(struct nm_inproc *ip, uint32_t handle, uint64_t point);
/* Device time when a point was reached; 0: not yet, or more than 1000 points ago. */
int nm_inproc_sync_time(struct nm_inproc *ip, uint32_t handle, uint64_t point, uint64_t *ns);

/* --- programs -------------------------------------------------------------------- */

/* ENOEXEC malformed (logged as NM_LOG_GUEST), EOPNOTSUPP version or arch, E2BIG, ENOSPC. */
int nm_inproc_program_load(struct nm_inproc *ip, const void *image, uint64_t size,
			   uint32_t *program);
int nm_inproc_program_unload(struct nm_inproc *ip, uint32_t program);

/* --- contexts --------------------------------------------------------------------- */

/*
 * On one of a set of cores, bit n is core n, as the kernel driver chooses: that with the fewest
 * contexts that take launches, the lowest of several. priority: 0 normal, 1 low, 2 high. core: out,
 * the one taken; may be NULL. Also ENOSPC: all queues of each of the cores are taken.
 */
int nm_inproc_ctx_create(struct nm_inproc *ip, uint64_t cores, uint32_t priority, uint32_t *ctx,
			 uint32_t *core);
/* Cancels its launches. */
int nm_inproc_ctx_destroy(struct nm_inproc *ip, uint32_t ctx);

enum nm_inproc_ctx_status { NM_CTX_OK, NM_CTX_FAULTED, NM_CTX_TIMEDOUT };

struct nm_inproc_ctx_state {
	uint32_t state; /* enum nm_inproc_ctx_status */
	uint32_t fault; /* EXI_FAULT_* */
	uint32_t engine; /* ~0: none */
	uint32_t pc;
	uint32_t opcode;
	uint32_t slot; /* ~0: none */
	uint32_t program; /* 0: unloaded since */
	uint64_t value;
	uint64_t limit;
	uint64_t launches; /* sums over launches completed without fault */
	uint64_t device_ns;
	uint64_t insts[5];
	uint64_t dma_bytes;
};
int nm_inproc_ctx_state(struct nm_inproc *ip, uint32_t ctx, struct nm_inproc_ctx_state *state);

/* --- work -------------------------------------------------------------------------- */

#define NM_SLOT_INLINE 1u /* scalar slot: offset holds the value, size is 8, handle 0 */

struct nm_inproc_slot {
	uint32_t handle;
	uint32_t flags;
	uint64_t offset;
	uint64_t size;
};

struct nm_inproc_submit {
	uint32_t ctx;
	uint32_t program;
	uint32_t n_slots;
	uint32_t n_in;
	uint32_t n_out;
	const struct nm_inproc_slot *slots;
	const struct nm_inproc_sync *in;
	const struct nm_inproc_sync *out;
};

/*
 * Launches of one context run in order. Blocks while facts.inflight_max are in
 * flight. EINVAL slots do not fit the program; EIO the context is dead. Nothing
 * has happened if it fails.
 */
int nm_inproc_submit(struct nm_inproc *ip, const struct nm_inproc_submit *submit);

struct nm_inproc_copy {
	uint32_t src;
	uint32_t dst;
	uint64_t src_offset;
	uint64_t dst_offset;
	uint64_t size;
	uint32_t n_in;
	uint32_t n_out;
	const struct nm_inproc_sync *in;
	const struct nm_inproc_sync *out;
};

/* Copies by the device's DMA engines; ordered by fences alone. */
int nm_inproc_copy(struct nm_inproc *ip, const struct nm_inproc_copy *copy);

#endif /* NM_INPROC_H */
