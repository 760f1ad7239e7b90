/* SPDX-License-Identifier: Apache-2.0 */
#include "panel.h"

/* Below so many elements, single-element transfers are cheaper than transposing. */
#define FEW_ELEMS 1024

void panel_evict(struct eval *ev, uint32_t ct, struct ltile dst, struct ltile src, int64_t elems)
{
	uint32_t engine = ev->cost[ISA_SCALAR] <= ev->cost[ISA_VECTOR] ? ISA_SCALAR : ISA_VECTOR;

	eval_spend(ev, engine, elems);
	lir_copy(ev->lir, engine, ct, dst, src);
}

void panel_transpose(struct lir *lir, struct ltile dst, struct ltile src)
{
	struct lop *op = lir_op(lir, ISA_TENSOR, ISA_TRANSPOSE);

	op->compute_type = ISA_CT_BITS;
	op->dst = dst;
	op->src0 = src;
}

void panel_stationary(struct lir *lir, struct ltile stationary)
{
	struct lop *op = lir_op(lir, ISA_TENSOR, ISA_LOAD_STATIONARY);

	op->src0 = stationary;
}

void panel_matmul(struct lir *lir, struct ltile dst, struct ltile moving, bool accumulate)
{
	struct lop *op = lir_op(lir, ISA_TENSOR, ISA_MATMUL);

	op->dst = dst;
	op->src0 = moving;
	if (accumulate)
		op->flags = ISA_F_ACCUM;
}

struct ltile panel_tile(const struct panel *p, int64_t k_block, int64_t x, int64_t nx)
{
	int64_t rows = nci_min(ISA_PARTITIONS, p->nk - k_block * ISA_PARTITIONS);

	return lir_row(p->buf, p->dtype, (uint32_t)rows,
		       (uint32_t)((k_block * p->nx + x - p->x0) * p->elem), (uint32_t)nx);
}

/* Rows of K straight onto the partitions: one transfer for all whole blocks, one for the rest. */
static void load_plain(struct lir *lir, const struct matrix *m, const struct panel *p)
{
	int64_t whole = p->nk / ISA_PARTITIONS, rest = p->nk % ISA_PARTITIONS;
	int64_t offset = m->offset + p->k0 * m->k_step + p->x0 * m->x_step;

	for (int tail = 0; tail < 2; tail++) {
		int64_t rows = tail ? rest : ISA_PARTITIONS, blocks = tail ? 1 : whole;
		struct lstep dims[3] = {
			{ rows, m->k_step * m->elem, 0 },
			{ blocks, ISA_PARTITIONS * m->k_step * m->elem, p->nx * m->elem },
			{ p->nx, m->x_step * m->elem, m->elem },
		};

		if (!rows || !blocks)
			continue;
		if (tail)
			offset += whole * ISA_PARTITIONS * m->k_step;
		lir_load(lir, p->buf, 0, (uint32_t)(tail ? whole * p->nx * m->elem : 0), m->slot,
			 offset * m->elem, m->elem, 1, 3, dims);
	}
}

/*
 * Transposes k_block of the rows in tile (columns x.. of the panel on its
 * partitions) as far as one PSUM bank takes blocks of 128 columns, and moves them
 * into the panel. tiles[i]: buffer with 128 columns of the panel each, from block number first on.
 */
static void transpose_block(struct eval *ev, const struct panel *p, const uint32_t *tiles,
			    int64_t first, int64_t k_block, int64_t x, int64_t nx)
{
	int64_t rows = nci_min(ISA_PARTITIONS, p->nk - k_block * ISA_PARTITIONS);
	uint32_t bank = lir_buf(ev->lir, ISA_SPACE_PSUM, (uint64_t)nx * p->elem);
	struct ltile dst = panel_tile(p, k_block, p->x0 + x, nx);

	for (int64_t i = 0; i < nx; i += ISA_PARTITIONS) {
		int64_t n = nci_min(ISA_PARTITIONS, nx - i);

		panel_transpose(ev->lir,
				lir_row(bank, p->dtype, (uint32_t)rows, (uint32_t)(i * p->elem),
					(uint32_t)n),
				lir_row(tiles[(x + i) / ISA_PARTITIONS], p->dtype, (uint32_t)n,
					(uint32_t)((k_block - first) * ISA_PARTITIONS * p->elem),
					(uint32_t)rows));
	}
	panel_evict(ev, ISA_CT_BITS, dst, lir_row(bank, p->dtype, (uint32_t)rows, 0, (uint32_t)nx),
		    nx);
}

