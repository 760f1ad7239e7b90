/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operands of the tensor engine: a panel holds a block of a matrix with the
 * contraction dim K on the partitions, as the engine wants it, for as many blocks
 * of 128 rows of K as fit.
 */
#ifndef NC_PANEL_H
#define NC_PANEL_H

#include "eval.h"

/* A matrix in memory: element (k, x) is offset + k * k_step + x * x_step; elements. */
struct matrix {
	uint32_t slot;
	uint8_t dtype; /* enum isa_dtype */
	uint8_t elem; /* bytes */
	int64_t offset, k_step, x_step;
};

/* Rows k0 .. k0 + nk - 1 and columns x0 .. x0 + nx - 1 of one. */
struct panel {
	uint32_t buf;
	uint8_t dtype, elem;
	int64_t k0, nk, x0, nx;
};

/* Bytes a partition of a panel. */
static inline int64_t panel_bytes(int64_t nk, int64_t nx, uint32_t elem)
{
	return nci_ceil_div(nk, ISA_PARTITIONS) * nx * elem;
}

/* Emits what brings a panel on chip: plain transfers, or transposing where K is contiguous. */
struct panel panel_load(struct eval *ev, const struct matrix *m, int64_t k0, int64_t nk, int64_t x0,
			int64_t nx);
/* Operand of the tensor engine: the k-th block of 128 rows, nx columns from x on. */
struct ltile panel_tile(const struct panel *p, int64_t k_block, int64_t x, int64_t nx);

/* Copies psum to dst bit by bit, on vector or scalar, whichever has less to do. */
void panel_evict(struct eval *ev, uint32_t ct, struct ltile dst, struct ltile src, int64_t elems);
/* dst (PSUM) = src transposed. */
void panel_transpose(struct lir *lir, struct ltile dst, struct ltile src);

/* The stationary operand; then dst (PSUM) = or += stationary' * moving. */
void panel_stationary(struct lir *lir, struct ltile stationary);
void panel_matmul(struct lir *lir, struct ltile dst, struct ltile moving, bool accumulate);

#endif /* NC_PANEL_H */
