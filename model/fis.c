// SPDX-License-Identifier: Apache-2.0
/* Error trigger blocks of core engines: interrupt groups without sources of their own. */
#include "device.h"

#define FIS(acc, reg, rst) REG_(#reg, acc, reg, UDMA_IOFIC_GROUPS, UDMA_IOFIC_BYTES, rst, 0)

enum { FIS_CAUSE, FIS_CAUSE_SET, FIS_MASK, FIS_MASK_CLEAR, FIS_CONTROL, FIS_ABORT_MASK, FIS_REGS };

static const struct reg fis_regs[FIS_REGS] = {
	[FIS_CAUSE] = FIS(REG_RW, UDMA_IOFIC_CAUSE, 0),
	[FIS_CAUSE_SET] = FIS(REG_WO, UDMA_IOFIC_CAUSE_SET, 0),
	[FIS_MASK] = FIS(REG_RW, UDMA_IOFIC_MASK, UINT32_MAX),
	[FIS_MASK_CLEAR] = FIS(REG_WO, UDMA_IOFIC_MASK_CLEAR, 0),
	[FIS_CONTROL] = FIS(REG_RW, UDMA_IOFIC_CONTROL, 0),
	[FIS_ABORT_MASK] = FIS(REG_RW, UDMA_IOFIC_ABORT_MASK, UINT32_MAX),
};

static void fis_write(struct nm_device *dev, struct block *b, unsigned int reg, unsigned int i,
		      uint32_t old, uint32_t value)
{
	(void)dev;
	if (reg == FIS_CAUSE)
		*block_value(b, FIS_CAUSE, i) = old & value;
	else if (reg == FIS_CAUSE_SET)
		*block_value(b, FIS_CAUSE, i) |= value;
	else if (reg == FIS_MASK_CLEAR)
		*block_value(b, FIS_MASK, i) &= value;
}

int nm_fis_init(struct nm_device *dev, struct block *b)
{
	(void)dev;
	b->ops.write = fis_write;
	return nm_block_init(b, fis_regs, FIS_REGS);
}
