// SPDX-License-Identifier: Apache-2.0
/* Transfers that add to their destination: each dtype against one element at a time, with rows by index. */
#include "reference.h"
#include "rig.h"

#define ROUNDS 200
#define PITCH  8192u /* bytes of a partition, or from row to row of a slot */
#define ROWS   8u
#define BYTES  (ROWS * PITCH)

/* Slots may begin anywhere. */
static const struct exi_slot slots[2] = {
	{ .base = 0x100001, .size = BYTES, .rights = EXI_SLOT_READ },
	{ .base = 0x200003, .size = BYTES, .rights = EXI_SLOT_READ | EXI_SLOT_WRITE },
};

struct bench {
	struct rig *rig;
	uint64_t seed;
	uint8_t *term, *sum; /* what the slots should hold */
};

static uint32_t rnd(struct bench *b)
{
	b->seed = b->seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(b->seed >> 33);
}

static const uint8_t dtypes[] = { ISA_FP32, ISA_BF16, ISA_FP16, ISA_INT32 };

/* A finite number: which NaN results is not defined. */
static void put_number(struct bench *b, unsigned int dtype, uint8_t *at)
{
	const uint32_t bytes = isa_dtype_bytes(dtype);
	uint32_t bits = rnd(b) << 1 ^ rnd(b);
	float f = (float)(int32_t)bits / (float)(1u << rnd(b) % 31);

	if (dtype == ISA_FP16)
		bits = bits & 0xbfff; /* below 2 */
	else if (dtype != ISA_INT32)
		memcpy(&bits, &f, 4);
	if (dtype == ISA_BF16)
		bits >>= 16;
	memcpy(at, &bits, bytes);
}

static void add(unsigned int dtype, uint8_t *d, const uint8_t *s)
{
	const unsigned int ct = dtype == ISA_INT32 ? ISA_CT_I32 : ISA_CT_F32;
	const uint64_t bits = ref_store(
		ct, dtype, ref_alu(ct, ISA_ADD, ref_load(ct, dtype, d), ref_load(ct, dtype, s)));

	memcpy(d, &bits, isa_dtype_bytes(dtype));
}

/* Numbers of a dtype all over both slots. */
static void fill(struct bench *b, unsigned int dtype)
{
	for (uint32_t i = 0; i + 4 <= BYTES; i += isa_dtype_bytes(dtype)) {
		put_number(b, dtype, b->term + i);
		put_number(b, dtype, b->sum + i);
	}
}

static struct program *new_program(void)
{
	struct program *p = calloc(1, sizeof(*p));

	asm_slot(p, NPROG_SLOT_INPUT, BYTES);
	asm_slot(p, NPROG_SLOT_INOUT, BYTES);
	return p;
}

static void load(struct program *p, unsigned int slot, uint64_t at)
{
	asm_dma(p, ISA_SYNC, 0, 1, asm_chip(ISA_SPACE_SBUF, 0, ROWS, at, PITCH, 1),
		asm_flat(slot, 0, BYTES, 1));
}

static struct exi_record run(struct bench *b, struct program *p)
{
	memcpy(b->rig->hbm + slots[0].base, b->term, BYTES);
	memcpy(b->rig->hbm + slots[1].base, b->sum, BYTES);
	return rig_once(b->rig, p, slots);
}

static void assert_sums(const struct bench *b, unsigned int dtype, unsigned int round)
{
	const uint8_t *hbm = b->rig->hbm + slots[1].base;

	for (uint32_t i = 0; i < BYTES; i++)
		if (hbm[i] != b->sum[i])
			fail_msg("dtype %u, round %u: byte %u is 0x%02x, not 0x%02x", dtype, round,
				 i, hbm[i], b->sum[i]);
}

/* n elements of each row, in a slot or a partition. */
static struct isa_dma_side side(bool chip, unsigned int slot, uint64_t at, uint32_t n, int64_t step)
{
	if (chip)
		return asm_chip(ISA_SPACE_SBUF, 0, ROWS, (slot ? 0 : PITCH) + at, n,
				(uint64_t)step);
	return (struct isa_dma_side){ .space = ISA_SPACE_SLOT,
				      .slot = (uint16_t)slot,
				      .ndim = 2,
				      .offset = at,
				      .step = { PITCH, (uint64_t)step },
				      .count = { ROWS, n } };
}

static struct isa_inst *sum(struct isa_inst *in, unsigned int dtype)
{
	in->flags |= ISA_F_ACCUM;
	in->elem_bytes = (uint8_t)isa_dtype_bytes(dtype);
	if (in->opcode == ISA_DMA)
		in->dma.dst.dtype = (uint8_t)dtype;
	else
		in->indirect.dst.dtype = (uint8_t)dtype;
	return in;
}

