// SPDX-License-Identifier: Apache-2.0
/* Promises of the published interface: nrt.h, nrt_experimental.h, nrt_async.h. */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include <nrt/nrt_async.h>
#include <nrt/nrt_experimental.h>
#include <nrt/nrt_stream.h>
#include <nrt/nrt_version.h>

#include "assemble.h"

#define N     16u
#define BYTES (128ull * N * 4)
#define ARCH  3

static int open_runtime(void **state)
{
	(void)state;
	return nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "") ? -1 : 0;
}

static int close_runtime(void **state)
{
	(void)state;
	nrt_close();
	return 0;
}

static nrt_model_t *load(void *image, size_t size)
{
	nrt_model_t *model;

	OK(nrt_load(image, size, 0, -1, &model));
	free(image);
	return model;
}

static nrt_tensor_t *device_tensor(size_t size, const char *name)
{
	nrt_tensor_t *tensor;

	OK(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, size, name, &tensor));
	assert_int_equal(nrt_tensor_get_size(tensor), size);
	return tensor;
}

/* --- tests --------------------------------------------------------------------------------- */

static void calls_outside_init_and_close(void **state)
{
	nrt_tensor_t *tensor = NULL;
	nrt_version_t version;
	uint32_t total, visible;

	(void)state;
	/* Counts and the version may be asked for before. */
	OK(nrt_get_version(&version, sizeof(version)));
	assert_int_equal(version.rt_major, NRT_MAJOR_VERSION);
	OK(nrt_get_total_vnc_count(&total));
	OK(nrt_get_visible_vnc_count(&visible));
	assert_true(total >= visible && visible >= 1);
	assert_int_equal(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, 64, NULL, &tensor),
			 NRT_UNINITIALIZED);
	assert_int_equal(nrt_init(NRT_FRAMEWORK_TYPE_INVALID, "", ""), NRT_INVALID);
	OK(nrt_init(NRT_FRAMEWORK_TYPE_PYTORCH, "2.14", "1"));
	OK(nrt_init(NRT_FRAMEWORK_TYPE_PYTORCH, "2.14", "1"));
	tensor = device_tensor(64, "left over");
	nrt_close();
	assert_int_equal(nrt_tensor_read(tensor, &total, 0, 4), NRT_CLOSED);
	nrt_tensor_free(&tensor);
	assert_null(tensor);
	assert_int_equal(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, 64, NULL, &tensor),
			 NRT_CLOSED);
	nrt_close();
	OK(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", ""));
	tensor = device_tensor(64, NULL);
	nrt_tensor_free(&tensor);
	nrt_close();
}

static void tensors_keep_bytes(void **state)
{
	nrt_tensor_t *device = device_tensor(10000, "device"), *host, *slice, *deeper;
	uint8_t out[10000], in[10000];

	(void)state;
	OK(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_HOST, -1, 10000, "host", &host));
	for (size_t i = 0; i < sizeof(out); i++)
		out[i] = (uint8_t)(i * 31);
	OK(nrt_tensor_read(device, in, 0, sizeof(in)));
	assert_true(in[0] == 0 && in[9999] == 0);
	OK(nrt_tensor_write(device, out, 0, sizeof(out)));
	OK(nrt_tensor_copy(device, 100, host, 50, 5000));
	OK(nrt_tensor_read(host, in, 50, 5000));
	assert_memory_equal(in, out + 100, 5000);
	OK(nrt_tensor_copy(host, 50, device, 0, 100));
	OK(nrt_tensor_read(device, in, 0, 200));
	assert_memory_equal(in, out + 100, 100);
	OK(nrt_tensor_copy(device, 0, device, 5000, 100));

	OK(nrt_tensor_allocate_slice(device, 5000, 1000, "slice", &slice));
	OK(nrt_tensor_allocate_slice(slice, 10, 90, NULL, &deeper));
	nrt_tensor_free(&device);
	OK(nrt_tensor_read(slice, in, 0, 1000));
	assert_memory_equal(in, out + 100, 100);
	OK(nrt_tensor_memset(deeper, 1, 0x77, 2));
	OK(nrt_tensor_read(slice, in, 10, 4));
	assert_true(in[0] == out[110] && in[1] == 0x77 && in[2] == 0x77 && in[3] == out[113]);
	assert_int_equal(nrt_tensor_read(deeper, in, 89, 2), NRT_INVALID);
	assert_int_equal(nrt_tensor_read(deeper, in, SIZE_MAX, 2), NRT_INVALID);
	nrt_tensor_free(&slice);
	nrt_tensor_free(&deeper);
	nrt_tensor_free(&host);
}

