// SPDX-License-Identifier: Apache-2.0
/* Random numbers: states, seeds, RNG, RAND2, DROPOUT; what is refused, what is touched, time. */
#define RIG_ARCH NEURON_ARCH_V4 /* has all of them on the vector engine */
#include "bench.h"
#include "single.h"
#include "xorwow.h"

#define ROUNDS	400
#define BEFORE	(COLUMNS + 256) /* states */
#define AFTER	(COLUMNS + 512)
#define SEED_AT (COLUMNS + 768)
#define SBUF	nm_sbuf_bytes(RIG_ARCH)

/* --- reference --------------------------------------------------------------------------------- */

static long double ref_uniform(struct generator *g)
{
	return ldexpl(ref_next(g) / 256, -24);
}

/* --- programs: state, what is tried, state ------------------------------------------------------- */

static struct isa_tile state_at(unsigned int engine, unsigned int nparts, uint32_t offset)
{
	return asm_row(ISA_SPACE_SBUF, ISA_UINT32, 0, nparts, offset, 6 * many(engine));
}

static struct isa_inst bits_of(unsigned int opcode)
{
	struct isa_inst in = { .opcode = (uint8_t)opcode };

	in.compute.compute_type = ISA_CT_BITS;
	return in;
}

static void run_between(struct bench *b, unsigned int engine, const struct isa_inst *first,
			const struct isa_inst *in, unsigned int nparts)
{
	struct program *p = calloc(1, sizeof(*p));
	struct isa_inst *last;

	if (first)
		*asm_inst(p, engine, first->opcode) = *first;
	if (in)
		*asm_inst(p, engine, in->opcode) = *in;
	last = asm_inst(p, engine, ISA_RAND_GET_STATE);
	*last = bits_of(ISA_RAND_GET_STATE);
	last->compute.dst = state_at(engine, nparts, AFTER);
	assert_int_equal(rig_program(b->rig, p, NULL).status, EXI_OK);
	free(p);
}

static void put_state(struct bench *b, unsigned int p, const struct generator *g, unsigned int n)
{
	memcpy(at(b->want, p, AFTER), g, n * sizeof(*g));
}

static void get_state(struct bench *b, unsigned int p, struct generator *g, unsigned int n)
{
	memcpy(g, at(b->want, p, BEFORE), n * sizeof(*g));
}

static void expect_want(struct bench *b, unsigned int engine, const struct isa_inst *in)
{
	download(b);
	for (unsigned int p = 0; p < PARTS; p++)
		for (unsigned int k = 0; k < AREA; k++)
			if (*at(b->want, p, k) != *at(b->got, p, k))
				fail_msg("engine %u opcode 0x%x dtype %u: partition %u byte %u: "
					 "0x%x, not 0x%x",
					 engine, in ? in->opcode : 0,
					 in ? in->compute.dst.dtype : 0, p, k, *at(b->got, p, k),
					 *at(b->want, p, k));
}

/* --- states -------------------------------------------------------------------------------------- */

/* A launch begins with seed 0; a seed is for all 128 partitions. */
static void test_seeds(void **state)
{
	static const uint32_t seeds[] = { 0, 1, 42, 0xffffffff };
	struct bench *b = *state;

	for (unsigned int k = 0; k < 15; k++) {
		const unsigned int engine = engines[k % 3], n = many(engine);
		const bool set = k >= 3;
		struct isa_inst in = bits_of(ISA_SET_RNG_SEED);
		uint32_t seed = set ? seeds[k / 3 - 1] : 0, words[24];

		in.compute.src0 =
			asm_row(ISA_SPACE_SBUF, k % 4 ? ISA_INT32 : ISA_FP32, 32, 1, SEED_AT, 1);
		memcpy(at(b->want, 32, SEED_AT), &seed, 4);
		upload(b);
		run_between(b, engine, set ? &in : NULL, NULL, 128);
		for (unsigned int p = 0; p < 128; p++) {
			assert_int_equal(nm_core_sbuf_read(b->rig->core,
							   (uint64_t)p * NM_SBUF_VIEW_PITCH + AFTER,
							   words, 24 * n),
					 0);
			for (unsigned int g = 0; g < n; g++) {
				struct generator want =
					ref_seeded(seed, 8 * p + first_of(engine) + g);

				assert_memory_equal(&words[6 * g], &want, sizeof(want));
			}
		}
	}
}

