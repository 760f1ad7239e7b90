/* SPDX-License-Identifier: Apache-2.0 */
/*
 * On-chip addresses. Buffers are placed one after the other round a ring, past
 * those that are still in use: a place is used again as late as possible, so
 * that loads run ahead of the work that still reads older tiles. The ring is a
 * few times as large as what is live at once and no larger, which
 * keeps the virtual device's SBUF in the host's caches. What lives while the
 * ring goes round lies beside it: sums over many tiles and operands that stay would
 * give their place back just in front of loads that run ahead, which then stood still.
 */
#include <errno.h>
#include <string.h>

#include "lir.h"

#define RING_TIMES_LIVE 4
#define RING_MIN	(48 << 10) /* as many transfers under way as hide their latency */
#define RING_MAX	(64 << 10) /* beyond, twice what is live is enough */

/* Bytes [lo, hi) of each partition that buffers take one after the other, round and round. */
struct ring {
	uint32_t lo, hi, cursor;
};

struct space {
	struct lir *lir;
	uint32_t id, room; /* bytes a partition */
	struct ring ring;
	struct ring beside; /* of what outlives a round of the other; empty: lies in there, too */
	const uint64_t *turned; /* bytes of buffers that began before each operation */
	uint32_t *live; /* buffers in use, by offset */
	uint32_t n_live, cap_live;
};

static void touch(struct lir *lir, uint32_t b, uint32_t op)
{
	if (b == LIR_NONE)
		return;
	if (lir->bufs[b].first == LIR_NONE)
		lir->bufs[b].first = op;
	lir->bufs[b].last = op;
}

static void find_lifetimes(struct lir *lir)
{
	for (uint32_t i = 0; i < lir->n_ops; i++) {
		const struct lop *op = &lir->ops[i];

		if (isa_is_dma(op->opcode)) {
			touch(lir, op->to.buf, i);
			touch(lir, op->from.buf, i);
			if (op->opcode != ISA_DMA)
				touch(lir, op->index.buf, i);
			continue;
		}
		touch(lir, op->dst.buf, i);
		touch(lir, op->src0.buf, i);
		touch(lir, op->src1.buf, i);
		touch(lir, op->vec0.buf, i);
		touch(lir, op->vec1.buf, i);
	}
}

/* First place in [from, to) where bytes fit between live buffers; LIR_NONE: nowhere. */
static uint32_t find_gap(const struct space *s, uint32_t from, uint32_t to, uint32_t bytes)
{
	uint32_t at = from;

	for (uint32_t i = 0; i < s->n_live; i++) {
		const struct lbuf *buf = &s->lir->bufs[s->live[i]];

		if (buf->offset + buf->bytes <= at)
			continue;
		if (buf->offset >= at + bytes)
			break;
		at = buf->offset + buf->bytes;
	}
	return at + bytes <= to ? at : LIR_NONE;
}

static bool outlives_round(const struct space *s, const struct lbuf *buf)
{
	return s->turned[buf->last] - s->turned[buf->first] > s->ring.hi;
}

/* The next place of a ring where bytes fit; LIR_NONE: there is none. */
static uint32_t find_in_ring(const struct space *s, struct ring *ring, uint32_t bytes)
{
	uint32_t at = find_gap(s, ring->cursor, ring->hi, bytes);

	if (at == LIR_NONE)
		at = find_gap(s, ring->lo, ring->hi, bytes);
	if (at != LIR_NONE)
		ring->cursor = at + bytes;
	return at;
}

/* false: there is no place for the buffer. */
static bool place(struct space *s, uint32_t b)
{
	struct lir *lir = s->lir;
	struct lbuf *buf = &lir->bufs[b];
	uint32_t at = LIR_NONE, i;

	if (s->beside.hi && outlives_round(s, buf))
		at = find_in_ring(s, &s->beside, buf->bytes);
	if (at == LIR_NONE)
		at = find_in_ring(s, &s->ring, buf->bytes);
	if (at == LIR_NONE)
		at = find_gap(s, 0, s->room, buf->bytes);
	if (at == LIR_NONE)
		return false;
	buf->offset = at;
	s->live = nci_grow(lir->ctx, s->live, &s->cap_live, s->n_live + 1, sizeof(*s->live));
	for (i = s->n_live++; i > 0 && lir->bufs[s->live[i - 1]].offset > at; i--)
		s->live[i] = s->live[i - 1];
	s->live[i] = b;
	return true;
}

static void release(struct space *s, uint32_t b)
{
	uint32_t i = 0;

	while (s->live[i] != b)
		i++;
	s->n_live--;
	memmove(s->live + i, s->live + i + 1, (s->n_live - i) * sizeof(*s->live));
}

/* Buffers by first or last operation: list[head[op]] .. list[head[op + 1] - 1]. */
static uint32_t *by_op(struct lir *lir, bool last, uint32_t **head)
{
	uint32_t *list = nci_alloc(lir->ctx, lir->n_bufs * sizeof(*list));
	uint32_t *at = nci_alloc(lir->ctx, (lir->n_ops + 2) * sizeof(*at));

	for (uint32_t b = 0; b < lir->n_bufs; b++)
		if (lir->bufs[b].first != LIR_NONE)
			at[(last ? lir->bufs[b].last : lir->bufs[b].first) + 2]++;
	for (uint32_t i = 2; i < lir->n_ops + 2; i++)
		at[i] += at[i - 1];
	for (uint32_t b = 0; b < lir->n_bufs; b++)
		if (lir->bufs[b].first != LIR_NONE)
			list[at[(last ? lir->bufs[b].last : lir->bufs[b].first) + 1]++] = b;
	*head = at;
	return list;
}

