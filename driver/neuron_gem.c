// SPDX-License-Identifier: GPL-2.0-only
/*
 * Buffer objects. HBM is contiguous; under pressure it moves to host memory and
 * back (neuron_evict.c). Host memory is pages of our own, in the largest pieces
 * that are to be had, or of the caller (neuron_user.c), mapped for DMA for the
 * buffer's whole life; others' memory comes as a dma-buf (neuron_prime.c). What is
 * ours is zero when the user first sees it: pages by the page allocator, HBM by a
 * copy that everybody waits for (neuron_copy_scrub). CPU mappings are filled by
 * faults, so that they follow the buffer and end when the device goes.
 */

#include <linux/dma-mapping.h>
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include <drm/drm_drv.h>
#include <drm/drm_file.h>
#include <drm/drm_managed.h>
#include <drm/drm_prime.h>
#include <drm/drm_vma_manager.h>

#include "neuron_drv.h"
#include "neuron_evict.h"
#include "neuron_gem.h"
#include "neuron_prime.h"
#include "neuron_user.h"

/* Pages inserted by one fault: 64 KiB, as the next access is likely close. */
#define GEM_FAULT_PAGES (SZ_64K / PAGE_SIZE)

/* Largest piece of host memory asked for: one DMA descriptor. */
#define GEM_PAGE_ORDER get_order(SZ_64K)

/**
 * neuron_bo_is_clean - Does the buffer hold nothing of earlier owners?
 * @bo: the buffer, its kernel fences signalled
 *
 * Return: false when its scrub failed; nobody may see it then.
 */
bool neuron_bo_is_clean(struct neuron_bo *bo)
{
	return !bo->scrub || dma_fence_get_status(bo->scrub) == 1;
}

static void gem_free_pages(struct neuron_bo *bo, unsigned long count)
{
	unsigned long i;

	for (i = 0; i < count; i++)
		__free_page(bo->pages[i]);
	kvfree(bo->pages);
	bo->pages = NULL;
}

/* @zero: __GFP_ZERO, or 0 for who overwrites all of it. */
static int gem_get_pages(struct neuron_bo *bo, gfp_t zero)
{
	const gfp_t gfp = GFP_KERNEL_ACCOUNT | __GFP_NOWARN | __GFP_RETRY_MAYFAIL | zero;
	unsigned long i, filled = 0, count = bo->base.size >> PAGE_SHIFT;
	unsigned int order;
	struct page *page;

	if (count > totalram_pages())
		return -ENOMEM;
	bo->pages = kvmalloc_objs(*bo->pages, count, GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!bo->pages)
		return -ENOMEM;
	while (filled < count) {
		order = min_t(unsigned int, GEM_PAGE_ORDER, ilog2(count - filled));
		page = NULL;
		if (order)
			page = alloc_pages((gfp & ~__GFP_RETRY_MAYFAIL) | __GFP_NORETRY, order);
		if (!page) {
			order = 0;
			page = alloc_page(gfp);
		}
		if (!page || fatal_signal_pending(current)) {
			if (page)
				__free_pages(page, order);
			gem_free_pages(bo, filled);
			return -ENOMEM;
		}
		/* Mappings and freeing take them one by one. */
		split_page(page, order);
		for (i = 0; i < BIT(order); i++)
			bo->pages[filled++] = page + i;
		cond_resched();
	}
	return 0;
}

/**
 * neuron_bo_check_coherent - Can the device use this memory without synchronising caches?
 * @drm: device
 * @sgt: the memory as the device sees it
 *
 * The user writes at any time, so there is no moment to do it.
 *
 * Return: 0, -EOPNOTSUPP.
 */
int neuron_bo_check_coherent(struct drm_device *drm, struct sg_table *sgt)
{
	if (!dma_need_sync(drm->dev, sg_dma_address(sgt->sgl)))
		return 0;
	drm_dbg(drm, "host buffers need cache-coherent DMA\n");
	return -EOPNOTSUPP;
}

static void gem_free_table(struct neuron_bo *bo)
{
	sg_free_table(bo->sgt);
	kfree(bo->sgt);
}

/**
 * neuron_gem_init - Nothing is mapped
 * @ndev: device
 *
 * Return: 0, -ENOMEM.
 */
