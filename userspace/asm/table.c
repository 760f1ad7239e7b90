// SPDX-License-Identifier: Apache-2.0
/* The text form of each field. Mnemonics and engines are named in hw/neuron_isa.h. */
#include <stddef.h>

#include "neuron_program.h"
#include "neuron_queue.h"
#include "table.h"

static const struct name dtypes[] = {
	{ "uint64", ISA_UINT64 },
	{ "int8", ISA_INT8 },
	{ "uint8", ISA_UINT8 },
	{ "int16", ISA_INT16 },
	{ "uint16", ISA_UINT16 },
	{ "bf16", ISA_BF16 },
	{ "fp16", ISA_FP16 },
	{ "int32", ISA_INT32 },
	{ "uint32", ISA_UINT32 },
	{ "fp32", ISA_FP32 },
	{ "int64", ISA_INT64 },
	{ "fp8_e3", ISA_FP8_E3 },
	{ "fp8_e4", ISA_FP8_E4 },
	{ "fp8_e5", ISA_FP8_E5 },
	{ "fp64", ISA_FP64 },
	{ "tf32", ISA_TF32 },
	{ "fp8_e4fn", ISA_FP8_E4FN },
	{ "fp8_e5_x4", ISA_FP8_E5_X4 },
	{ "fp8_e4fn_x4", ISA_FP8_E4FN_X4 },
	{ "fp4_x4", ISA_FP4_X4 },
	{ NULL, 0 },
};

static const struct name compute_types[] = {
	{ "f32", ISA_CT_F32 }, { "i32", ISA_CT_I32 },	{ "i64", ISA_CT_I64 },
	{ "f64", ISA_CT_F64 }, { "bits", ISA_CT_BITS }, { NULL, 0 },
};

static const struct name modes[] = {
	{ "none", ISA_MODE_NONE },
	{ "double_row", ISA_MODE_DOUBLE_ROW },
	{ "mx", ISA_MODE_MX },
	{ "stochastic", ISA_MODE_STOCHASTIC },
	{ NULL, 0 },
};

/* The first row or column, and how many. */
static const struct name array_parts[] = {
	{ "at0x32", ISA_ARRAY_PART(0, 32) },
	{ "at32x32", ISA_ARRAY_PART(32, 32) },
	{ "at64x32", ISA_ARRAY_PART(64, 32) },
	{ "at96x32", ISA_ARRAY_PART(96, 32) },
	{ "at0x64", ISA_ARRAY_PART(0, 64) },
	{ "at64x64", ISA_ARRAY_PART(64, 64) },
	{ NULL, 0 },
};

static const struct name alu[] = {
	{ "bypass", ISA_BYPASS },
	{ "add", ISA_ADD },
	{ "sub", ISA_SUB },
	{ "mult", ISA_MULT },
	{ "div", ISA_DIV },
	{ "max", ISA_MAX },
	{ "min", ISA_MIN },
	{ "pow", ISA_POW },
	{ "mod", ISA_MOD },
	{ "is_eq", ISA_IS_EQ },
	{ "is_ne", ISA_IS_NE },
	{ "is_gt", ISA_IS_GT },
	{ "is_ge", ISA_IS_GE },
	{ "is_lt", ISA_IS_LT },
	{ "is_le", ISA_IS_LE },
	{ "logical_and", ISA_LOGICAL_AND },
	{ "logical_or", ISA_LOGICAL_OR },
	{ "logical_xor", ISA_LOGICAL_XOR },
	{ "bit_and", ISA_BIT_AND },
	{ "bit_or", ISA_BIT_OR },
	{ "bit_xor", ISA_BIT_XOR },
	{ "shl", ISA_SHL },
	{ "shr", ISA_SHR },
	{ "asr", ISA_ASR },
	{ "abs_max", ISA_ABS_MAX },
	{ "abs_min", ISA_ABS_MIN },
	{ NULL, 0 },
};
_Static_assert(sizeof(alu) / sizeof(alu[0]) == ISA_ALU_OPS + 1, "an operator has no text");

