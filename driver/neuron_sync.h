/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef __NEURON_SYNC_H__
#define __NEURON_SYNC_H__

#include <linux/atomic.h>
#include <linux/types.h>
#include <linux/wait.h>

struct dma_fence;
struct dma_fence_chain;
struct drm_file;
struct drm_neuron_array;
struct drm_sched_job;
struct drm_syncobj;

/* Most fences to wait for or to signal in one call. */
#define NEURON_SYNCS_MAX 1024

/**
 * struct neuron_sync_out - One fence that a job will signal
 */
struct neuron_sync_out {
	/** @syncobj: Where it goes, counted. */
	struct drm_syncobj *syncobj;
	/** @chain: Node for a timeline point, NULL for a binary syncobj. */
	struct dma_fence_chain *chain;
	/** @point: The point. */
	u64 point;
};

/**
 * struct neuron_sync_outs - All of them
 */
struct neuron_sync_outs {
	/** @out: The fences. */
	struct neuron_sync_out *out;
	/** @count: How many. */
	u32 count;
};

int neuron_sync_in(struct drm_file *file, const struct drm_neuron_array *array,
		   struct drm_sched_job *job);
int neuron_sync_out_prepare(struct drm_file *file, const struct drm_neuron_array *array,
			    struct neuron_sync_outs *outs);
void neuron_sync_out_publish(struct neuron_sync_outs *outs, struct dma_fence *fence);
void neuron_sync_out_free(struct neuron_sync_outs *outs);

/**
 * struct neuron_inflight - Bound on the jobs of one queue
 */
struct neuron_inflight {
	/** @count: Jobs. */
	atomic_t count;
	/** @wait: For those above the bound. */
	wait_queue_head_t wait;
};

void neuron_inflight_init(struct neuron_inflight *inflight);
int neuron_inflight_get_many(struct neuron_inflight *inflight, u32 n);
int neuron_inflight_get(struct neuron_inflight *inflight);
void neuron_inflight_put(struct neuron_inflight *inflight);

#endif /* __NEURON_SYNC_H__ */
