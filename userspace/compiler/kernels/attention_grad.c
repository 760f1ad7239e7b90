/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gradients of attention. A unit of work is a block of up to 128 queries with a chunk
 * of up to 512 keys; chunk by chunk, each with all queries that see it:
 *
 *   scores     tensor          q k', and products dy v', queries on the partitions
 *   weights    scalar          exp(scale * score - lse): those of the result
 *   slopes     vector, gpsimd  (product - d) * weight; d: sum of y dy of each query
 *   dv, dk     tensor          weights' dy and slopes' q, added up in PSUM until the chunk ends
 *   turned     tensor          slopes, keys on the partitions
 *   dq         tensor          slopes k, added up in SBUF until the batch ends
 *
 * With dropout, weights that stay (attention_dropout.c) make dv, and the slopes are product * weight that stays -
 * d * weight: 1 / (1 - probability) is applied with the scale of the scores, to d the other way round.
 *
 * Nothing of size queries by keys leaves the chip. The scale of the scores is applied to dq and dk
 * at the end. Units are emitted as a pipeline, as in attention.c.
 */
#include "attention.h"

#define CHUNK_BLOCKS 4
#define CHUNK	     (CHUNK_BLOCKS * BLOCK) /* keys: scores of one bank */
#define SLOTS	     2 /* of scores and products */
#define HEAD_BYTES   (NC_ATTENTION_HEAD_MAX * 4)
#define SUM_SLOTS    (ISA_PSUM_BANK_BYTES / HEAD_BYTES) /* of dq */

/* Units by which later steps are behind. */
#define LAG_KEYS    2
#define LAG_QUERIES 3
#define AHEAD	    4 /* loads are in front */

/* Operands, as nc_attention_grad() has them. */
enum { Q, K, VALUES, DY, Y, LSE, MASK };

/* A block of queries. */
struct queries {
	int64_t x0, n;
	uint32_t shift, d; /* -lse; sum of y dy, with dropout times its probability - 1 */
	uint32_t dq; /* fp32, as far as it is added up */
};

/* Queries on chip for one pass, as rows and as columns. */
struct slab {
	struct slabs qt, dyt, q, dy;
};

struct chunk {
	const struct heads *heads;
	int64_t place; /* of the batch */
	int64_t x0, n;
	struct slabs kt, vt, k;
	bool begun[CHUNK_BLOCKS]; /* dv and dk have a part */
};

struct unit {
	struct queries *queries;
	struct slab *slab;
	struct chunk *chunk;
	int64_t n; /* keys that are seen */
	bool first, last; /* of its queries */
	bool ends; /* the chunk */
	uint32_t weights, slopes, turned;
};

struct backward {
	struct attention at;
	struct matrix q, k, dy, y, lse, mask; /* rows on the partitions */
	struct matrix qt, kt, vt, dyt; /* columns */
	struct unit *units;
	uint32_t n_units, cap_units;
	uint32_t scores[SLOTS], products[SLOTS], dv, dk, sums; /* PSUM */
};

/* --- loads ----------------------------------------------------------------------------- */

static void load_columns(struct backward *b, const struct matrix *m, struct slabs *s, int64_t depth,
			 int64_t offset)
{
	s->buf = lir_buf(b->at.lir, ISA_SPACE_SBUF, (uint64_t)(s->n * m->elem));
	at_load_turned(&b->at, m, depth, s, s->x0, s->n, offset);
}

static void load_rows(struct backward *b, const struct matrix *m, struct slabs *s, int64_t width,
		      int64_t offset)
{
	s->buf = lir_buf(b->at.lir, ISA_SPACE_SBUF,
			 (uint64_t)(nci_ceil_div(s->n, BLOCK) * width * m->elem));
	at_load_rows(&b->at, m, width, false, s, s->x0, s->n, offset);
}

/* n rows from x on of one block. */
static uint32_t load_block(struct backward *b, const struct matrix *m, int64_t width, int64_t x,
			   int64_t n, int64_t offset)
{
	struct slabs s = { .x0 = x, .n = n };

	load_rows(b, m, &s, width, offset);
	return s.buf;
}

