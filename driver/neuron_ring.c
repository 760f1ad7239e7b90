// SPDX-License-Identifier: GPL-2.0-only
/*
 * One UDMA queue: descriptors, ring ids, doorbells, completion markers. No
 * policy and no allocation. The public driver leaves completion rings off and
 * copies a marker behind the data; so do we, and let that last descriptor raise
 * the interrupt (aws-neuron-driver udma/udma_m2m.c, udma/udma_main.c).
 */

#include <linux/bitfield.h>
#include <linux/bug.h>
#include <linux/kernel.h>
#include <linux/stddef.h>
#include <asm/barrier.h>

#include "neuron_drv.h"
#include "neuron_ring.h"

static_assert(NEURON_RING_DESCS % UDMA_RING_STEP == 0);
static_assert(offsetof(struct neuron_ring_mem, rx) % UDMA_RING_ALIGN == 0);

static const u32 halves[] = { UDMA_M2S, UDMA_S2M };

static void ring_write(struct neuron_ring *ring, u32 half, u32 reg, u32 value)
{
	neuron_reg_write(ring->regs, half + UDMA_Q(ring->queue) + reg, value);
}

/**
 * neuron_udma_init - Start an engine, all its queues off
 * @regs: registers of the engine, after reset
 * @beats: beats outstanding in its wrapper, 0: not to be set
 */
void neuron_udma_init(struct neuron_regs *regs, u32 beats)
{
	u32 pref = FIELD_PREP(UDMA_PREF_MAX_DESCS, 64) | UDMA_PREF_FORCE_RR;
	u32 burst = FIELD_PREP(UDMA_AXI_DESC_RD_MAX_BURST, 8) | UDMA_AXI_DESC_RD_ALWAYS_BREAK;
	unsigned int i;

	neuron_reg_write(regs, UDMA_SDMA + SDMA_ROB_CFG, 1);
	neuron_reg_write(regs, UDMA_SDMA + SDMA_WOB_CFG, 1);
	neuron_reg_write(regs, UDMA_SDMA + SDMA_EVENT_ACCEL, 1);
	if (beats)
		neuron_reg_write(regs, UDMA_SDMA + SDMA_BEATS, beats);

	neuron_reg_write(regs, UDMA_M2S + UDMA_M2S_CFG_LEN,
			 UDMA_M2S_CFG_LEN_MAX | UDMA_M2S_CFG_LEN_64K);
	for (i = 0; i < ARRAY_SIZE(halves); i++) {
		neuron_reg_write(regs, halves[i] + UDMA_PREF_CFG_2, pref);
		neuron_reg_write(regs, halves[i] + UDMA_AXI_DESC_RD_CFG_3, burst);
		neuron_reg_write(regs, halves[i] + UDMA_CHANGE_STATE, UDMA_CHANGE_NORMAL);
	}
}

/**
 * neuron_ring_init - Describe a queue
 * @ring: the ring
 * @regs: registers of its engine
 * @queue: queue of the engine
 * @mem: coherent memory, zeroed, aligned to a page
 * @addr: its device address
 */
void neuron_ring_init(struct neuron_ring *ring, struct neuron_regs *regs, unsigned int queue,
		      struct neuron_ring_mem *mem, u64 addr)
{
	ring->regs = regs;
	ring->queue = queue;
	ring->mem = mem;
	ring->addr = addr;
	mem->marker = UDMA_MARKER;
}

/**
 * neuron_ring_start - Make the queue run, empty
 * @ring: the ring, stopped
 */
