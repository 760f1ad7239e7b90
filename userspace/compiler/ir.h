/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules of this folder. A graph (ir.c, ir_attention.c) is compiled in one pass over these
 * stages, each in its own file:
 *
 *   passes.c   legalise: views become strides, dead nodes go; fuse: groups
 *   tile.c     how a group's iteration space is cut into tiles
 *   kernels/   emit the operations (lir.h) of one group, family by family
 *   order.c    puts several tiles of a loop in flight
 *   alloc.c    gives on-chip buffers their addresses
 *   sched.c    orders engines and DMA queues by semaphores
 *   emit.c     encodes the image; nothing else knows the encoding
 *
 * All memory of a compilation comes from one arena that dies with it. Failure
 * anywhere leaves through nci_fail(), which unwinds to nc_compile(). There is no
 * global state, and nothing depends on addresses or time: the same graph gives
 * the same bytes. The library knows no files, devices, environment or threads.
 */
#ifndef NC_IR_H
#define NC_IR_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "neuron_compiler.h"
#include "neuron_isa.h"

#define NCI_NAME_BYTES 64
#define NCI_SRCS       7
/* Elements of a tensor, and the distance from its first to its last: far from overflow. */
#define NCI_ELEMS_MAX (INT64_C(1) << 44)

enum node_kind {
	N_INPUT,
	N_SCALAR,
	N_CONST,
	N_IOTA,
	N_UNARY,
	N_BINARY,
	N_SELECT,
	N_CAST,
	N_RESHAPE,
	N_PERMUTE,
	N_BROADCAST,
	N_REDUCE,
	N_SCAN,
	N_RECURRENCE,
	N_MATMUL,
	N_CONV,
	N_CONV_GRAD_X,
	N_CONV_GRAD_W,
	N_ATTENTION,
	N_ATTENTION_LSE, /* made by the kernel of its operand, an N_ATTENTION */
	N_ATTENTION_GRAD, /* of q; those of k and v are made by the same kernel: */
	N_ATTENTION_GRAD_K,
	N_ATTENTION_GRAD_V,
	N_TAKE,
	N_PUT,
	N_COPY, /* made by passes: a view that strides can't express */
};

/* One value of a graph. Value numbers start at 1; src 0 is none. */
struct node {
	enum node_kind kind;
	uint32_t op; /* enum nc_unary_op, nc_binary_op, nc_reduce_op, nc_put_op */
	struct nc_type type;
	nc_value src[NCI_SRCS];
	uint32_t slot; /* INPUT, SCALAR */
	int64_t strides[NC_DIMS_MAX]; /* INPUT, elements */
	uint64_t bits; /* CONST: value in the compute type, as in isa_compute.imm0 */
	uint32_t dim; /* IOTA (or NC_ALL_DIMS), TAKE, PUT */
	uint32_t order[NC_DIMS_MAX]; /* PERMUTE */
	uint32_t axes; /* REDUCE; SCAN, RECURRENCE: one */
	bool keep;
	struct nc_conv2d conv;
	struct nc_attention attention;
};

struct output {
	nc_value value;
	uint32_t slot;
	uint32_t alias; /* slot, or NC_NO_ALIAS */
	int64_t strides[NC_DIMS_MAX];
};

/* A slot as its caller declared it: index into nodes or outputs. */
struct slot_decl {
	bool is_output;
	uint32_t index;
};

struct nc_graph {
	char name[NCI_NAME_BYTES];
	struct node *nodes; /* [0] unused */
	uint32_t n_nodes, cap_nodes;
	struct output *outputs;
	uint32_t n_outputs, cap_outputs;
	struct slot_decl *slots;
	uint32_t n_slots, cap_slots;
	int err; /* first mistake, negative errno */
	char error[NC_ERROR_BYTES];
};

/* --- facts about types -------------------------------------------------------- */

uint32_t nci_dtype_bytes(nc_dtype dtype);
const char *nci_dtype_name(nc_dtype dtype);
/* enum isa_dtype of what lies in memory. */
uint32_t nci_isa_dtype(nc_dtype dtype);
/* enum isa_compute_type in which operations on the dtype are made. */
uint32_t nci_compute_type(nc_dtype dtype);
bool nci_is_float(nc_dtype dtype);
int64_t nci_elems(uint32_t ndim, const int64_t *dims);
void nci_row_major(uint32_t ndim, const int64_t *dims, int64_t *strides);
/* "fp32[4,5]"; returns text. */
const char *nci_type_text(const struct nc_type *type, char *text, size_t size);
const char *nci_unary_name(uint32_t op);
const char *nci_binary_name(uint32_t op);
const char *nci_reduce_name(uint32_t op);
const char *nci_scan_name(uint32_t op);
const char *nci_kind_name(enum node_kind kind);
/* Name of the node's operation: "add", "matmul" ... */
const char *nci_node_name(const struct node *node);
static inline bool nci_is_compare(uint32_t op)
{
	return op >= NC_EQ && op <= NC_GE;
}

/* One step of nc_random(): x becomes (x ^ (x >> shift)) * factor; a word of the key goes before it. */
struct random_round {
	uint32_t shift, factor;
};
extern const struct random_round nci_random_rounds[NC_KEY_WORDS];

/* --- arena and failure ---------------------------------------------------------- */

struct arena_block;
struct arena {
	struct arena_block *head;
	size_t used; /* bytes of the head block */
};

struct lir;

/* One compilation. */
struct nc_ctx {
	const struct nc_graph *graph;
	struct nc_target target;
	struct arena arena;
	jmp_buf unwind;
	int err;
	char *error; /* NC_ERROR_BYTES */
	struct lir *lir;
};

/* Zeroed memory until the end of the compilation; does not return on failure. */
void *nci_alloc(struct nc_ctx *ctx, size_t bytes);
/* As realloc() for an array that grows: returns room for at least need elements. */
void *nci_grow(struct nc_ctx *ctx, void *array, uint32_t *cap, uint32_t need, size_t elem);
void nci_arena_fini(struct arena *arena);
_Noreturn void nci_fail(struct nc_ctx *ctx, int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static inline int64_t nci_min(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static inline int64_t nci_max(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static inline int64_t nci_ceil_div(int64_t a, int64_t b)
{
	return (a + b - 1) / b;
}

#endif /* NC_IR_H */
