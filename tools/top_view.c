// SPDX-License-Identifier: Apache-2.0
#include "top.h"

#include <math.h>
#include <string.h>

const char *const top_engine_names[ND_ENGINES] = { "tensor", "vector", "scalar", "gpsimd", "sync" };

/* --- differences ------------------------------------------------------------------------------ */

/* What a counter grew by; NAN when it went back: it is another thing's now. */
static double grown(uint64_t from, uint64_t to)
{
	return to < from ? NAN : (double)(to - from);
}

static double share(double part, double whole)
{
	double s;

	if (isnan(part) || isnan(whole) || whole <= 0)
		return NAN;
	s = part / whole;
	/* The two counters were not read at the same moment. */
	return s > 1 ? 1 : s;
}

/* The same device in the sample before, if it still was that and could be used. */
static const struct nd_device *device_before(const struct top_sample *before,
					     const struct nd_device *d)
{
	for (size_t i = 0; before && i < before->n_devices; i++) {
		const struct nd_device *b = &before->devices[i];

		if (b->minor == d->minor && b->serial == d->serial && !strcmp(b->bdf, d->bdf) &&
		    !b->error)
			return b;
	}
	return NULL;
}

static const struct nd_client *client_before(const struct top_sample *before,
					     const struct nd_client *c)
{
	for (size_t i = 0; before && i < before->n_clients; i++)
		if (before->clients[i].id == c->id && before->clients[i].minor == c->minor)
			return &before->clients[i];
	return NULL;
}

static const struct top_process *process_of(const struct top_sample *s, pid_t pid)
{
	for (size_t i = 0; s && i < s->n_processes; i++)
		if (s->processes[i].pid == pid)
			return &s->processes[i];
	return NULL;
}

/* --- devices ---------------------------------------------------------------------------------- */

/*
 * A core is used while it has launches to run, by the host's clock. How that time was shared among
 * the engines only the device's clock can tell, so engines get their part of the device time.
 */
static void make_core(struct top_core *v, const struct nd_core *b, const struct nd_core *c,
		      double seconds)
{
	double busy, time = seconds * 1e9;

	*v = (struct top_core){ .used = NAN, .launches = NAN, .dma_bytes = NAN };
	for (int e = 0; e < ND_ENGINES; e++)
		v->engine[e] = v->insts[e] = NAN;
	v->known = c->known;
	v->faults = c->faults;
	v->queues = c->queues;
	v->queues_used = c->queues_used;
	if (!c->known || !b || !b->known || seconds <= 0)
		return;
	busy = grown(b->busy_ns, c->busy_ns);
	v->used = share(c->active_known ? grown(b->active_ns, c->active_ns) : busy, time);
	v->launches = grown(b->launches, c->launches) / seconds;
	v->dma_bytes = grown(b->dma_bytes, c->dma_bytes) / seconds;
	for (int e = 0; e < ND_ENGINES; e++) {
		v->insts[e] = grown(b->insts[e], c->insts[e]) / seconds;
		v->engine[e] =
			busy == 0 ? 0 :
				    v->used * share(grown(b->engine_ns[e], c->engine_ns[e]), busy);
	}
}

static void make_device(struct top_device *v, const struct nd_device *d, const struct nd_device *b,
			double seconds)
{
	unsigned int cores = 0;

	*v = (struct top_device){ .d = *d };
	for (uint32_t c = 0; c < d->cores && c < ND_CORES_MAX; c++) {
		make_core(&v->core[c], b ? &b->core[c] : NULL, &d->core[c], seconds);
		if (isnan(v->core[c].used))
			continue;
		v->used += v->core[c].used;
		cores++;
	}
	v->used = cores ? v->used / cores : NAN;
}

/* --- processes -------------------------------------------------------------------------------- */

static struct top_use *use_of(struct top_app *a, unsigned int minor, double nothing)
{
	struct top_use *u;

	for (size_t i = 0; i < a->n_uses; i++)
		if (a->uses[i].minor == minor)
			return &a->uses[i];
	u = &a->uses[a->n_uses++];
	*u = (struct top_use){ .minor = minor, .copy = nothing };
	for (size_t c = 0; c < ND_CORES_MAX; c++)
		u->core[c] = nothing;
	return u;
}

/* The part of a core's time that is this client's: its part of the device time. */
static double part_of_core(const struct top_device *d, const struct nd_device *was, uint32_t core,
			   const struct nd_client *b, const struct nd_client *c)
{
	double all = grown(was->core[core].busy_ns, d->d.core[core].busy_ns);
	double own = grown(b ? b->ns_of_core[core] : 0, c->ns_of_core[core]);

	return own == 0 || all == 0 ? 0 : d->core[core].used * share(own, all);
}

