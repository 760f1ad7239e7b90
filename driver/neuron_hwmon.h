/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef __NEURON_HWMON_H__
#define __NEURON_HWMON_H__

#include <linux/kconfig.h>

struct neuron_device;

#if IS_REACHABLE(CONFIG_HWMON)
void neuron_hwmon_init(struct neuron_device *ndev);
#else
static inline void neuron_hwmon_init(struct neuron_device *ndev)
{
}
#endif

#endif /* __NEURON_HWMON_H__ */
