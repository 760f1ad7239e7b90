// SPDX-License-Identifier: Apache-2.0
/* Tensor engine: products and transpositions against plain loops. */
#include "products.h"

static void matmul_round(struct bench *b, uint32_t k, uint32_t m, uint32_t n, unsigned int dtype_a,
			 unsigned int dtype_b, bool exact)
{
	static double va[128 * 128], vx[128 * 512];
	struct program *p = calloc(1, sizeof(*p));
	struct isa_tile a = operand(b, dtype_a, k, m, 0);
	struct isa_tile x = operand(b, dtype_b, k, n, 8192);
	struct isa_tile c = result(b, ISA_FP32, m, n);
	unsigned int times = 1 + (unsigned int)(rnd(b) % 2);
	struct isa_inst *in;

	fill(b, &a, exact);
	fill(b, &x, exact);
	upload(b);
	asm_slot(p, NPROG_SLOT_OUTPUT, SLOT_BYTES);
	/* What lies there before must not matter. */
	in = asm_inst(p, ISA_VECTOR, ISA_MEMSET);
	in->compute.dst = asm_row(ISA_SPACE_PSUM, ISA_FP32, 0, 128, 0, NM_PSUM_BYTES / 4);
	in->compute.imm0 = 0x7fc00000; /* NaN */
	asm_update(in, 0, 1);
	in = asm_inst(p, ISA_TENSOR, ISA_LOAD_STATIONARY);
	in->compute.src0 = a;
	asm_wait(in, 0, 1);
	for (unsigned int i = 0; i < times; i++) {
		in = asm_inst(p, ISA_TENSOR, ISA_MATMUL);
		in->compute.dst = c;
		in->compute.src0 = x;
		in->flags = i ? ISA_F_ACCUM : 0;
	}
	asm_update(in, 1, 1);
	dump_psum(p, 0, 1);
	assert_int_equal(rig_program(b->rig, p, out_slot).status, EXI_OK);
	numbers(b, &a, va);
	numbers(b, &x, vx);
	for (uint32_t i = 0; i < m; i++)
		for (uint32_t j = 0; j < n; j++) {
			double sum = 0, sum_abs = 0;
			float got;

			for (uint32_t l = 0; l < k; l++) {
				double product = va[l * m + i] * vx[l * n + j] * times;

				sum += product;
				sum_abs += fabs(product);
			}
			memcpy(&got, psum(b, &c, i, j), sizeof(got));
			if (!(fabs((double)got - sum) <= (exact ? 0 : sum_abs * 0x1p-20)))
				fail_msg("K %u M %u N %u: element %u, %u is %g, not %g", k, m, n, i,
					 j, (double)got, sum);
		}
	free(p);
}

static void test_matmul(void **state)
{
	enum { N = 7 };
	static const uint8_t floats[N] = { ISA_FP32,   ISA_BF16,   ISA_FP16,  ISA_TF32,
					   ISA_FP8_E3, ISA_FP8_E4, ISA_FP8_E5 };
	struct bench *b = *state;

	for (unsigned int i = 0; i < N * N; i++)
		matmul_round(b, 128, 128, 512, floats[i % N], floats[i / N], true);
	for (unsigned int i = 0; i < 120; i++) {
		uint32_t k = upto(b, 128), m = upto(b, 128), n = upto(b, i % 4 ? 100 : 512);
		unsigned int dtype = floats[rnd(b) % N];

		matmul_round(b, k, m, n, dtype, floats[rnd(b) % N], i % 2);
	}
	for (uint32_t n = 1; n <= 50; n++)
		matmul_round(b, 3, 1 + n % 17, n, ISA_FP32, ISA_FP32, true);
}

/* What BLAS-like code gets wrong: zero times infinity, and rows beside the operand. */
static void test_matmul_special(void **state)
{
	struct bench *b = *state;
	struct program *p = calloc(1, sizeof(*p));
	struct isa_tile a = asm_row(ISA_SPACE_SBUF, ISA_FP32, 0, 2, 0, 3);
	struct isa_tile x = asm_row(ISA_SPACE_SBUF, ISA_FP32, 0, 2, 8192, 5);
	struct isa_tile c = asm_row(ISA_SPACE_PSUM, ISA_FP32, 0, 3, 0, 5);
	static const float stationary[2][3] = { { 0, 1, INFINITY }, { 1, 1, 1 } };
	static const float moving[2][5] = { { 1, INFINITY, NAN, 0, -1 }, { 2, 2, 2, 2, 2 } };
	static const bool nan[3][5] = { { 0, 1, 1, 0, 0 }, { 0, 0, 1, 0, 0 }, { 0, 0, 1, 1, 0 } };
	struct isa_inst *in;

	memset(b->sbuf, 0xff, 128 * SBUF_AREA); /* NaN all around */
	for (unsigned int k = 0; k < 2; k++) {
		memcpy(element(b, &a, k, 0), stationary[k], sizeof(stationary[k]));
		memcpy(element(b, &x, k, 0), moving[k], sizeof(moving[k]));
	}
	upload(b);
	asm_slot(p, NPROG_SLOT_OUTPUT, SLOT_BYTES);
	asm_inst(p, ISA_TENSOR, ISA_LOAD_STATIONARY)->compute.src0 = a;
	in = asm_inst(p, ISA_TENSOR, ISA_MATMUL);
	in->compute.dst = c;
	in->compute.src0 = x;
	asm_update(in, 1, 1);
	dump_psum(p, 0, 1);
	assert_int_equal(rig_program(b->rig, p, out_slot).status, EXI_OK);
	for (unsigned int i = 0; i < 3; i++)
		for (unsigned int j = 0; j < 5; j++) {
			float want =
				stationary[0][i] * moving[0][j] + stationary[1][i] * moving[1][j];
			float got;

			memcpy(&got, psum(b, &c, i, j), sizeof(got));
			assert_int_equal(!!isnan(got), nan[i][j]);
			assert_true(nan[i][j] || got == want);
		}
	free(p);
}

static void test_transpose(void **state)
{
	static const uint8_t types[] = { ISA_FP32,  ISA_BF16,	ISA_FP16,
					 ISA_INT32, ISA_UINT16, ISA_INT16 };
	struct bench *b = *state;

	for (unsigned int i = 0; i < 60; i++) {
		struct program *p = calloc(1, sizeof(*p));
		unsigned int dtype = types[i % 6];
		uint32_t parts = upto(b, 128), f = upto(b, 128);
		struct isa_tile src = operand(b, dtype, parts, f, 4096);
		struct isa_tile dst = result(b, dtype, f, parts);
		struct isa_inst *in = asm_inst(p, ISA_TENSOR, ISA_TRANSPOSE);

		for (size_t byte = 0; byte < 128 * SBUF_AREA; byte++)
			b->sbuf[byte] = (uint8_t)rnd(b);
		upload(b);
		in->compute.dst = dst;
		in->compute.src0 = src;
		in->compute.compute_type = ISA_CT_BITS;
		asm_update(in, 1, 1);
		asm_slot(p, NPROG_SLOT_OUTPUT, SLOT_BYTES);
		dump_psum(p, 0, 1);
		assert_int_equal(rig_program(b->rig, p, out_slot).status, EXI_OK);
		for (uint32_t r = 0; r < parts; r++)
			for (uint32_t col = 0; col < f; col++)
				assert_memory_equal(psum(b, &dst, col, r), element(b, &src, r, col),
						    isa_dtype_bytes(dtype));
		free(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_matmul, setup, teardown),
		cmocka_unit_test_setup_teardown(test_matmul_special, setup, teardown),
		cmocka_unit_test_setup_teardown(test_transpose, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
