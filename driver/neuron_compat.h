/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Differences between kernels, and only those. The driver is written for 7.2;
 * Kbuild asks the headers which of its spellings are there.
 */
#ifndef __NEURON_COMPAT_H__
#define __NEURON_COMPAT_H__

#ifdef NEURON_HAVE_DMEM
#include <linux/cgroup_dmem.h>
#endif
#include <linux/gpu_buddy.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include <drm/drm_drv.h>
#include <drm/drm_gem.h>
#include <drm/gpu_scheduler.h>

#ifndef NEURON_HAVE_BUDDY_LOCK
static inline void neuron_buddy_set_lock(struct gpu_buddy *mm, struct mutex *lock)
{
}

#define gpu_buddy_driver_set_lock neuron_buddy_set_lock
#endif

#ifndef NEURON_HAVE_DMA_BUF_INVALIDATE
#define dma_buf_invalidate_mappings dma_buf_move_notify
#define invalidate_mappings	    move_notify
#endif

#ifndef NEURON_HAVE_GEM_RESIDENT_ACTIVE
#define DRM_GEM_OBJECT_ACTIVE 0
#endif

#ifndef NEURON_HAVE_DMEM
/* As in linux/cgroup_dmem.h of a kernel without the controller. */
struct dmem_cgroup_region;
struct dmem_cgroup_pool_state;

static inline struct dmem_cgroup_region *drmm_cgroup_register_region(struct drm_device *drm,
								     const char *name, u64 size)
{
	return NULL;
}

static inline int dmem_cgroup_try_charge(struct dmem_cgroup_region *region, u64 size,
					 struct dmem_cgroup_pool_state **pool,
					 struct dmem_cgroup_pool_state **limit)
{
	*pool = NULL;
	*limit = NULL;
	return 0;
}

static inline void dmem_cgroup_uncharge(struct dmem_cgroup_pool_state *pool, u64 size)
{
}

static inline bool dmem_cgroup_state_evict_valuable(struct dmem_cgroup_pool_state *limit,
						    struct dmem_cgroup_pool_state *pool,
						    bool ignore_low, bool *hit_low)
{
	return true;
}

static inline void dmem_cgroup_pool_state_put(struct dmem_cgroup_pool_state *pool)
{
}
#endif

/*
 * Answer of a timedout_job that found no hang: the scheduler keeps the job. If
 * it is done by now, whoever was to free it may not have found it in the list.
 */
static inline enum drm_gpu_sched_stat neuron_sched_no_hang(struct drm_sched_job *job)
{
#ifdef NEURON_HAVE_SCHED_NO_HANG
	return DRM_GPU_SCHED_STAT_NO_HANG;
#else
	struct drm_gpu_scheduler *sched = job->sched;

	spin_lock(&sched->job_list_lock);
	list_add(&job->list, &sched->pending_list);
	spin_unlock(&sched->job_list_lock);
	queue_work(sched->submit_wq, &sched->work_free_job);
	return DRM_GPU_SCHED_STAT_NOMINAL;
#endif
}

#ifndef NEURON_HAVE_SCHED_NO_HANG
#define DRM_GPU_SCHED_STAT_RESET DRM_GPU_SCHED_STAT_NOMINAL
#endif

#ifndef NEURON_HAVE_SCHED_START_ERRNO
static inline void neuron_sched_start(struct drm_gpu_scheduler *sched, int error)
{
	drm_sched_start(sched);
}

#define drm_sched_start neuron_sched_start
#endif

#endif /* __NEURON_COMPAT_H__ */
