// SPDX-License-Identifier: Apache-2.0
/*
 * The management core and its firmware: what it shows, loading another image, and what becomes of
 * firmware that hangs. FW_TESTS is the folder of images that firmware/ builds for tests.
 */
#include <stdio.h>

#include "device.h"
#include "mbox.h"
#include "neuron_fw_image.h"

#define IMAGE	 0x10000u /* in host memory */
#define BOOT	 FWI_VERSION(1, 0, 0)
#define NEWER	 FWI_VERSION(1, 1, 0)
#define MAX_FILE 0x50000u

static uint32_t boot_cause(struct fixture *f)
{
	return HW_GET(MBOX_FW_BOOT_CAUSE, misc_read(f, MBOX_FW_BOOT));
}

static uint32_t starts(struct fixture *f)
{
	return HW_GET(MBOX_FW_BOOT_COUNT, misc_read(f, MBOX_FW_BOOT));
}

static bool ready(struct fixture *f)
{
	return !(misc_read(f, MBOX_STATUS) & MBOX_STATUS_NOT_READY);
}

/* Puts an image into host memory; its bytes. */
static uint32_t put_image(struct fixture *f, const char *name)
{
	char path[512];
	size_t bytes;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s.bin", FW_TESTS, name);
	file = fopen(path, "rb");
	assert_non_null(file);
	bytes = fread(f->host + IMAGE, 1, MAX_FILE, file);
	fclose(file);
	assert_true(bytes > sizeof(struct fw_image));
	return (uint32_t)bytes;
}

static struct fw_image *image(struct fixture *f)
{
	return (struct fw_image *)(f->host + IMAGE);
}

static void seal(struct fixture *f)
{
	image(f)->crc = 0;
	image(f)->crc = crc32c((uint8_t *)image(f), sizeof(struct fw_image) + image(f)->bytes);
}

/* Asks for what lies there; the verdict. */
static struct mbox_load_verdict load(struct fixture *f, uint32_t bytes)
{
	const struct mbox_load_firmware what = { .addr = host_addr(IMAGE), .bytes = bytes };
	struct mbox_load_verdict verdict;
	const struct mbox_response *r;

	send(f, 17, MBOX_CMD_LOAD_FIRMWARE, &what, sizeof(what), 0);
	r = response(f, 17);
	memcpy(&verdict, r + 1, sizeof(verdict));
	assert_int_equal(r->size, sizeof(*r) + sizeof(verdict));
	assert_int_equal(r->error, verdict.verdict == FWI_OK ? MBOX_OK : MBOX_FAILED);
	return verdict;
}

static void load_test_image(struct fixture *f, const char *name)
{
	assert_int_equal(load(f, put_image(f, name)).verdict, FWI_OK);
	wait_for(starts(f) > 1 && ready(f));
}

static void answers(struct fixture *f, uint8_t sequence)
{
	const uint64_t addr = V3_DEV_MISC_RAM + MBOX_SERIAL_LO;

	send(f, sequence, MBOX_CMD_READ_REGS, &addr, sizeof(addr), 0);
	assert_int_equal(response(f, sequence)->error, MBOX_OK);
}

static void boot_image_runs(struct fixture *f, uint32_t cause)
{
	wait_for(boot_cause(f) == cause && ready(f));
	assert_int_equal(misc_read(f, MBOX_FW_VERSION), BOOT);
	assert_false(misc_read(f, MBOX_FW_BOOT) & MBOX_FW_BOOT_LOADED_IMAGE);
	answers(f, 99);
}

/* --- what it shows -------------------------------------------------------------- */

static void says_what_it_is(void **state)
{
	struct fixture *f = *state;
	uint32_t beats;

	assert_int_equal(misc_read(f, MBOX_FW_INTERFACE), MBOX_FW_INTERFACE_V1);
	assert_int_equal(misc_read(f, MBOX_FW_VERSION), BOOT);
	assert_int_equal(misc_read(f, MBOX_FW_BOOT), 1 << 16 | MBOX_FW_BOOT_POWER_ON);
	beats = misc_read(f, MBOX_FW_HEARTBEAT);
	answers(f, 1);
	wait_for(misc_read(f, MBOX_FW_HEARTBEAT) > beats);
	nm_device_reset(f->dev);
	assert_int_equal(misc_read(f, MBOX_FW_BOOT), 1 << 16 | MBOX_FW_BOOT_POWER_ON);
	assert_int_equal(misc_read(f, MBOX_DEVICE_ID), 7);
}

