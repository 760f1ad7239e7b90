// SPDX-License-Identifier: Apache-2.0
/* MAX8, FIND_INDEX8 and MATCH_REPLACE8: results, what is refused, what is read and written, time. */
#include "bench.h"
#include "single.h"

#define ROUNDS 400
#define VALUES REGION(2)
#define WHERE  REGION(3)
#define NONE   UINT32_MAX

/* --- reference ---------------------------------------------------------------------------------- */

/* Rank of a number: NaN above all others, both zeros alike. */
static bool less(long double a, long double b)
{
	return isnan(a) ? false : isnan(b) || a < b;
}

static bool alike(long double a, long double b)
{
	return !less(a, b) && !less(b, a);
}

/* Which element is the k-th largest: k elements come before it. */
static uint32_t kth(const struct value *v, uint32_t n, uint32_t k)
{
	for (uint32_t i = 0; i < n; i++) {
		uint32_t before = 0;

		for (uint32_t j = 0; j < n; j++)
			before += less(v[i].x, v[j].x) || (j < i && alike(v[i].x, v[j].x));
		if (before == k)
			return i;
	}
	fail();
	return 0;
}

/* The m-th element, counted from 0, that is like x. */
static uint32_t occurrence(const struct value *v, uint32_t n, long double x, uint32_t m)
{
	for (uint32_t i = 0; i < n; i++)
		if (alike(v[i].x, x) && m-- == 0)
			return i;
	return NONE;
}

/* Where each value is: equal values have theirs in ascending order, or in descending. */
static void places(const struct value *data, uint32_t n, const struct value *value, bool descending,
		   uint32_t *index)
{
	for (unsigned int i = 0; i < ISA_TOP; i++) {
		unsigned int from = descending ? i + 1 : 0, to = descending ? ISA_TOP : i;
		uint32_t m = 0;

		for (unsigned int k = from; k < to; k++)
			m += alike(value[k].x, value[i].x);
		index[i] = occurrence(data, n, value[i].x, m);
	}
}

static void ref_max8(struct bench *b, const struct isa_inst *in)
{
	static struct value v[ELEMS];
	const struct isa_compute *c = &in->compute;

	for (unsigned int p = 0; p < c->src0.nparts; p++) {
		uint64_t top[ISA_TOP];

		read_tile(b, ISA_CT_F32, &c->src0, p, v);
		for (unsigned int k = 0; k < ISA_TOP; k++)
			top[k] = ref_store(ISA_CT_F32, c->dst.dtype,
					   v[kth(v, ref_elems(&c->src0), k)]);
		write_dst(b, &c->dst, p, top);
	}
}

static void ref_find(struct bench *b, const struct isa_inst *in)
{
	static struct value v[ELEMS];
	const struct isa_compute *c = &in->compute;

	for (unsigned int p = 0; p < c->src0.nparts; p++) {
		struct value value[ISA_TOP];
		uint32_t index[ISA_TOP];
		uint64_t out[ISA_TOP];

		read_tile(b, ISA_CT_F32, &c->src0, p, v);
		read_tile(b, ISA_CT_F32, &c->src1, p, value);
		places(v, ref_elems(&c->src0), value, false, index);
		for (unsigned int i = 0; i < ISA_TOP; i++)
			out[i] = index[i];
		write_dst(b, &c->dst, p, out);
	}
}

static void ref_replace(struct bench *b, const struct isa_inst *in)
{
	static struct value v[ELEMS];
	static uint64_t out[ELEMS];
	const struct isa_compute *c = &in->compute;
	const struct isa_column *col = &c->vec1;

	for (unsigned int p = 0; p < c->src0.nparts; p++) {
		struct value value[ISA_TOP];
		uint32_t index[ISA_TOP], n = ref_elems(&c->src0);
		uint32_t bytes = isa_dtype_bytes(col->dtype);

		read_tile(b, ISA_CT_F32, &c->src0, p, v);
		read_tile(b, ISA_CT_F32, &c->src1, p, value);
		places(v, n, value, true, index);
		for (unsigned int i = 0; i < ISA_TOP; i++)
			if (index[i] != NONE)
				v[index[i]] = ref_imm(ISA_CT_F32, c->imm0);
		for (uint32_t i = 0; i < n; i++)
			out[i] = ref_store(ISA_CT_F32, c->dst.dtype, v[i]);
		write_dst(b, &c->dst, p, out);
		for (unsigned int i = 0; bytes && i < ISA_TOP; i++)
			memcpy(at(b->want, col->part0 + p, col->offset + i * bytes), &index[i],
			       bytes);
	}
}

