// SPDX-License-Identifier: Apache-2.0
/* Tensors and tensor sets. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "nrt_impl.h"

/* --- life ------------------------------------------------------------------------------ */

static void storage_put(struct nrt_storage *storage)
{
	if (!storage || --storage->refs)
		return;
	nrtx_buffer_free(storage->buffer);
	if (storage->own)
		free(storage->host);
	free(storage);
}

static struct nrt_storage *storage_new(void)
{
	struct nrt_storage *storage = calloc(1, sizeof(*storage));

	if (storage)
		storage->refs = 1;
	return storage;
}

static nrt_tensor_t *tensor_new(const char *name)
{
	nrt_tensor_t *tensor = calloc(1, sizeof(*tensor));

	if (!tensor)
		return NULL;
	tensor->magic = NRT_MAGIC_TENSOR;
	if (name) {
		tensor->name = strdup(name);
		if (!tensor->name) {
			free(tensor);
			return NULL;
		}
	}
	return tensor;
}

void nrt_tensor_free(nrt_tensor_t **tensor)
{
	if (!tensor || !*tensor || (*tensor)->magic != NRT_MAGIC_TENSOR)
		return;
	storage_put((*tensor)->storage);
	(*tensor)->magic = 0;
	free((*tensor)->name);
	free(*tensor);
	*tensor = NULL;
}

NRT_STATUS nrt_tensor_allocate_empty(const char *name, nrt_tensor_t **tensor)
{
	NRT_STATUS status = nrti_runtime_check();

	if (status)
		return status;
	if (!tensor)
		return nrti_error(NRT_INVALID, "the place for the tensor is NULL");
	*tensor = tensor_new(name);
	if (!*tensor)
		return nrti_errno(-ENOMEM, "allocating a tensor");
	(*tensor)->placement = NRT_TENSOR_PLACEMENT_VIRTUAL;
	return NRT_SUCCESS;
}

static NRT_STATUS fill_storage(nrt_tensor_t *tensor, nrt_tensor_placement_t placement, int vnc,
			       size_t size)
{
	struct nrt_storage *storage = storage_new();
	NRT_STATUS status = NRT_SUCCESS;

	if (!storage)
		return nrti_errno(-ENOMEM, "allocating a tensor of %zu bytes", size);
	if (placement == NRT_TENSOR_PLACEMENT_DEVICE) {
		if (vnc < 0)
			status = nrti_error(NRT_INVALID, "a device tensor needs a core, not %d",
					    vnc);
		else
			status = nrti_buffer_alloc((uint32_t)vnc, size, NRTI_BO_HBM | NRTI_BO_MMAP,
						   &storage->buffer);
	} else {
		storage->own = true;
		storage->host = calloc(1, size);
		if (!storage->host)
			status = nrti_errno(-ENOMEM, "allocating a host tensor of %zu bytes", size);
	}
	if (status) {
		storage_put(storage);
		return status;
	}
	tensor->storage = storage;
	tensor->placement = placement;
	tensor->size = size;
	return NRT_SUCCESS;
}

NRT_STATUS nrt_tensor_allocate(nrt_tensor_placement_t placement, int vnc, size_t size,
			       const char *name, nrt_tensor_t **tensor)
{
	NRT_STATUS status = nrt_tensor_allocate_empty(name, tensor);

	if (status)
		return status;
	if (!size)
		status = nrti_error(NRT_INVALID, "a tensor has at least one byte");
	else if (placement != NRT_TENSOR_PLACEMENT_DEVICE &&
		 placement != NRT_TENSOR_PLACEMENT_HOST &&
		 placement != NRT_TENSOR_PLACEMENT_VIRTUAL)
		status = nrti_error(NRT_INVALID, "tensor placement %d does not exist",
				    (int)placement);
	else
		status = fill_storage(*tensor, placement, vnc, size);
	if (status)
		nrt_tensor_free(tensor);
	return status;
}

