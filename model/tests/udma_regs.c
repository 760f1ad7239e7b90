// SPDX-License-Identifier: Apache-2.0
/*
 * The register file of a UDMA engine against literals, taken from the public udma_regs.h and not from
 * hw/: where each register lies, what it holds after a reset, which bits a write changes, and that
 * nothing else in the engine's blocks answers without being reported.
 */
#include "fixture.h"

#define ENGINE	 129u
#define M2S	 0x00000u
#define S2M	 0x20000u
#define GEN	 0x38000u
#define GEN_EX	 0x3c000u
#define END	 0x40000u
#define ONES	 0xffffffffu
#define QUEUE(q) (0x1000u + (q) * 0x1000u)

enum access { RW, RO, WO, CAUSE };

/* A register, or count of them stride bytes apart. */
struct row {
	uint32_t at;
	enum access access;
	uint32_t reset, mask; /* bits that a write changes */
	uint32_t count, stride;
};

#define ONE(at, access, reset, mask)	 { at, access, reset, mask, 1, 4 }
#define MANY(at, n, access, reset, mask) { at, access, reset, mask, n, 4 }
#define EACH(at, access, reset, mask)	 { QUEUE(0) + (at), access, reset, mask, 16, 0x1000 }
/* Of both halves. */
#define EACH_2(at, access, reset, mask) \
	EACH(M2S + (at), access, reset, mask), EACH(S2M + (at), access, reset, mask)
/* One interrupt controller of n groups that are stride bytes apart. */
#define IOFIC(at, n, stride)                                                                      \
	{ (at) + 0x00, CAUSE, 0, ONES, n, stride }, { (at) + 0x08, WO, 0, 0, n, stride },         \
		{ (at) + 0x10, RW, ONES, ONES, n, stride }, { (at) + 0x18, WO, 0, 0, n, stride }, \
		{ (at) + 0x20, RO, 0, 0, n, stride }, { (at) + 0x28, RW, 0, ONES, n, stride },    \
	{                                                                                         \
		(at) + 0x30, RW, ONES, ONES, n, stride                                            \
	}

