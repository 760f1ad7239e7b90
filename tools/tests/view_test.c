// SPDX-License-Identifier: Apache-2.0
/* Rates and sums of two samples; what is not known is not made up. */
#include <math.h>
#include <stdlib.h>

#include <json.h>

#include "samples.h"

static void assert_near(double value, double want)
{
	if (isnan(value) || fabs(value - want) > 1e-9)
		fail_msg("%.12g, not %.12g", value, want);
}

static void cores_have_shares_and_rates(void **state)
{
	const struct top_core *c = &view.devices[1].core[0];

	(void)state;
	assert_near(view.seconds, 1);
	assert_near(c->used, 0.5);
	/* 40 of 100 ms of device time, of half of the period. */
	assert_near(c->engine[0], 0.2);
	assert_near(c->engine[1], 0);
	assert_near(c->launches, 20);
	assert_near(c->insts[0], 3000);
	assert_near(c->dma_bytes, 8 * MIB);
	assert_near(view.devices[1].core[1].used, 0);
	assert_near(view.devices[1].used, 0.25);
	assert_near(view.devices[0].used, 0);
}

static void processes_have_their_parts(void **state)
{
	const struct top_app *a = top_view_app(&view, 100), *b = top_view_app(&view, 200);

	(void)state;
	assert_int_equal(view.n_apps, 2);
	assert_non_null(a);
	assert_non_null(b);
	assert_null(top_view_app(&view, 300));
	assert_int_equal(a->n_uses, 2);
	assert_near(top_app_use(a, 1)->core[0], 0.375);
	assert_near(top_app_use(a, 0)->core[0], 0);
	assert_near(top_app_use(a, 1)->copy, 0.1);
	assert_near(top_app_use(b, 1)->core[0], 0.125);
	assert_null(top_app_use(b, 0));
	assert_near(a->used + b->used, view.devices[1].core[0].used);
	assert_near(a->launches, 15);
	assert_int_equal(a->hbm, 32 * MIB);
	assert_int_equal(a->constants, 4 * MIB);
	assert_int_equal(a->code, 2 * MIB);
	assert_int_equal(a->host, 8 * MIB);
	assert_int_equal(a->rss, 100 * MIB);
	assert_int_equal(a->programs, 2);
	assert_near(a->user, 0.1);
	assert_near(a->system, 0.05);
	assert_near(view.cpu_user, 0.25);
	assert_int_equal(a->n_programs, 2);
	assert_near(view.programs[a->first_program + 1].launches, 15);
	assert_int_equal(view.programs[a->first_program + 1].minor, 1);
	assert_int_equal(b->first_program, 2);
}

static void one_sample_has_no_rates(void **state)
{
	(void)state;
	top_view_make(&view, NULL, &second);
	assert_near(view.seconds, 0);
	assert_true(isnan(view.devices[1].core[0].used));
	assert_true(isnan(view.devices[1].core[0].engine[0]));
	assert_true(isnan(view.devices[1].used));
	assert_true(isnan(view.cpu_user));
	assert_true(isnan(view.apps[0].launches));
	assert_true(isnan(view.apps[0].used));
	assert_true(isnan(view.apps[0].user));
	assert_true(isnan(view.programs[0].launches));
	assert_int_equal(view.apps[0].hbm, 32 * MIB);
	/* The same moment twice. */
	top_view_make(&view, &second, &second);
	assert_true(isnan(view.devices[1].core[0].used));
}

/* The driver was bound again, or another device has the number. */
static void counters_that_went_back_give_no_rates(void **state)
{
	(void)state;
	first.devices[1].core[0].active_ns = 900 * MS;
	first.devices[1].core[0].launches = 30;
	top_view_make(&view, &first, &second);
	assert_true(isnan(view.devices[1].core[0].used));
	assert_true(isnan(view.devices[1].core[0].launches));
	/* The other core still counts. */
	assert_near(view.devices[1].used, 0);
	samples_setup(NULL);
	first.devices[1].serial = 5;
	top_view_make(&view, &first, &second);
	assert_true(isnan(view.devices[1].core[0].launches));
	assert_near(top_app_use(&view.apps[0], 1)->core[0], 0);
}

