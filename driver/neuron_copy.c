// SPDX-License-Identifier: GPL-2.0-only
/*
 * The engines that copy. Each UDMA engine that serves the host has a scheduler and
 * one ring. A job (neuron_copy_job.c) is cut into pieces that are contiguous on both
 * sides, at most 64 KiB each, and the pieces into batches that end with a marker;
 * several batches, also of several jobs, are in flight. Whatever does not fit the ring
 * is put on it by the interrupt that finds a batch done, so a job of any size
 * needs no memory on its way.
 *
 * A job that the device cannot carry out or that makes no progress ends with an
 * error; the engine's queue is reset and the other jobs on it start again from
 * their first byte, which is harmless because source and destination of a copy
 * never overlap.
 */

#include <linux/jiffies.h>
#include <linux/dma-mapping.h>
#include <linux/delay.h>
#include <linux/scatterlist.h>

#include <drm/drm_drv.h>
#include <drm/drm_managed.h>

#include "neuron_copy.h"
#include "neuron_copy_job.h"
#include "neuron_drv.h"
#include "neuron_fence.h"
#include "neuron_gem.h"
#include "neuron_trace.h"

/* Descriptors of a batch: a quarter of the ring, so that it never runs dry. */
#define COPY_BATCH (NEURON_RING_DESCS / 4)

static struct neuron_copy_job *to_copy_job(struct drm_sched_job *job)
{
	return container_of(job, struct neuron_copy_job, base);
}

static struct neuron_copy_engine *to_copy_engine(struct drm_gpu_scheduler *sched)
{
	return container_of(sched, struct neuron_copy_engine, sched);
}

static void span_advance(struct neuron_span *span, u32 bytes)
{
	if (span->fixed)
		return;
	span->addr += bytes;
	span->left -= bytes;
	if (span->left || !span->sg)
		return;
	span->sg = sg_next(span->sg);
	if (!span->sg)
		return;
	span->addr = neuron_hal_dma_addr(span->hal, sg_dma_address(span->sg));
	span->left = sg_dma_len(span->sg);
}

/* Put as much as fits on the ring. */
static void copy_push(struct neuron_copy_engine *engine)
{
	struct neuron_ring *ring = &engine->ring;
	struct neuron_copy_job *job;
	u32 room, bytes;

	lockdep_assert_held(&engine->lock);

	if (engine->paused)
		return;
	while ((job = engine->next)) {
		room = min_t(u32, neuron_ring_room(ring), COPY_BATCH);
		if (!room)
			break;
		for (; room && job->todo; room--) {
			bytes = min_t(u64, min3(job->todo, job->from.left, job->to.left),
				      UDMA_DESC_LEN_MAX);
			/* The scheduler lets a job follow one that it depends on. */
			neuron_ring_copy(ring, job->to.addr, job->from.addr, bytes,
					 job->todo == job->size);
			span_advance(&job->from, bytes);
			span_advance(&job->to, bytes);
			job->todo -= bytes;
		}
		neuron_ring_mark(ring);
		job->batches++;
		if (!job->todo)
			engine->next = list_is_last(&job->node, &engine->jobs) ?
					       NULL :
					       list_next_entry(job, node);
	}
	neuron_ring_kick(ring);
}

/* The job is off the engine. It may be freed as soon as its fence signals. */
static void copy_done(struct neuron_copy_engine *engine, struct neuron_copy_job *job, int error)
{
	lockdep_assert_held(&engine->lock);

	list_del(&job->node);
	atomic64_add(ktime_to_ns(ktime_sub(ktime_get(), job->start)), &job->nfile->copy_ns);
	trace_neuron_copy_done(engine->ndev->drm.dev, engine->engine, job->done->base.seqno,
			       job->size, error);
	neuron_fence_signal(job->done, error);
}

