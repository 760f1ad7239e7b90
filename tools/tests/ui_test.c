// SPDX-License-Identifier: Apache-2.0
/* Keys move tabs, devices and the outline, and stay within what there is. */
#include "samples.h"

static struct top_ui ui;
static struct top_row rows[TOP_ROWS_MAX];

static int setup(void **state)
{
	samples_setup(state);
	top_ui_init(&ui);
	ui.page = 2;
	return 0;
}

static void press(const char *keys)
{
	for (; *keys; keys++)
		top_ui_key(&ui, &view, *keys);
}

static size_t outline(void)
{
	return top_tree(&view, &ui, rows, TOP_ROWS_MAX);
}

static const struct top_row *row_at_cursor(void)
{
	size_t n = outline();

	for (size_t i = 0; i < n; i++)
		if (rows[i].key == ui.cursor)
			return &rows[i];
	fail_msg("the cursor is nowhere");
	return NULL;
}

static void tabs_are_chosen_and_walked(void **state)
{
	(void)state;
	press("2");
	assert_int_equal(ui.tab, 100);
	press("3");
	assert_int_equal(ui.tab, 200);
	press("9");
	assert_int_equal(ui.tab, 200);
	press("1");
	assert_int_equal(ui.tab, 0);
	press("a");
	assert_int_equal(ui.tab, 200);
	press("d");
	assert_int_equal(ui.tab, 0);
	press("\t\t");
	assert_int_equal(ui.tab, 200);
	top_ui_key(&ui, &view, TOP_KEY_TAB_BACK);
	assert_int_equal(ui.tab, 100);
}

static void devices_are_walked(void **state)
{
	(void)state;
	assert_int_equal(ui.device, -1);
	press("]");
	assert_int_equal(ui.device, 0);
	press("]");
	assert_int_equal(ui.device, 1);
	press("]");
	assert_int_equal(ui.device, -1);
	press("[");
	assert_int_equal(ui.device, 1);
}

/* A process ended, a device went. */
static void what_is_gone_is_let_go(void **state)
{
	(void)state;
	press("3]]");
	view.n_apps = 1;
	view.n_devices = 1;
	top_ui_follow(&ui, &view);
	assert_int_equal(ui.tab, 0);
	assert_int_equal(ui.device, -1);
	press("]");
	view.n_devices = 0;
	view.n_apps = 0;
	press("]d[ax");
	top_ui_key(&ui, &view, TOP_KEY_DOWN);
	top_ui_follow(&ui, &view);
	assert_int_equal(ui.device, -1);
	assert_int_equal(ui.tab, 0);
}

static void outline_opens_and_closes(void **state)
{
	size_t closed;

	(void)state;
	/* Two devices; in them one and two processes, and what others hold. */
	closed = outline();
	assert_int_equal(closed, 7);
	top_ui_key(&ui, &view, TOP_KEY_DOWN);
	assert_int_equal(row_at_cursor()->depth, 1);
	assert_true(strstr(row_at_cursor()->name, "100 /usr/bin/python3 train100.py") != NULL);
	top_ui_key(&ui, &view, TOP_KEY_RIGHT);
	/* Tensors, constants, code, buffers and a program. */
	assert_int_equal(outline(), closed + 5);
	assert_true(row_at_cursor()->open);
	top_ui_key(&ui, &view, TOP_KEY_DOWN);
	assert_string_equal(row_at_cursor()->name, "Tensors");
	assert_int_equal(row_at_cursor()->device, 13 * MIB);
	top_ui_key(&ui, &view, TOP_KEY_LEFT);
	assert_int_equal(row_at_cursor()->depth, 1);
	top_ui_key(&ui, &view, TOP_KEY_LEFT);
	assert_int_equal(outline(), closed);
	top_ui_key(&ui, &view, TOP_KEY_LEFT);
	assert_int_equal(row_at_cursor()->depth, 0);
	press("x");
	assert_int_equal(outline(), closed + 15);
	press("x");
	assert_int_equal(outline(), closed);
}

