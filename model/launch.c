// SPDX-License-Identifier: Apache-2.0
/* One launch: fetch, checks against the slot table, execution, record, interrupt. */
#include <errno.h>
#include <string.h>

#include "core_priv.h"
#include "neuron_model.h"
#include "report.h"

bool nm_refuse(struct nm_fault *fault, uint16_t status, uint64_t value, uint64_t limit)
{
	*fault = (struct nm_fault){
		.status = status,
		.slot = NM_SLOT_NONE,
		.engine = NM_ENGINE_NONE,
		.value = value,
		.limit = limit,
	};
	return false;
}

static bool refuse_slot(struct nm_fault *fault, uint16_t status, unsigned int slot, uint64_t value,
			uint64_t limit)
{
	nm_refuse(fault, status, value, limit);
	fault->slot = (uint16_t)slot;
	return false;
}

/* Value of BAD_QUEUE: offset of the field in the entry. */
static bool check_entry(const struct exi_launch *l, struct nm_fault *fault)
{
	for (size_t i = 0; i < sizeof(l->pad); i++)
		if (l->pad[i])
			return nm_refuse(fault, EXI_FAULT_BAD_QUEUE,
					 offsetof(struct exi_launch, pad) + i, 0);
	if (l->flags & ~(EXI_LAUNCH_IRQ | EXI_LAUNCH_TRACE))
		return nm_refuse(fault, EXI_FAULT_BAD_QUEUE, offsetof(struct exi_launch, flags),
				 EXI_LAUNCH_IRQ | EXI_LAUNCH_TRACE);
	if (l->program_addr % NPROG_ALIGN)
		return nm_refuse(fault, EXI_FAULT_BAD_QUEUE,
				 offsetof(struct exi_launch, program_addr), NPROG_ALIGN);
	if (l->slots_addr % 64)
		return nm_refuse(fault, EXI_FAULT_BAD_QUEUE,
				 offsetof(struct exi_launch, slots_addr), 64);
	if (l->program_bytes < sizeof(struct nprog_header) || l->program_bytes > NPROG_IMAGE_MAX)
		return nm_refuse(fault, EXI_FAULT_BAD_QUEUE,
				 offsetof(struct exi_launch, program_bytes), NPROG_IMAGE_MAX);
	if (l->n_slots > EXI_SLOTS_MAX)
		return nm_refuse(fault, EXI_FAULT_BAD_QUEUE, offsetof(struct exi_launch, n_slots),
				 EXI_SLOTS_MAX);
	return true;
}

/* Takes over one slot of the table for a program that needs it as need says. */
static bool take_slot(struct nm_core *core, unsigned int i, const struct nm_slot_need *need,
		      struct nm_fault *fault)
{
	const struct exi_slot *s = &core->table[i];
	struct nm_slot *slot = &core->sim.exec.slot[i];
	bool is_inline = s->rights & EXI_SLOT_INLINE;

	if (s->pad0 || s->pad1)
		return refuse_slot(fault, EXI_FAULT_BAD_QUEUE, i, offsetof(struct exi_slot, pad0),
				   0);
	if (s->rights & ~(EXI_SLOT_READ | EXI_SLOT_WRITE | EXI_SLOT_INLINE) ||
	    (is_inline && s->rights != (EXI_SLOT_READ | EXI_SLOT_INLINE)))
		return refuse_slot(fault, EXI_FAULT_SLOT_RIGHTS, i, s->rights, need->rights);
	/* A scalar is passed in the launch, a buffer is not: neither stands in for the other. */
	if ((need->rights & ~s->rights) || is_inline != !!(need->rights & EXI_SLOT_INLINE))
		return refuse_slot(fault, EXI_FAULT_SLOT_RIGHTS, i, s->rights, need->rights);
	if (is_inline && s->size != sizeof(slot->data))
		return refuse_slot(fault, EXI_FAULT_SLOT_BOUNDS, i, s->size, sizeof(slot->data));
	if (s->size < need->min_bytes)
		return refuse_slot(fault, EXI_FAULT_SLOT_BOUNDS, i, need->min_bytes, s->size);
	slot->size = s->size;
	slot->data = s->base;
	slot->ptr = (uint8_t *)&slot->data;
	if (is_inline)
		return true;
	slot->ptr = s->size ? core->bus.hbm(core->bus.dev, s->base, s->size) : NULL;
	if (s->size && !slot->ptr)
		return refuse_slot(fault, EXI_FAULT_BUS, i, s->base, s->size);
	return true;
}

