/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of the scalar engine. Its instruction is f(x * scale + bias) with the sum of the row on
 * the side, so one of them may make three members of a group: an addition or product before the
 * function, the function, and a sum over the row behind it. What it gives is to the bit what three
 * instructions would: scaling and adding are rounded each, and it adds in the order of REDUCE.
 */
#include <string.h>

#include "eval.h"

#define F32_ONE	 0x3f800000u
#define F32_SIGN 0x80000000u
/* x + -0 is x; +0 would turn -0 into +0, and its reciprocal into the wrong infinity. */
#define F32_MINUS_ZERO F32_SIGN

/* Only what is one activation; the others are in elementwise.c. */
static const int8_t act_of[NC_UNARY_OPS] = {
	[NC_NEG] = -1,
	[NC_ABS] = ISA_ACT_ABS,
	[NC_SIGN] = ISA_ACT_SIGN,
	[NC_SQUARE] = ISA_ACT_SQUARE,
	[NC_NOT] = -1,
	[NC_EXP] = ISA_ACT_EXP,
	[NC_LN] = ISA_ACT_LN,
	[NC_SQRT] = ISA_ACT_SQRT,
	[NC_RSQRT] = ISA_ACT_RSQRT,
	[NC_RECIPROCAL] = ISA_ACT_RECIPROCAL,
	[NC_SIGMOID] = ISA_ACT_SIGMOID,
	[NC_TANH] = ISA_ACT_TANH,
	[NC_RELU] = ISA_ACT_RELU,
	[NC_GELU] = ISA_ACT_GELU,
	[NC_GELU_TANH] = ISA_ACT_GELU_TANH,
	[NC_SILU] = ISA_ACT_SILU,
	[NC_SOFTPLUS] = ISA_ACT_SOFTPLUS,
	[NC_ERF] = ISA_ACT_ERF,
	[NC_SIN] = ISA_ACT_SIN,
	[NC_COS] = ISA_ACT_COS,
	[NC_ARCTAN] = ISA_ACT_ARCTAN,
	[NC_LOG1P] = ISA_ACT_LOG1P,
	[NC_EXPM1] = ISA_ACT_EXPM1,
	[NC_MISH] = ISA_ACT_MISH,
	[NC_FLOOR] = ISA_ACT_FLOOR,
	[NC_CEIL] = ISA_ACT_CEIL,
	[NC_ROUND] = ISA_ACT_ROUND,
	[NC_TRUNC] = ISA_ACT_TRUNC,
	[NC_DGELU] = ISA_ACT_DGELU,
	[NC_DGELU_TANH] = ISA_ACT_DGELU_TANH,
	[NC_DSILU] = ISA_ACT_DSILU,
};

bool eval_is_activation(const struct eval *ev, uint32_t member)
{
	const struct lnode *node = &ev->legal->nodes[ev->vals[member].node];

	if (node->kind != N_UNARY || nci_compute_type(node->dtype) != ISA_CT_F32 ||
	    act_of[node->op] < 0)
		return false;
	/* max(x op s, 0) is one instruction of any engine. */
	return node->op != NC_RELU || ev->vals[member].takes < 0;
}

bool eval_activation_takes(const struct eval *ev, uint32_t member, uint32_t inner)
{
	const struct lnode *node = &ev->legal->nodes[ev->vals[inner].node];

	return eval_is_activation(ev, member) && node->kind == N_BINARY && node->dtype == NC_FP32 &&
	       (node->op == NC_ADD || node->op == NC_SUB || node->op == NC_MUL);
}

/* --- sums --------------------------------------------------------------------------------- */

/*
 * Does member r add up all that the tile's row of x has, to one element a partition? x is to vary
 * along whatever is reduced: each tile of the sum then has a tile of x of its own.
 */
static bool sums_row(const struct eval *ev, uint32_t r, uint32_t x)
{
	const struct lnode *sum = &ev->legal->nodes[ev->vals[r].node];

	if (sum->kind != N_REDUCE || sum->op != NC_REDUCE_SUM || sum->dtype != NC_FP32 ||
	    ev->src[r][0] != x || ev->legal->nodes[ev->vals[x].node].dtype != NC_FP32)
		return false;
	for (uint32_t a = 0; a < ev->plan->n_axes; a++) {
		bool reduced = ev->plan->axes[a].reduced, varies = ev->vals[x].varies[a];

		if (reduced ? !varies : varies && ev->plan->axes[a].role == AXIS_FREE)
			return false;
	}
	return true;
}

void eval_find_sums(struct eval *ev, const uint32_t *uses)
{
	uint32_t n = ev->group->n_members;

	for (uint32_t i = 0; i < n; i++) {
		ev->vals[i].sum = LIR_NONE;
		ev->vals[i].unread = false;
		if (ev->vals[i].folded || !eval_is_activation(ev, i))
			continue;
		for (uint32_t r = i + 1; r < n && ev->vals[i].sum == LIR_NONE; r++)
			if (sums_row(ev, r, i))
				ev->vals[i].sum = r;
		/* Of a row group's nothing but the sum is ever read then: what the instruction
		 * writes beside it may be as small as it gets. */
		if (ev->group->row && ev->vals[i].sum != LIR_NONE && uses[i] == 1 &&
		    !eval_has_store(ev, i)) {
			ev->vals[i].dtype = ISA_BF16;
			ev->vals[i].unread = true;
		}
	}
}

