// SPDX-License-Identifier: Apache-2.0
/*
 * Happens-before of a program: its streams are replayed by semaphores and registers alone. Since
 * semaphores only grow, and registers are of one engine, the order in which the engines take turns here
 * makes no difference to where they get. What a register is loaded with is not known: there it ends.
 */
#include <stdlib.h>
#include <string.h>

#include "check_priv.h"
#include "registers.h"

#define CLOCK_ALIGN 8 /* joins are vector code */

/* Updates of a semaphore by one actor. */
struct owner {
	uint8_t actor;
	uint32_t sum;
	uint32_t n, max;
	struct update {
		uint32_t before; /* the actor's sum before this one */
		uint32_t clock; /* index of what is known to be over with it */
	} *update;
};

/* A wait that holds, and how much anyone but the actor could add before it says nothing. */
struct passed {
	uint32_t access, value;
	uint32_t slack;
	uint8_t actor;
};

struct semaphore {
	uint32_t value;
	uint32_t last; /* access that updated it */
	uint32_t n_owners;
	struct owner *owner;
	uint32_t n_passed, max_passed;
	struct passed *passed;
};

struct run {
	struct nm_replay r;
	uint32_t width; /* components of a clock */
	uint32_t pc[EXI_ENGINES];
	uint32_t turn[EXI_ENGINES]; /* instructions done */
	int32_t reg[EXI_ENGINES][ISA_REGISTERS];
	uint32_t max_accesses;
	uint8_t actor[ISA_DMA_QUEUES][EXI_ENGINES]; /* 0: the engine does not feed the queue */
	uint32_t fed[ISA_DMA_QUEUES][EXI_ENGINES]; /* the engine's last transfer there, turn + 1 */
	uint32_t *engine; /* clock of each */
	uint32_t *over; /* clock of each actor's last transfer */
	uint32_t *start, *done; /* of the current access */
	uint32_t *clocks; /* of updates */
	uint32_t n_clocks, max_clocks;
	struct semaphore sem[ISA_SEMAPHORES];
};

void nm_find(struct nm_replay *r, uint16_t status, uint32_t id, bool write, uint32_t other,
	     bool other_write, uint32_t mem, uint16_t slot, uint64_t value)
{
	const struct nm_access *a = &r->access[id], *b = other ? &r->access[other] : NULL;
	uint64_t limit = b ? EXI_OTHER(b->engine, b->pc, b->opcode) : EXI_OTHER_NONE;
	bool psum = status >= EXI_FAULT_PSUM_NO_START && status <= EXI_FAULT_PSUM_MIXED;
	struct nm_checked *v = r->verdict;
	struct nm_finding *f;

	if (status != EXI_FAULT_UNCHECKED &&
	    !(r->checks & (psum			    ? NM_CHECK_PSUM :
			   status == EXI_FAULT_RACE ? NM_CHECK_RACE :
						      NM_CHECK_SEMAPHORE)))
		return;
	for (f = v->finding; f < v->finding + v->n_findings; f++)
		if (f->fault.status == status && f->fault.engine == a->engine &&
		    f->fault.pc == a->pc && f->fault.limit == limit)
			return;
	v->found++;
	if (v->n_findings == NM_FINDINGS)
		return;
	v->n_findings++;
	*f = (struct nm_finding){
		.fault = { .status = status,
			   .slot = slot,
			   .pc = a->pc,
			   .engine = a->engine,
			   .opcode = a->opcode,
			   .value = value,
			   .limit = limit },
		.write = write,
		.other_write = other_write,
		.mem = mem,
	};
}

/* --- clocks ------------------------------------------------------------------------------- */

static void join(const struct run *u, uint32_t *a, const uint32_t *b)
{
	for (uint32_t i = 0; i < u->width; i++)
		a[i] = a[i] > b[i] ? a[i] : b[i];
}

