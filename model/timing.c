// SPDX-License-Identifier: Apache-2.0
/*
 * Figures of each generation. Where the public guides give none, the constant says "assumed".
 * NKI: AWS Neuron documentation 2.33, "Trainium/Inferentia2 Architecture Guide for NKI", the same of
 * Trainium2 and Trainium3, "NKI Performance Guide", "NKI DMA guide".
 */
#include "timing.h"

#include "neuron_pci.h"

/* NKI Performance Guide: access of SBUF or PSUM, once an instruction; about 100 in all when there
 * are far fewer than 128 elements a partition. */
#define ACCESS_CYCLES	   60
#define COMPUTE_CYCLES_MIN 100

/* NKI Trainium/Inferentia2 guide: interval of tiny scalar instructions, as measured. */
#define V2_SCALAR_CYCLES_MIN 264

/* Sync has no public clock: assumed as scalar's. DMA: 16 engines a core. */
static const struct nm_timing trn1 = {
	.clock_khz = { [ISA_TENSOR] = 2800000,
		       [ISA_VECTOR] = 1120000,
		       [ISA_SCALAR] = 1400000,
		       [ISA_GPSIMD] = 1400000,
		       [ISA_SYNC] = 1400000 },
	.scalar_min_cycles = V2_SCALAR_CYCLES_MIN,
	.dma_bytes_per_us = 17000,
	.hbm_bytes_per_us = 820000,
	.transpose_4byte = 4,
	.vector_inputs = 2,
	.scalar_half = 1,
	.sbuf_port = true,
	.psum_port = true,
};

/* Transposing fp32 takes half the passes of fp32 in a matmul. */
static const struct nm_timing trn2 = {
	.clock_khz = { [ISA_TENSOR] = 2400000,
		       [ISA_VECTOR] = 960000,
		       [ISA_SCALAR] = 1200000,
		       [ISA_GPSIMD] = 1200000,
		       [ISA_SYNC] = 1200000 },
	.scalar_min_cycles = COMPUTE_CYCLES_MIN,
	.dma_bytes_per_us = 23000,
	.hbm_bytes_per_us = 2900000,
	.transpose_4byte = 2,
	.vector_inputs = 1,
	.scalar_half = 1,
	.vector_half = true,
};

static const struct nm_timing trn3 = {
	.clock_khz = { [ISA_TENSOR] = 2400000,
		       [ISA_VECTOR] = 1200000,
		       [ISA_SCALAR] = 1200000,
		       [ISA_GPSIMD] = 1200000,
		       [ISA_SYNC] = 1200000 },
	.scalar_min_cycles = COMPUTE_CYCLES_MIN,
	.dma_bytes_per_us = 33000,
	.hbm_bytes_per_us = 4900000,
	.transpose_4byte = 2,
	.vector_inputs = 1,
	.scalar_half = 2,
	.vector_half = true,
	.fp8_half = true,
};

const struct nm_timing *nm_timing_of(uint32_t arch)
{
	switch (arch) {
	case NEURON_ARCH_V2:
		return &trn1;
	case NEURON_ARCH_V4:
		return &trn3;
	default:
		return &trn2;
	}
}

/* NKI Performance Guide: issue interval of a matmul is max(N, 64) cycles; fp32 takes four passes. */
#define MATMUL_CYCLES_MIN 64
#define MATMUL_FP32	  4

/* Control instructions and hand-over of a DMA to its queue: assumed. */
#define CONTROL_CYCLES	 16
#define DMA_ISSUE_CYCLES 64

/* NKI Performance Guide: steps above 16 bytes along the free axis halve the bandwidth. */
#define STRIDE_LIMIT 16

/* NKI activation page: reading the accumulator. */
#define ACCUMULATOR_CYCLES 64

/* Gpsimd: 8 processors with 512-bit vectors are 128 lanes of 4 bytes (NKI Trainium2 guide); 8-byte
 * arithmetic is a routine of several instructions, division and power of many: assumed. */
#define GPSIMD_8BYTE  8
#define GPSIMD_DIVIDE 16

/* NKI DMA guide: about 1.3 us from semaphore to start, 2 us end to end for a small transfer. */
const uint64_t nm_dma_start_ps = 1300000;
const uint64_t nm_dma_end_ps = 700000;

/* Fetch of entry, slot table and first instructions; record and interrupt: assumed, as two small
 * transfers and one. */
const uint64_t nm_launch_start_ps = 4000000;
const uint64_t nm_launch_end_ps = 2000000;

/* Descriptors: at most this long; NKI DMA guide: full rate from 2 KiB on, far under below 256 B,
 * which a fixed 6 ns of each reproduces (94 % at 2 KiB, 65 % at 256 B). */
