/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef __NEURON_FENCE_H__
#define __NEURON_FENCE_H__

#include <linux/dma-fence.h>
#include <linux/spinlock.h>

/**
 * struct neuron_fence - The hardware is done with a launch or a copy
 *
 * Signalled by the interrupt that reports completion, or by whoever stops the
 * queue. The lock is inside, so that a fence may outlive device and module.
 */
struct neuron_fence {
	/** @base: Base, first so that dma_fence_free() frees all of it. */
	struct dma_fence base;
	/** @lock: Lock of @base. */
	spinlock_t lock;
	/** @program: Handle of the program launched, for fault reports. */
	u32 program;
	/** @program_id: Its id. */
	u64 program_id;
};

struct neuron_fence *neuron_fence_alloc(void);
void neuron_fence_free(struct neuron_fence *fence);
void neuron_fence_init(struct neuron_fence *fence, u64 context, u64 seqno);
void neuron_fence_signal(struct neuron_fence *fence, int error);

#endif /* __NEURON_FENCE_H__ */
