// SPDX-License-Identifier: GPL-2.0-only
/*
 * Images of the management firmware: the device boots one of its own; a newer
 * one in /lib/firmware is checked here, handed to the running firmware, which
 * checks it again, and started. Whatever is wrong with it, the device goes on
 * with what it has: firmware that hangs is ended by the device's watchdog, or
 * by us when it only fails to answer, and the device's own image started.
 * Locks: neuron_fw.lock throughout.
 */

#include <linux/bitfield.h>
#include <linux/cleanup.h>
#include <linux/crc32c.h>
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/firmware.h>
#include <linux/jiffies.h>
#include <linux/module.h>

#include "neuron_drv.h"
#include "neuron_fw.h"
#include "neuron_fw_load.h"
#include "neuron_mailbox.h"

/* From the order to start an image until it is ready, or the watchdog has started another. */
#define FW_START_MS	 10000
#define FW_START_POLL_MS 5

/* Requests that a new image may leave unanswered. */
#define FW_PROOF_TRIES 3

/**
 * neuron_fw_check_image - Is this firmware for a chip
 * @data: image, aligned to 4
 * @size: its bytes
 * @arch: NEURON_ARCH_* of the chip
 * @finding: out: value that is wrong, and what it should be
 *
 * Return: FWI_OK, or what is wrong.
 */
enum fwi_verdict neuron_fw_check_image(const void *data, size_t size, u32 arch,
				       struct fwi_finding *finding)
{
	struct fw_image header;
	u32 crc = 0;

	if (size >= FWI_BYTES_MIN && size <= FWI_BYTES_MAX) {
		memcpy(&header, data, sizeof(header));
		header.crc = 0;
		crc = crc32c(MBOX_CRC_INIT, &header, sizeof(header));
		crc = crc32c(crc, data + sizeof(header), size - sizeof(header)) ^ MBOX_CRC_XOR;
	}
	return fwi_check(data, size, crc, arch, finding);
}

static void neuron_fw_text(char *text, u32 version)
{
	snprintf(text, NEURON_FW_TEXT, "%u.%u.%u", FIELD_GET(FWI_VERSION_MAJOR, version),
		 FIELD_GET(FWI_VERSION_MINOR, version), FIELD_GET(FWI_VERSION_PATCH, version));
}

/**
 * neuron_fw_read_state - Ask the device what runs on its management core
 * @ndev: device, not unplugged
 * @state: out: zero when the firmware or the device does not say
 */
void neuron_fw_read_state(struct neuron_device *ndev, struct neuron_fw_state *state)
{
	u32 boot;

	*state = (struct neuron_fw_state){ .text = "unknown" };
	if (neuron_reg_read(&ndev->misc, MBOX_FW_INTERFACE) != MBOX_FW_INTERFACE_V1)
		return;
	boot = neuron_reg_read(&ndev->misc, MBOX_FW_BOOT);
	state->version = neuron_reg_read(&ndev->misc, MBOX_FW_VERSION);
	neuron_fw_text(state->text, state->version);
	state->starts = FIELD_GET(MBOX_FW_BOOT_COUNT, boot);
	state->cause = FIELD_GET(MBOX_FW_BOOT_CAUSE, boot);
	state->loaded = boot & MBOX_FW_BOOT_LOADED_IMAGE;
}

/**
 * neuron_fw_cause - Why firmware started
 * @cause: MBOX_FW_BOOT_*
 *
 * Return: a clause.
 */
const char *neuron_fw_cause(u8 cause)
{
	switch (cause) {
	case MBOX_FW_BOOT_POWER_ON:
		return "power-on";
	case MBOX_FW_BOOT_LOADED:
		return "the driver loaded it";
	case MBOX_FW_BOOT_WATCHDOG:
		return "the one before hung";
	case MBOX_FW_BOOT_FAULT:
		return "the one before failed";
	case MBOX_FW_BOOT_HOST:
		return "the one before did not answer";
	default:
		return "unknown";
	}
}

