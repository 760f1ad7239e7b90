// SPDX-License-Identifier: Apache-2.0
/* SELECT_REDUCE, TENSOR_SCALAR_REDUCE, RANGE_SELECT: results, what is refused, what is touched, time. */
#include "bench.h"
#include "single.h"

#define ROUNDS 500
#define RESULT (COLUMNS + 64)

static const uint8_t floats[] = { ISA_FP32, ISA_BF16, ISA_FP16 };

/* --- reference -------------------------------------------------------------------------------- */

/* As the page has it for REDUCE. */
static struct value ref_row(unsigned int op, const struct value *v, uint32_t n)
{
	struct value lane[16];

	for (unsigned int l = 0; l < 16; l++)
		lane[l].x = op == ISA_ADD  ? 0 :
			    op == ISA_MULT ? 1 :
			    op == ISA_MAX  ? -(long double)INFINITY :
					     (long double)INFINITY;
	for (uint32_t i = 0; i < n; i++)
		lane[i % 16] = ref_alu(ISA_CT_F32, op, lane[i % 16], v[i]);
	for (unsigned int half = 8; half; half /= 2)
		for (unsigned int l = 0; l < half; l++)
			lane[l] = ref_alu(ISA_CT_F32, op, lane[l], lane[l + half]);
	return lane[0];
}

/* The result of partition p, of a dtype, at want, if there is one (dtype is not 0). */
static void ref_result(unsigned int op, const struct value *v, uint32_t n, unsigned int dtype,
		       unsigned int flags, uint8_t *want)
{
	struct value r = ref_row(op, v, n);
	uint64_t bits;

	if (flags & ISA_F_ACCUM)
		r = ref_alu(ISA_CT_F32, op, ref_load(ISA_CT_F32, dtype, want), r);
	if (flags & ISA_F_NEGATE)
		r.x = -r.x;
	bits = ref_store(ISA_CT_F32, dtype, r);
	memcpy(want, &bits, isa_dtype_bytes(dtype));
}

static void ref_select(const struct isa_inst *in, uint32_t n, const struct value *v0,
		       const struct value *v1, struct value s0, struct value *row)
{
	for (uint32_t i = 0; i < n; i++)
		row[i] = (v0[i].x != 0) != !!(in->flags & ISA_F_REV0) ? v1[i] : s0;
}

static void ref_scalar(const struct isa_inst *in, uint32_t n, const struct value *v0,
		       struct value s0, struct value *row)
{
	for (uint32_t i = 0; i < n; i++)
		row[i] = in->flags & ISA_F_REV0 ? ref_alu(ISA_CT_F32, in->compute.op0, s0, v0[i]) :
						  ref_alu(ISA_CT_F32, in->compute.op0, v0[i], s0);
}

static struct value bound(struct bench *b, const struct isa_column *col, unsigned int p)
{
	return ref_load(ISA_CT_F32, ISA_FP32, at(b->want, col->part0 + p, col->offset));
}

static void ref_range(struct bench *b, const struct isa_inst *in, unsigned int p, uint32_t n,
		      const struct value *v0, struct value *row)
{
	const struct isa_compute *c = &in->compute;
	struct value b0 = bound(b, &c->vec0, p), b1 = bound(b, &c->vec1, p);

	for (uint32_t i = 0; i < n; i++) {
		struct value k = ref_round(ISA_CT_F32, i + ref_imm(ISA_CT_F32, c->imm0).x);
		bool in_range = ref_alu(ISA_CT_F32, c->op0, k, b0).x != 0 &&
				ref_alu(ISA_CT_F32, c->op1, k, b1).x != 0;

		row[i] = in_range ? v0[i] : ref_imm(ISA_CT_F32, c->imm1);
	}
}

