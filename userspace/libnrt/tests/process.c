// SPDX-License-Identifier: Apache-2.0
/* Promises about the process: variables, fork(), several devices and threads. */
#include <glob.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <nrt/nrt.h>
#include <nrt/nrt_stream.h>

#include "assemble.h"

#define N     32u
#define BYTES (128ull * N * 4)
#define ARCH  3

/* Runs a check in a child, so that each has its own runtime. It returns 0 when all is well. */
static void in_child(int (*check)(void *arg), void *arg)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		_exit(check(arg));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status))
		fail_msg("check %d in the child failed", WEXITSTATUS(status));
}

#define CHECK(n, cond)            \
	do {                      \
		if (!(cond))      \
			return n; \
	} while (0)

/* --- variables --------------------------------------------------------------------------- */

struct setting {
	const char *name, *value;
	NRT_STATUS status;
	uint32_t cores; /* when it is good */
	bool model; /* means something in process only */
};

static int check_setting(void *arg)
{
	const struct setting *s = arg;
	uint32_t count;
	NRT_STATUS status;

	setenv(s->name, s->value, 1);
	status = nrtx_core_count(&count);
	if (status != s->status)
		fprintf(stderr, "%s=%s: %d, %s\n", s->name, s->value, status, nrtx_error_text());
	CHECK(1, status == s->status);
	CHECK(2, !status || strstr(nrtx_error_text(), s->name));
	CHECK(3, status || !s->cores || count == s->cores);
	return 0;
}

static void variables_are_checked(void **state)
{
	static const struct setting settings[] = {
		{ "NEURON_RT_TRANSPORT", "pigeon", NRT_INVALID, 0, false },
		{ "NEURON_RT_VISIBLE_CORES", "0", NRT_SUCCESS, 1, false },
		{ "NEURON_RT_VISIBLE_CORES", "0-", NRT_INVALID, 0, false },
		{ "NEURON_RT_VISIBLE_CORES", "0,0", NRT_INVALID, 0, false },
		{ "NEURON_RT_VISIBLE_CORES", "3-1", NRT_INVALID, 0, false },
		{ "NEURON_RT_VISIBLE_CORES", "0,", NRT_INVALID, 0, false },
		{ "NEURON_RT_VISIBLE_CORES", "-1", NRT_INVALID, 0, false },
		{ "NEURON_RT_VISIBLE_CORES", "99999999999999999999", NRT_INVALID, 0, false },
		{ "NEURON_RT_VISIBLE_CORES", "1023", NRT_LOAD_NOT_ENOUGH_NC, 0, false },
		{ "NEURON_RT_VISIBLE_CORES", "2-3,0", NRT_SUCCESS, 3, true },
		{ "NEURON_RT_NUM_CORES", "1", NRT_SUCCESS, 1, false },
		{ "NEURON_RT_NUM_CORES", "0", NRT_INVALID, 0, false },
		{ "NEURON_RT_NUM_CORES", "1000", NRT_LOAD_NOT_ENOUGH_NC, 0, false },
		{ "NEURON_RT_LOG_LEVEL", "error", NRT_SUCCESS, 0, false },
		{ "NEURON_RT_LOG_LEVEL", "loud", NRT_INVALID, 0, false },
		{ "NEURON_RT_LOG_LOCATION", "paper", NRT_INVALID, 0, false },
		{ "NEURON_RT_EXEC_TIMEOUT", "10s", NRT_INVALID, 0, false },
		{ "NEURON_RT_EXEC_TIMEOUT", "0", NRT_SUCCESS, 0, false },
		{ "NEURON_MODEL_CORES", "2", NRT_SUCCESS, 2, true },
		{ "NEURON_MODEL_CORES", "9", NRT_INVALID, 0, true },
		{ "NEURON_MODEL_CHIP", "trn1", NRT_SUCCESS, 2, true },
		{ "NEURON_MODEL_CHIP", "trn3", NRT_SUCCESS, 8, true },
		{ "NEURON_MODEL_CHIP", "trn9", NRT_INVALID, 0, true },
		{ "NEURON_MODEL_DEVICES", "2", NRT_SUCCESS, 16, true },
		{ "NEURON_MODEL_HBM", "64M", NRT_SUCCESS, 8, true },
		{ "NEURON_MODEL_HBM", "63M", NRT_INVALID, 0, true },
		{ "NEURON_MODEL_HBM", "96m", NRT_INVALID, 0, true },
		{ "NEURON_MODEL_HBM", "", NRT_INVALID, 0, true },
		{ "NEURON_CHECK", "race,hbm,warn", NRT_SUCCESS, 0, true },
		{ "NEURON_CHECK", "races", NRT_INVALID, 0, true },
	};
	const char *transport = getenv("NEURON_RT_TRANSPORT");
	const bool model = transport && !strcmp(transport, "model");

	(void)state;
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		if (!settings[i].model || model)
			in_child(check_setting, (void *)&settings[i]);
	}
}

