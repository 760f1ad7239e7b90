// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fenv.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core_priv.h"
#include "neuron_model.h"

void nm_core_log(struct nm_core *core, int level, const char *fmt, ...)
{
	char text[256];
	va_list ap;
	int n;

	n = snprintf(text, sizeof(text), "core %u: ", core->index);
	va_start(ap, fmt);
	vsnprintf(text + n, sizeof(text) - (size_t)n, fmt, ap);
	va_end(ap);
	core->bus.log(core->bus.dev, level, text);
}

/* --- requests ------------------------------------------------------------------------- */

/* Hands a request to the worker and waits until it is served. */
static void ask(struct nm_core *core, struct nm_request *req)
{
	struct nm_request **end;

	pthread_mutex_lock(&core->lock);
	for (end = &core->requests; *end; end = &(*end)->next)
		;
	*end = req;
	atomic_store(&core->attention, true);
	pthread_cond_signal(&core->work);
	while (!req->done)
		pthread_cond_wait(&core->served, &core->lock);
	pthread_mutex_unlock(&core->lock);
}

/* core->lock held. */
static void enable(struct nm_core *core, struct nm_queue *q, bool on)
{
	if (on != q->enabled)
		atomic_fetch_add(&core->enabled, on ? 1 : -1u);
	q->enabled = on;
}

static void reset_queue(struct nm_core *core, struct nm_queue *q)
{
	enable(core, q, false);
	memset(q, 0, sizeof(*q));
}

/* Completes what was rung so far; worker, core->lock held on entry and exit. */
static void drain(struct nm_core *core, unsigned int queue, bool nested)
{
	struct nm_queue *q = &core->queue[queue];
	uint32_t tail = q->tail;

	while (q->enabled && q->head != tail) {
		pthread_mutex_unlock(&core->lock);
		nm_core_entry(core, queue, nested);
		pthread_mutex_lock(&core->lock);
	}
}

static void move_sbuf(struct nm_core *core, const struct nm_request *r)
{
	uint64_t partition = r->offset / NM_SBUF_VIEW_PITCH, byte = r->offset % NM_SBUF_VIEW_PITCH;
	uint8_t *p = core->sim.exec.mem[ISA_SPACE_SBUF] + partition * NM_SBUF_PITCH + byte;

	if (r->kind == NM_REQ_SBUF_READ) {
		memcpy(r->buf, p, r->size);
		return;
	}
	memcpy(p, r->buf, r->size);
	if (core->check)
		nm_check_host_write(core->check, (unsigned int)partition, (uint32_t)byte, r->size);
	if (core->dirty[ISA_SPACE_SBUF] < byte + r->size)
		core->dirty[ISA_SPACE_SBUF] = (uint32_t)(byte + r->size);
}

static void change_sem(struct nm_core *core, const struct nm_request *r)
{
	_Atomic uint32_t *sem = &core->sim.sem[r->offset];
	uint32_t value = atomic_load(sem), step = r->value;

	switch (r->sem_op) {
	case NM_SEM_SET:
		value = step;
		break;
	case NM_SEM_INC:
		value = step > ISA_SEM_MAX - value ? ISA_SEM_MAX : value + step;
		break;
	case NM_SEM_DEC:
		value = step > value ? 0 : value - step;
		break;
	}
	atomic_store(sem, value > ISA_SEM_MAX ? ISA_SEM_MAX : value);
}

/*
 * Serves one request; worker, core->lock held. False: only after the launch under way, which is told
 * to stop.
 */
