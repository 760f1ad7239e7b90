// SPDX-License-Identifier: Apache-2.0
/* Registers and branches: where they end, what is refused, and how long they take. */
#include "loops.h"

#include "single.h"

/* --- out of bounds ---------------------------------------------------------------------------- */

static struct program *program_with(unsigned int engine, int32_t shift)
{
	struct program *p = new_program();

	reg_set(p, engine, 1, shift);
	return p;
}

/* A tile of 8 bytes at the end, or at the start, of a partition is moved out of it. */
static void test_tile_bounds(void **state)
{
	struct rig *r = *state;

	for (unsigned int operand = 0; operand < 3; operand++)
		for (unsigned int low = 0; low < 2; low++) {
			struct program *p = program_with(ISA_VECTOR, low ? -1 : 1);
			struct isa_inst *in = asm_inst(p, ISA_VECTOR, ISA_TENSOR_TENSOR);

			in->compute.dst = in->compute.src0 = in->compute.src1 =
				row(low ? 0 : NM_SBUF_BYTES - 8, 2);
			in->compute.shift[operand] = 1;
			expect_fault(r, p, EXI_FAULT_TILE_BOUNDS, ISA_VECTOR,
				     low ? (uint64_t)-4 : NM_SBUF_BYTES + 4,
				     low ? 0 : NM_SBUF_BYTES);
		}
	/* As far as 32 bits reach. */
	for (unsigned int low = 0; low < 2; low++) {
		struct program *p = program_with(ISA_VECTOR, low ? INT32_MIN : INT32_MAX);
		struct isa_inst *in = asm_inst(p, ISA_VECTOR, ISA_COPY);

		in->compute.dst = in->compute.src0 = row(0, 1);
		in->compute.shift[0] = 1;
		expect_fault(r, p, EXI_FAULT_TILE_BOUNDS, ISA_VECTOR,
			     low ? (uint64_t)INT32_MIN * 4 : (uint64_t)INT32_MAX * 4 + 4,
			     low ? 0 : NM_SBUF_BYTES);
	}
}

/* A product stays in one bank of PSUM. */
static void test_bank_bounds(void **state)
{
	struct program *p = program_with(ISA_TENSOR, 509);
	struct isa_inst *in = asm_inst(p, ISA_TENSOR, ISA_LOAD_STATIONARY);

	in->compute.src0 = row(0, 1);
	in = asm_inst(p, ISA_TENSOR, ISA_MATMUL);
	in->compute.src0 = row(0, 4);
	in->compute.dst = asm_row(ISA_SPACE_PSUM, ISA_FP32, 0, 1, 0, 4);
	in->compute.shift[0] = 1;
	expect_fault(*state, p, EXI_FAULT_TILE_BOUNDS, ISA_TENSOR, 2052, 2048);
}

