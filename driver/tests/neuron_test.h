/* SPDX-License-Identifier: GPL-2.0-only */
/* What several suites have in common. */
#ifndef __NEURON_TEST_H__
#define __NEURON_TEST_H__

#include <linux/types.h>

struct kunit;

/* A program of two slots for generation 3: 4096 bytes that it reads, and a scalar. */
#define NEURON_TEST_ARCH       3
#define NEURON_TEST_PROG_BYTES 832
u8 *neuron_test_prog(struct kunit *test);

#endif /* __NEURON_TEST_H__ */
