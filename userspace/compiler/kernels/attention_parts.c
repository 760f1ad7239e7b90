/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "attention.h"

uint32_t at_bits(float f)
{
	uint32_t u;

	memcpy(&u, &f, sizeof(u));
	return u;
}

/* --- engines --------------------------------------------------------------------------- */

uint32_t at_pick(struct attention *at, uint32_t mask, bool psum, int64_t n, int64_t speed)
{
	static const struct {
		uint32_t engine, cycle;
	} order[] = { { ISA_GPSIMD, 4 }, { ISA_VECTOR, 5 }, { ISA_SCALAR, 4 } };
	uint32_t best = 0;
	uint64_t least = UINT64_MAX;

	if (psum && at->ev.ctx->target.arch == 2)
		mask &= ~G;
	for (uint32_t i = 0; i < 3; i++) {
		uint32_t e = order[i].engine;
		uint64_t cycles = (uint64_t)(e == ISA_VECTOR ? n / speed : n) + 60;
		uint64_t end = at->busy[e] + (cycles < 100 ? 100 : cycles) * order[i].cycle;

		if (!(mask >> e & 1) || end >= least)
			continue;
		least = end;
		best = e;
	}
	at->busy[best] = least;
	return best;
}

struct lop *at_tensor_scalar(struct attention *at, uint32_t engine, struct ltile dst,
			     struct ltile src, uint32_t op0, uint32_t imm0, uint32_t op1,
			     uint32_t imm1)
{
	struct lop *op = lir_op(at->lir, engine, ISA_TENSOR_SCALAR);

	op->compute_type = ISA_CT_F32;
	op->op0 = (uint8_t)op0;
	op->op1 = (uint8_t)op1;
	op->imm0 = imm0;
	op->imm1 = imm1;
	op->dst = dst;
	op->src0 = src;
	return op;
}

struct lop *at_scalar_tensor(struct attention *at, uint32_t engine, struct ltile dst,
			     struct ltile src, uint32_t op0, uint32_t imm, uint32_t op1,
			     struct ltile other)
{
	struct lop *op = lir_op(at->lir, engine, ISA_SCALAR_TENSOR_TENSOR);

	op->compute_type = ISA_CT_F32;
	op->op0 = (uint8_t)op0;
	op->op1 = (uint8_t)op1;
	op->imm0 = imm;
	op->dst = dst;
	op->src0 = src;
	op->src1 = other;
	return op;
}

struct lop *at_activation(struct attention *at, uint32_t func, struct ltile dst, struct ltile src,
			  uint32_t scale, uint32_t bias)
{
	struct lop *op = lir_op(at->lir, ISA_SCALAR, ISA_ACTIVATION);

	op->compute_type = ISA_CT_F32;
	op->op0 = (uint8_t)func;
	op->imm0 = scale;
	op->dst = dst;
	op->src0 = src;
	if (bias != LIR_NONE) {
		op->flags = ISA_F_VEC1;
		op->vec1 = (struct lcol){ .buf = bias, .dtype = ISA_FP32 };
	}
	at_pick(at, S, false, dst.count[ISA_TILE_DIMS - 1], 1);
	return op;
}

struct ltile at_column(uint32_t buf, int64_t n)
{
	return lir_row(buf, ISA_FP32, (uint32_t)n, 0, 1);
}

uint32_t at_new_column(struct attention *at)
{
	return lir_buf(at->lir, ISA_SPACE_SBUF, 4);
}

void at_by_sync(struct attention *at)
{
	at->lir->ops[at->lir->n_ops - 1].engine = ISA_SYNC;
}

/* --- loads ----------------------------------------------------------------------------- */

