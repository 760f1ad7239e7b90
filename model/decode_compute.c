// SPDX-License-Identifier: Apache-2.0
/* Compute instructions: which engine may do what in which type, and where operands lie. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "decode.h"
#include "neuron_pci.h"
#include "timing.h"

#define ENGINE(e) (1u << (e))
#define V	  ENGINE(ISA_VECTOR)
#define S	  ENGINE(ISA_SCALAR)
#define G	  ENGINE(ISA_GPSIMD)
#define T	  ENGINE(ISA_TENSOR)

#define CT(t)	(1u << (t))
#define CT_ALU	(CT(ISA_CT_F32) | CT(ISA_CT_I32) | CT(ISA_CT_I64) | CT(ISA_CT_F64))
#define CT_COPY (CT_ALU | CT(ISA_CT_BITS))

#define SPACE(s) (1u << (s))
#define SBUF	 SPACE(ISA_SPACE_SBUF)
#define PSUM	 SPACE(ISA_SPACE_PSUM)

struct body {
	struct nm_decoder *d;
	const struct isa_compute *in;
	const struct isa_inst *inst;
	struct nm_inst *out;
	struct nm_compute *c;
	bool mx; /* operands may be of four elements in one */
};

struct rule {
	uint8_t engines;
	uint8_t flags;
	uint8_t cts;
	int (*decode)(struct body *b);
};

static int bad(struct body *b, uint64_t value, uint64_t limit)
{
	return nm_decode_fault(b->d, EXI_FAULT_BAD_OPERAND, value, limit);
}

/* --- single fields ----------------------------------------------------------------- */

static int expect_zero(struct body *b, const void *field, size_t size)
{
	const uint8_t *p = field;

	for (size_t i = 0; i < size; i++)
		if (p[i])
			return bad(b, p[i], 0);
	return 0;
}

static bool alu_is_bitwise(unsigned int op)
{
	return op >= ISA_BIT_AND && op <= ISA_ASR;
}

/* What the vector engine does in 32-bit integers. */
static bool alu_is_simple(unsigned int op)
{
	return op == ISA_BYPASS || op == ISA_MAX || op == ISA_MIN || op >= ISA_IS_EQ;
}

static int check_alu(struct body *b, unsigned int op)
{
	unsigned int ct = b->in->compute_type;
	bool integer = ct == ISA_CT_I32 || ct == ISA_CT_I64;

	if (op >= ISA_ALU_OPS)
		return bad(b, op, ISA_ALU_OPS);
	if (alu_is_bitwise(op) && !integer)
		return bad(b, op, ISA_BIT_AND);
	if (ct == ISA_CT_I32 && b->d->engine == ISA_VECTOR && !alu_is_simple(op))
		return bad(b, op, ISA_CT_I32);
	return 0;
}

static bool alu_reduces(unsigned int op)
{
	switch (op) {
	case ISA_ADD:
	case ISA_MULT:
	case ISA_MAX:
	case ISA_MIN:
	case ISA_LOGICAL_AND:
	case ISA_LOGICAL_OR:
	case ISA_BIT_AND:
	case ISA_BIT_OR:
	case ISA_ABS_MAX:
	case ISA_ABS_MIN:
		return true;
	default:
		return false;
	}
}

static int check_reduce_op(struct body *b)
{
	if (!alu_reduces(b->in->op0))
		return bad(b, b->in->op0, ISA_ADD);
	return check_alu(b, b->in->op0);
}

/* nki.isa.tensor_reduce: results of arithmetic are multiplied by -1. */
static int check_negation(struct body *b)
{
	const unsigned int flags = b->inst->flags;

	if (!(flags & ISA_F_NEGATE))
		return 0;
	return alu_is_bitwise(b->in->op0) ? bad(b, flags, flags & ~ISA_F_NEGATE) :
					    check_alu(b, ISA_MULT);
}

static int check_imm(struct body *b, uint64_t imm)
{
	if (b->in->compute_type == ISA_CT_F32 && imm >> 32)
		return bad(b, imm, UINT32_MAX);
	if (b->in->compute_type == ISA_CT_I32 && (int64_t)imm != (int32_t)imm)
		return bad(b, imm, INT32_MAX);
	return 0;
}

/* A float of any size. */
static int check_float(struct body *b, unsigned int dtype)
{
	return isa_is_float(dtype) ? 0 : bad(b, dtype, ISA_FP32);
}

