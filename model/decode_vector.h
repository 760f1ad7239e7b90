/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Part of decode_compute.c, which includes it once: instructions that only the vector engine has, from
 * ISA_MAX8 on.
 */
#ifndef NM_DECODE_VECTOR_H
#define NM_DECODE_VECTOR_H

/* --- few results, or few operands, of a row ------------------------------------------------- */

/* src0 of least..most elements. */
static int take_row(struct body *b, uint32_t least, uint32_t most)
{
	struct nm_compute *c = b->c;
	struct nm_reach extent;
	int ret = take_tile(b, &b->in->src0, SBUF | PSUM, &c->src0, &c->n, &extent);

	if (ret)
		return ret;
	if (c->n < least)
		return bad(b, c->n, least);
	if (c->n > most)
		return bad(b, c->n, most);
	c->nparts = b->in->src0.nparts;
	return 0;
}

/* A tile of few elements in each partition of src0. */
static int take_few(struct body *b, const struct isa_tile *t, uint32_t few, bool written,
		    struct nm_operand *o)
{
	struct nm_reach extent;
	uint32_t n;
	int ret = (written ? take_dst : take_tile)(b, t, SBUF | PSUM, o, &n, &extent);

	if (ret)
		return ret;
	if (n != few)
		return bad(b, n, few);
	return t->nparts == b->c->nparts ? 0 : bad(b, t->nparts, b->c->nparts);
}

/* dst of few elements from src0 of least..most, and nothing else. */
static int decode_few(struct body *b, uint32_t least, uint32_t most, uint32_t few)
{
	const struct isa_compute *in = b->in;
	struct nm_compute *c = b->c;
	struct nm_operand *data[] = { &c->src0 }, *results[] = { &c->dst };
	int ret = no_ops(b, false, false)			      ?:
			  take_row(b, least, most)		      ?:
			  take_few(b, &in->dst, few, true, &c->dst)   ?:
			  expect_zero(b, &in->src1, sizeof(in->src1)) ?:
									take_scalars(b, false, false);

	if (ret)
		return ret;
	build_nest(&c->nest, in->src0.count, 0, data, 1, NULL);
	build_nest(&c->dst_nest, in->dst.count, 0, results, 1, NULL);
	return 0;
}

/* --- mean and variance -------------------------------------------------------------------- */

static int decode_bn_stats(struct body *b)
{
	return decode_few(b, 1, ISA_BN_ELEMS_MAX, ISA_BN_STATS_ELEMS);
}

static int decode_bn_aggr(struct body *b)
{
	int ret = decode_few(b, ISA_BN_GROUP, NM_TILE_ELEMS, ISA_BN_AGGR_ELEMS);

	if (ret)
		return ret;
	return b->c->n % ISA_BN_GROUP ? bad(b, b->c->n, ISA_BN_GROUP) : 0;
}

/* --- eight values ------------------------------------------------------------------------ */

/* Indices up to ISA_TOP_ELEMS_MAX, and all ones for none. */
static int check_index_dtype(struct body *b, unsigned int dtype)
{
	return dtype == ISA_UINT16 || dtype == ISA_UINT32 ? 0 : bad(b, dtype, ISA_UINT32);
}

static int decode_max8(struct body *b)
{
	return decode_few(b, ISA_TOP, ISA_TOP_ELEMS_MAX, ISA_TOP);
}

static int decode_find_index8(struct body *b)
{
	const struct isa_compute *in = b->in;
	struct nm_compute *c = b->c;
	struct nm_operand *data[] = { &c->src0 }, *top[] = { &c->dst, &c->src1 };
	int ret = no_ops(b, false, false)				   ?:
			  take_row(b, ISA_TOP, ISA_TOP_ELEMS_MAX)	   ?:
			  take_few(b, &in->src1, ISA_TOP, false, &c->src1) ?:
			  take_few(b, &in->dst, ISA_TOP, true, &c->dst)	   ?:
			  same_shape(b, &in->dst, &in->src1)		   ?:
			  check_index_dtype(b, in->dst.dtype)		   ?:
			  take_scalars(b, false, false);

	if (ret)
		return ret;
	build_nest(&c->nest, in->src0.count, 0, data, 1, NULL);
	build_nest(&c->dst_nest, in->dst.count, 0, top, 2, NULL);
	return 0;
}

