// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copies: how a job becomes descriptors and batches, how it ends, and how an engine recovers. Part
 * of neuron_copy.c; registers are an array and the test is the device.
 */

#include <kunit/static_stub.h>
#include <kunit/test.h>

#define COPY_RING_ADDR 0x400012340000ull
#define COPY_HOST      0x400000000000ull
#define COPY_HBM       0x1000000ull
#define COPY_STATUS    (UDMA_Q(0) + UDMA_Q_STATUS)

struct copy_fixture {
	struct neuron_device *ndev;
	struct neuron_copy_engine *engine;
	struct neuron_file *nfile;
	struct neuron_hal hal;
	struct neuron_regs regs;
	u32 status; /* of both halves of the queue */
	u32 resets;
	struct neuron_copy_job *joins; /* while the queue comes to a stop */
	struct dma_fence *joined;
};

static void copy_reg_write(const struct neuron_regs *regs, u32 offset, u32 value)
{
	struct copy_fixture *f = kunit_get_current_test()->priv;

	if (offset == UDMA_M2S + UDMA_Q(0) + UDMA_M2S_Q_SW_CTRL && value == UDMA_Q_SW_CTRL_RESET)
		f->resets++;
}

static u32 copy_reg_read(const struct neuron_regs *regs, u32 offset)
{
	struct copy_fixture *f = kunit_get_current_test()->priv;
	struct neuron_copy_job *joins = f->joins;

	f->joins = NULL;
	if (joins)
		f->joined = copy_start(&joins->base);
	return offset == UDMA_M2S + COPY_STATUS || offset == UDMA_S2M + COPY_STATUS ? f->status : 0;
}

static int copy_test_init(struct kunit *test)
{
	struct copy_fixture *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);
	struct neuron_ring_mem *mem = kunit_kzalloc(test, sizeof(*mem), GFP_KERNEL);
	struct neuron_copy_engine *engine;

	KUNIT_ASSERT_NOT_NULL(test, f);
	KUNIT_ASSERT_NOT_NULL(test, mem);
	test->priv = f;
	f->ndev = kunit_kzalloc(test, sizeof(*f->ndev), GFP_KERNEL);
	f->nfile = kunit_kzalloc(test, sizeof(*f->nfile), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, f->ndev);
	KUNIT_ASSERT_NOT_NULL(test, f->nfile);
	f->hal.host_base = COPY_HOST;
	f->hal.neighbour = U64_MAX;
	f->hal.stop_ms = 1;
	f->ndev->hal = &f->hal;
	mutex_init(&f->ndev->reset_lock);
	f->status = UDMA_Q_STATUS_IDLE;
	kunit_activate_static_stub(test, neuron_reg_write, copy_reg_write);
	kunit_activate_static_stub(test, neuron_reg_read, copy_reg_read);

	engine = &f->ndev->copy.engine[0];
	f->engine = engine;
	f->ndev->copy.engines = 1;
	engine->ndev = f->ndev;
	engine->regs = &f->regs;
	engine->fence_context = dma_fence_context_alloc(1);
	spin_lock_init(&engine->lock);
	INIT_LIST_HEAD(&engine->jobs);
	neuron_ring_init(&engine->ring, &f->regs, 0, mem, COPY_RING_ADDR);
	neuron_ring_start(&engine->ring);
	return 0;
}

/* Of zeroes of fixed place into HBM at @to, without buffers. */
static struct neuron_copy_job *copy_job(struct kunit *test, u64 to, u64 size)
{
	struct copy_fixture *f = test->priv;
	struct neuron_span from = { .addr = 0x5000, .left = SZ_64K, .fixed = true };
	struct neuron_span dst = { .addr = to, .left = size };
	struct neuron_copy_job *job = kunit_kzalloc(test, sizeof(*job), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, job);
	job->base.sched = &f->engine->sched;
	job->nfile = f->nfile;
	job->done = neuron_fence_alloc();
	KUNIT_ASSERT_NOT_NULL(test, job->done);
	neuron_copy_job_set(job, &from, &dst, size);
	return job;
}

static struct dma_fence *copy_begin(struct kunit *test, struct neuron_copy_job *job)
{
	struct dma_fence *fence = copy_start(&job->base);

	KUNIT_ASSERT_FALSE(test, IS_ERR(fence));
	return fence;
}

/* The scheduler's reference and the job's. */
static void copy_end(struct dma_fence *fence)
{
	dma_fence_put(fence);
	dma_fence_put(fence);
}

