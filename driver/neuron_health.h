/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef __NEURON_HEALTH_H__
#define __NEURON_HEALTH_H__

#include <linux/atomic.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include "neuron_hal.h"
#include "neuron_notify.h"

struct neuron_device;

/* Error counters: one for each HBM stack, then the one of all SRAM. */
#define NEURON_ECC_COUNTERS (NEURON_STACKS_MAX + 1)

/* Throttle notifications of a core that fit between two looks. */
#define NEURON_HEALTH_NOTES 64

/**
 * struct neuron_health_core - How a core is doing
 */
struct neuron_health_core {
	/** @notes: Ring of throttle notifications, written by the device. */
	struct nq_entry *notes;
	/** @notes_dma: Bus address of @notes. */
	dma_addr_t notes_dma;
	/** @seen: Notifications ever read. Only the worker uses it. */
	u32 seen;
	/** @clock: Percent of the nominal clocks that the last launch had. */
	u32 clock;
};

/**
 * struct neuron_health - What the device does not raise an interrupt for
 *
 * A worker looks once a second, while somebody has the device open.
 */
struct neuron_health {
	/** @work: The worker. */
	struct delayed_work work;
	/** @lost_work: Looks whether the device is gone; takes it out of use then. */
	struct work_struct lost_work;
	/** @users: Open files. */
	atomic_t users;
	/** @unplugged: drm_dev_unplug() was called, or is being called. */
	atomic_t unplugged;
	/** @missed_irqs: Interrupts that never came: their work was found done at a time-out. */
	atomic_t missed_irqs;
	/** @ecc: Error counters as last read, MBOX_ECC_*; written by the worker. */
	u32 ecc[NEURON_ECC_COUNTERS];
	/** @status: MBOX_HEALTH as last read, of chips that have it; written by the worker. */
	u32 status;
	/** @events: Changes of @status. */
	u32 events;
	/** @repair: MBOX_HBM_REPAIR_* as last read; written under &neuron_device.reset_lock. */
	u32 repair;
	/** @core: Cores. */
	struct neuron_health_core core[NEURON_CORES_MAX];
};

void neuron_health_init(struct neuron_device *ndev);
int neuron_health_alloc(struct neuron_device *ndev);
void neuron_health_start(struct neuron_device *ndev);
void neuron_health_stop(struct neuron_device *ndev);
void neuron_health_remove(struct neuron_device *ndev);
void neuron_health_open(struct neuron_device *ndev);
void neuron_health_close(struct neuron_device *ndev);
void neuron_health_missed_irq(struct neuron_device *ndev, const char *what, unsigned int index);
u32 neuron_health_uncorrected(struct neuron_device *ndev, unsigned int i, u32 counter);
void neuron_health_look(struct neuron_device *ndev);
void neuron_health_suspect(struct neuron_device *ndev);
const char *neuron_health_repair_name(u32 repair);

#endif /* __NEURON_HEALTH_H__ */
