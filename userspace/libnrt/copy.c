// SPDX-License-Identifier: Apache-2.0
/*
 * Copies between host and device. Host bytes pass through memory that the device
 * reaches, a ring of pieces: while one is copied by the device, the next is
 * copied by the CPU.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nrti.h"

#define SMALL_BYTES (256ull << 10) /* ring of a stream that moves little */
#define LARGE_BYTES (16ull << 20)
#define PIECE_MAX   (LARGE_BYTES / 4)
#define FILL_BYTES  (1ull << 20)
#define ALIGN	    64ull

/* --- the ring -------------------------------------------------------------------------- */

void nrti_staging_free(struct nrtx_stream *stream)
{
	struct nrti_staging *s = &stream->staging;
	struct nrti_device *device = stream->device;

	if (s->handle && nrti_device_alive(device)) {
		device->transport->bo_unmap(device->dev, s->ptr, s->bytes);
		device->transport->bo_close(device->dev, s->handle);
	}
	memset(s, 0, sizeof(*s));
}

/* A ring that is large enough for pieces of a copy of that size. */
static int staging_need(struct nrtx_stream *stream, uint64_t bytes)
{
	struct nrti_staging *s = &stream->staging;
	struct nrti_device *device = stream->device;
	uint64_t size = bytes <= SMALL_BYTES / 4 ? SMALL_BYTES : LARGE_BYTES;
	uint64_t want = size;
	uint32_t handle;
	void *ptr;
	int ret;

	if (s->handle && s->bytes >= size)
		return 0;
	ret = device->transport->bo_create(device->dev, &want, NRTI_BO_HOST | NRTI_BO_MMAP,
					   &handle);
	if (ret)
		return ret;
	ret = device->transport->bo_map(device->dev, handle, want, &ptr);
	if (ret) {
		device->transport->bo_close(device->dev, handle);
		return ret;
	}
	/* The device keeps the old one until its copies are done. */
	nrti_staging_free(stream);
	s->handle = handle;
	s->ptr = ptr;
	s->bytes = want;
	return 0;
}

static int free_oldest(struct nrtx_stream *stream)
{
	struct nrti_staging *s = &stream->staging;
	const struct nrti_piece *piece = &s->piece[s->first];
	int ret = nrti_stream_wait_seq(stream, piece->point);

	if (ret)
		return ret;
	s->tail = piece->end;
	s->first = (s->first + 1) % NRTI_PIECES;
	s->n--;
	return 0;
}

/* Room for one piece, which is to be free again at a point; its offset in the ring. */
static int staging_take(struct nrtx_stream *stream, uint64_t bytes, uint64_t point, uint64_t *at)
{
	struct nrti_staging *s = &stream->staging;
	const uint64_t take = (bytes + ALIGN - 1) & ~(ALIGN - 1);
	uint64_t skip = 0;
	int ret;

	*at = s->head % s->bytes;
	if (*at + take > s->bytes) {
		skip = s->bytes - *at;
		*at = 0;
	}
	while (s->n && (s->n == NRTI_PIECES || s->head + skip + take - s->tail > s->bytes)) {
		ret = free_oldest(stream);
		if (ret)
			return ret;
	}
	if (!s->n)
		s->tail = s->head;
	s->head += skip + take;
	s->piece[(s->first + s->n++) % NRTI_PIECES] = (struct nrti_piece){ point, s->head };
	return 0;
}

/* --- copies ------------------------------------------------------------------------------- */

static uint64_t piece_of(uint64_t bytes)
{
	return bytes < PIECE_MAX ? bytes : PIECE_MAX;
}

/* Queues one copy that takes the next point. */
static int queue_copy(struct nrtx_stream *stream, struct nrti_copy *copy)
{
	int ret;

	copy->out = (struct nrti_fence){ .handle = stream->sync, .point = stream->seq + 1 };
	ret = stream->device->transport->copy(stream->device->dev, copy);
	if (!ret)
		stream->seq++;
	return ret;
}

static void queued(struct nrtx_stream *stream)
{
	stream->last = NRTI_COPY;
	stream->n_waits = 0;
}

static void count_bytes(const struct nrtx_stream *stream, uint64_t to_device, uint64_t to_host)
{
	NRT_STATUS status;
	struct nrti_core *core = nrti_core_get(stream->core, &status);

	if (!core)
		return;
	atomic_fetch_add_explicit(&core->to_device_bytes, to_device, memory_order_relaxed);
	atomic_fetch_add_explicit(&core->to_host_bytes, to_host, memory_order_relaxed);
}

static NRT_STATUS check(const struct nrtx_stream *stream, const struct nrtx_buffer *buffer,
			uint64_t offset, uint64_t bytes, const char *what)
{
	NRT_STATUS status = nrti_stream_check(stream);

	if (!status)
		status = nrti_buffer_check(buffer, offset, bytes, what);
	if (!status && buffer->device != stream->device)
		status = nrti_error(NRT_INVALID,
				    "%s: the buffer is on device %u, the stream on device %u", what,
				    buffer->device->index, stream->device->index);
	return status;
}

