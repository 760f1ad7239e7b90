/* SPDX-License-Identifier: Apache-2.0 */
/* Building a graph: attention, its shapes and its limits. */
#include <errno.h>
#include <string.h>

#include "ir_build.h"

/* Type of the result, from operands without the mask; dtype 0 when they do not fit. */
static struct nc_type attention_result(const struct nc_type *q, const struct nc_type *k,
				       const struct nc_type *v)
{
	struct nc_type y = *q, bk = *k, bv = *v, none = { .dtype = (nc_dtype)0 };

	if (q->ndim < 2 || k->ndim < 2 || v->ndim < 2 || q->dtype != k->dtype ||
	    q->dtype != v->dtype || q->dims[q->ndim - 1] != k->dims[k->ndim - 1] ||
	    k->dims[k->ndim - 2] != v->dims[v->ndim - 2])
		return none;
	y.ndim -= 2;
	bk.ndim -= 2;
	bv.ndim -= 2;
	if (!nci_broadcast_into(&y, &bk) || !nci_broadcast_into(&y, &bv) ||
	    y.ndim + 2 > NC_DIMS_MAX)
		return none;
	y.dims[y.ndim++] = q->dims[q->ndim - 2];
	y.dims[y.ndim++] = v->dims[v->ndim - 1];
	return y;
}

/* May the mask be added to the scores of a result of type y? */
static bool attention_mask_fits(const struct nc_type *y, int64_t keys, const struct nc_type *mask)
{
	struct nc_type scores = *y, both;

	scores.dims[y->ndim - 1] = keys;
	both = scores;
	return nci_matmul_dtype(mask->dtype) && nci_broadcast_into(&both, mask) &&
	       both.ndim == scores.ndim &&
	       !memcmp(both.dims, scores.dims, scores.ndim * sizeof(scores.dims[0]));
}

/* Is it known at the latest when the program is launched? */
static bool is_launch_word(nc_graph *graph, nc_value value)
{
	const struct node *node = nci_operand(graph, value, "attention");

	return node && (node->kind == N_SCALAR || node->kind == N_CONST) &&
	       node->type.dtype == NC_INT32;
}

static bool dropout_fits(nc_graph *graph, const struct nc_attention *how)
{
	if (!(how->dropout >= 0 && how->dropout < 1)) {
		nci_mistake(graph, -EINVAL,
			    "attention: dropout %g; wanted is 0 or more and less than 1",
			    how->dropout);
		return false;
	}
	if (how->dropout == 0)
		return true;
	for (int i = 0; i < NC_KEY_WORDS; i++)
		if (!is_launch_word(graph, how->key[i])) {
			nci_mistake(graph, -EINVAL,
				    "attention: dropout %g with word %d of the key %%%u; wanted "
				    "is a scalar of the launch or a constant, int32",
				    how->dropout, i, how->key[i]);
			return false;
		}
	if (how->batch && !is_launch_word(graph, how->batch)) {
		nci_mistake(graph, -EINVAL,
			    "attention: dropout %g with batch %%%u; wanted is a scalar of the "
			    "launch or a constant, int32",
			    how->dropout, how->batch);
		return false;
	}
	return true;
}

nc_value nc_attention(nc_graph *graph, nc_value q, nc_value k, nc_value v, nc_value mask,
		      const struct nc_attention *how)
{
	const struct node *nq = nci_operand(graph, q, "attention"),
			  *nk = nci_operand(graph, k, "attention");
	const struct node *nv = nci_operand(graph, v, "attention");
	const struct node *nm = mask ? nci_operand(graph, mask, "attention") : NULL;
	struct node node = { .kind = N_ATTENTION, .src = { q, k, v, mask }, .attention = *how };
	char tq[TYPE_TEXT], tk[TYPE_TEXT], tv[TYPE_TEXT], tm[TYPE_TEXT];
	int64_t head;

	if (!nq || !nk || !nv || (mask && !nm))
		return 0;
	nci_type_text(&nq->type, tq, sizeof(tq));
	nci_type_text(&nk->type, tk, sizeof(tk));
	nci_type_text(&nv->type, tv, sizeof(tv));
	node.type = attention_result(&nq->type, &nk->type, &nv->type);
	if (!node.type.dtype)
		return nci_mistake(graph, -EINVAL,
				   "attention: q %s, k %s, v %s; wanted are [..., L, D], [..., S, "
				   "D] and [..., S, E] of one dtype",
				   tq, tk, tv);
	if (!nci_matmul_dtype(node.type.dtype))
		return nci_mistake(graph, -EOPNOTSUPP,
				   "attention: q %s, k %s, v %s; the tensor engine takes fp32, "
				   "bf16 and fp16",
				   tq, tk, tv);
	head = nq->type.dims[nq->type.ndim - 1];
	head = nci_max(head, nv->type.dims[nv->type.ndim - 1]);
	if (head > NC_ATTENTION_HEAD_MAX)
		return nci_mistake(graph, -EOPNOTSUPP,
				   "attention: q %s, k %s, v %s; heads of %lld, at most %d are "
				   "possible",
				   tq, tk, tv, (long long)head, NC_ATTENTION_HEAD_MAX);
	if (!(how->scale >= 1e-20f && how->scale <= 1e20f))
		return nci_mistake(graph, -EINVAL,
				   "attention: q %s with scale %g; wanted is 1e-20 to 1e20", tq,
				   (double)how->scale);
	if (!dropout_fits(graph, how))
		return 0;
	if (nm && !attention_mask_fits(&node.type, nk->type.dims[nk->type.ndim - 2], &nm->type))
		return nci_mistake(graph, -EINVAL,
				   "attention: mask %s of q %s, k %s; wanted is what broadcasts "
				   "to [..., L, S], in fp32, bf16 or fp16",
				   nci_type_text(&nm->type, tm, sizeof(tm)), tq, tk);
	if (!nci_check_type(graph, &node.type, "attention"))
		return 0;
	return nci_add_node(graph, &node);
}

