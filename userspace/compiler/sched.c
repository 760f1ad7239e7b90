/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Order by semaphores. There are 21 agents: five engines, which finish their
 * compute operations in order, and 16 DMA queues, which finish their transfers
 * in order. A queue is fed by one engine only, so the order of its transfers is
 * fixed too. Each agent has one semaphore, to which those of its operations
 * that somebody waits for add 1 when done; "agent a has done its n-th" is then a
 * wait for a value.
 *
 * Operations are taken in program order. What each must wait for follows from
 * the memory it touches; what the waiting engine already knows, from earlier
 * waits and from what those it waited for had waited for, is left out. This
 * knowledge is a vector clock: for each agent, how many operations are done.
 *
 * Hazards on chip are found by the bytes and partitions of each buffer, and
 * when a place goes to a new buffer, by what was done there last. In HBM they are
 * found between groups: within one group a kernel never reads what another of its
 * transfers writes, and writes over what it reads only after that (where one does, the
 * transfers that write have a group of their own); so a group waits
 * for all earlier ones that wrote the memory it reads or touched the memory it
 * writes, and a write for the reads before it.
 */
#include <string.h>

#include "lir.h"

#define AGENTS	       (5 + ISA_DMA_QUEUES)
#define QUEUE_AGENT(q) (5 + (q))
#define LOAD_QUEUES    10 /* of the DMA queues; the others store */

struct clock {
	uint32_t n[AGENTS];
};

/* Use of a part of a buffer. */
struct use {
	struct use *next;
	uint32_t lo, hi; /* bytes in the buffer */
	uint8_t p0, p1; /* partitions */
	uint8_t agent;
	bool write;
	uint32_t n; /* operation of the agent */
};

struct buf_state {
	struct use *uses;
	struct clock *before; /* what the place was used for before; NULL: nothing */
	bool begun;
};

/* Bytes of every partition that a buffer no longer in use had, and what was done there last. */
struct segment {
	uint32_t lo, hi;
	struct clock used;
};

struct past {
	struct segment *segments; /* by lo, none overlapping */
	uint32_t n, cap;
};

struct mem_state {
	uint32_t group;
	struct clock reads, writes; /* of earlier groups */
	struct clock new_reads, new_writes; /* of this one */
};

struct sched {
	struct nc_ctx *ctx;
	struct lir *lir;
	struct lsched *out;
	struct buf_state *bufs;
	struct past past[2];
	struct mem_state *mems;
	struct use *free_uses;
	struct clock known[5]; /* by each engine */
	struct clock *done; /* what is done when operation i is */
	uint32_t *agent_ops[AGENTS]; /* n-th operation (from 1) of each agent */
	uint32_t count[AGENTS], cap[AGENTS];
	uint32_t *wait_op; /* for each wait: the operation waited for */
	uint32_t n_waits, cap_waits, cap_wait_op;
	uint32_t next_load, next_store, store_engine;
};

static void join(struct clock *a, const struct clock *b)
{
	for (uint32_t i = 0; i < AGENTS; i++)
		if (b->n[i] > a->n[i])
			a->n[i] = b->n[i];
}

static void raise_to(struct clock *clock, uint32_t agent, uint32_t n)
{
	if (n > clock->n[agent])
		clock->n[agent] = n;
}

/* --- what an operation touches --------------------------------------------------------- */

static void tile_access(const struct ltile *t, bool write, struct access *out, uint32_t *n)
{
	int64_t lo = 0, hi = 0;
	uint32_t bytes = isa_dtype_bytes(t->dtype);

	if (t->buf == LIR_NONE)
		return;
	for (uint32_t i = 0; i < ISA_TILE_DIMS; i++) {
		int64_t span = (int64_t)(t->count[i] - 1) * t->step[i];

		lo += span < 0 ? span : 0;
		hi += span > 0 ? span : 0;
	}
	out[(*n)++] = (struct access){ t->buf,
				       (uint32_t)(t->offset + lo * bytes),
				       (uint32_t)(t->offset + (hi + 1) * bytes),
				       t->part0,
				       (uint32_t)t->part0 + t->nparts,
				       write };
}

static void col_access(const struct lcol *c, uint32_t nparts, struct access *out, uint32_t *n)
{
	if (c->buf == LIR_NONE)
		return;
	out[(*n)++] =
		(struct access){ c->buf,   c->offset,	      c->offset + isa_dtype_bytes(c->dtype),
				 c->part0, c->part0 + nparts, false };
}

