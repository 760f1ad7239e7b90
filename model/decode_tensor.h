/* SPDX-License-Identifier: Apache-2.0 */
/* Part of decode_compute.c, which includes it once: the tensor engine's instructions. */
#ifndef NM_DECODE_TENSOR_H
#define NM_DECODE_TENSOR_H

/* Performance mode of a product: with double rows each partition has two of them. */
static int take_mode(struct body *b)
{
	const unsigned int mode = b->in->mode, dtype = b->in->src0.dtype;

	b->c->rows = 1;
	if (mode == ISA_MODE_NONE)
		return 0;
	/* NKI Trainium2 guide: e4m3 and e5m2, in any pair. */
	if (mode != ISA_MODE_DOUBLE_ROW || b->d->arch < NEURON_ARCH_V3)
		return bad(b, mode, ISA_MODE_NONE);
	if (dtype != ISA_FP8_E4 && dtype != ISA_FP8_E5)
		return bad(b, dtype, ISA_FP8_E4);
	b->c->rows = ISA_DOUBLE_ROWS;
	return 0;
}

/* src0 of at most n_max elements in each of a partition's rows. */
static int take_moving(struct body *b, uint32_t n_max)
{
	struct nm_compute *c = b->c;
	struct nm_operand *ops[] = { &c->src0 };
	struct extent extent;
	int ret;

	ret = no_ops(b, false, false)					?:
		      expect_zero(b, &b->in->src1, sizeof(b->in->src1)) ?:
		      take_scalars(b, false, false)			?:
		      take_tile(b, &b->in->src0, SBUF, &c->src0, &c->n, &extent);
	if (ret)
		return ret;
	if (c->n % c->rows)
		return bad(b, c->n, c->rows);
	if (c->n > n_max * c->rows)
		return bad(b, c->n, n_max * c->rows);
	c->nparts = b->in->src0.nparts;
	build_nest(&c->nest, b->in->src0.count, 0, ops, 1, NULL);
	return 0;
}

static int take_result(struct body *b, unsigned int nparts, uint32_t n)
{
	const struct isa_tile *t = &b->in->dst;
	struct nm_compute *c = b->c;
	struct nm_operand *ops[] = { &c->dst };
	struct extent extent;
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
	int ret = take_mode(b)				    ?:
			  take_moving(b, ISA_MATMUL_M_MAX)  ?:
			  check_float(b, b->in->src0.dtype) ?:
			  expect_zero(b, &b->in->dst, sizeof(b->in->dst));

	if (ret)
		return ret;
	b->d->load_k = b->c->nparts;
	b->d->load_m = b->c->n / b->c->rows;
	b->d->load_mode = b->in->mode;
	return 0;
}

static int decode_matmul(struct body *b)
{
	int ret = take_mode(b)				   ?:
			  take_moving(b, ISA_MATMUL_N_MAX) ?:
							     check_float(b, b->in->src0.dtype);

	if (ret)
		return ret;
	if (b->d->load_k && b->in->mode != b->d->load_mode)
		return bad(b, b->in->mode, b->d->load_mode);
	/* Nothing loaded: load_k is 0, which no operand matches. */
	if (b->in->src0.nparts != b->d->load_k)
		return bad(b, b->in->src0.nparts, b->d->load_k);
	if (b->in->dst.dtype != ISA_FP32)
		return bad(b, b->in->dst.dtype, ISA_FP32);
	return take_result(b, b->d->load_m, b->c->n / b->c->rows);
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
