// SPDX-License-Identifier: Apache-2.0
/* The one place where errno and completion status become NRT_* and sentences. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "neuron_isa.h"
#include "neuron_queue.h"
#include "nrti.h"

static _Thread_local char thread_text[NRTI_ERROR_BYTES] = "no error";

const char *nrtx_error_text(void)
{
	return thread_text;
}

static void keep(NRT_STATUS status, const char *text)
{
	snprintf(thread_text, sizeof(thread_text), "%s", text);
	nrti_log(NRTI_LOG_DEBUG, "%s: %s", nrt_get_status_as_str(status), text);
}

NRT_STATUS nrti_error(NRT_STATUS status, const char *fmt, ...)
{
	char text[NRTI_ERROR_BYTES];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	keep(status, text);
	return status;
}

static const struct {
	int error;
	NRT_STATUS status;
	const char *meaning;
} errnos[] = {
	{ EINVAL, NRT_INVALID, "the device refused an argument" },
	{ ENOENT, NRT_INVALID_HANDLE, "the device does not know the handle" },
	{ ENOMEM, NRT_FAIL_HOST_MEM_ALLOC, "host memory is short" },
	{ ENOSPC, NRT_RESOURCE, "device memory or queues are used up" },
	{ ENOEXEC, NRT_INVALID, "the program image is malformed" },
	{ EOPNOTSUPP, NRT_UNSUPPORTED_NEFF_VERSION,
	  "the program is for another version or generation of core" },
	{ E2BIG, NRT_INVALID, "above a limit of the device" },
	{ EACCES, NRT_INVALID, "not permitted for this user" },
	{ EPERM, NRT_INVALID, "not permitted for this user" },
	{ EIO, NRT_EXEC_COMPLETED_WITH_ERR, "the context is dead" },
	{ ETIME, NRT_TIMEOUT, "time-out" },
	{ ENODEV, NRT_HW_ERROR, "the device failed or is gone; restart the process" },
};

NRT_STATUS nrti_errno(int error, const char *fmt, ...)
{
	NRT_STATUS status = NRT_FAILURE;
	const char *meaning = strerror(-error);
	char text[NRTI_ERROR_BYTES];
	va_list args;
	int n;

	for (size_t i = 0; i < sizeof(errnos) / sizeof(errnos[0]); i++) {
		if (errnos[i].error == -error) {
			status = errnos[i].status;
			meaning = errnos[i].meaning;
		}
	}
	va_start(args, fmt);
	n = vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (n >= 0 && (size_t)n < sizeof(text))
		snprintf(text + n, sizeof(text) - (size_t)n, ": %s (errno %d)", meaning, -error);
	keep(status, text);
	return status;
}

/* --- faults ------------------------------------------------------------------------ */

static const char *engine_name(uint32_t engine)
{
	const char *name = isa_engine_name(engine);

	return name ? name : "";
}

static const char *opcode_name(uint32_t opcode)
{
	const char *name = isa_opcode_name(opcode);

	return name ? name : "unknown opcode";
}

