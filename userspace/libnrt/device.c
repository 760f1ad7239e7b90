// SPDX-License-Identifier: Apache-2.0
/* Finding and opening devices, the numbering of cores, statistics. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dump.h"
#include "nrti.h"

static struct {
	pthread_mutex_t lock;
	_Atomic enum { UNOPENED, OPEN, CLOSED } state;
	_Atomic bool init; /* nrt_init() was called */
	_Atomic bool forked; /* this is a child of a process that had devices open */
	bool atfork;
	struct nrti_device **devices;
	unsigned int n_devices;
	struct nrti_core *cores;
	uint32_t n_cores;
	uint32_t n_total;
} runtime = { .lock = PTHREAD_MUTEX_INITIALIZER };

uint64_t nrti_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

static void in_child(void)
{
	if (runtime.state == OPEN)
		runtime.forked = true;
}

static NRT_STATUS forked_error(void)
{
	return nrti_error(NRT_FAILURE, "this process was forked from one that had Neuron devices "
				       "open, and can "
				       "not use them; start it with exec, or (in Python) with the "
				       "multiprocessing "
				       "start method 'spawn' or 'forkserver'");
}

/* --- devices ------------------------------------------------------------------------ */

struct nrti_device *nrti_device_get(struct nrti_device *device)
{
	device->refs++;
	return device;
}

void nrti_device_put(struct nrti_device *device)
{
	if (--device->refs)
		return;
	pthread_mutex_destroy(&device->lock);
	free(device);
}

bool nrti_device_alive(const struct nrti_device *device)
{
	return !device->closed && !runtime.forked;
}

NRT_STATUS nrti_device_check(const struct nrti_device *device)
{
	if (runtime.forked)
		return forked_error();
	if (device->closed)
		return nrti_error(NRT_CLOSED, "the runtime was closed by nrt_close()");
	return NRT_SUCCESS;
}

static NRT_STATUS device_open(const struct nrti_transport *transport,
			      const struct nrti_config *config, unsigned int index)
{
	struct nrti_device *device = calloc(1, sizeof(*device));
	struct nrti_device **list;
	int ret;

	list = realloc(runtime.devices, (runtime.n_devices + 1) * sizeof(*list));
	if (list)
		runtime.devices = list;
	if (!device || !list) {
		free(device);
		return nrti_errno(-ENOMEM, "opening device %u", index);
	}
	ret = transport->open(config, index, &device->dev);
	if (ret) {
		free(device);
		return nrti_errno(ret, "opening device %u (%s)", index, transport->name);
	}
	device->transport = transport;
	device->index = index;
	device->exec_timeout_ns = config->exec_timeout_ns;
	device->refs = 1;
	pthread_mutex_init(&device->lock, NULL);
	runtime.devices[runtime.n_devices++] = device;
	ret = transport->facts(device->dev, &device->facts);
	if (ret)
		return nrti_errno(ret, "reading the facts of device %u (%s)", index,
				  transport->name);
	nrti_log(NRTI_LOG_INFO, "device %u (%s): %u cores, serial %llx", index, transport->name,
		 device->facts.cores, (unsigned long long)device->facts.serial);
	return NRT_SUCCESS;
}

static void close_all(void)
{
	for (unsigned int i = 0; i < runtime.n_devices; i++) {
		struct nrti_device *device = runtime.devices[i];

		device->closed = true;
		device->transport->close(device->dev);
		nrti_device_put(device);
	}
	free(runtime.devices);
	for (uint32_t i = 0; i < runtime.n_cores; i++)
		pthread_mutex_destroy(&runtime.cores[i].lock);
	free(runtime.cores);
	runtime.devices = NULL;
	runtime.n_devices = 0;
	runtime.cores = NULL;
	runtime.n_cores = 0;
}

/* --- opening -------------------------------------------------------------------------- */

static const struct nrti_transport *choose(const struct nrti_config *config, unsigned int *count)
{
	const struct nrti_transport *transport = &nrti_transport_accel;

	*count = 0;
	if (config->transport != NRTI_MODEL)
		*count = transport->count(config);
	if (!*count && config->transport != NRTI_ACCEL) {
		transport = &nrti_transport_model;
		*count = transport->count(config);
	}
	return transport;
}

