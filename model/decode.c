// SPDX-License-Identifier: Apache-2.0
#include "decode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "neuron_crc32c.h"
#include "neuron_program_check.h"
#include "check.h"
#include "timing.h"

int nm_decode_fault(struct nm_decoder *d, uint16_t status, uint64_t value, uint64_t limit)
{
	d->fault->status = status;
	d->fault->slot = NM_SLOT_NONE;
	d->fault->engine = (uint8_t)d->engine;
	d->fault->pc = d->pc;
	d->fault->opcode = d->opcode;
	d->fault->value = value;
	d->fault->limit = limit;
	return -EINVAL;
}

static int bad_image(struct nm_fault *fault, uint64_t field, uint64_t limit)
{
	*fault = (struct nm_fault){
		.status = EXI_FAULT_BAD_PROGRAM,
		.slot = NM_SLOT_NONE,
		.engine = NM_ENGINE_NONE,
		.value = field,
		.limit = limit,
	};
	return -EINVAL;
}

static bool is_zero(const void *p, size_t size)
{
	return nprog_zero_until(p, (uint32_t)size) == size;
}

/* Body of compute instructions: struct isa_compute. */
static bool has_compute(unsigned int opcode)
{
	return (opcode >= ISA_MEMSET && opcode <= ISA_PARTITION_REDUCE) ||
	       (opcode >= ISA_LOAD_STATIONARY && opcode <= ISA_TRANSPOSE) ||
	       (opcode >= ISA_MAX8 && opcode <= ISA_EXPONENTIAL);
}

/* The rule of this file: what an instruction needs beyond struct nm_inst. */
static size_t body_bytes(const struct isa_inst *in)
{
	if (in->opcode == ISA_DMA)
		return sizeof(struct nm_dma);
	if (isa_is_dma(in->opcode))
		return sizeof(struct nm_dma) + sizeof(struct nm_index);
	if (isa_is_reg(in->opcode))
		return sizeof(struct nm_reg);
	if (!has_compute(in->opcode))
		return 0;
	return sizeof(struct nm_compute) + (nm_is_shifted(in) ? sizeof(struct nm_shifts) : 0);
}

static int decode_sems(struct nm_decoder *d, const struct isa_inst *in, struct nm_inst *out)
{
	for (unsigned int i = 0; i < ISA_WAITS; i++) {
		const struct isa_wait *w = &in->wait[i];

		if (w->kind > ISA_WAIT_GE)
			return nm_decode_fault(d, EXI_FAULT_BAD_OPERAND, w->kind, ISA_WAIT_GE);
		if (w->pad0 || (w->kind == ISA_WAIT_NONE && (w->sem || w->reg || w->value)))
			return nm_decode_fault(d, EXI_FAULT_BAD_OPERAND,
					       w->pad0 | w->reg | w->value, 0);
		if (w->reg >= ISA_REGISTERS)
			return nm_decode_fault(d, EXI_FAULT_BAD_OPERAND, w->reg, ISA_REGISTERS);
		if (w->value > ISA_SEM_MAX)
			return nm_decode_fault(d, EXI_FAULT_BAD_OPERAND, w->value, ISA_SEM_MAX);
		if (w->kind == ISA_WAIT_NONE)
			continue;
		out->wait_sem[out->n_waits] = w->sem;
		out->wait_reg[out->n_waits] = w->reg;
		out->wait_value[out->n_waits++] = w->value;
	}
	for (unsigned int i = 0; i < ISA_UPDATES; i++) {
		const struct isa_update *u = &in->update[i];

		if (u->kind > ISA_UPDATE_ADD)
			return nm_decode_fault(d, EXI_FAULT_BAD_OPERAND, u->kind, ISA_UPDATE_ADD);
		if (u->kind == ISA_UPDATE_NONE && (u->sem || u->value))
			return nm_decode_fault(d, EXI_FAULT_BAD_OPERAND, u->value, 0);
		if (u->kind == ISA_UPDATE_NONE)
			continue;
		out->update_sem[out->n_updates] = u->sem;
		out->update_value[out->n_updates++] = u->value;
	}
	return 0;
}

