// SPDX-License-Identifier: Apache-2.0
/*
 * The PCI function: type 0 header, 64-bit BARs, power management, PCI Express endpoint with
 * function-level reset, MSI-X. Layout per the PCI and PCI Express specifications; identity and BAR
 * use per hw/neuron_pci.h.
 */
#include <string.h>

#include "device.h"

/* Configuration space header. */
#define CFG_VENDOR	 0x00
#define CFG_DEVICE	 0x02
#define CFG_COMMAND	 0x04
#define COMMAND_MEMORY	 0x0002u
#define COMMAND_MASTER	 0x0004u
#define COMMAND_WRITABLE 0x0546u /* also parity and SERR response, INTx disable */
#define CFG_STATUS	 0x06
#define STATUS_CAPS	 0x0010u
#define CFG_REVISION	 0x08
#define CFG_CLASS	 0x0a
#define CFG_CACHE_LINE	 0x0c
#define CFG_BAR(n)	 (0x10 + (n) * 4)
#define BAR_64		 0x4u
#define BAR_PREFETCH	 0x8u
#define CFG_SUBVENDOR	 0x2c
#define CFG_SUBDEVICE	 0x2e
#define CFG_CAPS	 0x34
#define CFG_INT_LINE	 0x3c

/* Capabilities, in the order of their list. */
#define CAP_PM		   0x40
#define CAP_PM_ID	   0x01
#define CAP_PM_VERSION	   0x0003u
#define PM_CONTROL	   0x04
#define PM_STATE	   0x3u
#define PM_D0		   0u
#define PM_D3HOT	   3u
#define CAP_PCIE	   0x50
#define CAP_PCIE_ID	   0x10
#define PCIE_V2_ENDPOINT   0x0002u
#define DEVCAP_PAYLOAD_512 0x2u
#define DEVCAP_ROLE_ERRORS 0x00008000u
#define DEVCAP_FLR	   0x10000000u
#define DEVCTL		   0x08
#define DEVCTL_WRITABLE	   0x7fffu
#define DEVCTL_FLR	   0x8000u
#define LINK_GEN5_X16	   0x105u /* speed and width fields of capability and status */
#define LINK2		   0x30
#define CAP_MSIX	   0x90
#define CAP_MSIX_ID	   0x11
#define MSIX_CONTROL	   0x02
#define MSIX_ENABLE	   0x8000u
#define MSIX_MASK_ALL	   0x4000u
#define MSIX_ENTRY_MASKED  0x1u

static void put16(uint8_t *p, unsigned int v)
{
	p[0] = (uint8_t)v;
	p[1] = (uint8_t)(v >> 8);
}

static void put32(uint8_t *p, uint32_t v)
{
	put16(p, v & 0xffff);
	put16(p + 2, v >> 16);
}

static uint32_t get(const uint8_t *p, unsigned int size)
{
	uint32_t v = 0;

	for (unsigned int i = 0; i < size; i++)
		v |= (uint32_t)p[i] << (8 * i);
	return v;
}

uint64_t nm_bar_size(struct nm_device *dev, unsigned int bar)
{
	if (bar == dev->exi_bar)
		return bar == NM_NO_BAR ? 0 : EXI_BAR_BYTES;
	if (bar == dev->apb_bar)
		return dev->chip->apb_bytes;
	return bar == V3_BAR_DRAM ? dev->dram_dist * dev->chip->stacks : 0;
}

static void set_bar(struct nm_device *dev, unsigned int bar, uint32_t flags)
{
	uint64_t mask = ~(nm_bar_size(dev, bar) - 1);

	put32(dev->pci.config + CFG_BAR(bar), flags);
	put32(dev->pci.writable + CFG_BAR(bar), (uint32_t)mask & ~0xfu);
	put32(dev->pci.writable + CFG_BAR(bar + 1), (uint32_t)(mask >> 32));
}

/* Silicon shows no MSI-X here: its table has no public place. */
static void set_caps(struct pci *pci, bool msix)
{
	uint8_t *c = pci->config;

	put16(c + CAP_PM, CAP_PM_ID | CAP_PCIE << 8);
	put16(c + CAP_PM + 2, CAP_PM_VERSION);
	/* No_Soft_Reset is 0: nothing is kept in D3hot. */
	put16(pci->writable + CAP_PM + PM_CONTROL, PM_STATE);

	put16(c + CAP_PCIE, CAP_PCIE_ID | (msix ? CAP_MSIX << 8 : 0));
	put16(c + CAP_PCIE + 2, PCIE_V2_ENDPOINT);
	put32(c + CAP_PCIE + 4, DEVCAP_PAYLOAD_512 | DEVCAP_ROLE_ERRORS | DEVCAP_FLR);
	put16(pci->writable + CAP_PCIE + DEVCTL, DEVCTL_WRITABLE);
	put32(c + CAP_PCIE + 0x0c, LINK_GEN5_X16);
	put16(c + CAP_PCIE + 0x12, LINK_GEN5_X16);
	put16(c + CAP_PCIE + LINK2, 0x5);

	if (!msix)
		return;
	put16(c + CAP_MSIX, CAP_MSIX_ID);
	put16(c + CAP_MSIX + MSIX_CONTROL, EXI_MSIX_VECTORS - 1);
	put16(pci->writable + CAP_MSIX + MSIX_CONTROL, MSIX_ENABLE | MSIX_MASK_ALL);
	put32(c + CAP_MSIX + 4, EXI_MSIX_TABLE | EXI_BAR);
	put32(c + CAP_MSIX + 8, EXI_MSIX_PBA | EXI_BAR);
}

