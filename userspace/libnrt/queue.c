// SPDX-License-Identifier: Apache-2.0
/*
 * Streams: launches, order, points, errors. nrti.h has the rule of the timeline.
 *
 * A stream fails when its context dies. From then on operations are dropped with
 * success, until a call that waits returns the error and makes a new context.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nrti.h"

#define SLOT_BITS     12
#define STREAMS_MAX   (1u << SLOT_BITS)
#define SCRATCH_ALIGN 4096ull
#define GRACE_NS      2000000000ull /* for the driver to act on a time-out itself */
#define CANCEL_NS     10000000000ull

/* Living streams. An id is generation << SLOT_BITS | index. */
static struct {
	pthread_mutex_t lock;
	struct nrtx_stream *stream[STREAMS_MAX];
	uint64_t generation;
	uint32_t top; /* no stream from here on */
} table = { .lock = PTHREAD_MUTEX_INITIALIZER };

static int table_add(struct nrtx_stream *stream)
{
	uint32_t i = 0;

	pthread_mutex_lock(&table.lock);
	while (i < STREAMS_MAX && table.stream[i])
		i++;
	if (i < STREAMS_MAX) {
		table.stream[i] = stream;
		stream->id = ++table.generation << SLOT_BITS | i;
		if (i >= table.top)
			table.top = i + 1;
	}
	pthread_mutex_unlock(&table.lock);
	return i < STREAMS_MAX ? 0 : -ENOSPC;
}

static void table_remove(struct nrtx_stream *stream)
{
	pthread_mutex_lock(&table.lock);
	table.stream[stream->id % STREAMS_MAX] = NULL;
	pthread_mutex_unlock(&table.lock);
}

static struct nrtx_stream *stream_get(uint64_t id)
{
	struct nrtx_stream *stream;

	pthread_mutex_lock(&table.lock);
	stream = table.stream[id % STREAMS_MAX];
	if (stream && stream->id == id)
		stream->refs++;
	else
		stream = NULL;
	pthread_mutex_unlock(&table.lock);
	return stream;
}

/* The next living stream from *index on, with a reference. */
static struct nrtx_stream *stream_next(uint32_t *index)
{
	struct nrtx_stream *stream = NULL;

	pthread_mutex_lock(&table.lock);
	while (*index < table.top && !stream)
		stream = table.stream[(*index)++];
	if (stream)
		stream->refs++;
	pthread_mutex_unlock(&table.lock);
	return stream;
}

static void stream_put(struct nrtx_stream *stream)
{
	struct nrti_device *device = stream->device;

	if (--stream->refs)
		return;
	if (nrti_device_alive(device))
		device->transport->sync_destroy(device->dev, stream->sync);
	nrti_device_put(device);
	pthread_mutex_destroy(&stream->lock);
	free(stream->slots);
	free(stream);
}

NRT_STATUS nrti_stream_check(const struct nrtx_stream *stream)
{
	if (!stream || stream->magic != NRTI_MAGIC_STREAM)
		return nrti_error(NRT_INVALID_HANDLE, "not a stream");
	return nrti_device_check(stream->device);
}

/* --- statistics --------------------------------------------------------------------------- */

static void add_state(struct nrtx_stats *sum, const struct nrti_ctx_state *state)
{
	sum->launches += state->launches;
	for (int i = 0; i < 5; i++)
		sum->insts[i] += state->insts[i];
	sum->device_ns += state->device_ns;
	sum->dma_bytes += state->dma_bytes;
}

static void add_stats(struct nrtx_stats *sum, const struct nrtx_stats *stats)
{
	sum->launches += stats->launches;
	for (int i = 0; i < 5; i++)
		sum->insts[i] += stats->insts[i];
	sum->device_ns += stats->device_ns;
	sum->dma_bytes += stats->dma_bytes;
}

/* Sums of this stream's contexts. Lock held. */
static void stream_stats(struct nrtx_stream *stream, struct nrtx_stats *sum)
{
	struct nrti_ctx_state state;

	add_stats(sum, &stream->gone);
	if (stream->ctx &&
	    !stream->device->transport->ctx_state(stream->device->dev, stream->ctx, &state))
		add_state(sum, &state);
}

