// SPDX-License-Identifier: Apache-2.0
/* Text to program images: lines, and the layout that the compiler gives images too. */
#include <stdlib.h>
#include <string.h>

#include "neuron_crc32c.h"
#include "neuron_program.h"
#include "neuron_queue.h"
#include "parse.h"

struct bytes {
	uint8_t *at;
	size_t length, room;
};

struct assembly {
	struct reader r;
	struct nprog_header header;
	struct bytes slots, constants, image;
	struct bytes stream[EXI_ENGINES];
	uint32_t engine; /* EXI_ENGINES: none named yet */
	bool headed; /* .program has been */
	bool listed; /* and any other line that says a part of an image */
};

static uint8_t *grow(struct reader *r, struct bytes *b, size_t n)
{
	uint8_t *at;

	if (b->length + n > NPROG_IMAGE_MAX) {
		asm_fail(r, r->line, "program is larger than the %u bytes of an image; split it",
			 NPROG_IMAGE_MAX);
		return NULL;
	}
	if (b->length + n > b->room) {
		const size_t room = (b->length + n) * 2;

		at = realloc(b->at, room);
		if (!at) {
			asm_fail(r, r->line, "no memory for %zu bytes; free some", room);
			return NULL;
		}
		b->at = at;
		b->room = room;
	}
	at = b->at + b->length;
	memset(at, 0, n);
	b->length += n;
	return at;
}

/* Bytes as pairs of digits up to the end of the line. */
static bool put_hex(struct reader *r, struct bytes *b)
{
	while (asm_more(r)) {
		const int high = asm_digit(r->at[0]);
		const int low = r->at + 1 < r->end ? asm_digit(r->at[1]) : 99;
		uint8_t *at;

		if (high > 15 || low > 15)
			return asm_fail(r, r->at,
					"'%.*s' is no byte; write pairs of the digits 0 to f",
					asm_word(r), r->at);
		at = grow(r, b, 1);
		if (!at)
			return false;
		*at = (uint8_t)(high << 4 | low);
		r->at += 2;
	}
	return true;
}

static bool is_word(const struct reader *r, int n, const char *word)
{
	return strlen(word) == (size_t)n && !memcmp(r->at, word, (size_t)n);
}

static bool put_engine(struct assembly *a)
{
	struct reader *r = &a->r;
	int n;

	n = asm_more(r) ? asm_word(r) : 0;
	for (a->engine = 0; a->engine < EXI_ENGINES; a->engine++)
		if (is_word(r, n, isa_engine_name(a->engine))) {
			r->at += n;
			return !asm_more(r) ||
			       asm_fail(r, r->at, "'%.*s' follows the engine; remove it",
					asm_word(r), r->at);
		}
	return asm_fail(r, r->at, "'%.*s' is no engine; write one of the %u, such as %s", n, r->at,
			EXI_ENGINES, isa_engine_name(ISA_SYNC));
}

static bool put_raw(struct assembly *a, struct bytes *stream)
{
	const char *start = a->r.at;
	const size_t before = stream->length;

	if (!put_hex(&a->r, stream))
		return false;
	return stream->length - before == ISA_INST_BYTES ||
	       asm_fail(&a->r, start, ".inst has %zu bytes; write the %u of an instruction",
			stream->length - before, ISA_INST_BYTES);
}

static bool put_inst(struct assembly *a, int n)
{
	struct reader *r = &a->r;
	uint8_t *inst;

	if (a->engine == EXI_ENGINES)
		return asm_fail(r, r->at, "'%.*s' stands before any .engine; write that line first",
				n, r->at);
	if (is_word(r, n, ".inst")) {
		r->at += n;
		return put_raw(a, &a->stream[a->engine]);
	}
	for (uint32_t opcode = 0; opcode <= UINT8_MAX; opcode++) {
		const char *name = isa_opcode_name(opcode);

		if (!name || !is_word(r, n, name))
			continue;
		inst = grow(r, &a->stream[a->engine], ISA_INST_BYTES);
		if (!inst)
			return false;
		inst[0] = (uint8_t)opcode;
		r->at += n;
		return asm_operands(r, asm_inst_operands, asm_places(opcode), inst);
	}
	return asm_fail(r, r->at, "'%.*s' is no instruction or directive; see docs/program-text.md",
			n, r->at);
}

