/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Report of what programs do with the device's time: docs/report.md. One a device, which its cores
 * share; any thread. Programs are told apart by the id of their launches.
 */
#ifndef NM_REPORT_H
#define NM_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "sim.h"

struct nm_report;

/* Written to path. NULL: no memory. */
struct nm_report *nm_report_create(const char *path);
void nm_report_destroy(struct nm_report *r);

/* Whether a launch of this program is to be traced: only the first is. */
bool nm_report_wants(struct nm_report *r, uint64_t id);
/* A launch that completed. host: what it took of the host's time. chain: NULL unless it was wanted. */
void nm_report_add(struct nm_report *r, uint64_t id, const struct nm_program *program,
		   const struct nm_sim_result *result, const struct nm_host_time *host,
		   uint64_t time_ps, const struct nm_chain *chain);

/* Writes the file anew with all launches so far. 0 or -errno. */
int nm_report_write(struct nm_report *r);

#endif /* NM_REPORT_H */