void nrti_streams_stats(uint32_t core, struct nrtx_stats *sum)
{
	struct nrtx_stream *stream;
	uint32_t index = 0;

	while ((stream = stream_next(&index))) {
		pthread_mutex_lock(&stream->lock);
		if (stream->core == core && nrti_device_alive(stream->device))
			stream_stats(stream, sum);
		pthread_mutex_unlock(&stream->lock);
		stream_put(stream);
	}
}

/* --- errors -------------------------------------------------------------------------------- */

static int ctx_make(struct nrtx_stream *stream)
{
	struct nrti_device *device = stream->device;
	int ret;

	ret = device->transport->ctx_create(device->dev, stream->cores, stream->priority,
					    &stream->ctx, &stream->ctx_core);
	if (ret)
		stream->ctx = 0;
	return ret;
}

static void ctx_drop(struct nrtx_stream *stream)
{
	struct nrtx_stats sum = { 0 };

	if (!stream->ctx)
		return;
	stream_stats(stream, &sum);
	stream->gone = sum;
	stream->device->transport->ctx_destroy(stream->device->dev, stream->ctx);
	stream->ctx = 0;
}

static void fail(struct nrtx_stream *stream, NRT_STATUS status, const char *text)
{
	stream->failed = true;
	stream->error = status;
	snprintf(stream->error_text, sizeof(stream->error_text), "%s", text);
	nrti_log(NRTI_LOG_INFO, "stream %llu: %s", (unsigned long long)stream->id, text);
}

void nrti_stream_look(struct nrtx_stream *stream)
{
	struct nrti_device *device = stream->device;
	char name[NPROG_NAME_BYTES], text[NRTI_ERROR_BYTES];
	struct nrti_ctx_state state;
	NRT_STATUS status;
	bool named;
	int ret;

	if (stream->failed || !stream->ctx)
		return;
	ret = device->transport->ctx_state(device->dev, stream->ctx, &state);
	if (ret) {
		status = nrti_errno(ret, "asking device %u for the state of a context",
				    device->index);
		memset(&stream->fault, 0, sizeof(stream->fault));
		fail(stream, status, nrtx_error_text());
		return;
	}
	if (state.state == NRTI_CTX_OK)
		return;
	named = nrti_program_name(device, state.program, name, sizeof(name));
	status = nrti_fault_text(&state, named ? name : NULL, text, sizeof(text));
	nrti_fault_of(&state, named ? name : NULL, &stream->fault);
	fail(stream, status, text);
}

NRT_STATUS nrti_stream_report(struct nrtx_stream *stream)
{
	NRT_STATUS status = stream->error;
	int ret;

	if (!stream->failed)
		return NRT_SUCCESS;
	nrti_error(status, "%s", stream->error_text);
	stream->last_fault = stream->fault;
	ctx_drop(stream);
	ret = ctx_make(stream);
	if (ret) {
		/* Stays failed, now for this reason. */
		char text[NRTI_ERROR_BYTES];

		snprintf(text, sizeof(text),
			 "a new context could not be made (errno %d) after: %.900s", -ret,
			 stream->error_text);
		memset(&stream->fault, 0, sizeof(stream->fault));
		fail(stream, status, text);
		return status;
	}
	stream->failed = false;
	/* Copies behind the failed launch may still be under way. */
	stream->last = NRTI_COPY;
	return status;
}

NRT_STATUS nrti_stream_refused(struct nrtx_stream *stream, int error, const char *what)
{
	if (error == -EIO)
		nrti_stream_look(stream);
	if (stream->failed)
		return NRT_SUCCESS;
	return nrti_errno(error, "%s on core %u", what, stream->core);
}

/* --- waiting ---------------------------------------------------------------------------------- */

static void note_reached(struct nrtx_stream *stream, uint64_t seq)
{
	uint64_t old = stream->reached;

	while (old < seq && !atomic_compare_exchange_weak(&stream->reached, &old, seq))
		;
}

static bool reached(struct nrtx_stream *stream, uint64_t seq)
{
	uint64_t now;

	if (stream->reached >= seq)
		return true;
	if (stream->device->transport->sync_query(stream->device->dev, stream->sync, &now))
		return true; /* a device that is gone does no more */
	note_reached(stream, now);
	return now >= seq;
}

static int64_t deadline(uint64_t ns)
{
	return ns ? (int64_t)(nrti_now_ns() + ns) : INT64_MAX;
}

