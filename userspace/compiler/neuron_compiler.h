/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The compiler: a graph of tensor operations becomes a NeuronCore program
 * (hw/neuron_program.h). Eager operators, fused windows, torch.compile graphs
 * and kernels all come through here.
 *
 * A graph is built by the calls below, each of which checks its operands; the
 * first mistake is kept, later calls return 0, and nc_compile() reports it, so
 * a builder needs to look only there. Values are small numbers; 0 is none.
 * There is no global state: graphs may be built and compiled by any number of
 * threads, one thread a graph. The same graph always gives the same bytes.
 *
 * Slots: each nc_input(), nc_scalar() and nc_output() makes one slot of the
 * program, in the order of the calls; scratch slots, if any, come after them.
 *
 * Meaning of a value: exact operation on the operands in the compute type of
 * their dtype (fp32 for floats up to 32 bits, int32 wrapping for integers up to
 * 32 bits and bool, int64, float64), rounded once to the value's dtype, however
 * nodes are fused.
 */
#ifndef NEURON_COMPILER_H
#define NEURON_COMPILER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

#define NC_DIMS_MAX    8
#define NC_ERROR_BYTES 512

/* Numbers as in nrt.h (and hw/neuron_isa.h); the last two are ours. */
typedef enum nc_dtype {
	NC_INT8 = 0x2,
	NC_UINT8 = 0x3,
	NC_INT16 = 0x4,
	NC_BF16 = 0x6,
	NC_FP16 = 0x7,
	NC_INT32 = 0x8,
	NC_FP32 = 0xa,
	NC_INT64 = 0xc,
	NC_FP64 = 0x10,
	NC_BOOL = 0x11, /* a byte, 0 or 1 */
} nc_dtype;

struct nc_type {
	nc_dtype dtype;
	uint32_t ndim; /* 0..NC_DIMS_MAX */
	int64_t dims[NC_DIMS_MAX]; /* elements, >= 1 (an empty tensor needs no program) */
};

/* How far programs may spread; from nrtx_core_info. */
struct nc_target {
	uint32_t arch; /* 2 trn1 and inf2, 3 trn2, 4 trn3 */
	uint32_t sbuf_bytes; /* a partition */
	uint32_t psum_bytes; /* a partition */
};

typedef struct nc_graph nc_graph;
typedef uint32_t nc_value;

/* name goes into error reports and profiles; truncated to 63 bytes. NULL when out of memory. */
nc_graph *nc_graph_create(const char *name);
void nc_graph_destroy(nc_graph *graph);

/* --- sources ------------------------------------------------------------------- */

/*
 * A tensor in HBM. strides in elements, NULL for row major; 0 repeats; not
 * negative. Element 0 is the first byte of the slot.
 */
nc_value nc_input(nc_graph *graph, const struct nc_type *type, const int64_t *strides);

/* A 0-dim value passed in the launch: different values share one program. */
nc_value nc_scalar(nc_graph *graph, nc_dtype dtype);

/* 0-dim constants, part of the program. Value must be representable (checked). */
nc_value nc_const_float(nc_graph *graph, nc_dtype dtype, double value);
nc_value nc_const_int(nc_graph *graph, nc_dtype dtype, int64_t value);

/* Index along dim, 0, 1, ...; along NC_ALL_DIMS the element's number in row-major order. Integers, fp32 (exact
 * below 2^24) or fp64; indices are below 2^31. */
#define NC_ALL_DIMS UINT32_MAX
nc_value nc_iota(nc_graph *graph, const struct nc_type *type, uint32_t dim);

/*
 * Random bits, int32, each of the 2^32 values as likely as any: of element number i, in row-major order, a
 * function of i and the key alone. Of draw number offset with a seed, stream tells several keys apart that one
 * operation needs. key: int32, 0-dim, the four words of nc_random_key(); at most 2^31 elements. See
 * docs/random.md.
 */
#define NC_KEY_WORDS 4
nc_value nc_random(nc_graph *graph, const struct nc_type *type, const nc_value key[NC_KEY_WORDS]);
void nc_random_key(uint64_t seed, uint64_t offset, uint32_t stream, uint32_t key[NC_KEY_WORDS]);
/* Bits up to this, as int32, come with that chance: a multiple of 2^-32, at least one of them; chance above 0, up to 1. */
int32_t nc_random_limit(double chance);

/* --- elementwise ------------------------------------------------------------------ */

