// SPDX-License-Identifier: Apache-2.0
/*
 * What the decoder refuses, field by field, and random and mutated images, of which it must survive
 * all; those that it accepts are run.
 */
#include <time.h>

#include "decode.h"
#include "reference.h"
#include "rig.h"

/* --- single fields ------------------------------------------------------------------------- */

/* A program with one of each kind; the tests break one field of it. */
enum { COMPUTE, TRANSFER, MATMUL, STATIONARY, GATHER, SCATTER };

static void add_indirect(struct program *p, unsigned int opcode)
{
	struct isa_inst *in = asm_inst(p, ISA_SYNC, opcode);
	const bool gather = opcode == ISA_DMA_GATHER;
	struct isa_dma_rows slot = {
		.space = ISA_SPACE_SLOT, .slot = !gather, .ndim = 1, .step = { 4 }, .count = { 12 }
	};
	struct isa_dma_rows chip = { .nparts = 8,
				     .part_step = 1,
				     .ndim = 2,
				     .offset = 8192,
				     .step = { 64, 4 },
				     .count = { 3, 12 } };

	in->elem_bytes = 4;
	in->indirect.dst = gather ? chip : slot;
	in->indirect.src = gather ? slot : chip;
	in->indirect.index = (struct isa_dma_index){
		.dtype = ISA_INT32, .part0 = 96, .nparts = 24, .count = 1, .offset = 4
	};
	in->indirect.row_step = 48;
	in->indirect.rows = 85;
	if (gather) {
		in->flags = ISA_F_ACCUM;
		in->indirect.dst.dtype = ISA_FP32;
	}
	in->indirect.oob = gather ? ISA_OOB_SKIP : ISA_OOB_ERROR;
}

static struct program *whole(void)
{
	struct program *p = calloc(1, sizeof(*p));
	struct isa_inst *in;

	asm_slot(p, NPROG_SLOT_INPUT, 4096);
	asm_slot(p, NPROG_SLOT_OUTPUT, 4096);
	p->slot[1].rights = EXI_SLOT_WRITE;
	p->constants = p;
	p->const_bytes = 64;
	in = asm_inst(p, ISA_VECTOR, ISA_TENSOR_SCALAR);
	in->compute.dst = asm_row(ISA_SPACE_SBUF, ISA_FP32, 0, 8, 0, 16);
	in->compute.src0 = asm_row(ISA_SPACE_PSUM, ISA_BF16, 32, 8, 0, 16);
	in->flags = ISA_F_VEC1;
	in->compute.op0 = ISA_ADD;
	in->compute.op1 = ISA_MULT;
	in->compute.vec1 = (struct isa_column){ .dtype = ISA_FP16, .offset = 2 };
	in->flags |= ISA_F_NOTIFY;
	in = asm_inst(p, ISA_VECTOR, ISA_MATCH_REPLACE8);
	in->compute.dst = asm_row(ISA_SPACE_SBUF, ISA_FP32, 0, 8, 0, 16);
	in->compute.src0 = asm_row(ISA_SPACE_PSUM, ISA_BF16, 32, 8, 0, 16);
	in->compute.src1 = asm_row(ISA_SPACE_SBUF, ISA_FP32, 0, 8, 64, ISA_TOP);
	in->flags = ISA_F_VEC1;
	in->compute.vec1 = (struct isa_column){ .dtype = ISA_UINT16, .offset = 128 };
	in = asm_inst(p, ISA_GPSIMD, ISA_REDUCE);
	in->compute.dst = asm_row(ISA_SPACE_SBUF, ISA_INT64, 0, 8, 0, 1);
	in->compute.src0 = asm_row(ISA_SPACE_SBUF, ISA_INT64, 0, 8, 8, 100);
	in->compute.op0 = ISA_ADD;
	in->compute.compute_type = ISA_CT_I64;
	in->compute.n_axes = 1;
	in = asm_inst(p, ISA_GPSIMD, ISA_IOTA);
	in->compute.dst = asm_row(ISA_SPACE_SBUF, ISA_INT32, 0, 8, 0, 100);
	in->compute.src0.step[3] = 5;
	in->compute.compute_type = ISA_CT_I32;
	in = asm_inst(p, ISA_SCALAR, ISA_ACTIVATION);
	in->compute.dst = asm_row(ISA_SPACE_SBUF, ISA_FP32, 0, 8, 0, 16);
	in->compute.src0 = in->compute.dst;
	in->compute.src1 = asm_row(ISA_SPACE_SBUF, ISA_FP32, 0, 8, 64, 1);
	in->flags = ISA_F_ACCUM;
	in = asm_inst(p, ISA_TENSOR, ISA_LOAD_STATIONARY);
	in->compute.src0 = asm_row(ISA_SPACE_SBUF, ISA_FP32, 0, 64, 0, 32);
	in = asm_inst(p, ISA_TENSOR, ISA_MATMUL);
	in->compute.dst = asm_row(ISA_SPACE_PSUM, ISA_FP32, 0, 32, 2048, 512);
	in->compute.src0 = asm_row(ISA_SPACE_SBUF, ISA_BF16, 0, 64, 0, 512);
	asm_dma(p, ISA_SYNC, 0, 4, asm_flat(1, 0, 1024, 4),
		asm_chip(ISA_SPACE_SBUF, 0, 8, 0, 128, 4));
	asm_dma(p, ISA_SYNC, 15, 8, asm_chip(ISA_SPACE_PSUM, 120, 8, 0, 1, 8),
		asm_flat(ISA_SLOT_CONST, 0, 8, 8));
	add_indirect(p, ISA_DMA_GATHER);
	add_indirect(p, ISA_DMA_SCATTER);
	return p;
}

