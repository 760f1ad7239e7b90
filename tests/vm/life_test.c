// SPDX-License-Identifier: Apache-2.0
/* Ends of all kinds: closing with work in flight, kill -9, a device that is taken away. */
#define _GNU_SOURCE
#include "dev.h"
#include "groups.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xf86drm.h>

#define MIB (1ull << 20)

/*
 * Everything at once: launches on two cores, the first ones hanging or not, copies that wait for
 * them and copies that do not. Two buffers stay mapped, which keeps the file open.
 */
static void make_busy(int fd, bool hang, void *mapped[2])
{
	uint32_t program = hang ? prog_stall(fd) : prog_fill(fd, 3, 256), nop = prog_nop(fd);
	uint32_t host = bo_new(fd, 32 * MIB, BO_HOST | BO_MMAP);
	uint32_t hbm = bo_new(fd, 32 * MIB, BO_HBM | BO_MMAP);
	unsigned int slots = hang ? 0 : 1;

	for (uint32_t i = 0; i < 4; i++) {
		uint32_t ctx = ctx_new(fd, i % 2), sync = sync_new(fd);
		struct drm_neuron_sync wait = { .handle = sync };
		struct drm_neuron_copy args = {
			.src = host,
			.dst = hbm,
			.size = 4096,
			.in = ARRAY(&wait, 1),
		};

		assert_ok(launch(fd, ctx, program, &hbm, slots, sync));
		for (int j = 0; j < 40; j++)
			assert_ok(launch(fd, ctx, nop, NULL, 0, 0));
		/* Waits for the launch, which may never end by itself. */
		assert_ok(neuron_call(fd, DRM_IOCTL_NEURON_COPY, &args));
	}
	for (int i = 0; i < 8; i++)
		assert_ok(copy_start(fd, hbm, 0, host, 0, 32 * MIB, 0));
	mapped[0] = bo_map(fd, hbm);
	mapped[1] = bo_map(fd, host);
	memset(mapped[0], 1, 64 * 1024);
	memset(mapped[1], 1, 64 * 1024);
}

static void assert_still_works(int fd)
{
	uint32_t ctx = ctx_new(fd, 0), nop = prog_nop(fd);

	assert_int_equal(launch_now(fd, ctx, nop, NULL, 0), 1);
	ctx_close(fd, ctx);
	prog_unload(fd, nop);
}

static void closing_with_work_in_flight(void **state)
{
	uint64_t used = dev_memory(FD).hbm_used;

	for (int i = 0; i < 3; i++) {
		int fd = dev_open();
		void *mapped[2];

		make_busy(fd, false, mapped);
		assert_ok(munmap(mapped[0], 32 * MIB));
		assert_ok(munmap(mapped[1], 32 * MIB));
		dev_close(fd);
		assert_still_works(FD);
	}
	dev_wait_hbm(FD, used);
}

/* One of several processes that use the device at once: nobody sees another's bytes. */
static void use_device(uint32_t seed, uint32_t rounds)
{
	const uint32_t bytes = 512, size = TILE_PARTS * bytes;
	int fd = dev_open();
	uint32_t program = prog_through_sbuf(fd, bytes), ctx = ctx_new(fd, seed % 2);
	uint32_t in = bo_new(fd, size, BO_HOST | BO_MMAP),
		 out = bo_new(fd, size, BO_HOST | BO_MMAP);
	uint8_t *p = bo_map(fd, in), *q = bo_map(fd, out);

	for (uint32_t round = 0; round < rounds; round++) {
		uint32_t bo[2] = { bo_new(fd, size, BO_HBM), bo_new(fd, size, BO_HBM) };

		copy_now(fd, out, 0, bo[1], 0, size);
		for (uint32_t i = 0; i < size; i++)
			if (q[i])
				fail_msg("byte %u of a new buffer is 0x%x", i, q[i]);
		memset(p, (int)(seed * 31 + round) & 0xff, size);
		copy_now(fd, bo[0], 0, in, 0, size);
		assert_int_equal(launch_now(fd, ctx, program, bo, 2), 1);
		copy_now(fd, out, 0, bo[1], 0, size);
		assert_memory_equal(p, q, size);
		bo_close(fd, bo[0]);
		bo_close(fd, bo[1]);
	}
	dev_close(fd);
}

static void processes_share_the_device(void **state)
{
	enum { PROCESSES = 6, KILLED = 2 };
	int status, good = 0;
	pid_t pid;

	(void)state;
	for (uint32_t i = 0; i < PROCESSES; i++) {
		pid = fork();
		if (!pid) {
			use_device(i + 1, i < KILLED ? UINT32_MAX : 25);
			_exit(0);
		}
		assert_true(pid > 0);
		if (i < KILLED) {
			usleep(100000);
			assert_ok(kill(pid, SIGKILL));
		}
	}
	while (wait(&status) > 0)
		good += WIFEXITED(status) && !WEXITSTATUS(status);
	assert_int_equal(good, PROCESSES - KILLED);
}

