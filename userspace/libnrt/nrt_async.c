// SPDX-License-Identifier: Apache-2.0
/*
 * Execution units: a thread each, made at the first request, that serves its
 * requests in order with the synchronous calls on a stream of its own. So one
 * execution runs at a time, also on a logical core of several: the next may read
 * what it wrote. Threads that call nrt_execute() use all of its cores.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <unistd.h>

#include <nrt/nrt_async.h>

#include "nrt_impl.h"

enum kind { READ, WRITE, COPY, EXECUTE };

struct request {
	STAILQ_ENTRY(request) list;
	enum kind kind;
	uint64_t seq;
	nrta_error_tracker_t *err;
	nrt_tensor_t *src, *dst;
	uint64_t src_offset, dst_offset, size;
	void *host;
	const void *const_host;
	nrt_model_t *model;
	const nrt_tensor_set_t *in;
	nrt_tensor_set_t *out;
};

/* Somebody polls for a request. */
struct handle {
	STAILQ_ENTRY(handle) list;
	uint64_t seq;
	int fd; /* ours; the caller has a duplicate */
};

struct unit {
	uint16_t id; /* core * NRTA_XU_TYPE_NUM + xu */
	pthread_mutex_t lock;
	pthread_cond_t work;
	pthread_t thread;
	bool stop;
	uint64_t last; /* requests made */
	uint64_t completed; /* requests complete */
	struct nrtx_stream *stream;
	STAILQ_HEAD(requests, request) requests;
	STAILQ_HEAD(handles, handle) handles;
};

struct nrta_error_tracker {
	pthread_mutex_t lock;
	nrta_error_t *errors, *shown;
	size_t n, max;
};

static struct {
	pthread_mutex_t lock;
	struct unit *unit[NRTI_CORES_MAX * NRTA_XU_TYPE_NUM];
} units = { .lock = PTHREAD_MUTEX_INITIALIZER };

static uint64_t seq_of(const struct unit *unit, uint64_t seq)
{
	return (uint64_t)unit->id << 48 | seq;
}

/* --- errors -------------------------------------------------------------------------------- */

NRT_STATUS nrta_error_tracker_create(uint32_t lnc_idx, nrta_error_tracker_t **error_tracker)
{
	NRT_STATUS status = nrti_runtime_check();
	nrta_error_tracker_t *tracker;

	if (status)
		return status;
	if (!error_tracker)
		return nrti_error(NRT_INVALID, "nrta_error_tracker_create: no place for it");
	if (!nrti_core_get(lnc_idx, &status))
		return status;
	tracker = calloc(1, sizeof(*tracker));
	if (!tracker)
		return nrti_errno(-ENOMEM, "creating an error tracker");
	pthread_mutex_init(&tracker->lock, NULL);
	*error_tracker = tracker;
	return NRT_SUCCESS;
}

void nrta_error_tracker_destroy(nrta_error_tracker_t *tracker)
{
	if (!tracker)
		return;
	pthread_mutex_destroy(&tracker->lock);
	free(tracker->errors);
	free(tracker->shown);
	free(tracker);
}

static void track(nrta_error_tracker_t *tracker, uint64_t seq, NRT_STATUS status)
{
	nrta_error_t *errors;

	nrti_log(NRTI_LOG_WARN, "request %llx failed: %s", (unsigned long long)seq,
		 nrtx_error_text());
	if (!tracker)
		return;
	pthread_mutex_lock(&tracker->lock);
	if (tracker->n == tracker->max) {
		errors = realloc(tracker->errors, (tracker->max * 2 + 8) * sizeof(*errors));
		if (errors) {
			tracker->errors = errors;
			tracker->max = tracker->max * 2 + 8;
		}
	}
	if (tracker->n < tracker->max)
		tracker->errors[tracker->n++] = (nrta_error_t){ seq, status };
	pthread_mutex_unlock(&tracker->lock);
}

NRT_STATUS nrta_error_tracker_get_list(nrta_error_tracker_t *tracker, const nrta_error_t **list,
				       size_t *error_count)
{
	if (!tracker || !list || !error_count)
		return nrti_error(NRT_INVALID, "nrta_error_tracker_get_list: an argument is NULL");
	pthread_mutex_lock(&tracker->lock);
	free(tracker->shown);
	tracker->shown = tracker->errors;
	*list = tracker->shown;
	*error_count = tracker->n;
	tracker->errors = NULL;
	tracker->n = 0;
	tracker->max = 0;
	pthread_mutex_unlock(&tracker->lock);
	return NRT_SUCCESS;
}

