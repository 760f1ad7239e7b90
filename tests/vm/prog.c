// SPDX-License-Identifier: Apache-2.0
/* Programs assembled by hand. */
#include "dev.h"
#include "neuron_crc32c.h"

#include <stdlib.h>
#include <string.h>

unsigned int prog_slot(struct prog *p, unsigned int kind, uint64_t min_bytes)
{
	struct nprog_slot *s = &p->slot[p->slots];

	assert_true(p->slots < PROG_SLOTS);
	s->kind = (uint8_t)kind;
	s->min_bytes = min_bytes;
	switch (kind) {
	case NPROG_SLOT_INPUT:
	case NPROG_SLOT_SCALAR:
		s->rights = EXI_SLOT_READ;
		break;
	case NPROG_SLOT_OUTPUT:
		s->rights = EXI_SLOT_WRITE;
		break;
	default:
		s->rights = EXI_SLOT_READ | EXI_SLOT_WRITE;
		break;
	}
	return p->slots++;
}

struct isa_inst *prog_inst(struct prog *p, unsigned int engine, unsigned int opcode)
{
	struct isa_inst *inst = &p->inst[engine][p->count[engine]];

	assert_true(p->count[engine] < PROG_INSTS);
	p->count[engine]++;
	inst->opcode = (uint8_t)opcode;
	return inst;
}

void inst_wait(struct isa_inst *inst, unsigned int sem, uint32_t value)
{
	inst->wait[0].kind = ISA_WAIT_GE;
	inst->wait[0].sem = (uint8_t)sem;
	inst->wait[0].value = value;
}

void inst_signal(struct isa_inst *inst, unsigned int sem)
{
	inst->update[0].kind = ISA_UPDATE_ADD;
	inst->update[0].sem = (uint8_t)sem;
	inst->update[0].value = 1;
}

void dma_sbuf(struct isa_dma_side *side, uint32_t bytes)
{
	side->space = ISA_SPACE_SBUF;
	side->ndim = 1;
	side->nparts = TILE_PARTS;
	side->part_step = 1;
	side->step[0] = 1;
	side->count[0] = bytes;
}

void dma_slot(struct isa_dma_side *side, unsigned int slot, uint64_t offset, uint32_t bytes)
{
	side->space = ISA_SPACE_SLOT;
	side->slot = (uint16_t)slot;
	side->ndim = 1;
	side->offset = offset;
	side->step[0] = 1;
	side->count[0] = bytes;
}

void prog_seal(void *image, size_t size)
{
	struct nprog_header *h = image;

	h->crc32c = 0;
	h->crc32c = hw_crc32c(0, image, size);
}

void *prog_image(const struct prog *p, size_t *size)
{
	struct nprog_header *h;
	size_t at = sizeof(*h) + p->slots * sizeof(struct nprog_slot);
	uint8_t *image;

	*size = at;
	for (int e = 0; e < EXI_ENGINES; e++)
		*size += p->count[e] * ISA_INST_BYTES;
	image = calloc(1, *size);
	assert_non_null(image);
	h = (struct nprog_header *)image;
	h->magic = NPROG_MAGIC;
	h->version_major = NPROG_VERSION_MAJOR;
	h->header_bytes = sizeof(*h);
	h->image_bytes = (uint32_t)*size;
	h->arch = dev_arch();
	h->n_slots = p->slots;
	h->slot_offset = sizeof(*h);
	if (p->name)
		memcpy(h->name, p->name, strnlen(p->name, sizeof(h->name)));
	memcpy(image + sizeof(*h), p->slot, p->slots * sizeof(struct nprog_slot));
	for (int e = 0; e < EXI_ENGINES; e++) {
		if (!p->count[e])
			continue;
		h->stream[e].offset = (uint32_t)at;
		h->stream[e].count = p->count[e];
		memcpy(image + at, p->inst[e], p->count[e] * ISA_INST_BYTES);
		at += p->count[e] * ISA_INST_BYTES;
	}
	prog_seal(image, *size);
	return image;
}

