// SPDX-License-Identifier: Apache-2.0
/* PCI function, BAR decoding, reports of guest errors, DMA maps, life of a device. */
#include <errno.h>

#include "fixture.h"
#include "neuron_mailbox.h"
#include "neuron_notify.h"
#include "neuron_udma.h"

static void identity(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(nm_config_read(f->dev, 0, 4), 0x73641d0f);
	assert_int_equal(nm_config_read(f->dev, 8, 4), 0x120000ff);
	assert_int_equal(nm_config_read(f->dev, 9, 1), 0);
	assert_int_equal(nm_config_read(f->dev, 0xe, 1), 0); /* header type 0 */
	assert_int_equal(nm_config_read(f->dev, 0x3d, 1), 0); /* no INTx pin */
}

static uint64_t probe_bar(struct fixture *f, unsigned int bar)
{
	const uint32_t at = 0x10 + bar * 4;
	uint64_t v;

	nm_config_write(f->dev, at, 4, UINT32_MAX);
	nm_config_write(f->dev, at + 4, 4, UINT32_MAX);
	v = (uint64_t)nm_config_read(f->dev, at + 4, 4) << 32 | nm_config_read(f->dev, at, 4);
	assert_int_equal(v & 0x7, 0x4); /* 64-bit memory */
	return ~(v & ~0xfull) + 1;
}

static void bars_are_sized_as_the_specification_says(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(probe_bar(f, 0), 0x100000);
	assert_int_equal(probe_bar(f, 2), 0x100000000);
	assert_int_equal(probe_bar(f, 4), 4 * HBM_STACK);
	for (unsigned int bar = 0; bar < 6; bar += 2)
		assert_int_equal(nm_bar_size(f->dev, bar), probe_bar(f, bar));
	assert_int_equal(nm_bar_size(f->dev, 1), 0);
}

static uint32_t find_cap(struct fixture *f, uint8_t id)
{
	uint32_t at = nm_config_read(f->dev, 0x34, 1);

	for (int n = 0; at && n < 16; n++, at = nm_config_read(f->dev, at + 1, 1))
		if (nm_config_read(f->dev, at, 1) == id)
			return at;
	return 0;
}

static void capabilities(void **state)
{
	struct fixture *f = *state;
	uint32_t msix = find_cap(f, 0x11), pcie = find_cap(f, 0x10);

	assert_true(find_cap(f, 0x01));
	assert_true(pcie);
	assert_true(nm_config_read(f->dev, pcie + 4, 4) & 1u << 28); /* function-level reset */
	assert_true(msix);
	assert_int_equal((nm_config_read(f->dev, msix + 2, 2) & 0x7ff) + 1, EXI_MSIX_VECTORS);
	assert_int_equal(nm_config_read(f->dev, msix + 4, 4), EXI_MSIX_TABLE | EXI_BAR);
	assert_int_equal(nm_config_read(f->dev, msix + 8, 4), EXI_MSIX_PBA | EXI_BAR);
}

static void read_only_configuration_stays(void **state)
{
	struct fixture *f = *state;

	nm_config_write(f->dev, 0, 4, 0);
	nm_config_write(f->dev, 8, 4, 0);
	identity(state);
	nm_config_read(f->dev, 2, 4);
	assert_int_equal(f->messages, 1); /* unaligned */
	assert_int_equal(nm_config_read(f->dev, 4096, 4), UINT32_MAX);
}

static void flr_resets_registers_and_keeps_hbm(void **state)
{
	struct fixture *f = *state;
	uint32_t pcie = find_cap(f, 0x10);

	hbm_at(f, 3, 5)[0] = 0xa5;
	apb_write(f, V3_APB_MISC_RAM + MBOX_RUNTIME_0, 99);
	nm_bar_write(f->dev, EXI_BAR, EXI_UDMA_ROUTE(128, 0), 4, EXI_VECTOR_ENABLE | 5);
	nm_config_write(f->dev, pcie + 8, 2, 0x8000);
	assert_int_equal(apb_read(f, V3_APB_MISC_RAM + MBOX_RUNTIME_0), 0);
	assert_int_equal(nm_bar_read(f->dev, EXI_BAR, EXI_UDMA_ROUTE(128, 0), 4), 0);
	assert_int_equal(nm_config_read(f->dev, 4, 2), 0);
	assert_int_equal(hbm_at(f, 3, 5)[0], 0xa5);
	/* And by a write of the upper byte alone. */
	apb_write(f, V3_APB_MISC_RAM + MBOX_RUNTIME_0, 99);
	nm_config_write(f->dev, pcie + 9, 1, 0x80);
	assert_int_equal(apb_read(f, V3_APB_MISC_RAM + MBOX_RUNTIME_0), 0);
}