static struct isa_inst *inst_of(struct program *p, unsigned int kind)
{
	switch (kind) {
	case COMPUTE:
		return &p->inst[ISA_VECTOR][0];
	case TRANSFER:
		return &p->inst[ISA_SYNC][0];
	case MATMUL:
		return &p->inst[ISA_TENSOR][1];
	case GATHER:
		return &p->inst[ISA_SYNC][2];
	case SCATTER:
		return &p->inst[ISA_SYNC][3];
	default:
		return &p->inst[ISA_TENSOR][0];
	}
}

static struct nm_fault decode(struct program *p)
{
	struct nm_fault fault = { 0 };
	struct nm_program *decoded;
	size_t size;
	void *image = asm_finish(p, &size);
	int ret = nm_decode(image, size, NEURON_ARCH_V3, &decoded, &fault);

	assert_int_equal(ret, fault.status ? -EINVAL : 0);
	assert_true(!decoded == !!ret);
	nm_program_free(decoded);
	free(image);
	return fault;
}

static void test_accepts(void **state)
{
	struct program *p = whole();

	(void)state;
	assert_int_equal(decode(p).status, EXI_OK);
	free(p);
}

#define EXPECT(kind, change, st, val, lim)                                                        \
	do {                                                                                      \
		struct program *p = whole();                                                      \
		struct isa_inst *i = inst_of(p, kind);                                            \
		struct nm_fault f;                                                                \
                                                                                                  \
		change;                                                                           \
		f = decode(p);                                                                    \
		if (f.status != (st) || f.value != (uint64_t)(val) || f.limit != (uint64_t)(lim)) \
			fail_msg("%s: status %u, value 0x%llx, limit 0x%llx", #change, f.status,  \
				 (unsigned long long)f.value, (unsigned long long)f.limit);       \
		assert_int_equal(f.pc, (i - &p->inst[0][0]) % ASM_INSTS);                         \
		assert_int_equal(f.opcode, i->opcode);                                            \
		free(p);                                                                          \
	} while (0)

#define OPERAND EXI_FAULT_BAD_OPERAND
#define BOUNDS	EXI_FAULT_TILE_BOUNDS