/**
 * neuron_fw_watch - Tell when firmware has started that we did not start
 * @ndev: device
 *
 * Context: Process, fw.lock held.
 */
void neuron_fw_watch(struct neuron_device *ndev)
{
	struct neuron_fw_state now;

	lockdep_assert_held(&ndev->fw.lock);
	neuron_fw_read_state(ndev, &now);
	if (!now.version || !ndev->fw.state.version || now.starts == ndev->fw.state.starts)
		return;
	drm_warn(&ndev->drm, "firmware %s started again: %s\n", now.text,
		 neuron_fw_cause(now.cause));
	ndev->fw.state = now;
}

/* Wait until firmware has started since @starts and is ready. 0, -ETIMEDOUT, -ENODEV. */
static int neuron_fw_wait_start(struct neuron_device *ndev, u16 starts)
{
	unsigned long end = jiffies + msecs_to_jiffies(FW_START_MS);
	struct neuron_fw_state *now = &ndev->fw.state;
	bool late;
	u32 status;

	for (;;) {
		late = time_after(jiffies, end);
		status = neuron_reg_read(&ndev->misc, MBOX_STATUS);
		if (status == U32_MAX)
			return -ENODEV;
		neuron_fw_read_state(ndev, now);
		if (now->starts != starts && !(status & MBOX_STATUS_NOT_READY))
			return 0;
		if (late)
			return -ETIMEDOUT;
		msleep(FW_START_POLL_MS);
	}
}

/**
 * neuron_fw_restart - Start the device's own image in place of one that does not answer
 * @ndev: device
 *
 * Context: Process, fw.lock held; sleeps.
 * Return: 0, -EOPNOTSUPP when the device can't, -ETIMEDOUT, -ENODEV.
 */
int neuron_fw_restart(struct neuron_device *ndev)
{
	struct neuron_fw_state before;
	int ret;

	lockdep_assert_held(&ndev->fw.lock);
	neuron_fw_read_state(ndev, &before);
	if (!before.version)
		return -EOPNOTSUPP;
	neuron_reg_write(&ndev->misc, MBOX_FW_RESTART, MBOX_FW_RESTART_KEY);
	ret = neuron_fw_wait_start(ndev, before.starts);
	if (ret)
		drm_err(&ndev->drm, "firmware %s does not answer, nor does its restart: %d\n",
			before.text, ret);
	else
		drm_warn(&ndev->drm, "firmware %s did not answer: restarted the device's own, %s\n",
			 before.text, ndev->fw.state.text);
	return ret;
}

/* Hand the image to the firmware and wait until it runs. As a request. */
static int neuron_fw_start_image(struct neuron_device *ndev)
{
	struct neuron_fw *fw = &ndev->fw;
	const struct mbox_load_firmware what = {
		.addr = cpu_to_le64(ndev->hal->host_base | fw->image_dma),
		.bytes = cpu_to_le32(fw->image_bytes),
	};
	struct mbox_load_verdict verdict;
	u16 starts = fw->state.starts;
	int ret;

	ret = neuron_fw_request_locked(ndev, MBOX_CMD_LOAD_FIRMWARE, &what, sizeof(what), &verdict,
				       sizeof(verdict), FW_PROOF_TRIES);
	return ret ?: neuron_fw_wait_start(ndev, starts);
}

/* Does the image that was just started serve requests? As a request. */
static int neuron_fw_prove(struct neuron_device *ndev)
{
	__le64 addr = cpu_to_le64(ndev->hal->misc_ram_addr + MBOX_API_VERSION);
	__le32 api_version;
	int ret;

	ret = neuron_fw_request_locked(ndev, MBOX_CMD_READ_REGS, &addr, sizeof(addr), &api_version,
				       sizeof(api_version), FW_PROOF_TRIES);
	if (!ret)
		ndev->fw.api_version = le32_to_cpu(api_version);
	neuron_fw_read_state(ndev, &ndev->fw.state);
	return ret;
}

