/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "graph.h"

static bool is_float(nc_dtype dtype)
{
	return dtype == NC_FP32 || dtype == NC_BF16 || dtype == NC_FP16 || dtype == NC_FP64;
}

static bool has_binary(nc_binary_op op, nc_dtype dtype)
{
	bool bits = op == NC_AND || op == NC_OR || op == NC_XOR;
	bool shift = op == NC_SHL || op == NC_SHR;

	if (op == NC_LSR)
		return dtype == NC_INT32 || dtype == NC_INT64;
	if (is_float(dtype))
		return !bits && !shift;
	if (dtype == NC_BOOL)
		return bits || op == NC_ADD || op == NC_MUL || op == NC_MAX || op == NC_MIN ||
		       (op >= NC_EQ && op <= NC_GE);
	return true;
}

static void binary_all(void **state)
{
	(void)state;
	for (unsigned int d = 0; d < N_DTYPES; d++)
		for (int op = 0; op < NC_BINARY_OPS; op++) {
			struct tg *tg;
			struct tv *a, *b;
			bool careful = op == NC_POW || op == NC_SHL || op == NC_SHR;

			if (!has_binary((nc_binary_op)op, tg_dtypes[d]))
				continue;
			tg = tg_new("binary", (uint64_t)(d * 100 + (unsigned int)op));
			tg->tolerance = op == NC_POW ? 1e-5 : 0;
			a = careful ? tg_positive(tg, tg_dtypes[d], SHAPE(3, 77)) :
				      tg_input(tg, tg_dtypes[d], SHAPE(3, 77), NULL);
			b = careful ? tg_positive(tg, tg_dtypes[d], SHAPE(77)) :
				      tg_input(tg, tg_dtypes[d], SHAPE(77), NULL);
			tg_output(tg, tg_binary(tg, (nc_binary_op)op, a, b), NULL, NC_NO_ALIAS);
			tg_run(tg);
			tg_free(tg);
		}
}

/* Operand on either side a constant, a scalar of the launch, a column. */
static void binary_scalars(void **state)
{
	static const nc_dtype dtypes[] = { NC_FP32, NC_BF16, NC_INT32, NC_INT64, NC_FP64, NC_INT8 };

	(void)state;
	for (unsigned int d = 0; d < sizeof(dtypes) / sizeof(dtypes[0]); d++) {
		struct tg *tg = tg_new("scalars", d);
		struct tv *x = tg_input(tg, dtypes[d], SHAPE(130, 65), NULL);
		struct tv *col = tg_input(tg, dtypes[d], SHAPE(130, 1), NULL);
		struct tv *c = tg_const(tg, dtypes[d], 3), *s = tg_scalar(tg, dtypes[d], 5);
		struct tv *y;

		tg->tolerance = 0;
		y = tg_binary(tg, NC_SUB, c, x);
		y = tg_binary(tg, NC_SUB, y, s);
		y = tg_binary(tg, NC_MUL, s, y);
		y = tg_binary(tg, NC_SUB, col, y);
		y = tg_binary(tg, NC_ADD, y, tg_binary(tg, NC_MUL, c, s));
		tg_output(tg, y, NULL, NC_NO_ALIAS);
		tg_output(tg, tg_binary(tg, NC_SUB, s, c), NULL, NC_NO_ALIAS);
		tg_run(tg);
		tg_free(tg);
	}
}

static void unary_all(void **state)
{
	(void)state;
	for (unsigned int d = 0; d < N_DTYPES; d++)
		for (int op = 0; op < NC_UNARY_OPS; op++) {
			nc_dtype dtype = tg_dtypes[d];
			bool positive = op == NC_LN || op == NC_SQRT || op == NC_RSQRT ||
					op == NC_LOG1P;
			struct tg *tg = tg_new("unary", (uint64_t)(d * 100 + (unsigned int)op));
			struct tv *x = positive ? tg_positive(tg, dtype, SHAPE(5, 33)) :
						  tg_input(tg, dtype, SHAPE(5, 33), NULL);
			nc_value probe = nc_unary(tg->graph, (nc_unary_op)op, x->v);

			if (!probe) { /* refused: the other tests say for what */
				tg_free(tg);
				continue;
			}
			tg->tolerance = 1e-5;
			tg->absolute = 1e-6;
			tg_output(tg, tg_unary(tg, (nc_unary_op)op, x), NULL, NC_NO_ALIAS);
			tg_run(tg);
			tg_free(tg);
		}
}

