/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "neuron_queue.h"
#include "panel.h"

static bool same_ref(const struct eval *ev, const struct vref *a, const struct vref *b)
{
	return a->node == b->node &&
	       !memcmp(a->stride, b->stride, ev->group->nd * sizeof(a->stride[0]));
}

static uint32_t find_val(struct eval *ev, const struct vref *ref)
{
	struct val *val;

	for (uint32_t i = 0; i < ev->group->n_members; i++)
		if (ev->group->members[i].node == ref->node)
			return i;
	for (uint32_t i = ev->group->n_members; i < ev->n_vals; i++)
		if (same_ref(ev, ev->vals[i].ref, ref))
			return i;
	val = &ev->vals[ev->n_vals];
	val->node = ref->node;
	val->ref = ref;
	return ev->n_vals++;
}

void eval_init(struct eval *ev, struct legal *legal, struct lir *lir, struct group *group)
{
	uint32_t n = group->n_members;

	memset(ev, 0, sizeof(*ev));
	ev->ctx = legal->ctx;
	ev->legal = legal;
	ev->lir = lir;
	ev->group = group;
	ev->rest = LIR_NONE;
	ev->vals = nci_alloc(ev->ctx, (n * (1 + NCI_SRCS) + 1) * sizeof(*ev->vals));
	ev->src = nci_alloc(ev->ctx, n * sizeof(*ev->src));
	ev->n_vals = n;
	for (uint32_t i = 0; i < n; i++)
		ev->vals[i].node = group->members[i].node;
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t j = 0; j < legal->nodes[group->members[i].node].n_src; j++)
			ev->src[i][j] = find_val(ev, &group->members[i].src[j]);
	for (uint32_t i = 0; i < ev->n_vals; i++)
		ev->vals[i].dtype = (uint8_t)nci_isa_dtype(legal->nodes[ev->vals[i].node].dtype);
}

static void member_varies(struct eval *ev, uint32_t i)
{
	const struct member *m = &ev->group->members[i];
	const struct lnode *node = &ev->legal->nodes[m->node];
	struct val *val = &ev->vals[i];

	for (uint32_t a = 0; a < ev->plan->n_axes; a++) {
		const struct axis *axis = &ev->plan->axes[a];

		val->varies[a] = !lnode_is_elementwise(node) && node->kind != N_REDUCE;
		if (node->kind == N_IOTA)
			val->varies[a] = m->src[0].stride[axis->dim] != 0;
		for (uint32_t j = 0; j < node->n_src; j++)
			if (lnode_is_elementwise(node) || node->kind == N_REDUCE)
				val->varies[a] |= ev->vals[ev->src[i][j]].varies[a];
		if (node->kind == N_REDUCE && axis->reduced)
			val->varies[a] = false;
		if (node->kind == N_RECURRENCE && (ev->group->along >> axis->dim & 1))
			val->varies[a] = true;
	}
}

void eval_set_plan(struct eval *ev, const struct plan *plan)
{
	ev->plan = plan;
	for (uint32_t i = ev->group->n_members; i < ev->n_vals; i++)
		for (uint32_t a = 0; a < plan->n_axes; a++)
			ev->vals[i].varies[a] = ev->vals[i].ref->stride[plan->axes[a].dim] != 0 &&
						ev->legal->nodes[ev->vals[i].node].kind != N_SCALAR;
	for (uint32_t i = 0; i < ev->group->n_members; i++)
		member_varies(ev, i);
	for (uint32_t i = 0; i < ev->n_vals; i++) {
		ev->vals[i].gap = 1;
		ev->vals[i].valid = false;
		ev->vals[i].full = LIR_NONE;
	}
	eval_find_folds(ev);
}

void eval_set_tile(struct eval *ev)
{
	ev->nparts = 1;
	for (uint32_t a = 0; a < ev->plan->n_axes; a++)
		if (ev->plan->axes[a].role == AXIS_PART)
			ev->nparts *= (uint32_t)ev->len[a];
}

int64_t eval_elems(const struct eval *ev, const struct val *val)
{
	int64_t n = 1;

	for (uint32_t a = 0; a < ev->plan->n_axes; a++)
		if (ev->plan->axes[a].role == AXIS_FREE && val->varies[a])
			n *= ev->len[a];
	return n;
}

int64_t eval_step(const struct eval *ev, const struct val *val, uint32_t axis)
{
	int64_t n = val->gap;

	if (!val->varies[axis])
		return 0;
	for (uint32_t a = axis + 1; a < ev->plan->n_axes; a++)
		if (ev->plan->axes[a].role == AXIS_FREE && val->varies[a])
			n *= ev->len[a];
	return n;
}

