/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs and programs as text, for people, tests and cache keys. */
#include <stdio.h>
#include <string.h>

#include "ir.h"
#include "neuron_program.h"

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

/* --- graphs ------------------------------------------------------------------------------- */

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
	case N_CONV:
	case N_CONV_GRAD_X:
	case N_CONV_GRAD_W:
		put_list(t, "stride", 2, node->conv.stride);
		put_list(t, "padding", 2, node->conv.padding);
		put_list(t, "dilation", 2, node->conv.dilation);
		put(t, " groups %lld", (long long)node->conv.groups);
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

/* --- programs ------------------------------------------------------------------------------- */

static const char *opcode_name(uint32_t opcode)
{
	const char *name = isa_opcode_name(opcode);

	return name ? name : "?";
}

static const char *isa_dtype_name(uint32_t dtype)
{
	/* The numbers are the same, but for bool, which is uint8 there. */
	return nci_dtype_name((nc_dtype)dtype);
}

static const char *space_name(uint32_t space)
{
	return space == ISA_SPACE_SBUF ? "sbuf" : space == ISA_SPACE_PSUM ? "psum" : "slot";
}

static void put_tile(struct text *t, const char *name, const struct isa_tile *tile)
{
	uint32_t first = 0;

	if (!tile->nparts)
		return;
	put(t, " %s=%s:%s[%u+%u]@%u", name, space_name(tile->space), isa_dtype_name(tile->dtype),
	    tile->part0, tile->nparts, tile->offset);
	while (first < ISA_TILE_DIMS - 1 && tile->count[first] == 1)
		first++;
	for (uint32_t i = first; i < ISA_TILE_DIMS; i++)
		put(t, "%s%ux%d", i == first ? "(" : " ", tile->count[i], (int32_t)tile->step[i]);
	put(t, ")");
}

static void put_side(struct text *t, const char *name, const struct isa_dma_side *side)
{
	if (side->space == ISA_SPACE_SLOT && side->slot == ISA_SLOT_CONST)
		put(t, " %s=const@%llu", name, (unsigned long long)side->offset);
	else if (side->space == ISA_SPACE_SLOT)
		put(t, " %s=slot%u@%llu", name, side->slot, (unsigned long long)side->offset);
	else
		put(t, " %s=%s[%u+%u%s]@%llu", name, space_name(side->space), side->part0,
		    side->nparts, side->part_step ? "" : "*0", (unsigned long long)side->offset);
	put(t, "(");
	for (uint32_t i = 0; i < side->ndim; i++)
		put(t, "%s%ux%lld", i ? " " : "", side->count[i], (long long)side->step[i]);
	put(t, ")");
}

static void put_column(struct text *t, const char *name, const struct isa_column *col)
{
	put(t, " %s=%s:%s[%u]@%u", name, space_name(col->space), isa_dtype_name(col->dtype),
	    col->part0, col->offset);
}

static void put_compute(struct text *t, const struct isa_inst *inst)
{
	static const char *const ct[] = { "f32", "i32", "i64", "f64", "bits" };
	const struct isa_compute *c = &inst->compute;

	put(t, ".%s op%u,%u", c->compute_type < 5 ? ct[c->compute_type] : "?", c->op0, c->op1);
	if (c->n_axes)
		put(t, " axes %u", c->n_axes);
	put_tile(t, "dst", &c->dst);
	put_tile(t, "src0", &c->src0);
	put_tile(t, "src1", &c->src1);
	if (inst->flags & ISA_F_VEC0)
		put_column(t, "s0", &c->vec0);
	else if (c->imm0)
		put(t, " imm0=0x%llx", (unsigned long long)c->imm0);
	if (inst->flags & ISA_F_VEC1)
		put_column(t, "s1", &c->vec1);
	else if (c->imm1)
		put(t, " imm1=0x%llx", (unsigned long long)c->imm1);
	if (inst->flags & ISA_F_ACCUM)
		put(t, " accum");
	if (inst->flags & ISA_F_REV0)
		put(t, " rev0");
	if (inst->flags & ISA_F_REV1)
		put(t, " rev1");
}

static void put_inst(struct text *t, uint32_t pc, const struct isa_inst *inst)
{
	put(t, "  %u: %s%s", pc, opcode_name(inst->opcode),
	    inst->flags & ISA_F_NOTIFY ? " notify" : "");
	if (inst->opcode == ISA_DMA) {
		put(t, " q%u elem %u", inst->dma_queue, inst->elem_bytes);
		put_side(t, "to", &inst->dma.dst);
		put_side(t, "from", &inst->dma.src);
	} else if (inst->opcode >= ISA_MEMSET) {
		put_compute(t, inst);
	}
	for (uint32_t i = 0; i < ISA_WAITS; i++)
		if (inst->wait[i].kind)
			put(t, " wait s%u>=%u", inst->wait[i].sem, inst->wait[i].value);
	for (uint32_t i = 0; i < ISA_UPDATES; i++)
		if (inst->update[i].kind)
			put(t, " add s%u", inst->update[i].sem);
	if (inst->tag)
		put(t, " ; %%%u", inst->tag);
	put(t, "\n");
}

size_t nc_program_dump(const struct nc_program *program, char *text, size_t size)
{
	static const char *const kinds[] = { "input", "output", "inout", "scratch", "scalar" };
	const struct nprog_header *h = program->image;
	const struct nprog_slot *slots;
	struct text t = { .at = text, .room = size };

	if (size)
		text[0] = '\0';
	if (!h)
		return 0;
	slots = (const struct nprog_slot *)((const char *)h + h->slot_offset);
	put(&t, "program %.*s\n", NPROG_NAME_BYTES, (const char *)h->name);
	for (uint32_t i = 0; i < h->n_slots; i++)
		put(&t, "slot %u %s %llu bytes\n", i,
		    slots[i].kind < 5 ? kinds[slots[i].kind] : "?",
		    (unsigned long long)slots[i].min_bytes);
	for (uint32_t e = 0; e < 5; e++) {
		const struct isa_inst *inst =
			(const struct isa_inst *)((const char *)h + h->stream[e].offset);

		if (h->stream[e].count)
			put(&t, "%s\n", isa_engine_name(e));
		for (uint32_t i = 0; i < h->stream[e].count; i++)
			put_inst(&t, i, &inst[i]);
	}
	return t.length;
}
