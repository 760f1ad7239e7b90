// SPDX-License-Identifier: Apache-2.0
/* Which bytes an instruction touches, as rows. */
#include <string.h>

#include "check_priv.h"
#include "exec.h"

static void add_dim(struct nm_span *s, uint64_t count, int64_t step)
{
	unsigned int i;

	if (count <= 1 || step == 0)
		return;
	if (step < 0) {
		s->at += step * (int64_t)(count - 1);
		step = -step;
	}
	for (i = s->ndim++; i > 0 && s->step[i - 1] > step; i--) {
		s->step[i] = s->step[i - 1];
		s->count[i] = s->count[i - 1];
	}
	s->step[i] = step;
	s->count[i] = count;
}

/* Makes one row of those that touch. */
static void fold(struct nm_span *s)
{
	unsigned int n = 0;

	while (n < s->ndim && (uint64_t)s->step[n] <= s->run) {
		s->run += (uint64_t)s->step[n] * (s->count[n] - 1);
		n++;
	}
	s->ndim -= n;
	memmove(s->step, s->step + n, s->ndim * sizeof(s->step[0]));
	memmove(s->count, s->count + n, s->ndim * sizeof(s->count[0]));
}

/* Partitions first, first + 1 and so on of an operand: many in each of groups, ISA_PART_QUANTUM apart. */
static void add_partitions(struct nm_span *s, const struct nm_operand *o, unsigned int first,
			   unsigned int many, unsigned int groups, const struct nm_nest *nest,
			   bool write)
{
	memset(s, 0, sizeof(*s));
	s->mem = o->space;
	s->slot = NM_SLOT_NONE;
	s->write = write;
	s->run = o->bytes;
	s->at = (int64_t)(o->part0 + first) * nm_pitch(o->space) + o->offset;
	add_dim(s, many, nm_pitch(o->space));
	add_dim(s, groups, ISA_PART_QUANTUM * nm_pitch(o->space));
	for (unsigned int i = 0; nest && i < nest->ndim; i++)
		add_dim(s, nest->count[i], o->step[i]);
	fold(s);
}

static void add_operand(struct nm_span *s, const struct nm_operand *o, unsigned int nparts,
			const struct nm_nest *nest, bool write)
{
	add_partitions(s, o, 0, nparts, 1, nest, write);
}

/* Partitions of each group that are bits of mask. */
static unsigned int add_masked(struct nm_span *s, const struct nm_compute *c,
			       const struct nm_operand *o, uint32_t mask, bool write)
{
	unsigned int groups = (c->nparts + ISA_PART_QUANTUM - 1u) / ISA_PART_QUANTUM, n = 0;

	for (unsigned int first = 0, end; first < ISA_PART_QUANTUM; first = end) {
		bool in = mask >> first & 1;

		for (end = first + 1; end < ISA_PART_QUANTUM && (mask >> end & 1) == in; end++)
			;
		if (in)
			add_partitions(&s[n++], o, first, end - first, groups, &c->nest, write);
	}
	return n;
}

static unsigned int shuffle_spans(const struct nm_compute *c, struct nm_span *s)
{
	uint32_t read = 0, written = 0;
	unsigned int n;

	for (unsigned int i = 0; i < ISA_PART_QUANTUM; i++)
		if (c->shuffle[i] != ISA_SHUFFLE_KEEP) {
			read |= 1u << c->shuffle[i];
			written |= 1u << i;
		}
	n = add_masked(s, c, &c->src0, read, false);
	return n + add_masked(s + n, c, &c->dst, written, true);
}

/* Every ISA_GPSIMD_PARTS-th partition. */
static unsigned int nonzero_spans(const struct nm_compute *c, struct nm_span *s)
{
	unsigned int n = 0;

	for (unsigned int write = 0; write < 2; write++)
		for (unsigned int p = 0; p < ISA_PART_QUANTUM && p < c->nparts;
		     p += ISA_GPSIMD_PARTS)
			add_partitions(&s[n++], write ? &c->dst : &c->src0, p, 1,
				       (c->nparts - p + ISA_PART_QUANTUM - 1) / ISA_PART_QUANTUM,
				       write ? &c->dst_nest : &c->nest, write);
	return n;
}

/* Indices that MATCH_REPLACE8 writes, one behind the other. */
static void add_indices(struct nm_span *s, const struct nm_compute *c)
{
	add_operand(s, &c->s1.vec, c->nparts, NULL, true);
	s->run *= ISA_TOP;
}

/* Scales, one behind the other, in 4 partitions of each 32. */
static void add_scales(struct nm_span *s, const struct nm_compute *c, bool write)
{
	add_partitions(s, &c->scale, 0, ISA_PART_QUANTUM / ISA_MX_PARTS,
		       c->nparts / ISA_PART_QUANTUM, NULL, write);
	s->run *= c->columns;
}

static bool uses_all_indices(const struct nm_compute *c)
{
	return nm_elems(&c->dst_nest) / c->s0.imm == nm_elems(&c->src1_nest) * ISA_GPSIMD_PARTS;
}

static const struct nm_nest *src1_nest_of(const struct nm_inst *inst)
{
	const struct nm_compute *c = inst->compute;

	switch (inst->opcode) {
	case ISA_MATCH_REPLACE8:
	case ISA_FIND_INDEX8:
	case ISA_N_GATHER:
		return &c->dst_nest;
	case ISA_LOCAL_GATHER:
		return &c->src1_nest;
	default:
		return &c->nest;
	}
}

