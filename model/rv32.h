/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An RV32IMC_Zicsr hart with machine mode alone, after the RISC-V unprivileged and privileged
 * specifications: the management core. Fetches come from its memory, which has no side effects;
 * all other addresses are its bus. Misaligned loads and stores trap. Deterministic: an instruction
 * is a cycle, and nothing here looks at a clock.
 */
#ifndef NM_RV32_H
#define NM_RV32_H

#include <stdbool.h>
#include <stdint.h>

/* mcause of exceptions. */
#define RV32_FETCH_MISALIGNED 0u
#define RV32_FETCH_FAULT      1u
#define RV32_ILLEGAL	      2u
#define RV32_BREAKPOINT	      3u
#define RV32_LOAD_MISALIGNED  4u
#define RV32_LOAD_FAULT	      5u
#define RV32_STORE_MISALIGNED 6u
#define RV32_STORE_FAULT      7u
#define RV32_ECALL_M	      11u

/* Bits of mie and mip; with RV32_INTERRUPT also mcause. The bus drives the one line that there is. */
#define RV32_IRQ_EXTERNAL 11u
#define RV32_INTERRUPT	  0x80000000u

#define RV32_MSTATUS_MIE  0x00000008u
#define RV32_MSTATUS_MPIE 0x00000080u
#define RV32_MSTATUS_MPP  0x00001800u /* always machine mode */

/* Addresses outside memory, aligned, size 1, 2 or 4. False: nothing answers there, which traps. */
struct rv32_bus {
	void *user;
	bool (*load)(void *user, uint32_t addr, unsigned int size, uint32_t *value);
	bool (*store)(void *user, uint32_t addr, unsigned int size, uint32_t value);
};

struct rv32 {
	struct rv32_bus bus;
	uint8_t *memory;
	uint32_t memory_base; /* multiple of 4, as its size */
	uint32_t memory_bytes;

	uint32_t pc;
	uint32_t x[32];
	uint32_t mstatus, mie, mtvec, mscratch, mepc, mcause, mtval;
	uint64_t mcycle, minstret;
	bool external; /* level of the interrupt line */
	bool stop; /* set by the bus: leave rv32_run() after this instruction */
};

enum rv32_end {
	RV32_SLEEPS, /* in WFI, with no enabled interrupt pending */
	RV32_RAN_OUT, /* of instructions */
	RV32_STOPPED, /* by the bus */
};

/* Everything but bus and memory to its state after a reset, with pc there. */
void rv32_reset(struct rv32 *cpu, uint32_t pc);

/* Runs until one of the ends, for at most budget instructions (a trap counts as one). */
enum rv32_end rv32_run(struct rv32 *cpu, uint64_t budget);

#endif /* NM_RV32_H */
