// SPDX-License-Identifier: GPL-2.0-only
/* Generation V2: trn1 and inf2. Sources of the numbers: see the headers in hw/. */

#include <linux/types.h>

#include "neuron_hal.h"
#include "neuron_mailbox.h"
#include "neuron_map_v2.h"
#include "neuron_pci.h"

/* The lowest 16 MiB of each stack belong to the firmware. */
#define V2_FW_CARVEOUT 0x01000000

static u64 v2_hbm_addr(unsigned int stack)
{
	return V2_DEV_HBM(stack);
}

static u64 v2_hbm_window(const struct neuron_hal *hal, unsigned int stack, u64 bar_bytes)
{
	if (hal->quirks & NEURON_QUIRK_WINDOW_BY_SIZE)
		return bar_bytes / V2_HBM_STACKS * stack;
	return V2_DRAM_HBM(stack);
}

static u32 v2_udma(unsigned int engine)
{
	return V2_BAR_APB + V2_APB_UDMA(engine);
}

static u32 v2_core_notify(unsigned int core)
{
	return V2_BAR_APB + V2_APB_CORE_NOTIFY(core);
}

static const struct neuron_hal_ops v2_ops_virtual = {
	.hbm_addr = v2_hbm_addr,
	.hbm_window = v2_hbm_window,
	.udma = v2_udma,
	.core_notify = v2_core_notify,
	.reset = neuron_hal_reset_virtual,
};

static const struct neuron_hal_ops v2_ops_silicon = {
	.hbm_addr = v2_hbm_addr,
	.hbm_window = v2_hbm_window,
	.udma = v2_udma,
	.core_notify = v2_core_notify,
	.reset = neuron_hal_reset_silicon,
};

/* The wrapper of a host engine lies right behind it. */
#define V2_COMMON                                                                         \
	.arch = NEURON_ARCH_V2, .dies = V2_DIES, .dram_bar = V3_BAR_DRAM, .dma_bits = 44, \
	.host_base = V2_DEV_HOST, .neighbour = V2_DEV_NEIGHBOUR_0,                        \
	.neighbour_dist = V2_DEV_NEIGHBOUR_DIST, .fw_carveout = V2_FW_CARVEOUT,           \
	.apb_bytes = V2_BAR_APB + V2_APB_BYTES, .misc_ram = V2_BAR_APB + V2_APB_MISC_RAM, \
	.misc_ram_addr = V2_DEV_MISC_RAM, .misc_ram_bytes = 0x1000,                       \
	.udma_bytes = V2_APB_UDMA_BYTES + V2_APB_SDMA_BYTES, .stop_ms = 2000,             \
	.copy_engine = { V2_UDMA_D2H, V2_UDMA_H2D }, .copy_queue = 0,                     \
	.copy_engines = V2_UDMA_HOST_ENGINES, .cores_joined = 1

/* One image serves both: the firmware asks the chip what it is. */
#define V2_VIRTUAL                                                                         \
	.fw_name = "neuron/trn1-mgmt.bin", .ops = &v2_ops_virtual, .apb_bar = V2_BAR_QEMU, \
	.reset_reg = V2_BAR_APB + V2_APB_QEMU_RESET, .reset_value = 1, NEURON_HAL_VIRTUAL, \
	V2_COMMON

#define V2_SILICON .ops = &v2_ops_silicon, .apb_bar = V2_BAR, NEURON_HAL_SILICON, V2_COMMON

const struct neuron_hal neuron_hal_trn1_virtual = {
	.name = "trn1 (virtual)",
	.instance = "Trn1",
	.product = "Trainium1",
	V2_VIRTUAL,
};

const struct neuron_hal neuron_hal_trn1 = {
	.name = "trn1",
	.instance = "Trn1",
	.product = "Trainium1",
	V2_SILICON,
};

const struct neuron_hal neuron_hal_inf2_virtual = {
	.name = "inf2 (virtual)",
	.instance = "Inf2",
	.product = "Inferentia2",
	V2_VIRTUAL,
};

const struct neuron_hal neuron_hal_inf2 = {
	.name = "inf2",
	.instance = "Inf2",
	.product = "Inferentia2",
	V2_SILICON,
};
