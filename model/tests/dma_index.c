// SPDX-License-Identifier: Apache-2.0
/* Gather and scatter by index: random shapes against one element at a time, bounds, order, time. */
#include <stdatomic.h>

#include "rig.h"

#define ROUNDS	    400
#define AREA	    1024u /* bytes of each partition that the tests use */
#define DATA	    768u /* of them for rows; indices lie behind */
#define TABLE_BYTES 16384u
#define FLAT_BYTES  65536u

enum { SBUF_IN, SBUF_OUT, TABLE, FLAT, SLOTS };

static const uint64_t base[SLOTS] = { 0x100000, 0x200000, 0x300003, 0x400001 };
static const uint32_t size[SLOTS] = { 128 * AREA, 128 * AREA, TABLE_BYTES, FLAT_BYTES };

struct bench {
	struct rig *rig;
	uint64_t seed;
	uint8_t *sbuf, *table, *flat; /* as they should be */
};

static uint32_t rnd(struct bench *b)
{
	b->seed = b->seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(b->seed >> 33);
}

static struct program *new_program(void)
{
	struct program *p = calloc(1, sizeof(*p));

	asm_slot(p, NPROG_SLOT_INPUT, size[SBUF_IN]);
	asm_slot(p, NPROG_SLOT_OUTPUT, size[SBUF_OUT]);
	asm_slot(p, NPROG_SLOT_INOUT, size[TABLE]);
	asm_slot(p, NPROG_SLOT_INOUT, size[FLAT]);
	return p;
}

/* SBUF as the reference has it. */
static void load_sbuf(struct program *p)
{
	asm_dma(p, ISA_SYNC, 0, 1, asm_chip(ISA_SPACE_SBUF, 0, 128, 0, AREA, 1),
		asm_flat(SBUF_IN, 0, 128 * AREA, 1));
}

static void store_sbuf(struct program *p)
{
	asm_dma(p, ISA_SYNC, 0, 1, asm_flat(SBUF_OUT, 0, 128 * AREA, 1),
		asm_chip(ISA_SPACE_SBUF, 0, 128, 0, AREA, 1));
}

static struct isa_inst *indirect(struct program *p, unsigned int opcode, unsigned int elem,
				 const struct isa_dma_indirect *body)
{
	struct isa_inst *in = asm_inst(p, ISA_SYNC, opcode);

	in->elem_bytes = (uint8_t)elem;
	in->indirect = *body;
	return in;
}

/* Runs with the reference's memories as the device's. */
static struct exi_record run(struct bench *b, struct program *p)
{
	struct exi_slot slots[SLOTS];

	for (unsigned int i = 0; i < SLOTS; i++)
		slots[i] = (struct exi_slot){ base[i], size[i], .rights = p->slot[i].rights };
	memcpy(b->rig->hbm + base[SBUF_IN], b->sbuf, size[SBUF_IN]);
	memcpy(b->rig->hbm + base[TABLE], b->table, size[TABLE]);
	memcpy(b->rig->hbm + base[FLAT], b->flat, size[FLAT]);
	return rig_once(b->rig, p, slots);
}

static void assert_slots(const struct bench *b, const char *what, unsigned int round)
{
	const uint8_t *hbm = b->rig->hbm;

	if (memcmp(hbm + base[TABLE], b->table, size[TABLE]))
		fail_msg("%s %u: the table differs", what, round);
	if (memcmp(hbm + base[FLAT], b->flat, size[FLAT]))
		fail_msg("%s %u: the other slot differs", what, round);
	for (unsigned int i = 0; i < 4096; i++)
		if (hbm[base[TABLE] - 1 - i] || hbm[base[TABLE] + size[TABLE] + i])
			fail_msg("%s %u: bytes beside the table changed", what, round);
}

static void assert_sbuf(const struct bench *b, const char *what, unsigned int round)
{
	if (memcmp(b->rig->hbm + base[SBUF_OUT], b->sbuf, size[SBUF_OUT]))
		fail_msg("%s %u: SBUF differs", what, round);
}

/* --- the specification, one element at a time -------------------------------------------- */

