// SPDX-License-Identifier: GPL-2.0-only
/*
 * Launches. The ioctl does all that can fail or sleep: look up, compare, make
 * the slot table's contents, wait for room. From arming on nothing fails and
 * nothing allocates: run_job copies the slots into the table that belongs to
 * the next entry of the launch ring, writes the entry and rings the doorbell.
 */

#include <linux/overflow.h>
#include <linux/slab.h>

#include <drm/drm_drv.h>
#include <drm/drm_exec.h>
#include <drm/drm_file.h>

#include "neuron_ctx.h"
#include "neuron_drv.h"
#include "neuron_evict.h"
#include "neuron_fence.h"
#include "neuron_gem.h"
#include "neuron_prime.h"
#include "neuron_prog.h"
#include "neuron_sched.h"
#include "neuron_stream.h"
#include "neuron_sync.h"
#include "neuron_trace.h"

/* A slot that is a buffer, or part of one. */
struct neuron_job_bo {
	struct drm_gem_object *obj; /* counted */
	u64 offset;
	u32 slot;
};

struct neuron_job {
	struct drm_sched_job base;
	struct neuron_ctx *ctx; /* counted */
	struct neuron_prog *prog; /* counted */
	struct neuron_fence *done;
	bool started; /* @done belongs to the scheduler and the queue */
	bool counted; /* in the context's bound */
	u32 n_slots;
	u32 n_bos;
	struct neuron_job_bo *bos; /* behind @slots in the same memory */
	struct exi_slot slots[] __counted_by(n_slots);
};

static struct neuron_job *to_neuron_job(struct drm_sched_job *job)
{
	return container_of(job, struct neuron_job, base);
}

/* Write entry and doorbell. The context may have died since the job was submitted. */
static int sched_ring(struct neuron_job *job, u32 index)
{
	struct neuron_ctx *ctx = job->ctx;
	struct exi_launch *entry = &ctx->mem->ring[index];

	lockdep_assert_held(&ctx->core->lock);

	neuron_fence_init(job->done, ctx->fence_context, ctx->tail);
	dma_fence_get(&job->done->base); /* the scheduler's */
	job->started = true;
	job->done->program = job->prog->id;
	job->done->program_id = job->prog->device_id;

	entry->program_addr = cpu_to_le64(job->prog->hbm.addr);
	entry->program_id = cpu_to_le64(job->prog->device_id);
	entry->program_bytes = cpu_to_le32(job->prog->image_bytes);
	entry->n_slots = cpu_to_le32(job->n_slots);
	entry->slots_addr = cpu_to_le64(ctx->ndev->hal->host_base | ctx->slots_dma[index]);
	entry->seqno = cpu_to_le32(ctx->tail);
	entry->flags =
		cpu_to_le32(EXI_LAUNCH_IRQ | (neuron_stream_wanted(ctx) ? EXI_LAUNCH_TRACE : 0));

	trace_neuron_launch(ctx->ndev->drm.dev, ctx->core_index, ctx->queue, ctx->tail,
			    job->prog->device_id);
	ctx->pending[index] = job->done;
	ctx->tail++;
	neuron_core_began(ctx->core);
	atomic64_inc(&job->prog->launches);
	dma_wmb();
	neuron_reg_write(&ctx->ndev->exi, neuron_ctx_reg(ctx, EXI_Q_DOORBELL), ctx->tail);
	return 0;
}

static struct dma_fence *sched_start(struct drm_sched_job *base)
{
	struct neuron_job *job = to_neuron_job(base);
	struct neuron_fence *fence = job->done;
	struct neuron_ctx *ctx = job->ctx;
	int idx, ret = -ECANCELED;
	u32 index;

	for (index = 0; index < job->n_bos; index++)
		if (!neuron_bo_is_clean(to_neuron_bo(job->bos[index].obj)))
			return ERR_PTR(-EIO);
	if (!drm_dev_enter(&ctx->ndev->drm, &idx))
		return ERR_PTR(-ENODEV);

	scoped_guard(spinlock_irqsave, &ctx->core->lock) {
		if (!ctx->running)
			break;
		/* Credits keep the entry free: its last launch is done. */
		index = ctx->tail % NEURON_RING_ENTRIES;
		memcpy(ctx->slots[index], job->slots, job->n_slots * sizeof(*job->slots));
		ret = sched_ring(job, index);
	}
	drm_dev_exit(idx);
	return ret ? ERR_PTR(ret) : &fence->base;
}