static unsigned int compute_spans(const struct nm_inst *inst, struct nm_span *s)
{
	const struct nm_compute *c = inst->compute;
	bool adds = c->flags & ISA_F_ACCUM;
	bool sums = inst->opcode == ISA_ACTIVATION && adds;
	bool keeps = inst->opcode == ISA_COPY_PREDICATED || (inst->opcode == ISA_MATMUL && adds);
	bool match = inst->opcode == ISA_MATCH_REPLACE8;
	bool local = inst->opcode == ISA_LOCAL_GATHER,
	     gathers = local || inst->opcode == ISA_N_GATHER;
	const struct nm_nest *dst_nest = c->dst_nest.ndim && !match ? &c->dst_nest : &c->nest;
	const struct nm_nest *src1_nest = src1_nest_of(inst);
	unsigned int dst_parts = c->nparts, n = 0;

	/* With another stationary operand it does not run. */
	if (inst->opcode == ISA_MATMUL)
		dst_parts = c->load_m;
	else if (inst->opcode == ISA_TRANSPOSE)
		dst_parts = c->n;
	else if (inst->opcode == ISA_PARTITION_REDUCE)
		dst_parts = 1;

	if (c->src0.bytes) {
		add_operand(&s[n], &c->src0, c->nparts, &c->nest, false);
		s[n++].may = gathers;
	}
	if (c->src1.bytes && !sums) {
		add_operand(&s[n], &c->src1, c->nparts, src1_nest, false);
		s[n++].may = local && !uses_all_indices(c);
	}
	if (c->s0.vec.bytes)
		add_operand(&s[n++], &c->s0.vec, c->nparts, NULL, false);
	if (c->s1.vec.bytes && !match)
		add_operand(&s[n++], &c->s1.vec, c->nparts, NULL, false);
	if (c->scale.bytes)
		add_scales(&s[n++], c, inst->opcode == ISA_QUANTIZE_MX);
	if (c->row.bytes && adds)
		add_operand(&s[n++], &c->row, c->nparts, NULL, false);
	if (keeps)
		add_operand(&s[n++], &c->dst, dst_parts, dst_nest, false);
	if (c->dst.bytes)
		add_operand(&s[n++], &c->dst, dst_parts, dst_nest, true);
	if (sums)
		add_operand(&s[n++], &c->src1, c->nparts, NULL, true);
	if (c->row.bytes)
		add_operand(&s[n++], &c->row, c->nparts, NULL, true);
	if (c->s1.vec.bytes && match)
		add_indices(&s[n++], c);
	return n;
}

/* Number of spans: 0 for what nothing writes. */
static unsigned int add_side(const struct nm_replay *r, struct nm_span *s,
			     const struct nm_side *side, unsigned int elem_bytes, bool write)
{
	memset(s, 0, sizeof(*s));
	s->mem = side->space;
	s->slot = NM_SLOT_NONE;
	s->write = write;
	s->run = elem_bytes;
	s->at = side->offset;
	if (side->space == ISA_SPACE_SLOT) {
		if (side->slot == ISA_SLOT_CONST ||
		    r->program->slot[side->slot].rights & EXI_SLOT_INLINE)
			return 0;
		s->slot = side->slot;
		s->mem = r->verdict->place[side->slot].mem;
		s->at += (int64_t)r->verdict->place[side->slot].offset;
	}
	for (unsigned int i = 0; i < side->ndim; i++)
		add_dim(s, side->count[i], side->step[i]);
	fold(s);
	return 1;
}

static void add_index(struct nm_span *s, const struct nm_index *ix)
{
	memset(s, 0, sizeof(*s));
	s->mem = ISA_SPACE_SBUF;
	s->slot = NM_SLOT_NONE;
	s->run = sizeof(uint32_t);
	s->at = ix->offset;
	for (unsigned int i = 0; i < 2; i++)
		add_dim(s, ix->count[i], ix->step[i]);
	fold(s);
}

/* Of rows by index those that there are: which ones is not known before it runs. */
static unsigned int dma_spans(const struct nm_replay *r, const struct nm_dma *dma,
			      struct nm_span *s)
{
	unsigned int n = 0, added;

	if (dma->index)
		add_index(&s[n++], dma->index);
	added = add_side(r, s + n, &dma->src, dma->elem_bytes, false);
	s[n].may = added && dma->index && !dma->index->scatter;
	n += added;
	if (dma->sum) {
		added = add_side(r, s + n, &dma->dst, dma->elem_bytes, false);
		s[n].may = added && dma->index && dma->index->scatter;
		n += added;
	}
	return n + add_side(r, s + n, &dma->dst, dma->elem_bytes, true);
}

/* The element of REG_STORE; the replay does not go beyond a REG_LOAD. */
static unsigned int reg_spans(const struct nm_replay *r, const struct nm_inst *inst,
			      struct nm_span *s)
{
	if (inst->opcode != ISA_REG_LOAD && inst->opcode != ISA_REG_STORE)
		return 0;
	return add_side(r, s, &inst->reg->place, inst->reg->bytes, inst->opcode == ISA_REG_STORE);
}

unsigned int nm_spans(const struct nm_replay *r, const struct nm_inst *inst,
		      struct nm_span span[NM_SPANS_MAX])
{
	if (inst->opcode == ISA_HALT || inst->opcode == ISA_NOP)
		return 0;
	if (isa_is_reg(inst->opcode))
		return reg_spans(r, inst, span);
	if (isa_is_dma(inst->opcode))
		return dma_spans(r, inst->dma, span);
	if (inst->opcode == ISA_STREAM_SHUFFLE)
		return shuffle_spans(inst->compute, span);
	if (inst->opcode == ISA_NONZERO_WITH_COUNT)
		return nonzero_spans(inst->compute, span);
	return compute_spans(inst, span);
}