static uint8_t *index_at(struct bench *b, const struct isa_dma_indirect *in, uint32_t row)
{
	const struct isa_dma_index *ix = &in->index;
	uint32_t part = in->order == ISA_INDEX_FREE ? row % ix->nparts : row / ix->count;
	uint32_t i = in->order == ISA_INDEX_FREE ? row / ix->nparts : row % ix->count;

	return b->sbuf + (ix->part0 + part) * AREA + ix->offset +
	       (int32_t)i * (int32_t)ix->step * 4;
}

static int64_t index_value(struct bench *b, const struct isa_dma_indirect *in, uint32_t row)
{
	uint32_t bits;

	memcpy(&bits, index_at(b, in, row), 4);
	return in->index.dtype == ISA_INT32 ? (int32_t)bits : (int64_t)bits;
}

/* Element n of a side; what is left of n is the partition. */
static uint8_t *element(struct bench *b, const struct isa_dma_rows *s, uint64_t n, int64_t add)
{
	int64_t at = (int64_t)s->offset + add;

	for (int d = s->ndim - 1; d >= 0; d--) {
		at += (int64_t)(n % s->count[d]) * (int64_t)s->step[d];
		n /= s->count[d];
	}
	if (s->space == ISA_SPACE_SLOT) {
		assert_true(n == 0 && at >= 0 && at < (int64_t)size[s->slot]);
		return (s->slot == TABLE ? b->table : b->flat) + at;
	}
	assert_true(at >= 0 && at < AREA);
	return b->sbuf + (s->part0 + n * s->part_step) * AREA + (uint64_t)at;
}

/* Rows that were moved. */
static uint32_t reference(struct bench *b, bool scatter, const struct isa_dma_indirect *in,
			  uint32_t rows, uint32_t row_elems, unsigned int elem)
{
	uint32_t moved = 0;

	for (uint32_t r = 0; r < rows; r++) {
		int64_t index = index_value(b, in, r);
		const struct isa_dma_rows *indexed = scatter ? &in->dst : &in->src;
		const struct isa_dma_rows *other = scatter ? &in->src : &in->dst;

		if (index < 0 || index >= in->rows)
			continue;
		moved++;
		for (uint32_t k = 0; k < row_elems; k++) {
			uint8_t *t = element(b, indexed, k, index * (int64_t)in->row_step);
			uint8_t *o = element(b, other, (uint64_t)r * row_elems + k, 0);

			memcpy(scatter ? t : o, scatter ? o : t, elem);
		}
	}
	return moved;
}

/* --- random ---------------------------------------------------------------------------------- */

struct shape {
	bool scatter;
	unsigned int elem; /* bytes */
	uint32_t rows, row_elems;
	struct isa_dma_indirect in;
};

static void random_index(struct bench *b, struct shape *s)
{
	struct isa_dma_index *ix = &s->in.index;
	const uint32_t room = (AREA - DATA) / 4;
	uint32_t parts = 1;

	while (parts < 128 && s->rows % (2 * parts) == 0 && (rnd(b) % 3 || s->rows / parts > room))
		parts *= 2;
	ix->dtype = rnd(b) % 2 ? ISA_INT32 : ISA_UINT32;
	ix->nparts = (uint8_t)parts;
	ix->part0 = (uint8_t)(rnd(b) % (129 - parts));
	ix->count = s->rows / parts;
	ix->step = ix->count * 3 < room ? rnd(b) % 3 + 1 : 1;
	ix->offset = DATA + 4 * (rnd(b) % (room - (ix->count - 1) * ix->step));
	if (rnd(b) % 4 == 0) {
		ix->offset += 4 * (ix->count - 1) * ix->step;
		ix->step = 0 - ix->step;
	}
	s->in.order = rnd(b) % 2;
	s->in.oob = rnd(b) % 2;
}

