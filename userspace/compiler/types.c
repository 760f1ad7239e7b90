/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "ir.h"

struct dtype_info {
	const char *name;
	uint8_t bytes, isa, compute;
	bool is_float;
};

static const struct dtype_info dtypes[] = {
	[NC_INT8] = { "int8", 1, ISA_INT8, ISA_CT_I32, false },
	[NC_UINT8] = { "uint8", 1, ISA_UINT8, ISA_CT_I32, false },
	[NC_INT16] = { "int16", 2, ISA_INT16, ISA_CT_I32, false },
	[NC_BF16] = { "bf16", 2, ISA_BF16, ISA_CT_F32, true },
	[NC_FP16] = { "fp16", 2, ISA_FP16, ISA_CT_F32, true },
	[NC_INT32] = { "int32", 4, ISA_INT32, ISA_CT_I32, false },
	[NC_FP32] = { "fp32", 4, ISA_FP32, ISA_CT_F32, true },
	[NC_INT64] = { "int64", 8, ISA_INT64, ISA_CT_I64, false },
	[NC_FP64] = { "fp64", 8, ISA_FP64, ISA_CT_F64, true },
	[NC_BOOL] = { "bool", 1, ISA_UINT8, ISA_CT_I32, false },
};

static const struct dtype_info *info(nc_dtype dtype)
{
	static const struct dtype_info none = { "?", 0, 0, 0, false };

	if ((unsigned int)dtype >= sizeof(dtypes) / sizeof(dtypes[0]) || !dtypes[dtype].bytes)
		return &none;
	return &dtypes[dtype];
}

uint32_t nci_dtype_bytes(nc_dtype dtype)
{
	return info(dtype)->bytes;
}

const char *nci_dtype_name(nc_dtype dtype)
{
	return info(dtype)->name;
}

uint32_t nci_isa_dtype(nc_dtype dtype)
{
	return info(dtype)->isa;
}

uint32_t nci_compute_type(nc_dtype dtype)
{
	return info(dtype)->compute;
}

bool nci_is_float(nc_dtype dtype)
{
	return info(dtype)->is_float;
}

int64_t nci_elems(uint32_t ndim, const int64_t *dims)
{
	int64_t n = 1;

	for (uint32_t i = 0; i < ndim; i++)
		n *= dims[i];
	return n;
}

void nci_row_major(uint32_t ndim, const int64_t *dims, int64_t *strides)
{
	int64_t n = 1;

	for (uint32_t i = ndim; i-- > 0;) {
		strides[i] = n;
		n *= dims[i];
	}
}

const char *nci_type_text(const struct nc_type *type, char *text, size_t size)
{
	size_t n;

	n = (size_t)snprintf(text, size, "%s[", nci_dtype_name(type->dtype));
	for (uint32_t i = 0; i < type->ndim && i < NC_DIMS_MAX && n < size; i++)
		n += (size_t)snprintf(text + n, size - n, "%s%lld", i ? "," : "",
				      (long long)type->dims[i]);
	if (n < size)
		snprintf(text + n, size - n, "]");
	return text;
}

static const char *const unary_names[NC_UNARY_OPS] = {
	[NC_NEG] = "neg",
	[NC_ABS] = "abs",
	[NC_SIGN] = "sign",
	[NC_SQUARE] = "square",
	[NC_NOT] = "not",
	[NC_EXP] = "exp",
	[NC_LN] = "ln",
	[NC_SQRT] = "sqrt",
	[NC_RSQRT] = "rsqrt",
	[NC_RECIPROCAL] = "reciprocal",
	[NC_SIGMOID] = "sigmoid",
	[NC_TANH] = "tanh",
	[NC_RELU] = "relu",
	[NC_GELU] = "gelu",
	[NC_GELU_TANH] = "gelu_tanh",
	[NC_SILU] = "silu",
	[NC_SOFTPLUS] = "softplus",
	[NC_ERF] = "erf",
	[NC_SIN] = "sin",
	[NC_COS] = "cos",
	[NC_ARCTAN] = "arctan",
	[NC_LOG1P] = "log1p",
	[NC_EXPM1] = "expm1",
	[NC_MISH] = "mish",
	[NC_FLOOR] = "floor",
	[NC_CEIL] = "ceil",
	[NC_ROUND] = "round",
	[NC_TRUNC] = "trunc",
	[NC_DGELU] = "dgelu",
	[NC_DGELU_TANH] = "dgelu_tanh",
	[NC_DSILU] = "dsilu",
};

