// SPDX-License-Identifier: Apache-2.0
/*
 * Promises of nrt_stream.h, on whatever device NEURON_RT_TRANSPORT chooses: the
 * same program runs in process and on the accel node.
 */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

#include <nrt/nrt_stream.h>

#include "assemble.h"

#define N     64u
#define BYTES (128ull * N * 4)
#define ARCH  prog_arch()

static uint64_t free_at_start;

static uint64_t hbm_free(void)
{
	struct nrtx_core_info info;

	OK(nrtx_core_info(0, &info));
	return info.hbm_free;
}

static int at_start(void **state)
{
	(void)state;
	free_at_start = hbm_free();
	return 0;
}

/* Each test gives back all HBM. */
static int at_end(void **state)
{
	(void)state;
	/* The kernel frees what a launch held from a workqueue, after its fence has signalled. */
	for (int i = 0; i < 500 && hbm_free() != free_at_start; i++)
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
	return hbm_free() == free_at_start ? 0 : -1;
}

static nrtx_stream_t *stream_new(void)
{
	nrtx_stream_t *stream;

	OK(nrtx_stream_create(0, 0, &stream));
	return stream;
}

static nrtx_buffer_t *buffer_new(uint64_t bytes)
{
	nrtx_buffer_t *buffer;

	OK(nrtx_buffer_alloc(0, bytes, &buffer));
	assert_true(nrtx_buffer_bytes(buffer) >= bytes);
	return buffer;
}

static nrtx_program_t *program_new(void *image, size_t size)
{
	nrtx_program_t *program;

	assert_non_null(image);
	OK(nrtx_program_load(0, image, size, &program));
	free(image);
	return program;
}

static struct nrtx_arg whole(nrtx_buffer_t *buffer)
{
	return (struct nrtx_arg){ .buffer = buffer, .bytes = BYTES };
}

static struct nrtx_arg scalar(float value)
{
	struct nrtx_arg arg = { .bytes = 8 };

	memcpy(&arg.offset, &value, sizeof(value));
	return arg;
}

/* Value that all elements have, NaN when they differ. */
static float read_all(nrtx_stream_t *stream, nrtx_buffer_t *buffer)
{
	static float data[128 * N];

	OK(nrtx_copy_to_host(stream, data, buffer, 0, BYTES));
	for (size_t i = 1; i < 128 * N; i++) {
		if (data[i] != data[0])
			return NAN;
	}
	return data[0];
}

/* --- tests ------------------------------------------------------------------------------ */

static void core_facts(void **state)
{
	struct nrtx_core_info info;
	uint32_t count;

	(void)state;
	OK(nrtx_core_count(&count));
	assert_true(count >= 1);
	OK(nrtx_core_info(count - 1, &info));
	assert_int_in_range(info.arch, 2, 4);
	assert_true(info.hbm_free <= info.hbm_bytes && info.hbm_bytes > 0);
	assert_true(info.sbuf_bytes >= 128 << 10 && info.psum_bytes == 16 << 10);
	assert_non_null(strstr(info.arch == 2 ? "Trainium1, Inferentia2" :
			       info.arch == 3 ? "Trainium2" :
						"Trainium3",
			       info.name));
	assert_true(info.virtual_device);
	assert_int_equal(nrtx_core_info(count, &info), NRT_INVALID);
	assert_non_null(strstr(nrtx_error_text(), "does not exist"));
}

static void fresh_memory_is_zero(void **state)
{
	nrtx_stream_t *stream = stream_new();

	(void)state;
	for (int round = 0; round < 3; round++) {
		nrtx_buffer_t *buffer = buffer_new(BYTES);
		static uint8_t dirt[BYTES];

		assert_true(read_all(stream, buffer) == 0);
		memset(dirt, 0xa5, sizeof(dirt));
		OK(nrtx_copy_to_device(stream, buffer, 0, dirt, BYTES));
		OK(nrtx_stream_sync(stream));
		nrtx_buffer_free(buffer);
	}
	nrtx_stream_destroy(stream);
}

