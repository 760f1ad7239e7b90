// SPDX-License-Identifier: Apache-2.0
/*
 * The device as a whole: its life, the thread that does what takes time, reset, what cores get.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "report.h"
#include "team.h"

#define HBM_DEFAULT    (4ull << 30)
#define HBM_MIN	       (64ull << 20)
#define SERIAL_DEFAULT 0x4e4d303030303031ull

/* --- reports ------------------------------------------------------------------ */

static void log_line(struct nm_device *dev, int level, const char *fmt, va_list args)
{
	static const char *const names[] = { "error", "guest error", "info", "trace" };
	char text[512];
	int n;

	if (level > dev->config.log_level)
		return;
	n = vsnprintf(text, sizeof(text), fmt, args);
	if (n < 0)
		return;
	if (dev->config.log)
		dev->config.log(dev->config.user, level, text);
	else
		fprintf(stderr, "neuron-model: %s: %s\n", names[level], text);
}

void nm_log(struct nm_device *dev, int level, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	log_line(dev, level, fmt, args);
	va_end(args);
}

static bool first_time(struct nm_device *dev, uint64_t key)
{
	bool fresh = false;

	key++; /* 0 marks a free place */
	pthread_mutex_lock(&dev->log_lock);
	for (size_t i = 0; i < NM_GUEST_ERRORS; i++) {
		uint64_t *place =
			&dev->reported[(key * 0x9e3779b97f4a7c15ull + i) % NM_GUEST_ERRORS];

		if (*place == key)
			break;
		if (*place)
			continue;
		*place = key;
		fresh = true;
		break;
	}
	pthread_mutex_unlock(&dev->log_lock);
	return fresh;
}

void nm_guest_error(struct nm_device *dev, uint64_t key, const char *fmt, ...)
{
	va_list args;

	atomic_fetch_add(&dev->guest_errors, 1);
	if (!first_time(dev, key))
		return;
	va_start(args, fmt);
	log_line(dev, NM_LOG_GUEST, fmt, args);
	va_end(args);
}

uint64_t nm_guest_errors(struct nm_device *dev)
{
	return atomic_load(&dev->guest_errors);
}

/* --- time --------------------------------------------------------------------- */

uint64_t nm_time_ns(struct nm_device *dev)
{
	uint64_t latest = atomic_load(&dev->udma_ps) / 1000;

	for (unsigned int c = 0; c < dev->config.cores; c++) {
		uint64_t t = nm_core_time_ns(dev->core[c]);

		if (t > latest)
			latest = t;
	}
	return latest;
}

/* --- the device's own thread -------------------------------------------------- */

static bool have_work(const struct nm_device *dev)
{
	if (nm_mailbox_wanted(dev))
		return true;
	for (unsigned int e = 0; e < dev->chip->engines; e++)
		if (dev->udma[e] && dev->udma[e]->kicked)
			return true;
	return false;
}

static void *device_thread(void *arg)
{
	struct nm_device *dev = arg;

	pthread_mutex_lock(&dev->lock);
	while (!dev->stop) {
		if (dev->quiesce || !have_work(dev)) {
			dev->busy = false;
			pthread_cond_broadcast(&dev->idle);
			nm_inject_wait(dev);
			continue;
		}
		dev->busy = true;
		if (nm_mailbox_wanted(dev))
			nm_mailbox_run(dev);
		else
			nm_udma_run(dev);
	}
	dev->busy = false;
	pthread_cond_broadcast(&dev->idle);
	pthread_mutex_unlock(&dev->lock);
	return NULL;
}

/* --- reset -------------------------------------------------------------------- */

/* What a reset map names: V3_* as in MBOX_RESET_MAP; V2 has TopSPs from bit 8 on, and the engines go
 * with their core. */
struct reset_set {
	uint32_t cores, udma, topsps; /* bits; TopSPs each or a core's together */
	bool each_topsp;
};

static struct reset_set reset_set(const struct nm_device *dev, uint32_t map)
{
	if (!map)
		return (struct reset_set){ UINT32_MAX, UINT32_MAX, UINT32_MAX, true };
	if (dev->chip->arch == NEURON_ARCH_V2)
		return (struct reset_set){ HW_GET(V2_RESET_MAP_CORES, map),
					   HW_GET(V2_RESET_MAP_CORES, map),
					   HW_GET(V2_RESET_MAP_TOPSP, map), true };
	return (struct reset_set){ HW_GET(MBOX_RESET_MAP_CORES, map),
				   HW_GET(MBOX_RESET_MAP_UDMA, map),
				   HW_GET(MBOX_RESET_MAP_TOPSP, map), false };
}