bool eval_is_const(const struct eval *ev, uint32_t val)
{
	return ev->legal->nodes[ev->vals[val].node].kind == N_CONST;
}

bool eval_is_column(const struct eval *ev, uint32_t val)
{
	return eval_elems(ev, &ev->vals[val]) == 1;
}

static bool up_to_date(const struct eval *ev, const struct val *val)
{
	if (!val->valid || val->nparts < ev->nparts)
		return false;
	for (uint32_t a = 0; a < ev->plan->n_axes; a++)
		if (val->varies[a] && (val->start[a] != ev->start[a] || val->len[a] != ev->len[a]))
			return false;
	return true;
}

static void set_tile_of(struct eval *ev, struct val *val)
{
	val->valid = true;
	val->full = LIR_NONE;
	val->nparts = ev->nparts;
	memcpy(val->start, ev->start, sizeof(val->start));
	memcpy(val->len, ev->len, sizeof(val->len));
}

void eval_new_tile(struct eval *ev, uint32_t v)
{
	struct val *val = &ev->vals[v];
	uint64_t bytes = (uint64_t)(eval_elems(ev, val) * val->gap) * isa_dtype_bytes(val->dtype);

	val->buf = val->unread ? eval_rest(ev, bytes) : lir_buf(ev->lir, ISA_SPACE_SBUF, bytes);
	val->offset = 0;
	set_tile_of(ev, val);
}

uint32_t eval_rest(struct eval *ev, uint64_t bytes)
{
	if (ev->rest == LIR_NONE || ev->rest_bytes < bytes) {
		ev->rest = lir_buf(ev->lir, ISA_SPACE_SBUF, bytes);
		ev->rest_bytes = bytes;
	}
	return ev->rest;
}

void eval_preset(struct eval *ev, uint32_t member, uint32_t buf, uint32_t offset, uint32_t dtype)
{
	struct val *val = &ev->vals[member];

	val->buf = buf;
	val->offset = offset;
	val->dtype = (uint8_t)dtype;
	set_tile_of(ev, val);
}

/* Dims of a transfer between the tile at hand and memory; returns their number. */
static uint32_t transfer_dims(const struct eval *ev, const int64_t *stride, uint32_t elem,
			      const struct val *val, const bool *over, struct lstep *dims,
			      uint32_t *n_part, int64_t *offset)
{
	uint32_t n = 0;

	*offset = 0;
	for (uint32_t d = 0; d < ev->group->nd; d++)
		*offset += ev->plan->base[d] * stride[d] * elem;
	for (int part = 1; part >= 0; part--) {
		for (uint32_t a = 0; a < ev->plan->n_axes; a++) {
			const struct axis *axis = &ev->plan->axes[a];
			int64_t step = stride[axis->dim] * axis->unit * elem;

			if (part)
				*offset += ev->start[a] * step;
			if (axis->role != (part ? AXIS_PART : AXIS_FREE) || (!part && !over[a]))
				continue;
			dims[n++] =
				(struct lstep){ ev->len[a], step, eval_step(ev, val, a) * elem };
		}
		if (part)
			*n_part = n;
	}
	return n;
}

/* Does the operand lie contiguous along the partitions of the tile: axes of both. */
static bool lies_crosswise(const struct eval *ev, const struct val *val, uint32_t *part,
			   uint32_t *row)
{
	uint32_t n_part = 0, n_free = 0;

	for (uint32_t a = 0; a < ev->plan->n_axes; a++) {
		if (ev->plan->axes[a].role == AXIS_PART) {
			*part = a;
			n_part++;
		} else if (ev->plan->axes[a].role == AXIS_FREE && val->varies[a] &&
			   ev->len[a] > 1) {
			*row = a;
			n_free++;
		}
	}
	return n_part == 1 && n_free == 1 &&
	       val->ref->stride[ev->plan->axes[*part].dim] * ev->plan->axes[*part].unit == 1 &&
	       val->ref->stride[ev->plan->axes[*row].dim] * ev->plan->axes[*row].unit > 1 &&
	       (isa_dtype_bytes(val->dtype) == 2 || isa_dtype_bytes(val->dtype) == 4);
}

/* Does the program write to the slot's memory, or may it? */
static bool is_written(const struct lir *lir, uint32_t slot)
{
	for (uint32_t i = 0; i < lir->n_slots; i++)
		if (lir->slots[i].memory == lir->slots[slot].memory &&
		    (lir->slots[i].rights & EXI_SLOT_WRITE))
			return true;
	return false;
}

