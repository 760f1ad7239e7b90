// SPDX-License-Identifier: Apache-2.0
/* Injected faults: each does what it says, as often as it says, and then no more. */
#include <errno.h>
#include <stdio.h>

#include "control.h"
#include "device.h"
#include "mbox.h"
#include "queue.h"

#define ENGINE V3_UDMA_D2H_0

/* A copy whose end nobody waits for; the byte of the marker that the host would look at. */
static _Atomic uint32_t *start_copy(struct queue *u)
{
	const uint32_t marker = UDMA_MARKER;
	_Atomic uint32_t *seen = (_Atomic uint32_t *)(u->f->host + MARKER + 8);

	memcpy(u->f->host + MARKER, &marker, sizeof(marker));
	*seen = 0;
	put_pair(u, hbm_addr(0, 0), host_addr(DATA), 100, 0);
	put_pair(u, host_addr(MARKER + 8), host_addr(MARKER), 4, UDMA_DESC_INT);
	ring(u, 2, 2);
	return seen;
}

static void interrupts_are_lost(void **state)
{
	struct fixture *f = *state;
	struct queue u = start(f, ENGINE, 0);
	_Atomic uint32_t *seen;

	assert_int_equal(nm_inject_irq(f->dev, VECTOR, 0, 2), 0);
	for (int i = 0; i < 2; i++) {
		seen = start_copy(&u);
		wait_for(*seen == UDMA_MARKER);
		wait_for(idle(&u));
	}
	copy_and_wait(&u, hbm_addr(0, 0), host_addr(DATA), 100);
	assert_int_equal(f->irqs[VECTOR], 1);
	assert_int_equal(nm_inject_irq(f->dev, EXI_MSIX_VECTORS, 0, 1), -EINVAL);
}

static void interrupts_are_late(void **state)
{
	struct fixture *f = *state;
	struct queue u = start(f, ENGINE, 0);
	struct timespec before, after;

	clock_gettime(CLOCK_MONOTONIC, &before);
	assert_int_equal(nm_inject_irq(f->dev, VECTOR, 100000, 1), 0);
	copy_and_wait(&u, hbm_addr(0, 0), host_addr(DATA), 100);
	clock_gettime(CLOCK_MONOTONIC, &after);
	assert_true((after.tv_sec - before.tv_sec) * 1000 +
			    (after.tv_nsec - before.tv_nsec) / 1000000 >=
		    99);
	copy_and_wait(&u, hbm_addr(0, 0), host_addr(DATA), 100);
}

static void ecc_counters_outlive_resets(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(nm_inject_ecc(f->dev, 2, 3, 1), 0);
	assert_int_equal(nm_inject_ecc(f->dev, 2, 4, 0), 0);
	assert_int_equal(nm_inject_ecc(f->dev, NM_ECC_SRAM, 0, 100000), 0);
	assert_int_equal(nm_inject_ecc(f->dev, NM_ECC_SRAM + 1, 0, 1), -EINVAL);
	nm_device_reset(f->dev);
	assert_int_equal(misc_read(f, MBOX_ECC_HBM(2)), 7 << 16 | 1);
	assert_int_equal(misc_read(f, MBOX_ECC_HBM(1)), 0);
	assert_int_equal(misc_read(f, MBOX_ECC_SRAM), 0xffff);
}

static void repair_state_is_shown(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(misc_read(f, MBOX_HBM_REPAIR), 0);
	assert_int_equal(nm_inject_repair(f->dev, MBOX_HBM_REPAIR_PENDING), 0);
	assert_int_equal(misc_read(f, MBOX_HBM_REPAIR), 1);
	assert_int_equal(nm_inject_repair(f->dev, 3), -EINVAL);
	nm_device_reset(f->dev);
	assert_int_equal(misc_read(f, MBOX_HBM_REPAIR), 1);
	/* Nothing else asks for a repair, and none that failed goes away. */
	nm_hbm_lose(f->dev);
	nm_device_reset(f->dev);
	assert_int_equal(misc_read(f, MBOX_HBM_REPAIR), 0);
	assert_int_equal(nm_inject_repair(f->dev, MBOX_HBM_REPAIR_FAILED), 0);
	nm_hbm_lose(f->dev);
	nm_device_reset(f->dev);
	assert_int_equal(misc_read(f, MBOX_HBM_REPAIR), 2);
}