/*
 * A queue waits its turn while others run, so being on the ring for long says
 * nothing. The timer runs at half the limit: a launch that is found on the core
 * twice has had it for at least that long, and one that found it free for all
 * of the limit.
 */
static bool sched_is_hung(struct neuron_ctx *ctx)
{
	u32 status, started;
	bool found;

	scoped_guard(spinlock_irqsave, &ctx->core->lock) {
		if (!ctx->running)
			return false;
		/* Before looking for records: one that comes in between is no reason to worry. */
		started = neuron_reg_read(&ctx->ndev->exi, neuron_ctx_reg(ctx, EXI_Q_STARTED));
		status = neuron_reg_read(&ctx->ndev->exi, neuron_ctx_reg(ctx, EXI_Q_STATUS));
	}
	if (status == U32_MAX) {
		neuron_health_suspect(ctx->ndev);
		return false;
	}
	found = neuron_ctx_drain(ctx);
	if (found)
		neuron_health_missed_irq(ctx->ndev, "core", ctx->core_index);

	guard(spinlock_irqsave)(&ctx->core->lock);
	if (!ctx->running || ctx->head == ctx->tail || !ctx->timeout_ms)
		return false;
	/* A state in which the queue never goes on: nothing to wait for. */
	if (status != EXI_Q_RUNNING)
		return true;
	if (started == ctx->head || ctx->suspect == started)
		return started != ctx->head;
	ctx->suspect = started;
	return false;
}

static enum drm_gpu_sched_stat sched_recover(struct drm_sched_job *base)
{
	struct neuron_job *job = to_neuron_job(base);
	struct neuron_ctx *ctx = job->ctx;
	bool hung;
	int idx;

	/* Somebody takes the device out of use, which ends all jobs. */
	if (!drm_dev_enter(&ctx->ndev->drm, &idx))
		return neuron_sched_no_hang(base);
	hung = sched_is_hung(ctx);
	if (hung)
		neuron_ctx_stop(ctx, DRM_NEURON_CTX_TIMEDOUT, -ETIME);
	drm_dev_exit(idx);
	if (!hung)
		return neuron_sched_no_hang(base);

	/* Every fence of the queue has signalled: this only frees the jobs. */
	drm_sched_stop(&ctx->sched, base);
	drm_sched_start(&ctx->sched, 0);
	return DRM_GPU_SCHED_STAT_RESET;
}

/* From here to the signal nothing may allocate; lockdep knows it by these. */
static struct dma_fence *sched_run(struct drm_sched_job *base)
{
	bool cookie = dma_fence_begin_signalling();
	struct dma_fence *fence = sched_start(base);

	dma_fence_end_signalling(cookie);
	return fence;
}

static enum drm_gpu_sched_stat sched_timedout(struct drm_sched_job *base)
{
	bool cookie = dma_fence_begin_signalling();
	enum drm_gpu_sched_stat status = sched_recover(base);

	dma_fence_end_signalling(cookie);
	return status;
}

static void job_free(struct neuron_job *job)
{
	u32 i;

	if (!job->started)
		neuron_fence_free(job->done);
	for (i = 0; i < job->n_bos; i++)
		neuron_bo_put_later(job->bos[i].obj);
	if (job->prog)
		neuron_prog_put_later(job->prog);
	if (job->counted)
		neuron_inflight_put(&job->ctx->inflight);
	neuron_ctx_put(job->ctx);
	kvfree(job);
}

static void sched_free(struct drm_sched_job *base)
{
	drm_sched_job_cleanup(base);
	job_free(to_neuron_job(base));
}

const struct drm_sched_backend_ops neuron_sched_ops = {
	.run_job = sched_run,
	.timedout_job = sched_timedout,
	.free_job = sched_free,
};

