/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop over the tiles of a group of elementwise operations and reductions.
 * A reduction that no tile holds whole is accumulated over the tiles, in the
 * compute type and in a fixed order; the group's late members follow once it is
 * complete.
 */
#include <string.h>

#include "panel.h"

uint32_t eval_reduce_alu(const struct lnode *node)
{
	bool is_bool = node->dtype == NC_BOOL;

	switch (node->op) {
	case NC_REDUCE_SUM:
		return is_bool ? ISA_MAX : ISA_ADD;
	case NC_REDUCE_PROD:
		return is_bool ? ISA_MIN : ISA_MULT;
	case NC_REDUCE_MAX:
		return ISA_MAX;
	default:
		return ISA_MIN;
	}
}

static uint32_t compute_dtype(uint32_t ct)
{
	switch (ct) {
	case ISA_CT_F32:
		return ISA_FP32;
	case ISA_CT_I32:
		return ISA_INT32;
	case ISA_CT_I64:
		return ISA_INT64;
	default:
		return ISA_FP64;
	}
}

/* Is the reduction a sum of whole rows that the scalar engine, less busy so far, may make? */
static bool on_scalar(const struct eval *ev, uint32_t ct, uint32_t alu, const struct ltile *to)
{
	uint32_t n = 1;

	for (uint32_t i = 0; i < ISA_TILE_DIMS; i++)
		n *= to->count[i];
	return ct == ISA_CT_F32 && alu == ISA_ADD && to->dtype == ISA_FP32 && n == 1 &&
	       ev->cost[ISA_SCALAR] < ev->cost[ISA_VECTOR];
}

/* Reduces the free axes of value src into buf, elements of dtype. */
static void reduce_tile(struct eval *ev, const struct lnode *node, uint32_t src, uint32_t buf,
			uint32_t dtype)
{
	uint32_t ct = nci_compute_type(node->dtype), alu = eval_reduce_alu(node);
	uint32_t engine = eval_alu_engine(ct, alu), n_axes;
	struct ltile from, to;
	struct lop *op;

	n_axes = eval_reduce_tiles(ev, src, &from, &to);
	to.buf = buf;
	to.dtype = (uint8_t)dtype;
	if (!n_axes) {
		lir_copy(ev->lir, engine, ct, to, from);
		return;
	}
	if (on_scalar(ev, ct, alu, &to)) {
		eval_emit_row_sum(ev, to, from);
		return;
	}
	op = lir_op(ev->lir, engine, ISA_REDUCE);
	op->compute_type = (uint8_t)ct;
	op->op0 = (uint8_t)alu;
	op->n_axes = (uint8_t)n_axes;
	op->dst = to;
	op->src0 = from;
	eval_spend(ev, engine, eval_elems(ev, &ev->vals[src]));
}

void eval_emit_row_reduce(struct eval *ev, uint32_t member)
{
	const struct lnode *node = &ev->legal->nodes[ev->group->members[member].node];

	eval_need(ev, ev->src[member][0]);
	eval_new_tile(ev, member);
	reduce_tile(ev, node, ev->src[member][0], ev->vals[member].buf, ev->vals[member].dtype);
}

/* --- reductions over tiles ------------------------------------------------------------------ */

struct acc {
	uint32_t buf; /* LIR_NONE: nothing accumulated yet */
	uint32_t dtype; /* compute type's */
	uint32_t elems; /* a partition */
};

struct loop {
	struct eval *ev;
	const struct plans *plans;
	struct acc *accs; /* of each member that is a reduction */
	uint32_t nparts; /* partitions that hold something */
	uint32_t ones; /* column of 1.0, LIR_NONE: not made yet */
};

/* Elements a partition of the reduction's result. */
static uint32_t kept_elems(const struct eval *ev, uint32_t member)
{
	return (uint32_t)eval_elems(ev, &ev->vals[member]);
}