int nrti_stream_wait_seq(struct nrtx_stream *stream, uint64_t seq)
{
	struct nrti_device *device = stream->device;
	const uint64_t limit = device->exec_timeout_ns ? device->exec_timeout_ns + GRACE_NS : 0;
	uint64_t seen;
	int ret;

	if (stream->reached >= seq)
		return 0;
	do {
		seen = stream->reached;
		ret = device->transport->sync_wait(device->dev, stream->sync, seq, deadline(limit));
		if (!ret)
			note_reached(stream, seq);
		else if (ret == -ETIME && reached(stream, seq))
			ret = 0;
		/* Anything that was done meanwhile starts the time anew. */
	} while (ret == -ETIME && stream->reached != seen);
	return ret;
}

/* The driver did not stop it: cancel all that is queued. Lock held. */
static void give_up(struct nrtx_stream *stream, uint64_t seq)
{
	struct nrti_device *device = stream->device;
	char text[NRTI_ERROR_BYTES];

	if (stream->failed)
		return;
	snprintf(text, sizeof(text),
		 "core %u finished nothing of what is queued in %llu s, so it was cancelled; "
		 "NEURON_RT_EXEC_TIMEOUT sets the limit",
		 stream->core, (unsigned long long)(device->exec_timeout_ns / 1000000000));
	ctx_drop(stream);
	device->transport->sync_wait(device->dev, stream->sync, seq, deadline(CANCEL_NS));
	memset(&stream->fault, 0, sizeof(stream->fault));
	stream->fault.timed_out = 1;
	fail(stream, NRT_TIMEOUT, text);
}

NRT_STATUS nrtx_stream_sync(nrtx_stream_t *stream)
{
	NRT_STATUS status = nrti_stream_check(stream);
	uint64_t seq;
	int ret;

	if (status)
		return status;
	seq = stream->seq;
	ret = nrti_stream_wait_seq(stream, seq);
	pthread_mutex_lock(&stream->lock);
	if (ret == -ETIME)
		give_up(stream, seq);
	else if (ret)
		status = nrti_errno(ret, "waiting for a stream of core %u", stream->core);
	nrti_stream_look(stream);
	if (!status)
		status = nrti_stream_report(stream);
	pthread_mutex_unlock(&stream->lock);
	return status;
}

bool nrtx_stream_idle(nrtx_stream_t *stream)
{
	return nrti_stream_check(stream) || reached(stream, stream->seq);
}

void nrti_streams_drain(struct nrti_device *device)
{
	struct nrtx_stream *stream;
	uint32_t index = 0;

	while ((stream = stream_next(&index))) {
		if (stream->device == device)
			nrti_stream_wait_seq(stream, stream->seq);
		stream_put(stream);
	}
}

/* --- points ------------------------------------------------------------------------------------ */

struct nrtx_point nrtx_stream_record(nrtx_stream_t *stream)
{
	struct nrtx_point point = { 0 };

	if (!nrti_stream_check(stream)) {
		point.stream = stream->id;
		point.seq = stream->seq;
	}
	return point;
}

bool nrtx_point_reached(struct nrtx_point point)
{
	struct nrtx_stream *stream = stream_get(point.stream);
	bool yes;

	if (!stream)
		return true;
	yes = !nrti_device_alive(stream->device) || reached(stream, point.seq);
	stream_put(stream);
	return yes;
}

void nrtx_point_sync(struct nrtx_point point)
{
	struct nrtx_stream *stream = stream_get(point.stream);

	if (!stream)
		return;
	if (nrti_device_alive(stream->device) &&
	    nrti_stream_wait_seq(stream, point.seq) == -ETIME) {
		pthread_mutex_lock(&stream->lock);
		give_up(stream, point.seq);
		pthread_mutex_unlock(&stream->lock);
	}
	stream_put(stream);
}

uint64_t nrtx_point_device_ns(struct nrtx_point point)
{
	struct nrtx_stream *stream = stream_get(point.stream);
	uint64_t ns = 0;

	if (!stream)
		return 0;
	if (point.seq && nrti_device_alive(stream->device) && reached(stream, point.seq))
		stream->device->transport->sync_time(stream->device->dev, stream->sync, point.seq,
						     &ns);
	stream_put(stream);
	return ns;
}

/* Does the list already say so? Else the point is added. Lock held. */
static bool add_wait(struct nrtx_stream *stream, struct nrtx_point point)
{
	for (uint32_t i = 0; i < stream->n_waits; i++) {
		if (stream->wait[i].stream != point.stream)
			continue;
		if (stream->wait[i].seq < point.seq)
			stream->wait[i].seq = point.seq;
		return true;
	}
	if (stream->n_waits == NRTI_WAITS_MAX)
		return false;
	stream->wait[stream->n_waits++] = point;
	return true;
}

