/* SPDX-License-Identifier: Apache-2.0 */
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

/* --- elementwise --------------------------------------------------------------------------- */

static int64_t unary_int(nc_unary_op op, nc_dtype dtype, int64_t x)
{
	switch (op) {
	case NC_NEG:
		return (int64_t)(0 - (uint64_t)x);
	case NC_ABS:
		return x < 0 ? (int64_t)(0 - (uint64_t)x) : x;
	case NC_SIGN:
		return (x > 0) - (x < 0);
	case NC_SQUARE:
		return (int64_t)((uint64_t)x * (uint64_t)x);
	case NC_NOT:
		return dtype == NC_BOOL ? !x : ~x;
	case NC_RELU:
		return x > 0 ? x : 0;
	default:
		return 0;
	}
}

struct tv *tg_unary(struct tg *tg, nc_unary_op op, const struct tv *x)
{
	struct tv *t = tv_new(tg, x->dtype, x->nd, x->dims);

	for (int64_t n = 0; n < t->n; n++) {
		if (tv_is_float(x->dtype))
			t->f[n] = tv_round(x->dtype, tv_function(op, x->f[n]));
		else
			t->i[n] = tv_wrap(x->dtype, unary_int(op, x->dtype, x->i[n]));
	}
	t->v = nc_unary(tg->graph, op, x->v);
	return t;
}

static int64_t power(int64_t a, int64_t b)
{
	uint64_t r = 1;

	for (int64_t k = 0; k < b && k < 64; k++)
		r *= (uint64_t)a;
	return (int64_t)r;
}

static int64_t shift_left(nc_dtype dtype, int64_t a, int64_t b)
{
	int64_t bits = dtype == NC_INT64 ? 64 : 32;

	return b < 0 || b >= bits ? 0 : (int64_t)((uint64_t)a << b);
}

static int64_t shift_right(nc_dtype dtype, int64_t a, int64_t b)
{
	int64_t bits = dtype == NC_INT64 ? 64 : 32;

	return b < 0 || b >= bits ? (a < 0 ? -1 : 0) : a >> b;
}

static int64_t shift_logical(nc_dtype dtype, int64_t a, int64_t b)
{
	uint64_t bits = dtype == NC_INT64 ? (uint64_t)a : (uint32_t)a;

	return b < 0 || b >= (dtype == NC_INT64 ? 64 : 32) ? 0 : (int64_t)(bits >> b);
}

static int64_t binary_int(nc_binary_op op, nc_dtype dtype, int64_t a, int64_t b)
{
	int64_t r;

	switch (op) {
	case NC_ADD:
		return dtype == NC_BOOL ? a | b : (int64_t)((uint64_t)a + (uint64_t)b);
	case NC_SUB:
		return (int64_t)((uint64_t)a - (uint64_t)b);
	case NC_MUL:
		return (int64_t)((uint64_t)a * (uint64_t)b);
	case NC_DIV:
		return b == 0 ? 0 : b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
	case NC_MAX:
		return a > b ? a : b;
	case NC_MIN:
		return a < b ? a : b;
	case NC_POW:
		return power(a, b);
	case NC_MOD:
		r = b == 0 || b == -1 ? 0 : a % b;
		return r != 0 && (r < 0) != (b < 0) ? r + b : r;
	case NC_AND:
		return a & b;
	case NC_OR:
		return a | b;
	case NC_XOR:
		return a ^ b;
	case NC_SHL:
		return shift_left(dtype, a, b);
	case NC_SHR:
		return shift_right(dtype, a, b);
	case NC_LSR:
		return shift_logical(dtype, a, b);
	case NC_EQ:
		return a == b;
	case NC_NE:
		return a != b;
	case NC_LT:
		return a < b;
	case NC_LE:
		return a <= b;
	case NC_GT:
		return a > b;
	default:
		return a >= b;
	}
}

static void broadcast_dims(const struct tv *a, const struct tv *b, uint32_t *nd, int64_t *dims)
{
	*nd = a->nd > b->nd ? a->nd : b->nd;
	for (uint32_t i = 0; i < *nd; i++) {
		int64_t da = i < a->nd ? a->dims[a->nd - 1 - i] : 1;
		int64_t db = i < b->nd ? b->dims[b->nd - 1 - i] : 1;

		dims[*nd - 1 - i] = da > db ? da : db;
	}
}

