/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asynchronous requests; names, signatures and values as in the public header
 * (aws-neuron-sdk src/libnrt/include/nrt/nrt_async.h).
 *
 * Each core has execution units (XU); each executes its requests in order, units
 * run beside each other. Tensors, sets and host memory of a request stay valid
 * until it is complete. What goes wrong later is put into the request's error
 * tracker; a failed request counts as completed.
 */
#ifndef NRT_ASYNC_H
#define NRT_ASYNC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nrt/nrt.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
	NRTA_XU_TENSOR_READ = 0,
	NRTA_XU_TENSOR_WRITE,
	NRTA_XU_TENSOR_OP,
	NRTA_XU_COMPUTE,
	NRTA_XU_COLLECTIVES,
	NRTA_XU_TYPE_NUM
} nrta_xu_t;

/* 16 bits of execution unit, 48 bits of sequence number, which starts at 1. */
typedef uint64_t nrta_seq_t;
typedef uint16_t nrta_xu_id_t;

#define NRTA_SEQ_NUM_MAX	     ((1ull << 48) - 1)
#define NRTA_SEQ_NUM_MASK	     NRTA_SEQ_NUM_MAX
#define NRTA_SEQ_GET_SEQ_NUM(seq_id) ((seq_id) & NRTA_SEQ_NUM_MASK)
#define NRTA_SEQ_GET_XU_ID(seq_id)   ((seq_id) >> 48)

typedef struct nrta_error {
	nrta_seq_t seq_id;
	uint64_t error_code; /* NRT_STATUS */
} nrta_error_t;

typedef struct nrta_error_tracker nrta_error_tracker_t;

/* queue must be 0 in all of these; err may be NULL. */
NRT_STATUS nrta_tensor_write(nrt_tensor_t *tensor, const void *buf, uint64_t offset, uint64_t size,
			     int queue, nrta_error_tracker_t *err, nrta_seq_t *req_sequence);
NRT_STATUS nrta_tensor_read(void *buf, nrt_tensor_t *tensor, uint64_t offset, uint64_t size,
			    int queue, nrta_error_tracker_t *err, nrta_seq_t *req_sequence);
NRT_STATUS nrta_tensor_copy(nrt_tensor_t *src, uint64_t src_offset, nrt_tensor_t *dst,
			    uint64_t dst_offset, uint64_t size, int queue,
			    nrta_error_tracker_t *err, nrta_seq_t *req_sequence);
NRT_STATUS nrta_execute_schedule(nrt_model_t *model, const nrt_tensor_set_t *input,
				 nrt_tensor_set_t *output, int queue, nrta_error_tracker_t *err,
				 nrta_seq_t *req_sequence);

/* NRT_INVALID when no such request was made. */
NRT_STATUS nrta_is_completed(nrta_seq_t seq, bool *is_completed);
/* The last completed request of a unit. */
NRT_STATUS nrta_get_sequence(uint32_t lnc, nrta_xu_t xu, int queue, nrta_seq_t *seq);
/* A file descriptor that is readable once the request is complete; close() it. */
NRT_STATUS nrta_get_completion_handle(nrta_seq_t seq, int *fd);

NRT_STATUS nrta_error_tracker_create(uint32_t lnc_idx, nrta_error_tracker_t **error_tracker);
/* No request that names it may be pending. */
void nrta_error_tracker_destroy(nrta_error_tracker_t *error_tracker);
/* Errors since the last call; the list is valid until the next call or destroy. */
NRT_STATUS nrta_error_tracker_get_list(nrta_error_tracker_t *error_tracker,
				       const nrta_error_t **list, size_t *error_count);

#ifdef __cplusplus
}
#endif

#endif /* NRT_ASYNC_H */