/* --- random instructions -------------------------------------------------------------------------- */

/* At least 8 elements, in up to three dims. */
static void many(struct bench *b, uint32_t *count)
{
	static const uint32_t rows[] = { 8, 9, 16, 31, 64, 100, 127, 128 };

	count[0] = 1;
	count[1] = pick(b, 2) ? 1 : 2;
	count[2] = 1 + pick(b, 2);
	count[3] = rows[pick(b, sizeof(rows) / sizeof(rows[0]))];
}

static void eight(struct bench *b, uint32_t *count)
{
	static const uint32_t shapes[][ISA_TILE_DIMS] = {
		{ 1, 1, 1, 8 }, { 1, 1, 2, 4 }, { 1, 1, 8, 1 }, { 1, 1, 4, 2 }, { 2, 2, 1, 2 },
	};

	memcpy(count, shapes[pick(b, 5)], sizeof(shapes[0]));
}

/* Few numbers, so that many are equal; or any. */
static void fill(struct bench *b, const struct isa_tile *t)
{
	static const long double few[] = { 0, 1, 2, 3, 100, 7 };
	struct format f = ref_format(t->dtype);

	randomise(b, t);
	if (pick(b, 2))
		return;
	for (unsigned int p = 0; p < t->nparts; p++)
		for (uint32_t n = 0; n < ref_elems(t); n++) {
			long double x = few[pick(b, 6)];
			uint64_t u = f.is_float ? ref_pack(f, pick(b, 9) ? x : -x) : (uint64_t)x;

			memcpy(at(b->want, t->part0 + p, ref_offset(t, n)), &u,
			       isa_dtype_bytes(t->dtype));
		}
}

/* Elements of src0, and some that may not be there. */
static void choose_values(struct bench *b, const struct isa_tile *data, const struct isa_tile *t)
{
	fill(b, t);
	for (unsigned int p = 0; p < t->nparts; p++)
		for (uint32_t n = 0; n < ISA_TOP; n++)
			if (pick(b, 5))
				memcpy(at(b->want, t->part0 + p, ref_offset(t, n)),
				       at(b->want, data->part0 + p,
					  ref_offset(data, pick(b, ref_elems(data)))),
				       isa_dtype_bytes(t->dtype));
}

static unsigned int index_dtype(struct bench *b)
{
	return pick(b, 2) ? ISA_UINT16 : ISA_UINT32;
}

static struct isa_inst random_searching(struct bench *b, unsigned int opcode)
{
	struct isa_inst in = { .opcode = (uint8_t)opcode };
	struct isa_compute *c = &in.compute;
	unsigned int nparts = 1 + pick(b, 8), dtype = random_dtype(b, ISA_VECTOR);
	uint32_t count[ISA_TILE_DIMS], top[ISA_TILE_DIMS];

