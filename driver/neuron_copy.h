/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef __NEURON_COPY_H__
#define __NEURON_COPY_H__

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>

#include <drm/gpu_scheduler.h>

#include "neuron_hal.h"
#include "neuron_ring.h"
#include "neuron_sync.h"

struct drm_device;
struct drm_file;
struct neuron_bo;
struct neuron_copy_job;
struct neuron_device;
struct neuron_file;
struct neuron_regs;

/* Most bytes of neuron_copy_polled(). */
#define NEURON_COPY_POLLED_MAX (16 * UDMA_DESC_LEN_MAX)

/* Copies handed to one engine at a time. */
#define NEURON_COPY_JOBS NEURON_RING_MARKS

/**
 * struct neuron_copy_engine - A UDMA engine that copies for the host
 */
struct neuron_copy_engine {
	/** @ndev: Device. */
	struct neuron_device *ndev;
	/** @regs: Registers of the engine. */
	struct neuron_regs *regs;
	/** @engine: Number of the UDMA engine. */
	unsigned int engine;
	/** @sched: Scheduler; its jobs are struct neuron_copy_job. */
	struct drm_gpu_scheduler sched;
	/** @lock: Protects all below. */
	spinlock_t lock;
	/** @ring: The queue. */
	struct neuron_ring ring;
	/** @jobs: Jobs on the ring, oldest first. */
	struct list_head jobs;
	/** @next: First of them that is not wholly on the ring; NULL if none. */
	struct neuron_copy_job *next;
	/** @error: 0 while it runs, else what new jobs end with. */
	int error;
	/** @paused: The device or queue is down: jobs wait in @jobs, nobody touches the ring. */
	bool paused;
	/** @batches: Batches done. */
	u64 batches;
	/** @seen: @batches at the last time-out. */
	u64 seen;
	/** @fence_context: Of its fences. */
	u64 fence_context;
	/** @seqno: Of the last fence. */
	u64 seqno;
};

/**
 * struct neuron_copy - All copy engines
 */
struct neuron_copy {
	/** @engine: Engines. */
	struct neuron_copy_engine engine[NEURON_COPY_ENGINES_MAX];
	/** @sched: Their schedulers, as entities want them. */
	struct drm_gpu_scheduler *sched[NEURON_COPY_ENGINES_MAX];
	/** @engines: How many. */
	unsigned int engines;
};

/**
 * struct neuron_copy_queue - Copies of one user in order of submission
 */
struct neuron_copy_queue {
	/** @entity: Entity; it moves to the least loaded engine when idle. */
	struct drm_sched_entity entity;
	/** @lock: Held from arming to pushing a job. */
	struct mutex lock;
	/** @inflight: Bound on its jobs. */
	struct neuron_inflight inflight;
};

int neuron_copy_init(struct neuron_device *ndev);
int neuron_copy_start(struct neuron_device *ndev);
void neuron_copy_pause(struct neuron_device *ndev);
void neuron_copy_resume(struct neuron_device *ndev);
void neuron_copy_open(struct neuron_device *ndev);
int neuron_copy_polled(struct neuron_device *ndev, u64 dst, u64 src, u32 bytes);
void neuron_copy_close(struct neuron_device *ndev);
void neuron_copy_stop(struct neuron_device *ndev, int error);
void neuron_copy_drain(struct neuron_device *ndev);

int neuron_copy_queue_init(struct neuron_device *ndev, struct neuron_copy_queue *queue);
void neuron_copy_queue_fini(struct neuron_copy_queue *queue);
int neuron_copy_scrub(struct neuron_file *nfile, struct neuron_bo *bo);
int neuron_copy_move(struct neuron_bo *bo, bool out);
int neuron_ioctl_copy(struct drm_device *drm, void *data, struct drm_file *file);

#endif /* __NEURON_COPY_H__ */
