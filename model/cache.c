// SPDX-License-Identifier: Apache-2.0
/* Decoded programs by id and address. An id names the same bytes for as long as the cache lives. */
#include <errno.h>
#include <stdlib.h>

#include "core_priv.h"

static struct nm_cached **bucket_of(struct nm_cache *cache, uint64_t id, uint64_t addr)
{
	uint64_t hash = (id ^ addr >> 6) * 0x9e3779b97f4a7c15u;

	return &cache->bucket[hash >> 32 & (NM_CACHE_BUCKETS - 1)];
}

static void drop(struct nm_cache *cache, struct nm_cached **link)
{
	struct nm_cached *entry = *link;

	*link = entry->next;
	cache->programs--;
	cache->bytes -= entry->program->heap_bytes;
	nm_program_free(entry->program);
	free(entry);
}

void nm_cache_clear(struct nm_cache *cache)
{
	for (unsigned int b = 0; b < NM_CACHE_BUCKETS; b++)
		while (cache->bucket[b])
			drop(cache, &cache->bucket[b]);
}

static void drop_oldest(struct nm_cache *cache)
{
	struct nm_cached **oldest = NULL;

	for (unsigned int b = 0; b < NM_CACHE_BUCKETS; b++)
		for (struct nm_cached **l = &cache->bucket[b]; *l; l = &(*l)->next)
			if (!oldest || (*l)->used < (*oldest)->used)
				oldest = l;
	if (oldest)
		drop(cache, oldest);
}

int nm_cache_get(struct nm_cache *cache, const struct exi_launch *launch, uint32_t arch,
		 const void *image, const struct nm_program **program, struct nm_fault *fault)
{
	struct nm_cached **bucket = bucket_of(cache, launch->program_id, launch->program_addr);
	struct nm_cached *entry;
	int ret;

	cache->launches++;
	for (entry = *bucket; entry; entry = entry->next)
		if (entry->id == launch->program_id && entry->addr == launch->program_addr &&
		    entry->program->image_bytes == launch->program_bytes) {
			entry->used = cache->launches;
			*program = entry->program;
			return 0;
		}
	entry = malloc(sizeof(*entry));
	if (!entry)
		return -ENOMEM;
	ret = nm_decode(image, launch->program_bytes, arch, &entry->program, fault);
	if (ret) {
		free(entry);
		return ret;
	}
	while (cache->programs && (cache->programs >= NM_CACHE_PROGRAMS ||
				   cache->bytes + entry->program->heap_bytes > NM_CACHE_BYTES))
		drop_oldest(cache);
	entry->id = launch->program_id;
	entry->addr = launch->program_addr;
	entry->used = cache->launches;
	entry->next = *bucket;
	*bucket = entry;
	cache->programs++;
	cache->bytes += entry->program->heap_bytes;
	*program = entry->program;
	return 0;
}
