// SPDX-License-Identifier: Apache-2.0
/*
 * Contexts: one queue of a core each. A launch gets its ring entry and slot
 * table when it is submitted; the doorbell covers it once its in fences have
 * signalled, in order. The record that answers it signals its out fences.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "inproc_priv.h"

#define OWNER 1 /* EXI_Q_OWNER: all contexts belong to this process */

#define RING_BYTES  (IP_RING * sizeof(struct exi_launch))
#define CQ_BYTES    (IP_RING * sizeof(struct exi_record))
#define SLOT_BYTES  (IP_SLOT_RING * sizeof(struct exi_slot))
#define ARENA_BYTES (CQ_BYTES + RING_BYTES + SLOT_BYTES)

static struct ip_job *job_at(struct ip_ctx *ctx, uint32_t count)
{
	return &ctx->jobs[count % IP_RING];
}

static uint32_t queue_reg(const struct ip_ctx *ctx, uint32_t reg)
{
	return EXI_QUEUE(ctx->core, ctx->queue) + reg;
}

/* --- completion ---------------------------------------------------------------------------- */

static void set_where(struct nm_inproc *ip, struct ip_ctx *ctx, enum ip_where where)
{
	if (ctx->where == CTX_BLOCKED)
		TAILQ_REMOVE(&ip->blocked_ctxs, ctx, waiting);
	else if (ctx->where == CTX_READY)
		TAILQ_REMOVE(&ip->ready_ctxs, ctx, waiting);
	ctx->where = where;
	if (where == CTX_BLOCKED)
		TAILQ_INSERT_TAIL(&ip->blocked_ctxs, ctx, waiting);
	else if (where == CTX_READY)
		TAILQ_INSERT_TAIL(&ip->ready_ctxs, ctx, waiting);
}

/* The oldest launch is over. */
static void retire(struct nm_inproc *ip, struct ip_ctx *ctx, uint64_t time_ns)
{
	struct ip_job *job = job_at(ctx, ctx->completed);

	for (uint32_t i = 0; i < job->n_slots; i++) {
		struct ip_bo *bo = ctx->slot_bo[job->slot_first + i];

		if (bo)
			ip_bo_put(ip, bo);
	}
	ip_program_put(ip, job->program);
	ctx->slot_tail = job->slot_end;
	ctx->completed++;
	ip->flying--;
	ip_deps_signal(ip, &job->deps, time_ns);
	if (ctx->full && (ctx->dead || ctx->written - ctx->completed <= IP_RING / 2))
		pthread_cond_broadcast(&ip->changed);
}

static void count(struct ip_ctx *ctx, const struct exi_record *rec)
{
	struct nm_inproc_ctx_state *state = &ctx->state;

	state->launches++;
	state->device_ns += rec->end_ns - rec->start_ns;
	state->dma_bytes += rec->dma_bytes;
	for (int i = 0; i < EXI_ENGINES; i++)
		state->insts[i] += rec->insts[i];
}

/* First record that is not OK: the context is dead. */
static void fault(struct ip_ctx *ctx, const struct exi_record *rec)
{
	struct nm_inproc_ctx_state *state = &ctx->state;

	ctx->dead = true;
	ctx->guilty = job_at(ctx, ctx->completed)->program;
	ctx->guilty->refs++;
	state->state = ctx->aborted ? NM_CTX_TIMEDOUT : NM_CTX_FAULTED;
	state->fault = rec->status;
	state->engine = rec->engine == 0xff ? UINT32_MAX : rec->engine;
	state->pc = rec->pc;
	state->opcode = rec->opcode;
	state->slot = rec->slot == 0xffff ? UINT32_MAX : rec->slot;
	state->value = rec->value;
	state->limit = rec->limit;
}

