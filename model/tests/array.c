// SPDX-License-Identifier: Apache-2.0
/*
 * Products on parts of the tensor array, and results in bf16: against plain loops; which operand is where, what is
 * refused, what is checked, and that parts work beside each other.
 */
#include "products.h"
#include "single.h"

#define PRODUCTS ISA_PSUM_BANKS

/* --- parts, as the page has them ---------------------------------------------------------------- */

struct part {
	unsigned int row, n_rows, column, n_columns; /* of the array */
};

static const struct part whole = { 0, 128, 0, 128 };

static unsigned int named(unsigned int first, unsigned int size)
{
	return size == 128 ? ISA_ARRAY_ALL : ISA_ARRAY_PART(first, size);
}

static void place(struct isa_inst *in, struct part p)
{
	in->compute.rows = (uint8_t)named(p.row, p.n_rows);
	in->compute.columns = (uint8_t)named(p.column, p.n_columns);
}

static bool meet(struct part a, struct part b)
{
	return a.row < b.row + b.n_rows && b.row < a.row + a.n_rows &&
	       a.column < b.column + b.n_columns && b.column < a.column + a.n_columns;
}

static struct part random_part(struct bench *b, bool by_rows_only)
{
	struct part p;

	p.n_rows = 32u << rnd(b) % 3;
	p.row = p.n_rows * (unsigned int)(rnd(b) % (128 / p.n_rows));
	p.n_columns = by_rows_only ? 128 : 32u << rnd(b) % 3;
	p.column = p.n_columns * (unsigned int)(rnd(b) % (128 / p.n_columns));
	return p;
}

/* --- results -------------------------------------------------------------------------------------- */

/* Of what a program does in turn. */
struct step {
	struct part part;
	struct isa_tile a, x, c;
	unsigned int load; /* of a product: the step that loaded its operand */
	bool product, adds;
};

/* A step that loads an operand; those that it overlaps are gone. */
static void random_load(struct bench *b, struct step *s, unsigned int dtype, bool *there,
			unsigned int i)
{
	uint32_t k, m;

	s[i].part = random_part(b, false);
	k = upto(b, s[i].part.n_rows);
	m = upto(b, s[i].part.n_columns);
	s[i].a = operand(b, dtype, k, m, i * 512);
	for (unsigned int j = 0; j < i; j++)
		if (!s[j].product && meet(s[i].part, s[j].part))
			there[j] = false;
	there[i] = true;
}

/* A product on one that is there; false: there is none. */
static bool random_product(struct bench *b, struct step *s, unsigned int dtype, const bool *there,
			   unsigned int i, unsigned int bank)
{
	unsigned int from = (unsigned int)rnd(b) % i, j = from;

	while (s[j].product || !there[j]) {
		j = (j + 1) % i;
		if (j == from)
			return false;
	}
	s[i] = (struct step){ .product = true, .load = j, .part = s[j].part };
	s[i].x = operand(b, dtype, s[j].a.nparts, upto(b, 24), 8192 + i * 256);
	s[i].c = result(b, ISA_FP32, ref_elems(&s[j].a), ref_elems(&s[i].x));
	s[i].c.offset = bank * ISA_PSUM_BANK_BYTES;
	return true;
}

static void emit(struct program *p, const struct step *s)
{
	struct isa_inst *in =
		asm_inst(p, ISA_TENSOR, s->product ? ISA_MATMUL : ISA_LOAD_STATIONARY);

	place(in, s->part);
	in->compute.src0 = s->product ? s->x : s->a;
	in->compute.dst = s->c;
	in->flags = s->adds ? ISA_F_ACCUM : 0;
}

