// SPDX-License-Identifier: GPL-2.0-only
/*
 * Contexts: one queue of one core each. &neuron_device.reset_lock serialises
 * what starts, stops and frees hardware queues; &neuron_core.lock protects the
 * rings against the interrupt. A context leaves the core's table under both.
 *
 * Death: a fault (seen in a completion record), a time-out or destruction clear
 * @running; from then on jobs of the scheduler end without touching the device.
 * neuron_ctx_stop() makes the device let go of the rest and returns when every
 * fence of the queue has signalled.
 */

#include <linux/cred.h>
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/log2.h>
#include <linux/slab.h>

#include <drm/drm_drv.h>
#include <drm/drm_file.h>

#include "neuron_ctx.h"
#include "neuron_drv.h"
#include "neuron_dump.h"
#include "neuron_fence.h"
#include "neuron_place.h"
#include "neuron_prog.h"
#include "neuron_sched.h"
#include "neuron_stream.h"
#include "neuron_trace.h"

#define CTX_SLOT_TABLE_BYTES (EXI_SLOTS_MAX * sizeof(struct exi_slot))

static void ctx_write(struct neuron_ctx *ctx, u32 reg, u32 value)
{
	neuron_reg_write(&ctx->ndev->exi, neuron_ctx_reg(ctx, reg), value);
}

/* --- completion ---------------------------------------------------------- */

/* Is it not the program's mistake? */
static bool ctx_is_device_fault(u32 fault)
{
	return fault == EXI_FAULT_ECC || fault == EXI_FAULT_BUS || fault == EXI_FAULT_BAD_QUEUE;
}

static void ctx_report(struct neuron_ctx *ctx)
{
	const struct drm_neuron_ctx_state *state = &ctx->state;
	char where[96];

	snprintf(where, sizeof(where),
		 "engine %d pc %u opcode 0x%x slot %d value 0x%llx limit 0x%llx",
		 (int)state->engine, state->pc, state->opcode, (int)state->slot, state->value,
		 state->limit);
	if (ctx_is_device_fault(state->fault))
		drm_err_ratelimited(&ctx->ndev->drm,
				    "core %u context %u pid %d: launch %u: %s: %s\n",
				    ctx->core_index, ctx->id, ctx->pid, ctx->head,
				    exi_fault_text(state->fault), where);
	else
		drm_dbg(&ctx->ndev->drm, "core %u context %u pid %d: launch %u: fault %u: %s\n",
			ctx->core_index, ctx->id, ctx->pid, ctx->head, state->fault, where);
	/* The counters of the memories say which one it is. */
	if (state->fault == EXI_FAULT_ECC)
		neuron_health_look(ctx->ndev);
}

static void ctx_fault(struct neuron_ctx *ctx, const struct exi_record *record,
		      const struct neuron_fence *fence)
{
	struct drm_neuron_ctx_state *state = &ctx->state;

	ctx->core->count.faults++;
	if (le16_to_cpu(record->status) < ARRAY_SIZE(ctx->core->faults))
		ctx->core->faults[le16_to_cpu(record->status)]++;
	ctx->running = false;
	if (state->state != DRM_NEURON_CTX_OK)
		return;
	state->state = DRM_NEURON_CTX_FAULTED;
	state->fault = le16_to_cpu(record->status);
	state->engine = record->engine == U8_MAX ? U32_MAX : record->engine;
	state->pc = le32_to_cpu(record->pc);
	state->opcode = record->opcode;
	state->slot = le16_to_cpu(record->slot) == U16_MAX ? U32_MAX : le16_to_cpu(record->slot);
	state->value = le64_to_cpu(record->value);
	state->limit = le64_to_cpu(record->limit);
	state->program = fence->program;
	ctx->program_id = fence->program_id;
	ctx_report(ctx);
	if (ctx_is_device_fault(state->fault) || state->fault == EXI_FAULT_DEADLOCK)
		neuron_dump_ctx(ctx, "a launch faulted");
}

/* What the next launch that the device did not carry out ends with. */
static int ctx_next_error(struct neuron_ctx *ctx)
{
	int error = ctx->stop_error;

	/* The first one was running and is to blame, those behind it never began. */
	if (error != -ENODEV)
		ctx->stop_error = -ECANCELED;
	return error;
}

