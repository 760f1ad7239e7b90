// SPDX-License-Identifier: Apache-2.0
/*
 * Random numbers: XORWOW generators (G. Marsaglia, "Xorshift RNGs", 2003), seeded by splitmix64. Each
 * partition has its own, so that partitions may be processed in any order and at once.
 */
#include <string.h>

#include "exec.h"

static uint32_t next(uint32_t s[ISA_RANDOM_WORDS])
{
	uint32_t t = s[0] ^ s[0] >> 2, v = s[4];

	memmove(s, s + 1, 4 * sizeof(s[0]));
	s[4] = v ^ v << 4 ^ t ^ t << 1;
	s[5] += 362437;
	return s[4] + s[5];
}

/* The instruction's generators of partition p. */
static uint32_t *generators(const struct nm_exec *x, const struct nm_compute *c, unsigned int p)
{
	return x->random[p] + (size_t)c->generator * ISA_RANDOM_WORDS;
}

void nm_random_draw(const struct nm_exec *x, const struct nm_compute *c, unsigned int p,
		    uint32_t first, uint32_t n, uint32_t *out)
{
	uint32_t *state = generators(x, c, p), s[ISA_RANDOM_WORDS];
	const uint32_t many = c->generators;

	for (uint32_t g = 0; g < many; g++, state += ISA_RANDOM_WORDS) {
		memcpy(s, state, sizeof(s));
		for (uint32_t i = (g + many - first % many) % many; i < n; i += many)
			out[i] = next(s);
		memcpy(state, s, sizeof(s));
	}
}

/* One number for each element of partition p. */
static void draw(const struct nm_exec *x, const struct nm_compute *c, unsigned int p, uint32_t *out)
{
	nm_random_draw(x, c, p, 0, c->n, out);
}

/* Of [0, 1): exact. */
static float uniform(uint32_t number)
{
	return (float)(number >> 8) * 0x1p-24f;
}

static uint64_t mix(uint64_t n)
{
	n = (n ^ n >> 30) * 0xbf58476d1ce4e5b9u;
	n = (n ^ n >> 27) * 0x94d049bb133111ebu;
	return n ^ n >> 31;
}

/* Generators first and on, many, of all partitions. */
static void seed_all(struct nm_exec *x, unsigned int first, unsigned int many, uint32_t seed)
{
	for (unsigned int p = 0; p < ISA_PARTITIONS; p++)
		for (unsigned int g = first; g < first + many; g++) {
			uint32_t *state = x->random[p] + g * ISA_RANDOM_WORDS;
			uint64_t s = seed + ((uint64_t)(8 * p + g) << 32);

			for (unsigned int k = 0; k < ISA_RANDOM_WORDS; k += 2) {
				uint64_t n = mix(s += 0x9e3779b97f4a7c15u);

				state[k] = (uint32_t)n;
				state[k + 1] = (uint32_t)(n >> 32);
			}
		}
}

void nm_random_reset(struct nm_exec *x)
{
	seed_all(x, 0, NM_RANDOM, 0);
}

void nm_exec_set_seed(struct nm_exec *x, const struct nm_compute *c)
{
	uint32_t seed;

	nm_fetch_bits(x, &c->src0, &c->nest, 0, &seed);
	seed_all(x, c->generator, c->generators, seed);
}

void nm_exec_set_state(struct nm_exec *x, const struct nm_compute *c)
{
	for (unsigned int p = 0; p < c->nparts; p++)
		nm_fetch_bits(x, &c->src0, &c->nest, p, generators(x, c, p));
}

void nm_exec_get_state(struct nm_exec *x, const struct nm_compute *c)
{
	for (unsigned int p = 0; p < c->nparts; p++)
		nm_put_bits(x, &c->dst, &c->nest, p, generators(x, c, p));
}

void nm_exec_rng(struct nm_exec *x, const struct nm_compute *c)
{
	uint32_t *row = (uint32_t *)x->buffer[0];

	for (unsigned int p = 0; p < c->nparts; p++) {
		draw(x, c, p, row);
		nm_put(x, c->ct, &c->dst, &c->nest, p, row);
	}
}

static float scalar(const struct nm_exec *x, const struct nm_compute *c, const struct nm_scalar *s,
		    unsigned int p)
{
	uint64_t bits = nm_scalar_value(x, c, s, p);
	float value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

void nm_exec_rand2(struct nm_exec *x, const struct nm_compute *c)
{
	uint32_t *number = (uint32_t *)x->buffer[0];
	float *row = (float *)x->buffer[1];

	for (unsigned int p = 0; p < c->nparts; p++) {
		float min = scalar(x, c, &c->s0, p), width = scalar(x, c, &c->s1, p) - min;

		draw(x, c, p, number);
		for (uint32_t i = 0; i < c->n; i++)
			row[i] = min + width * uniform(number[i]);
		nm_put(x, c->ct, &c->dst, &c->nest, p, row);
	}
}

void nm_exec_dropout(struct nm_exec *x, const struct nm_compute *c)
{
	uint32_t *number = (uint32_t *)x->buffer[0];
	uint8_t *row = (uint8_t *)x->buffer[1];

	for (unsigned int p = 0; p < c->nparts; p++) {
		float probability = scalar(x, c, &c->s0, p);

		draw(x, c, p, number);
		nm_fetch_bits(x, &c->src0, &c->nest, p, row);
		for (uint32_t i = 0; i < c->n; i++)
			if (uniform(number[i]) < probability)
				memset(row + (size_t)i * c->dst.bytes, 0, c->dst.bytes);
		nm_put_bits(x, &c->dst, &c->nest, p, row);
	}
}
