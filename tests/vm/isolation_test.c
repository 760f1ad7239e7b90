// SPDX-License-Identifier: Apache-2.0
/*
 * Two users share one device, neither of them root: one with secrets, one who wants them, or who
 * only misbehaves. They are processes with uids of their own that may open the node because its
 * group may (driver/udev); what they agree on lies in memory that both see.
 */
#define _GNU_SOURCE
#include "dev.h"
#include "groups.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <xf86drm.h>

#define OWNER	 12001 /* uids and gids; nobody else's */
#define STRANGER 12002
#define GROUP	 12003 /* may use the node */

#define SECRET	    0x5ec7e75eu
#define SECRET_BYTE 0x5e
#define SECRET_SEM  11

#define PSUM_BYTES (ISA_PSUM_BANKS * ISA_PSUM_BANK_BYTES)

#define WAIT_MS 30000

struct shared {
	_Atomic int step; /* how far the two are */
	uint32_t bo, ctx, program, syncobj; /* the owner's */
	uint64_t mmap_offset;
	_Atomic bool stop;
};

static struct shared *shared;

/* --- users ------------------------------------------------------------------------ */

static void become(uid_t uid)
{
	const gid_t group = GROUP;

	if (setgroups(1, &group) || setresgid(uid, uid, uid) || setresuid(uid, uid, uid))
		_exit(100);
	/* A failed assertion must end this process, not go on with the next test. */
	setenv("CMOCKA_TEST_ABORT", "1", 1);
}

/* Starts a user who opens the device and does something. */
static pid_t start_user(uid_t uid, void (*run)(int fd))
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid)
		return pid;
	become(uid);
	run(dev_open());
	fflush(NULL);
	_exit(0); /* the file is closed by the process's end */
}

static void end_user(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (status)
		fail_msg("a user ended with status 0x%x", status);
}

static void run_user(uid_t uid, void (*run)(int fd))
{
	end_user(start_user(uid, run));
}

static void reach(int step)
{
	atomic_store(&shared->step, step);
}

static void await(int step)
{
	for (int i = 0; i < WAIT_MS / 5 && atomic_load(&shared->step) < step; i++)
		usleep(5000);
	assert_int_in_range(atomic_load(&shared->step), step, INT32_MAX);
}

static void node_for_group(gid_t gid, mode_t mode)
{
	char path[64];

	for (int i = 0; i < 64; i++) {
		snprintf(path, sizeof(path), "/dev/accel/accel%d", i);
		if (!access(path, F_OK) && (chown(path, 0, gid) || chmod(path, mode)))
			fail_msg("%s: %s", path, strerror(errno));
	}
}

static int isolation_setup(void **state)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		return -1;
	node_for_group(GROUP, 0660);
	return dev_setup(state);
}

static int isolation_teardown(void **state)
{
	int ret = dev_teardown(state);

	node_for_group(0, 0600);
	munmap(shared, sizeof(*shared));
	return ret;
}

/* --- programs ---------------------------------------------------------------------- */

static struct isa_tile whole(unsigned int space, uint32_t bytes)
{
	return (struct isa_tile){
		.space = (uint8_t)space,
		.dtype = ISA_FP32,
		.nparts = TILE_PARTS,
		.count = { 1, 1, 1, bytes / 4 },
		.step = { 0, 0, 0, 1 },
	};
}

/* Fills SBUF and PSUM with the secret, loads some of it as stationary operand, raises a semaphore. */
static uint32_t prog_leave_secrets(int fd)
{
	static const unsigned int space[] = { ISA_SPACE_SBUF, ISA_SPACE_PSUM };
	const uint32_t bytes[] = { dev_info(fd).sbuf_bytes, PSUM_BYTES };
	struct prog p = { 0 };
	struct isa_inst *inst;

	for (int i = 0; i < 2; i++) {
		inst = prog_inst(&p, ISA_VECTOR, ISA_MEMSET);
		inst->compute.dst = whole(space[i], bytes[i]);
		inst->compute.compute_type = ISA_CT_BITS;
		inst->compute.imm0 = SECRET;
		inst_signal(inst, SECRET_SEM);
	}
	prog_inst(&p, ISA_VECTOR, ISA_HALT);
	inst = prog_inst(&p, ISA_TENSOR, ISA_LOAD_STATIONARY);
	inst->compute.src0 = whole(ISA_SPACE_SBUF, 128 * 4);
	inst_wait(inst, SECRET_SEM, 2);
	prog_inst(&p, ISA_TENSOR, ISA_HALT);
	return prog_load(fd, &p);
}

