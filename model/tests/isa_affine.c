// SPDX-License-Identifier: Apache-2.0
/* AFFINE_SELECT: results, what is refused, what is touched, time. */
#include "bench.h"
#include "single.h"

#define ROUNDS 500
#define LOWEST 0xff7fffff /* -FLT_MAX */

static const uint8_t comparisons[] = { ISA_IS_EQ, ISA_IS_NE, ISA_IS_GT,
				       ISA_IS_GE, ISA_IS_LT, ISA_IS_LE };

/* --- reference -------------------------------------------------------------------------------- */

static bool selected(const struct isa_compute *c, unsigned int p, uint32_t n)
{
	long double x = (long double)(int32_t)c->affine.start +
			(long double)p * (int32_t)c->affine.part_step;

	for (int d = ISA_TILE_DIMS - 1; d >= 0; d--) {
		x += (long double)(n % c->dst.count[d]) * (int32_t)c->affine.step[d];
		n /= c->dst.count[d];
	}
	return ref_float_alu(c->op0, x, 0) != 0;
}

static void reference(struct bench *b, const struct isa_inst *in)
{
	static struct value v[ELEMS];
	static uint64_t out[ELEMS];
	const struct isa_compute *c = &in->compute;

	for (unsigned int p = 0; p < c->dst.nparts; p++) {
		read_tile(b, ISA_CT_F32, &c->src0, p, v);
		for (uint32_t n = 0; n < ref_elems(&c->dst); n++)
			out[n] = ref_store(ISA_CT_F32, c->dst.dtype,
					   selected(c, p, n) ? v[n] : ref_imm(ISA_CT_F32, c->imm0));
		write_dst(b, &c->dst, p, out);
	}
}

/* --- random instructions ----------------------------------------------------------------------- */

static unsigned int selected_dtype(struct bench *b)
{
	unsigned int dtype;

	do
		dtype = random_dtype(b, ISA_VECTOR);
	while (dtype == ISA_INT32 || dtype == ISA_UINT32);
	return dtype;
}

/* Small numbers, of which many are at the bound, or anything. */
static uint32_t random_term(struct bench *b)
{
	static const uint32_t extremes[] = { 0x80000000, 0x7fffffff };

	switch (pick(b, 8)) {
	case 0:
		return extremes[pick(b, 2)];
	case 1:
		return (uint32_t)rnd(b);
	case 2:
		return 0;
	default:
		return pick(b, 9) - 4;
	}
}

static void test_random(void **state)
{
	static const uint32_t rows[] = { 1, 2, 7, 16, 17, 33, 100, 128 };
	struct bench *b = *state;

	for (unsigned int i = 0; i < ROUNDS; i++) {
		struct isa_inst in = { .opcode = ISA_AFFINE_SELECT };
		struct isa_compute *c = &in.compute;
		unsigned int nparts = 1 + pick(b, 8);
		uint32_t count[ISA_TILE_DIMS] = { 1 + pick(b, 2), 1 + pick(b, 2), 1 + pick(b, 3),
						  rows[pick(b, 8)] };

		c->op0 = comparisons[pick(b, 6)];
		c->dst = random_tile(b, selected_dtype(b), count, nparts, REGION(0), ROOM * 4 / 3,
				     false);
		c->src0 = random_tile(b, selected_dtype(b), count, nparts,
				      pick(b, 5) ? REGION(1) : REGION(0), ROOM * 4 / 3, true);
		randomise(b, &c->src0);
		c->imm0 = random_imm(b, ISA_CT_F32);
		c->affine.start = pick(b, 2) ? pick(b, 200) - 100 : random_term(b);
		c->affine.part_step = random_term(b);
		for (unsigned int d = 0; d < ISA_TILE_DIMS; d++)
			c->affine.step[d] = random_term(b);
		upload(b);
		run(b, ISA_GPSIMD, &in);
		reference(b, &in);
		compare(b, &in, false);
	}
}

/* What it is for, in one instruction that host threads share: a causal mask of scores. */
static void test_causal(void **state)
{
	struct bench *b = *state;
	struct isa_inst in = { .opcode = ISA_AFFINE_SELECT };
	struct isa_compute *c = &in.compute;

	c->op0 = ISA_IS_GE;
	c->src0 = asm_row(ISA_SPACE_SBUF, ISA_BF16, 0, 32, REGION(1), 2048);
	c->dst = asm_row(ISA_SPACE_SBUF, ISA_BF16, 0, 32, REGION(0), 2048);
	c->affine.start = 3;
	c->affine.part_step = 50;
	c->affine.step[3] = (uint32_t)-1;
	c->imm0 = LOWEST;
	randomise(b, &c->src0);
	upload(b);
	run(b, ISA_GPSIMD, &in);
	download(b);
	for (unsigned int q = 0; q < 32; q++)
		for (unsigned int k = 0; k < 2048; k++) {
			uint16_t want, got;

			memcpy(&want, at(b->want, q, REGION(1) + 2 * k), 2);
			memcpy(&got, at(b->got, q, REGION(0) + 2 * k), 2);
			if (k > 50 * q + 3)
				want = 0xff80; /* -FLT_MAX rounds to -infinity */
			if (!same(ISA_BF16, ISA_CT_F32, want, got, false))
				fail_msg("row %u, element %u: 0x%x, not 0x%x", q, k, got, want);
		}
}

/* --- what is refused ------------------------------------------------------------------------- */

static struct isa_inst good(void)
{
	struct isa_inst in = { .opcode = ISA_AFFINE_SELECT };
	struct isa_compute *c = &in.compute;