/* --- the thread ------------------------------------------------------------------------------ */

static NRT_STATUS serve(struct unit *unit, struct request *r)
{
	switch (r->kind) {
	case READ:
		return nrti_tensor_read(unit->stream, r->src, r->host, r->src_offset, r->size);
	case WRITE:
		return nrti_tensor_write(unit->stream, r->dst, r->const_host, r->dst_offset,
					 r->size);
	case COPY:
		return nrti_tensor_copy(unit->stream, r->src, r->src_offset, r->dst, r->dst_offset,
					r->size);
	case EXECUTE:
		return nrt_execute(r->model, r->in, r->out);
	}
	return NRT_FAILURE;
}

static void signal_handle(int fd)
{
	const uint64_t one = 1;

	if (write(fd, &one, sizeof(one)) != sizeof(one))
		nrti_log(NRTI_LOG_ERROR, "a completion handle could not be signalled");
	close(fd);
}

/* Lock held. */
static void complete(struct unit *unit, uint64_t seq)
{
	struct handle *handle, *next;

	unit->completed = seq;
	for (handle = STAILQ_FIRST(&unit->handles); handle; handle = next) {
		next = STAILQ_NEXT(handle, list);
		if (handle->seq > seq)
			continue;
		STAILQ_REMOVE(&unit->handles, handle, handle, list);
		signal_handle(handle->fd);
		free(handle);
	}
}

static void *unit_main(void *arg)
{
	struct unit *unit = arg;
	struct request *r;
	NRT_STATUS status;

	pthread_mutex_lock(&unit->lock);
	for (;;) {
		r = STAILQ_FIRST(&unit->requests);
		if (!r && unit->stop)
			break;
		if (!r) {
			pthread_cond_wait(&unit->work, &unit->lock);
			continue;
		}
		STAILQ_REMOVE_HEAD(&unit->requests, list);
		pthread_mutex_unlock(&unit->lock);
		status = serve(unit, r);
		if (status)
			track(r->err, seq_of(unit, r->seq), status);
		pthread_mutex_lock(&unit->lock);
		complete(unit, r->seq);
		free(r);
	}
	pthread_mutex_unlock(&unit->lock);
	return NULL;
}

static void unit_free(struct unit *unit)
{
	nrtx_stream_destroy(unit->stream);
	pthread_cond_destroy(&unit->work);
	pthread_mutex_destroy(&unit->lock);
	free(unit);
}

static struct unit *unit_make(uint32_t lnc, nrta_xu_t xu, NRT_STATUS *status)
{
	struct unit *unit = calloc(1, sizeof(*unit));

	if (!unit) {
		*status = nrti_errno(-ENOMEM, "making an execution unit");
		return NULL;
	}
	unit->id = (uint16_t)(lnc * NRTA_XU_TYPE_NUM + xu);
	STAILQ_INIT(&unit->requests);
	STAILQ_INIT(&unit->handles);
	pthread_mutex_init(&unit->lock, NULL);
	pthread_cond_init(&unit->work, NULL);
	*status = nrtx_stream_create(lnc, 0, &unit->stream);
	if (!*status && pthread_create(&unit->thread, NULL, unit_main, unit))
		*status = nrti_errno(-ENOMEM, "starting the thread of an execution unit");
	if (*status) {
		unit_free(unit);
		return NULL;
	}
	return unit;
}

static struct unit *unit_get(uint32_t lnc, nrta_xu_t xu, NRT_STATUS *status)
{
	struct unit **at;
	struct unit *unit;

	*status = nrti_runtime_check();
	if (*status || !nrti_core_get(lnc, status))
		return NULL;
	at = &units.unit[lnc * NRTA_XU_TYPE_NUM + xu];
	pthread_mutex_lock(&units.lock);
	if (!*at)
		*at = unit_make(lnc, xu, status);
	unit = *at;
	pthread_mutex_unlock(&units.lock);
	return unit;
}

