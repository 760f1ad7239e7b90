// SPDX-License-Identifier: Apache-2.0
#include "sim.h"

#include <string.h>

#include "registers.h"

/* --- events -------------------------------------------------------------------------- */

static bool before(const struct nm_event *a, const struct nm_event *b)
{
	return a->ps != b->ps ? a->ps < b->ps : a->order < b->order;
}

static void push(struct nm_sim *s, struct nm_event ev)
{
	unsigned int i = s->n_events++;

	ev.order = s->order++;
	while (i > 0 && before(&ev, &s->event[(i - 1) / 2])) {
		s->event[i] = s->event[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	s->event[i] = ev;
}

static struct nm_event pop(struct nm_sim *s)
{
	struct nm_event first = s->event[0], last = s->event[--s->n_events];
	unsigned int i = 0;

	for (;;) {
		unsigned int child = 2 * i + 1;

		if (child + 1 < s->n_events && before(&s->event[child + 1], &s->event[child]))
			child++;
		if (child >= s->n_events || !before(&s->event[child], &last))
			break;
		s->event[i] = s->event[child];
		i = child;
	}
	s->event[i] = last;
	return first;
}

/* --- faults --------------------------------------------------------------------------- */

static bool fault(struct nm_sim *s, uint16_t status, unsigned int engine, uint32_t pc,
		  uint64_t value, uint64_t limit)
{
	s->result->fault = (struct nm_fault){
		.status = status,
		.slot = NM_SLOT_NONE,
		.engine = (uint8_t)engine,
		.pc = pc,
		.opcode = s->program->stream[engine].inst[pc].opcode,
		.value = value,
		.limit = limit,
	};
	return false;
}

static bool aborted(struct nm_sim *s, unsigned int engine)
{
	return fault(s, EXI_FAULT_ABORTED, engine, s->seq[engine].pc, 0, 0);
}

static bool attention(const struct nm_sim *s)
{
	return atomic_load_explicit(s->exec.attention, memory_order_relaxed);
}

/* --- semaphores ------------------------------------------------------------------------ */

static uint32_t sem_value(const struct nm_sim *s, unsigned int sem)
{
	return atomic_load_explicit(&s->sem[sem], memory_order_relaxed);
}

/* Index of the first wait that does not hold, or n_waits. */
static unsigned int unmet_wait(const struct nm_sim *s, unsigned int engine,
			       const struct nm_inst *inst)
{
	const int32_t *reg = s->seq[engine].reg;
	unsigned int i = 0;

	while (i < inst->n_waits &&
	       (int64_t)sem_value(s, inst->wait_sem[i]) >= nm_wait_value(inst, i, reg))
		i++;
	return i;
}

static bool chained(const struct nm_sim *s)
{
	return __builtin_expect(s->chain != NULL, 0);
}

/* What the instruction that an engine issues next has waited for last. */
static void chain_cause(struct nm_sim *s, unsigned int engine, bool waited)
{
	struct nm_chain *t = s->chain;

	if (waited && t->waker != NM_NODE_NONE) {
		t->cause[engine] = t->waker;
		t->why[engine] = NM_WHY_SEMAPHORE;
		t->sem[engine] = t->waker_sem;
		return;
	}
	t->cause[engine] = t->before[engine];
	t->why[engine] = t->before[engine] == NM_NODE_NONE ? NM_WHY_LAUNCH : NM_WHY_ENGINE;
}

/* Looks at the instruction at pc; ps: the time at which semaphores are as they are. */
static void look(struct nm_sim *s, unsigned int engine, uint64_t ps)
{
	const struct nm_stream *stream = &s->program->stream[engine];
	struct nm_sequencer *seq = &s->seq[engine];
	const struct nm_inst *inst = &stream->inst[seq->pc];

	seq->blocked = s->hung >> engine & 1 || unmet_wait(s, engine, inst) < inst->n_waits;
	seq->ready_ps = seq->free_ps > ps ? seq->free_ps : ps;
	if (chained(s))
		chain_cause(s, engine, ps > seq->free_ps);
}

static void wake(struct nm_sim *s, uint64_t ps)
{
	for (unsigned int e = 0; e < EXI_ENGINES; e++)
		if (!s->seq[e].done && s->seq[e].blocked)
			look(s, e, ps);
}

static bool update(struct nm_sim *s, const struct nm_event *ev)
{
	const struct nm_inst *inst = ev->inst;

	for (unsigned int i = 0; i < inst->n_updates; i++) {
		uint32_t sum = sem_value(s, inst->update_sem[i]) + inst->update_value[i];

		if (sum > ISA_SEM_MAX)
			return fault(s, EXI_FAULT_SEM_OVERFLOW, ev->engine, ev->pc,
				     inst->update_sem[i], ISA_SEM_MAX);
		atomic_store_explicit(&s->sem[inst->update_sem[i]], sum, memory_order_relaxed);
	}
	if (!inst->n_updates)
		return true;
	if (chained(s)) {
		s->chain->waker = ev->node;
		s->chain->waker_sem = inst->update_sem[0];
	}
	wake(s, ev->ps);
	if (chained(s))
		s->chain->waker = NM_NODE_NONE;
	return true;
}

/* --- instructions ------------------------------------------------------------------------ */

/* When a transfer moves data, and what it waited for before. */
struct turn {
	uint64_t start_ps; /* its turn in its queue */
	uint64_t first_ps, last_ps;
	unsigned int engine; /* the DMA engine that is done last */
	uint8_t why;
};

/* The bytes of a transfer issued at ps, out of the core's share of HBM. What is used up counts from the
 * issue on, lest transfers that start late hold up those that start early. */
static void take_share(struct nm_sim *s, const struct nm_dma *dma, uint64_t ps, struct turn *t)
{
	uint64_t from = s->hbm_ps > ps ? s->hbm_ps : ps;
	uint64_t end;

	s->hbm_ps = from + nm_hbm_ps(s->timing, dma->hbm_bytes, s->sharers);
	end = s->hbm_ps + nm_dma_start_ps + dma->lead_ps;
	if (end <= t->last_ps)
		return;
	if (from > ps) {
		t->first_ps = from + nm_dma_start_ps + dma->lead_ps;
		t->why = NM_WHY_HBM;
	}
	t->last_ps = end;
}

/* A transfer issued at ps takes its turn in its queue, then shares the DMA engines with those of other
 * queues. */
static struct turn schedule_dma(struct nm_sim *s, const struct nm_dma *dma, uint64_t ps)
{
	uint64_t start = ps + nm_dma_start_ps + dma->lead_ps;
	uint64_t share = dma->cost_ps / dma->engines;
	struct turn t = { .why = NM_WHY_LAUNCH };

	if (start < s->queue_ps[dma->queue]) {
		start = s->queue_ps[dma->queue];
		t.why = NM_WHY_QUEUE;
	}
	for (unsigned int i = 0; i < dma->engines; i++) {
		unsigned int e = s->next_engine++ % NM_DMA_ENGINES;
		uint64_t first = s->engine_ps[e] > start ? s->engine_ps[e] : start;

		s->engine_ps[e] = first + share;
		if (s->engine_ps[e] > t.last_ps) {
			t.first_ps = first;
			t.last_ps = s->engine_ps[e];
			t.engine = e;
		}
	}
	if (t.first_ps > start)
		t.why = NM_WHY_DMA;
	if (s->sharers > 1)
		take_share(s, dma, ps, &t);
	s->queue_ps[dma->queue] = t.last_ps;
	t.start_ps = start;
	return t;
}

/* Notes who is behind this transfer on its queue and its DMA engines. */
static void chain_dma(struct nm_sim *s, uint32_t id, struct nm_node *node, const struct nm_dma *dma,
		      const struct turn *turn)
{
	struct nm_chain *t = s->chain;

	node->data_ps = turn->first_ps;
	node->data_why = turn->why;
	if (turn->why == NM_WHY_QUEUE)
		node->data_cause = t->queue[dma->queue];
	else if (turn->why == NM_WHY_DMA)
		node->data_cause = t->dma[turn->engine];
	else if (turn->why == NM_WHY_HBM)
		node->data_cause = t->hbm;
	t->hbm = id;
	t->queue[dma->queue] = id;
	for (unsigned int i = 0; i < dma->engines; i++)
		t->dma[(s->next_engine - 1 - i) % NM_DMA_ENGINES] = id;
}

/* Node of the instruction that an engine issues. */
static uint32_t chain_issue(struct nm_sim *s, unsigned int engine, const struct nm_inst *inst,
			    uint64_t start, uint64_t end, const struct turn *turn)
{
	struct nm_chain *t = s->chain;
	struct nm_node *node = nm_chain_add(t);
	uint32_t id = t->n - 1;

	*node = (struct nm_node){ .start_ps = start,
				  .free_ps = s->seq[engine].free_ps,
				  .end_ps = end,
				  .pc = s->seq[engine].pc,
				  .cause = t->cause[engine],
				  .data_cause = NM_NODE_NONE,
				  .engine = (uint8_t)engine,
				  .opcode = inst->opcode,
				  .why = t->why[engine],
				  .sem = t->sem[engine] };
	if (isa_is_dma(inst->opcode))
		chain_dma(s, id, node, inst->dma, turn);
	t->before[engine] = id;
	if (t->last == NM_NODE_NONE || end > t->node[t->last].end_ps)
		t->last = id;
	return id;
}

/* Does this transfer read a buffer that has gone bad? Only this thread counts down. */
static bool take_poison(struct nm_sim *s, const struct nm_side *src)
{
	uint32_t left = atomic_load_explicit(&s->poisoned, memory_order_relaxed);
	const struct nm_slot *slot;

	if (__builtin_expect(!left, 1) || src->space != ISA_SPACE_SLOT ||
	    src->slot == ISA_SLOT_CONST)
		return false;
	slot = &s->exec.slot[src->slot];
	if (slot->ptr == (const uint8_t *)&slot->data)
		return false;
	atomic_compare_exchange_strong(&s->poisoned, &left, left - 1);
	return true;
}

static bool uncorrected(struct nm_sim *s, const struct nm_event *ev)
{
	const struct nm_side *src = &ev->inst->dma->src;

	fault(s, EXI_FAULT_ECC, ev->engine, ev->pc, (uint64_t)(src->offset + ev->src_shift),
	      s->exec.slot[src->slot].size);
	s->result->fault.slot = src->slot;
	return false;
}

/* An index that names no row. */
static bool outside(struct nm_sim *s, const struct nm_event *ev, int64_t index)
{
	const struct nm_dma *dma = ev->inst->dma;
	const struct nm_index *ix = dma->index;

	fault(s, EXI_FAULT_INDEX, ev->engine, ev->pc, (uint64_t)index, ix->rows);
	s->result->fault.slot = ix->scatter ? dma->dst.slot : dma->src.slot;
	return false;
}

/* nm_exec_dma() with its time. */
static bool move_timed(struct nm_sim *s, const struct nm_event *ev, const struct nm_dma *dma,
		       struct nm_moved *moved)
{
	uint64_t from = nm_host_now();
	bool done = nm_exec_dma(&s->exec, dma, moved);

	nm_host_add(s->host, ev->engine, ev->inst->opcode, from);
	return done;
}

static bool move(struct nm_sim *s, const struct nm_event *ev, const struct nm_dma *dma,
		 struct nm_moved *moved)
{
	if (__builtin_expect(s->host != NULL, 0))
		return move_timed(s, ev, dma, moved);
	return nm_exec_dma(&s->exec, dma, moved);
}

/* Moves what a transfer moves; false: the launch ends. */
static bool transfer(struct nm_sim *s, const struct nm_event *ev)
{
	const struct nm_dma *dma = ev->inst->dma;
	struct nm_moved moved = { 0 };
	struct nm_dma shifted;

	if (take_poison(s, &dma->src))
		return uncorrected(s, ev);
	if (ev->inst->shifted) {
		shifted = *dma;
		shifted.dst.offset += ev->dst_shift;
		shifted.src.offset += ev->src_shift;
		dma = &shifted;
	}
	while (!move(s, ev, dma, &moved)) {
		if (moved.outside)
			return outside(s, ev, moved.index);
		if (s->ops->attend(s->user) == NM_ABORT)
			return fault(s, EXI_FAULT_ABORTED, ev->engine, ev->pc, 0, 0);
	}
	s->result->dma_bytes += (dma->n - moved.skipped) * dma->elem_bytes;
	s->result->insts[ev->engine]++;
	return true;
}

static bool complete(struct nm_sim *s)
{
	struct nm_event ev = pop(s);

	if (isa_is_dma(ev.inst->opcode) && !transfer(s, &ev))
		return false;
	if (ev.ps > s->result->end_ps)
		s->result->end_ps = ev.ps;
	if (__builtin_expect(ev.inst->notify, 0))
		s->ops->notify(s->user, &ev);
	return update(s, &ev);
}

static void take_port(struct nm_sim *s, unsigned int port, uint64_t until_ps, uint32_t node)
{
	s->port_ps[port] = until_ps;
	if (chained(s))
		s->chain->port[port] = node;
}

/* nm_exec_compute() with its time, where it is wanted. */
static void compute(struct nm_sim *s, unsigned int engine, const struct nm_inst *inst)
{
	uint64_t from;

	if (__builtin_expect(!s->host, 1)) {
		nm_exec_compute(&s->exec, inst);
		return;
	}
	from = nm_host_now();
	nm_exec_compute(&s->exec, inst);
	nm_host_add(s->host, engine, inst->opcode, from);
}

/*
 * In programs with branches: whether the stationary operand is what the decoder took it for. The executor
 * relies on its rows and columns; its dtype is one that goes with the moving operand's.
 */
static bool check_stationary(struct nm_sim *s, unsigned int engine, const struct nm_compute *c)
{
	const struct nm_stationary *load = &s->exec.load[nm_first_part(c->array)];
	const bool loaded = load->array == c->array;
	uint32_t pc = s->seq[engine].pc;

	if (loaded && load->rows != c->rows)
		return fault(s, EXI_FAULT_BAD_OPERAND, engine, pc, c->rows, load->rows);
	if (!loaded || load->parts != c->nparts)
		return fault(s, EXI_FAULT_BAD_OPERAND, engine, pc, c->nparts,
			     loaded ? load->parts : 0);
	if (nm_mixes_e4(load->dtype, c->src0.dtype))
		return fault(s, EXI_FAULT_BAD_OPERAND, engine, pc, c->src0.dtype, load->dtype);
	if (load->m != c->load_m)
		return fault(s, EXI_FAULT_BAD_OPERAND, engine, pc, c->load_m, load->m);
	return true;
}

/*
 * What an instruction does at once: all but a transfer, of which *ev is to have the place. False: the
 * launch ends.
 */
static bool execute(struct nm_sim *s, unsigned int engine, const struct nm_inst *inst,
		    struct nm_event *ev)
{
	struct nm_sequencer *seq = &s->seq[engine];
	struct nm_moved_inst moved;
	struct nm_fault outside;
	struct nm_side place;

	if (__builtin_expect(inst->shifted, 0)) {
		if (!nm_move_operands(inst, seq->reg, &moved, &outside))
			goto fault;
		if (isa_is_dma(inst->opcode)) {
			ev->dst_shift = moved.dma.dst.offset - inst->dma->dst.offset;
			ev->src_shift = moved.dma.src.offset - inst->dma->src.offset;
		}
		inst = &moved.inst;
	}
	switch (inst->opcode) {
	case ISA_REG_LOAD:
	case ISA_REG_STORE:
		if (!nm_reg_place(inst->reg, seq->reg, &place, &outside))
			goto fault;
		nm_reg_access(&s->exec, inst, &place, seq->reg);
		return true;
	case ISA_MATMUL:
		if (s->program->branches && !check_stationary(s, engine, inst->compute))
			return false;
		break;
	default:
		break;
	}
	if (inst->opcode >= ISA_MEMSET && !isa_is_reg(inst->opcode))
		compute(s, engine, inst);
	return true;

fault:
	fault(s, outside.status, engine, seq->pc, outside.value, outside.limit);
	s->result->fault.slot = outside.slot;
	return false;
}

/*
 * An instruction on parts of the array, from start on, of which these are busy for so long. Several are under way
 * at a time; their effects become visible in their order, as those of every engine do. Returns when its are.
 */
static uint64_t take_array(struct nm_sim *s, const struct nm_inst *inst, uint64_t start,
			   uint64_t busy)
{
	uint64_t done = start + busy, from = start > s->array_ps ? start : s->array_ps;

	if (done > from) {
		s->result->busy_ps[ISA_TENSOR] += done - from;
		s->array_ps = done;
	}
	if (done + inst->latency_ps > s->array_end_ps)
		s->array_end_ps = done + inst->latency_ps;
	return s->array_end_ps;
}

static uint64_t at_clock(const struct nm_sim *s, uint64_t ps)
{
	return __builtin_expect(s->clock != 100, 0) ? ps * 100 / s->clock : ps;
}

/* Starts the instruction of a ready engine. False: the launch ends. */
static bool issue(struct nm_sim *s, unsigned int engine)
{
	const struct nm_stream *stream = &s->program->stream[engine];
	struct nm_sequencer *seq = &s->seq[engine];
	const struct nm_inst *inst = &stream->inst[seq->pc];
	uint64_t start = seq->ready_ps, busy = inst->busy_ps, begin = start, end, held;
	uint32_t next = nm_reg_step(inst, seq->pc, seq->reg);
	struct nm_event ev = { .inst = inst, .pc = seq->pc, .engine = (uint8_t)engine };
	uint32_t node = NM_NODE_NONE;
	struct turn turn = { 0 };

	if (!execute(s, engine, inst, &ev))
		return false;
	if (next != seq->pc + 1)
		busy += inst->taken_ps;
	busy = at_clock(s, busy);
	seq->free_ps = held = start + busy;
	if (__builtin_expect(inst->array_ps != 0, 0)) {
		held = start + at_clock(s, inst->array_ps);
		end = take_array(s, inst, start, held - start);
	} else {
		s->result->busy_ps[engine] += busy;
		end = seq->free_ps + inst->latency_ps;
	}
	if (isa_is_dma(inst->opcode)) {
		turn = schedule_dma(s, inst->dma, seq->free_ps);
		begin = turn.start_ps;
		end = turn.last_ps + nm_dma_end_ps;
	} else {
		s->result->insts[engine]++;
	}
	if (chained(s))
		node = chain_issue(s, engine, inst, start, end, &turn);
	for (unsigned int ports = inst->ports; ports; ports &= ports - 1)
		take_port(s, (unsigned int)__builtin_ctz(ports), held, node);
	ev.ps = end;
	ev.node = node;
	if (inst->n_updates || inst->notify || isa_is_dma(inst->opcode))
		push(s, ev);
	else if (end > s->result->end_ps)
		s->result->end_ps = end;
	if (__builtin_expect(s->trace != NULL, 0))
		s->trace(s->user, engine, seq->pc, begin, end);
	seq->pc = next;
	if (seq->pc == stream->count)
		seq->done = true;
	else
		look(s, engine, seq->free_ps);
	return true;
}

/* Makes a ready engine wait for shared access that another one has. False: it can go on. */
static bool held(struct nm_sim *s, unsigned int engine)
{
	struct nm_sequencer *seq = &s->seq[engine];
	unsigned int ports = s->program->stream[engine].inst[seq->pc].ports;
	unsigned int last = NM_PORTS;

	for (; ports; ports &= ports - 1) {
		unsigned int port = (unsigned int)__builtin_ctz(ports);

		if (s->port_ps[port] <= seq->ready_ps)
			continue;
		seq->ready_ps = s->port_ps[port];
		last = port;
	}
	if (last == NM_PORTS)
		return false;
	if (chained(s)) {
		s->chain->cause[engine] = s->chain->port[last];
		s->chain->why[engine] = NM_WHY_PORT;
	}
	return true;
}

/* Ready engine that can start earliest, or EXI_ENGINES. */
static unsigned int earliest(const struct nm_sim *s)
{
	unsigned int best = EXI_ENGINES;

	for (unsigned int e = 0; e < EXI_ENGINES; e++)
		if (!s->seq[e].done && !s->seq[e].blocked &&
		    (best == EXI_ENGINES || s->seq[e].ready_ps < s->seq[best].ready_ps))
			best = e;
	return best;
}

/* Nothing is under way and no engine is ready. False: the launch ends, if only because it is done. */
static bool stalled(struct nm_sim *s)
{
	const struct nm_inst *inst;
	unsigned int e = 0, wait;

	while (e < EXI_ENGINES && s->seq[e].done)
		e++;
	if (e == EXI_ENGINES)
		return false;
	switch (s->ops->stall(s->user)) {
	case NM_GO_ON:
		wake(s, s->result->end_ps);
		return true;
	case NM_ABORT:
		return aborted(s, e);
	default:
		inst = &s->program->stream[e].inst[s->seq[e].pc];
		wait = unmet_wait(s, e, inst);
		/* The host may have moved the semaphore this very moment. */
		if (wait == inst->n_waits)
			wait--;
		return fault(s, EXI_FAULT_DEADLOCK, e, s->seq[e].pc, inst->wait_sem[wait],
			     (uint64_t)nm_wait_value(inst, wait, s->seq[e].reg));
	}
}

/* Serves the core's requests. False: the launch is aborted. */
static bool attend(struct nm_sim *s)
{
	unsigned int e = 0;

	if (!attention(s))
		return true;
	if (s->ops->attend(s->user) != NM_ABORT) {
		wake(s, s->result->end_ps);
		return true;
	}
	while (e < EXI_ENGINES && s->seq[e].done)
		e++;
	if (e < EXI_ENGINES)
		return aborted(s, e);
	s->result->fault.status = EXI_FAULT_ABORTED;
	return false;
}

static bool step(struct nm_sim *s)
{
	unsigned int e = earliest(s);

	if (s->n_events && (e == EXI_ENGINES || s->event[0].ps <= s->seq[e].ready_ps ||
			    s->n_events == NM_SIM_EVENTS)) {
		uint64_t ps = s->event[0].ps;

		if (!complete(s))
			return false;
		if (e < EXI_ENGINES && s->seq[e].ready_ps < ps && s->n_events == NM_SIM_EVENTS - 1)
			s->seq[e].ready_ps = ps;
		return true;
	}
	if (e == EXI_ENGINES)
		return stalled(s);
	return held(s, e) || issue(s, e);
}

/* Hangs that are due in this launch. Only this thread counts down. */
static uint32_t take_hangs(struct nm_sim *s, const struct nm_program *program)
{
	uint32_t hung = 0;

	for (unsigned int e = 0; e < EXI_ENGINES; e++) {
		uint32_t left = atomic_load_explicit(&s->hangs[e], memory_order_relaxed);

		if (__builtin_expect(!left, 1) || !program->stream[e].count)
			continue;
		/* Replaced meanwhile: the new count starts with the next launch. */
		atomic_compare_exchange_strong(&s->hangs[e], &left, left - 1);
		hung |= 1u << e;
	}
	return hung;
}

static void begin_chain(struct nm_chain *t, const struct nm_timing *timing, uint64_t ps)
{
	t->timing = timing;
	t->n = 0;
	t->failed = false;
	t->begin_ps = ps;
	t->last = t->waker = t->hbm = NM_NODE_NONE;
	memset(t->before, 0xff, sizeof(t->before));
	memset(t->queue, 0xff, sizeof(t->queue));
	memset(t->dma, 0xff, sizeof(t->dma));
	memset(t->port, 0xff, sizeof(t->port));
}

void nm_sim_run(struct nm_sim *s, const struct nm_program *program, uint64_t start_ps,
		struct nm_chain *chain, struct nm_sim_result *result)
{
	uint64_t first_ps = start_ps + nm_launch_start_ps;

	memset(result, 0, sizeof(*result));
	result->fault.slot = NM_SLOT_NONE;
	result->fault.engine = NM_ENGINE_NONE;
	result->end_ps = first_ps;
	s->program = program;
	s->result = result;
	s->chain = chain;
	if (chain)
		begin_chain(chain, s->timing, first_ps);
	s->hung = take_hangs(s, program);
	s->clock = atomic_load_explicit(&s->percent, memory_order_relaxed);
	s->n_events = 0;
	s->order = 0;
	s->next_engine = 0;
	memset(s->seq, 0, sizeof(s->seq));
	memset(s->queue_ps, 0, sizeof(s->queue_ps));
	memset(s->engine_ps, 0, sizeof(s->engine_ps));
	memset(s->port_ps, 0, sizeof(s->port_ps));
	s->hbm_ps = 0;
	s->array_ps = s->array_end_ps = 0;
	if (program->random)
		nm_random_reset(&s->exec);
	if (program->branches)
		nm_exec_forget(&s->exec);
	for (unsigned int i = 0; i < ISA_SEMAPHORES; i++)
		atomic_store_explicit(&s->sem[i], 0, memory_order_relaxed);
	for (unsigned int e = 0; e < EXI_ENGINES; e++) {
		s->seq[e].free_ps = first_ps;
		s->seq[e].done = program->stream[e].count == 0;
		if (!s->seq[e].done)
			look(s, e, first_ps);
	}
	while (attend(s) && step(s))
		;
	result->end_ps += nm_launch_end_ps;
}
