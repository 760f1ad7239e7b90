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
