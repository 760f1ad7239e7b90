// SPDX-License-Identifier: Apache-2.0
/*
 * Requests of the host and both ways to reset (neuron_mailbox.h). Length, sequence and checksum are
 * checked before a command sees anything.
 */
#include "firmware.h"
#include "neuron_crc32c.h"
#include "neuron_mailbox.h"

struct reply {
	struct mbox_response head;
	__u32 values[MBOX_READ_REGS_MAX];
};

/* A whole request; image.c has what is behind it. */
static __u8 *const buffer = (__u8 *)MGMT_STAGE;
static struct reply reply;

/* --- commands ----------------------------------------------------------------- */

/* Each: size bytes of payload, as many as the table asks for or more. An error code of MBOX_*. */

static __u8 read_regs(const __u8 *payload, __u32 size)
{
	const __u32 count = size / 8;
	__u64 addr;

	if (size % 8 || count > MBOX_READ_REGS_MAX) {
		log_guest(GUEST_READ_SIZE,
			  "mailbox: register read with %u bytes of addresses: want 8 to %u in "
			  "steps of 8",
			  size, (__u32)MBOX_READ_REGS_MAX * 8);
		return MBOX_FAILED;
	}
	for (__u32 i = 0; i < count; i++) {
		memcpy(&addr, payload + i * 8, sizeof(addr));
		if (bus_read_register(addr, &reply.values[i]))
			continue;
		log_guest(GUEST_READ_ADDRESS, "mailbox: read of %X, which is no register", addr);
		return MBOX_FAILED;
	}
	reply.head.size = (__u16)(sizeof(reply.head) + count * sizeof(__u32));
	return MBOX_OK;
}

/* Would go to the service provider. */
static __u8 post_metrics(const __u8 *payload, __u32 size)
{
	(void)payload;
	if (size <= MBOX_METRICS_BYTES)
		return MBOX_OK;
	log_guest(GUEST_METRICS_SIZE, "mailbox: %u bytes of metrics, limit %u", size,
		  (__u32)MBOX_METRICS_BYTES);
	return MBOX_FAILED;
}

static __u8 load_firmware(const __u8 *payload, __u32 size)
{
	struct mbox_load_verdict verdict;
	struct mbox_load_firmware what;
	bool good;

	memcpy(&what, payload, sizeof(what));
	if (size != sizeof(what) || what.reserved) {
		log_guest(GUEST_LOAD, "mailbox: firmware load of %u bytes, reserved field %x", size,
			  what.reserved);
		return MBOX_FAILED;
	}
	good = image_load(&what, &verdict);
	if (!good)
		log_info("firmware image refused: verdict %u, value %x, want %x", verdict.verdict,
			 verdict.value, verdict.want);
	memcpy(reply.values, &verdict, sizeof(verdict));
	reply.head.size = sizeof(reply.head) + sizeof(verdict);
	return good ? MBOX_OK : MBOX_FAILED;
}

static const struct {
	__u8 code;
	__u32 least; /* bytes of payload */
	__u8 (*run)(const __u8 *payload, __u32 size);
} commands[] = {
	{ MBOX_CMD_READ_REGS, 8, read_regs },
	{ MBOX_CMD_POST_METRICS, 0, post_metrics },
	{ MBOX_CMD_LOAD_FIRMWARE, sizeof(struct mbox_load_firmware), load_firmware },
};

static __u8 execute(__u8 command, const __u8 *payload, __u32 size)
{
	for (__u32 i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (commands[i].code != command)
			continue;
		if (size >= commands[i].least)
			return commands[i].run(payload, size);
		log_guest(GUEST_READ_SIZE, "mailbox: command %u with %u bytes of payload: want %u",
			  (__u32)command, size, commands[i].least);
		return MBOX_FAILED;
	}
	log_info("mailbox: command %u is not known", (__u32)command);
	return MBOX_UNKNOWN_COMMAND;
}

/* --- requests ----------------------------------------------------------------- */

/* Is this the request that was sent? Its payload is in the buffer. */
static bool intact(const struct mbox_request *req)
{
	struct mbox_request zeroed = *req;
	__u32 crc;

	zeroed.crc = 0;
	crc = hw_crc32c(0, &zeroed, sizeof(zeroed));
	if (hw_crc32c(crc, buffer, req->size - sizeof(*req)) == req->crc)
		return true;
	log_guest(GUEST_REQUEST_CRC, "mailbox: CRC %x of request %u is wrong", req->crc,
		  (__u32)req->sequence);
	return false;
}

/* A damaged request gets no answer: its sequence can't be trusted. The driver tries again. */
static bool fetch(__u64 addr, struct mbox_request *req)
{
	if (!bus_read(addr, req, sizeof(*req))) {
		log_guest(GUEST_REQUEST_ADDRESS, "mailbox: request at %X does not answer", addr);
		return false;
	}
	if (req->size < sizeof(*req) || !req->sequence) {
		log_guest(GUEST_REQUEST_HEADER,
			  "mailbox: request of %u bytes with sequence %u: want at least %u and "
			  "1..255",
			  (__u32)req->size, (__u32)req->sequence, (__u32)sizeof(*req));
		return false;
	}
	if (!bus_read(addr + sizeof(*req), buffer, req->size - sizeof(*req))) {
		log_guest(GUEST_PAYLOAD_ADDRESS,
			  "mailbox: payload of request at %X, %u bytes, does not answer", addr,
			  (__u32)req->size);
		return false;
	}
	return intact(req);
}

