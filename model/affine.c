// SPDX-License-Identifier: Apache-2.0
/* Rows of which an affine function of the place says what is kept. */
#include <string.h>

#include "exec.h"

/* at: the function at the first element. Below 2^52 everywhere: no overflow. */
static void select_row(const struct nm_compute *c, int64_t at, float otherwise, float *row)
{
	unsigned int inner = c->nest.ndim - 1u;
	int64_t step = c->src1.step[inner];
	uint32_t n = c->nest.count[inner], idx[ISA_TILE_DIMS] = { 0 };

	do {
		int64_t here = at + nm_at(idx, c->src1.step, inner);

		for (uint32_t i = 0; i < n; i++, here += step)
			if (!nm_holds(c->op0, here < 0, here == 0, here > 0))
				row[i] = otherwise;
		row += n;
	} while (nm_next(idx, c->nest.count, inner));
}

void nm_exec_affine_select(struct nm_exec *x, const struct nm_compute *c)
{
	float *row = (float *)x->buffer[0], otherwise;

	memcpy(&otherwise, &c->s0.imm, sizeof(otherwise));
	for (unsigned int p = 0; p < c->nparts; p++) {
		nm_fetch(x, c->ct, &c->src0, &c->nest, p, row);
		select_row(c, c->start + (int64_t)p * c->part_step, otherwise, row);
		nm_put(x, c->ct, &c->dst, &c->nest, p, row);
	}
}
