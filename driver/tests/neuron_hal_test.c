// SPDX-License-Identifier: GPL-2.0-only
/* Tables of the chips, and addresses over NeuronLink. */

#include <kunit/test.h>
#include <linux/pci.h>

#include "neuron_drv.h"
#include "neuron_hal.h"
#include "neuron_link.h"
#include "neuron_pci.h"

static const struct neuron_hal *find(struct kunit *test, u16 device, u8 revision)
{
	struct pci_dev *pdev = kunit_kzalloc(test, sizeof(*pdev), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, pdev);
	pdev->device = device;
	pdev->revision = revision;
	return neuron_hal_find(pdev);
}

/* Numbers of the public address maps, written out once more. */
static void neuron_hal_chips(struct kunit *test)
{
	static const struct {
		u16 device;
		u32 arch;
		u64 stack1, host, engine0, misc_ram;
		u32 engines, dies, joined, registers;
		const char *fw;
	} chips[] = {
		{ 0x7164, 2, 0x1000000000, 0x100000000000, 0x30600000, 0x30fa0000, 2, 1, 1, 0,
		  "neuron/trn1-mgmt.bin" },
		{ 0x7264, 2, 0x1000000000, 0x100000000000, 0x30600000, 0x30fa0000, 2, 1, 1, 0,
		  "neuron/trn1-mgmt.bin" },
		{ 0x7364, 3, 0x4000000000, 0x400000000000, 0x06800000, 0x06c84000, 4, 2, 2, 7,
		  "neuron/trn2-mgmt.bin" },
		{ 0x7564, 4, 0x4000000000, 0x400000000000, 0x06800000, 0x06c84000, 4, 2, 2, 6,
		  "neuron/trn3-mgmt.bin" },
		{ 0x7565, 4, 0x4000000000, 0x400000000000, 0x06800000, 0x06c84000, 4, 2, 2, 6,
		  "neuron/trn3-mgmt.bin" },
	};
	const struct neuron_hal *hal;
	unsigned int i, virtual;

	for (i = 0; i < ARRAY_SIZE(chips) * 2; i++) {
		virtual = i % 2;
		hal = find(test, chips[i / 2].device, virtual ? NEURON_PCI_REV_QEMU : 1);
		KUNIT_ASSERT_NOT_NULL(test, hal);
		KUNIT_EXPECT_EQ(test, hal->arch, chips[i / 2].arch);
		KUNIT_EXPECT_EQ(test, hal->ops->hbm_addr(1), chips[i / 2].stack1);
		KUNIT_EXPECT_EQ(test, hal->host_base, chips[i / 2].host);
		KUNIT_EXPECT_EQ(test, hal->ops->udma(hal->copy_engine[0]), chips[i / 2].engine0);
		KUNIT_EXPECT_EQ(test, hal->misc_ram, chips[i / 2].misc_ram);
		KUNIT_EXPECT_EQ(test, hal->copy_engines, chips[i / 2].engines);
		KUNIT_EXPECT_EQ(test, hal->dies, chips[i / 2].dies);
		if (virtual)
			KUNIT_EXPECT_STREQ(test, hal->fw_name, chips[i / 2].fw);
		else
			KUNIT_EXPECT_NULL(test, hal->fw_name);
		KUNIT_EXPECT_EQ(test, !!hal->power_max_uw, virtual);
		KUNIT_EXPECT_EQ(test, hal->cores_joined, chips[i / 2].joined);
		KUNIT_EXPECT_EQ(test, hal->registers_api, chips[i / 2].registers);
		KUNIT_EXPECT_EQ(test, hal->apb_bar, virtual ? 2 : 0);
		KUNIT_EXPECT_EQ(test, !(hal->quirks & NEURON_QUIRK_NO_EXEC), virtual);
		/* The DRAM BAR, here of 4 GiB if it says how far stacks are apart. */
		KUNIT_EXPECT_EQ(test, hal->ops->hbm_window(hal, 1, SZ_4G),
				virtual	       ? SZ_4G / (hal->arch == 2 ? 2 : 4) :
				hal->arch == 2 ? 0x400000000 :
						 0x1000000000);
	}
	KUNIT_EXPECT_NULL(test, find(test, NEURON_PCI_INF1_0, 1));
}

static void neuron_hal_neighbours(struct kunit *test)
{
	struct neuron_device *ndev = kunit_kzalloc(test, sizeof(*ndev), GFP_KERNEL);
	struct neuron_device *peer = kunit_kzalloc(test, sizeof(*peer), GFP_KERNEL);
	u64 addr = 0;

	KUNIT_ASSERT_NOT_NULL(test, ndev);
	KUNIT_ASSERT_NOT_NULL(test, peer);
	ndev->hal = &neuron_hal_trn2_virtual;
	peer->hal = &neuron_hal_trn2_virtual;
	/* No serial number is nobody's, not that of a window that leads nowhere. */
	KUNIT_EXPECT_FALSE(test, neuron_link_addr(ndev, peer, 0x1000, &addr));
	peer->serial = 77;
	KUNIT_EXPECT_FALSE(test, neuron_link_addr(ndev, peer, 0x1000, &addr));
	ndev->link.serial[2] = 77;
	KUNIT_EXPECT_TRUE(test, neuron_link_addr(ndev, peer, 0x804000001000, &addr));
	KUNIT_EXPECT_EQ(test, addr, 0x18804000001000);
	KUNIT_EXPECT_EQ(test, neuron_hal_dma_addr(ndev->hal, addr), addr);
	KUNIT_EXPECT_EQ(test, neuron_hal_dma_addr(ndev->hal, 0x1000), 0x400000001000);
	peer->hal = &neuron_hal_trn3_virtual;
	KUNIT_EXPECT_FALSE(test, neuron_link_addr(ndev, peer, 0x1000, &addr));
}

static void neuron_hal_topology(struct kunit *test)
{
	unsigned int ids[NEURON_LINKS];

	KUNIT_EXPECT_EQ(test, neuron_device_number(NEURON_PCI_TRN2, 5), 15);
	KUNIT_EXPECT_EQ(test, neuron_device_number(NEURON_PCI_TRN2, 99), 99);
	KUNIT_EXPECT_EQ(test, neuron_neighbours(NEURON_PCI_TRN2, 16, 5, ids), 4);
	KUNIT_EXPECT_EQ(test, ids[0], 1);
	KUNIT_EXPECT_EQ(test, ids[1], 4);
	KUNIT_EXPECT_EQ(test, ids[2], 9);
	KUNIT_EXPECT_EQ(test, ids[3], 6);
	KUNIT_EXPECT_EQ(test, neuron_neighbours(NEURON_PCI_TRN2, 16, 16, ids), 0);
	KUNIT_EXPECT_EQ(test, neuron_neighbours(NEURON_PCI_TRN2, 1, 0, ids), 0);
}

static struct kunit_case neuron_hal_cases[] = { KUNIT_CASE(neuron_hal_chips),
						KUNIT_CASE(neuron_hal_neighbours),
						KUNIT_CASE(neuron_hal_topology),
						{} };

static struct kunit_suite neuron_hal_suite = {
	.name = "neuron_hal",
	.test_cases = neuron_hal_cases,
};

kunit_test_suite(neuron_hal_suite);
