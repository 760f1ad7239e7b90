// SPDX-License-Identifier: Apache-2.0
/* Contexts on a set of cores: where they go. Priorities: who goes first, who waits. */
#include "dev.h"
#include "groups.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

/* --- sets ----------------------------------------------------------------- */

static uint64_t all_cores(int fd)
{
	return (1ull << dev_info(fd).cores) - 1;
}

/* A context on one core of a set; *core, unless NULL, is which. */
static uint32_t ctx_among(int fd, uint64_t cores, uint32_t *core)
{
	struct drm_neuron_ctx_create args = { .cores = cores };

	assert_ok(neuron_call(fd, DRM_IOCTL_NEURON_CTX_CREATE, &args));
	assert_true(cores >> args.core & 1);
	if (core)
		*core = args.core;
	return args.ctx;
}

static void a_set_fills_up_evenly(void **state)
{
	const uint32_t cores = dev_info(FD).cores;
	uint32_t core, first = ctx_new(FD, 0);

	/* Core 0 is one ahead. */
	for (uint32_t i = 1; i < 3 * cores; i++) {
		ctx_among(FD, all_cores(FD), &core);
		assert_int_equal(core, i % cores);
	}
	/* The place of one that goes is the next one's. */
	ctx_close(FD, first);
	ctx_among(FD, all_cores(FD), &core);
	assert_int_equal(core, 0);
}

static void nothing_goes_outside_of_the_set(void **state)
{
	const uint32_t cores = dev_info(FD).cores;
	uint32_t core;

	if (cores < 4)
		skip();
	for (uint32_t i = 0; i < 4; i++) {
		ctx_among(FD, 0xa, &core);
		assert_int_equal(core, i % 2 ? 3 : 1);
	}
	ctx_among(FD, 0x8, &core);
	ctx_among(FD, 0xe, &core);
	assert_int_equal(core, 2);
}

static void launches_run_where_the_context_is(void **state)
{
	const uint32_t cores = dev_info(FD).cores, nop = prog_nop(FD);
	uint64_t before[8];
	uint32_t core, ctx;

	for (uint32_t n = 0; n < cores; n++) {
		for (uint32_t c = 0; c < cores; c++)
			before[c] = dev_core(FD, c).launches;
		ctx = ctx_among(FD, all_cores(FD), &core);
		for (uint32_t i = 0; i <= n; i++)
			assert_int_equal(launch_now(FD, ctx, nop, NULL, 0), 1);
		for (uint32_t c = 0; c < cores; c++)
			assert_int_equal(dev_core(FD, c).launches - before[c],
					 c == core ? n + 1 : 0);
	}
}

static void a_dead_context_is_no_load(void **state)
{
	uint32_t core, ctx;

	ctx_new(FD, 1);
	ctx = ctx_among(FD, 0x3, &core);
	assert_int_equal(core, 0);
	assert_int_equal(launch_now(FD, ctx, prog_stall(FD), NULL, 0), -EIO);
	ctx_among(FD, 0x3, &core);
	assert_int_equal(core, 0);
}

static void a_full_core_is_passed_over(void **state)
{
	struct drm_neuron_ctx_create args = { .cores = 0x1 };
	uint32_t core;
	int ret, n = 0;

	while (!(ret = neuron_call(FD, DRM_IOCTL_NEURON_CTX_CREATE, &args)) && n < EXI_QUEUE_COUNT)
		n++;
	assert_errno(ret, ENOSPC);
	assert_int_in_range(n, 1, EXI_QUEUE_COUNT);
	ctx_among(FD, 0x3, &core);
	assert_int_equal(core, 1);
}

static void wrong_sets_are_refused(void **state)
{
	const uint32_t cores = dev_info(FD).cores;
	const struct drm_neuron_ctx_create wrong[] = {
		{ .cores = 1ull << cores },	 { .cores = all_cores(FD) | 1ull << cores },
		{ .cores = 1ull << 63 },	 { .cores = 0x3, .core = 1 },
		{ .cores = 0x1, .priority = 3 },
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct drm_neuron_ctx_create args = wrong[i];

		assert_errno(neuron_call(FD, DRM_IOCTL_NEURON_CTX_CREATE, &args), EINVAL);
		assert_int_equal(args.ctx, 0);
	}
}

/* Built with the structure as it was before there were sets. */
static void an_older_program_names_its_core(void **state)
{
	const unsigned int size = offsetof(struct drm_neuron_ctx_create, cores);
	struct drm_neuron_ctx_create args = { .core = 1, .cores = UINT64_MAX };

	assert_ok(neuron_call_sized(FD, DRM_IOCTL_NEURON_CTX_CREATE, size, &args));
	assert_int_equal(args.core, 1);
	assert_true(args.cores == UINT64_MAX);
	assert_int_equal(launch_now(FD, args.ctx, prog_nop(FD), NULL, 0), 1);
}

/* --- priorities ----------------------------------------------------------- */

static uint32_t ctx_prior(int fd, uint32_t priority)
{
	struct drm_neuron_ctx_create args = { .priority = priority };

	assert_ok(neuron_call(fd, DRM_IOCTL_NEURON_CTX_CREATE, &args));
	return args.ctx;
}

