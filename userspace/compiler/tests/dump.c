/* SPDX-License-Identifier: Apache-2.0 */
/* What the passes make of a graph, as text; and that errors and dumps are what they promise. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "graph.h"
#include "neuron_isa.h"
#include "neuron_program.h"

static const struct nc_target trn2 = { 3, 192 << 10, 16 << 10 };

static void compile(const nc_graph *g, struct nc_program *p)
{
	char error[NC_ERROR_BYTES];

	if (nc_compile(g, &trn2, p, error))
		fail_msg("%s", error);
}

/* All lines but .program, which tells the version. */
static void expect_program(nc_graph *g, const char *want)
{
	struct nc_program p;
	char *text;

	compile(g, &p);
	text = test_listing(&p);
	assert_string_equal(strchr(text, '\n') + 1, want);
	free(text);
	nc_program_free(&p);
	nc_graph_destroy(g);
}

/* Instructions with an opcode. */
static uint32_t count(const struct nc_program *p, uint32_t opcode)
{
	const struct nprog_header *h = p->image;
	uint32_t n = 0;

	for (uint32_t e = 0; e < 5; e++) {
		const struct isa_inst *inst =
			(const struct isa_inst *)((const char *)p->image + h->stream[e].offset);

		for (uint32_t i = 0; i < h->stream[e].count; i++)
			n += inst[i].opcode == opcode;
	}
	return n;
}

static void graph_text(void **state)
{
	nc_graph *g = nc_graph_create("text");
	nc_value x = test_input(g, NC_BF16, SHAPE(2, 3)), y;
	const uint32_t order[] = { 1, 0 };
	char text[1000], small[20];
	size_t n;

	(void)state;
	y = nc_reduce(g, NC_REDUCE_SUM, nc_permute(g, x, order), 1, true);
	nc_output(g, nc_binary(g, NC_ADD, y, nc_const_float(g, NC_BF16, 0.5)), NULL, NC_NO_ALIAS);
	n = nc_graph_dump(g, text, sizeof(text));
	assert_string_equal(text, "graph text\n"
				  "%1 = input : bf16[2,3] slot 0 strides(3,1)\n"
				  "%2 = permute %1 : bf16[3,2] order(1,0)\n"
				  "%3 = reduce_sum %2 : bf16[1,2] axes 0x1 keep\n"
				  "%4 = const : bf16[] bits 0x3f000000\n"
				  "%5 = add %3 %4 : bf16[1,2]\n"
				  "output %5 slot 1 strides(2,1)\n");
	assert_int_equal(n, strlen(text));
	assert_int_equal(nc_graph_dump(g, small, sizeof(small)), n);
	assert_int_equal(strlen(small), sizeof(small) - 1);
	assert_memory_equal(small, text, sizeof(small) - 1);
	assert_int_equal(nc_graph_dump(g, NULL, 0), n);
	nc_graph_destroy(g);
}

/* One tile, two loads on their own queues, the store behind another engine. */
/* What tells two graphs with dropout apart. */
static void dropout_text(void **state)
{
	nc_graph *g = nc_graph_create("dropout");
	nc_value x = test_input(g, NC_BF16, SHAPE(3, 2));
	struct nc_attention how = { .scale = 0.5f, .causal = true, .dropout = 0.1 };
	char text[1000];

	(void)state;
	for (int i = 0; i < NC_KEY_WORDS; i++)
		how.key[i] = nc_scalar(g, NC_INT32);
	how.batch = nc_const_int(g, NC_INT32, 7);
	nc_attention(g, x, x, x, 0, &how);
	nc_graph_dump(g, text, sizeof(text));
	assert_non_null(strstr(text, "%7 = attention %1 %1 %1 : bf16[3,2] scale 0.5 causal dropout "
				     "0.10000000000000001 key(%2,%3,%4,%5) batch %6\n"));
	nc_graph_destroy(g);
}

