// SPDX-License-Identifier: Apache-2.0
/*
 * The device as a vfio-user server, from the protocol's specification (QEMU,
 * docs/interop/vfio-user.rst, version 0.0).
 *
 * One thread reads messages and answers them in order. Client memory with a file descriptor is
 * mapped; memory without one is reached by DMA messages, which device threads send and whose
 * replies the reading thread hands back. Nothing that a client sends can end more than its own
 * connection.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/vfio.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "neuron_pci.h"
#include "neuron_queue.h"
#include "vfio_user.h"

enum {
	CMD_VERSION = 1,
	CMD_DMA_MAP = 2,
	CMD_DMA_UNMAP = 3,
	CMD_DEVICE_GET_INFO = 4,
	CMD_DEVICE_GET_REGION_INFO = 5,
	CMD_DEVICE_GET_IRQ_INFO = 7,
	CMD_DEVICE_SET_IRQS = 8,
	CMD_REGION_READ = 9,
	CMD_REGION_WRITE = 10,
	CMD_DMA_READ = 11,
	CMD_DMA_WRITE = 12,
	CMD_DEVICE_RESET = 13,
};

#define FLAG_TYPE     0xfu
#define FLAG_REPLY    0x1u
#define FLAG_NO_REPLY 0x10u
#define FLAG_ERROR    0x20u

#define FDS_MAX	     16
#define XFER_MAX     (1u << 20) /* data in one message; the protocol's default */
#define PAYLOAD_MAX  (XFER_MAX + 64)
#define DMA_WAIT_S   5 /* for the answer to a DMA message */
#define UNMAP_ALL    (1u << 1)
#define CONFIG_BYTES 4096u

struct header {
	uint16_t id;
	uint16_t command;
	uint32_t size;
	uint32_t flags;
	uint32_t error;
};

struct version {
	uint16_t major;
	uint16_t minor;
};

struct dma_map_msg {
	uint32_t argsz;
	uint32_t flags; /* bit 0 readable, bit 1 writeable */
	uint64_t offset;
	uint64_t iova;
	uint64_t size;
};

struct dma_unmap_msg {
	uint32_t argsz;
	uint32_t flags;
	uint64_t iova;
	uint64_t size;
};

struct region_rw {
	uint64_t offset;
	uint32_t region;
	uint32_t count;
};

struct dma_rw {
	uint64_t iova;
	uint64_t count;
};

/* Client memory that nm_dma_map() knows. */
struct mapping {
	struct mapping *next;
	uint64_t iova;
	uint64_t size;
	void *ptr; /* NULL: by message */
};

struct message {
	struct header head;
	int fds[FDS_MAX];
	unsigned int n_fds;
	int reply_fd; /* to send along, owned by the device; -1: none */
	size_t n;     /* bytes of payload: received, then to send */
	uint8_t payload[PAYLOAD_MAX];
};

struct server {
	struct nm_device *dev;
	const struct nm_config *config;
	int sock;
	int stop_fd;
	bool versioned;
	struct mapping *mappings; /* reading thread only */

	pthread_mutex_t send_lock;

	pthread_mutex_t irq_lock;
	int eventfd[EXI_MSIX_VECTORS]; /* -1: none */

	/* One DMA message at a time. */
	pthread_mutex_t dma_lock;
	pthread_mutex_t answer_lock;
	pthread_cond_t answer;
	uint16_t dma_id;
	bool dma_waiting;
	bool closed; /* no more DMA by message */
	int dma_result;
	void *dma_buf; /* where read data goes, NULL for a write */
	size_t dma_size;
};

