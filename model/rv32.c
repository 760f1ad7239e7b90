// SPDX-License-Identifier: Apache-2.0
/*
 * Compressed instructions are expanded to the 32-bit ones that they stand for (rv32_expand.c), so
 * that each operation is carried out in one place.
 */
#include <string.h>

#include "rv32_priv.h"

#define MISA	  0x40001104u /* RV32, I, M, C */
#define NO_TRAP	  UINT32_MAX
#define MEPC_MASK 0xfffffffeu

enum {
	CSR_MSTATUS = 0x300,
	CSR_MISA = 0x301,
	CSR_MIE = 0x304,
	CSR_MTVEC = 0x305,
	CSR_MSTATUSH = 0x310,
	CSR_MSCRATCH = 0x340,
	CSR_MEPC = 0x341,
	CSR_MCAUSE = 0x342,
	CSR_MTVAL = 0x343,
	CSR_MIP = 0x344,
	CSR_MCYCLE = 0xb00,
	CSR_MINSTRET = 0xb02,
	CSR_MCYCLEH = 0xb80,
	CSR_MINSTRETH = 0xb82,
	CSR_MVENDORID = 0xf11,
	CSR_MARCHID = 0xf12,
	CSR_MIMPID = 0xf13,
	CSR_MHARTID = 0xf14,
	CSR_MCONFIGPTR = 0xf15,
};

enum {
	OP_LOAD = 0x03,
	OP_FENCE = 0x0f,
	OP_IMM = 0x13,
	OP_AUIPC = 0x17,
	OP_STORE = 0x23,
	OP_REG = 0x33,
	OP_LUI = 0x37,
	OP_BRANCH = 0x63,
	OP_JALR = 0x67,
	OP_JAL = 0x6f,
	OP_SYSTEM = 0x73,
};

#define INSN_ECALL  0x00000073u
#define INSN_EBREAK 0x00100073u
#define INSN_MRET   0x30200073u
#define INSN_WFI    0x10500073u

/* The instruction under way. */
struct step {
	uint32_t insn; /* 32 bits, expanded */
	uint32_t raw; /* as fetched; mtval of an illegal one */
	uint32_t pc;
	uint32_t next; /* pc of the one behind it, then of the one to run next */
	uint32_t cause; /* NO_TRAP, or why it did not complete */
	uint32_t value; /* mtval */
	bool sleeps;
};

static uint32_t rd(uint32_t insn)
{
	return insn >> 7 & 31;
}

static uint32_t funct3(uint32_t insn)
{
	return insn >> 12 & 7;
}

static uint32_t rs1(uint32_t insn)
{
	return insn >> 15 & 31;
}

static uint32_t rs2(uint32_t insn)
{
	return insn >> 20 & 31;
}

static uint32_t funct7(uint32_t insn)
{
	return insn >> 25;
}

/* The upper bits of a value, sign-extended: defined for negative numbers by shifting as unsigned. */
static uint32_t sra(uint32_t v, unsigned int n)
{
	return v >> n | (v >> 31 && n ? ~(UINT32_MAX >> n) : 0);
}

static uint32_t imm_i(uint32_t insn)
{
	return sra(insn, 20);
}

static uint32_t imm_s(uint32_t insn)
{
	return (sra(insn, 20) & ~31u) | rd(insn);
}

static uint32_t imm_b(uint32_t insn)
{
	return (sra(insn, 19) & 0xfffff000u) | (insn << 4 & 0x800) | (insn >> 20 & 0x7e0) |
	       (insn >> 7 & 0x1e);
}

static uint32_t imm_j(uint32_t insn)
{
	return (sra(insn, 11) & 0xfff00000u) | (insn & 0xff000) | (insn >> 9 & 0x800) |
	       (insn >> 20 & 0x7fe);
}

static void fails(struct step *s, uint32_t cause, uint32_t value)
{
	s->cause = cause;
	s->value = value;
}