static const struct row rows[] = {
	/* bus configuration */
	MANY(M2S + 0x100, 10, RW, 0, ONES),
	MANY(S2M + 0x100, 12, RW, 0, ONES),
	/* state, change of state, error log mask */
	ONE(M2S + 0x200, RO, 0, 0),
	ONE(M2S + 0x204, WO, 0, 0),
	ONE(M2S + 0x20c, RW, 0, ONES),
	ONE(M2S + 0x254, RW, 0x000fffff, ONES), /* packet length */
	ONE(M2S + 0x258, RW, 0, ONES), /* stream */
	ONE(S2M + 0x200, RO, 0, 0),
	ONE(S2M + 0x204, WO, 0, 0),
	ONE(S2M + 0x20c, RW, 0, ONES),
	ONE(S2M + 0x250, RW, 0, ONES), /* stream */
	/* prefetch, data FIFO */
	MANY(M2S + 0x300, 3, RW, 0, ONES),
	ONE(M2S + 0x310, RW, 0x01000000, ONES),
	MANY(S2M + 0x300, 4, RW, 0, ONES),
	/* rate limiter's mask, completion, version */
	ONE(M2S + 0x3d4, RW, 0, ONES),
	ONE(M2S + 0x408, RW, 0, ONES),
	ONE(M2S + 0x604, RO, 4, 0),
	ONE(S2M + 0x380, RW, 4, ONES),
	ONE(S2M + 0x38c, RW, 0, ONES),
	/* queues */
	EACH(M2S + 0x00, RW, 0, ONES), /* prefetch */
	EACH_2(0x20, RW, 0x03000000, ONES),
	EACH_2(0x24, RO, 0x80000000, 0), /* status: idle */
	EACH_2(0x28, RW, 0, 0xffffffc0), /* ring */
	EACH_2(0x2c, RW, 0, ONES),
	EACH_2(0x30, RW, 0, 0x00ffffff),
	EACH_2(0x34, RO, 0x40000000, 0), /* head: ring id 1 */
	EACH_2(0x38, WO, 0, 0),
	EACH_2(0x3c, RO, 0x40000000, 0),
	EACH_2(0x40, RO, 0x40000000, 0),
	EACH_2(0x44, RW, 0, 0xffffffc0), /* completion ring */
	EACH_2(0x48, RW, 0, ONES),
	EACH_2(0x4c, RO, 0x40000000, 0),
	EACH(M2S + 0x74, RW, 7, ONES), /* rate limiter's mask */
	EACH(M2S + 0xa0, RW, 0, ONES), /* completion configuration */
	EACH(S2M + 0x54, RW, 0, ONES),
	EACH(M2S + 0xb0, WO, 0, 0), /* software control */
	EACH(S2M + 0x64, WO, 0, 0),
	/* interrupt controllers: primary, secondary, one for each bus master */
	IOFIC(GEN + 0x0000, 4, 0x40),
	IOFIC(GEN + 0x2000, 3, 0x40),
	IOFIC(GEN + 0x2d00, 7, 0x100),
	/* general */
	ONE(GEN + 0x2300, RW, 0, ONES), /* bus timeout */
	MANY(GEN + 0x2900, 7 * 16, RW, 0, ONES), /* error detection */
	MANY(GEN + 0x2b00, 7 * 2, RW, 0, ONES),
	{ GEN + 0x2c00, RW, 0, ONES, 16, 12 }, /* queues on the bus: state, error, configuration */
	{ GEN + 0x2c04, RO, 0, 0, 16, 12 },
	{ GEN + 0x2c08, RW, 0, ONES, 16, 12 },
	MANY(GEN + 0x3460, 2, RW, 0, ONES), /* spare */
	MANY(GEN + 0x3468, 2, RW, ONES, ONES),
	/* address selectors */
	{ GEN_EX + 0x400, RW, 0, ONES, 16, 0x40 },
	{ GEN_EX + 0x404, RW, 0, ONES, 16, 0x40 },
	{ GEN_EX + 0x408, RW, 0, ONES, 16, 0x40 },
	{ GEN_EX + 0x40c, RW, 0, ONES, 16, 0x40 },
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

static const struct row *row_of(uint32_t at)
{
	for (size_t r = 0; r < ROWS; r++) {
		uint32_t past = at - rows[r].at;

		if (at >= rows[r].at && past % rows[r].stride == 0 &&
		    past / rows[r].stride < rows[r].count)
			return &rows[r];
	}
	return NULL;
}

static uint32_t reg_read(struct fixture *f, uint32_t at)
{
	return apb_read(f, V3_APB_UDMA(ENGINE) + at);
}

static void reg_write(struct fixture *f, uint32_t at, uint32_t value)
{
	apb_write(f, V3_APB_UDMA(ENGINE) + at, value);
}

static void expect(struct fixture *f, uint32_t at, uint32_t value)
{
	uint32_t got = reg_read(f, at);

	if (got != value)
		fail_msg("register 0x%x reads 0x%x, not 0x%x", at, got, value);
}

/* Each mistake is counted, though reported only once for a place. */
static void expect_refused(struct fixture *f, uint32_t at, bool write, uint32_t reads)
{
	const uint64_t before = nm_guest_errors(f->dev);

	if (write)
		reg_write(f, at, ONES);
	else
		expect(f, at, ONES);
	if (nm_guest_errors(f->dev) != before + 1)
		fail_msg("%s 0x%x is not refused", write ? "writing" : "reading", at);
	if (write)
		expect(f, at, reads);
}

static void every_register_has_its_reset_value(void **state)
{
	struct fixture *f = *state;

	for (uint32_t at = 0; at < END; at += 4) {
		const struct row *row = row_of(at);

		if (!row || row->access == WO)
			expect_refused(f, at, false, 0);
		else
			expect(f, at, row->reset);
	}
}

static void every_register_keeps_its_bits(void **state)
{
	struct fixture *f = *state;

	for (uint32_t at = 0; at < END; at += 4) {
		const struct row *row = row_of(at);

		if (!row || row->access == RO) {
			expect_refused(f, at, true, row ? row->reset : ONES);
		} else if (row->access == RW) {
			reg_write(f, at, ONES);
			expect(f, at, row->mask | (row->reset & ~row->mask));
			reg_write(f, at, 0);
			expect(f, at, row->reset & ~row->mask);
		} else if (row->access == CAUSE) {
			reg_write(f, at + 0x08, 0xf0f0f0f0);
			expect(f, at, 0xf0f0f0f0);
			expect(f, at, 0xf0f0f0f0); /* reading does not clear it */
			reg_write(f, at, ~0x10u); /* writing 0 does */
			expect(f, at, 0xf0f0f0e0);
		}
	}
	nm_device_reset(f->dev);
	nm_enable(f->dev);
	every_register_has_its_reset_value(state);
}

static void a_cause_can_be_cleared_by_reading(void **state)
{
	static const uint32_t groups[] = { 0x0000, 0x0040, 0x0080, 0x00c0, 0x2000,
					   0x2040, 0x2080, 0x2d00, 0x3300 };
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		const uint32_t group = GEN + groups[i];

		reg_write(f, group + 0x28, 1);
		reg_write(f, group + 0x08, 5);
		expect(f, group, 5);
		expect(f, group, 0);
	}
}

static void masks_clear_bit_by_bit(void **state)
{
	struct fixture *f = *state;

	reg_write(f, GEN + 0x2080 + 0x18, ~0x6u);
	expect(f, GEN + 0x2080 + 0x10, ~0x6u);
	reg_write(f, GEN + 0x2080 + 0x18, ONES);
	expect(f, GEN + 0x2080 + 0x10, ~0x6u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_register_has_its_reset_value),
		TEST(every_register_keeps_its_bits),
		TEST(a_cause_can_be_cleared_by_reading),
		TEST(masks_clear_bit_by_bit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
