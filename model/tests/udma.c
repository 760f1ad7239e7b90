// SPDX-License-Identifier: Apache-2.0
/* UDMA rings, copies, completion, errors. The driver's part is played by queue.h. */
#include "fixture.h"
#include "neuron_mailbox.h"
#include "neuron_udma.h"
#include "queue.h"

static void every_host_engine_copies(void **state)
{
	struct fixture *f = *state;

	for (unsigned int e = V3_UDMA_D2H_0; e < V3_UDMA_ENGINES; e++) {
		struct queue u = start(f, e, e % 2);
		unsigned int stack = e - V3_UDMA_D2H_0;

		fill(f->host + DATA, 5000, e);
		copy_and_wait(&u, hbm_addr(stack, 4096 + 3), host_addr(DATA), 5000);
		assert_memory_equal(hbm_at(f, stack, 4096 + 3), f->host + DATA, 5000);
		copy_and_wait(&u, hbm_addr(3 - stack, 1 << 20), hbm_addr(stack, 4096 + 3), 5000);
		assert_memory_equal(hbm_at(f, 3 - stack, 1 << 20), f->host + DATA, 5000);
		copy_and_wait(&u, host_addr(DATA + 0x10000), hbm_addr(3 - stack, 1 << 20), 5000);
		assert_memory_equal(f->host + DATA + 0x10000, f->host + DATA, 5000);
	}
	assert_int_equal(f->messages, 0);
}

static void core_engines_copy_too(void **state)
{
	struct fixture *f = *state;
	struct queue u = start(f, 31, 15);

	fill(f->host + DATA, 100, 1);
	copy_and_wait(&u, hbm_addr(0, 0), host_addr(DATA), 100);
	assert_memory_equal(hbm_at(f, 0, 0), f->host + DATA, 100);
}

/* A host that only polls markers may use their descriptors' places at once. */
static void places_are_free_when_the_marker_is_seen(void **state)
{
	enum { BATCHES = 8, BATCH = RING / BATCHES };
	struct fixture *f = *state;
	struct queue u = start(f, V3_UDMA_D2H_0, 0);
	_Atomic uint32_t *seen;

	for (unsigned int i = 0; i < 1000; i++) {
		const uint64_t to = MARKER + 16 + i % BATCHES * 4;

		*(uint32_t *)(f->host + MARKER) = UDMA_MARKER;
		seen = (_Atomic uint32_t *)(f->host + to);
		/* Spins: the doorbell has to come as soon as it may. */
		while (i >= BATCHES && *seen != UDMA_MARKER && !stopped(&u))
			;
		*seen = 0;
		for (unsigned int n = 1; n < BATCH; n++)
			put_pair(&u, hbm_addr(0, n * 16384), host_addr(DATA), 16384, 0);
		put_pair(&u, host_addr(to), host_addr(MARKER), 4, 0);
		ring(&u, BATCH, BATCH);
	}
	wait_for(idle(&u));
	assert_false(stopped(&u));
	assert_int_equal(f->messages, 0);
}

static void length_zero_is_64_kib(void **state)
{
	struct fixture *f = *state;
	struct queue u = start(f, 129, 0);

	fill(f->host + DATA, 0x10000, 3);
	copy_and_wait(&u, hbm_addr(1, 64), host_addr(DATA), 0x10000);
	assert_memory_equal(hbm_at(f, 1, 64), f->host + DATA, 0x10000);
	assert_int_equal(hbm_at(f, 1, 64 + 0x10000)[0], 0);
}

static void rings_wrap_and_ring_ids_step(void **state)
{
	struct fixture *f = *state;
	struct queue u = start(f, 128, 1);

	for (unsigned int i = 0; i < 5 * RING / 2; i++) { /* two descriptors each: five laps */
		uint32_t lap = (i * 2 + 2) / RING;

		fill(f->host + DATA, 64, i);
		copy_and_wait(&u, hbm_addr(0, i * 64), host_addr(DATA), 64);
		assert_memory_equal(hbm_at(f, 0, i * 64), f->host + DATA, 64);
		assert_int_equal(apb_read(f, q_at(&u, 0, UDMA_Q_TAIL)),
				 (i * 2 + 2) % RING | ((1 + lap) % 4) << 30);
	}
	assert_int_equal(apb_read(f, q_at(&u, 1, UDMA_Q_CURRENT)),
			 apb_read(f, q_at(&u, 1, UDMA_Q_TAIL)));
	assert_int_equal(f->messages, 0);
}

