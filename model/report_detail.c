// SPDX-License-Identifier: Apache-2.0
/* What one launch moved, and the chain of instructions that its time consists of. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check_priv.h"
#include "report_priv.h"

#define STEPS_SHOWN 200 /* of the critical path; half from each end */

/* --- bytes -------------------------------------------------------------------------------- */

enum memory { HBM, SBUF, PSUM, HOST, MEMORIES };

struct traffic {
	uint64_t bytes[MEMORIES][2]; /* read, written */
	uint64_t transfers, dma_bytes, dma_ps;
};

static enum memory memory_of_side(const struct nm_program *p, const struct nm_side *s)
{
	if (s->space == ISA_SPACE_SBUF)
		return SBUF;
	if (s->space == ISA_SPACE_PSUM)
		return PSUM;
	/* Scalars come with the launch. */
	if (s->slot != ISA_SLOT_CONST && p->slot[s->slot].rights & EXI_SLOT_INLINE)
		return HOST;
	return HBM;
}

static void add_dma(struct traffic *t, const struct nm_program *p, const struct nm_dma *d)
{
	uint64_t bytes = d->n * d->elem_bytes;

	t->bytes[memory_of_side(p, &d->src)][0] += bytes;
	t->bytes[memory_of_side(p, &d->dst)][1] += bytes;
	if (d->sum)
		t->bytes[memory_of_side(p, &d->dst)][0] += bytes;
	t->transfers++;
	t->dma_bytes += bytes;
	t->dma_ps += d->cost_ps;
}

static void add_compute(struct traffic *t, struct nm_replay *r, const struct nm_inst *inst)
{
	struct nm_span span[NM_SPANS_MAX];
	unsigned int n = nm_spans(r, inst, span);

	for (unsigned int i = 0; i < n; i++) {
		uint64_t bytes = span[i].run;

		for (unsigned int k = 0; k < span[i].ndim; k++)
			bytes *= span[i].count[k];
		t->bytes[span[i].mem == ISA_SPACE_SBUF ? SBUF : PSUM][span[i].write] += bytes;
	}
}

static void add_inst(struct traffic *t, struct nm_replay *r, const struct nm_inst *inst)
{
	if (isa_is_dma(inst->opcode))
		add_dma(t, r->program, inst->dma);
	else if (!isa_is_reg(inst->opcode))
		add_compute(t, r, inst);
}

static struct traffic traffic_of(const struct nm_program *p, const struct nm_chain *chain)
{
	struct nm_replay r = { .program = p };
	struct traffic t = { 0 };

	/* As often as they were issued. */
	for (uint32_t i = 0; p->branches && i < chain->n; i++)
		add_inst(&t, &r, &p->stream[chain->node[i].engine].inst[chain->node[i].pc]);
	for (unsigned int e = 0; e < EXI_ENGINES && !p->branches; e++)
		for (uint32_t pc = 0; pc < p->stream[e].count; pc++)
			add_inst(&t, &r, &p->stream[e].inst[pc]);
	t.bytes[HOST][0] += sizeof(struct exi_launch) + p->n_slots * sizeof(struct exi_slot);
	t.bytes[HOST][1] += sizeof(struct exi_record);
	return t;
}

static void print_traffic(FILE *f, const struct nm_program *p, const struct nm_chain *chain,
			  uint64_t time_ps)
{
	static const char *const names[MEMORIES] = { "HBM", "SBUF", "PSUM", "host" };
	struct traffic t = traffic_of(p, chain);

	fprintf(f, "  memory                  read       written   GB/s\n");
	for (unsigned int m = 0; m < MEMORIES; m++)
		fprintf(f, "    %-4s %19" PRIu64 " %13" PRIu64 " %6.1f\n", names[m], t.bytes[m][0],
			t.bytes[m][1],
			(double)(t.bytes[m][0] + t.bytes[m][1]) * 1e3 / (double)time_ps);
	fprintf(f,
		"  DMA            %" PRIu64 " transfers, %" PRIu64 " bytes, its %d engines busy "
		"%.1f %%\n",
		t.transfers, t.dma_bytes, NM_DMA_ENGINES,
		100.0 * (double)t.dma_ps / NM_DMA_ENGINES / (double)time_ps);
}

/* --- critical path ------------------------------------------------------------------------ */

/* A stretch of device time and who it belongs to. */
struct step {
	uint64_t from_ps, to_ps;
	const struct nm_node *node;
	const struct nm_node *cause; /* NULL: the launch */
	uint8_t why;
};

/* From the end back; number of steps, at most max. */
static size_t walk(const struct nm_chain *t, struct step *step, size_t max)
{
	uint32_t at = t->last, next;
	bool data = true; /* a transfer's end is asked for, not its issue */
	uint64_t ps;
	size_t n = 0;

	if (at == NM_NODE_NONE)
		return 0;
	ps = t->node[at].end_ps;
	for (; n < max && at != NM_NODE_NONE; at = next) {
		const struct nm_node *node = &t->node[at];
		bool moved = data && node->data_cause != NM_NODE_NONE;
		struct step *s = &step[n++];

		next = moved ? node->data_cause : node->cause;
		s->node = node;
		s->to_ps = ps;
		s->from_ps = moved ? node->data_ps : node->start_ps;
		s->why = moved ? node->data_why : node->why;
		s->cause = next == NM_NODE_NONE ? NULL : &t->node[next];
		ps = s->from_ps;
		data = s->why != NM_WHY_ENGINE;
	}
	return n;
}

