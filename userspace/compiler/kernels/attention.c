/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention without its matrix of scores in memory. A unit of work is a block of
 * up to 128 queries with a chunk of up to 1024 keys:
 *
 *   scores     tensor          q k', queries on the partitions, in two PSUM banks
 *   greatest   vector, gpsimd  of each row; with it the shift that exponentials need
 *   weights    scalar          exp(scale * score - shift), rounded, in SBUF
 *   turned     tensor          128 x 128 of them at a time, keys on the partitions, by way of PSUM
 *   weighted   tensor          sums of v, in PSUM; a column of ones beside v gives the sum of the weights
 *   added      vector, gpsimd  to the block's sums so far, scaled if the shift has changed
 *
 * Units are emitted as a pipeline: while the scores of one are made, those of
 * earlier ones are at later steps, so that the engines, each of which takes its
 * instructions in order, do not wait for each other. PSUM is divided once and for all.
 *
 * The shift is minus the greatest score so far: no exponential overflows. Sums of
 * rows that are masked wholly stay 0, for the shift is finite from the start.
 *
 * Below the diagonal of causal attention chunks are whole; those above it are left
 * out, and the tensor engine itself adds the mask of a block on it, as one more product.
 */
#include <string.h>

#include "panel.h"

#define BLOCK	     ISA_PARTITIONS
#define BANK_KEYS    (ISA_PSUM_BANK_BYTES / 4) /* of scores in one bank */
#define CHUNK_BLOCKS 8
#define CHUNK	     (CHUNK_BLOCKS * BLOCK) /* keys */
#define SLAB	     512 /* queries or keys loaded at a time */
#define PANEL_BYTES  8192 /* of keys kept on chip, a partition */
#define QUERIES	     2048 /* that pass by while a panel of keys stays */
#define TURNED	     4 /* blocks that leave PSUM at once */

/* PSUM: units of which each step's results are there. */
#define SCORE_SLOTS 3
#define SUM_SLOTS   3
#define SUM_BYTES   ((NC_ATTENTION_HEAD_MAX + 1) * 4)

/* Units by which the later steps are behind. */
#define LAG_TURN  3
#define LAG_SUM	  4
#define LAG_STORE 5
#define AHEAD	  4 /* loads are in front */

#define NOTHING 0x7149f2cau /* 1e30: the shift of a row without keys */
#define TINY	0x0da24260u /* 1e-30: divides sums of 0; others are 1 or more */
#define MASKED	0xff7f0000u /* the least bf16, added to what causality leaves out */

/* One operand's or result's part for one batch. */
struct heads {
	int64_t q, k, v, mask;
};

/* Queries or keys on chip, loaded slab by slab when first needed; nothing is loaded twice. */
struct slabs {
	uint32_t buf;
	int64_t x0, n; /* first, number */
	int64_t loaded;
};

/* Keys with their values. */
struct keys {
	struct slabs k, v;
};

/* A block of queries and its rows so far. */
struct queries {
	const struct heads *heads;
	struct slabs *qt;
	int64_t x0, n;
	int64_t place; /* of the batch */
	uint32_t shift, sums;
};

struct unit {
	struct queries *queries;
	struct keys *keys;
	int64_t x0, n; /* keys */
	bool first, last; /* of its queries */
	uint32_t source; /* scores, or masked ones in SBUF */
	uint32_t alpha, weights, turned;
};

struct attention {
	struct eval ev;
	struct lir *lir;
	const struct member *m;
	const struct lnode *node;
	struct matrix q, k, v, mask;
	const struct group *group;
	bool causal, masked;
	float scale;
	int64_t n_q, n_k, head, width; /* width: elements of a value */
	uint8_t dtype, elem;
	uint64_t busy[5]; /* time given to each engine so far, in units of 0.2 ns or so */
	struct unit *units;
	uint32_t n_units, cap_units;
	uint32_t scores[SCORE_SLOTS], turn, sums; /* PSUM */
	uint32_t ident, above; /* 1 on the diagonal; MASKED above it */
};