/* Slot 0: all bytes of SBUF, slot 1: all of PSUM, partition by partition. */
static uint32_t prog_dump(int fd)
{
	const uint32_t bytes[] = { dev_info(fd).sbuf_bytes, PSUM_BYTES };
	struct prog p = { 0 };
	struct isa_inst *inst;

	for (unsigned int i = 0; i < 2; i++) {
		unsigned int slot =
			prog_slot(&p, NPROG_SLOT_OUTPUT, (uint64_t)TILE_PARTS * bytes[i]);

		inst = prog_inst(&p, ISA_SYNC, ISA_DMA);
		inst->elem_bytes = 1;
		dma_slot(&inst->dma.dst, slot, 0, TILE_PARTS * bytes[i]);
		dma_sbuf(&inst->dma.src, bytes[i]);
		inst->dma.src.space = (uint8_t)(i ? ISA_SPACE_PSUM : ISA_SPACE_SBUF);
		inst_signal(inst, 0);
	}
	inst_wait(prog_inst(&p, ISA_SYNC, ISA_HALT), 0, 2);
	return prog_load(fd, &p);
}

/* Ends only if somebody left the semaphore raised. */
static uint32_t prog_semaphore(int fd)
{
	struct prog p = { 0 };

	inst_wait(prog_inst(&p, ISA_SYNC, ISA_NOP), SECRET_SEM, 1);
	prog_inst(&p, ISA_SYNC, ISA_HALT);
	return prog_load(fd, &p);
}

/* Multiplies with whatever the tensor engine has loaded. */
static uint32_t prog_matmul_unloaded(int fd)
{
	struct prog p = { 0 };
	struct isa_inst *inst = prog_inst(&p, ISA_TENSOR, ISA_MATMUL);

	inst->compute.dst = whole(ISA_SPACE_PSUM, 16 * 4);
	inst->compute.src0 = whole(ISA_SPACE_SBUF, 16 * 4);
	prog_inst(&p, ISA_TENSOR, ISA_HALT);
	return prog_load(fd, &p);
}

/* Number of words of a buffer that are not zero; 0 is what a stranger may see. */
static uint64_t count_words(int fd, uint32_t bo)
{
	uint64_t size = bo_info(fd, bo).size, n = 0;
	uint32_t host = bo_new(fd, size, BO_HOST | BO_MMAP);
	const uint32_t *p = bo_map(fd, host);

	copy_now(fd, host, 0, bo, 0, size);
	for (uint64_t i = 0; i < size / 4; i++)
		n += p[i] != 0;
	bo_unmap(fd, host, (void *)(uintptr_t)p);
	bo_close(fd, host);
	return n;
}

/* Words of SBUF and PSUM of a core that are not zero, as a program sees them. */
static uint64_t count_on_chip(int fd, uint32_t core)
{
	uint32_t bo[2] = { bo_new(fd, (uint64_t)TILE_PARTS * dev_info(fd).sbuf_bytes, BO_HBM),
			   bo_new(fd, (uint64_t)TILE_PARTS * PSUM_BYTES, BO_HBM) };
	uint32_t ctx = ctx_new(fd, core), dump = prog_dump(fd);
	uint64_t n;

	assert_int_equal(launch_now(fd, ctx, dump, bo, 2), 1);
	n = count_words(fd, bo[0]) + count_words(fd, bo[1]);
	ctx_close(fd, ctx);
	bo_close(fd, bo[0]);
	bo_close(fd, bo[1]);
	return n;
}

