// SPDX-License-Identifier: Apache-2.0
/* Promises of inproc.h that the runtime cannot show from above: errors, time-outs, cancellation. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "asm.h"
#include "inproc_priv.h"

#define SECOND 1000000000ll
#define STACK  (64ull << 20)

struct rig {
	struct nm_inproc *ip;
	uint32_t ctx, sync;
	uint64_t point;
};

static int64_t after(int64_t ns)
{
	return (int64_t)ip_now_ns() + ns;
}

static int setup(void **state)
{
	const struct nm_inproc_config config = {
		.cores = 2,
		.hbm_bytes = STACK,
		.exec_timeout_ns = SECOND,
		.log_level = NM_LOG_ERROR,
	};
	struct rig *rig = calloc(1, sizeof(*rig));

	*state = rig;
	if (nm_inproc_open(&config, &rig->ip))
		return -1;
	return nm_inproc_ctx_create(rig->ip, 1 << 0, 0, &rig->ctx, NULL) ||
	       nm_inproc_sync_create(rig->ip, &rig->sync);
}

static int teardown(void **state)
{
	struct rig *rig = *state;
	struct nm_inproc_memory memory;
	int left;

	nm_inproc_ctx_destroy(rig->ip, rig->ctx);
	nm_inproc_memory(rig->ip, &memory);
	left = memory.hbm_used || memory.host_used;
	nm_inproc_close(rig->ip);
	free(rig);
	return left ? -1 : 0;
}

static uint32_t bo_new(struct rig *rig, uint64_t size, uint32_t flags)
{
	uint32_t handle;

	assert_int_equal(nm_inproc_bo_create(rig->ip, &size, flags, &handle), 0);
	return handle;
}

static uint32_t load(struct rig *rig, struct program *p)
{
	uint32_t handle;
	size_t size;
	void *image = asm_finish(p, &size);

	assert_int_equal(nm_inproc_program_load(rig->ip, image, size, &handle), 0);
	free(image);
	return handle;
}

/* A program that does nothing, with a slot if wanted. */
static uint32_t idle_program(struct rig *rig, bool slot)
{
	struct program *p = calloc(1, sizeof(*p));
	uint32_t handle;

	if (slot)
		asm_slot(p, NPROG_SLOT_INOUT, 4096);
	asm_inst(p, ISA_SYNC, ISA_NOP);
	handle = load(rig, p);
	free(p);
	return handle;
}

/* One that waits for ever when stalls are not detected. */
static uint32_t hanging_program(struct rig *rig)
{
	struct program *p = calloc(1, sizeof(*p));
	uint32_t handle;

	asm_wait(asm_inst(p, ISA_VECTOR, ISA_NOP), 1, 1);
	handle = load(rig, p);
	free(p);
	ip_exi_write(rig->ip, EXI_FEATURES, 0);
	return handle;
}

/* One that goes in a circle. */
static uint32_t endless_program(struct rig *rig)
{
	struct program *p = calloc(1, sizeof(*p));
	struct isa_inst *in;
	uint32_t handle;

	asm_inst(p, ISA_VECTOR, ISA_NOP);
	in = asm_inst(p, ISA_VECTOR, ISA_BRANCH);
	in->reg.op = ISA_IS_EQ;
	handle = load(rig, p);
	free(p);
	return handle;
}

/* Launches with the rig's next point as out fence, after a point of the rig's timeline. */
static int submit(struct rig *rig, uint32_t program, uint64_t in_point)
{
	const struct nm_inproc_sync in = { .handle = rig->sync, .point = in_point };
	const struct nm_inproc_sync out = { .handle = rig->sync, .point = rig->point + 1 };
	const struct nm_inproc_submit s = {
		.ctx = rig->ctx,
		.program = program,
		.n_in = in_point ? 1 : 0,
		.n_out = 1,
		.in = &in,
		.out = &out,
	};
	int ret = nm_inproc_submit(rig->ip, &s);

	if (!ret)
		rig->point++;
	return ret;
}

static int wait_all(struct rig *rig)
{
	return nm_inproc_sync_wait(rig->ip, rig->sync, rig->point, after(60 * SECOND));
}

