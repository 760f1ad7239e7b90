// SPDX-License-Identifier: Apache-2.0
/* Programs: checked once, then copied to HBM that no call can reach. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "neuron_crc32c.h"
#include "inproc_priv.h"
#include "neuron_program_check.h"

static int errno_of(enum nprog_verdict verdict)
{
	switch (verdict) {
	case NPROG_OK:
		return 0;
	case NPROG_TOO_LARGE:
		return -E2BIG;
	case NPROG_BAD_VERSION:
	case NPROG_BAD_ARCH:
		return -EOPNOTSUPP;
	case NPROG_MALFORMED:
		break;
	}
	return -ENOEXEC;
}

static int check_sum(struct nm_inproc *ip, const void *image, uint64_t size)
{
	struct nprog_header header;
	uint32_t crc;

	memcpy(&header, image, sizeof(header));
	header.crc32c = 0;
	crc = hw_crc32c(0, &header, sizeof(header));
	crc = hw_crc32c(crc, (const uint8_t *)image + sizeof(header), size - sizeof(header));
	if (crc == ((const struct nprog_header *)image)->crc32c)
		return 0;
	ip_log(ip, NM_LOG_GUEST, "program '%s': checksum is 0x%08x, should be 0x%08x", header.name,
	       ((const struct nprog_header *)image)->crc32c, crc);
	return -ENOEXEC;
}

static int check(struct nm_inproc *ip, const void *image, uint64_t size)
{
	struct nprog_finding found;
	enum nprog_verdict verdict = nprog_check(image, size, ip->facts.arch, &found);

	if (verdict)
		ip_log(ip, NM_LOG_GUEST, "program image: %s: byte %u, value %llu, limit %llu",
		       found.what, found.offset, (unsigned long long)found.value,
		       (unsigned long long)found.limit);
	return verdict ? errno_of(verdict) : check_sum(ip, image, size);
}

static struct ip_program *program_make(const void *image)
{
	const struct nprog_header *header = image;
	const size_t slot_bytes = header->n_slots * sizeof(struct nprog_slot);
	struct ip_program *program = calloc(1, sizeof(*program));

	if (!program)
		return NULL;
	program->slots = malloc(slot_bytes ? slot_bytes : 1);
	if (!program->slots) {
		free(program);
		return NULL;
	}
	if (slot_bytes)
		memcpy(program->slots, (const uint8_t *)image + header->slot_offset, slot_bytes);
	program->n_slots = header->n_slots;
	program->bytes = header->image_bytes;
	program->refs = 1;
	return program;
}

static void program_free(struct ip_program *program)
{
	free(program->slots);
	free(program);
}

int nm_inproc_program_load(struct nm_inproc *ip, const void *image, uint64_t size, uint32_t *handle)
{
	struct ip_program *program;
	int ret;

	if ((uintptr_t)image % 8)
		return -EINVAL;
	ret = check(ip, image, size);
	if (ret)
		return ret;
	program = program_make(image);
	if (!program)
		return -ENOMEM;

	pthread_mutex_lock(&ip->lock);
	program->bo = ip_hbm_alloc(ip, size);
	if (!program->bo) {
		ret = -errno;
	} else {
		program->handle = ip_table_add(&ip->programs, program);
		if (!program->handle) {
			ip_bo_put(ip, program->bo);
			ret = -ENOMEM;
		}
	}
	program->id = ip->next_program_id++;
	pthread_mutex_unlock(&ip->lock);
	if (ret) {
		program_free(program);
		return ret;
	}
	/* Nobody knows the handle yet. */
	memcpy(program->bo->ptr, image, size);
	*handle = program->handle;
	return 0;
}

void ip_program_put(struct nm_inproc *ip, struct ip_program *program)
{
	if (--program->refs)
		return;
	ip_bo_put(ip, program->bo);
	program_free(program);
}

int nm_inproc_program_unload(struct nm_inproc *ip, uint32_t handle)
{
	struct ip_program *program;

	pthread_mutex_lock(&ip->lock);
	program = ip_table_take(&ip->programs, handle);
	if (program) {
		program->handle = 0;
		ip_program_put(ip, program);
	}
	pthread_mutex_unlock(&ip->lock);
	return program ? 0 : -ENOENT;
}