/* --- on chip ------------------------------------------------------------------------ */

static void leave_secrets(int fd)
{
	uint64_t words = (uint64_t)TILE_PARTS * (dev_info(fd).sbuf_bytes + PSUM_BYTES) / 4;

	assert_int_equal(launch_now(fd, ctx_new(fd, 0), prog_leave_secrets(fd), NULL, 0), 1);
	/* They are there: what the stranger finds missing has been taken away from him. */
	assert_int_equal(count_on_chip(fd, 0), words);
	assert_int_equal(launch_now(fd, ctx_new(fd, 0), prog_leave_secrets(fd), NULL, 0), 1);
}

static void look_for_secrets(int fd)
{
	uint32_t ctx = ctx_new(fd, 0);

	assert_int_equal(launch_now(fd, ctx, prog_matmul_unloaded(fd), NULL, 0), -EIO);
	assert_int_equal(launch_now(fd, ctx_new(fd, 0), prog_semaphore(fd), NULL, 0), -EIO);
	assert_int_equal(count_on_chip(fd, 0), 0);
}

static void chip_memory_of_a_user_who_left(void **state)
{
	(void)state;
	run_user(OWNER, leave_secrets);
	run_user(STRANGER, look_for_secrets);
}

static void leave_secrets_and_stay(int fd)
{
	leave_secrets(fd);
	reach(1);
	await(2);
	/* What the stranger left is as little ours. */
	assert_int_equal(count_on_chip(fd, 0), 0);
}

static void look_and_leave_some(int fd)
{
	await(1);
	look_for_secrets(fd);
	assert_int_equal(launch_now(fd, ctx_new(fd, 0), prog_leave_secrets(fd), NULL, 0), 1);
	reach(2);
}

static void chip_memory_of_a_user_who_stays(void **state)
{
	pid_t owner, stranger;

	(void)state;
	owner = start_user(OWNER, leave_secrets_and_stay);
	stranger = start_user(STRANGER, look_and_leave_some);
	end_user(owner);
	end_user(stranger);
}

/* --- device memory ------------------------------------------------------------------- */

/* Sizes of buffers that the owner fills, and the stranger asks for again after him. */
static const uint64_t hbm_sizes[] = { 64 << 20, 64 << 20, 64 << 20, 64 << 20, 4096, 65536, 1 << 20 };

#define HBM_BUFFERS (sizeof(hbm_sizes) / sizeof(hbm_sizes[0]))

static void fill_memory(int fd)
{
	uint32_t host = bo_new(fd, hbm_sizes[0], BO_HOST | BO_MMAP);

	memset(bo_map(fd, host), SECRET_BYTE, hbm_sizes[0]);
	for (size_t i = 0; i < HBM_BUFFERS; i++)
		copy_now(fd, bo_new(fd, hbm_sizes[i], BO_HBM), 0, host, 0, hbm_sizes[i]);
}

/* By a copy, by a program, and by the CPU: each looks before anybody has written. */
static void read_memory(int fd)
{
	const uint32_t bytes = 4096;
	uint32_t program = prog_through_sbuf(fd, bytes), ctx = ctx_new(fd, 0);
	uint32_t bo[2] = { 0, bo_new(fd, TILE_PARTS * bytes, BO_HBM) };

	for (size_t i = 0; i < HBM_BUFFERS; i++) {
		bo[0] = bo_new(fd, hbm_sizes[i], BO_HBM | BO_MMAP);
		if (hbm_sizes[i] >= TILE_PARTS * bytes) {
			assert_int_equal(launch_now(fd, ctx, program, bo, 2), 1);
			assert_int_equal(count_words(fd, bo[1]), 0);
		}
		const uint32_t *p = bo_map(fd, bo[0]);

		for (uint64_t at = 0; at < hbm_sizes[i] / 4; at += 1021)
			if (p[at])
				fail_msg("word %lu of buffer %zu is 0x%x", at, i, p[at]);
		assert_int_equal(count_words(fd, bo[0]), 0);
	}
}