static int same_dtype(struct body *b)
{
	const struct isa_compute *in = b->in;

	return in->dst.dtype == in->src0.dtype ? 0 : bad(b, in->dst.dtype, in->src0.dtype);
}

static bool has_dtype(const struct body *b, unsigned int dtype)
{
	if (isa_is_x4(dtype))
		return b->mx;
	return dtype != ISA_FP8_E4FN || b->d->arch >= NEURON_ARCH_V4;
}

/* Space, dtype, partitions and alignment, which tiles and columns share. */
static int check_place(struct body *b, struct nm_operand *o, unsigned int nparts,
		       unsigned int spaces)
{
	uint32_t bytes = isa_dtype_bytes(o->dtype);

	if (o->space > ISA_SPACE_PSUM || !(spaces & SPACE(o->space)))
		return bad(b, o->space, spaces & SBUF ? ISA_SPACE_SBUF : ISA_SPACE_PSUM);
	if (bytes == 0 || (bytes == 8 && b->d->engine != ISA_GPSIMD) || !has_dtype(b, o->dtype))
		return bad(b, o->dtype, ISA_FP32);
	if (o->part0 % ISA_PART_QUANTUM || o->part0 >= ISA_PARTITIONS)
		return bad(b, o->part0, ISA_PART_QUANTUM);
	if (nparts == 0 || nparts > (unsigned int)(ISA_PARTITIONS - o->part0))
		return bad(b, nparts, ISA_PARTITIONS - o->part0);
	if (o->offset % bytes)
		return bad(b, o->offset, bytes);
	o->bytes = (uint8_t)bytes;
	return 0;
}

static uint32_t space_bytes(const struct body *b, unsigned int space)
{
	return space == ISA_SPACE_SBUF ? b->d->sbuf_bytes : NM_PSUM_BYTES;
}

/* --- tiles -------------------------------------------------------------------------- */

/* Notes what an operand touches, for the registers that may move it. */
static void note_reach(struct body *b, const struct nm_operand *o, int64_t low, int64_t high)
{
	struct nm_decoder *d = b->d;

	if (d->n_reaches == NM_OPERANDS)
		return;
	d->reach[d->n_reaches].operand = o;
	d->reach[d->n_reaches++].reach = (struct nm_reach){ low, high, space_bytes(b, o->space) };
}

/*
 * Checks a tile and takes it over: steps in bytes, 0 for dims of one element. elems: elements of a
 * partition.
 */
static int take_tile(struct body *b, const struct isa_tile *t, unsigned int spaces,
		     struct nm_operand *o, uint32_t *elems, struct nm_reach *extent)
{
	uint64_t n = 1;
	int ret;

	o->space = t->space;
	o->dtype = t->dtype;
	o->part0 = t->part0;
	o->offset = t->offset;
	ret = check_place(b, o, t->nparts, spaces);
	if (ret)
		return ret;
	extent->low = t->offset;
	extent->high = (int64_t)t->offset + o->bytes;
	for (unsigned int i = 0; i < ISA_TILE_DIMS; i++) {
		int64_t step = (int64_t)(int32_t)t->step[i] * o->bytes;
		int64_t span;

		if (t->count[i] == 0 || t->count[i] > NM_TILE_ELEMS)
			return bad(b, t->count[i], NM_TILE_ELEMS);
		n *= t->count[i];
		if (n > NM_TILE_ELEMS)
			return bad(b, n, NM_TILE_ELEMS);
		/* Below 2^18 * 2^34: no overflow. */
		span = ((int64_t)t->count[i] - 1) * step;
		extent->low += span < 0 ? span : 0;
		extent->high += span > 0 ? span : 0;
		o->step[i] = t->count[i] > 1 ? (int32_t)step : 0;
	}
	if (extent->low < 0)
		return nm_decode_fault(b->d, EXI_FAULT_TILE_BOUNDS, (uint64_t)extent->low, 0);
	if (extent->high > space_bytes(b, o->space))
		return nm_decode_fault(b->d, EXI_FAULT_TILE_BOUNDS, (uint64_t)extent->high,
				       space_bytes(b, o->space));
	note_reach(b, o, extent->low, extent->high);
	*elems = (uint32_t)n;
	return 0;
}

