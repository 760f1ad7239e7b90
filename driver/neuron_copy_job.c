// SPDX-License-Identifier: GPL-2.0-only
/*
 * What is to be copied: the ioctl's copies, scrubs of new buffers, moves of evicted
 * ones. A job is made here, with all that can fail or sleep; neuron_copy.c has the
 * engines that carry it out.
 */

#include <linux/overflow.h>
#include <linux/slab.h>

#include <drm/drm_drv.h>
#include <drm/drm_exec.h>
#include <drm/drm_file.h>

#include "neuron_copy.h"
#include "neuron_copy_job.h"
#include "neuron_drv.h"
#include "neuron_evict.h"
#include "neuron_fence.h"
#include "neuron_gem.h"
#include "neuron_prime.h"

static void span_init_hbm(struct neuron_span *span, struct neuron_bo *bo, u64 offset)
{
	memset(span, 0, sizeof(*span));
	span->addr = bo->hbm.addr + offset;
	span->left = bo->base.size - offset;
}

static void span_init_host(struct neuron_device *ndev, struct neuron_span *span,
			   struct neuron_bo *bo, u64 offset)
{
	struct scatterlist *sg;

	memset(span, 0, sizeof(*span));
	sg = bo->sgt->sgl;
	while (offset >= sg_dma_len(sg)) {
		offset -= sg_dma_len(sg);
		sg = sg_next(sg);
	}
	span->sg = sg;
	span->hal = ndev->hal;
	span->addr = neuron_hal_dma_addr(span->hal, sg_dma_address(sg)) + offset;
	span->left = sg_dma_len(sg) - offset;
}

/**
 * neuron_span_init - Find a buffer where it is now
 * @ndev: device
 * @span: out: what there is from @offset on
 * @bo: the buffer; its reservation is held, or nobody else knows it yet
 * @offset: byte in it
 */
void neuron_span_init(struct neuron_device *ndev, struct neuron_span *span, struct neuron_bo *bo,
		      u64 offset)
{
	if (neuron_bo_is_in_hbm(bo))
		span_init_hbm(span, bo, offset);
	else
		span_init_host(ndev, span, bo, offset);
}

/**
 * neuron_copy_job_free - Free a job that is over, or was never pushed
 * @job: the job, no longer the scheduler's
 */
void neuron_copy_job_free(struct neuron_copy_job *job)
{
	if (!job->started)
		neuron_fence_free(job->done);
	else
		dma_fence_put(&job->done->base);
	neuron_bo_put_later(job->src);
	neuron_bo_put_later(job->dst);
	neuron_inflight_put(&job->queue->inflight);
	neuron_file_put(job->nfile);
	kfree(job);
}

/**
 * neuron_copy_queue_init - Make a queue of copies
 * @ndev: device
 * @queue: the queue
 *
 * Return: 0 or -errno.
 */
int neuron_copy_queue_init(struct neuron_device *ndev, struct neuron_copy_queue *queue)
{
	mutex_init(&queue->lock);
	neuron_inflight_init(&queue->inflight);
	return drm_sched_entity_init(&queue->entity, DRM_SCHED_PRIORITY_NORMAL, ndev->copy.sched,
				     ndev->copy.engines, NULL);
}

/**
 * neuron_copy_queue_fini - Let a queue go
 * @queue: initialised, without jobs
 */
void neuron_copy_queue_fini(struct neuron_copy_queue *queue)
{
	drm_sched_entity_fini(&queue->entity);
	mutex_destroy(&queue->lock);
}

/* A job with its scheduler half initialised; waits while too many are in flight. */
static struct neuron_copy_job *copy_job_create(struct neuron_file *nfile,
					       struct neuron_copy_queue *queue)
{
	struct neuron_copy_job *job;
	int ret;

	ret = neuron_inflight_get(&queue->inflight);
	if (ret)
		return ERR_PTR(ret);
	job = kzalloc_obj(*job);
	if (!job) {
		ret = -ENOMEM;
		goto err_inflight;
	}
	job->done = neuron_fence_alloc();
	if (!job->done) {
		ret = -ENOMEM;
		goto err_job;
	}
	ret = drm_sched_job_init(&job->base, &queue->entity, 1, nfile, nfile->client_id);
	if (ret)
		goto err_fence;
	job->nfile = neuron_file_get(nfile);
	job->queue = queue;
	return job;

err_fence:
	neuron_fence_free(job->done);
err_job:
	kfree(job);
err_inflight:
	neuron_inflight_put(&queue->inflight);
	return ERR_PTR(ret);
}

/**
 * neuron_copy_job_set - Say what a job copies
 * @job: the job
 * @from: first byte of the source
 * @to: first byte of the destination
 * @size: bytes
 */