void nm_pci_reset(struct nm_device *dev)
{
	struct pci *pci = &dev->pci;
	uint8_t *c = pci->config;

	pthread_mutex_lock(&pci->lock);
	memset(pci->config, 0, sizeof(pci->config));
	memset(pci->writable, 0, sizeof(pci->writable));
	put16(c + CFG_VENDOR, NEURON_PCI_VENDOR);
	put16(c + CFG_DEVICE, dev->chip->pci_device);
	put16(pci->writable + CFG_COMMAND, COMMAND_WRITABLE);
	put16(c + CFG_STATUS, STATUS_CAPS);
	c[CFG_REVISION] = dev->config.silicon ? 0 : NEURON_PCI_REV_QEMU;
	put16(c + CFG_CLASS, NEURON_PCI_CLASS);
	pci->writable[CFG_CACHE_LINE] = 0xff;
	if (dev->exi_bar != NM_NO_BAR)
		set_bar(dev, dev->exi_bar, BAR_64);
	set_bar(dev, dev->apb_bar, BAR_64 | BAR_PREFETCH);
	set_bar(dev, V3_BAR_DRAM, BAR_64 | BAR_PREFETCH);
	put16(c + CFG_SUBVENDOR, NEURON_PCI_VENDOR);
	put16(c + CFG_SUBDEVICE, dev->chip->pci_device);
	c[CFG_CAPS] = CAP_PM;
	pci->writable[CFG_INT_LINE] = 0xff;
	set_caps(pci, dev->exi_bar != NM_NO_BAR);

	atomic_store(&pci->asleep, false);
	memset(pci->msix, 0, sizeof(pci->msix));
	for (unsigned int v = 0; v < EXI_MSIX_VECTORS; v++)
		pci->msix[v][3] = MSIX_ENTRY_MASKED;
	pci->pending = 0;
	pthread_mutex_unlock(&pci->lock);
}

static uint32_t command(const struct pci *pci)
{
	return get(pci->config + CFG_COMMAND, 2);
}

static unsigned int power_state(const struct pci *pci)
{
	return pci->config[CAP_PM + PM_CONTROL] & PM_STATE;
}

bool nm_pci_bus_master(struct nm_device *dev)
{
	bool on;

	pthread_mutex_lock(&dev->pci.lock);
	on = command(&dev->pci) & COMMAND_MASTER && power_state(&dev->pci) == PM_D0;
	pthread_mutex_unlock(&dev->pci.lock);
	return on;
}

/* Vectors that are pending and may fire now; caller holds pci.lock and must fire them. */
static uint64_t take_ready(struct pci *pci)
{
	uint32_t control = get(pci->config + CAP_MSIX + MSIX_CONTROL, 2);
	uint64_t ready = 0;

	if (!(control & MSIX_ENABLE) || (control & MSIX_MASK_ALL) ||
	    !(command(pci) & COMMAND_MASTER) || power_state(pci) != PM_D0)
		return 0;
	for (unsigned int v = 0; v < EXI_MSIX_VECTORS; v++)
		if ((pci->pending >> v & 1) && !(pci->msix[v][3] & MSIX_ENTRY_MASKED))
			ready |= 1ull << v;
	pci->pending &= ~ready;
	return ready;
}

static void fire(struct nm_device *dev, uint64_t ready)
{
	for (unsigned int v = 0; ready; v++, ready >>= 1)
		if ((ready & 1) && dev->config.irq)
			dev->config.irq(dev->config.user, v);
}

void nm_msix_deliver(struct nm_device *dev, unsigned int vector)
{
	struct pci *pci = &dev->pci;
	uint64_t ready = 0;

	/* What the host will look at was written before. */
	atomic_thread_fence(memory_order_seq_cst);
	pthread_mutex_lock(&pci->lock);
	if (get(pci->config + CAP_MSIX + MSIX_CONTROL, 2) & MSIX_ENABLE) {
		pci->pending |= 1ull << vector;
		ready = take_ready(pci);
	}
	pthread_mutex_unlock(&pci->lock);
	fire(dev, ready);
}

void nm_msix_raise(struct nm_device *dev, unsigned int vector)
{
	if (vector >= EXI_MSIX_VECTORS)
		return;
	if (nm_armed(dev, NM_ARMED_IRQ | NM_ARMED_GONE) && nm_inject_takes_irq(dev, vector))
		return;
	nm_msix_deliver(dev, vector);
}

