/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device's checking mode against hazard.c, which share no code: a program of the compiler runs
 * without a finding, and with any one of its waits taken out both agree on whether that is a race.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"
#include "neuron_crc32c.h"
#include "neuron_isa.h"
#include "neuron_program.h"
#include "neuron_queue.h"

#define WAITS_MAX   4096 /* that are looked for */
#define MUTANTS_MAX 60 /* of a program */

static void compile(struct tg *tg, uint32_t *memory)
{
	char text[NC_ERROR_BYTES];

	for (uint32_t i = 0; i < tg->n_slots; i++)
		memory[i] = tg->slots[i].want && tg->slots[i].alias != NC_NO_ALIAS ?
				    tg->slots[i].alias :
				    i;
	if (nc_compile(tg->graph, test_target(), &tg->program, text))
		fail_msg("nc_compile: %s", text);
}

static const char *run(struct tg *tg)
{
	uint8_t *results[64] = { NULL };
	const char *error;
	double us;

	for (uint32_t i = 0; i < tg->n_slots; i++)
		if (tg->slots[i].want)
			results[i] = calloc(1, tg->slots[i].size);
	error = test_device_run(&tg->program, tg->slots, tg->n_slots, results, &us);
	for (uint32_t i = 0; i < tg->n_slots; i++)
		free(results[i]);
	return error;
}

static void seal(struct nc_program *p)
{
	struct nprog_header *h = p->image;

	h->crc32c = 0;
	h->crc32c = hw_crc32c(0, p->image, p->bytes);
}

struct place {
	struct isa_inst *inst;
	unsigned int wait, engine;
	uint32_t pc;
};

/* All waits of a program but those of HALT: the end of a launch waits for everything anyway. */
static uint32_t find_waits(const struct nc_program *p, struct place *place)
{
	struct nprog_header *h = p->image;
	uint32_t n = 0;

	for (unsigned int e = 0; e < EXI_ENGINES; e++) {
		struct isa_inst *inst = (struct isa_inst *)((char *)h + h->stream[e].offset);

		for (uint32_t pc = 0; pc < h->stream[e].count; pc++)
			for (unsigned int w = 0; w < ISA_WAITS; w++)
				if (inst[pc].wait[w].kind && inst[pc].opcode != ISA_HALT &&
				    n < WAITS_MAX)
					place[n++] = (struct place){ &inst[pc], w, e, pc };
	}
	return n;
}

/* Runs the program without one wait; whether it is a race now. */
static bool mutate(struct tg *tg, const uint32_t *memory, const struct place *at)
{
	const struct isa_inst whole = *at->inst;
	const char *wanted, *found;

	memset(&at->inst->wait[at->wait], 0, sizeof(whole.wait[0]));
	seal(&tg->program);
	wanted = test_hazards(&tg->program, tg->n_slots, memory, UINT32_MAX);
	found = run(tg);
	/* The device ends no launch before its transfers, so hazard.c is stricter there. */
	if (wanted && strstr(wanted, "ends before"))
		wanted = found;
	if (!wanted != !found || (found && !strstr(found, "race")))
		fail_msg("engine %u, instruction %u without its wait %u: hazard.c says '%s', the "
			 "device '%s'",
			 at->engine, at->pc, at->wait, wanted ? wanted : "nothing",
			 found ? found : "nothing");
	*at->inst = whole;
	seal(&tg->program);
	return found;
}

static void check(struct tg *tg)
{
	static struct place place[WAITS_MAX];
	uint32_t memory[64], waits, mutants = 0, races = 0;
	const char *error;

	compile(tg, memory);
	error = run(tg);
	if (error)
		fail_msg("%s", error);
	waits = find_waits(&tg->program, place);
	for (uint32_t i = 0; i < waits; i += waits / MUTANTS_MAX + 1, mutants++)
		races += mutate(tg, memory, &place[i]);
	print_message("%u of %u waits taken out, %u races\n", mutants, waits, races);
	assert_true(mutants > 0 && races > mutants / 2);
	tg_free(tg);
}

static void elementwise(void **state)
{
	struct tg *tg = tg_new("elementwise", 1);
	struct tv *a = tg_input(tg, NC_FP32, SHAPE(300, 700), NULL);
	struct tv *b = tg_input(tg, NC_BF16, SHAPE(300, 700), NULL);

	(void)state;
	a = tg_binary(tg, NC_ADD, a, tg_cast(tg, b, NC_FP32));
	a = tg_unary(tg, NC_SQUARE, a);
	tg_output(tg, a, NULL, 0);
	tg_output(tg, tg_reduce(tg, NC_REDUCE_SUM, a, 2, false), NULL, NC_NO_ALIAS);
	check(tg);
}

static void matmul(void **state)
{
	struct tg *tg = tg_new("matmul", 2);
	struct tv *a = tg_input(tg, NC_FP32, SHAPE(260, 300), NULL);
	struct tv *b = tg_input(tg, NC_FP32, SHAPE(300, 600), NULL);

	(void)state;
	tg_output(tg, tg_unary(tg, NC_RELU, tg_matmul(tg, a, b)), NULL, NC_NO_ALIAS);
	check(tg);
}

