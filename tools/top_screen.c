// SPDX-License-Identifier: Apache-2.0
/*
 * From top to bottom: title, NeuronCores, vCPUs, memory, devices, outline, tabs, keys. What does not
 * fit goes in this order: vCPUs, memory, devices; the outline scrolls.
 */
#include "top.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#define WIDTH_MIN   40
#define HEIGHT_MIN  8
#define FRAME_ROWS  3 /* title, tabs, keys */
#define TREE_MIN    4 /* with its heading */
#define CPU_ROWS    3
#define MEMORY_ROWS 5

/* --- text ------------------------------------------------------------------------------------- */

void top_bytes(char *text, size_t size, double bytes)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB" };
	size_t unit = 0;

	if (isnan(bytes)) {
		snprintf(text, size, "-");
		return;
	}
	/* 1023.95 would be printed with five digits. */
	while (bytes >= 1023.95 && unit < 5) {
		bytes /= 1024;
		unit++;
	}
	snprintf(text, size, "%.*f %s", unit ? 1 : 0, bytes, units[unit]);
}

void top_count(char *text, size_t size, double count)
{
	static const char units[] = " kMGTP";
	size_t unit = 0;

	if (isnan(count)) {
		snprintf(text, size, "-");
		return;
	}
	while (count >= 999.95 && unit < 5) {
		count /= 1000;
		unit++;
	}
	if (unit)
		snprintf(text, size, "%.1f%c", count, units[unit]);
	else
		snprintf(text, size, "%.*f", count < 10 && count != 0 ? 1 : 0, count);
}

static void percent(char *text, size_t size, double share)
{
	if (isnan(share))
		snprintf(text, size, "-");
	else
		snprintf(text, size, "%.1f%%", share * 100);
}

/* --- the grid --------------------------------------------------------------------------------- */

struct pen {
	struct top_grid *g;
	const struct top_view *v;
	struct top_ui *ui;
	int y; /* next row */
};

static void put(struct top_grid *g, int x, int y, enum top_style style, const char *text)
{
	for (; *text; text++, x++)
		if (x >= 0 && x < g->width && y >= 0 && y < g->height)
			g->cells[y * g->width + x] = (struct top_cell){ *text, style };
}

__attribute__((format(printf, 5, 6))) static void say(struct top_grid *g, int x, int y,
						      enum top_style style, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	put(g, x, y, style, text);
}

/* Ends before x. */
static void put_right(struct top_grid *g, int x, int y, enum top_style style, const char *text)
{
	put(g, x - (int)strlen(text), y, style, text);
}

static void paint(struct top_grid *g, int y, enum top_style style)
{
	for (int x = 0; x < g->width && y >= 0 && y < g->height; x++)
		g->cells[y * g->width + x].style = style;
}

static enum top_style style_of(double share)
{
	return isnan(share) ? TOP_DIM : share < 0.6 ? TOP_GOOD : share < 0.9 ? TOP_WARN : TOP_BAD;
}

/* [|||||     ], width with its brackets. Anything at all shows. */
static void bar(struct top_grid *g, int x, int y, int width, double share)
{
	int inner = width - 2, full;

	if (inner < 1)
		return;
	full = isnan(share) ? 0 : (int)ceil(share * inner - 1e-9);
	put(g, x, y, TOP_DIM, "[");
	for (int i = 0; i < inner && i < full; i++)
		put(g, x + 1 + i, y, TOP_GOOD, "|");
	put(g, x + width - 1, y, TOP_DIM, "]");
}

static void heading(struct pen *p, const char *text)
{
	put(p->g, 0, p->y++, TOP_BOLD, text);
}

/* --- NeuronCores ------------------------------------------------------------------------------ */

#define BAR_X	   6
#define ENGINE_W   8
#define ENGINES_W  (ND_ENGINES * ENGINE_W)
#define RATES_W	   30
#define PERCENT_W  7
#define CELL_W	   6
#define ENGINES_AT (BAR_X + PERCENT_W + 16 + ENGINES_W) /* width from which there are engines */

/* The device whose cores have a line each, or NULL: devices have. */
static const struct top_device *device_in_detail(const struct top_view *v, const struct top_ui *ui)
{
	if (ui->device >= 0)
		return top_view_device(v, ui->device);
	return v->n_devices == 1 ? &v->devices[0] : NULL;
}

