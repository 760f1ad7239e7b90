// SPDX-License-Identifier: GPL-2.0-only
/*
 * Buffers of the caller's own memory, for copies. The pages are pinned for the
 * buffer's whole life, which any program may ask for, so they count against
 * RLIMIT_MEMLOCK like those that RDMA pins: in pinned_vm, which takes no lock,
 * as the last reference may be dropped by a worker.
 */

#include <linux/capability.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include <drm/drm_drv.h>
#include <drm/drm_file.h>

#include "neuron_drv.h"
#include "neuron_gem.h"
#include "neuron_user.h"

/* Pages pinned at a time, between looks at signals. */
#define USER_PIN_PAGES 4096

static int user_account(struct drm_device *drm, struct mm_struct *mm, unsigned long pages)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	u64 pinned = atomic64_add_return(pages, &mm->pinned_vm);

	if (pinned <= limit || capable(CAP_IPC_LOCK))
		return 0;
	atomic64_sub(pages, &mm->pinned_vm);
	drm_dbg(drm, "user memory: %llu pages pinned, RLIMIT_MEMLOCK is %lu\n", pinned, limit);
	return -ENOMEM;
}

static int user_pin(struct neuron_bo *bo, unsigned long addr)
{
	unsigned long done = 0, count = bo->base.size >> PAGE_SHIFT;
	int n = 0;

	while (done < count && n >= 0) {
		n = pin_user_pages_fast(addr + done * PAGE_SIZE,
					min(count - done, (unsigned long)USER_PIN_PAGES),
					FOLL_WRITE | FOLL_LONGTERM, bo->pages + done);
		if (n > 0)
			done += n;
		else if (!n)
			n = -EFAULT;
		if (fatal_signal_pending(current))
			n = -EINTR;
		cond_resched();
	}
	if (n >= 0)
		return 0;
	drm_dbg(bo->base.dev, "user memory: cannot pin 0x%lx: %d\n", addr + done * PAGE_SIZE, n);
	unpin_user_pages(bo->pages, done);
	return n;
}

/**
 * neuron_user_get_pages - Pin the caller's memory for a buffer
 * @bo: the buffer; &neuron_bo.pages and &neuron_bo.mm are set
 * @addr: its first byte, page-aligned
 *
 * Context: Process of the user.
 * Return: 0, -EFAULT not all of it is memory that may be written and pinned,
 * -ENOMEM also above RLIMIT_MEMLOCK, -EINTR.
 */
int neuron_user_get_pages(struct neuron_bo *bo, unsigned long addr)
{
	unsigned long count = bo->base.size >> PAGE_SHIFT;
	struct mm_struct *mm = current->mm;
	int ret;

	if (count > totalram_pages())
		return -ENOMEM;
	ret = user_account(bo->base.dev, mm, count);
	if (ret)
		return ret;
	bo->pages = kvmalloc_objs(*bo->pages, count, GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!bo->pages) {
		ret = -ENOMEM;
		goto err_account;
	}
	ret = user_pin(bo, addr);
	if (ret)
		goto err_pages;
	mmgrab(mm);
	bo->mm = mm;
	return 0;

err_pages:
	kvfree(bo->pages);
	bo->pages = NULL;
err_account:
	atomic64_sub(count, &mm->pinned_vm);
	return ret;
}

/**
 * neuron_user_put_pages - Let the user's memory go
 * @bo: a buffer that neuron_user_get_pages() worked on; no longer mapped for DMA
 *
 * Context: May sleep.
 */
void neuron_user_put_pages(struct neuron_bo *bo)
{
	unsigned long count = bo->base.size >> PAGE_SHIFT;

	/* The device may have written any of them. */
	unpin_user_pages_dirty_lock(bo->pages, count, true);
	kvfree(bo->pages);
	bo->pages = NULL;
	atomic64_sub(count, &bo->mm->pinned_vm);
	mmdrop(bo->mm);
}

/**
 * neuron_ioctl_bo_pin - DRM_IOCTL_NEURON_BO_PIN
 * @drm: device
 * @data: struct drm_neuron_bo_pin
 * @file: caller
 *
 * Return: 0 or -errno as documented with the structure.
 */
int neuron_ioctl_bo_pin(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct drm_neuron_bo_pin *args = data;
	struct neuron_bo *bo;
	int ret, idx;
	u64 end;

	if (args->flags || !args->size || !PAGE_ALIGNED(args->addr) || !PAGE_ALIGNED(args->size)) {
		drm_dbg(drm, "user memory: flags 0x%x, address 0x%llx, size 0x%llx\n", args->flags,
			args->addr, args->size);
		return -EINVAL;
	}
	if (check_add_overflow(args->addr, args->size, &end) || end > ULONG_MAX ||
	    !access_ok(u64_to_user_ptr(args->addr), args->size)) {
		drm_dbg(drm, "user memory: 0x%llx + 0x%llx is not all yours\n", args->addr,
			args->size);
		return -EFAULT;
	}

	if (!drm_dev_enter(drm, &idx))
		return -ENODEV;
	bo = neuron_bo_from_user(file->driver_priv, args->size, args->addr);
	drm_dev_exit(idx);
	if (IS_ERR(bo))
		return PTR_ERR(bo);
	ret = drm_gem_handle_create(file, &bo->base, &args->handle);
	drm_gem_object_put(&bo->base);
	return ret;
}
