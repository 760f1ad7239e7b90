// SPDX-License-Identifier: Apache-2.0
/* STREAM_SHUFFLE, and TRANSPOSE on the vector engine: results, what is refused, what is touched, time. */
#include "bench.h"
#include "single.h"

#define ROUNDS 500
#define KEEP   0xff

static unsigned int dtype_of(struct bench *b)
{
	return random_dtype(b, ISA_VECTOR);
}

/* With more than 8 partitions a tile of the bench begins at partition 0. */
static struct isa_tile tile(struct bench *b, unsigned int dtype, const uint32_t *count,
			    unsigned int nparts, uint32_t base, bool repeats)
{
	struct isa_tile t = random_tile(b, dtype, count, nparts, base, ROOM, repeats);

	if (nparts > 8)
		t.part0 = 0;
	return t;
}

static void get(struct bench *b, const struct isa_tile *t, unsigned int p, uint32_t n, void *elem)
{
	memcpy(elem, at(b->want, t->part0 + p, ref_offset(t, n)), isa_dtype_bytes(t->dtype));
}

static void put(struct bench *b, const struct isa_tile *t, unsigned int p, uint32_t n,
		const void *elem)
{
	memcpy(at(b->want, t->part0 + p, ref_offset(t, n)), elem, isa_dtype_bytes(t->dtype));
}

/* Bits: a NaN is compared like anything else. */
static void expect_want(struct bench *b, const struct isa_inst *in)
{
	download(b);
	if (memcmp(b->want, b->got, (size_t)PARTS * AREA))
		fail_msg("opcode 0x%x, %u partitions, dtype %u", in->opcode,
			 in->compute.src0.nparts, in->compute.src0.dtype);
}

/* --- transpose -------------------------------------------------------------------------------- */

static void test_transpose(void **state)
{
	static const uint32_t sizes[] = { 1, 2, 3, 8, 16, 24, 31, 32 };
	static uint64_t elem[32][32];
	struct bench *b = *state;

	for (unsigned int i = 0; i < ROUNDS; i++) {
		struct isa_inst in = { .opcode = ISA_TRANSPOSE };
		struct isa_compute *c = &in.compute;
		uint32_t parts = sizes[pick(b, 8)], n = sizes[pick(b, 8)];
		uint32_t row[ISA_TILE_DIMS] = { 1, 1, 1, n },
			 column[ISA_TILE_DIMS] = { 1, 1, 1, parts };
		unsigned int dtype = dtype_of(b);

		if (n % 2 == 0 && pick(b, 2))
			row[0] = 2, row[3] = n / 2;
		if (parts % 2 == 0 && pick(b, 2))
			column[2] = 2, column[3] = parts / 2;
		c->compute_type = ISA_CT_BITS;
		c->src0 = tile(b, dtype, row, parts, REGION(0), true);
		/* A half of them where src0 lies. */
		c->dst = tile(b, dtype, column, n, pick(b, 2) ? REGION(1) : REGION(0), false);
		randomise(b, &c->src0);
		upload(b);
		run(b, ISA_VECTOR, &in);
		for (unsigned int p = 0; p < parts; p++)
			for (uint32_t k = 0; k < n; k++)
				get(b, &c->src0, p, k, &elem[p][k]);
		for (unsigned int p = 0; p < parts; p++)
			for (uint32_t k = 0; k < n; k++)
				put(b, &c->dst, k, p, &elem[p][k]);
		expect_want(b, &in);
	}
}

static struct isa_inst good_transpose(void)
{
	struct isa_inst in = { .opcode = ISA_TRANSPOSE };

	in.compute.compute_type = ISA_CT_BITS;
	in.compute.src0 = asm_row(ISA_SPACE_PSUM, ISA_FP32, 32, 8, 2048, 32);
	in.compute.dst = asm_row(ISA_SPACE_SBUF, ISA_INT32, 64, 32, 256, 8);
	return in;
}