/* A core's share that the tab shows: of all, or of its process. */
static double core_share(const struct pen *p, const struct top_device *d, uint32_t core)
{
	const struct top_app *a = p->ui->tab ? top_view_app(p->v, p->ui->tab) : NULL;
	const struct top_use *u = a ? top_app_use(a, d->d.minor) : NULL;

	if (!p->ui->tab)
		return d->core[core].used;
	return u ? u->core[core] : 0;
}

static void engine_heads(struct pen *p, int x)
{
	for (int e = 0; e < ND_ENGINES; e++)
		put_right(p->g, x + (e + 1) * ENGINE_W, p->y, TOP_DIM, top_engine_names[e]);
}

static void engine_cells(struct pen *p, int x, const struct top_core *c)
{
	char text[32];

	for (int e = 0; e < ND_ENGINES; e++) {
		enum top_style style = p->ui->rates ? TOP_PLAIN : style_of(c->engine[e]);

		/* How a process uses the engines is not counted. */
		if (p->ui->tab) {
			snprintf(text, sizeof(text), "-");
			style = TOP_DIM;
		} else if (p->ui->rates) {
			top_count(text, sizeof(text), c->insts[e]);
		} else {
			percent(text, sizeof(text), c->engine[e]);
		}
		put_right(p->g, x + (e + 1) * ENGINE_W, p->y, style, text);
	}
}

/* Where the columns of rates end. */
#define RATE_1 12
#define RATE_2 22
#define RATE_3 (RATES_W - 1)

static void rate_heads(struct pen *p, int x)
{
	put_right(p->g, x + RATE_1, p->y, TOP_DIM, "launches/s");
	put_right(p->g, x + RATE_2, p->y, TOP_DIM, "DMA/s");
	put_right(p->g, x + RATE_3, p->y, TOP_DIM, "faults");
}

static void rate_cells(struct pen *p, int x, const struct top_core *c)
{
	char text[32];

	top_count(text, sizeof(text), p->ui->tab ? NAN : c->launches);
	put_right(p->g, x + RATE_1, p->y, TOP_PLAIN, text);
	top_bytes(text, sizeof(text), p->ui->tab ? NAN : c->dma_bytes);
	put_right(p->g, x + RATE_2, p->y, TOP_PLAIN, text);
	snprintf(text, sizeof(text), "%llu", (unsigned long long)c->faults);
	put_right(p->g, x + RATE_3, p->y, c->faults ? TOP_BAD : TOP_PLAIN, c->known ? text : "-");
}

static void draw_cores_of(struct pen *p, const struct top_device *d, int bottom)
{
	bool engines = p->g->width >= ENGINES_AT, rates = p->g->width >= ENGINES_AT + RATES_W;
	int right = (engines ? ENGINES_W : 0) + (rates ? RATES_W : 0);
	int width = p->g->width - BAR_X - PERCENT_W - right, x = BAR_X + width + PERCENT_W;
	char text[32];

	if (engines)
		engine_heads(p, x);
	if (rates)
		rate_heads(p, x + ENGINES_W);
	p->y++;
	for (uint32_t c = 0; c < d->d.cores && c < ND_CORES_MAX && p->y < bottom; c++, p->y++) {
		double used = core_share(p, d, c);

		say(p->g, 0, p->y, TOP_PLAIN, "NC%u", d->d.first_core + c);
		bar(p->g, BAR_X, p->y, width, used);
		percent(text, sizeof(text), used);
		put_right(p->g, BAR_X + width + PERCENT_W, p->y, style_of(used), text);
		if (engines)
			engine_cells(p, x, &d->core[c]);
		if (rates)
			rate_cells(p, x + ENGINES_W, &d->core[c]);
	}
}

/* A line for each device, with a number for each core. */
static void draw_cores_by_device(struct pen *p, int bottom)
{
	char text[32];

	p->y++;
	for (size_t i = 0; i < p->v->n_devices && p->y < bottom; i++) {
		const struct top_device *d = &p->v->devices[i];
		int cores = d->d.cores < ND_CORES_MAX ? (int)d->d.cores : ND_CORES_MAX;
		int width = p->g->width - BAR_X - PERCENT_W - cores * CELL_W, x;
		double sum = 0;

		if (d->d.error)
			continue;
		if (width < 10)
			width = 10;
		x = BAR_X + width + PERCENT_W;
		for (int c = 0; c < cores; c++) {
			double used = core_share(p, d, (uint32_t)c);

			sum += used;
			percent(text, sizeof(text), used);
			put_right(p->g, x + (c + 1) * CELL_W, p->y, style_of(used), text);
		}
		say(p->g, 0, p->y, TOP_PLAIN, "ND%u", d->d.minor);
		bar(p->g, BAR_X, p->y, width, cores ? sum / cores : NAN);
		percent(text, sizeof(text), cores ? sum / cores : NAN);
		put_right(p->g, BAR_X + width + PERCENT_W, p->y, style_of(sum / cores), text);
		p->y++;
	}
}