static int decode_inst(struct nm_decoder *d, const struct isa_inst *in, struct nm_inst *out,
		       void *body)
{
	const uint8_t flags = ISA_F_NOTIFY | (isa_is_dma(in->opcode) ? ISA_F_ACCUM : 0) |
			      (isa_is_reg(in->opcode) ? ISA_F_IMM : 0);
	int ret;

	d->opcode = in->opcode;
	out->opcode = in->opcode;
	out->notify = in->flags & ISA_F_NOTIFY;
	if (!has_compute(in->opcode) && in->opcode != ISA_HALT && in->opcode != ISA_NOP &&
	    !isa_is_dma(in->opcode) && !isa_is_reg(in->opcode))
		return nm_decode_fault(d, EXI_FAULT_BAD_OPCODE, in->opcode, d->engine);
	ret = decode_sems(d, in, out);
	if (ret)
		return ret;
	if (!isa_is_dma(in->opcode) && (in->elem_bytes || in->dma_queue))
		return nm_decode_fault(d, EXI_FAULT_BAD_OPERAND,
				       in->elem_bytes ? in->elem_bytes : in->dma_queue, 0);
	if (has_compute(in->opcode)) {
		out->compute = body;
		return nm_decode_compute(d, in, out, body);
	}
	if (in->flags & ~flags)
		return nm_decode_fault(d, EXI_FAULT_BAD_OPERAND, in->flags, flags);
	nm_time_control(d->timing, out, d->engine);
	if (isa_is_dma(in->opcode)) {
		out->dma = body;
		out->shifted = nm_is_shifted(in);
		return nm_decode_dma(d, in, body);
	}
	if (isa_is_reg(in->opcode)) {
		out->reg = body;
		ret = nm_decode_reg(d, in, body);
		nm_time_reg(d->timing, out, d->engine);
		return ret;
	}
	if (!is_zero(in->body, sizeof(in->body)))
		return nm_decode_fault(d, EXI_FAULT_BAD_OPERAND, in->opcode, 0);
	return 0;
}

/* Products on parts of the array, which run beside each other: each holds its own, the others all. */
static void divide_array(const struct nm_decoder *d, struct nm_inst *inst, uint32_t count)
{
	for (; count--; inst++)
		if (inst->opcode == ISA_TRANSPOSE)
			nm_time_array(d->timing, inst, NM_ARRAY_ALL);
		else if (inst->opcode == ISA_LOAD_STATIONARY || inst->opcode == ISA_MATMUL)
			nm_time_array(d->timing, inst, inst->compute->array);
}

static int decode_stream(struct nm_decoder *d, const uint8_t *code, uint32_t count,
			 struct nm_inst *inst, uint8_t **body)
{
	d->count = count;
	for (uint32_t i = 0; i < count; i++) {
		const struct isa_inst *in = (const struct isa_inst *)code + i;
		int ret;

		d->pc = i;
		d->opcode = in->opcode;
		ret = decode_inst(d, in, &inst[i], *body);
		if (ret)
			return ret;
		*body += body_bytes(in);
		if (in->opcode == ISA_HALT && i < count - 1)
			return nm_decode_fault(d, EXI_FAULT_BAD_OPCODE, in->opcode, count - 1);
	}
	if (d->engine == ISA_TENSOR && d->divided)
		divide_array(d, inst, count);
	return 0;
}

/* One allocation: program, slots, instructions, bodies. */
static struct nm_program *alloc_program(const uint8_t *image, uint8_t **body)
{
	const struct nprog_header *h = (const struct nprog_header *)image;
	size_t insts = 0, bodies = 0, size;
	struct nm_program *p;
	uint8_t *mem;

