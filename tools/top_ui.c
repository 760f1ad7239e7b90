// SPDX-License-Identifier: Apache-2.0
#include "top.h"

#include <string.h>

#define PERIOD_MIN_MS 100
#define PERIOD_MAX_MS 60000

void top_ui_init(struct top_ui *ui)
{
	*ui = (struct top_ui){ .device = -1, .period_ms = 1000, .page = 1 };
}

const char *top_sort_name(enum top_sort sort)
{
	static const char *const names[TOP_SORTS] = {
		[TOP_SORT_CORE] = "core",
		[TOP_SORT_MEMORY] = "memory",
		[TOP_SORT_CPU] = "vCPU",
		[TOP_SORT_PID] = "pid",
	};

	return names[sort];
}

pid_t top_ui_tab(const struct top_view *v, size_t index)
{
	if (!index)
		return 0;
	return index <= v->n_apps ? v->apps[index - 1].pid : -1;
}

void top_ui_follow(struct top_ui *ui, const struct top_view *v)
{
	if (ui->tab && !top_view_app(v, ui->tab))
		ui->tab = 0;
	if (ui->device >= 0 && !top_view_device(v, ui->device))
		ui->device = -1;
}

/* --- tabs and devices ------------------------------------------------------------------------- */

static void move_tab(struct top_ui *ui, const struct top_view *v, int step)
{
	size_t n = v->n_apps + 1, i = 0;

	while (i < n && top_ui_tab(v, i) != ui->tab)
		i++;
	ui->tab = top_ui_tab(v, (i + n + (size_t)step) % n);
	ui->cursor = 0;
}

static void choose_tab(struct top_ui *ui, const struct top_view *v, size_t index)
{
	pid_t tab = top_ui_tab(v, index);

	if (tab < 0)
		return;
	ui->tab = tab;
	ui->cursor = 0;
}

/* All devices, the first one, and so on. */
static void move_device(struct top_ui *ui, const struct top_view *v, int step)
{
	size_t n = v->n_devices + 1, i = 0;

	while (i < v->n_devices && (int)v->devices[i].d.minor != ui->device)
		i++;
	/* Position 0 is all, which is also where a device that is gone leads to. */
	i = ui->device < 0 || i == v->n_devices ? 0 : i + 1;
	i = (i + n + (size_t)step) % n;
	ui->device = i ? (int)v->devices[i - 1].d.minor : -1;
	ui->cursor = 0;
}

/* --- the outline ------------------------------------------------------------------------------ */

static void flip(struct top_ui *ui, uint64_t key)
{
	for (size_t i = 0; i < ui->n_flipped; i++)
		if (ui->flipped[i] == key) {
			ui->flipped[i] = ui->flipped[--ui->n_flipped];
			return;
		}
	/* Full: the oldest goes back to what the others are like. */
	if (ui->n_flipped == TOP_FLIPPED_MAX)
		memmove(ui->flipped, ui->flipped + 1, --ui->n_flipped * sizeof(ui->flipped[0]));
	ui->flipped[ui->n_flipped++] = key;
}

static size_t cursor_index(const struct top_ui *ui, const struct top_row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (rows[i].key == ui->cursor)
			return i;
	return 0;
}

static void open_or_close(struct top_ui *ui, const struct top_row *rows, size_t i, bool open)
{
	if (rows[i].branch && rows[i].open != open) {
		flip(ui, rows[i].key);
		return;
	}
	/* Left on what can't be closed goes to what it is in. */
	if (open)
		return;
	for (size_t j = i; j-- > 0;)
		if (rows[j].depth < rows[i].depth) {
			ui->cursor = rows[j].key;
			return;
		}
}

static void outline_key(struct top_ui *ui, const struct top_view *v, int key)
{
	static struct top_row rows[TOP_ROWS_MAX];
	size_t n = top_tree(v, ui, rows, TOP_ROWS_MAX), i = cursor_index(ui, rows, n);
	size_t page = ui->page ? ui->page : 1;

	if (!n)
		return;
	ui->cursor = rows[i].key;
	switch (key) {
	case TOP_KEY_UP:
		i -= i > 0;
		break;
	case TOP_KEY_DOWN:
		i++;
		break;
	case TOP_KEY_PAGE_UP:
		i = i > page ? i - page : 0;
		break;
	case TOP_KEY_PAGE_DOWN:
		i += page;
		break;
	case TOP_KEY_HOME:
		i = 0;
		break;
	case TOP_KEY_END:
		i = n;
		break;
	default:
		open_or_close(ui, rows, i, key == TOP_KEY_RIGHT);
		return;
	}
	ui->cursor = rows[i < n ? i : n - 1].key;
}

/* --- keys ------------------------------------------------------------------------------------- */

static void change_period(struct top_ui *ui, bool longer)
{
	unsigned int ms = longer ? ui->period_ms * 2 : ui->period_ms / 2;

	if (ms >= PERIOD_MIN_MS && ms <= PERIOD_MAX_MS)
		ui->period_ms = ms;
}

void top_ui_key(struct top_ui *ui, const struct top_view *v, int key)
{
	if (key == 'q' || key == 'Q') {
		ui->quit = true;
		return;
	}
	if (ui->help) {
		/* Any key leaves the help. */
		ui->help = false;
		return;
	}
	switch (key) {
	case '?':
	case 'h':
		ui->help = true;
		break;
	case 'a':
	case TOP_KEY_TAB_BACK:
		move_tab(ui, v, -1);
		break;
	case 'd':
	case '\t':
		move_tab(ui, v, 1);
		break;
	case '[':
		move_device(ui, v, -1);
		break;
	case ']':
		move_device(ui, v, 1);
		break;
	case 's':
		ui->sort = (ui->sort + 1) % TOP_SORTS;
		break;
	case 'f':
	case 'F':
		ui->rates = !ui->rates;
		break;
	case 'p':
		ui->paused = !ui->paused;
		break;
	case 'x':
		ui->expanded = !ui->expanded;
		ui->n_flipped = 0;
		break;
	case '+':
	case '-':
		change_period(ui, key == '+');
		break;
	default:
		if (key >= '1' && key <= '9')
			choose_tab(ui, v, (size_t)(key - '1'));
		else if (key >= TOP_KEY_UP && key <= TOP_KEY_END)
			outline_key(ui, v, key);
	}
}