static void expect_product(struct bench *b, const struct step *s, const struct step *load,
			   unsigned int times)
{
	static double va[128 * 128], vx[128 * 512];
	uint32_t m = ref_elems(&load->a), n = ref_elems(&s->x), k = load->a.nparts;

	numbers(b, &load->a, va);
	numbers(b, &s->x, vx);
	for (uint32_t i = 0; i < m; i++)
		for (uint32_t j = 0; j < n; j++) {
			double sum = 0;
			float got;

			for (uint32_t l = 0; l < k; l++)
				sum += va[l * m + i] * vx[l * n + j] * times;
			memcpy(&got, psum(b, &s->c, i, j), sizeof(got));
			if ((double)got != sum)
				fail_msg("rows %u+%u, columns %u+%u, K %u M %u N %u: element %u, "
					 "%u is %g, not %g",
					 s->part.row, s->part.n_rows, s->part.column,
					 s->part.n_columns, k, m, n, i, j, (double)got, sum);
		}
}

/* Loads and products in any order, on any parts: each has the operand that was loaded there last. */
static void random_program(struct bench *b, unsigned int dtype)
{
	struct step s[16] = { 0 };
	bool there[16] = { 0 };
	struct program *p = calloc(1, sizeof(*p));
	unsigned int banks = 0, n = 0, twice = 0;

	random_load(b, s, dtype, there, n++);
	while (n < 16 && banks < PRODUCTS) {
		if (rnd(b) % 2)
			random_load(b, s, dtype, there, n++);
		else if (random_product(b, s, dtype, there, n, banks))
			n++, banks++;
	}
	for (unsigned int i = 0; i < n; i++) {
		fill(b, s[i].product ? &s[i].x : &s[i].a, true);
		emit(p, &s[i]);
	}
	/* What is still there is multiplied once more. */
	for (unsigned int i = 0; i < n; i++)
		if (s[i].product && there[s[i].load]) {
			struct step again = s[i];

			again.adds = true;
			emit(p, &again);
			twice |= 1u << i;
		}
	asm_update(&p->inst[ISA_TENSOR][p->count[ISA_TENSOR] - 1], 1, 1);
	upload(b);
	asm_slot(p, NPROG_SLOT_OUTPUT, SLOT_BYTES);
	dump_psum(p, 0, 1);
	assert_int_equal(rig_program(b->rig, p, out_slot).status, EXI_OK);
	for (unsigned int i = 0; i < n; i++)
		if (s[i].product)
			expect_product(b, &s[i], &s[s[i].load], twice >> i & 1 ? 2 : 1);
	free(p);
}

static void test_parts(void **state)
{
	static const uint8_t floats[] = { ISA_FP32, ISA_BF16, ISA_FP16, ISA_TF32, ISA_FP8_E4 };

	for (unsigned int i = 0; i < 200; i++)
		random_program(*state, floats[i % 5]);
}

/* Double rows on rows of the array. */
static void test_double_rows(void **state)
{
	struct bench *b = *state;

	for (unsigned int i = 0; i < 20; i++) {
		struct part part = random_part(b, true);
		uint32_t k = upto(b, part.n_rows), m = upto(b, 128), n = upto(b, 100);
		struct isa_tile a = asm_row(ISA_SPACE_SBUF, ISA_FP8_E4, 0, k, 0, 2 * m);
		struct isa_tile x = asm_row(ISA_SPACE_SBUF, ISA_FP8_E5, 0, k, 8192, 2 * n);
		struct isa_tile c = asm_row(ISA_SPACE_PSUM, ISA_FP32, 0, m, 0, n);
		struct step s[2] = { { .part = part, .a = a },
				     { .part = part, .x = x, .c = c, .product = true } };
		static double va[128 * 256], vx[128 * 256];
		struct program *p = calloc(1, sizeof(*p));

		fill(b, &a, true);
		fill(b, &x, true);
		upload(b);
		for (unsigned int j = 0; j < 2; j++) {
			emit(p, &s[j]);
			p->inst[ISA_TENSOR][j].compute.mode = ISA_MODE_DOUBLE_ROW;
		}
		asm_update(&p->inst[ISA_TENSOR][1], 1, 1);
		asm_slot(p, NPROG_SLOT_OUTPUT, SLOT_BYTES);
		dump_psum(p, 0, 1);
		assert_int_equal(rig_program(b->rig, p, out_slot).status, EXI_OK);
		numbers(b, &a, va);
		numbers(b, &x, vx);
		for (uint32_t u = 0; u < m; u++)
			for (uint32_t v = 0; v < n; v++) {
				double sum = 0;
				float got;

				for (uint32_t l = 0; l < 2 * k; l++)
					sum += va[l * m + u] * vx[l * n + v];
				memcpy(&got, psum(b, &c, u, v), sizeof(got));
				assert_true((double)got == sum);
			}
		free(p);
	}
}

