/* SPDX-License-Identifier: Apache-2.0 */
/* One member of a group on the tile at hand: which instructions, on which engine. */
#include <string.h>

#include "eval.h"

/* Below this many elements a partition, changing engines costs more than it gives. */
#define BALANCE_ELEMS 256

static const uint8_t alu_of[NC_BINARY_OPS] = {
	[NC_ADD] = ISA_ADD,	[NC_SUB] = ISA_SUB,  [NC_MUL] = ISA_MULT,    [NC_DIV] = ISA_DIV,
	[NC_MAX] = ISA_MAX,	[NC_MIN] = ISA_MIN,  [NC_POW] = ISA_POW,     [NC_MOD] = ISA_MOD,
	[NC_EQ] = ISA_IS_EQ,	[NC_NE] = ISA_IS_NE, [NC_LT] = ISA_IS_LT,    [NC_LE] = ISA_IS_LE,
	[NC_GT] = ISA_IS_GT,	[NC_GE] = ISA_IS_GE, [NC_AND] = ISA_BIT_AND, [NC_OR] = ISA_BIT_OR,
	[NC_XOR] = ISA_BIT_XOR, [NC_SHL] = ISA_SHL,  [NC_SHR] = ISA_ASR,     [NC_LSR] = ISA_SHR,
};

static uint64_t imm_of(uint32_t ct, double value)
{
	float f = (float)value;
	uint64_t bits = 0;

	if (ct == ISA_CT_F32)
		memcpy(&bits, &f, sizeof(f));
	else if (ct == ISA_CT_F64)
		memcpy(&bits, &value, sizeof(value));
	else
		bits = (uint64_t)(int64_t)value;
	return bits;
}

uint32_t eval_alu_engine(uint32_t ct, uint32_t alu)
{
	if (ct == ISA_CT_F32)
		return ISA_VECTOR;
	if (ct != ISA_CT_I32)
		return ISA_GPSIMD;
	switch (alu) {
	case ISA_ADD:
	case ISA_SUB:
	case ISA_MULT:
	case ISA_DIV:
	case ISA_POW:
	case ISA_MOD:
		return ISA_GPSIMD;
	default:
		return ISA_VECTOR;
	}
}

/* Engine for one input and scalars: scalar shares the fp32 work with vector. */
static uint32_t one_input_engine(struct eval *ev, uint32_t ct, uint32_t alu, uint32_t member)
{
	int64_t n = eval_elems(ev, &ev->vals[member]);
	uint32_t engine = eval_alu_engine(ct, alu);

	if (engine == ISA_VECTOR && ct == ISA_CT_F32 && n >= BALANCE_ELEMS &&
	    ev->cost[ISA_SCALAR] < ev->cost[ISA_VECTOR])
		engine = ISA_SCALAR;
	eval_spend(ev, engine, n);
	return engine;
}

uint32_t eval_pair_engine(struct eval *ev, uint32_t ct, uint32_t alu, int64_t elems)
{
	uint32_t engine = eval_alu_engine(ct, alu);

	if (engine == ISA_VECTOR && ct == ISA_CT_F32 && ev->group->along &&
	    elems >= BALANCE_ELEMS && ev->cost[ISA_GPSIMD] < ev->cost[ISA_VECTOR])
		engine = ISA_GPSIMD;
	eval_spend(ev, engine, elems);
	return engine;
}

/* Makes operand j a tile or column; constants stay immediates if imm_ok. */
static uint32_t need(struct eval *ev, uint32_t member, uint32_t j, bool imm_ok)
{
	uint32_t v = ev->src[member][j];

	if (!imm_ok || !eval_is_const(ev, v))
		eval_need(ev, v);
	return v;
}

struct lcol eval_column(const struct eval *ev, uint32_t v)
{
	struct lcol col = { .buf = ev->vals[v].buf,
			    .offset = ev->vals[v].offset,
			    .dtype = ev->vals[v].dtype };

	return col;
}

uint64_t eval_const_bits(const struct eval *ev, uint32_t v)
{
	return ev->legal->nodes[ev->vals[v].node].bits;
}

