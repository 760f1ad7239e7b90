// SPDX-License-Identifier: GPL-2.0-only
/* Fences that user space names: syncobjs in and out of a job. */

#include <linux/dma-fence-chain.h>
#include <linux/slab.h>

#include <drm/drm_file.h>
#include <drm/drm_syncobj.h>

#include "neuron_drv.h"
#include "neuron_sync.h"

static int neuron_syncs_get(struct drm_file *file, const struct drm_neuron_array *array,
			    struct drm_neuron_sync **syncs)
{
	struct drm_device *drm = file->minor->dev;
	u32 i;
	int ret;

	ret = neuron_array_get(drm, array, sizeof(**syncs), sizeof(**syncs), NEURON_SYNCS_MAX,
			       (void **)syncs);
	if (ret)
		return ret;
	for (i = 0; i < array->count; i++) {
		if (!(*syncs)[i].flags)
			continue;
		drm_dbg(drm, "sync %u: unknown flags 0x%x\n", i, (*syncs)[i].flags);
		kvfree(*syncs);
		*syncs = NULL;
		return -EINVAL;
	}
	return 0;
}

/**
 * neuron_sync_in - Make a job wait for the user's fences
 * @file: caller
 * @array: struct drm_neuron_sync
 * @job: initialised job
 *
 * Return: 0, -ENOENT no such syncobj, -EINVAL no fence in it or bad array, -ENOMEM, -EFAULT.
 */
int neuron_sync_in(struct drm_file *file, const struct drm_neuron_array *array,
		   struct drm_sched_job *job)
{
	struct drm_neuron_sync *syncs;
	struct dma_fence *fence;
	u32 i;
	int ret;

	ret = neuron_syncs_get(file, array, &syncs);
	if (ret)
		return ret;
	for (i = 0; i < array->count && !ret; i++) {
		ret = drm_syncobj_find_fence(file, syncs[i].handle, syncs[i].point, 0, &fence);
		if (!ret)
			ret = drm_sched_job_add_dependency(job, fence);
	}
	kvfree(syncs);
	return ret;
}

/**
 * neuron_sync_out_prepare - Take everything that signalling the user's syncobjs needs
 * @file: caller
 * @array: struct drm_neuron_sync
 * @outs: out: to be freed by neuron_sync_out_free(), in any case
 *
 * Return: 0, -ENOENT no such syncobj, -EINVAL bad array, -ENOMEM, -EFAULT.
 */
int neuron_sync_out_prepare(struct drm_file *file, const struct drm_neuron_array *array,
			    struct neuron_sync_outs *outs)
{
	struct drm_neuron_sync *syncs;
	struct neuron_sync_out *out;
	int ret;

	ret = neuron_syncs_get(file, array, &syncs);
	if (ret || !array->count)
		return ret;

	outs->out = kvzalloc_objs(*outs->out, array->count);
	if (!outs->out)
		ret = -ENOMEM;
	while (!ret && outs->count < array->count) {
		out = &outs->out[outs->count];
		out->point = syncs[outs->count].point;
		out->syncobj = drm_syncobj_find(file, syncs[outs->count].handle);
		if (!out->syncobj) {
			ret = -ENOENT;
			break;
		}
		outs->count++;
		if (!out->point)
			continue;
		out->chain = dma_fence_chain_alloc();
		if (!out->chain)
			ret = -ENOMEM;
	}
	kvfree(syncs);
	return ret;
}

/**
 * neuron_sync_out_publish - Put a fence into the user's syncobjs; cannot fail
 * @outs: prepared
 * @fence: fence of the armed job
 */
void neuron_sync_out_publish(struct neuron_sync_outs *outs, struct dma_fence *fence)
{
	struct neuron_sync_out *out;
	u32 i;

	for (i = 0; i < outs->count; i++) {
		out = &outs->out[i];
		if (out->chain) {
			drm_syncobj_add_point(out->syncobj, out->chain, fence, out->point);
			out->chain = NULL;
		} else {
			drm_syncobj_replace_fence(out->syncobj, fence);
		}
	}
}

/**
 * neuron_sync_out_free - Free what neuron_sync_out_prepare() took
 * @outs: prepared, published or zero
 */
void neuron_sync_out_free(struct neuron_sync_outs *outs)
{
	u32 i;

	for (i = 0; i < outs->count; i++) {
		dma_fence_chain_free(outs->out[i].chain);
		drm_syncobj_put(outs->out[i].syncobj);
	}
	kvfree(outs->out);
}

/**
 * neuron_inflight_init - Start at no job
 * @inflight: the bound
 */
void neuron_inflight_init(struct neuron_inflight *inflight)
{
	atomic_set(&inflight->count, 0);
	init_waitqueue_head(&inflight->wait);
}

static bool neuron_inflight_try(struct neuron_inflight *inflight, u32 n)
{
	int count = atomic_read(&inflight->count);

	do {
		if (count + n > NEURON_INFLIGHT_MAX)
			return false;
	} while (!atomic_try_cmpxchg(&inflight->count, &count, count + n));
	return true;
}

/**
 * neuron_inflight_get_many - Wait until n more jobs are allowed
 * @inflight: the bound
 * @n: how many, at most NEURON_INFLIGHT_MAX
 *
 * All at once: two callers that each had a part would wait for one another.
 *
 * Context: Process, no lock held.
 * Return: 0, -ERESTARTSYS.
 */
int neuron_inflight_get_many(struct neuron_inflight *inflight, u32 n)
{
	return wait_event_interruptible(inflight->wait, neuron_inflight_try(inflight, n));
}

/**
 * neuron_inflight_get - Wait until one more job is allowed
 * @inflight: the bound
 *
 * Context: Process, no lock held.
 * Return: 0, -ERESTARTSYS.
 */
int neuron_inflight_get(struct neuron_inflight *inflight)
{
	return neuron_inflight_get_many(inflight, 1);
}

/**
 * neuron_inflight_put - A job is gone
 * @inflight: the bound
 */
void neuron_inflight_put(struct neuron_inflight *inflight)
{
	atomic_dec(&inflight->count);
	wake_up(&inflight->wait);
}