static bool serve(struct nm_core *core, struct nm_request *r, int running)
{
	bool mine = running == (int)r->queue;

	switch (r->kind) {
	case NM_REQ_ABORT:
		if (mine) {
			if (core->stop == NM_RUN_ON)
				core->stop = NM_STOP_ABORT;
			return false;
		}
		if (core->queue[r->queue].enabled)
			core->queue[r->queue].halted = true;
		drain(core, r->queue, running >= 0);
		break;
	case NM_REQ_RESET_QUEUE:
		if (mine) {
			core->stop = NM_STOP_SILENT;
			return false;
		}
		reset_queue(core, &core->queue[r->queue]);
		break;
	case NM_REQ_RESET_CORE:
		if (running >= 0) {
			core->stop = NM_STOP_SILENT;
			return false;
		}
		for (unsigned int q = 0; q < EXI_QUEUE_COUNT; q++)
			reset_queue(core, &core->queue[q]);
		nm_core_scrub(core);
		nm_cache_clear(&core->cache);
		core->has_owner = false;
		atomic_store(&core->trace, 0);
		break;
	case NM_REQ_SBUF_READ:
	case NM_REQ_SBUF_WRITE:
		move_sbuf(core, r);
		break;
	case NM_REQ_SEM:
		change_sem(core, r);
		break;
	}
	return true;
}

/* Worker, core->lock held. */
static void serve_all(struct nm_core *core)
{
	struct nm_request **link = &core->requests;
	int running = core->running;

	while (*link) {
		struct nm_request *r = *link;

		if (serve(core, r, running)) {
			*link = r->next;
			r->done = true;
			pthread_cond_broadcast(&core->served);
		} else {
			link = &r->next;
		}
	}
	if (core->quit && running >= 0)
		core->stop = NM_STOP_SILENT;
	atomic_store(&core->attention, core->requests || core->quit);
}

void nm_core_serve(struct nm_core *core)
{
	pthread_mutex_lock(&core->lock);
	serve_all(core);
	pthread_mutex_unlock(&core->lock);
}

static enum nm_verdict attend(void *user)
{
	struct nm_core *core = user;

	nm_core_serve(core);
	return core->stop == NM_RUN_ON ? NM_GO_ON : NM_ABORT;
}

/* Every unfinished engine waits. Without stall detection the launch hangs, as silicon would, until
 * the host aborts it, resets something, or moves a semaphore. */
static enum nm_verdict stall(void *user)
{
	struct nm_core *core = user;

	if (!core->sim.hung && core->bus.features(core->bus.dev) & EXI_FEATURE_STALL_DETECT)
		return NM_DEADLOCK;
	pthread_mutex_lock(&core->lock);
	while (!core->requests && !core->quit)
		pthread_cond_wait(&core->work, &core->lock);
	serve_all(core);
	pthread_mutex_unlock(&core->lock);
	return core->stop == NM_RUN_ON ? NM_GO_ON : NM_ABORT;
}

static const struct nm_sim_ops sim_ops = { attend, stall, nm_trace_notify };

/* --- worker ---------------------------------------------------------------------------- */

static bool has_work(const struct nm_queue *q)
{
	return q->enabled && q->head != q->tail;
}

/* Next queue by priority, round robin within one; -1: none. core->lock held. */
static int pick(struct nm_core *core)
{
	int best = -1;

	for (unsigned int i = 1; i <= EXI_QUEUE_COUNT; i++) {
		unsigned int n = (core->last + i) % EXI_QUEUE_COUNT;
		const struct nm_queue *q = &core->queue[n];

		if (has_work(q) && (best < 0 || q->reg[EXI_Q_PRIORITY / 4] >
							core->queue[best].reg[EXI_Q_PRIORITY / 4]))
			best = (int)n;
	}
	return best;
}

static void *worker(void *arg)
{
	struct nm_core *core = arg;

	/* Results must not depend on the rounding or flushing mode of the thread that made us. */
	fesetenv(FE_DFL_ENV);
	pthread_mutex_lock(&core->lock);
	for (;;) {
		int queue;

		serve_all(core);
		if (core->quit)
			break;
		queue = pick(core);
		if (queue < 0) {
			pthread_cond_wait(&core->work, &core->lock);
			continue;
		}
		core->last = (unsigned int)queue;
		pthread_mutex_unlock(&core->lock);
		nm_core_entry(core, (unsigned int)queue, false);
		pthread_mutex_lock(&core->lock);
	}
	pthread_mutex_unlock(&core->lock);
	return NULL;
}