#define DMA_DESC_BYTES 4096
#define DMA_DESC_PS    6000

/* NKI DMA guide: a transposing transfer between HBM and SBUF, of blocks of 128 by 16 elements, reaches
 * 90 % of the rate of a plain one. */
#define TRANSPOSE_ELEMS	  2048
#define TRANSPOSE_PERCENT 90

/* NKI DMA guide: the hardware that makes descriptors takes about 600 ns an instruction. Those of an
 * indirect transfer are made when its indices are there; the others before. */
#define DGE_PS 600000

static uint64_t cycles_ps(const struct nm_timing *t, uint64_t cycles, unsigned int engine)
{
	return cycles * 1000000000u / t->clock_khz[engine];
}

uint32_t nm_matmul_cycles(uint32_t columns, bool fp32)
{
	uint32_t cycles = columns > MATMUL_CYCLES_MIN ? columns : MATMUL_CYCLES_MIN;

	return fp32 ? cycles * MATMUL_FP32 : cycles;
}

void nm_time_control(const struct nm_timing *t, struct nm_inst *inst, unsigned int engine)
{
	inst->busy_ps =
		cycles_ps(t, isa_is_dma(inst->opcode) ? DMA_ISSUE_CYCLES : CONTROL_CYCLES, engine);
	inst->latency_ps = 0;
}

/* A taken branch: what was fetched behind it is dropped, and the sequencer starts anew. No public figure:
 * assumed, as the hand-over of a transfer. An element on the chip takes the access that an instruction of
 * the engines has; one in HBM the two ends of a small transfer, for which a load makes the engine wait. */
#define BRANCH_TAKEN_CYCLES DMA_ISSUE_CYCLES

void nm_time_reg(const struct nm_timing *t, struct nm_inst *inst, unsigned int engine)
{
	const bool slot = inst->reg->place.space == ISA_SPACE_SLOT;
	const uint64_t access = slot ? nm_dma_start_ps + nm_dma_end_ps :
				       cycles_ps(t, ACCESS_CYCLES, engine);

	nm_time_control(t, inst, engine);
	if (inst->opcode == ISA_BRANCH)
		inst->taken_ps = cycles_ps(t, BRANCH_TAKEN_CYCLES, engine);
	if (inst->opcode == ISA_REG_LOAD)
		inst->busy_ps += access;
	if (inst->opcode == ISA_REG_STORE)
		inst->latency_ps = access;
}

static bool is_half(const struct nm_timing *t, const struct nm_operand *o)
{
	return o->bytes == 0 || o->dtype == ISA_BF16 || o->dtype == ISA_FP16 ||
	       (t->fp8_half && isa_is_fp8(o->dtype));
}

static bool is_packed(const struct nm_operand *o, unsigned int ndim)
{
	return o->bytes == 0 || (o->space == ISA_SPACE_SBUF && o->step[ndim - 1] == o->bytes);
}

static bool is_strided(const struct nm_operand *o, unsigned int ndim)
{
	int32_t step = o->bytes ? o->step[ndim - 1] : 0;

	return step > STRIDE_LIMIT || step < -STRIDE_LIMIT;
}

static bool all_half(const struct nm_timing *t, const struct nm_compute *c)
{
	return is_half(t, &c->dst) && is_half(t, &c->src0) && is_half(t, &c->src1);
}

/* NKI Trainium2 guide: with 2-byte floats only, copies and tensor_scalar take a quarter of the time
 * when packed in SBUF, else half; tensor_tensor half. */
static unsigned int vector_speed(const struct nm_inst *inst, const struct nm_compute *c)
{
	unsigned int nd = c->nest.ndim;

	if (inst->opcode == ISA_COPY || inst->opcode == ISA_MEMSET ||
	    inst->opcode == ISA_TENSOR_SCALAR)
		return is_packed(&c->dst, nd) && is_packed(&c->src0, nd) ? 4 : 2;
	return inst->opcode == ISA_TENSOR_TENSOR ? 2 : 1;
}

/* NKI pages of max8, nc_find_index8, nc_match_replace8, nc_transpose and bn_stats: an element of src0 a cycle, whatever
 * else there is. */
static bool takes_a_row(unsigned int opcode)
{
	return (opcode >= ISA_MAX8 && opcode <= ISA_MATCH_REPLACE8) || opcode == ISA_TRANSPOSE ||
	       opcode == ISA_BN_STATS;
}

/* NKI page of tensor_scalar_reduce: what a reduction adds. */
#define ROW_CYCLES 64

/* NKI page of bn_aggr: cycles for a group. */
#define BN_AGGR_CYCLES 13

