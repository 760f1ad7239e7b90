/* SPDX-License-Identifier: Apache-2.0 */
/* Building a graph: every call checks its operands; the first mistake stays. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir_build.h"

nc_graph *nc_graph_create(const char *name)
{
	nc_graph *graph = calloc(1, sizeof(*graph));

	if (!graph)
		return NULL;
	snprintf(graph->name, sizeof(graph->name), "%s", name ? name : "");
	graph->n_nodes = 1;
	return graph;
}

void nc_graph_destroy(nc_graph *graph)
{
	if (!graph)
		return;
	free(graph->nodes);
	free(graph->outputs);
	free(graph->slots);
	free(graph);
}

nc_value nci_mistake(nc_graph *graph, int err, const char *format, ...)
{
	va_list args;

	if (graph->err)
		return 0;
	graph->err = err;
	va_start(args, format);
	vsnprintf(graph->error, sizeof(graph->error), format, args);
	va_end(args);
	return 0;
}

static bool grow(nc_graph *graph, void **array, uint32_t *cap, uint32_t need, size_t elem)
{
	uint32_t new_cap = *cap ? *cap * 2 : 16;
	void *p;

	if (need <= *cap)
		return true;
	p = realloc(*array, new_cap * elem);
	if (!p) {
		nci_mistake(graph, -ENOMEM, "%s: out of memory while building the graph",
			    graph->name);
		return false;
	}
	*array = p;
	*cap = new_cap;
	return true;
}

nc_value nci_add_node(nc_graph *graph, const struct node *node)
{
	if (graph->err)
		return 0;
	if (!grow(graph, (void **)&graph->nodes, &graph->cap_nodes, graph->n_nodes + 1,
		  sizeof(*node)))
		return 0;
	graph->nodes[graph->n_nodes] = *node;
	return graph->n_nodes++;
}

static bool add_slot(nc_graph *graph, bool is_output, uint32_t index)
{
	if (!grow(graph, (void **)&graph->slots, &graph->cap_slots, graph->n_slots + 1,
		  sizeof(*graph->slots)))
		return false;
	graph->slots[graph->n_slots++] = (struct slot_decl){ is_output, index };
	return true;
}

const struct node *nci_operand(nc_graph *graph, nc_value value, const char *op)
{
	if (graph->err)
		return NULL;
	if (!value || value >= graph->n_nodes) {
		nci_mistake(graph, -EINVAL,
			    "%s: operand is value %u, but the graph has values 1 to %u", op, value,
			    graph->n_nodes - 1);
		return NULL;
	}
	return &graph->nodes[value];
}

bool nci_check_type(nc_graph *graph, const struct nc_type *type, const char *op)
{
	int64_t n = 1;

	if (graph->err)
		return false;
	if (!nci_dtype_bytes(type->dtype)) {
		nci_mistake(graph, -EINVAL, "%s: unknown dtype 0x%x", op,
			    (unsigned int)type->dtype);
		return false;
	}
	if (type->ndim > NC_DIMS_MAX) {
		nci_mistake(graph, -EINVAL, "%s: %u dims, at most %d are possible", op, type->ndim,
			    NC_DIMS_MAX);
		return false;
	}
	for (uint32_t i = 0; i < type->ndim; i++) {
		if (type->dims[i] < 1 || type->dims[i] > NCI_ELEMS_MAX / n) {
			nci_mistake(graph, -EINVAL,
				    "%s: dim %u is %lld; it must be at least 1 and the tensor "
				    "have at most 2^44 elements",
				    op, i, (long long)type->dims[i]);
			return false;
		}
		n *= type->dims[i];
	}
	return true;
}

static bool check_strides(nc_graph *graph, const struct nc_type *type, const int64_t *strides,
			  const char *op)
{
	int64_t room = NCI_ELEMS_MAX;

	for (uint32_t i = 0; i < type->ndim; i++) {
		int64_t steps = type->dims[i] - 1;

		if (strides[i] < 0 || (steps && strides[i] > room / steps)) {
			nci_mistake(graph, -EINVAL,
				    "%s: stride %lld of dim %u; strides must not be negative and "
				    "the tensor span at most 2^44 elements",
				    op, (long long)strides[i], i);
			return false;
		}
		room -= steps * strides[i];
	}
	return true;
}

void nci_set_dims(struct nc_type *type, uint32_t ndim, const int64_t *dims)
{
	type->ndim = ndim;
	for (uint32_t i = 0; i < ndim && i < NC_DIMS_MAX; i++)
		type->dims[i] = dims[i];
}

nc_value nc_input(nc_graph *graph, const struct nc_type *type, const int64_t *strides)
{
	struct node node = { .kind = N_INPUT, .type = *type, .slot = graph->n_slots };

	if (!nci_check_type(graph, type, "input"))
		return 0;
	if (strides)
		memcpy(node.strides, strides, type->ndim * sizeof(*strides));
	else
		nci_row_major(type->ndim, type->dims, node.strides);
	if (!check_strides(graph, type, node.strides, "input") ||
	    !add_slot(graph, false, graph->n_nodes))
		return 0;
	return nci_add_node(graph, &node);
}

nc_value nc_scalar(nc_graph *graph, nc_dtype dtype)
{
	struct node node = { .kind = N_SCALAR, .type = { .dtype = dtype }, .slot = graph->n_slots };

	if (!nci_check_type(graph, &node.type, "scalar") || !add_slot(graph, false, graph->n_nodes))
		return 0;
	return nci_add_node(graph, &node);
}

static bool fp16_has(double value)
{
	int exp;
	double m = frexp(value, &exp);

	if (fabs(value) > 65504)
		return false;
	if (exp < -13) /* subnormal: a multiple of 2^-24 */
		return ldexp(value, 24) == trunc(ldexp(value, 24));
	return ldexp(m, 11) == trunc(ldexp(m, 11));
}