static int check_no_device(void *arg)
{
	uint32_t count;

	(void)arg;
	setenv("NEURON_RT_TRANSPORT", "accel", 1);
	CHECK(1, nrtx_core_count(&count) == NRT_HW_ERROR);
	CHECK(2, strstr(nrtx_error_text(), "modprobe neuron"));
	/* The failure leaves nothing behind. */
	setenv("NEURON_RT_TRANSPORT", "auto", 1);
	CHECK(3, nrtx_core_count(&count) == NRT_SUCCESS);
	return 0;
}

static void a_missing_device_is_explained(void **state)
{
	(void)state;
	if (!access("/sys/class/accel", F_OK))
		skip();
	in_child(check_no_device, NULL);
}

/* --- checking mode ------------------------------------------------------------------------------ */

/* Scalar engine reads what the vector engine writes; ordered or not. */
static void *two_engines(bool ordered, size_t *size)
{
	struct prog *p = calloc(1, sizeof(*p));
	struct isa_inst *inst = prog_inst(p, ISA_VECTOR, ISA_MEMSET);
	void *image;

	sbuf_tile(&inst->compute.dst, 128, 0, N);
	if (ordered)
		inst_update(inst, 0, 1);
	inst = prog_inst(p, ISA_SCALAR, ISA_COPY);
	sbuf_tile(&inst->compute.src0, 128, 0, N);
	sbuf_tile(&inst->compute.dst, 128, 4096, N);
	if (ordered)
		inst_wait(inst, 0, 1);
	image = prog_image(p, ordered ? "ordered" : "racy", ARCH, size);
	free(p);
	return image;
}

static NRT_STATUS run_once(nrtx_stream_t *stream, void *image, size_t size,
			   const struct nrtx_arg *args, uint32_t n)
{
	nrtx_program_t *program;
	NRT_STATUS status;

	if (nrtx_program_load(0, image, size, &program))
		return NRT_FAILURE;
	free(image);
	status = nrtx_launch(stream, program, args, n);
	if (!status)
		status = nrtx_stream_sync(stream);
	nrtx_program_unload(program);
	return status;
}

