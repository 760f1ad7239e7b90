/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <string.h>

#include "graph.h"

/*
 * Sums of n values up to 4 that cancel: n roundings to half a unit of sums that grow as sqrt(n), the
 * errors of which add up as their square root again.
 */
static void set_tolerance(struct tg *tg, int64_t n)
{
	tg->tolerance = 3e-6;
	tg->absolute = 4e-6 * sqrt((double)n) * 3;
}

/* The scan, once as an output and once read by another kernel. */
static void one(nc_dtype dtype, nc_reduce_op op, uint32_t nd, const int64_t *dims, uint32_t dim,
		const int64_t *strides)
{
	struct tg *tg = tg_new("scan", (uint64_t)dims[dim] * 8 + dim);
	struct tv *x = tg_input(tg, dtype, nd, dims, strides), *y;

	set_tolerance(tg, dims[dim]);
	y = tg_scan(tg, op, x, dim);
	tg_output(tg, y, NULL, NC_NO_ALIAS);
	tg_output(tg, tg_binary(tg, NC_MAX, y, x), NULL, NC_NO_ALIAS);
	tg_run(tg);
	tg_free(tg);
}

static void every_dtype(void **state)
{
	(void)state;
	for (unsigned int d = 0; d < N_DTYPES; d++)
		for (int op = 0; op < NC_REDUCE_OPS; op++)
			for (uint32_t dim = 0; dim < 2; dim++) {
				one(tg_dtypes[d], (nc_reduce_op)op, SHAPE(7, 5), dim, NULL);
				if (op != NC_REDUCE_PROD || !(d < 4))
					one(tg_dtypes[d], (nc_reduce_op)op, SHAPE(1500), 0, NULL);
			}
}

/* Sizes that don't divide; one step; more than the partitions, than a tile, than SBUF. */
static void shapes(void **state)
{
	static const nc_dtype dtypes[] = { NC_FP32, NC_BF16, NC_INT32, NC_INT64 };

	(void)state;
	for (int d = 0; d < 4; d++) {
		one(dtypes[d], NC_REDUCE_SUM, SHAPE(1), 0, NULL);
		one(dtypes[d], NC_REDUCE_SUM, SHAPE(1, 1, 3), 1, NULL);
		one(dtypes[d], NC_REDUCE_SUM, SHAPE(2), 0, NULL);
		one(dtypes[d], NC_REDUCE_SUM, SHAPE(1023), 0, NULL);
		one(dtypes[d], NC_REDUCE_SUM, SHAPE(1025), 0, NULL);
		one(dtypes[d], NC_REDUCE_MAX, SHAPE(100003), 0, NULL);
		one(dtypes[d], NC_REDUCE_SUM, SHAPE(600011), 0, NULL);
		one(dtypes[d], NC_REDUCE_SUM, SHAPE(2000, 3), 0, NULL);
		one(dtypes[d], NC_REDUCE_MIN, SHAPE(3, 20001), 1, NULL);
		one(dtypes[d], NC_REDUCE_SUM, SHAPE(259, 131), 1, NULL);
		one(dtypes[d], NC_REDUCE_SUM, SHAPE(259, 131), 0, NULL);
		one(dtypes[d], NC_REDUCE_MIN, SHAPE(40, 9001), 1, NULL);
		one(dtypes[d], NC_REDUCE_SUM, SHAPE(9001, 40), 0, NULL);
		one(dtypes[d], NC_REDUCE_SUM, SHAPE(5, 100, 7, 3), 1, NULL);
		one(dtypes[d], NC_REDUCE_SUM, SHAPE(3, 2, 130, 150), 2, NULL);
		one(dtypes[d], NC_REDUCE_SUM, SHAPE(150, 20, 70), 1, NULL);
		one(dtypes[d], NC_REDUCE_MAX, SHAPE(200, 150), 0, DIMS(1, 200));
		one(dtypes[d], NC_REDUCE_SUM, SHAPE(200, 150), 1, DIMS(1, 200));
		one(dtypes[d], NC_REDUCE_SUM, SHAPE(40, 60), 1, DIMS(0, 2));
	}
}

