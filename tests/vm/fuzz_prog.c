// SPDX-License-Identifier: Apache-2.0
/*
 * Programs for the fuzzer: streams of instructions that make sense, for all engines, of which a
 * third are then damaged in a few places. Most carry a right checksum, so that the damage gets as far as
 * the device.
 */
#include "fuzz.h"
#include "neuron_crc32c.h"

#include <string.h>

#define INSTS_MAX 5 /* of a stream, HALT not counted */

static uint8_t pick(struct fuzz_thread *t, const uint8_t *from, uint32_t n)
{
	return from[fuzz_below(t, n)];
}

static void random_slots(struct fuzz_thread *t, struct prog *p)
{
	for (uint32_t n = fuzz_below(t, PROG_SLOTS + 1); n; n--) {
		unsigned int kind = fuzz_below(t, NPROG_SLOT_SCALAR + 1);

		prog_slot(p, kind, kind == NPROG_SLOT_SCALAR ? 8 : 65536);
	}
}

/* A tile of SBUF or PSUM that lies inside. */
static struct isa_tile random_tile(struct fuzz_thread *t, unsigned int engine)
{
	static const uint8_t dtypes[] = { ISA_INT8,   ISA_UINT8, ISA_BF16,   ISA_FP16,
					  ISA_INT32,  ISA_FP32,	 ISA_FP8_E3, ISA_FP8_E4,
					  ISA_FP8_E5, ISA_TF32,	 ISA_UINT64, ISA_FP64 };
	uint32_t part0 = ISA_PART_QUANTUM * fuzz_below(t, 4);
	struct isa_tile tile = {
		.space = fuzz_once_in(t, 4) ? ISA_SPACE_PSUM : ISA_SPACE_SBUF,
		.dtype = ISA_FP32,
		.part0 = (uint8_t)part0,
		.nparts = (uint8_t)(1 + fuzz_below(t, ISA_PARTITIONS - part0)),
		.offset = 8 * fuzz_below(t, 64),
		.count = { 1, 1, 1 + fuzz_below(t, 4), 1 + fuzz_below(t, 32) },
		.step = { 0, 0, 32, 1 },
	};

	/* The types of 8 bytes, last, are for the GPSIMD engine. */
	if (fuzz_once_in(t, 2))
		tile.dtype = pick(t, dtypes, engine == ISA_GPSIMD ? 12 : 10);
	return tile;
}

/* Another of its shape, or the same. */
static struct isa_tile moved(struct fuzz_thread *t, struct isa_tile tile)
{
	if (fuzz_once_in(t, 2))
		tile.offset = 8 * fuzz_below(t, 64);
	return tile;
}

#define USES_SRC0 0x01
#define USES_SRC1 0x02
#define USES_OP0  0x04
#define USES_OP1  0x08
#define USES_IMM0 0x10
#define USES_IMM1 0x20
#define REDUCES	  0x40

/* Opcodes of the engines that compute on tiles, which trn2 has: V vector, S scalar, G gpsimd. */
#define V (1u << ISA_VECTOR)
#define S (1u << ISA_SCALAR)
#define G (1u << ISA_GPSIMD)
static const struct {
	uint8_t opcode, engines, uses;
} simd[] = {
	{ ISA_MEMSET, V | S | G, USES_IMM0 },
	{ ISA_COPY, V | S | G, USES_SRC0 },
	{ ISA_TENSOR_TENSOR, V | G, USES_SRC0 | USES_SRC1 | USES_OP0 },
	{ ISA_TENSOR_SCALAR, V | S | G, USES_SRC0 | USES_OP0 | USES_OP1 | USES_IMM0 | USES_IMM1 },
	{ ISA_SCALAR_TENSOR_TENSOR, V | G,
	  USES_SRC0 | USES_SRC1 | USES_OP0 | USES_OP1 | USES_IMM0 },
	{ ISA_REDUCE, V | G, USES_SRC0 | REDUCES },
	{ ISA_ACTIVATION, S, USES_SRC0 | USES_IMM0 | USES_IMM1 },
	{ ISA_COPY_PREDICATED, V | G, USES_SRC0 | USES_SRC1 },
	{ ISA_IOTA, G, USES_IMM0 | USES_IMM1 },
	{ ISA_PARTITION_REDUCE, G, USES_SRC0 | REDUCES },
	{ ISA_AFFINE_SELECT, G, USES_SRC0 },
	{ ISA_RNG, V | G, 0 },
	{ ISA_DROPOUT, V, USES_SRC0 },
	{ ISA_N_GATHER, G, USES_SRC0 | USES_SRC1 },
	{ ISA_NONZERO_WITH_COUNT, G, USES_SRC0 },
	{ ISA_SEQUENCE_BOUNDS, G, USES_SRC0 },
};
#undef V
#undef S
#undef G

