// SPDX-License-Identifier: Apache-2.0
/*
 * Every opcode, dtype, compute type and operation against reference.h: random instructions on random
 * operands, after which all memory must be as the reference leaves it.
 */
#include "reference.h"
#include "rig.h"

#define PARTS	 40 /* partitions that are looked at: operands start at 0 or 32 */
#define AREA	 32768 /* bytes of each */
#define ROUNDS	 3000
#define N_DTYPES 12

static const uint8_t dtypes[N_DTYPES] = { ISA_INT8, ISA_UINT8,	ISA_INT16, ISA_UINT16,
					  ISA_BF16, ISA_FP16,	ISA_INT32, ISA_UINT32,
					  ISA_FP32, ISA_UINT64, ISA_INT64, ISA_FP64 };

struct bench {
	struct rig *rig;
	uint64_t seed;
	uint8_t *want; /* [PARTS][AREA] */
	uint8_t *got;
};

static uint64_t rnd(struct bench *b)
{
	b->seed ^= b->seed << 13;
	b->seed ^= b->seed >> 7;
	b->seed ^= b->seed << 17;
	return b->seed;
}

static unsigned int pick(struct bench *b, unsigned int n)
{
	return (unsigned int)((rnd(b) >> 20) % n);
}

static uint8_t *at(uint8_t *mem, unsigned int partition, int64_t byte)
{
	assert_true(partition < PARTS && byte >= 0 && byte < AREA);
	return mem + (size_t)partition * AREA + (size_t)byte;
}

/* Numbers of every kind: small integers and fractions, extremes, and anything at all. */
static uint64_t random_element(struct bench *b, unsigned int dtype)
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
static void randomise(struct bench *b, const struct isa_tile *t)
{
	for (unsigned int p = 0; p < t->nparts; p++)
		for (uint32_t n = 0; n < ref_elems(t); n++) {
			uint64_t u = random_element(b, t->dtype);

			memcpy(at(b->want, t->part0 + p, ref_offset(t, n)), &u,
			       isa_dtype_bytes(t->dtype));
		}
}

static void upload(struct bench *b)
{
	for (unsigned int p = 0; p < PARTS; p++)
		assert_int_equal(nm_core_sbuf_write(b->rig->core, (uint64_t)p * NM_SBUF_VIEW_PITCH,
						    at(b->want, p, 0), AREA),
				 0);
}

static void download(struct bench *b)
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
static struct isa_tile random_tile(struct bench *b, unsigned int dtype, const uint32_t *count,
				   unsigned int nparts, uint32_t base, uint32_t room, bool repeats)
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

static void random_shape(struct bench *b, uint32_t *count)
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

/* --- the reference's instructions ----------------------------------------------------------- */

#define ELEMS 4096

struct operands {
	uint32_t n;
	struct value src0[ELEMS], src1[ELEMS], s0, s1;
	uint64_t dst[ELEMS];
};

static void read_tile(struct bench *b, unsigned int ct, const struct isa_tile *t, unsigned int p,
		      struct value *v)
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

static struct value scalar(struct bench *b, const struct isa_inst *in, unsigned int k,
			   unsigned int p)
{
	const struct isa_column *col = k ? &in->compute.vec1 : &in->compute.vec0;

	if (in->flags & (k ? ISA_F_VEC1 : ISA_F_VEC0))
		return ref_load(in->compute.compute_type, col->dtype,
				at(b->want, col->part0 + p, col->offset));
	return ref_imm(in->compute.compute_type, k ? in->compute.imm1 : in->compute.imm0);
}

static struct value reduce(unsigned int ct, unsigned int op, const struct value *v, uint32_t n)
{
	struct value lane[16], identity = { 0 };

	if (op == ISA_MULT || op == ISA_LOGICAL_AND)
		identity = (struct value){ 1, 1 };
	else if (op == ISA_BIT_AND)
		identity.i = -1;
	else if (op == ISA_MAX)
		identity = (struct value){ -INFINITY, ct == ISA_CT_I32 ? INT32_MIN : INT64_MIN };
	else if (op == ISA_MIN)
		identity = (struct value){ INFINITY, ct == ISA_CT_I32 ? INT32_MAX : INT64_MAX };
	for (unsigned int l = 0; l < 16; l++)
		lane[l] = identity;
	for (uint32_t i = 0; i < n; i++)
		lane[i % 16] = ref_alu(ct, op, lane[i % 16], v[i]);
	for (unsigned int half = 8; half; half /= 2)
		for (unsigned int l = 0; l < half; l++)
			lane[l] = ref_alu(ct, op, lane[l], lane[l + half]);
	return lane[0];
}

