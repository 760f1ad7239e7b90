// SPDX-License-Identifier: Apache-2.0
/*
 * Resets of the whole device: of the function or the bus through sysfs, after a bus error, and the
 * driver's own. What must outlive them, what may not, and that nobody notices more than that.
 */
#define _GNU_SOURCE
#include "dev.h"
#include "groups.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB (1ull << 20)

/* File of the device, or of the port above it, in sysfs. */
static void pci_path(char path[256], const char *name)
{
	snprintf(path, 256, "/sys/bus/pci/devices/%s/%s", dev_pci_address(), name);
}

static int pci_write(const char *name, const char *value)
{
	int fd, ret = 0;
	char path[256];

	pci_path(path, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, value, strlen(value)) != (ssize_t)strlen(value))
		ret = -errno;
	close(fd);
	return ret;
}

static void reset_by(const char *method)
{
	assert_ok(pci_write("reset_method", method));
	assert_ok(pci_write("reset", "1"));
}

static void reset_flr(void)
{
	reset_by("flr");
}

static void reset_bus(void)
{
	reset_by("bus");
	assert_ok(pci_write("reset_method", "default"));
}

static void reset_driver(void)
{
	dev_debugfs_write("reset", "1");
}

/* What /dev/aer_inject takes. */
struct aer_error {
	uint8_t bus, dev, fn;
	uint32_t uncorrected, corrected, header[4], domain;
};

#define AER_DLP 0x10u /* data link protocol error, fatal */

/* A link error that the port above the device sees. The PCI core resets the bus below. */
static void reset_bus_error(void)
{
	unsigned int domain, bus, dev, fn;
	char path[256], real[4096], *port;
	struct aer_error error = { .uncorrected = AER_DLP };
	int fd;

	pci_path(path, "..");
	assert_non_null(realpath(path, real));
	port = strrchr(real, '/') + 1;
	assert_int_equal(sscanf(port, "%x:%x:%x.%x", &domain, &bus, &dev, &fn), 4);
	error.domain = domain;
	error.bus = (uint8_t)bus;
	error.dev = (uint8_t)dev;
	error.fn = (uint8_t)fn;
	fd = open("/dev/aer_inject", O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, &error, sizeof(error)), sizeof(error));
	close(fd);
}

/* Everything in flight: a launch that never ends, launches behind it, copies. */
struct life {
	uint32_t ctx, fill, stuck, behind, copied;
	uint32_t kept, hbm, host;
	uint8_t *bytes; /* of host */
};

#define KEPT_BYTES (TILE_PARTS * 4 * 16)

/* Launches of our context that the device was ever given. */
static unsigned int rung(uint32_t ctx)
{
	unsigned int pid, id, tail, found = 0;
	char path[256], line[256];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/kernel/debug/accel/%s/contexts", dev_pci_address());
	f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "core %*u queue %*u: pid %u context %u state %*u head %*u tail %u",
			   &pid, &id, &tail) == 3 &&
		    pid == (unsigned int)getpid() && id == ctx)
			found = tail;
	fclose(f);
	return found;
}

/* What has not reached the device is not lost with it but cancelled. */
static void wait_rung(uint32_t ctx, unsigned int launches)
{
	for (int i = 0; rung(ctx) < launches; i++) {
		assert_true(i < 10000);
		usleep(1000);
	}
}

static void life_start(int fd, struct life *l)
{
	uint32_t stall = prog_stall(fd), nop = prog_nop(fd);

	l->fill = prog_fill(fd, 5, 16);
	l->ctx = ctx_new(fd, 0);
	l->kept = bo_new(fd, KEPT_BYTES, BO_HBM);
	l->hbm = bo_new(fd, 32 * MIB, BO_HBM);
	l->host = bo_new(fd, 32 * MIB, BO_HOST | BO_MMAP);
	l->bytes = bo_map(fd, l->host);
	l->stuck = sync_new(fd);
	l->behind = sync_new(fd);
	l->copied = sync_new(fd);
	assert_int_equal(launch_now(fd, l->ctx, l->fill, &l->kept, 1), 1);
	for (uint64_t i = 0; i < 32 * MIB; i++)
		l->bytes[i] = (uint8_t)(i * 7 >> 8);
	assert_ok(launch(fd, l->ctx, stall, NULL, 0, l->stuck));
	assert_ok(launch(fd, l->ctx, nop, NULL, 0, l->behind));
	wait_rung(l->ctx, 2);
	for (int i = 0; i < 3; i++)
		assert_ok(copy_start(fd, l->hbm, 0, l->host, 0, 32 * MIB, l->copied));
}

static void life_after(int fd, struct life *l)
{
	struct drm_neuron_ctx_state state;
	float *f;

	/* The context is lost, and says so. */
	assert_ok(sync_wait(fd, l->stuck, 0, 1000));
	assert_int_equal(sync_status(fd, l->stuck), -EIO);
	assert_ok(sync_wait(fd, l->behind, 0, 1000));
	assert_int_equal(sync_status(fd, l->behind), -ECANCELED);
	state = ctx_state(fd, l->ctx);
	assert_int_equal(state.state, DRM_NEURON_CTX_INNOCENT);
	assert_int_equal(state.launches, 1);
	assert_errno(launch(fd, l->ctx, l->fill, &l->kept, 1, 0), EIO);
	ctx_close(fd, l->ctx);

	/* Copies, buffers and programs are not. */
	assert_ok(sync_wait(fd, l->copied, 0, 20000));
	assert_int_equal(sync_status(fd, l->copied), 1);
	memset(l->bytes, 0, 32 * MIB);
	copy_now(fd, l->host, 0, l->hbm, 0, 32 * MIB);
	for (uint64_t i = 0; i < 32 * MIB; i++)
		if (l->bytes[i] != (uint8_t)(i * 7 >> 8))
			fail_msg("byte %llu is 0x%x", (unsigned long long)i, l->bytes[i]);
	copy_now(fd, l->host, 0, l->kept, 0, KEPT_BYTES);
	f = (float *)(void *)l->bytes;
	for (unsigned int i = 0; i < KEPT_BYTES / 4; i++)
		assert_true(f[i] == 5);
	l->ctx = ctx_new(fd, 0);
	assert_int_equal(launch_now(fd, l->ctx, l->fill, &l->hbm, 1), 1);
	bo_unmap(fd, l->host, l->bytes);
}

