// SPDX-License-Identifier: Apache-2.0
/* Several devices: who is next to whom, transfers through neighbour windows, devices that come and go. */
#include "fixture.h"
#include "neuron_mailbox.h"
#include "neuron_topology.h"
#include "neuron_udma.h"

#define DEVICES 16u
#define RING	32u

struct server {
	struct nm_server *server;
	struct nm_device *dev[DEVICES];
	unsigned int n;
	uint8_t *host;
};

static struct nm_device *power_on(struct server *s, unsigned int number)
{
	const struct nm_config config = { .server = s->server,
					  .number = number,
					  .cores = 2,
					  .hbm_bytes = HBM_STACK,
					  .log_level = NM_LOG_ERROR };
	struct nm_device *dev;

	assert_int_equal(nm_device_create(&config, &dev), 0);
	assert_int_equal(
		nm_dma_map(dev, HOST_IOVA, HOST_BYTES, s->host, NM_DMA_READ | NM_DMA_WRITE), 0);
	nm_enable(dev);
	s->dev[number] = dev;
	return dev;
}

static void build(struct server *s, const char *chip, unsigned int n)
{
	s->host = aligned_alloc(4096, HOST_BYTES);
	memset(s->host, 0, HOST_BYTES);
	s->n = n;
	s->server = nm_server_create(chip, n, 0);
	assert_non_null(s->server);
	for (unsigned int i = 0; i < n; i++)
		power_on(s, i);
}

static void tear_down(struct server *s)
{
	for (unsigned int i = 0; i < s->n; i++)
		if (s->dev[i])
			nm_device_destroy(s->dev[i]);
	nm_server_destroy(s->server);
	free(s->host);
}

/* A copy by host engine 128, polled as the public driver does. */
static bool copy(struct server *s, struct nm_device *dev, uint64_t dst, uint64_t src, uint32_t n)
{
	const uint64_t udma = V3_APB_UDMA(V3_UDMA_D2H_0), ring[2] = { 0x10000, 0x20000 };
	volatile uint32_t *marker = (volatile uint32_t *)(s->host + 0x30000);
	const uint64_t from[2] = { src, host_addr(0x30010) }, to[2] = { dst, host_addr(0x30000) };
	const uint32_t bytes[2] = { n, 4 };
	const uint32_t half[2] = { UDMA_M2S, UDMA_S2M };
	const uint32_t reset[2] = { UDMA_M2S_Q_SW_CTRL, UDMA_S2M_Q_SW_CTRL };

	*marker = 0;
	*(uint32_t *)(s->host + 0x30010) = UDMA_MARKER;
#define REG(off, v) nm_bar_write(dev, V3_BAR_APB_QEMU, udma + (off), 4, v)
	REG(UDMA_M2S + UDMA_M2S_CFG_LEN, UDMA_M2S_CFG_LEN_MAX | UDMA_M2S_CFG_LEN_64K);
	for (unsigned int h = 0; h < 2; h++) {
		struct udma_desc *d = (struct udma_desc *)(s->host + ring[h]);

		REG(half[h] + UDMA_CHANGE_STATE, UDMA_CHANGE_NORMAL);
		REG(half[h] + UDMA_Q(0) + reset[h], UDMA_Q_SW_CTRL_RESET);
		REG(half[h] + UDMA_Q(0) + UDMA_Q_BASE_LO, (uint32_t)host_addr(ring[h]));
		REG(half[h] + UDMA_Q(0) + UDMA_Q_BASE_HI, (uint32_t)(host_addr(ring[h]) >> 32));
		REG(half[h] + UDMA_Q(0) + UDMA_Q_LEN, RING);
		REG(half[h] + UDMA_Q(0) + UDMA_Q_CFG, UDMA_Q_CFG_PREFETCH | UDMA_Q_CFG_SCHEDULE);
		for (unsigned int i = 0; i < 2; i++)
			d[i] = (struct udma_desc){
				.ctrl = bytes[i] | HW_SET(UDMA_DESC_RING_ID, UDMA_RING_ID_FIRST) |
					(h ? 0 : UDMA_DESC_FIRST | UDMA_DESC_LAST),
				.meta = h ? 0 : UDMA_META_COPY,
				.addr = h ? to[i] : from[i],
			};
	}
	for (unsigned int h = 2; h-- > 0;)
		REG(half[h] + UDMA_Q(0) + UDMA_Q_TAIL_INC, 2);
#undef REG
	for (;;) {
		const uint32_t status = (uint32_t)nm_bar_read(
			dev, V3_BAR_APB_QEMU, udma + UDMA_M2S + UDMA_Q(0) + UDMA_Q_STATUS, 4);
		const uint32_t other = (uint32_t)nm_bar_read(
			dev, V3_BAR_APB_QEMU, udma + UDMA_S2M + UDMA_Q(0) + UDMA_Q_STATUS, 4);

		if (*marker == UDMA_MARKER)
			return true;
		if ((status | other) & UDMA_Q_STATUS_ERROR)
			return false;
	}
}

