/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Execution interface, version 1: instructions of a NeuronCore.
 *
 * What the engines compute follows the public NKI documentation (nki.isa.*);
 * how it is encoded is ours. docs/execution-interface.md has the semantics.
 *
 * Five engines run one instruction stream each, in order, independently. They
 * meet only through semaphores: an instruction starts when all its waits hold,
 * and its updates are made when its effects are visible. Semaphores are zero
 * when a launch starts. DMA instructions may stand in any stream; the engine
 * goes on as soon as the transfer is queued, and the updates are made when the
 * transfer is complete.
 *
 * Each engine has registers (nki.isa.register_alloc), which its own instructions
 * change, compare and add to where operands begin; BRANCH goes on elsewhere in
 * the stream. Register 0 is always 0, so a field that names it adds nothing.
 */
#ifndef NEURON_ISA_H
#define NEURON_ISA_H

#include "neuron_types.h"

#define ISA_PARTITIONS     128
#define ISA_PSUM_BANKS     8
#define ISA_PSUM_BANK_BYTES 2048 /* a partition */
#define ISA_SEMAPHORES     256
#define ISA_SEM_MAX        0x7fffffffu
#define ISA_MATMUL_K_MAX   128 /* contraction: partitions of both operands */
#define ISA_MATMUL_M_MAX   128 /* stationary columns, result partitions */
#define ISA_MATMUL_N_MAX   512 /* moving columns */
#define ISA_MATMUL_N_BF16  1024 /* the same where the result is ISA_BF16: one bank of PSUM */
#define ISA_ARRAY_QUANTUM  32  /* rows and columns of the tensor array are divided by this, or twice as many */
#define ISA_ARRAY_PARTS    4   /* of ISA_ARRAY_QUANTUM, each way */
#define ISA_DOUBLE_ROWS    2   /* of each partition, with ISA_MODE_DOUBLE_ROW: K is up to 256 then */
#define ISA_MX_ROWS        4   /* of each partition, with ISA_MODE_MX: K is up to 512 then */
#define ISA_MX_PARTS       8   /* partitions, of ISA_MX_ROWS elements each, that share a scale */
#define ISA_MX_SCALE_PARTS 16  /* of each ISA_PART_QUANTUM partitions, from the first on, that may have scales */
#define ISA_PART_QUANTUM   32  /* a compute operand starts at partition 0, 32, 64 or 96 */
#define ISA_TILE_DIMS      4
#define ISA_DMA_DIMS       5
#define ISA_DMA_TRANSPOSE  16    /* counts of a transfer that the DMA engines transpose at speed are multiples */
#define ISA_DMA_TRANSPOSE_LONG 128 /* of this, one of them of this; elements of 2 or 4 bytes */
#define ISA_DMA_ROW_DIMS   4   /* of each side of an indirect transfer */
#define ISA_DMA_QUEUES     16  /* a core; transfers of one queue are made in order */
#define ISA_TOP            8     /* values that MAX8, FIND_INDEX8 and MATCH_REPLACE8 deal with */
#define ISA_TOP_ELEMS_MAX  16384 /* of a partition, among which they look */
#define ISA_BLOCK          32    /* partitions and elements that the vector engine transposes at most */
#define ISA_SHUFFLE_KEEP   0xffu /* STREAM_SHUFFLE: the partition of dst stays as it is */
#define ISA_BN_ELEMS_MAX   512   /* of a partition, that BN_STATS sees */
#define ISA_BN_GROUP       3     /* elements that describe a set of values: count, mean, variance * count */
#define ISA_BN_STATS_ELEMS 6     /* results of BN_STATS: a group of the even, a group of the odd elements */
#define ISA_BN_AGGR_ELEMS  2     /* results of BN_AGGR: mean, variance */
#define ISA_RANDOM_WORDS   6 /* of the state of a generator of random numbers */
#define ISA_RANDOM_VECTOR  4 /* generators of the vector engine, a partition */
#define ISA_RANDOM_GPSIMD  1 /* of the gpsimd engine */
#define ISA_RANDOM_SCALAR  1 /* of the scalar engine, for ISA_MODE_STOCHASTIC */
#define ISA_GPSIMD_PARTS   16 /* partitions of one of gpsimd's processors */
#define ISA_GATHER_RUN_MAX 32 /* elements that an index of LOCAL_GATHER names: a power of two up to this */
#define ISA_GATHER_MAX     4096 /* indices of LOCAL_GATHER for ISA_GPSIMD_PARTS partitions */
#define ISA_REGISTERS      64 /* of an engine, 32 bits, signed, 0 when a launch starts */
#define ISA_SLOT_CONST     0xfffeu /* the program's own constants, read only */
#define ISA_INST_BYTES     192

