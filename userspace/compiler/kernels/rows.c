/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows by index: TAKE gathers, PUT scatters. Rows go from slot to slot and never see SBUF, where
 * only the indices are; the DMA engines take 16 rows at a time and check every index.
 */
#include <string.h>

#include "eval.h"
#include "neuron_queue.h"

/* Indices in each partition: as many rows in one transfer as SBUF has room for, and more. */
#define INDEX_MOST 2048

struct rows {
	struct legal *legal;
	struct lir *lir;
	const struct group *group;
	const struct lnode *node;
	uint32_t axis, elem;
	int64_t n; /* indices */
};

static uint32_t slot_of(const struct rows *r, const struct vref *ref)
{
	const struct lnode *node = &r->legal->nodes[ref->node];

	return node->kind == N_INPUT ? node->slot : node->scratch;
}

/* Indices at .. at + nparts * count - 1, as int32 on chip. */
static struct lindex load_index(const struct rows *r, int64_t at, uint32_t nparts, uint32_t count)
{
	const struct vref *ref = &r->group->members[0].src[1];
	uint32_t dtype = nci_isa_dtype(r->legal->nodes[ref->node].dtype),
		 elem = isa_dtype_bytes(dtype);
	int64_t step = ref->stride[r->axis] * elem;
	const struct lstep dims[] = { { nparts, step * count, 0 }, { count, step, elem } };
	uint32_t buf = lir_buf(r->lir, ISA_SPACE_SBUF, (uint64_t)count * elem), narrow;
	struct lop *op;

	lir_load(r->lir, buf, 0, 0, slot_of(r, ref), at * step, elem, 1, 2, dims);
	if (dtype == ISA_INT64) {
		narrow = lir_buf(r->lir, ISA_SPACE_SBUF, (uint64_t)count * 4);
		/* What int32 does not have must not become an index that is in bounds. */
		op = lir_op(r->lir, ISA_GPSIMD, ISA_TENSOR_SCALAR);
		op->compute_type = ISA_CT_I64;
		op->op0 = ISA_MAX;
		op->op1 = ISA_MIN;
		op->imm0 = (uint64_t)INT64_C(-0x80000000);
		op->imm1 = INT32_MAX;
		op->dst = lir_row(narrow, ISA_INT32, nparts, 0, count);
		op->src0 = lir_row(buf, dtype, nparts, 0, count);
		buf = narrow;
	}
	return (struct lindex){
		.buf = buf, .dtype = ISA_INT32, .nparts = (uint8_t)nparts, .count = count
	};
}

/* Rows of the slot that indices name, strides over the node's dims, from or to those of the other. */
static void move_rows(const struct rows *r, bool scatter, uint32_t slot, const int64_t *stride,
		      int64_t rows, uint32_t other, const int64_t *other_stride)
{
	struct lrows how = { .indexed = slot, .other = other, .elem = r->elem };
	struct lstep dims[NC_DIMS_MAX];
	uint32_t n = 0, nparts, count;

	if (scatter && r->node->op == NC_PUT_ADD)
		how.sum_dtype = (uint8_t)nci_isa_dtype(r->node->dtype);
	how.other_step = other_stride[r->axis] * r->elem;
	for (uint32_t d = 0; d < r->group->nd; d++)
		if (d != r->axis)
			dims[n++] = (struct lstep){ r->group->dims[d], stride[d] * r->elem,
						    other_stride[d] * r->elem };
	for (int64_t at = 0; at < r->n; at += (int64_t)nparts * count) {
		struct lindex index;

		nparts = (uint32_t)nci_min(r->n - at, ISA_PARTITIONS);
		count = (uint32_t)nci_min((r->n - at) / nparts, INDEX_MOST);
		index = load_index(r, at, nparts, count);
		index.row_step = stride[r->axis] * r->elem;
		index.rows = (uint32_t)rows;
		how.other_at = at * how.other_step;
		lir_rows(r->lir, scatter, &how, &index, n, dims);
		/* Rows of the next transfer may have the same index as rows of this one. */
		if (scatter)
			lir_next_group(r->lir);
	}
}

/* The whole result from one slot to another. */
static void copy(const struct rows *r, uint32_t to, const int64_t *to_stride, uint32_t from,
		 const int64_t *from_stride)
{
	struct lstep dims[NC_DIMS_MAX];

	for (uint32_t d = 0; d < r->group->nd; d++)
		dims[d] = (struct lstep){ r->group->dims[d], to_stride[d] * r->elem,
					  from_stride[d] * r->elem };
	lir_move(r->lir, to, 0, from, 0, r->elem, r->group->nd, dims);
}

static void take(const struct rows *r)
{
	const struct vref *x = &r->group->members[0].src[0];

	for (uint32_t i = 0; i < r->group->n_stores; i++)
		move_rows(r, false, slot_of(r, x), x->stride, r->node->k, r->group->stores[i].slot,
			  r->group->stores[i].stride);
}

/* The store where the operand itself lies, so that only the rows need to be written; else the first. */
static const struct store *put_target(const struct rows *r, bool *in_place)
{
	uint32_t x = slot_of(r, &r->group->members[0].src[0]);

	*in_place = true;
	for (uint32_t i = 0; i < r->group->n_stores; i++)
		if (r->lir->slots[r->group->stores[i].slot].memory == r->lir->slots[x].memory)
			return &r->group->stores[i];
	*in_place = false;
	return &r->group->stores[0];
}

static void put(const struct rows *r)
{
	const struct vref *src = r->group->members[0].src;
	bool in_place;
	const struct store *to = put_target(r, &in_place);

	/* Sums read what is there. */
	if (r->node->op == NC_PUT_ADD)
		r->lir->slots[to->slot].rights |= EXI_SLOT_READ;
	if (!in_place)
		copy(r, to->slot, to->stride, slot_of(r, &src[0]), src[0].stride);
	lir_next_group(r->lir);
	move_rows(r, true, to->slot, to->stride, r->group->dims[r->axis], slot_of(r, &src[2]),
		  src[2].stride);
	for (uint32_t i = 0; i < r->group->n_stores; i++) {
		const struct store *st = &r->group->stores[i];

		if (st == to)
			continue;
		/* What is to be copied must be readable. */
		r->lir->slots[to->slot].rights |= EXI_SLOT_READ;
		copy(r, st->slot, st->stride, to->slot, to->stride);
	}
}

void nci_rows(struct legal *legal, struct lir *lir, struct group *group)
{
	const struct lnode *node = &legal->nodes[group->members[0].node];
	struct rows r = { .legal = legal, .lir = lir, .group = group, .node = node };

	lir->tag = node->origin;
	r.axis = (uint32_t)__builtin_ctz(node->axes);
	r.elem = nci_dtype_bytes(node->dtype);
	r.n = node->kind == N_PUT ? node->k : group->dims[r.axis];
	if (node->kind == N_PUT)
		put(&r);
	else
		take(&r);
}
