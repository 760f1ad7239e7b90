/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolution, and its gradient by x, which is a convolution too: of the
 * gradient of the result, spread out by the stride, with the weights flipped.
 *
 * For a block of images, rows and columns of the result, the window of the input
 * that it sees lies on chip, channels on the partitions. Every tap of the filter
 * is a matrix product: its weights are stationary, a strided walk of the window is
 * moving, and all taps and blocks of channels add up in PSUM.
 */
#include <errno.h>
#include <string.h>

#include "conv.h"

#define WINDOW_BYTES  (40 << 10) /* of one block of channels; beyond: tap by tap */
#define WINDOWS_BYTES (64 << 10) /* of all blocks of channels, kept for all blocks of results */
#define FILTER_BYTES  (80 << 10) /* of a group's weights, kept */
#define CHUNK_BYTES   (24 << 10) /* weights loaded at a time */

struct conv {
	struct eval ev;
	struct plan plan;
	struct image in;
	struct filter filter;
	int64_t images, out[2]; /* size of the result */
	int64_t step[2], pad[2], dilation[2], taps[2];
	int64_t k, m; /* channels of one group: contracted, resulting */
	int64_t groups, group;
	struct cut cut[3];
	bool natural; /* weights as in memory, taps innermost: m is not */
	bool gather; /* no window fits: every tap has its own tile */
	/* Taps in a chunk of weights; chunks[m block][k block][chunk], of this group, if kept. */
	int64_t chunk;
	uint32_t *chunks;
};

/* The block of the result at hand. */
struct block {
	int64_t start[3], len[3]; /* images, rows, columns */
	int64_t rows, columns; /* of the window */
	uint32_t *windows; /* of each block of channels; NULL: loaded when needed */
};

/* A part of it, as many columns of PSUM. */
struct part {
	int64_t start[3], len[3]; /* in the block */
	uint32_t bank;
	int64_t columns, first;
};

struct image conv_image(const struct eval *ev, const struct vref *ref, const int64_t *size)
{
	const struct lnode *node = &ev->legal->nodes[ref->node];
	struct image image = { .expand = { 1, 1 } };

	image.slot = node->kind == N_INPUT ? node->slot : node->scratch;
	image.dtype = (uint8_t)nci_isa_dtype(node->dtype);
	image.elem = (uint8_t)nci_dtype_bytes(node->dtype);
	for (uint32_t i = 0; i < 4; i++) {
		image.size[i] = size[i];
		image.stride[i] = size[i] == 1 ? 0 : ref->stride[i];
	}
	return image;
}

void conv_cut(int64_t images, const int64_t *size, int64_t part_max, int64_t parts_max,
	      struct cut *cut)
{
	int64_t count[3] = { images, size[0], size[1] };
	bool more = true; /* inner dims are whole */

	for (uint32_t i = 3; i-- > 0;) {
		cut[i].count = count[i];
		cut[i].part = more ? nci_min(count[i], part_max) : 1;
		cut[i].block = cut[i].part;
		part_max /= cut[i].part;
		/* The outermost dim that a part does not hold whole has the parts of a block. */
		if (more && (cut[i].part < count[i] || i == 0))
			cut[i].block = nci_min(count[i], cut[i].part * parts_max);
		more = more && cut[i].part == count[i];
	}
}

/* --- weights ----------------------------------------------------------------------------- */

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

static uint32_t load_chunk(struct conv *c, int64_t k0, int64_t nk, int64_t m0, int64_t nm,
			   int64_t t0, int64_t nt)
{
	const struct filter *f = &c->filter;
	uint32_t buf = lir_buf(c->ev.lir, ISA_SPACE_SBUF, (uint64_t)(nt * nm * f->elem));

	k0 += f->flip ? c->group * c->k : 0;
	m0 += f->flip ? 0 : c->group * c->m;
	if (c->natural)
		load_filter_natural(c, buf, k0, nk, m0, nm, t0, nt);
	else if (f->m_stride > 1 && taps_contiguous(c) && nk * nt * f->elem <= CHUNK_BYTES &&
		 nk * nm * nt > 512)
		load_filter_transposed(c, buf, k0, nk, m0, nm, t0, nt);
	else
		load_filter_plain(c, buf, k0, nk, m0, nm, t0, nt);
	return buf;
}

