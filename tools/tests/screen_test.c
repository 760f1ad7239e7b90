// SPDX-License-Identifier: Apache-2.0
/* The grid: at every size within its bounds, at a good one with everything that there is. */
#include <math.h>
#include <stdlib.h>

#include "samples.h"

static const struct top_facts facts = { .host = "here" };
static struct top_ui ui;

static int setup(void **state)
{
	samples_setup(state);
	top_ui_init(&ui);
	return 0;
}

/* The screen as text, with a guard behind the cells. To be freed. */
static char *draw(int width, int height)
{
	size_t n = (size_t)width * (size_t)height;
	struct top_grid g = { .width = width, .height = height };
	char *text = malloc(n + (size_t)height + 1), *to = text;

	g.cells = malloc((n + 1) * sizeof(*g.cells));
	memset(g.cells, 0, (n + 1) * sizeof(*g.cells));
	g.cells[n].c = '!';
	top_screen(&g, &view, &ui, &facts);
	assert_int_equal(g.cells[n].c, '!');
	for (size_t i = 0; i < n; i++) {
		assert_true(g.cells[i].style < TOP_STYLES);
		assert_true(g.cells[i].c >= ' ' && g.cells[i].c < 127);
		*to++ = g.cells[i].c;
		if (i % (size_t)width == (size_t)width - 1)
			*to++ = '\n';
	}
	*to = 0;
	free(g.cells);
	return text;
}

static void assert_shows(int width, int height, const char *what)
{
	char *text = draw(width, height);

	if (!strstr(text, what))
		fail_msg("%dx%d: no \"%s\" in\n%s", width, height, what, text);
	free(text);
}

static void assert_hides(int width, int height, const char *what)
{
	char *text = draw(width, height);

	if (strstr(text, what))
		fail_msg("%dx%d: \"%s\" in\n%s", width, height, what, text);
	free(text);
}

static void every_size_is_drawn(void **state)
{
	(void)state;
	for (int pass = 0; pass < 4; pass++) {
		ui.help = pass == 1;
		ui.device = pass == 2 ? 1 : -1;
		ui.expanded = pass == 3;
		for (int height = 1; height <= 60; height++)
			for (int width = 1; width <= 200; width += width < 45 ? 1 : 13)
				free(draw(width, height));
	}
}

static void all_devices_have_a_line(void **state)
{
	(void)state;
	assert_shows(100, 40, "NeuronCore v3 Utilization");
	/* Mean and cores of device 1. */
	assert_shows(100, 40, "  25.0% 50.0%  0.0%");
	assert_shows(100, 40, "VCPU Utilization");
	assert_shows(100, 40, " 25.0% user   0.0% system");
	assert_shows(100, 40, "Memory Usage Summary");
	assert_shows(100, 40, "128.0 MiB");
	assert_shows(100, 40, "Memory Usage Details");
	assert_shows(100, 40, "others, not to be seen");
	assert_shows(100, 40, ">1:all< ");
	assert_shows(100, 40, " 2:python3(100) ");
}

static void one_device_shows_its_engines(void **state)
{
	(void)state;
	ui.device = 1;
	assert_shows(100, 40, "NC2");
	assert_hides(100, 40, "NC0");
	assert_shows(100, 40, " 50.0%   20.0%    0.0%");
	assert_shows(100, 40, "launches/s");
	assert_shows(100, 40, "8.0 MiB");
	assert_hides(80, 40, "DMA/s");
	assert_shows(80, 40, "gpsimd");
	assert_hides(60, 40, "gpsimd");
	ui.rates = true;
	assert_shows(100, 40, "3.0k");
	ui.tab = 100;
	assert_shows(100, 40, "37.5%");
	assert_shows(100, 40, ">2:python3(100)<");
}