static bool float_has(nc_dtype dtype, double value)
{
	float f = (float)value;
	uint32_t bits;

	if (dtype == NC_FP64 || isnan(value) || isinf(value))
		return true;
	if (dtype == NC_FP16)
		return fp16_has(value);
	memcpy(&bits, &f, sizeof(bits));
	return (double)f == value && (dtype == NC_FP32 || !(bits & 0xffff));
}

nc_value nc_const_float(nc_graph *graph, nc_dtype dtype, double value)
{
	struct node node = { .kind = N_CONST, .type = { .dtype = dtype } };
	float f = (float)value;

	if (!nci_check_type(graph, &node.type, "const"))
		return 0;
	if (!nci_is_float(dtype))
		return nci_mistake(graph, -EINVAL,
				   "const: nc_const_float with dtype %s; use nc_const_int",
				   nci_dtype_name(dtype));
	if (!float_has(dtype, value))
		return nci_mistake(graph, -EINVAL,
				   "const: %.17g is not a value of %s; round it first", value,
				   nci_dtype_name(dtype));
	if (dtype == NC_FP64)
		memcpy(&node.bits, &value, sizeof(value));
	else
		memcpy(&node.bits, &f, sizeof(f));
	return nci_add_node(graph, &node);
}

static bool int_has(nc_dtype dtype, int64_t value)
{
	switch (dtype) {
	case NC_BOOL:
		return value == 0 || value == 1;
	case NC_INT8:
		return value == (int8_t)value;
	case NC_UINT8:
		return value == (uint8_t)value;
	case NC_INT16:
		return value == (int16_t)value;
	case NC_INT32:
		return value == (int32_t)value;
	default:
		return true;
	}
}

nc_value nc_const_int(nc_graph *graph, nc_dtype dtype, int64_t value)
{
	struct node node = { .kind = N_CONST, .type = { .dtype = dtype }, .bits = (uint64_t)value };

	if (!nci_check_type(graph, &node.type, "const"))
		return 0;
	if (nci_is_float(dtype))
		return nci_mistake(graph, -EINVAL,
				   "const: nc_const_int with dtype %s; use nc_const_float",
				   nci_dtype_name(dtype));
	if (!int_has(dtype, value))
		return nci_mistake(graph, -EINVAL, "const: %lld is out of the range of %s",
				   (long long)value, nci_dtype_name(dtype));
	return nci_add_node(graph, &node);
}