/* Taps of one chunk, so that neither the chunk nor what it is transposed from is too large. */
static int64_t chunk_taps(const struct conv *c)
{
	int64_t widest = nci_max(nci_min(c->m, ISA_MATMUL_M_MAX), nci_min(c->k, ISA_PARTITIONS));

	return nci_min(n_taps(c), nci_max(1, CHUNK_BYTES / (widest * c->filter.elem)));
}

static int64_t chunk_index(const struct conv *c, int64_t m0, int64_t k0, int64_t t0)
{
	int64_t k_blocks = nci_ceil_div(c->k, ISA_PARTITIONS);
	int64_t chunks = nci_ceil_div(n_taps(c), c->chunk);

	return (m0 / ISA_MATMUL_M_MAX * k_blocks + k0 / ISA_PARTITIONS) * chunks + t0 / c->chunk;
}

static int64_t filter_bytes(const struct conv *c)
{
	return nci_ceil_div(c->k, ISA_PARTITIONS) * n_taps(c) * c->m * c->filter.elem;
}

/* Weights of the group that the loops enter: none loaded yet. */
static void open_filter(struct conv *c)
{
	int64_t n = chunk_index(c, c->m - 1, c->k - 1, n_taps(c) - 1) + 1;

	c->chunks = NULL;
	if (filter_bytes(c) > FILTER_BYTES)
		return;
	c->chunks = nci_alloc(c->ev.ctx, (size_t)n * sizeof(*c->chunks));
	for (int64_t i = 0; i < n; i++)
		c->chunks[i] = LIR_NONE;
}

/* Weights of tap t of a chunk of nt taps, as stationary operand. */
static struct ltile stationary(const struct conv *c, uint32_t chunk, int64_t nk, int64_t nm,
			       int64_t t, int64_t nt)
{
	if (c->natural)
		return lir_tile(chunk, c->filter.dtype, (uint32_t)nk,
				(uint32_t)(t * c->filter.elem), 1, &nm, &nt);
	return lir_row(chunk, c->filter.dtype, (uint32_t)nk, (uint32_t)(t * nm * c->filter.elem),
		       (uint32_t)nm);
}

static uint32_t need_chunk(struct conv *c, int64_t k0, int64_t nk, int64_t m0, int64_t nm,
			   int64_t t0, int64_t nt)
{
	uint32_t *kept = c->chunks ? &c->chunks[chunk_index(c, m0, k0, t0)] : NULL;
	uint32_t buf;

	if (kept && *kept != LIR_NONE)
		return *kept;
	buf = load_chunk(c, k0, nk, m0, nm, t0, nt);
	if (kept)
		*kept = buf;
	return buf;
}

/* --- the input ------------------------------------------------------------------------------ */

static int64_t window_size(const struct conv *c, uint32_t i, int64_t len)
{
	return (len - 1) * c->step[i] + (c->taps[i] - 1) * c->dilation[i] + 1;
}

static uint32_t load_window(struct conv *c, const struct block *b, int64_t k0, int64_t nk)
{
	struct grid_axis axis[2];

	for (uint32_t i = 0; i < 2; i++)
		axis[i] = (struct grid_axis){ i ? b->columns : b->rows, 1,
					      b->start[1 + i] * c->step[i] - c->pad[i] };
	return grid_load(&c->ev, &c->in, c->group * c->k + k0, nk, b->start[0], b->len[0], axis);
}