static void a_full_ring_at_once(void **state)
{
	struct fixture *f = *state;
	struct queue u = start(f, 130, 0);

	fill(f->host + DATA, RING * 1000, 5);
	for (unsigned int round = 0; round < 3; round++) {
		for (unsigned int i = 0; i < RING; i++)
			put_pair(&u, hbm_addr(2, round * 100000 + i * 1000),
				 host_addr(DATA + i * 1000), 1000, 0);
		ring(&u, RING, RING);
		wait_for(idle(&u));
		assert_memory_equal(hbm_at(f, 2, round * 100000), f->host + DATA, RING * 1000);
	}
	assert_int_equal(f->messages, 0);
}

static void packets_scatter_and_gather(void **state)
{
	struct fixture *f = *state;
	struct queue u = start(f, 131, 1);

	fill(f->host + DATA, 900, 9);
	/* Three sources, one packet, into two destinations. */
	put(&u, 0, host_addr(DATA), 100, UDMA_DESC_FIRST);
	put(&u, 0, host_addr(DATA + 100), 500, 0);
	put(&u, 0, host_addr(DATA + 600), 300, UDMA_DESC_LAST);
	put(&u, 1, hbm_addr(0, 0), 450, 0);
	put(&u, 1, hbm_addr(0, 4096), 4096, 0);
	ring(&u, 3, 2);
	wait_for(idle(&u));
	assert_memory_equal(hbm_at(f, 0, 0), f->host + DATA, 450);
	assert_memory_equal(hbm_at(f, 0, 4096), f->host + DATA + 450, 450);
	assert_int_equal(hbm_at(f, 0, 4096 + 450)[0], 0);
	/* The next packet starts in the next destination. */
	put_pair(&u, hbm_addr(0, 8192), host_addr(DATA), 10, 0);
	ring(&u, 1, 1);
	wait_for(idle(&u));
	assert_memory_equal(hbm_at(f, 0, 8192), f->host + DATA, 10);
}

static void a_copy_waits_for_its_destination(void **state)
{
	struct fixture *f = *state;
	struct queue u = start(f, 129, 1);

	fill(f->host + DATA, 300, 2);
	put(&u, 0, host_addr(DATA), 300, UDMA_DESC_FIRST | UDMA_DESC_LAST);
	put(&u, 1, hbm_addr(0, 0), 100, 0);
	ring(&u, 1, 1);
	wait_for(status(&u, 1) & UDMA_Q_STATUS_IDLE);
	assert_int_equal(status(&u, 0) & (UDMA_Q_STATUS_IDLE | UDMA_Q_STATUS_USED), 1);
	put(&u, 1, hbm_addr(0, 1000), 200, UDMA_DESC_INT);
	ring(&u, 0, 1);
	wait_for(idle(&u));
	assert_memory_equal(hbm_at(f, 0, 0), f->host + DATA, 100);
	assert_memory_equal(hbm_at(f, 0, 1000), f->host + DATA + 100, 200);
}

static void wrong_ring_id_stops_the_queue(void **state)
{
	struct fixture *f = *state;
	struct queue u = start(f, 128, 0), other = start(f, 128, 1);

	u.id[0] = 2;
	put_pair(&u, hbm_addr(0, 0), host_addr(DATA), 8, 0);
	ring(&u, 1, 1);
	wait_for(stopped(&u));
	assert_int_equal(status(&u, 0) & UDMA_Q_STATUS_ERROR, UDMA_Q_STATUS_ERROR);
	assert_int_equal(status(&u, 1) & UDMA_Q_STATUS_ERROR, 0);
	assert_int_equal(cause(&u, 0), UDMA_M2S_CAUSE_RING_ID);
	assert_non_null(strstr(f->last, "engine 128 M2S queue 0"));
	assert_non_null(strstr(f->last, "ring id"));
	wait_for(f->irqs[VECTOR] == 1);
	/* Its neighbour goes on, and a reset makes it work again. */
	copy_and_wait(&other, hbm_addr(0, 64), host_addr(DATA), 8);
	set_up_ring(&u, 0);
	set_up_ring(&u, 1);
	copy_and_wait(&u, hbm_addr(0, 0), host_addr(DATA), 8);
}

static void ring_id_errors_can_be_masked(void **state)
{
	struct fixture *f = *state;
	struct queue u = start(f, 128, 0);

	apb_write(f, half_at(&u, 0) + UDMA_ERR_LOG_MASK, UDMA_M2S_ERR_RING_ID);
	apb_write(f, half_at(&u, 1) + UDMA_ERR_LOG_MASK, UDMA_S2M_ERR_RING_ID);
	u.id[0] = 3;
	u.id[1] = 0;
	copy_and_wait(&u, hbm_addr(0, 0), host_addr(DATA), 8);
	assert_int_equal(f->messages, 0);
}

