// SPDX-License-Identifier: Apache-2.0
/* Registers, branches and loops, and operands that registers move: what they do. */
#include "loops.h"
#include "reference.h"

/* --- single instructions ------------------------------------------------------------------ */

/* a op b, without the model's arithmetic. */
static int32_t expected(unsigned int op, int32_t a, int32_t b)
{
	return (int32_t)(uint32_t)ref_int_alu(op, a, b, 32);
}

static const int32_t numbers[] = { 0, 1, -1, 7, -8, 31, 32, 46341, INT32_MAX, INT32_MIN };

#define NUMBERS (sizeof(numbers) / sizeof(numbers[0]))

/* Every operation on every pair, b from a register and immediate; on each engine in turn. */
static void test_alu(void **state)
{
	struct rig *r = *state;

	for (unsigned int op = 0; op < ISA_ALU_OPS; op++)
		for (unsigned int i = 0; i < NUMBERS && is_op(op); i++) {
			struct program *p = new_program();
			const unsigned int e = (op + i) % EXI_ENGINES;

			for (unsigned int k = 0; k < NUMBERS; k++) {
				reg_set(p, e, 1, numbers[i]);
				reg_set(p, e, 63, numbers[k]);
				reg_alu(p, e, op, 2, 1, 63);
				reg_store(p, e, 2, at_slot(0, 8 * k));
				reg_imm(p, e, op, 1, 1, numbers[k]);
				reg_store(p, e, 1, at_slot(0, 8 * k + 4));
			}
			assert_runs(r, p);
			for (unsigned int k = 0; k < NUMBERS; k++)
				for (unsigned int n = 0; n < 2; n++)
					if (word(r, 0, 2 * k + n) !=
					    expected(op, numbers[i], numbers[k]))
						fail_msg("%d op %u %d is %d", numbers[i], op,
							 numbers[k], word(r, 0, 2 * k + n));
		}
}

/* Registers are 0 when a launch starts, whatever the last one left; each engine has its own. */
static void test_start(void **state)
{
	struct rig *r = *state;
	struct program *p;

	for (int pass = 0; pass < 2; pass++) {
		p = new_program();
		for (unsigned int e = 0; e < EXI_ENGINES; e++) {
			reg_store(p, e, 5, at_slot(0, 8 * e));
			reg_set(p, e, 5, 100 + (int32_t)e);
			reg_move(p, e, 6, 5);
			reg_store(p, e, 6, at_slot(0, 8 * e + 4));
		}
		memset(slot(r, 0), 0xff, 64);
		assert_runs(r, p);
		for (unsigned int e = 0; e < EXI_ENGINES; e++) {
			assert_int_equal(word(r, 0, 2 * e), 0);
			assert_int_equal(word(r, 0, 2 * e + 1), 100 + e);
		}
	}
}

/* From every dtype, slots and chip, at any byte; and into them. */
static void test_memory(void **state)
{
	static const struct {
		uint8_t dtype;
		uint32_t bits;
		int32_t value;
		uint32_t back; /* what value is stored as */
	} rows[] = {
		{ ISA_INT8, 0x80, -128, 0x80 },
		{ ISA_UINT8, 0x80, 128, 0x80 },
		{ ISA_INT16, 0xfffe, -2, 0xfffe },
		{ ISA_UINT16, 0xfffe, 65534, 0xfffe },
		{ ISA_INT32, 0x80000001, -2147483647, 0x80000001 },
		{ ISA_UINT32, 0xffffffff, -1, 0xffffffff },
		{ ISA_FP32, 0xc0200000, -2, 0xc0000000 }, /* -2.5 */
		{ ISA_FP32, 0x7f800000, INT32_MAX, 0x4f000000 },
		{ ISA_BF16, 0x4049, 3, 0x4040 }, /* 3.140625 */
		{ ISA_FP16, 0x7bff, 65504, 0x7bff },
	};
	struct rig *r = *state;

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const uint32_t bytes = isa_dtype_bytes(rows[i].dtype);
		struct isa_place sbuf = at_sbuf(77, 12), memory = at_slot(1, 3);
		struct program *p = new_program();
		uint32_t back = 0;

		sbuf.dtype = memory.dtype = rows[i].dtype;
		memcpy(slot(r, 1) + 3, &rows[i].bits, bytes);
		reg_load(p, ISA_VECTOR, 4, memory);
		reg_store(p, ISA_VECTOR, 4, at_slot(0, 0));
		reg_store(p, ISA_VECTOR, 4, sbuf);
		reg_load(p, ISA_VECTOR, 9, sbuf);
		reg_store(p, ISA_VECTOR, 9, at_slot(0, 4));
		memory.offset = 101;
		reg_store(p, ISA_VECTOR, 9, memory);
		memset(slot(r, 1) + 100, 0xee, 8);
		assert_runs(r, p);
		assert_int_equal(word(r, 0, 0), rows[i].value);
		assert_int_equal(word(r, 0, 1), rows[i].value);
		memcpy(&back, slot(r, 1) + 101, bytes);
		assert_int_equal(back, rows[i].back);
		assert_int_equal(slot(r, 1)[100], 0xee);
		assert_int_equal(slot(r, 1)[101 + bytes], 0xee);
	}
}

