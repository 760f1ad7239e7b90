/* SPDX-License-Identifier: Apache-2.0 */
/* Between the report*.c files. */
#ifndef NM_REPORT_PRIV_H
#define NM_REPORT_PRIV_H

#include <stdio.h>

#include "report.h"

/* Host time of launches of one program; the rest of run_ns is the sequencers' and the events'. */
struct nm_report_host {
	uint64_t engine_ns[EXI_ENGINES]; /* without transfers */
	uint64_t dma_ns, run_ns;
};

void nm_report_sum_host(struct nm_report_host *sum, const struct nm_host_time *t);
void nm_report_write_host(FILE *f, const struct nm_report_host *sum, uint64_t launches);
/* Of all programs; the table takes memory: 0 or -1. */
void nm_report_add_host(struct nm_host_time *all, const struct nm_host_time *t);
int nm_report_write_table(FILE *f, const struct nm_host_time *all);

/* Text about one launch: bytes, DMA, critical path. For free(); NULL: no memory. */
char *nm_report_detail(const struct nm_program *program, const struct nm_chain *chain,
		       uint64_t time_ps);

#endif /* NM_REPORT_PRIV_H */
