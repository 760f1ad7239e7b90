// SPDX-License-Identifier: Apache-2.0
/*
 * Elementwise instructions of vector, scalar and gpsimd engine. A partition is processed in pieces
 * of its loop nest: operands that are packed and of the compute type are used in place, others are
 * converted through row buffers. Partitions go in ascending order.
 */
#include <string.h>

#include "exec.h"

static unsigned int log2_bytes(unsigned int bytes)
{
	return (unsigned int)__builtin_ctz(bytes);
}

/* Dtype whose elements are stored as the compute type has them. */
static const uint8_t native_dtype[NM_CTS] = {
	[ISA_CT_F32] = ISA_FP32,
	[ISA_CT_I32] = ISA_INT32,
	[ISA_CT_I64] = ISA_INT64,
	[ISA_CT_F64] = ISA_FP64,
};

static bool is_native(unsigned int ct, unsigned int dtype)
{
	return dtype == native_dtype[ct] || (ct == ISA_CT_I32 && dtype == ISA_UINT32) ||
	       (ct == ISA_CT_I64 && dtype == ISA_UINT64);
}

uint64_t nm_scalar_value(const struct nm_exec *x, const struct nm_compute *c,
			 const struct nm_scalar *s, unsigned int partition)
{
	uint64_t value = 0;

	if (s->vec.bytes == 0)
		return s->imm;
	x->rows->load[c->ct][s->vec.dtype](&value, nm_operand_ptr(x, &s->vec, partition), 0, 1);
	return value;
}

/* One piece of a partition: rows of the nest's innermost dim, or a part of one row. */
struct piece {
	uint32_t idx[ISA_TILE_DIMS]; /* of its first row in the outer dims */
	uint32_t first; /* element in that row */
	uint32_t rows; /* 1 when it is a part of a row */
	uint32_t n; /* elements of each row */
};

struct job {
	struct nm_exec *x;
	const struct nm_compute *c;
	unsigned int opcode;
	unsigned int partition;
	bool in_place; /* dst is written where it lies */
	bool use0_in_place, use1_in_place;
	uint64_t s0, s1;
	float lanes[NM_LANES]; /* ACTIVATION with a sum */
	uint32_t done; /* elements of the partition before this piece, when they are counted */
};

static void *element(const struct job *j, const struct nm_operand *o, const uint32_t *idx,
		     uint32_t first)
{
	unsigned int inner = j->c->nest.ndim - 1u;

	return nm_operand_ptr(j->x, o, j->partition) + nm_at(idx, o->step, inner) +
	       (ptrdiff_t)first * o->step[inner];
}

/* Elements of a source operand in the compute type: in place or through buf. */
static const void *fetch(const struct job *j, const struct nm_operand *o, const struct piece *p,
			 bool in_place, void *buf)
{
	const struct nm_compute *c = j->c;
	unsigned int inner = c->nest.ndim - 1u;
	uint32_t idx[ISA_TILE_DIMS];
	uint8_t *out = buf;

	if (in_place)
		return element(j, o, p->idx, p->first);
	memcpy(idx, p->idx, sizeof(idx));
	for (uint32_t r = 0; r < p->rows; r++) {
		j->x->rows->load[c->ct][o->dtype](out, element(j, o, idx, p->first), o->step[inner],
						  p->n);
		out += p->n * nm_ct_bytes(c->ct);
		nm_next(idx, c->nest.count, inner);
	}
	return buf;
}

static void put(const struct job *j, const struct piece *p, const void *result)
{
	const struct nm_compute *c = j->c;
	unsigned int inner = c->nest.ndim - 1u;
	const uint8_t *in = result;
	uint32_t idx[ISA_TILE_DIMS];

	memcpy(idx, p->idx, sizeof(idx));
	for (uint32_t r = 0; r < p->rows; r++) {
		j->x->rows->store[c->ct][c->dst.dtype](element(j, &c->dst, idx, p->first),
						       c->dst.step[inner], in, p->n);
		in += p->n * nm_ct_bytes(c->ct);
		nm_next(idx, c->nest.count, inner);
	}
}

/* a op s, or s op a. */
static void with_scalar(const struct job *j, unsigned int op, bool reverse, void *out,
			const void *a, const uint64_t *s, size_t n)
{
	const struct nm_rows *rows = j->x->rows;

	(reverse ? rows->st : rows->ts)[j->c->ct][op](out, a, s, n);
}