/* A function of x op s and of s op x, s a constant, a scalar of the launch, a column, a row. */
static void unary_of_binary(void **state)
{
	static const nc_binary_op inner[] = { NC_ADD, NC_SUB, NC_MUL, NC_MAX };
	static const nc_unary_op outer[] = { NC_TANH, NC_RELU, NC_EXP, NC_RECIPROCAL };
	static const nc_dtype dtypes[] = { NC_FP32, NC_BF16 };

	(void)state;
	for (unsigned int i = 0; i < 128; i++) {
		nc_dtype dtype = dtypes[i & 1];
		nc_binary_op op = inner[i >> 2 & 3];
		struct tg *tg = tg_new("unary_of_binary", i);
		struct tv *x = tg_input(tg, dtype, SHAPE(130, 65), NULL), *y;
		struct tv *s[] = { tg_const(tg, dtype, 3), tg_scalar(tg, dtype, 0.5),
				   tg_input(tg, dtype, SHAPE(130, 1), NULL),
				   tg_input(tg, dtype, SHAPE(65), NULL) };
		struct tv *z = s[i >> 5];

		tg->tolerance = 1e-5;
		tg->absolute = 1e-6;
		for (unsigned int j = 0; j < 4; j++) {
			y = i >> 1 & 1 ? tg_binary(tg, op, z, x) : tg_binary(tg, op, x, z);
			tg_output(tg, tg_unary(tg, outer[j], y), NULL, NC_NO_ALIAS);
		}
		tg_run(tg);
		tg_free(tg);
	}
}

static void cast_all(void **state)
{
	(void)state;
	for (unsigned int a = 0; a < N_DTYPES; a++)
		for (unsigned int b = 0; b < N_DTYPES; b++) {
			struct tg *tg = tg_new("cast", a * 10 + b);
			struct tv *x = tg_input(tg, tg_dtypes[a], SHAPE(300), NULL);

			tg->tolerance = 0;
			/* Rounding twice differs from once; see the meaning of a value. */
			if ((tg_dtypes[a] == NC_FP64 || tg_dtypes[a] == NC_INT64 ||
			     tg_dtypes[a] == NC_INT32) &&
			    (tg_dtypes[b] == NC_BF16 || tg_dtypes[b] == NC_FP16))
				tg->tolerance = 1e-9;
			tg_output(tg, tg_cast(tg, x, tg_dtypes[b]), NULL, NC_NO_ALIAS);
			tg_run(tg);
			tg_free(tg);
		}
}

static void select_all(void **state)
{
	(void)state;
	for (unsigned int d = 0; d < N_DTYPES; d++) {
		struct tg *tg = tg_new("select", d);
		struct tv *c = tg_input(tg, NC_BOOL, SHAPE(40, 1, 9), NULL);
		struct tv *a = tg_input(tg, tg_dtypes[d], SHAPE(40, 7, 1), NULL);
		struct tv *b = tg_input(tg, tg_dtypes[d], SHAPE(7, 9), NULL);
		struct tv *zero = tg_const(tg, tg_dtypes[d], 0),
			  *one = tg_const(tg, tg_dtypes[d], 1);

		tg_output(tg, tg_select(tg, c, a, b), NULL, NC_NO_ALIAS);
		tg_output(tg, tg_select(tg, c, one, b), NULL, NC_NO_ALIAS);
		tg_output(tg, tg_select(tg, c, a, zero), NULL, NC_NO_ALIAS);
		tg_output(tg, tg_select(tg, c, one, zero), NULL, NC_NO_ALIAS);
		tg_run(tg);
		tg_free(tg);
	}
}

static void iota_all(void **state)
{
	static const nc_dtype dtypes[] = { NC_INT32, NC_INT64, NC_FP32, NC_FP64, NC_UINT8 };

	(void)state;
	for (unsigned int d = 0; d < sizeof(dtypes) / sizeof(dtypes[0]); d++)
		for (uint32_t dim = 0; dim < 3; dim++) {
			struct tg *tg = tg_new("iota", d);
			struct tv *i = tg_iota(tg, dtypes[d], SHAPE(11, 17, 200), dim);
			struct tv *x = tg_input(tg, dtypes[d], SHAPE(11, 17, 200), NULL);

			tg_output(tg, i, NULL, NC_NO_ALIAS);
			tg_output(tg, tg_binary(tg, NC_ADD, x, i), NULL, NC_NO_ALIAS);
			tg_run(tg);
			tg_free(tg);
		}
	struct tg *tg = tg_new("arange", 1);

	tg_output(tg, tg_iota(tg, NC_INT64, SHAPE(100003), 0), NULL, NC_NO_ALIAS);
	tg_run(tg);
	tg_free(tg);
}