static bool copy_drain(struct neuron_copy_engine *engine)
{
	struct neuron_copy_job *job;
	bool found = false;

	lockdep_assert_held(&engine->lock);

	while (!engine->error && !engine->paused && neuron_ring_pop(&engine->ring)) {
		found = true;
		engine->batches++;
		job = list_first_entry(&engine->jobs, struct neuron_copy_job, node);
		if (!--job->batches && !job->todo)
			copy_done(engine, job, 0);
	}
	if (found)
		copy_push(engine);
	return found;
}

/**
 * neuron_copy_drain - Look for finished copies
 * @ndev: device
 *
 * Context: Interrupt.
 */
void neuron_copy_drain(struct neuron_device *ndev)
{
	struct neuron_ring_failure failure;
	struct neuron_copy_engine *engine;
	bool found = false;
	unsigned int i;

	for (i = 0; i < ndev->copy.engines; i++) {
		engine = &ndev->copy.engine[i];
		guard(spinlock_irqsave)(&engine->lock);
		found |= copy_drain(engine);
	}
	if (found)
		return;
	/* The interrupt came for something else: did an engine give up? */
	for (i = 0; i < ndev->copy.engines; i++) {
		engine = &ndev->copy.engine[i];
		guard(spinlock_irqsave)(&engine->lock);
		if (!engine->error && !engine->paused && !list_empty(&engine->jobs) &&
		    neuron_ring_failed(&engine->ring, &failure))
			drm_sched_fault(&engine->sched);
	}
}

static struct dma_fence *copy_start(struct drm_sched_job *base)
{
	struct neuron_copy_engine *engine = to_copy_engine(base->sched);
	struct neuron_copy_job *job = to_copy_job(base);
	struct neuron_fence *fence = job->done;
	int idx;

	if (READ_ONCE(job->nfile->closed) && !job->move)
		return ERR_PTR(-ECANCELED);
	if (job->src && !(neuron_bo_is_clean(to_neuron_bo(job->src)) &&
			  neuron_bo_is_clean(to_neuron_bo(job->dst))))
		return ERR_PTR(-EIO);
	if (!drm_dev_enter(&engine->ndev->drm, &idx))
		return ERR_PTR(-ENODEV);

	scoped_guard(spinlock_irqsave, &engine->lock) {
		if (engine->error) {
			fence = ERR_PTR(engine->error);
			break;
		}
		neuron_fence_init(fence, engine->fence_context, ++engine->seqno);
		dma_fence_get(&fence->base); /* the job's; the first one is the ring's */
		dma_fence_get(&fence->base); /* the scheduler's */
		job->started = true;
		job->start = ktime_get();
		list_add_tail(&job->node, &engine->jobs);
		if (!engine->next)
			engine->next = job;
		trace_neuron_copy_start(engine->ndev->drm.dev, engine->engine, engine->seqno,
					job->size);
		copy_push(engine);
	}
	drm_dev_exit(idx);
	return IS_ERR(fence) ? ERR_CAST(fence) : &fence->base;
}

/* Stop the ring; false when the device still holds on to it; one that is gone does not. Sleeps. */
static bool copy_halt(struct neuron_copy_engine *engine)
{
	struct neuron_ring *ring = &engine->ring;
	unsigned long end = jiffies + msecs_to_jiffies(engine->ndev->hal->stop_ms);
	u32 reg = UDMA_Q(ring->queue) + UDMA_Q_STATUS;
	u32 tx, rx;

	scoped_guard(spinlock_irqsave, &engine->lock)
		neuron_ring_stop(ring);
	for (;;) {
		tx = neuron_reg_read(engine->regs, UDMA_M2S + reg);
		rx = neuron_reg_read(engine->regs, UDMA_S2M + reg);
		if (tx == U32_MAX || tx & rx & UDMA_Q_STATUS_IDLE)
			return true;
		if (time_after(jiffies, end))
			return false;
		usleep_range(50, 200);
	}
}

/* Start an empty ring with all jobs that it had. */
static void copy_rewind(struct neuron_copy_engine *engine)
{
	struct neuron_copy_job *job;

	lockdep_assert_held(&engine->lock);

	list_for_each_entry(job, &engine->jobs, node) {
		job->from = job->first_from;
		job->to = job->first_to;
		job->todo = job->size;
		job->batches = 0;
	}
	neuron_ring_start(&engine->ring);
	engine->next = list_first_entry_or_null(&engine->jobs, struct neuron_copy_job, node);
	copy_push(engine);
}

