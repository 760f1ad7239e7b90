/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef __NEURON_DUMP_H__
#define __NEURON_DUMP_H__

struct neuron_ctx;
struct neuron_device;

int neuron_dump_init(struct neuron_device *ndev);
void neuron_dump_fini(struct neuron_device *ndev);
void neuron_dump_ctx(struct neuron_ctx *ctx, const char *reason);

#endif /* __NEURON_DUMP_H__ */
