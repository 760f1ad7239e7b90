/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Program images to what the engines execute. Every field and every bound of an image is checked
 * here, once; what comes out needs no further checks than the sizes and rights of the slots that a
 * launch brings (nm_launch_check()). Nothing in a decoded program points into the image.
 */
#ifndef NM_DECODE_H
#define NM_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core.h"
#include "neuron_isa.h"
#include "neuron_program.h"
#include "neuron_queue.h"

/* Host distance between partitions: an odd number of cache lines more than a power of two, so
 * that the same byte of all partitions spreads over the cache sets. */
#define NM_SBUF_PITCH (NM_SBUF_BYTES_MAX + 192)
#define NM_PSUM_PITCH (NM_PSUM_BYTES + 192)

/* Elements that an operand may have in one partition, repeats included. */
#define NM_TILE_ELEMS (192u << 10)

/* Elements of one transfer. */
#define NM_DMA_ELEMS (1ull << 40)

#define NM_ENGINE_NONE 0xff
#define NM_SLOT_NONE   0xffff

struct nm_timing;

/* What a completion record says about a fault. */
struct nm_fault {
	uint16_t status; /* EXI_* */
	uint16_t slot;
	uint32_t pc;
	uint8_t engine;
	uint8_t opcode;
	uint64_t value;
	uint64_t limit;
};

/* Operand in each partition; steps in bytes, of the dims of the instruction's loop nest. */
struct nm_operand {
	uint8_t space;
	uint8_t dtype;
	uint8_t part0;
	uint8_t bytes; /* of an element; 0: operand not used */
	uint32_t offset;
	int32_t step[ISA_TILE_DIMS];
};

/* Bytes that an operand touches, relative to its slot or partition, and where these end. */
struct nm_reach {
	int64_t low, high; /* high not included */
	uint64_t limit;
};

#define NM_OPERANDS 5

/* Operands of a computation that registers move. */
struct nm_shifts {
	unsigned int n;
	struct nm_shift {
		uint8_t reg;
		uint8_t bytes; /* of an element */
		bool bank; /* it stays in one bank of PSUM */
		uint16_t operand; /* struct nm_operand, bytes from the start of struct nm_compute */
		struct nm_reach reach; /* while the register is 0 */
	} shift[NM_OPERANDS];
};

/* Parts of the tensor array, of ISA_ARRAY_QUANTUM rows and columns each; bit i of a set of them: part
 * i % ISA_ARRAY_PARTS of the columns, i / ISA_ARRAY_PARTS of the rows. */
#define NM_ARRAY_PARTS (ISA_ARRAY_PARTS * ISA_ARRAY_PARTS)
#define NM_ARRAY_ALL   0xffffu

static inline unsigned int nm_first_part(uint16_t array)
{
	return (unsigned int)__builtin_ctz(array);
}

/* nki.isa.nc_matmul: not both kinds of e4m3 in a product. */
static inline bool nm_mixes_e4(unsigned int a, unsigned int b)
{
	return (a == ISA_FP8_E4 && b == ISA_FP8_E4FN) || (a == ISA_FP8_E4FN && b == ISA_FP8_E4);
}

/* s0, s1 of an instruction: immediate, or one element in each partition. */
struct nm_scalar {
	uint64_t imm;
	struct nm_operand vec; /* bytes 0: immediate */
};

struct nm_nest {
	uint8_t ndim; /* 1..4; adjacent dims are merged where all operands allow it */
	uint32_t count[ISA_TILE_DIMS];
};

static inline uint32_t nm_elems(const struct nm_nest *nest)
{
	uint32_t n = 1;

	for (unsigned int i = 0; i < nest->ndim; i++)
		n *= nest->count[i];
	return n;
}

