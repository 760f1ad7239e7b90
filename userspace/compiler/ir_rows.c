/* SPDX-License-Identifier: Apache-2.0 */
/* Building a graph: rows by index. */
#include <errno.h>
#include <string.h>

#include "ir_build.h"

/* Checks dim and index of x, and makes the type of its rows: x's with dims of the index in place of dim. */
static bool rows_type(nc_graph *graph, const char *op, const struct nc_type *x, uint32_t dim,
		      const struct nc_type *index, struct nc_type *type)
{
	char tx[TYPE_TEXT], ti[TYPE_TEXT];

	nci_type_text(x, tx, sizeof(tx));
	nci_type_text(index, ti, sizeof(ti));
	if (dim >= x->ndim) {
		nci_mistake(graph, -EINVAL, "%s: dim %u of %s, which has %u dims", op, dim, tx,
			    x->ndim);
		return false;
	}
	if (index->dtype != NC_INT32 && index->dtype != NC_INT64) {
		nci_mistake(graph, -EOPNOTSUPP, "%s: index %s of %s; int32 and int64 are possible",
			    op, ti, tx);
		return false;
	}
	if (x->dims[dim] > INT32_MAX) {
		nci_mistake(graph, -EOPNOTSUPP, "%s: dim %u of %s; at most %d rows are possible",
			    op, dim, tx, INT32_MAX);
		return false;
	}
	if (x->ndim - 1 + index->ndim > NC_DIMS_MAX) {
		nci_mistake(graph, -EINVAL,
			    "%s: rows of %s by %s have %u dims, at most %d are possible", op, tx,
			    ti, x->ndim - 1 + index->ndim, NC_DIMS_MAX);
		return false;
	}
	*type = *x;
	type->ndim = x->ndim - 1 + index->ndim;
	memcpy(type->dims + dim, index->dims, index->ndim * sizeof(index->dims[0]));
	memcpy(type->dims + dim + index->ndim, x->dims + dim + 1,
	       (x->ndim - 1 - dim) * sizeof(x->dims[0]));
	return nci_check_type(graph, type, op);
}

/* The index with one dim. */
static nc_value flat_index(nc_graph *graph, nc_value index, const struct nc_type *type)
{
	int64_t n = nci_elems(type->ndim, type->dims);

	return type->ndim == 1 ? index : nc_reshape(graph, index, 1, &n);
}

nc_value nc_take(nc_graph *graph, nc_value x, uint32_t dim, nc_value index)
{
	const struct node *nx = nci_operand(graph, x, "take"),
			  *ni = nci_operand(graph, index, "take");
	struct node node = { .kind = N_TAKE, .dim = dim };
	struct nc_type type, ti;
	nc_value rows;

	if (!nx || !ni || !rows_type(graph, "take", &nx->type, dim, &ni->type, &type))
		return 0;
	ti = ni->type;
	node.type = nx->type;
	node.type.dims[dim] = nci_elems(ti.ndim, ti.dims);
	node.src[0] = x;
	node.src[1] = flat_index(graph, index, &ti);
	rows = nci_add_node(graph, &node);
	return ti.ndim == 1 ? rows : nc_reshape(graph, rows, type.ndim, type.dims);
}

static bool put_has(nc_put_op op, nc_dtype dtype)
{
	return op == NC_PUT_COPY || nci_matmul_dtype(dtype) || dtype == NC_INT32;
}

nc_value nc_put(nc_graph *graph, nc_put_op op, nc_value x, uint32_t dim, nc_value index,
		nc_value rows)
{
	const char *name = op == NC_PUT_ADD ? "put_add" : "put";
	const struct node *nx = nci_operand(graph, x, name), *ni = nci_operand(graph, index, name);
	const struct node *nr = nci_operand(graph, rows, name);
	struct node node = { .kind = N_PUT, .op = op, .dim = dim };
	char tx[TYPE_TEXT], tr[TYPE_TEXT], tw[TYPE_TEXT];
	struct nc_type type, ti;

	if (!nx || !ni || !nr)
		return 0;
	if ((unsigned int)op >= NC_PUT_OPS)
		return nci_mistake(graph, -EINVAL, "put: unknown operation %u, there are %u",
				   (unsigned int)op, (unsigned int)NC_PUT_OPS);
	if (!rows_type(graph, name, &nx->type, dim, &ni->type, &type))
		return 0;
	nci_type_text(&nx->type, tx, sizeof(tx));
	nci_type_text(&nr->type, tr, sizeof(tr));
	if (nr->type.dtype != type.dtype || nr->type.ndim != type.ndim ||
	    memcmp(nr->type.dims, type.dims, type.ndim * sizeof(type.dims[0])))
		return nci_mistake(graph, -EINVAL, "%s: rows %s into %s; wanted is %s", name, tr,
				   tx, nci_type_text(&type, tw, sizeof(tw)));
	if (!put_has(op, type.dtype))
		return nci_mistake(graph, -EOPNOTSUPP,
				   "%s: %s; transfers add fp32, bf16, fp16 and int32", name, tx);
	ti = ni->type;
	node.type = nx->type;
	node.src[0] = x;
	node.src[1] = flat_index(graph, index, &ti);
	node.src[2] = rows;
	if (ti.ndim != 1) {
		type = node.type;
		type.dims[dim] = nci_elems(ti.ndim, ti.dims);
		node.src[2] = nc_reshape(graph, rows, type.ndim, type.dims);
	}
	return nci_add_node(graph, &node);
}
