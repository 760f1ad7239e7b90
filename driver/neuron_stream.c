// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a context runs, instruction by instruction, for profilers.
 *
 * The device fills a ring in host memory; completion only moves a counter and
 * wakes the reader, who takes the entries straight from the ring. A reader
 * that is a lap late loses entries and is told how many: the device never
 * waits for it. The ring stays with the context until its queue is gone; the
 * file holds no more than the structure.
 */

#include <linux/anon_inodes.h>
#include <linux/bitfield.h>
#include <linux/dma-mapping.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/kref.h>
#include <linux/log2.h>
#include <linux/mutex.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/uaccess.h>
#include <linux/wait.h>

#include <drm/drm_drv.h>
#include <drm/drm_file.h>

#include "neuron_ctx.h"
#include "neuron_drv.h"
#include "neuron_stream.h"

#define STREAM_ENTRIES_DEFAULT 4096

/* The first minor version of the execution interface that has trace rings. */
#define STREAM_EXEC_MINOR 1

struct neuron_stream {
	struct kref ref; /* of the context and of the file */
	struct mutex read_lock; /* of readers; held over page faults, so not in a reset */
	spinlock_t lock; /* protects ring */
	struct exi_trace *ring; /* NULL: the queue is gone */
	dma_addr_t dma;
	u32 entries;
	u32 read; /* next entry for the reader, who alone writes it */
	u32 lost; /* since the last event that was given out; as read */
	u32 written; /* entries that records told of; written under &neuron_core.lock */
	bool open; /* a file reads it */
	wait_queue_head_t wait;
};

static void stream_release(struct kref *ref)
{
	struct neuron_stream *stream = container_of(ref, struct neuron_stream, ref);

	mutex_destroy(&stream->read_lock);
	kfree(stream);
}

static void stream_put(struct neuron_stream *stream)
{
	kref_put(&stream->ref, stream_release);
}

static void stream_free_ring(struct neuron_ctx *ctx, struct neuron_stream *stream,
			     struct exi_trace *ring)
{
	dma_free_coherent(ctx->ndev->drm.dev, stream->entries * sizeof(*ring), ring, stream->dma);
}

/**
 * neuron_stream_wanted - Whether the next launch of a context is to be traced
 * @ctx: the context; its core's lock is held
 *
 * Return: true if somebody reads.
 */
bool neuron_stream_wanted(const struct neuron_ctx *ctx)
{
	lockdep_assert_held(&ctx->core->lock);
	return ctx->stream && READ_ONCE(ctx->stream->open);
}

/**
 * neuron_stream_advance - A launch is complete: its entries may be read
 * @ctx: the context; its core's lock is held
 * @record: what the device said
 */
void neuron_stream_advance(struct neuron_ctx *ctx, const struct exi_record *record)
{
	struct neuron_stream *stream = ctx->stream;
	u32 traced = le32_to_cpu(record->traced);

	lockdep_assert_held(&ctx->core->lock);
	if (!stream || stream->written == traced)
		return;
	WRITE_ONCE(stream->written, traced);
	wake_up_interruptible_poll(&stream->wait, EPOLLIN | EPOLLRDNORM);
}

/**
 * neuron_stream_detach - The queue is gone: end the stream, free the ring
 * @ctx: the context
 * @lose: the device may still write to the ring: lose it instead
 *
 * Context: Process.
 */
void neuron_stream_detach(struct neuron_ctx *ctx, bool lose)
{
	struct neuron_stream *stream;
	struct exi_trace *ring;

	scoped_guard(spinlock_irqsave, &ctx->core->lock) {
		stream = ctx->stream;
		ctx->stream = NULL;
	}
	if (!stream)
		return;
	scoped_guard(spinlock, &stream->lock) {
		ring = stream->ring;
		stream->ring = NULL;
	}
	if (!lose)
		stream_free_ring(ctx, stream, ring);
	wake_up_interruptible_poll(&stream->wait, EPOLLIN | EPOLLHUP);
	stream_put(stream);
}

/* --- reading --------------------------------------------------------------- */

/* Copy one entry as an event. False: there is none. */
static bool stream_take(struct neuron_stream *stream, struct drm_neuron_event *event)
{
	u32 written = READ_ONCE(stream->written);
	const struct exi_trace *entry;

	lockdep_assert_held(&stream->lock);
	if (written - stream->read > stream->entries) {
		stream->lost += written - stream->read - stream->entries;
		stream->read = written - stream->entries;
	}
	while (stream->read != written) {
		entry = &stream->ring[stream->read & (stream->entries - 1)];
		if (le32_to_cpu(READ_ONCE(entry->index)) == stream->read) {
			dma_rmb();
			*event = (struct drm_neuron_event){
				.launch = le32_to_cpu(entry->seqno),
				.pc = le32_to_cpu(entry->pc),
				.engine = entry->engine,
				.opcode = entry->opcode,
				.lost = stream->lost,
				.start_ps = le64_to_cpu(entry->start_ps),
				.end_ps = le64_to_cpu(entry->end_ps),
			};
			dma_rmb();
			/* The device may have come round meanwhile. */
			if (le32_to_cpu(READ_ONCE(entry->index)) == stream->read)
				return true;
		}
		WRITE_ONCE(stream->read, stream->read + 1);
		stream->lost++;
	}
	return false;
}