/* K is contiguous: rows of x on the partitions, then through the tensor engine. Blocks of 128 rows of K
 * from number first on. */
static void load_transposed(struct eval *ev, const struct matrix *m, const struct panel *p,
			    int64_t first)
{
	int64_t k0 = first * ISA_PARTITIONS, nk = p->nk - k0;
	int64_t group = ISA_PSUM_BANK_BYTES / m->elem; /* columns that one bank takes */
	int64_t n_tiles = nci_ceil_div(p->nx, ISA_PARTITIONS);
	uint32_t *tiles = nci_alloc(ev->ctx, (size_t)n_tiles * sizeof(*tiles));

	for (int64_t x = 0; x < p->nx; x += group) {
		int64_t nx = nci_min(group, p->nx - x);

		for (int64_t i = x; i < x + nx; i += ISA_PARTITIONS) {
			struct lstep dims[2] = {
				{ nci_min(ISA_PARTITIONS, p->nx - i), m->x_step * m->elem, 0 },
				{ nk, m->elem, m->elem },
			};
			uint32_t t = lir_buf(ev->lir, ISA_SPACE_SBUF, (uint64_t)nk * m->elem);

			tiles[i / ISA_PARTITIONS] = t;
			lir_load(ev->lir, t, 0, 0, m->slot,
				 (m->offset + p->k0 + k0 + (p->x0 + i) * m->x_step) * m->elem,
				 m->elem, 1, 2, dims);
		}
		for (int64_t k = first; k * ISA_PARTITIONS < p->nk; k++)
			transpose_block(ev, p, tiles, first, k, x, nx);
	}
}

/*
 * Loads whole blocks of 128 rows of K that the DMA engines can transpose at nearly the speed of a copy,
 * and leaves the tensor engine to its products. Returns their number.
 */
static int64_t load_by_dma(struct lir *lir, const struct matrix *m, const struct panel *p)
{
	int64_t blocks = p->nk / ISA_DMA_TRANSPOSE_LONG;

	if ((m->elem != 2 && m->elem != 4) || p->nx % ISA_DMA_TRANSPOSE)
		return 0;
	for (int64_t k = 0; k < blocks; k++) {
		struct lstep dims[2] = {
			{ ISA_PARTITIONS, m->elem, 0 },
			{ p->nx, m->x_step * m->elem, m->elem },
		};

		lir_load(lir, p->buf, 0, (uint32_t)(k * p->nx * m->elem), m->slot,
			 (m->offset + p->k0 + k * ISA_PARTITIONS + p->x0 * m->x_step) * m->elem,
			 m->elem, 1, 2, dims);
	}
	return blocks;
}

_Static_assert(ISA_DMA_TRANSPOSE_LONG == ISA_PARTITIONS, "blocks are what fits the partitions");

struct panel panel_load(struct eval *ev, const struct matrix *m, int64_t k0, int64_t nk, int64_t x0,
			int64_t nx)
{
	struct panel p = {
		.dtype = m->dtype, .elem = m->elem, .k0 = k0, .nk = nk, .x0 = x0, .nx = nx
	};

	p.buf = lir_buf(ev->lir, ISA_SPACE_SBUF, (uint64_t)panel_bytes(nk, nx, m->elem));
	if (m->k_step == 1 && m->x_step != 1 && nk > 1 && nk * nx > FEW_ELEMS) {
		int64_t loaded = load_by_dma(ev->lir, m, &p);

		if (loaded * ISA_PARTITIONS < nk)
			load_transposed(ev, m, &p, loaded);
	} else {
		load_plain(ev->lir, m, &p);
	}
	return p;
}