static void report(struct server *s, int level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void report(struct server *s, int level, const char *fmt, ...)
{
	char text[256];
	va_list args;

	if (level > s->config->log_level)
		return;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (s->config->log)
		s->config->log(s->config->user, level, text);
	else
		fprintf(stderr, "neuron-model: vfio-user: %s\n", text);
}

/* nm_config.log of the device, whose user is the server. */
static void forward_log(void *user, int level, const char *text)
{
	struct server *s = user;

	s->config->log(s->config->user, level, text);
}

/* --- bytes in and out ---------------------------------------------------------------- */

static int send_all(int sock, const void *buf, size_t n, int fd)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	const uint8_t *p = buf;

	while (n) {
		struct iovec iov = { .iov_base = (void *)p, .iov_len = n };
		struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
		ssize_t sent;

		if (fd >= 0) {
			struct cmsghdr *c;

			msg.msg_control = control.space;
			msg.msg_controllen = sizeof(control.space);
			c = CMSG_FIRSTHDR(&msg);
			c->cmsg_level = SOL_SOCKET;
			c->cmsg_type = SCM_RIGHTS;
			c->cmsg_len = CMSG_LEN(sizeof(int));
			memcpy(CMSG_DATA(c), &fd, sizeof(fd));
		}
		sent = sendmsg(sock, &msg, MSG_NOSIGNAL);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent <= 0)
			return -EPIPE;
		fd = -1;
		p += sent;
		n -= (size_t)sent;
	}
	return 0;
}

/* Header and payload as one unit. */
static int send_message(struct server *s, const struct header *head, const void *payload, size_t n,
			int fd)
{
	int ret;

	pthread_mutex_lock(&s->send_lock);
	ret = send_all(s->sock, head, sizeof(*head), fd);
	if (!ret && n)
		ret = send_all(s->sock, payload, n, -1);
	pthread_mutex_unlock(&s->send_lock);
	return ret;
}

/* 0 when there is something to read, -EINTR when asked to stop. */
static int wait_readable(struct server *s)
{
	struct pollfd fds[2] = { { .fd = s->sock, .events = POLLIN },
				 { .fd = s->stop_fd, .events = POLLIN } };

	while (poll(fds, s->stop_fd >= 0 ? 2 : 1, -1) < 0)
		if (errno != EINTR)
			return -errno;
	return s->stop_fd >= 0 && fds[1].revents ? -EINTR : 0;
}

static void take_fds(struct msghdr *msg, struct message *m)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t n;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
			if (m->n_fds < FDS_MAX)
				m->fds[m->n_fds++] = fd;
			else
				close(fd);
		}
	}
}

/* n bytes, descriptors with them. 1, 0 at an orderly end before the first byte, -errno. */
static int receive_all(struct server *s, struct message *m, void *buf, size_t n)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(FDS_MAX * sizeof(int))];
	} control;
	size_t got = 0;

	while (got < n) {
		struct iovec iov = { .iov_base = (uint8_t *)buf + got, .iov_len = n - got };
		struct msghdr msg = { .msg_iov = &iov,
				      .msg_iovlen = 1,
				      .msg_control = control.space,
				      .msg_controllen = sizeof(control.space) };
		ssize_t ret = wait_readable(s);

		if (ret)
			return (int)ret;
		ret = recvmsg(s->sock, &msg, MSG_CMSG_CLOEXEC);
		if (ret < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (ret < 0)
			return errno == ECONNRESET && !got ? 0 : -errno;
		take_fds(&msg, m);
		if (!ret)
			return got ? -EPROTO : 0;
		got += (size_t)ret;
	}
	return 1;
}

static void close_fds(struct message *m)
{
	for (unsigned int i = 0; i < m->n_fds; i++)
		if (m->fds[i] >= 0)
			close(m->fds[i]);
	m->n_fds = 0;
}

static int receive(struct server *s, struct message *m)
{
	int ret;

	m->n_fds = 0;
	m->reply_fd = -1;
	ret = receive_all(s, m, &m->head, sizeof(m->head));
	if (ret <= 0)
		return ret;
	if (m->head.size < sizeof(m->head) || m->head.size - sizeof(m->head) > PAYLOAD_MAX) {
		report(s, NM_LOG_GUEST, "message %u of %u bytes: want %zu to %zu", m->head.command,
		       m->head.size, sizeof(m->head), sizeof(m->head) + PAYLOAD_MAX);
		return -EPROTO;
	}
	m->n = m->head.size - sizeof(m->head);
	ret = m->n ? receive_all(s, m, m->payload, m->n) : 1;
	return ret == 0 ? -EPROTO : ret;
}

/* --- version ------------------------------------------------------------------------------ */

