// SPDX-License-Identifier: Apache-2.0
/* DMA instructions: extents against slots and memories, and dims that the copy loops like. */
#include <stdlib.h>
#include <string.h>

#include "decode.h"
#include "timing.h"

static int bad(struct nm_decoder *d, uint64_t value, uint64_t limit)
{
	return nm_decode_fault(d, EXI_FAULT_BAD_OPERAND, value, limit);
}

static int slot_fault(struct nm_decoder *d, uint16_t status, unsigned int slot, uint64_t value,
		      uint64_t limit)
{
	int ret = nm_decode_fault(d, status, value, limit);

	d->fault->slot = (uint16_t)slot;
	return ret;
}

/* What a side touches saturates. */

#define FAR (INT64_MAX / 2) /* no memory is that large */

static int64_t add_clamped(int64_t a, int64_t b)
{
	int64_t sum;

	if (__builtin_add_overflow(a, b, &sum))
		sum = b < 0 ? -FAR : FAR;
	return sum < -FAR ? -FAR : sum > FAR ? FAR : sum;
}

/* Dims in use, their extent and number of elements. */
static int take_dims(struct nm_decoder *d, const struct isa_dma_side *in, unsigned int elem_bytes,
		     struct nm_side *side, struct nm_reach *extent, uint64_t *n)
{
	if (in->ndim > ISA_DMA_DIMS)
		return bad(d, in->ndim, ISA_DMA_DIMS);
	extent->low = in->offset > (uint64_t)FAR ? FAR : (int64_t)in->offset;
	extent->high = add_clamped(extent->low, elem_bytes);
	for (unsigned int i = 0; i < ISA_DMA_DIMS; i++) {
		int64_t step = (int64_t)in->step[i];
		int64_t span;

		if (i >= in->ndim) {
			if (in->count[i] || in->step[i])
				return bad(d, in->count[i], 0);
			continue;
		}
		if (in->count[i] == 0)
			return bad(d, 0, 1);
		if (__builtin_mul_overflow(*n, (uint64_t)in->count[i], n) || *n > NM_DMA_ELEMS)
			return bad(d, *n, NM_DMA_ELEMS);
		if (in->count[i] == 1)
			continue;
		if (__builtin_mul_overflow((int64_t)in->count[i] - 1, step, &span))
			span = step < 0 ? -FAR : FAR;
		extent->low = add_clamped(extent->low, span < 0 ? span : 0);
		extent->high = add_clamped(extent->high, span > 0 ? span : 0);
		side->count[side->ndim] = in->count[i];
		side->step[side->ndim++] = step;
	}
	return 0;
}

static int check_slot(struct nm_decoder *d, const struct isa_dma_side *in, bool is_dst,
		      struct nm_reach *e)
{
	const struct nm_program *p = d->program;
	uint32_t right = is_dst ? d->dst_rights : EXI_SLOT_READ;
	uint32_t rights = EXI_SLOT_READ;
	uint64_t size = p->const_bytes;

	if (in->part0 || in->nparts || in->part_step)
		return bad(d, in->nparts, 0);
	if (in->slot != ISA_SLOT_CONST) {
		if (in->slot >= p->n_slots)
			return slot_fault(d, EXI_FAULT_SLOT_INDEX, in->slot, in->slot, p->n_slots);
		rights = p->slot[in->slot].rights;
		size = p->slot[in->slot].min_bytes;
	}
	if ((rights & right) != right)
		return slot_fault(d, EXI_FAULT_SLOT_RIGHTS, in->slot, right, rights);
	if (e->low < 0)
		return slot_fault(d, EXI_FAULT_SLOT_BOUNDS, in->slot, (uint64_t)e->low, size);
	if (e->high >= FAR || (uint64_t)e->high > size)
		return slot_fault(d, EXI_FAULT_SLOT_BOUNDS, in->slot, (uint64_t)e->high, size);
	e->limit = size;
	return 0;
}

