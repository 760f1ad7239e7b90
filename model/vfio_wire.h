/* SPDX-License-Identifier: Apache-2.0 */
/* Between vfio_user.c (what the device answers) and vfio_wire.c (messages, client memory). */
#ifndef NM_VFIO_WIRE_H
#define NM_VFIO_WIRE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "neuron_model.h"
#include "neuron_queue.h"

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

#define FDS_MAX	    16
#define XFER_MAX    (1u << 20) /* data in one message; the protocol's default */
#define PAYLOAD_MAX (XFER_MAX + 64)

struct header {
	uint16_t id;
	uint16_t command;
	uint32_t size;
	uint32_t flags;
	uint32_t error;
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
	size_t n; /* bytes of payload: received, then to send */
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

void nm_vu_report(struct server *s, int level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Header and payload as one unit; fd goes along unless it is -1. 0 or -EPIPE. */
int nm_vu_send_message(struct server *s, const struct header *head, const void *payload, size_t n,
		       int fd);

/* Next message. 1, 0 when the client hung up, -EINTR when asked to stop, another -errno. */
int nm_vu_receive(struct server *s, struct message *m);
void nm_vu_close_fds(struct message *m);

/* Handlers of the two messages: 0 or -errno, m becomes the reply. */
int nm_vu_dma_map(struct server *s, struct message *m);
int nm_vu_dma_unmap(struct server *s, struct message *m);
void nm_vu_drop_all_mappings(struct server *s);

/* nm_config.dma: any device thread. */
int nm_vu_dma_by_message(void *user, uint64_t iova, void *buf, size_t size, bool write);
/* A reply of the client to the DMA message that is waiting. */
void nm_vu_take_answer(struct server *s, const struct message *m);
/* DMA by message fails from now on. */
void nm_vu_stop_dma(struct server *s);

#endif /* NM_VFIO_WIRE_H */