static void freed_memory_is_scrubbed(void **state)
{
	(void)state;
	run_user(OWNER, fill_memory);
	run_user(STRANGER, read_memory);
}

/* --- names -------------------------------------------------------------------------- */

static void show_names(int fd)
{
	uint8_t *p;

	/* Many, so that no number of the stranger's is one of these by chance. */
	for (int i = 0; i < 20; i++) {
		shared->bo = bo_new(fd, 65536, BO_HBM | BO_MMAP);
		shared->ctx = ctx_new(fd, 0);
		shared->program = prog_nop(fd);
		shared->syncobj = sync_new(fd);
	}
	shared->mmap_offset = bo_info(fd, shared->bo).mmap_offset;
	p = bo_map(fd, shared->bo);
	memset(p, SECRET_BYTE, 65536);
	reach(1);
	await(2);
	for (int i = 0; i < 65536; i++)
		assert_int_equal(p[i], SECRET_BYTE);
	assert_int_equal(launch_now(fd, shared->ctx, shared->program, NULL, 0), 1);
}

static void use_names(int fd)
{
	struct drm_neuron_bo_info info = { .handle = 0 };
	struct drm_neuron_ctx_state state = { .ctx = 0 };
	struct drm_neuron_ctx_destroy destroy = { .ctx = 0 };
	struct drm_neuron_program_unload unload = { .program = 0 };
	struct drm_gem_close gem_close = { .handle = 0 };
	uint32_t mine, ctx, nop;
	uint64_t point = 0;

	await(1);
	mine = bo_new(fd, 65536, BO_HOST);
	ctx = ctx_new(fd, 0);
	nop = prog_nop(fd);
	info.handle = gem_close.handle = shared->bo;
	assert_errno(neuron_call(fd, DRM_IOCTL_NEURON_BO_INFO, &info), ENOENT);
	assert_int_not_equal(neuron_call(fd, DRM_IOCTL_GEM_CLOSE, &gem_close), 0);
	assert_errno(copy_start(fd, mine, 0, shared->bo, 0, 65536, 0), ENOENT);
	assert_errno(copy_start(fd, shared->bo, 0, mine, 0, 65536, 0), ENOENT);
	state.ctx = destroy.ctx = shared->ctx;
	assert_errno(neuron_call(fd, DRM_IOCTL_NEURON_CTX_STATE, &state), ENOENT);
	assert_errno(neuron_call(fd, DRM_IOCTL_NEURON_CTX_DESTROY, &destroy), ENOENT);
	assert_errno(launch(fd, shared->ctx, nop, NULL, 0, 0), ENOENT);
	unload.program = shared->program;
	assert_errno(neuron_call(fd, DRM_IOCTL_NEURON_PROGRAM_UNLOAD, &unload), ENOENT);
	assert_errno(launch(fd, ctx, shared->program, NULL, 0, 0), ENOENT);
	assert_errno(launch(fd, ctx, nop, NULL, 0, shared->syncobj), ENOENT);
	assert_int_not_equal(drmSyncobjTimelineSignal(fd, &shared->syncobj, &point, 1), 0);
	assert_ptr_equal(mmap(NULL, 65536, PROT_READ, MAP_SHARED, fd, (off_t)shared->mmap_offset),
			 MAP_FAILED);
	assert_int_equal(errno, EACCES);
	reach(2);
}

static void names_mean_nothing_to_others(void **state)
{
	pid_t owner, stranger;

	(void)state;
	owner = start_user(OWNER, show_names);
	stranger = start_user(STRANGER, use_names);
	end_user(owner);
	end_user(stranger);
}

