/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention without its matrix of scores in memory. A unit of work is a block of
 * up to 128 queries with a chunk of up to 1024 keys:
 *
 *   scores     tensor          q k', queries on the partitions, in two PSUM banks
 *   greatest   vector, gpsimd  of each row; with it the shift that exponentials need
 *   weights    scalar          exp(scale * score - shift), rounded, in SBUF
 *   turned     tensor          128 x 128 of them at a time, keys on the partitions, by way of PSUM;
 *              or DMA          by way of HBM, as many as keep both equally busy
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
 * With dropout, weights are zeroed before they are turned, by bits that vector and gpsimd make meanwhile
 * (attention_dropout.c). The sum of all weights is scalar's then, which adds them up as it makes them, in
 * place of the column of ones.
 *
 * Below the diagonal of causal attention chunks are whole; those above it are left
 * out, and the tensor engine itself adds the mask of a block on it, as one more product.
 */
#include <string.h>

#include "attention.h"

#define BANK_KEYS    (ISA_PSUM_BANK_BYTES / 4) /* of scores in one bank */
#define CHUNK_BLOCKS 8
#define CHUNK	     (CHUNK_BLOCKS * BLOCK) /* keys */
#define PANEL_BYTES  8192 /* of keys kept on chip, a partition */
#define QUERIES	     2048 /* that pass by while a panel of keys stays */
#define TURNED	     4 /* blocks that leave PSUM at once */

#define BOUNCES (LAG_SUM) /* places for blocks that DMA turns */

/* PSUM: units of which each step's results are there. */
#define SCORE_SLOTS 3
#define SUM_SLOTS   3
#define SUM_BYTES   ((NC_ATTENTION_HEAD_MAX + 1) * 4)

/* Units by which the later steps are behind. */
#define LAG_FETCH 5
#define LAG_TURN  6
#define LAG_SUM	  12
/* The same of units without DMA. */
#define LAG_TURN_SHORT 3
#define LAG_SUM_SHORT  4
#define AHEAD	       8 /* loads are in front */
#define LAST_UNITS     6 /* DMA is not waited for at the end */
#define WINDOW	       5000 /* cycles that tensor or DMA engines may be idle and catch up */

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
	uint32_t total; /* dropout: column, sum of the weights */
	int64_t by_dma; /* blocks, the first ones, that DMA turns */
	uint32_t bounce; /* slot in which they are meanwhile */
};

struct forward {
	struct attention at;
	struct matrix q, k, v, mask;
	struct unit *units;
	uint32_t n_units, cap_units;
	uint32_t scores[SCORE_SLOTS], sums; /* PSUM */
	uint32_t half; /* of what is turned, counted on */
	int64_t columns; /* of v and, without dropout, ones */
};

/* Sees to it that queries or keys up to x are there. */
static void need(struct forward *f, struct slabs *s, int64_t end, uint64_t bytes,
		 void (*load)(struct forward *f, struct slabs *s, int64_t x, int64_t n,
			      const struct heads *h),
		 const struct heads *h)
{
	if (s->buf == LIR_NONE)
		s->buf = lir_buf(f->at.lir, ISA_SPACE_SBUF, bytes);
	while (s->x0 + s->loaded < end) {
		int64_t n = nci_min(SLAB, s->n - s->loaded);

		load(f, s, s->x0 + s->loaded, n, h);
		s->loaded += n;
	}
}

static void load_q(struct forward *f, struct slabs *s, int64_t x, int64_t n, const struct heads *h)
{
	at_load_turned(&f->at, &f->q, f->at.head, s, x, n, h->offset[0]);
}

static void load_k(struct forward *f, struct slabs *s, int64_t x, int64_t n, const struct heads *h)
{
	at_load_turned(&f->at, &f->k, f->at.head, s, x, n, h->offset[1]);
}

static void load_v(struct forward *f, struct slabs *s, int64_t x, int64_t n, const struct heads *h)
{
	at_load_rows(&f->at, &f->v, f->at.width, f->columns > f->at.width, s, x, n, h->offset[2]);
}

