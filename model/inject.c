// SPDX-License-Identifier: Apache-2.0
/*
 * Injected faults: what is asked for is counted here, under dev->lock; the place where a fault
 * happens looks at inject.armed, one predicted branch, and comes here only when that is set.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "device.h"

#define LATE_MAX_US 60000000u
#define ECC_MAX	    0xffffu

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static bool any(const uint32_t *counts, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		if (counts[i])
			return true;
	return false;
}

/* dev->lock held. */
static void rearm(struct nm_device *dev)
{
	struct inject *in = &dev->inject;
	uint32_t armed = atomic_load(&in->armed) & NM_ARMED_GONE;

	if (any(in->irqs, EXI_MSIX_VECTORS))
		armed |= NM_ARMED_IRQ;
	if (in->requests || in->damaged)
		armed |= NM_ARMED_MAILBOX;
	if (any(in->turns, NM_ENGINES))
		armed |= NM_ARMED_UDMA;
	atomic_store(&in->armed, armed);
}

/* --- interrupts --------------------------------------------------------------- */

bool nm_inject_takes_irq(struct nm_device *dev, unsigned int vector)
{
	struct inject *in = &dev->inject;
	bool taken = true;

	pthread_mutex_lock(&dev->lock);
	if (atomic_load(&in->armed) & NM_ARMED_GONE)
		goto unlock;
	taken = in->irqs[vector];
	if (!taken)
		goto unlock;
	if (!--in->irqs[vector])
		rearm(dev);
	if (!in->late_us[vector] || in->late >> vector & 1)
		goto unlock; /* lost, or part of the one that will come */
	in->due_ns[vector] = now_ns() + in->late_us[vector] * UINT64_C(1000);
	in->late |= UINT64_C(1) << vector;
	pthread_cond_signal(&dev->work);
unlock:
	pthread_mutex_unlock(&dev->lock);
	return taken;
}

/* Fires late interrupts that are due; *next is when the next one is. dev->lock held, and dropped. */
static bool fire_late(struct nm_device *dev, uint64_t *next)
{
	struct inject *in = &dev->inject;
	uint64_t now = now_ns();

	*next = UINT64_MAX;
	for (unsigned int v = 0; v < EXI_MSIX_VECTORS; v++) {
		if (!(in->late >> v & 1))
			continue;
		if (in->due_ns[v] <= now) {
			in->late &= ~(UINT64_C(1) << v);
			pthread_mutex_unlock(&dev->lock);
			if (!nm_armed(dev, NM_ARMED_GONE))
				nm_msix_deliver(dev, v);
			pthread_mutex_lock(&dev->lock);
			return true;
		}
		if (in->due_ns[v] < *next)
			*next = in->due_ns[v];
	}
	return false;
}

void nm_inject_wait(struct nm_device *dev)
{
	uint64_t next;
	struct timespec t;

	if (!dev->inject.late) {
		pthread_cond_wait(&dev->work, &dev->lock);
		return;
	}
	if (fire_late(dev, &next))
		return;
	t.tv_sec = (time_t)(next / 1000000000u);
	t.tv_nsec = (long)(next % 1000000000u);
	pthread_cond_timedwait(&dev->work, &dev->lock, &t);
}

int nm_inject_irq(struct nm_device *dev, unsigned int vector, uint32_t late_us, uint32_t count)
{
	if (vector >= EXI_MSIX_VECTORS || late_us > LATE_MAX_US)
		return -EINVAL;
	pthread_mutex_lock(&dev->lock);
	dev->inject.irqs[vector] = count;
	dev->inject.late_us[vector] = late_us;
	rearm(dev);
	pthread_mutex_unlock(&dev->lock);
	return 0;
}

/* --- mailbox ------------------------------------------------------------------ */

/* A header of so many bytes. */
static struct mbox_response wrong_answer(enum nm_mailbox_fault fault, uint8_t sequence,
					 uint16_t size)
{
	struct mbox_response answer = { sequence, MBOX_OK, size };

	switch (fault) {
	case NM_MAILBOX_SEQUENCE:
		answer.sequence = sequence == UINT8_MAX ? 1 : sequence + 1;
		break;
	case NM_MAILBOX_GARBAGE:
		answer.error = 0xa5;
		answer.size = 0xa5a5;
		break;
	default:
		answer.error = MBOX_FAILED;
		break;
	}
	return answer;
}

/* As the firmware answers in registers. dev->lock held. */
static void answer_registers(struct nm_device *dev, enum nm_mailbox_fault fault)
{
	uint32_t *header = nm_block_at(dev->misc_ram, MBOX_REQUEST_HI);
	struct mbox_response answer =
		wrong_answer(fault, (uint8_t)*header, sizeof(struct mbox_register_response));

	memcpy(header, &answer, sizeof(answer));
	*nm_block_at(dev->misc_ram, MBOX_ACK) = 0;
	*nm_block_at(dev->misc_ram, MBOX_TRIGGER) = 0;
}

