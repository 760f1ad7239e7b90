// SPDX-License-Identifier: GPL-2.0-only
/* Module, DRM driver, open files; see neuron_drv.h for the rules of this folder. */

#include <linux/memcontrol.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include <drm/drm_accel.h>
#include <drm/drm_drv.h>
#include <drm/drm_file.h>
#include <drm/drm_gem.h>
#include <drm/drm_ioctl.h>
#include <drm/drm_managed.h>

#include "neuron_copy.h"
#include "neuron_ctx.h"
#include "neuron_drv.h"
#include "neuron_dump.h"
#include "neuron_gem.h"
#include "neuron_prime.h"
#include "neuron_prog.h"
#include "neuron_sched.h"
#include "neuron_sysfs.h"
#include "neuron_stream.h"
#include "neuron_user.h"

static unsigned int timeout_ms = NEURON_TIMEOUT_MS;
module_param(timeout_ms, uint, 0644);
MODULE_PARM_DESC(timeout_ms, "Longest run of a launch, ms; 0: no limit (default 10000)");

struct workqueue_struct *neuron_free_wq;

/* Open files and what outlived them; the module stays until there are none. */
static atomic_t neuron_files = ATOMIC_INIT(0);
static DECLARE_WAIT_QUEUE_HEAD(neuron_files_wait);

/**
 * neuron_timeout_ms - Limit for new contexts
 *
 * Return: ms, 0: none.
 */
unsigned int neuron_timeout_ms(void)
{
	return min(READ_ONCE(timeout_ms), (unsigned int)INT_MAX / 2);
}

/* --- arrays of the user -------------------------------------------------- */

/**
 * neuron_array_get - Copy an array of the user
 * @drm: device, for messages
 * @array: where it is
 * @min_size: size of an element in the first version of the interface
 * @size: size of an element here
 * @max: most elements
 * @out: out: the elements, zero-extended, to be freed by kvfree(); NULL for none
 *
 * Return: 0, -EINVAL stride or count, -E2BIG an element has something that this
 * driver does not know, -EFAULT, -ENOMEM.
 */
int neuron_array_get(struct drm_device *drm, const struct drm_neuron_array *array, size_t min_size,
		     size_t size, u32 max, void **out)
{
	const void __user *from = u64_to_user_ptr(array->ptr);
	void *to;
	int ret = 0;
	u32 i;

	*out = NULL;
	if (!array->count)
		return 0;
	if (array->stride < min_size || array->count > max) {
		drm_dbg(drm, "array: stride %u, at least %zu; count %u, at most %u\n",
			array->stride, min_size, array->count, max);
		return -EINVAL;
	}
	/* All of an element is looked at: that must not take for ever. */
	if (array->stride > SZ_4K) {
		drm_dbg(drm, "array: stride %u, at most %u\n", array->stride, SZ_4K);
		return -E2BIG;
	}
	to = kvcalloc(array->count, size, GFP_KERNEL);
	if (!to)
		return -ENOMEM;
	if (array->stride == size) {
		if (copy_from_user(to, from, array->count * size))
			ret = -EFAULT;
	} else {
		for (i = 0; i < array->count && !ret; i++)
			ret = copy_struct_from_user(to + i * size, size,
						    from + (u64)i * array->stride, array->stride);
	}
	if (ret) {
		kvfree(to);
		return ret;
	}
	*out = to;
	return 0;
}

/* --- query --------------------------------------------------------------- */

union query_block {
	struct drm_neuron_query_device device;
	struct drm_neuron_query_memory memory;
	struct drm_neuron_query_firmware firmware;
	struct drm_neuron_query_core core;
	struct drm_neuron_query_usage usage;
	struct drm_neuron_query_topology topology;
};

static u32 query_device(struct neuron_device *ndev, struct drm_neuron_query_device *device)
{
	struct pci_dev *pdev = to_pci_dev(ndev->drm.dev);

	*device = (struct drm_neuron_query_device){
		.arch = ndev->hal->arch,
		.cores = ndev->cores,
		.exec_version = ndev->exec_version,
		.pci_device = pdev->device,
		.sbuf_bytes = ndev->sbuf_bytes,
		.psum_bytes = ndev->psum_bytes,
		.serial = ndev->serial,
		.slots_max = EXI_SLOTS_MAX,
		.inflight_max = NEURON_INFLIGHT_MAX,
		.pci_revision = pdev->revision,
		.batch_max = NEURON_BATCH_MAX,
	};
	return sizeof(*device);
}

