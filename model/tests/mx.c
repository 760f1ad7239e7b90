// SPDX-License-Identifier: Apache-2.0
/* MX formats: quantizing, products, where scales lie; on trn3 alone. */
#include "reference.h"
#include "rig.h"

#define AREA	  8192 /* bytes of each partition that are looked at */
#define SCALES	  7168 /* from here on scales */
#define OUT_BYTES (128 * ISA_PSUM_BANK_BYTES)

static uint8_t want[128][AREA], got[128][AREA];
static uint64_t seed = 0x9e3779b97f4a7c15u;

static uint32_t below(uint32_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed >> 33) % n;
}

static void upload(struct rig *r)
{
	for (unsigned int p = 0; p < 128; p++)
		assert_int_equal(nm_core_sbuf_write(r->core, (uint64_t)p * NM_SBUF_VIEW_PITCH,
						    want[p], AREA),
				 0);
}

static void download(struct rig *r)
{
	for (unsigned int p = 0; p < 128; p++)
		assert_int_equal(nm_core_sbuf_read(r->core, (uint64_t)p * NM_SBUF_VIEW_PITCH,
						   got[p], AREA),
				 0);
}

/* --- reference ----------------------------------------------------------------------------------- */

/* Number row of those that are packed in element i of partition p of a tile. */
static long double packed(const struct isa_tile *t, unsigned int p, uint32_t i, unsigned int row)
{
	static const long double fp4[8] = { 0, 0.5L, 1, 1.5L, 2, 3, 4, 6 };
	const uint8_t *e = &want[t->part0 + p][ref_offset(t, i)];
	unsigned int code;

	if (t->dtype == ISA_FP8_E5_X4)
		return ref_unpack(ref_format(ISA_FP8_E5), e[row]);
	if (t->dtype == ISA_FP8_E4FN_X4)
		return ref_unpack(ref_format(ISA_FP8_E4FN), e[row]);
	code = row % 2 ? e[row / 2] >> 4 : e[row / 2] & 15;
	return code & 8 ? -fp4[code & 7] : fp4[code];
}

/* The byte that scales what column i of partition p of the data has. */
static uint8_t *scale_at(const struct isa_column *col, unsigned int p, uint32_t i)
{
	return &want[col->part0 + p / 32 * 32 + p % 32 / 8][col->offset + i];
}

static long double number(const struct isa_compute *c, unsigned int p, uint32_t i, unsigned int row)
{
	const uint8_t scale = *scale_at(&c->vec1, p, i);

	if (scale == 255)
		return (long double)NAN;
	return ldexpl(packed(&c->src0, p, i, row), scale - 127);
}

static void ref_group(const struct isa_compute *c, unsigned int p0, uint32_t i)
{
	const bool e5 = c->dst.dtype == ISA_FP8_E5_X4;
	const struct format f = ref_format(e5 ? ISA_FP8_E5 : ISA_FP8_E4FN);
	const struct format in = ref_format(c->src0.dtype);
	long double v[8][4], largest = 0;
	bool bad = false;
	int scale;

	for (unsigned int p = 0; p < 8; p++)
		for (unsigned int k = 0; k < 4; k++) {
			uint16_t u;

			memcpy(&u, &want[c->src0.part0 + p0 + p][ref_offset(&c->src0, 4 * i + k)],
			       sizeof(u));
			v[p][k] = ref_unpack(in, u);
			bad |= isnan(v[p][k]) || isinf(v[p][k]);
			largest = fmaxl(largest, fabsl(v[p][k]));
		}
	/* The exponent of the largest, less the dtype's, but with one more for what is rounded up. */
	scale = bad ? 255 : largest == 0 ? 0 : 127 + ilogbl(largest) - (e5 ? 14 : 7);
	scale = scale < 0 ? 0 : scale;
	*scale_at(&c->vec1, p0, i) = (uint8_t)scale;
	for (unsigned int p = 0; p < 8; p++)
		for (unsigned int k = 0; k < 4; k++)
			want[c->dst.part0 + p0 + p][ref_offset(&c->dst, i) + k] = (uint8_t)ref_pack(
				f, bad ? (long double)NAN : ldexpl(v[p][k], 127 - scale));
}

