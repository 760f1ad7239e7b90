/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef __NEURON_HBM_H__
#define __NEURON_HBM_H__

#include <linux/gpu_buddy.h>
#include <linux/mutex.h>
#include <linux/sizes.h>

#include "neuron_hal.h"

/*
 * What HBM is given out in. The smallest size that a CPU mapping allows, because
 * most programs are a few KiB and each lies in HBM on its own; the runtime
 * sub-allocates tensors from large buffers, so their number is small anyway.
 */
#define NEURON_HBM_GRANULE ((u64)PAGE_SIZE)

/* Zeroes that buffers are scrubbed from: as much as one DMA descriptor moves. */
#define NEURON_HBM_ZERO_BYTES ((u64)SZ_64K)

struct dmem_cgroup_pool_state;

/**
 * struct neuron_hbm_block - Contiguous bytes of one stack
 */
struct neuron_hbm_block {
	/** @blocks: The allocator's blocks. */
	struct list_head blocks;
	/** @addr: Device address. */
	u64 addr;
	/** @window: Offset in the DRAM BAR. */
	u64 window;
	/** @size: Bytes, a multiple of the granule. */
	u64 size;
	/** @stack: Stack it lies in. */
	unsigned int stack;
	/** @pool: Share of the control group that it counts in; NULL without such a controller. */
	struct dmem_cgroup_pool_state *pool;
	/** @node: In &neuron_hbm.given. Protected by &neuron_hbm.lock. */
	struct list_head node;
	/** @code: It holds a program. */
	bool code;
	/** @saved: Its contents while the device sleeps, else NULL; under &neuron_hbm.lock. */
	void *saved;
};

/**
 * struct neuron_hbm_stack - One HBM stack
 */
struct neuron_hbm_stack {
	/** @mm: Free memory, from 0 at @addr. Protected by &neuron_hbm.lock. */
	struct gpu_buddy mm;
	/** @addr: Device address of its first byte that can be given out. */
	u64 addr;
	/** @window: Offset of that byte in the DRAM BAR. */
	u64 window;
	/** @used: Bytes of it that users have. Protected by &neuron_hbm.lock. */
	u64 used;
	/** @peak: Most that @used ever was. */
	u64 peak;
	/** @map: Write-combining mapping of all that can be given out; NULL without device. */
	void __iomem *map;
};

/**
 * struct neuron_hbm - All HBM of a device
 */
struct neuron_hbm {
	/** @lock: Protects the allocators and @used. */
	struct mutex lock;
	/** @stack: Stacks. */
	struct neuron_hbm_stack stack[NEURON_STACKS_MAX];
	/** @stacks: How many there are. */
	unsigned int stacks;
	/** @total: Bytes that users may get. */
	u64 total;
	/** @largest: Bytes of the largest stack: no allocation can be larger. */
	u64 largest;
	/** @used: Bytes that they have. */
	u64 used;
	/** @given: All that they have. */
	struct list_head given;
	/** @zero: Zeroes; belongs to the driver, neither in @total nor in @used. */
	struct neuron_hbm_block zero;
	/** @phys: CPU physical address of the DRAM BAR. */
	phys_addr_t phys;
};

int neuron_hbm_init(struct neuron_hbm *hbm);
int neuron_hbm_add_stack(struct neuron_hbm *hbm, u64 addr, u64 window, u64 size, void __iomem *map);
int neuron_hbm_reserve_zero(struct neuron_hbm *hbm);
void neuron_hbm_clear_zero(struct neuron_hbm *hbm);
u64 neuron_hbm_fini(struct neuron_hbm *hbm);

int neuron_hbm_alloc(struct neuron_hbm *hbm, u64 size, struct neuron_hbm_block *block);
void neuron_hbm_free(struct neuron_hbm *hbm, struct neuron_hbm_block *block);
u64 neuron_hbm_used(struct neuron_hbm *hbm);
void neuron_hbm_fill(struct neuron_hbm *hbm, const struct neuron_hbm_block *block, const void *data,
		     u64 size);

#endif /* __NEURON_HBM_H__ */