static void test_compute_fields(void **state)
{
	(void)state;
	EXPECT(COMPUTE, i->opcode = 0x7f, EXI_FAULT_BAD_OPCODE, 0x7f, ISA_VECTOR);
	EXPECT(COMPUTE, i->opcode = 0, EXI_FAULT_BAD_OPCODE, 0, ISA_VECTOR);
	EXPECT(COMPUTE, i->opcode = ISA_MATMUL, EXI_FAULT_BAD_OPCODE, ISA_MATMUL, ISA_VECTOR);
	EXPECT(COMPUTE, i->opcode = ISA_ACTIVATION, EXI_FAULT_BAD_OPCODE, ISA_ACTIVATION,
	       ISA_VECTOR);
	EXPECT(COMPUTE, i->flags |= ISA_F_ACCUM, OPERAND, ISA_F_NOTIFY | ISA_F_VEC1 | ISA_F_ACCUM,
	       0x5e);
	EXPECT(COMPUTE, i->flags |= 0x80, OPERAND, 0x80 | ISA_F_NOTIFY | ISA_F_VEC1, 0x5e);
	EXPECT(COMPUTE, i->elem_bytes = 4, OPERAND, 4, 0);
	EXPECT(COMPUTE, i->dma_queue = 1, OPERAND, 1, 0);
	EXPECT(COMPUTE, i->compute.op0 = ISA_ALU_OPS, OPERAND, ISA_ALU_OPS, ISA_ALU_OPS);
	EXPECT(COMPUTE, i->compute.op1 = ISA_SHL, OPERAND, ISA_SHL, ISA_BIT_AND);
	EXPECT(COMPUTE, i->compute.compute_type = 5, OPERAND, 5, 3);
	EXPECT(COMPUTE, i->compute.compute_type = ISA_CT_I64, OPERAND, ISA_CT_I64, 3);
	EXPECT(COMPUTE, i->compute.compute_type = ISA_CT_I32, OPERAND, ISA_ADD, ISA_CT_I32);
	EXPECT(COMPUTE, i->compute.n_axes = 1, OPERAND, 1, 0);
	EXPECT(COMPUTE, i->compute.mode = ISA_MODE_DOUBLE_ROW, OPERAND, ISA_MODE_DOUBLE_ROW, 0);
	EXPECT(COMPUTE, i->compute.shift[2] = 1, OPERAND, 1, 0);
	EXPECT(COMPUTE, i->compute.imm0 = 1ull << 32, OPERAND, 1ull << 32, UINT32_MAX);
	EXPECT(COMPUTE, i->compute.imm1 = 7, OPERAND, 7, 0);
	EXPECT(COMPUTE, i->compute.vec0.offset = 4, OPERAND, 4, 0);
	EXPECT(COMPUTE, i->compute.vec1.shift = ISA_REGISTERS, OPERAND, ISA_REGISTERS,
	       ISA_REGISTERS);
	EXPECT(COMPUTE, i->compute.vec1.offset = 3, OPERAND, 3, 2);
	EXPECT(COMPUTE, i->compute.vec1.offset = NM_SBUF_BYTES, BOUNDS, NM_SBUF_BYTES + 2,
	       NM_SBUF_BYTES);
	EXPECT(COMPUTE, i->compute.vec1.part0 = 128, OPERAND, 128, ISA_PART_QUANTUM);
	EXPECT(COMPUTE, i->compute.src1.count[0] = 1, OPERAND, 1, 0);
	EXPECT(COMPUTE, i->compute.dst.space = ISA_SPACE_SLOT, OPERAND, ISA_SPACE_SLOT, 0);
	EXPECT(COMPUTE, i->compute.dst.dtype = 0, OPERAND, 0, ISA_FP32);
	EXPECT(COMPUTE, i->compute.dst.dtype = 0x20, OPERAND, 0x20, ISA_FP32);
	EXPECT(COMPUTE, i->compute.dst.dtype = ISA_INT64, OPERAND, ISA_INT64, ISA_FP32);
	EXPECT(COMPUTE, i->compute.dst.part0 = 16, OPERAND, 16, ISA_PART_QUANTUM);
	EXPECT(COMPUTE, i->compute.dst.nparts = 0, OPERAND, 0, ISA_PARTITIONS);
	EXPECT(COMPUTE, i->compute.dst.nparts = 129, OPERAND, 129, ISA_PARTITIONS);
	EXPECT(COMPUTE, i->compute.src0.nparts = 97, OPERAND, 97, 96);
	EXPECT(COMPUTE, i->compute.src0.nparts = 7, OPERAND, 7, 8);
	EXPECT(COMPUTE, i->compute.src0.count[3] = 15, OPERAND, 15, 16);
	EXPECT(COMPUTE, i->compute.dst.count[1] = 0, OPERAND, 0, NM_TILE_ELEMS);
	EXPECT(COMPUTE, i->compute.dst.count[1] = UINT32_MAX, OPERAND, UINT32_MAX, NM_TILE_ELEMS);
	EXPECT(COMPUTE, (i->compute.dst.count[0] = 65536, i->compute.dst.count[1] = 65536), OPERAND,
	       1ull << 32, NM_TILE_ELEMS);
	EXPECT(COMPUTE, i->compute.dst.offset = 2, OPERAND, 2, 4);
	EXPECT(COMPUTE, i->compute.dst.offset = NM_SBUF_BYTES - 60, BOUNDS, NM_SBUF_BYTES + 4,
	       NM_SBUF_BYTES);
	EXPECT(COMPUTE, i->compute.dst.offset = 0xfffffffc, BOUNDS, 0xfffffffcull + 64,
	       NM_SBUF_BYTES);
	EXPECT(COMPUTE, i->compute.dst.step[3] = 0x7fffffff, BOUNDS, 15 * 4 * 0x7fffffffull + 4,
	       NM_SBUF_BYTES);
	EXPECT(COMPUTE, i->compute.dst.step[3] = 0x80000000, BOUNDS, -15 * 4 * 0x80000000ll, 0);
	EXPECT(COMPUTE, i->compute.src0.offset = 16384 - 30, BOUNDS, 16386, 16384);
}

static void test_tensor_fields(void **state)
{
	(void)state;
	EXPECT(MATMUL, i->compute.dst.space = ISA_SPACE_SBUF, OPERAND, 0, ISA_SPACE_PSUM);
	EXPECT(MATMUL, i->compute.src0.space = ISA_SPACE_PSUM, OPERAND, 1, ISA_SPACE_SBUF);
	EXPECT(MATMUL, i->compute.dst.offset = 2052, BOUNDS, 4100, 4096);
	EXPECT(MATMUL, i->compute.dst.offset = 16384 - 1024, BOUNDS, 16384 + 1024, 16384);
	EXPECT(MATMUL, i->compute.dst.dtype = ISA_INT32, OPERAND, ISA_INT32, ISA_FP32);
	EXPECT(MATMUL, i->compute.src0.dtype = ISA_INT16, OPERAND, ISA_INT16, ISA_FP32);
	EXPECT(MATMUL, i->compute.src0.nparts = 63, OPERAND, 63, 64);
	EXPECT(MATMUL, i->compute.dst.nparts = 31, OPERAND, 31, 32);
	EXPECT(MATMUL, i->compute.dst.count[3] = 511, OPERAND, 511, 512);
	EXPECT(MATMUL, i->compute.src0.count[3] = 513, OPERAND, 513, 512);
	EXPECT(MATMUL, i->compute.compute_type = ISA_CT_BITS, OPERAND, ISA_CT_BITS, 1);
	EXPECT(MATMUL, (i->opcode = ISA_TRANSPOSE, i->compute.compute_type = ISA_CT_BITS), OPERAND,
	       512, 128);
	EXPECT(STATIONARY, i->compute.src0.count[3] = 129, OPERAND, 129, 128);
	EXPECT(STATIONARY, i->compute.dst.count[3] = 1, OPERAND, 1, 0);
	/* A product with nothing loaded. */
	EXPECT(STATIONARY, *i = *inst_of(p, MATMUL), OPERAND, 64, 0);
}

