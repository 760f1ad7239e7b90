/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuse: nodes into groups. A group is one loop over tiles of an iteration space;
 * every member reads what other members make at the same place of that space,
 * and everything else from memory. Groups run in order, and a node only joins
 * the last of the groups that make its operands, so the order stays right.
 */
#include <string.h>

#include "passes.h"

/* What is live of a tile of whole rows at once, bytes a partition: two tiles are under way. */
#define ROW_BYTES_MAX (80 << 10)
/* With fewer rows than this, long rows are better cut and reduced across partitions. */
#define ROW_FEW	      32
#define ROW_FEW_ELEMS 2048

/* Bytes at one place of all values of a group: beyond, tiles get too short. Independent work
 * joins only small groups. */
#define GROUP_BYTES_MAX	  640
#define GROUP_BYTES_SMALL 192

struct fuse {
	struct nc_ctx *ctx;
	struct legal *legal;
	uint32_t at; /* node at hand */
	/* Of each node but clones: */
	uint32_t *last_user; /* the last node that reads it */
	bool *escapes; /* an output, or read in another group */
};

static bool in_group(const struct legal *legal, uint32_t node, uint32_t group)
{
	return !lnode_is_source(&legal->nodes[node]) && legal->nodes[node].group == group;
}

static struct member *find_member(struct group *group, uint32_t node)
{
	for (uint32_t i = group->n_members; i-- > 0;)
		if (group->members[i].node == node)
			return &group->members[i];
	return NULL;
}

static uint32_t new_group(struct fuse *f, uint32_t nd, const int64_t *dims)
{
	struct legal *legal = f->legal;
	struct group *group;

	legal->groups = nci_grow(f->ctx, legal->groups, &legal->cap_groups, legal->n_groups + 1,
				 sizeof(*group));
	group = &legal->groups[legal->n_groups];
	memset(group, 0, sizeof(*group));
	group->kind = N_COPY;
	group->nd = nd;
	memcpy(group->dims, dims, NC_DIMS_MAX * sizeof(*dims));
	return legal->n_groups++;
}

/*
 * How the node's dims lie in the group's: map[i] is the node's dim at group dim
 * i, or -1 where the node does not vary. Tried in turn: dim by dim (1 for what
 * does not vary), and without the reduced dims.
 */
static bool map_dims(const struct group *group, const struct lnode *node, bool squeezed, int *map)
{
	uint32_t j = 0;

	if (!squeezed && node->nd != group->nd)
		return false;
	for (uint32_t i = 0; i < group->nd; i++) {
		map[i] = -1;
		if (squeezed && (group->axes >> i & 1))
			continue;
		if (j >= node->nd || (node->dims[j] != group->dims[i] && node->dims[j] != 1))
			return false;
		if (node->dims[j] != 1)
			map[i] = (int)j;
		j++;
	}
	return j == node->nd;
}

static void map_ref(const struct group *group, const int *map, const int64_t *from, int64_t *to)
{
	memset(to, 0, NC_DIMS_MAX * sizeof(*to));
	for (uint32_t i = 0; i < group->nd; i++)
		if (map[i] >= 0)
			to[i] = from[map[i]];
}

/* Does the node, so mapped, vary over reduced dims? */
static bool varies(const struct group *group, const int *map)
{
	for (uint32_t i = 0; i < group->nd; i++)
		if (map[i] >= 0 && (group->axes >> i & 1))
			return true;
	return false;
}

static int64_t axes_elems(const struct group *group)
{
	int64_t n = 1;

	for (uint32_t i = 0; i < group->nd; i++)
		if (group->axes >> i & 1)
			n *= group->dims[i];
	return n;
}

static int64_t place_bytes(const struct lnode *node)
{
	return nci_dtype_bytes(node->dtype) + 4 * (int64_t)node->n_src;
}

