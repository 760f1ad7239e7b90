/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef __NEURON_LINK_H__
#define __NEURON_LINK_H__

#include <linux/types.h>

#include "neuron_topology.h"

struct drm_neuron_query_topology;
struct neuron_device;

/**
 * struct neuron_link - Place of a device in its server
 */
struct neuron_link {
	/** @routing_id: As the firmware says. */
	u32 routing_id;
	/** @serial: Serial number of the device behind each neighbour window; 0: none. */
	u64 serial[NEURON_LINKS];
};

int neuron_link_init(struct neuron_device *ndev);
bool neuron_link_addr(const struct neuron_device *ndev, const struct neuron_device *peer, u64 addr,
		      u64 *out);
void neuron_link_query(const struct neuron_device *ndev,
		       struct drm_neuron_query_topology *topology);

#endif /* __NEURON_LINK_H__ */