static void reference(struct bench *b, const struct isa_inst *in)
{
	static struct value v0[ELEMS], v1[ELEMS], row[ELEMS];
	static uint64_t out[ELEMS];
	const struct isa_compute *c = &in->compute;
	const bool range = in->opcode == ISA_RANGE_SELECT;
	const unsigned int dtype = range ? c->src1.dtype : c->vec1.dtype;
	const unsigned int part0 = range ? c->src1.part0 : c->vec1.part0;
	const uint32_t n = ref_elems(&c->dst), offset = range ? c->src1.offset : c->vec1.offset;
	const unsigned int op = in->opcode == ISA_TENSOR_SCALAR_REDUCE ? c->op1 : ISA_MAX;

	for (unsigned int p = 0; p < c->dst.nparts; p++) {
		read_tile(b, ISA_CT_F32, &c->src0, p, v0);
		if (range) {
			ref_range(b, in, p, n, v0, row);
		} else if (in->opcode == ISA_SELECT_REDUCE) {
			read_tile(b, ISA_CT_F32, &c->src1, p, v1);
			ref_select(in, n, v0, v1, scalar(b, in, 0, p), row);
		} else {
			ref_scalar(in, n, v0, scalar(b, in, 0, p), row);
		}
		for (uint32_t i = 0; i < n; i++)
			out[i] = ref_store(ISA_CT_F32, c->dst.dtype, row[i]);
		write_dst(b, &c->dst, p, out);
		if (dtype)
			ref_result(op, row, n, dtype, in->flags, at(b->want, part0 + p, offset));
	}
}

/* --- random instructions ----------------------------------------------------------------------- */

/* Numbers without a NaN, whose bits are not defined in the result column. */
static struct isa_tile result_of(struct bench *b, unsigned int nparts)
{
	struct isa_tile t =
		asm_row(ISA_SPACE_SBUF, floats[pick(b, 3)], pick(b, 2) * 32, nparts, RESULT, 1);

	randomise(b, &t);
	return t;
}

static void random_result(struct bench *b, struct isa_inst *in)
{
	struct isa_tile t;

	if (pick(b, 4) == 0)
		return;
	t = result_of(b, in->compute.dst.nparts);
	if (pick(b, 2))
		in->flags |= ISA_F_ACCUM;
	if (in->opcode == ISA_RANGE_SELECT) {
		in->compute.src1 = t;
		return;
	}
	in->flags |= ISA_F_VEC1;
	if (in->opcode == ISA_TENSOR_SCALAR_REDUCE && pick(b, 3) == 0)
		in->flags |= ISA_F_NEGATE;
	in->compute.vec1 =
		(struct isa_column){ .offset = t.offset, .dtype = t.dtype, .part0 = t.part0 };
}

/* Bounds among the elements, sometimes anything. */
static void random_bounds(struct bench *b, struct isa_compute *c, uint32_t n)
{
	for (unsigned int k = 0; k < 2; k++) {
		struct isa_column *col = k ? &c->vec1 : &c->vec0;
		struct isa_tile t = asm_row(ISA_SPACE_SBUF, ISA_FP32, pick(b, 2) * 32,
					    c->dst.nparts, COLUMNS + 16 + 8 * k, 1);

		randomise(b, &t);
		for (unsigned int p = 0; p < t.nparts; p++) {
			float x = (float)pick(b, n + 3) - 1 + (pick(b, 3) ? 0 : 0.5f);

			if (pick(b, 8))
				memcpy(at(b->want, t.part0 + p, t.offset), &x, sizeof(x));
		}
		*col = (struct isa_column){ .offset = t.offset,
					    .dtype = t.dtype,
					    .part0 = t.part0 };
	}
}

static uint8_t range_op(struct bench *b)
{
	static const uint8_t ops[] = { ISA_IS_EQ, ISA_IS_GT, ISA_IS_GE, ISA_IS_LT, ISA_IS_LE };

	return ops[pick(b, 5)];
}

static void random_operands(struct bench *b, struct isa_inst *in, const uint32_t *count,
			    unsigned int nparts)
{
	static const uint8_t reductions[] = { ISA_ADD, ISA_MULT, ISA_MAX, ISA_MIN };
	static const uint8_t predicates[] = { ISA_INT8, ISA_UINT8, ISA_INT16, ISA_UINT16 };
	struct isa_compute *c = &in->compute;
	unsigned int dtype = random_dtype(b, ISA_VECTOR);

	if (in->opcode == ISA_SELECT_REDUCE)
		dtype = predicates[pick(b, 4)];
	else if (in->opcode == ISA_RANGE_SELECT)
		dtype = floats[pick(b, 3)];
	c->src0 = random_tile(b, dtype, count, nparts, pick(b, 5) ? REGION(1) : REGION(0),
			      ROOM * 4 / 3, true);
	randomise(b, &c->src0);
	if (in->opcode == ISA_SELECT_REDUCE) {
		do
			dtype = random_dtype(b, ISA_VECTOR);
		while (dtype == ISA_INT32 || dtype == ISA_UINT32);
		c->src1 = random_tile(b, dtype, count, nparts, REGION(2), ROOM * 4 / 3, true);
		randomise(b, &c->src1);
	}
	if (in->opcode == ISA_RANGE_SELECT) {
		float start = pick(b, 3) ? (float)pick(b, 200) - 100 : 0;
		uint32_t bits;

		memcpy(&bits, &start, sizeof(bits));
		c->op0 = range_op(b);
		c->op1 = range_op(b);
		c->imm0 = bits;
		c->imm1 = random_imm(b, ISA_CT_F32);
		random_bounds(b, c, ref_elems(&c->dst));
		return;
	}
	in->flags = pick(b, 2) ? ISA_F_REV0 : 0;
	random_scalar(b, in, 0, ISA_VECTOR, COLUMNS);
	if (in->opcode == ISA_TENSOR_SCALAR_REDUCE) {
		do
			c->op0 = (uint8_t)pick(b, ISA_BIT_AND);
		while (c->op0 == ISA_POW);
		c->op1 = reductions[pick(b, 4)];
	}
}