static int check_findings(void *arg)
{
	static const float data[128 * N];
	struct nrtx_arg args[2];
	nrtx_buffer_t *in, *out;
	nrtx_stream_t *stream;
	struct nrtx_fault fault;
	size_t size;
	void *image;

	(void)arg;
	setenv("NEURON_CHECK", "1", 1);
	setenv("NEURON_RT_LOG_LEVEL", "ERROR", 1);
	CHECK(1, !nrtx_stream_create(0, 0, &stream));
	image = two_engines(true, &size);
	CHECK(2, !run_once(stream, image, size, NULL, 0));
	image = two_engines(false, &size);
	CHECK(3, run_once(stream, image, size, NULL, 0) == NRT_EXEC_COMPLETED_WITH_ERR);
	CHECK(4, strstr(nrtx_error_text(), "program 'racy': scalar engine, instruction 0 (copy): "
					   "race: nothing orders "
					   "two accesses to the same bytes: at SBUF, partition 0, "
					   "byte 0, with "
					   "vector engine, "
					   "instruction 0 (memset)"));
	nrtx_stream_fault(stream, &fault);
	CHECK(5, fault.status == EXI_FAULT_RACE);

	CHECK(6, !nrtx_buffer_alloc(0, BYTES, &in) && !nrtx_buffer_alloc(0, BYTES, &out));
	args[0] = (struct nrtx_arg){ .buffer = in, .bytes = BYTES };
	args[1] = (struct nrtx_arg){ .buffer = out, .bytes = BYTES };
	image = prog_copy(N, 0, ARCH, &size);
	CHECK(7, run_once(stream, image, size, args, 2) == NRT_EXEC_COMPLETED_WITH_ERR);
	CHECK(8, strstr(nrtx_error_text(), "read of bytes that nothing has written: at byte 0 of "
					   "the slot"));
	CHECK(9, !nrtx_copy_to_device(stream, in, 0, data, BYTES));
	image = prog_copy(N, 0, ARCH, &size);
	CHECK(10, !run_once(stream, image, size, args, 2));
	nrtx_buffer_free(in);
	nrtx_buffer_free(out);
	nrtx_stream_destroy(stream);
	return 0;
}

static void findings_become_errors(void **state)
{
	const char *transport = getenv("NEURON_RT_TRANSPORT");

	(void)state;
	if (!transport || strcmp(transport, "model"))
		skip();
	in_child(check_findings, NULL);
}

/* Ends without closing the runtime, as most programs do. */
static int run_and_exit(void *arg)
{
	const char *path = arg;
	nrtx_stream_t *stream;
	size_t size;
	void *image;

	setenv("NEURON_REPORT", path, 1);
	CHECK(1, !nrtx_stream_create(0, 0, &stream));
	image = two_engines(true, &size);
	CHECK(2, !run_once(stream, image, size, NULL, 0));
	exit(0);
}

static void programs_are_reported(void **state)
{
	const char *transport = getenv("NEURON_RT_TRANSPORT");
	char path[] = "/tmp/neuron-report-XXXXXX", text[4096] = "";
	int fd = mkstemp(path);
	FILE *f;

	(void)state;
	if (!transport || strcmp(transport, "model"))
		skip();
	assert_true(fd >= 0);
	close(fd);
	fflush(NULL);
	in_child(run_and_exit, path);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_true(fread(text, 1, sizeof(text) - 1, f) > 0);
	fclose(f);
	unlink(path);
	assert_non_null(strstr(text, "program 'ordered': 1 launches"));
	assert_non_null(strstr(text, "semaphore 0 of vector 0"));
}

/* Loads one program twice, and then tries a folder that is none. */
static int run_dumped(void *arg)
{
	nrtx_stream_t *stream;
	size_t size;
	void *image;

	setenv("NEURON_DUMP", arg, 1);
	CHECK(1, !nrtx_stream_create(0, 0, &stream));
	for (int i = 0; i < 2; i++) {
		image = two_engines(true, &size);
		CHECK(2, !run_once(stream, image, size, NULL, 0));
	}
	nrtx_stream_destroy(stream);
	return 0;
}

static void programs_are_dumped(void **state)
{
	char folder[] = "/tmp/neuron-dump-XXXXXX", pattern[64];
	size_t size, n;
	void *image, *got;
	glob_t found;
	FILE *f;

	(void)state;
	assert_non_null(mkdtemp(folder));
	in_child(run_dumped, folder);
	snprintf(pattern, sizeof(pattern), "%s/*", folder);
	assert_int_equal(glob(pattern, GLOB_PERIOD, NULL, &found), 0);
	/* With the folder's own two names. */
	assert_int_equal(found.gl_pathc, 3);
	assert_non_null(strstr(found.gl_pathv[2], "/ordered-"));
	assert_non_null(strstr(found.gl_pathv[2], ".nprog"));
	image = two_engines(true, &size);
	got = malloc(size + 1);
	f = fopen(found.gl_pathv[2], "rb");
	assert_non_null(f);
	n = fread(got, 1, size + 1, f);
	fclose(f);
	assert_int_equal(n, size);
	assert_memory_equal(got, image, size);
	free(got);
	free(image);
	unlink(found.gl_pathv[2]);
	globfree(&found);
	rmdir(folder);
	/* Without the folder, programs run all the same. */
	in_child(run_dumped, folder);
}

