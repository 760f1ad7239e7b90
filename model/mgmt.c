// SPDX-License-Identifier: Apache-2.0
/* Loader, watchdog, and when the management core runs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "neuron_fw_image.h"

/* Made of firmware/. */
extern const unsigned char fw_trn1[], fw_trn2[], fw_trn3[];
extern const size_t fw_trn1_bytes, fw_trn2_bytes, fw_trn3_bytes;

static const struct {
	uint32_t arch;
	const unsigned char *image;
	const size_t *bytes;
} boot_images[] = {
	{ NEURON_ARCH_V2, fw_trn1, &fw_trn1_bytes },
	{ NEURON_ARCH_V3, fw_trn2, &fw_trn2_bytes },
	{ NEURON_ARCH_V4, fw_trn3, &fw_trn3_bytes },
};

static const char *cause_text(uint32_t cause)
{
	static const char *const text[] = {
		[MBOX_FW_BOOT_POWER_ON] = "power-on",
		[MBOX_FW_BOOT_LOADED] = "loaded by the host",
		[MBOX_FW_BOOT_WATCHDOG] = "the watchdog ended the one before",
		[MBOX_FW_BOOT_FAULT] = "the one before could not go on",
		[MBOX_FW_BOOT_HOST] = "the host asked for it",
	};

	return cause < sizeof(text) / sizeof(text[0]) && text[cause] ? text[cause] : "?";
}

/* --- starting an image -------------------------------------------------------- */

/* Of a good image. */
static void start(struct nm_device *dev, const uint8_t *image, uint32_t cause)
{
	struct nm_mgmt *m = dev->mgmt;
	struct fw_image h;
	uint8_t *to;

	memcpy(&h, image, sizeof(h));
	to = m->ram + (h.load - MGMT_RAM);
	memmove(to, image + sizeof(h), h.bytes);
	memset(to + h.bytes, 0, h.memory - h.bytes);
	rv32_reset(&m->cpu, h.entry);
	m->cpu.stop = true;
	m->starts++;
	m->info = HW_SET(MBOX_FW_BOOT_CAUSE, cause) |
		  (cause == MBOX_FW_BOOT_LOADED ? MBOX_FW_BOOT_LOADED_IMAGE : 0) |
		  HW_SET(MBOX_FW_BOOT_COUNT, m->starts);
	m->version = h.version;
	m->awake = true;
	m->chars = 0;
	atomic_store(&m->cause, 0);
	atomic_store(&m->timer, UINT64_MAX);
	nm_mailbox_not_ready(dev);
	nm_log(dev, NM_LOG_INFO, "firmware %u.%u.%u starts: %s",
	       HW_GET(FWI_VERSION_MAJOR, h.version), HW_GET(FWI_VERSION_MINOR, h.version),
	       HW_GET(FWI_VERSION_PATCH, h.version), cause_text(cause));
}

static void start_boot_image(struct nm_device *dev, uint32_t cause)
{
	for (size_t i = 0; i < sizeof(boot_images) / sizeof(boot_images[0]); i++) {
		struct fwi_finding f;
		const unsigned char *image = boot_images[i].image;
		const size_t bytes = *boot_images[i].bytes;

		if (boot_images[i].arch != nm_mgmt_arch(dev))
			continue;
		if (fwi_check((const struct fw_image *)image, bytes, fwi_crc(image, bytes),
			      nm_mgmt_arch(dev), &f) == FWI_OK) {
			start(dev, image, cause);
			return;
		}
	}
	nm_log(dev, NM_LOG_ERROR, "no boot image of the firmware for generation %u",
	       nm_mgmt_arch(dev));
	dev->mgmt->dead = true;
}

/* An image that does not come to its first sleep is not tried again; of two such there is no way on. */
static void start_over(struct nm_device *dev, uint32_t cause)
{
	struct nm_mgmt *m = dev->mgmt;

	if (m->awake && !(m->info & MBOX_FW_BOOT_LOADED_IMAGE)) {
		nm_log(dev, NM_LOG_ERROR, "the firmware's boot image does not start");
		m->dead = true;
		m->cpu.stop = true;
		atomic_store(&m->cause, 0);
		nm_mailbox_not_ready(dev);
		return;
	}
	start_boot_image(dev, cause);
}

