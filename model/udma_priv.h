/* SPDX-License-Identifier: Apache-2.0 */
/* The register table of a UDMA engine (udma_regs.c), as the engine (udma.c) knows it. */
#ifndef NM_UDMA_PRIV_H
#define NM_UDMA_PRIV_H

#include "device.h"

/* Registers that the code looks at, and their places in the table. */
enum {
	R_STATE, /* + half */
	R_CHANGE = R_STATE + HALVES,
	R_ERR_MASK = R_CHANGE + HALVES,
	R_PREF_2 = R_ERR_MASK + HALVES,
	R_CFG_LEN = R_PREF_2 + HALVES,
	R_COMP_CFG_1C,
	R_Q_CFG, /* + half, from here on one value a queue */
	R_Q_STATUS = R_Q_CFG + HALVES,
	R_Q_BASE_LO = R_Q_STATUS + HALVES,
	R_Q_BASE_HI = R_Q_BASE_LO + HALVES,
	R_Q_LEN = R_Q_BASE_HI + HALVES,
	R_Q_HEAD = R_Q_LEN + HALVES,
	R_Q_TAIL_INC = R_Q_HEAD + HALVES,
	R_Q_TAIL = R_Q_TAIL_INC + HALVES,
	R_Q_CURRENT = R_Q_TAIL + HALVES,
	R_Q_COMP_LO = R_Q_CURRENT + HALVES,
	R_Q_COMP_HI = R_Q_COMP_LO + HALVES,
	R_Q_COMP_HEAD = R_Q_COMP_HI + HALVES,
	R_Q_COMP_CFG = R_Q_COMP_HEAD + HALVES,
	R_Q_SW_CTRL = R_Q_COMP_CFG + HALVES,
	R_CAUSE = R_Q_SW_CTRL + HALVES, /* primary, then secondary, then bus IOFICs */
	R_CAUSE_SET = R_CAUSE + 3,
	R_MASK = R_CAUSE_SET + 3,
	R_MASK_CLEAR = R_MASK + 3,
	R_IOFIC_STATUS = R_MASK_CLEAR + 3,
	R_CONTROL = R_IOFIC_STATUS + 3,
	R_ABORT_MASK = R_CONTROL + 3,
	R_AXI_Q_ERROR = R_ABORT_MASK + 3, /* a value a queue */
	R_PLAIN, /* registers that only keep their value */
};

enum iofic { PRIMARY, SECONDARY, BUS };

extern const struct reg nm_udma_regs[];
extern const size_t nm_udma_regs_count;

#endif /* NM_UDMA_PRIV_H */
