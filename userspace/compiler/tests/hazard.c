/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds what a deterministic device hides: the program's streams are replayed by
 * semaphores alone, with vector clocks over engines and DMA queues, and any two accesses to one
 * byte, at least one of them a write, must be ordered by them. Knows the encoding,
 * nothing of the compiler.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph.h"
#include "neuron_isa.h"
#include "neuron_program.h"

#define ENGINES	 5
#define ACTORS	 (ENGINES + ISA_DMA_QUEUES)
#define DIMS_MAX 5

struct clock {
	uint32_t n[ACTORS];
};

struct access {
	uint32_t space; /* SBUF, PSUM, or 2 + memory of a slot */
	bool write;
	uint32_t actor, n; /* n-th of the actor */
	struct clock start;
	uint32_t part0, nparts;
	int64_t offset, step[DIMS_MAX];
	uint32_t count[DIMS_MAX], elem;
	int64_t lo, hi;
	uint32_t engine, pc;
};

struct event {
	uint32_t value;
	struct clock done;
};

struct semaphore {
	struct event *events;
	uint32_t n, cap, value;
	int owner; /* the only actor that updates it; -1: none yet */
};

struct replay {
	const struct nprog_header *h;
	const struct isa_inst *inst[ENGINES];
	uint32_t pc[ENGINES];
	struct clock engine[ENGINES], queue[ISA_DMA_QUEUES];
	int feeder[ISA_DMA_QUEUES];
	struct semaphore sem[ISA_SEMAPHORES];
	struct access *acc;
	uint32_t n_acc, cap_acc;
	const uint32_t *memory;
	uint32_t n_slots;
};

static char message[512];

__attribute__((format(printf, 1, 2))) static const char *defect(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	return message;
}

static void join(struct clock *a, const struct clock *b)
{
	for (uint32_t i = 0; i < ACTORS; i++)
		if (b->n[i] > a->n[i])
			a->n[i] = b->n[i];
}

/* --- accesses -------------------------------------------------------------------------- */

static struct access *add(struct replay *r, uint32_t e, uint32_t actor, uint32_t n,
			  const struct clock *start, bool write)
{
	struct access *a;

	if (r->n_acc == r->cap_acc) {
		r->cap_acc = r->cap_acc ? r->cap_acc * 2 : 256;
		r->acc = realloc(r->acc, r->cap_acc * sizeof(*r->acc));
		if (!r->acc)
			abort();
	}
	a = &r->acc[r->n_acc++];
	memset(a, 0, sizeof(*a));
	a->actor = actor;
	a->n = n;
	a->start = *start;
	a->write = write;
	a->engine = e;
	a->pc = r->pc[e];
	a->nparts = 1;
	for (uint32_t i = 0; i < DIMS_MAX; i++)
		a->count[i] = 1;
	return a;
}

static void bound(struct access *a)
{
	a->lo = a->offset;
	a->hi = a->offset + a->elem;
	for (uint32_t i = 0; i < DIMS_MAX; i++) {
		int64_t span = (int64_t)(a->count[i] - 1) * a->step[i];

		a->lo += span < 0 ? span : 0;
		a->hi += span > 0 ? span : 0;
	}
}

static void add_tile(struct replay *r, uint32_t e, uint32_t n, const struct clock *start,
		     const struct isa_tile *t, bool write)
{
	struct access *a;

	if (!t->nparts)
		return;
	a = add(r, e, e, n, start, write);
	a->space = t->space;
	a->part0 = t->part0;
	a->nparts = t->nparts;
	a->elem = isa_dtype_bytes(t->dtype);
	a->offset = t->offset;
	for (uint32_t i = 0; i < ISA_TILE_DIMS; i++) {
		a->count[i] = t->count[i];
		a->step[i] = (int64_t)(int32_t)t->step[i] * a->elem;
	}
	bound(a);
}

