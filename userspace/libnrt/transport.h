/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the runtime needs of a device: the operations of the kernel's ioctls
 * (uapi/drm/neuron_accel.h has their semantics). All that is above never knows
 * whether the accel node or the virtual Trainium in this process answers.
 *
 * Functions return 0 or -errno, with the errors of the ioctl of that name, and
 * may be called from any thread. Handles are per device and never 0.
 */
#ifndef NRTI_TRANSPORT_H
#define NRTI_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "env.h"

struct nrti_facts {
	uint32_t arch;
	uint32_t cores;
	uint32_t cores_joined; /* by the chip, from each multiple of this on; 1: none */
	uint32_t exec_version;
	uint32_t pci_device;
	uint32_t pci_revision;
	uint32_t sbuf_bytes;
	uint32_t psum_bytes;
	uint32_t slots_max;
	uint32_t inflight_max;
	uint64_t serial;
};

struct nrti_memory {
	uint64_t hbm_bytes;
	uint64_t hbm_used; /* by everyone */
	uint64_t granule;
};

/* Flags of bo_create. */
#define NRTI_BO_HBM  1u
#define NRTI_BO_HOST 2u
#define NRTI_BO_MMAP 4u

#define NRTI_CTX_OK	  0
#define NRTI_CTX_FAULTED  1
#define NRTI_CTX_TIMEDOUT 2
#define NRTI_CTX_INNOCENT 3

struct nrti_ctx_state {
	uint32_t state; /* NRTI_CTX_* */
	uint32_t fault;
	uint32_t engine;
	uint32_t pc;
	uint32_t opcode;
	uint32_t slot;
	uint32_t program;
	uint64_t value;
	uint64_t limit;
	uint64_t launches;
	uint64_t device_ns;
	uint64_t insts[5];
	uint64_t dma_bytes;
};

/* A point of a timeline. */
struct nrti_fence {
	uint32_t handle;
	uint32_t flags; /* zero */
	uint64_t point;
};

#define NRTI_SLOT_INLINE 1u

struct nrti_slot {
	uint32_t handle;
	uint32_t flags;
	uint64_t offset;
	uint64_t size;
};

struct nrti_submit {
	uint32_t ctx;
	uint32_t program;
	uint32_t n_slots;
	uint32_t n_in;
	const struct nrti_slot *slots;
	const struct nrti_fence *in;
	struct nrti_fence out;
};

struct nrti_copy {
	uint32_t src;
	uint32_t dst;
	uint64_t src_offset;
	uint64_t dst_offset;
	uint64_t size;
	uint32_t n_in;
	const struct nrti_fence *in;
	struct nrti_fence out;
};

/* Most fences that n_in may say. */
#define NRTI_FENCES_MAX 16

struct nrti_transport {
	const char *name;

	/* Devices that open() would find, 0 when there is none. */
	unsigned int (*count)(const struct nrti_config *config);
	int (*open)(const struct nrti_config *config, unsigned int index, void **dev);
	/* No call may be under way; frees all that is left. */
	void (*close)(void *dev);

	int (*facts)(void *dev, struct nrti_facts *facts);
	int (*memory)(void *dev, struct nrti_memory *memory);

	int (*bo_create)(void *dev, uint64_t *size, uint32_t flags, uint32_t *handle);
	/* Address of its bytes for the CPU until bo_unmap; size as bo_create gave it. */
	int (*bo_map)(void *dev, uint32_t handle, uint64_t size, void **ptr);
	void (*bo_unmap)(void *dev, void *ptr, uint64_t size);
	void (*bo_close)(void *dev, uint32_t handle);
	/* Handle on dev for HBM of another device of the same transport, to copy from and to. -EXDEV:
	 * dev does not reach it. The owner's handle outlives it and the copies that use it. */
	int (*bo_import)(void *dev, void *owner, uint32_t owner_handle, uint32_t *handle);

	/* On one of a set of cores, bit n is core n; *core: which. */
	int (*ctx_create)(void *dev, uint64_t cores, uint32_t priority, uint32_t *ctx,
			  uint32_t *core);
	void (*ctx_destroy)(void *dev, uint32_t ctx);
	int (*ctx_state)(void *dev, uint32_t ctx, struct nrti_ctx_state *state);

	int (*program_load)(void *dev, const void *image, uint64_t size, uint32_t *program);
	void (*program_unload)(void *dev, uint32_t program);

	int (*submit)(void *dev, const struct nrti_submit *submit);
	int (*copy)(void *dev, const struct nrti_copy *copy);

	int (*sync_create)(void *dev, uint32_t *handle);
	void (*sync_destroy)(void *dev, uint32_t handle);
	/* Until CLOCK_MONOTONIC deadline_ns, INT64_MAX for ever; -ETIME. */
	int (*sync_wait)(void *dev, uint32_t handle, uint64_t point, int64_t deadline_ns);
	int (*sync_query)(void *dev, uint32_t handle, uint64_t *point);
	/* Time when a point was reached, ns of a clock of the device; 0: unknown or not yet. */
	int (*sync_time)(void *dev, uint32_t handle, uint64_t point, uint64_t *ns);
};

extern const struct nrti_transport nrti_transport_accel;
extern const struct nrti_transport nrti_transport_model;

#endif /* NRTI_TRANSPORT_H */
