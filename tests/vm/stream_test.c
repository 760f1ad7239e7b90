// SPDX-License-Identifier: Apache-2.0
/* The stream of events of a context, as a profiler reads it. */
#include "dev.h"
#include "groups.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>
#include <xf86drm.h>

#define LAUNCH 0xff

/* Volatile, so that the compiler does not see what it is. */
static void *volatile nowhere = (void *)8;

static int stream_try(int fd, uint32_t ctx, uint32_t flags, uint32_t entries, int *stream)
{
	struct drm_neuron_stream_open args = { .ctx = ctx, .flags = flags, .entries = entries };
	int ret = neuron_call(fd, DRM_IOCTL_NEURON_STREAM_OPEN, &args);

	*stream = ret ? -1 : args.fd;
	return ret;
}

static int stream_new(int fd, uint32_t ctx, uint32_t flags, uint32_t entries)
{
	int stream;

	assert_ok(stream_try(fd, ctx, flags, entries, &stream));
	return stream;
}

/* Reads all that is there. */
static unsigned int events(int stream, struct drm_neuron_event *out, unsigned int most)
{
	ssize_t bytes = read(stream, out, most * sizeof(*out));

	if (bytes < 0)
		assert_int_equal(errno, EAGAIN);
	return bytes < 0 ? 0 : (unsigned int)bytes / sizeof(*out);
}

static void arguments_of_a_stream_are_checked(void **state)
{
	uint32_t ctx = ctx_new(FD, 0), dead = ctx_new(FD, 0);
	struct drm_neuron_stream_open args = { .ctx = ctx, .entries = 100 };
	struct drm_neuron_event event;
	int stream;

	assert_errno(stream_try(FD, 999, 0, 0, &stream), ENOENT);
	assert_errno(stream_try(FD, ctx, 2, 0, &stream), EINVAL);
	assert_errno(stream_try(FD, ctx, 0, DRM_NEURON_STREAM_ENTRIES_MAX + 1, &stream), EINVAL);
	assert_int_equal(launch_now(FD, dead, prog_stall(FD), NULL, 0), -EIO);
	assert_errno(stream_try(FD, dead, 0, 0, &stream), EIO);

	assert_ok(neuron_call(FD, DRM_IOCTL_NEURON_STREAM_OPEN, &args));
	assert_int_equal(args.entries, 128);
	assert_true(fcntl(args.fd, F_GETFD) & FD_CLOEXEC);
	assert_errno(stream_try(FD, ctx, 0, 0, &stream), EBUSY);
	assert_true(read(args.fd, &event, sizeof(event) - 1) == -1 && errno == EINVAL);
	assert_true(write(args.fd, &event, sizeof(event)) == -1 && errno == EBADF);
	close(args.fd);
	close(stream_new(FD, ctx, 0, 0));
}

static void every_instruction_is_told_of(void **state)
{
	uint32_t ctx = ctx_new(FD, 0), other = ctx_new(FD, 0), nop = prog_nop(FD);
	uint32_t fill = prog_fill(FD, 1, 16), bo = bo_new(FD, TILE_PARTS * 64, BO_HBM);
	struct drm_neuron_event ev[64];
	unsigned int insts[5] = { 0 }, n, launches = 0;
	uint64_t before, device_ns;
	int stream;

	/* One that came before the stream is not seen, nor are those of another context. */
	assert_int_equal(launch_now(FD, ctx, nop, NULL, 0), 1);
	before = ctx_state(FD, ctx).device_ns;
	stream = stream_new(FD, ctx, DRM_NEURON_STREAM_NONBLOCK, 0);
	assert_true(read(stream, ev, sizeof(ev)) == -1 && errno == EAGAIN);
	assert_int_equal(launch_now(FD, other, nop, NULL, 0), 1);
	assert_int_equal(events(stream, ev, 64), 0);

	assert_int_equal(launch_now(FD, ctx, fill, &bo, 1), 1);
	assert_int_equal(launch_now(FD, ctx, nop, NULL, 0), 1);
	device_ns = ctx_state(FD, ctx).device_ns - before;
	n = events(stream, ev, 64);
	for (unsigned int i = 0; i < n; i++) {
		assert_int_equal(ev[i].launch, 1 + launches);
		assert_int_equal(ev[i].pad, 0);
		assert_int_equal(ev[i].lost, 0);
		assert_true(ev[i].end_ps >= ev[i].start_ps);
		if (ev[i].engine != LAUNCH) {
			assert_true(ev[i].engine < 5);
			insts[ev[i].engine]++;
			continue;
		}
		launches++;
		device_ns -= ev[i].end_ps / 1000 - ev[i].start_ps / 1000;
	}
	assert_int_equal(launches, 2);
	assert_int_equal(device_ns, 0);
	for (unsigned int e = 0; e < 5; e++) {
		uint64_t all = ctx_state(FD, ctx).insts[e];

		/* The first launch was a nop too: two instructions of the sync engine. */
		assert_int_equal(insts[e], e == ISA_SYNC ? all - 2 : all);
	}
	close(stream);
}