/* As nci_gap() says, if nothing is written that lies between the elements. */
static int64_t loaded_gap(const struct eval *ev, const struct val *val, uint32_t slot)
{
	int64_t gap = nci_gap(ev->group, val->ref);
	const struct axis *axis;
	uint32_t last;

	if (gap == 1)
		return 1;
	last = ev->plan->n_axes - 1;
	axis = &ev->plan->axes[last];
	if (axis->dim != ev->group->nd - 1 || axis->role != AXIS_FREE || axis->unit != 1 ||
	    ev->len[last] == 1 || is_written(ev->lir, slot))
		return 1;
	return gap;
}

static void load(struct eval *ev, uint32_t v)
{
	struct val *val = &ev->vals[v];
	const struct lnode *node = &ev->legal->nodes[val->node];
	uint32_t elem = isa_dtype_bytes(val->dtype), n_part;
	bool memory = node->kind == N_INPUT || node->kind == N_SCALAR;
	uint32_t slot = memory ? node->slot : node->scratch, n, part = 0, row = 0;
	struct lstep dims[AXES_MAX];
	int64_t offset;

	if (lies_crosswise(ev, val, &part, &row)) {
		struct matrix m = { .slot = slot,
				    .dtype = val->dtype,
				    .elem = (uint8_t)elem,
				    .k_step = 1,
				    .x_step = val->ref->stride[ev->plan->axes[row].dim] *
					      ev->plan->axes[row].unit };

		transfer_dims(ev, val->ref->stride, elem, val, val->varies, dims, &n_part, &offset);
		m.offset = offset / elem;
		val->gap = 1;
		val->buf = panel_load(ev, &m, 0, ev->len[part], 0, ev->len[row]).buf;
		val->offset = 0;
		set_tile_of(ev, val);
		return;
	}
	val->gap = loaded_gap(ev, val, slot);
	eval_new_tile(ev, v);
	n = transfer_dims(ev, val->ref->stride, elem, val, val->varies, dims, &n_part, &offset);
	if (val->gap > 1) {
		/* All that lies between the first and the last element of a run, too. */
		dims[n - 1].count = (dims[n - 1].count - 1) * val->gap + 1;
		dims[n - 1].a = dims[n - 1].b = elem;
	}
	lir_load(ev->lir, val->buf, 0, 0, slot, offset, elem, n_part, n, dims);
}

static void fill(struct eval *ev, uint32_t v)
{
	const struct lnode *node = &ev->legal->nodes[ev->vals[v].node];
	uint32_t ct = nci_compute_type(node->dtype);
	struct ltile dst;

	eval_new_tile(ev, v);
	eval_tiles(ev, 1, &v, &dst);
	lir_memset(ev->lir, ct == ISA_CT_F32 || ct == ISA_CT_I32 ? ISA_VECTOR : ISA_GPSIMD, ct, dst,
		   node->bits);
}

void eval_need(struct eval *ev, uint32_t v)
{
	if (v < ev->group->n_members || up_to_date(ev, &ev->vals[v]))
		return;
	if (eval_is_const(ev, v))
		fill(ev, v);
	else
		load(ev, v);
}

/* --- access patterns ---------------------------------------------------------------------- */

void eval_tiles(const struct eval *ev, uint32_t n, const uint32_t *vals, struct ltile *out)
{
	int64_t count[ISA_TILE_DIMS], step[NCI_SRCS + 1][ISA_TILE_DIMS];
	const struct val *dst = &ev->vals[vals[0]];
	uint32_t k = 0;

	for (uint32_t a = 0; a < ev->plan->n_axes; a++) {
		bool merge = k > 0;

		if (ev->plan->axes[a].role != AXIS_FREE || !dst->varies[a] || ev->len[a] == 1)
			continue;
		for (uint32_t i = 0; i < n; i++)
			merge = merge &&
				step[i][k - 1] == ev->len[a] * eval_step(ev, &ev->vals[vals[i]], a);
		if (merge)
			count[k - 1] *= ev->len[a];
		else
			count[k++] = ev->len[a];
		for (uint32_t i = 0; i < n; i++)
			step[i][k - 1] = eval_step(ev, &ev->vals[vals[i]], a);
	}
	for (uint32_t i = 0; i < n; i++)
		out[i] = lir_tile(ev->vals[vals[i]].buf, ev->vals[vals[i]].dtype, ev->nparts,
				  ev->vals[vals[i]].offset, k, count, step[i]);
}

uint32_t eval_reduce_tiles(const struct eval *ev, uint32_t src, struct ltile *from,
			   struct ltile *to)
{
	int64_t count[ISA_TILE_DIMS + 1], step[ISA_TILE_DIMS + 1];
	int64_t to_count[ISA_TILE_DIMS + 1], to_step[ISA_TILE_DIMS + 1], run = 1;
	const struct val *val = &ev->vals[src];
	uint32_t k = 0, n_axes = 0, first = 0;