int neuron_gem_init(struct neuron_device *ndev)
{
	int ret;

	INIT_LIST_HEAD(&ndev->gem.host);
	INIT_LIST_HEAD(&ndev->gem.imports);
	ret = drmm_mutex_init(&ndev->drm, &ndev->gem.host_lock);
	if (ret)
		return ret;
	return drmm_mutex_init(&ndev->drm, &ndev->gem.import_lock);
}

/* The pages are no longer the device's; the user may keep them. */
static void gem_unmap_host(struct neuron_bo *bo)
{
	lockdep_assert_held(&to_neuron_device(bo->base.dev)->gem.host_lock);
	list_del_init(&bo->mapped);
	dma_unmap_sgtable(bo->base.dev->dev, bo->sgt, DMA_BIDIRECTIONAL, 0);
}

/**
 * neuron_gem_stop - Take all host memory away from the device
 * @ndev: device that is unplugged and stopped
 *
 * On return nothing is mapped for it. Buffers stay until their users let go of them.
 */
void neuron_gem_stop(struct neuron_device *ndev)
{
	struct neuron_bo *bo, *next;

	neuron_prime_stop(ndev);
	guard(mutex)(&ndev->gem.host_lock);
	list_for_each_entry_safe(bo, next, &ndev->gem.host, mapped)
		gem_unmap_host(bo);
}

/* Show @pages to the device, inside drm_dev_enter(). */
static int gem_map_host(struct neuron_bo *bo)
{
	struct drm_device *drm = bo->base.dev;
	struct neuron_gem *gem = &to_neuron_device(drm)->gem;
	int ret;

	bo->sgt = drm_prime_pages_to_sg(drm, bo->pages, bo->base.size >> PAGE_SHIFT);
	if (IS_ERR(bo->sgt))
		return PTR_ERR(bo->sgt);
	ret = dma_map_sgtable(drm->dev, bo->sgt, DMA_BIDIRECTIONAL, 0);
	if (ret)
		goto err_table;
	ret = neuron_bo_check_coherent(drm, bo->sgt);
	if (ret)
		goto err_map;
	scoped_guard(mutex, &gem->host_lock)
		list_add(&bo->mapped, &gem->host);
	return 0;

err_map:
	dma_unmap_sgtable(drm->dev, bo->sgt, DMA_BIDIRECTIONAL, 0);
err_table:
	gem_free_table(bo);
	return ret;
}

static void gem_put_pages(struct neuron_bo *bo)
{
	if (bo->flags & DRM_NEURON_BO_USER)
		neuron_user_put_pages(bo);
	else
		gem_free_pages(bo, bo->base.size >> PAGE_SHIFT);
}

/* @addr: of the user's memory, with DRM_NEURON_BO_USER. */
static int gem_init_host(struct neuron_file *nfile, struct neuron_bo *bo, unsigned long addr)
{
	int ret;

	if (bo->flags & DRM_NEURON_BO_USER)
		ret = neuron_user_get_pages(bo, addr);
	else
		ret = gem_get_pages(bo, __GFP_ZERO);
	if (ret)
		return ret;
	ret = gem_map_host(bo);
	if (ret) {
		gem_put_pages(bo);
		return ret;
	}
	atomic64_add(bo->base.size, &nfile->host_bytes);
	bo->nfile = neuron_file_get(nfile);
	return 0;
}

/**
 * neuron_bo_get_backing - Get host memory for an HBM buffer, mapped for DMA
 * @bo: the buffer
 *
 * At the cost of who created it, whoever evicts it.
 *
 * Return: 0, -ENOMEM, -EOPNOTSUPP DMA is not coherent.
 */
int neuron_bo_get_backing(struct neuron_bo *bo)
{
	struct mem_cgroup *old = set_active_memcg(bo->nfile->memcg);
	int ret;

	ret = gem_get_pages(bo, 0);
	set_active_memcg(old);
	if (ret)
		return ret;
	ret = gem_map_host(bo);
	if (ret)
		gem_free_pages(bo, bo->base.size >> PAGE_SHIFT);
	return ret;
}

/**
 * neuron_bo_put_backing - Let host memory go
 * @bo: a buffer with host memory that the device has no more use for
 */
void neuron_bo_put_backing(struct neuron_bo *bo)
{
	scoped_guard(mutex, &to_neuron_device(bo->base.dev)->gem.host_lock)
		if (!list_empty(&bo->mapped))
			gem_unmap_host(bo);
	gem_free_table(bo);
	gem_put_pages(bo);
}

/*
 * Who does not expect his buffers to be moved for one another is told that HBM is
 * full, so that a cache above lets go of what it does not need.
 */
