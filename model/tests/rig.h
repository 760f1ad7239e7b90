/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A core on a bus of its own: HBM from address 0, host memory behind the host window, interrupts
 * that are counted. Queue set-up and launches as a driver does them.
 */
#ifndef TEST_RIG_H
#define TEST_RIG_H

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "asm.h"
#include "core.h"
#include "neuron_map_v3.h"
#include "neuron_model.h"
#include "neuron_pci.h"
#include "neuron_queue.h"

#define RIG_HBM	      (64u << 20)
#define RIG_HOST      (4u << 20)
#define RIG_LOG2      4 /* ring entries */
#define RIG_QUEUE_MEM 0x10000 /* host memory of one queue: ring, records, slot tables */
#define RIG_TIMEOUT_S 60

struct rig {
	struct nm_core *core;
	uint32_t arch; /* NEURON_ARCH_* of core and programs */
	uint8_t *hbm, *host;
	uint32_t features;
	pthread_mutex_t lock;
	pthread_cond_t cond;
	unsigned int irqs[EXI_MSIX_VECTORS];
	unsigned int errors; /* notifications */
	unsigned int error_status;
	unsigned int in_use; /* cores of the device, this one included; 0: this one */
	uint32_t check; /* NM_CHECK_* */
	unsigned int findings[6]; /* by bit of NM_CHECK_* */
	uint8_t *written; /* bytes of HBM */
	char log[8][512]; /* of the checking mode, latest last */
	unsigned int logged;
	unsigned int clock; /* percent, of the last throttle notification */
	uint64_t ecc_addr; /* of the last uncorrected error */
	uint32_t rung[EXI_QUEUE_COUNT];
	uint64_t next_id, next_image;
	bool verbose;
};

static inline uint8_t *rig_ptr(struct rig *r, uint64_t addr, size_t size)
{
	if (addr < RIG_HBM && size <= RIG_HBM - addr)
		return r->hbm + addr;
	addr -= V3_DEV_HOST;
	if (addr < RIG_HOST && size <= RIG_HOST - addr)
		return r->host + addr;
	return NULL;
}

static int rig_read(void *dev, uint64_t addr, void *buf, size_t size)
{
	uint8_t *p = rig_ptr(dev, addr, size);

	if (!p)
		return -EFAULT;
	memcpy(buf, p, size);
	return 0;
}

static int rig_write(void *dev, uint64_t addr, const void *buf, size_t size)
{
	uint8_t *p = rig_ptr(dev, addr, size);

	if (!p)
		return -EFAULT;
	memcpy(p, buf, size);
	return 0;
}

static void *rig_hbm(void *dev, uint64_t addr, uint64_t size)
{
	struct rig *r = dev;

	return addr < RIG_HBM && size <= RIG_HBM - addr ? r->hbm + addr : NULL;
}

static void rig_irq(void *dev, unsigned int vector)
{
	struct rig *r = dev;

	pthread_mutex_lock(&r->lock);
	r->irqs[vector]++;
	pthread_cond_broadcast(&r->cond);
	pthread_mutex_unlock(&r->lock);
}

static void rig_notify(void *dev, unsigned int core, unsigned int engine, struct nq_entry *entry)
{
	struct rig *r = dev;

	(void)core, (void)engine;
	if (entry->type == NQ_ERROR) {
		r->errors++;
		r->error_status = entry->status;
	} else if (entry->type == NQ_THROTTLE) {
		r->clock = (unsigned int)entry->value;
	}
}

static void rig_log(void *dev, int level, const char *text)
{
	struct rig *r = dev;

	if (r->verbose || level == NM_LOG_ERROR)
		fprintf(stderr, "%s\n", text);
	if (!strncmp(text, "check: ", 7))
		snprintf(r->log[r->logged++ % 8], sizeof(r->log[0]), "%s", text);
}

static uint32_t rig_features(void *dev)
{
	return ((struct rig *)dev)->features;
}

static unsigned int rig_in_use(void *dev)
{
	unsigned int n = ((struct rig *)dev)->in_use;

	return n ? n : 1;
}

static uint64_t rig_unwritten(void *dev, uint64_t addr, uint64_t size)
{
	const uint8_t *at = ((struct rig *)dev)->written + addr;
	const uint8_t *zero = memchr(at, 0, size);

	return zero ? (uint64_t)(zero - at) : size;
}

