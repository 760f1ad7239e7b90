/* SPDX-License-Identifier: Apache-2.0 */
/* Building a graph: convolutions. */
#include <errno.h>
#include <string.h>

#include "ir_build.h"

static bool conv_sane(nc_graph *graph, const struct nc_conv2d *conv, const char *op)
{
	for (int i = 0; i < 2; i++) {
		if (conv->stride[i] < 1 || conv->stride[i] > UINT16_MAX || conv->padding[i] < 0 ||
		    conv->padding[i] > UINT16_MAX || conv->dilation[i] < 1 ||
		    conv->dilation[i] > UINT16_MAX) {
			nci_mistake(graph, -EINVAL,
				    "%s: stride %lld, padding %lld, dilation %lld of dim %d out of "
				    "range",
				    op, (long long)conv->stride[i], (long long)conv->padding[i],
				    (long long)conv->dilation[i], i);
			return false;
		}
	}
	return true;
}

/* Type of the result of x (*) w; dtype 0 when they do not fit. */
static struct nc_type conv_result(const struct nc_type *x, const struct nc_type *w,
				  const struct nc_conv2d *conv)
{
	struct nc_type y = { .dtype = (nc_dtype)0 };

	if (x->ndim != 4 || w->ndim != 4 || x->dtype != w->dtype || conv->groups < 1 ||
	    x->dims[1] % conv->groups || w->dims[0] % conv->groups ||
	    x->dims[1] / conv->groups != w->dims[1])
		return y;
	nci_set_dims(&y, 4, x->dims);
	y.dims[1] = w->dims[0];
	for (int i = 0; i < 2; i++) {
		int64_t padded = x->dims[2 + i] + 2 * conv->padding[i];
		int64_t window = conv->dilation[i] * (w->dims[2 + i] - 1) + 1;

		if (window > padded)
			return y;
		y.dims[2 + i] = (padded - window) / conv->stride[i] + 1;
	}
	y.dtype = x->dtype;
	return y;
}

static nc_value add_conv(nc_graph *graph, enum node_kind kind, nc_value a, nc_value b,
			 const struct nc_type *type, const struct nc_conv2d *conv,
			 const struct nc_type *x, const struct nc_type *w, const struct nc_type *dy)
{
	struct node node = { .kind = kind, .src = { a, b }, .conv = *conv };
	const char *op = nci_kind_name(kind);
	char tx[TYPE_TEXT], tw[TYPE_TEXT], ty[TYPE_TEXT];
	struct nc_type y;

	nci_type_text(x, tx, sizeof(tx));
	nci_type_text(w, tw, sizeof(tw));
	if (!conv_sane(graph, conv, op))
		return 0;
	y = conv_result(x, w, conv);
	if (!y.dtype)
		return nci_mistake(graph, -EINVAL, "%s: x %s, w %s with %lld groups do not fit", op,
				   tx, tw, (long long)conv->groups);
	if (!nci_matmul_dtype(x->dtype))
		return nci_mistake(graph, -EOPNOTSUPP,
				   "%s: x %s, w %s; the tensor engine takes fp32, bf16 and fp16",
				   op, tx, tw);
	if (dy && (dy->dtype != y.dtype || dy->ndim != 4 ||
		   memcmp(dy->dims, y.dims, 4 * sizeof(y.dims[0]))))
		return nci_mistake(graph, -EINVAL,
				   "%s: dy is %s but the result of x %s, w %s is not", op,
				   nci_type_text(dy, ty, sizeof(ty)), tx, tw);
	node.type = type ? *type : y;
	if (!nci_check_type(graph, &node.type, op))
		return 0;
	return nci_add_node(graph, &node);
}

nc_value nc_conv2d(nc_graph *graph, nc_value x, nc_value w, const struct nc_conv2d *conv)
{
	const struct node *nx = nci_operand(graph, x, "conv2d"),
			  *nw = nci_operand(graph, w, "conv2d");

	if (!nx || !nw)
		return 0;
	return add_conv(graph, N_CONV, x, w, NULL, conv, &nx->type, &nw->type, NULL);
}

nc_value nc_conv2d_grad_x(nc_graph *graph, nc_value dy, nc_value w, const struct nc_type *x_type,
			  const struct nc_conv2d *conv)
{
	const struct node *ny = nci_operand(graph, dy, "conv2d_grad_x"),
			  *nw = nci_operand(graph, w, "conv2d_grad_x");

	if (!ny || !nw || !nci_check_type(graph, x_type, "conv2d_grad_x"))
		return 0;
	return add_conv(graph, N_CONV_GRAD_X, dy, w, x_type, conv, x_type, &nw->type, &ny->type);
}

nc_value nc_conv2d_grad_w(nc_graph *graph, nc_value dy, nc_value x, const struct nc_type *w_type,
			  const struct nc_conv2d *conv)
{
	const struct node *ny = nci_operand(graph, dy, "conv2d_grad_w"),
			  *nx = nci_operand(graph, x, "conv2d_grad_w");

	if (!ny || !nx || !nci_check_type(graph, w_type, "conv2d_grad_w"))
		return 0;
	return add_conv(graph, N_CONV_GRAD_W, dy, x, w_type, conv, &nx->type, w_type, &ny->type);
}
