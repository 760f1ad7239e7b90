// SPDX-License-Identifier: Apache-2.0
/* Opening, interrupts, the worker; the rules are in inproc_priv.h. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "inproc_priv.h"

#define READY_TIMEOUT_NS 5000000000ull /* firmware after power-on */

void ip_log(struct nm_inproc *ip, int level, const char *fmt, ...)
{
	char text[256];
	va_list args;

	if (level > ip->config.log_level)
		return;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (ip->config.log)
		ip->config.log(ip->config.user, level, text);
	else
		fprintf(stderr, "neuron-model: %s\n", text);
}

uint64_t ip_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

uint32_t ip_exi_read(struct nm_inproc *ip, uint32_t offset)
{
	return (uint32_t)nm_bar_read(ip->dev, EXI_BAR, offset, 4);
}

void ip_exi_write(struct nm_inproc *ip, uint32_t offset, uint32_t value)
{
	nm_bar_write(ip->dev, EXI_BAR, offset, 4, value);
}

/* --- tables ---------------------------------------------------------------------------- */

static int table_grow(struct ip_table *t)
{
	const uint32_t size = t->size ? t->size * 2 : 64;
	void **items = realloc(t->items, size * sizeof(*items));
	uint8_t *used;

	if (!items)
		return -ENOMEM;
	t->items = items;
	used = realloc(t->used, size);
	if (!used)
		return -ENOMEM;
	t->used = used;
	for (uint32_t i = size; i-- > t->size;) {
		t->used[i] = 0;
		t->items[i] = (void *)(uintptr_t)t->first_free;
		t->first_free = i + 1;
	}
	t->size = size;
	return 0;
}

uint32_t ip_table_add(struct ip_table *t, void *item)
{
	uint32_t id;

	if (!t->first_free && table_grow(t))
		return 0;
	id = t->first_free;
	t->first_free = (uint32_t)(uintptr_t)t->items[id - 1];
	t->items[id - 1] = item;
	t->used[id - 1] = 1;
	return id;
}

void *ip_table_get(const struct ip_table *t, uint32_t id)
{
	if (!id || id > t->size || !t->used[id - 1])
		return NULL;
	return t->items[id - 1];
}

void *ip_table_take(struct ip_table *t, uint32_t id)
{
	void *item = ip_table_get(t, id);

	if (item) {
		t->used[id - 1] = 0;
		t->items[id - 1] = (void *)(uintptr_t)t->first_free;
		t->first_free = id;
	}
	return item;
}

static void table_free(struct ip_table *t)
{
	free(t->items);
	free(t->used);
}

/* --- memory that the device reaches ------------------------------------------------------ */

void *ip_dma_alloc(struct nm_inproc *ip, uint64_t size, uint64_t *iova)
{
	void *ptr = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (ptr == MAP_FAILED)
		return NULL;
	/* Bus addresses are not used twice, so a late transfer hits nothing. */
	pthread_mutex_lock(&ip->lock);
	*iova = ip->next_iova;
	ip->next_iova += (size + IP_GRANULE - 1) / IP_GRANULE * IP_GRANULE + IP_GRANULE;
	pthread_mutex_unlock(&ip->lock);
	if (nm_dma_map(ip->dev, *iova, size, ptr, NM_DMA_READ | NM_DMA_WRITE)) {
		munmap(ptr, size);
		return NULL;
	}
	return ptr;
}

void ip_dma_free(struct nm_inproc *ip, void *ptr, uint64_t size, uint64_t iova)
{
	if (!ptr)
		return;
	if (ip->dev)
		nm_dma_unmap(ip->dev, iova, size);
	munmap(ptr, size);
}

/* --- work that interrupts leave ------------------------------------------------------------ */

static bool have_work(const struct nm_inproc *ip)
{
	return !TAILQ_EMPTY(&ip->ready_ctxs) || !TAILQ_EMPTY(&ip->ready_lanes) || ip->dead_bos;
}

static void unblock(struct nm_inproc *ip)
{
	struct ip_copy *copy, *next_copy;
	struct ip_ctx *ctx, *next_ctx;

	ip->advanced = false;
	for (ctx = TAILQ_FIRST(&ip->blocked_ctxs); ctx; ctx = next_ctx) {
		next_ctx = TAILQ_NEXT(ctx, waiting);
		if (!ip_ctx_head_ready(ctx))
			continue;
		TAILQ_REMOVE(&ip->blocked_ctxs, ctx, waiting);
		TAILQ_INSERT_TAIL(&ip->ready_ctxs, ctx, waiting);
		ctx->where = CTX_READY;
	}
	for (copy = TAILQ_FIRST(&ip->blocked_copies); copy; copy = next_copy) {
		next_copy = TAILQ_NEXT(copy, list);
		if (!ip_deps_ready(&copy->deps))
			continue;
		TAILQ_REMOVE(&ip->blocked_copies, copy, list);
		ip_copy_assign(ip, copy);
	}
}

