// SPDX-License-Identifier: GPL-2.0-only
/*
 * /sys/kernel/debug/accel/<pci address>/:
 *   hbm           total and used bytes, then the allocator's view of each stack
 *   hbm_used      bytes that buffers and programs of all users occupy
 *   evict         bytes in host memory that belong into HBM, moves to there and back
 *   firmware      version and how it came to run
 *   contexts      one line for each context of any user
 *   faults        lost interrupts, memory errors, their repair and clocks, as last seen
 *   stall_detect  1 (reset value): programs whose engines all wait for each other
 *                 fault; 0: they hang until they time out
 *   reset         writing 1 resets the device, as the driver does when a part of it
 *                 does not stop
 */

#include <linux/bitfield.h>
#include <linux/debugfs.h>
#include <linux/seq_file.h>

#include <drm/drm_debugfs.h>
#include <drm/drm_drv.h>
#include <drm/drm_file.h>

#include "neuron_ctx.h"
#include "neuron_drv.h"
#include "neuron_mailbox.h"

static int debugfs_hbm(struct seq_file *m, void *unused)
{
	struct drm_debugfs_entry *entry = m->private;
	struct neuron_hbm *hbm = &to_neuron_device(entry->dev)->hbm;
	unsigned int i;

	guard(mutex)(&hbm->lock);
	seq_printf(m, "total %llu\nused %llu\n", hbm->total, hbm->used);
	for (i = 0; i < hbm->stacks; i++)
		seq_printf(m, "stack %u: address 0x%llx, %llu bytes, %llu free\n", i,
			   hbm->stack[i].addr, hbm->stack[i].mm.size, hbm->stack[i].mm.avail);
	return 0;
}

static int debugfs_hbm_used(struct seq_file *m, void *unused)
{
	struct drm_debugfs_entry *entry = m->private;

	seq_printf(m, "%llu\n", neuron_hbm_used(&to_neuron_device(entry->dev)->hbm));
	return 0;
}

static int debugfs_evict(struct seq_file *m, void *unused)
{
	struct drm_debugfs_entry *entry = m->private;
	struct neuron_evict *evict = &to_neuron_device(entry->dev)->evict;

	seq_printf(m, "bytes %lld\nevictions %lld\nrestores %lld\n", atomic64_read(&evict->bytes),
		   atomic64_read(&evict->evictions), atomic64_read(&evict->restores));
	return 0;
}

static int debugfs_firmware(struct seq_file *m, void *unused)
{
	struct drm_debugfs_entry *entry = m->private;
	struct neuron_device *ndev = to_neuron_device(entry->dev);
	struct neuron_fw_state state;
	int idx;

	if (!drm_dev_enter(&ndev->drm, &idx))
		return -ENODEV;
	neuron_fw_read_state(ndev, &state);
	seq_printf(m, "version %s, %s\n", state.text, state.loaded ? "loaded" : "the device's own");
	seq_printf(m, "mailbox API %u\n", ndev->fw.api_version);
	seq_printf(m, "started %u times, last: %s\n", state.starts, neuron_fw_cause(state.cause));
	seq_printf(m, "heartbeat %u\n", neuron_reg_read(&ndev->misc, MBOX_FW_HEARTBEAT));
	drm_dev_exit(idx);
	return 0;
}

static int debugfs_contexts(struct seq_file *m, void *unused)
{
	struct drm_debugfs_entry *entry = m->private;
	struct neuron_device *ndev = to_neuron_device(entry->dev);
	struct neuron_ctx *ctx;
	unsigned int c, q;

	guard(mutex)(&ndev->reset_lock);
	for (c = 0; c < ndev->cores; c++) {
		for (q = 0; q < ndev->queues; q++) {
			ctx = READ_ONCE(ndev->core[c].ctx[q]);
			if (IS_ERR(ctx))
				seq_printf(m, "core %u queue %u: out of use\n", c, q);
			if (IS_ERR_OR_NULL(ctx))
				continue;
			guard(spinlock_irqsave)(&ndev->core[c].lock);
			seq_printf(m, "core %u queue %u: pid %d context %u state %u", c, q,
				   ctx->pid, ctx->id, ctx->state.state);
			seq_printf(m, " head %u tail %u launches %llu\n", ctx->head, ctx->tail,
				   ctx->state.launches);
		}
	}
	return 0;
}