/* The device has done @count more batches. */
static void copy_batches_done(struct copy_fixture *f, u32 count)
{
	struct neuron_ring *ring = &f->engine->ring;
	u32 i;

	for (i = 0; i < count; i++)
		ring->mem->mark[(ring->mark_head + i) % NEURON_RING_MARKS] = UDMA_MARKER;
	neuron_copy_drain(f->ndev);
}

static void copy_expect_desc(struct kunit *test, u32 index, u64 src, u64 dst, u32 bytes)
{
	struct copy_fixture *f = test->priv;
	const struct udma_desc *tx = &f->engine->ring.mem->tx[index];
	const struct udma_desc *rx = &f->engine->ring.mem->rx[index];

	KUNIT_EXPECT_EQ_MSG(test, le64_to_cpu(tx->addr), src, "source of descriptor %u", index);
	KUNIT_EXPECT_EQ_MSG(test, le64_to_cpu(rx->addr), dst, "destination of descriptor %u",
			    index);
	KUNIT_EXPECT_EQ_MSG(test, le32_to_cpu(tx->ctrl) & UDMA_DESC_LEN, bytes & 0xffff,
			    "length of descriptor %u", index);
}

/* Pieces end where either side does, and at 64 KiB. */
static void neuron_copy_cuts_at_pages(struct kunit *test)
{
	struct copy_fixture *f = test->priv;
	struct neuron_copy_job *job = copy_job(test, COPY_HBM, 0x18000);
	struct neuron_span from, to = { .addr = COPY_HBM, .left = 0x18000 };
	struct neuron_bo bo = { .flags = DRM_NEURON_BO_HOST };
	struct scatterlist sg[3];
	struct sg_table table = { .sgl = sg, .nents = 3, .orig_nents = 3 };
	struct dma_fence *fence;

	sg_init_table(sg, 3);
	sg_dma_address(&sg[0]) = 0x10000;
	sg_dma_len(&sg[0]) = 0x2000;
	sg_dma_address(&sg[1]) = 0x40000;
	sg_dma_len(&sg[1]) = 0x16000;
	sg_dma_address(&sg[2]) = 0x90000;
	sg_dma_len(&sg[2]) = 0x2000;
	bo.sgt = &table;
	/* From the middle of the first piece on. */
	neuron_span_init(f->ndev, &from, &bo, 0x1000);
	neuron_copy_job_set(job, &from, &to, 0x18000);

	fence = copy_begin(test, job);
	copy_expect_desc(test, 0, COPY_HOST + 0x11000, COPY_HBM, 0x1000);
	copy_expect_desc(test, 1, COPY_HOST + 0x40000, COPY_HBM + 0x1000, 0x10000);
	copy_expect_desc(test, 2, COPY_HOST + 0x50000, COPY_HBM + 0x11000, 0x6000);
	copy_expect_desc(test, 3, COPY_HOST + 0x90000, COPY_HBM + 0x17000, 0x1000);
	KUNIT_EXPECT_EQ(test, f->engine->ring.used, 5);

	/* A later piece is found without walking off the end. */
	neuron_span_init(f->ndev, &from, &bo, 0x18000);
	KUNIT_EXPECT_EQ(test, from.addr, COPY_HOST + 0x90000);
	KUNIT_EXPECT_EQ(test, from.left, 0x2000);

	copy_batches_done(f, 1);
	KUNIT_EXPECT_EQ(test, dma_fence_get_status(fence), 1);
	copy_end(fence);
}

/* 256 MiB are four times what the ring holds: the rest follows as batches end. */
static void neuron_copy_refills_the_ring(struct kunit *test)
{
	struct copy_fixture *f = test->priv;
	struct neuron_copy_job *job = copy_job(test, COPY_HBM, SZ_256M);
	struct dma_fence *fence = copy_begin(test, job);
	u32 rounds = 0;

	KUNIT_EXPECT_GT(test, job->todo, 0);
	KUNIT_EXPECT_PTR_EQ(test, f->engine->next, job);
	while (!dma_fence_is_signaled(fence) && rounds++ < 100) {
		KUNIT_EXPECT_LE(test, f->engine->ring.used, NEURON_RING_DESCS - NEURON_RING_GAP);
		copy_batches_done(f, 1);
	}
	KUNIT_EXPECT_EQ(test, dma_fence_get_status(fence), 1);
	KUNIT_EXPECT_EQ(test, job->todo, 0);
	KUNIT_EXPECT_EQ(test, f->engine->ring.used, 0);
	KUNIT_EXPECT_NULL(test, f->engine->next);
	KUNIT_EXPECT_TRUE(test, list_empty(&f->engine->jobs));
	copy_end(fence);
}

