// SPDX-License-Identifier: Apache-2.0
/* Partitions that change places, 32 at a time, each a piece of a row after the other. */
#include "exec.h"

static uint8_t *piece(const struct nm_exec *x, const struct nm_compute *c,
		      const struct nm_operand *o, unsigned int partition, const uint32_t *idx,
		      uint32_t first)
{
	unsigned int inner = c->nest.ndim - 1u;

	return nm_operand_ptr(x, o, partition) + nm_at(idx, o->step, inner) +
	       (ptrdiff_t)first * o->step[inner];
}

/* n elements of many partitions from first_part on: all are read before one is written. */
static void shuffle_piece(struct nm_exec *x, const struct nm_compute *c, unsigned int first_part,
			  unsigned int many, const uint32_t *idx, uint32_t first, uint32_t n)
{
	unsigned int log2 = (unsigned int)__builtin_ctz(c->dst.bytes), inner = c->nest.ndim - 1u;
	uint8_t *buf = (uint8_t *)x->buffer[0];
	size_t row = (size_t)n * c->dst.bytes;

	for (unsigned int i = 0; i < many; i++)
		x->rows->copy[log2](buf + i * row, c->dst.bytes,
				    piece(x, c, &c->src0, first_part + i, idx, first),
				    c->src0.step[inner], n);
	for (unsigned int i = 0; i < many; i++)
		if (c->shuffle[i] != ISA_SHUFFLE_KEEP)
			x->rows->copy[log2](piece(x, c, &c->dst, first_part + i, idx, first),
					    c->dst.step[inner], buf + c->shuffle[i] * row,
					    c->dst.bytes, n);
}

void nm_exec_shuffle(struct nm_exec *x, const struct nm_compute *c)
{
	unsigned int inner = c->nest.ndim - 1u;
	uint32_t row = c->nest.count[inner];

	for (unsigned int p = 0; p < c->nparts; p += ISA_PART_QUANTUM) {
		unsigned int left = c->nparts - p;
		unsigned int many = left < ISA_PART_QUANTUM ? left : ISA_PART_QUANTUM;
		uint32_t idx[ISA_TILE_DIMS] = { 0 };

		do {
			for (uint32_t i = 0; i < row; i += NM_CHUNK)
				shuffle_piece(x, c, p, many, idx, i,
					      row - i < NM_CHUNK ? row - i : NM_CHUNK);
		} while (nm_next(idx, c->nest.count, inner));
	}
}