NRT_STATUS nrt_tensor_attach_buffer(nrt_tensor_t *tensor, void *buffer, size_t size)
{
	NRT_STATUS status = nrti_tensor_check(tensor, 0, 0, "nrt_tensor_attach_buffer");
	struct nrt_storage *storage;

	if (status)
		return status;
	if (!buffer || !size)
		return nrti_error(NRT_INVALID, "nrt_tensor_attach_buffer: %zu bytes at %p", size,
				  buffer);
	storage = storage_new();
	if (!storage)
		return nrti_errno(-ENOMEM, "attaching a buffer");
	storage->host = buffer;
	storage_put(tensor->storage);
	tensor->storage = storage;
	tensor->placement = NRT_TENSOR_PLACEMENT_HOST;
	tensor->offset = 0;
	tensor->size = size;
	return NRT_SUCCESS;
}

NRT_STATUS nrt_tensor_allocate_slice(const nrt_tensor_t *source, size_t offset, size_t size,
				     const char *name, nrt_tensor_t **slice)
{
	NRT_STATUS status = nrti_tensor_check(source, offset, size, "nrt_tensor_allocate_slice");

	if (!status)
		status = nrt_tensor_allocate_empty(name, slice);
	if (status)
		return status;
	if (source->storage)
		source->storage->refs++;
	(*slice)->storage = source->storage;
	(*slice)->placement = source->placement;
	(*slice)->offset = source->offset + offset;
	(*slice)->size = size;
	return NRT_SUCCESS;
}

/* --- access ------------------------------------------------------------------------------- */

NRT_STATUS nrti_tensor_check(const nrt_tensor_t *tensor, size_t offset, size_t size,
			     const char *what)
{
	NRT_STATUS status = nrti_runtime_check();

	if (status)
		return status;
	if (!tensor || tensor->magic != NRT_MAGIC_TENSOR)
		return nrti_error(NRT_INVALID_HANDLE, "%s: not a tensor", what);
	if (offset > tensor->size || size > tensor->size - offset)
		return nrti_error(NRT_INVALID,
				  "%s: tensor '%s': offset %zu and %zu bytes go beyond its %zu",
				  what, tensor->name ? tensor->name : "", offset, size,
				  tensor->size);
	if (size && !tensor->storage)
		return nrti_error(NRT_INVALID, "%s: tensor '%s' has no memory", what,
				  tensor->name ? tensor->name : "");
	return NRT_SUCCESS;
}

uint32_t nrti_tensor_vnc(const nrt_tensor_t *tensor)
{
	return tensor->storage && tensor->storage->buffer ? tensor->storage->buffer->core : 0;
}

static uint8_t *host_of(const nrt_tensor_t *tensor, size_t offset)
{
	return tensor->storage->host + tensor->offset + offset;
}

NRT_STATUS nrti_tensor_read(struct nrtx_stream *stream, const nrt_tensor_t *tensor, void *buf,
			    size_t offset, size_t size)
{
	if (tensor->storage->buffer)
		return nrtx_copy_to_host(stream, buf, tensor->storage->buffer,
					 tensor->offset + offset, size);
	memcpy(buf, host_of(tensor, offset), size);
	return NRT_SUCCESS;
}

NRT_STATUS nrti_tensor_write(struct nrtx_stream *stream, nrt_tensor_t *tensor, const void *buf,
			     size_t offset, size_t size)
{
	NRT_STATUS status;

	if (!tensor->storage->buffer) {
		memcpy(host_of(tensor, offset), buf, size);
		return NRT_SUCCESS;
	}
	status = nrtx_copy_to_device(stream, tensor->storage->buffer, tensor->offset + offset, buf,
				     size);
	return status ? status : nrtx_stream_sync(stream);
}

NRT_STATUS nrti_tensor_copy(struct nrtx_stream *stream, const nrt_tensor_t *src, size_t src_offset,
			    nrt_tensor_t *dst, size_t dst_offset, size_t size)
{
	NRT_STATUS status;

	if (!src->storage->buffer) {
		if (dst->storage->buffer)
			return nrti_tensor_write(stream, dst, host_of(src, src_offset), dst_offset,
						 size);
		memmove(host_of(dst, dst_offset), host_of(src, src_offset), size);
		return NRT_SUCCESS;
	}
	if (!dst->storage->buffer)
		return nrti_tensor_read(stream, src, host_of(dst, dst_offset), src_offset, size);
	status = nrtx_copy_device(stream, dst->storage->buffer, dst->offset + dst_offset,
				  src->storage->buffer, src->offset + src_offset, size);
	return status ? status : nrtx_stream_sync(stream);
}