/* The oldest job is to blame; the others begin again at their first byte. */
static void neuron_copy_restarts_the_others(struct kunit *test)
{
	struct copy_fixture *f = test->priv;
	struct neuron_copy_job *bad = copy_job(test, COPY_HBM, SZ_1M);
	struct neuron_copy_job *good = copy_job(test, COPY_HBM + SZ_1M, SZ_128K);
	struct dma_fence *first = copy_begin(test, bad), *second = copy_begin(test, good);

	mutex_lock(&f->ndev->reset_lock);
	copy_restart(f->engine, -ETIME);
	mutex_unlock(&f->ndev->reset_lock);
	KUNIT_EXPECT_EQ(test, dma_fence_get_status(first), -ETIME);
	KUNIT_EXPECT_EQ(test, dma_fence_get_status(second), 0);
	KUNIT_EXPECT_EQ(test, f->resets, 1);
	KUNIT_EXPECT_EQ(test, f->engine->error, 0);
	copy_expect_desc(test, 0, 0x5000, COPY_HBM + SZ_1M, SZ_64K);
	copy_expect_desc(test, 1, 0x5000, COPY_HBM + SZ_1M + SZ_64K, SZ_64K);
	copy_batches_done(f, 1);
	KUNIT_EXPECT_EQ(test, dma_fence_get_status(second), 1);
	copy_end(first);
	copy_end(second);
}

/* Who comes while the queue comes to a stop has nothing to do with the failure. */
static void neuron_copy_joins_a_restart(struct kunit *test)
{
	struct copy_fixture *f = test->priv;
	struct neuron_copy_job *bad = copy_job(test, COPY_HBM, SZ_64K);
	struct dma_fence *first = copy_begin(test, bad);

	f->joins = copy_job(test, COPY_HBM + SZ_1M, SZ_64K);
	mutex_lock(&f->ndev->reset_lock);
	copy_restart(f->engine, -EIO);
	mutex_unlock(&f->ndev->reset_lock);
	KUNIT_EXPECT_EQ(test, dma_fence_get_status(first), -EIO);
	KUNIT_ASSERT_FALSE(test, IS_ERR_OR_NULL(f->joined));
	copy_expect_desc(test, 0, 0x5000, COPY_HBM + SZ_1M, SZ_64K);
	copy_batches_done(f, 1);
	KUNIT_EXPECT_EQ(test, dma_fence_get_status(f->joined), 1);
	copy_end(first);
	copy_end(f->joined);
}

/* An engine that has stopped for good takes nothing, and what is on it ends. */
static void neuron_copy_stops_for_good(struct kunit *test)
{
	struct copy_fixture *f = test->priv;
	struct neuron_copy_job *late = copy_job(test, COPY_HBM, SZ_64K);
	struct dma_fence *first = copy_begin(test, copy_job(test, COPY_HBM, SZ_1M));
	struct dma_fence *second = copy_begin(test, copy_job(test, COPY_HBM, SZ_1M));

	neuron_copy_stop(f->ndev, -ENODEV);
	KUNIT_EXPECT_EQ(test, dma_fence_get_status(first), -ENODEV);
	KUNIT_EXPECT_EQ(test, dma_fence_get_status(second), -ENODEV);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(copy_start(&late->base)), -ENODEV);
	/* A marker that comes after all is of nobody. */
	copy_batches_done(f, 1);
	KUNIT_EXPECT_FALSE(test, late->started);
	neuron_fence_free(late->done);
	copy_end(first);
	copy_end(second);
}

static void neuron_copy_of_a_closed_file_ends(struct kunit *test)
{
	struct copy_fixture *f = test->priv;
	struct neuron_copy_job *job = copy_job(test, COPY_HBM, SZ_64K);

	f->nfile->closed = true;
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(copy_start(&job->base)), -ECANCELED);
	KUNIT_EXPECT_EQ(test, f->engine->ring.used, 0);
	neuron_fence_free(job->done);
}

static struct kunit_case neuron_copy_cases[] = { KUNIT_CASE(neuron_copy_cuts_at_pages),
						 KUNIT_CASE(neuron_copy_refills_the_ring),
						 KUNIT_CASE(neuron_copy_restarts_the_others),
						 KUNIT_CASE(neuron_copy_joins_a_restart),
						 KUNIT_CASE(neuron_copy_stops_for_good),
						 KUNIT_CASE(neuron_copy_of_a_closed_file_ends),
						 {} };

static struct kunit_suite neuron_copy_suite = {
	.name = "neuron_copy",
	.init = copy_test_init,
	.test_cases = neuron_copy_cases,
};

kunit_test_suite(neuron_copy_suite);