static const struct name act[] = {
	{ "copy", ISA_ACT_COPY },
	{ "exp", ISA_ACT_EXP },
	{ "ln", ISA_ACT_LN },
	{ "sqrt", ISA_ACT_SQRT },
	{ "rsqrt", ISA_ACT_RSQRT },
	{ "reciprocal", ISA_ACT_RECIPROCAL },
	{ "square", ISA_ACT_SQUARE },
	{ "abs", ISA_ACT_ABS },
	{ "sign", ISA_ACT_SIGN },
	{ "relu", ISA_ACT_RELU },
	{ "sigmoid", ISA_ACT_SIGMOID },
	{ "tanh", ISA_ACT_TANH },
	{ "gelu", ISA_ACT_GELU },
	{ "gelu_tanh", ISA_ACT_GELU_TANH },
	{ "silu", ISA_ACT_SILU },
	{ "softplus", ISA_ACT_SOFTPLUS },
	{ "erf", ISA_ACT_ERF },
	{ "sin", ISA_ACT_SIN },
	{ "arctan", ISA_ACT_ARCTAN },
	{ "dgelu", ISA_ACT_DGELU },
	{ "dgelu_tanh", ISA_ACT_DGELU_TANH },
	{ "dsilu", ISA_ACT_DSILU },
	{ "floor", ISA_ACT_FLOOR },
	{ "ceil", ISA_ACT_CEIL },
	{ "round", ISA_ACT_ROUND },
	{ "trunc", ISA_ACT_TRUNC },
	{ "cos", ISA_ACT_COS },
	{ "log1p", ISA_ACT_LOG1P },
	{ "expm1", ISA_ACT_EXPM1 },
	{ "mish", ISA_ACT_MISH },
	{ "gelu_sigmoid", ISA_ACT_GELU_SIGMOID },
	{ "dgelu_sigmoid", ISA_ACT_DGELU_SIGMOID },
	{ "derf", ISA_ACT_DERF },
	{ NULL, 0 },
};
_Static_assert(sizeof(act) / sizeof(act[0]) == ISA_ACTS + 1, "a function has no text");

static const struct name spaces[] = {
	{ "sbuf", ISA_SPACE_SBUF },
	{ "psum", ISA_SPACE_PSUM },
	{ "slot", ISA_SPACE_SLOT },
	{ NULL, 0 },
};

static const struct name slots[] = { { "const", ISA_SLOT_CONST }, { NULL, 0 } };

static const struct name oob[] = {
	{ "error", ISA_OOB_ERROR },
	{ "skip", ISA_OOB_SKIP },
	{ NULL, 0 },
};

static const struct name orders[] = {
	{ "partitions", ISA_INDEX_PARTITIONS },
	{ "free", ISA_INDEX_FREE },
	{ NULL, 0 },
};

static const struct name flags[] = {
	{ "accum", ISA_F_ACCUM },   { "rev0", ISA_F_REV0 },	{ "rev1", ISA_F_REV1 },
	{ "vec0", ISA_F_VEC0 },	    { "vec1", ISA_F_VEC1 },	{ "imm", ISA_F_IMM },
	{ "notify", ISA_F_NOTIFY }, { "negate", ISA_F_NEGATE }, { NULL, 0 },
};

static const struct name kinds[] = {
	{ "input", NPROG_SLOT_INPUT },	 { "output", NPROG_SLOT_OUTPUT },
	{ "inout", NPROG_SLOT_INOUT },	 { "scratch", NPROG_SLOT_SCRATCH },
	{ "scalar", NPROG_SLOT_SCALAR }, { NULL, 0 },
};

static const struct name rights[] = {
	{ "read", EXI_SLOT_READ },
	{ "write", EXI_SLOT_WRITE },
	{ NULL, 0 },
};

#define SIZE(type, member) sizeof(((struct type *)0)->member)
#define PART(text, type, member, how)                                                     \
	.before = text, .at = offsetof(struct type, member), .bytes = SIZE(type, member), \
	.kind = how
