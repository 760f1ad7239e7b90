// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the driver does while memory is short, from probe to each ioctl: a call fails with -ENOMEM
 * and has done nothing. The device has no hardware: its registers read what an idle queue's do,
 * and as the file counts as closed, copies end before they reach an engine.
 */

#include <kunit/device.h>
#include <kunit/static_stub.h>
#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/dma-buf.h>
#include <linux/fdtable.h>
#include <linux/file.h>
#include <linux/mman.h>
#include <linux/pm_runtime.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include <drm/drm_drv.h>
#include <drm/drm_file.h>
#include <drm/drm_gem.h>
#include <drm/drm_syncobj.h>

#include "../neuron_ctx.h"
#include "../neuron_drv.h"
#include "../neuron_gem.h"
#include "../neuron_prog.h"
#include "../neuron_sched.h"
#include "../neuron_stream.h"
#include "../neuron_user.h"
#include "neuron_fail.h"
#include "neuron_test.h"

#define ALLOC_HBM_BYTES ((u64)SZ_16M)

/* Of buffers. Host memory is two pages in one piece and one for which nothing else will do. */
#define ALLOC_HBM_BO_BYTES  (4 * PAGE_SIZE)
#define ALLOC_HOST_BO_BYTES (3 * PAGE_SIZE)

/* Where in the fixture's page of user memory what lies. */
#define USER_PROG   0
#define USER_SLOTS  1024
#define USER_SYNCS  2048
#define USER_OUT    2560
#define USER_LAUNCH 3072

/* What a failed call must not have changed. */
struct alloc_count {
	u64 hbm_used;
	s64 hbm, prog, host, evicted, consts;
	u32 refs, handles, ctxs, progs, queues, copies, scrubs, launches;
};

struct alloc_fixture {
	struct neuron_hal hal;
	struct device *dev;
	struct neuron_device *ndev;
	struct file *filp;
	struct drm_file *file;
	struct neuron_file *nfile;
	struct alloc_count before;
	unsigned long user;
	void *group;
	struct neuron_hbm_block page;

	/* Of a case. */
	u32 flags; /* of the buffer to make */
	u32 ctx, prog, hbm, host;
	u32 out; /* syncobj with a point for each piece of work */
	u64 point;
	u32 made;
	int fd;
	struct dma_buf *buf;
};

static u32 alloc_reg_read(const struct neuron_regs *regs, u32 offset)
{
	return EXI_Q_IDLE;
}

static void alloc_reg_write(const struct neuron_regs *regs, u32 offset, u32 value)
{
}

static void alloc_hbm_fill(struct neuron_hbm *hbm, const struct neuron_hbm_block *block,
			   const void *data, u64 size)
{
}

static struct neuron_ctx *alloc_ctx(struct alloc_fixture *f)
{
	struct neuron_ctx *ctx = xa_load(&f->nfile->ctxs, f->ctx);

	return f->ctx ? ctx : NULL;
}

static void alloc_count(struct alloc_fixture *f, struct alloc_count *count)
{
	struct neuron_file *nfile = f->nfile;
	struct neuron_ctx *ctx = alloc_ctx(f);
	unsigned long index;
	unsigned int i;
	void *entry;
	int id;

	*count = (struct alloc_count){
		.hbm_used = neuron_hbm_used(&f->ndev->hbm),
		.hbm = atomic64_read(&nfile->hbm_bytes),
		.prog = atomic64_read(&nfile->prog_bytes),
		.host = atomic64_read(&nfile->host_bytes),
		.evicted = atomic64_read(&nfile->evicted_bytes),
		.consts = atomic64_read(&nfile->const_bytes),
		.refs = kref_read(&nfile->ref),
		.copies = atomic_read(&nfile->copy.inflight.count),
		.scrubs = atomic_read(&nfile->scrub.inflight.count),
		.launches = ctx ? atomic_read(&ctx->inflight.count) : 0,
	};
	idr_for_each_entry(&f->file->object_idr, entry, id) count->handles++;
	xa_for_each(&nfile->ctxs, index, entry)
		count->ctxs++;
	xa_for_each(&nfile->progs, index, entry)
		count->progs++;
	for (i = 0; i < EXI_QUEUE_COUNT; i++)
		count->queues += !!f->ndev->core[0].ctx[i];
}

