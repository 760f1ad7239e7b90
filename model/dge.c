// SPDX-License-Identifier: Apache-2.0
/* Descriptor generation: what a DMA instruction moves, between slots, constants, SBUF and PSUM. */
#include <string.h>

#include "exec.h"
#include "team.h"

/* Elements between two looks at the attention flag. */
#define BURST (1u << 20)

/* Step of a block of two dims in which each side has one of them packed: a transposition. */
#define BLOCK 16

uint8_t *nm_side_ptr(const struct nm_exec *x, const struct nm_side *s)
{
	uint8_t *base;

	if (s->space != ISA_SPACE_SLOT)
		base = x->mem[s->space];
	else if (s->slot == ISA_SLOT_CONST)
		/* Never a destination: the decoder refused that. */
		base = (uint8_t *)(uintptr_t)x->constants;
	else
		base = x->slot[s->slot].ptr;
	return base + s->offset;
}

typedef void (*copy_fn)(void *d, ptrdiff_t dstep, const void *s, ptrdiff_t sstep, size_t n);

static copy_fn copy_of(const struct nm_exec *x, unsigned int elem_bytes)
{
	return x->rows->copy[__builtin_ctz(elem_bytes)];
}

/* Adds n elements of s to those of d, which may lie anywhere. */
static void add_run(const struct nm_exec *x, unsigned int dtype, uint8_t *d, ptrdiff_t dstep,
		    const uint8_t *s, ptrdiff_t sstep, size_t n)
{
	const unsigned int ct = dtype == ISA_INT32 ? ISA_CT_I32 : ISA_CT_F32;
	const ptrdiff_t bytes = isa_dtype_bytes(dtype);
	const copy_fn copy = copy_of(x, (unsigned int)bytes);
	/* What lies at the same place is added one after the other. */
	const size_t most = dstep < bytes && dstep > -bytes ? 1 : NM_CHUNK;
	void *sum = x->buffer[0], *term = x->buffer[1], *raw = x->buffer[2];
	size_t k;

	for (size_t i = 0; i < n; i += k) {
		uint8_t *to = d + (ptrdiff_t)i * dstep;

		k = n - i < most ? n - i : most;
		copy(raw, bytes, to, dstep, k);
		x->rows->load[ct][dtype](sum, raw, bytes, k);
		copy(raw, bytes, s + (ptrdiff_t)i * sstep, sstep, k);
		x->rows->load[ct][dtype](term, raw, bytes, k);
		x->rows->tt[ct][ISA_ADD](sum, sum, term, k);
		x->rows->store[ct][dtype](raw, bytes, sum, k);
		copy(to, dstep, raw, bytes, k);
	}
}

/* n elements of a transfer. */
static void move_run(const struct nm_exec *x, const struct nm_dma *dma, uint8_t *d, ptrdiff_t dstep,
		     const uint8_t *s, ptrdiff_t sstep, size_t n)
{
	if (dma->sum)
		add_run(x, dma->sum, d, dstep, s, sstep, n);
	else
		copy_of(x, dma->elem_bytes)(d, dstep, s, sstep, n);
}

static unsigned int min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Rows times columns in blocks, so that the lines of the strided side are used up while cached. */
static void copy_plane(copy_fn copy, uint8_t *d, const int64_t *dstep, const uint8_t *s,
		       const int64_t *sstep, const uint32_t *count)
{
	for (uint32_t r = 0; r < count[0]; r += BLOCK) {
		uint32_t rows = min_u32(BLOCK, count[0] - r);

		for (uint32_t c = 0; c < count[1]; c++)
			copy(d + r * dstep[0] + c * dstep[1], dstep[0],
			     s + r * sstep[0] + c * sstep[1], sstep[0], rows);
	}
}

/* Whether nothing that a transfer reads is written by it. */
static bool is_disjoint(const struct nm_exec *x, const struct nm_dma *dma)
{
	const struct nm_slot *dst, *src;

	if (dma->dst.space != dma->src.space)
		return true;
	if (dma->dst.space != ISA_SPACE_SLOT)
		return false;
	if (dma->src.slot == ISA_SLOT_CONST)
		return true;
	dst = &x->slot[dma->dst.slot];
	src = &x->slot[dma->src.slot];
	return dst->ptr + dst->size <= src->ptr || src->ptr + src->size <= dst->ptr;
}