void ip_kick(struct nm_inproc *ip)
{
	if (ip->advanced)
		unblock(ip);
	ip_hand_over(ip);
}

void ip_hand_over(struct nm_inproc *ip)
{
	ip->work_left = have_work(ip);
	if (!ip->work_left || ip->spinners)
		return;
	if (ip->waiters)
		pthread_cond_broadcast(&ip->changed);
	else
		pthread_cond_signal(&ip->work);
}

void ip_fly(struct nm_inproc *ip)
{
	ip->flying++;
	if (ip->worker_asleep) {
		ip->worker_asleep = false;
		pthread_cond_signal(&ip->work);
	}
}

bool ip_run_work(struct nm_inproc *ip)
{
	struct ip_lane *lane;
	struct ip_ctx *ctx;

	pthread_mutex_lock(&ip->lock);
	ctx = TAILQ_FIRST(&ip->ready_ctxs);
	if (ctx) {
		TAILQ_REMOVE(&ip->ready_ctxs, ctx, waiting);
		ctx->where = CTX_QUIET;
		ctx->refs++;
	}
	lane = TAILQ_FIRST(&ip->ready_lanes);
	if (lane) {
		TAILQ_REMOVE(&ip->ready_lanes, lane, waiting);
		lane->ready = false;
	}
	ip->work_left = have_work(ip);
	pthread_mutex_unlock(&ip->lock);

	if (ctx) {
		ip_ctx_ring(ip, ctx);
		pthread_mutex_lock(&ip->lock);
		ip_ctx_put(ctx);
		pthread_mutex_unlock(&ip->lock);
	}
	if (lane)
		ip_lane_push(ip, lane);
	return ip_bo_reap(ip) || ctx || lane;
}

static void timespec_of(uint64_t ns, struct timespec *ts)
{
	ts->tv_sec = (time_t)(ns / 1000000000ull);
	ts->tv_nsec = (long)(ns % 1000000000ull);
}

int ip_wait(struct nm_inproc *ip, int64_t deadline_ns)
{
	struct timespec ts;
	int ret = 0;

	if (have_work(ip)) {
		pthread_mutex_unlock(&ip->lock);
		ip_run_work(ip);
		pthread_mutex_lock(&ip->lock);
		return 0;
	}
	ip->waiters++;
	if (deadline_ns == INT64_MAX) {
		pthread_cond_wait(&ip->changed, &ip->lock);
	} else {
		timespec_of(deadline_ns > 0 ? (uint64_t)deadline_ns : 0, &ts);
		ret = pthread_cond_timedwait(&ip->changed, &ip->lock, &ts);
	}
	ip->waiters--;
	ip_hand_over(ip);
	return ret == ETIMEDOUT ? -ETIME : 0;
}

static void *worker_main(void *arg)
{
	struct nm_inproc *ip = arg;
	uint64_t deadline = 0;
	struct timespec ts;
	int ret;

	pthread_mutex_lock(&ip->lock);
	while (!ip->stop) {
		if (have_work(ip)) {
			pthread_mutex_unlock(&ip->lock);
			ip_run_work(ip);
			pthread_mutex_lock(&ip->lock);
			continue;
		}
		if (!deadline)
			deadline = ip_now_ns() + IP_WATCH_NS;
		timespec_of(deadline, &ts);
		ret = pthread_cond_timedwait(&ip->work, &ip->lock, &ts);
		if (ret != ETIMEDOUT)
			continue;
		deadline = 0;
		ip_ctx_watch(ip);
		ip_lane_watch(ip);
		ip_kick(ip);
		ip->worker_asleep = !ip->flying;
		while (ip->worker_asleep && !ip->stop && !have_work(ip))
			pthread_cond_wait(&ip->work, &ip->lock);
		ip->worker_asleep = false;
	}
	pthread_mutex_unlock(&ip->lock);
	return NULL;
}