/* vec1 of MATCH_REPLACE8: where the indices go. */
static int take_indices(struct body *b)
{
	const struct isa_column *col = &b->in->vec1;
	struct nm_operand *o = &b->c->s1.vec;
	int ret = expect_zero(b, &b->in->imm1, sizeof(b->in->imm1));

	if (ret || !(b->inst->flags & ISA_F_VEC1))
		return ret ?: expect_zero(b, col, sizeof(*col));
	ret = check_index_dtype(b, col->dtype) ?: take_column(b, col, ISA_TOP, o);
	if (!ret)
		note_write(b, o, (int64_t)o->offset + ISA_TOP * o->bytes);
	return ret;
}

static int decode_match_replace8(struct body *b)
{
	const struct isa_compute *in = b->in;
	struct nm_compute *c = b->c;
	struct nm_operand *data[] = { &c->src0, &c->dst }, *top[] = { &c->src1 };
	struct nm_reach extent;
	uint32_t n;
	int ret = no_ops(b, false, false)					   ?:
			  take_row(b, 1, ISA_TOP_ELEMS_MAX)			   ?:
			  take_few(b, &in->src1, ISA_TOP, false, &c->src1)	   ?:
			  take_dst(b, &in->dst, SBUF | PSUM, &c->dst, &n, &extent) ?:
			  same_shape(b, &in->dst, &in->src0)			   ?:
			  take_scalar(b, in->imm0, &in->vec0, false, &c->s0)	   ?:
										     take_indices(b);

	if (ret)
		return ret;
	build_nest(&c->nest, in->src0.count, 0, data, 2, NULL);
	build_nest(&c->dst_nest, in->src1.count, 0, top, 1, NULL);
	return 0;
}

/* --- from partition to partition ------------------------------------------------------------ */

static int decode_vector_transpose(struct body *b)
{
	const struct isa_compute *in = b->in;
	struct nm_compute *c = b->c;
	struct nm_operand *data[] = { &c->src0 }, *results[] = { &c->dst };
	struct nm_reach extent;
	uint32_t n;
	int ret = no_ops(b, false, false)			      ?:
			  take_row(b, 1, ISA_BLOCK)		      ?:
			  expect_zero(b, &in->src1, sizeof(in->src1)) ?:
			  take_scalars(b, false, false)		      ?:
			  take_dst(b, &in->dst, SBUF | PSUM, &c->dst, &n, &extent);

	if (ret)
		return ret;
	if (in->src0.nparts > ISA_BLOCK)
		return bad(b, in->src0.nparts, ISA_BLOCK);
	if (in->dst.nparts != c->n)
		return bad(b, in->dst.nparts, c->n);
	if (n != c->nparts)
		return bad(b, n, c->nparts);
	build_nest(&c->nest, in->src0.count, 0, data, 1, NULL);
	build_nest(&c->dst_nest, in->dst.count, 0, results, 1, NULL);
	return same_size(b, &c->src0);
}

static int decode_transpose(struct body *b)
{
	return b->d->engine == ISA_VECTOR ? decode_vector_transpose(b) : decode_tensor_transpose(b);
}

/* Partitions are shuffled among 32 of them, or among as many as there are. */
static int take_shuffle(struct body *b)
{
	const unsigned int nparts = b->c->nparts;
	const unsigned int group = nparts < ISA_PART_QUANTUM ? nparts : ISA_PART_QUANTUM;

	if (nparts % group)
		return bad(b, nparts, ISA_PART_QUANTUM);
	for (unsigned int i = 0; i < ISA_PART_QUANTUM; i++) {
		const unsigned int from = b->in->shuffle[i];

		if (from != ISA_SHUFFLE_KEEP && (i >= group || from >= group))
			return bad(b, from, i < group ? group : ISA_SHUFFLE_KEEP);
	}
	memcpy(b->c->shuffle, b->in->shuffle, sizeof(b->c->shuffle));
	return 0;
}