/* Sides of a transfer and single elements, in a slot and on the chip. */
static void test_transfer_bounds(void **state)
{
	struct rig *r = *state;

	for (unsigned int low = 0; low < 2; low++)
		for (unsigned int side = 0; side < 4; side++) {
			struct program *p = program_with(ISA_SYNC, low ? -2 : 2);
			struct isa_dma_side sides[2] = {
				asm_flat(1, low ? 0 : BYTES - 16, 4, 4),
				asm_chip(ISA_SPACE_SBUF, 3, 1, low ? 0 : NM_SBUF_BYTES - 16, 4, 4)
			};
			struct isa_inst *in;

			sides[side % 2].shift = 1;
			in = asm_dma(p, ISA_SYNC, 0, 4, sides[side / 2], sides[1 - side / 2]);
			memset(slot(r, 1), 0xcc, BYTES);
			asm_update(in, 1, 1);
			expect_fault(r, p, side % 2 ? EXI_FAULT_TILE_BOUNDS : EXI_FAULT_SLOT_BOUNDS,
				     ISA_SYNC,
				     low      ? (uint64_t)-8 :
				     side % 2 ? NM_SBUF_BYTES + 8 :
						BYTES + 8,
				     side % 2 ? (low ? 0 : NM_SBUF_BYTES) : BYTES);
			assert_int_equal(slot(r, 1)[0], 0xcc);
			assert_int_equal(slot(r, 1)[BYTES - 1], 0xcc);
		}
	for (unsigned int opcode = ISA_REG_LOAD; opcode <= ISA_REG_STORE; opcode++) {
		struct program *p = program_with(ISA_SYNC, -3);
		struct isa_place at = at_slot(1, 8);

		at.shift = 1;
		if (opcode == ISA_REG_LOAD)
			reg_load(p, ISA_SYNC, 2, at);
		else
			reg_store(p, ISA_SYNC, 2, at);
		expect_fault(r, p, EXI_FAULT_SLOT_BOUNDS, ISA_SYNC, (uint64_t)-4, BYTES);
		p = program_with(ISA_SYNC, 1);
		at = at_sbuf(127, NM_SBUF_BYTES - 4);
		at.shift = 1;
		if (opcode == ISA_REG_LOAD)
			reg_load(p, ISA_SYNC, 2, at);
		else
			reg_store(p, ISA_SYNC, 2, at);
		expect_fault(r, p, EXI_FAULT_TILE_BOUNDS, ISA_SYNC, NM_SBUF_BYTES + 4,
			     NM_SBUF_BYTES);
	}
}

/* A branch around the load that the decoder counted on; what an earlier launch loaded is no help. */
static void test_stationary(void **state)
{
	struct rig *r = *state;

	for (unsigned int skip = 0; skip < 2; skip++) {
		struct program *p = new_program();
		struct isa_inst *in;

		reg_branch(p, ISA_TENSOR, skip ? ISA_IS_EQ : ISA_IS_NE, 0, 0, 2);
		in = asm_inst(p, ISA_TENSOR, ISA_LOAD_STATIONARY);
		in->compute.src0 = row(0, 1);
		in = asm_inst(p, ISA_TENSOR, ISA_MATMUL);
		in->compute.src0 = row(0, 4);
		in->compute.dst = asm_row(ISA_SPACE_PSUM, ISA_FP32, 0, 1, 0, 4);
		if (skip)
			expect_fault(r, p, EXI_FAULT_BAD_OPERAND, ISA_TENSOR, 1, 0);
		else
			assert_runs(r, p);
	}
	/* Another one than that before it in the stream: of as many partitions, but more columns. */
	for (unsigned int skip = 0; skip < 2; skip++) {
		struct program *p = new_program();
		struct isa_inst *in;

		in = asm_inst(p, ISA_TENSOR, ISA_LOAD_STATIONARY);
		in->compute.src0 = row(0, 100);
		reg_branch(p, ISA_TENSOR, skip ? ISA_IS_EQ : ISA_IS_NE, 0, 0, 3);
		in = asm_inst(p, ISA_TENSOR, ISA_LOAD_STATIONARY);
		in->compute.src0 = row(0, 2);
		in = asm_inst(p, ISA_TENSOR, ISA_MATMUL);
		in->compute.src0 = row(0, 4);
		in->compute.dst = asm_row(ISA_SPACE_PSUM, ISA_FP32, 0, 2, 0, 4);
		if (skip)
			expect_fault(r, p, EXI_FAULT_BAD_OPERAND, ISA_TENSOR, 2, 100);
		else
			assert_runs(r, p);
	}
}

/* --- no end ------------------------------------------------------------------------------------- */

