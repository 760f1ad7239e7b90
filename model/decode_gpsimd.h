/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Part of decode_compute.c, which includes it once: instructions that only the gpsimd engine has, from
 * ISA_AFFINE_SELECT on.
 */
#ifndef NM_DECODE_GPSIMD_H
#define NM_DECODE_GPSIMD_H

/* nki.isa.affine_select: floats, and integers of 1 or 2 bytes. */
static int check_selected_dtype(struct body *b, unsigned int dtype)
{
	if (isa_dtype_bytes(dtype) == 8)
		return bad(b, dtype, ISA_FP32);
	return check_cumulative_dtype(b, dtype);
}

static int check_compare(struct body *b, unsigned int op)
{
	return op >= ISA_IS_EQ && op <= ISA_IS_LE ? 0 : bad(b, op, ISA_IS_LE);
}

static void take_affine(struct body *b)
{
	const struct isa_affine *f = &b->in->affine;
	struct nm_compute *c = b->c;

	c->start = (int32_t)f->start;
	c->part_step = (int32_t)f->part_step;
	for (unsigned int i = 0; i < ISA_TILE_DIMS; i++)
		c->src1.step[i] = (int32_t)f->step[i];
}

static int decode_affine_select(struct body *b)
{
	const struct isa_compute *in = b->in;
	struct nm_compute *c = b->c;
	struct nm_operand *ops[] = { &c->dst, &c->src0, &c->src1 };
	struct nm_reach extent;
	uint32_t n;
	int ret = no_ops(b, true, false)					   ?:
			  check_compare(b, in->op0)				   ?:
			  take_row(b, 1, NM_TILE_ELEMS)				   ?:
			  take_dst(b, &in->dst, SBUF | PSUM, &c->dst, &n, &extent) ?:
			  same_shape(b, &in->src0, &in->dst)			   ?:
			  check_selected_dtype(b, in->dst.dtype)		   ?:
			  check_selected_dtype(b, in->src0.dtype)		   ?:
			  expect_zero(b, in->affine.pad0, sizeof(in->affine.pad0)) ?:
			  take_scalars(b, true, false);

	if (ret)
		return ret;
	take_affine(b);
	build_nest(&c->nest, in->dst.count, 0, ops, 3, NULL);
	return 0;
}

#endif /* NM_DECODE_GPSIMD_H */