static void ctx_count(struct neuron_ctx *ctx, const struct exi_record *record)
{
	u64 ns = le64_to_cpu(record->end_ns) - le64_to_cpu(record->start_ns);
	struct drm_neuron_query_core *count = &ctx->core->count;
	unsigned int i;

	ctx->state.launches++;
	ctx->state.device_ns += ns;
	ctx->state.dma_bytes += le64_to_cpu(record->dma_bytes);
	count->launches++;
	count->busy_ns += ns;
	count->dma_bytes += le64_to_cpu(record->dma_bytes);
	for (i = 0; i < EXI_ENGINES; i++) {
		ctx->state.insts[i] += le32_to_cpu(record->insts[i]);
		count->insts[i] += le32_to_cpu(record->insts[i]);
		count->engine_ns[i] += le32_to_cpu(record->busy_ns[i]);
	}
	atomic64_add(ns, &ctx->nfile->core_ns);
	atomic64_add(ns, &ctx->nfile->ns_of_core[ctx->core_index]);
	atomic64_inc(&ctx->nfile->launches);
}

/**
 * neuron_core_began - A launch was given to the core
 * @core: the core, locked
 */
void neuron_core_began(struct neuron_core *core)
{
	lockdep_assert_held(&core->lock);
	if (!core->launched++)
		core->active_since = ktime_get_ns();
}

static void core_ended(struct neuron_core *core)
{
	lockdep_assert_held(&core->lock);
	if (!--core->launched)
		core->count.active_ns += ktime_get_ns() - core->active_since;
}

/* What the launch of a record ends with. */
static int ctx_result(struct neuron_ctx *ctx, const struct exi_record *record,
		      const struct neuron_fence *fence)
{
	switch (le16_to_cpu(record->status)) {
	case EXI_OK:
		ctx_count(ctx, record);
		return 0;
	case EXI_FAULT_ABORTED:
		return ctx_next_error(ctx);
	default:
		ctx_fault(ctx, record, fence);
		return -EIO;
	}
}

static void ctx_retire(struct neuron_ctx *ctx, int error)
{
	u32 index = ctx->head % NEURON_RING_ENTRIES;
	struct neuron_fence *fence = ctx->pending[index];

	trace_neuron_launch_done(ctx->ndev->drm.dev, ctx->core_index, ctx->queue, ctx->head, error);
	ctx->pending[index] = NULL;
	ctx->head++;
	core_ended(ctx->core);
	neuron_fence_signal(fence, error);
}

static bool ctx_drain_locked(struct neuron_ctx *ctx)
{
	const struct exi_record *record;
	bool found = false;
	u8 phase;

	lockdep_assert_held(&ctx->core->lock);

	while (ctx->mem && ctx->head != ctx->tail) {
		record = &ctx->mem->cq[ctx->head % NEURON_RING_ENTRIES];
		phase = (ctx->head / NEURON_RING_ENTRIES & 1) ^ 1;
		if (READ_ONCE(record->phase) != phase)
			break;
		dma_rmb();
		found = true;
		if (le32_to_cpu(record->seqno) != ctx->head)
			drm_err_ratelimited(&ctx->ndev->drm,
					    "core %u context %u pid %d: record %u for launch %u\n",
					    ctx->core_index, ctx->id, ctx->pid,
					    le32_to_cpu(record->seqno), ctx->head);
		neuron_stream_advance(ctx, record);
		ctx_retire(ctx,
			   ctx_result(ctx, record, ctx->pending[ctx->head % NEURON_RING_ENTRIES]));
	}
	return found;
}

/**
 * neuron_ctx_drain - Look for completed launches of a context
 * @ctx: the context
 *
 * Return: true if there were any.
 */
bool neuron_ctx_drain(struct neuron_ctx *ctx)
{
	guard(spinlock_irqsave)(&ctx->core->lock);
	return ctx_drain_locked(ctx);
}

/**
 * neuron_ctx_drain_core - Look for completed launches of a core
 * @ndev: device
 * @core: number of the core
 *
 * Context: Interrupt.
 */
