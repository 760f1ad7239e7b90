// SPDX-License-Identifier: Apache-2.0
/* The server end of the protocol, driven by a small client over a socket pair. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/vfio.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fixture.h"
#include "neuron_mailbox.h"
#include "neuron_udma.h"
#include "vfio_user.h"

struct header {
	uint16_t id, command;
	uint32_t size, flags, error;
};

struct client {
	int sock;
	int server_sock;
	int stop[2];
	int result;
	bool joined;
	pthread_t thread;
	struct nm_config config;
	uint16_t id;
	/* Client memory without a descriptor, served by message. */
	uint8_t *remote;
	uint64_t remote_iova, remote_size;
	unsigned int dma_messages;
};

static void *serve(void *arg)
{
	struct client *c = arg;

	c->result = vfio_user_serve(c->server_sock, c->stop[0], &c->config, NULL);
	return NULL;
}

static void send_fds(int sock, const void *buf, size_t n, const int *fds, unsigned int n_fds)
{
	char space[CMSG_SPACE(16 * sizeof(int))] = { 0 };
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = n };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (n_fds) {
		struct cmsghdr *c;

		msg.msg_control = space;
		msg.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
	}
	assert_int_equal(sendmsg(sock, &msg, MSG_NOSIGNAL), n);
}

/* Returns bytes read, 0 at the end; *fd is a descriptor that came along. */
static size_t receive(int sock, void *buf, size_t n, int *fd)
{
	char space[CMSG_SPACE(sizeof(int))];
	size_t got = 0;

	while (got < n) {
		struct iovec iov = { .iov_base = (uint8_t *)buf + got, .iov_len = n - got };
		struct msghdr msg = { .msg_iov = &iov,
				      .msg_iovlen = 1,
				      .msg_control = space,
				      .msg_controllen = sizeof(space) };
		ssize_t ret = recvmsg(sock, &msg, 0);
		struct cmsghdr *c;

		if (ret <= 0)
			return 0;
		c = CMSG_FIRSTHDR(&msg);
		if (c && fd)
			memcpy(fd, CMSG_DATA(c), sizeof(*fd));
		got += (size_t)ret;
	}
	return got;
}

/* Answers a DMA message of the server out of the client's unmapped memory. */
static void serve_dma(struct client *c, const struct header *head)
{
	uint8_t *payload = malloc(head->size);
	struct header reply = *head;
	uint64_t iova, count;
	size_t n = head->size - sizeof(*head);

	assert_int_equal(receive(c->sock, payload, n, NULL), n);
	memcpy(&iova, payload, 8);
	memcpy(&count, payload + 8, 8);
	c->dma_messages++;
	reply.flags = 1;
	if (iova < c->remote_iova || iova + count > c->remote_iova + c->remote_size) {
		reply.flags |= 0x20;
		reply.error = EFAULT;
		reply.size = sizeof(reply);
		send_fds(c->sock, &reply, sizeof(reply), NULL, 0);
	} else if (head->command == 11) {
		reply.size = (uint32_t)(sizeof(reply) + 16 + count);
		send_fds(c->sock, &reply, sizeof(reply), NULL, 0);
		send_fds(c->sock, payload, 16, NULL, 0);
		send_fds(c->sock, c->remote + (iova - c->remote_iova), count, NULL, 0);
	} else {
		memcpy(c->remote + (iova - c->remote_iova), payload + 16, count);
		reply.size = sizeof(reply);
		send_fds(c->sock, &reply, sizeof(reply), NULL, 0);
	}
	free(payload);
}

static void serve_dma_if_asked(struct client *c)
{
	struct pollfd p = { .fd = c->sock, .events = POLLIN };
	struct header head;

	while (poll(&p, 1, 0) == 1 && receive(c->sock, &head, sizeof(head), NULL))
		serve_dma(c, &head);
}

