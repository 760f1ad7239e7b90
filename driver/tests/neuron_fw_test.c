// SPDX-License-Identifier: GPL-2.0-only
/* The mailbox against a firmware of a few lines, which answers in the trigger's write. */

#include <linux/bitfield.h>

#include <kunit/static_stub.h>
#include <kunit/test.h>

#include "../neuron_drv.h"
#include "../neuron_fw.h"
#include "neuron_mailbox.h"

#define FW_DMA	0x12340000ull
#define FW_HOST 0x400000000000ull

struct fw_fixture {
	struct neuron_device *ndev;
	struct neuron_hal hal;
	u32 reg[0x1000 / 4];
	unsigned int requests;
	unsigned int deaf; /* requests to leave unanswered */
	unsigned int nonsense; /* requests to answer with an error that is none */
	unsigned int restarts;
	u8 error;
	bool crc_ok;
	bool addr_ok;
	bool stale; /* answer another sequence, in registers */
	unsigned int in_registers; /* requests that came that way */
};

/* The same for a request in registers. */
static void fw_answer_registers(struct fw_fixture *f)
{
	u32 *data = &f->reg[MBOX_DATA / 4];
	u32 header = f->reg[MBOX_REQUEST_HI / 4];
	u32 i, n = ((header >> 16) - 8) / 8;
	__le32 request[2 + MBOX_DATA_BYTES / 4] = { cpu_to_le32(header) };

	f->requests++;
	f->in_registers++;
	for (i = 0; i < 2 * n; i++)
		request[2 + i] = cpu_to_le32(data[i]);
	f->crc_ok = neuron_fw_crc(request, header >> 16) == f->reg[MBOX_REQUEST_LO / 4];
	if (f->deaf) {
		f->deaf--;
		return;
	}
	for (i = 0; i < n; i++)
		data[i] = data[2 * i] + 1;
	header = (header & 0xff) + f->stale;
	f->reg[MBOX_REQUEST_HI / 4] = header | f->error << 8 | (8 + 4 * n) << 16;
	f->reg[MBOX_ACK / 4] = 0;
	f->reg[MBOX_TRIGGER / 4] = 0;
}

static void fw_answer(struct fw_fixture *f)
{
	struct mbox_request *request = f->ndev->fw.buf;
	struct mbox_response *response = f->ndev->fw.buf + PAGE_SIZE;
	u16 i, n, size = le16_to_cpu(request->size);
	__le64 *addr = (__le64 *)(request + 1);
	__le32 *value = (__le32 *)(response + 1);
	u32 crc = le32_to_cpu(request->crc);
	u64 at = (u64)f->reg[MBOX_REQUEST_HI / 4] << 32 | f->reg[MBOX_REQUEST_LO / 4];

	f->requests++;
	f->addr_ok = at == (FW_HOST | FW_DMA);
	request->crc = 0;
	f->crc_ok = neuron_fw_crc(request, size) == crc;
	if (f->deaf) {
		f->deaf--;
		return;
	}
	n = (size - sizeof(*request)) / sizeof(*addr);
	for (i = 0; i < n; i++)
		value[i] = cpu_to_le32((u32)le64_to_cpu(addr[i]) + 1);
	response->error = f->nonsense ? 0xa5 : f->error;
	f->nonsense -= !!f->nonsense;
	response->size = cpu_to_le16(sizeof(*response) + n * sizeof(*value));
	response->sequence = request->sequence;
}

static void fw_write(const struct neuron_regs *regs, u32 offset, u32 value)
{
	struct fw_fixture *f = kunit_get_current_test()->priv;

	f->reg[offset / 4] = value;
	if (offset == MBOX_TRIGGER && f->reg[MBOX_RESET / 4])
		f->reg[MBOX_RESET / 4] = 0;
	else if (offset == MBOX_TRIGGER && f->reg[MBOX_ACK / 4])
		fw_answer_registers(f);
	else if (offset == MBOX_TRIGGER)
		fw_answer(f);
	else if (offset == MBOX_FW_RESTART && value == MBOX_FW_RESTART_KEY)
		f->reg[MBOX_FW_BOOT / 4] = FIELD_PREP(MBOX_FW_BOOT_COUNT, ++f->restarts) |
					   MBOX_FW_BOOT_HOST;
}

static u32 fw_read(const struct neuron_regs *regs, u32 offset)
{
	struct fw_fixture *f = kunit_get_current_test()->priv;

	return f->reg[offset / 4];
}

static int fw_init(struct kunit *test)
{
	struct fw_fixture *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);
	struct neuron_device *ndev = kunit_kzalloc(test, sizeof(*ndev), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, f);
	KUNIT_ASSERT_NOT_NULL(test, ndev);
	test->priv = f;
	f->ndev = ndev;
	f->hal.host_base = FW_HOST;
	ndev->hal = &f->hal;
	mutex_init(&ndev->fw.lock);
	ndev->fw.timeout_ms = 5;
	ndev->fw.buf = kunit_kzalloc(test, 2 * PAGE_SIZE, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ndev->fw.buf);
	ndev->fw.dma = FW_DMA;
	kunit_activate_static_stub(test, neuron_reg_write, fw_write);
	kunit_activate_static_stub(test, neuron_reg_read, fw_read);
	return 0;
}