static void add_column(struct replay *r, uint32_t e, uint32_t n, const struct clock *start,
		       const struct isa_column *c, uint32_t nparts)
{
	struct access *a = add(r, e, e, n, start, false);

	a->space = c->space;
	a->part0 = c->part0;
	a->nparts = nparts;
	a->elem = isa_dtype_bytes(c->dtype);
	a->offset = c->offset;
	bound(a);
}

static void add_side(struct replay *r, uint32_t e, uint32_t actor, uint32_t n,
		     const struct clock *start, const struct isa_dma_side *s, uint32_t elem,
		     bool write)
{
	struct access *a;

	if (s->space == ISA_SPACE_SLOT && s->slot == ISA_SLOT_CONST)
		return;
	a = add(r, e, actor, n, start, write);
	a->elem = elem;
	a->offset = (int64_t)s->offset;
	for (uint32_t i = 0; i < s->ndim; i++) {
		a->count[i] = s->count[i];
		a->step[i] = (int64_t)s->step[i];
	}
	if (s->space == ISA_SPACE_SLOT) {
		a->space = 2 + (s->slot < r->n_slots ? r->memory[s->slot] : s->slot);
	} else {
		a->space = s->space;
		a->part0 = s->part0;
		a->nparts = s->part_step ? s->nparts : 1;
	}
	bound(a);
}

/* A side of an indirect transfer; of the indexed one all rows. */
static void add_rows(struct replay *r, uint32_t e, uint32_t actor, uint32_t n,
		     const struct clock *start, const struct isa_inst *in, bool write)
{
	const struct isa_dma_indirect *d = &in->indirect;
	const struct isa_dma_rows *rows = write ? &d->dst : &d->src;
	bool indexed = write == (in->opcode == ISA_DMA_SCATTER);
	struct isa_dma_side side = { .space = rows->space,
				     .ndim = rows->ndim,
				     .slot = rows->slot,
				     .part0 = rows->part0,
				     .nparts = rows->nparts,
				     .part_step = rows->part_step,
				     .offset = rows->offset };

	memcpy(side.step + indexed, rows->step, sizeof(rows->step));
	memcpy(side.count + indexed, rows->count, sizeof(rows->count));
	if (indexed) {
		side.ndim++;
		side.step[0] = d->row_step;
		side.count[0] = d->rows;
	}
	add_side(r, e, actor, n, start, &side, in->elem_bytes, write);
}

static void add_index(struct replay *r, uint32_t e, uint32_t actor, uint32_t n,
		      const struct clock *start, const struct isa_dma_index *i)
{
	struct access *a = add(r, e, actor, n, start, false);

	a->space = i->space;
	a->part0 = i->part0;
	a->nparts = i->nparts;
	a->elem = isa_dtype_bytes(i->dtype);
	a->offset = i->offset;
	a->count[0] = i->count;
	a->step[0] = (int64_t)(int32_t)i->step * a->elem;
	bound(a);
}

static void compute_accesses(struct replay *r, uint32_t e, uint32_t n, const struct clock *start,
			     const struct isa_inst *in)
{
	const struct isa_compute *c = &in->compute;
	bool accumulates = in->flags & ISA_F_ACCUM;

	add_tile(r, e, n, start, &c->dst, true);
	if (in->opcode != ISA_IOTA)
		add_tile(r, e, n, start, &c->src0, false);
	add_tile(r, e, n, start, &c->src1, in->opcode == ISA_ACTIVATION && accumulates);
	if (in->flags & ISA_F_VEC0)
		add_column(r, e, n, start, &c->vec0, c->dst.nparts);
	if (in->flags & ISA_F_VEC1)
		add_column(r, e, n, start, &c->vec1, c->dst.nparts);
}

/* --- replay ------------------------------------------------------------------------------- */

static bool ready(const struct replay *r, const struct isa_inst *in)
{
	for (uint32_t i = 0; i < ISA_WAITS; i++)
		if (in->wait[i].kind == ISA_WAIT_GE &&
		    r->sem[in->wait[i].sem].value < in->wait[i].value)
			return false;
	return true;
}

