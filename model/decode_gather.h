/* SPDX-License-Identifier: Apache-2.0 */
/* Part of decode_compute.c, which includes it once: elements by index, and indices of elements. */
#ifndef NM_DECODE_GATHER_H
#define NM_DECODE_GATHER_H

/* nki.isa: gpsimd's routines see SBUF alone. */
static int check_sbuf(struct body *b, const struct nm_operand *o)
{
	return o->bytes && o->space != ISA_SPACE_SBUF ? bad(b, o->space, ISA_SPACE_SBUF) : 0;
}

static int all_in_sbuf(struct body *b)
{
	return check_sbuf(b, &b->c->dst)	  ?:
		       check_sbuf(b, &b->c->src0) ?:
						    check_sbuf(b, &b->c->src1);
}

/* src0 and dst, of n_dst elements, in as many partitions; all else is looked at by the caller. */
static int take_row_and_dst(struct body *b, uint32_t *n_dst)
{
	struct nm_reach extent;
	int ret = no_ops(b, false, false) ?: take_row(b, 1, NM_TILE_ELEMS);

	if (ret)
		return ret;
	ret = take_dst(b, &b->in->dst, SBUF | PSUM, &b->c->dst, n_dst, &extent);
	if (ret)
		return ret;
	return b->in->dst.nparts == b->c->nparts ? 0 : bad(b, b->in->dst.nparts, b->c->nparts);
}

/* Indices of a dtype, n of them in as many partitions as src0 has. */
static int take_index_tile(struct body *b, unsigned int dtype, uint32_t *n)
{
	const struct isa_tile *t = &b->in->src1;
	struct nm_reach extent;
	int ret = take_tile(b, t, SBUF | PSUM, &b->c->src1, n, &extent);

	if (ret)
		return ret;
	if (t->dtype != dtype)
		return bad(b, t->dtype, dtype);
	return t->nparts == b->c->nparts ? 0 : bad(b, t->nparts, b->c->nparts);
}

static int decode_n_gather(struct body *b)
{
	const struct isa_compute *in = b->in;
	struct nm_compute *c = b->c;
	struct nm_operand *data[] = { &c->src0 }, *results[] = { &c->dst, &c->src1 };
	uint32_t n_dst, n_index;
	int ret = take_row_and_dst(b, &n_dst)			   ?:
			  take_index_tile(b, ISA_UINT32, &n_index) ?:
			  same_shape(b, &in->src1, &in->dst)	   ?:
			  same_dtype(b)				   ?:
			  all_in_sbuf(b)			   ?:
								     take_scalars(b, false, false);

	if (ret)
		return ret;
	build_nest(&c->nest, in->src0.count, 0, data, 1, NULL);
	build_nest(&c->dst_nest, in->dst.count, 0, results, 2, NULL);
	return 0;
}

/* imm0: elements that an index names; n: what must be made of such runs. */
static int check_runs(struct body *b, uint32_t n)
{
	const uint64_t run = b->in->imm0;

	if (run == 0 || run > ISA_GATHER_RUN_MAX || run & (run - 1))
		return bad(b, run, ISA_GATHER_RUN_MAX);
	return n % run ? bad(b, n, run) : 0;
}

static int decode_local_gather(struct body *b)
{
	const struct isa_compute *in = b->in;
	struct nm_compute *c = b->c;
	struct nm_operand *data[] = { &c->src0 }, *index[] = { &c->src1 }, *results[] = { &c->dst };
	uint32_t n_dst, n_index, most = ISA_GATHER_MAX;
	int ret = take_row_and_dst(b, &n_dst)			   ?:
			  take_index_tile(b, ISA_UINT16, &n_index) ?:
			  same_dtype(b)				   ?:
			  all_in_sbuf(b)			   ?:
			  take_scalars(b, true, false)		   ?:
			  check_runs(b, c->n)			   ?:
								     check_runs(b, n_dst);

	if (ret)
		return ret;
	if (c->nparts % ISA_GPSIMD_PARTS)
		return bad(b, c->nparts, ISA_GPSIMD_PARTS);
	if (n_index < most / ISA_GPSIMD_PARTS)
		most = n_index * ISA_GPSIMD_PARTS;
	if (n_dst / in->imm0 > most)
		return bad(b, n_dst / in->imm0, most);
	build_nest(&c->nest, in->src0.count, 0, data, 1, NULL);
	build_nest(&c->src1_nest, in->src1.count, 0, index, 1, NULL);
	build_nest(&c->dst_nest, in->dst.count, 0, results, 1, NULL);
	return 0;
}

/* dst of n_dst elements and src0, where there is no src1. */
static int take_two(struct body *b, uint32_t *n_dst)
{
	const struct isa_compute *in = b->in;
	struct nm_compute *c = b->c;
	struct nm_operand *data[] = { &c->src0 }, *results[] = { &c->dst };
	int ret = take_row_and_dst(b, n_dst)			      ?:
			  expect_zero(b, &in->src1, sizeof(in->src1)) ?:
									all_in_sbuf(b);

	if (ret)
		return ret;
	build_nest(&c->nest, in->src0.count, 0, data, 1, NULL);
	build_nest(&c->dst_nest, in->dst.count, 0, results, 1, NULL);
	return 0;
}

static int decode_nonzero(struct body *b)
{
	uint32_t n_dst;
	int ret = take_two(b, &n_dst) ?: take_scalars(b, true, true);

	if (ret)
		return ret;
	if (b->in->dst.dtype != ISA_INT32)
		return bad(b, b->in->dst.dtype, ISA_INT32);
	return n_dst == b->c->n + 1 ? 0 : bad(b, n_dst, b->c->n + 1);
}

static int check_segment_dtype(struct body *b, unsigned int dtype)
{
	return dtype == ISA_FP32 || dtype == ISA_INT32 ? 0 : bad(b, dtype, ISA_FP32);
}

static int decode_sequence_bounds(struct body *b)
{
	uint32_t n_dst;
	int ret = take_two(b, &n_dst)				   ?:
			  take_scalars(b, false, false)		   ?:
			  check_segment_dtype(b, b->in->dst.dtype) ?:
			  check_segment_dtype(b, b->in->src0.dtype);

	if (ret)
		return ret;
	if (b->c->nparts != 1)
		return bad(b, b->c->nparts, 1);
	return n_dst == 2 * b->c->n ? 0 : bad(b, n_dst, 2 * b->c->n);
}

#endif /* NM_DECODE_GATHER_H */
