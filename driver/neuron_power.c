// SPDX-License-Identifier: GPL-2.0-only
/*
 * The whole device down and up again: resets that somebody else makes (of the
 * function or its bus, by sysfs, or by the PCI core after a bus error), and the
 * driver's own when a queue does not let go.
 *
 * What a reset leaves: buffers and programs, since HBM keeps its contents, and
 * copies, which start again from their first byte. A launch cannot start again,
 * so contexts are lost: their fences end with -EIO and -ECANCELED, their state is
 * DRM_NEURON_CTX_INNOCENT. Who wants a new context meanwhile waits.
 */

#include <linux/pci.h>

#include <drm/drm_drv.h>
#include <drm/drm_file.h>

#include "neuron_copy.h"
#include "neuron_ctx.h"
#include "neuron_drv.h"
#include "neuron_fw.h"
#include "neuron_hal.h"
#include "neuron_mailbox.h"
#include "neuron_power.h"

static void power_set(struct neuron_device *ndev, enum neuron_power power)
{
	lockdep_assert_held(&ndev->reset_lock);

	WRITE_ONCE(ndev->power, power);
	wake_up_all(&ndev->power_wait);
}

/**
 * neuron_power_lock - Take &neuron_device.reset_lock of a device that works
 * @ndev: device
 *
 * Waits for a reset that is under way.
 *
 * Return: 0 and the lock is held, -ENODEV, -ERESTARTSYS.
 */
int neuron_power_lock(struct neuron_device *ndev)
{
	for (;;) {
		if (wait_event_interruptible(ndev->power_wait,
					     READ_ONCE(ndev->power) != NEURON_DOWN))
			return -ERESTARTSYS;
		mutex_lock(&ndev->reset_lock);
		if (ndev->power == NEURON_UP)
			return 0;
		mutex_unlock(&ndev->reset_lock);
		if (READ_ONCE(ndev->power) == NEURON_DEAD)
			return -ENODEV;
	}
}

/**
 * neuron_power_unlock - Give it back
 * @ndev: device
 */
void neuron_power_unlock(struct neuron_device *ndev)
{
	mutex_unlock(&ndev->reset_lock);
}

/**
 * neuron_power_lock_settled - Take &neuron_device.reset_lock when no reset is under way
 * @ndev: device, working or dead
 */
void neuron_power_lock_settled(struct neuron_device *ndev)
{
	for (;;) {
		wait_event(ndev->power_wait, READ_ONCE(ndev->power) != NEURON_DOWN);
		mutex_lock(&ndev->reset_lock);
		if (ndev->power != NEURON_DOWN)
			return;
		mutex_unlock(&ndev->reset_lock);
	}
}

/**
 * neuron_power_peek - Read a register of the mailbox without waking the device up
 * @ndev: device
 * @reg: MBOX_*
 * @value: what it read
 *
 * Return: 0, -ENODATA: it sleeps, is being reset, or does not answer.
 */
int neuron_power_peek(struct neuron_device *ndev, u32 reg, u32 *value)
{
	int ret = -ENODATA;

	if (!neuron_sleep_get_if_used(ndev))
		return -ENODATA;
	scoped_guard(mutex, &ndev->reset_lock) {
		if (ndev->power != NEURON_UP)
			break;
		*value = neuron_reg_read(&ndev->misc, reg);
		if (*value != MBOX_NOT_READY && *value != U32_MAX)
			ret = 0;
	}
	neuron_sleep_put(ndev);
	return ret;
}

/**
 * neuron_power_event - Tell user space that the device was reset, or is dead
 * @ndev: device
 * @dead: it takes a reset of the bus or another binding to make it work
 *
 * The uevents of drm_dev_wedged_event(), which wants a primary node that an
 * accelerator has not.
 *
 * Context: Process, no lock held.
 */
