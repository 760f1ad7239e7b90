// SPDX-License-Identifier: Apache-2.0
/* The virtual Trainium in this process: the only file that knows of the model. */
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <unistd.h>

#include "inproc.h"
#include "log.h"
#include "neuron_topology.h"
#include "transport.h"

/* The same structures on both sides are passed on as they are. */
#define SAME(ours, theirs, member)                                                         \
	_Static_assert(offsetof(struct ours, member) == offsetof(struct theirs, member) && \
			       sizeof(((struct ours *)0)->member) ==                       \
				       sizeof(((struct theirs *)0)->member),               \
		       #ours " and " #theirs " differ")

SAME(nrti_slot, nm_inproc_slot, handle);
SAME(nrti_slot, nm_inproc_slot, flags);
SAME(nrti_slot, nm_inproc_slot, offset);
SAME(nrti_slot, nm_inproc_slot, size);
SAME(nrti_fence, nm_inproc_sync, handle);
SAME(nrti_fence, nm_inproc_sync, flags);
SAME(nrti_fence, nm_inproc_sync, point);
_Static_assert(sizeof(struct nrti_slot) == sizeof(struct nm_inproc_slot), "slots differ");
_Static_assert(sizeof(struct nrti_fence) == sizeof(struct nm_inproc_sync), "fences differ");
_Static_assert(NRTI_SLOT_INLINE == NM_SLOT_INLINE, "flags differ");
_Static_assert(NRTI_FENCES_MAX <= NM_INPROC_FENCES_MAX, "too many fences");
_Static_assert(NRTI_BO_HBM == NM_BO_HBM && NRTI_BO_HOST == NM_BO_HOST && NRTI_BO_MMAP == NM_BO_MMAP,
	       "flags differ");
_Static_assert(NRTI_CTX_OK == NM_CTX_OK && (int)NRTI_CTX_FAULTED == NM_CTX_FAULTED &&
		       (int)NRTI_CTX_TIMEDOUT == NM_CTX_TIMEDOUT,
	       "states differ");

static void model_log(void *user, int level, const char *text)
{
	static const enum nrti_log_level levels[] = {
		[NM_LOG_ERROR] = NRTI_LOG_ERROR,
		[NM_LOG_GUEST] = NRTI_LOG_INFO, /* the caller gets an error that says it */
		[NM_LOG_INFO] = NRTI_LOG_INFO,
		[NM_LOG_TRACE] = NRTI_LOG_TRACE,
	};

	/* Of many findings the caller gets one. */
	if (user && level == NM_LOG_GUEST)
		nrti_log(NRTI_LOG_WARN, "model: %s", text);
	else
		nrti_log(levels[level], "model: %s", text);
}

bool nrti_check_words(const char *words, uint32_t *check)
{
	return !nm_check_parse(words, check);
}

static int model_log_level(bool check)
{
	if (nrti_log_wants(NRTI_LOG_TRACE))
		return NM_LOG_TRACE;
	if (nrti_log_wants(NRTI_LOG_INFO))
		return NM_LOG_INFO;
	return check && nrti_log_wants(NRTI_LOG_WARN) ? NM_LOG_GUEST : NM_LOG_ERROR;
}

static unsigned int model_count(const struct nrti_config *config)
{
	return config->model_devices;
}

/* The server of the devices that are open. */
static struct {
	pthread_mutex_t lock;
	struct nm_server *server; /* NULL: none, or there is one device only */
	unsigned int open; /* devices */
	struct nm_inproc *device[NEURON_SERVER_DEVICES]; /* by number; NULL: not open */
	pid_t opener; /* process that they belong to */
} model = { .lock = PTHREAD_MUTEX_INITIALIZER };

static int server_get(const struct nrti_config *config)
{
	int ret = 0;

	pthread_mutex_lock(&model.lock);
	if (!model.server && config->model_devices > 1) {
		model.server = nm_server_create(config->model_chip, config->model_devices, 0);
		if (!model.server)
			ret = -ENOMEM;
	}
	model.open += !ret;
	pthread_mutex_unlock(&model.lock);
	return ret;
}

static void server_put(void)
{
	pthread_mutex_lock(&model.lock);
	if (!--model.open) {
		nm_server_destroy(model.server);
		model.server = NULL;
	}
	pthread_mutex_unlock(&model.lock);
}

static void note_device(unsigned int index, struct nm_inproc *dev)
{
	pthread_mutex_lock(&model.lock);
	model.device[index] = dev;
	model.opener = getpid();
	pthread_mutex_unlock(&model.lock);
}

static void forget_device(const struct nm_inproc *dev)
{
	pthread_mutex_lock(&model.lock);
	for (unsigned int i = 0; i < NEURON_SERVER_DEVICES; i++)
		if (model.device[i] == dev)
			model.device[i] = NULL;
	pthread_mutex_unlock(&model.lock);
}

_Static_assert(NRTI_MODEL_THREADS_MAX == NM_THREADS_MAX, "the variable takes what the model does");

static int model_open(const struct nrti_config *config, unsigned int index, void **dev)
{
	struct nm_inproc_config device = {
		.number = index,
		.chip = config->model_chip,
		.cores = config->model_cores,
		.hbm_bytes = config->model_hbm_bytes,
		.exec_timeout_ns = config->exec_timeout_ns,
		.report = config->model_report,
		.threads = config->model_threads,
		.check = config->model_check,
		.log_level = model_log_level(config->model_check),
		.log = model_log,
		.user = config->model_check ? (void *)(uintptr_t)1 : NULL,
	};
	int ret = server_get(config);

	if (ret)
		return ret;
	device.server = model.server;
	ret = nm_inproc_open(&device, (struct nm_inproc **)dev);
	if (ret)
		server_put();
	else
		note_device(index, *dev);
	return ret;
}

/* Most programs end without closing the runtime. */
__attribute__((destructor)) static void at_exit(void)
{
	if (model.opener != getpid())
		return;
	pthread_mutex_lock(&model.lock);
	for (unsigned int i = 0; i < NEURON_SERVER_DEVICES; i++)
		if (model.device[i])
			nm_inproc_flush(model.device[i]);
	pthread_mutex_unlock(&model.lock);
}

static void model_close(void *dev)
{
	forget_device(dev);
	nm_inproc_close(dev);
	server_put();
}

static int model_facts(void *dev, struct nrti_facts *facts)
{
	struct nm_inproc_facts f;

	nm_inproc_facts(dev, &f);
	*facts = (struct nrti_facts){
		.arch = f.arch,
		.cores = f.cores,
		.cores_joined = f.cores_joined,
		.exec_version = f.exec_version,
		.pci_device = f.pci_device,
		.pci_revision = f.pci_revision,
		.sbuf_bytes = f.sbuf_bytes,
		.psum_bytes = f.psum_bytes,
		.slots_max = f.slots_max,
		.inflight_max = f.inflight_max,
		.serial = f.serial,
	};
	return 0;
}

static int model_memory(void *dev, struct nrti_memory *memory)
{
	struct nm_inproc_memory m;

	nm_inproc_memory(dev, &m);
	*memory = (struct nrti_memory){
		.hbm_bytes = m.hbm_bytes,
		.hbm_used = m.hbm_used,
		.granule = m.granule,
	};
	return 0;
}

static int model_bo_create(void *dev, uint64_t *size, uint32_t flags, uint32_t *handle)
{
	return nm_inproc_bo_create(dev, size, flags, handle);
}

static int model_bo_map(void *dev, uint32_t handle, uint64_t size, void **ptr)
{
	(void)size;
	return nm_inproc_bo_map(dev, handle, ptr);
}

static void model_bo_unmap(void *dev, void *ptr, uint64_t size)
{
	(void)dev;
	(void)ptr;
	(void)size;
}

static void model_bo_close(void *dev, uint32_t handle)
{
	nm_inproc_bo_close(dev, handle);
}

static int model_bo_import(void *dev, void *owner, uint32_t owner_handle, uint32_t *handle)
{
	return nm_inproc_bo_import(dev, owner, owner_handle, handle);
}

static int model_ctx_create(void *dev, uint64_t cores, uint32_t priority, uint32_t *ctx,
			    uint32_t *core)
{
	return nm_inproc_ctx_create(dev, cores, priority, ctx, core);
}

static void model_ctx_destroy(void *dev, uint32_t ctx)
{
	nm_inproc_ctx_destroy(dev, ctx);
}

static int model_ctx_state(void *dev, uint32_t ctx, struct nrti_ctx_state *state)
{
	struct nm_inproc_ctx_state s;
	int ret = nm_inproc_ctx_state(dev, ctx, &s);

	if (ret)
		return ret;
	*state = (struct nrti_ctx_state){
		.state = s.state,
		.fault = s.fault,
		.engine = s.engine,
		.pc = s.pc,
		.opcode = s.opcode,
		.slot = s.slot,
		.program = s.program,
		.value = s.value,
		.limit = s.limit,
		.launches = s.launches,
		.device_ns = s.device_ns,
		.dma_bytes = s.dma_bytes,
	};
	for (int i = 0; i < 5; i++)
		state->insts[i] = s.insts[i];
	return 0;
}

static int model_program_load(void *dev, const void *image, uint64_t size, uint32_t *program)
{
	return nm_inproc_program_load(dev, image, size, program);
}

static void model_program_unload(void *dev, uint32_t program)
{
	nm_inproc_program_unload(dev, program);
}

static int model_submit(void *dev, const struct nrti_submit *s)
{
	const struct nm_inproc_submit submit = {
		.ctx = s->ctx,
		.program = s->program,
		.n_slots = s->n_slots,
		.n_in = s->n_in,
		.n_out = 1,
		.slots = (const struct nm_inproc_slot *)s->slots,
		.in = (const struct nm_inproc_sync *)s->in,
		.out = (const struct nm_inproc_sync *)&s->out,
	};

	return nm_inproc_submit(dev, &submit);
}

static int model_copy(void *dev, const struct nrti_copy *c)
{
	const struct nm_inproc_copy copy = {
		.src = c->src,
		.dst = c->dst,
		.src_offset = c->src_offset,
		.dst_offset = c->dst_offset,
		.size = c->size,
		.n_in = c->n_in,
		.n_out = 1,
		.in = (const struct nm_inproc_sync *)c->in,
		.out = (const struct nm_inproc_sync *)&c->out,
	};

	return nm_inproc_copy(dev, &copy);
}

static int model_sync_create(void *dev, uint32_t *handle)
{
	return nm_inproc_sync_create(dev, handle);
}

static void model_sync_destroy(void *dev, uint32_t handle)
{
	nm_inproc_sync_destroy(dev, handle);
}

static int model_sync_wait(void *dev, uint32_t handle, uint64_t point, int64_t deadline_ns)
{
	return nm_inproc_sync_wait(dev, handle, point, deadline_ns);
}

static int model_sync_query(void *dev, uint32_t handle, uint64_t *point)
{
	return nm_inproc_sync_query(dev, handle, point);
}

static int model_sync_time(void *dev, uint32_t handle, uint64_t point, uint64_t *ns)
{
	return nm_inproc_sync_time(dev, handle, point, ns);
}

const struct nrti_transport nrti_transport_model = {
	.name = "model",
	.count = model_count,
	.open = model_open,
	.close = model_close,
	.facts = model_facts,
	.memory = model_memory,
	.bo_create = model_bo_create,
	.bo_map = model_bo_map,
	.bo_unmap = model_bo_unmap,
	.bo_close = model_bo_close,
	.bo_import = model_bo_import,
	.ctx_create = model_ctx_create,
	.ctx_destroy = model_ctx_destroy,
	.ctx_state = model_ctx_state,
	.program_load = model_program_load,
	.program_unload = model_program_unload,
	.submit = model_submit,
	.copy = model_copy,
	.sync_create = model_sync_create,
	.sync_destroy = model_sync_destroy,
	.sync_wait = model_sync_wait,
	.sync_query = model_sync_query,
	.sync_time = model_sync_time,
};
