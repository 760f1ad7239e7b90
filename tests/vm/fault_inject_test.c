// SPDX-License-Identifier: Apache-2.0
/*
 * The device breaks (docs/fault-injection.md): nothing waits longer than the time-out, the owner of
 * the work gets the right error, the log says what happened, others keep their results, and the
 * device works afterwards. The path of the control port is in NEURON_CONTROL; without it the tests
 * are skipped.
 */
#define _GNU_SOURCE
#include "fault.h"
#include "groups.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sync_file.h>
#include <pthread.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <xf86drm.h>

/* Engines that copy for the host. */
#define COPY_ENGINE_FIRST 128u
#define COPY_ENGINES	  4u

/* --- interrupts ------------------------------------------------------------------ */

/* Nobody is to blame: the launch is done, and found when the driver would have looked for a hang. */
static void a_launch_without_interrupt_is_found(void **state)
{
	unsigned long missed;
	uint32_t ctx, nop, sync;

	need_control();
	missed = fault_count(F, "missed", "interrupts ");
	neighbour_new(&F->neighbour, 0);
	ctx = ctx_new(FD, 0);
	nop = prog_nop(FD);
	sync = sync_new(FD);
	inject("irq lose 1 1");
	assert_ok(launch(FD, ctx, nop, NULL, 0, sync));
	assert_int_equal(wait_status(FD, sync), 1);
	assert_int_equal(ctx_state(FD, ctx).state, DRM_NEURON_CTX_OK);
	assert_int_equal(ctx_state(FD, ctx).launches, 1);
	expect_log(F, "core 0: work is done, but its interrupt did not come");
	assert_true(fault_count(F, "missed", "interrupts ") > missed);
	/* Not before, or his interrupt would tell of the other launch too. */
	neighbour_goes_on(&F->neighbour);
	assert_neighbour_unharmed(&F->neighbour);
	assert_works(FD);
}

/* A launch may run for ever when the administrator wants it; that its interrupt is lost is noticed. */
static void without_a_limit_it_is_found_too(void **state)
{
	uint32_t ctx, sync;

	need_control();
	dev_param_write("timeout_ms", "0");
	ctx = ctx_new(FD, 0);
	dev_param_write("timeout_ms", TIMEOUT_MS);
	sync = sync_new(FD);
	inject("irq lose 1 1");
	assert_ok(launch(FD, ctx, prog_nop(FD), NULL, 0, sync));
	assert_int_equal(wait_status(FD, sync), 1);
	assert_int_equal(ctx_state(FD, ctx).state, DRM_NEURON_CTX_OK);
}

/* It comes when the launch behind it has come and gone: nothing is signalled twice. */
static void a_late_interrupt_is_no_fault(void **state)
{
	uint32_t ctx, nop;

	need_control();
	neighbour_new(&F->neighbour, 0);
	ctx = ctx_new(FD, 0);
	nop = prog_nop(FD);
	inject("irq delay 1 300 1");
	assert_int_equal(launch_now(FD, ctx, nop, NULL, 0), 1);
	neighbour_goes_on(&F->neighbour);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(launch_now(FD, ctx, nop, NULL, 0), 1);
		usleep(20000);
	}
	assert_int_equal(ctx_state(FD, ctx).state, DRM_NEURON_CTX_OK);
	assert_int_equal(ctx_state(FD, ctx).launches, 21);
	assert_neighbour_unharmed(&F->neighbour);
	assert_works(FD);
}

static void a_copy_without_interrupt_is_found(void **state)
{
	uint32_t a, b, sync;

	need_control();
	neighbour_new(&F->neighbour, 0);
	a = bo_new(FD, 4096, BO_HOST);
	b = bo_new(FD, 4096, BO_HBM);
	copy_now(FD, b, 0, a, 0, 4096); /* its scrub is over */
	sync = sync_new(FD);
	inject("irq lose 0 1");
	assert_ok(copy_start(FD, b, 0, a, 0, 4096, sync));
	neighbour_goes_on(&F->neighbour);
	assert_int_equal(wait_status(FD, sync), 1);
	expect_log(F, "work is done, but its interrupt did not come");
	assert_neighbour_unharmed(&F->neighbour);
	assert_works(FD);
}

/* --- launches ------------------------------------------------------------------- */