static void convolution(void **state)
{
	struct tg *tg = tg_new("conv", 3);
	struct tv *x = tg_input(tg, NC_FP32, SHAPE(4, 20, 12, 12), NULL);
	struct tv *w = tg_input(tg, NC_FP32, SHAPE(30, 20, 3, 3), NULL);
	const struct nc_conv2d conv = {
		.stride = { 1, 1 }, .padding = { 1, 1 }, .dilation = { 1, 1 }, .groups = 1
	};

	(void)state;
	tg_output(tg, tg_conv2d(tg, x, w, &conv), NULL, NC_NO_ALIAS);
	check(tg);
}

static void attention(void **state)
{
	struct tg *tg = tg_new("attention", 4);
	const int64_t dims[3] = { 5, 300, 64 };
	struct tv *q = tg_input(tg, NC_BF16, 3, dims, NULL),
		  *k = tg_input(tg, NC_BF16, 3, dims, NULL);
	struct tv *v = tg_input(tg, NC_BF16, 3, dims, NULL);
	struct tv y = { .dtype = NC_BF16, .nd = 3, .dims = { 5, 300, 64 }, .n = 5 * 300 * 64 };
	struct tv lse = { .dtype = NC_FP32, .nd = 2, .dims = { 5, 300 }, .n = 5 * 300 };
	struct nc_attention how = { .scale = 0.125f, .causal = true, .dropout = 0.1 };
	uint32_t key[NC_KEY_WORDS];

	(void)state;
	random_key(tg, 1, 2, key, how.key);
	y.v = nc_attention(tg->graph, q->v, k->v, v->v, 0, &how);
	lse.v = nc_attention_lse(tg->graph, y.v);
	tg_output(tg, &y, NULL, NC_NO_ALIAS);
	tg_output(tg, &lse, NULL, NC_NO_ALIAS);
	check(tg);
}

/* Two rows in pieces, and many rows tile after tile. */
static void scan(void **state)
{
	struct tg *tg = tg_new("scan", 4);
	struct tv *x = tg_input(tg, NC_FP32, SHAPE(2, 600000), NULL);
	struct tv *y = tg_input(tg, NC_INT32, SHAPE(130, 9000), NULL);

	(void)state;
	tg_output(tg, tg_scan(tg, NC_REDUCE_SUM, x, 1), NULL, NC_NO_ALIAS);
	tg_output(tg, tg_scan(tg, NC_REDUCE_SUM, y, 1), NULL, NC_NO_ALIAS);
	check(tg);
}

/* Tile after tile, with the sum over its places. */
static void recurrence(void **state)
{
	struct tg *tg = tg_new("recurrence", 7);
	struct tv *a = tg_input(tg, NC_FP32, SHAPE(70, 3, 3000), NULL);

	(void)state;
	a = tg_recurrence(tg, tg_unary(tg, NC_SIN, a), a, 2);
	tg_output(tg, tg_reduce(tg, NC_REDUCE_SUM, a, 2, false), NULL, NC_NO_ALIAS);
	check(tg);
}

/* Sums of rows whose indices repeat, in two transfers; computed indices. */
static void rows(void **state)
{
	struct tg *tg = tg_new("rows", 6);
	struct tv *x = tg_input(tg, NC_FP32, SHAPE(40, 16), NULL);
	struct tv *index = tg_input(tg, NC_INT64, SHAPE(300), NULL);

	(void)state;
	index = tg_binary(tg, NC_MOD, index, tg_const(tg, NC_INT64, 40));
	x = tg_put(tg, NC_PUT_ADD, x, 0, index, tg_take(tg, x, 0, index));
	tg_output(tg, x, NULL, NC_NO_ALIAS);
	tg_output(tg, tg_unary(tg, NC_NEG, x), NULL, NC_NO_ALIAS);
	check(tg);
}

static void attention_grad(void **state)
{
	struct tg *tg = tg_new("attention_grad", 5);
	const int64_t dims[3] = { 2, 300, 64 };
	struct nc_attention_operands of = { 0 };
	struct tv g[3] = { { .dtype = NC_BF16, .nd = 3, .dims = { 2, 300, 64 }, .n = 38400 } };
	struct nc_attention how = { .scale = 0.125f, .causal = true, .dropout = 0.1 };
	uint32_t key[NC_KEY_WORDS];

	(void)state;
	of.q = tg_input(tg, NC_BF16, 3, dims, NULL)->v;
	of.k = tg_input(tg, NC_BF16, 3, dims, NULL)->v;
	of.v = tg_input(tg, NC_BF16, 3, dims, NULL)->v;
	of.y = tg_input(tg, NC_BF16, 3, dims, NULL)->v;
	of.dy = tg_input(tg, NC_BF16, 3, dims, NULL)->v;
	of.lse = tg_input(tg, NC_FP32, 2, dims, NULL)->v;
	g[1] = g[2] = g[0];
	random_key(tg, 1, 2, key, how.key);
	g[0].v = nc_attention_grad(tg->graph, &of, &how, &g[1].v, &g[2].v);
	for (int i = 0; i < 3; i++)
		tg_output(tg, &g[i], NULL, NC_NO_ALIAS);
	check(tg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(elementwise),	  cmocka_unit_test(matmul),
		cmocka_unit_test(convolution),	  cmocka_unit_test(attention),
		cmocka_unit_test(scan),		  cmocka_unit_test(rows),
		cmocka_unit_test(attention_grad), cmocka_unit_test(recurrence),
	};

	setenv("NEURON_CHECK", "all", 1);
	setenv("NEURON_RT_LOG_LEVEL", "ERROR", 1);
	return cmocka_run_group_tests_name("compiler_check", tests, NULL, NULL);
}
