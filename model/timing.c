// SPDX-License-Identifier: Apache-2.0
/*
 * Figures of trn2. Where the public guides give none, the constant says "assumed".
 * NKI: AWS Neuron documentation 2.33, "Trainium2 Architecture Guide for NKI", "NKI Performance
 * Guide", "NKI DMA guide".
 */
#include "timing.h"

/* Clocks in kHz. NKI Trainium2 guide: tensor 2.4 GHz, vector 0.96, scalar and gpsimd 1.2; sync has
 * no public clock, assumed as scalar's. */
static const uint32_t clock_khz[EXI_ENGINES] = {
	[ISA_TENSOR] = 2400000, [ISA_VECTOR] = 960000, [ISA_SCALAR] = 1200000,
	[ISA_GPSIMD] = 1200000, [ISA_SYNC] = 1200000,
};

/* NKI Performance Guide: access of SBUF or PSUM, once an instruction; about 100 in all when there
 * are far fewer than 128 elements a partition. */
#define ACCESS_CYCLES	   60
#define COMPUTE_CYCLES_MIN 100

/* NKI Performance Guide: issue interval of a matmul is max(N, 64) cycles; fp32 takes four passes. */
#define MATMUL_CYCLES_MIN 64
#define MATMUL_FP32	  4

/* NKI Trainium2 guide: fp32 in transpose mode takes half the passes of fp32 in a matmul. */
#define TRANSPOSE_4BYTE 2

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

/* NKI Trainium2 guide: 16 DMA engines of 23 bytes/ns a core. */
#define DMA_BYTES_PER_US 23000

/* NKI Trainium2 guide: 2.9 TB/s of the 4 stacks together, which the cores that are in use share. */
#define HBM_BYTES_PER_US 2900000

/* Descriptors: at most this long; NKI DMA guide: full rate from 2 KiB on, far under below 256 B,
 * which a fixed 6 ns of each reproduces (94 % at 2 KiB, 65 % at 256 B). */
#define DMA_DESC_BYTES 4096
#define DMA_DESC_PS    6000

/* NKI DMA guide: a transposing transfer between HBM and SBUF, of blocks of 128 by 16 elements, reaches
 * 90 % of the rate of a plain one. */
#define TRANSPOSE_ELEMS	  2048
#define TRANSPOSE_PERCENT 90

static uint64_t cycles_ps(uint64_t cycles, unsigned int engine)
{
	return cycles * 1000000000u / clock_khz[engine];
}

uint32_t nm_clock_khz(unsigned int engine)
{
	return clock_khz[engine];
}

uint32_t nm_matmul_cycles(uint32_t columns, bool fp32)
{
	uint32_t cycles = columns > MATMUL_CYCLES_MIN ? columns : MATMUL_CYCLES_MIN;

	return fp32 ? cycles * MATMUL_FP32 : cycles;
}

void nm_time_control(struct nm_inst *inst, unsigned int engine)
{
	inst->busy_ps =
		cycles_ps(inst->opcode == ISA_DMA ? DMA_ISSUE_CYCLES : CONTROL_CYCLES, engine);
	inst->latency_ps = 0;
}

