// SPDX-License-Identifier: Apache-2.0
/*
 * Devices, in them processes, in these what they hold: tensors, constants, code and programs. Open
 * at first are devices; 'x' opens or closes all.
 */
#include "top.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum row_kind {
	ROW_DEVICE = 1,
	ROW_APP,
	ROW_TENSORS,
	ROW_CONSTANTS,
	ROW_CODE,
	ROW_BUFFERS,
	ROW_PROGRAM,
	ROW_OTHERS
};

struct tree {
	const struct top_view *v;
	const struct top_ui *ui;
	struct top_row *rows;
	size_t n, max;
};

/* Kind, minor, pid and program: apart for all that there can be. */
static uint64_t row_key(enum row_kind kind, unsigned int minor, pid_t pid, uint32_t program)
{
	uint64_t key = ((uint64_t)kind << 60) ^ ((uint64_t)(minor & 0xff) << 52);

	return key ^ ((uint64_t)(uint32_t)pid << 24) ^ (program & 0xffffff);
}

static bool is_open(const struct top_ui *ui, uint64_t key, bool first)
{
	bool open = first || ui->expanded;

	for (size_t i = 0; i < ui->n_flipped; i++)
		if (ui->flipped[i] == key)
			return !open;
	return open;
}

/* A row with all of its unknown; NULL: there is no room. */
static struct top_row *add_row(struct tree *t, enum row_kind kind, unsigned int depth,
			       unsigned int minor, pid_t pid, uint32_t program)
{
	struct top_row *row;

	if (t->n == t->max)
		return NULL;
	row = &t->rows[t->n++];
	*row = (struct top_row){ .key = row_key(kind, minor, pid, program),
				 .depth = depth,
				 .used = NAN };
	return row;
}

static void add_memory(struct tree *t, enum row_kind kind, const char *name,
		       const struct top_use *u, pid_t pid, uint64_t bytes)
{
	struct top_row *row = add_row(t, kind, 2, u->minor, pid, 0);

	if (!row)
		return;
	snprintf(row->name, sizeof(row->name), "%s", name);
	if (kind == ROW_BUFFERS) {
		row->host = bytes;
		row->host_known = true;
	} else {
		row->device = bytes;
		row->device_known = true;
	}
}

static int by_launches(const void *a, const void *b)
{
	const struct top_program *x = *(const struct top_program *const *)a;
	const struct top_program *y = *(const struct top_program *const *)b;
	double dx = isnan(x->launches) ? 0 : x->launches, dy = isnan(y->launches) ? 0 : y->launches;

	if (dx != dy)
		return dx < dy ? 1 : -1;
	if (x->p.launches != y->p.launches)
		return x->p.launches < y->p.launches ? 1 : -1;
	return (x->p.id > y->p.id) - (x->p.id < y->p.id);
}

/* The busiest programs first. */
static void add_programs(struct tree *t, const struct top_app *a, unsigned int minor)
{
	static const struct top_program *sorted[ND_PROGRAMS_MAX];
	char rate[16];
	size_t n = 0;

	for (size_t i = 0; i < a->n_programs; i++)
		if (t->v->programs[a->first_program + i].minor == minor)
			sorted[n++] = &t->v->programs[a->first_program + i];
	qsort(sorted, n, sizeof(sorted[0]), by_launches);
	for (size_t i = 0; i < n; i++) {
		const struct top_program *p = sorted[i];
		struct top_row *row = add_row(t, ROW_PROGRAM, 2, minor, a->pid, p->p.id);

		if (!row)
			return;
		snprintf(row->name, sizeof(row->name), "Model %u %s", p->p.id, p->p.name);
		row->device = p->p.bytes;
		row->device_known = true;
		top_count(rate, sizeof(rate), p->launches);
		snprintf(row->note, sizeof(row->note), "%s launches/s", rate);
	}
}