static void accumulate(struct loop *l, uint32_t member)
{
	struct eval *ev = l->ev;
	const struct lnode *node = &ev->legal->nodes[ev->group->members[member].node];
	uint32_t ct = nci_compute_type(node->dtype), alu = eval_reduce_alu(node);
	uint32_t src = ev->src[member][0], part;
	struct acc *acc = &l->accs[member];
	struct ltile a, b;

	eval_need(ev, src);
	ev->lir->tag = node->origin;
	if (acc->buf != LIR_NONE && !eval_reduce_tiles(ev, src, &b, &a)) {
		a.buf = acc->buf;
		a.dtype = (uint8_t)acc->dtype;
		lir_tensor_tensor(ev->lir, eval_pair_engine(ev, ct, alu, acc->elems), ct, alu, a, a,
				  b);
		return;
	}
	acc->dtype = compute_dtype(ct);
	acc->elems = kept_elems(ev, member);
	if (src < ev->group->n_members && ev->vals[src].sum == member) {
		part = ev->vals[member].buf;
	} else {
		part = lir_buf(ev->lir, ISA_SPACE_SBUF,
			       (uint64_t)acc->elems * isa_dtype_bytes(acc->dtype));
		reduce_tile(ev, node, src, part, acc->dtype);
	}
	if (acc->buf == LIR_NONE) {
		acc->buf = part;
		return;
	}
	a = lir_row(acc->buf, acc->dtype, ev->nparts, 0, acc->elems);
	b = lir_row(part, acc->dtype, ev->nparts, 0, acc->elems);
	lir_tensor_tensor(ev->lir, eval_alu_engine(ct, alu), ct, alu, a, a, b);
}

/*
 * Sum over partitions as a product with ones: gpsimd would take the partitions one after
 * the other.
 */
static void sum_partitions(struct loop *l, struct ltile to, const struct acc *acc)
{
	const uint32_t columns = ISA_PSUM_BANK_BYTES / 4, one = 0x3f800000;
	struct lir *lir = l->ev->lir;

	if (l->ones == LIR_NONE) {
		l->ones = lir_buf(lir, ISA_SPACE_SBUF, 4);
		lir_memset(lir, ISA_VECTOR, ISA_CT_F32,
			   lir_row(l->ones, ISA_FP32, ISA_PARTITIONS, 0, 1), one);
	}
	panel_stationary(lir, lir_row(l->ones, ISA_FP32, l->nparts, 0, 1));
	for (uint32_t i = 0; i < acc->elems; i += columns) {
		uint32_t n = acc->elems - i < columns ? acc->elems - i : columns;
		uint32_t bank = lir_buf(lir, ISA_SPACE_PSUM, (uint64_t)n * 4);

		panel_matmul(lir, lir_row(bank, ISA_FP32, 1, 0, n),
			     lir_row(acc->buf, acc->dtype, l->nparts, i * 4, n), false);
		panel_evict(l->ev, ISA_CT_F32,
			    lir_row(to.buf, to.dtype, 1, i * isa_dtype_bytes(to.dtype), n),
			    lir_row(bank, ISA_FP32, 1, 0, n), n);
	}
}

/* The accumulated result becomes the member's value. */
static void finish(struct loop *l, uint32_t member)
{
	struct eval *ev = l->ev;
	const struct lnode *node = &ev->legal->nodes[ev->group->members[member].node];
	uint32_t ct = nci_compute_type(node->dtype),
		 engine = eval_alu_engine(ct, eval_reduce_alu(node));
	struct acc *acc = &l->accs[member];
	struct ltile from = lir_row(acc->buf, acc->dtype, l->nparts, 0, acc->elems), to;
	struct lop *op;

	ev->lir->tag = node->origin;
	if (!l->plans->parts_reduced && acc->dtype == ev->vals[member].dtype) {
		eval_preset(ev, member, acc->buf, 0, acc->dtype);
	} else {
		eval_new_tile(ev, member);
		to = lir_row(ev->vals[member].buf, ev->vals[member].dtype, ev->nparts, 0,
			     acc->elems);
		if (l->plans->parts_reduced && l->nparts > 1 && ct == ISA_CT_F32 &&
		    eval_reduce_alu(node) == ISA_ADD) {
			sum_partitions(l, to, acc);
		} else if (l->plans->parts_reduced && l->nparts > 1) {
			op = lir_op(ev->lir, ISA_GPSIMD, ISA_PARTITION_REDUCE);
			op->compute_type = (uint8_t)ct;
			op->op0 = (uint8_t)eval_reduce_alu(node);
			op->dst = to;
			op->src0 = from;
		} else {
			lir_copy(ev->lir, engine, ct, to, from);
		}
	}
	acc->buf = LIR_NONE;
}