static void draw_cores(struct pen *p, int bottom)
{
	const struct top_device *d = device_in_detail(p->v, p->ui);
	const char *what = p->ui->rates ? "Instructions/s" : "Utilization";

	if (d) {
		say(p->g, 0, p->y, TOP_BOLD, "NeuronCore v%u %s", d->d.arch, what);
		draw_cores_of(p, d, bottom);
	} else {
		say(p->g, 0, p->y, TOP_BOLD, "NeuronCore v%u Utilization", p->v->devices[0].d.arch);
		draw_cores_by_device(p, bottom);
	}
}

static int cores_rows(const struct top_view *v, const struct top_ui *ui)
{
	const struct top_device *d = device_in_detail(v, ui);

	if (d)
		return 1 + (int)(d->d.cores < ND_CORES_MAX ? d->d.cores : ND_CORES_MAX);
	return 1 + (int)v->n_devices;
}

/* --- vCPUs and memory ------------------------------------------------------------------------- */

static void draw_cpu_row(struct pen *p, const char *name, double user, double system)
{
	char u[16], s[16];
	int width = p->g->width - 20 - 28;

	put(p->g, 0, p->y, TOP_PLAIN, name);
	bar(p->g, 20, p->y, width, user + system);
	percent(u, sizeof(u), user);
	percent(s, sizeof(s), system);
	say(p->g, p->g->width - 27, p->y++, TOP_PLAIN, "%6s user %6s system", u, s);
}

static void draw_cpu(struct pen *p)
{
	double user = 0, system = 0;

	for (size_t i = 0; i < p->v->n_apps; i++) {
		const struct top_app *a = &p->v->apps[i];

		if (p->ui->tab && a->pid != p->ui->tab)
			continue;
		user += isnan(a->user) ? 0 : a->user;
		system += isnan(a->system) ? 0 : a->system;
	}
	heading(p, "VCPU Utilization");
	draw_cpu_row(p, "System vCPU usage", p->v->cpu_user, p->v->cpu_system);
	draw_cpu_row(p, "Runtime vCPU usage", p->v->seconds > 0 ? user : NAN,
		     p->v->seconds > 0 ? system : NAN);
}

/* What the tab and the device that are shown hold; totals of devices count other users too. */
struct holdings {
	double host, dma_buffers, rss, device, tensors, constants, code;
};

static struct holdings count_holdings(const struct pen *p)
{
	struct holdings h = { 0 };
	double total = 0;

	for (size_t i = 0; i < p->v->n_apps; i++) {
		const struct top_app *a = &p->v->apps[i];
		bool counted = false;

		for (size_t j = 0; j < a->n_uses && (!p->ui->tab || a->pid == p->ui->tab); j++) {
			const struct top_use *u = &a->uses[j];

			if (p->ui->device >= 0 && (int)u->minor != p->ui->device)
				continue;
			counted = true;
			h.dma_buffers += (double)u->host;
			h.device += (double)u->hbm;
			h.constants += (double)u->constants;
			h.code += (double)u->code;
		}
		h.rss += counted ? (double)a->rss : 0;
	}
	h.tensors = h.device - h.constants - h.code;
	/* Its buffers are mapped by the process, most of them: they are in what it has resident. */
	h.host = h.rss > h.dma_buffers ? h.rss : h.dma_buffers;
	for (size_t i = 0; i < p->v->n_devices; i++)
		if (p->ui->device < 0 || p->ui->device == (int)p->v->devices[i].d.minor)
			total += (double)p->v->devices[i].d.hbm_used;
	if (!p->ui->tab)
		h.device = total;
	return h;
}

struct column {
	const char *head;
	double bytes;
};