/* --- tests ------------------------------------------------------------------------------- */

static void bad_handles_and_sizes(void **state)
{
	struct rig *rig = *state;
	struct nm_inproc_ctx_state ctx_state;
	uint32_t handle;
	uint64_t size = 0;
	void *ptr;

	assert_int_equal(nm_inproc_bo_create(rig->ip, &size, NM_BO_HBM, &handle), -EINVAL);
	size = 1;
	assert_int_equal(nm_inproc_bo_create(rig->ip, &size, 0, &handle), -EINVAL);
	assert_int_equal(nm_inproc_bo_create(rig->ip, &size, NM_BO_HBM | NM_BO_HOST, &handle),
			 -EINVAL);
	assert_int_equal(nm_inproc_bo_create(rig->ip, &size, NM_BO_HBM | 8, &handle), -EINVAL);
	size = UINT64_MAX;
	assert_int_equal(nm_inproc_bo_create(rig->ip, &size, NM_BO_HBM, &handle), -ENOSPC);
	assert_int_equal(nm_inproc_bo_create(rig->ip, &size, NM_BO_HOST, &handle), -ENOMEM);
	size = 1;
	assert_int_equal(nm_inproc_bo_create(rig->ip, &size, NM_BO_HBM, &handle), 0);
	assert_int_equal(size, 4096);
	assert_int_equal(nm_inproc_bo_map(rig->ip, handle, &ptr), -EACCES);
	assert_int_equal(nm_inproc_bo_close(rig->ip, handle), 0);
	assert_int_equal(nm_inproc_bo_close(rig->ip, handle), -ENOENT);
	assert_int_equal(nm_inproc_bo_map(rig->ip, handle, &ptr), -ENOENT);
	assert_int_equal(nm_inproc_ctx_create(rig->ip, 1 << 2, 0, &handle, NULL), -EINVAL);
	assert_int_equal(nm_inproc_ctx_create(rig->ip, 1 << 0, 3, &handle, NULL), -EINVAL);
	assert_int_equal(nm_inproc_ctx_state(rig->ip, 77, &ctx_state), -ENOENT);
	assert_int_equal(nm_inproc_program_unload(rig->ip, 77), -ENOENT);
	assert_int_equal(nm_inproc_sync_wait(rig->ip, 77, 1, 0), -ENOENT);
}

static void queues_of_a_core_run_out(void **state)
{
	struct rig *rig = *state;
	uint32_t ctx[EXI_QUEUE_COUNT], more;

	for (int i = 0; i < EXI_QUEUE_COUNT; i++)
		assert_int_equal(nm_inproc_ctx_create(rig->ip, 1 << 1, 0, &ctx[i], NULL), 0);
	assert_int_equal(nm_inproc_ctx_create(rig->ip, 1 << 1, 0, &more, NULL), -ENOSPC);
	for (int i = 0; i < EXI_QUEUE_COUNT; i++)
		assert_int_equal(nm_inproc_ctx_destroy(rig->ip, ctx[i]), 0);
	assert_int_equal(nm_inproc_ctx_create(rig->ip, 1 << 1, 0, &more, NULL), 0);
	assert_int_equal(nm_inproc_ctx_destroy(rig->ip, more), 0);
}