/* --- bf16 in PSUM --------------------------------------------------------------------------------- */

/* Each sum is rounded to bf16, and what is there is added to before. */
static void bf16_round(struct bench *b, uint32_t k, uint32_t m, uint32_t n, unsigned int times)
{
	static double va[128 * 128], vx[128 * 1024];
	const struct format f = ref_format(ISA_BF16);
	struct program *p = calloc(1, sizeof(*p));
	struct isa_tile a = operand(b, ISA_BF16, k, m, 0);
	struct isa_tile x = asm_row(ISA_SPACE_SBUF, ISA_BF16, 0, k, 8192, n);
	struct isa_tile c = result(b, ISA_BF16, m, n);
	struct step load = { .part = whole, .a = a };
	struct step product = { .part = whole, .x = x, .c = c, .product = true };

	fill(b, &a, true);
	fill(b, &x, true);
	upload(b);
	emit(p, &load);
	for (unsigned int i = 0; i < times; i++) {
		product.adds = i > 0;
		emit(p, &product);
	}
	asm_update(&p->inst[ISA_TENSOR][times], 1, 1);
	asm_slot(p, NPROG_SLOT_OUTPUT, SLOT_BYTES);
	dump_psum(p, 0, 1);
	assert_int_equal(rig_program(b->rig, p, out_slot).status, EXI_OK);
	numbers(b, &a, va);
	numbers(b, &x, vx);
	for (uint32_t i = 0; i < m; i++)
		for (uint32_t j = 0; j < n; j++) {
			long double sum = 0, want = 0;
			uint16_t bits, got;

			for (uint32_t l = 0; l < k; l++)
				sum += (long double)(va[l * m + i] * vx[l * n + j]);
			for (unsigned int t = 0; t < times; t++)
				want = ref_unpack(f, ref_pack(f, want + sum));
			bits = (uint16_t)ref_pack(f, want);
			memcpy(&got, psum(b, &c, i, j), sizeof(got));
			/* 0 or -0: the sign of a sum of zeros is that of its order. */
			if (got != bits && ((got | bits) & 0x7fff))
				fail_msg("K %u M %u N %u: element %u, %u is 0x%x, not 0x%x", k, m,
					 n, i, j, got, bits);
		}
	free(p);
}

static void test_bf16_results(void **state)
{
	struct bench *b = *state;

	bf16_round(b, 128, 128, ISA_MATMUL_N_BF16, 3);
	for (unsigned int i = 0; i < 30; i++) {
		uint32_t k = upto(b, 128), m = upto(b, 128);

		bf16_round(b, k, m, upto(b, i % 3 ? 100 : 1024), 1 + i % 3);
	}
}

/* --- what is refused ------------------------------------------------------------------------------ */

static struct isa_inst load_of(struct part part, unsigned int dtype, uint32_t k, uint32_t m)
{
	struct isa_inst in = { .opcode = ISA_LOAD_STATIONARY };

	place(&in, part);
	in.compute.src0 = asm_row(ISA_SPACE_SBUF, dtype, 0, k, 0, m);
	return in;
}

