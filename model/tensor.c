// SPDX-License-Identifier: Apache-2.0
/* Tensor engine: products in fp32, whatever the operands are. */
#include <string.h>

#include "exec.h"
#include "team.h"

/* --- the stationary operand -------------------------------------------------------------- */

/* A row of the stationary operand, of 4-byte elements, to its place. */
static void pack(struct nm_stationary *s, const void *row, unsigned int k, unsigned int n_k)
{
	const size_t block = NM_GEMM_PACK * sizeof(float);
	uint8_t *out = (uint8_t *)s->packed + k * block;
	const uint8_t *in = row;

	for (unsigned int m = 0; m < s->m; m += NM_GEMM_PACK, in += block)
		memcpy(out + (size_t)m / NM_GEMM_PACK * n_k * block, in, block);
}

/* Row k and the next of src0, whose elements may lie anyhow, as pairs; false: they can't be. */
static bool fetch_pairs(const struct nm_exec *x, const struct nm_compute *c, unsigned int k,
			uint32_t *out)
{
	uint16_t even[NM_GEMM_N_MAX], odd[NM_GEMM_N_MAX];
	bool last = k + 1u == c->nparts;

	nm_fetch_bits(x, &c->src0, &c->nest, k, even);
	if (!last)
		nm_fetch_bits(x, &c->src0, &c->nest, k + 1, odd);
	return x->pairs->make(out, even, last ? NULL : odd, c->n);
}

/* False: they can't be pairs. */
static bool load_pairs(const struct nm_exec *x, const struct nm_compute *c, struct nm_stationary *s)
{
	uint32_t row[ISA_MATMUL_M_MAX] = { 0 };

	for (unsigned int k = 0; k < c->nparts; k += 2) {
		if (!fetch_pairs(x, c, k, row))
			return false;
		pack(s, row, k / 2, (c->nparts + 1u) / 2);
	}
	return true;
}

/* The rows of partition k, one behind the other. */
static void fetch_rows(const struct nm_exec *x, const struct nm_compute *c, unsigned int k,
		       float *rows)
{
	if (c->scale.bytes)
		nm_mx_fetch(x, c, k, rows);
	else
		nm_fetch(x, ISA_CT_F32, &c->src0, &c->nest, k, rows);
}

void nm_exec_load_stationary(struct nm_exec *x, const struct nm_compute *c)
{
	float row[ISA_MATMUL_M_MAX * ISA_MX_ROWS + NM_GEMM_PACK] = { 0 };
	struct nm_stationary *s = &x->load[nm_first_part(c->array)];

	for (unsigned int i = 0; i < NM_ARRAY_PARTS; i++)
		if (x->load[i].array & c->array)
			x->load[i].array = 0;
	s->array = c->array;
	s->parts = c->nparts;
	s->rows = c->rows;
	s->dtype = c->src0.dtype;
	s->k = (uint32_t)c->nparts * c->rows;
	s->m = c->columns;
	s->pairs = x->pairs && c->src0.dtype == ISA_BF16 && load_pairs(x, c, s);
	for (unsigned int k = 0; k < c->nparts && !s->pairs; k++) {
		fetch_rows(x, c, k, row);
		for (unsigned int r = 0; r < c->rows; r++)
			pack(s, row + r * s->m, r * c->nparts + k, s->k);
	}
}

/* Makes fp32 of the stationary operand's pairs. */
static void unpair(const struct nm_exec *x, struct nm_stationary *s)
{
	const unsigned int pairs = (s->k + 1) / 2, blocks = (s->m - 1) / NM_GEMM_PACK + 1;
	uint32_t *out = s->packed, *in = (uint32_t *)x->buffer[0];

	memcpy(in, out, sizeof(*in) * pairs * blocks * NM_GEMM_PACK);
	for (unsigned int b = 0; b < blocks; b++)
		for (unsigned int k = 0; k < s->k; k++)
			for (unsigned int i = 0; i < NM_GEMM_PACK; i++) {
				uint32_t pair = in[(b * pairs + k / 2) * NM_GEMM_PACK + i];

				*out++ = k % 2 ? pair << 16 : pair & 0xffff0000u;
			}
	s->pairs = false;
}

/* --- products ----------------------------------------------------------------------------- */

/* Fewest multiplications that are worth the microsecond or two of waking others. */
#define DIVIDE_MACS (1u << 22)

/* A product that threads share by columns: each makes of the moving operand what it uses itself. */
struct product {
	const struct nm_exec *x;
	const struct nm_compute *c;
	struct nm_stationary *s;
	unsigned int n; /* columns */
	unsigned int parts;
	bool pairs;
	bool made; /* the moving operand is as the product wants it */
	const void *moving; /* fp32 or pairs */
	ptrdiff_t pitch; /* of it, elements */
	float *result;
	ptrdiff_t result_pitch;
	bool accumulate;
	bool left[NM_THREADS_MAX]; /* the part has subnormal operands: it is to be done in fp32 */
};

/* First column of a part; that of the next one is its end. */
static unsigned int first_column(const struct product *p, unsigned int part)
{
	unsigned int panels = p->n / NM_GEMM_PANEL;

	return part == p->parts ? p->n : panels * part / p->parts * NM_GEMM_PANEL;
}

static bool is_packed(const struct nm_compute *c, size_t bytes)
{
	return c->nest.ndim == 1 && (size_t)c->src0.step[0] == bytes && c->src0.bytes == bytes;
}