static void bad_addresses_stop_the_queue(void **state)
{
	static const uint64_t nowhere[] = {
		V3_DEV_HBM(0) + HBM_STACK, /* above the stack */
		V3_DEV_HBM(1) + HBM_STACK - 4, /* across its end */
		V3_DEV_HOST, /* not mapped */
		V3_DEV_HOST + HOST_IOVA + HOST_BYTES - 4,
		V3_DEV_NEIGHBOUR_0,
		V3_DEV_TPB(5), /* absent core */
		UINT64_MAX - 3,
	};
	struct fixture *f = *state;

	for (unsigned int i = 0; i < 2 * sizeof(nowhere) / sizeof(nowhere[0]); i++) {
		struct queue u = start(f, 130, 0);
		const unsigned int rx = i % 2;
		const uint64_t bad = nowhere[i / 2];
		const uint64_t iofic = V3_APB_UDMA(130) + UDMA_GEN + UDMA_GEN_IOFIC_2(rx);
		const uint64_t bus_error = V3_APB_UDMA(130) + UDMA_GEN + UDMA_GEN_AXI_Q_ERROR(0);

		apb_write(f, iofic + UDMA_IOFIC_CAUSE, 0);
		if (rx)
			put_pair(&u, bad, host_addr(DATA), 8, 0);
		else
			put_pair(&u, host_addr(DATA), bad, 8, 0);
		ring(&u, 1, 1);
		wait_for(stopped(&u));
		assert_int_equal(cause(&u, rx),
				 rx ? UDMA_S2M_CAUSE_DATA_BUS : UDMA_M2S_CAUSE_DATA_BUS);
		assert_int_equal(apb_read(f, q_at(&u, rx, UDMA_Q_CURRENT)) & UDMA_PTR_INDEX, 0);
		assert_int_equal(apb_read(f, bus_error), rx ? 2 : 1);
		assert_int_equal(apb_read(f, bus_error), 0); /* read once */
	}
}

static void unmasked_error_aborts_the_half(void **state)
{
	struct fixture *f = *state;
	struct queue u = start(f, 129, 0), other = start(f, 129, 1);

	assert_int_equal(apb_read(f, half_at(&u, 0) + UDMA_STATE), 0x1111);
	apb_write(f, V3_APB_UDMA(129) + UDMA_GEN + UDMA_GEN_IOFIC_2(0) + UDMA_IOFIC_ABORT_MASK,
		  ~UDMA_M2S_CAUSE_DATA_BUS);
	put_pair(&u, hbm_addr(0, 0), V3_DEV_NEIGHBOUR_0, 8, 0);
	ring(&u, 1, 1);
	wait_for(stopped(&u));
	assert_int_equal(apb_read(f, half_at(&u, 0) + UDMA_STATE), 0x2222);
	assert_int_equal(apb_read(f, half_at(&u, 1) + UDMA_STATE), 0x1111);
	put_pair(&other, hbm_addr(0, 0), host_addr(DATA), 8, 0);
	ring(&other, 1, 1);
	assert_false(idle(&other)); /* nothing moves in state abort */
	apb_write(f, half_at(&u, 0) + UDMA_CHANGE_STATE, UDMA_CHANGE_NORMAL);
	wait_for(idle(&other));
}

static void malformed_descriptors(void **state)
{
	struct fixture *f = *state;
	struct queue u = start(f, 128, 0);
	struct udma_desc *d;

	d = put(&u, 0, host_addr(DATA), 8, UDMA_DESC_LAST); /* no first */
	put(&u, 1, hbm_addr(0, 0), 8, 0);
	ring(&u, 1, 1);
	wait_for(stopped(&u));
	assert_int_equal(cause(&u, 0), UDMA_M2S_CAUSE_FIRST);

	u = start(f, 129, 0);
	d = put(&u, 0, host_addr(DATA), 8, UDMA_DESC_FIRST | UDMA_DESC_LAST);
	d->meta = 0; /* some other operation */
	put(&u, 1, hbm_addr(0, 0), 8, 0);
	ring(&u, 1, 1);
	wait_for(stopped(&u));
	assert_non_null(strstr(f->last, "operation"));

	u = start(f, 130, 0);
	apb_write(f, half_at(&u, 0) + UDMA_M2S_CFG_LEN, 100);
	put_pair(&u, hbm_addr(0, 0), host_addr(DATA), 101, 0);
	ring(&u, 1, 1);
	wait_for(stopped(&u));
	assert_int_equal(cause(&u, 0), UDMA_M2S_CAUSE_PKT_LEN);

	u = start(f, 131, 0);
	apb_write(f, half_at(&u, 0) + UDMA_PREF_CFG_2, 2);
	put(&u, 0, host_addr(DATA), 8, UDMA_DESC_FIRST);
	put(&u, 0, host_addr(DATA), 8, 0);
	put(&u, 0, host_addr(DATA), 8, UDMA_DESC_LAST);
	put(&u, 1, hbm_addr(0, 0), 24, 0);
	ring(&u, 3, 1);
	wait_for(stopped(&u));
	assert_int_equal(cause(&u, 0), UDMA_M2S_CAUSE_MAX_DESC);
}