	many(b, count);
	eight(b, top);
	c->src0 = random_tile(b, dtype, count, nparts, REGION(1), ROOM * 4 / 3, pick(b, 4) == 0);
	fill(b, &c->src0);
	if (opcode != ISA_MAX8) {
		c->src1 = random_tile(b, dtype, top, nparts, VALUES, ROOM, false);
		choose_values(b, &c->src0, &c->src1);
	}
	if (opcode == ISA_MAX8)
		c->dst = random_tile(b, random_dtype(b, ISA_VECTOR), top, nparts, REGION(0), ROOM,
				     false);
	else if (opcode == ISA_FIND_INDEX8)
		c->dst = random_tile(b, index_dtype(b), top, nparts, REGION(0), ROOM, false);
	else if (pick(b, 3) == 0)
		c->dst = random_tile(b, dtype, count, nparts, REGION(1), ROOM * 4 / 3, false);
	else
		c->dst = random_tile(b, random_dtype(b, ISA_VECTOR), count, nparts, REGION(0),
				     ROOM * 4 / 3, false);
	if (opcode != ISA_MATCH_REPLACE8)
		return in;
	c->imm0 = random_imm(b, ISA_CT_F32);
	if (pick(b, 2)) {
		in.flags = ISA_F_VEC1;
		c->vec1 = (struct isa_column){ .offset = WHERE,
					       .dtype = (uint8_t)index_dtype(b),
					       .part0 = (uint8_t)(32 * pick(b, 2)) };
	}
	return in;
}

static void rounds(struct bench *b, unsigned int opcode,
		   void (*reference)(struct bench *b, const struct isa_inst *in))
{
	for (unsigned int i = 0; i < ROUNDS; i++) {
		struct isa_inst in = random_searching(b, opcode);

		upload(b);
		run(b, ISA_VECTOR, &in);
		reference(b, &in);
		compare(b, &in, false);
	}
}

static void test_max8(void **state)
{
	rounds(*state, ISA_MAX8, ref_max8);
}

static void test_find_index8(void **state)
{
	rounds(*state, ISA_FIND_INDEX8, ref_find);
}

static void test_match_replace8(void **state)
{
	rounds(*state, ISA_MATCH_REPLACE8, ref_replace);
}

/* The most elements, the last of which are the largest; indices need all of 14 bits. */
static void test_longest(void **state)
{
	struct bench *b = *state;
	struct isa_inst in = { .opcode = ISA_MAX8 };
	struct isa_compute *c = &in.compute;
	const uint32_t top = 2 * ISA_TOP_ELEMS_MAX - 256, index = top + 64;
	uint8_t *row = at(b->want, 0, 0);
	uint16_t got[ISA_TOP];

	for (uint32_t i = 0; i < ISA_TOP_ELEMS_MAX; i++)
		row[i] = (uint8_t)(i < ISA_TOP_ELEMS_MAX - ISA_TOP ? i % 200 : 200 + i % ISA_TOP);
	c->src0 = asm_row(ISA_SPACE_SBUF, ISA_UINT8, 0, 1, 0, ISA_TOP_ELEMS_MAX);
	c->dst = asm_row(ISA_SPACE_SBUF, ISA_UINT8, 0, 1, top, ISA_TOP);
	upload(b);
	run(b, ISA_VECTOR, &in);
	in.opcode = ISA_FIND_INDEX8;
	c->src1 = c->dst;
	c->dst = asm_row(ISA_SPACE_SBUF, ISA_UINT16, 0, 1, index, ISA_TOP);
	run(b, ISA_VECTOR, &in);
	download(b);
	memcpy(got, at(b->got, 0, index), sizeof(got));
	for (unsigned int i = 0; i < ISA_TOP; i++) {
		assert_int_equal(*at(b->got, 0, top + i), 207 - i);
		assert_int_equal(got[i], ISA_TOP_ELEMS_MAX - 1 - i);
	}
}

