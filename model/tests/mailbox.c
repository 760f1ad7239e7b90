// SPDX-License-Identifier: Apache-2.0
/* MISC RAM, mailbox requests, both reset handshakes, notification queues. */
#include "device.h"
#include "fixture.h"
#include "mbox.h"

static void identity(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(misc_read(f, MBOX_DEVICE_ID), 7);
	assert_int_equal(misc_read(f, MBOX_SERIAL_LO), 0x55667788);
	assert_int_equal(misc_read(f, MBOX_SERIAL_HI), 0x11223344);
	assert_uint_in_range(misc_read(f, MBOX_API_VERSION), 1, 5);
	assert_int_equal(misc_read(f, MBOX_STATUS), 0);
	for (unsigned int n = 0; n < 4; n++)
		assert_int_equal(misc_read(f, MBOX_ECC_HBM(n)), 0);
	misc_write(f, MBOX_DEVICE_ID, 11);
	assert_int_equal(misc_read(f, MBOX_DEVICE_ID), 11);
	misc_write(f, MBOX_METRICS + 124, 5);
	assert_int_equal(misc_read(f, MBOX_METRICS + 124), 5);
	assert_int_equal(f->messages, 0);
}

static void registers_are_read_by_request(void **state)
{
	struct fixture *f = *state;
	const uint64_t addrs[] = { V3_DEV_MISC_RAM + MBOX_SERIAL_LO,
				   V3_DEV_MISC_RAM + MBOX_DEVICE_ID,
				   V3_DEV_APB_IO_1 + V3_IO_USER + UDMA_M2S_DMA_VERSION };
	const struct mbox_response *r;
	uint32_t values[3];

	for (unsigned int sequence = 1; sequence < 256; sequence++) {
		send(f, (uint8_t)sequence, MBOX_CMD_READ_REGS, addrs, sizeof(addrs), 0);
		r = response(f, (uint8_t)sequence);
		assert_int_equal(r->error, MBOX_OK);
		assert_int_equal(r->size, sizeof(*r) + sizeof(values));
		memcpy(values, r + 1, sizeof(values));
		assert_int_equal(values[0], 0x55667788);
		assert_int_equal(values[1], 7);
		assert_int_equal(values[2], 4);
	}
	assert_int_equal(f->messages, 0);
}

static void errors_are_the_public_ones(void **state)
{
	struct fixture *f = *state;
	const uint64_t nowhere = V3_DEV_HBM(0);
	uint8_t metrics[MBOX_METRICS_BYTES + 1] = { 0 };
	uint8_t many[8 * (MBOX_READ_REGS_MAX + 1)] = { 0 };

	send(f, 1, 77, NULL, 0, 0);
	assert_int_equal(response(f, 1)->error, MBOX_UNKNOWN_COMMAND);
	send(f, 2, MBOX_CMD_READ_REGS, &nowhere, 8, 0);
	assert_int_equal(response(f, 2)->error, MBOX_FAILED);
	send(f, 3, MBOX_CMD_READ_REGS, &nowhere, 5, 0);
	assert_int_equal(response(f, 3)->error, MBOX_FAILED);
	send(f, 4, MBOX_CMD_READ_REGS, many, sizeof(many), 0);
	assert_int_equal(response(f, 4)->error, MBOX_FAILED);
	send(f, 5, MBOX_CMD_POST_METRICS, metrics, sizeof(metrics), 0);
	assert_int_equal(response(f, 5)->error, MBOX_FAILED);
	send(f, 6, MBOX_CMD_POST_METRICS, metrics, sizeof(metrics) - 1, 0);
	assert_int_equal(response(f, 6)->error, MBOX_OK);
	assert_int_equal(response(f, 6)->size, sizeof(struct mbox_response));
}

