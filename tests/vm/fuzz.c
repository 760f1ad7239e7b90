// SPDX-License-Identifier: Apache-2.0
/*
 * A fuzzer of the device file: processes of several threads make ioctls with structures that are
 * mostly right, load damaged programs and launch them, map, fork, execute, close, and are killed in
 * the middle of it. Run as root where the module is loaded.
 *
 *	fuzz [--seed N] [--seconds N] [--threads N] [--processes N]
 *
 * What a thread tries depends on the seed alone, what comes of it on the others too: with
 * one thread of one process a run repeats but for times. Fails when a process cannot be killed,
 * when HBM does not come back, or when the device computes no more; whether the kernel complained
 * is for the caller to look at (tests/vm/stress).
 */
#define _GNU_SOURCE
#include "fuzz.h"

#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PROCESSES_MAX 16
#define THREADS_MAX   16
#define LIFE_MAX_MS   4000
/* Longest that a process may take to die: its files wait for launches that time out. */
#define DEATH_S 60

static struct {
	uint64_t seed;
	unsigned int seconds, threads, processes;
} options = { .seconds = 300, .threads = 3, .processes = 3 };

static char device_path[64];
static struct fuzz_stats *stats;

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* --- a process ----------------------------------------------------------------------------- */

static pthread_barrier_t all_made;

static void *thread_main(void *arg)
{
	pthread_barrier_wait(&all_made);
	for (;;)
		fuzz_op(arg);
	return NULL;
}

/* Makes trouble until its time is over, then dies in one way or another. */
static _Noreturn void process_main(uint64_t seed)
{
	static struct fuzz_thread thread[THREADS_MAX], own;
	static struct fuzz_world world;
	struct itimerval soon = { .it_value.tv_usec = 500 };
	pthread_t id;
	bool alarms;
	double end;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	fuzz_signals();
	fuzz_world_init(&world, device_path);
	fuzz_thread_init(&own, &world, stats, seed);
	fuzz_warm_up(&own);
	/*
	 * All memory is taken before the first op: a mapping that fails leaves a hole for a moment, and
	 * what would come to lie in it went when the hole is filled.
	 */
	pthread_barrier_init(&all_made, NULL, options.threads);
	for (unsigned int i = 0; i < options.threads; i++) {
		fuzz_thread_init(&thread[i], &world, stats, fuzz_random(&own));
		if (pthread_create(&id, NULL, thread_main, &thread[i]))
			_exit(2);
	}
	alarms = fuzz_once_in(&own, 3);
	/* By the clock: a slow kernel needs far more than a millisecond for a round. */
	end = now_s() + (double)fuzz_below(&own, LIFE_MAX_MS) / 1e3;
	while (now_s() < end) {
		struct timespec rest = { .tv_nsec = 1000000 };

		/* One at a time: a slow kernel would do nothing but deliver them. */
		if (alarms)
			setitimer(ITIMER_REAL, &soon, NULL);
		/* It may cut the sleep short. */
		while (nanosleep(&rest, &rest) && errno == EINTR)
			;
	}
	if (fuzz_once_in(&own, 2))
		kill(getpid(), SIGKILL);
	_exit(0);
}

/* --- all of them ------------------------------------------------------------------------------ */

static pid_t start_process(uint64_t seed)
{
	pid_t pid = fork();

	if (!pid)
		process_main(seed);
	if (pid < 0) {
		perror("fuzz: fork");
		exit(2);
	}
	return pid;
}

/* Where in the kernel a process is that should be dead. */
static void show_stuck(pid_t pid)
{
	char command[128];

	printf("fuzz: process %d does not die\n", pid);
	snprintf(command, sizeof(command),
		 "head -50 /proc/%d/status /proc/%d/task/*/stack /proc/%d/task/*/syscall", pid, pid,
		 pid);
	fflush(stdout);
	if (system(command))
		puts("fuzz: nothing to be seen of it");
}

/* 0, or 1 when a process failed by itself. */
static int look_at_status(int status)
{
	if (WIFEXITED(status) && WEXITSTATUS(status)) {
		printf("fuzz: a process ended with status %d\n", WEXITSTATUS(status));
		return 1;
	}
	return 0;
}

/* Kills and waits for all children, also those that lost their parents. 0 or 1. */
static int end_all(const pid_t *pid)
{
	double limit = now_s() + DEATH_S;
	int status, failed = 0;
	siginfo_t info;

	for (unsigned int i = 0; i < options.processes; i++)
		kill(pid[i], SIGKILL);
	for (;;) {
		pid_t ended = waitpid(-1, &status, WNOHANG);

		if (ended < 0 && errno == ECHILD)
			return failed;
		if (ended > 0) {
			failed |= look_at_status(status);
			continue;
		}
		if (now_s() > limit) {
			for (unsigned int i = 0; i < options.processes; i++)
				if (!waitid(P_PID, (id_t)pid[i], &info,
					    WEXITED | WNOHANG | WNOWAIT))
					show_stuck(pid[i]);
			return 1;
		}
		usleep(10000);
	}
}

static int run_all(void)
{
	struct fuzz_thread chance = { .rng = options.seed };
	double end = now_s() + options.seconds;
	double start[PROCESSES_MAX];
	pid_t pid[PROCESSES_MAX];
	int status, failed = 0;
	unsigned int i;

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	for (i = 0; i < options.processes; i++) {
		pid[i] = start_process(fuzz_random(&chance));
		start[i] = now_s();
	}
	while (now_s() < end && !failed) {
		pid_t ended = waitpid(-1, &status, WNOHANG);

		if (ended <= 0)
			usleep(10000);
		else
			failed |= look_at_status(status);
		for (i = 0; i < options.processes; i++) {
			if (ended == pid[i]) {
				pid[i] = start_process(fuzz_random(&chance));
				start[i] = now_s();
			} else if (now_s() - start[i] > DEATH_S + LIFE_MAX_MS / 1e3) {
				show_stuck(pid[i]);
				failed = 1;
				start[i] = now_s();
			}
		}
	}
	return end_all(pid) | failed;
}

