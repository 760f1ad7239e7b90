/* SPDX-License-Identifier: Apache-2.0 */
/* Generators of random numbers once more, each number from the specification's words. */
#ifndef TEST_XORWOW_H
#define TEST_XORWOW_H

#include <stdint.h>

#include "neuron_isa.h"

struct generator {
	uint32_t x, y, z, w, v, d;
};

static inline uint32_t ref_next(struct generator *g)
{
	const uint32_t t = g->x ^ (g->x >> 2);

	g->x = g->y;
	g->y = g->z;
	g->z = g->w;
	g->w = g->v;
	g->v = (g->v ^ (g->v << 4)) ^ (t ^ (t << 1));
	g->d += 362437;
	return g->v + g->d;
}

static inline struct generator ref_seeded(uint32_t seed, unsigned int number)
{
	uint64_t s = (uint64_t)number << 32, half[3];

	s += seed;
	for (unsigned int k = 0; k < 3; k++) {
		uint64_t n = s + (k + 1) * 0x9e3779b97f4a7c15ull;

		n ^= n >> 30;
		n *= 0xbf58476d1ce4e5b9ull;
		n ^= n >> 27;
		n *= 0x94d049bb133111ebull;
		half[k] = n ^ (n >> 31);
	}
	return (struct generator){ .x = (uint32_t)half[0],
				   .y = (uint32_t)(half[0] >> 32),
				   .z = (uint32_t)half[1],
				   .w = (uint32_t)(half[1] >> 32),
				   .v = (uint32_t)half[2],
				   .d = (uint32_t)(half[2] >> 32) };
}

static inline unsigned int many(unsigned int engine)
{
	return engine == ISA_VECTOR ? 4 : 1;
}

/* Generator of a partition that is an engine's first. */
static inline unsigned int first_of(unsigned int engine)
{
	return engine == ISA_VECTOR ? 0 : engine == ISA_GPSIMD ? 4 : 5;
}

static const uint8_t engines[] = { ISA_VECTOR, ISA_GPSIMD, ISA_SCALAR }; /* that have generators */

#endif /* TEST_XORWOW_H */