/* --- quantizing ---------------------------------------------------------------------------------- */

static struct isa_inst quantize(unsigned int from, unsigned int to, unsigned int part0,
				unsigned int nparts, uint32_t n)
{
	struct isa_inst in = { .opcode = ISA_QUANTIZE_MX };

	in.compute.src0 = asm_row(ISA_SPACE_SBUF, from, part0, nparts, 0, 4 * n);
	in.compute.dst = asm_row(ISA_SPACE_SBUF, to, part0, nparts, 4096, n);
	in.compute.vec1 = (struct isa_column){ .offset = SCALES,
					       .dtype = ISA_UINT8,
					       .part0 = (uint8_t)part0 };
	return in;
}

static struct exi_record run_one(struct rig *r, unsigned int engine, const struct isa_inst *in)
{
	struct program *p = calloc(1, sizeof(*p));
	struct exi_record rec;

	*asm_inst(p, engine, in->opcode) = *in;
	rec = rig_program(r, p, NULL);
	free(p);
	return rec;
}

/* Groups of similar size, any patterns, zeros. */
static void random_source(const struct isa_tile *t)
{
	const struct format f = ref_format(t->dtype);

	for (unsigned int p = 0; p < t->nparts; p++)
		for (uint32_t i = 0; i < ref_elems(t); i++) {
			const uint32_t group = p / 8 * 1000 + i / 4;
			const int exp = (int)(group * 2654435761u >> 8) % 300 - 150;
			long double x = ldexpl(1 + below(1 << 20) * 0x1p-20L, exp - (int)below(12));
			uint16_t u = (uint16_t)ref_pack(f, below(2) ? -x : x);

			if (group % 7 == 1)
				u = (uint16_t)(below(2) << 15);
			if (group % 7 == 2 && !below(40))
				u = (uint16_t)below(1 << 16);
			memcpy(&want[t->part0 + p][ref_offset(t, i)], &u, sizeof(u));
		}
}

static void quantized_as_specified(void **state)
{
	struct rig *r = *state;

	for (unsigned int k = 0; k < 80; k++) {
		const unsigned int nparts = 32 * (1 + below(4));
		const unsigned int part0 = 32 * below(5 - nparts / 32);
		struct isa_inst in = quantize(k % 2 ? ISA_BF16 : ISA_FP16,
					      k / 2 % 2 ? ISA_FP8_E5_X4 : ISA_FP8_E4FN_X4, part0,
					      nparts, 1 + below(120));
		struct isa_compute *c = &in.compute;

		if (below(2)) {
			c->src0.step[3] = 2;
			c->src0.offset += 2;
			c->dst.step[3] = (uint32_t)-2;
			c->dst.offset += 8 * c->dst.count[3];
		}
		if (below(2)) { /* in another part of SBUF */
			c->dst.part0 = (uint8_t)(32 * below(5 - nparts / 32));
			c->vec1.part0 = (uint8_t)(c->vec1.part0 + 4 * below(4));
		}
		for (unsigned int p = 0; p < 128; p++)
			memset(want[p], 0xa5, AREA);
		random_source(&c->src0);
		upload(r);
		assert_int_equal(run_one(r, ISA_VECTOR, &in).status, EXI_OK);
		for (unsigned int p = 0; p < nparts; p += 8)
			for (uint32_t i = 0; i < c->dst.count[3]; i++)
				ref_group(c, p, i);
		download(r);
		for (unsigned int p = 0; p < 128; p++)
			for (unsigned int i = 0; i < AREA; i++)
				if (want[p][i] != got[p][i] &&
				    !((got[p][i] & 0x7c) == 0x7c && (want[p][i] & 0x7c) == 0x7c))
					fail_msg("round %u: partition %u byte %u: 0x%02x, not "
						 "0x%02x",
						 k, p, i, got[p][i], want[p][i]);
	}
}