static void rig_written(void *dev, uint64_t addr, uint64_t size)
{
	memset(((struct rig *)dev)->written + addr, 1, size);
}

static void rig_found(void *dev, uint32_t kind, uint64_t n)
{
	((struct rig *)dev)->findings[__builtin_ctz(kind)] += (unsigned int)n;
}

static void rig_ecc(void *dev, uint64_t addr)
{
	((struct rig *)dev)->ecc_addr = addr;
}

/* Of a test's cores, unless it says another. */
#ifndef RIG_ARCH
#define RIG_ARCH NEURON_ARCH_V3
#endif

/* arch: NEURON_ARCH_*; check: NM_CHECK_*; report: NULL, or of the core's. */
static inline struct rig *rig_create_of(uint32_t arch, uint32_t check, struct nm_report *report)
{
	struct rig *r = calloc(1, sizeof(*r));
	struct nm_core_bus bus = { .dev = r,
				   .arch = arch,
				   .read = rig_read,
				   .write = rig_write,
				   .hbm = rig_hbm,
				   .irq = rig_irq,
				   .notify = rig_notify,
				   .log = rig_log,
				   .features = rig_features,
				   .in_use = rig_in_use,
				   .report = report,
				   .count_ecc = rig_ecc,
				   .check = check,
				   .unwritten = rig_unwritten,
				   .written = rig_written,
				   .found = rig_found };

	r->arch = arch;
	r->check = check;
	r->written = calloc(1, RIG_HBM);
	r->hbm = calloc(1, RIG_HBM);
	r->host = calloc(1, RIG_HOST);
	r->features = EXI_FEATURE_STALL_DETECT;
	r->verbose = getenv("RIG_VERBOSE");
	r->next_id = 1;
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->cond, NULL);
	assert_int_equal(nm_core_create(&bus, 0, &r->core), 0);
	return r;
}

static inline struct rig *rig_create_with(uint32_t check, struct nm_report *report)
{
	return rig_create_of(RIG_ARCH, check, report);
}

static inline struct rig *rig_create_checking(uint32_t check)
{
	return rig_create_with(check, NULL);
}

static inline struct rig *rig_create(void)
{
	return rig_create_checking(0);
}

static inline void rig_destroy(struct rig *r)
{
	free(r->written);
	nm_core_destroy(r->core);
	pthread_cond_destroy(&r->cond);
	pthread_mutex_destroy(&r->lock);
	free(r->hbm);
	free(r->host);
	free(r);
}

static inline uint32_t rig_reg(struct rig *r, unsigned int queue, unsigned int reg)
{
	return nm_core_reg_read(r->core, queue * EXI_QUEUE_STRIDE + reg);
}

static inline void rig_set(struct rig *r, unsigned int queue, unsigned int reg, uint32_t value)
{
	nm_core_reg_write(r->core, queue * EXI_QUEUE_STRIDE + reg, value);
}

static inline uint64_t rig_ring(unsigned int queue)
{
	return V3_DEV_HOST + queue * RIG_QUEUE_MEM;
}

static inline uint64_t rig_cq(unsigned int queue)
{
	return rig_ring(queue) + 0x1000;
}

/* Slot table of entry n of the ring. */
static inline uint64_t rig_table(unsigned int queue, uint32_t n)
{
	return rig_ring(queue) + 0x2000 +
	       n % (1u << RIG_LOG2) * ASM_SLOTS * sizeof(struct exi_slot);
}

static inline void rig_queue(struct rig *r, unsigned int queue, uint32_t owner)
{
	memset(rig_ptr(r, rig_ring(queue), RIG_QUEUE_MEM), 0, RIG_QUEUE_MEM);
	r->rung[queue] = 0;
	rig_set(r, queue, EXI_Q_RING_LO, (uint32_t)rig_ring(queue));
	rig_set(r, queue, EXI_Q_RING_HI, (uint32_t)(rig_ring(queue) >> 32));
	rig_set(r, queue, EXI_Q_RING_LOG2, RIG_LOG2);
	rig_set(r, queue, EXI_Q_CQ_LO, (uint32_t)rig_cq(queue));
	rig_set(r, queue, EXI_Q_CQ_HI, (uint32_t)(rig_cq(queue) >> 32));
	rig_set(r, queue, EXI_Q_VECTOR, EXI_VECTOR_ENABLE | (queue % EXI_MSIX_VECTORS));
	rig_set(r, queue, EXI_Q_OWNER, owner);
	rig_set(r, queue, EXI_Q_CONTROL, EXI_Q_ENABLE);
}

