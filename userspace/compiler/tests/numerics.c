// SPDX-License-Identifier: Apache-2.0
/*
 * Error bounds of operations against float64, those of docs/numerics.md. Prints, for each operation and
 * dtype, the worst error that was found and the bound; fails if one is exceeded. Functions are taken at
 * all 65536 values of bf16 and fp16, and at some 250,000 of fp32 spread over all of its bits.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "values.h"

#define EPS	    0x1p-24 /* half a unit in the last place of 1, fp32 */
#define FP32_VALUES (1 << 18)
#define HALF_VALUES (1 << 16)

static const nc_dtype floats[] = { NC_FP32, NC_BF16, NC_FP16 };
static const char *const float_names[] = { "fp32", "bf16", "fp16" };
#define N_FLOATS 3

/* Bits of the fraction with the leading one, and the least exponent of a normal number. */
static int precision(nc_dtype dtype)
{
	return dtype == NC_FP32 ? 24 : dtype == NC_BF16 ? 8 : 11;
}

static int least_exponent(nc_dtype dtype)
{
	return dtype == NC_FP16 ? -14 : -126;
}

static double largest(nc_dtype dtype)
{
	return dtype == NC_FP16 ? 65504 : dtype == NC_BF16 ? 0x1.fep127 : 0x1.fffffep127;
}

/* Unit in the last place at x. */
static double ulp(nc_dtype dtype, double x)
{
	int exponent = least_exponent(dtype);

	if (x != 0 && ilogb(x) > exponent)
		exponent = ilogb(x);
	return ldexp(1, exponent - precision(dtype) + 1);
}

/* --- one graph, one operand or two, any result ------------------------------------------- */

static double *read_all(nc_dtype dtype, const uint8_t *bytes, int64_t n)
{
	double *out = calloc((size_t)n, sizeof(*out));

	assert_non_null(out);
	for (int64_t i = 0; i < n; i++)
		out[i] = tv_get_float(dtype, bytes + i * tv_width(dtype));
	return out;
}

/* Compiles the graph and runs it; its only output, to free(). */
static double *run(nc_graph *g, struct tslot *slots, uint32_t n_in, nc_dtype dtype, int64_t n)
{
	struct nc_program program;
	char error[NC_ERROR_BYTES];
	uint8_t *results[64] = { NULL };
	const char *what;
	double us, *out;

	slots[n_in] = (struct tslot){ .size = (uint64_t)n * tv_width(dtype), .alias = NC_NO_ALIAS };
	results[n_in] = calloc(1, slots[n_in].size);
	assert_non_null(results[n_in]);
	if (nc_compile(g, test_target(), &program, error))
		fail_msg("%s", error);
	what = test_device_run(&program, slots, n_in + 1, results, &us);
	if (what)
		fail_msg("%s", what);
	out = read_all(dtype, results[n_in], n);
	free(results[n_in]);
	nc_program_free(&program);
	nc_graph_destroy(g);
	return out;
}

static struct nc_type vector(nc_dtype dtype, int64_t n)
{
	return (struct nc_type){ .dtype = dtype, .ndim = 1, .dims = { n } };
}

/* Every value of 16 bits; of fp32 all exponents and signs, each with fractions spread evenly. */
static int64_t all_values(nc_dtype dtype, uint8_t **bytes)
{
	int64_t n = dtype == NC_FP32 ? FP32_VALUES : HALF_VALUES;

	*bytes = malloc((size_t)n * tv_width(dtype));
	assert_non_null(*bytes);
	for (int64_t i = 0; i < n; i++) {
		uint16_t half = (uint16_t)i;
		/* The low bits differ from one to the next, so that ends of fractions are met, too. */
		uint32_t word = (uint32_t)i << 14 | (uint32_t)(i * 2654435761u >> 5 & 0x3fff);

		if (dtype == NC_FP32)
			memcpy(*bytes + i * 4, &word, 4);
		else
			memcpy(*bytes + i * 2, &half, 2);
	}
	return n;
}

/* --- functions of one operand ------------------------------------------------------------- */

/* Results that functions made of others give as zero, or with few bits, are at most so large. */
#define TINY 0x1p-119

/*
 * The error is at most units in the last place of fp32, and absolute times EPS, times |x| where that is
 * larger than 1, and tiny; and, for rounding to 16 bits, half a unit in the last place of these.
 */
