// SPDX-License-Identifier: GPL-2.0-only
/*
 * Generations V3 and V4: trn2 and trn3, which has trn2's map and procedures.
 * Sources of the numbers: see the headers in hw/.
 */

#include <linux/types.h>

#include "neuron_hal.h"
#include "neuron_mailbox.h"
#include "neuron_map_v4.h"
#include "neuron_pci.h"
#include "neuron_udma.h"

static u64 v3_hbm_addr(unsigned int stack)
{
	return V3_DEV_HBM(stack);
}

static u64 v3_hbm_window(const struct neuron_hal *hal, unsigned int stack, u64 bar_bytes)
{
	if (hal->quirks & NEURON_QUIRK_WINDOW_BY_SIZE)
		return bar_bytes / V3_HBM_STACKS * stack;
	return V3_DRAM_HBM(stack);
}

static u32 v3_udma(unsigned int engine)
{
	return V3_APB_UDMA(engine);
}

static u32 v3_core_notify(unsigned int core)
{
	return V3_APB_CORE_NOTIFY(core);
}

static const struct neuron_hal_ops v3_ops_virtual = {
	.hbm_addr = v3_hbm_addr,
	.hbm_window = v3_hbm_window,
	.udma = v3_udma,
	.core_notify = v3_core_notify,
	.reset = neuron_hal_reset_virtual,
};

static const struct neuron_hal_ops v3_ops_silicon = {
	.hbm_addr = v3_hbm_addr,
	.hbm_window = v3_hbm_window,
	.udma = v3_udma,
	.core_notify = v3_core_notify,
	.reset = neuron_hal_reset_silicon,
};

#define V3_COMMON                                                                                  \
	.dies = V3_DIES, .dram_bar = V3_BAR_DRAM, .dma_bits = 46, .host_base = V3_DEV_HOST,        \
	.neighbour = V3_DEV_NEIGHBOUR_0, .neighbour_dist = V3_DEV_NEIGHBOUR_DIST,                  \
	.fw_carveout = V3_HBM_FW_CARVEOUT, .apb_bytes = V3_APB_BYTES, .misc_ram = V3_APB_MISC_RAM, \
	.misc_ram_addr = V3_DEV_MISC_RAM, .misc_ram_bytes = V3_APB_MISC_RAM_BYTES,                 \
	.udma_bytes = V3_APB_UDMA_BYTES, .sdma_beats = SDMA_BEATS_START, .stop_ms = 2000,          \
	.copy_engine = { V3_UDMA_D2H_0, V3_UDMA_H2D_0, V3_UDMA_D2H_1, V3_UDMA_H2D_1 },             \
	.copy_queue = 0, .copy_engines = V3_UDMA_HOST_ENGINES, .cores_joined = V3_CORES_PER_SENG

#define V3_VIRTUAL                                                                          \
	.ops = &v3_ops_virtual, .apb_bar = V3_BAR_APB_QEMU, .reset_reg = V3_APB_QEMU_RESET, \
	NEURON_HAL_VIRTUAL, V3_COMMON

#define V3_SILICON .ops = &v3_ops_silicon, .apb_bar = V3_BAR_APB, NEURON_HAL_SILICON, V3_COMMON

const struct neuron_hal neuron_hal_trn2_virtual = {
	.name = "trn2 (virtual)",
	.fw_name = "neuron/trn2-mgmt.bin",
	.instance = "Trn2",
	.product = "Trainium2",
	.arch = NEURON_ARCH_V3,
	.registers_api = V3_MBOX_REGISTERS_API,
	V3_VIRTUAL,
};

const struct neuron_hal neuron_hal_trn2 = {
	.name = "trn2",
	.instance = "Trn2",
	.product = "Trainium2",
	.arch = NEURON_ARCH_V3,
	.registers_api = V3_MBOX_REGISTERS_API,
	V3_SILICON,
};

const struct neuron_hal neuron_hal_trn3_virtual = {
	.name = "trn3 (virtual)",
	.fw_name = "neuron/trn3-mgmt.bin",
	.instance = "Trn3",
	.product = "Trainium3",
	.arch = NEURON_ARCH_V4,
	.registers_api = V4_MBOX_REGISTERS_API,
	V3_VIRTUAL,
};

const struct neuron_hal neuron_hal_trn3 = {
	.name = "trn3",
	.instance = "Trn3",
	.product = "Trainium3",
	.arch = NEURON_ARCH_V4,
	.registers_api = V4_MBOX_REGISTERS_API,
	V3_SILICON,
};