/* Constants, what a launch passes as a scalar, and PSUM; a register moves the place. */
static void test_places(void **state)
{
	static const int32_t constants[] = { 11, 22, 33 };
	struct exi_slot s[] = { slots[0], slots[1], { .base = 0xfffffff7, .size = 8 } };
	struct rig *r = *state;
	struct program *p = new_program();
	struct isa_place psum = at_sbuf(9, 2044), c = at_slot(ISA_SLOT_CONST, 8);

	s[2].rights = EXI_SLOT_READ | EXI_SLOT_INLINE;
	asm_slot(p, NPROG_SLOT_SCALAR, 8);
	p->constants = constants;
	p->const_bytes = sizeof(constants);
	psum.space = ISA_SPACE_PSUM;
	reg_set(p, ISA_SYNC, 2, -1);
	c.shift = 2;
	reg_load(p, ISA_SYNC, 1, c);
	reg_store(p, ISA_SYNC, 1, at_slot(0, 0));
	reg_load(p, ISA_SYNC, 1, at_slot(2, 0));
	psum.shift = 2;
	reg_store(p, ISA_SYNC, 1, psum);
	psum.shift = 0;
	psum.offset = 2040;
	reg_load(p, ISA_SYNC, 3, psum);
	reg_store(p, ISA_SYNC, 3, at_slot(0, 4));
	assert_int_equal(rig_program(r, p, s).status, EXI_OK);
	assert_int_equal(word(r, 0, 0), 22);
	assert_int_equal(word(r, 0, 1), -9);
	free(p);
}

/* Each comparison of each pair goes on at its target exactly when it holds. */
static void test_branch(void **state)
{
	struct rig *r = *state;

	for (unsigned int op = ISA_IS_EQ; op <= ISA_IS_LE; op++)
		for (unsigned int i = 0; i < NUMBERS; i++) {
			struct program *p = new_program();

			for (unsigned int k = 0; k < NUMBERS; k++) {
				reg_set(p, ISA_SCALAR, 1, numbers[i]);
				reg_set(p, ISA_SCALAR, 2, numbers[k]);
				reg_set(p, ISA_SCALAR, 3, 1);
				reg_branch(p, ISA_SCALAR, op, 1, 2, p->count[ISA_SCALAR] + 2);
				reg_set(p, ISA_SCALAR, 3, 0);
				reg_store(p, ISA_SCALAR, 3, at_slot(0, 4 * k));
			}
			assert_runs(r, p);
			for (unsigned int k = 0; k < NUMBERS; k++)
				assert_int_equal(word(r, 0, k),
						 expected(op, numbers[i], numbers[k]));
		}
}

