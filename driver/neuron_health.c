// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the device does not raise an interrupt for: it was pulled out, memory
 * errors were counted, a component is not well, clocks were throttled. A worker looks once a second
 * while somebody has the device open and it is not asleep; it says in the log
 * what is new. debugfs has the figures (neuron_debugfs.c).
 */

#include <linux/bitfield.h>
#include <linux/dma-mapping.h>

#include <drm/drm_drv.h>

#include "neuron_copy.h"
#include "neuron_ctx.h"
#include "neuron_drv.h"
#include "neuron_health.h"
#include "neuron_mailbox.h"
#include "neuron_power.h"

/* A launch that hangs is noticed after seconds, so nothing is gained by looking more often. */
#define HEALTH_PERIOD HZ

#define HEALTH_NOTE_BYTES (NEURON_HEALTH_NOTES * sizeof(struct nq_entry))

#define HEALTH_QUEUE NQ_INDEX(NQ_THROTTLE, NQ_NO_ENGINE)

static_assert(!(HEALTH_NOTE_BYTES & (HEALTH_NOTE_BYTES - 1)));

/* --- memory errors ------------------------------------------------------- */

/**
 * neuron_health_uncorrected - Uncorrected errors that a counter shows
 * @ndev: device
 * @i: which counter, as in &neuron_health.ecc
 * @counter: what it read
 *
 * Return: how many.
 */
u32 neuron_health_uncorrected(struct neuron_device *ndev, unsigned int i, u32 counter)
{
	if (i == NEURON_ECC_COUNTERS - 1)
		return FIELD_GET(MBOX_ECC_UNCORRECTED, counter);
	return mbox_hbm_uncorrected(ndev->fw.api_version, counter);
}

/* False: the firmware is not ready to tell. */
static bool health_read(struct neuron_device *ndev, u32 reg, u32 *value)
{
	*value = neuron_reg_read(&ndev->misc, reg);
	return *value != U32_MAX && *value != MBOX_NOT_READY;
}

static void health_ecc_one(struct neuron_device *ndev, unsigned int i, u32 reg, const char *memory)
{
	u32 now, before = ndev->health.ecc[i];
	u32 corrected, uncorrected, were;

	if (!health_read(ndev, reg, &now) || now == before)
		return;
	WRITE_ONCE(ndev->health.ecc[i], now);
	corrected = FIELD_GET(MBOX_ECC_CORRECTED, now);
	uncorrected = neuron_health_uncorrected(ndev, i, now);
	were = neuron_health_uncorrected(ndev, i, before);
	if (uncorrected > were)
		drm_err(&ndev->drm, "%s: uncorrected memory errors: %u, were %u\n", memory,
			uncorrected, were);
	if (corrected > FIELD_GET(MBOX_ECC_CORRECTED, before))
		drm_warn(&ndev->drm, "%s: corrected memory errors: %u, were %u\n", memory,
			 corrected, FIELD_GET(MBOX_ECC_CORRECTED, before));
}

static void health_ecc(struct neuron_device *ndev)
{
	char memory[] = "HBM 0";
	unsigned int i;

	for (i = 0; i < ndev->hbm.stacks; i++) {
		memory[sizeof(memory) - 2] = '0' + i;
		health_ecc_one(ndev, i, MBOX_ECC_HBM(i), memory);
	}
	health_ecc_one(ndev, NEURON_ECC_COUNTERS - 1, MBOX_ECC_SRAM, "SRAM");
}

/**
 * neuron_health_repair_name - Repair state in words
 * @repair: MBOX_HBM_REPAIR_*
 *
 * Return: the name.
 */
const char *neuron_health_repair_name(u32 repair)
{
	switch (repair) {
	case MBOX_HBM_REPAIR_NONE:
		return "none";
	case MBOX_HBM_REPAIR_PENDING:
		return "pending";
	case MBOX_HBM_REPAIR_FAILED:
		return "failed";
	default:
		return "unknown";
	}
}

/* One register speaks for all stacks, so that nothing can be said of which it is. */
static void health_repair(struct neuron_device *ndev)
{
	u32 now, before = ndev->health.repair;

	if (!health_read(ndev, MBOX_HBM_REPAIR, &now))
		return;
	now = FIELD_GET(MBOX_HBM_REPAIR_MASK, now);
	if (now == before)
		return;
	WRITE_ONCE(ndev->health.repair, now);
	switch (now) {
	case MBOX_HBM_REPAIR_NONE:
		drm_info(&ndev->drm, "HBM repair: none, was %s\n",
			 neuron_health_repair_name(before));
		break;
	case MBOX_HBM_REPAIR_PENDING:
		drm_warn(&ndev->drm, "HBM repair: pending; power-cycle the device for it\n");
		break;
	case MBOX_HBM_REPAIR_FAILED:
		drm_err(&ndev->drm, "HBM repair: failed; replace the device\n");
		break;
	default:
		drm_warn(&ndev->drm, "HBM repair: unknown state %u\n", now);
		break;
	}
}

