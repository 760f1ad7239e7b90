// SPDX-License-Identifier: Apache-2.0
/*
 * 8-bit floats: every code, every input of 16 bits, and all numbers at which a result changes, by each
 * set of row kernels against the reference; double rows of the tensor engine.
 */
#include "bench.h"
#include "convert.h"

static const uint8_t kinds[] = { ISA_FP8_E3, ISA_FP8_E4, ISA_FP8_E5, ISA_FP8_E4FN };
#define KINDS 4

#define CODES 256

/* What the formats are, in numbers that owe nothing to either side. */
static void known_values(void **state)
{
	static const struct {
		uint8_t dtype, code;
		long double x;
	} known[] = {
		{ ISA_FP8_E3, 0x30, 1 },	{ ISA_FP8_E3, 0x6f, 15.5L },
		{ ISA_FP8_E3, 0x10, 0.25L },	{ ISA_FP8_E3, 0x01, 0x1p-6L },
		{ ISA_FP8_E3, 0x70, INFINITY }, { ISA_FP8_E3, 0xf0, -INFINITY },
		{ ISA_FP8_E4, 0x38, 1 },	{ ISA_FP8_E4, 0x77, 240 },
		{ ISA_FP8_E4, 0x08, 0x1p-6L },	{ ISA_FP8_E4, 0x81, -0x1p-9L },
		{ ISA_FP8_E4, 0x78, INFINITY }, { ISA_FP8_E4, 0xf8, -INFINITY },
		{ ISA_FP8_E4FN, 0x38, 1 },	{ ISA_FP8_E4FN, 0x78, 256 },
		{ ISA_FP8_E4FN, 0x7e, 448 },	{ ISA_FP8_E4FN, 0x81, -0x1p-9L },
		{ ISA_FP8_E5, 0x3c, 1 },	{ ISA_FP8_E5, 0xfb, -57344 },
		{ ISA_FP8_E5, 0x04, 0x1p-14L }, { ISA_FP8_E5, 0x01, 0x1p-16L },
		{ ISA_FP8_E5, 0x7c, INFINITY }, { ISA_FP8_E5, 0xfc, -INFINITY },
	};
	const struct nm_rows *rows = nm_rows();

	(void)state;
	for (unsigned int i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		float x = 0;
		uint8_t code = 0;

		rows->load[ISA_CT_F32][known[i].dtype](&x, &known[i].code, 1, 1);
		assert_true(x == (float)known[i].x);
		rows->store[ISA_CT_F32][known[i].dtype](&code, 1, &x, 1);
		assert_int_equal(code, known[i].code);
	}
}

static void every_code_is_read(void **state)
{
	const struct nm_rows *rows;
	uint8_t code[CODES], back[CODES], mask[CODES];
	uint64_t out[CODES];

	(void)state;
	for (unsigned int i = 0; i < CODES; i++)
		code[i] = (uint8_t)i;
	for (unsigned int v = 0; (rows = nm_rows_variant(v)) != NULL; v++)
		for (unsigned int i = 0; i < KINDS * NM_CTS; i++) {
			unsigned int dtype = kinds[i % KINDS], ct = i / KINDS;
			size_t bytes = ct == ISA_CT_I64 || ct == ISA_CT_F64 ? 8 : 4;

			rows->load[ct][dtype](out, code, 1, CODES);
			for (unsigned int n = 0; n < CODES; n++)
				if (!is_same(ct, (uint8_t *)out + n * bytes,
					     ref_load(ct, dtype, &code[n])))
					fail_msg("variant %u ct %u dtype %u: code 0x%02x", v, ct,
						 dtype, n);
			if (ct != ISA_CT_F32)
				continue;
			rows->store[ct][dtype](back, 1, out, CODES);
			rows->truth[dtype](mask, code, 1, CODES);
			for (unsigned int n = 0; n < CODES; n++) {
				long double x = ref_load(ct, dtype, &code[n]).x;

				assert_int_equal(mask[n], x != 0);
				if (!isnan(x))
					assert_int_equal(back[n], n);
			}
		}
}

/* Every bf16 and every fp16. */
static void every_16_bit_float_is_rounded(void **state)
{
	enum { N = 1 << 16 };
	float *x = malloc(N * sizeof(*x));
	uint16_t *code = malloc(N * sizeof(*code));

	(void)state;
	for (unsigned int i = 0; i < N; i++)
		code[i] = (uint16_t)i;
	for (unsigned int k = 0; k < 2; k++) {
		nm_rows()->load[ISA_CT_F32][k ? ISA_BF16 : ISA_FP16](x, code, 2, N);
		for (unsigned int i = 0; i < KINDS; i++)
			check_store(ISA_CT_F32, kinds[i], x, N);
	}
	free(x);
	free(code);
}