static void test_semaphore_fields(void **state)
{
	(void)state;
	EXPECT(COMPUTE, i->wait[0].kind = 2, OPERAND, 2, ISA_WAIT_GE);
	EXPECT(COMPUTE, (i->wait[1].kind = 1, i->wait[1].pad0 = 1), OPERAND, 1, 0);
	EXPECT(COMPUTE, (i->wait[1].kind = 1, i->wait[1].value = 0x80000000), OPERAND, 0x80000000,
	       ISA_SEM_MAX);
	EXPECT(COMPUTE, i->wait[0].value = 1, OPERAND, 1, 0);
	EXPECT(COMPUTE, i->update[1].kind = 2, OPERAND, 2, ISA_UPDATE_ADD);
	EXPECT(COMPUTE, i->update[0].value = 3, OPERAND, 3, 0);
	EXPECT(COMPUTE, (memset(i, 0, sizeof(*i)), i->opcode = ISA_NOP, i->body[77] = 1), OPERAND,
	       ISA_NOP, 0);
	EXPECT(COMPUTE, (memset(i, 0, sizeof(*i)), i->opcode = ISA_NOP, i->flags = 1), OPERAND, 1,
	       ISA_F_NOTIFY);
	/* An end before the last instruction. */
	EXPECT(STATIONARY, (memset(i, 0, sizeof(*i)), i->opcode = ISA_HALT), EXI_FAULT_BAD_OPCODE,
	       ISA_HALT, 2);
}

static void test_transfer_fields(void **state)
{
	(void)state;
	EXPECT(TRANSFER, i->elem_bytes = 3, OPERAND, 3, 8);
	EXPECT(TRANSFER, i->dma_queue = 16, OPERAND, 16, 16);
	EXPECT(TRANSFER, i->flags = 2, OPERAND, 2, ISA_F_NOTIFY | ISA_F_ACCUM);
	EXPECT(TRANSFER, i->dma.dst.space = 3, OPERAND, 3, ISA_SPACE_SLOT);
	EXPECT(TRANSFER, i->dma.dst.ndim = 6, OPERAND, 6, ISA_DMA_DIMS);
	EXPECT(TRANSFER, i->dma.dst.count[1] = 1, OPERAND, 1, 0);
	EXPECT(TRANSFER, i->dma.dst.step[4] = 1, OPERAND, 0, 0);
	EXPECT(TRANSFER, i->dma.dst.count[0] = 0, OPERAND, 0, 1);
	EXPECT(TRANSFER, i->dma.dst.dtype = 1, OPERAND, 1, 0);
	EXPECT(TRANSFER, i->dma.src.dtype = ISA_FP32, OPERAND, ISA_FP32, 0);
	EXPECT(TRANSFER, i->dma.src.pad1[2] = 2, OPERAND, 2, 0);
	EXPECT(TRANSFER, i->dma.dst.nparts = 1, OPERAND, 1, 0);
	EXPECT(TRANSFER, i->dma.src.slot = 1, OPERAND, 1, 0);
	EXPECT(TRANSFER, i->dma.src.nparts = 0, OPERAND, 0, ISA_PARTITIONS);
	EXPECT(TRANSFER, i->dma.src.nparts = 129, OPERAND, 129, ISA_PARTITIONS);
	EXPECT(TRANSFER, i->dma.src.part0 = 121, BOUNDS, 128, ISA_PARTITIONS);
	EXPECT(TRANSFER, i->dma.src.part_step = 2, OPERAND, 2, 1);
	EXPECT(TRANSFER, i->dma.src.nparts = 4, OPERAND, 512, 1024);
	EXPECT(TRANSFER, i->dma.src.offset = NM_SBUF_BYTES - 508, BOUNDS, NM_SBUF_BYTES + 4,
	       NM_SBUF_BYTES);
	EXPECT(TRANSFER, i->dma.src.offset = UINT64_MAX - 3, BOUNDS, INT64_MAX / 2, NM_SBUF_BYTES);
	EXPECT(TRANSFER, i->dma.src.step[0] = (uint64_t)-4, BOUNDS, -508, 0);
	EXPECT(TRANSFER, i->dma.dst.slot = 2, EXI_FAULT_SLOT_INDEX, 2, 2);
	EXPECT(TRANSFER, i->dma.dst.slot = 0xffff, EXI_FAULT_SLOT_INDEX, 0xffff, 2);
	EXPECT(TRANSFER, i->dma.dst.slot = 0, EXI_FAULT_SLOT_RIGHTS, EXI_SLOT_WRITE, EXI_SLOT_READ);
	EXPECT(TRANSFER, i->dma.dst.slot = ISA_SLOT_CONST, EXI_FAULT_SLOT_RIGHTS, EXI_SLOT_WRITE,
	       EXI_SLOT_READ);
	EXPECT(TRANSFER, i->dma.src = i->dma.dst, EXI_FAULT_SLOT_RIGHTS, EXI_SLOT_READ,
	       EXI_SLOT_WRITE);
	EXPECT(TRANSFER, i->dma.dst.offset = 1, EXI_FAULT_SLOT_BOUNDS, 4097, 4096);
	EXPECT(TRANSFER, i->dma.dst.step[0] = 5, EXI_FAULT_SLOT_BOUNDS, 1023 * 5 + 4, 4096);
	EXPECT(TRANSFER, i->dma.dst.step[0] = (uint64_t)-1, EXI_FAULT_SLOT_BOUNDS, -1023, 4096);
	EXPECT(TRANSFER, i->dma.dst.step[0] = INT64_MAX, EXI_FAULT_SLOT_BOUNDS, INT64_MAX / 2,
	       4096);
	/* The extent would wrap around to something small. */
	EXPECT(TRANSFER, (i->dma.dst.step[0] = 1ull << 62, p->slot[1].min_bytes = UINT64_MAX),
	       EXI_FAULT_SLOT_BOUNDS, INT64_MAX / 2, UINT64_MAX);
	EXPECT(TRANSFER,
	       (i->dma.dst.count[0] = UINT32_MAX, i->dma.dst.ndim = 2,
		i->dma.dst.count[1] = UINT32_MAX, p->slot[1].min_bytes = UINT64_MAX),
	       OPERAND, (uint64_t)UINT32_MAX * UINT32_MAX, NM_DMA_ELEMS);
	EXPECT(TRANSFER,
	       (i->dma.src.space = ISA_SPACE_SLOT, i->dma.src.nparts = 0, i->dma.src.part_step = 0,
		i->dma.src.slot = ISA_SLOT_CONST, i->dma.src.count[0] = 17, i->dma.src.step[0] = 4),
	       EXI_FAULT_SLOT_BOUNDS, 68, 64);
}

