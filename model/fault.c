// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stdio.h>

#include "core_priv.h"

/* The texts of docs/execution-interface.md. */
static const char *const texts[EXI_FAULTS] = {
	[EXI_OK] = "completed",
	[EXI_FAULT_BAD_QUEUE] = "queue set-up or launch entry malformed",
	[EXI_FAULT_BAD_PROGRAM] = "program image malformed",
	[EXI_FAULT_BAD_OPCODE] = "opcode not known or not of this engine",
	[EXI_FAULT_BAD_OPERAND] = "instruction field outside its range",
	[EXI_FAULT_TILE_BOUNDS] = "operand leaves SBUF, PSUM or its PSUM bank",
	[EXI_FAULT_SLOT_INDEX] = "no such slot",
	[EXI_FAULT_SLOT_BOUNDS] = "transfer leaves its slot",
	[EXI_FAULT_SLOT_RIGHTS] = "slot without the right to do this",
	[EXI_FAULT_DEADLOCK] = "all engines wait for each other",
	[EXI_FAULT_SEM_OVERFLOW] = "semaphore above its maximum",
	[EXI_FAULT_BUS] = "address does not answer",
	[EXI_FAULT_ABORTED] = "aborted",
	[EXI_FAULT_ECC] = "uncorrected memory error",
	[EXI_FAULT_RACE] = "race: nothing orders two accesses to the same bytes",
	[EXI_FAULT_UNINITIALISED] = "read of bytes that nothing has written",
	[EXI_FAULT_SEM_AMBIGUOUS] = "wait that other updates than those meant could end",
	[EXI_FAULT_PSUM_NO_START] = "matmul adds to a sum that this launch has not started",
	[EXI_FAULT_PSUM_EARLY_READ] = "matmul adds to a sum that was read already",
	[EXI_FAULT_PSUM_MIXED] = "matmul adds to several sums, or to what is none",
};

const char *nm_fault_text(unsigned int status)
{
	return status < EXI_FAULTS ? texts[status] : "unknown status";
}

void nm_core_log(struct nm_core *core, int level, const char *fmt, ...)
{
	char text[256];
	va_list ap;
	int n;

	n = snprintf(text, sizeof(text), "core %u: ", core->index);
	va_start(ap, fmt);
	vsnprintf(text + n, sizeof(text) - (size_t)n, fmt, ap);
	va_end(ap);
	core->bus.log(core->bus.dev, level, text);
}