/* The device writes the word with the phase last, in one store: the rest is there with it. */
static uint8_t record_phase(const struct exi_record *rec)
{
	typedef uint64_t __attribute__((may_alias)) word;

	_Static_assert(offsetof(struct exi_record, phase) == 7, "phase is not in the first word");
	return (uint8_t)(__atomic_load_n((const word *)rec, __ATOMIC_ACQUIRE) >> 56);
}

void ip_ctx_drain(struct nm_inproc *ip, struct ip_ctx *ctx)
{
	while (ctx->completed != ctx->rung) {
		const struct exi_record *rec = &ctx->cq[ctx->completed % IP_RING];
		const uint8_t phase = ((ctx->completed >> IP_RING_LOG2) & 1) ^ 1;

		if (record_phase(rec) != phase)
			break;
		if (rec->end_ns > ip->last_ns)
			ip->last_ns = rec->end_ns;
		if (rec->status == EXI_OK)
			count(ctx, rec);
		else if (!ctx->dead)
			fault(ctx, rec);
		ip->core_done[ctx->core]++;
		retire(ip, ctx, ip->last_ns);
	}
	/* What the device was never told of is cancelled here. */
	if (ctx->dead && ctx->completed == ctx->rung) {
		while (ctx->completed != ctx->written) {
			ctx->rung++;
			retire(ip, ctx, ip->last_ns);
		}
		set_where(ip, ctx, CTX_QUIET);
	}
}

bool ip_ctx_head_ready(struct ip_ctx *ctx)
{
	return ctx->rung != ctx->written && ip_deps_ready(&job_at(ctx, ctx->rung)->deps);
}

void ip_ctx_ring(struct nm_inproc *ip, struct ip_ctx *ctx)
{
	uint32_t before, rung;

	pthread_mutex_lock(&ctx->push);
	pthread_mutex_lock(&ip->lock);
	before = ctx->rung;
	while (!ctx->dead && ip_ctx_head_ready(ctx))
		ctx->rung++;
	rung = ctx->rung;
	set_where(ip, ctx, rung == ctx->written ? CTX_QUIET : CTX_BLOCKED);
	pthread_mutex_unlock(&ip->lock);
	if (rung != before)
		ip_exi_write(ip, queue_reg(ctx, EXI_Q_DOORBELL), rung);
	pthread_mutex_unlock(&ctx->push);
}

/* --- submission ------------------------------------------------------------------------------ */

/* First entry for a slot table of n in the slot ring, or UINT32_MAX when it is full.
 * Tables are contiguous and 64-byte aligned; *end is the count after the table. */
static uint32_t slot_room(const struct ip_ctx *ctx, uint32_t n, uint32_t *end)
{
	const uint32_t take = (n + 1) & ~1u;
	uint32_t first = ctx->slot_head % IP_SLOT_RING;
	uint32_t skip = 0;

	if (first + take > IP_SLOT_RING) {
		skip = IP_SLOT_RING - first;
		first = 0;
	}
	*end = ctx->slot_head + skip + take;
	return *end - ctx->slot_tail > IP_SLOT_RING ? UINT32_MAX : first;
}

static int fill_slot(struct nm_inproc *ip, const struct nprog_slot *want,
		     const struct nm_inproc_slot *arg, struct exi_slot *slot, struct ip_bo **used)
{
	const bool scalar = want->kind == NPROG_SLOT_SCALAR;
	struct ip_bo *bo;

	*used = NULL;
	if (arg->flags & ~NM_SLOT_INLINE || !(arg->flags & NM_SLOT_INLINE) != !scalar)
		return -EINVAL;
	if (scalar) {
		if (arg->size != 8 || arg->handle)
			return -EINVAL;
		*slot = (struct exi_slot){
			.base = arg->offset,
			.size = 8,
			.rights = EXI_SLOT_READ | EXI_SLOT_INLINE,
		};
		return 0;
	}
	bo = ip_table_get(&ip->bos, arg->handle);
	if (!bo)
		return -ENOENT;
	if (!(bo->flags & NM_BO_HBM) || arg->offset > bo->size ||
	    arg->size > bo->size - arg->offset || arg->size < want->min_bytes)
		return -EINVAL;
	*slot = (struct exi_slot){
		.base = bo->addr + arg->offset,
		.size = arg->size,
		.rights = want->rights,
	};
	*used = bo;
	return 0;
}

