// SPDX-License-Identifier: Apache-2.0
/*
 * BAR 0, the execution interface: global registers, UDMA interrupt routes, windows onto the queue
 * registers of each core. See hw/neuron_queue.h.
 */
#include "device.h"

#define RO(off, n, step, rst)	   REG_(#off, REG_RO, off, n, step, rst, 0)
#define RW(off, n, step, rst, msk) REG_(#off, REG_RW, off, n, step, rst, msk)

/* Offsets of the table are from the block, which starts at EXI_MAGIC. */
enum {
	R_MAGIC,
	R_VERSION,
	R_CORES,
	R_QUEUES,
	R_ARCH,
	R_SBUF,
	R_PSUM,
	R_HBM_MIB,
	R_HBM_STACKS,
	N_REGS,
};

static const struct reg exi_regs[N_REGS] = {
	[R_MAGIC] = RO(EXI_MAGIC - EXI_MAGIC, 0, 0, EXI_MAGIC_VALUE),
	[R_VERSION] = RO(EXI_VERSION - EXI_MAGIC, 0, 0,
			 HW_SET(EXI_VERSION_MAJOR_MASK, EXI_VERSION_MAJOR) |
				 HW_SET(EXI_VERSION_MINOR_MASK, EXI_VERSION_MINOR)),
	[R_CORES] = RO(EXI_CORES - EXI_MAGIC, 0, 0, 0),
	[R_QUEUES] = RO(EXI_QUEUES - EXI_MAGIC, 0, 0, EXI_QUEUE_COUNT),
	[R_ARCH] = RO(EXI_ARCH - EXI_MAGIC, 0, 0, 0),
	[R_SBUF] = RO(EXI_SBUF_BYTES - EXI_MAGIC, 0, 0, 0),
	[R_PSUM] = RO(EXI_PSUM_BYTES - EXI_MAGIC, 0, 0, NM_PSUM_BYTES),
	[R_HBM_MIB] = RO(EXI_HBM_MIB - EXI_MAGIC, 0, 0, 0),
	[R_HBM_STACKS] = RO(EXI_HBM_STACKS - EXI_MAGIC, 0, 0, 0),
};

static uint32_t exi_read(struct nm_device *dev, struct block *b, unsigned int reg, unsigned int i,
			 uint32_t value)
{
	(void)b;
	(void)i;
	switch (reg) {
	case R_CORES:
		return dev->config.cores;
	case R_ARCH:
		return dev->chip->arch;
	case R_SBUF:
		return nm_sbuf_bytes(dev->chip->arch);
	case R_HBM_MIB:
		return (uint32_t)(dev->config.hbm_bytes >> 20);
	case R_HBM_STACKS:
		return dev->chip->stacks;
	default:
		return value;
	}
}

int nm_exi_init(struct nm_device *dev, struct block *b)
{
	(void)dev;
	b->ops.read = exi_read;
	return nm_block_init(b, exi_regs, N_REGS);
}

/* --- time: a window, because cores are asked without dev->lock ---------------- */

static bool time_read(struct nm_device *dev, struct block *b, uint32_t offset, uint32_t *value)
{
	uint64_t now;

	(void)b;
	if (offset == EXI_TIME_LO - EXI_TIME_LO) {
		now = nm_time_ns(dev);
		*value = (uint32_t)now;
		atomic_store(&dev->time_hi_latch, (uint32_t)(now >> 32));
		return true;
	}
	*value = atomic_load(&dev->time_hi_latch);
	return offset == EXI_TIME_HI - EXI_TIME_LO;
}

static bool time_write(struct nm_device *dev, struct block *b, uint32_t offset, uint32_t value)
{
	(void)dev;
	(void)b;
	(void)offset;
	(void)value;
	return false;
}

int nm_time_init(struct nm_device *dev, struct block *b)
{
	(void)dev;
	b->ops.window_read = time_read;
	b->ops.window_write = time_write;
	return 0;
}

/* --- features ----------------------------------------------------------------- */

static const struct reg feature_regs[] = {
	RW(EXI_FEATURES - EXI_FEATURES, 0, 0, EXI_FEATURE_STALL_DETECT, EXI_FEATURE_STALL_DETECT),
};

static void features_write(struct nm_device *dev, struct block *b, unsigned int reg, unsigned int i,
			   uint32_t old, uint32_t value)
{
	(void)b;
	(void)reg;
	(void)i;
	(void)old;
	atomic_store(&dev->features, value);
}

int nm_features_init(struct nm_device *dev, struct block *b)
{
	dev->exi = b;
	atomic_store(&dev->features, EXI_FEATURE_STALL_DETECT);
	b->ops.write = features_write;
	return nm_block_init(b, feature_regs, 1);
}

/* --- neighbours ----------------------------------------------------------------- */

static const struct reg link_regs[] = {
	RO(EXI_LINK_SERIAL(0) - EXI_LINK_SERIAL(0), NEURON_LINKS * 2, 4, 0),
};

static uint32_t links_read(struct nm_device *dev, struct block *b, unsigned int reg, unsigned int i,
			   uint32_t value)
{
	const uint64_t serial = nm_server_neighbour_serial(dev, i / 2);

	(void)b;
	(void)reg;
	(void)value;
	return (uint32_t)(serial >> (i % 2 * 32));
}

int nm_links_init(struct nm_device *dev, struct block *b)
{
	(void)dev;
	b->ops.read = links_read;
	return nm_block_init(b, link_regs, 1);
}

/* --- engines of a core that trace ------------------------------------------------ */

static bool trace_read(struct nm_device *dev, struct block *b, uint32_t offset, uint32_t *value)
{
	(void)offset;
	*value = nm_core_traced(dev->core[b->index]);
	return true;
}

static bool trace_write(struct nm_device *dev, struct block *b, uint32_t offset, uint32_t value)
{
	(void)offset;
	nm_core_trace(dev->core[b->index], value);
	return true;
}

int nm_core_trace_init(struct nm_device *dev, struct block *b)
{
	(void)dev;
	b->ops.window_read = trace_read;
	b->ops.window_write = trace_write;
	return 0;
}

/* --- UDMA interrupt routes ---------------------------------------------------- */

static const struct reg route_regs[] = {
	RW(EXI_UDMA_ROUTE(0, 0) - EXI_UDMA_ROUTE(0, 0), EXI_UDMA_ROUTES, 4, 0,
	   EXI_VECTOR_ENABLE | EXI_VECTOR_MASK),
};

int nm_routes_init(struct nm_device *dev, struct block *b)
{
	dev->routes = b;
	return nm_block_init(b, route_regs, 1);
}

int nm_route_vector(uint32_t route)
{
	return route & EXI_VECTOR_ENABLE ? (int)(route & EXI_VECTOR_MASK) : -1;
}

/* --- queues of a core --------------------------------------------------------- */

static bool queues_read(struct nm_device *dev, struct block *b, uint32_t offset, uint32_t *value)
{
	*value = nm_core_reg_read(dev->core[b->index], offset);
	return true;
}

static bool queues_write(struct nm_device *dev, struct block *b, uint32_t offset, uint32_t value)
{
	nm_core_reg_write(dev->core[b->index], offset, value);
	return true;
}

int nm_queues_init(struct nm_device *dev, struct block *b)
{
	(void)dev;
	b->ops.window_read = queues_read;
	b->ops.window_write = queues_write;
	return 0;
}
