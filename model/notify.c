// SPDX-License-Identifier: Apache-2.0
/* Notification queues of cores, TopSPs and SDMA wrappers. */
#include <string.h>

#include "device.h"

#define RW(off, msk) REG_(#off, REG_RW, off, NQ_QUEUES, NQ_STRIDE, 0, msk)

enum { R_BASE_LO, R_BASE_HI, R_SIZE, R_HEAD, N_REGS };

static const struct reg nq_regs[N_REGS] = {
	[R_BASE_LO] = RW(NQ_BASE_LO, 0),
	[R_BASE_HI] = RW(NQ_BASE_HI, 0),
	[R_SIZE] = RW(NQ_SIZE, 0),
	[R_HEAD] = RW(NQ_HEAD, 0),
};

void nm_notify_write(struct nm_device *dev, struct block *b, unsigned int first, struct nq *queues,
		     unsigned int reg, unsigned int i, uint32_t value)
{
	if (reg != first + R_SIZE)
		return;
	if (value & (value - 1) || (value && value < sizeof(struct nq_entry))) {
		nm_guest_error(dev, GUEST_KEY(GUEST_NOTIFY, b->index, i),
			       "%s queue %u: size %u is not a power of two of at least %zu; halted",
			       b->name, i, value, sizeof(struct nq_entry));
		*block_value(b, reg, i) = 0;
	}
	queues[i] = (struct nq){ .position = 0, .phase = 1 };
}

static void core_write(struct nm_device *dev, struct block *b, unsigned int reg, unsigned int i,
		       uint32_t old, uint32_t value)
{
	(void)old;
	nm_notify_write(dev, b, 0, dev->core_nq_state[b->index], reg, i, value);
}

static void topsp_write(struct nm_device *dev, struct block *b, unsigned int reg, unsigned int i,
			uint32_t old, uint32_t value)
{
	(void)old;
	nm_notify_write(dev, b, 0, dev->topsp_nq_state[b->index], reg, i, value);
}

int nm_core_nq_init(struct nm_device *dev, struct block *b)
{
	dev->core_nq[b->index] = b;
	b->ops.write = core_write;
	return nm_block_init(b, nq_regs, N_REGS);
}

int nm_topsp_nq_init(struct nm_device *dev, struct block *b)
{
	dev->topsp_nq[b->index] = b;
	b->ops.write = topsp_write;
	return nm_block_init(b, nq_regs, N_REGS);
}

void nm_notify_queue(struct nm_device *dev, struct block *b, unsigned int first, struct nq *queues,
		     unsigned int i, struct nq_entry *entry)
{
	struct nq *nq = &queues[i];
	uint64_t addr;
	uint32_t size;

	pthread_mutex_lock(&dev->lock);
	size = *block_value(b, first + R_SIZE, i);
	addr = (uint64_t)*block_value(b, first + R_BASE_HI, i) << 32 |
	       *block_value(b, first + R_BASE_LO, i);
	if (!addr)
		size = 0; /* halted as well */
	addr += nq->position;
	entry->phase = nq->phase;
	if (size) {
		nq->position += sizeof(*entry);
		if (nq->position == size) {
			nq->position = 0;
			nq->phase ^= 1;
		}
	}
	pthread_mutex_unlock(&dev->lock);
	if (!size)
		return;

	if (!entry->time_ns)
		entry->time_ns = nm_time_ns(dev);
	/* The phase byte is the first; write it last. */
	if (nm_bus_write(dev, addr + 1, (uint8_t *)entry + 1, sizeof(*entry) - 1) ||
	    nm_bus_write(dev, addr, entry, 1))
		nm_guest_error(dev, GUEST_KEY(GUEST_NOTIFY, b->index, 0x10000 + i),
			       "%s notification queue %u: 0x%llx does not answer", b->name, i,
			       (unsigned long long)addr);
}

static unsigned int index_of(const struct nq_entry *entry, unsigned int engine)
{
	return NQ_INDEX(entry->type, engine < NQ_PER_TYPE ? engine : NQ_NO_ENGINE);
}

void nm_notify_post(struct nm_device *dev, unsigned int core, unsigned int engine,
		    struct nq_entry *entry)
{
	if (!entry->time_ns)
		entry->time_ns = nm_core_time_ns(dev->core[core]);
	nm_notify_queue(dev, dev->core_nq[core], 0, dev->core_nq_state[core],
			index_of(entry, engine), entry);
}

void nm_notify_topsp(struct nm_device *dev, unsigned int topsp, unsigned int engine,
		     struct nq_entry *entry)
{
	nm_notify_queue(dev, dev->topsp_nq[topsp], 0, dev->topsp_nq_state[topsp],
			index_of(entry, engine), entry);
}