int nm_core_create(const struct nm_core_bus *bus, unsigned int index, struct nm_core **out)
{
	struct nm_core *core = calloc(1, sizeof(*core));
	int ret = -ENOMEM;

	if (!core)
		return -ENOMEM;
	core->bus = *bus;
	core->index = index;
	core->running = -1;
	if (nm_exec_init(&core->sim.exec))
		goto err_free;
	if (bus->check) {
		core->check = nm_check_create(bus, index);
		if (!core->check)
			goto err_exec;
	}
	core->sim.exec.attention = &core->attention;
	core->sim.timing = nm_timing_of(bus->arch);
	core->sim.ops = &sim_ops;
	atomic_store(&core->sim.percent, 100);
	core->clock = 100;
	core->sim.user = core;
	pthread_mutex_init(&core->lock, NULL);
	pthread_cond_init(&core->work, NULL);
	pthread_cond_init(&core->served, NULL);
	if (pthread_create(&core->thread, NULL, worker, core))
		goto err_fini;
	*out = core;
	return 0;

err_fini:
	pthread_cond_destroy(&core->served);
	pthread_cond_destroy(&core->work);
	pthread_mutex_destroy(&core->lock);
	nm_check_destroy(core->check);
err_exec:
	nm_exec_fini(&core->sim.exec);
err_free:
	free(core);
	return ret;
}

void nm_core_destroy(struct nm_core *core)
{
	pthread_mutex_lock(&core->lock);
	core->quit = true;
	atomic_store(&core->attention, true);
	pthread_cond_signal(&core->work);
	pthread_mutex_unlock(&core->lock);
	pthread_join(core->thread, NULL);
	nm_cache_clear(&core->cache);
	pthread_cond_destroy(&core->served);
	pthread_cond_destroy(&core->work);
	pthread_mutex_destroy(&core->lock);
	nm_check_destroy(core->check);
	free(core->chain.node);
	nm_exec_fini(&core->sim.exec);
	free(core);
}

void nm_core_reset(struct nm_core *core)
{
	ask(core, &(struct nm_request){ .kind = NM_REQ_RESET_CORE });
}

bool nm_core_in_use(struct nm_core *core)
{
	return atomic_load_explicit(&core->enabled, memory_order_relaxed);
}

uint64_t nm_core_time_ns(struct nm_core *core)
{
	return atomic_load(&core->time_ns);
}

/* --- memories ---------------------------------------------------------------------------- */

static int sbuf(struct nm_core *core, enum nm_request_kind kind, uint64_t offset, void *buf,
		size_t size)
{
	uint64_t byte = offset % NM_SBUF_VIEW_PITCH;
	uint32_t bytes = nm_sbuf_bytes(core->bus.arch);

	if (offset / NM_SBUF_VIEW_PITCH >= ISA_PARTITIONS || size > bytes || byte > bytes - size)
		return -EFAULT;
	ask(core, &(struct nm_request){ .kind = kind, .offset = offset, .buf = buf, .size = size });
	return 0;
}

int nm_core_sbuf_read(struct nm_core *core, uint64_t offset, void *buf, size_t size)
{
	return sbuf(core, NM_REQ_SBUF_READ, offset, buf, size);
}

int nm_core_sbuf_write(struct nm_core *core, uint64_t offset, const void *buf, size_t size)
{
	return sbuf(core, NM_REQ_SBUF_WRITE, offset, (void *)(uintptr_t)buf, size);
}

uint32_t nm_core_sem_read(struct nm_core *core, unsigned int sem)
{
	return sem < ISA_SEMAPHORES ? atomic_load(&core->sim.sem[sem]) : UINT32_MAX;
}

void nm_core_sem_write(struct nm_core *core, unsigned int sem, enum nm_sem_op op, uint32_t value)
{
	if (sem < ISA_SEMAPHORES)
		ask(core,
		    &(struct nm_request){
			    .kind = NM_REQ_SEM, .offset = sem, .sem_op = op, .value = value });
}

/* --- registers --------------------------------------------------------------------------- */

