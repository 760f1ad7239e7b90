/* SPDX-License-Identifier: Apache-2.0 */
/* Attention against softmax in double precision, written out. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "attention.h"

struct shape {
	int64_t batch, heads, kv_heads; /* kv_heads: heads, or 1 for all */
	int64_t queries, keys, head, width;
	bool causal;
	enum mask_kind mask;
	struct drop drop;
};

static const struct shape shapes[] = {
	{ 1, 1, 1, 1, 1, 1, 1, false, NO_MASK, NO_DROP },
	{ 1, 1, 1, 1, 1, 128, 128, true, NO_MASK, NO_DROP },
	{ 1, 1, 1, 1, 300, 64, 64, false, NO_MASK, NO_DROP },
	{ 1, 2, 2, 127, 127, 64, 64, true, NO_MASK, NO_DROP },
	{ 1, 1, 1, 128, 128, 128, 128, false, NO_MASK, NO_DROP },
	{ 1, 1, 1, 129, 129, 128, 128, true, NO_MASK, NO_DROP },
	{ 2, 3, 1, 129, 257, 40, 24, false, NO_MASK, NO_DROP },
	{ 1, 2, 2, 300, 300, 80, 128, true, FULL_MASK, NO_DROP },
	{ 1, 1, 1, 300, 700, 128, 96, false, FULL_MASK, NO_DROP },
	{ 2, 2, 2, 77, 300, 32, 32, false, ROW_MASK, NO_DROP },
	{ 1, 1, 1, 300, 130, 64, 64, true, NO_MASK, NO_DROP },
	{ 1, 1, 1, 130, 300, 64, 64, true, NO_MASK, NO_DROP },
	{ 1, 1, 1, 1300, 1300, 128, 128, true, NO_MASK, NO_DROP },
	{ 1, 1, 1, 200, 4500, 16, 16, false, NO_MASK, NO_DROP },
	{ 1, 1, 1, 2200, 4300, 16, 16, true, NO_MASK, NO_DROP },
};
#define N_SHAPES (sizeof(shapes) / sizeof(shapes[0]))

static const nc_dtype dtypes[] = { NC_FP32, NC_BF16, NC_FP16 };

/* One query of one head, number of all of them: writes the result, returns the logarithm of the sum. */
static double row(const struct shape *s, const double *q, const double *k, const double *v,
		  const double *mask, int64_t number, double scale, double *out)
{
	int64_t query = number % s->queries;
	double most = -INFINITY, sum = 0, *p = test_calloc((size_t)s->keys, sizeof(*p));

	for (int64_t j = 0; j < s->keys; j++) {
		for (int64_t d = 0; d < s->head; d++)
			p[j] += q[d] * k[j * s->head + d];
		p[j] = p[j] * scale + (mask ? mask[j] : 0);
		if (s->causal && j > query)
			p[j] = -INFINITY;
		most = fmax(most, p[j]);
	}
	for (int64_t j = 0; j < s->keys; j++) {
		p[j] = most == -INFINITY ? 0 : exp(p[j] - most);
		sum += p[j];
	}
	for (int64_t e = 0; e < s->width; e++) {
		out[e] = 0;
		for (int64_t j = 0; j < s->keys && sum > 0; j++)
			out[e] += p[j] / sum * v[j * s->width + e] *
				  drop_one(&s->drop, s->queries, number, s->keys, j);
	}
	test_free(p);
	return most + log(sum);
}

static struct tv *attention(struct tg *tg, struct shape *s, const struct tv *q, const struct tv *k,
			    const struct tv *v, const struct tv *mask, float scale, struct tv **lse)
{
	struct nc_attention how = { .scale = scale, .causal = s->causal };
	int64_t dims[4] = { s->batch, s->heads, s->queries, s->width };
	struct tv *t = tv_new(tg, q->dtype, 4, dims), *l = tv_new(tg, NC_FP32, 3, dims);

	drop_begin(tg, &s->drop, &how);
	for (int64_t n = 0; n < l->n; n++) {
		int64_t i[3], kv;

		tv_index(l, n, i);
		kv = (i[0] * s->kv_heads + i[1] % s->kv_heads) * s->keys;
		l->f[n] = row(s, q->f + n * s->head, k->f + kv * s->head, v->f + kv * s->width,
			      mask ? mask->f + (s->mask == FULL_MASK ?
							(i[0] * s->queries + i[2]) * s->keys :
							i[0] * s->keys) :
				     NULL,
			      n, (double)scale, t->f + n * s->width);
		for (int64_t e = 0; e < s->width; e++)
			t->f[n * s->width + e] = tv_round(t->dtype, t->f[n * s->width + e]);
	}
	t->v = nc_attention(tg->graph, q->v, k->v, v->v, mask ? mask->v : 0, &how);
	l->v = nc_attention_lse(tg->graph, t->v);
	*lse = l;
	return t;
}