void neuron_power_event(struct neuron_device *ndev, bool dead)
{
	char *event = dead ? "WEDGED=rebind,bus-reset" : "WEDGED=none";
	char *env[2] = { event, NULL };

	if (ndev->drm.registered)
		kobject_uevent_env(&ndev->drm.accel->kdev->kobj, KOBJ_CHANGE, env);
}

/* What every start has in common. The device answers, its registers are mapped. */
static int power_start_hw(struct neuron_device *ndev)
{
	int ret;

	ret = ndev->hal->ops->reset(ndev);
	if (ret) {
		drm_err(&ndev->drm, "device does not come out of reset: %d\n", ret);
		return ret;
	}
	ret = neuron_fw_start(ndev);
	if (ret)
		return ret;
	ret = neuron_fw_update(ndev);
	if (ret)
		return ret;
	neuron_hbm_clear_zero(&ndev->hbm);
	neuron_health_start(ndev);
	return 0;
}

/**
 * neuron_power_start - Start the device for the first time
 * @ndev: device, registers and HBM mapped, no interrupts yet
 *
 * Return: 0, -ETIMEDOUT, -EIO, -ENODEV.
 */
int neuron_power_start(struct neuron_device *ndev)
{
	int ret;

	guard(mutex)(&ndev->reset_lock);
	ret = power_start_hw(ndev);
	if (!ret)
		power_set(ndev, NEURON_UP);
	return ret;
}

static void power_down_locked(struct neuron_device *ndev)
{
	lockdep_assert_held(&ndev->reset_lock);

	power_set(ndev, NEURON_DOWN);
	neuron_ctx_kill_all(ndev, -EIO);
	neuron_copy_pause(ndev);
}

static void power_dead_locked(struct neuron_device *ndev)
{
	lockdep_assert_held(&ndev->reset_lock);

	if (ndev->power == NEURON_DEAD)
		return;
	power_set(ndev, NEURON_DEAD);
	neuron_ctx_kill_all(ndev, -ENODEV);
	neuron_copy_stop(ndev, -ENODEV);
}

static int power_back_locked(struct neuron_device *ndev)
{
	int ret;

	lockdep_assert_held(&ndev->reset_lock);

	ndev->resets++;
	ret = power_start_hw(ndev);
	if (ret) {
		ndev->resets_failed++;
		drm_err(&ndev->drm, "no use of the device until it is reset or bound again\n");
		power_dead_locked(ndev);
		return ret;
	}
	/* Nothing of what ran before the reset reaches host memory any more. */
	neuron_ctx_forget_all(ndev);
	neuron_copy_resume(ndev);
	power_set(ndev, NEURON_UP);
	return 0;
}

/**
 * neuron_power_down - Somebody is about to reset the device
 * @ndev: device; it may already not answer
 *
 * Contexts are lost on return; nothing touches a register until neuron_power_back().
 */
void neuron_power_down(struct neuron_device *ndev)
{
	guard(mutex)(&ndev->reset_lock);
	if (ndev->power != NEURON_DOWN)
		power_down_locked(ndev);
}

/**
 * neuron_power_back - The device was reset: use it again
 * @ndev: device
 *
 * Return: 0, -ETIMEDOUT, -EIO, -ENODEV: it is dead.
 */
int neuron_power_back(struct neuron_device *ndev)
{
	int ret;

	scoped_guard(mutex, &ndev->reset_lock)
		ret = power_back_locked(ndev);
	if (ret)
		neuron_power_event(ndev, true);
	return ret;
}

/**
 * neuron_power_pause - Nobody touches the device from now on, contexts stay
 * @ndev: device, its contexts idle and held
 *
 * Context: Process, &neuron_device.reset_lock held.
 */
void neuron_power_pause(struct neuron_device *ndev)
{
	power_set(ndev, NEURON_DOWN);
	neuron_copy_pause(ndev);
}

/**
 * neuron_power_restart - Start the device after it lost everything
 * @ndev: device that is down
 *
 * Context: Process, &neuron_device.reset_lock held.
 * Return: 0, -ETIMEDOUT, -EIO, -ENODEV.
 */
