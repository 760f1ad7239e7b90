// SPDX-License-Identifier: Apache-2.0
/* Program images: what the runtime must know of one, and a readable refusal. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dump.h"
#include "neuron_program_check.h"
#include "nrti.h"

#define SCRATCH_ALIGN 4096ull

static NRT_STATUS check(const struct nrti_device *device, const void *image, size_t bytes)
{
	struct nprog_finding found;
	enum nprog_verdict verdict;

	if (!image || (uintptr_t)image % 8)
		return nrti_error(NRT_INVALID,
				  "program image: its address %p is not a multiple "
				  "of 8",
				  image);
	verdict = nprog_check(image, bytes, device->facts.arch, &found);
	if (!verdict)
		return NRT_SUCCESS;
	return nrti_error(verdict == NPROG_BAD_VERSION || verdict == NPROG_BAD_ARCH ?
				  NRT_UNSUPPORTED_NEFF_VERSION :
				  NRT_INVALID,
			  "program image of %zu bytes: %s: byte %u, value %llu, should be or stay "
			  "below %llu",
			  bytes, found.what, found.offset, (unsigned long long)found.value,
			  (unsigned long long)found.limit);
}

static struct nrtx_program *make(const void *image)
{
	const struct nprog_header *header = image;
	struct nrtx_program *program = calloc(1, sizeof(*program));

	if (!program)
		return NULL;
	program->n_slots = header->n_slots;
	program->slots = calloc(header->n_slots ? header->n_slots : 1, sizeof(*program->slots));
	if (!program->slots) {
		free(program);
		return NULL;
	}
	if (header->n_slots)
		memcpy(program->slots, (const char *)image + header->slot_offset,
		       header->n_slots * sizeof(*program->slots));
	memcpy(program->name, header->name, sizeof(program->name));
	for (uint32_t i = 0; i < program->n_slots; i++) {
		const struct nprog_slot *slot = &program->slots[i];

		if (slot->kind != NPROG_SLOT_SCRATCH) {
			program->n_args++;
			continue;
		}
		if (slot->min_bytes > UINT64_MAX / 4 || program->scratch_bytes > UINT64_MAX / 4)
			program->scratch_bytes = UINT64_MAX / 2; /* no device has that */
		else
			program->scratch_bytes += (slot->min_bytes + SCRATCH_ALIGN - 1) &
						  ~(SCRATCH_ALIGN - 1);
	}
	return program;
}

static void link_program(struct nrtx_program *program)
{
	struct nrti_device *device = program->device;

	pthread_mutex_lock(&device->lock);
	program->next = device->programs;
	if (program->next)
		program->next->prev = program;
	device->programs = program;
	pthread_mutex_unlock(&device->lock);
}

static void unlink_program(struct nrtx_program *program)
{
	struct nrti_device *device = program->device;

	pthread_mutex_lock(&device->lock);
	if (program->prev)
		program->prev->next = program->next;
	else
		device->programs = program->next;
	if (program->next)
		program->next->prev = program->prev;
	pthread_mutex_unlock(&device->lock);
}

static int load(struct nrti_device *device, const void *image, size_t bytes, uint32_t *handle)
{
	int ret = device->transport->program_load(device->dev, image, bytes, handle);

	if (ret == -ENOSPC) {
		nrti_streams_drain(device);
		ret = device->transport->program_load(device->dev, image, bytes, handle);
	}
	return ret;
}

NRT_STATUS nrtx_program_load(uint32_t core, const void *image, size_t bytes, nrtx_program_t **out)
{
	struct nrtx_program *program;
	struct nrti_core *c;
	NRT_STATUS status;
	int ret;

	if (!out)
		return nrti_error(NRT_INVALID, "nrtx_program_load: program is NULL");
	*out = NULL;
	c = nrti_core_get(core, &status);
	if (!c)
		return status;
	status = check(c->device, image, bytes);
	if (status)
		return status;
	nrti_dump(image, bytes);
	program = make(image);
	if (!program)
		return nrti_errno(-ENOMEM, "loading a program");
	ret = load(c->device, image, bytes, &program->handle);
	if (ret) {
		status = nrti_errno(ret, "loading program '%s' of %zu bytes%s", program->name,
				    bytes, ret == -ENOEXEC ? " (its checksum is wrong)" : "");
		free(program->slots);
		free(program);
		return status;
	}
	program->magic = NRTI_MAGIC_PROGRAM;
	program->device = nrti_device_get(c->device);
	program->core = core;
	link_program(program);
	*out = program;
	return NRT_SUCCESS;
}

void nrtx_program_unload(nrtx_program_t *program)
{
	struct nrti_device *device;

	if (!program || program->magic != NRTI_MAGIC_PROGRAM)
		return;
	device = program->device;
	if (nrti_device_alive(device)) {
		unlink_program(program);
		device->transport->program_unload(device->dev, program->handle);
	}
	nrti_device_put(device);
	program->magic = 0;
	free(program->slots);
	free(program);
}

bool nrti_program_name(struct nrti_device *device, uint32_t handle, char *name, size_t bytes)
{
	const struct nrtx_program *program;

	pthread_mutex_lock(&device->lock);
	for (program = device->programs; program; program = program->next) {
		if (program->handle == handle)
			break;
	}
	if (program)
		snprintf(name, bytes, "%s", program->name);
	pthread_mutex_unlock(&device->lock);
	return program;
}
