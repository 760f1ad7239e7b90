// SPDX-License-Identifier: GPL-2.0-only
/* The PCI device: BARs, probe, remove. */

#include <linux/bitfield.h>
#include <linux/dma-mapping.h>
#include <linux/io.h>
#include <linux/pci.h>

#include <drm/drm_drv.h>
#include <drm/drm_managed.h>
#include <kunit/static_stub.h>

#include "neuron_copy.h"
#include "neuron_ctx.h"
#include "neuron_drv.h"
#include "neuron_dump.h"
#include "neuron_fw.h"
#include "neuron_hwmon.h"
#include "neuron_pci.h"
#include "neuron_sysfs.h"

/**
 * neuron_reg_read - Read a register
 * @regs: block
 * @offset: byte in it
 *
 * Return: the value, all ones when the device is gone.
 */
u32 neuron_reg_read(const struct neuron_regs *regs, u32 offset)
{
	KUNIT_STATIC_STUB_REDIRECT(neuron_reg_read, regs, offset);
	return readl(regs->base + offset);
}

/**
 * neuron_reg_write - Write a register, after all earlier writes to memory
 * @regs: block
 * @offset: byte in it
 * @value: the value
 */
void neuron_reg_write(const struct neuron_regs *regs, u32 offset, u32 value)
{
	KUNIT_STATIC_STUB_REDIRECT(neuron_reg_write, regs, offset, value);
	writel(value, regs->base + offset);
}

/* Map part of a BAR. */
static int pci_map_regs(struct neuron_device *ndev, unsigned int bar, u64 offset, u32 bytes,
			struct neuron_regs *regs)
{
	struct pci_dev *pdev = to_pci_dev(ndev->drm.dev);

	regs->base = devm_ioremap(&pdev->dev, pci_resource_start(pdev, bar) + offset, bytes);
	regs->bytes = bytes;
	return regs->base ? 0 : -ENOMEM;
}

static int pci_init_bars(struct neuron_device *ndev)
{
	struct pci_dev *pdev = to_pci_dev(ndev->drm.dev);
	const struct neuron_hal *hal = ndev->hal;
	const struct {
		u8 bar;
		u64 bytes;
	} need[] = {
		{ hal->exi_bar, EXI_BAR_BYTES },
		{ hal->apb_bar, hal->apb_bytes },
		{ hal->dram_bar, 0 },
	};
	struct neuron_copy_engine *engine;
	struct neuron_regs *regs;
	unsigned int i;
	int ret;

	for (i = 0; i < ARRAY_SIZE(need); i++) {
		u64 have = pci_resource_len(pdev, need[i].bar);

		if (!have || have < need[i].bytes)
			return dev_err_probe(&pdev->dev, -ENODEV,
					     "BAR %u has 0x%llx bytes, need 0x%llx\n", need[i].bar,
					     have, need[i].bytes);
		ret = pcim_request_region(pdev, need[i].bar, "neuron");
		if (ret)
			return dev_err_probe(&pdev->dev, ret, "BAR %u is taken\n", need[i].bar);
	}

	ret = pci_map_regs(ndev, hal->exi_bar, 0, EXI_BAR_BYTES, &ndev->exi);
	if (ret)
		return ret;
	ret = pci_map_regs(ndev, hal->apb_bar, hal->misc_ram, hal->misc_ram_bytes, &ndev->misc);
	if (ret)
		return ret;
	ret = pci_map_regs(ndev, hal->apb_bar, hal->reset_reg, sizeof(u32), &ndev->reset);
	if (ret)
		return ret;
	for (i = 0; i < hal->copy_engines; i++) {
		engine = &ndev->copy.engine[i];
		regs = devm_kzalloc(&pdev->dev, sizeof(*regs), GFP_KERNEL);
		if (!regs)
			return -ENOMEM;
		engine->regs = regs;
		ret = pci_map_regs(ndev, hal->apb_bar, hal->ops->udma(hal->copy_engine[i]),
				   hal->udma_bytes, regs);
		if (ret)
			return ret;
	}
	return 0;
}