static void tensors_have_addresses(void **state)
{
	nrt_tensor_t *device = device_tensor(BYTES, NULL), *empty;
	uint32_t word = 0x12345678, memory = 0;

	(void)state;
	OK(nrt_tensor_write(device, &word, 16, 4));
	assert_non_null(nrt_tensor_get_va(device));
	assert_memory_equal((char *)nrt_tensor_get_va(device) + 16, &word, 4);
	OK(nrt_tensor_allocate_empty("empty", &empty));
	assert_null(nrt_tensor_get_va(empty));
	assert_int_equal(nrt_tensor_write(empty, &word, 0, 4), NRT_INVALID);
	OK(nrt_tensor_attach_buffer(empty, &memory, 4));
	assert_ptr_equal(nrt_tensor_get_va(empty), &memory);
	OK(nrt_tensor_write(empty, &word, 0, 4));
	assert_int_equal(memory, word);
	nrt_tensor_free(&empty);
	nrt_tensor_free(&device);
}

static void sets_find_by_name(void **state)
{
	nrt_tensor_t *a = device_tensor(64, "a"), *b = device_tensor(64, "b"), *found;
	nrt_tensor_set_t *set;
	char name[16];

	(void)state;
	OK(nrt_allocate_tensor_set(&set));
	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "t%d", i);
		OK(nrt_add_tensor_to_tensor_set(set, name, a));
	}
	OK(nrt_add_tensor_to_tensor_set(set, "t7", b));
	OK(nrt_get_tensor_from_tensor_set(set, "t7", &found));
	assert_ptr_equal(found, b);
	OK(nrt_get_tensor_from_tensor_set(set, "t19", &found));
	assert_ptr_equal(found, a);
	assert_int_equal(nrt_get_tensor_from_tensor_set(set, "t20", &found), NRT_INVALID);
	assert_int_equal(nrt_get_tensor_from_tensor_set((nrt_tensor_set_t *)a, "t", &found),
			 NRT_INVALID_HANDLE);
	nrt_destroy_tensor_set(&set);
	assert_null(set);
	nrt_tensor_free(&a);
	nrt_tensor_free(&b);
}

static void models_tell_their_tensors(void **state)
{
	nrt_tensor_info_array_t *info;
	nrt_model_info_t model_info;
	nrt_model_t *model;
	size_t size;
	void *image = prog_add(N, ARCH, &size);
	uint32_t count;

	(void)state;
	model = load(image, size);
	OK(nrt_get_model_vnc_count(model, &count));
	assert_int_equal(count, 1);
	OK(nrt_get_model_info(model, &model_info, sizeof(model_info), &size));
	assert_int_equal(model_info.vnc, 0);
	OK(nrt_get_model_tensor_info(model, &info));
	assert_int_equal(info->tensor_count, 3);
	assert_string_equal(info->tensor_array[0].name, "data");
	assert_int_equal(info->tensor_array[0].usage, NRT_TENSOR_USAGE_INPUT);
	assert_int_equal(info->tensor_array[0].size, BYTES);
	assert_int_equal(info->tensor_array[0].dtype, NRT_DTYPE_FLOAT32);
	assert_int_equal(info->tensor_array[0].ndim, 1);
	assert_int_equal(info->tensor_array[0].shape[0], BYTES / 4);
	assert_string_equal(info->tensor_array[1].name, "scalar");
	assert_int_equal(info->tensor_array[1].size, 8);
	assert_string_equal(info->tensor_array[2].name, "data");
	assert_int_equal(info->tensor_array[2].usage, NRT_TENSOR_USAGE_OUTPUT);
	OK(nrt_free_model_tensor_info(info));
	OK(nrt_unload(model));
}

static void bad_models_are_refused(void **state)
{
	static const char neff[2048] = { 0x02 };
	nrt_model_t *model;
	size_t size;
	char *image = prog_add(N, ARCH, &size);

	(void)state;
	assert_int_equal(nrt_load(neff, sizeof(neff), 0, -1, &model), NRT_UNSUPPORTED_NEFF_VERSION);
	assert_int_equal(nrt_load(image, 100, 0, -1, &model), NRT_INVALID);
	assert_int_equal(nrt_load(image, size, 5000, -1, &model), NRT_INVALID);
	assert_int_equal(nrt_load(image, size, -2, -1, &model), NRT_INVALID);
	image[size - 1] ^= 1;
	assert_int_equal(nrt_load(image, size, 0, -1, &model), NRT_INVALID);
	assert_null(model);
	free(image);
}