static void draw_memory_rows(struct pen *p, const char *name, const struct column *columns,
			     size_t n)
{
	int x = 18;
	char text[32];

	put(p->g, 0, p->y + 1, TOP_PLAIN, name);
	for (size_t i = 0; i < n; i++) {
		int width = (int)strlen(columns[i].head);

		x += (width > 9 ? width : 9) + 1;
		put_right(p->g, x, p->y, TOP_DIM, columns[i].head);
		top_bytes(text, sizeof(text), columns[i].bytes);
		put_right(p->g, x, p->y + 1, TOP_PLAIN, text);
	}
	p->y += 2;
}

static void draw_memory(struct pen *p)
{
	struct holdings h = count_holdings(p);
	/* The runtime's own use of a process's buffers is not to be seen from outside. */
	const struct column host[] = {
		{ "Total", h.host },
		{ "Tensors", NAN },
		{ "Constants", NAN },
		{ "DMA Buffers", h.dma_buffers },
		{ "App. Memory", h.host - h.dma_buffers },
	};
	const struct column device[] = {
		{ "Total", h.device },	  { "Tensors", h.tensors }, { "Constants", h.constants },
		{ "Model Code", h.code }, { "Runtime", NAN },	    { "Scratchpad", NAN },
	};

	heading(p, "Memory Usage Summary");
	draw_memory_rows(p, "Host Used Memory", host, sizeof(host) / sizeof(host[0]));
	draw_memory_rows(p, "Device Used Memory", device, sizeof(device) / sizeof(device[0]));
}

/* --- devices ---------------------------------------------------------------------------------- */

static void reading(char *text, size_t size, int64_t value, double unit, const char *name)
{
	if (value == ND_UNKNOWN)
		snprintf(text, size, "-");
	else
		snprintf(text, size, "%.1f %s", (double)value / unit, name);
}

static void errors(char *text, size_t size, const struct nd_device *d)
{
	if (d->hbm_errors == ND_UNKNOWN || d->sram_errors == ND_UNKNOWN)
		snprintf(text, size, "-");
	else
		snprintf(text, size, "%lld/%lld", (long long)d->hbm_errors,
			 (long long)d->sram_errors);
}

static void draw_device(struct pen *p, const struct top_device *d)
{
	char used[16], total[16], power[16], temperature[16], ecc[48], why[256];
	unsigned long long faults = 0;

	if (d->d.error) {
		nd_why(&d->d, why, sizeof(why));
		put(p->g, 0, p->y++, TOP_BAD, why);
		return;
	}
	for (size_t c = 0; c < ND_CORES_MAX; c++)
		faults += d->core[c].faults;
	top_bytes(used, sizeof(used), (double)d->d.hbm_used);
	top_bytes(total, sizeof(total), (double)d->d.hbm_bytes);
	reading(power, sizeof(power), d->d.power_uw, 1e6, "W");
	reading(temperature, sizeof(temperature), d->d.temp_mc, 1e3, "C");
	errors(ecc, sizeof(ecc), &d->d);
	say(p->g, 0, p->y, TOP_PLAIN, "ND%-4u%-13s%s%s", d->d.minor, d->d.bdf,
	    nd_arch_name(d->d.arch), d->d.revision == 255 ? " virtual" : "");
	say(p->g, 32, p->y, TOP_PLAIN, "%9s /%8s%8s%7s", used, total, power, temperature);
	say(p->g, 66, p->y, faults ? TOP_BAD : TOP_PLAIN, "%7llu", faults);
	say(p->g, 73, p->y++, d->d.hbm_errors > 0 || d->d.sram_errors > 0 ? TOP_BAD : TOP_PLAIN,
	    "%7s", ecc);
}

static void draw_devices(struct pen *p, int bottom)
{
	say(p->g, 0, p->y++, TOP_BOLD, "%-6s%-13s%-13s%19s%8s%7s%7s%7s", "ND", "PCI", "Chip",
	    "HBM used / total", "Power", "Temp.", "Faults", "ECC");
	for (size_t i = 0; i < p->v->n_devices && p->y < bottom; i++)
		if (p->ui->device < 0 || p->ui->device == (int)p->v->devices[i].d.minor)
			draw_device(p, &p->v->devices[i]);
}

static int devices_rows(const struct top_view *v, const struct top_ui *ui)
{
	return 1 + (ui->device >= 0 ? 1 : (int)v->n_devices);
}

/* --- outline ---------------------------------------------------------------------------------- */

