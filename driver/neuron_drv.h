/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The device and its open files.
 *
 * Lock order, outermost first: neuron_device.reset_lock -> neuron_evict.queue_sem
 * -> reservations of bos -> submit locks (neuron_ctx, neuron_copy_queue) -> neuron_hbm.lock ->
 * neuron_fw.lock -> neuron_evict.lock -> spinlocks of cores and copy engines -> fence locks.
 *
 * Life: a neuron_file lives until its file is closed and its last job is done,
 * so that close() waits for nothing; it keeps the drm_device. Hardware is let
 * go in remove, whoever still has the file open: from then on queues are
 * stopped and nothing touches a register. Nor does anything while the device is
 * being reset (neuron_power.c).
 *
 * Errors: a user's mistake is a drm_dbg() and an errno, a device's mistake one
 * rate-limited line that names core, context and pid, a driver's mistake a
 * drm_WARN_ON_ONCE().
 */
#ifndef __NEURON_DRV_H__
#define __NEURON_DRV_H__

#include <linux/atomic.h>
#include <linux/kref.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include <drm/drm_device.h>
#include <drm/drm_print.h>
#include <drm/gpu_scheduler.h>

#include "drm/neuron_accel.h"
#include "neuron_compat.h"
#include "neuron_copy.h"
#include "neuron_evict.h"
#include "neuron_fw.h"
#include "neuron_gem.h"
#include "neuron_hal.h"
#include "neuron_hbm.h"
#include "neuron_health.h"
#include "neuron_irq.h"
#include "neuron_link.h"
#include "neuron_power.h"
#include "neuron_queue.h"

#define NEURON_MAJOR 1
#define NEURON_MINOR 0

/* Longest run of a launch, unless the administrator says otherwise. */
#define NEURON_TIMEOUT_MS 10000

/* Launches of a context in the driver and on the device together. */
#define NEURON_INFLIGHT_MAX 256

/* Launches of a batch; they are all in flight or none is. */
#define NEURON_BATCH_MAX 64

struct neuron_ctx;
struct neuron_dump;
struct neuron_sysfs;
struct pci_dev;

/**
 * struct neuron_regs - A mapped block of registers
 */
struct neuron_regs {
	/** @base: Mapping. */
	void __iomem *base;
	/** @bytes: Its size. */
	u32 bytes;
};

/**
 * struct neuron_core - Queues of one NeuronCore
 */
struct neuron_core {
	/** @lock: Protects all members and the queue state of each context in @ctx. */
	spinlock_t lock;
	/** @ctx: Context of each queue, NULL: free, ERR_PTR: out of use; not counted. */
	struct neuron_ctx *ctx[EXI_QUEUE_COUNT];
	/** @notify: Registers of its notification queues. */
	struct neuron_regs notify;
	/** @count: What its launches amount to; queues are not counted here. */
	struct drm_neuron_query_core count;
	/** @launched: Launches given to it and not done. */
	u32 launched;
	/** @active_since: If there are any: since when there always were; ktime_get_ns(). */
	u64 active_since;
	/** @faults: Launches that ended with each fault, by EXI_FAULT_*. */
	u64 faults[32];
	/** @timeouts: Launches that ran too long. */
	u64 timeouts;
};

/**
 * struct neuron_device - One Trainium
 */
struct neuron_device {
	/** @drm: Base. */
	struct drm_device drm;
	/** @hal: Table of this generation and revision. */
	const struct neuron_hal *hal;

	/** @exi: Registers of the execution interface. */
	struct neuron_regs exi;
	/** @misc: Mailbox registers. */
	struct neuron_regs misc;
	/** @reset: Reset register of a virtual device. */
	struct neuron_regs reset;

	/** @exec_version: Execution interface, major << 16 | minor. */
	u32 exec_version;
	/** @cores: NeuronCores. */
	u32 cores;
	/** @queues: Queues a core. */
	u32 queues;
	/** @sbuf_bytes: SBUF bytes a partition for programs. */
	u32 sbuf_bytes;
	/** @psum_bytes: PSUM bytes a partition. */
	u32 psum_bytes;
	/** @serial: Serial number. */
	u64 serial;
	/** @link: Neighbour devices. */
	struct neuron_link link;

	/** @core: NeuronCores. */
	struct neuron_core core[NEURON_CORES_MAX];
	/** @fw: Mailbox. */
	struct neuron_fw fw;
	/** @hbm: Device memory. */
	struct neuron_hbm hbm;
	/** @evict: Who can make room in it. */
	struct neuron_evict evict;
	/** @gem: What buffers have mapped. */
	struct neuron_gem gem;
	/** @copy: Copy engines. */
	struct neuron_copy copy;
	/** @irq: Interrupt vectors. */
	struct neuron_irq irq;
	/** @health: What no interrupt tells. */
	struct neuron_health health;

