/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Product of the tensor engine: c [m][n] = a' b, with a packed as nm_rows.gemm says. Only rows.c
 * and pairs.c include this. A general BLAS packs both operands on each call, which at K <= 128 costs as much as
 * a third of the product, and brings its own threads; here b is read where the moving operand lies.
 *
 * A panel of GEMM_NV vectors of b stays in the first-level cache while all of a passes by;
 * GEMM_MR * GEMM_NV accumulators stay in registers.
 */
#ifndef NM_ROWS_GEMM_H
#define NM_ROWS_GEMM_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "neuron_isa.h"
#include "rows.h"
#include "rows_vec.h"

#if defined(NM_GEMM_PAIRS)
/* Elements are pairs of bf16, the first one in the upper half; k counts pairs. */
#define GEMM_MR		   8
#define GEMM_NV		   3
#define VEC_ZERO	   _mm512_setzero_ps()
#define VEC_ALL(x)	   _mm512_set1_ps(x)
#define VEC_MAC(acc, x, y) _mm512_dpbf16_ps(acc, (__m512bh)(x), (__m512bh)(y))
#define VEC_ADD(x, y)	   _mm512_add_ps(x, y)
#elif defined(__AVX512F__)
#define GEMM_MR		   8
#define GEMM_NV		   3
#define VEC_ZERO	   _mm512_setzero_ps()
#define VEC_ALL(x)	   _mm512_set1_ps(x)
#define VEC_MAC(acc, x, y) _mm512_fmadd_ps(x, y, acc)
#define VEC_ADD(x, y)	   _mm512_add_ps(x, y)
#elif defined(__AVX2__) && defined(__FMA__)
#define GEMM_MR		   4
#define GEMM_NV		   3
#define VEC_ZERO	   _mm256_setzero_ps()
#define VEC_ALL(x)	   _mm256_set1_ps(x)
#define VEC_MAC(acc, x, y) _mm256_fmadd_ps(x, y, acc)
#define VEC_ADD(x, y)	   _mm256_add_ps(x, y)
#elif defined(__SSE2__)
#define GEMM_MR		   4
#define GEMM_NV		   2
#define VEC_ZERO	   _mm_setzero_ps()
#define VEC_ALL(x)	   _mm_set1_ps(x)
#define VEC_MAC(acc, x, y) _mm_add_ps(_mm_mul_ps(x, y), acc)
#define VEC_ADD(x, y)	   _mm_add_ps(x, y)
#else
#define GEMM_MR		   4
#define GEMM_NV		   2
#define VEC_ZERO	   0.0f
#define VEC_ALL(x)	   (x)
#define VEC_MAC(acc, x, y) ((x) * (y) + (acc))
#define VEC_ADD(x, y)	   ((x) + (y))
#endif

#define GEMM_WIDTH (GEMM_NV * VEC_N)

_Static_assert(NM_GEMM_PANEL % GEMM_WIDTH == 0, "parts of a product end within a panel");

/* GEMM_MR rows and nv vectors of c. a: GEMM_MR of NM_GEMM_PACK values for each k. */
static inline __attribute__((always_inline)) void gemm_tile(unsigned int nv, float *c,
							    ptrdiff_t cpitch, const float *a,
							    const float *b, ptrdiff_t bpitch,
							    unsigned int k, bool accumulate)
{
	VEC acc[GEMM_MR][GEMM_NV];

	for (unsigned int i = 0; i < GEMM_MR; i++)
		for (unsigned int j = 0; j < nv; j++)
			acc[i][j] = VEC_ZERO;
	for (; k; k--, a += NM_GEMM_PACK, b += bpitch) {
		VEC y[GEMM_NV];

		for (unsigned int j = 0; j < nv; j++)
			y[j] = VEC_LOAD(b + j * VEC_N);
		for (unsigned int i = 0; i < GEMM_MR; i++) {
			VEC x = VEC_ALL(a[i]);

			for (unsigned int j = 0; j < nv; j++)
				acc[i][j] = VEC_MAC(acc[i][j], x, y[j]);
		}
	}
	for (unsigned int i = 0; i < GEMM_MR; i++, c += cpitch)
		for (unsigned int j = 0; j < nv; j++) {
			VEC sum = acc[i][j];

			if (accumulate)
				sum = VEC_ADD(VEC_LOAD(c + j * VEC_N), sum);
			VEC_STORE(c + j * VEC_N, sum);
		}
}

static void gemm_tile_n(unsigned int nv, float *c, ptrdiff_t cpitch, const float *a, const float *b,
			ptrdiff_t bpitch, unsigned int k, bool accumulate)
{
	if (nv == 1)
		gemm_tile(1, c, cpitch, a, b, bpitch, k, accumulate);
	else if (nv == 2)
		gemm_tile(2, c, cpitch, a, b, bpitch, k, accumulate);
	else
		gemm_tile(GEMM_NV, c, cpitch, a, b, bpitch, k, accumulate);
}

/* As gemm_tile_n() for a tile of which only rows and cols exist. */
static void gemm_edge(unsigned int nv, unsigned int rows, unsigned int cols, float *c,
		      ptrdiff_t cpitch, const float *a, const float *b, ptrdiff_t bpitch,
		      unsigned int k, bool accumulate)
{
	float tile[GEMM_MR * GEMM_WIDTH];

	gemm_tile_n(nv, tile, GEMM_WIDTH, a, b, bpitch, k, false);
	for (unsigned int i = 0; i < rows; i++)
		for (unsigned int j = 0; j < cols; j++) {
			float sum = tile[i * GEMM_WIDTH + j];

			c[i * cpitch + j] = accumulate ? c[i * cpitch + j] + sum : sum;
		}
}

static void row_gemm(float *c, ptrdiff_t cpitch, const void *packed, const void *moving,
		     ptrdiff_t bpitch, unsigned int m, unsigned int n, unsigned int k,
		     bool accumulate)
{
	const float *a = packed, *b = moving;
	float edge[NM_GEMM_K_MAX * GEMM_WIDTH];

	for (unsigned int j = 0; j < n; j += GEMM_WIDTH) {
		unsigned int cols = n - j < GEMM_WIDTH ? n - j : GEMM_WIDTH;
		unsigned int nv = (cols + VEC_N - 1) / VEC_N;
		const float *panel = b + j;
		ptrdiff_t pitch = bpitch;

		if (cols % VEC_N) {
			/* Columns beyond n are zero rather than whatever lies there. */
			for (unsigned int i = 0; i < k; i++) {
				memcpy(edge + i * GEMM_WIDTH, panel + i * bpitch,
				       cols * sizeof(*b));
				memset(edge + i * GEMM_WIDTH + cols, 0,
				       (GEMM_WIDTH - cols) * sizeof(*b));
			}
			panel = edge;
			pitch = GEMM_WIDTH;
		}
		for (unsigned int i = 0; i < m; i += GEMM_MR) {
			unsigned int rows = m - i < GEMM_MR ? m - i : GEMM_MR;
			const float *block = a + (size_t)(i / NM_GEMM_PACK) * NM_GEMM_PACK * k +
					     i % NM_GEMM_PACK;
			float *out = c + i * cpitch + j;

			if (rows < GEMM_MR || cols % VEC_N)
				gemm_edge(nv, rows, cols, out, cpitch, block, panel, pitch, k,
					  accumulate);
			else
				gemm_tile_n(nv, out, cpitch, block, panel, pitch, k, accumulate);
		}
	}
}

#endif /* NM_ROWS_GEMM_H */