static void test_transpose_refused(void **state)
{
	const struct isa_inst in = good_transpose();

	(void)state;
	assert_int_equal(judge(ISA_SCALAR, &in).status, EXI_FAULT_BAD_OPCODE);
	assert_int_equal(judge(ISA_GPSIMD, &in).status, EXI_FAULT_BAD_OPCODE);
	assert_int_equal(judge(ISA_SYNC, &in).status, EXI_FAULT_BAD_OPCODE);
	/* The tensor engine reads no PSUM. */
	assert_int_equal(judge(ISA_TENSOR, &in).status, EXI_FAULT_BAD_OPERAND);
	REFUSE(in, i->flags = ISA_F_ACCUM, ISA_F_ACCUM, ISA_F_NOTIFY);
	REFUSE(in, i->compute.compute_type = ISA_CT_F32, ISA_CT_F32, 1 << ISA_CT_BITS);
	REFUSE(in, i->compute.op0 = 1, 1, 0);
	REFUSE(in, i->compute.op1 = 1, 1, 0);
	REFUSE(in, i->compute.n_axes = 1, 1, 0);
	REFUSE(in, i->compute.imm0 = 1, 1, 0);
	REFUSE(in, i->compute.imm1 = 1, 1, 0);
	REFUSE(in, i->compute.vec0.offset = 4, 4, 0);
	REFUSE(in, i->compute.vec1.offset = 4, 4, 0);
	REFUSE(in, i->compute.src1.dtype = ISA_FP32, ISA_FP32, 0);
	REFUSE(in, i->compute.src0.count[3] = 33, 33, ISA_BLOCK);
	REFUSE(in, i->compute.src0.count[3] = 31, 32, 31);
	REFUSE(in, i->compute.src0.nparts = 33, 33, ISA_BLOCK);
	REFUSE(in, i->compute.src0.nparts = 7, 8, 7);
	REFUSE(in, i->compute.dst.count[3] = 9, 9, 8);
	REFUSE(in, i->compute.dst.nparts = 31, 31, 32);
	REFUSE(in, i->compute.dst.dtype = ISA_BF16, ISA_FP32, ISA_BF16);
	REFUSE(in, i->compute.src0.dtype = ISA_FP64, ISA_FP64, ISA_FP32);
	REFUSE_BOUNDS(in, i->compute.dst.offset = 192 * 1024 - 28, 192 * 1024 + 4, 192 * 1024);
}

/* --- shuffle ---------------------------------------------------------------------------------- */

static struct isa_inst random_shuffle(struct bench *b)
{
	static const uint32_t rows[] = { 1, 2, 7, 33, 100, 128 };
	struct isa_inst in = { .opcode = ISA_STREAM_SHUFFLE };
	struct isa_compute *c = &in.compute;
	unsigned int parts = pick(b, 2) ? 32 : 1 + pick(b, 32), dtype = dtype_of(b);
	uint32_t count[ISA_TILE_DIMS] = { 1, 1 + pick(b, 2), 1 + pick(b, 2), rows[pick(b, 6)] };

	c->compute_type = ISA_CT_BITS;
	c->dst = tile(b, dtype, count, parts, REGION(0), false);
	c->src0 = pick(b, 3) ? tile(b, dtype, count, parts, REGION(1), true) : c->dst;
	memset(c->shuffle, KEEP, sizeof(c->shuffle));
	for (unsigned int i = 0; i < parts; i++)
		if (pick(b, 5))
			c->shuffle[i] = (uint8_t)pick(b, parts);
	return in;
}

static void test_shuffle(void **state)
{
	static uint64_t elem[32][ELEMS];
	struct bench *b = *state;

	for (unsigned int i = 0; i < ROUNDS; i++) {
		const struct isa_inst in = random_shuffle(b);
		const struct isa_compute *c = &in.compute;

		randomise(b, &c->src0);
		upload(b);
		run(b, ISA_VECTOR, &in);
		for (unsigned int p = 0; p < c->src0.nparts; p++)
			for (uint32_t k = 0; k < ref_elems(&c->src0); k++)
				get(b, &c->src0, p, k, &elem[p][k]);
		for (unsigned int p = 0; p < c->src0.nparts; p++)
			for (uint32_t k = 0; k < ref_elems(&c->src0); k++)
				if (c->shuffle[p] != KEEP)
					put(b, &c->dst, p, k, &elem[c->shuffle[p]][k]);
		expect_want(b, &in);
	}
}

