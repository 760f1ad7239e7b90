// SPDX-License-Identifier: Apache-2.0
/*
 * The timing model against published figures of each chip; `make timing-check`.
 *
 * Each row runs a program of the instruction in question on a core of the model. A rate or interval
 * is the difference between a program with 2 n of them and one with n, so that the launch itself
 * and the start of the pipeline drop out. What no public page says for a chip is not in its table, and
 * a published figure is what its page says, not what silicon was seen to do. Fails when one is more
 * than 15 % off.
 *
 * Pages (AWS Neuron documentation 2.33): [arch] the chip's Architecture Guide for NKI, [perf] NKI
 * Performance Guide, [dma] Guideline to Avoid Under-Utilizing DMA Bandwidth, [act]
 * nki.isa.activation.
 */
#include <math.h>

#include "rig.h"

#define N_INSTS	  40
#define TENSOR_HZ 2.4e9
#define VECTOR_HZ 0.96e9
#define SCALAR_HZ 1.2e9

#define TRN1_TENSOR_HZ 2.8e9
#define TRN1_VECTOR_HZ 1.12e9
#define TRN1_SCALAR_HZ 1.4e9

#define TRN3_VECTOR_HZ 1.2e9

/* Appends n of what a row is about. */
typedef void (*emit_fn)(struct program *p, unsigned int n);

/* Device time of a program of n, ns. */
static double time_of(struct rig *r, emit_fn emit, unsigned int n)
{
	static const struct exi_slot slot = { .base = 0,
					      .size = 16u << 20,
					      .rights = EXI_SLOT_READ | EXI_SLOT_WRITE };
	struct program *p = calloc(1, sizeof(*p));
	struct exi_record rec;

	asm_slot(p, NPROG_SLOT_INOUT, slot.size);
	emit(p, n);
	rec = rig_program(r, p, &slot);
	free(p);
	if (rec.status != EXI_OK) {
		fprintf(stderr,
			"timing_check: fault %u of engine %u at pc %u, value 0x%llx, limit "
			"0x%llx\n",
			rec.status, rec.engine, rec.pc, (unsigned long long)rec.value,
			(unsigned long long)rec.limit);
		exit(1);
	}
	return (double)(rec.end_ns - rec.start_ns);
}

static double interval(struct rig *r, emit_fn emit)
{
	return (time_of(r, emit, 2 * N_INSTS) - time_of(r, emit, N_INSTS)) / N_INSTS;
}

/* --- what is timed ------------------------------------------------------------------------ */

static struct isa_tile sbuf(unsigned int dtype, uint32_t offset, uint32_t n)
{
	return asm_row(ISA_SPACE_SBUF, dtype, 0, 128, offset, n);
}

static void load_stationary(struct program *p, unsigned int dtype)
{
	asm_inst(p, ISA_TENSOR, ISA_LOAD_STATIONARY)->compute.src0 = sbuf(dtype, 0, 128);
}

static void matmul(struct program *p, unsigned int dtype, uint32_t n)
{
	struct isa_inst *in = asm_inst(p, ISA_TENSOR, ISA_MATMUL);

	in->compute.dst = asm_row(ISA_SPACE_PSUM, ISA_FP32, 0, 128, 0, n);
	in->compute.src0 = sbuf(dtype, 4096, n);
}

static void matmuls(struct program *p, unsigned int n, unsigned int dtype, uint32_t columns)
{
	load_stationary(p, dtype);
	while (n--)
		matmul(p, dtype, columns);
}

static void matmul_bf16(struct program *p, unsigned int n)
{
	matmuls(p, n, ISA_BF16, 512);
}

static void matmul_narrow(struct program *p, unsigned int n)
{
	matmuls(p, n, ISA_BF16, 32);
}

static void matmul_fp32(struct program *p, unsigned int n)
{
	matmuls(p, n, ISA_FP32, 512);
}

static void gemm_bf16(struct program *p, unsigned int n)
{
	while (n--) {
		load_stationary(p, ISA_BF16);
		matmul(p, ISA_BF16, 512);
	}
}

