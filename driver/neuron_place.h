/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef __NEURON_PLACE_H__
#define __NEURON_PLACE_H__

#include <linux/types.h>
#include <linux/uidgid.h>

struct drm_neuron_ctx_create;
struct neuron_device;

int neuron_place_check(struct neuron_device *ndev, const struct drm_neuron_ctx_create *args);
int neuron_place_ctx(struct neuron_device *ndev, u64 cores, kuid_t uid, u32 *core, u32 *queue);

#endif /* __NEURON_PLACE_H__ */