/* Waits until the device was given this many launches of a program. */
static void wait_given(int fd, uint32_t program, unsigned long long launches)
{
	unsigned long long given = 0;
	char key[32], text[64];

	snprintf(key, sizeof(key), "neuron-program-%u", program);
	for (int i = 0; i < 3000 && given != launches; i++) {
		if (i)
			usleep(10000);
		dev_fdinfo(fd, key, text, sizeof(text));
		assert_int_equal(sscanf(text, "%*u %llu", &given), 1);
	}
	assert_int_equal(given, launches);
}

/* Keeps core 0 until it is destroyed. */
static uint32_t occupy(int fd)
{
	uint32_t ctx = ctx_new(fd, 0), stall = prog_stall(fd);

	assert_ok(launch(fd, ctx, stall, NULL, 0, 0));
	wait_given(fd, stall, 1);
	return ctx;
}

#define LAUNCHES 3

/* A context with launches that wait for the core, and what became of them. */
struct waiting {
	uint32_t ctx, sync[LAUNCHES];
	int stream;
	uint64_t start_ps, end_ps; /* of the first, of the last */
};

static void queue_up(int fd, struct waiting *w, uint32_t priority, uint32_t program)
{
	struct drm_neuron_stream_open open = { .flags = DRM_NEURON_STREAM_NONBLOCK };

	open.ctx = w->ctx = ctx_prior(fd, priority);
	assert_ok(neuron_call(fd, DRM_IOCTL_NEURON_STREAM_OPEN, &open));
	w->stream = open.fd;
	for (int i = 0; i < LAUNCHES; i++) {
		w->sync[i] = sync_new(fd);
		assert_ok(launch(fd, w->ctx, program, NULL, 0, w->sync[i]));
	}
}

static void see_off(int fd, struct waiting *w)
{
	struct drm_neuron_event ev[64];
	ssize_t bytes;

	for (int i = 0; i < LAUNCHES; i++) {
		assert_ok(sync_wait(fd, w->sync[i], 0, 60000));
		assert_int_equal(sync_status(fd, w->sync[i]), 1);
	}
	bytes = read(w->stream, ev, sizeof(ev));
	assert_true(bytes >= (ssize_t)(LAUNCHES * sizeof(ev[0])));
	w->start_ps = ev[0].start_ps;
	w->end_ps = ev[(size_t)bytes / sizeof(ev[0]) - 1].end_ps;
	close(w->stream);
}

/* Those who came last go first, and by the device's own clock. */
static void higher_priority_overtakes_what_waits(void **state)
{
	static const uint32_t order[] = { DRM_NEURON_PRIORITY_LOW, DRM_NEURON_PRIORITY_NORMAL,
					  DRM_NEURON_PRIORITY_HIGH };
	struct waiting w[3];
	uint32_t holder, nop;

	dev_param_write("timeout_ms", "60000");
	holder = occupy(FD);
	nop = prog_nop(FD);
	for (unsigned int i = 0; i < 3; i++) {
		queue_up(FD, &w[i], order[i], nop);
		wait_given(FD, nop, (i + 1) * LAUNCHES);
	}
	assert_int_equal(sync_wait(FD, w[2].sync[0], 0, 100), -ETIME);
	ctx_close(FD, holder);
	for (int i = 0; i < 3; i++)
		see_off(FD, &w[i]);
	assert_true(w[2].end_ps <= w[1].start_ps);
	assert_true(w[1].end_ps <= w[0].start_ps);
}

/* It waits four times as long as a launch may run, while others do for too long. */
static void low_priority_waits_and_is_not_taken_for_hung(void **state)
{
	uint32_t low, guilty[4], sync[4], stall, nop = prog_nop(FD), done = sync_new(FD);

	guilty[0] = occupy(FD);
	stall = prog_stall(FD);
	for (int i = 1; i < 4; i++) {
		guilty[i] = ctx_new(FD, 0);
		assert_ok(launch(FD, guilty[i], stall, NULL, 0, sync[i] = sync_new(FD)));
	}
	wait_given(FD, stall, 3);
	low = ctx_prior(FD, DRM_NEURON_PRIORITY_LOW);
	assert_ok(launch(FD, low, nop, NULL, 0, done));
	wait_given(FD, nop, 1);
	for (int i = 1; i < 4; i++) {
		assert_ok(sync_wait(FD, sync[i], 0, 60000));
		assert_int_equal(sync_status(FD, sync[i]), -ETIME);
	}
	assert_ok(sync_wait(FD, done, 0, 60000));
	assert_int_equal(sync_status(FD, done), 1);
	assert_int_equal(ctx_state(FD, low).state, DRM_NEURON_CTX_OK);
	for (int i = 0; i < 4; i++)
		assert_int_equal(ctx_state(FD, guilty[i]).state, DRM_NEURON_CTX_TIMEDOUT);
}

const struct CMUnitTest cores_tests[] = {
	TEST(a_set_fills_up_evenly),
	TEST(nothing_goes_outside_of_the_set),
	TEST(launches_run_where_the_context_is),
	TEST(a_dead_context_is_no_load),
	TEST(a_full_core_is_passed_over),
	TEST(wrong_sets_are_refused),
	TEST(an_older_program_names_its_core),
	HANG(higher_priority_overtakes_what_waits),
	HANG(low_priority_waits_and_is_not_taken_for_hung),
};
const size_t cores_tests_count = sizeof(cores_tests) / sizeof(cores_tests[0]);
