// SPDX-License-Identifier: Apache-2.0
#include "registers.h"

#include <string.h>

/* --- instructions ---------------------------------------------------------------------- */

/* As the engines compute in 32-bit integers. */
static int32_t alu(unsigned int op, int32_t a, int32_t b)
{
	int32_t result;

	nm_rows()->tt[ISA_CT_I32][op](&result, &a, &b, 1);
	return result;
}

uint32_t nm_reg_step(const struct nm_inst *inst, uint32_t pc, int32_t *reg)
{
	const struct nm_reg *r = inst->reg;
	int32_t a, b;

	if (!isa_is_reg(inst->opcode))
		return pc + 1;
	a = reg[r->a];
	b = r->immediate ? r->imm : reg[r->b];
	switch (inst->opcode) {
	case ISA_REG_MOVE:
		reg[r->dst] = b;
		break;
	case ISA_REG_ALU:
		reg[r->dst] = alu(r->op, a, b);
		break;
	case ISA_BRANCH:
		return alu(r->op, a, b) ? r->target : pc + 1;
	}
	return pc + 1;
}

void nm_reg_access(struct nm_exec *x, const struct nm_inst *inst, const struct nm_side *place,
		   int32_t *reg)
{
	const struct nm_reg *r = inst->reg;
	uint8_t *at = nm_side_ptr(x, place);
	uint32_t element; /* aligned, as memory need not be */

	if (inst->opcode == ISA_REG_LOAD) {
		memcpy(&element, at, r->bytes);
		x->rows->load[ISA_CT_I32][r->dtype](&reg[r->dst], &element, 0, 1);
		return;
	}
	x->rows->store[ISA_CT_I32][r->dtype](&element, 0, &reg[r->a], 1);
	memcpy(at, &element, r->bytes);
}

/* --- operands ---------------------------------------------------------------------------- */

/* Whether what an operand touches, moved by some bytes, is inside. */
static bool fits(const struct nm_reach *r, int64_t bytes, uint16_t status, uint16_t slot,
		 struct nm_fault *fault)
{
	int64_t low = r->low + bytes, high = r->high + bytes;

	if (low >= 0 && (uint64_t)high <= r->limit)
		return true;
	fault->status = status;
	fault->slot = slot;
	fault->value = (uint64_t)(low < 0 ? low : high);
	fault->limit = low < 0 && status == EXI_FAULT_TILE_BOUNDS ? 0 : r->limit;
	return false;
}

static bool move_operand(struct nm_compute *c, const struct nm_shift *s, const int32_t *reg,
			 struct nm_fault *fault)
{
	struct nm_operand *o = (struct nm_operand *)((uint8_t *)c + s->operand);
	int64_t bytes = (int64_t)reg[s->reg] * s->bytes;
	struct nm_reach bank = s->reach;

	if (!fits(&s->reach, bytes, EXI_FAULT_TILE_BOUNDS, NM_SLOT_NONE, fault))
		return false;
	bank.limit = ((uint64_t)(bank.low + bytes) / ISA_PSUM_BANK_BYTES + 1) * ISA_PSUM_BANK_BYTES;
	if (s->bank && !fits(&bank, bytes, EXI_FAULT_TILE_BOUNDS, NM_SLOT_NONE, fault))
		return false;
	o->offset = (uint32_t)((int64_t)o->offset + bytes);
	return true;
}

static bool move_side(struct nm_side *side, unsigned int elem_bytes, const int32_t *reg,
		      struct nm_fault *fault)
{
	const bool slot = side->space == ISA_SPACE_SLOT;
	int64_t bytes = (int64_t)reg[side->shift] * elem_bytes;

	side->offset += bytes;
	return fits(&side->reach, bytes, slot ? EXI_FAULT_SLOT_BOUNDS : EXI_FAULT_TILE_BOUNDS,
		    slot ? side->slot : NM_SLOT_NONE, fault);
}

bool nm_move_operands(const struct nm_inst *inst, const int32_t *reg, struct nm_moved_inst *out,
		      struct nm_fault *fault)
{
	const struct nm_shifts *s;

	out->inst = *inst;
	if (isa_is_dma(inst->opcode)) {
		out->dma = *inst->dma;
		out->inst.dma = &out->dma;
		return move_side(&out->dma.dst, out->dma.elem_bytes, reg, fault) &&
		       move_side(&out->dma.src, out->dma.elem_bytes, reg, fault);
	}
	out->compute = *inst->compute;
	out->inst.compute = &out->compute;
	s = out->compute.shifts;
	for (unsigned int i = 0; i < s->n; i++)
		if (!move_operand(&out->compute, &s->shift[i], reg, fault))
			return false;
	return true;
}

bool nm_reg_place(const struct nm_reg *r, const int32_t *reg, struct nm_side *place,
		  struct nm_fault *fault)
{
	*place = r->place;
	return move_side(place, r->bytes, reg, fault);
}