/* --- afterwards --------------------------------------------------------------------------------- */

/* A program of known result on every core. */
static void check_device(int fd)
{
	enum { COLUMNS = 16 };
	const uint32_t bytes = TILE_PARTS * 4 * COLUMNS;
	uint32_t hbm = bo_new(fd, bytes, BO_HBM), host = bo_new(fd, bytes, BO_HOST | BO_MMAP);
	float *p = bo_map(fd, host);

	/* The fuzzer's limit may be short, and its last launches are still dying. */
	dev_param_write("timeout_ms", "10000");
	for (uint32_t core = 0; core < dev_info(fd).cores; core++) {
		float want = 1.5f + (float)core;
		uint32_t program = prog_fill(fd, want, COLUMNS), ctx = ctx_new(fd, core);

		assert_int_equal(launch_now(fd, ctx, program, &hbm, 1), 1);
		copy_now(fd, host, 0, hbm, 0, bytes);
		for (uint32_t i = 0; i < bytes / 4; i++)
			if (p[i] != want)
				fail_msg("core %u, element %u: %g, not %g", core, i, (double)p[i],
					 (double)want);
		ctx_close(fd, ctx);
	}
}

static void show_results(double seconds)
{
	uint64_t calls = 0;

	printf("%-24s %10s %10s  %s\n", "ioctl", "calls", "ok", "refused");
	for (uint32_t i = 0; i < fuzz_calls_count; i++) {
		uint64_t sum = 0;

		for (int e = 0; e < FUZZ_ERRNOS; e++)
			sum += stats->result[i][e];
		calls += sum;
		printf("%-24s %10llu %10llu ", fuzz_calls[i].name, (unsigned long long)sum,
		       (unsigned long long)stats->result[i][0]);
		for (int e = 1; e < FUZZ_ERRNOS; e++)
			if (stats->result[i][e])
				printf(" %s %llu", strerrorname_np(e),
				       (unsigned long long)stats->result[i][e]);
		putchar('\n');
	}
	printf("contexts asked: %llu timed out; by fault of the device (EXI_FAULT_*, 0: none):",
	       (unsigned long long)stats->timeouts);
	for (int i = 0; i < EXI_FAULTS; i++)
		if (stats->fault[i])
			printf(" %d: %llu", i, (unsigned long long)stats->fault[i]);
	putchar('\n');
	printf("%llu ops, %llu ioctls of known kind, %llu programs loaded, %llu forks, %llu execs, "
	       "%llu bus errors in %.0f s\n",
	       (unsigned long long)stats->ops, (unsigned long long)calls,
	       (unsigned long long)stats->programs, (unsigned long long)stats->forks,
	       (unsigned long long)stats->execs, (unsigned long long)stats->bus_errors, seconds);
}

static unsigned int number(const char *text, unsigned int max)
{
	char *end;
	unsigned long n = strtoul(text, &end, 0);

	if (*end || !n || n > max) {
		fprintf(stderr, "fuzz: %s: want 1 to %u\n", text, max);
		exit(2);
	}
	return (unsigned int)n;
}

static void parse(int argc, char **argv)
{
	static const struct option known[] = {
		{ "seed", required_argument, NULL, 'r' },
		{ "seconds", required_argument, NULL, 's' },
		{ "threads", required_argument, NULL, 't' },
		{ "processes", required_argument, NULL, 'p' },
		{ 0 },
	};
	int option;

	options.seed = (uint64_t)time(NULL) << 16 ^ (uint64_t)getpid();
	while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
		switch (option) {
		case 'r':
			options.seed = strtoull(optarg, NULL, 0);
			break;
		case 's':
			options.seconds = number(optarg, 1u << 24);
			break;
		case 't':
			options.threads = number(optarg, THREADS_MAX);
			break;
		case 'p':
			options.processes = number(optarg, PROCESSES_MAX);
			break;
		default:
			exit(2);
		}
	}
}

int main(int argc, char **argv)
{
	char link[32];
	uint64_t used;
	double start;
	int fd;

	if (argc > 2 && !strcmp(argv[1], "--exec-child"))
		return fuzz_exec_child(argc - 2, argv + 2);
	parse(argc, argv);
	setvbuf(stdout, NULL, _IOLBF, 0);
	stats = mmap(NULL, sizeof(*stats), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (stats == MAP_FAILED) {
		perror("fuzz: mmap");
		return 2;
	}
	fd = dev_open();
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (readlink(link, device_path, sizeof(device_path) - 1) <= 0) {
		perror("fuzz: the device's path");
		return 2;
	}
	used = dev_memory(fd).hbm_used;
	printf("fuzz: --seed %llu --seconds %u --threads %u --processes %u on %s\n",
	       (unsigned long long)options.seed, options.seconds, options.threads,
	       options.processes, device_path);
	/* The processes must not hold a file that outlives them. */
	dev_close(fd);

	start = now_s();
	if (run_all())
		return 1;
	show_results(now_s() - start);
	fd = dev_open();
	dev_wait_hbm(fd, used);
	check_device(fd);
	printf("HBM in use: %llu bytes, as before; the device computes on %u cores\n",
	       (unsigned long long)used, dev_info(fd).cores);
	return 0;
}
