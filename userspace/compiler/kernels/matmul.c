/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "eval.h"

void nci_matmul(struct legal *legal, struct lir *lir, struct group *group)
{
	(void)lir;
	(void)group;
	nci_fail(legal->ctx, -EOPNOTSUPP, "%s: matmul is not available", legal->ctx->graph->name);
}
