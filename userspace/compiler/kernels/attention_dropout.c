/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which weights of attention stay: random bits of each, those of nc_random() for its number. Its formula
 * (docs/random.md) lets a word of the key go through the folding before it: fold(x ^ k) is fold(x) ^ fold(k).
 * So the key is folded once, and then there are for each unit:
 *
 *   index      gpsimd          number of each weight
 *   folded     vector, gpsimd  x ^ (x >> shift)
 *   multiplied gpsimd          (x ^ word of the key) * factor; three times, each folded
 *   bits       vector, gpsimd  x ^ last word ^ index
 *   applied    gpsimd          (bits <= limit) * weight, a product of integers: the weight's bits or none
 *
 * Vector has no arithmetic of 32 bits. So that it folds what gpsimd multiplied while that multiplies
 * what it folded, bits of several units are made at a time, each a step behind the next.
 */
#include "attention.h"

/* Folding and multiplying; the last step has no product before it, but the last word of the key. */
#define STEPS (NC_KEY_WORDS + 1)

static struct lop *integers(struct attention *at, uint32_t engine, uint32_t opcode,
			    struct ltile dst, struct ltile src, uint32_t op0, uint32_t op1)
{
	struct lop *op = lir_op(at->lir, engine, opcode);

	op->compute_type = ISA_CT_I32;
	op->op0 = (uint8_t)op0;
	op->op1 = (uint8_t)op1;
	op->dst = dst;
	op->src0 = src;
	return op;
}

/* An immediate of 32 bits, as integers have it. */
static uint64_t imm(uint32_t word)
{
	return (uint64_t)(int64_t)(int32_t)word;
}

static struct lcol word(uint32_t column)
{
	return (struct lcol){ .buf = column, .dtype = ISA_INT32 };
}

/* dst = src ^ (src >> shift) */
static void fold(struct attention *at, uint32_t engine, struct ltile dst, struct ltile src,
		 uint32_t shift)
{
	struct lop *op =
		integers(at, engine, ISA_SCALAR_TENSOR_TENSOR, dst, src, ISA_SHR, ISA_BIT_XOR);

	op->imm0 = shift;
	op->src1 = src;
}

/* --- before the units -------------------------------------------------------------------- */

/* A number of the launch, in all partitions. */
static struct ltile load_word(struct attention *at, nc_value value)
{
	const struct node *node = &at->ev.ctx->graph->nodes[value];
	struct ltile column = lir_row(at_new_column(at), ISA_INT32, BLOCK, 0, 1);
	struct lstep dims[2] = { { BLOCK, 0, 0 }, { 1, 4, 4 } };

	if (node->kind == N_CONST)
		lir_memset(at->lir, ISA_GPSIMD, ISA_CT_I32, column, imm((uint32_t)node->bits));
	else
		lir_load(at->lir, column.buf, 0, 0, node->slot, 0, 4, 1, 2, dims);
	return column;
}

void at_dropout_open(struct attention *at, int64_t keys)
{
	const struct nc_attention *how = &at->ev.ctx->graph->nodes[at->node->origin].attention;
	struct dropout *d = &at->dropout;
	struct lop *op;

	d->factor = 1;
	d->on = how->dropout > 0;
	if (!d->on)
		return;
	d->factor = (float)(1 / (1 - how->dropout));
	d->limit = nc_random_limit(1 - how->dropout);
	for (int i = 0; i < NC_KEY_WORDS; i++) {
		struct ltile column = load_word(at, how->key[i]);

		fold(at, ISA_VECTOR, column, column, nci_random_rounds[i].shift);
		d->key[i] = column.buf;
	}
	d->batch = LIR_NONE;
	if (how->batch) {
		struct ltile column = load_word(at, how->batch);

		op = integers(at, ISA_GPSIMD, ISA_TENSOR_SCALAR, column, column, ISA_MULT,
			      ISA_BYPASS);
		op->imm0 = imm((uint32_t)(at->n_q * at->n_k));
		d->batch = column.buf;
	}
	keys = nci_min(keys, at->n_k);
	d->numbers = lir_buf(at->lir, ISA_SPACE_SBUF, (uint64_t)keys * 4);
	op = lir_op(at->lir, ISA_GPSIMD, ISA_IOTA);
	op->compute_type = ISA_CT_I32;
	op->dst = lir_row(d->numbers, ISA_INT32, BLOCK, 0, (uint32_t)keys);
	op->imm1 = imm((uint32_t)at->n_k);
	op->src0.step[ISA_TILE_DIMS - 1] = 1;
}

