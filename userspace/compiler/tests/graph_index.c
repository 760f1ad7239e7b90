/* SPDX-License-Identifier: Apache-2.0 */
/* The reference of operations by index; see graph.h. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "values.h"

/* Element of x that element n of its rows by index is. */
static int64_t row_element(const struct tv *x, uint32_t dim, const struct tv *index, int64_t n)
{
	int64_t inner = 1;

	for (uint32_t i = dim + 1; i < x->nd; i++)
		inner *= x->dims[i];
	return (n / (inner * index->n) * x->dims[dim] + index->i[n / inner % index->n]) * inner +
	       n % inner;
}

struct tv *tg_take(struct tg *tg, const struct tv *x, uint32_t dim, const struct tv *index)
{
	int64_t dims[2 * NC_DIMS_MAX];
	struct tv *t;

	memcpy(dims, x->dims, dim * sizeof(*dims));
	memcpy(dims + dim, index->dims, index->nd * sizeof(*dims));
	memcpy(dims + dim + index->nd, x->dims + dim + 1, (x->nd - 1 - dim) * sizeof(*dims));
	t = tv_new(tg, x->dtype, x->nd - 1 + index->nd, dims);
	for (int64_t n = 0; n < t->n; n++) {
		t->f[n] = x->f[row_element(x, dim, index, n)];
		t->i[n] = x->i[row_element(x, dim, index, n)];
	}
	t->v = nc_take(tg->graph, x->v, dim, index->v);
	return t;
}

struct tv *tg_put(struct tg *tg, nc_put_op op, const struct tv *x, uint32_t dim,
		  const struct tv *index, const struct tv *rows)
{
	struct tv *t = tv_new(tg, x->dtype, x->nd, x->dims);

	memcpy(t->f, x->f, (size_t)t->n * sizeof(*t->f));
	memcpy(t->i, x->i, (size_t)t->n * sizeof(*t->i));
	for (int64_t n = 0; n < rows->n; n++) {
		int64_t at = row_element(x, dim, index, n);
		bool add = op == NC_PUT_ADD;

		t->f[at] = tv_round(x->dtype, (add ? t->f[at] : 0) + rows->f[n]);
		t->i[at] = tv_wrap(x->dtype, (add ? t->i[at] : 0) + rows->i[n]);
	}
	t->v = nc_put(tg->graph, op, x->v, dim, index->v, rows->v);
	return t;
}
