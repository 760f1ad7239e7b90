// SPDX-License-Identifier: GPL-2.0-only
/*
 * Device memory: a buddy allocator per stack. A slot of a launch shows one
 * range of addresses, so an allocation is contiguous and lies in one stack; the
 * stack with most free memory is asked first, which spreads traffic.
 */

#include <linux/io.h>
#include <linux/minmax.h>
#include <linux/overflow.h>
#include <linux/slab.h>

#include <kunit/static_stub.h>

#include "neuron_compat.h"
#include "neuron_hbm.h"

/**
 * neuron_hbm_init - Start with no memory
 * @hbm: the memory
 *
 * Return: 0.
 */
int neuron_hbm_init(struct neuron_hbm *hbm)
{
	mutex_init(&hbm->lock);
	INIT_LIST_HEAD(&hbm->zero.blocks);
	INIT_LIST_HEAD(&hbm->given);
	return 0;
}

/**
 * neuron_hbm_add_stack - Add a stack
 * @hbm: the memory
 * @addr: device address of its first byte that may be given out
 * @window: offset of that byte in the DRAM BAR
 * @size: bytes, a multiple of the granule
 * @map: mapping of them, NULL in tests
 *
 * Return: 0, -EINVAL, -ENOMEM, -ENOSPC when there are too many.
 */
int neuron_hbm_add_stack(struct neuron_hbm *hbm, u64 addr, u64 window, u64 size, void __iomem *map)
{
	struct neuron_hbm_stack *stack = &hbm->stack[hbm->stacks];
	int ret;

	if (hbm->stacks == NEURON_STACKS_MAX)
		return -ENOSPC;

	ret = gpu_buddy_init(&stack->mm, size, NEURON_HBM_GRANULE);
	if (ret)
		return ret;
	gpu_buddy_driver_set_lock(&stack->mm, &hbm->lock);
	stack->addr = addr;
	stack->window = window;
	stack->map = map;
	hbm->stacks++;
	hbm->total += size;
	hbm->largest = max(hbm->largest, size);
	return 0;
}

static int neuron_hbm_alloc_locked(struct neuron_hbm *hbm, u64 size, struct neuron_hbm_block *block)
{
	struct gpu_buddy_block *part;
	unsigned int tried = 0, i, best;
	struct gpu_buddy *mm;
	u64 first = U64_MAX;
	int ret = -ENOSPC;

	lockdep_assert_held(&hbm->lock);

	while (hweight32(tried) < hbm->stacks) {
		best = hbm->stacks;
		for (i = 0; i < hbm->stacks; i++) {
			if (tried & BIT(i))
				continue;
			if (best == hbm->stacks ||
			    hbm->stack[i].mm.avail > hbm->stack[best].mm.avail)
				best = i;
		}
		tried |= BIT(best);
		mm = &hbm->stack[best].mm;
		if (size > mm->avail)
			return -ENOSPC;
		ret = gpu_buddy_alloc_blocks(mm, 0, mm->size, size, mm->chunk_size, &block->blocks,
					     GPU_BUDDY_CONTIGUOUS_ALLOCATION);
		if (ret != -ENOSPC)
			break;
	}
	if (ret)
		return ret;

	list_for_each_entry(part, &block->blocks, link)
		first = min(first, gpu_buddy_block_offset(part));
	block->stack = best;
	block->size = size;
	block->addr = hbm->stack[best].addr + first;
	block->window = hbm->stack[best].window + first;
	return 0;
}

/**
 * neuron_hbm_reserve_zero - Take the driver's zeroes out of the memory
 * @hbm: the memory, with all its stacks
 *
 * They are none before neuron_hbm_clear_zero().
 *
 * Return: 0, -ENOSPC, -ENOMEM.
 */
int neuron_hbm_reserve_zero(struct neuron_hbm *hbm)
{
	int ret;

	guard(mutex)(&hbm->lock);
	ret = neuron_hbm_alloc_locked(hbm, NEURON_HBM_ZERO_BYTES, &hbm->zero);
	if (!ret)
		hbm->total -= hbm->zero.size;
	return ret;
}