static int check_chip(struct nm_decoder *d, const struct isa_dma_side *in, bool is_dst,
		      struct nm_reach *e)
{
	bool sbuf = in->space == ISA_SPACE_SBUF;
	uint32_t size = sbuf ? d->sbuf_bytes : NM_PSUM_BYTES;
	uint32_t *end = sbuf ? &d->program->sbuf_end : &d->program->psum_end;

	if (in->slot)
		return bad(d, in->slot, 0);
	if (in->nparts < 1 || in->nparts > ISA_PARTITIONS)
		return bad(d, in->nparts, ISA_PARTITIONS);
	if (in->part_step > 1 || (is_dst && in->part_step == 0 && in->nparts > 1))
		return bad(d, in->part_step, 1);
	if (in->part0 + (in->nparts - 1) * in->part_step >= ISA_PARTITIONS)
		return nm_decode_fault(d, EXI_FAULT_TILE_BOUNDS,
				       in->part0 + (uint64_t)(in->nparts - 1) * in->part_step,
				       ISA_PARTITIONS);
	if (e->low < 0)
		return nm_decode_fault(d, EXI_FAULT_TILE_BOUNDS, (uint64_t)e->low, 0);
	if (e->high > size)
		return nm_decode_fault(d, EXI_FAULT_TILE_BOUNDS, (uint64_t)e->high, size);
	e->limit = size;
	if (is_dst && in->shift)
		*end = size;
	else if (is_dst && e->high > *end)
		*end = (uint32_t)e->high;
	return 0;
}

static int take_side(struct nm_decoder *d, const struct isa_dma_side *in, bool is_dst,
		     unsigned int elem_bytes, struct nm_side *side, uint64_t *n)
{
	int64_t pitch = in->space == ISA_SPACE_SBUF ? NM_SBUF_PITCH : NM_PSUM_PITCH;
	struct nm_reach *reach = &side->reach;
	int ret;

	if (in->space > ISA_SPACE_SLOT)
		return bad(d, in->space, ISA_SPACE_SLOT);
	if (in->pad1[0] || in->pad1[1] || in->pad1[2] || (in->dtype && !is_dst))
		return bad(d, in->pad1[0] | in->pad1[1] | in->pad1[2] | in->dtype, 0);
	if (in->shift >= ISA_REGISTERS)
		return bad(d, in->shift, ISA_REGISTERS);
	side->space = in->space;
	side->slot = in->slot;
	side->shift = in->shift;
	*n = 1;
	if (in->space != ISA_SPACE_SLOT) {
		*n = in->nparts;
		if (in->nparts > 1) {
			side->count[0] = in->nparts;
			side->step[0] = pitch * in->part_step;
			side->ndim = 1;
		}
	}
	ret = take_dims(d, in, elem_bytes, side, reach, n);
	if (ret)
		return ret;
	if (in->space == ISA_SPACE_SLOT)
		ret = check_slot(d, in, is_dst, reach);
	else
		ret = check_chip(d, in, is_dst, reach);
	if (ret)
		return ret;
	side->offset = (int64_t)in->offset;
	if (in->space != ISA_SPACE_SLOT)
		side->offset += pitch * in->part0;
	return 0;
}

/* --- dims ---------------------------------------------------------------------------- */

/* Makes one dim of adjacent ones that every side walks as one. */
static unsigned int merge_dims(struct nm_side *const *sides, unsigned int n_sides,
			       unsigned int ndim)
{
	unsigned int out = 0;

	for (unsigned int i = 0; i < ndim; i++) {
		uint32_t count = sides[0]->count[i], product = 0;
		bool merge = out > 0 &&
			     !__builtin_mul_overflow(sides[0]->count[out - 1], count, &product);

		for (unsigned int k = 0; k < n_sides && merge; k++) {
			int64_t whole;

			merge = !__builtin_mul_overflow(sides[k]->step[i], (int64_t)count,
							&whole) &&
				sides[k]->step[out - 1] == whole;
		}
		if (!merge)
			out++;
		for (unsigned int k = 0; k < n_sides; k++) {
			sides[k]->count[out - 1] = merge ? product : count;
			sides[k]->step[out - 1] = sides[k]->step[i];
		}
	}
	return out;
}