static void loses_contexts_only(int fd, void (*reset)(void))
{
	struct life l;

	dev_debugfs_write("stall_detect", "0");
	life_start(fd, &l);
	reset();
	life_after(fd, &l);
}

static void a_function_reset_loses_contexts_only(void **state)
{
	loses_contexts_only(FD, reset_flr);
}

static void a_reset_by_the_driver_loses_contexts_only(void **state)
{
	loses_contexts_only(FD, reset_driver);
}

static void a_bus_reset_loses_contexts_only(void **state)
{
	loses_contexts_only(FD, reset_bus);
}

static void a_bus_error_loses_contexts_only(void **state)
{
	if (access("/dev/aer_inject", W_OK))
		skip();
	loses_contexts_only(FD, reset_bus_error);
}

/* One user of many, who starts a new context when the device lost its last. */
struct user {
	pthread_t thread;
	uint32_t core;
	_Atomic bool *stop;
	unsigned int rounds, lost;
	const char *error;
};

static const char *user_round(struct user *u, int fd, uint32_t *ctx, uint32_t program,
			      uint32_t bytes, uint32_t host[2], uint8_t *map[2])
{
	uint32_t bo[2], size = TILE_PARTS * bytes;
	const char *error = NULL;
	int status;

	bo[0] = bo_new(fd, size, BO_HBM);
	bo[1] = bo_new(fd, size, BO_HBM);
	memset(map[0], (int)(u->rounds & 0xff), size);
	copy_now(fd, bo[0], 0, host[0], 0, size);
	do {
		/* Dead before the submit, or with it. */
		uint32_t sync = sync_new(fd);

		status = launch(fd, *ctx, program, bo, 2, sync);
		if (!status) {
			assert_ok(sync_wait(fd, sync, 0, 20000));
			status = sync_status(fd, sync);
		}
		sync_close(fd, sync);
		if (status == 1)
			break;
		if (ctx_state(fd, *ctx).state != DRM_NEURON_CTX_INNOCENT)
			error = "a launch failed for another reason than a reset";
		u->lost++;
		ctx_close(fd, *ctx);
		*ctx = ctx_new(fd, u->core);
	} while (!error);
	copy_now(fd, host[1], 0, bo[1], 0, size);
	if (memcmp(map[0], map[1], size))
		error = "wrong bytes";
	bo_close(fd, bo[0]);
	bo_close(fd, bo[1]);
	return error;
}

static void *user_thread(void *arg)
{
	const uint32_t bytes = 512, size = TILE_PARTS * bytes;
	struct user *u = arg;
	int fd = dev_open();
	uint32_t ctx = ctx_new(fd, u->core), program = prog_through_sbuf(fd, bytes);
	uint32_t host[2] = { bo_new(fd, size, BO_HOST | BO_MMAP),
			     bo_new(fd, size, BO_HOST | BO_MMAP) };
	uint8_t *map[2] = { bo_map(fd, host[0]), bo_map(fd, host[1]) };

	while (!*u->stop && !u->error) {
		u->error = user_round(u, fd, &ctx, program, bytes, host, map);
		u->rounds++;
	}
	bo_unmap(fd, host[0], map[0]);
	bo_unmap(fd, host[1], map[1]);
	close(fd);
	return NULL;
}

static void resets_under_load_spoil_nothing(void **state)
{
	enum { USERS = 3, RESETS = 6 };
	struct user users[USERS] = {};
	unsigned int lost = 0;
	_Atomic bool stop = false;

	(void)state;
	for (uint32_t i = 0; i < USERS; i++) {
		users[i].core = i % 2;
		users[i].stop = &stop;
		assert_ok(pthread_create(&users[i].thread, NULL, user_thread, &users[i]));
	}
	for (int i = 0; i < RESETS; i++) {
		usleep(300000);
		if (i % 2)
			reset_driver();
		else
			reset_flr();
	}
	usleep(300000);
	stop = true;
	for (uint32_t i = 0; i < USERS; i++) {
		assert_ok(pthread_join(users[i].thread, NULL));
		if (users[i].error)
			fail_msg("user %u, round %u: %s", i, users[i].rounds, users[i].error);
		assert_true(users[i].rounds > 1);
		lost += users[i].lost;
	}
	print_message("%u contexts lost in %d resets\n", lost, RESETS);
}

const struct CMUnitTest reset_tests[] = {
	TEST(a_function_reset_loses_contexts_only), TEST(a_reset_by_the_driver_loses_contexts_only),
	TEST(a_bus_reset_loses_contexts_only),	    TEST(a_bus_error_loses_contexts_only),
	TEST(resets_under_load_spoil_nothing),
};
const size_t reset_tests_count = sizeof(reset_tests) / sizeof(reset_tests[0]);
