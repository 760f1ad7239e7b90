/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "lir.h"
#include "neuron_queue.h"

struct lir *lir_create(struct nc_ctx *ctx)
{
	struct lir *lir = nci_alloc(ctx, sizeof(*lir));

	lir->ctx = ctx;
	return lir;
}

uint32_t lir_buf(struct lir *lir, uint32_t space, uint64_t bytes)
{
	uint64_t align = space == ISA_SPACE_PSUM ? ISA_PSUM_BANK_BYTES : 64;
	uint64_t room = space == ISA_SPACE_PSUM ? lir->ctx->target.psum_bytes :
						  lir->ctx->target.sbuf_bytes;
	struct lbuf *buf;

	bytes = (bytes + align - 1) / align * align;
	if (bytes > room)
		nci_fail(lir->ctx, -E2BIG,
			 "%s: a tile needs %llu bytes of each partition, there are %llu",
			 lir->ctx->graph->name, (unsigned long long)bytes,
			 (unsigned long long)room);
	lir->bufs =
		nci_grow(lir->ctx, lir->bufs, &lir->cap_bufs, lir->n_bufs + 1, sizeof(*lir->bufs));
	buf = &lir->bufs[lir->n_bufs];
	buf->space = (uint8_t)space;
	buf->bytes = (uint32_t)bytes;
	buf->first = LIR_NONE;
	buf->last = LIR_NONE;
	return lir->n_bufs++;
}

uint32_t lir_scratch(struct lir *lir, nc_dtype dtype, int64_t elems)
{
	struct lslot *slot;

	if (lir->n_slots >= EXI_SLOTS_MAX)
		nci_fail(lir->ctx, -E2BIG, "%s: more than %d slots with scratch; split the graph",
			 lir->ctx->graph->name, EXI_SLOTS_MAX);
	lir->slots = nci_grow(lir->ctx, lir->slots, &lir->cap_slots, lir->n_slots + 1,
			      sizeof(*lir->slots));
	slot = &lir->slots[lir->n_slots];
	slot->kind = NPROG_SLOT_SCRATCH;
	slot->rights = EXI_SLOT_READ | EXI_SLOT_WRITE;
	slot->type.dtype = dtype;
	slot->type.ndim = 1;
	slot->type.dims[0] = elems;
	slot->bytes = (uint64_t)elems * nci_dtype_bytes(dtype);
	slot->memory = lir->n_slots;
	return lir->n_slots++;
}

uint32_t lir_const(struct lir *lir, const void *data, uint32_t bytes)
{
	uint32_t offset = (lir->n_consts + 63) & ~63u;

	lir->consts = nci_grow(lir->ctx, lir->consts, &lir->cap_consts, offset + bytes, 1);
	memcpy(lir->consts + offset, data, bytes);
	lir->n_consts = offset + bytes;
	return offset;
}

struct ltile lir_row(uint32_t buf, uint32_t dtype, uint32_t nparts, uint32_t offset, uint32_t n)
{
	struct ltile tile = {
		.buf = buf,
		.dtype = (uint8_t)dtype,
		.nparts = (uint8_t)nparts,
		.offset = offset,
		.count = { 1, 1, 1, n },
		.step = { 1, 1, 1, 1 },
	};

	return tile;
}

struct ltile lir_tile(uint32_t buf, uint32_t dtype, uint32_t nparts, uint32_t offset, uint32_t ndim,
		      const int64_t *count, const int64_t *step)
{
	struct ltile tile = lir_row(buf, dtype, nparts, offset, 1);

	for (uint32_t i = 0; i < ndim; i++) {
		tile.count[ISA_TILE_DIMS - ndim + i] = (uint32_t)count[i];
		tile.step[ISA_TILE_DIMS - ndim + i] = (int32_t)step[i];
	}
	return tile;
}

struct lop *lir_op(struct lir *lir, uint32_t engine, uint32_t opcode)
{
	struct lop *op;

	if (lir->n_ops == LIR_OPS_MAX)
		nci_fail(lir->ctx, -E2BIG,
			 "%s: the program needs more than %u operations; split the graph",
			 lir->ctx->graph->name, LIR_OPS_MAX);
	lir->ops = nci_grow(lir->ctx, lir->ops, &lir->cap_ops, lir->n_ops + 1, sizeof(*op));
	op = &lir->ops[lir->n_ops++];
	op->opcode = (uint8_t)opcode;
	op->engine = (uint8_t)engine;
	op->tag = lir->tag;
	op->group = lir->group;
	op->tile = lir->tile;
	if (!isa_is_dma(opcode)) {
		op->dst.buf = LIR_NONE;
		op->src0.buf = LIR_NONE;
		op->src1.buf = LIR_NONE;
		op->vec0.buf = LIR_NONE;
		op->vec1.buf = LIR_NONE;
	}
	return op;
}