void neuron_copy_job_set(struct neuron_copy_job *job, const struct neuron_span *from,
			 const struct neuron_span *to, u64 size)
{
	job->first_from = *from;
	job->from = *from;
	job->first_to = *to;
	job->to = *to;
	job->size = size;
	job->todo = size;
}

/*
 * Returns the job's fence, counted. Cannot fail; @queue->lock is taken. The buffers
 * of a copy are locked and have room for the fence.
 */
static struct dma_fence *copy_job_push(struct neuron_copy_queue *queue, struct neuron_copy_job *job)
{
	struct dma_fence *fence;

	guard(mutex)(&queue->lock);
	drm_sched_job_arm(&job->base);
	fence = dma_fence_get(&job->base.s_fence->finished);
	if (job->src) {
		neuron_bo_add_fence(job->src, fence, false);
		neuron_bo_add_fence(job->dst, fence, true);
	}
	/* From here on the job may be freed. */
	drm_sched_entity_push_job(&job->base);
	return fence;
}

/**
 * neuron_copy_scrub - Fill a new HBM buffer with zeroes
 * @nfile: its file
 * @bo: the buffer, not yet visible to anybody
 *
 * Queues the work; everything that touches the buffer waits for the kernel fence
 * in its reservation. The zeroes come out of HBM, not over the bus, and cost the
 * CPU one descriptor for 64 KiB.
 *
 * Return: 0, -ENOMEM, -ERESTARTSYS.
 */
int neuron_copy_scrub(struct neuron_file *nfile, struct neuron_bo *bo)
{
	struct neuron_span zeroes = { .left = NEURON_HBM_ZERO_BYTES, .fixed = true };
	struct neuron_device *ndev = nfile->ndev;
	struct neuron_copy_job *job;
	struct neuron_span to;
	int ret;

	job = copy_job_create(nfile, &nfile->scrub);
	if (IS_ERR(job))
		return PTR_ERR(job);
	zeroes.addr = ndev->hbm.zero.addr;
	neuron_span_init(ndev, &to, bo, 0);
	neuron_copy_job_set(job, &zeroes, &to, bo->base.size);

	ret = dma_resv_lock_interruptible(bo->base.resv, NULL);
	if (ret)
		goto err_job;
	ret = dma_resv_reserve_fences(bo->base.resv, 1);
	if (ret)
		goto err_resv;
	bo->scrub = copy_job_push(&nfile->scrub, job);
	/* What depends on it looks at its result, so it must not start before there is one. */
	set_bit(DRM_SCHED_FENCE_DONT_PIPELINE, &bo->scrub->flags);
	dma_resv_add_fence(bo->base.resv, bo->scrub, DMA_RESV_USAGE_KERNEL);
	dma_resv_unlock(bo->base.resv);
	return 0;

err_resv:
	dma_resv_unlock(bo->base.resv);
err_job:
	drm_sched_job_cleanup(&job->base);
	neuron_copy_job_free(job);
	return ret;
}

/**
 * neuron_copy_move - Copy an HBM buffer between HBM and its host memory, and wait
 * @bo: the buffer, its reservation held, with both
 * @out: from HBM?
 *
 * Context: Process, inside drm_dev_enter().
 * Return: 0, -ENOMEM, -ERESTARTSYS, or how the copy failed.
 */
int neuron_copy_move(struct neuron_bo *bo, bool out)
{
	struct neuron_file *nfile = bo->nfile;
	struct neuron_span hbm, host;
	struct neuron_copy_job *job;
	struct dma_fence *fence;
	int ret;

	job = copy_job_create(nfile, &nfile->scrub);
	if (IS_ERR(job))
		return PTR_ERR(job);
	job->move = true;
	span_init_hbm(&hbm, bo, 0);
	span_init_host(nfile->ndev, &host, bo, 0);
	neuron_copy_job_set(job, out ? &hbm : &host, out ? &host : &hbm, bo->base.size);
	fence = copy_job_push(&nfile->scrub, job);
	/* Until then both belong to the device, whoever wants to interrupt us. */
	dma_fence_wait(fence, false);
	ret = dma_fence_get_status(fence);
	dma_fence_put(fence);
	return ret < 0 ? ret : 0;
}

static int copy_check(struct drm_device *drm, const struct drm_neuron_copy *args,
		      struct drm_gem_object *src, struct drm_gem_object *dst)
{
	u64 src_end, dst_end;

	if (check_add_overflow(args->src_offset, args->size, &src_end) || src_end > src->size) {
		drm_dbg(drm, "copy: bytes 0x%llx + 0x%llx of a source of 0x%zx\n", args->src_offset,
			args->size, src->size);
		return -EINVAL;
	}
	if (check_add_overflow(args->dst_offset, args->size, &dst_end) || dst_end > dst->size) {
		drm_dbg(drm, "copy: bytes 0x%llx + 0x%llx of a destination of 0x%zx\n",
			args->dst_offset, args->size, dst->size);
		return -EINVAL;
	}
	if (src == dst && args->src_offset < dst_end && args->dst_offset < src_end) {
		drm_dbg(drm, "copy: 0x%llx bytes at 0x%llx and 0x%llx of one buffer overlap\n",
			args->size, args->src_offset, args->dst_offset);
		return -EINVAL;
	}
	return 0;
}