/* Takes over a NaN result where a NaN is wanted: its bits are not defined. */
static void accept_nans(struct bench *b, const struct isa_inst *in)
{
	const struct isa_compute *c = &in->compute;
	const bool range = in->opcode == ISA_RANGE_SELECT;
	const unsigned int dtype = range ? c->src1.dtype : c->vec1.dtype;
	const unsigned int part0 = range ? c->src1.part0 : c->vec1.part0;

	download(b);
	for (unsigned int p = 0; dtype && p < c->dst.nparts; p++) {
		uint8_t *w = at(b->want, part0 + p, RESULT), *g = at(b->got, part0 + p, RESULT);

		if (isnan(ref_load(ISA_CT_F32, dtype, w).x) &&
		    isnan(ref_load(ISA_CT_F32, dtype, g).x))
			memcpy(w, g, isa_dtype_bytes(dtype));
	}
}

static void random_one(struct bench *b, unsigned int opcode)
{
	static const uint32_t rows[] = { 1, 2, 7, 16, 17, 33, 100, 128 };
	struct isa_inst in = { .opcode = (uint8_t)opcode };
	unsigned int nparts = 1 + pick(b, 8);
	uint32_t count[ISA_TILE_DIMS] = { 1, 1 + pick(b, 2), 1 + pick(b, 2), rows[pick(b, 8)] };

	in.compute.dst = random_tile(b, random_dtype(b, ISA_VECTOR), count, nparts, REGION(0),
				     ROOM * 4 / 3, false);
	random_operands(b, &in, count, nparts);
	random_result(b, &in);
	upload(b);
	run(b, ISA_VECTOR, &in);
	reference(b, &in);
	accept_nans(b, &in);
	compare(b, &in, false);
}

static void test_random(void **state)
{
	for (unsigned int i = 0; i < ROUNDS; i++)
		for (unsigned int op = ISA_SELECT_REDUCE; op <= ISA_RANGE_SELECT; op++)
			random_one(*state, op);
}

/* What RANGE_SELECT is for: a causal mask and the largest of each row, in two pieces. */
static void test_causal(void **state)
{
	struct program *p = calloc(1, sizeof(*p));
	struct bench *b = *state;
	const float lowest = -FLT_MAX;
	uint32_t bits;

	memcpy(&bits, &lowest, sizeof(bits));
	for (unsigned int q = 0; q < 8; q++) {
		float none = -1, last = 2 * (float)q;

		memcpy(at(b->want, q, COLUMNS), &none, 4);
		memcpy(at(b->want, q, COLUMNS + 4), &last, 4);
		for (unsigned int i = 0; i < 16; i++) {
			float x = (float)i;

			memcpy(at(b->want, q, REGION(1) + 4 * i), &x, 4);
		}
	}
	for (unsigned int k = 0; k < 2; k++) {
		struct isa_inst *in = asm_inst(p, ISA_VECTOR, ISA_RANGE_SELECT);
		struct isa_compute *c = &in->compute;

		c->src0 = asm_row(ISA_SPACE_SBUF, ISA_FP32, 0, 8, REGION(1) + 32 * k, 8);
		c->dst = asm_row(ISA_SPACE_SBUF, ISA_FP32, 0, 8, REGION(0) + 32 * k, 8);
		c->src1 = asm_row(ISA_SPACE_SBUF, ISA_FP32, 0, 8, RESULT, 1);
		c->vec0 = (struct isa_column){ .offset = COLUMNS, .dtype = ISA_FP32 };
		c->vec1 = (struct isa_column){ .offset = COLUMNS + 4, .dtype = ISA_FP32 };
		c->op0 = ISA_IS_GT;
		c->op1 = ISA_IS_LE;
		c->imm0 = k ? 0x41000000 : 0; /* 8 */
		c->imm1 = bits;
		in->flags = k ? ISA_F_ACCUM : 0;
	}
	upload(b);
	assert_int_equal(rig_program(b->rig, p, NULL).status, EXI_OK);
	free(p);
	download(b);
	for (unsigned int q = 0; q < 8; q++) {
		float largest, x;

		memcpy(&largest, at(b->got, q, RESULT), 4);
		assert_true(largest == 2 * (float)q);
		for (unsigned int i = 0; i < 16; i++) {
			memcpy(&x, at(b->got, q, REGION(0) + 4 * i), 4);
			assert_true(x == (i <= 2 * q ? (float)i : lowest));
		}
	}
}