struct nm_compute {
	uint8_t op0, op1, ct, flags;
	uint8_t nparts; /* of src0, or of dst where there is no src0 */
	uint8_t outer; /* REDUCE: dims of nest that dst has too; the others are reduced */
	bool buffered; /* dst overlaps a source: read a whole partition before writing */
	bool apart; /* partitions do not meet: they may be processed in any order, and at once */
	uint32_t n; /* elements of a partition: product of nest */
	uint8_t rows; /* LOAD_STATIONARY, MATMUL: of the operand in each partition */
	uint32_t columns; /* of them: elements of a row */
	struct nm_nest nest; /* of src0 and, but for the tensor engine, the other operands */
	/* Of dst where it differs: tensor engine, BN_*, gathers and the like; of the ISA_TOP values of MAX8
	 * and the like; of src1 in N_GATHER. */
	struct nm_nest dst_nest;
	struct nm_nest src1_nest; /* LOCAL_GATHER */
	/* What an index adds is in src0.step for IOTA, in src1.step for AFFINE_SELECT. */
	struct nm_operand dst, src0, src1;
	struct nm_scalar s0, s1;
	struct nm_operand
		scale; /* MX: scales of src0, or of dst; of the first partition that has some */
	struct nm_operand row; /* reduction of a row, written; with ISA_F_ACCUM read, too */
	uint8_t shuffle[ISA_PART_QUANTUM]; /* STREAM_SHUFFLE */
	int64_t start; /* AFFINE_SELECT: of the first partition, and what a partition adds */
	int32_t part_step;
	uint8_t generator,
		generators; /* of random numbers: the first of a partition, and how many */
	bool stochastic; /* dst is rounded by them */
	uint8_t load_m; /* MATMUL: columns of the stationary operand, whose partitions are nparts */
	uint16_t array; /* LOAD_STATIONARY, MATMUL: parts of the array that hold it */
	const struct nm_shifts *shifts; /* NULL: no register moves an operand */
};

#define NM_WALK_DIMS (2 * (ISA_DMA_DIMS + 1))

/* One side of a transfer: a base and dims of bytes, outermost first, partitions included. */
struct nm_side {
	uint8_t space;
	uint8_t ndim;
	uint16_t slot;
	int64_t offset; /* from the slot or the memory's start, host pitch applied */
	uint32_t count[NM_WALK_DIMS];
	int64_t step[NM_WALK_DIMS];
	uint8_t shift; /* register that is added to offset, in elements */
	struct nm_reach reach; /* while it is 0 */
};

struct nm_index;

/* An indirect transfer's sides are all that it may touch. */
struct nm_dma {
	uint8_t elem_bytes;
	uint8_t queue;
	uint8_t sum; /* dtype in which src is added to dst; 0: it replaces it */
	bool joint; /* both sides have the same dims */
	bool apart; /* joint, and what differs in the outermost dim is written to different bytes */
	uint64_t n; /* elements */
	uint64_t cost_ps; /* of all descriptors together, on one DMA engine */
	uint64_t lead_ps; /* before the first byte, in addition to what every transfer takes */
	uint32_t engines; /* DMA engines that can share it, 1..16 */
	uint64_t hbm_bytes; /* read and written there */
	struct nm_side dst, src;
	const struct nm_index *index; /* NULL: not indirect */
};

/* Rows by index: which, and how one of them is moved. */
struct nm_index {
	bool scatter; /* the rows of dst are indexed, else those of src */
	bool skip; /* rows out of bounds are left out */
	bool is_signed;
	uint32_t rows; /* in bounds are 0..rows - 1 */
	int64_t row_step; /* of the indexed side, bytes */
	uint64_t n; /* indices */
	int64_t offset; /* of the first in SBUF */
	uint32_t count[2]; /* they follow each other by the second dim first */
	int64_t step[2];
	struct nm_side walk; /* outer dims of the other side: from row to row */
	struct nm_dma row;
};

/* An instruction on registers. */
struct nm_reg {
	uint8_t dst, a, b, op;
	bool immediate; /* imm instead of register b */
	int32_t imm;
	uint32_t target; /* BRANCH */
	uint8_t dtype, bytes; /* REG_LOAD, REG_STORE: of the element at place */
	struct nm_side place;
};

