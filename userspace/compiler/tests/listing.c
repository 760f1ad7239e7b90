/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled programs as text, which must say all of them. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "graph.h"
#include "neuron_asm.h"

char *test_listing(const struct nc_program *program)
{
	char *text = neuron_asm_print(program->image, program->bytes);
	struct neuron_asm_error error = { 0 };
	void *again = NULL;
	size_t size = 0;

	assert_non_null(text);
	/* What the printer falls back to where a field or a layout has no text. */
	if (strstr(text, "\t.inst ") || strstr(text, ".image "))
		fail_msg("printed as bytes:\n%.2000s", text);
	if (neuron_asm_parse(text, strlen(text), &again, &size, &error))
		fail_msg("%u:%u: %s", error.line, error.column, error.text);
	assert_int_equal(size, program->bytes);
	assert_memory_equal(again, program->image, size);
	free(again);
	return text;
}