nc_value nc_iota(nc_graph *graph, const struct nc_type *type, uint32_t dim)
{
	struct node node = { .kind = N_IOTA, .type = *type, .dim = dim };
	char text[TYPE_TEXT];
	int64_t n;

	if (!nci_check_type(graph, type, "iota"))
		return 0;
	if (dim >= type->ndim && dim != NC_ALL_DIMS)
		return nci_mistake(graph, -EINVAL, "iota: dim %u of %s", dim,
				   nci_type_text(type, text, sizeof(text)));
	n = dim == NC_ALL_DIMS ? nci_elems(type->ndim, type->dims) : type->dims[dim];
	if (type->dtype == NC_BOOL || type->dtype == NC_BF16 || type->dtype == NC_FP16)
		return nci_mistake(graph, -EOPNOTSUPP,
				   "iota: dtype %s; integers, fp32 and fp64 are possible",
				   nci_dtype_name(type->dtype));
	if ((type->dtype == NC_FP32 && n > 1 << 24) || n > INT32_MAX ||
	    !int_has(type->dtype == NC_FP32 ? NC_INT32 : type->dtype, n - 1))
		return nci_mistake(graph, -EINVAL, "iota: index %lld is not exact in %s",
				   (long long)n - 1, nci_dtype_name(type->dtype));
	return nci_add_node(graph, &node);
}

/* Unary operations that are not for every floating-point type, or not for floats alone. */
static bool unary_has(nc_unary_op op, nc_dtype dtype)
{
	bool is_int = !nci_is_float(dtype);

	switch (op) {
	case NC_NEG:
	case NC_ABS:
	case NC_SIGN:
	case NC_SQUARE:
		return dtype != NC_BOOL;
	case NC_RELU:
		return dtype != NC_BOOL;
	case NC_NOT:
		return is_int;
	case NC_RECIPROCAL:
		return !is_int;
	default:
		return !is_int && dtype != NC_FP64;
	}
}

nc_value nc_unary(nc_graph *graph, nc_unary_op op, nc_value x)
{
	const struct node *src = nci_operand(graph, x, nci_unary_name(op));
	struct node node = { .kind = N_UNARY, .op = op, .src = { x } };
	char text[TYPE_TEXT];

	if (!src)
		return 0;
	if ((unsigned int)op >= NC_UNARY_OPS)
		return nci_mistake(graph, -EINVAL, "unary: unknown operation %u", (unsigned int)op);
	if (!unary_has(op, src->type.dtype))
		return nci_mistake(graph, -EOPNOTSUPP, "%s: not available for %s",
				   nci_unary_name(op),
				   nci_type_text(&src->type, text, sizeof(text)));
	node.type = src->type;
	return nci_add_node(graph, &node);
}

bool nci_broadcast_into(struct nc_type *type, const struct nc_type *b)
{
	uint32_t ndim = type->ndim > b->ndim ? type->ndim : b->ndim;
	int64_t dims[NC_DIMS_MAX];

	for (uint32_t i = 0; i < ndim; i++) {
		int64_t da = i < type->ndim ? type->dims[type->ndim - 1 - i] : 1;
		int64_t db = i < b->ndim ? b->dims[b->ndim - 1 - i] : 1;

		if (da != db && da != 1 && db != 1)
			return false;
		dims[ndim - 1 - i] = da > db ? da : db;
	}
	nci_set_dims(type, ndim, dims);
	return true;
}

static bool binary_has(nc_binary_op op, nc_dtype dtype)
{
	switch (op) {
	case NC_AND:
	case NC_OR:
	case NC_XOR:
		return !nci_is_float(dtype);
	case NC_SHL:
	case NC_SHR:
		return !nci_is_float(dtype) && dtype != NC_BOOL;
	case NC_LSR:
		return dtype == NC_INT32 || dtype == NC_INT64;
	case NC_SUB:
	case NC_DIV:
	case NC_POW:
	case NC_MOD:
		return dtype != NC_BOOL;
	default:
		return true;
	}
}