static void copy(const struct run *u, uint32_t *a, const uint32_t *b)
{
	memcpy(a, b, u->width * sizeof(*a));
}

static uint32_t *engine_clock(const struct run *u, unsigned int e)
{
	return u->engine + (size_t)e * u->width;
}

static uint32_t *over_clock(const struct run *u, unsigned int actor)
{
	return u->over + (size_t)actor * u->width;
}

static void *grow(struct run *u, void *p, uint32_t n, uint32_t *max, size_t size)
{
	uint32_t more = *max ? 2 * *max : 16;

	if (n < *max)
		return p;
	p = reallocarray(p, more, size);
	if (p)
		*max = more;
	else
		u->r.failed = true;
	return p;
}

/* Index of a copy of the current access's clock. */
static uint32_t keep_clock(struct run *u)
{
	uint32_t *p =
		grow(u, u->clocks, u->n_clocks, &u->max_clocks, u->width * sizeof(*u->clocks));

	if (!p)
		return 0;
	u->clocks = p;
	copy(u, p + (size_t)u->n_clocks * u->width, u->done);
	return u->n_clocks++;
}

/* --- semaphores --------------------------------------------------------------------------- */

static bool ready(const struct run *u, unsigned int e, const struct nm_inst *inst)
{
	for (unsigned int i = 0; i < inst->n_waits; i++)
		if (u->sem[inst->wait_sem[i]].value < nm_wait_value(inst, i, u->reg[e]))
			return false;
	return true;
}

