// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "device.h"

static uint32_t count_of(const struct reg *reg)
{
	return reg->count ? reg->count : 1;
}

int nm_block_init(struct block *b, const struct reg *regs, unsigned int n_regs)
{
	b->regs = regs;
	b->n_regs = n_regs;
	b->n_values = 0;
	b->first = calloc(n_regs, sizeof(*b->first));
	if (!b->first)
		return -ENOMEM;
	for (unsigned int r = 0; r < n_regs; r++) {
		b->first[r] = b->n_values;
		b->n_values += count_of(&regs[r]);
	}
	b->values = calloc(b->n_values, sizeof(*b->values));
	if (!b->values)
		return -ENOMEM;
	nm_block_reset(b);
	return 0;
}

void nm_block_fini(struct block *b)
{
	free(b->first);
	free(b->values);
	b->first = NULL;
	b->values = NULL;
}

void nm_block_reset(struct block *b)
{
	for (unsigned int r = 0; r < b->n_regs; r++)
		for (uint32_t i = 0; i < count_of(&b->regs[r]); i++)
			*block_value(b, r, i) = b->regs[r].reset;
}

static const struct reg *find(const struct block *b, uint32_t offset, unsigned int *r,
			      unsigned int *i)
{
	for (*r = 0; *r < b->n_regs; (*r)++) {
		const struct reg *reg = &b->regs[*r];
		uint32_t at = offset - reg->offset;

		*i = 0;
		if (at == 0)
			return reg;
		if (offset < reg->offset || count_of(reg) == 1 || at % reg->stride)
			continue;
		*i = at / reg->stride;
		if (*i < reg->count)
			return reg;
	}
	return NULL;
}

uint32_t *nm_block_at(struct block *b, uint32_t offset)
{
	unsigned int r, i;

	return find(b, offset, &r, &i) ? block_value(b, r, i) : NULL;
}

/* One report for each place and kind of mistake. */
static void refused(struct nm_device *dev, const struct block *b, const struct reg *reg,
		    uint32_t offset, const char *what, uint32_t value)
{
	uint64_t key = (uint64_t)b->bar << 62 | (b->base + offset) << 1 | (what[0] == 'w');

	if (reg)
		nm_guest_error(dev, key,
			       "%s %s register %s (%s + 0x%x, BAR %u + 0x%llx), value 0x%x", what,
			       reg->access == REG_RO ? "to read-only" : "of write-only", reg->name,
			       b->name, offset, b->bar, (unsigned long long)(b->base + offset),
			       value);
	else
		nm_guest_error(dev, key,
			       "%s of no register: %s + 0x%x (BAR %u + 0x%llx), value 0x%x", what,
			       b->name, offset, b->bar, (unsigned long long)(b->base + offset),
			       value);
}

uint32_t nm_block_read(struct nm_device *dev, struct block *b, uint32_t offset)
{
	const struct reg *reg;
	unsigned int r, i;
	uint32_t value = UINT32_MAX;

	if (b->ops.window_read) {
		if (!b->ops.window_read(dev, b, offset, &value))
			refused(dev, b, NULL, offset, "read", value);
		return value;
	}
	reg = find(b, offset, &r, &i);
	if (!reg || reg->access == REG_WO) {
		refused(dev, b, reg, offset, "read", value);
		return value;
	}
	pthread_mutex_lock(&dev->lock);
	value = *block_value(b, r, i);
	if (b->ops.read)
		value = b->ops.read(dev, b, r, i, value);
	pthread_mutex_unlock(&dev->lock);
	return value;
}

void nm_block_write(struct nm_device *dev, struct block *b, uint32_t offset, uint32_t value)
{
	const struct reg *reg;
	unsigned int r, i;
	uint32_t old, mask;

	if (b->ops.window_write) {
		if (!b->ops.window_write(dev, b, offset, value))
			refused(dev, b, NULL, offset, "write", value);
		return;
	}
	reg = find(b, offset, &r, &i);
	if (!reg || reg->access == REG_RO) {
		refused(dev, b, reg, offset, "write", value);
		return;
	}
	pthread_mutex_lock(&dev->lock);
	old = *block_value(b, r, i);
	if (reg->access == REG_RW) {
		mask = reg->mask ? reg->mask : UINT32_MAX;
		value = (old & ~mask) | (value & mask);
		*block_value(b, r, i) = value;
	}
	if (b->ops.write)
		b->ops.write(dev, b, r, i, old, value);
	pthread_mutex_unlock(&dev->lock);
	nm_irq_flush(dev);
}
