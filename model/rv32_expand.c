// SPDX-License-Identifier: Apache-2.0
/* Compressed instructions of RV32 without floating point, as the 32-bit ones that they stand for. */
#include "rv32_priv.h"

#define ILLEGAL 0u
#define SP	2u

static uint32_t bits(uint32_t v, unsigned int hi, unsigned int lo)
{
	return v >> lo & ((1u << (hi - lo + 1)) - 1);
}

/* Bit from of v at place to. */
static uint32_t put(uint32_t v, unsigned int from, unsigned int to)
{
	return (v >> from & 1) << to;
}

static uint32_t sign(uint32_t v, unsigned int width)
{
	return v >> (width - 1) & 1 ? v | ~((1u << width) - 1) : v;
}

static uint32_t type_r(uint32_t f7, uint32_t rs2, uint32_t rs1, uint32_t f3, uint32_t rd)
{
	return f7 << 25 | rs2 << 20 | rs1 << 15 | f3 << 12 | rd << 7 | 0x33;
}

static uint32_t type_i(uint32_t imm, uint32_t rs1, uint32_t f3, uint32_t rd, uint32_t op)
{
	return imm << 20 | rs1 << 15 | f3 << 12 | rd << 7 | op;
}

static uint32_t addi(uint32_t rd, uint32_t rs1, uint32_t imm)
{
	return type_i(imm, rs1, 0, rd, 0x13);
}

static uint32_t load_word(uint32_t rd, uint32_t rs1, uint32_t imm)
{
	return type_i(imm, rs1, 2, rd, 0x03);
}

static uint32_t store_word(uint32_t rs2, uint32_t rs1, uint32_t imm)
{
	return bits(imm, 11, 5) << 25 | rs2 << 20 | rs1 << 15 | 2u << 12 | bits(imm, 4, 0) << 7 |
	       0x23;
}

static uint32_t jump(uint32_t rd, uint32_t insn)
{
	const uint32_t to = sign(put(insn, 12, 11) | put(insn, 11, 4) | bits(insn, 10, 9) << 8 |
					 put(insn, 8, 10) | put(insn, 7, 6) | put(insn, 6, 7) |
					 bits(insn, 5, 3) << 1 | put(insn, 2, 5),
				 12);

	return put(to, 20, 31) | bits(to, 10, 1) << 21 | put(to, 11, 20) | bits(to, 19, 12) << 12 |
	       rd << 7 | 0x6f;
}

/* Of a register against zero; f3 0: taken when equal, 1: when not. */
static uint32_t branch(uint32_t rs1, uint32_t f3, uint32_t insn)
{
	const uint32_t to =
		sign(put(insn, 12, 8) | bits(insn, 11, 10) << 3 | bits(insn, 6, 5) << 6 |
			     bits(insn, 4, 3) << 1 | put(insn, 2, 5),
		     9);

	return put(to, 12, 31) | bits(to, 10, 5) << 25 | rs1 << 15 | f3 << 12 |
	       bits(to, 4, 1) << 8 | put(to, 11, 7) | 0x63;
}

/* Registers in three bits: x8 to x15. */
static uint32_t short_reg(uint32_t insn, unsigned int lo)
{
	return 8 + bits(insn, lo + 2, lo);
}

static uint32_t imm6(uint32_t insn)
{
	return sign(put(insn, 12, 5) | bits(insn, 6, 2), 6);
}

static uint32_t quadrant_0(uint32_t insn)
{
	const uint32_t word = bits(insn, 12, 10) << 3 | put(insn, 6, 2) | put(insn, 5, 6);
	const uint32_t frame = bits(insn, 12, 11) << 4 | bits(insn, 10, 7) << 6 | put(insn, 6, 2) |
			       put(insn, 5, 3);

	switch (insn >> 13) {
	case 0:
		return frame ? addi(short_reg(insn, 2), SP, frame) : ILLEGAL;
	case 2:
		return load_word(short_reg(insn, 2), short_reg(insn, 7), word);
	case 6:
		return store_word(short_reg(insn, 2), short_reg(insn, 7), word);
	default:
		return ILLEGAL;
	}
}

/* Shifts and logic on one register, and on two. */
static uint32_t short_alu(uint32_t insn)
{
	static const uint8_t f3[4] = { 0, 4, 6, 7 }; /* sub, xor, or, and */
	const uint32_t rd = short_reg(insn, 7), shift = bits(insn, 6, 2);
	const uint32_t which = bits(insn, 6, 5);

	if (bits(insn, 11, 10) == 2)
		return type_i(imm6(insn), rd, 7, rd, 0x13);
	if (insn >> 12 & 1) /* shifts of 64-bit machines, reserved for two registers */
		return ILLEGAL;
	if (bits(insn, 11, 10) == 3)
		return type_r(which ? 0 : 0x20, short_reg(insn, 2), rd, f3[which], rd);
	return type_i((bits(insn, 11, 10) ? 0x400 : 0) | shift, rd, 5, rd, 0x13);
}

static uint32_t lui_or_addi16sp(uint32_t insn)
{
	const uint32_t rd = bits(insn, 11, 7), upper = imm6(insn);
	const uint32_t frame = sign(put(insn, 12, 9) | put(insn, 6, 4) | put(insn, 5, 6) |
					    bits(insn, 4, 3) << 7 | put(insn, 2, 5),
				    10);

	if (!upper)
		return ILLEGAL;
	return rd == SP ? addi(SP, SP, frame) : upper << 12 | rd << 7 | 0x37;
}

static uint32_t quadrant_1(uint32_t insn)
{
	const uint32_t rd = bits(insn, 11, 7);

	switch (insn >> 13) {
	case 0:
		return addi(rd, rd, imm6(insn));
	case 1:
		return jump(1, insn);
	case 2:
		return addi(rd, 0, imm6(insn));
	case 3:
		return lui_or_addi16sp(insn);
	case 4:
		return short_alu(insn);
	case 5:
		return jump(0, insn);
	default:
		return branch(short_reg(insn, 7), insn >> 13 & 1, insn);
	}
}

static uint32_t jump_move_add(uint32_t insn)
{
	const uint32_t rd = bits(insn, 11, 7), rs2 = bits(insn, 6, 2);
	const uint32_t link = insn >> 12 & 1;

	if (rs2)
		return type_r(0, rs2, link ? rd : 0, 0, rd);
	if (rd)
		return type_i(0, rd, 0, link, 0x67);
	return link ? 0x00100073u : ILLEGAL; /* ebreak */
}

static uint32_t quadrant_2(uint32_t insn)
{
	const uint32_t rd = bits(insn, 11, 7);
	const uint32_t from = put(insn, 12, 5) | bits(insn, 6, 4) << 2 | bits(insn, 3, 2) << 6;
	const uint32_t to = bits(insn, 12, 9) << 2 | bits(insn, 8, 7) << 6;

	switch (insn >> 13) {
	case 0:
		return insn >> 12 & 1 ? ILLEGAL : type_i(bits(insn, 6, 2), rd, 1, rd, 0x13);
	case 2:
		return rd ? load_word(rd, SP, from) : ILLEGAL;
	case 4:
		return jump_move_add(insn);
	case 6:
		return store_word(bits(insn, 6, 2), SP, to);
	default:
		return ILLEGAL;
	}
}

uint32_t rv32_expand(uint16_t insn)
{
	switch (insn & 3) {
	case 0:
		return quadrant_0(insn);
	case 1:
		return quadrant_1(insn);
	default:
		return quadrant_2(insn);
	}
}