#define NUMBER(text, type, member)	{ PART(text, type, member, PART_NUMBER) }
#define SIGNED(text, type, member)	{ PART(text, type, member, PART_SIGNED) }
#define NAMED(text, type, member, list) { PART(text, type, member, PART_NAMES), .names = list }
#define FIXED(type, member, is)		{ PART("", type, member, PART_FIXED), .value = is }
#define END				{ .before = "", .kind = PART_END }
/* A register; left out where it is 0. */
#define MOVED_BY(type, member) { PART("+r", type, member, PART_NUMBER), .may_end = true }
#define DIM(text, type, i)     NUMBER(text, type, count[i]), SIGNED("*", type, step[i])
/* A dim that is left out, with those after it, where all are zero. */
#define TAIL(text, type, i) \
	{ PART(text, type, count[i], PART_NUMBER), .may_end = true }, SIGNED("*", type, step[i])

static const struct part tile[] = {
	NAMED("", isa_tile, space, spaces),
	NAMED(":", isa_tile, dtype, dtypes),
	NUMBER("[", isa_tile, part0),
	NUMBER("+", isa_tile, nparts),
	NUMBER("]@", isa_tile, offset),
	DIM("/", isa_tile, 0),
	DIM(",", isa_tile, 1),
	DIM(",", isa_tile, 2),
	DIM(",", isa_tile, 3),
	END,
};
_Static_assert(ISA_TILE_DIMS == 4, "a dim of a tile has no text");

static const struct part column[] = {
	NAMED("", isa_column, space, spaces), NAMED(":", isa_column, dtype, dtypes),
	NUMBER("[", isa_column, part0),	      NUMBER("]@", isa_column, offset),
	MOVED_BY(isa_column, shift),	      END,
};

/* Partitions, four of them. */
#define FOUR(text, i)                                                                        \
	{ .before = text, .at = i, .bytes = 1 }, { .before = ",", .at = i + 1, .bytes = 1 }, \
		{ .before = ",", .at = i + 2, .bytes = 1 },                                  \
		{ .before = ",", .at = i + 3, .bytes = 1 }
static const struct part shuffle[] = {
	FOUR("", 0),   FOUR(",", 4),  FOUR(",", 8),  FOUR(",", 12), FOUR(",", 16),
	FOUR(",", 20), FOUR(",", 24), FOUR(",", 28), END,
};
_Static_assert(ISA_PART_QUANTUM == 32, "a partition of a shuffle has no text");

static const struct part affine[] = {
	SIGNED("", isa_affine, start),
	SIGNED("/p*", isa_affine, part_step),
	SIGNED(",", isa_affine, step[0]),
	SIGNED(",", isa_affine, step[1]),
	SIGNED(",", isa_affine, step[2]),
	SIGNED(",", isa_affine, step[3]),
	END,
};

/* Both sides of both kinds of transfer, up to the dims that they share. */
#define SIDE_DIMS(type)                                                         \
	NUMBER("@", type, offset), NUMBER("/", type, ndim), TAIL(",", type, 0), \
		TAIL(",", type, 1), TAIL(",", type, 2), TAIL(",", type, 3)
#define SLOT_SIDE(type) \
	FIXED(type, space, ISA_SPACE_SLOT), NAMED("", type, slot, slots), SIDE_DIMS(type)
#define CHIP_SIDE(type)                                                                      \
	NAMED("", type, space, spaces), NUMBER("[", type, part0), NUMBER("+", type, nparts), \
		NUMBER("*", type, part_step), NUMBER("]", type, slot), SIDE_DIMS(type)
_Static_assert(ISA_DMA_DIMS == 5, "a dim of a transfer has no text");
_Static_assert(ISA_DMA_ROW_DIMS == 4, "a dim of an indirect transfer has no text");

static const struct part slot_side[] = { SLOT_SIDE(isa_dma_side), TAIL(",", isa_dma_side, 4), END };
static const struct part chip_side[] = { CHIP_SIDE(isa_dma_side), TAIL(",", isa_dma_side, 4), END };
static const struct part slot_rows[] = { SLOT_SIDE(isa_dma_rows), END };
static const struct part chip_rows[] = { CHIP_SIDE(isa_dma_rows), END };

static const struct part indices[] = {
	NAMED("", isa_dma_index, space, spaces), NAMED(":", isa_dma_index, dtype, dtypes),
	NUMBER("[", isa_dma_index, part0),	 NUMBER("+", isa_dma_index, nparts),
	NUMBER("]@", isa_dma_index, offset),	 NUMBER("/", isa_dma_index, count),
	SIGNED("*", isa_dma_index, step),	 END,
};