typedef enum nc_unary_op {
	/* any dtype that has it */
	NC_NEG,
	NC_ABS,
	NC_SIGN,
	NC_SQUARE,
	/* bool and integers; bool: logical */
	NC_NOT,
	/* floats */
	NC_EXP,
	NC_LN,
	NC_SQRT,
	NC_RSQRT,
	NC_RECIPROCAL,
	NC_SIGMOID,
	NC_TANH,
	NC_RELU,
	NC_GELU,
	NC_GELU_TANH,
	NC_SILU,
	NC_SOFTPLUS,
	NC_ERF,
	NC_SIN,
	NC_COS,
	NC_ARCTAN,
	NC_LOG1P,
	NC_EXPM1,
	NC_MISH,
	NC_FLOOR,
	NC_CEIL,
	NC_ROUND,
	NC_TRUNC,
	NC_DGELU,
	NC_DGELU_TANH,
	NC_DSILU, /* derivatives at x */
	NC_UNARY_OPS,
} nc_unary_op;
nc_value nc_unary(nc_graph *graph, nc_unary_op op, nc_value x);

typedef enum nc_binary_op {
	NC_ADD,
	NC_SUB,
	NC_MUL,
	NC_DIV,
	NC_MAX,
	NC_MIN,
	NC_POW,
	NC_MOD, /* as enum isa_alu */
	NC_EQ,
	NC_NE,
	NC_LT,
	NC_LE,
	NC_GT,
	NC_GE, /* give NC_BOOL */
	NC_AND,
	NC_OR,
	NC_XOR,
	NC_SHL,
	NC_SHR, /* integers (SHR arithmetic); AND OR XOR bool too */
	NC_LSR, /* int32, int64: zeros come in from the left */
	NC_BINARY_OPS,
} nc_binary_op;
/* a and b have one dtype; shapes broadcast as in NumPy. */
nc_value nc_binary(nc_graph *graph, nc_binary_op op, nc_value a, nc_value b);

/* cond (bool) ? a : b; shapes broadcast. */
nc_value nc_select(nc_graph *graph, nc_value cond, nc_value a, nc_value b);

/* Conversion as PyTorch's: float to int truncates, to bool is x != 0, int narrowing wraps. */
nc_value nc_cast(nc_graph *graph, nc_value x, nc_dtype dtype);

/* --- views: no work of their own ----------------------------------------------------- */

nc_value nc_reshape(nc_graph *graph, nc_value x, uint32_t ndim, const int64_t *dims);
nc_value nc_permute(nc_graph *graph, nc_value x, const uint32_t *order);
nc_value nc_broadcast(nc_graph *graph, nc_value x, uint32_t ndim, const int64_t *dims);

/* --- reductions, products --------------------------------------------------------------- */

typedef enum nc_reduce_op {
	NC_REDUCE_SUM,
	NC_REDUCE_PROD,
	NC_REDUCE_MAX,
	NC_REDUCE_MIN, /* NaN wins in MAX, MIN */
	NC_REDUCE_OPS,
} nc_reduce_op;
/* Over the dims whose bits are set in axes; they stay with size 1 if keep, else vanish.
 * The order of additions is fixed by shape and strides. */
nc_value nc_reduce(nc_graph *graph, nc_reduce_op op, nc_value x, uint32_t axes, bool keep);

/*
 * Along dim: the result at i is the reduction of the operand's elements 0 to i; it has the operand's
 * type. Any dtype. Floats up to 32 bits are carried along the whole dim in fp32. NaN stays from where it
 * comes in. The order of operations is fixed by shape and strides.
 */
nc_value nc_scan(nc_graph *graph, nc_reduce_op op, nc_value x, uint32_t dim);

/*
 * Along dim: r[i] = a[i] * r[i - 1] + b[i], from r[-1] = 0, as selective state spaces and linear
 * recurrent networks have it. fp32; a and b have the same dims, as has the result. Product and sum are
 * each rounded, in the order of i. What makes the operands, and what is made of the result, joins the loop: a state that is
 * only summed up over another dim does not go through memory.
 */
nc_value nc_recurrence(nc_graph *graph, nc_value a, nc_value b, uint32_t dim);

/*
 * Rows by index, an int32 or int64 of any shape. A row is what x has at one place along dim, which has at
 * most 2^31 - 1 of them. The result has the index's dims in place of dim. An index below 0, or not below
 * the number of rows, ends the launch with an error that tells both (of an int64 beyond 32 bits: the
 * nearest int32).
 */
nc_value nc_take(nc_graph *graph, nc_value x, uint32_t dim, nc_value index);

typedef enum nc_put_op {
	NC_PUT_COPY, /* any dtype; of rows with one index the last stays */
	NC_PUT_ADD, /* fp32, bf16, fp16, int32; in the order of the index, each sum rounded to the dtype */
	NC_PUT_OPS,
} nc_put_op;
/*
 * x with the rows put in their places along dim, as nc_take() finds them. rows has the dims that
 * nc_take(x, dim, index) has.
 */
nc_value nc_put(nc_graph *graph, nc_put_op op, nc_value x, uint32_t dim, nc_value index,
		nc_value rows);

/* [..., M, K] x [..., K, N]; leading dims broadcast. fp32, bf16, fp16; sums in fp32. */
nc_value nc_matmul(nc_graph *graph, nc_value a, nc_value b);