static uint32_t load_tap(struct conv *c, const struct block *b, int64_t k0, int64_t nk,
			 const int64_t *tap)
{
	struct grid_axis axis[2];

	for (uint32_t i = 0; i < 2; i++)
		axis[i] = (struct grid_axis){ b->len[1 + i], c->step[i],
					      b->start[1 + i] * c->step[i] - c->pad[i] +
						      tap[i] * c->dilation[i] };
	return grid_load(&c->ev, &c->in, c->group * c->k + k0, nk, b->start[0], b->len[0], axis);
}

static uint32_t need_window(struct conv *c, const struct block *b, int64_t k0, int64_t nk)
{
	uint32_t *kept = b->windows ? &b->windows[k0 / ISA_PARTITIONS] : NULL;
	uint32_t buf;

	if (c->gather)
		return LIR_NONE;
	if (kept && *kept != LIR_NONE)
		return *kept;
	buf = load_window(c, b, k0, nk);
	if (kept)
		*kept = buf;
	return buf;
}

/* The moving operand: what the part sees of the window through one tap. */
static struct ltile moving(const struct conv *c, const struct block *b, const struct part *part,
			   uint32_t window, int64_t nk, const int64_t *tap)
{
	int64_t rows = c->gather ? b->len[1] : b->rows;
	int64_t columns = c->gather ? b->len[2] : b->columns, h = part->start[1],
		w = part->start[2];
	int64_t step[3] = { rows * columns, c->gather ? columns : c->step[0] * columns,
			    c->gather ? 1 : c->step[1] };

	if (!c->gather) {
		h = h * c->step[0] + tap[0] * c->dilation[0];
		w = w * c->step[1] + tap[1] * c->dilation[1];
	}
	return lir_tile(window, c->in.dtype, (uint32_t)nk,
			(uint32_t)(((part->start[0] * rows + h) * columns + w) * c->in.elem), 3,
			part->len, step);
}

/* --- products ---------------------------------------------------------------------------------- */

static uint32_t cut_parts(const struct conv *c, const struct block *b, struct part *parts)
{
	int64_t first = 0, i[3];
	uint32_t n = 0;

	for (i[0] = 0; i[0] < b->len[0]; i[0] += c->cut[0].part)
		for (i[1] = 0; i[1] < b->len[1]; i[1] += c->cut[1].part)
			for (i[2] = 0; i[2] < b->len[2]; i[2] += c->cut[2].part) {
				struct part *part = &parts[n++];

				part->columns = 1;
				for (uint32_t d = 0; d < 3; d++) {
					part->start[d] = i[d];
					part->len[d] = nci_min(c->cut[d].part, b->len[d] - i[d]);
					part->columns *= part->len[d];
				}
				part->first = first;
				first += part->columns;
			}
	return n;
}

static void multiply_tap(struct conv *c, const struct block *b, struct part *parts,
			 uint32_t n_parts, uint32_t window, struct ltile weights, int64_t nk,
			 const int64_t *tap, bool first)
{
	panel_stationary(c->ev.lir, weights);
	for (uint32_t i = 0; i < n_parts; i++)
		panel_matmul(c->ev.lir,
			     lir_row(parts[i].bank, ISA_FP32, weights.count[ISA_TILE_DIMS - 1], 0,
				     (uint32_t)parts[i].columns),
			     moving(c, b, &parts[i], window, nk, tap), !first);
}

/* All taps of one block of channels. */
static void multiply_channels(struct conv *c, const struct block *b, struct part *parts,
			      uint32_t n_parts, int64_t k0, int64_t nk, int64_t m0, int64_t nm)
{
	uint32_t window = need_window(c, b, k0, nk);
	int64_t taps = n_taps(c);

	for (int64_t t0 = 0; t0 < taps; t0 += c->chunk) {
		int64_t nt = nci_min(c->chunk, taps - t0);
		uint32_t chunk = need_chunk(c, k0, nk, m0, nm, t0, nt);

		for (int64_t t = t0; t < t0 + nt; t++) {
			int64_t at = c->filter.flip ? taps - 1 - t : t;
			int64_t tap[2] = { at / c->taps[1], at % c->taps[1] };

			if (c->gather)
				window = load_tap(c, b, k0, nk, tap);
			multiply_tap(c, b, parts, n_parts, window,
				     stationary(c, chunk, nk, nm, t - t0, nt), nk, tap,
				     k0 == 0 && t == 0);
		}
	}
}

