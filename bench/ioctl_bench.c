// SPDX-License-Identifier: Apache-2.0
/*
 * What the ioctl interface costs, beside what the same machine takes for the nearest things of the
 * kernel's own: run as root where the module is loaded; `make bench` runs it in the VM. Figures are
 * medians; a ratio compares two of the same run.
 */
#include "dev.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS	  200
#define IN_FLIGHT 64
#define COPY_MIN  (4ull << 10)
#define COPY_MAX  (256ull << 20)

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Median time of a call, us. */
static double median(void (*call)(void *arg), void *arg, unsigned int rounds)
{
	double us[ROUNDS], start;

	for (unsigned int i = 0; i < rounds; i++) {
		start = now_us();
		call(arg);
		us[i] = now_us() - start;
	}
	qsort(us, rounds, sizeof(us[0]), by_value);
	return us[rounds / 2];
}

/* --- what it is compared with ------------------------------------------------------------- */

static void empty_ioctl(void *arg)
{
	struct drm_neuron_query args = { .block = DRM_NEURON_QUERY_DEVICE };

	assert_ok(neuron_call(*(int *)arg, DRM_IOCTL_NEURON_QUERY, &args));
}

struct pair {
	int there, back;
};

static void *echo(void *arg)
{
	struct pair *p = arg;
	uint64_t n;

	while (read(p->there, &n, sizeof(n)) == sizeof(n) && n == 1)
		if (write(p->back, &n, sizeof(n)) != sizeof(n))
			break;
	return NULL;
}

static void eventfd_round_trip(void *arg)
{
	struct pair *p = arg;
	uint64_t n = 1;

	assert_int_equal(write(p->there, &n, sizeof(n)), sizeof(n));
	assert_int_equal(read(p->back, &n, sizeof(n)), sizeof(n));
}

static double eventfd_us(void)
{
	struct pair p = { eventfd(0, 0), eventfd(0, 0) };
	uint64_t end = 2;
	pthread_t thread;
	double us;

	assert_ok(pthread_create(&thread, NULL, echo, &p));
	us = median(eventfd_round_trip, &p, ROUNDS);
	assert_int_equal(write(p.there, &end, sizeof(end)), sizeof(end));
	pthread_join(thread, NULL);
	close(p.there);
	close(p.back);
	return us;
}

/* --- launches ----------------------------------------------------------------------------- */

struct work {
	int fd;
	uint32_t ctx, nop, sync;
	uint32_t src, dst;
	uint64_t bytes;
	void *from, *to;
};

static void launch_and_wait(void *arg)
{
	struct work *w = arg;

	assert_ok(launch(w->fd, w->ctx, w->nop, NULL, 0, w->sync));
	assert_ok(sync_wait(w->fd, w->sync, 0, 60000));
}

/* As many as a training step keeps in flight, then one wait. */
static void launch_many(void *arg)
{
	struct work *w = arg;

	for (int i = 1; i < IN_FLIGHT; i++)
		assert_ok(launch(w->fd, w->ctx, w->nop, NULL, 0, 0));
	launch_and_wait(w);
}

struct batch {
	int fd;
	uint32_t sync;
	struct drm_neuron_submit_batch args;
};

static void batch_and_wait(void *arg)
{
	struct batch *b = arg;

	assert_ok(neuron_call(b->fd, DRM_IOCTL_NEURON_SUBMIT_BATCH, &b->args));
	assert_ok(sync_wait(b->fd, b->sync, 0, 60000));
}

/* Launches a second, each batch size followed by one wait. */
static void batches(struct work *w)
{
	struct drm_neuron_launch launches[IN_FLIGHT];
	struct drm_neuron_sync out = { .handle = w->sync };
	struct batch b = { .fd = w->fd, .sync = w->sync };
	double us, one = 0;

	for (int i = 0; i < IN_FLIGHT; i++)
		launches[i] = (struct drm_neuron_launch){ .program = w->nop };
	b.args = (struct drm_neuron_submit_batch){ .ctx = w->ctx, .out = ARRAY(&out, 1) };
	printf("\n%-34s %10s %9s %9s\n", "launches in one ioctl", "us each", "a second", "/ one");
	for (unsigned int n = 1; n <= IN_FLIGHT; n *= 4) {
		b.args.launches = ARRAY(launches, n);
		us = median(batch_and_wait, &b, ROUNDS / 10) / n;
		if (n == 1)
			one = us;
		printf("%-34u %10.1f %9.0f %9.2f\n", n, us, 1e6 / us, us / one);
	}
}