static struct isa_inst product_of(struct part part, unsigned int dtype, uint32_t k, uint32_t m,
				  uint32_t n)
{
	struct isa_inst in = load_of(part, dtype, k, n);

	in.opcode = ISA_MATMUL;
	in.compute.dst = asm_row(ISA_SPACE_PSUM, ISA_FP32, 0, m, 0, n);
	return in;
}

#define REFUSE_LOAD(base, change, val, lim) \
	REFUSE_ON(ISA_TENSOR, base, change, EXI_FAULT_BAD_OPERAND, val, lim)

static void test_parts_refused(void **state)
{
	static const uint8_t wrong[] = { 0x03, 0x04, 0x05, 0x0f, 0x10, 0x12,
					 0x32, 0x41, 0x42, 0x40, 0xf1, 0x80 };
	const struct part corner = { 96, 32, 64, 64 };
	const struct isa_inst in = load_of(corner, ISA_BF16, 32, 64);
	struct isa_inst old = load_of((struct part){ 64, 64, 0, 64 }, ISA_BF16, 64, 64);
	struct isa_inst fp8 = load_of((struct part){ 64, 32, 0, 128 }, ISA_FP8_E4, 32, 256);

	(void)state;
	for (unsigned int k = 0; k < sizeof(wrong); k++) {
		REFUSE_LOAD(in, i->compute.rows = wrong[k], wrong[k], ISA_ARRAY_PART(0, 32));
		REFUSE_LOAD(in, i->compute.columns = wrong[k], wrong[k], ISA_ARRAY_PART(0, 32));
	}
	REFUSE_LOAD(in, i->compute.src0.nparts = 33, 33, 32);
	REFUSE_LOAD(in, i->compute.src0.count[3] = 65, 65, 64);
	fp8.compute.mode = ISA_MODE_DOUBLE_ROW;
	REFUSE_LOAD(fp8,
		    (i->compute.columns = ISA_ARRAY_PART(0, 64), i->compute.src0.count[3] = 64),
		    ISA_ARRAY_PART(0, 64), ISA_ARRAY_ALL);
	/* trn1 has halves alone. */
	assert_int_equal(judge_on(NEURON_ARCH_V2, ISA_TENSOR, &old).status, EXI_OK);
	old.compute.rows = ISA_ARRAY_PART(64, 32);
	old.compute.src0.nparts = 32;
	assert_int_equal(judge_on(NEURON_ARCH_V3, ISA_TENSOR, &old).status, EXI_OK);
	assert_int_equal(judge_on(NEURON_ARCH_V2, ISA_TENSOR, &old).status, EXI_FAULT_BAD_OPERAND);
	assert_int_equal(judge_on(NEURON_ARCH_V2, ISA_TENSOR, &old).limit, ISA_ARRAY_PART(0, 64));
}

/* Status of a program of these, in their order. */
static struct exi_record run_all(struct rig *r, const struct isa_inst *in, unsigned int n)
{
	struct program *p = calloc(1, sizeof(*p));

	while (n--)
		*asm_inst(p, ISA_TENSOR, in->opcode) = *in, in++;
	return rig_once(r, p, NULL);
}

/* An operand is there for products on exactly its parts, until another is loaded where it is. */
static void test_forgotten(void **state)
{
	const struct part top = { 0, 64, 0, 128 }, bottom = { 64, 64, 0, 128 };
	const struct part quarter = { 32, 32, 64, 64 };
	struct isa_inst in[4] = { load_of(top, ISA_FP32, 32, 16), load_of(bottom, ISA_FP32, 32, 16),
				  product_of(top, ISA_FP32, 32, 16, 8) };
	struct exi_record rec;

	assert_int_equal(run_all(*state, in, 3).status, EXI_OK);
	place(&in[1], quarter);
	rec = run_all(*state, in, 3);
	assert_int_equal(rec.status, EXI_FAULT_BAD_OPERAND);
	assert_int_equal(rec.value, 32);
	assert_int_equal(rec.limit, 0);
	place(&in[2], quarter);
	assert_int_equal(run_all(*state, in, 3).status, EXI_OK);
	/* Of the same first row and column, but larger. */
	place(&in[2], (struct part){ 32, 32, 64, 32 });
	rec = run_all(*state, in, 3);
	assert_int_equal(rec.status, EXI_FAULT_BAD_OPERAND);
	assert_int_equal(rec.pc, 2);
	place(&in[2], whole);
	assert_int_equal(run_all(*state, in, 3).status, EXI_FAULT_BAD_OPERAND);
}