enum isa_engine {
	ISA_TENSOR = 0,
	ISA_VECTOR = 1,
	ISA_SCALAR = 2,
	ISA_GPSIMD = 3,
	ISA_SYNC = 4,
};

/* Numbers as in the public nrt.h, where it has them. */
enum isa_dtype {
	ISA_UINT64 = 0x1, /* gpsimd only, as are all 8-byte types */
	ISA_INT8 = 0x2,
	ISA_UINT8 = 0x3, /* also bool: 0 or 1 */
	ISA_INT16 = 0x4,
	ISA_UINT16 = 0x5,
	ISA_BF16 = 0x6,
	ISA_FP16 = 0x7,
	ISA_INT32 = 0x8,
	ISA_UINT32 = 0x9,
	ISA_FP32 = 0xa,
	ISA_TF32 = 0xb, /* since 1.2: fp32 rounded to 10 bits of fraction, FP32R of nrt.h */
	ISA_INT64 = 0xc,
	ISA_FP8_E3 = 0xd, /* since 1.2: e3m4, e4m3 and e5m2 with infinities and NaN as IEEE has them: the */
	ISA_FP8_E4 = 0xe, /* largest numbers are 15.5, 240 and 57344 */
	ISA_FP8_E5 = 0xf,
	ISA_FP64 = 0x10, /* ours, as are those below */
	ISA_FP8_E4FN = 0x11, /* since 1.2, trn3: e4m3 without infinities, NaN alone beyond 448 */
	ISA_FP8_E5_X4 = 0x12, /* since 1.2, trn3, for ISA_MODE_MX and QUANTIZE_MX alone: four in one, the first in */
	ISA_FP8_E4FN_X4 = 0x13, /* the low bits */
	ISA_FP4_X4 = 0x14, /* e2m1: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives */
};

/*
 * In which type an instruction computes. Operands are converted to it when
 * read, the result to the destination's dtype when written: to floating point
 * rounding to nearest even; float to integer truncating, NaN to 0, out of
 * range saturating; integer to narrower integer keeping the low bits.
 */
enum isa_compute_type {
	ISA_CT_F32 = 0,
	ISA_CT_I32 = 1,  /* wraps; gpsimd; also vector for logical, bitwise, shifts, compare, max, min, copy */
	ISA_CT_I64 = 2,  /* wraps; gpsimd */
	ISA_CT_F64 = 3,  /* gpsimd */
	ISA_CT_BITS = 4, /* COPY, COPY_PREDICATED, MEMSET, TRANSPOSE: keeps bits; equal element sizes */
};

enum isa_opcode {
	/* any engine */
	ISA_HALT = 0x01, /* end of stream; its waits hold back the end of the launch */
	ISA_NOP = 0x02,  /* only waits and updates */
	ISA_DMA = 0x08,  /* body: struct isa_dma */
	ISA_DMA_GATHER = 0x09,  /* since 1.2; body: struct isa_dma_indirect: rows of src by index */
	ISA_DMA_SCATTER = 0x0a, /* since 1.2; the same: rows of dst by index */

	/* struct isa_compute; V vector, S scalar, G gpsimd, T tensor */
	ISA_MEMSET = 0x10,        /* V S G: dst = imm0 */
	ISA_COPY = 0x11,          /* V S G: dst = src0 */
	ISA_TENSOR_TENSOR = 0x12, /* V G: dst = src0 op0 src1 */
	ISA_TENSOR_SCALAR = 0x13, /* V S G: dst = (src0 op0 s0) op1 s1 */
	ISA_SCALAR_TENSOR_TENSOR = 0x14, /* V G: dst = (src0 op0 s0) op1 src1 */
	ISA_REDUCE = 0x15,        /* V G: dst = op0 over the last n_axes dims of src0 */
	ISA_ACTIVATION = 0x16,    /* S: dst = func(src0 * s0 + s1); with ISA_F_ACCUM also
				   * src1[p] = sum of the row over all free elements (fp32) */
	ISA_COPY_PREDICATED = 0x17, /* V G: where src0 != 0: dst = src1, or imm0 with ISA_F_IMM */
	ISA_IOTA = 0x18,          /* G: dst = imm0 + imm1 * p + sum over d of index_d * src0.step[d] */
	ISA_PARTITION_REDUCE = 0x19, /* G: dst (one partition) = op0 over the partitions of src0 */

