// SPDX-License-Identifier: Apache-2.0
/* TENSOR_TENSOR_SCAN and TENSOR_SCALAR_CUMULATIVE: results, what is refused, what is read and written, time. */
#include "bench.h"
#include "single.h"

#define ROUNDS 600

static void ref_scan(struct bench *b, const struct isa_inst *in)
{
	static struct value v0[ELEMS], v1[ELEMS];
	static uint64_t out[ELEMS];
	const struct isa_compute *c = &in->compute;

	for (unsigned int p = 0; p < c->dst.nparts; p++) {
		struct value r = scalar(b, in, 0, p);

		read_tile(b, ISA_CT_F32, &c->src0, p, v0);
		read_tile(b, ISA_CT_F32, &c->src1, p, v1);
		for (uint32_t i = 0; i < ref_elems(&c->dst); i++) {
			r = in->flags & ISA_F_REV0 ? ref_alu(ISA_CT_F32, c->op0, r, v0[i]) :
						     ref_alu(ISA_CT_F32, c->op0, v0[i], r);
			r = in->flags & ISA_F_REV1 ? ref_alu(ISA_CT_F32, c->op1, v1[i], r) :
						     ref_alu(ISA_CT_F32, c->op1, r, v1[i]);
			out[i] = ref_store(ISA_CT_F32, c->dst.dtype, r);
		}
		write_dst(b, &c->dst, p, out);
	}
}

/* All but POW, which may be off by its last place; a recurrence makes any difference of that. */
static uint8_t float_op(struct bench *b)
{
	unsigned int op;

	do
		op = pick(b, ISA_BIT_AND);
	while (op == ISA_POW);
	return (uint8_t)op;
}

static void test_scan(void **state)
{
	static const uint32_t rows[] = { 1, 2, 7, 16, 33, 100, 128 };
	struct bench *b = *state;

	for (unsigned int i = 0; i < ROUNDS; i++) {
		struct isa_inst in = { .opcode = ISA_TENSOR_TENSOR_SCAN };
		struct isa_compute *c = &in.compute;
		unsigned int nparts = 1 + pick(b, 8);
		uint32_t count[ISA_TILE_DIMS] = { 1, 1 + pick(b, 2), 1 + pick(b, 2),
						  rows[pick(b, 7)] };

		c->op0 = float_op(b);
		c->op1 = float_op(b);
		in.flags = (uint8_t)(pick(b, 4) << 1);
		c->dst = random_tile(b, random_dtype(b, ISA_VECTOR), count, nparts, REGION(0),
				     ROOM * 4 / 3, false);
		c->src0 = random_tile(b, random_dtype(b, ISA_VECTOR), count, nparts,
				      pick(b, 5) ? REGION(1) : REGION(0), ROOM * 4 / 3, true);
		c->src1 = random_tile(b, random_dtype(b, ISA_VECTOR), count, nparts, REGION(2),
				      ROOM * 4 / 3, true);
		randomise(b, &c->src0);
		randomise(b, &c->src1);
		random_scalar(b, &in, 0, ISA_VECTOR, COLUMNS);
		upload(b);
		run(b, ISA_VECTOR, &in);
		ref_scan(b, &in);
		compare(b, &in, false);
	}
}

/* What is carried on is not what dst keeps of it: 256 in bf16 does not grow by ones. */
static void test_carry_is_fp32(void **state)
{
	struct isa_inst in = { .opcode = ISA_TENSOR_TENSOR_SCAN };
	struct isa_compute *c = &in.compute;
	struct bench *b = *state;
	uint16_t got[600];

	memset(at(b->want, 0, REGION(1)), 1, 600);
	c->op0 = ISA_MULT;
	c->op1 = ISA_ADD;
	c->src0 = asm_row(ISA_SPACE_SBUF, ISA_UINT8, 0, 1, REGION(1), 600);
	c->src1 = c->src0;
	c->dst = asm_row(ISA_SPACE_SBUF, ISA_BF16, 0, 1, REGION(0), 600);
	c->imm0 = 0x41200000; /* 10 */
	upload(b);
	run(b, ISA_VECTOR, &in);
	download(b);
	memcpy(got, at(b->got, 0, REGION(0)), sizeof(got));
	assert_int_equal(got[0], 0x4130); /* 11 */
	assert_int_equal(got[501], 0x4400); /* 512 */
}

