/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weights of a convolution as stationary operands. Those of a product have on the partitions what its
 * moving operand has there: channels, of each of its taps. A chunk has those of some products and is kept,
 * if a group's all fit.
 */
#include "conv.h"

#define FILTER_BYTES (80 << 10) /* of a group's weights, kept */
#define CHUNK_BYTES  (24 << 10) /* weights loaded at a time */

static int64_t n_taps(const struct conv *c)
{
	return c->taps[0] * c->taps[1];
}

static bool taps_contiguous(const struct conv *c)
{
	return (c->filter.tap_stride[1] == 1 || c->taps[1] == 1) &&
	       (c->filter.tap_stride[0] == c->taps[1] || c->taps[0] == 1);
}

/* Taps t0 .. t0 + nt - 1 of the filter, in memory's order, transposed: [m][k][tap] to [k][tap][m]. */
static void load_filter_transposed(struct conv *c, uint32_t buf, int64_t k0, int64_t nk, int64_t m0,
				   int64_t nm, int64_t t0, int64_t nt)
{
	const struct filter *f = &c->filter;
	int64_t group = ISA_PSUM_BANK_BYTES / f->elem / nm;
	struct lstep dims[3] = {
		{ nm, f->m_stride * f->elem, 0 },
		{ nk, f->k_stride * f->elem, nt * f->elem },
		{ nt, f->elem, f->elem },
	};
	uint32_t rows = lir_buf(c->ev.lir, ISA_SPACE_SBUF, (uint64_t)(nk * nt * f->elem));

	lir_load(c->ev.lir, rows, 0, 0, f->slot,
		 (k0 * f->k_stride + m0 * f->m_stride + t0) * f->elem, f->elem, 1, 3, dims);
	for (int64_t t = 0; t < nt; t += group) {
		int64_t n = nci_min(group, nt - t);
		uint32_t bank = lir_buf(c->ev.lir, ISA_SPACE_PSUM, (uint64_t)(n * nm * f->elem));

		for (int64_t i = 0; i < n; i++)
			panel_transpose(c->ev.lir,
					lir_row(bank, f->dtype, (uint32_t)nk,
						(uint32_t)(i * nm * f->elem), (uint32_t)nm),
					lir_tile(rows, f->dtype, (uint32_t)nm,
						 (uint32_t)((t + i) * f->elem), 1, &nk, &nt));
		panel_evict(&c->ev, ISA_CT_BITS,
			    lir_row(buf, f->dtype, (uint32_t)nk, (uint32_t)(t * nm * f->elem),
				    (uint32_t)(n * nm)),
			    lir_row(bank, f->dtype, (uint32_t)nk, 0, (uint32_t)(n * nm)), n * nm);
	}
}

/* [k][m][tap], for filters that have k outside m in memory. */
static void load_filter_natural(struct conv *c, uint32_t buf, int64_t k0, int64_t nk, int64_t m0,
				int64_t nm, int64_t t0, int64_t nt)
{
	const struct filter *f = &c->filter;
	struct lstep dims[3] = {
		{ nk, f->k_stride * f->elem, 0 },
		{ nm, f->m_stride * f->elem, nt * f->elem },
		{ nt, f->elem, f->elem },
	};

	lir_load(c->ev.lir, buf, 0, 0, f->slot,
		 (k0 * f->k_stride + m0 * f->m_stride + t0) * f->elem, f->elem, 1, 3, dims);
}

/* The same as the transposed one by single elements or, where m is contiguous, rows. */
static void load_filter_plain(struct conv *c, uint32_t buf, int64_t k0, int64_t nk, int64_t m0,
			      int64_t nm, int64_t t0, int64_t nt)
{
	const struct filter *f = &c->filter;

	for (int64_t t = t0; t < t0 + nt;) {
		int64_t row = t / c->taps[1], column = t % c->taps[1];
		int64_t n = nci_min(c->taps[1] - column, t0 + nt - t);
		struct lstep dims[3] = {
			{ nk, f->k_stride * f->elem, 0 },
			{ n, f->tap_stride[1] * f->elem, nm * f->elem },
			{ nm, f->m_stride * f->elem, f->elem },
		};

		lir_load(c->ev.lir, buf, 0, (uint32_t)((t - t0) * nm * f->elem), f->slot,
			 (k0 * f->k_stride + m0 * f->m_stride + row * f->tap_stride[0] +
			  column * f->tap_stride[1]) *
				 f->elem,
			 f->elem, 1, 3, dims);
		t += n;
	}
}

