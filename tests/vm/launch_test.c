// SPDX-License-Identifier: Apache-2.0
/* Launches: results, order, faults and what they say, isolation, time-outs. */
#include "dev.h"
#include "groups.h"

#include <errno.h>
#include <string.h>
#include <xf86drm.h>

static void a_program_of_nothing_completes(void **state)
{
	uint32_t ctx = ctx_new(FD, 0), program = prog_nop(FD);
	struct drm_neuron_ctx_state s;

	assert_int_equal(launch_now(FD, ctx, program, NULL, 0), 1);
	s = ctx_state(FD, ctx);
	assert_int_equal(s.ctx, ctx);
	assert_int_equal(s.state, DRM_NEURON_CTX_OK);
	assert_int_equal(s.launches, 1);
	assert_int_equal(s.insts[ISA_SYNC], 2);
	assert_int_equal(s.insts[ISA_TENSOR], 0);
	assert_true(s.device_ns > 0);
}

static void memset_reaches_hbm(void **state)
{
	const unsigned int n = 512;
	uint32_t ctx = ctx_new(FD, 0), program = prog_fill(FD, 1.5f, n);
	uint32_t bo = bo_new(FD, TILE_PARTS * 4 * n, BO_HBM | BO_MMAP);
	const float *p = bo_map(FD, bo);

	assert_int_equal(launch_now(FD, ctx, program, &bo, 1), 1);
	for (unsigned int i = 0; i < TILE_PARTS * n; i++)
		if (p[i] != 1.5f)
			fail_msg("element %u is %f", i, (double)p[i]);
	assert_int_equal(ctx_state(FD, ctx).dma_bytes, TILE_PARTS * 4 * n);
	bo_unmap(FD, bo, (void *)p);
}

static void bytes_go_through_sbuf(void **state)
{
	const uint32_t bytes = 1000;
	uint32_t program = prog_through_sbuf(FD, bytes), cores = dev_info(FD).cores;
	uint32_t bo[2] = { bo_new(FD, TILE_PARTS * bytes, BO_HBM | BO_MMAP),
			   bo_new(FD, TILE_PARTS * bytes, BO_HBM | BO_MMAP) };
	uint8_t *in = bo_map(FD, bo[0]), *out = bo_map(FD, bo[1]);

	for (uint32_t core = 0; core < cores; core++) {
		for (uint32_t i = 0; i < TILE_PARTS * bytes; i++)
			in[i] = (uint8_t)(i * 7 + core);
		assert_int_equal(launch_now(FD, ctx_new(FD, core), program, bo, 2), 1);
		assert_memory_equal(in, out, TILE_PARTS * bytes);
	}
	bo_unmap(FD, bo[0], in);
	bo_unmap(FD, bo[1], out);
}

/* The value travels in the launch: 8 bytes from the slot to SBUF to a buffer. */
static void a_scalar_needs_no_buffer(void **state)
{
	struct prog p = { .slots = 0 };
	unsigned int value = prog_slot(&p, NPROG_SLOT_SCALAR, 8);
	unsigned int result = prog_slot(&p, NPROG_SLOT_OUTPUT, 8);
	uint32_t bo = bo_new(FD, 4096, BO_HBM | BO_MMAP), sync = sync_new(FD);
	struct drm_neuron_sync out = { .handle = sync };
	struct drm_neuron_slot slot[2] = {
		{ .flags = DRM_NEURON_SLOT_INLINE, .offset = 0x1122334455667788, .size = 8 },
		{ .handle = bo, .size = 8 },
	};
	struct drm_neuron_submit args = { .slots = ARRAY(slot, 2), .out = ARRAY(&out, 1) };
	uint64_t *mapped = bo_map(FD, bo);
	struct isa_inst *inst;

	inst = prog_inst(&p, ISA_SYNC, ISA_DMA);
	inst->elem_bytes = 8;
	dma_sbuf(&inst->dma.dst, 1);
	dma_slot(&inst->dma.src, value, 0, 1);
	inst->dma.dst.nparts = 1;
	inst->dma.dst.step[0] = inst->dma.src.step[0] = 8;
	inst_signal(inst, 0);
	inst = prog_inst(&p, ISA_SYNC, ISA_DMA);
	inst->elem_bytes = 8;
	dma_slot(&inst->dma.dst, result, 0, 1);
	dma_sbuf(&inst->dma.src, 1);
	inst->dma.src.nparts = 1;
	inst->dma.dst.step[0] = inst->dma.src.step[0] = 8;
	inst_wait(inst, 0, 1);
	inst_signal(inst, 1);
	inst_wait(prog_inst(&p, ISA_SYNC, ISA_HALT), 1, 1);

	args.ctx = ctx_new(FD, 0);
	args.program = prog_load(FD, &p);
	assert_ok(neuron_call(FD, DRM_IOCTL_NEURON_SUBMIT, &args));
	assert_ok(sync_wait(FD, sync, 0, 10000));
	assert_int_equal(sync_status(FD, sync), 1);
	assert_int_equal(*mapped, 0x1122334455667788);
	bo_unmap(FD, bo, mapped);
}

