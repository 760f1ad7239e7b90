/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The published interface of the Neuron runtime, as far as this implementation
 * has it. Names, signatures and values are those of the public header
 * (aws-neuron-sdk src/libnrt/include/nrt/nrt.h); the descriptions are ours.
 *
 * A VNC is a core as applications count them, see nrt_stream.h. Functions return
 * NRT_SUCCESS or a code of nrt_status.h; nrtx_error_text() then has a sentence.
 * NRT_UNINITIALIZED before nrt_init() and NRT_CLOSED after nrt_close() apply to
 * all. Functions may be called from any thread unless they say otherwise.
 */
#ifndef NRT_H
#define NRT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nrt/nrt_status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NRT_MAJOR_VERSION 2
#define NRT_MINOR_VERSION 0

typedef struct nrt_model nrt_model_t;
typedef struct nrt_tensor nrt_tensor_t;
typedef void nrt_tensor_set_t;

typedef enum {
	NRT_TENSOR_PLACEMENT_DEVICE,
	NRT_TENSOR_PLACEMENT_HOST,
	NRT_TENSOR_PLACEMENT_VIRTUAL,
} nrt_tensor_placement_t;

typedef enum {
	NRT_FRAMEWORK_TYPE_INVALID = 0,
	NRT_FRAMEWORK_TYPE_NO_FW = 1,
	NRT_FRAMEWORK_TYPE_TENSORFLOW,
	NRT_FRAMEWORK_TYPE_PYTORCH,
	NRT_FRAMEWORK_TYPE_MXNET,
	NRT_FRAMEWORK_TYPE_PRECHECK,
} nrt_framework_type_t;

enum {
	NRT_INSTANCE_UNKNOWN = 0,
	NRT_INSTANCE_INF1 = 1,
	NRT_INSTANCE_TRN1 = 2,
	NRT_INSTANCE_TRN1N = 3,
	NRT_INSTANCE_INF2 = 4,
	NRT_INSTANCE_TRN2 = 5,
	NRT_INSTANCE_TRN2N = 6,
	NRT_INSTANCE_INF2E = 7,
	NRT_INSTANCE_TRN2P = 8,
	NRT_INSTANCE_TRN2U = 9,
	NRT_INSTANCE_TRN2E = 10,
	NRT_INSTANCE_TRN2EU = 11,
	NRT_INSTANCE_TRN2AC = 12,
	NRT_INSTANCE_TRN2UAC = 13,
	NRT_INSTANCE_TRN3 = 14,
	NRT_INSTANCE_TRN3PDS98 = 15,
};

enum {
	NRT_INSTANCE_SIZE_1XL,
	NRT_INSTANCE_SIZE_2XL,
	NRT_INSTANCE_SIZE_4XL,
	NRT_INSTANCE_SIZE_6XL,
	NRT_INSTANCE_SIZE_8XL,
	NRT_INSTANCE_SIZE_24XL,
	NRT_INSTANCE_SIZE_32XL,
	NRT_INSTANCE_SIZE_48XL,
	NRT_INSTANCE_SIZE_3XL,
	NRT_INSTANCE_SIZE_UNKNOWN,
	NRT_INSTANCE_SIZE_NUM = NRT_INSTANCE_SIZE_UNKNOWN,
};

typedef enum nrt_dtype {
	NRT_DTYPE_UNKNOWN = 0x0,
	NRT_DTYPE_INVALID = 0x0,
	NRT_DTYPE_FP8_E3 = 0xD,
	NRT_DTYPE_FP8_E4 = 0xE,
	NRT_DTYPE_FP8_E5 = 0xF,
	NRT_DTYPE_FLOAT16 = 0x7,
	NRT_DTYPE_BFLOAT16 = 0x6,
	NRT_DTYPE_FLOAT32 = 0xA,
	NRT_DTYPE_FP32R = 0xB,
	NRT_DTYPE_UINT8 = 0x3,
	NRT_DTYPE_UINT16 = 0x5,
	NRT_DTYPE_UINT32 = 0x9,
	NRT_DTYPE_UINT64 = 0x1,
	NRT_DTYPE_INT8 = 0x2,
	NRT_DTYPE_INT16 = 0x4,
	NRT_DTYPE_INT32 = 0x8,
	NRT_DTYPE_INT64 = 0xC,
	NRT_DTYPE_FLOAT64 = 0x10, /* extension of this implementation */
} nrt_dtype_t;

typedef struct nrt_instance_info {
	uint32_t family; /* NRT_INSTANCE_* */
	uint32_t size; /* NRT_INSTANCE_SIZE_* */
	char arch_name[16];
	char device_revision[8];
} nrt_instance_info_t;

/* What device 0 is. len: bytes at info, for callers with a shorter structure. */
NRT_STATUS nrt_get_instance_info(nrt_instance_info_t *info, size_t len);

/* Opens all devices. Calling it again is fine; after nrt_close() it opens them anew.
 * The version strings are logged. */
NRT_STATUS nrt_init(nrt_framework_type_t framework, const char *fw_version,
		    const char *fal_version);

/* Closes all devices. No other call may be under way; what still exists may only be freed. */
void nrt_close(void);

/* --- cores; allowed before nrt_init() -------------------------------------------------- */

