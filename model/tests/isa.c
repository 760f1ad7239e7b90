// SPDX-License-Identifier: Apache-2.0
/*
 * Every opcode, dtype, compute type and operation against reference.h: random instructions on random
 * operands, after which all memory must be as the reference leaves it.
 */
#include "bench.h"

#define ROUNDS 3000

/* --- the reference's instructions ----------------------------------------------------------- */

static struct value reduce(unsigned int ct, unsigned int op, const struct value *v, uint32_t n)
{
	struct value lane[16], identity = { 0 };

	if (op == ISA_MULT || op == ISA_LOGICAL_AND)
		identity = (struct value){ 1, 1 };
	else if (op == ISA_BIT_AND)
		identity.i = -1;
	else if (op == ISA_MAX)
		identity = (struct value){ -INFINITY, ct == ISA_CT_I32 ? INT32_MIN : INT64_MIN };
	else if (op == ISA_MIN || op == ISA_ABS_MIN)
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

/* A result of REDUCE. */
static struct value reduced(const struct isa_inst *in, const struct value *v, uint32_t n)
{
	const struct isa_compute *c = &in->compute;
	struct value r = reduce(c->compute_type, c->op0, v, n);

	if (in->flags & ISA_F_NEGATE) {
		r.x = -r.x;
		r.i = ref_wrap(c->compute_type, -(uint64_t)r.i);
	}
	return r;
}

static void ref_reduce(struct bench *b, const struct isa_inst *in)
{
	static struct operands o;
	const struct isa_compute *c = &in->compute;
	uint32_t results = ref_elems(&c->dst), each = ref_elems(&c->src0) / results;

	for (unsigned int p = 0; p < c->dst.nparts; p++) {
		read_tile(b, c->compute_type, &c->src0, p, o.src0);
		for (uint32_t n = 0; n < results; n++)
			o.dst[n] = ref_store(c->compute_type, c->dst.dtype,
					     reduced(in, o.src0 + n * each, each));
		write_dst(b, &c->dst, p, o.dst);
	}
}

/* Whether the result of one element is this element. */
static bool is_kept(unsigned int op)
{
	return op != ISA_LOGICAL_AND && op != ISA_LOGICAL_OR && op != ISA_ABS_MAX &&
	       op != ISA_ABS_MIN;
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

			o.src1[i] = p || !is_kept(c->op0) ? ref_alu(ct, c->op0, a, o.src0[i]) : a;
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

static bool op_legal(unsigned int engine, unsigned int ct, unsigned int op)
{
	if (op >= ISA_BIT_AND && op <= ISA_ASR && ref_ct_float(ct))
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

static bool may_negate(struct choice ch, unsigned int op)
{
	return op != ISA_BIT_AND && op != ISA_BIT_OR && op_legal(ch.engine, ch.ct, ISA_MULT);
}

static void test_reduce(void **state)
{
	static const uint8_t ops[] = { ISA_ADD,		ISA_MULT,	ISA_MAX,     ISA_MIN,
				       ISA_LOGICAL_AND, ISA_LOGICAL_OR, ISA_BIT_AND, ISA_BIT_OR,
				       ISA_ABS_MAX,	ISA_ABS_MIN };
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
			c->op0 = ops[pick(b, sizeof(ops))];
		while (!op_legal(ch.engine, ch.ct, c->op0));
		c->compute_type = (uint8_t)ch.ct;
		if (!across) {
			c->n_axes = (uint8_t)(1 + pick(b, ISA_TILE_DIMS));
			for (unsigned int d = ISA_TILE_DIMS - c->n_axes; d < ISA_TILE_DIMS; d++)
				results[d] = 1;
			if (pick(b, 3) == 0 && may_negate(ch, c->op0))
				in.flags = ISA_F_NEGATE;
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
