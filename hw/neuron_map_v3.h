/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Address map of generation V3 (trn2): constants and constant expressions only.
 * Source: aws-neuron-driver v3/address_map.h, v3/notific.h, v3/neuron_dhal_v3.c.
 *
 * V3_DEV_*: device addresses, as engines, DMA and firmware use them.
 * V3_APB_*: byte offsets in the APB BAR (V3_BAR_APB or V3_BAR_APB_QEMU).
 * V3_DRAM_*: byte offsets in the DRAM BAR.
 */
#ifndef NEURON_MAP_V3_H
#define NEURON_MAP_V3_H

/* Counts. A SEng is a pair of cores; a die has two of them. */
#define V3_DIES               2
#define V3_SENGS              4
#define V3_CORES              8
#define V3_CORES_PER_SENG     2
#define V3_CORES_PER_DIE      4
#define V3_ENGINES_PER_CORE   5
#define V3_HBM_STACKS         4
#define V3_TOPSPS             16 /* two a core have notification queues */
#define V3_TOPSPS_PER_DIE     8
#define V3_TOPSPS_MAPPED      20 /* ten a die have an address */
#define V3_SEMAPHORES         256 /* a core */
#define V3_EVENTS             256 /* a core */
#define V3_DESCS_PER_PACKET   64
#define V3_UDMA_PER_CORE      16
#define V3_UDMA_PER_SENG      32
#define V3_UDMA_CORE_ENGINES  128 /* engines of cores: 0..127 */
#define V3_UDMA_HOST_ENGINES  4
#define V3_UDMA_ENGINES       132
#define V3_UDMA_QUEUES        16 /* per engine */
#define V3_UDMA_COLLECTIVES_Q 15 /* last queue of each engine: collectives */

/* Host engines. */
#define V3_UDMA_D2H_0 128
#define V3_UDMA_H2D_0 129
#define V3_UDMA_D2H_1 130
#define V3_UDMA_H2D_1 131

/* Engine and queue for copies on behalf of core c: one host engine a SEng, one queue a core. */
#define V3_UDMA_HOST_ENGINE(c) (V3_UDMA_D2H_0 + (c) / V3_CORES_PER_SENG)
#define V3_UDMA_HOST_QUEUE(c)  ((c) % V3_CORES_PER_SENG)

/* --- device addresses ------------------------------------------------------- */

#define V3_DEV_DIE_DIST      0x00800000000000ull /* die 1 repeats die 0's map this far up */

#define V3_DEV_HBM_DIST      0x00004000000000ull /* stacks of one die */
#define V3_DEV_HBM(n)        ((unsigned long long)((n) / 2) * V3_DEV_DIE_DIST + \
			      (unsigned long long)((n) % 2) * V3_DEV_HBM_DIST)
#define V3_DEV_HBM_SPAN      0x00001000000000ull /* address space of a stack: 64 GiB */
#define V3_DEV_HBM_ACTIVE    0x00000600000000ull /* memory in it on silicon: 24 GiB */

/* Lowest 16 MiB of each stack belong to the management firmware. */
#define V3_HBM_FW_CARVEOUT   0x01000000

/* Host memory: physical (bus) address below V3_DEV_HOST_SPAN, or'ed with the base. */
#define V3_DEV_HOST          0x00400000000000ull
#define V3_DEV_HOST_SPAN     0x00400000000000ull

/* Neighbour devices. */
#define V3_DEV_NEIGHBOUR_0   0x10000000000000ull
#define V3_DEV_NEIGHBOUR_DIST 0x04000000000000ull

#define V3_DEV_TPB_0         0x00002000000000ull
#define V3_DEV_TPB_1         0x00003000000000ull
#define V3_DEV_TPB_2         0x00006000000000ull
#define V3_DEV_TPB_3         0x00007000000000ull
#define V3_DEV_TPB(n)        ((unsigned long long)((n) / 4) * V3_DEV_DIE_DIST + V3_DEV_TPB_0 + \
			      (unsigned long long)((n) / 2 % 2) * V3_DEV_HBM_DIST + \
			      (unsigned long long)((n) % 2) * (V3_DEV_TPB_1 - V3_DEV_TPB_0))