nc_value nc_attention_lse(nc_graph *graph, nc_value attention)
{
	const struct node *src = nci_operand(graph, attention, "attention_lse");
	struct node node = { .kind = N_ATTENTION_LSE, .src = { attention } };
	char text[TYPE_TEXT];

	if (!src)
		return 0;
	if (src->kind != N_ATTENTION)
		return nci_mistake(graph, -EINVAL, "attention_lse: %s is no result of attention",
				   nci_type_text(&src->type, text, sizeof(text)));
	node.type = src->type;
	node.type.dtype = NC_FP32;
	node.type.dims[--node.type.ndim] = 0;
	return nci_add_node(graph, &node);
}

/* Do the operands of a gradient agree with the result y of attention? */
static bool grad_fits(const struct nc_type *t[6], const struct nc_type *y)
{
	uint32_t nd = y->ndim;

	for (uint32_t i = 0; i < 6; i++) {
		uint32_t n = i == 5 ? nd - 1 : nd; /* lse */

		if (t[i]->ndim != n || memcmp(t[i]->dims, y->dims, (nd - 2) * sizeof(y->dims[0])))
			return false;
	}
	for (uint32_t i = 3; i < 5; i++)
		if (t[i]->dtype != y->dtype || t[i]->dims[nd - 2] != y->dims[nd - 2] ||
		    t[i]->dims[nd - 1] != y->dims[nd - 1])
			return false;
	return t[5]->dtype == NC_FP32 && t[5]->dims[nd - 2] == y->dims[nd - 2];
}

/* A gradient made by the kernel of dq, of the type of value x. */
static nc_value second_grad(nc_graph *graph, enum node_kind kind, nc_value dq, nc_value x)
{
	struct node node = { .kind = kind, .src = { dq } };

	if (!dq)
		return 0;
	node.type = graph->nodes[x].type;
	return nci_add_node(graph, &node);
}

nc_value nc_attention_grad(nc_graph *graph, const struct nc_attention_operands *of,
			   const struct nc_attention *how, nc_value *dk, nc_value *dv)
{
	/* The forward kernel's rules first; it is not made unless somebody uses it. */
	nc_value y = nc_attention(graph, of->q, of->k, of->v, of->mask, how), dq;
	const nc_value src[6] = { of->q, of->k, of->v, of->dy, of->y, of->lse };
	struct node node = { .kind = N_ATTENTION_GRAD, .attention = *how };
	const struct nc_type *types[6];
	char text[6][TYPE_TEXT];
	int64_t dims[NC_DIMS_MAX];

	*dk = *dv = 0;
	for (uint32_t i = 0; i < 6; i++) {
		const struct node *operand = nci_operand(graph, src[i], "attention_grad");

		if (!y || !operand)
			return 0;
		types[i] = &operand->type;
		nci_type_text(types[i], text[i], sizeof(text[i]));
		node.src[i] = src[i];
	}
	if (!grad_fits(types, &graph->nodes[y].type))
		return nci_mistake(graph, -EINVAL,
				   "attention_grad: q %s, k %s, v %s, dy %s, y %s, lse %s; wanted "
				   "are equal leading dims, dy and y [..., L, E] and lse fp32 "
				   "[..., L]",
				   text[0], text[1], text[2], text[3], text[4], text[5]);
	node.type = *types[0];
	if (node.type.dims[node.type.ndim - 2] > NC_ATTENTION_GRAD_QUERIES_MAX)
		return nci_mistake(graph, -EOPNOTSUPP,
				   "attention_grad: q %s; %lld queries, at most %d are possible",
				   text[0], (long long)node.type.dims[node.type.ndim - 2],
				   NC_ATTENTION_GRAD_QUERIES_MAX);
	memcpy(dims, node.type.dims, sizeof(dims));
	dims[node.type.ndim - 1] = 1;
	node.src[5] = nc_reshape(graph, of->lse, node.type.ndim, dims);
	node.src[6] = of->mask;
	dq = nci_add_node(graph, &node);
	*dk = second_grad(graph, N_ATTENTION_GRAD_K, dq, of->k);
	*dv = second_grad(graph, N_ATTENTION_GRAD_V, dq, of->v);
	return dq;
}