static int to_device(struct nrtx_stream *stream, struct nrtx_buffer *dst, uint64_t offset,
		     const uint8_t *host, uint64_t bytes)
{
	struct nrti_fence in[NRTI_FENCES_MAX];
	struct nrti_copy copy = { .dst = dst->handle, .in = in };
	int ret;

	ret = staging_need(stream, bytes);
	if (ret)
		return ret;
	copy.n_in = nrti_stream_fences(stream, NRTI_COPY, in);
	copy.src = stream->staging.handle;
	while (bytes && !ret) {
		copy.size = piece_of(bytes);
		ret = staging_take(stream, copy.size, stream->seq + 1, &copy.src_offset);
		if (ret)
			break;
		memcpy(stream->staging.ptr + copy.src_offset, host, copy.size);
		copy.dst_offset = offset;
		ret = queue_copy(stream, &copy);
		offset += copy.size;
		host += copy.size;
		bytes -= copy.size;
	}
	nrti_stream_fences_done(stream);
	queued(stream);
	return ret;
}

NRT_STATUS nrtx_copy_to_device(nrtx_stream_t *stream, nrtx_buffer_t *dst, uint64_t offset,
			       const void *host, uint64_t bytes)
{
	NRT_STATUS status = check(stream, dst, offset, bytes, "copy to the device");
	int ret;

	if (status || !bytes)
		return status;
	if (!host)
		return nrti_error(NRT_INVALID, "copy to the device: the host address is NULL");
	pthread_mutex_lock(&stream->lock);
	if (!stream->failed) {
		ret = to_device(stream, dst, offset, host, bytes);
		if (ret)
			status = nrti_stream_refused(stream, ret, "copying to the device");
	}
	pthread_mutex_unlock(&stream->lock);
	if (!status)
		count_bytes(stream, bytes, 0);
	return status;
}

NRT_STATUS nrti_fill(struct nrtx_stream *stream, struct nrtx_buffer *dst, uint64_t offset,
		     int value, uint64_t bytes)
{
	const uint64_t most = bytes < FILL_BYTES ? bytes : FILL_BYTES;
	NRT_STATUS status = NRT_SUCCESS;
	uint8_t *pattern;

	if (!bytes)
		return NRT_SUCCESS;
	pattern = malloc(most);
	if (!pattern)
		return nrti_errno(-ENOMEM, "filling %llu bytes", (unsigned long long)bytes);
	memset(pattern, value, most);
	while (bytes && !status) {
		const uint64_t n = bytes < most ? bytes : most;

		status = nrtx_copy_to_device(stream, dst, offset, pattern, n);
		offset += n;
		bytes -= n;
	}
	free(pattern);
	return status;
}

/* Copies on their way to the host: at most this many pieces ahead of the CPU. */
#define AHEAD 3

struct to_host_piece {
	uint64_t at, bytes, point;
};

static int to_host(struct nrtx_stream *stream, uint8_t *host, struct nrtx_buffer *src,
		   uint64_t offset, uint64_t bytes)
{
	struct to_host_piece piece[AHEAD];
	struct nrti_fence in[NRTI_FENCES_MAX];
	struct nrti_copy copy = { .src = src->handle, .in = in };
	uint32_t first = 0, n = 0;
	int ret;

	ret = staging_need(stream, bytes);
	if (ret)
		return ret;
	copy.n_in = nrti_stream_fences(stream, NRTI_COPY, in);
	copy.dst = stream->staging.handle;
	while (bytes || n) {
		struct to_host_piece *p;

		if (bytes && n < AHEAD) {
			copy.size = piece_of(bytes);
			ret = staging_take(stream, copy.size, stream->seq + 1, &copy.dst_offset);
			if (ret)
				break;
			copy.src_offset = offset;
			ret = queue_copy(stream, &copy);
			if (ret)
				break;
			piece[(first + n++) % AHEAD] =
				(struct to_host_piece){ copy.dst_offset, copy.size, stream->seq };
			offset += copy.size;
			bytes -= copy.size;
			continue;
		}
		p = &piece[first];
		ret = nrti_stream_wait_seq(stream, p->point);
		if (ret)
			break;
		memcpy(host, stream->staging.ptr + p->at, p->bytes);
		host += p->bytes;
		first = (first + 1) % AHEAD;
		n--;
	}
	nrti_stream_fences_done(stream);
	queued(stream);
	return ret;
}