static void gemm_fp32(struct program *p, unsigned int n)
{
	while (n--) {
		load_stationary(p, ISA_FP32);
		matmul(p, ISA_FP32, 512);
	}
}

static void gemm_fp16(struct program *p, unsigned int n)
{
	while (n--) {
		load_stationary(p, ISA_FP16);
		matmul(p, ISA_FP16, 512);
	}
}

static void gemm_tf32(struct program *p, unsigned int n)
{
	while (n--) {
		load_stationary(p, ISA_TF32);
		matmul(p, ISA_TF32, 512);
	}
}

static void gemm_fp8(struct program *p, unsigned int n)
{
	while (n--) {
		load_stationary(p, ISA_FP8_E4);
		matmul(p, ISA_FP8_E4, 512);
	}
}

/* The last two instructions are of many rows in a partition: columns of them all, and their scales. */
static void many_rows(struct program *p, unsigned int mode, uint32_t rows, struct isa_column scale)
{
	struct isa_inst *in = p->inst[ISA_TENSOR] + p->count[ISA_TENSOR] - 2;

	for (unsigned int i = 0; i < 2; i++) {
		in[i].compute.mode = (uint8_t)mode;
		in[i].compute.src0.count[3] *= rows;
		in[i].compute.vec1 = scale;
	}
}

static void gemm_double_rows(struct program *p, unsigned int n)
{
	while (n--) {
		gemm_fp8(p, 1);
		many_rows(p, ISA_MODE_DOUBLE_ROW, ISA_DOUBLE_ROWS, (struct isa_column){ 0 });
	}
}

static const struct isa_column scales = { .offset = 65536, .dtype = ISA_UINT8 };

static void gemm_mx(struct program *p, unsigned int dtype, unsigned int n)
{
	while (n--) {
		load_stationary(p, dtype);
		matmul(p, dtype, 512);
		many_rows(p, ISA_MODE_MX, 1, scales);
	}
}

static void gemm_mxfp8(struct program *p, unsigned int n)
{
	gemm_mx(p, ISA_FP8_E4FN_X4, n);
}

static void gemm_mxfp4(struct program *p, unsigned int n)
{
	gemm_mx(p, ISA_FP4_X4, n);
}

static void quantize_mx(struct program *p, unsigned int n)
{
	while (n--) {
		struct isa_inst *in = asm_inst(p, ISA_VECTOR, ISA_QUANTIZE_MX);

		in->compute.dst = sbuf(ISA_FP8_E4FN_X4, 32768, 4096);
		in->compute.src0 = sbuf(ISA_BF16, 0, 16384);
		in->compute.vec1 = scales;
	}
}

static void transpose_fp32(struct program *p, unsigned int n)
{
	while (n--) {
		struct isa_inst *in = asm_inst(p, ISA_TENSOR, ISA_TRANSPOSE);

		in->compute.dst = asm_row(ISA_SPACE_PSUM, ISA_FP32, 0, 128, 0, 128);
		in->compute.src0 = sbuf(ISA_FP32, 0, 128);
		in->compute.compute_type = ISA_CT_BITS;
	}
}

static void elementwise(struct program *p, unsigned int opcode, struct isa_tile dst,
			struct isa_tile src)
{
	struct isa_inst *in = asm_inst(p, ISA_VECTOR, opcode);

	in->compute.dst = dst;
	in->compute.src0 = src;
	if (opcode == ISA_TENSOR_TENSOR) {
		in->compute.src1 = src;
		in->compute.op0 = ISA_ADD;
	}
}

static void vector_fp32(struct program *p, unsigned int n)
{
	while (n--)
		elementwise(p, ISA_COPY, sbuf(ISA_FP32, 65536, 8192), sbuf(ISA_FP32, 0, 8192));
}

static void vector_copy_bf16(struct program *p, unsigned int n)
{
	while (n--)
		elementwise(p, ISA_COPY, sbuf(ISA_BF16, 65536, 16384), sbuf(ISA_BF16, 0, 16384));
}

static void vector_scalar_bf16(struct program *p, unsigned int n)
{
	while (n--)
		elementwise(p, ISA_TENSOR_SCALAR, sbuf(ISA_BF16, 65536, 16384),
			    sbuf(ISA_BF16, 0, 16384));
}