/* The example of the public page of nc_match_replace8: equal values from the last column on. */
static void test_published_example(void **state)
{
	static const float data[11] = { 1, 2, 3, 4, 8, 8, 8, 8, 8, 8, 8 };
	static const float values[ISA_TOP] = { 3, 8, 8, 8, 8, 8, 8, 8 };
	static const uint32_t replaced[ISA_TOP] = { 2, 10, 9, 8, 7, 6, 5, 4 };
	static const uint32_t found[ISA_TOP] = { 2, 4, 5, 6, 7, 8, 9, 10 };
	struct isa_inst in = { .opcode = ISA_MATCH_REPLACE8, .flags = ISA_F_VEC1 };
	struct isa_compute *c = &in.compute;
	struct bench *b = *state;

	memcpy(at(b->want, 0, REGION(1)), data, sizeof(data));
	memcpy(at(b->want, 0, VALUES), values, sizeof(values));
	c->src0 = asm_row(ISA_SPACE_SBUF, ISA_FP32, 0, 1, REGION(1), 11);
	c->src1 = asm_row(ISA_SPACE_SBUF, ISA_FP32, 0, 1, VALUES, ISA_TOP);
	c->dst = asm_row(ISA_SPACE_SBUF, ISA_FP32, 0, 1, REGION(0), 11);
	c->vec1 = (struct isa_column){ .offset = WHERE, .dtype = ISA_UINT32 };
	upload(b);
	run(b, ISA_VECTOR, &in);
	in = (struct isa_inst){ .opcode = ISA_FIND_INDEX8,
				.compute = { .src0 = c->src0, .src1 = c->src1 } };
	c->dst = asm_row(ISA_SPACE_SBUF, ISA_UINT32, 0, 1, WHERE + 64, ISA_TOP);
	run(b, ISA_VECTOR, &in);
	download(b);
	assert_memory_equal(at(b->got, 0, WHERE), replaced, sizeof(replaced));
	assert_memory_equal(at(b->got, 0, WHERE + 64), found, sizeof(found));
}

/* --- refused ----------------------------------------------------------------------------------------- */

static struct isa_tile row(unsigned int dtype, uint32_t offset, uint32_t n)
{
	return asm_row(ISA_SPACE_SBUF, dtype, 32, 8, offset, n);
}

static struct isa_inst good(unsigned int opcode)
{
	struct isa_inst in = { .opcode = (uint8_t)opcode };
	struct isa_compute *c = &in.compute;

	c->src0 = row(ISA_BF16, 1024, 64);
	c->dst = row(ISA_FP32, 256, ISA_TOP);
	if (opcode != ISA_MAX8)
		c->src1 = row(ISA_FP32, 640, ISA_TOP);
	if (opcode == ISA_FIND_INDEX8)
		c->dst.dtype = ISA_UINT32;
	if (opcode == ISA_MATCH_REPLACE8) {
		c->dst = row(ISA_FP32, 256, 64);
		in.flags = ISA_F_VEC1;
		c->vec1 = (struct isa_column){ .offset = 64, .dtype = ISA_UINT16, .part0 = 96 };
	}
	return in;
}

/* What the three have in common. */
static void test_refused(void **state)
{
	(void)state;
	for (unsigned int op = ISA_MAX8; op <= ISA_MATCH_REPLACE8; op++) {
		struct isa_inst in = good(op);
		unsigned int flags = in.flags | ISA_F_NOTIFY;

		for (unsigned int e = ISA_TENSOR; e <= ISA_SYNC; e++)
			if (e != ISA_VECTOR)
				assert_int_equal(judge(e, &in).status, EXI_FAULT_BAD_OPCODE);
		REFUSE(in, i->flags |= ISA_F_ACCUM, in.flags | ISA_F_ACCUM, flags);
		REFUSE(in, i->flags |= ISA_F_VEC0, in.flags | ISA_F_VEC0, flags);
		REFUSE(in, i->compute.compute_type = ISA_CT_I32, ISA_CT_I32, 1 << ISA_CT_F32);
		REFUSE(in, i->compute.op0 = ISA_ADD, ISA_ADD, 0);
		REFUSE(in, i->compute.op1 = ISA_MULT, ISA_MULT, 0);
		REFUSE(in, i->compute.n_axes = 1, 1, 0);
		REFUSE(in, i->compute.imm1 = 9, 9, 0);
		REFUSE(in, i->compute.vec0.offset = 4, 4, 0);
		REFUSE(in, i->compute.src0.count[3] = ISA_TOP_ELEMS_MAX + 1, ISA_TOP_ELEMS_MAX + 1,
		       ISA_TOP_ELEMS_MAX);
		REFUSE(in, i->compute.src0.dtype = ISA_INT64, ISA_INT64, ISA_FP32);
		REFUSE(in, i->compute.dst.nparts = 7, 7, 8);
		REFUSE_BOUNDS(in, i->compute.dst.offset = 192 * 1024 - 4,
			      192 * 1024 - 4 + 4 * in.compute.dst.count[3], 192 * 1024);
		if (op == ISA_MAX8)
			continue;
		REFUSE(in, i->compute.src1.count[3] = 7, 7, ISA_TOP);
		REFUSE(in, i->compute.src1.count[2] = 2, 2 * ISA_TOP, ISA_TOP);
		REFUSE(in, i->compute.src1.nparts = 7, 7, 8);
		REFUSE_BOUNDS(in, i->compute.src1.step[3] = (uint32_t)-24, 640 - 7 * 24 * 4, 0);
	}
}

