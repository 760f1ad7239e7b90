// SPDX-License-Identifier: GPL-2.0-only
/* The user interface keeps its layout: sizes and numbers as programs were built with. */

#include <kunit/test.h>

#include "drm/neuron_accel.h"
#include "neuron_program.h"
#include "neuron_queue.h"

#define SIZE(type, bytes)	     { #type, sizeof(struct type), bytes }
#define MEMBER(type, member, offset) { #type "." #member, offsetof(struct type, member), offset }

static const struct {
	const char *name;
	size_t is;
	size_t was;
} rows[] = {
#include "neuron_uapi_layout.inc"
};

static void neuron_uapi_layout(struct kunit *test)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++)
		KUNIT_EXPECT_EQ_MSG(test, rows[i].is, rows[i].was, "%s", rows[i].name);
}

static void neuron_uapi_numbers(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, DRM_IOCTL_NEURON_QUERY, 0xc0186440);
	KUNIT_EXPECT_EQ(test, DRM_IOCTL_NEURON_BO_CREATE, 0xc0106441);
	KUNIT_EXPECT_EQ(test, DRM_IOCTL_NEURON_BO_INFO, 0xc0186442);
	KUNIT_EXPECT_EQ(test, DRM_IOCTL_NEURON_CTX_CREATE, 0xc0186443);
	KUNIT_EXPECT_EQ(test, DRM_IOCTL_NEURON_CTX_DESTROY, 0xc0086444);
	KUNIT_EXPECT_EQ(test, DRM_IOCTL_NEURON_CTX_STATE, 0xc0706445);
	KUNIT_EXPECT_EQ(test, DRM_IOCTL_NEURON_PROGRAM_LOAD, 0xc0186446);
	KUNIT_EXPECT_EQ(test, DRM_IOCTL_NEURON_PROGRAM_UNLOAD, 0xc0086447);
	KUNIT_EXPECT_EQ(test, DRM_IOCTL_NEURON_SUBMIT, 0xc0406448);
	KUNIT_EXPECT_EQ(test, DRM_IOCTL_NEURON_COPY, 0xc0486449);
	KUNIT_EXPECT_EQ(test, DRM_IOCTL_NEURON_SUBMIT_BATCH, 0xc040644a);
	KUNIT_EXPECT_EQ(test, DRM_IOCTL_NEURON_BO_PIN, 0xc018644b);
	KUNIT_EXPECT_EQ(test, DRM_IOCTL_NEURON_STREAM_OPEN, 0xc010644c);
}

static struct kunit_case neuron_uapi_cases[] = { KUNIT_CASE(neuron_uapi_layout),
						 KUNIT_CASE(neuron_uapi_numbers),
						 {} };

static struct kunit_suite neuron_uapi_suite = {
	.name = "neuron_uapi",
	.test_cases = neuron_uapi_cases,
};

kunit_test_suite(neuron_uapi_suite);
