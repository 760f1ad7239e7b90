// SPDX-License-Identifier: Apache-2.0
/*
 * neuron-as: assembles the text that neuron-objdump prints, or that a person wrote, to a program image.
 */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>

#include "neuron_asm.h"
#include "program_file.h"

struct files {
	const char *in, *out;
};

static const struct argp_option options[] = {
	{ "output", 'o', "FILE", 0, "the image (default -, standard output)", 0 },
	{ 0 },
};

static error_t option(int key, char *arg, struct argp_state *state)
{
	struct files *f = state->input;

	if (key == 'o')
		f->out = arg;
	else if (key == ARGP_KEY_ARG && !f->in)
		f->in = arg;
	else
		return ARGP_ERR_UNKNOWN;
	return 0;
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = option,
		.args_doc = "[TEXT]",
		.doc = "Assembles the text of a program to its image. "
		       "TEXT is a file, or - for standard input (the default). "
		       "Whether the device takes the instructions is for the device to say.",
	};
	struct files f = { .out = "-" };
	struct neuron_asm_error why;
	size_t length, size;
	void *image;
	char *text;
	int status;

	argp_parse(&argp, argc, argv, 0, NULL, &f);
	f.in = f.in ? f.in : "-";
	text = program_file_read("neuron-as", f.in, &length);
	if (neuron_asm_parse(text, length, &image, &size, &why)) {
		fprintf(stderr, "%s:%u:%u: error: %s\n", f.in, why.line, why.column, why.text);
		free(text);
		return 1;
	}
	free(text);
	status = program_file_write("neuron-as", f.out, image, size);
	free(image);
	return status;
}