/* End the oldest job with @error, let the others start again. */
static void copy_restart(struct neuron_copy_engine *engine, int error)
{
	struct neuron_copy_job *job, *next;
	bool halted;

	lockdep_assert_held(&engine->ndev->reset_lock);

	scoped_guard(spinlock_irqsave, &engine->lock)
		engine->paused = true; /* jobs that come meanwhile wait */
	halted = copy_halt(engine);

	guard(spinlock_irqsave)(&engine->lock);
	engine->paused = false;
	job = list_first_entry_or_null(&engine->jobs, struct neuron_copy_job, node);
	if (job)
		copy_done(engine, job, error);
	engine->next = NULL;
	if (!halted) {
		engine->error = -EIO;
		drm_err(&engine->ndev->drm, "copy engine %u does not stop\n", engine->engine);
		neuron_power_recover(engine->ndev);
		list_for_each_entry_safe(job, next, &engine->jobs, node)
			copy_done(engine, job, -EIO);
		return;
	}
	copy_rewind(engine);
}

static void copy_report(struct neuron_copy_engine *engine, const struct neuron_copy_job *job,
			const struct neuron_ring_failure *failure)
{
	struct drm_device *drm = &engine->ndev->drm;

	char text[96];

	if (failure)
		snprintf(text, sizeof(text), "failed: status 0x%x, 0x%x, completion 0x%x, not 0x%x",
			 failure->m2s, failure->s2m, failure->mark, UDMA_MARKER);
	else
		snprintf(text, sizeof(text), "timed out: no progress in %u ms",
			 jiffies_to_msecs(engine->sched.timeout));
	drm_err_ratelimited(drm, "copy engine %u queue %u client %llu: %llu bytes: %s\n",
			    engine->engine, engine->ring.queue, job->nfile->client_id, job->size,
			    text);
}

static enum drm_gpu_sched_stat copy_recover(struct drm_sched_job *base)
{
	struct neuron_copy_engine *engine = to_copy_engine(base->sched);
	struct neuron_copy_job *job = to_copy_job(base);
	struct neuron_ring_failure failure = {};
	bool alive, failed, found;
	int idx;

	/* Somebody takes the device out of use, which ends all jobs. */
	if (!drm_dev_enter(&engine->ndev->drm, &idx))
		return neuron_sched_no_hang(base);

	mutex_lock(&engine->ndev->reset_lock);
	scoped_guard(spinlock_irqsave, &engine->lock) {
		bool idle = engine->error || engine->paused;

		found = copy_drain(engine);
		failed = !idle && neuron_ring_failed(&engine->ring, &failure);
		alive = idle || !job->started || dma_fence_is_signaled(&job->done->base) ||
			(!failed && engine->batches != engine->seen);
		engine->seen = engine->batches;
	}
	if (found)
		neuron_health_missed_irq(engine->ndev, "copy engine", engine->engine);
	if (!alive && failure.m2s == U32_MAX) {
		neuron_health_suspect(engine->ndev);
	} else if (!alive) {
		copy_report(engine, job, failed ? &failure : NULL);
		copy_restart(engine, failed ? -EIO : -ETIME);
	}
	mutex_unlock(&engine->ndev->reset_lock);
	drm_dev_exit(idx);
	/* Only the oldest job ended; the fences of the others are still good. */
	return neuron_sched_no_hang(base);
}

/* From here to the signal nothing may allocate; lockdep knows it by these. */
static struct dma_fence *copy_run(struct drm_sched_job *base)
{
	bool cookie = dma_fence_begin_signalling();
	struct dma_fence *fence = copy_start(base);

	dma_fence_end_signalling(cookie);
	return fence;
}

