// SPDX-License-Identifier: Apache-2.0
/* Tensor engine: products in fp32, whatever the operands are. */
#include <string.h>

#include "exec.h"

/* A row of the stationary operand, of 4-byte elements, to its place. */
static void pack(struct nm_exec *x, const void *row, unsigned int k, unsigned int n_k)
{
	const size_t block = NM_GEMM_PACK * sizeof(float);
	uint8_t *out = (uint8_t *)x->stationary + k * block;
	const uint8_t *in = row;

	for (unsigned int m = 0; m < x->load_m; m += NM_GEMM_PACK, in += block)
		memcpy(out + (size_t)m / NM_GEMM_PACK * n_k * block, in, block);
}

/* False: they can't be pairs. */
static bool load_pairs(struct nm_exec *x, const struct nm_compute *c)
{
	uint16_t even[ISA_MATMUL_M_MAX], odd[ISA_MATMUL_M_MAX];
	uint32_t row[ISA_MATMUL_M_MAX] = { 0 };

	for (unsigned int k = 0; k < c->nparts; k += 2) {
		bool last = k + 1u == c->nparts;

		nm_fetch_bits(x, &c->src0, &c->nest, k, even);
		if (!last)
			nm_fetch_bits(x, &c->src0, &c->nest, k + 1, odd);
		if (!x->pairs->make(row, even, last ? NULL : odd, c->n))
			return false;
		pack(x, row, k / 2, (c->nparts + 1u) / 2);
	}
	return true;
}

void nm_exec_load_stationary(struct nm_exec *x, const struct nm_compute *c)
{
	float row[ISA_MATMUL_M_MAX] = { 0 };

	x->load_k = c->nparts;
	x->load_m = c->n;
	x->load_pairs = x->pairs && c->src0.dtype == ISA_BF16 && load_pairs(x, c);
	for (unsigned int k = 0; k < c->nparts && !x->load_pairs; k++) {
		nm_fetch(x, ISA_CT_F32, &c->src0, &c->nest, k, row);
		pack(x, row, k, c->nparts);
	}
}

/* Makes fp32 of the stationary operand's pairs. */
static void unpair(struct nm_exec *x)
{
	const unsigned int pairs = (x->load_k + 1) / 2, blocks = (x->load_m - 1) / NM_GEMM_PACK + 1;
	uint32_t *out = x->stationary, *in = (uint32_t *)x->buffer[0];

	memcpy(in, out, sizeof(*in) * pairs * blocks * NM_GEMM_PACK);
	for (unsigned int b = 0; b < blocks; b++)
		for (unsigned int k = 0; k < x->load_k; k++)
			for (unsigned int i = 0; i < NM_GEMM_PACK; i++) {
				uint32_t pair = in[(b * pairs + k / 2) * NM_GEMM_PACK + i];

				*out++ = k % 2 ? pair << 16 : pair & 0xffff0000u;
			}
	x->load_pairs = false;
}

static const uint16_t *bf16_row(const struct nm_exec *x, const struct nm_compute *c, unsigned int k,
				uint16_t *buf)
{
	if (c->nest.ndim == 1 && c->src0.step[0] == c->src0.bytes)
		return (const uint16_t *)nm_operand_ptr(x, &c->src0, k);
	nm_fetch_bits(x, &c->src0, &c->nest, k, buf);
	return buf;
}

/* The moving operand as pairs; false: it can't be. */
static bool moving_pairs(struct nm_exec *x, const struct nm_compute *c)
{
	uint16_t even[ISA_MATMUL_N_MAX], odd[ISA_MATMUL_N_MAX];
	uint32_t *out = x->moving;

	for (unsigned int k = 0; k < x->load_k; k += 2, out += c->n)
		if (!x->pairs->make(out, bf16_row(x, c, k, even),
				    k + 1 < x->load_k ? bf16_row(x, c, k + 1, odd) : NULL, c->n))
			return false;
	return true;
}

/* The moving operand as fp32, where it lies if it can be used there. */
static const void *moving_fp32(struct nm_exec *x, const struct nm_compute *c, ptrdiff_t *pitch)
{
	if (c->src0.dtype == ISA_FP32 && c->nest.ndim == 1 && c->src0.step[0] == sizeof(float)) {
		*pitch = NM_SBUF_PITCH / sizeof(float);
		return nm_operand_ptr(x, &c->src0, 0);
	}
	for (unsigned int k = 0; k < x->load_k; k++)
		nm_fetch(x, ISA_CT_F32, &c->src0, &c->nest, k,
			 (float *)x->moving + (size_t)k * c->n);
	return x->moving;
}

/* Adds or stores row m of the product to dst, whose elements are not packed. */
static void put_row(const struct nm_exec *x, const struct nm_compute *c, unsigned int m)
{
	unsigned int inner = c->dst_nest.ndim - 1u;
	uint32_t row = c->dst_nest.count[inner];
	bool accumulate = c->flags & ISA_F_ACCUM;
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

/* By one thread: where the processors' caches are far apart, sharing the operands of so small a product
 * took longer than it saved. */
void nm_exec_matmul(struct nm_exec *x, const struct nm_compute *c)
{
	bool direct = c->dst_nest.ndim == 1 && c->dst.step[0] == sizeof(float);
	bool accumulate = direct && c->flags & ISA_F_ACCUM;
	bool pairs = x->load_pairs && c->src0.dtype == ISA_BF16 && moving_pairs(x, c);
	float *result = direct ? (float *)nm_operand_ptr(x, &c->dst, 0) : x->product;
	ptrdiff_t result_pitch = direct ? NM_PSUM_PITCH / (ptrdiff_t)sizeof(float) : c->n;
	ptrdiff_t pitch = c->n;

	if (pairs) {
		x->pairs->gemm(result, result_pitch, x->stationary, x->moving, pitch, x->load_m,
			       c->n, (x->load_k + 1) / 2, accumulate);
	} else {
		const void *moving = moving_fp32(x, c, &pitch);

		if (x->load_pairs)
			unpair(x);
		x->rows->gemm(result, result_pitch, x->stationary, moving, pitch, x->load_m, c->n,
			      x->load_k, accumulate);
	}
	for (unsigned int m = 0; m < x->load_m && !direct; m++)
		put_row(x, c, m);
}

/* No row kernel has bytes: there are 32 by 32 of them at most. */
static void transpose_bytes(uint8_t *d, const uint8_t *s, size_t rows, size_t cols)
{
	for (size_t i = 0; i < rows; i++)
		for (size_t j = 0; j < cols; j++)
			d[j * rows + i] = s[i * cols + j];
}

/* dst [F, P] = src0 [P, F], elements unchanged. */
void nm_exec_transpose(struct nm_exec *x, const struct nm_compute *c)
{
	unsigned int log2 = (unsigned int)__builtin_ctz(c->src0.bytes);
	unsigned int inner = c->dst_nest.ndim - 1u;
	size_t row = (size_t)c->n * c->src0.bytes;
	uint8_t *rows = (uint8_t *)x->buffer[0], *columns = (uint8_t *)x->buffer[1];

	for (unsigned int p = 0; p < c->nparts; p++)
		nm_fetch_bits(x, &c->src0, &c->nest, p, rows + p * row);
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
			x->rows->copy[log2](dst + nm_at(idx, c->dst.step, inner),
					    c->dst.step[inner], in, c->dst.bytes,
					    c->dst_nest.count[inner]);
			in += (size_t)c->dst_nest.count[inner] * c->dst.bytes;
		} while (nm_next(idx, c->dst_nest.count, inner));
	}
}