static void test_refused_one_by_one(void **state)
{
	const struct isa_inst max8 = good(ISA_MAX8), find = good(ISA_FIND_INDEX8);
	const struct isa_inst replace = good(ISA_MATCH_REPLACE8);
	struct isa_inst fewest = replace;

	(void)state;
	fewest.compute.src0.count[3] = fewest.compute.dst.count[3] = 1;
	assert_int_equal(judge(ISA_VECTOR, &fewest).status, EXI_OK);
	REFUSE(max8, i->compute.src0.count[3] = 7, 7, ISA_TOP);
	REFUSE(find, i->compute.src0.count[3] = 7, 7, ISA_TOP);
	REFUSE(max8, i->compute.dst.count[3] = 9, 9, ISA_TOP);
	REFUSE(max8, i->compute.src1.nparts = 1, 1, 0);
	REFUSE(max8, i->compute.imm0 = 1, 1, 0);
	REFUSE(find, i->compute.imm0 = 1, 1, 0);
	REFUSE(find, i->compute.vec1.offset = 4, 4, 0);
	REFUSE(find, i->compute.dst.dtype = ISA_INT32, ISA_INT32, ISA_UINT32);
	REFUSE(find, (i->compute.dst.count[3] = 4, i->compute.dst.count[2] = 2), 2, 1);
	REFUSE(replace, i->compute.dst.count[3] = 63, 63, 64);
	REFUSE(replace, i->compute.imm0 = 1ull << 32, 1ull << 32, UINT32_MAX);
	REFUSE(replace, i->flags = 0, 64, 0); /* indices that go nowhere */
	REFUSE(replace, i->compute.vec1.dtype = ISA_FP32, ISA_FP32, ISA_UINT32);
	REFUSE(replace, i->compute.vec1.shift = 255, 255, ISA_REGISTERS);
	REFUSE(replace, i->compute.vec1.offset = 65, 65, 2);
	REFUSE(replace, i->compute.vec1.part0 = 8, 8, ISA_PART_QUANTUM);
	REFUSE_BOUNDS(replace, i->compute.vec1.offset = 192 * 1024 - 14, 192 * 1024 + 2,
		      192 * 1024);
}

/* --- checking mode, time ------------------------------------------------------------------------------ */

static void test_accesses(void **state)
{
	struct isa_inst apart = good(ISA_MATCH_REPLACE8);
	struct rig *r = *state;

	for (unsigned int op = ISA_MAX8; op <= ISA_MATCH_REPLACE8; op++) {
		const struct isa_inst in = good(op);
		uint32_t dst = 4 * in.compute.dst.count[3];

		expect_access(r, ISA_VECTOR, &in, ISA_SPACE_SBUF, 32, 39, 1024, 1024 + 2 * 64,
			      READ);
		expect_access(r, ISA_VECTOR, &in, ISA_SPACE_SBUF, 32, 39, 256, 256 + dst, WRITTEN);
		if (op == ISA_FIND_INDEX8)
			expect_access(r, ISA_VECTOR, &in, ISA_SPACE_SBUF, 32, 39, 640,
				      640 + 4 * ISA_TOP, READ);
		if (op == ISA_MATCH_REPLACE8)
			expect_access(r, ISA_VECTOR, &in, ISA_SPACE_SBUF, 96, 103, 64,
				      64 + 2 * ISA_TOP, WRITTEN);
	}
	/* The values, in PSUM and apart from each other. */
	apart.compute.src1 = asm_row(ISA_SPACE_PSUM, ISA_FP32, 0, 8, 2048, ISA_TOP);
	apart.compute.src1.step[3] = 2;
	for (uint32_t i = 0; i < ISA_TOP; i++) {
		uint32_t byte = 2048 + 8 * i;

		assert_int_equal(access_of(r, ISA_VECTOR, &apart, ISA_SPACE_PSUM, 7, byte), READ);
		assert_int_equal(access_of(r, ISA_VECTOR, &apart, ISA_SPACE_PSUM, 7, byte + 4),
				 NOTHING);
	}
}

