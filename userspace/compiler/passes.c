/* SPDX-License-Identifier: Apache-2.0 */
/* Legalise: graph in, legal graph out. */
#include <string.h>

#include "passes.h"

/* A graph value as strides over a legal node's result. */
struct view {
	uint32_t node; /* 0: not made yet */
	int64_t stride[NC_DIMS_MAX];
};

struct state {
	struct nc_ctx *ctx;
	const struct nc_graph *graph;
	struct legal *legal;
	struct view *views;
	bool *live;
};

static struct lnode *add(struct state *st, enum node_kind kind, uint32_t origin, nc_dtype dtype,
			 uint32_t nd, const int64_t *dims)
{
	struct legal *legal = st->legal;
	struct lnode *node;

	legal->nodes = nci_grow(st->ctx, legal->nodes, &legal->cap_nodes, legal->n_nodes + 1,
				sizeof(*node));
	node = &legal->nodes[legal->n_nodes++];
	memset(node, 0, sizeof(*node));
	node->kind = kind;
	node->origin = origin;
	node->dtype = dtype;
	node->nd = nd;
	if (nd)
		memcpy(node->dims, dims, nd * sizeof(*dims));
	nci_row_major(nd, dims, node->own);
	for (uint32_t i = 0; i < nd; i++)
		if (dims[i] == 1)
			node->own[i] = 0;
	node->elems = nci_elems(nd, dims);
	node->scratch = LIR_NONE;
	return node;
}

static void mark_live(struct state *st)
{
	const struct nc_graph *graph = st->graph;

	for (uint32_t i = 0; i < graph->n_outputs; i++)
		st->live[graph->outputs[i].value] = true;
	for (uint32_t i = graph->n_nodes; i-- > 1;)
		if (st->live[i])
			for (uint32_t j = 0; j < NCI_SRCS; j++)
				st->live[graph->nodes[i].src[j]] = true;
}

/* Strides of view, whose shape is type, over the dims that it broadcasts to. */
static struct vref spread(const struct view *view, const struct nc_type *type, uint32_t nd,
			  const int64_t *dims)
{
	struct vref ref = { .node = view->node };

	for (uint32_t i = 0; i < type->ndim; i++) {
		uint32_t j = nd - type->ndim + i;

		ref.stride[j] = type->dims[i] == 1 && dims[j] != 1 ? 0 : view->stride[i];
		if (dims[j] == 1)
			ref.stride[j] = 0;
	}
	return ref;
}

static void own_view(struct state *st, nc_value value)
{
	st->views[value].node = st->legal->n_nodes - 1;
	memcpy(st->views[value].stride, st->legal->nodes[st->legal->n_nodes - 1].own,
	       sizeof(st->views[value].stride));
}

static void set_src(struct state *st, struct lnode *node, uint32_t i, nc_value value)
{
	node->src[i] =
		spread(&st->views[value], &st->graph->nodes[value].type, node->nd, node->dims);
	node->n_src = i + 1;
}

/* A row-major copy of a view, for what strides can't say. */
static struct view copy_view(struct state *st, nc_value value)
{
	const struct nc_type *type = &st->graph->nodes[value].type;
	struct lnode *node = add(st, N_COPY, value, type->dtype, type->ndim, type->dims);
	struct view view = { .node = st->legal->n_nodes - 1 };

	set_src(st, node, 0, value);
	memcpy(view.stride, node->own, sizeof(view.stride));
	return view;
}

/*
 * Strides of a view after a reshape, false when there are none: runs of old
 * dims that walk on in one stride are cut anew.
 */
static bool reshape_strides(const struct nc_type *from, const int64_t *old,
			    const struct nc_type *to, int64_t *strides)
{
	uint32_t i = 0, j = 0;

	while (i < from->ndim || j < to->ndim) {
		uint32_t i0 = i, j0 = j;
		int64_t a = i < from->ndim ? from->dims[i++] : 1;
		int64_t b = j < to->ndim ? to->dims[j++] : 1;
		int64_t step = 0;

		while (a != b) {
			if (a < b)
				a *= from->dims[i++];
			else
				b *= to->dims[j++];
		}
		/* Old dims i0 .. i - 1 must be one run; its smallest step is the last one's. */
		int64_t expect = -1;

		for (uint32_t k = i; k-- > i0;) {
			if (from->dims[k] == 1)
				continue;
			if (expect >= 0 && old[k] != expect)
				return false;
			if (expect < 0)
				step = old[k];
			expect = old[k] * from->dims[k];
		}
		for (uint32_t k = j; k-- > j0;) {
			strides[k] = to->dims[k] == 1 ? 0 : step;
			step *= to->dims[k];
		}
	}
	return true;
}

