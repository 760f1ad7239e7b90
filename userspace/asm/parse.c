// SPDX-License-Identifier: Apache-2.0
/* Operands of a line, read by the tables. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "parse.h"

bool asm_fail(struct reader *r, const char *at, const char *format, ...)
{
	va_list args;

	r->error->line = r->number;
	r->error->column = (unsigned int)(at - r->line) + 1;
	va_start(args, format);
	vsnprintf(r->error->text, sizeof(r->error->text), format, args);
	va_end(args);
	return false;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

bool asm_more(struct reader *r)
{
	while (r->at < r->end && is_blank(*r->at))
		r->at++;
	return r->at < r->end && *r->at != ';';
}

int asm_word(const struct reader *r)
{
	int n = 0;

	/* No message has room for more of it. */
	while (r->at + n < r->end && !is_blank(r->at[n]) && n < 64)
		n++;
	return n;
}

int asm_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return 99;
}

static bool take(struct reader *r, const char *literal)
{
	const size_t n = strlen(literal);

	if ((size_t)(r->end - r->at) < n || memcmp(r->at, literal, n))
		return false;
	r->at += n;
	return true;
}

/* Digits up to a limit, decimal or after 0x hexadecimal. */
static bool digits(struct reader *r, uint64_t limit, uint64_t *value)
{
	const char *start = r->at;
	const unsigned int base = take(r, "0x") ? 16 : 10;
	const char *first = r->at;

	*value = 0;
	for (; r->at < r->end && asm_digit(*r->at) < (int)base; r->at++) {
		const unsigned int d = (unsigned int)asm_digit(*r->at);

		if (*value > (limit - d) / base)
			return asm_fail(r, start,
					"number is above the field's limit, %" PRIu64 "; write a "
					"smaller one",
					limit);
		*value = *value * base + d;
	}
	if (r->at == first)
		return asm_fail(r, start, "'%.*s' is no number; write one, decimal or after 0x",
				asm_word(r), r->at);
	return true;
}

static bool number(struct reader *r, const struct part *p, uint8_t *at)
{
	const uint64_t all = p->bytes == 8 ? UINT64_MAX : (UINT64_C(1) << p->bytes * 8) - 1;
	const bool is_signed = p->kind == PART_SIGNED;
	const bool minus = is_signed && take(r, "-");
	uint64_t value;

	if (!digits(r, is_signed ? (all >> 1) + minus : all, &value))
		return false;
	asm_put(at, p->bytes, minus ? 0 - value : value);
	return true;
}

static bool is_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

static bool named(struct reader *r, const struct part *p, uint8_t *at)
{
	int n = 0;

	if (r->at < r->end && asm_digit(*r->at) < 10)
		return number(r, p, at);
	while (r->at + n < r->end && is_name(r->at[n]) && n < 64)
		n++;
	for (const struct name *k = p->names; k->text; k++)
		if (strlen(k->text) == (size_t)n && !memcmp(k->text, r->at, (size_t)n)) {
			asm_put(at, p->bytes, k->value);
			r->at += n;
			return true;
		}
	return asm_fail(r, r->at,
			"'%.*s' is no name that may stand here; write one like '%s', or a number",
			asm_word(r), r->at, p->names->text);
}

static bool flagged(struct reader *r, const struct part *p, uint8_t *at)
{
	uint64_t value = 0;

	do {
		if (!named(r, p, at))
			return false;
		value |= asm_get(at, p->bytes);
	} while (take(r, "|"));
	asm_put(at, p->bytes, value);
	return true;
}

/* One character of a string, or the byte of \xHH. */
static bool character(struct reader *r, uint8_t *out)
{
	if (*r->at != '\\') {
		*out = (uint8_t)*r->at++;
		return true;
	}
	if (r->end - r->at < 4 || r->at[1] != 'x' || asm_digit(r->at[2]) > 15 ||
	    asm_digit(r->at[3]) > 15)
		return asm_fail(r, r->at,
				"'\\' is not followed by x and two digits; write it as \\x5c");
	*out = (uint8_t)(asm_digit(r->at[2]) << 4 | asm_digit(r->at[3]));
	r->at += 4;
	return true;
}

static bool string(struct reader *r, const struct part *p, uint8_t *at)
{
	const char *start = r->at;
	unsigned int n = 0;

	if (!take(r, "\""))
		return asm_fail(r, start, "'%.*s' is no string; put it in quotes", asm_word(r),
				start);
	while (r->at < r->end && *r->at != '"') {
		if (n == p->bytes)
			return asm_fail(r, start, "string has more than %u bytes; shorten it",
					p->bytes);
		if (!character(r, &at[n++]))
			return false;
	}
	return take(r, "\"") || asm_fail(r, start, "string has no end; close its quotes");
}

static bool part(struct reader *r, const struct part *p, uint8_t *at)
{
	switch (p->kind) {
	case PART_NAMES:
		return named(r, p, at);
	case PART_FLAGS:
		return flagged(r, p, at);
	case PART_STRING:
		return string(r, p, at);
	case PART_FIXED:
		asm_put(at, p->bytes, p->value);
		return true;
	default:
		return number(r, p, at);
	}
}

static bool value(struct reader *r, const struct operand *o, uint8_t *at)
{
	for (const struct part *p = o->parts; p->kind != PART_END; p++) {
		if (!take(r, p->before)) {
			if (p->may_end)
				break;
			return asm_fail(r, r->at,
					"'%.*s' stands where %s= has '%s'; see its form in "
					"docs/program-text.md",
					asm_word(r), r->at, o->key, p->before);
		}
		if (!part(r, p, at + p->at))
			return false;
	}
	if (r->at < r->end && !is_blank(*r->at) && *r->at != ';')
		return asm_fail(r, r->at,
				"'%.*s' follows the value of %s=; put a blank before the next word",
				asm_word(r), r->at, o->key);
	return true;
}

static const struct operand *find(const struct reader *r, const struct operand *o, unsigned int in,
				  size_t length)
{
	for (; o->key; o++)
		if (o->in & in && strlen(o->key) == length && !memcmp(o->key, r->at, length))
			return o;
	return NULL;
}

bool asm_operands(struct reader *r, const struct operand *table, unsigned int in, uint8_t *bytes)
{
	uint64_t seen[ISA_INST_BYTES / 64 * 2] = { 0 }; /* a bit for the first byte of each */

	while (asm_more(r)) {
		const char *start = r->at;
		size_t n = 0;
		const struct operand *o;

		while (r->at + n < r->end && is_name(r->at[n]))
			n++;
		o = find(r, table, in, n);
		if (!o || r->at + n == r->end || r->at[n] != '=')
			return asm_fail(r, start,
					"'%.*s' is no operand of this line; write KEY=VALUE as in "
					"docs/program-text.md",
					asm_word(r), start);
		if (seen[o->at / 64] >> o->at % 64 & 1)
			return asm_fail(r, start,
					"%s= sets what the line has set before; remove one",
					o->key);
		seen[o->at / 64] |= UINT64_C(1) << o->at % 64;
		r->at += n + 1;
		if (!value(r, o, bytes + o->at))
			return false;
	}
	return true;
}
