// SPDX-License-Identifier: Apache-2.0
/*
 * The management core, instruction by instruction: words as an assembler made them, results as the
 * specification has them. What compiled programs do there is tested with the firmware (mgmt.c).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rv32.h"
#include "rv32_priv.h"

#define BASE  0x10000000u
#define BYTES 0x10000u
#define CODE  (BASE + 0x1000)
#define DATA  (BASE + 0x8000)
#define TRAP  (BASE + 0x2000)
#define MMIO  0x20000000u

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

enum { RA = 1, SP = 2, A0 = 10, A1 = 11, A2 = 12 };

struct machine {
	struct rv32 cpu;
	uint32_t addr, value; /* of the last bus access */
	unsigned int size, loads, stores;
	bool stops; /* a store stops the hart */
};

static bool bus_load(void *user, uint32_t addr, unsigned int size, uint32_t *value)
{
	struct machine *m = user;

	if (addr - MMIO >= 0x1000)
		return false;
	m->addr = addr;
	m->size = size;
	m->loads++;
	*value = 0x89abcdef >> addr % 4 * 8;
	if (size < 4)
		*value &= (1u << size * 8) - 1;
	return true;
}

static bool bus_store(void *user, uint32_t addr, unsigned int size, uint32_t value)
{
	struct machine *m = user;

	if (addr - MMIO >= 0x1000)
		return false;
	m->addr = addr;
	m->value = value;
	m->size = size;
	m->stores++;
	m->cpu.stop = m->stops;
	return true;
}

static int setup(void **state)
{
	struct machine *m = calloc(1, sizeof(*m));

	m->cpu.bus = (struct rv32_bus){ m, bus_load, bus_store };
	m->cpu.memory = calloc(1, BYTES);
	m->cpu.memory_base = BASE;
	m->cpu.memory_bytes = BYTES;
	rv32_reset(&m->cpu, CODE);
	m->cpu.mtvec = TRAP;
	*state = m;
	return 0;
}

static int teardown(void **state)
{
	struct machine *m = *state;

	free(m->cpu.memory);
	free(m);
	return 0;
}

static void poke(struct machine *m, uint32_t addr, uint32_t value)
{
	memcpy(m->cpu.memory + (addr - BASE), &value, sizeof(value));
}

static uint32_t peek(struct machine *m, uint32_t addr)
{
	uint32_t value;

	memcpy(&value, m->cpu.memory + (addr - BASE), sizeof(value));
	return value;
}

/* One instruction at CODE. */
static void step(struct machine *m, uint32_t insn, uint32_t a0, uint32_t a1)
{
	poke(m, CODE, insn);
	m->cpu.pc = CODE;
	m->cpu.x[A0] = a0;
	m->cpu.x[A1] = a1;
	m->cpu.mcause = 0xffff;
	rv32_run(&m->cpu, 1);
	assert_int_equal(m->cpu.x[0], 0);
}

static void assert_trap(struct machine *m, uint32_t cause, uint32_t value)
{
	assert_int_equal(m->cpu.pc, TRAP);
	assert_int_equal(m->cpu.mcause, cause);
	assert_int_equal(m->cpu.mepc, CODE);
	assert_int_equal(m->cpu.mtval, value);
}

/* --- results in a register ---------------------------------------------------- */

struct row {
	const char *name;
	uint32_t insn, a0, a1, want; /* in a2; for compressed ones on one register, in a0 */
};

