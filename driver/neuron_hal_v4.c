// SPDX-License-Identifier: GPL-2.0-only
/* Generation V4: trn3, whose map and procedures are those of V3. */

#include <linux/types.h>

#include "neuron_hal.h"
#include "neuron_mailbox.h"
#include "neuron_map_v4.h"
#include "neuron_pci.h"
#include "neuron_udma.h"

const struct neuron_hal neuron_hal_trn3_virtual = {
	.name = "trn3 (virtual)",
	.instance = "Trn3",
	.product = "Trainium3",
	.ops = &neuron_hal_ops_v3_virtual,
	.arch = NEURON_ARCH_V4,
	.quirks = NEURON_QUIRK_WINDOW_BY_SIZE,
	.apb_bar = V3_BAR_APB_QEMU,
	.dram_bar = V3_BAR_DRAM,
	.exi_bar = EXI_BAR,
	.dma_bits = 46,
	.host_base = V3_DEV_HOST,
	.neighbour = V3_DEV_NEIGHBOUR_0,
	.neighbour_dist = V3_DEV_NEIGHBOUR_DIST,
	.fw_carveout = V3_HBM_FW_CARVEOUT,
	.apb_bytes = V3_APB_BYTES,
	.misc_ram = V3_APB_MISC_RAM,
	.misc_ram_addr = V3_DEV_MISC_RAM,
	.misc_ram_bytes = V3_APB_MISC_RAM_BYTES,
	.reset_reg = V3_APB_QEMU_RESET,
	.udma_bytes = V3_APB_UDMA_BYTES,
	.sdma_beats = SDMA_BEATS_START,
	.reset_poll_ms = 10,
	.reset_max_ms = 30000,
	.stop_ms = 2000,
	.copy_engine = { V3_UDMA_D2H_0, V3_UDMA_H2D_0, V3_UDMA_D2H_1, V3_UDMA_H2D_1 },
	.copy_queue = 0,
	.copy_engines = V3_UDMA_HOST_ENGINES,
};

const struct neuron_hal neuron_hal_trn3 = {
	.name = "trn3",
	.instance = "Trn3",
	.product = "Trainium3",
	.ops = &neuron_hal_ops_v3,
	.arch = NEURON_ARCH_V4,
	.quirks = NEURON_QUIRK_NO_EXEC,
	.apb_bar = V3_BAR_APB,
	.dram_bar = V3_BAR_DRAM,
	.dma_bits = 46,
	.host_base = V3_DEV_HOST,
	.neighbour = V3_DEV_NEIGHBOUR_0,
	.neighbour_dist = V3_DEV_NEIGHBOUR_DIST,
	.fw_carveout = V3_HBM_FW_CARVEOUT,
	.apb_bytes = V3_APB_BYTES,
	.misc_ram = V3_APB_MISC_RAM,
	.misc_ram_addr = V3_DEV_MISC_RAM,
	.misc_ram_bytes = V3_APB_MISC_RAM_BYTES,
	.udma_bytes = V3_APB_UDMA_BYTES,
	.sdma_beats = SDMA_BEATS_START,
	.reset_poll_ms = MBOX_RESET_POLL_MS,
	.reset_max_ms = MBOX_RESET_MAX_MS,
	.stop_ms = 2000,
	.copy_engine = { V3_UDMA_D2H_0, V3_UDMA_H2D_0, V3_UDMA_D2H_1, V3_UDMA_H2D_1 },
	.copy_queue = 0,
	.copy_engines = V3_UDMA_HOST_ENGINES,
};
