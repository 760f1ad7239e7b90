// SPDX-License-Identifier: GPL-2.0-only
/*
 * Where a new context goes: a core of the set that its owner named, and a queue
 * there. The rule looks at contexts alone, not at what they do at the moment, so
 * a program that makes its contexts in the same order gets the same cores.
 */

#include <linux/bits.h>
#include <linux/capability.h>
#include <linux/err.h>
#include <linux/minmax.h>

#include <drm/drm_print.h>

#include "neuron_ctx.h"
#include "neuron_drv.h"
#include "neuron_place.h"

/**
 * struct place_core - What contexts a core has
 */
struct place_core {
	/** @queue: First free queue; &neuron_device.queues: none. */
	u32 queue;
	/** @own: Queues of the user. */
	u32 own;
	/** @load: Contexts that take launches. */
	u32 load;
};

static struct place_core place_look(const struct neuron_device *ndev, u32 core, kuid_t uid)
{
	struct place_core found = { .queue = ndev->queues };
	const struct neuron_ctx *ctx;
	u32 q;

	lockdep_assert_held(&ndev->reset_lock);
	for (q = 0; q < ndev->queues; q++) {
		ctx = ndev->core[core].ctx[q];
		if (!ctx)
			found.queue = min(found.queue, q);
		if (IS_ERR_OR_NULL(ctx))
			continue;
		found.own += uid_eq(ctx->uid, uid);
		/* Those that died or are being destroyed only still have their queue. */
		found.load += READ_ONCE(ctx->running);
	}
	return found;
}

/* Half of a core's queues are enough for one user; an administrator may take them all. */
static bool place_has_room(struct neuron_device *ndev, u32 core, const struct place_core *found)
{
	if (found->queue == ndev->queues) {
		drm_dbg(&ndev->drm, "core %u: all %u queues taken\n", core, ndev->queues);
		return false;
	}
	if (found->own < max(ndev->queues / 2, 1U) || capable(CAP_SYS_RESOURCE))
		return true;
	drm_dbg(&ndev->drm, "core %u: %u queues of %u are this user's\n", core, found->own,
		ndev->queues);
	return false;
}

/**
 * neuron_place_ctx - Choose core and queue for a new context
 * @ndev: device
 * @cores: set of its cores to choose from
 * @uid: who will own it
 * @core: out
 * @queue: out: a free queue of @core
 *
 * Context: Process of the owner, &neuron_device.reset_lock held.
 * Return: 0, -ENOSPC no core of the set has a queue left for this user.
 */
int neuron_place_ctx(struct neuron_device *ndev, u64 cores, kuid_t uid, u32 *core, u32 *queue)
{
	struct place_core found;
	u32 c, least = U32_MAX;

	for (c = 0; c < ndev->cores; c++) {
		if (!(cores & BIT_ULL(c)))
			continue;
		found = place_look(ndev, c, uid);
		if (found.load >= least || !place_has_room(ndev, c, &found))
			continue;
		least = found.load;
		*core = c;
		*queue = found.queue;
	}
	return least == U32_MAX ? -ENOSPC : 0;
}

/**
 * neuron_place_check - Check what is asked for a new context
 * @ndev: device
 * @args: from user space
 *
 * Context: Process of the owner.
 * Return: 0, -EINVAL, -EACCES.
 */
int neuron_place_check(struct neuron_device *ndev, const struct drm_neuron_ctx_create *args)
{
	u64 present = GENMASK_ULL(ndev->cores - 1, 0);

	if (args->flags || args->core >= ndev->cores || args->priority > DRM_NEURON_PRIORITY_HIGH) {
		drm_dbg(&ndev->drm, "context: flags 0x%x, core %u of %u, priority %u\n",
			args->flags, args->core, ndev->cores, args->priority);
		return -EINVAL;
	}
	if (args->cores && (args->core || args->cores & ~present)) {
		drm_dbg(&ndev->drm, "context: cores 0x%llx of 0x%llx, and core %u\n", args->cores,
			present, args->core);
		return -EINVAL;
	}
	if (args->priority == DRM_NEURON_PRIORITY_HIGH && !capable(CAP_SYS_NICE)) {
		drm_dbg(&ndev->drm, "context: high priority needs CAP_SYS_NICE\n");
		return -EACCES;
	}
	return 0;
}

#ifdef CONFIG_DRM_ACCEL_NEURON_KUNIT_TEST
#include "tests/neuron_place_test.c"
#endif
