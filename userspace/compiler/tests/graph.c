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

#include "graph.h"

/* --- memory, numbers ------------------------------------------------------------------- */

static void *block(struct tg *tg, size_t size)
{
	void *p = calloc(1, size ? size : 1);

	assert_non_null(p);
	assert_true(tg->n_blocks < sizeof(tg->blocks) / sizeof(tg->blocks[0]));
	tg->blocks[tg->n_blocks++] = p;
	return p;
}

struct tg *tg_new(const char *name, uint64_t seed)
{
	struct tg *tg = calloc(1, sizeof(*tg));

	assert_non_null(tg);
	tg->graph = nc_graph_create(name);
	assert_non_null(tg->graph);
	tg->seed = seed * 2654435761u + 88172645463325252u;
	tg->tolerance = 1e-6;
	return tg;
}

void tg_free(struct tg *tg)
{
	for (uint32_t i = 0; i < tg->n_blocks; i++)
		free(tg->blocks[i]);
	nc_program_free(&tg->program);
	nc_graph_destroy(tg->graph);
	free(tg);
}

uint64_t tg_random(struct tg *tg)
{
	tg->seed ^= tg->seed << 13;
	tg->seed ^= tg->seed >> 7;
	tg->seed ^= tg->seed << 17;
	return tg->seed;
}

int64_t tg_range(struct tg *tg, int64_t low, int64_t high)
{
	return low + (int64_t)(tg_random(tg) % (uint64_t)(high - low + 1));
}

static bool is_float(nc_dtype dtype)
{
	return dtype == NC_FP32 || dtype == NC_BF16 || dtype == NC_FP16 || dtype == NC_FP64;
}

static uint32_t width(nc_dtype dtype)
{
	switch (dtype) {
	case NC_INT8:
	case NC_UINT8:
	case NC_BOOL:
		return 1;
	case NC_INT16:
	case NC_BF16:
	case NC_FP16:
		return 2;
	case NC_INT32:
	case NC_FP32:
		return 4;
	default:
		return 8;
	}
}

static double round_bf16(double x)
{
	float f = (float)x;
	uint32_t bits;

	if (isnan(f))
		return f;
	memcpy(&bits, &f, 4);
	bits += 0x7fff + (bits >> 16 & 1);
	bits &= 0xffff0000u;
	memcpy(&f, &bits, 4);
	return f;
}

/* As the engines: through fp32, which they compute in. */
static double round_to(nc_dtype dtype, double x)
{
	switch (dtype) {
	case NC_FP64:
		return x;
	case NC_FP32:
		return (float)x;
	case NC_BF16:
		return round_bf16(x);
	default:
		return (double)(_Float16)(float)x;
	}
}

static int64_t wrap(nc_dtype dtype, int64_t x)
{
	switch (dtype) {
	case NC_INT8:
		return (int8_t)x;
	case NC_UINT8:
		return (uint8_t)x;
	case NC_INT16:
		return (int16_t)x;
	case NC_INT32:
		return (int32_t)x;
	case NC_BOOL:
		return x != 0;
	default:
		return x;
	}
}

static void put(nc_dtype dtype, uint8_t *at, double f, int64_t i)
{
	float s = (float)f;
	_Float16 h = (_Float16)s;
	uint32_t bits;

	switch (dtype) {
	case NC_FP64:
		memcpy(at, &f, 8);
		break;
	case NC_FP32:
		memcpy(at, &s, 4);
		break;
	case NC_BF16:
		s = (float)round_bf16(f);
		memcpy(&bits, &s, 4);
		bits >>= 16;
		memcpy(at, &bits, 2);
		break;
	case NC_FP16:
		memcpy(at, &h, 2);
		break;
	default:
		memcpy(at, &i, width(dtype));
		break;
	}
}

static double get_float(nc_dtype dtype, const uint8_t *at)
{
	uint32_t bits = 0;
	_Float16 h;
	double d;
	float s;

	switch (dtype) {
	case NC_FP64:
		memcpy(&d, at, 8);
		return d;
	case NC_FP32:
		memcpy(&s, at, 4);
		return s;
	case NC_BF16:
		memcpy((uint8_t *)&bits + 2, at, 2);
		memcpy(&s, &bits, 4);
		return s;
	default:
		memcpy(&h, at, 2);
		return (double)h;
	}
}