struct tv *tg_binary(struct tg *tg, nc_binary_op op, const struct tv *a, const struct tv *b)
{
	bool compare = op >= NC_EQ && op <= NC_GE;
	int64_t dims[NC_DIMS_MAX], idx[NC_DIMS_MAX];
	uint32_t nd;
	struct tv *t;

	broadcast_dims(a, b, &nd, dims);
	t = tv_new(tg, compare ? NC_BOOL : a->dtype, nd, dims);
	for (int64_t n = 0; n < t->n; n++) {
		int64_t x, y;

		tv_index(t, n, idx);
		x = tv_at(a, nd, idx);
		y = tv_at(b, nd, idx);
		if (!tv_is_float(a->dtype))
			t->i[n] = tv_wrap(t->dtype, binary_int(op, a->dtype, a->i[x], b->i[y]));
		else if (compare)
			t->i[n] = (int64_t)tv_operation(op, a->f[x], b->f[y]);
		else
			t->f[n] = tv_round(t->dtype, tv_operation(op, a->f[x], b->f[y]));
	}
	t->v = nc_binary(tg->graph, op, a->v, b->v);
	return t;
}

struct tv *tg_select(struct tg *tg, const struct tv *c, const struct tv *a, const struct tv *b)
{
	struct tv ab = { .dtype = a->dtype };
	int64_t dims[NC_DIMS_MAX], idx[NC_DIMS_MAX];
	uint32_t nd;
	struct tv *t;

	broadcast_dims(a, b, &ab.nd, ab.dims);
	broadcast_dims(&ab, c, &nd, dims);
	t = tv_new(tg, a->dtype, nd, dims);
	for (int64_t n = 0; n < t->n; n++) {
		const struct tv *from;
		int64_t at;

		tv_index(t, n, idx);
		from = c->i[tv_at(c, nd, idx)] ? a : b;
		at = tv_at(from, nd, idx);
		t->f[n] = from->f[at];
		t->i[n] = from->i[at];
	}
	t->v = nc_select(tg->graph, c->v, a->v, b->v);
	return t;
}

static int64_t float_to_int(nc_dtype dtype, double f)
{
	if (dtype == NC_BOOL)
		return f != 0;
	return tv_wrap(dtype, isnan(f) ? 0 : (int64_t)f);
}

struct tv *tg_cast(struct tg *tg, const struct tv *x, nc_dtype dtype)
{
	struct tv *t = tv_new(tg, dtype, x->nd, x->dims);

	for (int64_t n = 0; n < t->n; n++) {
		if (tv_is_float(x->dtype) && tv_is_float(dtype))
			t->f[n] = tv_round(dtype, x->f[n]);
		else if (tv_is_float(x->dtype))
			t->i[n] = float_to_int(dtype, x->f[n]);
		else if (tv_is_float(dtype))
			t->f[n] = dtype == NC_FP32 ? (double)(float)x->i[n] :
						     tv_round(dtype, (double)x->i[n]);
		else
			t->i[n] = tv_wrap(dtype, x->i[n]);
	}
	t->v = nc_cast(tg->graph, x->v, dtype);
	return t;
}

/* --- views ----------------------------------------------------------------------------------- */

struct tv *tg_reshape(struct tg *tg, const struct tv *x, uint32_t nd, const int64_t *dims)
{
	struct tv *t = tv_new(tg, x->dtype, nd, dims);

	memcpy(t->f, x->f, (size_t)t->n * sizeof(*t->f));
	memcpy(t->i, x->i, (size_t)t->n * sizeof(*t->i));
	t->v = nc_reshape(tg->graph, x->v, nd, dims);
	return t;
}

struct tv *tg_permute(struct tg *tg, const struct tv *x, const uint32_t *order)
{
	int64_t dims[NC_DIMS_MAX], idx[NC_DIMS_MAX], old[NC_DIMS_MAX];
	struct tv *t;

	for (uint32_t i = 0; i < x->nd; i++)
		dims[i] = x->dims[order[i]];
	t = tv_new(tg, x->dtype, x->nd, dims);
	for (int64_t n = 0; n < t->n; n++) {
		tv_index(t, n, idx);
		for (uint32_t i = 0; i < x->nd; i++)
			old[order[i]] = idx[i];
		t->f[n] = x->f[tv_at(x, x->nd, old)];
		t->i[n] = x->i[tv_at(x, x->nd, old)];
	}
	t->v = nc_permute(tg->graph, x->v, order);
	return t;
}

struct tv *tg_broadcast(struct tg *tg, const struct tv *x, uint32_t nd, const int64_t *dims)
{
	struct tv *t = tv_new(tg, x->dtype, nd, dims);
	int64_t idx[NC_DIMS_MAX];