static int fill_slots(struct nm_inproc *ip, struct ip_ctx *ctx, const struct ip_program *program,
		      const struct nm_inproc_submit *s, uint32_t first)
{
	int ret;

	for (uint32_t i = 0; i < s->n_slots; i++) {
		ret = fill_slot(ip, &program->slots[i], &s->slots[i], &ctx->slots[first + i],
				&ctx->slot_bo[first + i]);
		if (ret)
			return ret;
	}
	return 0;
}

static void take_refs(struct ip_ctx *ctx, struct ip_job *job)
{
	for (uint32_t i = 0; i < job->n_slots; i++) {
		if (ctx->slot_bo[job->slot_first + i])
			ctx->slot_bo[job->slot_first + i]->refs++;
	}
	job->program->refs++;
}

/* Writes the entry. ip->lock is held; on return with 1 the doorbell is to be rung. */
static int submit_locked(struct nm_inproc *ip, struct ip_ctx *ctx, const struct nm_inproc_submit *s)
{
	struct ip_program *program;
	struct ip_job *job;
	uint32_t first, end;
	int ret;

	for (;;) {
		if (ip->broken)
			return -ENODEV;
		if (ctx->dead)
			return -EIO;
		program = ip_table_get(&ip->programs, s->program);
		if (!program)
			return -ENOENT;
		if (s->n_slots != program->n_slots)
			return -EINVAL;
		first = slot_room(ctx, s->n_slots, &end);
		if (first != UINT32_MAX && ctx->written - ctx->completed < IP_RING)
			break;
		ctx->full++;
		ip_wait(ip, INT64_MAX);
		ctx->full--;
	}
	ret = fill_slots(ip, ctx, program, s, first);
	if (ret)
		return ret;
	job = job_at(ctx, ctx->written);
	ret = ip_deps_init(ip, &job->deps, s->in, s->n_in, s->out, s->n_out);
	if (ret)
		return ret;
	job->program = program;
	job->slot_first = first;
	job->n_slots = s->n_slots;
	job->slot_end = end;
	take_refs(ctx, job);
	ctx->ring[ctx->written % IP_RING] = (struct exi_launch){
		.program_addr = program->bo->addr,
		.program_id = program->id,
		.program_bytes = program->bytes,
		.n_slots = s->n_slots,
		.slots_addr = ip->chip->host |
			      (ctx->iova + CQ_BYTES + RING_BYTES + first * sizeof(struct exi_slot)),
		.seqno = ctx->written,
		.flags = EXI_LAUNCH_IRQ,
	};
	ctx->slot_head = end;
	ctx->written++;
	ip_fly(ip);
	if (ctx->rung + 1 == ctx->written && ip_ctx_head_ready(ctx))
		return 1;
	if (ctx->where == CTX_QUIET)
		set_where(ip, ctx, CTX_BLOCKED);
	return 0;
}

int nm_inproc_submit(struct nm_inproc *ip, const struct nm_inproc_submit *s)
{
	struct ip_ctx *ctx;
	int ret;

	pthread_mutex_lock(&ip->lock);
	ctx = ip_table_get(&ip->ctxs, s->ctx);
	if (!ctx) {
		pthread_mutex_unlock(&ip->lock);
		return -ENOENT;
	}
	ctx->refs++;
	ret = submit_locked(ip, ctx, s);
	pthread_mutex_unlock(&ip->lock);

	if (ret > 0)
		ip_ctx_ring(ip, ctx);
	pthread_mutex_lock(&ip->lock);
	ip_ctx_put(ctx);
	pthread_mutex_unlock(&ip->lock);
	return ret > 0 ? 0 : ret;
}

