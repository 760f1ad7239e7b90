// SPDX-License-Identifier: Apache-2.0
/* Fixture of the tests that break the device. */
#define _GNU_SOURCE
#include "fault.h"
#include "groups.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* --- the control socket and the log ------------------------------------------ */

void inject(const char *command)
{
	char answer[4096];
	size_t n = 0;
	int fd = open(getenv("NEURON_CONTROL"), O_RDWR | O_NOCTTY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(dprintf(fd, "%s\n", command), strlen(command) + 1);
	while (n < sizeof(answer) - 1 && (!n || answer[n - 1] != '\n')) {
		ssize_t got = read(fd, answer + n, sizeof(answer) - 1 - n);

		assert_true(got > 0);
		n += (size_t)got;
	}
	answer[n] = 0;
	close(fd);
	if (strncmp(answer, "ok", 2))
		fail_msg("'%s': %s", command, answer);
}

void expect_log(struct fault_fixture *f, const char *text)
{
	char line[8192];

	for (int i = 0; i < WAIT_MS / 10; i++) {
		ssize_t n = read(f->log, line, sizeof(line) - 1);

		if (n > 0) {
			line[n] = 0;
			if (strstr(line, text))
				return;
		} else if (errno != EAGAIN && errno != EPIPE) {
			fail_msg("/dev/kmsg: %s", strerror(errno));
		} else {
			usleep(10000);
		}
	}
	fail_msg("the kernel's log does not say '%s'", text);
}

unsigned long fault_count(struct fault_fixture *f, const char *line_start, const char *word)
{
	char path[128], line[256];
	unsigned long value = 0;
	bool found = false;
	FILE *file;

	snprintf(path, sizeof(path), "/sys/kernel/debug/accel/%s/faults", f->address);
	file = fopen(path, "r");
	assert_non_null(file);
	while (!found && fgets(line, sizeof(line), file)) {
		char *at = strstr(line, word);

		if (strncmp(line, line_start, strlen(line_start)) || !at)
			continue;
		value = strtoul(at + strlen(word), NULL, 10);
		found = true;
	}
	fclose(file);
	if (!found)
		fail_msg("no '%s' of '%s' in %s", word, line_start, path);
	return value;
}

/* --- fixture ------------------------------------------------------------------ */

void rebind(const char *address, const char *timeout_ms)
{
	dev_param_write("timeout_ms", timeout_ms);
	assert_ok(dev_driver_write("unbind", address));
	assert_ok(dev_driver_write("bind", address));
}

int fault_group_setup(void **state)
{
	(void)state;
	if (getenv("NEURON_CONTROL"))
		rebind(dev_pci_address(), TIMEOUT_MS);
	return 0;
}

int fault_group_teardown(void **state)
{
	(void)state;
	if (getenv("NEURON_CONTROL"))
		rebind(dev_pci_address(), "10000");
	return 0;
}

void fault_close(int *fd)
{
	if (*fd >= 0)
		dev_close(*fd);
	*fd = -1;
}

void neighbour_end(struct neighbour *n)
{
	if (n->p)
		assert_ok(munmap(n->p, NEIGHBOUR_BYTES));
	n->p = NULL;
	fault_close(&n->fd);
}

int fault_setup(void **state)
{
	struct fault_fixture *f = calloc(1, sizeof(*f));

	if (!f)
		return -1;
	f->fd = -1;
	f->neighbour.fd = -1;
	*state = f;
	if (!getenv("NEURON_CONTROL"))
		return 0;
	snprintf(f->address, sizeof(f->address), "%s", dev_pci_address());
	f->log = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	assert_true(f->log >= 0);
	assert_int_not_equal(lseek(f->log, 0, SEEK_END), -1);
	f->fd = dev_open();
	f->hbm_used = dev_memory(f->fd).hbm_used;
	return 0;
}

int fault_teardown(void **state)
{
	struct fault_fixture *f = *state;
	char node[64];
	int fd;

	if (getenv("NEURON_CONTROL")) {
		inject("clear");
		neighbour_end(&f->neighbour);
		fault_close(&f->fd);
		close(f->log);
		/* A test that failed may leave a driver that has given the device up. */
		snprintf(node, sizeof(node), "/sys/bus/pci/devices/%s/accel", f->address);
		if (access(node, F_OK)) {
			dev_driver_write("unbind", f->address);
			assert_ok(dev_driver_write("bind", f->address));
		}
		fd = dev_open();
		dev_wait_hbm(fd, f->hbm_used);
		dev_close(fd);
	}
	free(f);
	return 0;
}

void need_control(void)
{
	if (!getenv("NEURON_CONTROL"))
		skip();
}

void assert_works(int fd)
{
	uint32_t ctx = ctx_new(fd, 0), program = prog_fill(fd, 2.5f, 16);
	uint32_t bo = bo_new(fd, TILE_PARTS * 64, BO_HBM);
	uint32_t host = bo_new(fd, TILE_PARTS * 64, BO_HOST | BO_MMAP);
	const float *p = bo_map(fd, host);

	assert_int_equal(launch_now(fd, ctx, program, &bo, 1), 1);
	copy_now(fd, host, 0, bo, 0, TILE_PARTS * 64);
	assert_true(p[0] == 2.5f && p[TILE_PARTS * 16 - 1] == 2.5f);
	bo_unmap(fd, host, (void *)p);
	bo_close(fd, host);
	bo_close(fd, bo);
	ctx_close(fd, ctx);
	prog_unload(fd, program);
}

int wait_status(int fd, uint32_t sync)
{
	assert_ok(sync_wait(fd, sync, 0, WAIT_MS));
	return sync_status(fd, sync);
}

void neighbour_new(struct neighbour *n, uint32_t core)
{
	n->fd = dev_open();
	n->ctx = ctx_new(n->fd, core);
	n->program = prog_fill(n->fd, NEIGHBOUR_VALUE, 16);
	for (int i = 0; i < 2; i++)
		n->bo[i] = bo_new(n->fd, NEIGHBOUR_BYTES, BO_HBM);
	n->host = bo_new(n->fd, NEIGHBOUR_BYTES, BO_HOST | BO_MMAP);
	n->p = bo_map(n->fd, n->host);
	n->sync = sync_new(n->fd);
	assert_int_equal(launch_now(n->fd, n->ctx, n->program, &n->bo[0], 1), 1);
	copy_now(n->fd, n->host, 0, n->bo[1], 0, NEIGHBOUR_BYTES); /* its scrub is over */
}

void neighbour_goes_on(const struct neighbour *n)
{
	assert_ok(launch(n->fd, n->ctx, n->program, &n->bo[1], 1, n->sync));
}

void assert_neighbour_unharmed(const struct neighbour *n)
{
	assert_int_equal(wait_status(n->fd, n->sync), 1);
	assert_int_equal(ctx_state(n->fd, n->ctx).state, DRM_NEURON_CTX_OK);
	assert_int_equal(ctx_state(n->fd, n->ctx).launches, 2);
	for (int i = 0; i < 2; i++) {
		memset(n->p, 0, NEIGHBOUR_BYTES);
		copy_now(n->fd, n->host, 0, n->bo[i], 0, NEIGHBOUR_BYTES);
		for (size_t k = 0; k < NEIGHBOUR_BYTES / sizeof(float); k++)
			assert_true(n->p[k] == NEIGHBOUR_VALUE);
	}
}
