// SPDX-License-Identifier: Apache-2.0
/* Branches around what the decoder counted on, of every mode, and registers that move operands of MX. */
#include "loops.h"

#define SCALES 4096 /* of each partition: from here on */
#define AREA   8192 /* bytes of each partition that have data */
#define LAST   6 /* columns of the moving operand */
#define ROWS   8 /* partitions of PSUM that are looked at */
#define BANK   ISA_PSUM_BANK_BYTES
#define VIEW   NM_SBUF_VIEW_PITCH

static void put(struct rig *r, const uint8_t (*data)[AREA])
{
	for (uint64_t p = 0; p < ISA_PARTITIONS; p++)
		assert_int_equal(nm_core_sbuf_write(r->core, p * VIEW, data[p], AREA), 0);
}

static void get(struct rig *r, uint8_t (*data)[AREA])
{
	for (uint64_t p = 0; p < ISA_PARTITIONS; p++)
		assert_int_equal(nm_core_sbuf_read(r->core, p * VIEW, data[p], AREA), 0);
}

/* Finite in every dtype, with scales near 1. */
static void fill_sbuf(struct rig *r)
{
	static uint8_t data[ISA_PARTITIONS][AREA];
	uint32_t x = 1;

	for (unsigned int p = 0; p < ISA_PARTITIONS; p++)
		for (unsigned int i = 0; i < AREA; i++) {
			x = x * 1664525 + 1013904223;
			data[p][i] = i < SCALES ? x >> 24 & 0xbb : 126 + (x >> 24) % 4;
		}
	put(r, data);
}

/* Those rows of PSUM to slot 1 when semaphore 1 is there. */
static void take_psum(struct program *p)
{
	asm_wait(asm_dma(p, ISA_SYNC, 0, 1, asm_flat(1, 0, ROWS * BANK, 1),
			 asm_chip(ISA_SPACE_PSUM, 0, ROWS, 0, BANK, 1)),
		 1, 1);
}

static void clear_psum(struct program *p)
{
	struct isa_inst *in = asm_inst(p, ISA_VECTOR, ISA_MEMSET);

	in->compute.dst = asm_row(ISA_SPACE_PSUM, ISA_FP32, 0, ISA_PARTITIONS, 0, BANK / 4);
	asm_update(in, 2, 1);
}

/* --- stationary operands ------------------------------------------------------------------------- */

static const struct factor {
	uint8_t mode, dtype, nparts, columns;
} factors[] = {
	{ 0 }, /* none is loaded */
	{ ISA_MODE_NONE, ISA_BF16, 64, 4 },
	{ ISA_MODE_NONE, ISA_BF16, 128, 4 },
	{ ISA_MODE_NONE, ISA_FP32, 64, 6 },
	{ ISA_MODE_NONE, ISA_FP8_E4, 64, 4 },
	{ ISA_MODE_NONE, ISA_FP8_E4FN, 64, 4 },
	{ ISA_MODE_NONE, ISA_TF32, 128, 4 },
	/* As many products as without double rows, or with MX, of other partitions. */
	{ ISA_MODE_DOUBLE_ROW, ISA_FP8_E4, 64, 4 },
	{ ISA_MODE_DOUBLE_ROW, ISA_FP8_E4FN, 64, 4 },
	{ ISA_MODE_DOUBLE_ROW, ISA_FP8_E5, 128, 6 },
	{ ISA_MODE_MX, ISA_FP8_E5_X4, 64, 4 },
	{ ISA_MODE_MX, ISA_FP4_X4, 32, 4 },
	{ ISA_MODE_MX, ISA_FP8_E4FN_X4, 64, 6 },
};

#define FACTORS (sizeof(factors) / sizeof(factors[0]))

static struct isa_inst *add_factor(struct program *p, unsigned int opcode, const struct factor *f,
				   uint32_t columns)
{
	struct isa_inst *in = asm_inst(p, ISA_TENSOR, opcode);

	in->compute.mode = f->mode;
	in->compute.src0 = asm_row(ISA_SPACE_SBUF, f->dtype, 0, f->nparts, 0,
				   f->mode == ISA_MODE_DOUBLE_ROW ? 2 * columns : columns);
	if (f->mode == ISA_MODE_MX)
		in->compute.vec1 = (struct isa_column){ .offset = SCALES, .dtype = ISA_UINT8 };
	return in;
}