/* A value that the compute type can hold. */
static uint64_t random_imm(struct fuzz_thread *t, unsigned int compute_type)
{
	switch (compute_type) {
	case ISA_CT_F32:
		return fuzz_once_in(t, 2) ? 0x3f800000 : (uint32_t)fuzz_random(t);
	case ISA_CT_I32:
		return fuzz_below(t, 256);
	default:
		return fuzz_odd_number(t);
	}
}

static void random_operands(struct fuzz_thread *t, unsigned int engine, unsigned int uses,
			    struct isa_inst *inst)
{
	/* Not the bitwise ones, which take integers. */
	const uint32_t ops = ISA_BIT_AND;
	struct isa_compute *c = &inst->compute;
	struct isa_tile tile = random_tile(t, engine);

	c->dst = moved(t, tile);
	if (uses & USES_SRC0)
		c->src0 = moved(t, tile);
	if (uses & USES_SRC1)
		c->src1 = moved(t, tile);
	if (uses & USES_OP0)
		c->op0 = (uint8_t)fuzz_below(t, ops);
	if (uses & USES_OP1)
		c->op1 = (uint8_t)fuzz_below(t, ops);
	if (engine == ISA_GPSIMD)
		c->compute_type = (uint8_t)fuzz_below(t, ISA_CT_BITS);
	if (uses & USES_IMM0)
		c->imm0 = random_imm(t, c->compute_type);
	if (uses & USES_IMM1)
		c->imm1 = random_imm(t, c->compute_type);
}

/* Results rounded stochastically, to a float as large as what dst was to hold. */
static void round_results(struct fuzz_thread *t, struct isa_compute *c)
{
	static const uint8_t floats[] = { 0, ISA_FP8_E4, ISA_BF16, 0, ISA_TF32 };
	const uint32_t bytes = isa_dtype_bytes(c->dst.dtype);

	if (bytes == 8 || !fuzz_once_in(t, 4))
		return;
	c->mode = ISA_MODE_STOCHASTIC;
	c->compute_type = ISA_CT_F32;
	c->dst.dtype = floats[bytes];
	c->imm0 = (uint32_t)c->imm0;
	c->imm1 = (uint32_t)c->imm1;
}

