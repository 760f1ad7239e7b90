/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scans: the result at i is a reduction of the elements 0 .. i along one dim.
 *
 * A tile has nparts partitions of len steps along the dim by width neighbours that lie beside it in
 * memory: contiguous runs, whichever dim is scanned. It is scanned in the compute type; floats by the
 * vector engine's recurrence, one instruction for each neighbour, other types by sums of pairs of pairs
 * (twice the operations of a loop, but 2 log2(len) instructions).
 *
 *   many rows   partitions are rows; each tile goes on from the last step of the one before
 *   few, long   partitions are successive pieces of one row, scanned apart; their last steps are
 *               scanned on one partition, which gives what each piece is to be combined with
 */
#include <math.h>
#include <string.h>

#include "eval.h"

#define TILE_BYTES (8 << 10) /* of a partition, one value */
#define WIDTH_MAX  64 /* beyond, instructions get too short */
#define RUN_BYTES  128 /* shorter runs cost a transfer more than idle partitions */
#define ROWS_FEW   32
#define ROW_LONG   1024

struct scan {
	struct legal *legal;
	struct lir *lir;
	const struct group *group;
	const struct lnode *node, *src;
	uint32_t ct, alu;
	uint8_t dtype; /* enum isa_dtype of operand and result */
	uint8_t work; /* in which the scan is kept: not rounded from tile to tile */
	uint32_t axis;
	uint32_t inner; /* dim beside the axis in memory, or LIR_NONE */
	uint32_t outer; /* dim of which partitions are rows, or LIR_NONE */
};

/* A dim over partitions: count of them, unit elements of the dim from one to the next. */
struct spread {
	uint32_t dim;
	int64_t count, unit;
};

/* What a tile covers: from pos on, len steps along the axis and width along the inner dim. */
struct block {
	int64_t pos[NC_DIMS_MAX];
	struct spread part[2];
	uint32_t n_part, nparts;
	int64_t len, width;
};

static int64_t dim_of(const struct scan *s, uint32_t dim)
{
	return dim == LIR_NONE ? 1 : s->group->dims[dim];
}

/* --- transfers ------------------------------------------------------------------------------- */

static uint32_t transfer_dims(const struct scan *s, const struct block *b, const int64_t *stride,
			      struct lstep *dims, int64_t *offset)
{
	uint32_t n = 0, elem = isa_dtype_bytes(s->dtype);

	*offset = 0;
	for (uint32_t d = 0; d < s->group->nd; d++)
		*offset += b->pos[d] * stride[d] * elem;
	for (uint32_t i = 0; i < b->n_part; i++)
		dims[n++] = (struct lstep){ b->part[i].count,
					    stride[b->part[i].dim] * b->part[i].unit * elem, 0 };
	dims[n++] = (struct lstep){ b->len, stride[s->axis] * elem, b->width * elem };
	if (s->inner != LIR_NONE)
		dims[n++] = (struct lstep){ b->width, stride[s->inner] * elem, elem };
	return n;
}

static uint32_t load(const struct scan *s, const struct block *b)
{
	uint32_t elem = isa_dtype_bytes(s->dtype), n;
	bool memory = s->src->kind == N_INPUT || s->src->kind == N_SCALAR;
	uint32_t buf = lir_buf(s->lir, ISA_SPACE_SBUF, (uint64_t)(b->len * b->width) * elem);
	struct lstep dims[4];
	int64_t offset;

	if (s->src->kind == N_CONST) {
		lir_memset(s->lir, ISA_GPSIMD, s->ct,
			   lir_row(buf, s->dtype, b->nparts, 0, (uint32_t)(b->len * b->width)),
			   s->src->bits);
		return buf;
	}
	n = transfer_dims(s, b, s->group->members[0].src[0].stride, dims, &offset);
	lir_load(s->lir, buf, 0, 0, memory ? s->src->slot : s->src->scratch, offset, elem,
		 b->n_part, n, dims);
	return buf;
}