/* A wait for a value and a register, of which each side decides in turn. */
static void test_wait(void **state)
{
	struct rig *r = *state;
	struct program *p = new_program();
	struct exi_record rec;

	for (unsigned int i = 1; i <= 3; i++) {
		asm_update(asm_inst(p, ISA_SCALAR, ISA_NOP), 1, 1);
		reg_set(p, ISA_VECTOR, 1, (int32_t)i - 2);
		asm_wait(asm_inst(p, ISA_VECTOR, ISA_NOP), 1, 2);
		p->inst[ISA_VECTOR][p->count[ISA_VECTOR] - 1].wait[0].reg = 1;
	}
	/* Below zero: it holds. */
	reg_set(p, ISA_VECTOR, 1, INT32_MIN);
	asm_wait(asm_inst(p, ISA_VECTOR, ISA_NOP), 9, ISA_SEM_MAX);
	p->inst[ISA_VECTOR][p->count[ISA_VECTOR] - 1].wait[0].reg = 1;
	assert_runs(r, p);

	p = new_program();
	reg_set(p, ISA_VECTOR, 1, 2);
	asm_update(asm_inst(p, ISA_VECTOR, ISA_NOP), 1, 3);
	asm_wait(asm_inst(p, ISA_VECTOR, ISA_NOP), 1, 2);
	p->inst[ISA_VECTOR][2].wait[0].reg = 1;
	rec = run(r, p);
	assert_int_equal(rec.status, EXI_FAULT_DEADLOCK);
	assert_int_equal(rec.pc, 2);
	assert_int_equal(rec.value, 1);
	assert_int_equal(rec.limit, 4);
}

/* --- loops ---------------------------------------------------------------------------------- */

/* The tensor is copied tile by tile, one transfer in and one out each time around. */
static void test_tiles(void **state)
{
	struct rig *r = *state;
	struct exi_record rec;

	fill(r, 0);
	rec = run(r, copy_tiles(new_program(), 16, BYTES / 16));
	assert_int_equal(rec.status, EXI_OK);
	assert_memory_equal(slot(r, 0), slot(r, 1), BYTES);
	assert_int_equal(rec.dma_bytes, 2 * BYTES);
	/* Two moves, six instructions a tile, HALT. */
	assert_int_equal(rec.insts[ISA_SYNC], 2 + 16 * 6 + 1);
}

/* Blocks of 4 by 4 bytes of a matrix of 64 by 64, those of each row and column changing places. */
static void test_nested(void **state)
{
	struct rig *r = *state;
	struct program *p = new_program();
	struct isa_dma_side block = asm_flat(0, 0, 4, 64);
	struct isa_inst *in;
	uint32_t outer, inner;

	block.ndim = 2;
	block.step[1] = 1;
	block.count[1] = 4;
	fill(r, 0);
	reg_set(p, ISA_SYNC, 1, 0);
	outer = p->count[ISA_SYNC];
	reg_set(p, ISA_SYNC, 2, 0);
	inner = p->count[ISA_SYNC];
	reg_imm(p, ISA_SYNC, ISA_MULT, 3, 1, 256);
	reg_imm(p, ISA_SYNC, ISA_MULT, 4, 2, 4);
	reg_alu(p, ISA_SYNC, ISA_ADD, 5, 3, 4); /* block 1, 2 */
	reg_imm(p, ISA_SYNC, ISA_MULT, 3, 2, 256);
	reg_imm(p, ISA_SYNC, ISA_MULT, 4, 1, 4);
	reg_alu(p, ISA_SYNC, ISA_ADD, 6, 3, 4); /* block 2, 1 */
	in = asm_dma(p, ISA_SYNC, 0, 1, block, block);
	in->dma.dst.slot = 1;
	in->dma.dst.shift = 5;
	in->dma.src.shift = 6;
	reg_imm(p, ISA_SYNC, ISA_ADD, 2, 2, 1);
	reg_until(p, ISA_SYNC, 2, 16, inner);
	reg_imm(p, ISA_SYNC, ISA_ADD, 1, 1, 1);
	reg_until(p, ISA_SYNC, 1, 16, outer);
	assert_runs(r, p);
	for (unsigned int y = 0; y < 64; y++)
		for (unsigned int x = 0; x < 64; x++) {
			unsigned int from = (x / 4 * 4 + y % 4) * 64 + y / 4 * 4 + x % 4;

			assert_int_equal(slot(r, 1)[y * 64 + x], slot(r, 0)[from]);
		}
}