static void known_scales(void **state)
{
	static const struct {
		uint16_t bf16;
		uint8_t scale, code;
	} known[] = {
		{ 0x3f80, 127 - 7, 0x70 }, /* 1 is 128 * 2^-7 */
		{ 0x3fff, 127 - 7, 0x78 }, /* just below 2: rounded to 256, which there is */
		{ 0x0000, 0, 0x00 },	   { 0x7f7f, 247, 0x78 }, /* the largest */
		{ 0x7f80, 255, 0x7f },	   { 0x0080, 0, 0x40 }, /* 2^-126: scales end at 2^-127 */
	};
	struct rig *r = *state;

	for (unsigned int k = 0; k < sizeof(known) / sizeof(known[0]); k++) {
		struct isa_inst in = quantize(ISA_BF16, ISA_FP8_E4FN_X4, 0, 32, 1);

		memset(want, 0, sizeof(want));
		memcpy(&want[13][4], &known[k].bf16, 2);
		upload(r);
		assert_int_equal(run_one(r, ISA_VECTOR, &in).status, EXI_OK);
		download(r);
		assert_int_equal(got[1][SCALES], known[k].scale);
		assert_int_equal(got[0][SCALES], 0);
		assert_int_equal(got[13][4096 + 2], known[k].code);
	}
}

/* --- products ------------------------------------------------------------------------------------ */

static const struct exi_slot out[ASM_SLOTS] = {
	{ .base = 0x100000, .size = OUT_BYTES, .rights = EXI_SLOT_READ | EXI_SLOT_WRITE }
};

static const uint8_t formats[] = { ISA_FP8_E5_X4, ISA_FP8_E4FN_X4, ISA_FP4_X4 };

static struct isa_inst factor(unsigned int opcode, unsigned int dtype, unsigned int nparts,
			      uint32_t n, uint32_t offset, unsigned int scales)
{
	struct isa_inst in = { .opcode = (uint8_t)opcode };

	in.compute.mode = ISA_MODE_MX;
	in.compute.src0 = asm_row(ISA_SPACE_SBUF, dtype, 0, nparts, offset, n);
	in.compute.vec1 = (struct isa_column){ .offset = SCALES,
					       .dtype = ISA_UINT8,
					       .part0 = (uint8_t)scales };
	return in;
}

/* dst = a' x, and once more on top of it if twice. */
static struct exi_record multiply(struct rig *r, const struct isa_inst *a, const struct isa_inst *x,
				  bool twice)
{
	struct program *p = calloc(1, sizeof(*p));
	struct isa_inst *in;
	struct exi_record rec;

	*asm_inst(p, ISA_TENSOR, a->opcode) = *a;
	*(in = asm_inst(p, ISA_TENSOR, x->opcode)) = *x;
	if (twice) {
		*(in = asm_inst(p, ISA_TENSOR, x->opcode)) = *x;
		in->flags = ISA_F_ACCUM;
	}
	asm_update(in, 0, 1);
	asm_slot(p, NPROG_SLOT_OUTPUT, OUT_BYTES);
	asm_wait(asm_dma(p, ISA_SYNC, 0, 1, asm_flat(0, 0, OUT_BYTES, 1),
			 asm_chip(ISA_SPACE_PSUM, 0, 128, 0, ISA_PSUM_BANK_BYTES, 1)),
		 0, 1);
	rec = rig_program(r, p, out);
	free(p);
	return rec;
}

static float result(const struct rig *r, const struct isa_tile *dst, unsigned int m, uint32_t n)
{
	float x;

	memcpy(&x, r->hbm + out[0].base + (size_t)m * ISA_PSUM_BANK_BYTES + ref_offset(dst, n),
	       sizeof(x));
	return x;
}

/* Small numbers, of which sums are exact, or any that are finite. */
static void random_factor(const struct isa_compute *c, bool exact)
{
	const struct isa_tile *t = &c->src0;

	for (unsigned int p = 0; p < t->nparts; p++)
		for (uint32_t i = 0; i < ref_elems(t); i++) {
			uint8_t *e = &want[p][ref_offset(t, i)];

			*scale_at(&c->vec1, p, i) = (uint8_t)(126 + below(3));
			for (unsigned int row = 0; row < 4; row++) {
				const long double x = (long double)below(9) - 4;

				if (t->dtype == ISA_FP4_X4)
					e[row / 2] = (uint8_t)below(256);
				else if (t->dtype == ISA_FP8_E5_X4)
					e[row] = exact ? (uint8_t)ref_pack(ref_format(ISA_FP8_E5),
									   x) :
							 (uint8_t)(below(0x7c) | below(2) << 7);
				else
					e[row] = exact ? (uint8_t)ref_pack(ref_format(ISA_FP8_E4FN),
									   x) :
							 (uint8_t)(below(0x7f) | below(2) << 7);
			}
		}
}