static void compute_elements(const struct isa_inst *in, struct operands *o)
{
	const struct isa_compute *c = &in->compute;
	unsigned int ct = c->compute_type;

	for (uint32_t n = 0; n < o->n; n++) {
		struct value a = o->src0[n], r = o->s0;

		switch (in->opcode) {
		case ISA_COPY:
			r = a;
			break;
		case ISA_TENSOR_TENSOR:
			r = ref_alu(ct, c->op0, a, o->src1[n]);
			break;
		case ISA_TENSOR_SCALAR:
			r = in->flags & ISA_F_REV0 ? ref_alu(ct, c->op0, o->s0, a) :
						     ref_alu(ct, c->op0, a, o->s0);
			r = in->flags & ISA_F_REV1 ? ref_alu(ct, c->op1, o->s1, r) :
						     ref_alu(ct, c->op1, r, o->s1);
			break;
		case ISA_SCALAR_TENSOR_TENSOR:
			r = in->flags & ISA_F_REV0 ? ref_alu(ct, c->op0, o->s0, a) :
						     ref_alu(ct, c->op0, a, o->s0);
			r = in->flags & ISA_F_REV1 ? ref_alu(ct, c->op1, o->src1[n], r) :
						     ref_alu(ct, c->op1, r, o->src1[n]);
			break;
		default: /* MEMSET: s0 */
			break;
		}
		o->dst[n] = ct == ISA_CT_BITS ? (uint64_t)r.i : ref_store(ct, c->dst.dtype, r);
	}
}

static void write_dst(struct bench *b, const struct isa_tile *t, unsigned int p,
		      const uint64_t *dst)
{
	for (uint32_t n = 0; n < ref_elems(t); n++)
		memcpy(at(b->want, t->part0 + p, ref_offset(t, n)), &dst[n],
		       isa_dtype_bytes(t->dtype));
}

static void ref_elementwise(struct bench *b, const struct isa_inst *in)
{
	static struct operands o;
	const struct isa_compute *c = &in->compute;

	o.n = ref_elems(&c->dst);
	for (unsigned int p = 0; p < c->dst.nparts; p++) {
		if (c->src0.nparts)
			read_tile(b, c->compute_type, &c->src0, p, o.src0);
		if (c->src1.nparts)
			read_tile(b, c->compute_type, &c->src1, p, o.src1);
		o.s0 = scalar(b, in, 0, p);
		o.s1 = scalar(b, in, 1, p);
		compute_elements(in, &o);
		write_dst(b, &c->dst, p, o.dst);
	}
}

static void ref_predicated(struct bench *b, const struct isa_inst *in)
{
	static struct operands o;
	const struct isa_compute *c = &in->compute;
	struct format f = ref_format(c->src0.dtype);

	for (unsigned int p = 0; p < c->dst.nparts; p++) {
		read_tile(b, ISA_CT_BITS, &c->src0, p, o.src0);
		read_tile(b, ISA_CT_BITS, &c->dst, p, o.src1);
		for (uint32_t n = 0; n < ref_elems(&c->dst); n++)
			o.dst[n] = (uint64_t)o.src1[n].i;
		if (!(in->flags & ISA_F_IMM))
			read_tile(b, c->compute_type, &c->src1, p, o.src1);
		for (uint32_t n = 0; n < ref_elems(&c->dst); n++) {
			uint64_t u = (uint64_t)o.src0[n].i;
			struct value v = in->flags & ISA_F_IMM ? ref_imm(c->compute_type, c->imm0) :
								 o.src1[n];

			if (f.is_float ? ref_unpack(f, u) != 0 : u != 0)
				o.dst[n] = c->compute_type == ISA_CT_BITS ?
						   (uint64_t)v.i :
						   ref_store(c->compute_type, c->dst.dtype, v);
		}
		write_dst(b, &c->dst, p, o.dst);
	}
}