nc_value nc_binary(nc_graph *graph, nc_binary_op op, nc_value a, nc_value b)
{
	const struct node *na = nci_operand(graph, a, nci_binary_name(op));
	const struct node *nb = nci_operand(graph, b, nci_binary_name(op));
	struct node node = { .kind = N_BINARY, .op = op, .src = { a, b } };
	char ta[TYPE_TEXT], tb[TYPE_TEXT];

	if (!na || !nb)
		return 0;
	if ((unsigned int)op >= NC_BINARY_OPS)
		return nci_mistake(graph, -EINVAL, "binary: unknown operation %u",
				   (unsigned int)op);
	node.type = na->type;
	nci_type_text(&na->type, ta, sizeof(ta));
	nci_type_text(&nb->type, tb, sizeof(tb));
	if (na->type.dtype != nb->type.dtype)
		return nci_mistake(graph, -EINVAL,
				   "%s: operands %s and %s differ in dtype; cast one",
				   nci_binary_name(op), ta, tb);
	if (!nci_broadcast_into(&node.type, &nb->type))
		return nci_mistake(graph, -EINVAL, "%s: shapes %s and %s do not broadcast",
				   nci_binary_name(op), ta, tb);
	if (!binary_has(op, na->type.dtype))
		return nci_mistake(graph, -EOPNOTSUPP, "%s: not available for %s",
				   nci_binary_name(op), ta);
	if (nci_is_compare(op))
		node.type.dtype = NC_BOOL;
	if (!nci_check_type(graph, &node.type, nci_binary_name(op)))
		return 0;
	return nci_add_node(graph, &node);
}

nc_value nc_select(nc_graph *graph, nc_value cond, nc_value a, nc_value b)
{
	const struct node *nc = nci_operand(graph, cond, "select");
	const struct node *na = nci_operand(graph, a, "select");
	const struct node *nb = nci_operand(graph, b, "select");
	struct node node = { .kind = N_SELECT, .src = { cond, a, b } };
	char tc[TYPE_TEXT], ta[TYPE_TEXT], tb[TYPE_TEXT];

	if (!nc || !na || !nb)
		return 0;
	nci_type_text(&nc->type, tc, sizeof(tc));
	nci_type_text(&na->type, ta, sizeof(ta));
	nci_type_text(&nb->type, tb, sizeof(tb));
	node.type = na->type;
	if (nc->type.dtype != NC_BOOL)
		return nci_mistake(graph, -EINVAL, "select: condition %s must be bool", tc);
	if (na->type.dtype != nb->type.dtype)
		return nci_mistake(graph, -EINVAL, "select: operands %s and %s differ in dtype", ta,
				   tb);
	if (!nci_broadcast_into(&node.type, &nb->type) ||
	    !nci_broadcast_into(&node.type, &nc->type))
		return nci_mistake(graph, -EINVAL, "select: shapes %s, %s and %s do not broadcast",
				   tc, ta, tb);
	if (!nci_check_type(graph, &node.type, "select"))
		return 0;
	return nci_add_node(graph, &node);
}

nc_value nc_cast(nc_graph *graph, nc_value x, nc_dtype dtype)
{
	const struct node *src = nci_operand(graph, x, "cast");
	struct node node = { .kind = N_CAST, .src = { x } };

	if (!src)
		return 0;
	node.type = src->type;
	node.type.dtype = dtype;
	if (!nci_check_type(graph, &node.type, "cast"))
		return 0;
	return nci_add_node(graph, &node);
}

