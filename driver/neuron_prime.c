// SPDX-License-Identifier: GPL-2.0-only
/*
 * Buffers shared with other drivers as dma-bufs.
 *
 * Out: host memory goes to every importer. HBM goes to who can reach its BAR over
 * PCIe and says so: he gets bus addresses there. All others are refused when they
 * attach, as a copy behind their back would not stay equal. While HBM is evicted a
 * peer gets its host memory; whenever it moves he is told and asks again, and who
 * cannot do that pins it to HBM.
 *
 * In: a foreign dma-buf is a buffer in host memory for copies, wherever it lies,
 * a peer's BAR included; its CPU mapping is that of its exporter. It is mapped for
 * DMA by the first copy after each move. Of a buffer of the same device the
 * importer gets the buffer itself.
 *
 * A shared buffer is in implicit synchronisation too: jobs wait for the readers
 * and writers in its reservation (neuron_bo_wait) and are found there by others
 * (neuron_bo_add_fence). Before and after an access by the CPU, dma-buf itself
 * waits for these; caches need no care, as DMA is coherent (neuron_bo_check_coherent).
 */

#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/module.h>
#include <linux/pci-p2pdma.h>
#include <linux/pci.h>
#include <linux/slab.h>

#include <drm/drm_drv.h>
#include <drm/drm_prime.h>
#include <drm/gpu_scheduler.h>

#include "neuron_drv.h"
#include "neuron_gem.h"
#include "neuron_prime.h"

/* Longest piece of HBM in a scatter list, whose lengths have 32 bits. */
#define PRIME_PIECE_MAX ((u64)SZ_1G)

/* A peer's accesses end with the importer's mapping; the BAR needs no work of ours. */
#define PRIME_PEER_ATTRS DMA_ATTR_SKIP_CPU_SYNC

/* Somebody who has to be told when the buffer moves. */
struct prime_peer {
	struct list_head node;
	struct dma_buf_attachment *attach;
};

/* Where a neighbour device has the buffer's HBM; false: the peer is none. */
static bool prime_link(struct neuron_bo *bo, struct device *dev, u64 *addr)
{
	struct neuron_device *peer = neuron_pci_device(dev);

	return peer && neuron_link_addr(peer, to_neuron_device(bo->base.dev), bo->hbm.addr, addr);
}

static int prime_check_peer(struct neuron_bo *bo, struct dma_buf_attachment *attach)
{
	struct drm_device *drm = bo->base.dev;
	u64 addr;
	int ret;

	if (!prime_link(bo, attach->dev, &addr) &&
	    (!attach->peer2peer ||
	     pci_p2pdma_distance(to_pci_dev(drm->dev), attach->dev, false) < 0)) {
		drm_dbg(drm, "%s cannot reach HBM\n", dev_name(attach->dev));
		return -EOPNOTSUPP;
	}
	/* Nobody may see what earlier owners left in it. */
	ret = dma_fence_wait(bo->scrub, true);
	if (ret)
		return ret;
	return neuron_bo_is_clean(bo) ? 0 : -EIO;
}

static int prime_attach(struct dma_buf *buf, struct dma_buf_attachment *attach)
{
	struct drm_gem_object *obj = buf->priv;
	struct neuron_bo *bo = to_neuron_bo(obj);
	struct prime_peer *peer;
	int ret;

	if (bo->flags & DRM_NEURON_BO_HOST)
		return 0;
	ret = prime_check_peer(bo, attach);
	if (ret)
		return ret;
	peer = kzalloc_obj(*peer);
	if (!peer)
		return -ENOMEM;
	peer->attach = attach;
	attach->priv = peer;
	dma_resv_lock(obj->resv, NULL);
	list_add(&peer->node, &bo->peers);
	dma_resv_unlock(obj->resv);
	return 0;
}