/* What workers still hold they let go of soon. */
static void alloc_expect_unchanged(struct kunit *test, void *arg)
{
	struct alloc_fixture *f = arg;
	const struct alloc_count *was = &f->before;
	struct alloc_count now;
	unsigned int i;

	for (i = 0; i < 1000; i++) {
		flush_delayed_fput();
		neuron_device_settle(f->ndev);
		alloc_count(f, &now);
		if (!memcmp(&now, was, sizeof(now)))
			return;
		usleep_range(1000, 2000);
	}
	KUNIT_EXPECT_EQ(test, now.hbm_used, was->hbm_used);
	KUNIT_EXPECT_EQ(test, now.hbm, was->hbm);
	KUNIT_EXPECT_EQ(test, now.prog, was->prog);
	KUNIT_EXPECT_EQ(test, now.host, was->host);
	KUNIT_EXPECT_EQ(test, now.evicted, was->evicted);
	KUNIT_EXPECT_EQ(test, now.consts, was->consts);
	KUNIT_EXPECT_EQ(test, now.refs, was->refs);
	KUNIT_EXPECT_EQ(test, now.handles, was->handles);
	KUNIT_EXPECT_EQ(test, now.ctxs, was->ctxs);
	KUNIT_EXPECT_EQ(test, now.progs, was->progs);
	KUNIT_EXPECT_EQ(test, now.queues, was->queues);
	KUNIT_EXPECT_EQ(test, now.copies, was->copies);
	KUNIT_EXPECT_EQ(test, now.scrubs, was->scrubs);
	KUNIT_EXPECT_EQ(test, now.launches, was->launches);
}

/* --- the device ------------------------------------------------------------ */

static void alloc_new_device(struct kunit *test, void *arg)
{
	struct alloc_fixture *f = arg;
	struct neuron_device *ndev;

	ndev = devm_drm_dev_alloc(f->dev, &neuron_drm_driver, struct neuron_device, drm);
	KUNIT_ASSERT_FALSE(test, IS_ERR(ndev));
	ndev->hal = &f->hal;
	ndev->exec_version = EXI_VERSION_MAJOR << 16 | EXI_VERSION_MINOR;
	ndev->cores = 1;
	ndev->queues = EXI_QUEUE_COUNT;
	ndev->irq.vectors = 1;
	ndev->power = NEURON_UP;
	f->ndev = ndev;
}

static int alloc_init_device(struct alloc_fixture *f)
{
	struct neuron_device *ndev = f->ndev;
	int ret;

	ret = neuron_device_init(ndev);
	/* Nothing to look at, and not from a worker, whose register accesses are real. */
	disable_delayed_work(&ndev->health.work);
	if (!ret)
		ret = neuron_fw_init(ndev);
	if (!ret)
		ret = neuron_hbm_add_stack(&ndev->hbm, 0, 0, ALLOC_HBM_BYTES, NULL);
	if (!ret)
		ret = neuron_evict_start(ndev);
	if (!ret)
		ret = neuron_health_alloc(ndev);
	if (!ret)
		ret = neuron_copy_start(ndev);
	return ret;
}

static void prepare_probe(struct kunit *test, void *arg)
{
	struct alloc_fixture *f = arg;

	f->group = devres_open_group(f->dev, NULL, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, f->group);
	/* Not part of the call: a failure in its middle makes the core put an error. */
	alloc_new_device(test, f);
}

static int call_probe(struct kunit *test, void *arg)
{
	return alloc_init_device(arg);
}

/* What it took is managed: gone or not, this must do. */
static void check_probe(struct kunit *test, void *arg)
{
	struct alloc_fixture *f = arg;

	devres_release_group(f->dev, f->group);
}