void neuron_ctx_drain_core(struct neuron_device *ndev, unsigned int core)
{
	struct neuron_core *c = &ndev->core[core];
	unsigned int i;

	guard(spinlock_irqsave)(&c->lock);
	for (i = 0; i < ndev->queues; i++)
		if (!IS_ERR_OR_NULL(c->ctx[i]))
			ctx_drain_locked(c->ctx[i]);
}

/* --- stopping ------------------------------------------------------------ */

/* 0, -ENODEV, -ETIMEDOUT. */
static int ctx_wait_status(struct neuron_ctx *ctx, u32 want)
{
	unsigned long end = jiffies + msecs_to_jiffies(ctx->ndev->hal->stop_ms);
	u32 status;

	for (;;) {
		status = neuron_reg_read(&ctx->ndev->exi, neuron_ctx_reg(ctx, EXI_Q_STATUS));
		if (status == want)
			return 0;
		if (status == U32_MAX)
			return -ENODEV;
		if (time_after(jiffies, end))
			return -ETIMEDOUT;
		usleep_range(20, 100);
	}
}

/* End every launch on the device. */
static void ctx_stop_locked(struct neuron_ctx *ctx, u32 state, int error)
{
	int ret = 0;
	bool busy;

	lockdep_assert_held(&ctx->ndev->reset_lock);

	scoped_guard(spinlock_irqsave, &ctx->core->lock) {
		ctx->running = false;
		ctx->parked = false;
		if (ctx->state.state == DRM_NEURON_CTX_OK)
			ctx->state.state = state;
		ctx->stop_error = error;
		busy = ctx->mem && ctx->head != ctx->tail;
	}
	if (!busy)
		return;

	ctx_write(ctx, EXI_Q_CONTROL, EXI_Q_ENABLE | EXI_Q_ABORT);
	ret = ctx_wait_status(ctx, EXI_Q_HALTED);
	neuron_ctx_drain(ctx);
	if (ret == -ETIMEDOUT) {
		drm_err_ratelimited(&ctx->ndev->drm,
				    "core %u context %u pid %d: does not stop, reset\n",
				    ctx->core_index, ctx->id, ctx->pid);
		ctx_write(ctx, EXI_Q_CONTROL, EXI_Q_RESET);
		if (ctx_wait_status(ctx, EXI_Q_DISABLED) == -ETIMEDOUT)
			neuron_power_recover(ctx->ndev);
	}

	/* Whatever the device did not answer. */
	guard(spinlock_irqsave)(&ctx->core->lock);
	while (ctx->head != ctx->tail)
		ctx_retire(ctx, ctx_next_error(ctx));
}

/**
 * neuron_ctx_stop - Stop a context for good
 * @ctx: the context
 * @state: DRM_NEURON_CTX_* that it goes to, unless it is dead already
 * @error: what the running launch ends with; those behind it end with -ECANCELED
 *
 * Context: Process; sleeps for as long as the device takes to stop. All fences of
 * the queue have signalled on return.
 */
void neuron_ctx_stop(struct neuron_ctx *ctx, u32 state, int error)
{
	guard(mutex)(&ctx->ndev->reset_lock);
	if (state == DRM_NEURON_CTX_TIMEDOUT) {
		dev_warn_ratelimited(ctx->ndev->drm.dev,
				     "core %u context %u pid %d: launch %u timed out at %u ms\n",
				     ctx->core_index, ctx->id, ctx->pid, READ_ONCE(ctx->head),
				     ctx->timeout_ms);
		scoped_guard(spinlock_irqsave, &ctx->core->lock) {
			ctx->core->timeouts++;
			neuron_dump_ctx(ctx, "a launch timed out");
		}
	}
	ctx_stop_locked(ctx, state, error);
}

static void ctx_free_mem(struct neuron_ctx *ctx)
{
	struct device *dev = ctx->ndev->drm.dev;
	unsigned int i;

	for (i = 0; i < NEURON_RING_ENTRIES && ctx->slots[i]; i++)
		dma_free_coherent(dev, CTX_SLOT_TABLE_BYTES, ctx->slots[i], ctx->slots_dma[i]);
	if (ctx->mem)
		dma_free_coherent(dev, sizeof(*ctx->mem), ctx->mem, ctx->mem_dma);
	ctx->mem = NULL;
}

