/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions on registers for tests, a loop of them, and launches with two slots. */
#ifndef TEST_LOOPS_H
#define TEST_LOOPS_H

#include "rig.h"

static inline struct isa_inst *reg_op(struct program *p, unsigned int engine, unsigned int opcode,
				      struct isa_reg reg)
{
	struct isa_inst *in = asm_inst(p, engine, opcode);

	in->reg = reg;
	return in;
}

static inline struct isa_inst *reg_set(struct program *p, unsigned int engine, unsigned int dst,
				       int32_t value)
{
	struct isa_inst *in =
		reg_op(p, engine, ISA_REG_MOVE,
		       (struct isa_reg){ .dst = (uint8_t)dst, .imm = (uint32_t)value });

	in->flags = ISA_F_IMM;
	return in;
}

static inline struct isa_inst *reg_move(struct program *p, unsigned int engine, unsigned int dst,
					unsigned int src)
{
	return reg_op(p, engine, ISA_REG_MOVE,
		      (struct isa_reg){ .dst = (uint8_t)dst, .b = (uint8_t)src });
}

static inline struct isa_inst *reg_alu(struct program *p, unsigned int engine, unsigned int op,
				       unsigned int dst, unsigned int a, unsigned int b)
{
	return reg_op(
		p, engine, ISA_REG_ALU,
		(struct isa_reg){
			.dst = (uint8_t)dst, .a = (uint8_t)a, .b = (uint8_t)b, .op = (uint8_t)op });
}

static inline struct isa_inst *reg_imm(struct program *p, unsigned int engine, unsigned int op,
				       unsigned int dst, unsigned int a, int32_t value)
{
	struct isa_inst *in = reg_alu(p, engine, op, dst, a, 0);

	in->flags = ISA_F_IMM;
	in->reg.imm = (uint32_t)value;
	return in;
}

static inline struct isa_inst *reg_load(struct program *p, unsigned int engine, unsigned int dst,
					struct isa_place place)
{
	return reg_op(p, engine, ISA_REG_LOAD,
		      (struct isa_reg){ .dst = (uint8_t)dst, .place = place });
}

static inline struct isa_inst *reg_store(struct program *p, unsigned int engine, unsigned int a,
					 struct isa_place place)
{
	return reg_op(p, engine, ISA_REG_STORE,
		      (struct isa_reg){ .a = (uint8_t)a, .place = place });
}

static inline struct isa_inst *reg_branch(struct program *p, unsigned int engine, unsigned int op,
					  unsigned int a, unsigned int b, uint32_t target)
{
	return reg_op(
		p, engine, ISA_BRANCH,
		(struct isa_reg){
			.a = (uint8_t)a, .b = (uint8_t)b, .op = (uint8_t)op, .target = target });
}

/* Back to target while a register is below a number. */
static inline struct isa_inst *reg_until(struct program *p, unsigned int engine, unsigned int reg,
					 int32_t end, uint32_t target)
{
	struct isa_inst *in = reg_branch(p, engine, ISA_IS_LT, reg, 0, target);

	in->flags = ISA_F_IMM;
	in->reg.imm = (uint32_t)end;
	return in;
}

/* An int32 in a slot, or in SBUF. */
static inline struct isa_place at_slot(unsigned int slot, uint64_t offset)
{
	return (struct isa_place){ .space = ISA_SPACE_SLOT,
				   .dtype = ISA_INT32,
				   .slot = (uint16_t)slot,
				   .offset = offset };
}

static inline struct isa_place at_sbuf(unsigned int part, uint64_t offset)
{
	return (struct isa_place){ .dtype = ISA_INT32, .part0 = (uint8_t)part, .offset = offset };
}

/* Slot 0 to slot 1 by way of SBUF, n tiles of so many bytes; a store waits for the load of its turn. */
static inline struct program *copy_tiles(struct program *p, int32_t n, uint32_t bytes)
{
	struct isa_inst *in;
	uint32_t top;

	reg_set(p, ISA_SYNC, 1, 0); /* tiles */
	reg_set(p, ISA_SYNC, 2, 0); /* bytes */
	top = p->count[ISA_SYNC];
	reg_imm(p, ISA_SYNC, ISA_ADD, 1, 1, 1);
	in = asm_dma(p, ISA_SYNC, 0, 1, asm_chip(ISA_SPACE_SBUF, 0, 1, 0, bytes, 1),
		     asm_flat(0, 0, bytes, 1));
	in->dma.src.shift = 2;
	asm_update(in, 1, 1);
	in = asm_dma(p, ISA_SYNC, 0, 1, asm_flat(1, 0, bytes, 1),
		     asm_chip(ISA_SPACE_SBUF, 0, 1, 0, bytes, 1));
	in->dma.dst.shift = 2;
	asm_wait(in, 1, 0);
	in->wait[0].reg = 1;
	reg_imm(p, ISA_SYNC, ISA_ADD, 2, 2, (int32_t)bytes);
	asm_inst(p, ISA_SYNC, ISA_NOP);
	reg_until(p, ISA_SYNC, 1, n, top);
	return p;
}

/* --- launches ----------------------------------------------------------------------------- */

#define BYTES 0x10000u

static const struct exi_slot slots[] = {
	{ .base = 0x100000, .size = BYTES, .rights = EXI_SLOT_READ | EXI_SLOT_WRITE },
	{ .base = 0x200000, .size = BYTES, .rights = EXI_SLOT_READ | EXI_SLOT_WRITE },
};

static inline struct program *new_program(void)
{
	struct program *p = calloc(1, sizeof(*p));

	asm_slot(p, NPROG_SLOT_INOUT, BYTES);
	asm_slot(p, NPROG_SLOT_INOUT, BYTES);
	return p;
}

static inline struct exi_record run(struct rig *r, struct program *p)
{
	return rig_once(r, p, slots);
}

/* The last instruction of a stream is refused when it starts. */
static inline void expect_fault(struct rig *r, struct program *p, unsigned int status,
				unsigned int engine, uint64_t value_, uint64_t limit)
{
	const uint32_t pc = p->count[engine] - 1;
	struct exi_record rec = run(r, p);

	assert_int_equal(rec.status, status);
	assert_int_equal(rec.engine, engine);
	assert_int_equal(rec.pc, pc);
	assert_int_equal(rec.value, value_);
	assert_int_equal(rec.limit, limit);
	assert_int_equal(rec.slot, status == EXI_FAULT_SLOT_BOUNDS ? 1 : 0xffff);
}

#define assert_runs(r, p) assert_int_equal(run(r, p).status, EXI_OK)

static inline uint8_t *slot(struct rig *r, unsigned int i)
{
	return r->hbm + slots[i].base;
}

static inline int32_t word(struct rig *r, unsigned int i, unsigned int n)
{
	int32_t value;

	memcpy(&value, slot(r, i) + 4 * n, sizeof(value));
	return value;
}

/* Bytes of slot i, all different from those of the other. */
static inline void fill(struct rig *r, unsigned int i)
{
	for (uint32_t k = 0; k < BYTES; k++)
		slot(r, i)[k] = (uint8_t)(k * 31 + k / 256);
	memset(slot(r, 1 - i), 0, BYTES);
}

static inline struct isa_tile row(uint32_t offset, uint32_t n)
{
	return asm_row(ISA_SPACE_SBUF, ISA_FP32, 0, 1, offset, n);
}

/* Whether registers have it. */
static inline bool is_op(unsigned int op)
{
	return op != ISA_DIV && op != ISA_MOD && op != ISA_POW;
}

#endif /* TEST_LOOPS_H */
