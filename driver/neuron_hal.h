/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What differs between generations and revisions, as constant tables. A new
 * map is a new neuron_hal_*.c; nothing else includes an address map.
 */
#ifndef __NEURON_HAL_H__
#define __NEURON_HAL_H__

#include <linux/bits.h>
#include <linux/types.h>

struct neuron_device;
struct pci_dev;

#define NEURON_CORES_MAX	8
#define NEURON_STACKS_MAX	4
#define NEURON_COPY_ENGINES_MAX 4

struct neuron_hal;

/**
 * struct neuron_hal_ops - Address arithmetic and procedures of a generation
 */
struct neuron_hal_ops {
	/** @hbm_addr: Device address of the first byte of an HBM stack. */
	u64 (*hbm_addr)(unsigned int stack);
	/** @hbm_window: Offset of a stack in the DRAM BAR of @bar_bytes. */
	u64 (*hbm_window)(const struct neuron_hal *hal, unsigned int stack, u64 bar_bytes);
	/** @udma: Offset of a UDMA engine's registers in the APB BAR. */
	u32 (*udma)(unsigned int engine);
	/** @core_notify: Offset of a core's notification queues in the APB BAR. */
	u32 (*core_notify)(unsigned int core);
	/** @reset: Bring the whole device to its reset state; sleeps. 0, -ETIMEDOUT, -ENODEV. */
	int (*reset)(struct neuron_device *ndev);
};

/**
 * struct neuron_hal - One row per generation and revision
 */
struct neuron_hal {
	/** @name: For messages. */
	const char *name;
	/** @fw_name: Image of the management firmware; NULL: none can be loaded. */
	const char *fw_name;
	/** @ops: Procedures. */
	const struct neuron_hal_ops *ops;
	/** @instance: Kind of server that it is sold in. */
	const char *instance;
	/** @product: Name it is sold under. */
	const char *product;
	/** @arch: NEURON_ARCH_*. */
	u32 arch;
	/** @quirks: NEURON_QUIRK_*. */
	u32 quirks;
#define NEURON_QUIRK_WINDOW_BY_SIZE BIT(0) /* distance of stacks in the DRAM BAR is its size / 4 */
#define NEURON_QUIRK_NO_EXEC	    BIT(1) /* no BAR with the execution interface */
	/** @apb_bar: Registers. */
	u8 apb_bar;
	/** @dram_bar: Window on HBM. */
	u8 dram_bar;
	/** @exi_bar: Execution interface. */
	u8 exi_bar;
	/** @dma_bits: Bus address bits that the host window passes. */
	u8 dma_bits;
	/** @host_base: Device address of bus address 0. */
	u64 host_base;
	/** @neighbour: Device address of the first window on a neighbour device. */
	u64 neighbour;
	/** @neighbour_dist: From one such window to the next, and size of each. */
	u64 neighbour_dist;
	/** @fw_carveout: Bytes at the bottom of each stack that belong to the firmware. */
	u64 fw_carveout;
	/** @apb_bytes: Least size of the APB BAR. */
	u64 apb_bytes;
	/** @misc_ram: Offset of the mailbox registers in the APB BAR. */
	u32 misc_ram;
	/** @misc_ram_addr: The same as a device address. */
	u64 misc_ram_addr;
	/** @misc_ram_bytes: Their size. */
	u32 misc_ram_bytes;
	/** @registers_api: API version of firmware that takes requests in them; 0: none does. */
	u32 registers_api;
	/** @reset_reg: Offset in the APB BAR of the reset register of virtual devices. */
	u32 reset_reg;
	/** @reset_value: What asks it to reset the whole device. */
	u32 reset_value;
	/** @udma_bytes: Size of the registers of a host's UDMA engine and its wrapper. */
	u32 udma_bytes;
	/** @sdma_beats: Beats outstanding in the wrapper; 0: not to be set. */
	u32 sdma_beats;
	/** @reset_poll_ms: Between two looks at a device in reset. */
	u32 reset_poll_ms;
	/** @reset_max_ms: Longest reset. */
	u32 reset_max_ms;
	/** @stop_ms: Longest time that a queue takes to stop. */
	u32 stop_ms;
	/** @power_max_uw: Power of a die that firmware calls its maximum, uW; 0: not known. */
	u32 power_max_uw;
	/** @dies: Dies, each with sensors of its own. */
	u8 dies;
	/** @copy_engine: UDMA engines that copy for the host. */
	u8 copy_engine[NEURON_COPY_ENGINES_MAX];
	/** @copy_queue: Queue of each of them that the driver uses. */
	u8 copy_queue;
	/** @copy_engines: How many there are. */
	u8 copy_engines;
	/** @cores_joined: Cores of a group that user space may offer as one. */
	u8 cores_joined;
};

/*
 * What virtual devices of all generations have in common, for their tables. The
 * power is ours: there is no public figure of any chip's.
 */
#define NEURON_HAL_VIRTUAL                                                              \
	.quirks = NEURON_QUIRK_WINDOW_BY_SIZE, .exi_bar = EXI_BAR, .reset_poll_ms = 10, \
	.reset_max_ms = 30000, .power_max_uw = 250000000

/* And silicon of all generations. */
#define NEURON_HAL_SILICON                                                   \
	.quirks = NEURON_QUIRK_NO_EXEC, .reset_poll_ms = MBOX_RESET_POLL_MS, \
	.reset_max_ms = MBOX_RESET_MAX_MS

extern const struct neuron_hal neuron_hal_trn1, neuron_hal_trn1_virtual;
extern const struct neuron_hal neuron_hal_inf2, neuron_hal_inf2_virtual;
extern const struct neuron_hal neuron_hal_trn2, neuron_hal_trn2_virtual;
extern const struct neuron_hal neuron_hal_trn3, neuron_hal_trn3_virtual;

const struct neuron_hal *neuron_hal_find(const struct pci_dev *pdev);
int neuron_hal_reset_virtual(struct neuron_device *ndev);
int neuron_hal_reset_silicon(struct neuron_device *ndev);
u64 neuron_hal_neighbour_addr(const struct neuron_hal *hal, unsigned int window, u64 addr);

/**
 * neuron_hal_dma_addr - Device address of what a buffer is mapped to
 * @hal: table of the device
 * @addr: bus address, or one behind a neighbour window (neuron_link_addr())
 *
 * Return: the device address.
 */
static inline u64 neuron_hal_dma_addr(const struct neuron_hal *hal, dma_addr_t addr)
{
	return addr >= hal->neighbour ? addr : hal->host_base | addr;
}

#endif /* __NEURON_HAL_H__ */