static void add_client(struct top_view *v, struct top_app *a, const struct top_sample *before,
		       const struct nd_client *c)
{
	const struct nd_client *b = client_before(before, c);
	const struct top_device *d = top_view_device(v, (int)c->minor);
	struct top_use *u = use_of(a, c->minor, v->seconds > 0 ? 0 : NAN);
	const struct nd_device *was;

	u->hbm += c->hbm_bytes;
	u->host += c->host_bytes;
	u->constants += c->constant_bytes;
	u->code += c->code_bytes;
	u->programs += c->programs;
	if (!before || v->seconds <= 0)
		return;
	a->launches += grown(b ? b->launches : 0, c->launches) / v->seconds;
	u->copy += share(grown(b ? b->copy_ns : 0, c->copy_ns), v->seconds * 1e9);
	was = d ? device_before(before, &d->d) : NULL;
	for (uint32_t i = 0; was && i < d->d.cores && i < ND_CORES_MAX; i++)
		u->core[i] += part_of_core(d, was, i, b, c);
}

static double program_launches(const struct top_view *v, const struct top_sample *before,
			       const struct nd_program *p)
{
	if (!before || v->seconds <= 0)
		return NAN;
	for (size_t i = 0; i < before->programs.n; i++) {
		const struct nd_program *b = &before->programs.list[i];

		if (b->client == p->client && b->id == p->id && b->launches <= p->launches)
			return grown(b->launches, p->launches) / v->seconds;
	}
	return (double)p->launches / v->seconds;
}

static void add_programs(struct top_view *v, struct top_app *a, const struct top_sample *before,
			 const struct top_sample *s, const struct nd_client *c)
{
	for (size_t i = 0; i < s->programs.n; i++) {
		const struct nd_program *p = &s->programs.list[i];

		if (p->client != c->id)
			continue;
		v->programs[v->n_programs++] = (struct top_program){
			.p = *p,
			.minor = c->minor,
			.launches = program_launches(v, before, p),
		};
		a->n_programs++;
	}
}

static void add_up(struct top_app *a)
{
	for (size_t i = 0; i < a->n_uses; i++) {
		const struct top_use *u = &a->uses[i];

		a->hbm += u->hbm;
		a->host += u->host;
		a->constants += u->constants;
		a->code += u->code;
		a->programs += u->programs;
		for (size_t c = 0; c < ND_CORES_MAX; c++)
			a->used += u->core[c];
	}
}

/* By the clock: what /proc/stat counts is sampled, what it counts of a process is measured. */
static void make_cpu(struct top_app *a, const struct top_sample *before, const struct top_sample *s,
		     double seconds)
{
	const struct top_process *p = process_of(s, a->pid), *b = process_of(before, a->pid);
	double total = before ? seconds * s->cpu_ticks : NAN;

	a->rss = p ? p->rss_bytes : 0;
	a->user = p && b ? share(grown(b->user, p->user), total) : NAN;
	a->system = p && b ? share(grown(b->system, p->system), total) : NAN;
}

/* Clients come in order of pids: a process is a run of them. Returns the client behind it. */
static size_t make_app(struct top_view *v, const struct top_sample *before,
		       const struct top_sample *s, size_t i)
{
	struct top_app *a = &v->apps[v->n_apps++];
	pid_t pid = s->clients[i].pid;

	*a = (struct top_app){ .pid = pid,
			       .launches = v->seconds > 0 ? 0 : NAN,
			       .first_program = v->n_programs };
	memcpy(a->command, s->clients[i].command, sizeof(a->command));
	for (; i < s->n_clients && s->clients[i].pid == pid; i++) {
		add_client(v, a, before, &s->clients[i]);
		add_programs(v, a, before, s, &s->clients[i]);
	}
	add_up(a);
	make_cpu(a, before, s, v->seconds);
	return i;
}

/* --- all of it -------------------------------------------------------------------------------- */

void top_view_make(struct top_view *v, const struct top_sample *before, const struct top_sample *s)
{
	double total = before ? grown(before->cpu_total, s->cpu_total) : NAN;

	v->seconds = before && s->ns > before->ns ? (double)(s->ns - before->ns) / 1e9 : 0;
	v->cpu_user = before ? share(grown(before->cpu_user, s->cpu_user), total) : NAN;
	v->cpu_system = before ? share(grown(before->cpu_system, s->cpu_system), total) : NAN;
	v->n_devices = s->n_devices;
	for (size_t i = 0; i < s->n_devices; i++)
		make_device(&v->devices[i], &s->devices[i], device_before(before, &s->devices[i]),
			    v->seconds);
	v->n_apps = v->n_programs = 0;
	for (size_t i = 0; i < s->n_clients && v->n_apps < TOP_APPS_MAX;)
		i = make_app(v, before, s, i);
}

const struct top_app *top_view_app(const struct top_view *v, pid_t pid)
{
	for (size_t i = 0; i < v->n_apps; i++)
		if (v->apps[i].pid == pid)
			return &v->apps[i];
	return NULL;
}

const struct top_device *top_view_device(const struct top_view *v, int minor)
{
	for (size_t i = 0; i < v->n_devices; i++)
		if ((int)v->devices[i].d.minor == minor)
			return &v->devices[i];
	return NULL;
}

const struct top_use *top_app_use(const struct top_app *a, unsigned int minor)
{
	for (size_t i = 0; i < a->n_uses; i++)
		if (a->uses[i].minor == minor)
			return &a->uses[i];
	return NULL;
}