struct bound {
	nc_unary_op op;
	const char *name;
	double units, absolute, tiny;
};

static const struct bound bounds[] = {
	{ NC_NEG, "neg", 0, 0, 0 },
	{ NC_ABS, "abs", 0, 0, 0 },
	{ NC_SQUARE, "square", 0.5, 0, 0 },
	{ NC_RELU, "relu", 0, 0, 0 },
	{ NC_FLOOR, "floor", 0, 0, 0 },
	{ NC_CEIL, "ceil", 0, 0, 0 },
	{ NC_ROUND, "round", 0, 0, 0 },
	{ NC_TRUNC, "trunc", 0, 0, 0 },
	{ NC_SQRT, "sqrt", 0.5, 0, 0 },
	{ NC_RECIPROCAL, "reciprocal", 0.5, 0, 0 },
	{ NC_RSQRT, "rsqrt", 2, 0, 0 },
	{ NC_EXP, "exp", 1, 0, 0 },
	{ NC_LN, "ln", 1, 0, 0 },
	{ NC_LOG1P, "log1p", 1, 0, 0 },
	{ NC_EXPM1, "expm1", 1, 0, 0 },
	{ NC_SIN, "sin", 1, 0, 0 },
	{ NC_COS, "cos", 1, 0, 0 },
	{ NC_ARCTAN, "arctan", 1, 0, 0 },
	{ NC_TANH, "tanh", 2, 0, 0 },
	{ NC_ERF, "erf", 2, 0, 0 },
	{ NC_SIGMOID, "sigmoid", 2, 0, TINY },
	{ NC_SOFTPLUS, "softplus", 2, 0, TINY },
	{ NC_GELU, "gelu", 2, 1, 0 },
	{ NC_GELU_TANH, "gelu_tanh", 2, 1, 0 },
	{ NC_SILU, "silu", 2, 0, TINY },
	{ NC_MISH, "mish", 3, 0, TINY },
	{ NC_DGELU, "dgelu", 2, 1, 0 },
	{ NC_DGELU_TANH, "dgelu_tanh", 2, 4, 0 },
	{ NC_DSILU, "dsilu", 2, 1, 0 },
};

/* Error in units of what the bound allows beyond the absolute part; 0: within that. */
static double excess(const struct bound *b, nc_dtype dtype, double x, double got, double want)
{
	double allowed = b->absolute * EPS * fmax(fabs(x), 1) + b->tiny, error;

	if (isnan(want))
		return isnan(got) ? 0 : INFINITY;
	if (isinf(want) || isinf(got)) {
		/* What is beyond the largest number by less than the bound may be either. */
		if (got == want || (copysign(1, got) == copysign(1, want) &&
				    fabs(want) >= largest(dtype) * (1 - 4 * EPS) && isinf(got)))
			return 0;
		return INFINITY;
	}
	error = fabs(got - want) - allowed;
	if (dtype != NC_FP32)
		error -= 0.5 * ulp(dtype, want);
	return error > 0 ? error / ulp(NC_FP32, want) : 0;
}

static bool check_unary(const struct bound *b, unsigned int d)
{
	nc_dtype dtype = floats[d];
	struct tslot slots[8] = { { .alias = NC_NO_ALIAS } };
	nc_graph *g = nc_graph_create(b->name);
	int64_t n = all_values(dtype, &slots[0].bytes);
	struct nc_type type = vector(dtype, n);
	double worst = 0, at = 0, *x, *y;

	slots[0].size = (uint64_t)n * tv_width(dtype);
	nc_output(g, nc_unary(g, b->op, nc_input(g, &type, NULL)), NULL, NC_NO_ALIAS);
	y = run(g, slots, 1, dtype, n);
	x = read_all(dtype, slots[0].bytes, n);
	for (int64_t i = 0; i < n; i++) {
		double e = excess(b, dtype, x[i], y[i], tv_function(b->op, x[i]));

		if (e > worst)
			worst = e, at = x[i];
	}
	print_message("%-12s %s %8.3f %9.3g %8.1f %8.1f %8.2g\n", b->name, float_names[d], worst,
		      at, b->units, b->absolute, b->tiny);
	free(slots[0].bytes);
	free(x);
	free(y);
	if (worst > b->units)
		print_error("%s of %s: %g units at %a\n", b->name, float_names[d], worst, at);
	return worst <= b->units;
}