static void every_chip_boots_its_image(void **state)
{
	static const char *const chips[] = { "trn1", "inf2", "trn2", "trn3" };

	(void)state;
	for (unsigned int i = 0; i < sizeof(chips) / sizeof(chips[0]); i++) {
		const struct nm_config config = { .chip = chips[i], .hbm_bytes = HBM_STACK };
		struct nm_device *dev;
		uint32_t value = 0;

		assert_int_equal(nm_device_create(&config, &dev), 0);
		assert_int_equal(nm_apb_read(dev, dev->chip->misc_ram + MBOX_FW_VERSION), BOOT);
		assert_int_equal(nm_apb_read(dev, dev->chip->misc_ram + MBOX_STATUS), 0);
		assert_true(nm_mgmt_load(dev, MGMT_REGS + MGMT_CHIP_STACKS, 4, &value));
		assert_int_equal(value, dev->chip->stacks);
		nm_device_destroy(dev);
	}
}

static void counts_memory_errors(void **state)
{
	struct fixture *f = *state;

	for (unsigned int m = 0; m < 4; m++) {
		assert_int_equal(nm_inject_ecc(f->dev, m, m + 1, m), 0);
		assert_int_equal(misc_read(f, MBOX_ECC_HBM(m)), (m + 1) << 16 | m);
	}
	assert_int_equal(nm_inject_ecc(f->dev, NM_ECC_SRAM, 70000, 1), 0);
	assert_int_equal(misc_read(f, MBOX_ECC_SRAM), 0xffff0001);
}

static void samples_sensors(void **state)
{
	struct fixture *f = *state;
	uint32_t first = misc_read(f, MBOX_POWER(0)), power, degrees;

	wait_for(HW_GET(MBOX_POWER_SAMPLE, misc_read(f, MBOX_POWER(0))) >
		 HW_GET(MBOX_POWER_SAMPLE, first) + 2);
	power = HW_GET(MBOX_POWER_BASIS_POINTS, misc_read(f, MBOX_POWER(1)));
	degrees = HW_GET(MBOX_TEMPERATURE_TENTHS, misc_read(f, MBOX_TEMPERATURE(1)));
	assert_uint_in_range(power, 1, 2000); /* idle */
	assert_uint_in_range(degrees, 200, 400);
	nm_inject_throttle(f->dev, 50);
	wait_for(HW_GET(MBOX_TEMPERATURE_TENTHS, misc_read(f, MBOX_TEMPERATURE(0))) >= 1000);
	assert_true(misc_read(f, MBOX_TEMPERATURE(1)) >> 16);
}

static void is_deterministic(void **state)
{
	struct fixture *a = *state, *b;
	void *other;

	fixture_setup(&other);
	b = other;
	for (uint8_t i = 1; i < 20; i++) {
		answers(a, i);
		answers(b, i);
	}
	nm_device_reset(a->dev); /* so that neither runs */
	nm_device_reset(b->dev);
	nm_enable(a->dev);
	nm_enable(b->dev);
	answers(a, 1);
	answers(b, 1);
	wait_for(misc_read(a, MBOX_FW_HEARTBEAT) == 1 && misc_read(b, MBOX_FW_HEARTBEAT) == 1);
	wait_for(a->dev->mgmt->cpu.mcycle == b->dev->mgmt->cpu.mcycle);
	assert_true(a->dev->mgmt->cpu.mcycle < 20000);
	fixture_teardown(&other);
}

/* --- loading -------------------------------------------------------------------- */