static void side_access(const struct lside *s, uint32_t elem, bool write, struct access *out,
			uint32_t *n)
{
	int64_t lo = s->offset, hi = s->offset + elem;

	if (s->buf == LIR_NONE)
		return;
	for (uint32_t i = 0; i < s->ndim; i++) {
		int64_t span = (int64_t)(s->count[i] - 1) * s->step[i];

		lo += span < 0 ? span : 0;
		hi += span > 0 ? span : 0;
	}
	out[(*n)++] = (struct access){ s->buf,
				       (uint32_t)lo,
				       (uint32_t)hi,
				       s->part0,
				       (uint32_t)s->part0 + (s->part_step ? s->nparts : 1),
				       write };
}

static void index_access(const struct lindex *i, struct access *out, uint32_t *n)
{
	uint32_t bytes = i->count * isa_dtype_bytes(i->dtype);

	out[(*n)++] = (struct access){ i->buf, i->offset, i->offset + bytes, 0, i->nparts, false };
}

uint32_t lir_accesses(const struct lop *op, struct access *out)
{
	uint32_t n = 0;

	if (isa_is_dma(op->opcode)) {
		side_access(&op->to, op->elem_bytes, true, out, &n);
		side_access(&op->from, op->elem_bytes, false, out, &n);
		if (op->opcode != ISA_DMA)
			index_access(&op->index, out, &n);
		return n;
	}
	tile_access(&op->dst, true, out, &n);
	tile_access(&op->src0, false, out, &n);
	/* ACTIVATION's accumulator is written. */
	tile_access(&op->src1, op->opcode == ISA_ACTIVATION, out, &n);
	col_access(&op->vec0, op->dst.nparts, out, &n);
	col_access(&op->vec1, op->dst.nparts, out, &n);
	return n;
}

/* --- hazards ----------------------------------------------------------------------------- */

/* First segment that ends above lo. */
static uint32_t find_segment(const struct past *past, uint32_t lo)
{
	uint32_t a = 0, b = past->n;

	while (a < b) {
		uint32_t mid = (a + b) / 2;

		if (past->segments[mid].hi <= lo)
			a = mid + 1;
		else
			b = mid;
	}
	return a;
}

static void begin_buf(struct sched *s, uint32_t b)
{
	const struct lbuf *buf = &s->lir->bufs[b];
	const struct past *past = &s->past[buf->space];
	struct buf_state *state = &s->bufs[b];

	state->begun = true;
	for (uint32_t i = find_segment(past, buf->offset);
	     i < past->n && past->segments[i].lo < buf->offset + buf->bytes; i++) {
		if (!state->before)
			state->before = nci_alloc(s->ctx, sizeof(*state->before));
		join(state->before, &past->segments[i].used);
	}
}

/* Cuts [lo, hi) out of the past and puts a segment there, in place of the i-th on. */
static void replace_segments(struct sched *s, struct past *past, uint32_t lo, uint32_t hi,
			     const struct clock *used)
{
	uint32_t first = find_segment(past, lo), last = first, n_new = 0;
	struct segment new[3];

	while (last < past->n && past->segments[last].lo < hi)
		last++;
	if (first < last && past->segments[first].lo < lo) {
		new[n_new] = past->segments[first];
		new[n_new++].hi = lo;
	}
	new[n_new++] = (struct segment){ lo, hi, *used };
	if (first < last && past->segments[last - 1].hi > hi) {
		new[n_new] = past->segments[last - 1];
		new[n_new++].lo = hi;
	}
	past->segments = nci_grow(s->ctx, past->segments, &past->cap, past->n + n_new,
				  sizeof(*past->segments));
	memmove(past->segments + first + n_new, past->segments + last,
		(past->n - last) * sizeof(*past->segments));
	memcpy(past->segments + first, new, n_new * sizeof(*new));
	past->n = past->n - (last - first) + n_new;
}

/*
 * Whoever gets the place waits for the uses of this buffer, and so for what this
 * buffer's first use had waited for.
 */
static void end_buf(struct sched *s, uint32_t b)
{
	const struct lbuf *buf = &s->lir->bufs[b];
	struct buf_state *state = &s->bufs[b];
	struct clock used = { { 0 } };
	struct use *next;

	if (!state->uses)
		return;
	for (struct use *u = state->uses; u; u = next) {
		next = u->next;
		raise_to(&used, u->agent, u->n);
		u->next = s->free_uses;
		s->free_uses = u;
	}
	state->uses = NULL;
	replace_segments(s, &s->past[buf->space], buf->offset, buf->offset + buf->bytes, &used);
}

