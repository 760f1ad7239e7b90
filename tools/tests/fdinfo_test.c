// SPDX-License-Identifier: Apache-2.0
/* What the driver prints becomes a client; what others print does not. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "neuron_devices.h"

static struct nd_programs programs;
static struct nd_client client;
static char pdev[32];

static bool read_text(const char *text, struct nd_programs *to)
{
	FILE *f = fmemopen((void *)text, strlen(text), "r");
	bool ours;

	assert_non_null(f);
	client = (struct nd_client){ 0 };
	ours = nd_fdinfo(f, &client, pdev, sizeof(pdev), to);
	fclose(f);
	return ours;
}

static const char text_of_driver[] = "pos:\t0\nflags:\t02100002\nmnt_id:\t26\nino:\t321\n"
				     "drm-driver:\tneuron\ndrm-client-id:\t42\n"
				     "drm-pdev:\t0000:00:04.0\n"
				     "drm-engine-core:\t123456789012 ns\n"
				     "drm-engine-capacity-core:\t8\n"
				     "drm-engine-copy:\t5 ns\ndrm-engine-capacity-copy:\t2\n"
				     "drm-total-hbm:\t16 KiB\ndrm-resident-hbm:\t12 KiB\n"
				     "drm-resident-memory:\t3 MiB\n"
				     "neuron-launches:\t77\nneuron-core-0:\t9 ns\n"
				     "neuron-core-7:\t10 ns\nneuron-core-99:\t1 ns\n"
				     "neuron-constants:\t2048\nneuron-code:\t4096\n"
				     "neuron-program-3:\t8192 55 add 2 numbers\n"
				     "neuron-program-4:\t4096 0 \n"
				     "neuron-programs:\t300\nneuron-of-tomorrow:\t1\n";

static void all_keys_are_read(void **state)
{
	(void)state;
	programs.n = 0;
	assert_true(read_text(text_of_driver, &programs));
	assert_string_equal(pdev, "0000:00:04.0");
	assert_int_equal(client.id, 42);
	assert_true(client.core_ns == 123456789012);
	assert_int_equal(client.copy_ns, 5);
	assert_int_equal(client.hbm_bytes, 12 << 10);
	assert_int_equal(client.host_bytes, 3 << 20);
	assert_int_equal(client.launches, 77);
	assert_int_equal(client.ns_of_core[0], 9);
	assert_int_equal(client.ns_of_core[1], 0);
	assert_int_equal(client.ns_of_core[7], 10);
	assert_int_equal(client.constant_bytes, 2048);
	assert_int_equal(client.code_bytes, 4096);
	assert_int_equal(client.programs, 300);
	assert_int_equal(programs.n, 2);
	assert_int_equal(programs.list[0].client, 42);
	assert_int_equal(programs.list[0].id, 3);
	assert_int_equal(programs.list[0].bytes, 8192);
	assert_int_equal(programs.list[0].launches, 55);
	assert_string_equal(programs.list[0].name, "add 2 numbers");
	assert_string_equal(programs.list[1].name, "");
}

static void programs_need_not_be_wanted(void **state)
{
	(void)state;
	assert_true(read_text(text_of_driver, NULL));
	assert_int_equal(client.programs, 300);
}

/* Another driver may print keys that look like ours. */
static void other_drivers_leave_nothing(void **state)
{
	(void)state;
	programs.n = 1;
	assert_false(read_text("drm-driver:\tamdgpu\nneuron-program-1:\t1 1 x\n", &programs));
	assert_int_equal(programs.n, 1);
	assert_false(read_text("pos:\t0\nflags:\t02\n", &programs));
	assert_false(read_text("no colon here\n", &programs));
}

static void a_full_list_takes_no_more(void **state)
{
	(void)state;
	programs.n = ND_PROGRAMS_MAX - 1;
	assert_true(read_text(text_of_driver, &programs));
	assert_int_equal(programs.n, ND_PROGRAMS_MAX);
}

static void malformed_programs_are_left_out(void **state)
{
	(void)state;
	programs.n = 0;
	assert_true(read_text("drm-driver:\tneuron\nneuron-program-x:\t1 1 a\n"
			      "neuron-program-1x:\t1 1 a\nneuron-program-1:\tno\n",
			      &programs));
	assert_int_equal(programs.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_keys_are_read),
		cmocka_unit_test(programs_need_not_be_wanted),
		cmocka_unit_test(other_drivers_leave_nothing),
		cmocka_unit_test(a_full_list_takes_no_more),
		cmocka_unit_test(malformed_programs_are_left_out),
	};

	return cmocka_run_group_tests_name("fdinfo", tests, NULL, NULL);
}
