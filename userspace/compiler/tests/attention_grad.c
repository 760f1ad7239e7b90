/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of attention against their formulas in double precision. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <string.h>

#include "attention.h"

struct shape {
	int64_t batch, heads, queries, keys, head, width;
	bool causal;
	enum mask_kind mask;
	struct drop drop;
};

static const struct shape shapes[] = {
	{ 1, 1, 1, 1, 1, 1, false, NO_MASK, NO_DROP },
	{ 1, 1, 1, 300, 64, 64, false, NO_MASK, NO_DROP },
	{ 1, 2, 127, 127, 64, 64, true, NO_MASK, NO_DROP },
	{ 1, 1, 128, 128, 128, 128, false, NO_MASK, NO_DROP },
	{ 2, 3, 129, 257, 40, 24, false, NO_MASK, NO_DROP },
	{ 1, 2, 300, 300, 80, 128, true, FULL_MASK, NO_DROP },
	{ 1, 1, 300, 700, 128, 96, false, FULL_MASK, NO_DROP },
	{ 2, 2, 77, 300, 32, 32, false, ROW_MASK, NO_DROP },
	{ 1, 1, 600, 130, 64, 64, true, NO_MASK, NO_DROP },
	/* Keys that nobody sees, whole chunks of them. */
	{ 1, 1, 130, 1100, 64, 64, true, NO_MASK, NO_DROP },
	{ 1, 1, 1100, 1100, 128, 128, true, NO_MASK, NO_DROP },
};
#define N_SHAPES (sizeof(shapes) / sizeof(shapes[0]))

static const nc_dtype dtypes[] = { NC_FP32, NC_BF16, NC_FP16 };

enum { DQ, DK, DV };

/* Operands, gradients, and the sum of the absolute values of what each element of these is added up from. */
struct grads {
	const struct shape *s;
	struct tv *q, *k, *v, *dy, *mask;
	struct tv *grad[3];
	double *size[3];
	double scale;
	struct nc_attention how;
	struct drop drop;
};

static void begin(struct tg *tg, struct grads *g)
{
	g->drop = g->s->drop;
	g->how = (struct nc_attention){ .scale = (float)g->scale, .causal = g->s->causal };
	drop_begin(tg, &g->drop, &g->how);
}

/* Scores of one query, then their weights. */
static void find_weights(const struct grads *g, int64_t head, int64_t i, double *p)
{
	const struct shape *s = g->s;
	double most = -INFINITY, sum = 0;

	for (int64_t j = 0; j < s->keys; j++) {
		int64_t row = s->mask == FULL_MASK ? head / s->heads * s->queries + i :
						     head / s->heads;

		p[j] = 0;
		for (int64_t d = 0; d < s->head; d++)
			p[j] += g->q->f[(head * s->queries + i) * s->head + d] *
				g->k->f[(head * s->keys + j) * s->head + d];
		p[j] = p[j] * g->scale + (g->mask ? g->mask->f[row * s->keys + j] : 0);
		if (s->causal && j > i)
			p[j] = -INFINITY;
		most = fmax(most, p[j]);
	}
	for (int64_t j = 0; j < s->keys; j++) {
		p[j] = most == -INFINITY ? 0 : exp(p[j] - most);
		sum += p[j];
	}
	for (int64_t j = 0; j < s->keys; j++)
		p[j] /= sum > 0 ? sum : 1;
}

static void add(struct grads *g, int which, int64_t n, double f, double size)
{
	g->grad[which]->f[n] += f;
	g->size[which][n] += size;
}

/* What one query adds to all gradients. */
static void add_query(struct grads *g, int64_t head, int64_t i, double *p, double *dp)
{
	const struct shape *s = g->s;
	const double *dy = g->dy->f + (head * s->queries + i) * s->width;
	int64_t query = (head * s->queries + i) * s->head;
	double sum = 0, size = 0;

	find_weights(g, head, i, p);
	for (int64_t j = 0; j < s->keys; j++) {
		int64_t key = (head * s->keys + j) * s->width;
		double kept = drop_one(&g->drop, s->queries, head * s->queries + i, s->keys, j);

		dp[j] = 0;
		for (int64_t e = 0; e < s->width; e++) {
			dp[j] += kept * dy[e] * g->v->f[key + e];
			add(g, DV, key + e, kept * p[j] * dy[e], fabs(kept * p[j] * dy[e]));
		}
		sum += p[j] * dp[j];
		size += p[j] * fabs(dp[j]);
	}
	for (int64_t j = 0; j < s->keys; j++) {
		int64_t key = (head * s->keys + j) * s->head;
		double slope = g->scale * p[j] * (dp[j] - sum);
		double most = g->scale * p[j] * (fabs(dp[j]) + size);

		for (int64_t d = 0; d < s->head; d++) {
			double q = g->q->f[query + d], k = g->k->f[key + d];

			add(g, DQ, query + d, slope * k, most * fabs(k));
			add(g, DK, key + d, slope * q, most * fabs(q));
		}
	}
}

