// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the device was doing when a launch hung or the core itself was at fault,
 * as text in /sys/class/devcoredump. Faults of programs that break a rule are
 * told to their owner alone (DRM_IOCTL_NEURON_CTX_STATE).
 *
 * Whoever finds such a launch holds locks and must not allocate, so the state
 * goes into memory that waits for it, and a worker makes the text. A second hang
 * meanwhile is not dumped.
 */

#include <linux/devcoredump.h>
#include <linux/seq_buf.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>
#include <linux/utsname.h>
#include <linux/vmalloc.h>

#include <drm/drm_managed.h>

#include "neuron_ctx.h"
#include "neuron_drv.h"
#include "neuron_dump.h"
#include "neuron_isa.h"

#define DUMP_BYTES SZ_64K

/* Registers of the queue that are worth knowing. */
static const struct {
	const char *name;
	u32 reg;
} dump_regs[] = {
	{ "control", EXI_Q_CONTROL },	  { "status", EXI_Q_STATUS },
	{ "ring_lo", EXI_Q_RING_LO },	  { "ring_hi", EXI_Q_RING_HI },
	{ "ring_log2", EXI_Q_RING_LOG2 }, { "cq_lo", EXI_Q_CQ_LO },
	{ "cq_hi", EXI_Q_CQ_HI },	  { "vector", EXI_Q_VECTOR },
	{ "head", EXI_Q_HEAD },		  { "started", EXI_Q_STARTED },
	{ "priority", EXI_Q_PRIORITY },	  { "owner", EXI_Q_OWNER },
};

/**
 * struct neuron_dump - State of a context at a bad moment
 */
struct neuron_dump {
	/** @ndev: Device. */
	struct neuron_device *ndev;
	/** @work: Makes the text. */
	struct work_struct work;
	/** @taken: Bit 0: the rest holds a state that @work has not yet seen. */
	unsigned long taken;
	/** @reason: Why. */
	const char *reason;
	/** @at: When, CLOCK_MONOTONIC. */
	ktime_t at;
	/** @core: Number of the core. */
	u32 core;
	/** @queue: Queue of the context. */
	u32 queue;
	/** @id: Context. */
	u32 id;
	/** @pid: Its process. */
	pid_t pid;
	/** @head: Launches ever completed. */
	u32 head;
	/** @tail: Launches ever rung. */
	u32 tail;
	/** @state: What its owner is told. */
	struct drm_neuron_ctx_state state;
	/** @regs: As in dump_regs. */
	u32 regs[ARRAY_SIZE(dump_regs)];
	/** @others: Contexts of the other queues. */
	struct {
		pid_t pid; /* 0: none */
		u32 id, state, head, tail;
	} others[EXI_QUEUE_COUNT];
	/** @mem: Rings. */
	struct neuron_queue_mem mem;
};

/* --- text ---------------------------------------------------------------- */

static const char *dump_engine(u32 engine)
{
	return isa_engine_name(engine) ?: "none";
}

static const char *dump_state(u32 state)
{
	static const char *const names[] = {
		[DRM_NEURON_CTX_OK] = "ok",
		[DRM_NEURON_CTX_FAULTED] = "faulted",
		[DRM_NEURON_CTX_TIMEDOUT] = "timed out",
		[DRM_NEURON_CTX_INNOCENT] = "innocent",
	};

	return state < ARRAY_SIZE(names) ? names[state] : "unknown";
}

static void dump_print_device(struct seq_buf *s, struct neuron_dump *dump)
{
	struct neuron_device *ndev = dump->ndev;
	struct timespec64 at = ktime_to_timespec64(dump->at);

	seq_buf_printf(s, "neuron device dump, version 1\n");
	seq_buf_printf(s, "reason: %s\n", dump->reason);
	seq_buf_printf(s, "time: %lld.%09ld\n", (s64)at.tv_sec, at.tv_nsec);
	seq_buf_printf(s, "kernel: %s\n", init_utsname()->release);
	seq_buf_printf(s, "device: %s, %s, serial 0x%llx\n", dev_name(ndev->drm.dev),
		       ndev->hal->name, ndev->serial);
	seq_buf_printf(s, "firmware interface: 0x%x\n", ndev->fw.api_version);
	seq_buf_printf(s, "execution interface: 0x%x\n", ndev->exec_version);
	seq_buf_printf(s, "core: %u\nqueue: %u\ncontext: %u\npid: %d\n", dump->core, dump->queue,
		       dump->id, dump->pid);
}

static void dump_print_state(struct seq_buf *s, struct neuron_dump *dump)
{
	const struct drm_neuron_ctx_state *state = &dump->state;
	unsigned int i;

	seq_buf_printf(s, "state: %s\n", dump_state(state->state));
	if (state->state == DRM_NEURON_CTX_FAULTED) {
		seq_buf_printf(s, "fault: %u (%s), engine %s, pc %u, opcode 0x%x, slot %d, ",
			       state->fault, exi_fault_text(state->fault),
			       dump_engine(state->engine), state->pc, state->opcode,
			       (s32)state->slot);
		seq_buf_printf(s, "value 0x%llx, limit 0x%llx, program %u\n", state->value,
			       state->limit, state->program);
	}
	seq_buf_printf(s, "launches completed: %llu\n", state->launches);
	seq_buf_printf(s, "head: %u\ntail: %u\nregisters:", dump->head, dump->tail);
	for (i = 0; i < ARRAY_SIZE(dump_regs); i++)
		seq_buf_printf(s, " %s=0x%x", dump_regs[i].name, dump->regs[i]);
	seq_buf_printf(s, "\n");
	for (i = 0; i < ARRAY_SIZE(dump->others); i++)
		if (dump->others[i].pid)
			seq_buf_printf(s, "queue %u: context %u pid %d, %s, head %u, tail %u\n", i,
				       dump->others[i].id, dump->others[i].pid,
				       dump_state(dump->others[i].state), dump->others[i].head,
				       dump->others[i].tail);
}