/* Carries out a request whose payload is in the buffer. */
static void answer(const struct mbox_request *req)
{
	reply.head.sequence = req->sequence;
	reply.head.size = sizeof(reply.head);
	reply.head.error = execute(req->command, buffer, req->size - (__u32)sizeof(*req));
}

/* Everything, then the sequence that the driver polls for. */
static void respond(__u64 addr)
{
	if (bus_write(addr + 1, (__u8 *)&reply + 1, reply.head.size - 1u) &&
	    bus_write(addr, &reply.head.sequence, 1))
		return;
	log_guest(GUEST_RESPONSE_ADDRESS, "mailbox: response at %X does not answer", addr);
}

static void request(__u64 from, __u64 to)
{
	struct mbox_request req;

	if (!fetch(from, &req))
		return;
	answer(&req);
	respond(to);
}

/* --- requests in registers ------------------------------------------------------ */

static bool in_registers(void)
{
	return chip_is_v4() && misc_read(MBOX_ACK);
}

static bool fetch_registers(struct mbox_request *req)
{
	const __u32 head[2] = { misc_read(MBOX_REQUEST_HI), misc_read(MBOX_REQUEST_LO) };
	__u32 word;

	memcpy(req, head, sizeof(*req));
	if (req->size < sizeof(*req) || req->size - sizeof(*req) > MBOX_DATA_BYTES ||
	    !req->sequence) {
		log_guest(GUEST_REQUEST_HEADER,
			  "mailbox: request in registers of %u bytes with sequence %u: want %u to "
			  "%u and 1..255",
			  (__u32)req->size, (__u32)req->sequence, (__u32)sizeof(*req),
			  (__u32)sizeof(*req) + MBOX_DATA_BYTES);
		return false;
	}
	for (__u32 at = 0; at < req->size - sizeof(*req); at += sizeof(word)) {
		word = misc_read(MBOX_DATA + at);
		memcpy(buffer + at, &word, sizeof(word));
	}
	return intact(req);
}

/* It fits: the most are sixteen registers, asked for with as many bytes as there are. */
static void respond_in_registers(void)
{
	const __u32 bytes = reply.head.size - (__u32)sizeof(reply.head);
	struct mbox_register_response head = { .head = reply.head };
	__u32 words[2];

	head.head.size = (__u16)(sizeof(head) + bytes);
	head.crc = hw_crc32c(hw_crc32c(0, &head, sizeof(head)), reply.values, bytes);
	memcpy(words, &head, sizeof(words));
	for (__u32 i = 0; i < bytes / sizeof(__u32); i++)
		misc_write(MBOX_DATA + i * sizeof(__u32), reply.values[i]);
	misc_write(MBOX_REQUEST_LO, words[1]);
	misc_write(MBOX_REQUEST_HI, words[0]);
}

/* The trigger last: the driver polls it. */
static void registers_done(void)
{
	misc_write(MBOX_ACK, 0);
	misc_write(MBOX_TRIGGER, 0);
}

static void request_in_registers(void)
{
	struct mbox_request req;

	if (fetch_registers(&req)) {
		answer(&req);
		respond_in_registers();
	} else {
		misc_write(MBOX_REQUEST_HI, 0);
	}
	registers_done();
}

/* --- reset -------------------------------------------------------------------- */

static void reset(__u32 type, __u32 map, __u32 map_hi)
{
	misc_write(MBOX_RESET, 0); /* acknowledged */
	if (type != MBOX_RESET_DEVICE && (type != MBOX_RESET_CORES || !map)) {
		log_guest(GUEST_RESET_TYPE,
			  "mailbox: reset type %u with map %x: want %u, or %u with a map", type,
			  map, (__u32)MBOX_RESET_DEVICE, (__u32)MBOX_RESET_CORES);
		return;
	}
	reg_write(MGMT_RESET_MAP, type == MBOX_RESET_DEVICE ? 0 : map);
	reg_write(MGMT_RESET_MAP_HI, map_hi);
	reg_write(MGMT_RESET_GO, 1);
}

void mailbox_start(void)
{
	if (!in_registers())
		return;
	misc_write(MBOX_REQUEST_HI, 0);
	registers_done();
}

void mailbox_doorbell(void)
{
	const __u32 type = misc_read(MBOX_RESET);

	if (type) {
		/* Before the acknowledgement, or the host could take the old state for the end. */
		misc_write(MBOX_STATUS, misc_read(MBOX_STATUS) | MBOX_STATUS_NOT_READY);
		reset(type, misc_read(MBOX_RESET_MAP), misc_read(MBOX_RESET_MAP_HI));
		misc_write(MBOX_STATUS, misc_read(MBOX_STATUS) & ~MBOX_STATUS_NOT_READY);
	} else if (in_registers()) {
		request_in_registers();
	} else {
		request((__u64)misc_read(MBOX_REQUEST_HI) << 32 | misc_read(MBOX_REQUEST_LO),
			(__u64)misc_read(MBOX_RESPONSE_HI) << 32 | misc_read(MBOX_RESPONSE_LO));
	}
	image_start();
}