/* What the operands of newer opcodes must be for these to make sense. */
static void fit_operands(struct fuzz_thread *t, struct isa_inst *inst)
{
	struct isa_compute *c = &inst->compute;

	switch (inst->opcode) {
	case ISA_COPY:
	case ISA_TENSOR_TENSOR:
	case ISA_TENSOR_SCALAR:
	case ISA_SCALAR_TENSOR_TENSOR:
	case ISA_ACTIVATION:
		round_results(t, c);
		break;
	case ISA_AFFINE_SELECT:
		c->compute_type = ISA_CT_F32;
		c->op0 = (uint8_t)(ISA_IS_EQ + fuzz_below(t, 6));
		c->affine.start = (uint32_t)fuzz_random(t);
		c->affine.step[3] = (uint32_t)fuzz_random(t);
		break;
	case ISA_RNG:
		c->compute_type = ISA_CT_I32;
		c->dst.dtype = ISA_UINT32;
		break;
	case ISA_DROPOUT:
		c->imm0 = fuzz_below(t, 0x3f800001);
		break;
	case ISA_N_GATHER:
		c->compute_type = ISA_CT_BITS;
		c->dst.space = c->src0.space = c->src1.space = ISA_SPACE_SBUF;
		c->src1.dtype = ISA_UINT32;
		break;
	case ISA_NONZERO_WITH_COUNT:
		c->compute_type = ISA_CT_I32;
		c->dst.space = c->src0.space = ISA_SPACE_SBUF;
		c->dst.dtype = ISA_INT32;
		c->dst.count[3] = c->dst.count[2] * c->dst.count[3] + 1;
		c->dst.count[2] = 1;
		break;
	case ISA_SEQUENCE_BOUNDS:
		c->compute_type = ISA_CT_I32;
		c->dst.space = c->src0.space = ISA_SPACE_SBUF;
		c->dst.dtype = c->src0.dtype = ISA_INT32;
		c->dst.nparts = c->src0.nparts = 1;
		c->dst.count[0] = 2;
		c->dst.step[0] = 256;
		break;
	default:
		break;
	}
}

static void random_compute(struct fuzz_thread *t, unsigned int engine, struct isa_inst *inst)
{
	static const uint8_t reductions[] = { ISA_ADD, ISA_MULT,    ISA_MAX,
					      ISA_MIN, ISA_ABS_MAX, ISA_ABS_MIN };
	struct isa_compute *c = &inst->compute;
	uint32_t i;

	do
		i = fuzz_below(t, sizeof(simd) / sizeof(simd[0]));
	while (!(simd[i].engines & (1u << engine)));
	inst->opcode = simd[i].opcode;
	random_operands(t, engine, simd[i].uses, inst);
	if (simd[i].uses & REDUCES)
		c->op0 = pick(t, reductions, sizeof(reductions));
	if (inst->opcode == ISA_ACTIVATION)
		c->op0 = (uint8_t)fuzz_below(t, ISA_ACTS);
	if (inst->opcode == ISA_PARTITION_REDUCE)
		c->dst.nparts = 1;
	fit_operands(t, inst);
	if (inst->opcode == ISA_REDUCE) {
		inst->flags = fuzz_once_in(t, 4) ? ISA_F_NEGATE : 0;
		c->n_axes = 1;
		c->dst.count[3] = 1;
	}
}

/* What the tensor stream has loaded, in its order: a loop may find another one. */
struct stationary {
	uint32_t k, m;
	uint8_t rows, columns; /* of the array */
	bool doubled; /* double rows */
};

/* Rows or columns of the array, and how many of them hold an operand. */
static uint8_t random_part(struct fuzz_thread *t, uint32_t *n)
{
	const uint32_t size = ISA_ARRAY_QUANTUM << fuzz_below(t, 3);
	const uint32_t first = size * fuzz_below(t, ISA_PARTITIONS / size);

	*n = 1 + fuzz_below(t, size);
	return size == ISA_PARTITIONS ? ISA_ARRAY_ALL : (uint8_t)ISA_ARRAY_PART(first, size);
}