static void add_text(void **state)
{
	nc_graph *g = nc_graph_create("add");
	nc_value a = test_input(g, NC_FP32, SHAPE(128, 64)),
		 b = test_input(g, NC_FP32, SHAPE(128, 64));

	(void)state;
	nc_output(g, nc_binary(g, NC_ADD, a, b), NULL, NC_NO_ALIAS);
	expect_program(g, ".slot name=\"in0\" rights=read bytes=32768 dtype=fp32 ndim=2 "
			  "dims=128,64,0,0,0\n"
			  ".slot name=\"in1\" rights=read bytes=32768 dtype=fp32 ndim=2 "
			  "dims=128,64,0,0,0\n"
			  ".slot name=\"out2\" kind=output rights=write bytes=32768 dtype=fp32 "
			  "ndim=2 "
			  "dims=128,64,0,0,0\n"
			  ".engine vector\n"
			  "\ttensor_tensor op0=add dst=sbuf:fp32[0+128]@512/1*1,1*1,1*1,64*1 "
			  "src0=sbuf:fp32[0+128]@0/1*1,1*1,1*1,64*1 "
			  "src1=sbuf:fp32[0+128]@256/1*1,1*1,1*1,64*1 "
			  "wait0=s17>=1 wait1=s16>=1 update0=s1+1 tag=3\n"
			  "\thalt\n"
			  ".engine gpsimd\n"
			  "\tdma elem=4 queue=10 to_slot=2@0/1,8192*4 "
			  "from=sbuf[0+128*1]0@512/1,64*4 "
			  "wait0=s1>=1 update0=s26+1 tag=3\n"
			  "\thalt wait0=s26>=1\n"
			  ".engine sync\n"
			  "\tdma elem=4 to=sbuf[0+128*1]0@0/1,64*4 from_slot=0@0/1,8192*4 "
			  "update0=s16+1 tag=3\n"
			  "\tdma elem=4 queue=1 to=sbuf[0+128*1]0@256/1,64*4 "
			  "from_slot=1@0/1,8192*4 "
			  "update0=s17+1 tag=3\n"
			  "\thalt\n");
}

/* Views cost nothing; a chain stays on chip; a scalar is a column, a constant an immediate; a
 * function takes the product before it. */
static void folding(void **state)
{
	nc_graph *g = nc_graph_create("fold");
	const uint32_t order[] = { 1, 0 };
	nc_value x = test_input(g, NC_FP32, SHAPE(64, 128)), s = nc_scalar(g, NC_FP32);
	struct nc_program p;

	(void)state;
	x = nc_reshape(g, nc_permute(g, x, order), SHAPE(2, 64, 64));
	x = nc_binary(g, NC_MUL, x, s);
	x = nc_unary(g, NC_EXP, x);
	x = nc_binary(g, NC_ADD, x, nc_const_float(g, NC_FP32, 1));
	nc_output(g, x, NULL, NC_NO_ALIAS);
	compile(g, &p);
	assert_int_equal(count(&p, ISA_DMA), 3);
	assert_int_equal(count(&p, ISA_TENSOR_SCALAR), 1);
	assert_int_equal(count(&p, ISA_ACTIVATION), 1);
	assert_int_equal(p.scratch_bytes, 0);
	nc_program_free(&p);
	nc_graph_destroy(g);
}

/* Softmax of rows reads its input once, needs no scratch and walks over it three times: maximum;
 * difference, exponential and sum; quotient. Of columns it needs some. */
