// SPDX-License-Identifier: Apache-2.0
/* Sums over launches, and the file. */
#include "report.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report_priv.h"

#define PROGRAMS_MAX 4096 /* later ones are only summed up */

struct entry {
	uint64_t id;
	unsigned int order; /* of their first launches */
	char name[NPROG_NAME_BYTES + 1];
	char *detail; /* text about the first launch; NULL: there was no memory for it */
	uint64_t launches;
	uint64_t total_ps, least_ps, most_ps;
	uint64_t busy_ps[EXI_ENGINES];
	uint64_t insts[EXI_ENGINES]; /* of one launch */
	struct nm_report_host host;
};

struct nm_report {
	pthread_mutex_t lock;
	char *path;
	struct entry *entry; /* by order */
	unsigned int n, max;
	uint64_t other_launches, other_ps; /* of programs beyond PROGRAMS_MAX */
	struct nm_host_time host;
};

struct nm_report *nm_report_create(const char *path)
{
	struct nm_report *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->path = strdup(path);
	if (!r->path) {
		free(r);
		return NULL;
	}
	pthread_mutex_init(&r->lock, NULL);
	return r;
}

void nm_report_destroy(struct nm_report *r)
{
	if (!r)
		return;
	for (unsigned int i = 0; i < r->n; i++)
		free(r->entry[i].detail);
	free(r->entry);
	free(r->path);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

/* Latest programs are looked for first: they are launched again and again. Lock held. */
static struct entry *find(struct nm_report *r, uint64_t id)
{
	for (unsigned int i = r->n; i-- > 0;)
		if (r->entry[i].id == id)
			return &r->entry[i];
	return NULL;
}

bool nm_report_wants(struct nm_report *r, uint64_t id)
{
	bool wanted;

	pthread_mutex_lock(&r->lock);
	wanted = r->n < PROGRAMS_MAX && !find(r, id);
	pthread_mutex_unlock(&r->lock);
	return wanted;
}

/* Lock held. NULL: too many, or no memory. */
static struct entry *new_entry(struct nm_report *r, uint64_t id, const struct nm_program *program)
{
	struct entry *e;

	if (r->n == PROGRAMS_MAX)
		return NULL;
	if (r->n == r->max) {
		unsigned int max = r->max ? 2 * r->max : 64;

		e = reallocarray(r->entry, max, sizeof(*e));
		if (!e)
			return NULL;
		r->entry = e;
		r->max = max;
	}
	e = &r->entry[r->n];
	*e = (struct entry){ .id = id, .order = r->n++, .least_ps = UINT64_MAX };
	memcpy(e->name, program->name, sizeof(e->name));
	return e;
}

void nm_report_add(struct nm_report *r, uint64_t id, const struct nm_program *program,
		   const struct nm_sim_result *result, const struct nm_host_time *host,
		   uint64_t time_ps, const struct nm_chain *chain)
{
	char *detail = chain ? nm_report_detail(program, chain, time_ps) : NULL;
	struct entry *e;

	pthread_mutex_lock(&r->lock);
	nm_report_add_host(&r->host, host);
	e = find(r, id);
	if (!e)
		e = new_entry(r, id, program);
	if (!e) {
		r->other_launches++;
		r->other_ps += time_ps;
	} else {
		e->launches++;
		e->total_ps += time_ps;
		e->least_ps = time_ps < e->least_ps ? time_ps : e->least_ps;
		e->most_ps = time_ps > e->most_ps ? time_ps : e->most_ps;
		for (unsigned int i = 0; i < EXI_ENGINES; i++) {
			e->busy_ps[i] += result->busy_ps[i];
			e->insts[i] = result->insts[i];
		}
		nm_report_sum_host(&e->host, host);
		if (!e->detail) {
			e->detail = detail;
			detail = NULL;
		}
	}
	pthread_mutex_unlock(&r->lock);
	free(detail);
}

/* --- the file ----------------------------------------------------------------------------- */

static int by_time(const void *a, const void *b)
{
	const struct entry *x = *(struct entry *const *)a, *y = *(struct entry *const *)b;

	if (x->total_ps != y->total_ps)
		return x->total_ps < y->total_ps ? 1 : -1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static void write_entry(FILE *f, const struct entry *e)
{
	fprintf(f, "program '%s': %" PRIu64 " launches\n", e->name, e->launches);
	fprintf(f, "  device time    %.3f us a launch",
		(double)e->total_ps / 1e6 / (double)e->launches);
	if (e->least_ps != e->most_ps)
		fprintf(f, " (%.3f to %.3f)", (double)e->least_ps / 1e6, (double)e->most_ps / 1e6);
	fprintf(f, ", %.3f us in all\n  engine        ", (double)e->total_ps / 1e6);
	for (unsigned int i = 0; i < EXI_ENGINES; i++)
		fprintf(f, " %9s", isa_engine_name(i));
	fprintf(f, "\n  instructions  ");
	for (unsigned int i = 0; i < EXI_ENGINES; i++)
		fprintf(f, " %9" PRIu64, e->insts[i]);
	fprintf(f, "\n  busy          ");
	for (unsigned int i = 0; i < EXI_ENGINES; i++)
		fprintf(f, " %7.1f %%", 100.0 * (double)e->busy_ps[i] / (double)e->total_ps);
	fprintf(f, "\n");
	nm_report_write_host(f, &e->host, e->launches);
	fprintf(f, "%s\n", e->detail ? e->detail : "  (no memory for its first launch)\n");
}

static void write_all(FILE *f, struct entry *const *sorted, const struct nm_report *r)
{
	uint64_t launches = r->other_launches, ps = r->other_ps;

	for (unsigned int i = 0; i < r->n; i++) {
		launches += sorted[i]->launches;
		ps += sorted[i]->total_ps;
	}
	fprintf(f, "%u programs, %" PRIu64 " launches, %.3f us of device time in all\n\n", r->n,
		launches, (double)ps / 1e6);
	if (r->other_launches)
		fprintf(f,
			"of these, %" PRIu64 " launches, %.3f us, of programs beyond the first "
			"%u\n\n",
			r->other_launches, (double)r->other_ps / 1e6, PROGRAMS_MAX);
	for (unsigned int i = 0; i < r->n; i++)
		write_entry(f, sorted[i]);
}

int nm_report_write(struct nm_report *r)
{
	struct entry **sorted;
	int ret = -ENOMEM;
	FILE *f;

	pthread_mutex_lock(&r->lock);
	sorted = calloc(r->n + 1, sizeof(struct entry *));
	if (!sorted)
		goto unlock;
	for (unsigned int i = 0; i < r->n; i++)
		sorted[i] = &r->entry[i];
	qsort(sorted, r->n, sizeof(struct entry *), by_time);
	f = fopen(r->path, "w");
	if (!f) {
		ret = -errno;
		goto free;
	}
	write_all(f, sorted, r);
	if (nm_report_write_table(f, &r->host))
		ret = -ENOMEM;
	else
		ret = ferror(f) ? -EIO : 0;
	if (fclose(f) && !ret)
		ret = -errno;
free:
	free(sorted);
unlock:
	pthread_mutex_unlock(&r->lock);
	return ret;
}