/* What is known to be done once the waits hold: the first update that makes each true. */
static void take_waits(struct replay *r, const struct isa_inst *in, struct clock *clock)
{
	for (uint32_t i = 0; i < ISA_WAITS; i++) {
		const struct semaphore *s = &r->sem[in->wait[i].sem];

		if (in->wait[i].kind != ISA_WAIT_GE)
			continue;
		for (uint32_t k = 0; k < s->n; k++)
			if (s->events[k].value >= in->wait[i].value) {
				join(clock, &s->events[k].done);
				break;
			}
	}
}

static const char *make_updates(struct replay *r, const struct isa_inst *in, uint32_t actor,
				const struct clock *done)
{
	for (uint32_t i = 0; i < ISA_UPDATES; i++) {
		struct semaphore *s = &r->sem[in->update[i].sem];

		if (in->update[i].kind != ISA_UPDATE_ADD)
			continue;
		if (s->owner >= 0 && s->owner != (int)actor)
			return defect("semaphore %u is updated by actors %d and %u: values mean "
				      "nothing",
				      in->update[i].sem, s->owner, actor);
		s->owner = (int)actor;
		s->value += in->update[i].value;
		if (s->n == s->cap) {
			s->cap = s->cap ? s->cap * 2 : 64;
			s->events = realloc(s->events, s->cap * sizeof(*s->events));
			if (!s->events)
				abort();
		}
		s->events[s->n++] = (struct event){ s->value, *done };
	}
	return NULL;
}

static const char *step(struct replay *r, uint32_t e)
{
	const struct isa_inst *in = &r->inst[e][r->pc[e]];
	struct clock start = r->engine[e], done;
	const char *error = NULL;
	uint32_t n = r->pc[e] + 1;

	take_waits(r, in, &start);
	if (isa_is_dma(in->opcode)) {
		uint32_t q = in->dma_queue, actor = ENGINES + q;

		if (r->feeder[q] >= 0 && r->feeder[q] != (int)e)
			return defect("queue %u is fed by engines %d and %u", q, r->feeder[q], e);
		r->feeder[q] = (int)e;
		r->engine[e] = start;
		join(&start, &r->queue[q]);
		done = start;
		n = ++done.n[actor];
		r->queue[q] = done;
		if (in->opcode == ISA_DMA) {
			add_side(r, e, actor, n, &start, &in->dma.dst, in->elem_bytes, true);
			add_side(r, e, actor, n, &start, &in->dma.src, in->elem_bytes, false);
		} else {
			add_rows(r, e, actor, n, &start, in, true);
			add_rows(r, e, actor, n, &start, in, false);
			add_index(r, e, actor, n, &start, &in->indirect.index);
		}
		error = make_updates(r, in, actor, &done);
	} else {
		if (in->opcode >= ISA_MEMSET)
			compute_accesses(r, e, n, &start, in);
		done = start;
		done.n[e] = n;
		r->engine[e] = done;
		error = make_updates(r, in, e, &done);
	}
	r->pc[e]++;
	return error;
}

static const char *run(struct replay *r)
{
	for (bool moved = true; moved;) {
		moved = false;
		for (uint32_t e = 0; e < ENGINES; e++)
			while (r->pc[e] < r->h->stream[e].count &&
			       ready(r, &r->inst[e][r->pc[e]])) {
				const char *error = step(r, e);

				if (error)
					return error;
				moved = true;
			}
	}
	for (uint32_t e = 0; e < ENGINES; e++)
		if (r->pc[e] < r->h->stream[e].count)
			return defect("engine %u waits for ever at %u", e, r->pc[e]);
	return NULL;
}

static const char *check_end(const struct replay *r)
{
	struct clock all = { { 0 } };

	for (uint32_t e = 0; e < ENGINES; e++)
		join(&all, &r->engine[e]);
	for (uint32_t q = 0; q < ISA_DMA_QUEUES; q++)
		if (all.n[ENGINES + q] < r->queue[q].n[ENGINES + q])
			return defect("the program ends before queue %u has made its last transfer",
				      q);
	return NULL;
}