static void chip_hazards(struct sched *s, const struct access *a, struct clock *deps)
{
	struct buf_state *state = &s->bufs[a->buf];

	if (!state->begun)
		begin_buf(s, a->buf);
	if (a->write && state->before)
		join(deps, state->before);
	for (const struct use *u = state->uses; u; u = u->next)
		if ((a->write || u->write) && u->lo < a->hi && a->lo < u->hi && u->p0 < a->p1 &&
		    a->p0 < u->p1)
			raise_to(deps, u->agent, u->n);
}

static void record_use(struct sched *s, const struct access *a, uint32_t agent, uint32_t n)
{
	struct buf_state *state = &s->bufs[a->buf];
	struct use *u;

	for (u = state->uses; u; u = u->next)
		if (u->agent == agent && u->write == a->write && u->lo == a->lo && u->hi == a->hi &&
		    u->p0 == a->p0 && u->p1 == a->p1) {
			u->n = n;
			return;
		}
	u = s->free_uses;
	if (u)
		s->free_uses = u->next;
	else
		u = nci_alloc(s->ctx, sizeof(*u));
	*u = (struct use){ state->uses,	   a->lo,	   a->hi,    (uint8_t)a->p0,
			   (uint8_t)a->p1, (uint8_t)agent, a->write, n };
	state->uses = u;
}

static struct mem_state *memory(struct sched *s, const struct lside *side, uint32_t group)
{
	struct mem_state *m;

	if (side->buf != LIR_NONE || side->slot == ISA_SLOT_CONST)
		return NULL;
	m = &s->mems[s->lir->slots[side->slot].memory];
	if (m->group != group) {
		m->group = group;
		join(&m->reads, &m->new_reads);
		join(&m->writes, &m->new_writes);
	}
	return m;
}

static void memory_hazards(struct sched *s, const struct lop *op, uint32_t agent, uint32_t n,
			   struct clock *deps)
{
	struct mem_state *to = memory(s, &op->to, op->group);
	struct mem_state *from = memory(s, &op->from, op->group);

	if (from) {
		join(deps, &from->writes);
		raise_to(&from->new_reads, agent, n);
	}
	if (to) {
		join(deps, &to->writes);
		join(deps, &to->reads);
		/* In place: what was read so far may be what is overwritten now. */
		join(deps, &to->new_reads);
		raise_to(&to->new_writes, agent, n);
	}
}

/* --- waits ---------------------------------------------------------------------------------- */

static void add_wait(struct sched *s, uint32_t agent, uint32_t n)
{
	uint32_t op = s->agent_ops[agent][n];

	s->out->waits = nci_grow(s->ctx, s->out->waits, &s->cap_waits, s->n_waits + 1,
				 sizeof(*s->out->waits));
	s->wait_op =
		nci_grow(s->ctx, s->wait_op, &s->cap_wait_op, s->n_waits + 1, sizeof(*s->wait_op));
	s->out->waits[s->n_waits].sem =
		(uint8_t)(agent < 5 ? NCI_SEM_ENGINE(agent) : NCI_SEM_QUEUE(agent - 5));
	s->wait_op[s->n_waits++] = op;
	s->out->signals[op] = 1;
}

/* Waits for what the engine does not know yet, latest operations first: they imply most. */
static void wait_for(struct sched *s, struct clock *known, const struct clock *deps)
{
	for (;;) {
		uint32_t best = AGENTS, best_op = 0;

		for (uint32_t a = 0; a < AGENTS; a++)
			if (deps->n[a] > known->n[a] &&
			    (best == AGENTS || s->agent_ops[a][deps->n[a]] > best_op)) {
				best = a;
				best_op = s->agent_ops[a][deps->n[a]];
			}
		if (best == AGENTS)
			return;
		add_wait(s, best, deps->n[best]);
		join(known, &s->done[best_op]);
	}
}

static uint32_t next_of_agent(struct sched *s, uint32_t agent, uint32_t op)
{
	uint32_t n = ++s->count[agent];

	s->agent_ops[agent] = nci_grow(s->ctx, s->agent_ops[agent], &s->cap[agent], n + 1,
				       sizeof(*s->agent_ops[agent]));
	s->agent_ops[agent][n] = op;
	return n;
}

static uint32_t assign_agent(struct sched *s, struct lop *op)
{
	if (!isa_is_dma(op->opcode))
		return op->engine;
	if (op->engine == LIR_STORE_ENGINE) {
		op->engine = (uint8_t)s->store_engine;
		op->queue =
			(uint8_t)(LOAD_QUEUES + s->next_store++ % (ISA_DMA_QUEUES - LOAD_QUEUES));
	} else {
		op->queue = (uint8_t)(s->next_load++ % LOAD_QUEUES);
	}
	return QUEUE_AGENT(op->queue);
}