/* On a thread of the device. */
static void on_irq(void *user, unsigned int vector)
{
	struct nm_inproc *ip = user;
	struct ip_ctx *ctx;

	pthread_mutex_lock(&ip->lock);
	if (vector < IP_CTX_VECTORS) {
		for (ctx = TAILQ_FIRST(&ip->all_ctxs); ctx; ctx = TAILQ_NEXT(ctx, all)) {
			if (ctx->vector == vector)
				ip_ctx_drain(ip, ctx);
		}
	} else if (vector - IP_CTX_VECTORS < ip->lanes) {
		ip_lane_drain(ip, &ip->lane[vector - IP_CTX_VECTORS]);
	}
	ip_kick(ip);
	pthread_mutex_unlock(&ip->lock);
}

static void on_log(void *user, int level, const char *text)
{
	struct nm_inproc *ip = user;

	if (ip->config.log)
		ip->config.log(ip->config.user, level, text);
	else
		fprintf(stderr, "neuron-model: %s\n", text);
}

/* --- open and close -------------------------------------------------------------------------- */

static int read_facts(struct nm_inproc *ip)
{
	struct nm_inproc_facts *f = &ip->facts;
	const uint32_t misc = ip->chip->misc_ram;
	const uint64_t give_up = ip_now_ns() + READY_TIMEOUT_NS;
	struct timespec nap = { .tv_nsec = 1000000 };
	uint32_t status;

	f->pci_device = nm_config_read(ip->dev, 2, 2);
	f->pci_revision = nm_config_read(ip->dev, 8, 1);
	ip->apb_bar = f->pci_revision == NEURON_PCI_REV_QEMU ? V3_BAR_APB_QEMU : V3_BAR_APB;
	if (ip_exi_read(ip, EXI_MAGIC) != EXI_MAGIC_VALUE) {
		ip_log(ip, NM_LOG_ERROR, "device has no execution interface");
		return -EIO;
	}
	f->exec_version = ip_exi_read(ip, EXI_VERSION);
	if (f->exec_version >> 16 != EXI_VERSION_MAJOR) {
		ip_log(ip, NM_LOG_ERROR, "execution interface %u is not supported, only %u",
		       f->exec_version >> 16, EXI_VERSION_MAJOR);
		return -EIO;
	}
	do {
		status = (uint32_t)nm_bar_read(ip->dev, ip->apb_bar, misc + MBOX_STATUS, 4);
		if (status != MBOX_NOT_READY && !(status & MBOX_STATUS_NOT_READY))
			break;
		nanosleep(&nap, NULL);
	} while (ip_now_ns() < give_up);
	if (status == MBOX_NOT_READY || (status & MBOX_STATUS_NOT_READY)) {
		ip_log(ip, NM_LOG_ERROR, "firmware is not ready after 5 s, status 0x%x", status);
		return -EIO;
	}
	f->arch = ip_exi_read(ip, EXI_ARCH);
	f->cores = ip_exi_read(ip, EXI_CORES);
	f->cores_joined = ip->chip->cores_joined;
	f->sbuf_bytes = ip_exi_read(ip, EXI_SBUF_BYTES);
	f->psum_bytes = ip_exi_read(ip, EXI_PSUM_BYTES);
	f->slots_max = EXI_SLOTS_MAX;
	f->inflight_max = IP_RING;
	f->serial = nm_bar_read(ip->dev, ip->apb_bar, misc + MBOX_SERIAL_LO, 4) |
		    nm_bar_read(ip->dev, ip->apb_bar, misc + MBOX_SERIAL_HI, 4) << 32;
	ip->stack_bytes = (uint64_t)ip_exi_read(ip, EXI_HBM_MIB) << 20;
	ip->hbm = nm_hbm_ptr(ip->dev);
	if (ip->stack_bytes * ip->chip->stacks != nm_bar_size(ip->dev, V3_BAR_DRAM)) {
		ip_log(ip, NM_LOG_ERROR, "HBM size %llu MiB a stack does not fit the DRAM BAR",
		       (unsigned long long)(ip->stack_bytes >> 20));
		return -EIO;
	}
	return 0;
}

static int init_locks(struct nm_inproc *ip)
{
	pthread_condattr_t attr;
	int ret;

	ret = pthread_condattr_init(&attr);
	if (ret)
		return -ret;
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_mutex_init(&ip->lock, NULL);
	pthread_cond_init(&ip->changed, &attr);
	pthread_cond_init(&ip->work, &attr);
	pthread_condattr_destroy(&attr);
	for (unsigned int i = 0; i < IP_LANES; i++)
		pthread_mutex_init(&ip->lane[i].push, NULL);
	return 0;
}