static void illegal(struct step *s)
{
	fails(s, RV32_ILLEGAL, s->raw);
}

static void set(struct rv32 *cpu, uint32_t reg, uint32_t value)
{
	if (reg)
		cpu->x[reg] = value;
}

/* Where an address lies in memory, NULL: not there. */
static uint8_t *in_memory(struct rv32 *cpu, uint32_t addr, unsigned int size)
{
	uint32_t at = addr - cpu->memory_base;

	return at < cpu->memory_bytes && cpu->memory_bytes - at >= size ? cpu->memory + at : NULL;
}

/* --- control and status registers --------------------------------------------- */

static uint32_t mip(const struct rv32 *cpu)
{
	return cpu->external ? 1u << RV32_IRQ_EXTERNAL : 0;
}

/* False: there is no such register. */
static bool csr_read(const struct rv32 *cpu, uint32_t csr, uint32_t *value)
{
	switch (csr) {
	case CSR_MSTATUS:
		*value = cpu->mstatus | RV32_MSTATUS_MPP;
		return true;
	case CSR_MISA:
		*value = MISA;
		return true;
	case CSR_MIE:
		*value = cpu->mie;
		return true;
	case CSR_MTVEC:
		*value = cpu->mtvec;
		return true;
	case CSR_MSCRATCH:
		*value = cpu->mscratch;
		return true;
	case CSR_MEPC:
		*value = cpu->mepc;
		return true;
	case CSR_MCAUSE:
		*value = cpu->mcause;
		return true;
	case CSR_MTVAL:
		*value = cpu->mtval;
		return true;
	case CSR_MIP:
		*value = mip(cpu);
		return true;
	case CSR_MCYCLE:
		*value = (uint32_t)cpu->mcycle;
		return true;
	case CSR_MCYCLEH:
		*value = (uint32_t)(cpu->mcycle >> 32);
		return true;
	case CSR_MINSTRET:
		*value = (uint32_t)cpu->minstret;
		return true;
	case CSR_MINSTRETH:
		*value = (uint32_t)(cpu->minstret >> 32);
		return true;
	case CSR_MSTATUSH:
	case CSR_MVENDORID:
	case CSR_MARCHID:
	case CSR_MIMPID:
	case CSR_MHARTID:
	case CSR_MCONFIGPTR:
		*value = 0;
		return true;
	default:
		return false;
	}
}

/* Fields that are not writable keep their value. The caller has checked that the register is one. */
static void csr_write(struct rv32 *cpu, uint32_t csr, uint32_t value)
{
	switch (csr) {
	case CSR_MSTATUS:
		cpu->mstatus = value & (RV32_MSTATUS_MIE | RV32_MSTATUS_MPIE);
		break;
	case CSR_MIE:
		cpu->mie = value & 1u << RV32_IRQ_EXTERNAL;
		break;
	case CSR_MTVEC:
		cpu->mtvec = value & ~3u; /* direct mode alone */
		break;
	case CSR_MSCRATCH:
		cpu->mscratch = value;
		break;
	case CSR_MEPC:
		cpu->mepc = value & MEPC_MASK;
		break;
	case CSR_MCAUSE:
		cpu->mcause = value;
		break;
	case CSR_MTVAL:
		cpu->mtval = value;
		break;
	case CSR_MCYCLE:
		cpu->mcycle = (cpu->mcycle & ~(uint64_t)UINT32_MAX) | value;
		break;
	case CSR_MCYCLEH:
		cpu->mcycle = (uint32_t)cpu->mcycle | (uint64_t)value << 32;
		break;
	case CSR_MINSTRET:
		cpu->minstret = (cpu->minstret & ~(uint64_t)UINT32_MAX) | value;
		break;
	case CSR_MINSTRETH:
		cpu->minstret = (uint32_t)cpu->minstret | (uint64_t)value << 32;
		break;
	default:
		break;
	}
}