/* Many more than the ring holds, each signalling a point; all done in order. */
static void launches_of_a_context_run_in_order(void **state)
{
	const uint64_t n = 600;
	uint32_t ctx = ctx_new(FD, 0), timeline = sync_new(FD);
	uint32_t program[2] = { prog_fill(FD, 1, 16), prog_fill(FD, 2, 16) };
	uint32_t bo = bo_new(FD, TILE_PARTS * 64, BO_HBM | BO_MMAP);
	const float *p = bo_map(FD, bo);
	uint64_t seen;

	for (uint64_t i = 1; i <= n; i++) {
		struct drm_neuron_slot slot = { .handle = bo, .size = TILE_PARTS * 64 };
		struct drm_neuron_sync out = { .handle = timeline, .point = i };
		struct drm_neuron_submit args = {
			.ctx = ctx,
			.program = program[i & 1],
			.slots = ARRAY(&slot, 1),
			.out = ARRAY(&out, 1),
		};

		assert_ok(neuron_call(FD, DRM_IOCTL_NEURON_SUBMIT, &args));
	}
	assert_ok(sync_wait(FD, timeline, n, 60000));
	assert_true(p[0] == 1);
	assert_int_equal(ctx_state(FD, ctx).launches, n);
	assert_ok(drmSyncobjQuery(FD, &timeline, &seen, 1));
	assert_int_equal(seen, n);
	bo_unmap(FD, bo, (void *)p);
}

/* Copy in, launch on one core, launch on another, copy out: only fences hold it together. */
static void fences_cross_cores_and_copies(void **state)
{
	const uint32_t bytes = 512, size = TILE_PARTS * bytes;
	uint32_t program = prog_through_sbuf(FD, bytes), timeline = sync_new(FD);
	uint32_t host = bo_new(FD, size, BO_HOST | BO_MMAP);
	uint32_t back = bo_new(FD, size, BO_HOST | BO_MMAP);
	uint32_t bo[3] = { bo_new(FD, size, BO_HBM), bo_new(FD, size, BO_HBM),
			   bo_new(FD, size, BO_HBM) };
	struct drm_neuron_sync sync[5];
	uint8_t *in = bo_map(FD, host), *out = bo_map(FD, back);

	for (uint32_t i = 0; i < size; i++)
		in[i] = (uint8_t)(i % 251);
	for (int i = 0; i < 5; i++)
		sync[i] = (struct drm_neuron_sync){ .handle = timeline, .point = (uint64_t)i };
	for (int step = 0; step < 4; step++) {
		struct drm_neuron_array wait = ARRAY(&sync[step], step ? 1 : 0);
		struct drm_neuron_array signal = ARRAY(&sync[step + 1], 1);

		if (step == 1 || step == 2) {
			struct drm_neuron_slot slot[2] = {
				{ .handle = bo[step - 1], .size = size },
				{ .handle = bo[step], .size = size },
			};
			struct drm_neuron_submit args = {
				.ctx = ctx_new(FD, step == 1 ? 0 : dev_info(FD).cores - 1),
				.program = program,
				.slots = ARRAY(slot, 2),
				.in = wait,
				.out = signal,
			};

			assert_ok(neuron_call(FD, DRM_IOCTL_NEURON_SUBMIT, &args));
		} else {
			struct drm_neuron_copy args = {
				.src = step ? bo[2] : host,
				.dst = step ? back : bo[0],
				.size = size,
				.in = wait,
				.out = signal,
			};

			assert_ok(neuron_call(FD, DRM_IOCTL_NEURON_COPY, &args));
		}
	}
	assert_ok(sync_wait(FD, timeline, 4, 30000));
	assert_memory_equal(in, out, size);
	bo_unmap(FD, host, in);
	bo_unmap(FD, back, out);
}