static uint32_t bits(float f)
{
	uint32_t u;

	memcpy(&u, &f, sizeof(u));
	return u;
}

/* --- engines --------------------------------------------------------------------------- */

#define V (1u << ISA_VECTOR)
#define S (1u << ISA_SCALAR)
#define G (1u << ISA_GPSIMD)

/*
 * The engine of those in mask that is free first when it has done n more elements; speed: those that vector
 * does in one cycle. Gpsimd reaches PSUM from the second generation on.
 */
static uint32_t pick(struct attention *at, uint32_t mask, bool psum, int64_t n, int64_t speed)
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

static struct lop *tensor_scalar(struct attention *at, uint32_t engine, struct ltile dst,
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

/* dst = (src op0 imm) op1 other */
static struct lop *scalar_tensor(struct attention *at, uint32_t engine, struct ltile dst,
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

/* dst = func(scale * src + bias), a bias for each partition; LIR_NONE: 0. */
static void activation(struct attention *at, uint32_t func, struct ltile dst, struct ltile src,
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
	pick(at, S, false, dst.count[ISA_TILE_DIMS - 1], 1);
}

static struct ltile column(uint32_t buf, int64_t n)
{
	return lir_row(buf, ISA_FP32, (uint32_t)n, 0, 1);
}

static uint32_t new_column(struct attention *at)
{
	return lir_buf(at->lir, ISA_SPACE_SBUF, 4);
}

/* --- loads ----------------------------------------------------------------------------- */

/* Rows x .. x + n - 1 of m become columns, by the DMA engines where they can, else as in panel.c. */
static void load_turned(struct attention *at, const struct matrix *m, const struct slabs *s,
			int64_t x, int64_t n, int64_t offset)
{
	uint32_t to = (uint32_t)((x - s->x0) * m->elem);
	struct lstep dims[2] = {
		{ at->head, m->k_step * m->elem, 0 },
		{ n, m->x_step * m->elem, m->elem },
	};

	if (m->k_step != 1 || (at->head == ISA_DMA_TRANSPOSE_LONG && n % ISA_DMA_TRANSPOSE == 0)) {
		lir_load(at->lir, s->buf, 0, to, m->slot, (offset + x * m->x_step) * m->elem,
			 m->elem, 1, 2, dims);
		return;
	}
	for (int64_t i = 0; i < n; i += BLOCK) {
		uint32_t rows = (uint32_t)nci_min(BLOCK, n - i);
		uint32_t t = lir_buf(at->lir, ISA_SPACE_SBUF, (uint64_t)(at->head * m->elem));
		struct lstep plain[2] = {
			{ rows, m->x_step * m->elem, 0 },
			{ at->head, m->elem, m->elem },
		};

		lir_load(at->lir, t, 0, 0, m->slot, (offset + (x + i) * m->x_step) * m->elem,
			 m->elem, 1, 2, plain);
		panel_transpose(at->lir, lir_row(at->turn, m->dtype, (uint32_t)at->head, 0, rows),
				lir_row(t, m->dtype, rows, 0, (uint32_t)at->head));
		lir_copy(at->lir, pick(at, V | G, true, rows, m->elem == 2 ? 2 : 1), ISA_CT_BITS,
			 lir_row(s->buf, m->dtype, (uint32_t)at->head, (uint32_t)(to + i * m->elem),
				 rows),
			 lir_row(at->turn, m->dtype, (uint32_t)at->head, 0, rows));
	}
}

/* Values: keys on the partitions, block after block, a one behind each. */
static void load_values(struct attention *at, const struct slabs *s, int64_t x, int64_t n,
			int64_t offset)
{
	const struct matrix *m = &at->v;
	int64_t row = (at->width + 1) * m->elem;
	uint32_t to = (uint32_t)((x - s->x0) / BLOCK * row);

	for (int tail = 0; tail < 2; tail++) {
		int64_t rows = tail ? n % BLOCK : BLOCK, blocks = tail ? 1 : n / BLOCK;
		struct lstep dims[3] = {
			{ rows, m->k_step * m->elem, 0 },
			{ blocks, BLOCK * m->k_step * m->elem, row },
			{ at->width, m->x_step * m->elem, m->elem },
		};
		int64_t count[2] = { blocks, 1 }, step[2] = { at->width + 1, 1 };

		if (!rows || !blocks)
			continue;
		if (tail) {
			to += (uint32_t)(n / BLOCK * row);
			x += n / BLOCK * BLOCK;
		}
		lir_memset(at->lir, pick(at, V | G, false, blocks, 1), ISA_CT_F32,
			   lir_tile(s->buf, m->dtype, (uint32_t)rows,
				    to + (uint32_t)(at->width * m->elem), 2, count, step),
			   bits(1));
		lir_load(at->lir, s->buf, 0, to, m->slot, (offset + x * m->k_step) * m->elem,
			 m->elem, 1, 3, dims);
	}
}

/* Sees to it that queries or keys up to x are there. */
static void need(struct attention *at, struct slabs *s, int64_t end, uint64_t bytes,
		 void (*load)(struct attention *at, struct slabs *s, int64_t x, int64_t n,
			      const struct heads *h),
		 const struct heads *h)
{
	if (s->buf == LIR_NONE)
		s->buf = lir_buf(at->lir, ISA_SPACE_SBUF, bytes);
	while (s->x0 + s->loaded < end) {
		int64_t n = nci_min(SLAB, s->n - s->loaded);

		load(at, s, s->x0 + s->loaded, n, h);
		s->loaded += n;
	}
}

static void load_q(struct attention *at, struct slabs *s, int64_t x, int64_t n,
		   const struct heads *h)
{
	load_turned(at, &at->q, s, x, n, h->q);
}

static void load_k(struct attention *at, struct slabs *s, int64_t x, int64_t n,
		   const struct heads *h)
{
	load_turned(at, &at->k, s, x, n, h->k);
}

static void load_v(struct attention *at, struct slabs *s, int64_t x, int64_t n,
		   const struct heads *h)
{
	load_values(at, s, x, n, h->v);
}

static void load(struct attention *at, const struct unit *u)
{
	struct queries *q = u->queries;
	struct slabs *k = &u->keys->k, *v = &u->keys->v;

	need(at, q->qt, q->x0 + q->n, (uint64_t)(q->qt->n * at->elem), load_q, q->heads);
	need(at, k, u->x0 + u->n, (uint64_t)(k->n * at->elem), load_k, q->heads);
	need(at, v, u->x0 + u->n,
	     (uint64_t)(nci_ceil_div(v->n, BLOCK) * (at->width + 1) * at->elem), load_v, q->heads);
}

/* --- steps of a unit ------------------------------------------------------------------- */

/* The unit's keys that lie on the diagonal: their number, from *x on. */
static int64_t on_diagonal(const struct attention *at, const struct unit *u, int64_t *x)
{
	const struct queries *q = u->queries;

	*x = q->x0;
	if (!at->causal || q->x0 >= u->x0 + u->n || q->x0 + q->n <= u->x0)
		return 0;
	return nci_min(q->n, u->x0 + u->n - q->x0);
}

static void make_scores(struct attention *at, struct unit *u, uint32_t slot)
{
	const struct queries *q = u->queries;
	uint32_t rows = (uint32_t)q->n;
	int64_t x, diagonal = on_diagonal(at, u, &x);

	u->source = at->scores[slot];
	panel_stationary(at->lir, lir_row(q->qt->buf, at->dtype, (uint32_t)at->head,
					  (uint32_t)((q->x0 - q->qt->x0) * at->elem), rows));
	for (int64_t i = 0; i < u->n; i += BANK_KEYS) {
		uint32_t n = (uint32_t)nci_min(BANK_KEYS, u->n - i);

		panel_matmul(at->lir, lir_row(u->source, ISA_FP32, rows, (uint32_t)(i * 4), n),
			     lir_row(u->keys->k.buf, at->dtype, (uint32_t)at->head,
				     (uint32_t)((u->x0 + i - u->keys->k.x0) * at->elem), n),
			     false);
	}
	if (!diagonal)
		return;
	panel_stationary(at->lir, lir_row(at->ident, ISA_BF16, rows, 0, rows));
	panel_matmul(at->lir,
		     lir_row(u->source, ISA_FP32, rows, (uint32_t)((x - u->x0) * 4),
			     (uint32_t)diagonal),
		     lir_row(at->above, ISA_BF16, rows, 0, (uint32_t)diagonal), true);
}

/* Adds the mask to the scaled scores. */
static void add_mask(struct attention *at, struct unit *u)
{
	const struct queries *q = u->queries;
	const struct matrix *m = &at->mask;
	uint32_t rows = (uint32_t)q->n, n = (uint32_t)u->n;
	uint32_t mask = lir_buf(at->lir, ISA_SPACE_SBUF, (uint64_t)(n * m->elem));
	uint32_t sum = lir_buf(at->lir, ISA_SPACE_SBUF, (uint64_t)n * 4);
	struct lstep dims[2] = {
		{ rows, m->k_step * m->elem, 0 },
		{ n, m->x_step * m->elem, m->elem },
	};

	lir_load(at->lir, mask, 0, 0, m->slot,
		 (q->heads->mask + q->x0 * m->k_step + u->x0 * m->x_step) * m->elem, m->elem, 1, 2,
		 dims);
	scalar_tensor(at, pick(at, V | G, true, n, 1), lir_row(sum, ISA_FP32, rows, 0, n),
		      lir_row(u->source, ISA_FP32, rows, 0, n), ISA_MULT, bits(at->scale), ISA_ADD,
		      lir_row(mask, m->dtype, rows, 0, n));
	u->source = sum;
}

/* The rows' new shift, and by what their sums so far are scaled. */
static void find_shift(struct attention *at, struct unit *u)
{
	struct queries *q = u->queries;
	uint32_t rows = (uint32_t)q->n, old = q->shift, greatest = new_column(at);
	uint32_t minus = bits(at->masked ? -1 : -at->scale);
	uint32_t engine = pick(at, V | G, !at->masked, u->n, 1);
	struct lop *op = lir_op(at->lir, engine, ISA_REDUCE);

	op->compute_type = ISA_CT_F32;
	op->op0 = ISA_MAX;
	op->n_axes = 1;
	op->dst = column(greatest, rows);
	op->src0 = lir_row(u->source, ISA_FP32, rows, 0, (uint32_t)u->n);
	q->shift = new_column(at);
	pick(at, 1u << engine, false, 1, 1);
	if (u->first) {
		tensor_scalar(at, engine, column(q->shift, rows), column(greatest, rows), ISA_MULT,
			      minus, ISA_MIN, NOTHING);
		return;
	}
	scalar_tensor(at, engine, column(q->shift, rows), column(greatest, rows), ISA_MULT, minus,
		      ISA_MIN, column(old, rows));
	u->alpha = new_column(at);
	activation(at, ISA_ACT_EXP, column(u->alpha, rows), column(old, rows), bits(-1), q->shift);
}

static void make_weights(struct attention *at, struct unit *u)
{
	uint32_t rows = (uint32_t)u->queries->n, n = (uint32_t)u->n;

	u->weights = lir_buf(at->lir, ISA_SPACE_SBUF, (uint64_t)(n * at->elem));
	activation(at, ISA_ACT_EXP, lir_row(u->weights, at->dtype, rows, 0, n),
		   lir_row(u->source, ISA_FP32, rows, 0, n), bits(at->masked ? 1 : at->scale),
		   u->queries->shift);
}

/* Copies what was turned, of blocks first .. first + blocks - 1. */
static void take_turned(struct attention *at, const struct unit *u, int64_t first, int64_t blocks,
			uint32_t from)
{
	int64_t columns = u->queries->n, block = columns * at->elem;

	for (int tail = 0; tail < 2; tail++) {
		int64_t whole = nci_min(blocks, u->n / BLOCK - first);
		int64_t n = tail ? blocks - whole : whole;
		uint32_t rows = (uint32_t)(tail ? u->n % BLOCK : BLOCK);
		int64_t skip = tail ? whole : 0;

		if (!n)
			continue;
		lir_copy(at->lir, pick(at, V | G, true, n * columns, at->elem == 2 ? 2 : 1),
			 ISA_CT_BITS,
			 lir_row(u->turned, at->dtype, rows, (uint32_t)((first + skip) * block),
				 (uint32_t)(n * columns)),
			 lir_row(at->turn, at->dtype, rows, (uint32_t)(from + skip * block),
				 (uint32_t)(n * columns)));
	}
}

static void turn_weights(struct attention *at, struct unit *u)
{
	int64_t blocks = nci_ceil_div(u->n, BLOCK), columns = u->queries->n;
	uint32_t half = TURNED * BLOCK * at->elem;

	u->turned = lir_buf(at->lir, ISA_SPACE_SBUF, (uint64_t)(blocks * columns * at->elem));
	for (int64_t i = 0; i < blocks; i += TURNED) {
		int64_t n = nci_min(TURNED, blocks - i);
		uint32_t at_psum = (uint32_t)(i / TURNED * half % ISA_PSUM_BANK_BYTES);

		for (int64_t j = i; j < i + n; j++)
			panel_transpose(at->lir,
					lir_row(at->turn, at->dtype,
						(uint32_t)nci_min(BLOCK, u->n - j * BLOCK),
						at_psum + (uint32_t)((j - i) * columns * at->elem),
						(uint32_t)columns),
					lir_row(u->weights, at->dtype, (uint32_t)columns,
						(uint32_t)(j * BLOCK * at->elem),
						(uint32_t)nci_min(BLOCK, u->n - j * BLOCK)));
		take_turned(at, u, i, n, at_psum);
	}
}

static struct ltile sums_tile(const struct attention *at, const struct unit *u, uint32_t slot)
{
	return lir_row(at->sums, ISA_FP32, (uint32_t)u->queries->n, slot * SUM_BYTES,
		       (uint32_t)at->width + 1);
}

static void weigh_values(struct attention *at, struct unit *u, uint32_t slot)
{
	int64_t columns = u->queries->n, row = (at->width + 1) * at->elem;
	int64_t first = (u->x0 - u->keys->v.x0) / BLOCK;

	for (int64_t i = 0; i * BLOCK < u->n; i++) {
		uint32_t rows = (uint32_t)nci_min(BLOCK, u->n - i * BLOCK);

		panel_stationary(at->lir,
				 lir_row(u->turned, at->dtype, rows,
					 (uint32_t)(i * columns * at->elem), (uint32_t)columns));
		panel_matmul(at->lir, sums_tile(at, u, slot),
			     lir_row(u->keys->v.buf, at->dtype, rows, (uint32_t)((first + i) * row),
				     (uint32_t)at->width + 1),
			     i > 0);
	}
}

static void add_sums(struct attention *at, struct unit *u, uint32_t slot)
{
	struct queries *q = u->queries;
	struct ltile sums, more = sums_tile(at, u, slot);
	struct lop *op;

	if (u->first)
		q->sums = lir_buf(at->lir, ISA_SPACE_SBUF, SUM_BYTES);
	sums = lir_row(q->sums, ISA_FP32, (uint32_t)q->n, 0, (uint32_t)at->width + 1);
	if (u->first) {
		lir_copy(at->lir, pick(at, V | G | S, true, at->width + 1, 1), ISA_CT_F32, sums,
			 more);
		return;
	}
	op = scalar_tensor(at, pick(at, V | G, true, at->width + 1, 1), sums, sums, ISA_MULT, 0,
			   ISA_ADD, more);
	op->flags = ISA_F_VEC0;
	op->vec0 = (struct lcol){ .buf = u->alpha, .dtype = ISA_FP32 };
}

/* --- results --------------------------------------------------------------------------- */

/* Bytes from the slot's start to query x of the block's batch. */
static int64_t store_offset(const struct attention *at, const struct store *st, int64_t place,
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

static uint32_t make_lse(struct attention *at, const struct queries *q)
{
	uint32_t rows = (uint32_t)q->n, ln = new_column(at), lse = new_column(at);

	activation(at, ISA_ACT_LN, column(ln, rows),
		   lir_row(q->sums, ISA_FP32, rows, (uint32_t)(at->width * 4), 1), bits(1),
		   LIR_NONE);
	lir_tensor_tensor(at->lir, pick(at, V | G, false, 1, 1), ISA_CT_F32, ISA_SUB,
			  column(lse, rows), column(ln, rows), column(q->shift, rows));
	return lse;
}

static uint32_t make_result(struct attention *at, const struct queries *q)
{
	uint32_t rows = (uint32_t)q->n, divisor = new_column(at);
	uint32_t buf = lir_buf(at->lir, ISA_SPACE_SBUF, (uint64_t)(at->width * at->elem));
	struct lop *op;

	tensor_scalar(at, pick(at, V | G, false, 1, 1), column(divisor, rows),
		      lir_row(q->sums, ISA_FP32, rows, (uint32_t)(at->width * 4), 1), ISA_MAX, TINY,
		      ISA_BYPASS, 0);
	op = tensor_scalar(at, pick(at, V | S, false, at->width, 1),
			   lir_row(buf, at->dtype, rows, 0, (uint32_t)at->width),
			   lir_row(q->sums, ISA_FP32, rows, 0, (uint32_t)at->width), ISA_DIV, 0,
			   ISA_BYPASS, 0);
	op->flags = ISA_F_VEC0;
	op->vec0 = (struct lcol){ .buf = divisor, .dtype = ISA_FP32 };
	return buf;
}

static void store(struct attention *at, const struct queries *q, const struct store *st,
		  uint32_t buf)
{
	bool is_result = st->node == at->m->node;
	uint32_t nd = at->node->nd, elem = is_result ? at->elem : 4;
	struct lstep dims[2] = {
		{ q->n, st->stride[nd - 2] * elem, 0 },
		{ is_result ? at->width : 1, st->stride[nd - 1] * elem, elem },
	};

	lir_store(at->lir, st->slot, store_offset(at, st, q->place, q->x0, elem), buf, 0, 0, elem,
		  1, 2, dims);
}

/* --- the units ------------------------------------------------------------------------- */

static struct slabs new_slabs(int64_t x0, int64_t n)
{
	return (struct slabs){ .buf = LIR_NONE, .x0 = x0, .n = n };
}

/* Keys that a block of queries sees. */
static int64_t keys_of(const struct attention *at, const struct queries *q)
{
	return at->causal ? nci_min(at->n_k, q->x0 + q->n) : at->n_k;
}

/* Chunks of about equal numbers of blocks, of one panel. */
static void add_units(struct attention *at, struct queries *q, struct keys *keys)
{
	int64_t end = nci_min(keys->k.x0 + keys->k.n, keys_of(at, q));
	int64_t blocks = nci_ceil_div(end - keys->k.x0, BLOCK), x = keys->k.x0;

	for (int64_t left = nci_ceil_div(blocks, CHUNK_BLOCKS); left > 0; left--) {
		int64_t n = nci_ceil_div(blocks, left);
		struct unit *u;

		at->units = nci_grow(at->ev.ctx, at->units, &at->cap_units, at->n_units + 1,
				     sizeof(*at->units));
		u = &at->units[at->n_units++];
		u->queries = q;
		u->keys = keys;
		u->x0 = x;
		u->n = nci_min(n * BLOCK, end - x);
		u->first = x == 0;
		u->last = x + u->n == keys_of(at, q);
		x += u->n;
		blocks -= n;
	}
}

/* Queries from x0 on, against all panels of keys. */
static void add_queries(struct attention *at, const struct heads *h, int64_t place, int64_t x0,
			int64_t n)
{
	int64_t blocks = nci_ceil_div(n, BLOCK), panel = PANEL_BYTES / at->elem;
	struct queries *q = nci_alloc(at->ev.ctx, (size_t)blocks * sizeof(*q));
	struct slabs *qt = NULL;

	for (int64_t i = 0; i < blocks; i++) {
		int64_t x = x0 + i * BLOCK;

		if (i * BLOCK % SLAB == 0) {
			qt = nci_alloc(at->ev.ctx, sizeof(*qt));
			*qt = new_slabs(x, nci_min(SLAB, x0 + n - x));
		}
		q[i] = (struct queries){ .heads = h,
					 .qt = qt,
					 .x0 = x,
					 .n = nci_min(BLOCK, x0 + n - x),
					 .place = place };
	}
	for (int64_t x = 0; x < keys_of(at, &q[blocks - 1]); x += panel) {
		struct keys *keys = nci_alloc(at->ev.ctx, sizeof(*keys));

		keys->k = keys->v = new_slabs(x, nci_min(panel, at->n_k - x));
		for (int64_t i = 0; i < blocks; i++)
			if (x < keys_of(at, &q[i]))
				add_units(at, &q[i], keys);
	}
}

/* --- the kernel ------------------------------------------------------------------------ */

/* Operand i as a matrix; k_step: of its rows if they become partitions, else of its columns. */
static struct matrix operand(const struct attention *at, uint32_t i, bool turned)
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

static struct heads heads_of(const struct attention *at, int64_t place)
{
	int64_t offset[4] = { 0 };

	for (uint32_t d = at->node->nd - 2; d-- > 0;) {
		int64_t index = place % at->node->dims[d];

		place /= at->node->dims[d];
		for (uint32_t i = 0; i < at->node->n_src; i++)
			offset[i] += index * at->m->src[i].stride[d];
	}
	return (struct heads){ offset[0], offset[1], offset[2], offset[3] };
}

/* Constants of the diagonal: column minus row tells where an element is. */
static void make_diagonal(struct attention *at)
{
	struct lir *lir = at->lir;
	uint32_t index = lir_buf(lir, ISA_SPACE_SBUF, BLOCK * 4);
	struct ltile from = lir_row(index, ISA_FP32, BLOCK, 0, BLOCK);
	struct lop *op = lir_op(lir, ISA_GPSIMD, ISA_IOTA);

	op->compute_type = ISA_CT_F32;
	op->dst = from;
	op->imm1 = bits(-1);
	op->src0.step[ISA_TILE_DIMS - 1] = 1;
	at->ident = lir_buf(lir, ISA_SPACE_SBUF, BLOCK * 2);
	at->above = lir_buf(lir, ISA_SPACE_SBUF, BLOCK * 2);
	tensor_scalar(at, ISA_VECTOR, lir_row(at->ident, ISA_BF16, BLOCK, 0, BLOCK), from,
		      ISA_IS_EQ, 0, ISA_BYPASS, 0);
	tensor_scalar(at, ISA_VECTOR, lir_row(at->above, ISA_BF16, BLOCK, 0, BLOCK), from,
		      ISA_IS_GT, 0, ISA_MULT, MASKED);
}

static void divide_psum(struct attention *at)
{
	for (uint32_t i = 0; i < SCORE_SLOTS; i++)
		at->scores[i] = lir_buf(at->lir, ISA_SPACE_PSUM, CHUNK * 4);
	at->turn = lir_buf(at->lir, ISA_SPACE_PSUM, ISA_PSUM_BANK_BYTES);
	at->sums = lir_buf(at->lir, ISA_SPACE_PSUM, SUM_SLOTS * SUM_BYTES);
}

_Static_assert(SUM_SLOTS *SUM_BYTES <= ISA_PSUM_BANK_BYTES, "sums share a bank");
_Static_assert((SCORE_SLOTS * CHUNK * 4) / ISA_PSUM_BANK_BYTES + 2 <= ISA_PSUM_BANKS, "PSUM");

static void finish(struct attention *at, struct unit *u)
{
	uint32_t result = LIR_NONE, lse = LIR_NONE;

	for (uint32_t i = 0; u->last && i < at->group->n_stores; i++) {
		const struct store *st = &at->group->stores[i];
		bool is_result = st->node == at->m->node;

		if (is_result && result == LIR_NONE)
			result = make_result(at, u->queries);
		if (!is_result && lse == LIR_NONE)
			lse = make_lse(at, u->queries);
		store(at, u->queries, st, is_result ? result : lse);
	}
}

static struct unit *unit_at(const struct attention *at, uint32_t t, uint32_t lag)
{
	return t >= lag && t - lag < at->n_units ? &at->units[t - lag] : NULL;
}

/* All units, each step of each as far behind as the lags say. */
static void emit(struct attention *at)
{
	struct unit *u;

	for (uint32_t t = 0; t < AHEAD; t++)
		if ((u = unit_at(at, t, 0)))
			load(at, u);
	for (uint32_t t = 0; t < at->n_units + LAG_STORE; t++) {
		if ((u = unit_at(at, t + AHEAD, 0)))
			load(at, u);
		if ((u = unit_at(at, t, 0))) {
			make_scores(at, u, t % SCORE_SLOTS);
			if (at->masked)
				add_mask(at, u);
			find_shift(at, u);
			make_weights(at, u);
		}
		if ((u = unit_at(at, t, LAG_TURN)))
			turn_weights(at, u);
		if ((u = unit_at(at, t, LAG_SUM))) {
			weigh_values(at, u, t % SUM_SLOTS);
			add_sums(at, u, t % SUM_SLOTS);
		}
		if ((u = unit_at(at, t, LAG_STORE)))
			finish(at, u);
	}
}

static void open_attention(struct attention *at, struct legal *legal, struct lir *lir,
			   struct group *group)
{
	const struct node *node;

	eval_init(&at->ev, legal, lir, group);
	at->lir = lir;
	at->m = &group->members[0];
	at->node = &legal->nodes[at->m->node];
	node = &legal->ctx->graph->nodes[at->node->origin];
	at->causal = node->attention.causal;
	at->scale = node->attention.scale;
	at->masked = at->node->n_src > 3;
	at->q = operand(at, 0, true);
	at->k = operand(at, 1, true);
	at->v = operand(at, 2, false);
	if (at->masked)
		at->mask = operand(at, 3, false);
	at->dtype = at->q.dtype;
	at->elem = at->q.elem;
	at->n_q = at->node->dims[at->node->nd - 2];
	at->width = at->node->dims[at->node->nd - 1];
	node = &legal->ctx->graph->nodes[node->src[1]];
	at->n_k = node->type.dims[node->type.ndim - 2];
	at->head = node->type.dims[node->type.ndim - 1];
	at->group = group;
	lir->tag = at->node->origin;
}

void nci_attention(struct legal *legal, struct lir *lir, struct group *group)
{
	struct attention *at = nci_alloc(legal->ctx, sizeof(*at));
	int64_t batches, step;

	open_attention(at, legal, lir, group);
	divide_psum(at);
	if (at->causal)
		make_diagonal(at);
	batches = at->node->elems / (at->n_q * at->width);
	step = at->n_k > PANEL_BYTES / at->elem ? QUERIES : at->n_q;
	for (int64_t i = 0; i < batches; i++) {
		struct heads *h = nci_alloc(legal->ctx, sizeof(*h));

		*h = heads_of(at, i);
		for (int64_t x = 0; x < at->n_q; x += step)
			add_queries(at, h, i, x, nci_min(step, at->n_q - x));
	}
	emit(at);
}
