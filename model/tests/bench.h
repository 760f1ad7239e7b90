/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tests of single instructions share: a core whose SBUF is compared with a copy that a reference
 * has worked on, and random operands.
 */
#ifndef TEST_BENCH_H
#define TEST_BENCH_H

#include "reference.h"
#include "rig.h"

#define PARTS 40 /* partitions that are looked at: operands start at 0 or 32 */
#define AREA  32768 /* bytes of each */

#define N_DTYPES 16

static const uint8_t dtypes[N_DTYPES] = { ISA_INT8,   ISA_UINT8,  ISA_INT16,  ISA_UINT16,
					  ISA_BF16,   ISA_FP16,	  ISA_INT32,  ISA_UINT32,
					  ISA_FP32,   ISA_UINT64, ISA_INT64,  ISA_FP64,
					  ISA_FP8_E3, ISA_FP8_E4, ISA_FP8_E5, ISA_TF32 };

struct bench {
	struct rig *rig;
	uint64_t seed;
	uint8_t *want; /* [PARTS][AREA] */
	uint8_t *got;
};

static inline uint64_t rnd(struct bench *b)
{
	b->seed ^= b->seed << 13;
	b->seed ^= b->seed >> 7;
	b->seed ^= b->seed << 17;
	return b->seed;
}

static inline unsigned int pick(struct bench *b, unsigned int n)
{
	return (unsigned int)((rnd(b) >> 20) % n);
}

static inline uint8_t *at(uint8_t *mem, unsigned int partition, int64_t byte)
{
	assert_true(partition < PARTS && byte >= 0 && byte < AREA);
	return mem + (size_t)partition * AREA + (size_t)byte;
}

/* Numbers of every kind: small integers and fractions, extremes, and anything at all. */
static inline uint64_t random_element(struct bench *b, unsigned int dtype)
{
	static const long double special[] = { 0.0L,
					       -0.0L,
					       1,
					       -1,
					       2,
					       0.5L,
					       INFINITY,
					       -INFINITY,
					       NAN,
					       127.5L,
					       -128.5L,
					       65504,
					       65519.9L,
					       65520,
					       0x1p-24L,
					       0x1.8p-25L,
					       0x1p-126L,
					       0x1p-149L,
					       3.4e38L,
					       2147483647.5L,
					       -2147483649.0L,
					       4294967295.0L,
					       0x1p63L,
					       -0x1p63L,
					       0x1p64L,
					       31,
					       32,
					       63,
					       64,
					       1e30L };
	struct format f = ref_format(dtype);
	long double x;

	switch (pick(b, 4)) {
	case 0:
		return rnd(b) & ref_mask(f.bits);
	case 1:
		x = special[pick(b, sizeof(special) / sizeof(special[0]))];
		break;
	case 2:
		x = (long double)(int)pick(b, 201) - 100;
		break;
	default:
		x = ((long double)(int64_t)rnd(b)) * 0x1p-60L;
		break;
	}
	return f.is_float ? ref_pack(f, x) : ref_saturate(f, x);
}

/* Fills a tile in the wanted memory with elements of its dtype. */
static inline void randomise(struct bench *b, const struct isa_tile *t)
{
	for (unsigned int p = 0; p < t->nparts; p++)
		for (uint32_t n = 0; n < ref_elems(t); n++) {
			uint64_t u = random_element(b, t->dtype);

			memcpy(at(b->want, t->part0 + p, ref_offset(t, n)), &u,
			       isa_dtype_bytes(t->dtype));
		}
}

static inline void upload(struct bench *b)
{
	for (unsigned int p = 0; p < PARTS; p++)
		assert_int_equal(nm_core_sbuf_write(b->rig->core, (uint64_t)p * NM_SBUF_VIEW_PITCH,
						    at(b->want, p, 0), AREA),
				 0);
}

static inline void download(struct bench *b)
{
	for (unsigned int p = 0; p < PARTS; p++)
		assert_int_equal(nm_core_sbuf_read(b->rig->core, (uint64_t)p * NM_SBUF_VIEW_PITCH,
						   at(b->got, p, 0), AREA),
				 0);
}

/*
 * A tile of the counts with no element twice: dims in any order, gaps and directions; repeats (step
 * 0) if allowed. It lies in [base, base + room) of each partition.
 */