static void fill(void **state)
{
	(void)state;
	for (unsigned int d = 0; d < N_DTYPES; d++) {
		struct tg *tg = tg_new("fill", d);
		struct tv *c = tg_const(tg, tg_dtypes[d], 1), *s = tg_scalar(tg, tg_dtypes[d], 1);

		tg_output(tg, tg_broadcast(tg, c, SHAPE(123, 1001)), NULL, NC_NO_ALIAS);
		tg_output(tg, tg_broadcast(tg, s, SHAPE(5)), NULL, NC_NO_ALIAS);
		tg_output(tg, c, NULL, NC_NO_ALIAS);
		tg_output(tg, s, NULL, NC_NO_ALIAS);
		tg_run(tg);
		tg_free(tg);
	}
}

/* Sizes around partitions and tiles. */
static void sizes(void **state)
{
	static const int64_t sizes[] = { 1,    2,    63,   64,	  65,	  127,	  128,	 129,
					 1000, 8192, 8193, 65536, 100003, 131072, 300007 };

	(void)state;
	for (unsigned int i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct tg *tg = tg_new("sizes", i);
		struct tv *a = tg_input(tg, NC_FP32, SHAPE(sizes[i]), NULL);
		struct tv *b = tg_input(tg, NC_FP32, SHAPE(sizes[i]), NULL);

		tg->tolerance = 0;
		tg_output(tg, tg_binary(tg, NC_ADD, a, b), NULL, NC_NO_ALIAS);
		tg_run(tg);
		tg_free(tg);
	}
}

/* Broadcasts, strides and permutations, at random. */
static void random_access(void **state)
{
	static const nc_dtype dtypes[] = { NC_FP32, NC_BF16, NC_INT32, NC_INT64, NC_BOOL };

	(void)state;
	for (uint64_t seed = 0; seed < 120; seed++) {
		struct tg *tg = tg_new("access", seed);
		uint32_t nd = (uint32_t)tg_range(tg, 1, 6), order[NC_DIMS_MAX];
		nc_dtype dtype = dtypes[tg_range(tg, 0, 4)];
		int64_t dims[NC_DIMS_MAX], part[NC_DIMS_MAX], strides[NC_DIMS_MAX], run = 1;
		struct tv *x, *y;

		for (uint32_t i = 0; i < nd; i++) {
			dims[i] = tg_range(tg, 1, nd > 4 ? 5 : nd > 2 ? 14 : 150);
			part[i] = tg_range(tg, 0, 2) ? dims[i] : 1;
			order[i] = i;
		}
		for (uint32_t i = nd; i-- > 0;) {
			uint32_t j = (uint32_t)tg_range(tg, 0, i), t = order[i];

			order[i] = order[j];
			order[j] = t;
		}
		for (uint32_t i = 0; i < nd; i++) { /* dense in a random order, sometimes gaps */
			strides[order[i]] = run;
			run *= dims[order[i]] + tg_range(tg, 0, 3) / 3;
		}
		x = tg_input(tg, dtype, nd, dims, strides);
		y = tg_input(tg, dtype, nd, part, NULL);
		x = tg_binary(tg, NC_MAX, x, y);
		for (uint32_t i = 0; i < nd; i++) {
			uint32_t j = (uint32_t)tg_range(tg, 0, nd - 1), t = order[i];

			order[i] = order[j];
			order[j] = t;
		}
		tg_output(tg, x, tg_range(tg, 0, 1) ? strides : NULL, NC_NO_ALIAS);
		tg_output(tg, tg_permute(tg, x, order), NULL, NC_NO_ALIAS);
		tg_run(tg);
		tg_free(tg);
	}
}