/* One element a partition and cycle, of each input on trn1. */
static uint64_t vector_cycles(const struct nm_timing *t, const struct nm_inst *inst,
			      const struct nm_compute *c)
{
	unsigned int nd = c->nest.ndim;
	unsigned int speed = t->vector_half && all_half(t, c) ? vector_speed(inst, c) : 1;
	uint64_t n = (uint64_t)c->n * (c->src0.bytes && c->src1.bytes ? t->vector_inputs : 1);

	/* NKI Trainium3 guide: four elements a cycle. */
	if (inst->opcode == ISA_QUANTIZE_MX)
		return c->columns;
	if (takes_a_row(inst->opcode))
		return (uint64_t)c->n * (is_strided(&c->src0, nd) ? 2 : 1);
	if (inst->opcode == ISA_BN_AGGR)
		return (uint64_t)c->n / ISA_BN_GROUP * BN_AGGR_CYCLES;

	if (is_strided(&c->dst, nd) || is_strided(&c->src0, nd) || is_strided(&c->src1, nd))
		n *= 2;
	return (n + speed - 1) / speed + (c->row.bytes ? ROW_CYCLES : 0);
}

static uint64_t scalar_cycles(const struct nm_timing *t, const struct nm_compute *c)
{
	unsigned int speed = all_half(t, c) ? t->scalar_half : 1;

	return (c->n + speed - 1) / speed + (c->flags & ISA_F_ACCUM ? ACCUMULATOR_CYCLES : 0);
}

static bool is_slow(unsigned int op)
{
	return op == ISA_DIV || op == ISA_MOD || op == ISA_POW;
}

/* NKI pages of affine_select and local_gather: cycles beside those of the elements; assumed of what is like
 * them. */
#define GPSIMD_ROUTINE_CYCLES 150

/* NKI page of local_gather: cycles of n elements in runs, by the quotient C that it gives. */
#define GATHER_RUN   4
#define GATHER_START 28

static uint64_t local_gather_cycles(const struct nm_compute *c)
{
	uint64_t run = c->s0.imm, wide = c->dst.bytes < 4 ? 4u / c->dst.bytes : 1;

	return nm_elems(&c->dst_nest) * (wide < run ? wide : run) * GATHER_RUN * run /
	       (GATHER_START + GATHER_RUN * run);
}

static uint64_t gpsimd_cycles(const struct nm_inst *inst, const struct nm_compute *c)
{
	uint64_t cycles = c->n;

	if (inst->opcode == ISA_N_GATHER)
		cycles = nm_elems(&c->dst_nest);
	if (inst->opcode == ISA_LOCAL_GATHER)
		cycles = local_gather_cycles(c);
	if (inst->opcode == ISA_AFFINE_SELECT ||
	    (inst->opcode >= ISA_N_GATHER && inst->opcode <= ISA_SEQUENCE_BOUNDS))
		cycles += GPSIMD_ROUTINE_CYCLES - ACCESS_CYCLES;
	if (inst->opcode == ISA_PARTITION_REDUCE)
		cycles *= c->nparts;
	if (c->ct == ISA_CT_I64 || c->ct == ISA_CT_F64)
		cycles *= GPSIMD_8BYTE;
	if (is_slow(c->op0) || is_slow(c->op1))
		cycles *= GPSIMD_DIVIDE;
	return cycles;
}

static uint32_t operand_ports(const struct nm_timing *t, const struct nm_operand *o,
			      unsigned int engine)
{
	if (!o->bytes)
		return 0;
	if (o->space == ISA_SPACE_SBUF)
		return t->sbuf_port && engine != ISA_SCALAR ? 1u << NM_PORT_SBUF : 0;
	if (engine == ISA_GPSIMD)
		return 0;
	/* An operand lies within one bank. */
	return t->psum_port ? ((1u << ISA_PSUM_BANKS) - 1) << NM_PORT_PSUM(0) :
			      1u << NM_PORT_PSUM(o->offset / ISA_PSUM_BANK_BYTES);
}

/* NKI Trainium/Inferentia2 guide: vector and gpsimd do not use SBUF at one time, nor vector and
 * scalar PSUM; Trainium2 guide: they do, but for scalar and vector in one bank. */
static uint32_t ports_of(const struct nm_timing *t, const struct nm_compute *c, unsigned int engine)
{
	return operand_ports(t, &c->dst, engine) | operand_ports(t, &c->src0, engine) |
	       operand_ports(t, &c->src1, engine);
}