/* What the queries need of the results: once, before all chunks. */
static void load_queries(struct backward *b, struct queries *q, const struct heads *h)
{
	struct attention *at = &b->at;
	uint32_t rows = (uint32_t)q->n, width = (uint32_t)at->width;
	uint32_t product = lir_buf(at->lir, ISA_SPACE_SBUF, (uint64_t)width * 4);
	uint32_t y = load_block(b, &b->y, at->width, q->x0, q->n, h->offset[Y]);
	uint32_t dy = load_block(b, &b->dy, at->width, q->x0, q->n, h->offset[DY]);
	uint32_t lse = load_block(b, &b->lse, 1, q->x0, q->n, h->offset[LSE]);
	uint32_t engine = at_pick(at, V | G, false, 2 * at->width, 1);
	struct lop *op;

	lir_tensor_tensor(at->lir, engine, ISA_CT_F32, ISA_MULT,
			  lir_row(product, ISA_FP32, rows, 0, width),
			  lir_row(y, at->dtype, rows, 0, width),
			  lir_row(dy, at->dtype, rows, 0, width));
	q->d = at_new_column(at);
	op = lir_op(at->lir, engine, ISA_REDUCE);
	op->compute_type = ISA_CT_F32;
	op->op0 = ISA_ADD;
	op->n_axes = 1;
	op->dst = at_column(q->d, rows);
	op->src0 = lir_row(product, ISA_FP32, rows, 0, width);
	if (at->dropout.on)
		at_tensor_scalar(at, engine, at_column(q->d, rows), at_column(q->d, rows), ISA_DIV,
				 at_bits(-at->dropout.factor), ISA_BYPASS, 0);
	/* -inf of a query that sees no key becomes a shift that is finite, but leaves nothing. */
	q->shift = at_new_column(at);
	at_tensor_scalar(at, engine, at_column(q->shift, rows), at_column(lse, rows), ISA_MULT,
			 at_bits(-1), ISA_MIN, NOTHING);
}

static void load(struct backward *b, const struct unit *u)
{
	const struct heads *h = u->chunk->heads;
	struct slab *s = u->slab;
	struct chunk *c = u->chunk;

	if (u->first)
		load_queries(b, u->queries, h);
	if (c->kt.buf == LIR_NONE) {
		load_columns(b, &b->kt, &c->kt, b->at.head, h->offset[K]);
		load_columns(b, &b->vt, &c->vt, b->at.width, h->offset[VALUES]);
		load_rows(b, &b->k, &c->k, b->at.head, h->offset[K]);
	}
	if (s->qt.buf == LIR_NONE) {
		load_columns(b, &b->qt, &s->qt, b->at.head, h->offset[Q]);
		load_columns(b, &b->dyt, &s->dyt, b->at.width, h->offset[DY]);
		load_rows(b, &b->q, &s->q, b->at.head, h->offset[Q]);
		load_rows(b, &b->dy, &s->dy, b->at.width, h->offset[DY]);
	}
}

/* --- steps of a unit ------------------------------------------------------------------- */

/* Columns of a block of queries, or its rows. */
static struct ltile columns_of(const struct backward *b, const struct unit *u,
			       const struct slabs *s, int64_t depth)
{
	return lir_row(s->buf, b->at.dtype, (uint32_t)depth,
		       (uint32_t)((u->queries->x0 - s->x0) * b->at.elem), (uint32_t)u->queries->n);
}

static struct ltile rows_of(const struct backward *b, const struct unit *u, const struct slabs *s,
			    int64_t width)
{
	int64_t block = (u->queries->x0 - s->x0) / BLOCK;

	return lir_row(s->buf, b->at.dtype, (uint32_t)u->queries->n,
		       (uint32_t)(block * width * b->at.elem), (uint32_t)width);
}

static uint32_t keys_in(const struct unit *u, int64_t block)
{
	return (uint32_t)nci_min(BLOCK, u->n - block * BLOCK);
}

/* Adds MASKED to the scores of keys behind each query. */
static void mask_diagonal(struct backward *b, const struct unit *u, uint32_t scores)
{
	uint32_t rows = (uint32_t)u->queries->n, n;
	int64_t x = u->queries->x0 - u->chunk->x0;

	if (!b->at.causal || x < 0 || x >= u->n)
		return;
	n = (uint32_t)nci_min(BLOCK, u->n - x);
	panel_stationary(b->at.lir, lir_row(b->at.ident, ISA_BF16, rows, 0, rows));
	panel_matmul(b->at.lir, lir_row(scores, ISA_FP32, rows, (uint32_t)(x * 4), n),
		     lir_row(b->at.above, ISA_BF16, rows, 0, n), true);
}