void neuron_ring_start(struct neuron_ring *ring)
{
	const u64 base[] = { ring->addr + offsetof(struct neuron_ring_mem, tx),
			     ring->addr + offsetof(struct neuron_ring_mem, rx) };
	unsigned int i;

	ring->tail = 0;
	ring->ring_id = UDMA_RING_ID_FIRST;
	ring->used = 0;
	ring->fresh = 0;
	ring->batch = 0;
	ring->mark_head = 0;
	ring->mark_tail = 0;
	memset(ring->mem->mark, 0, sizeof(ring->mem->mark));

	for (i = 0; i < ARRAY_SIZE(halves); i++) {
		ring_write(ring, halves[i], UDMA_Q_BASE_LO, lower_32_bits(base[i]));
		ring_write(ring, halves[i], UDMA_Q_BASE_HI, upper_32_bits(base[i]));
		ring_write(ring, halves[i], UDMA_Q_LEN, NEURON_RING_DESCS);
	}
	ring_write(ring, UDMA_M2S, UDMA_M2S_Q_COMP_CFG, 0);
	ring_write(ring, UDMA_S2M, UDMA_S2M_Q_COMP_CFG, 0);
	/* Barriers of descriptors count: the marker must not overtake the data. */
	ring_write(ring, UDMA_M2S, UDMA_M2S_Q_RLIMIT_MASK,
		   UDMA_M2S_Q_RLIMIT_RESET & ~UDMA_M2S_Q_RLIMIT_NO_DMB);
	for (i = 0; i < ARRAY_SIZE(halves); i++)
		ring_write(ring, halves[i], UDMA_Q_CFG,
			   UDMA_Q_CFG_RESET | UDMA_Q_CFG_PREFETCH | UDMA_Q_CFG_SCHEDULE);
	neuron_reg_write(ring->regs,
			 UDMA_GEN + UDMA_GEN_IOFIC(UDMA_IOFIC_B) + UDMA_IOFIC_MASK_CLEAR,
			 ~BIT(ring->queue));
}

/**
 * neuron_ring_stop - Stop the queue and forget what is in it
 * @ring: the ring
 *
 * Nothing of it reads or writes memory once the last register write arrived.
 */
void neuron_ring_stop(struct neuron_ring *ring)
{
	ring_write(ring, UDMA_M2S, UDMA_Q_CFG, UDMA_Q_CFG_RESET);
	ring_write(ring, UDMA_S2M, UDMA_Q_CFG, UDMA_Q_CFG_RESET);
	ring_write(ring, UDMA_M2S, UDMA_M2S_Q_SW_CTRL, UDMA_Q_SW_CTRL_RESET);
	ring_write(ring, UDMA_S2M, UDMA_S2M_Q_SW_CTRL, UDMA_Q_SW_CTRL_RESET);
	/* An error may have stopped the whole engine. */
	neuron_reg_write(ring->regs, UDMA_M2S + UDMA_CHANGE_STATE, UDMA_CHANGE_NORMAL);
	neuron_reg_write(ring->regs, UDMA_S2M + UDMA_CHANGE_STATE, UDMA_CHANGE_NORMAL);
}

/**
 * neuron_ring_failed - Has something gone wrong that will not get better?
 * @ring: the ring
 * @failure: out: what the device shows, also when nothing has
 *
 * Return: true after a descriptor that it could not carry out, and when the
 * oldest batch ended with something else than the marker.
 */
bool neuron_ring_failed(struct neuron_ring *ring, struct neuron_ring_failure *failure)
{
	u32 status = UDMA_Q(ring->queue) + UDMA_Q_STATUS;
	u32 i = ring->mark_head % NEURON_RING_MARKS;

	failure->m2s = neuron_reg_read(ring->regs, UDMA_M2S + status);
	failure->s2m = neuron_reg_read(ring->regs, UDMA_S2M + status);
	failure->mark = ring->mark_head == ring->mark_tail ? 0 : READ_ONCE(ring->mem->mark[i]);
	return (failure->m2s | failure->s2m) & UDMA_Q_STATUS_ERROR ||
	       (failure->mark && failure->mark != UDMA_MARKER);
}

/**
 * neuron_ring_room - Descriptors that fit, the mark that closes them not counted
 * @ring: the ring
 *
 * Return: a number, 0 also when all marks are in flight.
 */
