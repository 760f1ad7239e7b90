/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef __NEURON_SCHED_H__
#define __NEURON_SCHED_H__

struct drm_device;
struct drm_file;
struct drm_sched_backend_ops;

extern const struct drm_sched_backend_ops neuron_sched_ops;

int neuron_ioctl_submit(struct drm_device *drm, void *data, struct drm_file *file);
int neuron_ioctl_submit_batch(struct drm_device *drm, void *data, struct drm_file *file);

#endif /* __NEURON_SCHED_H__ */