static void store(const struct scan *s, const struct block *b, uint32_t buf)
{
	struct lstep dims[4];
	int64_t offset;

	for (uint32_t i = 0; i < s->group->n_stores; i++) {
		const struct store *st = &s->group->stores[i];
		uint32_t n = transfer_dims(s, b, st->stride, dims, &offset);

		lir_store(s->lir, st->slot, offset, buf, 0, 0, isa_dtype_bytes(s->dtype), b->n_part,
			  n, dims);
	}
}

/* --- scans of one tile ----------------------------------------------------------------------- */

/* n steps of a tile of so many neighbours, from step first on, each skip steps from the last. */
static struct ltile steps(uint32_t buf, uint32_t dtype, uint32_t nparts, int64_t width,
			  int64_t first, int64_t n, int64_t skip)
{
	const int64_t count[] = { n, width }, step[] = { skip * width, 1 };

	return lir_tile(buf, dtype, nparts, (uint32_t)(first * width) * isa_dtype_bytes(dtype), 2,
			count, step);
}

/* The value that changes nothing, in the bits of the compute type. */
static uint64_t identity(const struct scan *s)
{
	const struct lnode *node = s->node;
	bool least = s->alu == ISA_MAX;
	double f = s->alu == ISA_ADD ? 0 : s->alu == ISA_MULT ? 1 : least ? -INFINITY : INFINITY;
	float single = (float)f;
	int64_t most = (int64_t)(UINT64_MAX >> (65 - 8 * nci_dtype_bytes(node->dtype)));
	uint64_t bits = 0;

	if (s->ct == ISA_CT_F32)
		memcpy(&bits, &single, sizeof(single));
	else if (s->ct == ISA_CT_F64)
		memcpy(&bits, &f, sizeof(f));
	else if (s->alu == ISA_ADD || s->alu == ISA_MULT)
		bits = s->alu == ISA_MULT;
	else if (node->dtype == NC_BOOL || node->dtype == NC_UINT8)
		bits = least ? 0 : node->dtype == NC_BOOL ? 1 : UINT8_MAX;
	else
		bits = (uint64_t)(least ? -most - 1 : most);
	return bits;
}

/* y = scan of x by recurrences, from the last of the carry's steps if there is one. */
static void scan_floats(const struct scan *s, uint32_t nparts, int64_t len, int64_t width,
			uint32_t x, uint32_t x_dtype, uint32_t y, uint32_t carry, int64_t carry_len)
{
	const int64_t count = len, step = width;

	for (int64_t w = 0; w < width; w++) {
		struct lop *op = lir_op(s->lir, ISA_VECTOR, ISA_TENSOR_SCALAR_CUMULATIVE);

		op->compute_type = (uint8_t)s->ct;
		op->op0 = ISA_BYPASS;
		op->op1 = (uint8_t)s->alu;
		op->dst = lir_tile(y, s->work, nparts, (uint32_t)w * isa_dtype_bytes(s->work), 1,
				   &count, &step);
		op->src0 = lir_tile(x, x_dtype, nparts, (uint32_t)w * isa_dtype_bytes(x_dtype), 1,
				    &count, &step);
		if (carry == LIR_NONE) {
			op->imm1 = identity(s);
			continue;
		}
		op->flags = ISA_F_VEC1;
		op->vec1 = (struct lcol){ carry,
					  (uint32_t)((carry_len - 1) * width + w) *
						  isa_dtype_bytes(s->work),
					  s->work, 0 };
	}
}

/*
 * In place: sums of two, four, ... steps at the last of each, then what lies between them. x[i] +=
 * x[i - k] for i = first, first + 2k, ...
 */
static void combine(const struct scan *s, uint32_t nparts, int64_t len, int64_t width, uint32_t x,
		    int64_t first, int64_t k)
{
	int64_t n = first < len ? (len - 1 - first) / (2 * k) + 1 : 0;
	struct ltile to = steps(x, s->work, nparts, width, first, n, 2 * k);

	if (n)
		lir_tensor_tensor(s->lir, eval_alu_engine(s->ct, s->alu), s->ct, s->alu, to, to,
				  steps(x, s->work, nparts, width, first - k, n, 2 * k));
}