static int job_bind_inline(struct neuron_job *job, u32 i, const struct drm_neuron_slot *slot)
{
	if (slot->flags != DRM_NEURON_SLOT_INLINE || slot->handle || slot->size != sizeof(u64)) {
		drm_dbg(&job->ctx->ndev->drm,
			"slot %u takes a value: flags 0x%x, handle %u, size 0x%llx\n", i,
			slot->flags, slot->handle, slot->size);
		return -EINVAL;
	}
	job->slots[i].base = cpu_to_le64(slot->offset);
	job->slots[i].size = cpu_to_le64(slot->size);
	job->slots[i].rights = cpu_to_le32(EXI_SLOT_READ | EXI_SLOT_INLINE);
	return 0;
}

/* Buffer of one slot: checked against what the program wants; job_place() has the address. */
static int job_bind_bo(struct neuron_job *job, struct drm_file *file, u32 i,
		       const struct drm_neuron_slot *slot)
{
	const struct neuron_prog_slot *want = &job->prog->slots[i];
	struct drm_device *drm = &job->ctx->ndev->drm;
	struct drm_gem_object *obj;
	struct neuron_bo *bo;
	u64 end;

	if (slot->flags) {
		drm_dbg(drm, "slot %u takes a buffer: flags 0x%x\n", i, slot->flags);
		return -EINVAL;
	}
	obj = drm_gem_object_lookup(file, slot->handle);
	if (!obj) {
		drm_dbg(drm, "slot %u: no buffer %u\n", i, slot->handle);
		return -ENOENT;
	}
	job->bos[job->n_bos++] =
		(struct neuron_job_bo){ .obj = obj, .offset = slot->offset, .slot = i };
	bo = to_neuron_bo(obj);

	if (!(bo->flags & DRM_NEURON_BO_HBM)) {
		drm_dbg(drm, "slot %u: buffer %u is not in HBM\n", i, slot->handle);
		return -EINVAL;
	}
	if (check_add_overflow(slot->offset, slot->size, &end) || end > obj->size) {
		drm_dbg(drm, "slot %u: bytes 0x%llx + 0x%llx of a buffer of 0x%zx\n", i,
			slot->offset, slot->size, obj->size);
		return -EINVAL;
	}
	if (slot->size < want->min_bytes) {
		drm_dbg(drm, "slot %u: 0x%llx bytes, the program needs 0x%llx\n", i, slot->size,
			want->min_bytes);
		return -EINVAL;
	}
	job->slots[i].size = cpu_to_le64(slot->size);
	job->slots[i].rights = cpu_to_le32(want->rights);
	return 0;
}

static bool job_writes(const struct neuron_job *job, const struct neuron_job_bo *bo)
{
	return job->prog->slots[bo->slot].rights & EXI_SLOT_WRITE;
}

static int job_bind(struct neuron_job *job, struct drm_file *file,
		    const struct drm_neuron_launch *launch)
{
	struct drm_device *drm = &job->ctx->ndev->drm;
	struct drm_neuron_slot *slots;
	int ret;
	u32 i;

	ret = neuron_array_get(drm, &launch->slots, sizeof(*slots), sizeof(*slots), EXI_SLOTS_MAX,
			       (void **)&slots);
	if (ret)
		return ret;
	for (i = 0; i < job->n_slots && !ret; i++) {
		if (job->prog->slots[i].scalar)
			ret = job_bind_inline(job, i, &slots[i]);
		else
			ret = job_bind_bo(job, file, i, &slots[i]);
	}
	kvfree(slots);
	return ret;
}

/* A job with its scheduler half initialised; takes over both references, also on failure. */
static struct neuron_job *job_create(struct neuron_ctx *ctx, struct neuron_prog *prog)
{
	u32 n = prog->n_slots;
	struct neuron_job *job;
	int ret;

	job = kvzalloc(struct_size(job, slots, n) + n * sizeof(*job->bos), GFP_KERNEL);
	if (!job) {
		ret = -ENOMEM;
		goto err_refs;
	}
	job->n_slots = n;
	job->bos = (void *)&job->slots[0] + n * sizeof(*job->slots);
	job->done = neuron_fence_alloc();
	if (!job->done) {
		ret = -ENOMEM;
		goto err_job;
	}
	ret = drm_sched_job_init(&job->base, &ctx->entity, 1, ctx->nfile, ctx->nfile->client_id);
	if (ret)
		goto err_fence;
	job->ctx = ctx;
	job->prog = prog;
	return job;

err_fence:
	neuron_fence_free(job->done);
err_job:
	kvfree(job);
err_refs:
	neuron_prog_put(prog);
	neuron_ctx_put(ctx);
	return ERR_PTR(ret);
}

