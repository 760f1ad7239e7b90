// SPDX-License-Identifier: Apache-2.0
/* Transposing transfers, which dims alone say: what lands where, and at which rate. */
#include "rig.h"

#define PARTS 128u
#define ROWS  256u

static const struct exi_slot slots[2] = {
	{ .base = 0x100000, .size = PARTS * ROWS * 8, .rights = EXI_SLOT_READ },
	{ .base = 0x200000, .size = PARTS * ROWS * 8, .rights = EXI_SLOT_READ | EXI_SLOT_WRITE },
};

/* Loads ROWS by PARTS elements, rows of the slot along the free axis or as they are; ns. */
static uint64_t load_ns(struct rig *r, uint32_t elem, bool turned)
{
	struct program *p = calloc(1, sizeof(*p));
	struct isa_dma_side src = { .space = ISA_SPACE_SLOT,
				    .ndim = 2,
				    .step = { elem, PARTS * elem },
				    .count = { PARTS, ROWS } };
	struct exi_record rec;

	if (!turned) {
		src.step[0] = ROWS * elem;
		src.step[1] = elem;
	}
	asm_slot(p, NPROG_SLOT_INPUT, slots[0].size);
	asm_slot(p, NPROG_SLOT_OUTPUT, slots[1].size);
	asm_dma(p, ISA_SYNC, 0, elem, asm_chip(ISA_SPACE_SBUF, 0, PARTS, 0, ROWS, elem), src);
	rec = rig_program(r, p, slots);
	assert_int_equal(rec.status, EXI_OK);
	free(p);
	return rec.end_ns - rec.start_ns;
}

static void assert_turned(struct rig *r, uint32_t elem)
{
	uint8_t row[ROWS * 8];

	for (uint32_t part = 0; part < PARTS; part++) {
		assert_int_equal(nm_core_sbuf_read(r->core, (uint64_t)part * NM_SBUF_VIEW_PITCH,
						   row, ROWS * elem),
				 0);
		for (uint32_t i = 0; i < ROWS; i++)
			assert_memory_equal(row + i * elem,
					    r->hbm + slots[0].base + (i * PARTS + part) * elem,
					    elem);
	}
}

/* 2 and 4 bytes: 90 % of the rate of a plain one. The others: element by element. */
static void a_load_turns_rows_into_columns(void **state)
{
	struct rig *r = *state;

	for (uint32_t i = 0; i < PARTS * ROWS * 8; i++)
		r->hbm[slots[0].base + i] = (uint8_t)(i * 2654435761u >> 16);
	for (uint32_t elem = 1; elem <= 8; elem *= 2) {
		const uint64_t plain = load_ns(r, elem, false), took = load_ns(r, elem, true);
		/* Of the bytes alone, over 16 DMA engines of 23 bytes a ns. */
		const uint64_t bytes = PARTS * ROWS * elem / 16 * 10 / 207;
		const uint64_t descriptors = PARTS * ROWS / 16 * 6;

		assert_turned(r, elem);
		if (elem == 2 || elem == 4)
			/* A tenth more than the bytes of a plain one, and none of its 128 descriptors. */
			assert_uint_in_range(took + PARTS * 6 / 16, plain + bytes / 10 - 2,
					     plain + bytes / 10 + 2);
		else
			assert_true(took > plain + descriptors / 2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_load_turns_rows_into_columns, rig_setup,
						rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