	for (int reduced = 0; reduced < 2; reduced++) {
		first = k;
		for (uint32_t a = 0; a < ev->plan->n_axes; a++) {
			int64_t s = eval_step(ev, val, a);

			if (ev->plan->axes[a].role != AXIS_FREE || ev->len[a] == 1 ||
			    ev->plan->axes[a].reduced != reduced || (!reduced && !val->varies[a]))
				continue;
			if (k > first && step[k - 1] == s * ev->len[a])
				count[k - 1] *= ev->len[a];
			else
				count[k++] = ev->len[a];
			step[k - 1] = s;
		}
	}
	n_axes = k - first;
	for (uint32_t i = k; i-- > 0;) {
		to_count[i] = i < first ? count[i] : 1;
		to_step[i] = i < first ? run : 1;
		run *= to_count[i];
	}
	*from = lir_tile(val->buf, val->dtype, ev->nparts, val->offset, k, count, step);
	*to = lir_tile(LIR_NONE, 0, ev->nparts, 0, k, to_count, to_step);
	return n_axes;
}

/* --- stores ------------------------------------------------------------------------------ */

/* Repeats the value over the free axes of the store on which it does not vary. */
static uint32_t expand(struct eval *ev, uint32_t v, const struct val *shape)
{
	struct val *val = &ev->vals[v];
	uint32_t tmp = ev->n_vals; /* a value made for its shape alone */
	uint32_t bytes = isa_dtype_bytes(val->dtype);
	uint32_t pair[2] = { tmp, v };
	struct ltile t[2];
	bool same = val->full != LIR_NONE;

	for (uint32_t a = 0; a < ev->plan->n_axes; a++)
		if (shape->varies[a] && ev->plan->axes[a].role == AXIS_FREE)
			same = same && val->full_len[a] == ev->len[a];
	if (same)
		return val->full;
	val->full = lir_buf(ev->lir, ISA_SPACE_SBUF, (uint64_t)eval_elems(ev, shape) * bytes);
	memcpy(val->full_len, ev->len, sizeof(val->full_len));
	ev->vals[tmp] = *shape;
	ev->vals[tmp].buf = val->full;
	eval_tiles(ev, 2, pair, t);
	lir_copy(ev->lir, bytes == 8 ? ISA_GPSIMD : ISA_VECTOR, ISA_CT_BITS, t[0], t[1]);
	return val->full;
}

static void store(struct eval *ev, uint32_t v, const struct store *st)
{
	struct val *val = &ev->vals[v], shape = *val;
	uint32_t elem = isa_dtype_bytes(val->dtype), n_part, n, buf = val->buf;
	struct lstep dims[AXES_MAX];
	bool full = true;
	int64_t offset;

	for (uint32_t a = 0; a < ev->plan->n_axes; a++) {
		const struct axis *axis = &ev->plan->axes[a];

		shape.varies[a] = st->stride[axis->dim] != 0;
		if (axis->role == AXIS_FREE && ev->len[a] > 1)
			full &= shape.varies[a] == val->varies[a];
	}
	shape.offset = 0;
	if (!full)
		buf = expand(ev, v, &shape);
	n = transfer_dims(ev, st->stride, elem, &shape, shape.varies, dims, &n_part, &offset);
	/* Partitions that reduced dims ran over have become one. */
	for (uint32_t i = 0; i < n_part; i++)
		if (!dims[i].a)
			dims[i].count = 1;
	lir_store(ev->lir, st->slot, offset, buf, 0, full ? val->offset : 0, elem, n_part, n, dims);
}

void eval_members(struct eval *ev, bool late)
{
	struct group *group = ev->group;

	for (uint32_t i = 0; i < group->n_members; i++) {
		const struct lnode *node = &ev->legal->nodes[group->members[i].node];

		if (ev->vals[i].folded ||
		    (!group->row && (group->members[i].late != late || node->kind == N_REDUCE)))
			continue;
		ev->lir->tag = node->origin;
		if (!up_to_date(ev, &ev->vals[i]))
			eval_emit(ev, i);
	}
}

void eval_stores(struct eval *ev, bool late)
{
	struct group *group = ev->group;

	for (uint32_t i = 0; i < group->n_stores; i++)
		for (uint32_t v = 0; v < group->n_members; v++) {
			const struct member *m = &group->members[v];
			bool when = m->late || ev->legal->nodes[m->node].kind == N_REDUCE;

			if (m->node != group->stores[i].node || (!group->row && when != late))
				continue;
			ev->lir->tag = ev->legal->nodes[m->node].origin;
			store(ev, v, &group->stores[i]);
		}
}