static void check_product(struct rig *r, unsigned int dtype_a, unsigned int dtype_x, uint32_t k,
			  uint32_t m, uint32_t n, bool exact)
{
	static double va[512][128], vx[512][512];
	struct isa_inst a = factor(ISA_LOAD_STATIONARY, dtype_a, k, m, 0, 0);
	struct isa_inst x = factor(ISA_MATMUL, dtype_x, k, n, 1024, 8);
	struct isa_tile *dst = &x.compute.dst;

	*dst = asm_row(ISA_SPACE_PSUM, ISA_FP32, 0, m, 0, n);
	if (n <= 256 && below(2))
		dst->step[3] = 2;
	if (n <= 256 && below(2))
		x.compute.src0.step[3] = 2;
	memset(want, 0xff, sizeof(want));
	random_factor(&a.compute, exact);
	random_factor(&x.compute, exact);
	upload(r);
	assert_int_equal(multiply(r, &a, &x, true).status, EXI_OK);
	for (uint32_t p = 0; p < k; p++)
		for (uint32_t row = 0; row < 4; row++) {
			for (uint32_t i = 0; i < m; i++)
				va[4 * p + row][i] = (double)number(&a.compute, p, i, row);
			for (uint32_t j = 0; j < n; j++)
				vx[4 * p + row][j] = (double)number(&x.compute, p, j, row);
		}
	for (uint32_t i = 0; i < m; i++)
		for (uint32_t j = 0; j < n; j++) {
			double sum = 0, all = 0, real = (double)result(r, dst, i, j);

			for (uint32_t l = 0; l < 4 * k; l++) {
				sum += 2 * va[l][i] * vx[l][j];
				all += fabs(2 * va[l][i] * vx[l][j]);
			}
			if (!(fabs(real - sum) <= (exact ? 0 : all * 0x1p-20)))
				fail_msg("dtypes %u, %u, K %u M %u N %u: element %u, %u is %g, not "
					 "%g",
					 dtype_a, dtype_x, 4 * k, m, n, i, j, real, sum);
		}
}

static void products_are_sums(void **state)
{
	struct rig *r = *state;

	for (unsigned int i = 0; i < 9; i++)
		check_product(r, formats[i % 3], formats[i / 3], 128, 128, i ? 96 : 512, true);
	for (unsigned int i = 0; i < 27; i++)
		check_product(r, formats[i % 3], formats[i / 3 % 3], 32 * (1 + below(4)),
			      2 * (1 + below(20)), 1 + below(i % 5 ? 60 : 300), i % 2);
}

/* Each code in each place, with two scales: times 1. */
static void every_code_is_dequantized(void **state)
{
	struct rig *r = *state;

	for (unsigned int k = 0; k < 12; k++) {
		const unsigned int dtype = formats[k % 3], row = k / 3;
		struct isa_inst a = factor(ISA_LOAD_STATIONARY, ISA_FP4_X4, 32, 2, 0, 0);
		struct isa_inst x = factor(ISA_MATMUL, dtype, 32, 512, 1024, 4);

		x.compute.dst = asm_row(ISA_SPACE_PSUM, ISA_FP32, 0, 2, 0, 512);
		memset(want, 0, sizeof(want));
		for (unsigned int p = 0; p < 8; p++)
			for (unsigned int i = 0; i < 512; i++)
				want[p][SCALES + i] = p >= 4 && i >= 256 ? 133 : 127;
		want[9][row / 2] = row % 2 ? 0x20 : 0x02; /* 1 */
		for (unsigned int i = 0; i < 512; i++) {
			uint8_t *e = &want[9][ref_offset(&x.compute.src0, i)];

			if (dtype == ISA_FP4_X4)
				e[row / 2] = (uint8_t)i;
			else
				e[row] = (uint8_t)i;
		}
		upload(r);
		assert_int_equal(multiply(r, &a, &x, false).status, EXI_OK);
		for (unsigned int i = 0; i < 512; i++) {
			const long double x1 = number(&x.compute, 9, i, row);
			const float real = result(r, &x.compute.dst, 0, i);

			if (isnan(x1) ? !isnan(real) : (long double)real != x1)
				fail_msg("dtype %u row %u column %u: %g, not %g", dtype, row, i,
					 (double)real, (double)x1);
		}
	}
}