/* Rows of a table: of one dim, or of two that skip some, forwards or backwards. */
static void random_table(struct bench *b, struct shape *s, struct isa_dma_rows *side)
{
	uint32_t inner = s->row_elems % 4 ? s->row_elems : s->row_elems / 4;
	uint32_t pitch = s->row_elems * s->elem * 2 + rnd(b) % 3;
	uint32_t most = TABLE_BYTES / pitch - 1;

	side->space = ISA_SPACE_SLOT;
	side->slot = TABLE;
	side->ndim = inner == s->row_elems ? 1 : 2;
	side->count[0] = s->row_elems / inner;
	side->step[0] = (uint64_t)inner * s->elem * (1 + rnd(b) % 2);
	side->count[side->ndim - 1] = inner;
	side->step[side->ndim - 1] = s->elem;
	s->in.rows = 1 + rnd(b) % most;
	s->in.row_step = rnd(b) % 2 ? pitch : s->row_elems * s->elem; /* rows may overlap */
	side->offset = rnd(b) % pitch;
	if (rnd(b) % 4 == 0) {
		side->offset += (s->in.rows - 1) * s->in.row_step;
		s->in.row_step = 0 - s->in.row_step;
	}
}

static void random_other(struct bench *b, struct shape *s, struct isa_dma_rows *side)
{
	uint32_t parts = 1, each, pitch = s->row_elems * s->elem + rnd(b) % 2 * 2;

	if (rnd(b) % 4 == 0) {
		side->space = ISA_SPACE_SLOT;
		side->slot = FLAT;
		side->ndim = 2;
		side->count[0] = s->rows;
		side->step[0] = pitch;
		side->count[1] = s->row_elems;
		side->step[1] = s->elem;
		side->offset = rnd(b) % 64;
		return;
	}
	/* Partitions: as many rows in each, or a row over several. */
	while (parts < 64 &&
	       ((s->rows % (2 * parts) == 0 && (rnd(b) % 4 || s->rows / parts * pitch > DATA)) ||
		(parts >= s->rows && parts % s->rows == 0 && rnd(b) % 2 &&
		 s->row_elems % (2 * parts / s->rows) == 0)))
		parts *= 2;
	side->space = ISA_SPACE_SBUF;
	side->part0 = (uint8_t)(rnd(b) % (129 - parts));
	side->nparts = (uint8_t)parts;
	side->part_step = 1;
	if (parts <= s->rows) {
		each = s->rows / parts;
		side->ndim = 2;
		side->count[0] = each;
		side->step[0] = pitch;
		side->count[1] = s->row_elems;
		side->step[1] = s->elem;
	} else {
		side->ndim = 1;
		side->count[0] = s->row_elems / (parts / s->rows);
		side->step[0] = s->elem;
	}
}

static bool fits(const struct shape *s)
{
	const struct isa_dma_rows *o = s->scatter ? &s->in.src : &s->in.dst;
	uint64_t bytes = o->offset + s->elem;

	for (unsigned int i = 0; i < o->ndim; i++)
		bytes += (o->count[i] - 1) * o->step[i];
	return bytes <= (o->space == ISA_SPACE_SLOT ? FLAT_BYTES : DATA);
}

static struct shape random_shape(struct bench *b)
{
	static const uint32_t rows[] = { 1, 2, 5, 8, 32, 48, 96, 128, 256, 384 };
	static const uint32_t elems[] = { 1, 2, 3, 8, 12, 16, 64 };
	struct shape s;

	do {
		memset(&s, 0, sizeof(s));
		s.scatter = rnd(b) % 2;
		s.elem = 1u << rnd(b) % 4;
		s.rows = rows[rnd(b) % 10];
		s.row_elems = elems[rnd(b) % 7];
		random_index(b, &s);
		random_table(b, &s, s.scatter ? &s.in.dst : &s.in.src);
		random_other(b, &s, s.scatter ? &s.in.src : &s.in.dst);
	} while (!fits(&s));
	return s;
}

/* Fills the indices; true: some are out of bounds. */
static bool random_indices(struct bench *b, const struct shape *s, bool all_good)
{
	bool any = false;

	for (uint32_t r = 0; r < s->rows; r++) {
		uint32_t v = rnd(b) % s->in.rows;

		if (!all_good && rnd(b) % 8 == 0) {
			static const uint32_t odd[] = { 0, 1, UINT32_MAX, INT32_MAX, 1u << 31 };
			uint32_t k = rnd(b) % 5;

			v = k < 2 ? s->in.rows + k : odd[k];
			any = true;
		}
		memcpy(index_at(b, &s->in, r), &v, 4);
	}
	return any;
}