NRT_STATUS nrtx_stream_wait(nrtx_stream_t *stream, struct nrtx_point point)
{
	NRT_STATUS status = nrti_stream_check(stream);
	struct nrtx_stream *other;
	bool noted = true;

	if (status)
		return status;
	if (point.stream == stream->id)
		return NRT_SUCCESS;
	other = stream_get(point.stream);
	if (!other)
		return NRT_SUCCESS;
	if (nrti_device_alive(other->device) && !reached(other, point.seq)) {
		/* Fences do not cross devices yet; then the caller waits. */
		noted = other->device == stream->device;
		pthread_mutex_lock(&stream->lock);
		if (noted)
			noted = add_wait(stream, point);
		pthread_mutex_unlock(&stream->lock);
	}
	stream_put(other);
	if (!noted)
		nrtx_point_sync(point);
	return NRT_SUCCESS;
}

uint32_t nrti_stream_fences(struct nrtx_stream *stream, enum nrti_last kind, struct nrti_fence *in)
{
	const uint64_t before = stream->seq;
	uint32_t n = 0;

	if (stream->last != NRTI_NOTHING && (kind == NRTI_COPY || stream->last == NRTI_COPY) &&
	    !reached(stream, before))
		in[n++] = (struct nrti_fence){ .handle = stream->sync, .point = before };
	for (uint32_t i = 0; i < stream->n_waits; i++) {
		struct nrtx_stream *other = stream_get(stream->wait[i].stream);

		if (!other)
			continue;
		if (reached(other, stream->wait[i].seq)) {
			stream_put(other);
			continue;
		}
		in[n++] =
			(struct nrti_fence){ .handle = other->sync, .point = stream->wait[i].seq };
		stream->held[stream->n_held++] = other;
	}
	return n;
}

void nrti_stream_fences_done(struct nrtx_stream *stream)
{
	while (stream->n_held)
		stream_put(stream->held[--stream->n_held]);
}

/* --- launches ------------------------------------------------------------------------------------ */

static NRT_STATUS check_arg(const struct nrtx_stream *stream, const struct nrtx_program *program,
			    uint32_t slot, const struct nrtx_arg *arg)
{
	const struct nprog_slot *want = &program->slots[slot];
	char what[128];

	snprintf(what, sizeof(what), "program '%s', slot %u ('%.23s')", program->name, slot,
		 (const char *)want->name);
	if ((want->kind == NPROG_SLOT_SCALAR) != !arg->buffer)
		return nrti_error(NRT_EXEC_BAD_INPUT, "%s: %s, but a %s was given", what,
				  arg->buffer ? "takes a scalar" : "takes a buffer",
				  arg->buffer ? "buffer" : "scalar");
	if (!arg->buffer) {
		if (arg->bytes == 8)
			return NRT_SUCCESS;
		return nrti_error(NRT_EXEC_BAD_INPUT, "%s: a scalar has 8 bytes, not %llu", what,
				  (unsigned long long)arg->bytes);
	}
	if (nrti_buffer_check(arg->buffer, arg->offset, arg->bytes, what))
		return NRT_EXEC_BAD_INPUT;
	if (arg->buffer->device != stream->device)
		return nrti_error(NRT_EXEC_BAD_INPUT,
				  "%s: the buffer is on device %u, the stream on device %u", what,
				  arg->buffer->device->index, stream->device->index);
	if (arg->bytes < want->min_bytes)
		return nrti_error(NRT_EXEC_BAD_INPUT, "%s: needs %llu bytes, %llu were given", what,
				  (unsigned long long)want->min_bytes,
				  (unsigned long long)arg->bytes);
	return NRT_SUCCESS;
}

static bool arg_fits(const struct nrtx_stream *stream, const struct nprog_slot *want,
		     const struct nrtx_arg *arg)
{
	const struct nrtx_buffer *buffer = arg->buffer;

	if (want->kind == NPROG_SLOT_SCALAR)
		return !buffer && arg->bytes == 8;
	return buffer && buffer->magic == NRTI_MAGIC_BUFFER && buffer->device == stream->device &&
	       arg->offset <= buffer->bytes && arg->bytes <= buffer->bytes - arg->offset &&
	       arg->bytes >= want->min_bytes;
}

