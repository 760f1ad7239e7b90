/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "tile.h"

/* What one value may take of a partition in one tile: descriptors are of 4 KiB. */
#define TILE_BYTES 4096
/* All live values of a tile. The rest of SBUF lets tiles overlap. */
#define TILE_LIVE_BYTES (40 << 10)
#define TILE_FEW	64 /* elements below which more partitions don't help */

/* --- collapse -------------------------------------------------------------------------- */

/* Calls fn for every array of strides over the group's dims. */
static void each_stride(const struct legal *legal, struct group *group,
			void (*fn)(int64_t *stride, void *arg), void *arg)
{
	for (uint32_t i = 0; i < group->n_members; i++) {
		struct member *m = &group->members[i];
		const struct lnode *node = &legal->nodes[m->node];

		fn(m->own, arg);
		for (uint32_t j = 0; j < node->n_src; j++)
			fn(m->src[j].stride, arg);
		if (node->kind == N_IOTA)
			fn(m->src[0].stride, arg);
	}
	for (uint32_t i = 0; i < group->n_stores; i++)
		fn(group->stores[i].stride, arg);
}

struct dim_edit {
	const struct group *group;
	uint32_t order[NC_DIMS_MAX]; /* new dim i is old dim order[i] */
	uint32_t n;
	uint32_t at; /* merging at and at + 1 */
	bool ok;
};

static void reorder_stride(int64_t *stride, void *arg)
{
	const struct dim_edit *e = arg;
	int64_t old[NC_DIMS_MAX];

	memcpy(old, stride, sizeof(old));
	memset(stride, 0, sizeof(old));
	for (uint32_t i = 0; i < e->n; i++)
		stride[i] = old[e->order[i]];
}

static void check_merge(int64_t *stride, void *arg)
{
	struct dim_edit *e = arg;

	if (stride[e->at] != stride[e->at + 1] * e->group->dims[e->at + 1])
		e->ok = false;
}

static void do_merge(int64_t *stride, void *arg)
{
	const struct dim_edit *e = arg;

	for (uint32_t i = e->at; i + 1 < NC_DIMS_MAX; i++)
		stride[i] = stride[i + 1];
	stride[NC_DIMS_MAX - 1] = 0;
}

static void remap_dims(struct group *group, const struct dim_edit *e)
{
	int64_t dims[NC_DIMS_MAX] = { 0 };
	uint32_t axes = 0, along = 0;

	for (uint32_t i = 0; i < e->n; i++) {
		dims[i] = group->dims[e->order[i]];
		axes |= (group->axes >> e->order[i] & 1) << i;
		along |= (group->along >> e->order[i] & 1) << i;
	}
	memcpy(group->dims, dims, sizeof(dims));
	group->axes = axes;
	group->along = along;
	group->nd = e->n;
}

/* The access whose memory order the dims should follow: results, else the fullest operand. */
static const int64_t *leading_stride(const struct legal *legal, const struct group *group)
{
	const int64_t *best = NULL;
	uint32_t most = 0;

	if (!group->axes && group->n_stores)
		return group->stores[0].stride;
	for (uint32_t i = 0; i < group->n_members; i++) {
		const struct member *m = &group->members[i];

		for (uint32_t j = 0; j < legal->nodes[m->node].n_src; j++) {
			uint32_t n = 0;

			for (uint32_t d = 0; d < group->nd; d++)
				n += m->src[j].stride[d] != 0;
			if (n > most && (lnode_is_source(&legal->nodes[m->src[j].node]) ||
					 legal->nodes[m->src[j].node].scratch != LIR_NONE)) {
				most = n;
				best = m->src[j].stride;
			}
		}
	}
	return best;
}

static void sort_dims(const struct legal *legal, struct group *group, struct dim_edit *e)
{
	const int64_t *lead = group->row ? NULL : leading_stride(legal, group);

	e->n = 0;
	for (uint32_t i = 0; i < group->nd; i++)
		if (group->dims[i] > 1)
			e->order[e->n++] = i;
	for (uint32_t i = 1; lead && i < e->n; i++)
		for (uint32_t j = i; j > 0; j--) {
			uint32_t t = e->order[j];

			if (!lead[t] || lead[e->order[j - 1]] >= lead[t])
				break;
			e->order[j] = e->order[j - 1];
			e->order[j - 1] = t;
		}
}

/* Dims at and at + 1 have become one. */
static uint32_t merge_bits(uint32_t bits, uint32_t at)
{
	return (bits & ((2u << at) - 1)) | (bits >> 1 & ~((2u << at) - 1));
}

