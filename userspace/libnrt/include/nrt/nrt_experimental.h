/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Published, but less stable, calls; names and layouts as in the public header
 * (aws-neuron-sdk src/libnrt/include/nrt/nrt_experimental.h).
 */
#ifndef NRT_EXPERIMENTAL_H
#define NRT_EXPERIMENTAL_H

#include <stddef.h>
#include <stdint.h>

#include "nrt/nrt.h"
#include "nrt/nrt_status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum nrt_tensor_usage {
	NRT_TENSOR_USAGE_INPUT = 0,
	NRT_TENSOR_USAGE_OUTPUT,
} nrt_tensor_usage_t;

#define NRT_TENSOR_NAME_MAX 256

typedef struct nrt_tensor_info {
	char name[NRT_TENSOR_NAME_MAX];
	nrt_tensor_usage_t usage;
	size_t size; /* bytes that the model needs */
	nrt_dtype_t dtype;
	uint32_t *shape;
	uint32_t ndim;
} nrt_tensor_info_t;

typedef struct nrt_tensor_info_array {
	uint64_t tensor_count;
#ifdef __cplusplus
	nrt_tensor_info_t tensor_array[1];
#else
	nrt_tensor_info_t tensor_array[];
#endif
} nrt_tensor_info_array_t;

/*
 * The tensors of a model: its slots by name; one without a name is "input<n>" or
 * "output<n>" by its place among those. One that is read and written is listed
 * as both. Freed by nrt_free_model_tensor_info().
 */
NRT_STATUS nrt_get_model_tensor_info(nrt_model_t *model, nrt_tensor_info_array_t **tensor_info);
NRT_STATUS nrt_free_model_tensor_info(nrt_tensor_info_array_t *tensor_info);

/* How many threads may usefully execute a model at once: one for each core of its logical core. */
NRT_STATUS nrt_get_model_instance_count(nrt_model_t *model, uint32_t *instance_count);

typedef struct nrt_model_info {
	uint32_t vnc;
} nrt_model_info_t;

/* Writes at most info_size_in bytes. */
NRT_STATUS nrt_get_model_info(const nrt_model_t *model, nrt_model_info_t *info, size_t info_size_in,
			      size_t *info_size_out);

#ifdef __cplusplus
}
#endif

#endif /* NRT_EXPERIMENTAL_H */
