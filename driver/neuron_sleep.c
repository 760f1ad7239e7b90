// SPDX-License-Identifier: GPL-2.0-only
/*
 * Power management.
 *
 * Nothing is taken for granted in D3: a start from there is a start from reset,
 * with HBM empty. So the device runs for as long as a file of it is open, or a
 * buffer of a closed file is in use; without, there is nothing to keep, and it
 * sleeps if user space allowed that (power/control is "auto").
 *
 * Sleep of the system, hibernation included, is not noticed by programs:
 * launches on the device end first, copies start again, contents of HBM that
 * somebody holds spend the time in host memory. When that does not suffice, or a
 * launch does not end, the system does not go to sleep.
 */

#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/pci.h>
#include <linux/pm_runtime.h>
#include <linux/slab.h>

#include <drm/drm_drv.h>

#include "neuron_copy.h"
#include "neuron_ctx.h"
#include "neuron_drv.h"
#include "neuron_hbm.h"
#include "neuron_power.h"
#include "neuron_stream.h"

/* Longest wait for launches; those that hang are ended before by their own limit. */
#define SLEEP_IDLE_MS 30000

/* Time without an open file after which the device may sleep. */
#define SLEEP_AUTOSUSPEND_MS 2000

/* --- contexts ------------------------------------------------------------ */

static void ctx_hold(struct neuron_ctx *ctx, int unused)
{
	drm_sched_wqueue_stop(&ctx->sched);
}

static void ctx_let_go(struct neuron_ctx *ctx, int unused)
{
	drm_sched_wqueue_start(&ctx->sched);
}

static bool sleep_is_idle(struct neuron_device *ndev)
{
	unsigned int c, q;

	guard(mutex)(&ndev->reset_lock);
	for (c = 0; c < ndev->cores; c++) {
		guard(spinlock_irqsave)(&ndev->core[c].lock);
		for (q = 0; q < ndev->queues; q++) {
			struct neuron_ctx *ctx = ndev->core[c].ctx[q];

			if (!IS_ERR_OR_NULL(ctx) && ctx->head != ctx->tail)
				return false;
		}
	}
	return true;
}

static int sleep_wait_idle(struct neuron_device *ndev)
{
	unsigned long end = jiffies + msecs_to_jiffies(SLEEP_IDLE_MS);

	while (!sleep_is_idle(ndev)) {
		if (time_after(jiffies, end)) {
			drm_warn(&ndev->drm, "launches do not end, no sleep\n");
			return -EBUSY;
		}
		usleep_range(500, 1000);
	}
	return 0;
}

/* The queue is about to lose its state. */
static void ctx_park(struct neuron_ctx *ctx, int unused)
{
	guard(spinlock_irqsave)(&ctx->core->lock);
	ctx->parked = ctx->running;
	ctx->running = false;
}

/* The device was reset and counts from 0 again. A context without a queue is lost. */
static void ctx_unpark(struct neuron_ctx *ctx, int unused)
{
	if (!ctx->parked)
		return;
	/* The count of its ring starts anew too: a reader sees the end. */
	neuron_stream_detach(ctx, false);
	memset(ctx->mem, 0, sizeof(*ctx->mem));
	if (neuron_ctx_start_queue(ctx))
		return;
	guard(spinlock_irqsave)(&ctx->core->lock);
	ctx->head = 0;
	ctx->tail = 0;
	ctx->suspect = 0;
	ctx->fence_context = ctx->sleep_fences;
	ctx->running = ctx->parked;
	ctx->parked = false;
}

/* Numbers of fences begin anew, so they need a context of their own. */
static void ctx_new_fences(struct neuron_ctx *ctx, int unused)
{
	ctx->sleep_fences = dma_fence_context_alloc(1);
}

/* --- contents of HBM ----------------------------------------------------- */

static void sleep_free(struct neuron_device *ndev)
{
	struct neuron_hbm_block *block;

	scoped_guard(mutex, &ndev->hbm.lock) {
		list_for_each_entry(block, &ndev->hbm.given, node) {
			kvfree(block->saved);
			block->saved = NULL;
		}
	}
	if (ndev->sleep_buf)
		dma_free_coherent(ndev->drm.dev, NEURON_COPY_POLLED_MAX, ndev->sleep_buf,
				  ndev->sleep_dma);
	ndev->sleep_buf = NULL;
}

/* Before the reset lock is held: with it nothing may allocate. */
static int sleep_alloc(struct neuron_device *ndev)
{
	struct neuron_hbm_block *block;
	int ret = 0;

	ndev->sleep_buf = dma_alloc_coherent(ndev->drm.dev, NEURON_COPY_POLLED_MAX,
					     &ndev->sleep_dma, GFP_KERNEL);
	if (!ndev->sleep_buf)
		return -ENOMEM;
	scoped_guard(mutex, &ndev->hbm.lock) {
		list_for_each_entry(block, &ndev->hbm.given, node) {
			block->saved = kvmalloc(block->size,
						GFP_KERNEL | __GFP_NOWARN | __GFP_RETRY_MAYFAIL);
			if (!block->saved) {
				ret = -ENOMEM;
				break;
			}
		}
	}
	if (ret) {
		drm_warn(&ndev->drm, "no memory for 0x%llx bytes of HBM, no sleep\n",
			 neuron_hbm_used(&ndev->hbm));
		sleep_free(ndev);
	}
	return ret;
}

