/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random graphs. Legal ones, of operations whose results are exact, must give the
 * very bits of the reference; of calls with senseless arguments none may do more
 * than fail with a message.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "graph.h"

#define POOL	  24
#define ELEMS_MAX 100000 /* of one value */

static const nc_dtype dtypes[] = { NC_FP32, NC_FP32, NC_BF16,  NC_INT32, NC_INT64, NC_BOOL,
				   NC_INT8, NC_FP64, NC_UINT8, NC_FP16,	 NC_INT16 };

static uint64_t runs(uint64_t normal)
{
	const char *text = getenv("NEURON_FUZZ_RUNS");

	return text ? strtoull(text, NULL, 0) : normal;
}

static bool is_float(nc_dtype dtype)
{
	return dtype == NC_FP32 || dtype == NC_BF16 || dtype == NC_FP16 || dtype == NC_FP64;
}

struct pool {
	struct tg *tg;
	struct tv *v[POOL];
	int n;
	int64_t dims[4]; /* all shapes are made of these */
	uint32_t nd;
};

static struct tv *pick(struct pool *p)
{
	return p->v[tg_range(p->tg, 0, p->n - 1)];
}

/* Another value of the dtype, with a shape that broadcasts. */
static struct tv *pick_like(struct pool *p, const struct tv *x, nc_dtype dtype)
{
	for (int tries = 0; tries < 20; tries++) {
		struct tv *y = pick(p);
		bool fits = y->dtype == dtype;
		int64_t n = 1;

		for (uint32_t i = 0; i < x->nd || i < y->nd; i++) {
			int64_t a = i < x->nd ? x->dims[x->nd - 1 - i] : 1;
			int64_t b = i < y->nd ? y->dims[y->nd - 1 - i] : 1;

			fits = fits && (a == b || a == 1 || b == 1);
			n *= a > b ? a : b;
		}
		if (fits && n <= ELEMS_MAX)
			return y;
	}
	if (tg_range(p->tg, 0, 1))
		return tg_const(p->tg, dtype, (double)tg_range(p->tg, 0, 1));
	return tg_scalar(p->tg, dtype, (double)tg_range(p->tg, 0, 1));
}

static struct tv *random_binary(struct pool *p, const struct tv *x)
{
	static const nc_binary_op common[] = { NC_ADD, NC_MUL, NC_MAX, NC_MIN, NC_EQ, NC_LT, NC_GE };
	static const nc_binary_op numbers[] = { NC_SUB, NC_ADD, NC_DIV };
	static const nc_binary_op bits[] = { NC_AND, NC_OR, NC_XOR };
	nc_binary_op op = common[tg_range(p->tg, 0, 6)];
	const struct tv *y = pick_like(p, x, x->dtype);

	if (tg_range(p->tg, 0, 2) == 0 && x->dtype != NC_BOOL)
		op = numbers[tg_range(p->tg, 0, 2)];
	if (tg_range(p->tg, 0, 3) == 0 && !is_float(x->dtype))
		op = bits[tg_range(p->tg, 0, 2)];
	return tg_range(p->tg, 0, 1) ? tg_binary(p->tg, op, x, y) : tg_binary(p->tg, op, y, x);
}

static struct tv *random_view(struct pool *p, const struct tv *x)
{
	uint32_t order[NC_DIMS_MAX], nd = 0;
	int64_t dims[NC_DIMS_MAX];

	switch (tg_range(p->tg, 0, 2)) {
	case 0:
		for (uint32_t i = 0; i < x->nd; i++)
			order[i] = i;
		for (uint32_t i = x->nd; i-- > 1;) {
			uint32_t j = (uint32_t)tg_range(p->tg, 0, i), t = order[i];

			order[i] = order[j];
			order[j] = t;
		}
		return tg_permute(p->tg, x, order);
	case 1: /* two dims become one, or a dim of 1 comes in */
		for (uint32_t i = 0; i < x->nd; i++) {
			if (nd && tg_range(p->tg, 0, 2) == 0)
				dims[nd - 1] *= x->dims[i];
			else
				dims[nd++] = x->dims[i];
		}
		if (nd < 5 && tg_range(p->tg, 0, 1)) {
			uint32_t at = (uint32_t)tg_range(p->tg, 0, nd);

			memmove(dims + at + 1, dims + at, (nd - at) * sizeof(*dims));
			dims[at] = 1;
			nd++;
		}
		return tg_reshape(p->tg, x, nd, dims);
	default:
		if (x->nd >= 4 || x->n > ELEMS_MAX / 3)
			return tg_broadcast(p->tg, x, x->nd, x->dims);
		dims[0] = tg_range(p->tg, 1, 3);
		memcpy(dims + 1, x->dims, x->nd * sizeof(*dims));
		return tg_broadcast(p->tg, x, x->nd + 1, dims);
	}
}