/* [K, M] stationary, [K, N] moving, [M, N] result. */
static void random_tensor(struct fuzz_thread *t, struct isa_inst *inst, struct stationary *s)
{
	uint32_t n = 1 + fuzz_below(t, ISA_PARTITIONS);
	struct isa_compute *c = &inst->compute;

	if (inst->opcode == ISA_LOAD_STATIONARY) {
		s->rows = random_part(t, &s->k);
		s->columns = random_part(t, &s->m);
		s->doubled = s->columns == ISA_ARRAY_ALL && fuzz_once_in(t, 4);
	}
	if (inst->opcode != ISA_TRANSPOSE) {
		c->rows = s->rows;
		c->columns = s->columns;
	}
	c->src0 = (struct isa_tile){ .dtype = ISA_FP32,
				     .nparts = (uint8_t)s->k,
				     .count = { 1, 1, 1, n },
				     .step = { 0, 0, 0, 1 } };
	c->dst = c->src0;
	if (inst->opcode == ISA_LOAD_STATIONARY) {
		c->src0.count[3] = s->m;
		memset(&c->dst, 0, sizeof(c->dst));
	}
	if (s->doubled && inst->opcode != ISA_TRANSPOSE) {
		c->mode = ISA_MODE_DOUBLE_ROW;
		c->src0.dtype = ISA_FP8_E4;
		c->src0.count[3] *= ISA_DOUBLE_ROWS;
	}
	if (inst->opcode == ISA_LOAD_STATIONARY)
		return;
	c->dst.space = ISA_SPACE_PSUM;
	c->dst.nparts = (uint8_t)s->m;
	if (inst->opcode == ISA_TRANSPOSE) {
		c->compute_type = ISA_CT_BITS;
		c->dst.nparts = (uint8_t)n;
		c->dst.count[3] = s->k;
	} else {
		inst->flags = (uint8_t)fuzz_below(t, 2);
	}
}

/* A slot of the program that may be read or written, or the number of slots when none may. */
static unsigned int random_slot(struct fuzz_thread *t, const struct prog *p, uint32_t right)
{
	unsigned int from = fuzz_below(t, PROG_SLOTS);

	for (unsigned int i = 0; i < p->slots; i++) {
		unsigned int slot = (from + i) % p->slots;

		if (p->slot[slot].kind != NPROG_SLOT_SCALAR && p->slot[slot].rights & right)
			return slot;
	}
	return p->slots;
}

/* Between a slot and memory of the core; false: no slot for it. */
static bool random_dma(struct fuzz_thread *t, const struct prog *p, struct isa_inst *inst)
{
	uint32_t bytes = 8 * (1 + fuzz_below(t, 60));
	bool load = fuzz_once_in(t, 2);
	unsigned int slot = random_slot(t, p, load ? EXI_SLOT_READ : EXI_SLOT_WRITE);
	struct isa_dma_side chip = { 0 }, memory = { 0 };

	if (slot == p->slots)
		return false;
	dma_sbuf(&chip, bytes);
	chip.space = fuzz_once_in(t, 4) ? ISA_SPACE_PSUM : ISA_SPACE_SBUF;
	dma_slot(&memory, slot, fuzz_below(t, 4096), TILE_PARTS * bytes);
	inst->opcode = ISA_DMA;
	inst->elem_bytes = 1;
	inst->dma_queue = (uint8_t)fuzz_below(t, ISA_DMA_QUEUES);
	inst->dma.dst = load ? chip : memory;
	inst->dma.src = load ? memory : chip;
	return true;
}

#define REGISTERS 4 /* that programs use, from 1 on */

static uint8_t random_register(struct fuzz_thread *t)
{
	return (uint8_t)(1 + fuzz_below(t, REGISTERS));
}

/* Registers that move operands which there are. */
static void random_shifts(struct fuzz_thread *t, struct isa_inst *inst)
{
	struct isa_compute *c = &inst->compute;

	if (inst->opcode == ISA_DMA) {
		inst->dma.dst.shift = (uint8_t)fuzz_below(t, REGISTERS + 1);
		inst->dma.src.shift = (uint8_t)fuzz_below(t, REGISTERS + 1);
		return;
	}
	if (inst->opcode < ISA_MEMSET || isa_is_reg(inst->opcode))
		return;
	if (c->dst.nparts)
		c->shift[0] = (uint8_t)fuzz_below(t, REGISTERS + 1);
	if (c->src0.nparts)
		c->shift[1] = (uint8_t)fuzz_below(t, REGISTERS + 1);
	if (c->src1.nparts && inst->opcode != ISA_AFFINE_SELECT)
		c->shift[2] = (uint8_t)fuzz_below(t, REGISTERS + 1);
}