/* A state that is set is the state, and no other partition's nor the other engine's. */
static void test_states(void **state)
{
	struct bench *b = *state;

	for (unsigned int k = 0; k < 20; k++) {
		const unsigned int engine = engines[k % 3], n = many(engine);
		struct isa_inst in = bits_of(ISA_RAND_SET_STATE);
		unsigned int set = 1 + pick(b, 8), all = 1 + pick(b, 40);

		in.compute.src0 = state_at(engine, set, BEFORE);
		randomise(b, &in.compute.src0);
		upload(b);
		run_between(b, engine, &in, NULL, all);
		for (unsigned int p = 0; p < all; p++) {
			struct generator g[4];

			for (unsigned int i = 0; i < n; i++)
				g[i] = ref_seeded(0, 8 * p + first_of(engine) + i);
			if (p < set)
				get_state(b, p, g, n);
			put_state(b, p, g, n);
		}
		expect_want(b, engine, &in);
	}
}

/* --- numbers ------------------------------------------------------------------------------------- */

static uint64_t ref_number(struct bench *b, const struct isa_inst *in, unsigned int p, uint32_t i,
			   struct generator *g)
{
	const struct isa_compute *c = &in->compute;
	struct value u, min, x;
	uint64_t elem = 0;

	if (in->opcode == ISA_RNG)
		return ref_next(g) & ref_mask(8 * (int)isa_dtype_bytes(c->dst.dtype));
	u = (struct value){ .x = ref_uniform(g) };
	min = scalar(b, in, 0, p);
	if (in->opcode == ISA_RAND2) {
		x = ref_alu(ISA_CT_F32, ISA_SUB, scalar(b, in, 1, p), min);
		x = ref_alu(ISA_CT_F32, ISA_ADD, min, ref_alu(ISA_CT_F32, ISA_MULT, x, u));
		return ref_store(ISA_CT_F32, c->dst.dtype, x);
	}
	memcpy(&elem, at(b->want, c->src0.part0 + p, ref_offset(&c->src0, i)),
	       isa_dtype_bytes(c->src0.dtype));
	return u.x < min.x ? 0 : elem;
}

static void reference(struct bench *b, unsigned int engine, const struct isa_inst *in)
{
	static uint64_t out[ELEMS];
	const unsigned int n = many(engine);

	for (unsigned int p = 0; p < in->compute.dst.nparts; p++) {
		struct generator g[4];

		get_state(b, p, g, n);
		for (uint32_t i = 0; i < ref_elems(&in->compute.dst); i++)
			out[i] = ref_number(b, in, p, i, &g[i % n]);
		write_dst(b, &in->compute.dst, p, out);
		put_state(b, p, g, n);
	}
}

static uint64_t bits_f32(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits;
}

