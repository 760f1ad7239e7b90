// SPDX-License-Identifier: Apache-2.0
/* Tensor engine: products and transpositions against plain loops. */
#include "reference.h"
#include "rig.h"

#define SLOT_BYTES (128 * NM_PSUM_BYTES)

struct bench {
	struct rig *rig;
	uint64_t seed;
	uint8_t *sbuf; /* [128][SBUF_AREA] as uploaded */
};

#define SBUF_AREA 16384

static uint64_t rnd(struct bench *b)
{
	b->seed ^= b->seed << 13;
	b->seed ^= b->seed >> 7;
	b->seed ^= b->seed << 17;
	return b->seed >> 11;
}

static uint32_t upto(struct bench *b, uint32_t n)
{
	return 1 + (uint32_t)(rnd(b) % n);
}

static uint8_t *element(struct bench *b, const struct isa_tile *t, unsigned int p, uint32_t n)
{
	int64_t at = ref_offset(t, n);

	assert_true(at >= 0 && at < SBUF_AREA && t->part0 + p < 128);
	return b->sbuf + (size_t)(t->part0 + p) * SBUF_AREA + at;
}

/* Products of small integers are exact in fp32 in any order. */
static void fill(struct bench *b, const struct isa_tile *t, bool exact)
{
	for (unsigned int p = 0; p < t->nparts; p++)
		for (uint32_t n = 0; n < ref_elems(t); n++) {
			long double x = (long double)(rnd(b) % 17) - 8;
			uint64_t u;

			if (!exact)
				x += (long double)(rnd(b) % 1000) / 1000;
			u = ref_pack(ref_format(t->dtype), x);
			memcpy(element(b, t, p, n), &u, isa_dtype_bytes(t->dtype));
		}
}

static void upload(struct bench *b)
{
	for (unsigned int p = 0; p < 128; p++)
		assert_int_equal(nm_core_sbuf_write(b->rig->core, (uint64_t)p * NM_SBUF_VIEW_PITCH,
						    b->sbuf + (size_t)p * SBUF_AREA, SBUF_AREA),
				 0);
}

/* All of PSUM to slot number slot, when sem is one. */
static void dump_psum(struct program *p, unsigned int slot, unsigned int sem)
{
	struct isa_dma_side dst = asm_flat(slot, 0, SLOT_BYTES, 1);
	struct isa_dma_side src = asm_chip(ISA_SPACE_PSUM, 0, 128, 0, NM_PSUM_BYTES, 1);

	asm_wait(asm_dma(p, ISA_SYNC, 0, 1, dst, src), sem, 1);
}

static const struct exi_slot out_slot[ASM_SLOTS] = {
	{ .base = 0x100000, .size = SLOT_BYTES, .rights = EXI_SLOT_READ | EXI_SLOT_WRITE }
};

static const uint8_t *psum(struct bench *b, const struct isa_tile *t, unsigned int p, uint32_t n)
{
	return b->rig->hbm + out_slot[0].base + (size_t)(t->part0 + p) * NM_PSUM_BYTES +
	       ref_offset(t, n);
}

static struct isa_tile operand(struct bench *b, unsigned int dtype, uint32_t nparts, uint32_t n,
			       uint32_t base)
{
	unsigned int part0 = nparts <= 32 ? (unsigned int)(rnd(b) % 4) * 32 :
			     nparts <= 64 ? (unsigned int)(rnd(b) % 3) * 32 :
					    0;
	struct isa_tile t = asm_row(ISA_SPACE_SBUF, dtype, part0, nparts, base, n);

	if (rnd(b) % 3 == 0)
		t.step[3] = 2;
	if (rnd(b) % 4 == 0 && n % 2 == 0) { /* columns in two halves, swapped */
		t.count[2] = 2;
		t.count[3] = n / 2;
		t.step[2] = (uint32_t)-(int32_t)(n * t.step[3]);
		t.offset += n * t.step[3] * isa_dtype_bytes(dtype);
	}
	return t;
}

static struct isa_tile result(struct bench *b, unsigned int dtype, uint32_t nparts, uint32_t n)
{
	uint32_t bytes = isa_dtype_bytes(dtype), room = ISA_PSUM_BANK_BYTES / bytes;
	unsigned int part0 = nparts <= 32 ? (unsigned int)(rnd(b) % 4) * 32 : 0;
	struct isa_tile t = asm_row(ISA_SPACE_PSUM, dtype, part0, nparts,
				    (uint32_t)(rnd(b) % ISA_PSUM_BANKS) * ISA_PSUM_BANK_BYTES, n);

	if (n * 2 <= room && rnd(b) % 3 == 0)
		t.step[3] = 2;
	return t;
}

static void numbers(struct bench *b, const struct isa_tile *t, double *v)
{
	for (unsigned int p = 0; p < t->nparts; p++)
		for (uint32_t n = 0; n < ref_elems(t); n++)
			*v++ = (double)ref_load(ISA_CT_F32, t->dtype, element(b, t, p, n)).x;
}

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

static int setup(void **state)
{
	struct bench *b = calloc(1, sizeof(*b));

	b->seed = 88172645463325252u;
	b->rig = rig_create();
	rig_queue(b->rig, 0, 1);
	b->sbuf = calloc(128, SBUF_AREA);
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct bench *b = *state;

	rig_destroy(b->rig);
	free(b->sbuf);
	free(b);
	return 0;
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
