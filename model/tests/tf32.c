// SPDX-License-Identifier: Apache-2.0
/* tf32: each of its numbers, what lies between them, and products of it. */
#include "bench.h"
#include "convert.h"

#define CODES  (1u << 19)
#define UNUSED 13 /* bits of fp32 behind those of a code */

/* What of the unused bits decides a rounding. */
static const uint16_t rests[] = { 0, 1, 0xfff, 0x1000, 0x1001, 0x1fff };
#define RESTS (sizeof(rests) / sizeof(rests[0]))

static void known_values(void **state)
{
	static const struct {
		float x;
		uint32_t code;
	} known[] = {
		{ 1, 0x3f800000 },
		{ 0x1.002p0f, 0x3f800000 }, /* ties */
		{ 0x1.006p0f, 0x3f804000 },
		{ -0x1.002002p0f, 0xbf802000 },
		{ 0x1.ffep127f, 0x7f800000 },
		{ 0x1.ffdffep127f, 0x7f7fe000 },
		{ 0x1p-136f, 0x2000 },
		{ 0x1p-137f, 0 },
		{ 0x1.8p-137f, 0x2000 },
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		uint32_t code = 0;
		float x = 0, want;

		nm_rows()->store[ISA_CT_F32][ISA_TF32](&code, 4, &known[i].x, 1);
		assert_int_equal(code, known[i].code);
		/* The bits behind those of tf32 count in the same way when they are read. */
		nm_rows()->load[ISA_CT_F32][ISA_TF32](&x, &known[i].x, 4, 1);
		memcpy(&want, &known[i].code, sizeof(want));
		assert_true(x == want);
	}
}

static void check_load(const uint32_t *bits, size_t n)
{
	uint64_t *out = malloc(n * sizeof(*out));
	uint8_t *mask = malloc(n);
	const struct nm_rows *rows;

	for (unsigned int v = 0; (rows = nm_rows_variant(v)) != NULL; v++) {
		for (unsigned int ct = 0; ct < NM_CTS; ct++) {
			size_t bytes = ct == ISA_CT_I64 || ct == ISA_CT_F64 ? 8 : 4;

			rows->load[ct][ISA_TF32](out, bits, 4, n);
			for (size_t i = 0; i < n; i++)
				if (!is_same(ct, (uint8_t *)out + i * bytes,
					     ref_load(ct, ISA_TF32, &bits[i])))
					fail_msg("variant %u ct %u: bits 0x%08x", v, ct, bits[i]);
		}
		rows->truth[ISA_TF32](mask, bits, 4, n);
		for (size_t i = 0; i < n; i++)
			assert_int_equal(mask[i], ref_unpack(ref_format(ISA_TF32), bits[i]) != 0);
	}
	free(out);
	free(mask);
}

/* All codes, with each rest as fp32; of one sign and a few exponents as fp64, with some more behind it. */
static void every_code_is_read_and_rounded(void **state)
{
	enum { N = 1 << 12 };
	static uint32_t bits[N * RESTS];
	static double d[3 * N * RESTS];

	(void)state;
	for (unsigned int from = 0; from < CODES; from += N) {
		size_t n = 0, nd = 0;

		for (unsigned int i = 0; i < N; i++)
			for (unsigned int r = 0; r < RESTS; r++) {
				float x;

				bits[n] = (from + i) << UNUSED | rests[r];
				memcpy(&x, &bits[n++], sizeof(x));
				d[nd++] = (double)x;
				d[nd++] = nextafter((double)x, -INFINITY);
				d[nd++] = nextafter((double)x, INFINITY);
			}
		if (from % (8 * N) == 0)
			check_load(bits, n);
		check_store(ISA_CT_F32, ISA_TF32, bits, n);
		if (from % (8 * N) == 0)
			check_store(ISA_CT_F64, ISA_TF32, d, nd);
	}
}

static void integers_are_rounded(void **state)
{
	enum { N = 100000 };
	int32_t *i32 = malloc(N * sizeof(*i32));
	int64_t *i64 = malloc(N * sizeof(*i64));

	(void)state;
	for (uint32_t i = 0; i < N; i++) {
		i32[i] = (int32_t)(i < N / 2 ? i - N / 4 : i * 2654435761u >> i % 32);
		i64[i] = i < N / 2 ? i32[i] : (int64_t)(i * 0x9e3779b97f4a7c15u >> i % 64);
	}
	check_store(ISA_CT_I32, ISA_TF32, i32, N);
	check_store(ISA_CT_I64, ISA_TF32, i64, N);
	free(i32);
	free(i64);
}

/* NKI Trainium guides: tf32 at the rate of bf16, fp32 at a quarter of it. */
static void products_take_as_long_as_bf16(void **state)
{
	static const uint8_t kinds[] = { ISA_BF16, ISA_TF32, ISA_FP32 };
	static const uint32_t archs[] = { NEURON_ARCH_V2, NEURON_ARCH_V3, NEURON_ARCH_V4 };

	(void)state;
	for (unsigned int a = 0; a < 3; a++) {
		uint64_t busy[3];

		for (unsigned int i = 0; i < 3; i++) {
			struct program *p = calloc(1, sizeof(*p));
			struct rig *r = rig_create_of(archs[a], 0, NULL);
			struct isa_inst *in = asm_inst(p, ISA_TENSOR, ISA_LOAD_STATIONARY);
			struct exi_record rec;

			in->compute.src0 = asm_row(ISA_SPACE_SBUF, kinds[i], 0, 128, 0, 128);
			for (unsigned int n = 0; n < 100; n++) {
				in = asm_inst(p, ISA_TENSOR, ISA_MATMUL);
				in->compute.src0 =
					asm_row(ISA_SPACE_SBUF, kinds[i], 0, 128, 4096, 512);
				in->compute.dst = asm_row(ISA_SPACE_PSUM, ISA_FP32, 0, 128, 0, 512);
			}
			rig_queue(r, 0, 1);
			rec = rig_program(r, p, NULL);
			assert_int_equal(rec.status, EXI_OK);
			busy[i] = rec.busy_ns[ISA_TENSOR];
			free(p);
			rig_destroy(r);
		}
		assert_int_equal(busy[1], busy[0]);
		assert_true(busy[2] > 39 * busy[0] / 10 && busy[2] < 41 * busy[0] / 10);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_values),
		cmocka_unit_test(every_code_is_read_and_rounded),
		cmocka_unit_test(integers_are_rounded),
		cmocka_unit_test(products_take_as_long_as_bf16),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