static void ref_reduce(struct bench *b, const struct isa_inst *in)
{
	static struct operands o;
	const struct isa_compute *c = &in->compute;
	uint32_t results = ref_elems(&c->dst), each = ref_elems(&c->src0) / results;

	for (unsigned int p = 0; p < c->dst.nparts; p++) {
		read_tile(b, c->compute_type, &c->src0, p, o.src0);
		for (uint32_t n = 0; n < results; n++)
			o.dst[n] =
				ref_store(c->compute_type, c->dst.dtype,
					  reduce(c->compute_type, c->op0, o.src0 + n * each, each));
		write_dst(b, &c->dst, p, o.dst);
	}
}

static void ref_partition_reduce(struct bench *b, const struct isa_inst *in)
{
	static struct operands o;
	const struct isa_compute *c = &in->compute;
	unsigned int ct = c->compute_type;
	uint32_t n = ref_elems(&c->dst);

	for (unsigned int p = 0; p < c->src0.nparts; p++) {
		read_tile(b, ct, &c->src0, p, o.src0);
		for (uint32_t i = 0; i < n; i++) {
			struct value a = p ? o.src1[i] : o.src0[i];

			o.src1[i] = p || c->op0 == ISA_LOGICAL_AND || c->op0 == ISA_LOGICAL_OR ?
					    ref_alu(ct, c->op0, a, o.src0[i]) :
					    a;
		}
	}
	for (uint32_t i = 0; i < n; i++)
		o.dst[i] = ref_store(ct, c->dst.dtype, o.src1[i]);
	write_dst(b, &c->dst, 0, o.dst);
}

static void ref_iota(struct bench *b, const struct isa_inst *in)
{
	static struct operands o;
	const struct isa_compute *c = &in->compute;
	unsigned int ct = c->compute_type;

	for (unsigned int p = 0; p < c->dst.nparts; p++) {
		struct value number = ref_ct_float(ct) ? ref_round(ct, p) :
							 (struct value){ .i = p };
		struct value base = ref_alu(ct, ISA_ADD, ref_imm(ct, c->imm0),
					    ref_alu(ct, ISA_MULT, ref_imm(ct, c->imm1), number));

		for (uint32_t n = 0; n < ref_elems(&c->dst); n++) {
			int64_t sum = 0;
			uint32_t rest = n;
			struct value term;

			for (int d = ISA_TILE_DIMS - 1; d >= 0; d--) {
				sum += (int64_t)(rest % c->dst.count[d]) * (int32_t)c->src0.step[d];
				rest /= c->dst.count[d];
			}
			term = ref_ct_float(ct) ?
				       ref_round(ct, (long double)sum) :
				       (struct value){ .i = ref_wrap(ct, (uint64_t)sum) };
			o.dst[n] = ref_store(ct, c->dst.dtype, ref_alu(ct, ISA_ADD, base, term));
		}
		write_dst(b, &c->dst, p, o.dst);
	}
}

/* --- comparison ------------------------------------------------------------------------------ */

/* Number that a pattern stands for. */
static long double number(unsigned int dtype, uint64_t u)
{
	struct format f = ref_format(dtype);

	if (f.is_float)
		return ref_unpack(f, u);
	return f.is_signed ? (long double)((int64_t)(u << (64 - f.bits)) >> (64 - f.bits)) :
			     (long double)u;
}

/* loose: results may be off by the last place of the compute type (then of the dtype). */
static bool same(unsigned int dtype, unsigned int ct, uint64_t want, uint64_t got, bool loose)
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
static void compare(struct bench *b, const struct isa_inst *in, bool loose)
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

static void run(struct bench *b, unsigned int engine, const struct isa_inst *in)
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

static unsigned int random_dtype(struct bench *b, unsigned int engine)
{
	unsigned int dtype;

	do
		dtype = dtypes[pick(b, N_DTYPES)];
	while (engine != ISA_GPSIMD && isa_dtype_bytes(dtype) == 8);
	return dtype;
}

static bool op_legal(unsigned int engine, unsigned int ct, unsigned int op)
{
	if (op >= ISA_BIT_AND && ref_ct_float(ct))
		return false;
	return !(engine == ISA_VECTOR && ct == ISA_CT_I32) || op == ISA_BYPASS || op == ISA_MAX ||
	       op == ISA_MIN || op >= ISA_IS_EQ;
}

static unsigned int random_op(struct bench *b, unsigned int engine, unsigned int ct)
{
	unsigned int op;

	do
		op = pick(b, ISA_ALU_OPS);
	while (!op_legal(engine, ct, op));
	return op;
}