	ISA_LOAD_STATIONARY = 0x20, /* T: src0 [K, M] becomes the stationary operand */
	ISA_MATMUL = 0x21,        /* T: dst [M, N] (PSUM, fp32) = stationary' * src0 [K, N];
				   * with ISA_F_ACCUM added to what is there; since 1.3, trn3: dst is fp32 or
				   * bf16 */
	ISA_TRANSPOSE = 0x22,     /* T: dst [F, P] (PSUM) = src0' for src0 [P, F <= 128], bits kept;
				   * 2- and 4-byte types; dst elements of the same size;
				   * V, since 1.2: F, P <= 32, SBUF and PSUM, 1-byte types, too */

	/* Vector engine, in fp32; struct isa_compute; since 1.2 of the image. n: elements of src0. */
	ISA_MAX8 = 0x30,          /* dst [8] = the largest of src0 [8 <= n], descending */
	ISA_FIND_INDEX8 = 0x31,   /* dst [8] = where src0 [8 <= n] has each of src1 [8] */
	ISA_MATCH_REPLACE8 = 0x32, /* dst [n] = src0 with each of src1 [8] replaced once by imm0; with
				   * ISA_F_VEC1 vec1 [8] = where */
	ISA_TENSOR_TENSOR_SCAN = 0x33, /* dst = r = (src0 op0 r) op1 src1, element by element, from r = s0 */
	ISA_TENSOR_SCALAR_CUMULATIVE = 0x34, /* dst = r = (src0 op0 s0) op1 r, element by element, from
					      * r = s1, or with ISA_F_ACCUM from the last r of the
					      * partition's latest one */
	ISA_BN_STATS = 0x35,      /* dst [6] = count, mean, variance * count of the even elements of src0
				   * [1 <= n <= 512], then of the odd ones */
	ISA_BN_AGGR = 0x36,       /* dst [2] = mean, variance of all that the groups of src0 [3k] describe */
	ISA_STREAM_SHUFFLE = 0x37, /* partition p of dst = partition shuffle[p % 32] of the 32 of src0 that p
				    * is among, bits kept */
	/* with ISA_F_VEC1 vec1 [1] = a reduction of the row before it is rounded to dst; with ISA_F_ACCUM
	 * also of what vec1 holds */
	ISA_SELECT_REDUCE = 0x38, /* dst = src1 where src0 != 0, else s0; with ISA_F_REV0 where it is; vec1 = max */
	ISA_TENSOR_SCALAR_REDUCE = 0x39, /* dst = src0 op0 s0; vec1 = op1 over the row */
	ISA_RANGE_SELECT = 0x3a,  /* dst = src0 where i + imm0 op0 vec0 and i + imm0 op1 vec1, i the number of the
				   * element in the partition, else imm1; src1 [1], if there is one, = max */

	ISA_AFFINE_SELECT = 0x3b, /* G: dst = src0 where affine(partition, index) op0 0, else imm0 */

	/* Random numbers; each engine has generators of its own in each partition, ISA_RANDOM_* of them. */
	ISA_SET_RNG_SEED = 0x3c,  /* V S G: generators of all partitions from src0, 4 bytes of one partition */
	ISA_RAND_SET_STATE = 0x3d, /* V S G: generators of each partition = src0 [words] */
	ISA_RAND_GET_STATE = 0x3e, /* V S G: dst [words] = generators of each partition */
	ISA_RNG = 0x3f,           /* V G: dst = the low bits of numbers of 32 bits */
	ISA_RAND2 = 0x40,         /* V: dst = s0 + (s1 - s0) * u, u in [0, 1) */
	ISA_DROPOUT = 0x41,       /* V: dst = 0 where u < s0, else src0, bits kept */

	/* gpsimd, in SBUF alone */
	ISA_N_GATHER = 0x42,      /* dst = src0[src1], or 0 where src0 has no such element */
	ISA_LOCAL_GATHER = 0x43,  /* dst = runs of imm0 elements of src0 by src1, whose indices are those of
				   * ISA_GPSIMD_PARTS partitions, for all of them */
	ISA_NONZERO_WITH_COUNT = 0x44, /* dst [n + 1] = where src0 [n] is not 0, + imm0; imm1; how many; of every
					* ISA_GPSIMD_PARTS-th partition */
	ISA_SEQUENCE_BOUNDS = 0x45, /* dst [2, n] = where each element's run of equal ones in src0 [n] begins, ends */