static int decode_shuffle(struct body *b)
{
	struct isa_compute rest = *b->in;
	struct body without = *b;
	int ret = no_ops(b, false, false);

	without.in = &rest;
	memset(rest.shuffle, 0, sizeof(rest.shuffle));
	ret = ret					      ?:
		      take_elementwise(&without, true, false) ?:
		      same_size(b, &b->c->src0)		      ?:
		      take_scalars(b, false, false)	      ?:
								take_shuffle(b);
	if (ret)
		return ret;
	/* Onto itself, or apart: else it would depend on what is moved first. */
	return b->c->buffered ? bad(b, b->in->dst.offset, b->in->src0.offset) : 0;
}

/* --- recurrences -------------------------------------------------------------------------- */

static int decode_scan(struct body *b)
{
	int ret = no_axes(b)				  ?:
			  check_alu(b, b->in->op0)	  ?:
			  check_alu(b, b->in->op1)	  ?:
			  take_elementwise(b, true, true) ?:
							    take_scalars(b, true, false);

	if (ret)
		return ret;
	/* nki.isa.tensor_tensor_scan: not both. */
	if (b->in->src0.space == ISA_SPACE_PSUM && b->in->src1.space == ISA_SPACE_PSUM)
		return bad(b, b->in->src1.space, ISA_SPACE_SBUF);
	return 0;
}

static bool alu_cumulates(unsigned int op)
{
	return op == ISA_ADD || op == ISA_SUB || op == ISA_MULT || op == ISA_MAX || op == ISA_MIN;
}

/* nki.isa.tensor_scalar_cumulative: no 32-bit integers. */
static int check_cumulative_dtype(struct body *b, unsigned int dtype)
{
	return dtype == ISA_INT32 || dtype == ISA_UINT32 ? bad(b, dtype, ISA_FP32) : 0;
}

/* Without ISA_F_ACCUM s1 is where it starts; with it, what an earlier one of the stream has left. */
static int take_start(struct body *b)
{
	const unsigned int flags = b->inst->flags;

	if (!(flags & ISA_F_ACCUM))
		return 0;
	if (flags & ISA_F_VEC1)
		return bad(b, flags, flags & ~ISA_F_VEC1);
	if (b->in->imm1)
		return bad(b, b->in->imm1, 0);
	return b->c->nparts > b->d->cumulated ? bad(b, b->c->nparts, b->d->cumulated) : 0;
}

static int decode_cumulative(struct body *b)
{
	int ret = no_axes(b) ?: check_alu(b, b->in->op0);

	if (ret)
		return ret;
	if (!alu_cumulates(b->in->op1))
		return bad(b, b->in->op1, ISA_ADD);
	ret = take_elementwise(b, true, false)			   ?:
		      check_cumulative_dtype(b, b->in->dst.dtype)  ?:
		      check_cumulative_dtype(b, b->in->src0.dtype) ?:
		      take_scalars(b, true, true)		   ?:
								     take_start(b);
	if (!ret && b->c->nparts > b->d->cumulated)
		b->d->cumulated = b->c->nparts;
	return ret;
}

/* --- rows with a reduction ------------------------------------------------------------------ */

/* vec1: where the reduction of a row goes. */
static int take_reduced(struct body *b)
{
	const unsigned int flags = b->inst->flags;
	const struct isa_column *col = &b->in->vec1;
	struct nm_operand *o = &b->c->row;
	int ret = expect_zero(b, &b->in->imm1, sizeof(b->in->imm1));

	if (ret)
		return ret;
	if (!(flags & ISA_F_VEC1)) {
		if (flags & (ISA_F_ACCUM | ISA_F_NEGATE))
			return bad(b, flags, flags | ISA_F_VEC1);
		return expect_zero(b, col, sizeof(*col));
	}
	ret = take_column(b, col, 1, o) ?: check_float(b, col->dtype);
	if (!ret)
		note_write(b, o, (int64_t)o->offset + o->bytes);
	return ret;
}

