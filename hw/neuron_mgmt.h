/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Execution interface: the management core, an RV32IMC_Zicsr hart whose firmware answers the
 * mailbox (neuron_mailbox.h). Which core the silicon has for that, and what it sees, is not public;
 * this map is ours. All registers are 32 bits wide and accessed as such.
 *
 * The core is asleep (WFI) unless a cause is pending. Its loader, part of the hardware, starts it
 * from an image (neuron_fw_image.h): the boot image after power-on, a watchdog reset, a fault or on
 * the host's demand; another one when the firmware asks, which gets it from the host.
 */
#ifndef NEURON_MGMT_H
#define NEURON_MGMT_H

/* --- memory ------------------------------------------------------------------- */

#define MGMT_RAM            0x10000000u
#define MGMT_RAM_BYTES      0x00100000u
#define MGMT_IMAGE_MAX      0x00040000u /* the lowest of it: a loaded image and what it needs */
#define MGMT_STAGE          0x10080000u /* the upper half: free for the firmware */
#define MGMT_STAGE_BYTES    0x00080000u

/* --- MISC RAM, at the offsets of neuron_mailbox.h; here all of it can be written ------------- */

#define MGMT_MISC           0x20000000u
#define MGMT_MISC_BYTES     0x00001000u

/* --- registers of its own ------------------------------------------------------- */

#define MGMT_REGS           0x20010000u
#define MGMT_REGS_BYTES     0x00001000u

/* What the core is wanted for. Any pending one raises its external interrupt. */
#define MGMT_CAUSE          0x000 /* RO: pending */
#define MGMT_CAUSE_CLEAR    0x004 /* WO: ones are no longer pending */
#define   MGMT_CAUSE_DOORBELL 0x00000001u /* MBOX_TRIGGER */
#define   MGMT_CAUSE_TIMER    0x00000002u /* MGMT_TIME has reached MGMT_TIMER */
#define   MGMT_CAUSE_ECC      0x00000004u /* a counter of MGMT_ECC_* or MGMT_HBM_REPAIR moved */
#define   MGMT_CAUSE_SAMPLE   0x00000008u /* the host looked at a sensor */

/* Device time, ns; it stands still while the cores are idle. Reading LO latches HI. */
#define MGMT_TIME_LO        0x010
#define MGMT_TIME_HI        0x014
#define MGMT_TIMER_LO       0x018 /* LO, then HI, which arms; all ones: never */
#define MGMT_TIMER_HI       0x01c

/* The chip, RO. */
#define MGMT_CHIP_ARCH      0x020 /* NEURON_ARCH_* */
#define MGMT_CHIP_STACKS    0x024 /* of HBM */
#define MGMT_CHIP_DIES      0x028
#define MGMT_CHIP_DEVICE_ID 0x02c
#define MGMT_CHIP_SERIAL_LO 0x030
#define MGMT_CHIP_SERIAL_HI 0x034

/* Copies between device addresses and RAM; done when the write of GO is. A byte that is written out
 * is seen after all that was written before. */
#define MGMT_COPY_ADDR_LO   0x040 /* device address */
#define MGMT_COPY_ADDR_HI   0x044
#define MGMT_COPY_RAM       0x048 /* address in RAM */
#define MGMT_COPY_BYTES     0x04c
#define MGMT_COPY_GO        0x050 /* WO */
#define   MGMT_COPY_IN        1 /* memory (HBM, the host's) to RAM */
#define   MGMT_COPY_OUT       2 /* RAM to memory */
#define   MGMT_COPY_REGISTER  3 /* one register of the device to RAM; BYTES is not looked at */
#define MGMT_COPY_STATUS    0x054 /* RO */
#define   MGMT_COPY_DONE      0
#define   MGMT_COPY_NO_ANSWER 1 /* some of the device addresses, or not in RAM; nothing was moved */

/* Reset of what a map names (MBOX_RESET_MAP_*; 0: the device but for this core and MISC RAM); done
 * when the write of GO is. */
#define MGMT_RESET_MAP      0x060
#define MGMT_RESET_GO       0x064 /* WO */
#define MGMT_RESET_MAP_HI   0x068 /* with a map other than 0: MBOX_RESET_MAP_HOST_UDMA */

/* Errors that memory m has had, m as in MBOX_ECC_*: HBM stacks, then SRAM; they stop at 65535. RO. */
#define MGMT_ECC_CORRECTED(m)   (0x080 + (m) * 4)
#define MGMT_ECC_UNCORRECTED(m) (0x0a0 + (m) * 4)
#define MGMT_ECC_SRAM           4
#define MGMT_ECC_MEMORIES       5
#define MGMT_HBM_REPAIR     0x0b4 /* RO: MBOX_HBM_REPAIR_*; of all stacks the worst */

/* Sensors of a die. */
#define MGMT_SAMPLE         0x0c0 /* WO: measure now */
#define MGMT_POWER(die)     (0x0c4 + (die) * 4) /* RO: basis points of the maximum */
#define MGMT_TEMPERATURE(die) (0x0cc + (die) * 4) /* RO: tenths of a degree Celsius */

/* Starting images. Registers are as the last write left them; GO does not come back unless the
 * image is refused. */
#define MGMT_BOOT_IMAGE     0x0e0 /* address of a whole image in RAM */
#define MGMT_BOOT_BYTES     0x0e4
#define MGMT_BOOT_GO        0x0e8 /* WO */
#define   MGMT_BOOT_LOAD      1 /* the image there, if it is well formed and for this chip */
#define   MGMT_BOOT_FAULT     2 /* the boot image: the firmware can't go on */
#define MGMT_BOOT_INFO      0x0ec /* RO: as MBOX_FW_BOOT */
#define MGMT_BOOT_VERSION   0x0f0 /* RO: FWI_VERSION() of the image that runs */

/* Messages to whoever runs the device, a character at a time, ended by a level. */
#define MGMT_LOG            0x0f4 /* WO */
#define MGMT_LOG_END        0x0f8 /* WO */
#define   MGMT_LOG_INFO       0
/* >= 1: a mistake of the host, by kind; one of a kind is shown. */

/*
 * Cycles (instructions) that the core may be awake without a break, else it is reset and the boot
 * image started. Asleep with a cause pending that does not wake it is as good as awake.
 */
#define MGMT_WATCHDOG_CYCLES 16000000u

#endif /* NEURON_MGMT_H */
