/* SPDX-License-Identifier: Apache-2.0 */
/* Random bits as docs/random.md has them, for the tests of what draws them. */
#ifndef TEST_RANDOM_H
#define TEST_RANDOM_H

#include "values.h"

/* The bits of element i. */
static inline uint32_t random_bits(const uint32_t key[NC_KEY_WORDS], uint32_t i)
{
	uint32_t x = i ^ key[0];

	x = ((x ^ x >> 17) * 0xed5ad4bb) ^ key[1];
	x = ((x ^ x >> 11) * 0xac4c1b51) ^ key[2];
	x = ((x ^ x >> 15) * 0x31848bab) ^ key[3];
	return x ^ x >> 14 ^ i;
}

/* A key as numbers, and as values of the graph, constants and scalars of the launch. */
static inline void random_key(struct tg *tg, uint64_t seed, uint64_t offset,
			      uint32_t key[NC_KEY_WORDS], nc_value words[NC_KEY_WORDS])
{
	nc_random_key(seed, offset, 0, key);
	for (int i = 0; i < NC_KEY_WORDS; i++)
		words[i] = i % 2 ? nc_const_int(tg->graph, NC_INT32, (int32_t)key[i]) :
				   tg_scalar(tg, NC_INT32, (double)(int32_t)key[i])->v;
}

#endif /* TEST_RANDOM_H */
