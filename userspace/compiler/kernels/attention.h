/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernels of attention share: operands, loads, the choice of engines. */
#ifndef NC_ATTENTION_H
#define NC_ATTENTION_H

#include "panel.h"

#define BLOCK ISA_PARTITIONS
#define SLAB  512 /* queries or keys loaded at a time */

#define NOTHING 0x7149f2cau /* 1e30: the shift of a row without keys */
#define TINY	0x0da24260u /* 1e-30: divides sums of 0; others are 1 or more */
#define MASKED	0xff7f0000u /* the least bf16, added to what causality leaves out */

/* Engines to choose from. */
#define V (1u << ISA_VECTOR)
#define S (1u << ISA_SCALAR)
#define G (1u << ISA_GPSIMD)

/* Where each operand's part for one batch begins, elements. */
struct heads {
	int64_t offset[NCI_SRCS];
};

/* Queries or keys on chip, loaded slab by slab when first needed; nothing is loaded twice. */
struct slabs {
	uint32_t buf;
	int64_t x0, n; /* first, number */
	int64_t loaded;
};

/* Random bits of the weights of a unit, one for each; made step by step, ahead of it. */
struct draw {
	int64_t first; /* number of the first weight, counted from the first batch at hand */
	uint32_t rows, n; /* queries, keys */
	uint32_t index, bits; /* int32 */
};

/* What becomes of weights by dropout. */
struct dropout {
	bool on;
	float factor; /* of those that stay, 1 / (1 - probability) */
	int32_t limit; /* these stay: bits up to it */
	struct draw *draws; /* of the units, in their order */
	uint32_t n_draws, cap_draws;
	uint32_t begun; /* of them */
	uint32_t numbers; /* int32: of the weights of a block of queries, from 0 on */
	uint32_t key[NC_KEY_WORDS], batch; /* columns, int32; batch LIR_NONE: it is 0 */
};

struct attention {
	struct eval ev;
	struct lir *lir;
	const struct member *m;
	const struct lnode *node;
	const struct group *group;
	bool causal, masked;
	float scale;
	int64_t n_q, n_k, head, width; /* width: elements of a value */
	uint8_t dtype, elem;
	uint64_t busy[5]; /* time given to each engine so far, in units of 0.2 ns or so */
	uint32_t turn; /* PSUM, what the tensor engine has turned */
	uint32_t ident, above; /* 1 on the diagonal; MASKED above it */
	struct dropout dropout;
};

/* Fills in what the group's first member says. */
void at_open(struct attention *at, struct legal *legal, struct lir *lir, const struct group *group);

uint32_t at_bits(float f);

/*
 * The engine of those in mask that is free first when it has done n more elements; speed: those that vector
 * does in one cycle. Gpsimd reaches PSUM from the second generation on.
 */
uint32_t at_pick(struct attention *at, uint32_t mask, bool psum, int64_t n, int64_t speed);
struct lop *at_tensor_scalar(struct attention *at, uint32_t engine, struct ltile dst,
			     struct ltile src, uint32_t op0, uint32_t imm0, uint32_t op1,
			     uint32_t imm1);
/* dst = (src op0 imm) op1 other */
struct lop *at_scalar_tensor(struct attention *at, uint32_t engine, struct ltile dst,
			     struct ltile src, uint32_t op0, uint32_t imm, uint32_t op1,
			     struct ltile other);
/* dst = func(scale * src + bias), a bias for each partition; LIR_NONE: 0. */
struct lop *at_activation(struct attention *at, uint32_t func, struct ltile dst, struct ltile src,
			  uint32_t scale, uint32_t bias);
/* One fp32 in each of n partitions. */
struct ltile at_column(uint32_t buf, int64_t n);
uint32_t at_new_column(struct attention *at);
/* The last operation, a transfer, is issued by the engine that has no computations to do meanwhile. */
void at_by_sync(struct attention *at);

/* The kernel's operand i as a matrix; k_step: of its rows if they become partitions, else of its columns. */
struct matrix at_operand(const struct attention *at, uint32_t i, bool turned);
/* Of the batch at that place. */
struct heads at_heads(const struct attention *at, int64_t place);
/* Bytes from a store's slot to row x of the batch at that place. */
int64_t at_store_offset(const struct attention *at, const struct store *st, int64_t place,
			int64_t x, uint32_t elem);
/* Makes ident and above. */
void at_diagonal(struct attention *at);

/* Rows x .. x + n - 1 of m, of depth elements, become columns, by the DMA engines where they can, else by the tensor engine. */
void at_load_turned(struct attention *at, const struct matrix *m, int64_t depth,
		    const struct slabs *s, int64_t x, int64_t n, int64_t offset);
/* Rows on the partitions, block after block of width elements, with a one behind each or not. */
void at_load_rows(struct attention *at, const struct matrix *m, int64_t width, bool ones,
		  const struct slabs *s, int64_t x, int64_t n, int64_t offset);
/* Loads the part of the mask that begins at offset; returns it added to the scaled scores. */
struct ltile at_add_mask(struct attention *at, const struct matrix *m, int64_t offset,
			 struct ltile scores);

/* attention_dropout.c */
/* Loads the key, if there is dropout; keys: the most that a unit has. */
void at_dropout_open(struct attention *at, int64_t keys);
/* The next unit, if there is dropout: n keys from k0 on, of rows queries from q0 on. */
void at_dropout_add(struct attention *at, int64_t place, int64_t q0, int64_t rows, int64_t k0,
		    int64_t n);
/* Completes the bits of unit t, and goes on with those of the units behind it. */
void at_dropout_draw(struct attention *at, uint32_t t);
/* dst = the weights of unit t that stay, of the operands' dtype, or 0; dst may be weights. */
void at_dropout_apply(struct attention *at, uint32_t t, uint32_t dst, uint32_t weights);

#endif /* NC_ATTENTION_H */