/* All 128 partitions, longer than one piece, onto themselves: each 32 by the same shuffle. */
static void test_shuffle_all(void **state)
{
	struct bench *b = *state;
	struct nm_core *core = b->rig->core;
	struct isa_inst in = { .opcode = ISA_STREAM_SHUFFLE };
	static uint16_t row[5000];

	for (unsigned int p = 0; p < 128; p++) {
		for (unsigned int k = 0; k < 5000; k++)
			row[k] = (uint16_t)(p * 256 + k);
		assert_int_equal(nm_core_sbuf_write(core, (uint64_t)p * NM_SBUF_VIEW_PITCH + 64,
						    row, sizeof(row)),
				 0);
	}
	in.compute.compute_type = ISA_CT_BITS;
	in.compute.src0 = asm_row(ISA_SPACE_SBUF, ISA_BF16, 0, 128, 64, 5000);
	in.compute.dst = in.compute.src0;
	for (unsigned int i = 0; i < 32; i++)
		in.compute.shuffle[i] = i % 8 == 7 ? KEEP : (uint8_t)(31 - i);
	run(b, ISA_VECTOR, &in);
	for (unsigned int p = 0; p < 128; p++) {
		unsigned int from = p % 8 == 7 ? p : p / 32 * 32 + 31 - p % 32;

		assert_int_equal(nm_core_sbuf_read(core, (uint64_t)p * NM_SBUF_VIEW_PITCH + 64, row,
						   sizeof(row)),
				 0);
		for (unsigned int k = 0; k < 5000; k++)
			assert_int_equal(row[k], (uint16_t)(from * 256 + k));
	}
}

static struct isa_inst good_shuffle(unsigned int parts)
{
	struct isa_inst in = { .opcode = ISA_STREAM_SHUFFLE };
	struct isa_compute *c = &in.compute;

	c->compute_type = ISA_CT_BITS;
	c->src0 = asm_row(ISA_SPACE_SBUF, ISA_FP32, 0, parts, 256, 16);
	c->dst = asm_row(ISA_SPACE_SBUF, ISA_FP32, 32, parts, 1024, 16);
	memset(c->shuffle, KEEP, sizeof(c->shuffle));
	for (unsigned int i = 0; i < parts && i < 32; i++)
		c->shuffle[i] = (uint8_t)(i ^ 1);
	return in;
}

static void test_shuffle_refused(void **state)
{
	const struct isa_inst in = good_shuffle(64), few = good_shuffle(8);

	(void)state;
	for (unsigned int e = ISA_TENSOR; e <= ISA_SYNC; e++)
		if (e != ISA_VECTOR)
			assert_int_equal(judge(e, &in).status, EXI_FAULT_BAD_OPCODE);
	REFUSE(in, i->flags = ISA_F_VEC0, ISA_F_VEC0, ISA_F_NOTIFY);
	REFUSE(in, i->compute.compute_type = ISA_CT_F32, ISA_CT_F32, 1 << ISA_CT_BITS);
	REFUSE(in, i->compute.op0 = 1, 1, 0);
	REFUSE(in, i->compute.op1 = 1, 1, 0);
	REFUSE(in, i->compute.n_axes = 1, 1, 0);
	REFUSE(in, i->compute.imm0 = 1, 1, 0);
	REFUSE(in, i->compute.imm1 = 1, 1, 0);
	REFUSE(in, i->compute.vec0.offset = 4, 4, 0);
	REFUSE(in, i->compute.vec1.offset = 4, 4, 0);
	REFUSE(in, i->compute.shuffle[31] = 32, 32, 32);
	REFUSE(in, i->compute.shuffle[0] = 254, 254, 32);
	REFUSE(in, i->compute.src1.step[2] = 1, 1, 0); /* behind the shuffle */
	REFUSE(in, i->compute.src1.step[3] = 2, 2, 0);
	REFUSE(in, (i->compute.src0.nparts = 33, i->compute.dst.nparts = 33), 33, 32);
	REFUSE(in, i->compute.src0.nparts = 32, 32, 64);
	REFUSE(in, i->compute.src0.count[3] = 15, 15, 16);
	REFUSE(in, i->compute.dst.dtype = ISA_BF16, ISA_FP32, ISA_BF16);
	REFUSE(in, i->compute.dst.offset = 316, 316, 256); /* overlaps */
	REFUSE(in, i->compute.dst.offset = 256, 256, 256); /* of other partitions */
	REFUSE(few, i->compute.shuffle[7] = 8, 8, 8);
	REFUSE(few, i->compute.shuffle[8] = 0, 0, KEEP);
	REFUSE_BOUNDS(in, i->compute.src0.offset = 192 * 1024 - 60, 192 * 1024 + 4, 192 * 1024);
}

