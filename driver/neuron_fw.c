// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mailbox of the management firmware, as in aws-neuron-driver neuron_fw_io.c
 * and neuron_reset.c: the request's address and a trigger go down, the firmware
 * writes the response and, last of all, its sequence number. Newer firmware
 * takes and answers requests in registers, and clears the trigger last of all.
 */

#include <linux/cleanup.h>
#include <linux/crc32c.h>
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/jiffies.h>

#include <drm/drm_managed.h>

#include "neuron_drv.h"
#include "neuron_fw.h"
#include "neuron_mailbox.h"

#define FW_BUF_BYTES (2 * PAGE_SIZE)

/* Registers in one request of ours: fits the stack. */
#define FW_READ_REGS 16

/**
 * neuron_fw_crc - Checksum of a request
 * @request: the request with its crc field zero
 * @size: bytes
 *
 * Return: CRC-32C with initial value and final exclusive or all ones.
 */
u32 neuron_fw_crc(const void *request, size_t size)
{
	return crc32c(MBOX_CRC_INIT, request, size) ^ MBOX_CRC_XOR;
}

/* Wait for the response to @sequence. 0, -ETIMEDOUT, -ENODEV. */
static int neuron_fw_wait(struct neuron_device *ndev, const struct mbox_response *response,
			  u8 sequence)
{
	unsigned long end = jiffies + msecs_to_jiffies(ndev->fw.timeout_ms);

	while (READ_ONCE(response->sequence) != sequence) {
		if (time_after(jiffies, end)) {
			if (READ_ONCE(response->sequence) == sequence)
				break;
			return neuron_reg_read(&ndev->misc, MBOX_STATUS) == U32_MAX ? -ENODEV :
										      -ETIMEDOUT;
		}
		usleep_range(20, 100);
	}
	dma_rmb();
	return 0;
}

/* Bytes that a response with so many of payload has. */
static size_t neuron_fw_answer_size(u16 answer_bytes, bool registers)
{
	return answer_bytes +
	       (registers ? sizeof(struct mbox_register_response) : sizeof(struct mbox_response));
}

/*
 * What a response of @bytes says: 0, -EIO no. A response has no checksum; one
 * that the firmware does not write is -EBADMSG.
 */
static int neuron_fw_judge(struct neuron_device *ndev, const struct mbox_response *response,
			   size_t bytes)
{
	switch (response->error) {
	case MBOX_OK:
		return le16_to_cpu(response->size) == bytes ? 0 : -EBADMSG;
	case MBOX_FAILED:
	case MBOX_UNKNOWN_COMMAND:
		drm_err_ratelimited(&ndev->drm, "firmware refused request %u: error %u, %u bytes\n",
				    response->sequence, response->error,
				    le16_to_cpu(response->size));
		return -EIO;
	default:
		return -EBADMSG;
	}
}

/* Send the request in the buffer, have the response there. As neuron_fw_wait(). */
static int neuron_fw_by_memory(struct neuron_device *ndev)
{
	struct neuron_fw *fw = &ndev->fw;
	u64 addr = ndev->hal->host_base | fw->dma;

	dma_wmb();
	neuron_reg_write(&ndev->misc, MBOX_REQUEST_LO, lower_32_bits(addr));
	neuron_reg_write(&ndev->misc, MBOX_REQUEST_HI, upper_32_bits(addr));
	neuron_reg_write(&ndev->misc, MBOX_RESPONSE_LO, lower_32_bits(addr + PAGE_SIZE));
	neuron_reg_write(&ndev->misc, MBOX_RESPONSE_HI, upper_32_bits(addr + PAGE_SIZE));
	neuron_reg_write(&ndev->misc, MBOX_TRIGGER, 1);
	return neuron_fw_wait(ndev, fw->buf + PAGE_SIZE, fw->sequence);
}