struct walk {
	const struct nm_side *side;
	unsigned int dim; /* dims left */
	uint32_t left; /* of the innermost of them */
	int64_t step;
};

static void next_dim(struct walk *w)
{
	while (w->left == 1 && w->dim > 0) {
		w->dim--;
		w->left = w->side->count[w->dim];
		w->step = w->side->step[w->dim];
	}
}

static void split(struct walk *w, uint32_t count)
{
	w->left /= count;
	w->step *= count;
	next_dim(w);
}

/*
 * Gives both sides the same dims, splitting counts where one divides the other. False if they do
 * not; the sides are as before then.
 */
static bool join_dims(struct nm_dma *dma)
{
	struct nm_side dst = dma->dst, src = dma->src;
	struct walk d = { &dma->dst, dma->dst.ndim, 1, 0 };
	struct walk s = { &dma->src, dma->src.ndim, 1, 0 };
	struct nm_side *both[] = { &dst, &src };
	unsigned int pos = NM_WALK_DIMS, ndim;

	next_dim(&d);
	next_dim(&s);
	while (d.left > 1 || s.left > 1) {
		uint32_t count = d.left < s.left ? d.left : s.left;

		if (count == 1 || d.left % count || s.left % count || pos == 0)
			return false;
		pos--;
		dst.count[pos] = src.count[pos] = count;
		dst.step[pos] = d.step;
		src.step[pos] = s.step;
		split(&d, count);
		split(&s, count);
	}
	ndim = NM_WALK_DIMS - pos;
	for (unsigned int k = 0; k < 2; k++) {
		memmove(both[k]->count, both[k]->count + pos, ndim * sizeof(dst.count[0]));
		memmove(both[k]->step, both[k]->step + pos, ndim * sizeof(dst.step[0]));
	}
	ndim = merge_dims(both, 2, ndim);
	dst.ndim = src.ndim = (uint8_t)ndim;
	dma->dst = dst;
	dma->src = src;
	return true;
}

/* Bytes that are contiguous on both sides. */
static uint64_t run_bytes(const struct nm_dma *dma)
{
	const struct nm_side *sides[] = { &dma->dst, &dma->src };
	uint64_t run = UINT64_MAX;

	for (unsigned int k = 0; k < 2; k++) {
		unsigned int nd = sides[k]->ndim;
		uint64_t r = dma->elem_bytes;

		if (nd > 0 && sides[k]->step[nd - 1] == dma->elem_bytes)
			r *= sides[k]->count[nd - 1];
		run = r < run ? r : run;
	}
	return run;
}

/* Dim of a side whose elements follow each other, of its two innermost; -1: neither, or both. */
static int packed_dim(const struct nm_side *s, unsigned int elem_bytes)
{
	unsigned int nd = s->ndim;
	bool inner = s->step[nd - 1] == elem_bytes, outer = s->step[nd - 2] == elem_bytes;

	return inner == outer ? -1 : inner ? (int)nd - 1 : (int)nd - 2;
}

/* Whether the DMA engines transpose this as they move it: 2- and 4-byte elements, 128 by 16 at a time. */
static bool is_transpose(const struct nm_dma *dma)
{
	unsigned int nd = dma->dst.ndim;
	int dst, src;

	if (!dma->joint || nd < 2 || dma->sum ||
	    (dma->dst.space == ISA_SPACE_SLOT) == (dma->src.space == ISA_SPACE_SLOT) ||
	    (dma->elem_bytes != 2 && dma->elem_bytes != 4))
		return false;
	dst = packed_dim(&dma->dst, dma->elem_bytes);
	src = packed_dim(&dma->src, dma->elem_bytes);
	return dst >= 0 && src >= 0 && dst != src && dma->dst.count[dst] % ISA_DMA_TRANSPOSE == 0 &&
	       dma->dst.count[src] % ISA_DMA_TRANSPOSE == 0 &&
	       (dma->dst.count[dst] % ISA_DMA_TRANSPOSE_LONG == 0 ||
		dma->dst.count[src] % ISA_DMA_TRANSPOSE_LONG == 0);
}

