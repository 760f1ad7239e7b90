// SPDX-License-Identifier: Apache-2.0
/* Promises about logical cores: NEURON_LOGICAL_NC_CONFIG 1 and 2. In process only. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <nrt/nrt.h>
#include <nrt/nrt_experimental.h>
#include <nrt/nrt_stream.h>

#include "assemble.h"

#define N     16u
#define BYTES (128ull * N * 4)
#define ARCH  3

static const char *const variables[] = { "NEURON_LOGICAL_NC_CONFIG", "NEURON_RT_VIRTUAL_CORE_SIZE",
					 "NEURON_RT_VISIBLE_CORES",  "NEURON_RT_NUM_CORES",
					 "NEURON_MODEL_CORES",	     "NEURON_MODEL_DEVICES",
					 "NEURON_MODEL_CHIP" };

/* Opens the runtime anew with variables set as in "NAME=VALUE NAME=VALUE", the others not. */
static NRT_STATUS open_with(const char *settings)
{
	char text[256], *rest = text, *name;

	nrt_close();
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		unsetenv(variables[i]);
	strcpy(text, settings);
	while ((name = strtok_r(rest, " ", &rest))) {
		char *value = strchr(name, '=');

		*value++ = 0;
		setenv(name, value, 1);
	}
	return nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "");
}

static int close_runtime(void **state)
{
	(void)state;
	nrt_close();
	return 0;
}

static uint32_t count(NRT_STATUS (*get)(uint32_t *count))
{
	uint32_t n;

	OK(get(&n));
	return n;
}

static uint32_t core_of(nrtx_stream_t *stream)
{
	uint32_t core;

	OK(nrtx_stream_core(stream, &core));
	return core;
}

/* --- counting ----------------------------------------------------------------------------- */