static unsigned int stream_take_some(struct neuron_stream *stream, struct drm_neuron_event *events,
				     unsigned int most)
{
	unsigned int n = 0;

	guard(spinlock)(&stream->lock);
	while (stream->ring && n < most && stream_take(stream, &events[n])) {
		WRITE_ONCE(stream->read, stream->read + 1);
		stream->lost = 0;
		n++;
	}
	return n;
}

/* Bytes given out, 0 if there are none, -EFAULT (the events are lost). */
static ssize_t stream_read_some(struct neuron_stream *stream, char __user *buf, size_t count)
{
	struct drm_neuron_event events[8];
	size_t done = 0, bytes;
	unsigned int n;

	guard(mutex)(&stream->read_lock);
	do {
		n = stream_take_some(stream, events,
				     min(ARRAY_SIZE(events), (count - done) / sizeof(events[0])));
		bytes = n * sizeof(events[0]);
		if (copy_to_user(buf + done, events, bytes)) {
			stream->lost = n;
			return done ?: -EFAULT;
		}
		done += bytes;
	} while (n == ARRAY_SIZE(events));
	return done;
}

static bool stream_is_readable(struct neuron_stream *stream)
{
	return !READ_ONCE(stream->ring) || READ_ONCE(stream->read) != READ_ONCE(stream->written);
}

static ssize_t stream_read(struct file *file, char __user *buf, size_t count, loff_t *pos)
{
	struct neuron_stream *stream = file->private_data;
	ssize_t done;
	int ret;

	if (count < sizeof(struct drm_neuron_event))
		return -EINVAL;
	for (;;) {
		done = stream_read_some(stream, buf, count);
		if (done)
			return done;
		if (!READ_ONCE(stream->ring))
			return 0;
		if (file->f_flags & O_NONBLOCK)
			return -EAGAIN;
		ret = wait_event_interruptible(stream->wait, stream_is_readable(stream));
		if (ret)
			return ret;
	}
}

static __poll_t stream_poll(struct file *file, poll_table *table)
{
	struct neuron_stream *stream = file->private_data;

	poll_wait(file, &stream->wait, table);
	if (!READ_ONCE(stream->ring))
		return EPOLLIN | EPOLLHUP;
	return stream_is_readable(stream) ? EPOLLIN | EPOLLRDNORM : 0;
}

static int stream_close(struct inode *inode, struct file *file)
{
	struct neuron_stream *stream = file->private_data;

	/* Launches on their way still write to the ring, which stays. */
	WRITE_ONCE(stream->open, false);
	stream_put(stream);
	return 0;
}

static const struct file_operations stream_fops = {
	.owner = THIS_MODULE,
	.read = stream_read,
	.poll = stream_poll,
	.release = stream_close,
};

/* --- opening ---------------------------------------------------------------- */

static struct neuron_stream *stream_alloc(struct neuron_ctx *ctx, u32 entries)
{
	struct neuron_stream *stream = kzalloc_obj(*stream, GFP_KERNEL_ACCOUNT);

	if (!stream)
		return NULL;
	stream->entries = entries;
	stream->ring = dma_alloc_coherent(ctx->ndev->drm.dev, entries * sizeof(*stream->ring),
					  &stream->dma, GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!stream->ring) {
		kfree(stream);
		return NULL;
	}
	/* Index 0 would look like the first entry. */
	memset(stream->ring, 0xff, entries * sizeof(*stream->ring));
	kref_init(&stream->ref);
	mutex_init(&stream->read_lock);
	spin_lock_init(&stream->lock);
	init_waitqueue_head(&stream->wait);
	return stream;
}

static void stream_attach(struct neuron_ctx *ctx, struct neuron_stream *stream)
{
	const struct neuron_regs *exi = &ctx->ndev->exi;
	u64 base = ctx->ndev->hal->host_base | stream->dma;

	neuron_reg_write(exi, neuron_ctx_reg(ctx, EXI_Q_TRACE_LO), lower_32_bits(base));
	neuron_reg_write(exi, neuron_ctx_reg(ctx, EXI_Q_TRACE_HI), upper_32_bits(base));
	neuron_reg_write(exi, neuron_ctx_reg(ctx, EXI_Q_TRACE_LOG2), ilog2(stream->entries));
	guard(spinlock_irqsave)(&ctx->core->lock);
	ctx->stream = stream;
}