static void prime_detach(struct dma_buf *buf, struct dma_buf_attachment *attach)
{
	struct drm_gem_object *obj = buf->priv;
	struct prime_peer *peer = attach->priv;

	if (!peer)
		return;
	dma_resv_lock(obj->resv, NULL);
	list_del(&peer->node);
	dma_resv_unlock(obj->resv);
	kfree(peer);
}

static int prime_pin(struct dma_buf_attachment *attach)
{
	struct drm_gem_object *obj = attach->dmabuf->priv;
	struct neuron_bo *bo = to_neuron_bo(obj);
	int ret, idx;

	dma_resv_assert_held(obj->resv);

	if (bo->flags & DRM_NEURON_BO_HOST)
		return 0;
	if (!drm_dev_enter(obj->dev, &idx))
		return -ENODEV;
	ret = neuron_bo_make_resident(bo);
	if (!ret)
		bo->pins++;
	drm_dev_exit(idx);
	return ret;
}

static void prime_unpin(struct dma_buf_attachment *attach)
{
	struct neuron_bo *bo = to_neuron_bo(attach->dmabuf->priv);

	if (bo->flags & DRM_NEURON_BO_HBM)
		bo->pins--;
}

/**
 * neuron_prime_revoke - Tell peers that a buffer is about to move
 * @bo: the buffer, its reservation held
 *
 * A dma-buf may outlive the handle, and so the buffer's pointer to it; who has
 * attached keeps his alive.
 */
void neuron_prime_revoke(struct neuron_bo *bo)
{
	struct dma_buf *told = NULL;
	struct prime_peer *peer;

	list_for_each_entry(peer, &bo->peers, node) {
		if (peer->attach->dmabuf == told)
			continue;
		told = peer->attach->dmabuf;
		dma_buf_invalidate_mappings(told);
	}
}

static struct sg_table *prime_map_hbm(struct neuron_bo *bo, struct device *peer,
				      enum dma_data_direction dir)
{
	u64 at = 0, len, size = bo->base.size;
	u64 piece = min(PRIME_PIECE_MAX, round_down((u64)dma_get_max_seg_size(peer), PAGE_SIZE));
	phys_addr_t phys = to_neuron_device(bo->base.dev)->hbm.phys + bo->hbm.window;
	struct scatterlist *sg;
	struct sg_table *sgt;
	dma_addr_t addr;
	u64 link;
	int ret;

	if (!piece)
		return ERR_PTR(-EINVAL);
	sgt = kzalloc_obj(*sgt);
	if (!sgt)
		return ERR_PTR(-ENOMEM);
	ret = sg_alloc_table(sgt, DIV_ROUND_UP_ULL(size, piece), GFP_KERNEL);
	if (ret)
		goto err_table;
	if (prime_link(bo, peer, &link)) {
		addr = link;
	} else {
		addr = dma_map_resource(peer, phys, size, dir, PRIME_PEER_ATTRS);
		if (dma_mapping_error(peer, addr)) {
			ret = -ENOMEM;
			goto err_entries;
		}
	}
	for (sg = sgt->sgl; sg; sg = sg_next(sg)) {
		len = min(piece, size - at);
		/* No struct page: only the device's view of it is of use. */
		sg_set_page(sg, NULL, len, 0);
		sg_dma_address(sg) = addr + at;
		sg_dma_len(sg) = len;
		at += len;
	}
	return sgt;

err_entries:
	sg_free_table(sgt);
err_table:
	kfree(sgt);
	return ERR_PTR(ret);
}

/* An evicted buffer, for a peer. */
static struct sg_table *prime_map_evicted(struct neuron_bo *bo, struct device *peer,
					  enum dma_data_direction dir)
{
	struct sg_table *sgt;
	int ret;

