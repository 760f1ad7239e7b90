// SPDX-License-Identifier: GPL-2.0-only
/* The user interface keeps its layout: sizes and numbers as programs were built with. */

#include <kunit/test.h>

#include "drm/neuron_accel.h"
#include "neuron_program.h"
#include "neuron_queue.h"

#define SIZE_IS(type, bytes) KUNIT_EXPECT_EQ(test, sizeof(struct type), (bytes))

static void neuron_uapi_sizes(struct kunit *test)
{
	SIZE_IS(drm_neuron_array, 16);
	SIZE_IS(drm_neuron_query, 16);
	SIZE_IS(drm_neuron_query_device, 48);
	SIZE_IS(drm_neuron_query_memory, 40);
	SIZE_IS(drm_neuron_bo_create, 16);
	SIZE_IS(drm_neuron_bo_info, 24);
	SIZE_IS(drm_neuron_ctx_create, 16);
	SIZE_IS(drm_neuron_ctx_destroy, 8);
	SIZE_IS(drm_neuron_ctx_state, 112);
	SIZE_IS(drm_neuron_program_load, 24);
	SIZE_IS(drm_neuron_program_unload, 8);
	SIZE_IS(drm_neuron_sync, 16);
	SIZE_IS(drm_neuron_slot, 24);
	SIZE_IS(drm_neuron_submit, 64);
	SIZE_IS(drm_neuron_copy, 72);
}

static void neuron_uapi_numbers(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, DRM_IOCTL_NEURON_QUERY, 0xc0106440);
	KUNIT_EXPECT_EQ(test, DRM_IOCTL_NEURON_BO_CREATE, 0xc0106441);
	KUNIT_EXPECT_EQ(test, DRM_IOCTL_NEURON_BO_INFO, 0xc0186442);
	KUNIT_EXPECT_EQ(test, DRM_IOCTL_NEURON_CTX_CREATE, 0xc0106443);
	KUNIT_EXPECT_EQ(test, DRM_IOCTL_NEURON_CTX_DESTROY, 0xc0086444);
	KUNIT_EXPECT_EQ(test, DRM_IOCTL_NEURON_CTX_STATE, 0xc0706445);
	KUNIT_EXPECT_EQ(test, DRM_IOCTL_NEURON_PROGRAM_LOAD, 0xc0186446);
	KUNIT_EXPECT_EQ(test, DRM_IOCTL_NEURON_PROGRAM_UNLOAD, 0xc0086447);
	KUNIT_EXPECT_EQ(test, DRM_IOCTL_NEURON_SUBMIT, 0xc0406448);
	KUNIT_EXPECT_EQ(test, DRM_IOCTL_NEURON_COPY, 0xc0486449);
}

static struct kunit_case neuron_uapi_cases[] = { KUNIT_CASE(neuron_uapi_sizes),
						 KUNIT_CASE(neuron_uapi_numbers),
						 {} };

static struct kunit_suite neuron_uapi_suite = {
	.name = "neuron_uapi",
	.test_cases = neuron_uapi_cases,
};

kunit_test_suite(neuron_uapi_suite);