static int64_t get_int(nc_dtype dtype, const uint8_t *at)
{
	int64_t x = 0;

	memcpy(&x, at, width(dtype));
	return wrap(dtype, x);
}

/* --- values -------------------------------------------------------------------------------- */

static struct tv *value(struct tg *tg, nc_dtype dtype, uint32_t nd, const int64_t *dims)
{
	struct tv *t = block(tg, sizeof(*t));

	t->dtype = dtype;
	t->nd = nd;
	t->n = 1;
	for (uint32_t i = 0; i < nd; i++) {
		t->dims[i] = dims[i];
		t->n *= dims[i];
	}
	t->f = block(tg, (size_t)t->n * sizeof(*t->f));
	t->i = block(tg, (size_t)t->n * sizeof(*t->i));
	return t;
}

/* Index in each dim of element n. */
static void unravel(const struct tv *t, int64_t n, int64_t *idx)
{
	for (uint32_t i = t->nd; i-- > 0;) {
		idx[i] = n % t->dims[i];
		n /= t->dims[i];
	}
}

/* Element of t at the right-aligned index idx of nd dims; dims of 1 repeat. */
static int64_t at_broadcast(const struct tv *t, uint32_t nd, const int64_t *idx)
{
	int64_t n = 0;

	for (uint32_t i = 0; i < t->nd; i++)
		n = n * t->dims[i] + (t->dims[i] == 1 ? 0 : idx[nd - t->nd + i]);
	return n;
}

static void strides_or_dense(const struct tv *t, const int64_t *strides, int64_t *out)
{
	int64_t run = 1;

	for (uint32_t i = t->nd; i-- > 0;) {
		out[i] = strides ? strides[i] : run;
		run *= t->dims[i];
	}
}

static uint64_t span(const struct tv *t, const int64_t *strides)
{
	int64_t last = 0;

	for (uint32_t i = 0; i < t->nd; i++)
		last += (t->dims[i] - 1) * strides[i];
	return (uint64_t)(last + 1) * width(t->dtype);
}

static int64_t offset_of(const struct tv *t, const int64_t *strides, int64_t n)
{
	int64_t idx[NC_DIMS_MAX], at = 0;

	unravel(t, n, idx);
	for (uint32_t i = 0; i < t->nd; i++)
		at += idx[i] * strides[i];
	return at * width(t->dtype);
}

static struct nc_type type_of(const struct tv *t)
{
	struct nc_type type = { .dtype = t->dtype, .ndim = t->nd };

	memcpy(type.dims, t->dims, sizeof(type.dims));
	return type;
}

static struct tv *input(struct tg *tg, nc_dtype dtype, uint32_t nd, const int64_t *dims,
			const int64_t *strides, bool positive)
{
	struct tv *t = value(tg, dtype, nd, dims);
	struct tslot *slot = &tg->slots[tg->n_slots++];
	struct nc_type type = type_of(t);
	uint32_t w = width(dtype);

	strides_or_dense(t, strides, slot->strides);
	slot->size = span(t, slot->strides);
	slot->bytes = block(tg, slot->size);
	slot->alias = NC_NO_ALIAS;
	for (uint64_t i = 0; i < slot->size; i += w) {
		double f = (double)tg_range(tg, -1000, 1000) / 250;
		int64_t n = (int64_t)tg_random(tg);

		if (positive) {
			f = fabs(f) + 0.1;
			n = n >> 3 & 15;
		} else if (tg_random(tg) & 1) {
			n %= 100;
		}
		put(dtype, slot->bytes + i, f, wrap(dtype, n));
	}
	for (int64_t i = 0; i < t->n; i++) {
		const uint8_t *p = slot->bytes + offset_of(t, slot->strides, i);

		if (is_float(dtype))
			t->f[i] = get_float(dtype, p);
		else
			t->i[i] = get_int(dtype, p);
	}
	t->v = nc_input(tg->graph, &type, strides);
	slot->value = t->v;
	return t;
}

struct tv *tg_input(struct tg *tg, nc_dtype dtype, uint32_t nd, const int64_t *dims,
		    const int64_t *strides)
{
	return input(tg, dtype, nd, dims, strides, false);
}