static void new_things_count_from_nothing(void **state)
{
	(void)state;
	first.n_clients = 1;
	first.programs.n = 1;
	first.n_processes = 1;
	top_view_make(&view, &first, &second);
	assert_near(view.apps[1].launches, 5);
	assert_near(top_app_use(&view.apps[1], 1)->core[0], 0.125);
	assert_true(isnan(view.apps[1].user));
	assert_near(view.programs[1].launches, 20);
}

/* A driver without the host's times still tells how long launches took. */
static void older_drivers_tell_less(void **state)
{
	(void)state;
	for (int c = 0; c < 2; c++)
		first.devices[1].core[c].active_known = second.devices[1].core[c].active_known =
			false;
	top_view_make(&view, &first, &second);
	assert_near(view.devices[1].core[0].used, 0.1);
	assert_near(view.devices[1].core[0].engine[0], 0.04);
	first.devices[1].core[0].known = second.devices[1].core[0].known = false;
	top_view_make(&view, &first, &second);
	assert_true(isnan(view.devices[1].core[0].used));
	assert_false(view.devices[1].core[0].known);
}

/* Counters are not read at the same moment: no share is above 1. */
static void shares_end_at_one(void **state)
{
	(void)state;
	second.devices[1].core[0].active_ns = 1001 * MS;
	second.devices[1].core[0].engine_ns[0] = 101 * MS;
	top_view_make(&view, &first, &second);
	assert_near(view.devices[1].core[0].used, 1);
	assert_near(view.devices[1].core[0].engine[0], 1);
}

static struct json_object *member(struct json_object *o, const char *key)
{
	struct json_object *value = NULL;

	assert_true(json_object_object_get_ex(o, key, &value));
	return value;
}

static void json_has_the_same(void **state)
{
	const struct top_facts facts = { .instance_type = "trn2.48xlarge" };
	struct json_object *o, *device, *core, *app, *use;
	char *text;

	(void)state;
	second.devices[0].power_uw = 123456000;
	top_view_make(&view, &first, &second);
	text = top_json(&view, &facts, 12.5);
	assert_null(strchr(text, '\n'));
	o = json_tokener_parse(text);
	assert_non_null(o);
	assert_string_equal(json_object_get_string(member(o, "instance_type")), "trn2.48xlarge");
	assert_null(member(o, "instance_id"));
	assert_near(json_object_get_double(member(o, "period_seconds")), 1);
	device = json_object_array_get_idx(member(o, "neuron_devices"), 0);
	assert_near(json_object_get_double(member(device, "power_watts")), 123.456);
	assert_null(member(device, "temperature_celsius"));
	device = json_object_array_get_idx(member(o, "neuron_devices"), 1);
	assert_int_equal(json_object_get_int(member(device, "neuron_device")), 1);
	core = json_object_array_get_idx(member(device, "neuroncores"), 0);
	assert_int_equal(json_object_get_int(member(core, "neuroncore_id")), 2);
	assert_near(json_object_get_double(member(core, "utilization_percent")), 50);
	assert_near(json_object_get_double(member(member(core, "engine_utilization_percent"), "tens"
											      "o"
											      "r")),
		    20);
	app = json_object_array_get_idx(member(o, "neuron_processes"), 0);
	assert_int_equal(json_object_get_int(member(app, "pid")), 100);
	use = json_object_array_get_idx(member(app, "neuron_devices"), 1);
	assert_near(json_object_get_double(json_object_array_get_idx(member(use, "neuroncore_"
										 "utilization_"
										 "percent"),
								     0)),
		    37.5);
	assert_int_equal(json_object_array_length(member(use, "models")), 1);
	json_object_put(o);
	free(text);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, samples_setup)
	const struct CMUnitTest tests[] = {
		TEST(cores_have_shares_and_rates),
		TEST(processes_have_their_parts),
		TEST(one_sample_has_no_rates),
		TEST(counters_that_went_back_give_no_rates),
		TEST(new_things_count_from_nothing),
		TEST(older_drivers_tell_less),
		TEST(shares_end_at_one),
		TEST(json_has_the_same),
	};

	return cmocka_run_group_tests_name("view", tests, NULL, NULL);
}