/* A loop comes to a product whose operand its last round has loaded over. */
static void test_forgotten_in_a_loop(void **state)
{
	const struct part top = { 0, 64, 0, 128 }, over = { 32, 32, 64, 64 };
	const struct isa_inst in[] = { load_of(top, ISA_FP32, 32, 16),
				       product_of(top, ISA_FP32, 32, 16, 8),
				       load_of(over, ISA_FP32, 32, 16) };

	for (unsigned int rounds = 1; rounds < 3; rounds++) {
		struct program *p = calloc(1, sizeof(*p));
		struct isa_inst *inst;
		struct exi_record rec;

		for (unsigned int i = 0; i < 3; i++)
			*asm_inst(p, ISA_TENSOR, in[i].opcode) = in[i];
		inst = asm_inst(p, ISA_TENSOR, ISA_REG_ALU);
		inst->flags = ISA_F_IMM;
		inst->reg = (struct isa_reg){ .dst = 1, .a = 1, .op = ISA_ADD, .imm = 1 };
		inst = asm_inst(p, ISA_TENSOR, ISA_BRANCH);
		inst->flags = ISA_F_IMM;
		inst->reg = (struct isa_reg){ .a = 1, .op = ISA_IS_LT, .imm = rounds, .target = 1 };
		rec = rig_once(*state, p, NULL);
		if (rounds == 1) {
			assert_int_equal(rec.status, EXI_OK);
			continue;
		}
		assert_int_equal(rec.status, EXI_FAULT_BAD_OPERAND);
		assert_int_equal(rec.pc, 1);
		assert_int_equal(rec.value, 32);
		assert_int_equal(rec.limit, 0);
	}
}

static void test_bf16_refused(void **state)
{
	struct isa_inst in[2] = { load_of(whole, ISA_BF16, 32, 16),
				  product_of(whole, ISA_BF16, 32, 16, 1024) };
	struct rig *old = rig_create();
	struct exi_record rec;

	in[1].compute.dst.dtype = ISA_BF16;
	assert_int_equal(run_all(*state, in, 2).status, EXI_OK);
	in[1].compute.dst.offset = 2;
	assert_int_equal(run_all(*state, in, 2).status, EXI_FAULT_TILE_BOUNDS);
	in[1].compute.dst.offset = 0;
	in[1].compute.dst.count[3] = in[1].compute.src0.count[3] = 1025;
	rec = run_all(*state, in, 2);
	assert_int_equal(rec.status, EXI_FAULT_BAD_OPERAND);
	assert_int_equal(rec.limit, 1024);
	in[1].compute.dst.count[3] = in[1].compute.src0.count[3] = 512;
	rig_queue(old, 0, 1);
	rec = run_all(old, in, 2);
	assert_int_equal(rec.status, EXI_FAULT_BAD_OPERAND);
	assert_int_equal(rec.value, ISA_BF16);
	assert_int_equal(rec.limit, ISA_FP32);
	rig_destroy(old);
}

/* --- checking mode --------------------------------------------------------------------------------- */

