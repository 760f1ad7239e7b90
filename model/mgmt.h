/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The management core of the device: an RV32 hart (rv32.h) with the memory map of neuron_mgmt.h. It
 * runs where nm_mgmt_run() is called, on the device's thread, for as long as a cause is pending; one
 * thread at a time, without dev->lock.
 */
#ifndef NM_MGMT_H
#define NM_MGMT_H

#include <stdatomic.h>
#include <stddef.h>

#include "neuron_mgmt.h"
#include "rv32.h"

#define NM_MGMT_LINE 240

struct nm_device;

/* A die as its sensors see it. */
struct nm_sensor {
	uint32_t power; /* basis points of the maximum */
	uint32_t temperature; /* 1/10 degree C */
};

struct nm_mgmt {
	struct rv32 cpu;
	uint8_t *ram;

	_Atomic uint32_t cause; /* set from any thread */
	_Atomic uint64_t timer; /* device time, ns; UINT64_MAX: off */
	_Atomic bool restart; /* the host wants the boot image */

	/* Registers. */
	uint32_t time_hi, timer_lo;
	uint32_t copy_lo, copy_hi, copy_ram, copy_bytes, copy_status;
	uint32_t reset_map, reset_map_hi;
	uint32_t boot_image, boot_bytes;
	uint32_t info, version;

	uint32_t starts;
	bool awake; /* since the image started */
	bool dead; /* the boot image itself does not run */
	char line[NM_MGMT_LINE];
	unsigned int chars;

	struct nm_sensor sensor[2];
	uint64_t sampled_ns; /* device time */
	uint64_t core_ns[8]; /* times of cores at the last sample */
};

/* 0 or -ENOMEM. */
int nm_mgmt_init(struct nm_device *dev);
void nm_mgmt_fini(struct nm_device *dev);

/* Starts the boot image and runs it until it is ready. The device's thread does nothing meanwhile. */
void nm_mgmt_power_on(struct nm_device *dev);

/* Wakes the core for MGMT_CAUSE_*. dev->lock held. */
void nm_mgmt_raise(struct nm_device *dev, uint32_t cause);
/* Device time has moved. Any thread, no lock held. */
void nm_mgmt_tick(struct nm_device *dev);
/* The host asks for the boot image. dev->lock held. */
void nm_mgmt_restart(struct nm_device *dev);

static inline bool nm_mgmt_wanted(const struct nm_mgmt *m)
{
	return atomic_load(&m->cause) || atomic_load(&m->restart);
}

/* Until it sleeps. */
void nm_mgmt_run(struct nm_device *dev);

/* --- mgmt_regs.c: what the core sees --------------------------------------------- */

/* For struct rv32_bus; user is the device. */
bool nm_mgmt_load(void *user, uint32_t addr, unsigned int size, uint32_t *value);
bool nm_mgmt_store(void *user, uint32_t addr, unsigned int size, uint32_t value);

/* Starts an image of the core's RAM, if it is good (MGMT_BOOT_LOAD), or the boot image. */
void nm_mgmt_boot(struct nm_device *dev, uint32_t what);

#endif /* NM_MGMT_H */