static int alloc_init(struct kunit *test)
{
	struct alloc_fixture *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, f);
	test->priv = f;
	neuron_fail_init(test);
	f->hal.arch = NEURON_TEST_ARCH;
	f->hal.host_base = 1ull << 46;
	f->hal.neighbour = U64_MAX;
	f->hal.stop_ms = 1;
	f->hal.copy_engines = 1;
	f->dev = kunit_device_register(test, "neuron");
	KUNIT_ASSERT_FALSE(test, IS_ERR(f->dev));
	pm_runtime_set_active(f->dev);
	KUNIT_ASSERT_EQ(test, devm_pm_runtime_enable(f->dev), 0);
	kunit_activate_static_stub(test, neuron_reg_read, alloc_reg_read);
	kunit_activate_static_stub(test, neuron_reg_write, alloc_reg_write);
	kunit_activate_static_stub(test, neuron_hbm_fill, alloc_hbm_fill);
	return 0;
}

static void neuron_alloc_probe(struct kunit *test)
{
	static const struct neuron_fail_op op = {
		.prepare = prepare_probe,
		.call = call_probe,
		.check = check_probe,
	};

	neuron_fail_each(test, &op, test->priv);
}

/* --- the file -------------------------------------------------------------- */

static int call_open(struct kunit *test, void *arg)
{
	struct alloc_fixture *f = arg;
	struct file *filp = mock_drm_getfile(f->ndev->drm.accel, O_RDWR);

	if (IS_ERR(filp))
		return PTR_ERR(filp);
	f->filp = filp;
	f->file = filp->private_data;
	f->nfile = f->file->driver_priv;
	f->nfile->closed = true;
	return 0;
}

static void undo_open(struct kunit *test, void *arg)
{
	struct alloc_fixture *f = arg;

	__fput_sync(f->filp);
	neuron_device_settle(f->ndev);
}

static void check_open(struct kunit *test, void *arg)
{
	struct alloc_fixture *f = arg;

	neuron_device_settle(f->ndev);
	KUNIT_EXPECT_EQ(test, atomic_read(&f->ndev->health.users), 0);
	/* devm's. */
	KUNIT_EXPECT_EQ(test, kref_read(&f->ndev->drm.ref), 1);
}

static void neuron_alloc_open(struct kunit *test)
{
	static const struct neuron_fail_op op = {
		.call = call_open,
		.undo = undo_open,
		.check = check_open,
	};
	struct alloc_fixture *f = test->priv;

	alloc_new_device(test, f);
	KUNIT_ASSERT_EQ(test, alloc_init_device(f), 0);
	neuron_fail_each(test, &op, f);
}

/* As after a reset of the device: without a queue they are freed without touching it. */
static void alloc_forget_queues(struct alloc_fixture *f)
{
	mutex_lock(&f->ndev->reset_lock);
	neuron_ctx_forget_all(f->ndev);
	mutex_unlock(&f->ndev->reset_lock);
}

static void alloc_close(void *arg)
{
	struct alloc_fixture *f = arg;

	alloc_forget_queues(f);
	neuron_hbm_free(&f->ndev->hbm, &f->page);
	__fput_sync(f->filp);
	flush_delayed_fput();
	neuron_device_settle(f->ndev);
}

/* A device, its open file, and a page of user memory. */
static struct alloc_fixture *alloc_open(struct kunit *test)
{
	struct alloc_fixture *f = test->priv;

	f->user = kunit_vm_mmap(test, NULL, 0, PAGE_SIZE, PROT_READ | PROT_WRITE,
				MAP_ANONYMOUS | MAP_PRIVATE, 0);
	KUNIT_ASSERT_NE(test, f->user, 0);
	alloc_new_device(test, f);
	KUNIT_ASSERT_EQ(test, alloc_init_device(f), 0);
	/*
	 * One page is gone, so that free blocks of every size are there: gpu_buddy goes on using
	 * what it has freed when it cannot allocate for splitting one.
	 */
	KUNIT_ASSERT_EQ(test, neuron_hbm_alloc(&f->ndev->hbm, NEURON_HBM_GRANULE, &f->page), 0);
	KUNIT_ASSERT_EQ(test, call_open(test, f), 0);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, alloc_close, f), 0);
	return f;
}