static const struct {
	NRT_STATUS status;
	const char *hint;
} faults[EXI_FAULTS] = {
	[EXI_OK] = { NRT_FAILURE, "" },
	[EXI_FAULT_BAD_QUEUE] = { NRT_HW_ERROR, "report this as a defect of the driver" },
	[EXI_FAULT_BAD_PROGRAM] = { NRT_EXEC_COMPLETED_WITH_ERR, "compile it again" },
	[EXI_FAULT_BAD_OPCODE] = { NRT_EXEC_COMPLETED_WITH_ERR, "the compiler and the device do "
								"not agree" },
	[EXI_FAULT_BAD_OPERAND] = { NRT_EXEC_COMPLETED_WITH_ERR, "the compiler and the device do "
								 "not agree" },
	[EXI_FAULT_TILE_BOUNDS] = { NRT_EXEC_OOB, "check the tile's offset, counts and steps" },
	[EXI_FAULT_SLOT_INDEX] = { NRT_EXEC_OOB, "check the slot number of the transfer" },
	[EXI_FAULT_SLOT_BOUNDS] = { NRT_EXEC_OOB, "check the offset against the buffer that was "
						  "bound" },
	[EXI_FAULT_SLOT_RIGHTS] = { NRT_EXEC_OOB, "declare the slot with the right it needs" },
	[EXI_FAULT_DEADLOCK] = { NRT_EXEC_COMPLETED_WITH_ERR, "value is the semaphore, limit what "
							      "was waited for" },
	[EXI_FAULT_SEM_OVERFLOW] = { NRT_EXEC_COMPLETED_WITH_ERR, "the program counts a semaphore "
								  "too high" },
	[EXI_FAULT_BUS] = { NRT_HW_ERROR, "report this as a defect of the driver" },
	[EXI_FAULT_ABORTED] = { NRT_EXEC_COMPLETED_WITH_ERR, "" },
	[EXI_FAULT_ECC] = { NRT_EXEC_HW_ERR_NC_UE, "the device needs a reset" },
	[EXI_FAULT_RACE] = { NRT_EXEC_COMPLETED_WITH_ERR, "let a semaphore order the two" },
	[EXI_FAULT_UNINITIALISED] = { NRT_EXEC_COMPLETED_WITH_ERR, "write them first, or read "
								   "fewer" },
	[EXI_FAULT_SEM_AMBIGUOUS] = { NRT_EXEC_COMPLETED_WITH_ERR, "use a semaphore for each "
								   "engine or queue" },
	[EXI_FAULT_PSUM_NO_START] = { NRT_EXEC_COMPLETED_WITH_ERR, "let the first product "
								   "overwrite" },
	[EXI_FAULT_PSUM_EARLY_READ] = { NRT_EXEC_COMPLETED_WITH_ERR, "read after the last "
								     "product" },
	[EXI_FAULT_PSUM_MIXED] = { NRT_EXEC_COMPLETED_WITH_ERR, "start and continue a sum with the "
								"same tile" },
	[EXI_FAULT_INDEX] = { NRT_EXEC_OOB, "look at what computes the indices" },
	[EXI_FAULT_UNCHECKED] = { NRT_EXEC_COMPLETED_WITH_ERR, "run it without checking mode, or "
							       "with 'warn'" },
};

