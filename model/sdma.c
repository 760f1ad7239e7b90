// SPDX-License-Identifier: Apache-2.0
/* The wrapper around a UDMA engine: reorder buffers, broadcast, its notification queues. */
#include <errno.h>

#include "device.h"

#define RW(off)	 REG_(#off, REG_RW, off, 0, 0, 0, 0)
#define RWQ(off) REG_(#off, REG_RW, NOTIFY + (off), NQ_QUEUES, NQ_STRIDE, 0, 0)

#define NOTIFY (UDMA_SDMA_NOTIFY - UDMA_SDMA)

/* Queues first, in the order of nm_notify_queue(). */
static const struct reg sdma_regs[] = {
	RWQ(NQ_BASE_LO),	 RWQ(NQ_BASE_HI),  RWQ(NQ_SIZE),     RWQ(NQ_HEAD),
	RW(SDMA_EVENT_ACCEL),	 RW(SDMA_ROB_CFG), RW(SDMA_WOB_CFG), RW(SDMA_BROADCAST_GROUP),
	RW(SDMA_BROADCAST_LAST), RW(SDMA_BEATS),
};

static void sdma_write(struct nm_device *dev, struct block *b, unsigned int reg, unsigned int i,
		       uint32_t old, uint32_t value)
{
	(void)old;
	nm_notify_write(dev, b, 0, dev->udma[b->index]->nq, reg, i, value);
}

int nm_sdma_init(struct nm_device *dev, struct block *b)
{
	/* The engine lies below its wrapper, so it was made before. */
	dev->udma[b->index]->sdma = b;
	b->ops.write = sdma_write;
	/* V2 lacks the last one. */
	return nm_block_init(b, sdma_regs,
			     sizeof(sdma_regs) / sizeof(sdma_regs[0]) -
				     (dev->chip->arch == NEURON_ARCH_V2));
}

void nm_sdma_trace(struct nm_device *dev, unsigned int engine, unsigned int queue, uint32_t descs,
		   uint64_t bytes)
{
	struct udma *u = dev->udma[engine];
	struct nq_entry entry = {
		.type = NQ_TRACE_DMA,
		.engine = 0xff,
		.queue = (uint16_t)queue,
		.seqno = descs,
		.value = bytes,
	};

	/* The public driver puts the one queue of each engine in place 0. */
	nm_notify_queue(dev, u->sdma, 0, u->nq, 0, &entry);
}