static void add_app(struct tree *t, const struct top_app *a, const struct top_use *u)
{
	struct top_row *row = add_row(t, ROW_APP, 1, u->minor, a->pid, 0);
	uint64_t tensors = u->hbm > u->constants + u->code ? u->hbm - u->constants - u->code : 0;

	if (!row)
		return;
	snprintf(row->name, sizeof(row->name), "%d %.110s", a->pid, a->command);
	row->branch = true;
	row->open = is_open(t->ui, row->key, false);
	row->used = 0;
	for (size_t c = 0; c < ND_CORES_MAX; c++)
		row->used += u->core[c];
	row->device = u->hbm;
	row->host = u->host;
	row->device_known = row->host_known = true;
	snprintf(row->note, sizeof(row->note), "%u model%s", u->programs,
		 u->programs == 1 ? "" : "s");
	if (!row->open)
		return;
	add_memory(t, ROW_TENSORS, "Tensors", u, a->pid, tensors);
	add_memory(t, ROW_CONSTANTS, "Constants", u, a->pid, u->constants);
	add_memory(t, ROW_CODE, "Model Code", u, a->pid, u->code);
	add_memory(t, ROW_BUFFERS, "DMA Buffers", u, a->pid, u->host);
	add_programs(t, a, u->minor);
}

/* --- order ------------------------------------------------------------------------------------ */

struct entry {
	const struct top_app *a;
	const struct top_use *u;
	double weight; /* most first */
};

static int by_weight(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight < y->weight ? 1 : -1;
	return (x->a->pid > y->a->pid) - (x->a->pid < y->a->pid);
}

static double weight_of(enum top_sort sort, const struct top_app *a, const struct top_use *u)
{
	double w = 0;

	switch (sort) {
	case TOP_SORT_CORE:
		for (size_t c = 0; c < ND_CORES_MAX; c++)
			w += u->core[c];
		break;
	case TOP_SORT_MEMORY:
		w = (double)(u->hbm + u->host);
		break;
	case TOP_SORT_CPU:
		w = a->user + a->system;
		break;
	default:
		break;
	}
	return isnan(w) ? 0 : w;
}

static void add_apps(struct tree *t, const struct top_device *d, uint64_t *hbm)
{
	static struct entry entries[TOP_APPS_MAX];
	size_t n = 0;

	for (size_t i = 0; i < t->v->n_apps; i++) {
		const struct top_app *a = &t->v->apps[i];
		const struct top_use *u = top_app_use(a, d->d.minor);

		if (!u)
			continue;
		*hbm += u->hbm;
		if (!t->ui->tab || t->ui->tab == a->pid)
			entries[n++] = (struct entry){ a, u, weight_of(t->ui->sort, a, u) };
	}
	qsort(entries, n, sizeof(entries[0]), by_weight);
	for (size_t i = 0; i < n; i++)
		add_app(t, entries[i].a, entries[i].u);
}

static void add_device(struct tree *t, const struct top_device *d)
{
	const struct top_app *tab = t->ui->tab ? top_view_app(t->v, t->ui->tab) : NULL;
	const struct top_use *u = tab ? top_app_use(tab, d->d.minor) : NULL;
	struct top_row *row;
	uint64_t hbm = 0;

	if (d->d.error || (tab && !u))
		return;
	row = add_row(t, ROW_DEVICE, 0, d->d.minor, 0, 0);
	if (!row)
		return;
	snprintf(row->name, sizeof(row->name), "ND%u %s", d->d.minor, d->d.bdf);
	row->branch = true;
	row->open = is_open(t->ui, row->key, true);
	row->used = u ? NAN : d->used;
	row->device = u ? u->hbm : d->d.hbm_used;
	row->device_known = true;
	if (!row->open)
		return;
	add_apps(t, d, &hbm);
	/* Of processes that the caller may not look into, or of buffers that outlived theirs. */
	if (tab || d->d.hbm_used <= hbm)
		return;
	row = add_row(t, ROW_OTHERS, 1, d->d.minor, 0, 0);
	if (!row)
		return;
	snprintf(row->name, sizeof(row->name), "others, not to be seen");
	row->device = d->d.hbm_used - hbm;
	row->device_known = true;
}

size_t top_tree(const struct top_view *v, const struct top_ui *ui, struct top_row *rows, size_t max)
{
	struct tree t = { .v = v, .ui = ui, .rows = rows, .max = max };

	for (size_t i = 0; i < v->n_devices; i++)
		if (ui->device < 0 || ui->device == (int)v->devices[i].d.minor)
			add_device(&t, &v->devices[i]);
	return t.n;
}
