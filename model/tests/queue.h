/* SPDX-License-Identifier: Apache-2.0 */
/* One UDMA queue with its rings in the fixture's host memory, as a driver keeps it. */
#ifndef NM_TEST_QUEUE_H
#define NM_TEST_QUEUE_H

#include "fixture.h"
#include "neuron_udma.h"

#define RING   64u
#define TX_AT  0x10000u /* rings, in host memory */
#define RX_AT  0x20000u
#define CDESC  0x30000u
#define DATA   0x40000u
#define MARKER 0x3f000u
#define VECTOR 9u

/* One queue as a driver keeps it. */
struct queue {
	struct fixture *f;
	unsigned int engine, q;
	uint32_t at[2]; /* next descriptor: TX, RX */
	uint32_t id[2];
};

static inline uint64_t half_at(const struct queue *u, unsigned int rx)
{
	return V3_APB_UDMA(u->engine) + (rx ? UDMA_S2M : UDMA_M2S);
}

static inline uint64_t q_at(const struct queue *u, unsigned int rx, uint32_t reg)
{
	return half_at(u, rx) + UDMA_Q(u->q) + reg;
}

static inline uint32_t ring_at(const struct queue *u, unsigned int rx)
{
	return (rx ? RX_AT : TX_AT) + u->q * 0x800;
}

static inline void set_up_ring(struct queue *u, unsigned int rx)
{
	struct fixture *f = u->f;
	uint64_t base = host_addr(ring_at(u, rx));

	apb_write(f, q_at(u, rx, UDMA_Q_CFG), UDMA_Q_CFG_RESET);
	apb_write(f, q_at(u, rx, rx ? UDMA_S2M_Q_SW_CTRL : UDMA_M2S_Q_SW_CTRL),
		  UDMA_Q_SW_CTRL_RESET);
	apb_write(f, q_at(u, rx, UDMA_Q_BASE_LO), (uint32_t)base);
	apb_write(f, q_at(u, rx, UDMA_Q_BASE_HI), (uint32_t)(base >> 32));
	apb_write(f, q_at(u, rx, UDMA_Q_LEN), RING);
	apb_write(f, q_at(u, rx, UDMA_Q_CFG),
		  UDMA_Q_CFG_RESET | UDMA_Q_CFG_PREFETCH | UDMA_Q_CFG_SCHEDULE);
	u->at[rx] = 0;
	u->id[rx] = UDMA_RING_ID_FIRST;
}

static inline struct queue start(struct fixture *f, unsigned int engine, unsigned int q)
{
	struct queue u = { .f = f, .engine = engine, .q = q };

	apb_write(f, half_at(&u, 0) + UDMA_M2S_CFG_LEN,
		  UDMA_M2S_CFG_LEN_MAX | UDMA_M2S_CFG_LEN_64K);
	for (unsigned int rx = 0; rx < 2; rx++) {
		apb_write(f, half_at(&u, rx) + UDMA_CHANGE_STATE, UDMA_CHANGE_NORMAL);
		set_up_ring(&u, rx);
	}
	nm_bar_write(f->dev, EXI_BAR, EXI_UDMA_ROUTE(engine, q), 4, EXI_VECTOR_ENABLE | VECTOR);
	return u;
}

static inline struct udma_desc *put(struct queue *u, unsigned int rx, uint64_t addr, uint32_t len,
				    uint32_t flags)
{
	struct udma_desc *ring = (struct udma_desc *)(u->f->host + ring_at(u, rx));
	struct udma_desc *d = &ring[u->at[rx]];

	d->ctrl = (len & UDMA_DESC_LEN) | flags | HW_SET(UDMA_DESC_RING_ID, u->id[rx]);
	d->meta = rx ? 0 : UDMA_META_COPY;
	d->addr = addr;
	if (++u->at[rx] == RING) {
		u->at[rx] = 0;
		u->id[rx] = (u->id[rx] + 1) & UDMA_RING_ID_MASK;
	}
	return d;
}

static inline void ring(struct queue *u, uint32_t tx, uint32_t rx)
{
	if (rx)
		apb_write(u->f, q_at(u, 1, UDMA_Q_TAIL_INC), rx);
	if (tx)
		apb_write(u->f, q_at(u, 0, UDMA_Q_TAIL_INC), tx);
}

static inline void put_pair(struct queue *u, uint64_t dst, uint64_t src, uint32_t len,
			    uint32_t rx_flags)
{
	put(u, 1, dst, len, rx_flags);
	put(u, 0, src, len, UDMA_DESC_FIRST | UDMA_DESC_LAST);
}

static inline uint32_t status(struct queue *u, unsigned int rx)
{
	return apb_read(u->f, q_at(u, rx, UDMA_Q_STATUS));
}

static inline bool idle(struct queue *u)
{
	return status(u, 0) & status(u, 1) & UDMA_Q_STATUS_IDLE;
}

static inline bool stopped(struct queue *u)
{
	return (status(u, 0) | status(u, 1)) & UDMA_Q_STATUS_ERROR;
}

static inline uint32_t cause(struct queue *u, unsigned int rx)
{
	return apb_read(u->f, V3_APB_UDMA(u->engine) + UDMA_GEN + UDMA_GEN_IOFIC_2(rx) +
				      UDMA_IOFIC_CAUSE);
}

static inline void fill(uint8_t *p, size_t n, unsigned int seed)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)(i * 7 + i / 251 + seed);
}

/* The copy of the public driver: data, then a marker with an interrupt. */
static inline void copy_and_wait(struct queue *u, uint64_t dst, uint64_t src, uint32_t len)
{
	const uint32_t marker = UDMA_MARKER;
	const uint64_t from = MARKER + u->q * 16, to = from + 8;
	unsigned int before = u->f->irqs[VECTOR];
	_Atomic uint32_t *seen = (_Atomic uint32_t *)(u->f->host + to);

	memcpy(u->f->host + from, &marker, sizeof(marker));
	*seen = 0;
	put_pair(u, dst, src, len, 0);
	put_pair(u, host_addr(to), host_addr(from), 4, UDMA_DESC_INT);
	ring(u, 2, 2);
	wait_for(*seen == UDMA_MARKER);
	wait_for(u->f->irqs[VECTOR] == before + 1);
	wait_for(idle(u));
}

#endif /* NM_TEST_QUEUE_H */
