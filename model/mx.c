// SPDX-License-Identifier: Apache-2.0
/*
 * MX formats (OCP Microscaling Formats 1.0): groups of 8 partitions by 4 elements share a scale, a power
 * of two. What the public page says of quantize_mx is followed; NaN and infinities are ours.
 */
#include <string.h>

#include "exec.h"

#define SCALE_BIAS 127
#define SCALE_NAN  255
#define INFINITE   0x7f800000u

static float of_bits(uint32_t bits)
{
	float x;

	memcpy(&x, &bits, sizeof(x));
	return x;
}

/* 2^exp for -127..127. */
static float power_of_two(int exp)
{
	return of_bits(exp == -127 ? 1u << 22 : (uint32_t)(exp + 127) << 23);
}

static float scale_value(uint8_t scale)
{
	return scale == SCALE_NAN ? of_bits(0x7fc00000u) : power_of_two(scale - SCALE_BIAS);
}

/* Scales of the group that the i-th partition of the data is in. */
static uint8_t *scales_of(const struct nm_exec *x, const struct nm_operand *o, unsigned int i)
{
	return nm_operand_ptr(x, o,
			      i / ISA_PART_QUANTUM * ISA_PART_QUANTUM +
				      i % ISA_PART_QUANTUM / ISA_MX_PARTS);
}

/* --- use -------------------------------------------------------------------------------------- */

static void fetch_fp4(const uint16_t *in, unsigned int row, unsigned int n, float *out)
{
	static const float values[16] = { 0,	0.5f,  1,  1.5f,  2,  3,  4,  6,
					  -0.f, -0.5f, -1, -1.5f, -2, -3, -4, -6 };

	for (unsigned int i = 0; i < n; i++)
		out[i] = values[in[i] >> 4 * row & 15];
}

void nm_mx_fetch(const struct nm_exec *x, const struct nm_compute *c, unsigned int p, float *rows)
{
	const uint8_t *scale = scales_of(x, &c->scale, p);
	const unsigned int n = c->columns, dtype = c->src0.dtype;
	uint32_t raw[NM_GEMM_N_MAX];

	nm_fetch_bits(x, &c->src0, &c->nest, p, raw);
	for (unsigned int r = 0; r < ISA_MX_ROWS; r++, rows += n) {
		if (dtype == ISA_FP4_X4)
			fetch_fp4((const uint16_t *)raw, r, n, rows);
		else
			x->rows->load[ISA_CT_F32]
				     [dtype == ISA_FP8_E5_X4 ? ISA_FP8_E5 : ISA_FP8_E4FN](
					     rows, (const uint8_t *)raw + r, sizeof(raw[0]), n);
		for (unsigned int i = 0; i < n; i++)
			rows[i] *= scale_value(scale[i]);
	}
}

/* --- making ----------------------------------------------------------------------------------- */

/* Exponent of a number other than 0, by its bits. */
static int exponent(uint32_t bits)
{
	return bits >> 23 ? (int)(bits >> 23) - 127 : 31 - __builtin_clz(bits) - 149;
}

/* For the largest magnitude of a group, by its bits, and the dtype's largest exponent. */
static uint8_t scale_for(uint32_t largest, int max_exp)
{
	int scale;

	if (largest >= INFINITE)
		return SCALE_NAN;
	if (largest == 0)
		return 0;
	scale = SCALE_BIAS + exponent(largest) - (max_exp - 1);
	return scale < 0 ? 0 : (uint8_t)scale;
}

/* Row i of the group of partitions that is being done. */
static float *group_row(const struct nm_exec *x, unsigned int i, uint32_t n)
{
	return (float *)x->buffer[i / 2] + (size_t)(i % 2) * n;
}

/* Makes a scale of elements first.. of the group's rows, and divides them by it. */
static uint8_t scale_group(const struct nm_exec *x, uint32_t n, uint32_t first, int max_exp)
{
	uint32_t largest = 0;
	uint8_t scale;
	float factor;

	for (unsigned int i = 0; i < ISA_MX_PARTS; i++)
		for (unsigned int k = 0; k < ISA_MX_ROWS; k++) {
			uint32_t bits;

			memcpy(&bits, group_row(x, i, n) + first + k, sizeof(bits));
			bits &= 0x7fffffffu;
			largest = bits > largest ? bits : largest;
		}
	scale = scale_for(largest, max_exp);
	factor = scale == SCALE_NAN ? of_bits(0x7fc00000u) : power_of_two(SCALE_BIAS - scale);
	for (unsigned int i = 0; i < ISA_MX_PARTS; i++)
		for (unsigned int k = 0; k < ISA_MX_ROWS; k++)
			group_row(x, i, n)[first + k] *= factor;
	return scale;
}

/* Two rows of fp32 fill half of a buffer at most. */
_Static_assert(ISA_MX_PARTS == 2 * NM_BUFFERS, "each buffer takes two rows");

void nm_exec_quantize_mx(struct nm_exec *x, const struct nm_compute *c)
{
	const bool e5 = c->dst.dtype == ISA_FP8_E5_X4;
	const unsigned int dtype = e5 ? ISA_FP8_E5 : ISA_FP8_E4FN;
	const int max_exp = e5 ? 15 : 8;
	uint8_t *packed = (uint8_t *)(x->buffer[0] + NM_TILE_ELEMS / 2);

	for (unsigned int p = 0; p < c->nparts; p += ISA_MX_PARTS) {
		uint8_t *scale = scales_of(x, &c->scale, p);

		for (unsigned int i = 0; i < ISA_MX_PARTS; i++)
			nm_fetch(x, ISA_CT_F32, &c->src0, &c->nest, p + i, group_row(x, i, c->n));
		for (uint32_t k = 0; k < c->columns; k++)
			scale[k] = scale_group(x, c->n, k * ISA_MX_ROWS, max_exp);
		for (unsigned int i = 0; i < ISA_MX_PARTS; i++) {
			x->rows->store[ISA_CT_F32][dtype](packed, 1, group_row(x, i, c->n), c->n);
			nm_put_bits(x, &c->dst, &c->dst_nest, p + i, packed);
		}
	}
}