NRT_STATUS nrtx_copy_to_host(nrtx_stream_t *stream, void *host, nrtx_buffer_t *src, uint64_t offset,
			     uint64_t bytes)
{
	NRT_STATUS status = check(stream, src, offset, bytes, "copy to the host");
	int ret = 0;

	if (status)
		return status;
	if (!bytes)
		return nrtx_stream_sync(stream);
	if (!host)
		return nrti_error(NRT_INVALID, "copy to the host: the host address is NULL");
	pthread_mutex_lock(&stream->lock);
	if (!stream->failed)
		ret = to_host(stream, host, src, offset, bytes);
	if (ret == -ETIME)
		ret = 0; /* sync below waits once more, then cancels */
	if (ret)
		status = nrti_stream_refused(stream, ret, "copying to the host");
	if (!status) {
		nrti_stream_look(stream);
		status = nrti_stream_report(stream);
	}
	pthread_mutex_unlock(&stream->lock);
	if (!status && stream->reached < stream->seq)
		status = nrtx_stream_sync(stream);
	if (!status)
		count_bytes(stream, 0, bytes);
	return status;
}

/* Between devices that do not reach each other; each piece is done before the next begins. */
static NRT_STATUS copy_by_host(nrtx_stream_t *stream, nrtx_buffer_t *dst, uint64_t dst_offset,
			       nrtx_buffer_t *src, uint64_t src_offset, uint64_t bytes)
{
	const bool to_peer = dst->device != stream->device;
	nrtx_stream_t *other;
	NRT_STATUS status;
	uint8_t *host;

	status = nrtx_stream_create(to_peer ? dst->core : src->core, stream->priority, &other);
	if (status)
		return status;
	host = malloc(piece_of(bytes));
	if (!host)
		status = nrti_errno(-ENOMEM, "copying between devices %u and %u",
				    src->device->index, dst->device->index);
	while (bytes && !status) {
		const uint64_t n = piece_of(bytes);

		status = nrtx_copy_to_host(to_peer ? stream : other, host, src, src_offset, n);
		if (!status)
			status = nrtx_copy_to_device(to_peer ? other : stream, dst, dst_offset,
						     host, n);
		if (!status && to_peer)
			status = nrtx_stream_sync(other);
		src_offset += n;
		dst_offset += n;
		bytes -= n;
	}
	free(host);
	nrtx_stream_destroy(other);
	return status;
}

/* At least one side must be the stream's. */
static NRT_STATUS check_sides(const struct nrtx_stream *stream, const struct nrtx_buffer *dst,
			      uint64_t dst_offset, const struct nrtx_buffer *src,
			      uint64_t src_offset, uint64_t bytes)
{
	NRT_STATUS status = nrti_stream_check(stream);

	if (!status)
		status = nrti_buffer_check(dst, dst_offset, bytes, "copy, destination");
	if (!status)
		status = nrti_buffer_check(src, src_offset, bytes, "copy, source");
	if (!status && dst->device != stream->device && src->device != stream->device)
		status = nrti_error(NRT_INVALID,
				    "copy: the buffers are on devices %u and %u, the stream on "
				    "device %u",
				    src->device->index, dst->device->index, stream->device->index);
	if (!status && src == dst && src_offset < dst_offset + bytes &&
	    dst_offset < src_offset + bytes)
		status = nrti_error(NRT_INVALID,
				    "copy within one buffer: %llu bytes at %llu and at %llu "
				    "overlap",
				    (unsigned long long)bytes, (unsigned long long)src_offset,
				    (unsigned long long)dst_offset);
	return status;
}

NRT_STATUS nrtx_copy_device(nrtx_stream_t *stream, nrtx_buffer_t *dst, uint64_t dst_offset,
			    nrtx_buffer_t *src, uint64_t src_offset, uint64_t bytes)
{
	struct nrti_copy copy = {
		.src_offset = src_offset,
		.dst_offset = dst_offset,
		.size = bytes,
	};
	NRT_STATUS status = check_sides(stream, dst, dst_offset, src, src_offset, bytes);
	struct nrti_fence in[NRTI_FENCES_MAX];
	int ret;

	if (status || !bytes)
		return status;
	ret = nrti_buffer_handle(src, stream->device, &copy.src);
	if (!ret)
		ret = nrti_buffer_handle(dst, stream->device, &copy.dst);
	if (ret == -EXDEV)
		return copy_by_host(stream, dst, dst_offset, src, src_offset, bytes);
	if (ret)
		return nrti_errno(ret, "copying between devices %u and %u", src->device->index,
				  dst->device->index);
	pthread_mutex_lock(&stream->lock);
	if (!stream->failed) {
		copy.n_in = nrti_stream_fences(stream, NRTI_COPY, in);
		copy.in = in;
		ret = queue_copy(stream, &copy);
		nrti_stream_fences_done(stream);
		if (ret)
			status = nrti_stream_refused(stream, ret, "copying on the device");
		else
			queued(stream);
	}
	pthread_mutex_unlock(&stream->lock);
	return status;
}
