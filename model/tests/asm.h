/* SPDX-License-Identifier: Apache-2.0 */
/* Builds program images for tests: instructions in any order of calls, slots, constants. */
#ifndef TEST_ASM_H
#define TEST_ASM_H

#include <stdlib.h>
#include <string.h>

#include "neuron_crc32c.h"
#include "neuron_isa.h"
#include "neuron_pci.h"
#include "neuron_program.h"
#include "neuron_queue.h"

#define ASM_INSTS 256 /* a stream */
#define ASM_SLOTS 8

struct program {
	struct isa_inst inst[EXI_ENGINES][ASM_INSTS];
	uint32_t count[EXI_ENGINES];
	struct nprog_slot slot[ASM_SLOTS];
	uint32_t n_slots;
	const void *constants;
	uint32_t const_bytes;
	uint32_t arch; /* NEURON_ARCH_*; 0: trn2's */
};

static inline struct isa_inst *asm_inst(struct program *p, unsigned int engine, unsigned int opcode)
{
	struct isa_inst *in = &p->inst[engine][p->count[engine]++];

	memset(in, 0, sizeof(*in));
	in->opcode = (uint8_t)opcode;
	return in;
}

static inline void asm_wait(struct isa_inst *in, unsigned int sem, uint32_t value)
{
	struct isa_wait *w = in->wait[0].kind ? &in->wait[1] : &in->wait[0];

	w->kind = ISA_WAIT_GE;
	w->sem = (uint8_t)sem;
	w->value = value;
}

static inline void asm_update(struct isa_inst *in, unsigned int sem, uint16_t value)
{
	struct isa_update *u = in->update[0].kind ? &in->update[1] : &in->update[0];

	u->kind = ISA_UPDATE_ADD;
	u->sem = (uint8_t)sem;
	u->value = value;
}

/* Packed row of n elements in each partition. */
static inline struct isa_tile asm_row(unsigned int space, unsigned int dtype, unsigned int part0,
				      unsigned int nparts, uint32_t offset, uint32_t n)
{
	return (struct isa_tile){ .space = (uint8_t)space,
				  .dtype = (uint8_t)dtype,
				  .part0 = (uint8_t)part0,
				  .nparts = (uint8_t)nparts,
				  .offset = offset,
				  .count = { 1, 1, 1, n },
				  .step = { 0, 0, 0, 1 } };
}

static inline uint32_t asm_slot(struct program *p, unsigned int kind, uint64_t bytes)
{
	struct nprog_slot *s = &p->slot[p->n_slots];

	s->min_bytes = bytes;
	s->kind = (uint8_t)kind;
	s->rights = EXI_SLOT_READ;
	if (kind == NPROG_SLOT_OUTPUT || kind == NPROG_SLOT_INOUT || kind == NPROG_SLOT_SCRATCH)
		s->rights |= EXI_SLOT_WRITE;
	return p->n_slots++;
}

static inline struct isa_dma_side asm_flat(unsigned int slot, uint64_t offset, uint32_t n,
					   uint64_t step)
{
	return (struct isa_dma_side){ .space = ISA_SPACE_SLOT,
				      .ndim = 1,
				      .slot = (uint16_t)slot,
				      .offset = offset,
				      .step = { step },
				      .count = { n } };
}

static inline struct isa_dma_side asm_chip(unsigned int space, unsigned int part0,
					   unsigned int nparts, uint64_t offset, uint32_t n,
					   uint64_t step)
{
	return (struct isa_dma_side){ .space = (uint8_t)space,
				      .ndim = 1,
				      .part0 = (uint8_t)part0,
				      .nparts = (uint8_t)nparts,
				      .part_step = 1,
				      .offset = offset,
				      .step = { step },
				      .count = { n } };
}

static inline struct isa_inst *asm_dma(struct program *p, unsigned int engine, unsigned int queue,
				       unsigned int elem_bytes, struct isa_dma_side dst,
				       struct isa_dma_side src)
{
	struct isa_inst *in = asm_inst(p, engine, ISA_DMA);

	in->elem_bytes = (uint8_t)elem_bytes;
	in->dma_queue = (uint8_t)queue;
	in->dma.dst = dst;
	in->dma.src = src;
	return in;
}

static inline uint64_t asm_align(uint64_t size)
{
	return (size + NPROG_ALIGN - 1) / NPROG_ALIGN * NPROG_ALIGN;
}

static inline void asm_seal(void *image, size_t size)
{
	struct nprog_header *h = image;

	h->crc32c = 0;
	h->crc32c = hw_crc32c(0, image, size);
}

/* Ends every stream that has instructions with HALT unless it is there; the caller frees the image. */
static inline void *asm_finish(struct program *p, size_t *size)
{
	struct nprog_header h = {
		.magic = NPROG_MAGIC,
		.version_major = NPROG_VERSION_MAJOR,
		.header_bytes = sizeof(h),
		.arch = p->arch ? p->arch : NEURON_ARCH_V3,
		.n_slots = p->n_slots,
		.const_bytes = p->const_bytes,
		.name = "test",
	};
	uint64_t at = sizeof(h);
	uint8_t *image;

	h.slot_offset = (uint32_t)at;
	at = asm_align(at + p->n_slots * sizeof(struct nprog_slot));
	for (unsigned int e = 0; e < EXI_ENGINES; e++) {
		if (p->count[e] && p->inst[e][p->count[e] - 1].opcode != ISA_HALT)
			asm_inst(p, e, ISA_HALT);
		h.stream[e].offset = (uint32_t)at;
		h.stream[e].count = p->count[e];
		at = asm_align(at + p->count[e] * sizeof(struct isa_inst));
	}
	h.const_offset = (uint32_t)at;
	at = asm_align(at + p->const_bytes);
	h.image_bytes = (uint32_t)at;
	image = calloc(1, at);
	memcpy(image, &h, sizeof(h));
	memcpy(image + h.slot_offset, p->slot, p->n_slots * sizeof(struct nprog_slot));
	for (unsigned int e = 0; e < EXI_ENGINES; e++)
		memcpy(image + h.stream[e].offset, p->inst[e],
		       p->count[e] * sizeof(struct isa_inst));
	if (p->const_bytes)
		memcpy(image + h.const_offset, p->constants, p->const_bytes);
	asm_seal(image, at);
	*size = at;
	return image;
}

#endif /* TEST_ASM_H */
