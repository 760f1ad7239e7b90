// SPDX-License-Identifier: Apache-2.0
/*
 * The BARs: which block lies where, and the host's accesses to them. Nothing else knows addresses.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"

static int msix_init(struct nm_device *dev, struct block *b)
{
	(void)dev;
	b->ops.window_read = nm_msix_window_read;
	b->ops.window_write = nm_msix_window_write;
	return 0;
}

/* On V2 any value resets the whole device. dev->lock held. */
static void reset_all(struct nm_device *dev, struct block *b, unsigned int reg, unsigned int i,
		      uint32_t old, uint32_t value)
{
	(void)b;
	(void)reg;
	(void)i;
	(void)old;
	(void)value;
	dev->reset_asked = true;
	dev->reset_map = 0;
	pthread_cond_signal(&dev->work);
}

static int reset_init(struct nm_device *dev, struct block *b)
{
	int ret = nm_reset_init(dev, b);

	if (dev->chip->arch == NEURON_ARCH_V2)
		b->ops.write = reset_all;
	return ret;
}

/* Index in the table to BAR offset. */
static uint64_t at_queues(const struct nm_chip *chip, unsigned int i)
{
	(void)chip;
	return EXI_QUEUE(i, 0);
}

static uint64_t at_core_trace(const struct nm_chip *chip, unsigned int i)
{
	(void)chip;
	return EXI_CORE_TRACE(i);
}

static uint64_t at_misc_ram(const struct nm_chip *chip, unsigned int i)
{
	(void)i;
	return chip->misc_ram;
}

static uint64_t at_reset(const struct nm_chip *chip, unsigned int i)
{
	(void)i;
	return chip->reset_reg;
}

static uint64_t at_udma(const struct nm_chip *chip, unsigned int i)
{
	return chip->bar_udma(i);
}

static uint64_t at_udma_host(const struct nm_chip *chip, unsigned int i)
{
	return chip->bar_udma(chip->host_engine + i);
}

static uint64_t at_sdma(const struct nm_chip *chip, unsigned int i)
{
	return chip->bar_sdma(i);
}

static uint64_t at_sdma_host(const struct nm_chip *chip, unsigned int i)
{
	return chip->bar_sdma(chip->host_engine + i);
}

static uint64_t at_fis(const struct nm_chip *chip, unsigned int i)
{
	return chip->bar_fis(i);
}

static uint64_t at_core_nq(const struct nm_chip *chip, unsigned int i)
{
	return chip->bar_core_nq(i);
}

static uint64_t at_topsp_nq(const struct nm_chip *chip, unsigned int i)
{
	return chip->bar_topsp_nq(i);
}

static uint64_t at_tpb(const struct nm_chip *chip, unsigned int i)
{
	return chip->bar_tpb(i);
}

static uint64_t at_topsp(const struct nm_chip *chip, unsigned int i)
{
	return chip->bar_topsp(i);
}

/* How many there are and how large they are where the chip says so. */
static unsigned int one(const struct nm_device *dev)
{
	(void)dev;
	return 1;
}

static unsigned int cores(const struct nm_device *dev)
{
	return dev->config.cores;
}

static unsigned int core_engines(const struct nm_device *dev)
{
	return dev->config.cores * dev->chip->engines_per_core;
}

static unsigned int host_engines(const struct nm_device *dev)
{
	return dev->chip->engines - dev->chip->host_engine;
}

static unsigned int triggers(const struct nm_device *dev)
{
	return dev->chip->bar_fis ? core_engines(dev) : 0;
}

static unsigned int topsps(const struct nm_device *dev)
{
	return dev->config.cores * dev->chip->topsps_per_core;
}

static uint64_t topsp_bytes(const struct nm_chip *chip)
{
	return chip->topsp_bytes;
}

static uint64_t sdma_bytes(const struct nm_chip *chip)
{
	return chip->sdma_bytes;
}