/* s0 and s1 in vec0 and vec1 or as immediates: numbers that are no NaN and give none. */
static void random_bounds(struct bench *b, struct isa_inst *in, bool second, uint8_t vec_dtype)
{
	struct isa_compute *c = &in->compute;
	float min = second ? (float)pick(b, 100) - 50 : (float)pick(b, 9) / 8;
	float max = min + (float)(1 + pick(b, 50)) / 4;

	if (pick(b, 2)) {
		c->imm0 = bits_f32(min);
		c->imm1 = second ? bits_f32(max) : 0;
		return;
	}
	in->flags = second ? ISA_F_VEC0 | ISA_F_VEC1 : ISA_F_VEC0;
	c->vec0 = (struct isa_column){ .offset = COLUMNS, .dtype = vec_dtype, .part0 = 32 };
	if (second)
		c->vec1 = (struct isa_column){ .offset = COLUMNS + 8, .dtype = ISA_FP32 };
	for (unsigned int p = 0; p < c->dst.nparts; p++) {
		uint64_t low = ref_pack(ref_format(vec_dtype), min + (float)p / 16);
		float high = max - (float)p;

		memcpy(at(b->want, 32 + p, COLUMNS), &low, isa_dtype_bytes(vec_dtype));
		memcpy(at(b->want, p, COLUMNS + 8), &high, sizeof(high));
	}
}

static void random_operands(struct bench *b, struct isa_inst *in, const uint32_t *count,
			    unsigned int nparts)
{
	static const uint8_t integers[] = { ISA_INT8,	ISA_UINT8, ISA_INT16,
					    ISA_UINT16, ISA_INT32, ISA_UINT32 };
	static const uint8_t floats[] = { ISA_FP32, ISA_BF16, ISA_FP16 };
	struct isa_compute *c = &in->compute;
	unsigned int dtype = in->opcode == ISA_RNG ? integers[pick(b, 6)] :
						     random_dtype(b, ISA_VECTOR);
	bool is_float = dtype == ISA_FP32 || dtype == ISA_BF16 || dtype == ISA_FP16;

	c->compute_type = in->opcode == ISA_RNG ? ISA_CT_I32 : ISA_CT_F32;
	c->dst = random_tile(b, dtype, count, nparts, REGION(0), ROOM * 4 / 3, false);
	if (in->opcode == ISA_RAND2)
		random_bounds(b, in, true, floats[pick(b, 3)]);
	if (in->opcode != ISA_DROPOUT)
		return;
	c->src0 = random_tile(b, dtype, count, nparts, pick(b, 5) ? REGION(1) : REGION(0),
			      ROOM * 4 / 3, true);
	randomise(b, &c->src0);
	random_bounds(b, in, false, is_float ? floats[pick(b, 3)] : ISA_FP32);
}

static void test_numbers(void **state)
{
	static const uint32_t rows[] = { 1, 2, 3, 4, 5, 7, 16, 33, 100, 128 };
	struct bench *b = *state;

	for (unsigned int i = 0; i < ROUNDS; i++) {
		struct isa_inst in = { .opcode = (uint8_t)(ISA_RNG + i % 3) };
		unsigned int engine = in.opcode == ISA_RNG && pick(b, 2) ? ISA_GPSIMD : ISA_VECTOR;
		struct isa_inst set = bits_of(ISA_RAND_SET_STATE);
		unsigned int nparts = 1 + pick(b, 8);
		uint32_t count[ISA_TILE_DIMS] = { 1, 1 + pick(b, 2), 1 + pick(b, 3),
						  rows[pick(b, 10)] };

		set.compute.src0 = state_at(engine, nparts, BEFORE);
		for (unsigned int p = 0; p < nparts; p++)
			for (unsigned int k = 0; k < 6 * many(engine); k++) {
				uint32_t word = (uint32_t)rnd(b);

				memcpy(at(b->want, p, BEFORE + 4 * k), &word, sizeof(word));
			}
		random_operands(b, &in, count, nparts);
		upload(b);
		run_between(b, engine, &set, &in, nparts);
		reference(b, engine, &in);
		expect_want(b, engine, &in);
	}
}

