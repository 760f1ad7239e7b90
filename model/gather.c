// SPDX-License-Identifier: Apache-2.0
/* Elements by index within partitions, and indices of elements. */
#include <string.h>

#include "exec.h"

/* run elements of a packed row of n, of which there are index * run before them; zeros if it has none. */
static void pick(uint8_t *to, const uint8_t *row, uint32_t n, uint32_t index, uint32_t run,
		 unsigned int bytes)
{
	if (index < n / run)
		memcpy(to, row + (size_t)index * run * bytes, (size_t)run * bytes);
	else
		memset(to, 0, (size_t)run * bytes);
}

void nm_exec_n_gather(struct nm_exec *x, const struct nm_compute *c)
{
	uint8_t *row = (uint8_t *)x->buffer[0], *out = (uint8_t *)x->buffer[2];
	const uint32_t *index = (const uint32_t *)x->buffer[1], n = nm_elems(&c->dst_nest);

	for (unsigned int p = 0; p < c->nparts; p++) {
		nm_fetch_bits(x, &c->src0, &c->nest, p, row);
		nm_fetch_bits(x, &c->src1, &c->dst_nest, p, x->buffer[1]);
		for (uint32_t i = 0; i < n; i++)
			pick(out + (size_t)i * c->dst.bytes, row, c->n, index[i], 1, c->dst.bytes);
		nm_put_bits(x, &c->dst, &c->dst_nest, p, out);
	}
}

/* The first n indices of the partitions of a processor: the first of each, then the second of each. */
static void list_indices(const struct nm_exec *x, const struct nm_compute *c, unsigned int first,
			 uint16_t *list, uint32_t n)
{
	const uint16_t *index = (const uint16_t *)x->buffer[1];

	for (unsigned int p = 0; p < ISA_GPSIMD_PARTS; p++) {
		nm_fetch_bits(x, &c->src1, &c->src1_nest, first + p, x->buffer[1]);
		for (uint32_t i = p; i < n; i += ISA_GPSIMD_PARTS)
			list[i] = index[i / ISA_GPSIMD_PARTS];
	}
}

void nm_exec_local_gather(struct nm_exec *x, const struct nm_compute *c)
{
	const uint32_t run = (uint32_t)c->s0.imm, n = nm_elems(&c->dst_nest) / run;
	uint8_t *row = (uint8_t *)x->buffer[0], *out = (uint8_t *)x->buffer[2];
	uint16_t list[ISA_GATHER_MAX];

	for (unsigned int first = 0; first < c->nparts; first += ISA_GPSIMD_PARTS) {
		list_indices(x, c, first, list, n);
		for (unsigned int p = first; p < first + ISA_GPSIMD_PARTS; p++) {
			nm_fetch_bits(x, &c->src0, &c->nest, p, row);
			for (uint32_t i = 0; i < n; i++)
				pick(out + (size_t)i * run * c->dst.bytes, row, c->n, list[i], run,
				     c->dst.bytes);
			nm_put_bits(x, &c->dst, &c->dst_nest, p, out);
		}
	}
}

/* truth[i]: element i of src0 is not zero. */
static void look(const struct nm_exec *x, const struct nm_compute *c, unsigned int p,
		 uint8_t *truth)
{
	const uint8_t *src = nm_operand_ptr(x, &c->src0, p);
	unsigned int inner = c->nest.ndim - 1u;
	uint32_t idx[ISA_TILE_DIMS] = { 0 };

	do {
		x->rows->truth[c->src0.dtype](truth, src + nm_at(idx, c->src0.step, inner),
					      c->src0.step[inner], c->nest.count[inner]);
		truth += c->nest.count[inner];
	} while (nm_next(idx, c->nest.count, inner));
}

void nm_exec_nonzero(struct nm_exec *x, const struct nm_compute *c)
{
	uint8_t *truth = (uint8_t *)x->buffer[0];
	uint32_t *out = (uint32_t *)x->buffer[1];

	for (unsigned int p = 0; p < c->nparts; p += ISA_GPSIMD_PARTS) {
		uint32_t found = 0;

		look(x, c, p, truth);
		for (uint32_t i = 0; i < c->n; i++)
			if (truth[i])
				out[found++] = (uint32_t)c->s0.imm + i;
		for (uint32_t i = found; i < c->n; i++)
			out[i] = (uint32_t)c->s1.imm;
		out[c->n] = found;
		nm_put(x, c->ct, &c->dst, &c->dst_nest, p, out);
	}
}

/* --- runs of equal elements ----------------------------------------------------------------- */

/* Ids, and the bounds that are made of them, in a compute type: fp32 or int32. */
static bool is_same(unsigned int ct, const void *ids, uint32_t i, uint32_t k)
{
	const float *x = ids;
	const int32_t *n = ids;

	return ct == ISA_CT_F32 ? x[i] == x[k] : n[i] == n[k];
}

static bool is_padding(unsigned int ct, const void *ids, uint32_t i)
{
	const float *x = ids;
	const int32_t *n = ids;

	return ct == ISA_CT_F32 ? x[i] == 0 : n[i] == 0;
}

static void put_bounds(unsigned int ct, void *bounds, uint32_t n, uint32_t i, int32_t begin,
		       int32_t end)
{
	float *x = bounds;
	int32_t *k = bounds;

	if (ct == ISA_CT_F32) {
		x[i] = (float)begin;
		x[n + i] = (float)end;
	} else {
		k[i] = begin;
		k[n + i] = end;
	}
}

void nm_exec_sequence_bounds(struct nm_exec *x, const struct nm_compute *c)
{
	const void *ids = x->buffer[0];
	uint32_t end;

	nm_fetch(x, c->ct, &c->src0, &c->nest, 0, x->buffer[0]);
	for (uint32_t i = 0; i < c->n; i = end) {
		bool padding = is_padding(c->ct, ids, i);

		for (end = i + 1; end < c->n && is_same(c->ct, ids, end - 1, end); end++)
			;
		for (uint32_t k = i; k < end; k++)
			put_bounds(c->ct, x->buffer[1], c->n, k,
				   padding ? (int32_t)c->n : (int32_t)i,
				   padding ? -1 : (int32_t)end);
	}
	nm_put(x, c->ct, &c->dst, &c->dst_nest, 0, x->buffer[1]);
}