	/** @reset_lock: Serialises starting and stopping of hardware queues. Protects @power. */
	struct mutex reset_lock;
	/** @power: What may be done with the hardware. */
	enum neuron_power power;
	/** @power_wait: For those who wait until @power is not NEURON_DOWN. */
	wait_queue_head_t power_wait;
	/** @sysfs: Tree for monitoring tools. */
	struct neuron_sysfs *sysfs;
	/** @resets: Times that it was started again after a reset. */
	u32 resets;
	/** @resets_failed: Times that it did not start. */
	u32 resets_failed;
	/** @dump: State for a devcoredump. */
	struct neuron_dump *dump;
	/** @sleep_buf: Way of HBM contents to host memory and back while the system sleeps. */
	void *sleep_buf;
	/** @sleep_dma: Bus address of it. */
	dma_addr_t sleep_dma;
	/** @recover_work: Resets the device. */
	struct work_struct recover_work;
	/** @submit_wq: run_job and free_job of all schedulers. */
	struct workqueue_struct *submit_wq;
	/** @timeout_wq: Ordered: two time-outs never act at once. */
	struct workqueue_struct *timeout_wq;

	/** @program_id: Last program id given out; ids are never used twice. */
	atomic64_t program_id;
	/** @owner: Last owner tag given out. */
	atomic_t owner;
};

/**
 * struct neuron_file - An open file and what belongs to it
 *
 * Counted: the open file, each context, bo, program and copy job hold one.
 */
struct neuron_file {
	/** @ref: References. */
	struct kref ref;
	/** @ndev: Device, counted. */
	struct neuron_device *ndev;
	/** @client_id: DRM's name of the file, for trace events. */
	u64 client_id;
	/** @memcg: Pays for host memory that others' needs make of its HBM; counted or NULL. */
	struct mem_cgroup *memcg;
	/** @owner: Tag that keeps the device from mixing files. */
	u32 owner;
	/** @closed: The file is closed; nothing of it starts any more. */
	bool closed;
	/** @ctxs: Contexts by id; the entry holds a reference. */
	struct xarray ctxs;
	/** @progs: Programs by id; the entry holds a reference. */
	struct xarray progs;
	/** @copy: Queue of copies that the user asked for. */
	struct neuron_copy_queue copy;
	/** @scrub: Queue of scrubs of its new buffers. */
	struct neuron_copy_queue scrub;
	/** @hbm_bytes: HBM of its bos and programs. */
	atomic64_t hbm_bytes;
	/** @prog_bytes: Part of @hbm_bytes of its programs. */
	atomic64_t prog_bytes;
	/** @host_bytes: Host memory of its bos. */
	atomic64_t host_bytes;
	/** @evicted_bytes: Part of @host_bytes that belongs into HBM. */
	atomic64_t evicted_bytes;
	/** @const_bytes: Part of @prog_bytes that is constants. */
	atomic64_t const_bytes;
	/** @core_ns: Time that its launches ran on cores. */
	atomic64_t core_ns;
	/** @ns_of_core: The same, of each core. */
	atomic64_t ns_of_core[NEURON_CORES_MAX];
	/** @copy_ns: Time that its copies took. */
	atomic64_t copy_ns;
	/** @launches: Launches completed without fault. */
	atomic64_t launches;
	/** @free_work: Runs when @ref is 0. */
	struct work_struct free_work;
};

/* Runs what may not run where the last reference was dropped. */
extern struct workqueue_struct *neuron_free_wq;

static inline struct neuron_device *to_neuron_device(struct drm_device *drm)
{
	return container_of(drm, struct neuron_device, drm);
}

u32 neuron_reg_read(const struct neuron_regs *regs, u32 offset);
void neuron_reg_write(const struct neuron_regs *regs, u32 offset, u32 value);

int neuron_array_get(struct drm_device *drm, const struct drm_neuron_array *array, size_t min_size,
		     size_t size, u32 max, void **out);

struct neuron_file *neuron_file_get(struct neuron_file *nfile);
void neuron_file_put(struct neuron_file *nfile);

int neuron_device_init(struct neuron_device *ndev);
void neuron_device_settle(struct neuron_device *ndev);
unsigned int neuron_timeout_ms(void);

extern const struct drm_driver neuron_drm_driver;
extern struct pci_driver neuron_pci_driver;

struct neuron_device *neuron_pci_device(struct device *dev);

void neuron_show_fdinfo(struct drm_printer *p, struct drm_file *file);
#ifdef CONFIG_DEBUG_FS
void neuron_debugfs_init(struct neuron_device *ndev);
#else
static inline void neuron_debugfs_init(struct neuron_device *ndev)
{
}
#endif

#endif /* __NEURON_DRV_H__ */