/* As much as host threads share; how much is dropped, and that what stays is kept. */
static void test_rate(void **state)
{
	struct bench *b = *state;

	for (unsigned int k = 0; k < 5; k++) {
		struct isa_inst in = { .opcode = ISA_DROPOUT }, set = bits_of(ISA_RAND_SET_STATE);
		unsigned int zeros = 0;

		set.compute.src0 = state_at(ISA_VECTOR, 32, BEFORE);
		for (unsigned int p = 0; p < 32; p++) {
			struct generator g[4];

			for (unsigned int i = 0; i < 4; i++)
				g[i] = ref_seeded(k + 7, 8 * p + i);
			memcpy(at(b->want, p, BEFORE), g, sizeof(g));
			memset(at(b->want, p, REGION(1)), 0x3f, 4096);
		}
		in.compute.src0 = asm_row(ISA_SPACE_SBUF, ISA_BF16, 0, 32, REGION(1), 2048);
		in.compute.dst = asm_row(ISA_SPACE_SBUF, ISA_BF16, 0, 32, REGION(0), 2048);
		in.compute.imm0 = bits_f32((float)k / 4);
		upload(b);
		run_between(b, ISA_VECTOR, &set, &in, 32);
		reference(b, ISA_VECTOR, &in);
		expect_want(b, ISA_VECTOR, &in);
		for (unsigned int p = 0; p < 32; p++)
			for (unsigned int i = 0; i < 2048; i++)
				zeros += !*at(b->got, p, REGION(0) + 2 * i);
		/* Five standard deviations at most. */
		assert_uint_in_range(zeros, k * 16384 - (k % 4 ? 640 : 0),
				     k * 16384 + (k % 4 ? 640 : 0));
	}
}

/* --- what is refused ------------------------------------------------------------------------- */

static struct isa_inst good(unsigned int opcode)
{
	struct isa_inst in = bits_of(opcode);
	struct isa_compute *c = &in.compute;

	c->dst = asm_row(ISA_SPACE_SBUF, ISA_FP32, 0, 8, 256, 64);
	switch (opcode) {
	case ISA_SET_RNG_SEED:
		memset(&c->dst, 0, sizeof(c->dst));
		c->src0 = asm_row(ISA_SPACE_SBUF, ISA_INT32, 64, 1, 1024, 1);
		break;
	case ISA_RAND_SET_STATE:
		memset(&c->dst, 0, sizeof(c->dst));
		c->src0 = asm_row(ISA_SPACE_SBUF, ISA_UINT32, 64, 8, 1024, 24);
		break;
	case ISA_RAND_GET_STATE:
		c->dst = asm_row(ISA_SPACE_SBUF, ISA_UINT32, 0, 8, 256, 24);
		break;
	case ISA_RNG:
		c->compute_type = ISA_CT_I32;
		c->dst.dtype = ISA_INT32;
		break;
	case ISA_RAND2:
		c->compute_type = ISA_CT_F32;
		c->imm1 = bits_f32(1);
		break;
	default:
		c->compute_type = ISA_CT_F32;
		c->src0 = asm_row(ISA_SPACE_PSUM, ISA_FP32, 64, 8, 1024, 64);
		c->imm0 = bits_f32(0.5f);
		break;
	}
	return in;
}

