// SPDX-License-Identifier: Apache-2.0
/* Long packed runs, in and out of slots small and large, at addresses of any alignment. */
#include "rig.h"

#define PARTS 16u
#define LARGE (17u << 20)
#define SMALL (1u << 20)
#define GAP   77u /* bytes between rows, which keep what they were */

static const struct exi_slot slots[3] = {
	{ .base = 0x100001, .size = SMALL, .rights = EXI_SLOT_READ },
	{ .base = 0x300003, .size = SMALL, .rights = EXI_SLOT_READ | EXI_SLOT_WRITE },
	{ .base = 0x1000005, .size = LARGE, .rights = EXI_SLOT_READ | EXI_SLOT_WRITE },
};

static struct isa_dma_side rows(unsigned int slot, uint32_t offset, uint32_t n)
{
	return (struct isa_dma_side){ .space = ISA_SPACE_SLOT,
				      .ndim = 2,
				      .slot = (uint16_t)slot,
				      .offset = offset,
				      .step = { n + GAP, 1 },
				      .count = { PARTS, n } };
}

/* PARTS rows of n bytes from one slot to another by way of SBUF. */
static void move(struct rig *r, unsigned int to, uint32_t offset, uint32_t n)
{
	const struct isa_dma_side chip = asm_chip(ISA_SPACE_SBUF, 0, PARTS, offset % 64, n, 1);
	struct program *p = calloc(1, sizeof(*p));
	const uint8_t *from = r->hbm + slots[0].base + offset;
	uint8_t *out = r->hbm + slots[to].base;

	memset(out, 0xa5, slots[to].size);
	for (unsigned int i = 0; i < 3; i++)
		asm_slot(p, i ? NPROG_SLOT_OUTPUT : NPROG_SLOT_INPUT, slots[i].size);
	asm_update(asm_dma(p, ISA_SYNC, 0, 1, chip, rows(0, offset, n)), 1, 1);
	asm_wait(asm_dma(p, ISA_SYNC, 0, 1, rows(to, 2 * offset, n), chip), 1, 1);
	assert_int_equal(rig_program(r, p, slots).status, EXI_OK);
	free(p);
	for (uint32_t i = 0; i < 2 * offset + PARTS * (n + GAP) + 64; i++) {
		const uint32_t at = i - 2 * offset;
		const bool moved = i >= 2 * offset && at < PARTS * (n + GAP) && at % (n + GAP) < n;

		if (out[i] != (moved ? from[at] : 0xa5))
			fail_msg("slot %u, offset %u, rows of %u: byte %u is 0x%02x", to, offset, n,
				 i, out[i]);
	}
}

static void a_run_lands_whole_and_nowhere_else(void **state)
{
	static const uint32_t lengths[] = {
		1, 63, 1023, 1024, 1025, 1087, 4096, 4133, 16384, 20001
	};
	struct rig *r = *state;

	for (uint32_t i = 0; i < SMALL; i++)
		r->hbm[slots[0].base + i] = (uint8_t)(i * 2654435761u >> 16);
	for (unsigned int i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		for (uint32_t offset = 0; offset < 70; offset += 23)
			for (unsigned int to = 1; to <= 2; to++)
				move(r, to, offset, lengths[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_run_lands_whole_and_nowhere_else, rig_setup,
						rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