static void schedule_op(struct sched *s, uint32_t i)
{
	struct lop *op = &s->lir->ops[i];
	uint32_t agent = assign_agent(s, op), engine = op->engine;
	uint32_t n = next_of_agent(s, agent, i), n_acc;
	struct clock deps = { { 0 } }, *known = &s->known[engine];
	struct access acc[LIR_ACCESSES];

	n_acc = lir_accesses(op, acc);
	for (uint32_t j = 0; j < n_acc; j++)
		chip_hazards(s, &acc[j], &deps);
	if (isa_is_dma(op->opcode))
		memory_hazards(s, op, agent, n, &deps);
	if (deps.n[agent] >= n) /* itself, as far as it touches one memory twice */
		deps.n[agent] = n - 1;
	/* Of its own queue everything earlier is done before. */
	if (agent >= 5)
		deps.n[agent] = 0;
	wait_for(s, known, &deps);
	s->done[i] = *known;
	if (agent < 5)
		known->n[agent] = n;
	else if (n > 1)
		join(&s->done[i], &s->done[s->agent_ops[agent][n - 1]]);
	s->done[i].n[agent] = n;
	for (uint32_t j = 0; j < n_acc; j++)
		record_use(s, &acc[j], agent, n);
	for (uint32_t j = 0; j < n_acc; j++)
		if (s->lir->bufs[acc[j].buf].last == i)
			end_buf(s, acc[j].buf);
	s->out->used[engine] = true;
}

/* The launch ends when all engines halt: what no engine waited for, the feeders' HALT does. */
static void schedule_end(struct sched *s)
{
	struct clock all = { { 0 } };

	for (uint32_t e = 0; e < 5; e++)
		join(&all, &s->known[e]);
	for (uint32_t e = 0; e < 5; e++) {
		s->out->first_wait[s->lir->n_ops + e] = s->n_waits;
		for (uint32_t q = 0; q < ISA_DMA_QUEUES; q++) {
			uint32_t a = QUEUE_AGENT(q), n = s->count[a];

			if (!n || s->lir->ops[s->agent_ops[a][n]].engine != e || all.n[a] >= n)
				continue;
			add_wait(s, a, n);
			join(&all, &s->done[s->agent_ops[a][n]]);
		}
	}
	s->out->first_wait[s->lir->n_ops + 5] = s->n_waits;
}

/* Values of the semaphores, now that it is known which operations signal. */
static void number_waits(struct sched *s)
{
	uint32_t *value = nci_alloc(s->ctx, s->lir->n_ops * sizeof(*value));

	for (uint32_t a = 0; a < AGENTS; a++) {
		uint32_t v = 0;

		for (uint32_t n = 1; n <= s->count[a]; n++) {
			v += s->out->signals[s->agent_ops[a][n]];
			value[s->agent_ops[a][n]] = v;
		}
	}
	for (uint32_t i = 0; i < s->n_waits; i++)
		s->out->waits[i].value = value[s->wait_op[i]];
}

/* Stores go through an engine that computes nothing, if there is one. */
static uint32_t pick_store_engine(const struct lir *lir)
{
	bool busy[5] = { false };

	for (uint32_t i = 0; i < lir->n_ops; i++)
		if (!isa_is_dma(lir->ops[i].opcode))
			busy[lir->ops[i].engine] = true;
	return busy[ISA_TENSOR] || !busy[ISA_GPSIMD] ? ISA_GPSIMD : ISA_TENSOR;
}

void nci_schedule(struct lir *lir, struct lsched *sched)
{
	struct nc_ctx *ctx = lir->ctx;
	struct sched s = { .ctx = ctx, .lir = lir, .out = sched };

	s.bufs = nci_alloc(ctx, lir->n_bufs * sizeof(*s.bufs));
	s.mems = nci_alloc(ctx, lir->n_slots * sizeof(*s.mems));
	s.done = nci_alloc(ctx, lir->n_ops * sizeof(*s.done));
	s.store_engine = pick_store_engine(lir);
	sched->signals = nci_alloc(ctx, lir->n_ops);
	sched->first_wait = nci_alloc(ctx, (lir->n_ops + 6) * sizeof(*sched->first_wait));
	for (uint32_t i = 0; i < lir->n_ops; i++) {
		sched->first_wait[i] = s.n_waits;
		schedule_op(&s, i);
	}
	schedule_end(&s);
	number_waits(&s);
}