/* dst = src op imm, dst the member's new tile. */
static struct lop *tensor_imm(struct eval *ev, uint32_t member, uint32_t ct, uint32_t alu,
			      uint32_t src, uint64_t imm)
{
	uint32_t engine = one_input_engine(ev, ct, alu, member), pair[2] = { member, src };
	struct ltile t[2];
	struct lop *op;

	eval_tiles(ev, 2, pair, t);
	op = lir_op(ev->lir, engine, ISA_TENSOR_SCALAR);
	op->compute_type = (uint8_t)ct;
	op->op0 = (uint8_t)alu;
	op->dst = t[0];
	op->src0 = t[1];
	op->imm0 = imm;
	return op;
}

/* --- binary ------------------------------------------------------------------------------- */

static uint32_t binary_alu(uint32_t op, nc_dtype dtype)
{
	if (dtype == NC_BOOL && op == NC_ADD)
		return ISA_MAX;
	if (dtype == NC_BOOL && op == NC_MUL)
		return ISA_MIN;
	return alu_of[op];
}

/* One operand is a constant or the same along the row: s. */
static void emit_tensor_scalar(struct eval *ev, uint32_t member, uint32_t ct, uint32_t alu,
			       uint32_t x, uint32_t s, bool reversed)
{
	struct lop *op = tensor_imm(ev, member, ct, alu, x, 0);

	if (reversed)
		op->flags |= ISA_F_REV0;
	if (eval_is_const(ev, s)) {
		op->imm0 = eval_const_bits(ev, s);
	} else {
		op->flags |= ISA_F_VEC0;
		op->vec0 = eval_column(ev, s);
	}
}

/* --- two members in one instruction --------------------------------------------------------- */

/* Second operation of a pair, after the one that its operand takes. */
static uint32_t second_alu(const struct lnode *node)
{
	if (node->kind == N_UNARY)
		return node->op == NC_RELU ? ISA_MAX : ISA_MULT;
	return binary_alu(node->op, node->dtype);
}

bool eval_is_scalar(const struct eval *ev, uint32_t v)
{
	for (uint32_t a = 0; a < ev->plan->n_axes; a++)
		if (ev->plan->axes[a].role == AXIS_FREE && ev->vals[v].varies[a])
			return false;
	return true;
}

bool eval_has_store(const struct eval *ev, uint32_t member)
{
	for (uint32_t i = 0; i < ev->group->n_stores; i++)
		if (ev->group->stores[i].node == ev->vals[member].node)
			return true;
	return false;
}

/* x op scalar or scalar op x, exact in its dtype, so that no rounding is lost when it is folded. */
static bool may_fold(const struct eval *ev, uint32_t member)
{
	const struct lnode *node = &ev->legal->nodes[ev->vals[member].node];
	uint32_t a = ev->src[member][0], b = ev->src[member][1];

	if (node->kind != N_BINARY || nci_is_compare(node->op) || eval_has_store(ev, member) ||
	    ev->vals[member].takes >= 0)
		return false;
	if (node->dtype != NC_FP32 && node->dtype != NC_FP64 && node->dtype != NC_INT32 &&
	    node->dtype != NC_INT64)
		return false;
	return eval_is_scalar(ev, a) != eval_is_scalar(ev, b);
}

/* Can the member's instruction apply an operation to its operand j first? */
static bool may_take(const struct eval *ev, uint32_t member, uint32_t j)
{
	const struct lnode *node = &ev->legal->nodes[ev->vals[member].node];
	uint32_t x = ev->src[member][j];

	if (node->kind == N_UNARY && node->op != NC_RELU && node->op != NC_NEG &&
	    !eval_activation_takes(ev, member, x))
		return false;
	if (node->kind != N_UNARY && node->kind != N_BINARY)
		return false;
	if (node->kind == N_BINARY && ev->src[member][0] == ev->src[member][1])
		return false;
	return !memcmp(ev->vals[x].varies, ev->vals[member].varies, sizeof(ev->vals[x].varies)) &&
	       ev->group->members[x].late == ev->group->members[member].late;
}

void eval_find_folds(struct eval *ev)
{
	uint32_t n = ev->group->n_members;
	uint32_t *uses = nci_alloc(ev->ctx, ev->n_vals * sizeof(*uses));

	for (uint32_t i = 0; i < n; i++) {
		ev->vals[i].folded = false;
		ev->vals[i].takes = -1;
		for (uint32_t j = 0; j < ev->legal->nodes[ev->vals[i].node].n_src; j++)
			uses[ev->src[i][j]]++;
	}
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t j = 0; j < ev->legal->nodes[ev->vals[i].node].n_src; j++) {
			uint32_t x = ev->src[i][j];

			if (x >= n || uses[x] != 1 || ev->vals[i].takes >= 0 || !may_fold(ev, x) ||
			    !may_take(ev, i, j))
				continue;
			ev->vals[x].folded = true;
			ev->vals[i].takes = (int)j;
		}
	eval_find_sums(ev, uses);
}

