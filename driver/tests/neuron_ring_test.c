// SPDX-License-Identifier: GPL-2.0-only
/* Descriptors, doorbells and markers of a UDMA ring; registers are an array. */

#include <kunit/static_stub.h>
#include <kunit/test.h>
#include <linux/bitfield.h>

#include "../neuron_drv.h"
#include "../neuron_ring.h"

#define RING_ADDR  0x400012340000ull
#define RING_QUEUE 1

#define TX_TAIL (UDMA_M2S + UDMA_Q(RING_QUEUE) + UDMA_Q_TAIL_INC)
#define RX_TAIL (UDMA_S2M + UDMA_Q(RING_QUEUE) + UDMA_Q_TAIL_INC)

struct ring_fixture {
	struct neuron_ring ring;
	struct neuron_regs regs;
	u32 reg[0x43000 / 4];
	u32 doorbells;
	u32 rung[2]; /* descriptors, TX and RX */
	bool rx_late; /* TX was rung before RX */
};

static void ring_write(const struct neuron_regs *regs, u32 offset, u32 value)
{
	struct ring_fixture *f = kunit_get_current_test()->priv;

	f->reg[offset / 4] = value;
	if (offset == RX_TAIL) {
		f->rung[1] += value;
	} else if (offset == TX_TAIL) {
		f->rung[0] += value;
		f->rx_late |= f->rung[0] > f->rung[1];
		f->doorbells++;
	}
}

static u32 ring_read(const struct neuron_regs *regs, u32 offset)
{
	struct ring_fixture *f = kunit_get_current_test()->priv;

	return f->reg[offset / 4];
}

static int ring_init(struct kunit *test)
{
	struct ring_fixture *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);
	struct neuron_ring_mem *mem = kunit_kzalloc(test, sizeof(*mem), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, f);
	KUNIT_ASSERT_NOT_NULL(test, mem);
	test->priv = f;
	kunit_activate_static_stub(test, neuron_reg_write, ring_write);
	kunit_activate_static_stub(test, neuron_reg_read, ring_read);
	neuron_ring_init(&f->ring, &f->regs, RING_QUEUE, mem, RING_ADDR);
	neuron_ring_start(&f->ring);
	return 0;
}

static void device_completes(struct ring_fixture *f, u32 mark)
{
	f->ring.mem->mark[mark % NEURON_RING_MARKS] = 0xabcdef01;
}

static void neuron_ring_sets_up_both_halves(struct kunit *test)
{
	struct ring_fixture *f = test->priv;
	u32 m2s = UDMA_M2S + UDMA_Q(RING_QUEUE), s2m = UDMA_S2M + UDMA_Q(RING_QUEUE);

	KUNIT_EXPECT_EQ(test, f->reg[(m2s + 0x28) / 4], (u32)RING_ADDR);
	KUNIT_EXPECT_EQ(test, f->reg[(m2s + 0x2c) / 4], 0x4000);
	KUNIT_EXPECT_EQ(test, f->reg[(s2m + 0x28) / 4], (u32)RING_ADDR + 16 * NEURON_RING_DESCS);
	KUNIT_EXPECT_EQ(test, f->reg[(m2s + 0x30) / 4], NEURON_RING_DESCS);
	KUNIT_EXPECT_EQ(test, f->reg[(s2m + 0x30) / 4], NEURON_RING_DESCS);
	KUNIT_EXPECT_EQ(test, f->reg[(m2s + 0x20) / 4], 0x03030000);
	KUNIT_EXPECT_EQ(test, f->reg[(s2m + 0x20) / 4], 0x03030000);
	/* Bit 2 off: barriers have an effect. */
	KUNIT_EXPECT_EQ(test, f->reg[(m2s + 0x74) / 4], 0x3);
}

struct desc_row {
	const char *what;
	u32 bytes;
	bool barrier;
	u32 tx_ctrl; /* with ring id 1, first, last */
	u32 rx_ctrl;
};

static const struct desc_row desc_rows[] = {
	{ "one byte", 1, false, 0x0d000001, 0x01000001 },
	{ "a page", 4096, false, 0x0d001000, 0x01001000 },
	{ "one byte less than 64 KiB", 65535, false, 0x0d00ffff, 0x0100ffff },
	{ "64 KiB are length 0", 65536, false, 0x0d000000, 0x01000000 },
	{ "behind all before", 16, true, 0x4d000010, 0x01000010 },
};

KUNIT_ARRAY_PARAM_DESC(desc, desc_rows, what);