/*
 * The same by the row kernel, if there is one of the element size and nothing is unaligned: packed is
 * the dim in which dst's elements follow each other, in which src's are a pitch apart.
 */
static bool transpose_plane(const struct nm_exec *x, const struct nm_dma *dma, uint8_t *d,
			    const int64_t *dstep, const uint8_t *s, const int64_t *sstep,
			    const uint32_t *count)
{
	const int64_t bytes = dma->elem_bytes;
	const unsigned int packed = dstep[1] == bytes ? 1 : 0;
	const int64_t dpitch = dstep[!packed], spitch = sstep[packed];

	if (!x->rows->transpose[__builtin_ctz(dma->elem_bytes)] || !is_disjoint(x, dma) ||
	    dstep[packed] != bytes || sstep[!packed] != bytes ||
	    ((uintptr_t)d | (uintptr_t)s | (uint64_t)dpitch | (uint64_t)spitch) % (uint64_t)bytes)
		return false;
	x->rows->transpose[__builtin_ctz(dma->elem_bytes)](d, dpitch, s, spitch, count[packed],
							   count[!packed]);
	return true;
}

static void move_plane(const struct nm_exec *x, const struct nm_dma *dma, uint8_t *d,
		       const int64_t *dstep, const uint8_t *s, const int64_t *sstep,
		       const uint32_t *count)
{
	if (!transpose_plane(x, dma, d, dstep, s, sstep, count))
		copy_plane(copy_of(x, dma->elem_bytes), d, dstep, s, sstep, count);
}

static int64_t magnitude(int64_t x)
{
	return x < 0 ? -x : x;
}

/* Whether the two innermost dims are packed the one here, the other there (and fit one burst). */
static bool is_transposition(const struct nm_dma *dma)
{
	unsigned int nd = dma->dst.ndim;

	if (nd < 2 || dma->sum || dma->dst.count[nd - 1] < 2 * BLOCK ||
	    dma->dst.count[nd - 2] < 2 ||
	    (uint64_t)dma->dst.count[nd - 1] * dma->dst.count[nd - 2] > BURST)
		return false;
	return (magnitude(dma->dst.step[nd - 2]) == dma->elem_bytes) !=
		       (magnitude(dma->dst.step[nd - 1]) == dma->elem_bytes) &&
	       (magnitude(dma->src.step[nd - 2]) == dma->elem_bytes) !=
		       (magnitude(dma->src.step[nd - 1]) == dma->elem_bytes) &&
	       (magnitude(dma->src.step[nd - 1]) == dma->elem_bytes) !=
		       (magnitude(dma->dst.step[nd - 1]) == dma->elem_bytes);
}

/* Position in the outer dims of row number n of a joint transfer. */
static void seek(uint32_t *idx, const uint32_t *count, unsigned int ndim, uint64_t n)
{
	while (ndim--) {
		idx[ndim] = (uint32_t)(n % count[ndim]);
		n /= count[ndim];
	}
}

static ptrdiff_t at(const uint32_t *idx, const int64_t *step, unsigned int ndim)
{
	ptrdiff_t sum = 0;

	for (unsigned int i = 0; i < ndim; i++)
		sum += idx[i] * step[i];
	return sum;
}

static bool attention(const struct nm_exec *x)
{
	return atomic_load_explicit(x->attention, memory_order_relaxed);
}

