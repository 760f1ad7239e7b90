/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef __NEURON_GEM_H__
#define __NEURON_GEM_H__

#include <linux/mutex.h>
#include <linux/scatterlist.h>
#include <linux/workqueue.h>

#include <drm/drm_gem.h>

#include "neuron_hbm.h"

struct drm_device;
struct drm_file;
struct mm_struct;
struct neuron_device;
struct neuron_file;

/**
 * struct neuron_gem - What buffers have mapped for the device's DMA
 *
 * Buffers may outlive the binding of the driver, their mappings may not.
 */
struct neuron_gem {
	/** @host_lock: Protects @host; innermost. */
	struct mutex host_lock;
	/** @host: Buffers whose pages are mapped, by &neuron_bo.mapped. */
	struct list_head host;
	/** @import_lock: Protects @imports; outside of reservations. */
	struct mutex import_lock;
	/** @imports: Buffers that are others' memory, by &neuron_bo.mapped. */
	struct list_head imports;
};

/**
 * struct neuron_bo - A buffer object; constant after creation
 */
struct neuron_bo {
	/** @base: Base. */
	struct drm_gem_object base;
	/** @nfile: File that pays for it, counted; not until the memory is there, or imported. */
	struct neuron_file *nfile;
	/** @flags: DRM_NEURON_BO_* of its creation. */
	u32 flags;
	/** @hbm: Its memory, with DRM_NEURON_BO_HBM and not evicted. */
	struct neuron_hbm_block hbm;
	/** @evicted: DRM_NEURON_BO_HBM in host memory. Protected by the reservation. */
	bool evicted;
	/** @spared: Not to be evicted. Protected by &neuron_evict.queue_sem. */
	bool spared;
	/** @pins: Peers that want it to stay in HBM. Protected by the reservation. */
	u32 pins;
	/** @lru: Place in &neuron_evict.lru. */
	struct list_head lru;
	/** @peers: Attachments of its dma-bufs. Protected by the reservation. */
	struct list_head peers;
	/** @pages: Its host memory; NULL when imported. */
	struct page **pages;
	/** @mm: Address space that pays for @pages, counted, with DRM_NEURON_BO_USER. */
	struct mm_struct *mm;
	/** @sgt: Host memory as the device sees it; when imported, of the attachment or NULL. */
	struct sg_table *sgt;
	/** @mapped: Place in &neuron_gem.host or &neuron_gem.imports. */
	struct list_head mapped;
	/** @moved: Imported and elsewhere than @sgt says. Protected by the reservation. */
	bool moved;
	/** @scrub: Fence of the scrub of @hbm, counted; NULL for host memory. */
	struct dma_fence *scrub;
	/** @put_work: Drops the reference that neuron_bo_put_later() was given. */
	struct work_struct put_work;
};

static inline struct neuron_bo *to_neuron_bo(struct drm_gem_object *obj)
{
	return container_of(obj, struct neuron_bo, base);
}

static inline bool neuron_bo_is_in_hbm(const struct neuron_bo *bo)
{
	return bo->flags & DRM_NEURON_BO_HBM && !bo->evicted;
}

int neuron_gem_init(struct neuron_device *ndev);
void neuron_gem_stop(struct neuron_device *ndev);
struct neuron_bo *neuron_bo_from_user(struct neuron_file *nfile, size_t size, unsigned long addr);
void neuron_bo_put_later(struct drm_gem_object *obj);
bool neuron_bo_is_clean(struct neuron_bo *bo);
struct neuron_bo *neuron_bo_alloc(struct drm_device *drm, size_t size, u32 flags);
int neuron_bo_check_coherent(struct drm_device *drm, struct sg_table *sgt);
int neuron_bo_get_backing(struct neuron_bo *bo);
void neuron_bo_put_backing(struct neuron_bo *bo);
int neuron_ioctl_bo_create(struct drm_device *drm, void *data, struct drm_file *file);
int neuron_ioctl_bo_info(struct drm_device *drm, void *data, struct drm_file *file);

#endif /* __NEURON_GEM_H__ */