void nci_collapse(const struct legal *legal, struct group *group)
{
	struct dim_edit e = { .group = group };

	sort_dims(legal, group, &e);
	each_stride(legal, group, reorder_stride, &e);
	remap_dims(group, &e);
	for (e.at = 0; e.at + 1 < group->nd;) {
		uint32_t axes = group->axes >> e.at;

		e.ok = (axes & 1) == (axes >> 1 & 1) && !(group->along >> e.at & 3);
		each_stride(legal, group, check_merge, &e);
		if (!e.ok) {
			e.at++;
			continue;
		}
		each_stride(legal, group, do_merge, &e);
		group->dims[e.at] *= group->dims[e.at + 1];
		for (uint32_t i = e.at + 1; i + 1 < group->nd; i++)
			group->dims[i] = group->dims[i + 1];
		group->axes = merge_bits(group->axes, e.at);
		group->along = merge_bits(group->along, e.at);
		group->nd--;
	}
}

int64_t nci_gap(const struct group *group, const struct vref *ref)
{
	int64_t stride = group->nd ? ref->stride[group->nd - 1] : 0;

	return !group->row && stride > 1 && stride <= TILE_GAP_MAX ? stride : 1;
}

/* --- plan ------------------------------------------------------------------------------- */

/* Most bytes that are live at one place while the members are evaluated in order. */
static int64_t live_bytes(const struct legal *legal, const struct group *group, int64_t *widest)
{
	int64_t live = 0, most = 1;

	*widest = 1;
	for (uint32_t i = 0; i < group->n_members; i++) {
		const struct lnode *node = &legal->nodes[group->members[i].node];
		int64_t bytes = nci_dtype_bytes(node->dtype);

		/* Operands from memory live as long as they may be read again: count all. */
		for (uint32_t j = 0; j < node->n_src; j++) {
			const struct lnode *src = &legal->nodes[node->src[j].node];
			int64_t gap = nci_gap(group, &group->members[i].src[j]);

			if (src->kind == N_INPUT || src->scratch != LIR_NONE)
				live += nci_dtype_bytes(src->dtype) * gap;
			*widest = nci_max(*widest, nci_dtype_bytes(src->dtype));
		}
		*widest = nci_max(*widest, bytes);
		live += bytes;
		most = nci_max(most, live);
	}
	return most;
}

struct planner {
	const struct group *group;
	struct plan *plan;
	int64_t target; /* elements of a row that a tile should have */
	bool one_part_axis;
	uint32_t last_free; /* no free axes of dims further out */
	uint32_t n_free;
	int64_t free;
};

static struct axis *push(struct planner *p, uint32_t dim, enum axis_role role, int64_t unit,
			 int64_t count, int64_t block)
{
	struct axis *axis = &p->plan->axes[p->plan->n_axes++];

	*axis = (struct axis){ dim, role, p->group->axes >> dim & 1, unit, count, block };
	return axis;
}

/* A chunk of n near want, if possible one that divides it. */
static int64_t chunk(int64_t n, int64_t want)
{
	for (int64_t c = nci_min(n, want); c * 2 > want; c--)
		if (n % c == 0)
			return c;
	for (int64_t c = want + 1; c <= nci_min(n, want * 2); c++)
		if (n % c == 0)
			return c;
	return nci_min(n, want);
}

/*
 * Free axes, from the innermost dim outwards; the axes are pushed innermost
 * first. Returns the length of the remainder of a split dim (*split), or 0.
 */
static int64_t plan_free(struct planner *p, const int64_t *size, uint32_t *split, uint32_t *next)
{
	const struct group *group = p->group;

	for (uint32_t d = group->nd; d-- > 0;) {
		bool whole = group->row && (group->axes >> d & 1);
		int64_t n = size[d], want = p->target / p->free, c;

		*next = d;
		if (d < p->last_free) {
			*next = d + 1;
			return 0;
		}
		if (p->n_free == ISA_TILE_DIMS || (!whole && want < 2)) {
			*next = d + 1;
			return 0;
		}
		if (whole || p->free * n <= 2 * p->target) {
			push(p, d, AXIS_FREE, 1, n, n);
			p->free *= n;
			p->n_free++;
			continue;
		}
		c = chunk(n, want);
		push(p, d, AXIS_FREE, 1, c, c);
		p->free *= c;
		p->n_free++;
		if (n / c > 1)
			push(p, d, AXIS_LOOP, c, n / c, 1);
		*split = d;
		return n % c;
	}
	*next = 0;
	return 0;
}

