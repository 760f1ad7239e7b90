// SPDX-License-Identifier: Apache-2.0
/*
 * Each thread, the caller too, begins with the parts that were its own last time, whose operands its
 * processor has in its caches, and goes on with those that nobody has taken: so nobody waits for a
 * thread that has not begun. Members look for new work for a while before they sleep: the
 * instructions of a launch follow each other within microseconds.
 */
#define _GNU_SOURCE
#include "team.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "exec.h"

/* Looks before a member sleeps, some 500 us, and before the caller lets others have its processor. */
#define MEMBER_LOOKS 20000
#define CALLER_LOOKS 500

struct member {
	pthread_t thread;
	unsigned int number; /* of the thread, from 1 on: the caller is 0 */
	uint64_t *buffer[NM_BUFFERS];
};

static struct {
	pthread_mutex_t hold_lock; /* for the two below */
	unsigned int holders;
	struct member member[NM_THREADS_MAX - 1];

	_Atomic unsigned int members;
	_Atomic bool busy; /* the caller that set it owns what is below */
	_Atomic uint64_t work; /* WORK() at hand */
	_Atomic uint32_t taken[NM_TEAM_PARTS]; /* number of the last work of which somebody took it */
	/* Read by whoever has taken a part that is not done yet, and so not written. */
	nm_part_fn fn;
	void *arg;
	_Atomic unsigned int done;

	pthread_mutex_t lock;
	pthread_cond_t posted;
	_Atomic unsigned int sleepers; /* changed under lock */
	_Atomic bool quit;
} team = {
	.hold_lock = PTHREAD_MUTEX_INITIALIZER,
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.posted = PTHREAD_COND_INITIALIZER,
};

static void relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#endif
}

#define WORK(number, parts) ((uint64_t)(number) << 32 | (parts))
#define WORK_NUMBER(w)	    ((uint32_t)((w) >> 32))
#define WORK_PARTS(w)	    ((uint32_t)(w))

/*
 * Takes a part of a work; false: somebody has, or the work is over. Numbers grow (and wrap), so that
 * who comes late with an old one takes nothing of a newer work.
 */
static bool take(uint64_t work, unsigned int part)
{
	uint32_t taken = atomic_load(&team.taken[part]);

	return (int32_t)(WORK_NUMBER(work) - taken) > 0 &&
	       atomic_compare_exchange_strong(&team.taken[part], &taken, WORK_NUMBER(work)) &&
	       atomic_load(&team.work) == work;
}

/* Does all parts of a work that nobody has taken. */
static void do_parts(uint64_t work, unsigned int thread, uint64_t *const *buffer)
{
	const unsigned int parts = WORK_PARTS(work);
	const unsigned int first = thread * parts / nm_team_threads();

	for (unsigned int i = 0; i < parts; i++) {
		unsigned int part = (first + i) % parts;

		if (!take(work, part))
			continue;
		team.fn(team.arg, part, buffer);
		atomic_fetch_add(&team.done, 1);
	}
}

/* Until there is other work than this. */
static void sleep_until_posted(uint64_t work)
{
	pthread_mutex_lock(&team.lock);
	atomic_fetch_add(&team.sleepers, 1);
	while (atomic_load(&team.work) == work && !atomic_load(&team.quit))
		pthread_cond_wait(&team.posted, &team.lock);
	atomic_fetch_sub(&team.sleepers, 1);
	pthread_mutex_unlock(&team.lock);
}

static void *serve(void *arg)
{
	struct member *m = arg;
	unsigned int looks = 0;
	uint64_t seen = 0;

	while (!atomic_load(&team.quit)) {
		uint64_t work = atomic_load(&team.work);

		if (work != seen) {
			do_parts(work, m->number, m->buffer);
			seen = work;
			looks = 0;
		} else if (++looks < MEMBER_LOOKS) {
			relax();
		} else {
			sleep_until_posted(seen);
			looks = 0;
		}
	}
	return NULL;
}

static void wake(void)
{
	if (!atomic_load(&team.sleepers))
		return;
	pthread_mutex_lock(&team.lock);
	pthread_cond_broadcast(&team.posted);
	pthread_mutex_unlock(&team.lock);
}

static unsigned int processors(void)
{
	cpu_set_t set;

	/* It fails on machines with more processors than a set has room for. */
	if (sched_getaffinity(0, sizeof(set), &set))
		return NM_THREADS_MAX;
	return (unsigned int)CPU_COUNT(&set);
}

static void start(unsigned int threads)
{
	unsigned int n = 0;

	if (threads == 0)
		threads = processors();
	if (threads > NM_THREADS_MAX)
		threads = NM_THREADS_MAX;
	atomic_store(&team.quit, false);
	for (; n + 1 < threads; n++) {
		struct member *m = &team.member[n];

		m->number = n + 1;
		if (!nm_buffers_map(m->buffer))
			break;
		if (pthread_create(&m->thread, NULL, serve, m)) {
			nm_buffers_unmap(m->buffer);
			break;
		}
	}
	atomic_store(&team.members, n);
}

static void stop(void)
{
	unsigned int n = atomic_exchange(&team.members, 0);

	atomic_store(&team.quit, true);
	wake();
	while (n--) {
		pthread_join(team.member[n].thread, NULL);
		nm_buffers_unmap(team.member[n].buffer);
	}
}

void nm_team_hold(unsigned int threads)
{
	pthread_mutex_lock(&team.hold_lock);
	if (team.holders++ == 0)
		start(threads);
	pthread_mutex_unlock(&team.hold_lock);
}

void nm_team_release(void)
{
	pthread_mutex_lock(&team.hold_lock);
	if (--team.holders == 0)
		stop();
	pthread_mutex_unlock(&team.hold_lock);
}

unsigned int nm_team_threads(void)
{
	return 1 + atomic_load_explicit(&team.members, memory_order_relaxed);
}

void nm_team_run(nm_part_fn fn, void *arg, unsigned int parts)
{
	unsigned int looks = 0;
	uint64_t work;

	if (parts < 2 || parts > NM_TEAM_PARTS || nm_team_threads() < 2 ||
	    atomic_exchange(&team.busy, true)) {
		for (unsigned int i = 0; i < parts; i++)
			fn(arg, i, NULL);
		return;
	}
	team.fn = fn;
	team.arg = arg;
	atomic_store(&team.done, 0);
	work = WORK(WORK_NUMBER(atomic_load(&team.work)) + 1, parts);
	atomic_store(&team.work, work);
	wake();
	do_parts(work, 0, NULL);
	while (atomic_load(&team.done) < parts) {
		if (++looks < CALLER_LOOKS)
			relax();
		else
			sched_yield();
	}
	atomic_store(&team.busy, false);
}
