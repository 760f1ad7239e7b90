// SPDX-License-Identifier: GPL-2.0-only
/* /proc/PID/fdinfo: Documentation/gpu/drm-usage-stats.rst */

#include <drm/drm_file.h>
#include <drm/drm_gem.h>

#include "neuron_drv.h"

/**
 * neuron_show_fdinfo - What a file used and holds
 * @p: where to print
 * @file: the file
 */
void neuron_show_fdinfo(struct drm_printer *p, struct drm_file *file)
{
	struct neuron_file *nfile = file->driver_priv;
	struct neuron_device *ndev = nfile->ndev;
	struct drm_memory_stats stats = {};

	drm_printf(p, "drm-engine-core:\t%llu ns\n", (u64)atomic64_read(&nfile->core_ns));
	drm_printf(p, "drm-engine-capacity-core:\t%u\n", ndev->cores);
	drm_printf(p, "drm-engine-copy:\t%llu ns\n", (u64)atomic64_read(&nfile->copy_ns));
	drm_printf(p, "drm-engine-capacity-copy:\t%u\n", ndev->copy.engines);

	stats.private = atomic64_read(&nfile->hbm_bytes);
	stats.resident = stats.private;
	drm_print_memory_stats(p, &stats, DRM_GEM_OBJECT_RESIDENT, "hbm");
	stats.private = atomic64_read(&nfile->host_bytes);
	stats.resident = stats.private;
	drm_print_memory_stats(p, &stats, DRM_GEM_OBJECT_RESIDENT, "memory");
}
