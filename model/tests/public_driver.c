// SPDX-License-Identifier: Apache-2.0
/*
 * The device as a driver written by others sees it: what AWS's public driver does from its probe to
 * copies, in its order, with its numbers and its ways of waiting. Nothing of hw/ is used, so that the
 * headers can't be wrong together with the model. Sources: aws-neuron-driver neuron_pci.c,
 * neuron_reset.c, neuron_fw_io.c, neuron_sysfs_metrics.c, udma/udma_main.c, udma/udma_m2m.c,
 * neuron_dma.c, neuron_nq.c, v2/neuron_dhal_v2.c, v3/neuron_dhal_v3.c, v4/neuron_dhal_v4.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "neuron_model.h"

#define HOST_BYTES (4u << 20)
#define IOVA	   0x12340000ull
#define HBM	   (64ull << 20) /* a stack */

/* What the driver's tables say of a chip. */
struct chip {
	const char *name;
	uint16_t id;
	uint64_t host; /* or'ed to bus addresses */
	uint32_t misc; /* registers, by BAR offset */
	uint32_t reset; /* revision 255 */
	uint32_t reset_all;
	uint32_t udma[2]; /* two engines that copy for the host */
	uint32_t sdma; /* wrapper, from its engine */
	uint64_t misc_addr; /* device address */
	uint64_t stack[2];
	/* Core 1 and TopSP 2: notification queues and events. */
	uint32_t notify[2], event[2];
};

static const struct chip chips[] = {
	{ "trn2",
	  0x7364,
	  0x400000000000,
	  0x06c84000,
	  0x06300010,
	  0xffffffff,
	  { 0x06800000, 0x06900000 },
	  0x40000,
	  0x8006c84000,
	  { 0, 0x4000000000 },
	  { 0x06181000, 0x06a80000 },
	  { 0xd6700000, 0xf0800000 } },
	{ "trn3",
	  0x7564,
	  0x400000000000,
	  0x06c84000,
	  0x06300010,
	  0xffffffff,
	  { 0x06800000, 0x06900000 },
	  0x40000,
	  0x8006c84000,
	  { 0, 0x4000000000 },
	  { 0x06181000, 0x06a80000 },
	  { 0xd6700000, 0xf0800000 } },
	{ "trn1",
	  0x7164,
	  0x100000000000,
	  0x30fa0000,
	  0x30647010,
	  1,
	  { 0x30600000, 0x30d00000 },
	  0x40000,
	  0xffff0fa0000,
	  { 0, 0x1000000000 },
	  { 0x30c35000, 0x30e84000 },
	  { 0x06700000, 0x10800000 } },
	{ "inf2",
	  0x7264,
	  0x100000000000,
	  0x30fa0000,
	  0x30647010,
	  1,
	  { 0x30600000, 0x30d00000 },
	  0x40000,
	  0xffff0fa0000,
	  { 0, 0x1000000000 },
	  { 0x30c35000, 0x30e84000 },
	  { 0x06700000, 0x10800000 } },
};

struct driver {
	const struct chip *chip;
	struct nm_device *dev;
	unsigned int apb;
	uint8_t *host;
	unsigned int complaints; /* of the model about the driver */
	char text[256];
	uint8_t sequence;
};

static void on_log(void *user, int level, const char *text)
{
	struct driver *d = user;

	if (level != NM_LOG_GUEST)
		return;
	d->complaints++;
	snprintf(d->text, sizeof(d->text), "%s", text);
}

static uint32_t rd(struct driver *d, uint32_t at)
{
	return (uint32_t)nm_bar_read(d->dev, d->apb, at, 4);
}

static void wr(struct driver *d, uint32_t at, uint32_t value)
{
	nm_bar_write(d->dev, d->apb, at, 4, value);
}