/* Wait until the firmware is done with registers. 0, -ETIMEDOUT, -ENODEV. */
static int neuron_fw_wait_trigger(struct neuron_device *ndev)
{
	unsigned long end = jiffies + msecs_to_jiffies(ndev->fw.timeout_ms);
	u32 trigger;
	bool late;

	for (;;) {
		late = time_after(jiffies, end);
		trigger = neuron_reg_read(&ndev->misc, MBOX_TRIGGER);
		if (!trigger)
			return 0;
		if (trigger == U32_MAX)
			return -ENODEV;
		if (late)
			return -ETIMEDOUT;
		usleep_range(20, 100);
	}
}

/*
 * The same in registers. -EBADMSG: the answer is to something else. Its
 * checksum is not looked at: how silicon computes it is not public.
 */
static int neuron_fw_by_registers(struct neuron_device *ndev, u16 bytes, u16 answer_bytes)
{
	struct mbox_response *response = ndev->fw.buf + PAGE_SIZE;
	__le32 *answer = (__le32 *)(response + 1);
	const __le32 *request = ndev->fw.buf;
	unsigned int i;
	int ret;

	for (i = 0; i < DIV_ROUND_UP(bytes, sizeof(u32)); i++)
		neuron_reg_write(&ndev->misc, MBOX_DATA + i * sizeof(u32),
				 le32_to_cpu(request[2 + i]));
	neuron_reg_write(&ndev->misc, MBOX_REQUEST_HI, le32_to_cpu(request[0]));
	neuron_reg_write(&ndev->misc, MBOX_REQUEST_LO, le32_to_cpu(request[1]));
	neuron_reg_write(&ndev->misc, MBOX_RESPONSE_HI, 0);
	neuron_reg_write(&ndev->misc, MBOX_RESPONSE_LO, 0);
	neuron_reg_write(&ndev->misc, MBOX_ACK, 1);
	neuron_reg_write(&ndev->misc, MBOX_TRIGGER, 1);
	ret = neuron_fw_wait_trigger(ndev);
	if (ret)
		return ret;
	*(__le32 *)response = cpu_to_le32(neuron_reg_read(&ndev->misc, MBOX_REQUEST_HI));
	for (i = 0; i < DIV_ROUND_UP(answer_bytes, sizeof(u32)); i++)
		answer[i] = cpu_to_le32(neuron_reg_read(&ndev->misc, MBOX_DATA + i * sizeof(u32)));
	return response->sequence == ndev->fw.sequence ? 0 : -EBADMSG;
}

/* Does the firmware that runs take such a request in registers? It may have been replaced. */
static bool neuron_fw_in_registers(struct neuron_device *ndev, u16 bytes, u16 answer_bytes)
{
	u32 version;

	if (!ndev->hal->registers_api || max(bytes, answer_bytes) > MBOX_DATA_BYTES)
		return false;
	version = neuron_reg_read(&ndev->misc, MBOX_API_VERSION);
	return version >= ndev->hal->registers_api && version != MBOX_NOT_READY &&
	       version != U32_MAX;
}

/* Ask once. As neuron_fw_by_memory(), neuron_fw_by_registers() and neuron_fw_judge(). */
static int neuron_fw_ask(struct neuron_device *ndev, u8 command, const void *payload, u16 bytes,
			 u16 answer_bytes, bool registers)
{
	struct neuron_fw *fw = &ndev->fw;
	struct mbox_response *response = fw->buf + PAGE_SIZE;
	struct mbox_request *request = fw->buf;
	u16 size = sizeof(*request) + bytes;
	int ret;

	fw->sequence = fw->sequence == U8_MAX ? 1 : fw->sequence + 1;
	request->sequence = fw->sequence;
	request->command = command;
	request->size = cpu_to_le16(size);
	request->crc = 0;
	memcpy(request + 1, payload, bytes);
	request->crc = cpu_to_le32(neuron_fw_crc(request, size));
	WRITE_ONCE(response->sequence, 0);
	ret = registers ? neuron_fw_by_registers(ndev, bytes, answer_bytes) :
			  neuron_fw_by_memory(ndev);
	return ret   ?:
		       neuron_fw_judge(ndev, response,
				       neuron_fw_answer_size(answer_bytes, registers));
}

