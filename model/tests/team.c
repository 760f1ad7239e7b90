// SPDX-License-Identifier: Apache-2.0
/*
 * Threads that share instructions: each part is done once, whoever calls; and memory is after large
 * instructions, divided among threads, as it is when one thread does them.
 */
#include <stdatomic.h>

#include "rig.h"
#include "team.h"

#define THREADS 4

/* --- parts -------------------------------------------------------------------------------- */

#define PARTS 200

struct count {
	_Atomic unsigned int done[PARTS];
};

static void count_part(void *arg, unsigned int part, uint64_t *const *buffer)
{
	struct count *c = arg;

	if (buffer)
		*buffer[0] = part; /* its own */
	atomic_fetch_add(&c->done[part], 1);
}

static void *caller(void *arg)
{
	struct count *c = calloc(1, sizeof(*c));

	for (unsigned int round = 0; round < 3000; round++) {
		unsigned int parts = 1 + (round * 7 + *(unsigned int *)arg) % PARTS;

		memset(c, 0, sizeof(*c));
		nm_team_run(count_part, c, parts);
		for (unsigned int i = 0; i < PARTS; i++)
			if (c->done[i] != (i < parts))
				return c;
		/* Long enough for the others to go to sleep, now and then. */
		if (round % 500 == 0)
			nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	free(c);
	return NULL;
}

static void test_each_part_once(void **state)
{
	pthread_t thread[3];
	unsigned int number[3];

	(void)state;
	nm_team_hold(THREADS);
	assert_int_equal(nm_team_threads(), THREADS);
	for (unsigned int i = 0; i < 3; i++) {
		number[i] = i;
		assert_int_equal(pthread_create(&thread[i], NULL, caller, &number[i]), 0);
	}
	for (unsigned int i = 0; i < 3; i++) {
		void *wrong;

		pthread_join(thread[i], &wrong);
		assert_null(wrong);
	}
	nm_team_release();
}

static void test_first_holder_decides(void **state)
{
	(void)state;
	assert_int_equal(nm_team_threads(), 1);
	nm_team_hold(3);
	nm_team_hold(2);
	assert_int_equal(nm_team_threads(), 3);
	nm_team_release();
	assert_int_equal(nm_team_threads(), 3);
	nm_team_release();
	assert_int_equal(nm_team_threads(), 1);
	nm_team_hold(1);
	assert_int_equal(nm_team_threads(), 1);
	nm_team_release();
	nm_team_hold(1000);
	assert_int_equal(nm_team_threads(), NM_THREADS_MAX);
	nm_team_release();
}

/* --- results ------------------------------------------------------------------------------- */

#define N     1024 /* elements of a partition */
#define AREA  4096 /* bytes of it */
#define AREAS 8

#define SBUF_DUMP (128u * AREA * AREAS)
#define PSUM_DUMP (128u * NM_PSUM_BYTES)

static const struct exi_slot slots[] = {
	{ .base = 0x400000, .size = SBUF_DUMP, .rights = EXI_SLOT_READ | EXI_SLOT_WRITE },
	{ .base = 0x1000000, .size = SBUF_DUMP, .rights = EXI_SLOT_READ | EXI_SLOT_WRITE },
	{ .base = 0x1c00000, .size = PSUM_DUMP, .rights = EXI_SLOT_READ | EXI_SLOT_WRITE },
};

static struct isa_tile tile(unsigned int area, unsigned int dtype)
{
	return asm_row(ISA_SPACE_SBUF, dtype, 0, 128, area * AREA, N);
}

static struct isa_column column(unsigned int area)
{
	return (struct isa_column){ .space = ISA_SPACE_SBUF,
				    .dtype = ISA_FP32,
				    .offset = area * AREA };
}

/* One program that runs in its order: each instruction waits for the one before. */
struct chain {
	struct program p;
	unsigned int sem, engine;
};

static struct isa_inst *link(struct chain *c, unsigned int engine, struct isa_inst *in)
{
	if (c->sem)
		asm_wait(in, c->sem, 1);
	asm_update(in, ++c->sem, 1);
	c->engine = engine;
	return in;
}

static struct isa_compute *compute(struct chain *c, unsigned int engine, unsigned int opcode,
				   unsigned int flags)
{
	struct isa_inst *in = link(c, engine, asm_inst(&c->p, engine, opcode));

	in->flags = (uint16_t)flags;
	return &in->compute;
}

static void transfer(struct chain *c, struct isa_dma_side dst, struct isa_dma_side src)
{
	link(c, ISA_SYNC, asm_dma(&c->p, ISA_SYNC, 0, 4, dst, src));
}

static void elementwise(struct chain *c)
{
	struct isa_compute *i;

	i = compute(c, ISA_VECTOR, ISA_TENSOR_TENSOR, 0);
	i->op0 = ISA_ADD;
	i->dst = tile(1, ISA_FP32);
	i->src0 = tile(0, ISA_FP32);
	i->src1 = tile(0, ISA_BF16);
	i = compute(c, ISA_VECTOR, ISA_TENSOR_SCALAR, ISA_F_VEC0);
	i->op0 = ISA_MULT;
	i->op1 = ISA_BYPASS;
	i->dst = tile(2, ISA_BF16);
	i->src0 = tile(1, ISA_FP32);
	i->vec0 = column(0);
	i = compute(c, ISA_SCALAR, ISA_ACTIVATION, ISA_F_ACCUM | ISA_F_VEC1);
	i->op0 = ISA_ACT_TANH;
	i->dst = tile(3, ISA_FP32);
	i->src0 = tile(0, ISA_FP32);
	i->src1 = asm_row(ISA_SPACE_SBUF, ISA_FP32, 0, 128, 4 * AREA, 1);
	i->imm0 = 0x3f800000;
	i->vec1 = column(1);
	i = compute(c, ISA_VECTOR, ISA_COPY_PREDICATED, 0);
	i->compute_type = ISA_CT_BITS;
	i->dst = tile(3, ISA_FP32);
	i->src0 = tile(0, ISA_INT8);
	i->src1 = tile(1, ISA_FP32);
	i = compute(c, ISA_VECTOR, ISA_REDUCE, 0);
	i->op0 = ISA_ADD;
	i->n_axes = 1;
	i->dst = asm_row(ISA_SPACE_SBUF, ISA_FP32, 0, 128, 4 * AREA + 64, 1);
	i->src0 = tile(3, ISA_FP32);
	i = compute(c, ISA_VECTOR, ISA_MAX8, 0);
	i->dst = asm_row(ISA_SPACE_SBUF, ISA_FP32, 0, 128, 4 * AREA + 128, 8);
	i->src0 = tile(3, ISA_FP32);
	i = compute(c, ISA_VECTOR, ISA_TENSOR_SCALAR_CUMULATIVE, 0);
	i->op0 = ISA_MULT;
	i->op1 = ISA_ADD;
	i->imm0 = 0x3f000000;
	i->dst = tile(5, ISA_FP32);
	i->src0 = tile(3, ISA_FP32);
	/* Goes on where the partitions' sums ended. */
	i = compute(c, ISA_VECTOR, ISA_TENSOR_SCALAR_CUMULATIVE, ISA_F_ACCUM);
	i->op0 = ISA_MULT;
	i->op1 = ISA_ADD;
	i->imm0 = 0x3f000000;
	i->dst = tile(5, ISA_FP32);
	i->src0 = tile(0, ISA_FP32);
	/* Each partition reads what the one before has written: not to be divided. */
	i = compute(c, ISA_VECTOR, ISA_COPY, 0);
	i->compute_type = ISA_CT_BITS;
	i->dst = asm_row(ISA_SPACE_SBUF, ISA_FP32, 32, 96, 6 * AREA, N);
	i->src0 = asm_row(ISA_SPACE_SBUF, ISA_FP32, 0, 96, 6 * AREA, N);
}

static void products(struct chain *c)
{
	static const uint8_t dtypes[] = { ISA_FP32, ISA_BF16, ISA_FP16 };

	for (unsigned int d = 0; d < sizeof(dtypes); d++) {
		struct isa_compute *i = compute(c, ISA_TENSOR, ISA_LOAD_STATIONARY, 0);

		i->src0 = asm_row(ISA_SPACE_SBUF, dtypes[d], 0, 127, 0, 125);
		for (unsigned int k = 0; k < 2; k++) {
			i = compute(c, ISA_TENSOR, ISA_MATMUL, k ? ISA_F_ACCUM : 0);
			i->dst = asm_row(ISA_SPACE_PSUM, ISA_FP32, 0, 125,
					 (2 * d) * ISA_PSUM_BANK_BYTES, 512);
			i->src0 = asm_row(ISA_SPACE_SBUF, dtypes[d], 0, 127, 7 * AREA, 512);
		}
		i = compute(c, ISA_TENSOR, ISA_MATMUL, 0);
		i->dst = asm_row(ISA_SPACE_PSUM, ISA_FP32, 0, 125,
				 (2 * d + 1) * ISA_PSUM_BANK_BYTES, 256);
		i->dst.step[3] = 2;
		i->src0 = asm_row(ISA_SPACE_SBUF, dtypes[d], 0, 127, 7 * AREA, 256);
		i->src0.step[3] = 2;
	}
}

static void transfers(struct chain *c)
{
	/* Out and back reversed, and within a slot by elements that overlap. */
	transfer(c, asm_flat(1, 0, 128 * N, 4), asm_chip(ISA_SPACE_SBUF, 0, 128, 5 * AREA, N, 4));
	transfer(c, asm_chip(ISA_SPACE_SBUF, 0, 128, 2 * AREA, N, 4),
		 asm_flat(1, (128 * N - 1) * 4, 128 * N, (uint64_t)-4));
	transfer(c, asm_flat(1, 4, 100 * N, 4), asm_flat(1, 0, 100 * N, 4));
	transfer(c, asm_flat(0, 0, SBUF_DUMP / 4, 4), asm_flat(1, 0, SBUF_DUMP / 4, 4));
	transfer(c, asm_flat(1, 0, SBUF_DUMP / 4, 4),
		 asm_chip(ISA_SPACE_SBUF, 0, 128, 0, AREAS * AREA / 4, 4));
	transfer(c, asm_flat(2, 0, PSUM_DUMP / 4, 4),
		 asm_chip(ISA_SPACE_PSUM, 0, 128, 0, NM_PSUM_BYTES / 4, 4));
}

/* Memory of all slots after the program ran; the caller's. */
static uint8_t *run(unsigned int threads, bool subnormal)
{
	struct rig *r = rig_create();
	struct chain *c = calloc(1, sizeof(*c));
	uint8_t *out = malloc(2 * SBUF_DUMP + PSUM_DUMP), row[AREAS * AREA];
	uint32_t seed = 12345;

	nm_team_hold(threads);
	assert_int_equal(nm_team_threads(), threads);
	rig_queue(r, 0, 1);
	for (unsigned int p = 0; p < 128; p++) {
		for (unsigned int i = 0; i < sizeof(row); i += 2) {
			uint16_t half;

			seed = seed * 1664525u + 1013904223u;
			/* From 2^-7 to 2^8, as fp32 or bf16. */
			half = (uint16_t)(seed >> 31 << 15 | (120 + (seed >> 16) % 16) << 7 |
					  (seed >> 24) % 128);
			if (subnormal && p == 77 && i == 7 * AREA)
				half = 1;
			memcpy(row + i, &half, sizeof(half));
		}
		assert_int_equal(nm_core_sbuf_write(r->core, (uint64_t)p * NM_SBUF_VIEW_PITCH, row,
						    sizeof(row)),
				 0);
	}
	for (unsigned int s = 0; s < 3; s++)
		asm_slot(&c->p, NPROG_SLOT_INOUT, slots[s].size);
	elementwise(c);
	products(c);
	transfers(c);
	assert_int_equal(rig_program(r, &c->p, slots).status, EXI_OK);
	memcpy(out, r->hbm + slots[0].base, SBUF_DUMP);
	memcpy(out + SBUF_DUMP, r->hbm + slots[1].base, SBUF_DUMP);
	memcpy(out + 2 * SBUF_DUMP, r->hbm + slots[2].base, PSUM_DUMP);
	rig_destroy(r);
	nm_team_release();
	free(c);
	return out;
}

static void test_same_results(void **state)
{
	(void)state;
	for (unsigned int subnormal = 0; subnormal < 2; subnormal++) {
		uint8_t *one = run(1, subnormal), *four = run(THREADS, subnormal);

		for (uint32_t i = 0; i < 2 * SBUF_DUMP + PSUM_DUMP; i++)
			if (one[i] != four[i])
				fail_msg("byte %u is 0x%02x by one thread, 0x%02x by four", i,
					 one[i], four[i]);
		free(one);
		free(four);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_part_once),
		cmocka_unit_test(test_first_holder_decides),
		cmocka_unit_test(test_same_results),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
