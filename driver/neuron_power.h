/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef __NEURON_POWER_H__
#define __NEURON_POWER_H__

struct neuron_device;

/**
 * enum neuron_power - What the driver may do with the hardware
 */
enum neuron_power {
	/** @NEURON_OFF: Nothing yet: not started. */
	NEURON_OFF,
	/** @NEURON_UP: Everything. */
	NEURON_UP,
	/** @NEURON_DOWN: Nothing for the moment: it is being reset, or asleep. */
	NEURON_DOWN,
	/** @NEURON_DEAD: Nothing: it does not start, or is gone. A reset may bring it back. */
	NEURON_DEAD,
};

int neuron_power_start(struct neuron_device *ndev);
int neuron_power_peek(struct neuron_device *ndev, u32 reg, u32 *value);
int neuron_power_lock(struct neuron_device *ndev);
void neuron_power_unlock(struct neuron_device *ndev);
void neuron_power_lock_settled(struct neuron_device *ndev);

void neuron_power_down(struct neuron_device *ndev);
int neuron_power_back(struct neuron_device *ndev);
void neuron_power_pause(struct neuron_device *ndev);
int neuron_power_restart(struct neuron_device *ndev);
void neuron_power_continue(struct neuron_device *ndev);
void neuron_power_dead(struct neuron_device *ndev);
void neuron_power_event(struct neuron_device *ndev, bool dead);
void neuron_power_recover(struct neuron_device *ndev);
void neuron_power_recover_work(struct work_struct *work);

extern const struct pci_error_handlers neuron_error_handlers;

/* neuron_sleep.c */
int neuron_sleep_get(struct neuron_device *ndev);
bool neuron_sleep_get_if_used(struct neuron_device *ndev);
void neuron_sleep_put(struct neuron_device *ndev);
void neuron_sleep_init(struct neuron_device *ndev);
void neuron_sleep_fini(struct neuron_device *ndev);

extern const struct dev_pm_ops neuron_pm_ops;

#endif /* __NEURON_POWER_H__ */