static bool is_half(const struct nm_operand *o)
{
	return o->bytes == 0 || o->dtype == ISA_BF16 || o->dtype == ISA_FP16;
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

/* NKI Trainium2 guide, vector engine: one element a partition and cycle; with 2-byte floats only,
 * copies and tensor_scalar 4x when packed in SBUF, else 2x; tensor_tensor 2x. */
static uint64_t vector_cycles(const struct nm_inst *inst, const struct nm_compute *c)
{
	unsigned int nd = c->nest.ndim;
	unsigned int speed = 1;

	if (is_half(&c->dst) && is_half(&c->src0) && is_half(&c->src1)) {
		bool packed = is_packed(&c->dst, nd) && is_packed(&c->src0, nd);

		if (inst->opcode == ISA_COPY || inst->opcode == ISA_MEMSET ||
		    inst->opcode == ISA_TENSOR_SCALAR)
			speed = packed ? 4 : 2;
		else if (inst->opcode == ISA_TENSOR_TENSOR)
			speed = 2;
	}
	if (is_strided(&c->dst, nd) || is_strided(&c->src0, nd) || is_strided(&c->src1, nd))
		return (uint64_t)c->n * 2 / speed;
	return (c->n + speed - 1) / speed;
}

static bool is_slow(unsigned int op)
{
	return op == ISA_DIV || op == ISA_MOD || op == ISA_POW;
}

static uint64_t gpsimd_cycles(const struct nm_inst *inst, const struct nm_compute *c)
{
	uint64_t cycles = c->n;

	if (inst->opcode == ISA_PARTITION_REDUCE)
		cycles *= c->nparts;
	if (c->ct == ISA_CT_I64 || c->ct == ISA_CT_F64)
		cycles *= GPSIMD_8BYTE;
	if (is_slow(c->op0) || is_slow(c->op1))
		cycles *= GPSIMD_DIVIDE;
	return cycles;
}

void nm_time_compute(struct nm_inst *inst, const struct nm_compute *c, unsigned int engine,
		     uint32_t hidden_cycles)
{
	uint64_t cycles = 0;
	bool fp32 = c->src0.dtype == ISA_FP32;

	switch (engine) {
	case ISA_TENSOR:
		if (inst->opcode == ISA_LOAD_STATIONARY)
			cycles = c->n > hidden_cycles ? c->n - hidden_cycles : 0;
		else if (inst->opcode == ISA_TRANSPOSE)
			cycles = (uint64_t)nm_matmul_cycles(c->n, false) *
				 (c->src0.bytes == 4 ? TRANSPOSE_4BYTE : 1);
		else
			cycles = nm_matmul_cycles(c->n, fp32);
		/* The array is pipelined: its latency delays effects, not the next one. */
		inst->busy_ps = cycles_ps(cycles + 1, engine);
		inst->latency_ps = cycles_ps(ACCESS_CYCLES, engine);
		return;
	case ISA_VECTOR:
		cycles = vector_cycles(inst, c);
		break;
	case ISA_SCALAR:
		cycles = c->n + (c->flags & ISA_F_ACCUM ? ACCUMULATOR_CYCLES : 0);
		break;
	default:
		cycles = gpsimd_cycles(inst, c);
		break;
	}
	cycles += ACCESS_CYCLES;
	if (cycles < COMPUTE_CYCLES_MIN)
		cycles = COMPUTE_CYCLES_MIN;
	inst->busy_ps = cycles_ps(cycles, engine);
	inst->latency_ps = cycles_ps(ACCESS_CYCLES, engine);
}

void nm_time_dma(struct nm_dma *dma, uint64_t run_bytes)
{
	uint64_t bytes = dma->n * dma->elem_bytes;
	uint64_t runs = bytes / run_bytes;
	uint64_t descs = runs * ((run_bytes + DMA_DESC_BYTES - 1) / DMA_DESC_BYTES);

	dma->cost_ps = descs * DMA_DESC_PS + bytes * 1000000 / DMA_BYTES_PER_US;
	dma->engines = descs < NM_DMA_ENGINES ? (uint32_t)descs : NM_DMA_ENGINES;
	dma->hbm_bytes =
		bytes * ((dma->dst.space == ISA_SPACE_SLOT) + (dma->src.space == ISA_SPACE_SLOT));
}

void nm_time_transpose(struct nm_dma *dma)
{
	uint64_t bytes = dma->n * dma->elem_bytes;
	uint64_t blocks = dma->n / TRANSPOSE_ELEMS;

	dma->cost_ps = bytes * 100 * 1000000 / (DMA_BYTES_PER_US * TRANSPOSE_PERCENT);
	dma->engines = blocks < NM_DMA_ENGINES ? (uint32_t)blocks : NM_DMA_ENGINES;
}

uint64_t nm_hbm_ps(uint64_t bytes, unsigned int cores)
{
	return bytes * cores * 1000000 / HBM_BYTES_PER_US;
}

uint64_t nm_udma_ps(uint64_t bytes)
{
	return DMA_DESC_PS + bytes * 1000000 / DMA_BYTES_PER_US;
}
