// SPDX-License-Identifier: Apache-2.0
/* Trace ring of a queue: one entry for each instruction of a traced launch. Worker. */
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

	post(core, &entry);
}

bool nm_trace_begin(struct nm_core *core, unsigned int queue, uint32_t seqno,
		    struct nm_fault *fault)
{
	struct nm_queue *q = &core->queue[queue];
	struct nm_tracing *t = &core->tracing;
	uint32_t log2;

	pthread_mutex_lock(&core->lock);
	*t = (struct nm_tracing){
		.addr = nm_queue_reg64(q, EXI_Q_TRACE_LO),
		.next = q->traced,
		.seqno = seqno,
	};
	log2 = q->reg[EXI_Q_TRACE_LOG2 / 4];
	pthread_mutex_unlock(&core->lock);

	if (t->addr % 64)
		return nm_refuse(fault, EXI_FAULT_BAD_QUEUE, EXI_Q_TRACE_LO, 64);
	if (log2 < EXI_TRACE_LOG2_MIN || log2 > EXI_TRACE_LOG2_MAX)
		return nm_refuse(fault, EXI_FAULT_BAD_QUEUE, EXI_Q_TRACE_LOG2, EXI_TRACE_LOG2_MAX);
	t->mask = (1u << log2) - 1;
	core->sim.trace = trace_inst;
	return true;
}

void nm_trace_end(struct nm_core *core, unsigned int queue, uint64_t start_ps, uint64_t end_ps)
{
	struct exi_trace entry = {
		.engine = NM_ENGINE_NONE,
		.start_ps = start_ps,
		.end_ps = end_ps,
	};

	core->sim.trace = NULL;
	post(core, &entry);
	pthread_mutex_lock(&core->lock);
	core->queue[queue].traced = core->tracing.next;
	pthread_mutex_unlock(&core->lock);
}