/* Are partitions to run over reduced dims? */
static bool choose_parts(const struct plan *plan)
{
	int64_t kept = 1, reduced = 1;

	for (uint32_t i = 0; i < plan->n_axes; i++)
		if (plan->axes[i].role == AXIS_LOOP) {
			if (plan->axes[i].reduced)
				reduced *= plan->axes[i].count;
			else
				kept *= plan->axes[i].count;
		}
	return kept < 32 && reduced > kept;
}

/* Makes partitions of the loop axes next to the free ones. Axes are innermost first. */
static void plan_parts(struct planner *p, bool reduced)
{
	uint32_t parts = 1;
	int64_t n_part_axes = 0;

	for (uint32_t i = 0; i < p->plan->n_axes; i++) {
		struct axis *axis = &p->plan->axes[i];
		int64_t block = ISA_PARTITIONS / parts;

		if (axis->role != AXIS_LOOP || axis->reduced != reduced)
			continue;
		if (block < 2 || n_part_axes == (p->one_part_axis ? 1 : 3))
			break;
		if (axis->count > block)
			block = nci_ceil_div(axis->count, nci_ceil_div(axis->count, block));
		else
			block = axis->count;
		axis->role = AXIS_PART;
		axis->block = block;
		n_part_axes++;
		parts *= (uint32_t)block;
		if (axis->count > block)
			break;
	}
	p->plan->nparts = parts;
}

static void reverse_axes(struct plan *plan)
{
	for (uint32_t i = 0; i < plan->n_axes / 2; i++) {
		struct axis t = plan->axes[i];

		plan->axes[i] = plan->axes[plan->n_axes - 1 - i];
		plan->axes[plan->n_axes - 1 - i] = t;
	}
}

/* How many operands from memory do not vary along a dim: such loops should be inner. */
static uint32_t constant_along(const struct legal *legal, const struct group *group, uint32_t dim)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < group->n_members; i++)
		for (uint32_t j = 0; j < legal->nodes[group->members[i].node].n_src; j++) {
			const struct vref *ref = &group->members[i].src[j];

			if (legal->nodes[ref->node].kind == N_INPUT ||
			    legal->nodes[ref->node].scratch != LIR_NONE)
				n += !ref->stride[dim];
		}
	return n;
}

/* Loops: kept axes outside, reduced ones inside; then those that reuse operands inside. The dim of a
 * recurrence is the innermost of the kept ones. */
static void order_loops(const struct legal *legal, const struct group *group, struct plan *plan)
{
	uint32_t weight[AXES_MAX];

	for (uint32_t i = 0; i < plan->n_axes; i++) {
		uint32_t j = i;

		plan->order[i] = i;
		weight[i] = constant_along(legal, group, plan->axes[i].dim) +
			    (plan->axes[i].reduced		   ? 1u << 30 :
			     group->along >> plan->axes[i].dim & 1 ? 1u << 29 :
								     0);
		for (; j > 0 && weight[plan->order[j - 1]] > weight[i]; j--)
			plan->order[j] = plan->order[j - 1];
		plan->order[j] = i;
	}
}

/* One plan for the space of the given size; returns the remainder as plan_free() does. */
static int64_t plan_region(struct planner *p, const int64_t *size, uint32_t *split)
{
	uint32_t next = 0;
	int64_t rest;

	p->n_free = 0;
	p->free = 1;
	p->plan->n_axes = 0;
	rest = plan_free(p, size, split, &next);
	for (uint32_t d = next; d-- > 0;)
		push(p, d, AXIS_LOOP, 1, size[d], 1);
	return rest;
}

static void finish_region(const struct legal *legal, struct planner *p, bool parts_reduced)
{
	plan_parts(p, parts_reduced);
	reverse_axes(p->plan);
	order_loops(legal, p->group, p->plan);
}

/* --- transposition ------------------------------------------------------------------------ */

/* Shorter dims are not worth the tensor engine. */
#define TRANSPOSE_MIN 32

/* The dim along which ref is contiguous while the innermost is not; LIR_NONE: no such thing. */
static uint32_t crosswise(const struct group *group, const struct vref *ref)
{
	uint32_t last = group->nd - 1;

	if (ref->stride[last] < 2 || group->dims[last] < TRANSPOSE_MIN)
		return LIR_NONE;
	for (uint32_t d = 0; d < last; d++)
		if (ref->stride[d] == 1 && group->dims[d] >= TRANSPOSE_MIN)
			return d;
	return LIR_NONE;
}

