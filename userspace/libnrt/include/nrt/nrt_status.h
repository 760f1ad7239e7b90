/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Status codes of the runtime. Names and values are those of the published
 * interface (aws-neuron-sdk src/libnrt/include/nrt/nrt_status.h).
 */
#ifndef NRT_STATUS_H
#define NRT_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
	NRT_SUCCESS = 0,
	NRT_FAILURE = 1, /* nothing below fits */
	NRT_INVALID = 2, /* bad argument or malformed program */
	NRT_INVALID_HANDLE = 3,
	NRT_RESOURCE = 4, /* device memory, queues ... are used up */
	NRT_TIMEOUT = 5,
	NRT_HW_ERROR = 6, /* device failed or is gone */
	NRT_QUEUE_FULL = 7,
	NRT_LOAD_NOT_ENOUGH_NC = 9,
	NRT_UNSUPPORTED_NEFF_VERSION = 10,
	NRT_FAIL_HOST_MEM_ALLOC = 11,
	NRT_UNINITIALIZED = 13, /* before nrt_init() */
	NRT_CLOSED = 14, /* after nrt_close() */
	NRT_QUEUE_EMPTY = 15,

	NRT_EXEC_UNIT_UNRECOVERABLE = 101,

	NRT_EXEC_BAD_INPUT = 1002, /* tensors do not fit the model */
	NRT_EXEC_COMPLETED_WITH_NUM_ERR = 1003,
	NRT_EXEC_COMPLETED_WITH_ERR = 1004, /* the program broke a rule */
	NRT_EXEC_NC_BUSY = 1005,
	NRT_EXEC_OOB = 1006, /* access out of bounds */

	NRT_COLL_PENDING = 1100,

	NRT_EXEC_HW_ERR_COLLECTIVES = 1200,
	NRT_EXEC_HW_ERR_HBM_UE = 1201, /* uncorrectable error in HBM */
	NRT_EXEC_HW_ERR_NC_UE = 1202, /* and in a core's memories */
	NRT_EXEC_HW_ERR_DMA_ABORT = 1203,
	NRT_EXEC_SW_NQ_OVERFLOW = 1204,
	NRT_EXEC_HW_ERR_REPAIRABLE_HBM_UE = 1205,
	NRT_NETWORK_PROXY_FAILURE = 1206,
} NRT_STATUS;

/* Name of a code, "NRT_..."; for others a fixed text. Never NULL. */
const char *nrt_get_status_as_str(NRT_STATUS status);

#ifdef __cplusplus
}
#endif

#endif /* NRT_STATUS_H */