/* Jobs of one call, in order, all of one context. */
struct sched_batch {
	u32 count;
	struct neuron_job *job[];
};

static int batch_lock(struct sched_batch *batch, struct drm_exec *exec)
{
	struct neuron_job *job;
	int ret = 0;
	u32 i, j;

	drm_exec_until_all_locked(exec) {
		ret = 0; /* not of the round before */
		for (i = 0; i < batch->count && !ret; i++) {
			job = batch->job[i];
			for (j = 0; j < job->n_bos && !ret; j++) {
				ret = drm_exec_prepare_obj(exec, job->bos[j].obj, NEURON_BO_FENCES);
				drm_exec_retry_on_contention(exec);
			}
		}
		if (ret)
			break;
	}
	return ret;
}

/* Bring the buffers, which are locked, to HBM; they stay until the job is done. */
static int job_place(struct neuron_job *job)
{
	struct neuron_bo *bo;
	int ret = 0;
	u32 i;

	for (i = 0; i < job->n_bos && !ret; i++) {
		bo = to_neuron_bo(job->bos[i].obj);
		ret = neuron_bo_make_resident(bo);
		job->slots[job->bos[i].slot].base = cpu_to_le64(bo->hbm.addr + job->bos[i].offset);
	}
	return ret;
}

/* Make a job wait for what is done with the buffers of another one before. */
static int job_wait_bos(struct neuron_job *job, const struct neuron_job *of)
{
	int ret = 0;
	u32 i;

	for (i = 0; i < of->n_bos && !ret; i++)
		ret = neuron_bo_wait(&job->base, of->bos[i].obj, job_writes(of, &of->bos[i]));
	return ret;
}

static void job_fence_bos(struct neuron_job *job, struct dma_fence *fence)
{
	u32 i;

	for (i = 0; i < job->n_bos; i++) {
		neuron_bo_add_fence(job->bos[i].obj, fence, job_writes(job, &job->bos[i]));
		neuron_evict_used(to_neuron_bo(job->bos[i].obj));
	}
}

/*
 * Arm and push in one go. The fence of the last is that of all: they end in order.
 * Once pushed a job may be freed.
 */
static struct dma_fence *batch_start(struct sched_batch *batch, struct neuron_ctx *ctx)
{
	struct dma_fence *fence;
	u32 i;

	guard(mutex)(&ctx->submit_lock);
	for (i = 0; i < batch->count; i++)
		drm_sched_job_arm(&batch->job[i]->base);
	fence = dma_fence_get(&batch->job[batch->count - 1]->base.s_fence->finished);
	for (i = 0; i < batch->count; i++)
		job_fence_bos(batch->job[i], fence);
	for (i = 0; i < batch->count; i++)
		drm_sched_entity_push_job(&batch->job[i]->base);
	return fence;
}

/*
 * Lock the buffers, make the first job wait for what is done with them before
 * (an entity keeps the others behind it), push. -ENOSPC: nothing has happened.
 */
static int batch_try(struct sched_batch *batch, struct neuron_ctx *ctx,
		     struct neuron_sync_outs *outs)
{
	struct dma_fence *fence;
	struct drm_exec exec;
	u32 i, n_bos = 0;
	int ret;

	for (i = 0; i < batch->count; i++)
		n_bos += batch->job[i]->n_bos;
	drm_exec_init(&exec, DRM_EXEC_INTERRUPTIBLE_WAIT | DRM_EXEC_IGNORE_DUPLICATES, n_bos);
	ret = batch_lock(batch, &exec);
	for (i = 0; i < batch->count && !ret; i++)
		ret = job_place(batch->job[i]);
	for (i = 0; i < batch->count && !ret; i++)
		ret = job_wait_bos(batch->job[0], batch->job[i]);
	if (ret)
		goto out;

	/* From here on nothing fails. */
	fence = batch_start(batch, ctx);
	neuron_sync_out_publish(outs, fence);
	dma_fence_put(fence);
out:
	drm_exec_fini(&exec);
	return ret;
}