static const struct row rows[] = {
	{ "add", 0x00b50633, 0xffffffff, 2, 1 },
	{ "sub", 0x40b50633, 1, 2, 0xffffffff },
	{ "sll", 0x00b51633, 1, 31, 0x80000000 },
	{ "sll: five bits of the count", 0x00b51633, 1, 33, 2 },
	{ "slt", 0x00b52633, 0x80000000, 0, 1 },
	{ "slt: not less", 0x00b52633, 5, 5, 0 },
	{ "sltu", 0x00b53633, 0, 0x80000000, 1 },
	{ "sltu: not less", 0x00b53633, 0x80000000, 0, 0 },
	{ "xor", 0x00b54633, 0xff00ff00, 0x0ff00ff0, 0xf0f0f0f0 },
	{ "srl", 0x00b55633, 0x80000000, 31, 1 },
	{ "sra", 0x40b55633, 0x80000000, 31, 0xffffffff },
	{ "sra by nothing", 0x40b55633, 0x80000000, 32, 0x80000000 },
	{ "sra: positive", 0x40b55633, 0x40000000, 30, 1 },
	{ "or", 0x00b56633, 0xf0, 0x0f, 0xff },
	{ "and", 0x00b57633, 0xf8, 0x1f, 0x18 },
	{ "mul", 0x02b50633, 0xffffffff, 0xffffffff, 1 },
	{ "mulh", 0x02b51633, 0x80000000, 0x80000000, 0x40000000 },
	{ "mulh: negative", 0x02b51633, 0xffffffff, 1, 0xffffffff },
	{ "mulhsu", 0x02b52633, 0xffffffff, 0xffffffff, 0xffffffff },
	{ "mulhsu: positive", 0x02b52633, 2, 0x80000000, 1 },
	{ "mulhu", 0x02b53633, 0xffffffff, 0xffffffff, 0xfffffffe },
	{ "div", 0x02b54633, 0xfffffff9, 2, 0xfffffffd }, /* -7 / 2 = -3 */
	{ "div by 0", 0x02b54633, 7, 0, 0xffffffff },
	{ "div overflow", 0x02b54633, 0x80000000, 0xffffffff, 0x80000000 },
	{ "divu", 0x02b55633, 0xfffffff9, 2, 0x7ffffffc },
	{ "divu by 0", 0x02b55633, 7, 0, 0xffffffff },
	{ "rem", 0x02b56633, 0xfffffff9, 2, 0xffffffff },
	{ "rem by 0", 0x02b56633, 0xfffffff9, 0, 0xfffffff9 },
	{ "rem overflow", 0x02b56633, 0x80000000, 0xffffffff, 0 },
	{ "remu", 0x02b57633, 0xfffffff9, 2, 1 },
	{ "remu by 0", 0x02b57633, 7, 0, 7 },
	{ "addi -2048", 0x80050613, 0, 0, 0xfffff800 },
	{ "addi 2047", 0x7ff50613, 1, 0, 2048 },
	{ "slti -1", 0xfff52613, 0xfffffffe, 0, 1 },
	{ "sltiu -1: compares with 2^32 - 1", 0xfff53613, 0xfffffffe, 0, 1 },
	{ "xori -1", 0xfff54613, 0x12345678, 0, 0xedcba987 },
	{ "ori 1365", 0x55556613, 0, 0, 1365 },
	{ "andi -16", 0xff057613, 0x1234, 0, 0x1230 },
	{ "slli 31", 0x01f51613, 3, 0, 0x80000000 },
	{ "srli 31", 0x01f55613, 0xc0000000, 0, 1 },
	{ "srai 31", 0x41f55613, 0xc0000000, 0, 0xffffffff },
	{ "lui", 0xfffff637, 0, 0, 0xfffff000 },
	{ "auipc", 0x12345617, 0, 0, CODE + 0x12345000 },
	{ "lb -1", 0xfff50603, DATA + 4, 0, 0xffffff84 },
	{ "lbu -1", 0xfff54603, DATA + 4, 0, 0x84 },
	{ "lh 2", 0x00251603, DATA, 0, 0xffff8483 },
	{ "lhu 2", 0x00255603, DATA, 0, 0x8483 },
	{ "lw -4", 0xffc52603, DATA + 4, 0, 0x84838281 },
	{ "lw of the bus", 0xffc52603, MMIO + 4, 0, 0x89abcdef },
	{ "lb of the bus", 0xfff50603, MMIO + 4, 0, 0xffffff89 },
	{ "fence does nothing", 0x0ff0000f, 1, 2, 0xa2 },
	{ "fence.i does nothing", 0x0000100f, 1, 2, 0xa2 },
	{ "misa", 0x30102673, 0, 0, 0x40001104 },
	{ "mhartid", 0xf1402673, 0, 0, 0 },
	{ "c.addi4spn 1020", 0x1ff0, 0, 0, DATA + 1020 },
	{ "c.addi4spn 4", 0x0050, 0, 0, DATA + 4 },
	{ "c.lw 124", 0x5d70, DATA, 0, 0x11223344 },
	{ "c.li -32", 0x5601, 0, 0, 0xffffffe0 },
	{ "c.lui -32", 0x7601, 0, 0, 0xfffe0000 },
	{ "c.lui 31", 0x667d, 0, 0, 0x1f000 },
	{ "c.lwsp 252", 0x567e, 0, 0, 0x55667788 },
	{ "c.lwsp 4", 0x4612, 0, 0, 0x01020304 },
	{ "c.mv", 0x862e, 1, 7, 7 },
};