static void cursor_stays_within(void **state)
{
	(void)state;
	top_ui_key(&ui, &view, TOP_KEY_UP);
	assert_ptr_equal(row_at_cursor(), &rows[0]);
	top_ui_key(&ui, &view, TOP_KEY_END);
	assert_ptr_equal(row_at_cursor(), &rows[6]);
	top_ui_key(&ui, &view, TOP_KEY_DOWN);
	assert_ptr_equal(row_at_cursor(), &rows[6]);
	top_ui_key(&ui, &view, TOP_KEY_PAGE_UP);
	assert_ptr_equal(row_at_cursor(), &rows[4]);
	top_ui_key(&ui, &view, TOP_KEY_PAGE_DOWN);
	assert_ptr_equal(row_at_cursor(), &rows[6]);
	top_ui_key(&ui, &view, TOP_KEY_HOME);
	assert_ptr_equal(row_at_cursor(), &rows[0]);
	/* The row it was on is not there any more. */
	ui.cursor = 12345;
	top_ui_key(&ui, &view, TOP_KEY_DOWN);
	assert_ptr_equal(row_at_cursor(), &rows[1]);
}

/* Rows of device 1: itself, its processes, others. */
static void order_is_as_asked(void **state)
{
	static const struct {
		enum top_sort sort;
		const char *first;
	} cases[] = {
		{ TOP_SORT_CORE, "100 " },
		{ TOP_SORT_MEMORY, "200 " },
		{ TOP_SORT_CPU, "100 " },
		{ TOP_SORT_PID, "100 " },
	};

	(void)state;
	second.clients[2].hbm_bytes = 32 * MIB;
	top_view_make(&view, &first, &second);
	press("]]");
	for (size_t i = 0; i < TOP_SORTS; i++) {
		assert_int_equal(ui.sort, cases[i].sort);
		assert_int_equal(outline(), 4);
		assert_memory_equal(rows[1].name, cases[i].first, 4);
		press("s");
	}
	assert_int_equal(ui.sort, TOP_SORT_CORE);
}

static void tab_narrows_the_outline(void **state)
{
	(void)state;
	press("3");
	assert_int_equal(outline(), 2);
	assert_int_equal(rows[0].device, 16 * MIB);
	/* No room is no reason to write behind the end. */
	press("1x");
	assert_int_equal(top_tree(&view, &ui, rows, 3), 3);
}

static void the_rest_of_the_keys(void **state)
{
	(void)state;
	press("?");
	assert_true(ui.help);
	press("2");
	assert_false(ui.help);
	assert_int_equal(ui.tab, 0);
	press("fp");
	assert_true(ui.rates && ui.paused);
	press("+");
	assert_int_equal(ui.period_ms, 2000);
	press("++++++++++");
	assert_int_equal(ui.period_ms, 32000);
	press("----------");
	assert_int_equal(ui.period_ms, 125);
	top_ui_key(&ui, &view, 0);
	top_ui_key(&ui, &view, -1);
	press("~");
	press("?q");
	assert_true(ui.quit);
}

static void many_rows_can_be_flipped(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 2 * TOP_FLIPPED_MAX; i++) {
		view.devices[0].d.minor = (unsigned int)(i & 0x7f);
		snprintf(view.devices[0].d.bdf, sizeof(view.devices[0].d.bdf), "x");
		ui.cursor = 0;
		top_ui_key(&ui, &view, i & 1 ? TOP_KEY_LEFT : TOP_KEY_RIGHT);
		assert_true(ui.n_flipped <= TOP_FLIPPED_MAX);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, setup)
	const struct CMUnitTest tests[] = {
		TEST(tabs_are_chosen_and_walked), TEST(devices_are_walked),
		TEST(what_is_gone_is_let_go),	  TEST(outline_opens_and_closes),
		TEST(cursor_stays_within),	  TEST(order_is_as_asked),
		TEST(tab_narrows_the_outline),	  TEST(the_rest_of_the_keys),
		TEST(many_rows_can_be_flipped),
	};

	return cmocka_run_group_tests_name("ui", tests, NULL, NULL);
}
