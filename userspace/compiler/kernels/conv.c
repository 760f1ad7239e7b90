/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolution, and its gradient by x, which is a convolution too: of the
 * gradient of the result, spread out by the stride, with the weights flipped.
 *
 * For a block of images, rows and columns of the result, the window of the input
 * that it sees lies on chip, channels on the partitions. Every tap of the filter
 * is a matrix product: its weights are stationary, a strided walk of the window is
 * moving, and all taps and blocks of channels add up in PSUM.
 *
 * Few channels would leave most rows of the tensor engine idle. Then the partitions hold several copies
 * of the window, each shifted to what another tap sees, and one product does as many taps at once:
 * copies cost transfers and save products, choose_copies() weighs them.
 */
#include <errno.h>
#include <string.h>

#include "conv.h"

#define WINDOW_BYTES  (40 << 10) /* of one block of channels; beyond: tap by tap */
#define WINDOWS_BYTES (64 << 10) /* of all blocks of channels, kept for all blocks of results */
#define BLOCKS_MIN    4 /* of whole images: the first is small, so that the engine starts early */
#define AHEAD	      3 /* blocks whose windows are loaded before the block at hand is finished */
#define AHEAD_BYTES   (64 << 10) /* of the windows of all these blocks */

/* The block of the result at hand. */
struct block {
	int64_t group;
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

/* --- the input ------------------------------------------------------------------------------ */

/* The window has only the rows that the block sees: all taps of a column are among its copies. */
static bool rows_apart(const struct conv *c)
{
	return c->copies[0] == c->taps[0];
}

/* Rows or columns of the window of so many of the result. */
static int64_t window_size(const struct conv *c, uint32_t i, int64_t len)
{
	int64_t last = (conv_passes(c, i) - 1) * c->copies[i];

	if (i == 0 && rows_apart(c))
		return len;
	return (len - 1) * c->step[i] + last * c->dilation[i] + 1;
}

static uint32_t load_window(struct conv *c, const struct block *b, int64_t k0, int64_t nk)
{
	struct grid_copies copies = { { c->copies[0], c->copies[1] },
				      { c->dilation[0], c->dilation[1] } };
	struct grid_axis axis[2];

	for (uint32_t i = 0; i < 2; i++)
		axis[i] = (struct grid_axis){ i ? b->columns : b->rows,
					      i == 0 && rows_apart(c) ? c->step[0] : 1,
					      b->start[1 + i] * c->step[i] - c->pad[i] };
	return grid_load(&c->ev, &c->in, b->group * c->k + k0, nk, b->start[0], b->len[0], axis,
			 &copies);
}

static uint32_t load_tap(struct conv *c, const struct block *b, int64_t k0, int64_t nk,
			 const int64_t *tap)
{
	struct grid_axis axis[2];

	for (uint32_t i = 0; i < 2; i++)
		axis[i] = (struct grid_axis){ b->len[1 + i], c->step[i],
					      b->start[1 + i] * c->step[i] - c->pad[i] +
						      tap[i] * c->dilation[i] };
	return grid_load(&c->ev, &c->in, b->group * c->k + k0, nk, b->start[0], b->len[0], axis,
			 NULL);
}

static uint32_t need_window(struct conv *c, const struct block *b, int64_t k0, int64_t nk)
{
	if (c->gather)
		return LIR_NONE;
	return b->windows ? b->windows[k0 / ISA_PARTITIONS] : load_window(c, b, k0, nk);
}

/* The moving operand: what the part sees of the window through the taps of one product. */
static struct ltile moving(const struct conv *c, const struct block *b, const struct part *part,
			   uint32_t window, int64_t nk, const struct taps *taps)
{
	int64_t rows = c->gather ? b->len[1] : b->rows;
	int64_t columns = c->gather ? b->len[2] : b->columns, h = part->start[1],
		w = part->start[2];
	int64_t step[3] = { rows * columns, columns, 1 };

	if (!c->gather) {
		if (!rows_apart(c)) {
			step[1] *= c->step[0];
			h = h * c->step[0] + taps->first[0] * c->dilation[0];
		}
		step[2] = c->step[1];
		w = w * c->step[1] + taps->first[1] * c->dilation[1];
	}
	return lir_tile(window, c->in.dtype, (uint32_t)(nk * taps->count[0] * taps->count[1]),
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

static void multiply_taps(struct conv *c, const struct block *b, struct part *parts,
			  uint32_t n_parts, uint32_t window, struct ltile weights, int64_t nk,
			  const struct taps *taps, bool first)
{
	panel_stationary(c->ev.lir, weights);
	for (uint32_t i = 0; i < n_parts; i++)
		panel_matmul(c->ev.lir,
			     lir_row(parts[i].bank, ISA_FP32, weights.count[ISA_TILE_DIMS - 1], 0,
				     (uint32_t)parts[i].columns),
			     moving(c, b, &parts[i], window, nk, taps), !first);
}

/* All taps of one block of channels. */
static void multiply_channels(struct conv *c, const struct block *b, struct part *parts,
			      uint32_t n_parts, int64_t k0, int64_t nk, int64_t m0, int64_t nm)
{
	uint32_t window = need_window(c, b, k0, nk);
	int64_t passes = conv_products(c);

	for (int64_t p0 = 0; p0 < passes; p0 += c->chunk) {
		int64_t np = nci_min(c->chunk, passes - p0);
		uint32_t chunk = conv_need_chunk(c, k0, m0, p0);

		conv_next_chunk(c, k0, m0, p0);
		for (int64_t p = p0; p < p0 + np; p++) {
			/* Weights come in the order that they have in memory. */
			struct taps taps = conv_taps(
				c, c->filter.flip && !conv_copied(c) ? passes - 1 - p : p);

			if (c->gather)
				window = load_tap(c, b, k0, nk, taps.first);
			multiply_taps(c, b, parts, n_parts, window,
				      conv_stationary(c, chunk, nk, nm, p, p0, np), nk, &taps,
				      k0 == 0 && p == 0);
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
	ev->start[1] = b->group * c->m + m0;
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

/* The block of that number: groups outermost, then images, rows, columns. False: there is none. */
static bool block_at(const struct conv *c, int64_t index, struct block *b)
{
	*b = (struct block){ 0 };
	for (uint32_t d = 3; d-- > 0;) {
		int64_t n = nci_ceil_div(c->cut[d].count, c->cut[d].block);

		b->start[d] = index % n * c->cut[d].block;
		b->len[d] = nci_min(c->cut[d].block, c->cut[d].count - b->start[d]);
		index /= n;
	}
	b->group = index;
	b->rows = window_size(c, 0, b->len[1]);
	b->columns = window_size(c, 1, b->len[2]);
	return index < c->groups;
}

static int64_t windows_bytes(const struct conv *c, const struct block *b)
{
	return b->len[0] * b->rows * b->columns * c->in.elem * conv_k_blocks(c);
}

/* Loads the windows of the block if they are to be kept at all. */
static void open_block(struct conv *c, struct block *b)
{
	int64_t k_blocks = conv_k_blocks(c);

	if (c->gather || b->windows || windows_bytes(c, b) > WINDOWS_BYTES)
		return;
	b->windows = nci_alloc(c->ev.ctx, (size_t)k_blocks * sizeof(*b->windows));
	for (int64_t i = 0; i < k_blocks; i++) {
		int64_t k0 = i * ISA_PARTITIONS;

		b->windows[i] = load_window(c, b, k0, nci_min(ISA_PARTITIONS, c->k - k0));
	}
}

/* Blocks under way: queue[0] is at hand, as many more as n says are loaded ahead. */
struct queue {
	struct block at[1 + AHEAD];
	uint32_t n, ahead;
	int64_t next; /* number of the first block behind */
};

static void refill(struct conv *c, struct queue *q)
{
	while (q->n <= q->ahead && block_at(c, q->next, &q->at[q->n])) {
		q->n++;
		q->next++;
	}
}

/*
 * Results of the block at hand, all channels of its group. Windows of the blocks ahead are loaded before its
 * results are finished: else engines that clear their frames and issue their transfers would first wait
 * for these.
 */
static void conv_block(struct conv *c, struct queue *q)
{
	struct block *b = &q->at[0];

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
		for (uint32_t i = 1; i < q->n; i++)
			open_block(c, &q->at[i]);
		finish(c, b, parts, n, m0, nm);
	}
}

static void conv_loops(struct conv *c)
{
	struct queue q = { 0 };

	refill(c, &q);
	q.ahead =
		(uint32_t)nci_min(AHEAD, nci_max(0, AHEAD_BYTES / windows_bytes(c, &q.at[0]) - 1));
	c->group = -1;
	for (refill(c, &q); q.n; refill(c, &q)) {
		open_block(c, &q.at[0]);
		if (q.at[0].group != c->group) {
			c->group = q.at[0].group;
			conv_open_filter(c);
		}
		conv_block(c, &q);
		memmove(&q.at[0], &q.at[1], AHEAD * sizeof(q.at[0]));
		q.n--;
	}
}

/* Blocks whose window fits; smaller and smaller ones, else tap by tap. */
static void choose_cut(struct conv *c)
{
	int64_t part, parts = CONV_BANKS;

	/* Where blocks are whole images, so that more of them need no more of the input: several. */
	conv_cut(c->images, c->out, CONV_BANK_COLUMNS, parts, c->cut);
	while (parts > 1 && c->cut[0].part * parts * BLOCKS_MIN > c->images &&
	       c->cut[1].part == c->out[0])
		parts--;
	for (part = CONV_BANK_COLUMNS; part >= 32; parts > 1 ? parts-- : (part /= 2)) {
		conv_cut(c->images, c->out, part, parts, c->cut);
		if (c->cut[0].block * window_size(c, 0, c->cut[1].block) *
			    window_size(c, 1, c->cut[2].block) * c->in.elem <=
		    WINDOW_BYTES)
			return;
	}
	c->gather = true;
	c->copies[0] = 1;
	c->copies[1] = 1;
	conv_cut(c->images, c->out, CONV_BANK_COLUMNS, 1, c->cut);
}

/* --- copies ---------------------------------------------------------------------------------------- */

/* What loading all windows takes. */
static uint64_t load_cost(const struct conv *c)
{
	int64_t planes = c->images * c->k * c->copies[0] * c->copies[1];
	int64_t rows = window_size(c, 0, c->out[0]);
	int64_t bytes = window_size(c, 1, c->out[1]) * c->in.elem;
	bool aligned = !conv_copied(c) || c->k % ISA_PART_QUANTUM == 0;

	if (grid_rows_short(&c->in) && aligned)
		return lir_dma_quarter_ticks(planes, rows * bytes);
	return lir_dma_quarter_ticks(planes * rows, bytes);
}

/* What the whole result takes with so many copies: the longer of products and transfers, in quarters of a
 * tick. */
static uint64_t copies_cost(struct conv *c, int64_t rows, int64_t columns)
{
	int64_t out_bytes = c->out[1] * isa_dtype_bytes(c->ev.vals[0].dtype), products;
	uint64_t store = lir_dma_quarter_ticks(c->images * c->m * c->out[0], out_bytes);

	c->copies[0] = rows;
	c->copies[1] = columns;
	products = conv_products(c) * nci_ceil_div(c->m, ISA_MATMUL_M_MAX);
	return (uint64_t)nci_max(
		(int64_t)lir_matmul_quarter_ticks(products * c->images * c->out[0] * c->out[1]),
		(int64_t)(load_cost(c) + store));
}

static bool copies_fit(const struct conv *c, int64_t rows, int64_t columns)
{
	int64_t passes = nci_ceil_div(c->taps[0], rows) * nci_ceil_div(c->taps[1], columns);

	/* So that the taps that are left at the filter's end belong to the first copies: */
	if (rows > 1 && columns > 1 && rows < c->taps[0])
		return false;
	return rows * columns * c->k <= ISA_PARTITIONS && conv_chunk_fits(c, passes);
}

/* Of what fits, what takes the least; of equals, the fewest copies. */
static void choose_copies(struct conv *c)
{
	int64_t best[2] = { 1, 1 };
	uint64_t least = copies_cost(c, 1, 1);

	for (int64_t rows = 1; rows <= nci_min(c->taps[0], ISA_PARTITIONS); rows++)
		for (int64_t columns = 1; columns <= nci_min(c->taps[1], ISA_PARTITIONS);
		     columns++) {
			uint64_t cost;

			if (!copies_fit(c, rows, columns))
				continue;
			cost = copies_cost(c, rows, columns);
			if (cost < least) {
				least = cost;
				best[0] = rows;
				best[1] = columns;
			}
		}
	c->copies[0] = best[0];
	c->copies[1] = best[1];
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
	choose_copies(c);
	choose_cut(c);
	conv_set_filter(c);
	conv_loops(c);
}