/* a0 = a0 op something */
static const struct row own_rows[] = {
	{ "c.addi -32", 0x1501, 5, 0, 0xffffffe5 },
	{ "c.addi 31", 0x057d, 5, 0, 36 },
	{ "c.srli 31", 0x817d, 0xc0000000, 0, 1 },
	{ "c.srai 31", 0x857d, 0xc0000000, 0, 0xffffffff },
	{ "c.andi -32", 0x9901, 0xff, 0, 0xe0 },
	{ "c.sub", 0x8d0d, 1, 2, 0xffffffff },
	{ "c.xor", 0x8d2d, 0xff, 0xf0, 0x0f },
	{ "c.or", 0x8d4d, 0xf0, 0x0f, 0xff },
	{ "c.and", 0x8d6d, 0xf8, 0x1f, 0x18 },
	{ "c.slli 31", 0x057e, 3, 0, 0x80000000 },
	{ "c.add", 0x952e, 3, 4, 7 },
	{ "c.nop", 0x0001, 3, 4, 3 },
};

static void put_data(struct machine *m)
{
	poke(m, DATA, 0x84838281);
	poke(m, DATA + 124, 0x11223344);
	poke(m, DATA + 252, 0x55667788);
	poke(m, DATA + 4, 0x01020304);
	m->cpu.x[SP] = DATA;
	m->cpu.x[A2] = 0xa2;
}

static void results(void **state)
{
	struct machine *m = *state;

	for (size_t i = 0; i < ARRAY_SIZE(rows) + ARRAY_SIZE(own_rows); i++) {
		const bool own = i >= ARRAY_SIZE(rows);
		const struct row *r = own ? &own_rows[i - ARRAY_SIZE(rows)] : &rows[i];
		uint32_t have;

		put_data(m);
		step(m, r->insn, r->a0, r->a1);
		have = m->cpu.x[own ? A0 : A2];
		if (have != r->want || m->cpu.pc != CODE + ((r->insn & 3) == 3 ? 4 : 2))
			fail_msg("%s: 0x%x, want 0x%x; pc 0x%x", r->name, have, r->want, m->cpu.pc);
	}
}

static void register_0_stays_0(void **state)
{
	struct machine *m = *state;

	step(m, 0x00b50033, 1, 2); /* add zero,a0,a1 */
	step(m, 0x00550013, 1, 2); /* addi zero,a0,5 */
	assert_int_equal(m->cpu.pc, CODE + 4);
}

static void the_stack_pointer_moves(void **state)
{
	struct machine *m = *state;

	m->cpu.x[SP] = DATA;
	step(m, 0x7101, 0, 0); /* c.addi16sp -512 */
	assert_int_equal(m->cpu.x[SP], DATA - 512);
	step(m, 0x617d, 0, 0); /* c.addi16sp 496 */
	assert_int_equal(m->cpu.x[SP], DATA - 16);
}

/* --- stores ------------------------------------------------------------------- */

static void stores(void **state)
{
	static const struct {
		uint32_t insn, a0, at, want;
	} cases[] = {
		{ 0xfeb50fa3, DATA + 4, DATA, 0x44000000 }, /* sb a1,-1(a0) */
		{ 0x00b51123, DATA, DATA, 0x33440000 }, /* sh a1,2(a0) */
		{ 0xfeb52e23, DATA + 4, DATA, 0x11223344 }, /* sw a1,-4(a0) */
		{ 0x7eb52fa3, DATA - 2047, DATA, 0x11223344 }, /* sw a1,2047(a0) */
		{ 0xc12c, DATA, DATA + 64, 0x11223344 }, /* c.sw a1,64(a0) */
		{ 0xdfae, 0, DATA + 252, 0x11223344 }, /* c.swsp a1,252(sp) */
		{ 0xc12e, 0, DATA + 128, 0x11223344 }, /* c.swsp a1,128(sp) */
	};
	struct machine *m = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		m->cpu.x[SP] = DATA;
		poke(m, cases[i].at, 0);
		step(m, cases[i].insn, cases[i].a0, 0x11223344);
		assert_int_equal(peek(m, cases[i].at), cases[i].want);
	}
	step(m, 0xfeb50fa3, MMIO + 4, 0x11223344);
	assert_int_equal(m->addr, MMIO + 3);
	assert_int_equal(m->size, 1);
	assert_int_equal(m->value, 0x44);
}