/* Everything that a launch needs before its first instruction. */
static const struct nm_program *prepare(struct nm_core *core, const struct exi_launch *l,
					struct nm_fault *fault)
{
	const struct nm_program *program;
	const uint8_t *image;
	int ret;

	if (!check_entry(l, fault))
		return NULL;
	image = core->bus.hbm(core->bus.dev, l->program_addr, l->program_bytes);
	if (!image) {
		nm_refuse(fault, EXI_FAULT_BUS, l->program_addr, l->program_bytes);
		return NULL;
	}
	ret = nm_cache_get(&core->cache, l, core->bus.arch, image, &program, fault);
	if (ret == -ENOMEM) {
		nm_core_log(core, NM_LOG_ERROR, "no memory to decode a program of %u bytes",
			    l->program_bytes);
		nm_refuse(fault, EXI_FAULT_BAD_PROGRAM, offsetof(struct nprog_header, image_bytes),
			  l->program_bytes);
	}
	if (ret)
		return NULL;
	if (l->n_slots != program->n_slots) {
		nm_refuse(fault, EXI_FAULT_SLOT_INDEX, l->n_slots, program->n_slots);
		return NULL;
	}
	if (l->n_slots && core->bus.read(core->bus.dev, l->slots_addr, core->table,
					 l->n_slots * sizeof(core->table[0]))) {
		nm_refuse(fault, EXI_FAULT_BUS, l->slots_addr, l->n_slots * sizeof(core->table[0]));
		return NULL;
	}
	for (unsigned int i = 0; i < l->n_slots; i++)
		if (!take_slot(core, i, &program->slot[i], fault))
			return NULL;
	core->sim.exec.constants = image + program->const_offset;
	return program;
}

void nm_core_scrub(struct nm_core *core)
{
	for (unsigned int s = ISA_SPACE_SBUF; s <= ISA_SPACE_PSUM; s++) {
		if (core->dirty[s])
			for (unsigned int p = 0; p < ISA_PARTITIONS; p++)
				memset(core->sim.exec.mem[s] + (ptrdiff_t)p * nm_pitch(s), 0,
				       core->dirty[s]);
		core->dirty[s] = 0;
	}
	if (core->check)
		nm_check_scrubbed(core->check);
	for (unsigned int i = 0; i < ISA_SEMAPHORES; i++)
		atomic_store_explicit(&core->sim.sem[i], 0, memory_order_relaxed);
}

static void take_over(struct nm_core *core, const struct nm_program *program, uint32_t owner)
{
	if (core->has_owner && core->owner != owner)
		nm_core_scrub(core);
	core->has_owner = true;
	core->owner = owner;
	if (core->dirty[ISA_SPACE_SBUF] < program->sbuf_end)
		core->dirty[ISA_SPACE_SBUF] = program->sbuf_end;
	if (core->dirty[ISA_SPACE_PSUM] < program->psum_end)
		core->dirty[ISA_SPACE_PSUM] = program->psum_end;
}

static void run(struct nm_core *core, uint64_t id, const struct nm_program *program,
		struct exi_record *rec, struct nm_fault *fault)
{
	struct nm_report *report = core->bus.report;
	struct nm_chain *chain = NULL;
	struct nm_sim_result result;
	struct nq_entry entry = {
		.type = NQ_THROTTLE,
		.engine = NM_ENGINE_NONE,
		.queue = core->tracing.queue,
		.seqno = core->tracing.seqno,
	};