/* Engines for the host's copies by bit, one a SEng. */
static void reset_host_engines(struct nm_device *dev, uint32_t engines)
{
	for (unsigned int e = dev->chip->host_engine; e < dev->chip->engines; e++)
		if (engines >> (e - dev->chip->host_engine) & 1)
			nm_udma_reset(dev->udma[e]);
}

static void reset_core_blocks(struct nm_device *dev, uint32_t map)
{
	const struct reset_set set = reset_set(dev, map);
	const unsigned int engines = dev->chip->engines_per_core;

	for (unsigned int c = 0; c < dev->config.cores; c++) {
		if (set.cores >> c & 1) {
			nm_block_reset(dev->core_nq[c]);
			nm_tpb_reset(dev, c);
		}
		for (unsigned int i = 0; set.udma >> c & 1 && i < engines; i++)
			nm_udma_reset(dev->udma[c * engines + i]);
	}
	for (unsigned int t = 0; t < dev->config.cores * dev->chip->topsps_per_core; t++)
		if (set.topsps >> (set.each_topsp ? t : t / dev->chip->topsps_per_core) & 1)
			nm_topsp_reset(dev, t);
}

/* Everything behind the PCI function but MISC RAM. Caller holds dev->lock. */
static void reset_all_blocks(struct nm_device *dev)
{
	reset_core_blocks(dev, 0);
	reset_host_engines(dev, UINT32_MAX);
	nm_block_reset(dev->routes);
	nm_block_reset(dev->exi);
	atomic_store(&dev->features, EXI_FEATURE_STALL_DETECT);
	atomic_store(&dev->irq_todo, 0);
}

void nm_device_reset_map(struct nm_device *dev, uint32_t map, uint32_t map_hi)
{
	/* The public driver has had both for the whole device. */
	if (map == UINT32_MAX)
		map = 0;
	for (unsigned int c = 0; c < dev->config.cores; c++)
		if (!map || map >> c & 1)
			nm_core_reset(dev->core[c]);
	pthread_mutex_lock(&dev->lock);
	if (map) {
		reset_core_blocks(dev, map);
		reset_host_engines(dev, HW_GET(MBOX_RESET_MAP_HOST_UDMA, map_hi));
	} else {
		reset_all_blocks(dev);
	}
	pthread_mutex_unlock(&dev->lock);
	nm_log(dev, NM_LOG_INFO, "reset, map 0x%x%s", map, map ? "" : " (device)");
}

void nm_device_reset(struct nm_device *dev)
{
	pthread_mutex_lock(&dev->lock);
	dev->quiesce = true;
	while (dev->busy)
		pthread_cond_wait(&dev->idle, &dev->lock);
	pthread_mutex_unlock(&dev->lock);

	for (unsigned int c = 0; c < dev->config.cores; c++)
		nm_core_reset(dev->core[c]);

	pthread_mutex_lock(&dev->lock);
	reset_all_blocks(dev);
	nm_mailbox_reset(dev);
	nm_block_reset(dev->reset_reg);
	pthread_mutex_unlock(&dev->lock);
	nm_pci_reset(dev);
	nm_mgmt_power_on(dev);

	pthread_mutex_lock(&dev->lock);
	dev->quiesce = false;
	pthread_cond_signal(&dev->work);
	pthread_mutex_unlock(&dev->lock);
}

/* --- what the cores get ------------------------------------------------------- */

static int core_bus_read(void *dev, uint64_t addr, void *buf, size_t size)
{
	return nm_bus_read(dev, addr, buf, size);
}

static int core_bus_write(void *dev, uint64_t addr, const void *buf, size_t size)
{
	return nm_bus_write(dev, addr, buf, size);
}

static void *core_bus_hbm(void *dev, uint64_t addr, uint64_t size)
{
	return nm_hbm_at(dev, addr, size);
}

static void core_bus_irq(void *dev, unsigned int vector)
{
	nm_msix_raise(dev, vector);
	nm_mgmt_tick(dev);
}