static bool gem_fits(struct neuron_file *nfile, struct neuron_bo *bo)
{
	u64 own = atomic64_read(&nfile->hbm_bytes) + atomic64_read(&nfile->evicted_bytes);

	if (bo->flags & DRM_NEURON_BO_OVERCOMMIT || own + bo->base.size <= nfile->ndev->hbm.total)
		return true;
	drm_dbg(bo->base.dev, "buffer: 0x%zx bytes, this file has 0x%llx of 0x%llx\n",
		bo->base.size, own, nfile->ndev->hbm.total);
	return false;
}

static int gem_init_hbm(struct neuron_file *nfile, struct neuron_bo *bo)
{
	int ret;

	if (!gem_fits(nfile, bo))
		return -ENOSPC;
	ret = neuron_evict_alloc(nfile->ndev, bo->base.size, &bo->hbm);
	if (ret)
		return ret;
	atomic64_add(bo->base.size, &nfile->hbm_bytes);
	bo->nfile = neuron_file_get(nfile);
	ret = neuron_copy_scrub(nfile, bo);
	if (!ret)
		neuron_evict_add(bo);
	return ret;
}

static void gem_free_memory(struct neuron_bo *bo)
{
	struct neuron_file *nfile = bo->nfile;
	size_t size = bo->base.size;

	if (neuron_bo_is_in_hbm(bo)) {
		atomic64_sub(size, &nfile->hbm_bytes);
		neuron_evict_free(nfile->ndev, &bo->hbm);
		return;
	}
	neuron_bo_put_backing(bo);
	atomic64_sub(size, &nfile->host_bytes);
	if (bo->evicted) {
		atomic64_sub(size, &nfile->evicted_bytes);
		atomic64_sub(size, &nfile->ndev->evict.bytes);
	}
}

/* The last reference is gone: no handle, mapping or job uses it. */
static void gem_free(struct drm_gem_object *obj)
{
	struct neuron_bo *bo = to_neuron_bo(obj);
	struct neuron_file *nfile = bo->nfile;

	if (obj->import_attach) {
		neuron_prime_free(bo);
	} else if (nfile) {
		neuron_evict_remove(bo);
		/* A scrub that nobody waited for may still write it. */
		dma_resv_wait_timeout(obj->resv, DMA_RESV_USAGE_BOOKKEEP, false,
				      MAX_SCHEDULE_TIMEOUT);
		gem_free_memory(bo);
		dma_fence_put(bo->scrub);
	}
	drm_gem_object_release(obj);
	kfree(bo);
	if (nfile)
		neuron_file_put(nfile);
}

static unsigned long gem_pfn(struct neuron_device *ndev, struct neuron_bo *bo, pgoff_t page)
{
	if (!neuron_bo_is_in_hbm(bo))
		return page_to_pfn(bo->pages[page]);
	return PHYS_PFN(ndev->hbm.phys + bo->hbm.window) + page;
}

static vm_fault_t gem_insert(struct vm_fault *vmf, struct neuron_bo *bo)
{
	pgoff_t page = vmf->pgoff - drm_vma_node_start(&bo->base.vma_node);
	struct neuron_device *ndev = to_neuron_device(bo->base.dev);
	struct vm_area_struct *vma = vmf->vma;
	unsigned long addr = vmf->address & PAGE_MASK;
	unsigned long end = min(vma->vm_end, addr + GEM_FAULT_PAGES * PAGE_SIZE);
	pgoff_t pages = bo->base.size >> PAGE_SHIFT;
	pgprot_t prot = vm_get_page_prot(vma->vm_flags);
	vm_fault_t ret = VM_FAULT_SIGBUS;

	if (neuron_bo_is_in_hbm(bo))
		prot = pgprot_writecombine(prot);
	for (; addr < end && page < pages; addr += PAGE_SIZE, page++) {
		ret = vmf_insert_pfn_prot(vma, addr, gem_pfn(ndev, bo, page), prot);
		if (ret != VM_FAULT_NOPAGE)
			break;
	}
	/* Pages behind the wanted one are a bonus. */
	return addr > (vmf->address & PAGE_MASK) ? VM_FAULT_NOPAGE : ret;
}