static void a_scale_may_be_nan(void **state)
{
	struct rig *r = *state;
	struct isa_inst a = factor(ISA_LOAD_STATIONARY, ISA_FP4_X4, 64, 2, 0, 0);
	struct isa_inst x = factor(ISA_MATMUL, ISA_FP8_E4FN_X4, 64, 8, 1024, 12);

	x.compute.dst = asm_row(ISA_SPACE_PSUM, ISA_FP32, 0, 2, 0, 8);
	memset(want, 0, sizeof(want));
	*scale_at(&x.compute.vec1, 40, 3) = 255;
	upload(r);
	assert_int_equal(multiply(r, &a, &x, false).status, EXI_OK);
	for (unsigned int i = 0; i < 8; i++)
		assert_int_equal(isnan(result(r, &x.compute.dst, 1, i)), i == 3);
}

/* What is quantized is what it was, to the precision of the format, and multiplied as such. */
static void quantized_and_multiplied(void **state)
{
	struct rig *r = *state;
	struct isa_inst q = quantize(ISA_BF16, ISA_FP8_E4FN_X4, 0, 128, 64);
	struct isa_inst a = factor(ISA_LOAD_STATIONARY, ISA_FP8_E4FN_X4, 128, 64, 4096, 0);
	struct isa_inst x = factor(ISA_MATMUL, ISA_FP8_E4FN_X4, 128, 64, 4096, 0);
	static double v[512][64];

	x.compute.dst = asm_row(ISA_SPACE_PSUM, ISA_FP32, 0, 64, 0, 64);
	memset(want, 0, sizeof(want));
	for (unsigned int p = 0; p < 128; p++)
		for (uint32_t i = 0; i < 256; i++) {
			uint16_t u = (uint16_t)ref_pack(ref_format(ISA_BF16),
							(long double)below(1000) / 500 - 1);

			memcpy(&want[p][2 * i], &u, sizeof(u));
			v[4 * p + i % 4][i / 4] = (double)ref_unpack(ref_format(ISA_BF16), u);
		}
	upload(r);
	assert_int_equal(run_one(r, ISA_VECTOR, &q).status, EXI_OK);
	assert_int_equal(multiply(r, &a, &x, false).status, EXI_OK);
	for (uint32_t i = 0; i < 64; i++)
		for (uint32_t j = 0; j < 64; j++) {
			double sum = 0, all = 0;

			for (uint32_t l = 0; l < 512; l++) {
				sum += v[l][i] * v[l][j];
				all += fabs(v[l][i] * v[l][j]);
			}
			/* 2^-4 for a factor: half a last place of 3 bits of fraction. */
			assert_true(fabs((double)result(r, &x.compute.dst, i, j) - sum) <=
				    all * (2 * 0x1p-4 + 0x1p-8) + 512 * 0x1p-9);
		}
}

/* --- what is refused, time, checking mode ------------------------------------------------------------- */