static void the_mailbox_answers_badly(void **state)
{
	struct fixture *f = *state;
	const uint64_t addr = V3_DEV_MISC_RAM + MBOX_SERIAL_LO;

	assert_int_equal(nm_inject_mailbox(f->dev, NM_MAILBOX_SEQUENCE, 1), 0);
	send(f, 5, MBOX_CMD_READ_REGS, &addr, 8, 0);
	response(f, 6);
	assert_int_equal(nm_inject_mailbox(f->dev, NM_MAILBOX_ERROR, 1), 0);
	send(f, 7, MBOX_CMD_READ_REGS, &addr, 8, 0);
	assert_int_equal(response(f, 7)->error, MBOX_FAILED);
	assert_int_equal(nm_inject_mailbox(f->dev, NM_MAILBOX_GARBAGE, 1), 0);
	send(f, 8, MBOX_CMD_READ_REGS, &addr, 8, 0);
	assert_int_equal(response(f, 8)->size, 0xa5a5);
	send(f, 9, MBOX_CMD_READ_REGS, &addr, 8, 0);
	assert_int_equal(response(f, 9)->error, MBOX_OK);
	assert_int_equal(nm_inject_mailbox(f->dev, NM_MAILBOX_FAULTS, 1), -EINVAL);
}

/* The firmware sees a request that its checksum does not fit, and the host what it wrote. */
static void requests_are_damaged(void **state)
{
	struct fixture *f = *state;
	const uint64_t addr = V3_DEV_MISC_RAM + MBOX_SERIAL_LO;
	struct mbox_request sent;

	assert_int_equal(nm_inject_mailbox(f->dev, NM_MAILBOX_CRC, 1), 0);
	send(f, 5, MBOX_CMD_READ_REGS, &addr, 8, 0);
	memcpy(&sent, f->host + REQUEST, sizeof(sent));
	wait_for(f->messages == 1);
	assert_non_null(strstr(f->last, "CRC"));
	assert_int_equal(f->host[RESPONSE], 0);
	assert_memory_equal(f->host + REQUEST, &sent, sizeof(sent));
	send(f, 6, MBOX_CMD_READ_REGS, &addr, 8, 0);
	assert_int_equal(response(f, 6)->error, MBOX_OK);
}

static bool says(struct fixture *f, const char *what)
{
	char text[NM_CONTROL_LINE];

	nm_inject_status(f->dev, text, sizeof(text));
	return strstr(text, what);
}

/* The same with requests in registers, which only V4 has. */
static void registers_answer_badly(void **state)
{
	struct fixture *f = fixture_create((struct nm_config){ .chip = "trn3", .cores = 1 });
	const uint64_t addr = V3_DEV_MISC_RAM + MBOX_API_VERSION;

	(void)state;
	assert_int_equal(send_in_registers(f, 4, MBOX_CMD_READ_REGS, addr), 12 << 16 | 4);
	assert_int_equal(misc_read(f, MBOX_DATA), 6);
	assert_int_equal(misc_read(f, MBOX_ACK), 0);
	assert_int_equal(nm_inject_mailbox(f->dev, NM_MAILBOX_SEQUENCE, 1), 0);
	assert_int_equal(send_in_registers(f, 5, MBOX_CMD_READ_REGS, addr), 8 << 16 | 6);
	assert_int_equal(nm_inject_mailbox(f->dev, NM_MAILBOX_ERROR, 1), 0);
	assert_int_equal(send_in_registers(f, 7, MBOX_CMD_READ_REGS, addr), 8 << 16 | 1 << 8 | 7);
	assert_int_equal(nm_inject_mailbox(f->dev, NM_MAILBOX_GARBAGE, 1), 0);
	assert_int_equal(send_in_registers(f, 8, MBOX_CMD_READ_REGS, addr), 0xa5a5a508);
	assert_int_equal(f->messages, 0);
	assert_int_equal(nm_inject_mailbox(f->dev, NM_MAILBOX_CRC, 1), 0);
	assert_int_equal(send_in_registers(f, 9, MBOX_CMD_READ_REGS, addr), 0);
	assert_int_equal(f->messages, 1);
	assert_non_null(strstr(f->last, "CRC"));
	/* Silence ends with the firmware: the next one does not take it for its own. */
	assert_int_equal(nm_inject_mailbox(f->dev, NM_MAILBOX_SILENT, 1), 0);
	misc_write(f, MBOX_REQUEST_HI, 16u << 16 | MBOX_CMD_READ_REGS << 8 | 10);
	misc_write(f, MBOX_ACK, 1);
	misc_write(f, MBOX_TRIGGER, 1);
	wait_for(!says(f, "mailbox="));
	assert_int_equal(misc_read(f, MBOX_TRIGGER), 1);
	misc_write(f, MBOX_FW_RESTART, MBOX_FW_RESTART_KEY);
	wait_for(misc_read(f, MBOX_TRIGGER) == 0);
	assert_int_equal(misc_read(f, MBOX_REQUEST_HI), 0);
	wait_for(!(misc_read(f, MBOX_STATUS) & MBOX_STATUS_NOT_READY));
	assert_int_equal(send_in_registers(f, 11, MBOX_CMD_READ_REGS, addr), 12 << 16 | 11);
	fixture_teardown((void **)&f);
}