static void set_scalar(const struct eval *ev, struct lop *op, uint32_t v, bool second)
{
	if (eval_is_const(ev, v)) {
		*(second ? &op->imm1 : &op->imm0) = eval_const_bits(ev, v);
		return;
	}
	op->flags |= second ? ISA_F_VEC1 : ISA_F_VEC0;
	*(second ? &op->vec1 : &op->vec0) = eval_column(ev, v);
}

/* (x op0 s0) op1 s1, or op1 another tile. */
static void emit_pair(struct eval *ev, uint32_t member, const struct lnode *node)
{
	uint32_t inner = ev->src[member][ev->vals[member].takes], other = LIR_NONE;
	const struct lnode *first = &ev->legal->nodes[ev->vals[inner].node];
	bool reversed = eval_is_scalar(ev, ev->src[inner][0]), wide = false;
	uint32_t x = need(ev, inner, reversed, false), s = need(ev, inner, !reversed, true);
	uint32_t ct = nci_compute_type(first->dtype), op0 = binary_alu(first->op, first->dtype);
	uint32_t op1 = second_alu(node), v[3], engine;
	struct ltile t[3];
	struct lop *op;

	if (node->kind == N_BINARY) {
		other = need(ev, member, !ev->vals[member].takes, true);
		wide = !eval_is_scalar(ev, other);
	}
	eval_new_tile(ev, member);
	v[0] = member;
	v[1] = x;
	v[2] = other;
	eval_tiles(ev, wide ? 3 : 2, v, t);
	engine = wide ? eval_alu_engine(ct, op0) : one_input_engine(ev, ct, op0, member);
	if (eval_alu_engine(ct, op1) == ISA_GPSIMD)
		engine = ISA_GPSIMD;
	op = lir_op(ev->lir, engine, wide ? ISA_SCALAR_TENSOR_TENSOR : ISA_TENSOR_SCALAR);
	op->compute_type = (uint8_t)ct;
	op->op0 = (uint8_t)op0;
	op->op1 = (uint8_t)op1;
	op->dst = t[0];
	op->src0 = t[1];
	op->flags = reversed ? ISA_F_REV0 : 0;
	set_scalar(ev, op, s, false);
	if (node->kind == N_BINARY && ev->vals[member].takes == 1)
		op->flags |= ISA_F_REV1;
	if (wide)
		op->src1 = t[2];
	else if (node->kind == N_BINARY)
		set_scalar(ev, op, other, true);
	else
		op->imm1 = imm_of(ct, node->op == NC_RELU ? 0 : -1);
	if (wide)
		eval_spend(ev, engine, eval_elems(ev, &ev->vals[member]));
}

static void emit_binary(struct eval *ev, uint32_t member, const struct lnode *node)
{
	nc_dtype dtype = ev->legal->nodes[node->src[0].node].dtype;
	uint32_t ct = nci_compute_type(dtype), alu = binary_alu(node->op, dtype), engine;
	uint32_t a = need(ev, member, 0, !eval_is_const(ev, ev->src[member][1]));
	uint32_t b = need(ev, member, 1, true);
	uint32_t v[3] = { member, a, b };
	struct ltile t[3];
	bool wide;

	eval_new_tile(ev, member);
	wide = !eval_is_column(ev, member);
	if (eval_is_const(ev, b) || (wide && eval_is_column(ev, b) && !eval_is_const(ev, a))) {
		emit_tensor_scalar(ev, member, ct, alu, a, b, false);
		return;
	}
	if (eval_is_const(ev, a) || (wide && eval_is_column(ev, a))) {
		emit_tensor_scalar(ev, member, ct, alu, b, a, true);
		return;
	}
	eval_tiles(ev, 3, v, t);
	engine = eval_pair_engine(ev, ct, alu, eval_elems(ev, &ev->vals[member]));
	lir_tensor_tensor(ev->lir, engine, ct, alu, t[0], t[1], t[2]);
}

/* --- unary -------------------------------------------------------------------------------- */

