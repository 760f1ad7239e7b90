/* SPDX-License-Identifier: Apache-2.0 */
/* Programs on the virtual device in this process, by way of the runtime. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nrt/nrt_stream.h>

#include "graph.h"

static struct nrtx_core_info info;
static nrtx_stream_t *stream;

static const char *start(void)
{
	if (stream)
		return NULL;
	setenv("NEURON_RT_VISIBLE_CORES", "0", 1);
	if (nrtx_core_info(0, &info) || nrtx_stream_create(0, 0, &stream))
		return nrtx_error_text();
	return NULL;
}

const struct nc_target *test_target(void)
{
	static struct nc_target target;

	if (start())
		return NULL;
	target.arch = info.arch;
	target.sbuf_bytes = info.sbuf_bytes;
	target.psum_bytes = info.psum_bytes;
	return &target;
}

const char *test_device_run(const struct nc_program *program, const struct tslot *slots,
			    uint32_t n_slots, uint8_t **results, double *device_us)
{
	nrtx_buffer_t *buffers[64] = { NULL };
	struct nrtx_arg args[64] = { { 0 } };
	nrtx_program_t *loaded = NULL;
	struct nrtx_stats stats = { 0 };
	const char *error = start();
	bool ok = !error;

	for (uint32_t i = 0; ok && i < n_slots; i++) {
		const struct tslot *s = &slots[i];

		args[i].bytes = s->size;
		if (s->is_scalar) {
			memcpy(&args[i].offset, s->bytes, 8);
			continue;
		}
		if (!s->bytes && s->alias != NC_NO_ALIAS) {
			args[i].buffer = buffers[s->alias];
			continue;
		}
		ok = !nrtx_buffer_alloc(0, s->size, &buffers[i]);
		args[i].buffer = buffers[i];
		/* Outputs start as a pattern: what lies between their elements must stay. */
		if (ok)
			ok = !nrtx_copy_to_device(stream, buffers[i], 0,
						  s->bytes ? s->bytes : results[i], s->size);
	}
	nrtx_stats(0, &stats, true);
	ok = ok && !nrtx_program_load(0, program->image, program->bytes, &loaded) &&
	     !nrtx_launch(stream, loaded, args, n_slots) && !nrtx_stream_sync(stream);
	for (uint32_t i = 0; ok && i < n_slots; i++)
		if (!slots[i].bytes)
			ok = !nrtx_copy_to_host(stream, results[i], args[i].buffer, 0,
						slots[i].size);
	if (!ok && !error)
		error = nrtx_error_text();
	nrtx_stats(0, &stats, false);
	*device_us = (double)stats.device_ns / 1e3;
	nrtx_program_unload(loaded);
	for (uint32_t i = 0; i < n_slots; i++)
		nrtx_buffer_free(buffers[i]);
	return ok ? NULL : error;
}