	c->dst = asm_row(ISA_SPACE_SBUF, ISA_FP32, 0, 8, 256, 64);
	c->src0 = asm_row(ISA_SPACE_PSUM, ISA_BF16, 32, 8, 2048, 64);
	c->op0 = ISA_IS_GE;
	c->imm0 = LOWEST;
	c->affine.part_step = 1;
	c->affine.step[3] = (uint32_t)-1;
	return in;
}

#define BAD(base, change, val, lim) \
	REFUSE_ON(ISA_GPSIMD, base, change, EXI_FAULT_BAD_OPERAND, val, lim)

static void test_refused(void **state)
{
	const struct isa_inst in = good();

	(void)state;
	for (unsigned int e = ISA_TENSOR; e <= ISA_SYNC; e++)
		if (e != ISA_GPSIMD)
			assert_int_equal(judge(e, &in).status, EXI_FAULT_BAD_OPCODE);
	for (unsigned int flag = 1; flag < ISA_F_NOTIFY; flag *= 2)
		BAD(in, i->flags = (uint8_t)flag, flag, ISA_F_NOTIFY);
	BAD(in, i->compute.compute_type = ISA_CT_I32, ISA_CT_I32, 1 << ISA_CT_F32);
	BAD(in, i->compute.compute_type = ISA_CT_BITS, ISA_CT_BITS, 1 << ISA_CT_F32);
	BAD(in, i->compute.op0 = ISA_MOD, ISA_MOD, ISA_IS_LE);
	BAD(in, i->compute.op0 = ISA_LOGICAL_AND, ISA_LOGICAL_AND, ISA_IS_LE);
	BAD(in, i->compute.op0 = 255, 255, ISA_IS_LE);
	BAD(in, i->compute.op1 = 1, 1, 0);
	BAD(in, i->compute.n_axes = 1, 1, 0);
	BAD(in, i->compute.mode = ISA_MODE_STOCHASTIC, ISA_MODE_STOCHASTIC, 0);
	BAD(in, i->compute.shift[2] = 1, 1, 0);
	BAD(in, i->compute.src0.count[3] = 63, 63, 64);
	BAD(in, i->compute.src0.nparts = 7, 7, 8);
	BAD(in, i->compute.src0.part0 = 16, 16, ISA_PART_QUANTUM);
	BAD(in, i->compute.src0.space = ISA_SPACE_SLOT, ISA_SPACE_SLOT, ISA_SPACE_SBUF);
	BAD(in, i->compute.dst.count[0] = 0, 0, NM_TILE_ELEMS);
	BAD(in, i->compute.dst.dtype = ISA_INT32, ISA_INT32, ISA_FP32);
	BAD(in, i->compute.dst.dtype = ISA_UINT32, ISA_UINT32, ISA_FP32);
	BAD(in, i->compute.dst.dtype = ISA_FP64, ISA_FP64, ISA_FP32);
	BAD(in, i->compute.src0.dtype = 0, 0, ISA_FP32);
	BAD(in, (i->compute.src0.dtype = ISA_UINT32), ISA_UINT32, ISA_FP32);
	BAD(in, (i->compute.src0.dtype = ISA_INT64), ISA_INT64, ISA_FP32);
	BAD(in, i->compute.affine.pad0[0] = 1, 1, 0);
	BAD(in, i->compute.affine.pad0[15] = 2, 2, 0);
	BAD(in, i->compute.imm0 = 1ull << 32, 1ull << 32, UINT32_MAX);
	BAD(in, i->compute.imm1 = 1, 1, 0);
	BAD(in, i->compute.vec0.offset = 4, 4, 0);
	BAD(in, i->compute.vec1.dtype = ISA_FP32, ISA_FP32, 0);
	REFUSE_ON(ISA_GPSIMD, in, i->compute.dst.offset = 192 * 1024 - 252, EXI_FAULT_TILE_BOUNDS,
		  192 * 1024 + 4, 192 * 1024);
	REFUSE_ON(ISA_GPSIMD, in, i->compute.src0.offset = NM_PSUM_BYTES - 126,
		  EXI_FAULT_TILE_BOUNDS, NM_PSUM_BYTES + 2, NM_PSUM_BYTES);
}

/* --- checking mode, time ---------------------------------------------------------------------- */

static void test_accesses(void **state)
{
	const struct isa_inst in = good();
	struct rig *r = *state;

	expect_access(r, ISA_GPSIMD, &in, ISA_SPACE_SBUF, 0, 7, 256, 512, WRITTEN);
	expect_access(r, ISA_GPSIMD, &in, ISA_SPACE_PSUM, 32, 39, 2048, 2176, READ);
}

/* 150 cycles and one for each element. */
static void test_time(void **state)
{
	static const struct {
		uint32_t arch;
		uint64_t hz;
	} chips[] = {
		{ NEURON_ARCH_V2, 1400000000 },
		{ NEURON_ARCH_V3, 1200000000 },
		{ NEURON_ARCH_V4, 1200000000 },
	};

	(void)state;
	for (unsigned int k = 0; k < 3; k++) {
		struct isa_inst in = good();

		in.compute.dst.count[3] = in.compute.src0.count[3] = 1000;
		expect_cycles_on(chips[k].arch, ISA_GPSIMD, &in, 1150, chips[k].hz);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_random, setup, teardown),
		cmocka_unit_test_setup_teardown(test_causal, setup, teardown),
		cmocka_unit_test_setup_teardown(test_accesses, racing_setup, rig_teardown),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
