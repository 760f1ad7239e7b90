// SPDX-License-Identifier: Apache-2.0
/* A partition of an operand as one packed row, whatever its dims. */
#include "exec.h"

void nm_fetch(const struct nm_exec *x, unsigned int ct, const struct nm_operand *o,
	      const struct nm_nest *nest, unsigned int partition, void *out)
{
	const uint8_t *src = nm_operand_ptr(x, o, partition);
	unsigned int inner = nest->ndim - 1u;
	uint32_t idx[ISA_TILE_DIMS] = { 0 };
	uint8_t *to = out;

	do {
		x->rows->load[ct][o->dtype](to, src + nm_at(idx, o->step, inner), o->step[inner],
					    nest->count[inner]);
		to += nest->count[inner] * nm_ct_bytes(ct);
	} while (nm_next(idx, nest->count, inner));
}

void nm_put(const struct nm_exec *x, unsigned int ct, const struct nm_operand *o,
	    const struct nm_nest *nest, unsigned int partition, const void *in)
{
	uint8_t *dst = nm_operand_ptr(x, o, partition);
	unsigned int inner = nest->ndim - 1u;
	uint32_t idx[ISA_TILE_DIMS] = { 0 };
	const uint8_t *from = in;

	do {
		x->rows->store[ct][o->dtype](dst + nm_at(idx, o->step, inner), o->step[inner], from,
					     nest->count[inner]);
		from += nest->count[inner] * nm_ct_bytes(ct);
	} while (nm_next(idx, nest->count, inner));
}

void nm_fetch_bits(const struct nm_exec *x, const struct nm_operand *o, const struct nm_nest *nest,
		   unsigned int partition, void *out)
{
	const uint8_t *src = nm_operand_ptr(x, o, partition);
	unsigned int inner = nest->ndim - 1u;
	uint32_t idx[ISA_TILE_DIMS] = { 0 };
	uint8_t *to = out;

	do {
		x->rows->copy[__builtin_ctz(o->bytes)](to, o->bytes,
						       src + nm_at(idx, o->step, inner),
						       o->step[inner], nest->count[inner]);
		to += (size_t)nest->count[inner] * o->bytes;
	} while (nm_next(idx, nest->count, inner));
}

void nm_put_bits(const struct nm_exec *x, const struct nm_operand *o, const struct nm_nest *nest,
		 unsigned int partition, const void *in)
{
	uint8_t *dst = nm_operand_ptr(x, o, partition);
	unsigned int inner = nest->ndim - 1u;
	uint32_t idx[ISA_TILE_DIMS] = { 0 };
	const uint8_t *from = in;

	do {
		x->rows->copy[__builtin_ctz(o->bytes)](dst + nm_at(idx, o->step, inner),
						       o->step[inner], from, o->bytes,
						       nest->count[inner]);
		from += (size_t)nest->count[inner] * o->bytes;
	} while (nm_next(idx, nest->count, inner));
}