void at_dropout_add(struct attention *at, int64_t place, int64_t q0, int64_t rows, int64_t k0,
		    int64_t n)
{
	struct dropout *d = &at->dropout;

	if (!d->on)
		return;
	d->draws = nci_grow(at->ev.ctx, d->draws, &d->cap_draws, d->n_draws + 1, sizeof(*d->draws));
	d->draws[d->n_draws++] = (struct draw){ .first = (place * at->n_q + q0) * at->n_k + k0,
						.rows = (uint32_t)rows,
						.n = (uint32_t)n };
}

/* --- bits -------------------------------------------------------------------------------- */

static void find_index(struct attention *at, struct draw *draw)
{
	const struct dropout *d = &at->dropout;
	struct lop *op;

	draw->index = lir_buf(at->lir, ISA_SPACE_SBUF, (uint64_t)draw->n * 4);
	draw->bits = lir_buf(at->lir, ISA_SPACE_SBUF, (uint64_t)draw->n * 4);
	op = integers(at, at_pick(at, G, false, draw->n, 1), ISA_TENSOR_SCALAR,
		      lir_row(draw->index, ISA_INT32, draw->rows, 0, draw->n),
		      lir_row(d->numbers, ISA_INT32, draw->rows, 0, draw->n), ISA_ADD,
		      d->batch == LIR_NONE ? ISA_BYPASS : ISA_ADD);
	op->imm0 = imm((uint32_t)draw->first);
	if (d->batch != LIR_NONE) {
		op->flags = ISA_F_VEC1;
		op->vec1 = word(d->batch);
	}
}

static void multiply(struct attention *at, const struct draw *draw, uint32_t round)
{
	struct ltile bits = lir_row(draw->bits, ISA_INT32, draw->rows, 0, draw->n);
	struct lop *op = integers(at, at_pick(at, G, false, draw->n, 1), ISA_TENSOR_SCALAR, bits,
				  bits, ISA_BIT_XOR, ISA_MULT);

	op->flags = ISA_F_VEC0;
	op->vec0 = word(at->dropout.key[round]);
	op->imm1 = imm(nci_random_rounds[round].factor);
}

/* What gpsimd alone does of a step, */
static void begin_step(struct attention *at, struct draw *draw, uint32_t step)
{
	if (step == 0)
		find_index(at, draw);
	else if (step < STEPS - 1)
		multiply(at, draw, step - 1);
}

/* and what vector does as well. */
static void end_step(struct attention *at, const struct draw *draw, uint32_t step)
{
	uint32_t engine = at_pick(at, V | G, false, draw->n, 1);
	struct ltile bits = lir_row(draw->bits, ISA_INT32, draw->rows, 0, draw->n);
	struct ltile index = lir_row(draw->index, ISA_INT32, draw->rows, 0, draw->n);
	struct lop *op;

	if (step < STEPS - 1) {
		fold(at, engine, bits, step ? bits : index, nci_random_rounds[step].shift);
		return;
	}
	op = integers(at, engine, ISA_SCALAR_TENSOR_TENSOR, bits, bits, ISA_BIT_XOR, ISA_BIT_XOR);
	op->flags = ISA_F_VEC0;
	op->vec0 = word(at->dropout.key[step - 1]);
	op->src1 = index;
}

/* One step of each unit that is on its way, the oldest first; begun: the youngest's number + 1. */
static void go_on(struct attention *at, uint32_t begun)
{
	for (int half = 0; half < 2; half++)
		for (uint32_t step = STEPS; step-- > 0;) {
			if (begun < step + 1 || begun - step - 1 >= at->dropout.n_draws)
				continue;
			if (half)
				end_step(at, &at->dropout.draws[begun - step - 1], step);
			else
				begin_step(at, &at->dropout.draws[begun - step - 1], step);
		}
}

void at_dropout_draw(struct attention *at, uint32_t t)
{
	struct dropout *d = &at->dropout;

	while (d->begun < t + STEPS)
		go_on(at, ++d->begun);
}

void at_dropout_apply(struct attention *at, uint32_t t, uint32_t dst, uint32_t weights)
{
	const struct draw *draw = &at->dropout.draws[t];
	uint32_t integer = at->elem == 2 ? ISA_INT16 : ISA_INT32;
	struct lop *op = integers(at, at_pick(at, G, false, draw->n, 1), ISA_SCALAR_TENSOR_TENSOR,
				  lir_row(dst, integer, draw->rows, 0, draw->n),
				  lir_row(draw->bits, ISA_INT32, draw->rows, 0, draw->n), ISA_IS_LE,
				  ISA_MULT);

	op->imm0 = imm((uint32_t)at->dropout.limit);
	op->src1 = lir_row(weights, integer, draw->rows, 0, draw->n);
}
