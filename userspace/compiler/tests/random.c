/* SPDX-License-Identifier: Apache-2.0 */
/* Random bits against the same written out, of Philox against published vectors, and whether they look random. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <string.h>

#include "random.h"

/* One round as the paper's figure has it: (L0, R0, L1, R1) are c[1], c[0], c[3], c[2]. */
static void philox_round(uint32_t c[4], uint64_t key)
{
	uint64_t p = (uint64_t)c[0] * 0xd2511f53, q = (uint64_t)c[2] * 0xcd9e8d57;
	uint32_t n[4] = { (uint32_t)(q >> 32) ^ c[1] ^ (uint32_t)key, (uint32_t)q,
			  (uint32_t)(p >> 32) ^ c[3] ^ (uint32_t)(key >> 32), (uint32_t)p };

	memcpy(c, n, sizeof(n));
}

static void philox(uint32_t c[4], uint64_t key)
{
	for (int i = 0; i < 10; i++) {
		uint32_t low = (uint32_t)key + (uint32_t)i * 0x9e3779b9;
		uint32_t high = (uint32_t)(key >> 32) + (uint32_t)i * 0xbb67ae85;

		philox_round(c, (uint64_t)high << 32 | low);
	}
}

/* Random123's vectors of philox4x32 with 10 rounds, then keys that have none against the same function. */
static void published_vectors(void **state)
{
	static const struct {
		uint32_t counter[4];
		uint64_t key;
		uint32_t want[4];
	} vectors[] = {
		{ { 0, 0, 0, 0 }, 0, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
		{ { UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX },
		  UINT64_MAX,
		  { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
		{ { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 },
		  0x299f31d0a4093822,
		  { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
	};
	uint32_t c[4], key[NC_KEY_WORDS];

	(void)state;
	for (int i = 0; i < 3; i++) {
		memcpy(c, vectors[i].counter, sizeof(c));
		philox(c, vectors[i].key);
		assert_memory_equal(c, vectors[i].want, sizeof(c));
	}
	for (uint64_t i = 0; i < 100; i++) {
		uint64_t seed = i * 0x9e3779b97f4a7c15, offset = i * 0xd1342543de82ef95;

		nc_random_key(seed, offset, (uint32_t)i, key);
		memcpy(c, (uint32_t[]){ (uint32_t)offset, offset >> 32, (uint32_t)i, 0 },
		       sizeof(c));
		philox(c, seed);
		assert_memory_equal(c, key, sizeof(c));
	}
}

static struct tv *random_value(struct tg *tg, uint64_t seed, uint64_t offset, uint32_t nd,
			       const int64_t *dims)
{
	struct tv *t = tv_new(tg, NC_INT32, nd, dims);
	struct nc_type type = tv_type(t);
	nc_value words[NC_KEY_WORDS];
	uint32_t key[NC_KEY_WORDS];

	random_key(tg, seed, offset, key, words);
	for (int64_t n = 0; n < t->n; n++)
		t->i[n] = (int32_t)random_bits(key, (uint32_t)n);
	t->v = nc_random(tg->graph, &type, words);
	return t;
}

/* As they are, seen otherwise, and used beside what lies otherwise in memory. */
static void one(uint64_t seed, uint32_t nd, const int64_t *dims, const int64_t *strides)
{
	struct tg *tg = tg_new("random", seed);
	struct tv *x = random_value(tg, seed, seed * 3, nd, dims);
	struct tv *y = tg_input(tg, NC_INT32, nd, dims, strides);

	tg_output(tg, x, NULL, NC_NO_ALIAS);
	tg_output(tg, tg_binary(tg, NC_ADD, x, y), strides, NC_NO_ALIAS);
	tg_output(tg, tg_reduce(tg, NC_REDUCE_MAX, tg_reshape(tg, x, 1, &x->n), 1, false), NULL,
		  NC_NO_ALIAS);
	tg_run(tg);
	tg_free(tg);
}

static void shapes(void **state)
{
	(void)state;
	one(1, SHAPE(1), NULL);
	one(2, SHAPE(1000), NULL);
	one(3, SHAPE(300001), NULL);
	one(4, SHAPE(3, 5), DIMS(1, 3));
	one(5, SHAPE(257, 131), DIMS(1, 257));
	one(6, SHAPE(2, 3, 40, 50), DIMS(6000, 2000, 1, 40));
	one(7, SHAPE(5, 1, 3, 2, 7), DIMS(1, 0, 70, 5, 10));
	one(8, SHAPE(200, 3, 70), DIMS(3, 1, 600));
}

static void numbers_in_row_major_order(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		static const nc_dtype dtypes[] = { NC_INT32, NC_FP32, NC_INT64, NC_FP64 };
		struct tg *tg = tg_new("numbers", 1);
		struct tv *x = tg_input(tg, dtypes[i], SHAPE(3, 70, 50), DIMS(1, 3, 210));
		struct tv *t = tv_new(tg, dtypes[i], 3, DIMS(3, 70, 50));
		struct nc_type type = tv_type(t);

		for (int64_t n = 0; n < t->n; n++)
			tv_set(t, n, (double)n);
		t->v = nc_iota(tg->graph, &type, NC_ALL_DIMS);
		tg_output(tg, t, NULL, NC_NO_ALIAS);
		tg_output(tg, tg_binary(tg, NC_MAX, x, t), NULL, NC_NO_ALIAS);
		tg_output(tg, tg_permute(tg, t, (const uint32_t[]){ 2, 0, 1 }), NULL, NC_NO_ALIAS);
		tg_run(tg);
		tg_free(tg);
	}
}

/*
 * Of keys of neighbouring seeds and draws: how often each byte of the bits has each value, and neighbours have the
 * same bit in each place. Chi-square over d degrees is within d +- 6 sqrt(2 d), a proportion of n within 6 / (2 sqrt n),
 * but for chances of about 1 in 10^8.
 */
#define SAMPLES (1 << 18)

static void check_bytes(const uint32_t *x)
{
	for (int byte = 0; byte < 4; byte++) {
		uint32_t count[256] = { 0 };
		double chi = 0, mean = SAMPLES / 256.0;

		for (int i = 0; i < SAMPLES; i++)
			count[x[i] >> 8 * byte & 255]++;
		for (int i = 0; i < 256; i++)
			chi += (count[i] - mean) * (count[i] - mean) / mean;
		assert_true(fabs(chi - 255) < 6 * sqrt(2 * 255.0));
	}
}

static void check_agreement(const uint32_t *x, const uint32_t *y)
{
	for (int bit = 0; bit < 32; bit++) {
		int same = 0;

		for (int i = 0; i < SAMPLES; i++)
			same += ~(x[i] ^ y[i]) >> bit & 1;
		assert_true(fabs(same - SAMPLES / 2.0) < 3 * sqrt(SAMPLES));
	}
}

static void look_random(void **state)
{
	static uint32_t x[4][SAMPLES + 1];
	static const uint64_t draws[4][2] = { { 0, 0 }, { 0, 1 }, { 1, 0 }, { UINT64_MAX, 0 } };

	(void)state;
	for (int d = 0; d < 4; d++) {
		uint32_t key[NC_KEY_WORDS];

		nc_random_key(draws[d][0], draws[d][1], 0, key);
		for (uint32_t i = 0; i <= SAMPLES; i++)
			x[d][i] = random_bits(key, i);
		check_bytes(x[d]);
		check_agreement(x[d], x[d] + 1);
	}
	for (int d = 1; d < 4; d++)
		check_agreement(x[0], x[d]);
}

static void limits(void **state)
{
	(void)state;
	assert_int_equal(nc_random_limit(1), INT32_MAX);
	assert_int_equal(nc_random_limit(1 - 0x1p-40), INT32_MAX);
	assert_int_equal(nc_random_limit(0.75), 0x3fffffff);
	assert_int_equal(nc_random_limit(0.5), -1);
	assert_int_equal(nc_random_limit(0x1p-31), INT32_MIN + 1);
	assert_int_equal(nc_random_limit(0x1p-60), INT32_MIN);
}

static void mistakes(void **state)
{
	const struct nc_type type = { .dtype = NC_FP32, .ndim = 1, .dims = { 3 } };
	const struct nc_type many = { .dtype = NC_INT32, .ndim = 2, .dims = { 65536, 65536 } };
	nc_graph *g = nc_graph_create("mistakes");
	nc_value key[NC_KEY_WORDS];

	(void)state;
	for (int i = 0; i < NC_KEY_WORDS; i++)
		key[i] = nc_scalar(g, NC_INT32);
	assert_int_equal(nc_random(g, &type, key), 0);
	test_refused(g, -EINVAL, "random: fp32[3]; bits come as int32");
	g = nc_graph_create("mistakes");
	for (int i = 0; i < NC_KEY_WORDS; i++)
		key[i] = nc_scalar(g, i == 2 ? NC_INT64 : NC_INT32);
	assert_int_equal(nc_random(g, &type, key), 0);
	test_refused(g, -EINVAL, "random: word 2 of the key is int64[]");
	g = nc_graph_create("mistakes");
	for (int i = 0; i < NC_KEY_WORDS; i++)
		key[i] = nc_scalar(g, NC_INT32);
	assert_int_equal(nc_random(g, &many, key), 0);
	test_refused(g, -EINVAL, "index 4294967295 is not exact in int32");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(published_vectors),
		cmocka_unit_test(shapes),
		cmocka_unit_test(numbers_in_row_major_order),
		cmocka_unit_test(look_random),
		cmocka_unit_test(limits),
		cmocka_unit_test(mistakes),
	};

	return cmocka_run_group_tests_name("compiler_random", tests, NULL, NULL);
}