static void core_bus_notify(void *dev, unsigned int core, unsigned int engine,
			    struct nq_entry *entry)
{
	nm_notify_post(dev, core, engine, entry);
}

static void core_bus_ecc(void *dev, uint64_t addr)
{
	const struct nm_device *d = dev;

	for (unsigned int n = 0; n < d->chip->stacks; n++)
		if (addr - d->chip->hbm(n) < d->config.hbm_bytes)
			nm_inject_ecc(dev, n, 0, 1);
}

static void core_bus_log(void *dev, int level, const char *text)
{
	nm_log(dev, level, "%s", text);
}

static uint32_t core_bus_features(void *user)
{
	struct nm_device *dev = user;

	return atomic_load(&dev->features);
}

static uint64_t core_bus_unwritten(void *dev, uint64_t addr, uint64_t size)
{
	return nm_hbm_unwritten(dev, addr, size);
}

static void core_bus_written(void *user, uint64_t addr, uint64_t size)
{
	struct nm_device *dev = user;

	nm_hbm_wrote(dev, nm_hbm_at(dev, addr, size), size);
}

static unsigned int core_bus_in_use(void *user)
{
	struct nm_device *dev = user;
	unsigned int n = 0;

	for (unsigned int c = 0; c < dev->config.cores; c++)
		n += dev->core[c] && nm_core_in_use(dev->core[c]);
	return n;
}

static uint64_t core_bus_now(void *user)
{
	struct nm_device *dev = user;

	return atomic_load(&dev->udma_ps);
}

static void core_bus_found(void *user, uint32_t kind, uint64_t n)
{
	struct nm_device *dev = user;

	atomic_fetch_add(&dev->found[__builtin_ctz(kind)], n);
}

uint64_t nm_check_found(struct nm_device *dev, uint32_t kind)
{
	return kind ? atomic_load(&dev->found[__builtin_ctz(kind)]) : 0;
}