static const char *const binary_names[NC_BINARY_OPS] = {
	[NC_ADD] = "add", [NC_SUB] = "sub", [NC_MUL] = "mul", [NC_DIV] = "div", [NC_MAX] = "max",
	[NC_MIN] = "min", [NC_POW] = "pow", [NC_MOD] = "mod", [NC_EQ] = "eq",	[NC_NE] = "ne",
	[NC_LT] = "lt",	  [NC_LE] = "le",   [NC_GT] = "gt",   [NC_GE] = "ge",	[NC_AND] = "and",
	[NC_OR] = "or",	  [NC_XOR] = "xor", [NC_SHL] = "shl", [NC_SHR] = "shr", [NC_LSR] = "lsr",
};

static const char *const reduce_names[NC_REDUCE_OPS] = {
	[NC_REDUCE_SUM] = "reduce_sum",
	[NC_REDUCE_PROD] = "reduce_prod",
	[NC_REDUCE_MAX] = "reduce_max",
	[NC_REDUCE_MIN] = "reduce_min",
};

static const char *const scan_names[NC_REDUCE_OPS] = {
	[NC_REDUCE_SUM] = "scan_sum",
	[NC_REDUCE_PROD] = "scan_prod",
	[NC_REDUCE_MAX] = "scan_max",
	[NC_REDUCE_MIN] = "scan_min",
};

static const char *const kind_names[] = {
	[N_INPUT] = "input",
	[N_SCALAR] = "scalar",
	[N_CONST] = "const",
	[N_IOTA] = "iota",
	[N_UNARY] = "unary",
	[N_BINARY] = "binary",
	[N_SELECT] = "select",
	[N_CAST] = "cast",
	[N_RESHAPE] = "reshape",
	[N_PERMUTE] = "permute",
	[N_BROADCAST] = "broadcast",
	[N_REDUCE] = "reduce",
	[N_SCAN] = "scan",
	[N_RECURRENCE] = "recurrence",
	[N_MATMUL] = "matmul",
	[N_CONV] = "conv2d",
	[N_CONV_GRAD_X] = "conv2d_grad_x",
	[N_CONV_GRAD_W] = "conv2d_grad_w",
	[N_ATTENTION] = "attention",
	[N_ATTENTION_LSE] = "attention_lse",
	[N_ATTENTION_GRAD] = "attention_grad",
	[N_ATTENTION_GRAD_K] = "attention_grad_k",
	[N_ATTENTION_GRAD_V] = "attention_grad_v",
	[N_TAKE] = "take",
	[N_PUT] = "put",
	[N_COPY] = "copy",
};

const char *nci_unary_name(uint32_t op)
{
	return op < NC_UNARY_OPS ? unary_names[op] : "?";
}

const char *nci_binary_name(uint32_t op)
{
	return op < NC_BINARY_OPS ? binary_names[op] : "?";
}

const char *nci_reduce_name(uint32_t op)
{
	return op < NC_REDUCE_OPS ? reduce_names[op] : "?";
}

const char *nci_scan_name(uint32_t op)
{
	return op < NC_REDUCE_OPS ? scan_names[op] : "?";
}

const char *nci_kind_name(enum node_kind kind)
{
	return kind_names[kind];
}

const char *nci_node_name(const struct node *node)
{
	switch (node->kind) {
	case N_UNARY:
		return nci_unary_name(node->op);
	case N_BINARY:
		return nci_binary_name(node->op);
	case N_REDUCE:
		return nci_reduce_name(node->op);
	case N_PUT:
		return node->op == NC_PUT_ADD ? "put_add" : "put";
	case N_SCAN:
		return nci_scan_name(node->op);
	default:
		return nci_kind_name(node->kind);
	}
}
