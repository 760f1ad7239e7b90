/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "graph.h"

/* Numbers below 1 in size, so that what came long before fades: x / (1 + |x|). */
static struct tv *below_one(struct tg *tg, const struct tv *x)
{
	struct tv *one = tg_const(tg, NC_FP32, 1);

	return tg_binary(tg, NC_DIV, x, tg_binary(tg, NC_ADD, tg_unary(tg, NC_ABS, x), one));
}

/* Alone, its operands from memory; the same bits as on the host are wanted. */
static void one(uint32_t nd, const int64_t *dims, uint32_t dim, const int64_t *strides)
{
	struct tg *tg = tg_new("recurrence", (uint64_t)dims[dim] * 8 + dim);
	struct tv *a = tg_positive(tg, NC_FP32, nd, dims);
	struct tv *b = tg_input(tg, NC_FP32, nd, dims, strides);

	for (int64_t i = 0; i < a->n; i++)
		tg_set_input(tg, a, i, (double)tg_range(tg, -99, 99) / 128);
	tg_output(tg, tg_recurrence(tg, a, b, dim), NULL, NC_NO_ALIAS);
	tg_run(tg);
	tg_free(tg);
}

/* Sizes that don't divide; one step; more than the partitions and than a tile; dims that lie crosswise. */
static void shapes(void **state)
{
	(void)state;
	one(SHAPE(1), 0, NULL);
	one(SHAPE(3, 1), 1, NULL);
	one(SHAPE(2), 0, NULL);
	one(SHAPE(1025), 0, NULL);
	one(SHAPE(20011), 0, NULL);
	one(SHAPE(7, 5), 0, NULL);
	one(SHAPE(7, 5), 1, NULL);
	one(SHAPE(259, 131), 1, NULL);
	one(SHAPE(131, 259), 0, NULL);
	one(SHAPE(4100, 33), 0, NULL);
	one(SHAPE(3, 5003), 1, NULL);
	one(SHAPE(5, 100, 7, 3), 1, NULL);
	one(SHAPE(3, 2, 130, 150), 2, NULL);
	one(SHAPE(130, 3, 2050), 2, NULL);
	one(SHAPE(200, 150), 0, DIMS(1, 200));
	one(SHAPE(200, 150), 1, DIMS(1, 200));
	one(SHAPE(40, 60), 1, DIMS(0, 2));
}

/*
 * A selective state space: h = recurrence(exp(delta a), delta u b), y = sum of h c over states; states and channels
 * in either order, and seq anywhere. Several channel blocks, several tiles of the sequence.
 */
static void state_space(int64_t channels, int64_t states, int64_t seq)
{
	struct tg *tg = tg_new("state_space", (uint64_t)(channels * 31 + seq));
	struct tv *delta = tg_positive(tg, NC_FP32, SHAPE(channels, 1, seq));
	struct tv *u = tg_input(tg, NC_FP32, SHAPE(channels, 1, seq), NULL);
	struct tv *a = tg_positive(tg, NC_FP32, SHAPE(channels, states, 1));
	struct tv *b = tg_input(tg, NC_FP32, SHAPE(1, states, seq), NULL);
	struct tv *c = tg_input(tg, NC_FP32, SHAPE(1, states, seq), NULL), *h, *decay;

	tg->tolerance = 2e-5;
	tg->absolute = 2e-3;
	decay = tg_unary(tg, NC_EXP, tg_unary(tg, NC_NEG, tg_binary(tg, NC_MUL, delta, a)));
	h = tg_recurrence(tg, decay, tg_binary(tg, NC_MUL, tg_binary(tg, NC_MUL, delta, u), b), 2);
	h = tg_reduce(tg, NC_REDUCE_SUM, tg_binary(tg, NC_MUL, h, c), 2, false);
	tg_output(tg, tg_binary(tg, NC_ADD, h, tg_reshape(tg, u, SHAPE(channels, seq))), NULL,
		  NC_NO_ALIAS);
	tg_run(tg);
	tg_free(tg);
}

static void state_spaces(void **state)
{
	(void)state;
	state_space(1, 1, 40);
	state_space(8, 4, 100);
	state_space(150, 5, 70);
	state_space(20, 16, 1500);
	state_space(130, 3, 2049);
}