/* The program may write o, which ends at byte high of its partitions. */
static void note_write(struct body *b, const struct nm_operand *o, int64_t high)
{
	struct nm_program *p = b->d->program;

	if (o->space == ISA_SPACE_SBUF && high > p->sbuf_end)
		p->sbuf_end = (uint32_t)high;
	if (o->space == ISA_SPACE_PSUM && high > p->psum_end)
		p->psum_end = (uint32_t)high;
}

/* As take_tile() for the operand that is written. */
static int take_dst(struct body *b, const struct isa_tile *t, unsigned int spaces,
		    struct nm_operand *o, uint32_t *elems, struct nm_reach *extent)
{
	int ret = take_tile(b, t, spaces, o, elems, extent);

	if (!ret)
		note_write(b, o, extent->high);
	return ret;
}

static int check_bank(struct body *b, const struct nm_reach *e)
{
	int64_t end = (e->low / ISA_PSUM_BANK_BYTES + 1) * ISA_PSUM_BANK_BYTES;

	if (e->high > end)
		return nm_decode_fault(b->d, EXI_FAULT_TILE_BOUNDS, (uint64_t)e->high,
				       (uint64_t)end);
	return 0;
}

static int same_shape(struct body *b, const struct isa_tile *t, const struct isa_tile *as)
{
	if (t->nparts != as->nparts)
		return bad(b, t->nparts, as->nparts);
	for (unsigned int i = 0; i < ISA_TILE_DIMS; i++)
		if (t->count[i] != as->count[i])
			return bad(b, t->count[i], as->count[i]);
	return 0;
}

/* Whether reading o while dst is written depends on the order of elements. */
static bool interferes(const struct nm_operand *dst, const struct nm_reach *de,
		       const struct nm_operand *o, const struct nm_reach *oe, unsigned int nparts)
{
	if (dst->space != o->space || dst->part0 >= o->part0 + nparts ||
	    o->part0 >= dst->part0 + nparts || de->low >= oe->high || oe->low >= de->high)
		return false;
	return dst->part0 != o->part0 || dst->offset != o->offset || dst->bytes != o->bytes ||
	       memcmp(dst->step, o->step, sizeof(o->step));
}

/* --- loop nests ----------------------------------------------------------------------- */

#define OPERANDS_MAX 3

/*
 * Appends dims from..to-1 of count to the nest, leaving out dims of one element and merging dims
 * that all operands (those with bytes != 0) walk as one. The operands' steps move along.
 */
static void append_dims(struct nm_nest *nest, const uint32_t *count, unsigned int from,
			unsigned int to, struct nm_operand *const *ops, unsigned int n_ops,
			const int32_t (*step)[ISA_TILE_DIMS])
{
	unsigned int first = nest->ndim;

	for (unsigned int i = from; i < to; i++) {
		unsigned int last = nest->ndim - 1u;
		bool merge = nest->ndim > first;

		if (count[i] == 1)
			continue;
		for (unsigned int k = 0; k < n_ops && merge; k++)
			merge = ops[k]->step[last] == (int64_t)step[k][i] * count[i];
		if (!merge)
			last = nest->ndim++;
		nest->count[last] = merge ? nest->count[last] * count[i] : count[i];
		for (unsigned int k = 0; k < n_ops; k++)
			ops[k]->step[last] = step[k][i];
	}
}

/* Nest of all four dims; outer: the first of them that stay apart from the others. */
static void build_nest(struct nm_nest *nest, const uint32_t *count, unsigned int outer,
		       struct nm_operand *const *ops, unsigned int n_ops, uint8_t *outer_dims)
{
	int32_t step[OPERANDS_MAX][ISA_TILE_DIMS];
	unsigned int inner;

	for (unsigned int k = 0; k < n_ops; k++) {
		memcpy(step[k], ops[k]->step, sizeof(step[k]));
		memset(ops[k]->step, 0, sizeof(ops[k]->step));
	}
	append_dims(nest, count, 0, outer, ops, n_ops, (const int32_t (*)[ISA_TILE_DIMS])step);
	inner = nest->ndim;
	append_dims(nest, count, outer, ISA_TILE_DIMS, ops, n_ops,
		    (const int32_t (*)[ISA_TILE_DIMS])step);
	if (nest->ndim == inner && inner < ISA_TILE_DIMS) {
		nest->count[nest->ndim++] = 1;
		for (unsigned int k = 0; k < n_ops; k++)
			ops[k]->step[inner] = ops[k]->bytes;
	}
	if (outer_dims)
		*outer_dims = (uint8_t)inner;
}