/* Numbers of which a result may change: all of the dtype, the middles between them, and the next ones
 * to these; n of them. */
static size_t boundaries(unsigned int dtype, long double *x)
{
	struct format f = ref_format(dtype);
	const unsigned int inf = (unsigned int)ref_pack(f, INFINITY);
	size_t n = 0;

	for (unsigned int code = 0; code < inf; code++) {
		long double low = ref_unpack(f, code);
		/* Infinity takes the place of the number that would come there, or NaN. */
		long double high = code + 1 < inf ? ref_unpack(f, code + 1) :
						    2 * low - ref_unpack(f, code - 1);

		x[n++] = low;
		x[n++] = (low + high) / 2;
	}
	for (size_t i = n; i--;)
		x[n++] = -x[i];
	return n;
}

static void boundaries_are_exact(void **state)
{
	static long double at[2 * 2 * CODES];
	static float f[3 * 2 * 2 * CODES];
	static double d[5 * 2 * 2 * CODES];

	(void)state;
	for (unsigned int k = 0; k < KINDS; k++) {
		size_t n = boundaries(kinds[k], at), nf = 0, nd = 0;

		for (size_t i = 0; i < n; i++) {
			float x = (float)at[i];
			double y = (double)at[i];

			assert_true(x == at[i]);
			f[nf++] = x;
			f[nf++] = nextafterf(x, -INFINITY);
			f[nf++] = nextafterf(x, INFINITY);
			d[nd++] = y;
			d[nd++] = nextafter(y, -INFINITY); /* rounded twice it would be a tie */
			d[nd++] = nextafter(y, INFINITY);
			d[nd++] = y * (1 - 0x1p-30);
			d[nd++] = y * (1 + 0x1p-30);
		}
		check_store(ISA_CT_F32, kinds[k], f, nf);
		check_store(ISA_CT_F64, kinds[k], d, nd);
	}
}

/* Numbers of all sizes, evenly over the patterns. */
static void patterns_are_rounded(void **state)
{
	enum { N = 1 << 20 };
	uint32_t *x = malloc(N * sizeof(*x));

	(void)state;
	for (uint32_t i = 0; i < N; i++)
		x[i] = i * 4099u;
	for (unsigned int k = 0; k < KINDS; k++)
		check_store(ISA_CT_F32, kinds[k], x, N);
	free(x);
}

static void integers_are_rounded(void **state)
{
	enum { N = 140000 };
	int32_t *i32 = malloc((N + 64) * sizeof(*i32));
	int64_t *i64 = malloc((N + 128) * sizeof(*i64));
	size_t n = 0, m = 0;

	(void)state;
	for (int i = 0; i < N; i++) {
		i32[n++] = i - N / 2;
		i64[m++] = i - N / 2;
	}
	for (unsigned int bit = 0; bit < 32; bit++) {
		i32[n++] = (int32_t)(1u << bit);
		i32[n++] = (int32_t)((UINT32_MAX << bit) - 1);
	}
	for (unsigned int bit = 0; bit < 64; bit++) {
		i64[m++] = (int64_t)(1ull << bit);
		i64[m++] = (int64_t)((UINT64_MAX << bit) - 1);
	}
	for (unsigned int k = 0; k < KINDS; k++) {
		check_store(ISA_CT_I32, kinds[k], i32, n);
		check_store(ISA_CT_I64, kinds[k], i64, m);
	}
	free(i32);
	free(i64);
}

/* --- double rows ----------------------------------------------------------------------------- */

/* Slot that PSUM goes to. */
#define OUT_BYTES (128 * ISA_PSUM_BANK_BYTES)

static const struct exi_slot out[ASM_SLOTS] = {
	{ .base = 0x100000, .size = OUT_BYTES, .rights = EXI_SLOT_READ | EXI_SLOT_WRITE }
};

/* Small integers, which all kinds hold and of which sums are exact: n of each partition, from byte
 * first on, in the order of src in x. */
static void fill(struct rig *r, const struct isa_tile *src, uint32_t first, float *x,
		 unsigned int seed)
{
	const uint32_t n = ref_elems(src);
	uint8_t row[2 * ISA_MATMUL_N_MAX];

	for (unsigned int p = 0; p < src->nparts; p++) {
		for (uint32_t i = 0; i < n; i++) {
			long double value = (long double)((p * 7 + i * 5 + p * i + seed) % 17) - 8;

			x[p * n + i] = (float)value;
			row[ref_offset(src, i) - first] =
				(uint8_t)ref_pack(ref_format(src->dtype), value);
		}
		assert_int_equal(
			nm_core_sbuf_write(r->core,
					   (uint64_t)(src->part0 + p) * NM_SBUF_VIEW_PITCH + first,
					   row, n),
			0);
	}
}