/* One request. Returns the errno of the reply, -1 if the server hung up. */
static int call_fds(struct client *c, uint16_t command, const void *req, size_t n, void *rep,
		    size_t rep_n, const int *fds, unsigned int n_fds, int *rep_fd)
{
	struct header head = { ++c->id, command, (uint32_t)(sizeof(head) + n), 0, 0 };
	uint8_t drop[64];

	send_fds(c->sock, &head, sizeof(head), fds, n_fds);
	if (n)
		send_fds(c->sock, req, n, NULL, 0);
	for (;;) {
		if (!receive(c->sock, &head, sizeof(head), rep_fd))
			return -1;
		if (head.flags & 1)
			break;
		serve_dma(c, &head);
	}
	assert_int_equal(head.id, c->id);
	assert_int_equal(head.command, command);
	if (head.flags & 0x20) {
		assert_int_equal(head.size, sizeof(head));
		return (int)head.error;
	}
	n = head.size - sizeof(head);
	if (n > rep_n) {
		assert_true(n <= sizeof(drop));
		receive(c->sock, drop, n, NULL);
	} else if (n) {
		receive(c->sock, rep, n, NULL);
	}
	return 0;
}

static int call(struct client *c, uint16_t command, const void *req, size_t n, void *rep,
		size_t rep_n)
{
	return call_fds(c, command, req, n, rep, rep_n, NULL, 0, NULL);
}

static int region(struct client *c, bool write, uint32_t index, uint64_t offset, void *data,
		  uint32_t n)
{
	struct {
		uint64_t offset;
		uint32_t region, count;
		uint8_t data[4096];
	} m = { offset, index, n, { 0 } };
	int ret;

	if (write)
		memcpy(m.data, data, n);
	ret = call(c, write ? 10 : 9, &m, write ? 16 + n : 16, &m, sizeof(m));
	if (!ret && !write)
		memcpy(data, m.data, n);
	return ret;
}

static uint32_t peek(struct client *c, uint32_t index, uint64_t offset)
{
	uint32_t v = 0;

	assert_int_equal(region(c, false, index, offset, &v, 4), 0);
	return v;
}

static void poke(struct client *c, uint32_t index, uint64_t offset, uint32_t v)
{
	assert_int_equal(region(c, true, index, offset, &v, 4), 0);
}

static int dma_map(struct client *c, uint64_t iova, uint64_t size, int fd)
{
	struct {
		uint32_t argsz, flags;
		uint64_t offset, iova, size;
	} m = { sizeof(m), 3, 0, iova, size };

	return call_fds(c, 2, &m, sizeof(m), NULL, 0, &fd, fd >= 0, NULL);
}

static int dma_unmap(struct client *c, uint64_t iova, uint64_t size, uint32_t flags)
{
	struct {
		uint32_t argsz, flags;
		uint64_t iova, size;
	} m = { sizeof(m), flags, iova, size }, r = { 0 };
	int ret = call(c, 3, &m, sizeof(m), &r, sizeof(r));

	if (!ret)
		assert_memory_equal(&m, &r, sizeof(m));
	return ret;
}

static int quiet(void **state)
{
	struct client *c = calloc(1, sizeof(*c));
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(pipe(c->stop), 0);
	c->sock = pair[0];
	c->server_sock = pair[1];
	c->config =
		(struct nm_config){ .cores = 1, .hbm_bytes = HBM_STACK, .log_level = NM_LOG_GUEST };
	assert_int_equal(pthread_create(&c->thread, NULL, serve, c), 0);
	*state = c;
	return 0;
}

static int say_version(struct client *c, uint16_t major)
{
	struct {
		uint16_t major, minor;
		char data[32];
	} v = { major, 0, "{\"capabilities\":{}}" };
	char reply[256] = { 0 };
	int ret = call(c, 1, &v, 4 + strlen(v.data) + 1, reply, sizeof(reply));

	if (!ret)
		assert_non_null(strstr(reply + 4, "\"max_msg_fds\":16"));
	return ret;
}

static int setup(void **state)
{
	quiet(state);
	return say_version(*state, 0);
}

/* What the server returned, once it has. */
static int result(struct client *c)
{
	if (!c->joined)
		pthread_join(c->thread, NULL);
	c->joined = true;
	return c->result;
}

static int teardown(void **state)
{
	struct client *c = *state;

	close(c->sock);
	result(c);
	close(c->stop[0]);
	close(c->stop[1]);
	free(c);
	return 0;
}