static void load(struct forward *f, const struct unit *u)
{
	struct queries *q = u->queries;
	struct slabs *k = &u->keys->k, *v = &u->keys->v;

	need(f, q->qt, q->x0 + q->n, (uint64_t)(q->qt->n * f->at.elem), load_q, q->heads);
	need(f, k, u->x0 + u->n, (uint64_t)(k->n * f->at.elem), load_k, q->heads);
	need(f, v, u->x0 + u->n, (uint64_t)(nci_ceil_div(v->n, BLOCK) * f->columns * f->at.elem),
	     load_v, q->heads);
}

/* --- steps of a unit ------------------------------------------------------------------- */

/* The unit's keys that lie on the diagonal: their number, from *x on. */
static int64_t on_diagonal(const struct forward *f, const struct unit *u, int64_t *x)
{
	const struct queries *q = u->queries;

	*x = q->x0;
	if (!f->at.causal || q->x0 >= u->x0 + u->n || q->x0 + q->n <= u->x0)
		return 0;
	return nci_min(q->n, u->x0 + u->n - q->x0);
}

static void multiply_bank(struct forward *f, const struct unit *u, int64_t x)
{
	const struct queries *q = u->queries;
	uint32_t n = (uint32_t)nci_min(BANK_KEYS, u->n - x);

	panel_matmul(f->at.lir, lir_row(u->source, ISA_FP32, (uint32_t)q->n, (uint32_t)(x * 4), n),
		     lir_row(u->keys->k.buf, f->at.dtype, (uint32_t)f->at.head,
			     (uint32_t)((u->x0 + x - u->keys->k.x0) * f->at.elem), n),
		     false);
}

/* The first bank of scores; */
static void begin_scores(struct forward *f, struct unit *u, uint32_t slot)
{
	const struct queries *q = u->queries;

	u->source = f->scores[slot];
	panel_stationary(f->at.lir,
			 lir_row(q->qt->buf, f->at.dtype, (uint32_t)f->at.head,
				 (uint32_t)((q->x0 - q->qt->x0) * f->at.elem), (uint32_t)q->n));
	multiply_bank(f, u, 0);
}

/* then the others, and what causality leaves out. */
static void end_scores(struct forward *f, struct unit *u)
{
	uint32_t rows = (uint32_t)u->queries->n;
	int64_t x, diagonal = on_diagonal(f, u, &x);

	for (int64_t i = BANK_KEYS; i < u->n; i += BANK_KEYS)
		multiply_bank(f, u, i);
	if (!diagonal)
		return;
	panel_stationary(f->at.lir, lir_row(f->at.ident, ISA_BF16, rows, 0, rows));
	panel_matmul(f->at.lir,
		     lir_row(u->source, ISA_FP32, rows, (uint32_t)((x - u->x0) * 4),
			     (uint32_t)diagonal),
		     lir_row(f->at.above, ISA_BF16, rows, 0, (uint32_t)diagonal), true);
}

/* The greatest of n scores of each row from x on; returns the engine. */
static uint32_t find_greatest(struct forward *f, struct unit *u, int64_t x, int64_t n,
			      uint32_t greatest)
{
	uint32_t rows = (uint32_t)u->queries->n,
		 engine = at_pick(&f->at, V | G, !f->at.masked, n, 1);
	struct lop *op = lir_op(f->at.lir, engine, ISA_REDUCE);

	op->compute_type = ISA_CT_F32;
	op->op0 = ISA_MAX;
	op->n_axes = 1;
	op->dst = at_column(greatest, rows);
	op->src0 = lir_row(u->source, ISA_FP32, rows, (uint32_t)(x * 4), (uint32_t)n);
	return engine;
}

/* The rows' new shift. Two engines look at a bank each, the first while scores go into the second. */
static void find_shift(struct forward *f, struct unit *u)
{
	struct queries *q = u->queries;
	uint32_t rows = (uint32_t)q->n, minus = at_bits(f->at.masked ? -1 : -f->at.scale);

	for (int64_t x = 0; x < u->n; x += BANK_KEYS) {
		uint32_t greatest = at_new_column(&f->at), old = q->shift;
		uint32_t engine = find_greatest(f, u, x, nci_min(BANK_KEYS, u->n - x), greatest);

		q->shift = at_new_column(&f->at);
		at_pick(&f->at, 1u << engine, false, 1, 1);
		if (u->first && !x)
			at_tensor_scalar(&f->at, engine, at_column(q->shift, rows),
					 at_column(greatest, rows), ISA_MULT, minus, ISA_MIN,
					 NOTHING);
		else
			at_scalar_tensor(&f->at, engine, at_column(q->shift, rows),
					 at_column(greatest, rows), ISA_MULT, minus, ISA_MIN,
					 at_column(old, rows));
	}
}