static struct program *double_rows(const struct isa_tile *a, const struct isa_tile *x,
				   const struct isa_tile *dst, unsigned int times)
{
	struct program *p = calloc(1, sizeof(*p));
	struct isa_inst *in = asm_inst(p, ISA_TENSOR, ISA_LOAD_STATIONARY);

	in->compute.src0 = *a;
	in->compute.mode = ISA_MODE_DOUBLE_ROW;
	for (unsigned int i = 0; i < times; i++) {
		in = asm_inst(p, ISA_TENSOR, ISA_MATMUL);
		in->compute.src0 = *x;
		in->compute.dst = *dst;
		in->compute.mode = ISA_MODE_DOUBLE_ROW;
		in->flags = i ? ISA_F_ACCUM : 0;
	}
	asm_update(in, 0, 1);
	return p;
}

static void check_double(struct rig *r, unsigned int dtype_a, unsigned int dtype_x, uint32_t k,
			 uint32_t m, uint32_t n)
{
	static float va[128 * 256], vx[128 * 1024];
	struct isa_tile a = asm_row(ISA_SPACE_SBUF, dtype_a, 0, k, 64, 2 * m);
	struct isa_tile x = asm_row(ISA_SPACE_SBUF, dtype_x, 0, k, 4096, 2 * n);
	struct isa_tile dst = asm_row(ISA_SPACE_PSUM, ISA_FP32, 0, m, 0, n);
	struct program *p;

	/* The rows of the moving operand in the other order, as a view with dims. */
	x.count[2] = 2, x.count[3] = n;
	x.step[2] = (uint32_t)-(int32_t)n;
	x.offset += n;
	if (n * 8 <= ISA_PSUM_BANK_BYTES)
		dst.step[3] = 2;
	fill(r, &a, 64, va, 1);
	fill(r, &x, 4096, vx, 2);
	p = double_rows(&a, &x, &dst, 2);
	asm_slot(p, NPROG_SLOT_OUTPUT, OUT_BYTES);
	asm_wait(asm_dma(p, ISA_SYNC, 0, 1, asm_flat(0, 0, OUT_BYTES, 1),
			 asm_chip(ISA_SPACE_PSUM, 0, 128, 0, ISA_PSUM_BANK_BYTES, 1)),
		 0, 1);
	assert_int_equal(rig_program(r, p, out).status, EXI_OK);
	for (uint32_t i = 0; i < m; i++)
		for (uint32_t j = 0; j < n; j++) {
			float want = 0, got;

			for (uint32_t part = 0; part < k; part++)
				for (uint32_t row = 0; row < 2; row++)
					want += va[(part * 2 + row) * m + i] *
						vx[(part * 2 + row) * n + j] * 2;
			memcpy(&got,
			       r->hbm + out[0].base + (size_t)i * ISA_PSUM_BANK_BYTES +
				       ref_offset(&dst, j),
			       sizeof(got));
			if (got != want)
				fail_msg("K %u M %u N %u: element %u, %u is %g, not %g", k, m, n, i,
					 j, (double)got, (double)want);
		}
	free(p);
}

static void double_rows_are_summed(void **state)
{
	static const uint32_t archs[] = { NEURON_ARCH_V3, NEURON_ARCH_V4 };

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		struct rig *r = rig_create_of(archs[i], 0, NULL);

		rig_queue(r, 0, 1);
		check_double(r, ISA_FP8_E4, ISA_FP8_E4, 128, 128, 512);
		check_double(r, ISA_FP8_E5, ISA_FP8_E4, 128, 128, 200);
		check_double(r, ISA_FP8_E4, ISA_FP8_E5, 77, 19, 33);
		check_double(r, ISA_FP8_E5, ISA_FP8_E5, 1, 1, 1);
		rig_destroy(r);
	}
}

