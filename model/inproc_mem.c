// SPDX-License-Identifier: Apache-2.0
/*
 * HBM by first fit, contiguous in one stack, and buffer objects. Free HBM is
 * always zero: it is scrubbed when it is given back.
 */
#define _GNU_SOURCE /* fallocate */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "inproc_priv.h"
#include "neuron_topology.h"

#define PUNCH_BYTES (256u << 10) /* above this, giving pages back is cheaper than writing them */
#define HOST_MAX    (1ull << 40)

int ip_hbm_init(struct nm_inproc *ip)
{
	for (unsigned int n = 0; n < ip->chip->stacks; n++) {
		struct ip_extent *e = malloc(sizeof(*e));

		if (!e)
			return -ENOMEM;
		e->start = V3_HBM_FW_CARVEOUT;
		e->end = ip->stack_bytes;
		e->next = NULL;
		ip->stack[n].free = e;
		ip->stack[n].free_bytes = e->end - e->start;
		ip->hbm_bytes += e->end - e->start;
	}
	return 0;
}

void ip_hbm_fini(struct nm_inproc *ip)
{
	for (unsigned int n = 0; n < ip->chip->stacks; n++) {
		struct ip_extent *next;

		for (struct ip_extent *e = ip->stack[n].free; e; e = next) {
			next = e->next;
			free(e);
		}
	}
}

/* Offset in the stack, or 0 (which is the firmware's) when nothing fits. */
static uint64_t take_extent(struct ip_stack *stack, uint64_t size)
{
	for (struct ip_extent **at = &stack->free; *at; at = &(*at)->next) {
		struct ip_extent *e = *at;
		uint64_t start = e->start;

		if (e->end - e->start < size)
			continue;
		e->start += size;
		if (e->start == e->end) {
			*at = e->next;
			free(e);
		}
		stack->free_bytes -= size;
		return start;
	}
	return 0;
}

static int give_extent(struct ip_stack *stack, uint64_t start, uint64_t size)
{
	struct ip_extent **at = &stack->free, *prev = NULL, *e;

	while (*at && (*at)->start < start) {
		prev = *at;
		at = &prev->next;
	}
	stack->free_bytes += size;
	if (prev && prev->end == start) {
		prev->end += size;
		e = prev->next;
		if (e && e->start == prev->end) {
			prev->end = e->end;
			prev->next = e->next;
			free(e);
		}
		return 0;
	}
	if (*at && (*at)->start == start + size) {
		(*at)->start = start;
		return 0;
	}
	e = malloc(sizeof(*e));
	if (!e) {
		stack->free_bytes -= size;
		return -ENOMEM;
	}
	e->start = start;
	e->end = start + size;
	e->next = *at;
	*at = e;
	return 0;
}

static void scrub(struct nm_inproc *ip, uint64_t at, uint64_t size)
{
	if (size < PUNCH_BYTES ||
	    fallocate(nm_hbm_fd(ip->dev), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)at,
		      (off_t)size))
		memset(ip->hbm + at, 0, size);
}

struct ip_bo *ip_hbm_alloc(struct nm_inproc *ip, uint64_t size)
{
	struct ip_bo *bo = calloc(1, sizeof(*bo));
	unsigned int first = 0;

	if (!bo) {
		errno = ENOMEM;
		return NULL;
	}
	size = (size + IP_GRANULE - 1) / IP_GRANULE * IP_GRANULE;
	for (unsigned int n = 1; n < ip->chip->stacks; n++) {
		if (ip->stack[n].free_bytes > ip->stack[first].free_bytes)
			first = n;
	}
	for (unsigned int i = 0; i < ip->chip->stacks && !bo->offset; i++) {
		bo->stack = (first + i) % ip->chip->stacks;
		bo->offset = take_extent(&ip->stack[bo->stack], size);
	}
	if (!bo->offset) {
		free(bo);
		errno = ENOSPC;
		return NULL;
	}
	bo->refs = 1;
	bo->flags = NM_BO_HBM;
	bo->size = size;
	bo->addr = ip->chip->hbm(bo->stack) + bo->offset;
	bo->ptr = ip->hbm + bo->stack * ip->stack_bytes + bo->offset;
	ip->hbm_used += size;
	nm_hbm_mark(ip->dev, (uint64_t)(bo->ptr - ip->hbm), size, false);
	return bo;
}

void ip_bo_put(struct nm_inproc *ip, struct ip_bo *bo)
{
	if (--bo->refs)
		return;
	if (bo->flags & NM_BO_HOST) {
		ip->host_used -= bo->size;
		bo->next_dead = ip->dead_bos;
		ip->dead_bos = bo;
		return;
	}
	if (ip->dev && !(bo->flags & NM_BO_PEER)) {
		scrub(ip, bo->stack * ip->stack_bytes + bo->offset, bo->size);
		/* Short of host memory the range is lost, which is better than not zero. */
		if (!give_extent(&ip->stack[bo->stack], bo->offset, bo->size))
			ip->hbm_used -= bo->size;
	}
	free(bo);
}

bool ip_bo_reap(struct nm_inproc *ip)
{
	struct ip_bo *bo, *next;

	pthread_mutex_lock(&ip->lock);
	bo = ip->dead_bos;
	ip->dead_bos = NULL;
	pthread_mutex_unlock(&ip->lock);
	if (!bo)
		return false;
	for (; bo; bo = next) {
		next = bo->next_dead;
		ip_dma_free(ip, bo->ptr, bo->size, bo->addr & ~ip->chip->host);
		free(bo);
	}
	return true;
}