static void draw_row(struct pen *p, const struct top_row *row, bool note)
{
	char name[256], text[32];
	int right = p->g->width - (note ? 20 : 0), room = right - 32;

	snprintf(name, sizeof(name), "%*s%s %s", (int)row->depth * 2, "",
		 !row->branch ? " " :
		 row->open    ? "-" :
				"+",
		 row->name);
	if (room > 0 && room < (int)sizeof(name))
		name[room] = 0;
	put(p->g, 0, p->y, TOP_PLAIN, name);
	percent(text, sizeof(text), row->used);
	put_right(p->g, right - 24, p->y, TOP_PLAIN, isnan(row->used) ? "" : text);
	top_bytes(text, sizeof(text), row->host_known ? (double)row->host : NAN);
	put_right(p->g, right - 12, p->y, TOP_PLAIN, text);
	top_bytes(text, sizeof(text), row->device_known ? (double)row->device : NAN);
	put_right(p->g, right, p->y, TOP_PLAIN, text);
	if (note)
		say(p->g, right + 1, p->y, TOP_PLAIN, "%.19s", row->note);
}

/* Scrolls as little as shows the cursor. */
static void draw_outline(struct pen *p, int bottom)
{
	static struct top_row rows[TOP_ROWS_MAX];
	size_t n = top_tree(p->v, p->ui, rows, TOP_ROWS_MAX), cursor = 0, first;
	size_t room = bottom > p->y + 1 ? (size_t)(bottom - p->y - 1) : 0;
	bool note = p->g->width >= 80;
	int right = p->g->width - (note ? 20 : 0);

	p->ui->page = room;
	put(p->g, 0, p->y, TOP_BOLD, "Memory Usage Details");
	put_right(p->g, right - 24, p->y, TOP_DIM, "Cores");
	put_right(p->g, right - 12, p->y, TOP_DIM, "Host Memory");
	put_right(p->g, right, p->y++, TOP_DIM, "Device Mem.");
	for (size_t i = 0; i < n; i++)
		if (rows[i].key == p->ui->cursor)
			cursor = i;
	first = cursor >= room ? cursor + 1 - room : 0;
	for (size_t i = first; i < n && p->y < bottom; i++, p->y++) {
		draw_row(p, &rows[i], note);
		if (rows[i].key == p->ui->cursor)
			paint(p->g, p->y, TOP_CURSOR);
	}
}

static int outline_rows(const struct top_view *v, const struct top_ui *ui)
{
	static struct top_row rows[TOP_ROWS_MAX];

	return 1 + (int)top_tree(v, ui, rows, TOP_ROWS_MAX);
}

/* --- frame ------------------------------------------------------------------------------------ */

static void draw_title(struct pen *p, const struct top_facts *facts)
{
	struct top_grid *g = p->g;

	paint(g, 0, TOP_TITLE);
	say(g, 0, 0, TOP_TITLE, "neuron-top %s  %s  %s%s%s%zu device%s%s", TOP_VERSION, facts->host,
	    facts->instance_type, facts->instance_type[0] ? " " : "", facts->instance_id,
	    p->v->n_devices, p->v->n_devices == 1 ? "" : "s", p->ui->paused ? "  PAUSED" : "");
}

static void tab_name(char *text, size_t size, const struct top_view *v, size_t i)
{
	const struct top_app *a = &v->apps[i ? i - 1 : 0];
	const char *name = a->command, *end;

	if (!i) {
		snprintf(text, size, "1:all");
		return;
	}
	/* The program without its path and arguments. */
	end = name + strcspn(name, " ");
	for (const char *c = name; c < end; c++)
		if (*c == '/')
			name = c + 1;
	snprintf(text, size, "%zu:%.*s(%d)", i + 1, (int)(end - name), name, a->pid);
}

static void draw_tabs(struct pen *p, int y)
{
	size_t n = p->v->n_apps + 1, current = 0, first;
	char text[300];
	int x = 0, width = 0;

	while (current < n && top_ui_tab(p->v, current) != p->ui->tab)
		current++;
	/* As many before the current one as leave it in sight. */
	for (first = current; first > 0; first--) {
		tab_name(text, sizeof(text), p->v, first);
		width += (int)strlen(text) + 2;
		if (width > p->g->width / 2)
			break;
	}
	for (size_t i = first; i < n && x < p->g->width; i++) {
		tab_name(text, sizeof(text), p->v, i);
		say(p->g, x, y, i == current ? TOP_GOOD : TOP_PLAIN, i == current ? ">%s<" : " %s ",
		    text);
		x += (int)strlen(text) + 2;
	}
}

