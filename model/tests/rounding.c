// SPDX-License-Identifier: Apache-2.0
/* Stochastic rounding: to the bit after the specification, right on average, the same every time. */
#include "bench.h"
#include "single.h"
#include "xorwow.h"

static const uint8_t narrow[] = { ISA_BF16,   ISA_FP16,	  ISA_TF32,    ISA_FP8_E3,
				  ISA_FP8_E4, ISA_FP8_E5, ISA_FP8_E4FN };
#define NARROW (sizeof(narrow) / sizeof(narrow[0]))

/* --- reference ----------------------------------------------------------------------------------- */

/* Element of a dtype that x becomes with the number r. */
static uint64_t ref_stochastic(unsigned int dtype, long double x, uint32_t r)
{
	const struct format f = ref_format(dtype);
	long double unit, low, up;
	int exp;

	if (isnan(x) || isinf(x) || x == 0)
		return ref_pack(f, x);
	exp = ilogbl(x) < f.min_exp ? f.min_exp : ilogbl(x);
	unit = ldexpl(1, exp - f.precision + 1);
	low = floorl(fabsl(x) / unit);
	up = floorl(ldexpl(fabsl(x) / unit - low, 32));
	/* Exact, or beyond the largest. */
	return ref_pack(f, copysignl((low + (r < up)) * unit, x));
}

static void reference(struct bench *b, unsigned int engine, const struct isa_inst *in)
{
	static uint64_t out[ELEMS];
	static struct value v[ELEMS], w[ELEMS];
	const struct isa_compute *c = &in->compute;
	const unsigned int n = many(engine);

	for (unsigned int p = 0; p < c->dst.nparts; p++) {
		struct generator g[4];

		for (unsigned int i = 0; i < n; i++)
			g[i] = ref_seeded(0, 8 * p + first_of(engine) + i);
		read_tile(b, ISA_CT_F32, &c->src0, p, v);
		if (in->opcode == ISA_TENSOR_TENSOR)
			read_tile(b, ISA_CT_F32, &c->src1, p, w);
		for (uint32_t i = 0; i < ref_elems(&c->dst); i++) {
			if (in->opcode == ISA_TENSOR_TENSOR)
				v[i] = ref_alu(ISA_CT_F32, c->op0, v[i], w[i]);
			if (in->opcode == ISA_TENSOR_SCALAR)
				v[i] = ref_alu(ISA_CT_F32, c->op0, v[i],
					       ref_imm(ISA_CT_F32, c->imm0));
			out[i] = ref_stochastic(c->dst.dtype, v[i].x, ref_next(&g[i % n]));
		}
		write_dst(b, &c->dst, p, out);
	}
}

/* --- instructions -------------------------------------------------------------------------------- */

static uint32_t bits_f32(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits;
}

static struct isa_inst stochastic(unsigned int opcode)
{
	struct isa_inst in = { .opcode = (uint8_t)opcode };

	in.compute.mode = ISA_MODE_STOCHASTIC;
	if (opcode == ISA_TENSOR_TENSOR || opcode == ISA_TENSOR_SCALAR)
		in.compute.op0 = ISA_ADD;
	if (opcode == ISA_TENSOR_SCALAR)
		in.compute.imm0 = bits_f32(0.37f);
	return in;
}

/* Numbers of all sizes that the dtype has, and some that it has not. */
static void random_numbers(struct bench *b, const struct isa_tile *t, unsigned int dtype)
{
	const struct format f = ref_format(dtype);
	const int lowest = f.min_exp - f.precision < -149 ? -149 : f.min_exp - f.precision - 14;
	const int range = (f.min_exp < -100 ? 128 : 4 - f.min_exp) - lowest;

	for (unsigned int p = 0; p < t->nparts; p++)
		for (uint32_t n = 0; n < ref_elems(t); n++) {
			float x = (float)ldexp(1 + (double)(rnd(b) >> 11) * 0x1p-53,
					       lowest + (int)pick(b, (unsigned int)range));
			uint64_t u = random_element(b, t->dtype);

			if (t->dtype == ISA_FP32 && pick(b, 10)) {
				u = bits_f32(pick(b, 2) ? x : -x);
				if (pick(b, 4) == 0)
					u &= 0xffff0000;
			}
			memcpy(at(b->want, t->part0 + p, ref_offset(t, n)), &u,
			       isa_dtype_bytes(t->dtype));
		}
}

