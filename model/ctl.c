// SPDX-License-Identifier: Apache-2.0
/* neuron-model-ctl: sends one command to the control socket of neuron-model. */
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "control.h"

struct command {
	const char *path;
	char line[NM_CONTROL_LINE];
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct command *c = state->input;
	size_t n;

	switch (key) {
	case ARGP_KEY_ARG:
		if (!c->path) {
			c->path = arg;
			break;
		}
		n = strlen(c->line);
		if (n + strlen(arg) + 2 > sizeof(c->line))
			argp_error(state, "the command is longer than %zu bytes", sizeof(c->line));
		snprintf(c->line + n, sizeof(c->line) - n, "%s%s", n ? " " : "", arg);
		break;
	case ARGP_KEY_END:
		if (!c->path || !c->line[0])
			argp_usage(state);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp argp = {
	NULL,
	parse,
	"PATH COMMAND [ARG...]",
	"Sends a command to a virtual Trainium and prints its answer. PATH is the socket of "
	"neuron-model "
	"--control, or in a VM a character device that is connected to it. Status 0: ok, 1: the "
	"device refused, 2: no answer."
	"\v" NM_CONTROL_HELP,
	NULL,
	NULL,
	NULL,
};

static int connect_to(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct stat st;
	int fd;

	if (!stat(path, &st) && S_ISCHR(st.st_mode))
		return open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (strlen(path) >= sizeof(addr.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(addr.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (const struct sockaddr *)&addr, sizeof(addr))) {
		close(fd);
		return -1;
	}
	return fd;
}

int main(int argc, char **argv)
{
	struct command c = { 0 };
	char answer[NM_CONTROL_LINE];
	size_t n = 0;
	int fd;

	argp_parse(&argp, argc, argv, 0, NULL, &c);
	fd = connect_to(c.path);
	if (fd < 0 || dprintf(fd, "%s\n", c.line) < 0) {
		fprintf(stderr, "neuron-model-ctl: can't reach '%s': %s\n", c.path,
			strerror(errno));
		return 2;
	}
	while (n < sizeof(answer) && (!n || answer[n - 1] != '\n')) {
		ssize_t got = read(fd, answer + n, sizeof(answer) - n);

		if (got <= 0) {
			fprintf(stderr, "neuron-model-ctl: '%s' gave no answer\n", c.path);
			return 2;
		}
		n += (size_t)got;
	}
	close(fd);
	fwrite(answer, 1, n, stdout);
	return n >= 2 && !memcmp(answer, "ok", 2) ? 0 : 1;
}