static struct isa_inst good(void)
{
	struct isa_inst in = { .opcode = ISA_TENSOR_TENSOR_SCAN, .flags = ISA_F_VEC0 };
	struct isa_compute *c = &in.compute;

	c->op0 = ISA_MULT;
	c->op1 = ISA_ADD;
	c->dst = asm_row(ISA_SPACE_SBUF, ISA_FP32, 0, 8, 256, 64);
	c->src0 = asm_row(ISA_SPACE_SBUF, ISA_BF16, 32, 8, 1024, 64);
	c->src1 = asm_row(ISA_SPACE_PSUM, ISA_FP32, 64, 8, 2048, 64);
	c->vec0 = (struct isa_column){ .offset = 64, .dtype = ISA_FP32, .part0 = 96 };
	return in;
}

static void test_refused(void **state)
{
	const unsigned int flags = ISA_F_REV0 | ISA_F_REV1 | ISA_F_VEC0 | ISA_F_NOTIFY;
	const struct isa_inst in = good();

	(void)state;
	for (unsigned int e = ISA_TENSOR; e <= ISA_SYNC; e++)
		if (e != ISA_VECTOR)
			assert_int_equal(judge(e, &in).status, EXI_FAULT_BAD_OPCODE);
	REFUSE(in, i->flags |= ISA_F_ACCUM, ISA_F_VEC0 | ISA_F_ACCUM, flags);
	REFUSE(in, i->flags |= ISA_F_VEC1, ISA_F_VEC0 | ISA_F_VEC1, flags);
	REFUSE(in, i->compute.compute_type = ISA_CT_I32, ISA_CT_I32, 1 << ISA_CT_F32);
	REFUSE(in, i->compute.op0 = ISA_BIT_AND, ISA_BIT_AND, ISA_BIT_AND);
	REFUSE(in, i->compute.op0 = ISA_ALU_OPS, ISA_ALU_OPS, ISA_ALU_OPS);
	REFUSE(in, i->compute.op1 = ISA_SHL, ISA_SHL, ISA_BIT_AND);
	REFUSE(in, i->compute.n_axes = 1, 1, 0);
	REFUSE(in, i->compute.imm0 = 1, 1, 0);
	REFUSE(in, i->compute.imm1 = 1, 1, 0);
	REFUSE(in, i->compute.vec1.offset = 4, 4, 0);
	REFUSE(in, i->compute.vec0.offset = 2, 2, 4);
	REFUSE(in, i->compute.vec0.shift = 255, 255, ISA_REGISTERS);
	REFUSE(in, i->compute.src0.count[3] = 63, 63, 64);
	REFUSE(in, i->compute.src1.count[3] = 65, 65, 64);
	REFUSE(in, i->compute.src1.nparts = 7, 7, 8);
	REFUSE(in, i->compute.src0.space = ISA_SPACE_PSUM, ISA_SPACE_PSUM, ISA_SPACE_SBUF);
	REFUSE(in, i->compute.dst.dtype = ISA_FP64, ISA_FP64, ISA_FP32);
	REFUSE_BOUNDS(in, i->compute.src1.offset = NM_PSUM_BYTES - 252, NM_PSUM_BYTES + 4,
		      NM_PSUM_BYTES);
}

static void test_accesses(void **state)
{
	const struct isa_inst in = good();
	struct rig *r = *state;

	expect_access(r, ISA_VECTOR, &in, ISA_SPACE_SBUF, 0, 7, 256, 512, WRITTEN);
	expect_access(r, ISA_VECTOR, &in, ISA_SPACE_SBUF, 32, 39, 1024, 1152, READ);
	expect_access(r, ISA_VECTOR, &in, ISA_SPACE_PSUM, 64, 71, 2048, 2304, READ);
	expect_access(r, ISA_VECTOR, &in, ISA_SPACE_SBUF, 96, 103, 64, 68, READ);
}