/* slopes = (products - d) * weights */
static void find_slopes(struct backward *b, const struct unit *u, struct ltile slopes,
			struct ltile products, struct ltile weights)
{
	struct attention *at = &b->at;
	struct lop *op = at_scalar_tensor(at, at_pick(at, V | G, true, u->n, 1), slopes, products,
					  ISA_SUB, 0, ISA_MULT, weights);

	op->flags = ISA_F_VEC0;
	op->vec0 = (struct lcol){ .buf = u->queries->d, .dtype = ISA_FP32 };
}

/* The same of unit t with dropout: products * dropped + d * weights; dropped ones are the unit's then. */
static void find_dropped_slopes(struct backward *b, struct unit *u, struct ltile slopes,
				struct ltile products, struct ltile weights, uint32_t t)
{
	struct attention *at = &b->at;
	uint32_t rows = (uint32_t)u->queries->n, n = (uint32_t)u->n;
	struct ltile kept = weights, sum;
	struct lop *op;

	kept.buf = u->weights = lir_buf(at->lir, ISA_SPACE_SBUF, (uint64_t)n * at->elem);
	at_dropout_draw(at, t);
	at_dropout_apply(at, t, kept.buf, weights.buf);
	sum = lir_row(lir_buf(at->lir, ISA_SPACE_SBUF, (uint64_t)n * 4), ISA_FP32, rows, 0, n);
	lir_tensor_tensor(at->lir, at_pick(at, V | G, true, n, 1), ISA_CT_F32, ISA_MULT, sum,
			  products, kept);
	op = at_scalar_tensor(at, at_pick(at, V | G, false, n, 1), slopes, weights, ISA_MULT, 0,
			      ISA_ADD, sum);
	op->flags = ISA_F_VEC0;
	op->vec0 = (struct lcol){ .buf = u->queries->d, .dtype = ISA_FP32 };
}

static void make_slopes(struct backward *b, struct unit *u, uint32_t t)
{
	struct attention *at = &b->at;
	const struct queries *q = u->queries;
	const struct chunk *c = u->chunk;
	uint32_t rows = (uint32_t)q->n, n = (uint32_t)u->n, source = b->scores[t % SLOTS];
	struct ltile products = lir_row(b->products[t % SLOTS], ISA_FP32, rows, 0, n);
	struct ltile scores = lir_row(source, ISA_FP32, rows, 0, n), weights, slopes;

	panel_stationary(at->lir, columns_of(b, u, &u->slab->qt, at->head));
	panel_matmul(at->lir, scores, lir_row(c->kt.buf, at->dtype, (uint32_t)at->head, 0, n),
		     false);
	mask_diagonal(b, u, source);
	panel_stationary(at->lir, columns_of(b, u, &u->slab->dyt, at->width));
	panel_matmul(at->lir, products, lir_row(c->vt.buf, at->dtype, (uint32_t)at->width, 0, n),
		     false);
	if (at->masked)
		scores = at_add_mask(at, &b->mask,
				     c->heads->offset[MASK] + q->x0 * b->mask.k_step +
					     c->x0 * b->mask.x_step,
				     scores);
	u->weights = lir_buf(at->lir, ISA_SPACE_SBUF, (uint64_t)n * at->elem);
	u->slopes = lir_buf(at->lir, ISA_SPACE_SBUF, (uint64_t)n * at->elem);
	weights = lir_row(u->weights, at->dtype, rows, 0, n);
	at_activation(at, ISA_ACT_EXP, weights, scores, at_bits(at->masked ? 1 : at->scale),
		      q->shift);
	slopes = lir_row(u->slopes, at->dtype, rows, 0, n);
	if (at->dropout.on)
		find_dropped_slopes(b, u, slopes, products, weights, t);
	else
		find_slopes(b, u, slopes, products, weights);
}

/* Where block's part of dv or dk is added up. */
static struct ltile sum_of_keys(uint32_t psum, int64_t block, uint32_t keys, int64_t width)
{
	return lir_row(psum, ISA_FP32, keys, (uint32_t)(block * HEAD_BYTES), (uint32_t)width);
}