static void vector_gaps_bf16(struct program *p, unsigned int n)
{
	struct isa_tile src = sbuf(ISA_BF16, 0, 16384);

	src.step[ISA_TILE_DIMS - 1] = 2;
	while (n--)
		elementwise(p, ISA_COPY, sbuf(ISA_BF16, 131072, 16384), src);
}

static void vector_psum_bf16(struct program *p, unsigned int n)
{
	while (n--)
		elementwise(p, ISA_COPY, sbuf(ISA_BF16, 65536, 1024),
			    asm_row(ISA_SPACE_PSUM, ISA_BF16, 0, 128, 0, 1024));
}

static void vector_add_bf16(struct program *p, unsigned int n)
{
	while (n--)
		elementwise(p, ISA_TENSOR_TENSOR, sbuf(ISA_BF16, 65536, 16384),
			    sbuf(ISA_BF16, 0, 16384));
}

static void vector_add_fp32(struct program *p, unsigned int n)
{
	while (n--)
		elementwise(p, ISA_TENSOR_TENSOR, sbuf(ISA_FP32, 65536, 8192),
			    sbuf(ISA_FP32, 0, 8192));
}

static void vector_strided(struct program *p, unsigned int n)
{
	struct isa_tile src = sbuf(ISA_FP32, 0, 4096);

	src.step[ISA_TILE_DIMS - 1] = 8;
	while (n--)
		elementwise(p, ISA_COPY, sbuf(ISA_FP32, 140000, 4096), src);
}

static void activation(struct program *p, uint32_t n, bool accumulate)
{
	struct isa_inst *in = asm_inst(p, ISA_SCALAR, ISA_ACTIVATION);
	const float one = 1;

	in->compute.dst = sbuf(ISA_FP32, 65536, n);
	in->compute.src0 = sbuf(ISA_FP32, 0, n);
	in->compute.op0 = ISA_ACT_EXP;
	memcpy(&in->compute.imm0, &one, sizeof(one));
	if (accumulate) {
		in->flags = ISA_F_ACCUM;
		in->compute.src1 = sbuf(ISA_FP32, 131072, 1);
	}
}

static void scalar_exp(struct program *p, unsigned int n)
{
	while (n--)
		activation(p, 8192, false);
}

static void scalar_sum(struct program *p, unsigned int n)
{
	while (n--)
		activation(p, 512, true);
}

static void scalar_tiny(struct program *p, unsigned int n)
{
	while (n--)
		activation(p, 1, false);
}

/* A chain: each transfer waits for the one before it. */
static void dma_small(struct program *p, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		struct isa_inst *in = asm_dma(p, ISA_SYNC, 0, 1,
					      asm_chip(ISA_SPACE_SBUF, 0, 1, 0, 64, 1),
					      asm_flat(0, 0, 64, 1));

		if (i)
			asm_wait(in, 0, i);
		asm_update(in, 0, 1);
	}
}

static void dma_rows(struct program *p, unsigned int n, uint32_t bytes)
{
	for (unsigned int i = 0; i < n; i++) {
		struct isa_dma_side src = asm_flat(0, 0, 128, 65536);

		src.ndim = 2;
		src.step[1] = 1;
		src.count[1] = bytes;
		asm_dma(p, ISA_SYNC, 0, 1, asm_chip(ISA_SPACE_SBUF, 0, 128, 0, bytes, 1), src);
	}
}

static void dma_64k(struct program *p, unsigned int n)
{
	dma_rows(p, n, 65536);
}

static void dma_4k(struct program *p, unsigned int n)
{
	dma_rows(p, n, 4096);
}

static void dma_2k(struct program *p, unsigned int n)
{
	dma_rows(p, n, 2048);
}

static void dma_hbm(struct program *p, unsigned int n)
{
	while (n--)
		asm_dma(p, ISA_SYNC, 0, 8, asm_flat(0, 8u << 20, 131072, 8),
			asm_flat(0, 0, 131072, 8));
}

