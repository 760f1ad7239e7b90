/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef __NEURON_RING_H__
#define __NEURON_RING_H__

#include <linux/types.h>

#include "neuron_udma.h"

struct neuron_device;
struct neuron_regs;

/* Descriptors each way: 4 MiB of scattered pages, 64 MiB of large pieces. */
#define NEURON_RING_DESCS 1024
/*
 * Always empty: the device fetches a burst of descriptors and counts it as done
 * when all of it is, later than the marker in its middle can be seen.
 */
#define NEURON_RING_GAP 64
/* Batches in flight, each with a marker that says it is done. */
#define NEURON_RING_MARKS 32

/**
 * struct neuron_ring_mem - What the device sees of a ring: one coherent allocation
 */
struct neuron_ring_mem {
	/** @tx: Sources. */
	struct udma_desc tx[NEURON_RING_DESCS];
	/** @rx: Destinations. */
	struct udma_desc rx[NEURON_RING_DESCS];
	/** @mark: Written by the device when a batch is done. */
	u32 mark[NEURON_RING_MARKS];
	/** @marker: What it writes. */
	u32 marker;
};

/**
 * struct neuron_ring - One UDMA queue that copies
 *
 * Each copy is a descriptor in both halves, so one index serves both. The owner
 * serialises all calls, except that memory is allocated and freed by it too.
 */
struct neuron_ring {
	/** @regs: Registers of the engine. */
	struct neuron_regs *regs;
	/** @queue: Queue of the engine. */
	unsigned int queue;
	/** @mem: Rings and markers. */
	struct neuron_ring_mem *mem;
	/** @addr: Device address of @mem. */
	u64 addr;
	/** @tail: Next descriptor to write. */
	u32 tail;
	/** @ring_id: Its ring id. */
	u32 ring_id;
	/** @used: Descriptors written and not known to be done. */
	u32 used;
	/** @fresh: Of them not yet rung. */
	u32 fresh;
	/** @mark_descs: Descriptors of each batch. */
	u32 mark_descs[NEURON_RING_MARKS];
	/** @mark_head: Batches ever found done. */
	u32 mark_head;
	/** @mark_tail: Batches ever closed. */
	u32 mark_tail;
	/** @batch: Descriptors since the last mark. */
	u32 batch;
};

/**
 * struct neuron_ring_failure - What a ring shows of a failure
 */
struct neuron_ring_failure {
	/** @m2s: Status of the reading half. */
	u32 m2s;
	/** @s2m: Status of the writing half. */
	u32 s2m;
	/** @mark: Completion of the oldest batch: 0 none yet, UDMA_MARKER well. */
	u32 mark;
};

void neuron_udma_init(struct neuron_regs *regs, u32 beats);
void neuron_ring_init(struct neuron_ring *ring, struct neuron_regs *regs, unsigned int queue,
		      struct neuron_ring_mem *mem, u64 addr);
void neuron_ring_start(struct neuron_ring *ring);
void neuron_ring_stop(struct neuron_ring *ring);
bool neuron_ring_failed(struct neuron_ring *ring, struct neuron_ring_failure *failure);
u32 neuron_ring_room(const struct neuron_ring *ring);
void neuron_ring_copy(struct neuron_ring *ring, u64 dst, u64 src, u32 bytes, bool barrier);
void neuron_ring_mark(struct neuron_ring *ring);
void neuron_ring_kick(struct neuron_ring *ring);
bool neuron_ring_pop(struct neuron_ring *ring);

#endif /* __NEURON_RING_H__ */
