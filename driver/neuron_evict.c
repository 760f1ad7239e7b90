// SPDX-License-Identifier: GPL-2.0-only
/*
 * More buffers than HBM: who has not been used for longest goes to host memory
 * when somebody else needs the room, and comes back when a launch names it.
 * Copies and CPU mappings take it where it lies.
 *
 * A list and two moves, and not TTM: a buffer has one place in HBM and one
 * outside, both of one piece for the device, nothing is ever bound or swapped
 * further, and a move is a copy like any other. TTM would bring its own buffer
 * object, life cycle and fault handler for that, and no kernel offers it to a
 * driver outside the tree by configuration. Programs stay: they are small, and
 * the device knows them by address.
 *
 * A move happens with the buffer's reservation held and after its last fence,
 * in the ioctl that wants the room and never on the way to a fence, so it may
 * allocate. It waits for its copy: the room can be given away at once, and when
 * the copy fails the buffer is where it was.
 *
 * Locks: whoever moves a buffer away on behalf of others only tries to take its
 * reservation, as he may hold some himself. If that gives no room he lets them
 * go, keeps everybody from queuing more work (&neuron_evict.queue_sem), and
 * waits for what is queued already: it ends, so he gets his room if there is any.
 */

#include <linux/dma-mapping.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>

#include <drm/drm_drv.h>
#include <drm/drm_vma_manager.h>

#include "neuron_copy.h"
#include "neuron_drv.h"
#include "neuron_evict.h"
#include "neuron_gem.h"
#include "neuron_prime.h"
#include "neuron_trace.h"

/* Buffers that cannot be moved, for want of host memory say, before giving up. */
#define EVICT_FAILURES 8

static int evict_mib = -1;
module_param(evict_mib, int, 0644);
MODULE_PARM_DESC(evict_mib, "Host memory for buffers evicted from HBM, MiB; 0: none; -1: half of "
			    "all (default)");

static u64 evict_limit(void)
{
	int mib = READ_ONCE(evict_mib);

	if (mib < 0)
		return (u64)totalram_pages() << PAGE_SHIFT >> 1;
	return (u64)mib << 20;
}

/**
 * neuron_evict_init - Start with no buffers
 * @ndev: device
 */
void neuron_evict_init(struct neuron_device *ndev)
{
	init_rwsem(&ndev->evict.queue_sem);
	spin_lock_init(&ndev->evict.lock);
	INIT_LIST_HEAD(&ndev->evict.lru);
}

/**
 * neuron_evict_add - From now on a buffer may be evicted
 * @bo: buffer in HBM, not on the list
 */
void neuron_evict_add(struct neuron_bo *bo)
{
	struct neuron_evict *evict = &to_neuron_device(bo->base.dev)->evict;

	guard(spinlock)(&evict->lock);
	list_add_tail(&bo->lru, &evict->lru);
}

/**
 * neuron_evict_remove - No longer
 * @bo: the buffer, on the list or not
 */
void neuron_evict_remove(struct neuron_bo *bo)
{
	struct neuron_evict *evict = &to_neuron_device(bo->base.dev)->evict;

	guard(spinlock)(&evict->lock);
	list_del_init(&bo->lru);
}

/**
 * neuron_evict_used - A buffer is in use now
 * @bo: the buffer
 */
void neuron_evict_used(struct neuron_bo *bo)
{
	struct neuron_evict *evict = &to_neuron_device(bo->base.dev)->evict;

	guard(spinlock)(&evict->lock);
	if (!list_empty(&bo->lru))
		list_move_tail(&bo->lru, &evict->lru);
}

static bool evict_is_idle(struct neuron_bo *bo)
{
	return dma_resv_test_signaled(bo->base.resv, DMA_RESV_USAGE_BOOKKEEP);
}

/* No access by CPU or peers from here on until the reservation is let go. */
static void evict_revoke(struct neuron_bo *bo)
{
	struct drm_device *drm = bo->base.dev;

	drm_vma_node_unmap(&bo->base.vma_node, drm->anon_inode->i_mapping);
	neuron_prime_revoke(bo);
}

