// SPDX-License-Identifier: Apache-2.0
/* What the host reads in MISC RAM: error counters, power, temperature. */
#include "firmware.h"
#include "neuron_mailbox.h"

#define PERIOD_NS 10000000u /* of device time, between two samples */

static __u32 samples;

void sensors_count_ecc(void)
{
	const __u32 stacks = reg_read(MGMT_CHIP_STACKS);

	for (__u32 m = 0; m < MGMT_ECC_MEMORIES; m++) {
		const __u32 counts =
			HW_SET(MBOX_ECC_CORRECTED, reg_read(MGMT_ECC_CORRECTED(m))) |
			HW_SET(MBOX_ECC_UNCORRECTED, reg_read(MGMT_ECC_UNCORRECTED(m)));

		if (m == MGMT_ECC_SRAM)
			misc_write(MBOX_ECC_SRAM, counts);
		else if (m < stacks)
			misc_write(MBOX_ECC_HBM(m), counts);
	}
	misc_write(MBOX_HBM_REPAIR, reg_read(MGMT_HBM_REPAIR) & MBOX_HBM_REPAIR_MASK);
}

void sensors_sample(void)
{
	const __u32 dies = reg_read(MGMT_CHIP_DIES);
	__u64 next;

	reg_write(MGMT_SAMPLE, 1);
	samples++;
	for (__u32 die = 0; die < dies; die++) {
		misc_write(MBOX_POWER(die),
			   HW_SET(MBOX_POWER_SAMPLE, samples) | reg_read(MGMT_POWER(die)));
		misc_write(MBOX_TEMPERATURE(die), HW_SET(MBOX_TEMPERATURE_SAMPLE, samples) |
							  reg_read(MGMT_TEMPERATURE(die)));
	}
	next = reg_read(MGMT_TIME_LO);
	next |= (__u64)reg_read(MGMT_TIME_HI) << 32;
	next += PERIOD_NS;
	reg_write(MGMT_TIMER_LO, (__u32)next);
	reg_write(MGMT_TIMER_HI, (__u32)(next >> 32));
}

void sensors_start(void)
{
	sensors_count_ecc();
	sensors_sample();
}