static u32 query_memory(struct neuron_file *nfile, struct drm_neuron_query_memory *memory)
{
	*memory = (struct drm_neuron_query_memory){
		.hbm_bytes = nfile->ndev->hbm.total,
		.hbm_used = neuron_hbm_used(&nfile->ndev->hbm),
		.hbm_own = atomic64_read(&nfile->hbm_bytes),
		.host_own = atomic64_read(&nfile->host_bytes),
		.granule = NEURON_HBM_GRANULE,
		.evicted_own = atomic64_read(&nfile->evicted_bytes),
	};
	return sizeof(*memory);
}

static u32 query_firmware(struct neuron_device *ndev, struct drm_neuron_query_firmware *firmware)
{
	struct neuron_fw_state state = {};
	int idx;

	if (drm_dev_enter(&ndev->drm, &idx)) {
		neuron_fw_read_state(ndev, &state);
		drm_dev_exit(idx);
	}
	*firmware = (struct drm_neuron_query_firmware){
		.api_version = ndev->fw.api_version,
		.version = state.version,
		.flags = state.loaded ? DRM_NEURON_FIRMWARE_LOADED : 0,
		.starts = state.starts,
	};
	return sizeof(*firmware);
}

static u32 query_core(struct neuron_device *ndev, u32 index, struct drm_neuron_query_core *core)
{
	struct neuron_core *c = &ndev->core[index];
	unsigned int i;

	guard(spinlock_irqsave)(&c->lock);
	*core = c->count;
	if (c->launched)
		core->active_ns += ktime_get_ns() - c->active_since;
	for (i = 0; i < ndev->queues; i++) {
		core->queues += c->ctx[i] != ERR_PTR(-EIO);
		core->queues_used += !IS_ERR_OR_NULL(c->ctx[i]);
	}
	return sizeof(*core);
}

static u32 query_usage(struct neuron_file *nfile, struct drm_neuron_query_usage *usage)
{
	*usage = (struct drm_neuron_query_usage){
		.core_ns = atomic64_read(&nfile->core_ns),
		.copy_ns = atomic64_read(&nfile->copy_ns),
		.launches = atomic64_read(&nfile->launches),
	};
	return sizeof(*usage);
}

static int neuron_ioctl_query(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct neuron_file *nfile = file->driver_priv;
	struct drm_neuron_query *args = data;
	union query_block block;
	u32 size, user = args->size;

	if (args->pad || args->index >= nfile->ndev->cores ||
	    (args->index && args->block != DRM_NEURON_QUERY_CORE)) {
		drm_dbg(drm, "query: block %u, index %u, %u cores, padding 0x%x\n", args->block,
			args->index, nfile->ndev->cores, args->pad);
		return -EINVAL;
	}
	switch (args->block) {
	case DRM_NEURON_QUERY_DEVICE:
		size = query_device(nfile->ndev, &block.device);
		break;
	case DRM_NEURON_QUERY_MEMORY:
		size = query_memory(nfile, &block.memory);
		break;
	case DRM_NEURON_QUERY_FIRMWARE:
		size = query_firmware(nfile->ndev, &block.firmware);
		break;
	case DRM_NEURON_QUERY_CORE:
		size = query_core(nfile->ndev, args->index, &block.core);
		break;
	case DRM_NEURON_QUERY_USAGE:
		size = query_usage(nfile, &block.usage);
		break;
	case DRM_NEURON_QUERY_TOPOLOGY:
		neuron_link_query(nfile->ndev, &block.topology);
		size = sizeof(block.topology);
		break;
	default:
		drm_dbg(drm, "query: unknown block %u\n", args->block);
		return -EINVAL;
	}
	args->size = size;
	if (!user)
		return 0;
	if (copy_to_user(u64_to_user_ptr(args->ptr), &block, min(user, size)))
		return -EFAULT;
	if (user > size && clear_user(u64_to_user_ptr(args->ptr) + size, user - size))
		return -EFAULT;
	return 0;
}