struct lop *lir_copy(struct lir *lir, uint32_t engine, uint32_t ct, struct ltile dst,
		     struct ltile src)
{
	struct lop *op = lir_op(lir, engine, ISA_COPY);

	op->compute_type = (uint8_t)ct;
	op->dst = dst;
	op->src0 = src;
	return op;
}

struct lop *lir_memset(struct lir *lir, uint32_t engine, uint32_t ct, struct ltile dst,
		       uint64_t imm)
{
	struct lop *op = lir_op(lir, engine, ISA_MEMSET);

	op->compute_type = (uint8_t)ct;
	op->dst = dst;
	op->imm0 = imm;
	return op;
}

struct lop *lir_tensor_tensor(struct lir *lir, uint32_t engine, uint32_t ct, uint32_t alu,
			      struct ltile dst, struct ltile a, struct ltile b)
{
	struct lop *op = lir_op(lir, engine, ISA_TENSOR_TENSOR);

	op->compute_type = (uint8_t)ct;
	op->op0 = (uint8_t)alu;
	op->dst = dst;
	op->src0 = a;
	op->src1 = b;
	return op;
}

/* --- transfers ----------------------------------------------------------------------- */

#define STEPS_MAX 20

/* Merges dims of both sides where each walks on in one stride; drops dims of 1. In place. */
static uint32_t merge_steps(struct lstep *d, uint32_t n)
{
	uint32_t k = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (d[i].count == 1)
			continue;
		if (k && d[k - 1].a == d[i].a * d[i].count && d[k - 1].b == d[i].b * d[i].count) {
			d[k - 1].count *= d[i].count;
			d[k - 1].a = d[i].a;
			d[k - 1].b = d[i].b;
		} else {
			d[k++] = d[i];
		}
	}
	return k;
}

/* The dims of one side alone, merged; returns how many. */
static uint32_t side_dims(const struct lstep *d, uint32_t n, bool b, struct lside *side)
{
	uint32_t k = 0;
	int64_t step[STEPS_MAX];
	int64_t count[STEPS_MAX];

	for (uint32_t i = 0; i < n; i++) {
		int64_t s = b ? d[i].b : d[i].a;

		if (d[i].count == 1)
			continue;
		if (k && step[k - 1] == s * d[i].count) {
			count[k - 1] *= d[i].count;
			step[k - 1] = s;
		} else {
			count[k] = d[i].count;
			step[k++] = s;
		}
	}
	if (k <= ISA_DMA_DIMS)
		for (uint32_t i = 0; i < k; i++) {
			side->step[i] = step[i];
			side->count[i] = (uint32_t)count[i];
		}
	side->ndim = (uint8_t)k;
	return k;
}

static uint32_t prod_parts(const struct lstep *d, uint32_t n_part)
{
	uint32_t n = 1;

	for (uint32_t i = 0; i < n_part; i++)
		n *= (uint32_t)d[i].count;
	return n;
}

static struct lop *transfer_op(struct lir *lir, bool store, uint32_t opcode, uint32_t elem)
{
	struct lop *op = lir_op(lir, store ? LIR_STORE_ENGINE : ISA_SYNC, opcode);

	op->elem_bytes = (uint8_t)elem;
	op->to.buf = LIR_NONE;
	op->from.buf = LIR_NONE;
	return op;
}

static struct lop *dma_op(struct lir *lir, bool store, uint32_t elem)
{
	return transfer_op(lir, store, ISA_DMA, elem);
}

/* Between slot (steps a) and chip (steps b); loops over outer dims that the hardware lacks. */
static void transfer(struct lir *lir, bool store, const struct lside *chip,
		     const struct lside *slot, uint32_t elem, uint32_t n_part, uint32_t n,
		     const struct lstep *dims)
{
	struct lside c = *chip, s = *slot;
	struct lstep d[STEPS_MAX];
	struct lop *op;

	if (side_dims(dims, n, false, &s) <= ISA_DMA_DIMS &&
	    side_dims(dims + n_part, n - n_part, true, &c) <= ISA_DMA_DIMS) {
		op = dma_op(lir, store, elem);
		c.nparts = (uint8_t)prod_parts(dims, n_part);
		c.part_step = 1;
		op->to = store ? s : c;
		op->from = store ? c : s;
		return;
	}
	/* The outermost dim that is more than one becomes a loop. */
	memcpy(d, dims, n * sizeof(*d));
	for (uint32_t i = 0; i < n; i++) {
		if (d[i].count == 1)
			continue;
		uint32_t inner = i < n_part ? prod_parts(d + i + 1, n_part - i - 1) : 0;
		int64_t count = d[i].count;

		d[i].count = 1;
		for (int64_t j = 0; j < count; j++) {
			c = *chip;
			s = *slot;
			s.offset += j * d[i].a;
			if (i < n_part)
				c.part0 = (uint8_t)(c.part0 + j * inner);
			else
				c.offset += j * d[i].b;
			transfer(lir, store, &c, &s, elem, n_part, n, d);
		}
		return;
	}
}

