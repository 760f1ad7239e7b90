/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations of the NeuronCore before they have addresses, semaphores and an
 * encoding. The kernels append them in an order in which, run one after the
 * other, they would give the right result; alloc.c and sched.c let them overlap
 * without changing that.
 *
 * On-chip memory is named by buffer: a range of bytes in every partition that
 * lives from the first operation that uses it to the last.
 */
#ifndef NC_LIR_H
#define NC_LIR_H

#include "ir.h"
#include "neuron_program.h"

#define LIR_NONE    UINT32_MAX
#define LIR_OPS_MAX (1u << 20) /* an image of 200 MB */

struct lbuf {
	uint8_t space; /* ISA_SPACE_SBUF or _PSUM */
	uint32_t bytes; /* a partition */
	uint32_t first, last; /* operations that use it; LIR_NONE: none yet */
	uint32_t offset; /* set by alloc.c */
};

/* On-chip operand of a compute operation; as struct isa_tile, offset inside the buffer. */
struct ltile {
	uint32_t buf; /* LIR_NONE: operand unused */
	uint8_t dtype, part0, nparts;
	uint32_t offset;
	uint32_t count[ISA_TILE_DIMS];
	int32_t step[ISA_TILE_DIMS];
};

/* Per-partition scalar. */
struct lcol {
	uint32_t buf;
	uint32_t offset;
	uint8_t dtype, part0;
};

/* One side of a transfer: buf, or slot where buf is LIR_NONE. As struct isa_dma_side. */
struct lside {
	uint32_t buf;
	uint32_t slot;
	uint8_t part0, nparts, part_step, ndim;
	int64_t offset; /* bytes */
	int64_t step[ISA_DMA_DIMS];
	uint32_t count[ISA_DMA_DIMS];
};

/* Indices of a transfer of rows: count of them in each partition, one partition after the other. */
struct lindex {
	uint32_t buf, offset;
	uint8_t dtype, nparts;
	uint32_t count;
	int64_t row_step; /* bytes between rows of the indexed slot */
	uint32_t rows; /* that it has: an index from there on ends the launch */
};

/* Engine of DMA that moves results: chosen by sched.c, so that loads never queue behind them. */
#define LIR_STORE_ENGINE 0xffu

struct lop {
	uint8_t opcode, engine, op0, op1, compute_type, n_axes, flags;
	uint8_t elem_bytes, queue; /* DMA */
	uint32_t tag; /* node of the graph */
	uint32_t group; /* of nodes; see HBM hazards in sched.c */
	uint32_t tile; /* of its loop, ascending; 0: in none whose tiles are independent */
	uint64_t imm0, imm1;
	union {
		struct {
			struct ltile dst, src0, src1;
			struct lcol vec0, vec1;
		};
		struct {
			struct lside to, from;
			struct lindex index; /* DMA_GATHER: of from, DMA_SCATTER: of to */
			uint8_t sum_dtype; /* with ISA_F_ACCUM */
		};
	};
};

/* A slot of the program. */
struct lslot {
	uint8_t kind; /* NPROG_SLOT_* */
	uint8_t rights;
	nc_dtype dtype;
	struct nc_type type;
	uint64_t bytes;
	uint32_t memory; /* slots of one number may be the same memory */
};

struct lir {
	struct nc_ctx *ctx;
	struct lbuf *bufs;
	uint32_t n_bufs, cap_bufs;
	struct lop *ops;
	uint32_t n_ops, cap_ops;
	struct lslot *slots;
	uint32_t n_slots, cap_slots;
	uint8_t *consts;
	uint32_t n_consts, cap_consts; /* bytes */
	uint32_t group, tag, tile; /* given to new operations */
	struct lop *in_order; /* the operations as appended, if order.c changed their order */
	uint32_t bounce; /* first scratch slot of those that attention uses; 0: none yet */
};

/* --- building (lir.c) ---------------------------------------------------------------- */

struct lir *lir_create(struct nc_ctx *ctx);
/* A new buffer of so many bytes a partition; PSUM buffers are whole banks. */
uint32_t lir_buf(struct lir *lir, uint32_t space, uint64_t bytes);
/* A scratch slot; returns its number. */
uint32_t lir_scratch(struct lir *lir, nc_dtype dtype, int64_t elems);
/* Puts data among the constants; returns its offset for ISA_SLOT_CONST. */
uint32_t lir_const(struct lir *lir, const void *data, uint32_t bytes);

/* Operand: nparts partitions of a buffer from its byte offset on, n elements in a row. */
struct ltile lir_row(uint32_t buf, uint32_t dtype, uint32_t nparts, uint32_t offset, uint32_t n);
/* The same with up to ISA_TILE_DIMS dims, outermost first. */
struct ltile lir_tile(uint32_t buf, uint32_t dtype, uint32_t nparts, uint32_t offset, uint32_t ndim,
		      const int64_t *count, const int64_t *step);

/* Appends an operation with unused operands; valid until the next append. */
struct lop *lir_op(struct lir *lir, uint32_t engine, uint32_t opcode);
struct lop *lir_copy(struct lir *lir, uint32_t engine, uint32_t ct, struct ltile dst,
		     struct ltile src);
struct lop *lir_memset(struct lir *lir, uint32_t engine, uint32_t ct, struct ltile dst,
		       uint64_t imm);