static uint64_t window(unsigned int n)
{
	return V3_DEV_NEIGHBOUR_0 + n * V3_DEV_NEIGHBOUR_DIST;
}

static uint64_t serial(struct nm_device *dev)
{
	return nm_bar_read(dev, V3_BAR_APB_QEMU, V3_APB_MISC_RAM + MBOX_SERIAL_LO, 4) |
	       nm_bar_read(dev, V3_BAR_APB_QEMU, V3_APB_MISC_RAM + MBOX_SERIAL_HI, 4) << 32;
}

/* As the public driver finds its neighbours: their serial numbers, read over each link. */
static void serial_numbers_over_the_links(void **state)
{
	struct server s = { 0 };
	unsigned int ids[NEURON_LINKS];

	(void)state;
	build(&s, NULL, DEVICES);
	for (unsigned int d = 0; d < DEVICES; d++) {
		assert_int_equal(neuron_neighbours(NEURON_PCI_TRN2, DEVICES, d, ids), 4);
		for (unsigned int w = 0; w < NEURON_LINKS; w++) {
			uint64_t found = 0;

			assert_true(copy(&s, s.dev[d], host_addr(0x40000),
					 window(w) + V3_DEV_MISC_RAM + MBOX_SERIAL_LO, 8));
			memcpy(&found, s.host + 0x40000, sizeof(found));
			assert_int_equal(found, serial(s.dev[ids[w]]));
			assert_int_equal(nm_bar_read(s.dev[d], EXI_BAR, EXI_LINK_SERIAL(w), 8),
					 found);
		}
	}
	tear_down(&s);
}

/* As in the public driver's election of a pod: who publishes, and who reads it over a link. */
static void published_neighbours_over_a_link(void **state)
{
	struct server s = { 0 };
	uint32_t found[7];

	(void)state;
	build(&s, NULL, 2);
	for (unsigned int i = 0; i < 7; i++)
		nm_bar_write(s.dev[1], V3_BAR_APB_QEMU,
			     V3_APB_MISC_RAM + MBOX_LEFT_SERIAL_HI + i * 4, 4, 0x1000 + i);
	assert_true(copy(&s, s.dev[0], host_addr(0x40000),
			 window(0) + V3_DEV_MISC_RAM + MBOX_LEFT_SERIAL_HI, sizeof(found)));
	memcpy(found, s.host + 0x40000, sizeof(found));
	for (unsigned int i = 0; i < 7; i++)
		assert_int_equal(found[i], 0x1000 + i);
	tear_down(&s);
}

static void links_are_both_ways(void **state)
{
	static const unsigned int devices[] = { NEURON_PCI_TRN1, NEURON_PCI_INF2, NEURON_PCI_TRN2,
						NEURON_PCI_TRN3_0 };
	unsigned int ids[NEURON_LINKS], back[NEURON_LINKS];

	(void)state;
	for (unsigned int p = 0; p < 4; p++)
		for (unsigned int n = 1; n <= NEURON_SERVER_DEVICES; n++)
			for (unsigned int d = 0; d < n; d++) {
				const unsigned int links = neuron_neighbours(devices[p], n, d, ids);

				assert_int_equal(!links, n == 1);
				for (unsigned int i = 0; i < links; i++) {
					const unsigned int m =
						neuron_neighbours(devices[p], n, ids[i], back);
					unsigned int found = 0;

					assert_true(ids[i] < n && ids[i] != d);
					for (unsigned int j = 0; j < m; j++)
						found += back[j] == d;
					assert_int_equal(found, 1);
				}
			}
}