/* Both sides have the same dims. A row is what one call of copy or copy_plane moves. */
static bool move_joint(struct nm_exec *x, const struct nm_dma *dma, uint64_t *done)
{
	const struct nm_side *ds = &dma->dst, *ss = &dma->src;
	uint8_t *d = nm_side_ptr(x, ds);
	const uint8_t *s = nm_side_ptr(x, ss);
	bool plane = is_transposition(dma);
	unsigned int outer = ds->ndim - (plane ? 2u : ds->ndim ? 1u : 0u);
	ptrdiff_t dstep = ds->ndim ? ds->step[ds->ndim - 1] : 0;
	ptrdiff_t sstep = ds->ndim ? ss->step[ds->ndim - 1] : 0;
	uint32_t idx[NM_WALK_DIMS];
	uint64_t row = 1, burst = 0, skip;

	for (unsigned int i = outer; i < ds->ndim; i++)
		row *= ds->count[i];
	seek(idx, ds->count, outer, *done / row);
	skip = *done % row;
	do {
		uint8_t *to = d + at(idx, ds->step, outer);
		const uint8_t *from = s + at(idx, ss->step, outer);

		while (skip < row) {
			uint64_t n = plane || row - skip < BURST ? row - skip : BURST;

			if (burst && burst + n > BURST) {
				burst = 0;
				if (attention(x))
					return false;
			}
			if (plane)
				move_plane(x, dma, to, ds->step + outer, from, ss->step + outer,
					   ds->count + outer);
			else
				move_run(x, dma, to + (ptrdiff_t)skip * dstep, dstep,
					 from + (ptrdiff_t)skip * sstep, sstep, n);
			skip += n;
			*done += n;
			burst += n;
		}
		skip = 0;
	} while (nm_next(idx, ds->count, outer));
	return true;
}

struct cursor {
	const struct nm_side *side;
	uint8_t *base;
	uint32_t idx[NM_WALK_DIMS];
};

static unsigned int left(const struct cursor *c)
{
	unsigned int last = c->side->ndim - 1u;

	return c->side->count[last] - c->idx[last];
}

static void advance(struct cursor *c, uint32_t n)
{
	unsigned int last = c->side->ndim - 1u;

	c->idx[last] += n;
	if (c->idx[last] == c->side->count[last]) {
		c->idx[last] = 0;
		nm_next(c->idx, c->side->count, last);
	}
}

/* Sides of different dims: as far as both innermost ones reach at a time. */
static bool move_apart(struct nm_exec *x, const struct nm_dma *dma, uint64_t *done)
{
	struct cursor d = { .side = &dma->dst, .base = nm_side_ptr(x, &dma->dst) };
	struct cursor s = { .side = &dma->src, .base = nm_side_ptr(x, &dma->src) };
	uint64_t burst = 0;

	seek(d.idx, d.side->count, d.side->ndim, *done);
	seek(s.idx, s.side->count, s.side->ndim, *done);
	while (*done < dma->n) {
		uint32_t n = min_u32(min_u32(left(&d), left(&s)), BURST);

		move_run(x, dma, d.base + at(d.idx, d.side->step, d.side->ndim),
			 d.side->step[d.side->ndim - 1],
			 s.base + at(s.idx, s.side->step, s.side->ndim),
			 s.side->step[s.side->ndim - 1], n);
		advance(&d, n);
		advance(&s, n);
		*done += n;
		burst += n;
		if (burst >= BURST && *done < dma->n) {
			burst = 0;
			if (attention(x))
				return false;
		}
	}
	return true;
}

/* --- shared by several threads ------------------------------------------------------------ */

/* Fewest bytes that are worth the microsecond or two of waking others. */
#define DIVIDE_BYTES (128u << 10)

/* Positions first to end of the outermost dim of a transfer. */
struct division {
	const struct nm_exec *x;
	const struct nm_dma *dma;
	uint32_t first, end;
	unsigned int parts;
};

static void move_part(void *arg, unsigned int part, uint64_t *const *buffer)
{
	const struct division *d = arg;
	struct nm_exec x = *d->x;
	struct nm_dma dma = *d->dma;
	uint64_t n = d->end - d->first, done = 0;
	uint32_t first = d->first + (uint32_t)(n * part / d->parts);
	uint32_t count = d->first + (uint32_t)(n * (part + 1) / d->parts) - first;

	if (count == 0)
		return;
	if (buffer)
		memcpy(x.buffer, buffer, sizeof(x.buffer));
	dma.n = dma.n / dma.dst.count[0] * count;
	dma.dst.offset += first * dma.dst.step[0];
	dma.src.offset += first * dma.src.step[0];
	dma.dst.count[0] = dma.src.count[0] = count;
	/* It is at most a burst, after which nobody looks for attention. */
	move_joint(&x, &dma, &done);
}

