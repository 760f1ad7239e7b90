/* SPDX-License-Identifier: Apache-2.0 */
/* What the management core sees beside its memory (neuron_mgmt.h). */
#ifndef FW_MMIO_H
#define FW_MMIO_H

#include "neuron_mgmt.h"
#include "neuron_types.h"

static inline __u32 mmio_read(__u32 addr)
{
	return *(volatile __u32 *)addr;
}

static inline void mmio_write(__u32 addr, __u32 value)
{
	*(volatile __u32 *)addr = value;
}

static inline __u32 misc_read(__u32 reg)
{
	return mmio_read(MGMT_MISC + reg);
}

static inline void misc_write(__u32 reg, __u32 value)
{
	mmio_write(MGMT_MISC + reg, value);
}

static inline __u32 reg_read(__u32 reg)
{
	return mmio_read(MGMT_REGS + reg);
}

static inline void reg_write(__u32 reg, __u32 value)
{
	mmio_write(MGMT_REGS + reg, value);
}

/* Until a cause is pending. */
static inline void wait_for_cause(void)
{
	__asm__ volatile("wfi" ::: "memory");
}

#endif /* FW_MMIO_H */
