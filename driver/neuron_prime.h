/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef __NEURON_PRIME_H__
#define __NEURON_PRIME_H__

#include <linux/types.h>

struct dma_buf;
struct dma_fence;
struct drm_device;
struct drm_gem_object;
struct drm_sched_job;
struct neuron_bo;
struct neuron_device;

/* Places in a reservation for one job: it may both read and write the buffer. */
#define NEURON_BO_FENCES 2

struct dma_buf *neuron_prime_export(struct drm_gem_object *obj, int flags);
struct drm_gem_object *neuron_prime_import(struct drm_device *drm, struct dma_buf *buf);
int neuron_prime_map(struct neuron_bo *bo);
void neuron_prime_free(struct neuron_bo *bo);
void neuron_prime_stop(struct neuron_device *ndev);
void neuron_prime_revoke(struct neuron_bo *bo);
int neuron_bo_wait(struct drm_sched_job *job, struct drm_gem_object *obj, bool write);
void neuron_bo_add_fence(struct drm_gem_object *obj, struct dma_fence *fence, bool write);

#endif /* __NEURON_PRIME_H__ */
