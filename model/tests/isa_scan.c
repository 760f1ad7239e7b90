// SPDX-License-Identifier: Apache-2.0
/* TENSOR_TENSOR_SCAN: results, what is refused, what is read and written, time. */
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
	REFUSE(in, i->compute.vec0.pad0 = 1, 1, 0);
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
	for (unsigned int k = 0; k < 3; k++) {
		struct rig *r = rig_create_of(chips[k].arch, 0, NULL);
		struct program *p = calloc(1, sizeof(*p));
		struct isa_inst *in = asm_inst(p, ISA_VECTOR, ISA_TENSOR_TENSOR_SCAN);
		struct exi_record rec;

		*in = good();
		in->compute.dst.count[3] = 2048;
		in->compute.src0.count[3] = 2048;
		in->compute.src1.count[3] = 2048;
		rig_queue(r, 0, 1);
		rec = rig_program(r, p, NULL);
		free(p);
		assert_int_equal(rec.status, EXI_OK);
		/* 60 for the access, and what HALT takes. */
		assert_uint_in_range(rec.busy_ns[ISA_VECTOR],
				     (chips[k].cycles + 60) * 1000000000 / chips[k].hz,
				     (chips[k].cycles + 60 + 32) * 1000000000 / chips[k].hz + 1);
		rig_destroy(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_scan, setup, teardown),
		cmocka_unit_test_setup_teardown(test_carry_is_fp32, setup, teardown),
		cmocka_unit_test_setup_teardown(test_accesses, racing_setup, rig_teardown),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