static void rows(void **state)
{
	(void)state;
	for (uint32_t axes = 1; axes < 3; axes++) {
		nc_graph *g = nc_graph_create("softmax");
		nc_value x = test_input(g, NC_FP32, SHAPE(128, 100)), e;
		struct nc_program p;

		e = nc_unary(g, NC_EXP,
			     nc_binary(g, NC_SUB, x, nc_reduce(g, NC_REDUCE_MAX, x, axes, true)));
		e = nc_binary(g, NC_DIV, e, nc_reduce(g, NC_REDUCE_SUM, e, axes, true));
		nc_output(g, e, NULL, NC_NO_ALIAS);
		compile(g, &p);
		if (axes == 2) {
			assert_int_equal(count(&p, ISA_DMA), 2);
			assert_int_equal(count(&p, ISA_REDUCE), 1);
			assert_int_equal(count(&p, ISA_ACTIVATION), 1);
			/* The negative of the maximum, one element a row, and the quotient. */
			assert_int_equal(count(&p, ISA_TENSOR_SCALAR), 2);
		}
		assert_int_equal(p.scratch_bytes != 0, axes == 1);
		nc_program_free(&p);
		nc_graph_destroy(g);
	}
}

/* 1024 cubed: 8 x 8 stationary blocks, which the DMA engines transpose, 512 columns moving, all of it
 * loaded once. */
static void matmul_shape(void **state)
{
	nc_graph *g = nc_graph_create("matmul");
	nc_value a = test_input(g, NC_FP32, SHAPE(1024, 1024)),
		 b = test_input(g, NC_FP32, SHAPE(1024, 1024));
	struct nc_program p;

	(void)state;
	nc_output(g, nc_matmul(g, a, b), NULL, NC_NO_ALIAS);
	compile(g, &p);
	assert_int_equal(count(&p, ISA_LOAD_STATIONARY), 64);
	assert_int_equal(count(&p, ISA_MATMUL), 128);
	assert_int_equal(count(&p, ISA_TRANSPOSE), 0);
	assert_int_equal(count(&p, ISA_DMA), 64 + 1 + 8);
	nc_program_free(&p);
	nc_graph_destroy(g);
}

/* The same graph gives the same bytes. */
static void deterministic(void **state)
{
	struct nc_program p[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		nc_graph *g = nc_graph_create("twice");
		nc_value a = test_input(g, NC_FP32, SHAPE(300, 200)),
			 b = test_input(g, NC_FP32, SHAPE(200, 77));
		void *shift = malloc((size_t)(1000 + i * 5000)); /* other addresses */

		a = nc_unary(g, NC_GELU, nc_matmul(g, a, b));
		nc_output(g, nc_reduce(g, NC_REDUCE_SUM, a, 3, false), NULL, NC_NO_ALIAS);
		nc_output(g, a, NULL, NC_NO_ALIAS);
		compile(g, &p[i]);
		nc_graph_destroy(g);
		free(shift);
	}
	assert_int_equal(p[0].bytes, p[1].bytes);
	assert_memory_equal(p[0].image, p[1].image, p[0].bytes);
	nc_program_free(&p[0]);
	nc_program_free(&p[1]);
}

/* Every wait of a small program is needed: without any one of them something is unordered. */
static void waits_needed(void **state)
{
	nc_graph *g = nc_graph_create("waits");
	const uint32_t memory[] = { 0, 1, 2 };
	nc_value a = test_input(g, NC_FP32, SHAPE(128, 64)),
		 b = test_input(g, NC_FP32, SHAPE(64, 32));
	const struct nprog_header *h;
	struct nc_program p;
	uint32_t n = 0;

	(void)state;
	nc_output(g, nc_unary(g, NC_EXP, nc_matmul(g, a, b)), NULL, NC_NO_ALIAS);
	compile(g, &p);
	assert_null(test_hazards(&p, 3, memory, 1000));
	h = p.image;
	for (uint32_t e = 0; e < 5; e++)
		for (uint32_t i = 0; i < h->stream[e].count; i++)
			for (uint32_t w = 0; w < ISA_WAITS; w++) {
				struct isa_inst *inst =
					(struct isa_inst *)((char *)p.image + h->stream[e].offset) +
					i;

				if (!inst->wait[w].kind)
					continue;
				inst->wait[w].kind = ISA_WAIT_NONE;
				assert_non_null(test_hazards(&p, 3, memory, 1000));
				inst->wait[w].kind = ISA_WAIT_GE;
				n++;
			}
	assert_true(n > 5);
	nc_program_free(&p);
	nc_graph_destroy(g);
}

