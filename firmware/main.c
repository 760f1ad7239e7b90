// SPDX-License-Identifier: Apache-2.0
#include "firmware.h"
#include "neuron_mailbox.h"
#include "neuron_map_v4.h"

#define API_VERSION 5 /* of chips before V4: no requests in registers */

void fw_fault(__u32 cause, __u32 pc, __u32 value) __attribute__((noreturn));

/* From start.S. */
void fw_fault(__u32 cause, __u32 pc, __u32 value)
{
	log_info("firmware fault: cause %u at %x, value %x", cause, pc, value);
	reg_write(MGMT_BOOT_GO, MGMT_BOOT_FAULT);
	for (;;)
		; /* not reached; if it were, the watchdog would end it */
}

static void start(void)
{
	const __u32 boot = reg_read(MGMT_BOOT_INFO);

	misc_write(MBOX_API_VERSION, chip_is_v4() ? V4_MBOX_REGISTERS_API : API_VERSION);
	misc_write(MBOX_SERIAL_LO, reg_read(MGMT_CHIP_SERIAL_LO));
	misc_write(MBOX_SERIAL_HI, reg_read(MGMT_CHIP_SERIAL_HI));
	/* The host may have changed it since power-on. */
	if (HW_GET(MBOX_FW_BOOT_CAUSE, boot) == MBOX_FW_BOOT_POWER_ON)
		misc_write(MBOX_DEVICE_ID, reg_read(MGMT_CHIP_DEVICE_ID));
	misc_write(MBOX_RESET, 0);
	mailbox_start();
	sensors_start();
	misc_write(MBOX_FW_INTERFACE, MBOX_FW_INTERFACE_V1);
	misc_write(MBOX_FW_VERSION, reg_read(MGMT_BOOT_VERSION));
	misc_write(MBOX_FW_BOOT, boot);
	misc_write(MBOX_STATUS, 0);
}

int main(void)
{
	__u32 beats = 0, cause;

	start();
	for (;;) {
		cause = reg_read(MGMT_CAUSE);
		if (!cause) {
			wait_for_cause();
			continue;
		}
		reg_write(MGMT_CAUSE_CLEAR, cause);
		if (cause & MGMT_CAUSE_DOORBELL)
			mailbox_doorbell();
		if (cause & MGMT_CAUSE_ECC)
			sensors_count_ecc();
		if (cause & (MGMT_CAUSE_TIMER | MGMT_CAUSE_SAMPLE))
			sensors_sample();
		sensors_beat(++beats);
	}
}