static void random_transfers(void **state)
{
	struct bench *b = *state;
	unsigned int skipped = 0;

	for (unsigned int round = 0; round < ROUNDS; round++) {
		struct shape s = random_shape(b);
		struct program *p = new_program();
		struct exi_record rec;
		uint32_t moved;

		skipped += random_indices(b, &s, s.in.oob == ISA_OOB_ERROR);
		load_sbuf(p);
		indirect(p, s.scatter ? ISA_DMA_SCATTER : ISA_DMA_GATHER, s.elem, &s.in);
		store_sbuf(p);
		rec = run(b, p);
		if (rec.status)
			fail_msg("round %u: status %u, pc %u, value %lld, limit %lld", round,
				 rec.status, rec.pc, (long long)rec.value, (long long)rec.limit);
		moved = reference(b, s.scatter, &s.in, s.rows, s.row_elems, s.elem);
		assert_int_equal(rec.dma_bytes, 2 * 128 * AREA + moved * s.row_elems * s.elem);
		assert_slots(b, "round", round);
		assert_sbuf(b, "round", round);
	}
	assert_true(skipped > ROUNDS / 8);
}

/* --- bounds and order ---------------------------------------------------------------------- */

/* 16 rows of 4 words of a table of 20, by one index in each of 16 partitions. */
static struct isa_dma_indirect plain(bool scatter)
{
	struct isa_dma_rows table = { .space = ISA_SPACE_SLOT,
				      .slot = TABLE,
				      .ndim = 1,
				      .offset = 64,
				      .step = { 4 },
				      .count = { 4 } };
	struct isa_dma_rows chip = { .space = ISA_SPACE_SBUF,
				     .nparts = 16,
				     .part_step = 1,
				     .ndim = 1,
				     .step = { 4 },
				     .count = { 4 } };

	return (struct isa_dma_indirect){
		.dst = scatter ? table : chip,
		.src = scatter ? chip : table,
		.index = { .dtype = ISA_INT32, .nparts = 16, .offset = DATA, .count = 1 },
		.row_step = 16,
		.rows = 20,
	};
}

static void put_index(struct bench *b, const struct isa_dma_indirect *in, uint32_t row, uint32_t v)
{
	memcpy(index_at(b, in, row), &v, 4);
}

static struct exi_record run_one(struct bench *b, bool scatter, const struct isa_dma_indirect *in)
{
	struct program *p = new_program();

	load_sbuf(p);
	indirect(p, scatter ? ISA_DMA_SCATTER : ISA_DMA_GATHER, 4, in);
	store_sbuf(p);
	return run(b, p);
}

/* The record names instruction, slot, index and limit, and nothing has been moved. */
static void an_index_out_of_bounds_is_a_fault(void **state)
{
	static const struct {
		uint32_t bits;
		uint8_t dtype;
		int64_t value;
	} cases[] = {
		{ 20, ISA_INT32, 20 },
		{ UINT32_MAX, ISA_INT32, -1 },
		{ 1u << 31, ISA_INT32, INT32_MIN },
		{ UINT32_MAX, ISA_UINT32, UINT32_MAX },
		{ 21, ISA_UINT32, 21 },
	};
	struct bench *b = *state;

	for (unsigned int i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
		const bool scatter = i % 2;
		struct isa_dma_indirect in = plain(scatter);
		struct exi_record rec;

		in.index.dtype = cases[i / 2].dtype;
		for (uint32_t r = 0; r < 16; r++)
			put_index(b, &in, r, r == 9 ? cases[i / 2].bits : 19 - r);
		rec = run_one(b, scatter, &in);
		assert_int_equal(rec.status, EXI_FAULT_INDEX);
		assert_int_equal(rec.engine, ISA_SYNC);
		assert_int_equal(rec.pc, 1);
		assert_int_equal(rec.opcode, scatter ? ISA_DMA_SCATTER : ISA_DMA_GATHER);
		assert_int_equal(rec.slot, TABLE);
		assert_true((int64_t)rec.value == cases[i / 2].value);
		assert_int_equal(rec.limit, 20);
		assert_int_equal(b->rig->error_status, EXI_FAULT_INDEX);
		assert_int_equal(rec.dma_bytes, 128 * AREA);
		assert_slots(b, "case", i);
		/* The rows before it, too: the next launch finds SBUF as it was loaded. */
		if (!scatter) {
			struct program *p = new_program();

			store_sbuf(p);
			assert_int_equal(run(b, p).status, EXI_OK);
			assert_sbuf(b, "case", i);
		}
	}
}