static void expect_error(nc_graph *g, int want, const char *part1, const char *part2)
{
	char error[NC_ERROR_BYTES];
	struct nc_program p;

	assert_int_equal(nc_compile(g, &trn2, &p, error), want);
	assert_null(p.image);
	if (!strstr(error, part1) || !strstr(error, part2))
		fail_msg("\"%s\" does not say \"%s\" and \"%s\"", error, part1, part2);
	nc_graph_destroy(g);
}

static void errors(void **state)
{
	struct nc_conv2d conv = { { 1, 1 }, { 0, 0 }, { 1, 1 }, 1 };
	nc_graph *g;
	nc_value x;

	(void)state;
	g = nc_graph_create("e");
	x = test_input(g, NC_FP32, SHAPE(4, 5));
	assert_int_equal(nc_binary(g, NC_ADD, x, test_input(g, NC_FP32, SHAPE(4, 6))), 0);
	assert_int_equal(nc_unary(g, NC_EXP, x), 0); /* after the first mistake nothing works */
	expect_error(g, -EINVAL, "fp32[4,5]", "fp32[4,6]");

	g = nc_graph_create("e");
	nc_unary(g, NC_EXP, test_input(g, NC_FP64, SHAPE(3)));
	expect_error(g, -EOPNOTSUPP, "exp", "fp64[3]");

	g = nc_graph_create("e");
	nc_matmul(g, test_input(g, NC_INT32, SHAPE(3, 4)), test_input(g, NC_INT32, SHAPE(4, 3)));
	expect_error(g, -EOPNOTSUPP, "matmul", "int32[3,4]");

	g = nc_graph_create("e");
	nc_const_float(g, NC_BF16, 0.1);
	expect_error(g, -EINVAL, "0.1", "bf16");

	g = nc_graph_create("e");
	nc_const_int(g, NC_INT8, 128);
	expect_error(g, -EINVAL, "128", "int8");

	g = nc_graph_create("e");
	x = test_input(g, NC_FP32, SHAPE(4, 5));
	nc_output(g, x, DIMS(0, 1), NC_NO_ALIAS);
	expect_error(g, -EINVAL, "stride 0", "4 elements");

	g = nc_graph_create("e");
	x = test_input(g, NC_FP32, SHAPE(4, 5));
	nc_output(g, x, DIMS(1, 4), 0);
	expect_error(g, -EINVAL, "alias 0", "strides");

	g = nc_graph_create("e");
	nc_conv2d(g, test_input(g, NC_FP32, SHAPE(1, 3, 8, 8)),
		  test_input(g, NC_FP32, SHAPE(4, 2, 3, 3)), &conv);
	expect_error(g, -EINVAL, "conv2d", "fp32[4,2,3,3]");

	g = nc_graph_create("e");
	x = test_input(g, NC_FP32, SHAPE(1 << 20, 1 << 20, 1));
	nc_output(g, nc_unary(g, NC_EXP, x), NULL, NC_NO_ALIAS);
	expect_error(g, -E2BIG, "operations", "split");

	g = nc_graph_create("e");
	test_input(g, NC_FP32, SHAPE(1));
	expect_error(g, -EINVAL, "no output", "e");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(graph_text),	 cmocka_unit_test(dropout_text),
		cmocka_unit_test(add_text),	 cmocka_unit_test(folding),
		cmocka_unit_test(rows),		 cmocka_unit_test(matmul_shape),
		cmocka_unit_test(deterministic), cmocka_unit_test(waits_needed),
		cmocka_unit_test(errors),
	};

	return cmocka_run_group_tests_name("compiler_dump", tests, NULL, NULL);
}
