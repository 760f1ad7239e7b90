/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chips that the model can be: all that differs between them, as constant tables. Everything
 * else asks here and includes no address map.
 */
#ifndef NM_CHIP_H
#define NM_CHIP_H

#include <stdbool.h>
#include <stdint.h>

#include "neuron_map_v2.h"
#include "neuron_map_v3.h"
#include "neuron_map_v4.h"
#include "neuron_pci.h"

/* Most of each over all chips. */
#define NM_CORES      V3_CORES
#define NM_STACKS     V3_HBM_STACKS
#define NM_TOPSPS     V3_TOPSPS
#define NM_ENGINES    V3_UDMA_ENGINES /* UDMA */
#define NM_SEMAPHORES V3_SEMAPHORES
#define NM_EVENTS     V3_EVENTS

/* Registers that device addresses reach: where they lie in the register BAR. */
struct nm_apb_part {
	uint64_t addr;
	uint32_t offset;
	uint32_t size;
};

struct nm_chip {
	const char *name; /* as neuron-model --chip takes it */
	uint16_t pci_device;
	uint8_t arch; /* NEURON_ARCH_* */

	uint8_t dies;
	uint8_t cores;
	uint8_t cores_joined; /* of a group that runtimes may offer as one */
	uint8_t stacks;
	uint8_t topsps_per_core;
	uint8_t engines_per_core; /* UDMA */
	unsigned int host_engine; /* number of the first UDMA engine of the host's */
	unsigned int engines; /* UDMA, the host's included */

	uint64_t apb_bytes; /* register BAR */
	uint32_t misc_ram; /* offsets in it */
	uint32_t reset_reg;
	uint32_t sdma_bytes; /* wrapper of a UDMA engine */
	uint32_t topsp_bytes;
	const struct nm_apb_part *parts; /* ends with size 0 */

	uint64_t host; /* device addresses */
	uint64_t host_span;
	uint64_t neighbour;
	uint64_t neighbour_dist;
	uint64_t hbm_span; /* most of a stack */
	uint64_t dram_dist; /* stacks in the DRAM BAR of silicon */

	uint64_t (*hbm)(unsigned int stack);
	uint64_t (*tpb)(unsigned int core);
	/* Offsets in the register BAR. */
	uint64_t (*bar_tpb)(unsigned int core);
	uint64_t (*bar_topsp)(unsigned int topsp);
	uint64_t (*bar_core_nq)(unsigned int core);
	uint64_t (*bar_topsp_nq)(unsigned int topsp);
	uint64_t (*bar_udma)(unsigned int engine);
	uint64_t (*bar_sdma)(unsigned int engine);
	uint64_t (*bar_fis)(unsigned int engine); /* NULL: none */
};

/* By name, or NULL. */
const struct nm_chip *nm_chip_find(const char *name);
/* The default, trn2. */
const struct nm_chip *nm_chip_default(void);

#endif /* NM_CHIP_H */