static void rows_out_of_bounds_are_left_out(void **state)
{
	struct bench *b = *state;

	for (unsigned int scatter = 0; scatter < 2; scatter++)
		for (unsigned int all = 0; all < 2; all++) {
			struct isa_dma_indirect in = plain(scatter);
			struct exi_record rec;

			in.oob = ISA_OOB_SKIP;
			for (uint32_t r = 0; r < 16; r++)
				put_index(b, &in, r, all || r % 3 == 0 ? 20 + r * r * r : r);
			rec = run_one(b, scatter, &in);
			assert_int_equal(rec.status, EXI_OK);
			assert_int_equal(reference(b, scatter, &in, 16, 4, 4), all ? 0 : 10);
			assert_int_equal(rec.dma_bytes, 2 * 128 * AREA + (all ? 0 : 10 * 16));
			assert_slots(b, "skip", all);
			assert_sbuf(b, "skip", all);
		}
}

static void the_last_of_equal_indices_stays(void **state)
{
	struct bench *b = *state;
	struct isa_dma_indirect in = plain(true);
	const uint8_t *row = b->rig->hbm + base[TABLE] + 64 + 7 * 16;

	for (uint32_t r = 0; r < 16; r++)
		put_index(b, &in, r, 7);
	assert_int_equal(run_one(b, true, &in).status, EXI_OK);
	assert_memory_equal(row, b->sbuf + 15 * AREA, 16);

	/* By columns: of two in each partition the second of the last one. */
	in.index.nparts = 8;
	in.index.count = 2;
	in.index.step = 1;
	in.order = ISA_INDEX_FREE;
	for (uint32_t r = 0; r < 16; r++)
		put_index(b, &in, r, r < 8 ? 7 : 8 + r % 2);
	assert_int_equal(run_one(b, true, &in).status, EXI_OK);
	assert_memory_equal(row, b->sbuf + 7 * AREA, 16);
	assert_memory_equal(row + 16, b->sbuf + 14 * AREA, 16);
	assert_memory_equal(row + 32, b->sbuf + 15 * AREA, 16);
}

/* --- large ------------------------------------------------------------------------------------ */

struct asker {
	struct rig *rig;
	atomic_bool stop;
};

/* Has the core look up from what it does. */
static void *ask(void *arg)
{
	struct asker *a = arg;

	while (!atomic_load(&a->stop))
		nm_core_sem_read(a->rig->core, 3);
	return NULL;
}