/* The weights of unit t, and by what the rows' sums so far are scaled. */
static void find_weights(struct forward *f, struct unit *u, uint32_t t)
{
	uint32_t rows = (uint32_t)u->queries->n, n = (uint32_t)u->n, old = u->queries->shift;
	struct lop *op;

	if (f->at.masked) {
		struct ltile sum =
			at_add_mask(&f->at, &f->mask,
				    u->queries->heads->offset[3] + u->queries->x0 * f->mask.k_step +
					    u->x0 * f->mask.x_step,
				    lir_row(u->source, ISA_FP32, rows, 0, n));

		u->source = sum.buf;
	}
	find_shift(f, u);
	u->weights = lir_buf(f->at.lir, ISA_SPACE_SBUF, (uint64_t)(n * f->at.elem));
	u->total = f->at.dropout.on ? at_new_column(&f->at) : LIR_NONE;
	op = at_activation(&f->at, ISA_ACT_EXP, lir_row(u->weights, f->at.dtype, rows, 0, n),
			   lir_row(u->source, ISA_FP32, rows, 0, n),
			   at_bits(f->at.masked ? 1 : f->at.scale), u->queries->shift);
	if (f->at.dropout.on) {
		op->flags |= ISA_F_ACCUM;
		op->src1 = at_column(u->total, rows);
		at_dropout_draw(&f->at, t);
		at_dropout_apply(&f->at, t, u->weights, u->weights);
	}
	if (u->first)
		return;
	u->alpha = at_new_column(&f->at);
	at_activation(&f->at, ISA_ACT_EXP, at_column(u->alpha, rows), at_column(old, rows),
		      at_bits(-1), u->queries->shift);
}

/* Copies what was turned, of blocks first .. first + blocks - 1. */
static void take_turned(struct forward *f, const struct unit *u, int64_t first, int64_t blocks,
			uint32_t from)
{
	int64_t columns = u->queries->n, block = columns * f->at.elem;

	for (int tail = 0; tail < 2; tail++) {
		int64_t whole = nci_min(blocks, u->n / BLOCK - first);
		int64_t n = tail ? blocks - whole : whole;
		uint32_t rows = (uint32_t)(tail ? u->n % BLOCK : BLOCK);
		int64_t skip = tail ? whole : 0;

		if (!n)
			continue;
		lir_copy(f->at.lir,
			 at_pick(&f->at, V | G, true, n * columns, f->at.elem == 2 ? 2 : 1),
			 ISA_CT_BITS,
			 lir_row(u->turned, f->at.dtype, rows, (uint32_t)((first + skip) * block),
				 (uint32_t)(n * columns)),
			 lir_row(f->at.turn, f->at.dtype, rows, (uint32_t)(from + skip * block),
				 (uint32_t)(n * columns)));
	}
}

/*
 * Transfers between operations of one kernel: sched.c orders those of different
 * groups only, so those that write have a group of their own.
 */
#define WRITING (1u << 31)

/* Sends the blocks that DMA turns to their slot. */
static void send_weights(struct forward *f, struct unit *u, uint32_t slot)
{
	int64_t keys = u->by_dma * BLOCK;
	struct lstep dims[2] = {
		{ BLOCK, keys * f->at.elem, 0 },
		{ keys, f->at.elem, f->at.elem },
	};

	if (!u->by_dma)
		return;
	u->bounce = f->at.lir->bounce + slot;
	f->at.lir->group ^= WRITING;
	lir_store(f->at.lir, u->bounce, 0, u->weights, 0, 0, f->at.elem, 1, 2, dims);
	at_by_sync(&f->at);
	f->at.lir->group ^= WRITING;
}

/* Loads them, turned. */
static void fetch_turned(struct forward *f, struct unit *u)
{
	int64_t blocks = nci_ceil_div(u->n, BLOCK), columns = u->queries->n;

	if (!u->by_dma)
		return;
	u->turned = lir_buf(f->at.lir, ISA_SPACE_SBUF, (uint64_t)(blocks * columns * f->at.elem));
	for (int64_t i = 0; i < u->by_dma; i++) {
		struct lstep dims[2] = {
			{ BLOCK, f->at.elem, 0 },
			{ columns, u->by_dma * BLOCK * f->at.elem, f->at.elem },
		};

		lir_load(f->at.lir, u->turned, 0, (uint32_t)(i * columns * f->at.elem), u->bounce,
			 i * BLOCK * f->at.elem, f->at.elem, 1, 2, dims);
	}
}