static void says_what_it_is(void **state)
{
	struct client *c = *state;
	uint32_t info[4] = { 16, 0, 0, 0 };
	struct vfio_region_info r;
	struct vfio_irq_info q;
	int fd = -1;

	assert_int_equal(call(c, 4, info, 16, info, 16), 0);
	assert_int_equal(info[1], VFIO_DEVICE_FLAGS_RESET | VFIO_DEVICE_FLAGS_PCI);
	assert_int_equal(info[2], VFIO_PCI_NUM_REGIONS);
	assert_int_equal(info[3], VFIO_PCI_NUM_IRQS);

	r = (struct vfio_region_info){ .argsz = sizeof(r), .index = 2 };
	assert_int_equal(call(c, 5, &r, sizeof(r), &r, sizeof(r)), 0);
	assert_int_equal(r.size, 4ull << 30);
	assert_int_equal(r.flags, 3);
	r = (struct vfio_region_info){ .argsz = sizeof(r), .index = 4 };
	assert_int_equal(call_fds(c, 5, &r, sizeof(r), &r, sizeof(r), NULL, 0, &fd), 0);
	assert_int_equal(r.size, 4 * HBM_STACK);
	assert_int_equal(r.flags, 7);
	assert_true(fd >= 0);
	close(fd);
	r = (struct vfio_region_info){ .argsz = sizeof(r), .index = VFIO_PCI_NUM_REGIONS };
	assert_int_equal(call(c, 5, &r, sizeof(r), &r, sizeof(r)), EINVAL);

	q = (struct vfio_irq_info){ .argsz = sizeof(q), .index = VFIO_PCI_MSIX_IRQ_INDEX };
	assert_int_equal(call(c, 7, &q, sizeof(q), &q, sizeof(q)), 0);
	assert_int_equal(q.count, EXI_MSIX_VECTORS);
	assert_int_equal(peek(c, VFIO_PCI_CONFIG_REGION_INDEX, 0), 0x73641d0f);
}

static void dram_bar_is_shared(void **state)
{
	struct client *c = *state;
	struct vfio_region_info r = { .argsz = sizeof(r), .index = 4 };
	uint8_t bytes[7] = { 1, 2, 3, 4, 5, 6, 7 };
	uint8_t *p;
	int fd = -1;

	assert_int_equal(call_fds(c, 5, &r, sizeof(r), &r, sizeof(r), NULL, 0, &fd), 0);
	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)r.offset);
	assert_ptr_not_equal(p, MAP_FAILED);
	assert_int_equal(region(c, true, 4, 3, bytes, sizeof(bytes)), 0);
	assert_memory_equal(p + 3, bytes, sizeof(bytes));
	p[100] = 9;
	assert_int_equal(region(c, false, 4, 100, bytes, 1), 0);
	assert_int_equal(bytes[0], 9);
	munmap(p, 4096);
	close(fd);
}

/* A copy by engine 129 with an interrupt, rings and data at iova. */
static void copy_with(struct client *c, uint8_t *mem, uint64_t iova)
{
	const uint64_t m2s = V3_APB_UDMA(129) + UDMA_M2S, s2m = V3_APB_UDMA(129) + UDMA_S2M;
	struct udma_desc *tx = (struct udma_desc *)mem, *rx = (struct udma_desc *)(mem + 4096);
	const uint64_t base = V3_DEV_HOST + iova;

	for (unsigned int i = 0; i < 100; i++)
		mem[8192 + i] = (uint8_t)(i + 1);
	*tx = (struct udma_desc){ 100 | 1 << 24 | UDMA_DESC_FIRST | UDMA_DESC_LAST, UDMA_META_COPY,
				  base + 8192 };
	*rx = (struct udma_desc){ 100 | 1 << 24 | UDMA_DESC_INT, 0, base + 12288 };
	poke(c, 7, 4, 6); /* memory space, bus master */
	for (unsigned int rxq = 0; rxq < 2; rxq++) {
		const uint64_t half = rxq ? s2m : m2s, at = base + rxq * 4096;

		poke(c, 2, half + UDMA_CHANGE_STATE, UDMA_CHANGE_NORMAL);
		poke(c, 2, half + UDMA_Q(0) + UDMA_Q_BASE_LO, (uint32_t)at);
		poke(c, 2, half + UDMA_Q(0) + UDMA_Q_BASE_HI, (uint32_t)(at >> 32));
		poke(c, 2, half + UDMA_Q(0) + UDMA_Q_LEN, 64);
		poke(c, 2, half + UDMA_Q(0) + UDMA_Q_CFG,
		     UDMA_Q_CFG_PREFETCH | UDMA_Q_CFG_SCHEDULE);
	}
	poke(c, 0, EXI_UDMA_ROUTE(129, 0), EXI_VECTOR_ENABLE | 3);
	poke(c, 2, s2m + UDMA_Q(0) + UDMA_Q_TAIL_INC, 1);
	poke(c, 2, m2s + UDMA_Q(0) + UDMA_Q_TAIL_INC, 1);
}

