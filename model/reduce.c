// SPDX-License-Identifier: Apache-2.0
/*
 * Reductions. Along the free dims, element i of what becomes one result goes to partial result
 * i % NM_LANES, and the partial results are combined in halves; across partitions, in ascending
 * order. So the order of additions depends on the instruction alone.
 */
#include <string.h>

#include "exec.h"

void nm_reduce_row(const struct nm_exec *x, unsigned int ct, unsigned int op, const void *a,
		   size_t n, void *lanes)
{
	x->rows->reduce_init[ct][op](lanes);
	x->rows->reduce[ct][op](lanes, a, n, 0);
	x->rows->reduce_end[ct][op](lanes);
}

/* Reduces the inner dims of the nest from src on; the result is in lanes[0]. */
static void reduce_one(struct nm_exec *x, const struct nm_compute *c, const uint8_t *src,
		       uint64_t *lanes)
{
	const uint32_t *count = c->nest.count + c->outer;
	const int32_t *step = c->src0.step + c->outer;
	unsigned int inner = c->nest.ndim - c->outer - 1u;
	uint32_t row = count[inner];
	uint32_t idx[ISA_TILE_DIMS] = { 0 };
	size_t first = 0;

	x->rows->reduce_init[c->ct][c->op0](lanes);
	do {
		const uint8_t *p = src + nm_at(idx, step, inner);

		for (uint32_t i = 0; i < row; i += NM_CHUNK) {
			uint32_t n = row - i < NM_CHUNK ? row - i : NM_CHUNK;
			const void *a = p + (ptrdiff_t)i * step[inner];

			if (c->ct != ISA_CT_F32 || c->src0.dtype != ISA_FP32 ||
			    step[inner] != c->src0.bytes) {
				x->rows->load[c->ct][c->src0.dtype](x->buffer[1], a, step[inner],
								    n);
				a = x->buffer[1];
			}
			x->rows->reduce[c->ct][c->op0](lanes, a, n, first);
			first += n;
		}
	} while (nm_next(idx, count, inner));
	x->rows->reduce_end[c->ct][c->op0](lanes);
}

/* Results that are worked on side by side when the elements of one lie far apart. */
#define COLUMNS	  128
#define SHORT_ROW 64

static bool by_columns(const struct nm_compute *c)
{
	unsigned int inner = c->nest.ndim - 1u;

	return c->outer > 0 && c->nest.count[c->outer - 1u] >= NM_LANES &&
	       (c->nest.count[inner] < SHORT_ROW || c->src0.step[inner] != c->src0.bytes);
}

/*
 * n results whose elements begin at src, src + step and so on, as reduce_one() would get them, to
 * the bit: a lane that got no element holds the identity, which changes nothing.
 */
static void reduce_columns(struct nm_exec *x, const struct nm_compute *c, const uint8_t *src,
			   int32_t step, uint32_t n, uint8_t *results)
{
	const uint32_t *count = c->nest.count + c->outer;
	unsigned int inner = c->nest.ndim - c->outer;
	nm_row2 op = x->rows->tt[c->ct][c->op0];
	size_t bytes = nm_ct_bytes(c->ct), row = COLUMNS * bytes;
	uint8_t *lanes = (uint8_t *)x->buffer[2];
	uint32_t idx[ISA_TILE_DIMS] = { 0 };
	uint64_t identity[NM_LANES];
	unsigned int used = 0, lane = 0;

	x->rows->reduce_init[c->ct][c->op0](identity);
	do {
		const uint8_t *p = src + nm_at(idx, c->src0.step + c->outer, inner);

		x->rows->load[c->ct][c->src0.dtype](x->buffer[1], p, step, n);
		if (used < NM_LANES)
			x->rows->fill[bytes == 8 ? 3 : 2](lanes + row * used++, (ptrdiff_t)bytes,
							  identity, n);
		op(lanes + row * lane, lanes + row * lane, x->buffer[1], n);
		lane = (lane + 1) % NM_LANES;
	} while (nm_next(idx, count, inner));
	for (unsigned int half = NM_LANES / 2; half; half /= 2) {
		for (unsigned int l = 0; l + half < used; l++)
			op(lanes + row * l, lanes + row * l, lanes + row * (l + half), n);
		used = used < half ? used : half;
	}
	memcpy(results, lanes, n * bytes);
}

