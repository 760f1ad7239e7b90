// SPDX-License-Identifier: GPL-2.0-only
/*
 * Launches: slot tables and ring entries on the way down, records on the way up, and who is taken
 * for hung. Part of neuron_sched.c; registers are an array and the test is the device.
 */

#include <kunit/static_stub.h>
#include <kunit/test.h>

#define SCHED_HOST  0x400000000000ull
#define SCHED_SLOTS 3
#define SCHED_QUEUE 5
#define SCHED_CORE  1

struct sched_fixture {
	struct neuron_device *ndev;
	struct neuron_hal hal;
	struct neuron_file *nfile;
	struct neuron_ctx *ctx;
	struct neuron_prog *prog;
	u32 doorbell, rings;
	u32 status, started;
};

static void sched_reg_write(const struct neuron_regs *regs, u32 offset, u32 value)
{
	struct sched_fixture *f = kunit_get_current_test()->priv;

	if (offset != EXI_QUEUE(SCHED_CORE, SCHED_QUEUE) + EXI_Q_DOORBELL)
		return;
	f->doorbell = value;
	f->rings++;
}

static u32 sched_reg_read(const struct neuron_regs *regs, u32 offset)
{
	struct sched_fixture *f = kunit_get_current_test()->priv;

	switch (offset - EXI_QUEUE(SCHED_CORE, SCHED_QUEUE)) {
	case EXI_Q_STATUS:
		return f->status;
	case EXI_Q_STARTED:
		return f->started;
	default:
		return 0;
	}
}

static void sched_init_ctx(struct kunit *test, struct sched_fixture *f)
{
	struct neuron_ctx *ctx = f->ctx;
	u32 i;

	ctx->ndev = f->ndev;
	ctx->nfile = f->nfile;
	ctx->core_index = SCHED_CORE;
	ctx->core = &f->ndev->core[SCHED_CORE];
	ctx->queue = SCHED_QUEUE;
	ctx->fence_context = dma_fence_context_alloc(1);
	ctx->stop_error = -ECANCELED;
	ctx->running = true;
	ctx->mem = kunit_kzalloc(test, sizeof(*ctx->mem), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ctx->mem);
	for (i = 0; i < NEURON_RING_ENTRIES; i++) {
		ctx->slots[i] = kunit_kcalloc(test, SCHED_SLOTS, sizeof(**ctx->slots), GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, ctx->slots[i]);
		ctx->slots_dma[i] = 0x1000 * (i + 1);
	}
}

static int sched_init(struct kunit *test)
{
	struct sched_fixture *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, f);
	test->priv = f;
	f->ndev = kunit_kzalloc(test, sizeof(*f->ndev), GFP_KERNEL);
	f->nfile = kunit_kzalloc(test, sizeof(*f->nfile), GFP_KERNEL);
	f->ctx = kunit_kzalloc(test, sizeof(*f->ctx), GFP_KERNEL);
	f->prog = kunit_kzalloc(test, struct_size(f->prog, slots, SCHED_SLOTS), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, f->ndev);
	KUNIT_ASSERT_NOT_NULL(test, f->nfile);
	KUNIT_ASSERT_NOT_NULL(test, f->ctx);
	KUNIT_ASSERT_NOT_NULL(test, f->prog);
	f->hal.host_base = SCHED_HOST;
	f->ndev->hal = &f->hal;
	spin_lock_init(&f->ndev->core[SCHED_CORE].lock);
	f->prog->id = 7;
	f->prog->device_id = 0x1234567890ull;
	f->prog->hbm.addr = 0x8000;
	f->prog->image_bytes = 640;
	f->prog->n_slots = SCHED_SLOTS;
	f->status = EXI_Q_RUNNING;
	sched_init_ctx(test, f);
	kunit_activate_static_stub(test, neuron_reg_write, sched_reg_write);
	kunit_activate_static_stub(test, neuron_reg_read, sched_reg_read);
	return 0;
}