static void loads_a_newer_image(void **state)
{
	struct fixture *f = *state;

	misc_write(f, MBOX_DEVICE_ID, 11);
	misc_write(f, MBOX_RUNTIME_0, 3);
	load_test_image(f, "newer");
	assert_int_equal(misc_read(f, MBOX_FW_VERSION), NEWER);
	assert_int_equal(misc_read(f, MBOX_FW_BOOT),
			 2 << 16 | MBOX_FW_BOOT_LOADED_IMAGE | MBOX_FW_BOOT_LOADED);
	answers(f, 3);
	assert_int_equal(misc_read(f, MBOX_DEVICE_ID), 11);
	assert_int_equal(misc_read(f, MBOX_RUNTIME_0), 3);
	misc_write(f, MBOX_RESET, MBOX_RESET_DEVICE); /* does not end the firmware */
	misc_write(f, MBOX_TRIGGER, 1);
	wait_for(misc_read(f, MBOX_RESET) == 0 && ready(f));
	assert_int_equal(misc_read(f, MBOX_FW_VERSION), NEWER);
	load_test_image(f, "newer"); /* over itself */
	wait_for(starts(f) == 3 && ready(f));
	misc_write(f, MBOX_FW_RESTART, 5); /* not the key */
	answers(f, 4);
	assert_int_equal(misc_read(f, MBOX_FW_VERSION), NEWER);
	misc_write(f, MBOX_FW_RESTART, MBOX_FW_RESTART_KEY);
	boot_image_runs(f, MBOX_FW_BOOT_HOST);
	assert_int_equal(f->messages, 0);
}

static void damage(struct fixture *f, unsigned int which)
{
	struct fw_image *h = image(f);

	switch (which) {
	case 0:
		f->host[IMAGE + 1000] ^= 1;
		return;
	case 1:
		h->magic++;
		break;
	case 2:
		h->format = 2;
		break;
	case 3:
		h->reserved[6] = 1;
		break;
	case 4:
		h->load -= 4;
		break;
	case 5:
		h->load += 2;
		break;
	case 6:
		h->memory = h->bytes - 4;
		break;
	case 7:
		h->memory = MGMT_IMAGE_MAX + 4;
		break;
	case 8:
		h->entry = h->load + h->bytes;
		break;
	default:
		h->entry++;
		break;
	}
	seal(f);
}

static void refuses_bad_images(void **state)
{
	static const uint32_t want[] = { FWI_BAD_CHECKSUM, FWI_BAD_MAGIC,   FWI_BAD_FORMAT,
					 FWI_BAD_RESERVED, FWI_BAD_ADDRESS, FWI_BAD_ADDRESS,
					 FWI_BAD_ADDRESS,  FWI_BAD_ADDRESS, FWI_BAD_ADDRESS,
					 FWI_BAD_ADDRESS };
	struct fixture *f = *state;
	struct mbox_load_verdict v;
	uint32_t bytes;

	for (unsigned int i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		bytes = put_image(f, "newer");
		damage(f, i);
		v = load(f, bytes);
		assert_int_equal(v.verdict, want[i]);
		assert_int_not_equal(v.value, v.want);
	}
	v = load(f, put_image(f, "other"));
	assert_int_equal(v.verdict, FWI_BAD_ARCH);
	assert_int_equal(v.value, 2);
	assert_int_equal(v.want, 3);
	bytes = put_image(f, "newer");
	assert_int_equal(load(f, bytes - 4).verdict, FWI_BAD_LENGTH);
	assert_int_equal(load(f, bytes + 4).verdict, FWI_BAD_LENGTH);
	assert_int_equal(load(f, 0).verdict, FWI_BAD_SIZE);
	assert_int_equal(load(f, 63).verdict, FWI_BAD_SIZE);
	assert_int_equal(load(f, UINT32_MAX).verdict, FWI_BAD_SIZE);
	assert_int_equal(load(f, MGMT_IMAGE_MAX + 64).verdict, FWI_BAD_LENGTH);
	assert_int_equal(starts(f), 1);
	boot_image_runs(f, MBOX_FW_BOOT_POWER_ON);
}

static void refuses_bad_requests(void **state)
{
	struct fixture *f = *state;
	struct mbox_load_firmware what = { .addr = host_addr(HOST_BYTES), .bytes = 4096 };
	const struct mbox_response *r;
	struct mbox_load_verdict v;

	send(f, 1, MBOX_CMD_LOAD_FIRMWARE, &what, sizeof(what), 0);
	r = response(f, 1);
	memcpy(&v, r + 1, sizeof(v));
	assert_int_equal(r->error, MBOX_FAILED);
	assert_int_equal(v.verdict, FWI_NO_ANSWER);
	assert_int_equal(f->messages, 0);
	send(f, 2, MBOX_CMD_LOAD_FIRMWARE, &what, sizeof(what) - 1, 0);
	assert_int_equal(response(f, 2)->error, MBOX_FAILED);
	what.reserved = 1;
	send(f, 3, MBOX_CMD_LOAD_FIRMWARE, &what, sizeof(what), 0);
	assert_int_equal(response(f, 3)->error, MBOX_FAILED);
	assert_int_equal(f->messages, 2);
	answers(f, 4);
}

