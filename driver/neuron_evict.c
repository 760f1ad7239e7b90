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
#include <linux/sched/signal.h>
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
MODULE_PARM_DESC(evict_mib, "Host memory for evicted HBM, MiB; 0: none; -1: half (default -1)");

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
 * neuron_evict_start - Let control groups count HBM
 * @ndev: device with its HBM
 *
 * Return: 0 or -errno.
 */
int neuron_evict_start(struct neuron_device *ndev)
{
	ndev->evict.region = drmm_cgroup_register_region(&ndev->drm, "hbm", ndev->hbm.total);
	return PTR_ERR_OR_ZERO(ndev->evict.region);
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
	neuron_evict_free(ndev, &bo->hbm);
	bo->evicted = true;
	evict_count(bo, bo->base.size);
	trace_neuron_move(ndev->drm.dev, bo->nfile->client_id, bo->base.size, true);
	return 0;
}

/* Would it help whose limit was hit, or anybody when it is NULL? */
static bool evict_helps(struct neuron_bo *bo, struct dmem_cgroup_pool_state *limit, bool low)
{
	bool hit_low = false;

	return dmem_cgroup_state_evict_valuable(limit, bo->hbm.pool, low, &hit_low);
}

/*
 * The longest unused buffer that nobody uses, counted and locked; NULL if none.
 * @low: also one that its control group wants to keep, if it can
 */
static struct neuron_bo *evict_pick_idle(struct neuron_evict *evict,
					 struct dmem_cgroup_pool_state *limit, bool low)
{
	struct neuron_bo *bo;

	guard(spinlock)(&evict->lock);
	list_for_each_entry(bo, &evict->lru, lru) {
		if (!evict_is_idle(bo) || !dma_resv_trylock(bo->base.resv))
			continue;
		/* On the list it still has its memory, but it may be on its way out. */
		if (!bo->pins && evict_helps(bo, limit, low) &&
		    kref_get_unless_zero(&bo->base.refcount))
			return bo;
		dma_resv_unlock(bo->base.resv);
	}
	return NULL;
}

/* The longest unused buffer that is not spared, counted; NULL if none. */
static struct neuron_bo *evict_pick_any(struct neuron_evict *evict,
					struct dmem_cgroup_pool_state *limit)
{
	struct neuron_bo *bo;

	guard(spinlock)(&evict->lock);
	list_for_each_entry(bo, &evict->lru, lru)
		if (!bo->spared && !READ_ONCE(bo->pins) && evict_helps(bo, limit, true) &&
		    kref_get_unless_zero(&bo->base.refcount))
			return bo;
	return NULL;
}

/*
 * Take HBM if there is some. -ENOSPC with @limit: the caller's control group may
 * have no more; to be put.
 */
static int evict_take(struct neuron_device *ndev, u64 size, struct neuron_hbm_block *block,
		      struct dmem_cgroup_pool_state **limit)
{
	struct dmem_cgroup_pool_state *pool;
	int ret;

	ret = dmem_cgroup_try_charge(ndev->evict.region, size, &pool, limit);
	if (ret)
		return ret == -EAGAIN ? -ENOSPC : ret;
	ret = neuron_hbm_alloc(&ndev->hbm, size, block);
	if (ret)
		dmem_cgroup_uncharge(pool, size);
	else
		block->pool = pool;
	return ret;
}

/**
 * neuron_evict_free - Give HBM back
 * @ndev: device
 * @block: block from neuron_evict_alloc(), idle on the device
 */
void neuron_evict_free(struct neuron_device *ndev, struct neuron_hbm_block *block)
{
	dmem_cgroup_uncharge(block->pool, block->size);
	neuron_hbm_free(&ndev->hbm, block);
}