static int do_version(struct server *s, struct message *m)
{
	static const char caps[] = "{\"capabilities\":{\"max_msg_fds\":16,"
				   "\"max_data_xfer_size\":1048576}}";
	struct version v;

	memcpy(&v, m->payload, sizeof(v));
	if (v.major != 0) {
		report(s, NM_LOG_GUEST, "client speaks version %u.%u, this is 0.0", v.major,
		       v.minor);
		return -EPROTONOSUPPORT;
	}
	v.minor = 0;
	memcpy(m->payload, &v, sizeof(v));
	memcpy(m->payload + sizeof(v), caps, sizeof(caps));
	m->n = sizeof(v) + sizeof(caps);
	s->versioned = true;
	return 0;
}

/* --- client memory -------------------------------------------------------------------------- */

static void *map_client(struct server *s, const struct dma_map_msg *d, int fd, unsigned int rights)
{
	const int prot = (rights & NM_DMA_READ ? PROT_READ : 0) |
			 (rights & NM_DMA_WRITE ? PROT_WRITE : 0);
	struct stat st;

	/* Beyond the end of the file a mapping would fault when it is used. */
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || d->offset + d->size < d->size ||
	    d->offset + d->size > (uint64_t)st.st_size) {
		report(s, NM_LOG_GUEST, "DMA map of 0x%llx bytes at 0x%llx is not inside its file",
		       (unsigned long long)d->size, (unsigned long long)d->offset);
		return MAP_FAILED;
	}
	return mmap(NULL, d->size, prot, MAP_SHARED | MAP_NORESERVE, fd, (off_t)d->offset);
}

static int do_dma_map(struct server *s, struct message *m)
{
	struct mapping *map;
	struct dma_map_msg d;
	unsigned int rights;
	int ret;

	memcpy(&d, m->payload, sizeof(d));
	rights = d.flags & (NM_DMA_READ | NM_DMA_WRITE);
	map = calloc(1, sizeof(*map));
	if (!map)
		return -ENOMEM;
	map->iova = d.iova;
	map->size = d.size;
	if (m->n_fds && d.size) {
		map->ptr = map_client(s, &d, m->fds[0], rights);
		if (map->ptr == MAP_FAILED) {
			free(map);
			return -EINVAL;
		}
	}
	ret = nm_dma_map(s->dev, d.iova, d.size, map->ptr, rights);
	if (ret) {
		if (map->ptr)
			munmap(map->ptr, map->size);
		free(map);
		return ret;
	}
	map->next = s->mappings;
	s->mappings = map;
	m->n = 0;
	return 0;
}

static void drop_mapping(struct server *s, struct mapping **at)
{
	struct mapping *map = *at;

	*at = map->next;
	nm_dma_unmap(s->dev, map->iova, map->size);
	if (map->ptr)
		munmap(map->ptr, map->size);
	free(map);
}

static int do_dma_unmap(struct server *s, struct message *m)
{
	struct dma_unmap_msg d;

	memcpy(&d, m->payload, sizeof(d));
	m->n = sizeof(d);
	if (d.flags & UNMAP_ALL) {
		while (s->mappings)
			drop_mapping(s, &s->mappings);
		return 0;
	}
	for (struct mapping **at = &s->mappings; *at; at = &(*at)->next) {
		if ((*at)->iova != d.iova || (*at)->size != d.size)
			continue;
		drop_mapping(s, at);
		return 0;
	}
	return -ENOENT;
}

