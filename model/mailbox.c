// SPDX-License-Identifier: Apache-2.0
/*
 * MISC RAM as the host and the management core see it, and the reset register of virtual devices.
 * What a trigger asks for is the firmware's to do (mgmt.c, firmware/).
 */
#include "device.h"

#define RO(off, n, step) REG_(#off, REG_RO, off, n, step, 0, 0)
#define RW(off, n)	 REG_(#off, REG_RW, off, n, 4, 0, 0)
#define WO(off)		 REG_(#off, REG_WO, off, 0, 0, 0, 0)

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
	R_RESET_MAP_HI,
	R_RESET_MAP,
	R_RESET,
	R_REQUEST_HI,
	R_REQUEST_LO,
	R_RESPONSE_HI,
	R_RESPONSE_LO,
	R_TRIGGER,
	R_STATUS,
	R_FW_INTERFACE,
	R_FW_VERSION,
	R_FW_BOOT,
	R_FW_HEARTBEAT,
	R_FW_RESTART,
	R_TEMPERATURE,
	N_REGS_V3,
	R_HEALTH = N_REGS_V3,
	R_HEALTH_SEQUENCE,
	R_ACK,
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
	[R_NEIGHBOURS] = RW(MBOX_LEFT_SERIAL_HI, 4),
	[R_POD] = RW(MBOX_POD_STATUS, 3),
	[R_RUNTIME_1] = RW(MBOX_RUNTIME_1, MBOX_RUNTIME_1_BYTES / 4),
	[R_RESET_MAP_HI] = RW(MBOX_RESET_MAP_HI, 0),
	[R_RESET_MAP] = RW(MBOX_RESET_MAP, 0),
	[R_RESET] = RW(MBOX_RESET, 0),
	[R_REQUEST_HI] = RW(MBOX_REQUEST_HI, 0),
	[R_REQUEST_LO] = RW(MBOX_REQUEST_LO, 0),
	[R_RESPONSE_HI] = RW(MBOX_RESPONSE_HI, 0),
	[R_RESPONSE_LO] = RW(MBOX_RESPONSE_LO, 0),
	[R_TRIGGER] = RW(MBOX_TRIGGER, 0),
	[R_STATUS] = RO(MBOX_STATUS, 0, 0),
	[R_FW_INTERFACE] = RO(MBOX_FW_INTERFACE, 0, 0),
	[R_FW_VERSION] = RO(MBOX_FW_VERSION, 0, 0),
	[R_FW_BOOT] = RO(MBOX_FW_BOOT, 0, 0),
	[R_FW_HEARTBEAT] = RO(MBOX_FW_HEARTBEAT, 0, 0),
	[R_FW_RESTART] = WO(MBOX_FW_RESTART),
	[R_TEMPERATURE] = RO(MBOX_TEMPERATURE(0), V3_DIES, 4),
	/* Of V4 only. */
	[R_HEALTH] = RO(MBOX_HEALTH, 0, 0),
	[R_HEALTH_SEQUENCE] = RO(MBOX_HEALTH_SEQUENCE, 0, 0),
	[R_ACK] = RW(MBOX_ACK, 0),
};

static uint32_t misc(struct nm_device *dev, unsigned int reg)
{
	return *block_value(dev->misc_ram, reg, 0);
}

/* The firmware measures when somebody looks; who looks again sees it. */
static uint32_t misc_read(struct nm_device *dev, struct block *b, unsigned int reg, unsigned int i,
			  uint32_t value)
{
	(void)b;
	if ((reg == R_POWER || reg == R_TEMPERATURE || reg == R_HEALTH_SEQUENCE) && !i)
		nm_mgmt_raise(dev, MGMT_CAUSE_SAMPLE);
	return value;
}