/* Memory for the scratch slots; launches of one stream use it one after the other. */
static NRT_STATUS need_scratch(struct nrtx_stream *stream, const struct nrtx_program *program)
{
	struct nrtx_buffer *scratch;
	NRT_STATUS status;

	if (!program->scratch_bytes ||
	    (stream->scratch && stream->scratch->bytes >= program->scratch_bytes))
		return NRT_SUCCESS;
	status = nrtx_buffer_alloc(stream->core, program->scratch_bytes, &scratch);
	if (status)
		return status;
	/* The old one lives until what uses it is done. */
	nrtx_buffer_free(stream->scratch);
	stream->scratch = scratch;
	return NRT_SUCCESS;
}

static NRT_STATUS fill_slots(struct nrtx_stream *stream, const struct nrtx_program *program,
			     const struct nrtx_arg *args)
{
	uint64_t scratch_at = 0;

	for (uint32_t i = 0; i < program->n_slots; i++) {
		const struct nprog_slot *want = &program->slots[i];
		struct nrti_slot *slot = &stream->slots[i];

		if (want->kind == NPROG_SLOT_SCRATCH) {
			*slot = (struct nrti_slot){
				.handle = stream->scratch ? stream->scratch->handle : 0,
				.offset = scratch_at,
				.size = want->min_bytes,
			};
			scratch_at += (want->min_bytes + SCRATCH_ALIGN - 1) & ~(SCRATCH_ALIGN - 1);
			continue;
		}
		if (!arg_fits(stream, want, args))
			return check_arg(stream, program, i, args);
		*slot = (struct nrti_slot){
			.handle = args->buffer ? args->buffer->handle : 0,
			.flags = args->buffer ? 0 : NRTI_SLOT_INLINE,
			.offset = args->offset,
			.size = args->bytes,
		};
		args++;
	}
	return NRT_SUCCESS;
}

static NRT_STATUS launch_locked(struct nrtx_stream *stream, struct nrtx_program *program,
				const struct nrtx_arg *args)
{
	struct nrti_fence in[NRTI_FENCES_MAX];
	struct nrti_submit submit = {
		.ctx = stream->ctx,
		.program = program->handle,
		.n_slots = program->n_slots,
		.slots = stream->slots,
		.in = in,
		.out = { .handle = stream->sync, .point = stream->seq + 1 },
	};
	NRT_STATUS status;
	int ret;

	status = need_scratch(stream, program);
	if (!status)
		status = fill_slots(stream, program, args);
	if (status || stream->failed)
		return status;
	submit.n_in = nrti_stream_fences(stream, NRTI_LAUNCH, in);
	ret = stream->device->transport->submit(stream->device->dev, &submit);
	nrti_stream_fences_done(stream);
	if (ret)
		return nrti_stream_refused(stream, ret, "launching a program");
	stream->seq++;
	stream->last = NRTI_LAUNCH;
	stream->n_waits = 0;
	return NRT_SUCCESS;
}

NRT_STATUS nrtx_launch(nrtx_stream_t *stream, nrtx_program_t *program, const struct nrtx_arg *args,
		       uint32_t n_args)
{
	NRT_STATUS status = nrti_stream_check(stream);

	if (status)
		return status;
	if (!program || program->magic != NRTI_MAGIC_PROGRAM)
		return nrti_error(NRT_INVALID_HANDLE, "nrtx_launch: not a program");
	if (program->device != stream->device)
		return nrti_error(NRT_INVALID,
				  "program '%s' is loaded on device %u, the stream is on device %u",
				  program->name, program->device->index, stream->device->index);
	if (n_args != program->n_args || (n_args && !args))
		return nrti_error(NRT_EXEC_BAD_INPUT, "program '%s' takes %u arguments, not %u",
				  program->name, program->n_args, args ? n_args : 0);
	pthread_mutex_lock(&stream->lock);
	status = launch_locked(stream, program, args);
	pthread_mutex_unlock(&stream->lock);
	return status;
}

void nrtx_stream_fault(nrtx_stream_t *stream, struct nrtx_fault *fault)
{
	memset(fault, 0, sizeof(*fault));
	fault->slot = UINT32_MAX;
	if (nrti_stream_check(stream))
		return;
	pthread_mutex_lock(&stream->lock);
	if (stream->last_fault.status || stream->last_fault.timed_out)
		*fault = stream->last_fault;
	pthread_mutex_unlock(&stream->lock);
}