/* --- jumps -------------------------------------------------------------------- */

static void jumps(void **state)
{
	static const struct {
		const char *name;
		uint32_t insn, a0, a1;
		int32_t to; /* from CODE */
		unsigned int link; /* register */
	} cases[] = {
		{ "beq", 0x00b50863, 5, 5, 16, 0 },
		{ "beq: not", 0x00b50863, 5, 6, 4, 0 },
		{ "bne back", 0xfeb51ee3, 5, 6, -4, 0 },
		{ "bne: not", 0xfeb51ee3, 5, 5, 4, 0 },
		{ "blt", 0x00b54863, 0xffffffff, 0, 16, 0 },
		{ "blt: not", 0x00b54863, 0, 0, 4, 0 },
		{ "bge", 0x00b55863, 0, 0, 16, 0 },
		{ "bge: not", 0x00b55863, 0x80000000, 0, 4, 0 },
		{ "bltu", 0x00b56863, 0, 0xffffffff, 16, 0 },
		{ "bltu: not", 0x00b56863, 0xffffffff, 0, 4, 0 },
		{ "bgeu far", 0x7eb57fe3, 0xffffffff, 0, 4094, 0 },
		{ "bgeu: not", 0x7eb57fe3, 0, 1, 4, 0 },
		{ "jal", 0x0010066f, 0, 0, 2048, A2 },
		{ "jal far back", 0x8000066f, 0, 0, -1048576, A2 },
		{ "jalr: bit 0 is dropped", 0x00350667, CODE + 0x100, 0, 0x102, A2 },
		{ "jalr back", 0x80050667, CODE, 0, -2048, A2 },
		{ "c.jal", 0x2ffd, 0, 0, 2046, RA },
		{ "c.jal back", 0x3001, 0, 0, -2048, RA },
		{ "c.j", 0xaffd, 0, 0, 2046, 0 },
		{ "c.j back", 0xbffd, 0, 0, -2, 0 },
		{ "c.beqz", 0xcd7d, 0, 0, 254, 0 },
		{ "c.beqz: not", 0xcd7d, 1, 0, 2, 0 },
		{ "c.beqz back", 0xd101, 0, 0, -256, 0 },
		{ "c.bnez", 0xed7d, 1, 0, 254, 0 },
		{ "c.bnez: not", 0xed7d, 0, 0, 2, 0 },
		{ "c.bnez back", 0xf101, 1, 0, -256, 0 },
		{ "c.jr", 0x8502, CODE + 0x200, 0, 0x200, 0 },
		{ "c.jalr", 0x9502, CODE + 0x200, 0, 0x200, RA },
	};
	struct machine *m = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		m->cpu.x[RA] = m->cpu.x[A2] = 0;
		step(m, cases[i].insn, cases[i].a0, cases[i].a1);
		if (m->cpu.pc != CODE + (uint32_t)cases[i].to)
			fail_msg("%s: to 0x%x, want %d from 0x%x", cases[i].name, m->cpu.pc,
				 cases[i].to, CODE);
		if (cases[i].link)
			assert_int_equal(m->cpu.x[cases[i].link],
					 CODE + ((cases[i].insn & 3) == 3 ? 4 : 2));
	}
	m->cpu.x[A0] = 0;
	step(m, 0x00050567, CODE + 0x40, 0); /* jalr a0,0(a0): reads before it writes */
	assert_int_equal(m->cpu.pc, CODE + 0x40);
	assert_int_equal(m->cpu.x[A0], CODE + 4);
}

/* --- control and status registers --------------------------------------------- */

