// SPDX-License-Identifier: Apache-2.0
#include "program_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Far above the largest program; a device node or an endless pipe must not take all memory. */
#define LIMIT ((size_t)1 << 30)

void *program_file_read(const char *tool, const char *path, size_t *size)
{
	const int from_stdin = !strcmp(path, "-");
	FILE *f = from_stdin ? stdin : fopen(path, "rb");
	size_t room = 1 << 16, n = 0;
	char *data = malloc(room);

	if (!f || !data) {
		fprintf(stderr, "%s: %s: %s\n", tool, path, strerror(errno));
		exit(1);
	}
	while (!feof(f) && !ferror(f) && n <= LIMIT) {
		n += fread(data + n, 1, room - n, f);
		if (n < room)
			continue;
		room *= 2;
		data = realloc(data, room);
		if (!data) {
			fprintf(stderr, "%s: %s: no memory for %zu bytes\n", tool, path, room);
			exit(1);
		}
	}
	if (ferror(f) || n > LIMIT) {
		fprintf(stderr, "%s: %s: %s\n", tool, path,
			n > LIMIT ? "larger than 1 GiB, which no program is" : strerror(errno));
		exit(1);
	}
	if (!from_stdin)
		fclose(f);
	*size = n;
	return data;
}

int program_file_write(const char *tool, const char *path, const void *data, size_t size)
{
	const int to_stdout = !strcmp(path, "-");
	FILE *f = to_stdout ? stdout : fopen(path, "wb");
	int bad = !f || fwrite(data, 1, size, f) != size;

	if (f && (to_stdout ? fflush(f) : fclose(f)))
		bad = 1;
	if (bad)
		fprintf(stderr, "%s: %s: %s\n", tool, path, strerror(errno));
	return bad;
}