/* nm_config.dma: any device thread. */
static int dma_by_message(void *user, uint64_t iova, void *buf, size_t size, bool write)
{
	struct server *s = user;
	struct header head = { .command = write ? CMD_DMA_WRITE : CMD_DMA_READ };
	struct dma_rw *rw;
	struct timespec until;
	int ret = 0;

	rw = malloc(sizeof(*rw) + (write ? XFER_MAX : 0));
	if (!rw)
		return -ENOMEM;
	pthread_mutex_lock(&s->dma_lock);
	for (size_t done = 0; !ret && done < size; done += rw->count) {
		*rw = (struct dma_rw){ iova + done, size - done < XFER_MAX ? size - done : XFER_MAX };
		if (write)
			memcpy(rw + 1, (uint8_t *)buf + done, rw->count);
		head.size = (uint32_t)(sizeof(head) + sizeof(*rw) + (write ? rw->count : 0));

		pthread_mutex_lock(&s->answer_lock);
		head.id = ++s->dma_id;
		s->dma_waiting = !s->closed;
		s->dma_result = -EIO;
		s->dma_buf = write ? NULL : (uint8_t *)buf + done;
		s->dma_size = rw->count;
		pthread_mutex_unlock(&s->answer_lock);
		ret = send_message(s, &head, rw, head.size - sizeof(head), -1);

		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_sec += DMA_WAIT_S;
		pthread_mutex_lock(&s->answer_lock);
		while (!ret && s->dma_waiting && !s->closed)
			if (pthread_cond_timedwait(&s->answer, &s->answer_lock, &until))
				ret = -ETIMEDOUT;
		s->dma_waiting = false;
		if (!ret)
			ret = s->closed ? -ENOTCONN : s->dma_result;
		pthread_mutex_unlock(&s->answer_lock);
	}
	pthread_mutex_unlock(&s->dma_lock);
	free(rw);
	return ret;
}

/* A reply of the client to the DMA message that is waiting. */
static void take_answer(struct server *s, const struct message *m)
{
	pthread_mutex_lock(&s->answer_lock);
	if (s->dma_waiting && m->head.id == s->dma_id) {
		if (m->head.flags & FLAG_ERROR)
			s->dma_result = -EFAULT;
		else if (s->dma_buf && m->n < sizeof(struct dma_rw) + s->dma_size)
			s->dma_result = -EPROTO;
		else
			s->dma_result = 0;
		if (!s->dma_result && s->dma_buf)
			memcpy(s->dma_buf, m->payload + sizeof(struct dma_rw), s->dma_size);
		s->dma_waiting = false;
		pthread_cond_signal(&s->answer);
	}
	pthread_mutex_unlock(&s->answer_lock);
}

/* --- what the device is ------------------------------------------------------------------------ */

static int do_device_info(struct server *s, struct message *m)
{
	struct vfio_device_info info = { .argsz = 16,
					 .flags = VFIO_DEVICE_FLAGS_RESET | VFIO_DEVICE_FLAGS_PCI,
					 .num_regions = VFIO_PCI_NUM_REGIONS,
					 .num_irqs = VFIO_PCI_NUM_IRQS };

	(void)s;
	memcpy(m->payload, &info, 16);
	m->n = 16;
	return 0;
}

static uint64_t region_size(struct server *s, uint32_t region)
{
	if (region <= VFIO_PCI_BAR5_REGION_INDEX)
		return nm_bar_size(s->dev, region);
	return region == VFIO_PCI_CONFIG_REGION_INDEX ? CONFIG_BYTES : 0;
}

static int do_region_info(struct server *s, struct message *m)
{
	struct vfio_region_info info;
	uint32_t index;

	memcpy(&info, m->payload, sizeof(info));
	index = info.index;
	if (index >= VFIO_PCI_NUM_REGIONS)
		return -EINVAL;
	memset(&info, 0, sizeof(info));
	info.argsz = sizeof(info);
	info.index = index;
	info.size = region_size(s, index);
	if (info.size)
		info.flags = VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE;
	if (index == V3_BAR_DRAM) {
		info.flags |= VFIO_REGION_INFO_FLAG_MMAP;
		m->reply_fd = nm_hbm_fd(s->dev);
	}
	memcpy(m->payload, &info, sizeof(info));
	m->n = sizeof(info);
	return 0;
}

/* --- interrupts ------------------------------------------------------------------------------------ */

/* nm_config.irq: any device thread. */
static void irq(void *user, unsigned int vector)
{
	struct server *s = user;
	const uint64_t one = 1;
	ssize_t ret = 0;

	pthread_mutex_lock(&s->irq_lock);
	if (s->eventfd[vector] >= 0)
		ret = write(s->eventfd[vector], &one, sizeof(one));
	pthread_mutex_unlock(&s->irq_lock);
	if (ret < 0 && errno != EAGAIN)
		report(s, NM_LOG_ERROR, "vector %u can't be signalled: %s", vector,
		       strerror(errno));
}

