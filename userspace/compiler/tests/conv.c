/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "graph.h"

struct shape {
	int64_t n, ci, h, w, co, kh, kw;
	struct nc_conv2d conv;
};

static const struct shape shapes[] = {
	{ 2, 3, 8, 8, 4, 3, 3, { { 1, 1 }, { 1, 1 }, { 1, 1 }, 1 } },
	{ 64, 1, 8, 8, 16, 3, 3, { { 1, 1 }, { 1, 1 }, { 1, 1 }, 1 } },
	{ 5, 16, 8, 8, 32, 3, 3, { { 1, 1 }, { 0, 0 }, { 1, 1 }, 1 } },
	{ 3, 5, 11, 9, 7, 3, 2, { { 2, 1 }, { 1, 0 }, { 1, 2 }, 1 } },
	{ 1, 3, 20, 21, 6, 5, 5, { { 3, 2 }, { 2, 3 }, { 1, 1 }, 1 } },
	{ 2, 6, 7, 7, 9, 3, 3, { { 1, 1 }, { 1, 1 }, { 1, 1 }, 3 } },
	{ 2, 8, 6, 6, 8, 3, 3, { { 1, 1 }, { 1, 1 }, { 1, 1 }, 8 } },
	{ 2, 150, 5, 6, 140, 3, 3, { { 1, 1 }, { 1, 1 }, { 1, 1 }, 1 } },
	{ 1, 4, 40, 600, 5, 3, 3, { { 1, 1 }, { 1, 1 }, { 1, 1 }, 1 } },
	{ 1, 2, 30, 30, 3, 1, 1, { { 2, 2 }, { 0, 0 }, { 1, 1 }, 1 } },
	{ 1, 2, 9, 9, 3, 3, 3, { { 1, 1 }, { 3, 4 }, { 1, 1 }, 1 } },
	{ 1, 2, 300, 290, 2, 3, 3, { { 1, 1 }, { 0, 0 }, { 130, 120 }, 1 } },
	{ 1, 1, 70, 70, 2, 60, 61, { { 1, 1 }, { 0, 0 }, { 1, 1 }, 1 } },
	{ 1, 3, 32, 32, 8, 16, 16, { { 16, 16 }, { 0, 0 }, { 1, 1 }, 1 } },
	/* Few channels: copies of the window, by rows, by columns or both, some taps left over. */
	{ 2, 3, 45, 44, 10, 7, 7, { { 2, 2 }, { 3, 3 }, { 1, 1 }, 1 } },
	{ 2, 64, 15, 14, 70, 3, 3, { { 1, 1 }, { 1, 1 }, { 1, 1 }, 1 } },
	{ 1, 40, 20, 33, 130, 5, 4, { { 2, 1 }, { 4, 5 }, { 2, 3 }, 1 } },
	{ 3, 48, 9, 30, 36, 3, 5, { { 1, 2 }, { 0, 2 }, { 1, 1 }, 3 } },
	/* Many images of short rows, in blocks of several. */
	{ 37, 130, 7, 7, 6, 3, 3, { { 1, 1 }, { 1, 1 }, { 1, 1 }, 1 } },
	/* Windows of which there is room for one block's at a time, for none, and blocks of rows of an image. */
	{ 90, 130, 14, 14, 6, 3, 3, { { 2, 2 }, { 1, 1 }, { 1, 1 }, 1 } },
	{ 90, 300, 14, 14, 5, 3, 3, { { 2, 2 }, { 1, 1 }, { 1, 1 }, 1 } },
	{ 1, 20, 90, 90, 30, 3, 3, { { 1, 1 }, { 1, 1 }, { 1, 1 }, 1 } },
};
#define N_SHAPES (sizeof(shapes) / sizeof(shapes[0]))

static void set_tolerance(struct tg *tg, nc_dtype dtype, int64_t terms)
{
	tg->tolerance = 2e-6;
	tg->absolute = 1.6e-5 * sqrt((double)terms) * (dtype == NC_FP32 ? 1 : 2);
}

static void sizes_of(const struct shape *s, int64_t *x, int64_t *w, int64_t *y)
{
	x[0] = s->n, x[1] = s->ci, x[2] = s->h, x[3] = s->w;
	w[0] = s->co, w[1] = s->ci / s->conv.groups, w[2] = s->kh, w[3] = s->kw;
	y[0] = s->n, y[1] = s->co;
	for (int i = 0; i < 2; i++)
		y[2 + i] =
			(x[2 + i] + 2 * s->conv.padding[i] - s->conv.dilation[i] * (w[2 + i] - 1) -
			 1) / s->conv.stride[i] +
			1;
}