static void find_grads(struct tg *tg, struct grads *g)
{
	const struct tv *of[3] = { g->q, g->k, g->v };
	double *p = test_calloc((size_t)g->s->keys, sizeof(*p));
	double *dp = test_calloc((size_t)g->s->keys, sizeof(*dp));

	for (int i = 0; i < 3; i++) {
		g->grad[i] = tv_new(tg, of[i]->dtype, of[i]->nd, of[i]->dims);
		g->size[i] = test_calloc((size_t)of[i]->n, sizeof(double));
	}
	for (int64_t head = 0; head < g->s->batch * g->s->heads; head++)
		for (int64_t i = 0; i < g->s->queries; i++)
			add_query(g, head, i, p, dp);
	test_free(p);
	test_free(dp);
}

/* Weights, slopes and the result that they depend on are rounded once each: half a unit of the dtype. */
static double rounding(nc_dtype dtype)
{
	return dtype == NC_FP32 ? 0x1p-19 : dtype == NC_BF16 ? 0x1p-7 : 0x1p-10;
}

static void make_graph(struct tg *tg, struct grads *g)
{
	struct nc_attention_operands of = { .q = g->q->v, .k = g->k->v, .v = g->v->v };

	of.mask = g->mask ? g->mask->v : 0;
	of.dy = g->dy->v;
	of.y = nc_attention(tg->graph, of.q, of.k, of.v, of.mask, &g->how);
	of.lse = nc_attention_lse(tg->graph, of.y);
	g->grad[DQ]->v =
		nc_attention_grad(tg->graph, &of, &g->how, &g->grad[DK]->v, &g->grad[DV]->v);
}

/* The gradient which; they are compared one by one, for their sizes differ. */
static void check(const struct shape *s, nc_dtype dtype, nc_dtype mask_dtype, uint64_t seed,
		  int which)
{
	struct tg *tg = tg_new("attention_grad", seed);
	struct grads g = { .s = s, .scale = (double)(float)(1 / sqrt((double)s->head)) };

	g.q = heads_input(tg, dtype, s->batch, s->heads, s->queries, s->head);
	g.k = heads_input(tg, dtype, s->batch, s->heads, s->keys, s->head);
	g.v = heads_input(tg, dtype, s->batch, s->heads, s->keys, s->width);
	g.dy = heads_input(tg, dtype, s->batch, s->heads, s->queries, s->width);
	g.mask = s->mask ? mask_input(tg, mask_dtype, s->batch,
				      s->mask == FULL_MASK ? s->queries : 1, s->keys) :
			   NULL;
	begin(tg, &g);
	find_grads(tg, &g);
	tg->absolute = 0;
	for (int64_t n = 0; n < g.grad[which]->n; n++)
		tg->absolute = fmax(tg->absolute, rounding(dtype) * g.size[which][n]);
	make_graph(tg, &g);
	for (int64_t n = 0; n < g.grad[which]->n; n++)
		tv_set(g.grad[which], n, g.grad[which]->f[n]);
	tg_output(tg, g.grad[which], NULL, NC_NO_ALIAS);
	tg_run(tg);
	for (int i = 0; i < 3; i++)
		test_free(g.size[i]);
	tg_free(tg);
}

/* Every shape with all gradients, every dtype with all. */
static void shapes_and_dtypes(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < N_SHAPES; i++)
		for (int d = 0; d < 3; d++)
			check(&shapes[i], dtypes[d], dtypes[(d + i) % 3], i, (int)(d + i / 3) % 3);
}

static const struct shape dropped[] = {
	{ 1, 1, 1, 1, 1, 1, false, NO_MASK, { .p = 0.5 } },
	{ 1, 1, 300, 300, 64, 64, false, NO_MASK, { .p = 0.1 } },
	{ 1, 2, 129, 129, 128, 128, true, NO_MASK, { .p = 0.3 } },
	{ 2, 3, 129, 257, 40, 24, false, NO_MASK, { .p = 0.5, .batches = 7 } },
	{ 1, 2, 300, 300, 80, 128, true, FULL_MASK, { .p = 0.2 } },
	{ 2, 2, 77, 300, 32, 32, false, ROW_MASK, { .p = 0.9, .batches = 0xfedcba98 } },
	{ 1, 1, 1100, 1100, 32, 32, true, NO_MASK, { .p = 1e-12 } },
};
#define N_DROPPED (sizeof(dropped) / sizeof(dropped[0]))