/* used: HBM of others. */
static void kill_9(int fd, bool hang, uint64_t used)
{
	int pipe_fd[2], status;
	void *mapped[2];
	char byte;
	pid_t pid;

	assert_ok(pipe(pipe_fd));
	pid = fork();
	if (!pid) {
		make_busy(dev_open(), hang, mapped);
		if (write(pipe_fd[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(pipe_fd[1]);
	assert_int_equal(read(pipe_fd[0], &byte, 1), 1);
	close(pipe_fd[0]);
	assert_ok(kill(pid, SIGKILL));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	dev_wait_hbm(fd, used);
	assert_still_works(fd);
}

static void killing_a_busy_process_frees_all(void **state)
{
	uint64_t used = dev_memory(FD).hbm_used;

	for (int i = 0; i < 3; i++)
		kill_9(FD, false, used);
}

static void killing_a_hung_process_frees_all(void **state)
{
	uint64_t used = dev_memory(FD).hbm_used;

	dev_debugfs_write("stall_detect", "0");
	for (int i = 0; i < 3; i++)
		kill_9(FD, true, used);
	dev_debugfs_write("stall_detect", "1");
}

static void fdinfo_counts_time_and_memory(void **state)
{
	uint32_t bo = bo_new(FD, 4 * MIB, BO_HBM), host = bo_new(FD, MIB, BO_HOST);
	uint32_t fill = prog_fill(FD, 1, 256);
	char path[64], text[4096] = "", line[64];
	unsigned long long ns = 0;
	FILE *file;
	size_t n;

	assert_int_equal(launch_now(FD, ctx_new(FD, 0), fill, &bo, 1), 1);
	copy_now(FD, bo, 0, host, 0, MIB);
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", FD);
	file = fopen(path, "r");
	assert_non_null(file);
	n = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	assert_true(n > 0);
	assert_non_null(strstr(text, "drm-driver:\tneuron\n"));
	assert_non_null(strstr(text, "drm-engine-core:"));
	assert_int_equal(sscanf(strstr(text, "drm-engine-core:"), "drm-engine-core: %llu ns", &ns),
			 1);
	assert_true(ns > 0);
	assert_int_equal(sscanf(strstr(text, "drm-engine-copy:"), "drm-engine-copy: %llu ns", &ns),
			 1);
	assert_true(ns > 0);
	assert_non_null(strstr(text, "drm-resident-hbm:\t"));
	assert_non_null(strstr(text, "drm-resident-memory:\t1 MiB\n"));
	assert_non_null(strstr(text, "neuron-launches:\t1\n"));
	assert_non_null(strstr(text, "neuron-core-0:\t"));
	assert_null(strstr(text, "neuron-core-1:\t"));
	assert_non_null(strstr(text, "neuron-programs:\t1\n"));
	snprintf(line, sizeof(line), "neuron-program-%u:\t4096 1 fill\n", fill);
	assert_non_null(strstr(text, line));
}

static sigjmp_buf bus_error;

static void on_bus_error(int signal)
{
	siglongjmp(bus_error, signal);
}

static void unbind(const char *address)
{
	assert_ok(dev_driver_write("unbind", address));
}

static void bind_again(const char *address)
{
	assert_ok(dev_driver_write("bind", address));
}

static void unplug(const char *address)
{
	char path[96];

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/remove", address);
	file_write(path, "1");
}

static void plug_in(const char *address)
{
	(void)address;
	file_write("/sys/bus/pci/rescan", "1");
}

/* With everything in flight: fences end, calls fail, mappings fault; then it is back. */
static void take_away(void (*away)(const char *address), void (*back)(const char *address))
{
	struct sigaction action = { .sa_handler = on_bus_error }, before;
	uint32_t ctx, stall, sync, bo, copied;
	struct drm_neuron_query args = { .block = 0 };
	volatile uint8_t *p;
	void *mapped[2];
	char address[32];
	int fd = dev_open();

	snprintf(address, sizeof(address), "%s", dev_pci_address());
	dev_debugfs_write("stall_detect", "0");
	ctx = ctx_new(fd, 0);
	stall = prog_stall(fd);
	sync = sync_new(fd);
	copied = sync_new(fd);
	bo = bo_new(fd, 32 * MIB, BO_HBM | BO_MMAP);
	p = bo_map(fd, bo);
	p[0] = 1;
	make_busy(fd, true, mapped);
	assert_ok(launch(fd, ctx, stall, NULL, 0, sync));
	assert_ok(copy_start(fd, bo, 0, bo_new(fd, MIB, BO_HOST), 0, MIB, copied));

	away(address);

	/* The node is gone, but these do not ask the device. */
	assert_errno(neuron_call(fd, DRM_IOCTL_NEURON_QUERY, &args), ENODEV);
	assert_ok(sigaction(SIGBUS, &action, &before));
	if (!sigsetjmp(bus_error, 1)) {
		p[8 * MIB] = 1; /* not touched before: no page yet */
		fail_msg("a mapping of a device that is gone can be written");
	}
	assert_ok(sigaction(SIGBUS, &before, NULL));
	/* With the last of the file its number is free for the device that comes back. */
	assert_ok(munmap((void *)p, 32 * MIB));
	assert_ok(munmap(mapped[0], 32 * MIB));
	assert_ok(munmap(mapped[1], 32 * MIB));
	dev_close(fd);

	back(address);
	fd = dev_open();
	assert_int_equal(dev_memory(fd).hbm_used, 0);
	assert_still_works(fd);
	dev_close(fd);
}

static void the_device_may_be_taken_away(void **state)
{
	(void)state;
	take_away(unbind, bind_again);
}

static void the_device_may_be_unplugged(void **state)
{
	(void)state;
	take_away(unplug, plug_in);
}

const struct CMUnitTest life_tests[] = {
	TEST(closing_with_work_in_flight),
	TEST(processes_share_the_device),
	TEST(killing_a_busy_process_frees_all),
	TEST(killing_a_hung_process_frees_all),
	TEST(fdinfo_counts_time_and_memory),
	/* Without the fixture, whose file would keep the old device. */
	cmocka_unit_test(the_device_may_be_taken_away),
	cmocka_unit_test(the_device_may_be_unplugged),
};
const size_t life_tests_count = sizeof(life_tests) / sizeof(life_tests[0]);