/* --- life ------------------------------------------------------------------------------------------ */

static NRT_STATUS stream_init(struct nrtx_stream *stream)
{
	struct nrti_device *device = stream->device;
	int ret;

	stream->slots = calloc(device->facts.slots_max, sizeof(*stream->slots));
	if (!stream->slots)
		return nrti_errno(-ENOMEM, "creating a stream");
	ret = device->transport->sync_create(device->dev, &stream->sync);
	if (ret)
		return nrti_errno(ret, "creating the timeline of a stream of core %u",
				  stream->core);
	ret = ctx_make(stream);
	if (!ret)
		ret = table_add(stream);
	if (!ret)
		return NRT_SUCCESS;
	ctx_drop(stream);
	device->transport->sync_destroy(device->dev, stream->sync);
	return nrti_errno(ret, "creating a stream on core %u", stream->core);
}

static NRT_STATUS stream_create(uint32_t core, const struct nrti_core *c, uint64_t cores,
				uint32_t priority, nrtx_stream_t **out)
{
	struct nrtx_stream *stream = calloc(1, sizeof(*stream));
	NRT_STATUS status;

	if (!stream)
		return nrti_errno(-ENOMEM, "creating a stream");
	stream->device = c->device;
	stream->core = core;
	stream->cores = cores;
	stream->priority = priority;
	stream->refs = 1;
	stream->magic = NRTI_MAGIC_STREAM;
	pthread_mutex_init(&stream->lock, NULL);
	status = stream_init(stream);
	if (status) {
		pthread_mutex_destroy(&stream->lock);
		free(stream->slots);
		free(stream);
		return status;
	}
	nrti_device_get(c->device);
	*out = stream;
	return NRT_SUCCESS;
}

NRT_STATUS nrtx_stream_create(uint32_t core, uint32_t priority, nrtx_stream_t **out)
{
	const struct nrti_core *c;
	NRT_STATUS status;

	if (!out)
		return nrti_error(NRT_INVALID, "nrtx_stream_create: stream is NULL");
	*out = NULL;
	if (priority > 2)
		return nrti_error(NRT_INVALID,
				  "stream priority is %u, but 0 is normal, 1 low, "
				  "2 high",
				  priority);
	c = nrti_core_get(core, &status);
	if (!c)
		return status;
	return stream_create(core, c, ((1ull << c->size) - 1) << c->index, priority, out);
}

NRT_STATUS nrti_stream_create_at(uint32_t core, uint32_t which, nrtx_stream_t **out)
{
	const struct nrti_core *c;
	NRT_STATUS status;

	*out = NULL;
	c = nrti_core_get(core, &status);
	if (!c)
		return status;
	return stream_create(core, c, 1ull << (c->index + which), 0, out);
}

NRT_STATUS nrtx_stream_core(nrtx_stream_t *stream, uint32_t *core)
{
	NRT_STATUS status = nrti_stream_check(stream);

	if (status)
		return status;
	if (!core)
		return nrti_error(NRT_INVALID, "nrtx_stream_core: core is NULL");
	pthread_mutex_lock(&stream->lock);
	*core = stream->ctx_core;
	pthread_mutex_unlock(&stream->lock);
	return NRT_SUCCESS;
}

void nrtx_stream_destroy(nrtx_stream_t *stream)
{
	struct nrtx_stats sum = { 0 };
	struct nrti_core *core;
	NRT_STATUS status;

	if (!stream || stream->magic != NRTI_MAGIC_STREAM)
		return;
	if (nrti_device_alive(stream->device)) {
		if (nrti_stream_wait_seq(stream, stream->seq) == -ETIME)
			give_up(stream, stream->seq);
		table_remove(stream);
		pthread_mutex_lock(&stream->lock);
		ctx_drop(stream);
		sum = stream->gone;
		pthread_mutex_unlock(&stream->lock);
		core = nrti_core_get(stream->core, &status);
		if (core) {
			pthread_mutex_lock(&core->lock);
			add_stats(&core->gone, &sum);
			pthread_mutex_unlock(&core->lock);
		}
	} else {
		table_remove(stream);
	}
	nrti_staging_free(stream);
	nrtx_buffer_free(stream->scratch);
	stream->magic = 0;
	stream_put(stream);
}