	for (int64_t n = 0; n < t->n; n++) {
		tv_index(t, n, idx);
		t->f[n] = x->f[tv_at(x, nd, idx)];
		t->i[n] = x->i[tv_at(x, nd, idx)];
	}
	t->v = nc_broadcast(tg->graph, x->v, nd, dims);
	return t;
}

/* --- reductions, products ----------------------------------------------------------------------- */

static void reduce_into(const struct tv *t, nc_reduce_op op, int64_t at, double f, int64_t i,
			bool first)
{
	static const nc_binary_op ops[] = { NC_ADD, NC_MUL, NC_MAX, NC_MIN };
	int64_t x = binary_int(ops[op], t->dtype, t->i[at], i);

	if (first) {
		t->f[at] = f;
		t->i[at] = i;
		return;
	}
	t->f[at] = tv_operation(ops[op], t->f[at], f);
	t->i[at] = t->dtype == NC_INT64 || t->dtype == NC_BOOL ? tv_wrap(t->dtype, x) :
								 tv_wrap(NC_INT32, x);
}

struct tv *tg_reduce(struct tg *tg, nc_reduce_op op, const struct tv *x, uint32_t axes, bool keep)
{
	int64_t dims[NC_DIMS_MAX], idx[NC_DIMS_MAX];
	uint32_t nd = 0;
	struct tv *t;
	bool *seen;

	for (uint32_t i = 0; i < x->nd; i++) {
		if (!(axes >> i & 1))
			dims[nd++] = x->dims[i];
		else if (keep)
			dims[nd++] = 1;
	}
	t = tv_new(tg, x->dtype, nd, dims);
	seen = tv_block(tg, (size_t)t->n);
	for (int64_t n = 0; n < x->n; n++) {
		int64_t at = 0;

		tv_index(x, n, idx);
		for (uint32_t i = 0; i < x->nd; i++)
			if (!(axes >> i & 1))
				at = at * x->dims[i] + idx[i];
		reduce_into(t, op, at, x->f[n], x->i[n], !seen[at]);
		seen[at] = true;
	}
	for (int64_t n = 0; n < t->n; n++) {
		t->f[n] = tv_round(t->dtype, t->f[n]);
		t->i[n] = tv_wrap(t->dtype, t->i[n]);
	}
	t->v = nc_reduce(tg->graph, op, x->v, axes, keep);
	return t;
}

struct tv *tg_scan(struct tg *tg, nc_reduce_op op, const struct tv *x, uint32_t dim)
{
	struct tv *t = tv_new(tg, x->dtype, x->nd, x->dims);
	int64_t stride = 1;

	for (uint32_t i = dim + 1; i < x->nd; i++)
		stride *= x->dims[i];
	for (int64_t n = 0; n < t->n; n++) {
		bool first = n / stride % x->dims[dim] == 0;

		t->f[n] = first ? 0 : t->f[n - stride];
		t->i[n] = first ? 0 : t->i[n - stride];
		reduce_into(t, op, n, x->f[n], x->i[n], first);
	}
	for (int64_t n = 0; n < t->n; n++) {
		t->f[n] = tv_round(t->dtype, t->f[n]);
		t->i[n] = tv_wrap(t->dtype, t->i[n]);
	}
	t->v = nc_scan(tg->graph, op, x->v, dim);
	return t;
}

/* Rounded as the device does: what is lost in one step counts in all that follow. */
struct tv *tg_recurrence(struct tg *tg, const struct tv *a, const struct tv *b, uint32_t dim)
{
	struct tv *t = tv_new(tg, b->dtype, b->nd, b->dims);
	int64_t stride = 1;

	for (uint32_t i = dim + 1; i < b->nd; i++)
		stride *= b->dims[i];
	for (int64_t n = 0; n < t->n; n++) {
		double before = n / stride % b->dims[dim] ? t->f[n - stride] : 0;

		t->f[n] = tv_round(t->dtype, tv_round(t->dtype, a->f[n] * before) + b->f[n]);
	}
	t->v = nc_recurrence(tg->graph, a->v, b->v, dim);
	return t;
}

struct tv *tg_matmul(struct tg *tg, const struct tv *a, const struct tv *b)
{
	struct tv ba = *a, bb = *b;
	int64_t dims[NC_DIMS_MAX], idx[NC_DIMS_MAX], k = a->dims[a->nd - 1];
	int64_t columns = b->dims[b->nd - 1];
	double *bt = tv_block(tg, (size_t)b->n * sizeof(*bt)); /* each matrix of b transposed */
	uint32_t nd;
	struct tv *t;

