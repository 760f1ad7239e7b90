/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * PCI identity and BAR use of every generation.
 * Sources: aws-neuron-driver neuron_device.h, neuron_pci.c, neuron_arch.c,
 * v2/neuron_dhal_v2.c, v3/neuron_dhal_v3.c; what is marked so is the execution interface.
 */
#ifndef NEURON_PCI_H
#define NEURON_PCI_H

#define NEURON_PCI_VENDOR 0x1d0f

#define NEURON_PCI_INF1_0 0x7064
#define NEURON_PCI_INF1_1 0x7065
#define NEURON_PCI_INF1_2 0x7066
#define NEURON_PCI_INF1_3 0x7067
#define NEURON_PCI_TRN1   0x7164
#define NEURON_PCI_INF2   0x7264
#define NEURON_PCI_TRN2   0x7364
#define NEURON_PCI_TRN3_0 0x7564
#define NEURON_PCI_TRN3_1 0x7565

/* Revision id: any other value is silicon. */
#define NEURON_PCI_REV_EMULATOR 240 /* hardware emulator */
#define NEURON_PCI_REV_QEMU     255 /* virtual device: the model of this project */

/* Class code of the virtual device: processing accelerator. Execution interface. */
#define NEURON_PCI_CLASS 0x1200

/* Generations; also the value of EXI_ARCH (neuron_queue.h). */
#define NEURON_ARCH_V1 1 /* inf1 */
#define NEURON_ARCH_V2 2 /* trn1, inf2 */
#define NEURON_ARCH_V3 3 /* trn2 */
#define NEURON_ARCH_V4 4 /* trn3 */

/* BARs, all 64-bit. The register (APB) BAR moves out of the way on the virtual device. */
#define V3_BAR_APB      0
#define V3_BAR_APB_QEMU 2
#define V3_BAR_DRAM     4 /* revision 255: its size / 4 is the size of each HBM stack */

/* BAR of the execution interface (neuron_queue.h), revision 255 only. Execution interface. */
#define EXI_BAR 0

#endif /* NEURON_PCI_H */
