/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * UDMA: one engine is an M2S half (reads memory, "TX"), an S2M half (writes memory, "RX") and a
 * general block, 16 queues each way. A copy is one TX descriptor (source) paired in order with RX
 * descriptors (destination) of the same queue.
 * Source: aws-neuron-driver udma/udma_regs.h, udma/udma.h, udma/udma_m2m.c, udma/udma_iofic.c,
 * udma/udma_main.c, v3/sdma.h; what is marked so is the execution interface.
 */
#ifndef NEURON_UDMA_H
#define NEURON_UDMA_H

#include "neuron_types.h"

/* Blocks of one engine: byte offsets from V3_APB_UDMA(e). */
#define UDMA_M2S          0x00000
#define UDMA_S2M          0x20000
#define UDMA_GEN          0x38000
#define UDMA_GEN_EX       0x3c000
#define UDMA_SDMA         0x40000 /* SDMA wrapper */
#define UDMA_SDMA_NOTIFY  0x41000 /* its notification queues (neuron_notify.h) */

#define UDMA_REVISION     4
#define UDMA_QUEUES       16

/* --- both halves: byte offsets in UDMA_M2S or UDMA_S2M ------------------------ */

#define UDMA_AXI_DESC_RD_CFG_3 0x11c
#define   UDMA_AXI_DESC_RD_MAX_BURST   0x000000ffu /* descriptors */
#define   UDMA_AXI_DESC_RD_ALWAYS_BREAK 0x00010000u
#define UDMA_STATE        0x200 /* RO; each field one of UDMA_STATE_* */
#define   UDMA_STATE_COMP      0x00000003u /* completion control */
#define   UDMA_STATE_STREAM    0x00000030u
#define   UDMA_STATE_DATA      0x00000300u /* data read or write control */
#define   UDMA_STATE_PREFETCH  0x00003000u
#define   UDMA_STATE_IDLE        0u
#define   UDMA_STATE_NORMAL      1u
#define   UDMA_STATE_ABORT       2u
#define UDMA_CHANGE_STATE 0x204 /* WO */
#define   UDMA_CHANGE_NORMAL   0x00000001u
#define   UDMA_CHANGE_DISABLE  0x00000002u
#define   UDMA_CHANGE_ABORT    0x00000004u
#define UDMA_ERR_LOG_MASK 0x20c
#define   UDMA_M2S_ERR_RING_ID 0x00020000u
#define   UDMA_S2M_ERR_RING_ID 0x00000800u
#define UDMA_PREF_CFG_1   0x300
#define UDMA_PREF_CFG_2   0x304
#define   UDMA_PREF_MAX_DESCS  0x000000ffu /* descriptors in a packet */
#define   UDMA_PREF_FORCE_RR   0x00010000u
#define UDMA_PREF_CFG_3   0x308
#define   UDMA_PREF_MIN_BURST_BELOW 0x0000000fu
#define   UDMA_PREF_MIN_BURST_ABOVE 0x000000f0u
#define   UDMA_PREF_THRESHOLD  0x0000ff00u

/* --- M2S half only ------------------------------------------------------------ */

#define UDMA_M2S_AXI_COMP_WR_CFG_1 0x100
#define UDMA_M2S_AXI_COMP_WR_CFG_2 0x104
#define UDMA_M2S_AXI_DATA_RD_CFG_1 0x108
#define UDMA_M2S_AXI_DATA_RD_CFG_2 0x10c
#define UDMA_M2S_AXI_DESC_RD_CFG_1 0x110
#define UDMA_M2S_AXI_DESC_RD_CFG_2 0x114
#define UDMA_M2S_AXI_DATA_RD_CFG   0x118
#define UDMA_M2S_AXI_DESC_WR_CFG_1 0x120
#define UDMA_M2S_AXI_OSTAND        0x124
#define UDMA_M2S_CFG_LEN           0x254
#define   UDMA_M2S_CFG_LEN_MAX       0x000fffffu /* bytes of a packet */
#define   UDMA_M2S_CFG_LEN_64K       0x01000000u /* length 0 means 64 KiB */
#define UDMA_M2S_STREAM_CFG        0x258
#define   UDMA_M2S_STREAM_DISABLE    0x00000001u
#define   UDMA_M2S_STREAM_RD_MODE    0x00000002u
#define   UDMA_M2S_STREAM_RD_THRESHOLD 0x0007ff00u
#define UDMA_M2S_DATA_CFG          0x310
#define   UDMA_M2S_DATA_FIFO_DEPTH   0x00000fffu
#define   UDMA_M2S_DATA_MAX_PACKETS  0x01ff0000u /* reset value 0x100 */
#define UDMA_M2S_RLIMIT_MASK       0x3d4
#define UDMA_M2S_COMP_ACK          0x408
#define UDMA_M2S_DMA_VERSION       0x604 /* RO */