static struct tv *random_reduce(struct pool *p, const struct tv *x)
{
	/* Sums of floats depend on their order; of these only the largest is exact. */
	nc_reduce_op op = is_float(x->dtype) ? NC_REDUCE_MAX : (nc_reduce_op)tg_range(p->tg, 0, 3);

	return tg_reduce(p->tg, op, x, (uint32_t)tg_range(p->tg, 0, (1 << x->nd) - 1),
			 tg_range(p->tg, 0, 1));
}

static struct tv *random_rows(struct pool *p, const struct tv *x)
{
	const uint32_t dim = (uint32_t)tg_range(p->tg, 0, x->nd - 1);
	const int64_t n = tg_range(p->tg, 1, x->dims[dim] < 300 ? x->dims[dim] + 3 : 300);
	struct tv *index = tg_input(p->tg, NC_INT64, 1, &n, NULL), *rows;

	index = tg_binary(p->tg, NC_MOD, index, tg_const(p->tg, NC_INT64, (double)x->dims[dim]));
	rows = tg_take(p->tg, x, dim, index);
	if (tg_range(p->tg, 0, 1))
		return rows;
	return tg_put(p->tg,
		      x->dtype == NC_FP32 || x->dtype == NC_INT32 ?
			      (nc_put_op)tg_range(p->tg, 0, 1) :
			      NC_PUT_COPY,
		      x, dim, index, tg_unary(p->tg, x->dtype == NC_BOOL ? NC_NOT : NC_ABS, rows));
}

/* Along any dim; the operands are computed, or views, or both. */
static struct tv *random_recurrence(struct pool *p, const struct tv *x)
{
	const struct tv *a = tg_binary(p->tg, NC_MAX, x, pick_like(p, x, NC_FP32));
	const struct tv *b = tg_broadcast(p->tg, x, a->nd, a->dims);
	const uint32_t dim = (uint32_t)tg_range(p->tg, 0, a->nd - 1);

	if (tg_range(p->tg, 0, 1))
		b = tg_unary(p->tg, NC_ABS, b);
	return tg_range(p->tg, 0, 1) ? tg_recurrence(p->tg, a, b, dim) :
				       tg_recurrence(p->tg, b, a, dim);
}

static struct tv *random_op(struct pool *p)
{
	const struct tv *x = pick(p);

	switch (tg_range(p->tg, 0, 12)) {
	case 0:
		return tg_unary(p->tg, x->dtype == NC_BOOL ? NC_NOT : NC_ABS, x);
	case 1:
		return tg_cast(p->tg, x, is_float(x->dtype) ? NC_BOOL : NC_INT64);
	case 2:
	case 3:
		return random_view(p, x);
	case 4:
	case 5:
		return random_reduce(p, x);
	case 6: {
		const struct tv *c = pick_like(p, x, NC_BOOL), *b;
		struct tv *xc = tg_select(p->tg, c, x, x);

		b = pick_like(p, xc, x->dtype);
		return tg_select(p->tg, c, xc, b);
	}
	case 7: /* as random_reduce() */
		if (!x->nd)
			return random_reduce(p, x);
		return tg_scan(p->tg,
			       is_float(x->dtype) ? NC_REDUCE_MIN :
						    (nc_reduce_op)tg_range(p->tg, 0, 3),
			       x, (uint32_t)tg_range(p->tg, 0, x->nd - 1));
	case 8:
		return x->nd ? random_rows(p, x) : random_binary(p, x);
	case 9:
		return x->nd && x->dtype == NC_FP32 ? random_recurrence(p, x) : random_view(p, x);
	default:
		return random_binary(p, x);
	}
}

static struct tv *random_input(struct pool *p)
{
	int64_t dims[4], strides[4], run = 1;
	uint32_t nd = (uint32_t)tg_range(p->tg, 0, p->nd);

	for (uint32_t i = 0; i < nd; i++)
		dims[i] = tg_range(p->tg, 0, 3) ? p->dims[p->nd - nd + i] : 1;
	for (uint32_t i = nd; i-- > 0;) {
		strides[i] = tg_range(p->tg, 0, 9) ? run : 0;
		run *= dims[i] + (tg_range(p->tg, 0, 9) == 0);
	}
	return tg_input(p->tg, dtypes[tg_range(p->tg, 0, sizeof(dtypes) / sizeof(dtypes[0]) - 1)],
			nd, dims, strides);
}