/* Fills in the member for the mapping; false if it reads a member at another place. */
static bool place(struct fuse *f, uint32_t g, uint32_t index, const int *map, struct member *m)
{
	struct legal *legal = f->legal;
	struct group *group = &legal->groups[g];
	const struct lnode *node = &legal->nodes[index];

	memset(m, 0, sizeof(*m));
	m->node = index;
	map_ref(group, map, node->own, m->own);
	if (node->kind == N_IOTA)
		map_ref(group, map, node->src[0].stride, m->src[0].stride);
	for (uint32_t i = 0; i < node->n_src; i++) {
		const struct vref *ref = &node->src[i];
		const struct member *src;

		m->src[i].node = ref->node;
		map_ref(group, map, ref->stride, m->src[i].stride);
		if (!in_group(legal, ref->node, g))
			continue;
		src = find_member(group, ref->node);
		if (memcmp(src->own, m->src[i].stride, group->nd * sizeof(src->own[0])))
			return false;
		m->late |= src->late || legal->nodes[ref->node].kind == N_REDUCE;
	}
	return true;
}

/* --- whole rows ----------------------------------------------------------------------------- */

/* Has it more than one element along the reduced dims? */
static bool spans_row(const struct group *group, const int64_t *stride)
{
	for (uint32_t i = 0; i < group->nd; i++)
		if ((group->axes >> i & 1) && group->dims[i] > 1 && stride[i])
			return true;
	return false;
}

static const struct member *member_at(const struct group *group, const struct member *last,
				      uint32_t i)
{
	return i < group->n_members ? &group->members[i] : last;
}

/* Does any member from number first to end - 1 read the node? */
static bool is_read(const struct fuse *f, const struct group *group, const struct member *last,
		    uint32_t node, uint32_t first, uint32_t end)
{
	for (uint32_t i = first; i < end; i++) {
		const struct member *m = member_at(group, last, i);

		for (uint32_t j = 0; j < f->legal->nodes[m->node].n_src; j++)
			if (m->src[j].node == node)
				return true;
	}
	return false;
}

/* Bytes at one place of what was made or loaded before member number i and is needed from there on. */
static int64_t kept_bytes(const struct fuse *f, const struct group *group,
			  const struct member *last, uint32_t i)
{
	const struct lnode *nodes = f->legal->nodes;
	uint32_t g = (uint32_t)(group - f->legal->groups), n = group->n_members + 1;
	int64_t bytes = 0;

	for (uint32_t k = 0; k <= i; k++) {
		const struct member *m = member_at(group, last, k);

		if (k < i && spans_row(group, m->own) &&
		    (f->escapes[m->node] || f->last_user[m->node] > f->at ||
		     is_read(f, group, last, m->node, i, n)))
			bytes += nci_dtype_bytes(nodes[m->node].dtype);
		for (uint32_t j = 0; j < nodes[m->node].n_src; j++) {
			uint32_t src = m->src[j].node;

			if (!in_group(f->legal, src, g) && spans_row(group, m->src[j].stride) &&
			    !is_read(f, group, last, src, 0, k) &&
			    is_read(f, group, last, src, i, n))
				bytes += nci_dtype_bytes(nodes[src].dtype);
		}
	}
	return bytes;
}

/* May one tile hold whole rows of the members and of m, which comes last: reduced dims last, and few
 * enough bytes live at once. */
static bool row_fits(const struct fuse *f, const struct group *group, const struct member *m)
{
	int64_t n = axes_elems(group), kept = nci_elems(group->nd, group->dims) / n;
	bool seen = false;
	uint32_t n_axes = 0;

	for (uint32_t i = 0; i < group->nd; i++) {
		if (group->axes >> i & 1) {
			seen = true;
			n_axes += group->dims[i] > 1;
		} else if (seen && group->dims[i] > 1) {
			return false;
		}
	}
	if (n_axes > ISA_TILE_DIMS || (kept < ROW_FEW && n > ROW_FEW_ELEMS))
		return false;
	for (uint32_t i = 0; i <= group->n_members; i++)
		if (n * (place_bytes(&f->legal->nodes[member_at(group, m, i)->node]) +
			 kept_bytes(f, group, m, i)) >
		    ROW_BYTES_MAX)
			return false;
	return true;
}

static void append(struct fuse *f, uint32_t g, const struct member *m)
{
	struct group *group = &f->legal->groups[g];

	group->members = nci_grow(f->ctx, group->members, &group->cap_members, group->n_members + 1,
				  sizeof(*m));
	group->members[group->n_members++] = *m;
	group->bytes += place_bytes(&f->legal->nodes[m->node]);
	f->legal->nodes[m->node].group = g;
}