static int set_irqs(struct client *c, uint32_t flags, uint32_t first, uint32_t count,
		    const int *fds, unsigned int n_fds)
{
	struct vfio_irq_set set = { sizeof(set), flags, VFIO_PCI_MSIX_IRQ_INDEX, first, count };

	return call_fds(c, 8, &set, sizeof(set), NULL, 0, fds, n_fds, NULL);
}

#define TO_EVENTFD (VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER)
#define TO_NONE	   (VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_TRIGGER)

static bool signalled(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint64_t n;

	return poll(&p, 1, 0) == 1 && read(fd, &n, sizeof(n)) == sizeof(n);
}

static void enable_msix(struct client *c)
{
	poke(c, 7, 0x90, 0x80000000); /* message control is the upper half */
}

static void dma_and_interrupts_reach_the_client(void **state)
{
	struct client *c = *state;
	const uint64_t size = 1 << 20;
	int fd = memfd_create("guest", MFD_CLOEXEC), ev = eventfd(0, EFD_CLOEXEC);
	uint8_t *mem;

	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_int_equal(dma_map(c, 0x100000, size, fd), 0);
	assert_int_equal(dma_map(c, 0x100000, 4096, fd), EEXIST);
	enable_msix(c);
	assert_int_equal(set_irqs(c, TO_EVENTFD, 3, 1, &ev, 1), 0);
	copy_with(c, mem, 0x100000);
	wait_for(signalled(ev));
	assert_memory_equal(mem + 12288, mem + 8192, 100);
	assert_int_equal(set_irqs(c, TO_NONE, 3, 1, NULL, 0), 0); /* by the client */
	assert_true(signalled(ev));
	poke(c, 7, 0x58, 0x8000); /* function-level reset: eventfds stay */
	assert_int_equal(peek(c, 0, EXI_UDMA_ROUTE(129, 0)), 0);
	enable_msix(c);
	copy_with(c, mem, 0x100000);
	wait_for(signalled(ev));
	assert_int_equal(set_irqs(c, TO_EVENTFD, 3, 1, NULL, 0), 0); /* taken away */
	assert_int_equal(set_irqs(c, TO_NONE, 3, 1, NULL, 0), 0);
	assert_false(signalled(ev));
	assert_int_equal(set_irqs(c, TO_NONE, 0, 0, NULL, 0), 0);
	assert_int_equal(dma_unmap(c, 0x100000, 4096, 0), ENOENT);
	assert_int_equal(dma_unmap(c, 0x100000, size, 0), 0);
	assert_int_equal(dma_map(c, 0x100000, size, fd), 0);
	assert_int_equal(dma_unmap(c, 0, 0, 2), 0); /* all */
	assert_int_equal(dma_unmap(c, 0x100000, size, 0), ENOENT);
	munmap(mem, size);
	close(fd);
	close(ev);
}

static void memory_without_descriptor_goes_by_message(void **state)
{
	struct client *c = *state;
	int ev = eventfd(0, EFD_CLOEXEC);

	c->remote_size = 1 << 16;
	c->remote_iova = 0x200000;
	c->remote = calloc(1, c->remote_size);
	assert_int_equal(dma_map(c, c->remote_iova, c->remote_size, -1), 0);
	enable_msix(c);
	assert_int_equal(set_irqs(c, TO_EVENTFD, 3, 1, &ev, 1), 0);
	copy_with(c, c->remote, c->remote_iova);
	wait_for((serve_dma_if_asked(c), signalled(ev)));
	assert_memory_equal(c->remote + 12288, c->remote + 8192, 100);
	assert_int_equal(c->dma_messages, 4); /* two descriptors, data in, data out */
	close(ev);
	free(c->remote);
}

