/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The legal graph: only operations that compute, reading their operands by
 * strides; and its groups, each of which becomes one loop over tiles.
 */
#ifndef NC_PASSES_H
#define NC_PASSES_H

#include "lir.h"

/*
 * A value read by strides: element index * stride of the producer's result in
 * row-major order (of an input: of its slot). Over which dims depends on the
 * reader; see struct lnode.
 */
struct vref {
	uint32_t node;
	int64_t stride[NC_DIMS_MAX];
};

/*
 * One operation of the legal graph. It iterates over dims; these are
 *   elementwise  the result's dims
 *   REDUCE       the operand's dims
 *   SCAN         the result's dims
 *   RECURRENCE   the result's dims
 *   MATMUL       the result's dims [batch..., M, N]
 *   CONV*        the result's dims
 *   ATTENTION    the result's dims [batch..., queries, head]; _LSE has no head
 *   ATTENTION_GRAD  the result's dims [batch..., queries, head]; _K and _V have keys and their own width
 *   TAKE, PUT    the result's dims
 * Operands have strides over the same dims, except
 *   MATMUL       [batch..., M, K] and [batch..., K, N]
 *   CONV*        the operand's own dims
 *   ATTENTION    [batch..., queries, head], [batch..., keys, head], the same, and
 *                [batch..., queries, keys]; _GRAD has three more like the result before the last, the
 *                third of one column
 *   TAKE         src[0] along axes: the step of its k rows; src[1]: the index, along axes only
 *   PUT          src[1] along axes: the index, of which there are k; src[2] the rows, k along axes
 *   IOTA         has none, but src[0].stride is the index's step, 1 along one dim
 */
struct lnode {
	enum node_kind kind;
	uint32_t op;
	nc_dtype dtype;
	uint32_t nd;
	int64_t dims[NC_DIMS_MAX];
	int64_t own[NC_DIMS_MAX]; /* strides of the result in row-major order; 0 where reduced */
	int64_t elems; /* of the result */
	uint32_t n_src;
	struct vref src[NCI_SRCS];
	uint32_t origin; /* node of the graph */
	uint32_t slot; /* INPUT, SCALAR */
	uint64_t bits; /* CONST */
	uint32_t axes; /* REDUCE, SCAN, RECURRENCE, TAKE, PUT */
	int64_t k; /* MATMUL, TAKE, PUT */
	bool floating; /* one element, cheap to compute anew in every group */
	uint32_t group;
	uint32_t scratch; /* slot that holds the result for other groups, or LIR_NONE */
};

/* A result: stride of the slot over the dims of the node that makes it. */
struct lout {
	uint32_t node;
	uint32_t slot;
	uint32_t alias;
	int64_t stride[NC_DIMS_MAX];
	bool copied; /* through scratch and a copy at the end: writing it earlier would destroy
		      * an input that is still to be read */
};

/* A member of a group. Strides over the group's dims. */
struct member {
	uint32_t node;
	int64_t own[NC_DIMS_MAX];
	struct vref src[NCI_SRCS];
	bool late; /* depends on a reduction of the group */
};

/* Where a value is stored. */
struct store {
	uint32_t node;
	uint32_t slot;
	int64_t stride[NC_DIMS_MAX];
};

struct group {
	/* MATMUL, CONV*, ATTENTION, SCAN: of members[0]; else N_COPY: a loop over elements */
	enum node_kind kind;
	uint32_t nd;
	int64_t dims[NC_DIMS_MAX];
	uint32_t axes; /* dims that its reductions reduce */
	uint32_t along; /* the dim of its recurrences, as in axes; 0: none */
	bool row; /* late members vary over the axes, so that a tile must hold them whole */
	struct member *members;
	uint32_t n_members, cap_members;
	struct store *stores;
	uint32_t n_stores, cap_stores;
	int64_t bytes; /* of all members' elements at one place, for the size of a tile */
};

struct legal {
	struct nc_ctx *ctx;
	struct lnode *nodes; /* [0] unused */
	uint32_t n_nodes, cap_nodes;
	struct lout *outs;
	uint32_t n_outs;
	struct group *groups;
	uint32_t n_groups, cap_groups;
};

/* Views into strides, only what the outputs need. */
struct legal *nci_legalise(struct nc_ctx *ctx);
/* Groups; afterwards every value that another group reads has a scratch slot of lir. */
void nci_fuse(struct legal *legal, struct lir *lir);

static inline bool lnode_is_source(const struct lnode *node)
{
	return node->kind == N_INPUT || node->kind == N_SCALAR || node->kind == N_CONST;
}

/* Reads its operands at the place that it makes; a recurrence, what it made before, too. */
static inline bool lnode_is_elementwise(const struct lnode *node)
{
	switch (node->kind) {
	case N_IOTA:
	case N_UNARY:
	case N_BINARY:
	case N_SELECT:
	case N_CAST:
	case N_COPY:
	case N_RECURRENCE:
		return true;
	default:
		return false;
	}
}

/* Kernels that make one node and nothing beside it. */
static inline bool group_is_alone(const struct group *group)
{
	return group->kind == N_ATTENTION || group->kind == N_ATTENTION_GRAD ||
	       group->kind == N_SCAN || group->kind == N_TAKE || group->kind == N_PUT;
}

#endif /* NC_PASSES_H */