static struct neuron_job *sched_job(struct kunit *test)
{
	struct sched_fixture *f = test->priv;
	struct neuron_job *job;
	u32 i;

	job = kunit_kzalloc(test, struct_size(job, slots, SCHED_SLOTS), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, job);
	job->n_slots = SCHED_SLOTS;
	job->ctx = f->ctx;
	job->prog = f->prog;
	job->done = neuron_fence_alloc();
	KUNIT_ASSERT_NOT_NULL(test, job->done);
	for (i = 0; i < SCHED_SLOTS; i++)
		job->slots[i].base = cpu_to_le64(0x10000 * (f->ctx->tail + 1) + i);
	return job;
}

/* Launches; the caller puts the fence. */
static struct dma_fence *sched_launch(struct kunit *test)
{
	struct dma_fence *fence = sched_start(&sched_job(test)->base);

	KUNIT_ASSERT_FALSE(test, IS_ERR(fence));
	return fence;
}

/* The device answers launch @seqno. */
static struct exi_record *sched_answer(struct sched_fixture *f, u32 seqno, u16 status)
{
	struct exi_record *record = &f->ctx->mem->cq[seqno % NEURON_RING_ENTRIES];

	memset(record, 0, sizeof(*record));
	record->seqno = cpu_to_le32(seqno);
	record->status = cpu_to_le16(status);
	record->start_ns = cpu_to_le64(1000);
	record->end_ns = cpu_to_le64(1250);
	record->engine = U8_MAX;
	record->slot = cpu_to_le16(U16_MAX);
	record->phase = (seqno / NEURON_RING_ENTRIES & 1) ^ 1;
	return record;
}

static void neuron_sched_writes_entry_and_slots(struct kunit *test)
{
	struct sched_fixture *f = test->priv;
	struct exi_launch *entry = &f->ctx->mem->ring[0];
	struct dma_fence *fence = sched_launch(test);
	u32 i;

	KUNIT_EXPECT_EQ(test, le64_to_cpu(entry->program_addr), 0x8000);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(entry->program_id), 0x1234567890ull);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(entry->program_bytes), 640);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(entry->n_slots), SCHED_SLOTS);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(entry->slots_addr), SCHED_HOST | 0x1000);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(entry->seqno), 0);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(entry->flags), EXI_LAUNCH_IRQ);
	for (i = 0; i < SCHED_SLOTS; i++)
		KUNIT_EXPECT_EQ(test, le64_to_cpu(f->ctx->slots[0][i].base), 0x10000 + i);
	KUNIT_EXPECT_EQ(test, f->doorbell, 1);
	KUNIT_EXPECT_FALSE(test, dma_fence_is_signaled(fence));

	sched_answer(f, 0, EXI_OK);
	neuron_ctx_drain(f->ctx);
	KUNIT_EXPECT_EQ(test, dma_fence_get_status(fence), 1);
	KUNIT_EXPECT_EQ(test, f->ctx->state.launches, 1);
	KUNIT_EXPECT_EQ(test, f->ctx->state.device_ns, 250);
	dma_fence_put(fence);
}