static void csr_operations(void **state)
{
	static const struct {
		uint32_t insn, want;
	} cases[] = {
		{ 0x34051673, 0x0ff0 }, /* csrrw a2,mscratch,a0 */
		{ 0x34052673, 0xfff0 }, /* csrrs */
		{ 0x34053673, 0xf000 }, /* csrrc */
		{ 0x340ad673, 21 }, /* csrrwi 21 */
		{ 0x340ae673, 0xff15 }, /* csrrsi 21 */
		{ 0x340af673, 0xff00 }, /* csrrci 21 */
		{ 0x34002673, 0xff00 }, /* csrrs a2,mscratch,zero: reads */
	};
	struct machine *m = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		m->cpu.mscratch = 0xff00;
		step(m, cases[i].insn, 0x0ff0, 0);
		assert_int_equal(m->cpu.x[A2], 0xff00);
		assert_int_equal(m->cpu.mscratch, cases[i].want);
	}
}

static void csr_fields(void **state)
{
	struct machine *m = *state;

	step(m, 0x30051673, 0xffffffff, 0); /* mstatus */
	assert_int_equal(m->cpu.x[A2], RV32_MSTATUS_MPP);
	assert_int_equal(m->cpu.mstatus, RV32_MSTATUS_MIE | RV32_MSTATUS_MPIE);
	m->cpu.mstatus = 0;
	step(m, 0x30451673, 0xffffffff, 0); /* mie */
	assert_int_equal(m->cpu.mie, 1u << 11);
	step(m, 0x30551673, 0x1003, 0); /* mtvec */
	assert_int_equal(m->cpu.mtvec, 0x1000);
	m->cpu.mtvec = TRAP;
	step(m, 0x34151673, 0x1003, 0); /* mepc */
	assert_int_equal(m->cpu.mepc, 0x1002);
	m->cpu.external = true;
	step(m, 0x34402673, 0, 0); /* mip */
	assert_int_equal(m->cpu.x[A2], 1u << 11);
	m->cpu.external = false;
	m->cpu.mcycle = 0x1ffffffffull;
	step(m, 0xb8002673, 0, 0); /* mcycleh; the step has counted */
	assert_int_equal(m->cpu.x[A2], 2);
}

static void csr_errors(void **state)
{
	struct machine *m = *state;

	step(m, 0x7c002673, 0, 0); /* 0x7c0 */
	assert_trap(m, RV32_ILLEGAL, 0x7c002673);
	step(m, 0xf1451673, 0, 0); /* csrrw mhartid */
	assert_trap(m, RV32_ILLEGAL, 0xf1451673);
	step(m, 0xc0002673, 0, 0); /* cycle, of user mode */
	assert_trap(m, RV32_ILLEGAL, 0xc0002673);
}

/* --- traps -------------------------------------------------------------------- */

static void illegal_instructions(void **state)
{
	static const uint32_t insns[] = {
		0xffffffff,
		0x0000, /* c: all zeros */
		0x00c50633 | 0x04000000, /* OP with funct7 2 */
		0x40b51633, /* sll with bit 30 */
		0x02051613, /* slli by 32 */
		0x05053003, /* ld */
		0x00056003, /* lwu */
		0x00b53023, /* sd */
		0x00b52463 | 0x2000, /* branch, funct3 2 or 3 */
		0x00251067, /* jalr, funct3 1 */
		0x00002007, /* flw */
		0x1005252f, /* lr.w */
		0x00002057, /* vectors */
		0x10200073, /* sret */
		0x7b200073, /* dret */
		0x12000073, /* sfence.vma */
		0x00004073, /* SYSTEM, funct3 4 */
		0x0000200f, /* MISC-MEM, funct3 2 */
		0x2000, /* c.fld */
		0x6000, /* c.flw */
		0x8000, /* reserved */
		0x9d0d, /* c.subw */
		0x917d, /* c.srli by 63 */
		0x157e, /* c.slli by 63 */
		0x6101, /* c.addi16sp 0 */
		0x6601, /* c.lui 0 */
		0x4002, /* c.lwsp to x0 */
		0x8002, /* c.jr x0 */
		0x6002, /* c.flwsp */
	};
	struct machine *m = *state;

	for (size_t i = 0; i < ARRAY_SIZE(insns); i++) {
		step(m, insns[i], 0, 0);
		if (m->cpu.mcause != RV32_ILLEGAL)
			fail_msg("0x%x is not illegal", insns[i]);
		assert_trap(m, RV32_ILLEGAL, insns[i]);
	}
}

