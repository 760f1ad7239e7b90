/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gradient of a convolution by its weights: for every tap the product of the
 * result's gradient with the input that the tap saw, summed over images, rows and
 * columns. Both have channels on the partitions when loaded; the tensor
 * engine transposes them in parts of up to 128 places, which then are the rows
 * that its matrix product contracts. All places add up in PSUM.
 */
#include "conv.h"

#define WINDOW_BYTES (40 << 10)
#define PARTS	     4 /* of one block of places */

struct grad_w {
	struct eval ev;
	struct plan plan;
	struct image x, dy;
	int64_t images, out[2];
	int64_t step[2], pad[2], dilation[2], taps[2];
	int64_t ci, co; /* channels of one group */
	int64_t groups, group;
	struct cut cut[3];
	bool gather;
};

/* The block of the result at hand, and its accumulators. */
struct pass {
	int64_t m0, nm; /* channels of dy */
	int64_t c0, nc; /* channels of x */
	int64_t tap0[2], taps[2]; /* taps */
	int64_t tap_bank; /* taps that share a bank */
	uint32_t bank[CONV_BANKS], n_banks;
	bool first;
};

/* Images, rows and columns of dy. */
struct place {
	int64_t start[3], len[3];
};

static int64_t pass_taps(const struct pass *p)
{
	return p->taps[0] * p->taps[1];
}

static int64_t window_size(const struct grad_w *g, uint32_t i, int64_t len, int64_t taps)
{
	return (len - 1) * g->step[i] + (taps - 1) * g->dilation[i] + 1;
}

/* What taps tap0 .. of the filter see of x at the block: a window, or of one tap alone. */
static uint32_t load_x(struct grad_w *g, const struct pass *p, const struct place *b,
		       const int64_t *tap0, bool one_tap, struct grid_axis *axis)
{
	for (uint32_t i = 0; i < 2; i++) {
		axis[i].step = one_tap ? g->step[i] : 1;
		axis[i].count = one_tap ? b->len[1 + i] :
					  window_size(g, i, b->len[1 + i], p->taps[i]);
		axis[i].shift = b->start[1 + i] * g->step[i] - g->pad[i] + tap0[i] * g->dilation[i];
	}
	return grid_load(&g->ev, &g->x, g->group * g->ci + p->c0, p->nc, b->start[0], b->len[0],
			 axis, NULL);
}

/* A part of a grid, h and w being the first row and column, through steps. */
static struct ltile grid_tile(const struct image *image, uint32_t buf, int64_t channels,
			      const struct grid_axis *axis, const struct place *part, int64_t h,
			      int64_t w, const int64_t *step)
{
	int64_t plane = axis[0].count * axis[1].count;
	int64_t steps[3] = { plane, step[0] * axis[1].count, step[1] };

	return lir_tile(buf, image->dtype, (uint32_t)channels,
			(uint32_t)((part->start[0] * plane + h * axis[1].count + w) * image->elem),
			3, part->len, steps);
}

static int64_t places(const struct place *part)
{
	return part->len[0] * part->len[1] * part->len[2];
}

/* dst = src transposed, by way of PSUM; src has n partitions and as many places as part. */
static uint32_t transpose_dy(struct grad_w *g, const struct pass *p, const struct place *block,
			     const struct place *part, uint32_t dy)
{
	const int64_t ones[2] = { 1, 1 };
	struct grid_axis axis[2] = { { block->len[1], 1, 0 }, { block->len[2], 1, 0 } };
	uint32_t elem = g->dy.elem, rows = (uint32_t)places(part);
	uint32_t bank = lir_buf(g->ev.lir, ISA_SPACE_PSUM, (uint64_t)(p->nm * elem));
	uint32_t buf = lir_buf(g->ev.lir, ISA_SPACE_SBUF, (uint64_t)(p->nm * elem));
	struct ltile t = lir_row(bank, g->dy.dtype, rows, 0, (uint32_t)p->nm);

	panel_transpose(g->ev.lir, t,
			grid_tile(&g->dy, dy, p->nm, axis, part, part->start[1], part->start[2],
				  ones));
	panel_evict(&g->ev, ISA_CT_BITS, lir_row(buf, g->dy.dtype, rows, 0, (uint32_t)p->nm), t,
		    p->nm);
	return buf;
}