NRT_STATUS nrt_tensor_read(const nrt_tensor_t *tensor, void *buf, size_t offset, size_t size)
{
	NRT_STATUS status = nrti_tensor_check(tensor, offset, size, "nrt_tensor_read");
	struct nrtx_stream *stream;

	if (status || !size)
		return status;
	if (!buf)
		return nrti_error(NRT_INVALID, "nrt_tensor_read: the host address is NULL");
	stream = nrti_core_stream(nrti_tensor_vnc(tensor), &status);
	return stream ? nrti_tensor_read(stream, tensor, buf, offset, size) : status;
}

NRT_STATUS nrt_tensor_write(nrt_tensor_t *tensor, const void *buf, size_t offset, size_t size)
{
	NRT_STATUS status = nrti_tensor_check(tensor, offset, size, "nrt_tensor_write");
	struct nrtx_stream *stream;

	if (status || !size)
		return status;
	if (!buf)
		return nrti_error(NRT_INVALID, "nrt_tensor_write: the host address is NULL");
	stream = nrti_core_stream(nrti_tensor_vnc(tensor), &status);
	return stream ? nrti_tensor_write(stream, tensor, buf, offset, size) : status;
}

NRT_STATUS nrt_tensor_copy(const nrt_tensor_t *src, size_t src_offset, nrt_tensor_t *dst,
			   size_t dst_offset, size_t size)
{
	NRT_STATUS status = nrti_tensor_check(src, src_offset, size, "nrt_tensor_copy, source");
	struct nrtx_stream *stream;

	if (!status)
		status = nrti_tensor_check(dst, dst_offset, size, "nrt_tensor_copy, destination");
	if (status || !size)
		return status;
	stream = nrti_core_stream(nrti_tensor_vnc(src->storage->buffer ? src : dst), &status);
	return stream ? nrti_tensor_copy(stream, src, src_offset, dst, dst_offset, size) : status;
}

NRT_STATUS nrt_tensor_memset(nrt_tensor_t *tensor, uint64_t offset, int value, size_t size)
{
	NRT_STATUS status = nrti_tensor_check(tensor, offset, size, "nrt_tensor_memset");
	struct nrtx_stream *stream;

	if (status || !size)
		return status;
	if (!tensor->storage->buffer) {
		memset(host_of(tensor, offset), value, size);
		return NRT_SUCCESS;
	}
	stream = nrti_core_stream(nrti_tensor_vnc(tensor), &status);
	if (!stream)
		return status;
	status = nrti_fill(stream, tensor->storage->buffer, tensor->offset + offset, value, size);
	return status ? status : nrtx_stream_sync(stream);
}

size_t nrt_tensor_get_size(const nrt_tensor_t *tensor)
{
	return tensor && tensor->magic == NRT_MAGIC_TENSOR ? tensor->size : 0;
}

void *nrt_tensor_get_va(const nrt_tensor_t *tensor)
{
	void *va;

	if (nrti_tensor_check(tensor, 0, 0, "nrt_tensor_get_va") || !tensor->storage)
		return NULL;
	if (!tensor->storage->buffer)
		return host_of(tensor, 0);
	if (nrti_buffer_map(tensor->storage->buffer, &va))
		return NULL;
	return (uint8_t *)va + tensor->offset;
}

NRT_STATUS nrt_tensor_check_output_completion(const nrt_tensor_t *tensor, int64_t timeout,
					      uint64_t expected)
{
	NRT_STATUS status = nrti_tensor_check(tensor, 0, 0, "nrt_tensor_check_output_completion");
	const uint64_t start = nrti_now_ns();
	const struct timespec nap = { .tv_nsec = 50000 };

	if (status)
		return NRT_INVALID;
	while (tensor->completions < expected) {
		if (timeout >= 0 && nrti_now_ns() - start >= (uint64_t)timeout * 1000)
			return nrti_error(NRT_TIMEOUT,
					  "tensor '%s' was written %llu times in %lld us, not %llu",
					  tensor->name ? tensor->name : "",
					  (unsigned long long)tensor->completions,
					  (long long)timeout, (unsigned long long)expected);
		nanosleep(&nap, NULL);
	}
	return NRT_SUCCESS;
}

NRT_STATUS nrt_tensor_reset_output_completion(nrt_tensor_t *tensor)
{
	if (nrti_tensor_check(tensor, 0, 0, "nrt_tensor_reset_output_completion"))
		return NRT_INVALID;
	tensor->completions = 0;
	return NRT_SUCCESS;
}

