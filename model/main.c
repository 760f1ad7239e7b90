// SPDX-License-Identifier: Apache-2.0
/* neuron-model: the virtual Trainium as a vfio-user server. */
#define _GNU_SOURCE
#include <argp.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "neuron_topology.h"
#include "vfio_user.h"

/* A device and the thread that serves it. */
struct slot {
	const char *socket;
	const char *control_path; /* NULL: none */
	struct nm_config config;
	struct nm_control *control;
	bool once;
	int listener, stop_fd;
	pthread_t thread;
	int ret;
};

struct options {
	struct slot slot[NEURON_SERVER_DEVICES];
	unsigned int devices, controls;
	bool once;
	struct nm_config config; /* of all */
};

enum {
	KEY_LOG = 'l',
	KEY_ONCE = 256,
	KEY_SERIAL,
	KEY_ID,
	KEY_CONTROL,
	KEY_CHIP,
	KEY_SILICON,
	KEY_CHECK,
	KEY_REPORT,
	KEY_THREADS
};

static const struct argp_option option_table[] = {
	{ "socket", 's', "PATH", 0,
	  "UNIX socket to listen on (required). Given several times, up to 16: a server of that "
	  "many "
	  "devices, numbered in that order and joined by NeuronLink",
	  0 },
	{ "chip", KEY_CHIP, "NAME", 0, "trn1, inf2, trn2 (default) or trn3", 0 },
	{ "cores", 'c', "N", 0, "NeuronCores of a device (default: all that the chip has, 8 or 2)",
	  0 },
	{ "hbm", 'm', "SIZE", 0,
	  "size of each of the HBM stacks (4, on trn1 and inf2 2): a power of two from 64M to 64G "
	  "(16G), with suffix M or G for MiB or GiB (default 4G). Host memory is used only for "
	  "what "
	  "is touched",
	  0 },
	{ "serial", KEY_SERIAL, "N", 0,
	  "serial number of the device; of several, that of the first", 0 },
	{ "device-id", KEY_ID, "N", 0,
	  "routing id of a single device (default 0); those of several follow from their places",
	  0 },
	{ "silicon", KEY_SILICON, NULL, 0,
	  "show the registers where silicon does, without the execution interface and interrupts "
	  "of "
	  "the virtual device; for other drivers than this project's",
	  0 },
	{ "log-level", KEY_LOG, "LEVEL", 0,
	  "error, guest (also mistakes of the driver; default), info or trace", 0 },
	{ "check", KEY_CHECK, "LIST", 0,
	  "look for races and the like in programs: " NM_CHECK_WORDS " (hbm has no effect here: "
	  "the client writes HBM "
	  "unseen)",
	  0 },
	{ "report", KEY_REPORT, "FILE", 0,
	  "write what programs did with the device's time to FILE when a client disconnects; of "
	  "several devices, for all but the first, to FILE.N",
	  0 },
	{ "threads", KEY_THREADS, "N", 0,
	  "threads that share large instructions, 1 to 16 (default: as many as processors)", 0 },
	{ "control", KEY_CONTROL, "PATH", 0,
	  "UNIX socket for commands, which see below; neuron-model-ctl sends them. Given several "
	  "times: of each device in turn",
	  0 },
	{ "once", KEY_ONCE, NULL, 0, "exit when the first client of each device has disconnected",
	  0 },
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
		if (o->devices == NEURON_SERVER_DEVICES)
			argp_error(state, "--socket %s: a server has at most %d devices", arg,
				   NEURON_SERVER_DEVICES);
		o->slot[o->devices++].socket = arg;
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
	case KEY_CHIP:
		if (strcmp(arg, "trn1") && strcmp(arg, "inf2") && strcmp(arg, "trn2") &&
		    strcmp(arg, "trn3"))
			argp_error(state, "--chip %s: want trn1, inf2, trn2 or trn3", arg);
		o->config.chip = arg;
		break;
	case KEY_SILICON:
		o->config.silicon = true;
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
	case KEY_REPORT:
		o->config.report = arg;
		break;
	case KEY_THREADS:
		o->config.threads = (unsigned int)number(state, "--threads", arg, false);
		if (o->config.threads < 1 || o->config.threads > NM_THREADS_MAX)
			argp_error(state, "--threads %s: want 1 to %d", arg, NM_THREADS_MAX);
		break;
	case KEY_CHECK:
		if (nm_check_parse(arg, &o->config.check))
			argp_error(state, "--check '%s': want %s", arg, NM_CHECK_WORDS);
		o->config.check &= ~NM_CHECK_HBM;
		break;
	case KEY_CONTROL:
		if (o->controls == NEURON_SERVER_DEVICES)
			argp_error(state, "--control %s: there are at most %d devices", arg,
				   NEURON_SERVER_DEVICES);
		o->slot[o->controls++].control_path = arg;
		break;
	case KEY_ONCE:
		o->once = true;
		break;
	case ARGP_KEY_END:
		if (!o->devices)
			argp_error(state, "--socket is required");
		if (o->controls > o->devices)
			argp_error(state, "%u --control, but only %u --socket", o->controls,
				   o->devices);
		if (o->devices > 1 && o->config.device_id)
			argp_error(state, "--device-id is for a single device");
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
	"Serves virtual Trainiums, each to one vfio-user client at a time, for instance QEMU's "
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

static int slot_open(struct slot *slot)
{
	int fd;

	slot->listener = listen_on(slot->socket);
	if (slot->listener < 0)
		return -1;
	if (!slot->control_path)
		return 0;
	fd = listen_on(slot->control_path);
	slot->control = fd < 0 ? NULL : nm_control_create(fd);
	return slot->control ? 0 : -1;
}

static void slot_close(struct slot *slot)
{
	if (slot->listener < 0)
		return;
	nm_control_destroy(slot->control);
	if (slot->control)
		unlink(slot->control_path);
	unlink(slot->socket);
	close(slot->listener);
}

static void *serve(void *arg)
{
	struct slot *slot = arg;
	int client;

	do {
		client = accept_client(slot->listener, slot->stop_fd);
		if (client < 0)
			break;
		slot->ret = vfio_user_serve(client, slot->stop_fd, &slot->config, slot->control);
	} while (!slot->once && slot->ret != -EINTR && slot->ret != -EINVAL &&
		 slot->ret != -ENOMEM);
	return NULL;
}

/* Serves all devices until they end; whether one ended by a failure. */
static bool serve_all(struct options *o)
{
	unsigned int started = 1;
	bool failed = false;

	while (started < o->devices &&
	       !pthread_create(&o->slot[started].thread, NULL, serve, &o->slot[started]))
		started++;
	if (started < o->devices) {
		fprintf(stderr, "neuron-model: can't start a thread\n");
		raise(SIGTERM); /* blocked, so that it stops those that run */
	}
	serve(&o->slot[0]);
	for (unsigned int i = 0; i < started; i++) {
		if (i)
			pthread_join(o->slot[i].thread, NULL);
		failed |= o->slot[i].ret && o->slot[i].ret != -EINTR;
	}
	return failed || started < o->devices;
}

int main(int argc, char **argv)
{
	static struct options o = { .config = { .log_level = NM_LOG_GUEST } };
	bool failed = false;
	int stop_fd;

	argp_parse(&argp, argc, argv, 0, NULL, &o);
	stop_fd = stop_signals();
	if (o.devices > 1) {
		o.config.server = nm_server_create(o.config.chip, o.devices, o.config.serial);
		failed = !o.config.server;
	}
	for (unsigned int i = 0; i < o.devices; i++) {
		struct slot *slot = &o.slot[i];

		slot->config = o.config;
		slot->config.number = i;
		slot->once = o.once;
		slot->stop_fd = stop_fd;
		slot->listener = -1;
		failed = failed || stop_fd < 0 || slot_open(slot);
	}
	if (!failed)
		failed = serve_all(&o);
	for (unsigned int i = 0; i < o.devices; i++)
		slot_close(&o.slot[i]);
	nm_server_destroy(o.config.server);
	return failed;
}