/* All four count logical cores: NEURON_LOGICAL_NC_CONFIG cores of a chip, 1 or 2, make one. */
NRT_STATUS nrt_get_total_nc_count(uint32_t *count);
NRT_STATUS nrt_get_total_vnc_count(uint32_t *count);
/* Those that NEURON_RT_VISIBLE_CORES and NEURON_RT_NUM_CORES leave. */
NRT_STATUS nrt_get_visible_nc_count(uint32_t *count);
NRT_STATUS nrt_get_visible_vnc_count(uint32_t *count);

/* --- models ------------------------------------------------------------------------------ */

/*
 * Loads a program image (hw/neuron_program.h) for a core. vnc -1: the first. On
 * a logical core of two it executes on either: two executions at a time.
 * vnc_count is ignored. NRT_UNSUPPORTED_NEFF_VERSION for a NEFF.
 */
NRT_STATUS nrt_load(const void *neff_bytes, size_t size, int32_t vnc, int32_t vnc_count,
		    nrt_model_t **model);
/* No execution of it may be under way. */
NRT_STATUS nrt_unload(nrt_model_t *model);
NRT_STATUS nrt_get_model_nc_count(const nrt_model_t *model, uint32_t *count);
NRT_STATUS nrt_get_model_vnc_count(const nrt_model_t *model, uint32_t *count);

/*
 * Executes a model and waits for it. The sets hold a tensor for each name that
 * nrt_get_model_tensor_info() gives; host tensors are copied. NRT_EXEC_BAD_INPUT
 * when one is missing or too small; NRT_EXEC_* when the device reports a fault.
 * Executions of one model are made one after the other, or one on each of a logical core's cores.
 */
NRT_STATUS nrt_execute(nrt_model_t *model, const nrt_tensor_set_t *input_set,
		       nrt_tensor_set_t *output_set);
NRT_STATUS nrt_execute_repeat(nrt_model_t *model, const nrt_tensor_set_t *input_set,
			      nrt_tensor_set_t *output_set, int repeat_count);

/* --- tensor sets: not for several threads at once ------------------------------------------ */

NRT_STATUS nrt_allocate_tensor_set(nrt_tensor_set_t **result);
/* Frees the set, not its tensors, and sets the pointer to NULL. */
void nrt_destroy_tensor_set(nrt_tensor_set_t **tensor_set);
/* Adds or replaces. The tensor has to live as long as the set. */
NRT_STATUS nrt_add_tensor_to_tensor_set(nrt_tensor_set_t *tensor_set, const char *tensor_name,
					nrt_tensor_t *tensor);
/* NRT_INVALID when there is no such name. */
NRT_STATUS nrt_get_tensor_from_tensor_set(nrt_tensor_set_t *tensor_set, const char *tensor_name,
					  nrt_tensor_t **tensor);

/* --- tensors ------------------------------------------------------------------------------- */

/*
 * Zeroed memory on a device or the host. vnc is ignored for the host. name may
 * be NULL. NRT_RESOURCE when the device has no room.
 */
NRT_STATUS nrt_tensor_allocate(nrt_tensor_placement_t placement, int vnc, size_t size,
			       const char *name, nrt_tensor_t **tensor);
/* Without memory until nrt_tensor_attach_buffer(). */
NRT_STATUS nrt_tensor_allocate_empty(const char *name, nrt_tensor_t **tensor);
/* The caller's memory becomes the tensor's, as a host tensor; what it had before is freed. */
NRT_STATUS nrt_tensor_attach_buffer(nrt_tensor_t *tensor, void *buffer, size_t size);
/* A view of size bytes of another tensor; its memory stays until the last view is freed. */
NRT_STATUS nrt_tensor_allocate_slice(const nrt_tensor_t *tensor_source, size_t offset, size_t size,
				     const char *name, nrt_tensor_t **tensor_slice);
/* Sets the pointer to NULL. */
void nrt_tensor_free(nrt_tensor_t **tensor);

/* Copies between a tensor and the caller's memory; return when that is done. */
NRT_STATUS nrt_tensor_read(const nrt_tensor_t *tensor, void *buf, size_t offset, size_t size);
NRT_STATUS nrt_tensor_write(nrt_tensor_t *tensor, const void *buf, size_t offset, size_t size);
/* Two device tensors must be on one core's device (NRT_INVALID). */
NRT_STATUS nrt_tensor_copy(const nrt_tensor_t *src, size_t src_offset, nrt_tensor_t *dst,
			   size_t dst_offset, size_t size);
NRT_STATUS nrt_tensor_memset(nrt_tensor_t *tensor, uint64_t offset, int value, size_t size);
size_t nrt_tensor_get_size(const nrt_tensor_t *tensor);
/* Address of the first byte for the CPU, NULL when it can't be mapped. */
void *nrt_tensor_get_va(const nrt_tensor_t *tensor);

/* Waits until a tensor was written by that many executions since the last reset.
 * timeout: microseconds, negative: for ever. */
NRT_STATUS nrt_tensor_check_output_completion(const nrt_tensor_t *output_tensor, int64_t timeout,
					      uint64_t expected_completion_count);
NRT_STATUS nrt_tensor_reset_output_completion(nrt_tensor_t *output_tensor);

typedef struct nrt_vnc_memory_stats {
	size_t bytes_used;
	size_t bytes_limit;
} nrt_vnc_memory_stats_t;

/* Device memory of a core's device, all users. size_in: bytes of the caller's structure. */
NRT_STATUS nrt_get_vnc_memory_stats(uint32_t vnc, nrt_vnc_memory_stats_t *stats,
				    size_t stats_size_in, size_t *stats_size_out);

#ifdef __cplusplus
}
#endif

#endif /* NRT_H */