/* --- sets ------------------------------------------------------------------------------------ */

NRT_STATUS nrti_set_check(const nrt_tensor_set_t *tensor_set, const char *what)
{
	const struct nrt_set *set = tensor_set;
	NRT_STATUS status = nrti_runtime_check();

	if (status)
		return status;
	if (!set || set->magic != NRT_MAGIC_SET)
		return nrti_error(NRT_INVALID_HANDLE, "%s: not a tensor set", what);
	return NRT_SUCCESS;
}

nrt_tensor_t *nrti_set_find(const nrt_tensor_set_t *tensor_set, const char *name)
{
	const struct nrt_set *set = tensor_set;

	for (uint32_t i = 0; i < set->n; i++) {
		if (!strcmp(set->entry[i].name, name))
			return set->entry[i].tensor;
	}
	return NULL;
}

NRT_STATUS nrt_allocate_tensor_set(nrt_tensor_set_t **result)
{
	NRT_STATUS status = nrti_runtime_check();
	struct nrt_set *set;

	if (status)
		return status;
	if (!result)
		return nrti_error(NRT_INVALID, "nrt_allocate_tensor_set: result is NULL");
	set = calloc(1, sizeof(*set));
	if (!set)
		return nrti_errno(-ENOMEM, "allocating a tensor set");
	set->magic = NRT_MAGIC_SET;
	*result = set;
	return NRT_SUCCESS;
}

void nrt_destroy_tensor_set(nrt_tensor_set_t **tensor_set)
{
	struct nrt_set *set = tensor_set ? *tensor_set : NULL;

	if (!set || set->magic != NRT_MAGIC_SET)
		return;
	for (uint32_t i = 0; i < set->n; i++)
		free(set->entry[i].name);
	set->magic = 0;
	free(set->entry);
	free(set);
	*tensor_set = NULL;
}

static NRT_STATUS set_append(struct nrt_set *set, const char *name, nrt_tensor_t *tensor)
{
	const uint32_t max = set->max ? set->max * 2 : 8;
	void *entry;

	if (set->n == set->max) {
		entry = realloc(set->entry, max * sizeof(*set->entry));
		if (!entry)
			return nrti_errno(-ENOMEM, "adding tensor '%s' to a set", name);
		set->entry = entry;
		set->max = max;
	}
	set->entry[set->n].name = strdup(name);
	if (!set->entry[set->n].name)
		return nrti_errno(-ENOMEM, "adding tensor '%s' to a set", name);
	set->entry[set->n++].tensor = tensor;
	return NRT_SUCCESS;
}

NRT_STATUS nrt_add_tensor_to_tensor_set(nrt_tensor_set_t *tensor_set, const char *tensor_name,
					nrt_tensor_t *tensor)
{
	NRT_STATUS status = nrti_set_check(tensor_set, "nrt_add_tensor_to_tensor_set");
	struct nrt_set *set = tensor_set;

	if (!status)
		status = nrti_tensor_check(tensor, 0, 0, "nrt_add_tensor_to_tensor_set");
	if (status)
		return status;
	if (!tensor_name)
		return nrti_error(NRT_INVALID, "nrt_add_tensor_to_tensor_set: the name is NULL");
	for (uint32_t i = 0; i < set->n; i++) {
		if (!strcmp(set->entry[i].name, tensor_name)) {
			set->entry[i].tensor = tensor;
			return NRT_SUCCESS;
		}
	}
	return set_append(set, tensor_name, tensor);
}

NRT_STATUS nrt_get_tensor_from_tensor_set(nrt_tensor_set_t *tensor_set, const char *tensor_name,
					  nrt_tensor_t **tensor)
{
	NRT_STATUS status = nrti_set_check(tensor_set, "nrt_get_tensor_from_tensor_set");

	if (status)
		return status;
	if (!tensor_name || !tensor)
		return nrti_error(NRT_INVALID, "nrt_get_tensor_from_tensor_set: %s is NULL",
				  tensor ? "tensor_name" : "tensor");
	*tensor = nrti_set_find(tensor_set, tensor_name);
	if (!*tensor)
		return nrti_error(NRT_INVALID, "the tensor set has no tensor '%s'", tensor_name);
	return NRT_SUCCESS;
}