/* --- what is refused ------------------------------------------------------------------------- */

static struct isa_inst good(unsigned int opcode)
{
	struct isa_inst in = { .opcode = (uint8_t)opcode };
	struct isa_compute *c = &in.compute;

	c->dst = asm_row(ISA_SPACE_SBUF, ISA_FP32, 0, 8, 256, 64);
	c->src0 = asm_row(ISA_SPACE_PSUM, ISA_BF16, 32, 8, 2048, 64);
	c->vec0 = (struct isa_column){ .offset = 64, .dtype = ISA_FP32, .part0 = 96 };
	c->vec1 = (struct isa_column){ .offset = 128, .dtype = ISA_FP32, .part0 = 32 };
	if (opcode == ISA_RANGE_SELECT) {
		c->op0 = ISA_IS_GE;
		c->op1 = ISA_IS_LT;
		c->src1 = asm_row(ISA_SPACE_SBUF, ISA_FP32, 64, 8, 512, 1);
		return in;
	}
	in.flags = ISA_F_VEC0 | ISA_F_VEC1;
	if (opcode == ISA_SELECT_REDUCE) {
		c->src0.dtype = ISA_UINT16;
		c->src1 = asm_row(ISA_SPACE_SBUF, ISA_FP32, 64, 8, 1024, 64);
	} else {
		c->op0 = ISA_MULT;
		c->op1 = ISA_MAX;
	}
	return in;
}

static void test_refused(void **state)
{
	(void)state;
	for (unsigned int op = ISA_SELECT_REDUCE; op <= ISA_RANGE_SELECT; op++) {
		const struct isa_inst in = good(op);

		for (unsigned int e = ISA_TENSOR; e <= ISA_SYNC; e++)
			if (e != ISA_VECTOR)
				assert_int_equal(judge(e, &in).status, EXI_FAULT_BAD_OPCODE);
		REFUSE(in, i->compute.compute_type = ISA_CT_I32, ISA_CT_I32, 1 << ISA_CT_F32);
		REFUSE(in, i->compute.n_axes = 1, 1, 0);
		REFUSE(in, i->compute.src0.count[3] = 63, 63, 64);
		REFUSE(in, i->compute.src0.nparts = 7, 7, 8);
		REFUSE(in, i->compute.dst.dtype = ISA_FP64, ISA_FP64, ISA_FP32);
		REFUSE(in, i->compute.vec0.offset = 66, 66, 4);
		REFUSE(in, i->compute.vec0.shift = 255, 255, ISA_REGISTERS);
		REFUSE(in, i->compute.vec1.part0 = 31, 31, ISA_PART_QUANTUM);
		REFUSE(in, i->compute.vec1.dtype = ISA_INT16, ISA_INT16, ISA_FP32);
		REFUSE(in, i->compute.vec1.dtype = 255, 255, ISA_FP32);
		REFUSE_BOUNDS(in, i->compute.vec1.offset = 192 * 1024, 192 * 1024 + 4, 192 * 1024);
		REFUSE_BOUNDS(in, i->compute.src0.offset = NM_PSUM_BYTES - 126, NM_PSUM_BYTES + 2,
			      NM_PSUM_BYTES);
	}
}

/* Without a result beside dst. */
static struct isa_inst none_of(struct isa_inst in)
{
	in.flags = ISA_F_VEC0;
	memset(&in.compute.vec1, 0, sizeof(in.compute.vec1));
	return in;
}

