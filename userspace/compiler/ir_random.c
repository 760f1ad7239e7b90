/* SPDX-License-Identifier: Apache-2.0 */
/* Building a graph: random bits, of integer operations alone. docs/random.md says why these. */
#include <errno.h>
#include <math.h>

#include "ir_build.h"

/* Random123's Philox 4x32. */
#define PHILOX_ROUNDS 10
#define PHILOX_M0     0xd2511f53u
#define PHILOX_M1     0xcd9e8d57u
#define PHILOX_W0     0x9e3779b9u
#define PHILOX_W1     0xbb67ae85u

void nc_random_key(uint64_t seed, uint64_t offset, uint32_t stream, uint32_t key[NC_KEY_WORDS])
{
	uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
	uint32_t c[NC_KEY_WORDS] = { (uint32_t)offset, (uint32_t)(offset >> 32), stream, 0 };

	for (int round = 0; round < PHILOX_ROUNDS; round++) {
		uint64_t a = (uint64_t)PHILOX_M0 * c[0], b = (uint64_t)PHILOX_M1 * c[2];

		c[0] = (uint32_t)(b >> 32) ^ c[1] ^ k0;
		c[1] = (uint32_t)b;
		c[2] = (uint32_t)(a >> 32) ^ c[3] ^ k1;
		c[3] = (uint32_t)a;
		k0 += PHILOX_W0;
		k1 += PHILOX_W1;
	}
	for (int i = 0; i < NC_KEY_WORDS; i++)
		key[i] = c[i];
}

int32_t nc_random_limit(double chance)
{
	double count = fmin(fmax(round(ldexp(chance, 32)), 1), 0x1p32);

	return (int32_t)((int64_t)count - 1 + INT32_MIN);
}

static nc_value with_const(nc_graph *graph, nc_binary_op op, nc_value x, uint32_t value)
{
	return nc_binary(graph, op, x, nc_const_int(graph, NC_INT32, (int32_t)value));
}

/* x ^ (x >> shift) */
static nc_value fold(nc_graph *graph, nc_value x, uint32_t shift)
{
	return nc_binary(graph, NC_XOR, with_const(graph, NC_LSR, x, shift), x);
}

/* Wellons' triple32, with a word of the key before each round and after the last. */
const struct random_round nci_random_rounds[NC_KEY_WORDS] = { { 17, 0xed5ad4bbu },
							      { 11, 0xac4c1b51u },
							      { 15, 0x31848babu },
							      { 14, 1 } };

nc_value nc_random(nc_graph *graph, const struct nc_type *type, const nc_value key[NC_KEY_WORDS])
{
	char text[TYPE_TEXT];
	nc_value index, x;

	for (int i = 0; i < NC_KEY_WORDS; i++) {
		const struct node *word = nci_operand(graph, key[i], "random");

		if (!word)
			return 0;
		if (word->type.dtype != NC_INT32 || word->type.ndim)
			return nci_mistake(graph, -EINVAL,
					   "random: word %d of the key is %s; wanted is int32 "
					   "without dims",
					   i, nci_type_text(&word->type, text, sizeof(text)));
	}
	if (type->dtype != NC_INT32)
		return nci_mistake(graph, -EINVAL, "random: %s; bits come as int32",
				   nci_type_text(type, text, sizeof(text)));
	index = nc_iota(graph, type, NC_ALL_DIMS);
	x = nc_binary(graph, NC_XOR, index, key[0]);
	for (int i = 0; i < 3; i++) {
		x = with_const(graph, NC_MUL, fold(graph, x, nci_random_rounds[i].shift),
			       nci_random_rounds[i].factor);
		x = nc_binary(graph, NC_XOR, x, key[i + 1]);
	}
	/* What would be a permutation, in which no number comes twice, is none with the index in it once more. */
	return nc_binary(graph, NC_XOR, fold(graph, x, nci_random_rounds[3].shift), index);
}