static void add_matmul(struct program *p, const struct factor *f)
{
	struct isa_inst *in = add_factor(p, ISA_MATMUL, f, LAST);

	in->compute.dst = asm_row(ISA_SPACE_PSUM, ISA_FP32, 0, f->columns, 0, LAST);
	asm_wait(in, 2, 1);
	asm_update(in, 1, 1);
}

/* A product with one stationary operand, as a stream without branches has it. */
static struct program *straight(const struct factor *loaded, const struct factor *meant)
{
	struct program *p = new_program();

	clear_psum(p);
	if (loaded->nparts)
		add_factor(p, ISA_LOAD_STATIONARY, loaded, loaded->columns);
	add_matmul(p, meant);
	take_psum(p);
	return p;
}

/* The same, with another one before it in the stream, which a branch leaves out. */
static struct program *around(const struct factor *loaded, const struct factor *meant)
{
	struct program *p = new_program();

	clear_psum(p);
	if (loaded->nparts)
		add_factor(p, ISA_LOAD_STATIONARY, loaded, loaded->columns);
	reg_branch(p, ISA_TENSOR, ISA_IS_EQ, 0, 0, p->count[ISA_TENSOR] + 2);
	add_factor(p, ISA_LOAD_STATIONARY, meant, meant->columns);
	add_matmul(p, meant);
	take_psum(p);
	return p;
}

/* Whatever is loaded instead of what the decoder saw, it is as if nothing else stood there. */
static void test_every_stationary(void **state)
{
	static const unsigned int rows[] = {
		[ISA_MODE_NONE] = 1, [ISA_MODE_DOUBLE_ROW] = 2, [ISA_MODE_MX] = 4
	};
	static uint8_t want[ROWS * BANK];
	struct rig *r = *state;
	unsigned int taken = 0;

	fill_sbuf(r);
	for (unsigned int i = 0; i < FACTORS; i++)
		for (unsigned int k = 1; k < FACTORS; k++) {
			const struct factor *loaded = &factors[i], *meant = &factors[k];
			const bool modes = loaded->nparts && loaded->mode != meant->mode;
			struct exi_record rec, real;

			memset(slot(r, 1), 0, ROWS * BANK);
			rec = run(r, straight(loaded, meant));
			memcpy(want, slot(r, 1), ROWS * BANK);
			memset(slot(r, 1), 0, ROWS * BANK);
			real = run(r, around(loaded, meant));
			assert_int_equal(real.status, rec.status);
			assert_memory_equal(slot(r, 1), want, ROWS * BANK);
			if (rec.status == EXI_OK) {
				assert_true(want[0] || want[1] || want[2] || want[3]);
				taken++;
				continue;
			}
			assert_int_equal(rec.status, EXI_FAULT_BAD_OPERAND);
			assert_int_equal(real.engine, ISA_TENSOR);
			assert_int_equal(real.pc, loaded->nparts ? 3 : 2);
			assert_int_equal(real.value, modes ? rows[meant->mode] : rec.value);
			assert_int_equal(real.limit, modes ? rows[loaded->mode] : rec.limit);
		}
	/* Each with itself; bf16 with either e4m3, and the two of 128 partitions, both ways. */
	assert_int_equal(taken, FACTORS - 1 + 4 + 2);
}

/* In a loop that loads double rows at its end, the second turn finds them. */
static void test_next_turn(void **state)
{
	for (unsigned int turns = 1; turns <= 2; turns++) {
		struct program *p = new_program();
		struct exi_record rec;

		clear_psum(p);
		reg_set(p, ISA_TENSOR, 1, 0);
		add_factor(p, ISA_LOAD_STATIONARY, &factors[4], 4);
		add_matmul(p, &factors[4]);
		add_factor(p, ISA_LOAD_STATIONARY, &factors[7], 4);
		reg_imm(p, ISA_TENSOR, ISA_ADD, 1, 1, 1);
		reg_until(p, ISA_TENSOR, 1, (int32_t)turns, 2);
		rec = run(*state, p);
		assert_int_equal(rec.status, turns == 1 ? EXI_OK : EXI_FAULT_BAD_OPERAND);
		if (turns == 2) {
			assert_int_equal(rec.pc, 2);
			assert_int_equal(rec.value, 1);
			assert_int_equal(rec.limit, 2);
		}
	}
}

