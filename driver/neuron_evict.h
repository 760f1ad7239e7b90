/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef __NEURON_EVICT_H__
#define __NEURON_EVICT_H__

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/rwsem.h>
#include <linux/spinlock.h>
#include <linux/types.h>

struct dmem_cgroup_region;
struct neuron_bo;
struct neuron_device;
struct neuron_hbm_block;

/**
 * struct neuron_evict - HBM buffers by last use
 */
struct neuron_evict {
	/**
	 * @queue_sem: Held for reading to queue work on buffers and to take HBM; for
	 * writing to wait for the work that is queued, while no more comes.
	 */
	struct rw_semaphore queue_sem;
	/** @lock: Protects @lru. */
	spinlock_t lock;
	/** @lru: Buffers in HBM, longest unused first; not counted. */
	struct list_head lru;
	/** @region: HBM as control groups count and limit it; NULL without such a controller. */
	struct dmem_cgroup_region *region;
	/** @bytes: Host memory of evicted buffers. */
	atomic64_t bytes;
	/** @evictions: Buffers ever moved to host memory. */
	atomic64_t evictions;
	/** @restores: Buffers ever moved back. */
	atomic64_t restores;
};

void neuron_evict_init(struct neuron_device *ndev);
int neuron_evict_start(struct neuron_device *ndev);
void neuron_evict_stop(struct neuron_device *ndev);
void neuron_evict_add(struct neuron_bo *bo);
void neuron_evict_remove(struct neuron_bo *bo);
void neuron_evict_used(struct neuron_bo *bo);
int neuron_evict_make_room(struct neuron_device *ndev, u64 size);
int neuron_evict_alloc(struct neuron_device *ndev, u64 size, struct neuron_hbm_block *block);
void neuron_evict_free(struct neuron_device *ndev, struct neuron_hbm_block *block);

int neuron_bo_make_resident(struct neuron_bo *bo);

#endif /* __NEURON_EVICT_H__ */