/* How often is in a tensor; one decoded program follows each launch's own. */
static void test_data(void **state)
{
	struct rig *r = *state;
	struct program *p = new_program();
	struct exi_launch l;
	size_t size;
	void *image;

	reg_load(p, ISA_GPSIMD, 1, at_slot(0, 40));
	reg_branch(p, ISA_GPSIMD, ISA_IS_LE, 1, 0, 5);
	reg_alu(p, ISA_GPSIMD, ISA_ADD, 2, 2, 1);
	reg_imm(p, ISA_GPSIMD, ISA_SUB, 1, 1, 1);
	reg_branch(p, ISA_GPSIMD, ISA_IS_EQ, 0, 0, 1);
	reg_store(p, ISA_GPSIMD, 2, at_slot(0, 44));
	image = asm_finish(p, &size);
	l = rig_load(r, image, size);
	for (int32_t n = 0; n <= 300; n = n * 2 + 1) {
		memcpy(slot(r, 0) + 40, &n, sizeof(n));
		assert_int_equal(rig_run(r, 0, l, slots, 2).status, EXI_OK);
		assert_int_equal(word(r, 0, 11), n * (n + 1) / 2);
	}
	free(image);
	free(p);
}

/* A transfer takes the registers that are there when it is issued. */
static void test_latch(void **state)
{
	struct rig *r = *state;
	struct program *p = new_program();
	struct isa_inst *in;

	fill(r, 0);
	reg_set(p, ISA_SYNC, 1, 5);
	in = asm_dma(p, ISA_SYNC, 0, 2, asm_flat(1, 0, 8, 2), asm_flat(0, 0, 8, 2));
	in->dma.src.shift = 1;
	reg_set(p, ISA_SYNC, 1, 50);
	assert_runs(r, p);
	assert_memory_equal(slot(r, 1), slot(r, 0) + 10, 16);
}

/* --- operands that registers move ------------------------------------------------------------ */

static struct isa_column column(uint32_t offset)
{
	return (struct isa_column){ .offset = offset, .dtype = ISA_FP32 };
}

/* Floats k * 3 from byte 0 of partition 0 on, and back from there. */
static void load_row(struct program *p, struct rig *r, uint32_t n)
{
	float value;

	for (uint32_t k = 0; k < n; k++) {
		value = 3.0f * (float)k;
		memcpy(slot(r, 0) + 4 * k, &value, 4);
	}
	asm_update(asm_dma(p, ISA_SYNC, 0, 4, asm_chip(ISA_SPACE_SBUF, 0, 1, 0, n, 4),
			   asm_flat(0, 0, n, 4)),
		   1, 1);
	asm_wait(reg_set(p, ISA_VECTOR, 1, 1), 1, 1);
	for (int32_t i = 2; i <= 5; i++)
		reg_set(p, ISA_VECTOR, (unsigned int)i, i);
}

static void store_row(struct program *p, uint32_t n)
{
	asm_update(asm_inst(p, ISA_VECTOR, ISA_NOP), 2, 1);
	asm_wait(asm_dma(p, ISA_SYNC, 0, 4, asm_flat(1, 0, n, 4),
			 asm_chip(ISA_SPACE_SBUF, 0, 1, 0, n, 4)),
		 2, 1);
}

static float value(struct rig *r, unsigned int n)
{
	float x;

	memcpy(&x, slot(r, 1) + 4 * n, sizeof(x));
	return x;
}