/* --- fork ------------------------------------------------------------------------------------ */

struct family {
	nrtx_stream_t *stream;
	nrtx_buffer_t *buffer;
};

static int check_forked(void *arg)
{
	struct family *family = arg;
	nrtx_buffer_t *another;
	uint32_t count;
	int word;

	CHECK(1, nrtx_core_count(&count) == NRT_FAILURE);
	CHECK(2, strstr(nrtx_error_text(), "forked"));
	CHECK(3, nrtx_buffer_alloc(0, 64, &another) == NRT_FAILURE);
	CHECK(4, nrtx_copy_to_host(family->stream, &word, family->buffer, 0, 4) == NRT_FAILURE);
	CHECK(5, nrtx_stream_sync(family->stream) == NRT_FAILURE);
	/* What the parent's objects' owners do at exit is harmless. */
	nrtx_stream_destroy(family->stream);
	nrtx_buffer_free(family->buffer);
	nrt_close();
	return 0;
}

static int check_fork(void *arg)
{
	struct family family;
	int status;
	pid_t pid;
	int word = 1;

	(void)arg;
	CHECK(10, !nrtx_stream_create(0, 0, &family.stream));
	CHECK(11, !nrtx_buffer_alloc(0, 64, &family.buffer));
	pid = fork();
	if (!pid)
		_exit(check_forked(&family));
	CHECK(12, waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	CHECK(WEXITSTATUS(status), !WEXITSTATUS(status));
	/* The parent goes on. */
	CHECK(13, !nrtx_copy_to_host(family.stream, &word, family.buffer, 0, 4) && !word);
	nrtx_stream_destroy(family.stream);
	nrtx_buffer_free(family.buffer);
	return 0;
}

static void fork_is_detected(void **state)
{
	(void)state;
	in_child(check_fork, NULL);
}

/* --- threads ------------------------------------------------------------------------------------ */

#define THREADS 6
#define ROUNDS	30

struct worker {
	pthread_t thread;
	uint32_t core;
	unsigned int seed;
	int result;
};

static int work(struct worker *w)
{
	static const float zero[128 * N];
	nrtx_program_t *add, *bad;
	struct nrtx_arg args[2], bad_args[2];
	nrtx_buffer_t *data, *copy;
	nrtx_stream_t *stream;
	float back[128 * N];
	size_t size;
	void *image;

	CHECK(1, !nrtx_stream_create(w->core, w->seed % 3, &stream));
	CHECK(2, !nrtx_buffer_alloc(w->core, BYTES, &data));
	CHECK(3, !nrtx_buffer_alloc(w->core, BYTES, &copy));
	image = prog_add(N, ARCH, &size);
	CHECK(4, !nrtx_program_load(w->core, image, size, &add));
	free(image);
	image = prog_copy(N, 1 << 20, ARCH, &size);
	CHECK(5, !nrtx_program_load(w->core, image, size, &bad));
	free(image);
	for (int round = 0; round < ROUNDS; round++) {
		const int launches = 1 + rand_r(&w->seed) % 40;

		CHECK(6, !nrtx_copy_to_device(stream, data, 0, zero, BYTES));
		args[0] = (struct nrtx_arg){ .buffer = data, .bytes = BYTES };
		args[1] = (struct nrtx_arg){ .bytes = 8, .offset = 0x3f800000 };
		for (int i = 0; i < launches; i++)
			CHECK(7, !nrtx_launch(stream, add, args, 2));
		CHECK(8, !nrtx_copy_device(stream, copy, 0, data, 0, BYTES));
		CHECK(9, !nrtx_copy_to_host(stream, back, copy, 0, BYTES));
		for (size_t i = 0; i < 128 * N; i++)
			CHECK(10, back[i] == (float)launches);
		if (rand_r(&w->seed) % 4)
			continue;
		bad_args[0] = (struct nrtx_arg){ .buffer = data, .bytes = BYTES };
		bad_args[1] = (struct nrtx_arg){ .buffer = copy, .bytes = BYTES };
		CHECK(11, !nrtx_launch(stream, bad, bad_args, 2));
		CHECK(12, !nrtx_launch(stream, add, args, 2));
		CHECK(13, nrtx_stream_sync(stream) == NRT_EXEC_OOB);
	}
	nrtx_buffer_free(data);
	nrtx_buffer_free(copy);
	nrtx_program_unload(add);
	nrtx_program_unload(bad);
	nrtx_stream_destroy(stream);
	return 0;
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;

	w->result = work(w);
	if (w->result)
		fprintf(stderr, "core %u: check %d: %s\n", w->core, w->result, nrtx_error_text());
	return NULL;
}

static int check_threads(void *arg)
{
	struct worker workers[THREADS];
	uint32_t count;

	(void)arg;
	setenv("NEURON_MODEL_DEVICES", "2", 1);
	setenv("NEURON_MODEL_CORES", "2", 1);
	CHECK(20, !nrtx_core_count(&count));
	for (uint32_t i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){ .core = i % count, .seed = i };
		CHECK(21, !pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]));
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(workers[i].thread, NULL);
	for (int i = 0; i < THREADS; i++)
		CHECK(workers[i].result, !workers[i].result);
	for (uint32_t core = 0; core < count; core++) {
		struct nrtx_core_info info;

		/* A second device has its own serial or place, and all memory is back. */
		CHECK(22, !nrtx_core_info(core, &info));
		CHECK(23, info.hbm_free == info.hbm_bytes);
	}
	return 0;
}