	ISA_QUANTIZE_MX = 0x46,   /* V, trn3: dst [n], four in one, = src0 [4n] / scales, which go to vec1 [n] of every
				   * ISA_MX_PARTS-th partition */
	ISA_EXPONENTIAL = 0x47,   /* V, trn3, since 1.3: dst = exp(src0 - s0); vec1, as of *_REDUCE, = the sum of the row */

	/* Any engine; struct isa_reg; its registers. b: a register, or imm with ISA_F_IMM. */
	ISA_REG_MOVE = 0x50,      /* dst = b */
	ISA_REG_ALU = 0x51,       /* dst = a op b, as ISA_CT_I32 does; not DIV, MOD and POW */
	ISA_REG_LOAD = 0x52,      /* dst = the element at place, as int32 */
	ISA_REG_STORE = 0x53,     /* the element at place = a */
	ISA_BRANCH = 0x54,        /* where a op b, a comparison, instruction number target is the next */
};

/* op0, op1. Reduce takes add, mult, max, min, abs_max, abs_min, and the logical and bitwise and/or. */
enum isa_alu {
	ISA_BYPASS = 0, /* a op b = a */
	ISA_ADD = 1,
	ISA_SUB = 2,
	ISA_MULT = 3,
	ISA_DIV = 4, /* float: IEEE; integers truncate toward zero, by zero gives 0 */
	ISA_MAX = 5, /* float: NaN if either is */
	ISA_MIN = 6,
	ISA_POW = 7,
	ISA_MOD = 8, /* remainder with the sign of the divisor, as Python's % */
	ISA_IS_EQ = 9, /* comparisons give 1 or 0 */
	ISA_IS_NE = 10,
	ISA_IS_GT = 11,
	ISA_IS_GE = 12,
	ISA_IS_LT = 13,
	ISA_IS_LE = 14,
	ISA_LOGICAL_AND = 15, /* of (x != 0), gives 1 or 0 */
	ISA_LOGICAL_OR = 16,
	ISA_LOGICAL_XOR = 17,
	ISA_BIT_AND = 18, /* integer compute types only, as all up to ISA_ASR */
	ISA_BIT_OR = 19,
	ISA_BIT_XOR = 20,
	ISA_SHL = 21, /* a shift of the type's width or more, or negative, gives 0 (ASR: the sign) */
	ISA_SHR = 22, /* logical */
	ISA_ASR = 23,
	ISA_ABS_MAX = 24, /* since 1.3: the larger magnitude, float: NaN if either is; integers wrap */
	ISA_ABS_MIN = 25,
	ISA_ALU_OPS = 26,
};

/* Functions of ACTIVATION, in op0. x = src0 * s0 + s1, all in fp32. */
enum isa_act {
	ISA_ACT_COPY = 0, /* x */
	ISA_ACT_EXP = 1,
	ISA_ACT_LN = 2,
	ISA_ACT_SQRT = 3,
	ISA_ACT_RSQRT = 4,
	ISA_ACT_RECIPROCAL = 5,
	ISA_ACT_SQUARE = 6,
	ISA_ACT_ABS = 7,
	ISA_ACT_SIGN = 8, /* sign(NaN) = NaN */
	ISA_ACT_RELU = 9, /* max(x, 0), NaN stays */
	ISA_ACT_SIGMOID = 10,
	ISA_ACT_TANH = 11,
	ISA_ACT_GELU = 12, /* exact, by erf */
	ISA_ACT_GELU_TANH = 13,
	ISA_ACT_SILU = 14,
	ISA_ACT_SOFTPLUS = 15,
	ISA_ACT_ERF = 16,
	ISA_ACT_SIN = 17,
	ISA_ACT_ARCTAN = 18,
	ISA_ACT_DGELU = 19, /* derivatives */
	ISA_ACT_DGELU_TANH = 20,
	ISA_ACT_DSILU = 21,
	ISA_ACT_FLOOR = 22,
	ISA_ACT_CEIL = 23,
	ISA_ACT_ROUND = 24, /* to nearest even */
	ISA_ACT_TRUNC = 25,
	ISA_ACT_COS = 26,
	ISA_ACT_LOG1P = 27,
	ISA_ACT_EXPM1 = 28,
	ISA_ACT_MISH = 29,
	ISA_ACT_GELU_SIGMOID = 30, /* since 1.3, as those below: x / (1 + e^(-1.702 x)) */
	ISA_ACT_DGELU_SIGMOID = 31, /* derivatives */
	ISA_ACT_DERF = 32,
	ISA_ACTS = 33,
};