static uint64_t random_imm(struct bench *b, unsigned int ct)
{
	uint64_t u = random_element(b, ct == ISA_CT_F32 ? ISA_FP32 :
				       ct == ISA_CT_F64 ? ISA_FP64 :
				       ct == ISA_CT_I32 ? ISA_INT32 :
							  ISA_INT64);

	return ct == ISA_CT_I32 ? (uint64_t)(int32_t)u : u;
}

static void random_scalar(struct bench *b, struct isa_inst *in, unsigned int k, unsigned int engine,
			  uint32_t base)
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

static struct isa_tile random_source(struct bench *b, const struct isa_compute *c, unsigned int k,
				     unsigned int dtype)
{
	struct isa_tile t =
		random_tile(b, dtype, c->dst.count, c->dst.nparts, REGION(k), ROOM * 4 / 3, true);
	unsigned int kind = pick(b, 12);

	if (kind == 0 && isa_dtype_bytes(dtype) == isa_dtype_bytes(c->dst.dtype)) {
		t = c->dst; /* in place */
		t.dtype = (uint8_t)dtype;
	} else if (kind == 1) {
		t.offset = t.offset - REGION(k) + REGION(0); /* over dst, some other way */
	}
	randomise(b, &t);
	return t;
}

static struct isa_tile packed_or_random(struct bench *b, unsigned int dtype, const uint32_t *count,
					unsigned int nparts, uint32_t base)
{
	uint32_t n = count[0] * count[1] * count[2] * count[3];

	if (pick(b, 3) == 0 && n * isa_dtype_bytes(dtype) <= ROOM) {
		struct isa_tile t = random_tile(b, dtype, count, nparts, base, ROOM * 4 / 3, false);

		for (unsigned int d = 0; d < ISA_TILE_DIMS; d++)
			t.step[d] = 0;
		t.step[3] = 1;
		t.step[2] = count[3];
		t.step[1] = count[3] * count[2];
		t.step[0] = count[3] * count[2] * count[1];
		t.offset = base;
		return t;
	}
	return random_tile(b, dtype, count, nparts, base, ROOM * 4 / 3, false);
}

static bool fits(const uint32_t *count, unsigned int dtype)
{
	uint32_t n = count[0] * count[1] * count[2] * count[3];

	/* Gaps of random_tile() at most double each of two dims. */
	return n * isa_dtype_bytes(dtype) <= ROOM / 4 ||
	       (count[0] * count[1] * count[2] == 1 && n * isa_dtype_bytes(dtype) <= ROOM / 3);
}

struct choice {
	unsigned int engine, ct;
};

static const struct choice choices[] = {
	{ ISA_VECTOR, ISA_CT_F32 }, { ISA_VECTOR, ISA_CT_I32 }, { ISA_GPSIMD, ISA_CT_F32 },
	{ ISA_GPSIMD, ISA_CT_I32 }, { ISA_GPSIMD, ISA_CT_I64 }, { ISA_GPSIMD, ISA_CT_F64 },
};

