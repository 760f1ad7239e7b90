// SPDX-License-Identifier: Apache-2.0
/*
 * MISC RAM, the mailbox and the two ways to ask for a reset. The management firmware's part is done
 * here by the device thread.
 */
#include <string.h>

#include "neuron_crc32c.h"
#include "device.h"

#define RO(off, n, step) REG_(#off, REG_RO, off, n, step, 0, 0)
#define RW(off, n)	 REG_(#off, REG_RW, off, n, 4, 0, 0)
#define WO(off)		 REG_(#off, REG_WO, off, 0, 0, 0, 0)

#define API_VERSION 5 /* the last one with the plain register-read protocol */

enum {
	R_API_VERSION,
	R_DEVICE_ID,
	R_SERIAL_LO,
	R_SERIAL_HI,
	R_ECC_SRAM,
	R_ECC_HBM,
	R_POWER,
	R_HBM_REPAIR,
	R_RUNTIME_0,
	R_METRICS,
	R_NEIGHBOURS,
	R_POD,
	R_RUNTIME_1,
	R_RESET_MAP,
	R_RESET,
	R_REQUEST_HI,
	R_REQUEST_LO,
	R_RESPONSE_HI,
	R_RESPONSE_LO,
	R_TRIGGER,
	R_STATUS,
	N_REGS,
};

static const struct reg misc_regs[N_REGS] = {
	[R_API_VERSION] = RO(MBOX_API_VERSION, 0, 0),
	[R_DEVICE_ID] = RW(MBOX_DEVICE_ID, 0),
	[R_SERIAL_LO] = RO(MBOX_SERIAL_LO, 0, 0),
	[R_SERIAL_HI] = RO(MBOX_SERIAL_HI, 0, 0),
	[R_ECC_SRAM] = RO(MBOX_ECC_SRAM, 0, 0),
	[R_ECC_HBM] = RO(MBOX_ECC_HBM(0), V3_HBM_STACKS, 4),
	[R_POWER] = RO(MBOX_POWER(0), V3_DIES, 4),
	[R_HBM_REPAIR] = RO(MBOX_HBM_REPAIR, 0, 0),
	[R_RUNTIME_0] = RW(MBOX_RUNTIME_0, MBOX_RUNTIME_0_BYTES / 4),
	[R_METRICS] = RW(MBOX_METRICS, MBOX_METRICS_BYTES / 4),
	[R_NEIGHBOURS] = RO(MBOX_LEFT_SERIAL_HI, 4, 4),
	[R_POD] = RW(MBOX_POD_STATUS, 3),
	[R_RUNTIME_1] = RW(MBOX_RUNTIME_1, MBOX_RUNTIME_1_BYTES / 4),
	[R_RESET_MAP] = RW(MBOX_RESET_MAP, 0),
	[R_RESET] = RW(MBOX_RESET, 0),
	[R_REQUEST_HI] = RW(MBOX_REQUEST_HI, 0),
	[R_REQUEST_LO] = RW(MBOX_REQUEST_LO, 0),
	[R_RESPONSE_HI] = RW(MBOX_RESPONSE_HI, 0),
	[R_RESPONSE_LO] = RW(MBOX_RESPONSE_LO, 0),
	[R_TRIGGER] = WO(MBOX_TRIGGER),
	[R_STATUS] = RO(MBOX_STATUS, 0, 0),
};

static uint32_t misc(struct nm_device *dev, unsigned int reg)
{
	return *block_value(dev->misc_ram, reg, 0);
}

static void misc_write(struct nm_device *dev, struct block *b, unsigned int reg, unsigned int i,
		       uint32_t old, uint32_t value)
{
	(void)b;
	(void)i;
	(void)old;
	(void)value;
	if (reg != R_TRIGGER)
		return;
	dev->mailbox_triggered = true;
	pthread_cond_signal(&dev->work);
}

void nm_mailbox_reset(struct nm_device *dev)
{
	struct block *b = dev->misc_ram;

	nm_block_reset(b);
	*block_value(b, R_API_VERSION, 0) = API_VERSION;
	*block_value(b, R_DEVICE_ID, 0) = dev->config.device_id;
	*block_value(b, R_SERIAL_LO, 0) = (uint32_t)dev->config.serial;
	*block_value(b, R_SERIAL_HI, 0) = (uint32_t)(dev->config.serial >> 32);
	dev->mailbox_triggered = false;
	dev->reset_asked = false;
	nm_inject_show_ecc(dev);
}

void nm_mailbox_set_ecc(struct nm_device *dev, unsigned int memory, uint32_t value)
{
	if (memory == NM_ECC_SRAM)
		*block_value(dev->misc_ram, R_ECC_SRAM, 0) = value;
	else
		*block_value(dev->misc_ram, R_ECC_HBM, memory) = value;
}

int nm_mailbox_init(struct nm_device *dev, struct block *b)
{
	int ret;

	dev->misc_ram = b;
	b->ops.write = misc_write;
	ret = nm_block_init(b, misc_regs, N_REGS);
	if (!ret)
		nm_mailbox_reset(dev);
	return ret;
}