/* Rows longer than a burst, and many short ones, while the core is asked for other things. */
static void long_transfers_are_interrupted_and_go_on(void **state)
{
	enum { N = 6u << 20, ROWS = 4 };
	struct bench *b = *state;
	uint8_t *hbm = b->rig->hbm;
	const struct exi_slot slots[] = {
		{ 0x800000, N, .rights = EXI_SLOT_READ },
		{ 0x1000000, N, .rights = EXI_SLOT_READ | EXI_SLOT_WRITE },
	};
	struct asker a = { .rig = b->rig };
	pthread_t thread;

	for (size_t i = 0; i < N; i++)
		hbm[slots[0].base + i] = (uint8_t)rnd(b);
	pthread_create(&thread, NULL, ask, &a);
	for (unsigned int small = 0; small < 2; small++) {
		const uint32_t row = small ? 64 : N / ROWS, rows = N / row;
		struct program *p = calloc(1, sizeof(*p));
		struct isa_dma_indirect in = {
			.dst = { .space = ISA_SPACE_SLOT,
				 .slot = 1,
				 .ndim = 2,
				 .step = { row, 1 },
				 .count = { rows, row } },
			.src = { .space = ISA_SPACE_SLOT,
				 .ndim = 1,
				 .step = { 1 },
				 .count = { row } },
			.index = { .dtype = ISA_UINT32,
				   .nparts = small ? 128 : ROWS,
				   .count = small ? rows / 128 : 1,
				   .step = 1 },
			.row_step = row,
			.rows = rows,
		};

		asm_slot(p, NPROG_SLOT_INPUT, N);
		asm_slot(p, NPROG_SLOT_OUTPUT, N);
		for (uint32_t r = 0; r < rows; r++) {
			uint32_t v = rows - 1 - r;

			nm_core_sbuf_write(b->rig->core,
					   r / in.index.count * (uint64_t)NM_SBUF_VIEW_PITCH +
						   r % in.index.count * 4,
					   &v, 4);
		}
		indirect(p, ISA_DMA_GATHER, 1, &in);
		assert_int_equal(rig_program(b->rig, p, slots).status, EXI_OK);
		for (uint32_t r = 0; r < rows; r++)
			assert_memory_equal(hbm + slots[1].base + (size_t)r * row,
					    hbm + slots[0].base + (size_t)(rows - 1 - r) * row,
					    row);
		free(p);
	}
	atomic_store(&a.stop, true);
	pthread_join(thread, NULL);
}

/* --- device time ------------------------------------------------------------------------------- */

/* ns of a gather of so many rows of so many words, from a table of 16. */
static uint64_t gather_ns(struct bench *b, uint32_t rows, uint32_t words, uint32_t first)
{
	struct program *p = new_program();
	struct isa_dma_indirect in = plain(false);
	struct exi_record rec;

	in.oob = ISA_OOB_SKIP;
	in.index.nparts = 1;
	in.index.step = 0;
	in.index.count = rows;
	in.src.count[0] = words;
	in.rows = 16;
	in.dst.nparts = 1;
	in.dst.ndim = 2;
	in.dst.step[0] = 0;
	in.dst.count[0] = rows;
	in.dst.step[1] = 4;
	in.dst.count[1] = words;
	nm_core_sbuf_write(b->rig->core, DATA, &first, 4);
	indirect(p, ISA_DMA_GATHER, 4, &in);
	rec = run(b, p);
	assert_int_equal(rec.status, EXI_OK);
	return rec.end_ns - rec.start_ns;
}

/* ns of a plain transfer of one word. */
static uint64_t plain_ns(struct bench *b)
{
	struct program *p = new_program();
	struct exi_record rec;

	asm_dma(p, ISA_SYNC, 0, 4, asm_chip(ISA_SPACE_SBUF, 0, 1, 0, 1, 4),
		asm_flat(TABLE, 64, 1, 4));
	rec = run(b, p);
	assert_int_equal(rec.status, EXI_OK);
	return rec.end_ns - rec.start_ns;
}

/* A descriptor of 6 ns for each row over 16 DMA engines, and 0.6 us for making them. */
static void a_row_costs_a_descriptor(void **state)
{
	struct bench *b = *state;
	const uint64_t one = gather_ns(b, 1, 1, 0), many = gather_ns(b, 16000, 1, 0);
	/* ps of a row of a word, and of 64. */
	const uint64_t word = 6000 + 4 * 1000 / 23, long_row = 6000 + 256 * 1000 / 23;

	/* Start and end are rounded to ns, each by itself. */
	assert_uint_in_range(one, plain_ns(b) + 599, plain_ns(b) + 601);
	assert_uint_in_range(many - one, 16000 * word / 16000 - 10, 16000 * word / 16000);
	/* What the indices say makes no difference. */
	assert_uint_in_range(gather_ns(b, 16000, 1, 16), many - 1, many + 1);
	/* Long rows are moved at the rate of long runs. */
	assert_uint_in_range(gather_ns(b, 1600, 64, 0) - one, 1600 * long_row / 16000 - 10,
			     1600 * long_row / 16000);
}

