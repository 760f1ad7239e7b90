/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir.h"

#define ARENA_BLOCK (96u << 10)

struct arena_block {
	struct arena_block *next;
	size_t size;
	max_align_t data[];
};

void nci_fail(struct nc_ctx *ctx, int err, const char *format, ...)
{
	va_list args;

	ctx->err = err;
	va_start(args, format);
	vsnprintf(ctx->error, NC_ERROR_BYTES, format, args);
	va_end(args);
	longjmp(ctx->unwind, 1);
}

void *nci_alloc(struct nc_ctx *ctx, size_t bytes)
{
	struct arena *arena = &ctx->arena;
	struct arena_block *block = arena->head;
	size_t size;
	void *p;

	bytes = (bytes + sizeof(max_align_t) - 1) & ~(sizeof(max_align_t) - 1);
	if (!block || block->size - arena->used < bytes) {
		size = bytes > ARENA_BLOCK / 4 ? bytes : ARENA_BLOCK;
		block = malloc(sizeof(*block) + size);
		if (!block)
			nci_fail(ctx, -ENOMEM, "%s: out of memory (%zu bytes) while compiling",
				 ctx->graph->name, size);
		block->size = size;
		block->next = arena->head;
		arena->head = block;
		arena->used = 0;
	}
	p = (char *)block->data + arena->used;
	arena->used += bytes;
	memset(p, 0, bytes);
	return p;
}

void *nci_grow(struct nc_ctx *ctx, void *array, uint32_t *cap, uint32_t need, size_t elem)
{
	uint32_t new_cap = *cap ? *cap : 16;
	void *p;

	if (need <= *cap)
		return array;
	while (new_cap < need)
		new_cap *= 2;
	p = nci_alloc(ctx, new_cap * elem);
	if (*cap)
		memcpy(p, array, *cap * elem);
	*cap = new_cap;
	return p;
}

void nci_arena_fini(struct arena *arena)
{
	struct arena_block *block = arena->head, *next;

	for (; block; block = next) {
		next = block->next;
		free(block);
	}
	arena->head = NULL;
}