#define SLOT_BOUNDS EXI_FAULT_SLOT_BOUNDS

static void test_index_fields(void **state)
{
	(void)state;
	EXPECT(GATHER, i->indirect.index.space = ISA_SPACE_PSUM, OPERAND, 1, ISA_SPACE_SBUF);
	EXPECT(GATHER, i->indirect.index.dtype = ISA_INT64, OPERAND, ISA_INT64, ISA_UINT32);
	EXPECT(GATHER, i->indirect.index.dtype = 0, OPERAND, 0, ISA_UINT32);
	EXPECT(GATHER, i->indirect.index.nparts = 0, OPERAND, 0, ISA_PARTITIONS);
	EXPECT(GATHER, i->indirect.index.nparts = 129, OPERAND, 129, ISA_PARTITIONS);
	EXPECT(GATHER, i->indirect.index.part0 = 105, BOUNDS, 128, ISA_PARTITIONS);
	EXPECT(GATHER, i->indirect.index.count = 0, OPERAND, 0, NM_TILE_ELEMS);
	EXPECT(GATHER, i->indirect.index.count = UINT32_MAX, OPERAND, UINT32_MAX, NM_TILE_ELEMS);
	EXPECT(GATHER, i->indirect.index.count = 2, OPERAND, 288, 576);
	EXPECT(GATHER, i->indirect.index.nparts = 23, OPERAND, 288, 276);
	EXPECT(GATHER, i->indirect.index.offset = 6, OPERAND, 6, 4);
	EXPECT(GATHER, i->indirect.index.offset = NM_SBUF_BYTES, BOUNDS, NM_SBUF_BYTES + 4,
	       NM_SBUF_BYTES);
	EXPECT(GATHER, (i->indirect.index.count = 3, i->indirect.index.step = 0x80000000), BOUNDS,
	       4 - 2 * 4 * 0x80000000ll, 0);
	EXPECT(GATHER, (i->indirect.index.count = 3, i->indirect.index.step = 0x7fffffff), BOUNDS,
	       8 + 2 * 4 * 0x7fffffffll, NM_SBUF_BYTES);
	EXPECT(GATHER, i->indirect.oob = 2, OPERAND, 2, ISA_OOB_SKIP);
	EXPECT(GATHER, i->indirect.order = 2, OPERAND, 2, ISA_INDEX_FREE);
	EXPECT(GATHER, i->indirect.pad0[1] = 1, OPERAND, 1, 0);
	EXPECT(GATHER, i->indirect.rows = 0, OPERAND, 0, 1);
}