static uint32_t transposed_dim(const struct legal *legal, const struct group *group)
{
	uint32_t dim = LIR_NONE;

	if (group->axes || group->nd < 2)
		return LIR_NONE;
	for (uint32_t i = 0; i < group->n_members && dim == LIR_NONE; i++)
		for (uint32_t j = 0; j < legal->nodes[group->members[i].node].n_src; j++) {
			const struct vref *ref = &group->members[i].src[j];
			const struct lnode *src = &legal->nodes[ref->node];
			uint32_t bytes = nci_dtype_bytes(src->dtype);

			if ((src->kind == N_INPUT || src->scratch != LIR_NONE) &&
			    (bytes == 2 || bytes == 4) && dim == LIR_NONE)
				dim = crosswise(group, ref);
		}
	return dim;
}

/*
 * An operand lies crosswise: partitions run along the dim in which it is contiguous, so that
 * it can be loaded by rows and transposed on chip; see eval.c.
 */
static void plan_transposed(const struct legal *legal, const struct group *group, uint32_t dim,
			    struct plan *plan)
{
	int64_t widest, room = TILE_LIVE_BYTES / live_bytes(legal, group, &widest);

	for (uint32_t d = 0; d < group->nd; d++) {
		struct axis *axis = &plan->axes[plan->n_axes++];
		int64_t n = group->dims[d], block = 1;

		*axis = (struct axis){ .dim = d, .role = AXIS_LOOP, .unit = 1, .count = n };
		if (d == dim) {
			axis->role = AXIS_PART;
			block = nci_ceil_div(n, nci_ceil_div(n, ISA_PARTITIONS));
			plan->nparts = (uint32_t)block;
		} else if (d == group->nd - 1) {
			axis->role = AXIS_FREE;
			block = nci_min(nci_min(n, ISA_MATMUL_N_MAX), nci_max(room, TRANSPOSE_MIN));
		}
		axis->block = block;
	}
	order_loops(legal, group, plan);
}

/*
 * With a recurrence: along its dim tiles follow one another in a partition, nothing else lies in them, and the dims
 * that stay are spread over partitions.
 */
static void plan_recurrence(const struct legal *legal, struct planner *p)
{
	const struct group *group = p->group;

	for (uint32_t d = group->nd; d-- > 0;) {
		int64_t n = group->dims[d];

		if (group->along >> d & 1)
			push(p, d, AXIS_FREE, 1, n, nci_min(n, chunk(n, p->target)));
		else
			push(p, d, AXIS_LOOP, 1, n, 1);
	}
	finish_region(legal, p, false);
}

static int64_t target_elems(const struct legal *legal, const struct group *group)
{
	int64_t widest, live = live_bytes(legal, group, &widest);
	int64_t n = nci_elems(group->nd, group->dims);
	int64_t target = nci_min(TILE_BYTES / widest, TILE_LIVE_BYTES / live);

	/* Small tensors: rather more partitions than longer rows. */
	target = nci_min(target, nci_max(TILE_FEW, nci_ceil_div(n, ISA_PARTITIONS)));
	return nci_max(target, 1);
}

void nci_plan(const struct legal *legal, const struct group *group, struct plans *plans)
{
	struct planner p = { .group = group, .target = target_elems(legal, group) };
	int64_t size[NC_DIMS_MAX], rest;
	uint32_t split = 0;

	memset(plans, 0, sizeof(*plans));
	split = group->along ? LIR_NONE : transposed_dim(legal, group);
	if (split != LIR_NONE) {
		plans->n = 1;
		plan_transposed(legal, group, split, &plans->plan[0]);
		return;
	}
	for (uint32_t i = 0; i < group->n_members; i++)
		p.one_part_axis |= legal->nodes[group->members[i].node].kind == N_IOTA;
	p.plan = &plans->plan[0];
	if (group->along) {
		plans->n = 1;
		plan_recurrence(legal, &p);
		return;
	}
	memcpy(size, group->dims, sizeof(size));
	rest = plan_region(&p, size, &split);
	plans->parts_reduced = group->axes && !group->row && choose_parts(p.plan);
	finish_region(legal, &p, plans->parts_reduced);
	plans->n = 1;
	if (!rest)
		return;
	plans->n = 2;
	plans->split_reduced = group->axes >> split & 1;
	p.plan = &plans->plan[1];
	p.plan->base[split] = size[split] - rest;
	size[split] = rest;
	p.last_free = split;
	plan_region(&p, size, &split);
	finish_region(legal, &p, plans->parts_reduced);
	if (plans->split_reduced && plans->plan[1].nparts > plans->plan[0].nparts) {
		struct plan t = plans->plan[0];

		plans->plan[0] = plans->plan[1];
		plans->plan[1] = t;
	}
}
