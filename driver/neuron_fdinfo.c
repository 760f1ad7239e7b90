// SPDX-License-Identifier: GPL-2.0-only
/*
 * /proc/PID/fdinfo: Documentation/gpu/drm-usage-stats.rst, and behind the keys of
 * that:
 *   neuron-launches    completed without fault
 *   neuron-core-N      device time that they took on core N, of cores with any
 *   neuron-constants   part of the HBM that is constants of programs, bytes
 *   neuron-code        part of it that is the rest of programs, bytes
 *   neuron-program-ID  bytes in HBM, launches given to the device, name
 *   neuron-programs    how many there are, more than listed perhaps
 */

#include <linux/dma-resv.h>

#include <drm/drm_file.h>
#include <drm/drm_gem.h>

#include "neuron_drv.h"
#include "neuron_gem.h"
#include "neuron_prog.h"

struct fdinfo_memory {
	struct drm_memory_stats hbm;
	struct drm_memory_stats host;
};

/*
 * An evicted buffer is among those of HBM, but resident in host memory. A look
 * without locks: buffers may move meanwhile.
 */
static void fdinfo_add(struct fdinfo_memory *memory, struct neuron_bo *bo)
{
	bool in_hbm = neuron_bo_is_in_hbm(bo);
	struct drm_memory_stats *of, *at;

	of = bo->flags & DRM_NEURON_BO_HBM ? &memory->hbm : &memory->host;
	at = in_hbm ? &memory->hbm : &memory->host;
	if (drm_gem_object_is_shared_for_memory_stats(&bo->base))
		of->shared += bo->base.size;
	else
		of->private += bo->base.size;
	at->resident += bo->base.size;
	if (!dma_resv_test_signaled(bo->base.resv, DMA_RESV_USAGE_BOOKKEEP))
		at->active += bo->base.size;
}

/* Buffers by handle. Programs are always in HBM. */
static void fdinfo_collect(struct fdinfo_memory *memory, struct drm_file *file)
{
	struct neuron_file *nfile = file->driver_priv;
	struct drm_gem_object *obj;
	int id;

	memory->hbm.private = atomic64_read(&nfile->prog_bytes);
	memory->hbm.resident = memory->hbm.private;
	guard(spinlock)(&file->table_lock);
	idr_for_each_entry(&file->object_idr, obj, id) fdinfo_add(memory, to_neuron_bo(obj));
}

/**
 * neuron_show_fdinfo - What a file used and holds
 * @p: where to print
 * @file: the file
 */
void neuron_show_fdinfo(struct drm_printer *p, struct drm_file *file)
{
	const enum drm_gem_object_status keys = DRM_GEM_OBJECT_RESIDENT | DRM_GEM_OBJECT_ACTIVE;
	struct neuron_file *nfile = file->driver_priv;
	struct neuron_device *ndev = nfile->ndev;
	struct fdinfo_memory memory = {};
	u64 ns, constants;
	u32 core;

	drm_printf(p, "drm-engine-core:\t%llu ns\n", (u64)atomic64_read(&nfile->core_ns));
	drm_printf(p, "drm-engine-capacity-core:\t%u\n", ndev->cores);
	drm_printf(p, "drm-engine-copy:\t%llu ns\n", (u64)atomic64_read(&nfile->copy_ns));
	drm_printf(p, "drm-engine-capacity-copy:\t%u\n", ndev->copy.engines);

	fdinfo_collect(&memory, file);
	drm_print_memory_stats(p, &memory.hbm, keys, "hbm");
	drm_print_memory_stats(p, &memory.host, keys, "memory");

	drm_printf(p, "neuron-launches:\t%llu\n", (u64)atomic64_read(&nfile->launches));
	for (core = 0; core < ndev->cores; core++) {
		ns = atomic64_read(&nfile->ns_of_core[core]);
		if (ns)
			drm_printf(p, "neuron-core-%u:\t%llu ns\n", core, ns);
	}
	/* A program that goes between the two looks leaves the second with less. */
	constants = atomic64_read(&nfile->const_bytes);
	drm_printf(p, "neuron-constants:\t%llu\n", constants);
	drm_printf(p, "neuron-code:\t%llu\n",
		   max_t(u64, atomic64_read(&nfile->prog_bytes), constants) - constants);
	neuron_prog_print(nfile, p);
}