void nrti_async_close(void)
{
	pthread_mutex_lock(&units.lock);
	for (size_t i = 0; i < NRTI_CORES_MAX * NRTA_XU_TYPE_NUM; i++) {
		struct unit *unit = units.unit[i];

		if (!unit)
			continue;
		pthread_mutex_lock(&unit->lock);
		unit->stop = true;
		pthread_cond_signal(&unit->work);
		pthread_mutex_unlock(&unit->lock);
		pthread_join(unit->thread, NULL);
		unit_free(unit);
		units.unit[i] = NULL;
	}
	pthread_mutex_unlock(&units.lock);
}

/* --- requests ------------------------------------------------------------------------------------ */

static NRT_STATUS schedule(uint32_t lnc, nrta_xu_t xu, int queue, const struct request *what,
			   nrta_seq_t *seq)
{
	struct request *r;
	struct unit *unit;
	NRT_STATUS status;

	if (queue)
		return nrti_error(NRT_INVALID, "execution units have one queue, 0, not %d", queue);
	unit = unit_get(lnc, xu, &status);
	if (!unit)
		return status;
	r = malloc(sizeof(*r));
	if (!r)
		return nrti_errno(-ENOMEM, "scheduling a request");
	*r = *what;
	pthread_mutex_lock(&unit->lock);
	r->seq = ++unit->last;
	if (seq)
		*seq = seq_of(unit, r->seq);
	STAILQ_INSERT_TAIL(&unit->requests, r, list);
	pthread_cond_signal(&unit->work);
	pthread_mutex_unlock(&unit->lock);
	return NRT_SUCCESS;
}

NRT_STATUS nrta_tensor_write(nrt_tensor_t *tensor, const void *buf, uint64_t offset, uint64_t size,
			     int queue, nrta_error_tracker_t *err, nrta_seq_t *req_sequence)
{
	const struct request r = {
		.kind = WRITE,
		.err = err,
		.dst = tensor,
		.dst_offset = offset,
		.size = size,
		.const_host = buf,
	};
	NRT_STATUS status = nrti_tensor_check(tensor, offset, size, "nrta_tensor_write");

	if (!status && (!buf || !size))
		status = nrti_error(NRT_INVALID, "nrta_tensor_write: %llu bytes at %p",
				    (unsigned long long)size, buf);
	return status ? status :
			schedule(nrti_tensor_vnc(tensor), NRTA_XU_TENSOR_WRITE, queue, &r,
				 req_sequence);
}

NRT_STATUS nrta_tensor_read(void *buf, nrt_tensor_t *tensor, uint64_t offset, uint64_t size,
			    int queue, nrta_error_tracker_t *err, nrta_seq_t *req_sequence)
{
	const struct request r = {
		.kind = READ,
		.err = err,
		.src = tensor,
		.src_offset = offset,
		.size = size,
		.host = buf,
	};
	NRT_STATUS status = nrti_tensor_check(tensor, offset, size, "nrta_tensor_read");

	if (!status && (!buf || !size))
		status = nrti_error(NRT_INVALID, "nrta_tensor_read: %llu bytes at %p",
				    (unsigned long long)size, buf);
	return status ? status :
			schedule(nrti_tensor_vnc(tensor), NRTA_XU_TENSOR_READ, queue, &r,
				 req_sequence);
}

NRT_STATUS nrta_tensor_copy(nrt_tensor_t *src, uint64_t src_offset, nrt_tensor_t *dst,
			    uint64_t dst_offset, uint64_t size, int queue,
			    nrta_error_tracker_t *err, nrta_seq_t *req_sequence)
{
	const struct request r = {
		.kind = COPY,
		.err = err,
		.src = src,
		.dst = dst,
		.src_offset = src_offset,
		.dst_offset = dst_offset,
		.size = size,
	};
	NRT_STATUS status = nrti_tensor_check(src, src_offset, size, "nrta_tensor_copy, source");

	if (!status)
		status = nrti_tensor_check(dst, dst_offset, size, "nrta_tensor_copy, destination");
	if (!status && !size)
		status = nrti_error(NRT_INVALID, "nrta_tensor_copy: no bytes");
	return status ? status :
			schedule(nrti_tensor_vnc(src->storage->buffer ? src : dst),
				 NRTA_XU_TENSOR_OP, queue, &r, req_sequence);
}