static void alloc_to_user(struct kunit *test, unsigned long at, const void *data, size_t bytes)
{
	struct alloc_fixture *f = test->priv;

	KUNIT_ASSERT_EQ(test, copy_to_user((void __user *)f->user + at, data, bytes), 0);
}

/* Repeats a call that leaves the file's counters as they were. */
static void alloc_fail_each(struct kunit *test, int (*call)(struct kunit *test, void *arg),
			    void (*undo)(struct kunit *test, void *arg))
{
	const struct neuron_fail_op op = {
		.call = call,
		.undo = undo,
		.check = alloc_expect_unchanged,
	};
	struct alloc_fixture *f = test->priv;

	flush_delayed_fput();
	neuron_device_settle(f->ndev);
	alloc_count(f, &f->before);
	neuron_fail_each(test, &op, f);
}

/* --- buffers --------------------------------------------------------------- */

static int call_bo(struct kunit *test, void *arg)
{
	struct alloc_fixture *f = arg;
	struct drm_neuron_bo_create args = {
		.size = f->flags & DRM_NEURON_BO_HBM ? ALLOC_HBM_BO_BYTES : ALLOC_HOST_BO_BYTES,
		.flags = f->flags,
	};
	int ret = neuron_ioctl_bo_create(&f->ndev->drm, &args, f->file);

	f->made = args.handle;
	return ret;
}

static void undo_bo(struct kunit *test, void *arg)
{
	struct alloc_fixture *f = arg;

	KUNIT_EXPECT_EQ(test, drm_gem_handle_delete(f->file, f->made), 0);
}

static u32 alloc_bo(struct kunit *test, u32 flags)
{
	struct alloc_fixture *f = test->priv;
	struct drm_gem_object *obj;

	f->flags = flags;
	KUNIT_ASSERT_EQ(test, call_bo(test, f), 0);
	/* Its scrub is over. */
	obj = drm_gem_object_lookup(f->file, f->made);
	dma_resv_wait_timeout(obj->resv, DMA_RESV_USAGE_BOOKKEEP, false, MAX_SCHEDULE_TIMEOUT);
	drm_gem_object_put(obj);
	return f->made;
}

static void neuron_alloc_bo_hbm(struct kunit *test)
{
	struct alloc_fixture *f = alloc_open(test);

	f->flags = DRM_NEURON_BO_HBM | DRM_NEURON_BO_MMAP;
	alloc_fail_each(test, call_bo, undo_bo);
}

static void neuron_alloc_bo_host(struct kunit *test)
{
	struct alloc_fixture *f = alloc_open(test);

	f->flags = DRM_NEURON_BO_HOST | DRM_NEURON_BO_MMAP;
	alloc_fail_each(test, call_bo, undo_bo);
}

static int call_pin(struct kunit *test, void *arg)
{
	struct alloc_fixture *f = arg;
	struct drm_neuron_bo_pin args = { .addr = f->user, .size = PAGE_SIZE };
	int ret = neuron_ioctl_bo_pin(&f->ndev->drm, &args, f->file);

	f->made = args.handle;
	return ret;
}

static void undo_pin(struct kunit *test, void *arg)
{
	undo_bo(test, arg);
	KUNIT_EXPECT_EQ(test, atomic64_read(&current->mm->pinned_vm), 0);
}

static void neuron_alloc_bo_pin(struct kunit *test)
{
	alloc_open(test);
	/* The page is there. */
	alloc_to_user(test, 0, "", 1);
	alloc_fail_each(test, call_pin, undo_pin);
	KUNIT_EXPECT_EQ(test, atomic64_read(&current->mm->pinned_vm), 0);
}

/* Host memory for an evicted buffer. */
static int call_backing(struct kunit *test, void *arg)
{
	struct alloc_fixture *f = arg;
	struct drm_gem_object *obj = drm_gem_object_lookup(f->file, f->hbm);
	int ret = neuron_bo_get_backing(to_neuron_bo(obj));

	if (ret)
		KUNIT_EXPECT_NULL(test, to_neuron_bo(obj)->pages);
	drm_gem_object_put(obj);
	return ret;
}