/* Updates of o, counted from the first, without any of which a sum of value is out of reach. */
static uint32_t needed(const struct owner *o, uint32_t others, uint32_t value)
{
	uint32_t lo = 0, hi = o->n;

	while (lo < hi) {
		uint32_t mid = (lo + hi) / 2;

		if ((uint64_t)o->update[mid].before + others < value)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Joins what must be over when the wait holds. */
static void take_wait(struct run *u, uint32_t id, struct semaphore *s, uint32_t value)
{
	struct passed p = { .access = id, .value = value, .slack = UINT32_MAX };
	void *mem;

	for (struct owner *o = s->owner; o < s->owner + s->n_owners; o++) {
		uint32_t others = s->value - o->sum, n = needed(o, others, value);
		uint32_t slack;

		if (!n)
			continue;
		join(u, u->start, u->clocks + (size_t)o->update[n - 1].clock * u->width);
		slack = value - others - o->update[n - 1].before;
		if (slack < p.slack) {
			p.slack = slack;
			p.actor = o->actor;
		}
	}
	if (p.slack == UINT32_MAX)
		return;
	mem = grow(u, s->passed, s->n_passed, &s->max_passed, sizeof(p));
	if (!mem)
		return;
	s->passed = mem;
	s->passed[s->n_passed++] = p;
}

/* Waits that hold already, and could have held by this update instead of those they were meant for. */
static void check_passed(struct run *u, uint32_t id, unsigned int actor, unsigned int sem,
			 uint32_t value)
{
	struct semaphore *s = &u->sem[sem];

	for (struct passed *p = s->passed; p < s->passed + s->n_passed; p++) {
		const struct nm_access *waiter = &u->r.access[p->access];

		if (p->actor == actor || !p->slack || u->start[waiter->engine] > waiter->turn)
			continue;
		p->slack = p->slack > value ? p->slack - value : 0;
		if (!p->slack)
			nm_find(&u->r, EXI_FAULT_SEM_AMBIGUOUS, p->access, false, id, true, 0,
				NM_SLOT_NONE, sem);
	}
}

static struct owner *owner_of(struct run *u, struct semaphore *s, unsigned int actor)
{
	struct owner *o;

	for (o = s->owner; o < s->owner + s->n_owners; o++)
		if (o->actor == actor)
			return o;
	o = reallocarray(s->owner, s->n_owners + 1, sizeof(*o));
	if (!o) {
		u->r.failed = true;
		return NULL;
	}
	s->owner = o;
	o += s->n_owners++;
	*o = (struct owner){ .actor = (uint8_t)actor };
	return o;
}

static void make_update(struct run *u, uint32_t id, unsigned int actor, unsigned int sem,
			uint32_t value, uint32_t clock)
{
	struct semaphore *s = &u->sem[sem];
	struct owner *o = owner_of(u, s, actor);
	void *mem = o ? grow(u, o->update, o->n, &o->max, sizeof(*o->update)) : NULL;

	if (!mem)
		return;
	o->update = mem;
	o->update[o->n++] = (struct update){ o->sum, clock };
	if (s->n_owners > 1)
		check_passed(u, id, actor, sem, value);
	if (s->value + value > ISA_SEM_MAX) {
		if (s->value < ISA_SEM_MAX)
			nm_find(&u->r, EXI_FAULT_SEM_OVERFLOW, id, true, s->last, true, 0,
				NM_SLOT_NONE, sem);
		value = ISA_SEM_MAX - s->value;
	}
	o->sum += value;
	s->value += value;
	s->last = id;
}

/* --- steps ---------------------------------------------------------------------------------- */

static uint8_t psum_element(unsigned int bytes)
{
	return bytes == 4 ? NM_PSUM_FP32 : bytes == 2 ? NM_PSUM_BF16 : NM_PSUM_OTHER;
}

static uint8_t psum_write(const struct nm_inst *inst)
{
	/* A transfer keeps bits: what it brings may be a sum. */
	if (isa_is_dma(inst->opcode))
		return psum_element(inst->dma->elem_bytes);
	if (inst->opcode == ISA_REG_STORE)
		return psum_element(inst->reg->bytes);
	if (inst->opcode < ISA_MEMSET || isa_is_reg(inst->opcode))
		return NM_PSUM_OTHER;
	return psum_element(inst->compute->dst.bytes) |
	       (inst->opcode == ISA_MATMUL ? NM_PSUM_MATMUL : 0);
}

static void touch(struct run *u, uint32_t id, const struct nm_inst *inst)
{
	bool adds = inst->opcode == ISA_MATMUL && inst->compute->flags & ISA_F_ACCUM;
	struct nm_span span[NM_SPANS_MAX];
	unsigned int n = nm_spans(&u->r, inst, span);

	u->r.start = u->start;
	for (unsigned int i = 0; i < n; i++) {
		bool psum = span[i].mem == ISA_SPACE_PSUM && u->r.psum;

		/* The sums are looked at before the shadow forgets how they were. */
		if (psum && !(adds && !span[i].write))
			nm_psum_touch(&u->r, id, &span[i], adds);
		nm_shadow_touch(&u->r, id, &span[i]);
	}
}

/* Clock at which a transfer starts: after what its engine did, and what is in its queue before it. */
static unsigned int enter_queue(struct run *u, unsigned int e, unsigned int q)
{
	for (unsigned int f = 0; f < EXI_ENGINES; f++)
		if (u->fed[q][f] && (f == e || u->start[f] >= u->fed[q][f]))
			join(u, u->start, over_clock(u, u->actor[q][f]));
	u->fed[q][e] = u->turn[e] + 1;
	return u->actor[q][e];
}

/* Number of the instruction that an engine has come to; 0: no memory. */
static uint32_t add_access(struct run *u, unsigned int e, const struct nm_inst *inst)
{
	uint32_t id = u->r.n_accesses + 1;
	void *mem = grow(u, u->r.access, id, &u->max_accesses, sizeof(*u->r.access));

	if (!mem)
		return 0;
	u->r.access = mem;
	u->r.n_accesses = id;
	u->r.access[id] = (struct nm_access){ .pc = u->pc[e],
					      .turn = u->turn[e],
					      .engine = (uint8_t)e,
					      .opcode = inst->opcode,
					      .psum = psum_write(inst) };
	return id;
}

/* The replay can't go on: what comes next of an engine depends on data, or does not come to an end. */
static void give_up(struct run *u, unsigned int e, const struct nm_inst *inst)
{
	uint32_t id = add_access(u, e, inst);

	u->r.verdict->unknown = true;
	if (id)
		nm_find(&u->r, EXI_FAULT_UNCHECKED, id, false, 0, false, 0, NM_SLOT_NONE, id - 1);
}

static bool can_follow(const struct run *u, const struct nm_inst *inst)
{
	return inst->opcode != ISA_REG_LOAD &&
	       !(u->r.program->branches && u->r.n_accesses >= NM_REPLAY_INSTS);
}

/* What an instruction touches; false: not what it should, which ends the launch there. */
static bool touch_moved(struct run *u, uint32_t id, unsigned int e, const struct nm_inst *inst)
{
	struct nm_moved_inst moved;
	struct nm_fault outside;
	struct nm_reg store;

	if (inst->shifted) {
		if (!nm_move_operands(inst, u->reg[e], &moved, &outside))
			return false;
		inst = &moved.inst;
	} else if (inst->opcode == ISA_REG_STORE) {
		store = *inst->reg;
		moved.inst = *inst;
		moved.inst.reg = &store;
		if (!nm_reg_place(inst->reg, u->reg[e], &store.place, &outside))
			return false;
		inst = &moved.inst;
	}
	touch(u, id, inst);
	return true;
}

static void step(struct run *u, unsigned int e)
{
	const struct nm_inst *inst = &u->r.program->stream[e].inst[u->pc[e]];
	uint32_t id, n = u->turn[e] + 1;
	unsigned int actor = e;

	if (!can_follow(u, inst)) {
		give_up(u, e, inst);
		return;
	}
	id = add_access(u, e, inst);
	if (!id)
		return;
	copy(u, u->start, engine_clock(u, e));
	for (unsigned int i = 0; i < inst->n_waits; i++) {
		int64_t value = nm_wait_value(inst, i, u->reg[e]);

		if (value > 0)
			take_wait(u, id, &u->sem[inst->wait_sem[i]], (uint32_t)value);
	}
	copy(u, engine_clock(u, e), u->start);
	engine_clock(u, e)[e] = n;
	if (isa_is_dma(inst->opcode)) {
		actor = enter_queue(u, e, inst->dma->queue);
		n = over_clock(u, actor)[actor] + 1;
	}
	copy(u, u->done, u->start);
	u->done[actor] = n;
	if (actor != e)
		copy(u, over_clock(u, actor), u->done);
	u->r.access[id].actor = (uint8_t)actor;
	u->r.access[id].n = n;
	if (!touch_moved(u, id, e, inst)) {
		u->r.verdict->unknown = true;
		return;
	}
	if (inst->n_updates) {
		uint32_t clock = keep_clock(u);

		for (unsigned int i = 0; i < inst->n_updates && !u->r.failed; i++)
			make_update(u, id, actor, inst->update_sem[i], inst->update_value[i],
				    clock);
	}
	u->pc[e] = nm_reg_step(inst, u->pc[e], u->reg[e]);
	u->turn[e]++;
}

/* --- deadlock ------------------------------------------------------------------------------- */

/* The first instruction still to come that updates a semaphore; its engine, or EXI_ENGINES. */
static unsigned int updater(const struct run *u, unsigned int sem, uint32_t *pc)
{
	for (unsigned int e = 0; e < EXI_ENGINES; e++) {
		const struct nm_stream *s = &u->r.program->stream[e];

		for (*pc = u->pc[e]; *pc < s->count; ++*pc)
			for (unsigned int i = 0; i < s->inst[*pc].n_updates; i++)
				if (s->inst[*pc].update_sem[i] == sem)
					return e;
	}
	return EXI_ENGINES;
}

/* Engine e waits for ever: who should have come, and where that one stands. */
static void find_stuck(struct run *u, unsigned int e)
{
	const struct nm_inst *inst = &u->r.program->stream[e].inst[u->pc[e]];
	uint32_t id = add_access(u, e, inst), other = 0, pc;
	unsigned int i = 0, f;

	while (i + 1 < inst->n_waits &&
	       u->sem[inst->wait_sem[i]].value >= nm_wait_value(inst, i, u->reg[e]))
		i++;
	f = updater(u, inst->wait_sem[i], &pc);
	if (f < EXI_ENGINES) {
		other = add_access(u, f, &u->r.program->stream[f].inst[pc]);
		u->r.access[other].pc = pc;
	}
	if (!u->r.failed)
		nm_find(&u->r, EXI_FAULT_DEADLOCK, id, false, other, true, 0, NM_SLOT_NONE,
			(uint64_t)nm_wait_value(inst, i, u->reg[e]) << 32 | inst->wait_sem[i]);
}

/* --- life ----------------------------------------------------------------------------------- */

/* Gives each queue and engine that feeds it a number; number of actors. */
static uint32_t number_actors(struct run *u)
{
	uint32_t n = EXI_ENGINES;

	for (unsigned int e = 0; e < EXI_ENGINES; e++) {
		const struct nm_stream *s = &u->r.program->stream[e];

		for (uint32_t pc = 0; pc < s->count; pc++)
			if (isa_is_dma(s->inst[pc].opcode) && !u->actor[s->inst[pc].dma->queue][e])
				u->actor[s->inst[pc].dma->queue][e] = (uint8_t)n++;
	}
	return n;
}

static bool set_up(struct run *u)
{
	uint32_t actors = number_actors(u);

	u->width = (actors + CLOCK_ALIGN - 1) / CLOCK_ALIGN * CLOCK_ALIGN;
	u->r.access = grow(u, NULL, 0, &u->max_accesses, sizeof(*u->r.access));
	u->engine = calloc((size_t)u->width * EXI_ENGINES, sizeof(uint32_t));
	u->over = calloc((size_t)u->width * actors, sizeof(uint32_t));
	u->start = calloc(u->width, sizeof(uint32_t));
	u->done = calloc(u->width, sizeof(uint32_t));
	if (u->r.access)
		memset(u->r.access, 0, sizeof(*u->r.access));
	return u->r.access && u->engine && u->over && u->start && u->done && nm_shadow_init(&u->r);
}

static void clean_up(struct run *u)
{
	for (struct semaphore *s = u->sem; s < u->sem + ISA_SEMAPHORES; s++) {
		for (uint32_t i = 0; i < s->n_owners; i++)
			free(s->owner[i].update);
		free(s->owner);
		free(s->passed);
	}
	nm_shadow_fini(&u->r);
	free(u->clocks);
	free(u->start);
	free(u->done);
	free(u->over);
	free(u->engine);
	free(u->r.access);
	free(u);
}

bool nm_replay(const struct nm_program *program, uint32_t checks, struct nm_checked *v)
{
	struct run *u = calloc(1, sizeof(*u));
	const bool *unknown = &v->unknown;
	bool moved = true, ok;

	if (!u)
		return false;
	u->r.program = program;
	u->r.verdict = v;
	u->r.checks = checks;
	u->r.failed = !set_up(u);
	while (moved && !u->r.failed && !*unknown) {
		moved = false;
		for (unsigned int e = 0; e < EXI_ENGINES; e++)
			for (const struct nm_stream *s = &program->stream[e];
			     u->pc[e] < s->count && ready(u, e, &s->inst[u->pc[e]]) &&
			     !u->r.failed && !*unknown;
			     moved = true)
				step(u, e);
	}
	for (unsigned int e = 0; e < EXI_ENGINES && !u->r.failed && !*unknown; e++)
		if (u->pc[e] < program->stream[e].count)
			find_stuck(u, e);
	ok = !u->r.failed;
	clean_up(u);
	return ok;
}