/* --- checking mode, time ---------------------------------------------------------------------- */

static void test_accesses(void **state)
{
	const struct isa_inst turn = good_transpose();
	struct isa_inst in = good_shuffle(64);
	struct rig *r = *state;

	expect_access(r, ISA_VECTOR, &turn, ISA_SPACE_PSUM, 32, 39, 2048, 2048 + 128, READ);
	expect_access(r, ISA_VECTOR, &turn, ISA_SPACE_SBUF, 64, 95, 256, 256 + 32, WRITTEN);
	expect_access(r, ISA_VECTOR, &in, ISA_SPACE_SBUF, 0, 63, 256, 256 + 64, READ);
	expect_access(r, ISA_VECTOR, &in, ISA_SPACE_SBUF, 32, 95, 1024, 1024 + 64, WRITTEN);
	/* Of each 32, partitions 4 and 5 from 9, 31 from 31; nothing else is touched. */
	memset(in.compute.shuffle, KEEP, 32);
	in.compute.shuffle[4] = in.compute.shuffle[5] = 9;
	in.compute.shuffle[31] = 31;
	for (unsigned int p = 0; p < 64; p++) {
		bool written = p % 32 == 4 || p % 32 == 5 || p % 32 == 31;
		bool read = p % 32 == 9 || p % 32 == 31;

		assert_int_equal(access_of(r, ISA_VECTOR, &in, ISA_SPACE_SBUF, 32 + p, 1087),
				 written ? WRITTEN : NOTHING);
		assert_int_equal(access_of(r, ISA_VECTOR, &in, ISA_SPACE_SBUF, p, 256),
				 read ? READ : NOTHING);
	}
	/* As many runs of partitions as there can be. */
	for (unsigned int i = 0; i < 32; i++)
		in.compute.shuffle[i] = i % 2 ? (uint8_t)(i - 1) : KEEP;
	assert_int_equal(access_of(r, ISA_VECTOR, &in, ISA_SPACE_SBUF, 95, 1024), WRITTEN);
	assert_int_equal(access_of(r, ISA_VECTOR, &in, ISA_SPACE_SBUF, 94, 1024), NOTHING);
	assert_int_equal(access_of(r, ISA_VECTOR, &in, ISA_SPACE_SBUF, 30, 256), READ);
	assert_int_equal(access_of(r, ISA_VECTOR, &in, ISA_SPACE_SBUF, 31, 256), NOTHING);
}

/* An element a cycle; what is little takes 100 cycles. */
static void test_time(void **state)
{
	static const struct {
		uint32_t arch;
		uint64_t hz;
	} chips[] = {
		{ NEURON_ARCH_V2, 1120000000 },
		{ NEURON_ARCH_V3, 960000000 },
		{ NEURON_ARCH_V4, 1200000000 },
	};

	(void)state;
	for (unsigned int k = 0; k < 6; k++) {
		bool shuffle = k < 3;
		uint64_t hz = chips[k % 3].hz, cycles = shuffle ? 2048 + 60 : 100;
		struct isa_inst in = shuffle ? good_shuffle(32) : good_transpose();

		if (shuffle)
			in.compute.dst.count[3] = in.compute.src0.count[3] = 2048;
		expect_cycles(chips[k % 3].arch, &in, cycles, hz);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_transpose, setup, teardown),
		cmocka_unit_test_setup_teardown(test_shuffle, setup, teardown),
		cmocka_unit_test_setup_teardown(test_shuffle_all, setup, teardown),
		cmocka_unit_test_setup_teardown(test_accesses, racing_setup, rig_teardown),
		cmocka_unit_test(test_transpose_refused),
		cmocka_unit_test(test_shuffle_refused),
		cmocka_unit_test(test_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