/* Any shape, strides, pieces and places of operands; one launch each, whose generators begin anew. */
static void results_are_as_specified(void **state)
{
	static const uint8_t ops[] = { ISA_COPY, ISA_TENSOR_SCALAR, ISA_TENSOR_TENSOR };
	struct bench *b = *state;

	for (unsigned int k = 0; k < 300; k++) {
		const unsigned int engine = engines[k % 3];
		struct isa_inst in = stochastic(ops[pick(b, engine == ISA_SCALAR ? 2 : 3)]);
		struct isa_compute *c = &in.compute;
		const unsigned int dtype = narrow[pick(b, NARROW)], nparts = 1 + pick(b, 8);
		uint32_t count[ISA_TILE_DIMS];

		/* With gaps at most four times as many bytes. */
		do
			random_shape(b, count);
		while (count[0] * count[1] * count[2] * count[3] > 10240 / 4 / 4);
		c->dst = random_tile(b, dtype, count, nparts, 0, 10240, false);
		c->src0 = random_tile(b, pick(b, 5) ? ISA_FP32 : ISA_BF16, count, nparts, 10240,
				      10240, true);
		random_numbers(b, &c->src0, dtype);
		if (in.opcode == ISA_TENSOR_TENSOR) {
			c->src1 = random_tile(b, ISA_FP32, count, nparts, 20480, 10240, true);
			random_numbers(b, &c->src1, dtype);
		}
		upload(b);
		run(b, engine, &in);
		reference(b, engine, &in);
		compare(b, &in, false);
	}
}

/* Shared by host threads, and twice: what the threads do makes no difference. */
static void threads_make_no_difference(void **state)
{
	struct bench *b = *state;
	struct isa_inst in = stochastic(ISA_COPY);

	in.compute.dst = asm_row(ISA_SPACE_SBUF, ISA_BF16, 0, 32, 0, 4000);
	in.compute.src0 = asm_row(ISA_SPACE_SBUF, ISA_FP32, 0, 32, 8192, 4000);
	for (unsigned int k = 0; k < 6; k++) {
		random_numbers(b, &in.compute.src0, ISA_BF16);
		upload(b);
		for (unsigned int again = 0; again < 2; again++) {
			run(b, engines[k % 3], &in);
			reference(b, engines[k % 3], &in);
			compare(b, &in, false);
		}
	}
}

/* --- on average ---------------------------------------------------------------------------------- */

#define DRAWS 4000 /* of each of 32 partitions */

static long double mean_of(struct bench *b, unsigned int engine, unsigned int dtype, float x)
{
	struct isa_inst in = stochastic(ISA_COPY);
	long double sum = 0;

	in.compute.dst = asm_row(ISA_SPACE_SBUF, dtype, 0, 32, 0, DRAWS);
	in.compute.src0 = asm_row(ISA_SPACE_SBUF, ISA_FP32, 0, 32, 16384, DRAWS);
	in.compute.src0.step[3] = 0;
	for (unsigned int p = 0; p < 32; p++)
		memcpy(at(b->want, p, 16384), &x, sizeof(x));
	upload(b);
	run(b, engine, &in);
	download(b);
	for (unsigned int p = 0; p < 32; p++)
		for (unsigned int i = 0; i < DRAWS; i++)
			sum += ref_load(ISA_CT_F32, dtype,
					at(b->got, p, (int64_t)i * isa_dtype_bytes(dtype)))
				       .x;
	memcpy(b->want, b->got, (size_t)PARTS * AREA);
	return sum / (32 * DRAWS);
}

/* Within 5 standard deviations of the mean: sqrt(f (1 - f) / draws) of a unit. */
static void results_are_right_on_average(void **state)
{
	static const double fractions[] = { 0, 0x1p-8, 0.125, 1.0 / 3, 0.5, 0.75, 1 - 0x1p-8 };
	struct bench *b = *state;

	for (unsigned int d = 0; d < NARROW; d++) {
		const struct format f = ref_format(narrow[d]);
		/* A normal number, one below them, and one below the least. */
		const long double lows[] = { ldexpl(1.5L, 1), ldexpl(1.5L, f.min_exp - 1), 0 };

		for (unsigned int k = 0; k < 3 * sizeof(fractions) / sizeof(fractions[0]); k++) {
			const long double low = lows[k % 3], part = fractions[k / 3];
			const int exp = k % 3 ? f.min_exp : 1;
			const long double unit = ldexpl(1, exp - f.precision + 1);
			const float x = (float)(low + part * unit);
			const long double real = ((long double)x - low) / unit;
			const long double limit =
				5 * unit * sqrtl(real * (1 - real) / (32 * DRAWS));
			long double off;

			if (f.min_exp < -100 && k % 3)
				continue; /* fp32 has few numbers there */
			off = mean_of(b, engines[k % 3], narrow[d], k & 1 ? -x : x) -
			      (k & 1 ? -(long double)x : (long double)x);
			if (fabsl(off) > limit)
				fail_msg("dtype %u, %g: off by %g of %g", narrow[d], (double)x,
					 (double)(off / unit), (double)(limit / unit));
		}
	}
}