/* --- life --------------------------------------------------------------------------------- */

void ip_ctx_put(struct ip_ctx *ctx)
{
	if (--ctx->refs)
		return;
	pthread_mutex_destroy(&ctx->push);
	free(ctx->jobs);
	free(ctx->slot_bo);
	free(ctx);
}

static struct ip_ctx *ctx_make(struct nm_inproc *ip)
{
	struct ip_ctx *ctx = calloc(1, sizeof(*ctx));

	if (!ctx)
		return NULL;
	ctx->refs = 1;
	pthread_mutex_init(&ctx->push, NULL);
	ctx->jobs = calloc(IP_RING, sizeof(*ctx->jobs));
	ctx->slot_bo = calloc(IP_SLOT_RING, sizeof(*ctx->slot_bo));
	if (ctx->jobs && ctx->slot_bo)
		ctx->arena = ip_dma_alloc(ip, ARENA_BYTES, &ctx->iova);
	if (!ctx->arena) {
		ip_ctx_put(ctx);
		return NULL;
	}
	ctx->cq = ctx->arena;
	ctx->ring = (struct exi_launch *)((uint8_t *)ctx->arena + CQ_BYTES);
	ctx->slots = (struct exi_slot *)((uint8_t *)ctx->arena + CQ_BYTES + RING_BYTES);
	ctx->state.engine = UINT32_MAX;
	ctx->state.slot = UINT32_MAX;
	return ctx;
}

static void set_up_queue(struct nm_inproc *ip, struct ip_ctx *ctx, uint32_t priority)
{
	static const uint32_t exi_priority[] = { 1, 0, 2 };
	const uint64_t cq = ip->chip->host | ctx->iova;
	const uint64_t ring = cq + CQ_BYTES;

	ip_exi_write(ip, queue_reg(ctx, EXI_Q_RING_LO), (uint32_t)ring);
	ip_exi_write(ip, queue_reg(ctx, EXI_Q_RING_HI), (uint32_t)(ring >> 32));
	ip_exi_write(ip, queue_reg(ctx, EXI_Q_RING_LOG2), IP_RING_LOG2);
	ip_exi_write(ip, queue_reg(ctx, EXI_Q_CQ_LO), (uint32_t)cq);
	ip_exi_write(ip, queue_reg(ctx, EXI_Q_CQ_HI), (uint32_t)(cq >> 32));
	ip_exi_write(ip, queue_reg(ctx, EXI_Q_VECTOR), EXI_VECTOR_ENABLE | ctx->vector);
	ip_exi_write(ip, queue_reg(ctx, EXI_Q_PRIORITY), exi_priority[priority]);
	ip_exi_write(ip, queue_reg(ctx, EXI_Q_OWNER), OWNER);
	ip_exi_write(ip, queue_reg(ctx, EXI_Q_CONTROL), EXI_Q_ENABLE);
}

/* Core with a free queue and the fewest living contexts; NM_CORES: none has one. Lock held. */
static unsigned int choose_core(struct nm_inproc *ip, uint64_t cores)
{
	unsigned int load[NM_CORES] = { 0 }, best = NM_CORES;
	struct ip_ctx *ctx;

	for (ctx = TAILQ_FIRST(&ip->all_ctxs); ctx; ctx = TAILQ_NEXT(ctx, all))
		load[ctx->core] += !ctx->dead;
	for (unsigned int core = 0; core < ip->facts.cores; core++) {
		if (!(cores >> core & 1) || ip->queues_used[core] == UINT64_MAX)
			continue;
		if (best == NM_CORES || load[core] < load[best])
			best = core;
	}
	return best;
}