static void bad_rings_are_refused(void **state)
{
	struct fixture *f = *state;
	struct queue u = start(f, 128, 2);

	apb_write(f, q_at(&u, 0, UDMA_Q_LEN), 40);
	ring(&u, 1, 0);
	assert_true(stopped(&u));
	assert_non_null(strstr(f->last, "length"));

	u = start(f, 128, 3);
	apb_write(f, q_at(&u, 1, UDMA_Q_BASE_LO), 64);
	ring(&u, 0, 1);
	assert_true(stopped(&u));
	assert_non_null(strstr(f->last, "base"));

	u = start(f, 128, 4);
	ring(&u, RING + 1, 0);
	assert_true(stopped(&u));
	assert_non_null(strstr(f->last, "doorbell"));

	u = start(f, 128, 5); /* ring where nothing is */
	apb_write(f, q_at(&u, 0, UDMA_Q_BASE_HI), 0xffff);
	ring(&u, 1, 1);
	wait_for(stopped(&u));
	assert_int_equal(cause(&u, 0), UDMA_M2S_CAUSE_DESC_BUS);
}

static void completion_rings_are_written(void **state)
{
	struct fixture *f = *state;
	struct queue u = start(f, 129, 0);
	const uint32_t *records = (const uint32_t *)(f->host + CDESC);

	apb_write(f, half_at(&u, 1) + UDMA_S2M_COMP_CFG_1C, 4);
	apb_write(f, q_at(&u, 1, UDMA_Q_COMP_LO), (uint32_t)host_addr(CDESC));
	apb_write(f, q_at(&u, 1, UDMA_Q_COMP_HI), (uint32_t)(host_addr(CDESC) >> 32));
	apb_write(f, q_at(&u, 1, UDMA_S2M_Q_COMP_CFG), UDMA_Q_COMP_ENABLE);
	for (unsigned int i = 0; i < RING + 1; i++) {
		put_pair(&u, hbm_addr(0, i * 64), host_addr(DATA), 32 + i % 8, 0);
		ring(&u, 1, 1);
		wait_for(idle(&u));
	}
	assert_int_equal(records[4], 33 | UDMA_CDESC_FIRST | UDMA_CDESC_LAST | 1 << 24);
	assert_int_equal(records[0], 32 | UDMA_CDESC_FIRST | UDMA_CDESC_LAST | 2 << 24);
	assert_int_equal(apb_read(f, q_at(&u, 1, UDMA_Q_COMP_HEAD)), 1 | 2u << 30);
}

static void masked_vector_stays_pending(void **state)
{
	struct fixture *f = *state;
	struct queue u = start(f, 128, 0);
	const uint64_t entry = EXI_MSIX_TABLE + VECTOR * 16 + 12;

	nm_bar_write(f->dev, EXI_BAR, entry, 4, 1);
	put_pair(&u, hbm_addr(0, 0), host_addr(DATA), 8, UDMA_DESC_INT);
	ring(&u, 1, 1);
	wait_for(nm_bar_read(f->dev, EXI_BAR, EXI_MSIX_PBA, 4) == 1u << VECTOR);
	assert_int_equal(f->irqs[VECTOR], 0);
	nm_bar_write(f->dev, EXI_BAR, entry, 4, 0);
	assert_int_equal(f->irqs[VECTOR], 1);
	assert_int_equal(nm_bar_read(f->dev, EXI_BAR, EXI_MSIX_PBA, 4), 0);
	assert_int_equal(apb_read(f, V3_APB_UDMA(128) + UDMA_GEN + UDMA_GEN_IOFIC(UDMA_IOFIC_B) +
					     UDMA_IOFIC_CAUSE),
			 1);
}