/* --- S2M half only ------------------------------------------------------------ */

#define UDMA_S2M_AXI_DATA_WR_CFG_1 0x100
#define UDMA_S2M_AXI_DATA_WR_CFG_2 0x104
#define UDMA_S2M_AXI_DESC_RD_CFG_4 0x108
#define UDMA_S2M_AXI_DESC_RD_CFG_5 0x10c
#define UDMA_S2M_AXI_COMP_WR_CFG_1 0x110
#define UDMA_S2M_AXI_COMP_WR_CFG_2 0x114
#define UDMA_S2M_AXI_DATA_WR_CFG   0x118
#define UDMA_S2M_AXI_DESC_WR_CFG_1 0x120
#define UDMA_S2M_AXI_OSTAND_RD     0x124
#define UDMA_S2M_AXI_OSTAND_WR     0x128
#define UDMA_S2M_AXI_OSTAND_WR_2   0x12c
#define UDMA_S2M_STREAM_CFG        0x250
#define   UDMA_S2M_STREAM_DISABLE    0x00000001u
#define   UDMA_S2M_STREAM_FLUSH      0x00000010u
#define   UDMA_S2M_STREAM_STOP_PREFETCH 0x00000100u
#define UDMA_S2M_PREF_CFG_4        0x30c
#define UDMA_S2M_COMP_CFG_1C       0x380
#define   UDMA_S2M_COMP_DESC_WORDS   0x0000000fu /* completion descriptor, 32-bit words */
#define   UDMA_S2M_COMP_Q_PROMOTION  0x00001000u
#define UDMA_S2M_COMP_ACK          0x38c

/* --- queues: UDMA_Q(q) + offset, in either half -------------------------------- */

#define UDMA_Q(q)         (0x1000 + (q) * 0x1000)
#define UDMA_Q_PREF_CFG   0x00 /* M2S only */
#define UDMA_Q_CFG        0x20
#define   UDMA_Q_CFG_PREFETCH 0x00010000u
#define   UDMA_Q_CFG_SCHEDULE 0x00020000u
#define   UDMA_Q_CFG_RESET    0x03000000u /* reset value */
#define UDMA_Q_STATUS     0x24 /* RO; bits: execution interface */
#define   UDMA_Q_STATUS_USED   0x00ffffffu /* descriptors rung and not yet done */
#define   UDMA_Q_STATUS_ERROR  0x40000000u /* stopped by an error; cleared by a queue reset */
#define   UDMA_Q_STATUS_IDLE   0x80000000u /* nothing rung is left to do */
#define UDMA_Q_BASE_LO    0x28
#define   UDMA_Q_BASE_LO_MASK  0xffffffc0u /* of a completion ring too */
#define UDMA_Q_BASE_HI    0x2c
#define UDMA_Q_LEN        0x30 /* descriptors */
#define UDMA_Q_HEAD       0x34 /* RO; next descriptor to prefetch */
#define UDMA_Q_TAIL_INC   0x38 /* WO doorbell: number of new descriptors */
#define UDMA_Q_TAIL       0x3c /* RO */
#define UDMA_Q_CURRENT    0x40 /* RO; next descriptor to complete */
#define UDMA_Q_COMP_LO    0x44
#define UDMA_Q_COMP_HI    0x48
#define UDMA_Q_COMP_HEAD  0x4c /* RO */
#define   UDMA_PTR_INDEX       0x00ffffffu /* fields of head, tail, current, completion head */
#define   UDMA_PTR_RING_ID     0xc0000000u
#define UDMA_M2S_Q_RLIMIT_MASK 0x74
#define   UDMA_M2S_Q_RLIMIT_RESET 0x7u /* reset value */
#define   UDMA_M2S_Q_RLIMIT_NO_DMB 0x4u /* 1: DMB bits of descriptors have no effect */
#define UDMA_M2S_Q_COMP_CFG    0xa0
#define UDMA_S2M_Q_COMP_CFG    0x54
#define   UDMA_Q_COMP_ENABLE   0x00000001u /* write the completion ring */
#define   UDMA_Q_COMP_NO_COALESCE 0x00000002u
#define UDMA_M2S_Q_SW_CTRL     0xb0
#define UDMA_S2M_Q_SW_CTRL     0x64
#define   UDMA_Q_SW_CTRL_RESET 0x00000100u /* all pointers to 0, ring id to 1 */

