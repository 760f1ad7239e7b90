/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph.h"
#include "neuron_isa.h"
#include "neuron_program.h"
#include "neuron_queue.h"

static const nc_dtype sum_dtypes[] = { NC_FP32, NC_BF16, NC_FP16, NC_INT32 };

/* Random indices below the limit, computed on the device. */
static struct tv *index_below(struct tg *tg, nc_dtype dtype, uint32_t nd, const int64_t *dims,
			      int64_t limit)
{
	return tg_binary(tg, NC_MOD, tg_input(tg, dtype, nd, dims, NULL),
			 tg_const(tg, dtype, (double)limit));
}

/* Shape of what tg_take() gives, with one index dim. */
static void rows_dims(const struct tv *x, uint32_t dim, int64_t n, int64_t *dims)
{
	memcpy(dims, x->dims, sizeof(x->dims));
	dims[dim] = n;
}

/* All results are exact but sums in fp32, which are rounded in the same order. */
static void one(nc_dtype dtype, uint32_t nd, const int64_t *dims, uint32_t dim, int64_t n,
		const int64_t *strides)
{
	struct tg *tg = tg_new("rows", (uint64_t)(n * 8 + dim));
	struct tv *x = tg_input(tg, dtype, nd, dims, strides), *rows;
	struct tv *index = index_below(tg, n & 1 ? NC_INT64 : NC_INT32, SHAPE(n), dims[dim]);
	int64_t shape[NC_DIMS_MAX];

	tg->tolerance = 0;
	rows_dims(x, dim, n, shape);
	rows = tg_input(tg, dtype, nd, shape, NULL);
	tg_output(tg, tg_take(tg, x, dim, index), NULL, NC_NO_ALIAS);
	tg_output(tg, tg_put(tg, NC_PUT_COPY, x, dim, index, rows), NULL, NC_NO_ALIAS);
	for (unsigned int i = 0; i < 4; i++)
		if (sum_dtypes[i] == dtype)
			tg_output(tg, tg_put(tg, NC_PUT_ADD, x, dim, index, rows), NULL,
				  NC_NO_ALIAS);
	tg_run(tg);
	tg_free(tg);
}

static void every_dtype(void **state)
{
	(void)state;
	for (unsigned int d = 0; d < N_DTYPES; d++)
		for (uint32_t dim = 0; dim < 3; dim++)
			one(tg_dtypes[d], SHAPE(5, 6, 7), dim, 9, NULL);
}

/* One row, one index; more indices than partitions, than a transfer takes; strided rows. */
static void shapes(void **state)
{
	(void)state;
	for (unsigned int d = 0; d < 4; d++) {
		one(sum_dtypes[d], SHAPE(1), 0, 1, NULL);
		one(sum_dtypes[d], SHAPE(1, 7), 0, 3, NULL);
		one(sum_dtypes[d], SHAPE(300, 1), 0, 1, NULL);
		one(sum_dtypes[d], SHAPE(1000), 0, 129, NULL);
		one(sum_dtypes[d], SHAPE(50, 64), 0, 1000, NULL);
		one(sum_dtypes[d], SHAPE(50, 64), 1, 1001, NULL);
		one(sum_dtypes[d], SHAPE(3, 200, 33), 1, 258, DIMS(1, 99, 3));
		one(sum_dtypes[d], SHAPE(2, 3, 4, 5, 6), 2, 7, DIMS(2000, 600, 150, 24, 3));
	}
	/* Indices beyond one transfer. */
	one(NC_FP32, SHAPE(100), 0, 128 * 2048 + 300, NULL);
	one(NC_FP32, SHAPE(3, 20001), 0, 5, NULL);
}

