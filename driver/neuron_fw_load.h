/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef __NEURON_FW_LOAD_H__
#define __NEURON_FW_LOAD_H__

#include <linux/types.h>

#include "neuron_fw_image.h"

struct firmware;
struct neuron_device;

/* Bytes of a version as text, as in "1.0.0". */
#define NEURON_FW_TEXT 16

/**
 * struct neuron_fw_state - What runs on the management core, and since when
 */
struct neuron_fw_state {
	/** @version: FWI_VERSION(); 0: a firmware that does not say. */
	u32 version;
	/** @text: The same for people. */
	char text[NEURON_FW_TEXT];
	/** @starts: Starts of any firmware since power-on, modulo 65536. */
	u16 starts;
	/** @cause: MBOX_FW_BOOT_* of the last start. */
	u8 cause;
	/** @loaded: It is not the device's own image. */
	bool loaded;
};

enum fwi_verdict neuron_fw_check_image(const void *data, size_t size, u32 arch,
				       struct fwi_finding *finding);
void neuron_fw_read_state(struct neuron_device *ndev, struct neuron_fw_state *state);
const char *neuron_fw_cause(u8 cause);
void neuron_fw_watch(struct neuron_device *ndev);
int neuron_fw_restart(struct neuron_device *ndev);
int neuron_fw_update(struct neuron_device *ndev);
int neuron_fw_keep(struct neuron_device *ndev, const char *name, const struct firmware *file);
int neuron_fw_find(struct neuron_device *ndev);

#endif /* __NEURON_FW_LOAD_H__ */