/* --- other state ---------------------------------------------------------------------------------- */

/* Cumulative sums of ones, which go on from 0 where a branch leaves out what they were to go on from. */
static void test_cumulative(void **state)
{
	struct rig *r = *state;

	for (unsigned int skip = 0; skip < 2; skip++) {
		struct program *p = new_program();
		struct isa_inst *in = asm_inst(p, ISA_VECTOR, ISA_MEMSET);

		in->compute.imm0 = 0x3f800000;
		in->compute.dst = row(0, 4);
		reg_branch(p, ISA_VECTOR, skip ? ISA_IS_EQ : ISA_IS_NE, 0, 0, 3);
		for (unsigned int k = 0; k < 2; k++) {
			in = asm_inst(p, ISA_VECTOR, ISA_TENSOR_SCALAR_CUMULATIVE);
			in->compute.op1 = ISA_ADD;
			in->compute.src0 = row(0, 4);
			in->compute.dst = row(64, 4);
		}
		in->flags = ISA_F_ACCUM;
		asm_update(in, 1, 1);
		asm_wait(asm_dma(p, ISA_SYNC, 0, 4, asm_flat(1, 0, 4, 4),
				 asm_chip(ISA_SPACE_SBUF, 0, 1, 64, 4, 4)),
			 1, 1);
		assert_runs(r, p);
		for (unsigned int k = 0; k < 4; k++) {
			float sum;

			memcpy(&sum, slot(r, 1) + 4 * k, sizeof(sum));
			assert_true(sum == (float)((skip ? 1 : 5) + k));
		}
	}
}

/* --- MX ------------------------------------------------------------------------------------------- */

/* Of elements of src0 and of scales, by registers or as they are written. */
static struct program *product(int32_t elements, int32_t scales, bool moved)
{
	static const struct factor f = { ISA_MODE_MX, ISA_FP4_X4, 32, 4 };
	struct program *p = new_program();

	clear_psum(p);
	reg_set(p, ISA_TENSOR, 1, elements);
	reg_set(p, ISA_TENSOR, 2, scales);
	add_factor(p, ISA_LOAD_STATIONARY, &f, f.columns);
	add_matmul(p, &f);
	for (uint32_t pc = 2; pc < 4; pc++) {
		struct isa_compute *c = &p->inst[ISA_TENSOR][pc].compute;

		c->src0.offset = pc * 512;
		c->vec1.part0 = (uint8_t)(4 * pc);
		if (moved) {
			c->shift[1] = 1;
			c->vec1.shift = 2;
		} else {
			c->src0.offset += 2 * (uint32_t)elements;
			c->vec1.offset += (uint32_t)scales;
		}
	}
	take_psum(p);
	return p;
}

/* src0 and its scales are moved each by its own register. */
static void test_scales(void **state)
{
	static uint8_t want[4][ROWS * BANK];
	struct rig *r = *state;

	fill_sbuf(r);
	for (unsigned int k = 0; k < 4; k++) {
		const int32_t elements = k & 1 ? 3 : 0, scales = k & 2 ? 5 : 0;

		assert_runs(r, product(elements, scales, false));
		memcpy(want[k], slot(r, 1), ROWS * BANK);
		memset(slot(r, 1), 0, ROWS * BANK);
		assert_runs(r, product(elements, scales, true));
		assert_memory_equal(slot(r, 1), want[k], ROWS * BANK);
		for (unsigned int i = 0; i < k; i++)
			assert_memory_not_equal(want[i], want[k], ROWS * BANK);
	}
}

static struct program *quantize(bool moved)
{
	static const int32_t by[] = { 8, 20, 7 }; /* src0, dst, scales */
	struct program *p = new_program();
	struct isa_inst *in;
	struct isa_compute *c;