static void damaged_requests_get_no_answer(void **state)
{
	struct fixture *f = *state;
	const uint64_t addr = V3_DEV_MISC_RAM;
	struct mbox_request *req = (struct mbox_request *)(f->host + REQUEST);

	send(f, 9, MBOX_CMD_READ_REGS, &addr, 8, 0x10); /* CRC */
	wait_for(f->messages == 1);
	assert_non_null(strstr(f->last, "CRC"));
	send(f, 0, MBOX_CMD_READ_REGS, &addr, 8, 0); /* sequence */
	wait_for(f->messages == 2);
	req->size = 7; /* shorter than its header */
	misc_write(f, MBOX_TRIGGER, 1);
	wait_for(nm_guest_errors(f->dev) == 3);
	misc_write(f, MBOX_REQUEST_HI, 0xffff);
	misc_write(f, MBOX_TRIGGER, 1);
	wait_for(f->messages == 3);
	assert_int_equal(f->host[RESPONSE], 0);
	send(f, 10, MBOX_CMD_READ_REGS, &addr, 8, 0); /* and then a good one */
	assert_int_equal(response(f, 10)->error, MBOX_OK);
}

/* By mailbox, until the device is ready again. */
static void reset(struct fixture *f, uint32_t type)
{
	misc_write(f, MBOX_RESET, type);
	misc_write(f, MBOX_TRIGGER, 1);
	wait_for(misc_read(f, MBOX_RESET) == 0);
	wait_for(!(misc_read(f, MBOX_STATUS) & MBOX_STATUS_NOT_READY));
}

static void device_reset_by_mailbox(void **state)
{
	struct fixture *f = *state;

	misc_write(f, MBOX_RUNTIME_0, 3);
	/* An election's result is there for the next driver. */
	for (uint32_t reg = MBOX_LEFT_SERIAL_HI; reg <= MBOX_POD_SERIAL_LO; reg += 4)
		misc_write(f, reg, 0x04020303 + reg);
	apb_write(f, V3_APB_UDMA(128) + UDMA_CHANGE_STATE, UDMA_CHANGE_NORMAL);
	nm_bar_write(f->dev, EXI_BAR, EXI_UDMA_ROUTE(1, 1), 4, EXI_VECTOR_ENABLE);
	reset(f, MBOX_RESET_DEVICE);
	assert_int_equal(apb_read(f, V3_APB_UDMA(128) + UDMA_STATE), 0);
	assert_int_equal(nm_bar_read(f->dev, EXI_BAR, EXI_UDMA_ROUTE(1, 1), 4), 0);
	assert_int_equal(misc_read(f, MBOX_RUNTIME_0), 3);
	for (uint32_t reg = MBOX_LEFT_SERIAL_HI; reg <= MBOX_POD_SERIAL_LO; reg += 4)
		assert_int_equal(misc_read(f, reg), 0x04020303 + reg);
	assert_int_equal(f->messages, 0);
}

static void core_reset_leaves_the_others(void **state)
{
	struct fixture *f = *state;

	for (unsigned int e = 0; e < 32; e += 16)
		apb_write(f, V3_APB_UDMA(e) + UDMA_CHANGE_STATE, UDMA_CHANGE_NORMAL);
	apb_write(f, V3_APB_UDMA(128) + UDMA_CHANGE_STATE, UDMA_CHANGE_NORMAL);
	apb_write(f, V3_APB_CORE_NOTIFY(1) + NQ_BASE_LO, 64);
	misc_write(f, MBOX_RESET_MAP, 0x020202);
	reset(f, MBOX_RESET_CORES);
	assert_int_equal(apb_read(f, V3_APB_UDMA(0) + UDMA_STATE), 0x1111);
	assert_int_equal(apb_read(f, V3_APB_UDMA(16) + UDMA_STATE), 0);
	assert_int_equal(apb_read(f, V3_APB_UDMA(128) + UDMA_STATE), 0x1111);
	assert_int_equal(apb_read(f, V3_APB_CORE_NOTIFY(1) + NQ_BASE_LO), 0);
	/* With the engine of its SEng that copies for the host, as newer drivers may ask. */
	apb_write(f, V3_APB_UDMA(129) + UDMA_CHANGE_STATE, UDMA_CHANGE_NORMAL);
	misc_write(f, MBOX_RESET_MAP_HI, 1);
	reset(f, MBOX_RESET_CORES);
	assert_int_equal(apb_read(f, V3_APB_UDMA(128) + UDMA_STATE), 0);
	assert_int_equal(apb_read(f, V3_APB_UDMA(129) + UDMA_STATE), 0x1111);
	misc_write(f, MBOX_RESET, 9);
	misc_write(f, MBOX_TRIGGER, 1);
	wait_for(f->messages == 1);
	assert_non_null(strstr(f->last, "reset type 9"));
}