/* The other blocks, on the tensor engine. */
static void turn_weights(struct forward *f, struct unit *u)
{
	int64_t blocks = nci_ceil_div(u->n, BLOCK), columns = u->queries->n;
	uint32_t half = TURNED * BLOCK * f->at.elem;

	if (!u->by_dma)
		u->turned = lir_buf(f->at.lir, ISA_SPACE_SBUF,
				    (uint64_t)(blocks * columns * f->at.elem));
	for (int64_t i = u->by_dma; i < blocks; i += TURNED) {
		int64_t n = nci_min(TURNED, blocks - i);
		uint32_t at_psum = f->half++ * half % ISA_PSUM_BANK_BYTES;

		for (int64_t j = i; j < i + n; j++)
			panel_transpose(
				f->at.lir,
				lir_row(f->at.turn, f->at.dtype,
					(uint32_t)nci_min(BLOCK, u->n - j * BLOCK),
					at_psum + (uint32_t)((j - i) * columns * f->at.elem),
					(uint32_t)columns),
				lir_row(u->weights, f->at.dtype, (uint32_t)columns,
					(uint32_t)(j * BLOCK * f->at.elem),
					(uint32_t)nci_min(BLOCK, u->n - j * BLOCK)));
		take_turned(f, u, i, n, at_psum);
	}
}

static struct ltile sums_tile(const struct forward *f, const struct unit *u, uint32_t slot)
{
	return lir_row(f->sums, ISA_FP32, (uint32_t)u->queries->n, slot * SUM_BYTES,
		       (uint32_t)f->columns);
}

static void weigh_values(struct forward *f, struct unit *u, uint32_t slot)
{
	int64_t columns = u->queries->n, row = f->columns * f->at.elem;
	int64_t first = (u->x0 - u->keys->v.x0) / BLOCK;

	for (int64_t i = 0; i * BLOCK < u->n; i++) {
		uint32_t rows = (uint32_t)nci_min(BLOCK, u->n - i * BLOCK);

		panel_stationary(f->at.lir,
				 lir_row(u->turned, f->at.dtype, rows,
					 (uint32_t)(i * columns * f->at.elem), (uint32_t)columns));
		panel_matmul(f->at.lir, sums_tile(f, u, slot),
			     lir_row(u->keys->v.buf, f->at.dtype, rows,
				     (uint32_t)((first + i) * row), (uint32_t)f->columns),
			     i > 0);
	}
}

/* sums = more, or sums * alpha + more */
static void add_to(struct forward *f, const struct unit *u, struct ltile sums, struct ltile more,
		   bool psum)
{
	int64_t n = sums.count[ISA_TILE_DIMS - 1];
	struct lop *op;

	if (u->first) {
		lir_copy(f->at.lir, at_pick(&f->at, V | G | S, psum, n, 1), ISA_CT_F32, sums, more);
		return;
	}
	op = at_scalar_tensor(&f->at, at_pick(&f->at, V | G, psum, n, 1), sums, sums, ISA_MULT, 0,
			      ISA_ADD, more);
	op->flags = ISA_F_VEC0;
	op->vec0 = (struct lcol){ .buf = u->alpha, .dtype = ISA_FP32 };
}

static void add_sums(struct forward *f, struct unit *u, uint32_t slot)
{
	struct queries *q = u->queries;
	uint32_t rows = (uint32_t)q->n;

	if (u->first)
		q->sums = lir_buf(f->at.lir, ISA_SPACE_SBUF, SUM_BYTES);
	add_to(f, u, lir_row(q->sums, ISA_FP32, rows, 0, (uint32_t)f->columns),
	       sums_tile(f, u, slot), true);
	if (f->at.dropout.on)
		add_to(f, u, lir_row(q->sums, ISA_FP32, rows, (uint32_t)(f->at.width * 4), 1),
		       at_column(u->total, rows), false);
}

/* --- results --------------------------------------------------------------------------- */

