/* SPDX-License-Identifier: Apache-2.0 */
/* Part of decode_compute.c, which includes it once: scales of MX formats, and making them. */
#ifndef NM_DECODE_MX_H
#define NM_DECODE_MX_H

/*
 * vec1: n scales in each of 4 partitions for 32 of the data, in the same quadrant of SBUF as these
 * (nki.isa.quantize_mx).
 */
static int take_scales(struct body *b, unsigned int part0, uint32_t n)
{
	const struct isa_column *col = &b->in->vec1;
	const unsigned int parts = ISA_PART_QUANTUM / ISA_MX_PARTS;
	const unsigned int within = col->part0 % ISA_PART_QUANTUM;
	struct nm_operand *o = &b->c->scale;
	const uint64_t end = (uint64_t)col->offset + n;

	if (col->space != ISA_SPACE_SBUF)
		return bad(b, col->space, ISA_SPACE_SBUF);
	if (col->dtype != ISA_UINT8)
		return bad(b, col->dtype, ISA_UINT8);
	if (col->part0 - within != part0 || within % parts || within >= ISA_MX_SCALE_PARTS)
		return bad(b, col->part0, part0);
	if (end > space_bytes(b, ISA_SPACE_SBUF))
		return nm_decode_fault(b->d, EXI_FAULT_TILE_BOUNDS, end,
				       space_bytes(b, ISA_SPACE_SBUF));
	o->space = col->space;
	o->dtype = col->dtype;
	o->part0 = col->part0;
	o->offset = col->offset;
	o->bytes = 1;
	note_reach(b, o, col->offset, (int64_t)end);
	return 0;
}

/* No scalars but vec1. */
static int only_scales(struct body *b)
{
	const struct isa_compute *in = b->in;

	return expect_zero(b, &in->imm0, sizeof(in->imm0))	   ?:
		       expect_zero(b, &in->imm1, sizeof(in->imm1)) ?:
		       expect_zero(b, &in->vec0, sizeof(in->vec0));
}

/* src0 [4n] of whole groups. */
static int take_unquantized(struct body *b, struct nm_reach *extent)
{
	const struct isa_tile *t = &b->in->src0;
	struct nm_compute *c = b->c;
	int ret = take_tile(b, t, SBUF, &c->src0, &c->n, extent);

	if (ret)
		return ret;
	if (t->dtype != ISA_BF16 && t->dtype != ISA_FP16)
		return bad(b, t->dtype, ISA_BF16);
	if (t->nparts % ISA_PART_QUANTUM)
		return bad(b, t->nparts, ISA_PART_QUANTUM);
	if (c->n % ISA_MX_ROWS)
		return bad(b, c->n, ISA_MX_ROWS);
	/* More do not fit beside their results. */
	if (c->n > NM_TILE_ELEMS / 2)
		return bad(b, c->n, NM_TILE_ELEMS / 2);
	c->nparts = t->nparts;
	c->columns = c->n / ISA_MX_ROWS;
	return 0;
}

static int take_quantized(struct body *b, struct nm_reach *extent)
{
	const struct isa_tile *t = &b->in->dst;
	struct nm_compute *c = b->c;
	uint32_t n;
	int ret;

	b->mx = true;
	ret = take_dst(b, t, SBUF, &c->dst, &n, extent);
	if (ret)
		return ret;
	if (t->dtype != ISA_FP8_E5_X4 && t->dtype != ISA_FP8_E4FN_X4)
		return bad(b, t->dtype, ISA_FP8_E4FN_X4);
	if (t->nparts != c->nparts)
		return bad(b, t->nparts, c->nparts);
	return n == c->columns ? 0 : bad(b, n, c->columns);
}

static int decode_quantize_mx(struct body *b)
{
	const struct isa_compute *in = b->in;
	struct nm_compute *c = b->c;
	struct nm_operand *data[] = { &c->src0 }, *results[] = { &c->dst };
	struct nm_reach de, se, scales;
	int ret;

	ret = no_ops(b, false, false)				  ?:
		      expect_zero(b, &in->src1, sizeof(in->src1)) ?:
		      only_scales(b)				  ?:
		      take_unquantized(b, &se)			  ?:
		      take_quantized(b, &de)			  ?:
		      take_scales(b, in->src0.part0, c->columns);
	if (ret)
		return ret;
	scales.low = c->scale.offset;
	scales.high = scales.low + c->columns;
	note_write(b, &c->scale, scales.high);
	/* Nothing is written where something else is read or written. */
	if (interferes(&c->dst, &de, &c->src0, &se, c->nparts))
		return bad(b, in->dst.offset, in->src0.offset);
	if (interferes(&c->scale, &scales, &c->src0, &se, c->nparts))
		return bad(b, in->vec1.offset, in->src0.offset);
	if (interferes(&c->scale, &scales, &c->dst, &de, c->nparts))
		return bad(b, in->vec1.offset, in->dst.offset);
	build_nest(&c->nest, in->src0.count, 0, data, 1, NULL);
	build_nest(&c->dst_nest, in->dst.count, 0, results, 1, NULL);
	return 0;
}

#endif /* NM_DECODE_MX_H */