/*
 * In mode, since 1.2. DOUBLE_ROW, of a product, both instructions, from trn2 on: operands are ISA_FP8_E4 or
 * _E5, and the elements of a partition are two rows, one behind the other: the result is the sum of the
 * products of the first rows and of the second ones. MX, the same from trn3 on: operands are ISA_FP8_E5_X4,
 * _E4FN_X4 or ISA_FP4_X4, and what is packed together are four rows; vec1 is where src0's scales, of
 * ISA_UINT8, begin, 2^(scale - 127) each, 255 NaN. STOCHASTIC, of COPY, TENSOR_TENSOR, TENSOR_SCALAR,
 * SCALAR_TENSOR_TENSOR and ACTIVATION in fp32: a result between two numbers of dst's dtype, which has fewer
 * bits, becomes either, so that it stays the same on average.
 */
enum isa_mode {
	ISA_MODE_NONE = 0,
	ISA_MODE_DOUBLE_ROW = 1,
	ISA_MODE_MX = 2,
	ISA_MODE_STOCHASTIC = 3,
};

/*
 * Of a product, both instructions, since 1.3: which rows of the tensor array hold the stationary operand's
 * partitions, and which columns its columns: ISA_ARRAY_ALL, or ISA_ARRAY_PART: size of them from first on, with size
 * ISA_ARRAY_QUANTUM (from trn2 on) or twice that, and first a multiple of it. Products on parts that have no
 * row and column in common run at the same time (nki.isa.nc_matmul, tile_position and tile_size).
 */
#define ISA_ARRAY_ALL 0
#define ISA_ARRAY_PART(first, size) \
	((first) / ISA_ARRAY_QUANTUM << 4 | (size) / ISA_ARRAY_QUANTUM)
#define ISA_ARRAY_SIZE(part)  (((part) & 0x0fu) * ISA_ARRAY_QUANTUM)
#define ISA_ARRAY_FIRST(part) (((part) >> 4) * ISA_ARRAY_QUANTUM)

#define ISA_SPACE_SBUF 0
#define ISA_SPACE_PSUM 1
#define ISA_SPACE_SLOT 2 /* DMA only */

/*
 * On-chip operand: nparts partitions from part0 on; in each, the elements that
 * count/step walk from offset on, last dim fastest. A step of 0 repeats.
 * Unused leading dims have count 1. Operands of one instruction have equal
 * shapes unless the opcode says otherwise. Every element lies inside the
 * partition and is aligned to its size.
 */
struct isa_tile {
	__u8 space;
	__u8 dtype;
	__u8 part0;
	__u8 nparts;   /* 1..128, part0 + nparts <= 128 */
	__le32 offset; /* bytes */
	__le32 count[ISA_TILE_DIMS]; /* 1.. */
	__le32 step[ISA_TILE_DIMS];  /* elements, signed */
};

/* Per-partition scalar operand: one element in each partition of dst. */
struct isa_column {
	__le32 offset; /* bytes */
	__u8 space;
	__u8 dtype;
	__u8 part0;
	__u8 shift; /* since 1.2: register that is added to where it begins, elements */
};

/* start + p * part_step + sum over d of index_d * step[d], as integers: all are signed. */
struct isa_affine {
	__le32 start;
	__le32 part_step;
	__le32 step[ISA_TILE_DIMS];
	__u8 pad0[16];
};

struct isa_compute {
	struct isa_tile dst;
	struct isa_tile src0;
	union {
		struct isa_tile src1;
		__u8 shuffle[ISA_PART_QUANTUM]; /* STREAM_SHUFFLE: 0..31, ISA_SHUFFLE_KEEP; then 8 zeros */
		struct isa_affine affine;       /* AFFINE_SELECT */
	};
	union {
		__u8 op0;
		__u8 rows; /* LOAD_STATIONARY, MATMUL: of the array, ISA_ARRAY_* */
	};
	union {
		__u8 op1;
		__u8 columns;
	};
	__u8 compute_type;
	__u8 n_axes; /* REDUCE: 1..4; dst's last n_axes counts are 1 */
	__u8 mode;   /* ISA_MODE_* */
	__u8 shift[3]; /* since 1.2: registers that are added to where dst, src0, src1 begin, elements */
	__le64 imm0; /* bits of the compute type: float in the low 32, int32 sign extended, int64, double */
	__le64 imm1;
	struct isa_column vec0; /* s0 instead of imm0 with ISA_F_VEC0 */
	struct isa_column vec1; /* s1 instead of imm1 with ISA_F_VEC1 */
};