/* A column of n elements, one behind the other, in each partition of dst. */
static int take_column(struct body *b, const struct isa_column *col, unsigned int n,
		       struct nm_operand *o)
{
	uint64_t end;
	int ret;

	o->space = col->space;
	o->dtype = col->dtype;
	o->part0 = col->part0;
	o->offset = col->offset;
	ret = check_place(b, o, b->in->dst.nparts, SBUF | PSUM);
	if (ret)
		return ret;
	end = (uint64_t)col->offset + (uint64_t)n * o->bytes;
	if (end > space_bytes(b, col->space))
		return nm_decode_fault(b->d, EXI_FAULT_TILE_BOUNDS, end,
				       space_bytes(b, col->space));
	note_reach(b, o, col->offset, (int64_t)end);
	return 0;
}

static int take_scalar(struct body *b, uint64_t imm, const struct isa_column *col, bool vec,
		       struct nm_scalar *s)
{
	int ret;

	if (!vec) {
		s->imm = imm;
		ret = check_imm(b, imm);
		return ret ? ret : expect_zero(b, col, sizeof(*col));
	}
	return imm ? bad(b, imm, 0) : take_column(b, col, 1, &s->vec);
}

static int take_scalars(struct body *b, bool use0, bool use1)
{
	const struct isa_compute *in = b->in;
	unsigned int flags = b->inst->flags;
	int ret;

	ret = use0 ? take_scalar(b, in->imm0, &in->vec0, flags & ISA_F_VEC0, &b->c->s0) :
	      expect_zero(b, &in->imm0, sizeof(in->imm0)) ?:
		     expect_zero(b, &in->vec0, sizeof(in->vec0));
	if (ret)
		return ret;
	return use1 ? take_scalar(b, in->imm1, &in->vec1, flags & ISA_F_VEC1, &b->c->s1) :
	       expect_zero(b, &in->imm1, sizeof(in->imm1)) ?:
		      expect_zero(b, &in->vec1, sizeof(in->vec1));
}

/*
 * dst and the sources that are used, all of dst's shape (sources: of its partitions too), merged
 * into one nest.
 */
static int take_elementwise(struct body *b, bool use0, bool use1)
{
	struct nm_compute *c = b->c;
	struct nm_operand *ops[OPERANDS_MAX] = { &c->dst };
	struct nm_reach dst, src;
	unsigned int n_ops = 1;
	uint32_t n;
	int ret = take_dst(b, &b->in->dst, SBUF | PSUM, &c->dst, &c->n, &dst);

	for (unsigned int k = 0; k < 2 && !ret; k++) {
		const struct isa_tile *t = k ? &b->in->src1 : &b->in->src0;
		struct nm_operand *o = k ? &c->src1 : &c->src0;

		if (!(k ? use1 : use0)) {
			ret = expect_zero(b, t, sizeof(*t));
			continue;
		}
		ret = take_tile(b, t, SBUF | PSUM, o, &n, &src);
		if (!ret)
			ret = same_shape(b, t, &b->in->dst);
		if (!ret && interferes(&c->dst, &dst, o, &src, t->nparts))
			c->buffered = true;
		ops[n_ops++] = o;
	}
	if (ret)
		return ret;
	c->nparts = b->in->dst.nparts;
	build_nest(&c->nest, b->in->dst.count, 0, ops, n_ops, NULL);
	return 0;
}

/* --- opcodes --------------------------------------------------------------------------- */

static int no_axes(struct body *b)
{
	return b->in->n_axes ? bad(b, b->in->n_axes, 0) : 0;
}

static int no_ops(struct body *b, bool op0, bool op1)
{
	if (!op0 && b->in->op0)
		return bad(b, b->in->op0, 0);
	if (!op1 && b->in->op1)
		return bad(b, b->in->op1, 0);
	return no_axes(b);
}

/* With CT_BITS, elements keep their size. */
static int same_size(struct body *b, const struct nm_operand *o)
{
	if (b->in->compute_type == ISA_CT_BITS && o->bytes != b->c->dst.bytes)
		return bad(b, o->dtype, b->c->dst.dtype);
	return 0;
}