/* Bytes of the first buffer that is not in HBM: there is no room for it. */
static u64 batch_wants(struct sched_batch *batch)
{
	struct neuron_bo *bo;
	u32 i, j;

	for (i = 0; i < batch->count; i++) {
		for (j = 0; j < batch->job[i]->n_bos; j++) {
			bo = to_neuron_bo(batch->job[i]->bos[j].obj);
			if (!neuron_bo_is_in_hbm(bo))
				return bo->base.size;
		}
	}
	return 0;
}

static void batch_spare(struct sched_batch *batch, bool spared)
{
	u32 i, j;

	for (i = 0; i < batch->count; i++)
		for (j = 0; j < batch->job[i]->n_bos; j++)
			to_neuron_bo(batch->job[i]->bos[j].obj)->spared = spared;
}

/*
 * What is idle makes room; else others wait until what is queued has made some.
 * Once pushed the jobs may be freed, and then nobody needs their buffers spared.
 */
static int batch_push(struct sched_batch *batch, struct neuron_ctx *ctx,
		      struct neuron_sync_outs *outs)
{
	struct neuron_evict *evict = &ctx->ndev->evict;
	int ret;

	ret = down_read_interruptible(&evict->queue_sem);
	if (ret)
		return ret;
	ret = batch_try(batch, ctx, outs);
	up_read(&evict->queue_sem);
	if (ret != -ENOSPC)
		return ret;

	ret = down_write_killable(&evict->queue_sem);
	if (ret)
		return ret;
	do {
		batch_spare(batch, true);
		ret = neuron_evict_make_room(ctx->ndev, batch_wants(batch));
		batch_spare(batch, false);
		if (ret)
			break;
		ret = batch_try(batch, ctx, outs);
	} while (ret == -ENOSPC);
	up_write(&evict->queue_sem);
	return ret;
}

static bool sched_ctx_is_dead(struct neuron_ctx *ctx)
{
	guard(spinlock_irqsave)(&ctx->core->lock);
	return ctx->state.state != DRM_NEURON_CTX_OK || !ctx->running;
}

/* Look up the program, compare the number of slots, bind them. */
static struct neuron_job *submit_prepare(struct neuron_ctx *ctx, struct drm_file *file,
					 const struct drm_neuron_launch *launch)
{
	struct drm_device *drm = &ctx->ndev->drm;
	struct neuron_prog *prog;
	struct neuron_job *job;
	int ret;

	if (launch->flags) {
		drm_dbg(drm, "launch: flags 0x%x\n", launch->flags);
		return ERR_PTR(-EINVAL);
	}
	prog = neuron_prog_lookup(ctx->nfile, launch->program);
	if (!prog) {
		drm_dbg(drm, "launch: no program %u\n", launch->program);
		return ERR_PTR(-ENOENT);
	}
	if (launch->slots.count != prog->n_slots) {
		drm_dbg(drm, "launch: %u slots, program %u has %u\n", launch->slots.count,
			launch->program, prog->n_slots);
		neuron_prog_put(prog);
		return ERR_PTR(-EINVAL);
	}
	kref_get(&ctx->ref);
	job = job_create(ctx, prog);
	if (IS_ERR(job))
		return job;
	ret = job_bind(job, file, launch);
	if (ret) {
		drm_sched_job_cleanup(&job->base);
		job_free(job);
		return ERR_PTR(ret);
	}
	return job;
}

/* Wait for room without keeping the device from going away, then push. */
static int batch_submit(struct sched_batch *batch, struct neuron_ctx *ctx,
			struct neuron_sync_outs *outs)
{
	struct drm_device *drm = &ctx->ndev->drm;
	int ret, idx;
	u32 i;

	ret = neuron_inflight_get_many(&ctx->inflight, batch->count);
	if (ret)
		return ret;
	for (i = 0; i < batch->count; i++)
		batch->job[i]->counted = true;
	if (!drm_dev_enter(drm, &idx))
		return -ENODEV;
	ret = batch_push(batch, ctx, outs);
	drm_dev_exit(idx);
	return ret;
}

