// SPDX-License-Identifier: Apache-2.0
/* Messages on the socket with their file descriptors, and the client's memory. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "vfio_wire.h"

#define DMA_WAIT_S 5 /* for the answer to a DMA message */
#define UNMAP_ALL  (1u << 1)

struct dma_rw {
	uint64_t iova;
	uint64_t count;
};

void nm_vu_report(struct server *s, int level, const char *fmt, ...)
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

/* --- bytes in and out --------------------------------------------------------- */

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

int nm_vu_send_message(struct server *s, const struct header *head, const void *payload, size_t n,
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

void nm_vu_close_fds(struct message *m)
{
	for (unsigned int i = 0; i < m->n_fds; i++)
		if (m->fds[i] >= 0)
			close(m->fds[i]);
	m->n_fds = 0;
}

int nm_vu_receive(struct server *s, struct message *m)
{
	int ret;

	m->n_fds = 0;
	m->reply_fd = -1;
	ret = receive_all(s, m, &m->head, sizeof(m->head));
	if (ret <= 0)
		return ret;
	if (m->head.size < sizeof(m->head) || m->head.size - sizeof(m->head) > PAYLOAD_MAX) {
		nm_vu_report(s, NM_LOG_GUEST, "message %u of %u bytes: want %zu to %zu",
			     m->head.command, m->head.size, sizeof(m->head),
			     sizeof(m->head) + PAYLOAD_MAX);
		return -EPROTO;
	}
	m->n = m->head.size - sizeof(m->head);
	ret = m->n ? receive_all(s, m, m->payload, m->n) : 1;
	return ret == 0 ? -EPROTO : ret;
}

/* --- client memory ------------------------------------------------------------ */

static void *map_client(struct server *s, const struct dma_map_msg *d, int fd, unsigned int rights)
{
	const int prot = (rights & NM_DMA_READ ? PROT_READ : 0) |
			 (rights & NM_DMA_WRITE ? PROT_WRITE : 0);
	struct stat st;

	/* Beyond the end of the file a mapping would fault when it is used. */
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || d->offset + d->size < d->size ||
	    d->offset + d->size > (uint64_t)st.st_size) {
		nm_vu_report(s, NM_LOG_GUEST,
			     "DMA map of 0x%llx bytes at 0x%llx is not inside its file",
			     (unsigned long long)d->size, (unsigned long long)d->offset);
		return MAP_FAILED;
	}
	return mmap(NULL, d->size, prot, MAP_SHARED | MAP_NORESERVE, fd, (off_t)d->offset);
}

int nm_vu_dma_map(struct server *s, struct message *m)
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

void nm_vu_drop_all_mappings(struct server *s)
{
	while (s->mappings)
		drop_mapping(s, &s->mappings);
}

int nm_vu_dma_unmap(struct server *s, struct message *m)
{
	struct dma_unmap_msg d;

	memcpy(&d, m->payload, sizeof(d));
	m->n = sizeof(d);
	if (d.flags & UNMAP_ALL) {
		nm_vu_drop_all_mappings(s);
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

int nm_vu_dma_by_message(void *user, uint64_t iova, void *buf, size_t size, bool write)
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
		*rw = (struct dma_rw){ iova + done,
				       size - done < XFER_MAX ? size - done : XFER_MAX };
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
		ret = nm_vu_send_message(s, &head, rw, head.size - sizeof(head), -1);

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

void nm_vu_take_answer(struct server *s, const struct message *m)
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

void nm_vu_stop_dma(struct server *s)
{
	pthread_mutex_lock(&s->answer_lock);
	s->closed = true;
	pthread_cond_signal(&s->answer);
	pthread_mutex_unlock(&s->answer_lock);
}