/* Looks every millisecond, up to ten seconds. */
#define poll(cond)                                            \
	do {                                                  \
		const struct timespec ms_ = { 0, 1000000 };   \
		int left_ = 10000;                            \
		while (!(cond) && left_-- > 0)                \
			nanosleep(&ms_, NULL);                \
		if (left_ < 0)                                \
			fail_msg("no %s within 10 s", #cond); \
	} while (0)

/* --- probe ---------------------------------------------------------------------- */

static struct driver *probe(const struct chip *chip, bool silicon)
{
	struct driver *d = calloc(1, sizeof(*d));
	const struct nm_config config = { .chip = chip->name,
					  .silicon = silicon,
					  .cores = 2,
					  .hbm_bytes = HBM,
					  .log_level = NM_LOG_GUEST,
					  .log = on_log,
					  .user = d };
	uint32_t rid;

	d->chip = chip;
	assert_int_equal(nm_device_create(&config, &d->dev), 0);
	d->host = aligned_alloc(4096, HOST_BYTES);
	memset(d->host, 0, HOST_BYTES);
	assert_int_equal(nm_dma_map(d->dev, IOVA, HOST_BYTES, d->host, 3), 0);

	assert_int_equal(nm_config_read(d->dev, 0, 2), 0x1d0f);
	assert_int_equal(nm_config_read(d->dev, 2, 2), chip->id);
	/* The revision chooses the BAR of the registers. */
	d->apb = nm_config_read(d->dev, 8, 1) == 255 ? 2 : 0;
	assert_int_equal(d->apb, silicon ? 0 : 2);
	nm_config_write(d->dev, 4, 2, 0x0006); /* memory space, bus master */
	assert_true(nm_bar_size(d->dev, d->apb) > chip->misc + 0x1000);
	assert_true(nm_bar_size(d->dev, 4) > 0);
	/* Routing id: until the firmware knows it. */
	poll((rid = rd(d, chip->misc + 0x24)) != 0xdeadbeef);
	assert_true(rid < 16);
	assert_int_not_equal(rd(d, chip->misc + 0x38), 0); /* serial number */
	return d;
}

static void remove_device(struct driver *d)
{
	if (d->complaints)
		fail_msg("the model complained %u times, last: %s", d->complaints, d->text);
	nm_device_destroy(d->dev);
	free(d->host);
	free(d);
}

/* --- reset ---------------------------------------------------------------------- */

static void reset_by_register(struct driver *d, uint32_t map)
{
	wr(d, d->chip->reset, map);
	poll(rd(d, d->chip->reset) == 0);
}

static void reset_by_firmware(struct driver *d, uint32_t type, uint32_t map)
{
	wr(d, d->chip->misc + 0x1d8, map);
	wr(d, d->chip->misc + 0x1ec, type);
	wr(d, d->chip->misc + 0x800, 1);
	poll(rd(d, d->chip->misc + 0x1ec) == 0);
	poll(!(rd(d, d->chip->misc + 0x808) & 8));
}

/* --- mailbox -------------------------------------------------------------------- */

static uint32_t crc32c(const uint8_t *p, size_t n)
{
	uint32_t crc = ~0u;

	for (size_t i = 0; i < n; i++) {
		crc ^= p[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
	}
	return ~crc;
}

/* Sends a request and returns its error code; the answer is behind it. */
static unsigned int request(struct driver *d, uint8_t command, const void *payload, uint16_t bytes)
{
	uint8_t *req = d->host, *resp = d->host + 4096;
	const uint64_t addr = d->chip->host | IOVA;
	const uint16_t size = (uint16_t)(8 + bytes);
	uint32_t crc;

	if (++d->sequence == 0)
		d->sequence = 1;
	memset(req, 0, 8);
	req[0] = d->sequence;
	req[1] = command;
	memcpy(req + 2, &size, 2);
	memcpy(req + 8, payload, bytes);
	crc = crc32c(req, size);
	memcpy(req + 4, &crc, 4);
	resp[0] = 0;
	wr(d, d->chip->misc + 0x1f4, (uint32_t)addr);
	wr(d, d->chip->misc + 0x1f0, (uint32_t)(addr >> 32));
	wr(d, d->chip->misc + 0x1fc, (uint32_t)(addr + 4096));
	wr(d, d->chip->misc + 0x1f8, (uint32_t)((addr + 4096) >> 32));
	wr(d, d->chip->misc + 0x800, 1);
	poll(__atomic_load_n(resp, __ATOMIC_ACQUIRE) == d->sequence);
	return resp[1];
}

static void registers_by_request(struct driver *d)
{
	const uint64_t addrs[3] = { d->chip->misc_addr + 0x38, d->chip->misc_addr + 0x3c,
				    d->chip->misc_addr + 0x24 };
	uint8_t metrics[128] = { 1 };
	uint32_t values[3];
	uint16_t size;

	for (int i = 0; i < 300; i++) { /* the sequence number wraps */
		assert_int_equal(request(d, 1, addrs, sizeof(addrs)), 0);
		memcpy(&size, d->host + 4096 + 2, 2);
		assert_int_equal(size, 4 + sizeof(values));
		memcpy(values, d->host + 4096 + 4, sizeof(values));
		assert_int_equal(values[0], rd(d, d->chip->misc + 0x38));
		assert_int_equal(values[1], rd(d, d->chip->misc + 0x3c));
		assert_int_equal(values[2], rd(d, d->chip->misc + 0x24));
	}
	assert_int_equal(request(d, 2, metrics, sizeof(metrics)), 0);
	assert_int_equal(request(d, 77, metrics, 4), 2);
}

/*
 * The same in registers, as newer drivers do from an API version on that is the chip's. 0: no sequence
 * but the right one came back; else 1 + the error code.
 */
static unsigned int request_in_registers(struct driver *d, uint8_t command, const void *payload,
					 uint16_t bytes, uint32_t spoil, uint32_t *answer,
					 uint16_t answer_bytes)
{
	const uint32_t misc = d->chip->misc;
	const uint16_t size = (uint16_t)(8 + bytes);
	uint8_t req[8 + 128] = { 0 };
	uint32_t word;

	if (++d->sequence == 0)
		d->sequence = 1;
	req[0] = d->sequence;
	req[1] = command;
	memcpy(req + 2, &size, 2);
	memcpy(req + 8, payload, bytes);
	for (uint32_t at = 0; at < bytes; at += 4) {
		memcpy(&word, req + 8 + at, 4);
		wr(d, misc + 0x100 + at, word);
	}
	memcpy(&word, req, 4);
	wr(d, misc + 0x1f0, word);
	wr(d, misc + 0x1f4, crc32c(req, size) ^ spoil);
	wr(d, misc + 0x1f8, 0);
	wr(d, misc + 0x1fc, 0);
	wr(d, misc + 0xf0, 1);
	wr(d, misc + 0x800, 1);
	poll(rd(d, misc + 0x800) == 0);
	word = rd(d, misc + 0x1f0);
	if ((word & 0xff) != d->sequence)
		return 0;
	assert_int_equal(word >> 16, 8 + (word >> 8 & 0xff ? 0 : answer_bytes));
	for (uint32_t i = 0; i < answer_bytes / 4u; i++)
		answer[i] = rd(d, misc + 0x100 + i * 4);
	return 1 + (word >> 8 & 0xff);
}

static void registers_in_registers(struct driver *d)
{
	const uint32_t misc = d->chip->misc;
	uint8_t payload[128] = { 1 };
	uint64_t addrs[16];
	uint32_t values[16];

	for (unsigned int i = 0; i < 16; i++)
		addrs[i] = d->chip->misc_addr + (i % 2 ? 0x38 : 0x24);
	for (int i = 0; i < 300; i++) {
		memset(values, 0, sizeof(values));
		assert_int_equal(request_in_registers(d, 1, addrs, sizeof(addrs), 0, values,
						      sizeof(values)),
				 1);
		for (unsigned int n = 0; n < 16; n++)
			assert_int_equal(values[n], rd(d, misc + (n % 2 ? 0x38 : 0x24)));
		/* Older requests still go the older way. */
		if (i % 16 == 0)
			assert_int_equal(request(d, 1, addrs, 8), 0);
	}
	assert_int_equal(request_in_registers(d, 2, payload, 128, 0, NULL, 0), 1);
	assert_int_equal(request_in_registers(d, 1, payload, 12, 0, NULL, 0), 1 + 1);
	assert_non_null(strstr(d->text, "register read with 12 bytes"));
	/* Profiles and features, which this firmware does not have; nonsense. */
	for (uint8_t command = 3; command <= 5; command++)
		assert_int_equal(request_in_registers(d, command, payload, 8, 0, NULL, 0), 1 + 2);
	/* Damaged: no answer, and the next one is served. */
	assert_int_equal(request_in_registers(d, 1, addrs, 8, 0x100, NULL, 0), 0);
	assert_non_null(strstr(d->text, "CRC"));
	assert_int_equal(request_in_registers(d, 1, addrs, 8, 0, values, 4), 1);
	assert_int_equal(d->complaints, 2);
	d->complaints = 0;
}

/* Which way requests can go, as neuron_dhal_v*.c choose by API version. */
static void mailbox(struct driver *d)
{
	const uint32_t version = rd(d, d->chip->misc);

	registers_by_request(d);
	if (d->chip->id == 0x7564)
		assert_true(version >= 6);
	else if (d->chip->id == 0x7364)
		assert_true(version < 7);
	if (d->chip->id == 0x7564)
		registers_in_registers(d);
}

/* What tools read of the memories, and on V4 of its health. */
static void health(struct driver *d)
{
	const uint32_t misc = d->chip->misc;
	const bool v4 = d->chip->id == 0x7564;
	uint32_t beat;

	assert_int_equal(nm_inject_ecc(d->dev, 1, 2, 5000), 0);
	assert_int_equal(rd(d, misc + 0x48), 2u << 16 | (v4 ? 0xfff : 5000));
	if (v4)
		assert_int_equal(rd(d, misc + 0x04), 0);
	assert_int_equal(nm_inject_ecc(d->dev, NM_ECC_SRAM, 1, 1), 0);
	assert_int_equal(rd(d, misc + 0x40), 1u << 16 | 1);
	if (v4)
		assert_int_equal(rd(d, misc + 0x04), 1 << 6);
	assert_int_equal(nm_inject_repair(d->dev, 2), 0);
	assert_int_equal(rd(d, misc + 0x64), 2);
	assert_int_equal(rd(d, misc + 0x48), 2u << 16 | (v4 ? 0xf000 : 5000));
	if (!v4)
		return;
	assert_int_equal(rd(d, misc + 0x04), 1 << 6 | 1 << 3);
	/* Looked at, it goes on, past its eight bits. */
	for (unsigned int i = 0; i < 300; i++) {
		beat = rd(d, misc + 0x0c);
		assert_int_equal(beat & ~0x000ff000u, 0);
		poll(rd(d, misc + 0x0c) != beat);
	}
}

/* --- UDMA ------------------------------------------------------------------------- */

#define RING  64u
#define S2M   0x20000u
#define TX_AT 0x10000u
#define RX_AT 0x18000u
#define MARK  0x20000u /* source and destination of markers */
#define DATA  0x100000u
#define Q(q)  (0x1000u + (q) * 0x1000u)

struct queue {
	struct driver *d;
	uint32_t base, q;
	uint32_t next, id; /* descriptor and ring id of it, the same on both sides */
};

static void engine_init(struct driver *d, uint32_t base)
{
	static const uint32_t halves[] = { 0, S2M };
	const uint32_t wrapper = base + d->chip->sdma;

	wr(d, base + 0x254, 0x000fffff | 1u << 24); /* packets of any length, 0 is 64 KiB */
	for (unsigned int h = 0; h < 2; h++) {
		wr(d, base + halves[h] + 0x304, 65 | 1u << 16); /* descriptors of a packet */
		wr(d, base + halves[h] + 0x308, 8 << 4 | 1 | 64 << 8);
		wr(d, base + halves[h] + 0x11c, 8 | 1u << 16);
		assert_int_equal(rd(d, base + halves[h] + 0x200), 0); /* idle */
		wr(d, base + halves[h] + 0x204, 1);
		assert_int_equal(rd(d, base + halves[h] + 0x200), 0x1111); /* normal */
	}
	assert_int_equal(rd(d, base + 0x604) & 0xff, 4); /* revision of the engine */
	wr(d, wrapper + 0x1c, 1);
	wr(d, wrapper + 0x20, 1);
	wr(d, wrapper + 0x00, 1);
	if (d->chip->id != 0x7164 && d->chip->id != 0x7264)
		wr(d, wrapper + 0x800, 0x26);
}

static struct queue queue_init(struct driver *d, uint32_t base, uint32_t q)
{
	const uint64_t tx = d->chip->host | (IOVA + TX_AT), rx = d->chip->host | (IOVA + RX_AT);

	for (unsigned int h = 0; h < 2; h++) {
		const uint32_t at = base + h * S2M + Q(q);
		const uint64_t ring = h ? rx : tx;

		assert_int_equal(rd(d, at + 0x20), 3u << 24);
		wr(d, at + (h ? 0x64 : 0xb0), 1u << 8); /* queue reset */
		wr(d, at + 0x28, (uint32_t)ring);
		wr(d, at + 0x2c, (uint32_t)(ring >> 32));
		wr(d, at + 0x30, RING);
		wr(d, at + (h ? 0x54 : 0xa0), 0); /* no completion ring */
		wr(d, at + 0x20, 3u << 24 | 1u << 16 | 1u << 17);
	}
	/* Barriers of descriptors have an effect. */
	wr(d, base + Q(q) + 0x74, rd(d, base + Q(q) + 0x74) & ~4u);
	return (struct queue){ d, base, q, 0, 1 };
}

static void put(uint8_t *at, uint32_t ctrl, uint32_t meta, uint64_t addr)
{
	memcpy(at, &ctrl, 4);
	memcpy(at + 4, &meta, 4);
	memcpy(at + 8, &addr, 8);
}

static void prepare(struct queue *u, uint64_t dst, uint64_t src, uint32_t bytes, bool barrier)
{
	const uint32_t length = bytes & 0xffff, id = u->id << 24;

	put(u->d->host + TX_AT + u->next * 16, length | id | 1u << 26 | 1u << 27,
	    1u << 0 | 1u << 1 | 1u << 19 | 2u << 23 | (barrier ? 1u << 26 : 0), src);
	put(u->d->host + RX_AT + u->next * 16, length | id, 0, dst);
	if (++u->next == RING) {
		u->next = 0;
		u->id = (u->id + 1) & 3;
	}
}

/* As ndma_memcpy(): pieces of up to 64 KiB, then the marker, polled. */
static void copy(struct queue *u, uint64_t dst, uint64_t src, uint32_t bytes)
{
	struct driver *d = u->d;
	const uint32_t marker = 0xabcdef01;
	const uint64_t host = d->chip->host | (IOVA + MARK);
	volatile uint32_t *seen = (volatile uint32_t *)(d->host + MARK + 4);
	uint32_t descs = 0;

	memcpy(d->host + MARK, &marker, 4);
	*seen = 0;
	for (uint32_t at = 0; at < bytes; descs++) {
		const uint32_t n = bytes - at < 0x10000 ? bytes - at : 0x10000;

		prepare(u, dst + at, src + at, n, false);
		at += n;
	}
	prepare(u, host + 4, host, 4, true);
	descs++;
	wr(d, u->base + S2M + Q(u->q) + 0x38, descs); /* destinations first */
	wr(d, u->base + Q(u->q) + 0x38, descs);
	poll(*seen == marker);
}

static void copies(struct driver *d)
{
	uint64_t there, back = d->chip->host | (IOVA + 3 * DATA);
	const uint64_t data = d->chip->host | (IOVA + DATA);

	for (uint32_t i = 0; i < 2 * DATA; i++)
		d->host[DATA + i] = (uint8_t)(i * 13 + i / 509);
	for (unsigned int e = 0; e < 2; e++) {
		struct queue u;

		engine_init(d, d->chip->udma[e]);
		u = queue_init(d, d->chip->udma[e], e);
		there = d->chip->stack[e] + 0x1000000;
		/* To HBM and back, four times around the ring. */
		for (uint32_t i = 0; i < 4 * RING / 6; i++) {
			const uint32_t bytes = 0x20001 + i;

			copy(&u, there + i, data + i, bytes);
			memset(d->host + 3 * DATA, 0, bytes);
			copy(&u, back, there + i, bytes);
			assert_memory_equal(d->host + 3 * DATA, d->host + DATA + i, bytes);
		}
		/* Head, tail and current are where the driver is, with the ring id. */
		poll(rd(d, u.base + Q(u.q) + 0x40) == (u.next | u.id << 30));
		assert_int_equal(rd(d, u.base + S2M + Q(u.q) + 0x40), u.next | u.id << 30);
		assert_int_equal(rd(d, u.base + Q(u.q) + 0x3c), u.next | u.id << 30);
		assert_int_equal(rd(d, u.base + Q(u.q) + 0x34), u.next | u.id << 30);
	}
}

/* Rings that are prepared once and rung again: ring ids are not looked at. */
static void replay(struct driver *d)
{
	const uint32_t base = d->chip->udma[0];
	const uint64_t stack = d->chip->stack[0] + 0x1000000;
	struct queue u;

	wr(d, base + 0x20c, rd(d, base + 0x20c) | 1u << 17);
	wr(d, base + S2M + 0x20c, rd(d, base + S2M + 0x20c) | 1u << 11);
	wr(d, base + Q(0) + 0x20, 3u << 24);
	wr(d, base + S2M + Q(0) + 0x20, 3u << 24);
	u = queue_init(d, base, 0);
	for (uint32_t i = 0; i < RING; i++)
		prepare(&u, stack + i * 16, (d->chip->host | (IOVA + DATA)) + i * 16, 16, false);
	for (uint8_t lap = 1; lap < 6; lap++) {
		memset(d->host + DATA, lap, RING * 16);
		wr(d, base + S2M + Q(0) + 0x38, RING);
		wr(d, base + Q(0) + 0x38, RING);
		poll((rd(d, base + Q(0) + 0x40) & 0xffffff) == 0 &&
		     rd(d, base + Q(0) + 0x40) >> 30 == (1u + lap) % 4);
		assert_int_equal(((uint8_t *)nm_hbm_ptr(d->dev))[0x1000000 + RING * 16 - 1], lap);
	}
}

static void notification_queue(struct driver *d, uint32_t at, uint64_t addr, uint32_t bytes)
{
	wr(d, at + 0x100, (uint32_t)addr);
	wr(d, at + 0x104, (uint32_t)(addr >> 32));
	wr(d, at + 0x108, bytes);
}

/*
 * All types and 16 engines of a core and of a TopSP; size and base 0 stop them. Which entries there are
 * is not public, nor what they are made of: that an event leaves one is the model's.
 */
static void notification_queues(struct driver *d, unsigned int which)
{
	const uint32_t at = d->chip->notify[which], events = at + 2 * 16 * 0x28;
	const uint8_t *ring = d->host + 0x8000;
	uint8_t before[4096];

	for (uint32_t i = 0; i < 6 * 16; i++) {
		notification_queue(d, at + i * 0x28, d->chip->host | (IOVA + 0x8000), 4096);
		assert_int_equal(rd(d, at + i * 0x28 + 0x108), 4096);
		notification_queue(d, at + i * 0x28, 0, 0);
	}
	memset(d->host + 0x8000, 0, sizeof(before));
	notification_queue(d, events, d->chip->host | (IOVA + 0x8000), 4096);
	for (uint32_t i = 0; i < 4096 / 32 + 1; i++)
		wr(d, d->chip->event[which] + 4 * (i % 256), i + 1);
	/* A lap and one more: the phase of the first entry has changed. */
	assert_int_equal(ring[0], 0);
	assert_int_equal(ring[32], 1);
	assert_int_equal(ring[4096 - 32], 1);
	memcpy(before, ring, sizeof(before));
	notification_queue(d, events, 0, 0);
	wr(d, d->chip->event[which], 0);
	assert_memory_equal(ring, before, sizeof(before));
	/* A size that the hardware can't have is said to be one. */
	notification_queue(d, events, d->chip->host | (IOVA + 0x8000), 3000);
	assert_int_equal(d->complaints, 1);
	assert_non_null(strstr(d->text, "size 3000 is not a power of two"));
	d->complaints = 0;
	wr(d, d->chip->event[which], 7);
	assert_memory_equal(ring, before, sizeof(before));
	notification_queue(d, events, 0, 0);
}

/* --- all of it -------------------------------------------------------------------- */

static void virtual_devices(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < sizeof(chips) / sizeof(chips[0]); i++) {
		struct driver *d = probe(&chips[i], false);

		reset_by_register(d, chips[i].reset_all);
		mailbox(d);
		notification_queues(d, 0);
		notification_queues(d, 1);
		copies(d);
		replay(d);
		reset_by_register(d, chips[i].reset_all);
		assert_int_equal(rd(d, chips[i].udma[0] + 0x200), 0);
		copies(d);
		health(d);
		remove_device(d);
	}
}

static void silicon(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < sizeof(chips) / sizeof(chips[0]); i++) {
		struct driver *d = probe(&chips[i], true);

		reset_by_firmware(d, 1, 0);
		mailbox(d);
		copies(d);
		/* One core with what belongs to it. */
		reset_by_firmware(d, 2, chips[i].id == 0x7364 ? 0x010101 : 0x000701);
		registers_by_request(d);
		remove_device(d);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(virtual_devices),
		cmocka_unit_test(silicon),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