static const void *compute(struct job *j, void *out, const void *a, const void *b, size_t n)
{
	const struct nm_rows *rows = j->x->rows;
	const struct nm_compute *c = j->c;
	void *tmp = j->x->buffer[3];
	float scale, bias;

	switch (j->opcode) {
	case ISA_COPY:
		if (!j->in_place)
			return a;
		rows->tt[c->ct][ISA_BYPASS](out, a, a, n);
		break;
	case ISA_TENSOR_TENSOR:
		rows->tt[c->ct][c->op0](out, a, b, n);
		break;
	case ISA_TENSOR_SCALAR:
		with_scalar(j, c->op0, c->flags & ISA_F_REV0, out, a, &j->s0, n);
		if (c->op1 != ISA_BYPASS || c->flags & ISA_F_REV1)
			with_scalar(j, c->op1, c->flags & ISA_F_REV1, out, out, &j->s1, n);
		break;
	case ISA_SCALAR_TENSOR_TENSOR:
		/* Not into out, which may be where src1 lies. */
		with_scalar(j, c->op0, c->flags & ISA_F_REV0, tmp, a, &j->s0, n);
		if (c->flags & ISA_F_REV1)
			rows->tt[c->ct][c->op1](out, b, tmp, n);
		else
			rows->tt[c->ct][c->op1](out, tmp, b, n);
		break;
	case ISA_ACTIVATION:
		memcpy(&scale, &j->s0, sizeof(scale));
		memcpy(&bias, &j->s1, sizeof(bias));
		rows->affine(tmp, a, scale, bias, n);
		rows->act[c->op0](out, tmp, n);
		if (c->flags & ISA_F_ACCUM)
			rows->reduce[ISA_CT_F32][ISA_ADD](j->lanes, out, n, j->done);
		break;
	default:
		break;
	}
	return out;
}

static void do_piece(struct job *j, const struct piece *p)
{
	const struct nm_compute *c = j->c;
	uint64_t **buf = j->x->buffer;
	const uint32_t n = p->rows * p->n;
	const void *a = NULL, *b = NULL, *result;
	void *out = buf[0];

	if (c->src0.bytes)
		a = fetch(j, &c->src0, p, j->use0_in_place, buf[1]);
	if (c->src1.bytes && j->opcode != ISA_ACTIVATION)
		b = fetch(j, &c->src1, p, j->use1_in_place, buf[2]);
	if (j->in_place)
		out = element(j, &c->dst, p->idx, p->first);
	result = compute(j, out, a, b, n);
	if (c->stochastic) {
		nm_round_stochastic(j->x, c, j->partition, j->done, n, result, (uint32_t *)buf[3],
				    (float *)buf[2]);
		result = buf[2];
	}
	if (!j->in_place)
		put(j, p, result);
	j->done += n;
}

/* Below this, rows are gathered into larger pieces rather than worked on where they lie. */
#define SHORT_ROW 128

/* Calls fn for all pieces of a partition, in order. */
static void each_piece(struct job *j, void (*fn)(struct job *j, const struct piece *p))
{
	const struct nm_compute *c = j->c;
	unsigned int inner = c->nest.ndim - 1u;
	uint32_t row = c->nest.count[inner];
	uint32_t rows = c->n / row;
	uint32_t most = c->buffered ? c->n : NM_CHUNK;
	uint32_t batch = c->buffered || row < SHORT_ROW ? most / row : 1;
	struct piece p = { .n = row };

	while (rows) {
		p.rows = rows < batch ? rows : batch;
		rows -= p.rows;
		for (p.first = 0; p.first < row; p.first += p.n) {
			p.n = row - p.first < most ? row - p.first : most;
			fn(j, &p);
		}
		p.n = row;
		for (uint32_t r = 0; r < p.rows && rows; r++)
			nm_next(p.idx, c->nest.count, inner);
	}
}

/* Whether pieces are single rows, of which an operand's elements may be used where they lie. */
static bool is_packed(const struct nm_compute *c, const struct nm_operand *o)
{
	unsigned int inner = c->nest.ndim - 1u;

	return !c->buffered && (inner == 0 || c->nest.count[inner] >= SHORT_ROW) &&
	       o->step[inner] == o->bytes;
}

static bool usable_in_place(const struct nm_compute *c, const struct nm_operand *o)
{
	return o->bytes && is_native(c->ct, o->dtype) && is_packed(c, o);
}