/* Lock a buffer that the kernel does nothing with any more. */
static int gem_lock_quiet(struct drm_gem_object *obj)
{
	long left;
	int ret;

	for (;;) {
		left = dma_resv_wait_timeout(obj->resv, DMA_RESV_USAGE_KERNEL, true,
					     MAX_SCHEDULE_TIMEOUT);
		if (left < 0)
			return left;
		ret = dma_resv_lock_interruptible(obj->resv, NULL);
		if (ret || dma_resv_test_signaled(obj->resv, DMA_RESV_USAGE_KERNEL))
			return ret;
		dma_resv_unlock(obj->resv);
	}
}

static vm_fault_t gem_fault(struct vm_fault *vmf)
{
	struct drm_gem_object *obj = vmf->vma->vm_private_data;
	vm_fault_t ret = VM_FAULT_SIGBUS;
	int idx, error;

	/* Not before it is scrubbed; locked, so that it does not move meanwhile. */
	error = gem_lock_quiet(obj);
	if (error)
		return error == -ERESTARTSYS || error == -EINTR ? VM_FAULT_NOPAGE : VM_FAULT_SIGBUS;
	if (neuron_bo_is_clean(to_neuron_bo(obj)) && drm_dev_enter(obj->dev, &idx)) {
		ret = gem_insert(vmf, to_neuron_bo(obj));
		drm_dev_exit(idx);
	}
	dma_resv_unlock(obj->resv);
	return ret;
}

static const struct vm_operations_struct gem_vm_ops = {
	.fault = gem_fault,
	.open = drm_gem_vm_open,
	.close = drm_gem_vm_close,
};

static int gem_mmap(struct drm_gem_object *obj, struct vm_area_struct *vma)
{
	/* A private writable mapping would have to copy pages that have no struct page. */
	if (is_cow_mapping(vma->vm_flags)) {
		drm_dbg(obj->dev, "buffers can only be mapped shared\n");
		return -EINVAL;
	}
	vm_flags_set(vma, VM_IO | VM_PFNMAP | VM_DONTEXPAND | VM_DONTDUMP);
	vma->vm_page_prot = vm_get_page_prot(vma->vm_flags);
	return 0;
}

static struct sg_table *gem_get_sg_table(struct drm_gem_object *obj)
{
	struct neuron_bo *bo = to_neuron_bo(obj);

	return drm_prime_pages_to_sg(obj->dev, bo->pages, obj->size >> PAGE_SHIFT);
}

static const struct drm_gem_object_funcs gem_funcs = {
	.free = gem_free,
	.export = neuron_prime_export,
	.get_sg_table = gem_get_sg_table,
	.mmap = gem_mmap,
	.vm_ops = &gem_vm_ops,
};

static void bo_put_work(struct work_struct *work)
{
	struct neuron_bo *bo = container_of(work, struct neuron_bo, put_work);
	struct drm_device *drm = bo->base.dev;

	drm_gem_object_put(&bo->base);
	drm_dev_put(drm);
}

/**
 * neuron_bo_put_later - Drop a reference without freeing the buffer here
 * @obj: the buffer, or NULL
 *
 * For free_job. A time-out waits for it, with fences to signal, so it must not take
 * locks under which others allocate, as freeing does.
 */
void neuron_bo_put_later(struct drm_gem_object *obj)
{
	if (!obj || refcount_dec_not_one(&obj->refcount.refcount))
		return;
	/* Nobody else counts, so nobody else queues it. The file may go first. */
	drm_dev_get(obj->dev);
	queue_work(neuron_free_wq, &to_neuron_bo(obj)->put_work);
}

/**
 * neuron_bo_alloc - Make a buffer whose memory is still to come
 * @drm: device
 * @size: bytes, whole pages
 * @flags: DRM_NEURON_BO_*
 *
 * Return: the buffer, ERR_PTR(-ENOMEM).
 */
struct neuron_bo *neuron_bo_alloc(struct drm_device *drm, size_t size, u32 flags)
{
	struct neuron_bo *bo = kzalloc_obj(*bo, GFP_KERNEL_ACCOUNT);

	if (!bo)
		return ERR_PTR(-ENOMEM);
	bo->flags = flags;
	INIT_LIST_HEAD(&bo->lru);
	INIT_LIST_HEAD(&bo->mapped);
	INIT_LIST_HEAD(&bo->peers);
	INIT_WORK(&bo->put_work, bo_put_work);
	bo->base.funcs = &gem_funcs;
	drm_gem_private_object_init(drm, &bo->base, size);
	return bo;
}

