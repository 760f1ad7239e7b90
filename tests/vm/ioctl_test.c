// SPDX-License-Identifier: Apache-2.0
/*
 * The ioctl interface of the accel node, against a device: run as root where the module is loaded
 * (tests/vm/guest). Every test opens the node for itself, closes it without tidying up, and then
 * waits for all HBM that it used to come back.
 *
 *	ioctl_test [PATTERN]     only the tests whose name matches the shell pattern
 *	ioctl_test GROUP...      only these groups, the names below
 */
#include "groups.h"

#include <stdio.h>
#include <string.h>

#define GROUP(name) { #name, name##_tests, &name##_tests_count, NULL, NULL }
#define GROUP_WITH(name, setup, teardown) \
	{ #name, name##_tests, &name##_tests_count, setup, teardown }

static const struct group {
	const char *name;
	const struct CMUnitTest *tests;
	const size_t *count;
	CMFixtureFunction setup, teardown;
} groups[] = {
	GROUP(args),
	GROUP(memory),
	GROUP(scrub),
	GROUP(share),
	GROUP(peer),
	GROUP(pin),
	GROUP(evict),
	GROUP(links),
	GROUP(launch),
	GROUP(stream),
	GROUP(cores),
	GROUP(report),
	GROUP(reset),
	GROUP(isolation),
	GROUP(life),
	GROUP_WITH(fault_inject, fault_group_setup, fault_group_teardown),
	/* Last: a kernel that watches DMA stops doing so when it has no memory for that. */
	GROUP_WITH(alloc, alloc_group_setup, NULL),
};

static bool is_named(const struct group *group, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], group->name))
			return true;
	return false;
}

int main(int argc, char **argv)
{
	const size_t n = sizeof(groups) / sizeof(groups[0]);
	int failed = 0;
	bool named = false;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < n; i++)
		named |= is_named(&groups[i], argc, argv);
	if (argc > 1 && !named)
		cmocka_set_test_filter(argv[1]);
	for (size_t i = 0; i < n; i++)
		if (!named || is_named(&groups[i], argc, argv))
			failed += _cmocka_run_group_tests(groups[i].name, groups[i].tests,
							  *groups[i].count, groups[i].setup,
							  groups[i].teardown);
	return failed != 0;
}
