/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <math.h>

#include "graph.h"

static void set_tolerance(struct tg *tg, int64_t n)
{
	tg->tolerance = 3e-6;
	tg->absolute = 4e-6 * sqrt((double)n) * 3;
}

static void every_dtype(void **state)
{
	(void)state;
	for (unsigned int d = 0; d < N_DTYPES; d++)
		for (int op = 0; op < NC_REDUCE_OPS; op++)
			for (uint32_t axes = 1; axes < 4; axes++) {
				struct tg *tg =
					tg_new("reduce", d * 16 + (unsigned int)op * 4 + axes);
				struct tv *x = tg_input(tg, tg_dtypes[d], SHAPE(7, 5), NULL);

				set_tolerance(tg, 35);
				if (op == NC_REDUCE_PROD)
					tg->tolerance = 1e-5;
				tg_output(tg, tg_reduce(tg, (nc_reduce_op)op, x, axes, false), NULL,
					  NC_NO_ALIAS);
				tg_run(tg);
				tg_free(tg);
			}
}

static void one(nc_dtype dtype, nc_reduce_op op, uint32_t nd, const int64_t *dims, uint32_t axes,
		const int64_t *strides)
{
	struct tg *tg = tg_new("reduce", axes);
	struct tv *x = tg_input(tg, dtype, nd, dims, strides), *y;

	set_tolerance(tg, x->n);
	y = tg_reduce(tg, op, tg_unary(tg, NC_NEG, x), axes, true);
	tg_output(tg, y, NULL, NC_NO_ALIAS);
	tg_output(tg, tg_binary(tg, NC_ADD, y, y), NULL, NC_NO_ALIAS);
	tg_run(tg);
	tg_free(tg);
}

/* Sizes that don't divide, long and short rows, reduced dims on either side. */
static void shapes(void **state)
{
	static const nc_dtype dtypes[] = { NC_FP32, NC_INT32, NC_INT64, NC_BF16 };

	(void)state;
	for (int d = 0; d < 4; d++) {
		one(dtypes[d], NC_REDUCE_SUM, SHAPE(100003), 1, NULL);
		one(dtypes[d], NC_REDUCE_MAX, SHAPE(1009, 131), 1, NULL);
		one(dtypes[d], NC_REDUCE_SUM, SHAPE(1009, 131), 2, NULL);
		one(dtypes[d], NC_REDUCE_SUM, SHAPE(1009, 131), 3, NULL);
		one(dtypes[d], NC_REDUCE_MIN, SHAPE(3, 40009), 2, NULL);
		one(dtypes[d], NC_REDUCE_SUM, SHAPE(3, 40009), 1, NULL);
		one(dtypes[d], NC_REDUCE_SUM, SHAPE(5, 6, 31, 33), 13, NULL);
		one(dtypes[d], NC_REDUCE_SUM, SHAPE(64, 3, 257), 5, NULL);
		one(dtypes[d], NC_REDUCE_SUM, SHAPE(64, 300, 5), 2, NULL);
		one(dtypes[d], NC_REDUCE_MAX, SHAPE(200, 150), 1, DIMS(1, 200));
		one(dtypes[d], NC_REDUCE_SUM, SHAPE(200, 150), 2, DIMS(1, 200));
		one(dtypes[d], NC_REDUCE_SUM, SHAPE(1, 1, 1), 7, NULL);
		one(dtypes[d], NC_REDUCE_SUM, SHAPE(4, 1, 5), 2, NULL);
	}
}

static void random_axes(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 100; seed++) {
		struct tg *tg = tg_new("axes", seed);
		uint32_t nd = (uint32_t)tg_range(tg, 1, 5), axes;
		int64_t dims[NC_DIMS_MAX];
		struct tv *x, *bias;

		for (uint32_t i = 0; i < nd; i++)
			dims[i] = tg_range(tg, 1, nd > 3 ? 9 : nd == 3 ? 40 : 500);
		axes = (uint32_t)tg_range(tg, 1, (1 << nd) - 1);
		x = tg_input(tg, NC_FP32, nd, dims, NULL);
		bias = tg_input(tg, NC_FP32, 1, &dims[nd - 1], NULL);
		set_tolerance(tg, x->n);
		x = tg_binary(tg, NC_MUL, x, bias);
		tg_output(tg, tg_reduce(tg, NC_REDUCE_SUM, x, axes, seed & 1), NULL, NC_NO_ALIAS);
		tg_output(tg, tg_reduce(tg, NC_REDUCE_MAX, x, axes, seed & 1), NULL, NC_NO_ALIAS);
		if (seed & 2)
			tg_output(tg, x, NULL, NC_NO_ALIAS);
		tg_run(tg);
		tg_free(tg);
	}
}