static void evict_count(struct neuron_bo *bo, s64 out)
{
	struct neuron_evict *evict = &to_neuron_device(bo->base.dev)->evict;

	atomic64_add(out, &evict->bytes);
	atomic64_add(out, &bo->nfile->evicted_bytes);
	atomic64_add(out, &bo->nfile->host_bytes);
	atomic64_sub(out, &bo->nfile->hbm_bytes);
	atomic64_inc(out > 0 ? &evict->evictions : &evict->restores);
}

/* HBM to host memory. -EBUSY: it may not be moved now. */
static int evict_bo(struct neuron_bo *bo)
{
	struct neuron_device *ndev = to_neuron_device(bo->base.dev);
	int ret;

	dma_resv_assert_held(bo->base.resv);

	if (bo->evicted || bo->pins || !evict_is_idle(bo) || !neuron_bo_is_clean(bo))
		return -EBUSY;
	if (atomic64_read(&ndev->evict.bytes) + bo->base.size > evict_limit())
		return -ENOMEM;
	ret = neuron_bo_get_backing(bo);
	if (ret)
		return ret;
	evict_revoke(bo);
	ret = neuron_copy_move(bo, true);
	if (ret) {
		neuron_bo_put_backing(bo);
		return ret;
	}
	neuron_evict_remove(bo);
	neuron_hbm_free(&ndev->hbm, &bo->hbm);
	bo->evicted = true;
	evict_count(bo, bo->base.size);
	trace_neuron_move(ndev->drm.dev, bo->nfile->client_id, bo->base.size, true);
	return 0;
}

/* The longest unused buffer that nobody uses, counted and locked; NULL if none. */
static struct neuron_bo *evict_pick_idle(struct neuron_evict *evict)
{
	struct neuron_bo *bo;

	guard(spinlock)(&evict->lock);
	list_for_each_entry(bo, &evict->lru, lru) {
		if (!evict_is_idle(bo) || !dma_resv_trylock(bo->base.resv))
			continue;
		/* On the list it still has its memory, but it may be on its way out. */
		if (!bo->pins && kref_get_unless_zero(&bo->base.refcount))
			return bo;
		dma_resv_unlock(bo->base.resv);
	}
	return NULL;
}

/* The longest unused buffer that is not spared, counted; NULL if none. */
static struct neuron_bo *evict_pick_any(struct neuron_evict *evict)
{
	struct neuron_bo *bo;

	guard(spinlock)(&evict->lock);
	list_for_each_entry(bo, &evict->lru, lru)
		if (!bo->spared && !READ_ONCE(bo->pins) && kref_get_unless_zero(&bo->base.refcount))
			return bo;
	return NULL;
}

/* Take HBM, evicting what is idle. May be called with reservations held. */
static int evict_alloc(struct neuron_device *ndev, u64 size, struct neuron_hbm_block *block)
{
	unsigned int failures = 0;
	struct neuron_bo *bo;
	int ret;

	for (;;) {
		ret = neuron_hbm_alloc(&ndev->hbm, size, block);
		if (ret != -ENOSPC || size > ndev->hbm.largest || !evict_limit())
			return ret;
		bo = evict_pick_idle(&ndev->evict);
		if (!bo)
			return -ENOSPC;
		ret = evict_bo(bo);
		if (ret) /* another one next time */
			neuron_evict_used(bo);
		dma_resv_unlock(bo->base.resv);
		drm_gem_object_put(&bo->base);
		if (ret == -ERESTARTSYS)
			return ret;
		if (ret && ++failures == EVICT_FAILURES)
			return -ENOSPC;
	}
}

/**
 * neuron_evict_make_room - Evict a buffer, whatever it takes
 * @ndev: device
 *
 * Waits until the longest unused one that is not spared is idle.
 *
 * Context: Process; no reservation held, &neuron_evict.queue_sem for writing.
 * Return: 0 HBM is less full, -ENOSPC nothing can be evicted, -ERESTARTSYS.
 */