static void test_results_refused(void **state)
{
	const unsigned int vec = ISA_F_VEC0 | ISA_F_VEC1;

	(void)state;
	for (unsigned int op = ISA_SELECT_REDUCE; op < ISA_RANGE_SELECT; op++) {
		const unsigned int negate = op == ISA_TENSOR_SCALAR_REDUCE ? ISA_F_NEGATE : 0;
		const unsigned int flags = vec | ISA_F_REV0 | ISA_F_ACCUM | ISA_F_NOTIFY | negate;
		const struct isa_inst in = good(op);
		const struct isa_inst none = none_of(in);

		if (negate)
			REFUSE(none, i->flags |= negate, ISA_F_VEC0 | negate, vec | negate);
		else
			REFUSE(in, i->flags |= ISA_F_NEGATE, vec | ISA_F_NEGATE, flags);
		REFUSE(in, i->flags |= ISA_F_REV1, vec | ISA_F_REV1, flags);
		REFUSE(in, i->flags |= ISA_F_IMM, vec | ISA_F_IMM, flags);
		REFUSE(in, i->compute.imm0 = 1, 1, 0);
		REFUSE(in, i->compute.imm1 = 1, 1, 0);
		REFUSE(none, i->compute.imm1 = 1, 1, 0);
		REFUSE(none, i->flags |= ISA_F_ACCUM, ISA_F_VEC0 | ISA_F_ACCUM, vec | ISA_F_ACCUM);
		REFUSE(none, i->compute.vec1.offset = 4, 4, 0);
	}
}

static void test_each_refused(void **state)
{
	const struct isa_inst sel = good(ISA_SELECT_REDUCE), red = good(ISA_TENSOR_SCALAR_REDUCE);
	const struct isa_inst range = good(ISA_RANGE_SELECT);
	struct isa_inst none = range;

	(void)state;
	REFUSE(sel, i->compute.op0 = 1, 1, 0);
	REFUSE(sel, i->compute.op1 = 1, 1, 0);
	REFUSE(sel, i->compute.src0.dtype = ISA_BF16, ISA_BF16, ISA_UINT16);
	REFUSE(sel, i->compute.src1.dtype = ISA_UINT32, ISA_UINT32, ISA_FP32);
	REFUSE(sel, i->compute.src1.count[3] = 65, 65, 64);
	REFUSE(sel, i->compute.src1.space = ISA_SPACE_PSUM, ISA_SPACE_PSUM, ISA_SPACE_SBUF);
	REFUSE(red, i->compute.op0 = ISA_BIT_XOR, ISA_BIT_XOR, ISA_BIT_AND);
	REFUSE(red, i->compute.op0 = ISA_ALU_OPS, ISA_ALU_OPS, ISA_ALU_OPS);
	REFUSE(red, i->compute.op1 = ISA_SUB, ISA_SUB, ISA_ADD);
	REFUSE(red, i->compute.op1 = ISA_LOGICAL_OR, ISA_LOGICAL_OR, ISA_ADD);
	REFUSE(red, i->compute.src1.nparts = 8, 8, 0);
	REFUSE(range, i->flags = ISA_F_VEC0, ISA_F_VEC0, ISA_F_ACCUM | ISA_F_NOTIFY);
	REFUSE(range, i->compute.op0 = ISA_IS_NE, ISA_IS_NE, ISA_IS_LE);
	REFUSE(range, i->compute.op1 = ISA_LOGICAL_AND, ISA_LOGICAL_AND, ISA_IS_LE);
	REFUSE(range, i->compute.op1 = ISA_POW + 1, ISA_MOD, ISA_IS_LE);
	REFUSE(range, i->compute.src0.dtype = ISA_INT16, ISA_INT16, ISA_FP32);
	REFUSE(range, i->compute.vec0.dtype = ISA_BF16, ISA_BF16, ISA_FP32);
	REFUSE(range, i->compute.vec1.dtype = 0, 0, ISA_FP32);
	REFUSE(range, i->compute.imm0 = 1ull << 32, 1ull << 32, UINT32_MAX);
	REFUSE(range, i->compute.imm1 = 1ull << 33, 1ull << 33, UINT32_MAX);
	REFUSE(range, i->compute.src1.count[3] = 2, 2, 1);
	REFUSE(range, i->compute.src1.nparts = 9, 9, 8);
	REFUSE(range, i->compute.src1.dtype = ISA_INT32, ISA_INT32, ISA_FP32);
	memset(&none.compute.src1, 0, sizeof(none.compute.src1));
	REFUSE(none, i->flags = ISA_F_ACCUM, 0, 8);
	REFUSE(none, i->compute.src1.offset = 4, 4, 0);
}

/* --- checking mode, time ---------------------------------------------------------------------- */

