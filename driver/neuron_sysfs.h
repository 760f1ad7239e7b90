/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef __NEURON_SYSFS_H__
#define __NEURON_SYSFS_H__

struct neuron_device;

int neuron_sysfs_init(struct neuron_device *ndev);
void neuron_sysfs_class_init(void);
void neuron_sysfs_class_fini(void);

#endif /* __NEURON_SYSFS_H__ */
