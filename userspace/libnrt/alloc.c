// SPDX-License-Identifier: Apache-2.0
/*
 * Buffers. One is one buffer object of the device, which keeps its memory until
 * nothing in flight uses it; frameworks have their own caches above.
 */
#include <errno.h>
#include <stdlib.h>

#include "nrti.h"

static NRT_STATUS no_room(struct nrti_core *core, uint64_t bytes)
{
	struct nrti_memory memory = { 0 };
	const struct nrti_device *device = core->device;

	device->transport->memory(device->dev, &memory);
	return nrti_error(NRT_RESOURCE,
			  "device %u is out of memory: wanted %llu bytes, free %llu of %llu; "
			  "free buffers or use a smaller batch",
			  device->index, (unsigned long long)bytes,
			  (unsigned long long)(memory.hbm_bytes - memory.hbm_used),
			  (unsigned long long)memory.hbm_bytes);
}

NRT_STATUS nrti_buffer_alloc(uint32_t core, uint64_t bytes, uint32_t flags,
			     struct nrtx_buffer **out)
{
	struct nrtx_buffer *buffer;
	struct nrti_core *c;
	NRT_STATUS status;
	int ret;

	if (!out || !bytes)
		return nrti_error(NRT_INVALID, "a buffer needs at least one byte and a place for "
					       "its handle");
	*out = NULL;
	c = nrti_core_get(core, &status);
	if (!c)
		return status;
	buffer = calloc(1, sizeof(*buffer));
	if (!buffer)
		return nrti_errno(-ENOMEM, "allocating a buffer of %llu bytes",
				  (unsigned long long)bytes);
	buffer->bytes = bytes;
	ret = c->device->transport->bo_create(c->device->dev, &buffer->bytes, flags,
					      &buffer->handle);
	if (ret == -ENOSPC) {
		/* What was freed while in flight comes back when the work is done. */
		nrti_streams_drain(c->device);
		buffer->bytes = bytes;
		ret = c->device->transport->bo_create(c->device->dev, &buffer->bytes, flags,
						      &buffer->handle);
	}
	if (ret) {
		free(buffer);
		if (ret == -ENOSPC)
			return no_room(c, bytes);
		return nrti_errno(ret, "allocating a buffer of %llu bytes on device %u",
				  (unsigned long long)bytes, c->device->index);
	}
	buffer->magic = NRTI_MAGIC_BUFFER;
	buffer->device = nrti_device_get(c->device);
	buffer->core = core;
	*out = buffer;
	return NRT_SUCCESS;
}

NRT_STATUS nrtx_buffer_alloc(uint32_t core, uint64_t bytes, nrtx_buffer_t **buffer)
{
	return nrti_buffer_alloc(core, bytes, NRTI_BO_HBM, buffer);
}

/* Lets another device know the buffer. The owner's lock is held. */
static int add_peer(struct nrtx_buffer *buffer, struct nrti_device *device, uint32_t *handle)
{
	struct nrti_peer *peer = calloc(1, sizeof(*peer));
	int ret;

	if (!peer)
		return -ENOMEM;
	ret = device->transport->bo_import(device->dev, buffer->device->dev, buffer->handle,
					   &peer->handle);
	if (ret) {
		free(peer);
		return ret;
	}
	peer->device = nrti_device_get(device);
	peer->next = buffer->peers;
	buffer->peers = peer;
	*handle = peer->handle;
	return 0;
}

int nrti_buffer_handle(struct nrtx_buffer *buffer, struct nrti_device *device, uint32_t *handle)
{
	struct nrti_device *owner = buffer->device;
	const struct nrti_peer *peer;
	int ret = 0;

	if (device == owner) {
		*handle = buffer->handle;
		return 0;
	}
	if (device->transport != owner->transport)
		return -EXDEV;
	pthread_mutex_lock(&owner->lock);
	for (peer = buffer->peers; peer && peer->device != device; peer = peer->next)
		;
	if (peer)
		*handle = peer->handle;
	else
		ret = add_peer(buffer, device, handle);
	pthread_mutex_unlock(&owner->lock);
	return ret;
}

static void forget_peers(struct nrtx_buffer *buffer)
{
	struct nrti_peer *peer;

	while ((peer = buffer->peers)) {
		buffer->peers = peer->next;
		if (nrti_device_alive(peer->device)) {
			/* The memory may be somebody else's when the owner has let go of it. */
			nrti_streams_drain(peer->device);
			peer->device->transport->bo_close(peer->device->dev, peer->handle);
		}
		nrti_device_put(peer->device);
		free(peer);
	}
}

void nrtx_buffer_free(nrtx_buffer_t *buffer)
{
	struct nrti_device *device;

	if (!buffer || buffer->magic != NRTI_MAGIC_BUFFER)
		return;
	device = buffer->device;
	forget_peers(buffer);
	if (nrti_device_alive(device)) {
		if (buffer->va)
			device->transport->bo_unmap(device->dev, buffer->va, buffer->bytes);
		device->transport->bo_close(device->dev, buffer->handle);
	}
	nrti_device_put(device);
	buffer->magic = 0;
	free(buffer);
}

uint64_t nrtx_buffer_bytes(const nrtx_buffer_t *buffer)
{
	return buffer ? buffer->bytes : 0;
}

NRT_STATUS nrti_buffer_map(struct nrtx_buffer *buffer, void **va)
{
	struct nrti_device *device = buffer->device;
	NRT_STATUS status = nrti_device_check(device);
	int ret = 0;

	if (status)
		return status;
	pthread_mutex_lock(&device->lock);
	if (!buffer->va)
		ret = device->transport->bo_map(device->dev, buffer->handle, buffer->bytes,
						&buffer->va);
	if (ret)
		buffer->va = NULL;
	*va = buffer->va;
	pthread_mutex_unlock(&device->lock);
	return ret ? nrti_errno(ret, "mapping a buffer of %llu bytes",
				(unsigned long long)buffer->bytes) :
		     NRT_SUCCESS;
}

NRT_STATUS nrti_buffer_check(const struct nrtx_buffer *buffer, uint64_t offset, uint64_t bytes,
			     const char *what)
{
	if (!buffer || buffer->magic != NRTI_MAGIC_BUFFER)
		return nrti_error(NRT_INVALID_HANDLE, "%s: not a buffer", what);
	if (offset > buffer->bytes || bytes > buffer->bytes - offset)
		return nrti_error(NRT_INVALID,
				  "%s: offset %llu and %llu bytes go beyond the buffer's %llu",
				  what, (unsigned long long)offset, (unsigned long long)bytes,
				  (unsigned long long)buffer->bytes);
	return NRT_SUCCESS;
}