/* Of views, constants and in place: over the memory of the operand. */
static void operands(void **state)
{
	struct tg *tg = tg_new("operands", 1);
	struct tv *x = tg_input(tg, NC_FP32, SHAPE(30, 50), NULL), *y;
	struct tv *c = tg_const(tg, NC_FP32, 3), *s = tg_scalar(tg, NC_INT32, 7);

	(void)state;
	set_tolerance(tg, 1500);
	y = tg_permute(tg, tg_unary(tg, NC_ABS, x), (const uint32_t[]){ 1, 0 });
	tg_output(tg, tg_scan(tg, NC_REDUCE_SUM, y, 0), NULL, NC_NO_ALIAS);
	y = tg_scan(tg, NC_REDUCE_SUM, tg_broadcast(tg, c, SHAPE(200, 40)), 1);
	tg_output(tg, tg_scan(tg, NC_REDUCE_MAX, y, 0), DIMS(1, 200), NC_NO_ALIAS);
	tg_output(tg, tg_scan(tg, NC_REDUCE_SUM, tg_broadcast(tg, s, SHAPE(1, 5000)), 1), NULL,
		  NC_NO_ALIAS);
	tg_output(tg, tg_scan(tg, NC_REDUCE_SUM, tg_reshape(tg, x, SHAPE(1500)), 0), NULL,
		  NC_NO_ALIAS);
	tg_output(tg, tg_scan(tg, NC_REDUCE_MIN, x, 1), NULL, 0);
	tg_run(tg);
	tg_free(tg);
}

/* NaN and infinity reach what comes after them and nothing before. */
static void special(void **state)
{
	(void)state;
	for (int op = 0; op < NC_REDUCE_OPS; op++)
		for (int wide = 0; wide < 2; wide++) {
			struct tg *tg = tg_new("special", (uint64_t)op);
			struct tv *i = tg_iota(tg, NC_FP32, SHAPE(wide ? 50 : 1, 3001), 1);
			struct tv *one = tg_const(tg, NC_FP32, 1), *odd = tg_const(tg, NC_FP32, 0);
			struct tv *y =
				tg_select(tg, tg_binary(tg, NC_EQ, i, tg_const(tg, NC_FP32, 2000)),
					  tg_const(tg, NC_FP32, (double)INFINITY), one);

			odd = tg_binary(tg, NC_DIV, odd, odd);
			y = tg_select(tg, tg_binary(tg, NC_EQ, i, tg_const(tg, NC_FP32, 2900)), odd,
				      y);
			tg_output(tg, tg_scan(tg, (nc_reduce_op)op, y, 1), NULL, NC_NO_ALIAS);
			tg_run(tg);
			tg_free(tg);
		}
}

static void mistakes(void **state)
{
	const struct nc_type type = { .dtype = NC_FP32, .ndim = 2, .dims = { 3, 4 } };
	nc_graph *g = nc_graph_create("mistakes");

	(void)state;
	assert_int_equal(nc_scan(g, NC_REDUCE_SUM, nc_input(g, &type, NULL), 2), 0);
	test_refused(g, -EINVAL, "scan_sum: dim 2 of fp32[3,4], which has 2 dims");
	g = nc_graph_create("mistakes");
	assert_int_equal(nc_scan(g, NC_REDUCE_OPS, nc_input(g, &type, NULL), 0), 0);
	test_refused(g, -EINVAL, "unknown operation 4");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_dtype), cmocka_unit_test(shapes),
		cmocka_unit_test(operands),    cmocka_unit_test(special),
		cmocka_unit_test(mistakes),
	};

	return cmocka_run_group_tests_name("compiler_scan", tests, NULL, NULL);
}