static void test_row_fields(void **state)
{
	(void)state;
	EXPECT(GATHER, i->elem_bytes = 0, OPERAND, 0, 8);
	EXPECT(GATHER, i->dma_queue = 16, OPERAND, 16, 16);
	EXPECT(SCATTER, i->flags = ISA_F_REV0, OPERAND, ISA_F_REV0, ISA_F_NOTIFY | ISA_F_ACCUM);
	EXPECT(GATHER, i->indirect.src = i->indirect.dst, OPERAND, ISA_SPACE_SBUF, ISA_SPACE_SLOT);
	EXPECT(SCATTER, i->indirect.dst = i->indirect.src, OPERAND, ISA_SPACE_SBUF, ISA_SPACE_SLOT);
	EXPECT(SCATTER, i->indirect.dst.ndim = 5, OPERAND, 5, ISA_DMA_ROW_DIMS);
	EXPECT(SCATTER, i->indirect.src.ndim = 5, OPERAND, 5, ISA_DMA_ROW_DIMS);
	EXPECT(SCATTER, i->indirect.dst.count[1] = 1, OPERAND, 1, 0);
	EXPECT(SCATTER, i->indirect.dst.step[3] = 1, OPERAND, 0, 0);
	EXPECT(SCATTER, i->indirect.src.count[3] = 1, OPERAND, 1, 0);
	EXPECT(SCATTER, i->indirect.dst.dtype = 1, OPERAND, 1, 0);
	EXPECT(SCATTER, i->indirect.src.dtype = ISA_FP32, OPERAND, ISA_FP32, 0);
	EXPECT(SCATTER, i->indirect.src.part0 = 121, BOUNDS, 128, ISA_PARTITIONS);
	EXPECT(SCATTER, i->indirect.src.space = 3, OPERAND, 3, ISA_SPACE_SLOT);
	/* All rows that there are lie in the slot. */
	EXPECT(SCATTER, i->indirect.rows = 86, SLOT_BOUNDS, 86 * 48, 4096);
	EXPECT(SCATTER, i->indirect.dst.offset = 17, SLOT_BOUNDS, 4097, 4096);
	EXPECT(SCATTER, i->indirect.row_step = (uint64_t)-48, SLOT_BOUNDS, -84 * 48, 4096);
	EXPECT(SCATTER, i->indirect.row_step = 1ull << 62, SLOT_BOUNDS, INT64_MAX / 2, 4096);
	EXPECT(SCATTER, i->indirect.rows = UINT32_MAX, SLOT_BOUNDS, UINT32_MAX * 48ull, 4096);
	EXPECT(SCATTER, i->indirect.dst.slot = 0, EXI_FAULT_SLOT_RIGHTS, EXI_SLOT_WRITE,
	       EXI_SLOT_READ);
	EXPECT(GATHER, i->indirect.src.slot = 1, EXI_FAULT_SLOT_RIGHTS, EXI_SLOT_READ,
	       EXI_SLOT_WRITE);
	EXPECT(GATHER, i->indirect.src.slot = 2, EXI_FAULT_SLOT_INDEX, 2, 2);
	/* 24 rows of 12 elements, of which the other side makes 32 by 9: no row ends with a dim. */
	EXPECT(GATHER,
	       (i->indirect.dst.nparts = 32, i->indirect.dst.ndim = 1, i->indirect.dst.count[0] = 9,
		i->indirect.dst.count[1] = 0, i->indirect.dst.step[1] = 0),
	       OPERAND, 24, 288);
}

static void test_sum_fields(void **state)
{
	(void)state;
	EXPECT(TRANSFER, i->flags = ISA_F_ACCUM, OPERAND, 0, ISA_FP32);
	EXPECT(TRANSFER, (i->flags = ISA_F_ACCUM, i->dma.dst.dtype = ISA_UINT32), OPERAND,
	       ISA_UINT32, ISA_FP32);
	EXPECT(TRANSFER, (i->flags = ISA_F_ACCUM, i->dma.dst.dtype = ISA_FP64), OPERAND, ISA_FP64,
	       ISA_FP32);
	EXPECT(TRANSFER, (i->flags = ISA_F_ACCUM, i->dma.dst.dtype = ISA_BF16), OPERAND, 4, 2);
	EXPECT(TRANSFER,
	       (i->flags = ISA_F_ACCUM, i->dma.dst = i->dma.src, i->dma.dst.dtype = ISA_FP32,
		i->dma.dst.space = ISA_SPACE_PSUM),
	       OPERAND, ISA_SPACE_PSUM, ISA_SPACE_SBUF);
	/* The destination is read: slot 1 has no right to that. */
	EXPECT(TRANSFER, (i->flags = ISA_F_ACCUM, i->dma.dst.dtype = ISA_FP32),
	       EXI_FAULT_SLOT_RIGHTS, EXI_SLOT_READ | EXI_SLOT_WRITE, EXI_SLOT_WRITE);
	EXPECT(SCATTER, (i->flags = ISA_F_ACCUM, i->indirect.dst.dtype = ISA_FP32),
	       EXI_FAULT_SLOT_RIGHTS, EXI_SLOT_READ | EXI_SLOT_WRITE, EXI_SLOT_WRITE);
	EXPECT(SCATTER, i->flags = ISA_F_ACCUM, OPERAND, 0, ISA_FP32);
	EXPECT(GATHER,
	       (i->flags = ISA_F_ACCUM, i->indirect.dst.dtype = ISA_INT32,
		i->indirect.dst.space = ISA_SPACE_PSUM),
	       OPERAND, ISA_SPACE_PSUM, ISA_SPACE_SBUF);
}

