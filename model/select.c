// SPDX-License-Identifier: Apache-2.0
/* Rows that are chosen from or computed, and reduced to one value on their way to the destination. */
#include <string.h>

#include "exec.h"

/* A finished row of partition p, with its reduction if that is asked for. */
static void finish(const struct nm_exec *x, const struct nm_compute *c, unsigned int op,
		   unsigned int p, const float *row)
{
	const struct nm_operand *o = &c->row;
	float lanes[NM_LANES] = { 0 }, before = 0;

	if (!o->bytes) {
		nm_put(x, c->ct, &c->dst, &c->nest, p, row);
		return;
	}
	nm_reduce_row(x, c->ct, op, row, c->n, lanes);
	if (c->flags & ISA_F_ACCUM) {
		x->rows->load[c->ct][o->dtype](&before, nm_operand_ptr(x, o, p), 0, 1);
		x->rows->tt[c->ct][op](lanes, &before, lanes, 1);
	}
	if (c->flags & ISA_F_NEGATE)
		lanes[0] = -lanes[0];
	nm_put(x, c->ct, &c->dst, &c->nest, p, row);
	x->rows->store[c->ct][o->dtype](nm_operand_ptr(x, o, p), 0, lanes, 1);
}

void nm_exec_select_reduce(struct nm_exec *x, const struct nm_compute *c)
{
	float *predicate = (float *)x->buffer[0], *row = (float *)x->buffer[1], otherwise;
	bool reverse = c->flags & ISA_F_REV0;

	for (unsigned int p = 0; p < c->nparts; p++) {
		uint64_t s0 = nm_scalar_value(x, c, &c->s0, p);

		memcpy(&otherwise, &s0, sizeof(otherwise));
		nm_fetch(x, c->ct, &c->src0, &c->nest, p, predicate);
		nm_fetch(x, c->ct, &c->src1, &c->nest, p, row);
		for (uint32_t i = 0; i < c->n; i++)
			if ((predicate[i] != 0) == reverse)
				row[i] = otherwise;
		finish(x, c, ISA_MAX, p, row);
	}
}

void nm_exec_scalar_reduce(struct nm_exec *x, const struct nm_compute *c)
{
	float *row = (float *)x->buffer[0];

	for (unsigned int p = 0; p < c->nparts; p++) {
		uint64_t s0 = nm_scalar_value(x, c, &c->s0, p);

		nm_fetch(x, c->ct, &c->src0, &c->nest, p, row);
		(c->flags & ISA_F_REV0 ? x->rows->st : x->rows->ts)[c->ct][c->op0](row, row, &s0,
										   c->n);
		finish(x, c, c->op1, p, row);
	}
}

void nm_exec_exponential(struct nm_exec *x, const struct nm_compute *c)
{
	float *row = (float *)x->buffer[0];

	for (unsigned int p = 0; p < c->nparts; p++) {
		uint64_t s0 = nm_scalar_value(x, c, &c->s0, p);

		nm_fetch(x, c->ct, &c->src0, &c->nest, p, row);
		x->rows->ts[c->ct][ISA_SUB](row, row, &s0, c->n);
		x->rows->act[ISA_ACT_EXP](row, row, c->n);
		finish(x, c, ISA_ADD, p, row);
	}
}

static bool holds(unsigned int op, float a, float bound)
{
	return nm_holds(op, a<bound, a == bound, a> bound);
}

void nm_exec_range_select(struct nm_exec *x, const struct nm_compute *c)
{
	float *row = (float *)x->buffer[0], start, otherwise;

	memcpy(&start, &c->s0.imm, sizeof(start));
	memcpy(&otherwise, &c->s1.imm, sizeof(otherwise));
	for (unsigned int p = 0; p < c->nparts; p++) {
		float bound0, bound1;

		memcpy(&bound0, nm_operand_ptr(x, &c->s0.vec, p), sizeof(bound0));
		memcpy(&bound1, nm_operand_ptr(x, &c->s1.vec, p), sizeof(bound1));
		nm_fetch(x, c->ct, &c->src0, &c->nest, p, row);
		for (uint32_t i = 0; i < c->n; i++) {
			float at = (float)i + start;

			if (!holds(c->op0, at, bound0) || !holds(c->op1, at, bound1))
				row[i] = otherwise;
		}
		finish(x, c, ISA_MAX, p, row);
	}
}