static void add_to_keys(struct backward *b, struct unit *u)
{
	struct attention *at = &b->at;
	uint32_t rows = (uint32_t)u->queries->n;

	for (int64_t i = 0; i * BLOCK < u->n; i++) {
		uint32_t keys = keys_in(u, i), from = (uint32_t)(i * BLOCK * at->elem);

		panel_stationary(at->lir, lir_row(u->weights, at->dtype, rows, from, keys));
		panel_matmul(at->lir, sum_of_keys(b->dv, i, keys, at->width),
			     rows_of(b, u, &u->slab->dy, at->width), u->chunk->begun[i]);
		panel_stationary(at->lir, lir_row(u->slopes, at->dtype, rows, from, keys));
		panel_matmul(at->lir, sum_of_keys(b->dk, i, keys, at->head),
			     rows_of(b, u, &u->slab->q, at->head), u->chunk->begun[i]);
		u->chunk->begun[i] = true;
	}
}

static void turn_slopes(struct backward *b, struct unit *u)
{
	struct attention *at = &b->at;
	uint32_t rows = (uint32_t)u->queries->n, block = rows * at->elem;
	int64_t whole = u->n / BLOCK;

	u->turned = lir_buf(at->lir, ISA_SPACE_SBUF, (uint64_t)CHUNK_BLOCKS * block);
	for (int64_t i = 0; i * BLOCK < u->n; i++)
		panel_transpose(at->lir,
				lir_row(at->turn, at->dtype, keys_in(u, i), (uint32_t)i * block,
					rows),
				lir_row(u->slopes, at->dtype, rows,
					(uint32_t)(i * BLOCK * at->elem), keys_in(u, i)));
	for (int64_t i = 0; i * BLOCK < u->n; i += i < whole ? whole : 1) {
		uint32_t n = (uint32_t)(i < whole ? whole : 1) * rows;

		lir_copy(at->lir, at_pick(at, V | G, true, n, at->elem == 2 ? 2 : 1), ISA_CT_BITS,
			 lir_row(u->turned, at->dtype, keys_in(u, i), (uint32_t)i * block, n),
			 lir_row(at->turn, at->dtype, keys_in(u, i), (uint32_t)i * block, n));
	}
}

static void add_to_queries(struct backward *b, struct unit *u, uint32_t slot)
{
	struct attention *at = &b->at;
	struct queries *q = u->queries;
	uint32_t rows = (uint32_t)q->n, head = (uint32_t)at->head, block = rows * at->elem;
	struct ltile more = lir_row(b->sums, ISA_FP32, rows, slot * HEAD_BYTES, head), sums;

	for (int64_t i = 0; i * BLOCK < u->n; i++) {
		panel_stationary(at->lir, lir_row(u->turned, at->dtype, keys_in(u, i),
						  (uint32_t)i * block, rows));
		panel_matmul(at->lir, more,
			     lir_row(u->chunk->k.buf, at->dtype, keys_in(u, i),
				     (uint32_t)i * head * at->elem, head),
			     i > 0);
	}
	if (u->first)
		q->dq = lir_buf(at->lir, ISA_SPACE_SBUF, (uint64_t)head * 4);
	sums = lir_row(q->dq, ISA_FP32, rows, 0, head);
	if (u->first)
		lir_copy(at->lir, at_pick(at, V | G | S, true, head, 1), ISA_CT_F32, sums, more);
	else
		lir_tensor_tensor(at->lir, at_pick(at, V | G, true, head, 1), ISA_CT_F32, ISA_ADD,
				  sums, sums, more);
}

/* --- results --------------------------------------------------------------------------- */

/* The kind of the node that is stored. */
static enum node_kind kind_of(const struct backward *b, const struct store *st)
{
	return b->at.ev.legal->nodes[st->node].kind;
}

/* Stores n rows of width elements from x on of every result of that kind. */
static void store(struct backward *b, enum node_kind kind, int64_t place, int64_t x, int64_t n,
		  int64_t width, uint32_t buf)
{
	const struct attention *at = &b->at;
	uint32_t nd = at->node->nd;

	for (uint32_t i = 0; i < at->group->n_stores; i++) {
		const struct store *st = &at->group->stores[i];
		struct lstep dims[2] = {
			{ n, st->stride[nd - 2] * at->elem, 0 },
			{ width, st->stride[nd - 1] * at->elem, at->elem },
		};

		if (kind_of(b, st) != kind)
			continue;
		lir_store(at->lir, st->slot, at_store_offset(at, st, place, x, at->elem), buf, 0, 0,
			  at->elem, 1, 2, dims);
		at_by_sync(&b->at);
	}
}

