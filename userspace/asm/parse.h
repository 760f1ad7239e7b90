/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the words of one line; the first error of a text is kept and ends it. */
#ifndef NEURON_ASM_PARSE_H
#define NEURON_ASM_PARSE_H

#include "neuron_asm.h"
#include "table.h"

struct reader {
	const char *line, *at, *end; /* of the line; end is its newline or the text's end */
	unsigned int number;
	struct neuron_asm_error *error;
};

/* Says what is wrong at a place of the line; false. */
bool asm_fail(struct reader *r, const char *at, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Goes to the next word; false at the end of the line or at a comment. */
bool asm_more(struct reader *r);

/* Length of the word at r->at: up to a blank or the end of the line. */
int asm_word(const struct reader *r);

/* Value of a digit, hexadecimal in either case; 99 for another character. */
int asm_digit(char c);

/* Reads KEY=VALUE to the end of the line into bytes. */
bool asm_operands(struct reader *r, const struct operand *table, unsigned int in, uint8_t *bytes);

#endif /* NEURON_ASM_PARSE_H */