/* Gives the context a queue and a handle. Lock held. */
static int ctx_settle(struct nm_inproc *ip, struct ip_ctx *ctx, uint64_t cores, uint32_t *handle)
{
	ctx->core = choose_core(ip, cores);
	if (ctx->core == NM_CORES)
		return -ENOSPC;
	*handle = ip_table_add(&ip->ctxs, ctx);
	if (!*handle)
		return -ENOMEM;
	ctx->queue = (unsigned int)__builtin_ctzll(~ip->queues_used[ctx->core]);
	ctx->vector = (*handle - 1) % IP_CTX_VECTORS;
	ip->queues_used[ctx->core] |= 1ull << ctx->queue;
	TAILQ_INSERT_TAIL(&ip->all_ctxs, ctx, all);
	return 0;
}

int nm_inproc_ctx_create(struct nm_inproc *ip, uint64_t cores, uint32_t priority, uint32_t *handle,
			 uint32_t *core)
{
	struct ip_ctx *ctx;
	int ret;

	if (!cores || cores >> ip->facts.cores || priority > 2)
		return -EINVAL;
	ctx = ctx_make(ip);
	if (!ctx)
		return -ENOMEM;
	pthread_mutex_lock(&ip->lock);
	ret = ctx_settle(ip, ctx, cores, handle);
	pthread_mutex_unlock(&ip->lock);
	if (ret) {
		ip_dma_free(ip, ctx->arena, ARENA_BYTES, ctx->iova);
		ip_ctx_put(ctx);
		return ret;
	}
	if (core)
		*core = ctx->core;
	set_up_queue(ip, ctx, priority);
	return 0;
}

int nm_inproc_ctx_destroy(struct nm_inproc *ip, uint32_t handle)
{
	struct ip_ctx *ctx;

	pthread_mutex_lock(&ip->lock);
	ctx = ip_table_take(&ip->ctxs, handle);
	if (!ctx) {
		pthread_mutex_unlock(&ip->lock);
		return -ENOENT;
	}
	ctx->dead = true;
	pthread_mutex_unlock(&ip->lock);

	/* A thread on its way to the doorbell is through when push is free. */
	pthread_mutex_lock(&ctx->push);
	ip_exi_write(ip, queue_reg(ctx, EXI_Q_CONTROL), EXI_Q_RESET);
	pthread_mutex_unlock(&ctx->push);

	pthread_mutex_lock(&ip->lock);
	ip_ctx_drain(ip, ctx);
	while (ctx->completed != ctx->written)
		retire(ip, ctx, ip->last_ns);
	ctx->rung = ctx->written;
	set_where(ip, ctx, CTX_QUIET);
	TAILQ_REMOVE(&ip->all_ctxs, ctx, all);
	ip->queues_used[ctx->core] &= ~(1ull << ctx->queue);
	if (ctx->guilty)
		ip_program_put(ip, ctx->guilty);
	ctx->guilty = NULL;
	pthread_cond_broadcast(&ip->changed);
	ip_kick(ip);
	pthread_mutex_unlock(&ip->lock);

	ip_dma_free(ip, ctx->arena, ARENA_BYTES, ctx->iova);
	pthread_mutex_lock(&ip->lock);
	ip_ctx_put(ctx);
	pthread_mutex_unlock(&ip->lock);
	return 0;
}

int nm_inproc_ctx_state(struct nm_inproc *ip, uint32_t handle, struct nm_inproc_ctx_state *state)
{
	struct ip_ctx *ctx;
	int ret;

	pthread_mutex_lock(&ip->lock);
	ctx = ip_table_get(&ip->ctxs, handle);
	if (ctx) {
		*state = ctx->state;
		state->program = ctx->guilty ? ctx->guilty->handle : 0;
	}
	ret = !ctx ? -ENOENT : ip->broken ? -ENODEV : 0;
	pthread_mutex_unlock(&ip->lock);
	return ret;
}