struct nm_inst {
	uint8_t opcode;
	uint8_t n_waits, n_updates;
	bool notify; /* ISA_F_NOTIFY */
	bool shifted; /* registers move its operands */
	uint8_t wait_sem[ISA_WAITS];
	uint8_t wait_reg[ISA_WAITS]; /* added to the value */
	uint8_t update_sem[ISA_UPDATES];
	uint16_t update_value[ISA_UPDATES];
	uint32_t ports; /* NM_PORT_* that it holds while its engine is occupied; timing.h */
	uint32_t wait_value[ISA_WAITS];
	uint64_t busy_ps; /* engine occupied */
	uint64_t array_ps; /* and parts of the tensor array, which are among the ports; 0: there are none */
	uint64_t taken_ps; /* BRANCH: in addition where it is taken */
	uint64_t latency_ps; /* from then on until effects are visible */
	union {
		const struct nm_compute *compute;
		const struct nm_dma *dma;
		const struct nm_reg *reg;
	};
};

struct nm_stream {
	uint32_t count;
	const struct nm_inst *inst;
};

struct nm_slot_need {
	uint64_t min_bytes;
	uint32_t rights; /* EXI_SLOT_*, with EXI_SLOT_INLINE for a scalar */
};

struct nm_program {
	struct nm_stream stream[EXI_ENGINES];
	uint32_t n_slots;
	uint32_t image_bytes;
	uint32_t const_offset, const_bytes;
	uint32_t sbuf_end, psum_end; /* bytes of a partition that the program may write */
	bool random; /* it has generators of random numbers to start with */
	bool branches; /* its instructions need not follow each other */
	size_t heap_bytes; /* memory of this structure and what it points to */
	const struct nm_slot_need *slot;
	char name[NPROG_NAME_BYTES + 1]; /* printable */
	struct nm_checked *verdict; /* check.h; worker of the core that decoded it */
};

/*
 * Decodes an image of size bytes for a core of generation arch. 0 and a program for
 * nm_program_free(); -EINVAL and *fault; -ENOMEM. The image may change meanwhile: it is read once.
 * Any thread.
 */
int nm_decode(const void *image, size_t size, uint32_t arch, struct nm_program **program,
	      struct nm_fault *fault);
void nm_program_free(struct nm_program *program);

/* --- between the decode_*.c files -------------------------------------------------- */

struct nm_decoder {
	struct nm_program *program;
	const struct nm_timing *timing;
	uint32_t sbuf_bytes; /* a partition */
	uint32_t arch; /* NEURON_ARCH_* */
	struct nm_fault *fault;
	unsigned int engine;
	uint32_t pc;
	uint8_t opcode;
	/* Stationary operands of the tensor stream, by the first part of the array that has them. */
	struct nm_load {
		uint16_t array; /* all those parts; 0: none is loaded */
		uint32_t k, m; /* partitions and columns */
		uint8_t mode, dtype; /* ISA_MODE_* */
		uint32_t matmul_cycles; /* of the last product on it, for hiding the next load */
	} load[NM_ARRAY_PARTS];
	bool divided; /* the tensor stream has products on parts of the array */
	uint32_t dst_rights; /* that a transfer needs of its destination slot */
	uint32_t cumulated; /* partitions that the vector stream holds a cumulative result of */
	uint32_t count; /* instructions of the stream */
	/* Of the computation at hand: what its operands touch. */
	unsigned int n_reaches;
	struct {
		const struct nm_operand *operand;
		struct nm_reach reach;
	} reach[NM_OPERANDS];
};

/* No load that comes next can hide behind a product before it. */
static inline void nm_forget_products(struct nm_decoder *d)
{
	for (unsigned int i = 0; i < NM_ARRAY_PARTS; i++)
		d->load[i].matmul_cycles = 0;
}

/* Notes a fault at the current instruction; always -EINVAL. */
int nm_decode_fault(struct nm_decoder *d, uint16_t status, uint64_t value, uint64_t limit);
int nm_decode_compute(struct nm_decoder *d, const struct isa_inst *in, struct nm_inst *out,
		      struct nm_compute *c);
/* An indirect transfer's struct nm_index is behind dma. */
int nm_decode_dma(struct nm_decoder *d, const struct isa_inst *in, struct nm_dma *dma);
/* An element that is read or written. */
int nm_decode_place(struct nm_decoder *d, const struct isa_place *in, bool is_dst,
		    struct nm_side *side);
/* decode_reg.c */
int nm_decode_reg(struct nm_decoder *d, const struct isa_inst *in, struct nm_reg *reg);
/* Whether registers move operands of a computation or a transfer. */
bool nm_is_shifted(const struct isa_inst *in);

#endif /* NM_DECODE_H */
