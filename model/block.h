/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hardware block as a BAR shows it: either a table of 32-bit registers or a window with its own
 * decoder. Every register has a row with name, reset value and access; an access that the table
 * does not allow is a guest error and reads all ones, never silently zero.
 */
#ifndef NM_BLOCK_H
#define NM_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct nm_device;
struct block;

enum reg_access {
	REG_RW, /* keeps the bits of reg.mask */
	REG_RO,
	REG_WO, /* not stored: the write hook does what it does */
};

/* A register, or count of them stride bytes apart. */
struct reg {
	const char *name;
	uint32_t offset;
	uint32_t count; /* 0 means 1 */
	uint32_t stride;
	uint32_t reset;
	uint32_t mask; /* bits that a write changes; 0 means all */
	enum reg_access access;
};

/* Row of a table; the name is passed apart because it must not be expanded. */
#define REG_(label, acc, off, n, step, rst, msk) \
	{ .name = (label),                       \
	  .offset = (off),                       \
	  .count = (n),                          \
	  .stride = (step),                      \
	  .reset = (rst),                        \
	  .mask = (msk),                         \
	  .access = (acc) }

struct block_ops {
	/* Register blocks; called with dev->lock held. Either may be NULL.
	 * read: value to return for the stored one; write: after the value was stored. */
	uint32_t (*read)(struct nm_device *dev, struct block *b, unsigned int reg, unsigned int i,
			 uint32_t value);
	void (*write)(struct nm_device *dev, struct block *b, unsigned int reg, unsigned int i,
		      uint32_t old, uint32_t value);
	/* Windows, in place of a table; called without locks. Return false for an offset that is
	 * not there. */
	bool (*window_read)(struct nm_device *dev, struct block *b, uint32_t offset,
			    uint32_t *value);
	bool (*window_write)(struct nm_device *dev, struct block *b, uint32_t offset,
			     uint32_t value);
};

struct block {
	char name[16];
	unsigned int bar;
	uint64_t base;
	uint64_t size;
	unsigned int kind; /* row of bars.c's table */
	unsigned int index; /* which one of its kind */
	bool dma_writes; /* transfers of devices may write it, as the host may */
	const struct reg *regs;
	unsigned int n_regs;
	uint32_t *first; /* per register: its first value */
	uint32_t *values; /* under dev->lock */
	uint32_t n_values;
	struct block_ops ops;
};

/* Gives a block its table and reset values. 0 or -ENOMEM. */
int nm_block_init(struct block *b, const struct reg *regs, unsigned int n_regs);
void nm_block_fini(struct block *b);

/* All registers to reset values; no hook is called. Caller holds dev->lock. */
void nm_block_reset(struct block *b);

/* Value of register reg[i]; caller holds dev->lock. */
static inline uint32_t *block_value(struct block *b, unsigned int reg, unsigned int i)
{
	return &b->values[b->first[reg] + i];
}

/* The same by offset, NULL: no register there. */
uint32_t *nm_block_at(struct block *b, uint32_t offset);

uint32_t nm_block_read(struct nm_device *dev, struct block *b, uint32_t offset);
void nm_block_write(struct nm_device *dev, struct block *b, uint32_t offset, uint32_t value);

#endif /* NM_BLOCK_H */
