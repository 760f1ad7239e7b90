/* SPDX-License-Identifier: Apache-2.0 */
/* Operands of attention, for the tests of the result and of its gradients. */
#ifndef TEST_ATTENTION_H
#define TEST_ATTENTION_H

#include <math.h>

#include "values.h"

enum mask_kind {
	NO_MASK,
	FULL_MASK,
	ROW_MASK
}; /* FULL_MASK: of each query; ROW_MASK: of all of a batch */

static inline struct tv *heads_input(struct tg *tg, nc_dtype dtype, int64_t batch, int64_t heads,
				     int64_t n, int64_t width)
{
	return tg_input(tg, dtype, SHAPE(batch, heads, n, width), NULL);
}

/* rows: queries, or 1. Some keys masked, of the odd batch's first query all. */
static inline struct tv *mask_input(struct tg *tg, nc_dtype dtype, int64_t batch, int64_t rows,
				    int64_t keys)
{
	struct tv *mask = heads_input(tg, dtype, batch, 1, rows, keys);

	for (int64_t n = 0; n < mask->n; n++)
		if (tg_random(tg) % 3 == 0 || n / keys == (rows > 1 ? rows / 2 : 1))
			tg_set_input(tg, mask, n, -INFINITY);
	return mask;
}

#endif /* TEST_ATTENTION_H */