	for (int64_t i = 0; i < b->n; i++)
		bt[i / (k * columns) * k * columns + i % columns * k + i / columns % k] = b->f[i];
	ba.dims[a->nd - 1] = 1;
	bb.dims[b->nd - 2] = 1;
	broadcast_dims(&ba, &bb, &nd, dims);
	t = tv_new(tg, a->dtype, nd, dims);
	for (int64_t n = 0; n < t->n; n++) {
		double sum = 0;
		int64_t col, pa, pb;

		tv_index(t, n, idx);
		col = idx[nd - 1];
		idx[nd - 1] = 0;
		pa = tv_at(a, nd, idx);
		idx[nd - 2] = 0;
		pb = tv_at(b, nd, idx) + col * k;
		for (int64_t i = 0; i < k; i++)
			sum += a->f[pa + i] * bt[pb + i];
		t->f[n] = tv_round(t->dtype, sum);
	}
	t->v = nc_matmul(tg->graph, a->v, b->v);
	return t;
}

/* Calls add for every product of a convolution: index of x, of w, of y. */
static void each_product(const struct tv *x, const struct tv *w, const struct tv *y,
			 const struct nc_conv2d *c, double *px, double *pw, double *py, int which)
{
	int64_t cg = w->dims[1], og = w->dims[0] / c->groups;

	for (int64_t n = 0; n < y->n; n++) {
		int64_t i[4];

		tv_index(y, n, i);
		for (int64_t ci = 0; ci < cg; ci++)
			for (int64_t kh = 0; kh < w->dims[2]; kh++)
				for (int64_t kw = 0; kw < w->dims[3]; kw++) {
					int64_t h = i[2] * c->stride[0] - c->padding[0] +
						    kh * c->dilation[0];
					int64_t v = i[3] * c->stride[1] - c->padding[1] +
						    kw * c->dilation[1];
					int64_t xc = i[1] / og * cg + ci, ix, iw;

					if (h < 0 || v < 0 || h >= x->dims[2] || v >= x->dims[3])
						continue;
					ix = ((i[0] * x->dims[1] + xc) * x->dims[2] + h) *
						     x->dims[3] +
					     v;
					iw = ((i[1] * cg + ci) * w->dims[2] + kh) * w->dims[3] + kw;
					if (which == 0)
						px[ix] += pw[iw] * py[n];
					else if (which == 1)
						pw[iw] += px[ix] * py[n];
					else
						py[n] += px[ix] * pw[iw];
				}
	}
}

static void round_all(struct tv *t)
{
	for (int64_t n = 0; n < t->n; n++)
		t->f[n] = tv_round(t->dtype, t->f[n]);
}

struct tv *tg_conv2d(struct tg *tg, const struct tv *x, const struct tv *w,
		     const struct nc_conv2d *c)
{
	int64_t dims[4] = { x->dims[0], w->dims[0] };
	struct tv *t;

	for (int i = 0; i < 2; i++)
		dims[2 + i] = (x->dims[2 + i] + 2 * c->padding[i] -
			       c->dilation[i] * (w->dims[2 + i] - 1) - 1) /
				      c->stride[i] +
			      1;
	t = tv_new(tg, x->dtype, 4, dims);
	each_product(x, w, t, c, x->f, w->f, t->f, 2);
	round_all(t);
	t->v = nc_conv2d(tg->graph, x->v, w->v, c);
	return t;
}

struct tv *tg_conv2d_grad_x(struct tg *tg, const struct tv *dy, const struct tv *w,
			    const struct nc_type *type, const struct nc_conv2d *c)
{
	struct tv *t = tv_new(tg, type->dtype, 4, type->dims);

	each_product(t, w, dy, c, t->f, w->f, dy->f, 0);
	round_all(t);
	t->v = nc_conv2d_grad_x(tg->graph, dy->v, w->v, type, c);
	return t;
}

struct tv *tg_conv2d_grad_w(struct tg *tg, const struct tv *dy, const struct tv *x,
			    const struct nc_type *type, const struct nc_conv2d *c)
{
	struct tv *t = tv_new(tg, type->dtype, 4, type->dims);

	each_product(x, t, dy, c, x->f, t->f, dy->f, 1);
	round_all(t);
	t->v = nc_conv2d_grad_w(tg->graph, dy->v, x->v, type, c);
	return t;
}