/* --- the reset register of revision 255 --------------------------------------- */

static const struct reg reset_regs[] = {
	REG_("V3_APB_QEMU_RESET", REG_RW, 0, 0, 0, 0, 0),
};

static uint32_t reset_read(struct nm_device *dev, struct block *b, unsigned int reg, unsigned int i,
			   uint32_t value)
{
	(void)b;
	(void)reg;
	(void)i;
	/* A reset of the whole device has map 0 and yet must not read as done. */
	return dev->reset_asked || dev->resetting ? (value ? value : 1) : 0;
}

static void reset_write(struct nm_device *dev, struct block *b, unsigned int reg, unsigned int i,
			uint32_t old, uint32_t value)
{
	(void)b;
	(void)reg;
	(void)i;
	(void)old;
	dev->reset_asked = true;
	dev->reset_map = value;
	pthread_cond_signal(&dev->work);
}

int nm_reset_init(struct nm_device *dev, struct block *b)
{
	dev->reset_reg = b;
	b->ops.read = reset_read;
	b->ops.write = reset_write;
	return nm_block_init(b, reset_regs, 1);
}

/* --- requests ----------------------------------------------------------------- */

static bool crc_ok(const struct mbox_request *req, const uint8_t *payload, size_t n)
{
	struct mbox_request zeroed = *req;
	uint32_t crc;

	zeroed.crc = 0;
	crc = hw_crc32c(0, &zeroed, sizeof(zeroed));
	return hw_crc32c(crc, payload, n) == req->crc;
}

/* Blocks of registers that firmware can read: device address of each part of the APB BAR. */
static const struct {
	uint64_t dev;
	uint32_t apb;
	uint32_t size;
} apb_parts[] = {
	{ V3_DEV_APB_IO_0, V3_APB_IO_0, V3_APB_IO_BYTES },
	{ V3_DEV_APB_IO_1, V3_APB_IO_1, V3_APB_IO_BYTES },
	{ V3_DEV_APB_SE_0, V3_APB_SE(0), V3_APB_SE_DIST },
	{ V3_DEV_APB_SE_1, V3_APB_SE(1), V3_APB_SE_DIST },
	{ V3_DEV_APB_SE_2, V3_APB_SE(2), V3_APB_SE_DIST },
	{ V3_DEV_APB_SE_3, V3_APB_SE(3), V3_APB_SE_DIST },
};

static bool read_register(struct nm_device *dev, uint64_t addr, uint32_t *value)
{
	for (size_t i = 0; i < sizeof(apb_parts) / sizeof(apb_parts[0]); i++) {
		uint64_t at = addr - apb_parts[i].dev;

		if (at >= apb_parts[i].size || addr % 4)
			continue;
		*value = (uint32_t)nm_bar_read(dev, V3_BAR_APB_QEMU, apb_parts[i].apb + at, 4);
		return true;
	}
	nm_guest_error(dev, GUEST_KEY(GUEST_MAILBOX, 1, 0),
		       "mailbox: read of 0x%llx, which is no register", (unsigned long long)addr);
	return false;
}

struct reply {
	struct mbox_response head;
	uint32_t values[MBOX_READ_REGS_MAX];
};

static void cmd_read_regs(struct nm_device *dev, const uint8_t *payload, size_t n,
			  struct reply *reply)
{
	size_t count = n / sizeof(uint64_t);

	reply->head.error = MBOX_FAILED;
	if (!count || n % sizeof(uint64_t) || count > MBOX_READ_REGS_MAX) {
		nm_guest_error(dev, GUEST_KEY(GUEST_MAILBOX, 2, 0),
			       "mailbox: register read with %zu bytes of addresses: want 8 to %d "
			       "in steps of 8",
			       n, MBOX_READ_REGS_MAX * 8);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		uint64_t addr;

		memcpy(&addr, payload + i * sizeof(addr), sizeof(addr));
		if (!read_register(dev, addr, &reply->values[i]))
			return;
	}
	reply->head.error = MBOX_OK;
	reply->head.size = (uint16_t)(sizeof(reply->head) + count * sizeof(uint32_t));
}

static void cmd_post_metrics(struct nm_device *dev, const uint8_t *payload, size_t n,
			     struct reply *reply)
{
	(void)payload; /* would go to the service provider */
	if (n > MBOX_METRICS_BYTES) {
		nm_guest_error(dev, GUEST_KEY(GUEST_MAILBOX, 3, 0),
			       "mailbox: %zu bytes of metrics, limit %d", n, MBOX_METRICS_BYTES);
		reply->head.error = MBOX_FAILED;
	}
}

static const struct {
	uint8_t code;
	void (*run)(struct nm_device *dev, const uint8_t *payload, size_t n, struct reply *reply);
} commands[] = {
	{ MBOX_CMD_READ_REGS, cmd_read_regs },
	{ MBOX_CMD_POST_METRICS, cmd_post_metrics },
};

