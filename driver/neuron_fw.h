/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef __NEURON_FW_H__
#define __NEURON_FW_H__

#include <linux/errno.h>
#include <linux/mutex.h>
#include <linux/types.h>

#include "neuron_fw_load.h"

struct neuron_device;

/**
 * struct neuron_fw - Mailbox of the management firmware
 */
struct neuron_fw {
	/** @lock: One request at a time. Protects all members. */
	struct mutex lock;
	/** @buf: Request, then response; one page each. */
	void *buf;
	/** @dma: Bus address of @buf. */
	dma_addr_t dma;
	/** @sequence: Of the last request, 1..255. */
	u8 sequence;
	/** @timeout_ms: Longest wait for one answer; less than MBOX_TIMEOUT_MS in tests. */
	unsigned int timeout_ms;
	/** @api_version: Of the firmware. */
	u32 api_version;
	/** @state: What runs on the management core, when last looked at. */
	struct neuron_fw_state state;
	/** @image: Image that the driver found, for the device to read; NULL: none. */
	const struct fw_image *image;
	/** @image_text: Version of @image. */
	char image_text[NEURON_FW_TEXT];
	/** @image_dma: Bus address of @image. */
	dma_addr_t image_dma;
	/** @image_bytes: Its size. */
	u32 image_bytes;
};

/* Nothing of use came back: ask again, in the end start the firmware anew. */
static inline bool neuron_fw_is_mute(int ret)
{
	return ret == -ETIMEDOUT || ret == -EBADMSG;
}

int neuron_fw_init(struct neuron_device *ndev);
int neuron_fw_start(struct neuron_device *ndev);
int neuron_fw_read_regs(struct neuron_device *ndev, const u64 *addrs, u32 *values, u32 count);
int neuron_fw_request_locked(struct neuron_device *ndev, u8 command, const void *payload, u16 bytes,
			     void *answer, u16 answer_bytes, unsigned int tries);
int neuron_fw_reset(struct neuron_device *ndev, u32 type, u32 map);
u32 neuron_fw_crc(const void *request, size_t size);

#endif /* __NEURON_FW_H__ */