/* The context whose launch hangs times out, the others on its core and elsewhere do not. */
static void a_hung_engine_costs_its_launch(void **state)
{
	uint32_t guilty, far, program, nop, sync[3];
	struct prog p = { 0 };

	need_control();
	neighbour_new(&F->neighbour, 0);
	guilty = ctx_new(FD, 0);
	far = ctx_new(FD, 1);
	/* On an engine that nobody else uses, whoever is first. */
	prog_inst(&p, ISA_SCALAR, ISA_NOP);
	prog_inst(&p, ISA_SCALAR, ISA_HALT);
	program = prog_load(FD, &p);
	nop = prog_nop(FD);
	for (int i = 0; i < 3; i++)
		sync[i] = sync_new(FD);
	inject("hang 0 scalar");
	assert_ok(launch(FD, guilty, program, NULL, 0, sync[0]));
	assert_ok(launch(FD, guilty, nop, NULL, 0, sync[1]));
	neighbour_goes_on(&F->neighbour);
	assert_ok(launch(FD, far, nop, NULL, 0, sync[2]));
	assert_int_equal(wait_status(FD, sync[0]), -ETIME);
	assert_int_equal(wait_status(FD, sync[1]), -ECANCELED);
	assert_int_equal(wait_status(FD, sync[2]), 1);
	assert_int_equal(ctx_state(FD, guilty).state, DRM_NEURON_CTX_TIMEDOUT);
	assert_int_equal(ctx_state(FD, far).state, DRM_NEURON_CTX_OK);
	expect_log(F, "launch 0 timed out at " TIMEOUT_MS " ms");
	assert_neighbour_unharmed(&F->neighbour);
	assert_works(FD);
}

/* --- copies --------------------------------------------------------------------- */

/* In every copy engine: a fault of the control port, with how often if not once. */
static void break_copies(const char *fault)
{
	char command[64];

	for (unsigned int e = 0; e < COPY_ENGINES; e++) {
		snprintf(command, sizeof(command), "udma %u %s", COPY_ENGINE_FIRST + e, fault);
		inject(command);
	}
}

/*
 * Breaks every copy engine once under a series of copies: the one that meets it gets the error, all
 * others end well and move the right bytes.
 */
static void copies_meet(struct fault_fixture *f, const char *fault, int error, const char *text)
{
	enum { COPIES = 12, BYTES = 64 * 1024 };
	uint32_t from = bo_new(f->fd, BYTES, BO_HOST | BO_MMAP), hbm[COPIES], sync[COPIES];
	uint32_t back = bo_new(f->fd, BYTES, BO_HOST | BO_MMAP);
	uint8_t *p = bo_map(f->fd, from), *q = bo_map(f->fd, back);
	bool bad[COPIES];
	int failed = 0;

	neighbour_new(&f->neighbour, 0);
	for (int i = 0; i < BYTES; i++)
		p[i] = (uint8_t)(i * 13 + 1);
	for (int i = 0; i < COPIES; i++) {
		sync[i] = sync_new(f->fd);
		hbm[i] = bo_new(f->fd, BYTES, BO_HBM);
		copy_now(f->fd, back, 0, hbm[i], 0, BYTES); /* its scrub is over */
	}
	break_copies(fault);
	for (int i = 0; i < COPIES; i++)
		assert_ok(copy_start(f->fd, hbm[i], 0, from, 0, BYTES, sync[i]));
	neighbour_goes_on(&f->neighbour);
	for (int i = 0; i < COPIES; i++) {
		int status = wait_status(f->fd, sync[i]);

		bad[i] = status != 1;
		failed += bad[i];
		if (bad[i])
			assert_int_equal(status, error);
	}
	assert_int_in_range(failed, 1, COPY_ENGINES);
	expect_log(f, text);
	inject("clear");
	assert_neighbour_unharmed(&f->neighbour);
	for (int i = 0; i < COPIES; i++) {
		copy_now(f->fd, back, 0, hbm[i], 0, BYTES);
		if (!bad[i])
			assert_memory_equal(p, q, BYTES);
		/* The buffer is as good as before, whatever happened to the copy. */
		copy_now(f->fd, hbm[i], 0, from, 0, BYTES);
		copy_now(f->fd, back, 0, hbm[i], 0, BYTES);
		assert_memory_equal(p, q, BYTES);
	}
	bo_unmap(f->fd, from, p);
	bo_unmap(f->fd, back, q);
	assert_works(f->fd);
}

static void a_failing_copy_fails_alone(void **state)
{
	need_control();
	copies_meet(F, "error", -EIO, "failed: status 0x4");
}