static void every_count_is_of_logical_cores(void **state)
{
	static const struct {
		const char *settings;
		uint32_t total, visible;
	} rows[] = {
		{ "", 8, 8 },
		{ "NEURON_LOGICAL_NC_CONFIG=1", 8, 8 },
		{ "NEURON_LOGICAL_NC_CONFIG=2", 4, 4 },
		{ "NEURON_RT_VIRTUAL_CORE_SIZE=2", 4, 4 },
		{ "NEURON_RT_VIRTUAL_CORE_SIZE=2 NEURON_LOGICAL_NC_CONFIG=2", 4, 4 },
		{ "NEURON_LOGICAL_NC_CONFIG=2 NEURON_MODEL_CORES=2", 1, 1 },
		{ "NEURON_LOGICAL_NC_CONFIG=2 NEURON_MODEL_DEVICES=2 NEURON_MODEL_CHIP=trn3", 8,
		  8 },
		{ "NEURON_LOGICAL_NC_CONFIG=2 NEURON_RT_VISIBLE_CORES=1-3", 4, 3 },
		{ "NEURON_LOGICAL_NC_CONFIG=2 NEURON_RT_NUM_CORES=2", 4, 2 },
		{ "NEURON_LOGICAL_NC_CONFIG=1 NEURON_MODEL_CHIP=inf2", 2, 2 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		OK(open_with(rows[i].settings));
		assert_int_equal(count(nrt_get_total_nc_count), rows[i].total);
		assert_int_equal(count(nrt_get_total_vnc_count), rows[i].total);
		assert_int_equal(count(nrt_get_visible_nc_count), rows[i].visible);
		assert_int_equal(count(nrt_get_visible_vnc_count), rows[i].visible);
		assert_int_equal(count(nrtx_core_count), rows[i].visible);
	}
}

static void what_cannot_be_is_refused(void **state)
{
	static const struct {
		const char *settings, *text;
		NRT_STATUS status;
	} rows[] = {
		{ "NEURON_LOGICAL_NC_CONFIG=0", "'0' is not valid", NRT_INVALID },
		{ "NEURON_LOGICAL_NC_CONFIG=3", "'3' is not valid", NRT_INVALID },
		{ "NEURON_RT_VIRTUAL_CORE_SIZE=two", "'two' is not valid", NRT_INVALID },
		{ "NEURON_LOGICAL_NC_CONFIG=2 NEURON_RT_VIRTUAL_CORE_SIZE=1",
		  "NEURON_RT_VIRTUAL_CORE_SIZE='1' is not valid", NRT_INVALID },
		{ "NEURON_LOGICAL_NC_CONFIG=2 NEURON_MODEL_CHIP=trn1",
		  "2 cores, which its chip joins by 1", NRT_INVALID },
		{ "NEURON_LOGICAL_NC_CONFIG=2 NEURON_MODEL_CORES=3",
		  "3 cores, which its chip joins by 2", NRT_INVALID },
		{ "NEURON_LOGICAL_NC_CONFIG=2 NEURON_RT_VISIBLE_CORES=4", "4 cores, 0 to 3",
		  NRT_LOAD_NOT_ENOUGH_NC },
		{ "NEURON_LOGICAL_NC_CONFIG=2 NEURON_RT_NUM_CORES=5", "there are 4 cores",
		  NRT_LOAD_NOT_ENOUGH_NC },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(open_with(rows[i].settings), rows[i].status);
		if (!strstr(nrtx_error_text(), rows[i].text))
			fail_msg("%s: no '%s' in: %s", rows[i].settings, rows[i].text,
				 nrtx_error_text());
	}
}

/* Core n of a device consists of its 2n and 2n + 1. */
static void names_are_of_pairs(void **state)
{
	struct nrtx_core_info info;

	(void)state;
	OK(open_with("NEURON_LOGICAL_NC_CONFIG=2 NEURON_MODEL_DEVICES=2 NEURON_MODEL_CORES=4 "
		     "NEURON_RT_VISIBLE_CORES=3,0-1"));
	OK(nrtx_core_info(0, &info));
	assert_true(info.device == 1 && info.core == 2 && info.cores == 2);
	OK(nrtx_core_info(1, &info));
	assert_true(info.device == 0 && info.core == 0 && info.cores == 2);
	OK(nrtx_core_info(2, &info));
	assert_true(info.device == 0 && info.core == 2 && info.cores == 2);
	assert_int_equal(nrtx_core_info(3, &info), NRT_INVALID);
	OK(open_with("NEURON_MODEL_CORES=4 NEURON_RT_VISIBLE_CORES=3"));
	OK(nrtx_core_info(0, &info));
	assert_true(info.device == 0 && info.core == 3 && info.cores == 1);
}

/* --- work ----------------------------------------------------------------------------------- */

static nrtx_program_t *load(uint32_t core, void *image, size_t size)
{
	nrtx_program_t *program;

	OK(nrtx_program_load(core, image, size, &program));
	free(image);
	return program;
}

static void expect_all(const float *data, float value)
{
	for (size_t i = 0; i < 128 * N; i++)
		if (data[i] != value)
			fail_msg("element %zu is %f, not %f", i, (double)data[i], (double)value);
}

/* Streams take turns at the cores of their logical core, and share its programs and buffers. */
static void streams_spread_over_a_logical_core(void **state)
{
	static float data[128 * N];
	nrtx_program_t *fill, *copy;
	nrtx_stream_t *stream[4];
	nrtx_buffer_t *a, *b;
	struct nrtx_stats stats;
	size_t size;
	void *image;

	(void)state;
	OK(open_with("NEURON_LOGICAL_NC_CONFIG=2 NEURON_MODEL_CORES=4"));
	image = prog_fill(3.5f, N, ARCH, &size);
	fill = load(1, image, size);
	image = prog_copy(N, 0, ARCH, &size);
	copy = load(1, image, size);
	OK(nrtx_buffer_alloc(1, BYTES, &a));
	OK(nrtx_buffer_alloc(1, BYTES, &b));
	for (uint32_t i = 0; i < 4; i++) {
		OK(nrtx_stream_create(1, 0, &stream[i]));
		assert_int_equal(core_of(stream[i]), 2 + i % 2);
	}
	/* Core 2 fills, core 3 copies. */
	OK(nrtx_launch(stream[0], fill, &(struct nrtx_arg){ .buffer = a, .bytes = BYTES }, 1));
	OK(nrtx_stream_wait(stream[1], nrtx_stream_record(stream[0])));
	OK(nrtx_launch(stream[1], copy,
		       (struct nrtx_arg[]){ { .buffer = a, .bytes = BYTES },
					    { .buffer = b, .bytes = BYTES } },
		       2));
	OK(nrtx_copy_to_host(stream[1], data, b, 0, BYTES));
	expect_all(data, 3.5f);
	OK(nrtx_stats(1, &stats, false));
	assert_int_equal(stats.launches, 2);
	OK(nrtx_stats(0, &stats, false));
	assert_int_equal(stats.launches, 0);
	for (uint32_t i = 0; i < 4; i++)
		nrtx_stream_destroy(stream[i]);
	nrtx_buffer_free(a);
	nrtx_buffer_free(b);
	nrtx_program_unload(fill);
	nrtx_program_unload(copy);
}

/* A stream that failed works again, on a core of the same logical one. */
static void a_stream_stays_on_its_logical_core(void **state)
{
	nrtx_program_t *deadlock;
	nrtx_stream_t *stream;
	size_t size;
	void *image;

	(void)state;
	OK(open_with("NEURON_LOGICAL_NC_CONFIG=2 NEURON_MODEL_CORES=4"));
	image = prog_deadlock(ARCH, &size);
	deadlock = load(1, image, size);
	OK(nrtx_stream_create(1, 0, &stream));
	for (int i = 0; i < 3; i++) {
		OK(nrtx_launch(stream, deadlock, NULL, 0));
		assert_true(nrtx_stream_sync(stream));
		OK(nrtx_stream_sync(stream));
		assert_true(core_of(stream) == 2 || core_of(stream) == 3);
	}
	nrtx_stream_destroy(stream);
	nrtx_program_unload(deadlock);
}

#define THREADS 4
#define ROUNDS	20

struct worker {
	pthread_t thread;
	nrt_model_t *model;
	NRT_STATUS status;
};

static NRT_STATUS execute_often(nrt_model_t *model)
{
	nrt_tensor_set_t *in = NULL, *out = NULL;
	nrt_tensor_t *tensor = NULL;
	float data[128 * N];
	NRT_STATUS status;

	status = nrt_allocate_tensor_set(&in);
	if (!status)
		status = nrt_allocate_tensor_set(&out);
	if (!status)
		status = nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, BYTES, NULL, &tensor);
	if (!status)
		status = nrt_add_tensor_to_tensor_set(out, "out", tensor);
	for (int i = 0; i < ROUNDS && !status; i++) {
		status = nrt_tensor_memset(tensor, 0, 0, BYTES);
		if (!status)
			status = nrt_execute(model, in, out);
		if (!status)
			status = nrt_tensor_read(tensor, data, 0, BYTES);
		for (size_t k = 0; k < 128 * N && !status; k++)
			status = data[k] == 7.25f ? NRT_SUCCESS : NRT_EXEC_COMPLETED_WITH_ERR;
	}
	nrt_destroy_tensor_set(&in);
	nrt_destroy_tensor_set(&out);
	nrt_tensor_free(&tensor);
	return status;
}

