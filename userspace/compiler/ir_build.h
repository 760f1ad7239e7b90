/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Building a graph: what the files of shape rules (ir*.c) share. Each call checks its operands; the
 * first mistake stays, and after it every function here does nothing.
 */
#ifndef NC_IR_BUILD_H
#define NC_IR_BUILD_H

#include "ir.h"

#define TYPE_TEXT 160 /* bytes of a type in a message */

/* Keeps the graph's first mistake; returns 0, no value. */
nc_value nci_mistake(nc_graph *graph, int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Value of a new node; 0 after a mistake. */
nc_value nci_add_node(nc_graph *graph, const struct node *node);
/* The node of a value, NULL (and a mistake) if there is none. op: who asks. */
const struct node *nci_operand(nc_graph *graph, nc_value value, const char *op);
/* Whether a type is one that a tensor may have; else a mistake. */
bool nci_check_type(nc_graph *graph, const struct nc_type *type, const char *op);
void nci_set_dims(struct nc_type *type, uint32_t ndim, const int64_t *dims);
/* NumPy broadcasting of b into type. */
bool nci_broadcast_into(struct nc_type *type, const struct nc_type *b);
/* Whether the tensor engine multiplies the dtype. */
bool nci_matmul_dtype(nc_dtype dtype);

#endif /* NC_IR_BUILD_H */
