// SPDX-License-Identifier: Apache-2.0
#include "dump.h"

#include <ctype.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"
#include "neuron_program.h"

static char folder[NRTI_DUMP_BYTES];
static atomic_flag warned = ATOMIC_FLAG_INIT;

void nrti_dump_setup(const struct nrti_config *config)
{
	memcpy(folder, config->dump, sizeof(folder));
}

/* What a program's name says, in the characters that every file system takes. */
static void file_name(char name[NPROG_NAME_BYTES + 1], const struct nprog_header *header)
{
	size_t n = 0;

	for (; n < NPROG_NAME_BYTES && header->name[n]; n++) {
		const char c = (char)header->name[n];

		name[n] = (char)(isalnum((unsigned char)c) || c == '-' || c == '_' ? c : '_');
	}
	name[n] = 0;
}

/* Whole or not at all: under another name until it is complete. */
static int write_file(const char *path, const void *image, size_t bytes)
{
	char draft[NRTI_DUMP_BYTES + 16];
	FILE *f;
	int fd, bad;

	snprintf(draft, sizeof(draft), "%s/.XXXXXX", folder);
	fd = mkstemp(draft);
	if (fd < 0)
		return -errno;
	f = fdopen(fd, "wb");
	if (!f) {
		bad = -errno;
		close(fd);
		goto remove;
	}
	bad = fwrite(image, 1, bytes, f) != bytes ? -errno : 0;
	if (fclose(f) && !bad)
		bad = -errno;
	if (!bad && !rename(draft, path))
		return 0;
	bad = bad ?: -errno;
remove:
	unlink(draft);
	return bad;
}

void nrti_dump(const void *image, size_t bytes)
{
	char path[NRTI_DUMP_BYTES + NPROG_NAME_BYTES + 32], name[NPROG_NAME_BYTES + 1];
	const struct nprog_header *header = image;
	int ret;

	if (!folder[0])
		return;
	file_name(name, header);
	snprintf(path, sizeof(path), "%s/%s-%08x.nprog", folder, name, header->crc32c);
	if (!access(path, F_OK))
		return;
	ret = write_file(path, image, bytes);
	if (ret && !atomic_flag_test_and_set(&warned))
		nrti_log(NRTI_LOG_WARN,
			 "NEURON_DUMP: no file '%s': %s; make the folder or its room, or unset the "
			 "variable; later failures are not told",
			 path, strerror(-ret));
}