/* Values up to 4, weights rounded to the dtype. */
static double absolute(nc_dtype dtype)
{
	return dtype == NC_FP32 ? 2e-5 : dtype == NC_BF16 ? 2e-2 : 2.5e-3;
}

static void check(struct shape s0, nc_dtype dtype, nc_dtype mask_dtype, uint64_t seed)
{
	struct shape *s = &s0;
	struct tg *tg = tg_new("attention", seed);
	struct tv *q = heads_input(tg, dtype, s->batch, s->heads, s->queries, s->head);
	struct tv *k = heads_input(tg, dtype, s->batch, s->kv_heads, s->keys, s->head);
	struct tv *v = heads_input(tg, dtype, s->batch, s->kv_heads, s->keys, s->width);
	struct tv *mask = s->mask ? mask_input(tg, mask_dtype, s->batch,
					       s->mask == FULL_MASK ? s->queries : 1, s->keys) :
				    NULL,
		  *y, *lse;

	/* Weights that stay are as much larger. */
	tg->absolute = absolute(dtype) / (1 - s->drop.p);
	y = attention(tg, s, q, k, v, mask, (float)(1 / sqrt((double)s->head)), &lse);
	tg_output(tg, y, NULL, NC_NO_ALIAS);
	tg_output(tg, lse, NULL, NC_NO_ALIAS);
	tg_run(tg);
	tg_free(tg);
}

static void shapes_and_dtypes(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < N_SHAPES; i++)
		for (int d = 0; d < 3; d++)
			check(shapes[i], dtypes[d], dtypes[(d + i) % 3], i);
}

static const struct shape dropped[] = {
	{ 1, 1, 1, 1, 1, 1, 1, false, NO_MASK, { .p = 0.5 } },
	{ 1, 1, 1, 300, 300, 64, 64, false, NO_MASK, { .p = 0.1 } },
	{ 1, 2, 2, 129, 129, 128, 128, true, NO_MASK, { .p = 0.3 } },
	{ 2, 3, 1, 129, 257, 40, 24, false, NO_MASK, { .p = 0.5, .batches = 7 } },
	{ 1, 2, 2, 300, 300, 80, 128, true, FULL_MASK, { .p = 0.2 } },
	{ 2, 2, 2, 77, 300, 32, 32, false, ROW_MASK, { .p = 0.9, .batches = 0xfedcba98 } },
	{ 1, 1, 1, 130, 2500, 16, 16, false, NO_MASK, { .p = 0.1 } },
	{ 1, 1, 1, 1300, 1300, 32, 32, true, NO_MASK, { .p = 1e-12 } },
	{ 1, 1, 1, 300, 4500, 128, 128, false, FULL_MASK, { .p = 1 - 1e-3, .batches = 1 } },
};
#define N_DROPPED (sizeof(dropped) / sizeof(dropped[0]))

static void dropout(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < N_DROPPED; i++)
		for (int d = 0; d < 3; d++)
			check(dropped[i], dtypes[d], dtypes[(d + i) % 3], i);
}

/*
 * The weights themselves, of queries of 0 and values that are 1 in one place each, beside the same composed of
 * nc_random(): all 1 / 64 but for dropout.
 */