/* --- taps of several copies --------------------------------------------------------------------- */

/* Number of the tap in memory's order. */
static int64_t tap_in_memory(const struct conv *c, int64_t row, int64_t column)
{
	int64_t tap = row * c->taps[1] + column;

	return c->filter.flip ? n_taps(c) - 1 - tap : tap;
}

/* All products' weights, transposed: [m][k][tap] to [tap column, tap row, k][product][m]. */
static void load_copies_transposed(struct conv *c, uint32_t buf, int64_t k0, int64_t nk, int64_t m0,
				   int64_t nm, int64_t np)
{
	const struct filter *f = &c->filter;
	int64_t nt = n_taps(c), sign = f->flip ? -1 : 1;
	struct lstep dims[3] = {
		{ nm, f->m_stride * f->elem, 0 },
		{ nk, f->k_stride * f->elem, nt * f->elem },
		{ nt, f->elem, f->elem },
	};
	uint32_t rows = lir_buf(c->ev.lir, ISA_SPACE_SBUF, (uint64_t)(nk * nt * f->elem));

	lir_load(c->ev.lir, rows, 0, 0, f->slot, (k0 * f->k_stride + m0 * f->m_stride) * f->elem,
		 f->elem, 1, 3, dims);
	for (int64_t p = 0; p < np; p++) {
		struct taps taps = conv_taps(c, p);
		int64_t count[3] = { taps.count[1], taps.count[0], nk };
		int64_t step[3] = { sign, sign * c->taps[1], nt };
		uint32_t n = (uint32_t)(count[0] * count[1] * nk);
		uint32_t bank = lir_buf(c->ev.lir, ISA_SPACE_PSUM, (uint64_t)(nm * f->elem));
		struct ltile turned = lir_row(bank, f->dtype, n, 0, (uint32_t)nm);

		panel_transpose(c->ev.lir, turned,
				lir_tile(rows, f->dtype, (uint32_t)nm,
					 (uint32_t)(tap_in_memory(c, taps.first[0], taps.first[1]) *
						    f->elem),
					 3, count, step));
		panel_evict(&c->ev, ISA_CT_BITS,
			    lir_row(buf, f->dtype, n, (uint32_t)(p * nm * f->elem), (uint32_t)nm),
			    turned, nm);
	}
}

/* The same by single elements or, where m is contiguous, rows. */
static void load_copies_plain(struct conv *c, uint32_t buf, int64_t k0, int64_t nk, int64_t m0,
			      int64_t nm, int64_t np)
{
	const struct filter *f = &c->filter;
	struct lstep dims[2] = {
		{ nk, f->k_stride * f->elem, 0 },
		{ nm, f->m_stride * f->elem, f->elem },
	};

	for (int64_t p = 0; p < np; p++) {
		struct taps taps = conv_taps(c, p);

		for (int64_t i = 0; i < taps.count[0] * taps.count[1]; i++) {
			int64_t tap = tap_in_memory(c, taps.first[0] + i % taps.count[0],
						    taps.first[1] + i / taps.count[0]);

			lir_load(c->ev.lir, buf, (uint32_t)(i * nk), (uint32_t)(p * nm * f->elem),
				 f->slot,
				 (k0 * f->k_stride + m0 * f->m_stride +
				  tap / c->taps[1] * f->tap_stride[0] +
				  tap % c->taps[1] * f->tap_stride[1]) *
					 f->elem,
				 f->elem, 1, 2, dims);
		}
	}
}

/* --- chunks ------------------------------------------------------------------------------------------ */

/* Are nt taps of nk x nm weights many enough to be turned by the tensor engine, and few enough for one load? */
static bool worth_transposing(const struct conv *c, int64_t nk, int64_t nm, int64_t nt)
{
	return c->filter.m_stride > 1 && taps_contiguous(c) &&
	       nk * nt * c->filter.elem <= CHUNK_BYTES && nk * nm * nt > 512;
}

