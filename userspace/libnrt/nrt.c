// SPDX-License-Identifier: Apache-2.0
/* Opening, closing, counts, versions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nrt/nrt_version.h>

#include "nrt_impl.h"

static struct {
	pthread_mutex_t lock;
	struct nrtx_stream *stream[NRTI_CORES_MAX];
} streams = { .lock = PTHREAD_MUTEX_INITIALIZER };

struct nrtx_stream *nrti_core_stream(uint32_t vnc, NRT_STATUS *status)
{
	struct nrtx_stream *stream = NULL;

	*status = nrti_runtime_check();
	if (*status)
		return NULL;
	if (!nrti_core_get(vnc, status))
		return NULL;
	pthread_mutex_lock(&streams.lock);
	if (!streams.stream[vnc])
		*status = nrtx_stream_create(vnc, 0, &streams.stream[vnc]);
	stream = streams.stream[vnc];
	pthread_mutex_unlock(&streams.lock);
	return stream;
}

void nrti_core_streams_close(void)
{
	pthread_mutex_lock(&streams.lock);
	for (uint32_t i = 0; i < NRTI_CORES_MAX; i++) {
		nrtx_stream_destroy(streams.stream[i]);
		streams.stream[i] = NULL;
	}
	pthread_mutex_unlock(&streams.lock);
}

NRT_STATUS nrt_init(nrt_framework_type_t framework, const char *fw_version, const char *fal_version)
{
	NRT_STATUS status;

	if (framework <= NRT_FRAMEWORK_TYPE_INVALID || framework > NRT_FRAMEWORK_TYPE_PRECHECK)
		return nrti_error(NRT_INVALID, "nrt_init: framework type %d does not exist",
				  (int)framework);
	status = nrti_runtime_open(true);
	if (status)
		return status;
	nrti_runtime_mark_init();
	nrti_log(NRTI_LOG_INFO, "nrt_init: framework %d, version '%s', abstraction layer '%s'",
		 (int)framework, fw_version ? fw_version : "", fal_version ? fal_version : "");
	return NRT_SUCCESS;
}

void nrt_close(void)
{
	if (nrti_runtime_check())
		return;
	nrti_async_close();
	nrti_core_streams_close();
	nrti_runtime_close();
}

static NRT_STATUS count_total(uint32_t *count)
{
	NRT_STATUS status = nrti_runtime_open(false);

	if (!count)
		return nrti_error(NRT_INVALID, "the place for the count is NULL");
	*count = status ? 0 : nrti_core_total();
	return status;
}

NRT_STATUS nrt_get_total_nc_count(uint32_t *count)
{
	return count_total(count);
}

NRT_STATUS nrt_get_total_vnc_count(uint32_t *count)
{
	return count_total(count);
}

NRT_STATUS nrt_get_visible_nc_count(uint32_t *count)
{
	return nrtx_core_count(count);
}

NRT_STATUS nrt_get_visible_vnc_count(uint32_t *count)
{
	return nrtx_core_count(count);
}

NRT_STATUS nrt_get_instance_info(nrt_instance_info_t *info, size_t len)
{
	static const uint32_t families[] = {
		[2] = NRT_INSTANCE_TRN1,
		[3] = NRT_INSTANCE_TRN2,
		[4] = NRT_INSTANCE_TRN3,
	};
	nrt_instance_info_t all = { .size = NRT_INSTANCE_SIZE_UNKNOWN };
	struct nrti_core *core;
	NRT_STATUS status;

	if (!info || !len)
		return nrti_error(NRT_INVALID, "nrt_get_instance_info: no place for the answer");
	core = nrti_core_get(0, &status);
	if (!core)
		return status;
	if (core->device->facts.arch >= 2 && core->device->facts.arch <= 4)
		all.family = families[core->device->facts.arch];
	snprintf(all.arch_name, sizeof(all.arch_name), "NCv%u", core->device->facts.arch);
	snprintf(all.device_revision, sizeof(all.device_revision), "%u",
		 core->device->facts.pci_revision & 0xff);
	memcpy(info, &all, len < sizeof(all) ? len : sizeof(all));
	return NRT_SUCCESS;
}

NRT_STATUS nrt_get_version(nrt_version_t *ver, size_t size)
{
	nrt_version_t all = {
		.rt_major = NRT_MAJOR_VERSION,
		.rt_minor = NRT_MINOR_VERSION,
		.rt_detail = "open runtime for AWS Trainium and Inferentia",
	};

	if (!ver || !size)
		return nrti_error(NRT_INVALID, "nrt_get_version: no place for the answer");
	memcpy(ver, &all, size < sizeof(all) ? size : sizeof(all));
	return NRT_SUCCESS;
}

NRT_STATUS nrt_get_vnc_memory_stats(uint32_t vnc, nrt_vnc_memory_stats_t *stats,
				    size_t stats_size_in, size_t *stats_size_out)
{
	NRT_STATUS status = nrti_runtime_check();
	nrt_vnc_memory_stats_t all;
	struct nrtx_core_info info;
	size_t size = stats_size_in < sizeof(all) ? stats_size_in : sizeof(all);

	if (status)
		return status;
	if (!stats || !size)
		return nrti_error(NRT_INVALID, "nrt_get_vnc_memory_stats: no place for the answer");
	status = nrtx_core_info(vnc, &info);
	if (status)
		return status;
	all.bytes_limit = info.hbm_bytes;
	all.bytes_used = info.hbm_bytes - info.hbm_free;
	memcpy(stats, &all, size);
	if (stats_size_out)
		*stats_size_out = size;
	return NRT_SUCCESS;
}
