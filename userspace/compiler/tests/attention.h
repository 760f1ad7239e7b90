/* SPDX-License-Identifier: Apache-2.0 */
/* Operands of attention and what dropout does to its weights, for the tests of the result and of its gradients. */
#ifndef TEST_ATTENTION_H
#define TEST_ATTENTION_H

#include <math.h>

#include "random.h"

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

#define NO_DROP { .p = 0 }

/* Dropout; batches: as many come before the first. */
struct drop {
	double p;
	uint32_t batches;
	uint32_t key[NC_KEY_WORDS];
};

static inline void drop_begin(struct tg *tg, struct drop *drop, struct nc_attention *how)
{
	how->dropout = drop->p;
	if (drop->p == 0)
		return;
	random_key(tg, tg_random(tg), 3, drop->key, how->key);
	if (drop->batches)
		how->batch = tg_scalar(tg, NC_INT32, (double)(int32_t)drop->batches)->v;
}

/* What becomes of a weight that is 1: row, of so many, and key of that row. */
static inline double drop_one(const struct drop *drop, int64_t rows, int64_t row, int64_t keys,
			      int64_t key)
{
	uint64_t number =
		((uint64_t)drop->batches * (uint64_t)rows + (uint64_t)row) * (uint64_t)keys +
		(uint64_t)key;
	double u = ((double)random_bits(drop->key, (uint32_t)number) + 0.5) * 0x1p-32;

	if (drop->p == 0)
		return 1;
	/* Bits as int32: what is below 0 comes before what is not. */
	u += u < 0.5 ? 0.5 : -0.5;
	return u < 1 - drop->p ? 1 / (1 - drop->p) : 0;
}

#endif /* TEST_ATTENTION_H */