/* [places][tap][channel] of x. window: of all taps, or LIR_NONE: loaded for each. */
static uint32_t transpose_x(struct grad_w *g, const struct pass *p, const struct place *block,
			    const struct place *part, uint32_t window, struct grid_axis *axis)
{
	const int64_t ones[2] = { 1, 1 };
	uint32_t elem = g->x.elem, rows = (uint32_t)places(part), bank = LIR_NONE;
	int64_t taps = pass_taps(p), per_bank = ISA_PSUM_BANK_BYTES / elem / p->nc;
	uint32_t buf = lir_buf(g->ev.lir, ISA_SPACE_SBUF, (uint64_t)(taps * p->nc * elem));

	for (int64_t t = 0; t < taps; t++) {
		int64_t tap[2] = { t / p->taps[1], t % p->taps[1] }, slot = t % per_bank;
		int64_t n = nci_min(per_bank, taps - (t - slot));
		struct ltile src;

		if (slot == 0)
			bank = lir_buf(g->ev.lir, ISA_SPACE_PSUM, (uint64_t)(n * p->nc * elem));
		if (g->gather) {
			int64_t at[2] = { p->tap0[0] + tap[0], p->tap0[1] + tap[1] };
			uint32_t one = load_x(g, p, block, at, true, axis);

			src = grid_tile(&g->x, one, p->nc, axis, part, part->start[1],
					part->start[2], ones);
		} else {
			src = grid_tile(&g->x, window, p->nc, axis, part,
					part->start[1] * g->step[0] + tap[0] * g->dilation[0],
					part->start[2] * g->step[1] + tap[1] * g->dilation[1],
					g->step);
		}
		panel_transpose(g->ev.lir,
				lir_row(bank, g->x.dtype, rows, (uint32_t)(slot * p->nc * elem),
					(uint32_t)p->nc),
				src);
		if (slot + 1 == n)
			panel_evict(&g->ev, ISA_CT_BITS,
				    lir_row(buf, g->x.dtype, rows,
					    (uint32_t)((t - slot) * p->nc * elem),
					    (uint32_t)(n * p->nc)),
				    lir_row(bank, g->x.dtype, rows, 0, (uint32_t)(n * p->nc)),
				    n * p->nc);
	}
	return buf;
}

static void multiply_part(struct grad_w *g, struct pass *p, const struct place *block,
			  const struct place *part, uint32_t dy, uint32_t window,
			  struct grid_axis *axis)
{
	uint32_t dyt = transpose_dy(g, p, block, part, dy);
	uint32_t xt = transpose_x(g, p, block, part, window, axis);
	uint32_t rows = (uint32_t)places(part);
	int64_t taps = pass_taps(p);

	panel_stationary(g->ev.lir, lir_row(dyt, g->dy.dtype, rows, 0, (uint32_t)p->nm));
	for (uint32_t j = 0; j < p->n_banks; j++) {
		int64_t t = j * p->tap_bank, n = nci_min(p->tap_bank, taps - t) * p->nc;

		panel_matmul(g->ev.lir,
			     lir_row(p->bank[j], ISA_FP32, (uint32_t)p->nm, 0, (uint32_t)n),
			     lir_row(xt, g->x.dtype, rows, (uint32_t)(t * p->nc * g->x.elem),
				     (uint32_t)n),
			     !p->first);
	}
	p->first = false;
}

static void multiply_block(struct grad_w *g, struct pass *p, const struct place *block)
{
	struct grid_axis axis[2], whole[2];
	uint32_t window = LIR_NONE, dy;
	struct place part;
	int64_t *i = part.start;

	for (uint32_t d = 0; d < 2; d++)
		whole[d] = (struct grid_axis){ block->len[1 + d], 1, block->start[1 + d] };
	dy = grid_load(&g->ev, &g->dy, g->group * g->co + p->m0, p->nm, block->start[0],
		       block->len[0], whole, NULL);
	if (!g->gather)
		window = load_x(g, p, block, p->tap0, false, axis);
	for (i[0] = 0; i[0] < block->len[0]; i[0] += g->cut[0].part)
		for (i[1] = 0; i[1] < block->len[1]; i[1] += g->cut[1].part)
			for (i[2] = 0; i[2] < block->len[2]; i[2] += g->cut[2].part) {
				for (uint32_t d = 0; d < 3; d++)
					part.len[d] = nci_min(g->cut[d].part, block->len[d] - i[d]);
				multiply_part(g, p, block, &part, dy, window, axis);
			}
}

/* The accumulators, [co][tap][ci], into a tile [co][ci][tap]. */
static void finish(struct grad_w *g, const struct pass *p)
{
	struct eval *ev = &g->ev;
	uint32_t dtype = ev->vals[0].dtype, elem = isa_dtype_bytes(dtype);
	int64_t taps = pass_taps(p);
	uint32_t buf = lir_buf(ev->lir, ISA_SPACE_SBUF, (uint64_t)(taps * p->nc * elem));

	for (uint32_t j = 0; j < p->n_banks; j++) {
		int64_t t = j * p->tap_bank;
		int64_t count[2] = { nci_min(p->tap_bank, taps - t), p->nc };
		int64_t from[2] = { p->nc, 1 }, to[2] = { 1, taps };

		panel_evict(ev, ISA_CT_F32,
			    lir_tile(buf, dtype, (uint32_t)p->nm, (uint32_t)(t * elem), 2, count,
				     to),
			    lir_tile(p->bank[j], ISA_FP32, (uint32_t)p->nm, 0, 2, count, from),
			    count[0] * count[1]);
	}
	ev->start[0] = g->group * g->co + p->m0;
	ev->len[0] = p->nm;
	ev->start[1] = p->c0;
	ev->len[1] = p->nc;
	for (uint32_t i = 0; i < 2; i++) {
		ev->start[2 + i] = p->tap0[i];
		ev->len[2 + i] = p->taps[i];
	}
	eval_set_tile(ev);
	eval_preset(ev, 0, buf, 0, dtype);
	eval_members(ev, false);
	eval_stores(ev, false);
}