/* All launches of a call or none. @refused: index of the one that was not accepted. */
static int submit_launches(struct neuron_ctx *ctx, struct drm_file *file,
			   const struct drm_neuron_launch *launches, u32 count,
			   const struct drm_neuron_array *in, const struct drm_neuron_array *out,
			   u32 *refused)
{
	struct neuron_sync_outs outs = {};
	struct sched_batch *batch;
	struct neuron_job *job;
	int ret = 0;

	batch = kzalloc(struct_size(batch, job, count), GFP_KERNEL);
	if (!batch)
		return -ENOMEM;
	while (batch->count < count) {
		job = submit_prepare(ctx, file, &launches[batch->count]);
		if (IS_ERR(job)) {
			ret = PTR_ERR(job);
			*refused = batch->count;
			break;
		}
		batch->job[batch->count++] = job;
	}
	if (!ret)
		ret = neuron_sync_in(file, in, &batch->job[0]->base);
	if (!ret)
		ret = neuron_sync_out_prepare(file, out, &outs);
	if (!ret)
		ret = batch_submit(batch, ctx, &outs);
	neuron_sync_out_free(&outs);
	while (ret && batch->count) {
		job = batch->job[--batch->count];
		drm_sched_job_cleanup(&job->base);
		job_free(job);
	}
	kfree(batch);
	return ret;
}

/* The context, counted, if it takes launches. */
static struct neuron_ctx *submit_ctx(struct drm_device *drm, struct drm_file *file, u32 id)
{
	struct neuron_ctx *ctx = neuron_ctx_lookup(file->driver_priv, id);

	if (!ctx) {
		drm_dbg(drm, "submit: no context %u\n", id);
		return ERR_PTR(-ENOENT);
	}
	if (sched_ctx_is_dead(ctx)) {
		drm_dbg(drm, "submit: context %u is dead\n", id);
		neuron_ctx_put(ctx);
		return ERR_PTR(-EIO);
	}
	return ctx;
}

/**
 * neuron_ioctl_submit - DRM_IOCTL_NEURON_SUBMIT
 * @drm: device
 * @data: struct drm_neuron_submit
 * @file: caller
 *
 * Return: 0 or -errno as documented with the structure.
 */
int neuron_ioctl_submit(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct drm_neuron_submit *args = data;
	struct drm_neuron_launch launch = { .program = args->program, .slots = args->slots };
	struct neuron_ctx *ctx;
	u32 refused;
	int ret;

	if (args->flags || args->pad) {
		drm_dbg(drm, "submit: flags 0x%x, padding 0x%x\n", args->flags, args->pad);
		return -EINVAL;
	}
	ctx = submit_ctx(drm, file, args->ctx);
	if (IS_ERR(ctx))
		return PTR_ERR(ctx);
	ret = submit_launches(ctx, file, &launch, 1, &args->in, &args->out, &refused);
	neuron_ctx_put(ctx);
	return ret;
}

/**
 * neuron_ioctl_submit_batch - DRM_IOCTL_NEURON_SUBMIT_BATCH
 * @drm: device
 * @data: struct drm_neuron_submit_batch
 * @file: caller
 *
 * Return: 0 or -errno as documented with the structure.
 */
int neuron_ioctl_submit_batch(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct drm_neuron_submit_batch *args = data;
	struct drm_neuron_launch *launches;
	struct neuron_ctx *ctx;
	int ret;

	args->refused = U32_MAX; /* goes back to the caller on failure too */
	if (args->flags || args->pad || !args->launches.count) {
		drm_dbg(drm, "batch: flags 0x%x, padding 0x%x, %u launches\n", args->flags,
			args->pad, args->launches.count);
		return -EINVAL;
	}
	ret = neuron_array_get(drm, &args->launches, sizeof(*launches), sizeof(*launches),
			       NEURON_BATCH_MAX, (void **)&launches);
	if (ret)
		return ret;
	ctx = submit_ctx(drm, file, args->ctx);
	if (IS_ERR(ctx)) {
		ret = PTR_ERR(ctx);
	} else {
		ret = submit_launches(ctx, file, launches, args->launches.count, &args->in,
				      &args->out, &args->refused);
		neuron_ctx_put(ctx);
	}
	kvfree(launches);
	return ret;
}

#ifdef CONFIG_DRM_ACCEL_NEURON_KUNIT_TEST
#include "tests/neuron_sched_test.c"
#endif
