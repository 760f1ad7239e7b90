/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "eval.h"

void nci_conv(struct legal *legal, struct lir *lir, struct group *group)
{
	(void)lir;
	(void)group;
	nci_fail(legal->ctx, -EOPNOTSUPP, "%s: conv2d is not available", legal->ctx->graph->name);
}
