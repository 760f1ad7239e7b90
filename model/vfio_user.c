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
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "neuron_pci.h"
#include "vfio_user.h"
#include "vfio_wire.h"

#define CONFIG_BYTES 4096u

struct version {
	uint16_t major;
	uint16_t minor;
};

struct region_rw {
	uint64_t offset;
	uint32_t region;
	uint32_t count;
};

/* nm_config.log of the device, whose user is the server. */
static void forward_log(void *user, int level, const char *text)
{
	struct server *s = user;

	s->config->log(s->config->user, level, text);
}

/* --- version ------------------------------------------------------------------ */

static int do_version(struct server *s, struct message *m)
{
	static const char caps[] = "{\"capabilities\":{\"max_msg_fds\":16,"
				   "\"max_data_xfer_size\":1048576}}";
	struct version v;

	memcpy(&v, m->payload, sizeof(v));
	if (v.major != 0) {
		nm_vu_report(s, NM_LOG_GUEST, "client speaks version %u.%u, this is 0.0", v.major,
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

/* --- what the device is ------------------------------------------------------- */

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

/* --- interrupts --------------------------------------------------------------- */

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
		nm_vu_report(s, NM_LOG_ERROR, "vector %u can't be signalled: %s", vector,
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

/* A reset masked all vectors; those that have an eventfd are unmasked again. Reading thread. */
static void sync_masks(struct server *s)
{
	for (unsigned int v = 0; v < EXI_MSIX_VECTORS; v++) {
		const uint64_t entry = EXI_MSIX_TABLE + v * 16 + 12;

		if (s->eventfd[v] >= 0 && nm_bar_read(s->dev, EXI_BAR, entry, 4))
			nm_bar_write(s->dev, EXI_BAR, entry, 4, 0);
	}
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
		nm_vu_report(s, NM_LOG_GUEST,
			     "vectors %u to %u with flags 0x%x: there are %d, to trigger",
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

/* --- regions ------------------------------------------------------------------ */

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
	nm_vu_report(s, NM_LOG_GUEST, "access to region %u + 0x%llx of %u bytes: it has 0x%llx",
		     rw->region, (unsigned long long)rw->offset, rw->count,
		     (unsigned long long)size);
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
	/* It may have been a function-level reset. */
	if (rw.region == VFIO_PCI_CONFIG_REGION_INDEX)
		sync_masks(s);
	m->n = sizeof(rw);
	return 0;
}

static int do_reset(struct server *s, struct message *m)
{
	nm_device_reset(s->dev);
	sync_masks(s);
	m->n = 0;
	return 0;
}

/* --- dispatch ----------------------------------------------------------------- */

static const struct command {
	uint16_t code;
	size_t least; /* bytes of payload */
	const char *name;
	int (*run)(struct server *s, struct message *m); /* 0 or -errno; m->n: bytes of reply */
} commands[] = {
	{ CMD_VERSION, sizeof(struct version), "VERSION", do_version },
	{ CMD_DMA_MAP, sizeof(struct dma_map_msg), "DMA_MAP", nm_vu_dma_map },
	{ CMD_DMA_UNMAP, sizeof(struct dma_unmap_msg), "DMA_UNMAP", nm_vu_dma_unmap },
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
			nm_vu_report(s, NM_LOG_GUEST, "%s before VERSION", c->name);
			return -EPROTO;
		}
		if (m->n < c->least) {
			nm_vu_report(s, NM_LOG_GUEST, "%s with %zu bytes of payload: want %zu",
				     c->name, m->n, c->least);
			return -EINVAL;
		}
		return c->run(s, m);
	}
	nm_vu_report(s, NM_LOG_INFO, "command %u is not supported", m->head.command);
	return -ENOTSUP;
}

static int answer(struct server *s, struct message *m)
{
	struct header head = m->head;
	int ret = dispatch(s, m);

	nm_vu_close_fds(m);
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
	return nm_vu_send_message(s, &head, m->payload, m->n, m->reply_fd);
}

static int run(struct server *s)
{
	struct message *m = malloc(sizeof(*m));
	int ret;

	if (!m)
		return -ENOMEM;
	while ((ret = nm_vu_receive(s, m)) > 0) {
		if ((m->head.flags & FLAG_TYPE) == FLAG_REPLY)
			nm_vu_take_answer(s, m);
		else
			ret = answer(s, m);
		if (ret >= 0 && m->head.command == CMD_VERSION && !s->versioned)
			ret = -EPROTO;
		nm_vu_close_fds(m);
		if (ret < 0)
			break;
	}
	nm_vu_close_fds(m);
	free(m);
	return ret == -EPIPE ? 0 : ret;
}

static void shut_down(struct server *s)
{
	nm_vu_stop_dma(s);
	nm_device_reset(s->dev);
	all_eventfds_off(s);
	nm_vu_drop_all_mappings(s);
	nm_device_destroy(s->dev);
}

int vfio_user_serve(int sock, int stop_fd, const struct nm_config *config,
		    struct nm_control *control)
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
	device.dma = nm_vu_dma_by_message;
	device.user = &s;
	device.log = config->log ? forward_log : NULL;
	ret = nm_device_create(&device, &s.dev);
	if (!ret) {
		nm_control_attach(control, s.dev);
		ret = run(&s);
		nm_control_attach(control, NULL);
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