static void misaligned_accesses(void **state)
{
	struct machine *m = *state;

	step(m, 0x00251603, DATA + 1, 0); /* lh 2 */
	assert_trap(m, RV32_LOAD_MISALIGNED, DATA + 3);
	step(m, 0xffc52603, DATA + 2, 0); /* lw -4 */
	assert_trap(m, RV32_LOAD_MISALIGNED, DATA - 2);
	step(m, 0x00b51123, DATA + 1, 0); /* sh 2 */
	assert_trap(m, RV32_STORE_MISALIGNED, DATA + 3);
	step(m, 0xfeb52e23, MMIO + 1, 0); /* sw -4 */
	assert_trap(m, RV32_STORE_MISALIGNED, MMIO - 3);
	assert_int_equal(m->loads + m->stores, 0);
}

static void accesses_to_nothing(void **state)
{
	struct machine *m = *state;

	m->cpu.x[A2] = 5;
	step(m, 0xffc52603, 4, 0); /* lw -4 */
	assert_trap(m, RV32_LOAD_FAULT, 0);
	assert_int_equal(m->cpu.x[A2], 5);
	step(m, 0xffc52603, BASE + BYTES + 4, 0);
	assert_trap(m, RV32_LOAD_FAULT, BASE + BYTES);
	step(m, 0xffc52603, BASE, 0);
	assert_trap(m, RV32_LOAD_FAULT, BASE - 4);
	step(m, 0xfeb52e23, 4, 0); /* sw -4 */
	assert_trap(m, RV32_STORE_FAULT, 0);
}

static void fetches_of_nothing(void **state)
{
	struct machine *m = *state;

	m->cpu.pc = MMIO;
	rv32_run(&m->cpu, 1);
	assert_int_equal(m->cpu.mcause, RV32_FETCH_FAULT);
	assert_int_equal(m->cpu.mepc, MMIO);
	assert_int_equal(m->loads, 0);
	/* The first half of an instruction is the last of the memory. */
	m->cpu.memory[BYTES - 2] = 0x13;
	m->cpu.pc = BASE + BYTES - 2;
	rv32_run(&m->cpu, 1);
	assert_int_equal(m->cpu.mcause, RV32_FETCH_FAULT);
	assert_int_equal(m->cpu.mepc, BASE + BYTES - 2);
	assert_int_equal(m->cpu.mtval, BASE + BYTES);
}

static void calls_and_returns(void **state)
{
	struct machine *m = *state;

	m->cpu.mstatus = RV32_MSTATUS_MIE;
	step(m, 0x00000073, 0, 0); /* ecall */
	assert_trap(m, RV32_ECALL_M, 0);
	assert_int_equal(m->cpu.mstatus, RV32_MSTATUS_MPIE);
	m->cpu.mepc = CODE + 0x20;
	step(m, 0x30200073, 0, 0); /* mret */
	assert_int_equal(m->cpu.pc, CODE + 0x20);
	assert_int_equal(m->cpu.mstatus, RV32_MSTATUS_MIE | RV32_MSTATUS_MPIE);
	m->cpu.mstatus = 0;
	step(m, 0x30200073, 0, 0);
	assert_int_equal(m->cpu.mstatus, RV32_MSTATUS_MPIE);
	step(m, 0x00100073, 0, 0); /* ebreak */
	assert_trap(m, RV32_BREAKPOINT, CODE);
	step(m, 0x9002, 0, 0); /* c.ebreak */
	assert_trap(m, RV32_BREAKPOINT, CODE);
}

/* --- interrupts, sleep, budget ------------------------------------------------ */

#define WFI 0x10500073
#define NOP 0x00000013