/* --- components ---------------------------------------------------------- */

static void health_status(struct neuron_device *ndev)
{
	u32 before = ndev->health.status, now, changed;
	const char *name;
	unsigned int bit;

	if (ndev->hal->arch != NEURON_ARCH_V4)
		return;
	if (!health_read(ndev, MBOX_HEALTH, &now) || now == before)
		return;
	WRITE_ONCE(ndev->health.status, now);
	WRITE_ONCE(ndev->health.events, ndev->health.events + 1);
	changed = now ^ before;
	for (bit = 0; bit < 32; bit++) {
		name = changed & BIT(bit) ? mbox_health_text(bit) : NULL;
		if (name && now & BIT(bit))
			drm_err(&ndev->drm, "firmware says that %s is not well\n", name);
		else if (name)
			drm_info(&ndev->drm, "firmware says that %s is well again\n", name);
	}
}

/* --- clocks -------------------------------------------------------------- */

static void health_clock(struct neuron_device *ndev, unsigned int core)
{
	struct neuron_health_core *c = &ndev->health.core[core];
	const struct nq_entry *note;
	u32 clock = c->clock;
	u8 phase;

	for (;;) {
		note = &c->notes[c->seen % NEURON_HEALTH_NOTES];
		phase = (c->seen / NEURON_HEALTH_NOTES & 1) ^ 1;
		if (READ_ONCE(note->phase) != phase)
			break;
		dma_rmb();
		clock = min_t(u64, le64_to_cpu(note->value), 100);
		c->seen++;
	}
	if (clock == c->clock)
		return;
	drm_warn(&ndev->drm, "core %u: clocks at %u %% of nominal, were at %u %%\n", core, clock,
		 c->clock);
	WRITE_ONCE(c->clock, clock);
}

static void health_notify(struct neuron_device *ndev, unsigned int core, u64 addr, u32 bytes)
{
	const struct neuron_regs *regs = &ndev->core[core].notify;
	u32 queue = HEALTH_QUEUE * NQ_STRIDE;

	neuron_reg_write(regs, NQ_BASE_LO + queue, lower_32_bits(addr));
	neuron_reg_write(regs, NQ_BASE_HI + queue, upper_32_bits(addr));
	neuron_reg_write(regs, NQ_SIZE + queue, bytes);
}

/* --- interrupts ---------------------------------------------------------- */

/**
 * neuron_health_missed_irq - Work was found done that no interrupt told of
 * @ndev: device
 * @what: whose work
 * @index: its number
 */
void neuron_health_missed_irq(struct neuron_device *ndev, const char *what, unsigned int index)
{
	int missed = atomic_inc_return(&ndev->health.missed_irqs);

	dev_warn_ratelimited(ndev->drm.dev,
			     "%s %u: work is done, but its interrupt did not come; %d so far\n",
			     what, index, missed);
}

/* --- removal ------------------------------------------------------------- */

/**
 * neuron_health_suspect - A register read all ones
 * @ndev: device
 *
 * Has a look whether all of the device is gone, and if so takes it out of use.
 * Until that is done, calls and time-outs may still come and find nothing.
 *
 * Context: Any, inside drm_dev_enter().
 */
void neuron_health_suspect(struct neuron_device *ndev)
{
	queue_work(system_long_wq, &ndev->health.lost_work);
}

static void health_unplug(struct neuron_device *ndev)
{
	if (!atomic_xchg(&ndev->health.unplugged, 1))
		drm_dev_unplug(&ndev->drm);
}

static void health_lost_work(struct work_struct *work)
{
	struct neuron_device *ndev = container_of(work, struct neuron_device, health.lost_work);
	u32 magic = EXI_MAGIC_VALUE;

	/* During a reset it does not answer either. */
	scoped_guard(mutex, &ndev->reset_lock)
		if (ndev->power == NEURON_UP)
			magic = neuron_reg_read(&ndev->exi, EXI_MAGIC);
	if (magic != U32_MAX)
		return;
	drm_err(&ndev->drm, "device is gone: register 0x%x reads 0x%x, not 0x%x\n", EXI_MAGIC,
		magic, EXI_MAGIC_VALUE);
	/* First: whoever makes a buffer waits for scrubs, and unplugging waits for him. */
	neuron_power_dead(ndev);
	health_unplug(ndev);
}