static enum drm_gpu_sched_stat copy_timedout(struct drm_sched_job *base)
{
	bool cookie = dma_fence_begin_signalling();
	enum drm_gpu_sched_stat status = copy_recover(base);

	dma_fence_end_signalling(cookie);
	return status;
}

static void copy_free(struct drm_sched_job *base)
{
	drm_sched_job_cleanup(base);
	neuron_copy_job_free(to_copy_job(base));
}

static const struct drm_sched_backend_ops copy_sched_ops = {
	.run_job = copy_run,
	.timedout_job = copy_timedout,
	.free_job = copy_free,
};

static void copy_sched_fini(struct drm_device *drm, void *data)
{
	struct neuron_copy_engine *engine = data;

	drm_sched_fini(&engine->sched);
}

/**
 * neuron_copy_init - Make the schedulers of the copy engines
 * @ndev: device with its workqueues
 *
 * They live as long as the DRM device: files that outlive the hardware point at them.
 *
 * Return: 0 or -errno.
 */
int neuron_copy_init(struct neuron_device *ndev)
{
	struct drm_sched_init_args args = {
		.ops = &copy_sched_ops,
		.submit_wq = ndev->submit_wq,
		.timeout_wq = ndev->timeout_wq,
		.num_rqs = DRM_SCHED_PRIORITY_COUNT,
		.credit_limit = NEURON_COPY_JOBS,
		.timeout = msecs_to_jiffies(neuron_timeout_ms() ?: NEURON_TIMEOUT_MS),
		.name = "neuron-copy",
		.dev = ndev->drm.dev,
	};
	struct neuron_copy_engine *engine;
	unsigned int i;
	int ret;

	for (i = 0; i < ndev->hal->copy_engines; i++) {
		engine = &ndev->copy.engine[i];
		engine->ndev = ndev;
		engine->engine = ndev->hal->copy_engine[i];
		engine->error = -ENODEV;
		engine->fence_context = dma_fence_context_alloc(1);
		spin_lock_init(&engine->lock);
		INIT_LIST_HEAD(&engine->jobs);
		ret = drm_sched_init(&engine->sched, &args);
		if (ret)
			return ret;
		ret = drmm_add_action_or_reset(&ndev->drm, copy_sched_fini, engine);
		if (ret)
			return ret;
		ndev->copy.sched[i] = &engine->sched;
	}
	return 0;
}

/* From reset to running, with the jobs that it has. */
static void copy_engine_on(struct neuron_copy_engine *engine)
{
	struct neuron_device *ndev = engine->ndev;

	neuron_udma_init(engine->regs, engine->ndev->hal->sdma_beats);
	neuron_reg_write(&ndev->exi, EXI_UDMA_ROUTE(engine->engine, engine->ring.queue),
			 neuron_irq_copy_vector(ndev));
	guard(spinlock_irqsave)(&engine->lock);
	engine->error = 0;
	engine->paused = false;
	copy_rewind(engine);
}

static int copy_engine_start(struct neuron_device *ndev, unsigned int i)
{
	struct neuron_copy_engine *engine = &ndev->copy.engine[i];
	unsigned int queue = ndev->hal->copy_queue;
	struct device *dev = ndev->drm.dev;
	struct neuron_ring_mem *mem;
	dma_addr_t dma;

	mem = dmam_alloc_coherent(dev, sizeof(*mem), &dma, GFP_KERNEL);
	if (!mem)
		return -ENOMEM;
	neuron_ring_init(&engine->ring, engine->regs, queue, mem, ndev->hal->host_base | dma);
	copy_engine_on(engine);
	return 0;
}

/**
 * neuron_copy_start - Start the copy engines
 * @ndev: device, reset, &neuron_copy_engine.regs mapped
 *
 * Return: 0, -ENOMEM.
 */
int neuron_copy_start(struct neuron_device *ndev)
{
	unsigned int i;
	int ret;

	for (i = 0; i < ndev->hal->copy_engines; i++) {
		ret = copy_engine_start(ndev, i);
		if (ret)
			return ret;
		ndev->copy.engines++;
	}
	return 0;
}