static void scan_pairs(const struct scan *s, uint32_t nparts, int64_t len, int64_t width,
		       uint32_t x, uint32_t carry, int64_t carry_len)
{
	struct ltile head = steps(x, s->work, nparts, width, 0, 1, 1);
	int64_t k = 1;

	if (carry != LIR_NONE)
		lir_tensor_tensor(s->lir, eval_alu_engine(s->ct, s->alu), s->ct, s->alu, head, head,
				  steps(carry, s->work, nparts, width, carry_len - 1, 1, 1));
	for (; 2 * k <= len; k *= 2)
		combine(s, nparts, len, width, x, 2 * k - 1, k);
	for (; k >= 1; k /= 2)
		combine(s, nparts, len, width, x, 3 * k - 1, k);
}

/* Scans the tile x, going on from the carry; returns the buffer with the scan, in the type s->work. */
static uint32_t scan_tile(const struct scan *s, const struct block *b, uint32_t x, uint32_t carry,
			  int64_t carry_len)
{
	uint32_t y;

	if (s->ct != ISA_CT_F32) {
		scan_pairs(s, b->nparts, b->len, b->width, x, carry, carry_len);
		return x;
	}
	y = lir_buf(s->lir, ISA_SPACE_SBUF,
		    (uint64_t)(b->len * b->width) * isa_dtype_bytes(s->work));
	scan_floats(s, b->nparts, b->len, b->width, x, s->dtype, y, carry, carry_len);
	return y;
}

/* --- many rows ------------------------------------------------------------------------------- */

/* Steps of a tile of this width. */
static int64_t tile_len(const struct scan *s, int64_t width)
{
	return nci_max(1, TILE_BYTES / (width * isa_dtype_bytes(s->work)));
}

static void scan_rows(const struct scan *s, struct block *b)
{
	int64_t n = s->group->dims[s->axis], most = tile_len(s, b->width), carry_len = 0;
	uint32_t carry = LIR_NONE;

	for (int64_t i = 0; i < n; i += most) {
		uint32_t y, out;

		b->pos[s->axis] = i;
		b->len = nci_min(most, n - i);
		y = scan_tile(s, b, load(s, b), carry, carry_len);
		out = y;
		if (s->work != s->dtype) {
			uint32_t elems = (uint32_t)(b->len * b->width);

			out = lir_buf(s->lir, ISA_SPACE_SBUF,
				      (uint64_t)elems * isa_dtype_bytes(s->dtype));
			lir_copy(s->lir, ISA_SCALAR, s->ct,
				 lir_row(out, s->dtype, b->nparts, 0, elems),
				 lir_row(y, s->work, b->nparts, 0, elems));
		}
		store(s, b, out);
		carry = y;
		carry_len = b->len;
	}
}

/* All of the inner dim, beside the rows that b has already. */
static void each_width(const struct scan *s, struct block *b, int64_t width)
{
	int64_t all = dim_of(s, s->inner), most = nci_max(1, ISA_PARTITIONS / b->nparts), n = 0;
	const struct block rows = *b;

	for (int64_t w = 0; w < all; w += n * b->width) {
		n = nci_min(most, (all - w) / width);
		*b = rows;
		b->width = n ? width : all - w;
		n = nci_max(n, 1);
		if (s->inner != LIR_NONE) {
			b->pos[s->inner] = w;
			b->part[b->n_part++] = (struct spread){ s->inner, n, b->width };
			b->nparts *= (uint32_t)n;
		}
		scan_rows(s, b);
	}
	*b = rows;
}

/* Neighbours of a tile: as many as leave no partition idle, but at least a run and at most the limit. */
static int64_t choose_width(const struct scan *s)
{
	int64_t all = dim_of(s, s->inner);
	int64_t free = ISA_PARTITIONS / nci_min(ISA_PARTITIONS, dim_of(s, s->outer));
	int64_t width = nci_max(nci_ceil_div(all, free), RUN_BYTES / isa_dtype_bytes(s->dtype));

	return nci_min(nci_min(width, WIDTH_MAX), all);
}