static void arithmetic(struct job *j)
{
	const struct nm_compute *c = j->c;
	bool sum = j->opcode == ISA_ACTIVATION && c->flags & ISA_F_ACCUM;

	j->in_place = usable_in_place(c, &c->dst);
	j->use0_in_place = usable_in_place(c, &c->src0);
	j->use1_in_place = usable_in_place(c, &c->src1);
	for (j->partition = 0; j->partition < c->nparts; j->partition++) {
		j->s0 = nm_scalar_value(j->x, c, &c->s0, j->partition);
		j->s1 = nm_scalar_value(j->x, c, &c->s1, j->partition);
		if (sum)
			j->x->rows->reduce_init[ISA_CT_F32][ISA_ADD](j->lanes);
		j->done = 0;
		each_piece(j, do_piece);
		if (sum) {
			j->x->rows->reduce_end[ISA_CT_F32][ISA_ADD](j->lanes);
			memcpy(nm_operand_ptr(j->x, &c->src1, j->partition), j->lanes,
			       sizeof(float));
		}
	}
}

/* --- bits ---------------------------------------------------------------------------- */

/* Packed raw elements of an operand, through buf. */
static void gather(const struct job *j, const struct nm_operand *o, const struct piece *p,
		   void *buf)
{
	unsigned int inner = j->c->nest.ndim - 1u;
	uint32_t idx[ISA_TILE_DIMS];
	uint8_t *out = buf;

	memcpy(idx, p->idx, sizeof(idx));
	for (uint32_t r = 0; r < p->rows; r++, out += p->n * o->bytes) {
		j->x->rows->copy[log2_bytes(o->bytes)](out, o->bytes, element(j, o, idx, p->first),
						       o->step[inner], p->n);
		nm_next(idx, j->c->nest.count, inner);
	}
}

static void scatter(const struct job *j, const struct piece *p, const void *buf)
{
	const struct nm_operand *o = &j->c->dst;
	unsigned int inner = j->c->nest.ndim - 1u;
	const uint8_t *in = buf;
	uint32_t idx[ISA_TILE_DIMS];

	memcpy(idx, p->idx, sizeof(idx));
	for (uint32_t r = 0; r < p->rows; r++, in += p->n * o->bytes) {
		j->x->rows->copy[log2_bytes(o->bytes)](element(j, o, idx, p->first), o->step[inner],
						       in, o->bytes, p->n);
		nm_next(idx, j->c->nest.count, inner);
	}
}

static void copy_piece(struct job *j, const struct piece *p)
{
	const struct nm_compute *c = j->c;
	unsigned int inner = c->nest.ndim - 1u;

	if (!c->buffered) {
		uint32_t idx[ISA_TILE_DIMS];

		memcpy(idx, p->idx, sizeof(idx));
		for (uint32_t r = 0; r < p->rows; r++) {
			j->x->rows->copy[log2_bytes(c->dst.bytes)](
				element(j, &c->dst, idx, p->first), c->dst.step[inner],
				element(j, &c->src0, idx, p->first), c->src0.step[inner], p->n);
			nm_next(idx, c->nest.count, inner);
		}
		return;
	}
	gather(j, &c->src0, p, j->x->buffer[1]);
	scatter(j, p, j->x->buffer[1]);
}

/* Immediate as dst stores it. */
static uint64_t stored_imm(const struct job *j)
{
	const struct nm_compute *c = j->c;
	uint64_t bits = 0;

	if (c->ct == ISA_CT_BITS)
		return c->s0.imm;
	j->x->rows->store[c->ct][c->dst.dtype](&bits, c->dst.bytes, &c->s0.imm, 1);
	return bits;
}

static void fill_piece(struct job *j, const struct piece *p)
{
	const struct nm_operand *o = &j->c->dst;
	unsigned int inner = j->c->nest.ndim - 1u;
	uint32_t idx[ISA_TILE_DIMS];

	memcpy(idx, p->idx, sizeof(idx));
	for (uint32_t r = 0; r < p->rows; r++) {
		j->x->rows->fill[log2_bytes(o->bytes)](element(j, o, idx, p->first), o->step[inner],
						       &j->s0, p->n);
		nm_next(idx, j->c->nest.count, inner);
	}
}

/* The elements that may replace dst's, packed and as dst stores them. */
static const void *replacement(const struct job *j, const struct piece *p)
{
	const struct nm_compute *c = j->c;
	uint64_t **buf = j->x->buffer;
	size_t n = (size_t)p->rows * p->n;

	if (c->flags & ISA_F_IMM) {
		j->x->rows->fill[log2_bytes(c->dst.bytes)](buf[1], c->dst.bytes, &j->s0, n);
	} else if (c->ct == ISA_CT_BITS) {
		gather(j, &c->src1, p, buf[1]);
	} else {
		fetch(j, &c->src1, p, false, buf[2]);
		j->x->rows->store[c->ct][c->dst.dtype](buf[1], c->dst.bytes, buf[2], n);
	}
	return buf[1];
}

