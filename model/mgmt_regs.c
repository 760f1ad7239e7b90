// SPDX-License-Identifier: Apache-2.0
/* Registers of the management core and what stands behind them: copies, resets, counters, sensors. */
#include <string.h>

#include "device.h"

/* --- device addresses ----------------------------------------------------------- */

static bool read_register(struct nm_device *dev, uint64_t addr, uint32_t *value)
{
	for (const struct nm_apb_part *part = dev->chip->parts; part->size; part++) {
		uint64_t at = addr - part->addr;

		if (at >= part->size || addr % 4)
			continue;
		*value = nm_apb_read(dev, part->offset + at);
		return true;
	}
	return false;
}

static bool copy(struct nm_device *dev, uint32_t what)
{
	struct nm_mgmt *m = dev->mgmt;
	const uint64_t addr = (uint64_t)m->copy_hi << 32 | m->copy_lo;
	const uint32_t at = m->copy_ram - MGMT_RAM;
	const uint32_t bytes = what == MGMT_COPY_REGISTER ? 4 : m->copy_bytes;
	uint32_t value;

	if (at >= MGMT_RAM_BYTES || bytes > MGMT_RAM_BYTES - at)
		return false;
	switch (what) {
	case MGMT_COPY_IN:
		if (nm_bus_read(dev, addr, m->ram + at, bytes))
			return false;
		if (nm_armed(dev, NM_ARMED_MAILBOX))
			nm_inject_damage(dev, addr, m->ram + at, bytes);
		return true;
	case MGMT_COPY_OUT:
		return !nm_bus_write(dev, addr, m->ram + at, bytes);
	case MGMT_COPY_REGISTER:
		if (!read_register(dev, addr, &value))
			return false;
		memcpy(m->ram + at, &value, sizeof(value));
		return true;
	default:
		return false;
	}
}

/* --- sensors -------------------------------------------------------------------- */

/*
 * A model of our own: an idle die takes IDLE_POWER of its maximum and all of it when its cores are
 * busy; its temperature goes to AMBIENT and RISE above that with a time constant of TAU_NS. A look
 * with no device time since the last one sees an idle device IDLE_NS later. A throttled one is hot.
 */
#define BASIS_POINTS 10000u
#define IDLE_POWER   1200u
#define AMBIENT	     350
#define RISE	     450
#define HOT	     1000
#define TAU_NS	     20000000
#define IDLE_NS	     5000000

/* Share of the time in which a die's cores ran, basis points. */
static uint32_t utilisation(struct nm_device *dev, unsigned int die, uint64_t elapsed_ns)
{
	const unsigned int cores_per_die = dev->chip->cores / dev->chip->dies;
	struct nm_mgmt *m = dev->mgmt;
	uint64_t busy = 0, cores = 0;

	for (unsigned int c = 0; c < dev->config.cores; c++) {
		uint64_t t;

		if (c / cores_per_die != die)
			continue;
		t = nm_core_time_ns(dev->core[c]);
		busy += t >= m->core_ns[c] ? t - m->core_ns[c] : t; /* it was reset */
		m->core_ns[c] = t;
		cores++;
	}
	if (!elapsed_ns || !cores)
		return 0;
	busy = busy * BASIS_POINTS / (cores * elapsed_ns);
	return busy < BASIS_POINTS ? (uint32_t)busy : BASIS_POINTS;
}

static void sample(struct nm_device *dev)
{
	struct nm_mgmt *m = dev->mgmt;
	const uint64_t now = nm_time_ns(dev);
	const uint64_t elapsed = now >= m->sampled_ns ? now - m->sampled_ns : now;
	const int64_t dt = elapsed ? (int64_t)(elapsed & UINT32_MAX) : IDLE_NS;

	m->sampled_ns = now;
	for (unsigned int die = 0; die < dev->chip->dies; die++) {
		struct nm_sensor *s = &m->sensor[die];
		const uint32_t busy = utilisation(dev, die, elapsed);
		const int64_t target = AMBIENT + (int64_t)RISE * busy / BASIS_POINTS;
		const int64_t was = s->temperature ? s->temperature : AMBIENT;

		s->power = IDLE_POWER + (BASIS_POINTS - IDLE_POWER) * busy / BASIS_POINTS;
		s->temperature = (uint32_t)(was + (target - was) * dt / (dt + TAU_NS));
	}
}

static uint32_t temperature(struct nm_device *dev, unsigned int die)
{
	uint32_t t = dev->mgmt->sensor[die].temperature;
	unsigned int percent;

	pthread_mutex_lock(&dev->lock);
	percent = dev->inject.percent;
	pthread_mutex_unlock(&dev->lock);
	return percent < 100 && t < HOT ? HOT : t;
}

/* --- registers ------------------------------------------------------------------ */

static uint32_t ecc(struct nm_device *dev, unsigned int memory, uint32_t which)
{
	uint32_t counts;

	pthread_mutex_lock(&dev->lock);
	counts = dev->inject.ecc[memory];
	pthread_mutex_unlock(&dev->lock);
	return HW_GET(which, counts);
}

static uint32_t repair(struct nm_device *dev)
{
	uint32_t state;

	pthread_mutex_lock(&dev->lock);
	state = dev->inject.repair;
	pthread_mutex_unlock(&dev->lock);
	return state;
}

static uint32_t time_lo(struct nm_device *dev)
{
	const uint64_t now = nm_time_ns(dev);

	dev->mgmt->time_hi = (uint32_t)(now >> 32);
	return (uint32_t)now;
}

/* Registers that count: number of reg among n that are 4 bytes apart from base on. */
static bool one_of(uint32_t reg, uint32_t base, unsigned int n, unsigned int *i)
{
	*i = (reg - base) / 4;
	return reg >= base && *i < n;
}