/* The slot of an input that x may be written over, if there is one that fits. */
static uint32_t alias_for(const struct tg *tg, const struct tv *x, int64_t *strides)
{
	struct nc_type type;

	for (uint32_t s = 0; s < tg->n_slots; s++) {
		bool taken = !tg->slots[s].bytes || tg->slots[s].is_scalar, dense = true;

		for (uint32_t o = 0; o < tg->n_slots; o++)
			taken = taken || (tg->slots[o].want && tg->slots[o].alias == s);
		if (taken)
			continue;
		type = nc_type_of(tg->graph, tg->slots[s].value);
		for (uint32_t i = 0; i < type.ndim; i++)
			dense = dense && (tg->slots[s].strides[i] || type.dims[i] == 1);
		if (!dense || type.dtype != x->dtype || type.ndim != x->nd ||
		    memcmp(type.dims, x->dims, x->nd * sizeof(x->dims[0])))
			continue;
		memcpy(strides, tg->slots[s].strides, sizeof(tg->slots[s].strides));
		return s;
	}
	return NC_NO_ALIAS;
}

static void legal(void **state)
{
	uint64_t n = runs(300);

	(void)state;
	for (uint64_t seed = 1; seed <= n; seed++) {
		struct tg *tg = tg_new("fuzz", seed * 7919);
		struct pool p = { .tg = tg };
		int outputs = (int)tg_range(tg, 1, 3), total = (int)tg_range(tg, 3, POOL);

		tg->tolerance = 0;
		tg->seed_shown = seed;
		p.nd = (uint32_t)tg_range(tg, 1, 4);
		for (uint32_t i = 0; i < p.nd; i++)
			p.dims[i] = tg_range(tg, 1, p.nd == 1 ? 40000 : p.nd == 2 ? 260 : 12);
		while (p.n < total) {
			struct tv *x = p.n < 2 || tg_range(tg, 0, 4) == 0 ? random_input(&p) :
									    random_op(&p);

			if (x->n <= ELEMS_MAX)
				p.v[p.n++] = x;
			if (tg->n_slots > 40)
				break;
		}
		for (int i = 0; i < outputs; i++) {
			const struct tv *x = p.v[tg_range(tg, p.n / 2, p.n - 1)];
			int64_t strides[NC_DIMS_MAX];
			uint32_t alias = alias_for(tg, x, strides);

			tg_output(tg, x, alias == NC_NO_ALIAS ? NULL : strides, alias);
		}
		tg_run(tg);
		tg_free(tg);
	}
}

/* --- senseless calls ------------------------------------------------------------------------- */

static int64_t odd_number(struct tg *r)
{
	static const int64_t odd[] = { 0,	  1,	     2,		3,
				       5,	  7,	     16,	-1,
				       -5,	  127,	     1000,	1 << 20,
				       INT32_MAX, INT64_MAX, INT64_MIN, INT64_C(1) << 43,
				       UINT32_MAX };

	return tg_range(r, 0, 3) ? tg_range(r, 1, 9) :
				   odd[tg_range(r, 0, sizeof(odd) / sizeof(odd[0]) - 1)];
}

static struct nc_type odd_type(struct tg *r)
{
	struct nc_type type = { .ndim = (uint32_t)tg_range(r, 0, 4) };

	type.dtype = tg_range(r, 0, 19) ? dtypes[tg_range(r, 0, 10)] : (nc_dtype)tg_range(r, 0, 40);
	if (tg_range(r, 0, 30) == 0)
		type.ndim = (uint32_t)odd_number(r);
	for (uint32_t i = 0; i < NC_DIMS_MAX; i++)
		type.dims[i] = odd_number(r);
	return type;
}

static struct nc_conv2d odd_conv(struct tg *r)
{
	struct nc_conv2d conv;

	for (int i = 0; i < 2; i++) {
		conv.stride[i] = tg_range(r, 0, 9) ? 1 : odd_number(r);
		conv.padding[i] = tg_range(r, 0, 4) ? 1 : odd_number(r);
		conv.dilation[i] = tg_range(r, 0, 9) ? 1 : odd_number(r);
	}
	conv.groups = tg_range(r, 0, 9) ? 1 : odd_number(r);
	return conv;
}