/* --- the worker ---------------------------------------------------------- */

static void health_look_locked(struct neuron_device *ndev)
{
	unsigned int core;

	/* Being reset, or asleep: nothing to see. */
	if (ndev->power != NEURON_UP)
		return;
	if (neuron_reg_read(&ndev->exi, EXI_MAGIC) == U32_MAX) {
		neuron_health_suspect(ndev);
		return;
	}
	health_ecc(ndev);
	health_repair(ndev);
	health_status(ndev);
	for (core = 0; core < ndev->cores; core++)
		health_clock(ndev, core);
}

static void health_work(struct work_struct *work)
{
	struct neuron_device *ndev = container_of(work, struct neuron_device, health.work.work);
	int idx;

	if (!drm_dev_enter(&ndev->drm, &idx))
		return;
	scoped_guard(mutex, &ndev->reset_lock)
		health_look_locked(ndev);
	drm_dev_exit(idx);
	if (atomic_read(&ndev->health.users))
		queue_delayed_work(system_long_wq, &ndev->health.work, HEALTH_PERIOD);
}

/**
 * neuron_health_look - Look now
 * @ndev: device
 *
 * Context: Any.
 */
void neuron_health_look(struct neuron_device *ndev)
{
	mod_delayed_work(system_long_wq, &ndev->health.work, 0);
}

/**
 * neuron_health_open - A file was opened
 * @ndev: device
 */
void neuron_health_open(struct neuron_device *ndev)
{
	atomic_inc(&ndev->health.users);
	queue_delayed_work(system_long_wq, &ndev->health.work, HEALTH_PERIOD);
}

/**
 * neuron_health_close - A file was closed
 * @ndev: device
 */
void neuron_health_close(struct neuron_device *ndev)
{
	atomic_dec(&ndev->health.users);
}

/* --- life ---------------------------------------------------------------- */

/**
 * neuron_health_init - Make what needs no hardware
 * @ndev: device
 */
void neuron_health_init(struct neuron_device *ndev)
{
	INIT_DELAYED_WORK(&ndev->health.work, health_work);
	INIT_WORK(&ndev->health.lost_work, health_lost_work);
}

/**
 * neuron_health_alloc - Make room for notifications
 * @ndev: device, the number of its cores known
 *
 * Return: 0, -ENOMEM.
 */
int neuron_health_alloc(struct neuron_device *ndev)
{
	struct neuron_health_core *c;
	unsigned int i;

	for (i = 0; i < ndev->cores; i++) {
		c = &ndev->health.core[i];
		c->notes = dmam_alloc_coherent(ndev->drm.dev, HEALTH_NOTE_BYTES, &c->notes_dma,
					       GFP_KERNEL);
		if (!c->notes)
			return -ENOMEM;
	}
	return 0;
}

/**
 * neuron_health_start - Have the device tell of throttling
 * @ndev: device, reset
 *
 * Says what is to be said before anybody uses the device.
 *
 * Context: Process, &neuron_device.reset_lock held.
 */
void neuron_health_start(struct neuron_device *ndev)
{
	struct neuron_health_core *c;
	unsigned int i;

	lockdep_assert_held(&ndev->reset_lock);
	for (i = 0; i < ndev->cores; i++) {
		c = &ndev->health.core[i];
		memset(c->notes, 0, HEALTH_NOTE_BYTES);
		c->seen = 0;
		c->clock = 100;
		health_notify(ndev, i, ndev->hal->host_base | c->notes_dma, HEALTH_NOTE_BYTES);
	}
	health_repair(ndev);
}

/**
 * neuron_health_stop - Have the device tell nothing any more
 * @ndev: device
 */
void neuron_health_stop(struct neuron_device *ndev)
{
	unsigned int i;

	for (i = 0; i < ndev->cores; i++)
		health_notify(ndev, i, 0, 0);
}

/**
 * neuron_health_remove - The driver is taken off the device
 * @ndev: device
 *
 * On return the DRM device is unplugged and neither worker runs nor will run.
 */
void neuron_health_remove(struct neuron_device *ndev)
{
	disable_delayed_work_sync(&ndev->health.work);
	health_unplug(ndev);
	/* Queued only by those whom unplugging waited for. */
	flush_work(&ndev->health.lost_work);
}