static void launches(int fd)
{
	struct work w = { .fd = fd };
	double empty, event, round, many;

	w.ctx = ctx_new(fd, 0);
	w.nop = prog_nop(fd);
	w.sync = sync_new(fd);
	launch_and_wait(&w);
	empty = median(empty_ioctl, &fd, ROUNDS);
	event = eventfd_us();
	round = median(launch_and_wait, &w, ROUNDS);
	many = median(launch_many, &w, ROUNDS / 10) / IN_FLIGHT;
	printf("%-34s %10s %9s %9s\n", "", "us", "/ ioctl", "/ eventfd");
	printf("%-34s %10.1f %9.1f %9.2f\n", "ioctl that does nothing", empty, 1.0, empty / event);
	printf("%-34s %10.1f %9.1f %9.2f\n", "eventfd, there and back", event, event / empty, 1.0);
	printf("%-34s %10.1f %9.1f %9.2f\n", "launch of nothing, until it is done", round,
	       round / empty, round / event);
	printf("%-34s %10.1f %9.1f %9.2f   %.0f a second\n", "the same with 64 in flight, each",
	       many, many / empty, many / event, 1e6 / many);
	batches(&w);
	ctx_close(fd, w.ctx);
	prog_unload(fd, w.nop);
	sync_close(fd, w.sync);
}

/* --- copies ------------------------------------------------------------------------------- */

static void copy(void *arg)
{
	struct work *w = arg;

	copy_now(w->fd, w->dst, 0, w->src, 0, w->bytes);
}

static void copy_cpu(void *arg)
{
	struct work *w = arg;

	memcpy(w->to, w->from, w->bytes);
}

static void copies(int fd)
{
	uint32_t hbm = bo_new(fd, COPY_MAX, BO_HBM);
	uint32_t host = bo_new(fd, COPY_MAX, BO_HOST | BO_MMAP);
	struct work down = { .fd = fd, .src = host, .dst = hbm };
	struct work up = { .fd = fd, .src = hbm, .dst = host };
	struct work cpu = { .from = malloc(COPY_MAX), .to = malloc(COPY_MAX) };

	assert_true(cpu.from && cpu.to);
	memset(cpu.from, 1, COPY_MAX);
	memset(cpu.to, 2, COPY_MAX);
	memset(bo_map(fd, host), 3, COPY_MAX);
	printf("\n%-10s %12s %12s %12s %9s %9s\n", "copy", "to HBM MB/s", "to host MB/s",
	       "memcpy MB/s", "/ memcpy", "/ memcpy");
	for (uint64_t bytes = COPY_MIN; bytes <= COPY_MAX; bytes *= 4) {
		unsigned int rounds = bytes < 1 << 24 ? 50 : 5;
		double mb = (double)bytes, to_hbm, to_host, by_cpu;

		down.bytes = up.bytes = cpu.bytes = bytes;
		to_hbm = mb / median(copy, &down, rounds);
		to_host = mb / median(copy, &up, rounds);
		by_cpu = mb / median(copy_cpu, &cpu, rounds);
		printf("%7llu KiB %12.0f %12.0f %12.0f %9.2f %9.2f\n",
		       (unsigned long long)(bytes >> 10), to_hbm, to_host, by_cpu, to_hbm / by_cpu,
		       to_host / by_cpu);
	}
	free(cpu.from);
	free(cpu.to);
	bo_close(fd, hbm);
}

/* An emulated processor says so in its name. */
static void processor(void)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "model name", 10)) {
			fputs(line, stdout);
			break;
		}
	if (f)
		fclose(f);
}

int main(void)
{
	int fd = dev_open();

	setvbuf(stdout, NULL, _IOLBF, 0);
	processor();
	launches(fd);
	copies(fd);
	dev_close(fd);
	return 0;
}