#define V3_DEV_TPB_SIZE      0x00000804000000ull

#define V3_DEV_APB_IO_0      0x00008000000000ull
#define V3_DEV_APB_IO_1      0x00808000000000ull
#define V3_DEV_APB_SE_0      0x00001000000000ull
#define V3_DEV_APB_SE_1      0x00005000000000ull
#define V3_DEV_APB_SE_2      0x00801000000000ull
#define V3_DEV_APB_SE_3      0x00805000000000ull
#define V3_DEV_MISC_RAM      0x00008006c84000ull

#define V3_DEV_TOPSP_0       0x00008280000000ull
#define V3_DEV_TOPSP_10      0x00808280000000ull
#define V3_DEV_TOPSP_DIST    0x00000040000000ull

/* --- APB BAR ---------------------------------------------------------------- */

#define V3_APB_BYTES         0x100000000ull

#define V3_APB_IO_0          0x00000000u
#define V3_APB_IO_1          0x40000000u
#define V3_APB_IO_DIST       0x40000000u
#define V3_APB_IO_BYTES      0x20000000u
#define V3_APB_SE_0          0x80000000u
#define V3_APB_SE_DIST       0x10000000u
#define V3_APB_SE(n)         (V3_APB_SE_0 + (unsigned int)(n) * V3_APB_SE_DIST)

/* In an IO block. */
#define V3_IO_SE_0           0x06000000u /* core registers of the die's SEng 0 */
#define V3_IO_SE_DIST        0x00400000u
#define V3_IO_TPB_DIST       0x00180000u
#define V3_IO_TPB_NOTIFY     0x00001000u
#define V3_IO_TPB_PE_SEQ     0x00141000u /* tensor sequencer cluster as the host sees it */
#define V3_IO_RESERVED2      0x06300000u
#define V3_IO_USER           0x06800000u
#define V3_IO_USER_TOPSP     0x00200000u /* notification queues of TopSPs */
#define V3_IO_USER_TOPSP_DIST 0x00040000u
#define V3_IO_USER_MISC_RAM  0x00484000u

#define V3_APB_MISC_RAM      (V3_APB_IO_0 + V3_IO_USER + V3_IO_USER_MISC_RAM)
#define V3_MBOX_REGISTERS_API 7 /* firmware from this API version on takes requests in registers */
#define V3_APB_MISC_RAM_BYTES 0x1000u /* execution interface: how much of it the model has */

/*
 * Reset of the virtual device (revision 255), v3/neuron_dhal_v3.c: write the reset map (0: all of
 * the device), done when it reads 0.
 */
#define V3_APB_QEMU_RESET    (V3_APB_IO_0 + V3_IO_RESERVED2 + 0x10u)

/* Notification queues (neuron_notify.h) of core c and of TopSP t. */
#define V3_APB_CORE_NOTIFY(c) ((unsigned int)((c) / V3_CORES_PER_DIE) * V3_APB_IO_DIST + \
			       V3_IO_SE_0 + (unsigned int)((c) / 2 % 2) * V3_IO_SE_DIST + \
			       (unsigned int)((c) % 2) * V3_IO_TPB_DIST + V3_IO_TPB_NOTIFY)
#define V3_APB_TOPSP_NOTIFY(t) ((unsigned int)((t) / V3_TOPSPS_PER_DIE) * V3_APB_IO_DIST + \
				V3_IO_USER + V3_IO_USER_TOPSP + \
				(unsigned int)((t) % V3_TOPSPS_PER_DIE) * V3_IO_USER_TOPSP_DIST)