static void neuron_fw_checksum_is_crc32c(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, neuron_fw_crc("123456789", 9), 0xe3069283);
}

static void neuron_fw_reads_registers(struct kunit *test)
{
	const u64 addr[] = { 0x8006c84000ull, 0x8006c84038ull, 7 };
	struct fw_fixture *f = test->priv;
	u32 value[3] = {};

	KUNIT_EXPECT_EQ(test, neuron_fw_read_regs(f->ndev, addr, value, 3), 0);
	KUNIT_EXPECT_EQ(test, value[0], 0x06c84001);
	KUNIT_EXPECT_EQ(test, value[1], 0x06c84039);
	KUNIT_EXPECT_EQ(test, value[2], 8);
	KUNIT_EXPECT_TRUE(test, f->crc_ok);
	KUNIT_EXPECT_TRUE(test, f->addr_ok);
}

static void neuron_fw_asks_in_registers(struct kunit *test)
{
	struct fw_fixture *f = test->priv;
	u64 addr[16];
	u32 value[16] = {};
	unsigned int i;

	for (i = 0; i < 16; i++)
		addr[i] = 0x8006c84000ull + 4 * i;
	f->hal.registers_api = 6;
	f->reg[MBOX_API_VERSION / 4] = 6;
	KUNIT_EXPECT_EQ(test, neuron_fw_read_regs(f->ndev, addr, value, 16), 0);
	for (i = 0; i < 16; i++)
		KUNIT_EXPECT_EQ(test, value[i], 0x06c84001 + 4 * i);
	KUNIT_EXPECT_EQ(test, f->in_registers, 1);
	KUNIT_EXPECT_TRUE(test, f->crc_ok);

	f->deaf = 2;
	KUNIT_EXPECT_EQ(test, neuron_fw_read_regs(f->ndev, addr, value, 1), 0);
	KUNIT_EXPECT_EQ(test, f->in_registers, 4);
	f->stale = true;
	KUNIT_EXPECT_EQ(test, neuron_fw_read_regs(f->ndev, addr, value, 1), -EBADMSG);
	KUNIT_EXPECT_EQ(test, f->in_registers, 4 + 15);
	f->stale = false;
	f->error = MBOX_UNKNOWN_COMMAND;
	KUNIT_EXPECT_EQ(test, neuron_fw_read_regs(f->ndev, addr, value, 1), -EIO);
	KUNIT_EXPECT_EQ(test, f->requests, f->in_registers);
}

/* Firmware that is older, not ready, or gone. */
static void neuron_fw_asks_in_memory(struct kunit *test)
{
	static const u32 versions[] = { 0, 5, MBOX_NOT_READY, U32_MAX };
	struct fw_fixture *f = test->priv;
	unsigned int i;
	u64 addr = 1;
	u32 value;

	f->hal.registers_api = 6;
	for (i = 0; i < ARRAY_SIZE(versions); i++) {
		f->reg[MBOX_API_VERSION / 4] = versions[i];
		KUNIT_EXPECT_EQ(test, neuron_fw_read_regs(f->ndev, &addr, &value, 1), 0);
	}
	f->hal.registers_api = 0;
	f->reg[MBOX_API_VERSION / 4] = 9;
	KUNIT_EXPECT_EQ(test, neuron_fw_read_regs(f->ndev, &addr, &value, 1), 0);
	KUNIT_EXPECT_EQ(test, f->in_registers, 0);
	KUNIT_EXPECT_EQ(test, f->requests, ARRAY_SIZE(versions) + 1);
}

static void neuron_fw_sequence_skips_zero(struct kunit *test)
{
	struct fw_fixture *f = test->priv;
	u64 addr = 1;
	u32 value;

	f->ndev->fw.sequence = U8_MAX;
	KUNIT_EXPECT_EQ(test, neuron_fw_read_regs(f->ndev, &addr, &value, 1), 0);
	KUNIT_EXPECT_EQ(test, f->ndev->fw.sequence, 1);
}

static void neuron_fw_asks_again(struct kunit *test)
{
	struct fw_fixture *f = test->priv;
	u64 addr = 1;
	u32 value = 0;

	f->deaf = 1;
	KUNIT_EXPECT_EQ(test, neuron_fw_read_regs(f->ndev, &addr, &value, 1), 0);
	KUNIT_EXPECT_EQ(test, f->requests, 2);
	KUNIT_EXPECT_EQ(test, value, 2);
}

static void neuron_fw_does_not_believe_nonsense(struct kunit *test)
{
	struct fw_fixture *f = test->priv;
	u64 addr = 1;
	u32 value = 0;

	f->nonsense = 2;
	KUNIT_EXPECT_EQ(test, neuron_fw_read_regs(f->ndev, &addr, &value, 1), 0);
	KUNIT_EXPECT_EQ(test, f->requests, 3);
	KUNIT_EXPECT_EQ(test, value, 2);

	f->nonsense = UINT_MAX;
	KUNIT_EXPECT_EQ(test, neuron_fw_read_regs(f->ndev, &addr, &value, 1), -EBADMSG);
	KUNIT_EXPECT_EQ(test, f->requests, 3 + 15);
}