int neuron_evict_make_room(struct neuron_device *ndev)
{
	unsigned int failures;
	struct neuron_bo *bo;
	long ret;

	lockdep_assert_held_write(&ndev->evict.queue_sem);

	for (failures = 0; failures < EVICT_FAILURES && evict_limit(); failures++) {
		bo = evict_pick_any(&ndev->evict);
		if (!bo)
			break;
		ret = dma_resv_wait_timeout(bo->base.resv, DMA_RESV_USAGE_BOOKKEEP, true,
					    MAX_SCHEDULE_TIMEOUT);
		if (ret >= 0)
			ret = dma_resv_lock_interruptible(bo->base.resv, NULL);
		if (!ret) {
			ret = evict_bo(bo);
			if (ret)
				neuron_evict_used(bo);
			dma_resv_unlock(bo->base.resv);
		}
		drm_gem_object_put(&bo->base);
		if (!ret || ret == -ERESTARTSYS || ret == -EINTR)
			return ret;
	}
	return -ENOSPC;
}

/**
 * neuron_evict_alloc - Take HBM for a user, at the cost of others if need be
 * @ndev: device
 * @size: bytes, not 0, a multiple of the granule
 * @block: out: the memory, contents unknown
 *
 * Context: Process, no lock held, inside drm_dev_enter().
 * Return: 0, -ENOSPC, -ENOMEM, -ERESTARTSYS, -EINTR.
 */
int neuron_evict_alloc(struct neuron_device *ndev, u64 size, struct neuron_hbm_block *block)
{
	struct neuron_evict *evict = &ndev->evict;
	int ret;

	ret = neuron_hbm_alloc(&ndev->hbm, size, block);
	if (ret != -ENOSPC || size > ndev->hbm.largest)
		return ret;
	neuron_device_settle(ndev);

	ret = down_read_interruptible(&evict->queue_sem);
	if (ret)
		return ret;
	ret = evict_alloc(ndev, size, block);
	up_read(&evict->queue_sem);
	if (ret != -ENOSPC || !evict_limit())
		return ret;

	ret = down_write_killable(&evict->queue_sem);
	if (ret)
		return ret;
	do {
		ret = evict_alloc(ndev, size, block);
		if (ret != -ENOSPC)
			break;
		ret = neuron_evict_make_room(ndev);
	} while (!ret);
	up_write(&evict->queue_sem);
	return ret;
}

/**
 * neuron_bo_make_resident - Have a buffer in HBM
 * @bo: HBM buffer, its reservation held
 *
 * It stays there as long as there is a fence in its reservation that has not signalled.
 *
 * Context: Process, inside drm_dev_enter(); never on the way to a fence.
 * Return: 0, -ENOSPC neither room nor an idle buffer, -EIO the copy failed,
 * -ENOMEM, -ERESTARTSYS.
 */
int neuron_bo_make_resident(struct neuron_bo *bo)
{
	struct neuron_device *ndev = to_neuron_device(bo->base.dev);
	int ret;

	dma_resv_assert_held(bo->base.resv);

	if (!bo->evicted)
		return 0;
	/* Copies from and to where it lies now. */
	if (dma_resv_wait_timeout(bo->base.resv, DMA_RESV_USAGE_BOOKKEEP, true,
				  MAX_SCHEDULE_TIMEOUT) < 0)
		return -ERESTARTSYS;
	ret = evict_alloc(ndev, bo->base.size, &bo->hbm);
	if (ret)
		return ret;
	evict_revoke(bo);
	ret = neuron_copy_move(bo, false);
	if (ret) {
		neuron_hbm_free(&ndev->hbm, &bo->hbm);
		return ret;
	}
	bo->evicted = false;
	neuron_bo_put_backing(bo);
	neuron_evict_add(bo);
	evict_count(bo, -(s64)bo->base.size);
	trace_neuron_move(ndev->drm.dev, bo->nfile->client_id, bo->base.size, false);
	return 0;
}
