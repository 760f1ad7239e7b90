// SPDX-License-Identifier: Apache-2.0
/* Program images to text. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "neuron_asm.h"
#include "neuron_program_check.h"
#include "table.h"

#define HEX_ROW 32 /* bytes a line of .const and .image */

static bool all_zero(const uint8_t *at, size_t n)
{
	return nprog_zero_until(at, (uint32_t)n) == n;
}

static void put_hex(FILE *out, const uint8_t *at, size_t n)
{
	for (size_t i = 0; i < n; i++)
		fprintf(out, "%02x", at[i]);
}

static void put_rows(FILE *out, const char *directive, const uint8_t *at, size_t n)
{
	for (size_t i = 0; i < n; i += HEX_ROW) {
		fprintf(out, "%s ", directive);
		put_hex(out, at + i, n - i < HEX_ROW ? n - i : HEX_ROW);
		fputc('\n', out);
	}
}

static void put_string(FILE *out, const uint8_t *at, size_t n)
{
	while (n && !at[n - 1])
		n--;
	fputc('"', out);
	for (size_t i = 0; i < n; i++)
		if (at[i] < ' ' || at[i] > '~' || at[i] == '"' || at[i] == '\\')
			fprintf(out, "\\x%02x", at[i]);
		else
			fputc(at[i], out);
	fputc('"', out);
}

static void put_name(FILE *out, const struct name *names, uint64_t value)
{
	for (; names->text; names++)
		if (names->value == value) {
			fputs(names->text, out);
			return;
		}
	fprintf(out, "%" PRIu64, value);
}

static void put_flags(FILE *out, const struct name *names, uint64_t value)
{
	const char *between = "";

	for (; names->text; names++)
		if (value & names->value) {
			fprintf(out, "%s%s", between, names->text);
			between = "|";
			value &= ~names->value;
		}
	if (value || !*between)
		fprintf(out, "%s0x%" PRIx64, between, value);
}

static void put_part(FILE *out, const struct part *p, const uint8_t *at)
{
	const uint64_t value = p->kind == PART_STRING ? 0 : asm_get(at, p->bytes);

	fputs(p->before, out);
	switch (p->kind) {
	case PART_NUMBER:
		fprintf(out, "%" PRIu64, value);
		break;
	case PART_SIGNED:
		fprintf(out, "%" PRId64, p->bytes == 4 ? (int32_t)value : (int64_t)value);
		break;
	case PART_HEX:
		fprintf(out, "0x%" PRIx64, value);
		break;
	case PART_NAMES:
		put_name(out, p->names, value);
		break;
	case PART_FLAGS:
		put_flags(out, p->names, value);
		break;
	case PART_STRING:
		put_string(out, at, p->bytes);
		break;
	default:
		break;
	}
}

static bool rest_is_zero(const struct part *p, const uint8_t *at)
{
	for (; p->kind != PART_END; p++)
		if (!all_zero(at + p->at, p->bytes))
			return false;
	return true;
}

/* Whether the parts say all that the bytes of this operand hold. */
static bool has_text(const struct operand *o, const uint8_t *at)
{
	uint8_t said[ISA_INST_BYTES] = { 0 };

	for (const struct part *p = o->parts; p->kind != PART_END; p++) {
		if (p->kind == PART_FIXED && asm_get(at + p->at, p->bytes) != p->value)
			return false;
		memcpy(said + p->at, at + p->at, p->bytes);
	}
	return !memcmp(said, at, o->bytes);
}

static void put_operand(FILE *out, const struct operand *o, const uint8_t *at)
{
	fprintf(out, " %s=", o->key);
	for (const struct part *p = o->parts; p->kind != PART_END; p++) {
		if (p->may_end && rest_is_zero(p, at))
			break;
		put_part(out, p, at + p->at);
	}
}

/* Prints the operands that are not zero, and clears in bytes what it printed. */
static void put_operands(FILE *out, const struct operand *o, unsigned int in, uint8_t *bytes)
{
	for (; o->key; o++) {
		uint8_t *at = bytes + o->at;

		if (!(o->in & in) || all_zero(at, o->bytes) || !has_text(o, at))
			continue;
		put_operand(out, o, at);
		memset(at, 0, o->bytes);
	}
}

static void put_inst(FILE *out, const uint8_t *bytes)
{
	const char *name = isa_opcode_name(bytes[0]);
	uint8_t left[ISA_INST_BYTES];
	char *line = NULL;
	size_t length;
	FILE *f = name ? open_memstream(&line, &length) : NULL;

	memcpy(left, bytes, sizeof(left));
	if (f) {
		left[0] = 0;
		put_operands(f, asm_inst_operands, asm_places(bytes[0]), left);
		if (fclose(f))
			left[0] = 1;
	}
	if (f && all_zero(left, sizeof(left))) {
		fprintf(out, "\t%s%s\n", name, line);
	} else {
		fputs("\t.inst ", out);
		put_hex(out, bytes, ISA_INST_BYTES);
		fputc('\n', out);
	}
	free(line);
}

static void put_program(FILE *out, const uint8_t *image)
{
	struct nprog_header h;
	struct nprog_slot slot;

	memcpy(&h, image, sizeof(h));
	fputs(".program", out);
	put_operands(out, asm_header_operands, IN_ALL, (uint8_t *)&h);
	fputc('\n', out);
	for (uint32_t i = 0; i < h.n_slots; i++) {
		memcpy(&slot, image + h.slot_offset + i * sizeof(slot), sizeof(slot));
		fputs(".slot", out);
		put_operands(out, asm_slot_operands, IN_ALL, (uint8_t *)&slot);
		fputc('\n', out);
	}
	for (uint32_t e = 0; e < EXI_ENGINES; e++) {
		if (h.stream[e].count)
			fprintf(out, ".engine %s\n", isa_engine_name(e));
		for (uint32_t i = 0; i < h.stream[e].count; i++)
			put_inst(out, image + h.stream[e].offset + (size_t)i * ISA_INST_BYTES);
	}
	put_rows(out, ".const", image + h.const_offset, h.const_bytes);
}

static char *print(const void *image, size_t size, bool raw)
{
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	if (!out)
		return NULL;
	if (raw)
		put_rows(out, ".image", image, size);
	else
		put_program(out, image);
	if (!fclose(out))
		return text;
	free(text);
	return NULL;
}

/* Whether the text says all of the image: its layout and checksum are the assembler's too. */
static bool assembles_to(const char *text, const void *image, size_t size)
{
	struct neuron_asm_error error;
	void *again = NULL;
	size_t n = 0;
	bool same = !neuron_asm_parse(text, strlen(text), &again, &n, &error) && n == size &&
		    !memcmp(again, image, size);

	free(again);
	return same;
}

char *neuron_asm_print(const void *image, size_t size)
{
	const struct nprog_header *h = image;
	struct nprog_finding finding;
	char *text;

	if (size < sizeof(*h) || nprog_check(image, size, h->arch, &finding) != NPROG_OK)
		return print(image, size, true);
	text = print(image, size, false);
	if (text && !assembles_to(text, image, size)) {
		free(text);
		text = print(image, size, true);
	}
	return text;
}