static void many_rows(const struct scan *s, struct block *b)
{
	int64_t all = dim_of(s, s->outer), width = choose_width(s);

	for (int64_t i = 0; i < all; i += ISA_PARTITIONS) {
		b->n_part = 0;
		b->nparts = 1;
		if (s->outer != LIR_NONE) {
			b->pos[s->outer] = i;
			b->nparts = (uint32_t)nci_min(ISA_PARTITIONS, all - i);
			b->part[b->n_part++] = (struct spread){ s->outer, b->nparts, 1 };
		}
		each_width(s, b, width);
	}
}

/* --- few long rows --------------------------------------------------------------------------- */

/* Pieces of a row under way: scanned, and their last steps on partition 0 from element width on. */
struct pieces {
	struct block b;
	uint32_t y, ends;
};

/* Elements of partitions one after the other on partition 0, or back; bytes. */
static void move_ends(const struct scan *s, const struct block *b, uint32_t parts, int64_t parts_at,
		      uint32_t row, int64_t row_at, bool back)
{
	uint32_t elem = isa_dtype_bytes(s->work), width = (uint32_t)b->width;
	struct lside many = { .buf = parts,
			      .nparts = (uint8_t)b->nparts,
			      .part_step = 1,
			      .ndim = 1,
			      .offset = parts_at,
			      .step = { elem },
			      .count = { width } };
	struct lside one = { .buf = row,
			     .nparts = 1,
			     .part_step = 1,
			     .ndim = 1,
			     .offset = row_at,
			     .step = { elem },
			     .count = { b->nparts * width } };

	lir_chip_move(s->lir, back ? &many : &one, back ? &one : &many, elem);
}

static void scan_pieces(const struct scan *s, struct pieces *p)
{
	const struct block *b = &p->b;
	int64_t elem = isa_dtype_bytes(s->work), row = b->width * elem;

	p->y = scan_tile(s, b, load(s, b), LIR_NONE, 0);
	p->ends = lir_buf(s->lir, ISA_SPACE_SBUF, (uint64_t)((b->nparts + 1) * row));
	move_ends(s, b, p->y, (b->len - 1) * row, p->ends, row, false);
}

/* What came before each piece; returns where the next pieces go on: the ends, as p has them. */
static void combine_pieces(const struct scan *s, const struct pieces *p,
			   const struct pieces *before)
{
	const struct block *b = &p->b;
	uint32_t n = (uint32_t)(b->len * b->width), add = eval_alu_engine(s->ct, s->alu);
	int64_t elem = isa_dtype_bytes(s->work);
	uint32_t starts = lir_buf(s->lir, ISA_SPACE_SBUF, (uint64_t)(b->width * elem));
	uint32_t out = lir_buf(s->lir, ISA_SPACE_SBUF, (uint64_t)n * isa_dtype_bytes(s->dtype));
	struct ltile head = steps(p->ends, s->work, 1, b->width, 0, 1, 1);

	if (before)
		lir_copy(s->lir, elem == 8 ? ISA_GPSIMD : ISA_VECTOR, ISA_CT_BITS, head,
			 steps(before->ends, s->work, 1, b->width, before->b.nparts, 1, 1));
	else
		lir_memset(s->lir, s->ct == ISA_CT_F32 ? ISA_VECTOR : ISA_GPSIMD, s->ct, head,
			   identity(s));
	if (s->ct == ISA_CT_F32)
		scan_floats(s, 1, b->nparts + 1, b->width, p->ends, s->work, p->ends, LIR_NONE, 0);
	else
		scan_pairs(s, 1, b->nparts + 1, b->width, p->ends, LIR_NONE, 0);
	move_ends(s, b, starts, 0, p->ends, 0, true);
	/* Not on the vector engine, which has the next pieces to scan. */
	if (s->ct == ISA_CT_F32)
		add = ISA_GPSIMD;
	lir_tensor_tensor(s->lir, add, s->ct, s->alu,
			  steps(out, s->dtype, b->nparts, b->width, 0, b->len, 1),
			  steps(p->y, s->work, b->nparts, b->width, 0, b->len, 1),
			  steps(starts, s->work, b->nparts, b->width, 0, b->len, 0));
	store(s, b, out);
}

