// SPDX-License-Identifier: Apache-2.0
/* Tensor engine: products in fp32, whatever the operands are. */
#include <string.h>

#include "exec.h"
#include "team.h"

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

/* A product that several threads may share: first they get the moving operand ready, then they
 * multiply, each some rows of the result. */
struct product {
	struct nm_exec *x;
	const struct nm_compute *c;
	unsigned int parts;
	bool pairs;
	_Atomic bool subnormal; /* found while pairs were made */
	const void *moving;
	ptrdiff_t pitch; /* of it, elements */
	unsigned int k; /* elements or pairs */
	bool direct; /* dst's rows are packed: the product needs no place of its own */
};

/* First of n things that a part does; the end is that of the next part. */
static unsigned int first_of(const struct product *p, unsigned int part, unsigned int n)
{
	return n * part / p->parts;
}

static const uint16_t *bf16_row(const struct product *p, unsigned int k, uint16_t *buf)
{
	const struct nm_operand *o = &p->c->src0;

	if (p->c->nest.ndim == 1 && o->step[0] == o->bytes)
		return (const uint16_t *)nm_operand_ptr(p->x, o, k);
	nm_fetch_bits(p->x, o, &p->c->nest, k, buf);
	return buf;
}

static void prepare_pairs(struct product *p, unsigned int pair)
{
	uint16_t even[ISA_MATMUL_N_MAX], odd[ISA_MATMUL_N_MAX];
	uint32_t *out = (uint32_t *)p->x->moving + (size_t)pair * p->c->n;
	unsigned int k = 2 * pair;
	bool last = k + 1 == p->x->load_k;

	if (!p->x->pairs->make(out, bf16_row(p, k, even), last ? NULL : bf16_row(p, k + 1, odd),
			       p->c->n))
		atomic_store_explicit(&p->subnormal, true, memory_order_relaxed);
}

static void prepare(void *arg, unsigned int part, uint64_t *const *buffer)
{
	struct product *p = arg;
	const struct nm_compute *c = p->c;

	(void)buffer;
	for (unsigned int k = first_of(p, part, p->k); k < first_of(p, part + 1, p->k); k++)
		if (p->pairs)
			prepare_pairs(p, k);
		else
			nm_fetch(p->x, ISA_CT_F32, &c->src0, &c->nest, k,
				 (float *)p->x->moving + (size_t)k * c->n);
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

static void multiply(void *arg, unsigned int part, uint64_t *const *buffer)
{
	const struct product *p = arg;
	const struct nm_exec *x = p->x;
	const struct nm_compute *c = p->c;
	unsigned int blocks = (x->load_m - 1) / NM_GEMM_PACK + 1;
	unsigned int m = first_of(p, part, blocks) * NM_GEMM_PACK;
	unsigned int end = first_of(p, part + 1, blocks) * NM_GEMM_PACK;
	float *result = x->product + (size_t)m * c->n;
	ptrdiff_t pitch = c->n;

	(void)buffer;
	if (end > x->load_m)
		end = x->load_m;
	if (p->direct) {
		result = (float *)nm_operand_ptr(x, &c->dst, m);
		pitch = NM_PSUM_PITCH / sizeof(float);
	}
	(p->pairs ? x->pairs->gemm : x->rows->gemm)(result, pitch,
						    (const float *)x->stationary + (size_t)m * p->k,
						    p->moving, p->pitch, end - m, c->n, p->k,
						    p->direct && c->flags & ISA_F_ACCUM);
	for (; m < end && !p->direct; m++)
		put_row(x, c, m);
}

/* The moving operand as fp32, where it lies if it can be used there. */
static void take_moving(struct product *p)
{
	struct nm_exec *x = p->x;
	const struct nm_compute *c = p->c;

	if (x->load_pairs)
		unpair(x);
	p->pairs = false;
	p->k = x->load_k;
	if (c->src0.dtype == ISA_FP32 && c->nest.ndim == 1 && c->src0.step[0] == sizeof(float)) {
		p->moving = nm_operand_ptr(x, &c->src0, 0);
		p->pitch = NM_SBUF_PITCH / sizeof(float);
	} else {
		nm_team_run(prepare, p, p->parts);
	}
}

void nm_exec_matmul(struct nm_exec *x, const struct nm_compute *c)
{
	struct product p = { .x = x, .c = c, .moving = x->moving, .pitch = c->n, .parts = 1 };

	/* In one part: where the processors' caches are far apart, sharing the operands of so small a
	 * product took longer than it saved. */
	p.direct = c->dst_nest.ndim == 1 && c->dst.step[0] == sizeof(float);
	p.pairs = x->load_pairs && c->src0.dtype == ISA_BF16;
	if (p.pairs) {
		p.k = (x->load_k + 1) / 2;
		nm_team_run(prepare, &p, p.parts);
	}
	if (!p.pairs || p.subnormal)
		take_moving(&p);
	nm_team_run(multiply, &p, p.parts);
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