void lir_load(struct lir *lir, uint32_t buf, uint32_t part0, uint32_t buf_offset, uint32_t slot,
	      int64_t offset, uint32_t elem, uint32_t n_part, uint32_t n, const struct lstep *dims)
{
	struct lside chip = { .buf = buf, .part0 = (uint8_t)part0, .offset = buf_offset };
	struct lside mem = { .buf = LIR_NONE, .slot = slot, .offset = offset };

	transfer(lir, false, &chip, &mem, elem, n_part, n, dims);
}

void lir_store(struct lir *lir, uint32_t slot, int64_t offset, uint32_t buf, uint32_t part0,
	       uint32_t buf_offset, uint32_t elem, uint32_t n_part, uint32_t n,
	       const struct lstep *dims)
{
	struct lside chip = { .buf = buf, .part0 = (uint8_t)part0, .offset = buf_offset };
	struct lside mem = { .buf = LIR_NONE, .slot = slot, .offset = offset };

	transfer(lir, true, &chip, &mem, elem, n_part, n, dims);
}

void lir_rows(struct lir *lir, bool scatter, const struct lrows *rows, const struct lindex *index,
	      uint32_t n, const struct lstep *dims)
{
	struct lside indexed = { .buf = LIR_NONE,
				 .slot = rows->indexed,
				 .offset = rows->indexed_at };
	struct lside other = { .buf = LIR_NONE, .slot = rows->other, .offset = rows->other_at };
	struct lrows inner = *rows;
	struct lstep d[STEPS_MAX], all[STEPS_MAX];
	int64_t count;
	struct lop *op;

	memcpy(d, dims, n * sizeof(*d));
	n = merge_steps(d, n);
	all[0] = (struct lstep){ (int64_t)index->nparts * index->count, 0, rows->other_step };
	memcpy(all + 1, d, n * sizeof(*d));
	if (side_dims(d, n, false, &indexed) <= ISA_DMA_ROW_DIMS &&
	    side_dims(all, n + 1, true, &other) <= ISA_DMA_ROW_DIMS) {
		op = transfer_op(lir, true, scatter ? ISA_DMA_SCATTER : ISA_DMA_GATHER, rows->elem);
		op->to = scatter ? indexed : other;
		op->from = scatter ? other : indexed;
		op->index = *index;
		op->sum_dtype = rows->sum_dtype;
		op->flags = rows->sum_dtype ? ISA_F_ACCUM : 0;
		return;
	}
	count = d[0].count;
	d[0].count = 1;
	for (int64_t i = 0; i < count; i++) {
		inner.indexed_at = rows->indexed_at + i * d[0].a;
		inner.other_at = rows->other_at + i * d[0].b;
		lir_rows(lir, scatter, &inner, index, n, d);
	}
}

void lir_next_group(struct lir *lir)
{
	lir->group++;
}

void lir_chip_move(struct lir *lir, const struct lside *to, const struct lside *from, uint32_t elem)
{
	struct lop *op = dma_op(lir, true, elem);

	op->to = *to;
	op->from = *from;
}

void lir_move(struct lir *lir, uint32_t dst, int64_t dst_offset, uint32_t src, int64_t src_offset,
	      uint32_t elem, uint32_t n, const struct lstep *dims)
{
	struct lside to = { .buf = LIR_NONE, .slot = dst, .offset = dst_offset };
	struct lside from = { .buf = LIR_NONE, .slot = src, .offset = src_offset };
	struct lstep d[STEPS_MAX];
	struct lop *op;
	int64_t count;

	memcpy(d, dims, n * sizeof(*d));
	n = merge_steps(d, n);
	if (side_dims(d, n, false, &to) <= ISA_DMA_DIMS &&
	    side_dims(d, n, true, &from) <= ISA_DMA_DIMS) {
		op = dma_op(lir, true, elem);
		op->to = to;
		op->from = from;
		return;
	}
	count = d[0].count;
	d[0].count = 1;
	for (int64_t j = 0; j < count; j++)
		lir_move(lir, dst, dst_offset + j * d[0].a, src, src_offset + j * d[0].b, elem, n,
			 d);
}