/* Reduced dims of a loop with a recurrence: each of their places keeps a number from tile to tile. */
#define CARRIES_MAX 1024

/* May the node join a loop with recurrences, or bring the first one? Tiles then go along their dim one after the
 * other, within each place of the dims that stay and over all of those that are reduced. */
static bool suits_recurrence(const struct group *group, const struct lnode *node,
			     const struct member *m, bool squeezed)
{
	int64_t carries = 1;

	if (node->kind == N_RECURRENCE)
		return group->kind == N_COPY && !group->axes && !m->late && !squeezed &&
		       (!group->along || group->along == node->axes) &&
		       !memcmp(node->dims, group->dims, node->nd * sizeof(node->dims[0]));
	if (!group->along || node->kind != N_REDUCE)
		return true;
	for (uint32_t i = 0; i < node->nd; i++)
		carries *= node->axes >> i & 1 ? node->dims[i] : 1;
	return !(node->axes & group->along) && carries <= CARRIES_MAX;
}

static bool join_mapped(struct fuse *f, uint32_t g, uint32_t index, bool squeezed)
{
	struct group *group = &f->legal->groups[g];
	const struct lnode *node = &f->legal->nodes[index];
	int map[NC_DIMS_MAX];
	struct member m;
	bool row;

	if (!map_dims(group, node, squeezed, map) || !place(f, g, index, map, &m))
		return false;
	if (group->kind != N_COPY || node->kind == N_REDUCE) {
		/* Beside a product only what is as large; a reduction only over the whole space. */
		if (squeezed || memcmp(node->dims, group->dims, node->nd * sizeof(node->dims[0])))
			return false;
		if (node->kind == N_REDUCE &&
		    (group->kind != N_COPY || (group->axes && group->axes != node->axes)))
			return false;
	}
	row = group->row || (m.late && (varies(group, map) || node->kind == N_REDUCE));
	if (row && (group->along || !row_fits(f, group, &m)))
		return false;
	if (!suits_recurrence(group, node, &m, squeezed))
		return false;
	if (node->kind == N_REDUCE)
		group->axes = node->axes;
	if (node->kind == N_RECURRENCE)
		group->along = node->axes;
	group->row = row;
	append(f, g, &m);
	return true;
}

/* Copies of what is cheap to compute anew, so that the group needs nothing from another. */
static uint32_t clone(struct fuse *f, uint32_t g, uint32_t index)
{
	struct legal *legal = f->legal;
	struct lnode copy = legal->nodes[index];
	uint32_t origin = copy.origin;
	struct member m = { 0 };

	for (uint32_t i = 0; i < legal->groups[g].n_members; i++) {
		const struct lnode *n = &legal->nodes[legal->groups[g].members[i].node];

		if (n->floating && n->origin == origin && n->kind == copy.kind)
			return legal->groups[g].members[i].node;
	}
	for (uint32_t i = 0; i < copy.n_src; i++) {
		if (!lnode_is_source(&legal->nodes[copy.src[i].node]))
			copy.src[i].node = clone(f, g, copy.src[i].node);
		memset(copy.src[i].stride, 0, sizeof(copy.src[i].stride));
		m.src[i] = copy.src[i];
	}
	legal->nodes =
		nci_grow(f->ctx, legal->nodes, &legal->cap_nodes, legal->n_nodes + 1, sizeof(copy));
	legal->nodes[legal->n_nodes] = copy;
	m.node = legal->n_nodes++;
	append(f, g, &m);
	return m.node;
}

static void clone_sources(struct fuse *f, uint32_t g, uint32_t index)
{
	for (uint32_t i = 0; i < f->legal->nodes[index].n_src; i++) {
		uint32_t src = f->legal->nodes[index].src[i].node;

		if (f->legal->nodes[src].floating && !in_group(f->legal, src, g)) {
			src = clone(f, g, src);
			f->legal->nodes[index].src[i].node = src;
		}
	}
}

/* The last group that makes an operand, LIR_NONE if all come from memory. */
static uint32_t producer_group(const struct legal *legal, const struct lnode *node)
{
	uint32_t g = LIR_NONE;

	for (uint32_t i = 0; i < node->n_src; i++) {
		const struct lnode *src = &legal->nodes[node->src[i].node];

		if (lnode_is_source(src) || (src->floating && !node->floating))
			continue;
		if (g == LIR_NONE || src->group > g)
			g = src->group;
	}
	return g;
}

