/* SPDX-License-Identifier: Apache-2.0 */
/* Part of decode_compute.c, which includes it once: random numbers. */
#ifndef NM_DECODE_RANDOM_H
#define NM_DECODE_RANDOM_H

static uint8_t generators(const struct body *b)
{
	switch (b->d->engine) {
	case ISA_VECTOR:
		return ISA_RANDOM_VECTOR;
	case ISA_SCALAR:
		return ISA_RANDOM_SCALAR;
	default:
		return ISA_RANDOM_GPSIMD;
	}
}

/* In the order of nm_exec.random. */
static void use_generators(struct body *b)
{
	if (b->d->engine != ISA_VECTOR)
		b->c->generator = ISA_RANDOM_VECTOR;
	if (b->d->engine == ISA_SCALAR)
		b->c->generator += ISA_RANDOM_GPSIMD;
	b->c->generators = generators(b);
	b->d->program->random = true;
}

/* Whether the results of an instruction, which come one by one, may be rounded stochastically. */
static bool is_rounded(unsigned int opcode)
{
	switch (opcode) {
	case ISA_COPY:
	case ISA_TENSOR_TENSOR:
	case ISA_TENSOR_SCALAR:
	case ISA_SCALAR_TENSOR_TENSOR:
	case ISA_ACTIVATION:
		return true;
	default:
		return false;
	}
}

/* mode of all but products. */
static int take_rounding(struct body *b)
{
	const struct isa_compute *in = b->in;
	const unsigned int opcode = b->inst->opcode, dtype = in->dst.dtype;

	if (!in->mode || opcode == ISA_LOAD_STATIONARY || opcode == ISA_MATMUL)
		return 0;
	if (in->mode != ISA_MODE_STOCHASTIC || !is_rounded(opcode))
		return bad(b, in->mode, ISA_MODE_NONE);
	if (in->compute_type != ISA_CT_F32)
		return bad(b, in->compute_type, ISA_CT_F32);
	if (!isa_is_float(dtype) || dtype == ISA_FP32 || dtype == ISA_FP64)
		return bad(b, dtype, ISA_BF16);
	b->c->stochastic = true;
	use_generators(b);
	return 0;
}

static uint32_t state_words(const struct body *b)
{
	return (uint32_t)generators(b) * ISA_RANDOM_WORDS;
}

/* Exactly n elements of src0, and nothing else. */
static int take_words(struct body *b, uint32_t n)
{
	const struct isa_compute *in = b->in;
	struct nm_operand *ops[] = { &b->c->src0 };
	int ret = no_ops(b, false, false)			      ?:
			  expect_zero(b, &in->dst, sizeof(in->dst))   ?:
			  expect_zero(b, &in->src1, sizeof(in->src1)) ?:
			  take_scalars(b, false, false)		      ?:
									take_row(b, n, n);

	if (ret)
		return ret;
	use_generators(b);
	build_nest(&b->c->nest, in->src0.count, 0, ops, 1, NULL);
	return 0;
}

static int decode_set_seed(struct body *b)
{
	int ret = take_words(b, 1);

	if (ret)
		return ret;
	if (b->c->nparts != 1)
		return bad(b, b->c->nparts, 1);
	return b->c->src0.bytes == 4 ? 0 : bad(b, b->in->src0.dtype, ISA_UINT32);
}

static int check_state_dtype(struct body *b, unsigned int dtype)
{
	return dtype == ISA_UINT32 ? 0 : bad(b, dtype, ISA_UINT32);
}

static int decode_set_state(struct body *b)
{
	return take_words(b, state_words(b)) ?: check_state_dtype(b, b->in->src0.dtype);
}

/* dst alone. */
static int take_result_only(struct body *b)
{
	int ret = no_ops(b, false, false) ?: take_elementwise(b, false, false);

	if (!ret)
		use_generators(b);
	return ret;
}

static int decode_get_state(struct body *b)
{
	int ret = take_result_only(b)			?:
			  take_scalars(b, false, false) ?:
							  check_state_dtype(b, b->in->dst.dtype);

	if (ret)
		return ret;
	return b->c->n == state_words(b) ? 0 : bad(b, b->c->n, state_words(b));
}

/* nki.isa.rng: integers. */
static int decode_rng(struct body *b)
{
	const unsigned int dtype = b->in->dst.dtype;
	int ret = take_result_only(b) ?: take_scalars(b, false, false);

	if (ret)
		return ret;
	if (isa_is_float(dtype) || b->c->dst.bytes == 8)
		return bad(b, dtype, ISA_UINT32);
	return 0;
}

static float as_float(uint64_t imm)
{
	uint32_t bits = (uint32_t)imm;
	float x;

	memcpy(&x, &bits, sizeof(x));
	return x;
}

/* nki.isa.rand2: min < max, as far as that is known. */
static int decode_rand2(struct body *b)
{
	const struct isa_compute *in = b->in;
	int ret = take_result_only(b) ?: take_scalars(b, true, true);

	if (ret || b->inst->flags & (ISA_F_VEC0 | ISA_F_VEC1))
		return ret;
	return as_float(in->imm0) < as_float(in->imm1) ? 0 : bad(b, in->imm1, in->imm0);
}

#define ONE 0x3f800000u

static int check_probability(struct body *b)
{
	const struct isa_compute *in = b->in;

	if (!(b->inst->flags & ISA_F_VEC0))
		return as_float(in->imm0) >= 0 && as_float(in->imm0) <= 1 ? 0 :
									    bad(b, in->imm0, ONE);
	/* nki.isa.dropout: fp32 for integers, any float for floats. */
	if (isa_is_float(in->src0.dtype))
		return check_float(b, in->vec0.dtype);
	return in->vec0.dtype == ISA_FP32 ? 0 : bad(b, in->vec0.dtype, ISA_FP32);
}

static int decode_dropout(struct body *b)
{
	int ret = no_ops(b, false, false)		   ?:
			  take_elementwise(b, true, false) ?:
			  take_scalars(b, true, false)	   ?:
							     check_probability(b);

	if (ret)
		return ret;
	use_generators(b);
	return same_dtype(b);
}

#endif /* NM_DECODE_RANDOM_H */
