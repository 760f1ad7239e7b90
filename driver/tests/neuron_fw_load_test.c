// SPDX-License-Identifier: GPL-2.0-only
/* Firmware images: which are accepted, and what is done with a device that has got one. */

#include <kunit/device.h>
#include <kunit/static_stub.h>
#include <kunit/test.h>
#include <linux/firmware.h>

#include "../neuron_drv.h"
#include "../neuron_fw.h"
#include "../neuron_fw_load.h"
#include "neuron_fail.h"
#include "neuron_mailbox.h"
#include "neuron_pci.h"

#define IMAGE_WORDS 8
#define IMAGE_BYTES (sizeof(struct fw_image) + IMAGE_WORDS * 4)

struct image {
	struct fw_image header;
	__le32 code[IMAGE_WORDS];
};

/* A good one, before and after somebody changes it. */
static void image_init(struct image *image)
{
	memset(image, 0, sizeof(*image));
	image->header.magic = cpu_to_le32(FWI_MAGIC);
	image->header.format = cpu_to_le32(FWI_FORMAT);
	image->header.version = cpu_to_le32(FWI_VERSION(1, 2, 3));
	image->header.arch = cpu_to_le32(NEURON_ARCH_V3);
	image->header.load = cpu_to_le32(MGMT_RAM);
	image->header.entry = cpu_to_le32(MGMT_RAM + 4);
	image->header.bytes = cpu_to_le32(IMAGE_WORDS * 4);
	image->header.memory = cpu_to_le32(0x1000);
	image->code[5] = cpu_to_le32(0x12345678);
}

static void image_seal(struct image *image)
{
	image->header.crc = 0;
	image->header.crc = cpu_to_le32(neuron_fw_crc(image, sizeof(*image)));
}

static void change_nothing(struct image *image)
{
}

static void change_magic(struct image *image)
{
	image->header.magic = cpu_to_le32(FWI_MAGIC + 1);
}

static void change_format(struct image *image)
{
	image->header.format = cpu_to_le32(FWI_FORMAT + 1);
}

static void change_length(struct image *image)
{
	image->header.bytes = cpu_to_le32(IMAGE_WORDS * 4 + 4);
}

static void change_arch(struct image *image)
{
	image->header.arch = cpu_to_le32(NEURON_ARCH_V2);
}

static void change_reserved(struct image *image)
{
	image->header.reserved[6] = cpu_to_le32(1);
}

static void change_load_below(struct image *image)
{
	image->header.load = cpu_to_le32(MGMT_RAM - 4);
}

static void change_load_above(struct image *image)
{
	image->header.load = cpu_to_le32(MGMT_RAM + MGMT_IMAGE_MAX);
}

static void change_memory_small(struct image *image)
{
	image->header.memory = cpu_to_le32(IMAGE_WORDS * 4 - 1);
}

static void change_memory_large(struct image *image)
{
	image->header.memory = cpu_to_le32(MGMT_IMAGE_MAX + 1);
}

static void change_memory_wraps(struct image *image)
{
	image->header.memory = cpu_to_le32(U32_MAX);
}

static void change_entry(struct image *image)
{
	image->header.entry = cpu_to_le32(MGMT_RAM + IMAGE_WORDS * 4);
}

static void change_entry_odd(struct image *image)
{
	image->header.entry = cpu_to_le32(MGMT_RAM + 1);
}

static const struct image_case {
	const char *name;
	void (*change)(struct image *image);
	enum fwi_verdict want;
} image_cases[] = {
	{ "well formed", change_nothing, FWI_OK },
	{ "other magic", change_magic, FWI_BAD_MAGIC },
	{ "unknown format", change_format, FWI_BAD_FORMAT },
	{ "length of another image", change_length, FWI_BAD_LENGTH },
	{ "for another chip", change_arch, FWI_BAD_ARCH },
	{ "reserved field set", change_reserved, FWI_BAD_RESERVED },
	{ "loads below the memory", change_load_below, FWI_BAD_ADDRESS },
	{ "loads above the memory", change_load_above, FWI_BAD_ADDRESS },
	{ "needs less memory than it has", change_memory_small, FWI_BAD_ADDRESS },
	{ "needs more memory than there is", change_memory_large, FWI_BAD_ADDRESS },
	{ "memory wraps", change_memory_wraps, FWI_BAD_ADDRESS },
	{ "entry behind the end", change_entry, FWI_BAD_ADDRESS },
	{ "odd entry", change_entry_odd, FWI_BAD_ADDRESS },
};