static void copies_any_size_and_offset(void **state)
{
	static const uint64_t sizes[] = { 1, 3, 64, 4095, 65536, 65537, 1 << 20, (9 << 20) + 5 };
	nrtx_stream_t *stream = stream_new();
	const uint64_t total = 10 << 20;
	nrtx_buffer_t *a = buffer_new(total), *b = buffer_new(total);
	uint8_t *out = malloc(total), *in = malloc(total);

	(void)state;
	assert_true(out && in);
	for (uint64_t i = 0; i < total; i++)
		out[i] = (uint8_t)(i * 7 + i / 251);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		const uint64_t offset = i * 13 + 1;

		memset(in, 0, total);
		OK(nrtx_copy_to_device(stream, a, offset, out + i, sizes[i]));
		OK(nrtx_copy_device(stream, b, offset + 2, a, offset, sizes[i]));
		OK(nrtx_copy_to_host(stream, in, b, offset + 2, sizes[i]));
		assert_memory_equal(in, out + i, sizes[i]);
	}
	free(in);
	free(out);
	nrtx_buffer_free(a);
	nrtx_buffer_free(b);
	nrtx_stream_destroy(stream);
}

static void copies_out_of_range_are_refused(void **state)
{
	nrtx_stream_t *stream = stream_new();
	nrtx_buffer_t *a = buffer_new(4096);
	uint8_t byte = 0;

	(void)state;
	assert_int_equal(nrtx_copy_to_device(stream, a, nrtx_buffer_bytes(a), &byte, 1),
			 NRT_INVALID);
	assert_non_null(strstr(nrtx_error_text(), "4096"));
	assert_int_equal(nrtx_copy_to_host(stream, &byte, a, UINT64_MAX, 2), NRT_INVALID);
	assert_int_equal(nrtx_copy_device(stream, a, 0, a, 100, 101), NRT_INVALID);
	assert_non_null(strstr(nrtx_error_text(), "overlap"));
	assert_int_equal(nrtx_copy_to_device(stream, a, 0, NULL, 1), NRT_INVALID);
	assert_int_equal(nrtx_copy_to_device(stream, NULL, 0, &byte, 1), NRT_INVALID_HANDLE);
	OK(nrtx_copy_device(stream, a, 0, a, 2048, 2048));
	OK(nrtx_stream_sync(stream));
	nrtx_buffer_free(a);
	nrtx_stream_destroy(stream);
}

static void programs_compute(void **state)
{
	nrtx_stream_t *stream = stream_new();
	nrtx_buffer_t *a = buffer_new(BYTES), *b = buffer_new(BYTES);
	nrtx_program_t *fill, *copy, *add;
	struct nrtx_arg args[2];
	size_t size;
	void *image;

	(void)state;
	image = prog_fill(2.5f, N, ARCH, &size);
	fill = program_new(image, size);
	image = prog_copy(N, 0, ARCH, &size);
	copy = program_new(image, size);
	image = prog_add(N, ARCH, &size);
	add = program_new(image, size);

	args[0] = whole(a);
	OK(nrtx_launch(stream, fill, args, 1));
	args[1] = whole(b);
	OK(nrtx_launch(stream, copy, args, 2));
	assert_true(read_all(stream, b) == 2.5f);
	args[0] = whole(b);
	for (int i = 1; i <= 1000; i++) {
		args[1] = scalar((float)i);
		OK(nrtx_launch(stream, add, args, 2));
	}
	assert_true(read_all(stream, b) == 2.5f + 500500.0f);
	assert_true(read_all(stream, a) == 2.5f);

	nrtx_program_unload(fill);
	nrtx_program_unload(copy);
	nrtx_program_unload(add);
	nrtx_buffer_free(a);
	nrtx_buffer_free(b);
	nrtx_stream_destroy(stream);
}

