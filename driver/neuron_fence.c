// SPDX-License-Identifier: GPL-2.0-only

#include <linux/slab.h>

#include "neuron_compat.h"
#include "neuron_fence.h"

static const char *neuron_fence_driver_name(struct dma_fence *fence)
{
	return "neuron";
}

static const char *neuron_fence_timeline_name(struct dma_fence *fence)
{
	return "neuron-hw";
}

static const struct dma_fence_ops neuron_fence_ops = {
	.get_driver_name = neuron_fence_driver_name,
	.get_timeline_name = neuron_fence_timeline_name,
};

/**
 * neuron_fence_alloc - Memory for a fence, before the point of no return
 *
 * Return: the fence, not yet initialised; NULL without memory.
 */
struct neuron_fence *neuron_fence_alloc(void)
{
	return kzalloc_obj(struct neuron_fence);
}

/**
 * neuron_fence_free - Free a fence that was never initialised
 * @fence: the fence or NULL
 */
void neuron_fence_free(struct neuron_fence *fence)
{
	kfree(fence);
}

/**
 * neuron_fence_init - Make a fence that can be waited for
 * @fence: memory from neuron_fence_alloc(); holds one reference afterwards
 * @context: fence context of the queue
 * @seqno: number in it
 */
void neuron_fence_init(struct neuron_fence *fence, u64 context, u64 seqno)
{
	spin_lock_init(&fence->lock);
	dma_fence_init(&fence->base, &neuron_fence_ops, &fence->lock, context, seqno);
}

/**
 * neuron_fence_signal - Signal a fence and drop the caller's reference
 * @fence: initialised fence, signalled by nobody else
 * @error: 0 or -errno
 */
void neuron_fence_signal(struct neuron_fence *fence, int error)
{
	if (error)
		dma_fence_set_error(&fence->base, error);
	dma_fence_signal(&fence->base);
	dma_fence_put(&fence->base);
}