u32 neuron_ring_room(const struct neuron_ring *ring)
{
	u32 free = NEURON_RING_DESCS - NEURON_RING_GAP - ring->used;

	if (ring->mark_tail - ring->mark_head == NEURON_RING_MARKS || free < 2)
		return 0;
	return free - 1;
}

static void ring_add(struct neuron_ring *ring, u64 dst, u64 src, u32 bytes, u32 tx_ctrl,
		     u32 tx_meta, u32 rx_ctrl)
{
	u32 ctrl = FIELD_PREP(UDMA_DESC_LEN, bytes & (UDMA_DESC_LEN_MAX - 1)) |
		   FIELD_PREP(UDMA_DESC_RING_ID, ring->ring_id);
	struct udma_desc *tx = &ring->mem->tx[ring->tail];
	struct udma_desc *rx = &ring->mem->rx[ring->tail];

	tx->ctrl = cpu_to_le32(ctrl | UDMA_DESC_FIRST | UDMA_DESC_LAST | tx_ctrl);
	tx->meta = cpu_to_le32(UDMA_META_COPY | tx_meta);
	tx->addr = cpu_to_le64(src);
	rx->ctrl = cpu_to_le32(ctrl | rx_ctrl);
	rx->meta = 0;
	rx->addr = cpu_to_le64(dst);

	ring->used++;
	ring->fresh++;
	ring->batch++;
	if (++ring->tail == NEURON_RING_DESCS) {
		ring->tail = 0;
		ring->ring_id = (ring->ring_id + 1) & UDMA_RING_ID_MASK;
	}
}

/**
 * neuron_ring_copy - Write one copy
 * @ring: the ring, with room
 * @dst: device address
 * @src: device address
 * @bytes: 1 to UDMA_DESC_LEN_MAX
 * @barrier: it waits for all before it
 */
void neuron_ring_copy(struct neuron_ring *ring, u64 dst, u64 src, u32 bytes, bool barrier)
{
	ring_add(ring, dst, src, bytes, barrier ? UDMA_DESC_DMB : 0, 0, 0);
}

/**
 * neuron_ring_mark - Close a batch: it ends with a marker and an interrupt
 * @ring: the ring, with room when the batch began
 */
void neuron_ring_mark(struct neuron_ring *ring)
{
	u32 i = ring->mark_tail++ % NEURON_RING_MARKS;

	WRITE_ONCE(ring->mem->mark[i], 0);
	ring_add(ring, ring->addr + offsetof(struct neuron_ring_mem, mark) + i * sizeof(u32),
		 ring->addr + offsetof(struct neuron_ring_mem, marker), sizeof(u32), UDMA_DESC_DMB,
		 UDMA_META_WRITE_BARRIER, UDMA_DESC_INT);
	ring->mark_descs[i] = ring->batch;
	ring->batch = 0;
}

/**
 * neuron_ring_kick - Tell the device about new descriptors
 * @ring: the ring
 */
void neuron_ring_kick(struct neuron_ring *ring)
{
	if (!ring->fresh)
		return;
	dma_wmb();
	/* Destinations first: a source without one would have to wait. */
	ring_write(ring, UDMA_S2M, UDMA_Q_TAIL_INC, ring->fresh);
	ring_write(ring, UDMA_M2S, UDMA_Q_TAIL_INC, ring->fresh);
	ring->fresh = 0;
}

/**
 * neuron_ring_pop - Is the oldest batch done?
 * @ring: the ring
 *
 * Return: true once for each batch, in order; its data is visible then.
 */
bool neuron_ring_pop(struct neuron_ring *ring)
{
	u32 i = ring->mark_head % NEURON_RING_MARKS;

	if (ring->mark_head == ring->mark_tail || READ_ONCE(ring->mem->mark[i]) != UDMA_MARKER)
		return false;
	dma_rmb();
	ring->used -= ring->mark_descs[i];
	ring->mark_head++;
	return true;
}
