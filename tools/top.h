/* SPDX-License-Identifier: Apache-2.0 */
/*
 * neuron-top, in the order in which data goes through it:
 *
 *	top_sample.c	what the machine says at one moment: all that reads files
 *	top_view.c	two moments to rates and sums
 *	top_ui.c	keys to what is to be seen
 *	top_tree.c	the view as an outline to walk in
 *	top_screen.c	view and state to a grid of characters
 *	top_json.c	view to JSON
 *	neuron-top.c	the terminal, the clock, the arguments
 *
 * All but the first and the last are functions of their arguments alone, which is how they are
 * tested. What is not known stays unknown on the way: NAN, ND_UNKNOWN.
 */
#ifndef TOP_H
#define TOP_H

#include "neuron_devices.h"

#define TOP_VERSION  "0.1"
#define TOP_APPS_MAX 256

/* --- a moment --------------------------------------------------------------------------------- */

/* CPU time and memory of a process that has a device open. */
struct top_process {
	pid_t pid;
	uint64_t user, system; /* ticks */
	uint64_t rss_bytes;
};

struct top_sample {
	uint64_t ns; /* CLOCK_MONOTONIC */
	uint64_t cpu_user, cpu_system, cpu_total; /* ticks of all CPUs */
	double cpu_ticks; /* that all CPUs have a second */
	size_t n_devices, n_clients, n_processes;
	struct nd_device devices[ND_DEVICES_MAX];
	struct nd_client clients[ND_PROCESSES_MAX];
	struct top_process processes[ND_PROCESSES_MAX];
	struct nd_programs programs;
};

void top_sample_take(struct top_sample *s);

/* --- a view ----------------------------------------------------------------------------------- */

/* Rates are of the period between the samples; shares go from 0 to 1. NAN: not known. */
struct top_core {
	double used; /* share of the period in which the core had work */
	double engine[ND_ENGINES]; /* share in which each engine was at work */
	double launches, insts[ND_ENGINES], dma_bytes; /* a second */
	uint64_t faults; /* since the driver was bound */
	uint32_t queues, queues_used;
	bool known;
};

struct top_device {
	struct nd_device d;
	double used; /* mean of the cores */
	struct top_core core[ND_CORES_MAX];
};

/* What a process does on one device. */
struct top_use {
	unsigned int minor;
	double core[ND_CORES_MAX]; /* part of top_core.used that is its own */
	double copy; /* share of the period in which it copied */
	uint64_t hbm, host, constants, code; /* bytes; the last two are parts of the first */
	uint32_t programs; /* loaded */
};

struct top_program {
	struct nd_program p;
	unsigned int minor;
	double launches; /* a second */
};

/* A process, all its files together. */
struct top_app {
	pid_t pid;
	char command[256];
	double used; /* sum over cores */
	double user, system; /* share of all CPUs */
	double launches; /* a second */
	uint64_t rss;
	uint64_t hbm, host, constants, code; /* bytes on all devices */
	uint32_t programs; /* loaded on all devices */
	size_t n_uses, first_program, n_programs; /* in top_view.programs */
	struct top_use uses[ND_DEVICES_MAX];
};

struct top_view {
	double seconds; /* between the samples; 0: there was one only */
	double cpu_user, cpu_system; /* share of all CPUs */
	size_t n_devices, n_apps, n_programs;
	struct top_device devices[ND_DEVICES_MAX];
	struct top_app apps[TOP_APPS_MAX];
	struct top_program programs[ND_PROGRAMS_MAX];
};

/* Fills the view from two samples; before may be NULL. */
void top_view_make(struct top_view *v, const struct top_sample *before, const struct top_sample *s);

const struct top_app *top_view_app(const struct top_view *v, pid_t pid);
const struct top_device *top_view_device(const struct top_view *v, int minor);
const struct top_use *top_app_use(const struct top_app *a, unsigned int minor);

extern const char *const top_engine_names[ND_ENGINES];

/* --- state of the screen ---------------------------------------------------------------------- */

enum top_sort { TOP_SORT_CORE, TOP_SORT_MEMORY, TOP_SORT_CPU, TOP_SORT_PID, TOP_SORTS };

enum top_key {
	TOP_KEY_UP = 256,
	TOP_KEY_DOWN,
	TOP_KEY_LEFT,
	TOP_KEY_RIGHT,
	TOP_KEY_PAGE_UP,
	TOP_KEY_PAGE_DOWN,
	TOP_KEY_HOME,
	TOP_KEY_END,
	TOP_KEY_TAB_BACK,
};

#define TOP_FLIPPED_MAX 256

struct top_ui {
	pid_t tab; /* process that is shown; 0: all */
	int device; /* minor of the device that is shown; -1: all */
	enum top_sort sort;
	bool rates; /* instructions a second instead of shares */
	bool help, paused, quit;
	unsigned int period_ms;
	uint64_t cursor; /* key of the row, 0: the first */
	bool expanded; /* rows that were not flipped */
	size_t n_flipped;
	uint64_t flipped[TOP_FLIPPED_MAX]; /* rows that are the other way */
	size_t page; /* rows of the outline that fit, as last drawn */
};

void top_ui_init(struct top_ui *ui);

/* Lets go of a tab and a device that are not there any more. */
void top_ui_follow(struct top_ui *ui, const struct top_view *v);
void top_ui_key(struct top_ui *ui, const struct top_view *v, int key);

/* Tab of a number, 0 is all; -1: there is no such. The order is that of the view. */
pid_t top_ui_tab(const struct top_view *v, size_t index);
const char *top_sort_name(enum top_sort sort);

/* --- the outline ------------------------------------------------------------------------------ */

struct top_row {
	uint64_t key; /* stays with what it shows; never 0 */
	unsigned int depth;
	bool branch, open;
	char name[128];
	double used; /* NAN: not a thing that works */
	uint64_t host, device; /* bytes */
	bool host_known, device_known;
	char note[64];
};

/* Rows that can be seen, at most max; returns how many. */
size_t top_tree(const struct top_view *v, const struct top_ui *ui, struct top_row *rows,
		size_t max);

#define TOP_ROWS_MAX 4096

/* --- the grid --------------------------------------------------------------------------------- */

enum top_style {
	TOP_PLAIN,
	TOP_BOLD,
	TOP_DIM,
	TOP_TITLE,
	TOP_GOOD,
	TOP_WARN,
	TOP_BAD,
	TOP_CURSOR,
	TOP_STYLES
};

struct top_cell {
	char c;
	unsigned char style;
};

struct top_grid {
	int width, height;
	struct top_cell *cells; /* height rows of width, the caller's */
};

/* Header of the screen: what does not change. */
struct top_facts {
	char host[64], instance_type[64], instance_id[64];
};

/* Draws all; anything may be left out for want of room, nothing is drawn outside. */
void top_screen(struct top_grid *g, const struct top_view *v, struct top_ui *ui,
		const struct top_facts *facts);

/* Height at which nothing is left out. */
int top_screen_height(const struct top_view *v, const struct top_ui *ui);

/* "1.5 GiB", at most 9 characters; "1.2k" and so on, at most 6. */
void top_bytes(char *text, size_t size, double bytes);
void top_count(char *text, size_t size, double count);

/* --- JSON ------------------------------------------------------------------------------------- */

/* One line without its end, to be freed. seconds: since the epoch. */
char *top_json(const struct top_view *v, const struct top_facts *facts, double seconds);

#endif /* TOP_H */