nc_value nc_reshape(nc_graph *graph, nc_value x, uint32_t ndim, const int64_t *dims)
{
	const struct node *src = nci_operand(graph, x, "reshape");
	struct node node = { .kind = N_RESHAPE, .src = { x } };
	char ta[TYPE_TEXT], tb[TYPE_TEXT];

	if (!src)
		return 0;
	node.type.dtype = src->type.dtype;
	nci_set_dims(&node.type, ndim, dims);
	if (!nci_check_type(graph, &node.type, "reshape"))
		return 0;
	if (nci_elems(ndim, dims) != nci_elems(src->type.ndim, src->type.dims))
		return nci_mistake(graph, -EINVAL,
				   "reshape: %s and %s differ in number of elements",
				   nci_type_text(&src->type, ta, sizeof(ta)),
				   nci_type_text(&node.type, tb, sizeof(tb)));
	return nci_add_node(graph, &node);
}

nc_value nc_permute(nc_graph *graph, nc_value x, const uint32_t *order)
{
	const struct node *src = nci_operand(graph, x, "permute");
	struct node node = { .kind = N_PERMUTE, .src = { x } };
	uint32_t seen = 0;

	if (!src)
		return 0;
	node.type = src->type;
	for (uint32_t i = 0; i < src->type.ndim; i++) {
		if (order[i] >= src->type.ndim || (seen >> order[i] & 1))
			return nci_mistake(graph, -EINVAL,
					   "permute: order[%u] = %u of %u dims, each may stand "
					   "once",
					   i, order[i], src->type.ndim);
		seen |= 1u << order[i];
		node.order[i] = order[i];
		node.type.dims[i] = src->type.dims[order[i]];
	}
	return nci_add_node(graph, &node);
}

nc_value nc_broadcast(nc_graph *graph, nc_value x, uint32_t ndim, const int64_t *dims)
{
	const struct node *src = nci_operand(graph, x, "broadcast");
	struct node node = { .kind = N_BROADCAST, .src = { x } };
	char ta[TYPE_TEXT], tb[TYPE_TEXT];
	struct nc_type both;

	if (!src)
		return 0;
	node.type.dtype = src->type.dtype;
	nci_set_dims(&node.type, ndim, dims);
	if (!nci_check_type(graph, &node.type, "broadcast"))
		return 0;
	both = node.type;
	if (src->type.ndim > ndim || !nci_broadcast_into(&both, &src->type) ||
	    memcmp(both.dims, node.type.dims, ndim * sizeof(*dims)))
		return nci_mistake(graph, -EINVAL, "broadcast: %s does not broadcast to %s",
				   nci_type_text(&src->type, ta, sizeof(ta)),
				   nci_type_text(&node.type, tb, sizeof(tb)));
	return nci_add_node(graph, &node);
}

nc_value nc_reduce(nc_graph *graph, nc_reduce_op op, nc_value x, uint32_t axes, bool keep)
{
	const struct node *src = nci_operand(graph, x, nci_reduce_name(op));
	struct node node = { .kind = N_REDUCE, .op = op, .src = { x }, .axes = axes, .keep = keep };

	if (!src)
		return 0;
	if ((unsigned int)op >= NC_REDUCE_OPS)
		return nci_mistake(graph, -EINVAL, "reduce: unknown operation %u",
				   (unsigned int)op);
	if (axes >> src->type.ndim)
		return nci_mistake(graph, -EINVAL, "%s: axes 0x%x of %u dims", nci_reduce_name(op),
				   axes, src->type.ndim);
	node.type.dtype = src->type.dtype;
	for (uint32_t i = 0; i < src->type.ndim; i++) {
		if (!(axes >> i & 1))
			node.type.dims[node.type.ndim++] = src->type.dims[i];
		else if (keep)
			node.type.dims[node.type.ndim++] = 1;
	}
	return nci_add_node(graph, &node);
}

bool nci_matmul_dtype(nc_dtype dtype)
{
	return dtype == NC_FP32 || dtype == NC_BF16 || dtype == NC_FP16;
}