#define EXPECT_IMAGE(change, val)                                                                \
	do {                                                                                     \
		struct program *p = whole();                                                     \
		struct nm_fault f = { 0 };                                                       \
		struct nm_program *decoded;                                                      \
		size_t size;                                                                     \
		uint8_t *image = asm_finish(p, &size);                                           \
		struct nprog_header *h = (struct nprog_header *)image;                           \
                                                                                                 \
		change;                                                                          \
		if (size >= sizeof(*h))                                                          \
			asm_seal(image, size);                                                   \
		assert_int_equal(nm_decode(image, size, NEURON_ARCH_V3, &decoded, &f), -EINVAL); \
		assert_null(decoded);                                                            \
		if (f.status != EXI_FAULT_BAD_PROGRAM || f.value != (val))                       \
			fail_msg("%s: status %u, value %llu", #change, f.status,                 \
				 (unsigned long long)f.value);                                   \
		assert_int_equal(f.engine, NM_ENGINE_NONE);                                      \
		free(image);                                                                     \
		free(p);                                                                         \
	} while (0)

#define FIELD(m) offsetof(struct nprog_header, m)

static void test_checksum(void **state)
{
	struct nm_fault f;
	struct nm_program *decoded;
	struct program *p = whole();
	size_t size;
	uint8_t *image = asm_finish(p, &size);

	(void)state;
	image[size - 1] ^= 1;
	assert_int_equal(nm_decode(image, size, NEURON_ARCH_V3, &decoded, &f), -EINVAL);
	assert_int_equal(f.status, EXI_FAULT_BAD_PROGRAM);
	assert_int_equal(f.value, FIELD(crc32c));
	free(image);
	free(p);
}

static void test_image_fields(void **state)
{
	(void)state;
	EXPECT_IMAGE(h->magic++, FIELD(magic));
	EXPECT_IMAGE(h->version_major++, FIELD(version_major));
	EXPECT_IMAGE(h->version_minor = NPROG_VERSION_MINOR + 1, FIELD(version_minor));
	EXPECT_IMAGE(h->header_bytes++, FIELD(header_bytes));
	EXPECT_IMAGE(h->image_bytes -= 64, FIELD(image_bytes));
	EXPECT_IMAGE(size -= 64, FIELD(image_bytes));
	EXPECT_IMAGE(size = 64, FIELD(image_bytes));
	EXPECT_IMAGE(h->arch = 4, FIELD(arch));
	EXPECT_IMAGE(h->flags = 1, FIELD(flags));
	EXPECT_IMAGE(h->n_slots = EXI_SLOTS_MAX + 1, FIELD(n_slots));
	EXPECT_IMAGE(h->slot_offset += 8, FIELD(slot_offset));
	EXPECT_IMAGE(h->slot_offset = 128, FIELD(slot_offset));
	EXPECT_IMAGE(h->stream[2].offset = h->stream[1].offset, FIELD(stream) + 16);
	EXPECT_IMAGE(h->stream[4].count = UINT32_MAX, FIELD(stream) + 32);
	EXPECT_IMAGE(h->stream[4].count--, FIELD(stream) + 32); /* no HALT */
	EXPECT_IMAGE(h->const_bytes = UINT32_MAX, FIELD(const_offset));
	EXPECT_IMAGE(h->name[63] = 'x', FIELD(name));
	EXPECT_IMAGE(h->pad1[5] = 1, FIELD(pad1) + 5);
	EXPECT_IMAGE(image[h->slot_offset + 64 + offsetof(struct nprog_slot, kind)] = 9,
		     h->slot_offset + 64);
}

/* --- fuzzing ------------------------------------------------------------------------------------ */

static uint64_t seed = 0xb5297a4d3f84d5b5u;

static uint32_t rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed >> 20);
}

/* Values that checks tend to forget. */
static uint64_t interesting(void)
{
	static const uint64_t values[] = { 0,	       1,	   2,
					   3,	       4,	   8,
					   16,	       31,	   32,
					   64,	       96,	   127,
					   128,	       129,	   255,
					   511,	       512,	   513,
					   2047,       2048,	   16384,
					   65535,      196607,	   196608,
					   0x7fffffff, 0x80000000, 0xffffffff,
					   1ull << 32, 1ull << 40, INT64_MAX,
					   1ull << 63, UINT64_MAX, UINT64_MAX - 3 };

	return values[rnd() % (sizeof(values) / sizeof(values[0]))];
}