NRT_STATUS nrta_execute_schedule(nrt_model_t *model, const nrt_tensor_set_t *input,
				 nrt_tensor_set_t *output, int queue, nrta_error_tracker_t *err,
				 nrta_seq_t *req_sequence)
{
	const struct request r = {
		.kind = EXECUTE,
		.err = err,
		.model = model,
		.in = input,
		.out = output,
	};
	NRT_STATUS status = nrti_model_check(model);

	if (!status)
		status = nrti_set_check(input, "nrta_execute_schedule, inputs");
	if (!status)
		status = nrti_set_check(output, "nrta_execute_schedule, outputs");
	return status ? status : schedule(model->vnc, NRTA_XU_COMPUTE, queue, &r, req_sequence);
}

/* The unit of a request that was made, locked. */
static struct unit *unit_of(nrta_seq_t seq)
{
	const uint64_t id = NRTA_SEQ_GET_XU_ID(seq), n = NRTA_SEQ_GET_SEQ_NUM(seq);
	struct unit *unit = NULL;

	pthread_mutex_lock(&units.lock);
	if (id < NRTI_CORES_MAX * NRTA_XU_TYPE_NUM)
		unit = units.unit[id];
	if (unit)
		pthread_mutex_lock(&unit->lock);
	pthread_mutex_unlock(&units.lock);
	if (unit && (!n || n > unit->last)) {
		pthread_mutex_unlock(&unit->lock);
		unit = NULL;
	}
	if (!unit)
		nrti_error(NRT_INVALID, "no request has the sequence number 0x%llx",
			   (unsigned long long)seq);
	return unit;
}

NRT_STATUS nrta_is_completed(nrta_seq_t seq, bool *is_completed)
{
	struct unit *unit;

	if (!is_completed)
		return nrti_error(NRT_INVALID, "nrta_is_completed: is_completed is NULL");
	unit = unit_of(seq);
	if (!unit)
		return NRT_INVALID;
	*is_completed = unit->completed >= NRTA_SEQ_GET_SEQ_NUM(seq);
	pthread_mutex_unlock(&unit->lock);
	return NRT_SUCCESS;
}

NRT_STATUS nrta_get_sequence(uint32_t lnc, nrta_xu_t xu, int queue, nrta_seq_t *seq)
{
	struct unit *unit;
	NRT_STATUS status;

	if (queue || !seq || (int)xu < 0 || xu >= NRTA_XU_COLLECTIVES)
		return nrti_error(NRT_INVALID, "nrta_get_sequence: execution unit %d, queue %d",
				  (int)xu, queue);
	unit = unit_get(lnc, xu, &status);
	if (!unit)
		return status;
	pthread_mutex_lock(&unit->lock);
	*seq = seq_of(unit, unit->completed);
	pthread_mutex_unlock(&unit->lock);
	return NRT_SUCCESS;
}

NRT_STATUS nrta_get_completion_handle(nrta_seq_t seq, int *fd)
{
	struct handle *handle;
	struct unit *unit;
	int ours;

	if (!fd)
		return nrti_error(NRT_INVALID, "nrta_get_completion_handle: fd is NULL");
	unit = unit_of(seq);
	if (!unit)
		return NRT_INVALID;
	handle = malloc(sizeof(*handle));
	ours = eventfd(0, EFD_CLOEXEC);
	*fd = ours < 0 ? -1 : dup(ours);
	if (!handle || *fd < 0) {
		pthread_mutex_unlock(&unit->lock);
		free(handle);
		if (ours >= 0)
			close(ours);
		if (*fd >= 0)
			close(*fd);
		return nrti_error(NRT_RESOURCE, "no file descriptor for a completion handle");
	}
	if (unit->completed >= NRTA_SEQ_GET_SEQ_NUM(seq)) {
		signal_handle(ours);
		free(handle);
	} else {
		handle->seq = NRTA_SEQ_GET_SEQ_NUM(seq);
		handle->fd = ours;
		STAILQ_INSERT_TAIL(&unit->handles, handle, list);
	}
	pthread_mutex_unlock(&unit->lock);
	return NRT_SUCCESS;
}