/* --- stalls and crashes ---------------------------------------------------------------- */

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Launches and copies with results, on the core that the other one uses, until he has done it all. */
static void work_steadily(int fd)
{
	const uint32_t bytes = 512, size = TILE_PARTS * bytes;
	uint32_t program = prog_through_sbuf(fd, bytes), ctx = ctx_new(fd, 0);
	uint32_t host = bo_new(fd, size, BO_HOST | BO_MMAP),
		 back = bo_new(fd, size, BO_HOST | BO_MMAP);
	uint32_t bo[2] = { bo_new(fd, size, BO_HBM), bo_new(fd, size, BO_HBM) };
	uint8_t *p = bo_map(fd, host), *q = bo_map(fd, back);
	uint64_t longest = 0, start;
	int rounds = 0;

	reach(1);
	while (!atomic_load(&shared->stop) || rounds < 10) {
		memset(p, rounds++ & 0xff, size);
		start = now_ms();
		copy_now(fd, bo[0], 0, host, 0, size);
		assert_int_equal(launch_now(fd, ctx, program, bo, 2), 1);
		copy_now(fd, back, 0, bo[1], 0, size);
		longest = now_ms() - start > longest ? now_ms() - start : longest;
		assert_memory_equal(p, q, size);
	}
	assert_int_equal(ctx_state(fd, ctx).state, DRM_NEURON_CTX_OK);
	assert_int_equal(ctx_state(fd, ctx).launches, rounds);
	printf("             %d rounds, the longest took %lu ms\n", rounds, longest);
	/* A hang of the other's costs its time-out at most once in a while, a queue of his nothing. */
	assert_int_in_range((intmax_t)longest, 0, 8000);
}

static void hang_often(int fd)
{
	uint32_t hang = prog_stall(fd);

	await(1);
	for (int i = 0; i < 2; i++) {
		uint32_t ctx = ctx_new(fd, 0);

		assert_int_equal(launch_now(fd, ctx, hang, NULL, 0), -ETIME);
		assert_int_equal(ctx_state(fd, ctx).state, DRM_NEURON_CTX_TIMEDOUT);
	}
}

static void fault_often(int fd)
{
	uint32_t bad = prog_matmul_unloaded(fd);

	await(1);
	for (int i = 0; i < 50; i++) {
		uint32_t ctx = ctx_new(fd, 0);

		assert_int_equal(launch_now(fd, ctx, bad, NULL, 0), -EIO);
		ctx_close(fd, ctx);
	}
}

/* As much as the driver takes, of everything. */
static void flood(int fd)
{
	uint32_t program = prog_fill(fd, 1, 4096), bo = bo_new(fd, TILE_PARTS * 16384, BO_HBM);
	uint32_t host = bo_new(fd, 32 << 20, BO_HOST), hbm = bo_new(fd, 32 << 20, BO_HBM), sync = 0;

	await(1);
	for (int c = 0; c < 8; c++) {
		uint32_t ctx = ctx_new(fd, 0);

		for (int i = 0; i < 60; i++)
			assert_ok(launch(fd, ctx, program, &bo, 1, 0));
		sync = sync_new(fd);
		assert_ok(launch(fd, ctx, program, &bo, 1, sync));
		for (int i = 0; i < 8; i++)
			assert_ok(copy_start(fd, hbm, 0, host, 0, 32 << 20, 0));
	}
	assert_ok(sync_wait(fd, sync, 0, WAIT_MS));
}

/* In the middle of everything. */
static void be_killed(int fd)
{
	uint32_t ctx = ctx_new(fd, 0), hang = prog_stall(fd);

	await(1);
	assert_ok(launch(fd, ctx, hang, NULL, 0, 0));
	for (int i = 0; i < 20; i++)
		assert_ok(launch(fd, ctx, hang, NULL, 0, 0));
	reach(2);
	pause();
}

static void beside(void (*misbehave)(int fd), bool kill_him)
{
	pid_t owner, stranger;
	int status;

	owner = start_user(OWNER, work_steadily);
	stranger = start_user(STRANGER, misbehave);
	if (kill_him) {
		await(2);
		assert_ok(kill(stranger, SIGKILL));
		assert_int_equal(waitpid(stranger, &status, 0), stranger);
		assert_true(WIFSIGNALED(status));
	} else {
		end_user(stranger);
	}
	atomic_store(&shared->stop, true);
	end_user(owner);
}

