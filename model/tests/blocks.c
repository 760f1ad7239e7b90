// SPDX-License-Identifier: Apache-2.0
/* Events, TopSPs and what they notify of; other chips and the look of silicon. */
#include <errno.h>

#include "fixture.h"
#include "neuron_map_v2.h"
#include "neuron_mailbox.h"
#include "neuron_notify.h"
#include "queue.h"

#define NQ_AT	 0x50000u
#define NQ_BYTES 128u /* four entries */

/* Sets up queue i of a block at a register offset; its ring in host memory starts zeroed. */
static const struct nq_entry *nq_start(struct fixture *f, uint64_t block, unsigned int i)
{
	const uint64_t at = block + i * NQ_STRIDE;

	memset(f->host + NQ_AT, 0, NQ_BYTES);
	apb_write(f, at + NQ_BASE_LO, (uint32_t)host_addr(NQ_AT));
	apb_write(f, at + NQ_BASE_HI, (uint32_t)(host_addr(NQ_AT) >> 32));
	apb_write(f, at + NQ_SIZE, NQ_BYTES);
	return (const struct nq_entry *)(f->host + NQ_AT);
}

static bool seen(const struct nq_entry *e)
{
	return __atomic_load_n(&e->phase, __ATOMIC_ACQUIRE) == 1;
}

static void events_of_a_core(void **state)
{
	struct fixture *f = *state;
	const uint64_t event = V3_APB_TPB(1) + V3_TPB_EVENTS;
	const struct nq_entry *e = nq_start(f, V3_APB_CORE_NOTIFY(1), NQ_INDEX(NQ_EVENT, 0));

	assert_int_equal(apb_read(f, event + 4 * 255), 0);
	apb_write(f, event + 4 * 255, 1);
	assert_int_equal(apb_read(f, event + 4 * 255), 1);
	assert_int_equal(apb_read(f, V3_APB_TPB(0) + V3_TPB_EVENTS + 4 * 255), 0);
	assert_true(seen(&e[0]));
	assert_int_equal(e[0].type, NQ_EVENT);
	assert_int_equal(e[0].value, 255);
	assert_int_equal(e[0].seqno, 1);
	apb_write(f, event + 4 * 255, 1); /* no change, no word */
	assert_false(seen(&e[1]));
	/* By DMA, as the hardware does it. */
	struct queue u = start(f, 3, 2);
	*(uint32_t *)(f->host + DATA) = 7;
	copy_and_wait(&u, V3_DEV_TPB(1) + V3_TPB_EVENTS + 4 * 3, host_addr(DATA), 4);
	assert_int_equal(apb_read(f, event + 4 * 3), 7);
	assert_true(seen(&e[1]));
	assert_int_equal(apb_read(f, event + 4 * 256), UINT32_MAX);
	assert_int_equal(f->messages, 1);
	/* A core reset clears them. */
	apb_write(f, V3_APB_QEMU_RESET, 2);
	wait_for(apb_read(f, V3_APB_QEMU_RESET) == 0);
	assert_int_equal(apb_read(f, event + 4 * 3), 0);
}

static void topsp(void **state)
{
	struct fixture *f = *state;
	const uint64_t at = V3_APB_TOPSP(2), sem = V3_TPB_SEM_READ - V3_TPB_EVENTS;
	const struct nq_entry *e = nq_start(f, V3_APB_TOPSP_NOTIFY(2), NQ_INDEX(NQ_EVENT, 0));

	apb_write(f, at + 4 * 9, 1);
	assert_int_equal(apb_read(f, at + 4 * 9), 1);
	assert_true(seen(&e[0]));
	assert_int_equal(e[0].value, 9);
	apb_write(f, at + V3_TPB_SEM_SET - V3_TPB_EVENTS + 4 * 200, 5);
	apb_write(f, at + V3_TPB_SEM_INC - V3_TPB_EVENTS + 4 * 200, 3);
	apb_write(f, at + V3_TPB_SEM_DEC - V3_TPB_EVENTS + 4 * 200, 1);
	assert_int_equal(apb_read(f, at + sem + 4 * 200), 7);
	apb_write(f, at + V3_TPB_SEM_DEC - V3_TPB_EVENTS + 4 * 200, 100);
	assert_int_equal(apb_read(f, at + sem + 4 * 200), 0);
	assert_int_equal(apb_read(f, V3_APB_TOPSP(3) + 4 * 9), 0);
	assert_int_equal(f->messages, 0);
	assert_int_equal(apb_read(f, at + 0x2000), UINT32_MAX);
	assert_int_equal(f->messages, 1);
}

static void dma_trace(void **state)
{
	struct fixture *f = *state;
	struct queue u = start(f, 17, 4);
	const struct nq_entry *e = nq_start(f, V3_APB_UDMA(17) + UDMA_SDMA_NOTIFY, 0);

	copy_and_wait(&u, hbm_addr(1, 0), host_addr(DATA), 1000);
	wait_for(seen(&e[0]));
	assert_int_equal(e[0].type, NQ_TRACE_DMA);
	assert_int_equal(e[0].queue, 4);
	assert_int_equal(e[0].seqno, 2); /* data and marker, in one go */
	assert_int_equal(e[0].value, 1004);
	/* A queue reset leaves the wrapper, a core reset does not. */
	apb_write(f, V3_APB_QEMU_RESET, 0x200);
	wait_for(apb_read(f, V3_APB_QEMU_RESET) == 0);
	assert_int_equal(apb_read(f, V3_APB_UDMA(17) + UDMA_SDMA_NOTIFY + NQ_SIZE), 0);
}