#define UDMA_RING_ALIGN       256 /* bytes: base and end of a ring */
#define UDMA_RING_MIN         32  /* descriptors */
#define UDMA_RING_MAX         ((1u << 24) - 16u)
#define UDMA_RING_STEP        16  /* descriptors in UDMA_RING_ALIGN */
#define UDMA_RING_ID_FIRST    1u
#define UDMA_RING_ID_MASK     3u  /* ring ids count modulo 4 */

/* --- general block: byte offsets in UDMA_GEN ----------------------------------- */

/* Interrupt controllers: primary groups A..D, secondary groups A (M2S), B (S2M) and C (parity). */
#define UDMA_GEN_IOFIC(g)     (0x0000 + (g) * UDMA_IOFIC_BYTES)
#define UDMA_GEN_IOFIC_2(g)   (0x2000 + (g) * UDMA_IOFIC_BYTES)
#define UDMA_IOFIC_BYTES      0x40
#define UDMA_IOFIC_GROUPS     4
#define UDMA_IOFIC_GROUPS_2   3
#define UDMA_IOFIC_A          0 /* summary; secondary: M2S errors */
#define UDMA_IOFIC_B          1 /* RX completion, bit = queue; secondary: S2M errors */
#define UDMA_IOFIC_C          2 /* TX completion, bit = queue */
#define UDMA_IOFIC_D          3 /* bits 8 to 10: secondary groups A to C */
#define   UDMA_IOFIC_D_M2S      0x00000100u
#define   UDMA_IOFIC_D_S2M      0x00000200u
#define UDMA_IOFIC_CAUSE      0x00 /* writing 0 to a bit clears it */
#define UDMA_IOFIC_CAUSE_SET  0x08 /* writing 1 to a bit sets it */
#define UDMA_IOFIC_MASK       0x10 /* 1: masked */
#define UDMA_IOFIC_MASK_CLEAR 0x18 /* writing 0 to a bit unmasks it */
#define UDMA_IOFIC_STATUS     0x20
#define UDMA_IOFIC_CONTROL    0x28
#define   UDMA_IOFIC_CLEAR_ON_READ 0x00000001u /* reading the cause clears it */
#define UDMA_IOFIC_ABORT_MASK 0x30 /* 1: this cause does not abort the engine */

/* Secondary group A: errors of the M2S half. */
#define UDMA_M2S_CAUSE_RING_ID   0x00020000u /* descriptor with another ring id than expected */
#define UDMA_M2S_CAUSE_LAST      0x00010000u
#define UDMA_M2S_CAUSE_FIRST     0x00008000u
#define UDMA_M2S_CAUSE_MAX_DESC  0x00004000u
#define UDMA_M2S_CAUSE_PKT_LEN   0x00002000u /* packet longer than UDMA_M2S_CFG_LEN_MAX */
#define UDMA_M2S_CAUSE_DESC_BUS  0x00000800u /* descriptor fetch got no answer */
#define UDMA_M2S_CAUSE_DATA_BUS  0x00000100u /* data read got no answer */
#define UDMA_M2S_CAUSE_COMP_BUS  0x00000020u

/* Secondary group B: errors of the S2M half. */
#define UDMA_S2M_CAUSE_PKT_LEN   0x01000000u /* destination shorter than the packet */
#define UDMA_S2M_CAUSE_COMP_BUS  0x00004000u
#define UDMA_S2M_CAUSE_RING_ID   0x00000800u
#define UDMA_S2M_CAUSE_DESC_BUS  0x00000200u
#define UDMA_S2M_CAUSE_DATA_BUS  0x00000002u