static int decode_memset(struct body *b)
{
	return no_ops(b, false, false)			 ?:
		       take_elementwise(b, false, false) ?:
							   take_scalars(b, true, false);
}

static int decode_copy(struct body *b)
{
	return no_ops(b, false, false)			?:
		       take_elementwise(b, true, false) ?:
		       same_size(b, &b->c->src0)	?:
							  take_scalars(b, false, false);
}

static int decode_tensor_tensor(struct body *b)
{
	return no_ops(b, true, false)		       ?:
		       check_alu(b, b->in->op0)	       ?:
		       take_elementwise(b, true, true) ?:
							 take_scalars(b, false, false);
}

static int decode_tensor_scalar(struct body *b)
{
	return no_axes(b)				?:
		       check_alu(b, b->in->op0)		?:
		       check_alu(b, b->in->op1)		?:
		       take_elementwise(b, true, false) ?:
							  take_scalars(b, true, true);
}

static int decode_scalar_tensor_tensor(struct body *b)
{
	return no_axes(b)			       ?:
		       check_alu(b, b->in->op0)	       ?:
		       check_alu(b, b->in->op1)	       ?:
		       take_elementwise(b, true, true) ?:
							 take_scalars(b, true, false);
}

static int decode_activation(struct body *b)
{
	struct nm_compute *c = b->c;
	struct nm_reach extent;
	uint32_t n;
	int ret;

	if (b->in->op0 >= ISA_ACTS)
		return bad(b, b->in->op0, ISA_ACTS);
	ret = no_ops(b, true, false);
	if (!ret && b->inst->flags & ISA_F_ACCUM) {
		const struct isa_tile *t = &b->in->src1;
		struct isa_compute rest = *b->in;
		struct body without = *b;

		memset(&rest.src1, 0, sizeof(rest.src1));
		without.in = &rest;
		ret = take_elementwise(&without, true, false);
		if (!ret)
			ret = take_dst(b, t, SBUF | PSUM, &c->src1, &n, &extent);
		if (!ret && n != 1)
			return bad(b, n, 1);
		if (!ret && t->dtype != ISA_FP32)
			return bad(b, t->dtype, ISA_FP32);
		if (!ret && t->nparts != c->nparts)
			return bad(b, t->nparts, c->nparts);
	} else if (!ret) {
		ret = take_elementwise(b, true, false);
	}
	return ret ?: take_scalars(b, true, true);
}

static int decode_copy_predicated(struct body *b)
{
	bool imm = b->inst->flags & ISA_F_IMM;

	return no_ops(b, false, false)			     ?:
		       take_elementwise(b, true, !imm)	     ?:
		       (imm ? 0 : same_size(b, &b->c->src1)) ?:
							       take_scalars(b, imm, false);
}

static int decode_reduce(struct body *b)
{
	const struct isa_compute *in = b->in;
	struct nm_compute *c = b->c;
	struct nm_operand *ops[] = { &c->src0, &c->dst };
	struct nm_reach dst, src;
	unsigned int outer;
	uint32_t n;
	int ret;

	if (in->n_axes < 1 || in->n_axes > ISA_TILE_DIMS)
		return bad(b, in->n_axes, ISA_TILE_DIMS);
	if (in->op1)
		return bad(b, in->op1, 0);
	ret = check_reduce_op(b)						  ?:
		      check_negation(b)						  ?:
		      take_dst(b, &in->dst, SBUF | PSUM, &c->dst, &n, &dst)	  ?:
		      take_tile(b, &in->src0, SBUF | PSUM, &c->src0, &c->n, &src) ?:
		      expect_zero(b, &in->src1, sizeof(in->src1))		  ?:
		      take_scalars(b, false, false);
	if (ret)
		return ret;
	if (in->dst.nparts != in->src0.nparts)
		return bad(b, in->dst.nparts, in->src0.nparts);
	outer = ISA_TILE_DIMS - in->n_axes;
	for (unsigned int i = 0; i < ISA_TILE_DIMS; i++) {
		uint32_t want = i < outer ? in->src0.count[i] : 1;

		if (in->dst.count[i] != want)
			return bad(b, in->dst.count[i], want);
	}
	c->nparts = in->dst.nparts;
	build_nest(&c->nest, in->src0.count, outer, ops, 2, &c->outer);
	return 0;
}