/* A loop without an end is aborted, and the core takes the next launch. */
static void test_endless(void **state)
{
	struct rig *r = *state;

	for (unsigned int e = 0; e < EXI_ENGINES; e++) {
		struct program *p = new_program(), *next = new_program();
		struct exi_record rec;
		size_t size;
		void *image;
		uint32_t n;

		reg_imm(p, e, ISA_ADD, 1, 1, 1);
		reg_branch(p, e, ISA_IS_EQ, 0, 0, 0);
		image = asm_finish(p, &size);
		n = rig_put(r, 0, rig_load(r, image, size), slots, 2);
		rig_doorbell(r, 0);
		while (rig_reg(r, 0, EXI_Q_STARTED) == n)
			;
		nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
		assert_int_equal(rig_reg(r, 0, EXI_Q_STATUS), EXI_Q_RUNNING);
		rig_set(r, 0, EXI_Q_CONTROL, EXI_Q_ABORT);
		rec = rig_wait(r, 0, n);
		assert_int_equal(rec.status, EXI_FAULT_ABORTED);
		assert_int_equal(rec.engine, e);
		rig_set(r, 0, EXI_Q_CONTROL, EXI_Q_RESET);
		rig_queue(r, 0, 1);
		fill(r, 0);
		assert_runs(r, copy_tiles(next, 16, BYTES / 16));
		assert_memory_equal(slot(r, 0), slot(r, 1), BYTES);
		free(image);
		free(p);
	}
}

/* --- what is refused ---------------------------------------------------------------------------- */

static struct isa_inst good(unsigned int opcode)
{
	static const struct isa_reg reg[] = {
		{ .dst = 1, .b = 2 },
		{ .dst = 1, .a = 2, .b = 3, .op = ISA_SUB },
		{ .dst = 1, .place = { .dtype = ISA_INT32, .part0 = 127, .offset = 16 } },
		{ .a = 1, .place = { .dtype = ISA_INT32, .part0 = 127, .offset = 16 } },
		{ .a = 1, .b = 2, .op = ISA_IS_LT, .target = 1 },
	};

	return (struct isa_inst){ .opcode = (uint8_t)opcode, .reg = reg[opcode - ISA_REG_MOVE] };
}

static void test_refused(void **state)
{
	(void)state;
	for (unsigned int opcode = ISA_REG_MOVE; opcode <= ISA_BRANCH; opcode++) {
		const bool dst = opcode <= ISA_REG_LOAD;
		const bool a = opcode != ISA_REG_MOVE && opcode != ISA_REG_LOAD;
		const bool b = opcode != ISA_REG_LOAD && opcode != ISA_REG_STORE;
		const bool op = opcode == ISA_REG_ALU || opcode == ISA_BRANCH;

		REFUSE(good(opcode), i->reg.dst = dst ? 0 : 1, !dst, dst ? ISA_REGISTERS : 0);
		REFUSE(good(opcode), i->reg.dst = ISA_REGISTERS, ISA_REGISTERS,
		       dst ? ISA_REGISTERS : 0);
		REFUSE(good(opcode), i->reg.a = ISA_REGISTERS, ISA_REGISTERS,
		       a ? ISA_REGISTERS : 0);
		REFUSE(good(opcode), i->reg.b = 255, 255, b ? ISA_REGISTERS : 0);
		REFUSE(good(opcode), i->reg.imm = 1, 1, 0);
		if (!b)
			REFUSE(good(opcode), i->flags = ISA_F_IMM, ISA_F_IMM, 0);
		else
			REFUSE(good(opcode), (i->flags = ISA_F_IMM, i->reg.b = 3), 3, 0);
		if (!op)
			REFUSE(good(opcode), i->reg.op = ISA_ADD, ISA_ADD, 0);
		REFUSE(good(opcode), i->reg.pad0[3] = 9, 9, 0);
		REFUSE(good(opcode), i->body[32] = 1, 1, 0);
		REFUSE(good(opcode), i->body[159] = 1, 1, 0);
		REFUSE(good(opcode), i->elem_bytes = 4, 4, 0);
		REFUSE(good(opcode), i->flags = ISA_F_ACCUM, ISA_F_ACCUM, ISA_F_NOTIFY | ISA_F_IMM);
		REFUSE(good(opcode), (i->wait[0].kind = 1, i->wait[0].reg = ISA_REGISTERS),
		       ISA_REGISTERS, ISA_REGISTERS);
		REFUSE(good(opcode), i->wait[1].reg = 2, 2, 0);
		if (opcode != ISA_BRANCH)
			REFUSE(good(opcode), i->reg.target = 1, 1, 0);
		if (b)
			REFUSE(good(opcode), i->reg.place.part0 = 1, 1, 0);
	}
	for (unsigned int op_ = 0; op_ < 256; op_++) {
		const bool compares = op_ >= ISA_IS_EQ && op_ <= ISA_IS_LE;

		if (op_ >= ISA_ALU_OPS)
			REFUSE(good(ISA_REG_ALU), i->reg.op = (uint8_t)op_, op_, ISA_ALU_OPS);
		else if (!is_op(op_))
			REFUSE(good(ISA_REG_ALU), i->reg.op = (uint8_t)op_, op_, ISA_ADD);
		if (!compares)
			REFUSE(good(ISA_BRANCH), i->reg.op = (uint8_t)op_, op_, ISA_IS_LE);
	}
	/* The stream has the branch and a HALT. */
	REFUSE(good(ISA_BRANCH), i->reg.target = 2, 2, 2);
	REFUSE(good(ISA_BRANCH), i->reg.target = UINT32_MAX, UINT32_MAX, 2);
}

