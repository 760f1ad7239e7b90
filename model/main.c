// SPDX-License-Identifier: Apache-2.0
/* neuron-model: the virtual Trainium as a vfio-user server. */
#define _GNU_SOURCE
#include <argp.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "vfio_user.h"

struct options {
	const char *socket;
	const char *control;
	bool once;
	struct nm_config config;
};

enum { KEY_LOG = 'l', KEY_ONCE = 256, KEY_SERIAL, KEY_ID, KEY_CONTROL };

static const struct argp_option option_table[] = {
	{ "socket", 's', "PATH", 0, "UNIX socket to listen on (required)", 0 },
	{ "cores", 'c', "N", 0, "NeuronCores, 1 to 8 (default 8)", 0 },
	{ "hbm", 'm', "SIZE", 0,
	  "size of each of the 4 HBM stacks: a power of two from 64M to 64G, with suffix M or G "
	  "for MiB or GiB (default 4G). Host memory is used only for what is touched",
	  0 },
	{ "serial", KEY_SERIAL, "N", 0, "serial number of the device", 0 },
	{ "device-id", KEY_ID, "N", 0, "routing id of the device in its server (default 0)", 0 },
	{ "log-level", KEY_LOG, "LEVEL", 0,
	  "error, guest (also mistakes of the driver; default), info or trace", 0 },
	{ "control", KEY_CONTROL, "PATH", 0,
	  "UNIX socket for commands, which see below; neuron-model-ctl sends them", 0 },
	{ "once", KEY_ONCE, NULL, 0, "exit when the first client disconnects", 0 },
	{ 0 },
};

static const char *const levels[] = { "error", "guest", "info", "trace" };

static uint64_t number(struct argp_state *state, const char *what, const char *text, bool size)
{
	unsigned int shift = 0;
	char *end;
	uint64_t n;

	errno = 0;
	n = strtoull(text, &end, 0);
	if (size && (*end == 'M' || *end == 'G'))
		shift = *end++ == 'M' ? 20 : 30;
	if (errno || end == text || *end || text[0] == '-' || n << shift >> shift != n)
		argp_error(state, "%s '%s' is not a number%s", what, text,
			   size ? " with M or G" : "");
	return n << shift;
}

static int log_level(struct argp_state *state, const char *text)
{
	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
		if (!strcmp(text, levels[i]))
			return (int)i;
	argp_error(state, "log level '%s': want error, guest, info or trace", text);
	return NM_LOG_GUEST;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case 's':
		o->socket = arg;
		break;
	case 'c':
		o->config.cores = (unsigned int)number(state, "--cores", arg, false);
		if (o->config.cores < 1 || o->config.cores > 8)
			argp_error(state, "--cores %s: a device has 1 to 8", arg);
		break;
	case 'm':
		o->config.hbm_bytes = number(state, "--hbm", arg, true);
		if (o->config.hbm_bytes < 64ull << 20 || o->config.hbm_bytes > 64ull << 30 ||
		    (o->config.hbm_bytes & (o->config.hbm_bytes - 1)))
			argp_error(state, "--hbm %s: want a power of two from 64M to 64G", arg);
		break;
	case KEY_SERIAL:
		o->config.serial = number(state, "--serial", arg, false);
		break;
	case KEY_ID:
		o->config.device_id = (unsigned int)number(state, "--device-id", arg, false);
		break;
	case KEY_LOG:
		o->config.log_level = log_level(state, arg);
		break;
	case KEY_CONTROL:
		o->control = arg;
		break;
	case KEY_ONCE:
		o->once = true;
		break;
	case ARGP_KEY_END:
		if (!o->socket)
			argp_error(state, "--socket is required");
		break;
	case ARGP_KEY_ARG:
		argp_error(state, "unexpected argument '%s'", arg);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp argp = {
	option_table,
	parse,
	NULL,
	"Serves a virtual Trainium2 to one vfio-user client at a time, for instance QEMU's "
	"vfio-user-pci. Each client gets a freshly powered-on device."
	"\v" NM_CONTROL_HELP,
	NULL,
	NULL,
	NULL,
};

/* A socket file that nobody listens on is left from a server that was killed. */
static bool stale(const struct sockaddr_un *addr)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool refused = connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) &&
		       errno == ECONNREFUSED;

	close(fd);
	return refused;
}

static int listen_on(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd;

	if (strlen(path) >= sizeof(addr.sun_path)) {
		fprintf(stderr, "neuron-model: socket path '%s' is longer than %zu bytes\n", path,
			sizeof(addr.sun_path) - 1);
		return -1;
	}
	memcpy(addr.sun_path, path, strlen(path) + 1);
	if (stale(&addr))
		unlink(path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) || listen(fd, 1)) {
		fprintf(stderr, "neuron-model: can't listen on '%s': %s\n", path, strerror(errno));
		return -1;
	}
	return fd;
}

/* Signals that end the server become readable here. */
static int stop_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC);
}

static int accept_client(int listener, int stop_fd)
{
	struct pollfd fds[2] = { { .fd = listener, .events = POLLIN },
				 { .fd = stop_fd, .events = POLLIN } };

	while (poll(fds, 2, -1) < 0 && errno == EINTR)
		;
	if (fds[1].revents)
		return -1;
	return accept4(listener, NULL, NULL, SOCK_CLOEXEC);
}

int main(int argc, char **argv)
{
	struct options o = { .config = { .log_level = NM_LOG_GUEST } };
	struct nm_control *control = NULL;
	int listener, stop_fd, client, ret = 0;

	argp_parse(&argp, argc, argv, 0, NULL, &o);
	stop_fd = stop_signals();
	listener = listen_on(o.socket);
	if (stop_fd < 0 || listener < 0)
		return 1;
	if (o.control) {
		int fd = listen_on(o.control);

		control = fd < 0 ? NULL : nm_control_create(fd);
		if (!control) {
			unlink(o.socket);
			return 1;
		}
	}
	do {
		client = accept_client(listener, stop_fd);
		if (client < 0)
			break;
		ret = vfio_user_serve(client, stop_fd, &o.config, control);
	} while (!o.once && ret != -EINTR && ret != -EINVAL && ret != -ENOMEM);
	nm_control_destroy(control);
	if (o.control)
		unlink(o.control);
	unlink(o.socket);
	close(listener);
	return ret && ret != -EINTR;
}