static struct tv *softmax(struct tg *tg, const struct tv *x, uint32_t axes)
{
	struct tv *e = tg_unary(
		tg, NC_EXP, tg_binary(tg, NC_SUB, x, tg_reduce(tg, NC_REDUCE_MAX, x, axes, true)));

	return tg_binary(tg, NC_DIV, e, tg_reduce(tg, NC_REDUCE_SUM, e, axes, true));
}

static void softmaxes(void **state)
{
	static const int64_t s[][3] = {
		{ 4, 5, 10 }, { 2, 300, 1000 }, { 1, 3, 50000 }, { 3, 200, 7 }, { 1, 1, 5 }
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(s) / sizeof(s[0]); i++)
		for (uint32_t axes = 1; axes < 8; axes++) {
			struct tg *tg = tg_new("softmax", i * 8 + axes);
			struct tv *x = tg_input(tg, NC_FP32, 3, s[i], NULL);

			tg->tolerance = 1e-4;
			tg->absolute = 1e-6;
			tg_output(tg, softmax(tg, x, axes), NULL, NC_NO_ALIAS);
			tg_run(tg);
			tg_free(tg);
		}
}

/* Sums and others of functions, which may be a by-product of these, with the function's result wanted
 * or not, and where it does not vary along all that is reduced. */
static void of_functions(void **state)
{
	static const int64_t s[][2] = { { 300, 1000 }, { 3, 40009 }, { 1009, 131 }, { 1, 100003 } };

	(void)state;
	for (unsigned int i = 0; i < 24; i++) {
		const int64_t *dims = s[i & 3];
		uint32_t axes = i / 4 % 3 + 1, how = i / 3;
		struct tg *tg = tg_new("of_functions", i);
		struct tv *x = tg_input(tg, NC_FP32, 2, dims, NULL), *y;
		struct tv *w = tg_input(tg, NC_FP32, 1, &dims[1], NULL);

		set_tolerance(tg, x->n);
		y = tg_unary(tg, NC_TANH, tg_binary(tg, NC_SUB, x, tg_const(tg, NC_FP32, 0.5)));
		tg_output(tg, tg_reduce(tg, NC_REDUCE_SUM, y, axes, false), NULL, NC_NO_ALIAS);
		if (how & 1)
			tg_output(tg, y, NULL, NC_NO_ALIAS);
		if (how & 2)
			tg_output(tg, tg_reduce(tg, NC_REDUCE_MAX, y, axes, false), NULL,
				  NC_NO_ALIAS);
		if (how & 4) {
			y = tg_broadcast(tg, tg_unary(tg, NC_SQUARE, w), 2, dims);
			tg_output(tg, tg_reduce(tg, NC_REDUCE_SUM, y, axes, false), NULL,
				  NC_NO_ALIAS);
		}
		tg_run(tg);
		tg_free(tg);
	}
}

/* Mean of -log_softmax[target], and its gradient. */
static void cross_entropy(void **state)
{
	const int64_t n = 100, c = 10;
	struct tg *tg = tg_new("cross_entropy", 1);
	struct tv *x = tg_input(tg, NC_FP32, SHAPE(n, c), NULL);
	struct tv *t = tg_input(tg, NC_INT64, SHAPE(n, 1), NULL), *seven, *hot, *shifted, *lse,
		  *zero;
	struct tv *picked, *loss;

	(void)state;
	tg->tolerance = 1e-5;
	tg->absolute = 1e-5;
	seven = tg_const(tg, NC_INT64, c);
	t = tg_binary(tg, NC_MOD, t, seven);
	hot = tg_binary(tg, NC_EQ, tg_iota(tg, NC_INT64, SHAPE(n, c), 1), t);
	shifted = tg_binary(tg, NC_SUB, x, tg_reduce(tg, NC_REDUCE_MAX, x, 2, true));
	lse = tg_unary(tg, NC_LN,
		       tg_reduce(tg, NC_REDUCE_SUM, tg_unary(tg, NC_EXP, shifted), 2, true));
	zero = tg_const(tg, NC_FP32, 0);
	shifted = tg_binary(tg, NC_SUB, shifted, lse);
	picked = tg_select(tg, hot, shifted, zero);
	loss = tg_reduce(tg, NC_REDUCE_SUM, picked, 3, false);
	loss = tg_binary(tg, NC_MUL, loss, tg_const(tg, NC_FP32, -0.01));
	tg_output(tg, loss, NULL, NC_NO_ALIAS);
	tg_output(tg,
		  tg_binary(tg, NC_SUB, tg_unary(tg, NC_EXP, shifted), tg_cast(tg, hot, NC_FP32)),
		  NULL, NC_NO_ALIAS);
	tg_run(tg);
	tg_free(tg);
}