/* --- batches -------------------------------------------------------------- */

static int batch(int fd, uint32_t ctx, struct drm_neuron_launch *launches, uint32_t n, uint32_t in,
		 uint32_t out)
{
	struct drm_neuron_sync wait = { .handle = in }, signal = { .handle = out };
	struct drm_neuron_submit_batch args = {
		.ctx = ctx,
		.launches = ARRAY(launches, n),
		.in = ARRAY(&wait, in ? 1 : 0),
		.out = ARRAY(&signal, out ? 1 : 0),
	};

	return neuron_call(fd, DRM_IOCTL_NEURON_SUBMIT_BATCH, &args);
}

/* More batches than the ring and the bound hold; the last launch of each decides. */
static void a_batch_runs_in_order_behind_its_fence(void **state)
{
	const uint32_t n = dev_info(FD).batch_max, rounds = 6;
	uint32_t ctx = ctx_new(FD, 0), first = ctx_new(FD, 1), gate = sync_new(FD);
	uint32_t program[2] = { prog_fill(FD, 1, 16), prog_fill(FD, 2, 16) };
	uint32_t bo = bo_new(FD, TILE_PARTS * 64, BO_HBM | BO_MMAP), sync = sync_new(FD);
	struct drm_neuron_slot slot = { .handle = bo, .size = TILE_PARTS * 64 };
	struct drm_neuron_launch launches[64];
	const float *p = bo_map(FD, bo);

	assert_true(n >= 2 && n <= 64);
	assert_ok(launch(FD, first, prog_nop(FD), NULL, 0, gate));
	for (uint32_t i = 0; i < n; i++)
		launches[i] = (struct drm_neuron_launch){ .program = program[i & 1],
							  .slots = ARRAY(&slot, 1) };
	for (uint32_t round = 0; round < rounds; round++)
		assert_ok(batch(FD, ctx, launches, n - (round & 1), gate, sync));
	assert_ok(sync_wait(FD, sync, 0, 60000));
	assert_int_equal(sync_status(FD, sync), 1);
	assert_int_equal(ctx_state(FD, ctx).launches, rounds * n - rounds / 2);
	/* The last round is one shorter. */
	assert_true(p[0] == ((n - 2) & 1 ? 2 : 1));
	bo_unmap(FD, bo, (void *)p);
}

static void a_fault_in_a_batch_reaches_its_fence(void **state)
{
	uint32_t ctx = ctx_new(FD, 0), nop = prog_nop(FD), sync = sync_new(FD);
	struct drm_neuron_launch launches[4] = {
		{ .program = nop },
		{ .program = prog_stall(FD) },
		{ .program = nop },
		{ .program = nop },
	};
	struct drm_neuron_ctx_state s;

	assert_ok(batch(FD, ctx, launches, 4, 0, sync));
	assert_ok(sync_wait(FD, sync, 0, 10000));
	assert_int_equal(sync_status(FD, sync), -ECANCELED);
	s = ctx_state(FD, ctx);
	assert_int_equal(s.state, DRM_NEURON_CTX_FAULTED);
	assert_int_equal(s.program, launches[1].program);
	assert_int_equal(s.launches, 1);
	assert_errno(batch(FD, ctx, launches, 1, 0, sync), EIO);
}

/* --- counters ------------------------------------------------------------- */

