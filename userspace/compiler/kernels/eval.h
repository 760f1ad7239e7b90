/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evaluation of a group's members tile by tile, shared by the kernels: operands
 * are loaded when first needed and kept while the loops don't move along an
 * axis that they vary on; results go to SBUF, rounded to their dtype, and from there
 * to the slots that want them.
 */
#ifndef NC_EVAL_H
#define NC_EVAL_H

#include "../tile.h"

/* A value of the group: the members in order, then the operands from memory. */
struct val {
	uint32_t node;
	const struct vref *ref; /* operand from memory: how it is read */
	bool varies[AXES_MAX];
	uint8_t dtype; /* enum isa_dtype of what lies in the tile */
	uint32_t buf;
	uint32_t offset; /* of the tile in the buffer, bytes */
	int64_t gap; /* elements between two of the innermost axis */
	/* Tile that the buffer holds. */
	bool valid;
	uint32_t nparts;
	int64_t start[AXES_MAX], len[AXES_MAX];
	/* The same repeated over all axes, for stores; LIR_NONE: none. */
	uint32_t full;
	int64_t full_len[AXES_MAX];
	/* Members: made by its only reader's instruction; this one's instruction makes operand
	 * takes as well, -1: none. */
	bool folded;
	int takes;
	uint32_t sum; /* an activation: member that its accumulator makes, LIR_NONE: none */
	bool unread; /* and nothing but that is wanted of it */
	/* A recurrence: its last step, for each place of the reduced axes, where the tiles before and those at
	 * hand along its dim end; LIR_NONE: none. */
	uint32_t ends_before, ends;
};

struct eval {
	struct nc_ctx *ctx;
	struct legal *legal;
	struct lir *lir;
	struct group *group;
	const struct plan *plan;
	struct val *vals;
	uint32_t n_vals;
	uint32_t (*src)[NCI_SRCS]; /* of each member: number of the value */
	uint64_t cost[5]; /* work given to each engine so far, see eval_spend() */
	/* The tile at hand. */
	int64_t start[AXES_MAX], len[AXES_MAX];
	uint32_t nparts;
	/* Where the scalar engine puts what nobody reads, of all tiles; LIR_NONE: not needed yet. */
	uint32_t rest;
	uint64_t rest_bytes;
};

void eval_init(struct eval *ev, struct legal *legal, struct lir *lir, struct group *group);
/* Another plan: forgets what the tiles hold. */
void eval_set_plan(struct eval *ev, const struct plan *plan);
/* Partitions of the tile at hand, from the ranges of the axes. */
void eval_set_tile(struct eval *ev);

/*
 * Members of the tile at hand that are late or not; of a row group all. Their
 * stores come after all that reads the tile's operands, which may lie in the same
 * memory.
 */
void eval_members(struct eval *ev, bool late);
void eval_stores(struct eval *ev, bool late);
/* What a kernel computed itself: the member's tile lies in buf. */
void eval_preset(struct eval *ev, uint32_t member, uint32_t buf, uint32_t offset, uint32_t dtype);

/* Makes the value's tile there, loading it if need be. */
void eval_need(struct eval *ev, uint32_t val);
/* A buffer for the value's tile; the value is then valid. */
void eval_new_tile(struct eval *ev, uint32_t val);
/* A buffer of so many bytes for what the scalar engine writes and nobody reads. */
uint32_t eval_rest(struct eval *ev, uint64_t bytes);
/* Elements a partition of the value's tile. */
int64_t eval_elems(const struct eval *ev, const struct val *val);
/* Step of the value's tile along an axis, elements. */
int64_t eval_step(const struct eval *ev, const struct val *val, uint32_t axis);

/* Operands of one instruction over the free axes of vals[0]: out[i] for vals[i]. */
void eval_tiles(const struct eval *ev, uint32_t n, const uint32_t *vals, struct ltile *out);
/* Operand for REDUCE: kept axes first; returns the number of reduced dims (0: none). */
uint32_t eval_reduce_tiles(const struct eval *ev, uint32_t src, struct ltile *from,
			   struct ltile *to);

/* Notes that an engine passes over so many elements a partition. */
static inline void eval_spend(struct eval *ev, uint32_t engine, int64_t elems)
{
	ev->cost[engine] += lir_quarter_ticks(engine, (uint64_t)elems);
}

/* The value does not vary along the free axes of the tile. */
bool eval_is_column(const struct eval *ev, uint32_t val);
bool eval_is_const(const struct eval *ev, uint32_t val);

/* The same for all elements of a tile's row: may be an instruction's scalar. */
bool eval_is_scalar(const struct eval *ev, uint32_t val);
struct lcol eval_column(const struct eval *ev, uint32_t val);
uint64_t eval_const_bits(const struct eval *ev, uint32_t val);
bool eval_has_store(const struct eval *ev, uint32_t member);

/* elementwise.c */
/* Finds pairs of members that one instruction computes; whenever the plan changes. */
void eval_find_folds(struct eval *ev);
void eval_emit(struct eval *ev, uint32_t member);
/* Engine for an ALU operation between tiles. */
uint32_t eval_alu_engine(uint32_t ct, uint32_t alu);
/* The same of two tiles of so many elements, which it notes as spent. The vector engine alone has recurrences: where there
 * are any, gpsimd takes of the rest what leaves both as busy. */
uint32_t eval_pair_engine(struct eval *ev, uint32_t ct, uint32_t alu, int64_t elems);
/* dst = src, converted as NC_CAST; both on the vector engine or, 8-byte types, on gpsimd. */
void eval_convert(struct eval *ev, nc_dtype to, struct ltile dst, nc_dtype from, struct ltile src);

/* act.c */
/* Is the member's instruction an ACTIVATION? Set takes first. */
bool eval_is_activation(const struct eval *ev, uint32_t member);
/* May the member be one that applies inner, x op scalar, to its operand first? */
bool eval_activation_takes(const struct eval *ev, uint32_t member, uint32_t inner);
/* Sums that activations make; after the pairs. uses: by how many operands each value is read. */
void eval_find_sums(struct eval *ev, const uint32_t *uses);
void eval_emit_activation(struct eval *ev, uint32_t member);
/* The sum of all elements of a row of fp32 by the scalar engine, as REDUCE would add them. */
void eval_emit_row_sum(struct eval *ev, struct ltile to, struct ltile from);

/* recurrence.c */
void eval_emit_recurrence(struct eval *ev, uint32_t member);

/* reduce.c */
uint32_t eval_reduce_alu(const struct lnode *node);
void eval_emit_row_reduce(struct eval *ev, uint32_t member);

/* --- groups: one function per kind ----------------------------------------------------- */

void nci_loop(struct legal *legal, struct lir *lir, struct group *group);
void nci_matmul(struct legal *legal, struct lir *lir, struct group *group);
void nci_scan(struct legal *legal, struct lir *lir, struct group *group);
void nci_rows(struct legal *legal, struct lir *lir, struct group *group);
void nci_conv(struct legal *legal, struct lir *lir, struct group *group);
void nci_attention(struct legal *legal, struct lir *lir, struct group *group);
void nci_attention_grad(struct legal *legal, struct lir *lir, struct group *group);

#endif /* NC_EVAL_H */