void ip_ctx_free_all(struct nm_inproc *ip)
{
	struct ip_ctx *ctx;

	while ((ctx = TAILQ_FIRST(&ip->all_ctxs))) {
		while (ctx->completed != ctx->written)
			retire(ip, ctx, 0);
		set_where(ip, ctx, CTX_QUIET);
		TAILQ_REMOVE(&ip->all_ctxs, ctx, all);
		if (ctx->guilty)
			ip_program_put(ip, ctx->guilty);
		ip_dma_free(ip, ctx->arena, ARENA_BYTES, ctx->iova);
		ip_ctx_put(ctx);
	}
}

/* --- watchdog -------------------------------------------------------------------------------- */

/* Has the core had work, and finished none, for longer than a launch may take? */
static bool core_stuck(struct nm_inproc *ip, unsigned int core, uint64_t now)
{
	const uint64_t limit = ip->config.exec_timeout_ns;
	struct ip_ctx *ctx;
	bool busy = false;
	uint64_t ns;

	for (ctx = TAILQ_FIRST(&ip->all_ctxs); ctx; ctx = TAILQ_NEXT(ctx, all))
		busy |= ctx->core == core && ctx->completed != ctx->rung;
	ns = ip_watch_ns(&ip->core_watch[core], busy, ip->core_done[core], now);
	return limit && ns > limit;
}

/* Aborts the context's launch if the core is running it. Without the lock. */
static bool stop_if_running(struct nm_inproc *ip, struct ip_ctx *ctx)
{
	bool running = false;

	/* Under push the context keeps its queue. */
	pthread_mutex_lock(&ctx->push);
	pthread_mutex_lock(&ip->lock);
	if (!ctx->dead)
		running = ctx->completed != ctx->rung;
	pthread_mutex_unlock(&ip->lock);
	/* A queue that waits for its turn is RUNNING too; only one of the core's has started. */
	if (running)
		running = ip_exi_read(ip, queue_reg(ctx, EXI_Q_STARTED)) !=
			  ip_exi_read(ip, queue_reg(ctx, EXI_Q_HEAD));
	if (running) {
		ip_log(ip, NM_LOG_GUEST, "core %u: a launch did not end in %llu s and was stopped",
		       ctx->core, (unsigned long long)(ip->config.exec_timeout_ns / 1000000000));
		pthread_mutex_lock(&ip->lock);
		ctx->aborted = true;
		pthread_mutex_unlock(&ip->lock);
		ip_exi_write(ip, queue_reg(ctx, EXI_Q_CONTROL), EXI_Q_ENABLE | EXI_Q_ABORT);
	}
	pthread_mutex_unlock(&ctx->push);
	return running;
}

static void stop_running(struct nm_inproc *ip, unsigned int core)
{
	struct ip_ctx *list[EXI_QUEUE_COUNT];
	unsigned int n = 0;
	struct ip_ctx *ctx;
	bool done = false;

	for (ctx = TAILQ_FIRST(&ip->all_ctxs); ctx; ctx = TAILQ_NEXT(ctx, all)) {
		if (ctx->core == core && !ctx->dead && ctx->completed != ctx->rung) {
			ctx->refs++;
			list[n++] = ctx;
		}
	}
	pthread_mutex_unlock(&ip->lock);
	for (unsigned int i = 0; i < n && !done; i++)
		done = stop_if_running(ip, list[i]);
	pthread_mutex_lock(&ip->lock);
	for (unsigned int i = 0; i < n; i++)
		ip_ctx_put(list[i]);
	ip->core_watch[core].since_ns = 0;
}

void ip_ctx_watch(struct nm_inproc *ip)
{
	const uint64_t now = ip_now_ns();
	struct ip_ctx *ctx;

	/* An interrupt may have been lost. */
	for (ctx = TAILQ_FIRST(&ip->all_ctxs); ctx; ctx = TAILQ_NEXT(ctx, all))
		ip_ctx_drain(ip, ctx);
	for (unsigned int core = 0; core < ip->facts.cores; core++) {
		if (core_stuck(ip, core, now))
			stop_running(ip, core);
	}
}