static void *worker_main(void *arg)
{
	struct worker *worker = arg;

	worker->status = execute_often(worker->model);
	return NULL;
}

static void a_model_has_both_cores(void **state)
{
	struct worker workers[THREADS];
	nrtx_stream_t *stream[3];
	struct nrtx_stats stats;
	nrt_model_t *model;
	uint32_t n;
	size_t size;
	void *image;

	(void)state;
	OK(open_with("NEURON_LOGICAL_NC_CONFIG=2 NEURON_MODEL_CORES=2"));
	/* Each core gets one context of the model, so the streams around it alternate. */
	OK(nrtx_stream_create(0, 0, &stream[0]));
	image = prog_fill(7.25f, N, ARCH, &size);
	OK(nrt_load(image, size, 0, 1, &model));
	free(image);
	OK(nrtx_stream_create(0, 0, &stream[1]));
	OK(nrtx_stream_create(0, 0, &stream[2]));
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(core_of(stream[i]), i % 2);
		nrtx_stream_destroy(stream[i]);
	}

	OK(nrt_get_model_instance_count(model, &n));
	assert_int_equal(n, 2);
	OK(nrt_get_model_vnc_count(model, &n));
	assert_int_equal(n, 1);
	for (int i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){ .model = model };
		assert_int_equal(pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]),
				 0);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		assert_int_equal(workers[i].status, NRT_SUCCESS);
	}
	OK(nrtx_stats(0, &stats, false));
	assert_true(stats.launches >= THREADS * ROUNDS);
	OK(nrt_unload(model));
}

static void a_model_of_one_core_has_one(void **state)
{
	nrt_model_t *model;
	uint32_t n;
	size_t size;
	void *image = prog_fill(7.25f, N, ARCH, &size);

	(void)state;
	OK(open_with("NEURON_LOGICAL_NC_CONFIG=1"));
	OK(nrt_load(image, size, 5, 1, &model));
	free(image);
	OK(nrt_get_model_instance_count(model, &n));
	assert_int_equal(n, 1);
	assert_int_equal(execute_often(model), NRT_SUCCESS);
	OK(nrt_unload(model));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_count_is_of_logical_cores),
		cmocka_unit_test(what_cannot_be_is_refused),
		cmocka_unit_test(names_are_of_pairs),
		cmocka_unit_test(streams_spread_over_a_logical_core),
		cmocka_unit_test(a_stream_stays_on_its_logical_core),
		cmocka_unit_test(a_model_has_both_cores),
		cmocka_unit_test(a_model_of_one_core_has_one),
	};

	return cmocka_run_group_tests(tests, NULL, close_runtime);
}