/* --- cumulative ------------------------------------------------------------------------------ */

/* last: result of each partition, which a later one may go on from. */
static void ref_cumulative(struct bench *b, const struct isa_inst *in, struct value *last,
			   bool go_on)
{
	static struct value v[ELEMS];
	static uint64_t out[ELEMS];
	const struct isa_compute *c = &in->compute;

	for (unsigned int p = 0; p < c->dst.nparts; p++) {
		struct value s0 = scalar(b, in, 0, p), r = go_on ? last[p] : scalar(b, in, 1, p);

		read_tile(b, ISA_CT_F32, &c->src0, p, v);
		for (uint32_t i = 0; i < ref_elems(&c->dst); i++) {
			struct value t = in->flags & ISA_F_REV0 ?
						 ref_alu(ISA_CT_F32, c->op0, s0, v[i]) :
						 ref_alu(ISA_CT_F32, c->op0, v[i], s0);

			r = ref_alu(ISA_CT_F32, c->op1, t, r);
			out[i] = ref_store(ISA_CT_F32, c->dst.dtype, r);
		}
		last[p] = r;
		write_dst(b, &c->dst, p, out);
	}
}

static unsigned int short_dtype(struct bench *b)
{
	unsigned int dtype;

	do
		dtype = random_dtype(b, ISA_VECTOR);
	while (dtype == ISA_INT32 || dtype == ISA_UINT32);
	return dtype;
}

static struct isa_inst random_cumulative(struct bench *b, unsigned int nparts, unsigned int k)
{
	static const uint8_t ops[] = { ISA_ADD, ISA_SUB, ISA_MULT, ISA_MAX, ISA_MIN };
	static const uint32_t rows[] = { 1, 2, 7, 16, 33, 100, 128 };
	struct isa_inst in = { .opcode = ISA_TENSOR_SCALAR_CUMULATIVE };
	struct isa_compute *c = &in.compute;
	uint32_t count[ISA_TILE_DIMS] = { 1, 1, 1 + pick(b, 2), rows[pick(b, 7)] };

	c->op0 = float_op(b);
	c->op1 = ops[pick(b, 5)];
	c->dst = asm_row(ISA_SPACE_SBUF, short_dtype(b), 0, nparts, REGION(0) + k * 2048, 1);
	memcpy(c->dst.count, count, sizeof(count));
	c->dst.step[2] = count[3];
	c->src0 = random_tile(b, short_dtype(b), count, nparts, REGION(1 + k), ROOM * 4 / 3, true);
	randomise(b, &c->src0);
	in.flags = pick(b, 2) ? ISA_F_REV0 : 0;
	random_scalar(b, &in, 0, ISA_VECTOR, COLUMNS + 16 * k);
	return in;
}

/* Two at a time, the second from s1 or from where the first ended. */
static void test_cumulative(void **state)
{
	struct bench *b = *state;

	for (unsigned int i = 0; i < ROUNDS; i++) {
		struct program *p = calloc(1, sizeof(*p));
		unsigned int nparts = 2 + pick(b, 7);
		struct isa_inst one = random_cumulative(b, nparts, 0);
		struct isa_inst two = random_cumulative(b, nparts - pick(b, 2), 1);
		bool go_on = pick(b, 2);
		struct value last[8];

		random_scalar(b, &one, 1, ISA_VECTOR, COLUMNS + 8);
		if (go_on)
			two.flags |= ISA_F_ACCUM;
		else
			random_scalar(b, &two, 1, ISA_VECTOR, COLUMNS + 24);
		upload(b);
		*asm_inst(p, ISA_VECTOR, one.opcode) = one;
		*asm_inst(p, ISA_VECTOR, two.opcode) = two;
		assert_int_equal(rig_program(b->rig, p, NULL).status, EXI_OK);
		free(p);
		ref_cumulative(b, &one, last, false);
		ref_cumulative(b, &two, last, go_on);
		download(b);
		/* NaN bits are not defined: the first dst is taken over where both are NaN. */
		for (unsigned int q = 0; q < nparts; q++)
			for (uint32_t n = 0; n < ref_elems(&one.compute.dst); n++) {
				uint32_t bytes = isa_dtype_bytes(one.compute.dst.dtype);
				int64_t o = ref_offset(&one.compute.dst, n);
				uint64_t want = 0, got = 0;

				memcpy(&want, at(b->want, q, o), bytes);
				memcpy(&got, at(b->got, q, o), bytes);
				assert_true(
					same(one.compute.dst.dtype, ISA_CT_F32, want, got, false));
				memcpy(at(b->want, q, o), &got, bytes);
			}
		compare(b, &two, false);
	}
}