/* The bytes of the answer, the sequence last. No lock held. */
static void answer_wrongly(struct nm_device *dev, enum nm_mailbox_fault fault, uint64_t from,
			   uint64_t to)
{
	struct mbox_response answer;
	struct mbox_request req;

	if (nm_bus_read(dev, from, &req, sizeof(req)))
		return;
	answer = wrong_answer(fault, req.sequence, sizeof(answer));
	if (!nm_bus_write(dev, to + 1, &answer.error, sizeof(answer) - 1))
		nm_bus_write(dev, to, &answer.sequence, 1);
}

bool nm_inject_takes_request(struct nm_device *dev, uint32_t reset, bool in_registers,
			     uint64_t from, uint64_t to)
{
	struct inject *in = &dev->inject;
	enum nm_mailbox_fault fault = in->mailbox;

	if (!in->requests || (reset && fault != NM_MAILBOX_SILENT))
		return false;
	in->requests--;
	in->damaged = fault == NM_MAILBOX_CRC && !in_registers ? from : 0;
	rearm(dev);
	if (fault == NM_MAILBOX_CRC && in_registers)
		*nm_block_at(dev->misc_ram, MBOX_REQUEST_HI) ^= 0x10 << 8; /* the command */
	if (fault == NM_MAILBOX_CRC)
		return false;
	if (fault == NM_MAILBOX_SILENT)
		return true;
	if (in_registers) {
		answer_registers(dev, fault);
		return true;
	}
	pthread_mutex_unlock(&dev->lock);
	answer_wrongly(dev, fault, from, to);
	pthread_mutex_lock(&dev->lock);
	return true;
}

void nm_inject_damage(struct nm_device *dev, uint64_t addr, uint8_t *to, uint32_t bytes)
{
	struct inject *in = &dev->inject;

	pthread_mutex_lock(&dev->lock);
	if (addr == in->damaged && bytes >= sizeof(struct mbox_request)) {
		to[offsetof(struct mbox_request, command)] ^= 0x10;
		in->damaged = 0;
		rearm(dev);
	}
	pthread_mutex_unlock(&dev->lock);
}

int nm_inject_mailbox(struct nm_device *dev, enum nm_mailbox_fault fault, uint32_t requests)
{
	if ((unsigned int)fault >= NM_MAILBOX_FAULTS)
		return -EINVAL;
	pthread_mutex_lock(&dev->lock);
	dev->inject.mailbox = fault;
	dev->inject.requests = requests;
	rearm(dev);
	pthread_mutex_unlock(&dev->lock);
	return 0;
}

/* --- UDMA --------------------------------------------------------------------- */

bool nm_inject_takes_turn(struct nm_device *dev, unsigned int engine, enum nm_udma_fault *fault)
{
	struct inject *in = &dev->inject;

	if (!in->turns[engine])
		return false;
	if (!--in->turns[engine])
		rearm(dev);
	*fault = in->udma[engine];
	return *fault != NM_UDMA_CORRUPT;
}

int nm_inject_udma(struct nm_device *dev, unsigned int engine, enum nm_udma_fault fault,
		   uint32_t turns)
{
	if (engine >= NM_ENGINES || !dev->udma[engine] || (unsigned int)fault >= NM_UDMA_FAULTS)
		return -EINVAL;
	pthread_mutex_lock(&dev->lock);
	dev->inject.udma[engine] = fault;
	dev->inject.turns[engine] = turns;
	rearm(dev);
	pthread_mutex_unlock(&dev->lock);
	return 0;
}

/* --- memories, engines, the whole device --------------------------------------- */

static uint32_t add_up_to(uint32_t a, uint32_t b)
{
	return b > ECC_MAX - a ? ECC_MAX : a + b;
}

/* Returns when the firmware has shown what it is told. dev->lock held, dropped meanwhile. */
static void show_memories(struct nm_device *dev)
{
	nm_mgmt_raise(dev, MGMT_CAUSE_ECC);
	while (atomic_load(&dev->mgmt->cause) & MGMT_CAUSE_ECC || dev->busy)
		pthread_cond_wait(&dev->idle, &dev->lock);
}

int nm_inject_ecc(struct nm_device *dev, unsigned int memory, uint32_t corrected,
		  uint32_t uncorrected)
{
	uint32_t *ecc;

	if (memory > NM_ECC_SRAM)
		return -EINVAL;
	pthread_mutex_lock(&dev->lock);
	ecc = &dev->inject.ecc[memory];
	*ecc = HW_SET(MBOX_ECC_CORRECTED, add_up_to(HW_GET(MBOX_ECC_CORRECTED, *ecc), corrected)) |
	       HW_SET(MBOX_ECC_UNCORRECTED,
		      add_up_to(HW_GET(MBOX_ECC_UNCORRECTED, *ecc), uncorrected));
	show_memories(dev);
	pthread_mutex_unlock(&dev->lock);
	return 0;
}

int nm_inject_repair(struct nm_device *dev, uint32_t state)
{
	if (state > MBOX_HBM_REPAIR_FAILED)
		return -EINVAL;
	pthread_mutex_lock(&dev->lock);
	dev->inject.repair = state;
	show_memories(dev);
	pthread_mutex_unlock(&dev->lock);
	return 0;
}