static void interrupts(void **state)
{
	struct machine *m = *state;

	m->cpu.external = true;
	step(m, NOP, 0, 0); /* neither enabled */
	assert_int_equal(m->cpu.pc, CODE + 4);
	m->cpu.mstatus = RV32_MSTATUS_MIE;
	step(m, NOP, 0, 0);
	assert_int_equal(m->cpu.pc, CODE + 4);
	m->cpu.mie = 1u << RV32_IRQ_EXTERNAL;
	step(m, NOP, 0, 0);
	assert_trap(m, RV32_INTERRUPT | RV32_IRQ_EXTERNAL, 0);
	assert_int_equal(m->cpu.mstatus, RV32_MSTATUS_MPIE); /* and none more */
	poke(m, TRAP, NOP);
	rv32_run(&m->cpu, 1);
	assert_int_equal(m->cpu.pc, TRAP + 4);
}

static void sleep(void **state)
{
	struct machine *m = *state;

	poke(m, CODE, WFI);
	poke(m, CODE + 4, NOP);
	poke(m, CODE + 8, WFI);
	m->cpu.mie = 1u << RV32_IRQ_EXTERNAL;
	assert_int_equal(rv32_run(&m->cpu, 100), RV32_SLEEPS);
	assert_int_equal(m->cpu.pc, CODE + 4); /* goes on behind it when it wakes */
	assert_int_equal(m->cpu.minstret, 1);
	m->cpu.external = true; /* wakes even where no trap is taken */
	assert_int_equal(rv32_run(&m->cpu, 2), RV32_RAN_OUT);
	assert_int_equal(m->cpu.pc, CODE + 12);
}

static void budgets_bound(void **state)
{
	struct machine *m = *state;

	poke(m, CODE, 0x0000006f); /* j . */
	assert_int_equal(rv32_run(&m->cpu, 1000), RV32_RAN_OUT);
	assert_int_equal(m->cpu.mcycle, 1000);
	assert_int_equal(m->cpu.minstret, 1000);
	m->cpu.mtvec = 0; /* a trap whose handler cannot be fetched */
	m->cpu.pc = 0;
	assert_int_equal(rv32_run(&m->cpu, 1000), RV32_RAN_OUT);
	assert_int_equal(m->cpu.minstret, 1000);
}

static void the_bus_stops_the_hart(void **state)
{
	struct machine *m = *state;

	m->stops = true;
	poke(m, CODE, 0xfeb52e23); /* sw a1,-4(a0) */
	m->cpu.x[A0] = MMIO + 4;
	assert_int_equal(rv32_run(&m->cpu, 10), RV32_STOPPED);
	assert_int_equal(m->cpu.pc, CODE);
	assert_int_equal(m->stores, 1);
}

static void resets(void **state)
{
	struct machine *m = *state;

	m->cpu.x[5] = 1;
	m->cpu.mie = 1u << RV32_IRQ_EXTERNAL;
	m->cpu.external = true;
	rv32_reset(&m->cpu, DATA);
	assert_int_equal(m->cpu.pc, DATA);
	assert_int_equal(m->cpu.x[5] | m->cpu.mie | m->cpu.external | m->cpu.mtvec, 0);
	assert_int_equal(m->cpu.memory_bytes, BYTES);
}

/* Every half-word: a 32-bit instruction of the base, or illegal. */
static void every_compressed_word(void **state)
{
	unsigned int legal = 0;

	(void)state;
	for (uint32_t w = 0; w < 0x10000; w++) {
		uint32_t insn;

		if ((w & 3) == 3)
			continue;
		insn = rv32_expand((uint16_t)w);
		assert_true(insn == 0 || (insn & 3) == 3);
		legal += insn != 0;
	}
	/* As counted with GNU objdump, less shifts by 32 and more, which RV32 reserves. */
	assert_int_equal(legal, 28823);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(results),
		TEST(register_0_stays_0),
		TEST(the_stack_pointer_moves),
		TEST(stores),
		TEST(jumps),
		TEST(csr_operations),
		TEST(csr_fields),
		TEST(csr_errors),
		TEST(illegal_instructions),
		TEST(misaligned_accesses),
		TEST(accesses_to_nothing),
		TEST(fetches_of_nothing),
		TEST(calls_and_returns),
		TEST(interrupts),
		TEST(sleep),
		TEST(budgets_bound),
		TEST(the_bus_stops_the_hart),
		TEST(resets),
		TEST(every_compressed_word),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