static const struct part wait_ge[] = {
	FIXED(isa_wait, kind, ISA_WAIT_GE),
	NUMBER("s", isa_wait, sem),
	NUMBER(">=", isa_wait, value),
	MOVED_BY(isa_wait, reg),
	END,
};

/* Registers that move dst, src0, src1. */
static const struct part shifts[] = {
	{ .before = "r", .at = 0, .bytes = 1 },
	{ .before = ",r", .at = 1, .bytes = 1 },
	{ .before = ",r", .at = 2, .bytes = 1 },
	END,
};
_Static_assert(SIZE(isa_compute, shift) == 3, "a register that moves a tile has no text");

static const struct part slot_place[] = {
	FIXED(isa_place, space, ISA_SPACE_SLOT),
	NAMED("", isa_place, slot, slots),
	NAMED(":", isa_place, dtype, dtypes),
	NUMBER("@", isa_place, offset),
	MOVED_BY(isa_place, shift),
	END,
};

static const struct part chip_place[] = {
	NAMED("", isa_place, space, spaces),
	NAMED(":", isa_place, dtype, dtypes),
	NUMBER("[", isa_place, part0),
	NUMBER("]", isa_place, slot),
	NUMBER("@", isa_place, offset),
	MOVED_BY(isa_place, shift),
	END,
};

static const struct part update_add[] = {
	FIXED(isa_update, kind, ISA_UPDATE_ADD),
	NUMBER("s", isa_update, sem),
	NUMBER("+", isa_update, value),
	END,
};

/* Values of one field. */
#define ROW(name, size, how, list)                                               \
	static const struct part name[] = {                                      \
		{ .before = "", .bytes = size, .kind = how, .names = list }, END \
	}
ROW(byte, 1, PART_NUMBER, NULL);
ROW(word, 4, PART_NUMBER, NULL);
ROW(quad, 8, PART_NUMBER, NULL);
ROW(integer, 4, PART_SIGNED, NULL);
ROW(distance, 8, PART_SIGNED, NULL);
ROW(bits, 8, PART_HEX, NULL);
ROW(flag_names, 1, PART_FLAGS, flags);
ROW(alu_name, 1, PART_NAMES, alu);
ROW(act_name, 1, PART_NAMES, act);
ROW(compute_name, 1, PART_NAMES, compute_types);
ROW(mode_name, 1, PART_NAMES, modes);
ROW(array_name, 1, PART_NAMES, array_parts);
ROW(oob_name, 1, PART_NAMES, oob);
ROW(order_name, 1, PART_NAMES, orders);
ROW(kind_name, 1, PART_NAMES, kinds);
ROW(dtype_name, 1, PART_NAMES, dtypes);
ROW(right_names, 4, PART_FLAGS, rights);
ROW(slot_name, NPROG_SLOT_NAME_BYTES, PART_STRING, NULL);
ROW(program_name, NPROG_NAME_BYTES, PART_STRING, NULL);

static const struct part reg[] = { { .before = "r", .bytes = 1 }, END };

#define OPERAND(key, type, member, in, parts) \
	{ key, offsetof(struct type, member), SIZE(type, member), in, parts }
#define INST(key, member, in, parts) OPERAND(key, isa_inst, member, in, parts)
#define NO_MORE			     { NULL, 0, 0, 0, NULL }