static bool same_space(const struct group *group, const struct lnode *node)
{
	return group->kind == N_COPY && group->nd == node->nd &&
	       !memcmp(group->dims, node->dims, node->nd * sizeof(node->dims[0]));
}

static bool join(struct fuse *f, uint32_t g, uint32_t index)
{
	uint32_t keep = f->legal->groups[g].n_members;
	int64_t bytes = f->legal->groups[g].bytes;
	struct vref src[NCI_SRCS];

	if (bytes > GROUP_BYTES_MAX || group_is_alone(&f->legal->groups[g]))
		return false;

	memcpy(src, f->legal->nodes[index].src, sizeof(src));
	clone_sources(f, g, index);
	if (join_mapped(f, g, index, false) ||
	    (f->legal->groups[g].axes && join_mapped(f, g, index, true)))
		return true;
	f->legal->groups[g].n_members = keep;
	f->legal->groups[g].bytes = bytes;
	memcpy(f->legal->nodes[index].src, src, sizeof(src));
	return false;
}

/* Does the member read the group's values, but at another place than they are made at? */
static bool reads_elsewhere(struct fuse *f, const struct member *m, uint32_t nd, uint32_t g)
{
	for (uint32_t j = 0; j < f->legal->nodes[m->node].n_src; j++) {
		const struct vref *ref = &m->src[j];

		if (in_group(f->legal, ref->node, g) &&
		    memcmp(find_member(&f->legal->groups[g], ref->node)->own, ref->stride,
			   nd * sizeof(ref->stride[0])))
			return true;
	}
	return false;
}

static bool reads_group(const struct fuse *f, const struct group *group, uint32_t g)
{
	for (uint32_t i = 0; i < group->n_members; i++)
		for (uint32_t j = 0; j < f->legal->nodes[group->members[i].node].n_src; j++)
			if (in_group(f->legal, group->members[i].src[j].node, g))
				return true;
	return false;
}

/* A loop over elements may be done as part of a later one over the same space, if nothing between the two needs it. */
static bool may_merge(struct fuse *f, uint32_t from, uint32_t to)
{
	const struct group *a = &f->legal->groups[from], *b = &f->legal->groups[to];

	if (a->kind != N_COPY || b->kind != N_COPY || a->axes || a->along || b->row ||
	    a->nd != b->nd || memcmp(a->dims, b->dims, a->nd * sizeof(a->dims[0])) ||
	    a->bytes + b->bytes > GROUP_BYTES_MAX)
		return false;
	for (uint32_t g = from + 1; g < to; g++)
		if (reads_group(f, &f->legal->groups[g], from))
			return false;
	for (uint32_t i = 0; i < b->n_members; i++)
		if (reads_elsewhere(f, &b->members[i], b->nd, from))
			return false;
	return true;
}

static void merge(struct fuse *f, uint32_t from, uint32_t to)
{
	struct group *a = &f->legal->groups[from], *b = &f->legal->groups[to];
	uint32_t n = a->n_members + b->n_members;

	a->members = nci_grow(f->ctx, a->members, &a->cap_members, n, sizeof(*a->members));
	memcpy(a->members + a->n_members, b->members, b->n_members * sizeof(*b->members));
	for (uint32_t i = 0; i < a->n_members; i++)
		f->legal->nodes[a->members[i].node].group = to;
	b->members = a->members;
	b->cap_members = a->cap_members;
	b->n_members = n;
	b->bytes += a->bytes;
	a->members = NULL;
	a->n_members = a->cap_members = 0;
	a->bytes = 0;
}

/* What makes the node's operands, in one group if that can be: else all but one go through memory. */
static void gather_producers(struct fuse *f, const struct lnode *node, uint32_t g)
{
	for (uint32_t i = 0; i < node->n_src; i++) {
		const struct lnode *src = &f->legal->nodes[node->src[i].node];

		if (!lnode_is_source(src) && !src->floating && src->group < g &&
		    may_merge(f, src->group, g))
			merge(f, src->group, g);
	}
}