/* The queue is free. */
static void ctx_forget(struct neuron_ctx *ctx, int unused)
{
	scoped_guard(spinlock_irqsave, &ctx->core->lock)
		ctx->core->ctx[ctx->queue] = NULL;
	neuron_stream_detach(ctx, false);
	ctx_free_mem(ctx);
}

/* Take the queue away from the context. */
static void ctx_release_hw(struct neuron_ctx *ctx)
{
	int ret;

	lockdep_assert_held(&ctx->ndev->reset_lock);
	if (!ctx->mem)
		return;

	ctx_write(ctx, EXI_Q_CONTROL, EXI_Q_RESET);
	ret = ctx_wait_status(ctx, EXI_Q_DISABLED);
	if (ret == -ETIMEDOUT) {
		/* The device may still write to this memory: lose it. */
		drm_err(&ctx->ndev->drm, "core %u queue %u does not reset\n", ctx->core_index,
			ctx->queue);
		neuron_power_recover(ctx->ndev);
		scoped_guard(spinlock_irqsave, &ctx->core->lock) {
			ctx->mem = NULL;
			ctx->core->ctx[ctx->queue] = ERR_PTR(-EIO);
		}
		neuron_stream_detach(ctx, true);
		return;
	}
	ctx_forget(ctx, 0);
}

/**
 * neuron_ctx_for_each - Call a function for every context that has a queue
 * @ndev: device
 * @fn: the function
 * @arg: its argument
 *
 * Context: Process, &neuron_device.reset_lock held.
 */
void neuron_ctx_for_each(struct neuron_device *ndev, void (*fn)(struct neuron_ctx *ctx, int arg),
			 int arg)
{
	struct neuron_ctx *ctx;
	unsigned int c, q;

	/* Contexts leave the table under this lock only. */
	lockdep_assert_held(&ndev->reset_lock);
	for (c = 0; c < ndev->cores; c++) {
		for (q = 0; q < ndev->queues; q++) {
			ctx = READ_ONCE(ndev->core[c].ctx[q]);
			if (!IS_ERR_OR_NULL(ctx))
				fn(ctx, arg);
		}
	}
}

static void ctx_kill(struct neuron_ctx *ctx, int error)
{
	ctx_stop_locked(ctx, DRM_NEURON_CTX_INNOCENT, error);
}

/**
 * neuron_ctx_kill_all - Stop every context for good
 * @ndev: device, which need not answer
 * @error: what running launches end with
 *
 * Context: Process, &neuron_device.reset_lock held. The device may still write to their memory.
 */
void neuron_ctx_kill_all(struct neuron_device *ndev, int error)
{
	neuron_ctx_for_each(ndev, ctx_kill, error);
}

/**
 * neuron_ctx_forget_all - The device was reset: its queues are free
 * @ndev: device, every context killed
 *
 * Context: Process, &neuron_device.reset_lock held.
 */
void neuron_ctx_forget_all(struct neuron_device *ndev)
{
	unsigned int c, q;

	neuron_ctx_for_each(ndev, ctx_forget, 0);
	/* Nor does any of them still hang. */
	for (c = 0; c < ndev->cores; c++)
		for (q = 0; q < ndev->queues; q++)
			ndev->core[c].ctx[q] = NULL;
}

static void ctx_release(struct neuron_ctx *ctx, int unused)
{
	ctx_release_hw(ctx);
}

/**
 * neuron_ctx_release_all - The device goes away: free what it uses of every context
 * @ndev: device, unplugged, every context killed
 */
void neuron_ctx_release_all(struct neuron_device *ndev)
{
	guard(mutex)(&ndev->reset_lock);
	neuron_ctx_for_each(ndev, ctx_release, 0);
}

static u32 ctx_hw_priority(u32 priority)
{
	switch (priority) {
	case DRM_NEURON_PRIORITY_LOW:
		return 0;
	case DRM_NEURON_PRIORITY_HIGH:
		return 2;
	default:
		return 1;
	}
}