/*
 * Takes over fd, -1 for none. The client keeps the vector table for itself; that a vector has
 * somebody to tell is what unmasks it here.
 */
static void set_eventfd(struct server *s, unsigned int vector, int fd)
{
	int old;

	pthread_mutex_lock(&s->irq_lock);
	old = s->eventfd[vector];
	s->eventfd[vector] = fd;
	pthread_mutex_unlock(&s->irq_lock);
	if (old >= 0)
		close(old);
	nm_bar_write(s->dev, EXI_BAR, EXI_MSIX_TABLE + vector * 16 + 12, 4, fd < 0);
}

static int do_irq_info(struct server *s, struct message *m)
{
	struct vfio_irq_info info;
	uint32_t index;

	(void)s;
	memcpy(&info, m->payload, sizeof(info));
	index = info.index;
	if (index >= VFIO_PCI_NUM_IRQS)
		return -EINVAL;
	info = (struct vfio_irq_info){ .argsz = sizeof(info), .index = index };
	if (index == VFIO_PCI_MSIX_IRQ_INDEX || index == VFIO_PCI_ERR_IRQ_INDEX) {
		info.flags = VFIO_IRQ_INFO_EVENTFD;
		info.count = index == VFIO_PCI_MSIX_IRQ_INDEX ? EXI_MSIX_VECTORS : 1;
	}
	memcpy(m->payload, &info, sizeof(info));
	m->n = sizeof(info);
	return 0;
}

static void all_eventfds_off(struct server *s)
{
	for (unsigned int v = 0; v < EXI_MSIX_VECTORS; v++)
		set_eventfd(s, v, -1);
}

/* Triggers by the client, a loopback test of its own. */
static int trigger(struct server *s, const struct vfio_irq_set *set, const struct message *m)
{
	const uint8_t *on = m->payload + sizeof(*set);

	if (set->flags & VFIO_IRQ_SET_DATA_BOOL && m->n - sizeof(*set) < set->count)
		return -EINVAL;
	for (uint32_t i = 0; i < set->count; i++)
		if (set->flags & VFIO_IRQ_SET_DATA_NONE || on[i])
			irq(s, set->start + i);
	return 0;
}

static int do_set_irqs(struct server *s, struct message *m)
{
	struct vfio_irq_set set;
	int ret = 0;

	memcpy(&set, m->payload, sizeof(set));
	if (set.index != VFIO_PCI_MSIX_IRQ_INDEX) {
		/* Bus errors have one eventfd; this device has none to report. */
		if (set.start || set.count > (set.index == VFIO_PCI_ERR_IRQ_INDEX))
			return -EINVAL;
		m->n = 0;
		return 0;
	}
	if (set.start > EXI_MSIX_VECTORS || set.count > EXI_MSIX_VECTORS - set.start ||
	    !(set.flags & VFIO_IRQ_SET_ACTION_TRIGGER)) {
		report(s, NM_LOG_GUEST, "vectors %u to %u with flags 0x%x: there are %d, to trigger",
		       set.start, set.start + set.count, set.flags, EXI_MSIX_VECTORS);
		return -EINVAL;
	}
	switch (set.flags & VFIO_IRQ_SET_DATA_TYPE_MASK) {
	case VFIO_IRQ_SET_DATA_EVENTFD:
		if (m->n_fds && m->n_fds != set.count)
			return -EINVAL;
		for (uint32_t i = 0; i < set.count; i++) {
			set_eventfd(s, set.start + i, m->n_fds ? m->fds[i] : -1);
			if (m->n_fds)
				m->fds[i] = -1; /* kept */
		}
		break;
	case VFIO_IRQ_SET_DATA_NONE:
		if (!set.start && !set.count)
			all_eventfds_off(s);
		else
			ret = trigger(s, &set, m);
		break;
	case VFIO_IRQ_SET_DATA_BOOL:
		ret = trigger(s, &set, m);
		break;
	default:
		ret = -EINVAL;
		break;
	}
	m->n = 0;
	return ret;
}

/* --- regions ----------------------------------------------------------------------------------------- */

