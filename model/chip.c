// SPDX-License-Identifier: Apache-2.0
#include "chip.h"

#include <string.h>

#include "neuron_udma.h"

/* --- V3 and V4 ------------------------------------------------------------------ */

static uint64_t v3_hbm(unsigned int stack)
{
	return V3_DEV_HBM(stack);
}

static uint64_t v3_tpb(unsigned int core)
{
	return V3_DEV_TPB(core);
}

static uint64_t v3_bar_tpb(unsigned int core)
{
	return V3_APB_TPB(core);
}

/* Ten a die have an address, eight a die belong to cores. */
static uint64_t v3_bar_topsp(unsigned int topsp)
{
	const unsigned int in_die = topsp % V3_TOPSPS_PER_DIE;

	return (topsp < V3_TOPSPS_PER_DIE ? V3_APB_TOPSP_0 : V3_APB_TOPSP_10) +
	       in_die * V3_APB_TOPSP_BYTES;
}

static uint64_t v3_bar_core_nq(unsigned int core)
{
	return V3_APB_CORE_NOTIFY(core);
}

static uint64_t v3_bar_topsp_nq(unsigned int topsp)
{
	return V3_APB_TOPSP_NOTIFY(topsp);
}

static uint64_t v3_bar_udma(unsigned int engine)
{
	return V3_APB_UDMA(engine);
}

static uint64_t v3_bar_sdma(unsigned int engine)
{
	return V3_APB_UDMA(engine) + UDMA_SDMA;
}

static uint64_t v3_bar_fis(unsigned int engine)
{
	return V3_APB_FIS(engine);
}

static const struct nm_apb_part v3_parts[] = {
	{ V3_DEV_APB_IO_0, V3_APB_IO_0, V3_APB_IO_BYTES },
	{ V3_DEV_APB_IO_1, V3_APB_IO_1, V3_APB_IO_BYTES },
	{ V3_DEV_APB_SE_0, V3_APB_SE(0), V3_APB_SE_DIST },
	{ V3_DEV_APB_SE_1, V3_APB_SE(1), V3_APB_SE_DIST },
	{ V3_DEV_APB_SE_2, V3_APB_SE(2), V3_APB_SE_DIST },
	{ V3_DEV_APB_SE_3, V3_APB_SE(3), V3_APB_SE_DIST },
	{ V3_DEV_TPB(0), V3_APB_TPB(0), V3_APB_TPB_BYTES },
	{ V3_DEV_TPB(1), V3_APB_TPB(1), V3_APB_TPB_BYTES },
	{ V3_DEV_TPB(2), V3_APB_TPB(2), V3_APB_TPB_BYTES },
	{ V3_DEV_TPB(3), V3_APB_TPB(3), V3_APB_TPB_BYTES },
	{ V3_DEV_TPB(4), V3_APB_TPB(4), V3_APB_TPB_BYTES },
	{ V3_DEV_TPB(5), V3_APB_TPB(5), V3_APB_TPB_BYTES },
	{ V3_DEV_TPB(6), V3_APB_TPB(6), V3_APB_TPB_BYTES },
	{ V3_DEV_TPB(7), V3_APB_TPB(7), V3_APB_TPB_BYTES },
	{ 0, 0, 0 },
};

#define V3_COMMON                                                                                  \
	.dies = V3_DIES, .cores = V3_CORES, .cores_joined = V3_CORES_PER_SENG,                     \
	.stacks = V3_HBM_STACKS, .topsps_per_core = V3_TOPSPS / V3_CORES,                          \
	.engines_per_core = V3_UDMA_PER_CORE, .host_engine = V3_UDMA_D2H_0,                        \
	.engines = V3_UDMA_ENGINES, .apb_bytes = V3_APB_BYTES, .misc_ram = V3_APB_MISC_RAM,        \
	.reset_reg = V3_APB_QEMU_RESET, .sdma_bytes = V3_APB_UDMA_BYTES - UDMA_SDMA,               \
	.topsp_bytes = V3_APB_TOPSP_BYTES, .parts = v3_parts, .host = V3_DEV_HOST,                 \
	.host_span = V3_DEV_HOST_SPAN, .neighbour = V3_DEV_NEIGHBOUR_0,                            \
	.neighbour_dist = V3_DEV_NEIGHBOUR_DIST, .hbm_span = V3_DEV_HBM_SPAN,                      \
	.dram_dist = V3_DRAM_HBM_DIST, .hbm = v3_hbm, .tpb = v3_tpb, .bar_tpb = v3_bar_tpb,        \
	.bar_topsp = v3_bar_topsp, .bar_core_nq = v3_bar_core_nq, .bar_topsp_nq = v3_bar_topsp_nq, \
	.bar_udma = v3_bar_udma, .bar_sdma = v3_bar_sdma, .bar_fis = v3_bar_fis