/* An index of several dims and of none, rows that are computed, results that are read again. */
static void operands(void **state)
{
	struct tg *tg = tg_new("operands", 1);
	struct tv *x = tg_input(tg, NC_FP32, SHAPE(40, 24), NULL), *y, *two;
	struct tv *index = index_below(tg, NC_INT64, SHAPE(3, 5), 40), *rows;

	(void)state;
	two = tg_const(tg, NC_INT32, 2);
	tg->tolerance = 0;
	y = tg_take(tg, tg_unary(tg, NC_NEG, x), 0, index);
	tg_output(tg, y, NULL, NC_NO_ALIAS);
	tg_output(tg, tg_unary(tg, NC_ABS, y), NULL, NC_NO_ALIAS);
	tg_output(tg, tg_take(tg, x, 1, two), NULL, NC_NO_ALIAS);
	tg_output(tg, tg_permute(tg, y, (const uint32_t[]){ 2, 0, 1 }), DIMS(40, 7, 1),
		  NC_NO_ALIAS);
	rows = tg_take(tg, tg_permute(tg, x, (const uint32_t[]){ 1, 0 }), 1, index);
	tg_output(tg, rows, NULL, NC_NO_ALIAS);
	y = tg_broadcast(tg, tg_const(tg, NC_FP32, 0), SHAPE(24, 60));
	y = tg_put(tg, NC_PUT_ADD, y, 1, index, rows);
	tg_output(tg, y, NULL, NC_NO_ALIAS);
	tg_output(tg, tg_unary(tg, NC_SQUARE, y), NULL, NC_NO_ALIAS);
	tg_output(tg, tg_take(tg, tg_broadcast(tg, tg_const(tg, NC_BF16, 3), SHAPE(50)), 0, index),
		  NULL, NC_NO_ALIAS);
	tg_run(tg);
	tg_free(tg);
}

/* Transfers from slot to slot that are not by index: copies. */
static uint32_t copies(const struct nc_program *p)
{
	const struct nprog_header *h = p->image;
	uint32_t n = 0;

	for (unsigned int e = 0; e < EXI_ENGINES; e++) {
		const struct isa_inst *inst =
			(const struct isa_inst *)((const char *)p->image + h->stream[e].offset);

		for (uint32_t pc = 0; pc < h->stream[e].count; pc++)
			n += inst[pc].opcode == ISA_DMA &&
			     inst[pc].dma.dst.space == ISA_SPACE_SLOT &&
			     inst[pc].dma.src.space == ISA_SPACE_SLOT;
	}
	return n;
}

/* Over the operand's memory, where nothing but the rows is written; unless it is read again. */
static void in_place(void **state)
{
	static const uint32_t wanted[] = { 0, 0, 2, 2 };

	(void)state;
	for (int variant = 0; variant < 4; variant++) {
		struct tg *tg = tg_new("in_place", 1);
		struct tv *x = tg_input(tg, NC_FP32, SHAPE(1000, 8), NULL), *y;
		struct tv *index =
			index_below(tg, NC_INT32, SHAPE(variant == 2 ? 1000 : 100), 1000);
		struct tv *rows = x;

		tg->tolerance = 0;
		if (variant == 1) /* done with reading when the rows are written */
			rows = tg_take(tg, x, 0, tg_iota(tg, NC_INT32, SHAPE(100), 0));
		else if (variant != 2)
			rows = tg_input(tg, NC_FP32, SHAPE(100, 8), NULL);
		y = tg_put(tg, NC_PUT_ADD, x, 0, index, rows);
		tg_output(tg, y, NULL, 0);
		if (variant == 3)
			tg_output(tg, tg_binary(tg, NC_SUB, y, x), NULL, NC_NO_ALIAS);
		tg_run(tg);
		if (copies(&tg->program) != wanted[variant])
			fail_msg("variant %d: %u copies, wanted %u", variant, copies(&tg->program),
				 wanted[variant]);
		tg_free(tg);
	}
}