static void random_sums(void **state)
{
	struct bench *b = *state;

	for (unsigned int round = 0; round < ROUNDS; round++) {
		const unsigned int dtype = dtypes[round % 4];
		const uint32_t bytes = isa_dtype_bytes(dtype);
		/* Behind a chunk of the model, too. */
		const int64_t dstep = bytes * (1 + rnd(b) % 2), sstep = bytes * (rnd(b) % 3);
		const uint32_t n = 1 + rnd(b) % (PITCH / (2 * bytes) - 1);
		const uint64_t at = rnd(b) % 2 * bytes;
		const bool to_chip = rnd(b) % 2, from_chip = rnd(b) % 2, back = rnd(b) % 4 == 0;
		const int64_t first = back ? (n - 1) * dstep : 0;
		struct program *p = new_program();
		struct exi_record rec;

		fill(b, dtype);
		load(p, 1, 0);
		load(p, 0, PITCH);
		sum(asm_dma(p, ISA_SYNC, 0, bytes,
			    side(to_chip, 1, (uint64_t)first, n, back ? -dstep : dstep),
			    side(from_chip, 0, at, n, sstep)),
		    dtype);
		if (to_chip)
			asm_dma(p, ISA_SYNC, 0, 1, asm_flat(1, 0, BYTES, 1),
				asm_chip(ISA_SPACE_SBUF, 0, ROWS, 0, PITCH, 1));
		rec = run(b, p);
		assert_int_equal(rec.status, EXI_OK);
		assert_int_equal(rec.dma_bytes, (2 + to_chip) * BYTES + (uint64_t)n * ROWS * bytes);
		for (uint32_t r = 0; r < ROWS; r++)
			for (uint32_t i = 0; i < n; i++)
				add(dtype, b->sum + r * PITCH + first + (back ? -dstep : dstep) * i,
				    b->term + r * PITCH + at + sstep * i);
		assert_sums(b, dtype, round);
	}
}

/* All elements to one place: in order, rounded each time. */
static void one_place_takes_all(void **state)
{
	struct bench *b = *state;

	for (unsigned int k = 0; k < 4; k++) {
		const unsigned int dtype = dtypes[k];
		const uint32_t bytes = isa_dtype_bytes(dtype);
		struct program *p = new_program();

		fill(b, dtype);
		sum(asm_dma(p, ISA_SYNC, 0, bytes, asm_flat(1, 64, 300, 0),
			    asm_flat(0, 0, 300, bytes)),
		    dtype);
		assert_int_equal(run(b, p).status, EXI_OK);
		for (uint32_t i = 0; i < 300; i++)
			add(dtype, b->sum + 64, b->term + i * bytes);
		assert_sums(b, dtype, k);
	}
}

/* A transposed sum, which no engine transposes on its way. */
static void a_turned_sum(void **state)
{
	struct bench *b = *state;
	struct program *p = new_program();
	struct isa_dma_side turned = {
		.space = ISA_SPACE_SLOT, .ndim = 2, .step = { 4, 256 }, .count = { 64, 128 }
	};

	fill(b, ISA_FP32);
	sum(asm_dma(p, ISA_SYNC, 0, 4, asm_flat(1, 0, 64 * 128, 4), turned), ISA_FP32);
	assert_int_equal(run(b, p).status, EXI_OK);
	for (uint32_t i = 0; i < 64 * 128; i++)
		add(ISA_FP32, b->sum + i * 4, b->term + i / 128 * 4 + i % 128 * 256);
	assert_sums(b, ISA_FP32, 0);
}

/* --- rows by index ----------------------------------------------------------------------------- */

enum { TABLE_ROWS = 5, N_INDEX = 64, WIDTH = 24 };

/* Index of row r, of 64 in one partition; some out of bounds. */
static uint32_t index_of(uint32_t r)
{
	return (r * r + r / 8) % 7;
}

static struct isa_dma_indirect by_index(bool scatter, uint32_t bytes)
{
	struct isa_dma_rows table = { .space = ISA_SPACE_SLOT,
				      .slot = scatter,
				      .ndim = 1,
				      .offset = 8,
				      .step = { bytes },
				      .count = { WIDTH } };
	struct isa_dma_rows rows = { .space = ISA_SPACE_SLOT,
				     .slot = !scatter,
				     .ndim = 2,
				     .offset = 4,
				     .step = { 128, bytes },
				     .count = { N_INDEX, WIDTH } };

	return (struct isa_dma_indirect){
		.dst = scatter ? table : rows,
		.src = scatter ? rows : table,
		.index = { .dtype = ISA_INT32,
			   .part0 = 100,
			   .nparts = 1,
			   .count = N_INDEX,
			   .step = 1 },
		.row_step = 200,
		.rows = TABLE_ROWS,
		.oob = ISA_OOB_SKIP,
	};
}