/* What a program may write is scrubbed before another owner's launch: the indices too. */
static void test_scrubbed(void **state)
{
	struct bench *b = *state;
	struct isa_inst in = good(ISA_MATCH_REPLACE8);
	uint64_t got[2], where = 16384;

	in.compute.vec1.offset = (uint32_t)where;
	run(b, ISA_VECTOR, &in);
	assert_int_equal(nm_core_sbuf_read(b->rig->core, 96 * (uint64_t)NM_SBUF_VIEW_PITCH + where,
					   got, sizeof(got)),
			 0);
	/* Zeros in zeros: 7, 6, 5 and so on. */
	assert_true(got[0] == 0x0004000500060007 && got[1] == 0x0000000100020003);
	rig_set(b->rig, 0, EXI_Q_CONTROL, EXI_Q_RESET);
	rig_queue(b->rig, 0, 2);
	in = (struct isa_inst){ .opcode = ISA_NOP };
	run(b, ISA_VECTOR, &in);
	assert_int_equal(nm_core_sbuf_read(b->rig->core, 96 * (uint64_t)NM_SBUF_VIEW_PITCH + where,
					   got, sizeof(got)),
			 0);
	assert_true(!got[0] && !got[1]);
}

/* An element a cycle, of 64 cycles and 60 for the access; no more for the values, on any chip. */
static void test_time(void **state)
{
	static const struct {
		uint32_t arch;
		uint64_t hz;
	} chips[] = {
		{ NEURON_ARCH_V2, 1120000000 },
		{ NEURON_ARCH_V3, 960000000 },
		{ NEURON_ARCH_V4, 1200000000 },
	};

	(void)state;
	for (unsigned int k = 0; k < 3; k++) {
		struct rig *r = rig_create_of(chips[k].arch, 0, NULL);

		rig_queue(r, 0, 1);
		for (unsigned int op = ISA_MAX8; op <= ISA_MATCH_REPLACE8; op++) {
			struct program *p = calloc(1, sizeof(*p));
			struct exi_record rec;

			*asm_inst(p, ISA_VECTOR, op) = good(op);
			p->inst[ISA_VECTOR][0].compute.src0.count[3] = 8192;
			if (op == ISA_MATCH_REPLACE8)
				p->inst[ISA_VECTOR][0].compute.dst.count[3] = 8192;
			rec = rig_program(r, p, NULL);
			free(p);
			assert_int_equal(rec.status, EXI_OK);
			/* With what HALT takes. */
			assert_uint_in_range(rec.busy_ns[ISA_VECTOR],
					     (8192 + 60) * 1000000000ull / chips[k].hz,
					     (8192 + 60 + 32) * 1000000000ull / chips[k].hz + 1);
		}
		rig_destroy(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_max8, setup, teardown),
		cmocka_unit_test_setup_teardown(test_find_index8, setup, teardown),
		cmocka_unit_test_setup_teardown(test_match_replace8, setup, teardown),
		cmocka_unit_test_setup_teardown(test_longest, setup, teardown),
		cmocka_unit_test_setup_teardown(test_published_example, setup, teardown),
		cmocka_unit_test_setup_teardown(test_scrubbed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_accesses, racing_setup, rig_teardown),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_refused_one_by_one),
		cmocka_unit_test(test_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