static void neuron_ring_describes_a_copy(struct kunit *test)
{
	const struct desc_row *row = test->param_value;
	struct ring_fixture *f = test->priv;
	struct udma_desc *tx = f->ring.mem->tx, *rx = f->ring.mem->rx;

	neuron_ring_copy(&f->ring, 0x1122334455ull, 0x804000001000ull, row->bytes, row->barrier);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(tx->ctrl), row->tx_ctrl);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(tx->meta), 0x01080003);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(tx->addr), 0x804000001000ull);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(rx->ctrl), row->rx_ctrl);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(rx->meta), 0);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(rx->addr), 0x1122334455ull);
}

static void neuron_ring_closes_a_batch(struct kunit *test)
{
	struct ring_fixture *f = test->priv;
	struct neuron_ring_mem *mem = f->ring.mem;

	neuron_ring_copy(&f->ring, 0, 0, 64, false);
	neuron_ring_mark(&f->ring);
	/* A marker that waits for the data and interrupts when it is written. */
	KUNIT_EXPECT_EQ(test, le32_to_cpu(mem->tx[1].ctrl), 0x4d000004);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(mem->tx[1].meta), 0x05080003);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(mem->rx[1].ctrl), 0x11000004);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(mem->tx[1].addr),
			RING_ADDR + offsetof(struct neuron_ring_mem, marker));
	KUNIT_EXPECT_EQ(test, le64_to_cpu(mem->rx[1].addr),
			RING_ADDR + offsetof(struct neuron_ring_mem, mark));
	KUNIT_EXPECT_EQ(test, mem->marker, 0xabcdef01);
	KUNIT_EXPECT_EQ(test, f->doorbells, 0);

	neuron_ring_kick(&f->ring);
	KUNIT_EXPECT_EQ(test, f->rung[0], 2);
	KUNIT_EXPECT_EQ(test, f->rung[1], 2);
	KUNIT_EXPECT_FALSE(test, f->rx_late);
	neuron_ring_kick(&f->ring);
	KUNIT_EXPECT_EQ(test, f->doorbells, 1);
}

static void neuron_ring_finds_batches_in_order(struct kunit *test)
{
	struct ring_fixture *f = test->priv;
	u32 room = neuron_ring_room(&f->ring);
	int i;

	for (i = 0; i < 2; i++) {
		neuron_ring_copy(&f->ring, 0, 0, 64, false);
		neuron_ring_mark(&f->ring);
	}
	KUNIT_EXPECT_EQ(test, neuron_ring_room(&f->ring), room - 4);
	KUNIT_EXPECT_FALSE(test, neuron_ring_pop(&f->ring));
	device_completes(f, 1);
	KUNIT_EXPECT_FALSE(test, neuron_ring_pop(&f->ring));
	device_completes(f, 0);
	KUNIT_EXPECT_TRUE(test, neuron_ring_pop(&f->ring));
	KUNIT_EXPECT_TRUE(test, neuron_ring_pop(&f->ring));
	KUNIT_EXPECT_FALSE(test, neuron_ring_pop(&f->ring));
	KUNIT_EXPECT_EQ(test, neuron_ring_room(&f->ring), room);
}

static void neuron_ring_steps_the_ring_id(struct kunit *test)
{
	struct ring_fixture *f = test->priv;
	u32 lap, i, at = 0, mark = 0;

	for (lap = 0; lap < 5; lap++) {
		for (i = 0; i < NEURON_RING_DESCS / 2; i++) {
			neuron_ring_copy(&f->ring, 0, 0, 64, false);
			KUNIT_ASSERT_EQ(test,
					FIELD_GET(UDMA_DESC_RING_ID,
						  le32_to_cpu(f->ring.mem->tx[at].ctrl)),
					(lap + 1) & 3);
			KUNIT_ASSERT_EQ(test,
					FIELD_GET(UDMA_DESC_RING_ID,
						  le32_to_cpu(f->ring.mem->rx[at].ctrl)),
					(lap + 1) & 3);
			neuron_ring_mark(&f->ring);
			device_completes(f, mark++);
			KUNIT_ASSERT_TRUE(test, neuron_ring_pop(&f->ring));
			at = (at + 2) % NEURON_RING_DESCS;
		}
	}
}

static void neuron_ring_is_never_overfilled(struct kunit *test)
{
	struct ring_fixture *f = test->priv;
	u32 n, filled = 0;

	while ((n = neuron_ring_room(&f->ring))) {
		n = min_t(u32, n, 100);
		filled += n + 1;
		while (n--)
			neuron_ring_copy(&f->ring, 0, 0, 64, false);
		neuron_ring_mark(&f->ring);
	}
	/* A burst of 64 that the device has not counted yet still fits. */
	KUNIT_EXPECT_LE(test, filled, NEURON_RING_DESCS - 64);
	KUNIT_EXPECT_GE(test, filled, NEURON_RING_DESCS - 64 - 2);
	device_completes(f, 0);
	KUNIT_EXPECT_TRUE(test, neuron_ring_pop(&f->ring));
	KUNIT_EXPECT_GE(test, neuron_ring_room(&f->ring), 100);
}

