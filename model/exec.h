/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Effects of decoded instructions on the memories of a core. What is executed was checked by
 * decode_*.c: nothing here can leave its bounds, nor fail but for an index of an indirect transfer. One
 * thread a core, which shares large instructions with those of team.h.
 */
#ifndef NM_EXEC_H
#define NM_EXEC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode.h"
#include "rows.h"

/* A row of an operand in the arithmetic type, as far as it is processed at once. */
#define NM_CHUNK 2048 /* elements; a multiple of NM_LANES */

#define NM_BUFFERS 4

/* Generators of random numbers of a partition: the vector engine's, then gpsimd's, then scalar's. */
#define NM_RANDOM	(ISA_RANDOM_VECTOR + ISA_RANDOM_GPSIMD + ISA_RANDOM_SCALAR)
#define NM_RANDOM_WORDS (NM_RANDOM * ISA_RANDOM_WORDS)

/* Slot of the running launch. */
struct nm_slot {
	uint8_t *ptr; /* NULL: empty */
	uint64_t size;
	uint64_t data; /* of an inline slot, which ptr points to */
};

/* A stationary operand, in parts of the array; array 0: none is loaded. */
struct nm_stationary {
	uint16_t array; /* NM_ARRAY_* */
	uint8_t parts, rows; /* partitions, and rows of the operand in each */
	uint8_t dtype;
	bool pairs; /* packed is of pairs */
	uint32_t k, m;
	void *packed; /* [k][m] for the product; rows of a partition are a whole K apart */
};

/* Small enough to be copied: a thread that does a part of an instruction has one with its own buffers. */
struct nm_exec {
	const struct nm_rows *rows;
	uint8_t *mem[2]; /* by ISA_SPACE_*: SBUF and PSUM with their pitches */
	uint64_t *buffer[NM_BUFFERS]; /* scratch: NM_TILE_ELEMS elements of 8 bytes each */
	const struct nm_pairs *pairs; /* NULL: this CPU has no products of bf16 */
	struct nm_stationary load[NM_ARRAY_PARTS]; /* by the first part of the array that has it */
	void *moving; /* [K][N] or pairs, when the operand cannot be used in place */
	float *product; /* [M][N] */
	float *cumulative; /* last results of TENSOR_SCALAR_CUMULATIVE, by partition */
	uint32_t (*random)[NM_RANDOM_WORDS]; /* generators, by partition */

	const uint8_t *constants; /* of the running program */
	struct nm_slot *slot; /* EXI_SLOTS_MAX of them */
	_Atomic bool *attention; /* long transfers stop and return when it is set */
};

/* 0 or -ENOMEM. */
int nm_exec_init(struct nm_exec *x);
void nm_exec_fini(struct nm_exec *x);

/* Scratch buffers; false, and none, if there is no memory. */
bool nm_buffers_map(uint64_t *buffer[NM_BUFFERS]);
void nm_buffers_unmap(uint64_t *buffer[NM_BUFFERS]);

static inline ptrdiff_t nm_pitch(unsigned int space)
{
	return space == ISA_SPACE_SBUF ? NM_SBUF_PITCH : NM_PSUM_PITCH;
}

/* Bytes of an element in an arithmetic compute type. */
static inline size_t nm_ct_bytes(unsigned int ct)
{
	return ct == ISA_CT_I64 || ct == ISA_CT_F64 ? 8 : 4;
}

/* First element of an operand in its i-th partition. */
static inline uint8_t *nm_operand_ptr(const struct nm_exec *x, const struct nm_operand *o,
				      unsigned int i)
{
	return x->mem[o->space] + (ptrdiff_t)(o->part0 + i) * nm_pitch(o->space) + o->offset;
}

/* Moves idx to the next position of the outermost ndim dims of count; false behind the last. */
static inline bool nm_next(uint32_t *idx, const uint32_t *count, unsigned int ndim)
{
	while (ndim--) {
		if (++idx[ndim] < count[ndim])
			return true;
		idx[ndim] = 0;
	}
	return false;
}

static inline ptrdiff_t nm_at(const uint32_t *idx, const int32_t *step, unsigned int ndim)
{
	ptrdiff_t at = 0;

	for (unsigned int i = 0; i < ndim; i++)
		at += (ptrdiff_t)idx[i] * step[i];
	return at;
}

/* Whether a comparison holds of a value that is below, equal to or above another; of a NaN: none of them. */
static inline bool nm_holds(unsigned int op, bool below, bool equal, bool above)
{
	switch (op) {
	case ISA_IS_EQ:
		return equal;
	case ISA_IS_NE:
		return !equal;
	case ISA_IS_GT:
		return above;
	case ISA_IS_GE:
		return above || equal;
	case ISA_IS_LT:
		return below;
	default:
		return below || equal;
	}
}

/* alu.c: value of a scalar operand for a partition, in the compute type. */
uint64_t nm_scalar_value(const struct nm_exec *x, const struct nm_compute *c,
			 const struct nm_scalar *s, unsigned int partition);

/* alu.c: everything elementwise. */
void nm_exec_elementwise(struct nm_exec *x, unsigned int opcode, const struct nm_compute *c);
/* flat.c: all elements of an operand in a partition, packed in the compute type, and back. */
void nm_fetch(const struct nm_exec *x, unsigned int ct, const struct nm_operand *o,
	      const struct nm_nest *nest, unsigned int partition, void *out);
