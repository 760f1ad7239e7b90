// SPDX-License-Identifier: Apache-2.0
/*
 * Parts are taken with a ticket, by the caller too, so that nobody waits for a thread that has not
 * begun. Members look for new tickets for a while before they sleep: the instructions of a launch
 * follow each other within microseconds.
 */
#define _GNU_SOURCE
#include "team.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "exec.h"

/* Looks before a member sleeps, some 50 us, and before the caller lets others have its processor. */
#define MEMBER_LOOKS 2000
#define CALLER_LOOKS 500

struct member {
	pthread_t thread;
	uint64_t *buffer[NM_BUFFERS];
};

/* Generation of the work, number of its parts, next part. */
#define TICKET(generation, parts, next) \
	((uint64_t)(generation) << 32 | (uint64_t)(parts) << 16 | (next))
#define TICKET_GENERATION(t) ((uint32_t)((t) >> 32))
#define TICKET_PARTS(t)	     ((unsigned int)((t) >> 16 & UINT16_MAX))
#define TICKET_NEXT(t)	     ((unsigned int)((t) & UINT16_MAX))

static struct {
	pthread_mutex_t hold_lock; /* for the two below */
	unsigned int holders;
	struct member member[NM_THREADS_MAX - 1];

	_Atomic unsigned int members;
	_Atomic bool busy; /* the caller that set it owns what is below */
	_Atomic uint64_t ticket;
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

static bool has_parts(uint64_t ticket)
{
	return TICKET_NEXT(ticket) < TICKET_PARTS(ticket);
}

/* Does one part; false: none is left. */
static bool do_part(uint64_t *const *buffer)
{
	uint64_t t = atomic_load(&team.ticket);

	while (has_parts(t)) {
		if (!atomic_compare_exchange_weak(&team.ticket, &t, t + 1))
			continue;
		team.fn(team.arg, TICKET_NEXT(t), buffer);
		atomic_fetch_add(&team.done, 1);
		return true;
	}
	return false;
}

static void sleep_until_posted(void)
{
	pthread_mutex_lock(&team.lock);
	atomic_fetch_add(&team.sleepers, 1);
	while (!has_parts(atomic_load(&team.ticket)) && !atomic_load(&team.quit))
		pthread_cond_wait(&team.posted, &team.lock);
	atomic_fetch_sub(&team.sleepers, 1);
	pthread_mutex_unlock(&team.lock);
}

static void *work(void *arg)
{
	struct member *m = arg;
	unsigned int looks = 0;

	while (!atomic_load(&team.quit)) {
		if (do_part(m->buffer)) {
			looks = 0;
		} else if (++looks < MEMBER_LOOKS) {
			relax();
		} else {
			sleep_until_posted();
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

		if (!nm_buffers_map(m->buffer))
			break;
		if (pthread_create(&m->thread, NULL, work, m)) {
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

	if (parts < 2 || nm_team_threads() < 2 || atomic_exchange(&team.busy, true)) {
		for (unsigned int i = 0; i < parts; i++)
			fn(arg, i, NULL);
		return;
	}
	team.fn = fn;
	team.arg = arg;
	atomic_store(&team.done, 0);
	atomic_store(&team.ticket,
		     TICKET(TICKET_GENERATION(atomic_load(&team.ticket)) + 1, parts, 0));
	wake();
	while (do_part(NULL))
		;
	while (atomic_load(&team.done) < parts) {
		if (++looks < CALLER_LOOKS)
			relax();
		else
			sched_yield();
	}
	atomic_store(&team.busy, false);
}