/**
 * neuron_fw_update - Start the image that neuron_fw_find() found, if it is newer
 * @ndev: device whose firmware answers
 *
 * An image that does not work is given up, and the device's own runs. Nothing
 * is allocated here, so that a device can come back while memory is short.
 *
 * Context: Process; sleeps.
 * Return: 0, also then; -ETIMEDOUT, -EBADMSG, -EIO, -ENODEV when the device was left
 * without firmware that answers.
 */
int neuron_fw_update(struct neuron_device *ndev)
{
	struct neuron_fw *fw = &ndev->fw;
	struct neuron_fw_state before;
	u32 version;
	int ret;

	guard(mutex)(&fw->lock);
	neuron_fw_read_state(ndev, &fw->state);
	before = fw->state;
	if (!before.version || !fw->image)
		return 0;
	version = le32_to_cpu(fw->image->version);
	if (version <= before.version) {
		drm_dbg(&ndev->drm, "firmware %s runs, the image has %s\n", before.text,
			fw->image_text);
		return 0;
	}
	ret = neuron_fw_start_image(ndev);
	if (!ret && fw->state.loaded)
		ret = neuron_fw_prove(ndev);
	if (!ret && fw->state.loaded && fw->state.version == version) {
		drm_info(&ndev->drm, "firmware %s runs in place of %s\n", fw->image_text,
			 before.text);
		return 0;
	}
	fw->image = NULL;
	if (neuron_fw_is_mute(ret))
		neuron_fw_restart(ndev);
	drm_warn(&ndev->drm, "firmware %s does not work (%d): %s runs, since %s\n", fw->image_text,
		 ret, fw->state.text, neuron_fw_cause(fw->state.cause));
	return neuron_fw_prove(ndev);
}

/**
 * neuron_fw_keep - Keep an image for the device to read, if it is for it
 * @ndev: device, not started
 * @name: of the file, for messages
 * @file: its contents
 *
 * Return: 0, also when it is refused; -ENOMEM.
 */
int neuron_fw_keep(struct neuron_device *ndev, const char *name, const struct firmware *file)
{
	enum fwi_verdict verdict;
	struct fwi_finding f;
	void *image;

	verdict = neuron_fw_check_image(file->data, file->size, ndev->hal->arch, &f);
	if (verdict != FWI_OK) {
		drm_warn(&ndev->drm, "%s refused, %s 0x%x, not 0x%x: the firmware stays as it is\n",
			 name, fwi_verdict_text(verdict), f.value, f.want);
		return 0;
	}
	image = dmam_alloc_coherent(ndev->drm.dev, file->size, &ndev->fw.image_dma, GFP_KERNEL);
	if (!image)
		return -ENOMEM;
	memcpy(image, file->data, file->size);
	ndev->fw.image = image;
	ndev->fw.image_bytes = file->size;
	neuron_fw_text(ndev->fw.image_text, le32_to_cpu(ndev->fw.image->version));
	return 0;
}

/**
 * neuron_fw_find - Look for an image of the firmware in the file system
 * @ndev: device, not started
 *
 * A good one is kept, whether it is newer or not, as a reset of the function
 * brings back what the device came with.
 *
 * Context: Process; sleeps, reads files.
 * Return: 0, also when there is none or it is refused; -ENOMEM.
 */
int neuron_fw_find(struct neuron_device *ndev)
{
	const char *name = ndev->hal->fw_name;
	const struct firmware *file;
	int ret;

	if (!name)
		return 0;
	ret = firmware_request_nowarn(&file, name, ndev->drm.dev);
	if (ret) {
		if (ret != -ENOENT)
			drm_warn(&ndev->drm, "%s can't be read: %d\n", name, ret);
		return 0;
	}
	ret = neuron_fw_keep(ndev, name, file);
	release_firmware(file);
	return ret;
}

MODULE_FIRMWARE("neuron/trn1-mgmt.bin");
MODULE_FIRMWARE("neuron/trn2-mgmt.bin");
MODULE_FIRMWARE("neuron/trn3-mgmt.bin");