static void finish(struct conv *c, const struct block *b, const struct part *parts,
		   uint32_t n_parts, int64_t m0, int64_t nm)
{
	struct eval *ev = &c->ev;
	uint32_t dtype = ev->vals[0].dtype, elem = isa_dtype_bytes(dtype);
	int64_t total = b->len[0] * b->len[1] * b->len[2];
	uint32_t buf = lir_buf(ev->lir, ISA_SPACE_SBUF, (uint64_t)(total * elem));

	for (uint32_t i = 0; i < n_parts; i++)
		panel_evict(ev, ISA_CT_F32,
			    lir_row(buf, dtype, (uint32_t)nm, (uint32_t)(parts[i].first * elem),
				    (uint32_t)parts[i].columns),
			    lir_row(parts[i].bank, ISA_FP32, (uint32_t)nm, 0,
				    (uint32_t)parts[i].columns),
			    parts[i].columns);
	ev->start[0] = b->start[0];
	ev->len[0] = b->len[0];
	ev->start[1] = c->group * c->m + m0;
	ev->len[1] = nm;
	for (uint32_t i = 0; i < 2; i++) {
		ev->start[2 + i] = b->start[1 + i];
		ev->len[2 + i] = b->len[1 + i];
	}
	eval_set_tile(ev);
	eval_preset(ev, 0, buf, 0, dtype);
	eval_members(ev, false);
	eval_stores(ev, false);
}

/* One block of the result, all its channels of one group. */
static void conv_block(struct conv *c, struct block *b)
{
	int64_t k_blocks = nci_ceil_div(c->k, ISA_PARTITIONS);
	int64_t window;

	b->rows = window_size(c, 0, b->len[1]);
	b->columns = window_size(c, 1, b->len[2]);
	window = b->len[0] * b->rows * b->columns * c->in.elem;
	b->windows = NULL;
	if (!c->gather && window * k_blocks <= WINDOWS_BYTES) {
		b->windows = nci_alloc(c->ev.ctx, (size_t)k_blocks * sizeof(*b->windows));
		for (int64_t i = 0; i < k_blocks; i++)
			b->windows[i] = LIR_NONE;
	}
	for (int64_t m0 = 0; m0 < c->m; m0 += ISA_MATMUL_M_MAX) {
		int64_t nm = nci_min(ISA_MATMUL_M_MAX, c->m - m0);
		struct part parts[CONV_BANKS];
		uint32_t n = cut_parts(c, b, parts);

		for (uint32_t i = 0; i < n; i++)
			parts[i].bank =
				lir_buf(c->ev.lir, ISA_SPACE_PSUM, (uint64_t)parts[i].columns * 4);
		for (int64_t k0 = 0; k0 < c->k; k0 += ISA_PARTITIONS)
			multiply_channels(c, b, parts, n, k0, nci_min(ISA_PARTITIONS, c->k - k0),
					  m0, nm);
		finish(c, b, parts, n, m0, nm);
	}
}

static void conv_loops(struct conv *c)
{
	int64_t i[3];

	for (c->group = 0; c->group < c->groups; c->group++) {
		open_filter(c);
		for (i[0] = 0; i[0] < c->images; i[0] += c->cut[0].block)
			for (i[1] = 0; i[1] < c->out[0]; i[1] += c->cut[1].block)
				for (i[2] = 0; i[2] < c->out[1]; i[2] += c->cut[2].block) {
					struct block b = { 0 };

					for (uint32_t d = 0; d < 3; d++) {
						b.start[d] = i[d];
						b.len[d] = nci_min(c->cut[d].block,
								   c->cut[d].count - i[d]);
					}
					conv_block(c, &b);
				}
	}
}