nc_value nc_matmul(nc_graph *graph, nc_value a, nc_value b)
{
	const struct node *na = nci_operand(graph, a, "matmul"),
			  *nb = nci_operand(graph, b, "matmul");
	struct node node = { .kind = N_MATMUL, .src = { a, b } };
	struct nc_type batch, batch_b;
	char ta[TYPE_TEXT], tb[TYPE_TEXT];
	uint32_t da, db;

	if (!na || !nb)
		return 0;
	nci_type_text(&na->type, ta, sizeof(ta));
	nci_type_text(&nb->type, tb, sizeof(tb));
	da = na->type.ndim;
	db = nb->type.ndim;
	if (da < 2 || db < 2 || na->type.dims[da - 1] != nb->type.dims[db - 2])
		return nci_mistake(graph, -EINVAL,
				   "matmul: %s x %s; wanted are [..., M, K] and [..., K, N]", ta,
				   tb);
	if (na->type.dtype != nb->type.dtype)
		return nci_mistake(graph, -EINVAL, "matmul: %s x %s differ in dtype", ta, tb);
	if (!nci_matmul_dtype(na->type.dtype))
		return nci_mistake(graph, -EOPNOTSUPP,
				   "matmul: %s x %s; the tensor engine takes fp32, bf16 and fp16",
				   ta, tb);
	batch = na->type;
	batch.ndim -= 2;
	batch_b = nb->type;
	batch_b.ndim -= 2;
	if (!nci_broadcast_into(&batch, &batch_b))
		return nci_mistake(graph, -EINVAL,
				   "matmul: leading dims of %s x %s do not broadcast", ta, tb);
	node.type = batch;
	node.type.dims[node.type.ndim++] = na->type.dims[da - 2];
	node.type.dims[node.type.ndim++] = nb->type.dims[db - 1];
	if (!nci_check_type(graph, &node.type, "matmul"))
		return 0;
	return nci_add_node(graph, &node);
}

/* --- results ------------------------------------------------------------------------------ */

static bool check_alias(nc_graph *graph, const struct nc_type *type, const int64_t *strides,
			uint32_t alias)
{
	const struct node *in;

	if (alias >= graph->n_slots || graph->slots[alias].is_output ||
	    graph->nodes[graph->slots[alias].index].kind != N_INPUT) {
		nci_mistake(graph, -EINVAL, "output: alias %u is not the slot of an input", alias);
		return false;
	}
	in = &graph->nodes[graph->slots[alias].index];
	if (in->type.dtype != type->dtype || in->type.ndim != type->ndim ||
	    memcmp(in->type.dims, type->dims, type->ndim * sizeof(type->dims[0])) ||
	    memcmp(in->strides, strides, type->ndim * sizeof(strides[0]))) {
		nci_mistake(graph, -EINVAL,
			    "output: alias %u differs from the output in dtype, shape or strides",
			    alias);
		return false;
	}
	return true;
}

void nc_output(nc_graph *graph, nc_value value, const int64_t *strides, uint32_t alias)
{
	const struct node *node = nci_operand(graph, value, "output");
	struct output out = { .value = value, .alias = alias, .slot = graph->n_slots };

	if (!node)
		return;
	if (strides)
		memcpy(out.strides, strides, node->type.ndim * sizeof(*strides));
	else
		nci_row_major(node->type.ndim, node->type.dims, out.strides);
	if (!check_strides(graph, &node->type, out.strides, "output"))
		return;
	for (uint32_t i = 0; i < node->type.ndim; i++)
		if (!out.strides[i] && node->type.dims[i] > 1) {
			nci_mistake(graph, -EINVAL,
				    "output: stride 0 of dim %u (%lld elements) writes them all "
				    "to one place",
				    i, (long long)node->type.dims[i]);
			return;
		}
	if (alias != NC_NO_ALIAS && !check_alias(graph, &node->type, out.strides, alias))
		return;
	if (!grow(graph, (void **)&graph->outputs, &graph->cap_outputs, graph->n_outputs + 1,
		  sizeof(out)) ||
	    !add_slot(graph, true, graph->n_outputs))
		return;
	graph->outputs[graph->n_outputs++] = out;
}

struct nc_type nc_type_of(const nc_graph *graph, nc_value value)
{
	struct nc_type none = { .dtype = (nc_dtype)0 };

	if (!value || value >= graph->n_nodes)
		return none;
	return graph->nodes[value].type;
}
