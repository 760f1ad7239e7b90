// SPDX-License-Identifier: Apache-2.0
/* Products of pairs of bf16 give the bits that products of the same numbers in fp32 do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "rows.h"

#define K_MAX ISA_MATMUL_K_MAX
#define M_MAX ISA_MATMUL_M_MAX
#define N_MAX ISA_MATMUL_N_MAX

static uint64_t seed = 0x9e3779b97f4a7c15u;

static uint32_t rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed >> 20);
}

/* Of any size whose sums and products are neither subnormal nor infinite; zeros now and then. */
static uint16_t any_bf16(void)
{
	uint32_t sign = rnd() % 2 << 15, exponent = 127 - 20 + rnd() % 40;

	return (uint16_t)(sign | (rnd() % 16 ? exponent << 7 | rnd() % 128 : 0));
}

static const uint16_t special[] = { 0x7f80, 0xff80, 0x7fc0, 0x8000, 0x3f80 };

struct operand {
	uint16_t bf16[K_MAX][N_MAX];
	float fp32[K_MAX][N_MAX];
	uint32_t pairs[K_MAX / 2][N_MAX];
};

static void make(struct operand *o, unsigned int k, unsigned int n, unsigned int specials)
{
	const struct nm_pairs *p = nm_pairs();

	memset(o, 0, sizeof(*o));
	for (unsigned int i = 0; i < k; i++)
		for (unsigned int j = 0; j < n; j++)
			o->bf16[i][j] = any_bf16();
	while (specials--)
		o->bf16[rnd() % k][rnd() % n] = special[rnd() % 5];
	for (unsigned int i = 0; i < k; i++)
		for (unsigned int j = 0; j < n; j++) {
			uint32_t bits = (uint32_t)o->bf16[i][j] << 16;

			memcpy(&o->fp32[i][j], &bits, sizeof(bits));
		}
	for (unsigned int i = 0; i < k; i += 2)
		assert_true(
			p->make(o->pairs[i / 2], o->bf16[i], i + 1 < k ? o->bf16[i + 1] : NULL, n));
}

/* Blocks of NM_GEMM_PACK columns, as nm_gemm_fn wants its first operand; elements of 4 bytes. */
static void pack(void *out, const void *in, unsigned int k, unsigned int m)
{
	const uint32_t (*from)[N_MAX] = in;
	uint32_t *to = out;

	for (unsigned int i = 0; i < k; i++)
		for (unsigned int j = 0; j < m; j++)
			to[(j / NM_GEMM_PACK * k + i) * NM_GEMM_PACK + j % NM_GEMM_PACK] =
				from[i][j];
}

static void compare(unsigned int m, unsigned int n, unsigned int k, bool accumulate,
		    unsigned int specials)
{
	static struct operand a, b;
	static float packed[K_MAX * M_MAX], want[M_MAX][N_MAX], have[M_MAX][N_MAX];

	make(&a, k, m, specials);
	make(&b, k, n, specials);
	for (unsigned int i = 0; i < M_MAX; i++)
		for (unsigned int j = 0; j < N_MAX; j++)
			want[i][j] = have[i][j] = (float)(int32_t)rnd() * 0x1p-20f;
	memset(packed, 0, sizeof(packed));
	pack(packed, a.fp32, k, m);
	nm_rows()->gemm(want[0], N_MAX, packed, b.fp32, N_MAX, m, n, k, accumulate);
	memset(packed, 0, sizeof(packed));
	pack(packed, a.pairs, (k + 1) / 2, m);
	nm_pairs()->gemm(have[0], N_MAX, packed, b.pairs, N_MAX, m, n, (k + 1) / 2, accumulate);
	for (unsigned int i = 0; i < M_MAX; i++)
		for (unsigned int j = 0; j < N_MAX; j++) {
			float x = want[i][j], y = have[i][j];

			/* NaN has no sign here. */
			if (memcmp(&x, &y, sizeof(x)) != 0 && (x == x || y == y))
				fail_msg("m %u of %u, n %u of %u, k %u: %a in fp32, %a by pairs", i,
					 m, j, n, k, (double)x, (double)y);
		}
}

static void test_products(void **state)
{
	(void)state;
	if (!nm_pairs())
		skip();
	for (unsigned int i = 0; i < 60; i++)
		compare(1 + rnd() % M_MAX, 1 + rnd() % N_MAX, 1 + rnd() % K_MAX, i % 2,
			i % 3 ? 0 : rnd() % 20);
	compare(M_MAX, N_MAX, K_MAX, false, 0);
	compare(1, 1, 1, true, 0);
}

static void test_subnormals(void **state)
{
	const struct nm_pairs *p = nm_pairs();
	uint16_t even[100], odd[100] = { 0 };
	uint32_t pairs[100];

	(void)state;
	if (!p)
		skip();
	for (unsigned int i = 0; i < 100; i++)
		even[i] = any_bf16();
	assert_true(p->make(pairs, even, odd, 100));
	assert_int_equal(pairs[99], (uint32_t)even[99] << 16);
	for (unsigned int i = 0; i < 100; i++) {
		odd[i] = i % 2 ? 0x8001 : 0x007f; /* the smallest, and the largest */
		assert_false(p->make(pairs, even, odd, 100));
		assert_false(p->make(pairs, odd, NULL, 100));
		odd[i] = i % 2 ? 0x8000 : 0x0080; /* zero, and the smallest that is not subnormal */
		assert_true(p->make(pairs, even, odd, 100));
		assert_int_equal(pairs[i] & 0xffff, odd[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_products),
		cmocka_unit_test(test_subnormals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