static struct isa_inst good_cumulative(void)
{
	struct isa_inst in = { .opcode = ISA_TENSOR_SCALAR_CUMULATIVE,
			       .flags = ISA_F_VEC0 | ISA_F_VEC1 };
	struct isa_compute *c = &in.compute;

	c->op0 = ISA_MULT;
	c->op1 = ISA_ADD;
	c->dst = asm_row(ISA_SPACE_SBUF, ISA_FP32, 0, 8, 256, 64);
	c->src0 = asm_row(ISA_SPACE_PSUM, ISA_FP32, 32, 8, 2048, 64);
	c->vec0 = (struct isa_column){ .offset = 64, .dtype = ISA_FP32, .part0 = 96 };
	c->vec1 = (struct isa_column){ .offset = 128, .dtype = ISA_BF16, .part0 = 32 };
	return in;
}

static void test_cumulative_refused(void **state)
{
	const unsigned int vec = ISA_F_VEC0 | ISA_F_VEC1;
	const unsigned int flags = vec | ISA_F_REV0 | ISA_F_ACCUM | ISA_F_NOTIFY;
	const struct isa_inst in = good_cumulative();
	struct isa_inst imm = in;

	(void)state;
	imm.flags = ISA_F_VEC0;
	memset(&imm.compute.vec1, 0, sizeof(imm.compute.vec1));
	for (unsigned int e = ISA_TENSOR; e <= ISA_SYNC; e++)
		if (e != ISA_VECTOR)
			assert_int_equal(judge(e, &in).status, EXI_FAULT_BAD_OPCODE);
	REFUSE(in, i->flags |= ISA_F_REV1, vec | ISA_F_REV1, flags);
	REFUSE(in, i->flags |= ISA_F_ACCUM, vec | ISA_F_ACCUM, ISA_F_VEC0 | ISA_F_ACCUM);
	REFUSE(imm, (i->flags |= ISA_F_ACCUM, i->compute.imm1 = 5), 5, 0);
	/* Nothing to go on from. */
	REFUSE(imm, i->flags |= ISA_F_ACCUM, 8, 0);
	REFUSE(in, i->compute.compute_type = ISA_CT_BITS, ISA_CT_BITS, 1 << ISA_CT_F32);
	REFUSE(in, i->compute.op0 = ISA_BIT_OR, ISA_BIT_OR, ISA_BIT_AND);
	REFUSE(in, i->compute.op1 = ISA_DIV, ISA_DIV, ISA_ADD);
	REFUSE(in, i->compute.op1 = ISA_ALU_OPS, ISA_ALU_OPS, ISA_ADD);
	REFUSE(in, i->compute.n_axes = 1, 1, 0);
	REFUSE(in, i->compute.imm0 = 1, 1, 0);
	REFUSE(in, i->compute.vec1.offset = 1, 1, 2);
	REFUSE(in, i->compute.src0.dtype = ISA_INT32, ISA_INT32, ISA_FP32);
	REFUSE(in, i->compute.dst.dtype = ISA_UINT32, ISA_UINT32, ISA_FP32);
	REFUSE(in, i->compute.src0.count[3] = 63, 63, 64);
	REFUSE(in, i->compute.src0.nparts = 7, 7, 8);
	REFUSE(in, i->compute.src1.nparts = 7, 7, 0);
	REFUSE_BOUNDS(in, i->compute.src0.offset = NM_PSUM_BYTES - 252, NM_PSUM_BYTES + 4,
		      NM_PSUM_BYTES);
}