static void a_stopped_copy_engine_recovers(void **state)
{
	need_control();
	copies_meet(F, "stop", -ETIME, "timed out: no progress in " TIMEOUT_MS " ms");
}

static void a_wrong_completion_is_not_believed(void **state)
{
	need_control();
	copies_meet(F, "corrupt", -EIO, "completion 0x543210fe, not 0xabcdef01");
}

/* --- memory, clocks --------------------------------------------------------------- */

/* Where monitoring tools look. */
#define HARDWARE   "/sys/class/neuron_device/neuron*/stats/hardware/"
#define LASTING	   HARDWARE "mem_ecc_uncorrected"
#define REPAIRABLE HARDWARE "mem_ecc_repairable_uncorrected"

/* Uncorrected errors of HBM, those that a repair can end among them. */
static long long hbm_errors(void)
{
	return file_number(LASTING) + file_number(REPAIRABLE);
}

static void memory_errors_are_counted(void **state)
{
	unsigned long hbm, sram;

	need_control();
	neighbour_new(&F->neighbour, 0);
	hbm = fault_count(F, "hbm1", " corrected ");
	sram = fault_count(F, "sram", "uncorrected ");
	inject("ecc hbm1 3 0");
	neighbour_goes_on(&F->neighbour);
	expect_log(F, "HBM 1: corrected memory errors: ");
	assert_int_equal(fault_count(F, "hbm1", " corrected "), hbm + 3);
	inject("ecc sram 0 1");
	expect_log(F, "SRAM: uncorrected memory errors: ");
	assert_int_equal(fault_count(F, "sram", "uncorrected "), sram + 1);
	assert_int_equal(file_number(HARDWARE "sram_ecc_uncorrected"), sram + 1);
	assert_neighbour_unharmed(&F->neighbour);
	assert_works(FD);
}

static unsigned long all_uncorrected(struct fault_fixture *f)
{
	return fault_count(f, "hbm0", "uncorrected ") + fault_count(f, "hbm1", "uncorrected ") +
	       fault_count(f, "hbm2", "uncorrected ") + fault_count(f, "hbm3", "uncorrected ");
}

/* Whose program read the bad bytes is told so, nobody else is disturbed. */
static void an_uncorrected_error_kills_its_reader(void **state)
{
	enum { BYTES = 1000 };
	uint32_t reader, other, program, nop, bo[2];
	struct drm_neuron_ctx_state s;
	unsigned long before;

	need_control();
	before = all_uncorrected(F);
	neighbour_new(&F->neighbour, 1);
	reader = ctx_new(FD, 1);
	other = ctx_new(FD, 1);
	program = prog_through_sbuf(FD, BYTES);
	nop = prog_nop(FD);
	for (int i = 0; i < 2; i++)
		bo[i] = bo_new(FD, TILE_PARTS * BYTES, BO_HBM);
	assert_int_equal(launch_now(FD, reader, program, bo, 2), 1);
	inject("poison 1");
	neighbour_goes_on(&F->neighbour); /* reads nothing */
	assert_int_equal(launch_now(FD, reader, program, bo, 2), -EIO);
	s = ctx_state(FD, reader);
	assert_int_equal(s.state, DRM_NEURON_CTX_FAULTED);
	assert_int_equal(s.fault, EXI_FAULT_ECC);
	assert_int_equal(s.engine, ISA_SYNC);
	assert_int_equal(s.pc, 0);
	assert_int_equal(s.opcode, ISA_DMA);
	assert_int_equal(s.slot, 0);
	assert_int_equal(s.value, 0);
	assert_int_equal(s.limit, bo_info(FD, bo[0]).size);
	assert_int_equal(s.program, program);
	assert_int_equal(s.launches, 1);
	expect_log(F, "launch 1: uncorrected memory error: engine 4 pc 0 opcode 0x8 slot 0");
	expect_log(F, ": uncorrected memory errors: ");
	assert_int_equal(all_uncorrected(F), before + 1);
	assert_int_equal(hbm_errors(), before + 1);
	assert_int_equal(launch_now(FD, other, nop, NULL, 0), 1);
	assert_int_equal(launch_now(FD, other, program, bo, 2), 1);
	assert_neighbour_unharmed(&F->neighbour);
	assert_works(FD);
}

