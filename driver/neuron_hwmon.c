// SPDX-License-Identifier: GPL-2.0-only
/*
 * hwmon: power and temperature of each die, as the firmware shows them. A device
 * that sleeps is not woken up for it; reading fails with ENODATA then.
 *
 * The firmware tells power as a part of the maximum, of which there is no public
 * figure: without one in the table of the generation there is no power here.
 */

#include <linux/bitfield.h>
#include <linux/hwmon.h>
#include <linux/pci.h>

#include <drm/drm_drv.h>

#include "neuron_drv.h"
#include "neuron_hal.h"
#include "neuron_hwmon.h"
#include "neuron_mailbox.h"

/* Most of any chip. */
#define HWMON_DIES 2

static umode_t hwmon_is_visible(const void *data, enum hwmon_sensor_types type, u32 attr,
				int channel)
{
	const struct neuron_device *ndev = data;

	if (channel >= ndev->hal->dies || (type == hwmon_power && !ndev->hal->power_max_uw))
		return 0;
	return 0444;
}

static int hwmon_register(struct neuron_device *ndev, u32 reg, u32 *value)
{
	int ret, idx;

	if (!drm_dev_enter(&ndev->drm, &idx))
		return -ENODEV;
	ret = neuron_power_peek(ndev, reg, value);
	drm_dev_exit(idx);
	return ret;
}

static int hwmon_read(struct device *dev, enum hwmon_sensor_types type, u32 attr, int channel,
		      long *val)
{
	struct neuron_device *ndev = dev_get_drvdata(dev);
	u32 value;
	int ret;

	if (type == hwmon_power) {
		ret = hwmon_register(ndev, MBOX_POWER(channel), &value);
		if (ret)
			return ret;
		value = FIELD_GET(MBOX_POWER_BASIS_POINTS, value);
		*val = div_u64((u64)ndev->hal->power_max_uw * value, 10000);
		return 0;
	}
	ret = hwmon_register(ndev, MBOX_TEMPERATURE(channel), &value);
	if (ret)
		return ret;
	/* Firmware that does not know shows 0. */
	value = FIELD_GET(MBOX_TEMPERATURE_TENTHS, value);
	if (!value)
		return -ENODATA;
	*val = value * 100l;
	return 0;
}

static int hwmon_read_string(struct device *dev, enum hwmon_sensor_types type, u32 attr,
			     int channel, const char **str)
{
	static const char *const names[HWMON_DIES] = { "die 0", "die 1" };

	*str = names[channel];
	return 0;
}

static const struct hwmon_ops hwmon_ops = {
	.is_visible = hwmon_is_visible,
	.read = hwmon_read,
	.read_string = hwmon_read_string,
};

static const struct hwmon_channel_info *const hwmon_info[] = {
	HWMON_CHANNEL_INFO(power, HWMON_P_INPUT | HWMON_P_LABEL, HWMON_P_INPUT | HWMON_P_LABEL),
	HWMON_CHANNEL_INFO(temp, HWMON_T_INPUT | HWMON_T_LABEL, HWMON_T_INPUT | HWMON_T_LABEL),
	NULL,
};

static const struct hwmon_chip_info neuron_hwmon_chip = {
	.ops = &hwmon_ops,
	.info = hwmon_info,
};

/**
 * neuron_hwmon_init - Make the sensors
 * @ndev: device, started
 *
 * They go with the binding. Doing without them is no reason to do without the device.
 */
void neuron_hwmon_init(struct neuron_device *ndev)
{
	struct device *dev = ndev->drm.dev, *hwmon;

	hwmon = devm_hwmon_device_register_with_info(dev, "neuron", ndev, &neuron_hwmon_chip, NULL);
	if (IS_ERR(hwmon))
		drm_warn(&ndev->drm, "no sensors: %ld\n", PTR_ERR(hwmon));
}