/* Changes up to four places of an image, mostly in instructions. */
static void mutate(uint8_t *image, size_t size)
{
	for (unsigned int n = 1 + rnd() % 4; n; n--) {
		size_t bytes = 1u << rnd() % 4;
		size_t at = (rnd() % 8 ? sizeof(struct nprog_header) : 0) + rnd() % size;
		uint64_t value = rnd() % 3 ? interesting() : rnd() >> (rnd() % 32);

		at = at / bytes * bytes % (size - 8);
		memcpy(image + at, &value, bytes);
	}
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* One image through the decoder, the checksum made right as an attacker would. */
static struct nm_program *try_image(uint8_t *image, size_t size)
{
	struct nm_fault fault = { 0 };
	struct nm_program *decoded;

	asm_seal(image, size);
	if (nm_decode(image, size, NEURON_ARCH_V3, &decoded, &fault) == 0)
		return decoded;
	assert_true(fault.status > EXI_OK && fault.status < EXI_FAULTS);
	assert_true(fault.engine < EXI_ENGINES || fault.engine == NM_ENGINE_NONE);
	return NULL;
}

#define FUZZ_SECONDS 2.0
#define FUZZ_IMAGES  300000

static void test_fuzz_decode(void **state)
{
	struct program *p = whole();
	size_t size;
	uint8_t *image = asm_finish(p, &size), *copy = malloc(size);
	double end = seconds() + FUZZ_SECONDS;
	unsigned int accepted = 0, n;

	(void)state;
	for (n = 0; n < FUZZ_IMAGES && (n % 64 || seconds() < end); n++) {
		struct nm_program *decoded;

		memcpy(copy, image, size);
		if (n % 16 == 0)
			for (size_t i = sizeof(struct nprog_header); i < size; i++)
				copy[i] = (uint8_t)rnd();
		mutate(copy, size);
		decoded = try_image(copy, size);
		accepted += decoded != NULL;
		nm_program_free(decoded);
	}
	print_message("%u images, %u of them well formed\n", n, accepted);
	assert_true(accepted > 0);
	free(copy);
	free(image);
	free(p);
}

/*
 * Random instructions that a decoder must judge; what it lets through is run. Memory errors show
 * under the address sanitizer: slots lie at the end of allocations of their own.
 */
static void test_fuzz_run(void **state)
{
	struct rig *r = rig_create();
	double end = seconds() + FUZZ_SECONDS;
	const struct exi_slot slots[2] = {
		{ .base = RIG_HBM - 4096, .size = 4096, .rights = EXI_SLOT_READ },
		{ .base = 0, .size = 4096, .rights = EXI_SLOT_READ | EXI_SLOT_WRITE },
	};
	struct program *p = whole();
	size_t size;
	uint8_t *image = asm_finish(p, &size), *copy = malloc(size);
	unsigned int ran = 0;

	(void)state;
	rig_queue(r, 0, 1);
	while (seconds() < end) {
		struct nm_program *decoded;
		struct exi_record rec;

		memcpy(copy, image, size);
		mutate(copy, size);
		decoded = try_image(copy, size);
		/* Not those that would take minutes. */
		for (unsigned int e = 0; decoded && e < EXI_ENGINES; e++)
			for (uint32_t i = 0; i < decoded->stream[e].count; i++) {
				const struct nm_inst *in = &decoded->stream[e].inst[i];

				if (isa_is_dma(in->opcode) && in->dma->n > 1u << 20) {
					nm_program_free(decoded);
					decoded = NULL;
					break;
				}
			}
		if (!decoded)
			continue;
		nm_program_free(decoded);
		rec = rig_run(r, 0, rig_load(r, copy, size), slots, 2);
		ran++;
		if (rec.status) {
			rig_set(r, 0, EXI_Q_CONTROL, EXI_Q_RESET);
			rig_queue(r, 0, 1);
		}
	}
	print_message("%u programs ran\n", ran);
	assert_true(ran > 100);
	free(copy);
	free(image);
	free(p);
	rig_destroy(r);
}

/* The checksum of the iSCSI test vectors. */
static void test_crc(void **state)
{
	uint8_t zeros[32] = { 0 };

	(void)state;
	assert_int_equal(hw_crc32c(0, "123456789", 9), 0xe3069283);
	assert_int_equal(~hw_crc32c_portable(~0u, (const uint8_t *)"123456789", 9), 0xe3069283);
	assert_int_equal(hw_crc32c(0, zeros, sizeof(zeros)), 0x8a9136aa);
	assert_int_equal(hw_crc32c(hw_crc32c(0, "1234", 4), "56789", 5), 0xe3069283);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_crc),
		cmocka_unit_test(test_accepts),
		cmocka_unit_test(test_compute_fields),
		cmocka_unit_test(test_tensor_fields),
		cmocka_unit_test(test_semaphore_fields),
		cmocka_unit_test(test_transfer_fields),
		cmocka_unit_test(test_index_fields),
		cmocka_unit_test(test_row_fields),
		cmocka_unit_test(test_sum_fields),
		cmocka_unit_test(test_checksum),
		cmocka_unit_test(test_image_fields),
		cmocka_unit_test(test_fuzz_decode),
		cmocka_unit_test(test_fuzz_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