/* Appends to text, which may be full. */
static void append(char *text, size_t bytes, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static void append(char *text, size_t bytes, const char *fmt, ...)
{
	size_t at = strlen(text);
	va_list args;

	va_start(args, fmt);
	vsnprintf(text + at, bytes - at, fmt, args);
	va_end(args);
}

/* value and limit of a fault as words: docs/execution-interface.md. */
static void append_values(char *text, size_t bytes, const struct nrti_ctx_state *state)
{
	if (state->fault == EXI_FAULT_INDEX) {
		append(text, bytes, ": index %lld of %llu rows", (long long)state->value,
		       (unsigned long long)state->limit);
		return;
	}
	if (state->fault < EXI_FAULT_RACE) {
		append(text, bytes, ": value %llu, limit %llu", (unsigned long long)state->value,
		       (unsigned long long)state->limit);
		return;
	}
	if (state->fault == EXI_FAULT_UNCHECKED)
		append(text, bytes, ": after %llu instructions", (unsigned long long)state->value);
	else if (state->fault == EXI_FAULT_SEM_AMBIGUOUS)
		append(text, bytes, ": semaphore %u", (uint32_t)state->value);
	else if (state->slot != UINT32_MAX)
		append(text, bytes, ": at byte %llu of the slot", (unsigned long long)state->value);
	else
		append(text, bytes, ": at %s, partition %u, byte %u",
		       EXI_PLACE_SPACE(state->value) == ISA_SPACE_PSUM ? "PSUM" : "SBUF",
		       EXI_PLACE_PART(state->value), EXI_PLACE_BYTE(state->value));
	if (state->limit != EXI_OTHER_NONE)
		append(text, bytes, ", with %s engine, instruction %u (%s)",
		       engine_name(EXI_OTHER_ENGINE(state->limit)), EXI_OTHER_PC(state->limit),
		       opcode_name(EXI_OTHER_OPCODE(state->limit)));
}

NRT_STATUS nrti_fault_text(const struct nrti_ctx_state *state, const char *program, char *text,
			   size_t bytes)
{
	const uint32_t fault = state->fault < EXI_FAULTS ? state->fault : EXI_OK;

	text[0] = 0;
	if (program)
		append(text, bytes, "program '%s'", program);
	else
		append(text, bytes, "a program that is unloaded by now");
	if (state->state == NRTI_CTX_TIMEDOUT) {
		append(text, bytes,
		       ": ran too long and was stopped; NEURON_RT_EXEC_TIMEOUT sets the limit");
		return NRT_TIMEOUT;
	}
	if (state->state == NRTI_CTX_INNOCENT) {
		append(text, bytes, ": lost in a reset that another context caused; run it again");
		return NRT_HW_ERROR;
	}
	if (state->engine < EXI_ENGINES)
		append(text, bytes, ": %s engine, instruction %u (%s)", engine_name(state->engine),
		       state->pc, opcode_name(state->opcode));
	if (state->slot != UINT32_MAX)
		append(text, bytes, ": slot %u", state->slot);
	append(text, bytes, ": %s", fault == EXI_OK ? "stopped" : exi_fault_text(fault));
	append_values(text, bytes, state);
	if (faults[fault].hint[0])
		append(text, bytes, "; %s", faults[fault].hint);
	return faults[fault].status;
}

void nrti_fault_of(const struct nrti_ctx_state *state, const char *program,
		   struct nrtx_fault *fault)
{
	*fault = (struct nrtx_fault){
		.status = state->fault,
		.timed_out = state->state == NRTI_CTX_TIMEDOUT,
		.bad_index = state->fault == EXI_FAULT_INDEX,
		.pc = state->pc,
		.opcode = state->opcode,
		.slot = state->slot,
		.value = state->value,
		.limit = state->limit,
	};
	snprintf(fault->engine, sizeof(fault->engine), "%s", engine_name(state->engine));
	snprintf(fault->program, sizeof(fault->program), "%s", program ? program : "");
}

/* --- names of codes ------------------------------------------------------------------- */

const char *nrt_get_status_as_str(NRT_STATUS status)
{
	switch (status) {
#define NAME(code) \
	case code: \
		return #code
		NAME(NRT_SUCCESS);
		NAME(NRT_FAILURE);
		NAME(NRT_INVALID);
		NAME(NRT_INVALID_HANDLE);
		NAME(NRT_RESOURCE);
		NAME(NRT_TIMEOUT);
		NAME(NRT_HW_ERROR);
		NAME(NRT_QUEUE_FULL);
		NAME(NRT_LOAD_NOT_ENOUGH_NC);
		NAME(NRT_UNSUPPORTED_NEFF_VERSION);
		NAME(NRT_FAIL_HOST_MEM_ALLOC);
		NAME(NRT_UNINITIALIZED);
		NAME(NRT_CLOSED);
		NAME(NRT_QUEUE_EMPTY);
		NAME(NRT_EXEC_UNIT_UNRECOVERABLE);
		NAME(NRT_EXEC_BAD_INPUT);
		NAME(NRT_EXEC_COMPLETED_WITH_NUM_ERR);
		NAME(NRT_EXEC_COMPLETED_WITH_ERR);
		NAME(NRT_EXEC_NC_BUSY);
		NAME(NRT_EXEC_OOB);
		NAME(NRT_COLL_PENDING);
		NAME(NRT_EXEC_HW_ERR_COLLECTIVES);
		NAME(NRT_EXEC_HW_ERR_HBM_UE);
		NAME(NRT_EXEC_HW_ERR_NC_UE);
		NAME(NRT_EXEC_HW_ERR_DMA_ABORT);
		NAME(NRT_EXEC_SW_NQ_OVERFLOW);
		NAME(NRT_EXEC_HW_ERR_REPAIRABLE_HBM_UE);
		NAME(NRT_NETWORK_PROXY_FAILURE);
#undef NAME
	}
	return "unknown NRT_STATUS";
}