static bool reg_load(struct nm_device *dev, uint32_t reg, uint32_t *value)
{
	struct nm_mgmt *m = dev->mgmt;
	unsigned int i;

	if (one_of(reg, MGMT_ECC_CORRECTED(0), MGMT_ECC_MEMORIES, &i))
		*value = ecc(dev, i, MBOX_ECC_CORRECTED);
	else if (one_of(reg, MGMT_ECC_UNCORRECTED(0), MGMT_ECC_MEMORIES, &i))
		*value = ecc(dev, i, MBOX_ECC_UNCORRECTED);
	else if (one_of(reg, MGMT_POWER(0), dev->chip->dies, &i))
		*value = m->sensor[i].power;
	else if (one_of(reg, MGMT_TEMPERATURE(0), dev->chip->dies, &i))
		*value = temperature(dev, i);
	else
		switch (reg) {
		case MGMT_CAUSE:
			*value = atomic_load(&m->cause);
			break;
		case MGMT_TIME_LO:
			*value = time_lo(dev);
			break;
		case MGMT_TIME_HI:
			*value = m->time_hi;
			break;
		case MGMT_HBM_REPAIR:
			*value = repair(dev);
			break;
		case MGMT_CHIP_ARCH:
			*value = nm_mgmt_arch(dev);
			break;
		case MGMT_CHIP_STACKS:
			*value = dev->chip->stacks;
			break;
		case MGMT_CHIP_DIES:
			*value = dev->chip->dies;
			break;
		case MGMT_CHIP_DEVICE_ID:
			*value = dev->config.device_id;
			break;
		case MGMT_CHIP_SERIAL_LO:
			*value = (uint32_t)dev->config.serial;
			break;
		case MGMT_CHIP_SERIAL_HI:
			*value = (uint32_t)(dev->config.serial >> 32);
			break;
		case MGMT_COPY_STATUS:
			*value = m->copy_status;
			break;
		case MGMT_BOOT_INFO:
			*value = m->info;
			break;
		case MGMT_BOOT_VERSION:
			*value = m->version;
			break;
		default:
			return false;
		}
	return true;
}

static void log_end(struct nm_device *dev, uint32_t level)
{
	struct nm_mgmt *m = dev->mgmt;

	m->line[m->chars] = 0;
	m->chars = 0;
	if (level == MGMT_LOG_INFO)
		nm_log(dev, NM_LOG_INFO, "firmware: %s", m->line);
	else
		nm_guest_error(dev, GUEST_KEY(GUEST_MAILBOX, level & 0xff, 0), "%s", m->line);
}

static void arm_timer(struct nm_device *dev, uint32_t hi)
{
	struct nm_mgmt *m = dev->mgmt;

	atomic_store(&m->timer, (uint64_t)hi << 32 | m->timer_lo);
	nm_mgmt_tick(dev);
}

static void clear_causes(struct nm_mgmt *m, uint32_t causes)
{
	m->cpu.external = atomic_fetch_and(&m->cause, ~causes) & ~causes;
}

static bool reg_store(struct nm_device *dev, uint32_t reg, uint32_t value)
{
	struct nm_mgmt *m = dev->mgmt;

	switch (reg) {
	case MGMT_CAUSE_CLEAR:
		clear_causes(m, value);
		break;
	case MGMT_TIMER_LO:
		m->timer_lo = value;
		break;
	case MGMT_TIMER_HI:
		arm_timer(dev, value);
		break;
	case MGMT_COPY_ADDR_LO:
		m->copy_lo = value;
		break;
	case MGMT_COPY_ADDR_HI:
		m->copy_hi = value;
		break;
	case MGMT_COPY_RAM:
		m->copy_ram = value;
		break;
	case MGMT_COPY_BYTES:
		m->copy_bytes = value;
		break;
	case MGMT_COPY_GO:
		m->copy_status = copy(dev, value) ? MGMT_COPY_DONE : MGMT_COPY_NO_ANSWER;
		break;
	case MGMT_RESET_MAP:
		m->reset_map = value;
		break;
	case MGMT_RESET_MAP_HI:
		m->reset_map_hi = value;
		break;
	case MGMT_RESET_GO:
		nm_device_reset_map(dev, m->reset_map, m->reset_map_hi);
		break;
	case MGMT_SAMPLE:
		sample(dev);
		break;
	case MGMT_BOOT_IMAGE:
		m->boot_image = value;
		break;
	case MGMT_BOOT_BYTES:
		m->boot_bytes = value;
		break;
	case MGMT_BOOT_GO:
		nm_mgmt_boot(dev, value);
		break;
	case MGMT_LOG:
		if (m->chars < sizeof(m->line) - 1)
			m->line[m->chars++] = (char)value;
		break;
	case MGMT_LOG_END:
		log_end(dev, value);
		break;
	default:
		return false;
	}
	return true;
}

bool nm_mgmt_load(void *user, uint32_t addr, unsigned int size, uint32_t *value)
{
	struct nm_device *dev = user;

	if (size != 4)
		return false;
	if (addr - MGMT_MISC < MGMT_MISC_BYTES)
		return nm_mailbox_load(dev, addr - MGMT_MISC, value);
	return addr - MGMT_REGS < MGMT_REGS_BYTES && reg_load(dev, addr - MGMT_REGS, value);
}

bool nm_mgmt_store(void *user, uint32_t addr, unsigned int size, uint32_t value)
{
	struct nm_device *dev = user;

	if (size != 4)
		return false;
	if (addr - MGMT_MISC < MGMT_MISC_BYTES)
		return nm_mailbox_store(dev, addr - MGMT_MISC, value);
	return addr - MGMT_REGS < MGMT_REGS_BYTES && reg_store(dev, addr - MGMT_REGS, value);
}
