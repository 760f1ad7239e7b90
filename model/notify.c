// SPDX-License-Identifier: Apache-2.0
/* Notification queues of cores and TopSPs. */
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

static void nq_write(struct nm_device *dev, struct block *b, unsigned int reg, unsigned int i,
		     uint32_t old, uint32_t value)
{
	(void)old;
	if (reg != R_SIZE)
		return;
	if (value & (value - 1) || (value && value < sizeof(struct nq_entry))) {
		nm_guest_error(dev, GUEST_KEY(GUEST_NOTIFY, b->index, i),
			       "%s queue %u: size %u is not a power of two of at least %zu; halted",
			       b->name, i, value, sizeof(struct nq_entry));
		*block_value(b, R_SIZE, i) = 0;
	}
	if (b->index < dev->config.cores && b == dev->core_nq[b->index])
		dev->core_nq_state[b->index][i] = (struct nq){ .position = 0, .phase = 1 };
}

int nm_core_nq_init(struct nm_device *dev, struct block *b)
{
	dev->core_nq[b->index] = b;
	b->ops.write = nq_write;
	return nm_block_init(b, nq_regs, N_REGS);
}

int nm_topsp_nq_init(struct nm_device *dev, struct block *b)
{
	dev->topsp_nq[b->index] = b;
	b->ops.write = nq_write;
	return nm_block_init(b, nq_regs, N_REGS);
}

void nm_notify_post(struct nm_device *dev, unsigned int core, unsigned int engine,
		    struct nq_entry *entry)
{
	struct block *b = dev->core_nq[core];
	unsigned int i = NQ_INDEX(entry->type, engine < NQ_PER_TYPE ? engine : NQ_PER_TYPE - 1);
	struct nq *nq = &dev->core_nq_state[core][i];
	uint64_t addr;
	uint32_t size;

	pthread_mutex_lock(&dev->lock);
	size = *block_value(b, R_SIZE, i);
	addr = (uint64_t)*block_value(b, R_BASE_HI, i) << 32 | *block_value(b, R_BASE_LO, i);
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

	entry->time_ns = nm_core_time_ns(dev->core[core]);
	/* The phase byte is the first; write it last. */
	if (nm_bus_write(dev, addr + 1, (uint8_t *)entry + 1, sizeof(*entry) - 1) ||
	    nm_bus_write(dev, addr, entry, 1))
		nm_guest_error(dev, GUEST_KEY(GUEST_NOTIFY, core, 0x10000 + i),
			       "core %u notification queue %u: 0x%llx does not answer", core, i,
			       (unsigned long long)addr);
}