static void throttling_is_slow_and_reported(void **state)
{
	struct drm_neuron_ctx_state before, after;
	uint32_t ctx, program, bo;

	need_control();
	ctx = ctx_new(FD, 0);
	program = prog_fill(FD, 1, 1024);
	bo = bo_new(FD, TILE_PARTS * 4096, BO_HBM);
	assert_int_equal(launch_now(FD, ctx, program, &bo, 1), 1);
	before = ctx_state(FD, ctx);
	neighbour_new(&F->neighbour, 0);
	inject("throttle 10");
	neighbour_goes_on(&F->neighbour);
	assert_int_equal(launch_now(FD, ctx, program, &bo, 1), 1);
	after = ctx_state(FD, ctx);
	assert_true(after.device_ns - before.device_ns > before.device_ns);
	expect_log(F, "core 0: clocks at 10 % of nominal, were at 100 %");
	assert_int_equal(fault_count(F, "core 0", "clock "), 10);
	assert_neighbour_unharmed(&F->neighbour);
	inject("throttle 100");
	assert_int_equal(launch_now(FD, ctx, program, &bo, 1), 1);
	expect_log(F, "core 0: clocks at 100 % of nominal, were at 10 %");
}

/* --- firmware --------------------------------------------------------------------- */

/* Takes the device anew with this fault of the mailbox: 0 or -errno. */
static int bind_with(struct fault_fixture *f, const char *fault)
{
	fault_close(&f->fd);
	dev_driver_write("unbind", f->address);
	inject(fault);
	return dev_driver_write("bind", f->address);
}

/* trn3's firmware is asked in registers: headers are longer, and what is no answer is seen at once. */
static bool in_registers(int fd)
{
	struct drm_neuron_query_firmware firmware = { 0 };
	struct drm_neuron_query args = { .block = DRM_NEURON_QUERY_FIRMWARE,
					 .size = sizeof(firmware),
					 .ptr = (uintptr_t)&firmware };

	assert_ok(neuron_call(fd, DRM_IOCTL_NEURON_QUERY, &args));
	return firmware.api_version >= 6;
}

/* The driver asks again, so a few answers that are lost or wrong only cost time. */
static void a_bad_answer_is_asked_for_again(void **state)
{
	static const char *const rows[][3] = {
		{ "mailbox silent", "no answer in 1000 ms but sequence 0, try 1 of 15",
		  "no answer in 1000 ms but sequence 0, try 1 of 15" },
		{ "mailbox crc", "no answer in 1000 ms but sequence 0, try 1 of 15",
		  "answer 0 of error 0, 0 bytes makes no sense, want 1, 0, 12, try 1 of 15" },
		{ "mailbox sequence", "no answer in 1000 ms but sequence 2, try 1 of 15",
		  "answer 2 of error 0, 8 bytes makes no sense, want 1, 0, 12, try 1 of 15" },
		{ "mailbox garbage",
		  "error 165, 42405 bytes makes no sense, want 1, 0, 8, try 1 of 15",
		  "error 165, 42405 bytes makes no sense, want 1, 0, 12, try 1 of 15" },
	};
	const int text = in_registers(FD) ? 2 : 1;

	need_control();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_ok(bind_with(F, rows[i][0]));
		expect_log(F, rows[i][text]);
		FD = dev_open();
		assert_works(FD);
	}
}

/* As many bad answers as the driver asks for, and the first good one after a restart. */
static void senseless_firmware_is_started_anew(void **state)
{
	const bool registers = in_registers(FD);

	need_control();
	assert_ok(bind_with(F, "mailbox garbage 15"));
	expect_log(F, registers ? "makes no sense, want 15, 0, 12, try 15 of 15" :
				  "makes no sense, want 15, 0, 8, try 15 of 15");
	expect_log(F, "did not answer: restarted the device's own");
	FD = dev_open();
	assert_works(FD);
}

/* A device whose firmware is of no use is not used; it can be taken again later. */
static void useless_firmware_is_refused(void **state)
{
	const bool registers = in_registers(FD);

	need_control();
	assert_true(bind_with(F, "mailbox garbage 30") < 0);
	expect_log(F, "firmware does not serve the driver: -74");
	assert_true(bind_with(F, "mailbox error") < 0);
	expect_log(F, registers ? "firmware refused request 1: error 1, 8 bytes" :
				  "firmware refused request 1: error 1, 4 bytes");
	assert_ok(dev_driver_write("bind", F->address));
	FD = dev_open();
	assert_works(FD);
}

/* --- memory repair ----------------------------------------------------------------- */