int neuron_power_restart(struct neuron_device *ndev)
{
	power_set(ndev, NEURON_DOWN);
	return power_start_hw(ndev);
}

/**
 * neuron_power_continue - End of neuron_power_pause()
 * @ndev: device that works
 *
 * Context: Process, &neuron_device.reset_lock held.
 */
void neuron_power_continue(struct neuron_device *ndev)
{
	neuron_copy_resume(ndev);
	power_set(ndev, NEURON_UP);
}

/**
 * neuron_power_dead - The device will not come back, or is to be left alone
 * @ndev: device
 */
void neuron_power_dead(struct neuron_device *ndev)
{
	guard(mutex)(&ndev->reset_lock);
	power_dead_locked(ndev);
}

/**
 * neuron_power_recover_work - Reset the device
 * @work: &neuron_device.recover_work
 */
void neuron_power_recover_work(struct work_struct *work)
{
	struct neuron_device *ndev = container_of(work, struct neuron_device, recover_work);
	int idx, ret = -ECANCELED;

	if (!drm_dev_enter(&ndev->drm, &idx))
		return;
	scoped_guard(mutex, &ndev->reset_lock) {
		if (ndev->power != NEURON_UP)
			break;
		drm_warn(&ndev->drm, "device reset\n");
		power_down_locked(ndev);
		ret = power_back_locked(ndev);
	}
	if (ret != -ECANCELED)
		neuron_power_event(ndev, ret);
	drm_dev_exit(idx);
}

/**
 * neuron_power_recover - Ask for a reset of the whole device
 * @ndev: device, a part of which does not stop
 *
 * Context: Any. Contexts of all users are lost.
 */
void neuron_power_recover(struct neuron_device *ndev)
{
	queue_work(ndev->timeout_wq, &ndev->recover_work);
}

/* --- the PCI core's callbacks -------------------------------------------- */

static void power_reset_prepare(struct pci_dev *pdev)
{
	neuron_power_down(pci_get_drvdata(pdev));
}

static void power_reset_done(struct pci_dev *pdev)
{
	struct neuron_device *ndev = pci_get_drvdata(pdev);

	if (!neuron_power_back(ndev))
		drm_info(&ndev->drm, "works again after a reset\n");
}

/*
 * Whatever the error was, a transfer may be missing from memory, so only a reset
 * makes the device trustworthy again.
 */
static pci_ers_result_t power_error_detected(struct pci_dev *pdev, pci_channel_state_t state)
{
	struct neuron_device *ndev = pci_get_drvdata(pdev);

	if (state == pci_channel_io_perm_failure) {
		drm_err(&ndev->drm, "bus error, the device is lost\n");
		neuron_power_dead(ndev);
		return PCI_ERS_RESULT_DISCONNECT;
	}
	drm_err(&ndev->drm, "bus error, device stopped for a reset\n");
	neuron_power_down(ndev);
	pci_clear_master(pdev);
	return PCI_ERS_RESULT_NEED_RESET;
}

static pci_ers_result_t power_slot_reset(struct pci_dev *pdev)
{
	struct neuron_device *ndev = pci_get_drvdata(pdev);

	/* What the bus reset cleared; the state is that of the probe. */
	pci_restore_state(pdev);
	pci_save_state(pdev);
	pci_set_master(pdev);
	return neuron_power_back(ndev) ? PCI_ERS_RESULT_DISCONNECT : PCI_ERS_RESULT_RECOVERED;
}

static void power_resume(struct pci_dev *pdev)
{
	struct neuron_device *ndev = pci_get_drvdata(pdev);

	drm_info(&ndev->drm, "works again after a bus error\n");
}

const struct pci_error_handlers neuron_error_handlers = {
	.error_detected = power_error_detected,
	.slot_reset = power_slot_reset,
	.resume = power_resume,
	.reset_prepare = power_reset_prepare,
	.reset_done = power_reset_done,
};