static uint32_t make_lse(struct forward *f, const struct queries *q)
{
	uint32_t rows = (uint32_t)q->n, ln = at_new_column(&f->at), lse = at_new_column(&f->at);

	at_activation(&f->at, ISA_ACT_LN, at_column(ln, rows),
		      lir_row(q->sums, ISA_FP32, rows, (uint32_t)(f->at.width * 4), 1), at_bits(1),
		      LIR_NONE);
	lir_tensor_tensor(f->at.lir, at_pick(&f->at, V | G, false, 1, 1), ISA_CT_F32, ISA_SUB,
			  at_column(lse, rows), at_column(ln, rows), at_column(q->shift, rows));
	return lse;
}

static uint32_t make_result(struct forward *f, const struct queries *q)
{
	uint32_t rows = (uint32_t)q->n, divisor = q->sums;
	uint32_t buf = lir_buf(f->at.lir, ISA_SPACE_SBUF, (uint64_t)(f->at.width * f->at.elem));
	struct lop *op;

	/* Without a mask each row has a key, and its sum is about 1 or more. */
	if (f->at.masked) {
		divisor = lir_buf(f->at.lir, ISA_SPACE_SBUF, SUM_BYTES);
		at_tensor_scalar(&f->at, at_pick(&f->at, V | G, false, 1, 1),
				 lir_row(divisor, ISA_FP32, rows, (uint32_t)(f->at.width * 4), 1),
				 lir_row(q->sums, ISA_FP32, rows, (uint32_t)(f->at.width * 4), 1),
				 ISA_MAX, TINY, ISA_BYPASS, 0);
	}
	op = at_tensor_scalar(&f->at, at_pick(&f->at, V | S, false, f->at.width, 1),
			      lir_row(buf, f->at.dtype, rows, 0, (uint32_t)f->at.width),
			      lir_row(q->sums, ISA_FP32, rows, 0, (uint32_t)f->at.width), ISA_DIV,
			      0, f->at.dropout.on ? ISA_MULT : ISA_BYPASS,
			      f->at.dropout.on ? at_bits(f->at.dropout.factor) : 0);
	op->flags = ISA_F_VEC0;
	op->vec0 = (struct lcol){ .buf = divisor,
				  .offset = (uint32_t)(f->at.width * 4),
				  .dtype = ISA_FP32 };
	return buf;
}

static void store(struct forward *f, const struct queries *q, const struct store *st, uint32_t buf)
{
	bool is_result = st->node == f->at.m->node;
	uint32_t nd = f->at.node->nd, elem = is_result ? f->at.elem : 4;
	struct lstep dims[2] = {
		{ q->n, st->stride[nd - 2] * elem, 0 },
		{ is_result ? f->at.width : 1, st->stride[nd - 1] * elem, elem },
	};

	lir_store(f->at.lir, st->slot, at_store_offset(&f->at, st, q->place, q->x0, elem), buf, 0,
		  0, elem, 1, 2, dims);
	at_by_sync(&f->at);
}

/* --- the units ------------------------------------------------------------------------- */

static struct slabs new_slabs(int64_t x0, int64_t n)
{
	return (struct slabs){ .buf = LIR_NONE, .x0 = x0, .n = n };
}

/* Keys that a block of queries sees. */
static int64_t keys_of(const struct forward *f, const struct queries *q)
{
	return f->at.causal ? nci_min(f->at.n_k, q->x0 + q->n) : f->at.n_k;
}

/* Chunks of about equal numbers of blocks, of one panel. */
static void add_units(struct forward *f, struct queries *q, struct keys *keys)
{
	int64_t end = nci_min(keys->k.x0 + keys->k.n, keys_of(f, q));
	int64_t blocks = nci_ceil_div(end - keys->k.x0, BLOCK), x = keys->k.x0;

	for (int64_t left = nci_ceil_div(blocks, CHUNK_BLOCKS); left > 0; left--) {
		int64_t n = nci_ceil_div(blocks, left);
		struct unit *u;

		f->units = nci_grow(f->at.ev.ctx, f->units, &f->cap_units, f->n_units + 1,
				    sizeof(*f->units));
		u = &f->units[f->n_units++];
		u->queries = q;
		u->keys = keys;
		u->x0 = x;
		u->n = nci_min(n * BLOCK, end - x);
		u->first = x == 0;
		u->last = x + u->n == keys_of(f, q);
		at_dropout_add(&f->at, q->place, q->x0, q->n, x, u->n);
		x += u->n;
		blocks -= n;
	}
}

