// SPDX-License-Identifier: Apache-2.0
/* What the host reads in MISC RAM: error counters, power, temperature. */
#include "firmware.h"
#include "neuron_mailbox.h"

#define PERIOD_NS 10000000u /* of device time, between two samples */

static __u32 samples;

static __u32 at_most(__u32 value, __u32 limit)
{
	return value < limit ? value : limit;
}

/* Uncorrected errors of HBM as the API version has them. Once a repair has failed, none is repairable. */
static __u32 hbm_errors(__u32 errors, __u32 repair)
{
	if (!chip_is_v4())
		return HW_SET(MBOX_ECC_UNCORRECTED, errors);
	if (repair == MBOX_HBM_REPAIR_FAILED)
		return HW_SET(MBOX_ECC_UNREPAIRABLE,
			      at_most(errors, HW_GET(MBOX_ECC_UNREPAIRABLE, ~0u)));
	return at_most(errors, MBOX_ECC_REPAIRABLE);
}

void sensors_count_ecc(void)
{
	const __u32 stacks = reg_read(MGMT_CHIP_STACKS);
	const __u32 repair = reg_read(MGMT_HBM_REPAIR) & MBOX_HBM_REPAIR_MASK;
	__u32 health = repair == MBOX_HBM_REPAIR_FAILED ? MBOX_HEALTH_HBM : 0;

	for (__u32 m = 0; m < MGMT_ECC_MEMORIES; m++) {
		const __u32 corrected = HW_SET(MBOX_ECC_CORRECTED, reg_read(MGMT_ECC_CORRECTED(m)));
		const __u32 errors = reg_read(MGMT_ECC_UNCORRECTED(m));

		if (m == MGMT_ECC_SRAM) {
			misc_write(MBOX_ECC_SRAM, corrected | errors);
			health |= errors ? MBOX_HEALTH_SRAM : 0;
		} else if (m < stacks) {
			misc_write(MBOX_ECC_HBM(m), corrected | hbm_errors(errors, repair));
		}
	}
	misc_write(MBOX_HBM_REPAIR, repair);
	if (chip_is_v4())
		misc_write(MBOX_HEALTH, health);
}

void sensors_beat(__u32 beats)
{
	misc_write(MBOX_FW_HEARTBEAT, beats);
	if (chip_is_v4())
		misc_write(MBOX_HEALTH_SEQUENCE, HW_SET(MBOX_HEALTH_HEARTBEAT, beats));
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
