// SPDX-License-Identifier: Apache-2.0
/* Recurrences along a partition: each element needs the one before, so there is no row to work on. */
#include <string.h>

#include "exec.h"

/* a op b, or b op a. */
static void step(nm_row2 op, bool reverse, float *r, const float *a, const float *b)
{
	op(r, reverse ? b : a, reverse ? a : b, 1);
}

void nm_exec_scan(struct nm_exec *x, const struct nm_compute *c)
{
	nm_row2 op0 = x->rows->tt[c->ct][c->op0], op1 = x->rows->tt[c->ct][c->op1];
	float *a = (float *)x->buffer[0], *b = (float *)x->buffer[1], r;

	for (unsigned int p = 0; p < c->nparts; p++) {
		uint64_t start = nm_scalar_value(x, c, &c->s0, p);

		memcpy(&r, &start, sizeof(r));
		nm_fetch(x, c->ct, &c->src0, &c->nest, p, a);
		nm_fetch(x, c->ct, &c->src1, &c->nest, p, b);
		for (uint32_t i = 0; i < c->n; i++) {
			step(op0, c->flags & ISA_F_REV0, &r, &a[i], &r);
			step(op1, c->flags & ISA_F_REV1, &r, &r, &b[i]);
			a[i] = r;
		}
		nm_put(x, c->ct, &c->dst, &c->nest, p, a);
	}
}

void nm_exec_cumulative(struct nm_exec *x, const struct nm_compute *c)
{
	nm_row2 op1 = x->rows->tt[c->ct][c->op1];
	float *a = (float *)x->buffer[0], r;

	for (unsigned int p = 0; p < c->nparts; p++) {
		uint64_t s0 = nm_scalar_value(x, c, &c->s0, p);
		uint64_t s1 = nm_scalar_value(x, c, &c->s1, p);

		memcpy(&r, &s1, sizeof(r));
		if (c->flags & ISA_F_ACCUM)
			r = x->cumulative[p];
		nm_fetch(x, c->ct, &c->src0, &c->nest, p, a);
		(c->flags & ISA_F_REV0 ? x->rows->st : x->rows->ts)[c->ct][c->op0](a, a, &s0, c->n);
		for (uint32_t i = 0; i < c->n; i++) {
			op1(&r, &a[i], &r, 1);
			a[i] = r;
		}
		x->cumulative[p] = r;
		nm_put(x, c->ct, &c->dst, &c->nest, p, a);
	}
}