/* --- V2 --------------------------------------------------------------------------- */

static uint64_t v2_hbm(unsigned int stack)
{
	return V2_DEV_HBM(stack);
}

static uint64_t v2_tpb(unsigned int core)
{
	return V2_DEV_TPB(core);
}

static uint64_t v2_bar_tpb(unsigned int core)
{
	return V2_BAR_TPB(core);
}

static uint64_t v2_bar_topsp(unsigned int topsp)
{
	return V2_BAR_TOPSP(topsp);
}

static uint64_t v2_bar_core_nq(unsigned int core)
{
	return V2_BAR_APB + V2_APB_CORE_NOTIFY(core);
}

static uint64_t v2_bar_topsp_nq(unsigned int topsp)
{
	return V2_BAR_APB + V2_APB_TOPSP_NOTIFY(topsp);
}

static uint64_t v2_bar_udma(unsigned int engine)
{
	return V2_BAR_APB + V2_APB_UDMA(engine);
}

static uint64_t v2_bar_sdma(unsigned int engine)
{
	return V2_BAR_APB + V2_APB_SDMA(engine);
}

static const struct nm_apb_part v2_parts[] = {
	{ V2_DEV_APB, V2_BAR_APB, V2_APB_BYTES },
	{ V2_DEV_TPB(0), V2_BAR_TPB(0), V2_BAR_TPB_BYTES },
	{ V2_DEV_TPB(1), V2_BAR_TPB(1), V2_BAR_TPB_BYTES },
	{ V2_DEV_TOPSP_0, V2_BAR_TOPSP_0, V2_TOPSPS *V2_BAR_TOPSP_BYTES },
	{ 0, 0, 0 },
};

#define V2_COMMON                                                                                  \
	.arch = NEURON_ARCH_V2, .dies = V2_DIES, .cores = V2_CORES, .cores_joined = 1,             \
	.stacks = V2_HBM_STACKS, .topsps_per_core = V2_TOPSPS / V2_CORES,                          \
	.engines_per_core = V2_UDMA_PER_CORE, .host_engine = V2_UDMA_D2H,                          \
	.engines = V2_UDMA_ENGINES, .apb_bytes = V2_BAR_BYTES,                                     \
	.misc_ram = V2_BAR_APB + V2_APB_MISC_RAM, .reset_reg = V2_BAR_APB + V2_APB_QEMU_RESET,     \
	.sdma_bytes = V2_APB_SDMA_BYTES, .topsp_bytes = V2_BAR_TOPSP_BYTES, .parts = v2_parts,     \
	.host = V2_DEV_HOST, .host_span = V2_DEV_HOST_SPAN, .neighbour = V2_DEV_NEIGHBOUR_0,       \
	.neighbour_dist = V2_DEV_NEIGHBOUR_DIST, .hbm_span = V2_DEV_HBM_ACTIVE,                    \
	.dram_dist = V2_DRAM_HBM_DIST, .hbm = v2_hbm, .tpb = v2_tpb, .bar_tpb = v2_bar_tpb,        \
	.bar_topsp = v2_bar_topsp, .bar_core_nq = v2_bar_core_nq, .bar_topsp_nq = v2_bar_topsp_nq, \
	.bar_udma = v2_bar_udma, .bar_sdma = v2_bar_sdma

static const struct nm_chip chips[] = {
	{ .name = "trn2", .pci_device = NEURON_PCI_TRN2, .arch = NEURON_ARCH_V3, V3_COMMON },
	{ .name = "trn3", .pci_device = NEURON_PCI_TRN3_0, .arch = NEURON_ARCH_V4, V3_COMMON },
	{ .name = "trn1", .pci_device = NEURON_PCI_TRN1, V2_COMMON },
	{ .name = "inf2", .pci_device = NEURON_PCI_INF2, V2_COMMON },
};

const struct nm_chip *nm_chip_find(const char *name)
{
	for (unsigned int i = 0; i < sizeof(chips) / sizeof(chips[0]); i++)
		if (!strcmp(chips[i].name, name))
			return &chips[i];
	return NULL;
}

const struct nm_chip *nm_chip_default(void)
{
	return &chips[0];
}