#define REFUSED(arch, change, val, lim)                                                         \
	do {                                                                                    \
		struct isa_inst q = quantize(ISA_BF16, ISA_FP8_E4FN_X4, 32, 64, 64);            \
		struct isa_inst a = factor(ISA_LOAD_STATIONARY, ISA_FP4_X4, 64, 64, 0, 0);      \
		struct isa_inst x = factor(ISA_MATMUL, ISA_FP8_E5_X4, 64, 512, 1024, 4);        \
		struct rig *rig = rig_create_of(arch, 0, NULL);                                 \
		struct exi_record rec;                                                          \
                                                                                                \
		rig_queue(rig, 0, 1);                                                           \
		x.compute.dst = asm_row(ISA_SPACE_PSUM, ISA_FP32, 0, 64, 0, 512);               \
		change;                                                                         \
		rec = run_one(rig, ISA_VECTOR, &q);                                             \
		if (!rec.status)                                                                \
			rec = multiply(rig, &a, &x, false);                                     \
		if (rec.status != EXI_FAULT_BAD_OPERAND || rec.value != (val) ||                \
		    rec.limit != (lim))                                                         \
			fail_msg("%s: status %u, value %llu, limit %llu", #change, rec.status,  \
				 (unsigned long long)rec.value, (unsigned long long)rec.limit); \
		rig_destroy(rig);                                                               \
	} while (0)

/* Anything else, so that the vector engine has something to do. */
#define NOT_QUANTIZED                                   \
	(q = (struct isa_inst){ .opcode = ISA_MEMSET }, \
	 q.compute.dst = asm_row(ISA_SPACE_SBUF, ISA_FP32, 0, 128, 0, 8))

static void what_is_refused(void **state)
{
	struct rig *r = *state;
	struct isa_inst in = quantize(ISA_BF16, ISA_FP8_E4FN_X4, 0, 32, 8);

	assert_int_equal(run_one(r, ISA_VECTOR, &in).status, EXI_OK);
	REFUSED(NEURON_ARCH_V4, q.compute.src0.dtype = ISA_FP32, ISA_FP32, ISA_BF16);
	REFUSED(NEURON_ARCH_V4, q.compute.src0.nparts = 33, 33, 32);
	REFUSED(NEURON_ARCH_V4, q.compute.src0.count[3] = 255, 255, 4);
	REFUSED(NEURON_ARCH_V4, q.compute.src0.space = ISA_SPACE_PSUM, ISA_SPACE_PSUM, 0);
	REFUSED(NEURON_ARCH_V4, q.compute.dst.dtype = ISA_FP4_X4, ISA_FP4_X4, ISA_FP8_E4FN_X4);
	REFUSED(NEURON_ARCH_V4, q.compute.dst.dtype = ISA_FP32, ISA_FP32, ISA_FP8_E4FN_X4);
	REFUSED(NEURON_ARCH_V4, q.compute.dst.nparts = 32, 32, 64);
	REFUSED(NEURON_ARCH_V4, q.compute.dst.count[3] = 63, 63, 64);
	REFUSED(NEURON_ARCH_V4, q.compute.dst.offset = 508, 508, 0);
	REFUSED(NEURON_ARCH_V4, q.compute.vec1.offset = 511, 511, 0);
	REFUSED(NEURON_ARCH_V4, q.compute.vec1.offset = 4096, 4096, 4096);
	REFUSED(NEURON_ARCH_V4, q.compute.vec1.part0 = 64, 64, 32);
	REFUSED(NEURON_ARCH_V4, q.compute.vec1.part0 = 34, 34, 32);
	REFUSED(NEURON_ARCH_V4, q.compute.vec1.part0 = 48, 48, 32);
	REFUSED(NEURON_ARCH_V4, q.compute.vec1.dtype = ISA_INT8, ISA_INT8, ISA_UINT8);
	REFUSED(NEURON_ARCH_V4, q.compute.vec0.offset = 1, 1, 0);
	REFUSED(NEURON_ARCH_V4, q.compute.src1.nparts = 1, 1, 0);
	REFUSED(NEURON_ARCH_V4, q.compute.mode = ISA_MODE_MX, ISA_MODE_MX, 0);
	REFUSED(NEURON_ARCH_V4, a.compute.src0.nparts = 63, 63, 32);
	REFUSED(NEURON_ARCH_V4, a.compute.src0.count[3] = 63, 63, 2);
	REFUSED(NEURON_ARCH_V4, a.compute.src0.count[3] = 130, 130, 128);
	REFUSED(NEURON_ARCH_V4, a.compute.src0.dtype = ISA_FP8_E5, ISA_FP8_E5, ISA_FP8_E4FN_X4);
	REFUSED(NEURON_ARCH_V4,
		(a.compute.mode = ISA_MODE_NONE, a.compute.vec1 = (struct isa_column){ 0 }),
		ISA_FP4_X4, ISA_FP32);
	REFUSED(NEURON_ARCH_V4, a.compute.vec1.part0 = 32, 32, 0);
	REFUSED(NEURON_ARCH_V4, x.compute.src0.count[3] = 513, 513, 512);
	REFUSED(NEURON_ARCH_V4, x.compute.vec1.space = ISA_SPACE_PSUM, ISA_SPACE_PSUM, 0);
	REFUSED(NEURON_ARCH_V4,
		(x.compute.mode = ISA_MODE_DOUBLE_ROW, x.compute.src0.dtype = ISA_FP8_E5,
		 x.compute.vec1 = (struct isa_column){ 0 }),
		ISA_MODE_DOUBLE_ROW, ISA_MODE_MX);
	REFUSED(NEURON_ARCH_V4, x.compute.src0.nparts = 32, 32, 64);
	REFUSED(NEURON_ARCH_V4, x.compute.dst.dtype = ISA_FP16, ISA_FP16, ISA_FP32);
	REFUSED(NEURON_ARCH_V3, NOT_QUANTIZED, ISA_MODE_MX, ISA_MODE_NONE);
	REFUSED(NEURON_ARCH_V2, NOT_QUANTIZED, ISA_MODE_MX, ISA_MODE_NONE);
}