void nm_mgmt_boot(struct nm_device *dev, uint32_t what)
{
	struct nm_mgmt *m = dev->mgmt;
	const uint32_t at = m->boot_image - MGMT_RAM, bytes = m->boot_bytes;
	enum fwi_verdict verdict = FWI_BAD_ADDRESS;
	struct fwi_finding f = { m->boot_image, MGMT_RAM };
	struct fw_image h;

	if (what != MGMT_BOOT_LOAD) {
		start_over(dev, MBOX_FW_BOOT_FAULT);
		return;
	}
	if (at < MGMT_RAM_BYTES && bytes <= MGMT_RAM_BYTES - at && bytes >= sizeof(h)) {
		memcpy(&h, m->ram + at, sizeof(h));
		verdict = fwi_check(&h, bytes, fwi_crc(m->ram + at, bytes), nm_mgmt_arch(dev), &f);
	}
	if (verdict == FWI_OK)
		start(dev, m->ram + at, MBOX_FW_BOOT_LOADED);
	else
		nm_log(dev, NM_LOG_INFO, "firmware image not started: %s 0x%x, want 0x%x",
		       fwi_verdict_text(verdict), f.value, f.want);
}

/* --- running ------------------------------------------------------------------ */

static bool can_wake(const struct nm_mgmt *m)
{
	return m->cpu.mie & 1u << RV32_IRQ_EXTERNAL;
}

static void watchdog(struct nm_device *dev)
{
	struct nm_mgmt *m = dev->mgmt;

	nm_log(dev, NM_LOG_INFO, "watchdog: the firmware hangs at 0x%x with causes 0x%x", m->cpu.pc,
	       atomic_load(&m->cause));
	start_over(dev, MBOX_FW_BOOT_WATCHDOG);
}

void nm_mgmt_run(struct nm_device *dev)
{
	struct nm_mgmt *m = dev->mgmt;

	if (atomic_exchange(&m->restart, false)) {
		m->dead = false;
		start_boot_image(dev, MBOX_FW_BOOT_HOST);
	}
	while (!m->dead) {
		enum rv32_end end;

		m->cpu.external = atomic_load(&m->cause);
		end = rv32_run(&m->cpu, MGMT_WATCHDOG_CYCLES);
		if (end == RV32_STOPPED)
			continue; /* another image */
		if (end == RV32_SLEEPS) {
			m->awake = false;
			if (!atomic_load(&m->cause))
				return;
			if (can_wake(m))
				continue; /* it came as the core fell asleep */
		}
		watchdog(dev);
	}
	atomic_store(&m->cause, 0);
}

void nm_mgmt_power_on(struct nm_device *dev)
{
	struct nm_mgmt *m = dev->mgmt;

	m->starts = 0;
	m->dead = false;
	m->sampled_ns = 0;
	memset(m->core_ns, 0, sizeof(m->core_ns));
	atomic_store(&m->restart, false);
	start_boot_image(dev, MBOX_FW_BOOT_POWER_ON);
	nm_mgmt_run(dev);
}

void nm_mgmt_raise(struct nm_device *dev, uint32_t cause)
{
	atomic_fetch_or(&dev->mgmt->cause, cause);
	pthread_cond_signal(&dev->work);
}

void nm_mgmt_restart(struct nm_device *dev)
{
	atomic_store(&dev->mgmt->restart, true);
	pthread_cond_signal(&dev->work);
}

void nm_mgmt_tick(struct nm_device *dev)
{
	struct nm_mgmt *m = dev->mgmt;

	if (nm_time_ns(dev) < atomic_load_explicit(&m->timer, memory_order_relaxed))
		return;
	pthread_mutex_lock(&dev->lock);
	atomic_store(&m->timer, UINT64_MAX);
	nm_mgmt_raise(dev, MGMT_CAUSE_TIMER);
	pthread_mutex_unlock(&dev->lock);
}

int nm_mgmt_init(struct nm_device *dev)
{
	struct nm_mgmt *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	dev->mgmt = m;
	m->ram = calloc(1, MGMT_RAM_BYTES);
	if (!m->ram)
		return -ENOMEM;
	m->cpu.bus = (struct rv32_bus){ dev, nm_mgmt_load, nm_mgmt_store };
	m->cpu.memory = m->ram;
	m->cpu.memory_base = MGMT_RAM;
	m->cpu.memory_bytes = MGMT_RAM_BYTES;
	atomic_init(&m->timer, UINT64_MAX);
	return 0;
}

void nm_mgmt_fini(struct nm_device *dev)
{
	if (dev->mgmt)
		free(dev->mgmt->ram);
	free(dev->mgmt);
}