/* Sums of bf16 lie two in a word; none is gone on with in fp32. */
static void test_sums_are_checked(void **state)
{
	struct isa_inst in[4] = { load_of(whole, ISA_BF16, 32, 16),
				  product_of(whole, ISA_BF16, 32, 16, 7),
				  product_of(whole, ISA_BF16, 32, 16, 7),
				  product_of(whole, ISA_BF16, 32, 16, 7) };
	struct isa_inst *a = &in[1], *other = &in[2], *add = &in[3];
	struct exi_record rec;

	a->compute.dst.dtype = other->compute.dst.dtype = add->compute.dst.dtype = ISA_BF16;
	other->compute.dst.offset = 14;
	add->flags = ISA_F_ACCUM;
	assert_int_equal(run_all(*state, in, 4).status, EXI_OK);
	add->compute.dst.offset = 14;
	assert_int_equal(run_all(*state, in, 4).status, EXI_OK);
	/* Over the end of one and the beginning of the other. */
	add->compute.dst.offset = 2;
	rec = run_all(*state, in, 4);
	assert_int_equal(rec.status, EXI_FAULT_PSUM_MIXED);
	assert_int_equal(rec.pc, 3);
	add->compute.dst = asm_row(ISA_SPACE_PSUM, ISA_FP32, 0, 16, 0, 3);
	add->compute.src0.count[3] = 3;
	assert_int_equal(run_all(*state, in, 4).status, EXI_FAULT_PSUM_MIXED);
	add->compute.dst = asm_row(ISA_SPACE_PSUM, ISA_BF16, 0, 16, 28, 3);
	assert_int_equal(run_all(*state, in, 4).status, EXI_FAULT_PSUM_NO_START);
}

/* --- time ------------------------------------------------------------------------------------------- */

#define HZ 2400000000.0

/* Cycles of products of n columns on these parts in turn, so many of them, each with its own result. */
static double cycles_of(struct rig *r, const struct part *part, unsigned int n_parts,
			unsigned int times, uint32_t n, bool loads)
{
	struct program *p = calloc(1, sizeof(*p));
	struct exi_record rec;

	for (unsigned int i = 0; i < n_parts && !loads; i++)
		*asm_inst(p, ISA_TENSOR, ISA_LOAD_STATIONARY) = load_of(part[i], ISA_BF16, 32, 32);
	for (unsigned int i = 0; i < times; i++) {
		if (loads)
			*asm_inst(p, ISA_TENSOR, ISA_LOAD_STATIONARY) =
				load_of(part[i % n_parts], ISA_BF16, 32, 32);
		*asm_inst(p, ISA_TENSOR, ISA_MATMUL) =
			product_of(part[i % n_parts], ISA_BF16, 32, 32, n);
	}
	rec = rig_once(r, p, NULL);
	assert_int_equal(rec.status, EXI_OK);
	assert_uint_in_range(rec.busy_ns[ISA_TENSOR], 1, rec.end_ns - rec.start_ns);
	return (double)(rec.end_ns - rec.start_ns) * HZ / 1e9;
}

/* Cycles between one and the next. */
static double interval(struct rig *r, const struct part *part, unsigned int n_parts, uint32_t n,
		       bool loads)
{
	return (cycles_of(r, part, n_parts, 80, n, loads) -
		cycles_of(r, part, n_parts, 40, n, loads)) /
	       40;
}

static void test_parts_run_beside_each_other(void **state)
{
	const struct part rows[] = {
		{ 0, 32, 0, 128 }, { 32, 32, 0, 128 }, { 64, 32, 0, 128 }, { 96, 32, 0, 128 }
	};
	const struct part corners[] = {
		{ 0, 64, 0, 64 }, { 0, 64, 64, 64 }, { 64, 64, 0, 64 }, { 64, 64, 64, 64 }
	};
	const struct part columns[] = { { 0, 128, 0, 64 }, { 0, 128, 64, 64 } };

	/* One after the other on one part, and on the whole of it. */
	assert_float_equal(interval(*state, rows, 1, 512, false), 513, 2);
	assert_float_equal(interval(*state, &whole, 1, 512, false), 513, 2);
	assert_float_equal(interval(*state, rows, 4, 512, false), 513 / 4.0, 2);
	assert_float_equal(interval(*state, rows, 2, 512, false), 513 / 2.0, 2);
	assert_float_equal(interval(*state, corners, 4, 512, false), 513 / 4.0, 2);
	assert_float_equal(interval(*state, columns, 2, 512, false), 513 / 2.0, 2);
	/* Loads are hidden behind the product before on their part. */
	assert_float_equal(interval(*state, rows, 4, 512, true), 513 / 4.0, 3);
	/* Not closer than products are issued. */
	assert_float_equal(interval(*state, rows, 4, 64, false), 65, 2);
}

