// SPDX-License-Identifier: GPL-2.0-only

#include <linux/interrupt.h>
#include <linux/pci.h>

#include "neuron_copy.h"
#include "neuron_ctx.h"
#include "neuron_drv.h"
#include "neuron_irq.h"

static irqreturn_t neuron_irq_handler(int irq, void *data)
{
	struct neuron_vector *vector = data;
	struct neuron_device *ndev = vector->ndev;
	unsigned long cores = vector->cores;
	unsigned int core;

	for_each_set_bit(core, &cores, NEURON_CORES_MAX)
		neuron_ctx_drain_core(ndev, core);
	if (vector->copy)
		neuron_copy_drain(ndev);
	return IRQ_HANDLED;
}

static unsigned int neuron_irq_core_index(struct neuron_device *ndev, unsigned int core)
{
	return (1 + core) % ndev->irq.vectors;
}

/**
 * neuron_irq_core_vector - Vector for the queues of a core
 * @ndev: device
 * @core: core
 *
 * Return: value of EXI_Q_VECTOR.
 */
u32 neuron_irq_core_vector(struct neuron_device *ndev, unsigned int core)
{
	return neuron_irq_core_index(ndev, core) | EXI_VECTOR_ENABLE;
}

/**
 * neuron_irq_copy_vector - Vector for the copy engines
 * @ndev: device
 *
 * Return: value of EXI_UDMA_ROUTE.
 */
u32 neuron_irq_copy_vector(struct neuron_device *ndev)
{
	return 0 | EXI_VECTOR_ENABLE;
}

/**
 * neuron_irq_init - Take the interrupt vectors
 * @ndev: device, everything the handler looks at initialised
 *
 * The device managed resources of the PCI device free them.
 *
 * Return: 0 or -errno.
 */
int neuron_irq_init(struct neuron_device *ndev)
{
	struct pci_dev *pdev = to_pci_dev(ndev->drm.dev);
	struct neuron_irq *irq = &ndev->irq;
	unsigned int i;
	int ret;

	ret = pci_alloc_irq_vectors(pdev, 1, 1 + ndev->cores, PCI_IRQ_MSIX);
	if (ret < 0)
		return dev_err_probe(&pdev->dev, ret, "no MSI-X vectors\n");
	irq->vectors = ret;

	for (i = 0; i < irq->vectors; i++)
		irq->vector[i].ndev = ndev;
	irq->vector[0].copy = true;
	for (i = 0; i < ndev->cores; i++)
		irq->vector[neuron_irq_core_index(ndev, i)].cores |= BIT(i);

	for (i = 0; i < irq->vectors; i++) {
		ret = devm_request_irq(&pdev->dev, pci_irq_vector(pdev, i), neuron_irq_handler, 0,
				       "neuron", &irq->vector[i]);
		if (ret)
			return dev_err_probe(&pdev->dev, ret, "no interrupt for vector %u\n", i);
	}
	return 0;
}