static nc_value odd_call(struct tg *r, nc_graph *g, nc_value last)
{
	nc_value a = tg_range(r, 0, 30) ? (nc_value)tg_range(r, 1, last ? last : 1) :
					  (nc_value)odd_number(r);
	nc_value b = tg_range(r, 0, 1) ? a : (nc_value)tg_range(r, 1, last ? last : 1);
	struct nc_type type = odd_type(r);
	struct nc_conv2d conv = odd_conv(r);
	int64_t strides[NC_DIMS_MAX];
	uint32_t order[NC_DIMS_MAX];

	for (uint32_t i = 0; i < NC_DIMS_MAX; i++) {
		strides[i] = odd_number(r);
		order[i] = (uint32_t)tg_range(r, 0, 4);
	}
	switch (tg_range(r, 0, 21)) {
	case 0:
	case 1:
	case 2:
		return nc_input(g, &type,
				type.ndim <= NC_DIMS_MAX && tg_range(r, 0, 1) ? strides : NULL);
	case 3:
		return nc_scalar(g, type.dtype);
	case 4:
		return nc_const_float(g, type.dtype, (double)odd_number(r));
	case 5:
		return nc_const_int(g, type.dtype, odd_number(r));
	case 6:
		return nc_iota(g, &type, (uint32_t)tg_range(r, 0, 4));
	case 7:
		return nc_unary(g, (nc_unary_op)tg_range(r, 0, NC_UNARY_OPS), a);
	case 8:
	case 9:
		return nc_binary(g, (nc_binary_op)tg_range(r, 0, NC_BINARY_OPS), a, b);
	case 10:
		return nc_select(g, b, a, a);
	case 11:
		return nc_cast(g, a, type.dtype);
	case 12:
		return nc_reshape(g, a, type.ndim, type.dims);
	case 13:
		return nc_permute(g, a, order);
	case 14:
		return nc_broadcast(g, a, type.ndim, type.dims);
	case 15:
		return nc_reduce(g, (nc_reduce_op)tg_range(r, 0, NC_REDUCE_OPS), a,
				 (uint32_t)odd_number(r), tg_range(r, 0, 1));
	case 16:
		if (tg_range(r, 0, 1))
			return nc_recurrence(g, a, b, (uint32_t)tg_range(r, 0, 4));
		return nc_scan(g, (nc_reduce_op)tg_range(r, 0, NC_REDUCE_OPS), a,
			       (uint32_t)tg_range(r, 0, 4));
	case 17:
		return nc_matmul(g, a, b);
	case 18:
		return nc_take(g, a, (uint32_t)tg_range(r, 0, 4), b);
	case 19:
		return nc_put(g, (nc_put_op)tg_range(r, 0, NC_PUT_OPS), a,
			      (uint32_t)tg_range(r, 0, 4), b, (nc_value)tg_range(r, 1, last + 1));
	case 20:
		return tg_range(r, 0, 1) ? nc_conv2d(g, a, b, &conv) :
					   nc_conv2d_grad_x(g, a, b, &type, &conv);
	default:
		return nc_conv2d_grad_w(g, a, b, &type, &conv);
	}
}

static void senseless(void **state)
{
	static const int errors[] = { 0, -EINVAL, -EOPNOTSUPP, -E2BIG };
	uint64_t n = runs(5000);
	int seen[4] = { 0 };

	(void)state;
	for (uint64_t seed = 1; seed <= n; seed++) {
		struct tg *r = tg_new("odd", seed * 104729);
		char error[NC_ERROR_BYTES], text[100];
		nc_value last = 0;
		int calls = (int)tg_range(r, 1, 8), err, k;

		for (int i = 0; i < calls; i++) {
			nc_value v = odd_call(r, r->graph, last);

			last = v ? v : last;
		}
		nc_output(r->graph, last, NULL,
			  tg_range(r, 0, 5) ? NC_NO_ALIAS : (uint32_t)odd_number(r));
		nc_graph_dump(r->graph, text, sizeof(text));
		err = nc_compile(r->graph, test_target(), &r->program, error);
		for (k = 0; k < 4 && errors[k] != err; k++)
			;
		if (k == 4)
			fail_msg("seed %llu: error %d", (unsigned long long)seed, err);
		seen[k]++;
		assert_int_equal(err != 0, error[0] != '\0');
		assert_int_equal(err != 0, r->program.image == NULL);
		tg_free(r);
	}
	assert_true(seen[0] && seen[1] && (seen[2] || n < 1000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(legal),
		cmocka_unit_test(senseless),
	};

	cmocka_set_test_filter(getenv("NEURON_FUZZ_ONLY"));
	return cmocka_run_group_tests_name("compiler_fuzz", tests, NULL, NULL);
}