/* Activity counters of the tensor engine of core c; 0x30 bytes a bus, from +0x100. */
#define V3_APB_CORE_PE_SEQ(c) (V3_APB_CORE_NOTIFY(c) - V3_IO_TPB_NOTIFY + V3_IO_TPB_PE_SEQ)
#define V3_PE_PERF           0x100u
#define V3_PE_PERF_DIST      0x30u
#define V3_PE_PERF_MATMUL    0x00u /* bus 4: cycles that multiplied */
#define V3_PE_PERF_LOAD      0x08u /* bus 8, fast loads bus 0: cycles that loaded weights */
#define V3_PE_PERF_IDLE      0x10u /* bus 4: idle cycles */

/* UDMA engine e (neuron_udma.h): registers of one engine, its SDMA wrapper included. */
#define V3_APB_UDMA_BYTES    0x00100000u
#define V3_APB_UDMA_SE_EVEN  0x02000000u /* first engine in an even SEng */
#define V3_APB_UDMA_SE_ODD   0x04000000u
#define V3_APB_UDMA_CORE(e)  (V3_APB_SE((e) / V3_UDMA_PER_SENG) + \
			      ((e) / V3_UDMA_PER_SENG % 2 ? V3_APB_UDMA_SE_ODD : \
			       V3_APB_UDMA_SE_EVEN) + \
			      (unsigned int)((e) % V3_UDMA_PER_SENG) * V3_APB_UDMA_BYTES)
#define V3_APB_UDMA_HOST(e)  ((unsigned int)(((e) - V3_UDMA_D2H_0) / 2) * V3_APB_IO_DIST + \
			      V3_IO_USER + \
			      (unsigned int)(((e) - V3_UDMA_D2H_0) % 2) * V3_APB_UDMA_BYTES)
#define V3_APB_UDMA(e)       ((e) < V3_UDMA_D2H_0 ? V3_APB_UDMA_CORE(e) : V3_APB_UDMA_HOST(e))

/* Error trigger block of core engine e: IOFIC groups (UDMA_IOFIC_*). Host engines have none. */
#define V3_APB_FIS_SE_EVEN   0x0c000000u
#define V3_APB_FIS_SE_ODD    0x0c400000u
#define V3_APB_FIS_BYTES     0x00020000u
#define V3_APB_FIS(e)        (V3_APB_SE((e) / V3_UDMA_PER_SENG) + \
			      ((e) / V3_UDMA_PER_SENG % 2 ? V3_APB_FIS_SE_ODD : \
			       V3_APB_FIS_SE_EVEN) + \
			      (unsigned int)((e) % V3_UDMA_PER_SENG) * V3_APB_FIS_BYTES)

/* Core c: SBUF, then events and semaphores, one 32-bit word each. */
#define V3_APB_TPB_0         0xd0000000u
#define V3_APB_TPB_BYTES     0x04000000u
#define V3_APB_TPB(c)        (V3_APB_TPB_0 + (unsigned int)(c) * V3_APB_TPB_BYTES)
#define V3_TPB_SBUF_BYTES    0x02000000u
#define V3_TPB_EVENTS        0x02700000u
#define V3_TPB_SEM_READ      0x02701000u
#define V3_TPB_SEM_SET       0x02701400u
#define V3_TPB_SEM_INC       0x02701800u
#define V3_TPB_SEM_DEC       0x02701c00u

#define V3_APB_TOPSP_0       0xf0000000u
#define V3_APB_TOPSP_10      0xf2800000u
#define V3_APB_TOPSP_BYTES   0x00400000u
#define V3_APB_TOPSP(t)      (V3_APB_TOPSP_0 + (unsigned int)(t) * V3_APB_TOPSP_BYTES)

/* --- DRAM BAR --------------------------------------------------------------- */

/* Offset of stack n on silicon; on revision 255 the distance is the BAR's size / 4. */
#define V3_DRAM_HBM_DIST     0x1000000000ull
#define V3_DRAM_HBM(n)       ((unsigned long long)(n) * V3_DRAM_HBM_DIST)

#endif /* NEURON_MAP_V3_H */
