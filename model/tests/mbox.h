/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to the firmware, as a driver sends them. */
#ifndef NM_TEST_MBOX_H
#define NM_TEST_MBOX_H

#include "fixture.h"
#include "neuron_mailbox.h"

#define REQUEST	 0x1000u
#define RESPONSE 0x2000u
#define NQ_AT	 0x4000u

static inline uint32_t misc_read(struct fixture *f, uint32_t reg)
{
	return apb_read(f, V3_APB_MISC_RAM + reg);
}

static inline void misc_write(struct fixture *f, uint32_t reg, uint32_t value)
{
	apb_write(f, V3_APB_MISC_RAM + reg, value);
}

/* Bit by bit, apart from the implementation. */
static inline uint32_t crc32c(const uint8_t *p, size_t n)
{
	uint32_t crc = 0xffffffff;

	for (size_t i = 0; i < n * 8; i++) {
		uint32_t bit = (crc ^ p[i / 8] >> (i % 8)) & 1;

		crc = crc >> 1 ^ (bit ? 0x82f63b78 : 0);
	}
	return ~crc;
}

static inline void send(struct fixture *f, uint8_t sequence, uint8_t command, const void *payload,
			size_t n, uint32_t spoil)
{
	struct mbox_request *req = (struct mbox_request *)(f->host + REQUEST);

	*req = (struct mbox_request){ .sequence = sequence,
				      .command = command,
				      .size = (uint16_t)(sizeof(*req) + n) };
	if (n)
		memcpy(req + 1, payload, n);
	req->crc = crc32c((uint8_t *)req, sizeof(*req) + n) ^ spoil;
	memset(f->host + RESPONSE, 0, 0x1000);
	misc_write(f, MBOX_REQUEST_LO, (uint32_t)host_addr(REQUEST));
	misc_write(f, MBOX_REQUEST_HI, (uint32_t)(host_addr(REQUEST) >> 32));
	misc_write(f, MBOX_RESPONSE_LO, (uint32_t)host_addr(RESPONSE));
	misc_write(f, MBOX_RESPONSE_HI, (uint32_t)(host_addr(RESPONSE) >> 32));
	misc_write(f, MBOX_TRIGGER, 1);
}

static inline const struct mbox_response *response(struct fixture *f, uint8_t sequence)
{
	_Atomic uint8_t *seen = (_Atomic uint8_t *)(f->host + RESPONSE);

	wait_for(*seen == sequence);
	return (const struct mbox_response *)(f->host + RESPONSE);
}

/* The same on V4, in registers; the header of the answer. */
static inline uint32_t send_in_registers(struct fixture *f, uint8_t sequence, uint8_t command,
					 uint64_t payload)
{
	uint32_t words[4] = { 16u << 16 | (uint32_t)command << 8 | sequence, 0, (uint32_t)payload,
			      (uint32_t)(payload >> 32) };

	misc_write(f, MBOX_DATA, words[2]);
	misc_write(f, MBOX_DATA + 4, words[3]);
	misc_write(f, MBOX_REQUEST_HI, words[0]);
	misc_write(f, MBOX_REQUEST_LO, crc32c((const uint8_t *)words, sizeof(words)));
	misc_write(f, MBOX_RESPONSE_HI, 0);
	misc_write(f, MBOX_RESPONSE_LO, 0);
	misc_write(f, MBOX_ACK, 1);
	misc_write(f, MBOX_TRIGGER, 1);
	wait_for(misc_read(f, MBOX_TRIGGER) == 0);
	return misc_read(f, MBOX_REQUEST_HI);
}

#endif /* NM_TEST_MBOX_H */