/* Where the device can, firmware that is mute is started anew, and then asked again. */
static void neuron_fw_starts_the_mute_anew(struct kunit *test)
{
	struct fw_fixture *f = test->priv;
	u64 addr = 1;
	u32 value = 0;

	f->reg[MBOX_FW_INTERFACE / 4] = MBOX_FW_INTERFACE_V1;
	f->reg[MBOX_FW_VERSION / 4] = FWI_VERSION(1, 0, 0);
	f->deaf = MBOX_TRIES;
	KUNIT_EXPECT_EQ(test, neuron_fw_read_regs(f->ndev, &addr, &value, 1), 0);
	KUNIT_EXPECT_EQ(test, f->restarts, 1);
	KUNIT_EXPECT_EQ(test, f->requests, 15 + 1);
	KUNIT_EXPECT_EQ(test, value, 2);

	f->nonsense = 2 * MBOX_TRIES;
	KUNIT_EXPECT_EQ(test, neuron_fw_read_regs(f->ndev, &addr, &value, 1), -EBADMSG);
	KUNIT_EXPECT_EQ(test, f->restarts, 2);
	KUNIT_EXPECT_EQ(test, f->requests, 15 + 1 + 30);
}

static void neuron_fw_gives_up(struct kunit *test)
{
	struct fw_fixture *f = test->priv;
	u64 addr = 1;
	u32 value;

	f->deaf = MBOX_TRIES;
	KUNIT_EXPECT_EQ(test, neuron_fw_read_regs(f->ndev, &addr, &value, 1), -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, f->requests, 15);
	KUNIT_EXPECT_EQ(test, neuron_fw_read_regs(f->ndev, &addr, &value, 1), 0);
}

static void neuron_fw_does_not_wait_for_the_dead(struct kunit *test)
{
	struct fw_fixture *f = test->priv;
	u64 addr = 1;
	u32 value;

	f->deaf = MBOX_TRIES;
	f->reg[MBOX_STATUS / 4] = U32_MAX;
	KUNIT_EXPECT_EQ(test, neuron_fw_read_regs(f->ndev, &addr, &value, 1), -ENODEV);
	KUNIT_EXPECT_EQ(test, f->requests, 1);
}

static void neuron_fw_reports_refusal(struct kunit *test)
{
	struct fw_fixture *f = test->priv;
	u64 addr = 1;
	u32 value;

	f->error = MBOX_FAILED;
	KUNIT_EXPECT_EQ(test, neuron_fw_read_regs(f->ndev, &addr, &value, 1), -EIO);
	KUNIT_EXPECT_EQ(test, f->requests, 1);
}

static void neuron_fw_bounds_requests(struct kunit *test)
{
	struct fw_fixture *f = test->priv;

	KUNIT_EXPECT_EQ(test, neuron_fw_read_regs(f->ndev, NULL, NULL, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, neuron_fw_read_regs(f->ndev, NULL, NULL, 1000), -EINVAL);
	KUNIT_EXPECT_EQ(test, f->requests, 0);
}

static void neuron_fw_resets_cores(struct kunit *test)
{
	struct fw_fixture *f = test->priv;

	KUNIT_EXPECT_EQ(test, neuron_fw_reset(f->ndev, MBOX_RESET_CORES, 0x0101), 0);
	KUNIT_EXPECT_EQ(test, f->reg[MBOX_RESET_MAP / 4], 0x0101);
	KUNIT_EXPECT_EQ(test, f->requests, 0);
}

static struct kunit_case neuron_fw_cases[] = { KUNIT_CASE(neuron_fw_checksum_is_crc32c),
					       KUNIT_CASE(neuron_fw_reads_registers),
					       KUNIT_CASE(neuron_fw_asks_in_registers),
					       KUNIT_CASE(neuron_fw_asks_in_memory),
					       KUNIT_CASE(neuron_fw_sequence_skips_zero),
					       KUNIT_CASE(neuron_fw_asks_again),
					       KUNIT_CASE(neuron_fw_does_not_believe_nonsense),
					       KUNIT_CASE(neuron_fw_starts_the_mute_anew),
					       KUNIT_CASE(neuron_fw_reports_refusal),
					       KUNIT_CASE(neuron_fw_bounds_requests),
					       KUNIT_CASE(neuron_fw_gives_up),
					       KUNIT_CASE(neuron_fw_does_not_wait_for_the_dead),
					       KUNIT_CASE(neuron_fw_resets_cores),
					       {} };

static struct kunit_suite neuron_fw_suite = {
	.name = "neuron_fw",
	.init = fw_init,
	.test_cases = neuron_fw_cases,
};

kunit_test_suite(neuron_fw_suite);