/* An element of SBUF, or of a slot. */
static struct isa_place random_place(struct fuzz_thread *t, const struct prog *p, uint32_t right)
{
	static const uint8_t dtypes[] = { ISA_INT32, ISA_UINT8, ISA_FP32, ISA_BF16 };
	unsigned int slot = random_slot(t, p, right);
	struct isa_place place = { .dtype = pick(t, dtypes, sizeof(dtypes)),
				   .offset = fuzz_below(t, 4096) };

	if (slot < p->slots && fuzz_once_in(t, 2)) {
		place.space = ISA_SPACE_SLOT;
		place.slot = (uint16_t)slot;
	} else {
		place.part0 = (uint8_t)fuzz_below(t, ISA_PARTITIONS);
	}
	if (fuzz_once_in(t, 2))
		place.shift = random_register(t);
	return place;
}

/* b: a register, or a number that keeps most operands inside. */
static void random_source(struct fuzz_thread *t, struct isa_inst *inst)
{
	if (fuzz_once_in(t, 4)) {
		inst->reg.b = random_register(t);
		return;
	}
	inst->flags |= ISA_F_IMM;
	inst->reg.imm = fuzz_once_in(t, 16) ? (uint32_t)fuzz_odd_number(t) : fuzz_below(t, 8);
}

static void random_reg(struct fuzz_thread *t, const struct prog *p, struct isa_inst *inst)
{
	static const uint8_t ops[] = { ISA_ADD,	 ISA_SUB, ISA_MAX,     ISA_MIN,	   ISA_IS_EQ,
				       ISA_MULT, ISA_SHR, ISA_BIT_AND, ISA_BIT_XOR };
	struct isa_reg *r = &inst->reg;

	inst->opcode = (uint8_t)(ISA_REG_MOVE + fuzz_below(t, ISA_REG_STORE - ISA_REG_MOVE + 1));
	if (inst->opcode != ISA_REG_STORE)
		r->dst = random_register(t);
	switch (inst->opcode) {
	case ISA_REG_ALU:
		r->a = random_register(t);
		r->op = pick(t, ops, sizeof(ops));
		random_source(t, inst);
		break;
	case ISA_REG_LOAD:
		r->place = random_place(t, p, EXI_SLOT_READ);
		break;
	case ISA_REG_STORE:
		r->a = random_register(t);
		r->place = random_place(t, p, EXI_SLOT_WRITE);
		break;
	default:
		random_source(t, inst);
		break;
	}
}

/* Counts a register up and goes back until it is large enough; now and then anywhere, for ever. */
static void random_loop(struct fuzz_thread *t, struct prog *p, unsigned int engine)
{
	uint32_t top = fuzz_below(t, p->count[engine] + 1);
	struct isa_inst *inst = prog_inst(p, engine, ISA_REG_ALU);

	inst->flags = ISA_F_IMM;
	inst->reg = (struct isa_reg){ .op = ISA_ADD, .imm = 1 };
	inst->reg.dst = inst->reg.a = REGISTERS + 1;
	inst = prog_inst(p, engine, ISA_BRANCH);
	inst->flags = ISA_F_IMM;
	inst->reg = (struct isa_reg){
		.a = REGISTERS + 1, .op = ISA_IS_LT, .imm = 1 + fuzz_below(t, 6), .target = top
	};
	if (fuzz_once_in(t, 16))
		inst->reg.op = (uint8_t)(ISA_IS_EQ + fuzz_below(t, 6));
}

/* The first instruction of a tensor stream loads a stationary operand. */
static void random_inst(struct fuzz_thread *t, struct prog *p, unsigned int engine,
			struct stationary *s)
{
	static const uint8_t tensor[] = { ISA_MATMUL, ISA_MATMUL, ISA_TRANSPOSE,
					  ISA_LOAD_STATIONARY };
	bool first = !p->count[engine];
	struct isa_inst *inst = prog_inst(p, engine, ISA_NOP);

