// SPDX-License-Identifier: Apache-2.0
/*
 * What a launch tells while it runs: one entry for each instruction in its trace ring, one in the
 * notification queue of an engine that traces, and one for each instruction that asks for it. Worker.
 */
#include "core_priv.h"
#include "neuron_model.h"

/* Writes the entry at the ring's position; its index last, and none that is right before. */
static void post(struct nm_core *core, struct exi_trace *entry)
{
	struct nm_tracing *t = &core->tracing;
	uint64_t addr = t->addr + (uint64_t)(t->next & t->mask) * sizeof(*entry);
	const size_t first = offsetof(struct exi_trace, seqno);
	const uint32_t invalid = ~t->next;
	void *dev = core->bus.dev;
	int ret;

	if (t->broken)
		return;
	entry->index = t->next;
	entry->seqno = t->seqno;
	ret = core->bus.write(dev, addr, &invalid, first);
	atomic_thread_fence(memory_order_release);
	if (!ret)
		ret = core->bus.write(dev, addr + first, &entry->seqno, sizeof(*entry) - first);
	atomic_thread_fence(memory_order_release);
	if (!ret)
		ret = core->bus.write(dev, addr, &entry->index, first);
	if (ret) {
		nm_core_log(core, NM_LOG_GUEST, "trace ring: 0x%llx does not answer",
			    (unsigned long long)addr);
		t->broken = true;
		return;
	}
	t->next++;
}

/* An entry about an instruction in the notification queue of its engine. */
static void tell(struct nm_core *core, unsigned int type, unsigned int engine, uint32_t pc,
		 uint64_t value, uint64_t ps)
{
	struct nq_entry entry = {
		.type = (uint8_t)type,
		.engine = (uint8_t)engine,
		.opcode = core->sim.program->stream[engine].inst[pc].opcode,
		.queue = core->tracing.queue,
		.seqno = core->tracing.seqno,
		.pc = pc,
		.value = value,
		.time_ns = ps / NM_PS_PER_NS,
	};

	core->bus.notify(core->bus.dev, core->index, engine, &entry);
}

void nm_trace_notify(void *user, const struct nm_event *ev)
{
	struct nm_core *core = user;

	tell(core, NQ_NOTIFY, ev->engine, ev->pc, core->tracing.program_id, ev->ps);
}

static void trace_inst(void *user, unsigned int engine, uint32_t pc, uint64_t start_ps,
		       uint64_t end_ps)
{
	struct nm_core *core = user;
	struct exi_trace entry = {
		.engine = (uint8_t)engine,
		.opcode = core->sim.program->stream[engine].inst[pc].opcode,
		.pc = pc,
		.start_ps = start_ps,
		.end_ps = end_ps,
	};

	if (core->tracing.engines >> engine & 1)
		tell(core, NQ_TRACE, engine, pc, end_ps - start_ps, start_ps);
	if (core->tracing.ring)
		post(core, &entry);
}

static bool begin_ring(struct nm_core *core, struct nm_fault *fault)
{
	struct nm_tracing *t = &core->tracing;
	struct nm_queue *q = &core->queue[t->queue];
	uint32_t log2;

	pthread_mutex_lock(&core->lock);
	t->addr = nm_queue_reg64(q, EXI_Q_TRACE_LO);
	t->next = q->traced;
	log2 = q->reg[EXI_Q_TRACE_LOG2 / 4];
	pthread_mutex_unlock(&core->lock);

	if (t->addr % 64)
		return nm_refuse(fault, EXI_FAULT_BAD_QUEUE, EXI_Q_TRACE_LO, 64);
	if (log2 < EXI_TRACE_LOG2_MIN || log2 > EXI_TRACE_LOG2_MAX)
		return nm_refuse(fault, EXI_FAULT_BAD_QUEUE, EXI_Q_TRACE_LOG2, EXI_TRACE_LOG2_MAX);
	t->mask = (1u << log2) - 1;
	t->ring = true;
	return true;
}

bool nm_trace_begin(struct nm_core *core, unsigned int queue, const struct exi_launch *l,
		    struct nm_fault *fault)
{
	core->tracing = (struct nm_tracing){
		.program_id = l->program_id,
		.seqno = l->seqno,
		.queue = (uint16_t)queue,
		.engines = (uint8_t)nm_core_traced(core),
	};
	if (l->flags & EXI_LAUNCH_TRACE && !begin_ring(core, fault))
		return false;
	if (core->tracing.ring || core->tracing.engines)
		core->sim.trace = trace_inst;
	return true;
}

void nm_trace_end(struct nm_core *core, uint64_t start_ps, uint64_t end_ps)
{
	struct exi_trace entry = {
		.engine = NM_ENGINE_NONE,
		.start_ps = start_ps,
		.end_ps = end_ps,
	};

	core->sim.trace = NULL;
	if (!core->tracing.ring)
		return;
	post(core, &entry);
	pthread_mutex_lock(&core->lock);
	core->queue[core->tracing.queue].traced = core->tracing.next;
	pthread_mutex_unlock(&core->lock);
}
