// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control.h"
#include "neuron_isa.h"
#include "neuron_mailbox.h"
#include "neuron_queue.h"

#define WORDS_MAX 6

/* --- commands ----------------------------------------------------------------- */

struct words {
	struct nm_device *dev;
	char *answer;
	char *word[WORDS_MAX];
	unsigned int n;
};

static int refuse(struct words *w, const char *what, const char *word, const char *want)
{
	snprintf(w->answer, NM_CONTROL_LINE, "error %s '%s': want %s", what, word, want);
	return -EINVAL;
}

/* Word i as a number; the default when it is missing. */
static bool number(struct words *w, unsigned int i, const char *what, uint32_t missing,
		   uint32_t *value)
{
	unsigned long long n;
	char *end;

	*value = missing;
	if (i >= w->n)
		return true;
	errno = 0;
	n = strtoull(w->word[i], &end, 0);
	if (errno || end == w->word[i] || *end || w->word[i][0] == '-' || n > UINT32_MAX) {
		refuse(w, what, w->word[i], "a number from 0 to 4294967295");
		return false;
	}
	*value = (uint32_t)n;
	return true;
}

static int choice(const char *word, const char *const *names, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		if (!strcmp(word, names[i]))
			return (int)i;
	return -1;
}

/* What a call refused. */
static int checked(struct words *w, int ret, const char *want)
{
	if (ret)
		refuse(w, w->word[0], w->word[1], want);
	return ret;
}

static int do_status(struct words *w)
{
	memcpy(w->answer, "ok ", 3);
	nm_inject_status(w->dev, w->answer + 3, NM_CONTROL_LINE - 3);
	return 0;
}

static int do_clear(struct words *w)
{
	nm_inject_clear(w->dev);
	return 0;
}

static int do_ecc(struct words *w)
{
	static const char *const names[] = { "hbm0", "hbm1", "hbm2", "hbm3", "sram" };
	int memory = choice(w->word[1], names, 5);
	uint32_t corrected, uncorrected;

	if (memory < 0)
		return refuse(w, "memory", w->word[1], "hbm0 to hbm3 or sram");
	if (!number(w, 2, "corrected", 0, &corrected) ||
	    !number(w, 3, "uncorrected", 0, &uncorrected))
		return -EINVAL;
	return nm_inject_ecc(w->dev, (unsigned int)memory, corrected, uncorrected);
}

static int do_repair(struct words *w)
{
	static const char *const names[] = {
		[MBOX_HBM_REPAIR_NONE] = "none",
		[MBOX_HBM_REPAIR_PENDING] = "pending",
		[MBOX_HBM_REPAIR_FAILED] = "failed",
	};
	int state = choice(w->word[1], names, 3);

	if (state < 0)
		return refuse(w, "state", w->word[1], "none, pending or failed");
	return nm_inject_repair(w->dev, (uint32_t)state);
}

static int do_hang(struct words *w)
{
	static const char *const names[EXI_ENGINES] = {
		[ISA_TENSOR] = "tensor", [ISA_VECTOR] = "vector", [ISA_SCALAR] = "scalar",
		[ISA_GPSIMD] = "gpsimd", [ISA_SYNC] = "sync",
	};
	int engine = choice(w->word[2], names, EXI_ENGINES);
	uint32_t core, count;

	if (engine < 0)
		return refuse(w, "engine", w->word[2], "tensor, vector, scalar, gpsimd or sync");
	if (!number(w, 1, "core", 0, &core) || !number(w, 3, "count", 1, &count))
		return -EINVAL;
	return checked(w, nm_inject_hang(w->dev, core, (unsigned int)engine, count),
		       "a core that the device has");
}

static int do_poison(struct words *w)
{
	uint32_t core, count;

	if (!number(w, 1, "core", 0, &core) || !number(w, 2, "count", 1, &count))
		return -EINVAL;
	return checked(w, nm_inject_poison(w->dev, core, count), "a core that the device has");
}