static int decode_partition_reduce(struct body *b)
{
	const struct isa_compute *in = b->in;
	struct nm_compute *c = b->c;
	struct nm_operand *ops[] = { &c->src0, &c->dst };
	struct nm_reach dst, src;
	uint32_t n;
	int ret;

	ret = no_ops(b, true, false)						  ?:
		      check_reduce_op(b)					  ?:
		      take_dst(b, &in->dst, SBUF | PSUM, &c->dst, &n, &dst)	  ?:
		      take_tile(b, &in->src0, SBUF | PSUM, &c->src0, &c->n, &src) ?:
		      expect_zero(b, &in->src1, sizeof(in->src1))		  ?:
		      take_scalars(b, false, false);
	if (ret)
		return ret;
	if (in->dst.nparts != 1)
		return bad(b, in->dst.nparts, 1);
	for (unsigned int i = 0; i < ISA_TILE_DIMS; i++)
		if (in->dst.count[i] != in->src0.count[i])
			return bad(b, in->dst.count[i], in->src0.count[i]);
	c->nparts = in->src0.nparts;
	c->buffered = interferes(&c->dst, &dst, &c->src0, &src, c->nparts);
	build_nest(&c->nest, in->src0.count, 0, ops, 2, NULL);
	return 0;
}

static int decode_iota(struct body *b)
{
	const struct isa_tile *t = &b->in->src0;
	struct nm_compute *c = b->c;
	struct nm_operand *ops[] = { &c->dst, &c->src0 };
	struct nm_reach dst;
	int ret;

	if (t->space || t->dtype || t->part0 || t->nparts || t->offset)
		return bad(b, t->offset, 0);
	ret = no_ops(b, false, false)						  ?:
		      expect_zero(b, t->count, sizeof(t->count))		  ?:
		      expect_zero(b, &b->in->src1, sizeof(b->in->src1))		  ?:
		      take_dst(b, &b->in->dst, SBUF | PSUM, &c->dst, &c->n, &dst) ?:
		      check_imm(b, b->in->imm0)					  ?:
		      check_imm(b, b->in->imm1)					  ?:
		      expect_zero(b, &b->in->vec0, 2 * sizeof(b->in->vec0));
	if (ret)
		return ret;
	c->nparts = b->in->dst.nparts;
	c->s0.imm = b->in->imm0;
	c->s1.imm = b->in->imm1;
	/* Only the steps of src0 mean something: what an index adds to the value. */
	for (unsigned int i = 0; i < ISA_TILE_DIMS; i++)
		c->src0.step[i] = (int32_t)t->step[i];
	build_nest(&c->nest, b->in->dst.count, 0, ops, 2, NULL);
	return 0;
}

/* --- instructions that only some engines have -------------------------------------------- */

#include "decode_mx.h"
#include "decode_tensor.h"
#include "decode_shift.h"
#include "decode_vector.h"
#include "decode_gpsimd.h"
#include "decode_random.h"
#include "decode_gather.h"