static void models_execute(void **state)
{
	nrt_tensor_t *in = device_tensor(BYTES, "in"), *out;
	nrt_tensor_set_t *ins, *outs;
	float data[128 * N];
	nrt_model_t *model;
	size_t size;
	void *image = prog_copy(N, 0, ARCH, &size);

	(void)state;
	model = load(image, size);
	for (size_t i = 0; i < 128 * N; i++)
		data[i] = (float)i;
	OK(nrt_tensor_write(in, data, 0, BYTES));
	OK(nrt_allocate_tensor_set(&ins));
	OK(nrt_allocate_tensor_set(&outs));
	OK(nrt_add_tensor_to_tensor_set(ins, "in", in));
	assert_int_equal(nrt_execute(model, ins, outs), NRT_EXEC_BAD_INPUT);
	assert_non_null(strstr(nrtx_error_text(), "no tensor 'out'"));
	/* A host tensor takes the result too. */
	OK(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_HOST, -1, BYTES, "out", &out));
	OK(nrt_add_tensor_to_tensor_set(outs, "out", out));
	OK(nrt_execute(model, ins, outs));
	assert_memory_equal(nrt_tensor_get_va(out), data, BYTES);
	OK(nrt_tensor_check_output_completion(out, 0, 1));
	assert_int_equal(nrt_tensor_check_output_completion(out, 1000, 2), NRT_TIMEOUT);
	OK(nrt_tensor_reset_output_completion(out));
	assert_int_equal(nrt_tensor_check_output_completion(out, 0, 1), NRT_TIMEOUT);
	nrt_destroy_tensor_set(&ins);
	nrt_destroy_tensor_set(&outs);
	OK(nrt_unload(model));
	nrt_tensor_free(&in);
	nrt_tensor_free(&out);
}

static void executions_repeat_with_scalars(void **state)
{
	nrt_tensor_t *data = device_tensor(BYTES, "data"), *scalar;
	nrt_tensor_set_t *set;
	float value[128 * N], two = 2;
	nrt_model_t *model;
	size_t size;
	void *image = prog_add(N, ARCH, &size);

	(void)state;
	model = load(image, size);
	OK(nrt_tensor_allocate_empty("scalar", &scalar));
	OK(nrt_tensor_attach_buffer(scalar, &two, sizeof(two)));
	OK(nrt_allocate_tensor_set(&set));
	OK(nrt_add_tensor_to_tensor_set(set, "data", data));
	OK(nrt_add_tensor_to_tensor_set(set, "scalar", scalar));
	OK(nrt_execute_repeat(model, set, set, 5));
	OK(nrt_tensor_read(data, value, 0, BYTES));
	assert_true(value[0] == 10 && value[128 * N - 1] == 10);
	assert_int_equal(nrt_execute_repeat(model, set, set, 0), NRT_INVALID);
	nrt_destroy_tensor_set(&set);
	OK(nrt_unload(model));
	nrt_tensor_free(&data);
	nrt_tensor_free(&scalar);
}

static void wait_for(nrta_seq_t seq)
{
	struct pollfd fd = { .events = POLLIN };
	bool done;

	OK(nrta_get_completion_handle(seq, &fd.fd));
	assert_int_equal(poll(&fd, 1, 60000), 1);
	close(fd.fd);
	OK(nrta_is_completed(seq, &done));
	assert_true(done);
}

static void requests_complete_in_order(void **state)
{
	nrt_tensor_t *in = device_tensor(BYTES, "in"), *out = device_tensor(BYTES, "out");
	nrta_seq_t seq[20], last;
	nrt_tensor_set_t *ins, *outs;
	float data[128 * N], back[128 * N];
	nrt_model_t *model;
	size_t size;
	void *image = prog_copy(N, 0, ARCH, &size);
	bool done;

	(void)state;
	model = load(image, size);
	OK(nrt_allocate_tensor_set(&ins));
	OK(nrt_allocate_tensor_set(&outs));
	OK(nrt_add_tensor_to_tensor_set(ins, "in", in));
	OK(nrt_add_tensor_to_tensor_set(outs, "out", out));
	for (size_t i = 0; i < 128 * N; i++)
		data[i] = (float)i;
	OK(nrta_get_sequence(0, NRTA_XU_TENSOR_WRITE, 0, &last));
	assert_int_equal(NRTA_SEQ_GET_SEQ_NUM(last), 0);
	for (int i = 0; i < 20; i++)
		OK(nrta_tensor_write(in, data, 0, BYTES, 0, NULL, &seq[i]));
	assert_int_equal(NRTA_SEQ_GET_SEQ_NUM(seq[19]), 20);
	wait_for(seq[19]);
	OK(nrta_is_completed(seq[0], &done));
	assert_true(done);
	OK(nrta_get_sequence(0, NRTA_XU_TENSOR_WRITE, 0, &last));
	assert_int_equal(last, seq[19]);
	OK(nrta_execute_schedule(model, ins, outs, 0, NULL, &seq[0]));
	wait_for(seq[0]);
	OK(nrta_tensor_copy(out, 0, in, 4, 400, 0, NULL, &seq[0]));
	wait_for(seq[0]);
	OK(nrta_tensor_read(back, in, 0, BYTES, 0, NULL, &seq[0]));
	wait_for(seq[0]);
	assert_true(back[0] == 0 && back[1] == 0 && back[100] == 99 && back[101] == 101);

	assert_int_equal(nrta_is_completed(seq[0] + 1, &done), NRT_INVALID);
	assert_int_equal(nrta_is_completed(0, &done), NRT_INVALID);
	assert_int_equal(nrta_tensor_read(back, in, 0, BYTES, 1, NULL, &seq[0]), NRT_INVALID);
	assert_int_equal(nrta_tensor_read(back, in, 8, BYTES, 0, NULL, &seq[0]), NRT_INVALID);
	nrt_destroy_tensor_set(&ins);
	nrt_destroy_tensor_set(&outs);
	OK(nrt_unload(model));
	nrt_tensor_free(&in);
	nrt_tensor_free(&out);
}