static int debugfs_faults(struct seq_file *m, void *unused)
{
	struct drm_debugfs_entry *entry = m->private;
	struct neuron_device *ndev = to_neuron_device(entry->dev);
	struct neuron_health *health = &ndev->health;
	unsigned int i;
	u32 ecc;

	seq_printf(m, "missed interrupts %d\n", atomic_read(&health->missed_irqs));
	for (i = 0; i < NEURON_ECC_COUNTERS; i++) {
		if (i < NEURON_ECC_COUNTERS - 1)
			seq_printf(m, "hbm%u", i);
		else
			seq_puts(m, "sram");
		ecc = READ_ONCE(health->ecc[i]);
		seq_printf(m, " corrected %u uncorrected %u\n", FIELD_GET(MBOX_ECC_CORRECTED, ecc),
			   neuron_health_uncorrected(ndev, i, ecc));
	}
	seq_printf(m, "hbm repair %s\n", neuron_health_repair_name(READ_ONCE(health->repair)));
	for (i = 0; i < ndev->cores; i++)
		seq_printf(m, "core %u clock %u %%\n", i, READ_ONCE(health->core[i].clock));
	return 0;
}

/* Take &neuron_device.reset_lock of a device that is there, awake and works. */
static int debugfs_enter(struct neuron_device *ndev, int *idx)
{
	int ret;

	if (!drm_dev_enter(&ndev->drm, idx))
		return -ENODEV;
	ret = neuron_sleep_get(ndev);
	if (ret)
		goto err_dev;
	ret = neuron_power_lock(ndev);
	if (ret)
		goto err_sleep;
	return 0;

err_sleep:
	neuron_sleep_put(ndev);
err_dev:
	drm_dev_exit(*idx);
	return ret;
}

static void debugfs_exit(struct neuron_device *ndev, int idx)
{
	neuron_power_unlock(ndev);
	neuron_sleep_put(ndev);
	drm_dev_exit(idx);
}

static int debugfs_stall_get(void *data, u64 *value)
{
	struct neuron_device *ndev = data;
	int ret, idx;

	ret = debugfs_enter(ndev, &idx);
	if (ret)
		return ret;
	*value = !!(neuron_reg_read(&ndev->exi, EXI_FEATURES) & EXI_FEATURE_STALL_DETECT);
	debugfs_exit(ndev, idx);
	return 0;
}

static int debugfs_stall_set(void *data, u64 value)
{
	struct neuron_device *ndev = data;
	u32 features;
	int ret, idx;

	if (value > 1)
		return -EINVAL;
	ret = debugfs_enter(ndev, &idx);
	if (ret)
		return ret;
	features = neuron_reg_read(&ndev->exi, EXI_FEATURES) & ~EXI_FEATURE_STALL_DETECT;
	if (value)
		features |= EXI_FEATURE_STALL_DETECT;
	neuron_reg_write(&ndev->exi, EXI_FEATURES, features);
	debugfs_exit(ndev, idx);
	return 0;
}

DEFINE_DEBUGFS_ATTRIBUTE(debugfs_stall_fops, debugfs_stall_get, debugfs_stall_set, "%llu\n");

static int debugfs_reset_set(void *data, u64 value)
{
	struct neuron_device *ndev = data;
	int ret, idx;

	if (value != 1)
		return -EINVAL;
	ret = debugfs_enter(ndev, &idx);
	if (ret)
		return ret;
	neuron_power_recover(ndev);
	debugfs_exit(ndev, idx);
	flush_work(&ndev->recover_work);
	return 0;
}

DEFINE_DEBUGFS_ATTRIBUTE(debugfs_reset_fops, NULL, debugfs_reset_set, "%llu\n");

static const struct drm_debugfs_info debugfs_files[] = {
	{ "hbm", debugfs_hbm, 0 },	     { "hbm_used", debugfs_hbm_used, 0 },
	{ "evict", debugfs_evict, 0 },	     { "firmware", debugfs_firmware, 0 },
	{ "contexts", debugfs_contexts, 0 }, { "faults", debugfs_faults, 0 },
};

/**
 * neuron_debugfs_init - Make the files
 * @ndev: device
 *
 * They go with the DRM device's directory.
 */
void neuron_debugfs_init(struct neuron_device *ndev)
{
	drm_debugfs_add_files(&ndev->drm, debugfs_files, ARRAY_SIZE(debugfs_files));
	debugfs_create_file_unsafe("stall_detect", 0600, ndev->drm.debugfs_root, ndev,
				   &debugfs_stall_fops);
	debugfs_create_file_unsafe("reset", 0200, ndev->drm.debugfs_root, ndev,
				   &debugfs_reset_fops);
}
