/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Address map of generation V4 (trn3): that of V3 but for what stands here.
 * Source: aws-neuron-driver v4/neuron_dhal_v4.c.
 */
#ifndef NEURON_MAP_V4_H
#define NEURON_MAP_V4_H

#include "neuron_map_v3.h"

#define V4_DEV_HBM_ACTIVE    0x00000900000000ull /* memory in a stack's span on silicon: 36 GiB */

/* Firmware from this API version on takes requests in registers (neuron_mailbox.h). */
#define V4_MBOX_REGISTERS_API 6

#endif /* NEURON_MAP_V4_H */