static void d3hot_keeps_nothing(void **state)
{
	struct fixture *f = *state;
	uint32_t pm = find_cap(f, 0x01);

	hbm_at(f, 3, 5)[0] = 0xa5;
	apb_write(f, V3_APB_MISC_RAM + MBOX_RUNTIME_0, 99);
	nm_config_write(f->dev, pm + 4, 2, 1); /* D1, which there is not */
	assert_int_equal(nm_config_read(f->dev, pm + 4, 2), 0);
	nm_config_write(f->dev, pm + 4, 2, 3);
	assert_int_equal(nm_config_read(f->dev, pm + 4, 2), 3);
	assert_int_equal(nm_config_read(f->dev, 0, 2), NEURON_PCI_VENDOR);
	assert_int_equal(apb_read(f, V3_APB_MISC_RAM + MBOX_RUNTIME_0), UINT32_MAX);
	apb_write(f, V3_APB_MISC_RAM + MBOX_RUNTIME_0, 98);
	nm_config_write(f->dev, pm + 4, 2, 0);
	assert_int_equal(nm_config_read(f->dev, pm + 4, 2), 0);
	assert_int_equal(nm_config_read(f->dev, 4, 2), 0);
	assert_int_equal(apb_read(f, V3_APB_MISC_RAM + MBOX_RUNTIME_0), 0);
	assert_int_equal(hbm_at(f, 3, 5)[0], 0);
}

static void dram_bar_is_hbm(void **state)
{
	struct fixture *f = *state;

	nm_bar_write(f->dev, V3_BAR_DRAM, 2 * HBM_STACK + 16, 8, 0x0123456789abcdef);
	assert_int_equal(nm_bar_read(f->dev, V3_BAR_DRAM, 2 * HBM_STACK + 20, 4), 0x01234567);
	assert_int_equal(hbm_at(f, 2, 16)[0], 0xef);
	assert_int_equal(nm_bar_read(f->dev, V3_BAR_DRAM, 4 * HBM_STACK, 4), UINT64_MAX);
	assert_int_equal(f->messages, 1);
}

static void execution_interface_registers(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(nm_bar_read(f->dev, EXI_BAR, EXI_MAGIC, 4), 0x4958454e);
	assert_int_equal(nm_bar_read(f->dev, EXI_BAR, EXI_VERSION, 4), 1 << 16 | 3);
	assert_int_equal(nm_bar_read(f->dev, EXI_BAR, EXI_CORES, 4), 2);
	assert_int_equal(nm_bar_read(f->dev, EXI_BAR, EXI_QUEUES, 4), 64);
	assert_int_equal(nm_bar_read(f->dev, EXI_BAR, EXI_ARCH, 4), 3);
	assert_int_equal(nm_bar_read(f->dev, EXI_BAR, EXI_SBUF_BYTES, 4), 192 << 10);
	assert_int_equal(nm_bar_read(f->dev, EXI_BAR, EXI_PSUM_BYTES, 4), 16 << 10);
	assert_int_equal(nm_bar_read(f->dev, EXI_BAR, EXI_HBM_MIB, 4), 64);
	assert_int_equal(nm_bar_read(f->dev, EXI_BAR, EXI_HBM_STACKS, 4), 4);
	assert_int_equal(nm_bar_read(f->dev, EXI_BAR, EXI_FEATURES, 4), 1);
	assert_int_equal(nm_bar_read(f->dev, EXI_BAR, EXI_TIME_LO, 8), 0);
	nm_bar_write(f->dev, EXI_BAR, EXI_UDMA_ROUTE(131, 15), 4, UINT32_MAX);
	assert_int_equal(nm_bar_read(f->dev, EXI_BAR, EXI_UDMA_ROUTE(131, 15), 4), 0x8000003f);
	assert_int_equal(f->messages, 0);
}

