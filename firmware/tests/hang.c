// SPDX-License-Identifier: Apache-2.0
/*
 * Firmware that hangs, in the way that FW_HANG names, for tests of those who have to notice:
 * boot: before it is ready; doorbell: when the host asks something, with the cause pending; deaf: it
 * takes what it is asked and goes back to sleep; asleep: it sleeps and nothing wakes it; fault: it
 * executes what is no instruction when asked.
 */
#include "firmware.h"
#include "neuron_mailbox.h"

#define HANG_BOOT     1
#define HANG_DOORBELL 2
#define HANG_DEAF     3
#define HANG_ASLEEP   4
#define HANG_FAULT    5

void fw_fault(__u32 cause, __u32 pc, __u32 value) __attribute__((noreturn));

void fw_fault(__u32 cause, __u32 pc, __u32 value)
{
	log_info("firmware fault: cause %u at %x, value %x", cause, pc, value);
	reg_write(MGMT_BOOT_GO, MGMT_BOOT_FAULT);
	for (;;)
		;
}

static void hang(void)
{
	switch (FW_HANG) {
	case HANG_DEAF:
		reg_write(MGMT_CAUSE_CLEAR, reg_read(MGMT_CAUSE));
		break;
	case HANG_FAULT:
		__asm__ volatile(".4byte 0");
		break;
	default:
		for (;;)
			;
	}
}

int main(void)
{
	if (FW_HANG == HANG_BOOT)
		hang();
	if (FW_HANG == HANG_ASLEEP)
		__asm__ volatile("csrw mie, zero");
	misc_write(MBOX_FW_VERSION, reg_read(MGMT_BOOT_VERSION));
	misc_write(MBOX_FW_BOOT, reg_read(MGMT_BOOT_INFO));
	misc_write(MBOX_STATUS, 0);
	for (;;) {
		wait_for_cause();
		hang();
	}
}