/* Whether no byte of dst belongs to two positions of its outermost dim. */
static bool is_apart(const struct nm_dma *dma)
{
	const struct nm_side *s = &dma->dst;
	uint64_t inner = dma->elem_bytes;

	if (!dma->joint || s->ndim == 0)
		return false;
	for (unsigned int i = 1; i < s->ndim; i++)
		inner += (uint64_t)(s->count[i] - 1) * (uint64_t)llabs(s->step[i]);
	return (uint64_t)llabs(s->step[0]) >= inner;
}

static int take_plain(struct nm_decoder *d, const struct isa_inst *in, struct nm_dma *dma)
{
	struct nm_side *dst = &dma->dst, *src = &dma->src;
	uint64_t n_src;
	int ret;

	ret = take_side(d, &in->dma.dst, true, in->elem_bytes, dst, &dma->n);
	if (ret)
		return ret;
	ret = take_side(d, &in->dma.src, false, in->elem_bytes, src, &n_src);
	if (ret)
		return ret;
	if (n_src != dma->n)
		return bad(d, n_src, dma->n);
	dst->ndim = (uint8_t)merge_dims(&dst, 1, dst->ndim);
	src->ndim = (uint8_t)merge_dims(&src, 1, src->ndim);
	nm_time_dma(d->timing, dma, run_bytes(dma));
	dma->joint = join_dims(dma);
	dma->apart = is_apart(dma);
	if (is_transpose(dma))
		nm_time_transpose(d->timing, dma);
	if (dst->shift || src->shift)
		nm_time_shifted(dma);
	return 0;
}

/* --- rows by index --------------------------------------------------------------------- */

/* Where the indices are. */
static int take_index(struct nm_decoder *d, const struct isa_dma_indirect *in, struct nm_index *ix)
{
	const struct isa_dma_index *i = &in->index;
	const int64_t bytes = (int64_t)isa_dtype_bytes(i->dtype), step = (int32_t)i->step * bytes;
	const unsigned int free = in->order == ISA_INDEX_FREE ? 0 : 1;
	struct nm_reach e;

	if (i->space != ISA_SPACE_SBUF)
		return bad(d, i->space, ISA_SPACE_SBUF);
	if (i->dtype != ISA_INT32 && i->dtype != ISA_UINT32)
		return bad(d, i->dtype, ISA_UINT32);
	if (i->nparts < 1 || i->nparts > ISA_PARTITIONS)
		return bad(d, i->nparts, ISA_PARTITIONS);
	if (i->part0 + i->nparts > ISA_PARTITIONS)
		return nm_decode_fault(d, EXI_FAULT_TILE_BOUNDS, i->part0 + i->nparts - 1u,
				       ISA_PARTITIONS);
	if (i->count < 1 || i->count > NM_TILE_ELEMS)
		return bad(d, i->count, NM_TILE_ELEMS);
	if (i->offset % bytes)
		return bad(d, i->offset, (uint64_t)bytes);
	e.low = i->offset + (step < 0 ? step * (i->count - 1) : 0);
	e.high = i->offset + (step > 0 ? step * (i->count - 1) : 0) + bytes;
	if (e.low < 0)
		return nm_decode_fault(d, EXI_FAULT_TILE_BOUNDS, (uint64_t)e.low, 0);
	if (e.high > d->sbuf_bytes)
		return nm_decode_fault(d, EXI_FAULT_TILE_BOUNDS, (uint64_t)e.high, d->sbuf_bytes);
	if (in->oob > ISA_OOB_SKIP)
		return bad(d, in->oob, ISA_OOB_SKIP);
	if (in->order > ISA_INDEX_FREE)
		return bad(d, in->order, ISA_INDEX_FREE);
	if (in->pad0[0] || in->pad0[1])
		return bad(d, in->pad0[0] | in->pad0[1], 0);
	ix->skip = in->oob == ISA_OOB_SKIP;
	ix->is_signed = i->dtype == ISA_INT32;
	ix->offset = (int64_t)i->part0 * NM_SBUF_PITCH + i->offset;
	ix->n = (uint64_t)i->nparts * i->count;
	ix->count[free] = i->count;
	ix->step[free] = step;
	ix->count[!free] = i->nparts;
	ix->step[!free] = NM_SBUF_PITCH;
	return 0;
}