static void draw_keys(struct pen *p, int y)
{
	char device[16] = "all";

	if (p->ui->device >= 0)
		snprintf(device, sizeof(device), "%d", p->ui->device);
	paint(p->g, y, TOP_TITLE);
	say(p->g, 0, y, TOP_TITLE,
	    "q quit  ? help  a/d tab  [/] device:%s  s sort:%s  f rates  x open  p pause  +/- %g s",
	    device, top_sort_name(p->ui->sort), p->ui->period_ms / 1000.0);
}

static void draw_help(struct pen *p, int bottom)
{
	static const char *const lines[] = {
		"1-9        tab: 1 all processes, 2 and on one of them",
		"a d Tab    tab before, behind",
		"[ ]        device before, behind; all",
		"arrows     outline: up, down, open, close; also PgUp, PgDn, Home, End",
		"x          outline: open or close everything",
		"s          order of processes: core, memory, vCPU, pid",
		"f          engines: share of the time, instructions a second",
		"p          pause",
		"+ -        longer, shorter period",
		"q          quit",
		"",
		"A core counts as used while it has launches to run. Its engines' shares are "
		"theirs",
		"of the device time. HBM of other users' processes is in the totals only. Faults "
		"are",
		"of programs, ECC is of HBM/SRAM, not corrected.",
		"",
		"Any key goes back.",
	};

	heading(p, "Keys");
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]) && p->y < bottom; i++)
		put(p->g, 1, p->y++, TOP_PLAIN, lines[i]);
}

static bool has_usable(const struct top_view *v)
{
	for (size_t i = 0; i < v->n_devices; i++)
		if (!v->devices[i].d.error)
			return true;
	return false;
}

/* What there is room for, and that. */
static void draw_body(struct pen *p, int bottom)
{
	int cores = cores_rows(p->v, p->ui), devices = devices_rows(p->v, p->ui);
	int room = bottom - p->y - TREE_MIN;
	bool with_devices, with_memory, with_cpu;

	if (!has_usable(p->v)) {
		put(p->g, 0, p->y++, TOP_BAD,
		    p->v->n_devices ? "No device can be used:" : "No Neuron device.");
		for (size_t i = 0; i < p->v->n_devices && p->y < bottom; i++)
			draw_device(p, &p->v->devices[i]);
		return;
	}
	if (cores > room)
		cores = room;
	room -= cores;
	with_devices = devices <= room;
	room -= with_devices ? devices : 0;
	with_memory = MEMORY_ROWS <= room;
	room -= with_memory ? MEMORY_ROWS : 0;
	with_cpu = CPU_ROWS <= room;
	draw_cores(p, p->y + cores);
	if (with_cpu)
		draw_cpu(p);
	if (with_memory)
		draw_memory(p);
	if (with_devices)
		draw_devices(p, bottom);
	draw_outline(p, bottom);
}

int top_screen_height(const struct top_view *v, const struct top_ui *ui)
{
	int outline = outline_rows(v, ui);

	return FRAME_ROWS + cores_rows(v, ui) + devices_rows(v, ui) + MEMORY_ROWS + CPU_ROWS +
	       (outline > TREE_MIN ? outline : TREE_MIN);
}

void top_screen(struct top_grid *g, const struct top_view *v, struct top_ui *ui,
		const struct top_facts *facts)
{
	struct pen p = { .g = g, .v = v, .ui = ui, .y = 1 };

	for (int i = 0; i < g->width * g->height; i++)
		g->cells[i] = (struct top_cell){ ' ', TOP_PLAIN };
	top_ui_follow(ui, v);
	if (g->width < WIDTH_MIN || g->height < HEIGHT_MIN) {
		say(g, 0, 0, TOP_BAD, "%dx%d is too small: at least %dx%d", g->width, g->height,
		    WIDTH_MIN, HEIGHT_MIN);
		return;
	}
	draw_title(&p, facts);
	if (ui->help)
		draw_help(&p, g->height - 2);
	else
		draw_body(&p, g->height - 2);
	draw_tabs(&p, g->height - 2);
	draw_keys(&p, g->height - 1);
}