/* |x| = max(-x, x) of integers. */
static void emit_int_abs(struct eval *ev, uint32_t member, uint32_t ct, uint32_t x)
{
	uint32_t v[3] = { member, x, x };
	struct ltile t[3];
	struct lop *op;

	eval_tiles(ev, 3, v, t);
	op = lir_op(ev->lir, ISA_GPSIMD, ISA_SCALAR_TENSOR_TENSOR);
	op->compute_type = (uint8_t)ct;
	op->op0 = ISA_MULT;
	op->op1 = ISA_MAX;
	op->imm0 = imm_of(ct, -1);
	op->dst = t[0];
	op->src0 = t[1];
	op->src1 = t[2];
}

/* The sign bit of a double goes as a bit of an integer. */
static void emit_f64_abs(struct eval *ev, uint32_t member, uint32_t x)
{
	struct lop *op = tensor_imm(ev, member, ISA_CT_I64, ISA_BIT_AND, x, INT64_MAX);

	op->dst.dtype = ISA_INT64;
	op->src0.dtype = ISA_INT64;
}

/* (x > 0) - (x < 0) */
static void emit_f64_sign(struct eval *ev, uint32_t member, uint32_t x)
{
	uint32_t v[3] = { member, x, member };
	struct ltile t[3];
	struct lop *op;

	tensor_imm(ev, member, ISA_CT_F64, ISA_IS_GT, x, 0);
	eval_tiles(ev, 3, v, t);
	op = lir_op(ev->lir, ISA_GPSIMD, ISA_SCALAR_TENSOR_TENSOR);
	op->compute_type = ISA_CT_F64;
	op->op0 = ISA_IS_LT;
	op->op1 = ISA_SUB;
	op->flags = ISA_F_REV1;
	op->dst = t[0];
	op->src0 = t[1];
	op->src1 = t[2];
}

static void emit_square(struct eval *ev, uint32_t member, uint32_t ct, uint32_t x)
{
	uint32_t v[3] = { member, x, x };
	struct ltile t[3];

	eval_tiles(ev, 3, v, t);
	lir_tensor_tensor(ev->lir, eval_alu_engine(ct, ISA_MULT), ct, ISA_MULT, t[0], t[1], t[2]);
}

/* Integers, bool and fp64, which have no activation functions. */
static void emit_other_unary(struct eval *ev, uint32_t member, const struct lnode *node, uint32_t x)
{
	uint32_t ct = nci_compute_type(node->dtype);
	struct lop *op;

	switch (node->op) {
	case NC_ABS:
		if (ct == ISA_CT_F64)
			emit_f64_abs(ev, member, x);
		else
			emit_int_abs(ev, member, ct, x);
		break;
	case NC_SIGN:
		if (ct == ISA_CT_F64) {
			emit_f64_sign(ev, member, x);
			break;
		}
		op = tensor_imm(ev, member, ct, ISA_MAX, x, imm_of(ct, -1));
		op->op1 = ISA_MIN;
		op->imm1 = imm_of(ct, 1);
		break;
	case NC_SQUARE:
		emit_square(ev, member, ct, x);
		break;
	case NC_NOT:
		if (node->dtype == NC_BOOL)
			tensor_imm(ev, member, ct, ISA_IS_EQ, x, 0);
		else
			tensor_imm(ev, member, ct, ISA_BIT_XOR, x, imm_of(ct, -1));
		break;
	case NC_RELU:
		tensor_imm(ev, member, ct, ISA_MAX, x, 0);
		break;
	default: /* NC_RECIPROCAL */
		op = tensor_imm(ev, member, ct, ISA_DIV, x, imm_of(ct, 1));
		op->flags = ISA_F_REV0;
		break;
	}
}

static void emit_unary(struct eval *ev, uint32_t member, const struct lnode *node)
{
	uint32_t ct = nci_compute_type(node->dtype), x;

	if (eval_is_activation(ev, member)) {
		eval_emit_activation(ev, member);
		return;
	}
	x = need(ev, member, 0, false);

	eval_new_tile(ev, member);
	if (node->op == NC_NEG)
		tensor_imm(ev, member, ct, ISA_MULT, x, imm_of(ct, -1));
	else
		emit_other_unary(ev, member, node, x);
}

/* --- casts and copies ------------------------------------------------------------------------ */