static void launches_are_counted_by_core_and_file(void **state)
{
	struct drm_neuron_query_core before = dev_core(FD, 1), other = dev_core(FD, 0), after;
	uint32_t ctx = ctx_new(FD, 1), faulty = ctx_new(FD, 1), nop = prog_nop(FD);
	struct drm_neuron_query_usage usage;
	struct drm_neuron_query_firmware firmware;
	struct drm_neuron_query args = { .block = DRM_NEURON_QUERY_USAGE,
					 .size = sizeof(usage),
					 .ptr = (uintptr_t)&usage };

	for (int i = 0; i < 3; i++)
		assert_int_equal(launch_now(FD, ctx, nop, NULL, 0), 1);
	assert_int_equal(launch_now(FD, faulty, prog_stall(FD), NULL, 0), -EIO);
	after = dev_core(FD, 1);
	assert_int_equal(after.launches - before.launches, 3);
	assert_int_equal(after.faults - before.faults, 1);
	assert_int_equal(after.insts[ISA_SYNC] - before.insts[ISA_SYNC], 6);
	assert_int_equal(after.busy_ns - before.busy_ns, ctx_state(FD, ctx).device_ns);
	assert_true(after.active_ns > before.active_ns);
	assert_true(after.engine_ns[ISA_SYNC] >= before.engine_ns[ISA_SYNC]);
	assert_true(after.queues_used >= 2);
	assert_true(after.queues >= after.queues_used);
	assert_int_equal(dev_core(FD, 0).launches, other.launches);
	assert_int_equal(dev_core(FD, 0).active_ns, other.active_ns);

	assert_ok(neuron_call(FD, DRM_IOCTL_NEURON_QUERY, &args));
	assert_int_equal(usage.launches, 3);
	assert_int_equal(usage.core_ns, ctx_state(FD, ctx).device_ns);

	args = (struct drm_neuron_query){ .block = DRM_NEURON_QUERY_FIRMWARE,
					  .size = sizeof(firmware),
					  .ptr = (uintptr_t)&firmware };
	assert_ok(neuron_call(FD, DRM_IOCTL_NEURON_QUERY, &args));
	assert_int_not_equal(firmware.api_version, 0);
	assert_true(firmware.version >= 1u << 24);
	assert_int_not_equal(firmware.starts, 0);
	assert_int_equal(firmware.flags & ~DRM_NEURON_FIRMWARE_LOADED, 0);
}

/* --- faults --------------------------------------------------------------- */

/* One DMA of 64 bytes a partition at a slot offset; faulty or not by the arguments. */
static uint32_t prog_dma(int fd, unsigned int kind, uint64_t min_bytes, unsigned int slot,
			 uint64_t offset, bool write)
{
	struct prog p = { .slots = 0 };
	struct isa_inst *inst;

	prog_slot(&p, kind, min_bytes);
	prog_inst(&p, ISA_SYNC, ISA_NOP);
	inst = prog_inst(&p, ISA_SYNC, ISA_DMA);
	inst->elem_bytes = 1;
	dma_sbuf(write ? &inst->dma.src : &inst->dma.dst, 64);
	dma_slot(write ? &inst->dma.dst : &inst->dma.src, slot, offset, TILE_PARTS * 64);
	inst_signal(inst, 0);
	inst_wait(prog_inst(&p, ISA_SYNC, ISA_HALT), 0, 1);
	return prog_load(fd, &p);
}

/* The launch ends with EIO, the context is dead and says why, another one lives. */
static struct drm_neuron_ctx_state assert_faults(int fd, uint32_t program, uint32_t bo,
						 unsigned int n, uint32_t fault)
{
	uint32_t ctx = ctx_new(fd, 0), other = ctx_new(fd, 0), nop = prog_nop(fd);
	struct drm_neuron_ctx_state s;

	assert_int_equal(launch_now(fd, other, nop, NULL, 0), 1);
	assert_int_equal(launch_now(fd, ctx, program, &bo, n), -EIO);
	s = ctx_state(fd, ctx);
	assert_int_equal(s.state, DRM_NEURON_CTX_FAULTED);
	assert_int_equal(s.fault, fault);
	assert_int_equal(s.program, program);
	assert_int_equal(s.launches, 0);
	assert_errno(launch(fd, ctx, nop, NULL, 0, 0), EIO);
	assert_int_equal(launch_now(fd, other, nop, NULL, 0), 1);
	prog_unload(fd, program);
	assert_int_equal(ctx_state(fd, ctx).program, 0);
	ctx_close(fd, ctx);
	ctx = ctx_new(fd, 0);
	assert_int_equal(launch_now(fd, ctx, nop, NULL, 0), 1);
	ctx_close(fd, ctx);
	ctx_close(fd, other);
	return s;
}