static void launches_and_copies_keep_order(void **state)
{
	nrtx_stream_t *stream = stream_new();
	nrtx_buffer_t *a = buffer_new(BYTES), *b = buffer_new(BYTES);
	nrtx_program_t *add;
	static float host[128 * N];
	struct nrtx_arg args[2] = { whole(a) };
	size_t size;
	void *image = prog_add(N, ARCH, &size);

	(void)state;
	add = program_new(image, size);
	for (int round = 0; round < 50; round++) {
		for (size_t i = 0; i < 128 * N; i++)
			host[i] = (float)round;
		OK(nrtx_copy_to_device(stream, a, 0, host, BYTES));
		args[1] = scalar(0.5f);
		OK(nrtx_launch(stream, add, args, 2));
		OK(nrtx_copy_device(stream, b, 0, a, 0, BYTES));
		OK(nrtx_launch(stream, add, args, 2));
		assert_true(read_all(stream, b) == (float)round + 0.5f);
		assert_true(read_all(stream, a) == (float)round + 1);
	}
	nrtx_program_unload(add);
	nrtx_buffer_free(a);
	nrtx_buffer_free(b);
	nrtx_stream_destroy(stream);
}

static void freed_in_flight_is_kept(void **state)
{
	nrtx_stream_t *stream = stream_new();
	nrtx_buffer_t *result = buffer_new(BYTES);
	nrtx_program_t *fill, *copy;
	size_t size;
	void *image;

	(void)state;
	image = prog_fill(1.0f, N, ARCH, &size);
	fill = program_new(image, size);
	image = prog_copy(N, 0, ARCH, &size);
	copy = program_new(image, size);
	for (int i = 0; i < 300; i++) {
		nrtx_buffer_t *middle = buffer_new(BYTES);
		struct nrtx_arg args[2] = { whole(middle), whole(result) };

		OK(nrtx_launch(stream, fill, args, 1));
		OK(nrtx_launch(stream, copy, args, 2));
		nrtx_buffer_free(middle);
	}
	nrtx_program_unload(fill);
	nrtx_program_unload(copy);
	assert_true(read_all(stream, result) == 1.0f);
	nrtx_buffer_free(result);
	nrtx_stream_destroy(stream);
}

static void bad_arguments_are_named(void **state)
{
	nrtx_stream_t *stream = stream_new();
	nrtx_buffer_t *small = buffer_new(4096), *a = buffer_new(BYTES);
	struct nrtx_arg args[2];
	nrtx_program_t *add;
	size_t size;
	void *image = prog_add(N, ARCH, &size);

	(void)state;
	add = program_new(image, size);
	args[0] = whole(a);
	assert_int_equal(nrtx_launch(stream, add, args, 1), NRT_EXEC_BAD_INPUT);
	assert_non_null(strstr(nrtx_error_text(), "program 'add' takes 2 arguments, not 1"));
	args[0] = (struct nrtx_arg){ .buffer = small, .bytes = 4096 };
	args[1] = scalar(1);
	assert_int_equal(nrtx_launch(stream, add, args, 2), NRT_EXEC_BAD_INPUT);
	assert_non_null(strstr(nrtx_error_text(), "slot 0 ('data'): needs 32768 bytes, 4096"));
	args[0] = (struct nrtx_arg){ .buffer = a, .offset = 4096, .bytes = BYTES };
	assert_int_equal(nrtx_launch(stream, add, args, 2), NRT_EXEC_BAD_INPUT);
	assert_non_null(strstr(nrtx_error_text(), "beyond"));
	args[0] = scalar(1);
	assert_int_equal(nrtx_launch(stream, add, args, 2), NRT_EXEC_BAD_INPUT);
	assert_non_null(strstr(nrtx_error_text(), "takes a buffer"));
	args[0] = whole(a);
	args[1] = whole(a);
	assert_int_equal(nrtx_launch(stream, add, args, 2), NRT_EXEC_BAD_INPUT);
	assert_non_null(strstr(nrtx_error_text(), "slot 2 ('scalar'): takes a scalar"));
	OK(nrtx_stream_sync(stream));
	nrtx_program_unload(add);
	nrtx_buffer_free(small);
	nrtx_buffer_free(a);
	nrtx_stream_destroy(stream);
}

