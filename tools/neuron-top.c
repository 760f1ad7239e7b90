// SPDX-License-Identifier: Apache-2.0
/* neuron-top: what the NeuronCores do and for whom, live. top.h tells how it is made. */
#define _GNU_SOURCE
#include "top.h"

#include <argp.h>
#include <curses.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define BATCH_WIDTH 120
/* The first period is short: nobody wants to look at a screen without rates. */
#define FIRST_MS 250

struct options {
	bool batch, json;
	unsigned long frames; /* 0: without end */
	struct top_ui ui;
};

static struct top_sample samples[2];
static struct top_view view;
static struct top_facts facts;
static int now; /* index of the newest sample */
static bool have_before;

/* --- time ------------------------------------------------------------------------------------- */

static uint64_t clock_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void wait_until(uint64_t end)
{
	struct timespec t = { .tv_sec = (time_t)(end / 1000),
			      .tv_nsec = (long)(end % 1000) * 1000000 };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

static void look(void)
{
	now = !now;
	top_sample_take(&samples[now]);
	top_view_make(&view, have_before ? &samples[!now] : NULL, &samples[now]);
	have_before = true;
}

/* Says why none can be used, if so. */
static bool any_device(void)
{
	char why[256];

	for (size_t i = 0; i < view.n_devices; i++)
		if (!view.devices[i].d.error)
			return true;
	for (size_t i = 0; i < view.n_devices; i++) {
		nd_why(&view.devices[i].d, why, sizeof(why));
		fprintf(stderr, "neuron-top: %s\n", why);
	}
	if (!view.n_devices)
		fputs("neuron-top: no Neuron device: is there one in lspci -d 1d0f: and is the "
		      "module neuron loaded?\n",
		      stderr);
	return false;
}

/* --- text and JSON ---------------------------------------------------------------------------- */

static void print_json(void)
{
	struct timespec t;
	char *text;

	clock_gettime(CLOCK_REALTIME, &t);
	text = top_json(&view, &facts, (double)t.tv_sec + (double)t.tv_nsec / 1e9);
	puts(text);
	free(text);
}

/* The screen without its keys, as wide as $COLUMNS says. */
static void print_text(struct top_ui *ui)
{
	const char *columns = getenv("COLUMNS");
	int width = columns ? atoi(columns) : 0;
	struct top_grid g = { .width = width >= 40 && width < 1000 ? width : BATCH_WIDTH };

	g.height = top_screen_height(&view, ui);
	g.cells = calloc((size_t)g.width * (size_t)g.height, sizeof(*g.cells));
	if (!g.cells)
		return;
	top_screen(&g, &view, ui, &facts);
	for (int y = 0; y < g.height - 1; y++) {
		int end = g.width;

		while (end && g.cells[y * g.width + end - 1].c == ' ')
			end--;
		for (int x = 0; x < end; x++)
			putchar(g.cells[y * g.width + x].c);
		putchar('\n');
	}
	putchar('\n');
	free(g.cells);
}

static int run_batch(struct options *o)
{
	uint64_t next = clock_ms();

	for (unsigned long frame = 0; !o->frames || frame < o->frames; frame++) {
		next += o->ui.period_ms;
		wait_until(next);
		look();
		if (o->json)
			print_json();
		else
			print_text(&o->ui);
		/* Who reads along a pipe wants it now; who stopped reading ends us. */
		if (nd_end_output("neuron-top"))
			return 1;
	}
	return 0;
}

/* --- terminal --------------------------------------------------------------------------------- */

static attr_t styles[TOP_STYLES] = {
	[TOP_BOLD] = A_BOLD, [TOP_DIM] = A_DIM,	       [TOP_TITLE] = A_REVERSE,
	[TOP_BAD] = A_BOLD,  [TOP_CURSOR] = A_REVERSE,
};

static void add_colours(void)
{
	static const short colours[TOP_STYLES] = {
		[TOP_GOOD] = COLOR_GREEN,
		[TOP_WARN] = COLOR_YELLOW,
		[TOP_BAD] = COLOR_RED,
	};

	if (!has_colors())
		return;
	start_color();
	use_default_colors();
	for (short i = 0; i < TOP_STYLES; i++) {
		if (!colours[i])
			continue;
		init_pair(i, colours[i], -1);
		styles[i] |= COLOR_PAIR(i);
	}
}

static void draw(struct top_ui *ui)
{
	struct top_grid g = { .width = COLS, .height = LINES };

	g.cells = calloc((size_t)COLS * (size_t)LINES, sizeof(*g.cells));
	if (!g.cells)
		return;
	top_screen(&g, &view, ui, &facts);
	for (int y = 0; y < g.height; y++)
		for (int x = 0; x < g.width; x++) {
			const struct top_cell *cell = &g.cells[y * g.width + x];

			mvaddch(y, x, (unsigned char)cell->c | styles[cell->style]);
		}
	refresh();
	free(g.cells);
}

static int key_of(int c)
{
	switch (c) {
	case KEY_UP:
		return TOP_KEY_UP;
	case KEY_DOWN:
		return TOP_KEY_DOWN;
	case KEY_LEFT:
		return TOP_KEY_LEFT;
	case KEY_RIGHT:
		return TOP_KEY_RIGHT;
	case KEY_PPAGE:
		return TOP_KEY_PAGE_UP;
	case KEY_NPAGE:
		return TOP_KEY_PAGE_DOWN;
	case KEY_HOME:
		return TOP_KEY_HOME;
	case KEY_END:
		return TOP_KEY_END;
	case KEY_BTAB:
		return TOP_KEY_TAB_BACK;
	default:
		return c < KEY_MIN ? c : 0;
	}
}

/*
 * Keys until the time has come, and in any case those that were pressed before: where a look takes
 * longer than a period the time has always come. False: the terminal has gone.
 */
static bool read_keys(struct top_ui *ui, uint64_t until)
{
	while (!ui->quit) {
		uint64_t at = clock_ms();
		int c;

		timeout(at < until ? (int)(until - at) : 0);
		c = getch();
		if (c == ERR) {
			/* Time is up, or there is nobody to press keys. */
			struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };

			if (poll(&in, 1, 0) > 0 && in.revents & (POLLHUP | POLLERR | POLLNVAL))
				return false;
			if (at >= until)
				return true;
			continue;
		}
		/* A new size arrives as a key; curses knows it by then. */
		if (c != KEY_RESIZE)
			top_ui_key(ui, &view, key_of(c));
		else
			clear();
		draw(ui);
	}
	return true;
}