/* e4m3fn is trn3's, and not multiplied by the other e4m3; no engine takes packed ones by themselves. */
static void dtypes_of_trn3(void **state)
{
	static const uint32_t archs[] = { NEURON_ARCH_V2, NEURON_ARCH_V3, NEURON_ARCH_V4 };

	(void)state;
	for (unsigned int i = 0; i < 3; i++)
		for (unsigned int dtype = ISA_FP8_E4FN; dtype <= ISA_FP4_X4; dtype++) {
			struct rig *r = rig_create_of(archs[i], 0, NULL);
			struct isa_inst in = { .opcode = ISA_COPY };
			const bool good = dtype == ISA_FP8_E4FN && archs[i] == NEURON_ARCH_V4;
			struct exi_record rec;

			rig_queue(r, 0, 1);
			in.compute.dst = asm_row(ISA_SPACE_SBUF, dtype, 0, 32, 0, 16);
			in.compute.src0 = asm_row(ISA_SPACE_SBUF, ISA_FP32, 0, 32, 256, 16);
			rec = run_one(r, ISA_VECTOR, &in);
			assert_int_equal(rec.status, good ? EXI_OK : EXI_FAULT_BAD_OPERAND);
			assert_int_equal(rec.value, good ? 0 : dtype);
			rig_destroy(r);
		}
	for (unsigned int i = 0; i < 3; i++) {
		struct rig *r = rig_create_of(archs[i], 0, NULL);
		struct isa_inst q = quantize(ISA_BF16, ISA_FP8_E4FN_X4, 0, 32, 8);

		rig_queue(r, 0, 1);
		assert_int_equal(run_one(r, ISA_VECTOR, &q).status,
				 archs[i] == NEURON_ARCH_V4 ? EXI_OK : EXI_FAULT_BAD_OPCODE);
		rig_destroy(r);
	}
	for (unsigned int i = 0; i < 4; i++) {
		const unsigned int da = i % 2 ? ISA_FP8_E4FN : ISA_FP8_E4;
		const unsigned int dx = i / 2 ? ISA_FP8_E4FN : ISA_FP8_E4;
		struct isa_inst a = { .opcode = ISA_LOAD_STATIONARY }, x = { .opcode = ISA_MATMUL };
		struct rig *r = rig_create_of(NEURON_ARCH_V4, 0, NULL);
		struct exi_record rec;

		rig_queue(r, 0, 1);
		a.compute.src0 = asm_row(ISA_SPACE_SBUF, da, 0, 32, 0, 16);
		x.compute.src0 = asm_row(ISA_SPACE_SBUF, dx, 0, 32, 256, 16);
		x.compute.dst = asm_row(ISA_SPACE_PSUM, ISA_FP32, 0, 16, 0, 16);
		rec = multiply(r, &a, &x, false);
		assert_int_equal(rec.status, da == dx ? EXI_OK : EXI_FAULT_BAD_OPERAND);
		if (da != dx)
			assert_true(rec.value == dx && rec.limit == da);
		rig_destroy(r);
	}
}

