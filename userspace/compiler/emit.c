/* SPDX-License-Identifier: Apache-2.0 */
/* The program image. Nothing else in this folder knows how things are encoded. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "neuron_crc32c.h"
#include "lir.h"
#include "neuron_queue.h"

static uint64_t align_up(uint64_t n)
{
	return (n + NPROG_ALIGN - 1) / NPROG_ALIGN * NPROG_ALIGN;
}

/* --- operands ------------------------------------------------------------------------- */

static uint32_t address(const struct lir *lir, uint32_t buf, uint64_t offset)
{
	return lir->bufs[buf].offset + (uint32_t)offset;
}

static void put_tile(const struct lir *lir, const struct ltile *t, struct isa_tile *out)
{
	for (uint32_t i = 0; i < ISA_TILE_DIMS; i++) {
		out->count[i] = t->count[i];
		out->step[i] = (uint32_t)t->step[i];
	}
	if (t->buf == LIR_NONE)
		return;
	out->space = lir->bufs[t->buf].space;
	out->dtype = t->dtype;
	out->part0 = t->part0;
	out->nparts = t->nparts;
	out->offset = address(lir, t->buf, t->offset);
}

static void put_col(const struct lir *lir, const struct lcol *c, struct isa_column *out)
{
	if (c->buf == LIR_NONE)
		return;
	out->space = lir->bufs[c->buf].space;
	out->dtype = c->dtype;
	out->part0 = c->part0;
	out->offset = address(lir, c->buf, c->offset);
}

static void put_side(const struct lir *lir, const struct lside *s, struct isa_dma_side *out)
{
	out->ndim = s->ndim;
	for (uint32_t i = 0; i < s->ndim; i++) {
		out->step[i] = (uint64_t)s->step[i];
		out->count[i] = s->count[i];
	}
	if (s->buf == LIR_NONE) {
		out->space = ISA_SPACE_SLOT;
		out->slot = (uint16_t)s->slot;
		out->offset = (uint64_t)s->offset;
		return;
	}
	out->space = lir->bufs[s->buf].space;
	out->part0 = s->part0;
	out->nparts = s->nparts;
	out->part_step = s->part_step;
	out->offset = address(lir, s->buf, (uint64_t)s->offset);
}

static void put_rows(const struct lside *s, uint32_t sum_dtype, struct isa_dma_rows *out)
{
	out->space = ISA_SPACE_SLOT;
	out->slot = (uint16_t)s->slot;
	out->offset = (uint64_t)s->offset;
	out->dtype = (uint8_t)sum_dtype;
	out->ndim = s->ndim;
	for (uint32_t i = 0; i < s->ndim; i++) {
		out->step[i] = (uint64_t)s->step[i];
		out->count[i] = s->count[i];
	}
}

static void put_indirect(const struct lir *lir, const struct lop *op, struct isa_dma_indirect *out)
{
	const struct lindex *i = &op->index;

	put_rows(&op->to, op->sum_dtype, &out->dst);
	put_rows(&op->from, 0, &out->src);
	out->index.space = lir->bufs[i->buf].space;
	out->index.dtype = i->dtype;
	out->index.nparts = i->nparts;
	out->index.offset = address(lir, i->buf, i->offset);
	out->index.count = i->count;
	out->index.step = 1;
	out->row_step = (uint64_t)i->row_step;
	out->rows = i->rows;
	out->oob = ISA_OOB_ERROR;
	out->order = ISA_INDEX_PARTITIONS;
}

static void put_op(const struct lir *lir, const struct lop *op, struct isa_inst *out)
{
	out->opcode = op->opcode;
	out->flags = op->flags;
	out->tag = op->tag;
	if (isa_is_dma(op->opcode)) {
		out->elem_bytes = op->elem_bytes;
		out->dma_queue = op->queue;
	}
	if (op->opcode == ISA_DMA_GATHER || op->opcode == ISA_DMA_SCATTER) {
		put_indirect(lir, op, &out->indirect);
		return;
	}
	if (op->opcode == ISA_DMA) {
		put_side(lir, &op->to, &out->dma.dst);
		put_side(lir, &op->from, &out->dma.src);
		return;
	}
	put_tile(lir, &op->dst, &out->compute.dst);
	put_tile(lir, &op->src0, &out->compute.src0);
	put_tile(lir, &op->src1, &out->compute.src1);
	put_col(lir, &op->vec0, &out->compute.vec0);
	put_col(lir, &op->vec1, &out->compute.vec1);
	out->compute.op0 = op->op0;
	out->compute.op1 = op->op1;
	out->compute.compute_type = op->compute_type;
	out->compute.n_axes = op->n_axes;
	out->compute.imm0 = op->imm0;
	out->compute.imm1 = op->imm1;
}

/* --- streams ----------------------------------------------------------------------------- */

/* Instructions that operation i becomes: itself, and NOPs for the waits it has no room for. */
static uint32_t insts_of(const struct lsched *sched, uint32_t i)
{
	uint32_t waits = sched->first_wait[i + 1] - sched->first_wait[i];

	return waits <= ISA_WAITS ? 1 : (waits + ISA_WAITS - 1) / ISA_WAITS;
}

static void count_insts(const struct lir *lir, const struct lsched *sched, uint32_t *count)
{
	for (uint32_t i = 0; i < lir->n_ops; i++)
		count[lir->ops[i].engine] += insts_of(sched, i);
	for (uint32_t e = 0; e < 5; e++)
		if (sched->used[e])
			count[e] += insts_of(sched, lir->n_ops + e);
}

