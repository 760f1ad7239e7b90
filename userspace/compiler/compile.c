/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/eval.h"
#include "neuron_queue.h"

/* Bytes from the slot's start to the end of its last element. */
static uint64_t span_bytes(const struct nc_type *type, const int64_t *strides)
{
	int64_t last = 0;

	for (uint32_t i = 0; i < type->ndim; i++)
		last += (type->dims[i] - 1) * strides[i];
	return (uint64_t)(last + 1) * nci_dtype_bytes(type->dtype);
}

static void declare_slots(struct nc_ctx *ctx, struct lir *lir)
{
	const struct nc_graph *graph = ctx->graph;

	lir->cap_slots = graph->n_slots + 8;
	lir->slots = nci_alloc(ctx, lir->cap_slots * sizeof(*lir->slots));
	lir->n_slots = graph->n_slots;
	for (uint32_t i = 0; i < graph->n_slots; i++) {
		const struct slot_decl *decl = &graph->slots[i];
		struct lslot *slot = &lir->slots[i];
		const struct output *out = decl->is_output ? &graph->outputs[decl->index] : NULL;
		const struct node *node = &graph->nodes[out ? out->value : decl->index];

		slot->type = node->type;
		slot->memory = i;
		if (out) {
			slot->kind = NPROG_SLOT_OUTPUT;
			slot->rights = EXI_SLOT_WRITE;
			slot->bytes = span_bytes(&node->type, out->strides);
			if (out->alias != NC_NO_ALIAS)
				slot->memory = out->alias;
		} else if (node->kind == N_SCALAR) {
			slot->kind = NPROG_SLOT_SCALAR;
			slot->rights = EXI_SLOT_READ;
			slot->bytes = 8;
		} else {
			slot->kind = NPROG_SLOT_INPUT;
			slot->rights = EXI_SLOT_READ;
			slot->bytes = span_bytes(&node->type, node->strides);
		}
	}
}

static void lower_group(struct legal *legal, struct lir *lir, struct group *group)
{
	switch (group->kind) {
	case N_MATMUL:
		nci_matmul(legal, lir, group);
		break;
	case N_CONV:
	case N_CONV_GRAD_X:
	case N_CONV_GRAD_W:
		nci_conv(legal, lir, group);
		break;
	case N_ATTENTION:
		nci_attention(legal, lir, group);
		break;
	case N_ATTENTION_GRAD:
		nci_attention_grad(legal, lir, group);
		break;
	case N_SCAN:
		nci_scan(legal, lir, group);
		break;
	case N_TAKE:
	case N_PUT:
		nci_rows(legal, lir, group);
		break;
	default:
		nci_loop(legal, lir, group);
		break;
	}
}

/* Results that had to wait until their input was read; see struct lout. */
static void copy_back(struct legal *legal, struct lir *lir)
{
	for (uint32_t i = 0; i < legal->n_outs; i++) {
		const struct lout *out = &legal->outs[i];
		const struct lnode *node = &legal->nodes[out->node];
		uint32_t elem = nci_dtype_bytes(node->dtype);
		struct lstep dims[NC_DIMS_MAX];

		if (!out->copied)
			continue;
		lir->tag = node->origin;
		for (uint32_t d = 0; d < node->nd; d++) {
			bool there = node->own[d] != 0;

			dims[d].count = there ? node->dims[d] : 1;
			dims[d].a = out->stride[d] * elem;
			dims[d].b = node->own[d] * elem;
		}
		lir_move(lir, out->slot, 0, node->scratch, 0, elem, node->nd, dims);
	}
}

static void compile(struct nc_ctx *ctx, struct nc_program *program)
{
	struct lsched sched = { 0 };
	struct legal *legal;
	struct lir *lir = lir_create(ctx);

	declare_slots(ctx, lir);
	legal = nci_legalise(ctx);
	nci_fuse(legal, lir);
	for (uint32_t g = 0; g < legal->n_groups; g++) {
		lir_next_group(lir);
		if (legal->groups[g].n_members)
			lower_group(legal, lir, &legal->groups[g]);
	}
	lir_next_group(lir);
	copy_back(legal, lir);
	nci_interleave(lir);
	nci_allocate(lir);
	nci_schedule(lir, &sched);
	for (uint32_t i = ctx->graph->n_slots; i < lir->n_slots; i++)
		program->scratch_bytes += lir->slots[i].bytes;
	nci_emit(lir, &sched, program);
}

static int check_target(const struct nc_graph *graph, const struct nc_target *target, char *error)
{
	if (graph->err) {
		snprintf(error, NC_ERROR_BYTES, "%s", graph->error);
		return graph->err;
	}
	if (target->arch < 2 || target->arch > 4) {
		snprintf(error, NC_ERROR_BYTES,
			 "%s: target generation %u; 2 (trn1, inf2), 3 (trn2) and 4 (trn3) are "
			 "possible",
			 graph->name, target->arch);
		return -EOPNOTSUPP;
	}
	if (target->sbuf_bytes < 128 << 10 || target->psum_bytes < 16 << 10 ||
	    target->sbuf_bytes > 1 << 20 || target->psum_bytes > 1 << 20) {
		snprintf(error, NC_ERROR_BYTES,
			 "%s: target has %u bytes of SBUF and %u of PSUM a partition; wanted are "
			 "128 KiB to 1 MiB and 16 KiB to 1 MiB",
			 graph->name, target->sbuf_bytes, target->psum_bytes);
		return -EINVAL;
	}
	if (!graph->n_outputs) {
		snprintf(error, NC_ERROR_BYTES, "%s: the graph has no output", graph->name);
		return -EINVAL;
	}
	if (graph->n_slots > EXI_SLOTS_MAX) {
		snprintf(error, NC_ERROR_BYTES, "%s: %u slots, at most %d are possible",
			 graph->name, graph->n_slots, EXI_SLOTS_MAX);
		return -E2BIG;
	}
	return 0;
}

int nc_compile(const nc_graph *graph, const struct nc_target *target, struct nc_program *program,
	       char error[NC_ERROR_BYTES])
{
	struct nc_ctx ctx = { .graph = graph, .target = *target, .error = error };
	int err;

	memset(program, 0, sizeof(*program));
	error[0] = '\0';
	err = check_target(graph, target, error);
	if (err)
		return err;
	if (!setjmp(ctx.unwind))
		compile(&ctx, program);
	nci_arena_fini(&ctx.arena);
	return ctx.err;
}

void nc_program_free(struct nc_program *program)
{
	free(program->image);
	memset(program, 0, sizeof(*program));
}