static void reshape(struct state *st, nc_value value)
{
	const struct node *node = &st->graph->nodes[value];
	const struct nc_type *from = &st->graph->nodes[node->src[0]].type;
	struct view view = st->views[node->src[0]];

	if (!reshape_strides(from, view.stride, &node->type, st->views[value].stride)) {
		view = copy_view(st, node->src[0]);
		nci_row_major(node->type.ndim, node->type.dims, st->views[value].stride);
	}
	st->views[value].node = view.node;
}

static void permute(struct state *st, nc_value value)
{
	const struct node *node = &st->graph->nodes[value];

	st->views[value].node = st->views[node->src[0]].node;
	for (uint32_t i = 0; i < node->type.ndim; i++)
		st->views[value].stride[i] = st->views[node->src[0]].stride[node->order[i]];
}

static void broadcast(struct state *st, nc_value value)
{
	const struct node *node = &st->graph->nodes[value];
	struct vref ref = spread(&st->views[node->src[0]], &st->graph->nodes[node->src[0]].type,
				 node->type.ndim, node->type.dims);

	st->views[value].node = ref.node;
	memcpy(st->views[value].stride, ref.stride, sizeof(ref.stride));
}

static void source(struct state *st, nc_value value)
{
	const struct node *node = &st->graph->nodes[value];
	struct lnode *n =
		add(st, node->kind, value, node->type.dtype, node->type.ndim, node->type.dims);

	n->slot = node->slot;
	n->bits = node->bits;
	if (node->kind == N_INPUT)
		memcpy(n->own, node->strides, sizeof(n->own));
	own_view(st, value);
}

/* By how much the index grows along each dim. */
static void iota_strides(const struct node *node, int64_t *stride)
{
	int64_t step = 1;

	for (uint32_t i = node->type.ndim; i-- > 0;) {
		if (node->dim != i && node->dim != NC_ALL_DIMS)
			continue;
		if (node->type.dims[i] > 1)
			stride[i] = step;
		step *= node->type.dims[i];
	}
}

static void elementwise(struct state *st, nc_value value)
{
	const struct node *node = &st->graph->nodes[value];
	struct lnode *n =
		add(st, node->kind, value, node->type.dtype, node->type.ndim, node->type.dims);

	n->op = node->op;
	if (node->kind == N_IOTA)
		iota_strides(node, n->src[0].stride);
	for (uint32_t i = 0; i < NCI_SRCS && node->src[i]; i++)
		set_src(st, n, i, node->src[i]);
	n->floating = n->elems == 1;
	for (uint32_t i = 0; i < n->n_src; i++) {
		const struct lnode *src = &st->legal->nodes[n->src[i].node];

		n->floating &= src->floating || lnode_is_source(src);
	}
	own_view(st, value);
}

static void reduce(struct state *st, nc_value value)
{
	const struct node *node = &st->graph->nodes[value];
	const struct nc_type *in = &st->graph->nodes[node->src[0]].type;
	struct lnode *n;
	int64_t stride = 1, reduced = 1;

	for (uint32_t i = 0; i < in->ndim; i++)
		reduced *= node->axes >> i & 1 ? in->dims[i] : 1;
	n = add(st, reduced > 1 ? N_REDUCE : N_COPY, value, node->type.dtype, in->ndim, in->dims);
	n->op = node->op;
	n->axes = node->axes;
	set_src(st, n, 0, node->src[0]);
	n->elems = nci_elems(node->type.ndim, node->type.dims);
	for (uint32_t i = in->ndim; i-- > 0;) {
		n->own[i] = node->axes >> i & 1 || in->dims[i] == 1 ? 0 : stride;
		if (!(node->axes >> i & 1))
			stride *= in->dims[i];
	}
	st->views[value].node = st->legal->n_nodes - 1;
	nci_row_major(node->type.ndim, node->type.dims, st->views[value].stride);
}

static void scan(struct state *st, nc_value value)
{
	const struct node *node = &st->graph->nodes[value];
	uint32_t dim = (uint32_t)__builtin_ctz(node->axes);
	struct lnode *n = add(st, node->type.dims[dim] > 1 ? N_SCAN : N_COPY, value,
			      node->type.dtype, node->type.ndim, node->type.dims);

	n->op = node->op;
	n->axes = node->axes;
	set_src(st, n, 0, node->src[0]);
	own_view(st, value);
}

