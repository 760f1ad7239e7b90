/* SPDX-License-Identifier: Apache-2.0 */
/* Building a graph: scans. */
#include <errno.h>

#include "ir_build.h"

nc_value nc_scan(nc_graph *graph, nc_reduce_op op, nc_value x, uint32_t dim)
{
	const struct node *src = nci_operand(graph, x, nci_scan_name(op));
	struct node node = { .kind = N_SCAN, .op = op, .src = { x } };
	char text[TYPE_TEXT];

	if (!src)
		return 0;
	if ((unsigned int)op >= NC_REDUCE_OPS)
		return nci_mistake(graph, -EINVAL, "scan: unknown operation %u, there are %u",
				   (unsigned int)op, (unsigned int)NC_REDUCE_OPS);
	nci_type_text(&src->type, text, sizeof(text));
	if (dim >= src->type.ndim)
		return nci_mistake(graph, -EINVAL, "%s: dim %u of %s, which has %u dims",
				   nci_scan_name(op), dim, text, src->type.ndim);
	node.type = src->type;
	node.axes = 1u << dim;
	return nci_add_node(graph, &node);
}