/* --- other chips ------------------------------------------------------------------ */

static struct fixture *chip(const char *name, bool silicon)
{
	return fixture_create((struct nm_config){ .chip = name, .silicon = silicon });
}

static uint32_t exi(struct fixture *f, uint32_t reg)
{
	return (uint32_t)nm_bar_read(f->dev, EXI_BAR, reg, 4);
}

static void v2_is_where_its_map_says(void **state)
{
	static const char *const names[] = { "trn1", "inf2" };
	static const uint32_t ids[] = { 0x71641d0f, 0x72641d0f };

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		struct fixture *f = chip(names[i], false);

		assert_int_equal(nm_config_read(f->dev, 0, 4), ids[i]);
		assert_int_equal(exi(f, EXI_ARCH), 2);
		assert_int_equal(exi(f, EXI_CORES), 2);
		assert_int_equal(exi(f, EXI_HBM_STACKS), 2);
		assert_int_equal(nm_bar_size(f->dev, V3_BAR_DRAM), 2 * HBM_STACK);
		assert_int_equal(nm_bar_size(f->dev, 2), 0x40000000);
		/* An engine and, apart from it, its wrapper. */
		apb_write(f, 0x30700204, 1); /* SEng 1, UDMA 0, M2S */
		assert_int_equal(apb_read(f, 0x30700200), 0x1111);
		apb_write(f, 0x30b0701c, 1); /* wrapper 1 of SEng 1: reorder buffer */
		assert_int_equal(apb_read(f, 0x30b0701c), 1);
		apb_write(f, 0x30535000 + NQ_SIZE, 4096);
		apb_write(f, 0x30e84000 + NQ_SIZE, 4096); /* TopSP 2 */
		apb_write(f, 0x04000000 + V3_TPB_EVENTS, 1); /* core 1 */
		apb_write(f, 0x11400000, 1); /* TopSP 5 */
		assert_int_equal(apb_read(f, 0x11400000), 1);
		assert_string_equal(f->last, "");
		/* The reset register of the virtual device: 1 is all of it. */
		apb_write(f, 0x30647010, 1);
		wait_for(apb_read(f, 0x30647010) == 0);
		assert_int_equal(apb_read(f, 0x30b0701c), 0);
		assert_int_equal(apb_read(f, 0x11400000), 0);
		fixture_teardown((void **)&f);
	}
}

static void v4_is_v3_but_for_its_id(void **state)
{
	struct fixture *f = chip("trn3", false);

	(void)state;
	assert_int_equal(nm_config_read(f->dev, 0, 4), 0x75641d0f);
	assert_int_equal(exi(f, EXI_ARCH), 4);
	assert_int_equal(exi(f, EXI_CORES), 8);
	assert_int_equal(exi(f, EXI_HBM_STACKS), 4);
	assert_int_equal(nm_bar_size(f->dev, 2), 0x100000000);
	fixture_teardown((void **)&f);
}

static void silicon_has_registers_on_bar_0_and_nothing_of_ours(void **state)
{
	struct fixture *f = chip("trn2", true);

	(void)state;
	assert_int_equal(nm_config_read(f->dev, 8, 1), 0);
	assert_int_equal(nm_bar_size(f->dev, 0), 0x100000000);
	assert_int_equal(nm_bar_size(f->dev, 2), 0);
	assert_int_equal(nm_bar_size(f->dev, 4), 4 * 0x1000000000ull);
	for (uint32_t at = nm_config_read(f->dev, 0x34, 1); at;
	     at = nm_config_read(f->dev, at + 1, 1))
		assert_int_not_equal(nm_config_read(f->dev, at, 1), 0x11); /* no MSI-X */
	assert_int_equal(nm_bar_read(f->dev, 0, V3_APB_MISC_RAM + MBOX_SERIAL_LO, 4), 0x30303031);
	/* Stacks are 64 GiB apart, whatever they hold. */
	nm_bar_write(f->dev, 4, V3_DRAM_HBM(2) + 8, 8, 0x1234);
	assert_int_equal(nm_bar_read(f->dev, 4, V3_DRAM_HBM(2) + 8, 8), 0x1234);
	assert_int_equal(f->messages, 0);
	assert_int_equal(nm_bar_read(f->dev, 4, V3_DRAM_HBM(2) + HBM_STACK, 8), UINT64_MAX);
	assert_int_equal(f->messages, 1);
	fixture_teardown((void **)&f);
}

static void impossible_chips(void **state)
{
	const struct nm_config bad[] = {
		{ .chip = "trn7" },
		{ .chip = "inf2", .cores = 3 },
		{ .chip = "trn1", .hbm_bytes = 32ull << 30 },
	};
	struct nm_device *dev;

	(void)state;
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(nm_device_create(&bad[i], &dev), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(events_of_a_core),
		TEST(topsp),
		TEST(dma_trace),
		cmocka_unit_test(v2_is_where_its_map_says),
		cmocka_unit_test(v4_is_v3_but_for_its_id),
		cmocka_unit_test(silicon_has_registers_on_bar_0_and_nothing_of_ours),
		cmocka_unit_test(impossible_chips),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