/* Queries from x0 on, against all panels of keys. */
static void add_queries(struct forward *f, const struct heads *h, int64_t place, int64_t x0,
			int64_t n)
{
	int64_t blocks = nci_ceil_div(n, BLOCK), panel = PANEL_BYTES / f->at.elem;
	struct queries *q = nci_alloc(f->at.ev.ctx, (size_t)blocks * sizeof(*q));
	struct slabs *qt = NULL;

	for (int64_t i = 0; i < blocks; i++) {
		int64_t x = x0 + i * BLOCK;

		if (i * BLOCK % SLAB == 0) {
			qt = nci_alloc(f->at.ev.ctx, sizeof(*qt));
			*qt = new_slabs(x, nci_min(SLAB, x0 + n - x));
		}
		q[i] = (struct queries){ .heads = h,
					 .qt = qt,
					 .x0 = x,
					 .n = nci_min(BLOCK, x0 + n - x),
					 .place = place };
	}
	for (int64_t x = 0; x < keys_of(f, &q[blocks - 1]); x += panel) {
		struct keys *keys = nci_alloc(f->at.ev.ctx, sizeof(*keys));

		keys->k = keys->v = new_slabs(x, nci_min(panel, f->at.n_k - x));
		/* Of causal attention those with few keys come first and last. */
		for (int64_t j = 0; j < blocks; j++) {
			int64_t half = nci_ceil_div(blocks, 2);
			int64_t i = j < half ? 2 * j : 2 * (blocks - j) - 1;

			if (x < keys_of(f, &q[i]))
				add_units(f, &q[i], keys);
		}
	}
}

static void divide_psum(struct forward *f)
{
	for (uint32_t i = 0; i < SCORE_SLOTS; i++)
		f->scores[i] = lir_buf(f->at.lir, ISA_SPACE_PSUM, CHUNK * 4);
	f->at.turn = lir_buf(f->at.lir, ISA_SPACE_PSUM, ISA_PSUM_BANK_BYTES);
	f->sums = lir_buf(f->at.lir, ISA_SPACE_PSUM, SUM_SLOTS * SUM_BYTES);
}

_Static_assert(SUM_SLOTS *SUM_BYTES <= ISA_PSUM_BANK_BYTES, "sums share a bank");
_Static_assert((SCORE_SLOTS * CHUNK * 4) / ISA_PSUM_BANK_BYTES + 2 <= ISA_PSUM_BANKS, "PSUM");

static void finish(struct forward *f, struct unit *u)
{
	uint32_t result = LIR_NONE, lse = LIR_NONE;

	for (uint32_t i = 0; u->last && i < f->at.group->n_stores; i++) {
		const struct store *st = &f->at.group->stores[i];
		bool is_result = st->node == f->at.m->node;

		if (is_result && result == LIR_NONE)
			result = make_result(f, u->queries);
		if (!is_result && lse == LIR_NONE)
			lse = make_lse(f, u->queries);
		store(f, u->queries, st, is_result ? result : lse);
	}
}

/* The next unit of a step that is so many units behind, NULL: none is yet. */
static struct unit *next_unit(struct forward *f, uint32_t *next, uint32_t t, uint32_t lag)
{
	if (*next == f->n_units || *next + lag > t)
		return NULL;
	return &f->units[(*next)++];
}

static uint32_t lag_of(const struct forward *f, uint32_t i, uint32_t by_dma, uint32_t by_tensor)
{
	return i < f->n_units && f->units[i].by_dma ? by_dma : by_tensor;
}