/* Made by the kernel that makes its operand. */
static bool is_second_result(const struct lnode *node)
{
	return node->kind == N_ATTENTION_LSE || node->kind == N_ATTENTION_GRAD_K ||
	       node->kind == N_ATTENTION_GRAD_V;
}

/* Its own dims stay: the kernel knows how they follow from the group's. */
static void join_attention(struct fuse *f, uint32_t index)
{
	const struct lnode *node = &f->legal->nodes[index];
	struct member m = { .node = index };

	memcpy(m.own, node->own, sizeof(m.own));
	m.src[0].node = node->src[0].node;
	append(f, f->legal->nodes[node->src[0].node].group, &m);
}

static void fuse_node(struct fuse *f, uint32_t index)
{
	struct legal *legal = f->legal;
	const struct lnode *node = &legal->nodes[index];
	bool loop = lnode_is_elementwise(node) || node->kind == N_REDUCE;
	uint32_t g = producer_group(legal, node);

	if (is_second_result(node)) {
		join_attention(f, index);
		return;
	}
	if (loop) {
		/* Without computed operands: beside the last loop over the same space. */
		if (g == LIR_NONE && legal->n_groups && !node->floating &&
		    legal->groups[legal->n_groups - 1].bytes < GROUP_BYTES_SMALL &&
		    same_space(&legal->groups[legal->n_groups - 1], node))
			g = legal->n_groups - 1;
		if (g != LIR_NONE)
			gather_producers(f, node, g);
		if (g != LIR_NONE && join(f, g, index))
			return;
	}
	node = &legal->nodes[index]; /* clones may have moved it */
	g = new_group(f, node->nd, node->dims);
	if (!loop)
		legal->groups[g].kind = node->kind;
	if (loop) {
		join(f, g, index);
		return;
	}
	struct member m = { .node = index };

	memcpy(m.own, node->own, sizeof(m.own));
	memcpy(m.src, node->src, sizeof(m.src));
	append(f, g, &m);
}

static void find_users(struct fuse *f)
{
	struct legal *legal = f->legal;

	f->last_user = nci_alloc(f->ctx, legal->n_nodes * sizeof(*f->last_user));
	f->escapes = nci_alloc(f->ctx, legal->n_nodes * sizeof(*f->escapes));
	for (uint32_t i = 1; i < legal->n_nodes; i++)
		for (uint32_t j = 0; j < legal->nodes[i].n_src; j++)
			f->last_user[legal->nodes[i].src[j].node] = i;
	for (uint32_t i = 0; i < legal->n_outs; i++)
		f->escapes[legal->outs[i].node] = true;
}

/* Operands that the node reads from another group. */
static void note_escapes(struct fuse *f, uint32_t index)
{
	const struct lnode *node = &f->legal->nodes[index];

	for (uint32_t j = 0; j < node->n_src; j++) {
		uint32_t src = node->src[j].node;

		if (!lnode_is_source(&f->legal->nodes[src]) &&
		    f->legal->nodes[src].group != node->group)
			f->escapes[src] = true;
	}
}

/* --- after grouping --------------------------------------------------------------------- */

static void add_store(struct fuse *f, uint32_t node, uint32_t slot, const int64_t *own_to)
{
	struct group *group = &f->legal->groups[f->legal->nodes[node].group];
	struct store *st;

	group->stores = nci_grow(f->ctx, group->stores, &group->cap_stores, group->n_stores + 1,
				 sizeof(*st));
	st = &group->stores[group->n_stores++];
	st->node = node;
	st->slot = slot;
	memcpy(st->stride, own_to, sizeof(st->stride));
}

/* Strides over the node's dims, given over the group's by the member's own strides. */
static void to_group(const struct legal *legal, const struct group *group, const struct member *m,
		     const int64_t *stride, int64_t *out)
{
	const struct lnode *node = &legal->nodes[m->node];

	memset(out, 0, NC_DIMS_MAX * sizeof(*out));
	for (uint32_t i = 0; i < group->nd; i++)
		for (uint32_t j = 0; m->own[i] && j < node->nd; j++)
			if (node->own[j] == m->own[i])
				out[i] = stride[j];
}