static void memories_of_neighbours(void **state)
{
	struct server s = { 0 };
	uint8_t *mine, *theirs;

	(void)state;
	build(&s, "trn3", 2);
	mine = nm_hbm_ptr(s.dev[0]);
	theirs = nm_hbm_ptr(s.dev[1]);
	for (unsigned int i = 0; i < 0x10000; i++)
		mine[HBM_STACK + i] = (uint8_t)(i * 7 + i / 251);
	/* HBM to HBM, out of stack 1 into stack 3, and back into another place by the other device. */
	assert_true(copy(&s, s.dev[0], window(0) + V3_DEV_HBM(3) + 5, V3_DEV_HBM(1), 0xffff));
	assert_memory_equal(theirs + 3 * HBM_STACK + 5, mine + HBM_STACK, 0xffff);
	assert_true(copy(&s, s.dev[1], window(0) + V3_DEV_HBM(0) + 64, V3_DEV_HBM(3) + 5, 0x8000));
	assert_memory_equal(mine + 64, mine + HBM_STACK, 0x8000);
	/* SBUF and a semaphore. */
	assert_true(copy(&s, s.dev[0], window(0) + V3_DEV_TPB(1) + 0x40, V3_DEV_HBM(1), 256));
	assert_true(copy(&s, s.dev[1], V3_DEV_HBM(0), V3_DEV_TPB(1) + 0x40, 256));
	assert_memory_equal(theirs, mine + HBM_STACK, 256);
	mine[0] = 9;
	mine[1] = mine[2] = mine[3] = 0;
	assert_true(copy(&s, s.dev[0], window(0) + V3_DEV_TPB(0) + V3_TPB_SEM_SET + 4 * 17,
			 V3_DEV_HBM(0), 4));
	assert_int_equal(nm_bar_read(s.dev[1], V3_BAR_APB_QEMU,
				     V3_APB_TPB(0) + V3_TPB_SEM_READ + 4 * 17, 4),
			 9);
	tear_down(&s);
}

static void what_a_link_does_not_reach(void **state)
{
	struct server s = { 0 };

	(void)state;
	build(&s, NULL, 4);
	/* The neighbour's host, its neighbours, registers that make somebody wait, windows of nobody. */
	assert_false(copy(&s, s.dev[0], V3_DEV_HBM(0), window(0) + host_addr(0), 8));
	assert_false(copy(&s, s.dev[0], V3_DEV_HBM(0), window(0) + V3_DEV_HBM(0) + HBM_STACK, 8));
	assert_false(copy(&s, s.dev[0], V3_DEV_HBM(0), window(2), 8));
	assert_false(copy(&s, s.dev[0], V3_DEV_HBM(0), window(3), 8));
	assert_false(copy(&s, s.dev[0],
			  window(0) + V3_DEV_APB_IO_0 + V3_IO_USER + UDMA_M2S + UDMA_CHANGE_STATE,
			  V3_DEV_HBM(0), 4));
	assert_true(copy(&s, s.dev[0], V3_DEV_HBM(0), window(0), 8));
	tear_down(&s);
}

static void neighbours_come_and_go(void **state)
{
	struct server s = { 0 };

	(void)state;
	build(&s, NULL, 2);
	assert_true(copy(&s, s.dev[0], window(0), V3_DEV_HBM(0), 64));
	nm_device_destroy(s.dev[1]);
	s.dev[1] = NULL;
	assert_false(copy(&s, s.dev[0], window(0), V3_DEV_HBM(0), 64));
	power_on(&s, 1);
	((uint8_t *)nm_hbm_ptr(s.dev[0]))[0] = 0x5a;
	assert_true(copy(&s, s.dev[0], window(0), V3_DEV_HBM(0), 64));
	assert_int_equal(((uint8_t *)nm_hbm_ptr(s.dev[1]))[0], 0x5a);
	tear_down(&s);
}

static void numbers_and_routing_ids(void **state)
{
	struct server s = { 0 };

	(void)state;
	build(&s, NULL, 5);
	/* The public driver's table: routing id 8 is device 1, 12 would be 13. */
	assert_int_equal(
		nm_bar_read(s.dev[1], V3_BAR_APB_QEMU, V3_APB_MISC_RAM + MBOX_DEVICE_ID, 4), 8);
	assert_int_equal(neuron_device_number(NEURON_PCI_TRN2, 12), 13);
	assert_int_equal(neuron_device_number(NEURON_PCI_TRN1, 8), 12);
	assert_int_equal(neuron_device_number(NEURON_PCI_INF2, 8), 8);
	for (unsigned int d = 0; d < 16; d++)
		assert_int_equal(neuron_device_number(NEURON_PCI_TRN3_0,
						      neuron_routing_id(NEURON_PCI_TRN3_0, d)),
				 d);
	assert_null(nm_server_create("trn9", 2, 0));
	assert_null(nm_server_create(NULL, 17, 0));
	tear_down(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(serial_numbers_over_the_links),
		cmocka_unit_test(published_neighbours_over_a_link),
		cmocka_unit_test(links_are_both_ways),
		cmocka_unit_test(memories_of_neighbours),
		cmocka_unit_test(what_a_link_does_not_reach),
		cmocka_unit_test(neighbours_come_and_go),
		cmocka_unit_test(numbers_and_routing_ids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
