/* SPDX-License-Identifier: Apache-2.0 */
/* Building a graph: scans and recurrences. */
#include <errno.h>
#include <string.h>

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

nc_value nc_recurrence(nc_graph *graph, nc_value a, nc_value b, uint32_t dim)
{
	const struct node *x = nci_operand(graph, a, "recurrence");
	const struct node *y = x ? nci_operand(graph, b, "recurrence") : NULL;
	struct node node = { .kind = N_RECURRENCE, .src = { a, b } };
	char left[TYPE_TEXT], right[TYPE_TEXT];

	if (!y)
		return 0;
	nci_type_text(&x->type, left, sizeof(left));
	nci_type_text(&y->type, right, sizeof(right));
	if (x->type.ndim != y->type.ndim ||
	    memcmp(x->type.dims, y->type.dims, x->type.ndim * sizeof(x->type.dims[0])))
		return nci_mistake(graph, -EINVAL, "recurrence: %s and %s differ in shape", left,
				   right);
	if (dim >= x->type.ndim)
		return nci_mistake(graph, -EINVAL, "recurrence: dim %u of %s, which has %u dims",
				   dim, left, x->type.ndim);
	if (x->type.dtype != NC_FP32 || y->type.dtype != NC_FP32)
		return nci_mistake(graph, -EOPNOTSUPP,
				   "recurrence: %s and %s; cast both to fp32, the only dtype", left,
				   right);
	node.type = x->type;
	node.axes = 1u << dim;
	return nci_add_node(graph, &node);
}