static int stall_setup(void **state)
{
	int ret = isolation_setup(state);

	dev_allow_hangs(true);
	return ret;
}

static int stall_teardown(void **state)
{
	dev_allow_hangs(false);
	return isolation_teardown(state);
}

static void beside_one_who_hangs(void **state)
{
	(void)state;
	beside(hang_often, false);
}

static void beside_one_who_faults(void **state)
{
	(void)state;
	beside(fault_often, false);
}

static void beside_one_who_floods(void **state)
{
	(void)state;
	beside(flood, false);
}

static void beside_one_who_is_killed(void **state)
{
	(void)state;
	beside(be_killed, true);
}

/* --- what there is only so much of ------------------------------------------------------ */

/* With one file or several, a user gets no more than half of a core's queues. */
static void take_all_queues(int fd)
{
	struct drm_neuron_ctx_create args = { .core = 0 };
	int n = 0, ret = 0, files[2] = { fd, dev_open() };

	await(1);
	for (int i = 0; i < 2; i++) {
		while (n < EXI_QUEUE_COUNT &&
		       !(ret = neuron_call(files[i], DRM_IOCTL_NEURON_CTX_CREATE, &args)))
			n++;
		assert_errno(ret, ENOSPC);
	}
	assert_int_equal(n, EXI_QUEUE_COUNT / 2);
	/* On another core he starts anew. */
	ctx_new(fd, 1);
	reach(2);
	await(3);
}

static void want_a_queue(int fd)
{
	reach(1);
	await(2);
	for (int i = 0; i < EXI_QUEUE_COUNT / 2; i++)
		ctx_new(fd, 0);
	assert_int_equal(launch_now(fd, ctx_new(fd, 1), prog_nop(fd), NULL, 0), 1);
	reach(3);
}

static void queues_are_left_for_others(void **state)
{
	pid_t owner, stranger;

	(void)state;
	owner = start_user(OWNER, want_a_queue);
	stranger = start_user(STRANGER, take_all_queues);
	end_user(owner);
	end_user(stranger);
}

static void try_privileges(int fd)
{
	struct drm_neuron_ctx_create high = { .priority = DRM_NEURON_PRIORITY_HIGH };
	char path[128];

	assert_errno(neuron_call(fd, DRM_IOCTL_NEURON_CTX_CREATE, &high), EACCES);
	assert_int_equal(open("/sys/module/neuron/parameters/timeout_ms", O_WRONLY), -1);
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/resource4", dev_pci_address());
	assert_int_equal(open(path, O_RDWR), -1);
	assert_int_equal(errno, EACCES);
	assert_int_equal(open("/sys/bus/pci/drivers/neuron/unbind", O_WRONLY), -1);
	assert_int_equal(launch_now(fd, ctx_new(fd, 0), prog_nop(fd), NULL, 0), 1);
}

static void a_user_has_no_privileges(void **state)
{
	(void)state;
	run_user(STRANGER, try_privileges);
}

#define USERS(name) cmocka_unit_test_setup_teardown(name, isolation_setup, isolation_teardown)
#define STALL(name) cmocka_unit_test_setup_teardown(name, stall_setup, stall_teardown)

const struct CMUnitTest isolation_tests[] = {
	USERS(a_user_has_no_privileges),
	USERS(chip_memory_of_a_user_who_left),
	USERS(chip_memory_of_a_user_who_stays),
	USERS(freed_memory_is_scrubbed),
	USERS(names_mean_nothing_to_others),
	USERS(queues_are_left_for_others),
	STALL(beside_one_who_hangs),
	USERS(beside_one_who_faults),
	USERS(beside_one_who_floods),
	STALL(beside_one_who_is_killed),
};
const size_t isolation_tests_count = sizeof(isolation_tests) / sizeof(isolation_tests[0]);