static void threads_do_not_disturb_each_other(void **state)
{
	(void)state;
	in_child(check_threads, NULL);
}

/* Points across two devices. */
static int check_devices(void *arg)
{
	nrtx_stream_t *first, *second;
	nrtx_buffer_t *a, *b;
	nrtx_program_t *fill;
	struct nrtx_core_info info;
	struct nrtx_arg args;
	uint32_t count, other;
	size_t size;
	void *image = prog_fill(1, N, ARCH, &size);

	(void)arg;
	setenv("NEURON_MODEL_DEVICES", "2", 1);
	CHECK(1, !nrtx_core_count(&count));
	other = count - 1;
	CHECK(2, !nrtx_core_info(other, &info) && info.device == 1);
	CHECK(3, !nrtx_stream_create(0, 0, &first) && !nrtx_stream_create(other, 0, &second));
	CHECK(4, !nrtx_buffer_alloc(0, BYTES, &a) && !nrtx_buffer_alloc(other, BYTES, &b));
	CHECK(5, !nrtx_program_load(0, image, size, &fill));
	free(image);
	args = (struct nrtx_arg){ .buffer = b, .bytes = BYTES };
	CHECK(6, nrtx_launch(first, fill, &args, 1) == NRT_EXEC_BAD_INPUT);
	CHECK(7, nrtx_launch(second, fill, &args, 1) == NRT_INVALID);
	args.buffer = a;
	CHECK(9, !nrtx_launch(first, fill, &args, 1));
	CHECK(10, !nrtx_stream_wait(second, nrtx_stream_record(first)));
	CHECK(11, nrtx_stream_idle(first));
	nrtx_stream_destroy(first);
	nrtx_stream_destroy(second);
	nrtx_buffer_free(a);
	nrtx_buffer_free(b);
	nrtx_program_unload(fill);
	return 0;
}