/* Compute type of a plain conversion: holds every value of both. */
static uint32_t convert_type(nc_dtype from, nc_dtype to)
{
	uint32_t a = nci_compute_type(from), b = nci_compute_type(to);

	if (a == ISA_CT_F32 && b == ISA_CT_I64)
		return ISA_CT_F64;
	if (a == ISA_CT_I32 && (b == ISA_CT_I64 || b == ISA_CT_F64))
		return ISA_CT_I64;
	return b == ISA_CT_F64 && a == ISA_CT_F32 ? ISA_CT_F64 : a;
}

void eval_convert(struct eval *ev, nc_dtype to, struct ltile dst, nc_dtype from, struct ltile src)
{
	uint32_t ct = convert_type(from, to);

	if (nci_isa_dtype(to) == nci_isa_dtype(from))
		ct = ISA_CT_BITS;
	lir_copy(ev->lir,
		 nci_dtype_bytes(to) == 8 || nci_dtype_bytes(from) == 8 ? ISA_GPSIMD : ISA_VECTOR,
		 ct, dst, src);
}

/* PyTorch's float to a narrow integer goes through a wide one, whose low bits are kept. */
static void emit_narrow(struct eval *ev, uint32_t member, uint32_t x, nc_dtype from, nc_dtype to)
{
	nc_dtype mid = nci_dtype_bytes(from) == 8 ? NC_INT64 : NC_INT32;
	uint32_t n = (uint32_t)eval_elems(ev, &ev->vals[member]), pair[2] = { member, x };
	struct ltile t[2], wide;

	eval_tiles(ev, 2, pair, t);
	wide = lir_row(lir_buf(ev->lir, ISA_SPACE_SBUF, (uint64_t)n * nci_dtype_bytes(mid)),
		       nci_isa_dtype(mid), ev->nparts, 0, n);
	for (uint32_t i = 0, run = 1; i < ISA_TILE_DIMS; i++) {
		wide.count[ISA_TILE_DIMS - 1 - i] = t[0].count[ISA_TILE_DIMS - 1 - i];
		wide.step[ISA_TILE_DIMS - 1 - i] = (int32_t)run;
		run *= wide.count[ISA_TILE_DIMS - 1 - i];
	}
	eval_convert(ev, mid, wide, from, t[1]);
	eval_convert(ev, to, t[0], mid, wide);
}

static void emit_cast(struct eval *ev, uint32_t member, const struct lnode *node)
{
	nc_dtype from = ev->legal->nodes[node->src[0].node].dtype, to = node->dtype;
	uint32_t x = need(ev, member, 0, false), pair[2] = { member, x }, ct, engine;
	struct ltile t[2];

	eval_new_tile(ev, member);
	if (to == NC_BOOL && from != NC_BOOL) {
		tensor_imm(ev, member, nci_compute_type(from), ISA_IS_NE, x, 0);
		return;
	}
	if (nci_is_float(from) && !nci_is_float(to) && nci_dtype_bytes(to) < 4) {
		emit_narrow(ev, member, x, from, to);
		return;
	}
	eval_tiles(ev, 2, pair, t);
	ct = convert_type(from, to);
	if (ct == ISA_CT_F32 && from != to) {
		engine = one_input_engine(ev, ct, ISA_BYPASS, member);
		lir_copy(ev->lir, engine, ct, t[0], t[1]);
		return;
	}
	eval_convert(ev, to, t[0], from, t[1]);
}

/* A copy is the operand itself, unless it is to be more: then stores repeat it. Gaps are left out, or the
 * store would move single elements. */
static void emit_alias(struct eval *ev, uint32_t member)
{
	uint32_t x = need(ev, member, 0, false), pair[2] = { member, x };
	struct val *val = &ev->vals[member], *src = &ev->vals[x];
	nc_dtype dtype = ev->legal->nodes[val->node].dtype;
	struct ltile t[2];

	if (src->gap > 1) {
		eval_new_tile(ev, member);
		eval_tiles(ev, 2, pair, t);
		eval_convert(ev, dtype, t[0], dtype, t[1]);
		return;
	}
	val->buf = src->buf;
	val->offset = src->offset;
	val->valid = true;
	val->nparts = src->nparts;
	val->full = LIR_NONE;
	memcpy(val->start, src->start, sizeof(val->start));
	memcpy(val->len, src->len, sizeof(val->len));
}

/* --- the rest ---------------------------------------------------------------------------------- */