/* --- files --------------------------------------------------------------- */

/**
 * neuron_file_get - Take a reference
 * @nfile: the file
 *
 * Return: @nfile.
 */
struct neuron_file *neuron_file_get(struct neuron_file *nfile)
{
	kref_get(&nfile->ref);
	return nfile;
}

static void neuron_file_free_work(struct work_struct *work)
{
	struct neuron_file *nfile = container_of(work, struct neuron_file, free_work);
	struct neuron_device *ndev = nfile->ndev;

	neuron_copy_queue_fini(&nfile->scrub);
	neuron_copy_queue_fini(&nfile->copy);
	xa_destroy(&nfile->progs);
	xa_destroy(&nfile->ctxs);
	mem_cgroup_put(nfile->memcg);
	kfree(nfile);
	neuron_sleep_put(ndev);
	drm_dev_put(&ndev->drm);
	if (atomic_dec_and_test(&neuron_files))
		wake_up(&neuron_files_wait);
}

static void neuron_file_release(struct kref *ref)
{
	struct neuron_file *nfile = container_of(ref, struct neuron_file, ref);

	/* The last job is freed by a scheduler that the entities belong to. */
	queue_work(neuron_free_wq, &nfile->free_work);
}

/**
 * neuron_file_put - Drop a reference
 * @nfile: the file
 */
void neuron_file_put(struct neuron_file *nfile)
{
	kref_put(&nfile->ref, neuron_file_release);
}

static int neuron_open(struct drm_device *drm, struct drm_file *file)
{
	struct neuron_device *ndev = to_neuron_device(drm);
	struct neuron_file *nfile;
	int ret;

	nfile = kzalloc_obj(*nfile, GFP_KERNEL_ACCOUNT);
	if (!nfile)
		return -ENOMEM;
	kref_init(&nfile->ref);
	nfile->ndev = ndev;
	nfile->client_id = file->client_id;
	nfile->owner = atomic_inc_return(&ndev->owner);
	xa_init_flags(&nfile->ctxs, XA_FLAGS_ALLOC1);
	xa_init_flags(&nfile->progs, XA_FLAGS_ALLOC1);
	INIT_WORK(&nfile->free_work, neuron_file_free_work);
	ret = neuron_sleep_get(ndev);
	if (ret)
		goto err_file;
	ret = neuron_copy_queue_init(ndev, &nfile->copy);
	if (ret)
		goto err_sleep;
	ret = neuron_copy_queue_init(ndev, &nfile->scrub);
	if (ret)
		goto err_copy;
	nfile->memcg = get_mem_cgroup_from_mm(current->mm);
	drm_dev_get(drm);
	atomic_inc(&neuron_files);
	neuron_health_open(ndev);
	file->driver_priv = nfile;
	return 0;

err_copy:
	neuron_copy_queue_fini(&nfile->copy);
err_sleep:
	neuron_sleep_put(ndev);
err_file:
	kfree(nfile);
	return ret;
}

/* Waits for nothing: what is in flight keeps what it needs. */
static void neuron_postclose(struct drm_device *drm, struct drm_file *file)
{
	struct neuron_file *nfile = file->driver_priv;
	struct neuron_prog *prog;
	struct neuron_ctx *ctx;
	unsigned long id;

	neuron_health_close(nfile->ndev);
	WRITE_ONCE(nfile->closed, true);
	xa_for_each(&nfile->ctxs, id, ctx) {
		xa_erase(&nfile->ctxs, id);
		neuron_ctx_destroy(ctx);
	}
	xa_for_each(&nfile->progs, id, prog) {
		xa_erase(&nfile->progs, id);
		neuron_prog_put(prog);
	}
	neuron_file_put(nfile);
}

/* --- driver -------------------------------------------------------------- */

