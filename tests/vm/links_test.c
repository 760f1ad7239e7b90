// SPDX-License-Identifier: Apache-2.0
/* Place of a device among others, and copies over NeuronLink. */
#include "groups.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <xf86drm.h>

#define BYTES (1u << 20)

static struct drm_neuron_query_topology place(int fd)
{
	struct drm_neuron_query_topology topology = { 0 };
	struct drm_neuron_query args = { .block = DRM_NEURON_QUERY_TOPOLOGY,
					 .size = sizeof(topology),
					 .ptr = (uintptr_t)&topology };

	assert_ok(neuron_call(fd, DRM_IOCTL_NEURON_QUERY, &args));
	assert_int_equal(args.size, sizeof(topology));
	return topology;
}

static bool is_neighbour(int fd, int other)
{
	const struct drm_neuron_query_topology here = place(fd);
	const uint64_t serial = dev_info(other).serial;

	for (int i = 0; i < 4; i++)
		if (here.neighbour[i] == serial)
			return true;
	return false;
}

static void a_device_knows_its_place(void **state)
{
	const struct drm_neuron_query_topology here = place(FD);
	struct drm_neuron_query args = { .block = DRM_NEURON_QUERY_TOPOLOGY, .index = 1 };
	const uint64_t serial = dev_info(FD).serial;

	assert_true(here.routing_id < 16 && here.number < 16);
	assert_int_equal(here.cores_joined, dev_arch() >= 3 ? 2 : 1);
	assert_int_equal(here.pad, 0);
	/* No gaps, nobody twice, not itself. */
	for (int i = 0; i < 4; i++) {
		assert_int_not_equal(here.neighbour[i], serial);
		assert_false(i && here.neighbour[i] && !here.neighbour[i - 1]);
		for (int j = 0; j < i; j++)
			assert_false(here.neighbour[i] && here.neighbour[i] == here.neighbour[j]);
	}
	assert_errno(neuron_call(FD, DRM_IOCTL_NEURON_QUERY, &args), EINVAL);
}

/* The buffer of another device, here. */
static uint32_t import(int fd, int owner, uint32_t bo)
{
	uint32_t handle;
	int buf;

	assert_ok(drmPrimeHandleToFD(owner, bo, DRM_CLOEXEC | DRM_RDWR, &buf));
	assert_ok(drmPrimeFDToHandle(fd, buf, &handle));
	close(buf);
	return handle;
}

static void neighbours_copy_without_the_host(void **state)
{
	const uint32_t flags = BO_HBM | BO_MMAP;
	const int other = dev_open_other(FD);
	uint32_t mine, theirs, imported;
	uint8_t *here, *there;

	if (other < 0 || !is_neighbour(FD, other)) {
		if (other >= 0)
			dev_close(other);
		skip();
	}
	assert_true(is_neighbour(other, FD));
	mine = bo_new(FD, BYTES, flags);
	theirs = bo_new(other, BYTES, flags);
	imported = import(FD, other, theirs);
	here = bo_map(FD, mine);
	there = bo_map(other, theirs);
	for (uint32_t i = 0; i < BYTES; i++)
		there[i] = (uint8_t)(i * 7 + i / 251);
	/* Theirs to mine, odd offsets; then part of it back to where it was not. */
	copy_now(FD, mine, 3, imported, 0, BYTES - 3);
	assert_memory_equal(here + 3, there, BYTES - 3);
	assert_int_equal(here[0] | here[1] | here[2], 0);
	memset(there, 0, BYTES);
	copy_now(FD, imported, 4096, mine, 3, 100001);
	assert_memory_equal(there + 4096, here + 3, 100001);
	assert_int_equal(there[4095] | there[4096 + 100001], 0);
	bo_unmap(FD, mine, here);
	bo_unmap(other, theirs, there);
	/* The owner's handle may go first. */
	bo_close(other, theirs);
	copy_now(FD, mine, 0, imported, 4096, 4096);
	bo_close(FD, imported);
	bo_close(FD, mine);
	dev_close(other);
}

const struct CMUnitTest links_tests[] = {
	TEST(a_device_knows_its_place),
	TEST(neighbours_copy_without_the_host),
};
const size_t links_tests_count = sizeof(links_tests) / sizeof(links_tests[0]);