/* --- checking mode --------------------------------------------------------------------------- */

static struct exi_record run_checked(struct bench *b, struct program *p)
{
	rig_written(b->rig, base[SBUF_IN], size[SBUF_IN]);
	rig_written(b->rig, base[FLAT], size[FLAT]);
	return run(b, p);
}

static void indices_are_read(void **state)
{
	struct bench *b = *state;
	struct isa_dma_indirect in = plain(false);
	struct program *p = new_program();
	struct exi_record rec;

	in.oob = ISA_OOB_SKIP;
	indirect(p, ISA_DMA_GATHER, 4, &in);
	rec = run_checked(b, p);
	assert_int_equal(rec.status, EXI_FAULT_UNINITIALISED);
	assert_int_equal(rec.value, EXI_PLACE(ISA_SPACE_SBUF, 0, DATA));

	/* Behind a load in its own queue, and behind one in another. */
	for (unsigned int queue = 0; queue < 2; queue++) {
		p = new_program();
		load_sbuf(p);
		in.dst.offset = 512;
		indirect(p, ISA_DMA_GATHER, 4, &in)->dma_queue = (uint8_t)queue;
		rec = run_checked(b, p);
		assert_int_equal(rec.status, queue ? EXI_FAULT_RACE : EXI_OK);
		if (queue)
			assert_int_equal(rec.limit, EXI_OTHER(ISA_SYNC, 0, ISA_DMA));
	}
}

/* Any row that there is may be the one: what writes one of them must be ordered; others not. */
static void rows_are_read_and_written(void **state)
{
	struct bench *b = *state;

	for (unsigned int scatter = 0; scatter < 2; scatter++)
		for (unsigned int inside = 0; inside < 2; inside++) {
			struct isa_dma_indirect in = plain(scatter);
			struct program *p = new_program();
			struct exi_record rec;

			in.oob = ISA_OOB_SKIP;
			load_sbuf(p);
			asm_update(&p->inst[ISA_SYNC][0], 1, 1);
			asm_wait(indirect(p, scatter ? ISA_DMA_SCATTER : ISA_DMA_GATHER, 4, &in), 1,
				 1);
			asm_dma(p, ISA_GPSIMD, 5, 1,
				asm_flat(TABLE, inside ? 64 + 20 * 16 - 1 : 64 + 20 * 16, 1, 1),
				asm_flat(FLAT, 0, 1, 1));
			rec = run_checked(b, p);
			assert_int_equal(rec.status, inside ? EXI_FAULT_RACE : EXI_OK);
			if (inside)
				assert_int_equal(rec.slot, TABLE);
		}
}

/* --- life ---------------------------------------------------------------------------------------- */

static struct bench *create(uint32_t check)
{
	struct bench *b = calloc(1, sizeof(*b));

	b->seed = 7;
	b->rig = rig_create_checking(check);
	rig_queue(b->rig, 0, 1);
	b->sbuf = malloc(128 * AREA);
	b->table = malloc(TABLE_BYTES);
	b->flat = malloc(FLAT_BYTES);
	for (unsigned int i = 0; i < 128 * AREA; i++)
		b->sbuf[i] = (uint8_t)rnd(b);
	for (unsigned int i = 0; i < TABLE_BYTES; i++)
		b->table[i] = (uint8_t)rnd(b);
	for (unsigned int i = 0; i < FLAT_BYTES; i++)
		b->flat[i] = (uint8_t)rnd(b);
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
	free(b->sbuf);
	free(b->table);
	free(b->flat);
	free(b);
	return 0;
}

#define TEST(name)    cmocka_unit_test_setup_teardown(name, setup, teardown)
#define CHECKED(name) cmocka_unit_test_setup_teardown(name, setup_checking, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(random_transfers),
		TEST(an_index_out_of_bounds_is_a_fault),
		TEST(rows_out_of_bounds_are_left_out),
		TEST(the_last_of_equal_indices_stays),
		TEST(long_transfers_are_interrupted_and_go_on),
		TEST(a_row_costs_a_descriptor),
		CHECKED(indices_are_read),
		CHECKED(rows_are_read_and_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
