/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of the runtime: programs put together by hand, and calls that must succeed. */
#ifndef TESTS_ASSEMBLE_H
#define TESTS_ASSEMBLE_H

#include <stdlib.h>
#include <string.h>

#include "neuron_isa.h"
#include "neuron_program.h"
#include "neuron_queue.h"

/* Fails the test with what the runtime says of the error. */
#define OK(call)                                                                   \
	do {                                                                       \
		NRT_STATUS status_ = (call);                                       \
		if (status_)                                                       \
			fail_msg("%s: %d: %s", #call, status_, nrtx_error_text()); \
	} while (0)

#define PROG_INSTS 64
#define PROG_SLOTS 8

struct prog {
	struct isa_inst inst[EXI_ENGINES][PROG_INSTS];
	uint32_t n[EXI_ENGINES];
	struct nprog_slot slot[PROG_SLOTS];
	uint32_t n_slots;
};

static inline uint32_t prog_slot(struct prog *p, uint8_t kind, uint64_t min_bytes, const char *name)
{
	static const uint32_t rights[] = {
		[NPROG_SLOT_INPUT] = EXI_SLOT_READ,
		[NPROG_SLOT_OUTPUT] = EXI_SLOT_WRITE,
		[NPROG_SLOT_INOUT] = EXI_SLOT_READ | EXI_SLOT_WRITE,
		[NPROG_SLOT_SCRATCH] = EXI_SLOT_READ | EXI_SLOT_WRITE,
		[NPROG_SLOT_SCALAR] = EXI_SLOT_READ,
	};
	struct nprog_slot *slot = &p->slot[p->n_slots];

	slot->min_bytes = min_bytes;
	slot->kind = kind;
	slot->rights = rights[kind];
	slot->dtype = ISA_FP32;
	slot->ndim = 1;
	slot->dims[0] = (uint32_t)(min_bytes / 4);
	strncpy((char *)slot->name, name, sizeof(slot->name) - 1);
	return p->n_slots++;
}

static inline struct isa_inst *prog_inst(struct prog *p, unsigned int engine, uint8_t opcode)
{
	struct isa_inst *inst = &p->inst[engine][p->n[engine]++];

	memset(inst, 0, sizeof(*inst));
	inst->opcode = opcode;
	return inst;
}

static inline void inst_wait(struct isa_inst *inst, uint8_t sem, uint32_t value)
{
	struct isa_wait *wait = inst->wait[0].kind ? &inst->wait[1] : &inst->wait[0];

	wait->kind = ISA_WAIT_GE;
	wait->sem = sem;
	wait->value = value;
}

static inline void inst_update(struct isa_inst *inst, uint8_t sem, uint16_t value)
{
	inst->update[0].kind = ISA_UPDATE_ADD;
	inst->update[0].sem = sem;
	inst->update[0].value = value;
}

/* fp32 tile of SBUF: nparts partitions from 0 on, n elements from a byte offset on. */
static inline void sbuf_tile(struct isa_tile *tile, uint8_t nparts, uint32_t offset, uint32_t n)
{
	tile->space = ISA_SPACE_SBUF;
	tile->dtype = ISA_FP32;
	tile->nparts = nparts;
	tile->offset = offset;
	for (int i = 0; i < ISA_TILE_DIMS; i++)
		tile->count[i] = 1;
	tile->count[ISA_TILE_DIMS - 1] = n;
	tile->step[ISA_TILE_DIMS - 1] = 1;
}

/* The same as one side of a transfer. */
static inline void sbuf_side(struct isa_dma_side *side, uint8_t nparts, uint32_t offset, uint32_t n)
{
	side->space = ISA_SPACE_SBUF;
	side->ndim = 1;
	side->nparts = nparts;
	side->part_step = 1;
	side->offset = offset;
	side->step[0] = 4;
	side->count[0] = n;
}

/* nparts rows of n elements, one behind the other, in a slot. */
static inline void slot_side(struct isa_dma_side *side, uint32_t slot, uint64_t offset,
			     uint8_t nparts, uint32_t n)
{
	side->space = ISA_SPACE_SLOT;
	side->slot = (uint16_t)slot;
	side->ndim = 2;
	side->offset = offset;
	side->count[0] = nparts;
	side->step[0] = (int64_t)n * 4;
	side->count[1] = n;
	side->step[1] = 4;
}

static inline struct isa_inst *prog_dma(struct prog *p, unsigned int engine)
{
	struct isa_inst *inst = prog_inst(p, engine, ISA_DMA);

	inst->elem_bytes = 4;
	return inst;
}

static inline uint32_t prog_crc(const uint8_t *data, size_t size)
{
	uint32_t crc = 0xffffffffu;

	while (size--) {
		crc ^= *data++;
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
	}
	return crc ^ 0xffffffffu;
}

static inline size_t prog_place(size_t *end, size_t bytes)
{
	const size_t at = (*end + NPROG_ALIGN - 1) & ~(size_t)(NPROG_ALIGN - 1);

	*end = at + bytes;
	return at;
}

/* Ends each stream that is used and makes the image, to be freed by the caller. */
static inline void *prog_image(struct prog *p, const char *name, uint32_t arch, size_t *size)
{
	struct nprog_header header = {
		.magic = NPROG_MAGIC,
		.version_major = NPROG_VERSION_MAJOR,
		.version_minor = NPROG_VERSION_MINOR,
		.header_bytes = sizeof(header),
		.arch = arch,
		.n_slots = p->n_slots,
	};
	size_t end = sizeof(header);
	uint8_t *image;

	strncpy((char *)header.name, name, sizeof(header.name) - 1);
	header.slot_offset = (uint32_t)prog_place(&end, p->n_slots * sizeof(p->slot[0]));
	for (int e = 0; e < EXI_ENGINES; e++) {
		if (!p->n[e])
			continue;
		prog_inst(p, (unsigned int)e, ISA_HALT);
		header.stream[e].count = p->n[e];
		header.stream[e].offset = (uint32_t)prog_place(&end, p->n[e] * ISA_INST_BYTES);
	}
	*size = (end + NPROG_ALIGN - 1) & ~(size_t)(NPROG_ALIGN - 1);
	header.image_bytes = (uint32_t)*size;
	image = aligned_alloc(64, *size);
	if (!image)
		return NULL;
	memset(image, 0, *size);
	memcpy(image, &header, sizeof(header));
	memcpy(image + header.slot_offset, p->slot, p->n_slots * sizeof(p->slot[0]));
	for (int e = 0; e < EXI_ENGINES; e++)
		memcpy(image + header.stream[e].offset, p->inst[e],
		       header.stream[e].count * ISA_INST_BYTES);
	memcpy(image, &header, sizeof(header));
	((struct nprog_header *)image)->crc32c = prog_crc(image, *size);
	return image;
}

/* --- whole programs ------------------------------------------------------------------ */

/* out[128][n] = value */
/* Generation that programs for core 0 are to be of. */
static inline uint32_t prog_arch(void)
{
	struct nrtx_core_info info;

	return nrtx_core_info(0, &info) ? 0 : info.arch;
}

static inline void *prog_fill(float value, uint32_t n, uint32_t arch, size_t *size)
{
	struct prog *p = calloc(1, sizeof(*p));
	uint32_t out = prog_slot(p, NPROG_SLOT_OUTPUT, 128ull * n * 4, "out");
	struct isa_inst *inst;
	void *image;

	inst = prog_inst(p, ISA_VECTOR, ISA_MEMSET);
	sbuf_tile(&inst->compute.dst, 128, 0, n);
	memcpy(&inst->compute.imm0, &value, sizeof(value));
	inst_update(inst, 0, 1);
	inst = prog_dma(p, ISA_SYNC);
	inst_wait(inst, 0, 1);
	sbuf_side(&inst->dma.src, 128, 0, n);
	slot_side(&inst->dma.dst, out, 0, 128, n);
	image = prog_image(p, "fill", arch, size);
	free(p);
	return image;
}

/* out[128][n] = in[128][n], of bytes of the slot from offset on */
static inline void *prog_copy(uint32_t n, uint64_t offset, uint32_t arch, size_t *size)
{
	struct prog *p = calloc(1, sizeof(*p));
	uint32_t in = prog_slot(p, NPROG_SLOT_INPUT, 128ull * n * 4, "in");
	uint32_t out = prog_slot(p, NPROG_SLOT_OUTPUT, 128ull * n * 4, "out");
	struct isa_inst *inst;
	void *image;

	inst = prog_dma(p, ISA_SYNC);
	slot_side(&inst->dma.src, in, offset, 128, n);
	sbuf_side(&inst->dma.dst, 128, 0, n);
	inst_update(inst, 0, 1);
	inst = prog_dma(p, ISA_SYNC);
	inst_wait(inst, 0, 1);
	sbuf_side(&inst->dma.src, 128, 0, n);
	slot_side(&inst->dma.dst, out, 0, 128, n);
	image = prog_image(p, "copy", arch, size);
	free(p);
	return image;
}

/* data[128][n] = data[128][n] + scalar, by way of a scratch slot */
static inline void *prog_add(uint32_t n, uint32_t arch, size_t *size)
{
	struct prog *p = calloc(1, sizeof(*p));
	uint32_t data = prog_slot(p, NPROG_SLOT_INOUT, 128ull * n * 4, "data");
	uint32_t scratch = prog_slot(p, NPROG_SLOT_SCRATCH, 128ull * n * 4, "scratch");
	uint32_t scalar = prog_slot(p, NPROG_SLOT_SCALAR, 8, "scalar");
	struct isa_inst *inst;
	void *image;

	inst = prog_dma(p, ISA_SYNC);
	slot_side(&inst->dma.src, data, 0, 128, n);
	slot_side(&inst->dma.dst, scratch, 0, 128, n);
	inst_update(inst, 0, 1);
	inst = prog_dma(p, ISA_SYNC);
	inst_wait(inst, 0, 1);
	slot_side(&inst->dma.src, scratch, 0, 128, n);
	sbuf_side(&inst->dma.dst, 128, 0, n);
	inst_update(inst, 1, 1);
	/* The scalar into each partition of a column behind the data. */
	inst = prog_dma(p, ISA_SYNC);
	slot_side(&inst->dma.src, scalar, 0, 128, 1);
	inst->dma.src.step[0] = 0;
	sbuf_side(&inst->dma.dst, 128, n * 4, 1);
	inst_update(inst, 1, 1);
	inst = prog_inst(p, ISA_VECTOR, ISA_TENSOR_SCALAR);
	inst_wait(inst, 1, 2);
	inst->flags = ISA_F_VEC0;
	inst->compute.op0 = ISA_ADD;
	inst->compute.op1 = ISA_BYPASS;
	sbuf_tile(&inst->compute.dst, 128, 0, n);
	sbuf_tile(&inst->compute.src0, 128, 0, n);
	inst->compute.vec0.offset = n * 4;
	inst->compute.vec0.dtype = ISA_FP32;
	inst_update(inst, 2, 1);
	inst = prog_dma(p, ISA_SYNC);
	inst_wait(inst, 2, 1);
	sbuf_side(&inst->dma.src, 128, 0, n);
	slot_side(&inst->dma.dst, data, 0, 128, n);
	image = prog_image(p, "add", arch, size);
	free(p);
	return image;
}

/* Both engines wait for what the other never does. */
static inline void *prog_deadlock(uint32_t arch, size_t *size)
{
	struct prog *p = calloc(1, sizeof(*p));
	struct isa_inst *inst;
	void *image;

	inst = prog_inst(p, ISA_VECTOR, ISA_NOP);
	inst_wait(inst, 3, 1);
	inst_update(inst, 4, 1);
	inst = prog_inst(p, ISA_SCALAR, ISA_NOP);
	inst_wait(inst, 4, 1);
	inst_update(inst, 3, 1);
	image = prog_image(p, "deadlock", arch, size);
	free(p);
	return image;
}

#endif /* TESTS_ASSEMBLE_H */
