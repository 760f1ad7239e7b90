/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrix products, and what is computed from their result at the same place. After
 * merging, a dim of the result that only the first operand varies along is M
 * (partitions of the result), one that only the second varies along is N (its
 * columns); all others are loops around the product.
 *
 * For each panel of N, all of K of the second operand is kept on chip as the
 * moving operand, if it fits; blocks of 128 rows of the first pass by as stationary
 * operands, the next block being loaded before the products of this one. If K
 * is too large for that, both operands pass by, for up to two blocks of M at a time.
 */
#include <errno.h>
#include <string.h>

#include "panel.h"

#define RESIDENT_BYTES (64 << 10) /* second operand, a partition */
#define STREAM_BYTES   (16 << 10) /* chunk of it when K is too large */
#define STREAM_BLOCKS  2 /* of M */
#define N_BLOCK	       1024 /* columns of the result at a time: two PSUM banks */
#define BANK_COLUMNS   (ISA_PSUM_BANK_BYTES / 4)

struct product {
	struct eval ev;
	struct plan plan;
	struct matrix a, b; /* x is M, N; offset: of the loop axes at hand */
	int64_t a_step[AXES_MAX], b_step[AXES_MAX];
	int64_t m, n, k, n_block, panel, m_blocks;
	uint32_t m_axis, n_axis; /* LIR_NONE: of size 1 */
	bool resident;
};

static struct matrix operand(const struct eval *ev, const struct vref *ref, int64_t k_step)
{
	const struct lnode *node = &ev->legal->nodes[ref->node];
	struct matrix m = { .k_step = k_step, .x_step = 1 };

	m.slot = node->kind == N_INPUT ? node->slot : node->scratch;
	m.dtype = (uint8_t)nci_isa_dtype(node->dtype);
	m.elem = (uint8_t)nci_dtype_bytes(node->dtype);
	return m;
}

/* The largest dim that operand i alone varies along; LIR_NONE: none. */
static uint32_t own_dim(const struct group *group, uint32_t i)
{
	const struct member *m = &group->members[0];
	uint32_t best = LIR_NONE;

	for (uint32_t d = 0; d < group->nd; d++)
		if (m->src[i].stride[d] && !m->src[1 - i].stride[d] &&
		    (best == LIR_NONE || group->dims[d] > group->dims[best]))
			best = d;
	return best;
}

/* Is the result contiguous along dim? */
static bool contiguous(const struct group *group, uint32_t dim)
{
	return dim != LIR_NONE && group->n_stores && group->stores[0].stride[dim] == 1;
}

static void make_plan(struct product *p, struct group *group, uint32_t m_dim, uint32_t n_dim)
{
	struct plan *plan = &p->plan;

	p->m_axis = m_dim;
	p->n_axis = n_dim;
	p->m = m_dim == LIR_NONE ? 1 : group->dims[m_dim];
	p->n = n_dim == LIR_NONE ? 1 : group->dims[n_dim];
	for (uint32_t d = 0; d < group->nd; d++) {
		struct axis *axis = &plan->axes[plan->n_axes++];

		axis->dim = d;
		axis->role = d == m_dim ? AXIS_PART : d == n_dim ? AXIS_FREE : AXIS_LOOP;
		axis->unit = 1;
		axis->count = group->dims[d];
		axis->block = 1;
	}
}

/* Moves K's strides out of the operands' and gives the rest over the result's dims. */
static void split_k(const struct lnode *node, struct group *group, int64_t *a_k, int64_t *b_k)
{
	struct member *m = &group->members[0];
	uint32_t nd = node->nd;

	*a_k = m->src[0].stride[nd - 1];
	m->src[0].stride[nd - 1] = 0;
	*b_k = m->src[1].stride[nd - 2];
	m->src[1].stride[nd - 2] = 0;
}

static void swap_operands(struct product *p, struct group *group)
{
	struct vref t = group->members[0].src[0];
	struct matrix a = p->a;

	group->members[0].src[0] = group->members[0].src[1];
	group->members[0].src[1] = t;
	p->a = p->b;
	p->b = a;
}