/* Blocks whose window fits; smaller and smaller ones, else tap by tap. */
static void choose_cut(struct conv *c)
{
	int64_t part, parts = CONV_BANKS;

	for (part = CONV_BANK_COLUMNS; part >= 32; parts > 1 ? parts-- : (part /= 2)) {
		conv_cut(c->images, c->out, part, parts, c->cut);
		if (c->cut[0].block * window_size(c, 0, c->cut[1].block) *
			    window_size(c, 1, c->cut[2].block) * c->in.elem <=
		    WINDOW_BYTES)
			return;
	}
	c->gather = true;
	conv_cut(c->images, c->out, CONV_BANK_COLUMNS, 1, c->cut);
}

static void make_plan(struct conv *c, const struct group *group)
{
	for (uint32_t d = 0; d < 4; d++) {
		struct axis *axis = &c->plan.axes[d];

		axis->dim = d;
		axis->role = d == 1 ? AXIS_PART : AXIS_FREE;
		axis->unit = 1;
		axis->count = group->dims[d];
		axis->block = 1;
	}
	c->plan.n_axes = 4;
	eval_set_plan(&c->ev, &c->plan);
}

static void set_filter(struct conv *c, const struct vref *w, const int64_t *dims)
{
	const struct lnode *node = &c->ev.legal->nodes[w->node];
	struct filter *f = &c->filter;

	f->slot = node->kind == N_INPUT ? node->slot : node->scratch;
	f->dtype = (uint8_t)nci_isa_dtype(node->dtype);
	f->elem = (uint8_t)nci_dtype_bytes(node->dtype);
	f->k_stride = w->stride[f->flip ? 0 : 1];
	f->m_stride = w->stride[f->flip ? 1 : 0];
	for (uint32_t i = 0; i < 2; i++) {
		f->tap_stride[i] = w->stride[2 + i];
		c->taps[i] = dims[2 + i];
	}
}

void nci_conv(struct legal *legal, struct lir *lir, struct group *group)
{
	const struct lnode *node = &legal->nodes[group->members[0].node];
	const struct node *origin = &legal->ctx->graph->nodes[node->origin];
	const struct nc_type *in = &legal->ctx->graph->nodes[origin->src[0]].type;
	const struct nc_type *w = &legal->ctx->graph->nodes[origin->src[1]].type;
	struct conv *c;

	lir->tag = node->origin;
	if (node->kind == N_CONV_GRAD_W) {
		nci_conv_grad_w(legal, lir, group);
		return;
	}
	c = nci_alloc(legal->ctx, sizeof(*c));
	eval_init(&c->ev, legal, lir, group);
	c->filter.flip = node->kind == N_CONV_GRAD_X;
	c->in = conv_image(&c->ev, &group->members[0].src[0], in->dims);
	set_filter(c, &group->members[0].src[1], w->dims);
	c->groups = origin->conv.groups;
	c->images = group->dims[0];
	c->k = in->dims[1] / c->groups;
	c->m = group->dims[1] / c->groups;
	for (uint32_t i = 0; i < 2; i++) {
		c->out[i] = group->dims[2 + i];
		c->dilation[i] = origin->conv.dilation[i];
		c->step[i] = c->filter.flip ? 1 : origin->conv.stride[i];
		c->in.expand[i] = c->filter.flip ? origin->conv.stride[i] : 1;
		c->pad[i] = c->filter.flip ?
				    (c->taps[i] - 1) * c->dilation[i] - origin->conv.padding[i] :
				    origin->conv.padding[i];
	}
	make_plan(c, group);
	choose_cut(c);
	c->chunk = chunk_taps(c);
	c->natural = taps_contiguous(c) && c->filter.m_stride < c->filter.k_stride;
	conv_loops(c);
}