static struct neuron_bo *gem_create(struct neuron_file *nfile, size_t size, u32 flags)
{
	struct neuron_bo *bo;
	int ret;

	bo = neuron_bo_alloc(&nfile->ndev->drm, size, flags);
	if (IS_ERR(bo))
		return bo;
	ret = flags & DRM_NEURON_BO_HBM ? gem_init_hbm(nfile, bo) : gem_init_host(nfile, bo, 0);
	if (!ret && flags & DRM_NEURON_BO_MMAP)
		ret = drm_gem_create_mmap_offset(&bo->base);
	if (ret) {
		drm_gem_object_put(&bo->base);
		return ERR_PTR(ret);
	}
	return bo;
}

/**
 * neuron_bo_from_user - Make a buffer of the caller's memory
 * @nfile: the caller's file
 * @size: bytes, whole pages
 * @addr: the first one, page-aligned
 *
 * Return: the buffer, ERR_PTR of neuron_user_get_pages(), -EOPNOTSUPP.
 */
struct neuron_bo *neuron_bo_from_user(struct neuron_file *nfile, size_t size, unsigned long addr)
{
	struct neuron_bo *bo;
	int ret;

	bo = neuron_bo_alloc(&nfile->ndev->drm, size, DRM_NEURON_BO_HOST | DRM_NEURON_BO_USER);
	if (IS_ERR(bo))
		return bo;
	ret = gem_init_host(nfile, bo, addr);
	if (ret) {
		drm_gem_object_put(&bo->base);
		return ERR_PTR(ret);
	}
	return bo;
}

/**
 * neuron_ioctl_bo_create - DRM_IOCTL_NEURON_BO_CREATE
 * @drm: device
 * @data: struct drm_neuron_bo_create
 * @file: caller
 *
 * Return: 0 or -errno as documented with the structure.
 */
int neuron_ioctl_bo_create(struct drm_device *drm, void *data, struct drm_file *file)
{
	const u32 known = DRM_NEURON_BO_HBM | DRM_NEURON_BO_HOST | DRM_NEURON_BO_MMAP |
			  DRM_NEURON_BO_OVERCOMMIT;
	struct drm_neuron_bo_create *args = data;
	struct neuron_bo *bo;
	int ret, idx;
	u64 size;

	if (args->flags & ~known || !args->size ||
	    !(args->flags & DRM_NEURON_BO_HBM) == !(args->flags & DRM_NEURON_BO_HOST) ||
	    (args->flags & DRM_NEURON_BO_OVERCOMMIT && !(args->flags & DRM_NEURON_BO_HBM))) {
		drm_dbg(drm, "buffer: flags 0x%x, size 0x%llx\n", args->flags, args->size);
		return -EINVAL;
	}
	if (check_add_overflow(args->size, NEURON_HBM_GRANULE - 1, &size) || size > S64_MAX) {
		drm_dbg(drm, "buffer: size 0x%llx\n", args->size);
		return args->flags & DRM_NEURON_BO_HBM ? -ENOSPC : -ENOMEM;
	}
	size &= ~(NEURON_HBM_GRANULE - 1);

	if (!drm_dev_enter(drm, &idx))
		return -ENODEV;
	bo = gem_create(file->driver_priv, size, args->flags);
	drm_dev_exit(idx);
	if (IS_ERR(bo))
		return PTR_ERR(bo);
	ret = drm_gem_handle_create(file, &bo->base, &args->handle);
	drm_gem_object_put(&bo->base);
	if (!ret)
		args->size = size;
	return ret;
}

/**
 * neuron_ioctl_bo_info - DRM_IOCTL_NEURON_BO_INFO
 * @drm: device
 * @data: struct drm_neuron_bo_info
 * @file: caller
 *
 * Return: 0 or -errno as documented with the structure.
 */
int neuron_ioctl_bo_info(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct drm_neuron_bo_info *args = data;
	struct drm_gem_object *obj;
	struct neuron_bo *bo;

	obj = drm_gem_object_lookup(file, args->handle);
	if (!obj) {
		drm_dbg(drm, "no buffer %u\n", args->handle);
		return -ENOENT;
	}
	bo = to_neuron_bo(obj);
	args->flags = bo->flags;
	args->size = obj->size;
	args->mmap_offset = 0;
	if (bo->flags & DRM_NEURON_BO_MMAP)
		args->mmap_offset = drm_vma_node_offset_addr(&obj->vma_node);
	drm_gem_object_put(obj);
	return 0;
}