static void need_scratch(struct fuse *f, struct lir *lir, uint32_t index)
{
	struct lnode *node = &f->legal->nodes[index];
	struct group *group = &f->legal->groups[node->group];

	if (node->scratch != LIR_NONE)
		return;
	node->scratch = lir_scratch(lir, node->dtype, node->elems);
	add_store(f, index, node->scratch, find_member(group, index)->own);
}

/* A group with nothing stored and nobody reading it is a clone's original. */
static void find_used(struct fuse *f, bool *used)
{
	struct legal *legal = f->legal;

	for (uint32_t i = 0; i < legal->n_outs; i++)
		used[legal->outs[i].node] = true;
	for (uint32_t g = legal->n_groups; g-- > 0;) {
		struct group *group = &legal->groups[g];
		uint32_t n = 0;

		for (uint32_t i = group->n_members; i-- > 0;) {
			const struct lnode *node = &legal->nodes[group->members[i].node];

			for (uint32_t j = 0; used[group->members[i].node] && j < node->n_src; j++)
				used[node->src[j].node] = true;
		}
		for (uint32_t i = 0; i < group->n_members; i++)
			if (used[group->members[i].node])
				group->members[n++] = group->members[i];
		group->n_members = n;
	}
}

static void cross_group(struct fuse *f, struct lir *lir)
{
	struct legal *legal = f->legal;

	for (uint32_t g = 0; g < legal->n_groups; g++)
		for (uint32_t i = 0; i < legal->groups[g].n_members; i++) {
			const struct lnode *node = &legal->nodes[legal->groups[g].members[i].node];

			for (uint32_t j = 0; j < node->n_src; j++)
				if (!lnode_is_source(&legal->nodes[node->src[j].node]) &&
				    !in_group(legal, node->src[j].node, g))
					need_scratch(f, lir, node->src[j].node);
		}
}

/*
 * May the output be written over the input in its own group? Every reader of
 * the input is earlier, or is an element's own loop and reads it at the place
 * that it writes.
 */
static bool alias_safe(const struct legal *legal, const struct lout *out, const int64_t *stride)
{
	uint32_t home = legal->nodes[out->node].group;

	for (uint32_t g = home; g < legal->n_groups; g++)
		for (uint32_t i = 0; i < legal->groups[g].n_members; i++) {
			const struct member *m = &legal->groups[g].members[i];
			const struct lnode *node = &legal->nodes[m->node];

			for (uint32_t j = 0; j < node->n_src; j++) {
				const struct lnode *src = &legal->nodes[m->src[j].node];

				if (src->kind != N_INPUT || src->slot != out->alias)
					continue;
				if (g > home ||
				    !(lnode_is_elementwise(node) || node->kind == N_REDUCE ||
				      (node->kind == N_PUT && j == 0)) ||
				    memcmp(m->src[j].stride, stride,
					   legal->groups[g].nd * sizeof(*stride)))
					return false;
			}
		}
	return true;
}

static void place_outputs(struct fuse *f, struct lir *lir)
{
	struct legal *legal = f->legal;

	for (uint32_t i = 0; i < legal->n_outs; i++) {
		struct lout *out = &legal->outs[i];
		struct group *group = &legal->groups[legal->nodes[out->node].group];
		int64_t stride[NC_DIMS_MAX];

		to_group(legal, group, find_member(group, out->node), out->stride, stride);
		if (out->alias != NC_NO_ALIAS && !alias_safe(legal, out, stride)) {
			out->copied = true;
			need_scratch(f, lir, out->node);
			continue;
		}
		add_store(f, out->node, out->slot, stride);
	}
}

void nci_fuse(struct legal *legal, struct lir *lir)
{
	struct fuse f = { .ctx = legal->ctx, .legal = legal };
	uint32_t n = legal->n_nodes; /* clones come after */
	bool *used;

	find_users(&f);
	for (f.at = 1; f.at < n; f.at++)
		if (!lnode_is_source(&legal->nodes[f.at])) {
			fuse_node(&f, f.at);
			note_escapes(&f, f.at);
		}
	used = nci_alloc(legal->ctx, legal->n_nodes * sizeof(*used));
	find_used(&f, used);
	cross_group(&f, lir);
	place_outputs(&f, lir);
}