/* [2048, 128] of 2 bytes in HBM to [128, 2048]. */
static void dma_transpose(struct program *p, unsigned int n)
{
	struct isa_dma_side src = asm_flat(0, 0, 128, 2);

	src.ndim = 2;
	src.step[1] = 256;
	src.count[1] = 2048;
	while (n--)
		asm_dma(p, ISA_SYNC, 0, 2, asm_chip(ISA_SPACE_SBUF, 0, 128, 0, 2048, 2), src);
}

static uint32_t row_bytes; /* of dma_any() */

static void dma_any(struct program *p, unsigned int n)
{
	dma_rows(p, n, row_bytes);
}

static void dma_one(struct program *p, unsigned int n)
{
	/* n 0: what a launch takes without it. */
	if (n)
		asm_dma(p, ISA_SYNC, 0, 1, asm_chip(ISA_SPACE_SBUF, 0, 1, 0, row_bytes, 1),
			asm_flat(0, 0, row_bytes, 1));
	else
		asm_inst(p, ISA_SYNC, ISA_NOP);
}

/* --- the table ---------------------------------------------------------------------------- */

struct row {
	const char *what, *page, *unit;
	emit_fn emit;
	double published; /* in units */
	double work; /* units = work / ns; 0: the interval itself, in ns */
	unsigned int cores; /* that do the same; work is of all of them */
};

static const struct row trn2[] = {
	{ "matmul bf16 N=512, interval", "perf", "ns", matmul_bf16, 512 / TENSOR_HZ * 1e9, 0, 1 },
	{ "matmul bf16 N=32, interval", "perf", "ns", matmul_narrow, 64 / TENSOR_HZ * 1e9, 0, 1 },
	{ "matmul fp32 N=512, interval", "perf", "ns", matmul_fp32, 4 * 512 / TENSOR_HZ * 1e9, 0,
	  1 },
	{ "new weights each 512 columns, bf16", "arch", "TFLOP/s", gemm_bf16, 79,
	  2e-3 * 128 * 128 * 512, 1 },
	{ "new weights each 512 columns, fp32", "arch", "TFLOP/s", gemm_fp32, 20,
	  2e-3 * 128 * 128 * 512, 1 },
	{ "new weights each 512 columns, fp16", "arch", "TFLOP/s", gemm_fp16, 79,
	  2e-3 * 128 * 128 * 512, 1 },
	{ "new weights each 512 columns, tf32", "arch", "TFLOP/s", gemm_tf32, 79,
	  2e-3 * 128 * 128 * 512, 1 },
	{ "new weights each 512 columns, fp8", "arch", "TFLOP/s", gemm_fp8, 79,
	  2e-3 * 128 * 128 * 512, 1 },
	{ "the same, double rows of fp8", "arch", "TFLOP/s", gemm_double_rows, 158,
	  2e-3 * 128 * 256 * 512, 1 },
	{ "transpose fp32 128x128, half a matmul", "arch", "ns", transpose_fp32,
	  4 * 128 / 2 / TENSOR_HZ * 1e9, 0, 1 },
	{ "vector fp32, N=8192", "perf", "ns", vector_fp32, 8192 / VECTOR_HZ * 1e9, 0, 1 },
	{ "vector copy bf16 in SBUF, 4x", "arch", "ns", vector_copy_bf16,
	  16384 / 4 / VECTOR_HZ * 1e9, 0, 1 },
	{ "vector with scalar bf16 in SBUF, 4x", "arch", "ns", vector_scalar_bf16,
	  16384 / 4 / VECTOR_HZ * 1e9, 0, 1 },
	{ "vector copy bf16, 4-byte steps, 2x", "arch", "ns", vector_gaps_bf16,
	  16384 / 2 / VECTOR_HZ * 1e9, 0, 1 },
	{ "vector copy bf16 from PSUM, 2x", "arch", "ns", vector_psum_bf16,
	  (1024 / 2 + 60) / VECTOR_HZ * 1e9, 0, 1 },
	{ "vector add bf16 in SBUF, 2x", "arch", "ns", vector_add_bf16, 16384 / 2 / VECTOR_HZ * 1e9,
	  0, 1 },
	{ "vector fp32, 32-byte steps, half", "perf", "ns", vector_strided,
	  2 * 4096 / VECTOR_HZ * 1e9, 0, 1 },
	{ "scalar fp32, N=8192", "perf", "ns", scalar_exp, 8192 / SCALAR_HZ * 1e9, 0, 1 },
	{ "scalar with sum, N=512", "act", "ns", scalar_sum, (512 + 64 + 60) / SCALAR_HZ * 1e9, 0,
	  1 },
	{ "scalar, N=1, back to back", "perf", "ns", scalar_tiny, 100 / SCALAR_HZ * 1e9, 0, 1 },
	{ "DMA of 64 B, to its semaphore", "dma", "ns", dma_small, 2000, 0, 1 },
	{ "DMA HBM to SBUF, 64 KiB a partition", "dma", "GB/s", dma_64k, 368, 128.0 * 65536, 1 },
	{ "DMA HBM to SBUF, 4 KiB a partition", "dma", "GB/s", dma_4k, 368, 128.0 * 4096, 1 },
	{ "DMA HBM to SBUF, 2 KiB a partition", "dma", "GB/s", dma_2k, 368, 128.0 * 2048, 1 },
	{ "DMA transpose HBM to SBUF, 2 bytes", "dma", "GB/s", dma_transpose, 0.9 * 368,
	  128.0 * 2048 * 2, 1 },
	{ "HBM to SBUF, 8 cores at once", "arch", "GB/s", dma_64k, 2900, 8 * 128.0 * 65536, 8 },
	{ "HBM to HBM, 8 cores, read and written", "arch", "GB/s", dma_hbm, 2900,
	  8 * 2 * 131072.0 * 8, 8 },
};