static void forward(void **state)
{
	static const nc_dtype dtypes[] = { NC_FP32, NC_BF16 };

	(void)state;
	for (unsigned int i = 0; i < N_SHAPES; i++)
		for (int d = 0; d < 2; d++) {
			const struct shape *s = &shapes[i];
			struct tg *tg = tg_new("conv", i);
			int64_t xd[4], wd[4], yd[4];
			struct tv *x, *w;

			sizes_of(s, xd, wd, yd);
			set_tolerance(tg, dtypes[d], wd[1] * wd[2] * wd[3]);
			x = tg_input(tg, dtypes[d], 4, xd, NULL);
			w = tg_input(tg, dtypes[d], 4, wd, NULL);
			tg_output(tg, tg_conv2d(tg, x, w, &s->conv), NULL, NC_NO_ALIAS);
			tg_run(tg);
			tg_free(tg);
		}
}

static void gradients(void **state)
{
	static const nc_dtype dtypes[] = { NC_FP32, NC_BF16 };

	(void)state;
	for (unsigned int i = 0; i < N_SHAPES; i++)
		for (int d = 0; d < 2; d++) {
			const struct shape *s = &shapes[i];
			struct nc_type type = { .dtype = dtypes[d], .ndim = 4 };
			int64_t xd[4], wd[4], yd[4];
			struct tv *x, *w, *dy;
			struct tg *tg;

			sizes_of(s, xd, wd, yd);
			tg = tg_new("conv_grad_x", i);
			set_tolerance(tg, dtypes[d], wd[0] * wd[2] * wd[3]);
			dy = tg_input(tg, dtypes[d], 4, yd, NULL);
			w = tg_input(tg, dtypes[d], 4, wd, NULL);
			for (int k = 0; k < 4; k++)
				type.dims[k] = xd[k];
			tg_output(tg, tg_conv2d_grad_x(tg, dy, w, &type, &s->conv), NULL,
				  NC_NO_ALIAS);
			tg_run(tg);
			tg_free(tg);

			tg = tg_new("conv_grad_w", i);
			set_tolerance(tg, dtypes[d], yd[0] * yd[2] * yd[3]);
			dy = tg_input(tg, dtypes[d], 4, yd, NULL);
			x = tg_input(tg, dtypes[d], 4, xd, NULL);
			for (int k = 0; k < 4; k++)
				type.dims[k] = wd[k];
			tg_output(tg, tg_conv2d_grad_w(tg, dy, x, &type, &s->conv), NULL,
				  NC_NO_ALIAS);
			tg_run(tg);
			tg_free(tg);
		}
}

/* Channels last, bias, relu; weights with any strides. */
static void fused(void **state)
{
	const struct nc_conv2d conv = { { 1, 1 }, { 1, 1 }, { 1, 1 }, 1 };
	struct tg *tg = tg_new("conv_relu", 1);
	struct tv *x = tg_input(tg, NC_FP32, SHAPE(3, 5, 9, 8), DIMS(360, 1, 40, 5));
	struct tv *w = tg_input(tg, NC_FP32, SHAPE(6, 5, 3, 3), DIMS(1, 6, 90, 30));
	struct tv *b = tg_input(tg, NC_FP32, SHAPE(6, 1, 1), NULL);
	struct tv *y = tg_binary(tg, NC_ADD, tg_conv2d(tg, x, w, &conv), b);

	(void)state;
	set_tolerance(tg, NC_FP32, 45);
	tg_output(tg, tg_unary(tg, NC_RELU, y), DIMS(432, 1, 48, 6), NC_NO_ALIAS);
	tg_output(tg, y, NULL, NC_NO_ALIAS);
	tg_output(tg, tg_reduce(tg, NC_REDUCE_MAX, y, 13, false), NULL, NC_NO_ALIAS);
	tg_run(tg);
	tg_free(tg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forward),
		cmocka_unit_test(gradients),
		cmocka_unit_test(fused),
	};

	return cmocka_run_group_tests_name("compiler_conv", tests, NULL, NULL);
}
