/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef __NEURON_STREAM_H__
#define __NEURON_STREAM_H__

#include <linux/types.h>

struct drm_device;
struct drm_file;
struct exi_record;
struct neuron_ctx;

bool neuron_stream_wanted(const struct neuron_ctx *ctx);
void neuron_stream_advance(struct neuron_ctx *ctx, const struct exi_record *record);
void neuron_stream_detach(struct neuron_ctx *ctx, bool lose);

int neuron_ioctl_stream_open(struct drm_device *drm, void *data, struct drm_file *file);

#endif /* __NEURON_STREAM_H__ */