/* 92 and 23 TFLOP/s are of the tables by data type; the tiny scalar instruction was measured. */
static const struct row trn1[] = {
	{ "matmul bf16 N=512, interval", "perf", "ns", matmul_bf16, 512 / TRN1_TENSOR_HZ * 1e9, 0,
	  1 },
	{ "new weights each 512 columns, bf16", "arch", "TFLOP/s", gemm_bf16, 92,
	  2e-3 * 128 * 128 * 512, 1 },
	{ "new weights each 512 columns, fp32", "arch", "TFLOP/s", gemm_fp32, 23,
	  2e-3 * 128 * 128 * 512, 1 },
	{ "new weights each 512 columns, tf32", "arch", "TFLOP/s", gemm_tf32, 92,
	  2e-3 * 128 * 128 * 512, 1 },
	{ "new weights each 512 columns, fp8", "arch", "TFLOP/s", gemm_fp8, 92,
	  2e-3 * 128 * 128 * 512, 1 },
	{ "vector fp32, N=8192", "perf", "ns", vector_fp32, 8192 / TRN1_VECTOR_HZ * 1e9, 0, 1 },
	{ "vector fp32, two inputs, N=8192", "arch", "ns", vector_add_fp32,
	  2 * 8192 / TRN1_VECTOR_HZ * 1e9, 0, 1 },
	{ "scalar fp32, N=8192", "perf", "ns", scalar_exp, 8192 / TRN1_SCALAR_HZ * 1e9, 0, 1 },
	{ "scalar, N=1, back to back", "perf", "ns", scalar_tiny, 189, 0, 1 },
	{ "DMA HBM to SBUF, 64 KiB a partition", "arch", "GB/s", dma_64k, 272, 128.0 * 65536, 1 },
	{ "HBM to HBM, 2 cores, read and written", "arch", "GB/s", dma_hbm, 820,
	  2 * 2 * 131072.0 * 8, 2 },
};