/* Logical core number n over all devices, of lnc cores each. */
static void core_set(struct nrti_core *core, uint32_t n, uint32_t lnc)
{
	unsigned int i = 0;

	while (n >= runtime.devices[i]->facts.cores / lnc)
		n -= runtime.devices[i++]->facts.cores / lnc;
	core->device = runtime.devices[i];
	core->index = n * lnc;
	core->size = lnc;
	pthread_mutex_init(&core->lock, NULL);
}

static NRT_STATUS check_lnc(const struct nrti_device *device, uint32_t lnc)
{
	const struct nrti_facts *facts = &device->facts;

	if (facts->cores_joined % lnc == 0 && facts->cores % lnc == 0)
		return NRT_SUCCESS;
	return nrti_error(NRT_INVALID,
			  "NEURON_LOGICAL_NC_CONFIG (or NEURON_RT_VIRTUAL_CORE_SIZE) is %u, but "
			  "device %u has %u cores, which its chip joins by %u; unset it or say 1",
			  lnc, device->index, facts->cores, facts->cores_joined);
}

static NRT_STATUS make_cores(const struct nrti_config *config)
{
	NRT_STATUS status;
	uint32_t n;

	runtime.n_total = 0;
	for (unsigned int i = 0; i < runtime.n_devices; i++) {
		status = check_lnc(runtime.devices[i], config->lnc);
		if (status)
			return status;
		runtime.n_total += runtime.devices[i]->facts.cores / config->lnc;
	}
	n = config->all_visible ? runtime.n_total : config->n_visible;
	if (config->num_cores > n)
		return nrti_error(NRT_LOAD_NOT_ENOUGH_NC,
				  "NEURON_RT_NUM_CORES=%u, but there are %u cores%s",
				  config->num_cores, n,
				  config->all_visible ? "" : " in NEURON_RT_VISIBLE_CORES");
	if (config->num_cores)
		n = config->num_cores;
	runtime.cores = calloc(n, sizeof(*runtime.cores));
	if (!runtime.cores)
		return nrti_errno(-ENOMEM, "listing %u cores", n);
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t core = config->all_visible ? i : config->visible[i];

		if (core >= runtime.n_total)
			return nrti_error(NRT_LOAD_NOT_ENOUGH_NC,
					  "NEURON_RT_VISIBLE_CORES names core %u, but there are "
					  "%u cores, 0 to %u",
					  core, runtime.n_total, runtime.n_total - 1);
		core_set(&runtime.cores[i], core, config->lnc);
		runtime.n_cores++;
	}
	return NRT_SUCCESS;
}

static NRT_STATUS open_locked(void)
{
	char error[NRTI_ERROR_BYTES];
	const struct nrti_transport *transport;
	NRT_STATUS status = NRT_SUCCESS;
	struct nrti_config *config;
	unsigned int count;

	config = malloc(sizeof(*config));
	if (!config)
		return nrti_errno(-ENOMEM, "opening the runtime");
	if (!nrti_env_read(config, error, sizeof(error))) {
		free(config);
		return nrti_error(NRT_INVALID, "%s", error);
	}
	nrti_log_setup(config);
	nrti_dump_setup(config);
	if (!runtime.atfork) {
		pthread_atfork(NULL, NULL, in_child);
		runtime.atfork = true;
	}
	transport = choose(config, &count);
	if (!count)
		status = nrti_error(NRT_HW_ERROR,
				    "no Neuron device: NEURON_RT_TRANSPORT=accel, but %s",
				    "/sys/class/accel lists none of the driver 'neuron' that this "
				    "user can open; is the module loaded (modprobe neuron)?");
	for (unsigned int i = 0; i < count && !status; i++)
		status = device_open(transport, config, i);
	if (!status)
		status = make_cores(config);
	if (status)
		close_all();
	free(config);
	return status;
}

NRT_STATUS nrti_runtime_open(bool init)
{
	NRT_STATUS status = NRT_SUCCESS;

	if (runtime.forked)
		return forked_error();
	if (runtime.state == OPEN)
		return NRT_SUCCESS;
	pthread_mutex_lock(&runtime.lock);
	if (runtime.state == CLOSED && !init) {
		status = nrti_error(NRT_CLOSED, "the runtime was closed by nrt_close()");
	} else if (runtime.state != OPEN) {
		status = open_locked();
		if (!status)
			runtime.state = OPEN;
	}
	pthread_mutex_unlock(&runtime.lock);
	return status;
}

void nrti_runtime_mark_init(void)
{
	runtime.init = true;
}