	sgt = drm_prime_pages_to_sg(bo->base.dev, bo->pages, bo->base.size >> PAGE_SHIFT);
	if (IS_ERR(sgt))
		return sgt;
	/* The pages may be gone when the peer lets go of what has moved. */
	ret = dma_map_sgtable(peer, sgt, dir, PRIME_PEER_ATTRS);
	if (!ret)
		return sgt;
	sg_free_table(sgt);
	kfree(sgt);
	return ERR_PTR(ret);
}

static struct sg_table *prime_map(struct dma_buf_attachment *attach, enum dma_data_direction dir)
{
	struct drm_gem_object *obj = attach->dmabuf->priv;
	struct neuron_bo *bo = to_neuron_bo(obj);
	struct sg_table *sgt;
	int idx;

	if (bo->flags & DRM_NEURON_BO_HOST)
		return drm_gem_map_dma_buf(attach, dir);
	if (!drm_dev_enter(obj->dev, &idx))
		return ERR_PTR(-ENODEV);
	if (neuron_bo_is_in_hbm(bo))
		sgt = prime_map_hbm(bo, attach->dev, dir);
	else
		sgt = prime_map_evicted(bo, attach->dev, dir);
	drm_dev_exit(idx);
	return sgt;
}

static void prime_unmap(struct dma_buf_attachment *attach, struct sg_table *sgt,
			enum dma_data_direction dir)
{
	struct neuron_bo *bo = to_neuron_bo(attach->dmabuf->priv);

	if (bo->flags & DRM_NEURON_BO_HOST) {
		drm_gem_unmap_dma_buf(attach, sgt, dir);
		return;
	}
	/* It may have moved since; HBM has no pages, and over NeuronLink nothing was mapped. */
	if (sg_page(sgt->sgl))
		dma_unmap_sgtable(attach->dev, sgt, dir, PRIME_PEER_ATTRS);
	else if (sg_dma_address(sgt->sgl) < to_neuron_device(bo->base.dev)->hal->neighbour)
		dma_unmap_resource(attach->dev, sg_dma_address(sgt->sgl), bo->base.size, dir,
				   PRIME_PEER_ATTRS);
	sg_free_table(sgt);
	kfree(sgt);
}

/*
 * Mappings of the dma-buf are not among those that end when the device goes, so
 * that HBM can be mapped through the device's own file only.
 */
static int prime_mmap(struct dma_buf *buf, struct vm_area_struct *vma)
{
	struct drm_gem_object *obj = buf->priv;
	const u32 need = DRM_NEURON_BO_HOST | DRM_NEURON_BO_MMAP;

	if ((to_neuron_bo(obj)->flags & need) != need) {
		drm_dbg(obj->dev, "dma-buf: not a host buffer that may be mapped\n");
		return -EACCES;
	}
	return drm_gem_dmabuf_mmap(buf, vma);
}

static const struct dma_buf_ops prime_ops = {
	.attach = prime_attach,
	.detach = prime_detach,
	.pin = prime_pin,
	.unpin = prime_unpin,
	.map_dma_buf = prime_map,
	.unmap_dma_buf = prime_unmap,
	.mmap = prime_mmap,
	.release = drm_gem_dmabuf_release,
};

/**
 * neuron_prime_export - Make a dma-buf of a buffer
 * @obj: the buffer
 * @flags: of the file
 *
 * Return: the dma-buf, ERR_PTR: -EPERM memory of the user, -ENOMEM.
 */
struct dma_buf *neuron_prime_export(struct drm_gem_object *obj, int flags)
{
	struct dma_buf_export_info info = {
		.exp_name = KBUILD_MODNAME,
		.owner = obj->dev->driver->fops->owner,
		.ops = &prime_ops,
		.size = obj->size,
		.flags = flags,
		.priv = obj,
		.resv = obj->resv,
	};

	/* Whoever gets the dma-buf would hold pages that somebody else pays for. */
	if (to_neuron_bo(obj)->flags & DRM_NEURON_BO_USER) {
		drm_dbg(obj->dev, "memory of the user cannot be shared\n");
		return ERR_PTR(-EPERM);
	}
	return drm_gem_dmabuf_export(obj->dev, &info);
}