static void failed_requests_are_tracked(void **state)
{
	nrta_error_tracker_t *tracker;
	const nrta_error_t *list;
	nrt_tensor_set_t *set;
	nrta_seq_t seq;
	nrt_model_t *model;
	size_t size, count;
	void *image = prog_deadlock(ARCH, &size);

	(void)state;
	model = load(image, size);
	OK(nrt_allocate_tensor_set(&set));
	OK(nrta_error_tracker_create(0, &tracker));
	OK(nrta_execute_schedule(model, set, set, 0, tracker, &seq));
	wait_for(seq);
	OK(nrta_error_tracker_get_list(tracker, &list, &count));
	assert_int_equal(count, 1);
	assert_int_equal(list[0].seq_id, seq);
	assert_int_equal(list[0].error_code, NRT_EXEC_COMPLETED_WITH_ERR);
	OK(nrta_error_tracker_get_list(tracker, &list, &count));
	assert_int_equal(count, 0);
	nrta_error_tracker_destroy(tracker);
	nrt_destroy_tensor_set(&set);
	OK(nrt_unload(model));
}

static void facts_are_told(void **state)
{
	nrt_instance_info_t info;
	nrt_vnc_memory_stats_t before, after;
	nrt_tensor_t *tensor;
	size_t size;

	(void)state;
	OK(nrt_get_instance_info(&info, sizeof(info)));
	assert_int_equal(info.family, NRT_INSTANCE_TRN2);
	assert_string_equal(info.arch_name, "NCv3");
	OK(nrt_get_vnc_memory_stats(0, &before, sizeof(before), &size));
	assert_int_equal(size, sizeof(before));
	tensor = device_tensor(1 << 20, NULL);
	OK(nrt_get_vnc_memory_stats(0, &after, sizeof(after), &size));
	assert_int_equal(after.bytes_used, before.bytes_used + (1 << 20));
	nrt_tensor_free(&tensor);
	OK(nrt_get_vnc_memory_stats(0, &after, sizeof(after), &size));
	assert_int_equal(after.bytes_used, before.bytes_used);
	assert_string_equal(nrt_get_status_as_str(NRT_EXEC_OOB), "NRT_EXEC_OOB");
	assert_string_equal(nrt_get_status_as_str((NRT_STATUS)12345), "unknown NRT_STATUS");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_outside_init_and_close),
		cmocka_unit_test_setup_teardown(tensors_keep_bytes, open_runtime, close_runtime),
		cmocka_unit_test_setup_teardown(tensors_have_addresses, open_runtime,
						close_runtime),
		cmocka_unit_test_setup_teardown(sets_find_by_name, open_runtime, close_runtime),
		cmocka_unit_test_setup_teardown(models_tell_their_tensors, open_runtime,
						close_runtime),
		cmocka_unit_test_setup_teardown(bad_models_are_refused, open_runtime,
						close_runtime),
		cmocka_unit_test_setup_teardown(models_execute, open_runtime, close_runtime),
		cmocka_unit_test_setup_teardown(executions_repeat_with_scalars, open_runtime,
						close_runtime),
		cmocka_unit_test_setup_teardown(requests_complete_in_order, open_runtime,
						close_runtime),
		cmocka_unit_test_setup_teardown(failed_requests_are_tracked, open_runtime,
						close_runtime),
		cmocka_unit_test_setup_teardown(facts_are_told, open_runtime, close_runtime),
	};

	return cmocka_run_group_tests_name("libnrt published interface", tests, NULL, NULL);
}