/* The first step is b's: r before it is 0. */
static void recurrence(struct state *st, nc_value value)
{
	const struct node *node = &st->graph->nodes[value];
	bool one = node->type.dims[__builtin_ctz(node->axes)] == 1;
	struct lnode *n = add(st, one ? N_COPY : N_RECURRENCE, value, node->type.dtype,
			      node->type.ndim, node->type.dims);

	n->axes = node->axes;
	for (uint32_t i = one; i < 2; i++)
		set_src(st, n, i - one, node->src[i]);
	own_view(st, value);
}

/* A view of what lies in memory: what does not, is put there. */
static struct view in_memory(struct state *st, nc_value value)
{
	enum node_kind kind = st->legal->nodes[st->views[value].node].kind;

	return kind == N_CONST || kind == N_SCALAR ? copy_view(st, value) : st->views[value];
}

static void take_or_put(struct state *st, nc_value value)
{
	const struct node *node = &st->graph->nodes[value];
	bool put = node->kind == N_PUT;
	struct view views[NCI_SRCS];
	struct lnode *n;

	for (uint32_t i = 0; i < (put ? 3u : 2u); i++)
		views[i] = in_memory(st, node->src[i]);
	n = add(st, node->kind, value, node->type.dtype, node->type.ndim, node->type.dims);
	n->op = node->op;
	n->axes = 1u << node->dim;
	n->n_src = put ? 3 : 2;
	n->k = put ? st->graph->nodes[node->src[1]].type.dims[0] :
		     st->graph->nodes[node->src[0]].type.dims[node->dim];
	for (uint32_t i = 0; i < n->n_src; i++) {
		n->src[i].node = views[i].node;
		if (i == 1)
			n->src[i].stride[node->dim] = views[i].stride[0];
		else
			memcpy(n->src[i].stride, views[i].stride, sizeof(views[i].stride));
	}
	own_view(st, value);
}

static void matmul(struct state *st, nc_value value)
{
	const struct node *node = &st->graph->nodes[value];
	const struct nc_type *a = &st->graph->nodes[node->src[0]].type;
	const struct nc_type *b = &st->graph->nodes[node->src[1]].type;
	uint32_t nd = node->type.ndim;
	struct lnode *n = add(st, N_MATMUL, value, node->type.dtype, nd, node->type.dims);
	int64_t dims[NC_DIMS_MAX];

	n->k = a->dims[a->ndim - 1];
	n->n_src = 2;
	memcpy(dims, n->dims, sizeof(dims));
	dims[nd - 1] = n->k;
	n->src[0] = spread(&st->views[node->src[0]], a, nd, dims);
	memcpy(dims, n->dims, sizeof(dims));
	dims[nd - 2] = n->k;
	n->src[1] = spread(&st->views[node->src[1]], b, nd, dims);
	own_view(st, value);
}

static void conv(struct state *st, nc_value value)
{
	const struct node *node = &st->graph->nodes[value];
	struct lnode *n = add(st, node->kind, value, node->type.dtype, 4, node->type.dims);

	n->n_src = 2;
	for (uint32_t i = 0; i < 2; i++) {
		n->src[i].node = st->views[node->src[i]].node;
		memcpy(n->src[i].stride, st->views[node->src[i]].stride, sizeof(n->src[i].stride));
	}
	own_view(st, value);
}

/* Strides of each operand over the batch's dims and its own last two. */
static void attention(struct state *st, nc_value value)
{
	const struct node *node = &st->graph->nodes[value];
	uint32_t nd = node->type.ndim;
	struct lnode *n = add(st, node->kind, value, node->type.dtype, nd, node->type.dims);
	const struct nc_type *q = &st->graph->nodes[node->src[0]].type;
	const struct nc_type *k = &st->graph->nodes[node->src[1]].type;
	uint32_t mask = node->kind == N_ATTENTION ? 3 : 6;

	for (uint32_t i = 0; i < NCI_SRCS && node->src[i]; i++) {
		const struct nc_type *type = &st->graph->nodes[node->src[i]].type;
		int64_t dims[NC_DIMS_MAX];

		memcpy(dims, n->dims, sizeof(dims));
		dims[nd - 2] = i == mask ? q->dims[q->ndim - 2] : type->dims[type->ndim - 2];
		dims[nd - 1] = i == mask ? k->dims[k->ndim - 2] : type->dims[type->ndim - 1];
		n->src[i] = spread(&st->views[node->src[i]], type, nd, dims);
		n->n_src = i + 1;
	}
	own_view(st, value);
}

static void attention_lse(struct state *st, nc_value value)
{
	const struct node *node = &st->graph->nodes[value];
	struct lnode *n =
		add(st, node->kind, value, node->type.dtype, node->type.ndim, node->type.dims);

	n->src[0].node = st->views[node->src[0]].node;
	n->n_src = 1;
	own_view(st, value);
}