/*
 * One side of a transfer. The elements of both sides, taken in order, are equal
 * in number. Slot: the dims walk bytes from offset on. On chip: partitions
 * part0, part0 + part_step, ... (nparts of them) are the outermost dim, and the
 * dims walk bytes of each partition from offset on.
 */
struct isa_dma_side {
	__u8 space;
	__u8 ndim;      /* 0..ISA_DMA_DIMS; 0: one element */
	__le16 slot;    /* ISA_SPACE_SLOT */
	__u8 part0;     /* on chip */
	__u8 nparts;
	__u8 part_step; /* 0 (source only) or 1 */
	__u8 dtype;     /* dst with ISA_F_ACCUM: ISA_FP32, _BF16, _FP16 or _INT32, of both sides; else 0 */
	__le64 offset;  /* bytes */
	__le64 step[ISA_DMA_DIMS]; /* bytes, signed; outermost first */
	__le32 count[ISA_DMA_DIMS];
	__u8 shift; /* since 1.2: register that is added to offset, elements */
	__u8 pad1[3];
};

struct isa_dma {
	struct isa_dma_side dst;
	struct isa_dma_side src;
};

/* A side of an indirect transfer: struct isa_dma_side with fewer dims. */
struct isa_dma_rows {
	__u8 space;
	__u8 ndim; /* 0..ISA_DMA_ROW_DIMS */
	__le16 slot;
	__u8 part0;
	__u8 nparts;
	__u8 part_step;
	__u8 dtype;
	__le64 offset;
	__le64 step[ISA_DMA_ROW_DIMS];
	__le32 count[ISA_DMA_ROW_DIMS];
};

/* Indices in SBUF, count of them in each of nparts partitions. */
struct isa_dma_index {
	__u8 space; /* ISA_SPACE_SBUF */
	__u8 dtype; /* ISA_INT32, ISA_UINT32 */
	__u8 part0;
	__u8 nparts;
	__le32 offset; /* bytes, aligned to the element */
	__le32 count;  /* 1.. */
	__le32 step;   /* elements, signed */
};

/*
 * Moves as many rows as there are indices. Of the indexed side, a slot, the dims
 * walk one row; row number index begins index * row_step behind offset, and
 * rows 0..rows - 1 lie in the slot. The other side walks all rows, outermost.
 */
struct isa_dma_indirect {
	struct isa_dma_rows dst;
	struct isa_dma_rows src;
	struct isa_dma_index index;
	__le64 row_step; /* bytes, signed */
	__le32 rows;     /* 1..; an index of this or more, or below 0, is out of bounds */
	__u8 oob;
#define ISA_OOB_ERROR 0 /* EXI_FAULT_INDEX before anything is moved */
#define ISA_OOB_SKIP  1 /* the row is left out: its destination keeps what it has */
	__u8 order; /* of the indices */
#define ISA_INDEX_PARTITIONS 0 /* partition by partition */
#define ISA_INDEX_FREE       1 /* the first of each partition, the second of each ... */
	__u8 pad0[2];
};

/* One element of memory. */
struct isa_place {
	__u8 space; /* SBUF, PSUM or slot */
	__u8 dtype; /* of 4 bytes at most */
	__le16 slot;
	__u8 part0; /* on chip: any partition */
	__u8 shift; /* register that is added to offset, elements */
	__u8 pad0[2];
	__le64 offset; /* bytes */
};

/* Of instructions on registers; the rest of the body is zero. */
struct isa_reg {
	__u8 dst; /* not 0 */
	__u8 a;
	__u8 b;
	__u8 op; /* enum isa_alu */
	__le32 imm; /* signed */
	__le32 target;
	__u8 pad0[4];
	struct isa_place place;
};