static void image_case_name(const struct image_case *c, char *name)
{
	strscpy(name, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(image, image_cases, image_case_name);

static void neuron_fw_load_checks_fields(struct kunit *test)
{
	const struct image_case *c = test->param_value;
	struct image *image = kunit_kzalloc(test, sizeof(*image), GFP_KERNEL);
	struct fwi_finding f;

	KUNIT_ASSERT_NOT_NULL(test, image);
	image_init(image);
	c->change(image);
	image_seal(image);
	KUNIT_EXPECT_EQ(test, neuron_fw_check_image(image, sizeof(*image), NEURON_ARCH_V3, &f),
			c->want);
	if (c->want != FWI_OK)
		KUNIT_EXPECT_NE(test, f.value, f.want);
	KUNIT_EXPECT_NOT_NULL(test, fwi_verdict_text(c->want));
}

/* Each bit of the whole image is covered by the checksum, or by a check before it. */
static void neuron_fw_load_sees_damage(struct kunit *test)
{
	struct image *image = kunit_kzalloc(test, sizeof(*image), GFP_KERNEL);
	struct fwi_finding f;
	unsigned int bit;

	KUNIT_ASSERT_NOT_NULL(test, image);
	image_init(image);
	image_seal(image);
	for (bit = 0; bit < sizeof(*image) * 8; bit++) {
		((u8 *)image)[bit / 8] ^= 1 << bit % 8;
		KUNIT_EXPECT_NE(test,
				neuron_fw_check_image(image, sizeof(*image), NEURON_ARCH_V3, &f),
				FWI_OK);
		((u8 *)image)[bit / 8] ^= 1 << bit % 8;
	}
	KUNIT_EXPECT_EQ(test, neuron_fw_check_image(image, sizeof(*image), NEURON_ARCH_V3, &f),
			FWI_OK);
}

/* Sizes that no header is read of: under KASAN, of an allocation that is no larger. */
static void neuron_fw_load_checks_the_size(struct kunit *test)
{
	static const size_t sizes[] = { 0, 1, 63, 64, 67 };
	struct fwi_finding f;
	unsigned int i;
	void *data;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		data = kunit_kzalloc(test, sizes[i] ?: 1, GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, data);
		KUNIT_EXPECT_EQ(test, neuron_fw_check_image(data, sizes[i], NEURON_ARCH_V3, &f),
				FWI_BAD_SIZE);
	}
	data = kunit_kzalloc(test, IMAGE_BYTES, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, data);
	KUNIT_EXPECT_EQ(test, neuron_fw_check_image(data, FWI_BYTES_MAX + 1, NEURON_ARCH_V3, &f),
			FWI_BAD_SIZE);
}

/* --- a device that has one ------------------------------------------------------ */

struct load_fixture {
	struct neuron_device *ndev;
	u32 reg[0x1000 / 4];
	bool stuck; /* the restart does nothing */
};

static u32 load_read(const struct neuron_regs *regs, u32 offset)
{
	struct load_fixture *f = kunit_get_current_test()->priv;

	return f->reg[offset / 4];
}

static void load_write(const struct neuron_regs *regs, u32 offset, u32 value)
{
	struct load_fixture *f = kunit_get_current_test()->priv;

	KUNIT_EXPECT_EQ(kunit_get_current_test(), offset, MBOX_FW_RESTART);
	KUNIT_EXPECT_EQ(kunit_get_current_test(), value, MBOX_FW_RESTART_KEY);
	if (f->stuck) {
		f->reg[MBOX_STATUS / 4] = U32_MAX;
		return;
	}
	f->reg[MBOX_FW_VERSION / 4] = FWI_VERSION(1, 0, 0);
	f->reg[MBOX_FW_BOOT / 4] = 3 << 16 | MBOX_FW_BOOT_HOST;
}

static int load_init(struct kunit *test)
{
	struct load_fixture *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, f);
	f->ndev = kunit_kzalloc(test, sizeof(*f->ndev), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, f->ndev);
	mutex_init(&f->ndev->fw.lock);
	f->reg[MBOX_FW_INTERFACE / 4] = MBOX_FW_INTERFACE_V1;
	f->reg[MBOX_FW_VERSION / 4] = FWI_VERSION(1, 1, 0);
	f->reg[MBOX_FW_BOOT / 4] = 2 << 16 | MBOX_FW_BOOT_LOADED_IMAGE | MBOX_FW_BOOT_LOADED;
	test->priv = f;
	kunit_activate_static_stub(test, neuron_reg_write, load_write);
	kunit_activate_static_stub(test, neuron_reg_read, load_read);
	return 0;
}

static void neuron_fw_load_reads_the_state(struct kunit *test)
{
	struct load_fixture *f = test->priv;
	struct neuron_fw_state state;

	neuron_fw_read_state(f->ndev, &state);
	KUNIT_EXPECT_EQ(test, state.version, 0x01010000);
	KUNIT_EXPECT_EQ(test, state.starts, 2);
	KUNIT_EXPECT_EQ(test, state.cause, MBOX_FW_BOOT_LOADED);
	KUNIT_EXPECT_TRUE(test, state.loaded);
	f->reg[MBOX_FW_INTERFACE / 4] = U32_MAX; /* as registers that are not there */
	neuron_fw_read_state(f->ndev, &state);
	KUNIT_EXPECT_EQ(test, state.version, 0);
	KUNIT_EXPECT_FALSE(test, state.loaded);
}