/* Three laps, several in flight: the phase of a record tells it from the one a lap before. */
static void neuron_sched_goes_round_the_ring(struct kunit *test)
{
	struct dma_fence *fence[NEURON_RING_ENTRIES];
	struct sched_fixture *f = test->priv;
	u32 i, lap;

	for (lap = 0; lap < 3; lap++) {
		for (i = 0; i < NEURON_RING_ENTRIES; i++)
			fence[i] = sched_launch(test);
		neuron_ctx_drain(f->ctx);
		KUNIT_EXPECT_FALSE(test, dma_fence_is_signaled(fence[0]));
		/* The last answer is there before the others. */
		sched_answer(f, f->ctx->tail - 1, EXI_OK);
		neuron_ctx_drain(f->ctx);
		KUNIT_EXPECT_EQ(test, f->ctx->head, lap * NEURON_RING_ENTRIES);
		for (i = 0; i < NEURON_RING_ENTRIES; i++)
			sched_answer(f, lap * NEURON_RING_ENTRIES + i, EXI_OK);
		neuron_ctx_drain(f->ctx);
		for (i = 0; i < NEURON_RING_ENTRIES; i++) {
			KUNIT_EXPECT_EQ(test, dma_fence_get_status(fence[i]), 1);
			dma_fence_put(fence[i]);
		}
		KUNIT_EXPECT_EQ(test, f->ctx->head, f->ctx->tail);
	}
	KUNIT_EXPECT_EQ(test, f->doorbell, 3 * NEURON_RING_ENTRIES);
}

static void neuron_sched_reports_a_fault(struct kunit *test)
{
	struct sched_fixture *f = test->priv;
	struct drm_neuron_ctx_state *state = &f->ctx->state;
	struct dma_fence *good = sched_launch(test), *bad = sched_launch(test);
	struct dma_fence *behind = sched_launch(test);
	struct exi_record *record;

	sched_answer(f, 0, EXI_OK);
	record = sched_answer(f, 1, EXI_FAULT_SLOT_BOUNDS);
	record->engine = 4;
	record->pc = cpu_to_le32(3);
	record->opcode = 8;
	record->slot = cpu_to_le16(2);
	record->value = cpu_to_le64(0x2000);
	record->limit = cpu_to_le64(0x1000);
	sched_answer(f, 2, EXI_FAULT_ABORTED);
	neuron_ctx_drain(f->ctx);

	KUNIT_EXPECT_EQ(test, dma_fence_get_status(good), 1);
	KUNIT_EXPECT_EQ(test, dma_fence_get_status(bad), -EIO);
	KUNIT_EXPECT_EQ(test, dma_fence_get_status(behind), -ECANCELED);
	KUNIT_EXPECT_EQ(test, state->state, DRM_NEURON_CTX_FAULTED);
	KUNIT_EXPECT_EQ(test, state->fault, EXI_FAULT_SLOT_BOUNDS);
	KUNIT_EXPECT_EQ(test, state->engine, 4);
	KUNIT_EXPECT_EQ(test, state->pc, 3);
	KUNIT_EXPECT_EQ(test, state->opcode, 8);
	KUNIT_EXPECT_EQ(test, state->slot, 2);
	KUNIT_EXPECT_EQ(test, state->value, 0x2000);
	KUNIT_EXPECT_EQ(test, state->limit, 0x1000);
	KUNIT_EXPECT_EQ(test, state->program, 7);
	KUNIT_EXPECT_EQ(test, state->launches, 1);
	dma_fence_put(good);
	dma_fence_put(bad);
	dma_fence_put(behind);
}

/* A context that died between submission and run: nothing reaches the device. */
static void neuron_sched_leaves_a_dead_queue_alone(struct kunit *test)
{
	struct sched_fixture *f = test->priv;
	struct neuron_job *job = sched_job(test);

	f->ctx->running = false;
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(sched_start(&job->base)), -ECANCELED);
	KUNIT_EXPECT_FALSE(test, job->started);
	KUNIT_EXPECT_EQ(test, f->rings, 0);
	KUNIT_EXPECT_EQ(test, f->ctx->tail, 0);
	neuron_fence_free(job->done);
}

struct hung_row {
	const char *what;
	u32 status, started, suspect;
	bool dead, answered;
	bool hung;
	bool unlimited;
};