static void functions(void **state)
{
	bool ok = true;

	(void)state;
	print_message("%-12s %s %8s %9s %8s %8s %8s\n", "function", "    ", "units", "at x",
		      "bound", "absolute", "tiny");
	for (unsigned int i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++)
		for (unsigned int d = 0; d < N_FLOATS; d++)
			ok &= check_unary(&bounds[i], d);
	assert_true(ok);
}

/* --- operations of two operands ------------------------------------------------------------ */

static const struct {
	nc_binary_op op;
	const char *name;
	double units;
} pairs[] = {
	{ NC_ADD, "add", 0.5 }, { NC_SUB, "sub", 0.5 }, { NC_MUL, "mul", 0.5 },
	{ NC_DIV, "div", 0.5 }, { NC_MAX, "max", 0 },	{ NC_MIN, "min", 0 },
	{ NC_POW, "pow", 1 },
};

static bool check_pair(unsigned int i, unsigned int d)
{
	const struct bound b = { .units = pairs[i].units };
	nc_dtype dtype = floats[d];
	struct tslot slots[8] = { { .alias = NC_NO_ALIAS }, { .alias = NC_NO_ALIAS } };
	nc_graph *g = nc_graph_create(pairs[i].name);
	int64_t n = all_values(dtype, &slots[0].bytes);
	struct nc_type type = vector(dtype, n);
	uint64_t size = (uint64_t)n * tv_width(dtype), seed = 1;
	double worst = 0, at[2] = { 0 }, *x[2], *y;

	/* Each value with a random other one. */
	slots[1].bytes = malloc(size);
	slots[0].size = slots[1].size = size;
	for (uint64_t j = 0, width = tv_width(dtype); j < size; j += width) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		memcpy(slots[1].bytes + j, slots[0].bytes + (seed >> 33) % (uint64_t)n * width,
		       width);
	}
	x[0] = read_all(dtype, slots[0].bytes, n);
	x[1] = read_all(dtype, slots[1].bytes, n);
	{
		nc_value a = nc_input(g, &type, NULL), c = nc_input(g, &type, NULL);

		nc_output(g, nc_binary(g, pairs[i].op, a, c), NULL, NC_NO_ALIAS);
	}
	y = run(g, slots, 2, dtype, n);
	for (int64_t j = 0; j < n; j++) {
		double want = tv_operation(pairs[i].op, x[0][j], x[1][j]);
		double e = excess(&b, dtype, 0, y[j], want);

		if (e > worst)
			worst = e, at[0] = x[0][j], at[1] = x[1][j];
	}
	print_message("%-12s %s %8.3f %9.3g,%9.3g %8.1f\n", pairs[i].name, float_names[d], worst,
		      at[0], at[1], b.units);
	for (unsigned int j = 0; j < 2; j++) {
		free(slots[j].bytes);
		free(x[j]);
	}
	free(y);
	return worst <= b.units;
}