/* Launches that are not done, oldest first. */
static void dump_print_launches(struct seq_buf *s, struct neuron_dump *dump)
{
	const struct exi_launch *entry;
	u32 n;

	for (n = dump->head; n != dump->tail; n++) {
		entry = &dump->mem.ring[n % NEURON_RING_ENTRIES];
		seq_buf_printf(s, "launch %u: program %llu at 0x%llx, 0x%x bytes, ", n,
			       le64_to_cpu(entry->program_id), le64_to_cpu(entry->program_addr),
			       le32_to_cpu(entry->program_bytes));
		seq_buf_printf(s, "%u slots, flags 0x%x\n", le32_to_cpu(entry->n_slots),
			       le32_to_cpu(entry->flags));
	}
}

/* Records of the last launches, newest last. */
static void dump_print_records(struct seq_buf *s, struct neuron_dump *dump)
{
	const struct exi_record *record;
	/* The record of the fault is there, the launch is not yet counted as done. */
	u32 end = dump->head + (dump->state.state == DRM_NEURON_CTX_FAULTED);
	u32 i, count = min_t(u32, end, NEURON_RING_ENTRIES);
	u32 status;

	for (i = end - count; i != end; i++) {
		record = &dump->mem.cq[i % NEURON_RING_ENTRIES];
		status = le16_to_cpu(record->status);
		seq_buf_printf(s,
			       "record %u: %u (%s), engine %s, pc %u, opcode 0x%x, value 0x%llx, ",
			       le32_to_cpu(record->seqno), status, exi_fault_text(status),
			       dump_engine(record->engine), le32_to_cpu(record->pc), record->opcode,
			       le64_to_cpu(record->value));
		seq_buf_printf(s, "limit 0x%llx, %llu to %llu ns, dma %llu bytes\n",
			       le64_to_cpu(record->limit), le64_to_cpu(record->start_ns),
			       le64_to_cpu(record->end_ns), le64_to_cpu(record->dma_bytes));
	}
}

static void dump_work(struct work_struct *work)
{
	struct neuron_dump *dump = container_of(work, struct neuron_dump, work);
	char *text = vmalloc(DUMP_BYTES);
	struct seq_buf s;

	if (text) {
		seq_buf_init(&s, text, DUMP_BYTES);
		dump_print_device(&s, dump);
		dump_print_state(&s, dump);
		dump_print_launches(&s, dump);
		dump_print_records(&s, dump);
		/* Frees the text. Keeps it for five minutes, unless it still keeps an older one. */
		dev_coredumpv(dump->ndev->drm.dev, text, seq_buf_used(&s), GFP_KERNEL);
	}
	clear_bit_unlock(0, &dump->taken);
}

/* --- state --------------------------------------------------------------- */

static void dump_take_others(struct neuron_dump *dump, struct neuron_ctx *ctx)
{
	struct neuron_ctx *other;
	unsigned int i;

	memset(dump->others, 0, sizeof(dump->others));
	for (i = 0; i < ctx->ndev->queues; i++) {
		other = ctx->core->ctx[i];
		if (IS_ERR_OR_NULL(other) || other == ctx)
			continue;
		dump->others[i].pid = other->pid;
		dump->others[i].id = other->id;
		dump->others[i].state = other->state.state;
		dump->others[i].head = other->head;
		dump->others[i].tail = other->tail;
	}
}

/**
 * neuron_dump_ctx - Keep the state of a context for who wants to know why
 * @ctx: context that has its queue
 * @reason: why, a constant
 *
 * Context: Any, &neuron_core.lock held.
 */
void neuron_dump_ctx(struct neuron_ctx *ctx, const char *reason)
{
	struct neuron_dump *dump = ctx->ndev->dump;
	unsigned int i;

	lockdep_assert_held(&ctx->core->lock);
	if (!ctx->mem || READ_ONCE(ctx->ndev->power) != NEURON_UP ||
	    test_and_set_bit_lock(0, &dump->taken))
		return;
	dump->reason = reason;
	dump->at = ktime_get();
	dump->core = ctx->core_index;
	dump->queue = ctx->queue;
	dump->id = ctx->id;
	dump->pid = ctx->pid;
	dump->head = ctx->head;
	dump->tail = ctx->tail;
	dump->state = ctx->state;
	for (i = 0; i < ARRAY_SIZE(dump_regs); i++)
		dump->regs[i] =
			neuron_reg_read(&ctx->ndev->exi, neuron_ctx_reg(ctx, dump_regs[i].reg));
	memcpy(&dump->mem, ctx->mem, sizeof(dump->mem));
	dump_take_others(dump, ctx);
	queue_work(neuron_free_wq, &dump->work);
}

/**
 * neuron_dump_init - Memory for a state
 * @ndev: device
 *
 * Return: 0, -ENOMEM.
 */
int neuron_dump_init(struct neuron_device *ndev)
{
	ndev->dump = drmm_kzalloc(&ndev->drm, sizeof(*ndev->dump), GFP_KERNEL);
	if (!ndev->dump)
		return -ENOMEM;
	ndev->dump->ndev = ndev;
	INIT_WORK(&ndev->dump->work, dump_work);
	return 0;
}

/**
 * neuron_dump_fini - No more dumps
 * @ndev: device whose contexts have stopped
 */
void neuron_dump_fini(struct neuron_device *ndev)
{
	cancel_work_sync(&ndev->dump->work);
}