/* Sequence first, as [batch, seq, channels, states] has it; all of h is wanted, too. */
static void sequence_first(void **state)
{
	struct tg *tg = tg_new("sequence_first", 3);
	struct tv *a = tg_input(tg, NC_FP32, SHAPE(2, 300, 40, 5), NULL), *h;
	struct tv *b = tg_input(tg, NC_FP32, SHAPE(2, 300, 40, 5), NULL);

	(void)state;
	tg->tolerance = 2e-5;
	tg->absolute = 1e-3;
	h = tg_recurrence(tg, below_one(tg, a), b, 1);
	tg_output(tg, h, NULL, NC_NO_ALIAS);
	tg_output(tg, tg_reduce(tg, NC_REDUCE_SUM, h, 8, false), NULL, NC_NO_ALIAS);
	tg_output(tg, tg_reduce(tg, NC_REDUCE_MAX, h, 2, true), NULL, NC_NO_ALIAS);
	tg_run(tg);
	tg_free(tg);
}

/* Two in one loop, one of the other; along another dim; of views, constants; over its operand's memory. */
static void operands(void **state)
{
	struct tg *tg = tg_new("operands", 1);
	struct tv *x = tg_input(tg, NC_FP32, SHAPE(30, 50), NULL), *y, *z;
	struct tv *half = tg_broadcast(tg, tg_const(tg, NC_FP32, 0.5), SHAPE(30, 50));
	struct tv *s = tg_broadcast(tg, tg_scalar(tg, NC_FP32, 0.25), SHAPE(50, 30));

	(void)state;
	tg->tolerance = 2e-5;
	tg->absolute = 1e-4;
	y = tg_recurrence(tg, half, x, 1);
	z = tg_recurrence(tg, half, y, 1);
	tg_output(tg, z, NULL, NC_NO_ALIAS);
	tg_output(tg, tg_recurrence(tg, half, z, 0), NULL, NC_NO_ALIAS);
	y = tg_permute(tg, x, (const uint32_t[]){ 1, 0 });
	tg_output(tg, tg_recurrence(tg, s, y, 1), DIMS(1, 50), NC_NO_ALIAS);
	tg_output(tg, tg_recurrence(tg, below_one(tg, x), x, 1), NULL, 0);
	tg_run(tg);
	tg_free(tg);
}

/* More places to sum up over than a loop keeps ends for: the state goes through memory. */
static void many_states(void **state)
{
	struct tg *tg = tg_new("many_states", 5);
	struct tv *a = tg_input(tg, NC_FP32, SHAPE(2, 1100, 9), NULL), *h;

	(void)state;
	tg->tolerance = 2e-5;
	tg->absolute = 1e-2;
	h = tg_recurrence(tg, below_one(tg, a), a, 2);
	tg_output(tg, tg_reduce(tg, NC_REDUCE_SUM, h, 2, false), NULL, NC_NO_ALIAS);
	tg_output(tg, tg_reduce(tg, NC_REDUCE_SUM, h, 4, false), NULL, NC_NO_ALIAS);
	tg_run(tg);
	tg_free(tg);
}

static void mistakes(void **state)
{
	const int64_t dims[] = { 3, 4 }, other[] = { 4, 3 };
	nc_graph *g = nc_graph_create("mistakes");

	(void)state;
	nc_recurrence(g, test_input(g, NC_FP32, 2, dims), test_input(g, NC_FP32, 2, dims), 2);
	test_refused(g, -EINVAL, "recurrence: dim 2 of fp32[3,4], which has 2 dims");
	g = nc_graph_create("mistakes");
	nc_recurrence(g, test_input(g, NC_FP32, 2, dims), test_input(g, NC_FP32, 2, other), 1);
	test_refused(g, -EINVAL, "recurrence: fp32[3,4] and fp32[4,3] differ in shape");
	g = nc_graph_create("mistakes");
	nc_recurrence(g, test_input(g, NC_FP32, 2, dims), test_input(g, NC_BF16, 2, dims), 1);
	test_refused(g, -EOPNOTSUPP, "cast both to fp32");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shapes),      cmocka_unit_test(state_spaces),
		cmocka_unit_test(operands),    cmocka_unit_test(sequence_first),
		cmocka_unit_test(many_states), cmocka_unit_test(mistakes),
	};

	return cmocka_run_group_tests_name("compiler_recurrence", tests, NULL, NULL);
}