static void of_two(void **state)
{
	bool ok = true;

	(void)state;
	for (unsigned int i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		for (unsigned int d = 0; d < N_FLOATS; d++)
			ok &= check_pair(i, d);
	assert_true(ok);
}

/* --- sums ----------------------------------------------------------------------------------- */

/* What is summed: numbers of both signs, or of one, or always the same, whose sums round one way. */
enum kind { MIXED, POSITIVE, EQUAL, KINDS };

static const char *const kind_names[KINDS] = { "mixed", "positive", "equal" };

static float *numbers(enum kind kind, int64_t n, uint64_t seed)
{
	float *x = malloc((size_t)n * sizeof(*x));

	assert_non_null(x);
	for (int64_t i = 0; i < n; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		x[i] = kind == EQUAL ? 0.1f :
				       (float)(seed >> 40) * 0x1p-24f - (kind == MIXED ? 0.5f : 0);
	}
	return x;
}

/* error: in EPS times the sum of the sizes of what is added. */
static bool report(const char *name, enum kind kind, int64_t terms, double error, double bound)
{
	print_message("%-12s %-9s %9lld %9.2f %9.0f\n", name, kind_names[kind], (long long)terms,
		      error, bound);
	return error <= bound;
}

/* n numbers: each of sixteen partial results in turn takes one, and then these are added. */
static bool check_sum(enum kind kind, int64_t n)
{
	struct tslot slots[8] = { { .alias = NC_NO_ALIAS } };
	nc_graph *g = nc_graph_create("sum");
	struct nc_type type = vector(NC_FP32, n);
	float *x = numbers(kind, n, 1);
	double want = 0, size = 0, error, *y;

	for (int64_t i = 0; i < n; i++)
		want += (double)x[i], size += fabs((double)x[i]);
	slots[0].bytes = (uint8_t *)x;
	slots[0].size = (uint64_t)n * sizeof(*x);
	nc_output(g, nc_reduce(g, NC_REDUCE_SUM, nc_input(g, &type, NULL), 1, false), NULL,
		  NC_NO_ALIAS);
	y = run(g, slots, 1, NC_FP32, 1);
	error = fabs(y[0] - want) / (EPS * size);
	free(x);
	free(y);
	return report("sum", kind, n, error, ceil((double)n / 16) + 16);
}

#define SIDE 40

/* Worst element of a product whose sums have k terms. */
static bool check_matmul(enum kind kind, int64_t k)
{
	struct tslot slots[8] = { { .alias = NC_NO_ALIAS }, { .alias = NC_NO_ALIAS } };
	nc_graph *g = nc_graph_create("matmul");
	struct nc_type ta = { .dtype = NC_FP32, .ndim = 2, .dims = { SIDE, k } };
	struct nc_type tb = { .dtype = NC_FP32, .ndim = 2, .dims = { k, SIDE } };
	float *a = numbers(kind, SIDE * k, 1), *b = numbers(kind, SIDE * k, 2);
	double worst = 0, *y;
	nc_value va, vb;

	slots[0].bytes = (uint8_t *)a, slots[1].bytes = (uint8_t *)b;
	slots[0].size = slots[1].size = (uint64_t)(SIDE * k) * sizeof(*a);
	va = nc_input(g, &ta, NULL);
	vb = nc_input(g, &tb, NULL);
	nc_output(g, nc_matmul(g, va, vb), NULL, NC_NO_ALIAS);
	y = run(g, slots, 2, NC_FP32, (int64_t)SIDE * SIDE);
	for (int64_t e = 0; e < (int64_t)SIDE * SIDE; e++) {
		double want = 0, size = 0;

		for (int64_t i = 0; i < k; i++) {
			double product =
				(double)a[e / SIDE * k + i] * (double)b[i * SIDE + e % SIDE];

			want += product, size += fabs(product);
		}
		worst = fmax(worst, fabs(y[e] - want) / (EPS * size));
	}
	free(a);
	free(b);
	free(y);
	return report("matmul", kind, k, worst, 128 + ceil((double)k / 128));
}

static void sums(void **state)
{
	bool ok = true;

	(void)state;
	print_message("%-12s %-9s %9s %9s %9s\n", "sum", "of", "terms", "error", "bound");
	for (unsigned int kind = 0; kind < KINDS; kind++) {
		for (int64_t n = 10; n <= 4 << 20; n = n * 8 + 3)
			ok &= check_sum(kind, n);
		for (int64_t k = 10; k < 10000; k = k * 8 + 3)
			ok &= check_matmul(kind, k);
	}
	assert_true(ok);
}

/* --- rows ----------------------------------------------------------------------------------- */

#define ROWS 20

/* The most that is found, in EPS; the worst that sums could do is n / 16 + 16 and more. */
#define ROW_BOUND 8

/* ROWS rows of n numbers between -scale and scale, about the middle. */
static float *spread(int64_t n, double scale, double middle)
{
	float *x = numbers(MIXED, ROWS * n, 3);

	for (int64_t i = 0; i < ROWS * n; i++)
		x[i] = (float)(x[i] * 2 * scale + middle);
	return x;
}

static nc_value softmax_of(nc_graph *g, nc_value x)
{
	nc_value top = nc_reduce(g, NC_REDUCE_MAX, x, 2, true);
	nc_value e = nc_unary(g, NC_EXP, nc_binary(g, NC_SUB, x, top));

	return nc_binary(g, NC_DIV, e, nc_reduce(g, NC_REDUCE_SUM, e, 2, true));
}

/* Error of each element relative to it, in EPS, less what its distance from the row's largest allows. Those
 * that are nearly zero may be zero. */
static double softmax_error(const float *x, const double *y, int64_t n)
{
	double top = -INFINITY, sum = 0, worst = 0;

	for (int64_t i = 0; i < n; i++)
		top = fmax(top, (double)x[i]);
	for (int64_t i = 0; i < n; i++)
		sum += exp((double)x[i] - top);
	for (int64_t i = 0; i < n; i++) {
		double want = exp((double)x[i] - top) / sum;

		worst = fmax(worst,
			     (fabs(y[i] - want) - TINY) / (want * EPS) - (top - (double)x[i]));
	}
	return worst;
}

/* (x - mean) / sqrt(variance + 1e-5) */
static nc_value norm_of(nc_graph *g, nc_value x, int64_t n)
{
	nc_value scale = nc_const_float(g, NC_FP32, (double)(float)(1.0 / (double)n));
	nc_value mean = nc_binary(g, NC_MUL, nc_reduce(g, NC_REDUCE_SUM, x, 2, true), scale);
	nc_value d = nc_binary(g, NC_SUB, x, mean);
	nc_value sum = nc_reduce(g, NC_REDUCE_SUM, nc_unary(g, NC_SQUARE, d), 2, true);
	nc_value variance = nc_binary(g, NC_MUL, sum, scale);
	nc_value eps = nc_const_float(g, NC_FP32, (double)1e-5f);

	return nc_binary(g, NC_MUL, d, nc_unary(g, NC_RSQRT, nc_binary(g, NC_ADD, variance, eps)));
}

/* Error of each element, in EPS of its own size and that of the row's mean size, both as normalized. */
static double norm_error(const float *x, const double *y, int64_t n)
{
	double mean = 0, size = 0, square = 0, worst = 0, r;

	for (int64_t i = 0; i < n; i++)
		mean += (double)x[i] / (double)n, size += fabs((double)x[i]) / (double)n;
	for (int64_t i = 0; i < n; i++)
		square += ((double)x[i] - mean) * ((double)x[i] - mean) / (double)n;
	r = 1 / sqrt(square + (double)1e-5f);
	for (int64_t i = 0; i < n; i++) {
		double want = ((double)x[i] - mean) * r;

		worst = fmax(worst, fabs(y[i] - want) / (EPS * (fabs(want) + size * r)));
	}
	return worst;
}

static bool check_rows(bool norm, int64_t n, double scale, double middle)
{
	struct tslot slots[8] = { { .alias = NC_NO_ALIAS } };
	nc_graph *g = nc_graph_create(norm ? "norm" : "softmax");
	struct nc_type type = { .dtype = NC_FP32, .ndim = 2, .dims = { ROWS, n } };
	double worst = 0, *y;
	float *x = spread(n, scale, middle);
	nc_value in;

	slots[0].bytes = (uint8_t *)x;
	slots[0].size = (uint64_t)(ROWS * n) * sizeof(*x);
	in = nc_input(g, &type, NULL);
	nc_output(g, norm ? norm_of(g, in, n) : softmax_of(g, in), NULL, NC_NO_ALIAS);
	y = run(g, slots, 1, NC_FP32, ROWS * n);
	for (int64_t i = 0; i < ROWS; i++)
		worst = fmax(worst, norm ? norm_error(x + i * n, y + i * n, n) :
					   softmax_error(x + i * n, y + i * n, n));
	print_message("%-12s %-9lld %9g %9.2f %9.0f\n", norm ? "norm" : "softmax", (long long)n,
		      scale, worst, (double)ROW_BOUND);
	free(x);
	free(y);
	return worst <= ROW_BOUND;
}

static void rows(void **state)
{
	bool ok = true;

	(void)state;
	print_message("%-12s %-9s %9s %9s %9s\n", "rows", "of", "range", "error", "bound");
	for (int64_t n = 7; n <= 20000; n = n * 8 + 3)
		for (double scale = 0.01; scale < 100; scale *= 20) {
			ok &= check_rows(false, n, scale, 3);
			ok &= check_rows(true, n, scale, 0);
			ok &= check_rows(true, n, scale, 10 * scale);
		}
	assert_true(ok);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions),
		cmocka_unit_test(of_two),
		cmocka_unit_test(sums),
		cmocka_unit_test(rows),
	};

	setenv("NEURON_RT_LOG_LEVEL", "ERROR", 1);
	return cmocka_run_group_tests_name("compiler_numerics", tests, NULL, NULL);
}