/* The rig has a context on core 0. */
static void contexts_spread_over_a_set(void **state)
{
	static const uint32_t expected[] = { 1, 0, 1, 0 };
	struct rig *rig = *state;
	uint32_t ctx[4], core, wrong;

	for (int i = 0; i < 4; i++) {
		assert_int_equal(nm_inproc_ctx_create(rig->ip, 0x3, 0, &ctx[i], &core), 0);
		assert_int_equal(core, expected[i]);
	}
	assert_int_equal(nm_inproc_ctx_destroy(rig->ip, ctx[1]), 0);
	assert_int_equal(nm_inproc_ctx_destroy(rig->ip, ctx[3]), 0);
	assert_int_equal(nm_inproc_ctx_create(rig->ip, 0x2, 0, &ctx[1], &core), 0);
	assert_int_equal(core, 1);
	assert_int_equal(nm_inproc_ctx_create(rig->ip, 0x3, 0, &ctx[3], &core), 0);
	assert_int_equal(core, 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(nm_inproc_ctx_destroy(rig->ip, ctx[i]), 0);
	assert_int_equal(nm_inproc_ctx_create(rig->ip, 0, 0, &wrong, NULL), -EINVAL);
	assert_int_equal(nm_inproc_ctx_create(rig->ip, 0x7, 0, &wrong, NULL), -EINVAL);
}

static void slots_are_checked(void **state)
{
	struct rig *rig = *state;
	const uint32_t program = idle_program(rig, true);
	const uint32_t hbm = bo_new(rig, 8192, NM_BO_HBM), host = bo_new(rig, 8192, NM_BO_HOST);
	static const struct {
		int handle; /* 0 none, 1 hbm, 2 host */
		uint32_t flags;
		uint64_t offset, size;
		int error;
	} cases[] = {
		{ 1, 0, 0, 4096, 0 },
		{ 1, 0, 4096, 4096, 0 },
		{ 1, 0, 4097, 4096, -EINVAL },
		{ 1, 0, 0, 4095, -EINVAL },
		{ 1, 0, UINT64_MAX, 4096, -EINVAL },
		{ 1, 0, 4096, UINT64_MAX, -EINVAL },
		{ 2, 0, 0, 4096, -EINVAL },
		{ 0, 0, 0, 4096, -ENOENT },
		{ 0, NM_SLOT_INLINE, 0, 8, -EINVAL },
		{ 1, 2, 0, 4096, -EINVAL },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct nm_inproc_slot slot = {
			.handle = cases[i].handle == 1 ? hbm :
				  cases[i].handle == 2 ? host :
							 0,
			.flags = cases[i].flags,
			.offset = cases[i].offset,
			.size = cases[i].size,
		};
		const struct nm_inproc_submit s = {
			.ctx = rig->ctx,
			.program = program,
			.n_slots = 1,
			.slots = &slot,
		};

		assert_int_equal(nm_inproc_submit(rig->ip, &s), cases[i].error);
	}
	assert_int_equal(submit(rig, program, 0), -EINVAL); /* no slots */
	assert_int_equal(submit(rig, program + 1, 0), -ENOENT);
	nm_inproc_bo_close(rig->ip, hbm);
	nm_inproc_bo_close(rig->ip, host);
	nm_inproc_program_unload(rig->ip, program);
}

static void fences_are_checked(void **state)
{
	struct rig *rig = *state;
	const uint32_t program = idle_program(rig, false);
	uint64_t point;

	assert_int_equal(submit(rig, program, 5), -EINVAL); /* nobody will reach it */
	assert_int_equal(submit(rig, program, 0), 0);
	assert_int_equal(wait_all(rig), 0);
	assert_int_equal(nm_inproc_sync_signal(rig->ip, rig->sync, 1), -EINVAL);
	assert_int_equal(nm_inproc_sync_signal(rig->ip, rig->sync, 9), 0);
	assert_int_equal(nm_inproc_sync_query(rig->ip, rig->sync, &point), 0);
	assert_int_equal(point, 9);
	assert_int_equal(submit(rig, program, 0), -EINVAL); /* would go back */
	assert_int_equal(nm_inproc_sync_wait(rig->ip, rig->sync, 10, after(1000000)), -ETIME);
	nm_inproc_program_unload(rig->ip, program);
}

/* Launches that wait for copies and for each other, copies that wait for launches. */
static void fences_order_queues_and_copies(void **state)
{
	struct rig *rig = *state;
	const uint32_t program = idle_program(rig, false);
	const uint32_t hbm = bo_new(rig, 1 << 20, NM_BO_HBM);
	const uint32_t host = bo_new(rig, 1 << 20, NM_BO_HOST | NM_BO_MMAP);
	uint32_t done;
	struct nm_inproc_sync in, out;
	struct nm_inproc_submit s = {
		.ctx = rig->ctx, .program = program, .n_in = 1, .n_out = 1, .in = &in, .out = &out
	};
	struct nm_inproc_copy c = { .src = host,
				    .dst = hbm,
				    .size = 1 << 20,
				    .n_in = 1,
				    .n_out = 1,
				    .in = &in,
				    .out = &out };
	struct timespec nap = { .tv_nsec = 20000000 };
	uint64_t point;

	assert_int_equal(nm_inproc_sync_create(rig->ip, &done), 0);
	out = (struct nm_inproc_sync){ .handle = done, .point = 1 };
	c.n_in = 0;
	assert_int_equal(nm_inproc_copy(rig->ip, &c), 0);
	c.n_in = 1;
	in = (struct nm_inproc_sync){ .handle = done, .point = 1 };
	for (uint64_t i = 2; i < 600; i++) {
		out.point = i;
		s.n_in = i % 3 == 0;
		in.point = i - 1;
		if (i % 50 == 0)
			assert_int_equal(nm_inproc_copy(rig->ip, &c), 0);
		else
			assert_int_equal(nm_inproc_submit(rig->ip, &s), 0);
	}
	assert_int_equal(nm_inproc_sync_wait(rig->ip, done, 599, after(60 * SECOND)), 0);
	nanosleep(&nap, NULL);
	assert_int_equal(nm_inproc_sync_query(rig->ip, done, &point), 0);
	assert_int_equal(point, 599);
	nm_inproc_sync_destroy(rig->ip, done);
	nm_inproc_bo_close(rig->ip, hbm);
	nm_inproc_bo_close(rig->ip, host);
	nm_inproc_program_unload(rig->ip, program);
}

/* A program without an end is stopped after the time limit; what is behind it in its context is not run. */
static void is_stopped(struct rig *rig, uint32_t hang)
{
	const uint32_t idle = idle_program(rig, false);
	struct nm_inproc_ctx_state ctx_state;
	uint32_t bystander, mine = rig->ctx;

	assert_int_equal(nm_inproc_ctx_create(rig->ip, 1 << 0, 0, &bystander, NULL), 0);
	assert_int_equal(submit(rig, hang, 0), 0);
	assert_int_equal(submit(rig, idle, 0), 0);
	rig->ctx = bystander;
	assert_int_equal(submit(rig, idle, 0), 0);
	rig->ctx = mine;
	assert_int_equal(wait_all(rig), 0);
	assert_int_equal(nm_inproc_ctx_state(rig->ip, rig->ctx, &ctx_state), 0);
	assert_int_equal(ctx_state.state, NM_CTX_TIMEDOUT);
	assert_int_equal(ctx_state.program, hang);
	assert_int_equal(ctx_state.launches, 0);
	assert_int_equal(submit(rig, idle, 0), -EIO);
	/* The other context of the core lost nothing. */
	assert_int_equal(nm_inproc_ctx_state(rig->ip, bystander, &ctx_state), 0);
	assert_int_equal(ctx_state.state, NM_CTX_OK);
	assert_int_equal(ctx_state.launches, 1);
	nm_inproc_ctx_destroy(rig->ip, bystander);
	nm_inproc_program_unload(rig->ip, hang);
	nm_inproc_program_unload(rig->ip, idle);
}

static void a_hang_is_stopped(void **state)
{
	is_stopped(*state, hanging_program(*state));
}

static void a_loop_is_stopped(void **state)
{
	is_stopped(*state, endless_program(*state));
}

static void destroying_a_context_cancels(void **state)
{
	struct rig *rig = *state;
	const uint32_t hang = hanging_program(rig), idle = idle_program(rig, false);

	assert_int_equal(submit(rig, hang, 0), 0);
	for (int i = 0; i < 100; i++)
		assert_int_equal(submit(rig, idle, i % 2 ? rig->point : 0), 0);
	assert_int_equal(nm_inproc_sync_wait(rig->ip, rig->sync, 1, after(1000000)), -ETIME);
	assert_int_equal(nm_inproc_ctx_destroy(rig->ip, rig->ctx), 0);
	assert_int_equal(nm_inproc_sync_wait(rig->ip, rig->sync, rig->point, 0), 0);
	/* The queue is free for the next one, and works. */
	assert_int_equal(nm_inproc_ctx_create(rig->ip, 1 << 0, 0, &rig->ctx, NULL), 0);
	assert_int_equal(submit(rig, idle, 0), 0);
	assert_int_equal(wait_all(rig), 0);
	nm_inproc_program_unload(rig->ip, hang);
	nm_inproc_program_unload(rig->ip, idle);
}

/* What is left is freed, in whatever state it is. */
static void closing_drops_everything(void **state)
{
	const struct nm_inproc_config config = {
		.cores = 1,
		.hbm_bytes = STACK,
		.log_level = NM_LOG_ERROR,
	};
	struct rig rig = { 0 };
	struct nm_inproc_sync in, out;
	uint32_t a, b, hang;

	(void)state;
	assert_int_equal(nm_inproc_open(&config, &rig.ip), 0);
	assert_int_equal(nm_inproc_ctx_create(rig.ip, 1 << 0, 2, &rig.ctx, NULL), 0);
	assert_int_equal(nm_inproc_sync_create(rig.ip, &rig.sync), 0);
	hang = hanging_program(&rig);
	assert_int_equal(submit(&rig, hang, 0), 0);
	assert_int_equal(submit(&rig, hang, 1), 0);
	a = bo_new(&rig, 1 << 20, NM_BO_HBM);
	b = bo_new(&rig, 1 << 20, NM_BO_HOST);
	in = (struct nm_inproc_sync){ .handle = rig.sync, .point = 1 };
	out = (struct nm_inproc_sync){ .handle = rig.sync, .point = 3 };
	assert_int_equal(nm_inproc_copy(rig.ip, &(struct nm_inproc_copy){ .src = a,
									  .dst = b,
									  .size = 4096,
									  .n_in = 1,
									  .n_out = 1,
									  .in = &in,
									  .out = &out }),
			 0);
	assert_int_equal(
		nm_inproc_copy(rig.ip,
			       &(struct nm_inproc_copy){ .src = b, .dst = a, .size = 1 << 20 }),
		0);
	nm_inproc_close(rig.ip);
}

static void copies_are_checked(void **state)
{
	struct rig *rig = *state;
	const uint32_t hbm = bo_new(rig, 8192, NM_BO_HBM), host = bo_new(rig, 4096, NM_BO_HOST);
	static const struct {
		bool host_dst;
		uint64_t src_offset, dst_offset, size;
		int error;
	} cases[] = {
		{ true, 0, 0, 4096, 0 },
		{ true, 4096, 0, 4096, 0 },
		{ true, 0, 0, 0, -EINVAL },
		{ true, 0, 1, 4096, -EINVAL },
		{ true, 8192, 0, 1, -EINVAL },
		{ true, UINT64_MAX, 0, 2, -EINVAL },
		{ true, 1, 0, UINT64_MAX, -EINVAL },
		{ false, 0, 4096, 4096, 0 },
		{ false, 0, 4095, 4096, -EINVAL },
		{ false, 4095, 0, 4096, -EINVAL },
		{ false, 0, 0, 1, -EINVAL },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct nm_inproc_copy c = {
			.src = hbm,
			.dst = cases[i].host_dst ? host : hbm,
			.src_offset = cases[i].src_offset,
			.dst_offset = cases[i].dst_offset,
			.size = cases[i].size,
		};

		assert_int_equal(nm_inproc_copy(rig->ip, &c), cases[i].error);
	}
	nm_inproc_bo_close(rig->ip, hbm);
	nm_inproc_bo_close(rig->ip, host);
	/* Copies in flight hold the buffers; an order of its own shows that they are done. */
	for (int i = 0; i < 1000; i++) {
		struct timespec nap = { .tv_nsec = 1000000 };
		struct nm_inproc_memory memory;

		nm_inproc_memory(rig->ip, &memory);
		if (!memory.hbm_used && !memory.host_used)
			break;
		nanosleep(&nap, NULL);
	}
}

/* Each lane's ring is filled again while it is being emptied. */
static void copies_outrun_the_rings(void **state)
{
	enum { COPIES = 48 };
	struct rig *rig = *state;
	const uint64_t size = 16 << 20;
	const uint32_t src = bo_new(rig, size, NM_BO_HBM), dst = bo_new(rig, size, NM_BO_HBM);
	uint32_t sync[COPIES];

	for (int i = 0; i < COPIES; i++) {
		struct nm_inproc_sync out = { .point = 1 };

		assert_int_equal(nm_inproc_sync_create(rig->ip, &out.handle), 0);
		sync[i] = out.handle;
		assert_int_equal(nm_inproc_copy(rig->ip, &(struct nm_inproc_copy){ .src = src,
										   .dst = dst,
										   .size = size,
										   .n_out = 1,
										   .out = &out }),
				 0);
	}
	for (int i = 0; i < COPIES; i++) {
		assert_int_equal(nm_inproc_sync_wait(rig->ip, sync[i], 1, after(20 * SECOND)), 0);
		nm_inproc_sync_destroy(rig->ip, sync[i]);
	}
	nm_inproc_bo_close(rig->ip, src);
	nm_inproc_bo_close(rig->ip, dst);
}

static void memory_fills_and_comes_back(void **state)
{
	struct rig *rig = *state;
	uint32_t handle[2048], n = 0;
	struct nm_inproc_memory memory;
	unsigned int seed = 7;
	uint64_t size;

	for (;;) {
		size = 1 + (uint64_t)(rand_r(&seed) % (1 << 20));
		if (n == 2048 || nm_inproc_bo_create(rig->ip, &size, NM_BO_HBM, &handle[n]))
			break;
		n++;
	}
	nm_inproc_memory(rig->ip, &memory);
	assert_true(memory.hbm_used > memory.hbm_bytes - (8 << 20));
	/* Free in another order, so that ranges merge on both sides. */
	for (uint32_t i = n; i > 1; i--) {
		uint32_t j = (uint32_t)rand_r(&seed) % i, t = handle[j];

		handle[j] = handle[i - 1];
		handle[i - 1] = t;
	}
	while (n)
		assert_int_equal(nm_inproc_bo_close(rig->ip, handle[--n]), 0);
	/* Whole stacks are contiguous again. */
	for (n = 0; n < V3_HBM_STACKS; n++) {
		size = STACK - V3_HBM_FW_CARVEOUT;
		assert_int_equal(nm_inproc_bo_create(rig->ip, &size, NM_BO_HBM, &handle[n]), 0);
	}
	size = 1;
	assert_int_equal(nm_inproc_bo_create(rig->ip, &size, NM_BO_HBM, &handle[n]), -ENOSPC);
	while (n)
		nm_inproc_bo_close(rig->ip, handle[--n]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(bad_handles_and_sizes, setup, teardown),
		cmocka_unit_test_setup_teardown(queues_of_a_core_run_out, setup, teardown),
		cmocka_unit_test_setup_teardown(contexts_spread_over_a_set, setup, teardown),
		cmocka_unit_test_setup_teardown(slots_are_checked, setup, teardown),
		cmocka_unit_test_setup_teardown(fences_are_checked, setup, teardown),
		cmocka_unit_test_setup_teardown(fences_order_queues_and_copies, setup, teardown),
		cmocka_unit_test_setup_teardown(a_hang_is_stopped, setup, teardown),
		cmocka_unit_test_setup_teardown(a_loop_is_stopped, setup, teardown),
		cmocka_unit_test_setup_teardown(destroying_a_context_cancels, setup, teardown),
		cmocka_unit_test(closing_drops_everything),
		cmocka_unit_test_setup_teardown(copies_are_checked, setup, teardown),
		cmocka_unit_test_setup_teardown(copies_outrun_the_rings, setup, teardown),
		cmocka_unit_test_setup_teardown(memory_fills_and_comes_back, setup, teardown),
	};

	return cmocka_run_group_tests_name("in-process front end", tests, NULL, NULL);
}