/* sums * scale, rounded; where there are no sums: 0. */
static uint32_t scaled(struct backward *b, bool psum, bool any, struct ltile sums, float scale)
{
	struct attention *at = &b->at;
	uint32_t n = sums.count[ISA_TILE_DIMS - 1];
	uint32_t buf = lir_buf(at->lir, ISA_SPACE_SBUF, (uint64_t)n * at->elem);
	struct ltile dst = lir_row(buf, at->dtype, sums.nparts, 0, n);

	if (any)
		at_tensor_scalar(at, at_pick(at, V | G | S, psum, n, 1), dst, sums, ISA_MULT,
				 at_bits(scale), ISA_BYPASS, 0);
	else
		lir_memset(at->lir, at_pick(at, V | G, false, n, 1), ISA_CT_F32, dst, 0);
	return buf;
}

static void finish_queries(struct backward *b, const struct unit *u)
{
	const struct queries *q = u->queries;
	uint32_t buf = scaled(b, false, true,
			      lir_row(q->dq, ISA_FP32, (uint32_t)q->n, 0, (uint32_t)b->at.head),
			      b->at.scale * b->at.dropout.factor);

	store(b, N_ATTENTION_GRAD, u->chunk->place, q->x0, q->n, b->at.head, buf);
}

static void finish_keys(struct backward *b, const struct chunk *c)
{
	struct attention *at = &b->at;

	for (int64_t i = 0; i * BLOCK < c->n; i++) {
		int64_t x = c->x0 + i * BLOCK, n = nci_min(BLOCK, c->n - i * BLOCK);

		store(b, N_ATTENTION_GRAD_V, c->place, x, n, at->width,
		      scaled(b, true, c->begun[i], sum_of_keys(b->dv, i, (uint32_t)n, at->width),
			     at->dropout.factor));
		store(b, N_ATTENTION_GRAD_K, c->place, x, n, at->head,
		      scaled(b, true, c->begun[i], sum_of_keys(b->dk, i, (uint32_t)n, at->head),
			     at->scale * at->dropout.factor));
	}
}

/* --- the units ------------------------------------------------------------------------- */

static struct slabs new_slabs(int64_t x0, int64_t n)
{
	return (struct slabs){ .buf = LIR_NONE, .x0 = x0, .n = n };
}

/* Keys of the chunk that the queries see, whole blocks of them: their masks do the rest. */
static int64_t keys_seen(const struct backward *b, const struct queries *q, const struct chunk *c)
{
	int64_t end = c->x0 + c->n;

	if (b->at.causal)
		end = nci_min(end, nci_ceil_div(q->x0 + q->n, BLOCK) * BLOCK);
	return end - c->x0;
}

static void add_chunk(struct backward *b, struct queries *queries, struct chunk *c)
{
	struct slab *slab = NULL;
	struct unit *u = NULL;

	for (int64_t x = 0; x < b->at.n_q; x += BLOCK) {
		struct queries *q = &queries[x / BLOCK];

		if (x % SLAB == 0)
			slab = NULL;
		if (keys_seen(b, q, c) <= 0)
			continue;
		if (!slab) {
			int64_t x0 = x / SLAB * SLAB;

			slab = nci_alloc(b->at.ev.ctx, sizeof(*slab));
			slab->qt = new_slabs(x0, nci_min(SLAB, b->at.n_q - x0));
			slab->dyt = slab->q = slab->dy = slab->qt;
		}
		b->units = nci_grow(b->at.ev.ctx, b->units, &b->cap_units, b->n_units + 1,
				    sizeof(*b->units));
		u = &b->units[b->n_units++];
		*u = (struct unit){ .queries = q,
				    .slab = slab,
				    .chunk = c,
				    .n = keys_seen(b, q, c),
				    .first = c->x0 == 0 };
		at_dropout_add(&b->at, c->place, x, q->n, c->x0, u->n);
		u->last = c->x0 + c->n == b->at.n_k ||
			  (b->at.causal && c->x0 + c->n >= q->x0 + q->n);
	}
	if (u)
		u->ends = true;
	else
		finish_keys(b, c);
}