struct isa_wait {
	__u8 kind;
#define ISA_WAIT_NONE 0
#define ISA_WAIT_GE   1 /* semaphore >= value + reg */
	__u8 sem;
	__u8 reg; /* since 1.2 */
	__u8 pad0;
	__le32 value;
};

struct isa_update {
	__u8 kind;
#define ISA_UPDATE_NONE 0
#define ISA_UPDATE_ADD  1
	__u8 sem;
	__le16 value;
};

#define ISA_WAITS   2
#define ISA_UPDATES 2

struct isa_inst {
	__u8 opcode;
	__u8 flags;
#define ISA_F_ACCUM 0x01u /* MATMUL, ACTIVATION, TENSOR_SCALAR_CUMULATIVE, *_REDUCE, RANGE_SELECT,
			   * EXPONENTIAL; transfers, since 1.2: dst += src, not into PSUM */
#define ISA_F_REV0  0x02u /* TENSOR_SCALAR, SCALAR_TENSOR_TENSOR: s0 op0 src0; TENSOR_TENSOR_SCAN: r op0 src0;
			   * SELECT_REDUCE: src0 == 0 */
#define ISA_F_REV1  0x04u /* s1 op1 (...), src1 op1 (...) */
#define ISA_F_VEC0  0x08u
#define ISA_F_VEC1  0x10u /* MATCH_REPLACE8, *_REDUCE, EXPONENTIAL: vec1 is written */
#define ISA_F_IMM   0x20u /* COPY_PREDICATED; REG_MOVE, REG_ALU, BRANCH: b is imm */
#define ISA_F_NOTIFY 0x40u /* any, since 1.1: tell in the NQ_NOTIFY queue (neuron_notify.h) when its
			    * effects are visible */
#define ISA_F_NEGATE 0x80u /* REDUCE, TENSOR_SCALAR_REDUCE, since 1.3: what is reduced, times -1 */
	__u8 elem_bytes; /* transfers: 1, 2, 4 or 8; else 0 */
	__u8 dma_queue;  /* transfers: 0..ISA_DMA_QUEUES - 1; else 0 */
	__le32 tag;      /* free for the compiler: index of the source operation */
	struct isa_wait wait[ISA_WAITS];
	struct isa_update update[ISA_UPDATES];
	union {
		struct isa_compute compute;
		struct isa_dma dma;
		struct isa_dma_indirect indirect;
		struct isa_reg reg;
		__u8 body[160];
	};
};

/* Bytes of one element, 0 for an unknown dtype. */
static inline __u32 isa_dtype_bytes(__u32 dtype)
{
	switch (dtype) {
	case ISA_INT8:
	case ISA_UINT8:
	case ISA_FP8_E3:
	case ISA_FP8_E4:
	case ISA_FP8_E5:
	case ISA_FP8_E4FN:
		return 1;
	case ISA_INT16:
	case ISA_UINT16:
	case ISA_BF16:
	case ISA_FP16:
	case ISA_FP4_X4:
		return 2;
	case ISA_INT32:
	case ISA_UINT32:
	case ISA_FP32:
	case ISA_TF32:
	case ISA_FP8_E5_X4:
	case ISA_FP8_E4FN_X4:
		return 4;
	case ISA_UINT64:
	case ISA_INT64:
	case ISA_FP64:
		return 8;
	default:
		return 0;
	}
}

/* Whether a dtype is an 8-bit float. */
static inline int isa_is_fp8(__u32 dtype)
{
	return (dtype >= ISA_FP8_E3 && dtype <= ISA_FP8_E5) || dtype == ISA_FP8_E4FN;
}

/* Whether it is four small floats in one. */
static inline int isa_is_x4(__u32 dtype)
{
	return dtype >= ISA_FP8_E5_X4 && dtype <= ISA_FP4_X4;
}

/* Whether a dtype is a float of any size. */
static inline int isa_is_float(__u32 dtype)
{
	return dtype == ISA_FP32 || dtype == ISA_TF32 || dtype == ISA_BF16 || dtype == ISA_FP16 ||
	       dtype == ISA_FP64 || isa_is_fp8(dtype);
}

/* Whether an instruction is a transfer, which a DMA queue makes. */
static inline int isa_is_dma(__u32 opcode)
{
	return opcode >= ISA_DMA && opcode <= ISA_DMA_SCATTER;
}

/* Whether an instruction is the sequencer's own, on registers. */
static inline int isa_is_reg(__u32 opcode)
{
	return opcode >= ISA_REG_MOVE && opcode <= ISA_BRANCH;
}