static void devices_are_kept_apart(void **state)
{
	const char *transport = getenv("NEURON_RT_TRANSPORT");

	(void)state;
	if (!transport || strcmp(transport, "model"))
		skip();
	in_child(check_devices, NULL);
}

/* A server of eight devices, two rows of four: a program fills device 0, from where the bytes go to a
 * neighbour, to the one behind it, and back to where there is no link. */
static int check_links(void *arg)
{
	static const uint32_t way[] = { 0, 1, 2, 0 };
	nrtx_stream_t *stream[8];
	nrtx_buffer_t *buffer[8];
	nrtx_program_t *fill;
	struct nrtx_core_info info;
	struct nrtx_arg args;
	uint32_t count, value;
	size_t size;
	void *image;

	setenv("NEURON_MODEL_CHIP", arg, 1);
	setenv("NEURON_MODEL_DEVICES", "8", 1);
	setenv("NEURON_MODEL_CORES", "1", 1);
	setenv("NEURON_MODEL_HBM", "64M", 1);
	CHECK(1, !nrtx_core_count(&count) && count == 8);
	CHECK(2, !nrtx_core_info(0, &info) && strstr("Trainium1 Trainium3", info.name));
	for (uint32_t i = 0; i < 8; i++)
		CHECK(3, !nrtx_stream_create(i, 0, &stream[i]) &&
				 !nrtx_buffer_alloc(i, BYTES, &buffer[i]));
	image = prog_fill(0x1234, N, info.arch, &size);
	CHECK(4, !nrtx_program_load(0, image, size, &fill));
	free(image);
	args = (struct nrtx_arg){ .buffer = buffer[0], .bytes = BYTES };
	CHECK(5, !nrtx_launch(stream[0], fill, &args, 1));
	CHECK(6, !nrtx_copy_to_host(stream[0], &value, buffer[0], BYTES - 8, 4));
	for (unsigned int i = 0; i < 3; i++) {
		const uint32_t from = way[i], to = way[i + 1];
		uint32_t got = 0;

		CHECK(7, !nrtx_copy_device(stream[i % 2 ? to : from], buffer[to], 8, buffer[from],
					   i ? 8 : 0, BYTES - 8));
		CHECK(8, !nrtx_stream_sync(stream[i % 2 ? to : from]));
		CHECK(9, !nrtx_copy_to_host(stream[to], &got, buffer[to], BYTES - 4, 4));
		CHECK(10, got == value);
		CHECK(11,
		      !nrtx_copy_to_host(stream[to], &got, buffer[to], 0, 4) && (got == 0 || !to));
	}
	/* Neither side is the stream's. */
	CHECK(12, nrtx_copy_device(stream[5], buffer[0], 0, buffer[1], 0, 4) == NRT_INVALID);
	for (uint32_t i = 0; i < 8; i++) {
		nrtx_buffer_free(buffer[i]);
		nrtx_stream_destroy(stream[i]);
	}
	nrtx_program_unload(fill);
	for (uint32_t i = 0; i < 8; i++)
		CHECK(13, !nrtx_core_info(i, &info) && info.hbm_free == info.hbm_bytes);
	return 0;
}

static void devices_of_a_server_copy_to_each_other(void **state)
{
	const char *transport = getenv("NEURON_RT_TRANSPORT");

	(void)state;
	if (!transport || strcmp(transport, "model"))
		skip();
	in_child(check_links, "trn1");
	in_child(check_links, "trn3");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(variables_are_checked),
		cmocka_unit_test(findings_become_errors),
		cmocka_unit_test(programs_are_reported),
		cmocka_unit_test(programs_are_dumped),
		cmocka_unit_test(a_missing_device_is_explained),
		cmocka_unit_test(fork_is_detected),
		cmocka_unit_test(threads_do_not_disturb_each_other),
		cmocka_unit_test(devices_are_kept_apart),
		cmocka_unit_test(devices_of_a_server_copy_to_each_other),
	};

	return cmocka_run_group_tests_name("libnrt and the process", tests, NULL, NULL);
}