static void no_bus_mastering_no_host_memory(void **state)
{
	struct fixture *f = *state;
	struct queue u = start(f, 128, 0);

	nm_config_write(f->dev, 4, 2, 2);
	put_pair(&u, hbm_addr(0, 0), host_addr(DATA), 8, 0);
	ring(&u, 1, 1);
	wait_for(stopped(&u));
	assert_int_equal(f->messages, 2); /* bus mastering, then the queue */
}

static void read_only_memory_is_not_written(void **state)
{
	struct fixture *f = *state;
	struct queue u = start(f, 128, 0);
	uint8_t page[4096] = { 42 };

	assert_int_equal(nm_dma_map(f->dev, 0x80000000, sizeof(page), page, NM_DMA_READ), 0);
	copy_and_wait(&u, hbm_addr(0, 0), V3_DEV_HOST + 0x80000000, 16);
	assert_int_equal(hbm_at(f, 0, 0)[0], 42);
	hbm_at(f, 0, 0)[0] = 1;
	put_pair(&u, V3_DEV_HOST + 0x80000000, hbm_addr(0, 0), 16, 0);
	ring(&u, 1, 1);
	wait_for(stopped(&u));
	assert_int_equal(page[0], 42);
	assert_int_equal(nm_dma_unmap(f->dev, 0x80000000, sizeof(page)), 0);
}

static void disabled_queue_waits(void **state)
{
	struct fixture *f = *state;
	struct queue u = start(f, 131, 3);

	apb_write(f, q_at(&u, 0, UDMA_Q_CFG), UDMA_Q_CFG_RESET);
	put_pair(&u, hbm_addr(0, 0), host_addr(DATA), 8, 0);
	ring(&u, 1, 1);
	assert_int_equal(status(&u, 0) & UDMA_Q_STATUS_USED, 1);
	apb_write(f, q_at(&u, 0, UDMA_Q_CFG),
		  UDMA_Q_CFG_RESET | UDMA_Q_CFG_PREFETCH | UDMA_Q_CFG_SCHEDULE);
	wait_for(idle(&u));
}

static void reset_during_copies_is_clean(void **state)
{
	struct fixture *f = *state;

	for (unsigned int round = 0; round < 50; round++) {
		struct queue u = start(f, 128, 0);

		for (unsigned int i = 0; i < RING; i++)
			put_pair(&u, hbm_addr(0, i << 16), host_addr(DATA), 0x10000, UDMA_DESC_INT);
		ring(&u, RING, RING);
		if (round % 2) {
			nm_device_reset(f->dev);
			assert_int_equal(apb_read(f, half_at(&u, 0) + UDMA_STATE), 0);
			nm_enable(f->dev);
		} else {
			set_up_ring(&u, 0);
			set_up_ring(&u, 1);
			wait_for(idle(&u));
			copy_and_wait(&u, hbm_addr(0, 0), host_addr(DATA), 8);
		}
	}
}

static uint64_t time_of_copy(struct queue *u, uint32_t bytes)
{
	uint64_t before = nm_time_ns(u->f->dev);

	copy_and_wait(u, hbm_addr(0, 0), host_addr(DATA), bytes);
	return nm_time_ns(u->f->dev) - before;
}

/* 2 us to start and end, 23 bytes/ns; a marker goes with each. */
static void copies_take_time(void **state)
{
	struct queue u = start(*state, V3_UDMA_D2H_0, 0), v = start(*state, V3_UDMA_D2H_0, 1);
	uint64_t small = time_of_copy(&u, 64), large = time_of_copy(&u, 60000);

	assert_uint_in_range(small, 2000, 2100);
	assert_uint_in_range(large - small, 60000 / 23 - 10, 60000 / 23 + 10);
	/* The same each time, on any queue. */
	assert_int_equal(time_of_copy(&v, 60000), large);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_host_engine_copies),
		TEST(core_engines_copy_too),
		TEST(places_are_free_when_the_marker_is_seen),
		TEST(length_zero_is_64_kib),
		TEST(rings_wrap_and_ring_ids_step),
		TEST(a_full_ring_at_once),
		TEST(packets_scatter_and_gather),
		TEST(a_copy_waits_for_its_destination),
		TEST(wrong_ring_id_stops_the_queue),
		TEST(ring_id_errors_can_be_masked),
		TEST(bad_addresses_stop_the_queue),
		TEST(unmasked_error_aborts_the_half),
		TEST(malformed_descriptors),
		TEST(bad_rings_are_refused),
		TEST(completion_rings_are_written),
		TEST(masked_vector_stays_pending),
		TEST(no_bus_mastering_no_host_memory),
		TEST(read_only_memory_is_not_written),
		TEST(disabled_queue_waits),
		TEST(reset_during_copies_is_clean),
		TEST(copies_take_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