static void unknown_register_is_reported_once(void **state)
{
	struct fixture *f = *state;
	const uint64_t at = V3_APB_UDMA(129) + 0x208;

	assert_int_equal(apb_read(f, at), UINT32_MAX);
	assert_int_equal(apb_read(f, at), UINT32_MAX);
	assert_int_equal(f->messages, 1);
	assert_int_equal(nm_guest_errors(f->dev), 2);
	assert_non_null(strstr(f->last, "udma129"));
	assert_non_null(strstr(f->last, "0x208"));
	apb_write(f, at, 1);
	assert_int_equal(f->messages, 2);
}

static void wrong_access_names_the_register(void **state)
{
	struct fixture *f = *state;

	apb_write(f, V3_APB_UDMA(130) + UDMA_STATE, 1);
	assert_int_equal(f->messages, 1);
	assert_non_null(strstr(f->last, "UDMA_STATE"));
	assert_non_null(strstr(f->last, "read-only"));
	assert_int_equal(apb_read(f, V3_APB_MISC_RAM + MBOX_FW_RESTART), UINT32_MAX);
	assert_int_equal(f->messages, 2);
	assert_non_null(strstr(f->last, "write-only"));
}

static void holes_and_absent_cores_answer_all_ones(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(apb_read(f, 0x05000000), UINT32_MAX);
	assert_int_equal(apb_read(f, V3_APB_UDMA(32)), UINT32_MAX); /* core 2 of 2 */
	assert_int_equal(apb_read(f, V3_APB_TPB(2) + V3_TPB_SEM_READ), UINT32_MAX);
	assert_int_equal(nm_bar_read(f->dev, EXI_BAR, EXI_QUEUE(2, 0), 4), UINT32_MAX);
	assert_int_equal(nm_bar_read(f->dev, 1, 0, 4), UINT64_MAX);
	assert_int_equal(nm_bar_read(f->dev, EXI_BAR, EXI_MAGIC, 2), UINT64_MAX);
	assert_int_equal(nm_bar_read(f->dev, EXI_BAR, 0xffffffffffffff00, 4), UINT64_MAX);
	assert_int_equal(f->messages, 7);
}