struct tv *tg_positive(struct tg *tg, nc_dtype dtype, uint32_t nd, const int64_t *dims)
{
	return input(tg, dtype, nd, dims, NULL, true);
}

static void set(struct tv *t, int64_t n, double f)
{
	if (is_float(t->dtype))
		t->f[n] = round_to(t->dtype, f);
	else
		t->i[n] = wrap(t->dtype, (int64_t)f);
}

struct tv *tg_scalar(struct tg *tg, nc_dtype dtype, double f)
{
	struct tv *t = value(tg, dtype, 0, NULL);
	struct tslot *slot = &tg->slots[tg->n_slots++];

	set(t, 0, f);
	slot->size = 8;
	slot->is_scalar = true;
	slot->bytes = block(tg, 8);
	slot->alias = NC_NO_ALIAS;
	put(dtype, slot->bytes, t->f[0], t->i[0]);
	t->v = nc_scalar(tg->graph, dtype);
	return t;
}

struct tv *tg_const(struct tg *tg, nc_dtype dtype, double f)
{
	struct tv *t = value(tg, dtype, 0, NULL);

	set(t, 0, f);
	t->v = is_float(dtype) ? nc_const_float(tg->graph, dtype, t->f[0]) :
				 nc_const_int(tg->graph, dtype, t->i[0]);
	return t;
}

struct tv *tg_iota(struct tg *tg, nc_dtype dtype, uint32_t nd, const int64_t *dims, uint32_t dim)
{
	struct tv *t = value(tg, dtype, nd, dims);
	struct nc_type type = type_of(t);
	int64_t idx[NC_DIMS_MAX];

	for (int64_t n = 0; n < t->n; n++) {
		unravel(t, n, idx);
		set(t, n, (double)idx[dim]);
	}
	t->v = nc_iota(tg->graph, &type, dim);
	return t;
}

/* --- elementwise --------------------------------------------------------------------------- */

static double gelu(double x)
{
	return 0.5 * x * (1 + erf(x / sqrt(2)));
}

static double gelu_tanh(double x)
{
	return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

static double sigmoid(double x)
{
	return 1 / (1 + exp(-x));
}

static double dgelu_tanh(double x)
{
	double k = sqrt(2 / M_PI), t = tanh(k * (x + 0.044715 * x * x * x));

	return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * k * (1 + 3 * 0.044715 * x * x);
}

static double unary_float(nc_unary_op op, double x)
{
	switch (op) {
	case NC_NEG:
		return -x;
	case NC_ABS:
		return fabs(x);
	case NC_SIGN:
		return (x > 0) - (x < 0);
	case NC_SQUARE:
		return x * x;
	case NC_EXP:
		return exp(x);
	case NC_LN:
		return log(x);
	case NC_SQRT:
		return sqrt(x);
	case NC_RSQRT:
		return 1 / sqrt(x);
	case NC_RECIPROCAL:
		return 1 / x;
	case NC_SIGMOID:
		return sigmoid(x);
	case NC_TANH:
		return tanh(x);
	case NC_RELU:
		return x > 0 ? x : 0;
	case NC_GELU:
		return gelu(x);
	case NC_GELU_TANH:
		return gelu_tanh(x);
	case NC_SILU:
		return x * sigmoid(x);
	case NC_SOFTPLUS:
		return log1p(exp(x));
	case NC_ERF:
		return erf(x);
	case NC_SIN:
		return sin(x);
	case NC_COS:
		return cos(x);
	case NC_ARCTAN:
		return atan(x);
	case NC_LOG1P:
		return log1p(x);
	case NC_EXPM1:
		return expm1(x);
	case NC_MISH:
		return x * tanh(log1p(exp(x)));
	case NC_FLOOR:
		return floor(x);
	case NC_CEIL:
		return ceil(x);
	case NC_ROUND:
		return nearbyint(x);
	case NC_TRUNC:
		return trunc(x);
	case NC_DGELU:
		return 0.5 * (1 + erf(x / sqrt(2))) + x * exp(-0.5 * x * x) / sqrt(2 * M_PI);
	case NC_DGELU_TANH:
		return dgelu_tanh(x);
	case NC_DSILU:
		return sigmoid(x) * (1 + x * (1 - sigmoid(x)));
	default:
		return NAN;
	}
}

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
	struct tv *t = value(tg, x->dtype, x->nd, x->dims);

	for (int64_t n = 0; n < t->n; n++) {
		if (is_float(x->dtype))
			t->f[n] = round_to(x->dtype, unary_float(op, x->f[n]));
		else
			t->i[n] = wrap(x->dtype, unary_int(op, x->dtype, x->i[n]));
	}
	t->v = nc_unary(tg->graph, op, x->v);
	return t;
}

