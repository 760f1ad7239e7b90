// SPDX-License-Identifier: Apache-2.0
/*
 * Stochastic rounding: with r, a random number of 32 bits, and f, how far a magnitude lies on its way from
 * one number of the destination's dtype to the next, the next one is the result when r < floor(f * 2^32).
 * Infinity, or NaN where there is none, takes the place of the number behind the largest. f * 2^32 is an integer but for numbers far
 * below the least one of the dtype, so that the result is that of no rounding on average.
 */
#include <string.h>

#include "exec.h"

/* The numbers of a dtype, among those of fp32. */
struct grid {
	uint8_t drop; /* low bits of a normal number's fraction that it has not */
	uint8_t least_exp; /* of fp32, biased: of its least normal number, but of fp32's where it has that */
};

static const struct grid grids[NM_DTYPES] = {
	[ISA_BF16] = { 16, 1 },		  [ISA_FP16] = { 13, 127 - 14 },
	[ISA_TF32] = { 13, 1 },		  [ISA_FP8_E3] = { 19, 127 - 2 },
	[ISA_FP8_E4] = { 20, 127 - 6 },	  [ISA_FP8_E5] = { 21, 127 - 14 },
	[ISA_FP8_E4FN] = { 20, 127 - 6 },
};

#define FRACTION 23 /* bits, of fp32 */
#define INFINITE 0x7f800000u

/* A magnitude by its bits. */
static uint32_t round_one(struct grid g, uint32_t bits, uint32_t r)
{
	const uint32_t exp = bits >> FRACTION ? bits >> FRACTION : 1;
	const uint32_t drop = g.drop + (exp < g.least_exp ? g.least_exp - exp : 0u);
	uint64_t number;

	if (bits >= INFINITE)
		return bits;
	if (drop <= FRACTION) {
		const uint32_t rest = bits << (32 - drop);

		return bits - (rest >> (32 - drop)) + (r < rest ? 1u << drop : 0);
	}
	/* Between zero and the dtype's least number, 2^(drop - 23) times the unit of this exponent. */
	number = (bits & ((1u << FRACTION) - 1)) | (uint64_t)(bits >> FRACTION != 0) << FRACTION;
	if (drop >= 64 || r >= number << 32 >> drop)
		return 0;
	return (g.least_exp + g.drop - FRACTION) << FRACTION;
}

void nm_round_stochastic(const struct nm_exec *x, const struct nm_compute *c, unsigned int p,
			 uint32_t first, uint32_t n, const float *in, uint32_t *number, float *out)
{
	const struct grid g = grids[c->dst.dtype];

	nm_random_draw(x, c, p, first, n, number);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t bits, sign;

		memcpy(&bits, &in[i], sizeof(bits));
		sign = bits & 0x80000000u;
		bits = round_one(g, bits ^ sign, number[i]) | sign;
		memcpy(&out[i], &bits, sizeof(bits));
	}
}