static int do_irq(struct words *w)
{
	bool delay = !strcmp(w->word[1], "delay");
	uint32_t vector, ms = 0, count;

	if (!delay && strcmp(w->word[1], "lose"))
		return refuse(w, "irq", w->word[1], "lose or delay");
	if (delay && w->n < 4)
		return refuse(w, "irq", "delay", "a vector and milliseconds");
	if (!number(w, 2, "vector", 0, &vector) ||
	    (delay && !number(w, 3, "milliseconds", 0, &ms)) ||
	    !number(w, delay ? 4 : 3, "count", 1, &count))
		return -EINVAL;
	if (delay && (!ms || ms > 60000))
		return refuse(w, "milliseconds", w->word[3], "1 to 60000");
	return checked(w, nm_inject_irq(w->dev, vector, ms * 1000, count),
		       "a vector that the device has");
}

static int do_mailbox(struct words *w)
{
	static const char *const names[NM_MAILBOX_FAULTS] = {
		[NM_MAILBOX_SILENT] = "silent",	  [NM_MAILBOX_SEQUENCE] = "sequence",
		[NM_MAILBOX_GARBAGE] = "garbage", [NM_MAILBOX_ERROR] = "error",
		[NM_MAILBOX_CRC] = "crc",
	};
	int fault = choice(w->word[1], names, NM_MAILBOX_FAULTS);
	uint32_t count;

	if (fault < 0)
		return refuse(w, "mailbox", w->word[1], "silent, sequence, garbage, error or crc");
	if (!number(w, 2, "count", 1, &count))
		return -EINVAL;
	return nm_inject_mailbox(w->dev, (enum nm_mailbox_fault)fault, count);
}

static int do_udma(struct words *w)
{
	static const char *const names[NM_UDMA_FAULTS] = {
		[NM_UDMA_ERROR] = "error",
		[NM_UDMA_STOP] = "stop",
		[NM_UDMA_CORRUPT] = "corrupt",
	};
	int fault = choice(w->word[2], names, NM_UDMA_FAULTS);
	uint32_t engine, count;

	if (fault < 0)
		return refuse(w, "udma", w->word[2], "error, stop or corrupt");
	if (!number(w, 1, "engine", 0, &engine) || !number(w, 3, "count", 1, &count))
		return -EINVAL;
	return checked(w, nm_inject_udma(w->dev, engine, (enum nm_udma_fault)fault, count),
		       "an engine that the device has");
}

static int do_remove(struct words *w)
{
	nm_inject_removal(w->dev, true);
	return 0;
}

static int do_return(struct words *w)
{
	nm_inject_removal(w->dev, false);
	return 0;
}

static int do_throttle(struct words *w)
{
	uint32_t percent;

	if (!number(w, 1, "percent", 100, &percent))
		return -EINVAL;
	return checked(w, nm_inject_throttle(w->dev, percent), "1 to 100 percent");
}

static const struct {
	const char *name;
	unsigned int least, most; /* words, the name included */
	int (*run)(struct words *w); /* 0, or -EINVAL and the answer is written */
} commands[] = {
	{ "status", 1, 1, do_status }, { "clear", 1, 1, do_clear },
	{ "ecc", 4, 4, do_ecc },       { "hang", 3, 4, do_hang },
	{ "irq", 3, 5, do_irq },       { "mailbox", 2, 3, do_mailbox },
	{ "udma", 3, 4, do_udma },     { "remove", 1, 1, do_remove },
	{ "return", 1, 1, do_return }, { "throttle", 2, 2, do_throttle },
	{ "poison", 2, 3, do_poison }, { "repair", 2, 2, do_repair },
};