static void broken_images_are_refused(void **state)
{
	nrtx_program_t *program;
	size_t size;
	struct nprog_header *image = prog_fill(1, N, ARCH, &size);

	(void)state;
	assert_int_equal(nrtx_program_load(0, image, size - 64, &program), NRT_INVALID);
	image->name[0] ^= 1;
	assert_int_equal(nrtx_program_load(0, image, size, &program), NRT_INVALID);
	assert_non_null(strstr(nrtx_error_text(), "checksum"));
	image->name[0] ^= 1;
	image->version_major = 2;
	assert_int_equal(nrtx_program_load(0, image, size, &program), NRT_UNSUPPORTED_NEFF_VERSION);
	image->version_major = NPROG_VERSION_MAJOR;
	image->stream[ISA_SYNC].offset = (uint32_t)size;
	assert_int_equal(nrtx_program_load(0, image, size, &program), NRT_INVALID);
	assert_null(program);
	free(image);
}

/* Reads past the end of the slot. */
static void faults_are_explained_and_survived(void **state)
{
	nrtx_stream_t *stream = stream_new(), *other = stream_new();
	nrtx_buffer_t *a = buffer_new(BYTES), *b = buffer_new(BYTES);
	struct nrtx_arg args[2] = { whole(a), whole(b) };
	nrtx_program_t *bad, *good;
	struct nrtx_fault fault;
	size_t size;
	void *image;

	(void)state;
	image = prog_copy(N, 4096, ARCH, &size);
	bad = program_new(image, size);
	image = prog_fill(3.0f, N, ARCH, &size);
	good = program_new(image, size);

	OK(nrtx_launch(other, good, args, 1));
	OK(nrtx_launch(stream, bad, args, 2));
	/* Behind the fault: cancelled without an error of their own. */
	for (int i = 0; i < 500; i++)
		OK(nrtx_launch(stream, good, &args[1], 1));
	assert_int_equal(nrtx_stream_sync(stream), NRT_EXEC_OOB);
	assert_non_null(strstr(nrtx_error_text(), "program 'copy': sync engine, instruction 0 "
						  "(dma)"));
	assert_non_null(strstr(nrtx_error_text(), "slot 0"));
	assert_non_null(strstr(nrtx_error_text(), "limit 32768"));
	nrtx_stream_fault(stream, &fault);
	assert_int_equal(fault.status, EXI_FAULT_SLOT_BOUNDS);
	assert_string_equal(fault.engine, "sync");
	assert_string_equal(fault.program, "copy");
	assert_int_equal(fault.pc, 0);
	assert_int_equal(fault.slot, 0);
	assert_int_equal(fault.limit, BYTES);
	assert_int_equal(fault.bad_index, 0);

	/* Returned once; the stream works again, others never noticed. */
	OK(nrtx_stream_sync(stream));
	assert_true(read_all(stream, b) == 0);
	OK(nrtx_launch(stream, good, &args[1], 1));
	assert_true(read_all(stream, b) == 3.0f);
	assert_true(read_all(other, a) == 3.0f);

	OK(nrtx_launch(stream, bad, args, 2));
	{
		float word;

		assert_int_equal(nrtx_copy_to_host(stream, &word, b, 0, 4), NRT_EXEC_OOB);
	}
	nrtx_program_unload(bad);
	nrtx_program_unload(good);
	nrtx_buffer_free(a);
	nrtx_buffer_free(b);
	nrtx_stream_destroy(stream);
	nrtx_stream_destroy(other);
}