static void assert_repair(struct fault_fixture *f, const char *state, long long lasting,
			  long long repairable)
{
	fault_count(f, "hbm repair", state); /* fails without that word */
	assert_int_equal(file_number(LASTING), lasting);
	assert_int_equal(file_number(REPAIRABLE), repairable);
}

/* Without a word of repair trn3 counts errors as those that one would end, older chips as lasting. */
static void assert_no_repair(struct fault_fixture *f, long long errors)
{
	if (dev_arch() >= 4)
		assert_repair(f, "none", 0, errors);
	else
		assert_repair(f, "none", errors, 0);
}

/* The state is told when it changes, and when the driver takes a device that has it. */
static void a_memory_repair_is_told(void **state)
{
	long long errors;

	need_control();
	inject("ecc hbm0 0 2");
	errors = hbm_errors();
	assert_true(errors >= 2);
	assert_no_repair(F, errors);
	inject("repair pending");
	expect_log(F, "HBM repair: pending; power-cycle the device for it");
	assert_repair(F, "pending", 0, errors);
	assert_works(FD);
	assert_ok(bind_with(F, "repair failed"));
	expect_log(F, "HBM repair: failed; replace the device");
	FD = dev_open();
	assert_repair(F, "failed", errors, 0);
	assert_works(FD);
	inject("repair none");
	expect_log(F, "HBM repair: none, was failed");
	assert_no_repair(F, errors);
}

/* --- removal ----------------------------------------------------------------------- */

/* How a fence ended whose device takes no calls any more. */
static int file_status(int file)
{
	struct pollfd pollfd = { .fd = file, .events = POLLIN };
	struct sync_file_info info = { 0 };

	assert_int_equal(poll(&pollfd, 1, WAIT_MS), 1);
	assert_ok(ioctl(file, SYNC_IOC_FILE_INFO, &info));
	return info.status;
}

static void wait_for_end(int fd)
{
	drmVersionPtr version;

	for (int i = 0; i < WAIT_MS / 10 && (version = drmGetVersion(fd)); i++) {
		drmFreeVersion(version);
		usleep(10000);
	}
}

struct waiter {
	pthread_t thread;
	int fd;
	uint32_t sync;
	int ret;
};

static void *wait_long(void *arg)
{
	struct waiter *w = arg;

	w->ret = sync_wait(w->fd, w->sync, 0, 600000);
	return NULL;
}

/* Every ioctl that the driver has, and one of DRM's own, with nothing in it. */
static void assert_all_gone(int fd)
{
	static const unsigned long requests[] = {
		DRM_IOCTL_NEURON_QUERY,
		DRM_IOCTL_NEURON_BO_CREATE,
		DRM_IOCTL_NEURON_BO_INFO,
		DRM_IOCTL_NEURON_CTX_CREATE,
		DRM_IOCTL_NEURON_CTX_DESTROY,
		DRM_IOCTL_NEURON_CTX_STATE,
		DRM_IOCTL_NEURON_PROGRAM_LOAD,
		DRM_IOCTL_NEURON_PROGRAM_UNLOAD,
		DRM_IOCTL_NEURON_SUBMIT,
		DRM_IOCTL_NEURON_COPY,
		DRM_IOCTL_VERSION,
	};
	uint8_t args[256];

	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		memset(args, 0, sizeof(args));
		if (neuron_call(fd, requests[i], args) != -ENODEV)
			fail_msg("ioctl 0x%lx: %s", requests[i], strerror(errno));
	}
}

static sigjmp_buf bus_error;

static void on_bus_error(int signal)
{
	siglongjmp(bus_error, signal);
}

/* Mappings end last of all, when whoever was inside a call has left it. */
static void assert_mapping_ends(volatile uint8_t *p)
{
	struct sigaction action = { .sa_handler = on_bus_error }, before;

	assert_ok(sigaction(SIGBUS, &action, &before));
	if (!sigsetjmp(bus_error, 1)) {
		for (int i = 0; i < WAIT_MS / 10; i++) {
			p[0] = 1;
			usleep(10000);
		}
		fail_msg("a mapping can be written %d ms after its device has gone", WAIT_MS);
	}
	assert_ok(sigaction(SIGBUS, &before, NULL));
}

/*
 * Pulled out under a launch that would never end, with one behind it, copies under way and a thread
 * that waits: it wakes up, all calls fail, and after the device is back the driver takes it again.
 */