void nm_irq_flush(struct nm_device *dev)
{
	uint64_t todo = atomic_exchange(&dev->irq_todo, 0);

	for (unsigned int v = 0; todo; v++, todo >>= 1)
		if (todo & 1)
			nm_msix_raise(dev, v);
}

bool nm_msix_window_read(struct nm_device *dev, struct block *b, uint32_t offset, uint32_t *value)
{
	struct pci *pci = &dev->pci;
	bool found = true;

	(void)b;
	pthread_mutex_lock(&pci->lock);
	if (offset < EXI_MSIX_VECTORS * 16)
		*value = pci->msix[offset / 16][offset / 4 % 4];
	else if (offset == EXI_MSIX_PBA)
		*value = (uint32_t)pci->pending;
	else if (offset == EXI_MSIX_PBA + 4)
		*value = (uint32_t)(pci->pending >> 32);
	else
		found = false;
	pthread_mutex_unlock(&pci->lock);
	return found;
}

bool nm_msix_window_write(struct nm_device *dev, struct block *b, uint32_t offset, uint32_t value)
{
	struct pci *pci = &dev->pci;
	uint64_t ready;

	(void)b;
	if (offset >= EXI_MSIX_VECTORS * 16)
		return false;
	pthread_mutex_lock(&pci->lock);
	pci->msix[offset / 16][offset / 4 % 4] = offset / 4 % 4 == 3 ? value & MSIX_ENTRY_MASKED :
								       value;
	ready = take_ready(pci);
	pthread_mutex_unlock(&pci->lock);
	fire(dev, ready);
	return true;
}

static bool config_access_ok(struct nm_device *dev, uint32_t offset, unsigned int size)
{
	if ((size == 1 || size == 2 || size == 4) && offset % size == 0 && offset < NM_CONFIG_BYTES)
		return true;
	nm_guest_error(dev, GUEST_KEY(GUEST_ACCESS, size, offset & 0xffffff),
		       "configuration access at 0x%x of %u bytes: want an aligned 1, 2 or 4 below "
		       "0x%x",
		       offset, size, NM_CONFIG_BYTES);
	return false;
}

uint32_t nm_config_read(struct nm_device *dev, uint32_t offset, unsigned int size)
{
	uint32_t value;

	if (!config_access_ok(dev, offset, size) || nm_armed(dev, NM_ARMED_GONE))
		return UINT32_MAX;
	pthread_mutex_lock(&dev->pci.lock);
	value = get(dev->pci.config + offset, size);
	pthread_mutex_unlock(&dev->pci.lock);
	return value;
}

void nm_config_write(struct nm_device *dev, uint32_t offset, unsigned int size, uint32_t value)
{
	struct pci *pci = &dev->pci;
	unsigned int before, after;
	uint64_t ready;
	bool flr;

	if (!config_access_ok(dev, offset, size) || nm_armed(dev, NM_ARMED_GONE))
		return;
	/* The reset bit is the top one of its register, so it is in the last byte written. */
	flr = offset <= CAP_PCIE + DEVCTL + 1 && offset + size > CAP_PCIE + DEVCTL + 1 &&
	      (value >> (8 * (CAP_PCIE + DEVCTL + 1 - offset)) & DEVCTL_FLR >> 8);

	pthread_mutex_lock(&pci->lock);
	before = power_state(pci);
	for (unsigned int i = 0; i < size; i++) {
		uint8_t mask = pci->writable[offset + i];
		uint8_t byte = (uint8_t)(value >> (8 * i));

		pci->config[offset + i] =
			(uint8_t)((pci->config[offset + i] & ~mask) | (byte & mask));
	}
	after = power_state(pci);
	if (after != PM_D0 && after != PM_D3HOT) {
		/* D1 and D2 are not offered: the write is dropped. */
		after = before;
		pci->config[CAP_PM + PM_CONTROL] = (uint8_t)before;
	}
	atomic_store(&pci->asleep, after != PM_D0);
	ready = take_ready(pci);
	pthread_mutex_unlock(&pci->lock);
	fire(dev, ready);
	if (before != PM_D0 && after == PM_D0)
		nm_hbm_lose(dev);
	if (flr || (before != PM_D0 && after == PM_D0))
		nm_device_reset(dev);
}

void nm_enable(struct nm_device *dev)
{
	nm_config_write(dev, CFG_COMMAND, 2, COMMAND_MEMORY | COMMAND_MASTER);
	if (dev->exi_bar == NM_NO_BAR)
		return;
	for (unsigned int v = 0; v < EXI_MSIX_VECTORS; v++)
		nm_bar_write(dev, EXI_BAR, EXI_MSIX_TABLE + v * 16 + 12, 4, 0);
	nm_config_write(dev, CAP_MSIX + MSIX_CONTROL, 2, MSIX_ENABLE);
}
