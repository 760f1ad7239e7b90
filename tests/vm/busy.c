// SPDX-License-Identifier: Apache-2.0
/*
 * Keeps a core busy until its standard input ends: busy DEVICE CORE [fault]. Each launch fills
 * 1 MiB. With "fault" one program that can't end comes first. Writes a line when it has begun.
 */
#include "dev.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FLOATS 2048 /* a partition */

int main(int argc, char **argv)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	uint32_t core, ctx, fill, bo;
	char path[64];
	int fd;

	if (argc < 3) {
		fputs("usage: busy DEVICE CORE [fault]\n", stderr);
		return 2;
	}
	snprintf(path, sizeof(path), "/dev/accel/accel%s", argv[1]);
	core = (uint32_t)atoi(argv[2]);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0) {
		fprintf(stderr, "busy: %s: %s\n", path, strerror(errno));
		return 1;
	}
	if (argc > 3)
		launch_now(fd, ctx_new(fd, core), prog_stall(fd), NULL, 0);
	ctx = ctx_new(fd, core);
	fill = prog_fill(fd, 1, FLOATS);
	bo = bo_new(fd, TILE_PARTS * 4 * FLOATS, BO_HBM);
	bo_new(fd, 256 << 10, BO_HOST);
	for (bool first = true;; first = false) {
		if (launch_now(fd, ctx, fill, &bo, 1) != 1) {
			fputs("busy: the launch failed\n", stderr);
			return 1;
		}
		if (first)
			puts("busy");
		fflush(stdout);
		if (poll(&in, 1, 0) > 0)
			return 0;
	}
}