static void add_batch(struct backward *b, int64_t place)
{
	struct nc_ctx *ctx = b->at.ev.ctx;
	struct queries *q = nci_alloc(ctx, (size_t)nci_ceil_div(b->at.n_q, BLOCK) * sizeof(*q));
	struct heads *h = nci_alloc(ctx, sizeof(*h));

	*h = at_heads(&b->at, place);
	for (int64_t x = 0; x < b->at.n_q; x += BLOCK)
		q[x / BLOCK] = (struct queries){ .x0 = x, .n = nci_min(BLOCK, b->at.n_q - x) };
	for (int64_t x = 0; x < b->at.n_k; x += CHUNK) {
		struct chunk *c = nci_alloc(ctx, sizeof(*c));

		c->heads = h;
		c->place = place;
		c->x0 = x;
		c->n = nci_min(CHUNK, b->at.n_k - x);
		c->kt = c->vt = c->k = new_slabs(x, c->n);
		add_chunk(b, q, c);
	}
}

static struct unit *unit_at(const struct backward *b, uint32_t t, uint32_t lag)
{
	return t >= lag && t - lag < b->n_units ? &b->units[t - lag] : NULL;
}

static void emit(struct backward *b)
{
	struct unit *u;

	for (uint32_t t = 0; t < AHEAD; t++)
		if ((u = unit_at(b, t, 0)))
			load(b, u);
	for (uint32_t t = 0; t < b->n_units + LAG_QUERIES; t++) {
		if ((u = unit_at(b, t + AHEAD, 0)))
			load(b, u);
		if ((u = unit_at(b, t, 0)))
			make_slopes(b, u, t);
		if ((u = unit_at(b, t, LAG_KEYS))) {
			turn_slopes(b, u);
			add_to_keys(b, u);
			if (u->ends)
				finish_keys(b, u->chunk);
		}
		if ((u = unit_at(b, t, LAG_QUERIES))) {
			add_to_queries(b, u, t % SUM_SLOTS);
			if (u->last)
				finish_queries(b, u);
		}
	}
}

/* --- the kernel -------------------------------------------------------------------------- */

_Static_assert(CHUNK_BLOCKS *HEAD_BYTES <= ISA_PSUM_BANK_BYTES, "dv and dk have a bank each");
_Static_assert(2 * SLOTS + 4 <= ISA_PSUM_BANKS, "PSUM");

static void divide_psum(struct backward *b)
{
	for (uint32_t i = 0; i < SLOTS; i++) {
		b->scores[i] = lir_buf(b->at.lir, ISA_SPACE_PSUM, CHUNK * 4);
		b->products[i] = lir_buf(b->at.lir, ISA_SPACE_PSUM, CHUNK * 4);
	}
	b->dv = lir_buf(b->at.lir, ISA_SPACE_PSUM, ISA_PSUM_BANK_BYTES);
	b->dk = lir_buf(b->at.lir, ISA_SPACE_PSUM, ISA_PSUM_BANK_BYTES);
	b->sums = lir_buf(b->at.lir, ISA_SPACE_PSUM, ISA_PSUM_BANK_BYTES);
	b->at.turn = lir_buf(b->at.lir, ISA_SPACE_PSUM, ISA_PSUM_BANK_BYTES);
}

static void take_operands(struct backward *b)
{
	struct attention *at = &b->at;

	b->q = at_operand(at, Q, false);
	b->qt = at_operand(at, Q, true);
	b->k = at_operand(at, K, false);
	b->kt = at_operand(at, K, true);
	b->vt = at_operand(at, VALUES, true);
	b->dy = at_operand(at, DY, false);
	b->dyt = at_operand(at, DY, true);
	b->y = at_operand(at, Y, false);
	b->lse = at_operand(at, LSE, false);
	at->masked = at->node->n_src > MASK;
	if (at->masked)
		b->mask = at_operand(at, MASK, false);
}

void nci_attention_grad(struct legal *legal, struct lir *lir, struct group *group)
{
	struct backward *b = nci_alloc(legal->ctx, sizeof(*b));
	int64_t batches;

	at_open(&b->at, legal, lir, group);
	at_dropout_open(&b->at, CHUNK);
	take_operands(b);
	divide_psum(b);
	if (b->at.causal)
		at_diagonal(&b->at);
	batches = b->at.node->elems / (b->at.n_q * b->at.head);
	for (int64_t i = 0; i < batches; i++)
		add_batch(b, i);
	emit(b);
}
