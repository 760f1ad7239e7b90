// SPDX-License-Identifier: Apache-2.0
/* Tensor engine: products in fp32, whatever the operands are. */
#include <string.h>

#include "exec.h"

void nm_exec_load_stationary(struct nm_exec *x, const struct nm_compute *c)
{
	const unsigned int pack = NM_GEMM_PACK;
	float row[ISA_MATMUL_M_MAX] = { 0 };

	x->load_k = c->nparts;
	x->load_m = c->n;
	for (unsigned int k = 0; k < c->nparts; k++) {
		float *out = x->stationary + k * pack;

		nm_fetch(x, ISA_CT_F32, &c->src0, &c->nest, k, row);
		for (unsigned int m = 0; m < c->n; m += pack, out += (size_t)pack * c->nparts)
			memcpy(out, row + m, pack * sizeof(*out));
	}
}

/* Adds or stores product [M][N] to dst, whose elements are not packed. */
static void put_product(struct nm_exec *x, const struct nm_compute *c)
{
	unsigned int inner = c->dst_nest.ndim - 1u;
	uint32_t row = c->dst_nest.count[inner];
	bool accumulate = c->flags & ISA_F_ACCUM;

	for (unsigned int m = 0; m < x->load_m; m++) {
		const float *in = x->product + (size_t)m * c->n;
		uint8_t *dst = nm_operand_ptr(x, &c->dst, m);
		uint32_t idx[ISA_TILE_DIMS] = { 0 };

		do {
			uint8_t *out = dst + nm_at(idx, c->dst.step, inner);

			for (uint32_t i = 0; i < row; i++, out += c->dst.step[inner]) {
				float old;

				memcpy(&old, out, sizeof(old));
				old = accumulate ? old + *in : *in;
				memcpy(out, &old, sizeof(old));
				in++;
			}
		} while (nm_next(idx, c->dst_nest.count, inner));
	}
}

void nm_exec_matmul(struct nm_exec *x, const struct nm_compute *c)
{
	bool direct = c->dst_nest.ndim == 1 && c->dst.step[0] == sizeof(float);
	const float *moving = (const float *)nm_operand_ptr(x, &c->src0, 0);
	ptrdiff_t pitch = NM_SBUF_PITCH / sizeof(float);
	float *result = x->product;
	ptrdiff_t result_pitch = c->n;

	if (c->src0.dtype != ISA_FP32 || c->nest.ndim != 1 || c->src0.step[0] != sizeof(float)) {
		for (unsigned int k = 0; k < x->load_k; k++)
			nm_fetch(x, ISA_CT_F32, &c->src0, &c->nest, k,
				 x->moving + (size_t)k * c->n);
		moving = x->moving;
		pitch = c->n;
	}
	if (direct) {
		result = (float *)nm_operand_ptr(x, &c->dst, 0);
		result_pitch = NM_PSUM_PITCH / sizeof(float);
	}
	x->rows->gemm(result, result_pitch, x->stationary, moving, pitch, x->load_m, c->n,
		      x->load_k, direct && c->flags & ISA_F_ACCUM);
	if (!direct)
		put_product(x, c);
}

/* dst [F, P] = src0 [P, F], elements unchanged. */
/* No row kernel has bytes: there are 32 by 32 of them at most. */
static void transpose_bytes(uint8_t *d, const uint8_t *s, size_t rows, size_t cols)
{
	for (size_t i = 0; i < rows; i++)
		for (size_t j = 0; j < cols; j++)
			d[j * rows + i] = s[i * cols + j];
}

void nm_exec_transpose(struct nm_exec *x, const struct nm_compute *c)
{
	unsigned int log2 = (unsigned int)__builtin_ctz(c->src0.bytes);
	unsigned int inner = c->nest.ndim - 1u, dst_inner = c->dst_nest.ndim - 1u;
	size_t row = (size_t)c->n * c->src0.bytes;
	uint8_t *rows = (uint8_t *)x->buffer[0], *columns = (uint8_t *)x->buffer[1];

	for (unsigned int p = 0; p < c->nparts; p++) {
		const uint8_t *src = nm_operand_ptr(x, &c->src0, p);
		uint32_t idx[ISA_TILE_DIMS] = { 0 };
		uint8_t *out = rows + p * row;

		do {
			x->rows->copy[log2](out, c->src0.bytes,
					    src + nm_at(idx, c->src0.step, inner),
					    c->src0.step[inner], c->nest.count[inner]);
			out += (size_t)c->nest.count[inner] * c->src0.bytes;
		} while (nm_next(idx, c->nest.count, inner));
	}
	if (c->src0.bytes == 1)
		transpose_bytes(columns, rows, c->nparts, c->n);
	else
		x->rows->transpose[log2](columns, (ptrdiff_t)c->nparts * c->src0.bytes, rows,
					 (ptrdiff_t)row, c->nparts, c->n);
	for (unsigned int f = 0; f < c->n; f++) {
		const uint8_t *in = columns + (size_t)f * c->nparts * c->src0.bytes;
		uint8_t *dst = nm_operand_ptr(x, &c->dst, f);
		uint32_t idx[ISA_TILE_DIMS] = { 0 };

		do {
			x->rows->copy[log2](dst + nm_at(idx, c->dst.step, dst_inner),
					    c->dst.step[dst_inner], in, c->dst.bytes,
					    c->dst_nest.count[dst_inner]);
			in += (size_t)c->dst_nest.count[dst_inner] * c->dst.bytes;
		} while (nm_next(idx, c->dst_nest.count, dst_inner));
	}
}