static void neuron_fw_warn(struct neuron_device *ndev, int error, size_t bytes, unsigned int try,
			   unsigned int tries)
{
	const struct mbox_response *response = ndev->fw.buf + PAGE_SIZE;
	char text[96];

	if (error == -ETIMEDOUT)
		snprintf(text, sizeof(text), "no answer in %u ms but sequence %u",
			 ndev->fw.timeout_ms, READ_ONCE(response->sequence));
	else
		snprintf(text, sizeof(text),
			 "answer %u of error %u, %u bytes makes no sense, want %u, 0, %zu",
			 response->sequence, response->error, le16_to_cpu(response->size),
			 ndev->fw.sequence, bytes);
	drm_warn(&ndev->drm, "firmware request %u: %s, try %u of %u\n", ndev->fw.sequence, text,
		 try, tries);
}

/**
 * neuron_fw_request_locked - Ask the firmware
 * @ndev: device
 * @command: MBOX_CMD_*
 * @payload: what goes with it
 * @bytes: of @payload
 * @answer: out: payload of the answer
 * @answer_bytes: of @answer, what the firmware must send
 * @tries: how often to ask, at most one second each; not 0
 *
 * Context: Process, fw.lock held; sleeps.
 * Return: 0, -EINVAL, -ETIMEDOUT no answer, -EBADMSG no sense, -EIO refused, -ENODEV.
 */
int neuron_fw_request_locked(struct neuron_device *ndev, u8 command, const void *payload, u16 bytes,
			     void *answer, u16 answer_bytes, unsigned int tries)
{
	const struct mbox_response *response = ndev->fw.buf + PAGE_SIZE;
	bool registers = neuron_fw_in_registers(ndev, bytes, answer_bytes);
	size_t want = neuron_fw_answer_size(answer_bytes, registers);
	unsigned int try;
	int ret;

	if (sizeof(struct mbox_request) + bytes > PAGE_SIZE || want > PAGE_SIZE)
		return -EINVAL;

	lockdep_assert_held(&ndev->fw.lock);
	for (try = 0; try < tries; try++) {
		ret = neuron_fw_ask(ndev, command, payload, bytes, answer_bytes, registers);
		if (!neuron_fw_is_mute(ret))
			break;
		neuron_fw_warn(ndev, ret, want, try + 1, tries);
	}
	if (try)
		neuron_fw_watch(ndev);
	if (!ret)
		memcpy(answer, response + 1, answer_bytes);
	return ret;
}

static int neuron_fw_request(struct neuron_device *ndev, u8 command, const void *payload, u16 bytes,
			     void *answer, u16 answer_bytes)
{
	int ret;

	guard(mutex)(&ndev->fw.lock);
	ret = neuron_fw_request_locked(ndev, command, payload, bytes, answer, answer_bytes,
				       MBOX_TRIES);
	if (neuron_fw_is_mute(ret) && !neuron_fw_restart(ndev))
		ret = neuron_fw_request_locked(ndev, command, payload, bytes, answer, answer_bytes,
					       MBOX_TRIES);
	return ret;
}

/**
 * neuron_fw_read_regs - Read registers through the firmware
 * @ndev: device
 * @addrs: device addresses
 * @values: out: values
 * @count: how many, at most 16
 *
 * Firmware that is mute for MBOX_TRIES seconds is started anew, and asked as often again.
 *
 * Context: Process; sleeps.
 * Return: 0, -EINVAL, -ETIMEDOUT no answer, -EBADMSG no sense, -EIO refused, -ENODEV.
 */
int neuron_fw_read_regs(struct neuron_device *ndev, const u64 *addrs, u32 *values, u32 count)
{
	__le64 request[FW_READ_REGS];
	__le32 answer[FW_READ_REGS];
	u32 i;
	int ret;

	if (!count || count > FW_READ_REGS)
		return -EINVAL;
	for (i = 0; i < count; i++)
		request[i] = cpu_to_le64(addrs[i]);
	ret = neuron_fw_request(ndev, MBOX_CMD_READ_REGS, request, count * sizeof(*request), answer,
				count * sizeof(*answer));
	if (ret)
		return ret;
	for (i = 0; i < count; i++)
		values[i] = le32_to_cpu(answer[i]);
	return 0;
}