/**
 * neuron_ctx_start_queue - Enable the queue of a context, empty
 * @ctx: context whose queue is reset
 *
 * Context: Process, &neuron_device.reset_lock held.
 * Return: 0, -ENODEV.
 */
int neuron_ctx_start_queue(struct neuron_ctx *ctx)
{
	struct neuron_device *ndev = ctx->ndev;
	u64 base = ndev->hal->host_base | ctx->mem_dma;
	u64 ring = base + offsetof(struct neuron_queue_mem, ring);
	u64 cq = base + offsetof(struct neuron_queue_mem, cq);
	int ret;

	ctx_write(ctx, EXI_Q_RING_LO, lower_32_bits(ring));
	ctx_write(ctx, EXI_Q_RING_HI, upper_32_bits(ring));
	ctx_write(ctx, EXI_Q_RING_LOG2, ilog2(NEURON_RING_ENTRIES));
	ctx_write(ctx, EXI_Q_CQ_LO, lower_32_bits(cq));
	ctx_write(ctx, EXI_Q_CQ_HI, upper_32_bits(cq));
	ctx_write(ctx, EXI_Q_VECTOR, neuron_irq_core_vector(ndev, ctx->core_index));
	ctx_write(ctx, EXI_Q_PRIORITY, ctx_hw_priority(ctx->priority));
	ctx_write(ctx, EXI_Q_OWNER, ctx->nfile->owner);
	ctx_write(ctx, EXI_Q_CONTROL, EXI_Q_ENABLE);
	ret = ctx_wait_status(ctx, EXI_Q_IDLE);
	if (ret) {
		drm_err_ratelimited(&ndev->drm, "core %u queue %u does not start: %d\n",
				    ctx->core_index, ctx->queue, ret);
		if (ret == -ENODEV)
			neuron_health_suspect(ndev);
		ctx_write(ctx, EXI_Q_CONTROL, EXI_Q_RESET);
		return -ENODEV;
	}
	return 0;
}

/* --- life ---------------------------------------------------------------- */

static void ctx_free_work(struct work_struct *work)
{
	struct neuron_ctx *ctx = container_of(work, struct neuron_ctx, free_work);
	struct neuron_device *ndev = ctx->ndev;

	drm_sched_entity_fini(&ctx->entity);
	drm_sched_fini(&ctx->sched);
	neuron_power_lock_settled(ndev);
	ctx_release_hw(ctx);
	neuron_power_unlock(ndev);
	mutex_destroy(&ctx->submit_lock);
	neuron_file_put(ctx->nfile);
	kfree(ctx);
}

static void ctx_last_put(struct kref *ref)
{
	struct neuron_ctx *ctx = container_of(ref, struct neuron_ctx, ref);

	/* The last job is freed by the scheduler that has to go too. */
	queue_work(neuron_free_wq, &ctx->free_work);
}

/**
 * neuron_ctx_put - Drop a reference
 * @ctx: the context
 */
void neuron_ctx_put(struct neuron_ctx *ctx)
{
	kref_put(&ctx->ref, ctx_last_put);
}

/**
 * neuron_ctx_lookup - Find a context
 * @nfile: its file
 * @id: its id
 *
 * Return: the context, counted; NULL if there is none.
 */
struct neuron_ctx *neuron_ctx_lookup(struct neuron_file *nfile, u32 id)
{
	struct neuron_ctx *ctx;

	xa_lock(&nfile->ctxs);
	ctx = xa_load(&nfile->ctxs, id);
	if (ctx)
		kref_get(&ctx->ref);
	xa_unlock(&nfile->ctxs);
	return ctx;
}

static void ctx_stop_work(struct work_struct *work)
{
	struct neuron_ctx *ctx = container_of(work, struct neuron_ctx, stop_work);

	neuron_ctx_stop(ctx, DRM_NEURON_CTX_OK, -ECANCELED);
	neuron_ctx_put(ctx);
}

/**
 * neuron_ctx_destroy - Cancel the launches of a context and let go of it
 * @ctx: context without id; the reference of the id goes to the function
 *
 * Does not wait.
 */
void neuron_ctx_destroy(struct neuron_ctx *ctx)
{
	scoped_guard(spinlock_irqsave, &ctx->core->lock) {
		ctx->running = false;
		ctx->parked = false;
	}
	queue_work(neuron_free_wq, &ctx->stop_work);
}