/**
 * neuron_hbm_clear_zero - Make the driver's zeroes zero
 * @hbm: the memory, of a device that answers
 */
void neuron_hbm_clear_zero(struct neuron_hbm *hbm)
{
	neuron_hbm_fill(hbm, &hbm->zero, NULL, 0);
}

/**
 * neuron_hbm_fini - Let the memory go
 * @hbm: the memory
 *
 * Return: bytes that somebody forgot to free; they are lost with it.
 */
u64 neuron_hbm_fini(struct neuron_hbm *hbm)
{
	unsigned int i;

	scoped_guard(mutex, &hbm->lock) {
		if (!list_empty(&hbm->zero.blocks))
			gpu_buddy_free_list(&hbm->stack[hbm->zero.stack].mm, &hbm->zero.blocks, 0);
		if (!hbm->used)
			for (i = 0; i < hbm->stacks; i++)
				gpu_buddy_fini(&hbm->stack[i].mm);
		hbm->stacks = 0;
	}
	mutex_destroy(&hbm->lock);
	return hbm->used;
}

/**
 * neuron_hbm_alloc - Take contiguous memory
 * @hbm: the memory
 * @size: bytes, not 0, a multiple of the granule
 * @block: out: the memory, contents unknown
 *
 * Context: Process; takes &neuron_hbm.lock.
 * Return: 0, -ENOSPC, -ENOMEM (the allocator's own book-keeping).
 */
int neuron_hbm_alloc(struct neuron_hbm *hbm, u64 size, struct neuron_hbm_block *block)
{
	struct neuron_hbm_stack *stack;
	int ret;

	INIT_LIST_HEAD(&block->blocks);
	block->saved = NULL;
	block->code = false;
	guard(mutex)(&hbm->lock);
	ret = neuron_hbm_alloc_locked(hbm, size, block);
	if (ret)
		return ret;
	hbm->used += size;
	stack = &hbm->stack[block->stack];
	stack->used += size;
	stack->peak = max(stack->peak, stack->used);
	list_add_tail(&block->node, &hbm->given);
	return 0;
}

/**
 * neuron_hbm_free - Give memory back
 * @hbm: the memory
 * @block: block from neuron_hbm_alloc(), idle on the device
 */
void neuron_hbm_free(struct neuron_hbm *hbm, struct neuron_hbm_block *block)
{
	guard(mutex)(&hbm->lock);
	gpu_buddy_free_list(&hbm->stack[block->stack].mm, &block->blocks, 0);
	hbm->used -= block->size;
	hbm->stack[block->stack].used -= block->size;
	list_del(&block->node);
	kvfree(block->saved);
}

/**
 * neuron_hbm_used - Bytes that users hold
 * @hbm: the memory
 *
 * Return: bytes.
 */
u64 neuron_hbm_used(struct neuron_hbm *hbm)
{
	guard(mutex)(&hbm->lock);
	return hbm->used;
}

/**
 * neuron_hbm_fill - Write a block, all of it
 * @hbm: the memory, of a device that answers
 * @block: a block
 * @data: what it begins with; the rest, which may be of an earlier owner, becomes zero
 * @size: bytes of @data
 *
 * Context: Inside drm_dev_enter().
 */
void neuron_hbm_fill(struct neuron_hbm *hbm, const struct neuron_hbm_block *block, const void *data,
		     u64 size)
{
	const struct neuron_hbm_stack *stack = &hbm->stack[block->stack];
	void __iomem *to = stack->map + (block->addr - stack->addr);

	KUNIT_STATIC_STUB_REDIRECT(neuron_hbm_fill, hbm, block, data, size);
	memcpy_toio(to, data, size);
	memset_io(to + size, 0, block->size - size);
	wmb(); /* before any doorbell, which is another mapping */
}
