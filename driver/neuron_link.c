// SPDX-License-Identifier: GPL-2.0-only
/*
 * NeuronLink. A device reaches the memory of its neighbours through windows of
 * its own address space. Which device is behind which window, it says itself;
 * the other end is recognised by its serial number.
 */

#include <linux/bitfield.h>
#include <linux/delay.h>
#include <linux/pci.h>

#include "drm/neuron_accel.h"
#include "neuron_drv.h"
#include "neuron_link.h"
#include "neuron_mailbox.h"

/* How long the firmware may take to know its place. */
#define LINK_TRIES   20
#define LINK_WAIT_MS 1000

/* First minor version of the execution interface whose devices say who is next to them. */
#define LINK_EXI_MINOR 1

/**
 * neuron_link_init - Find out where a device is
 * @ndev: device, its firmware running
 *
 * Context: Process; sleeps.
 * Return: 0, -ETIMEDOUT.
 */
int neuron_link_init(struct neuron_device *ndev)
{
	struct neuron_link *link = &ndev->link;
	unsigned int try, i;

	for (try = 0;; try++) {
		link->routing_id = neuron_reg_read(&ndev->misc, MBOX_DEVICE_ID);
		if (link->routing_id != MBOX_NOT_READY)
			break;
		if (try == LINK_TRIES) {
			drm_err(&ndev->drm, "firmware does not know its routing id\n");
			return -ETIMEDOUT;
		}
		msleep(LINK_WAIT_MS);
	}
	if (FIELD_GET(EXI_VERSION_MINOR_MASK, ndev->exec_version) < LINK_EXI_MINOR)
		return 0;
	for (i = 0; i < NEURON_LINKS; i++)
		link->serial[i] = (u64)neuron_reg_read(&ndev->exi, EXI_LINK_SERIAL(i) + 4) << 32 |
				  neuron_reg_read(&ndev->exi, EXI_LINK_SERIAL(i));
	return 0;
}

/**
 * neuron_link_addr - Memory of another device as this one reaches it
 * @ndev: the device
 * @peer: the other one
 * @addr: device address there
 * @out: out: address for DMA engines of @ndev
 *
 * Return: whether they are neighbours.
 */
bool neuron_link_addr(const struct neuron_device *ndev, const struct neuron_device *peer, u64 addr,
		      u64 *out)
{
	unsigned int i;

	if (!peer->serial || peer->hal->arch != ndev->hal->arch)
		return false;
	for (i = 0; i < NEURON_LINKS; i++) {
		if (ndev->link.serial[i] != peer->serial)
			continue;
		*out = neuron_hal_neighbour_addr(ndev->hal, i, addr);
		return true;
	}
	return false;
}

/**
 * neuron_link_query - Fill in DRM_NEURON_QUERY_TOPOLOGY
 * @ndev: device
 * @topology: out
 */
void neuron_link_query(const struct neuron_device *ndev, struct drm_neuron_query_topology *topology)
{
	const struct pci_dev *pdev = to_pci_dev(ndev->drm.dev);

	BUILD_BUG_ON(ARRAY_SIZE(topology->neighbour) != NEURON_LINKS);
	*topology = (struct drm_neuron_query_topology){
		.routing_id = ndev->link.routing_id,
		.number = neuron_device_number(pdev->device, ndev->link.routing_id),
		.cores_joined = ndev->hal->cores_joined,
	};
	memcpy(topology->neighbour, ndev->link.serial, sizeof(topology->neighbour));
}