static void same_as_composed(void **state)
{
	static const int64_t dims[3] = { 3, 140, 64 };
	struct drop drop = { .p = 0.5 };
	struct nc_attention how = { .scale = 1 };
	struct tg *tg = tg_new("attention_composed", 9);
	struct tv *q = tg_input(tg, NC_FP32, SHAPE(3, 140, 8), NULL);
	struct tv *k = tg_input(tg, NC_FP32, SHAPE(3, 64, 8), NULL);
	struct tv *v = tg_input(tg, NC_FP32, SHAPE(3, 64, 64), NULL);
	struct tv *y = tv_new(tg, NC_FP32, 3, dims), *z = tv_new(tg, NC_FP32, 3, dims);
	struct nc_type type = { .dtype = NC_INT32, .ndim = 3, .dims = { 3, 140, 64 } };
	nc_value kept;

	(void)state;
	for (int64_t n = 0; n < q->n; n++)
		tg_set_input(tg, q, n, 0);
	for (int64_t n = 0; n < v->n; n++)
		tg_set_input(tg, v, n, n / 64 % 64 == n % 64);
	drop_begin(tg, &drop, &how);
	for (int64_t n = 0; n < y->n; n++)
		y->f[n] = z->f[n] = drop_one(&drop, 140, n / 64, 64, n % 64) / 64;
	y->v = nc_attention(tg->graph, q->v, k->v, v->v, 0, &how);
	kept = nc_binary(tg->graph, NC_LE, nc_random(tg->graph, &type, how.key),
			 nc_const_int(tg->graph, NC_INT32, -1));
	z->v = nc_select(tg->graph, kept, nc_const_float(tg->graph, NC_FP32, 0x1p-5),
			 nc_const_float(tg->graph, NC_FP32, 0));
	tg_output(tg, y, NULL, NC_NO_ALIAS);
	tg_output(tg, z, NULL, NC_NO_ALIAS);
	tg_run(tg);
	tg_free(tg);
}

/* Scores of thousands of either sign: no overflow, and of rows that are small everywhere a sum. */
static void large(void **state)
{
	struct shape s = { 1, 1, 1, 200, 300, 64, 64, true, NO_MASK, NO_DROP };

	(void)state;
	for (int d = 0; d < 3; d++) {
		struct tg *tg = tg_new("attention_large", 5);
		struct tv *q = heads_input(tg, dtypes[d], 1, 1, s.queries, s.head);
		struct tv *k = heads_input(tg, dtypes[d], 1, 1, s.keys, s.head);
		struct tv *v = heads_input(tg, dtypes[d], 1, 1, s.keys, s.width), *y, *lse;

		for (int64_t n = 0; n < q->n; n++)
			tg_set_input(tg, q, n, n / s.head % 2 ? -100 : 100);
		for (int64_t n = 0; n < k->n; n++)
			tg_set_input(tg, k, n, 50 + n / s.head % 7 * 0.5);
		tg->absolute = absolute(dtypes[d]);
		tg->tolerance = 1e-5; /* of the sum's logarithm */
		y = attention(tg, &s, q, k, v, NULL, 0.125f, &lse);
		tg_output(tg, y, NULL, NC_NO_ALIAS);
		tg_output(tg, lse, NULL, NC_NO_ALIAS);
		tg_run(tg);
		tg_free(tg);
	}
}

/* Operands and results in any order of dims, results read by other operations, the sum alone. */
static void views(void **state)
{
	struct shape s = { 2, 3, 3, 140, 150, 64, 32, true, NO_MASK, { .p = 0.25 } };
	static const uint32_t order[] = { 0, 2, 1, 3 };
	struct tg *tg = tg_new("attention_views", 6);
	struct tv *q = tg_input(tg, NC_BF16, SHAPE(2, 140, 3, 64), NULL);
	struct tv *k = tg_input(tg, NC_BF16, SHAPE(2, 150, 3, 64), NULL);
	struct tv *v = tg_input(tg, NC_BF16, SHAPE(2, 150, 3, 32), NULL), *y, *lse;

	(void)state;
	tg->absolute = absolute(NC_BF16);
	y = attention(tg, &s, tg_permute(tg, q, order), tg_permute(tg, k, order),
		      tg_permute(tg, v, order), NULL, 0.125f, &lse);
	tg_output(tg, tg_permute(tg, y, order), NULL, NC_NO_ALIAS);
	tg_output(tg, tg_unary(tg, NC_NEG, y), NULL, NC_NO_ALIAS);
	tg_output(tg, tg_unary(tg, NC_NEG, lse), NULL, NC_NO_ALIAS);
	tg_output(tg, y, NULL, NC_NO_ALIAS);
	tg_run(tg);
	tg_free(tg);

	tg = tg_new("attention_lse", 7);
	q = tg_input(tg, NC_FP32, SHAPE(2, 3, 140, 64), NULL);
	k = tg_input(tg, NC_FP32, SHAPE(2, 3, 150, 64), DIMS(28800, 9600, 1, 150));
	v = tg_input(tg, NC_FP32, SHAPE(2, 3, 150, 32), DIMS(14400, 4800, 1, 150));
	tg->absolute = absolute(NC_FP32);
	attention(tg, &s, q, k, v, NULL, 0.125f, &lse);
	tg_output(tg, lse, DIMS(1, 2, 6), NC_NO_ALIAS);
	tg_run(tg);
	tg_free(tg);
}

