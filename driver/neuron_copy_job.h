/* SPDX-License-Identifier: GPL-2.0-only */
/* Copy jobs, for those who make them and those who carry them out; others want neuron_copy.h. */
#ifndef __NEURON_COPY_JOB_H__
#define __NEURON_COPY_JOB_H__

#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/types.h>

#include <drm/gpu_scheduler.h>

struct drm_gem_object;
struct neuron_bo;
struct neuron_copy_queue;
struct neuron_device;
struct neuron_fence;
struct neuron_file;
struct neuron_hal;
struct scatterlist;

/**
 * struct neuron_span - Where the next byte of one side of a copy lies
 */
struct neuron_span {
	/** @sg: Host memory; NULL: contiguous. */
	struct scatterlist *sg;
	/** @hal: Table of the device, with @sg. */
	const struct neuron_hal *hal;
	/** @addr: Device address. */
	u64 addr;
	/** @left: Contiguous bytes from there. */
	u64 left;
	/** @fixed: The same bytes over and over. */
	bool fixed;
};

/**
 * struct neuron_copy_job - A copy, scrub or move
 */
struct neuron_copy_job {
	/** @base: Base. */
	struct drm_sched_job base;
	/** @nfile: Whose it is, counted. */
	struct neuron_file *nfile;
	/** @queue: Queue that it came through. */
	struct neuron_copy_queue *queue;
	/** @src: Source, counted; NULL: zeroes. */
	struct drm_gem_object *src;
	/** @dst: Destination, counted; NULL for a scrub, whose bo waits for it anyway. */
	struct drm_gem_object *dst;
	/** @done: Signals when it is over. */
	struct neuron_fence *done;
	/** @started: @done was initialised. */
	bool started;
	/** @move: Somebody else may need it: runs after its file is closed, too. */
	bool move;

	/* Protected by the engine's lock from run_job until @done signals. */

	/** @node: In &neuron_copy_engine.jobs. */
	struct list_head node;
	/** @first_from: @from at the beginning, for a restart. */
	struct neuron_span first_from;
	/** @first_to: @to at the beginning. */
	struct neuron_span first_to;
	/** @from: What comes next of the source. */
	struct neuron_span from;
	/** @to: What comes next of the destination. */
	struct neuron_span to;
	/** @size: Bytes. */
	u64 size;
	/** @todo: Of them not yet on the ring. */
	u64 todo;
	/** @batches: On the ring. */
	u32 batches;
	/** @start: When it began. */
	ktime_t start;
};

void neuron_span_init(struct neuron_device *ndev, struct neuron_span *span, struct neuron_bo *bo,
		      u64 offset);
void neuron_copy_job_set(struct neuron_copy_job *job, const struct neuron_span *from,
			 const struct neuron_span *to, u64 size);
void neuron_copy_job_free(struct neuron_copy_job *job);

#endif /* __NEURON_COPY_JOB_H__ */