static void neuron_ring_runs_out_of_marks(struct kunit *test)
{
	struct ring_fixture *f = test->priv;
	int i;

	for (i = 0; i < NEURON_RING_MARKS; i++) {
		KUNIT_ASSERT_NE(test, neuron_ring_room(&f->ring), 0);
		neuron_ring_copy(&f->ring, 0, 0, 64, false);
		neuron_ring_mark(&f->ring);
	}
	KUNIT_EXPECT_EQ(test, neuron_ring_room(&f->ring), 0);
}

static void neuron_ring_sees_the_error_bit(struct kunit *test)
{
	struct neuron_ring_failure failure;
	struct ring_fixture *f = test->priv;

	KUNIT_EXPECT_FALSE(test, neuron_ring_failed(&f->ring, &failure));
	f->reg[(UDMA_S2M + UDMA_Q(RING_QUEUE) + UDMA_Q_STATUS) / 4] = 0x40000000;
	KUNIT_EXPECT_TRUE(test, neuron_ring_failed(&f->ring, &failure));
	KUNIT_EXPECT_EQ(test, failure.s2m, 0x40000000);
}

static void neuron_ring_sees_a_wrong_marker(struct kunit *test)
{
	struct neuron_ring_failure failure;
	struct ring_fixture *f = test->priv;

	/* Of no batch: left over, and nobody's. */
	f->ring.mem->mark[0] = 5;
	KUNIT_EXPECT_FALSE(test, neuron_ring_failed(&f->ring, &failure));
	neuron_ring_copy(&f->ring, 0x1000, 0x2000, 64, false);
	neuron_ring_mark(&f->ring);
	KUNIT_EXPECT_FALSE(test, neuron_ring_failed(&f->ring, &failure));
	f->ring.mem->mark[0] = ~UDMA_MARKER;
	KUNIT_EXPECT_FALSE(test, neuron_ring_pop(&f->ring));
	KUNIT_EXPECT_TRUE(test, neuron_ring_failed(&f->ring, &failure));
	KUNIT_EXPECT_EQ(test, failure.mark, (u32)~UDMA_MARKER);
	f->ring.mem->mark[0] = UDMA_MARKER;
	KUNIT_EXPECT_FALSE(test, neuron_ring_failed(&f->ring, &failure));
	KUNIT_EXPECT_TRUE(test, neuron_ring_pop(&f->ring));
}

static void neuron_ring_starts_over(struct kunit *test)
{
	struct ring_fixture *f = test->priv;

	neuron_ring_copy(&f->ring, 0, 0, 64, false);
	neuron_ring_mark(&f->ring);
	neuron_ring_kick(&f->ring);
	neuron_ring_stop(&f->ring);
	KUNIT_EXPECT_EQ(test, f->reg[(UDMA_M2S + UDMA_Q(RING_QUEUE) + 0x20) / 4], 0x03000000);
	KUNIT_EXPECT_EQ(test, f->reg[(UDMA_M2S + UDMA_Q(RING_QUEUE) + 0xb0) / 4], 0x100);
	KUNIT_EXPECT_EQ(test, f->reg[(UDMA_S2M + UDMA_Q(RING_QUEUE) + 0x64) / 4], 0x100);
	device_completes(f, 0); /* late */
	neuron_ring_start(&f->ring);
	KUNIT_EXPECT_FALSE(test, neuron_ring_pop(&f->ring));
	neuron_ring_copy(&f->ring, 0, 0, 64, false);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(f->ring.mem->tx[0].ctrl), 0x0d000040);
}

static struct kunit_case neuron_ring_cases[] = { KUNIT_CASE(neuron_ring_sets_up_both_halves),
						 KUNIT_CASE_PARAM(neuron_ring_describes_a_copy,
								  desc_gen_params),
						 KUNIT_CASE(neuron_ring_closes_a_batch),
						 KUNIT_CASE(neuron_ring_finds_batches_in_order),
						 KUNIT_CASE(neuron_ring_steps_the_ring_id),
						 KUNIT_CASE(neuron_ring_is_never_overfilled),
						 KUNIT_CASE(neuron_ring_runs_out_of_marks),
						 KUNIT_CASE(neuron_ring_sees_the_error_bit),
						 KUNIT_CASE(neuron_ring_sees_a_wrong_marker),
						 KUNIT_CASE(neuron_ring_starts_over),
						 {} };

static struct kunit_suite neuron_ring_suite = {
	.name = "neuron_ring",
	.init = ring_init,
	.test_cases = neuron_ring_cases,
};

kunit_test_suite(neuron_ring_suite);
