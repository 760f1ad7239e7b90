// SPDX-License-Identifier: Apache-2.0
/* What the host spent on instructions: a line for each program, a table for all of them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "report_priv.h"

void nm_report_sum_host(struct nm_report_host *sum, const struct nm_host_time *t)
{
	for (unsigned int e = 0; e < EXI_ENGINES; e++)
		for (unsigned int op = 0; op < NM_OPCODES; op++) {
			const struct nm_host_sum *inst = &t->inst[e][op];

			if (isa_is_dma(op))
				sum->dma_ns += inst->ns;
			else
				sum->engine_ns[e] += inst->ns;
		}
	sum->run_ns += t->run_ns;
}

void nm_report_add_host(struct nm_host_time *all, const struct nm_host_time *t)
{
	for (unsigned int e = 0; e < EXI_ENGINES; e++)
		for (unsigned int op = 0; op < NM_OPCODES; op++) {
			all->inst[e][op].ns += t->inst[e][op].ns;
			all->inst[e][op].n += t->inst[e][op].n;
		}
	all->run_ns += t->run_ns;
}

void nm_report_write_host(FILE *f, const struct nm_report_host *sum, uint64_t launches)
{
	uint64_t rest = sum->run_ns - sum->dma_ns;

	fprintf(f, "  host us       ");
	for (unsigned int e = 0; e < EXI_ENGINES; e++) {
		fprintf(f, " %9.1f", (double)sum->engine_ns[e] / 1e3 / (double)launches);
		rest -= sum->engine_ns[e];
	}
	fprintf(f, "; transfers %.1f, sequencing %.1f, %.1f a launch\n",
		(double)sum->dma_ns / 1e3 / (double)launches, (double)rest / 1e3 / (double)launches,
		(double)sum->run_ns / 1e3 / (double)launches);
}

/* A row of the table. */
struct kind {
	unsigned int engine;
	uint32_t opcode;
	struct nm_host_sum sum;
};

static int by_ns(const void *a, const void *b)
{
	const struct kind *x = a, *y = b;

	if (x->sum.ns != y->sum.ns)
		return x->sum.ns < y->sum.ns ? 1 : -1;
	return x->engine != y->engine ? (int)x->engine - (int)y->engine :
					(int)x->opcode - (int)y->opcode;
}

static void write_row(FILE *f, const char *engine, const char *name, const struct nm_host_sum *sum,
		      uint64_t all_ns)
{
	fprintf(f, "  %-7s %-24s %12" PRIu64 " %12.3f %6.1f %%\n", engine, name, sum->n,
		(double)sum->ns / 1e6, 100.0 * (double)sum->ns / (double)all_ns);
}

int nm_report_write_table(FILE *f, const struct nm_host_time *all)
{
	struct kind *kind = calloc((size_t)EXI_ENGINES * NM_OPCODES, sizeof(*kind));
	struct nm_host_sum rest = { .ns = all->run_ns };
	size_t n = 0;

	if (!kind)
		return -1;
	for (unsigned int e = 0; e < EXI_ENGINES; e++)
		for (uint32_t op = 0; op < NM_OPCODES; op++) {
			const struct nm_host_sum *sum = &all->inst[e][op];

			if (!sum->n)
				continue;
			kind[n++] = (struct kind){ e, op, *sum };
			rest.ns -= sum->ns;
		}
	qsort(kind, n, sizeof(*kind), by_ns);
	fprintf(f, "host time of all launches: %.3f ms\n", (double)all->run_ns / 1e6);
	fprintf(f, "  %-7s %-24s %12s %12s\n", "engine", "opcode", "times", "ms");
	for (size_t i = 0; i < n; i++)
		write_row(f, isa_engine_name(kind[i].engine), isa_opcode_name(kind[i].opcode),
			  &kind[i].sum, all->run_ns);
	if (all->run_ns)
		write_row(f, "", "sequencing", &rest, all->run_ns);
	free(kind);
	return 0;
}