/*
 * Make a reader of the context's stream, counted. If there is none, *fresh becomes it, or without
 * @fresh NULL is the answer.
 */
static struct neuron_stream *stream_claim(struct neuron_ctx *ctx, struct neuron_stream **fresh)
{
	struct neuron_stream *stream;

	/* A reset may wait for this lock: nothing under it allocates. */
	guard(mutex)(&ctx->ndev->reset_lock);
	if (!ctx->mem || !READ_ONCE(ctx->running))
		return ERR_PTR(-EIO);
	if (!ctx->stream) {
		if (!fresh)
			return NULL;
		stream_attach(ctx, *fresh);
		*fresh = NULL;
	}
	guard(spinlock_irqsave)(&ctx->core->lock);
	stream = ctx->stream;
	if (READ_ONCE(stream->open))
		return ERR_PTR(-EBUSY);
	/* The reader before is gone: nobody else looks at these. */
	stream->read = stream->written;
	stream->lost = 0;
	WRITE_ONCE(stream->open, true);
	kref_get(&stream->ref);
	return stream;
}

/* Whoever opens after another has closed gets the ring of the first. */
static struct neuron_stream *stream_get(struct neuron_ctx *ctx, u32 entries)
{
	struct neuron_stream *fresh, *stream;

	stream = stream_claim(ctx, NULL);
	if (stream)
		return stream;
	/* What allocates may not be under the lock, so another caller can be faster. */
	fresh = stream_alloc(ctx, entries);
	if (!fresh)
		return ERR_PTR(-ENOMEM);
	stream = stream_claim(ctx, &fresh);
	if (fresh) {
		stream_free_ring(ctx, fresh, fresh->ring);
		stream_put(fresh);
	}
	return stream;
}

static int stream_install(struct neuron_stream *stream, unsigned int flags)
{
	struct file *file;
	int fd;

	fd = get_unused_fd_flags(O_CLOEXEC);
	if (fd < 0)
		return fd;
	file = anon_inode_getfile("[neuron-stream]", &stream_fops, stream, O_RDONLY | flags);
	if (IS_ERR(file)) {
		put_unused_fd(fd);
		return PTR_ERR(file);
	}
	fd_install(fd, file);
	return fd;
}

static int stream_check(struct drm_device *drm, struct drm_neuron_stream_open *args)
{
	u32 minor = FIELD_GET(EXI_VERSION_MINOR_MASK, to_neuron_device(drm)->exec_version);

	if (args->flags & ~DRM_NEURON_STREAM_NONBLOCK ||
	    args->entries > DRM_NEURON_STREAM_ENTRIES_MAX) {
		drm_dbg(drm, "stream: flags 0x%x, %u entries of at most %u\n", args->flags,
			args->entries, DRM_NEURON_STREAM_ENTRIES_MAX);
		return -EINVAL;
	}
	if (minor < STREAM_EXEC_MINOR) {
		drm_dbg(drm, "stream: execution interface %u has no trace\n", minor);
		return -EOPNOTSUPP;
	}
	args->entries = args->entries ?: STREAM_ENTRIES_DEFAULT;
	args->entries = max(roundup_pow_of_two(args->entries), BIT(EXI_TRACE_LOG2_MIN));
	return 0;
}

/**
 * neuron_ioctl_stream_open - DRM_IOCTL_NEURON_STREAM_OPEN
 * @drm: device
 * @data: struct drm_neuron_stream_open
 * @file: caller
 *
 * Return: 0 or -errno as documented with the structure.
 */
int neuron_ioctl_stream_open(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct drm_neuron_stream_open *args = data;
	struct neuron_stream *stream;
	struct neuron_ctx *ctx;
	int ret, idx;

	ret = stream_check(drm, args);
	if (ret)
		return ret;
	ctx = neuron_ctx_lookup(file->driver_priv, args->ctx);
	if (!ctx) {
		drm_dbg(drm, "stream: no context %u\n", args->ctx);
		return -ENOENT;
	}
	if (drm_dev_enter(drm, &idx)) {
		stream = stream_get(ctx, args->entries);
		drm_dev_exit(idx);
	} else {
		stream = ERR_PTR(-ENODEV);
	}
	neuron_ctx_put(ctx);
	if (IS_ERR(stream))
		return PTR_ERR(stream);

	args->entries = stream->entries;
	ret = stream_install(stream, args->flags & DRM_NEURON_STREAM_NONBLOCK ? O_NONBLOCK : 0);
	if (ret < 0) {
		WRITE_ONCE(stream->open, false);
		stream_put(stream);
		return ret;
	}
	args->fd = ret;
	return 0;
}