void at_load_turned(struct attention *at, const struct matrix *m, int64_t depth,
		    const struct slabs *s, int64_t x, int64_t n, int64_t offset)
{
	uint32_t to = (uint32_t)((x - s->x0) * m->elem);
	struct lstep dims[2] = {
		{ depth, m->k_step * m->elem, 0 },
		{ n, m->x_step * m->elem, m->elem },
	};

	if (m->k_step != 1 || (depth == ISA_DMA_TRANSPOSE_LONG && n % ISA_DMA_TRANSPOSE == 0)) {
		lir_load(at->lir, s->buf, 0, to, m->slot, (offset + x * m->x_step) * m->elem,
			 m->elem, 1, 2, dims);
		return;
	}
	for (int64_t i = 0; i < n; i += BLOCK) {
		uint32_t rows = (uint32_t)nci_min(BLOCK, n - i);
		uint32_t t = lir_buf(at->lir, ISA_SPACE_SBUF, (uint64_t)(depth * m->elem));
		struct lstep plain[2] = {
			{ rows, m->x_step * m->elem, 0 },
			{ depth, m->elem, m->elem },
		};

		lir_load(at->lir, t, 0, 0, m->slot, (offset + (x + i) * m->x_step) * m->elem,
			 m->elem, 1, 2, plain);
		panel_transpose(at->lir, lir_row(at->turn, m->dtype, (uint32_t)depth, 0, rows),
				lir_row(t, m->dtype, rows, 0, (uint32_t)depth));
		lir_copy(at->lir, at_pick(at, V | G, true, rows, m->elem == 2 ? 2 : 1), ISA_CT_BITS,
			 lir_row(s->buf, m->dtype, (uint32_t)depth, (uint32_t)(to + i * m->elem),
				 rows),
			 lir_row(at->turn, m->dtype, (uint32_t)depth, 0, rows));
	}
}

void at_load_rows(struct attention *at, const struct matrix *m, int64_t width, bool ones,
		  const struct slabs *s, int64_t x, int64_t n, int64_t offset)
{
	int64_t row = (width + ones) * m->elem;
	uint32_t to = (uint32_t)((x - s->x0) / BLOCK * row);

	for (int tail = 0; tail < 2; tail++) {
		int64_t rows = tail ? n % BLOCK : BLOCK, blocks = tail ? 1 : n / BLOCK;
		struct lstep dims[3] = {
			{ rows, m->k_step * m->elem, 0 },
			{ blocks, BLOCK * m->k_step * m->elem, row },
			{ width, m->x_step * m->elem, m->elem },
		};
		int64_t count[2] = { blocks, 1 }, step[2] = { width + ones, 1 };

		if (!rows || !blocks)
			continue;
		if (tail) {
			to += (uint32_t)(n / BLOCK * row);
			x += n / BLOCK * BLOCK;
		}
		if (ones)
			lir_memset(at->lir, at_pick(at, V | G, false, blocks, 1), ISA_CT_F32,
				   lir_tile(s->buf, m->dtype, (uint32_t)rows,
					    to + (uint32_t)(width * m->elem), 2, count, step),
				   at_bits(1));
		lir_load(at->lir, s->buf, 0, to, m->slot, (offset + x * m->k_step) * m->elem,
			 m->elem, 1, 3, dims);
	}
}

/* --- operands and results ---------------------------------------------------------------- */

struct matrix at_operand(const struct attention *at, uint32_t i, bool turned)
{
	const struct vref *ref = &at->m->src[i];
	const struct lnode *node = &at->ev.legal->nodes[ref->node];
	uint32_t nd = at->node->nd;
	struct matrix m = { .k_step = ref->stride[nd - 2], .x_step = ref->stride[nd - 1] };

	m.slot = node->kind == N_INPUT ? node->slot : node->scratch;
	m.dtype = (uint8_t)nci_isa_dtype(node->dtype);
	m.elem = (uint8_t)nci_dtype_bytes(node->dtype);
	if (turned) {
		m.k_step = ref->stride[nd - 1];
		m.x_step = ref->stride[nd - 2];
	}
	return m;
}

struct heads at_heads(const struct attention *at, int64_t place)
{
	struct heads h = { 0 };

	for (uint32_t d = at->node->nd - 2; d-- > 0;) {
		int64_t index = place % at->node->dims[d];

		place /= at->node->dims[d];
		for (uint32_t i = 0; i < at->node->n_src; i++)
			h.offset[i] += index * at->m->src[i].stride[d];
	}
	return h;
}

