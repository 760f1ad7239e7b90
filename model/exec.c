// SPDX-License-Identifier: Apache-2.0
#include "exec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static size_t mem_bytes(unsigned int space)
{
	return (size_t)ISA_PARTITIONS * (size_t)nm_pitch(space);
}

/* Zeroed, and only as much of it resident as was touched. */
static void *map_zeroed(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	madvise(p, size, MADV_HUGEPAGE);
	return p;
}

static void unmap(void *p, size_t size)
{
	if (p)
		munmap(p, size);
}

#define STATIONARY_BYTES (sizeof(float) * ISA_MATMUL_K_MAX * ISA_MATMUL_M_MAX)
#define MOVING_BYTES	 (sizeof(float) * ISA_MATMUL_K_MAX * ISA_MATMUL_N_MAX)
#define PRODUCT_BYTES	 (sizeof(float) * ISA_MATMUL_M_MAX * ISA_MATMUL_N_MAX)
#define BUFFER_BYTES	 (sizeof(uint64_t) * NM_TILE_ELEMS)

int nm_exec_init(struct nm_exec *x)
{
	bool ok = true;

	memset(x, 0, sizeof(*x));
	x->rows = nm_rows();
	for (unsigned int s = ISA_SPACE_SBUF; s <= ISA_SPACE_PSUM; s++)
		ok &= (x->mem[s] = map_zeroed(mem_bytes(s))) != NULL;
	for (unsigned int i = 0; i < NM_BUFFERS; i++)
		ok &= (x->buffer[i] = map_zeroed(BUFFER_BYTES)) != NULL;
	ok &= (x->stationary = map_zeroed(STATIONARY_BYTES)) != NULL;
	ok &= (x->moving = map_zeroed(MOVING_BYTES)) != NULL;
	ok &= (x->product = map_zeroed(PRODUCT_BYTES)) != NULL;
	if (ok)
		return 0;
	nm_exec_fini(x);
	return -ENOMEM;
}

void nm_exec_fini(struct nm_exec *x)
{
	for (unsigned int s = ISA_SPACE_SBUF; s <= ISA_SPACE_PSUM; s++)
		unmap(x->mem[s], mem_bytes(s));
	for (unsigned int i = 0; i < NM_BUFFERS; i++)
		unmap(x->buffer[i], BUFFER_BYTES);
	unmap(x->stationary, STATIONARY_BYTES);
	unmap(x->moving, MOVING_BYTES);
	unmap(x->product, PRODUCT_BYTES);
}

void nm_exec_compute(struct nm_exec *x, const struct nm_inst *inst)
{
	switch (inst->opcode) {
	case ISA_REDUCE:
		nm_exec_reduce(x, inst->compute);
		break;
	case ISA_PARTITION_REDUCE:
		nm_exec_partition_reduce(x, inst->compute);
		break;
	case ISA_LOAD_STATIONARY:
		nm_exec_load_stationary(x, inst->compute);
		break;
	case ISA_MATMUL:
		nm_exec_matmul(x, inst->compute);
		break;
	case ISA_TRANSPOSE:
		nm_exec_transpose(x, inst->compute);
		break;
	case ISA_MAX8:
		nm_exec_max8(x, inst->compute);
		break;
	case ISA_FIND_INDEX8:
		nm_exec_find_index8(x, inst->compute);
		break;
	case ISA_MATCH_REPLACE8:
		nm_exec_match_replace8(x, inst->compute);
		break;
	case ISA_TENSOR_TENSOR_SCAN:
		nm_exec_scan(x, inst->compute);
		break;
	case ISA_TENSOR_SCALAR_CUMULATIVE:
		nm_exec_cumulative(x, inst->compute);
		break;
	case ISA_BN_STATS:
		nm_exec_bn_stats(x, inst->compute);
		break;
	case ISA_BN_AGGR:
		nm_exec_bn_aggr(x, inst->compute);
		break;
	case ISA_STREAM_SHUFFLE:
		nm_exec_shuffle(x, inst->compute);
		break;
	case ISA_SELECT_REDUCE:
		nm_exec_select_reduce(x, inst->compute);
		break;
	case ISA_TENSOR_SCALAR_REDUCE:
		nm_exec_scalar_reduce(x, inst->compute);
		break;
	case ISA_RANGE_SELECT:
		nm_exec_range_select(x, inst->compute);
		break;
	default:
		nm_exec_elementwise(x, inst->opcode, inst->compute);
		break;
	}
}