#define UDMA_GEN_AXI_TIMEOUT  0x2300
#define UDMA_GEN_AXI_ERR_TABLE(i) (0x2900 + (i) * 0x40) /* i = 0..6, 16 words each */
#define UDMA_GEN_AXI_ERR_TABLES 7
#define UDMA_GEN_AXI_ERR_ADDR(i) (0x2b00 + (i) * 8)
#define UDMA_GEN_AXI_ERR_DATA(i) (0x2b04 + (i) * 8)
#define UDMA_GEN_AXI_Q_STATE(q)  (0x2c00 + (q) * 12) /* request */
#define UDMA_GEN_AXI_Q_ERROR(q)  (0x2c04 + (q) * 12) /* RO, cleared by reading; bits: exec. interface */
#define   UDMA_GEN_AXI_Q_ERROR_M2S 0x00000001u /* an access of this half got no answer */
#define   UDMA_GEN_AXI_Q_ERROR_S2M 0x00000002u
#define UDMA_GEN_AXI_Q_CFG(q)    (0x2c08 + (q) * 12)
#define UDMA_GEN_IOFIC_M2S_DESC_RD 0x2d00
#define UDMA_GEN_IOFIC_M2S_DATA_RD 0x2e00
#define UDMA_GEN_IOFIC_M2S_COMP_WR 0x2f00
#define UDMA_GEN_IOFIC_S2M_DESC_RD 0x3000
#define UDMA_GEN_IOFIC_S2M_DATA_WR 0x3100
#define UDMA_GEN_IOFIC_S2M_COMP_WR 0x3200
#define UDMA_GEN_IOFIC_MSIX   0x3300
#define UDMA_GEN_SPARE_0      0x3460 /* bit 0: completion ring head reporting off */
#define UDMA_GEN_SPARE_1      0x3464
#define UDMA_GEN_SPARE_ONES_0 0x3468
#define UDMA_GEN_SPARE_ONES_1 0x346c

/* Address selectors of queue q in UDMA_GEN_EX: all ones lets bits 63:32 of descriptors through. */
#define UDMA_GEN_EX_TX_SEL(q) (0x400 + (q) * 0x40)
#define UDMA_GEN_EX_RX_SEL(q, i) (0x404 + (q) * 0x40 + (i) * 4) /* i = 0..2 */

/* --- SDMA wrapper: byte offsets in UDMA_SDMA ------------------------------------ */

#define SDMA_EVENT_ACCEL      0x000 /* start-up: 1 */
#define SDMA_ROB_CFG          0x01c /* read reorder buffer; start-up: 1 */
#define SDMA_WOB_CFG          0x020 /* write reorder buffer; start-up: 1 */
#define SDMA_BROADCAST_GROUP  0x100
#define SDMA_BROADCAST_LAST   0x104
#define SDMA_BEATS            0x800 /* beats outstanding; start-up: 0x26 */
#define   SDMA_BEATS_START      0x26

/* --- descriptors ------------------------------------------------------------------ */

struct udma_desc {
	__le32 ctrl; /* UDMA_DESC_*, length */
	__le32 meta; /* TX: UDMA_META_*; RX: second buffer low, unused */
	__le64 addr; /* device address */
};

#define UDMA_DESC_LEN        0x0000ffffu /* bytes; 0: 64 KiB with UDMA_M2S_CFG_LEN_64K */
#define UDMA_DESC_LEN_MAX    0x10000u
#define UDMA_DESC_RING_ID    0x03000000u
#define UDMA_DESC_FIRST      0x04000000u /* TX */
#define UDMA_DESC_LAST       0x08000000u /* TX */
#define UDMA_DESC_INT        0x10000000u /* interrupt on completion */
#define UDMA_DESC_DMB        0x40000000u /* TX: after all earlier transfers */

#define UDMA_META_LAST_BLOCK  0x00000001u
#define UDMA_META_FIRST_BLOCK 0x00000002u
#define UDMA_META_COPY_SOURCE 0x00080000u
#define UDMA_META_OP_TYPE     0x00700000u
#define UDMA_META_OP          0x03800000u
#define   UDMA_META_OP_COPY     2u
#define UDMA_META_WRITE_BARRIER 0x04000000u
/* Plain copy: the only operation of the public driver. */
#define UDMA_META_COPY (UDMA_META_LAST_BLOCK | UDMA_META_FIRST_BLOCK | UDMA_META_COPY_SOURCE | \
			0x01000000u)

/* Completion descriptor: first word; its size is UDMA_S2M_COMP_DESC_WORDS (usually 4 words). */
#define UDMA_CDESC_BYTES     16
#define UDMA_CDESC_LEN       0x0000ffffu /* execution interface */
#define UDMA_CDESC_RING_ID   0x03000000u /* execution interface */
#define UDMA_CDESC_FIRST     0x04000000u
#define UDMA_CDESC_LAST      0x08000000u

/* Completion marker of the public driver: four bytes copied to host memory after the data. */
#define UDMA_MARKER          0xabcdef01u

HW_ASSERT_SIZE(struct udma_desc, 16);

#endif /* NEURON_UDMA_H */