/* Constants of the diagonal: column minus row tells where an element is. */
void at_diagonal(struct attention *at)
{
	struct lir *lir = at->lir;
	uint32_t index = lir_buf(lir, ISA_SPACE_SBUF, BLOCK * 4);
	struct ltile from = lir_row(index, ISA_FP32, BLOCK, 0, BLOCK);
	struct lop *op = lir_op(lir, ISA_GPSIMD, ISA_IOTA);

	op->compute_type = ISA_CT_F32;
	op->dst = from;
	op->imm1 = at_bits(-1);
	op->src0.step[ISA_TILE_DIMS - 1] = 1;
	at->ident = lir_buf(lir, ISA_SPACE_SBUF, BLOCK * 2);
	at->above = lir_buf(lir, ISA_SPACE_SBUF, BLOCK * 2);
	at_tensor_scalar(at, ISA_VECTOR, lir_row(at->ident, ISA_BF16, BLOCK, 0, BLOCK), from,
			 ISA_IS_EQ, 0, ISA_BYPASS, 0);
	at_tensor_scalar(at, ISA_VECTOR, lir_row(at->above, ISA_BF16, BLOCK, 0, BLOCK), from,
			 ISA_IS_GT, 0, ISA_MULT, MASKED);
}

/* Bytes from the slot's start to query x of the block's batch. */
int64_t at_store_offset(const struct attention *at, const struct store *st, int64_t place,
			int64_t x, uint32_t elem)
{
	uint32_t nd = at->node->nd;
	int64_t offset = x * st->stride[nd - 2];

	for (uint32_t d = nd - 2; d-- > 0;) {
		offset += place % at->node->dims[d] * st->stride[d];
		place /= at->node->dims[d];
	}
	return offset * elem;
}

struct ltile at_add_mask(struct attention *at, const struct matrix *m, int64_t offset,
			 struct ltile scores)
{
	uint32_t rows = scores.nparts, n = scores.count[ISA_TILE_DIMS - 1];
	uint32_t mask = lir_buf(at->lir, ISA_SPACE_SBUF, (uint64_t)(n * m->elem));
	struct ltile sum =
		lir_row(lir_buf(at->lir, ISA_SPACE_SBUF, (uint64_t)n * 4), ISA_FP32, rows, 0, n);
	struct lstep dims[2] = {
		{ rows, m->k_step * m->elem, 0 },
		{ n, m->x_step * m->elem, m->elem },
	};

	lir_load(at->lir, mask, 0, 0, m->slot, offset * m->elem, m->elem, 1, 2, dims);
	at_scalar_tensor(at, at_pick(at, V | G, true, n, 1), sum, scores, ISA_MULT,
			 at_bits(at->scale), ISA_ADD, lir_row(mask, m->dtype, rows, 0, n));
	return sum;
}

void at_open(struct attention *at, struct legal *legal, struct lir *lir, const struct group *group)
{
	const struct node *node, *nodes = legal->ctx->graph->nodes;
	const struct nc_type *q, *k, *v;

	at->ev.ctx = legal->ctx;
	at->ev.legal = legal;
	at->lir = lir;
	at->m = &group->members[0];
	at->node = &legal->nodes[at->m->node];
	at->group = group;
	lir->tag = at->node->origin;
	node = &nodes[at->node->origin];
	at->causal = node->attention.causal;
	at->scale = node->attention.scale;
	q = &nodes[node->src[0]].type;
	k = &nodes[node->src[1]].type;
	v = &nodes[node->src[2]].type;
	at->n_q = q->dims[q->ndim - 2];
	at->n_k = k->dims[k->ndim - 2];
	at->head = q->dims[q->ndim - 1];
	at->width = v->dims[v->ndim - 1];
	at->dtype = (uint8_t)nci_isa_dtype(q->dtype);
	at->elem = (uint8_t)nci_dtype_bytes(q->dtype);
}