int prog_try(int fd, const void *image, uint64_t size, uint32_t *program)
{
	struct drm_neuron_program_load args = { .image = (uintptr_t)image, .size = size };
	int ret = neuron_call(fd, DRM_IOCTL_NEURON_PROGRAM_LOAD, &args);

	*program = args.program;
	return ret;
}

uint32_t prog_load(int fd, const struct prog *p)
{
	uint32_t program;
	size_t size;
	void *image = prog_image(p, &size);

	assert_ok(prog_try(fd, image, size, &program));
	assert_int_not_equal(program, 0);
	free(image);
	return program;
}

void prog_unload(int fd, uint32_t program)
{
	struct drm_neuron_program_unload args = { .program = program };

	assert_ok(neuron_call(fd, DRM_IOCTL_NEURON_PROGRAM_UNLOAD, &args));
}

uint32_t prog_nop(int fd)
{
	struct prog p = { 0 };

	prog_inst(&p, ISA_SYNC, ISA_NOP);
	prog_inst(&p, ISA_SYNC, ISA_HALT);
	return prog_load(fd, &p);
}

uint32_t prog_fill(int fd, float value, unsigned int n)
{
	struct prog p = { .name = "fill" };
	unsigned int out = prog_slot(&p, NPROG_SLOT_OUTPUT, (uint64_t)TILE_PARTS * 4 * n);
	struct isa_inst *inst;
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	inst = prog_inst(&p, ISA_VECTOR, ISA_MEMSET);
	inst->compute.dst = (struct isa_tile){
		.space = ISA_SPACE_SBUF,
		.dtype = ISA_FP32,
		.nparts = TILE_PARTS,
		.count = { 1, 1, 1, n },
		.step = { 0, 0, 0, 1 },
	};
	inst->compute.compute_type = ISA_CT_F32;
	inst->compute.imm0 = bits;
	inst_signal(inst, 0);
	prog_inst(&p, ISA_VECTOR, ISA_HALT);

	inst = prog_inst(&p, ISA_SYNC, ISA_DMA);
	inst->elem_bytes = 1;
	dma_slot(&inst->dma.dst, out, 0, TILE_PARTS * 4 * n);
	dma_sbuf(&inst->dma.src, 4 * n);
	inst_wait(inst, 0, 1);
	inst_signal(inst, 1);
	inst_wait(prog_inst(&p, ISA_SYNC, ISA_HALT), 1, 1);
	return prog_load(fd, &p);
}

uint32_t prog_through_sbuf(int fd, uint32_t bytes)
{
	struct prog p = { 0 };
	unsigned int in = prog_slot(&p, NPROG_SLOT_INPUT, (uint64_t)TILE_PARTS * bytes);
	unsigned int out = prog_slot(&p, NPROG_SLOT_OUTPUT, (uint64_t)TILE_PARTS * bytes);
	struct isa_inst *inst;

	inst = prog_inst(&p, ISA_SYNC, ISA_DMA);
	inst->elem_bytes = 1;
	dma_sbuf(&inst->dma.dst, bytes);
	dma_slot(&inst->dma.src, in, 0, TILE_PARTS * bytes);
	inst_signal(inst, 0);
	inst = prog_inst(&p, ISA_SYNC, ISA_DMA);
	inst->elem_bytes = 1;
	dma_slot(&inst->dma.dst, out, 0, TILE_PARTS * bytes);
	dma_sbuf(&inst->dma.src, bytes);
	inst_wait(inst, 0, 1);
	inst_signal(inst, 1);
	inst_wait(prog_inst(&p, ISA_SYNC, ISA_HALT), 1, 1);
	return prog_load(fd, &p);
}

uint32_t prog_stall(int fd)
{
	struct prog p = { 0 };

	inst_wait(prog_inst(&p, ISA_VECTOR, ISA_NOP), 7, 3);
	prog_inst(&p, ISA_VECTOR, ISA_HALT);
	return prog_load(fd, &p);
}