/* All results of a partition, packed, in order. */
static void reduce_partition(struct nm_exec *x, const struct nm_compute *c, unsigned int partition,
			     uint8_t *results)
{
	const uint8_t *src = nm_operand_ptr(x, &c->src0, partition);
	bool columns = by_columns(c);
	unsigned int outer = c->outer - (columns ? 1u : 0u);
	size_t bytes = nm_ct_bytes(c->ct);
	uint32_t idx[ISA_TILE_DIMS] = { 0 };
	uint64_t lanes[NM_LANES];

	do {
		const uint8_t *p = src + nm_at(idx, c->src0.step, outer);

		if (!columns) {
			reduce_one(x, c, p, lanes);
			memcpy(results, lanes, bytes);
			results += bytes;
			continue;
		}
		for (uint32_t k = 0; k < c->nest.count[outer]; k += COLUMNS) {
			uint32_t left = c->nest.count[outer] - k;
			uint32_t n = left < COLUMNS ? left : COLUMNS;

			reduce_columns(x, c, p + (ptrdiff_t)k * c->src0.step[outer],
				       c->src0.step[outer], n, results);
			results += n * bytes;
		}
	} while (nm_next(idx, c->nest.count, outer));
}

/* ISA_F_NEGATE: n packed results times -1. */
static void negate(const struct nm_exec *x, const struct nm_compute *c, void *results, uint32_t n)
{
	const int8_t minus = -1;
	uint64_t factor;

	x->rows->load[c->ct][ISA_INT8](&factor, &minus, sizeof(minus), 1);
	x->rows->ts[c->ct][ISA_MULT](results, results, &factor, n);
}

void nm_exec_reduce(struct nm_exec *x, const struct nm_compute *c)
{
	unsigned int outer = c->outer ? c->outer - 1u : 0;
	uint32_t row = c->outer ? c->nest.count[outer] : 1;
	ptrdiff_t step = c->outer ? c->dst.step[outer] : c->dst.bytes;
	uint32_t n = 1;

	for (unsigned int i = 0; i < c->outer; i++)
		n *= c->nest.count[i];
	for (unsigned int p = 0; p < c->nparts; p++) {
		uint8_t *results = (uint8_t *)x->buffer[0];
		uint8_t *dst = nm_operand_ptr(x, &c->dst, p);
		uint32_t idx[ISA_TILE_DIMS] = { 0 };

		/* All results before the first is stored: dst may overlap src0. */
		reduce_partition(x, c, p, results);
		if (c->flags & ISA_F_NEGATE)
			negate(x, c, results, n);
		do {
			x->rows->store[c->ct][c->dst.dtype](dst + nm_at(idx, c->dst.step, outer),
							    step, results, row);
			results += row * nm_ct_bytes(c->ct);
		} while (nm_next(idx, c->nest.count, outer));
	}
}

void nm_exec_partition_reduce(struct nm_exec *x, const struct nm_compute *c)
{
	unsigned int inner = c->nest.ndim - 1u;
	uint32_t row = c->nest.count[inner];
	uint32_t idx[ISA_TILE_DIMS] = { 0 };
	size_t bytes = nm_ct_bytes(c->ct);
	uint8_t *acc = (uint8_t *)x->buffer[0];
	size_t done = 0;

	do {
		for (unsigned int p = 0; p < c->nparts; p++) {
			const uint8_t *src =
				nm_operand_ptr(x, &c->src0, p) + nm_at(idx, c->src0.step, inner);
			void *to = p ? (void *)x->buffer[1] : acc + done;

			x->rows->load[c->ct][c->src0.dtype](to, src, c->src0.step[inner], row);
			if (p)
				x->rows->tt[c->ct][c->op0](acc + done, acc + done, to, row);
			else if (c->op0 == ISA_LOGICAL_AND || c->op0 == ISA_LOGICAL_OR ||
				 c->op0 == ISA_ABS_MAX || c->op0 == ISA_ABS_MIN)
				x->rows->tt[c->ct][c->op0](to, to, to, row);
		}
		done += row * bytes;
	} while (nm_next(idx, c->nest.count, inner));
	/* All results before the first is stored: dst may overlap src0. */
	nm_put(x, c->ct, &c->dst, &c->nest, 0, acc);
}