static void exec_csr(struct rv32 *cpu, struct step *s)
{
	const uint32_t csr = s->insn >> 20, kind = funct3(s->insn) & 3;
	const uint32_t field = rs1(s->insn);
	const uint32_t operand = funct3(s->insn) & 4 ? field : cpu->x[field];
	const bool writes = kind == 1 || field;
	uint32_t old;

	/* The upper two bits of the number say that a register is read-only. */
	if (!csr_read(cpu, csr, &old) || (writes && csr >> 10 == 3)) {
		illegal(s);
		return;
	}
	if (writes)
		csr_write(cpu, csr,
			  kind == 1 ? operand :
			  kind == 2 ? old | operand :
				      old & ~operand);
	set(cpu, rd(s->insn), old);
}

/* --- operations --------------------------------------------------------------- */

static uint32_t mulh(uint32_t a, uint32_t b, bool a_signed, bool b_signed)
{
	int64_t wide_a = a_signed ? (int32_t)a : (int64_t)a;
	int64_t wide_b = b_signed ? (int32_t)b : (int64_t)b;

	/* As unsigned the product cannot overflow, and its bits are the same. */
	return (uint32_t)((uint64_t)wide_a * (uint64_t)wide_b >> 32);
}

static uint32_t div_signed(uint32_t a, uint32_t b)
{
	if (!b)
		return UINT32_MAX;
	if (a == 0x80000000u && b == UINT32_MAX)
		return a;
	return (uint32_t)((int32_t)a / (int32_t)b);
}

static uint32_t rem_signed(uint32_t a, uint32_t b)
{
	if (!b)
		return a;
	if (a == 0x80000000u && b == UINT32_MAX)
		return 0;
	return (uint32_t)((int32_t)a % (int32_t)b);
}

static uint32_t muldiv(uint32_t op, uint32_t a, uint32_t b)
{
	switch (op) {
	case 0:
		return a * b;
	case 1:
		return mulh(a, b, true, true);
	case 2:
		return mulh(a, b, true, false);
	case 3:
		return mulh(a, b, false, false);
	case 4:
		return div_signed(a, b);
	case 5:
		return b ? a / b : UINT32_MAX;
	case 6:
		return rem_signed(a, b);
	default:
		return b ? a % b : a;
	}
}

/* funct3 of OP and OP-IMM; alt is bit 30: subtract, or shift arithmetically. */
static uint32_t alu(uint32_t op, bool alt, uint32_t a, uint32_t b)
{
	switch (op) {
	case 0:
		return alt ? a - b : a + b;
	case 1:
		return a << (b & 31);
	case 2:
		return (int32_t)a < (int32_t)b;
	case 3:
		return a < b;
	case 4:
		return a ^ b;
	case 5:
		return alt ? sra(a, b & 31) : a >> (b & 31);
	case 6:
		return a | b;
	default:
		return a & b;
	}
}

static void exec_op(struct rv32 *cpu, struct step *s)
{
	const uint32_t op = funct3(s->insn), f7 = funct7(s->insn);
	const uint32_t a = cpu->x[rs1(s->insn)], b = cpu->x[rs2(s->insn)];

	if (f7 == 1)
		set(cpu, rd(s->insn), muldiv(op, a, b));
	else if (f7 == 0 || (f7 == 0x20 && (op == 0 || op == 5)))
		set(cpu, rd(s->insn), alu(op, f7, a, b));
	else
		illegal(s);
}

static void exec_op_imm(struct rv32 *cpu, struct step *s)
{
	const uint32_t op = funct3(s->insn), f7 = funct7(s->insn);
	const bool alt = op == 5 && f7 == 0x20;

	if ((op == 1 && f7) || (op == 5 && f7 && !alt)) {
		illegal(s);
		return;
	}
	set(cpu, rd(s->insn), alu(op, alt, cpu->x[rs1(s->insn)], imm_i(s->insn)));
}