/**
 * neuron_copy_pause - Take the copy engines off the device
 * @ndev: device, which need not answer
 *
 * Context: Process, &neuron_device.reset_lock held. Jobs stay and new ones join
 * them; those that are under way may go on until the device is reset.
 */
void neuron_copy_pause(struct neuron_device *ndev)
{
	struct neuron_copy_engine *engine;
	unsigned int i;

	for (i = 0; i < ndev->copy.engines; i++) {
		engine = &ndev->copy.engine[i];
		scoped_guard(spinlock_irqsave, &engine->lock)
			engine->paused = true;
		copy_halt(engine);
	}
}

/**
 * neuron_copy_resume - The device was reset: let the copy engines run again
 * @ndev: device
 *
 * Context: Process, &neuron_device.reset_lock held. Jobs start from their first byte.
 */
void neuron_copy_resume(struct neuron_device *ndev)
{
	unsigned int i;

	for (i = 0; i < ndev->copy.engines; i++)
		copy_engine_on(&ndev->copy.engine[i]);
}

/**
 * neuron_copy_open - Make a paused engine copy for the driver
 * @ndev: device that answers, neuron_copy_pause() called
 *
 * Context: Process, &neuron_device.reset_lock held until neuron_copy_close().
 */
void neuron_copy_open(struct neuron_device *ndev)
{
	struct neuron_copy_engine *engine = &ndev->copy.engine[0];

	neuron_udma_init(engine->regs, ndev->hal->sdma_beats);
	neuron_ring_start(&engine->ring);
}

/**
 * neuron_copy_polled - Copy and wait for it
 * @ndev: device, neuron_copy_open() called
 * @dst: device address
 * @src: device address
 * @bytes: 1 to NEURON_COPY_POLLED_MAX
 *
 * Return: 0, -EIO the engine gave up, -ETIMEDOUT.
 */
int neuron_copy_polled(struct neuron_device *ndev, u64 dst, u64 src, u32 bytes)
{
	unsigned long end = jiffies + msecs_to_jiffies(ndev->hal->stop_ms);
	struct neuron_ring *ring = &ndev->copy.engine[0].ring;
	struct neuron_ring_failure failure;
	u32 done, piece;

	for (done = 0; done < bytes; done += piece) {
		piece = min_t(u32, bytes - done, UDMA_DESC_LEN_MAX);
		neuron_ring_copy(ring, dst + done, src + done, piece, false);
	}
	neuron_ring_mark(ring);
	neuron_ring_kick(ring);
	while (!neuron_ring_pop(ring)) {
		if (neuron_ring_failed(ring, &failure))
			return -EIO;
		if (time_after(jiffies, end))
			return -ETIMEDOUT;
		usleep_range(10, 50);
	}
	return 0;
}

/**
 * neuron_copy_close - Give the engine back
 * @ndev: device, still paused
 */
void neuron_copy_close(struct neuron_device *ndev)
{
	copy_halt(&ndev->copy.engine[0]);
}

/**
 * neuron_copy_stop - Stop the copy engines, until the device is reset
 * @ndev: device
 * @error: what jobs on them and later ones end with
 */
void neuron_copy_stop(struct neuron_device *ndev, int error)
{
	struct neuron_copy_job *job, *next;
	struct neuron_copy_engine *engine;
	unsigned int i;

	for (i = 0; i < ndev->copy.engines; i++) {
		engine = &ndev->copy.engine[i];
		scoped_guard(spinlock_irqsave, &engine->lock)
			engine->error = error;
		if (!engine->paused && !copy_halt(engine))
			drm_err(&ndev->drm, "copy engine %u does not stop\n", engine->engine);
		guard(spinlock_irqsave)(&engine->lock);
		engine->next = NULL;
		list_for_each_entry_safe(job, next, &engine->jobs, node)
			copy_done(engine, job, error);
	}
}

#ifdef CONFIG_DRM_ACCEL_NEURON_KUNIT_TEST
#include "tests/neuron_copy_test.c"
#endif
