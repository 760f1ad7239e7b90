/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The management firmware: one loop (main.c) that wakes for a cause and calls the file that owns it.
 * No heap, no recursion, no interrupts; loops are bounded by what was checked before. The same
 * sources make the image of every chip.
 */
#ifndef FW_FIRMWARE_H
#define FW_FIRMWARE_H

#include <stdbool.h>
#include <stddef.h>

#include "mmio.h"
#include "neuron_pci.h"

/* Has health registers and requests in registers. */
static inline bool chip_is_v4(void)
{
	return reg_read(MGMT_CHIP_ARCH) == NEURON_ARCH_V4;
}

/* --- lib.c -------------------------------------------------------------------- */

void *memcpy(void *restrict to, const void *restrict from, size_t n);
void *memset(void *to, int value, size_t n);

/* --- bus.c: device addresses. False: no answer, nothing was moved. ------------- */

bool bus_read(__u64 addr, void *to, __u32 bytes);
bool bus_write(__u64 addr, const void *from, __u32 bytes);
bool bus_read_register(__u64 addr, __u32 *value);

/* --- log.c: %u and %x of a __u32, %X of a __u64 --------------------------------- */

/* Mistakes of the host by kind; the number keeps one report a kind. */
enum {
	GUEST_READ_ADDRESS = 1,
	GUEST_READ_SIZE,
	GUEST_METRICS_SIZE,
	GUEST_REQUEST_ADDRESS,
	GUEST_REQUEST_HEADER,
	GUEST_PAYLOAD_ADDRESS,
	GUEST_REQUEST_CRC,
	GUEST_RESPONSE_ADDRESS,
	GUEST_RESET_TYPE,
	GUEST_LOAD,
};

void log_info(const char *format, ...);
void log_guest(unsigned int kind, const char *format, ...);

/* --- mailbox.c ----------------------------------------------------------------- */

/* Forgets what the host asked of the firmware before. */
void mailbox_start(void);
void mailbox_doorbell(void);

/* --- image.c ------------------------------------------------------------------- */

struct mbox_load_firmware;
struct mbox_load_verdict;

/* Fetches and checks an image; the verdict is filled in. True: image_start() may start it. */
bool image_load(const struct mbox_load_firmware *what, struct mbox_load_verdict *verdict);
/* Starts what was loaded last, if it was good; does not come back then. */
void image_start(void);

/* --- sensors.c ------------------------------------------------------------------ */

void sensors_start(void);
void sensors_sample(void);
void sensors_count_ecc(void);
void sensors_beat(__u32 beats);

#endif /* FW_FIRMWARE_H */