static void neuron_fw_load_restarts(struct kunit *test)
{
	struct load_fixture *f = test->priv;

	scoped_guard(mutex, &f->ndev->fw.lock)
		KUNIT_EXPECT_EQ(test, neuron_fw_restart(f->ndev), 0);
	KUNIT_EXPECT_EQ(test, f->ndev->fw.state.version, FWI_VERSION(1, 0, 0));
	KUNIT_EXPECT_FALSE(test, f->ndev->fw.state.loaded);
}

static void neuron_fw_load_restarts_nothing_else(struct kunit *test)
{
	struct load_fixture *f = test->priv;

	f->reg[MBOX_FW_INTERFACE / 4] = 0;
	scoped_guard(mutex, &f->ndev->fw.lock)
		KUNIT_EXPECT_EQ(test, neuron_fw_restart(f->ndev), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, f->reg[MBOX_FW_VERSION / 4], FWI_VERSION(1, 1, 0));
}

static void neuron_fw_load_loses_the_device(struct kunit *test)
{
	struct load_fixture *f = test->priv;

	f->stuck = true;
	scoped_guard(mutex, &f->ndev->fw.lock)
		KUNIT_EXPECT_EQ(test, neuron_fw_restart(f->ndev), -ENODEV);
}

static void neuron_fw_load_notices_starts(struct kunit *test)
{
	struct load_fixture *f = test->priv;

	neuron_fw_read_state(f->ndev, &f->ndev->fw.state);
	f->reg[MBOX_FW_BOOT / 4] = 3 << 16 | MBOX_FW_BOOT_WATCHDOG;
	scoped_guard(mutex, &f->ndev->fw.lock)
		neuron_fw_watch(f->ndev);
	KUNIT_EXPECT_EQ(test, f->ndev->fw.state.starts, 3);
	KUNIT_EXPECT_EQ(test, f->ndev->fw.state.cause, MBOX_FW_BOOT_WATCHDOG);
}

struct keep {
	struct load_fixture *f;
	struct firmware file;
};

/* What it takes goes with the device; here with the call. */
static int keep_image(struct kunit *test, void *arg)
{
	struct neuron_device *ndev = ((struct keep *)arg)->f->ndev;
	void *group = devres_open_group(ndev->drm.dev, NULL, GFP_KERNEL);
	int ret;

	if (!group)
		return -ENOMEM;
	ret = neuron_fw_keep(ndev, "image", &((struct keep *)arg)->file);
	KUNIT_EXPECT_EQ(test, !ret, !!ndev->fw.image);
	if (!ret)
		KUNIT_EXPECT_STREQ(test, ndev->fw.image_text, "1.2.3");
	ndev->fw.image = NULL;
	devres_release_group(ndev->drm.dev, group);
	return ret;
}

static void neuron_fw_load_keeps_no_image_without_memory(struct kunit *test)
{
	static const struct neuron_fail_op op = { .call = keep_image };
	const struct neuron_hal hal = { .arch = NEURON_ARCH_V3 };
	struct keep keep = { .f = test->priv };
	struct image *image = kunit_kzalloc(test, sizeof(*image), GFP_KERNEL);
	struct device *dev = kunit_device_register(test, "neuron-fw");

	KUNIT_ASSERT_NOT_NULL(test, image);
	KUNIT_ASSERT_FALSE(test, IS_ERR(dev));
	image_init(image);
	image_seal(image);
	keep.f->ndev->drm.dev = dev;
	keep.f->ndev->hal = &hal;
	keep.file.data = (void *)image;
	keep.file.size = sizeof(*image);
	neuron_fail_init(test);
	neuron_fail_each(test, &op, &keep);
}

static struct kunit_case neuron_fw_load_cases[] = {
	KUNIT_CASE_PARAM(neuron_fw_load_checks_fields, image_gen_params),
	KUNIT_CASE(neuron_fw_load_sees_damage),
	KUNIT_CASE(neuron_fw_load_checks_the_size),
	KUNIT_CASE(neuron_fw_load_reads_the_state),
	KUNIT_CASE(neuron_fw_load_restarts),
	KUNIT_CASE(neuron_fw_load_restarts_nothing_else),
	KUNIT_CASE(neuron_fw_load_loses_the_device),
	KUNIT_CASE(neuron_fw_load_notices_starts),
	KUNIT_CASE(neuron_fw_load_keeps_no_image_without_memory),
	{}
};

static struct kunit_suite neuron_fw_load_suite = {
	.name = "neuron_fw_load",
	.init = load_init,
	.test_cases = neuron_fw_load_cases,
};

kunit_test_suite(neuron_fw_load_suite);