/* nki.isa.select_reduce: 1 or 2 bytes. */
static int check_predicate_dtype(struct body *b, unsigned int dtype)
{
	return dtype >= ISA_INT8 && dtype <= ISA_UINT16 ? 0 : bad(b, dtype, ISA_UINT16);
}

static int decode_select_reduce(struct body *b)
{
	const struct isa_compute *in = b->in;
	int ret =
		no_ops(b, false, false)				  ?:
			take_elementwise(b, true, true)		  ?:
			check_predicate_dtype(b, in->src0.dtype)  ?:
			check_cumulative_dtype(b, in->src1.dtype) ?:
			take_scalar(b, in->imm0, &in->vec0, b->inst->flags & ISA_F_VEC0, &b->c->s0) ?:
			take_reduced(b);

	if (ret)
		return ret;
	/* nki.isa.select_reduce: not both. */
	if (in->src0.space == ISA_SPACE_PSUM && in->src1.space == ISA_SPACE_PSUM)
		return bad(b, in->src1.space, ISA_SPACE_SBUF);
	return 0;
}

static int decode_scalar_reduce(struct body *b)
{
	const struct isa_compute *in = b->in;
	int ret = no_axes(b) ?: check_alu(b, in->op0);

	if (ret)
		return ret;
	if (!alu_cumulates(in->op1) || in->op1 == ISA_SUB)
		return bad(b, in->op1, ISA_ADD);
	return take_elementwise(b, true, false) ?:
		       take_scalar(b, in->imm0, &in->vec0, b->inst->flags & ISA_F_VEC0, &b->c->s0) ?:
		       take_reduced(b);
}

static int decode_exponential(struct body *b)
{
	const struct isa_compute *in = b->in;

	return no_ops(b, false, false)			?:
		       take_elementwise(b, true, false) ?:
		       take_scalar(b, in->imm0, &in->vec0, b->inst->flags & ISA_F_VEC0, &b->c->s0) ?:
		       take_reduced(b);
}

/* nki.isa.range_select: equal and ordered ones. */
static int check_range_op(struct body *b, unsigned int op)
{
	return op >= ISA_IS_EQ && op <= ISA_IS_LE && op != ISA_IS_NE ? 0 : bad(b, op, ISA_IS_LE);
}

static int take_bound(struct body *b, const struct isa_column *col, struct nm_scalar *s)
{
	return col->dtype == ISA_FP32 ? take_column(b, col, 1, &s->vec) :
					bad(b, col->dtype, ISA_FP32);
}

static int decode_range_select(struct body *b)
{
	const struct isa_compute *in = b->in;
	struct isa_compute rest = *in;
	struct body without = *b;
	struct nm_compute *c = b->c;
	int ret;

	without.in = &rest;
	memset(&rest.src1, 0, sizeof(rest.src1));
	ret = no_axes(b)				      ?:
		      check_range_op(b, in->op0)	      ?:
		      check_range_op(b, in->op1)	      ?:
		      take_elementwise(&without, true, false) ?:
		      check_float(b, in->src0.dtype)	      ?:
		      take_bound(b, &in->vec0, &c->s0)	      ?:
		      take_bound(b, &in->vec1, &c->s1)	      ?:
		      check_imm(b, in->imm0)		      ?:
								check_imm(b, in->imm1);
	if (ret)
		return ret;
	c->s0.imm = in->imm0;
	c->s1.imm = in->imm1;
	if (in->src1.nparts == 0) {
		if (b->inst->flags & ISA_F_ACCUM)
			return bad(b, in->src1.nparts, c->nparts);
		return expect_zero(b, &in->src1, sizeof(in->src1));
	}
	return take_few(b, &in->src1, 1, true, &c->row) ?: check_float(b, in->src1.dtype);
}

#endif /* NM_DECODE_VECTOR_H */