static const struct rule rules[] = {
	[ISA_MEMSET] = { V | S | G, 0, CT_COPY, decode_memset },
	[ISA_COPY] = { V | S | G, 0, CT_COPY, decode_copy },
	[ISA_TENSOR_TENSOR] = { V | G, 0, CT_ALU, decode_tensor_tensor },
	[ISA_TENSOR_SCALAR] = { V | S | G, ISA_F_REV0 | ISA_F_REV1 | ISA_F_VEC0 | ISA_F_VEC1,
				CT_ALU, decode_tensor_scalar },
	[ISA_SCALAR_TENSOR_TENSOR] = { V | G, ISA_F_REV0 | ISA_F_REV1 | ISA_F_VEC0, CT_ALU,
				       decode_scalar_tensor_tensor },
	[ISA_REDUCE] = { V | G, ISA_F_NEGATE, CT_ALU, decode_reduce },
	[ISA_ACTIVATION] = { S, ISA_F_ACCUM | ISA_F_VEC0 | ISA_F_VEC1, CT(ISA_CT_F32),
			     decode_activation },
	[ISA_COPY_PREDICATED] = { V | G, ISA_F_IMM, CT_COPY, decode_copy_predicated },
	[ISA_IOTA] = { G, 0, CT_ALU, decode_iota },
	[ISA_PARTITION_REDUCE] = { G, 0, CT_ALU, decode_partition_reduce },
	[ISA_LOAD_STATIONARY] = { T, 0, CT(ISA_CT_F32), decode_load_stationary },
	[ISA_MATMUL] = { T, ISA_F_ACCUM, CT(ISA_CT_F32), decode_matmul },
	[ISA_TRANSPOSE] = { T | V, 0, CT(ISA_CT_BITS), decode_transpose },
	[ISA_MAX8] = { V, 0, CT(ISA_CT_F32), decode_max8 },
	[ISA_FIND_INDEX8] = { V, 0, CT(ISA_CT_F32), decode_find_index8 },
	[ISA_MATCH_REPLACE8] = { V, ISA_F_VEC1, CT(ISA_CT_F32), decode_match_replace8 },
	[ISA_TENSOR_TENSOR_SCAN] = { V, ISA_F_REV0 | ISA_F_REV1 | ISA_F_VEC0, CT(ISA_CT_F32),
				     decode_scan },
	[ISA_TENSOR_SCALAR_CUMULATIVE] = { V, ISA_F_ACCUM | ISA_F_REV0 | ISA_F_VEC0 | ISA_F_VEC1,
					   CT(ISA_CT_F32), decode_cumulative },
	[ISA_BN_STATS] = { V, 0, CT(ISA_CT_F32), decode_bn_stats },
	[ISA_BN_AGGR] = { V, 0, CT(ISA_CT_F32), decode_bn_aggr },
	[ISA_STREAM_SHUFFLE] = { V, 0, CT(ISA_CT_BITS), decode_shuffle },
	[ISA_SELECT_REDUCE] = { V, ISA_F_ACCUM | ISA_F_REV0 | ISA_F_VEC0 | ISA_F_VEC1,
				CT(ISA_CT_F32), decode_select_reduce },
	[ISA_TENSOR_SCALAR_REDUCE] = { V,
				       ISA_F_ACCUM | ISA_F_REV0 | ISA_F_VEC0 | ISA_F_VEC1 |
					       ISA_F_NEGATE,
				       CT(ISA_CT_F32), decode_scalar_reduce },
	[ISA_EXPONENTIAL] = { V, ISA_F_ACCUM | ISA_F_VEC0 | ISA_F_VEC1, CT(ISA_CT_F32),
			      decode_exponential },
	[ISA_RANGE_SELECT] = { V, ISA_F_ACCUM, CT(ISA_CT_F32), decode_range_select },
	[ISA_AFFINE_SELECT] = { G, 0, CT(ISA_CT_F32), decode_affine_select },
	[ISA_SET_RNG_SEED] = { V | S | G, 0, CT(ISA_CT_BITS), decode_set_seed },
	[ISA_RAND_SET_STATE] = { V | S | G, 0, CT(ISA_CT_BITS), decode_set_state },
	[ISA_RAND_GET_STATE] = { V | S | G, 0, CT(ISA_CT_BITS), decode_get_state },
	[ISA_RNG] = { V | G, 0, CT(ISA_CT_I32), decode_rng },
	[ISA_RAND2] = { V, ISA_F_VEC0 | ISA_F_VEC1, CT(ISA_CT_F32), decode_rand2 },
	[ISA_DROPOUT] = { V, ISA_F_VEC0, CT(ISA_CT_F32), decode_dropout },
	[ISA_N_GATHER] = { G, 0, CT(ISA_CT_BITS), decode_n_gather },
	[ISA_LOCAL_GATHER] = { G, 0, CT(ISA_CT_BITS), decode_local_gather },
	[ISA_NONZERO_WITH_COUNT] = { G, 0, CT(ISA_CT_I32), decode_nonzero },
	[ISA_QUANTIZE_MX] = { V, 0, CT(ISA_CT_F32), decode_quantize_mx },
	[ISA_SEQUENCE_BOUNDS] = { G, 0, CT(ISA_CT_F32) | CT(ISA_CT_I32), decode_sequence_bounds },
};

static unsigned int engine_cts(unsigned int engine)
{
	switch (engine) {
	case ISA_GPSIMD:
		return CT_COPY;
	case ISA_VECTOR:
		return CT(ISA_CT_F32) | CT(ISA_CT_I32) | CT(ISA_CT_BITS);
	default:
		return CT(ISA_CT_F32) | CT(ISA_CT_BITS);
	}
}