static void execute(struct nm_device *dev, const struct mbox_request *req, const uint8_t *payload,
		    struct reply *reply)
{
	const size_t n = req->size - sizeof(*req);

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (commands[i].code != req->command)
			continue;
		commands[i].run(dev, payload, n, reply);
		return;
	}
	reply->head.error = MBOX_UNKNOWN_COMMAND;
}

/* A damaged request gets no answer: its sequence can't be trusted. The driver tries again. */
static bool fetch(struct nm_device *dev, uint64_t addr, struct mbox_request *req, uint8_t *payload)
{
	if (nm_bus_read(dev, addr, req, sizeof(*req))) {
		nm_guest_error(dev, GUEST_KEY(GUEST_MAILBOX, 4, 0),
			       "mailbox: request at 0x%llx does not answer",
			       (unsigned long long)addr);
		return false;
	}
	if (req->size < sizeof(*req) || !req->sequence) {
		nm_guest_error(dev, GUEST_KEY(GUEST_MAILBOX, 5, 0),
			       "mailbox: request of %u bytes with sequence %u: want at least %zu "
			       "and 1..255",
			       req->size, req->sequence, sizeof(*req));
		return false;
	}
	if (nm_bus_read(dev, addr + sizeof(*req), payload, req->size - sizeof(*req))) {
		nm_guest_error(dev, GUEST_KEY(GUEST_MAILBOX, 6, 0),
			       "mailbox: payload of request at 0x%llx, %u bytes, does not answer",
			       (unsigned long long)addr, req->size);
		return false;
	}
	if (!crc_ok(req, payload, req->size - sizeof(*req))) {
		nm_guest_error(dev, GUEST_KEY(GUEST_MAILBOX, 7, 0),
			       "mailbox: CRC 0x%x of request %u is wrong", req->crc, req->sequence);
		return false;
	}
	return true;
}

static void respond(struct nm_device *dev, uint64_t addr, struct reply *reply)
{
	/* Everything, then the sequence that the driver polls for. */
	int ret = nm_bus_write(dev, addr + 1, (uint8_t *)reply + 1, reply->head.size - 1u);

	if (!ret)
		ret = nm_bus_write(dev, addr, &reply->head.sequence, 1);
	if (ret)
		nm_guest_error(dev, GUEST_KEY(GUEST_MAILBOX, 8, 0),
			       "mailbox: response at 0x%llx does not answer",
			       (unsigned long long)addr);
}

static void request(struct nm_device *dev, uint64_t from, uint64_t to)
{
	uint8_t payload[MBOX_MESSAGE_MAX];
	struct mbox_request req;
	struct reply reply = { .head = { .size = sizeof(reply.head) } };

	if (!fetch(dev, from, &req, payload))
		return;
	reply.head.sequence = req.sequence;
	execute(dev, &req, payload, &reply);
	respond(dev, to, &reply);
}

static void run_reset(struct nm_device *dev, uint32_t map)
{
	uint32_t *status = block_value(dev->misc_ram, R_STATUS, 0);

	dev->resetting = true;
	*status |= MBOX_STATUS_NOT_READY;
	pthread_mutex_unlock(&dev->lock);
	nm_device_reset_map(dev, map);
	pthread_mutex_lock(&dev->lock);
	*status &= ~MBOX_STATUS_NOT_READY;
	dev->resetting = false;
}

void nm_mailbox_run(struct nm_device *dev)
{
	uint64_t from, to;

	if (dev->reset_asked) {
		dev->resetting = true;
		dev->reset_asked = false;
		run_reset(dev, dev->reset_map);
		return;
	}
	dev->mailbox_triggered = false;
	from = (uint64_t)misc(dev, R_REQUEST_HI) << 32 | misc(dev, R_REQUEST_LO);
	to = (uint64_t)misc(dev, R_RESPONSE_HI) << 32 | misc(dev, R_RESPONSE_LO);
	if (nm_armed(dev, NM_ARMED_MAILBOX) &&
	    nm_inject_takes_request(dev, misc(dev, R_RESET), from, to))
		return;
	if (misc(dev, R_RESET)) {
		uint32_t type = misc(dev, R_RESET);
		uint32_t map = misc(dev, R_RESET_MAP);

		*block_value(dev->misc_ram, R_RESET, 0) = 0; /* acknowledged */
		if (type == MBOX_RESET_DEVICE)
			run_reset(dev, 0);
		else if (type == MBOX_RESET_CORES && map)
			run_reset(dev, map);
		else
			nm_guest_error(dev, GUEST_KEY(GUEST_MAILBOX, 9, 0),
				       "mailbox: reset type %u with map 0x%x: want %u, or %u with "
				       "a map",
				       type, map, MBOX_RESET_DEVICE, MBOX_RESET_CORES);
	} else {
		pthread_mutex_unlock(&dev->lock);
		request(dev, from, to);
		pthread_mutex_lock(&dev->lock);
	}
}