/* Where there is no such way, nothing can be asked that way. */
static void only_v4_takes_requests_in_registers(void **state)
{
	struct fixture *f = *state;

	misc_write(f, MBOX_ACK, 1);
	assert_int_equal(f->messages, 1);
	assert_non_null(strstr(f->last, "write of no register: misc_ram + 0xf0"));
	assert_int_equal(misc_read(f, MBOX_HEALTH), UINT32_MAX);
	assert_int_equal(f->messages, 2);
}

static void the_mailbox_is_silent(void **state)
{
	struct fixture *f = *state;
	const uint64_t addr = V3_DEV_MISC_RAM + MBOX_SERIAL_LO;

	assert_int_equal(nm_inject_mailbox(f->dev, NM_MAILBOX_SILENT, 2), 0);
	send(f, 5, MBOX_CMD_READ_REGS, &addr, 8, 0);
	wait_for(says(f, "mailbox=1"));
	misc_write(f, MBOX_RESET, MBOX_RESET_DEVICE);
	misc_write(f, MBOX_TRIGGER, 1);
	wait_for(!says(f, "mailbox="));
	assert_int_equal(misc_read(f, MBOX_RESET), MBOX_RESET_DEVICE);
	assert_int_equal(f->host[RESPONSE], 0);
	misc_write(f, MBOX_TRIGGER, 1);
	wait_for(misc_read(f, MBOX_RESET) == 0);
}

static void udma_engines_break(void **state)
{
	struct fixture *f = *state;
	struct queue u = start(f, ENGINE, 0);
	_Atomic uint32_t *seen;

	assert_int_equal(nm_inject_udma(f->dev, ENGINE, NM_UDMA_ERROR, 1), 0);
	seen = start_copy(&u);
	wait_for(stopped(&u));
	wait_for(f->irqs[VECTOR] == 1);
	assert_true(cause(&u, 0) & UDMA_M2S_CAUSE_DATA_BUS);
	assert_int_equal(*seen, 0);

	u = start(f, ENGINE, 0);
	assert_int_equal(nm_inject_udma(f->dev, ENGINE, NM_UDMA_STOP, 1), 0);
	seen = start_copy(&u);
	wait_for(apb_read(f, V3_APB_UDMA(ENGINE) + UDMA_STATE) == UDMA_STATE_ABORT * 0x1111u);
	assert_false(stopped(&u));
	assert_int_equal(*seen, 0);

	u = start(f, ENGINE, 0);
	assert_int_equal(nm_inject_udma(f->dev, ENGINE, NM_UDMA_CORRUPT, 1), 0);
	seen = start_copy(&u);
	wait_for(idle(&u));
	wait_for(*seen == (uint32_t)~UDMA_MARKER);
	copy_and_wait(&u, hbm_addr(0, 0), host_addr(DATA), 100);
	assert_int_equal(nm_inject_udma(f->dev, V3_UDMA_ENGINES, NM_UDMA_STOP, 1), -EINVAL);
	/* Of a core that this device lacks. */
	assert_int_equal(nm_inject_udma(f->dev, 127, NM_UDMA_STOP, 1), -EINVAL);
}