/* Buffers that begin with an operation, and that end with one. */
struct lifetimes {
	uint32_t *begin, *begin_at, *end, *end_at;
};

enum whose { ALL, ROUND, BESIDE };

/* Most bytes of a space that are live at once, of all buffers, or of those that outlive a round or not. */
static uint32_t peak_live(const struct space *s, const struct lifetimes *l, enum whose whose)
{
	const struct lir *lir = s->lir;
	uint64_t live = 0, peak = 0;

	for (uint32_t i = 0; i < lir->n_ops; i++) {
		for (int end = 0; end < 2; end++) {
			const uint32_t *at = end ? l->end_at : l->begin_at;

			for (uint32_t j = at[i]; j < at[i + 1]; j++) {
				const struct lbuf *buf = &lir->bufs[end ? l->end[j] : l->begin[j]];

				if (buf->space != s->id ||
				    (whose != ALL && outlives_round(s, buf) != (whose == BESIDE)))
					continue;
				live += end ? -(uint64_t)buf->bytes : buf->bytes;
			}
			if (live > peak)
				peak = live;
		}
	}
	return peak > UINT32_MAX / RING_TIMES_LIVE ? UINT32_MAX / RING_TIMES_LIVE : (uint32_t)peak;
}

static const uint64_t *find_turned(const struct space *s, const struct lifetimes *l)
{
	const struct lir *lir = s->lir;
	uint64_t *turned = nci_alloc(lir->ctx, lir->n_ops * sizeof(*turned)), n = 0;

	for (uint32_t i = 0; i < lir->n_ops; i++) {
		turned[i] = n;
		for (uint32_t j = l->begin_at[i]; j < l->begin_at[i + 1]; j++)
			if (lir->bufs[l->begin[j]].space == s->id)
				n += lir->bufs[l->begin[j]].bytes;
	}
	return turned;
}

static uint32_t ring_bytes(const struct space *s, uint32_t live)
{
	int64_t bytes = nci_max(RING_MIN, (int64_t)live * 2);

	bytes = nci_max(bytes, nci_min((int64_t)live * RING_TIMES_LIVE, RING_MAX));
	return (uint32_t)nci_min(s->room, bytes);
}

static void size_ring(struct space *s, const struct lifetimes *l)
{
	uint32_t round, beside;

	s->turned = find_turned(s, l);
	s->ring.hi = ring_bytes(s, peak_live(s, l, ALL));
	round = peak_live(s, l, ROUND);
	beside = peak_live(s, l, BESIDE);
	if (!beside || beside + round > s->room)
		return;
	/* A smaller ring would have more outlive it. */
	s->ring.hi = (uint32_t)nci_min(s->ring.hi, s->room - beside);
	s->beside = (struct ring){ s->ring.hi, s->room, s->ring.hi };
}

static void fail(const struct space *s, uint32_t b)
{
	struct lir *lir = s->lir;

	nci_fail(lir->ctx, -E2BIG,
		 "%s: tiles do not fit: %u more bytes of each partition of %s, of %u, in %u "
		 "buffers; split the graph",
		 lir->ctx->graph->name, lir->bufs[b].bytes,
		 s->id == ISA_SPACE_PSUM ? "PSUM" : "SBUF", s->room, s->n_live);
}

/* In the order of the operations; false: it does not fit, and the operations have another order. */
static bool allocate(struct lir *lir)
{
	struct space spaces[2] = {
		{ .lir = lir, .id = ISA_SPACE_SBUF, .room = lir->ctx->target.sbuf_bytes },
		{ .lir = lir, .id = ISA_SPACE_PSUM, .room = lir->ctx->target.psum_bytes },
	};
	struct lifetimes l;

	find_lifetimes(lir);
	l.begin = by_op(lir, false, &l.begin_at);
	l.end = by_op(lir, true, &l.end_at);
	spaces[ISA_SPACE_SBUF].ring.hi = spaces[ISA_SPACE_SBUF].room;
	spaces[ISA_SPACE_PSUM].ring.hi = spaces[ISA_SPACE_PSUM].room;
	if (lir->n_ops)
		size_ring(&spaces[ISA_SPACE_SBUF], &l);
	for (uint32_t i = 0; i < lir->n_ops; i++) {
		for (uint32_t j = l.begin_at[i]; j < l.begin_at[i + 1]; j++) {
			struct space *s = &spaces[lir->bufs[l.begin[j]].space];

			if (place(s, l.begin[j]))
				continue;
			if (lir->in_order)
				return false;
			fail(s, l.begin[j]);
		}
		for (uint32_t j = l.end_at[i]; j < l.end_at[i + 1]; j++)
			release(&spaces[lir->bufs[l.end[j]].space], l.end[j]);
	}
	return true;
}

void nci_allocate(struct lir *lir)
{
	if (allocate(lir))
		return;
	/* With fewer tiles in flight. */
	memcpy(lir->ops, lir->in_order, lir->n_ops * sizeof(*lir->ops));
	lir->in_order = NULL;
	for (uint32_t b = 0; b < lir->n_bufs; b++)
		lir->bufs[b].first = LIR_NONE;
	allocate(lir);
}