/* Of one launch that is number 0: STARTED is 0 while it waits for the core, 1 while it runs. */
static const struct hung_row hung_rows[] = {
	{ "waits for its turn", EXI_Q_RUNNING, 0, 0, false, false, false },
	{ "is on the core for the first time", EXI_Q_RUNNING, 1, 0, false, false, false },
	{ "is on the core again", EXI_Q_RUNNING, 1, 1, false, false, true },
	{ "ended just now", EXI_Q_RUNNING, 1, 1, false, true, false },
	{ "queue is halted", EXI_Q_HALTED, 1, 0, false, false, true },
	{ "doorbell was lost", EXI_Q_IDLE, 0, 0, false, false, true },
	{ "has no limit", EXI_Q_RUNNING, 1, 1, false, false, false, true },
	{ "context is dead already", EXI_Q_HALTED, 1, 1, true, false, false },
};

KUNIT_ARRAY_PARAM_DESC(hung, hung_rows, what);

static void neuron_sched_knows_who_is_hung(struct kunit *test)
{
	const struct hung_row *row = test->param_value;
	struct sched_fixture *f = test->priv;
	struct dma_fence *fence = sched_launch(test);

	f->status = row->status;
	f->started = row->started;
	f->ctx->suspect = row->suspect;
	f->ctx->running = !row->dead;
	f->ctx->timeout_ms = row->unlimited ? 0 : 1000;
	if (row->answered)
		sched_answer(f, 0, EXI_OK);
	KUNIT_EXPECT_EQ(test, sched_is_hung(f->ctx), row->hung);
	if (!row->answered) {
		sched_answer(f, 0, EXI_OK);
		neuron_ctx_drain(f->ctx);
	}
	dma_fence_put(fence);
}

struct inline_row {
	const char *what;
	struct drm_neuron_slot slot;
	int ret;
};

static const struct inline_row inline_rows[] = {
	{ "a value", { 0, DRM_NEURON_SLOT_INLINE, 0xfeedf00ddeadbeefull, 8 }, 0 },
	{ "a buffer instead", { 3, 0, 0, 4096 }, -EINVAL },
	{ "a value and a buffer", { 3, DRM_NEURON_SLOT_INLINE, 1, 8 }, -EINVAL },
	{ "four bytes", { 0, DRM_NEURON_SLOT_INLINE, 1, 4 }, -EINVAL },
	{ "an unknown flag", { 0, DRM_NEURON_SLOT_INLINE | 2, 1, 8 }, -EINVAL },
};

KUNIT_ARRAY_PARAM_DESC(inline, inline_rows, what);

static void neuron_sched_binds_values(struct kunit *test)
{
	const struct inline_row *row = test->param_value;
	struct neuron_job *job = sched_job(test);
	const __le64 before = job->slots[1].base;

	KUNIT_EXPECT_EQ(test, job_bind_inline(job, 1, &row->slot), row->ret);
	if (row->ret) {
		KUNIT_EXPECT_EQ(test, job->slots[1].base, before);
	} else {
		KUNIT_EXPECT_EQ(test, le64_to_cpu(job->slots[1].base), row->slot.offset);
		KUNIT_EXPECT_EQ(test, le64_to_cpu(job->slots[1].size), 8);
		KUNIT_EXPECT_EQ(test, le32_to_cpu(job->slots[1].rights),
				EXI_SLOT_READ | EXI_SLOT_INLINE);
	}
	neuron_fence_free(job->done);
}

static struct kunit_case neuron_sched_cases[] = {
	KUNIT_CASE(neuron_sched_writes_entry_and_slots),
	KUNIT_CASE(neuron_sched_goes_round_the_ring),
	KUNIT_CASE(neuron_sched_reports_a_fault),
	KUNIT_CASE(neuron_sched_leaves_a_dead_queue_alone),
	KUNIT_CASE_PARAM(neuron_sched_knows_who_is_hung, hung_gen_params),
	KUNIT_CASE_PARAM(neuron_sched_binds_values, inline_gen_params),
	{}
};

static struct kunit_suite neuron_sched_suite = {
	.name = "neuron_sched",
	.init = sched_init,
	.test_cases = neuron_sched_cases,
};

kunit_test_suite(neuron_sched_suite);