static double binary_float(nc_binary_op op, double a, double b)
{
	double r;

	switch (op) {
	case NC_ADD:
		return a + b;
	case NC_SUB:
		return a - b;
	case NC_MUL:
		return a * b;
	case NC_DIV:
		return a / b;
	case NC_MAX:
		return isnan(a) || isnan(b) ? NAN : a > b ? a : b;
	case NC_MIN:
		return isnan(a) || isnan(b) ? NAN : a < b ? a : b;
	case NC_POW:
		return pow(a, b);
	case NC_MOD:
		r = fmod(a, b);
		return r != 0 && (r < 0) != (b < 0) ? r + b : r;
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
	t = value(tg, compare ? NC_BOOL : a->dtype, nd, dims);
	for (int64_t n = 0; n < t->n; n++) {
		int64_t x, y;

		unravel(t, n, idx);
		x = at_broadcast(a, nd, idx);
		y = at_broadcast(b, nd, idx);
		if (!is_float(a->dtype))
			t->i[n] = wrap(t->dtype, binary_int(op, a->dtype, a->i[x], b->i[y]));
		else if (compare)
			t->i[n] = (int64_t)binary_float(op, a->f[x], b->f[y]);
		else
			t->f[n] = round_to(t->dtype, binary_float(op, a->f[x], b->f[y]));
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
	t = value(tg, a->dtype, nd, dims);
	for (int64_t n = 0; n < t->n; n++) {
		const struct tv *from;
		int64_t at;

		unravel(t, n, idx);
		from = c->i[at_broadcast(c, nd, idx)] ? a : b;
		at = at_broadcast(from, nd, idx);
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
	return wrap(dtype, isnan(f) ? 0 : (int64_t)f);
}

struct tv *tg_cast(struct tg *tg, const struct tv *x, nc_dtype dtype)
{
	struct tv *t = value(tg, dtype, x->nd, x->dims);

	for (int64_t n = 0; n < t->n; n++) {
		if (is_float(x->dtype) && is_float(dtype))
			t->f[n] = round_to(dtype, x->f[n]);
		else if (is_float(x->dtype))
			t->i[n] = float_to_int(dtype, x->f[n]);
		else if (is_float(dtype))
			t->f[n] = dtype == NC_FP32 ? (double)(float)x->i[n] :
						     round_to(dtype, (double)x->i[n]);
		else
			t->i[n] = wrap(dtype, x->i[n]);
	}
	t->v = nc_cast(tg->graph, x->v, dtype);
	return t;
}

/* --- views ----------------------------------------------------------------------------------- */

struct tv *tg_reshape(struct tg *tg, const struct tv *x, uint32_t nd, const int64_t *dims)
{
	struct tv *t = value(tg, x->dtype, nd, dims);

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
	t = value(tg, x->dtype, x->nd, dims);
	for (int64_t n = 0; n < t->n; n++) {
		unravel(t, n, idx);
		for (uint32_t i = 0; i < x->nd; i++)
			old[order[i]] = idx[i];
		t->f[n] = x->f[at_broadcast(x, x->nd, old)];
		t->i[n] = x->i[at_broadcast(x, x->nd, old)];
	}
	t->v = nc_permute(tg->graph, x->v, order);
	return t;
}

struct tv *tg_broadcast(struct tg *tg, const struct tv *x, uint32_t nd, const int64_t *dims)
{
	struct tv *t = value(tg, x->dtype, nd, dims);
	int64_t idx[NC_DIMS_MAX];

	for (int64_t n = 0; n < t->n; n++) {
		unravel(t, n, idx);
		t->f[n] = x->f[at_broadcast(x, nd, idx)];
		t->i[n] = x->i[at_broadcast(x, nd, idx)];
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
	t->f[at] = binary_float(ops[op], t->f[at], f);
	t->i[at] = t->dtype == NC_INT64 || t->dtype == NC_BOOL ? wrap(t->dtype, x) :
								 wrap(NC_INT32, x);
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
	t = value(tg, x->dtype, nd, dims);
	seen = block(tg, (size_t)t->n);
	for (int64_t n = 0; n < x->n; n++) {
		int64_t at = 0;

		unravel(x, n, idx);
		for (uint32_t i = 0; i < x->nd; i++)
			if (!(axes >> i & 1))
				at = at * x->dims[i] + idx[i];
		reduce_into(t, op, at, x->f[n], x->i[n], !seen[at]);
		seen[at] = true;
	}
	for (int64_t n = 0; n < t->n; n++) {
		t->f[n] = round_to(t->dtype, t->f[n]);
		t->i[n] = wrap(t->dtype, t->i[n]);
	}
	t->v = nc_reduce(tg->graph, op, x->v, axes, keep);
	return t;
}

struct tv *tg_matmul(struct tg *tg, const struct tv *a, const struct tv *b)
{
	struct tv ba = *a, bb = *b;
	int64_t dims[NC_DIMS_MAX], idx[NC_DIMS_MAX], k = a->dims[a->nd - 1];
	int64_t columns = b->dims[b->nd - 1];
	double *bt = block(tg, (size_t)b->n * sizeof(*bt)); /* each matrix of b transposed */
	uint32_t nd;
	struct tv *t;

	for (int64_t i = 0; i < b->n; i++)
		bt[i / (k * columns) * k * columns + i % columns * k + i / columns % k] = b->f[i];
	ba.dims[a->nd - 1] = 1;
	bb.dims[b->nd - 2] = 1;
	broadcast_dims(&ba, &bb, &nd, dims);
	t = value(tg, a->dtype, nd, dims);
	for (int64_t n = 0; n < t->n; n++) {
		double sum = 0;
		int64_t col, pa, pb;

		unravel(t, n, idx);
		col = idx[nd - 1];
		idx[nd - 1] = 0;
		pa = at_broadcast(a, nd, idx);
		idx[nd - 2] = 0;
		pb = at_broadcast(b, nd, idx) + col * k;
		for (int64_t i = 0; i < k; i++)
			sum += a->f[pa + i] * bt[pb + i];
		t->f[n] = round_to(t->dtype, sum);
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

		unravel(y, n, i);
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
		t->f[n] = round_to(t->dtype, t->f[n]);
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
	t = value(tg, x->dtype, 4, dims);
	each_product(x, w, t, c, x->f, w->f, t->f, 2);
	round_all(t);
	t->v = nc_conv2d(tg->graph, x->v, w->v, c);
	return t;
}

struct tv *tg_conv2d_grad_x(struct tg *tg, const struct tv *dy, const struct tv *w,
			    const struct nc_type *type, const struct nc_conv2d *c)
{
	struct tv *t = value(tg, type->dtype, 4, type->dims);

	each_product(t, w, dy, c, t->f, w->f, dy->f, 0);
	round_all(t);
	t->v = nc_conv2d_grad_x(tg->graph, dy->v, w->v, type, c);
	return t;
}

struct tv *tg_conv2d_grad_w(struct tg *tg, const struct tv *dy, const struct tv *x,
			    const struct nc_type *type, const struct nc_conv2d *c)
{
	struct tv *t = value(tg, type->dtype, 4, type->dims);

	each_product(x, t, dy, c, x->f, t->f, dy->f, 1);
	round_all(t);
	t->v = nc_conv2d_grad_w(tg->graph, dy->v, x->v, type, c);
	return t;
}

/* --- running -------------------------------------------------------------------------------------- */

void tg_output(struct tg *tg, const struct tv *x, const int64_t *strides, uint32_t alias)
{
	struct tslot *slot = &tg->slots[tg->n_slots++];

	slot->want = x;
	slot->alias = alias;
	strides_or_dense(x, strides, slot->strides);
	slot->size = span(x, slot->strides);
	nc_output(tg->graph, x->v, strides, alias);
}

static double ulp(nc_dtype dtype, double x)
{
	int exp;

	frexp(x, &exp);
	switch (dtype) {
	case NC_FP64:
		return ldexp(1, exp - 53);
	case NC_FP32:
		return ldexp(1, exp - 24);
	case NC_BF16:
		return ldexp(1, exp - 8);
	default:
		return fmax(ldexp(1, exp - 11), ldexp(1, -24));
	}
}

static char message[256];

/* NULL, or the first element that is wrong. */
static const char *compare(const struct tg *tg, const struct tslot *slot, const uint8_t *got)
{
	const struct tv *want = slot->want;

	for (int64_t n = 0; n < want->n; n++) {
		const uint8_t *at = got + offset_of(want, slot->strides, n);
		double f = want->f[n], g, bound;

		if (!is_float(want->dtype)) {
			int64_t i = get_int(want->dtype, at);

			if (i == want->i[n])
				continue;
			snprintf(message, sizeof(message), "element %lld: %lld, wanted %lld",
				 (long long)n, (long long)i, (long long)want->i[n]);
			return message;
		}
		g = get_float(want->dtype, at);
		if ((isnan(f) && isnan(g)) || f == g)
			continue;
		bound = tg->tolerance && want->dtype != NC_FP64 ? ulp(want->dtype, f) : 0;
		bound += fabs(f) * tg->tolerance + tg->absolute;
		if (fabs(f - g) <= bound)
			continue;
		snprintf(message, sizeof(message), "element %lld: %.9g, wanted %.9g +- %.3g",
			 (long long)n, g, f, bound);
		return message;
	}
	return NULL;
}

/* What lies between the elements of an output must be as before. */
static const char *check_gaps(struct tg *tg, const struct tslot *slot, const uint8_t *got)
{
	const struct tv *want = slot->want;
	uint8_t *mask = block(tg, slot->size);

	for (int64_t n = 0; n < want->n; n++)
		memset(mask + offset_of(want, slot->strides, n), 1, width(want->dtype));
	for (uint64_t i = 0; i < slot->size; i++)
		if (!mask[i] && got[i] != 0xa5) {
			snprintf(message, sizeof(message),
				 "byte %llu between the elements was written",
				 (unsigned long long)i);
			return message;
		}
	return NULL;
}

static void print_program(const struct tg *tg)
{
	size_t size = nc_program_dump(&tg->program, NULL, 0) + 1;
	size_t graph_size = nc_graph_dump(tg->graph, NULL, 0) + 1;
	char *text = malloc(size + graph_size);

	assert_non_null(text);
	nc_graph_dump(tg->graph, text, graph_size);
	print_error("seed %llu\n%s", (unsigned long long)tg->seed_shown, text);
	nc_program_dump(&tg->program, text, size);
	if (size < 20000)
		print_error("%s", text);
	free(text);
}

void tg_run(struct tg *tg)
{
	uint8_t *results[64] = { NULL };
	uint32_t memory[64];
	char text[NC_ERROR_BYTES];
	const char *error;
	int err;

	for (uint32_t i = 0; i < tg->n_slots; i++) {
		struct tslot *s = &tg->slots[i];

		memory[i] = s->want && s->alias != NC_NO_ALIAS ? s->alias : i;
		if (!s->want)
			continue;
		results[i] = block(tg, s->size);
		memset(results[i], 0xa5, s->size);
	}
	err = nc_compile(tg->graph, test_target(), &tg->program, text);
	if (err)
		fail_msg("nc_compile: %d, %s", err, text);
	error = test_hazards(&tg->program, tg->n_slots, memory, 3000);
	if (!error)
		error = test_device_run(&tg->program, tg->slots, tg->n_slots, results,
					&tg->device_us);
	for (uint32_t i = 0; i < tg->n_slots && !error; i++)
		if (tg->slots[i].want) {
			error = compare(tg, &tg->slots[i], results[i]);
			if (!error && tg->slots[i].alias == NC_NO_ALIAS)
				error = check_gaps(tg, &tg->slots[i], results[i]);
		}
	if (error || getenv("NC_TEST_DUMP"))
		print_program(tg);
	if (error)
		fail_msg("%s", error);
}