/* Take HBM, evicting what is idle. May be called with reservations held. */
static int evict_alloc(struct neuron_device *ndev, u64 size, struct neuron_hbm_block *block)
{
	struct dmem_cgroup_pool_state *limit = NULL;
	unsigned int failures = 0;
	struct neuron_bo *bo;
	int ret;

	for (;;) {
		ret = evict_take(ndev, size, block, &limit);
		/*
		 * gpu_buddy says -ENOSPC too when it lacks the few bytes to split a block.
		 * Only a task that was killed to free memory can be refused those, and
		 * nobody who was killed needs HBM: others keep theirs.
		 */
		if (ret == -ENOSPC && fatal_signal_pending(current))
			ret = -EINTR;
		bo = NULL;
		if (ret == -ENOSPC && size <= ndev->hbm.largest && evict_limit())
			bo = evict_pick_idle(&ndev->evict, limit, false) ?:
				     evict_pick_idle(&ndev->evict, limit, true);
		dmem_cgroup_pool_state_put(limit);
		if (!bo)
			return ret;
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

/* The limit that keeps the caller from having so much more, to be put; NULL: none. */
static struct dmem_cgroup_pool_state *evict_find_limit(struct neuron_device *ndev, u64 size)
{
	struct dmem_cgroup_pool_state *pool, *limit;

	if (!dmem_cgroup_try_charge(ndev->evict.region, size, &pool, &limit))
		dmem_cgroup_uncharge(pool, size);
	return limit;
}

/**
 * neuron_evict_make_room - Evict a buffer, whatever it takes
 * @ndev: device
 * @size: bytes that are wanted
 *
 * Waits until the longest unused one that is not spared is idle.
 *
 * Context: Process; no reservation held, &neuron_evict.queue_sem for writing.
 * Return: 0 HBM is less full, -ENOSPC nothing can be evicted, -ERESTARTSYS, -EINTR.
 */
int neuron_evict_make_room(struct neuron_device *ndev, u64 size)
{
	struct dmem_cgroup_pool_state *limit;
	unsigned int failures;
	struct neuron_bo *bo;
	long ret;

	lockdep_assert_held_write(&ndev->evict.queue_sem);

	for (failures = 0; failures < EVICT_FAILURES && evict_limit(); failures++) {
		limit = evict_find_limit(ndev, size);
		bo = evict_pick_any(&ndev->evict, limit);
		dmem_cgroup_pool_state_put(limit);
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
	struct dmem_cgroup_pool_state *limit = NULL;
	struct neuron_evict *evict = &ndev->evict;
	int ret;

	ret = evict_take(ndev, size, block, &limit);
	dmem_cgroup_pool_state_put(limit);
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
		ret = neuron_evict_make_room(ndev, size);
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
 * -ENOMEM, -ERESTARTSYS, -EINTR the caller was killed.
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
		neuron_evict_free(ndev, &bo->hbm);
		return ret;
	}
	bo->evicted = false;
	neuron_bo_put_backing(bo);
	neuron_evict_add(bo);
	evict_count(bo, -(s64)bo->base.size);
	trace_neuron_move(ndev->drm.dev, bo->nfile->client_id, bo->base.size, false);
	return 0;
}

/* A buffer, counted and off the list; NULL if there is none. */
static struct neuron_bo *evict_pop(struct neuron_evict *evict)
{
	struct neuron_bo *bo, *next;

	guard(spinlock)(&evict->lock);
	list_for_each_entry_safe(bo, next, &evict->lru, lru) {
		list_del_init(&bo->lru);
		if (kref_get_unless_zero(&bo->base.refcount))
			return bo;
	}
	return NULL;
}

/**
 * neuron_evict_stop - Take HBM away from peers
 * @ndev: device that is unplugged and stopped
 *
 * The BAR may be somebody else's next.
 */
void neuron_evict_stop(struct neuron_device *ndev)
{
	struct neuron_bo *bo;
	bool shared;

	while ((bo = evict_pop(&ndev->evict))) {
		dma_resv_lock(bo->base.resv, NULL);
		shared = !list_empty(&bo->peers);
		neuron_prime_revoke(bo);
		dma_resv_unlock(bo->base.resv);
		/* What they have queued before. */
		if (shared)
			dma_resv_wait_timeout(bo->base.resv, DMA_RESV_USAGE_BOOKKEEP, false,
					      MAX_SCHEDULE_TIMEOUT);
		drm_gem_object_put(&bo->base);
	}
}