	if (engine == ISA_TENSOR) {
		inst->opcode = first ? ISA_LOAD_STATIONARY : pick(t, tensor, sizeof(tensor));
		random_tensor(t, inst, s);
	} else if (fuzz_once_in(t, 4)) {
		random_reg(t, p, inst);
	} else if (engine == ISA_SYNC || fuzz_once_in(t, 4)) {
		random_dma(t, p, inst);
	} else {
		random_compute(t, engine, inst);
	}
	if (fuzz_once_in(t, 4))
		random_shifts(t, inst);
	/* Waits can only hold in some orders: one in a while, signals often. */
	if (fuzz_once_in(t, 24))
		inst_wait(inst, fuzz_below(t, 4), fuzz_below(t, 3));
	if (inst->wait[0].kind && fuzz_once_in(t, 2))
		inst->wait[0].reg = random_register(t);
	if (fuzz_once_in(t, 2))
		inst_signal(inst, fuzz_below(t, 4));
}

static void damage(struct fuzz_thread *t, uint8_t *image, uint32_t size)
{
	uint32_t from = fuzz_once_in(t, 8) ? 0 : (uint32_t)sizeof(struct nprog_header);
	uint64_t number = fuzz_odd_number(t);
	uint32_t at;

	if (size <= from + sizeof(number))
		return;
	at = from + fuzz_below(t, size - from - (uint32_t)sizeof(number));
	switch (fuzz_below(t, 4)) {
	case 0:
		image[at] ^= (uint8_t)(1u << fuzz_below(t, 8));
		break;
	case 1:
		image[at] = (uint8_t)number;
		break;
	case 2:
		memcpy(&image[at & ~3u], &number, 4);
		break;
	default:
		memcpy(&image[at & ~7u], &number, 8);
		break;
	}
}

void *fuzz_image(struct fuzz_thread *t, uint32_t *size)
{
	struct nprog_header header = { .magic = NPROG_MAGIC,
				       .version_major = NPROG_VERSION_MAJOR,
				       .header_bytes = sizeof(header),
				       .arch = 3,
				       .slot_offset = sizeof(header) };
	struct prog p = { 0 };
	struct stationary stationary = { 0 };
	uint8_t *image;
	uint32_t at;

	random_slots(t, &p);
	at = (uint32_t)(sizeof(header) + p.slots * sizeof(p.slot[0]));
	for (unsigned int e = 0; e < EXI_ENGINES; e++) {
		if (fuzz_once_in(t, 2))
			continue;
		for (uint32_t n = fuzz_below(t, INSTS_MAX + 1); n; n--)
			random_inst(t, &p, e, &stationary);
		if (fuzz_once_in(t, 4))
			random_loop(t, &p, e);
		prog_inst(&p, e, ISA_HALT);
		header.stream[e].offset = at;
		header.stream[e].count = p.count[e];
		at += p.count[e] * ISA_INST_BYTES;
	}
	header.n_slots = p.slots;
	header.image_bytes = at;
	*size = at;
	image = fuzz_alloc(t, at);
	if (!image)
		return NULL;
	memcpy(image, &header, sizeof(header));
	memcpy(image + sizeof(header), p.slot, p.slots * sizeof(p.slot[0]));
	for (unsigned int e = 0; e < EXI_ENGINES; e++)
		memcpy(image + header.stream[e].offset, p.inst[e], p.count[e] * ISA_INST_BYTES);
	if (fuzz_once_in(t, 3))
		for (uint32_t n = 1 + fuzz_below(t, 4); n; n--)
			damage(t, image, at);
	if (!fuzz_once_in(t, 16))
		prog_seal(image, at);
	t->image_slots = p.slots;
	t->image_scalars = 0;
	for (unsigned int i = 0; i < p.slots; i++)
		if (p.slot[i].kind == NPROG_SLOT_SCALAR)
			t->image_scalars |= 1u << i;
	return image;
}