static void undo_backing(struct kunit *test, void *arg)
{
	struct alloc_fixture *f = arg;
	struct drm_gem_object *obj = drm_gem_object_lookup(f->file, f->hbm);

	neuron_bo_put_backing(to_neuron_bo(obj));
	drm_gem_object_put(obj);
}

static void neuron_alloc_bo_backing(struct kunit *test)
{
	struct alloc_fixture *f = alloc_open(test);

	f->hbm = alloc_bo(test, DRM_NEURON_BO_HBM);
	alloc_fail_each(test, call_backing, undo_backing);
}

static int call_export(struct kunit *test, void *arg)
{
	struct alloc_fixture *f = arg;
	struct drm_gem_object *obj = drm_gem_object_lookup(f->file, f->host);
	struct dma_buf *buf = obj->funcs->export(obj, DRM_RDWR);

	drm_gem_object_put(obj);
	if (IS_ERR(buf))
		return PTR_ERR(buf);
	f->buf = buf;
	return 0;
}

static void undo_export(struct kunit *test, void *arg)
{
	struct alloc_fixture *f = arg;

	dma_buf_put(f->buf);
	flush_delayed_fput();
}

static void neuron_alloc_bo_export(struct kunit *test)
{
	struct alloc_fixture *f = alloc_open(test);

	f->host = alloc_bo(test, DRM_NEURON_BO_HOST);
	alloc_fail_each(test, call_export, undo_export);
}

/* --- contexts -------------------------------------------------------------- */

static int call_ctx(struct kunit *test, void *arg)
{
	struct alloc_fixture *f = arg;
	struct drm_neuron_ctx_create args = {};
	int ret = neuron_ioctl_ctx_create(&f->ndev->drm, &args, f->file);

	/* The queue of one that got no id: see alloc_forget_queues(). */
	if (ret)
		alloc_forget_queues(f);
	f->made = args.ctx;
	return ret;
}

static void undo_ctx(struct kunit *test, void *arg)
{
	struct alloc_fixture *f = arg;
	struct drm_neuron_ctx_destroy args = { .ctx = f->made };

	alloc_forget_queues(f);
	KUNIT_EXPECT_EQ(test, neuron_ioctl_ctx_destroy(&f->ndev->drm, &args, f->file), 0);
}

static void neuron_alloc_ctx(struct kunit *test)
{
	alloc_open(test);
	alloc_fail_each(test, call_ctx, undo_ctx);
}

static int call_stream(struct kunit *test, void *arg)
{
	struct alloc_fixture *f = arg;
	struct drm_neuron_stream_open args = { .ctx = f->ctx };
	int ret = neuron_ioctl_stream_open(&f->ndev->drm, &args, f->file);

	f->fd = args.fd;
	/* A ring stays for the next one who opens; not here. */
	if (ret)
		neuron_stream_detach(alloc_ctx(f), false);
	return ret;
}

static void undo_stream(struct kunit *test, void *arg)
{
	struct alloc_fixture *f = arg;

	KUNIT_EXPECT_EQ(test, close_fd(f->fd), 0);
	flush_delayed_fput();
	neuron_stream_detach(alloc_ctx(f), false);
}

static void neuron_alloc_stream(struct kunit *test)
{
	struct alloc_fixture *f = alloc_open(test);

	KUNIT_ASSERT_EQ(test, call_ctx(test, f), 0);
	f->ctx = f->made;
	alloc_fail_each(test, call_stream, undo_stream);
}

/* --- programs -------------------------------------------------------------- */

static int call_prog(struct kunit *test, void *arg)
{
	struct alloc_fixture *f = arg;
	struct drm_neuron_program_load args = {
		.image = f->user + USER_PROG,
		.size = NEURON_TEST_PROG_BYTES,
	};
	int ret = neuron_ioctl_program_load(&f->ndev->drm, &args, f->file);

	f->made = args.program;
	return ret;
}

static void undo_prog(struct kunit *test, void *arg)
{
	struct alloc_fixture *f = arg;
	struct drm_neuron_program_unload args = { .program = f->made };

	KUNIT_EXPECT_EQ(test, neuron_ioctl_program_unload(&f->ndev->drm, &args, f->file), 0);
}