static void removal_wakes_everybody(void **state)
{
	struct neighbour *n = &F->neighbour;
	uint32_t ctx, bo, host, sync[3];
	volatile uint8_t *p;
	struct waiter w;
	int file[4];

	need_control();
	dev_debugfs_write("stall_detect", "0");
	/* Not by the time-out. */
	dev_param_write("timeout_ms", "0");
	ctx = ctx_new(FD, 0);
	neighbour_new(n, 0);
	dev_param_write("timeout_ms", TIMEOUT_MS);
	bo = bo_new(FD, 1 << 20, BO_HBM | BO_MMAP);
	host = bo_new(FD, 1 << 20, BO_HOST);
	p = bo_map(FD, bo);
	p[0] = 1;
	for (int i = 0; i < 3; i++)
		sync[i] = sync_new(FD);
	assert_ok(launch(FD, ctx, prog_stall(FD), NULL, 0, sync[0]));
	assert_ok(launch(FD, ctx, prog_nop(FD), NULL, 0, sync[1]));
	assert_ok(launch(n->fd, n->ctx, prog_stall(n->fd), NULL, 0, n->sync));
	w = (struct waiter){ .fd = FD, .sync = sync[0] };
	assert_ok(pthread_create(&w.thread, NULL, wait_long, &w));
	/* Engines that stop keep their copies, and more of them than time-outs end until the removal. */
	break_copies("stop 1000");
	for (int i = 0; i < 32; i++)
		assert_ok(copy_start(FD, bo, 0, host, 0, 1 << 20, sync[2]));
	for (int i = 0; i < 3; i++)
		assert_ok(drmSyncobjExportSyncFile(FD, sync[i], &file[i]));
	assert_ok(drmSyncobjExportSyncFile(n->fd, n->sync, &file[3]));

	inject("remove");
	assert_ok(pthread_join(w.thread, NULL));
	assert_ok(w.ret);
	expect_log(F, "device is gone: register 0x1000 reads 0xffffffff, not 0x4958454e");
	wait_for_end(FD);
	assert_all_gone(FD);
	assert_all_gone(n->fd);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(file_status(file[i]), -ENODEV);
		close(file[i]);
	}
	assert_mapping_ends(p);
	assert_mapping_ends((uint8_t *)n->p);
	assert_ok(munmap((void *)(uintptr_t)p, 1 << 20));
	neighbour_end(n);
	fault_close(&FD);

	assert_ok(dev_driver_write("unbind", F->address));
	inject("clear");
	inject("return");
	assert_ok(dev_driver_write("bind", F->address));
	FD = dev_open();
	assert_int_equal(dev_memory(FD).hbm_used, F->hbm_used);
	dev_debugfs_write("stall_detect", "1");
	assert_works(FD);
}

/* Nobody is in the middle of anything: it is noticed all the same. */
static void removal_is_noticed_when_idle(void **state)
{
	need_control();
	inject("remove");
	expect_log(F, "device is gone");
	wait_for_end(FD);
	assert_all_gone(FD);
	inject("return");
	/* Back or not: this driver has given it up. */
	assert_all_gone(FD);
	fault_close(&FD);
	assert_ok(dev_driver_write("unbind", F->address));
	assert_ok(dev_driver_write("bind", F->address));
	FD = dev_open();
	assert_works(FD);
}

#define FAULT(name) cmocka_unit_test_setup_teardown(name, fault_setup, fault_teardown)

const struct CMUnitTest fault_inject_tests[] = {
	FAULT(a_launch_without_interrupt_is_found),
	FAULT(without_a_limit_it_is_found_too),
	FAULT(a_late_interrupt_is_no_fault),
	FAULT(a_copy_without_interrupt_is_found),
	FAULT(a_hung_engine_costs_its_launch),
	FAULT(a_failing_copy_fails_alone),
	FAULT(a_stopped_copy_engine_recovers),
	FAULT(a_wrong_completion_is_not_believed),
	FAULT(memory_errors_are_counted),
	FAULT(an_uncorrected_error_kills_its_reader),
	FAULT(a_memory_repair_is_told),
	FAULT(throttling_is_slow_and_reported),
	FAULT(a_bad_answer_is_asked_for_again),
	FAULT(senseless_firmware_is_started_anew),
	FAULT(useless_firmware_is_refused),
	FAULT(removal_wakes_everybody),
	FAULT(removal_is_noticed_when_idle),
};
const size_t fault_inject_tests_count = sizeof(fault_inject_tests) / sizeof(fault_inject_tests[0]);