/* The side with room for one more dim. */
static int widen(struct nm_decoder *d, const struct isa_dma_rows *in, struct isa_dma_side *out)
{
	if (in->ndim > ISA_DMA_ROW_DIMS)
		return bad(d, in->ndim, ISA_DMA_ROW_DIMS);
	*out = (struct isa_dma_side){ .space = in->space,
				      .ndim = in->ndim,
				      .slot = in->slot,
				      .part0 = in->part0,
				      .nparts = in->nparts,
				      .part_step = in->part_step,
				      .dtype = in->dtype,
				      .offset = in->offset };
	memcpy(out->step, in->step, sizeof(in->step));
	memcpy(out->count, in->count, sizeof(in->count));
	return 0;
}

/* The indexed side: all rows that there are, of which *row is one, of *n elements. */
static int take_indexed(struct nm_decoder *d, const struct isa_dma_indirect *in,
			unsigned int elem_bytes, struct nm_index *ix, struct nm_side *all,
			struct nm_side *row, uint64_t *n)
{
	struct isa_dma_side side = { 0 };
	int ret = widen(d, ix->scatter ? &in->dst : &in->src, &side);

	if (ret)
		return ret;
	if (side.space != ISA_SPACE_SLOT)
		return bad(d, side.space, ISA_SPACE_SLOT);
	if (in->rows < 1)
		return bad(d, in->rows, 1);
	memmove(side.step + 1, side.step, sizeof(in->dst.step));
	memmove(side.count + 1, side.count, sizeof(in->dst.count));
	side.step[0] = in->row_step;
	side.count[0] = in->rows;
	side.ndim++;
	ret = take_side(d, &side, ix->scatter, elem_bytes, all, n);
	if (ret)
		return ret;
	ix->rows = in->rows;
	ix->row_step = (int64_t)in->row_step;
	*n /= in->rows;
	*row = *all;
	if (in->rows > 1) {
		row->ndim--;
		memmove(row->step, row->step + 1, row->ndim * sizeof(row->step[0]));
		memmove(row->count, row->count + 1, row->ndim * sizeof(row->count[0]));
	}
	return 0;
}

/* Moves the outermost dims of row, which make n rows, to walk. False: rows end within a dim. */
static bool split_rows(struct nm_side *row, struct nm_side *walk, uint64_t n)
{
	unsigned int used = 0;

	while (n > 1 && used < row->ndim) {
		uint32_t count = row->count[used], part = count;
		int64_t step = row->step[used];

		if (n % count == 0) {
			used++;
		} else if (count % n == 0) {
			part = (uint32_t)n;
			row->count[used] = count / part;
			step *= row->count[used];
		} else {
			return false;
		}
		walk->count[walk->ndim] = part;
		walk->step[walk->ndim++] = step;
		n /= part;
	}
	row->ndim -= (uint8_t)used;
	memmove(row->step, row->step + used, row->ndim * sizeof(row->step[0]));
	memmove(row->count, row->count + used, row->ndim * sizeof(row->count[0]));
	return n == 1;
}

static int take_indirect(struct nm_decoder *d, const struct isa_inst *in, struct nm_dma *dma,
			 struct nm_index *ix)
{
	const struct isa_dma_indirect *body = &in->indirect;
	struct nm_dma *row = &ix->row;
	struct isa_dma_side side = { 0 };
	struct nm_side *sides[] = { &row->dst, &row->src }, *indexed, *other;
	uint64_t n_row;
	int ret;