static void test_refused(void **state)
{
	(void)state;
	for (unsigned int op = ISA_SET_RNG_SEED; op <= ISA_DROPOUT; op++) {
		const struct isa_inst in = good(op);
		const unsigned int ct = in.compute.compute_type;
		const bool takes = op != ISA_RNG && op != ISA_RAND2 && op != ISA_RAND_GET_STATE;
		const bool gives = op > ISA_RAND_SET_STATE;

		for (unsigned int e = ISA_TENSOR; e <= ISA_SYNC; e++)
			if (e != ISA_VECTOR && (e != ISA_GPSIMD || op > ISA_RNG) &&
			    (e != ISA_SCALAR || op > ISA_RAND_GET_STATE))
				assert_int_equal(judge(e, &in).status, EXI_FAULT_BAD_OPCODE);
		REFUSE(in, i->flags = ISA_F_ACCUM, ISA_F_ACCUM,
		       ISA_F_NOTIFY | (op == ISA_RAND2	 ? ISA_F_VEC0 | ISA_F_VEC1 :
				       op == ISA_DROPOUT ? ISA_F_VEC0 :
							   0));
		REFUSE(in, i->compute.compute_type = ct == ISA_CT_F32 ? ISA_CT_I32 : ISA_CT_F32,
		       ct == ISA_CT_F32 ? ISA_CT_I32 : ISA_CT_F32, 1 << ct);
		REFUSE(in, i->compute.op0 = 1, 1, 0);
		REFUSE(in, i->compute.op1 = 1, 1, 0);
		REFUSE(in, i->compute.n_axes = 1, 1, 0);
		REFUSE(in, i->compute.src1.offset = 4, 4, 0);
		REFUSE(in, i->compute.vec0.offset = 4, 4, 0);
		REFUSE(in, i->compute.vec1.offset = 4, 4, 0);
		if (!takes)
			REFUSE(in, i->compute.src0.nparts = 8, 8, 0);
		else
			REFUSE_BOUNDS(in,
				      (i->compute.src0.space = 0, i->compute.src0.offset = SBUF - 4,
				       i->compute.src0.count[3] = in.compute.src0.count[3],
				       i->compute.src0.step[0] = 8, i->compute.src0.count[0] = 2),
				      SBUF - 4 + 32 + 4 * in.compute.src0.count[3], SBUF);
		if (!gives)
			REFUSE(in, i->compute.dst.nparts = 8, 8, 0);
		else
			REFUSE_BOUNDS(in, i->compute.dst.offset = SBUF - 4,
				      SBUF - 4 + 4 * in.compute.dst.count[3], SBUF);
	}
}

static void test_each_refused(void **state)
{
	const struct isa_inst seed = good(ISA_SET_RNG_SEED), set = good(ISA_RAND_SET_STATE);
	const struct isa_inst get = good(ISA_RAND_GET_STATE), rng = good(ISA_RNG);
	const struct isa_inst rand2 = good(ISA_RAND2), drop = good(ISA_DROPOUT);
	const struct isa_column vec = { .offset = 64, .dtype = ISA_FP32 };
	struct isa_inst by_vec = drop, of_ints = drop, gpsimd = get;

	(void)state;
	REFUSE(seed, i->compute.src0.count[3] = 2, 2, 1);
	REFUSE(seed, i->compute.src0.nparts = 2, 2, 1);
	REFUSE(seed, i->compute.src0.dtype = ISA_INT16, ISA_INT16, ISA_UINT32);
	REFUSE(seed, i->compute.imm0 = 1, 1, 0);
	REFUSE(set, i->compute.src0.count[3] = 23, 23, 24);
	REFUSE(set, i->compute.src0.count[3] = 25, 25, 24);
	REFUSE(set, i->compute.src0.dtype = ISA_INT32, ISA_INT32, ISA_UINT32);
	REFUSE_ON(ISA_VECTOR, get, i->compute.dst.count[3] = 6, EXI_FAULT_BAD_OPERAND, 6, 24);
	REFUSE(get, i->compute.dst.dtype = ISA_FP32, ISA_FP32, ISA_UINT32);
	gpsimd.compute.dst.count[3] = 6;
	REFUSE_ON(ISA_GPSIMD, gpsimd, i->compute.dst.count[3] = 24, EXI_FAULT_BAD_OPERAND, 24, 6);
	REFUSE(rng, i->compute.dst.dtype = ISA_FP32, ISA_FP32, ISA_UINT32);
	REFUSE(rng, i->compute.dst.dtype = ISA_BF16, ISA_BF16, ISA_UINT32);
	REFUSE_ON(ISA_GPSIMD, rng, i->compute.dst.dtype = ISA_INT64, EXI_FAULT_BAD_OPERAND,
		  ISA_INT64, ISA_UINT32);
	REFUSE_ON(ISA_GPSIMD, rng, i->compute.dst.dtype = ISA_FP64, EXI_FAULT_BAD_OPERAND, ISA_FP64,
		  ISA_UINT32);
	REFUSE(rand2, i->compute.imm1 = 0, 0, 0);
	REFUSE(rand2, i->compute.imm0 = 0x7fc00000, bits_f32(1), 0x7fc00000);
	REFUSE(rand2, i->compute.imm1 = 1ull << 32, 1ull << 32, UINT32_MAX);
	REFUSE(drop, i->compute.imm0 = bits_f32(1.5f), bits_f32(1.5f), bits_f32(1));
	REFUSE(drop, i->compute.imm0 = bits_f32(-0.5f), bits_f32(-0.5f), bits_f32(1));
	REFUSE(drop, i->compute.imm0 = 0x7fc00000, 0x7fc00000, bits_f32(1));
	REFUSE(drop, i->compute.imm1 = 1, 1, 0);
	REFUSE(drop, i->compute.dst.dtype = ISA_INT32, ISA_INT32, ISA_FP32);
	REFUSE(drop, i->compute.src0.nparts = 7, 7, 8);
	by_vec.flags = ISA_F_VEC0;
	by_vec.compute.imm0 = 0;
	by_vec.compute.vec0 = vec;
	REFUSE(by_vec, i->compute.imm0 = 1, 1, 0);
	REFUSE(by_vec, i->compute.vec0.dtype = ISA_INT16, ISA_INT16, ISA_FP32);
	of_ints = by_vec;
	of_ints.compute.src0.dtype = of_ints.compute.dst.dtype = ISA_INT32;
	REFUSE(of_ints, i->compute.vec0.dtype = ISA_BF16, ISA_BF16, ISA_FP32);
}