static int sleep_move_block(struct neuron_device *ndev, struct neuron_hbm_block *block, bool save)
{
	u64 host = ndev->hal->host_base | ndev->sleep_dma;
	u64 done;
	u32 n;
	int ret;

	for (done = 0; done < block->size; done += n) {
		n = min_t(u64, block->size - done, NEURON_COPY_POLLED_MAX);
		if (!save)
			memcpy(ndev->sleep_buf, block->saved + done, n);
		ret = neuron_copy_polled(ndev, save ? host : block->addr + done,
					 save ? block->addr + done : host, n);
		if (ret)
			return ret;
		if (save)
			memcpy(block->saved + done, ndev->sleep_buf, n);
	}
	return 0;
}

static int sleep_move(struct neuron_device *ndev, bool save)
{
	struct neuron_hbm_block *block;
	int ret = 0;

	neuron_copy_open(ndev);
	scoped_guard(mutex, &ndev->hbm.lock) {
		list_for_each_entry(block, &ndev->hbm.given, node) {
			if (block->saved)
				ret = sleep_move_block(ndev, block, save);
			if (ret)
				break;
		}
	}
	neuron_copy_close(ndev);
	if (ret)
		drm_err(&ndev->drm, "contents of HBM cannot be %s: %d\n",
			save ? "saved" : "restored", ret);
	return ret;
}

/* --- sleep of the system ------------------------------------------------- */

static int sleep_down(struct neuron_device *ndev)
{
	int ret;

	guard(mutex)(&ndev->reset_lock);
	if (ndev->power != NEURON_UP) {
		/* Nothing to be had from a dead device. */
		sleep_free(ndev);
		return 0;
	}
	neuron_power_pause(ndev);
	ret = sleep_move(ndev, true);
	if (ret) {
		neuron_power_continue(ndev);
		return ret;
	}
	neuron_ctx_for_each(ndev, ctx_park, 0);
	return 0;
}

static int neuron_suspend(struct device *dev)
{
	struct neuron_device *ndev = dev_get_drvdata(dev);
	int ret;

	scoped_guard(mutex, &ndev->reset_lock) {
		neuron_ctx_for_each(ndev, ctx_new_fences, 0);
		neuron_ctx_for_each(ndev, ctx_hold, 0);
	}
	ret = sleep_wait_idle(ndev);
	if (!ret)
		ret = sleep_alloc(ndev);
	if (!ret)
		ret = sleep_down(ndev);
	if (ret) {
		sleep_free(ndev);
		guard(mutex)(&ndev->reset_lock);
		neuron_ctx_for_each(ndev, ctx_let_go, 0);
	}
	return ret;
}

static int neuron_resume(struct device *dev)
{
	struct neuron_device *ndev = dev_get_drvdata(dev);
	int ret;

	scoped_guard(mutex, &ndev->reset_lock) {
		ret = neuron_power_restart(ndev);
		if (!ret)
			ret = sleep_move(ndev, false);
		if (!ret) {
			neuron_ctx_for_each(ndev, ctx_unpark, 0);
			neuron_power_continue(ndev);
		}
	}
	if (ret) {
		neuron_power_dead(ndev);
		neuron_power_event(ndev, true);
	}
	sleep_free(ndev);
	guard(mutex)(&ndev->reset_lock);
	neuron_ctx_for_each(ndev, ctx_let_go, 0);
	return ret;
}

/* --- sleep of the device alone ------------------------------------------- */

static int neuron_runtime_suspend(struct device *dev)
{
	neuron_power_down(dev_get_drvdata(dev));
	return 0;
}

static int neuron_runtime_resume(struct device *dev)
{
	return neuron_power_back(dev_get_drvdata(dev));
}

const struct dev_pm_ops neuron_pm_ops = { SYSTEM_SLEEP_PM_OPS(neuron_suspend, neuron_resume)
						  RUNTIME_PM_OPS(neuron_runtime_suspend,
								 neuron_runtime_resume, NULL) };

/**
 * neuron_sleep_get - Keep the device awake
 * @ndev: device
 *
 * Context: Process; wakes it up, which is a reset.
 * Return: 0, -errno when it does not wake up.
 */
int neuron_sleep_get(struct neuron_device *ndev)
{
	return pm_runtime_resume_and_get(ndev->drm.dev);
}

/**
 * neuron_sleep_get_if_used - Keep the device awake if somebody does anyway
 * @ndev: device
 *
 * For those who look at it again and again, which must not keep it awake.
 *
 * Return: true and neuron_sleep_put() is due.
 */
bool neuron_sleep_get_if_used(struct neuron_device *ndev)
{
	return !IS_ENABLED(CONFIG_PM) || pm_runtime_get_if_in_use(ndev->drm.dev) > 0;
}

/**
 * neuron_sleep_put - It may sleep again
 * @ndev: device
 */
void neuron_sleep_put(struct neuron_device *ndev)
{
	pm_runtime_mark_last_busy(ndev->drm.dev);
	pm_runtime_put_autosuspend(ndev->drm.dev);
}

/**
 * neuron_sleep_init - Let user space decide whether the device sleeps
 * @ndev: device, probed
 */
void neuron_sleep_init(struct neuron_device *ndev)
{
	pm_runtime_set_autosuspend_delay(ndev->drm.dev, SLEEP_AUTOSUSPEND_MS);
	pm_runtime_use_autosuspend(ndev->drm.dev);
	neuron_sleep_put(ndev);
}

/**
 * neuron_sleep_fini - Keep it awake until the driver is gone
 * @ndev: device, awake
 */
void neuron_sleep_fini(struct neuron_device *ndev)
{
	pm_runtime_get_noresume(ndev->drm.dev);
	pm_runtime_dont_use_autosuspend(ndev->drm.dev);
}
