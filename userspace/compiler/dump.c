/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs as text, for people, tests and cache keys. Programs: userspace/asm. */
#include <stdio.h>
#include <string.h>

#include "ir.h"

struct text {
	char *at;
	size_t room, length;
};

__attribute__((format(printf, 2, 3))) static void put(struct text *t, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(t->at, t->room, format, args);
	va_end(args);
	if (n < 0)
		return;
	t->length += (size_t)n;
	if ((size_t)n < t->room) {
		t->at += n;
		t->room -= (size_t)n;
	} else if (t->room) {
		t->at += t->room - 1;
		t->room = 1;
	}
}

static void put_list(struct text *t, const char *name, uint32_t n, const int64_t *list)
{
	put(t, " %s(", name);
	for (uint32_t i = 0; i < n; i++)
		put(t, "%s%lld", i ? "," : "", (long long)list[i]);
	put(t, ")");
}

static void put_dropout(struct text *t, const struct nc_attention *how)
{
	if (how->dropout == 0)
		return;
	put(t, " dropout %.17g key(", how->dropout);
	for (int i = 0; i < NC_KEY_WORDS; i++)
		put(t, "%s%%%u", i ? "," : "", how->key[i]);
	put(t, ")");
	if (how->batch)
		put(t, " batch %%%u", how->batch);
}

static void put_node(struct text *t, const nc_graph *graph, nc_value value)
{
	const struct node *node = &graph->nodes[value];
	char type[160];

	put(t, "%%%u = %s", value, nci_node_name(node));
	for (uint32_t i = 0; i < NCI_SRCS && node->src[i]; i++)
		put(t, " %%%u", node->src[i]);
	put(t, " : %s", nci_type_text(&node->type, type, sizeof(type)));
	switch (node->kind) {
	case N_INPUT:
		put(t, " slot %u", node->slot);
		put_list(t, "strides", node->type.ndim, node->strides);
		break;
	case N_SCALAR:
		put(t, " slot %u", node->slot);
		break;
	case N_CONST:
		put(t, " bits 0x%llx", (unsigned long long)node->bits);
		break;
	case N_IOTA:
	case N_TAKE:
	case N_PUT:
		if (node->dim == NC_ALL_DIMS)
			put(t, " all dims");
		else
			put(t, " dim %u", node->dim);
		break;
	case N_PERMUTE:
		put(t, " order(");
		for (uint32_t i = 0; i < node->type.ndim; i++)
			put(t, "%s%u", i ? "," : "", node->order[i]);
		put(t, ")");
		break;
	case N_REDUCE:
		put(t, " axes 0x%x%s", node->axes, node->keep ? " keep" : "");
		break;
	case N_SCAN:
	case N_RECURRENCE:
		put(t, " dim %u", (unsigned int)__builtin_ctz(node->axes));
		break;
	case N_CONV:
	case N_CONV_GRAD_X:
	case N_CONV_GRAD_W:
		put_list(t, "stride", 2, node->conv.stride);
		put_list(t, "padding", 2, node->conv.padding);
		put_list(t, "dilation", 2, node->conv.dilation);
		put(t, " groups %lld", (long long)node->conv.groups);
		break;
	case N_ATTENTION:
	case N_ATTENTION_GRAD:
		put(t, " scale %.9g%s", (double)node->attention.scale,
		    node->attention.causal ? " causal" : "");
		put_dropout(t, &node->attention);
		break;
	default:
		break;
	}
	put(t, "\n");
}

size_t nc_graph_dump(const nc_graph *graph, char *text, size_t size)
{
	struct text t = { .at = text, .room = size };

	if (size)
		text[0] = '\0';
	put(&t, "graph %s\n", graph->name);
	for (uint32_t i = 1; i < graph->n_nodes; i++)
		put_node(&t, graph, i);
	for (uint32_t i = 0; i < graph->n_outputs; i++) {
		const struct output *out = &graph->outputs[i];

		put(&t, "output %%%u slot %u", out->value, out->slot);
		put_list(&t, "strides", graph->nodes[out->value].type.ndim, out->strides);
		if (out->alias != NC_NO_ALIAS)
			put(&t, " alias %u", out->alias);
		put(&t, "\n");
	}
	if (graph->err)
		put(&t, "error %s\n", graph->error);
	return t.length;
}
