/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef __NEURON_USER_H__
#define __NEURON_USER_H__

struct drm_device;
struct drm_file;
struct neuron_bo;

int neuron_user_get_pages(struct neuron_bo *bo, unsigned long addr);
void neuron_user_put_pages(struct neuron_bo *bo);
int neuron_ioctl_bo_pin(struct drm_device *drm, void *data, struct drm_file *file);

#endif /* __NEURON_USER_H__ */