/* Largest access of a region that fits alignment and what is left. */
static unsigned int unit(uint32_t region, uint64_t offset, uint32_t left)
{
	unsigned int size = region == VFIO_PCI_CONFIG_REGION_INDEX ? 4 : 8;

	while (size > 1 && (offset % size || size > left))
		size /= 2;
	return size;
}

static int check_region(struct server *s, const struct region_rw *rw)
{
	uint64_t size = region_size(s, rw->region);

	if (rw->count <= XFER_MAX && rw->offset <= size && rw->count <= size - rw->offset)
		return 0;
	report(s, NM_LOG_GUEST, "access to region %u + 0x%llx of %u bytes: it has 0x%llx",
	       rw->region, (unsigned long long)rw->offset, rw->count, (unsigned long long)size);
	return -EINVAL;
}

static int do_region_read(struct server *s, struct message *m)
{
	struct region_rw rw;
	uint8_t *data = m->payload + sizeof(rw);
	int ret;

	memcpy(&rw, m->payload, sizeof(rw));
	ret = check_region(s, &rw);
	if (ret)
		return ret;
	if (rw.region == V3_BAR_DRAM)
		memcpy(data, (uint8_t *)nm_hbm_ptr(s->dev) + rw.offset, rw.count);
	else
		for (uint32_t done = 0; done < rw.count;) {
			uint64_t at = rw.offset + done;
			unsigned int n = unit(rw.region, at, rw.count - done);
			uint64_t value = rw.region == VFIO_PCI_CONFIG_REGION_INDEX ?
						 nm_config_read(s->dev, (uint32_t)at, n) :
						 nm_bar_read(s->dev, rw.region, at, n);

			memcpy(data + done, &value, n);
			done += n;
		}
	m->n = sizeof(rw) + rw.count;
	return 0;
}

static int do_region_write(struct server *s, struct message *m)
{
	struct region_rw rw;
	const uint8_t *data = m->payload + sizeof(rw);
	int ret;

	memcpy(&rw, m->payload, sizeof(rw));
	ret = check_region(s, &rw);
	if (ret)
		return ret;
	if (rw.count > m->n - sizeof(rw))
		return -EINVAL;
	if (rw.region == V3_BAR_DRAM)
		memcpy((uint8_t *)nm_hbm_ptr(s->dev) + rw.offset, data, rw.count);
	else
		for (uint32_t done = 0; done < rw.count;) {
			uint64_t at = rw.offset + done;
			unsigned int n = unit(rw.region, at, rw.count - done);
			uint64_t value = 0;

			memcpy(&value, data + done, n);
			if (rw.region == VFIO_PCI_CONFIG_REGION_INDEX)
				nm_config_write(s->dev, (uint32_t)at, n, (uint32_t)value);
			else
				nm_bar_write(s->dev, rw.region, at, n, value);
			done += n;
		}
	m->n = sizeof(rw);
	return 0;
}

static int do_reset(struct server *s, struct message *m)
{
	nm_device_reset(s->dev);
	/* Eventfds stay, so the vectors that have one are unmasked again. */
	for (unsigned int v = 0; v < EXI_MSIX_VECTORS; v++)
		if (s->eventfd[v] >= 0)
			nm_bar_write(s->dev, EXI_BAR, EXI_MSIX_TABLE + v * 16 + 12, 4, 0);
	m->n = 0;
	return 0;
}

/* --- dispatch ----------------------------------------------------------------------------------------------- */

static const struct command {
	uint16_t code;
	size_t least; /* bytes of payload */
	const char *name;
	int (*run)(struct server *s, struct message *m); /* 0 or -errno; m->n: bytes of reply */
} commands[] = {
	{ CMD_VERSION, sizeof(struct version), "VERSION", do_version },
	{ CMD_DMA_MAP, sizeof(struct dma_map_msg), "DMA_MAP", do_dma_map },
	{ CMD_DMA_UNMAP, sizeof(struct dma_unmap_msg), "DMA_UNMAP", do_dma_unmap },
	{ CMD_DEVICE_GET_INFO, 4, "DEVICE_GET_INFO", do_device_info },
	{ CMD_DEVICE_GET_REGION_INFO, sizeof(struct vfio_region_info), "DEVICE_GET_REGION_INFO",
	  do_region_info },
	{ CMD_DEVICE_GET_IRQ_INFO, sizeof(struct vfio_irq_info), "DEVICE_GET_IRQ_INFO",
	  do_irq_info },
	{ CMD_DEVICE_SET_IRQS, sizeof(struct vfio_irq_set), "DEVICE_SET_IRQS", do_set_irqs },
	{ CMD_REGION_READ, sizeof(struct region_rw), "REGION_READ", do_region_read },
	{ CMD_REGION_WRITE, sizeof(struct region_rw), "REGION_WRITE", do_region_write },
	{ CMD_DEVICE_RESET, 0, "DEVICE_RESET", do_reset },
};