static void mistakes(void **state)
{
	const struct nc_type type = { .dtype = NC_FP32, .ndim = 2, .dims = { 3, 4 } };
	const struct nc_type index = { .dtype = NC_INT64, .ndim = 1, .dims = { 5 } };
	const struct nc_type wide = { .dtype = NC_INT64, .ndim = 2, .dims = { 3, 4 } };
	nc_graph *g = nc_graph_create("mistakes");

	(void)state;
	nc_take(g, nc_input(g, &type, NULL), 2, nc_input(g, &index, NULL));
	test_refused(g, -EINVAL, "take: dim 2 of fp32[3,4], which has 2 dims");
	g = nc_graph_create("mistakes");
	nc_take(g, nc_input(g, &type, NULL), 0, nc_input(g, &type, NULL));
	test_refused(g, -EOPNOTSUPP,
		     "take: index fp32[3,4] of fp32[3,4]; int32 and int64 are possible");
	g = nc_graph_create("mistakes");
	nc_put(g, NC_PUT_COPY, nc_input(g, &type, NULL), 1, nc_input(g, &index, NULL),
	       nc_input(g, &type, NULL));
	test_refused(g, -EINVAL, "put: rows fp32[3,4] into fp32[3,4]; wanted is fp32[3,5]");
	g = nc_graph_create("mistakes");
	nc_put(g, NC_PUT_ADD, nc_input(g, &wide, NULL), 0,
	       nc_reshape(g, nc_const_int(g, NC_INT64, 1), 1, (const int64_t[]){ 1 }),
	       nc_reshape(g, nc_input(g, &wide, NULL), 2, wide.dims));
	test_refused(g, -EINVAL, "put_add: rows int64[3,4] into int64[3,4]; wanted is int64[1,4]");
	g = nc_graph_create("mistakes");
	nc_put(g, NC_PUT_ADD, nc_input(g, &wide, NULL), 0, nc_const_int(g, NC_INT64, 1),
	       nc_input(g, &(struct nc_type){ .dtype = NC_INT64, .ndim = 1, .dims = { 4 } }, NULL));
	test_refused(g, -EOPNOTSUPP,
		     "put_add: int64[3,4]; transfers add fp32, bf16, fp16 and int32");
}

/* An index out of bounds ends the launch; the error has it and the limit. */
static void bounds(void **state)
{
	static const struct {
		nc_dtype dtype;
		double index;
		const char *text;
	} cases[] = {
		{ NC_INT32, 40, "40" },
		{ NC_INT32, -1, "-1" },
		{ NC_INT64, 4294967299.0, "2147483647" },
	};

	(void)state;
	for (unsigned int i = 0; i < 3; i++) {
		struct tg *tg = tg_new("bounds", 1);
		struct tv *x = tg_input(tg, NC_FP32, SHAPE(40, 24), NULL);
		struct tv *index = tg_input(tg, cases[i].dtype, SHAPE(1), NULL);
		const int64_t bad = (int64_t)cases[i].index;
		uint8_t result[24 * 4], *results[64] = { [2] = result };
		char error[NC_ERROR_BYTES];
		const char *text;
		double us;

		nc_output(tg->graph, nc_take(tg->graph, x->v, 0, index->v), NULL, NC_NO_ALIAS);
		memcpy(tg->slots[1].bytes, &bad, tg->slots[1].size);
		tg->slots[2] = (struct tslot){ .size = sizeof(result), .alias = NC_NO_ALIAS };
		assert_int_equal(nc_compile(tg->graph, test_target(), &tg->program, error), 0);
		text = test_device_run(&tg->program, tg->slots, 3, results, &us);
		if (!text || !strstr(text, cases[i].text) || !strstr(text, "40"))
			fail_msg("index %lld: '%s'", (long long)bad, text ? text : "no error");
		tg_free(tg);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_dtype), cmocka_unit_test(shapes),
		cmocka_unit_test(operands),    cmocka_unit_test(in_place),
		cmocka_unit_test(mistakes),    cmocka_unit_test(bounds),
	};

	return cmocka_run_group_tests_name("compiler_rows", tests, NULL, NULL);
}