static void deadlock_is_detected(void **state)
{
	nrtx_stream_t *stream = stream_new();
	nrtx_program_t *program;
	struct nrtx_fault fault;
	size_t size;
	void *image = prog_deadlock(ARCH, &size);

	(void)state;
	program = program_new(image, size);
	OK(nrtx_launch(stream, program, NULL, 0));
	assert_int_equal(nrtx_stream_sync(stream), NRT_EXEC_COMPLETED_WITH_ERR);
	assert_non_null(strstr(nrtx_error_text(), "program 'deadlock'"));
	assert_non_null(strstr(nrtx_error_text(), "deadlock"));
	nrtx_stream_fault(stream, &fault);
	assert_int_equal(fault.status, EXI_FAULT_DEADLOCK);
	nrtx_program_unload(program);
	nrtx_stream_destroy(stream);
}

static void full_memory_is_an_error_with_sizes(void **state)
{
	enum { MAX = 4096 };
	static nrtx_buffer_t *buffers[MAX];
	const uint64_t bytes = free_at_start / 16;
	nrtx_buffer_t *more;
	int n = 0;

	(void)state;
	while (n < MAX && !nrtx_buffer_alloc(0, bytes, &buffers[n]))
		n++;
	assert_true(n >= 8 && n <= 32);
	assert_int_equal(nrtx_buffer_alloc(0, bytes, &more), NRT_RESOURCE);
	assert_null(more);
	assert_non_null(strstr(nrtx_error_text(), "out of memory: wanted"));
	nrtx_buffer_free(buffers[--n]);
	OK(nrtx_buffer_alloc(0, bytes, &buffers[n]));
	n++;
	while (n)
		nrtx_buffer_free(buffers[--n]);
	assert_int_equal(nrtx_buffer_alloc(0, UINT64_MAX, &more), NRT_RESOURCE);
	assert_int_equal(nrtx_buffer_alloc(0, 0, &more), NRT_INVALID);
	OK(nrtx_buffer_alloc(0, bytes, &more));
	nrtx_buffer_free(more);
}

static void streams_wait_for_points(void **state)
{
	nrtx_stream_t *first = stream_new(), *second = stream_new();
	nrtx_buffer_t *a = buffer_new(BYTES), *b = buffer_new(BYTES);
	struct nrtx_arg to_a = whole(a), args[2] = { whole(a), whole(b) };
	nrtx_program_t *add, *copy;
	struct nrtx_point point, zero = { 0 };
	size_t size;
	void *image;

	(void)state;
	image = prog_add(N, ARCH, &size);
	add = program_new(image, size);
	image = prog_copy(N, 0, ARCH, &size);
	copy = program_new(image, size);

	assert_true(nrtx_point_reached(zero));
	for (int round = 1; round <= 50; round++) {
		struct nrtx_arg add_args[2] = { to_a, scalar(1) };

		for (int i = 0; i < 10; i++)
			OK(nrtx_launch(first, add, add_args, 2));
		point = nrtx_stream_record(first);
		OK(nrtx_stream_wait(second, point));
		OK(nrtx_launch(second, copy, args, 2));
		assert_true(read_all(second, b) == (float)round * 10);
		assert_true(nrtx_point_reached(point));
		/* The first stream does not overtake the copy's read of a. */
		OK(nrtx_stream_wait(first, nrtx_stream_record(second)));
	}
	nrtx_point_sync(point);
	assert_true(nrtx_stream_idle(first));
	nrtx_stream_destroy(first);
	assert_true(nrtx_point_reached(point));
	OK(nrtx_stream_wait(second, point));
	OK(nrtx_stream_sync(second));
	nrtx_program_unload(add);
	nrtx_program_unload(copy);
	nrtx_buffer_free(a);
	nrtx_buffer_free(b);
	nrtx_stream_destroy(second);
}