static inline struct isa_tile random_tile(struct bench *b, unsigned int dtype,
					  const uint32_t *count, unsigned int nparts, uint32_t base,
					  uint32_t room, bool repeats)
{
	struct isa_tile t = { .dtype = (uint8_t)dtype, .nparts = (uint8_t)nparts };
	uint32_t bytes = isa_dtype_bytes(dtype);
	unsigned int order[ISA_TILE_DIMS] = { 3, 2, 1, 0 };
	int64_t span = 1, low = 0;

	t.part0 = (uint8_t)(pick(b, 2) * 32);
	for (unsigned int i = 0; i < ISA_TILE_DIMS; i++) {
		unsigned int k = pick(b, 3) ? i : i + pick(b, ISA_TILE_DIMS - i);
		unsigned int swap = order[i], d;
		int64_t step;

		order[i] = order[k];
		order[k] = swap;
		d = order[i];
		t.count[d] = count[d];
		step = span + (pick(b, 4) == 0 && i < 2 ? pick(b, 3) : 0);
		if (repeats && pick(b, 4) == 0)
			step = 0;
		if (pick(b, 6) == 0)
			step = -step;
		t.step[d] = (uint32_t)(int32_t)step;
		if (step < 0)
			low += step * (count[d] - 1);
		span += (step < 0 ? -step : step) * (count[d] - 1);
	}
	t.offset = (base + bytes - 1) / bytes * bytes + (uint32_t)(-low * bytes);
	assert_true(span * bytes + bytes <= room);
	return t;
}

static inline void random_shape(struct bench *b, uint32_t *count)
{
	static const uint32_t rows[] = { 1, 2, 3, 5, 16, 17, 100, 127, 128, 129, 300 };
	unsigned int longer = pick(b, 30);

	count[0] = pick(b, 3) ? 1 : 1 + pick(b, 2);
	count[1] = pick(b, 2) ? 1 : 1 + pick(b, 2);
	count[2] = 1 + pick(b, 3);
	count[3] = rows[pick(b, sizeof(rows) / sizeof(rows[0]))];
	if (count[3] >= 300)
		count[0] = count[1] = 1, count[2] = 1 + pick(b, 2);
	if (longer == 0) { /* beyond one piece of a row */
		count[0] = count[1] = count[2] = 1;
		count[3] = 2047 + pick(b, 3);
	}
}

#define ELEMS 4096

struct operands {
	uint32_t n;
	struct value src0[ELEMS], src1[ELEMS], s0, s1;
	uint64_t dst[ELEMS];
};

static inline void read_tile(struct bench *b, unsigned int ct, const struct isa_tile *t,
			     unsigned int p, struct value *v)
{
	for (uint32_t n = 0; n < ref_elems(t); n++) {
		const uint8_t *e = at(b->want, t->part0 + p, ref_offset(t, n));

		v[n] = (struct value){ 0 };
		if (ct == ISA_CT_BITS)
			memcpy(&v[n].i, e, isa_dtype_bytes(t->dtype));
		else
			v[n] = ref_load(ct, t->dtype, e);
	}
}

static inline struct value scalar(struct bench *b, const struct isa_inst *in, unsigned int k,
				  unsigned int p)
{
	const struct isa_column *col = k ? &in->compute.vec1 : &in->compute.vec0;

	if (in->flags & (k ? ISA_F_VEC1 : ISA_F_VEC0))
		return ref_load(in->compute.compute_type, col->dtype,
				at(b->want, col->part0 + p, col->offset));
	return ref_imm(in->compute.compute_type, k ? in->compute.imm1 : in->compute.imm0);
}

static inline void write_dst(struct bench *b, const struct isa_tile *t, unsigned int p,
			     const uint64_t *dst)
{
	for (uint32_t n = 0; n < ref_elems(t); n++)
		memcpy(at(b->want, t->part0 + p, ref_offset(t, n)), &dst[n],
		       isa_dtype_bytes(t->dtype));
}

/* --- comparison ------------------------------------------------------------------------------ */

/* Number that a pattern stands for. */
static inline long double number(unsigned int dtype, uint64_t u)
{
	struct format f = ref_format(dtype);

	if (f.is_float)
		return ref_unpack(f, u);
	return f.is_signed ? (long double)((int64_t)(u << (64 - f.bits)) >> (64 - f.bits)) :
			     (long double)u;
}

/* loose: results may be off by the last place of the compute type (then of the dtype). */
static inline bool same(unsigned int dtype, unsigned int ct, uint64_t want, uint64_t got,
			bool loose)
{
	struct format f = ref_format(dtype);
	long double w = number(dtype, want), g = number(dtype, got);
	int precision = ref_ct_float(ct) ? ref_ct_format(ct).precision : 64;

	if (want == got || (isnan(w) && isnan(g)))
		return true;
	if (!loose)
		return false;
	if (f.is_float && f.precision < precision)
		precision = f.precision;
	return fabsl(w - g) <= ldexpl(fabsl(w), 1 - precision) + (f.is_float ? 0 : 1) ||
	       fabsl(w - g) <= ldexpl(1, f.min_exp - f.precision + 1);
}