static void reset_register_of_revision_255(void **state)
{
	struct fixture *f = *state;

	apb_write(f, V3_APB_UDMA(0) + UDMA_CHANGE_STATE, UDMA_CHANGE_NORMAL);
	apb_write(f, V3_APB_UDMA(16) + UDMA_CHANGE_STATE, UDMA_CHANGE_NORMAL);
	apb_write(f, V3_APB_QEMU_RESET, 0x010101);
	wait_for(apb_read(f, V3_APB_QEMU_RESET) == 0);
	assert_int_equal(apb_read(f, V3_APB_UDMA(0) + UDMA_STATE), 0);
	assert_int_equal(apb_read(f, V3_APB_UDMA(16) + UDMA_STATE), 0x1111);
	apb_write(f, V3_APB_QEMU_RESET, 0); /* all of it */
	wait_for(apb_read(f, V3_APB_QEMU_RESET) == 0);
	assert_int_equal(apb_read(f, V3_APB_UDMA(16) + UDMA_STATE), 0);
}

static void notifications_go_round(void **state)
{
	struct fixture *f = *state;
	const uint64_t regs = V3_APB_CORE_NOTIFY(1) + NQ_INDEX(NQ_ERROR, 3) * NQ_STRIDE;
	const struct nq_entry *ring = (const struct nq_entry *)(f->host + NQ_AT);
	struct nq_entry e = { .type = NQ_ERROR, .engine = 3, .status = 7 };

	nm_notify_post(f->dev, 1, 3, &e); /* not set up: dropped */
	apb_write(f, regs + NQ_BASE_LO, (uint32_t)host_addr(NQ_AT));
	apb_write(f, regs + NQ_BASE_HI, (uint32_t)(host_addr(NQ_AT) >> 32));
	apb_write(f, regs + NQ_SIZE, 4 * sizeof(e));
	for (uint32_t i = 0; i < 6; i++) {
		e.seqno = i;
		nm_notify_post(f->dev, 1, 3, &e);
	}
	assert_int_equal(ring[2].seqno, 2);
	assert_int_equal(ring[2].phase, 1);
	assert_int_equal(ring[1].seqno, 5);
	assert_int_equal(ring[1].phase, 0);
	assert_int_equal(ring[1].status, 7);
	assert_int_equal(f->messages, 0);

	apb_write(f, regs + NQ_SIZE, 100);
	assert_int_equal(f->messages, 1);
	assert_int_equal(apb_read(f, regs + NQ_SIZE), 0);
	apb_write(f, regs + NQ_BASE_HI, 0xffff);
	apb_write(f, regs + NQ_SIZE, 64);
	nm_notify_post(f->dev, 1, 3, &e);
	assert_int_equal(f->messages, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(identity),
		TEST(registers_are_read_by_request),
		TEST(errors_are_the_public_ones),
		TEST(damaged_requests_get_no_answer),
		TEST(device_reset_by_mailbox),
		TEST(core_reset_leaves_the_others),
		TEST(reset_register_of_revision_255),
		TEST(notifications_go_round),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