static int ctx_alloc_mem(struct neuron_ctx *ctx)
{
	struct device *dev = ctx->ndev->drm.dev;
	unsigned int i;

	ctx->mem = dma_alloc_coherent(dev, sizeof(*ctx->mem), &ctx->mem_dma, GFP_KERNEL);
	if (!ctx->mem)
		return -ENOMEM;
	for (i = 0; i < NEURON_RING_ENTRIES; i++) {
		ctx->slots[i] = dma_alloc_coherent(dev, CTX_SLOT_TABLE_BYTES, &ctx->slots_dma[i],
						   GFP_KERNEL);
		if (!ctx->slots[i]) {
			ctx_free_mem(ctx);
			return -ENOMEM;
		}
	}
	return 0;
}

static int ctx_acquire_locked(struct neuron_ctx *ctx, u64 cores)
{
	struct neuron_device *ndev = ctx->ndev;
	int ret;

	ret = neuron_place_ctx(ndev, cores, ctx->uid, &ctx->core_index, &ctx->queue);
	if (ret)
		return ret;
	ctx->core = &ndev->core[ctx->core_index];
	ret = neuron_ctx_start_queue(ctx);
	if (ret)
		return ret;

	guard(spinlock_irqsave)(&ctx->core->lock);
	ctx->core->ctx[ctx->queue] = ctx;
	ctx->running = true;
	return 0;
}

/* Give the context a free queue of one of the cores and start it. */
static int ctx_acquire_hw(struct neuron_ctx *ctx, u64 cores)
{
	int ret = neuron_power_lock(ctx->ndev);

	if (ret)
		return ret;
	ret = ctx_acquire_locked(ctx, cores);
	neuron_power_unlock(ctx->ndev);
	return ret;
}

static int ctx_init_sched(struct neuron_ctx *ctx)
{
	unsigned int timeout_ms = ctx->timeout_ms ?: NEURON_TIMEOUT_MS;
	struct drm_gpu_scheduler *sched = &ctx->sched;
	struct drm_sched_init_args args = {
		.ops = &neuron_sched_ops,
		.submit_wq = ctx->ndev->submit_wq,
		.timeout_wq = ctx->ndev->timeout_wq,
		.num_rqs = 1,
		.credit_limit = NEURON_RING_ENTRIES,
		/* Half: see sched_is_hung(). Without a limit it looks for lost interrupts only. */
		.timeout = msecs_to_jiffies(timeout_ms) / 2 + 1,
		.name = "neuron-core",
		.dev = ctx->ndev->drm.dev,
	};
	int ret;

	ret = drm_sched_init(sched, &args);
	if (ret)
		return ret;
	ret = drm_sched_entity_init(&ctx->entity, DRM_SCHED_PRIORITY_KERNEL, &sched, 1, NULL);
	if (ret)
		drm_sched_fini(sched);
	return ret;
}

static struct neuron_ctx *ctx_create(struct neuron_file *nfile,
				     const struct drm_neuron_ctx_create *args)
{
	u64 cores = args->cores ?: BIT_ULL(args->core);
	struct neuron_device *ndev = nfile->ndev;
	struct neuron_ctx *ctx;
	int ret;

	ctx = kzalloc_obj(*ctx, GFP_KERNEL_ACCOUNT);
	if (!ctx)
		return ERR_PTR(-ENOMEM);
	kref_init(&ctx->ref);
	ctx->ndev = ndev;
	ctx->nfile = nfile;
	ctx->priority = args->priority;
	ctx->pid = task_tgid_nr(current);
	ctx->uid = current_euid();
	ctx->timeout_ms = neuron_timeout_ms();
	ctx->fence_context = dma_fence_context_alloc(1);
	ctx->stop_error = -ECANCELED;
	ctx->state.engine = U32_MAX;
	ctx->state.slot = U32_MAX;
	mutex_init(&ctx->submit_lock);
	neuron_inflight_init(&ctx->inflight);
	INIT_WORK(&ctx->stop_work, ctx_stop_work);
	INIT_WORK(&ctx->free_work, ctx_free_work);

	ret = ctx_alloc_mem(ctx);
	if (ret)
		goto err_ctx;
	ret = ctx_init_sched(ctx);
	if (ret)
		goto err_mem;
	ret = ctx_acquire_hw(ctx, cores);
	if (ret == -ENOSPC) {
		/* One that was destroyed may still hold its queue. */
		neuron_device_settle(ndev);
		ret = ctx_acquire_hw(ctx, cores);
	}
	if (ret)
		goto err_sched;
	neuron_file_get(nfile);
	return ctx;

err_sched:
	drm_sched_entity_fini(&ctx->entity);
	drm_sched_fini(&ctx->sched);
err_mem:
	ctx_free_mem(ctx);
err_ctx:
	kfree(ctx);
	return ERR_PTR(ret);
}