/* Registers that the public driver writes while it starts an engine. */
static void start_up_sequence_meets_no_surprise(void **state)
{
	static const uint32_t writes[] = {
		UDMA_M2S + UDMA_M2S_DATA_CFG,
		UDMA_M2S + UDMA_M2S_AXI_OSTAND,
		UDMA_GEN + UDMA_GEN_AXI_TIMEOUT,
		UDMA_M2S + UDMA_M2S_COMP_ACK,
		UDMA_M2S + UDMA_M2S_CFG_LEN,
		UDMA_M2S + UDMA_M2S_STREAM_CFG,
		UDMA_GEN_EX + UDMA_GEN_EX_TX_SEL(0),
		UDMA_GEN_EX + UDMA_GEN_EX_TX_SEL(15),
		UDMA_M2S + UDMA_M2S_AXI_DATA_RD_CFG,
		UDMA_S2M + UDMA_S2M_COMP_ACK,
		UDMA_GEN_EX + UDMA_GEN_EX_RX_SEL(15, 2),
		UDMA_S2M + UDMA_S2M_AXI_OSTAND_RD,
		UDMA_S2M + UDMA_S2M_AXI_OSTAND_WR,
		UDMA_GEN + UDMA_GEN_SPARE_0,
		UDMA_GEN + UDMA_GEN_IOFIC(UDMA_IOFIC_D) + UDMA_IOFIC_CONTROL,
		UDMA_GEN + UDMA_GEN_IOFIC(UDMA_IOFIC_D) + UDMA_IOFIC_MASK_CLEAR,
		UDMA_GEN + UDMA_GEN_IOFIC_2(1) + UDMA_IOFIC_MASK_CLEAR,
		UDMA_GEN + UDMA_GEN_IOFIC_2(1) + UDMA_IOFIC_ABORT_MASK,
		UDMA_GEN + UDMA_GEN_IOFIC_2(2) + UDMA_IOFIC_MASK_CLEAR,
		UDMA_GEN + UDMA_GEN_IOFIC_2(2) + UDMA_IOFIC_ABORT_MASK,
		UDMA_S2M + UDMA_S2M_COMP_CFG_1C,
		UDMA_M2S + UDMA_PREF_CFG_2,
		UDMA_M2S + UDMA_PREF_CFG_3,
		UDMA_S2M + UDMA_PREF_CFG_3,
		UDMA_M2S + UDMA_AXI_DESC_RD_CFG_3,
		UDMA_S2M + UDMA_AXI_DESC_RD_CFG_3,
		UDMA_SDMA + SDMA_ROB_CFG,
		UDMA_SDMA + SDMA_WOB_CFG,
		UDMA_SDMA + SDMA_EVENT_ACCEL,
		UDMA_SDMA + SDMA_BEATS,
		UDMA_M2S + UDMA_Q(0) + UDMA_M2S_Q_RLIMIT_MASK,
		UDMA_M2S + UDMA_Q(15) + UDMA_M2S_Q_SW_CTRL,
		UDMA_S2M + UDMA_Q(15) + UDMA_S2M_Q_SW_CTRL,
		UDMA_M2S + UDMA_Q(3) + UDMA_M2S_Q_COMP_CFG,
		UDMA_S2M + UDMA_Q(3) + UDMA_S2M_Q_COMP_CFG,
		UDMA_M2S + UDMA_Q(3) + UDMA_Q_CFG,
		UDMA_GEN + UDMA_GEN_AXI_ERR_TABLE(5) + 11 * 4,
		UDMA_GEN + UDMA_GEN_AXI_ERR_DATA(5),
		UDMA_GEN + UDMA_GEN_IOFIC_S2M_COMP_WR + UDMA_IOFIC_MASK_CLEAR,
		UDMA_SDMA_NOTIFY + NQ_SIZE,
	};
	struct fixture *f = *state;
	static const unsigned int engines[] = { 0, 31, 128, 129, 130, 131 };

	for (unsigned int e = 0; e < sizeof(engines) / sizeof(engines[0]); e++)
		for (unsigned int i = 0; i < sizeof(writes) / sizeof(writes[0]); i++)
			apb_write(f, V3_APB_UDMA(engines[e]) + writes[i], 0);
	apb_write(f, V3_APB_FIS(5) + UDMA_IOFIC_D * UDMA_IOFIC_BYTES + UDMA_IOFIC_MASK, 4);
	assert_int_equal(
		apb_read(f, V3_APB_FIS(5) + UDMA_IOFIC_D * UDMA_IOFIC_BYTES + UDMA_IOFIC_MASK), 4);
	apb_write(f, V3_APB_CORE_NOTIFY(1) + NQ_SIZE + NQ_INDEX(NQ_ERROR, 2) * NQ_STRIDE, 4096);
	apb_write(f, V3_APB_TOPSP_NOTIFY(3) + NQ_BASE_LO, 0);
	assert_string_equal(f->last, "");
	assert_int_equal(f->messages, 0);
}

static void interrupt_controller_bits(void **state)
{
	struct fixture *f = *state;
	const uint64_t g = V3_APB_UDMA(131) + UDMA_GEN + UDMA_GEN_IOFIC(UDMA_IOFIC_B);

	assert_int_equal(apb_read(f, g + UDMA_IOFIC_MASK), UINT32_MAX);
	apb_write(f, g + UDMA_IOFIC_MASK_CLEAR, ~0x6u);
	assert_int_equal(apb_read(f, g + UDMA_IOFIC_MASK), ~0x6u);
	apb_write(f, g + UDMA_IOFIC_CAUSE_SET, 0x7);
	assert_int_equal(apb_read(f, g + UDMA_IOFIC_CAUSE), 0x7);
	apb_write(f, g + UDMA_IOFIC_CAUSE, ~0x2u);
	assert_int_equal(apb_read(f, g + UDMA_IOFIC_CAUSE), 0x5);
}