static void a_transfer_out_of_the_slot_faults(void **state)
{
	uint32_t bo = bo_new(FD, TILE_PARTS * 64, BO_HBM);
	struct drm_neuron_ctx_state s;
	uint32_t program;

	program = prog_dma(FD, NPROG_SLOT_INOUT, TILE_PARTS * 64, 0, 1, true);
	s = assert_faults(FD, program, bo, 1, EXI_FAULT_SLOT_BOUNDS);
	assert_int_equal(s.engine, ISA_SYNC);
	assert_int_equal(s.pc, 1);
	assert_int_equal(s.opcode, ISA_DMA);
	assert_int_equal(s.slot, 0);
	assert_int_equal(s.limit, TILE_PARTS * 64);

	program = prog_dma(FD, NPROG_SLOT_INOUT, 64, 0, 1ull << 40, false);
	assert_faults(FD, program, bo, 1, EXI_FAULT_SLOT_BOUNDS);
	program = prog_dma(FD, NPROG_SLOT_INOUT, 64, 0, UINT64_MAX - 63, false);
	assert_faults(FD, program, bo, 1, EXI_FAULT_SLOT_BOUNDS);
}

static void rights_and_indices_of_slots_are_checked(void **state)
{
	uint32_t bo = bo_new(FD, TILE_PARTS * 64, BO_HBM);
	struct drm_neuron_ctx_state s;

	s = assert_faults(FD, prog_dma(FD, NPROG_SLOT_INPUT, 64, 0, 0, true), bo, 1,
			  EXI_FAULT_SLOT_RIGHTS);
	assert_int_equal(s.slot, 0);
	s = assert_faults(FD, prog_dma(FD, NPROG_SLOT_OUTPUT, 64, 0, 0, false), bo, 1,
			  EXI_FAULT_SLOT_RIGHTS);
	s = assert_faults(FD, prog_dma(FD, NPROG_SLOT_INOUT, 64, 7, 0, false), bo, 1,
			  EXI_FAULT_SLOT_INDEX);
	assert_int_equal(s.value, 7);
	assert_int_equal(s.limit, 1);
}

static void wrong_instructions_fault(void **state)
{
	struct prog p = { .slots = 0 };
	struct drm_neuron_ctx_state s;

	prog_inst(&p, ISA_GPSIMD, 0xff);
	prog_inst(&p, ISA_GPSIMD, ISA_HALT);
	s = assert_faults(FD, prog_load(FD, &p), 0, 0, EXI_FAULT_BAD_OPCODE);
	assert_int_equal(s.engine, ISA_GPSIMD);
	assert_int_equal(s.pc, 0);
	assert_int_equal(s.opcode, 0xff);

	/* Right, but not for this engine. */
	p.inst[ISA_GPSIMD][0].opcode = ISA_MATMUL;
	assert_faults(FD, prog_load(FD, &p), 0, 0, EXI_FAULT_BAD_OPCODE);
}

static void deadlock_is_found(void **state)
{
	struct drm_neuron_ctx_state s = assert_faults(FD, prog_stall(FD), 0, 0, EXI_FAULT_DEADLOCK);

	assert_int_equal(s.engine, ISA_VECTOR);
	assert_int_equal(s.value, 7);
	assert_int_equal(s.limit, 3);
}

/* Those behind a launch that faults never run. */
static void a_fault_cancels_what_follows(void **state)
{
	uint32_t ctx = ctx_new(FD, 0), sync[8];
	uint32_t stall = prog_stall(FD), nop = prog_nop(FD);
	int ret, status;

	assert_ok(launch(FD, ctx, stall, NULL, 0, sync[0] = sync_new(FD)));
	for (int i = 1; i < 8; i++) {
		ret = launch(FD, ctx, nop, NULL, 0, sync[i] = sync_new(FD));
		if (ret)
			assert_errno(ret, EIO); /* the fault was faster */
		if (ret)
			sync[i] = 0;
	}
	for (int i = 0; i < 8; i++) {
		if (!sync[i])
			continue;
		assert_ok(sync_wait(FD, sync[i], 0, 10000));
		status = sync_status(FD, sync[i]);
		assert_int_equal(status, i ? -ECANCELED : -EIO);
	}
	assert_int_equal(ctx_state(FD, ctx).launches, 0);
}