/* dst, src0, src1 and both columns each by a register of its own. */
static void test_compute(void **state)
{
	struct rig *r = *state;
	struct program *p = new_program();
	struct isa_compute *c;

	load_row(p, r, 64);
	c = &asm_inst(p, ISA_VECTOR, ISA_TENSOR_TENSOR)->compute;
	c->dst = row(4 * 100, 4);
	c->src0 = row(0, 4);
	c->src1 = row(4 * 8, 4);
	c->op0 = ISA_ADD;
	c->shift[0] = 1;
	c->shift[1] = 2;
	c->shift[2] = 3;
	c = &asm_inst(p, ISA_VECTOR, ISA_TENSOR_SCALAR)->compute;
	p->inst[ISA_VECTOR][p->count[ISA_VECTOR] - 1].flags = ISA_F_VEC0 | ISA_F_VEC1;
	c->dst = row(4 * 110, 4);
	c->src0 = row(0, 4);
	c->vec0 = column(4 * 20);
	c->vec1 = column(4 * 30);
	c->op0 = ISA_MULT;
	c->op1 = ISA_ADD;
	c->shift[1] = 4;
	c->vec0.shift = 2;
	c->vec1.shift = 5;
	c = &asm_inst(p, ISA_VECTOR, ISA_TENSOR_SCALAR_REDUCE)->compute;
	p->inst[ISA_VECTOR][p->count[ISA_VECTOR] - 1].flags = ISA_F_VEC1;
	c->dst = row(4 * 120, 4);
	c->src0 = row(0, 4);
	c->vec1 = column(4 * 130);
	c->op0 = c->op1 = ISA_ADD;
	c->vec1.shift = 3;
	store_row(p, 140);
	assert_runs(r, p);
	for (unsigned int k = 0; k < 4; k++) {
		assert_true(value(r, 101 + k) == 3.0f * (float)(k + 2 + k + 11));
		assert_true(value(r, 110 + k) == 3.0f * (float)(k + 4) * 66 + 105);
	}
	assert_true(value(r, 133) == 0 + 3 + 6 + 9);
}

/* Moved onto what it reads: all of it is read before. */
static void test_overlap(void **state)
{
	struct rig *r = *state;
	struct program *p = new_program();
	struct isa_compute *c;

	load_row(p, r, 64);
	for (unsigned int i = 0; i < 2; i++) {
		c = &asm_inst(p, ISA_VECTOR, ISA_COPY)->compute;
		c->dst = c->src0 = row(4 * 32 * i, 16);
		/* To the right, then to the left. */
		c->shift[i] = 1;
	}
	store_row(p, 64);
	assert_runs(r, p);
	for (unsigned int k = 0; k < 16; k++) {
		assert_true(value(r, k + 1) == 3.0f * (float)k);
		assert_true(value(r, k + 32) == 3.0f * (float)(k + 33));
	}
}

/* Products whose columns walk through SBUF, and their sums through a bank of PSUM. */
static void test_matmul(void **state)
{
	struct rig *r = *state;
	struct program *p = new_program();
	struct isa_inst *in;
	uint32_t top;

	load_row(p, r, 64);
	in = asm_inst(p, ISA_TENSOR, ISA_LOAD_STATIONARY);
	in->compute.src0 = row(4 * 5, 1); /* 15 */
	asm_wait(in, 1, 1);
	top = p->count[ISA_TENSOR];
	in = asm_inst(p, ISA_TENSOR, ISA_MATMUL);
	in->compute.src0 = row(0, 4);
	in->compute.dst = asm_row(ISA_SPACE_PSUM, ISA_FP32, 0, 1, 0, 4);
	in->compute.shift[0] = in->compute.shift[1] = 7;
	asm_update(in, 3, 1);
	reg_imm(p, ISA_TENSOR, ISA_ADD, 7, 7, 4);
	reg_until(p, ISA_TENSOR, 7, 16, top);
	in = asm_inst(p, ISA_VECTOR, ISA_COPY);
	in->compute.dst = row(0, 16);
	in->compute.src0 = asm_row(ISA_SPACE_PSUM, ISA_FP32, 0, 1, 0, 16);
	asm_wait(in, 3, 4);
	store_row(p, 16);
	assert_runs(r, p);
	for (unsigned int k = 0; k < 16; k++)
		assert_true(value(r, k) == 45.0f * (float)k);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_alu),	   TEST(test_start), TEST(test_memory),	 TEST(test_places),
		TEST(test_branch), TEST(test_wait),  TEST(test_tiles),	 TEST(test_nested),
		TEST(test_data),   TEST(test_latch), TEST(test_compute), TEST(test_overlap),
		TEST(test_matmul),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