static uint64_t cycles(const struct nm_timing *t, const struct step *s)
{
	return ((s->to_ps - s->from_ps) * t->clock_khz[s->node->engine] + 500000000u) / 1000000000u;
}

static void print_step(FILE *f, const struct nm_chain *t, const struct step *s)
{
	const char *opcode = isa_opcode_name(s->node->opcode);

	fprintf(f, "    %10.3f %9.1f %8" PRIu64 "  %-7s %6u  %-20s ",
		(double)(s->from_ps - t->begin_ps) / 1e6, (double)(s->to_ps - s->from_ps) / 1e3,
		cycles(t->timing, s), isa_engine_name(s->node->engine), s->node->pc,
		opcode ? opcode : "?");
	if (!s->cause) {
		fprintf(f, "the launch\n");
		return;
	}
	switch (s->why) {
	case NM_WHY_SEMAPHORE:
		fprintf(f, "semaphore %u of", s->node->sem);
		break;
	case NM_WHY_QUEUE:
		fprintf(f, "its queue, behind");
		break;
	case NM_WHY_DMA:
		fprintf(f, "a DMA engine, behind");
		break;
	case NM_WHY_HBM:
		fprintf(f, "HBM, behind");
		break;
	case NM_WHY_PORT:
		fprintf(f, "SBUF, PSUM or its part of the array, behind");
		break;
	default:
		fprintf(f, "its engine, behind");
		break;
	}
	fprintf(f, " %s %u\n", isa_engine_name(s->cause->engine), s->cause->pc);
}

struct share {
	uint64_t ps;
	uint32_t steps;
	uint8_t engine, opcode;
};

static int by_share(const void *a, const void *b)
{
	const struct share *x = a, *y = b;

	if (x->ps != y->ps)
		return x->ps < y->ps ? 1 : -1;
	return x->engine != y->engine ? x->engine - y->engine : x->opcode - y->opcode;
}

#define OPCODES 256

/* How much of the path each kind of instruction is. */
static void print_shares(FILE *f, const struct step *step, size_t n, uint64_t total_ps)
{
	struct share *share = calloc((size_t)EXI_ENGINES * OPCODES, sizeof(*share));

	if (!share)
		return;
	for (size_t i = 0; i < n; i++) {
		const struct nm_node *node = step[i].node;
		struct share *s = &share[node->engine * OPCODES + node->opcode];

		s->engine = node->engine;
		s->opcode = node->opcode;
		s->steps++;
		s->ps += step[i].to_ps - step[i].from_ps;
	}
	qsort(share, (size_t)EXI_ENGINES * OPCODES, sizeof(*share), by_share);
	for (struct share *s = share; s->ps; s++)
		fprintf(f, "    %9.3f us %5.1f %%  %-7s %-20s %u steps\n", (double)s->ps / 1e6,
			100.0 * (double)s->ps / (double)total_ps, isa_engine_name(s->engine),
			isa_opcode_name(s->opcode) ? isa_opcode_name(s->opcode) : "?", s->steps);
	free(share);
}

static void print_path(FILE *f, const struct nm_chain *t)
{
	/* Each node is at most twice on the path: its data, its issue. */
	size_t max = 2 * (size_t)t->n, n, shown;
	struct step *step = calloc(max + 1, sizeof(*step));
	uint64_t total;

	if (!step)
		return;
	n = walk(t, step, max);
	total = n ? step[0].to_ps - step[n - 1].from_ps : 0;
	fprintf(f,
		"  critical path  %.3f us in %zu steps, between %.3f us for the launch to start "
		"and "
		"%.3f to end\n",
		(double)total / 1e6, n, (double)nm_launch_start_ps / 1e6,
		(double)nm_launch_end_ps / 1e6);
	print_shares(f, step, n, total ? total : 1);
	fprintf(f, "         at us        ns   cycles  engine      pc  opcode               waited "
		   "for\n");
	shown = n > STEPS_SHOWN ? STEPS_SHOWN / 2 : n;
	for (size_t i = 0; i < shown; i++)
		print_step(f, t, &step[n - 1 - i]);
	if (shown < n) {
		fprintf(f, "    (%zu steps are left out)\n", n - 2 * shown);
		for (size_t i = shown; i-- > 0;)
			print_step(f, t, &step[i]);
	}
	free(step);
}

char *nm_report_detail(const struct nm_program *program, const struct nm_chain *chain,
		       uint64_t time_ps)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	print_traffic(f, program, chain, time_ps ? time_ps : 1);
	if (chain->failed)
		fprintf(f, "  (too many instructions, or no memory, for the critical path)\n");
	else
		print_path(f, chain);
	if (fclose(f)) {
		free(text);
		return NULL;
	}
	return text;
}
