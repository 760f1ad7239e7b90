// SPDX-License-Identifier: Apache-2.0
/*
 * What the register BAR shows of cores and TopSPs: SBUF, events, semaphores. Of a TopSP the public
 * driver maps one range with events and semaphores; that they lie in it as in a core is assumed.
 * Events are state that the host and DMA read and write; a write that changes one is told in the event
 * notification queue.
 */
#include <string.h>

#include "device.h"

#define TOPSP_EVENTS   (V3_TPB_EVENTS - V3_TPB_EVENTS)
#define TOPSP_SEM_READ (V3_TPB_SEM_READ - V3_TPB_EVENTS)
#define TOPSP_SEM_SET  (V3_TPB_SEM_SET - V3_TPB_EVENTS)
#define TOPSP_SEM_INC  (V3_TPB_SEM_INC - V3_TPB_EVENTS)
#define TOPSP_SEM_DEC  (V3_TPB_SEM_DEC - V3_TPB_EVENTS)

static bool in(uint32_t offset, uint32_t base, uint32_t n, unsigned int *i)
{
	*i = (offset - base) / 4;
	return offset >= base && *i < n;
}

static uint32_t event_read(struct nm_device *dev, const uint32_t *event)
{
	uint32_t value;

	pthread_mutex_lock(&dev->lock);
	value = *event;
	pthread_mutex_unlock(&dev->lock);
	return value;
}

/* Whether it changed. */
static bool event_write(struct nm_device *dev, uint32_t *event, uint32_t value)
{
	bool changed;

	pthread_mutex_lock(&dev->lock);
	changed = *event != value;
	*event = value;
	pthread_mutex_unlock(&dev->lock);
	return changed;
}

static struct nq_entry event_entry(unsigned int i, uint32_t value)
{
	return (struct nq_entry){ .type = NQ_EVENT, .engine = 0xff, .seqno = value, .value = i };
}

/* --- cores ---------------------------------------------------------------------- */

static bool tpb_read(struct nm_device *dev, struct block *b, uint32_t offset, uint32_t *value)
{
	struct nm_core *core = dev->core[b->index];
	unsigned int i;

	if (offset < V3_TPB_SBUF_BYTES)
		return nm_core_sbuf_read(core, offset, value, sizeof(*value)) == 0;
	if (in(offset, V3_TPB_EVENTS, NM_EVENTS, &i)) {
		*value = event_read(dev, &dev->core_event[b->index][i]);
		return true;
	}
	if (!in(offset, V3_TPB_SEM_READ, NM_SEMAPHORES, &i))
		return false;
	*value = nm_core_sem_read(core, i);
	return true;
}

static bool tpb_write(struct nm_device *dev, struct block *b, uint32_t offset, uint32_t value)
{
	struct nm_core *core = dev->core[b->index];
	struct nq_entry entry;
	unsigned int i;

	if (offset < V3_TPB_SBUF_BYTES)
		return nm_core_sbuf_write(core, offset, &value, sizeof(value)) == 0;
	if (in(offset, V3_TPB_EVENTS, NM_EVENTS, &i)) {
		entry = event_entry(i, value);
		if (event_write(dev, &dev->core_event[b->index][i], value))
			nm_notify_post(dev, b->index, 0, &entry);
	} else if (in(offset, V3_TPB_SEM_SET, NM_SEMAPHORES, &i)) {
		nm_core_sem_write(core, i, NM_SEM_SET, value);
	} else if (in(offset, V3_TPB_SEM_INC, NM_SEMAPHORES, &i)) {
		nm_core_sem_write(core, i, NM_SEM_INC, value);
	} else if (in(offset, V3_TPB_SEM_DEC, NM_SEMAPHORES, &i)) {
		nm_core_sem_write(core, i, NM_SEM_DEC, value);
	} else {
		return false;
	}
	return true;
}

int nm_tpb_init(struct nm_device *dev, struct block *b)
{
	(void)dev;
	b->dma_writes = true;
	b->ops.window_read = tpb_read;
	b->ops.window_write = tpb_write;
	return 0;
}

void nm_tpb_reset(struct nm_device *dev, unsigned int core)
{
	memset(dev->core_event[core], 0, sizeof(dev->core_event[core]));
}

/* --- TopSPs --------------------------------------------------------------------- */

static bool topsp_read(struct nm_device *dev, struct block *b, uint32_t offset, uint32_t *value)
{
	unsigned int i;

	if (in(offset, TOPSP_EVENTS, NM_EVENTS, &i))
		*value = event_read(dev, &dev->topsp_event[b->index][i]);
	else if (in(offset, TOPSP_SEM_READ, NM_SEMAPHORES, &i))
		*value = event_read(dev, &dev->topsp_sem[b->index][i]);
	else
		return false;
	return true;
}

/* As in a core: neither below zero nor above the maximum. */
static uint32_t sem_add(uint32_t value, uint32_t step)
{
	return step > ISA_SEM_MAX - value ? ISA_SEM_MAX : value + step;
}

static bool topsp_write(struct nm_device *dev, struct block *b, uint32_t offset, uint32_t value)
{
	uint32_t *sem = dev->topsp_sem[b->index];
	struct nq_entry entry;
	unsigned int i;

	if (in(offset, TOPSP_EVENTS, NM_EVENTS, &i)) {
		entry = event_entry(i, value);
		if (event_write(dev, &dev->topsp_event[b->index][i], value))
			nm_notify_topsp(dev, b->index, 0, &entry);
		return true;
	}
	pthread_mutex_lock(&dev->lock);
	if (in(offset, TOPSP_SEM_SET, NM_SEMAPHORES, &i))
		sem[i] = sem_add(0, value);
	else if (in(offset, TOPSP_SEM_INC, NM_SEMAPHORES, &i))
		sem[i] = sem_add(sem[i], value);
	else if (in(offset, TOPSP_SEM_DEC, NM_SEMAPHORES, &i))
		sem[i] = value > sem[i] ? 0 : sem[i] - value;
	else
		sem = NULL;
	pthread_mutex_unlock(&dev->lock);
	return sem;
}

int nm_topsp_init(struct nm_device *dev, struct block *b)
{
	(void)dev;
	b->dma_writes = true;
	b->ops.window_read = topsp_read;
	b->ops.window_write = topsp_write;
	return 0;
}

void nm_topsp_reset(struct nm_device *dev, unsigned int topsp)
{
	nm_block_reset(dev->topsp_nq[topsp]);
	memset(dev->topsp_event[topsp], 0, sizeof(dev->topsp_event[topsp]));
	memset(dev->topsp_sem[topsp], 0, sizeof(dev->topsp_sem[topsp]));
}