static void reshapes(void **state)
{
	(void)state;
	struct tg *tg = tg_new("reshape", 1);
	struct tv *x = tg_input(tg, NC_FP32, SHAPE(6, 20, 7), NULL), *y;
	const uint32_t swap[] = { 1, 0, 2 };

	y = tg_permute(tg, x, swap);
	tg_output(tg, tg_reshape(tg, x, SHAPE(30, 4, 7)), NULL, NC_NO_ALIAS);
	tg_output(tg, tg_unary(tg, NC_NEG, tg_reshape(tg, y, SHAPE(4, 210))), NULL, NC_NO_ALIAS);
	tg_output(tg, tg_reshape(tg, tg_unary(tg, NC_NEG, y), SHAPE(840)), NULL, NC_NO_ALIAS);
	y = tg_broadcast(tg, tg_reshape(tg, x, SHAPE(6, 1, 140)), SHAPE(6, 3, 140));
	tg_output(tg, tg_reshape(tg, y, SHAPE(18, 140)), NULL, NC_NO_ALIAS);
	tg_run(tg);
	tg_free(tg);
}

/* In place: exact, and where the input is read elsewhere too. */
static void in_place(void **state)
{
	const uint32_t swap[] = { 1, 0 };
	struct tv *x, *y, *s;
	struct tg *tg;

	(void)state;
	tg = tg_new("in_place", 1);
	x = tg_input(tg, NC_FP32, SHAPE(200, 300), NULL);
	y = tg_input(tg, NC_FP32, SHAPE(300), NULL);
	tg_output(tg, tg_binary(tg, NC_MUL, x, y), NULL, 0);
	tg_run(tg);
	tg_free(tg);

	tg = tg_new("in_place_transposed", 1);
	x = tg_input(tg, NC_FP32, SHAPE(200, 200), NULL);
	tg_output(tg, tg_binary(tg, NC_ADD, x, tg_permute(tg, x, swap)), NULL, 0);
	tg_run(tg);
	tg_free(tg);

	tg = tg_new("in_place_sum", 1);
	x = tg_input(tg, NC_FP32, SHAPE(300, 700), NULL);
	s = tg_reduce(tg, NC_REDUCE_MAX, x, 3, true);
	tg_output(tg, tg_binary(tg, NC_SUB, x, s), NULL, 0);
	tg_run(tg);
	tg_free(tg);
}

/* Operands with a few elements between those that are wanted: copied, computed with, summed, and in a view of
 * the memory of the result, in which nothing else may change. */
static void gaps(void **state)
{
	static const nc_dtype dtypes[] = { NC_FP32, NC_BF16, NC_INT64, NC_INT8, NC_FP64 };

	(void)state;
	for (unsigned int d = 0; d < sizeof(dtypes) / sizeof(dtypes[0]); d++)
		for (int64_t gap = 2; gap <= 5; gap++) {
			struct tg *tg = tg_new("gaps", d * 8 + (unsigned int)gap);
			const int64_t strides[3] = { 90000, 2100 * gap, gap };
			struct tv *x = tg_input(tg, dtypes[d], SHAPE(3, 7, 2001), strides);
			struct tv *y = tg_input(tg, dtypes[d], SHAPE(3, 7, 2001), NULL);
			struct tv *z = tg_input(tg, dtypes[d], SHAPE(3, 7, 2001), strides);

			tg_output(tg, x, NULL, NC_NO_ALIAS);
			tg_output(tg, tg_binary(tg, NC_ADD, x, y), NULL, NC_NO_ALIAS);
			tg_output(tg, tg_reduce(tg, NC_REDUCE_MAX, x, 4, false), NULL, NC_NO_ALIAS);
			tg_output(tg, tg_binary(tg, NC_SUB, z, y), strides, 2);
			tg_run(tg);
			tg_free(tg);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes),	  cmocka_unit_test(binary_all),
		cmocka_unit_test(binary_scalars), cmocka_unit_test(unary_all),
		cmocka_unit_test(cast_all),	  cmocka_unit_test(select_all),
		cmocka_unit_test(iota_all),	  cmocka_unit_test(fill),
		cmocka_unit_test(random_access),  cmocka_unit_test(reshapes),
		cmocka_unit_test(in_place),	  cmocka_unit_test(unary_of_binary),
		cmocka_unit_test(gaps),
	};

	return cmocka_run_group_tests_name("compiler_elementwise", tests, NULL, NULL);
}