static void neuron_alloc_prog(struct kunit *test)
{
	alloc_open(test);
	alloc_to_user(test, USER_PROG, neuron_test_prog(test), NEURON_TEST_PROG_BYTES);
	alloc_fail_each(test, call_prog, undo_prog);
}

/* --- eviction -------------------------------------------------------------- */

static void alloc_kill(bool kill)
{
	spin_lock_irq(&current->sighand->siglock);
	if (kill)
		sigaddset(&current->pending.signal, SIGKILL);
	else
		sigdelset(&current->pending.signal, SIGKILL);
	recalc_sigpending();
	spin_unlock_irq(&current->sighand->siglock);
}

/* It evicts nobody: the kernel may have refused it memory, not the device. */
static void neuron_alloc_killed(struct kunit *test)
{
	struct alloc_fixture *f = alloc_open(test);
	struct neuron_hbm_block all, block;

	KUNIT_ASSERT_EQ(test, neuron_hbm_alloc(&f->ndev->hbm, ALLOC_HBM_BYTES / 2, &all), 0);
	alloc_kill(true);
	KUNIT_EXPECT_EQ(test, neuron_evict_alloc(f->ndev, ALLOC_HBM_BYTES / 2, &block), -EINTR);
	alloc_kill(false);
	KUNIT_EXPECT_EQ(test, neuron_evict_alloc(f->ndev, ALLOC_HBM_BYTES / 2, &block), -ENOSPC);
	neuron_hbm_free(&f->ndev->hbm, &all);
}

/* --- work ------------------------------------------------------------------ */

static struct drm_neuron_array alloc_array(struct alloc_fixture *f, unsigned long at, u32 stride,
					   u32 count)
{
	return (struct drm_neuron_array){
		.stride = stride,
		.count = count,
		.ptr = f->user + at,
	};
}

static struct drm_neuron_array alloc_in(struct alloc_fixture *f)
{
	return alloc_array(f, USER_SYNCS, sizeof(struct drm_neuron_sync), 1);
}

/* The next point. */
static struct drm_neuron_array alloc_out(struct kunit *test)
{
	struct alloc_fixture *f = test->priv;
	struct drm_neuron_sync sync = { .handle = f->out, .point = ++f->point };

	alloc_to_user(test, USER_OUT, &sync, sizeof(sync));
	return alloc_array(f, USER_OUT, sizeof(sync), 1);
}

static u32 alloc_syncobj(struct kunit *test)
{
	struct alloc_fixture *f = test->priv;
	struct drm_syncobj *syncobj;
	u32 handle = 0;

	KUNIT_ASSERT_EQ(test, drm_syncobj_create(&syncobj, DRM_SYNCOBJ_CREATE_SIGNALED, NULL), 0);
	KUNIT_ASSERT_EQ(test, drm_syncobj_get_handle(f->file, syncobj, &handle), 0);
	drm_syncobj_put(syncobj);
	return handle;
}

/* One to wait for, and one with points to signal. */
static void alloc_syncs(struct kunit *test)
{
	struct drm_neuron_sync in = { .handle = alloc_syncobj(test) };
	struct alloc_fixture *f = test->priv;

	f->out = alloc_syncobj(test);
	alloc_to_user(test, USER_SYNCS, &in, sizeof(in));
}

/* Wait until the work that signals the point is over; its buffers are clean of it then. */
static void undo_work(struct kunit *test, void *arg)
{
	struct alloc_fixture *f = arg;
	struct dma_fence *fence;

	KUNIT_ASSERT_EQ(test, drm_syncobj_find_fence(f->file, f->out, f->point, 0, &fence), 0);
	dma_fence_wait(fence, false);
	dma_fence_put(fence);
}

static int call_copy(struct kunit *test, void *arg)
{
	struct alloc_fixture *f = arg;
	struct drm_neuron_copy args = {
		.src = f->hbm,
		.dst = f->host,
		.size = ALLOC_HOST_BO_BYTES,
		.in = alloc_in(f),
		.out = alloc_out(test),
	};

	return neuron_ioctl_copy(&f->ndev->drm, &args, f->file);
}