static void log_findings(struct nm_device *dev)
{
	static const char *const names[] = { "races", "reads of unwritten SBUF or PSUM",
					     "reads of unwritten HBM", "of semaphores",
					     "of sums in PSUM" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (atomic_load(&dev->found[i]))
			nm_log(dev, NM_LOG_GUEST, "check: %llu findings in all launches: %s",
			       (unsigned long long)atomic_load(&dev->found[i]), names[i]);
}

void nm_device_flush(struct nm_device *dev)
{
	int ret = dev->report ? nm_report_write(dev->report) : 0;

	if (ret)
		nm_log(dev, NM_LOG_ERROR, "can't write the report '%s': %s", dev->config.report,
		       strerror(-ret));
	log_findings(dev);
}

static int create_report(struct nm_device *dev)
{
	char path[4096];

	if (!dev->config.report)
		return 0;
	snprintf(path, sizeof(path), dev->config.number ? "%s.%u" : "%s", dev->config.report,
		 dev->config.number);
	dev->report = nm_report_create(path);
	return dev->report ? 0 : -ENOMEM;
}

static int create_cores(struct nm_device *dev)
{
	const struct nm_core_bus bus = {
		.dev = dev,
		.arch = dev->chip->arch,
		.read = core_bus_read,
		.write = core_bus_write,
		.hbm = core_bus_hbm,
		.irq = core_bus_irq,
		.notify = core_bus_notify,
		.log = core_bus_log,
		.features = core_bus_features,
		.in_use = core_bus_in_use,
		.now_ps = core_bus_now,
		.report = dev->report,
		.check = dev->config.check,
		.unwritten = core_bus_unwritten,
		.written = core_bus_written,
		.found = core_bus_found,
		.count_ecc = core_bus_ecc,
	};

	for (unsigned int c = 0; c < dev->config.cores; c++) {
		int ret = nm_core_create(&bus, c, &dev->core[c]);

		if (ret)
			return ret;
	}
	return 0;
}

/* --- life --------------------------------------------------------------------- */

static int check_config(struct nm_device *dev)
{
	struct nm_config *c = &dev->config;

	dev->chip = c->chip ? nm_chip_find(c->chip) : nm_chip_default();
	if (!dev->chip) {
		nm_log(dev, NM_LOG_ERROR, "chip '%s': want trn1, inf2, trn2 or trn3", c->chip);
		return -EINVAL;
	}
	if (!c->cores)
		c->cores = dev->chip->cores;
	if (!c->hbm_bytes)
		c->hbm_bytes = HBM_DEFAULT;
	if (!c->serial)
		c->serial = SERIAL_DEFAULT;
	if (c->cores > dev->chip->cores) {
		nm_log(dev, NM_LOG_ERROR, "%u cores: a %s has 1 to %u", c->cores, dev->chip->name,
		       dev->chip->cores);
		return -EINVAL;
	}
	if (c->hbm_bytes < HBM_MIN || c->hbm_bytes > dev->chip->hbm_span ||
	    (c->hbm_bytes & (c->hbm_bytes - 1))) {
		nm_log(dev, NM_LOG_ERROR,
		       "%llu bytes of HBM a stack: want a power of two from 64 MiB to %llu GiB",
		       (unsigned long long)c->hbm_bytes,
		       (unsigned long long)dev->chip->hbm_span >> 30);
		return -EINVAL;
	}
	dev->exi_bar = c->silicon ? NM_NO_BAR : EXI_BAR;
	dev->apb_bar = c->silicon ? V3_BAR_APB : V3_BAR_APB_QEMU;
	dev->dram_dist = c->silicon ? dev->chip->dram_dist : c->hbm_bytes;
	return 0;
}

int nm_device_create(const struct nm_config *config, struct nm_device **out)
{
	struct nm_device *dev = calloc(1, sizeof(*dev));
	pthread_condattr_t monotonic;
	int ret;

	if (!dev)
		return -ENOMEM;
	dev->config = *config;
	dev->hbm_fd = -1;
	nm_team_hold(config->threads);
	pthread_mutex_init(&dev->lock, NULL);
	pthread_mutex_init(&dev->log_lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&dev->work, &monotonic);
	pthread_condattr_destroy(&monotonic);
	dev->inject.percent = 100;
	pthread_cond_init(&dev->idle, NULL);
	pthread_rwlock_init(&dev->map_lock, NULL);
	pthread_mutex_init(&dev->pci.lock, NULL);

	ret = nm_server_place(dev);
	if (!ret)
		ret = check_config(dev);
	if (!ret)
		ret = nm_hbm_init(dev);
	if (!ret)
		ret = create_report(dev);
	if (!ret)
		ret = create_cores(dev);
	if (!ret)
		ret = nm_mgmt_init(dev);
	if (!ret)
		ret = nm_device_create_blocks(dev);
	if (!ret) {
		nm_pci_reset(dev);
		nm_mgmt_power_on(dev);
		ret = -pthread_create(&dev->thread, NULL, device_thread, dev);
		dev->thread_started = !ret;
	}
	if (ret) {
		if (ret != -EINVAL)
			nm_log(dev, NM_LOG_ERROR, "can't create the device: %s", strerror(-ret));
		nm_device_destroy(dev);
		return ret == -EINVAL ? ret : -ENOMEM;
	}
	nm_server_join(dev);
	*out = dev;
	return 0;
}

void nm_device_destroy(struct nm_device *dev)
{
	nm_server_leave(dev);
	if (dev->thread_started) {
		pthread_mutex_lock(&dev->lock);
		dev->stop = true;
		pthread_cond_signal(&dev->work);
		pthread_mutex_unlock(&dev->lock);
		pthread_join(dev->thread, NULL);
	}
	for (unsigned int c = 0; c < NM_CORES; c++)
		if (dev->core[c])
			nm_core_destroy(dev->core[c]);
	nm_team_release();
	nm_device_flush(dev);
	nm_report_destroy(dev->report);
	for (unsigned int i = 0; i < dev->n_blocks; i++)
		nm_block_fini(&dev->blocks[i]);
	free(dev->blocks);
	for (unsigned int e = 0; e < NM_ENGINES; e++)
		free(dev->udma[e]);
	free(dev->maps);
	nm_mgmt_fini(dev);
	nm_hbm_fini(dev);
	pthread_mutex_destroy(&dev->pci.lock);
	pthread_rwlock_destroy(&dev->map_lock);
	pthread_cond_destroy(&dev->idle);
	pthread_cond_destroy(&dev->work);
	pthread_mutex_destroy(&dev->log_lock);
	pthread_mutex_destroy(&dev->lock);
	free(dev);
}
