// SPDX-License-Identifier: Apache-2.0
/* EXPONENTIAL: results and their sums against libm, what is refused, what is touched, time. */
#define RIG_ARCH NEURON_ARCH_V4
#include "bench.h"
#include "single.h"

#define ROUNDS 300
#define RESULT (COLUMNS + 64)

/* --- results ------------------------------------------------------------------------------------ */

/* Numbers whose powers are of all sizes, with what the formats have beside them. */
static void fill(struct bench *b, const struct isa_tile *t)
{
	for (unsigned int p = 0; p < t->nparts; p++)
		for (uint32_t n = 0; n < ref_elems(t); n++) {
			long double x = ((long double)pick(b, 200000) - 100000) / 1000;
			struct format f = ref_format(t->dtype);
			uint64_t u;

			if (pick(b, 16) == 0)
				x = pick(b, 2) ? -(long double)INFINITY : 0;
			u = f.is_float ? ref_pack(f, x) : ref_saturate(f, x);
			memcpy(at(b->want, t->part0 + p, ref_offset(t, n)), &u,
			       isa_dtype_bytes(t->dtype));
		}
}

/* e to the power of src0 - s0, which is rounded first, in long double. */
static long double power(struct value x, struct value s0)
{
	return expl(ref_alu(ISA_CT_F32, ISA_SUB, x, s0).x);
}

/* The function is 2 ulp off at most, and then rounded to the dtype. */
static void expect_power(unsigned int dtype, long double want, const uint8_t *got)
{
	struct format f = ref_format(dtype);
	long double error = isfinite(want) ? ldexpl(want, -22) + 0x1p-149L : 0;
	uint64_t u = 0, low, high;

	memcpy(&u, got, (size_t)f.bits / 8);
	low = ref_store(ISA_CT_F32, dtype, ref_round(ISA_CT_F32, want - error));
	high = ref_store(ISA_CT_F32, dtype, ref_round(ISA_CT_F32, want + error));
	if (isnan(want) && isnan(number(dtype, u)))
		return;
	if (number(dtype, u) < number(dtype, low) || number(dtype, u) > number(dtype, high) ||
	    isnan(number(dtype, u)))
		fail_msg("dtype %u: 0x%llx, not 0x%llx to 0x%llx", dtype, (unsigned long long)u,
			 (unsigned long long)low, (unsigned long long)high);
}

/* Sums of powers in fp32: n of them are n roundings off at most. */
static void expect_sum(unsigned int dtype, long double sum, uint32_t n, const uint8_t *got)
{
	const long double largest = dtype == ISA_FP16 ? 65504 : FLT_MAX;
	long double error = sum * (long double)(n + 4) * 0x1p-23L;
	long double x = ref_load(ISA_CT_F32, dtype, got).x;

	if (dtype != ISA_FP32)
		error += ldexpl(sum, -(ref_format(dtype).precision));
	if (isnan(sum) ? !isnan(x) :
	    isinf(x)   ? sum + error < largest :
			 isinf(sum) || !(fabsl(x - sum) <= error + 0x1p-24L))
		fail_msg("dtype %u: sum of %u is %Lg, not %Lg", dtype, n, x, sum);
}

static void random_one(struct bench *b)
{
	static const uint8_t floats[] = { ISA_FP32, ISA_BF16, ISA_FP16 };
	static const uint32_t rows[] = { 1, 2, 7, 16, 17, 33, 100, 128 };
	struct isa_inst in = { .opcode = ISA_EXPONENTIAL };
	uint32_t count[ISA_TILE_DIMS] = { 1, 1 + pick(b, 2), 1 + pick(b, 2), rows[pick(b, 8)] };
	static struct value x[ELEMS];
	struct isa_compute *c = &in.compute;
	unsigned int nparts = 1 + pick(b, 8);
	struct isa_tile result;

	c->dst = random_tile(b, random_dtype(b, ISA_VECTOR), count, nparts, REGION(0), ROOM * 4 / 3,
			     false);
	c->src0 = random_tile(b, random_dtype(b, ISA_VECTOR), count, nparts, REGION(1),
			      ROOM * 4 / 3, true);
	fill(b, &c->src0);
	random_scalar(b, &in, 0, ISA_VECTOR, COLUMNS);
	if (in.flags & ISA_F_VEC0) {
		result = asm_row(ISA_SPACE_SBUF, c->vec0.dtype, c->vec0.part0, nparts,
				 c->vec0.offset, 1);
		fill(b, &result);
	} else {
		c->imm0 = ref_pack(ref_format(ISA_FP32), (long double)pick(b, 100) / 8);
	}
	result = asm_row(ISA_SPACE_SBUF, floats[pick(b, 3)], pick(b, 2) * 32, nparts, RESULT, 1);
	for (unsigned int p = 0; p < nparts; p++) {
		uint64_t one = ref_pack(ref_format(result.dtype), 1);

		memcpy(at(b->want, result.part0 + p, RESULT), &one, 4);
	}
	if (pick(b, 4)) {
		in.flags |= ISA_F_VEC1 | (pick(b, 2) ? ISA_F_ACCUM : 0);
		c->vec1 = (struct isa_column){ .offset = RESULT,
					       .dtype = result.dtype,
					       .part0 = result.part0 };
	}
	upload(b);
	run(b, ISA_VECTOR, &in);
	download(b);
	for (unsigned int p = 0; p < nparts; p++) {
		struct value s0 = scalar(b, &in, 0, p);
		long double sum = in.flags & ISA_F_ACCUM ? 1 : 0;

		read_tile(b, ISA_CT_F32, &c->src0, p, x);
		for (uint32_t n = 0; n < ref_elems(&c->dst); n++) {
			sum += power(x[n], s0);
			expect_power(c->dst.dtype, power(x[n], s0),
				     at(b->got, c->dst.part0 + p, ref_offset(&c->dst, n)));
		}
		if (in.flags & ISA_F_VEC1)
			expect_sum(result.dtype, sum, ref_elems(&c->dst),
				   at(b->got, result.part0 + p, RESULT));
		else
			assert_memory_equal(at(b->got, result.part0 + p, RESULT),
					    at(b->want, result.part0 + p, RESULT), 4);
	}
}