void nm_put(const struct nm_exec *x, unsigned int ct, const struct nm_operand *o,
	    const struct nm_nest *nest, unsigned int partition, const void *in);
/* The same of its bits, whatever their type. */
void nm_fetch_bits(const struct nm_exec *x, const struct nm_operand *o, const struct nm_nest *nest,
		   unsigned int partition, void *out);
void nm_put_bits(const struct nm_exec *x, const struct nm_operand *o, const struct nm_nest *nest,
		 unsigned int partition, const void *in);
/* reduce.c: n packed elements of a compute type, as REDUCE has them; the result is in lanes[0]. */
void nm_reduce_row(const struct nm_exec *x, unsigned int ct, unsigned int op, const void *a,
		   size_t n, void *lanes);
void nm_exec_reduce(struct nm_exec *x, const struct nm_compute *c);
void nm_exec_partition_reduce(struct nm_exec *x, const struct nm_compute *c);
/* tensor.c */
void nm_exec_load_stationary(struct nm_exec *x, const struct nm_compute *c);
void nm_exec_matmul(struct nm_exec *x, const struct nm_compute *c);
void nm_exec_transpose(struct nm_exec *x, const struct nm_compute *c);
/* top8.c */
void nm_exec_max8(struct nm_exec *x, const struct nm_compute *c);
void nm_exec_find_index8(struct nm_exec *x, const struct nm_compute *c);
void nm_exec_match_replace8(struct nm_exec *x, const struct nm_compute *c);
/* bn.c */
void nm_exec_bn_stats(struct nm_exec *x, const struct nm_compute *c);
void nm_exec_bn_aggr(struct nm_exec *x, const struct nm_compute *c);
/* shuffle.c */
void nm_exec_shuffle(struct nm_exec *x, const struct nm_compute *c);
/* select.c */
void nm_exec_select_reduce(struct nm_exec *x, const struct nm_compute *c);
void nm_exec_scalar_reduce(struct nm_exec *x, const struct nm_compute *c);
void nm_exec_range_select(struct nm_exec *x, const struct nm_compute *c);
void nm_exec_exponential(struct nm_exec *x, const struct nm_compute *c);
/* affine.c */
void nm_exec_affine_select(struct nm_exec *x, const struct nm_compute *c);
/* random.c; all generators as a launch begins with them */
void nm_random_reset(struct nm_exec *x);
void nm_exec_set_seed(struct nm_exec *x, const struct nm_compute *c);
void nm_exec_set_state(struct nm_exec *x, const struct nm_compute *c);
void nm_exec_get_state(struct nm_exec *x, const struct nm_compute *c);
void nm_exec_rng(struct nm_exec *x, const struct nm_compute *c);
void nm_exec_rand2(struct nm_exec *x, const struct nm_compute *c);
void nm_exec_dropout(struct nm_exec *x, const struct nm_compute *c);
/* Numbers for n elements of partition p of dst, from number first on. */
void nm_random_draw(const struct nm_exec *x, const struct nm_compute *c, unsigned int p,
		    uint32_t first, uint32_t n, uint32_t *out);
/* rounding.c: n elements of partition p from number first on, in fp32, as numbers of dst's dtype; number:
 * scratch for n. */
void nm_round_stochastic(const struct nm_exec *x, const struct nm_compute *c, unsigned int p,
			 uint32_t first, uint32_t n, const float *in, uint32_t *number, float *out);
/* gather.c */
void nm_exec_n_gather(struct nm_exec *x, const struct nm_compute *c);
void nm_exec_local_gather(struct nm_exec *x, const struct nm_compute *c);
void nm_exec_nonzero(struct nm_exec *x, const struct nm_compute *c);
void nm_exec_sequence_bounds(struct nm_exec *x, const struct nm_compute *c);
/* mx.c; the dequantized rows of partition p of src0, one behind the other */
void nm_mx_fetch(const struct nm_exec *x, const struct nm_compute *c, unsigned int p, float *rows);
void nm_exec_quantize_mx(struct nm_exec *x, const struct nm_compute *c);
/* scan.c */
void nm_exec_scan(struct nm_exec *x, const struct nm_compute *c);
void nm_exec_cumulative(struct nm_exec *x, const struct nm_compute *c);

/* How far a transfer has got; zero to start. */
struct nm_moved {
	uint64_t done; /* elements, with those left out */
	uint64_t skipped; /* of them */
	bool outside; /* index names no row, which is an error: nothing has been moved */
	int64_t index;
};

/* dge.c: first byte of a side. */
uint8_t *nm_side_ptr(const struct nm_exec *x, const struct nm_side *s);
/* False when it stopped before the end, because of attention or an index. */
bool nm_exec_dma(struct nm_exec *x, const struct nm_dma *dma, struct nm_moved *moved);

/* exec.c: no stationary operand, no results to go on from, of earlier launches. */
void nm_exec_forget(struct nm_exec *x);
/* Any compute instruction. */
void nm_exec_compute(struct nm_exec *x, const struct nm_inst *inst);

#endif /* NM_EXEC_H */