/* Kinds of blocks. host: numbered after the engines of cores. */
static const struct kind {
	const char *name;
	enum { ON_EXI, ON_APB } bar;
	unsigned int (*count)(const struct nm_device *dev);
	bool host;
	uint64_t base;
	uint64_t (*at)(const struct nm_chip *chip, unsigned int i);
	uint64_t size;
	uint64_t (*bytes)(const struct nm_chip *chip);
	int (*init)(struct nm_device *dev, struct block *b);
} kinds[] = {
	{ "msix", ON_EXI, one, false, EXI_MSIX_TABLE, NULL, 0x1000, NULL, msix_init },
	{ "exi", ON_EXI, one, false, EXI_MAGIC, NULL, EXI_TIME_LO - EXI_MAGIC, NULL, nm_exi_init },
	{ "time", ON_EXI, one, false, EXI_TIME_LO, NULL, 8, NULL, nm_time_init },
	{ "features", ON_EXI, one, false, EXI_FEATURES, NULL, 8, NULL, nm_features_init },
	{ "links", ON_EXI, one, false, EXI_LINK_SERIAL(0), NULL, NEURON_LINKS * 8, NULL,
	  nm_links_init },
	{ "core_trace", ON_EXI, cores, false, 0, at_core_trace, 4, NULL, nm_core_trace_init },
	{ "queues", ON_EXI, cores, false, 0, at_queues, EXI_QUEUE_CORE_STRIDE, NULL,
	  nm_queues_init },
	{ "routes", ON_EXI, one, false, EXI_UDMA_ROUTE(0, 0), NULL, EXI_UDMA_ROUTES * 4, NULL,
	  nm_routes_init },
	{ "misc_ram", ON_APB, one, false, 0, at_misc_ram, V3_APB_MISC_RAM_BYTES, NULL,
	  nm_mailbox_init },
	{ "reset", ON_APB, one, false, 0, at_reset, 4, NULL, reset_init },
	{ "udma", ON_APB, core_engines, false, 0, at_udma, UDMA_SDMA, NULL, nm_udma_init },
	{ "udma", ON_APB, host_engines, true, 0, at_udma_host, UDMA_SDMA, NULL, nm_udma_init },
	{ "sdma", ON_APB, core_engines, false, 0, at_sdma, 0, sdma_bytes, nm_sdma_init },
	{ "sdma", ON_APB, host_engines, true, 0, at_sdma_host, 0, sdma_bytes, nm_sdma_init },
	{ "fis", ON_APB, triggers, false, 0, at_fis, V3_APB_FIS_BYTES, NULL, nm_fis_init },
	{ "core_nq", ON_APB, cores, false, 0, at_core_nq, NQ_BLOCK_BYTES, NULL, nm_core_nq_init },
	{ "topsp_nq", ON_APB, topsps, false, 0, at_topsp_nq, NQ_BLOCK_BYTES, NULL,
	  nm_topsp_nq_init },
	{ "tpb", ON_APB, cores, false, 0, at_tpb, V3_APB_TPB_BYTES, NULL, nm_tpb_init },
	{ "topsp", ON_APB, topsps, false, 0, at_topsp, 0, topsp_bytes, nm_topsp_init },
};

#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

static int by_place(const void *left, const void *right)
{
	const struct block *a = left, *b = right;

	if (a->bar != b->bar)
		return a->bar < b->bar ? -1 : 1;
	return a->base < b->base ? -1 : a->base > b->base;
}

/* Places are sorted before the blocks' owners get pointers to them. */
int nm_device_create_blocks(struct nm_device *dev)
{
	unsigned int total = 0;
	struct block *b;
	int ret = 0;

	for (size_t k = 0; k < N_KINDS; k++)
		total += kinds[k].count(dev);
	dev->blocks = calloc(total, sizeof(*dev->blocks));
	if (!dev->blocks)
		return -ENOMEM;
	dev->n_blocks = total;
	b = dev->blocks;
	for (unsigned int k = 0; k < N_KINDS; k++) {
		const struct kind *kind = &kinds[k];
		const unsigned int count = kind->count(dev);

		for (unsigned int i = 0; i < count; i++, b++) {
			b->bar = kind->bar == ON_EXI ? dev->exi_bar : dev->apb_bar;
			b->base = kind->at ? kind->at(dev->chip, i) : kind->base;
			b->size = kind->bytes ? kind->bytes(dev->chip) : kind->size;
			b->kind = k;
			b->index = i + (kind->host ? dev->chip->host_engine : 0);
			if (count == 1)
				snprintf(b->name, sizeof(b->name), "%s", kind->name);
			else
				snprintf(b->name, sizeof(b->name), "%s%u", kind->name, b->index);
		}
	}
	qsort(dev->blocks, total, sizeof(*dev->blocks), by_place);
	for (unsigned int i = 0; i < total && !ret; i++)
		ret = kinds[dev->blocks[i].kind].init(dev, &dev->blocks[i]);
	return ret;
}