void nm_control_run(struct nm_device *dev, const char *line, char answer[NM_CONTROL_LINE])
{
	struct words w = { .dev = dev, .answer = answer };
	char text[NM_CONTROL_LINE], *rest = text, *word;

	snprintf(text, sizeof(text), "%s", line);
	snprintf(answer, NM_CONTROL_LINE, "ok");
	while ((word = strsep(&rest, " \t\r\n"))) {
		if (!*word)
			continue;
		if (w.n < WORDS_MAX)
			w.word[w.n] = word;
		w.n++;
	}
	for (size_t i = 0; w.n && i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strcmp(w.word[0], commands[i].name))
			continue;
		if (w.n < commands[i].least || w.n > commands[i].most)
			snprintf(answer, NM_CONTROL_LINE,
				 "error %s: %u words, want %u to %u; see neuron-model --help",
				 w.word[0], w.n, commands[i].least, commands[i].most);
		else if (!dev)
			snprintf(answer, NM_CONTROL_LINE, "error no device: nobody is connected");
		else
			commands[i].run(&w);
		return;
	}
	refuse(&w, "command", w.n ? w.word[0] : "", "one that neuron-model --help lists");
}

/* --- socket ------------------------------------------------------------------- */

struct nm_control {
	pthread_t thread;
	pthread_mutex_t lock; /* held during a command */
	struct nm_device *dev;
	int listener;
	int stop; /* eventfd */
};

/* Waits for a descriptor; false: the end. */
static bool readable(struct nm_control *c, int fd)
{
	struct pollfd fds[2] = { { .fd = fd, .events = POLLIN },
				 { .fd = c->stop, .events = POLLIN } };

	while (poll(fds, 2, -1) < 0)
		if (errno != EINTR)
			return false;
	return !fds[1].revents;
}

static bool answer(struct nm_control *c, int fd, const char *line)
{
	char text[NM_CONTROL_LINE + 1];
	size_t n;

	pthread_mutex_lock(&c->lock);
	nm_control_run(c->dev, line, text);
	pthread_mutex_unlock(&c->lock);
	n = strlen(text);
	text[n++] = '\n';
	return send(fd, text, n, MSG_NOSIGNAL) == (ssize_t)n;
}

static void serve(struct nm_control *c, int fd)
{
	char buf[NM_CONTROL_LINE];
	size_t n = 0;

	while (readable(c, fd)) {
		ssize_t got = recv(fd, buf + n, sizeof(buf) - n, 0);
		char *end;

		if (got <= 0)
			return;
		n += (size_t)got;
		while ((end = memchr(buf, '\n', n))) {
			*end = 0;
			if (!answer(c, fd, buf))
				return;
			n -= (size_t)(end + 1 - buf);
			memmove(buf, end + 1, n);
		}
		if (n == sizeof(buf))
			return; /* no command is as long */
	}
}

static void *control_thread(void *arg)
{
	struct nm_control *c = arg;

	while (readable(c, c->listener)) {
		int fd = accept4(c->listener, NULL, NULL, SOCK_CLOEXEC);

		if (fd < 0)
			continue;
		serve(c, fd);
		close(fd);
	}
	return NULL;
}

struct nm_control *nm_control_create(int fd)
{
	struct nm_control *c = calloc(1, sizeof(*c));

	if (!c) {
		close(fd);
		return NULL;
	}
	c->listener = fd;
	c->stop = eventfd(0, EFD_CLOEXEC);
	pthread_mutex_init(&c->lock, NULL);
	if (c->stop < 0 || pthread_create(&c->thread, NULL, control_thread, c)) {
		if (c->stop >= 0)
			close(c->stop);
		close(fd);
		pthread_mutex_destroy(&c->lock);
		free(c);
		return NULL;
	}
	return c;
}

void nm_control_destroy(struct nm_control *c)
{
	if (!c)
		return;
	eventfd_write(c->stop, 1);
	pthread_join(c->thread, NULL);
	close(c->stop);
	close(c->listener);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

void nm_control_attach(struct nm_control *c, struct nm_device *dev)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	c->dev = dev;
	pthread_mutex_unlock(&c->lock);
}
