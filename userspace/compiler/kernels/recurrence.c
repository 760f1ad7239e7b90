// SPDX-License-Identifier: Apache-2.0
/*
 * Recurrences in a loop over elements: nci_plan() has their dim alone in a partition, and tiles follow one
 * another along it. Inside are only reduced dims, each place of which has a recurrence of its own: where its tile
 * ends is kept in a column for the next tile.
 */
#include "eval.h"

/* Number of the tile's place among the reduced axes, and how many there are. */
static uint32_t place_of(const struct eval *ev, uint32_t *places)
{
	uint32_t at = 0;

	*places = 1;
	for (uint32_t a = 0; a < ev->plan->n_axes; a++) {
		const struct axis *axis = &ev->plan->axes[a];

		if (!axis->reduced)
			continue;
		at = at * (uint32_t)axis->count + (uint32_t)ev->start[a];
		*places *= (uint32_t)axis->count;
	}
	return at;
}

static uint32_t axis_along(const struct eval *ev)
{
	uint32_t a = 0;

	while (!(ev->group->along >> ev->plan->axes[a].dim & 1))
		a++;
	return a;
}

void eval_emit_recurrence(struct eval *ev, uint32_t member)
{
	uint32_t along = axis_along(ev), places, place = place_of(ev, &places), v[3];
	int64_t len = ev->len[along], end = ev->start[along] + len;
	struct val *val = &ev->vals[member];
	struct ltile t[3];
	struct lop *op;

	v[0] = member;
	for (uint32_t i = 0; i < 2; i++) {
		v[i + 1] = ev->src[member][i];
		eval_need(ev, v[i + 1]);
	}
	eval_new_tile(ev, member);
	eval_tiles(ev, 3, v, t);
	if (!place) {
		val->ends_before = ev->start[along] ? val->ends : LIR_NONE;
		val->ends = end == ev->plan->axes[along].count ?
				    LIR_NONE :
				    lir_buf(ev->lir, ISA_SPACE_SBUF, 4 * (uint64_t)places);
	}
	op = lir_op(ev->lir, ISA_VECTOR, ISA_TENSOR_TENSOR_SCAN);
	op->compute_type = ISA_CT_F32;
	op->op0 = ISA_MULT;
	op->op1 = ISA_ADD;
	op->dst = t[0];
	op->src0 = t[1];
	op->src1 = t[2];
	if (val->ends_before != LIR_NONE) {
		op->flags = ISA_F_VEC0;
		op->vec0 = (struct lcol){ val->ends_before, 4 * place, ISA_FP32, 0 };
	}
	eval_spend(ev, ISA_VECTOR, len);
	if (val->ends != LIR_NONE)
		lir_copy(ev->lir, ISA_GPSIMD, ISA_CT_BITS,
			 lir_row(val->ends, ISA_FP32, ev->nparts, 4 * place, 1),
			 lir_row(val->buf, ISA_FP32, ev->nparts,
				 val->offset + 4 * (uint32_t)(len - 1), 1));
}