static void wrong_dropout(double p, const nc_value key[NC_KEY_WORDS], nc_graph *g, const char *text)
{
	struct nc_attention how = { .scale = 1, .dropout = p };
	nc_value x = test_input(g, NC_FP32, SHAPE(64, 32));

	memcpy(how.key, key, sizeof(how.key));
	nc_attention(g, x, x, x, 0, &how);
	test_refused(g, -EINVAL, text);
}

static void mistakes_of_dropout(void **state)
{
	static const double wrong[] = { -0.1, 1, 2, NAN };
	static const char *const text[] = { "dropout -0.1", "dropout 1;", "dropout 2", "nan" };
	nc_value key[NC_KEY_WORDS] = { 0 };
	nc_graph *g;

	(void)state;
	for (int i = 0; i < 4; i++)
		wrong_dropout(wrong[i], key, nc_graph_create("probability"), text[i]);
	wrong_dropout(0.1, key, nc_graph_create("none"), "attention: operand is value 0");
	g = nc_graph_create("dtype");
	for (int i = 0; i < NC_KEY_WORDS; i++)
		key[i] = nc_scalar(g, i == 2 ? NC_FP32 : NC_INT32);
	wrong_dropout(0.1, key, g, "word 2 of the key %3; wanted is a scalar of the launch");
	g = nc_graph_create("computed");
	for (int i = 0; i < NC_KEY_WORDS; i++)
		key[i] = nc_scalar(g, NC_INT32);
	key[1] = nc_unary(g, NC_NEG, key[0]);
	wrong_dropout(0.1, key, g, "word 1 of the key %5");
}

static void mistakes(void **state)
{
	const struct nc_attention how = { .scale = 1 }, zero = { .scale = 0 },
				  nan = { .scale = NAN };
	nc_graph *g;
	nc_value x;

	(void)state;
	g = nc_graph_create("head");
	x = test_input(g, NC_BF16, SHAPE(2, 64, 129));
	nc_attention(g, x, x, x, 0, &how);
	test_refused(g, -EOPNOTSUPP,
		     "q bf16[2,64,129], k bf16[2,64,129], v bf16[2,64,129]; heads of 129, at "
		     "most 128");
	g = nc_graph_create("keys");
	x = test_input(g, NC_BF16, SHAPE(64, 32));
	nc_attention(g, x, x, test_input(g, NC_BF16, SHAPE(65, 32)), 0, &how);
	test_refused(g, -EINVAL, "attention: q bf16[64,32], k bf16[64,32], v bf16[65,32]");
	g = nc_graph_create("dtype");
	x = test_input(g, NC_INT32, SHAPE(64, 32));
	nc_attention(g, x, x, x, 0, &how);
	test_refused(g, -EOPNOTSUPP, "int32[64,32]");
	g = nc_graph_create("scale");
	x = test_input(g, NC_FP32, SHAPE(64, 32));
	nc_attention(g, x, x, x, 0, &zero);
	test_refused(g, -EINVAL, "scale 0");
	g = nc_graph_create("nan");
	x = test_input(g, NC_FP32, SHAPE(64, 32));
	nc_attention(g, x, x, x, 0, &nan);
	test_refused(g, -EINVAL, "1e-20 to 1e20");
	g = nc_graph_create("mask");
	x = test_input(g, NC_FP32, SHAPE(64, 32));
	nc_attention(g, x, x, x, test_input(g, NC_FP32, SHAPE(2, 64, 64)), &how);
	test_refused(g, -EINVAL, "mask fp32[2,64,64]");
	g = nc_graph_create("lse");
	x = test_input(g, NC_FP32, SHAPE(64, 32));
	nc_attention_lse(g, x);
	test_refused(g, -EINVAL, "fp32[64,32] is no result of attention");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shapes_and_dtypes),
		cmocka_unit_test(dropout),
		cmocka_unit_test(same_as_composed),
		cmocka_unit_test(large),
		cmocka_unit_test(views),
		cmocka_unit_test(mistakes),
		cmocka_unit_test(mistakes_of_dropout),
	};

	return cmocka_run_group_tests_name("compiler_attention", tests, NULL, NULL);
}