static void neuron_alloc_copy(struct kunit *test)
{
	struct alloc_fixture *f = alloc_open(test);

	f->hbm = alloc_bo(test, DRM_NEURON_BO_HBM);
	f->host = alloc_bo(test, DRM_NEURON_BO_HOST);
	alloc_syncs(test);
	alloc_fail_each(test, call_copy, undo_work);
}

/* A context, a program and what it takes, and a launch of it in user memory. */
static struct alloc_fixture *alloc_launch(struct kunit *test)
{
	struct alloc_fixture *f = alloc_open(test);
	struct drm_neuron_slot slots[2] = {};
	struct drm_neuron_launch launch[2];

	KUNIT_ASSERT_EQ(test, call_ctx(test, f), 0);
	f->ctx = f->made;
	alloc_to_user(test, USER_PROG, neuron_test_prog(test), NEURON_TEST_PROG_BYTES);
	KUNIT_ASSERT_EQ(test, call_prog(test, f), 0);
	f->prog = f->made;
	f->hbm = alloc_bo(test, DRM_NEURON_BO_HBM);
	slots[0] = (struct drm_neuron_slot){ .handle = f->hbm, .size = SZ_4K };
	slots[1] = (struct drm_neuron_slot){ .flags = DRM_NEURON_SLOT_INLINE, .size = sizeof(u64) };
	alloc_to_user(test, USER_SLOTS, slots, sizeof(slots));
	launch[0] = (struct drm_neuron_launch){
		.program = f->prog,
		.slots = alloc_array(f, USER_SLOTS, sizeof(slots[0]), 2),
	};
	launch[1] = launch[0];
	alloc_to_user(test, USER_LAUNCH, launch, sizeof(launch));
	alloc_syncs(test);
	return f;
}

static int call_submit(struct kunit *test, void *arg)
{
	struct alloc_fixture *f = arg;
	struct drm_neuron_submit args = {
		.ctx = f->ctx,
		.program = f->prog,
		.slots = alloc_array(f, USER_SLOTS, sizeof(struct drm_neuron_slot), 2),
		.in = alloc_in(f),
		.out = alloc_out(test),
	};

	return neuron_ioctl_submit(&f->ndev->drm, &args, f->file);
}

static void neuron_alloc_submit(struct kunit *test)
{
	alloc_launch(test);
	alloc_fail_each(test, call_submit, undo_work);
}

static int call_batch(struct kunit *test, void *arg)
{
	struct alloc_fixture *f = arg;
	struct drm_neuron_submit_batch args = {
		.ctx = f->ctx,
		.launches = alloc_array(f, USER_LAUNCH, sizeof(struct drm_neuron_launch), 2),
		.in = alloc_in(f),
		.out = alloc_out(test),
	};

	return neuron_ioctl_submit_batch(&f->ndev->drm, &args, f->file);
}

static void neuron_alloc_batch(struct kunit *test)
{
	alloc_launch(test);
	alloc_fail_each(test, call_batch, undo_work);
}

static struct kunit_case neuron_alloc_cases[] = { KUNIT_CASE(neuron_alloc_probe),
						  KUNIT_CASE(neuron_alloc_open),
						  KUNIT_CASE(neuron_alloc_bo_hbm),
						  KUNIT_CASE(neuron_alloc_bo_host),
						  KUNIT_CASE(neuron_alloc_bo_pin),
						  KUNIT_CASE(neuron_alloc_bo_backing),
						  KUNIT_CASE(neuron_alloc_bo_export),
						  KUNIT_CASE(neuron_alloc_ctx),
						  KUNIT_CASE(neuron_alloc_stream),
						  KUNIT_CASE(neuron_alloc_prog),
						  KUNIT_CASE(neuron_alloc_copy),
						  KUNIT_CASE(neuron_alloc_submit),
						  KUNIT_CASE(neuron_alloc_batch),
						  KUNIT_CASE(neuron_alloc_killed),
						  {} };

static struct kunit_suite neuron_alloc_suite = {
	.name = "neuron_alloc",
	.init = alloc_init,
	.test_cases = neuron_alloc_cases,
};

kunit_test_suite(neuron_alloc_suite);