	for (unsigned int e = 0; e < EXI_ENGINES; e++) {
		const uint32_t count = h->stream[e].count;
		const struct isa_inst *in =
			(const struct isa_inst *)(image + (count ? h->stream[e].offset : 0));

		insts += count;
		for (uint32_t i = 0; i < count; i++)
			bodies += body_bytes(&in[i]);
	}
	size = sizeof(*p) + h->n_slots * sizeof(struct nm_slot_need) +
	       insts * sizeof(struct nm_inst) + bodies;
	mem = calloc(1, size);
	if (!mem)
		return NULL;
	p = (struct nm_program *)mem;
	p->heap_bytes = size;
	*body = mem + size - bodies;
	return p;
}

static int decode_copy(const uint8_t *image, uint32_t arch, struct nm_program **program,
		       struct nm_fault *fault)
{
	const struct nprog_header *h = (const struct nprog_header *)image;
	struct nm_decoder d = { .fault = fault,
				.timing = nm_timing_of(arch),
				.sbuf_bytes = nm_sbuf_bytes(arch),
				.arch = arch };
	struct nm_slot_need *need;
	struct nm_program *p;
	struct nm_inst *inst;
	uint8_t *body;
	int ret = 0;

	p = alloc_program(image, &body);
	if (!p)
		return -ENOMEM;
	d.program = p;
	need = (struct nm_slot_need *)(p + 1);
	inst = (struct nm_inst *)(need + h->n_slots);
	p->slot = need;
	p->n_slots = h->n_slots;
	p->image_bytes = h->image_bytes;
	for (unsigned int i = 0; i < NPROG_NAME_BYTES && h->name[i]; i++)
		p->name[i] = h->name[i] < ' ' || h->name[i] > '~' ? '?' : (char)h->name[i];
	p->const_bytes = h->const_bytes;
	p->const_offset = h->const_bytes ? h->const_offset : 0;
	for (uint32_t i = 0; i < h->n_slots; i++) {
		const struct nprog_slot *s =
			(const struct nprog_slot *)(image + h->slot_offset) + i;

		need[i].min_bytes = s->min_bytes;
		need[i].rights = s->rights;
		if (s->kind == NPROG_SLOT_SCALAR)
			need[i].rights |= EXI_SLOT_INLINE;
	}
	for (unsigned int e = 0; e < EXI_ENGINES && !ret; e++) {
		const struct nprog_stream *s = &h->stream[e];

		d.engine = e;
		p->stream[e].inst = inst;
		p->stream[e].count = s->count;
		ret = decode_stream(&d, image + (s->count ? s->offset : 0), s->count, inst, &body);
		inst += s->count;
	}
	if (ret) {
		nm_program_free(p);
		return ret;
	}
	*program = p;
	return 0;
}

int nm_decode(const void *image, size_t size, uint32_t arch, struct nm_program **program,
	      struct nm_fault *fault)
{
	const uint32_t field = offsetof(struct nprog_header, crc32c);
	struct nprog_finding found;
	struct nprog_header *copy;
	uint32_t crc, want;
	int ret;

	*program = NULL;
	if (size < sizeof(*copy) || size > NPROG_IMAGE_MAX)
		return bad_image(fault, offsetof(struct nprog_header, image_bytes), size);
	copy = malloc(size);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, image, size);
	want = copy->crc32c;
	copy->crc32c = 0;
	crc = hw_crc32c(0, copy, size);
	if (nprog_check(copy, size, arch, &found))
		ret = bad_image(fault, found.offset, found.limit);
	else if (crc != want)
		ret = bad_image(fault, field, crc);
	else
		ret = decode_copy((const uint8_t *)copy, arch, program, fault);
	free(copy);
	return ret;
}

void nm_program_free(struct nm_program *program)
{
	if (program)
		nm_checked_free(program->verdict);
	free(program);
}