#define PLACE good(ISA_REG_STORE)

static void test_refused_places(void **state)
{
	(void)state;
	REFUSE(PLACE, i->reg.place.dtype = ISA_INT64, ISA_INT64, ISA_INT32);
	REFUSE(PLACE, i->reg.place.dtype = 0, 0, ISA_INT32);
	REFUSE(PLACE, i->reg.place.space = 3, 3, ISA_SPACE_SLOT);
	REFUSE(PLACE, i->reg.place.shift = ISA_REGISTERS, ISA_REGISTERS, ISA_REGISTERS);
	REFUSE(PLACE, i->reg.place.pad0[1] = 1, 1, 0);
	REFUSE(PLACE, i->reg.place.slot = 1, 1, 0);
	REFUSE_BOUNDS(PLACE, i->reg.place.part0 = 128, 128, ISA_PARTITIONS);
	REFUSE_BOUNDS(PLACE, i->reg.place.offset = NM_SBUF_BYTES - 3, NM_SBUF_BYTES + 1,
		      NM_SBUF_BYTES);
	REFUSE_ON(ISA_VECTOR, PLACE, i->reg.place = at_slot(0, 0), EXI_FAULT_SLOT_INDEX, 0, 0);
	REFUSE_ON(ISA_VECTOR, PLACE, i->reg.place = at_slot(ISA_SLOT_CONST, 0),
		  EXI_FAULT_SLOT_RIGHTS, EXI_SLOT_WRITE, EXI_SLOT_READ);
}

static struct isa_inst shifted(unsigned int opcode)
{
	struct isa_inst in = { .opcode = (uint8_t)opcode };

	in.compute.dst = in.compute.src0 = row(0, 4);
	in.compute.shift[0] = in.compute.shift[1] = 1;
	return in;
}

/* Registers of operands that there are, and no others. */
static void test_refused_shifts(void **state)
{
	struct isa_inst dma = { .opcode = ISA_DMA, .elem_bytes = 4 };
	struct isa_inst shuffle = shifted(ISA_STREAM_SHUFFLE);

	(void)state;
	dma.dma.dst = dma.dma.src = asm_chip(ISA_SPACE_SBUF, 0, 1, 0, 4, 4);
	dma.dma.dst.shift = dma.dma.src.shift = 63;
	REFUSE(dma, i->dma.dst.shift = ISA_REGISTERS, ISA_REGISTERS, ISA_REGISTERS);
	REFUSE(dma, i->dma.src.shift = 255, 255, ISA_REGISTERS);
	REFUSE(shifted(ISA_COPY), i->compute.shift[0] = ISA_REGISTERS, ISA_REGISTERS,
	       ISA_REGISTERS);
	REFUSE(shifted(ISA_COPY), i->compute.shift[1] = 255, 255, ISA_REGISTERS);
	REFUSE(shifted(ISA_COPY), i->compute.shift[2] = 1, 1, 0);
	REFUSE(shifted(ISA_COPY), i->compute.vec0.shift = 1, 1, 0);
	REFUSE(shifted(ISA_COPY), i->compute.vec1.shift = 1, 1, 0);
	/* A shuffle lies on its source, or apart from it. */
	shuffle.compute.compute_type = ISA_CT_BITS;
	for (unsigned int k = 1; k < ISA_PART_QUANTUM; k++)
		shuffle.compute.shuffle[k] = ISA_SHUFFLE_KEEP;
	REFUSE(shuffle, i->compute.shift[1] = 2, 1, 2);
}