static void prime_moved(struct dma_buf_attachment *attach)
{
	struct neuron_bo *bo = attach->importer_priv;

	dma_resv_assert_held(attach->dmabuf->resv);

	/* Copies may still use the mapping: it goes before the next one. */
	bo->moved = true;
}

static const struct dma_buf_attach_ops prime_attach_ops = {
	.allow_peer2peer = true,
	.invalidate_mappings = prime_moved,
};

static int prime_check_table(struct neuron_bo *bo, struct sg_table *sgt)
{
	struct scatterlist *sg;
	u64 mapped = 0;
	int i;

	for_each_sgtable_dma_sg(sgt, sg, i)
		mapped += sg_dma_len(sg);
	if (mapped < bo->base.size) {
		drm_dbg(bo->base.dev, "dma-buf of 0x%zx bytes, 0x%llx mapped\n", bo->base.size,
			mapped);
		return -EINVAL;
	}
	return neuron_bo_check_coherent(bo->base.dev, sgt);
}

/* Its reservation is held, and nothing that uses the mapping is under way. */
static void prime_unmap_import(struct neuron_bo *bo)
{
	dma_buf_unmap_attachment(bo->base.import_attach, bo->sgt, DMA_BIDIRECTIONAL);
	bo->sgt = NULL;
}

/**
 * neuron_prime_map - Map an imported buffer for DMA, unless it is
 * @bo: any buffer, its reservation held
 *
 * The mapping is good as long as there is a fence in the reservation that has not
 * signalled.
 *
 * Return: 0, what the exporter says, -EINVAL less than all of it is mapped,
 * -EOPNOTSUPP DMA needs bounce buffers, -ERESTARTSYS.
 */
int neuron_prime_map(struct neuron_bo *bo)
{
	struct dma_buf_attachment *attach = bo->base.import_attach;
	struct sg_table *sgt;
	int ret;

	if (!attach || (bo->sgt && !bo->moved))
		return 0;
	if (bo->sgt) {
		if (dma_resv_wait_timeout(bo->base.resv, DMA_RESV_USAGE_BOOKKEEP, true,
					  MAX_SCHEDULE_TIMEOUT) < 0)
			return -ERESTARTSYS;
		prime_unmap_import(bo);
	}
	bo->moved = false;
	sgt = dma_buf_map_attachment(attach, DMA_BIDIRECTIONAL);
	if (IS_ERR(sgt))
		return PTR_ERR(sgt);
	ret = prime_check_table(bo, sgt);
	if (ret) {
		dma_buf_unmap_attachment(attach, sgt, DMA_BIDIRECTIONAL);
		return ret;
	}
	bo->sgt = sgt;
	return 0;
}

/**
 * neuron_prime_free - Let go of what an imported buffer was made of
 * @bo: the buffer
 */
void neuron_prime_free(struct neuron_bo *bo)
{
	struct neuron_gem *gem = &to_neuron_device(bo->base.dev)->gem;

	guard(mutex)(&gem->import_lock);
	list_del_init(&bo->mapped);
	drm_prime_gem_destroy(&bo->base, bo->sgt);
}

/**
 * neuron_prime_stop - Take all imported memory away from the device
 * @ndev: device that is unplugged and stopped
 */
void neuron_prime_stop(struct neuron_device *ndev)
{
	struct neuron_bo *bo;

	guard(mutex)(&ndev->gem.import_lock);
	list_for_each_entry(bo, &ndev->gem.imports, mapped) {
		dma_resv_lock(bo->base.resv, NULL);
		if (bo->sgt)
			prime_unmap_import(bo);
		dma_resv_unlock(bo->base.resv);
	}
}

static struct drm_gem_object *prime_import(struct drm_device *drm, struct dma_buf *buf)
{
	struct neuron_device *ndev = to_neuron_device(drm);
	struct dma_buf_attachment *attach;
	struct neuron_bo *bo;
	int ret;