/* Engines that do not have an instruction yet, as its page, nki.isa.*, says. */
static unsigned int not_yet(uint32_t arch, unsigned int opcode)
{
	const unsigned int all = V | S | G | T;

	switch (opcode) {
	case ISA_QUANTIZE_MX:
	case ISA_RAND2:
	case ISA_EXPONENTIAL:
		return arch < NEURON_ARCH_V4 ? all : 0;
	case ISA_RANGE_SELECT:
	case ISA_NONZERO_WITH_COUNT:
		return arch < NEURON_ARCH_V3 ? all : 0;
	case ISA_RNG:
		return arch < NEURON_ARCH_V3 ? G : 0;
	case ISA_RAND_SET_STATE:
	case ISA_RAND_GET_STATE:
		return (arch < NEURON_ARCH_V3 ? G : 0) | (arch < NEURON_ARCH_V4 ? V : 0);
	default:
		return 0;
	}
}

/* Instructions that do the same in each partition, with nothing but what lies there. */
static bool is_parallel(unsigned int opcode)
{
	switch (opcode) {
	case ISA_MEMSET:
	case ISA_COPY:
	case ISA_TENSOR_TENSOR:
	case ISA_TENSOR_SCALAR:
	case ISA_SCALAR_TENSOR_TENSOR:
	case ISA_REDUCE:
	case ISA_ACTIVATION:
	case ISA_COPY_PREDICATED:
	case ISA_MAX8:
	case ISA_FIND_INDEX8:
	case ISA_MATCH_REPLACE8:
	case ISA_TENSOR_TENSOR_SCAN:
	case ISA_TENSOR_SCALAR_CUMULATIVE:
	case ISA_AFFINE_SELECT:
	case ISA_RNG:
	case ISA_RAND2:
	case ISA_DROPOUT:
	case ISA_N_GATHER:
		return true;
	default:
		return false;
	}
}

/* Whether no partition of an operand is another one of another operand. */
static bool is_apart(const struct nm_compute *c)
{
	const struct nm_operand *ops[] = { &c->dst, &c->src0, &c->src1, &c->s0.vec, &c->s1.vec };
	const unsigned int n = sizeof(ops) / sizeof(ops[0]);

	for (unsigned int i = 0; i < n; i++)
		for (unsigned int k = 0; k < i; k++) {
			int distance = ops[i]->part0 - ops[k]->part0;

			if (ops[i]->bytes && ops[k]->bytes && ops[i]->space == ops[k]->space &&
			    distance != 0 && abs(distance) < c->nparts)
				return false;
		}
	return true;
}

int nm_decode_compute(struct nm_decoder *d, const struct isa_inst *in, struct nm_inst *out,
		      struct nm_compute *c)
{
	const struct rule *rule = &rules[in->opcode];
	struct body b = { .d = d, .in = &in->compute, .inst = in, .out = out, .c = c };
	uint32_t hidden;
	unsigned int cts;
	int ret;

	if (!(rule->engines & ~not_yet(d->arch, in->opcode) & ENGINE(d->engine)))
		return nm_decode_fault(d, EXI_FAULT_BAD_OPCODE, in->opcode, d->engine);
	if (in->flags & ~(rule->flags | ISA_F_NOTIFY))
		return bad(&b, in->flags, rule->flags | ISA_F_NOTIFY);
	cts = rule->cts & engine_cts(d->engine);
	if (in->compute.compute_type > ISA_CT_BITS || !(cts & CT(in->compute.compute_type)))
		return bad(&b, in->compute.compute_type, cts);
	c->op0 = in->compute.op0;
	c->op1 = in->compute.op1;
	c->ct = in->compute.compute_type;
	c->flags = in->flags;
	d->n_reaches = 0;
	ret = rule->decode(&b) ?: take_rounding(&b);
	if (ret)
		return ret;
	out->shifted = nm_is_shifted(in);
	if (out->shifted)
		ret = take_shifts(&b, (struct nm_shifts *)(c + 1));
	if (ret)
		return ret;
	c->apart = is_parallel(in->opcode) && is_apart(c);
	hidden = d->engine == ISA_TENSOR ? hidden_cycles(&b) : 0;
	nm_time_compute(d->timing, out, c, d->engine, hidden);
	if (out->shifted)
		hold_all_banks(out);
	return 0;
}