/* Compares dst by dtype (any NaN is a NaN), all else by bytes; want is as got afterwards. */
static inline void compare(struct bench *b, const struct isa_inst *in, bool loose)
{
	const struct isa_tile *t = &in->compute.dst;
	uint32_t bytes = isa_dtype_bytes(t->dtype);

	download(b);
	for (unsigned int p = 0; p < t->nparts; p++)
		for (uint32_t n = 0; n < ref_elems(t); n++) {
			uint8_t *w = at(b->want, t->part0 + p, ref_offset(t, n));
			uint8_t *g = at(b->got, t->part0 + p, ref_offset(t, n));
			uint64_t want = 0, got = 0;

			memcpy(&want, w, bytes);
			memcpy(&got, g, bytes);
			if (!same(t->dtype, in->compute.compute_type, want, got, loose))
				fail_msg("opcode 0x%x ct %u op %u %u flags 0x%x dtypes %u = %u %u: "
					 "partition %u element %u: 0x%llx, not 0x%llx",
					 in->opcode, in->compute.compute_type, in->compute.op0,
					 in->compute.op1, in->flags, t->dtype,
					 in->compute.src0.dtype, in->compute.src1.dtype, p, n,
					 (unsigned long long)got, (unsigned long long)want);
			memcpy(w, g, bytes);
		}
	if (memcmp(b->want, b->got, (size_t)PARTS * AREA))
		fail_msg("opcode 0x%x wrote outside its operand", in->opcode);
}

static inline void run(struct bench *b, unsigned int engine, const struct isa_inst *in)
{
	struct program *p = calloc(1, sizeof(*p));
	struct exi_record rec;

	*asm_inst(p, engine, in->opcode) = *in;
	rec = rig_program(b->rig, p, NULL);
	if (rec.status)
		fail_msg("opcode 0x%x: status %u, value 0x%llx, limit 0x%llx", in->opcode,
			 rec.status, (unsigned long long)rec.value, (unsigned long long)rec.limit);
	free(p);
}

/* --- random instructions ------------------------------------------------------------------- */

static inline unsigned int random_dtype(struct bench *b, unsigned int engine)
{
	unsigned int dtype;

	do
		dtype = dtypes[pick(b, N_DTYPES)];
	while (engine != ISA_GPSIMD && isa_dtype_bytes(dtype) == 8);
	return dtype;
}

static inline uint64_t random_imm(struct bench *b, unsigned int ct)
{
	uint64_t u = random_element(b, ct == ISA_CT_F32 ? ISA_FP32 :
				       ct == ISA_CT_F64 ? ISA_FP64 :
				       ct == ISA_CT_I32 ? ISA_INT32 :
							  ISA_INT64);

	return ct == ISA_CT_I32 ? (uint64_t)(int32_t)u : u;
}

static inline void random_scalar(struct bench *b, struct isa_inst *in, unsigned int k,
				 unsigned int engine, uint32_t base)
{
	struct isa_column *col = k ? &in->compute.vec1 : &in->compute.vec0;
	struct isa_tile t;

	if (pick(b, 2)) {
		*(k ? &in->compute.imm1 : &in->compute.imm0) =
			random_imm(b, in->compute.compute_type);
		return;
	}
	in->flags |= k ? ISA_F_VEC1 : ISA_F_VEC0;
	t = asm_row(ISA_SPACE_SBUF, random_dtype(b, engine), pick(b, 2) * 32,
		    in->compute.dst.nparts, base, 1);
	randomise(b, &t);
	*col = (struct isa_column){ .offset = base, .dtype = t.dtype, .part0 = t.part0 };
}

/* Operand regions of a partition; columns lie in the last. */
#define ROOM	  6144
#define REGION(k) ((k) * 8192u)
#define COLUMNS	  REGION(3)

static inline int setup(void **state)
{
	struct bench *b = calloc(1, sizeof(*b));

	b->seed = 0x243f6a8885a308d3u;
	b->rig = rig_create();
	rig_queue(b->rig, 0, 1);
	b->want = calloc(PARTS, AREA);
	b->got = calloc(PARTS, AREA);
	*state = b;
	return 0;
}

static inline int teardown(void **state)
{
	struct bench *b = *state;

	rig_destroy(b->rig);
	free(b->want);
	free(b->got);
	free(b);
	return 0;
}

#endif /* TEST_BENCH_H */