static int run_terminal(struct options *o)
{
	uint64_t next = clock_ms() + FIRST_MS;
	bool there = true;

	setlocale(LC_ALL, "");
	if (!newterm(NULL, stdout, stdin)) {
		fprintf(stderr,
			"neuron-top: the terminal %s is not known here: set TERM, or use --batch\n",
			getenv("TERM") ? getenv("TERM") : "(TERM is not set)");
		return 1;
	}
	cbreak();
	noecho();
	keypad(stdscr, TRUE);
	curs_set(0);
	add_colours();
	draw(&o->ui);
	for (unsigned long frame = 0; there && !o->ui.quit;) {
		there = read_keys(&o->ui, next);
		if (!there || o->ui.quit)
			break;
		next = clock_ms() + o->ui.period_ms;
		if (o->ui.paused)
			continue;
		look();
		draw(&o->ui);
		if (o->frames && ++frame == o->frames)
			break;
	}
	endwin();
	return there ? 0 : 1;
}

/* --- arguments -------------------------------------------------------------------------------- */

static const struct argp_option option_table[] = {
	{ "batch", 'b', NULL, 0, "text instead of a screen; also if the output is no terminal", 0 },
	{ "json-output", 'j', NULL, 0, "a line of JSON for each period, with all there is to know",
	  0 },
	{ "delay", 'd', "SECONDS", 0, "period, 0.1 to 60 (default 1)", 0 },
	{ "iterations", 'n', "N", 0, "end after N periods", 0 },
	{ "device", 'D', "N", 0, "only device N", 0 },
	{ "sort", 's', "WHAT", 0, "order of processes: core, memory, vcpu, pid", 0 },
	{ 0 },
};

static void parse_sort(struct top_ui *ui, const char *arg, struct argp_state *state)
{
	for (enum top_sort i = 0; i < TOP_SORTS; i++)
		if (!strcasecmp(arg, top_sort_name(i))) {
			ui->sort = i;
			return;
		}
	argp_error(state, "--sort %s: core, memory, vcpu or pid", arg);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;
	double seconds;
	char *end;
	long n;

	switch (key) {
	case 'b':
		o->batch = true;
		break;
	case 'j':
		o->json = true;
		break;
	case 'd':
		seconds = strtod(arg, &end);
		if (*end || end == arg || !(seconds >= 0.1 && seconds <= 60))
			argp_error(state, "--delay %s: seconds, 0.1 to 60", arg);
		o->ui.period_ms = (unsigned int)lround(seconds * 1000);
		break;
	case 'n':
		errno = 0;
		n = strtol(arg, &end, 10);
		if (*end || end == arg || n < 1 || errno)
			argp_error(state, "--iterations %s: a number from 1 to %ld", arg, LONG_MAX);
		o->frames = (unsigned long)n;
		break;
	case 'D':
		n = strtol(arg, &end, 10);
		if (*end || end == arg || n < 0 || n > 0xffff)
			argp_error(state, "--device %s: the N of /dev/accel/accelN", arg);
		o->ui.device = (int)n;
		break;
	case 's':
		parse_sort(&o->ui, arg, state);
		break;
	case ARGP_KEY_ARG:
		argp_error(state, "unexpected argument '%s'", arg);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		.options = option_table,
		.parser = parse,
		.doc = "Shows the use of NeuronCores, device memory and vCPUs, of all and of each "
		       "process, as far as the caller may see these. '?' in it lists the keys.",
	};
	struct options o = { 0 };

	top_ui_init(&o.ui);
	argp_parse(&argp, argc, argv, 0, NULL, &o);
	if (gethostname(facts.host, sizeof(facts.host) - 1))
		facts.host[0] = 0;
	nd_instance(facts.instance_type, facts.instance_id, sizeof(facts.instance_type));
	look();
	if (!any_device())
		return 1;
	if (o.ui.device >= 0 && !top_view_device(&view, o.ui.device)) {
		fprintf(stderr, "neuron-top: no device %d\n", o.ui.device);
		return 1;
	}
	if (o.batch || o.json || !isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return run_batch(&o);
	return run_terminal(&o);
}