static void emit_select(struct eval *ev, uint32_t member, const struct lnode *node)
{
	uint32_t ct = nci_compute_type(node->dtype);
	uint32_t engine = ct == ISA_CT_F32 || ct == ISA_CT_I32 ? ISA_VECTOR : ISA_GPSIMD;
	uint32_t cond = need(ev, member, 0, false), a = need(ev, member, 1, true);
	uint32_t b = need(ev, member, 2, true), v[3] = { member, cond, a }, w[2] = { member, b };
	struct ltile t[3];
	struct lop *op;

	eval_new_tile(ev, member);
	if (eval_is_const(ev, b)) {
		eval_tiles(ev, 1, w, t);
		lir_memset(ev->lir, engine, ct, t[0], eval_const_bits(ev, b));
	} else {
		eval_tiles(ev, 2, w, t);
		lir_copy(ev->lir, engine, ISA_CT_BITS, t[0], t[1]);
	}
	eval_tiles(ev, eval_is_const(ev, a) ? 2 : 3, v, t);
	op = lir_op(ev->lir, engine, ISA_COPY_PREDICATED);
	op->compute_type = (uint8_t)ct;
	op->dst = t[0];
	op->src0 = t[1];
	if (eval_is_const(ev, a)) {
		op->flags = ISA_F_IMM;
		op->imm0 = eval_const_bits(ev, a);
	} else {
		op->src1 = t[2];
	}
	eval_spend(ev, engine, 2 * eval_elems(ev, &ev->vals[member]));
}

static void emit_iota(struct eval *ev, uint32_t member, const struct lnode *node)
{
	const struct val *val = &ev->vals[member];
	const int64_t *stride = ev->group->members[member].src[0].stride;
	int64_t count[ISA_TILE_DIMS], to[ISA_TILE_DIMS], step[ISA_TILE_DIMS], first = 0, part = 0;
	uint32_t k = 0;
	struct lop *op;

	eval_new_tile(ev, member);
	for (uint32_t d = 0; d < ev->group->nd; d++)
		first += ev->plan->base[d] * stride[d];
	for (uint32_t a = 0; a < ev->plan->n_axes; a++) {
		const struct axis *axis = &ev->plan->axes[a];
		int64_t by = stride[axis->dim] * axis->unit, at = eval_step(ev, val, a);

		if (!val->varies[a])
			continue;
		first += ev->start[a] * by;
		if (axis->role == AXIS_PART)
			part = by; /* there is one such axis: nci_plan() */
		if (axis->role != AXIS_FREE || ev->len[a] == 1)
			continue;
		if (k && step[k - 1] == ev->len[a] * by && to[k - 1] == ev->len[a] * at)
			count[k - 1] *= ev->len[a];
		else
			count[k++] = ev->len[a];
		step[k - 1] = by;
		to[k - 1] = at;
	}
	op = lir_op(ev->lir, ISA_GPSIMD, ISA_IOTA);
	op->compute_type = nci_dtype_bytes(node->dtype) == 8 ? ISA_CT_I64 : ISA_CT_I32;
	op->dst = lir_tile(val->buf, val->dtype, ev->nparts, val->offset, k, count, to);
	op->imm0 = (uint64_t)first;
	op->imm1 = (uint64_t)part;
	for (uint32_t i = 0; i < k; i++)
		op->src0.step[ISA_TILE_DIMS - k + i] = (int32_t)step[i];
}

void eval_emit(struct eval *ev, uint32_t member)
{
	const struct lnode *node = &ev->legal->nodes[ev->group->members[member].node];

	if (ev->vals[member].takes >= 0 && !eval_is_activation(ev, member)) {
		emit_pair(ev, member, node);
		return;
	}
	switch (node->kind) {
	case N_UNARY:
		emit_unary(ev, member, node);
		break;
	case N_BINARY:
		emit_binary(ev, member, node);
		break;
	case N_SELECT:
		emit_select(ev, member, node);
		break;
	case N_CAST:
		emit_cast(ev, member, node);
		break;
	case N_COPY:
		emit_alias(ev, member);
		break;
	case N_IOTA:
		emit_iota(ev, member, node);
		break;
	case N_REDUCE:
		eval_emit_row_reduce(ev, member);
		break;
	case N_RECURRENCE:
		eval_emit_recurrence(ev, member);
		break;
	default: /* products were computed by their kernel */
		break;
	}
}
