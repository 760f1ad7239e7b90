// SPDX-License-Identifier: Apache-2.0
/*
 * What the driver tells of itself: a device core dump of a hang, uevents of resets, sensors, the
 * tree for monitoring tools.
 */
#define _GNU_SOURCE
#include "dev.h"
#include "groups.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/netlink.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const char dump_glob[] = "/sys/class/devcoredump/devcd*/data";

static void dump_drop(void)
{
	glob_t found;

	if (!glob(dump_glob, 0, NULL, &found)) {
		for (size_t i = 0; i < found.gl_pathc; i++) {
			int fd = open(found.gl_pathv[i], O_WRONLY | O_CLOEXEC);

			if (fd >= 0 && write(fd, "0", 1) == 1)
				close(fd);
		}
	}
	globfree(&found);
	usleep(200000); /* freed by a worker */
}

static void expect_line(const char *text, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void expect_line(const char *text, const char *fmt, ...)
{
	char line[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (!strstr(text, line))
		fail_msg("no '%s' in:\n%s", line, text);
}

static void a_time_out_leaves_a_dump(void **state)
{
	uint32_t ctx, nop, stall;
	char path[256], *text;

	dump_drop();
	dev_param_write("timeout_ms", "400");
	dev_debugfs_write("stall_detect", "0");
	ctx = ctx_new(FD, 1);
	nop = prog_nop(FD);
	stall = prog_stall(FD);
	assert_int_equal(launch_now(FD, ctx, nop, NULL, 0), 1);
	assert_int_equal(launch_now(FD, ctx, stall, NULL, 0), -ETIME);
	dev_param_write("timeout_ms", "10000");
	dev_debugfs_write("stall_detect", "1");

	text = file_read_glob(dump_glob, path);
	assert_non_null(text);
	expect_line(text, "reason: a launch timed out\n");
	expect_line(text, "\ncore: 1\n");
	expect_line(text, "\ncontext: %u\npid: %d\n", ctx, getpid());
	expect_line(text, "\nhead: 1\ntail: 2\n");
	expect_line(text, " status=0x2 "); /* EXI_Q_RUNNING */
	expect_line(text, "\nlaunch 1: program ");
	expect_line(text, "\nrecord 0: 0 (completed), engine none");
	dump_drop();
}

static void a_deadlock_leaves_a_dump_a_mistake_does_not(void **state)
{
	uint32_t ctx = ctx_new(FD, 0);
	struct prog mistake = {};
	char path[256], *text;
	glob_t found;

	dump_drop();
	prog_inst(&mistake, ISA_GPSIMD, 0xff);
	prog_inst(&mistake, ISA_GPSIMD, ISA_HALT);
	assert_int_equal(launch_now(FD, ctx_new(FD, 0), prog_load(FD, &mistake), NULL, 0), -EIO);
	usleep(200000);
	assert_int_not_equal(glob(dump_glob, 0, NULL, &found), 0);
	globfree(&found);
	assert_int_equal(launch_now(FD, ctx, prog_stall(FD), NULL, 0), -EIO);
	text = file_read_glob(dump_glob, path);
	assert_non_null(text);
	expect_line(text, "state: faulted\n");
	expect_line(text, "fault: 9 (deadlock: all engines wait for each other)");
	expect_line(text, "record 0: 9 (deadlock: all");
	dump_drop();
}

/* Waits up to 5 s for a uevent that has the text. */
static bool uevent_says(int sock, const char *want)
{
	struct pollfd fd = { .fd = sock, .events = POLLIN };
	char text[8192];

	while (poll(&fd, 1, 5000) > 0) {
		ssize_t n = recv(sock, text, sizeof(text), 0);

		if (n <= 0)
			return false;
		for (ssize_t i = 0; i < n; i += (ssize_t)strnlen(text + i, (size_t)(n - i)) + 1)
			if (!strncmp(text + i, want, strlen(want)))
				return true;
	}
	return false;
}

static void a_reset_by_the_driver_is_a_uevent(void **state)
{
	struct sockaddr_nl addr = { .nl_family = AF_NETLINK, .nl_groups = 1 };
	int sock = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_KOBJECT_UEVENT);

	(void)state;
	assert_true(sock >= 0);
	assert_int_equal(bind(sock, (struct sockaddr *)&addr, sizeof(addr)), 0);
	dev_debugfs_write("reset", "1");
	assert_true(uevent_says(sock, "WEDGED=none"));
	close(sock);
}

static long long device_number(const char *name)
{
	char pattern[256];

	snprintf(pattern, sizeof(pattern), "/sys/bus/pci/devices/%s/hwmon/hwmon*/%s",
		 dev_pci_address(), name);
	return file_number(pattern);
}

static void sensors_show_power_and_temperature(void **state)
{
	char pattern[256], path[256], *text;

	(void)state;
	snprintf(pattern, sizeof(pattern), "/sys/bus/pci/devices/%s/hwmon/hwmon*/name",
		 dev_pci_address());
	text = file_read_glob(pattern, path);
	assert_non_null(text);
	assert_string_equal(text, "neuron\n");
	for (int i = 1; i <= 2; i++) {
		char name[32];
		long long value;

		snprintf(name, sizeof(name), "power%d_input", i);
		value = device_number(name);
		assert_true(value > 0 && value <= 250000000);
		snprintf(name, sizeof(name), "temp%d_input", i);
		value = device_number(name);
		assert_true(value > 10000 && value < 120000);
	}
}

#define TREE "/sys/class/neuron_device/neuron*/"

static void the_tree_counts_what_happens(void **state)
{
	long long success = file_number(TREE "neuron_core1/stats/status/success/total");
	long long failure = file_number(TREE "neuron_core1/stats/status/failure/total");
	long long stuck = file_number(TREE "neuron_core1/stats/status/execute_sw_semaphore_error/"
					   "total");
	long long resets = file_number(TREE "neuron_core0/stats/other_info/reset_req_count/total");
	long long sum = 0, code = 0;
	struct drm_neuron_query_memory memory;
	uint32_t ctx = ctx_new(FD, 1), bo = bo_new(FD, 1 << 20, BO_HBM);
	char path[256], *text;

	(void)bo;
	assert_int_equal(launch_now(FD, ctx, prog_nop(FD), NULL, 0), 1);
	assert_int_equal(launch_now(FD, ctx, prog_stall(FD), NULL, 0), -EIO);
	assert_int_equal(file_number(TREE "neuron_core1/stats/status/success/total"), success + 1);
	assert_int_equal(file_number(TREE "neuron_core1/stats/status/failure/present"),
			 failure + 1);
	assert_int_equal(file_number(TREE "neuron_core1/stats/status/execute_sw_semaphore_error/"
					  "total"),
			 stuck + 1);
	assert_int_equal(file_number(TREE "core_count"), dev_info(FD).cores);
	for (uint32_t i = 0; i < dev_info(FD).cores; i++) {
		char pattern[256];

		snprintf(pattern, sizeof(pattern),
			 TREE "neuron_core%u/stats/memory_usage/device_mem/present", i);
		sum += file_number(pattern);
		snprintf(pattern, sizeof(pattern),
			 TREE "neuron_core%u/stats/memory_usage/device_mem/model_code/present", i);
		code += file_number(pattern);
	}
	memory = dev_memory(FD);
	assert_int_equal(sum, memory.hbm_used);
	assert_true(code > 0 && code < sum);
	assert_int_equal(file_number(TREE "stats/hardware/sram_ecc_uncorrected"), 0);
	assert_int_equal(file_number(TREE "stats/hardware/mem_ecc_uncorrected"), 0);
	text = file_read_glob(TREE "info/architecture/device_name", path);
	assert_non_null(text);
	assert_string_equal(text, "Trainium2\n");
	dev_debugfs_write("reset", "1");
	assert_int_equal(file_number(TREE "neuron_core0/stats/other_info/reset_req_count/total"),
			 resets + 1);
	dump_drop();
}

const struct CMUnitTest report_tests[] = {
	TEST(a_time_out_leaves_a_dump),		 TEST(a_deadlock_leaves_a_dump_a_mistake_does_not),
	TEST(a_reset_by_the_driver_is_a_uevent), TEST(sensors_show_power_and_temperature),
	TEST(the_tree_counts_what_happens),
};
const size_t report_tests_count = sizeof(report_tests) / sizeof(report_tests[0]);
