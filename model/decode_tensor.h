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

/* Rows or columns of the array, as op0 or op1 names them: the first and how many, of ISA_ARRAY_QUANTUM. */
static int take_part(struct body *b, unsigned int part, unsigned int *first, unsigned int *n)
{
	const unsigned int least = b->d->arch < NEURON_ARCH_V3 ? 2 : 1;

	*first = ISA_ARRAY_FIRST(part) / ISA_ARRAY_QUANTUM;
	*n = ISA_ARRAY_SIZE(part) / ISA_ARRAY_QUANTUM;
	if (part == ISA_ARRAY_ALL)
		*n = ISA_ARRAY_PARTS;
	else if (*n < least || *n > 2 || *first % *n || *first >= ISA_ARRAY_PARTS)
		return bad(b, part, ISA_ARRAY_PART(0, least * ISA_ARRAY_QUANTUM));
	return 0;
}

/* nki.isa.nc_matmul, tile_position and tile_size: where in the array the stationary operand is. */
static int take_array(struct body *b)
{
	const struct isa_compute *in = b->in;
	unsigned int row, n_rows, column, n_columns;
	int ret = take_part(b, in->rows, &row, &n_rows) ?:
			  take_part(b, in->columns, &column, &n_columns);

	if (ret)
		return ret;
	/* The columns of the array that many rows need are not divided. */
	if (in->mode != ISA_MODE_NONE && in->columns != ISA_ARRAY_ALL)
		return bad(b, in->columns, ISA_ARRAY_ALL);
	for (unsigned int i = row; i < row + n_rows; i++)
		b->c->array |=
			(uint16_t)(((1u << n_columns) - 1) << (i * ISA_ARRAY_PARTS + column));
	if (b->c->array != NM_ARRAY_ALL)
		b->d->divided = true;
	return 0;
}

/* A stationary operand is no larger than its part of the array. */
static int check_array(struct body *b)
{
	const struct isa_compute *in = b->in;

	if (in->rows != ISA_ARRAY_ALL && b->c->nparts > ISA_ARRAY_SIZE(in->rows))
		return bad(b, b->c->nparts, ISA_ARRAY_SIZE(in->rows));
	if (in->columns != ISA_ARRAY_ALL && b->c->columns > ISA_ARRAY_SIZE(in->columns))
		return bad(b, b->c->columns, ISA_ARRAY_SIZE(in->columns));
	return 0;
}

static int take_moving(struct body *b, uint32_t n_max)
{
	struct nm_compute *c = b->c;
	struct nm_operand *ops[] = { &c->src0 };
	struct nm_reach extent;
	int ret;

	ret = no_axes(b)							 ?:
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
			  take_array(b)			   ?:
			  take_moving(b, ISA_MATMUL_M_MAX) ?:
			  check_array(b)		   ?:
			  check_factor(b)		   ?:
			  expect_zero(b, &b->in->dst, sizeof(b->in->dst));

	if (ret)
		return ret;
	/* nki.isa.nc_matmul_mx */
	if (b->mx && b->c->columns % 2)
		return bad(b, b->c->columns, 2);
	return 0;
}

/* What the stream has loaded from here on: nothing else where this is. */
static void note_load(struct body *b)
{
	const struct nm_compute *c = b->c;
	struct nm_load *load = b->d->load;

	for (unsigned int i = 0; i < NM_ARRAY_PARTS; i++)
		if (load[i].array & c->array)
			load[i].array = 0;
	load[nm_first_part(c->array)] = (struct nm_load){ .array = c->array,
							  .k = c->nparts,
							  .m = c->columns,
							  .mode = b->in->mode,
							  .dtype = b->in->src0.dtype };
}

/* The operand that is loaded in exactly these parts of the array, or NULL. */
static struct nm_load *loaded(const struct body *b)
{
	struct nm_load *load = &b->d->load[nm_first_part(b->c->array)];

	return load->array == b->c->array ? load : NULL;
}

/* nki.isa.nc_matmul: from trn3 on, bf16, too. */
static int check_result_dtype(struct body *b)
{
	const unsigned int dtype = b->in->dst.dtype;

	if (dtype == ISA_FP32 || (dtype == ISA_BF16 && b->d->arch >= NEURON_ARCH_V4))
		return 0;
	return bad(b, dtype, ISA_FP32);
}

static int decode_matmul(struct body *b)
{
	const unsigned int dtype = b->in->src0.dtype, result = b->in->dst.dtype;
	const struct nm_load *load;
	int ret =
		take_mode(b)									  ?:
			take_array(b)								  ?:
			take_moving(b, result == ISA_BF16 ? ISA_MATMUL_N_BF16 : ISA_MATMUL_N_MAX) ?:
			check_factor(b);

	if (ret)
		return ret;
	load = loaded(b);
	if (load && b->in->mode != load->mode)
		return bad(b, b->in->mode, load->mode);
	if (!load || b->in->src0.nparts != load->k)
		return bad(b, b->in->src0.nparts, load ? load->k : 0);
	if (nm_mixes_e4(load->dtype, dtype))
		return bad(b, dtype, load->dtype);
	ret = check_result_dtype(b);
	if (ret)
		return ret;
	b->c->load_m = (uint8_t)load->m;
	return take_result(b, load->m, b->c->columns);
}

/*
 * Cycles of a load that are hidden behind the product before it, on the same parts of the array; and
 * what the next load can hide behind.
 */
static uint32_t hidden_cycles(struct body *b)
{
	const struct nm_compute *c = b->c;
	struct nm_load *load;
	uint32_t hidden;

	switch (b->inst->opcode) {
	case ISA_LOAD_STATIONARY:
		load = loaded(b);
		hidden = load ? load->matmul_cycles : 0;
		note_load(b);
		return hidden;
	case ISA_MATMUL:
		loaded(b)->matmul_cycles = nm_matmul_cycles(c->columns, c->src0.dtype == ISA_FP32);
		return 0;
	default:
		nm_forget_products(b->d);
		return 0;
	}
}

static int decode_tensor_transpose(struct body *b)
{
	int ret;

	b->c->rows = 1;
	ret = no_ops(b, false, false) ?: take_moving(b, ISA_PARTITIONS);
	if (ret)
		return ret;
	if (b->c->src0.bytes != 2 && b->c->src0.bytes != 4)
		return bad(b, b->in->src0.dtype, ISA_FP32);
	ret = take_result(b, b->c->n, b->in->src0.nparts);
	return ret ?: same_size(b, &b->c->src0);
}

#endif /* NM_DECODE_TENSOR_H */
