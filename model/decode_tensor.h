/* SPDX-License-Identifier: Apache-2.0 */
/* Part of decode_compute.c, which includes it once: the tensor engine's instructions. */
#ifndef NM_DECODE_TENSOR_H
#define NM_DECODE_TENSOR_H

/* Double rows, nki.isa.nc_matmul: e4m3 and e5m2, from trn3 on also e4m3fn, in any pair but the two of e4m3. */
static int take_double_rows(struct body *b)
{
	const unsigned int dtype = b->in->src0.dtype;

	if (b->d->arch < NEURON_ARCH_V3)
		return bad(b, b->in->mode, ISA_MODE_NONE);
	if (!isa_is_fp8(dtype) || dtype == ISA_FP8_E3)
		return bad(b, dtype, ISA_FP8_E4);
	b->c->rows = ISA_DOUBLE_ROWS;
	return 0;
}

static int take_mx(struct body *b)
{
	const unsigned int dtype = b->in->src0.dtype;

	if (b->d->arch < NEURON_ARCH_V4)
		return bad(b, b->in->mode, ISA_MODE_NONE);
	if (!isa_is_x4(dtype))
		return bad(b, dtype, ISA_FP8_E4FN_X4);
	b->c->rows = ISA_MX_ROWS;
	b->mx = true;
	return 0;
}

/* Performance mode of a product: how many rows a partition of its operands has. */
static int take_mode(struct body *b)
{
	b->c->rows = 1;
	switch (b->in->mode) {
	case ISA_MODE_NONE:
		return 0;
	case ISA_MODE_DOUBLE_ROW:
		return take_double_rows(b);
	case ISA_MODE_MX:
		return take_mx(b);
	default:
		return bad(b, b->in->mode, ISA_MODE_NONE);
	}
}

/* Columns of src0, n_max at most. Of double rows a tile has both; of MX, four in an element. */
static int take_columns(struct body *b, uint32_t n_max)
{
	struct nm_compute *c = b->c;
	const uint32_t behind = b->mx ? 1 : c->rows;

	if (c->n % behind)
		return bad(b, c->n, behind);
	if (c->n > n_max * behind)
		return bad(b, c->n, n_max * behind);
	c->columns = c->n / behind;
	return 0;
}

static int take_moving(struct body *b, uint32_t n_max)
{
	struct nm_compute *c = b->c;
	struct nm_operand *ops[] = { &c->src0 };
	struct nm_reach extent;
	int ret;

	ret = no_ops(b, false, false)						 ?:
		      expect_zero(b, &b->in->src1, sizeof(b->in->src1))		 ?:
		      (b->mx ? only_scales(b) : take_scalars(b, false, false))	 ?:
		      take_tile(b, &b->in->src0, SBUF, &c->src0, &c->n, &extent) ?:
		      take_columns(b, n_max);
	if (ret)
		return ret;
	c->nparts = b->in->src0.nparts;
	build_nest(&c->nest, b->in->src0.count, 0, ops, 1, NULL);
	if (!b->mx)
		return 0;
	if (c->nparts % ISA_PART_QUANTUM)
		return bad(b, c->nparts, ISA_PART_QUANTUM);
	return take_scales(b, c->src0.part0, c->columns);
}

/* What the tensor engine multiplies. */
static int check_factor(struct body *b)
{
	return b->mx ? 0 : check_float(b, b->in->src0.dtype);
}

static int take_result(struct body *b, unsigned int nparts, uint32_t n)
{
	const struct isa_tile *t = &b->in->dst;
	struct nm_compute *c = b->c;
	struct nm_operand *ops[] = { &c->dst };
	struct nm_reach extent;
	uint32_t elems;
	int ret;

	ret = take_dst(b, t, PSUM, &c->dst, &elems, &extent) ?: check_bank(b, &extent);
	if (ret)
		return ret;
	if (t->nparts != nparts)
		return bad(b, t->nparts, nparts);
	if (elems != n)
		return bad(b, elems, n);
	build_nest(&c->dst_nest, t->count, 0, ops, 1, NULL);
	return 0;
}

static int decode_load_stationary(struct body *b)
{
	int ret = take_mode(b)				   ?:
			  take_moving(b, ISA_MATMUL_M_MAX) ?:
			  check_factor(b)		   ?:
			  expect_zero(b, &b->in->dst, sizeof(b->in->dst));

	if (ret)
		return ret;
	b->d->load_k = b->c->nparts;
	b->d->load_m = b->c->columns;
	b->d->load_mode = b->in->mode;
	b->d->load_dtype = b->in->src0.dtype;
	/* nki.isa.nc_matmul_mx */
	if (b->mx && b->c->columns % 2)
		return bad(b, b->c->columns, 2);
	return 0;
}

static int decode_matmul(struct body *b)
{
	const unsigned int dtype = b->in->src0.dtype;
	int ret = take_mode(b) ?: take_moving(b, ISA_MATMUL_N_MAX) ?: check_factor(b);

	if (ret)
		return ret;
	if (b->d->load_k && b->in->mode != b->d->load_mode)
		return bad(b, b->in->mode, b->d->load_mode);
	/* Nothing loaded: load_k is 0, which no operand matches. */
	if (b->in->src0.nparts != b->d->load_k)
		return bad(b, b->in->src0.nparts, b->d->load_k);
	if (nm_mixes_e4(b->d->load_dtype, dtype))
		return bad(b, dtype, b->d->load_dtype);
	if (b->in->dst.dtype != ISA_FP32)
		return bad(b, b->in->dst.dtype, ISA_FP32);
	b->c->load_m = (uint8_t)b->d->load_m;
	return take_result(b, b->d->load_m, b->c->columns);
}

static int decode_tensor_transpose(struct body *b)
{
	int ret;

	b->c->rows = 1;
	ret = take_moving(b, ISA_PARTITIONS);
	if (ret)
		return ret;
	if (b->c->src0.bytes != 2 && b->c->src0.bytes != 4)
		return bad(b, b->in->src0.dtype, ISA_FP32);
	ret = take_result(b, b->c->n, b->in->src0.nparts);
	return ret ?: same_size(b, &b->c->src0);
}

#endif /* NM_DECODE_TENSOR_H */