/* --- firmware that hangs ---------------------------------------------------------- */

/* It does not get ready: the boot image is back at once. */
static void hangs_as_it_starts(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(load(f, put_image(f, "boot")).verdict, FWI_OK);
	boot_image_runs(f, MBOX_FW_BOOT_WATCHDOG);
	assert_int_equal(starts(f), 3);
}

static void hangs_when_asked(struct fixture *f, const char *name, uint32_t cause)
{
	load_test_image(f, name);
	assert_int_equal(misc_read(f, MBOX_FW_VERSION), NEWER);
	misc_write(f, MBOX_TRIGGER, 1);
	boot_image_runs(f, cause);
	assert_int_equal(starts(f), 3);
}

static void hangs_in_a_loop(void **state)
{
	hangs_when_asked(*state, "doorbell", MBOX_FW_BOOT_WATCHDOG);
}

static void hangs_asleep(void **state)
{
	hangs_when_asked(*state, "asleep", MBOX_FW_BOOT_WATCHDOG);
}

static void executes_what_is_no_instruction(void **state)
{
	hangs_when_asked(*state, "fault", MBOX_FW_BOOT_FAULT);
}

/* What no watchdog sees: it does sleep, and answers nothing. The host can tell. */
static void is_deaf(void **state)
{
	struct fixture *f = *state;
	const uint64_t addr = V3_DEV_MISC_RAM;

	load_test_image(f, "deaf");
	send(f, 5, MBOX_CMD_READ_REGS, &addr, sizeof(addr), 0);
	wait_for(!f->dev->mailbox_triggered && !f->dev->mgmt->cause && !f->dev->busy);
	assert_int_equal(f->host[RESPONSE], 0);
	assert_int_equal(misc_read(f, MBOX_FW_VERSION), NEWER);
	misc_write(f, MBOX_FW_RESTART, MBOX_FW_RESTART_KEY);
	boot_image_runs(f, MBOX_FW_BOOT_HOST);
}

/* --- the core's view --------------------------------------------------------------- */

static void core_sees_registers_alone(void **state)
{
	struct fixture *f = *state;
	uint32_t v = 0;

	assert_true(nm_mgmt_load(f->dev, MGMT_REGS + MGMT_CHIP_ARCH, 4, &v));
	assert_int_equal(v, 3);
	assert_true(nm_mgmt_load(f->dev, MGMT_MISC + MBOX_SERIAL_LO, 4, &v));
	assert_int_equal(v, 0x55667788);
	assert_false(nm_mgmt_load(f->dev, MGMT_REGS + MGMT_CHIP_ARCH, 2, &v));
	assert_false(nm_mgmt_load(f->dev, MGMT_REGS + MGMT_BOOT_GO, 4, &v)); /* write-only */
	assert_false(nm_mgmt_store(f->dev, MGMT_REGS + MGMT_CHIP_ARCH, 4, 1)); /* read-only */
	assert_false(nm_mgmt_load(f->dev, MGMT_REGS + 0xffc, 4, &v));
	assert_false(nm_mgmt_load(f->dev, MGMT_MISC + 0xffc, 4, &v));
	assert_false(nm_mgmt_store(f->dev, MGMT_MISC + 0xffc, 4, 0));
	assert_false(nm_mgmt_load(f->dev, 0, 4, &v));
	assert_false(nm_mgmt_store(f->dev, MGMT_RAM + MGMT_RAM_BYTES, 4, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(says_what_it_is),
		TEST(every_chip_boots_its_image),
		TEST(counts_memory_errors),
		TEST(samples_sensors),
		TEST(is_deterministic),
		TEST(loads_a_newer_image),
		TEST(refuses_bad_images),
		TEST(refuses_bad_requests),
		TEST(hangs_as_it_starts),
		TEST(hangs_in_a_loop),
		TEST(hangs_asleep),
		TEST(executes_what_is_no_instruction),
		TEST(is_deaf),
		TEST(core_sees_registers_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