/* Fault of a program of double rows after a change. */
#define REFUSED(arch, change, val, lim)                                                          \
	do {                                                                                     \
		struct isa_tile a = asm_row(ISA_SPACE_SBUF, ISA_FP8_E4, 0, 128, 0, 256);         \
		struct isa_tile x = asm_row(ISA_SPACE_SBUF, ISA_FP8_E4, 0, 128, 4096, 1024);     \
		struct isa_tile dst = asm_row(ISA_SPACE_PSUM, ISA_FP32, 0, 128, 0, 512);         \
		struct program *p = double_rows(&a, &x, &dst, 1);                                \
		struct isa_inst *load = &p->inst[ISA_TENSOR][0], *mul = &p->inst[ISA_TENSOR][1]; \
		struct rig *r = rig_create_of(arch, 0, NULL);                                    \
		struct exi_record rec;                                                           \
                                                                                                 \
		(void)load, (void)mul;                                                           \
		rig_queue(r, 0, 1);                                                              \
		change;                                                                          \
		rec = rig_program(r, p, NULL);                                                   \
		if (rec.status != EXI_FAULT_BAD_OPERAND || rec.value != (val) ||                 \
		    rec.limit != (lim))                                                          \
			fail_msg("%s: status %u, value %llu, limit %llu", #change, rec.status,   \
				 (unsigned long long)rec.value, (unsigned long long)rec.limit);  \
		free(p);                                                                         \
		rig_destroy(r);                                                                  \
	} while (0)

static void double_rows_have_limits(void **state)
{
	(void)state;
	REFUSED(NEURON_ARCH_V2, , ISA_MODE_DOUBLE_ROW, ISA_MODE_NONE);
	REFUSED(NEURON_ARCH_V3, load->compute.mode = 2, 2, ISA_MODE_NONE);
	REFUSED(NEURON_ARCH_V3, load->compute.src0.dtype = ISA_FP8_E3, ISA_FP8_E3, ISA_FP8_E4);
	REFUSED(NEURON_ARCH_V3, mul->compute.src0.dtype = ISA_FP8_E3, ISA_FP8_E3, ISA_FP8_E4);
	REFUSED(NEURON_ARCH_V3, mul->compute.src0.dtype = ISA_BF16, ISA_BF16, ISA_FP8_E4);
	REFUSED(NEURON_ARCH_V3, load->compute.src0.count[3] = 255, 255, 2);
	REFUSED(NEURON_ARCH_V3, load->compute.src0.count[3] = 258, 258, 256);
	REFUSED(NEURON_ARCH_V3, mul->compute.src0.count[3] = 1026, 1026, 1024);
	REFUSED(NEURON_ARCH_V3, mul->compute.mode = 0, 1024, 512);
	REFUSED(NEURON_ARCH_V3, (mul->compute.mode = 0, mul->compute.src0.count[3] = 512), 0,
		ISA_MODE_DOUBLE_ROW);
	REFUSED(NEURON_ARCH_V3, mul->compute.dst.count[3] = 511, 511, 512);
	REFUSED(NEURON_ARCH_V3, mul->compute.dst.nparts = 127, 127, 128);
}

/* NKI Trainium2 guide: with double rows twice the products in the time of bf16; e3m4 has bf16's. */
static void double_rows_take_no_longer(void **state)
{
	static const struct {
		uint8_t dtype, mode;
	} kind[] = { { ISA_BF16, 0 }, { ISA_FP8_E3, 0 }, { ISA_FP8_E4, 0 }, { ISA_FP8_E4, 1 } };
	uint32_t busy[4];

	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		unsigned int rows = kind[i].mode ? 2 : 1;
		struct isa_tile a = asm_row(ISA_SPACE_SBUF, kind[i].dtype, 0, 128, 0, 128 * rows);
		struct isa_tile x =
			asm_row(ISA_SPACE_SBUF, kind[i].dtype, 0, 128, 4096, 512 * rows);
		struct isa_tile dst = asm_row(ISA_SPACE_PSUM, ISA_FP32, 0, 128, 0, 512);
		struct program *p = double_rows(&a, &x, &dst, 100);
		struct rig *r = rig_create();
		struct exi_record rec;

		for (unsigned int n = 0; n < p->count[ISA_TENSOR]; n++)
			p->inst[ISA_TENSOR][n].compute.mode = kind[i].mode;
		rig_queue(r, 0, 1);
		rec = rig_program(r, p, NULL);
		assert_int_equal(rec.status, EXI_OK);
		busy[i] = (uint32_t)rec.busy_ns[ISA_TENSOR];
		assert_int_equal(busy[i], busy[0]);
		free(p);
		rig_destroy(r);
	}
	assert_uint_in_range(busy[0], 21333, 21700) /* 512 cycles of 2.4 GHz each */;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_values),
		cmocka_unit_test(every_code_is_read),
		cmocka_unit_test(every_16_bit_float_is_rounded),
		cmocka_unit_test(boundaries_are_exact),
		cmocka_unit_test(patterns_are_rounded),
		cmocka_unit_test(integers_are_rounded),
		cmocka_unit_test(double_rows_are_summed),
		cmocka_unit_test(double_rows_have_limits),
		cmocka_unit_test(double_rows_take_no_longer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