/* --- time ------------------------------------------------------------------------------------------ */

static uint64_t busy(struct rig *r, struct program *p, unsigned int engine)
{
	struct exi_record rec = run(r, p);

	assert_int_equal(rec.status, EXI_OK);
	return rec.busy_ns[engine];
}

/* Cycles of 1.2 GHz that 60 instructions of a kind take, each. */
static uint64_t cycles_each(struct rig *r, unsigned int opcode, bool in_slot, bool taken)
{
	struct program *p = new_program();
	const uint64_t halt = busy(r, (reg_set(p, ISA_SYNC, 1, 0), p), ISA_SYNC) / 2;

	p = new_program();
	for (uint32_t k = 0; k < 60; k++) {
		struct isa_inst *in = asm_inst(p, ISA_SYNC, opcode);

		*in = good(opcode);
		if (opcode == ISA_BRANCH) {
			in->reg.op = taken ? ISA_IS_EQ : ISA_IS_NE;
			in->reg.target = 2 * k + 2;
			reg_set(p, ISA_SYNC, 1, 0);
		}
		if (in_slot)
			in->reg.place = at_slot(0, 0);
	}
	return ((busy(r, p, ISA_SYNC) - halt) * 12 + 300) / 600;
}

static void test_time(void **state)
{
	struct rig *r = *state;

	/* CONTROL_CYCLES; with the access of SBUF; with both ends of a transfer, 2 us. */
	assert_int_equal(cycles_each(r, ISA_REG_MOVE, false, false), 16);
	assert_int_equal(cycles_each(r, ISA_REG_ALU, false, false), 16);
	assert_int_equal(cycles_each(r, ISA_REG_LOAD, false, false), 76);
	assert_int_equal(cycles_each(r, ISA_REG_LOAD, true, false), 16 + 2400);
	assert_int_equal(cycles_each(r, ISA_REG_STORE, false, false), 16);
	/* With a move behind it that is made, or jumped over. */
	assert_int_equal(cycles_each(r, ISA_BRANCH, false, false), 32);
	assert_int_equal(cycles_each(r, ISA_BRANCH, false, true), 16 + 64);
}

/* Descriptors of a transfer that registers move are made when it is issued: 0.6 us. */
static void test_time_of_transfer(void **state)
{
	struct rig *r = *state;
	uint64_t took[2];

	for (unsigned int k = 0; k < 2; k++) {
		struct program *p = new_program();
		struct isa_inst *in =
			asm_dma(p, ISA_SYNC, 0, 4, asm_flat(1, 0, 64, 4), asm_flat(0, 0, 64, 4));
		struct exi_record rec;

		in->dma.src.shift = k ? 5 : 0;
		rec = run(r, p);
		assert_int_equal(rec.status, EXI_OK);
		took[k] = rec.end_ns - rec.start_ns;
	}
	assert_uint_in_range(took[1] - took[0], 599, 601);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_tile_bounds),
		TEST(test_bank_bounds),
		TEST(test_transfer_bounds),
		TEST(test_stationary),
		TEST(test_endless),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_refused_places),
		cmocka_unit_test(test_refused_shifts),
		TEST(test_time),
		TEST(test_time_of_transfer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