NRT_STATUS nrti_runtime_check(void)
{
	if (runtime.forked)
		return forked_error();
	if (runtime.state == CLOSED)
		return nrti_error(NRT_CLOSED, "the runtime was closed by nrt_close()");
	if (!runtime.init)
		return nrti_error(NRT_UNINITIALIZED, "nrt_init() has not been called");
	return NRT_SUCCESS;
}

void nrti_runtime_close(void)
{
	if (runtime.forked)
		return;
	pthread_mutex_lock(&runtime.lock);
	if (runtime.state == OPEN) {
		runtime.state = CLOSED;
		runtime.init = false;
		close_all();
	}
	pthread_mutex_unlock(&runtime.lock);
}

/* --- cores ------------------------------------------------------------------------------ */

struct nrti_core *nrti_core_get(uint32_t core, NRT_STATUS *status)
{
	*status = nrti_runtime_open(false);
	if (*status)
		return NULL;
	if (core < runtime.n_cores)
		return &runtime.cores[core];
	*status = nrti_error(NRT_INVALID, "core %u does not exist: there are %u", core,
			     runtime.n_cores);
	return NULL;
}

uint32_t nrti_core_total(void)
{
	return runtime.n_total;
}

NRT_STATUS nrtx_core_count(uint32_t *count)
{
	NRT_STATUS status = nrti_runtime_open(false);

	if (!count)
		return nrti_error(NRT_INVALID, "nrtx_core_count: count is NULL");
	*count = status ? 0 : runtime.n_cores;
	return status;
}

static const char *arch_name(const struct nrti_facts *facts)
{
	switch (facts->arch) {
	case 2:
		return facts->pci_device == 0x7264 ? "Inferentia2" : "Trainium1";
	case 3:
		return "Trainium2";
	case 4:
		return "Trainium3";
	default:
		return "Neuron";
	}
}

NRT_STATUS nrtx_core_info(uint32_t core, struct nrtx_core_info *info)
{
	const struct nrti_facts *facts;
	struct nrti_memory memory;
	struct nrti_core *c;
	NRT_STATUS status;
	int ret;

	if (!info)
		return nrti_error(NRT_INVALID, "nrtx_core_info: info is NULL");
	c = nrti_core_get(core, &status);
	if (!c)
		return status;
	ret = c->device->transport->memory(c->device->dev, &memory);
	if (ret)
		return nrti_errno(ret, "asking device %u for its memory", c->device->index);
	facts = &c->device->facts;
	*info = (struct nrtx_core_info){
		.arch = facts->arch,
		.device = c->device->index,
		.core = c->index,
		.sbuf_bytes = facts->sbuf_bytes,
		.psum_bytes = facts->psum_bytes,
		.virtual_device = facts->pci_revision == 255,
		.hbm_bytes = memory.hbm_bytes,
		.hbm_free = memory.hbm_bytes - memory.hbm_used,
		.serial = facts->serial,
		.cores = c->size,
	};
	snprintf(info->transport, sizeof(info->transport), "%s", c->device->transport->name);
	snprintf(info->name, sizeof(info->name), "%s", arch_name(facts));
	return NRT_SUCCESS;
}

/* --- statistics --------------------------------------------------------------------------- */

static void subtract(struct nrtx_stats *from, const struct nrtx_stats *what)
{
	from->launches -= what->launches;
	for (int i = 0; i < 5; i++)
		from->insts[i] -= what->insts[i];
	from->device_ns -= what->device_ns;
	from->dma_bytes -= what->dma_bytes;
	from->to_device_bytes -= what->to_device_bytes;
	from->to_host_bytes -= what->to_host_bytes;
}

NRT_STATUS nrtx_stats(uint32_t core, struct nrtx_stats *stats, bool reset)
{
	struct nrtx_stats now;
	struct nrti_core *c;
	NRT_STATUS status;

	c = nrti_core_get(core, &status);
	if (!c)
		return status;
	pthread_mutex_lock(&c->lock);
	now = c->gone;
	pthread_mutex_unlock(&c->lock);
	nrti_streams_stats(core, &now);
	now.to_device_bytes = c->to_device_bytes;
	now.to_host_bytes = c->to_host_bytes;

	pthread_mutex_lock(&c->lock);
	if (stats) {
		*stats = now;
		subtract(stats, &c->base);
	}
	if (reset)
		c->base = now;
	pthread_mutex_unlock(&c->lock);
	return NRT_SUCCESS;
}