/* --- conflicts ------------------------------------------------------------------------------ */

/* Marks, or looks for marks of, the bytes of a that lie in [lo, hi). */
static bool touch(const struct access *a, int64_t lo, int64_t hi, uint8_t *map, bool mark)
{
	uint32_t i[DIMS_MAX] = { 0 };
	int64_t at = a->offset;

	for (;;) {
		for (int64_t b = at; b < at + a->elem; b++)
			if (b >= lo && b < hi) {
				if (mark)
					map[b - lo] = 1;
				else if (map[b - lo])
					return true;
			}
		int d = DIMS_MAX - 1;

		for (; d >= 0; d--) {
			at += a->step[d];
			if (++i[d] < a->count[d])
				break;
			at -= a->step[d] * a->count[d];
			i[d] = 0;
		}
		if (d < 0)
			return false;
	}
}

static bool same_byte(const struct access *a, const struct access *b)
{
	int64_t lo = a->lo > b->lo ? a->lo : b->lo, hi = a->hi < b->hi ? a->hi : b->hi;
	uint8_t *map = calloc(1, (size_t)(hi - lo));
	bool hit;

	if (!map)
		abort();
	touch(a, lo, hi, map, true);
	hit = touch(b, lo, hi, map, false);
	free(map);
	return hit;
}

static bool before(const struct access *a, const struct access *b)
{
	return b->start.n[a->actor] >= a->n;
}

static const char *check_pairs(const struct replay *r)
{
	static const char *const spaces[] = { "sbuf", "psum", "memory" };

	for (uint32_t i = 0; i < r->n_acc; i++)
		for (uint32_t j = 0; j < i; j++) {
			const struct access *a = &r->acc[i], *b = &r->acc[j];

			if (a->space != b->space || !(a->write || b->write) || a->lo >= b->hi ||
			    b->lo >= a->hi || a->part0 >= b->part0 + b->nparts ||
			    b->part0 >= a->part0 + a->nparts)
				continue;
			/* One operation reads and writes in place. */
			if (a->actor == b->actor && a->n == b->n)
				continue;
			if (before(a, b) || before(b, a) || !same_byte(a, b))
				continue;
			return defect("nothing orders %s by engine %u at %u and %s by engine %u at "
				      "%u "
				      "(%s%u, bytes %lld to %lld and %lld to %lld)",
				      a->write ? "a write" : "a read", a->engine, a->pc,
				      b->write ? "a write" : "a read", b->engine, b->pc,
				      spaces[a->space < 2 ? a->space : 2], a->space,
				      (long long)a->lo, (long long)a->hi, (long long)b->lo,
				      (long long)b->hi);
		}
	return NULL;
}

const char *test_hazards(const struct nc_program *program, uint32_t n_slots, const uint32_t *memory,
			 uint32_t max)
{
	struct replay *r = calloc(1, sizeof(*r));
	const char *error;
	uint32_t total = 0;

	if (!r)
		abort();
	r->h = program->image;
	r->memory = memory;
	r->n_slots = n_slots;
	for (uint32_t e = 0; e < ENGINES; e++) {
		r->inst[e] = (const struct isa_inst *)((const char *)r->h + r->h->stream[e].offset);
		total += r->h->stream[e].count;
	}
	for (uint32_t s = 0; s < ISA_SEMAPHORES; s++)
		r->sem[s].owner = -1;
	for (uint32_t q = 0; q < ISA_DMA_QUEUES; q++)
		r->feeder[q] = -1;
	if (total > max) {
		free(r);
		return NULL;
	}
	error = run(r);
	if (!error)
		error = check_end(r);
	if (!error)
		error = check_pairs(r);
	for (uint32_t s = 0; s < ISA_SEMAPHORES; s++)
		free(r->sem[s].events);
	free(r->acc);
	free(r);
	return error;
}