/* Waits of operation i before and in *inst; returns the instruction that is its own. */
static struct isa_inst *put_waits(const struct lsched *sched, uint32_t i, struct isa_inst *inst)
{
	uint32_t n = 0;

	for (uint32_t w = sched->first_wait[i]; w < sched->first_wait[i + 1]; w++) {
		if (n == ISA_WAITS) {
			inst->opcode = ISA_NOP;
			inst++;
			n = 0;
		}
		inst->wait[n].kind = ISA_WAIT_GE;
		inst->wait[n].sem = sched->waits[w].sem;
		inst->wait[n].value = sched->waits[w].value;
		n++;
	}
	return inst;
}

static void put_streams(const struct lir *lir, const struct lsched *sched, struct isa_inst **at)
{
	struct isa_inst *inst;

	for (uint32_t i = 0; i < lir->n_ops; i++) {
		const struct lop *op = &lir->ops[i];

		inst = put_waits(sched, i, at[op->engine]);
		put_op(lir, op, inst);
		if (sched->signals[i]) {
			inst->update[0].kind = ISA_UPDATE_ADD;
			inst->update[0].sem = (uint8_t)(isa_is_dma(op->opcode) ?
								NCI_SEM_QUEUE(op->queue) :
								NCI_SEM_ENGINE(op->engine));
			inst->update[0].value = 1;
		}
		at[op->engine] = inst + 1;
	}
	for (uint32_t e = 0; e < 5; e++)
		if (sched->used[e]) {
			inst = put_waits(sched, lir->n_ops + e, at[e]);
			inst->opcode = ISA_HALT;
		}
}

/* --- slots ---------------------------------------------------------------------------------- */

static void put_slot(const struct lir *lir, uint32_t i, struct nprog_slot *out)
{
	static const char *const prefix[] = { "in", "out", "inout", "scratch", "scalar" };
	const struct lslot *slot = &lir->slots[i];
	uint32_t extra = 0;

	out->min_bytes = slot->bytes;
	out->rights = slot->rights;
	out->kind = slot->kind;
	out->dtype = (uint8_t)nci_isa_dtype(slot->type.dtype);
	/* More dims than it can say: the outer ones as one. */
	if (slot->type.ndim > NPROG_DIMS_MAX)
		extra = slot->type.ndim - NPROG_DIMS_MAX;
	out->ndim = (uint8_t)(slot->type.ndim - extra);
	for (uint32_t d = 0; d < slot->type.ndim; d++) {
		uint32_t j = d < extra ? 0 : d - extra;
		uint64_t n =
			(d <= extra && d > 0 ? out->dims[j] : 1) * (uint64_t)slot->type.dims[d];

		out->dims[j] = n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
	}
	snprintf((char *)out->name, sizeof(out->name), "%s%u", prefix[slot->kind], i);
}

/* --- the image --------------------------------------------------------------------------------- */

static uint64_t lay_out(const struct lir *lir, const uint32_t *count, struct nprog_header *h)
{
	uint64_t at = align_up(sizeof(*h));

	h->n_slots = lir->n_slots;
	h->slot_offset = (uint32_t)at;
	at = align_up(at + (uint64_t)lir->n_slots * sizeof(struct nprog_slot));
	for (uint32_t e = 0; e < 5; e++) {
		h->stream[e].offset = (uint32_t)at;
		h->stream[e].count = count[e];
		at = align_up(at + (uint64_t)count[e] * sizeof(struct isa_inst));
		if (at > NPROG_IMAGE_MAX)
			return at;
	}
	h->const_offset = (uint32_t)at;
	h->const_bytes = lir->n_consts;
	return align_up(at + lir->n_consts);
}

void nci_emit(struct lir *lir, const struct lsched *sched, struct nc_program *program)
{
	struct nprog_header h = {
		.magic = NPROG_MAGIC,
		.version_major = NPROG_VERSION_MAJOR,
		.version_minor = NPROG_VERSION_MINOR,
		.header_bytes = sizeof(h),
		.arch = lir->ctx->target.arch,
	};
	uint32_t count[5] = { 0 };
	struct isa_inst *at[5];
	uint64_t bytes;
	char *image;

	count_insts(lir, sched, count);
	bytes = lay_out(lir, count, &h);
	if (bytes > NPROG_IMAGE_MAX)
		nci_fail(lir->ctx, -E2BIG,
			 "%s: the program needs more than %u bytes (%u operations); split the "
			 "graph",
			 lir->ctx->graph->name, NPROG_IMAGE_MAX, lir->n_ops);
	image = calloc(1, bytes);
	if (!image)
		nci_fail(lir->ctx, -ENOMEM, "%s: out of memory for a program of %llu bytes",
			 lir->ctx->graph->name, (unsigned long long)bytes);
	h.image_bytes = (uint32_t)bytes;
	memcpy(h.name, lir->ctx->graph->name, sizeof(h.name));
	memcpy(image, &h, sizeof(h));
	for (uint32_t i = 0; i < lir->n_slots; i++)
		put_slot(lir, i, (struct nprog_slot *)(image + h.slot_offset) + i);
	for (uint32_t e = 0; e < 5; e++)
		at[e] = (struct isa_inst *)(image + h.stream[e].offset);
	put_streams(lir, sched, at);
	if (lir->n_consts)
		memcpy(image + h.const_offset, lir->consts, lir->n_consts);
	((struct nprog_header *)image)->crc32c = hw_crc32c(0, image, bytes);
	program->image = image;
	program->bytes = bytes;
	program->n_slots = lir->n_slots;
}