/**
 * neuron_ioctl_ctx_create - DRM_IOCTL_NEURON_CTX_CREATE
 * @drm: device
 * @data: struct drm_neuron_ctx_create
 * @file: caller
 *
 * Return: 0 or -errno as documented with the structure.
 */
int neuron_ioctl_ctx_create(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct neuron_device *ndev = to_neuron_device(drm);
	struct neuron_file *nfile = file->driver_priv;
	struct drm_neuron_ctx_create *args = data;
	struct neuron_ctx *ctx;
	int ret, idx;

	ret = neuron_place_check(ndev, args);
	if (ret)
		return ret;
	if (!drm_dev_enter(drm, &idx))
		return -ENODEV;
	ctx = ctx_create(nfile, args);
	drm_dev_exit(idx);
	if (IS_ERR(ctx))
		return PTR_ERR(ctx);

	args->core = ctx->core_index;
	/* With its id it can be destroyed by another thread. */
	kref_get(&ctx->ref);
	ret = xa_alloc(&nfile->ctxs, &ctx->id, ctx, xa_limit_31b, GFP_KERNEL);
	if (ret)
		neuron_ctx_destroy(ctx);
	else
		args->ctx = ctx->id;
	neuron_ctx_put(ctx);
	return ret;
}

/**
 * neuron_ioctl_ctx_destroy - DRM_IOCTL_NEURON_CTX_DESTROY
 * @drm: device
 * @data: struct drm_neuron_ctx_destroy
 * @file: caller
 *
 * Return: 0 or -errno as documented with the structure.
 */
int neuron_ioctl_ctx_destroy(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct drm_neuron_ctx_destroy *args = data;
	struct neuron_file *nfile = file->driver_priv;
	struct neuron_ctx *ctx;

	if (args->pad) {
		drm_dbg(drm, "context destroy: padding 0x%x\n", args->pad);
		return -EINVAL;
	}
	ctx = xa_erase(&nfile->ctxs, args->ctx);
	if (!ctx) {
		drm_dbg(drm, "no context %u\n", args->ctx);
		return -ENOENT;
	}
	neuron_ctx_destroy(ctx);
	return 0;
}

/**
 * neuron_ioctl_ctx_state - DRM_IOCTL_NEURON_CTX_STATE
 * @drm: device
 * @data: struct drm_neuron_ctx_state
 * @file: caller
 *
 * Return: 0 or -errno as documented with the structure.
 */
int neuron_ioctl_ctx_state(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct drm_neuron_ctx_state *args = data;
	struct neuron_file *nfile = file->driver_priv;
	struct neuron_prog *prog;
	struct neuron_ctx *ctx;
	u64 program_id;

	ctx = neuron_ctx_lookup(nfile, args->ctx);
	if (!ctx) {
		drm_dbg(drm, "no context %u\n", args->ctx);
		return -ENOENT;
	}
	scoped_guard(spinlock_irqsave, &ctx->core->lock) {
		*args = ctx->state;
		program_id = ctx->program_id;
	}
	args->ctx = ctx->id;
	neuron_ctx_put(ctx);

	/* Ids are used again: is it still the same program? */
	prog = neuron_prog_lookup(nfile, args->program);
	if (!prog || prog->device_id != program_id)
		args->program = 0;
	if (prog)
		neuron_prog_put(prog);
	return 0;
}