static void init_lists(struct nm_inproc *ip)
{
	TAILQ_INIT(&ip->all_ctxs);
	TAILQ_INIT(&ip->blocked_ctxs);
	TAILQ_INIT(&ip->ready_ctxs);
	TAILQ_INIT(&ip->ready_lanes);
	TAILQ_INIT(&ip->blocked_copies);
	TAILQ_INIT(&ip->free_copies);
	for (unsigned int i = 0; i < IP_LANES; i++)
		TAILQ_INIT(&ip->lane[i].copies);
	ip->next_iova = IP_GRANULE;
	ip->next_program_id = 1;
}

int nm_inproc_open(const struct nm_inproc_config *config, struct nm_inproc **out)
{
	struct nm_inproc *ip = calloc(1, sizeof(*ip));
	struct nm_config device = {
		.server = config->server,
		.number = config->number,
		.chip = config->chip,
		.cores = config->cores,
		.hbm_bytes = config->hbm_bytes,
		.serial = config->serial,
		.device_id = config->device_id,
		.check = config->check,
		.report = config->report,
		.threads = config->threads,
		.log_level = config->log_level,
		.log = on_log,
		.irq = on_irq,
		.user = ip,
	};
	int ret;

	if (!ip)
		return -ENOMEM;
	ip->config = *config;
	ip->chip = nm_chip_find(config->server ? nm_server_chip(config->server) :
				config->chip   ? config->chip :
						 nm_chip_default()->name);
	init_lists(ip);
	ret = init_locks(ip);
	if (ret) {
		free(ip);
		return ret;
	}
	ret = nm_device_create(&device, &ip->dev);
	if (ret) {
		ip->dev = NULL;
		goto err_close;
	}
	ip->lanes = ip->chip->cores; /* the device knows the chip, or would not be */
	nm_enable(ip->dev);
	ret = read_facts(ip);
	if (!ret)
		ret = ip_hbm_init(ip);
	if (!ret)
		ret = ip_lanes_init(ip);
	if (!ret)
		ret = -pthread_create(&ip->worker, NULL, worker_main, ip);
	if (ret)
		goto err_close;
	ip->worker_started = true;
	*out = ip;
	return 0;

err_close:
	nm_inproc_close(ip);
	return ret;
}

static void free_table_items(struct nm_inproc *ip)
{
	for (uint32_t id = 1; id <= ip->programs.size; id++) {
		struct ip_program *program = ip_table_take(&ip->programs, id);

		if (program)
			ip_program_put(ip, program);
	}
	for (uint32_t id = 1; id <= ip->syncs.size; id++) {
		struct ip_sync *sync = ip_table_take(&ip->syncs, id);

		if (sync)
			ip_sync_put(sync);
	}
	for (uint32_t id = 1; id <= ip->bos.size; id++) {
		struct ip_bo *bo = ip_table_take(&ip->bos, id);

		if (bo)
			ip_bo_put(ip, bo);
	}
	ip_bo_reap(ip);
}

void nm_inproc_flush(struct nm_inproc *ip)
{
	nm_device_flush(ip->dev);
}

void nm_inproc_close(struct nm_inproc *ip)
{
	if (!ip)
		return;
	if (ip->worker_started) {
		pthread_mutex_lock(&ip->lock);
		ip->stop = true;
		pthread_cond_signal(&ip->work);
		pthread_mutex_unlock(&ip->lock);
		pthread_join(ip->worker, NULL);
	}
	/* From here on no thread but this one knows of ip. */
	if (ip->dev)
		nm_device_destroy(ip->dev);
	ip->dev = NULL;
	ip_ctx_free_all(ip);
	ip_lanes_fini(ip);
	free_table_items(ip);
	ip_hbm_fini(ip);
	table_free(&ip->bos);
	table_free(&ip->syncs);
	table_free(&ip->programs);
	table_free(&ip->ctxs);
	for (unsigned int i = 0; i < IP_LANES; i++)
		pthread_mutex_destroy(&ip->lane[i].push);
	pthread_cond_destroy(&ip->work);
	pthread_cond_destroy(&ip->changed);
	pthread_mutex_destroy(&ip->lock);
	free(ip);
}

void nm_inproc_facts(struct nm_inproc *ip, struct nm_inproc_facts *facts)
{
	*facts = ip->facts;
}