/* AdamW: many values, scalars that are computed from scalars. */
static void adamw(void **state)
{
	struct tg *tg = tg_new("adamw", 1);
	struct tv *p = tg_input(tg, NC_FP32, SHAPE(300, 70), NULL);
	struct tv *g = tg_input(tg, NC_FP32, SHAPE(300, 70), NULL);
	struct tv *m = tg_input(tg, NC_FP32, SHAPE(300, 70), NULL);
	struct tv *v = tg_positive(tg, NC_FP32, SHAPE(300, 70));
	struct tv *lr = tg_scalar(tg, NC_FP32, 0.125), *step = tg_scalar(tg, NC_FP32, 2);
	struct tv *b1 = tg_const(tg, NC_FP32, 0.875), *one = tg_const(tg, NC_FP32, 1), *c1, *denom;

	(void)state;
	tg->tolerance = 1e-5;
	tg->absolute = 1e-6;
	p = tg_binary(tg, NC_SUB, p,
		      tg_binary(tg, NC_MUL, p,
				tg_binary(tg, NC_MUL, lr, tg_const(tg, NC_FP32, 0.5))));
	m = tg_binary(tg, NC_ADD, tg_binary(tg, NC_MUL, m, b1), tg_binary(tg, NC_MUL, g, b1));
	v = tg_binary(tg, NC_ADD, tg_binary(tg, NC_MUL, v, b1), tg_unary(tg, NC_SQUARE, g));
	c1 = tg_binary(tg, NC_SUB, one, tg_binary(tg, NC_POW, b1, step));
	denom = tg_binary(tg, NC_ADD, tg_unary(tg, NC_SQRT, v), tg_const(tg, NC_FP32, 0.5));
	p = tg_binary(tg, NC_SUB, p,
		      tg_binary(tg, NC_MUL, tg_binary(tg, NC_DIV, lr, c1),
				tg_binary(tg, NC_DIV, m, denom)));
	tg_output(tg, p, NULL, 0);
	tg_output(tg, m, NULL, 2);
	tg_output(tg, v, NULL, 3);
	tg_output(tg, c1, NULL, NC_NO_ALIAS);
	tg_run(tg);
	tg_free(tg);
}

/* More tensors than one group takes, and a chain that is longer than one. */
static void many(void **state)
{
	struct tg *tg = tg_new("many", 1);
	struct tv *lr = tg_scalar(tg, NC_FP32, 0.125), *x = NULL;

	(void)state;
	tg->tolerance = 0;
	for (int i = 0; i < 20; i++) {
		struct tv *p = tg_input(tg, NC_FP32, SHAPE(70, 90), NULL);
		struct tv *g = tg_input(tg, NC_FP32, SHAPE(70, 90), NULL);

		x = tg_binary(tg, NC_SUB, p, tg_binary(tg, NC_MUL, g, lr));
		tg_output(tg, x, NULL, (uint32_t)(1 + 3 * i));
	}
	for (int i = 0; i < 100; i++)
		x = tg_binary(tg, i & 1 ? NC_MAX : NC_ADD, x, lr);
	tg_output(tg, x, NULL, NC_NO_ALIAS);
	tg_run(tg);
	tg_free(tg);
}

/* Layer norm over the last two dims, with weights. */
static void layer_norm(void **state)
{
	struct tg *tg = tg_new("layer_norm", 1);
	struct tv *x = tg_input(tg, NC_FP32, SHAPE(37, 6, 50), NULL), *mean, *d, *var, *y;
	struct tv *w = tg_input(tg, NC_FP32, SHAPE(6, 50), NULL);
	struct tv *n = tg_const(tg, NC_FP32, (float)(1.0 / 300));

	(void)state;
	tg->tolerance = 1e-5;
	tg->absolute = 2e-5;
	mean = tg_binary(tg, NC_MUL, tg_reduce(tg, NC_REDUCE_SUM, x, 6, true), n);
	d = tg_binary(tg, NC_SUB, x, mean);
	var = tg_binary(tg, NC_MUL,
			tg_reduce(tg, NC_REDUCE_SUM, tg_unary(tg, NC_SQUARE, d), 6, true), n);
	y = tg_binary(tg, NC_MUL, d,
		      tg_unary(tg, NC_RSQRT,
			       tg_binary(tg, NC_ADD, var, tg_const(tg, NC_FP32, 0.125))));
	tg_output(tg, tg_binary(tg, NC_MUL, y, w), NULL, NC_NO_ALIAS);
	tg_output(tg, tg_reshape(tg, mean, SHAPE(37)), NULL, NC_NO_ALIAS);
	tg_run(tg);
	tg_free(tg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_dtype),	 cmocka_unit_test(shapes),
		cmocka_unit_test(random_axes),	 cmocka_unit_test(softmaxes),
		cmocka_unit_test(cross_entropy), cmocka_unit_test(adamw),
		cmocka_unit_test(layer_norm),	 cmocka_unit_test(many),
		cmocka_unit_test(of_functions),
	};

	return cmocka_run_group_tests_name("compiler_reduce", tests, NULL, NULL);
}
