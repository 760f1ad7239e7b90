// SPDX-License-Identifier: Apache-2.0
/*
 * The ioctl interface of the accel node, against a device: run as root where the module is loaded
 * (tests/vm/guest). Every test opens the node for itself, closes it without tidying up, and then
 * waits for all HBM that it used to come back.
 *
 *	ioctl_test [PATTERN]     only the tests whose name matches the shell pattern
 */
#include "groups.h"

#include <stdio.h>

#define RUN(group) _cmocka_run_group_tests(#group, group##_tests, group##_tests_count, NULL, NULL)

int main(int argc, char **argv)
{
	int failed = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	failed += RUN(args);
	failed += RUN(memory);
	failed += RUN(share);
	failed += RUN(pin);
	failed += RUN(evict);
	failed += RUN(launch);
	failed += RUN(stream);
	failed += RUN(alloc);
	failed += RUN(reset);
	failed += RUN(life);
	return failed != 0;
}
