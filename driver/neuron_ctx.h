/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef __NEURON_CTX_H__
#define __NEURON_CTX_H__

#include <linux/kref.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/uidgid.h>
#include <linux/workqueue.h>

#include <drm/gpu_scheduler.h>

#include "drm/neuron_accel.h"
#include "neuron_queue.h"
#include "neuron_sync.h"

struct drm_device;
struct drm_file;
struct neuron_core;
struct neuron_device;
struct neuron_fence;
struct neuron_file;
struct neuron_stream;

/* Entries of a launch ring: launches of a context on the device at a time. */
#define NEURON_RING_ENTRIES 32

/**
 * struct neuron_queue_mem - What the device sees of a queue: one coherent allocation
 */
struct neuron_queue_mem {
	/** @cq: Completion ring. */
	struct exi_record cq[NEURON_RING_ENTRIES];
	/** @ring: Launch ring. */
	struct exi_launch ring[NEURON_RING_ENTRIES];
};

/**
 * struct neuron_ctx - A context: one queue of one core, its scheduler and entity
 *
 * Counted: its id holds a reference and each of its jobs another.
 */
struct neuron_ctx {
	/** @ref: References. */
	struct kref ref;
	/** @ndev: Device. */
	struct neuron_device *ndev;
	/** @nfile: Owner, counted. */
	struct neuron_file *nfile;
	/** @core: NeuronCore. */
	struct neuron_core *core;
	/** @core_index: Its number. */
	u32 core_index;
	/** @queue: Its queue there. */
	u32 queue;
	/** @id: Id in the file. */
	u32 id;
	/** @priority: DRM_NEURON_PRIORITY_*. */
	u32 priority;
	/** @pid: Process that made it, for messages. */
	pid_t pid;
	/** @uid: User who made it. */
	kuid_t uid;
	/** @timeout_ms: Longest run of a launch; 0: no limit. */
	unsigned int timeout_ms;

	/** @sched: Scheduler of this queue alone: a time-out stops nobody else. */
	struct drm_gpu_scheduler sched;
	/** @entity: Its only entity. */
	struct drm_sched_entity entity;
	/** @submit_lock: Held from arming to pushing a job. */
	struct mutex submit_lock;
	/** @inflight: Bound on its jobs. */
	struct neuron_inflight inflight;

	/** @mem: Rings; NULL once the hardware is gone. Protected by &neuron_device.reset_lock. */
	struct neuron_queue_mem *mem;
	/** @mem_dma: Bus address of @mem. */
	dma_addr_t mem_dma;
	/** @slots: A slot table for each entry. */
	struct exi_slot *slots[NEURON_RING_ENTRIES];
	/** @slots_dma: Their bus addresses. */
	dma_addr_t slots_dma[NEURON_RING_ENTRIES];

	/* All below is protected by &neuron_core.lock. */

	/** @running: The hardware queue takes entries. */
	bool running;
	/** @parked: It will again when the device wakes up. */
	bool parked;
	/** @sleep_fences: @fence_context from then on. */
	u64 sleep_fences;
	/** @head: Launches ever completed. */
	u32 head;
	/** @tail: Launches ever rung. */
	u32 tail;
	/** @pending: Fences of the launches between. */
	struct neuron_fence *pending[NEURON_RING_ENTRIES];
	/** @fence_context: Of those fences. */
	u64 fence_context;
	/** @stop_error: What the launch that is running ends with when it is aborted. */
	int stop_error;
	/** @suspect: EXI_Q_STARTED at the last time-out that found a launch running. */
	u32 suspect;
	/** @state: What the user may know; @state.program is not checked yet. */
	struct drm_neuron_ctx_state state;
	/** @program_id: Id behind @state.program. */
	u64 program_id;
	/** @stream: Where traces go; set under &neuron_device.reset_lock too. NULL: nowhere. */
	struct neuron_stream *stream;

	/** @stop_work: Stops the hardware queue of a destroyed context. */
	struct work_struct stop_work;
	/** @free_work: Runs when @ref is 0. */
	struct work_struct free_work;
};

struct neuron_ctx *neuron_ctx_lookup(struct neuron_file *nfile, u32 id);
void neuron_ctx_put(struct neuron_ctx *ctx);
void neuron_ctx_destroy(struct neuron_ctx *ctx);
void neuron_ctx_stop(struct neuron_ctx *ctx, u32 state, int error);
void neuron_ctx_kill_all(struct neuron_device *ndev, int error);
void neuron_ctx_forget_all(struct neuron_device *ndev);
int neuron_ctx_start_queue(struct neuron_ctx *ctx);
void neuron_ctx_for_each(struct neuron_device *ndev, void (*fn)(struct neuron_ctx *ctx, int arg),
			 int arg);
void neuron_ctx_release_all(struct neuron_device *ndev);
void neuron_core_began(struct neuron_core *core);
bool neuron_ctx_drain(struct neuron_ctx *ctx);
void neuron_ctx_drain_core(struct neuron_device *ndev, unsigned int core);

static inline u32 neuron_ctx_reg(const struct neuron_ctx *ctx, u32 reg)
{
	return EXI_QUEUE(ctx->core_index, ctx->queue) + reg;
}

int neuron_ioctl_ctx_create(struct drm_device *drm, void *data, struct drm_file *file);
int neuron_ioctl_ctx_destroy(struct drm_device *drm, void *data, struct drm_file *file);
int neuron_ioctl_ctx_state(struct drm_device *drm, void *data, struct drm_file *file);

#endif /* __NEURON_CTX_H__ */