/* --- emission ----------------------------------------------------------------------------- */

/* A column with the negative of another. */
static struct lcol negative(struct eval *ev, uint32_t v)
{
	struct lcol col = eval_column(ev, v);
	struct lop *op = lir_op(ev->lir, ISA_VECTOR, ISA_TENSOR_SCALAR);

	op->compute_type = ISA_CT_F32;
	op->op0 = ISA_MULT;
	op->imm0 = F32_ONE | F32_SIGN;
	op->src0 = lir_row(col.buf, col.dtype, ev->nparts, col.offset, 1);
	col.buf = lir_buf(ev->lir, ISA_SPACE_SBUF, 4);
	col.offset = 0;
	col.dtype = ISA_FP32;
	op->dst = lir_row(col.buf, col.dtype, ev->nparts, 0, 1);
	return col;
}

/* What an activation applies first: (x * imm0) + imm1, columns in place of either, whose immediate is
 * zero then. */
struct affine {
	uint64_t imm0, imm1;
	uint8_t flags;
	struct lcol vec0, vec1;
};

/* Scale and bias that do what a folded member does: x op s, or s op x if reversed. */
static void fold(struct eval *ev, uint32_t inner, bool reversed, struct affine *how)
{
	uint32_t op = ev->legal->nodes[ev->vals[inner].node].op, s = ev->src[inner][!reversed];
	bool constant = eval_is_const(ev, s), minus = op == NC_SUB && !reversed;

	if (op == NC_MUL) {
		how->imm0 = constant ? eval_const_bits(ev, s) : 0;
		how->flags = constant ? 0 : ISA_F_VEC0;
		if (!constant)
			how->vec0 = eval_column(ev, s);
		return;
	}
	/* s - x is x * -1 + s. */
	if (op == NC_SUB && reversed)
		how->imm0 ^= F32_SIGN;
	how->imm1 = constant ? eval_const_bits(ev, s) ^ (minus ? F32_SIGN : 0) : 0;
	how->flags = constant ? 0 : ISA_F_VEC1;
	if (!constant)
		how->vec1 = minus ? negative(ev, s) : eval_column(ev, s);
}

/* Operand of the activation, after what it takes over from another member. */
static uint32_t take(struct eval *ev, uint32_t member, struct affine *how)
{
	uint32_t inner = ev->src[member][0], x, s;
	bool reversed;

	*how = (struct affine){ .imm0 = F32_ONE, .imm1 = F32_MINUS_ZERO };
	if (ev->vals[member].takes < 0) {
		eval_need(ev, inner);
		return inner;
	}
	reversed = eval_is_scalar(ev, ev->src[inner][0]);
	x = ev->src[inner][reversed];
	s = ev->src[inner][!reversed];
	eval_need(ev, x);
	if (!eval_is_const(ev, s))
		eval_need(ev, s);
	fold(ev, inner, reversed, how);
	return x;
}

void eval_emit_activation(struct eval *ev, uint32_t member)
{
	const struct val *val = &ev->vals[member];
	struct affine how;
	uint32_t pair[2] = { member, take(ev, member, &how) };
	struct ltile t[2];
	struct lop *op;

	eval_new_tile(ev, member);
	eval_tiles(ev, 2, pair, t);
	if (val->sum != LIR_NONE)
		eval_new_tile(ev, val->sum);
	op = lir_op(ev->lir, ISA_SCALAR, ISA_ACTIVATION);
	op->compute_type = ISA_CT_F32;
	op->op0 = (uint8_t)act_of[ev->legal->nodes[val->node].op];
	op->flags = how.flags;
	op->imm0 = how.imm0;
	op->imm1 = how.imm1;
	if (how.flags & ISA_F_VEC0)
		op->vec0 = how.vec0;
	if (how.flags & ISA_F_VEC1)
		op->vec1 = how.vec1;
	op->dst = t[0];
	op->src0 = t[1];
	if (val->sum != LIR_NONE) {
		op->flags |= ISA_F_ACCUM;
		op->src1 = lir_row(ev->vals[val->sum].buf, ISA_FP32, ev->nparts, 0, 1);
	}
	eval_spend(ev, ISA_SCALAR, eval_elems(ev, val));
}

void eval_emit_row_sum(struct eval *ev, struct ltile to, struct ltile from)
{
	struct ltile rest = from; /* what the function gives, which nobody wants */
	int64_t n = 1;
	struct lop *op;

	for (uint32_t i = ISA_TILE_DIMS; i-- > 0;) {
		rest.step[i] = (int32_t)n;
		n *= from.count[i];
	}
	rest.dtype = ISA_BF16;
	rest.offset = 0;
	rest.buf = eval_rest(ev, (uint64_t)n * isa_dtype_bytes(rest.dtype));
	op = lir_op(ev->lir, ISA_SCALAR, ISA_ACTIVATION);
	op->compute_type = ISA_CT_F32;
	op->op0 = ISA_ACT_COPY;
	op->flags = ISA_F_ACCUM;
	op->imm0 = F32_ONE;
	op->imm1 = F32_MINUS_ZERO;
	op->dst = rest;
	op->src0 = from;
	op->src1 = to;
	eval_spend(ev, ISA_SCALAR, n);
}