/* --- time-outs ------------------------------------------------------------ */

static void a_hang_times_out_alone(void **state)
{
	uint32_t guilty = ctx_new(FD, 0), innocent = ctx_new(FD, 0), far = ctx_new(FD, 1);
	uint32_t hang = prog_stall(FD), nop = prog_nop(FD), sync[4];

	for (int i = 0; i < 4; i++)
		sync[i] = sync_new(FD);
	assert_ok(launch(FD, guilty, hang, NULL, 0, sync[0]));
	assert_ok(launch(FD, guilty, nop, NULL, 0, sync[1]));
	assert_ok(launch(FD, innocent, nop, NULL, 0, sync[2]));
	assert_ok(launch(FD, far, nop, NULL, 0, sync[3]));

	assert_ok(sync_wait(FD, sync[3], 0, 10000));
	assert_ok(sync_wait(FD, sync[0], 0, 10000));
	assert_int_equal(sync_status(FD, sync[0]), -ETIME);
	assert_ok(sync_wait(FD, sync[1], 0, 10000));
	assert_int_equal(sync_status(FD, sync[1]), -ECANCELED);
	assert_ok(sync_wait(FD, sync[2], 0, 10000));
	assert_int_equal(sync_status(FD, sync[2]), 1);

	assert_int_equal(ctx_state(FD, guilty).state, DRM_NEURON_CTX_TIMEDOUT);
	assert_int_equal(ctx_state(FD, innocent).state, DRM_NEURON_CTX_OK);
	assert_int_equal(ctx_state(FD, far).state, DRM_NEURON_CTX_OK);
	assert_errno(launch(FD, guilty, nop, NULL, 0, 0), EIO);
	assert_int_equal(launch_now(FD, innocent, nop, NULL, 0), 1);
	assert_int_equal(launch_now(FD, ctx_new(FD, 0), nop, NULL, 0), 1);
}

static void destroying_a_hung_context_cancels_it(void **state)
{
	uint32_t ctx = ctx_new(FD, 0), other = ctx_new(FD, 0);
	uint32_t hang = prog_stall(FD), nop = prog_nop(FD);
	uint32_t sync[3] = { sync_new(FD), sync_new(FD), sync_new(FD) };

	assert_ok(launch(FD, ctx, hang, NULL, 0, sync[0]));
	assert_ok(launch(FD, ctx, nop, NULL, 0, sync[1]));
	assert_ok(launch(FD, other, nop, NULL, 0, sync[2]));
	ctx_close(FD, ctx);
	for (int i = 0; i < 3; i++) {
		assert_ok(sync_wait(FD, sync[i], 0, 800));
		assert_int_equal(sync_status(FD, sync[i]), i < 2 ? -ECANCELED : 1);
	}
}

const struct CMUnitTest launch_tests[] = {
	TEST(a_program_of_nothing_completes),
	TEST(memset_reaches_hbm),
	TEST(bytes_go_through_sbuf),
	TEST(a_scalar_needs_no_buffer),
	TEST(launches_of_a_context_run_in_order),
	TEST(fences_cross_cores_and_copies),
	TEST(a_batch_runs_in_order_behind_its_fence),
	TEST(a_fault_in_a_batch_reaches_its_fence),
	TEST(launches_are_counted_by_core_and_file),
	TEST(a_transfer_out_of_the_slot_faults),
	TEST(rights_and_indices_of_slots_are_checked),
	TEST(wrong_instructions_fault),
	TEST(deadlock_is_found),
	TEST(a_fault_cancels_what_follows),
	HANG(a_hang_times_out_alone),
	HANG(destroying_a_hung_context_cancels_it),
};
const size_t launch_tests_count = sizeof(launch_tests) / sizeof(launch_tests[0]);