static void test_random(void **state)
{
	for (unsigned int i = 0; i < ROUNDS; i++)
		random_one(*state);
}

/* --- what is refused ------------------------------------------------------------------------- */

static struct isa_inst good(void)
{
	struct isa_inst in = { .opcode = ISA_EXPONENTIAL, .flags = ISA_F_VEC0 | ISA_F_VEC1 };
	struct isa_compute *c = &in.compute;

	c->dst = asm_row(ISA_SPACE_SBUF, ISA_FP32, 0, 8, 256, 64);
	c->src0 = asm_row(ISA_SPACE_PSUM, ISA_BF16, 32, 8, 2048, 64);
	c->vec0 = (struct isa_column){ .offset = 64, .dtype = ISA_FP32, .part0 = 96 };
	c->vec1 = (struct isa_column){ .offset = 128, .dtype = ISA_FP32, .part0 = 32 };
	return in;
}

static void test_refused(void **state)
{
	const unsigned int vec = ISA_F_VEC0 | ISA_F_VEC1;
	const struct isa_inst in = good();
	struct isa_inst none = in;

	(void)state;
	none.flags = ISA_F_VEC0;
	memset(&none.compute.vec1, 0, sizeof(none.compute.vec1));
	for (unsigned int e = ISA_TENSOR; e <= ISA_SYNC; e++)
		if (e != ISA_VECTOR)
			assert_int_equal(judge(e, &in).status, EXI_FAULT_BAD_OPCODE);
	REFUSE(in, i->flags |= ISA_F_REV0, vec | ISA_F_REV0, vec | ISA_F_ACCUM | ISA_F_NOTIFY);
	REFUSE(in, i->flags |= ISA_F_NEGATE, vec | ISA_F_NEGATE, vec | ISA_F_ACCUM | ISA_F_NOTIFY);
	REFUSE(in, i->compute.compute_type = ISA_CT_I32, ISA_CT_I32, 1 << ISA_CT_F32);
	REFUSE(in, i->compute.op0 = 1, 1, 0);
	REFUSE(in, i->compute.op1 = 1, 1, 0);
	REFUSE(in, i->compute.n_axes = 1, 1, 0);
	REFUSE(in, i->compute.mode = ISA_MODE_STOCHASTIC, ISA_MODE_STOCHASTIC, ISA_MODE_NONE);
	REFUSE(in, i->compute.src0.count[3] = 63, 63, 64);
	REFUSE(in, i->compute.src1.nparts = 8, 8, 0);
	REFUSE(in, i->compute.dst.dtype = ISA_FP64, ISA_FP64, ISA_FP32);
	REFUSE(in, i->compute.imm0 = 1, 1, 0);
	REFUSE(in, i->compute.imm1 = 1, 1, 0);
	REFUSE(in, i->compute.vec1.dtype = ISA_INT16, ISA_INT16, ISA_FP32);
	REFUSE(none, i->flags |= ISA_F_ACCUM, ISA_F_VEC0 | ISA_F_ACCUM, vec | ISA_F_ACCUM);
	REFUSE(none, i->compute.vec1.offset = 4, 4, 0);
	REFUSE_BOUNDS(in, i->compute.src0.offset = NM_PSUM_BYTES - 126, NM_PSUM_BYTES + 2,
		      NM_PSUM_BYTES);
}

/* --- checking mode, time ---------------------------------------------------------------------- */

static void test_accesses(void **state)
{
	const struct isa_inst in = good();
	struct rig *r = *state;

	expect_access(r, ISA_VECTOR, &in, ISA_SPACE_SBUF, 0, 7, 256, 512, WRITTEN);
	expect_access(r, ISA_VECTOR, &in, ISA_SPACE_PSUM, 32, 39, 2048, 2176, READ);
	expect_access(r, ISA_VECTOR, &in, ISA_SPACE_SBUF, 96, 103, 64, 68, READ);
	expect_access(r, ISA_VECTOR, &in, ISA_SPACE_SBUF, 32, 39, 128, 132, WRITTEN);
}

/* An element a cycle, and 64 for the sum. */
static void test_time(void **state)
{
	struct isa_inst in = good();

	(void)state;
	in.compute.dst.count[3] = in.compute.src0.count[3] = 2048;
	expect_cycles(NEURON_ARCH_V4, &in, 2048 + 64 + 60, 1200000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_random, setup, teardown),
		cmocka_unit_test_setup_teardown(test_accesses, racing_setup, rig_teardown),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