static const struct drm_ioctl_desc neuron_ioctls[] = {
	DRM_IOCTL_DEF_DRV(NEURON_QUERY, neuron_ioctl_query, 0),
	DRM_IOCTL_DEF_DRV(NEURON_BO_CREATE, neuron_ioctl_bo_create, 0),
	DRM_IOCTL_DEF_DRV(NEURON_BO_INFO, neuron_ioctl_bo_info, 0),
	DRM_IOCTL_DEF_DRV(NEURON_CTX_CREATE, neuron_ioctl_ctx_create, 0),
	DRM_IOCTL_DEF_DRV(NEURON_CTX_DESTROY, neuron_ioctl_ctx_destroy, 0),
	DRM_IOCTL_DEF_DRV(NEURON_CTX_STATE, neuron_ioctl_ctx_state, 0),
	DRM_IOCTL_DEF_DRV(NEURON_PROGRAM_LOAD, neuron_ioctl_program_load, 0),
	DRM_IOCTL_DEF_DRV(NEURON_PROGRAM_UNLOAD, neuron_ioctl_program_unload, 0),
	DRM_IOCTL_DEF_DRV(NEURON_SUBMIT, neuron_ioctl_submit, 0),
	DRM_IOCTL_DEF_DRV(NEURON_COPY, neuron_ioctl_copy, 0),
	DRM_IOCTL_DEF_DRV(NEURON_SUBMIT_BATCH, neuron_ioctl_submit_batch, 0),
	DRM_IOCTL_DEF_DRV(NEURON_BO_PIN, neuron_ioctl_bo_pin, 0),
	DRM_IOCTL_DEF_DRV(NEURON_STREAM_OPEN, neuron_ioctl_stream_open, 0),
};

/*
 * Files of an accel node have no master, but the core asks only for render nodes
 * whether an ioctl needs one; GET_UNIQUE, for one, then follows a NULL pointer.
 */
static bool ioctl_is_refused(unsigned int cmd)
{
	unsigned int flags;

	return drm_ioctl_flags(DRM_IOCTL_NR(cmd), &flags) && !(flags & DRM_RENDER_ALLOW);
}

/*
 * The core zero-extends a structure of an older program. A newer one may be
 * longer, but must not ask for what this driver does not know.
 */
static long neuron_ioctl(struct file *filp, unsigned int cmd, unsigned long arg)
{
	unsigned int nr = DRM_IOCTL_NR(cmd) - DRM_COMMAND_BASE;
	size_t known, size = _IOC_SIZE(cmd);
	int ret;

	if (ioctl_is_refused(cmd))
		return -EACCES;
	if (_IOC_TYPE(cmd) == DRM_IOCTL_BASE && nr < ARRAY_SIZE(neuron_ioctls)) {
		known = _IOC_SIZE(neuron_ioctls[nr].cmd);
		if (size > known) {
			ret = check_zeroed_user((void __user *)(arg + known), size - known);
			if (ret <= 0)
				return ret ?: -E2BIG;
		}
	}
	return drm_ioctl(filp, cmd, arg);
}

#ifdef CONFIG_COMPAT
static long neuron_compat_ioctl(struct file *filp, unsigned int cmd, unsigned long arg)
{
	if (ioctl_is_refused(cmd))
		return -EACCES;
	if (DRM_IOCTL_NR(cmd) < DRM_COMMAND_BASE || DRM_IOCTL_NR(cmd) >= DRM_COMMAND_END)
		return drm_compat_ioctl(filp, cmd, arg);
	/* The structures are the same for 32-bit programs. */
	return neuron_ioctl(filp, cmd, (unsigned long)compat_ptr(arg));
}
#else
#define neuron_compat_ioctl NULL
#endif

static const struct file_operations neuron_fops = {
	.owner = THIS_MODULE,
	.open = accel_open,
	.release = drm_release,
	.unlocked_ioctl = neuron_ioctl,
	.compat_ioctl = neuron_compat_ioctl,
	.poll = drm_poll,
	.read = drm_read,
	.llseek = noop_llseek,
	.mmap = drm_gem_mmap,
	.show_fdinfo = drm_show_fdinfo,
	.fop_flags = FOP_UNSIGNED_OFFSET,
};

const struct drm_driver neuron_drm_driver = {
	.driver_features = DRIVER_COMPUTE_ACCEL | DRIVER_GEM | DRIVER_SYNCOBJ |
			   DRIVER_SYNCOBJ_TIMELINE,
	.open = neuron_open,
	.postclose = neuron_postclose,
	.gem_prime_import = neuron_prime_import,
	.show_fdinfo = neuron_show_fdinfo,
	.ioctls = neuron_ioctls,
	.num_ioctls = ARRAY_SIZE(neuron_ioctls),
	.fops = &neuron_fops,
	.name = "neuron",
	.desc = "AWS Trainium and Inferentia",
#ifdef NEURON_HAVE_DRIVER_DATE
	.date = "20261201",
#endif
	.major = NEURON_MAJOR,
	.minor = NEURON_MINOR,
};