static void test_accesses(void **state)
{
	struct rig *r = *state;

	for (unsigned int op = ISA_SELECT_REDUCE; op <= ISA_RANGE_SELECT; op++) {
		const struct isa_inst in = good(op);
		bool range = op == ISA_RANGE_SELECT;

		expect_access(r, ISA_VECTOR, &in, ISA_SPACE_SBUF, 0, 7, 256, 512, WRITTEN);
		expect_access(r, ISA_VECTOR, &in, ISA_SPACE_PSUM, 32, 39, 2048, 2176, READ);
		expect_access(r, ISA_VECTOR, &in, ISA_SPACE_SBUF, 96, 103, 64, 68, READ);
		expect_access(r, ISA_VECTOR, &in, ISA_SPACE_SBUF, 32, 39, 128, 132,
			      range ? READ : WRITTEN);
		if (range)
			expect_access(r, ISA_VECTOR, &in, ISA_SPACE_SBUF, 64, 71, 512, 516,
				      WRITTEN);
		if (op == ISA_SELECT_REDUCE)
			expect_access(r, ISA_VECTOR, &in, ISA_SPACE_SBUF, 64, 71, 1024, 1280, READ);
	}
}

/* With ISA_F_ACCUM what is there is read, and must have been written. */
static void test_uninitialised(void **state)
{
	for (unsigned int op = ISA_SELECT_REDUCE; op <= ISA_RANGE_SELECT; op++)
		for (unsigned int adds = 0; adds < 2; adds++) {
			struct rig *r = rig_create_checking(NM_CHECK_UNINIT);
			struct program *p = calloc(1, sizeof(*p));
			struct isa_inst in = good(op);
			struct isa_inst *set = asm_inst(p, ISA_VECTOR, ISA_MEMSET);
			struct exi_record rec;

			/* All that is read but the result. */
			set->compute.dst = asm_row(ISA_SPACE_PSUM, ISA_BF16, 32, 8, 2048, 64);
			set = asm_inst(p, ISA_VECTOR, ISA_MEMSET);
			set->compute.dst = asm_row(ISA_SPACE_SBUF, ISA_FP32, 96, 8, 64, 1);
			set = asm_inst(p, ISA_VECTOR, ISA_MEMSET);
			set->compute.dst =
				op == ISA_RANGE_SELECT ?
					asm_row(ISA_SPACE_SBUF, ISA_FP32, 32, 8, 128, 1) :
					asm_row(ISA_SPACE_SBUF, ISA_FP32, 64, 8, 1024, 64);
			in.flags |= adds ? ISA_F_ACCUM : 0;
			*asm_inst(p, ISA_VECTOR, op) = in;
			rig_queue(r, 0, 1);
			rec = rig_program(r, p, NULL);
			free(p);
			assert_int_equal(rec.status, adds ? EXI_FAULT_UNINITIALISED : EXI_OK);
			rig_destroy(r);
		}
	(void)state;
}

/* An element a cycle, on trn1 one of each input, and 64 for the reduction. */
static void test_time(void **state)
{
	static const struct {
		uint32_t arch;
		uint64_t hz, inputs;
	} chips[] = {
		{ NEURON_ARCH_V2, 1120000000, 2 },
		{ NEURON_ARCH_V3, 960000000, 1 },
		{ NEURON_ARCH_V4, 1200000000, 1 },
	};

	(void)state;
	for (unsigned int k = 0; k < 9; k++) {
		unsigned int op = ISA_SELECT_REDUCE + k / 3;
		uint64_t hz = chips[k % 3].hz, cycles = 2048 + 64 + 60;
		struct isa_inst in = good(op);

		/* Since trn2. */
		if (op == ISA_RANGE_SELECT && chips[k % 3].arch == NEURON_ARCH_V2)
			continue;
		in.compute.dst.count[3] = in.compute.src0.count[3] = 2048;
		if (op == ISA_SELECT_REDUCE) {
			in.compute.src1.count[3] = 2048;
			in.compute.src1.offset = 16384;
			cycles += 2048 * (chips[k % 3].inputs - 1);
		}
		expect_cycles(chips[k % 3].arch, &in, cycles, hz);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_random, setup, teardown),
		cmocka_unit_test_setup_teardown(test_causal, setup, teardown),
		cmocka_unit_test_setup_teardown(test_accesses, racing_setup, rig_teardown),
		cmocka_unit_test(test_uninitialised),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_results_refused),
		cmocka_unit_test(test_each_refused),
		cmocka_unit_test(test_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