/* Parts that have a row and a column in common take turns. */
static void test_parts_that_meet_take_turns(void **state)
{
	const struct part crossed[] = { { 0, 64, 0, 64 }, { 0, 32, 32, 32 } };
	const struct part apart[] = { { 0, 64, 0, 64 }, { 64, 32, 32, 32 } };

	/* Each is loaded over the other. */
	assert_true(interval(*state, crossed, 2, 512, true) > 512);
	assert_float_equal(interval(*state, apart, 2, 512, true), 513 / 2.0, 3);
}

/* When the whole launch ends whose last part waits for the second of two products. */
static double end_of(struct rig *r, uint32_t first)
{
	const struct part part[] = { { 0, 32, 0, 128 }, { 32, 32, 0, 128 } };
	struct program *p = calloc(1, sizeof(*p));
	struct exi_record rec;
	struct isa_inst *in;

	for (unsigned int i = 0; i < 2; i++)
		*asm_inst(p, ISA_TENSOR, ISA_LOAD_STATIONARY) = load_of(part[i], ISA_BF16, 32, 32);
	*asm_inst(p, ISA_TENSOR, ISA_MATMUL) = product_of(part[0], ISA_BF16, 32, 32, first);
	in = asm_inst(p, ISA_TENSOR, ISA_MATMUL);
	*in = product_of(part[1], ISA_BF16, 32, 32, 64);
	in->compute.dst.offset = ISA_PSUM_BANK_BYTES;
	asm_update(in, 3, 1);
	in = asm_inst(p, ISA_SCALAR, ISA_MEMSET);
	in->compute.dst = asm_row(ISA_SPACE_SBUF, ISA_FP32, 0, 128, 0, 8192);
	asm_wait(in, 3, 1);
	rec = rig_once(r, p, NULL);
	assert_int_equal(rec.status, EXI_OK);
	return (double)(rec.end_ns - rec.start_ns);
}

/* A product that is done before the one before it tells of it behind that one. */
static void test_updates_are_in_order(void **state)
{
	double later = end_of(*state, 512) - end_of(*state, 128);

	assert_float_equal(later, (512 - 128) * 1e9 / HZ, 3);
}

static int setup_trn3(void **state)
{
	return setup_of(state, NEURON_ARCH_V4);
}

static int rig_trn3(void **state)
{
	*state = rig_create_of(NEURON_ARCH_V4, 0, NULL);
	rig_queue(*state, 0, 1);
	return 0;
}

static int checking_trn3(void **state)
{
	*state = rig_create_of(NEURON_ARCH_V4, NM_CHECK_PSUM, NULL);
	rig_queue(*state, 0, 1);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_parts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_double_rows, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bf16_results, setup_trn3, teardown),
		cmocka_unit_test(test_parts_refused),
		cmocka_unit_test_setup_teardown(test_forgotten, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_forgotten_in_a_loop, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_bf16_refused, rig_trn3, rig_teardown),
		cmocka_unit_test_setup_teardown(test_sums_are_checked, checking_trn3, rig_teardown),
		cmocka_unit_test_setup_teardown(test_parts_run_beside_each_other, rig_setup,
						rig_teardown),
		cmocka_unit_test_setup_teardown(test_parts_that_meet_take_turns, rig_setup,
						rig_teardown),
		cmocka_unit_test_setup_teardown(test_updates_are_in_order, rig_setup, rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
