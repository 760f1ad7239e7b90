/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registers of a sequencer: instructions on them, and operands that they move. Those of sim.c and of
 * the replay in checking mode.
 */
#ifndef NM_REGISTERS_H
#define NM_REGISTERS_H

#include "exec.h"

/* The instruction behind one at pc: REG_MOVE, REG_ALU and BRANCH are done here. */
uint32_t nm_reg_step(const struct nm_inst *inst, uint32_t pc, int32_t *reg);
/* REG_LOAD and REG_STORE, at a place that nm_reg_place() gave. */
void nm_reg_access(struct nm_exec *x, const struct nm_inst *inst, const struct nm_side *place,
		   int32_t *reg);

/* Semaphore value that wait i of an instruction asks for; below 0: any. */
static inline int64_t nm_wait_value(const struct nm_inst *inst, unsigned int i, const int32_t *reg)
{
	return (int64_t)inst->wait_value[i] + reg[inst->wait_reg[i]];
}

/* An instruction whose operands are where registers moved them: its body is a copy. */
struct nm_moved_inst {
	struct nm_inst inst;
	union {
		struct nm_compute compute;
		struct nm_dma dma;
	};
};

/* False: an operand is outside, as status, slot, value and limit of fault say. */
bool nm_move_operands(const struct nm_inst *inst, const int32_t *reg, struct nm_moved_inst *out,
		      struct nm_fault *fault);
/* The same of the element that REG_LOAD or REG_STORE is about. */
bool nm_reg_place(const struct nm_reg *r, const int32_t *reg, struct nm_side *place,
		  struct nm_fault *fault);

#endif /* NM_REGISTERS_H */
