// SPDX-License-Identifier: Apache-2.0
/*
 * neuron-objdump: prints a program image as text that neuron-as assembles to the same bytes.
 */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "neuron_asm.h"
#include "program_file.h"

static error_t option(int key, char *arg, struct argp_state *state)
{
	const char **path = state->input;

	if (key != ARGP_KEY_ARG || *path)
		return ARGP_ERR_UNKNOWN;
	*path = arg;
	return 0;
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		.parser = option,
		.args_doc = "[IMAGE]",
		.doc = "Prints a program image as text, which neuron-as assembles to the same "
		       "bytes. "
		       "IMAGE is a file, or - for standard input (the default).",
	};
	const char *path = NULL;
	size_t size;
	void *image;
	char *text;
	int status;

	argp_parse(&argp, argc, argv, 0, NULL, &path);
	image = program_file_read("neuron-objdump", path ? path : "-", &size);
	text = neuron_asm_print(image, size);
	free(image);
	if (!text) {
		fprintf(stderr, "neuron-objdump: no memory for the text of %zu bytes\n", size);
		return 1;
	}
	status = program_file_write("neuron-objdump", "-", text, strlen(text));
	free(text);
	return status;
}