static void misc_write(struct nm_device *dev, struct block *b, unsigned int reg, unsigned int i,
		       uint32_t old, uint32_t value)
{
	(void)b;
	(void)i;
	(void)old;
	if (reg == R_TRIGGER) {
		dev->mailbox_triggered = true;
		pthread_cond_signal(&dev->work);
	} else if (reg == R_FW_RESTART && value == MBOX_FW_RESTART_KEY) {
		nm_mgmt_restart(dev);
	}
}

void nm_mailbox_reset(struct nm_device *dev)
{
	nm_block_reset(dev->misc_ram);
	dev->mailbox_triggered = false;
	dev->reset_asked = false;
}

/* --- the management core's side ------------------------------------------------- */

bool nm_mailbox_load(struct nm_device *dev, uint32_t offset, uint32_t *value)
{
	uint32_t *reg;

	pthread_mutex_lock(&dev->lock);
	reg = nm_block_at(dev->misc_ram, offset);
	if (reg)
		*value = *reg;
	pthread_mutex_unlock(&dev->lock);
	return reg;
}

bool nm_mailbox_store(struct nm_device *dev, uint32_t offset, uint32_t value)
{
	uint32_t *reg;

	pthread_mutex_lock(&dev->lock);
	reg = nm_block_at(dev->misc_ram, offset);
	if (reg)
		*reg = value;
	pthread_mutex_unlock(&dev->lock);
	return reg;
}

void nm_mailbox_not_ready(struct nm_device *dev)
{
	pthread_mutex_lock(&dev->lock);
	*block_value(dev->misc_ram, R_STATUS, 0) |= MBOX_STATUS_NOT_READY;
	pthread_mutex_unlock(&dev->lock);
}

int nm_mailbox_init(struct nm_device *dev, struct block *b)
{
	int ret;

	dev->misc_ram = b;
	b->ops.read = misc_read;
	b->ops.write = misc_write;
	ret = nm_block_init(b, misc_regs, dev->chip->arch == NEURON_ARCH_V4 ? N_REGS : N_REGS_V3);
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

/* --- device thread ------------------------------------------------------------- */

static void run_reset(struct nm_device *dev, uint32_t map)
{
	uint32_t *status = block_value(dev->misc_ram, R_STATUS, 0);

	dev->resetting = true;
	*status |= MBOX_STATUS_NOT_READY;
	pthread_mutex_unlock(&dev->lock);
	nm_device_reset_map(dev, map, 0);
	pthread_mutex_lock(&dev->lock);
	*status &= ~MBOX_STATUS_NOT_READY;
	dev->resetting = false;
}

static void trigger(struct nm_device *dev)
{
	const bool in_registers = dev->chip->arch == NEURON_ARCH_V4 && misc(dev, R_ACK);
	uint64_t from, to;

	dev->mailbox_triggered = false;
	from = (uint64_t)misc(dev, R_REQUEST_HI) << 32 | misc(dev, R_REQUEST_LO);
	to = (uint64_t)misc(dev, R_RESPONSE_HI) << 32 | misc(dev, R_RESPONSE_LO);
	if (nm_armed(dev, NM_ARMED_MAILBOX) &&
	    nm_inject_takes_request(dev, misc(dev, R_RESET), in_registers, from, to))
		return;
	nm_mgmt_raise(dev, MGMT_CAUSE_DOORBELL);
}

bool nm_mailbox_wanted(const struct nm_device *dev)
{
	return dev->mailbox_triggered || dev->reset_asked || nm_mgmt_wanted(dev->mgmt);
}

void nm_mailbox_run(struct nm_device *dev)
{
	if (dev->reset_asked) {
		dev->resetting = true;
		dev->reset_asked = false;
		run_reset(dev, dev->reset_map);
		return;
	}
	if (dev->mailbox_triggered)
		trigger(dev);
	if (!nm_mgmt_wanted(dev->mgmt))
		return;
	pthread_mutex_unlock(&dev->lock);
	nm_mgmt_run(dev);
	pthread_mutex_lock(&dev->lock);
}