static void exec_load(struct rv32 *cpu, struct step *s)
{
	const uint32_t op = funct3(s->insn);
	const uint32_t addr = cpu->x[rs1(s->insn)] + imm_i(s->insn);
	const unsigned int size = 1u << (op & 3);
	const uint8_t *p;
	uint32_t value = 0;

	if (op == 3 || op > 5) {
		illegal(s);
		return;
	}
	if (addr % size) {
		fails(s, RV32_LOAD_MISALIGNED, addr);
		return;
	}
	p = in_memory(cpu, addr, size);
	if (p) {
		memcpy(&value, p, size);
	} else if (!cpu->bus.load(cpu->bus.user, addr, size, &value)) {
		fails(s, RV32_LOAD_FAULT, addr);
		return;
	}
	if (op == 0)
		value = sra(value << 24, 24);
	else if (op == 1)
		value = sra(value << 16, 16);
	set(cpu, rd(s->insn), value);
}

static void exec_store(struct rv32 *cpu, struct step *s)
{
	const uint32_t op = funct3(s->insn);
	const uint32_t addr = cpu->x[rs1(s->insn)] + imm_s(s->insn);
	const unsigned int size = 1u << (op & 3);
	const uint32_t value = cpu->x[rs2(s->insn)];
	uint8_t *p;

	if (op > 2) {
		illegal(s);
		return;
	}
	if (addr % size) {
		fails(s, RV32_STORE_MISALIGNED, addr);
		return;
	}
	p = in_memory(cpu, addr, size);
	if (p)
		memcpy(p, &value, size);
	else if (!cpu->bus.store(cpu->bus.user, addr, size,
				 size == 4 ? value : value & ((1u << size * 8) - 1)))
		fails(s, RV32_STORE_FAULT, addr);
}

static void exec_branch(struct rv32 *cpu, struct step *s)
{
	const uint32_t a = cpu->x[rs1(s->insn)], b = cpu->x[rs2(s->insn)];
	const uint32_t op = funct3(s->insn);
	bool taken;

	switch (op & 6) {
	case 0:
		taken = a == b;
		break;
	case 4:
		taken = (int32_t)a < (int32_t)b;
		break;
	case 6:
		taken = a < b;
		break;
	default:
		illegal(s);
		return;
	}
	if (taken != (op & 1))
		s->next = s->pc + imm_b(s->insn);
}

static void exec_jump(struct rv32 *cpu, struct step *s)
{
	const bool indirect = (s->insn & 0x7f) == OP_JALR;
	uint32_t to;

	if (indirect && funct3(s->insn)) {
		illegal(s);
		return;
	}
	to = indirect ? (cpu->x[rs1(s->insn)] + imm_i(s->insn)) & ~1u : s->pc + imm_j(s->insn);
	set(cpu, rd(s->insn), s->next);
	s->next = to;
}

static void exec_mret(struct rv32 *cpu, struct step *s)
{
	cpu->mstatus = (cpu->mstatus & RV32_MSTATUS_MPIE ? RV32_MSTATUS_MIE : 0) |
		       RV32_MSTATUS_MPIE;
	s->next = cpu->mepc;
}

static void exec_system(struct rv32 *cpu, struct step *s)
{
	if (funct3(s->insn) & 3)
		exec_csr(cpu, s);
	else if (s->insn == INSN_ECALL)
		fails(s, RV32_ECALL_M, 0);
	else if (s->insn == INSN_EBREAK)
		fails(s, RV32_BREAKPOINT, s->pc);
	else if (s->insn == INSN_MRET)
		exec_mret(cpu, s);
	else if (s->insn == INSN_WFI)
		s->sleeps = true;
	else
		illegal(s);
}