	if (report && nm_report_wants(report, id))
		chain = &core->chain;
	core->sim.host = report ? &core->host : NULL;
	if (report) {
		memset(&core->host, 0, sizeof(core->host));
		core->host.run_ns = nm_host_now();
	}
	core->sim.sharers = core->bus.in_use ? core->bus.in_use(core->bus.dev) : 1;
	nm_sim_run(&core->sim, program, core->time_ps, chain, &result);
	if (report && result.fault.status == EXI_OK) {
		core->host.run_ns = nm_host_now() - core->host.run_ns;
		nm_report_add(report, id, program, &result, &core->host,
			      result.end_ps - core->time_ps, chain);
	}
	core->time_ps = result.end_ps;
	*fault = result.fault;
	if (fault->status == EXI_FAULT_ECC)
		core->bus.count_ecc(core->bus.dev, core->table[fault->slot].base + fault->value);
	if (core->clock != core->sim.clock) {
		core->clock = core->sim.clock;
		entry.value = core->clock;
		core->bus.notify(core->bus.dev, core->index, NQ_NO_ENGINE, &entry);
	}
	rec->dma_bytes = result.dma_bytes;
	for (unsigned int e = 0; e < EXI_ENGINES; e++) {
		uint64_t busy = result.busy_ps[e] / NM_PS_PER_NS;

		rec->insts[e] = result.insts[e];
		rec->busy_ns[e] = busy > UINT32_MAX ? UINT32_MAX : (uint32_t)busy;
	}
}

/* What is found is found before the launch, lest it hangs; it runs all the same. */
static void run_checked(struct nm_core *core, uint64_t id, const struct nm_program *program,
			struct exi_record *rec, struct nm_fault *fault)
{
	const struct nm_check_launch l = { program, core->table };
	struct nm_fault found;
	bool any = nm_check_before(core->check, &l, &found);

	run(core, id, program, rec, fault);
	nm_check_after(core->check, &l);
	if (any && fault->status == EXI_OK)
		*fault = found;
}

static void report(struct nm_core *core, unsigned int queue, uint32_t seqno,
		   const struct nm_fault *fault)
{
	struct nq_entry entry = {
		.type = NQ_ERROR,
		.engine = fault->engine,
		.opcode = fault->opcode,
		.status = fault->status,
		.queue = (uint16_t)queue,
		.seqno = seqno,
		.pc = fault->pc,
		.value = fault->value,
	};

	if (fault->status == EXI_FAULT_ABORTED)
		return;
	nm_core_log(core, NM_LOG_GUEST,
		    "queue %u: fault %u, %s: engine %u, pc %u, opcode 0x%02x, slot %u, value "
		    "0x%llx, limit 0x%llx",
		    queue, fault->status, exi_fault_text(fault->status), fault->engine, fault->pc,
		    fault->opcode, fault->slot, (unsigned long long)fault->value,
		    (unsigned long long)fault->limit);
	core->bus.notify(core->bus.dev, core->index, fault->engine, &entry);
}

/*
 * Writes the record of entry number head; the word with its phase last and in one store, so that
 * the host never sees half of it.
 */
static void post(struct nm_core *core, unsigned int queue, const struct nm_setup *setup,
		 uint32_t head, struct exi_record *rec)
{
	uint32_t mask = (1u << setup->log2) - 1;
	uint64_t addr = setup->cq + (uint64_t)(head & mask) * sizeof(*rec);
	const size_t first = offsetof(struct exi_record, pc);
	int ret;

	rec->phase = (head >> setup->log2 & 1) ^ 1;
	ret = core->bus.write(core->bus.dev, addr + first, (uint8_t *)rec + first,
			      sizeof(*rec) - first);
	atomic_thread_fence(memory_order_release);
	if (!ret)
		ret = core->bus.write(core->bus.dev, addr, rec, first);
	if (ret)
		nm_core_log(core, NM_LOG_GUEST,
			    "queue %u: completion record at 0x%llx does not answer", queue,
			    (unsigned long long)addr);
}

static void fill_record(struct exi_record *rec, const struct nm_fault *fault)
{
	rec->status = fault->status;
	rec->engine = fault->engine;
	rec->pc = fault->pc;
	rec->opcode = fault->opcode;
	rec->slot = fault->slot;
	rec->value = fault->value;
	rec->limit = fault->limit;
}

