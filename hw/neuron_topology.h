/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Devices of a server and the NeuronLinks between them.
 *
 * A device has a routing id, which it shows in MISC RAM (MBOX_DEVICE_ID), and a number, by which users
 * name it. Numbers of sixteen devices of trn1, trn2 and trn3 are places in a 4 x 4 torus, four to a
 * row; twelve of inf2 are a ring, six a chain. Source: aws-neuron-driver v2/neuron_dhal_v2.c,
 * v3/neuron_dhal_v3.c, v4/neuron_dhal_v4.c.
 *
 * That is how standard servers and those of a pod number them, and how the public driver takes virtual
 * devices. Servers with switches in place of the torus number by routing id (modulo 16, those of four
 * devices modulo 4); it tells them by the name of the machine, so a device can't, and none is modelled.
 *
 * Execution interface: servers of other sizes, which are tori of fewer rows or rings, and the order of
 * the neighbour windows, which is that of neuron_neighbours().
 */
#ifndef NEURON_TOPOLOGY_H
#define NEURON_TOPOLOGY_H

#include "neuron_pci.h"

#define NEURON_SERVER_DEVICES 16 /* most devices of a server */
#define NEURON_LINKS          4  /* most neighbours of a device */
#define NEURON_TORUS_ROW      4

/* Number of each routing id. */
#define NEURON_TRN1_NUMBERS { 0, 4, 1, 5, 3, 7, 2, 6, 12, 8, 13, 9, 15, 11, 14, 10 }
#define NEURON_TORUS_NUMBERS { 0, 3, 4, 7, 12, 15, 8, 11, 1, 2, 5, 6, 13, 14, 9, 10 }

static inline unsigned int neuron_device_number(unsigned int pci_device, unsigned int routing_id)
{
	static const unsigned char trn1[] = NEURON_TRN1_NUMBERS, torus[] = NEURON_TORUS_NUMBERS;

	if (routing_id >= NEURON_SERVER_DEVICES || pci_device == NEURON_PCI_INF2)
		return routing_id;
	return pci_device == NEURON_PCI_TRN1 ? trn1[routing_id] : torus[routing_id];
}

static inline unsigned int neuron_routing_id(unsigned int pci_device, unsigned int number)
{
	unsigned int rid;

	for (rid = 0; rid < NEURON_SERVER_DEVICES; rid++)
		if (neuron_device_number(pci_device, rid) == number)
			return rid;
	return number;
}

/* Adds a neighbour that is another device and not there yet. */
static inline unsigned int neuron_add_neighbour(unsigned int *ids, unsigned int n,
						unsigned int self, unsigned int id)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if (ids[i] == id)
			return n;
	if (id == self)
		return n;
	ids[n] = id;
	return n + 1;
}

/*
 * Numbers of the devices next to device @self of a server of @devices; returns how many. The one in
 * ids[i] is behind neighbour window i.
 */
static inline unsigned int neuron_neighbours(unsigned int pci_device, unsigned int devices,
					     unsigned int self, unsigned int ids[NEURON_LINKS])
{
	const unsigned int row = self / NEURON_TORUS_ROW * NEURON_TORUS_ROW;
	unsigned int n = 0;

	if (self >= devices || devices > NEURON_SERVER_DEVICES)
		return 0;
	if (pci_device == NEURON_PCI_INF2 || devices % NEURON_TORUS_ROW) {
		/* A chain of six, else a ring. */
		if (self || pci_device != NEURON_PCI_INF2 || devices != 6)
			n = neuron_add_neighbour(ids, n, self, (self + devices - 1) % devices);
		if (self + 1 < devices || pci_device != NEURON_PCI_INF2 || devices != 6)
			n = neuron_add_neighbour(ids, n, self, (self + 1) % devices);
		return n;
	}
	n = neuron_add_neighbour(ids, n, self, (self + devices - NEURON_TORUS_ROW) % devices);
	n = neuron_add_neighbour(ids, n, self, row + (self + 3) % NEURON_TORUS_ROW);
	n = neuron_add_neighbour(ids, n, self, (self + NEURON_TORUS_ROW) % devices);
	return neuron_add_neighbour(ids, n, self, row + (self + 1) % NEURON_TORUS_ROW);
}

#endif /* NEURON_TOPOLOGY_H */