/* Name of an engine, NULL for an unknown one. */
static inline const char *isa_engine_name(__u32 engine)
{
	switch (engine) {
	case ISA_TENSOR:
		return "tensor";
	case ISA_VECTOR:
		return "vector";
	case ISA_SCALAR:
		return "scalar";
	case ISA_GPSIMD:
		return "gpsimd";
	case ISA_SYNC:
		return "sync";
	default:
		return (const char *)0;
	}
}

/* Name of an opcode in reports and listings, NULL for an unknown one. */
static inline const char *isa_opcode_name(__u32 opcode)
{
	switch (opcode) {
	case ISA_HALT:
		return "halt";
	case ISA_NOP:
		return "nop";
	case ISA_DMA:
		return "dma";
	case ISA_DMA_GATHER:
		return "dma_gather";
	case ISA_DMA_SCATTER:
		return "dma_scatter";
	case ISA_MEMSET:
		return "memset";
	case ISA_COPY:
		return "copy";
	case ISA_TENSOR_TENSOR:
		return "tensor_tensor";
	case ISA_TENSOR_SCALAR:
		return "tensor_scalar";
	case ISA_SCALAR_TENSOR_TENSOR:
		return "scalar_tensor_tensor";
	case ISA_REDUCE:
		return "reduce";
	case ISA_ACTIVATION:
		return "activation";
	case ISA_COPY_PREDICATED:
		return "copy_predicated";
	case ISA_IOTA:
		return "iota";
	case ISA_PARTITION_REDUCE:
		return "partition_reduce";
	case ISA_LOAD_STATIONARY:
		return "load_stationary";
	case ISA_MATMUL:
		return "matmul";
	case ISA_TRANSPOSE:
		return "transpose";
	case ISA_MAX8:
		return "max8";
	case ISA_FIND_INDEX8:
		return "find_index8";
	case ISA_MATCH_REPLACE8:
		return "match_replace8";
	case ISA_TENSOR_TENSOR_SCAN:
		return "tensor_tensor_scan";
	case ISA_TENSOR_SCALAR_CUMULATIVE:
		return "tensor_scalar_cumulative";
	case ISA_BN_STATS:
		return "bn_stats";
	case ISA_BN_AGGR:
		return "bn_aggr";
	case ISA_STREAM_SHUFFLE:
		return "stream_shuffle";
	case ISA_SELECT_REDUCE:
		return "select_reduce";
	case ISA_TENSOR_SCALAR_REDUCE:
		return "tensor_scalar_reduce";
	case ISA_RANGE_SELECT:
		return "range_select";
	case ISA_AFFINE_SELECT:
		return "affine_select";
	case ISA_SET_RNG_SEED:
		return "set_rng_seed";
	case ISA_RAND_SET_STATE:
		return "rand_set_state";
	case ISA_RAND_GET_STATE:
		return "rand_get_state";
	case ISA_RNG:
		return "rng";
	case ISA_RAND2:
		return "rand2";
	case ISA_DROPOUT:
		return "dropout";
	case ISA_N_GATHER:
		return "n_gather";
	case ISA_LOCAL_GATHER:
		return "local_gather";
	case ISA_NONZERO_WITH_COUNT:
		return "nonzero_with_count";
	case ISA_SEQUENCE_BOUNDS:
		return "sequence_bounds";
	case ISA_QUANTIZE_MX:
		return "quantize_mx";
	case ISA_EXPONENTIAL:
		return "exponential";
	case ISA_REG_MOVE:
		return "reg_move";
	case ISA_REG_ALU:
		return "reg_alu";
	case ISA_REG_LOAD:
		return "reg_load";
	case ISA_REG_STORE:
		return "reg_store";
	case ISA_BRANCH:
		return "branch";
	default:
		return (const char *)0;
	}
}

HW_ASSERT_SIZE(struct isa_tile, 40);
HW_ASSERT_SIZE(struct isa_affine, sizeof(struct isa_tile));
HW_ASSERT_SIZE(struct isa_compute, 160);
HW_ASSERT_SIZE(struct isa_dma, 160);
HW_ASSERT_SIZE(struct isa_dma_indirect, 160);
HW_ASSERT_SIZE(struct isa_place, 16);
HW_ASSERT_SIZE(struct isa_reg, 32);
HW_ASSERT_SIZE(struct isa_inst, ISA_INST_BYTES);

#endif /* NEURON_ISA_H */