/* Puts an image into HBM, from 32 MiB up; slots lie below. */
static inline struct exi_launch rig_load(struct rig *r, const void *image, size_t size)
{
	struct exi_launch l = { .program_addr = (32u << 20) + r->next_image,
				.program_id = r->next_id++,
				.program_bytes = (uint32_t)size,
				.flags = EXI_LAUNCH_IRQ };

	if (r->next_image + size > RIG_HBM - (32u << 20)) {
		r->next_image = 0;
		l.program_addr = 32u << 20;
	}
	memcpy(r->hbm + l.program_addr, image, size);
	r->next_image += asm_align(size);
	return l;
}

/* Writes an entry without ringing; returns its number. */
static inline uint32_t rig_put(struct rig *r, unsigned int queue, struct exi_launch l,
			       const struct exi_slot *slots, uint32_t n_slots)
{
	uint32_t n = r->rung[queue]++;

	if (!l.slots_addr)
		l.slots_addr = rig_table(queue, n);
	if (!l.n_slots)
		l.n_slots = n_slots;
	l.seqno = 1000 + n;
	for (uint32_t i = 0; slots && i < n_slots && i < ASM_SLOTS; i++)
		memcpy(rig_ptr(r, rig_table(queue, n), n_slots * sizeof(*slots)) +
			       i * sizeof(*slots),
		       &slots[i], sizeof(*slots));
	memcpy(rig_ptr(r, rig_ring(queue) + n % (1u << RIG_LOG2) * sizeof(l), sizeof(l)), &l,
	       sizeof(l));
	return n;
}

static inline void rig_doorbell(struct rig *r, unsigned int queue)
{
	rig_set(r, queue, EXI_Q_DOORBELL, r->rung[queue]);
}

/* Waits until HEAD has passed entry n and returns its record. */
static inline struct exi_record rig_wait(struct rig *r, unsigned int queue, uint32_t n)
{
	struct exi_record rec;
	struct timespec end;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += RIG_TIMEOUT_S;
	pthread_mutex_lock(&r->lock);
	while ((int32_t)(rig_reg(r, queue, EXI_Q_HEAD) - n) <= 0)
		if (pthread_cond_timedwait(&r->cond, &r->lock, &end))
			fail_msg("queue %u: entry %u has no record", queue, n);
	pthread_mutex_unlock(&r->lock);
	memcpy(&rec, rig_ptr(r, rig_cq(queue) + n % (1u << RIG_LOG2) * sizeof(rec), sizeof(rec)),
	       sizeof(rec));
	assert_int_equal(rec.phase, (n >> RIG_LOG2 & 1) ^ 1);
	return rec;
}

static inline struct exi_record rig_run(struct rig *r, unsigned int queue, struct exi_launch l,
					const struct exi_slot *slots, uint32_t n_slots)
{
	uint32_t n = rig_put(r, queue, l, slots, n_slots);

	rig_doorbell(r, queue);
	return rig_wait(r, queue, n);
}

/* Builds, loads and runs once on queue 0. */
static inline struct exi_record rig_program(struct rig *r, struct program *p,
					    const struct exi_slot *slots)
{
	struct exi_record rec;
	size_t size;
	void *image;

	p->arch = r->arch;
	image = asm_finish(p, &size);
	rec = rig_run(r, 0, rig_load(r, image, size), slots, p->n_slots);
	free(image);
	return rec;
}

/* The same of a program that it frees; after a fault, which halts the queue, that is ready for the next. */
static inline struct exi_record rig_once(struct rig *r, struct program *p,
					 const struct exi_slot *slots)
{
	struct exi_record rec = rig_program(r, p, slots);

	free(p);
	if (rec.status != EXI_OK) {
		rig_set(r, 0, EXI_Q_CONTROL, EXI_Q_RESET);
		rig_queue(r, 0, 1);
	}
	return rec;
}

/* cmocka fixture: *state is a core with queue 0 enabled for owner 1. */
static inline int rig_setup(void **state)
{
	struct rig *r = rig_create();

	rig_queue(r, 0, 1);
	*state = r;
	return 0;
}

static inline int rig_teardown(void **state)
{
	rig_destroy(*state);
	return 0;
}

#endif /* TEST_RIG_H */
