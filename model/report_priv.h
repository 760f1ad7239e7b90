/* SPDX-License-Identifier: Apache-2.0 */
/* Between the report*.c files. */
#ifndef NM_REPORT_PRIV_H
#define NM_REPORT_PRIV_H

#include "report.h"

/* Text about one launch: bytes, DMA, critical path. For free(); NULL: no memory. */
char *nm_report_detail(const struct nm_program *program, const struct nm_chain *chain,
		       uint64_t time_ps);

#endif /* NM_REPORT_PRIV_H */