/* dst = a op b */
struct lop *lir_tensor_tensor(struct lir *lir, uint32_t engine, uint32_t ct, uint32_t op,
			      struct ltile dst, struct ltile a, struct ltile b);

/* One dim of a transfer whose sides may step differently; bytes. */
struct lstep {
	int64_t count, a, b;
};

/*
 * Transfers between a slot and nparts partitions of a buffer. dims: the
 * partitions first (n_part of them, outermost first, b unused: one partition
 * each), then the free dims with the slot's step in a and the buffer's in b,
 * any number of them: unit steps are merged, and what exceeds the hardware's dims
 * becomes several transfers. offset: bytes into the slot.
 */
void lir_load(struct lir *lir, uint32_t buf, uint32_t part0, uint32_t buf_offset, uint32_t slot,
	      int64_t offset, uint32_t elem, uint32_t n_part, uint32_t n, const struct lstep *dims);
void lir_store(struct lir *lir, uint32_t slot, int64_t offset, uint32_t buf, uint32_t part0,
	       uint32_t buf_offset, uint32_t elem, uint32_t n_part, uint32_t n,
	       const struct lstep *dims);
/* Between two slots; a: steps of the destination, b: of the source. */
void lir_move(struct lir *lir, uint32_t dst, int64_t dst_offset, uint32_t src, int64_t src_offset,
	      uint32_t elem, uint32_t n, const struct lstep *dims);

/* Between two buffers; the sides as in struct isa_dma, elem bytes an element. */
void lir_chip_move(struct lir *lir, const struct lside *to, const struct lside *from,
		   uint32_t elem);

/* Rows between two slots, of which one is indexed. Offsets and steps in bytes. */
struct lrows {
	uint32_t indexed, other; /* slots */
	int64_t indexed_at, other_at; /* of row 0 */
	int64_t other_step; /* between rows, which lie in the order of the indices */
	uint32_t elem; /* bytes */
	uint8_t sum_dtype; /* scatter: rows are added, elements of enum isa_dtype; 0: moved */
};

/*
 * Gathers or scatters rows; dims: of one row, n of them, a: steps in the indexed slot, b: in the other.
 * Rows of a scatter with the same index: the last one stays, or all are added in order.
 */
void lir_rows(struct lir *lir, bool scatter, const struct lrows *rows, const struct lindex *index,
	      uint32_t n, const struct lstep *dims);

/*
 * What comes next in HBM waits for what this group has done there so far: as if it were another group.
 * For kernels that read what they have written, or write it again.
 */
void lir_next_group(struct lir *lir);

/*
 * Time in which an engine passes over so many elements of a partition, in quarters of 1/1.2 GHz, a
 * cycle of trn2's scalar engine: vector's clock has 4 where that has 5, on trn1, too.
 */
static inline uint64_t lir_quarter_ticks(uint32_t engine, uint64_t elems)
{
	return elems * (engine == ISA_VECTOR ? 5 : 4);
}

/* The same of the tensor engine and columns of moving operands up to 16 bits: its clock has 2 where that has 1. */
static inline uint64_t lir_matmul_quarter_ticks(int64_t columns)
{
	return (uint64_t)columns * 2;
}

/* The same of all DMA engines and runs of bytes. A run takes as long as so many bytes more; bytes of a
 * partition, of 128, that they move in 12 ticks; see the model's figures for sources. */
#define LIR_DMA_RUN_BYTES      138
#define LIR_DMA_BYTES_12_TICKS 29
static inline uint64_t lir_dma_quarter_ticks(int64_t runs, int64_t run_bytes)
{
	return (uint64_t)(runs * (run_bytes + LIR_DMA_RUN_BYTES)) * 48 /
	       (LIR_DMA_BYTES_12_TICKS * ISA_PARTITIONS);
}

/* --- later stages ---------------------------------------------------------------------- */

/* What an operation touches on chip: bytes [lo, hi) of a buffer in partitions [p0, p1). */
struct access {
	uint32_t buf;
	uint32_t lo, hi, p0, p1;
	bool write;
};

#define LIR_ACCESSES 5

/* sched.c: of one operation, at most LIR_ACCESSES; returns how many. */
uint32_t lir_accesses(const struct lop *op, struct access *out);

/* order.c: several tiles of a loop in flight. */
void nci_interleave(struct lir *lir);

/* alloc.c: addresses of all buffers. */
void nci_allocate(struct lir *lir);

/* sched.c: what emit.c needs to know beyond the operations. */
struct lwait {
	uint8_t sem;
	uint32_t value;
};

struct lsched {
	/* Operation i waits for waits[first_wait[i]] .. waits[first_wait[i + 1] - 1]; the waits at
	 * n_ops + e are those of engine e's HALT. */
	uint32_t *first_wait;
	struct lwait *waits;
	uint8_t *signals; /* operation i adds 1 to its agent's semaphore */
	bool used[5]; /* engine has a stream */
};

/* Semaphore of an engine's compute operations, and of a DMA queue's transfers. */
#define NCI_SEM_ENGINE(e) (e)
#define NCI_SEM_QUEUE(q)  (16 + (q))

void nci_schedule(struct lir *lir, struct lsched *sched);

/* emit.c: the image, from malloc(). */
void nci_emit(struct lir *lir, const struct lsched *sched, struct nc_program *program);

#endif /* NC_LIR_H */
