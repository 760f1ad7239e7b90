// SPDX-License-Identifier: Apache-2.0
/* Devices side by side: who is next to whom, and that nobody goes while a neighbour looks at him. */
#include <errno.h>
#include <stdlib.h>

#include "device.h"

#define SERIAL_DEFAULT 0x4e4d303030303031ull

struct nm_server {
	const struct nm_chip *chip;
	unsigned int devices;
	uint64_t serial; /* of device 0 */
	pthread_rwlock_t lock; /* for reading: the devices below stay */
	struct nm_device *device[NEURON_SERVER_DEVICES]; /* by number; NULL: powered off */
};

struct nm_server *nm_server_create(const char *chip, unsigned int devices, uint64_t serial)
{
	const struct nm_chip *found = chip ? nm_chip_find(chip) : nm_chip_default();
	struct nm_server *server;

	if (!found || !devices || devices > NEURON_SERVER_DEVICES)
		return NULL;
	server = calloc(1, sizeof(*server));
	if (!server)
		return NULL;
	server->chip = found;
	server->devices = devices;
	server->serial = serial ? serial : SERIAL_DEFAULT;
	pthread_rwlock_init(&server->lock, NULL);
	return server;
}

void nm_server_destroy(struct nm_server *server)
{
	if (!server)
		return;
	pthread_rwlock_destroy(&server->lock);
	free(server);
}

const char *nm_server_chip(const struct nm_server *server)
{
	return server->chip->name;
}

int nm_server_place(struct nm_device *dev)
{
	struct nm_config *c = &dev->config;
	const struct nm_server *server = c->server;

	if (!server)
		return 0;
	if (c->number >= server->devices) {
		nm_log(dev, NM_LOG_ERROR, "device %u of a server of %u", c->number,
		       server->devices);
		return -EINVAL;
	}
	c->chip = server->chip->name;
	c->serial = server->serial + c->number;
	c->device_id = neuron_routing_id(server->chip->pci_device, c->number);
	return 0;
}

void nm_server_join(struct nm_device *dev)
{
	struct nm_server *server = dev->config.server;

	if (!server)
		return;
	pthread_rwlock_wrlock(&server->lock);
	server->device[dev->config.number] = dev;
	pthread_rwlock_unlock(&server->lock);
}

void nm_server_leave(struct nm_device *dev)
{
	struct nm_server *server = dev->config.server;

	if (!server || dev->config.number >= server->devices)
		return;
	pthread_rwlock_wrlock(&server->lock);
	if (server->device[dev->config.number] == dev)
		server->device[dev->config.number] = NULL;
	pthread_rwlock_unlock(&server->lock);
}

void nm_server_lock(struct nm_device *dev)
{
	if (dev->config.server)
		pthread_rwlock_rdlock(&dev->config.server->lock);
}

void nm_server_unlock(struct nm_device *dev)
{
	if (dev->config.server)
		pthread_rwlock_unlock(&dev->config.server->lock);
}

/* Number of the device behind a window; false: the window leads nowhere. */
static bool behind(const struct nm_device *dev, unsigned int window, unsigned int *number)
{
	const struct nm_server *server = dev->config.server;
	unsigned int ids[NEURON_LINKS];

	if (!server || window >= neuron_neighbours(server->chip->pci_device, server->devices,
						   dev->config.number, ids))
		return false;
	*number = ids[window];
	return true;
}

struct nm_device *nm_server_neighbour(struct nm_device *dev, unsigned int window)
{
	unsigned int number;

	return behind(dev, window, &number) ? dev->config.server->device[number] : NULL;
}

uint64_t nm_server_neighbour_serial(const struct nm_device *dev, unsigned int window)
{
	unsigned int number;

	return behind(dev, window, &number) ? dev->config.server->serial + number : 0;
}