/* One of fewer partitions than what goes on from it is not enough; one of more is. */
static void test_cumulative_partitions(void **state)
{
	static const struct {
		unsigned int first;
		unsigned int status;
	} cases[] = { { 7, EXI_FAULT_BAD_OPERAND }, { 8, EXI_OK }, { 9, EXI_OK } };

	for (unsigned int k = 0; k < 3; k++) {
		struct program *p = calloc(1, sizeof(*p));
		struct isa_inst *one = asm_inst(p, ISA_VECTOR, ISA_TENSOR_SCALAR_CUMULATIVE);
		struct isa_inst *two = asm_inst(p, ISA_VECTOR, ISA_TENSOR_SCALAR_CUMULATIVE);
		struct exi_record rec;
		struct rig *r = ((struct bench *)*state)->rig;

		*one = *two = good_cumulative();
		one->compute.dst.nparts = one->compute.src0.nparts = (uint8_t)cases[k].first;
		two->flags = ISA_F_VEC0 | ISA_F_ACCUM;
		memset(&two->compute.vec1, 0, sizeof(two->compute.vec1));
		rec = rig_program(r, p, NULL);
		free(p);
		assert_int_equal(rec.status, cases[k].status);
		if (rec.status == EXI_OK)
			continue;
		assert_int_equal(rec.pc, 1);
		assert_int_equal(rec.value, 8);
		assert_int_equal(rec.limit, 7);
		rig_set(r, 0, EXI_Q_CONTROL, EXI_Q_RESET);
		rig_queue(r, 0, 1);
	}
}

static void test_cumulative_accesses(void **state)
{
	const struct isa_inst in = good_cumulative();
	struct rig *r = *state;

	expect_access(r, ISA_VECTOR, &in, ISA_SPACE_SBUF, 0, 7, 256, 512, WRITTEN);
	expect_access(r, ISA_VECTOR, &in, ISA_SPACE_PSUM, 32, 39, 2048, 2304, READ);
	expect_access(r, ISA_VECTOR, &in, ISA_SPACE_SBUF, 96, 103, 64, 68, READ);
	expect_access(r, ISA_VECTOR, &in, ISA_SPACE_SBUF, 32, 39, 128, 130, READ);
}

/* An element a cycle; on trn1 one of each input. */
static void test_time(void **state)
{
	static const struct {
		uint32_t arch;
		uint64_t hz;
		uint64_t cycles;
	} chips[] = {
		{ NEURON_ARCH_V2, 1120000000, 2 * 2048 },
		{ NEURON_ARCH_V3, 960000000, 2048 },
		{ NEURON_ARCH_V4, 1200000000, 2048 },
	};

	(void)state;
	for (unsigned int k = 0; k < 6; k++) {
		bool cumulative = k >= 3;
		uint64_t hz = chips[k % 3].hz, cycles = cumulative ? 2048 : chips[k % 3].cycles;
		struct isa_inst in = cumulative ? good_cumulative() : good();

		in.compute.dst.count[3] = 2048;
		in.compute.src0.count[3] = 2048;
		if (!cumulative)
			in.compute.src1.count[3] = 2048;
		/* 60 for the access. */
		expect_cycles(chips[k % 3].arch, &in, cycles + 60, hz);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_scan, setup, teardown),
		cmocka_unit_test_setup_teardown(test_carry_is_fp32, setup, teardown),
		cmocka_unit_test_setup_teardown(test_accesses, racing_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_cumulative, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cumulative_partitions, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cumulative_accesses, racing_setup,
						rig_teardown),
		cmocka_unit_test(test_cumulative_refused),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
