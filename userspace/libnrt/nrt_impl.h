/* SPDX-License-Identifier: Apache-2.0 */
/* What the nrt_*.c files share. */
#ifndef NRT_IMPL_H
#define NRT_IMPL_H

#include <nrt/nrt.h>

#include "nrti.h"

#define NRT_MAGIC_TENSOR 0x746e7374u
#define NRT_MAGIC_SET	 0x74657374u
#define NRT_MAGIC_MODEL	 0x6c646f6du

/* Memory that a tensor and its slices share. */
struct nrt_storage {
	_Atomic unsigned int refs;
	struct nrtx_buffer *buffer; /* NULL: host memory */
	uint8_t *host;
	bool own; /* host is to be freed */
};

struct nrt_tensor {
	uint32_t magic;
	nrt_tensor_placement_t placement;
	struct nrt_storage *storage; /* NULL: empty */
	size_t offset; /* in the storage */
	size_t size;
	char *name;
	_Atomic uint64_t completions; /* executions that wrote it */
};

struct nrt_set {
	uint32_t magic;
	uint32_t n, max;
	struct {
		char *name;
		nrt_tensor_t *tensor;
	} *entry;
};

/* Where a model executes, once at a time: one of its logical core's cores. */
struct nrt_lane {
	pthread_mutex_t lock;
	struct nrtx_stream *stream;
};

struct nrt_model {
	uint32_t magic;
	struct nrtx_program *program;
	uint32_t vnc;
	uint32_t n_lanes;
	struct nrt_lane lane[NRTI_LNC_MAX];
	_Atomic uint32_t turn; /* of lanes, when all are taken */
};

/* A core's stream for synchronous tensor calls, or NULL with *status and the error set. */
struct nrtx_stream *nrti_core_stream(uint32_t vnc, NRT_STATUS *status);
void nrti_core_streams_close(void);

NRT_STATUS nrti_tensor_check(const nrt_tensor_t *tensor, size_t offset, size_t size,
			     const char *what);
/* The three copies on a stream of the caller's. */
NRT_STATUS nrti_tensor_read(struct nrtx_stream *stream, const nrt_tensor_t *tensor, void *buf,
			    size_t offset, size_t size);
NRT_STATUS nrti_tensor_write(struct nrtx_stream *stream, nrt_tensor_t *tensor, const void *buf,
			     size_t offset, size_t size);
NRT_STATUS nrti_tensor_copy(struct nrtx_stream *stream, const nrt_tensor_t *src, size_t src_offset,
			    nrt_tensor_t *dst, size_t dst_offset, size_t size);
/* Core of a tensor; 0 for the host. */
uint32_t nrti_tensor_vnc(const nrt_tensor_t *tensor);

NRT_STATUS nrti_set_check(const nrt_tensor_set_t *set, const char *what);
/* NULL: not in the set. */
nrt_tensor_t *nrti_set_find(const nrt_tensor_set_t *set, const char *name);

NRT_STATUS nrti_model_check(const nrt_model_t *model);

/* Stops the threads of execution units. */
void nrti_async_close(void);

#endif /* NRT_IMPL_H */