/* Columns of the moving operand as pairs; false: they can't be. */
static bool make_pairs(const struct product *p, unsigned int from, unsigned int to)
{
	const struct nm_exec *x = p->x;
	const struct nm_operand *o = &p->c->src0;
	uint32_t *out = (uint32_t *)x->moving + from;

	for (unsigned int k = 0; k < p->s->k; k += 2, out += p->c->n) {
		const uint16_t *even = (const uint16_t *)nm_operand_ptr(x, o, k) + from;
		const uint16_t *odd = NULL;

		if (k + 1 < p->s->k)
			odd = (const uint16_t *)nm_operand_ptr(x, o, k + 1) + from;
		if (!x->pairs->make(out, even, odd, to - from))
			return false;
	}
	return true;
}

/* The same of an operand whose elements lie anyhow. */
static bool gather_pairs(const struct product *p)
{
	for (unsigned int k = 0; k < p->s->k; k += 2)
		if (!fetch_pairs(p->x, p->c, k, (uint32_t *)p->x->moving + k / 2 * p->c->n))
			return false;
	return true;
}

/* The moving operand of several rows a partition as fp32, in the order of the stationary one. */
static void gather_rows(const struct product *p)
{
	float rows[NM_GEMM_N_MAX * ISA_MX_ROWS];
	const struct nm_compute *c = p->c;
	float *out = p->x->moving;

	for (unsigned int k = 0; k < c->nparts; k++) {
		fetch_rows(p->x, c, k, rows);
		for (unsigned int r = 0; r < c->rows; r++)
			memcpy(out + (size_t)(r * c->nparts + k) * p->n, rows + r * p->n,
			       p->n * sizeof(*rows));
	}
}

/* The moving operand as fp32, where it lies if it can be used there. */
static void take_fp32(struct product *p)
{
	const struct nm_exec *x = p->x;
	const struct nm_compute *c = p->c;

	if (p->s->pairs)
		unpair(x, p->s);
	p->pairs = false;
	p->made = true;
	if (c->src0.dtype == ISA_FP32 && is_packed(c, sizeof(float))) {
		p->moving = nm_operand_ptr(x, &c->src0, 0);
		p->pitch = NM_SBUF_PITCH / sizeof(float);
		return;
	}
	if (c->rows > 1) {
		gather_rows(p);
		return;
	}
	for (unsigned int k = 0; k < p->s->k; k++)
		nm_fetch(x, ISA_CT_F32, &c->src0, &c->nest, k,
			 (float *)x->moving + (size_t)k * c->n);
}

static void multiply(void *arg, unsigned int part, uint64_t *const *buffer)
{
	struct product *p = arg;
	const struct nm_exec *x = p->x;
	unsigned int from = first_column(p, part), to = first_column(p, part + 1);

	(void)buffer;
	if (from == to)
		return;
	if (!p->made && !make_pairs(p, from, to)) {
		p->left[part] = true;
		return;
	}
	(p->pairs ? x->pairs->gemm :
		    x->rows->gemm)(p->result + from, p->result_pitch, p->s->packed,
				   (const float *)p->moving + from, p->pitch, p->s->m, to - from,
				   p->pairs ? (p->s->k + 1) / 2 : p->s->k, p->accumulate);
}

/* Adds or stores row m of the product to dst, whose elements are not packed or not fp32. */
static void put_row(const struct nm_exec *x, const struct nm_compute *c, unsigned int m)
{
	float *row = x->product + (size_t)m * c->columns, *before = (float *)x->buffer[0];

	if (c->flags & ISA_F_ACCUM) {
		nm_fetch(x, ISA_CT_F32, &c->dst, &c->dst_nest, m, before);
		x->rows->tt[ISA_CT_F32][ISA_ADD](row, before, row, c->columns);
	}
	nm_put(x, ISA_CT_F32, &c->dst, &c->dst_nest, m, row);
}

void nm_exec_matmul(struct nm_exec *x, const struct nm_compute *c)
{
	struct nm_stationary *s = &x->load[nm_first_part(c->array)];
	bool direct = c->dst_nest.ndim == 1 && c->dst.dtype == ISA_FP32 &&
		      c->dst.step[0] == sizeof(float);
	struct product p = {
		.x = x, .c = c, .s = s, .n = c->columns, .parts = 1, .moving = x->moving
	};

	p.pitch = p.n;
	if ((size_t)s->k * s->m * p.n >= DIVIDE_MACS)
		p.parts = nm_team_threads();
	p.result = direct ? (float *)nm_operand_ptr(x, &c->dst, 0) : x->product;
	p.result_pitch = direct ? NM_PSUM_PITCH / (ptrdiff_t)sizeof(float) : p.n;
	p.accumulate = direct && c->flags & ISA_F_ACCUM;
	p.pairs = s->pairs && c->src0.dtype == ISA_BF16;
	if (p.pairs && !is_packed(c, sizeof(uint16_t)))
		p.pairs = p.made = gather_pairs(&p);
	if (!p.pairs)
		take_fp32(&p);
	nm_team_run(multiply, &p, p.parts);
	for (unsigned int part = 0; part < p.parts; part++) {
		if (!p.left[part])
			continue;
		if (p.pairs)
			take_fp32(&p);
		multiply(&p, part, NULL);
	}
	for (unsigned int m = 0; m < s->m && !direct; m++)
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

		nm_put_bits(x, &c->dst, &c->dst_nest, f, in);
	}
}