static uint32_t load_chunk(struct conv *c, int64_t k0, int64_t nk, int64_t m0, int64_t nm,
			   int64_t p0, int64_t np)
{
	const struct filter *f = &c->filter;
	uint32_t buf = lir_buf(c->ev.lir, ISA_SPACE_SBUF, (uint64_t)(np * nm * f->elem));

	k0 += f->flip ? c->group * c->k : 0;
	m0 += f->flip ? 0 : c->group * c->m;
	if (conv_copied(c) && worth_transposing(c, nk, nm, n_taps(c)))
		load_copies_transposed(c, buf, k0, nk, m0, nm, np);
	else if (conv_copied(c))
		load_copies_plain(c, buf, k0, nk, m0, nm, np);
	else if (c->natural)
		load_filter_natural(c, buf, k0, nk, m0, nm, p0, np);
	else if (worth_transposing(c, nk, nm, np))
		load_filter_transposed(c, buf, k0, nk, m0, nm, p0, np);
	else
		load_filter_plain(c, buf, k0, nk, m0, nm, p0, np);
	return buf;
}

bool conv_chunk_fits(const struct conv *c, int64_t passes)
{
	return passes * nci_min(c->m, ISA_MATMUL_M_MAX) * c->filter.elem <= CHUNK_BYTES;
}

/* Products of one chunk, so that neither the chunk nor what it is transposed from is too large. */
static int64_t chunk_passes(const struct conv *c)
{
	int64_t widest = nci_max(nci_min(c->m, ISA_MATMUL_M_MAX), nci_min(c->k, ISA_PARTITIONS));

	if (conv_copied(c))
		return conv_products(c);
	return nci_min(n_taps(c), nci_max(1, CHUNK_BYTES / (widest * c->filter.elem)));
}

void conv_set_filter(struct conv *c)
{
	c->chunk = chunk_passes(c);
	c->natural = !conv_copied(c) && taps_contiguous(c) &&
		     c->filter.m_stride < c->filter.k_stride;
}

static int64_t chunk_index(const struct conv *c, int64_t m0, int64_t k0, int64_t p0)
{
	int64_t k_blocks = conv_k_blocks(c);
	int64_t chunks = nci_ceil_div(conv_products(c), c->chunk);

	return (m0 / ISA_MATMUL_M_MAX * k_blocks + k0 / ISA_PARTITIONS) * chunks + p0 / c->chunk;
}

static int64_t filter_bytes(const struct conv *c)
{
	return conv_k_blocks(c) * conv_products(c) * c->m * c->filter.elem;
}

void conv_open_filter(struct conv *c)
{
	int64_t n = chunk_index(c, c->m - 1, c->k - 1, conv_products(c) - 1) + 1;

	c->chunks = NULL;
	if (filter_bytes(c) > FILTER_BYTES)
		return;
	c->chunks = nci_alloc(c->ev.ctx, (size_t)n * sizeof(*c->chunks));
	for (int64_t i = 0; i < n; i++)
		c->chunks[i] = LIR_NONE;
}

struct ltile conv_stationary(const struct conv *c, uint32_t chunk, int64_t nk, int64_t nm,
			     int64_t p, int64_t p0, int64_t np)
{
	struct taps taps = conv_taps(c, p);

	if (c->natural)
		return lir_tile(chunk, c->filter.dtype, (uint32_t)nk,
				(uint32_t)((p - p0) * c->filter.elem), 1, &nm, &np);
	return lir_row(chunk, c->filter.dtype, (uint32_t)(nk * taps.count[0] * taps.count[1]),
		       (uint32_t)((p - p0) * nm * c->filter.elem), (uint32_t)nm);
}

uint32_t conv_need_chunk(struct conv *c, int64_t k0, int64_t m0, int64_t p0)
{
	uint32_t *kept = c->chunks ? &c->chunks[chunk_index(c, m0, k0, p0)] : NULL;
	int64_t passes = conv_products(c);
	uint32_t buf;

	if (kept && *kept != LIR_NONE)
		return *kept;
	buf = load_chunk(c, k0, nci_min(ISA_PARTITIONS, c->k - k0), m0,
			 nci_min(ISA_MATMUL_M_MAX, c->m - m0), p0, nci_min(c->chunk, passes - p0));
	if (kept)
		*kept = buf;
	return buf;
}

void conv_next_chunk(struct conv *c, int64_t k0, int64_t m0, int64_t p0)
{
	if (!c->chunks)
		return;
	p0 += c->chunk;
	if (p0 >= conv_products(c)) {
		p0 = 0;
		k0 += ISA_PARTITIONS;
	}
	if (k0 >= c->k) {
		k0 = 0;
		m0 += ISA_MATMUL_M_MAX;
	}
	if (m0 < c->m)
		(void)conv_need_chunk(c, k0, m0, p0);
}
