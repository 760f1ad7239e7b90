// SPDX-License-Identifier: Apache-2.0
#include "exec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "team.h"

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

#define STATIONARY_BYTES (sizeof(float) * NM_GEMM_K_MAX * ISA_MATMUL_M_MAX)
#define MOVING_BYTES	 (sizeof(float) * NM_GEMM_K_MAX * NM_GEMM_N_MAX)
#define PRODUCT_BYTES	 (sizeof(float) * ISA_MATMUL_M_MAX * NM_GEMM_N_MAX)
#define BUFFER_BYTES	 (sizeof(uint64_t) * NM_TILE_ELEMS)

bool nm_buffers_map(uint64_t *buffer[NM_BUFFERS])
{
	bool ok = true;

	for (unsigned int i = 0; i < NM_BUFFERS; i++)
		ok &= (buffer[i] = map_zeroed(BUFFER_BYTES)) != NULL;
	if (!ok)
		nm_buffers_unmap(buffer);
	return ok;
}

void nm_buffers_unmap(uint64_t *buffer[NM_BUFFERS])
{
	for (unsigned int i = 0; i < NM_BUFFERS; i++) {
		unmap(buffer[i], BUFFER_BYTES);
		buffer[i] = NULL;
	}
}

int nm_exec_init(struct nm_exec *x)
{
	bool ok;

	memset(x, 0, sizeof(*x));
	x->rows = nm_rows();
	x->pairs = nm_pairs();
	ok = nm_buffers_map(x->buffer);
	for (unsigned int s = ISA_SPACE_SBUF; s <= ISA_SPACE_PSUM; s++)
		ok &= (x->mem[s] = map_zeroed(mem_bytes(s))) != NULL;
	/* Of each no more becomes resident than its part of the array needs. */
	for (unsigned int i = 0; i < NM_ARRAY_PARTS; i++)
		ok &= (x->load[i].packed = map_zeroed(STATIONARY_BYTES)) != NULL;
	ok &= (x->moving = map_zeroed(MOVING_BYTES)) != NULL;
	ok &= (x->product = map_zeroed(PRODUCT_BYTES)) != NULL;
	ok &= (x->cumulative = calloc(ISA_PARTITIONS, sizeof(*x->cumulative))) != NULL;
	ok &= (x->random = calloc(ISA_PARTITIONS, sizeof(*x->random))) != NULL;
	ok &= (x->slot = calloc(EXI_SLOTS_MAX, sizeof(*x->slot))) != NULL;
	if (ok)
		return 0;
	nm_exec_fini(x);
	return -ENOMEM;
}

void nm_exec_fini(struct nm_exec *x)
{
	for (unsigned int s = ISA_SPACE_SBUF; s <= ISA_SPACE_PSUM; s++)
		unmap(x->mem[s], mem_bytes(s));
	nm_buffers_unmap(x->buffer);
	for (unsigned int i = 0; i < NM_ARRAY_PARTS; i++)
		unmap(x->load[i].packed, STATIONARY_BYTES);
	unmap(x->moving, MOVING_BYTES);
	unmap(x->product, PRODUCT_BYTES);
	free(x->cumulative);
	free(x->random);
	free(x->slot);
}

void nm_exec_forget(struct nm_exec *x)
{
	for (unsigned int i = 0; i < NM_ARRAY_PARTS; i++)
		x->load[i].array = 0;
	memset(x->cumulative, 0, ISA_PARTITIONS * sizeof(*x->cumulative));
}

