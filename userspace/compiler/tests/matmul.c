/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <math.h>

#include "graph.h"

static const uint32_t swap[] = { 1, 0 };

/* Matrix of m x n, transposed in memory if asked. */
static struct tv *matrix(struct tg *tg, nc_dtype dtype, int64_t m, int64_t n, bool transposed)
{
	if (!transposed)
		return tg_input(tg, dtype, SHAPE(m, n), NULL);
	return tg_permute(tg, tg_input(tg, dtype, SHAPE(n, m), NULL), swap);
}

static void set_tolerance(struct tg *tg, nc_dtype dtype, int64_t k)
{
	tg->tolerance = 2e-6;
	tg->absolute = 4e-6 * sqrt((double)k) * 4;
	if (dtype != NC_FP32)
		tg->absolute *= 2;
}

static void run(nc_dtype dtype, int64_t m, int64_t k, int64_t n, int layout)
{
	struct tg *tg = tg_new("matmul", (uint64_t)(m * 7 + k * 3 + n + layout));
	struct tv *a = matrix(tg, dtype, m, k, layout & 1);
	struct tv *b = matrix(tg, dtype, k, n, layout & 2);

	set_tolerance(tg, dtype, k);
	tg_output(tg, tg_matmul(tg, a, b), layout & 4 ? DIMS(1, m) : NULL, NC_NO_ALIAS);
	tg_run(tg);
	tg_free(tg);
}

static void layouts(void **state)
{
	static const nc_dtype dtypes[] = { NC_FP32, NC_BF16, NC_FP16 };

	(void)state;
	for (int d = 0; d < 3; d++)
		for (int layout = 0; layout < 8; layout++) {
			run(dtypes[d], 64, 64, 64, layout);
			run(dtypes[d], 200, 300, 150, layout);
		}
}

static void shapes(void **state)
{
	static const int64_t s[][3] = {
		{ 1, 1, 1 },	   { 1, 500, 1 },     { 5, 1, 7 },	  { 1, 2000, 33 },
		{ 129, 128, 513 }, { 128, 129, 10 },  { 3, 2, 2500 },	  { 130, 64, 1025 },
		{ 257, 256, 31 },  { 20, 9000, 260 }, { 140, 5000, 420 },
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(s) / sizeof(s[0]); i++)
		for (int layout = 0; layout < 4; layout++)
			run(NC_FP32, s[i][0], s[i][1], s[i][2], layout);
}

static void batches(void **state)
{
	const uint32_t heads[] = { 0, 2, 1, 3 }, last[] = { 0, 1, 3, 2 };
	struct tv *a, *b, *c;
	struct tg *tg;

	(void)state;
	for (int i = 0; i < 6; i++) {
		tg = tg_new("batch", (uint64_t)i);
		set_tolerance(tg, NC_FP32, 40);
		switch (i) {
		case 0:
			a = tg_input(tg, NC_FP32, SHAPE(3, 4, 20, 40), NULL);
			b = tg_input(tg, NC_FP32, SHAPE(3, 4, 40, 30), NULL);
			break;
		case 1: /* broadcast: one product */
			a = tg_input(tg, NC_FP32, SHAPE(7, 50, 40), NULL);
			b = tg_input(tg, NC_FP32, SHAPE(40, 30), NULL);
			break;
		case 2:
			a = tg_input(tg, NC_FP32, SHAPE(50, 40), NULL);
			b = tg_input(tg, NC_FP32, SHAPE(7, 40, 30), NULL);
			break;
		case 3:
			a = tg_input(tg, NC_FP32, SHAPE(3, 1, 20, 40), NULL);
			b = tg_input(tg, NC_FP32, SHAPE(4, 40, 30), NULL);
			break;
		default: /* attention: heads are strided views */
			a = tg_permute(tg, tg_input(tg, NC_FP32, SHAPE(2, 20, 4, 40), NULL), heads);
			b = tg_permute(tg, tg_input(tg, NC_FP32, SHAPE(2, 30, 4, 40), NULL), heads);
			b = tg_permute(tg, b, last);
			break;
		}
		c = tg_matmul(tg, a, b);
		if (i == 5)
			c = tg_permute(tg, c, heads);
		tg_output(tg, c, NULL, NC_NO_ALIAS);
		tg_run(tg);
		tg_free(tg);
	}
}

/* relu(a b + bias) in place, and the product itself; bf16 rounds between. */
static void epilogue(void **state)
{
	static const nc_dtype dtypes[] = { NC_FP32, NC_BF16 };

	(void)state;
	for (int d = 0; d < 2; d++) {
		struct tg *tg = tg_new("linear", (uint64_t)d);
		struct tv *x = tg_input(tg, dtypes[d], SHAPE(100, 70), NULL);
		struct tv *w = tg_permute(tg, tg_input(tg, dtypes[d], SHAPE(90, 70), NULL), swap);
		struct tv *bias = tg_input(tg, dtypes[d], SHAPE(90), NULL);
		struct tv *c = tg_input(tg, dtypes[d], SHAPE(100, 90), NULL);
		struct tv *y = tg_matmul(tg, x, w), *z;

		set_tolerance(tg, dtypes[d], 70);
		if (d)
			tg->absolute = 0.15;
		z = tg_unary(tg, NC_RELU, tg_binary(tg, NC_ADD, y, bias));
		tg_output(tg, z, NULL, NC_NO_ALIAS);
		tg_output(tg, y, NULL, NC_NO_ALIAS);
		tg_output(tg, tg_binary(tg, NC_ADD, c, y), NULL, 3);
		tg_run(tg);
		tg_free(tg);
	}
}

/* An operand that is computed, and a product that is used again. */
static void chains(void **state)
{
	struct tg *tg = tg_new("chain", 1);
	struct tv *a = tg_input(tg, NC_FP32, SHAPE(60, 60), NULL), *b;

	(void)state;
	set_tolerance(tg, NC_FP32, 60);
	tg->absolute = 0.05;
	b = tg_matmul(tg, tg_unary(tg, NC_SQUARE, a), a);
	tg_output(tg, tg_matmul(tg, b, tg_permute(tg, b, swap)), NULL, 0);
	tg->tolerance = 1e-5;
	tg_run(tg);
	tg_free(tg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(layouts),  cmocka_unit_test(shapes), cmocka_unit_test(batches),
		cmocka_unit_test(epilogue), cmocka_unit_test(chains),
	};

	return cmocka_run_group_tests_name("compiler_matmul", tests, NULL, NULL);
}
