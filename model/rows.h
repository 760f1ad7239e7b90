/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Row kernels: the arithmetic of the engines on runs of elements. Built once for each vector width
 * (rows_base, rows_avx2, rows_avx512), with the same results to the bit, but for gemm on CPUs without
 * fused multiply-add: no contraction, no reassociation but the one written here.
 *
 * d may be equal to a or b; other overlaps are not allowed.
 */
#ifndef NM_ROWS_H
#define NM_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "neuron_isa.h"

#define NM_CTS	  4 /* arithmetic compute types: F32, I32, I64, F64 */
#define NM_DTYPES 18 /* indexed by enum isa_dtype, but for those of four elements in one */
#define NM_LANES  16 /* partial results of a reduction: element i goes to lane i % NM_LANES */

#define NM_GEMM_PACK 8 /* columns of the stationary operand that are packed together */
/* A product in parts of so many columns has no more panels than one in a whole, for any vectors. */
#define NM_GEMM_PANEL 48
#define NM_GEMM_K_MAX (ISA_MATMUL_K_MAX * ISA_MX_ROWS)
#define NM_GEMM_N_MAX ISA_MATMUL_N_BF16

typedef void (*nm_row2)(void *d, const void *a, const void *b, size_t n);

/*
 * c [m][n] = (c +) a' b for b [k][n], all of fp32; pitches in elements. a [k][m] is packed in blocks of
 * NM_GEMM_PACK columns, the last one padded: element (i, j) is at
 * (j / PACK * k + i) * PACK + j % PACK. The products of an element of c are summed in the order of k,
 * and c is added at the end.
 */
typedef void (*nm_gemm_fn)(float *c, ptrdiff_t cpitch, const void *a, const void *b,
			   ptrdiff_t bpitch, unsigned int m, unsigned int n, unsigned int k,
			   bool accumulate);

struct nm_rows {
	/* n elements of a dtype, step bytes apart, to and from packed elements of a compute type. */
	void (*load[NM_CTS][NM_DTYPES])(void *d, const void *src, ptrdiff_t step, size_t n);
	void (*store[NM_CTS][NM_DTYPES])(void *dst, ptrdiff_t step, const void *a, size_t n);

	/* Packed elements of a compute type: a op b, a op *s, *s op a. */
	nm_row2 tt[NM_CTS][ISA_ALU_OPS];
	nm_row2 ts[NM_CTS][ISA_ALU_OPS];
	nm_row2 st[NM_CTS][ISA_ALU_OPS];

	/*
	 * Reductions into NM_LANES accumulators, piece by piece; first is the number of elements
	 * before this piece. NULL: not an operation of REDUCE.
	 */
	void (*reduce_init[NM_CTS][ISA_ALU_OPS])(void *lanes);
	void (*reduce[NM_CTS][ISA_ALU_OPS])(void *lanes, const void *a, size_t n, size_t first);
	void (*reduce_end[NM_CTS][ISA_ALU_OPS])(void *lanes); /* result in lane 0 */

	/* a * scale + bias, rounded twice. */
	void (*affine)(float *d, const float *a, float scale, float bias, size_t n);
	void (*act[ISA_ACTS])(float *d, const float *a, size_t n);

	/* m[i] = element is not zero, for a predicate of a dtype. */
	void (*truth[NM_DTYPES])(uint8_t *m, const void *src, ptrdiff_t step, size_t n);
	/* Packed elements of 1, 2, 4 or 8 bytes (index log2): d = m ? a : d. */
	void (*blend[4])(void *d, const uint8_t *m, const void *a, size_t n);

	/* Elements of 1, 2, 4 or 8 bytes (index log2). Overlap gives what a loop would. */
	void (*copy[4])(void *d, ptrdiff_t dstep, const void *s, ptrdiff_t sstep, size_t n);
	nm_gemm_fn gemm;

	/* *value to n elements. */
	void (*fill[4])(void *d, ptrdiff_t step, const void *value, size_t n);
	/* d[j][i] = s[i][j] for i < rows, j < cols; d and s do not overlap; 2 and 4 bytes packed. */
	void (*transpose[4])(void *d, ptrdiff_t dpitch, const void *s, ptrdiff_t spitch,
			     size_t rows, size_t cols);
};

/*
 * Products of bf16 by the instruction that x86 CPUs have for them, twice as fast as in fp32. Operands
 * are pairs: the elements of 2k in the upper half, those of 2k + 1 in the lower. The result is that
 * of fp32 to the bit, but that sums below 2^-126 become zero; there must be no subnormal operands.
 */
struct nm_pairs {
	nm_gemm_fn gemm; /* k counts pairs */
	/* Pairs of n elements; odd NULL: zeros. False: one of them is subnormal. */
	bool (*make)(uint32_t *pairs, const uint16_t *even, const uint16_t *odd, size_t n);
};

/* NULL: this CPU has no such instruction. */
const struct nm_pairs *nm_pairs(void);

/* The widest that this CPU runs. */
const struct nm_rows *nm_rows(void);

/* By number from 0 on, NULL behind the last: for tests. */
const struct nm_rows *nm_rows_variant(unsigned int i);

#endif /* NM_ROWS_H */