	if (!buf->size || !PAGE_ALIGNED(buf->size)) {
		drm_dbg(drm, "dma-buf of 0x%zx bytes\n", buf->size);
		return ERR_PTR(-EINVAL);
	}
	bo = neuron_bo_alloc(drm, buf->size, DRM_NEURON_BO_HOST);
	if (IS_ERR(bo))
		return ERR_CAST(bo);
	bo->base.resv = buf->resv;
	attach = dma_buf_dynamic_attach(buf, drm->dev, &prime_attach_ops, bo);
	if (IS_ERR(attach)) {
		ret = PTR_ERR(attach);
		goto err_bo;
	}
	get_dma_buf(buf);
	bo->base.import_attach = attach;
	scoped_guard(mutex, &ndev->gem.import_lock)
		list_add(&bo->mapped, &ndev->gem.imports);

	/* What cannot be mapped is found out now. */
	ret = dma_resv_lock_interruptible(buf->resv, NULL);
	if (ret)
		goto err_bo;
	ret = neuron_prime_map(bo);
	dma_resv_unlock(buf->resv);
	if (ret)
		goto err_bo;
	return &bo->base;

err_bo:
	drm_gem_object_put(&bo->base);
	return ERR_PTR(ret);
}

/**
 * neuron_prime_import - Make a buffer of a dma-buf
 * @drm: device
 * @buf: the dma-buf
 *
 * Return: the buffer, counted; ERR_PTR: what its exporter says, -EINVAL less than
 * whole pages, -EOPNOTSUPP DMA needs bounce buffers, -ENODEV, -ENOMEM, -ERESTARTSYS.
 */
struct drm_gem_object *neuron_prime_import(struct drm_device *drm, struct dma_buf *buf)
{
	struct drm_gem_object *obj = buf->priv;
	int idx;

	if (buf->ops == &prime_ops && obj->dev == drm) {
		drm_gem_object_get(obj);
		return obj;
	}
	if (!drm_dev_enter(drm, &idx))
		return ERR_PTR(-ENODEV);
	obj = prime_import(drm, buf);
	drm_dev_exit(idx);
	return obj;
}

/* Does anybody outside this driver know the buffer? */
static bool prime_is_shared(struct drm_gem_object *obj)
{
	return READ_ONCE(obj->dma_buf) || obj->import_attach;
}

/**
 * neuron_bo_wait - Make a job wait for what must be done with a buffer before
 * @job: initialised job
 * @obj: the buffer, its reservation locked
 * @write: does the job write it?
 *
 * That is what the kernel does with it, and for a shared buffer also what others
 * do; jobs on one that is not are ordered by the user's fences alone.
 *
 * Return: 0, -ENOMEM.
 */
int neuron_bo_wait(struct drm_sched_job *job, struct drm_gem_object *obj, bool write)
{
	enum dma_resv_usage usage = DMA_RESV_USAGE_KERNEL;

	if (prime_is_shared(obj))
		usage = dma_resv_usage_rw(write);
	return drm_sched_job_add_resv_dependencies(job, obj->resv, usage);
}

/**
 * neuron_bo_add_fence - Say until when a job uses a buffer
 * @obj: the buffer, its reservation locked, with NEURON_BO_FENCES reserved
 * @fence: fence of the armed job
 * @write: does the job write it?
 *
 * Also when the buffer is not shared: it may be before the job is done. May be
 * called again with the same fence.
 */
void neuron_bo_add_fence(struct drm_gem_object *obj, struct dma_fence *fence, bool write)
{
	dma_resv_add_fence(obj->resv, fence, write ? DMA_RESV_USAGE_WRITE : DMA_RESV_USAGE_READ);
}

/* The form that both spellings of MODULE_IMPORT_NS() come down to. */
MODULE_INFO(import_ns, "DMA_BUF");