static void statistics_count(void **state)
{
	nrtx_stream_t *stream = stream_new();
	nrtx_buffer_t *a = buffer_new(BYTES);
	struct nrtx_arg args = whole(a);
	struct nrtx_point before, after;
	nrtx_program_t *fill;
	struct nrtx_stats stats;
	size_t size;
	void *image = prog_fill(1, N, ARCH, &size);

	(void)state;
	fill = program_new(image, size);
	OK(nrtx_stats(0, NULL, true));
	OK(nrtx_launch(stream, fill, &args, 1));
	before = nrtx_stream_record(stream);
	for (int i = 0; i < 9; i++)
		OK(nrtx_launch(stream, fill, &args, 1));
	after = nrtx_stream_record(stream);
	OK(nrtx_stream_sync(stream));
	assert_true(nrtx_point_device_ns(before) > 0);
	assert_true(nrtx_point_device_ns(after) > nrtx_point_device_ns(before));
	read_all(stream, a);
	nrtx_stream_destroy(stream);
	OK(nrtx_stats(0, &stats, false));
	assert_int_equal(stats.launches, 10);
	assert_int_equal(stats.insts[ISA_VECTOR], 20); /* memset and halt */
	assert_int_equal(stats.insts[ISA_SYNC], 20);
	assert_int_equal(stats.insts[ISA_TENSOR], 0);
	assert_int_equal(stats.dma_bytes, 10 * BYTES);
	assert_int_equal(stats.to_host_bytes, BYTES);
	assert_int_equal(stats.to_device_bytes, 0);
	assert_true(stats.device_ns > 0);
	OK(nrtx_stats(0, NULL, true));
	OK(nrtx_stats(0, &stats, false));
	assert_int_equal(stats.launches, 0);
	nrtx_program_unload(fill);
	nrtx_buffer_free(a);
}

static void bad_handles_are_refused(void **state)
{
	nrtx_stream_t *stream = NULL;
	nrtx_buffer_t *a = buffer_new(64);

	(void)state;
	assert_int_equal(nrtx_stream_sync(NULL), NRT_INVALID_HANDLE);
	assert_int_equal(nrtx_stream_create(1000000, 0, &stream), NRT_INVALID);
	assert_null(stream);
	assert_int_equal(nrtx_stream_create(0, 3, &stream), NRT_INVALID);
	assert_int_equal(nrtx_stream_sync((nrtx_stream_t *)a), NRT_INVALID_HANDLE);
	nrtx_stream_destroy(NULL);
	nrtx_buffer_free(NULL);
	nrtx_program_unload(NULL);
	nrtx_buffer_free(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(core_facts, at_start, at_end),
		cmocka_unit_test_setup_teardown(fresh_memory_is_zero, at_start, at_end),
		cmocka_unit_test_setup_teardown(copies_any_size_and_offset, at_start, at_end),
		cmocka_unit_test_setup_teardown(copies_out_of_range_are_refused, at_start, at_end),
		cmocka_unit_test_setup_teardown(programs_compute, at_start, at_end),
		cmocka_unit_test_setup_teardown(launches_and_copies_keep_order, at_start, at_end),
		cmocka_unit_test_setup_teardown(freed_in_flight_is_kept, at_start, at_end),
		cmocka_unit_test_setup_teardown(bad_arguments_are_named, at_start, at_end),
		cmocka_unit_test_setup_teardown(broken_images_are_refused, at_start, at_end),
		cmocka_unit_test_setup_teardown(faults_are_explained_and_survived, at_start,
						at_end),
		cmocka_unit_test_setup_teardown(deadlock_is_detected, at_start, at_end),
		cmocka_unit_test_setup_teardown(full_memory_is_an_error_with_sizes, at_start,
						at_end),
		cmocka_unit_test_setup_teardown(streams_wait_for_points, at_start, at_end),
		cmocka_unit_test_setup_teardown(statistics_count, at_start, at_end),
		cmocka_unit_test_setup_teardown(bad_handles_are_refused, at_start, at_end),
	};

	return cmocka_run_group_tests_name("libnrt streams", tests, NULL, NULL);
}