/* Poll until the masked register is @want. 0, -ETIMEDOUT, -ENODEV. */
static int neuron_fw_poll(struct neuron_device *ndev, u32 reg, u32 mask, u32 want,
			  unsigned int timeout_ms)
{
	unsigned long end = jiffies + msecs_to_jiffies(timeout_ms);
	u32 value;

	for (;;) {
		value = neuron_reg_read(&ndev->misc, reg);
		if (value != U32_MAX && value != MBOX_NOT_READY && (value & mask) == want)
			return 0;
		if (time_after(jiffies, end))
			return value == U32_MAX ? -ENODEV : -ETIMEDOUT;
		msleep(MBOX_RESET_POLL_MS);
	}
}

/**
 * neuron_fw_reset - Reset through the firmware
 * @ndev: device
 * @type: MBOX_RESET_DEVICE or MBOX_RESET_CORES
 * @map: MBOX_RESET_MAP_* of what to reset
 *
 * Context: Process; sleeps.
 * Return: 0, -ETIMEDOUT when the firmware did not take it or did not get ready, -ENODEV.
 */
int neuron_fw_reset(struct neuron_device *ndev, u32 type, u32 map)
{
	u32 retry_ms = type == MBOX_RESET_DEVICE ? MBOX_RESET_DEVICE_RETRY_MS :
						   MBOX_RESET_CORES_RETRY_MS;
	u32 waited = 0;
	int ret;

	guard(mutex)(&ndev->fw.lock);
	do {
		neuron_reg_write(&ndev->misc, MBOX_RESET_MAP, map);
		neuron_reg_write(&ndev->misc, MBOX_RESET, type);
		neuron_reg_write(&ndev->misc, MBOX_TRIGGER, 1);
		ret = neuron_fw_poll(ndev, MBOX_RESET, U32_MAX, 0, retry_ms);
		if (!ret)
			ret = neuron_fw_poll(ndev, MBOX_STATUS, MBOX_STATUS_NOT_READY, 0, retry_ms);
		waited += retry_ms;
	} while (ret == -ETIMEDOUT && waited < MBOX_RESET_MAX_MS);
	return ret;
}

/**
 * neuron_fw_init - Take the mailbox's memory
 * @ndev: device
 *
 * Return: 0, -ENOMEM.
 */
int neuron_fw_init(struct neuron_device *ndev)
{
	struct neuron_fw *fw = &ndev->fw;
	int ret;

	fw->timeout_ms = MBOX_TIMEOUT_MS;
	ret = drmm_mutex_init(&ndev->drm, &fw->lock);
	if (ret)
		return ret;
	fw->buf = dmam_alloc_coherent(ndev->drm.dev, FW_BUF_BYTES, &fw->dma, GFP_KERNEL);
	return fw->buf ? 0 : -ENOMEM;
}

/**
 * neuron_fw_start - Talk to the firmware for the first time since a reset
 * @ndev: device, reset
 *
 * Reads serial number and API version, the latter through a request, which
 * proves that the firmware answers and, unless it is asked in registers, sees
 * host memory.
 *
 * Return: 0, -ETIMEDOUT, -EBADMSG, -EIO, -ENODEV.
 */
int neuron_fw_start(struct neuron_device *ndev)
{
	u64 addr = ndev->hal->misc_ram_addr + MBOX_API_VERSION;
	struct neuron_fw *fw = &ndev->fw;
	u32 direct;
	int ret;

	ret = neuron_fw_read_regs(ndev, &addr, &fw->api_version, 1);
	if (ret) {
		drm_err(&ndev->drm,
			"firmware does not serve the driver: %d; reset the function, bind again\n",
			ret);
		return ret;
	}
	direct = neuron_reg_read(&ndev->misc, MBOX_API_VERSION);
	if (direct != fw->api_version)
		drm_warn(&ndev->drm, "API version is 0x%x in the register, 0x%x by request\n",
			 direct, fw->api_version);

	ndev->serial = (u64)neuron_reg_read(&ndev->misc, MBOX_SERIAL_HI) << 32 |
		       neuron_reg_read(&ndev->misc, MBOX_SERIAL_LO);
	return 0;
}