static int pci_init_exi(struct neuron_device *ndev)
{
	struct drm_device *drm = &ndev->drm;
	u32 magic = neuron_reg_read(&ndev->exi, EXI_MAGIC);
	u32 arch;

	if (magic != EXI_MAGIC_VALUE) {
		drm_err(drm, "no execution interface: magic is 0x%x, not 0x%x\n", magic,
			EXI_MAGIC_VALUE);
		return -ENODEV;
	}
	ndev->exec_version = neuron_reg_read(&ndev->exi, EXI_VERSION);
	if (FIELD_GET(EXI_VERSION_MAJOR_MASK, ndev->exec_version) != EXI_VERSION_MAJOR) {
		drm_err(drm, "execution interface %u.%u, this driver knows %u.%u\n",
			FIELD_GET(EXI_VERSION_MAJOR_MASK, ndev->exec_version),
			FIELD_GET(EXI_VERSION_MINOR_MASK, ndev->exec_version), EXI_VERSION_MAJOR,
			EXI_VERSION_MINOR);
		return -ENODEV;
	}
	arch = neuron_reg_read(&ndev->exi, EXI_ARCH);
	ndev->cores = neuron_reg_read(&ndev->exi, EXI_CORES);
	ndev->queues = neuron_reg_read(&ndev->exi, EXI_QUEUES);
	if (arch != ndev->hal->arch || !ndev->cores || ndev->cores > NEURON_CORES_MAX ||
	    !ndev->queues || ndev->queues > EXI_QUEUE_COUNT) {
		drm_err(drm, "device says generation %u, %u cores, %u queues a core\n", arch,
			ndev->cores, ndev->queues);
		return -ENODEV;
	}
	ndev->sbuf_bytes = neuron_reg_read(&ndev->exi, EXI_SBUF_BYTES);
	ndev->psum_bytes = neuron_reg_read(&ndev->exi, EXI_PSUM_BYTES);
	return 0;
}

static int pci_init_notify(struct neuron_device *ndev)
{
	unsigned int i;
	int ret;

	for (i = 0; i < ndev->cores; i++) {
		ret = pci_map_regs(ndev, ndev->hal->apb_bar, ndev->hal->ops->core_notify(i),
				   NQ_BLOCK_BYTES, &ndev->core[i].notify);
		if (ret)
			return ret;
	}
	return neuron_health_alloc(ndev);
}

static int pci_init_hbm(struct neuron_device *ndev)
{
	u32 i, stacks = neuron_reg_read(&ndev->exi, EXI_HBM_STACKS);
	u64 size = (u64)neuron_reg_read(&ndev->exi, EXI_HBM_MIB) * SZ_1M;
	struct pci_dev *pdev = to_pci_dev(ndev->drm.dev);
	const struct neuron_hal *hal = ndev->hal;
	u64 bar_bytes = pci_resource_len(pdev, hal->dram_bar);
	u64 window, carveout = hal->fw_carveout;
	struct neuron_hbm *hbm = &ndev->hbm;
	void __iomem *map;
	int ret;

	if (!stacks || stacks > NEURON_STACKS_MAX || size <= carveout ||
	    hal->ops->hbm_window(hal, stacks - 1, bar_bytes) + size > bar_bytes) {
		drm_err(&ndev->drm, "%u HBM stacks of 0x%llx bytes do not fit a window of 0x%llx\n",
			stacks, size, bar_bytes);
		return -ENODEV;
	}
	hbm->phys = pci_resource_start(pdev, hal->dram_bar);
	for (i = 0; i < stacks; i++) {
		window = hal->ops->hbm_window(hal, i, bar_bytes) + carveout;
		map = devm_ioremap_wc(&pdev->dev, hbm->phys + window, size - carveout);
		if (!map)
			return -ENOMEM;
		ret = neuron_hbm_add_stack(hbm, hal->ops->hbm_addr(i) + carveout, window,
					   size - carveout, map);
		if (ret)
			return ret;
	}
	return neuron_hbm_reserve_zero(hbm);
}

static void pci_stop(void *data)
{
	struct neuron_device *ndev = data;

	cancel_work_sync(&ndev->recover_work);
	neuron_power_dead(ndev);
	neuron_health_stop(ndev);
	neuron_ctx_release_all(ndev);
	neuron_evict_stop(ndev);
	neuron_gem_stop(ndev);
	neuron_dump_fini(ndev);
}

static int pci_init_dma(struct pci_dev *pdev, const struct neuron_hal *hal)
{
	int ret = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(hal->dma_bits));

	if (ret)
		ret = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(32));
	if (ret)
		return dev_err_probe(&pdev->dev, ret, "no DMA\n");
	dma_set_max_seg_size(&pdev->dev, UINT_MAX);
	pci_set_master(pdev);
	return 0;
}