static void execute(struct rv32 *cpu, struct step *s)
{
	switch (s->insn & 0x7f) {
	case OP_LOAD:
		exec_load(cpu, s);
		break;
	case OP_FENCE: /* one hart, and memory that no cache keeps from it */
		if (funct3(s->insn) > 1)
			illegal(s);
		break;
	case OP_IMM:
		exec_op_imm(cpu, s);
		break;
	case OP_AUIPC:
		set(cpu, rd(s->insn), s->pc + (s->insn & 0xfffff000u));
		break;
	case OP_STORE:
		exec_store(cpu, s);
		break;
	case OP_REG:
		exec_op(cpu, s);
		break;
	case OP_LUI:
		set(cpu, rd(s->insn), s->insn & 0xfffff000u);
		break;
	case OP_BRANCH:
		exec_branch(cpu, s);
		break;
	case OP_JALR:
	case OP_JAL:
		exec_jump(cpu, s);
		break;
	case OP_SYSTEM:
		exec_system(cpu, s);
		break;
	default:
		illegal(s);
		break;
	}
}

/* --- one after the other ------------------------------------------------------ */

static void trap(struct rv32 *cpu, uint32_t cause, uint32_t value, uint32_t pc)
{
	cpu->mepc = pc;
	cpu->mcause = cause;
	cpu->mtval = value;
	cpu->mstatus = cpu->mstatus & RV32_MSTATUS_MIE ? RV32_MSTATUS_MPIE : 0;
	cpu->pc = cpu->mtvec;
}

/* False: nothing to fetch at pc. */
static bool fetch(struct rv32 *cpu, struct step *s)
{
	const uint8_t *p = in_memory(cpu, s->pc, 2);
	uint16_t half[2] = { 0 };

	s->cause = NO_TRAP;
	s->sleeps = false;
	if (!p) {
		fails(s, RV32_FETCH_FAULT, s->pc);
		return false;
	}
	memcpy(&half[0], p, 2);
	s->raw = half[0];
	s->next = s->pc + 2;
	if ((half[0] & 3) != 3) {
		s->insn = rv32_expand(half[0]);
		return true;
	}
	p = in_memory(cpu, s->pc, 4);
	if (!p) {
		fails(s, RV32_FETCH_FAULT, s->pc + 2);
		return false;
	}
	memcpy(&half[1], p + 2, 2);
	s->raw |= (uint32_t)half[1] << 16;
	s->insn = s->raw;
	s->next = s->pc + 4;
	return true;
}

static bool wakes(const struct rv32 *cpu)
{
	return mip(cpu) & cpu->mie;
}

enum rv32_end rv32_run(struct rv32 *cpu, uint64_t budget)
{
	struct step s;

	cpu->stop = false;
	for (; budget; budget--) {
		cpu->mcycle++;
		if (wakes(cpu) && cpu->mstatus & RV32_MSTATUS_MIE) {
			trap(cpu, RV32_INTERRUPT | RV32_IRQ_EXTERNAL, 0, cpu->pc);
			continue;
		}
		s.pc = cpu->pc;
		if (fetch(cpu, &s))
			execute(cpu, &s);
		if (s.cause != NO_TRAP) {
			trap(cpu, s.cause, s.value, s.pc);
			continue;
		}
		/* The bus may have put the hart elsewhere, by a reset for one. */
		if (cpu->stop)
			return RV32_STOPPED;
		cpu->pc = s.next;
		cpu->minstret++;
		if (s.sleeps && !wakes(cpu))
			return RV32_SLEEPS;
	}
	return RV32_RAN_OUT;
}

void rv32_reset(struct rv32 *cpu, uint32_t pc)
{
	const struct rv32_bus bus = cpu->bus;
	uint8_t *memory = cpu->memory;
	const uint32_t base = cpu->memory_base, bytes = cpu->memory_bytes;

	*cpu = (struct rv32){
		.bus = bus,
		.memory = memory,
		.memory_base = base,
		.memory_bytes = bytes,
		.pc = pc,
	};
}