static void tile(struct loop *l)
{
	struct eval *ev = l->ev;

	if (ev->group->row || !ev->group->axes)
		ev->lir->tile++;
	eval_set_tile(ev);
	eval_members(ev, false);
	if (ev->nparts > l->nparts)
		l->nparts = ev->nparts;
	for (uint32_t i = 0; i < ev->group->n_members && !ev->group->row; i++)
		if (ev->legal->nodes[ev->group->members[i].node].kind == N_REDUCE)
			accumulate(l, i);
	eval_stores(ev, false);
}

static void results(struct loop *l)
{
	struct eval *ev = l->ev;

	eval_set_tile(ev);
	if (l->plans->parts_reduced)
		ev->nparts = 1;
	for (uint32_t i = 0; i < ev->group->n_members; i++)
		if (ev->legal->nodes[ev->group->members[i].node].kind == N_REDUCE)
			finish(l, i);
	eval_members(ev, true);
	eval_stores(ev, true);
	l->nparts = 0;
}

/* Loops over the blocks of the axes in order; kept ones first, so "at" splits them. */
static void walk(struct loop *l, uint32_t level, bool kept_only, void (*body)(struct loop *l))
{
	struct eval *ev = l->ev;
	const struct plan *plan = ev->plan;
	const struct axis *axis;
	uint32_t a;

	while (level < plan->n_axes && kept_only && plan->axes[plan->order[level]].reduced)
		level++;
	if (level == plan->n_axes) {
		body(l);
		return;
	}
	a = plan->order[level];
	axis = &plan->axes[a];
	for (int64_t i = 0; i < axis->count; i += axis->block) {
		ev->start[a] = i;
		ev->len[a] = nci_min(axis->block, axis->count - i);
		walk(l, level + 1, kept_only, body);
	}
}

/* All reduced tiles of one place of the kept axes, then the results. */
static void reduce_place(struct loop *l)
{
	struct eval *ev = l->ev;
	uint32_t n_kept = 0;

	while (n_kept < ev->plan->n_axes && !ev->plan->axes[ev->plan->order[n_kept]].reduced)
		n_kept++;
	walk(l, n_kept, false, tile);
	if (!l->plans->split_reduced)
		results(l);
}

/*
 * A reduced dim in two plans: for each place of the kept axes, which are the
 * same in both, the tiles of the one and then of the other.
 */
static void reduce_split(struct loop *l)
{
	struct eval *ev = l->ev;
	const struct plan *first = &l->plans->plan[0], *second = &l->plans->plan[1];
	int64_t start[AXES_MAX], len[AXES_MAX];

	reduce_place(l);
	memcpy(start, ev->start, sizeof(start));
	memcpy(len, ev->len, sizeof(len));
	eval_set_plan(ev, second);
	for (uint32_t a = 0; a < second->n_axes; a++)
		for (uint32_t b = 0; b < first->n_axes; b++)
			if (!second->axes[a].reduced && !first->axes[b].reduced &&
			    second->axes[a].dim == first->axes[b].dim) {
				ev->start[a] = start[b];
				ev->len[a] = len[b];
			}
	reduce_place(l);
	results(l);
	eval_set_plan(ev, first);
	memcpy(ev->start, start, sizeof(start));
	memcpy(ev->len, len, sizeof(len));
}

void nci_loop(struct legal *legal, struct lir *lir, struct group *group)
{
	struct plans plans;
	struct eval ev;
	struct loop l = { .ev = &ev, .plans = &plans, .ones = LIR_NONE };

	nci_collapse(legal, group);
	nci_plan(legal, group, &plans);
	eval_init(&ev, legal, lir, group);
	l.accs = nci_alloc(legal->ctx, group->n_members * sizeof(*l.accs));
	for (uint32_t i = 0; i < group->n_members; i++)
		l.accs[i].buf = LIR_NONE;
	for (uint32_t i = 0; i < plans.n; i++) {
		eval_set_plan(&ev, &plans.plan[i]);
		if (group->row || !group->axes)
			walk(&l, 0, false, tile);
		else if (!plans.split_reduced)
			walk(&l, 0, true, reduce_place);
		else
			walk(&l, 0, true, reduce_split);
		if (plans.split_reduced)
			break;
	}
	lir->tile = 0;
}