/* A row in pieces: as many partitions as there are whole pieces for, the rest as one more. */
static void long_row(const struct scan *s, const struct block *row)
{
	int64_t n = s->group->dims[s->axis], at = 0;
	int64_t len = nci_min(nci_ceil_div(n, ISA_PARTITIONS), tile_len(s, row->width));
	struct pieces p[3], *last = NULL, *before = NULL; /* now, the last, the one before it */
	uint32_t i = 0;

	/* Pieces are scanned before the last ones are combined, so that no engine waits. */
	do {
		struct pieces *now = &p[i++ % 3];

		now->b = *row;
		now->b.len = nci_min(len, n - at);
		now->b.nparts = (uint32_t)nci_min(ISA_PARTITIONS, (n - at) / now->b.len);
		now->b.pos[s->axis] = at;
		now->b.part[0] = (struct spread){ s->axis, now->b.nparts, now->b.len };
		now->b.n_part = 1;
		at += now->b.nparts * now->b.len;
		scan_pieces(s, now);
		if (last)
			combine_pieces(s, last, before);
		before = last;
		last = now;
	} while (at < n);
	combine_pieces(s, last, before);
}

/* --- the group --------------------------------------------------------------------------------- */

/* Loops over the dims that neither tile nor partitions take. */
static void each_place(const struct scan *s, struct block *b, uint32_t dim, bool few)
{
	if (dim == s->group->nd) {
		if (few)
			long_row(s, b);
		else
			many_rows(s, b);
		return;
	}
	if (dim == s->axis || dim == s->inner || (!few && dim == s->outer)) {
		each_place(s, b, dim + 1, few);
		return;
	}
	for (b->pos[dim] = 0; b->pos[dim] < s->group->dims[dim]; b->pos[dim]++)
		each_place(s, b, dim + 1, few);
}

/* The dim beside the axis in memory, as the operand lies; then the longest of the others. */
static void choose_dims(struct scan *s)
{
	const struct group *group = s->group;
	const int64_t *stride = group->members[0].src[0].stride;

	s->inner = LIR_NONE;
	s->outer = LIR_NONE;
	for (uint32_t d = 0; d < group->nd; d++) {
		s->axis = group->axes >> d & 1 ? d : s->axis;
		if (stride[d] == 1 && !(group->axes >> d & 1))
			s->inner = d;
	}
	for (uint32_t d = 0; d < group->nd; d++)
		if (d != s->axis && d != s->inner &&
		    (s->outer == LIR_NONE || group->dims[d] > group->dims[s->outer]))
			s->outer = d;
}

void nci_scan(struct legal *legal, struct lir *lir, struct group *group)
{
	const struct lnode *node = &legal->nodes[group->members[0].node];
	struct scan s = { .legal = legal, .lir = lir, .group = group, .node = node };
	struct block b = { .width = 1, .nparts = 1 };
	int64_t rows;
	bool few;

	lir->tag = node->origin;
	s.src = &legal->nodes[group->members[0].src[0].node];
	s.ct = nci_compute_type(node->dtype);
	s.alu = eval_reduce_alu(node);
	s.dtype = (uint8_t)nci_isa_dtype(node->dtype);
	s.work = s.ct == ISA_CT_F32 ? ISA_FP32 : s.dtype;
	group->axes = node->axes;
	group->row = true; /* dims keep their order */
	nci_collapse(legal, group);
	choose_dims(&s);
	rows = nci_elems(group->nd, group->dims) / group->dims[s.axis];
	few = rows <= ROWS_FEW && group->dims[s.axis] >= ROW_LONG;
	if (few)
		b.width = dim_of(&s, s.inner);
	each_place(&s, &b, 0, few);
}