static void time_tensor(const struct nm_timing *t, struct nm_inst *inst, const struct nm_compute *c,
			uint32_t hidden_cycles)
{
	uint64_t cycles;

	/* NKI Trainium2 guide: double rows take as long as single ones; Trainium3 guide: and four of MX. */
	if (inst->opcode == ISA_LOAD_STATIONARY)
		cycles = c->columns > hidden_cycles ? c->columns - hidden_cycles : 0;
	else if (inst->opcode == ISA_TRANSPOSE)
		cycles = (uint64_t)nm_matmul_cycles(c->n, false) *
			 (c->src0.bytes == 4 ? t->transpose_4byte : 1);
	else
		cycles = nm_matmul_cycles(c->columns, c->src0.dtype == ISA_FP32);
	/* The array is pipelined: its latency delays effects, not the next one. */
	inst->busy_ps = cycles_ps(t, cycles + 1, ISA_TENSOR);
	inst->latency_ps = cycles_ps(t, ACCESS_CYCLES, ISA_TENSOR);
}

/*
 * nki.isa.nc_matmul: products on parts of the array run at the same time. No page says how close they follow each
 * other: assumed, as close as products on the whole of it, whose least interval is taken for that of the issue.
 */
void nm_time_array(const struct nm_timing *t, struct nm_inst *inst, uint16_t array)
{
	const uint64_t issue = cycles_ps(t, MATMUL_CYCLES_MIN + 1, ISA_TENSOR);

	inst->ports |= (uint32_t)array << NM_PORT_ARRAY(0);
	inst->array_ps = inst->busy_ps;
	if (array != NM_ARRAY_ALL && inst->busy_ps > issue)
		inst->busy_ps = issue;
}

void nm_time_compute(const struct nm_timing *t, struct nm_inst *inst, const struct nm_compute *c,
		     unsigned int engine, uint32_t hidden_cycles)
{
	uint64_t cycles, least = COMPUTE_CYCLES_MIN;

	switch (engine) {
	case ISA_TENSOR:
		time_tensor(t, inst, c, hidden_cycles);
		return;
	case ISA_VECTOR:
		cycles = vector_cycles(t, inst, c);
		break;
	case ISA_SCALAR:
		cycles = scalar_cycles(t, c);
		least = t->scalar_min_cycles;
		break;
	default:
		cycles = gpsimd_cycles(inst, c);
		break;
	}
	cycles += ACCESS_CYCLES;
	if (cycles < least)
		cycles = least;
	inst->busy_ps = cycles_ps(t, cycles, engine);
	inst->latency_ps = cycles_ps(t, ACCESS_CYCLES, engine);
	inst->ports = ports_of(t, c, engine);
}

void nm_time_dma(const struct nm_timing *t, struct nm_dma *dma, uint64_t run_bytes)
{
	uint64_t bytes = dma->n * dma->elem_bytes;
	uint64_t runs = bytes / run_bytes;
	uint64_t descs = runs * ((run_bytes + DMA_DESC_BYTES - 1) / DMA_DESC_BYTES);
	/* Rates are of what an engine reads; a sum reads its destination, too. */
	unsigned int reads = dma->sum ? 2 : 1;

	dma->cost_ps = reads * (descs * DMA_DESC_PS + bytes * 1000000 / t->dma_bytes_per_us);
	dma->engines = descs < NM_DMA_ENGINES ? (uint32_t)descs : NM_DMA_ENGINES;
	dma->hbm_bytes = bytes * ((dma->dst.space == ISA_SPACE_SLOT) * reads +
				  (dma->src.space == ISA_SPACE_SLOT));
}

void nm_time_indirect(const struct nm_timing *t, struct nm_dma *dma, uint64_t run_bytes)
{
	/* Rows do not follow each other: a descriptor for each, whether it is left out or not. */
	nm_time_dma(t, dma, run_bytes);
	dma->lead_ps = DGE_PS;
}

void nm_time_shifted(struct nm_dma *dma)
{
	/* Nor are its descriptors made before the registers are known. */
	dma->lead_ps = DGE_PS;
}

void nm_time_transpose(const struct nm_timing *t, struct nm_dma *dma)
{
	uint64_t bytes = dma->n * dma->elem_bytes;
	uint64_t blocks = dma->n / TRANSPOSE_ELEMS;

	dma->cost_ps = bytes * 100 * 1000000 / ((uint64_t)t->dma_bytes_per_us * TRANSPOSE_PERCENT);
	dma->engines = blocks < NM_DMA_ENGINES ? (uint32_t)blocks : NM_DMA_ENGINES;
}

uint64_t nm_hbm_ps(const struct nm_timing *t, uint64_t bytes, unsigned int cores)
{
	return bytes * cores * 1000000 / t->hbm_bytes_per_us;
}

uint64_t nm_udma_ps(const struct nm_timing *t, uint64_t bytes)
{
	return DMA_DESC_PS + bytes * 1000000 / t->dma_bytes_per_us;
}