/* --- checking mode, time ---------------------------------------------------------------------- */

static void test_accesses(void **state)
{
	const struct isa_inst seed = good(ISA_SET_RNG_SEED), set = good(ISA_RAND_SET_STATE);
	const struct isa_inst get = good(ISA_RAND_GET_STATE), rng = good(ISA_RNG);
	const struct isa_inst rand2 = good(ISA_RAND2), drop = good(ISA_DROPOUT);
	struct rig *r = *state;

	expect_access(r, ISA_VECTOR, &seed, ISA_SPACE_SBUF, 64, 64, 1024, 1028, READ);
	expect_access(r, ISA_VECTOR, &set, ISA_SPACE_SBUF, 64, 71, 1024, 1120, READ);
	expect_access(r, ISA_VECTOR, &get, ISA_SPACE_SBUF, 0, 7, 256, 352, WRITTEN);
	expect_access(r, ISA_GPSIMD, &rng, ISA_SPACE_SBUF, 0, 7, 256, 512, WRITTEN);
	expect_access(r, ISA_VECTOR, &rand2, ISA_SPACE_SBUF, 0, 7, 256, 512, WRITTEN);
	expect_access(r, ISA_VECTOR, &drop, ISA_SPACE_SBUF, 0, 7, 256, 512, WRITTEN);
	expect_access(r, ISA_VECTOR, &drop, ISA_SPACE_PSUM, 64, 71, 1024, 1280, READ);
}

/* An element a cycle. */
static void test_time(void **state)
{
	(void)state;
	for (unsigned int op = ISA_RNG; op <= ISA_DROPOUT; op++) {
		struct isa_inst in = good(op);

		in.compute.dst.count[3] = 2048;
		if (op == ISA_DROPOUT)
			in.compute.src0.count[3] = 2048;
		expect_cycles(RIG_ARCH, &in, 2048 + 60, 1200000000);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_seeds, setup, teardown),
		cmocka_unit_test_setup_teardown(test_states, setup, teardown),
		cmocka_unit_test_setup_teardown(test_numbers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rate, setup, teardown),
		cmocka_unit_test_setup_teardown(test_accesses, racing_setup, rig_teardown),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_each_refused),
		cmocka_unit_test(test_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
