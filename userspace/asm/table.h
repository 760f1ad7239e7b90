/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text form as data. A line is a mnemonic and operands KEY=VALUE; a value
 * is a row of parts, each a literal and the field that follows it. The printer
 * and the parser both walk these tables and know no field by themselves.
 */
#ifndef NEURON_ASM_TABLE_H
#define NEURON_ASM_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "neuron_isa.h"

struct name {
	const char *text; /* NULL ends a list */
	uint64_t value;
};

enum part_kind {
	PART_NUMBER,
	PART_SIGNED,
	PART_HEX,
	PART_NAMES, /* one of names, or a number */
	PART_FLAGS, /* names of bits and a number, joined by | */
	PART_STRING, /* quoted, NUL padded */
	PART_FIXED, /* has no text: is always value where this pattern is used */
	PART_END, /* ends the row */
};

struct part {
	const char *before;
	uint16_t at, bytes; /* in the operand */
	uint8_t kind;
	bool may_end; /* left out, with all that follow, where all are zero */
	uint64_t value;
	const struct name *names;
};

/* Which lines an operand may stand in. */
#define IN_ALL	   0x001u
#define IN_DMA	   0x002u
#define IN_COMPUTE 0x004u
#define IN_ACT	   0x008u /* a computation whose op0 is a function */
#define IN_ALU	   0x010u /* or an operator */
#define IN_ROWS	   0x020u /* an indirect transfer */
#define IN_SRC1	   0x040u /* a computation that may have src1 */
#define IN_SHUFFLE 0x080u /* or a shuffle in its place */
#define IN_AFFINE  0x100u /* or an affine function */
#define IN_REG	   0x200u /* an instruction on registers */
#define IN_OP1	   0x400u /* a computation with a second operator */
#define IN_ARRAY   0x800u /* or with the parts of the tensor array in place of both */

struct operand {
	const char *key; /* NULL ends a table */
	uint16_t at, bytes;
	uint16_t in;
	const struct part *parts;
};

extern const struct operand asm_inst_operands[];
extern const struct operand asm_slot_operands[];
extern const struct operand asm_header_operands[];

/* IN_* of an instruction. */
static inline unsigned int asm_places(uint32_t opcode)
{
	switch (opcode) {
	case ISA_HALT:
	case ISA_NOP:
		return IN_ALL;
	case ISA_DMA:
		return IN_ALL | IN_DMA;
	case ISA_DMA_GATHER:
	case ISA_DMA_SCATTER:
		return IN_ALL | IN_ROWS;
	case ISA_REG_MOVE:
	case ISA_REG_ALU:
	case ISA_REG_LOAD:
	case ISA_REG_STORE:
	case ISA_BRANCH:
		return IN_ALL | IN_REG;
	case ISA_ACTIVATION:
		return IN_ALL | IN_COMPUTE | IN_ACT | IN_OP1 | IN_SRC1;
	case ISA_STREAM_SHUFFLE:
		return IN_ALL | IN_COMPUTE | IN_ALU | IN_OP1 | IN_SHUFFLE;
	case ISA_AFFINE_SELECT:
		return IN_ALL | IN_COMPUTE | IN_ALU | IN_OP1 | IN_AFFINE;
	case ISA_LOAD_STATIONARY:
	case ISA_MATMUL:
		return IN_ALL | IN_COMPUTE | IN_ARRAY | IN_SRC1;
	default:
		return IN_ALL | IN_COMPUTE | IN_ALU | IN_OP1 | IN_SRC1;
	}
}

static inline uint64_t asm_get(const uint8_t *at, unsigned int bytes)
{
	uint64_t value = 0;

	while (bytes--)
		value = value << 8 | at[bytes];
	return value;
}

static inline void asm_put(uint8_t *at, unsigned int bytes, uint64_t value)
{
	for (unsigned int i = 0; i < bytes; i++, value >>= 8)
		at[i] = (uint8_t)value;
}

#endif /* NEURON_ASM_TABLE_H */