/* All units, each step of each as far behind as the lags say. */
static void emit(struct forward *f)
{
	uint32_t loads = 0, fetches = 0, turns = 0, sums = 0, slot = 0, stores = 0, ready = 0;
	struct unit *u, *now;

	for (uint32_t t = 0; sums < f->n_units; t++) {
		while ((u = next_unit(f, &loads, t + AHEAD, 0)))
			load(f, u);
		while ((u = next_unit(f, &fetches, t, LAG_FETCH)))
			fetch_turned(f, u);
		now = t < f->n_units ? &f->units[t] : NULL;
		if (now)
			begin_scores(f, now, t % SCORE_SLOTS);
		while ((u = next_unit(f, &turns, t, lag_of(f, turns, LAG_TURN, LAG_TURN_SHORT))))
			turn_weights(f, u);
		if (now) {
			end_scores(f, now);
			find_weights(f, now, t);
			send_weights(f, now, t % BOUNCES);
		}
		while ((u = next_unit(f, &sums, t, lag_of(f, sums, LAG_SUM, LAG_SUM_SHORT)))) {
			weigh_values(f, u, slot % SUM_SLOTS);
			add_sums(f, u, slot++ % SUM_SLOTS);
		}
		/* A step later: scalar must not wait for sums. */
		for (; stores < ready; stores++)
			finish(f, &f->units[stores]);
		ready = sums;
	}
	for (; stores < ready; stores++)
		finish(f, &f->units[stores]);
}

/* --- who turns which blocks -------------------------------------------------------------- */

/* Cycles of the tensor engine in which the DMA engines move a block of 128 by 128. */
static int64_t dma_cycles(const struct forward *f)
{
	/* Bytes a cycle, less what descriptors and transposing cost. */
	static const int64_t rate[] = { [2] = 85, [3] = 133, [4] = 191 };

	return BLOCK * BLOCK * f->at.elem / rate[f->at.ev.ctx->target.arch];
}

/* Tensor and DMA engines as busy as each other, DMA only while there is other work to do meanwhile. */
static void divide_turning(struct forward *f)
{
	int64_t move = dma_cycles(f), tensor = 0, dma = 0, seen = 0;
	const struct keys *keys = NULL;
	struct lir *lir = f->at.lir;

	if (f->at.elem != 2 || f->n_units <= LAG_SUM)
		return;
	if (!lir->bounce) {
		lir->bounce = lir->n_slots;
		for (uint32_t i = 0; i < BOUNCES; i++)
			lir_scratch(lir, NC_BF16, BLOCK * CHUNK);
	}
	for (uint32_t i = 0; i + LAST_UNITS < f->n_units; i++) {
		struct unit *u = &f->units[i];
		int64_t blocks = nci_ceil_div(u->n, BLOCK), end = u->x0 + u->n;

		seen = u->keys == keys ? seen : u->x0;
		keys = u->keys;
		tensor += blocks * (3 * BLOCK + 8) + BLOCK / 2;
		/* Queries and results, keys and values. */
		dma += u->first ? 2 * move : 0;
		dma += 2 * move * nci_ceil_div(nci_max(end - seen, 0), BLOCK);
		seen = nci_max(seen, end);
		if (u->queries->n == BLOCK && tensor > dma)
			u->by_dma =
				nci_min((tensor - dma + move) / (2 * move + BLOCK), u->n / BLOCK);
		tensor -= u->by_dma * BLOCK;
		dma += u->by_dma * 2 * move;
		dma = nci_max(dma, tensor - WINDOW);
		tensor = nci_max(tensor, dma - WINDOW);
	}
}

/* --- the kernel -------------------------------------------------------------------------- */

static void take_operands(struct forward *f)
{
	f->at.masked = f->at.node->n_src > 3;
	f->q = at_operand(&f->at, 0, true);
	f->k = at_operand(&f->at, 1, true);
	f->v = at_operand(&f->at, 2, false);
	f->columns = f->at.width + !f->at.dropout.on;
	if (f->at.masked)
		f->mask = at_operand(&f->at, 3, false);
}

void nci_attention(struct legal *legal, struct lir *lir, struct group *group)
{
	struct forward *f = nci_alloc(legal->ctx, sizeof(*f));
	int64_t batches, step;

	at_open(&f->at, legal, lir, group);
	at_dropout_open(&f->at, CHUNK);
	take_operands(f);
	divide_psum(f);
	if (f->at.causal)
		at_diagonal(&f->at);
	batches = f->at.node->elems / (f->at.n_q * f->at.width);
	step = f->at.n_k > PANEL_BYTES / f->at.elem ? QUERIES : f->at.n_q;
	for (int64_t i = 0; i < batches; i++) {
		struct heads *h = nci_alloc(legal->ctx, sizeof(*h));

		*h = at_heads(&f->at, i);
		for (int64_t x = 0; x < f->at.n_q; x += step)
			add_queries(f, h, i, x, nci_min(step, f->at.n_q - x));
	}
	divide_turning(f);
	emit(f);
}