/* Fetch, checks and execution of an entry that is to run. */
static void execute(struct nm_core *core, unsigned int queue, const struct nm_setup *setup,
		    const struct exi_launch *l, struct exi_record *rec, struct nm_fault *fault)
{
	const struct nm_program *program = prepare(core, l, fault);
	uint64_t start_ps = core->time_ps;

	if (!program || !nm_trace_begin(core, queue, l, fault))
		return;
	take_over(core, program, setup->owner);
	if (core->check)
		run_checked(core, l->program_id, program, rec, fault);
	else
		run(core, l->program_id, program, rec, fault);
	nm_trace_end(core, start_ps, core->time_ps);
}

static bool fetch(struct nm_core *core, const struct nm_setup *setup, uint32_t head,
		  struct exi_launch *l, struct nm_fault *fault)
{
	uint32_t mask = (1u << setup->log2) - 1;
	uint64_t addr = setup->ring + (uint64_t)(head & mask) * sizeof(*l);

	if (setup->bad)
		return nm_refuse(fault, EXI_FAULT_BAD_QUEUE, setup->bad_value, setup->bad_limit);
	if (core->bus.read(core->bus.dev, addr, l, sizeof(*l)) == 0)
		return true;
	/* Unknown whether an interrupt was asked for: better one too many. */
	memset(l, 0, sizeof(*l));
	l->flags = EXI_LAUNCH_IRQ;
	return nm_refuse(fault, EXI_FAULT_BUS, addr, sizeof(*l));
}

void nm_core_entry(struct nm_core *core, unsigned int queue, bool nested)
{
	struct nm_queue *q = &core->queue[queue];
	struct exi_launch l = { .flags = EXI_LAUNCH_IRQ };
	struct nm_fault fault = { .slot = NM_SLOT_NONE, .engine = NM_ENGINE_NONE };
	struct exi_record rec = { 0 };
	uint32_t head, vector, overrun_value;
	bool halted, overrun, silent;
	struct nm_setup setup;

	pthread_mutex_lock(&core->lock);
	setup = q->setup;
	head = q->head;
	halted = q->halted;
	overrun = q->overrun;
	overrun_value = q->overrun_value;
	q->overrun = false;
	if (!nested) {
		/* A copy that the host saw the end of came before. */
		if (core->time_ps < q->floor_ps)
			core->time_ps = q->floor_ps;
		core->running = (int)queue;
		core->stop = NM_RUN_ON;
	}
	pthread_mutex_unlock(&core->lock);

	rec.start_ns = core->time_ps / NM_PS_PER_NS;
	if (!fetch(core, &setup, head, &l, &fault))
		;
	else if (halted)
		nm_refuse(&fault, EXI_FAULT_ABORTED, 0, 0);
	else if (overrun)
		nm_refuse(&fault, EXI_FAULT_BAD_QUEUE, overrun_value, head + (1u << setup.log2));
	else
		execute(core, queue, &setup, &l, &rec, &fault);
	atomic_store(&core->time_ns, core->time_ps / NM_PS_PER_NS);

	rec.seqno = l.seqno;
	rec.end_ns = core->time_ps / NM_PS_PER_NS;
	rec.traced = q->traced;
	fill_record(&rec, &fault);
	if (fault.status != EXI_OK)
		report(core, queue, l.seqno, &fault);
	silent = !nested && core->stop == NM_STOP_SILENT;
	if (!silent && !setup.no_records)
		post(core, queue, &setup, head, &rec);

	pthread_mutex_lock(&core->lock);
	q->head++;
	q->halted |= fault.status != EXI_OK;
	if (!nested)
		core->running = -1;
	vector = q->reg[EXI_Q_VECTOR / 4];
	pthread_mutex_unlock(&core->lock);
	if (!silent && l.flags & EXI_LAUNCH_IRQ && vector & EXI_VECTOR_ENABLE)
		core->bus.irq(core->bus.dev, vector & EXI_VECTOR_MASK);
}
