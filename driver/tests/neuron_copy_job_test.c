// SPDX-License-Identifier: GPL-2.0-only
/* Which copies are refused. Part of neuron_copy_job.c. */

#include <kunit/test.h>

struct check_row {
	const char *what;
	u64 src_offset, dst_offset, size;
	bool same;
	int ret;
};

/* Of a source of 64 KiB and a destination of 32 KiB, or within the source. */
static const struct check_row check_rows[] = {
	{ "all of the smaller", 0, 0, SZ_32K, false, 0 },
	{ "the last byte of both", SZ_64K - 1, SZ_32K - 1, 1, false, 0 },
	{ "one byte beyond the source", SZ_64K - SZ_32K + 1, 0, SZ_32K, false, -EINVAL },
	{ "one byte beyond the destination", 0, 1, SZ_32K, false, -EINVAL },
	{ "a source that wraps around", U64_MAX - 7, 0, 16, false, -EINVAL },
	{ "a destination that wraps around", 0, U64_MAX - 7, 16, false, -EINVAL },
	{ "halves of one buffer", 0, SZ_32K, SZ_32K, true, 0 },
	{ "one byte of overlap", 0, SZ_32K - 1, SZ_32K, true, -EINVAL },
	{ "onto itself", 0, 0, 1, true, -EINVAL },
};

KUNIT_ARRAY_PARAM_DESC(check, check_rows, what);

static void neuron_copy_job_checks_ranges(struct kunit *test)
{
	const struct check_row *row = test->param_value;
	struct neuron_device *ndev = kunit_kzalloc(test, sizeof(*ndev), GFP_KERNEL);
	struct drm_gem_object src = { .size = SZ_64K }, dst = { .size = SZ_32K };
	const struct drm_neuron_copy args = {
		.src_offset = row->src_offset,
		.dst_offset = row->dst_offset,
		.size = row->size,
	};

	KUNIT_ASSERT_NOT_NULL(test, ndev);
	KUNIT_EXPECT_EQ(test, copy_check(&ndev->drm, &args, &src, row->same ? &src : &dst),
			row->ret);
}

static struct kunit_case neuron_copy_job_cases[] = { KUNIT_CASE_PARAM(neuron_copy_job_checks_ranges,
								      check_gen_params),
						     {} };

static struct kunit_suite neuron_copy_job_suite = {
	.name = "neuron_copy_job",
	.test_cases = neuron_copy_job_cases,
};

kunit_test_suite(neuron_copy_job_suite);
