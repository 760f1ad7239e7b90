/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Program images as text and back. What is printed assembles to the same
 * bytes, for every image: an instruction with a field that has no text is
 * printed as the bytes of .inst, an image of another layout than the
 * assembler's as those of .image. The form: docs/program-text.md.
 */
#ifndef NEURON_ASM_H
#define NEURON_ASM_H

#include <stddef.h>

struct neuron_asm_error {
	unsigned int line, column; /* from 1; 0: the text as a whole */
	char text[256]; /* the word, the limit and what to do */
};

/*
 * Assembles text[0..length). 0, and an image that the caller frees; or -1, and
 * why in *error. Layout and checksum are the assembler's; whether the device
 * accepts the instructions is not checked.
 */
int neuron_asm_parse(const char *text, size_t length, void **image, size_t *size,
		     struct neuron_asm_error *error);

/* Text of the image, any bytes, 8-byte aligned; the caller frees it. NULL: no memory. */
char *neuron_asm_print(const void *image, size_t size);

#endif /* NEURON_ASM_H */