/* Set-up that cannot work is remembered and answered to every entry. */
static void refuse_setup(struct nm_setup *s, bool no_records, uint64_t value, uint64_t limit)
{
	if (!s->bad) {
		s->bad_value = value;
		s->bad_limit = limit;
	}
	s->bad = true;
	s->no_records |= no_records;
}

static void latch(struct nm_queue *q)
{
	struct nm_setup *s = &q->setup;

	*s = (struct nm_setup){
		.ring = nm_queue_reg64(q, EXI_Q_RING_LO),
		.cq = nm_queue_reg64(q, EXI_Q_CQ_LO),
		.log2 = q->reg[EXI_Q_RING_LOG2 / 4],
		.owner = q->reg[EXI_Q_OWNER / 4],
	};
	if (s->ring % sizeof(struct exi_launch))
		refuse_setup(s, false, EXI_Q_RING_LO, sizeof(struct exi_launch));
	if (s->cq % sizeof(struct exi_record))
		refuse_setup(s, true, EXI_Q_CQ_LO, sizeof(struct exi_record));
	if (s->log2 < EXI_RING_LOG2_MIN || s->log2 > EXI_RING_LOG2_MAX) {
		refuse_setup(s, true, EXI_Q_RING_LOG2, EXI_RING_LOG2_MAX);
		s->log2 = EXI_RING_LOG2_MIN;
	}
}

static uint32_t status(const struct nm_core *core, unsigned int queue)
{
	const struct nm_queue *q = &core->queue[queue];

	if (!q->enabled)
		return EXI_Q_DISABLED;
	if (core->running == (int)queue || (!q->halted && q->head != q->tail))
		return EXI_Q_RUNNING;
	return q->halted ? EXI_Q_HALTED : EXI_Q_IDLE;
}

/* True the first time; core->lock held. */
static bool first_time(struct nm_core *core, uint32_t reg)
{
	uint64_t bit = 1ull << (reg / 4 % 64);
	bool first = !(core->logged[reg / 4 / 64] & bit);

	core->logged[reg / 4 / 64] |= bit;
	return first;
}

static bool in_queues(uint32_t offset)
{
	return offset < EXI_QUEUE_CORE_STRIDE && offset % 4 == 0;
}

uint32_t nm_core_reg_read(struct nm_core *core, uint32_t offset)
{
	unsigned int queue = offset / EXI_QUEUE_STRIDE, reg = offset % EXI_QUEUE_STRIDE;
	uint32_t value = UINT32_MAX;
	bool undefined = false;

	if (!in_queues(offset))
		return UINT32_MAX;
	pthread_mutex_lock(&core->lock);
	switch (reg) {
	case EXI_Q_CONTROL:
		value = core->queue[queue].enabled ? EXI_Q_ENABLE : 0;
		break;
	case EXI_Q_STATUS:
		value = status(core, queue);
		break;
	case EXI_Q_HEAD:
		value = core->queue[queue].head;
		break;
	case EXI_Q_STARTED:
		value = core->queue[queue].head + (core->running == (int)queue);
		break;
	case EXI_Q_RING_LO:
	case EXI_Q_RING_HI:
	case EXI_Q_RING_LOG2:
	case EXI_Q_CQ_LO:
	case EXI_Q_CQ_HI:
	case EXI_Q_VECTOR:
	case EXI_Q_PRIORITY:
	case EXI_Q_OWNER:
	case EXI_Q_TRACE_LO:
	case EXI_Q_TRACE_HI:
	case EXI_Q_TRACE_LOG2:
		value = core->queue[queue].reg[reg / 4];
		break;
	default:
		undefined = first_time(core, reg);
		break;
	}
	pthread_mutex_unlock(&core->lock);
	if (undefined)
		nm_core_log(core, NM_LOG_GUEST,
			    "queue %u: read of register 0x%02x, which is not readable", queue, reg);
	return value;
}

