/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Address map of generation V2 (trn1, inf2): constants and constant expressions only.
 * Source: aws-neuron-driver v2/address_map.h, v2/notific.h, v2/sdma.h, v2/neuron_dhal_v2.c; what is
 * marked so is the execution interface.
 *
 * V2_DEV_*: device addresses, as engines, DMA and firmware use them.
 * V2_BAR_*: byte offsets in the register BAR (V2_BAR or V2_BAR_QEMU).
 * V2_APB_*: byte offsets in the APB part of that BAR, and of the same part as a device address.
 */
#ifndef NEURON_MAP_V2_H
#define NEURON_MAP_V2_H

#define V2_DIES               1
#define V2_CORES              2
#define V2_ENGINES_PER_CORE   5
#define V2_HBM_STACKS         2
#define V2_TOPSPS             6 /* three a core */
#define V2_SEMAPHORES         256 /* a core */
#define V2_EVENTS             256 /* a core */
#define V2_DESCS_PER_PACKET   64
#define V2_UDMA_PER_CORE      16
#define V2_UDMA_CORE_ENGINES  32 /* engines of cores: 0..31 */
#define V2_UDMA_HOST_ENGINES  2
#define V2_UDMA_ENGINES       34
#define V2_UDMA_D2H           32
#define V2_UDMA_H2D           33

/* Engine for copies on behalf of core c; queue 0 of it. */
#define V2_UDMA_HOST_ENGINE(c) ((c) == 0 ? V2_UDMA_D2H : V2_UDMA_H2D)

/* --- device addresses ------------------------------------------------------- */

#define V2_DEV_HBM_DIST      0x00001000000000ull
#define V2_DEV_HBM(n)        ((unsigned long long)(n) * V2_DEV_HBM_DIST)
#define V2_DEV_HBM_ACTIVE    0x00000400000000ull /* memory of a stack on silicon: 16 GiB */

/* Host memory: bus address below V2_DEV_HOST_SPAN, or'ed with the base. */
#define V2_DEV_HOST          0x00100000000000ull
#define V2_DEV_HOST_SPAN     0x00100000000000ull

/* Neighbour devices. Execution interface: V2 has such windows, but where is not public. */
#define V2_DEV_NEIGHBOUR_0   0x00200000000000ull
#define V2_DEV_NEIGHBOUR_DIST 0x00100000000000ull

#define V2_DEV_TPB_0         0x000fffc0000000ull
#define V2_DEV_TPB(n)        (V2_DEV_TPB_0 + (unsigned long long)(n) * V2_BAR_TPB_BYTES)
#define V2_DEV_TOPSP_0       0x000fffd0000000ull
#define V2_DEV_TOPSP(t)      (V2_DEV_TOPSP_0 + (unsigned long long)(t) * V2_BAR_TOPSP_BYTES)
#define V2_DEV_APB           0x000ffff0000000ull
#define V2_DEV_MISC_RAM      (V2_DEV_APB + V2_APB_MISC_RAM)

/* --- register BAR ------------------------------------------------------------- */

#define V2_BAR               0
#define V2_BAR_QEMU          2
#define V2_BAR_BYTES         0x40000000ull /* execution interface: what the parts below need */

/* Core c: SBUF, events and semaphores at the same offsets as V3 (V3_TPB_*). */
#define V2_BAR_TPB_0         0x00000000u
#define V2_BAR_TPB_BYTES     0x04000000u
#define V2_BAR_TPB(c)        (V2_BAR_TPB_0 + (unsigned int)(c) * V2_BAR_TPB_BYTES)
#define V2_BAR_TOPSP_0       0x10000000u
#define V2_BAR_TOPSP_BYTES   0x00400000u
#define V2_BAR_TOPSP(t)      (V2_BAR_TOPSP_0 + (unsigned int)(t) * V2_BAR_TOPSP_BYTES)
#define V2_BAR_APB           0x30000000u
#define V2_APB_BYTES         0x01000000u

/* --- APB ------------------------------------------------------------------------ */

#define V2_APB_SE_DIST       0x00700000u
#define V2_APB_SE(c)         ((unsigned int)(c) * V2_APB_SE_DIST)
#define V2_SE_SDMA           0x00400000u /* wrappers of its engines */
#define V2_SE_NOTIFY         0x00535000u /* notification queues of the core */
#define V2_SE_PE_SEQ         0x005b1000u /* tensor sequencer cluster as the host sees it */

/* UDMA engine e (neuron_udma.h) without its wrapper, which is a block of its own. */
#define V2_APB_UDMA_BYTES    0x00040000u
#define V2_APB_D2H           0x00600000u
#define V2_APB_H2D           0x00d00000u
#define V2_APB_UDMA_HOST(e)  ((e) == V2_UDMA_D2H ? V2_APB_D2H : V2_APB_H2D)
#define V2_APB_UDMA(e)       ((e) >= V2_UDMA_D2H ? V2_APB_UDMA_HOST(e) : \
			      V2_APB_SE((e) / V2_UDMA_PER_CORE) + \
			      (unsigned int)((e) % V2_UDMA_PER_CORE) * V2_APB_UDMA_BYTES)
#define V2_APB_SDMA_BYTES    0x00007000u
#define V2_APB_SDMA(e)       ((e) >= V2_UDMA_D2H ? V2_APB_UDMA_HOST(e) + V2_APB_UDMA_BYTES : \
			      V2_APB_SE((e) / V2_UDMA_PER_CORE) + V2_SE_SDMA + \
			      (unsigned int)((e) % V2_UDMA_PER_CORE) * V2_APB_SDMA_BYTES)

/* Activity counters of the tensor engine: as V3_PE_PERF, but a bus has 0x40 bytes. */
#define V2_APB_CORE_PE_SEQ(c) (V2_APB_SE(c) + V2_SE_PE_SEQ)
#define V2_PE_PERF_DIST      0x40u

/* Notification queues (neuron_notify.h) of core c and of TopSP t. */
#define V2_APB_CORE_NOTIFY(c) (V2_APB_SE(c) + V2_SE_NOTIFY)
#define V2_APB_IOFAB         0x00e00000u
#define V2_APB_TOPSP_DIST    0x00040000u
#define V2_APB_TOPSP_NOTIFY(t) (V2_APB_IOFAB + (unsigned int)(t) * V2_APB_TOPSP_DIST + 0x4000u)
#define V2_APB_MISC_RAM      (V2_APB_IOFAB + 0x001a0000u)

/* Reset of the virtual device (revision 255): written 1, reads 0 when the reset is over. The public
 * driver also asks the firmware, whose map (MBOX_RESET_MAP) has cores in bits 0..7 and TopSPs from
 * bit 8 on. */
#define V2_APB_QEMU_RESET    0x00647010u
#define V2_RESET_MAP_CORES   0x000000ffu
#define V2_RESET_MAP_TOPSP   0x00003f00u

/* --- DRAM BAR --------------------------------------------------------------------- */

/* Offset of stack n on silicon. On revision 255 the execution interface puts the stacks one after the
 * other, each of the BAR's size / 2. */
#define V2_DRAM_HBM_DIST     0x400000000ull
#define V2_DRAM_HBM(n)       ((unsigned long long)(n) * V2_DRAM_HBM_DIST)

#endif /* NEURON_MAP_V2_H */