static void run_pass(struct grad_w *g, struct pass *p)
{
	struct place b;
	int64_t *i = b.start;

	p->n_banks = (uint32_t)nci_ceil_div(pass_taps(p), p->tap_bank);
	for (uint32_t j = 0; j < p->n_banks; j++)
		p->bank[j] = lir_buf(g->ev.lir, ISA_SPACE_PSUM, ISA_PSUM_BANK_BYTES);
	p->first = true;
	for (i[0] = 0; i[0] < g->images; i[0] += g->cut[0].block)
		for (i[1] = 0; i[1] < g->out[0]; i[1] += g->cut[1].block)
			for (i[2] = 0; i[2] < g->out[1]; i[2] += g->cut[2].block) {
				for (uint32_t d = 0; d < 3; d++)
					b.len[d] = nci_min(g->cut[d].block, g->cut[d].count - i[d]);
				multiply_block(g, p, &b);
			}
	finish(g, p);
}

/* Blocks of places whose window fits, or else tap by tap. */
static void choose_cut(struct grad_w *g, const int64_t *taps)
{
	int64_t part, parts = PARTS;

	for (part = ISA_PARTITIONS; part >= 16; parts > 1 ? parts-- : (part /= 2)) {
		conv_cut(g->images, g->out, part, parts, g->cut);
		if (g->cut[0].block * window_size(g, 0, g->cut[1].block, taps[0]) *
			    window_size(g, 1, g->cut[2].block, taps[1]) * g->x.elem <=
		    WINDOW_BYTES)
			return;
	}
	g->gather = true;
	conv_cut(g->images, g->out, ISA_PARTITIONS, 1, g->cut);
}

static void all_taps(struct grad_w *g, struct pass *p)
{
	int64_t most, block[2];

	p->tap_bank = nci_min(CONV_BANK_COLUMNS / p->nc, g->taps[0] * g->taps[1]);
	most = p->tap_bank * CONV_BANKS;
	block[1] = nci_min(g->taps[1], most);
	block[0] = nci_min(g->taps[0], nci_max(1, most / g->taps[1]));
	choose_cut(g, block);
	for (p->tap0[0] = 0; p->tap0[0] < g->taps[0]; p->tap0[0] += block[0])
		for (p->tap0[1] = 0; p->tap0[1] < g->taps[1]; p->tap0[1] += block[1]) {
			for (uint32_t i = 0; i < 2; i++)
				p->taps[i] = nci_min(block[i], g->taps[i] - p->tap0[i]);
			run_pass(g, p);
		}
}

void nci_conv_grad_w(struct legal *legal, struct lir *lir, struct group *group)
{
	const struct lnode *node = &legal->nodes[group->members[0].node];
	const struct node *origin = &legal->ctx->graph->nodes[node->origin];
	const struct nc_type *dy = &legal->ctx->graph->nodes[origin->src[0]].type;
	const struct nc_type *x = &legal->ctx->graph->nodes[origin->src[1]].type;
	struct grad_w *g = nci_alloc(legal->ctx, sizeof(*g));
	struct pass p = { 0 };

	eval_init(&g->ev, legal, lir, group);
	g->dy = conv_image(&g->ev, &group->members[0].src[0], dy->dims);
	g->x = conv_image(&g->ev, &group->members[0].src[1], x->dims);
	g->groups = origin->conv.groups;
	g->images = x->dims[0];
	g->ci = x->dims[1] / g->groups;
	g->co = dy->dims[1] / g->groups;
	for (uint32_t i = 0; i < 2; i++) {
		g->out[i] = dy->dims[2 + i];
		g->step[i] = origin->conv.stride[i];
		g->pad[i] = origin->conv.padding[i];
		g->dilation[i] = origin->conv.dilation[i];
		g->taps[i] = group->dims[2 + i];
	}
	for (uint32_t d = 0; d < 4; d++)
		g->plan.axes[d] = (struct axis){ .dim = d,
						 .role = d == 0 ? AXIS_PART : AXIS_FREE,
						 .unit = 1,
						 .count = group->dims[d],
						 .block = 1 };
	g->plan.n_axes = 4;
	eval_set_plan(&g->ev, &g->plan);
	for (g->group = 0; g->group < g->groups; g->group++)
		for (p.m0 = 0; p.m0 < g->co; p.m0 += ISA_MATMUL_M_MAX)
			for (p.c0 = 0; p.c0 < g->ci; p.c0 += ISA_PARTITIONS) {
				p.nm = nci_min(ISA_MATMUL_M_MAX, g->co - p.m0);
				p.nc = nci_min(ISA_PARTITIONS, g->ci - p.c0);
				all_taps(g, &p);
			}
}