static void dma_maps(void **state)
{
	struct fixture *f = *state;
	const uint64_t end = HOST_IOVA + HOST_BYTES;

	assert_int_equal(nm_dma_map(f->dev, HOST_IOVA, 4096, f->host, 1), -EEXIST);
	assert_int_equal(nm_dma_map(f->dev, HOST_IOVA - 4096, 8192, f->host, 1), -EEXIST);
	assert_int_equal(nm_dma_map(f->dev, end - 1, 4096, f->host, 1), -EEXIST);
	assert_int_equal(nm_dma_map(f->dev, 0, UINT64_MAX, f->host, 1), -EEXIST);
	assert_int_equal(nm_dma_map(f->dev, end, 0, f->host, 1), -EINVAL);
	assert_int_equal(nm_dma_map(f->dev, UINT64_MAX - 10, 100, f->host, 1), -EINVAL);
	assert_int_equal(nm_dma_map(f->dev, end, 100, f->host, 4), -EINVAL);
	assert_int_equal(nm_dma_map(f->dev, end, 100, NULL, 1), -EINVAL); /* no config.dma */
	for (uint64_t i = 0; i < 100; i++)
		assert_int_equal(nm_dma_map(f->dev, end + (i * 37 % 100) * 4096, 4096, f->host, 1),
				 0);
	assert_int_equal(nm_dma_unmap(f->dev, HOST_IOVA, 4096), -ENOENT);
	assert_int_equal(nm_dma_unmap(f->dev, 0, 4096), -ENOENT);
	for (uint64_t i = 0; i < 100; i++)
		assert_int_equal(nm_dma_unmap(f->dev, end + i * 4096, 4096), 0);
	assert_int_equal(nm_dma_unmap(f->dev, HOST_IOVA, HOST_BYTES), 0);
	assert_int_equal(nm_dma_unmap(f->dev, HOST_IOVA, HOST_BYTES), -ENOENT);
}

static void bad_configurations_are_refused(void **state)
{
	struct fixture *f = *state;
	struct nm_config config = { .log_level = -1, .hbm_bytes = HBM_STACK, .cores = 9 };
	struct nm_device *dev;

	(void)f;
	assert_int_equal(nm_device_create(&config, &dev), -EINVAL);
	config.cores = 8;
	config.hbm_bytes = 3ull << 30;
	assert_int_equal(nm_device_create(&config, &dev), -EINVAL);
	config.hbm_bytes = 32ull << 20;
	assert_int_equal(nm_device_create(&config, &dev), -EINVAL);
	config.hbm_bytes = 0; /* default */
	assert_int_equal(nm_device_create(&config, &dev), 0);
	assert_int_equal(nm_bar_size(dev, V3_BAR_DRAM), 16ull << 30);
	nm_device_destroy(dev);
}

static void two_devices_are_independent(void **state)
{
	struct fixture *a = *state, *b;
	void *other;

	fixture_setup(&other);
	b = other;
	apb_write(a, V3_APB_MISC_RAM + MBOX_RUNTIME_0, 1);
	hbm_at(a, 0, 0)[0] = 1;
	assert_int_equal(apb_read(b, V3_APB_MISC_RAM + MBOX_RUNTIME_0), 0);
	assert_int_equal(hbm_at(b, 0, 0)[0], 0);
	apb_read(b, 0x05000000);
	assert_int_equal(a->messages, 0);
	assert_int_equal(b->messages, 1);
	fixture_teardown(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(identity),
		TEST(bars_are_sized_as_the_specification_says),
		TEST(capabilities),
		TEST(read_only_configuration_stays),
		TEST(flr_resets_registers_and_keeps_hbm),
		TEST(d3hot_keeps_nothing),
		TEST(dram_bar_is_hbm),
		TEST(execution_interface_registers),
		TEST(unknown_register_is_reported_once),
		TEST(wrong_access_names_the_register),
		TEST(holes_and_absent_cores_answer_all_ones),
		TEST(start_up_sequence_meets_no_surprise),
		TEST(interrupt_controller_bits),
		TEST(dma_maps),
		TEST(bad_configurations_are_refused),
		TEST(two_devices_are_independent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