const struct operand asm_inst_operands[] = {
	INST("flags", flags, IN_ALL, flag_names),
	INST("elem", elem_bytes, IN_ALL, byte),
	INST("queue", dma_queue, IN_ALL, byte),
	INST("sum", dma.dst.dtype, IN_DMA, dtype_name),
	INST("to_shift", dma.dst.shift, IN_DMA, reg),
	INST("from_shift", dma.src.shift, IN_DMA, reg),
	INST("to_slot", dma.dst, IN_DMA, slot_side),
	INST("to", dma.dst, IN_DMA, chip_side),
	INST("from_slot", dma.src, IN_DMA, slot_side),
	INST("from", dma.src, IN_DMA, chip_side),
	INST("sum", indirect.dst.dtype, IN_ROWS, dtype_name),
	INST("to_slot", indirect.dst, IN_ROWS, slot_rows),
	INST("to", indirect.dst, IN_ROWS, chip_rows),
	INST("from_slot", indirect.src, IN_ROWS, slot_rows),
	INST("from", indirect.src, IN_ROWS, chip_rows),
	INST("index", indirect.index, IN_ROWS, indices),
	INST("order", indirect.order, IN_ROWS, order_name),
	INST("row_step", indirect.row_step, IN_ROWS, distance),
	INST("rows", indirect.rows, IN_ROWS, word),
	INST("oob", indirect.oob, IN_ROWS, oob_name),
	INST("type", compute.compute_type, IN_COMPUTE, compute_name),
	INST("func", compute.op0, IN_ACT, act_name),
	INST("op0", compute.op0, IN_ALU, alu_name),
	INST("op1", compute.op1, IN_OP1, alu_name),
	INST("array_rows", compute.rows, IN_ARRAY, array_name),
	INST("array_columns", compute.columns, IN_ARRAY, array_name),
	INST("axes", compute.n_axes, IN_COMPUTE, byte),
	INST("mode", compute.mode, IN_COMPUTE, mode_name),
	INST("dst", compute.dst, IN_COMPUTE, tile),
	INST("src0", compute.src0, IN_COMPUTE, tile),
	INST("src1", compute.src1, IN_SRC1, tile),
	INST("shuffle", compute.shuffle, IN_SHUFFLE, shuffle),
	INST("affine", compute.affine, IN_AFFINE, affine),
	INST("imm0", compute.imm0, IN_COMPUTE, bits),
	INST("imm1", compute.imm1, IN_COMPUTE, bits),
	INST("vec0", compute.vec0, IN_COMPUTE, column),
	INST("vec1", compute.vec1, IN_COMPUTE, column),
	INST("shift", compute.shift, IN_COMPUTE, shifts),
	INST("op", reg.op, IN_REG, alu_name),
	INST("dst", reg.dst, IN_REG, reg),
	INST("a", reg.a, IN_REG, reg),
	INST("b", reg.b, IN_REG, reg),
	INST("imm", reg.imm, IN_REG, integer),
	INST("target", reg.target, IN_REG, word),
	INST("at_slot", reg.place, IN_REG, slot_place),
	INST("at", reg.place, IN_REG, chip_place),
	INST("wait0", wait[0], IN_ALL, wait_ge),
	INST("wait1", wait[1], IN_ALL, wait_ge),
	INST("update0", update[0], IN_ALL, update_add),
	INST("update1", update[1], IN_ALL, update_add),
	INST("tag", tag, IN_ALL, word),
	NO_MORE,
};
_Static_assert(ISA_WAITS == 2 && ISA_UPDATES == 2, "a wait or an update has no text");

static const struct part slot_dims[] = {
	{ .before = "", .at = 0, .bytes = 4 },	 { .before = ",", .at = 4, .bytes = 4 },
	{ .before = ",", .at = 8, .bytes = 4 },	 { .before = ",", .at = 12, .bytes = 4 },
	{ .before = ",", .at = 16, .bytes = 4 }, END,
};
_Static_assert(NPROG_DIMS_MAX == 5, "a dim of a slot has no text");

const struct operand asm_slot_operands[] = {
	OPERAND("name", nprog_slot, name, IN_ALL, slot_name),
	OPERAND("kind", nprog_slot, kind, IN_ALL, kind_name),
	OPERAND("rights", nprog_slot, rights, IN_ALL, right_names),
	OPERAND("bytes", nprog_slot, min_bytes, IN_ALL, quad),
	OPERAND("dtype", nprog_slot, dtype, IN_ALL, dtype_name),
	OPERAND("ndim", nprog_slot, ndim, IN_ALL, byte),
	OPERAND("dims", nprog_slot, dims, IN_ALL, slot_dims),
	NO_MORE,
};

static const struct part version[] = {
	{ .before = "", .at = 0, .bytes = 2 },
	{ .before = ".", .at = 2, .bytes = 2 },
	END,
};

const struct operand asm_header_operands[] = {
	OPERAND("name", nprog_header, name, IN_ALL, program_name),
	OPERAND("arch", nprog_header, arch, IN_ALL, word),
	{ "version", offsetof(struct nprog_header, version_major), 4, IN_ALL, version },
	NO_MORE,
};
