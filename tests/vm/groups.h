/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_VM_GROUPS_H
#define TESTS_VM_GROUPS_H

#include "dev.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, dev_setup, dev_teardown)
#define HANG(name) cmocka_unit_test_setup_teardown(name, dev_hang_setup, dev_hang_teardown)

extern const struct CMUnitTest args_tests[];
extern const size_t args_tests_count;
extern const struct CMUnitTest memory_tests[];
extern const size_t memory_tests_count;
extern const struct CMUnitTest share_tests[];
extern const size_t share_tests_count;
extern const struct CMUnitTest evict_tests[];
extern const size_t evict_tests_count;
extern const struct CMUnitTest scrub_tests[];
extern const size_t scrub_tests_count;
extern const struct CMUnitTest peer_tests[];
extern const size_t peer_tests_count;
extern const struct CMUnitTest pin_tests[];
extern const size_t pin_tests_count;
extern const struct CMUnitTest links_tests[];
extern const size_t links_tests_count;
extern const struct CMUnitTest launch_tests[];
extern const size_t launch_tests_count;
extern const struct CMUnitTest cores_tests[];
extern const size_t cores_tests_count;
extern const struct CMUnitTest stream_tests[];
extern const size_t stream_tests_count;
extern const struct CMUnitTest isolation_tests[];
extern const size_t isolation_tests_count;
extern const struct CMUnitTest fault_inject_tests[];
extern const size_t fault_inject_tests_count;
int fault_group_setup(void **state);
int fault_group_teardown(void **state);
extern const struct CMUnitTest life_tests[];
extern const size_t life_tests_count;
extern const struct CMUnitTest report_tests[];
extern const size_t report_tests_count;
extern const struct CMUnitTest reset_tests[];
extern const size_t reset_tests_count;
extern const struct CMUnitTest alloc_tests[];
extern const size_t alloc_tests_count;
int alloc_group_setup(void **state);

#endif /* TESTS_VM_GROUPS_H */
