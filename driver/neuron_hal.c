// SPDX-License-Identifier: GPL-2.0-only
/* What generations have in common, and which one a device is of. */

#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/pci.h>

#include "neuron_drv.h"
#include "neuron_fw.h"
#include "neuron_hal.h"
#include "neuron_mailbox.h"
#include "neuron_pci.h"

/* By device id: silicon and virtual device. */
static const struct {
	u16 device;
	const struct neuron_hal *silicon, *virtual;
} hal_chips[] = {
	{ NEURON_PCI_TRN1, &neuron_hal_trn1, &neuron_hal_trn1_virtual },
	{ NEURON_PCI_INF2, &neuron_hal_inf2, &neuron_hal_inf2_virtual },
	{ NEURON_PCI_TRN2, &neuron_hal_trn2, &neuron_hal_trn2_virtual },
	{ NEURON_PCI_TRN3_0, &neuron_hal_trn3, &neuron_hal_trn3_virtual },
	{ NEURON_PCI_TRN3_1, &neuron_hal_trn3, &neuron_hal_trn3_virtual },
};

/**
 * neuron_hal_find - Table of a device
 * @pdev: the device; only its ids are looked at
 *
 * Return: the table, NULL when the device is not known.
 */
const struct neuron_hal *neuron_hal_find(const struct pci_dev *pdev)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(hal_chips); i++)
		if (hal_chips[i].device == pdev->device)
			return pdev->revision == NEURON_PCI_REV_QEMU ? hal_chips[i].virtual :
								       hal_chips[i].silicon;
	return NULL;
}

/**
 * neuron_hal_reset_virtual - Reset a virtual device
 * @ndev: the device
 *
 * A register is told to, and reads 0 when the reset is over.
 *
 * Context: Process; sleeps.
 * Return: 0, -ETIMEDOUT, -ENODEV.
 */
int neuron_hal_reset_virtual(struct neuron_device *ndev)
{
	const struct neuron_hal *hal = ndev->hal;
	unsigned long end = jiffies + msecs_to_jiffies(hal->reset_max_ms);
	u32 value;

	neuron_reg_write(&ndev->reset, 0, hal->reset_value);
	for (;;) {
		value = neuron_reg_read(&ndev->reset, 0);
		if (!value)
			return 0;
		if (time_after(jiffies, end))
			return value == U32_MAX ? -ENODEV : -ETIMEDOUT;
		msleep(hal->reset_poll_ms);
	}
}

/**
 * neuron_hal_reset_silicon - Reset a device by its firmware
 * @ndev: the device
 *
 * Context: Process; sleeps.
 * Return: 0, -ETIMEDOUT, -ENODEV.
 */
int neuron_hal_reset_silicon(struct neuron_device *ndev)
{
	return neuron_fw_reset(ndev, MBOX_RESET_DEVICE, 0);
}

/**
 * neuron_hal_neighbour_addr - Memory of a neighbour device as this one reaches it
 * @hal: table of both devices
 * @window: neighbour window, below NEURON_LINKS
 * @addr: device address on the neighbour
 *
 * Return: the device address for this device's DMA engines.
 */
u64 neuron_hal_neighbour_addr(const struct neuron_hal *hal, unsigned int window, u64 addr)
{
	return hal->neighbour + window * hal->neighbour_dist + addr;
}