static void elementwise_round(struct bench *b, unsigned int round)
{
	static const uint8_t opcodes[] = { ISA_MEMSET,
					   ISA_COPY,
					   ISA_TENSOR_TENSOR,
					   ISA_TENSOR_SCALAR,
					   ISA_SCALAR_TENSOR_TENSOR,
					   ISA_TENSOR_TENSOR };
	struct choice ch = choices[round % 6];
	struct isa_inst in = { .opcode = opcodes[round / 6 % 6] };
	struct isa_compute *c = &in.compute;
	unsigned int dtype = random_dtype(b, ch.engine);
	bool loose = false;
	uint32_t count[ISA_TILE_DIMS];

	do
		random_shape(b, count);
	while (!fits(count, dtype) || !fits(count, ISA_FP64));
	if (in.opcode == ISA_TENSOR_SCALAR && ch.ct == ISA_CT_F32 && pick(b, 3) == 0)
		ch.engine = ISA_SCALAR;
	if (ch.engine != ISA_GPSIMD && isa_dtype_bytes(dtype) == 8)
		dtype = ISA_FP32;
	c->compute_type = (uint8_t)ch.ct;
	if ((in.opcode == ISA_COPY || in.opcode == ISA_MEMSET) && pick(b, 4) == 0)
		c->compute_type = ISA_CT_BITS;
	c->dst = packed_or_random(b, dtype, count, 1 + pick(b, 8), REGION(0));
	if (in.opcode != ISA_MEMSET)
		c->src0 = random_source(
			b, c, 1,
			c->compute_type == ISA_CT_BITS ? dtype : random_dtype(b, ch.engine));
	if (in.opcode == ISA_TENSOR_TENSOR || in.opcode == ISA_SCALAR_TENSOR_TENSOR)
		c->src1 = random_source(b, c, 2, random_dtype(b, ch.engine));
	if (in.opcode == ISA_MEMSET)
		c->imm0 = c->compute_type == ISA_CT_BITS ? rnd(b) : random_imm(b, ch.ct);
	if (in.opcode == ISA_TENSOR_TENSOR || in.opcode == ISA_TENSOR_SCALAR ||
	    in.opcode == ISA_SCALAR_TENSOR_TENSOR)
		c->op0 = (uint8_t)random_op(b, ch.engine, ch.ct);
	if (in.opcode == ISA_TENSOR_SCALAR || in.opcode == ISA_SCALAR_TENSOR_TENSOR) {
		c->op1 = (uint8_t)random_op(b, ch.engine, ch.ct);
		in.flags = (uint8_t)(pick(b, 4) << 1);
		random_scalar(b, &in, 0, ch.engine, COLUMNS);
	}
	if (in.opcode == ISA_TENSOR_SCALAR)
		random_scalar(b, &in, 1, ch.engine, COLUMNS + 8);
	/* A power that is off by one place can come out anyhow after a second operation. */
	if (ref_ct_float(ch.ct) && (c->op0 == ISA_POW || c->op1 == ISA_POW)) {
		if (in.opcode != ISA_TENSOR_TENSOR)
			c->op1 = ISA_BYPASS, in.flags &= (uint8_t)~ISA_F_REV1;
		loose = true;
	}
	upload(b);
	run(b, ch.engine, &in);
	ref_elementwise(b, &in);
	compare(b, &in, loose);
}

static void test_elementwise(void **state)
{
	for (unsigned int i = 0; i < ROUNDS; i++)
		elementwise_round(*state, i);
}

/* Each operation in each compute type with long packed rows, where vector code is used. */
static void test_every_operation(void **state)
{
	struct bench *b = *state;
	uint32_t count[ISA_TILE_DIMS] = { 1, 1, 1, 131 };

	for (unsigned int i = 0; i < sizeof(choices) / sizeof(choices[0]); i++)
		for (unsigned int op = 0; op < ISA_ALU_OPS; op++)
			for (unsigned int d = 0; d < N_DTYPES; d++) {
				struct isa_inst in = { .opcode = ISA_TENSOR_TENSOR };
				struct isa_compute *c = &in.compute;
				unsigned int dtype = dtypes[d];

				if (!op_legal(choices[i].engine, choices[i].ct, op) ||
				    (choices[i].engine != ISA_GPSIMD &&
				     isa_dtype_bytes(dtype) == 8))
					continue;
				c->compute_type = (uint8_t)choices[i].ct;
				c->op0 = (uint8_t)op;
				c->dst = asm_row(ISA_SPACE_SBUF, dtype, 0, 2, REGION(0), count[3]);
				c->src0 = asm_row(ISA_SPACE_SBUF, dtype, 0, 2, REGION(1), count[3]);
				c->src1 = asm_row(ISA_SPACE_SBUF, dtype, 0, 2, REGION(2), count[3]);
				randomise(b, &c->src0);
				randomise(b, &c->src1);
				upload(b);
				run(b, choices[i].engine, &in);
				ref_elementwise(b, &in);
				compare(b, &in, op == ISA_POW && ref_ct_float(choices[i].ct));
			}
}

static void test_predicated(void **state)
{
	struct bench *b = *state;

	for (unsigned int i = 0; i < ROUNDS / 6; i++) {
		struct choice ch = choices[i % 6];
		struct isa_inst in = { .opcode = ISA_COPY_PREDICATED };
		struct isa_compute *c = &in.compute;
		unsigned int dtype = random_dtype(b, ch.engine);
		uint32_t count[ISA_TILE_DIMS];

		do
			random_shape(b, count);
		while (!fits(count, ISA_FP64));
		c->compute_type = pick(b, 3) ? (uint8_t)ch.ct : ISA_CT_BITS;
		c->dst = packed_or_random(b, dtype, count, 1 + pick(b, 8), REGION(0));
		randomise(b, &c->dst);
		c->src0 = random_source(b, c, 1, random_dtype(b, ch.engine));
		if (pick(b, 2)) {
			in.flags = ISA_F_IMM;
			c->imm0 = c->compute_type == ISA_CT_BITS ? rnd(b) : random_imm(b, ch.ct);
		} else {
			c->src1 = random_source(b, c, 2,
						c->compute_type == ISA_CT_BITS ?
							dtype :
							random_dtype(b, ch.engine));
		}
		upload(b);
		run(b, ch.engine, &in);
		ref_predicated(b, &in);
		compare(b, &in, false);
	}
}

