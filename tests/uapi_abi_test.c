// SPDX-License-Identifier: Apache-2.0
/*
 * The user interface as programs see it: compiling proves the layout, which ctest also does for 32 bits
 * (without a C library of that size); running proves that no structure has padding without a name.
 */
#include <stddef.h>

#include "drm/neuron_accel.h"

struct row {
	int bytes; /* of a structure, minus those of its members before */
};

/* An array of -1 elements where the condition does not hold. */
#define HOLDS(condition)  (0 * (int)sizeof(char[(condition) ? 1 : -1]))
#define SIZE(type, bytes) { (bytes) + HOLDS(sizeof(struct type) == (bytes) && (bytes) % 8 == 0) }
#define MEMBER(type, member, off) \
	{ HOLDS(offsetof(struct type, member) == (off)) - (int)sizeof(((struct type *)0)->member) }

extern const struct row rows[];
const struct row rows[] = {
#include "neuron_uapi_layout.inc"
};

#ifndef UAPI_ABI_COMPILE_ONLY
#include <stdio.h>

int main(void)
{
	int structs = 0, left = 0;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		left += rows[i].bytes;
		if (rows[i].bytes <= 0)
			continue;
		structs++;
		if (left) {
			printf("structure %d: %d bytes belong to no member\n", structs, left);
			return 1;
		}
	}
	printf("%d structures\n", structs);
	return structs == 0;
}
#endif
