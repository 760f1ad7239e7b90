// SPDX-License-Identifier: Apache-2.0
/* One op of the fuzzer: mostly an ioctl, else something else that a process can do to a device. */
#define _GNU_SOURCE
#include "fuzz.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <ucontext.h>
#include <unistd.h>

#define CHILD_OPS 40

static const char *device_path;

/* --- world -------------------------------------------------------------------------- */

void fuzz_world_init(struct fuzz_world *world, const char *path)
{
	device_path = path;
	memset(world, 0, sizeof(*world));
	for (int i = 0; i < FUZZ_DEVICES; i++)
		world->device[i].fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	for (int i = 0; i < FUZZ_FILES; i++)
		world->file[i] = -1;
	for (int i = 0; i < FUZZ_MAPS; i++) {
		world->map[i] = mmap(NULL, FUZZ_MAP_MAX, PROT_NONE,
				     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (world->map[i] == MAP_FAILED)
			_exit(2);
	}
}

void fuzz_thread_init(struct fuzz_thread *t, struct fuzz_world *world, struct fuzz_stats *stats,
		      uint64_t seed)
{
	memset(t, 0, sizeof(*t));
	t->rng = seed;
	t->world = world;
	t->stats = stats;
	t->device = &world->device[0];
	t->arena = mmap(NULL, FUZZ_ARENA + 4096, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (t->arena == MAP_FAILED || mprotect(t->arena + FUZZ_ARENA, 4096, PROT_NONE))
		_exit(2);
}

void fuzz_keep_file(struct fuzz_thread *t, int fd)
{
	int old = atomic_exchange(&t->world->file[fuzz_below(t, FUZZ_FILES)], fd);

	if (old >= 0)
		close(old);
}

/* --- ioctls --------------------------------------------------------------------------- */

static void keep_result(struct fuzz_thread *t, const struct fuzz_call *call, const uint8_t *arg)
{
	uint32_t result;

	memcpy(&result, arg + call->result_at, sizeof(result));
	switch (call->result) {
	case RESULT_BO:
		fuzz_keep(t, POOL_BO, result);
		break;
	case RESULT_CTX:
		fuzz_keep(t, POOL_CTX, result);
		break;
	case RESULT_PROG:
		t->device->slots[result % FUZZ_PROGRAMS] = t->image_slots | t->image_scalars << 8;
		atomic_fetch_add(&t->stats->programs, 1);
		fuzz_keep(t, POOL_PROG, result);
		break;
	case RESULT_SYNC:
		fuzz_keep(t, POOL_SYNC, result);
		break;
	case RESULT_FILE:
		fuzz_keep_file(t, (int)result);
		break;
	case RESULT_NONE:
		break;
	}
}

static void look_at_state(struct fuzz_thread *t, const struct drm_neuron_ctx_state *state)
{
	if (state->state == DRM_NEURON_CTX_TIMEDOUT)
		atomic_fetch_add(&t->stats->timeouts, 1);
	else if (state->fault < EXI_FAULTS)
		atomic_fetch_add(&t->stats->fault[state->fault], 1);
}

static void forget(struct fuzz_thread *t, enum fuzz_pool pool, uint32_t handle)
{
	for (uint32_t i = 0; i < FUZZ_HANDLES; i++)
		atomic_compare_exchange_strong(&t->device->handle[pool][i], &(uint32_t){ handle },
					       0);
}

/* One that is dead is of little use. */
static void drop_ctx(struct fuzz_thread *t, uint32_t ctx)
{
	struct drm_neuron_ctx_state state = { .ctx = ctx };
	struct drm_neuron_ctx_destroy destroy = { .ctx = ctx };

	if (!ioctl(t->device->fd, DRM_IOCTL_NEURON_CTX_STATE, &state))
		look_at_state(t, &state);
	if (!ioctl(t->device->fd, DRM_IOCTL_NEURON_CTX_DESTROY, &destroy))
		forget(t, POOL_CTX, ctx);
}

/* Things that a call has ended are of use once in a while. */
static void forget_ended(struct fuzz_thread *t, unsigned long request, const uint8_t *arg)
{
	uint32_t handle;

	memcpy(&handle, arg, sizeof(handle));
	if (fuzz_once_in(t, 8))
		return;
	if (request == DRM_IOCTL_GEM_CLOSE)
		forget(t, POOL_BO, handle);
	else if (request == DRM_IOCTL_NEURON_CTX_DESTROY)
		forget(t, POOL_CTX, handle);
	else if (request == DRM_IOCTL_NEURON_PROGRAM_UNLOAD)
		forget(t, POOL_PROG, handle);
	else if (request == DRM_IOCTL_SYNCOBJ_DESTROY)
		forget(t, POOL_SYNC, handle);
}

static bool is_empty(const struct fuzz_device *device, unsigned int pool)
{
	for (uint32_t i = 0; i < FUZZ_HANDLES; i++)
		if (device->handle[pool][i])
			return false;
	return true;
}

static uint32_t pick_call(struct fuzz_thread *t)
{
	uint32_t pool = fuzz_below(t, POOLS), i = 0, at = fuzz_below(t, fuzz_weights());

	if (is_empty(t->device, pool) && !fuzz_once_in(t, 8))
		return (uint32_t)(fuzz_maker((enum fuzz_pool)pool) - fuzz_calls);
	while (at >= fuzz_calls[i].weight)
		at -= fuzz_calls[i++].weight;
	return i;
}

/* The size that the request says may be an older or a newer program's. */
static unsigned long odd_request(struct fuzz_thread *t, unsigned long request)
{
	unsigned int size = _IOC_SIZE(request);

	if (fuzz_once_in(t, 4))
		return _IOC(fuzz_below(t, 4), fuzz_once_in(t, 8) ? fuzz_below(t, 256) : 'd',
			    fuzz_below(t, 256), fuzz_below(t, FUZZ_ARG_MAX));
	size = fuzz_once_in(t, 2) ? fuzz_below(t, size + 1) : size + fuzz_below(t, 64);
	return _IOC(_IOC_DIR(request), _IOC_TYPE(request), _IOC_NR(request), size);
}

static void op_ioctl(struct fuzz_thread *t, uint32_t n)
{
	const struct fuzz_call *call = &fuzz_calls[n];
	uint8_t *arg = fuzz_alloc(t, FUZZ_ARG_MAX), *at = arg;
	unsigned long request = call->request;
	uint32_t size = fuzz_fill(t, call, arg);
	int error;

	if (t->wild && fuzz_once_in(t, 16))
		request = odd_request(t, request);
	fuzz_tame(request, arg);
	if (t->wild && request == call->request && fuzz_once_in(t, 16)) {
		/* The last bytes before a page that is not there, or beyond its begin. */
		at = t->arena + FUZZ_ARENA - size + 8 * fuzz_below(t, 2);
		memcpy(at, arg, (size_t)(t->arena + FUZZ_ARENA - at));
	}
	error = ioctl(t->device->fd, request, at) ? errno : 0;
	if (request == call->request && at == arg) {
		atomic_fetch_add(&t->stats->result[n][error < FUZZ_ERRNOS ? error : 0], 1);
		if (!error) {
			keep_result(t, call, arg);
			forget_ended(t, request, arg);
		}
		if (!error && request == DRM_IOCTL_NEURON_CTX_STATE)
			look_at_state(t, (struct drm_neuron_ctx_state *)arg);
		if (error == EIO && (request == DRM_IOCTL_NEURON_SUBMIT ||
				     request == DRM_IOCTL_NEURON_SUBMIT_BATCH))
			drop_ctx(t, ((struct drm_neuron_submit *)arg)->ctx);
	}
}

/* --- files ----------------------------------------------------------------------------- */

static void op_reopen(struct fuzz_thread *t)
{
	int old, fd = -1;

	if (fuzz_once_in(t, 3)) {
		fd = dup(t->device->fd);
	} else if (device_path) {
		fd = open(device_path, O_RDWR | (fuzz_once_in(t, 2) ? O_CLOEXEC : 0));
		for (unsigned int i = 0; i < POOLS * FUZZ_HANDLES && !fuzz_once_in(t, 64); i++)
			t->device->handle[i / FUZZ_HANDLES][i % FUZZ_HANDLES] = 0;
	}
	if (fd < 0)
		return;
	old = atomic_exchange(&t->device->fd, fd);
	close(old);
}

static void op_file(struct fuzz_thread *t)
{
	char text[1024];
	struct pollfd poll_fd = { .fd = fuzz_file(t), .events = POLLIN | POLLOUT };
	int fd;

	switch (fuzz_below(t, 6)) {
	case 0:
		fuzz_keep_file(t, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
		break;
	case 1:
		fuzz_keep_file(t, -1);
		break;
	case 2:
		poll(&poll_fd, 1, (int)fuzz_below(t, 3));
		break;
	case 3: /* events of a stream, a counter, nothing */
	case 4:
		fcntl(poll_fd.fd, F_SETFL, O_NONBLOCK);
		if (read(poll_fd.fd, text, 1 + fuzz_below(t, sizeof(text))) < 0)
			break;
		break;
	default:
		snprintf(text, sizeof(text), "/proc/self/fdinfo/%d", t->device->fd);
		fd = open(text, O_RDONLY | O_CLOEXEC);
		while (fd >= 0 && read(fd, text, sizeof(text)) > 0)
			;
		if (fd >= 0)
			close(fd);
	}
}

/* --- mappings ---------------------------------------------------------------------------- */

static _Thread_local sigjmp_buf *touching;

/* Anywhere but in touch(): a defect of the fuzzer, or something wrote memory that is not its own. */
static void on_bad_access(int signal, siginfo_t *info, void *context)
{
	const greg_t *regs = ((const ucontext_t *)context)->uc_mcontext.gregs;
	char text[256];
	int n;

	if (touching)
		siglongjmp(*touching, signal);
	n = snprintf(text, sizeof(text),
		     "fuzz: crashed in its own code: signal %d, code %d, address %p, pc %#llx "
		     "(fuzz_op is at %p), sp %#llx\n",
		     signal, info->si_code, info->si_addr, (unsigned long long)regs[REG_RIP],
		     (void *)(uintptr_t)fuzz_op, (unsigned long long)regs[REG_RSP]);
	if (write(STDERR_FILENO, text, (size_t)n) < 0)
		_exit(98);
	_exit(99);
}

static void on_alarm(int signal)
{
	(void)signal;
}

void fuzz_signals(void)
{
	/* NODEFER: it is left by siglongjmp. Without RESTART an alarm ends system calls. */
	struct sigaction access = { .sa_sigaction = on_bad_access,
				    .sa_flags = SA_NODEFER | SA_SIGINFO };
	struct sigaction alarm = { .sa_handler = on_alarm };

	sigaction(SIGBUS, &access, NULL);
	sigaction(SIGSEGV, &access, NULL);
	sigaction(SIGALRM, &alarm, NULL);
	signal(SIGCHLD, SIG_IGN);
}

static void touch(struct fuzz_thread *t, uint8_t *at)
{
	volatile uint64_t *p = (volatile uint64_t *)((uintptr_t)at & ~7ul);
	sigjmp_buf jump;

	if (sigsetjmp(jump, 1)) {
		atomic_fetch_add(&t->stats->bus_errors, 1);
	} else {
		touching = &jump;
		if (fuzz_once_in(t, 2))
			*p = fuzz_random(t);
		else
			(void)*p;
	}
	touching = NULL;
}

/* Through the kernel's copies to and from a user's memory. */
static void touch_in_kernel(struct fuzz_thread *t, uint8_t *at)
{
	static const char *const path[] = { "/dev/zero", "/proc/self/mem" };
	int fd = open(path[fuzz_below(t, 2)], O_RDWR | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return;
	if (fuzz_once_in(t, 2))
		n = pread(fd, at, 1 + fuzz_below(t, 8192), (off_t)(uintptr_t)at);
	else
		n = write(fd, at, 1 + fuzz_below(t, 8192));
	(void)n;
	close(fd);
}

static void map_buffer(struct fuzz_thread *t, uint8_t *range)
{
	static const int prots[] = { PROT_READ | PROT_WRITE, PROT_READ, PROT_WRITE, PROT_NONE,
				     PROT_READ | PROT_WRITE | PROT_EXEC };
	struct drm_neuron_bo_info info = { .handle = fuzz_handle(t, POOL_BO) };
	int flags = fuzz_once_in(t, 16) ? MAP_PRIVATE : MAP_SHARED;
	int prot = prots[fuzz_once_in(t, 2) ? 0 : fuzz_below(t, 5)];
	uint64_t size = FUZZ_MAP_MAX;

	if (!ioctl(t->device->fd, DRM_IOCTL_NEURON_BO_INFO, &info) && info.size < size)
		size = info.size;
	if (fuzz_once_in(t, 8))
		size = 4096u * (1 + fuzz_below(t, FUZZ_MAP_MAX / 4096));
	if (fuzz_once_in(t, 16))
		info.mmap_offset += 4096u * fuzz_below(t, 64);
	else if (fuzz_once_in(t, 32))
		info.mmap_offset = fuzz_odd_number(t) & ~4095ull;
	if (fuzz_once_in(t, 8))
		flags |= MAP_POPULATE;
	if (size && mmap(range, size, prot, flags | MAP_FIXED, t->device->fd,
			 (off_t)info.mmap_offset) == MAP_FAILED)
		mmap(range, FUZZ_MAP_MAX, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

static void op_mapping(struct fuzz_thread *t)
{
	static const int advice[] = { MADV_DONTNEED,	  MADV_WILLNEED,       MADV_DONTFORK,
				      MADV_DOFORK,	  MADV_HUGEPAGE,       MADV_MERGEABLE,
				      MADV_POPULATE_READ, MADV_POPULATE_WRITE, MADV_DONTDUMP };
	uint8_t *range = t->world->map[fuzz_below(t, FUZZ_MAPS)];
	uint32_t from = 4096 * fuzz_below(t, 64), size = 4096 * (1 + fuzz_below(t, 64));

	switch (fuzz_below(t, 16)) {
	case 0:
	case 1:
	case 2:
		map_buffer(t, range);
		break;
	case 3: /* the middle of it may stay */
		mmap(range + from, size, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
		break;
	case 4:
		mprotect(range + from, size, (int)fuzz_below(t, 4));
		break;
	case 5:
		madvise(range + from, size,
			advice[fuzz_below(t, sizeof(advice) / sizeof(advice[0]))]);
		break;
	case 6:
		mremap(range, size, 4096, 0);
		break;
	case 7:
	case 8:
		touch_in_kernel(t, range + fuzz_below(t, 65536));
		break;
	default:
		touch(t, range + fuzz_below(t, fuzz_once_in(t, 4) ? FUZZ_MAP_MAX : 65536));
		break;
	}
}

/* --- processes ------------------------------------------------------------------------------ */

static void exec_again(struct fuzz_thread *t)
{
	char text[2 + FUZZ_DEVICES][24];
	char *argv[4 + FUZZ_DEVICES] = { "fuzz", "--exec-child", text[0] };

	snprintf(text[0], sizeof(text[0]), "%llu", (unsigned long long)fuzz_random(t));
	for (int i = 0; i < FUZZ_DEVICES; i++) {
		snprintf(text[1 + i], sizeof(text[0]), "%d", t->world->device[i].fd);
		argv[3 + i] = text[1 + i];
	}
	execv("/proc/self/exe", argv);
	_exit(2);
}

/* The child of a process of several threads: it must not allocate. */
static void op_fork(struct fuzz_thread *t)
{
	bool exec = fuzz_once_in(t, 8);
	uint64_t seed = fuzz_random(t);
	pid_t pid;

	if (t->child)
		return;
	atomic_fetch_add(exec ? &t->stats->execs : &t->stats->forks, 1);
	pid = fork();
	if (pid)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	t->child = true;
	t->rng = seed;
	if (exec)
		exec_again(t);
	for (int i = 0; i < CHILD_OPS; i++)
		fuzz_op(t);
	_exit(0);
}

int fuzz_exec_child(int argc, char **argv)
{
	static struct fuzz_stats stats;
	static struct fuzz_world world;
	struct fuzz_thread t;

	fuzz_signals();
	fuzz_world_init(&world, NULL);
	fuzz_thread_init(&t, &world, &stats, strtoull(argv[0], NULL, 10));
	t.child = true;
	for (int i = 0; i < FUZZ_DEVICES && 1 + i < argc; i++) {
		world.device[i].fd = atoi(argv[1 + i]);
		for (unsigned int pool = 0; pool < POOLS; pool++)
			for (uint32_t j = 0; j < FUZZ_HANDLES; j++)
				world.device[i].handle[pool][j] = 1 + j;
	}
	for (int i = 0; i < CHILD_OPS; i++)
		fuzz_op(&t);
	return 0;
}

void fuzz_warm_up(struct fuzz_thread *t)
{
	for (uint32_t i = 0; i < FUZZ_DEVICES * POOLS * 3; i++) {
		t->used = 0;
		t->device = &t->world->device[i % FUZZ_DEVICES];
		op_ioctl(t, (uint32_t)(fuzz_maker((enum fuzz_pool)(i / FUZZ_DEVICES % POOLS)) -
				       fuzz_calls));
	}
}

void fuzz_op(struct fuzz_thread *t)
{
	uint32_t dice = fuzz_below(t, 1000);

	t->used = 0;
	t->wild = fuzz_once_in(t, 2);
	t->device = &t->world->device[fuzz_below(t, FUZZ_DEVICES)];
	atomic_fetch_add(&t->stats->ops, 1);
	if (dice < 880)
		op_ioctl(t, pick_call(t));
	else if (dice < 970)
		op_mapping(t);
	else if (dice < 990)
		op_file(t);
	else if (dice < 996)
		op_reopen(t);
	else
		op_fork(t);
}