/* With both buffers locked: where they are stays right until the job is done. */
static int copy_bind(struct neuron_copy_job *job, const struct drm_neuron_copy *args)
{
	struct neuron_bo *src = to_neuron_bo(job->src), *dst = to_neuron_bo(job->dst);
	struct neuron_device *ndev = job->nfile->ndev;
	struct neuron_span from, to;
	int ret;

	ret = neuron_prime_map(src);
	if (!ret)
		ret = neuron_prime_map(dst);
	if (ret)
		return ret;
	neuron_span_init(ndev, &from, src, args->src_offset);
	neuron_span_init(ndev, &to, dst, args->dst_offset);
	neuron_copy_job_set(job, &from, &to, args->size);
	ret = neuron_bo_wait(&job->base, job->src, false);
	if (!ret)
		ret = neuron_bo_wait(&job->base, job->dst, true);
	return ret;
}

/* Lock the buffers, make the job wait for what is done with them before, push it. */
static int copy_submit(struct neuron_copy_queue *queue, struct neuron_copy_job *job,
		       const struct drm_neuron_copy *args, struct neuron_sync_outs *outs)
{
	struct neuron_evict *evict = &job->nfile->ndev->evict;
	struct dma_fence *fence;
	struct drm_exec exec;
	int ret = 0;

	ret = down_read_interruptible(&evict->queue_sem);
	if (ret)
		return ret;
	drm_exec_init(&exec, DRM_EXEC_INTERRUPTIBLE_WAIT | DRM_EXEC_IGNORE_DUPLICATES, 2);
	drm_exec_until_all_locked(&exec) {
		ret = drm_exec_prepare_obj(&exec, job->src, NEURON_BO_FENCES);
		drm_exec_retry_on_contention(&exec);
		if (ret)
			break;
		ret = drm_exec_prepare_obj(&exec, job->dst, NEURON_BO_FENCES);
		drm_exec_retry_on_contention(&exec);
		if (ret)
			break;
	}
	if (!ret)
		ret = copy_bind(job, args);
	if (ret)
		goto out;

	neuron_evict_used(to_neuron_bo(job->src));
	neuron_evict_used(to_neuron_bo(job->dst));
	fence = copy_job_push(queue, job);
	neuron_sync_out_publish(outs, fence);
	dma_fence_put(fence);
out:
	drm_exec_fini(&exec);
	up_read(&evict->queue_sem);
	return ret;
}

/**
 * neuron_ioctl_copy - DRM_IOCTL_NEURON_COPY
 * @drm: device
 * @data: struct drm_neuron_copy
 * @file: caller
 *
 * Return: 0 or -errno as documented with the structure.
 */
int neuron_ioctl_copy(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct neuron_file *nfile = file->driver_priv;
	struct neuron_copy_queue *queue = &nfile->copy;
	struct drm_neuron_copy *args = data;
	struct neuron_sync_outs outs = {};
	struct neuron_copy_job *job;
	int ret, idx;

	if (args->flags || args->pad || !args->size) {
		drm_dbg(drm, "copy: flags 0x%x, padding 0x%x, size 0x%llx\n", args->flags,
			args->pad, args->size);
		return -EINVAL;
	}

	job = copy_job_create(nfile, queue);
	if (IS_ERR(job))
		return PTR_ERR(job);
	if (!drm_dev_enter(drm, &idx)) {
		ret = -ENODEV;
		goto err_job;
	}
	job->src = drm_gem_object_lookup(file, args->src);
	job->dst = drm_gem_object_lookup(file, args->dst);
	if (!job->src || !job->dst) {
		drm_dbg(drm, "copy: no buffer %u\n", job->src ? args->dst : args->src);
		ret = -ENOENT;
		goto err_dev;
	}
	ret = copy_check(drm, args, job->src, job->dst);
	if (ret)
		goto err_dev;
	ret = neuron_sync_in(file, &args->in, &job->base);
	if (!ret)
		ret = neuron_sync_out_prepare(file, &args->out, &outs);
	if (!ret)
		ret = copy_submit(queue, job, args, &outs);
	neuron_sync_out_free(&outs);
	if (ret)
		goto err_dev;
	drm_dev_exit(idx);
	return 0;

err_dev:
	drm_dev_exit(idx);
err_job:
	drm_sched_job_cleanup(&job->base);
	neuron_copy_job_free(job);
	return ret;
}

#ifdef CONFIG_DRM_ACCEL_NEURON_KUNIT_TEST
#include "tests/neuron_copy_job_test.c"
#endif