static void choose_blocks(struct product *p)
{
	int64_t blocks = nci_ceil_div(p->n, N_BLOCK);
	int64_t columns;

	p->n_block = nci_ceil_div(p->n, blocks);
	columns = RESIDENT_BYTES / (nci_ceil_div(p->k, ISA_PARTITIONS) * p->b.elem);
	p->resident = columns >= p->n_block;
	p->panel = p->resident ? nci_min(columns / p->n_block, blocks) * p->n_block : p->n_block;
	p->m_blocks = p->resident ? 1 : STREAM_BLOCKS;
}

/* --- one block of the result --------------------------------------------------------------- */

struct accs {
	uint32_t bank[STREAM_BLOCKS][N_BLOCK / BANK_COLUMNS];
	int64_t columns; /* of one bank */
};

static void open_banks(struct product *p, struct accs *accs, int64_t m_blocks, int64_t n)
{
	int64_t banks = nci_ceil_div(n, BANK_COLUMNS);

	accs->columns = nci_ceil_div(n, banks);
	for (int64_t i = 0; i < m_blocks; i++)
		for (int64_t j = 0; j < banks; j++)
			accs->bank[i][j] =
				lir_buf(p->ev.lir, ISA_SPACE_PSUM, (uint64_t)accs->columns * 4);
}

/* Adds the products of panels a and b, which have the same rows of K. */
static void multiply(struct product *p, const struct accs *accs, int64_t i, const struct panel *a,
		     const struct panel *b, int64_t n0, int64_t n)
{
	for (int64_t k = 0; k * ISA_PARTITIONS < a->nk; k++) {
		panel_stationary(p->ev.lir, panel_tile(a, k, a->x0, a->nx));
		for (int64_t j = 0; j * accs->columns < n; j++) {
			int64_t columns = nci_min(accs->columns, n - j * accs->columns);

			panel_matmul(p->ev.lir,
				     lir_row(accs->bank[i][j], ISA_FP32, (uint32_t)a->nx, 0,
					     (uint32_t)columns),
				     panel_tile(b, k, n0 + j * accs->columns, columns),
				     a->k0 + k > 0);
		}
	}
}

/* Rows of the result from the accumulators to where they are wanted. */
static void finish(struct product *p, const struct accs *accs, int64_t i, int64_t m0, int64_t m,
		   int64_t n0, int64_t n)
{
	struct eval *ev = &p->ev;
	uint32_t dtype = ev->vals[0].dtype, elem = isa_dtype_bytes(dtype);
	uint32_t buf = lir_buf(ev->lir, ISA_SPACE_SBUF, (uint64_t)n * elem);

	for (int64_t j = 0; j * accs->columns < n; j++) {
		uint32_t columns = (uint32_t)nci_min(accs->columns, n - j * accs->columns);

		panel_evict(ev, ISA_CT_F32,
			    lir_row(buf, dtype, (uint32_t)m, (uint32_t)(j * accs->columns * elem),
				    columns),
			    lir_row(accs->bank[i][j], ISA_FP32, (uint32_t)m, 0, columns), columns);
	}
	if (p->m_axis != LIR_NONE) {
		ev->start[p->m_axis] = m0;
		ev->len[p->m_axis] = m;
	}
	if (p->n_axis != LIR_NONE) {
		ev->start[p->n_axis] = n0;
		ev->len[p->n_axis] = n;
	}
	eval_set_tile(ev);
	eval_preset(ev, 0, buf, 0, dtype);
	eval_members(ev, false);
	eval_stores(ev, false);
}

/* --- loops ------------------------------------------------------------------------------------ */

/* A panel of the result with all of K of b on chip. */
static void resident_panel(struct product *p, int64_t n0, int64_t n)
{
	struct panel b = panel_load(&p->ev, &p->b, 0, p->k, n0, n), a, next;

	next = panel_load(&p->ev, &p->a, 0, p->k, 0, nci_min(ISA_MATMUL_M_MAX, p->m));
	for (int64_t m0 = 0; m0 < p->m; m0 += ISA_MATMUL_M_MAX) {
		int64_t m1 = m0 + ISA_MATMUL_M_MAX;

		a = next;
		if (m1 < p->m)
			next = panel_load(&p->ev, &p->a, 0, p->k, m1,
					  nci_min(ISA_MATMUL_M_MAX, p->m - m1));
		for (int64_t j = 0; j < n; j += p->n_block) {
			int64_t columns = nci_min(p->n_block, n - j);
			struct accs accs;

			open_banks(p, &accs, 1, columns);
			multiply(p, &accs, 0, &a, &b, n0 + j, columns);
			finish(p, &accs, 0, m0, a.nx, n0 + j, columns);
		}
	}
}