/* NKI Trainium3 guide: four elements a cycle quantized; four times the products of bf16. */
static void time_taken(void **state)
{
	struct isa_inst q = quantize(ISA_BF16, ISA_FP8_E4FN_X4, 0, 128, 500);
	struct isa_inst a = factor(ISA_LOAD_STATIONARY, ISA_FP4_X4, 128, 128, 0, 0);
	struct isa_inst x = factor(ISA_MATMUL, ISA_FP8_E5_X4, 128, 512, 1024, 4);
	struct program *p = calloc(1, sizeof(*p));
	struct rig *r = *state;
	struct exi_record rec;

	rec = run_one(r, ISA_VECTOR, &q);
	assert_int_equal(rec.status, EXI_OK);
	/* 560 cycles of 1.2 GHz, and HALT. */
	assert_uint_in_range(rec.busy_ns[ISA_VECTOR], 466, 495);
	x.compute.dst = asm_row(ISA_SPACE_PSUM, ISA_FP32, 0, 128, 0, 512);
	*asm_inst(p, ISA_TENSOR, a.opcode) = a;
	for (unsigned int i = 0; i < 100; i++)
		*asm_inst(p, ISA_TENSOR, x.opcode) = x;
	rec = rig_program(r, p, NULL);
	free(p);
	assert_int_equal(rec.status, EXI_OK);
	assert_uint_in_range(rec.busy_ns[ISA_TENSOR], 21333, 21700); /* 512 of 2.4 GHz each */
}

/* Scales are operands, too. */
static void scales_are_checked(void **state)
{
	(void)state;
	for (unsigned int missing = 0; missing < 3; missing++) {
		struct rig *r = rig_create_of(NEURON_ARCH_V4, NM_CHECK_ALL, NULL);
		struct isa_inst q = quantize(ISA_BF16, ISA_FP8_E4FN_X4, 0, 64, 64);
		struct isa_inst a = factor(ISA_LOAD_STATIONARY, ISA_FP8_E4FN_X4, 64, 64, 4096, 0);
		struct program *p = calloc(1, sizeof(*p));
		struct isa_inst *in = asm_inst(p, ISA_GPSIMD, ISA_MEMSET);
		struct exi_record rec;

		rig_queue(r, 0, 1);
		in->compute.dst = asm_row(ISA_SPACE_SBUF, ISA_BF16, 0, 64, 0, 256);
		asm_update(in, 0, 1);
		if (missing == 1)
			a.compute.vec1.part0 = 4;
		if (missing == 2)
			a.compute.vec1.offset++;
		*(in = asm_inst(p, ISA_VECTOR, q.opcode)) = q;
		asm_wait(in, 0, 1);
		asm_update(in, 1, 1);
		*(in = asm_inst(p, ISA_TENSOR, a.opcode)) = a;
		asm_wait(in, 1, 1);
		rec = rig_program(r, p, NULL);
		free(p);
		assert_int_equal(rec.status, missing ? EXI_FAULT_UNINITIALISED : EXI_OK);
		if (missing)
			assert_int_equal(rec.value, EXI_PLACE(ISA_SPACE_SBUF, missing == 1 ? 4 : 0,
							      missing == 1 ? SCALES : SCALES + 64));
		rig_destroy(r);
	}
}

static int setup(void **state)
{
	struct rig *r = rig_create_of(NEURON_ARCH_V4, 0, NULL);

	rig_queue(r, 0, 1);
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	rig_destroy(*state);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quantized_as_specified),
		cmocka_unit_test(known_scales),
		cmocka_unit_test(products_are_sums),
		cmocka_unit_test(every_code_is_dequantized),
		cmocka_unit_test(a_scale_may_be_nan),
		cmocka_unit_test(quantized_and_multiplied),
		cmocka_unit_test(what_is_refused),
		cmocka_unit_test(dtypes_of_trn3),
		cmocka_unit_test(time_taken),
		cmocka_unit_test(scales_are_checked),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