static void test_reduce(void **state)
{
	static const uint8_t ops[] = { ISA_ADD,		ISA_MULT,	ISA_MAX,     ISA_MIN,
				       ISA_LOGICAL_AND, ISA_LOGICAL_OR, ISA_BIT_AND, ISA_BIT_OR };
	struct bench *b = *state;

	for (unsigned int i = 0; i < ROUNDS / 3; i++) {
		struct choice ch = choices[i % 6];
		bool across = ch.engine == ISA_GPSIMD && pick(b, 3) == 0;
		struct isa_inst in = { .opcode = across ? ISA_PARTITION_REDUCE : ISA_REDUCE };
		struct isa_compute *c = &in.compute;
		unsigned int dtype = random_dtype(b, ch.engine), nparts = 1 + pick(b, 8);
		uint32_t count[ISA_TILE_DIMS], results[ISA_TILE_DIMS];

		do
			random_shape(b, count);
		while (!fits(count, ISA_FP64));
		if (pick(b, 3) == 0) { /* many results of few elements */
			uint32_t swap = count[2];

			count[2] = count[3];
			count[3] = swap;
		}
		memcpy(results, count, sizeof(count));
		do
			c->op0 = ops[pick(b, 8)];
		while (!op_legal(ch.engine, ch.ct, c->op0));
		c->compute_type = (uint8_t)ch.ct;
		if (!across) {
			c->n_axes = (uint8_t)(1 + pick(b, ISA_TILE_DIMS));
			for (unsigned int d = ISA_TILE_DIMS - c->n_axes; d < ISA_TILE_DIMS; d++)
				results[d] = 1;
		}
		c->dst =
			random_tile(b, dtype, results, across ? 1 : nparts, REGION(0), ROOM, false);
		c->src0 = random_tile(b, random_dtype(b, ch.engine), count, nparts,
				      pick(b, 8) ? REGION(1) : REGION(0), ROOM * 4 / 3, true);
		randomise(b, &c->src0);
		upload(b);
		run(b, ch.engine, &in);
		if (across)
			ref_partition_reduce(b, &in);
		else
			ref_reduce(b, &in);
		compare(b, &in, false);
	}
}

static void test_iota(void **state)
{
	struct bench *b = *state;

	for (unsigned int i = 0; i < ROUNDS / 10; i++) {
		static const uint8_t cts[] = { ISA_CT_F32, ISA_CT_I32, ISA_CT_I64, ISA_CT_F64 };
		struct isa_inst in = { .opcode = ISA_IOTA };
		struct isa_compute *c = &in.compute;
		uint32_t count[ISA_TILE_DIMS];

		do
			random_shape(b, count);
		while (!fits(count, ISA_FP64));
		c->compute_type = cts[i % 4];
		c->dst = packed_or_random(b, random_dtype(b, ISA_GPSIMD), count, 1 + pick(b, 8),
					  REGION(0));
		c->imm0 = random_imm(b, c->compute_type);
		c->imm1 = random_imm(b, c->compute_type);
		for (unsigned int d = 0; d < ISA_TILE_DIMS; d++)
			c->src0.step[d] = pick(b, 4) ? pick(b, 2000) - 1000 : (uint32_t)rnd(b);
		upload(b);
		run(b, ISA_GPSIMD, &in);
		ref_iota(b, &in);
		compare(b, &in, false);
	}
}

static int setup(void **state)
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

static int teardown(void **state)
{
	struct bench *b = *state;

	rig_destroy(b->rig);
	free(b->want);
	free(b->got);
	free(b);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_every_operation, setup, teardown),
		cmocka_unit_test_setup_teardown(test_elementwise, setup, teardown),
		cmocka_unit_test_setup_teardown(test_predicated, setup, teardown),
		cmocka_unit_test_setup_teardown(test_reduce, setup, teardown),
		cmocka_unit_test_setup_teardown(test_iota, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