	ix->scatter = in->opcode == ISA_DMA_SCATTER;
	indexed = sides[!ix->scatter];
	other = sides[ix->scatter];
	*row = *dma;
	ret = take_index(d, body, ix);
	if (!ret)
		ret = take_indexed(d, body, in->elem_bytes, ix, ix->scatter ? &dma->dst : &dma->src,
				   indexed, &n_row);
	if (!ret)
		ret = widen(d, ix->scatter ? &body->src : &body->dst, &side);
	if (!ret)
		ret = take_side(d, &side, !ix->scatter, in->elem_bytes, other, &dma->n);
	if (ret)
		return ret;
	if (dma->n / n_row != ix->n || dma->n % n_row)
		return bad(d, dma->n, n_row * ix->n);
	*(ix->scatter ? &dma->src : &dma->dst) = *other;
	if (!split_rows(other, &ix->walk, ix->n))
		return bad(d, ix->n, dma->n);
	row->n = n_row;
	for (unsigned int k = 0; k < 2; k++)
		sides[k]->ndim = (uint8_t)merge_dims(&sides[k], 1, sides[k]->ndim);
	nm_time_indirect(d->timing, dma, run_bytes(row));
	row->joint = join_dims(row);
	dma->index = ix;
	return 0;
}

/* Whether src is added to dst, and as what. */
static int take_sum(struct nm_decoder *d, const struct isa_inst *in, struct nm_dma *dma)
{
	const bool plain = in->opcode == ISA_DMA;
	const uint8_t dtype = plain ? in->dma.dst.dtype : in->indirect.dst.dtype;
	const uint8_t space = plain ? in->dma.dst.space : in->indirect.dst.space;

	d->dst_rights = EXI_SLOT_WRITE;
	if (!(in->flags & ISA_F_ACCUM))
		return dtype ? bad(d, dtype, 0) : 0;
	if (dtype != ISA_FP32 && dtype != ISA_BF16 && dtype != ISA_FP16 && dtype != ISA_INT32)
		return bad(d, dtype, ISA_FP32);
	if (isa_dtype_bytes(dtype) != in->elem_bytes)
		return bad(d, in->elem_bytes, isa_dtype_bytes(dtype));
	/* Sums there are the tensor engine's. */
	if (space == ISA_SPACE_PSUM)
		return bad(d, space, ISA_SPACE_SBUF);
	d->dst_rights |= EXI_SLOT_READ;
	dma->sum = dtype;
	return 0;
}

int nm_decode_dma(struct nm_decoder *d, const struct isa_inst *in, struct nm_dma *dma)
{
	int ret;

	if (in->elem_bytes != 1 && in->elem_bytes != 2 && in->elem_bytes != 4 &&
	    in->elem_bytes != 8)
		return bad(d, in->elem_bytes, 8);
	if (in->dma_queue >= ISA_DMA_QUEUES)
		return bad(d, in->dma_queue, ISA_DMA_QUEUES);
	dma->elem_bytes = in->elem_bytes;
	dma->queue = in->dma_queue;
	ret = take_sum(d, in, dma);
	if (ret)
		return ret;
	if (in->opcode == ISA_DMA)
		return take_plain(d, in, dma);
	return take_indirect(d, in, dma, (struct nm_index *)(dma + 1));
}

int nm_decode_place(struct nm_decoder *d, const struct isa_place *in, bool is_dst,
		    struct nm_side *side)
{
	const bool chip = in->space != ISA_SPACE_SLOT;
	const struct isa_dma_side as = { .space = in->space,
					 .slot = in->slot,
					 .part0 = in->part0,
					 .nparts = chip,
					 .part_step = chip,
					 .shift = in->shift,
					 .offset = in->offset };
	uint64_t n;

	d->dst_rights = EXI_SLOT_WRITE;
	return take_side(d, &as, is_dst, isa_dtype_bytes(in->dtype), side, &n);
}