/* From BARs to a device that works; what it takes is managed. */
static int pci_start(struct neuron_device *ndev)
{
	int ret;

	ret = pci_init_bars(ndev);
	if (ret)
		return ret;
	ret = pci_init_exi(ndev);
	if (ret)
		return ret;
	ret = neuron_fw_init(ndev);
	if (ret)
		return ret;
	ret = neuron_fw_find(ndev);
	if (ret)
		return ret;
	ret = pci_init_hbm(ndev);
	if (ret)
		return ret;
	ret = neuron_evict_start(ndev);
	if (ret)
		return ret;
	ret = pci_init_notify(ndev);
	if (ret)
		return ret;
	ret = neuron_power_start(ndev);
	if (ret)
		return ret;
	ret = neuron_link_init(ndev);
	if (ret)
		return ret;
	ret = neuron_irq_init(ndev);
	if (ret)
		return ret;
	ret = neuron_copy_start(ndev);
	if (ret)
		return ret;
	return devm_add_action_or_reset(ndev->drm.dev, pci_stop, ndev);
}

/**
 * neuron_pci_device - The device of a struct device
 * @dev: any device, whose driver does not change meanwhile
 *
 * Return: NULL when another driver has it.
 */
struct neuron_device *neuron_pci_device(struct device *dev)
{
	return dev->driver == &neuron_pci_driver.driver ? dev_get_drvdata(dev) : NULL;
}

static int neuron_pci_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	const struct neuron_hal *hal = neuron_hal_find(pdev);
	struct neuron_device *ndev;
	int ret;

	if (!hal)
		return -ENODEV;
	if (hal->quirks & NEURON_QUIRK_NO_EXEC)
		return dev_err_probe(&pdev->dev, -ENODEV,
				     "%s revision %u: how its cores are driven is not public\n",
				     hal->name, pdev->revision);

	ndev = devm_drm_dev_alloc(&pdev->dev, &neuron_drm_driver, struct neuron_device, drm);
	if (IS_ERR(ndev))
		return PTR_ERR(ndev);
	ndev->hal = hal;
	pci_set_drvdata(pdev, ndev);

	ret = pcim_enable_device(pdev);
	if (ret)
		return dev_err_probe(&pdev->dev, ret, "cannot enable\n");
	ret = pci_init_dma(pdev, hal);
	if (ret)
		return ret;
	ret = neuron_device_init(ndev);
	if (ret)
		return ret;
	ret = pci_start(ndev);
	if (ret)
		return ret;
	ret = drm_dev_register(&ndev->drm, 0);
	if (ret)
		return ret;
	ret = neuron_sysfs_init(ndev);
	if (ret)
		drm_warn(&ndev->drm, "no tree for monitoring tools: %d\n", ret);
	neuron_debugfs_init(ndev);
	neuron_hwmon_init(ndev);
	/* What a bus reset after an error goes back to. */
	pci_save_state(pdev);
	neuron_sleep_init(ndev);
	drm_info(&ndev->drm,
		 "%s: %u cores, %llu MiB of HBM, execution interface %u.%u, firmware %s\n",
		 hal->name, ndev->cores, ndev->hbm.total / SZ_1M,
		 FIELD_GET(EXI_VERSION_MAJOR_MASK, ndev->exec_version),
		 FIELD_GET(EXI_VERSION_MINOR_MASK, ndev->exec_version), ndev->fw.state.text);
	return 0;
}

/* Users first; pci_stop() runs next, then the mappings and vectors go. */
static void neuron_pci_remove(struct pci_dev *pdev)
{
	struct neuron_device *ndev = pci_get_drvdata(pdev);

	neuron_sleep_fini(ndev);
	/* Nobody inside waits for a device that is down. */
	neuron_power_dead(ndev);
	neuron_health_remove(ndev);
}

static void neuron_pci_shutdown(struct pci_dev *pdev)
{
	neuron_pci_remove(pdev);
	pci_stop(pci_get_drvdata(pdev));
}

static const struct pci_device_id neuron_pci_ids[] = {
	{ PCI_DEVICE(NEURON_PCI_VENDOR, NEURON_PCI_TRN1) },
	{ PCI_DEVICE(NEURON_PCI_VENDOR, NEURON_PCI_INF2) },
	{ PCI_DEVICE(NEURON_PCI_VENDOR, NEURON_PCI_TRN2) },
	{ PCI_DEVICE(NEURON_PCI_VENDOR, NEURON_PCI_TRN3_0) },
	{ PCI_DEVICE(NEURON_PCI_VENDOR, NEURON_PCI_TRN3_1) },
	{},
};
MODULE_DEVICE_TABLE(pci, neuron_pci_ids);

struct pci_driver neuron_pci_driver = {
	.name = "neuron",
	.id_table = neuron_pci_ids,
	.probe = neuron_pci_probe,
	.remove = neuron_pci_remove,
	.shutdown = neuron_pci_shutdown,
	.err_handler = &neuron_error_handlers,
	.driver.pm = pm_ptr(&neuron_pm_ops),
};
