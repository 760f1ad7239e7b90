/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef __NEURON_IRQ_H__
#define __NEURON_IRQ_H__

#include "neuron_hal.h"

struct neuron_device;

/* One vector for all copies and one for each core, when the host has that many. */
#define NEURON_VECTORS_MAX (1 + NEURON_CORES_MAX)

/**
 * struct neuron_vector - What one MSI-X message can mean
 */
struct neuron_vector {
	/** @ndev: Device. */
	struct neuron_device *ndev;
	/** @cores: Bit mask of cores whose queues use it. */
	u32 cores;
	/** @copy: Copy engines use it. */
	bool copy;
};

/**
 * struct neuron_irq - Interrupt vectors; constant after probe
 */
struct neuron_irq {
	/** @vector: Vectors. */
	struct neuron_vector vector[NEURON_VECTORS_MAX];
	/** @vectors: How many the host gave. */
	unsigned int vectors;
};

int neuron_irq_init(struct neuron_device *ndev);
u32 neuron_irq_core_vector(struct neuron_device *ndev, unsigned int core);
u32 neuron_irq_copy_vector(struct neuron_device *ndev);

#endif /* __NEURON_IRQ_H__ */