static struct ip_bo *host_alloc(struct nm_inproc *ip, uint64_t size)
{
	struct ip_bo *bo;
	uint64_t iova;

	if (size > HOST_MAX)
		return NULL;
	bo = calloc(1, sizeof(*bo));
	if (!bo)
		return NULL;
	bo->refs = 1;
	bo->flags = NM_BO_HOST;
	bo->size = (size + IP_GRANULE - 1) / IP_GRANULE * IP_GRANULE;
	bo->ptr = ip_dma_alloc(ip, bo->size, &iova);
	if (!bo->ptr) {
		free(bo);
		return NULL;
	}
	bo->addr = ip->chip->host | iova;
	return bo;
}

int nm_inproc_bo_create(struct nm_inproc *ip, uint64_t *size, uint32_t flags, uint32_t *handle)
{
	const uint32_t kind = flags & (NM_BO_HBM | NM_BO_HOST);
	struct ip_bo *bo;
	int ret = 0;

	if (!*size || (flags & ~(NM_BO_HBM | NM_BO_HOST | NM_BO_MMAP)) ||
	    (kind != NM_BO_HBM && kind != NM_BO_HOST))
		return -EINVAL;
	if (kind == NM_BO_HBM && *size > ip->hbm_bytes)
		return -ENOSPC;

	bo = kind == NM_BO_HOST ? host_alloc(ip, *size) : NULL;
	if (kind == NM_BO_HOST && !bo)
		return -ENOMEM;
	pthread_mutex_lock(&ip->lock);
	if (!bo) {
		bo = ip_hbm_alloc(ip, *size);
		if (!bo)
			ret = -errno;
	} else {
		ip->host_used += bo->size;
	}
	if (bo) {
		bo->flags = flags;
		*size = bo->size;
		*handle = ip_table_add(&ip->bos, bo);
		if (!*handle) {
			ip_bo_put(ip, bo);
			ret = -ENOMEM;
		}
	}
	pthread_mutex_unlock(&ip->lock);
	ip_bo_reap(ip);
	return ret;
}

/* Where the HBM of another device begins among the addresses of this one; false: out of reach. */
static bool find_link(struct nm_inproc *ip, const struct nm_inproc *owner, uint64_t *base)
{
	for (unsigned int w = 0; w < NEURON_LINKS; w++) {
		const uint64_t serial = (uint64_t)ip_exi_read(ip, EXI_LINK_SERIAL(w) + 4) << 32 |
					ip_exi_read(ip, EXI_LINK_SERIAL(w));

		if (serial != owner->facts.serial)
			continue;
		*base = ip->chip->neighbour + w * ip->chip->neighbour_dist;
		return true;
	}
	return false;
}

int nm_inproc_bo_import(struct nm_inproc *ip, struct nm_inproc *owner, uint32_t owner_handle,
			uint32_t *handle)
{
	struct ip_bo *bo, *theirs;
	uint64_t base;
	int ret = 0;

	if (!find_link(ip, owner, &base))
		return -EXDEV;
	bo = calloc(1, sizeof(*bo));
	if (!bo)
		return -ENOMEM;
	bo->refs = 1;
	bo->flags = NM_BO_PEER;
	pthread_mutex_lock(&owner->lock);
	theirs = ip_table_get(&owner->bos, owner_handle);
	if (!theirs)
		ret = -ENOENT;
	else if (!(theirs->flags & NM_BO_HBM))
		ret = -EINVAL;
	if (!ret) {
		bo->addr = base + theirs->addr;
		bo->size = theirs->size;
	}
	pthread_mutex_unlock(&owner->lock);
	if (!ret) {
		pthread_mutex_lock(&ip->lock);
		*handle = ip_table_add(&ip->bos, bo);
		pthread_mutex_unlock(&ip->lock);
		ret = *handle ? 0 : -ENOMEM;
	}
	if (ret)
		free(bo);
	return ret;
}

int nm_inproc_bo_map(struct nm_inproc *ip, uint32_t handle, void **ptr)
{
	struct ip_bo *bo;
	int ret = 0;

	pthread_mutex_lock(&ip->lock);
	bo = ip_table_get(&ip->bos, handle);
	if (!bo)
		ret = -ENOENT;
	else if (!(bo->flags & NM_BO_MMAP))
		ret = -EACCES;
	else
		*ptr = bo->ptr;
	/* What the caller stores there is not seen: it may be anything from now on. */
	if (!ret && bo->flags & NM_BO_HBM)
		nm_hbm_mark(ip->dev, (uint64_t)(bo->ptr - ip->hbm), bo->size, true);
	pthread_mutex_unlock(&ip->lock);
	return ret;
}

int nm_inproc_bo_close(struct nm_inproc *ip, uint32_t handle)
{
	struct ip_bo *bo;

	pthread_mutex_lock(&ip->lock);
	bo = ip_table_take(&ip->bos, handle);
	if (bo)
		ip_bo_put(ip, bo);
	pthread_mutex_unlock(&ip->lock);
	ip_bo_reap(ip);
	return bo ? 0 : -ENOENT;
}

void nm_inproc_memory(struct nm_inproc *ip, struct nm_inproc_memory *memory)
{
	pthread_mutex_lock(&ip->lock);
	memory->hbm_bytes = ip->hbm_bytes;
	memory->hbm_used = ip->hbm_used;
	memory->host_used = ip->host_used;
	memory->granule = IP_GRANULE;
	pthread_mutex_unlock(&ip->lock);
}