	for (unsigned int k = 0; k < 3; k++)
		reg_set(p, ISA_VECTOR, k + 1, by[k]);
	in = asm_inst(p, ISA_VECTOR, ISA_QUANTIZE_MX);
	c = &in->compute;
	c->src0 = asm_row(ISA_SPACE_SBUF, ISA_BF16, 32, 64, 0, 40);
	c->dst = asm_row(ISA_SPACE_SBUF, ISA_FP8_E5_X4, 32, 64, 2048, 10);
	c->vec1 = (struct isa_column){ .offset = SCALES, .dtype = ISA_UINT8, .part0 = 36 };
	if (moved) {
		c->shift[1] = 1;
		c->shift[0] = 2;
		c->vec1.shift = 3;
	} else {
		c->src0.offset += 2 * (uint32_t)by[0];
		c->dst.offset += 4 * (uint32_t)by[1];
		c->vec1.offset += (uint32_t)by[2];
	}
	return p;
}

static void test_quantize(void **state)
{
	static uint8_t before[ISA_PARTITIONS][AREA], want[ISA_PARTITIONS][AREA],
		got[ISA_PARTITIONS][AREA];
	struct rig *r = *state;

	fill_sbuf(r);
	get(r, before);
	assert_runs(r, quantize(false));
	get(r, want);
	assert_memory_not_equal(want, before, sizeof(want));
	put(r, (const uint8_t (*)[AREA])before);
	assert_runs(r, quantize(true));
	get(r, got);
	assert_memory_equal(got, want, sizeof(want));
}

/* Scales that end behind SBUF, or begin before it; a register that there is not, or one of no operand. */
static void test_scales_end(void **state)
{
	const uint32_t bytes = nm_sbuf_bytes(NEURON_ARCH_V4);
	struct rig *r = *state;
	struct program *p;
	struct exi_record rec;

	for (unsigned int low = 0; low < 2; low++) {
		struct isa_inst *in;

		p = new_program();
		reg_set(p, ISA_TENSOR, 1, low ? -SCALES - 1 : (int32_t)(bytes - SCALES - 3));
		in = add_factor(p, ISA_LOAD_STATIONARY, &factors[10], 4);
		in->compute.vec1.shift = 1;
		expect_fault(r, p, EXI_FAULT_TILE_BOUNDS, ISA_TENSOR,
			     low ? (uint64_t)-1 : bytes + 1, low ? 0 : bytes);
	}
	for (unsigned int k = 0; k < 2; k++) {
		p = product(0, 0, true);
		if (k)
			p->inst[ISA_TENSOR][2].compute.shift[2] = 1;
		else
			p->inst[ISA_TENSOR][2].compute.vec1.shift = ISA_REGISTERS;
		rec = run(r, p);
		assert_int_equal(rec.status, EXI_FAULT_BAD_OPERAND);
		assert_int_equal(rec.pc, 2);
		assert_int_equal(rec.value, k ? 1 : ISA_REGISTERS);
		assert_int_equal(rec.limit, k ? 0 : ISA_REGISTERS);
	}
}

/* --- life ----------------------------------------------------------------------------------------- */

/* A chip that has all modes. */
static int setup(void **state)
{
	struct rig *r = rig_create_of(NEURON_ARCH_V4, 0, NULL);

	rig_queue(r, 0, 1);
	*state = r;
	return 0;
}

/* The same in checking mode, where nobody counts as having written what the tests put there. */
static int setup_checking(void **state)
{
	struct rig *r = rig_create_of(NEURON_ARCH_V4, NM_CHECK_RACE | NM_CHECK_PSUM, NULL);

	rig_queue(r, 0, 1);
	*state = r;
	return 0;
}

#define TEST(name)    cmocka_unit_test_setup_teardown(name, setup, rig_teardown)
#define CHECKED(name) { #name " (checking)", name, setup_checking, rig_teardown, NULL }

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_every_stationary),
		TEST(test_next_turn),
		TEST(test_cumulative),
		TEST(test_scales),
		TEST(test_quantize),
		TEST(test_scales_end),
		CHECKED(test_every_stationary),
		CHECKED(test_scales),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