/* 2-D convolution, NCHW and OIHW as PyTorch's. */
struct nc_conv2d {
	int64_t stride[2], padding[2], dilation[2];
	int64_t groups;
};
nc_value nc_conv2d(nc_graph *graph, nc_value x, nc_value w, const struct nc_conv2d *conv);
/* Gradient of nc_conv2d's x (of type x_type) and w, given that of its result. */
nc_value nc_conv2d_grad_x(nc_graph *graph, nc_value dy, nc_value w, const struct nc_type *x_type,
			  const struct nc_conv2d *conv);
nc_value nc_conv2d_grad_w(nc_graph *graph, nc_value dy, nc_value x, const struct nc_type *w_type,
			  const struct nc_conv2d *conv);

/*
 * softmax(scale * q k' + mask) v for q [..., L, D], k [..., S, D], v [..., S, E] and, if not 0, mask
 * [..., L, S], which broadcasts and may have another dtype; leading dims broadcast. fp32, bf16, fp16;
 * D and E up to NC_ATTENTION_HEAD_MAX. Nothing of size L x S goes to HBM. Scores, maxima and sums are
 * fp32, the exponentials are rounded to the operands' dtype before they are multiplied by v. A query
 * whose keys are all masked by -inf (scores below -1e30 count as such) gives 0, not NaN.
 */
#define NC_ATTENTION_HEAD_MAX 128
struct nc_attention {
	float scale; /* 1e-20 .. 1e20 */
	bool causal; /* key j counts for query i only if j <= i */
	/*
	 * 0 .. 1, less than 1. Above 0, weights are dropped with that probability before they are multiplied
	 * by v, and the others divided by 1 - dropout; their sum and nc_attention_lse() are of all of them.
	 * One stays if its bits are <= nc_random_limit(1 - dropout): those that nc_random() has for its
	 * row-major number in the weights [..., L, S], modulo 2^32, with key: each an nc_scalar() or a
	 * constant, int32. batch, if not 0, another one: how many places of the leading dims come before the
	 * first, where the operands are a part of larger ones.
	 */
	double dropout;
	nc_value key[NC_KEY_WORDS];
	nc_value batch;
};
nc_value nc_attention(nc_graph *graph, nc_value q, nc_value k, nc_value v, nc_value mask,
		      const struct nc_attention *how);
/* ln of the sum of exp(score) of each query of an nc_attention(), fp32 [..., L], made along with it; -inf
 * where all keys are masked. */
nc_value nc_attention_lse(nc_graph *graph, nc_value attention);
/*
 * Gradients by q, k and v of an nc_attention() of the same operands without broadcast leading dims, for the
 * gradient dy of its result y; lse is its nc_attention_lse(). Returns that by q and sets dk and dv; all are
 * made by one kernel, in the operands' dtype. Weights and their slopes are rounded to it before they are
 * multiplied, sums are fp32. L is up to NC_ATTENTION_GRAD_QUERIES_MAX.
 */
#define NC_ATTENTION_GRAD_QUERIES_MAX 16384
struct nc_attention_operands {
	nc_value q, k, v;
	nc_value mask; /* 0: none */
	nc_value y, lse, dy;
};
nc_value nc_attention_grad(nc_graph *graph, const struct nc_attention_operands *of,
			   const struct nc_attention *how, nc_value *dk, nc_value *dv);

/* --- results -------------------------------------------------------------------------------- */

#define NC_NO_ALIAS UINT32_MAX
/*
 * Stores value to HBM with the given strides (elements, NULL row major; not 0
 * where the dim is > 1). alias: number of the input slot that may be the very
 * same memory with the same dtype, shape and strides (an operation in place), or NC_NO_ALIAS: then
 * the slot overlaps no other.
 */
void nc_output(nc_graph *graph, nc_value value, const int64_t *strides, uint32_t alias);

/* Type of a value; dtype 0 for value 0. */
struct nc_type nc_type_of(const nc_graph *graph, nc_value value);

/* --- compilation ---------------------------------------------------------------------------- */

struct nc_program {
	void *image; /* program image; nc_program_free() frees it */
	size_t bytes;
	uint32_t n_slots; /* with scratch slots */
	uint64_t scratch_bytes;
};

/*
 * 0, or: -EINVAL (a mistake in the graph), -EOPNOTSUPP (op and dtype that the
 * target does not have), -E2BIG (image too large), -ENOMEM. error then names op, shape and
 * limit. The graph stays as it was.
 */
int nc_compile(const nc_graph *graph, const struct nc_target *target, struct nc_program *program,
	       char error[NC_ERROR_BYTES]);
void nc_program_free(struct nc_program *program);

/*
 * The graph as text, one line a node, stable: for people, tests and cache keys.
 * Writes at most size bytes with NUL; returns the length that it has.
 */
size_t nc_graph_dump(const nc_graph *graph, char *text, size_t size);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#endif /* NEURON_COMPILER_H */
