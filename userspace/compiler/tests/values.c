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

const nc_dtype tg_dtypes[N_DTYPES] = { NC_FP32,	 NC_BF16,  NC_FP16,  NC_FP64,  NC_INT8,
				       NC_UINT8, NC_INT16, NC_INT32, NC_INT64, NC_BOOL };

/* --- memory, numbers ------------------------------------------------------------------- */

void *tv_block(struct tg *tg, size_t size)
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

bool tv_is_float(nc_dtype dtype)
{
	return dtype == NC_FP32 || dtype == NC_BF16 || dtype == NC_FP16 || dtype == NC_FP64;
}

uint32_t tv_width(nc_dtype dtype)
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
double tv_round(nc_dtype dtype, double x)
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

int64_t tv_wrap(nc_dtype dtype, int64_t x)
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
		memcpy(at, &i, tv_width(dtype));
		break;
	}
}

double tv_get_float(nc_dtype dtype, const uint8_t *at)
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

int64_t tv_get_int(nc_dtype dtype, const uint8_t *at)
{
	int64_t x = 0;

	memcpy(&x, at, tv_width(dtype));
	return tv_wrap(dtype, x);
}

/* --- values -------------------------------------------------------------------------------- */

struct tv *tv_new(struct tg *tg, nc_dtype dtype, uint32_t nd, const int64_t *dims)
{
	struct tv *t = tv_block(tg, sizeof(*t));

	t->dtype = dtype;
	t->nd = nd;
	t->n = 1;
	for (uint32_t i = 0; i < nd; i++) {
		t->dims[i] = dims[i];
		t->n *= dims[i];
	}
	t->f = tv_block(tg, (size_t)t->n * sizeof(*t->f));
	t->i = tv_block(tg, (size_t)t->n * sizeof(*t->i));
	return t;
}

/* Index in each dim of element n. */
void tv_index(const struct tv *t, int64_t n, int64_t *idx)
{
	for (uint32_t i = t->nd; i-- > 0;) {
		idx[i] = n % t->dims[i];
		n /= t->dims[i];
	}
}

/* Element of t at the right-aligned index idx of nd dims; dims of 1 repeat. */
int64_t tv_at(const struct tv *t, uint32_t nd, const int64_t *idx)
{
	int64_t n = 0;

	for (uint32_t i = 0; i < t->nd; i++)
		n = n * t->dims[i] + (t->dims[i] == 1 ? 0 : idx[nd - t->nd + i]);
	return n;
}

void tv_strides(const struct tv *t, const int64_t *strides, int64_t *out)
{
	int64_t run = 1;

	for (uint32_t i = t->nd; i-- > 0;) {
		out[i] = strides ? strides[i] : run;
		run *= t->dims[i];
	}
}

uint64_t tv_span(const struct tv *t, const int64_t *strides)
{
	int64_t last = 0;

	for (uint32_t i = 0; i < t->nd; i++)
		last += (t->dims[i] - 1) * strides[i];
	return (uint64_t)(last + 1) * tv_width(t->dtype);
}

int64_t tv_offset(const struct tv *t, const int64_t *strides, int64_t n)
{
	int64_t idx[NC_DIMS_MAX], at = 0;

	tv_index(t, n, idx);
	for (uint32_t i = 0; i < t->nd; i++)
		at += idx[i] * strides[i];
	return at * tv_width(t->dtype);
}

struct nc_type tv_type(const struct tv *t)
{
	struct nc_type type = { .dtype = t->dtype, .ndim = t->nd };

	memcpy(type.dims, t->dims, sizeof(type.dims));
	return type;
}

static struct tv *input(struct tg *tg, nc_dtype dtype, uint32_t nd, const int64_t *dims,
			const int64_t *strides, bool positive)
{
	struct tv *t = tv_new(tg, dtype, nd, dims);
	struct tslot *slot = &tg->slots[tg->n_slots++];
	struct nc_type type = tv_type(t);
	uint32_t w = tv_width(dtype);

	tv_strides(t, strides, slot->strides);
	slot->size = tv_span(t, slot->strides);
	slot->bytes = tv_block(tg, slot->size);
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
		put(dtype, slot->bytes + i, f, tv_wrap(dtype, n));
	}
	for (int64_t i = 0; i < t->n; i++) {
		const uint8_t *p = slot->bytes + tv_offset(t, slot->strides, i);

		if (tv_is_float(dtype))
			t->f[i] = tv_get_float(dtype, p);
		else
			t->i[i] = tv_get_int(dtype, p);
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

void tg_set_input(struct tg *tg, struct tv *x, int64_t n, double f)
{
	struct tslot *slot = NULL;
	uint8_t *at;
	uint32_t bits;
	_Float16 h;
	float s;

	for (uint32_t i = 0; i < tg->n_slots; i++)
		if (tg->slots[i].value == x->v)
			slot = &tg->slots[i];
	assert_non_null(slot);
	tv_set(x, n, f);
	at = slot->bytes + tv_offset(x, slot->strides, n);
	s = (float)x->f[n];
	h = (_Float16)s;
	memcpy(&bits, &s, 4);
	if (x->dtype == NC_FP32)
		memcpy(at, &s, 4);
	else if (x->dtype == NC_FP16)
		memcpy(at, &h, 2);
	else
		memcpy(at, (uint8_t *)&bits + 2, 2);
}

struct tv *tg_positive(struct tg *tg, nc_dtype dtype, uint32_t nd, const int64_t *dims)
{
	return input(tg, dtype, nd, dims, NULL, true);
}

void tv_set(struct tv *t, int64_t n, double f)
{
	if (tv_is_float(t->dtype))
		t->f[n] = tv_round(t->dtype, f);
	else
		t->i[n] = tv_wrap(t->dtype, (int64_t)f);
}

struct tv *tg_scalar(struct tg *tg, nc_dtype dtype, double f)
{
	struct tv *t = tv_new(tg, dtype, 0, NULL);
	struct tslot *slot = &tg->slots[tg->n_slots++];

	tv_set(t, 0, f);
	slot->size = 8;
	slot->is_scalar = true;
	slot->bytes = tv_block(tg, 8);
	slot->alias = NC_NO_ALIAS;
	put(dtype, slot->bytes, t->f[0], t->i[0]);
	t->v = nc_scalar(tg->graph, dtype);
	return t;
}

struct tv *tg_const(struct tg *tg, nc_dtype dtype, double f)
{
	struct tv *t = tv_new(tg, dtype, 0, NULL);

	tv_set(t, 0, f);
	t->v = tv_is_float(dtype) ? nc_const_float(tg->graph, dtype, t->f[0]) :
				    nc_const_int(tg->graph, dtype, t->i[0]);
	return t;
}

struct tv *tg_iota(struct tg *tg, nc_dtype dtype, uint32_t nd, const int64_t *dims, uint32_t dim)
{
	struct tv *t = tv_new(tg, dtype, nd, dims);
	struct nc_type type = tv_type(t);
	int64_t idx[NC_DIMS_MAX];

	for (int64_t n = 0; n < t->n; n++) {
		tv_index(t, n, idx);
		tv_set(t, n, (double)idx[dim]);
	}
	t->v = nc_iota(tg->graph, &type, dim);
	return t;
}