static bool put_part(struct assembly *a, int n)
{
	struct reader *r = &a->r;
	uint8_t *slot;

	if (is_word(r, n, ".program")) {
		if (a->headed)
			return asm_fail(r, r->at, ".program stands above already; write it once");
		a->headed = true;
		r->at += n;
		return asm_operands(r, asm_header_operands, IN_ALL, (uint8_t *)&a->header);
	}
	if (is_word(r, n, ".slot")) {
		r->at += n;
		slot = grow(r, &a->slots, sizeof(struct nprog_slot));
		return slot && asm_operands(r, asm_slot_operands, IN_ALL, slot);
	}
	if (is_word(r, n, ".const")) {
		r->at += n;
		return put_hex(r, &a->constants);
	}
	if (is_word(r, n, ".engine")) {
		r->at += n;
		return put_engine(a);
	}
	return put_inst(a, n);
}

/* One line of a text of .image lines, or of one that says an image part by part. */
static bool put_line(struct assembly *a)
{
	struct reader *r = &a->r;
	bool raw;
	int n;

	if (!asm_more(r))
		return true;
	n = asm_word(r);
	raw = is_word(r, n, ".image");
	if (raw ? a->listed : a->image.length > 0)
		return asm_fail(r, r->at,
				"'%.*s' stands with %s, and .image says all of an image; leave one "
				"of them out",
				n, r->at, raw ? "other lines" : ".image");
	if (raw) {
		r->at += n;
		return put_hex(r, &a->image);
	}
	if (!a->headed && !is_word(r, n, ".program"))
		return asm_fail(r, r->at, "'%.*s' stands before .program; write that line first", n,
				r->at);
	a->listed = true;
	return put_part(a, n);
}

static uint64_t align_up(uint64_t n)
{
	return (n + NPROG_ALIGN - 1) / NPROG_ALIGN * NPROG_ALIGN;
}

static uint64_t lay_out(struct assembly *a)
{
	struct nprog_header *h = &a->header;
	uint64_t at = sizeof(*h);

	h->magic = NPROG_MAGIC;
	h->header_bytes = sizeof(*h);
	h->n_slots = (uint32_t)(a->slots.length / sizeof(struct nprog_slot));
	h->slot_offset = (uint32_t)at;
	at = align_up(at + a->slots.length);
	for (uint32_t e = 0; e < EXI_ENGINES; e++) {
		h->stream[e].offset = (uint32_t)at;
		h->stream[e].count = (uint32_t)(a->stream[e].length / ISA_INST_BYTES);
		at = align_up(at + a->stream[e].length);
	}
	h->const_offset = (uint32_t)at;
	h->const_bytes = (uint32_t)a->constants.length;
	at = align_up(at + a->constants.length);
	h->image_bytes = (uint32_t)at;
	return at;
}

static void copy(uint8_t *to, const struct bytes *from)
{
	if (from->length)
		memcpy(to, from->at, from->length);
}

/* The image, or NULL and why. */
static uint8_t *link_image(struct assembly *a, size_t *size)
{
	const uint64_t bytes = a->image.length ? a->image.length : lay_out(a);
	struct nprog_header *h = &a->header;
	uint8_t *image = bytes <= NPROG_IMAGE_MAX ? calloc(1, bytes) : NULL;

	a->r.line = a->r.at;
	a->r.number = 0;
	if (!image) {
		asm_fail(&a->r, a->r.at,
			 "no image of %llu bytes, the limit is %u; split the program or free "
			 "memory",
			 (unsigned long long)bytes, NPROG_IMAGE_MAX);
		return NULL;
	}
	*size = bytes;
	if (a->image.length) {
		copy(image, &a->image);
		return image;
	}
	memcpy(image, h, sizeof(*h));
	copy(image + h->slot_offset, &a->slots);
	for (uint32_t e = 0; e < EXI_ENGINES; e++)
		copy(image + h->stream[e].offset, &a->stream[e]);
	copy(image + h->const_offset, &a->constants);
	((struct nprog_header *)image)->crc32c = hw_crc32c(0, image, (uint32_t)bytes);
	return image;
}

static bool put_lines(struct assembly *a, const char *text, size_t length)
{
	const char *const end = text + length;

	a->r.end = text;
	for (const char *line = text; line < end; line = a->r.end + 1) {
		const char *stop = memchr(line, '\n', (size_t)(end - line));

		a->r.line = line;
		a->r.at = line;
		a->r.end = stop ? stop : end;
		a->r.number++;
		if (!put_line(a))
			return false;
	}
	return true;
}

int neuron_asm_parse(const char *text, size_t length, void **image, size_t *size,
		     struct neuron_asm_error *error)
{
	struct assembly a = {
		.r = { .line = text, .at = text, .end = text, .error = error },
		.engine = EXI_ENGINES,
	};

	*image = put_lines(&a, text, length) ? link_image(&a, size) : NULL;
	free(a.slots.at);
	free(a.constants.at);
	free(a.image.at);
	for (uint32_t e = 0; e < EXI_ENGINES; e++)
		free(a.stream[e].at);
	return *image ? 0 : -1;
}