static void a_slow_reader_is_told_what_it_lost(void **state)
{
	uint32_t ctx = ctx_new(FD, 0), nop = prog_nop(FD);
	const unsigned int per_launch = 3, launches = 40;
	struct drm_neuron_event ev[32];
	int stream = stream_new(FD, ctx, DRM_NEURON_STREAM_NONBLOCK, 16);
	unsigned int n, lost = 0;

	for (unsigned int i = 0; i < launches; i++)
		assert_int_equal(launch_now(FD, ctx, nop, NULL, 0), 1);
	n = events(stream, ev, 32);
	assert_int_equal(n, 16);
	for (unsigned int i = 0; i < n; i++)
		lost += ev[i].lost;
	assert_int_equal(ev[0].lost, lost);
	assert_int_equal(lost + n, per_launch * launches);
	assert_int_equal(ev[n - 1].launch, launches - 1);
	assert_int_equal(ev[n - 1].engine, LAUNCH);

	/* A pointer that leads nowhere costs the events that it was for. */
	assert_int_equal(launch_now(FD, ctx, nop, NULL, 0), 1);
	assert_true(read(stream, nowhere, sizeof(ev)) == -1 && errno == EFAULT);
	assert_int_equal(launch_now(FD, ctx, nop, NULL, 0), 1);
	n = events(stream, ev, 32);
	assert_int_equal(n, per_launch);
	assert_int_equal(ev[0].lost, per_launch);
	close(stream);

	/* A second stream begins with what comes then. */
	assert_int_equal(launch_now(FD, ctx, nop, NULL, 0), 1);
	stream = stream_new(FD, ctx, DRM_NEURON_STREAM_NONBLOCK, 0);
	assert_int_equal(events(stream, ev, 32), 0);
	assert_int_equal(launch_now(FD, ctx, nop, NULL, 0), 1);
	assert_int_equal(events(stream, ev, 32), per_launch);
	assert_int_equal(ev[0].lost, 0);
	close(stream);
}

static void a_reader_waits_and_sees_the_end(void **state)
{
	uint32_t ctx = ctx_new(FD, 0), nop = prog_nop(FD), sync = sync_new(FD);
	int stream = stream_new(FD, ctx, 0, 0);
	struct pollfd p = { .fd = stream, .events = POLLIN };
	struct drm_neuron_event ev[8];

	assert_int_equal(poll(&p, 1, 0), 0);
	assert_ok(launch(FD, ctx, nop, NULL, 0, sync));
	assert_int_equal(poll(&p, 1, 10000), 1);
	assert_int_equal(p.revents, POLLIN);
	assert_true(read(stream, ev, sizeof(ev)) >= (ssize_t)sizeof(ev[0]));
	assert_ok(sync_wait(FD, sync, 0, 10000));

	ctx_close(FD, ctx);
	assert_int_equal(poll(&p, 1, 10000), 1);
	assert_true(p.revents & POLLHUP);
	assert_int_equal(read(stream, ev, sizeof(ev)), 0);
	close(stream);
}

/* The stream is no reason for the context, its memory or the file to stay. */
static void a_stream_may_outlive_its_file(void **state)
{
	const uint64_t used = dev_memory(FD).hbm_used;
	int fd = dev_open();
	uint32_t ctx = ctx_new(fd, 0);
	int stream = stream_new(fd, ctx, 0, 0);
	struct drm_neuron_event ev[8];
	ssize_t bytes;

	assert_int_equal(launch_now(fd, ctx, prog_nop(fd), NULL, 0), 1);
	dev_close(fd);
	dev_wait_hbm(FD, used);
	do
		bytes = read(stream, ev, sizeof(ev));
	while (bytes > 0);
	assert_int_equal(bytes, 0);
	close(stream);
}

const struct CMUnitTest stream_tests[] = {
	TEST(arguments_of_a_stream_are_checked),  TEST(every_instruction_is_told_of),
	TEST(a_slow_reader_is_told_what_it_lost), TEST(a_reader_waits_and_sees_the_end),
	TEST(a_stream_may_outlive_its_file),
};
const size_t stream_tests_count = sizeof(stream_tests) / sizeof(stream_tests[0]);