static void a_removed_device_is_not_there(void **state)
{
	struct fixture *f = *state;
	struct queue u = start(f, ENGINE, 0);
	_Atomic uint32_t *seen;

	hbm_at(f, 1, 0)[0] = 77;
	nm_inject_removal(f->dev, true);
	seen = start_copy(&u);
	assert_int_equal(misc_read(f, MBOX_SERIAL_LO), UINT32_MAX);
	assert_int_equal(nm_bar_read(f->dev, EXI_BAR, 0, 8), UINT64_MAX);
	assert_int_equal(nm_config_read(f->dev, 0, 4), UINT32_MAX);
	assert_int_equal(*seen, 0);
	nm_inject_removal(f->dev, false);
	assert_int_equal(misc_read(f, MBOX_SERIAL_LO), 0x55667788);
	assert_int_equal(hbm_at(f, 1, 0)[0], 77);
	assert_int_equal(apb_read(f, V3_APB_UDMA(ENGINE) + UDMA_STATE), UDMA_STATE_IDLE);
	nm_enable(f->dev);
	u = start(f, ENGINE, 0);
	copy_and_wait(&u, hbm_addr(0, 0), host_addr(DATA), 100);
}

static const char *command(struct fixture *f, const char *line)
{
	static char answer[NM_CONTROL_LINE];

	nm_control_run(f->dev, line, answer);
	return answer;
}

static void commands_and_their_mistakes(void **state)
{
	static const char *const bad[] = {
		"",
		"explode",
		"hang 2 tensor",
		"hang 0 engine",
		"hang 0",
		"irq lose 64",
		"irq delay 3",
		"irq delay 3 0",
		"irq delay 3 60001",
		"mailbox loud",
		"udma 999 stop",
		"udma 128 stop -1",
		"throttle 0",
		"poison 2",
		"poison",
		"throttle 101",
		"ecc hbm4 1 1",
		"ecc sram x 1",
		"repair soon",
		"status now",
		"udma 128 stop 1 2 3 4 5 6 7",
	};
	struct fixture *f = *state;
	char clean[NM_CONTROL_LINE];

	snprintf(clean, sizeof(clean), "%s", command(f, "status"));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (strncmp(command(f, bad[i]), "error ", 6))
			fail_msg("'%s' was answered '%s'", bad[i], command(f, bad[i]));
	assert_string_equal(command(f, "status"), clean);
	assert_string_equal(command(f, "hang 1 vector 3"), "ok");
	assert_string_equal(command(f, "irq delay 5 20 7"), "ok");
	assert_string_equal(command(f, "mailbox silent"), "ok");
	assert_string_equal(command(f, " udma\t128 corrupt 2 "), "ok");
	assert_string_equal(command(f, "throttle 50"), "ok");
	assert_string_equal(command(f, "poison 1 4"), "ok");
	assert_string_equal(command(f, "repair failed"), "ok");
	assert_string_equal(command(f, "remove"), "ok");
	assert_true(says(f, "present=0 clock=50% ") && says(f, " hang.1.1=3"));
	assert_true(says(f, " poison.1=4"));
	assert_true(says(f, " irq.5=7") && says(f, " mailbox=1") && says(f, " udma.128=2"));
	assert_string_equal(command(f, "clear"), "ok");
	assert_string_equal(command(f, "status"), clean);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(interrupts_are_lost),
		TEST(interrupts_are_late),
		TEST(ecc_counters_outlive_resets),
		TEST(repair_state_is_shown),
		TEST(the_mailbox_answers_badly),
		TEST(requests_are_damaged),
		TEST(the_mailbox_is_silent),
		TEST(udma_engines_break),
		cmocka_unit_test(registers_answer_badly),
		TEST(only_v4_takes_requests_in_registers),
		TEST(a_removed_device_is_not_there),
		TEST(commands_and_their_mistakes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