/* Both operands in chunks of K. */
static void streamed_panel(struct product *p, int64_t n0, int64_t n)
{
	int64_t rows = nci_max(1, STREAM_BYTES / (n * p->b.elem)) * ISA_PARTITIONS;
	int64_t step = STREAM_BLOCKS * ISA_MATMUL_M_MAX;

	for (int64_t m0 = 0; m0 < p->m; m0 += step) {
		int64_t m = nci_min(step, p->m - m0), blocks = nci_ceil_div(m, ISA_MATMUL_M_MAX);
		struct accs accs;

		open_banks(p, &accs, blocks, n);
		for (int64_t k = 0; k < p->k; k += rows) {
			int64_t nk = nci_min(rows, p->k - k);
			struct panel b = panel_load(&p->ev, &p->b, k, nk, n0, n);

			for (int64_t i = 0; i < blocks; i++) {
				int64_t at = i * ISA_MATMUL_M_MAX;
				struct panel a = panel_load(&p->ev, &p->a, k, nk, m0 + at,
							    nci_min(ISA_MATMUL_M_MAX, m - at));

				multiply(p, &accs, i, &a, &b, n0, n);
			}
		}
		for (int64_t i = 0; i < blocks; i++) {
			int64_t at = i * ISA_MATMUL_M_MAX;

			finish(p, &accs, i, m0 + at, nci_min(ISA_MATMUL_M_MAX, m - at), n0, n);
		}
	}
}

static void all_panels(struct product *p)
{
	for (int64_t n0 = 0; n0 < p->n; n0 += p->panel) {
		int64_t n = nci_min(p->panel, p->n - n0);

		if (p->resident)
			resident_panel(p, n0, n);
		else
			streamed_panel(p, n0, n);
	}
}

/* The loop axes from axis on. */
static void loops(struct product *p, uint32_t axis)
{
	struct matrix a = p->a, b = p->b;

	while (axis < p->plan.n_axes && p->plan.axes[axis].role != AXIS_LOOP)
		axis++;
	if (axis == p->plan.n_axes) {
		all_panels(p);
		return;
	}
	for (int64_t i = 0; i < p->plan.axes[axis].count; i++) {
		p->ev.start[axis] = i;
		p->ev.len[axis] = 1;
		p->a.offset = a.offset + i * p->a_step[axis];
		p->b.offset = b.offset + i * p->b_step[axis];
		loops(p, axis + 1);
	}
	p->a = a;
	p->b = b;
}

void nci_matmul(struct legal *legal, struct lir *lir, struct group *group)
{
	const struct lnode *node = &legal->nodes[group->members[0].node];
	struct product *p = nci_alloc(legal->ctx, sizeof(*p));
	int64_t a_k, b_k;
	uint32_t m_dim, n_dim;

	lir->tag = node->origin;
	p->k = node->k;
	split_k(node, group, &a_k, &b_k);
	nci_collapse(legal, group);
	eval_init(&p->ev, legal, lir, group);
	p->a = operand(&p->ev, &group->members[0].src[0], a_k);
	p->b = operand(&p->ev, &group->members[0].src[1], b_k);
	m_dim = own_dim(group, 0);
	n_dim = own_dim(group, 1);
	if (contiguous(group, m_dim) && !contiguous(group, n_dim)) {
		uint32_t t = m_dim;

		m_dim = n_dim;
		n_dim = t;
		swap_operands(p, group);
	}
	make_plan(p, group, m_dim, n_dim);
	if (m_dim != LIR_NONE)
		p->a.x_step = group->members[0].src[0].stride[m_dim];
	if (n_dim != LIR_NONE)
		p->b.x_step = group->members[0].src[1].stride[n_dim];
	for (uint32_t i = 0; i < p->plan.n_axes; i++) {
		p->a_step[i] = group->members[0].src[0].stride[i];
		p->b_step[i] = group->members[0].src[1].stride[i];
	}
	eval_set_plan(&p->ev, &p->plan);
	choose_blocks(p);
	loops(p, 0);
}
