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

/* --- running -------------------------------------------------------------------------------------- */

void tg_output(struct tg *tg, const struct tv *x, const int64_t *strides, uint32_t alias)
{
	struct tslot *slot = &tg->slots[tg->n_slots++];

	slot->want = x;
	slot->alias = alias;
	tv_strides(x, strides, slot->strides);
	slot->size = tv_span(x, slot->strides);
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
		const uint8_t *at = got + tv_offset(want, slot->strides, n);
		double f = want->f[n], g, bound;

		if (!tv_is_float(want->dtype)) {
			int64_t i = tv_get_int(want->dtype, at);

			if (i == want->i[n])
				continue;
			snprintf(message, sizeof(message), "element %lld: %lld, wanted %lld",
				 (long long)n, (long long)i, (long long)want->i[n]);
			return message;
		}
		g = tv_get_float(want->dtype, at);
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
	uint8_t *mask = tv_block(tg, slot->size);

	for (int64_t n = 0; n < want->n; n++)
		memset(mask + tv_offset(want, slot->strides, n), 1, tv_width(want->dtype));
	for (uint64_t i = 0; i < slot->size; i++)
		if (!mask[i] && got[i] != 0xa5) {
			snprintf(message, sizeof(message),
				 "byte %llu between the elements was written",
				 (unsigned long long)i);
			return message;
		}
	return NULL;
}

static void print_program(const struct tg *tg, const char *listing)
{
	size_t size = nc_graph_dump(tg->graph, NULL, 0) + 1;
	char *text = malloc(size);

	assert_non_null(text);
	nc_graph_dump(tg->graph, text, size);
	print_error("seed %llu\n%s", (unsigned long long)tg->seed_shown, text);
	free(text);
	if (strlen(listing) < 20000)
		print_error("%s", listing);
}

void tg_run(struct tg *tg)
{
	uint8_t *results[64] = { NULL };
	uint32_t memory[64];
	char text[NC_ERROR_BYTES];
	const char *error;
	char *listing;
	int err;

	for (uint32_t i = 0; i < tg->n_slots; i++) {
		struct tslot *s = &tg->slots[i];

		memory[i] = s->want && s->alias != NC_NO_ALIAS ? s->alias : i;
		if (!s->want)
			continue;
		results[i] = tv_block(tg, s->size);
		memset(results[i], 0xa5, s->size);
	}
	err = nc_compile(tg->graph, test_target(), &tg->program, text);
	if (err)
		fail_msg("nc_compile: %d, %s", err, text);
	listing = test_listing(&tg->program);
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
		print_program(tg, listing);
	free(listing);
	if (error)
		fail_msg("%s", error);
}

/* --- graphs without values ---------------------------------------------------------------------- */

nc_value test_input(nc_graph *graph, nc_dtype dtype, uint32_t nd, const int64_t *dims)
{
	struct nc_type type = { .dtype = dtype, .ndim = nd };

	memcpy(type.dims, dims, nd * sizeof(*dims));
	return nc_input(graph, &type, NULL);
}

void test_refused(nc_graph *graph, int err, const char *text)
{
	char error[NC_ERROR_BYTES];
	struct nc_program program;

	assert_int_equal(nc_compile(graph, test_target(), &program, error), err);
	assert_null(program.image);
	if (!strstr(error, text))
		fail_msg("'%s' does not say '%s'", error, text);
	nc_graph_destroy(graph);
}