static int dispatch(struct server *s, struct message *m)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		const struct command *c = &commands[i];

		if (c->code != m->head.command)
			continue;
		if (!s->versioned && c->code != CMD_VERSION) {
			report(s, NM_LOG_GUEST, "%s before VERSION", c->name);
			return -EPROTO;
		}
		if (m->n < c->least) {
			report(s, NM_LOG_GUEST, "%s with %zu bytes of payload: want %zu", c->name,
			       m->n, c->least);
			return -EINVAL;
		}
		return c->run(s, m);
	}
	report(s, NM_LOG_INFO, "command %u is not supported", m->head.command);
	return -ENOTSUP;
}

static int answer(struct server *s, struct message *m)
{
	struct header head = m->head;
	int ret = dispatch(s, m);

	close_fds(m);
	if (head.flags & FLAG_NO_REPLY)
		return 0;
	head.flags = FLAG_REPLY;
	head.error = 0;
	if (ret) {
		head.flags |= FLAG_ERROR;
		head.error = (uint32_t)-ret;
		m->n = 0;
		m->reply_fd = -1;
	}
	head.size = (uint32_t)(sizeof(head) + m->n);
	return send_message(s, &head, m->payload, m->n, m->reply_fd);
}

static int run(struct server *s)
{
	struct message *m = malloc(sizeof(*m));
	int ret;

	if (!m)
		return -ENOMEM;
	while ((ret = receive(s, m)) > 0) {
		if ((m->head.flags & FLAG_TYPE) == FLAG_REPLY)
			take_answer(s, m);
		else
			ret = answer(s, m);
		if (ret >= 0 && m->head.command == CMD_VERSION && !s->versioned)
			ret = -EPROTO;
		close_fds(m);
		if (ret < 0)
			break;
	}
	close_fds(m);
	free(m);
	return ret == -EPIPE ? 0 : ret;
}

static void shut_down(struct server *s)
{
	pthread_mutex_lock(&s->answer_lock);
	s->closed = true;
	pthread_cond_signal(&s->answer);
	pthread_mutex_unlock(&s->answer_lock);

	nm_device_reset(s->dev);
	all_eventfds_off(s);
	while (s->mappings)
		drop_mapping(s, &s->mappings);
	nm_device_destroy(s->dev);
}

int vfio_user_serve(int sock, int stop_fd, const struct nm_config *config)
{
	struct nm_config device = *config;
	struct server s = { .config = config, .sock = sock, .stop_fd = stop_fd };
	pthread_condattr_t monotonic;
	int ret;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&s.answer, &monotonic);
	pthread_condattr_destroy(&monotonic);
	pthread_mutex_init(&s.send_lock, NULL);
	pthread_mutex_init(&s.irq_lock, NULL);
	pthread_mutex_init(&s.dma_lock, NULL);
	pthread_mutex_init(&s.answer_lock, NULL);
	for (unsigned int v = 0; v < EXI_MSIX_VECTORS; v++)
		s.eventfd[v] = -1;

	device.irq = irq;
	device.dma = dma_by_message;
	device.user = &s;
	device.log = config->log ? forward_log : NULL;
	ret = nm_device_create(&device, &s.dev);
	if (!ret) {
		ret = run(&s);
		shut_down(&s);
	}
	close(sock);
	pthread_mutex_destroy(&s.answer_lock);
	pthread_mutex_destroy(&s.dma_lock);
	pthread_mutex_destroy(&s.irq_lock);
	pthread_mutex_destroy(&s.send_lock);
	pthread_cond_destroy(&s.answer);
	return ret;
}