int nm_inject_hang(struct nm_device *dev, unsigned int core, unsigned int engine, uint32_t launches)
{
	if (core >= dev->config.cores || engine >= EXI_ENGINES)
		return -EINVAL;
	nm_core_inject_hang(dev->core[core], engine, launches);
	return 0;
}

int nm_inject_poison(struct nm_device *dev, unsigned int core, uint32_t transfers)
{
	if (core >= dev->config.cores)
		return -EINVAL;
	nm_core_inject_poison(dev->core[core], transfers);
	return 0;
}

int nm_inject_throttle(struct nm_device *dev, unsigned int percent)
{
	if (!percent || percent > 100)
		return -EINVAL;
	pthread_mutex_lock(&dev->lock);
	dev->inject.percent = percent;
	for (unsigned int c = 0; c < dev->config.cores; c++)
		nm_core_throttle(dev->core[c], percent);
	pthread_mutex_unlock(&dev->lock);
	for (unsigned int c = 0; c < dev->config.cores; c++) {
		struct nq_entry entry = { .type = NQ_THROTTLE, .engine = 0xff, .value = percent };

		nm_notify_post(dev, c, NQ_NO_ENGINE, &entry);
	}
	return 0;
}

void nm_inject_removal(struct nm_device *dev, bool gone)
{
	uint32_t was;

	if (gone) {
		atomic_fetch_or(&dev->inject.armed, NM_ARMED_GONE);
		return;
	}
	/* Reset while it still can't be seen. Of two who bring it back, one resets too often. */
	if (!(atomic_load(&dev->inject.armed) & NM_ARMED_GONE))
		return;
	nm_device_reset(dev);
	pthread_mutex_lock(&dev->lock);
	was = atomic_fetch_and(&dev->inject.armed, ~NM_ARMED_GONE);
	pthread_mutex_unlock(&dev->lock);
	if (was & NM_ARMED_GONE)
		nm_log(dev, NM_LOG_INFO, "the device is back");
}

void nm_inject_clear(struct nm_device *dev)
{
	for (unsigned int v = 0; v < EXI_MSIX_VECTORS; v++)
		nm_inject_irq(dev, v, 0, 0);
	nm_inject_mailbox(dev, NM_MAILBOX_SILENT, 0);
	for (unsigned int e = 0; e < NM_ENGINES; e++)
		nm_inject_udma(dev, e, NM_UDMA_ERROR, 0);
	for (unsigned int c = 0; c < dev->config.cores; c++) {
		nm_inject_poison(dev, c, 0);
		for (unsigned int e = 0; e < EXI_ENGINES; e++)
			nm_inject_hang(dev, c, e, 0);
	}
	nm_inject_throttle(dev, 100);
	nm_inject_removal(dev, false);
	nm_inject_repair(dev, MBOX_HBM_REPAIR_NONE);
}

/* --- status ------------------------------------------------------------------- */

struct text {
	char *to;
	size_t size;
	int n;
};

static void say(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void say(struct text *t, const char *fmt, ...)
{
	size_t at = (size_t)t->n < t->size ? (size_t)t->n : t->size;
	va_list ap;

	va_start(ap, fmt);
	t->n += vsnprintf(at < t->size ? t->to + at : NULL, t->size - at, fmt, ap);
	va_end(ap);
}

int nm_inject_status(struct nm_device *dev, char *to, size_t size)
{
	struct inject *in = &dev->inject;
	struct text t = { to, size, 0 };

	pthread_mutex_lock(&dev->lock);
	say(&t, "present=%d clock=%u%%", !(atomic_load(&in->armed) & NM_ARMED_GONE), in->percent);
	for (unsigned int m = 0; m <= NM_STACKS; m++) {
		if (m < NM_STACKS)
			say(&t, " ecc.hbm%u", m);
		else
			say(&t, " ecc.sram");
		say(&t, "=%u/%u", HW_GET(MBOX_ECC_CORRECTED, in->ecc[m]),
		    HW_GET(MBOX_ECC_UNCORRECTED, in->ecc[m]));
	}
	if (in->repair)
		say(&t, " repair=%u", in->repair);
	for (unsigned int c = 0; c < dev->config.cores; c++)
		for (unsigned int e = 0; e < EXI_ENGINES; e++)
			if (nm_core_hangs(dev->core[c], e))
				say(&t, " hang.%u.%u=%u", c, e, nm_core_hangs(dev->core[c], e));
	for (unsigned int c = 0; c < dev->config.cores; c++)
		if (nm_core_poisoned(dev->core[c]))
			say(&t, " poison.%u=%u", c, nm_core_poisoned(dev->core[c]));
	for (unsigned int v = 0; v < EXI_MSIX_VECTORS; v++)
		if (in->irqs[v])
			say(&t, " irq.%u=%u", v, in->irqs[v]);
	if (in->requests)
		say(&t, " mailbox=%u", in->requests);
	for (unsigned int e = 0; e < NM_ENGINES; e++)
		if (in->turns[e])
			say(&t, " udma.%u=%u", e, in->turns[e]);
	pthread_mutex_unlock(&dev->lock);
	return t.n;
}