/* What it is for: steps that are too small to change a sum of bf16 if rounded to the nearest. */
static void small_steps_add_up(void **state)
{
	enum { STEPS = 240 };
	struct bench *b = *state;

	for (unsigned int on = 0; on < 2; on++) {
		struct program *p = calloc(1, sizeof(*p));
		const uint16_t one = 0x3f80;
		long double sum = 0;

		for (unsigned int part = 0; part < 32; part++)
			for (unsigned int i = 0; i < 16; i++)
				memcpy(at(b->want, part, 2 * i), &one, sizeof(one));
		upload(b);
		for (unsigned int i = 0; i < STEPS; i++) {
			struct isa_inst *in = asm_inst(p, ISA_VECTOR, ISA_TENSOR_SCALAR);

			in->compute.mode = on ? ISA_MODE_STOCHASTIC : ISA_MODE_NONE;
			in->compute.op0 = ISA_ADD;
			in->compute.imm0 = bits_f32(0x1p-9f);
			in->compute.dst = asm_row(ISA_SPACE_SBUF, ISA_BF16, 0, 32, 0, 16);
			in->compute.src0 = in->compute.dst;
		}
		assert_int_equal(rig_program(b->rig, p, NULL).status, EXI_OK);
		free(p);
		download(b);
		for (unsigned int part = 0; part < 32; part++)
			for (unsigned int i = 0; i < 16; i++)
				sum += ref_load(ISA_CT_F32, ISA_BF16, at(b->got, part, 2 * i)).x;
		memcpy(b->want, b->got, (size_t)PARTS * AREA);
		sum /= 32 * 16;
		/* A step is a quarter of a unit of 2^-7: 512 sums, each of variance 240 * 3/16 units^2. */
		if (on)
			assert_true(fabsl(sum - (1 + ldexpl(STEPS, -9))) <
				    5 * ldexpl(sqrtl(STEPS * 3 / 16.0L / 512), -7));
		else
			assert_true(sum == 1);
	}
}

/* --- what is refused ------------------------------------------------------------------------- */

static void what_is_refused(void **state)
{
	struct isa_inst in = stochastic(ISA_COPY), other = { .opcode = ISA_REDUCE };

	(void)state;
	in.compute.dst = asm_row(ISA_SPACE_SBUF, ISA_BF16, 0, 8, 0, 64);
	in.compute.src0 = asm_row(ISA_SPACE_SBUF, ISA_FP32, 0, 8, 1024, 64);
	REFUSE(in, i->compute.dst.dtype = ISA_FP32, ISA_FP32, ISA_BF16);
	REFUSE(in, i->compute.dst.dtype = ISA_INT16, ISA_INT16, ISA_BF16);
	REFUSE(in, i->compute.mode = 255, 255, ISA_MODE_NONE);
	REFUSE(in, i->compute.shift[2] = 1, 1, 0);
	REFUSE_ON(ISA_GPSIMD, in, i->compute.compute_type = ISA_CT_F64, EXI_FAULT_BAD_OPERAND,
		  ISA_CT_F64, ISA_CT_F32);
	REFUSE(in, (i->compute.compute_type = ISA_CT_BITS, i->compute.src0.dtype = ISA_FP16),
	       ISA_CT_BITS, ISA_CT_F32);
	other.compute = in.compute;
	other.compute.mode = ISA_MODE_NONE;
	other.compute.op0 = ISA_ADD;
	other.compute.n_axes = 1;
	other.compute.dst.count[3] = 1;
	REFUSE(other, i->compute.mode = ISA_MODE_STOCHASTIC, ISA_MODE_STOCHASTIC, ISA_MODE_NONE);
}

/* Rounding takes no time: the public page of trn3 has four numbers a cycle. */
static void rounding_takes_no_time(void **state)
{
	struct isa_inst in = stochastic(ISA_COPY);

	(void)state;
	in.compute.dst = asm_row(ISA_SPACE_SBUF, ISA_BF16, 0, 8, 0, 1000);
	in.compute.src0 = asm_row(ISA_SPACE_SBUF, ISA_FP32, 0, 8, 4096, 1000);
	expect_cycles_on(NEURON_ARCH_V3, ISA_VECTOR, &in, 1060, 960000000);
	expect_cycles_on(NEURON_ARCH_V3, ISA_SCALAR, &in, 1060, 1200000000);
}

/* A chip that has all dtypes. */
static int setup_trn3(void **state)
{
	struct bench *b;

	setup(state);
	b = *state;
	rig_destroy(b->rig);
	b->rig = rig_create_of(NEURON_ARCH_V4, 0, NULL);
	rig_queue(b->rig, 0, 1);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(results_are_as_specified),
		cmocka_unit_test(threads_make_no_difference),
		cmocka_unit_test(results_are_right_on_average),
		cmocka_unit_test(small_steps_add_up),
		cmocka_unit_test(what_is_refused),
		cmocka_unit_test(rounding_takes_no_time),
	};

	return cmocka_run_group_tests(tests, setup_trn3, teardown);
}