/* Gradients of an embedding: rows of one index add up, in order. */
static void rows_add_up(void **state)
{
	struct bench *b = *state;

	for (unsigned int round = 0; round < 8; round++) {
		const bool scatter = round & 1;
		const unsigned int dtype = dtypes[round / 2];
		const uint32_t bytes = isa_dtype_bytes(dtype);
		const struct isa_dma_indirect in = by_index(scatter, bytes);
		struct program *p = new_program();
		struct isa_inst *inst =
			asm_inst(p, ISA_SYNC, scatter ? ISA_DMA_SCATTER : ISA_DMA_GATHER);
		uint32_t moved = 0;
		struct exi_record rec;

		inst->indirect = in;
		sum(inst, dtype);
		fill(b, dtype);
		for (uint32_t r = 0; r < N_INDEX; r++) {
			const uint32_t index = index_of(r);

			nm_core_sbuf_write(b->rig->core, 100ull * NM_SBUF_VIEW_PITCH + r * 4,
					   &index, 4);
		}
		rec = run(b, p);
		assert_int_equal(rec.status, EXI_OK);
		for (uint32_t r = 0; r < N_INDEX; r++) {
			const uint32_t table = 8 + index_of(r) * 200, row = 4 + r * 128;

			if (index_of(r) >= TABLE_ROWS)
				continue;
			moved++;
			for (uint32_t i = 0; i < WIDTH * bytes; i += bytes)
				add(dtype, b->sum + (scatter ? table : row) + i,
				    b->term + (scatter ? row : table) + i);
		}
		assert_int_equal(rec.dma_bytes, moved * WIDTH * bytes);
		assert_true(moved > N_INDEX / 2);
		assert_sums(b, dtype, round);
	}
}

/* --- device time, checking mode ---------------------------------------------------------------- */

static uint64_t copy_ns(struct bench *b, bool sums)
{
	struct program *p = new_program();
	struct isa_inst *in = asm_dma(p, ISA_SYNC, 0, 4, asm_flat(1, 0, BYTES / 4, 4),
				      asm_flat(0, 0, BYTES / 4, 4));
	struct exi_record rec;

	fill(b, ISA_FP32);
	if (sums)
		sum(in, ISA_FP32);
	rec = run(b, p);
	assert_int_equal(rec.status, EXI_OK);
	return rec.end_ns - rec.start_ns;
}

/* What is added to is read as well: 64 KiB and 16 descriptors more over 16 DMA engines. */
static void a_sum_reads_twice(void **state)
{
	const uint64_t more = 6 + BYTES / 16 / 23;
	const uint64_t took = copy_ns(*state, true) - copy_ns(*state, false);

	assert_uint_in_range(took, more - 1, more + 2);
}

static void the_destination_is_read(void **state)
{
	struct bench *b = *state;

	rig_written(b->rig, slots[0].base, BYTES);
	for (unsigned int loaded = 0; loaded < 2; loaded++) {
		struct program *p = new_program();
		struct exi_record rec;

		if (loaded)
			load(p, 0, 0);
		sum(asm_dma(p, ISA_SYNC, 0, 4, asm_chip(ISA_SPACE_SBUF, 2, 1, 64, 8, 4),
			    asm_flat(0, 0, 8, 4)),
		    ISA_FP32);
		rec = run(b, p);
		if (loaded) {
			assert_int_equal(rec.status, EXI_OK);
			continue;
		}
		assert_int_equal(rec.status, EXI_FAULT_UNINITIALISED);
		assert_int_equal(rec.value, EXI_PLACE(ISA_SPACE_SBUF, 2, 64));
	}
}

/* Two queues that add to one place. */
static void sums_race(void **state)
{
	struct bench *b = *state;

	rig_written(b->rig, slots[0].base, BYTES);
	rig_written(b->rig, slots[1].base, BYTES);
	for (unsigned int queue = 0; queue < 2; queue++) {
		struct program *p = new_program();

		for (unsigned int i = 0; i < 2; i++)
			sum(asm_dma(p, ISA_SYNC, i * queue, 4, asm_flat(1, 0, 8, 4),
				    asm_flat(0, 0, 8, 4)),
			    ISA_INT32);
		assert_int_equal(run(b, p).status, queue ? EXI_FAULT_RACE : EXI_OK);
	}
}

/* --- life ----------------------------------------------------------------------------------------- */

static struct bench *create(uint32_t check)
{
	struct bench *b = calloc(1, sizeof(*b));

	b->seed = 11;
	b->rig = rig_create_checking(check);
	rig_queue(b->rig, 0, 1);
	b->term = calloc(1, BYTES);
	b->sum = calloc(1, BYTES);
	return b;
}

static int setup(void **state)
{
	*state = create(0);
	return 0;
}

static int setup_checking(void **state)
{
	*state = create(NM_CHECK_ALL);
	return 0;
}

static int teardown(void **state)
{
	struct bench *b = *state;

	rig_destroy(b->rig);
	free(b->term);
	free(b->sum);
	free(b);
	return 0;
}

#define TEST(name)    cmocka_unit_test_setup_teardown(name, setup, teardown)
#define CHECKED(name) cmocka_unit_test_setup_teardown(name, setup_checking, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(random_sums),  TEST(one_place_takes_all), TEST(a_turned_sum),
		TEST(rows_add_up),  TEST(a_sum_reads_twice),   CHECKED(the_destination_is_read),
		CHECKED(sums_race),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