struct block *nm_device_block(struct nm_device *dev, unsigned int bar, uint64_t offset)
{
	unsigned int lo = 0, hi = dev->n_blocks;

	/* The last block that starts at or below. */
	while (lo < hi) {
		unsigned int mid = (lo + hi) / 2;
		const struct block *b = &dev->blocks[mid];

		if (b->bar < bar || (b->bar == bar && b->base <= offset))
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo || dev->blocks[lo - 1].bar != bar ||
	    offset - dev->blocks[lo - 1].base >= dev->blocks[lo - 1].size)
		return NULL;
	return &dev->blocks[lo - 1];
}

/* --- BAR access --------------------------------------------------------------- */

static bool access_ok(struct nm_device *dev, unsigned int bar, uint64_t offset, unsigned int size)
{
	if ((size == 4 || size == 8) && offset % size == 0 && offset < nm_bar_size(dev, bar))
		return true;
	nm_guest_error(dev, GUEST_KEY(GUEST_ACCESS, bar, size),
		       "access to BAR %u + 0x%llx of %u bytes: want an aligned 4 or 8 below 0x%llx",
		       bar, (unsigned long long)offset, size,
		       (unsigned long long)nm_bar_size(dev, bar));
	return false;
}

static void no_block(struct nm_device *dev, const char *what, unsigned int bar, uint64_t offset)
{
	nm_guest_error(dev, (uint64_t)bar << 62 | offset << 1 | (what[0] == 'w'),
		       "%s of BAR %u + 0x%llx, where nothing is", what, bar,
		       (unsigned long long)offset);
}

/* On silicon stacks are farther apart than they are large. */
static bool dram_ok(struct nm_device *dev, const char *what, uint64_t offset)
{
	if (offset % dev->dram_dist < dev->config.hbm_bytes)
		return true;
	no_block(dev, what, V3_BAR_DRAM, offset / dev->dram_dist);
	return false;
}

static uint32_t read32(struct nm_device *dev, unsigned int bar, uint64_t offset)
{
	struct block *b = nm_device_block(dev, bar, offset);

	if (b)
		return nm_block_read(dev, b, (uint32_t)(offset - b->base));
	no_block(dev, "read", bar, offset);
	return UINT32_MAX;
}

static void write32(struct nm_device *dev, unsigned int bar, uint64_t offset, uint32_t value)
{
	struct block *b = nm_device_block(dev, bar, offset);

	if (b)
		nm_block_write(dev, b, (uint32_t)(offset - b->base), value);
	else
		no_block(dev, "write", bar, offset);
}

uint64_t nm_bar_read(struct nm_device *dev, unsigned int bar, uint64_t offset, unsigned int size)
{
	uint64_t value = 0;

	if (!access_ok(dev, bar, offset, size))
		return UINT64_MAX;
	if (nm_armed(dev, NM_ARMED_GONE) || atomic_load(&dev->pci.asleep))
		return size == 8 ? UINT64_MAX : UINT32_MAX;
	if (bar == V3_BAR_DRAM) {
		if (!dram_ok(dev, "read", offset))
			return UINT64_MAX;
		memcpy(&value, dev->hbm + offset, size);
		return value;
	}
	value = read32(dev, bar, offset);
	if (size == 8)
		value |= (uint64_t)read32(dev, bar, offset + 4) << 32;
	return value;
}

void nm_bar_write(struct nm_device *dev, unsigned int bar, uint64_t offset, unsigned int size,
		  uint64_t value)
{
	if (!access_ok(dev, bar, offset, size) || nm_armed(dev, NM_ARMED_GONE) ||
	    atomic_load(&dev->pci.asleep))
		return;
	if (bar == V3_BAR_DRAM) {
		if (dram_ok(dev, "write", offset)) {
			memcpy(dev->hbm + offset, &value, size);
			nm_hbm_wrote(dev, dev->hbm + offset, size);
		}
		return;
	}
	write32(dev, bar, offset, (uint32_t)value);
	if (size == 8)
		write32(dev, bar, offset + 4, (uint32_t)(value >> 32));
}

uint32_t nm_apb_read(struct nm_device *dev, uint64_t offset)
{
	return read32(dev, dev->apb_bar, offset);
}

void nm_apb_write(struct nm_device *dev, uint64_t offset, uint32_t value)
{
	write32(dev, dev->apb_bar, offset, value);
}
