// SPDX-License-Identifier: Apache-2.0
/*
 * Reductions. Along the free dims, element i of what becomes one result goes to partial result
 * i % NM_LANES, and the partial results are combined in halves; across partitions, in ascending
 * order. So the order of additions depends on the instruction alone.
 */
#include <string.h>

#include "exec.h"

static size_t ct_bytes(unsigned int ct)
{
	return ct == ISA_CT_I64 || ct == ISA_CT_F64 ? 8 : 4;
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

void nm_exec_reduce(struct nm_exec *x, const struct nm_compute *c)
{
	size_t bytes = ct_bytes(c->ct);
	uint64_t lanes[NM_LANES];

	for (unsigned int p = 0; p < c->nparts; p++) {
		const uint8_t *src = nm_operand_ptr(x, &c->src0, p);
		uint8_t *dst = nm_operand_ptr(x, &c->dst, p);
		uint8_t *results = (uint8_t *)x->buffer[0];
		uint32_t idx[ISA_TILE_DIMS] = { 0 };
		size_t n = 0;

		/* All results before the first is stored: dst may overlap src0. */
		do {
			reduce_one(x, c, src + nm_at(idx, c->src0.step, c->outer), lanes);
			memcpy(results + n++ * bytes, lanes, bytes);
		} while (nm_next(idx, c->nest.count, c->outer));
		n = 0;
		do {
			x->rows->store[c->ct][c->dst.dtype](dst + nm_at(idx, c->dst.step, c->outer),
							    c->dst.bytes, results + n++ * bytes, 1);
		} while (nm_next(idx, c->nest.count, c->outer));
	}
}

void nm_exec_partition_reduce(struct nm_exec *x, const struct nm_compute *c)
{
	unsigned int inner = c->nest.ndim - 1u;
	uint32_t row = c->nest.count[inner];
	uint32_t idx[ISA_TILE_DIMS] = { 0 };
	size_t bytes = ct_bytes(c->ct);
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
			else if (c->op0 == ISA_LOGICAL_AND || c->op0 == ISA_LOGICAL_OR)
				x->rows->tt[c->ct][c->op0](to, to, to, row);
		}
		done += row * bytes;
	} while (nm_next(idx, c->nest.count, inner));
	/* All results before the first is stored: dst may overlap src0. */
	done = 0;
	do {
		x->rows->store[c->ct][c->dst.dtype](nm_operand_ptr(x, &c->dst, 0) +
							    nm_at(idx, c->dst.step, inner),
						    c->dst.step[inner], acc + done, row);
		done += row * bytes;
	} while (nm_next(idx, c->nest.count, inner));
}