static void sensors_show_when_there_are(void **state)
{
	(void)state;
	assert_hides(100, 40, " W ");
	second.devices[1].power_uw = 350500000;
	second.devices[1].temp_mc = 61300;
	second.devices[1].hbm_errors = 4;
	second.devices[1].sram_errors = 1;
	second.devices[1].core[1].faults = 9;
	top_view_make(&view, &first, &second);
	assert_shows(100, 40, "350.5 W");
	assert_shows(100, 40, "61.3 C");
	assert_shows(100, 40, "4/1");
	assert_shows(100, 40, " 9    4/1");
}

static void little_room_leaves_things_out(void **state)
{
	(void)state;
	assert_hides(80, 18, "VCPU Utilization");
	assert_shows(80, 18, "Memory Usage Summary");
	assert_hides(80, 14, "Memory Usage Summary");
	assert_shows(80, 14, "HBM used / total");
	assert_shows(80, 10, "NeuronCore v3");
	assert_shows(80, 10, "Memory Usage Details");
	assert_shows(39, 20, "39x20 is too small: at least 40x8");
	assert_shows(40, 7, "is too small");
}

static void full_height_leaves_nothing_out(void **state)
{
	int height;

	(void)state;
	ui.expanded = true;
	height = top_screen_height(&view, &ui);
	assert_shows(120, height, "VCPU Utilization");
	assert_shows(120, height, "others, not to be seen");
	assert_shows(120, height, "Model 7 matmul");
	assert_shows(120, height, "15 launches/s");
}

static void outline_scrolls_to_the_cursor(void **state)
{
	static struct top_row rows[TOP_ROWS_MAX];
	size_t n;

	(void)state;
	ui.expanded = true;
	n = top_tree(&view, &ui, rows, TOP_ROWS_MAX);
	assert_shows(80, 12, "ND0");
	assert_hides(80, 12, "others");
	ui.cursor = rows[n - 1].key;
	assert_shows(80, 12, "others");
}

static void unusable_devices_say_why(void **state)
{
	(void)state;
	second.devices[0].error = second.devices[1].error = 13;
	top_view_make(&view, &first, &second);
	assert_shows(100, 24, "No device can be used:");
	assert_shows(100, 24, "render");
	view.n_devices = 0;
	view.n_apps = 0;
	assert_shows(100, 24, "No Neuron device.");
	assert_shows(100, 24, "q quit");
}

static void help_tells_the_keys(void **state)
{
	(void)state;
	ui.help = true;
	assert_shows(80, 24, "Any key goes back");
	assert_shows(80, 24, "pause");
}

static void assert_text(void (*format)(char *, size_t, double), double value, const char *want)
{
	char text[32];

	format(text, sizeof(text), value);
	assert_string_equal(text, want);
}

static void numbers_stay_short(void **state)
{
	(void)state;
	assert_text(top_bytes, 0, "0 B");
	assert_text(top_bytes, 1023, "1023 B");
	assert_text(top_bytes, 1024, "1.0 KiB");
	assert_text(top_bytes, 1048575, "1.0 MiB");
	assert_text(top_bytes, 96.0 * 1024 * 1024 * 1024, "96.0 GiB");
	assert_text(top_bytes, 2048e15, "1819.0 PiB");
	assert_text(top_bytes, NAN, "-");
	assert_text(top_count, 0, "0");
	assert_text(top_count, 0.25, "0.2");
	assert_text(top_count, 15, "15");
	assert_text(top_count, 999.96, "1.0k");
	assert_text(top_count, 2500000, "2.5M");
	assert_text(top_count, NAN, "-");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, setup)
	const struct CMUnitTest tests[] = {
		TEST(every_size_is_drawn),	     TEST(all_devices_have_a_line),
		TEST(one_device_shows_its_engines),  TEST(sensors_show_when_there_are),
		TEST(little_room_leaves_things_out), TEST(full_height_leaves_nothing_out),
		TEST(outline_scrolls_to_the_cursor), TEST(unusable_devices_say_why),
		TEST(help_tells_the_keys),	     TEST(numbers_stay_short),
	};

	return cmocka_run_group_tests_name("screen", tests, NULL, NULL);
}