static void dropout(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < N_DROPPED; i++)
		for (int d = 0; d < 3; d++)
			check(&dropped[i], dtypes[d], dtypes[(d + i) % 3], i, (int)(d + i / 3) % 3);
}

/* Operands and gradients in any order of dims, all three at once. */
static void views(void **state)
{
	static const struct shape s = { 2, 3, 140, 150, 64, 32, true, NO_MASK, { .p = 0.25 } };
	static const uint32_t order[] = { 0, 2, 1, 3 };
	struct tg *tg = tg_new("attention_grad_views", 6);
	struct grads g = { .s = &s, .scale = 0.125 };
	struct tv *q = tg_input(tg, NC_FP32, SHAPE(2, 140, 3, 64), NULL);
	struct tv *k = tg_input(tg, NC_FP32, SHAPE(2, 150, 3, 64), NULL);
	struct tv *v = tg_input(tg, NC_FP32, SHAPE(2, 3, 150, 32), DIMS(14400, 4800, 1, 150));

	(void)state;
	g.q = tg_permute(tg, q, order);
	g.k = tg_permute(tg, k, order);
	g.v = v;
	g.dy = tg_input(tg, NC_FP32, SHAPE(2, 3, 140, 32), NULL);
	begin(tg, &g);
	find_grads(tg, &g);
	make_graph(tg, &g);
	for (int i = 0; i < 3; i++) {
		for (int64_t n = 0; n < g.grad[i]->n; n++) {
			tg->absolute = fmax(tg->absolute, rounding(NC_FP32) * g.size[i][n]);
			tv_set(g.grad[i], n, g.grad[i]->f[n]);
		}
		test_free(g.size[i]);
		tg_output(tg, tg_permute(tg, g.grad[i], order), NULL, NC_NO_ALIAS);
		tg_output(tg, tg_unary(tg, NC_NEG, g.grad[i]), NULL, NC_NO_ALIAS);
	}
	tg_run(tg);
	tg_free(tg);
}

static void expect(nc_graph *g, const struct nc_attention_operands *of, int err, const char *text)
{
	const struct nc_attention how = { .scale = 1 };
	nc_value dk, dv;

	nc_attention_grad(g, of, &how, &dk, &dv);
	test_refused(g, err, text);
}

static void mistakes(void **state)
{
	nc_graph *g = nc_graph_create("lse");
	nc_value x = test_input(g, NC_BF16, SHAPE(2, 64, 32)), l;

	(void)state;
	expect(g, &(struct nc_attention_operands){ x, x, x, 0, x, x, x }, -EINVAL,
	       "lse bf16[2,64,32]; wanted are equal leading dims");
	g = nc_graph_create("broadcast");
	x = test_input(g, NC_BF16, SHAPE(2, 64, 32));
	l = test_input(g, NC_FP32, SHAPE(2, 64));
	expect(g,
	       &(struct nc_attention_operands){ x, test_input(g, NC_BF16, SHAPE(1, 64, 32)), x, 0,
						x, l, x },
	       -EINVAL, "k bf16[1,64,32]");
	g = nc_graph_create("dy");
	x = test_input(g, NC_BF16, SHAPE(2, 64, 32));
	l = test_input(g, NC_FP32, SHAPE(2, 64));
	expect(g,
	       &(struct nc_attention_operands){ x, x, x, 0, x, l,
						test_input(g, NC_FP32, SHAPE(2, 64, 32)) },
	       -EINVAL, "dy fp32[2,64,32]");
	g = nc_graph_create("long");
	x = test_input(g, NC_BF16, SHAPE(16385, 32));
	l = test_input(g, NC_FP32, SHAPE(16385));
	expect(g, &(struct nc_attention_operands){ x, x, x, 0, x, l, x }, -EOPNOTSUPP,
	       "16385 queries, at most 16384");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shapes_and_dtypes),
		cmocka_unit_test(dropout),
		cmocka_unit_test(views),
		cmocka_unit_test(mistakes),
	};

	return cmocka_run_group_tests_name("compiler_attention_grad", tests, NULL, NULL);
}