static void neuron_device_fini_wq(struct drm_device *drm, void *data)
{
	struct workqueue_struct *wq = data;

	destroy_workqueue(wq);
}

static void neuron_device_fini_hbm(struct drm_device *drm, void *data)
{
	u64 lost = neuron_hbm_fini(&to_neuron_device(drm)->hbm);

	if (lost)
		drm_err(drm, "0x%llx bytes of HBM leaked\n", lost);
}

/**
 * neuron_device_init - Make what does not need hardware and outlives it
 * @ndev: device with &neuron_device.hal
 *
 * Return: 0 or -errno.
 */
int neuron_device_init(struct neuron_device *ndev)
{
	struct drm_device *drm = &ndev->drm;
	unsigned int i;
	int ret;

	for (i = 0; i < NEURON_CORES_MAX; i++)
		spin_lock_init(&ndev->core[i].lock);
	neuron_health_init(ndev);
	ret = drmm_mutex_init(drm, &ndev->reset_lock);
	if (ret)
		return ret;
	init_waitqueue_head(&ndev->power_wait);
	INIT_WORK(&ndev->recover_work, neuron_power_recover_work);
	neuron_hbm_init(&ndev->hbm);
	neuron_evict_init(ndev);
	ret = neuron_gem_init(ndev);
	if (ret)
		return ret;
	ret = drmm_add_action_or_reset(drm, neuron_device_fini_hbm, NULL);
	if (ret)
		return ret;

	ndev->submit_wq = alloc_workqueue("neuron-submit", WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	if (!ndev->submit_wq)
		return -ENOMEM;
	ret = drmm_add_action_or_reset(drm, neuron_device_fini_wq, ndev->submit_wq);
	if (ret)
		return ret;
	ndev->timeout_wq = alloc_ordered_workqueue("neuron-timeout", WQ_MEM_RECLAIM);
	if (!ndev->timeout_wq)
		return -ENOMEM;
	ret = drmm_add_action_or_reset(drm, neuron_device_fini_wq, ndev->timeout_wq);
	if (ret)
		return ret;
	ret = neuron_dump_init(ndev);
	if (ret)
		return ret;
	return neuron_copy_init(ndev);
}

/**
 * neuron_device_settle - Wait for clean-up that is on its way
 * @ndev: device
 *
 * What users closed, destroyed or have seen finish is freed by workers. Whoever
 * runs out of something asks again after this. Does not wait for launches.
 */
void neuron_device_settle(struct neuron_device *ndev)
{
	flush_workqueue(neuron_free_wq); /* stops contexts */
	flush_workqueue(ndev->submit_wq); /* frees their jobs */
	flush_workqueue(neuron_free_wq); /* frees contexts */
}

static int __init neuron_init(void)
{
	int ret;

	neuron_free_wq = alloc_workqueue("neuron-free", WQ_UNBOUND, 0);
	if (!neuron_free_wq)
		return -ENOMEM;
	neuron_sysfs_class_init();
	ret = pci_register_driver(&neuron_pci_driver);
	if (ret) {
		neuron_sysfs_class_fini();
		destroy_workqueue(neuron_free_wq);
	}
	return ret;
}

static void __exit neuron_exit(void)
{
	pci_unregister_driver(&neuron_pci_driver);
	neuron_sysfs_class_fini();
	/* Closed files whose jobs wait for fences of others are still there. */
	wait_event(neuron_files_wait, !atomic_read(&neuron_files));
	destroy_workqueue(neuron_free_wq);
	/* Signalled fences outlive us; nobody may be inside their operations. */
	synchronize_rcu();
}

module_init(neuron_init);
module_exit(neuron_exit);

MODULE_DESCRIPTION("AWS Trainium and Inferentia accelerators");
MODULE_AUTHOR("The neuron driver authors");
MODULE_LICENSE("GPL");