static void reset_by_message(void **state)
{
	struct client *c = *state;

	poke(c, 2, V3_APB_MISC_RAM + MBOX_RUNTIME_0, 5);
	assert_int_equal(peek(c, 2, V3_APB_MISC_RAM + MBOX_RUNTIME_0), 5);
	assert_int_equal(call(c, 13, NULL, 0, NULL, 0), 0);
	assert_int_equal(peek(c, 2, V3_APB_MISC_RAM + MBOX_RUNTIME_0), 0);
}

static void bad_messages_get_errors(void **state)
{
	struct client *c = *state;
	uint8_t data[64] = { 0 };
	int fd = memfd_create("small", MFD_CLOEXEC), ev[2] = { eventfd(0, 0), eventfd(0, 0) };

	assert_int_equal(call(c, 99, data, 8, NULL, 0), ENOTSUP);
	assert_int_equal(call(c, 2, data, 8, NULL, 0), EINVAL); /* short */
	assert_int_equal(call(c, 8, data, 12, NULL, 0), EINVAL); /* short */
	assert_int_equal(ftruncate(fd, 4096), 0);
	assert_int_equal(dma_map(c, 0, 8192, fd), EINVAL); /* beyond its file */
	assert_int_equal(dma_map(c, 0, 0, fd), EINVAL);
	assert_int_equal(dma_map(c, UINT64_MAX, 4096, -1), EINVAL);
	assert_int_equal(region(c, false, 2, 4ull << 30, data, 4), EINVAL);
	assert_int_equal(region(c, false, 0, 0xffffffffffff, data, 4), EINVAL);
	assert_int_equal(region(c, false, 1, 0, data, 4), EINVAL);
	assert_int_equal(region(c, false, 9, 0, data, 4), EINVAL);
	assert_int_equal(set_irqs(c, TO_EVENTFD, 60, 5, NULL, 0), EINVAL);
	assert_int_equal(set_irqs(c, TO_EVENTFD, UINT32_MAX, 2, NULL, 0), EINVAL);
	assert_int_equal(set_irqs(c, TO_EVENTFD, 0, 1, ev, 2), EINVAL);
	assert_int_equal(set_irqs(c, 0, 0, 1, NULL, 0), EINVAL);
	/* An access that the BAR does not take is no protocol error. */
	assert_int_equal(region(c, false, 2, V3_APB_MISC_RAM, data, 2), 0);
	assert_int_equal(data[0], 0xff);
	assert_int_equal(peek(c, 7, 0), 0x73641d0f); /* still there */
	close(fd);
	close(ev[0]);
	close(ev[1]);
}

static void version_comes_first_and_must_fit(void **state)
{
	struct client *c = *state;
	uint8_t data[16] = { 16 };

	assert_int_equal(call(c, 4, data, 16, data, 16), EPROTO);
	assert_int_equal(say_version(c, 3), EPROTONOSUPPORT);
	assert_int_equal(receive(c->sock, data, 1, NULL), 0); /* hung up */
	assert_int_equal(result(c), -EPROTO);
}

static void oversized_message_ends_the_connection(void **state)
{
	struct client *c = *state;
	struct header head = { 1, 9, 0x7fffffff, 0, 0 };

	send_fds(c->sock, &head, sizeof(head), NULL, 0);
	assert_int_equal(receive(c->sock, &head, 1, NULL), 0);
}

static void stop_is_heard(void **state)
{
	struct client *c = *state;

	assert_int_equal(write(c->stop[1], "x", 1), 1);
	assert_int_equal(result(c), -EINTR);
}

static void truncated_stream_is_survived(void **state)
{
	struct client *c = *state;
	struct header head = { 1, 2, 48, 0, 0 };
	int fd = memfd_create("lost", MFD_CLOEXEC);

	send_fds(c->sock, &head, sizeof(head), &fd, 1);
	send_fds(c->sock, &head, 5, NULL, 0);
	close(fd);
}

#define CLIENT(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CLIENT(says_what_it_is),
		CLIENT(dram_bar_is_shared),
		CLIENT(dma_and_interrupts_reach_the_client),
		CLIENT(memory_without_descriptor_goes_by_message),
		CLIENT(reset_by_message),
		CLIENT(bad_messages_get_errors),
		cmocka_unit_test_setup_teardown(version_comes_first_and_must_fit, quiet, teardown),
		CLIENT(oversized_message_ends_the_connection),
		CLIENT(stop_is_heard),
		CLIENT(truncated_stream_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