static const struct row trn3[] = {
	{ "matmul bf16 N=512, interval", "perf", "ns", matmul_bf16, 512 / TENSOR_HZ * 1e9, 0, 1 },
	{ "new weights each 512 columns, bf16", "arch", "TFLOP/s", gemm_bf16, 79,
	  2e-3 * 128 * 128 * 512, 1 },
	{ "new weights each 512 columns, fp32", "arch", "TFLOP/s", gemm_fp32, 20,
	  2e-3 * 128 * 128 * 512, 1 },
	{ "new weights each 512 columns, tf32", "arch", "TFLOP/s", gemm_tf32, 79,
	  2e-3 * 128 * 128 * 512, 1 },
	{ "the same, MXFP8", "arch", "TFLOP/s", gemm_mxfp8, 315, 2e-3 * 128 * 512 * 512, 1 },
	{ "the same, MXFP4", "arch", "TFLOP/s", gemm_mxfp4, 315, 2e-3 * 128 * 512 * 512, 1 },
	{ "MX made of bf16, 4x", "arch", "ns", quantize_mx, 16384 / 4 / TRN3_VECTOR_HZ * 1e9, 0,
	  1 },
	{ "vector fp32, N=8192", "perf", "ns", vector_fp32, 8192 / TRN3_VECTOR_HZ * 1e9, 0, 1 },
	{ "vector copy bf16 in SBUF, 4x", "arch", "ns", vector_copy_bf16,
	  16384 / 4 / TRN3_VECTOR_HZ * 1e9, 0, 1 },
	{ "vector add bf16 in SBUF, 2x", "arch", "ns", vector_add_bf16,
	  16384 / 2 / TRN3_VECTOR_HZ * 1e9, 0, 1 },
	{ "scalar fp32, N=8192", "perf", "ns", scalar_exp, 8192 / SCALAR_HZ * 1e9, 0, 1 },
	{ "DMA HBM to SBUF, 64 KiB a partition", "arch", "GB/s", dma_64k, 528, 128.0 * 65536, 1 },
	{ "HBM to HBM, 8 cores, read and written", "arch", "GB/s", dma_hbm, 4900,
	  8 * 2 * 131072.0 * 8, 8 },
};

#define ROWS(table) table, sizeof(table) / sizeof((table)[0])

static const struct chip {
	const char *name;
	uint32_t arch;
	const struct row *rows;
	size_t n;
} chips[] = {
	{ "trn2", NEURON_ARCH_V3, ROWS(trn2) },
	{ "trn1, inf2", NEURON_ARCH_V2, ROWS(trn1) },
	{ "trn3", NEURON_ARCH_V4, ROWS(trn3) },
};

/* What no page gives numbers for: full from 2 KiB on, far under below 256 B. */
static void print_dma(struct rig *r)
{
	printf("%-38s %10s %10s\n", "trn2, DMA HBM to SBUF by size", "alone, us", "GB/s");
	for (row_bytes = 16; row_bytes <= 65536; row_bytes *= 4) {
		double alone = time_of(r, dma_one, 1) - time_of(r, dma_one, 0);

		printf("%6u B, or that in each partition      %10.2f %10.1f\n", row_bytes,
		       alone / 1e3, 128.0 * row_bytes / interval(r, dma_any));
	}
}

/* Prints a chip's table; rows of it that are within 15 %. */
static unsigned int check_chip(const struct chip *chip)
{
	struct rig *r = rig_create_of(chip->arch, 0, NULL);
	char title[64];
	unsigned int within = 0;

	rig_queue(r, 0, 1);
	snprintf(title, sizeof(title), "%s, one core", chip->name);
	printf("%-38s %-5s %10s %10s  %-8s %s\n", title, "page", "published", "model", "unit",
	       "deviation");
	for (const struct row *row = chip->rows; row < chip->rows + chip->n; row++) {
		double ns, model, off;

		r->in_use = row->cores;
		ns = interval(r, row->emit);
		model = row->work ? row->work / ns : ns;
		off = 100 * (model / row->published - 1);

		within += fabs(off) <= 15;
		printf("%-38s %-5s %10.1f %10.1f  %-8s %+.1f %%\n", row->what, row->page,
		       row->published, model, row->unit, off);
	}
	printf("%u of %zu within 15 %%\n\n", within, chip->n);
	rig_destroy(r);
	return within;
}

int main(void)
{
	size_t off = 0;
	struct rig *r;

	for (size_t i = 0; i < sizeof(chips) / sizeof(chips[0]); i++)
		off += chips[i].n - check_chip(&chips[i]);
	r = rig_create();
	rig_queue(r, 0, 1);
	print_dma(r);
	rig_destroy(r);
	return off > 0;
}