static void execute(struct nm_exec *x, unsigned int opcode, const struct nm_compute *c)
{
	switch (opcode) {
	case ISA_REDUCE:
		nm_exec_reduce(x, c);
		break;
	case ISA_PARTITION_REDUCE:
		nm_exec_partition_reduce(x, c);
		break;
	case ISA_LOAD_STATIONARY:
		nm_exec_load_stationary(x, c);
		break;
	case ISA_MATMUL:
		nm_exec_matmul(x, c);
		break;
	case ISA_TRANSPOSE:
		nm_exec_transpose(x, c);
		break;
	case ISA_MAX8:
		nm_exec_max8(x, c);
		break;
	case ISA_FIND_INDEX8:
		nm_exec_find_index8(x, c);
		break;
	case ISA_MATCH_REPLACE8:
		nm_exec_match_replace8(x, c);
		break;
	case ISA_TENSOR_TENSOR_SCAN:
		nm_exec_scan(x, c);
		break;
	case ISA_TENSOR_SCALAR_CUMULATIVE:
		nm_exec_cumulative(x, c);
		break;
	case ISA_BN_STATS:
		nm_exec_bn_stats(x, c);
		break;
	case ISA_BN_AGGR:
		nm_exec_bn_aggr(x, c);
		break;
	case ISA_STREAM_SHUFFLE:
		nm_exec_shuffle(x, c);
		break;
	case ISA_SELECT_REDUCE:
		nm_exec_select_reduce(x, c);
		break;
	case ISA_TENSOR_SCALAR_REDUCE:
		nm_exec_scalar_reduce(x, c);
		break;
	case ISA_RANGE_SELECT:
		nm_exec_range_select(x, c);
		break;
	case ISA_EXPONENTIAL:
		nm_exec_exponential(x, c);
		break;
	case ISA_AFFINE_SELECT:
		nm_exec_affine_select(x, c);
		break;
	case ISA_SET_RNG_SEED:
		nm_exec_set_seed(x, c);
		break;
	case ISA_RAND_SET_STATE:
		nm_exec_set_state(x, c);
		break;
	case ISA_RAND_GET_STATE:
		nm_exec_get_state(x, c);
		break;
	case ISA_RNG:
		nm_exec_rng(x, c);
		break;
	case ISA_RAND2:
		nm_exec_rand2(x, c);
		break;
	case ISA_DROPOUT:
		nm_exec_dropout(x, c);
		break;
	case ISA_N_GATHER:
		nm_exec_n_gather(x, c);
		break;
	case ISA_LOCAL_GATHER:
		nm_exec_local_gather(x, c);
		break;
	case ISA_NONZERO_WITH_COUNT:
		nm_exec_nonzero(x, c);
		break;
	case ISA_SEQUENCE_BOUNDS:
		nm_exec_sequence_bounds(x, c);
		break;
	case ISA_QUANTIZE_MX:
		nm_exec_quantize_mx(x, c);
		break;
	default:
		nm_exec_elementwise(x, opcode, c);
		break;
	}
}

/* An instruction on partitions that do not meet, divided among threads. */
struct division {
	const struct nm_exec *x;
	const struct nm_compute *c;
	unsigned int opcode, parts;
};

static void do_part(void *arg, unsigned int part, uint64_t *const *buffer)
{
	const struct division *d = arg;
	struct nm_exec x = *d->x;
	struct nm_compute c = *d->c;
	unsigned int first = c.nparts * part / d->parts, end = c.nparts * (part + 1) / d->parts;
	struct nm_operand *ops[] = { &c.dst, &c.src0, &c.src1, &c.s0.vec, &c.s1.vec };

	if (buffer)
		memcpy(x.buffer, buffer, sizeof(x.buffer));
	for (unsigned int i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		if (ops[i]->bytes)
			ops[i]->part0 = (uint8_t)(ops[i]->part0 + first);
	x.cumulative += first;
	x.random += first;
	c.start += (int64_t)first * c.part_step;
	c.nparts = (uint8_t)(end - first);
	execute(&x, d->opcode, &c);
}

/* Elements that are worth the microsecond or two of waking others. */
#define DIVIDE_ELEMS (32u << 10)

void nm_exec_compute(struct nm_exec *x, const struct nm_inst *inst)
{
	struct division d = { .x = x, .c = inst->compute, .opcode = inst->opcode };

	d.parts = NM_PARTS_PER_THREAD * nm_team_threads();
	if (d.parts > d.c->nparts)
		d.parts = d.c->nparts;
	if (d.c->apart && (size_t)d.c->nparts * d.c->n >= DIVIDE_ELEMS)
		nm_team_run(do_part, &d, d.parts);
	else
		execute(x, inst->opcode, inst->compute);
}