/* core->lock held. False: refused. */
static bool ring(struct nm_queue *q, uint32_t value)
{
	if (!q->enabled)
		return false;
	if (value - q->head <= 1u << q->setup.log2 && value - q->head >= q->tail - q->head) {
		q->tail = value;
		return true;
	}
	/* Which entries are meant is unknown; the next one is answered with the mistake. */
	q->overrun = true;
	q->overrun_value = value;
	if (q->tail == q->head)
		q->tail++;
	return false;
}

static void control(struct nm_core *core, unsigned int queue, uint32_t value)
{
	struct nm_queue *q = &core->queue[queue];
	struct nm_request req = { .queue = queue };

	if (value & (EXI_Q_RESET | EXI_Q_ABORT)) {
		req.kind = value & EXI_Q_RESET ? NM_REQ_RESET_QUEUE : NM_REQ_ABORT;
		ask(core, &req);
		return;
	}
	pthread_mutex_lock(&core->lock);
	if (value & EXI_Q_ENABLE && !q->enabled)
		latch(q);
	enable(core, q, value & EXI_Q_ENABLE);
	pthread_cond_signal(&core->work);
	pthread_mutex_unlock(&core->lock);
}

void nm_core_reg_write(struct nm_core *core, uint32_t offset, uint32_t value)
{
	unsigned int queue = offset / EXI_QUEUE_STRIDE, reg = offset % EXI_QUEUE_STRIDE;
	const char *mistake = NULL;

	if (!in_queues(offset))
		return;
	if (reg == EXI_Q_CONTROL) {
		control(core, queue, value);
		return;
	}
	pthread_mutex_lock(&core->lock);
	switch (reg) {
	case EXI_Q_RING_LO:
	case EXI_Q_RING_HI:
	case EXI_Q_RING_LOG2:
	case EXI_Q_CQ_LO:
	case EXI_Q_CQ_HI:
	case EXI_Q_OWNER:
	case EXI_Q_TRACE_LO:
	case EXI_Q_TRACE_HI:
	case EXI_Q_TRACE_LOG2:
		core->queue[queue].reg[reg / 4] = value;
		break;
	case EXI_Q_VECTOR:
		core->queue[queue].reg[reg / 4] = value & (EXI_VECTOR_ENABLE | EXI_VECTOR_MASK);
		break;
	case EXI_Q_PRIORITY:
		core->queue[queue].reg[reg / 4] = value & 3;
		break;
	case EXI_Q_DOORBELL:
		if (core->bus.now_ps)
			core->queue[queue].floor_ps = core->bus.now_ps(core->bus.dev);
		if (!ring(&core->queue[queue], value))
			mistake = core->queue[queue].enabled ? "doorbell outside the ring" :
							       "doorbell of a disabled queue";
		pthread_cond_signal(&core->work);
		break;
	default:
		mistake = first_time(core, reg) ? "write of a register that is not writable" : NULL;
		break;
	}
	pthread_mutex_unlock(&core->lock);
	if (mistake)
		nm_core_log(core, NM_LOG_GUEST, "queue %u, register 0x%02x, value 0x%08x: %s",
			    queue, reg, value, mistake);
}

/* --- faults ---------------------------------------------------------------------------- */

void nm_core_inject_hang(struct nm_core *core, unsigned int engine, uint32_t launches)
{
	atomic_store(&core->sim.hangs[engine], launches);
}

uint32_t nm_core_hangs(struct nm_core *core, unsigned int engine)
{
	return atomic_load(&core->sim.hangs[engine]);
}

void nm_core_inject_poison(struct nm_core *core, uint32_t transfers)
{
	atomic_store(&core->sim.poisoned, transfers);
}

uint32_t nm_core_poisoned(struct nm_core *core)
{
	return atomic_load(&core->sim.poisoned);
}

void nm_core_throttle(struct nm_core *core, unsigned int percent)
{
	atomic_store(&core->sim.percent, percent);
}

void nm_core_trace(struct nm_core *core, uint32_t engines)
{
	atomic_store(&core->trace, engines & ((1u << EXI_ENGINES) - 1));
}

uint32_t nm_core_traced(struct nm_core *core)
{
	return atomic_load(&core->trace);
}