static void predicated_piece(struct job *j, const struct piece *p)
{
	const struct nm_compute *c = j->c;
	unsigned int inner = c->nest.ndim - 1u;
	uint8_t *mask = (uint8_t *)j->x->buffer[3];
	const void *a = replacement(j, p);
	uint32_t idx[ISA_TILE_DIMS];
	void *d = j->x->buffer[0];

	memcpy(idx, p->idx, sizeof(idx));
	for (uint32_t r = 0; r < p->rows; r++) {
		j->x->rows->truth[c->src0.dtype](mask + (size_t)r * p->n,
						 element(j, &c->src0, idx, p->first),
						 c->src0.step[inner], p->n);
		nm_next(idx, c->nest.count, inner);
	}
	if (j->in_place)
		d = element(j, &c->dst, p->idx, p->first);
	else
		gather(j, &c->dst, p, d);
	j->x->rows->blend[log2_bytes(c->dst.bytes)](d, mask, a, (size_t)p->rows * p->n);
	if (!j->in_place)
		scatter(j, p, d);
}

static void each_partition(struct job *j, void (*fn)(struct job *j, const struct piece *p))
{
	for (j->partition = 0; j->partition < j->c->nparts; j->partition++)
		each_piece(j, fn);
}

/* --- iota ---------------------------------------------------------------------------- */

/* imm0 + imm1 * partition + index terms; the terms are summed as integers, then converted. */
static void iota_piece(struct job *j, const struct piece *p)
{
	const struct nm_compute *c = j->c;
	unsigned int inner = c->nest.ndim - 1u;
	uint32_t idx[ISA_TILE_DIMS];
	void *out = j->x->buffer[1];
	size_t i = 0;

	memcpy(idx, p->idx, sizeof(idx));
	for (uint32_t r = 0; r < p->rows; r++) {
		int64_t step = c->src0.step[inner];
		int64_t at = (int64_t)nm_at(idx, c->src0.step, inner) + p->first * step;

		for (uint32_t k = 0; k < p->n; k++, i++, at += step) {
			switch (c->ct) {
			case ISA_CT_F32:
				((float *)out)[i] = (float)at;
				break;
			case ISA_CT_F64:
				((double *)out)[i] = (double)at;
				break;
			case ISA_CT_I32:
				((int32_t *)out)[i] = (int32_t)at;
				break;
			default:
				((int64_t *)out)[i] = at;
				break;
			}
		}
		nm_next(idx, c->nest.count, inner);
	}
	j->x->rows->st[c->ct][ISA_ADD](out, out, &j->s0, i);
	put(j, p, out);
}

static void iota(struct job *j)
{
	const struct nm_rows *rows = j->x->rows;
	const struct nm_compute *c = j->c;

	for (j->partition = 0; j->partition < c->nparts; j->partition++) {
		int64_t p = j->partition;
		uint64_t number = 0;

		rows->load[c->ct][ISA_INT64](&number, &p, 0, 1);
		rows->ts[c->ct][ISA_MULT](&j->s1, &c->s1.imm, &number, 1);
		rows->ts[c->ct][ISA_ADD](&j->s0, &c->s0.imm, &j->s1, 1);
		each_piece(j, iota_piece);
	}
}

/* Float to the same float: exact, so bits may be copied, but for tf32 that was not written as such. */
static bool keeps_bits(const struct nm_compute *c)
{
	if (c->ct == ISA_CT_BITS)
		return true;
	return c->ct == ISA_CT_F32 && c->src0.dtype == c->dst.dtype && isa_is_float(c->dst.dtype) &&
	       c->dst.dtype != ISA_TF32 && c->dst.bytes <= sizeof(float);
}

void nm_exec_elementwise(struct nm_exec *x, unsigned int opcode, const struct nm_compute *c)
{
	struct job j = { .x = x, .c = c, .opcode = opcode };

	switch (opcode) {
	case ISA_MEMSET:
		j.s0 = stored_imm(&j);
		each_partition(&j, fill_piece);
		break;
	case ISA_COPY:
		if (keeps_bits(c) && !c->stochastic)
			each_partition(&j, copy_piece);
		else
			arithmetic(&j);
		break;
	case ISA_COPY_PREDICATED:
		if (c->flags & ISA_F_IMM)
			j.s0 = stored_imm(&j);
		j.in_place = is_packed(c, &c->dst);
		each_partition(&j, predicated_piece);
		break;
	case ISA_IOTA:
		iota(&j);
		break;
	default:
		arithmetic(&j);
		break;
	}
}