static bool is_divisible(const struct nm_exec *x, const struct nm_dma *dma)
{
	return dma->apart && dma->n * dma->elem_bytes >= DIVIDE_BYTES &&
	       dma->n / dma->dst.count[0] <= BURST && nm_team_threads() > 1 && is_disjoint(x, dma);
}

/* As move_joint(); *done is at a position of the outermost dim. */
static bool move_divided(struct nm_exec *x, const struct nm_dma *dma, uint64_t *done)
{
	const uint32_t count = dma->dst.count[0];
	const uint64_t each = dma->n / count;
	struct division d = { .x = x,
			      .dma = dma,
			      .parts = NM_PARTS_PER_THREAD * nm_team_threads() };

	for (d.first = (uint32_t)(*done / each); d.first < count; d.first = d.end) {
		uint64_t most = d.parts * (BURST / each);

		d.end = count - d.first < most ? count : d.first + (uint32_t)most;
		nm_team_run(move_part, &d, d.parts);
		*done += each * (d.end - d.first);
		if (d.end < count && attention(x))
			return false;
	}
	return true;
}

static bool move(struct nm_exec *x, const struct nm_dma *dma, uint64_t *done)
{
	if (!dma->joint)
		return move_apart(x, dma, done);
	return is_divisible(x, dma) ? move_divided(x, dma, done) : move_joint(x, dma, done);
}

/* --- rows by index --------------------------------------------------------------------- */

static int64_t index_of(const struct nm_exec *x, const struct nm_index *ix, const uint32_t *idx)
{
	const uint8_t *at =
		x->mem[ISA_SPACE_SBUF] + ix->offset + idx[0] * ix->step[0] + idx[1] * ix->step[1];
	uint32_t index;

	memcpy(&index, at, sizeof(index));
	return ix->is_signed ? (int32_t)index : (int64_t)index;
}

static bool in_bounds(const struct nm_index *ix, int64_t index)
{
	return index >= 0 && index < ix->rows;
}

/* Whether an index is an error, before anything is moved. */
static bool all_in_bounds(const struct nm_exec *x, const struct nm_index *ix,
			  struct nm_moved *moved)
{
	uint32_t idx[2] = { 0 };

	do {
		moved->index = index_of(x, ix, idx);
		if (!in_bounds(ix, moved->index)) {
			moved->outside = true;
			return false;
		}
	} while (nm_next(idx, ix->count, 2));
	return true;
}

/* Row by row, in order: of rows with the same index the last one stays. */
static bool move_rows(struct nm_exec *x, const struct nm_dma *dma, struct nm_moved *moved)
{
	const struct nm_index *ix = dma->index;
	struct nm_dma row = ix->row;
	struct nm_side *indexed = ix->scatter ? &row.dst : &row.src;
	struct nm_side *other = ix->scatter ? &row.src : &row.dst;
	const int64_t first = indexed->offset, other_first = other->offset;
	uint32_t idx[2], pos[NM_WALK_DIMS];
	uint64_t burst = 0;

	if (!ix->skip && !moved->done && !all_in_bounds(x, ix, moved))
		return false;
	seek(idx, ix->count, 2, moved->done / row.n);
	seek(pos, ix->walk.count, ix->walk.ndim, moved->done / row.n);
	while (moved->done < dma->n) {
		uint64_t done = moved->done % row.n, left = row.n - done;
		int64_t index = index_of(x, ix, idx);

		if (in_bounds(ix, index)) {
			indexed->offset = first + index * ix->row_step;
			other->offset = other_first + at(pos, ix->walk.step, ix->walk.ndim);
			if (!move(x, &row, &done)) {
				moved->done += done - (row.n - left);
				return false;
			}
		} else {
			/* Also where the transfer itself has overwritten an index. */
			moved->skipped += left;
		}
		moved->done += left;
		nm_next(idx, ix->count, 2);
		nm_next(pos, ix->walk.count, ix->walk.ndim);
		burst += left;
		if (burst >= BURST && moved->done < dma->n) {
			burst = 0;
			if (attention(x))
				return false;
		}
	}
	return true;
}

bool nm_exec_dma(struct nm_exec *x, const struct nm_dma *dma, struct nm_moved *moved)
{
	return dma->index ? move_rows(x, dma, moved) : move(x, dma, &moved->done);
}