static void legalise_node(struct state *st, nc_value value)
{
	switch (st->graph->nodes[value].kind) {
	case N_INPUT:
	case N_SCALAR:
	case N_CONST:
		source(st, value);
		break;
	case N_RESHAPE:
		reshape(st, value);
		break;
	case N_PERMUTE:
		permute(st, value);
		break;
	case N_BROADCAST:
		broadcast(st, value);
		break;
	case N_REDUCE:
		reduce(st, value);
		break;
	case N_SCAN:
		scan(st, value);
		break;
	case N_RECURRENCE:
		recurrence(st, value);
		break;
	case N_TAKE:
	case N_PUT:
		take_or_put(st, value);
		break;
	case N_MATMUL:
		matmul(st, value);
		break;
	case N_CONV:
	case N_CONV_GRAD_X:
	case N_CONV_GRAD_W:
		conv(st, value);
		break;
	case N_ATTENTION:
	case N_ATTENTION_GRAD:
		attention(st, value);
		break;
	case N_ATTENTION_LSE:
	case N_ATTENTION_GRAD_K:
	case N_ATTENTION_GRAD_V:
		attention_lse(st, value);
		break;
	default:
		elementwise(st, value);
		break;
	}
}

/*
 * Strides of an output over the dims of the node that makes it: only if the
 * view shows every element once, dim by dim or as one row-major block.
 */
static bool fold_output(const struct lnode *node, const struct view *view,
			const struct nc_type *type, const int64_t *strides, int64_t *folded)
{
	int64_t dense[NC_DIMS_MAX], kept = 1;
	uint32_t used = 0;
	bool row_major = true;

	if (lnode_is_source(node) || nci_elems(type->ndim, type->dims) != node->elems)
		return false;
	nci_row_major(type->ndim, type->dims, dense);
	for (uint32_t i = 0; i < type->ndim; i++)
		row_major &= type->dims[i] == 1 ||
			     (view->stride[i] == dense[i] && strides[i] == dense[i]);
	memset(folded, 0, NC_DIMS_MAX * sizeof(*folded));
	if (row_major) {
		memcpy(folded, node->own, NC_DIMS_MAX * sizeof(*folded));
		return true;
	}
	for (uint32_t i = 0; i < type->ndim; i++) {
		uint32_t j;

		if (type->dims[i] == 1)
			continue;
		for (j = 0; j < node->nd; j++)
			if (!(used >> j & 1) && node->own[j] == view->stride[i] &&
			    node->dims[j] == type->dims[i])
				break;
		if (j == node->nd)
			return false;
		used |= 1u << j;
		folded[j] = strides[i];
		kept *= node->dims[j];
	}
	return kept == node->elems;
}

static void legalise_output(struct state *st, uint32_t i)
{
	const struct output *out = &st->graph->outputs[i];
	const struct nc_type *type = &st->graph->nodes[out->value].type;
	struct lout *lout = &st->legal->outs[st->legal->n_outs++];
	struct view view = st->views[out->value];

	lout->slot = out->slot;
	lout->alias = out->alias;
	if (!fold_output(&st->legal->nodes[view.node], &view, type, out->strides, lout->stride)) {
		view = copy_view(st, out->value);
		memcpy(lout->stride, out->strides, sizeof(lout->stride));
		for (uint32_t j = 0; j < type->ndim; j++)
			if (type->dims[j] == 1)
				lout->stride[j] = 0;
	}
	lout->node = view.node;
}

struct legal *nci_legalise(struct nc_ctx *ctx)
{
	const struct nc_graph *graph = ctx->graph;
	struct state st = { .ctx = ctx, .graph = graph };

	st.legal = nci_alloc(ctx, sizeof(*st.legal));
	st.legal->ctx = ctx;
	st.legal->n_nodes = 1;
	st.legal->cap_nodes = graph->n_nodes + graph->n_outputs + 8;
	st.legal->nodes = nci_alloc(ctx, st.legal->cap_nodes * sizeof(*st.legal->nodes));
	st.views = nci_alloc(ctx, graph->n_nodes * sizeof(*st.views));
	st.live = nci_alloc(ctx, graph->n_nodes * sizeof(*st.live));
	st.legal->outs = nci_alloc(ctx, graph->n_outputs * sizeof(*st.legal->outs));
	mark_live(&st);
	for (uint32_t i = 1; i < graph->n_nodes; i++)
		if (st.live[i])
			legalise_node(&st, i);
	for (uint32_t i = 0; i < graph->n_outputs; i++)
		legalise_output(&st, i);
	return st.legal;
}
