// SPDX-License-Identifier: Apache-2.0
//
// Values of a graph under construction, so that an operator reads like its formula. Mistakes are kept
// by the graph and reported by nc_compile(), so nothing here checks.
#pragma once

#include <cstdint>
#include <initializer_list>

#include <c10/core/ScalarType.h>
#include <c10/util/ArrayRef.h>
#include <c10/util/SmallVector.h>

#include <neuron_compiler.h>

namespace neuron {

struct V {
  nc_graph *graph = nullptr;
  nc_value id = 0;

  struct nc_type type() const { return nc_type_of(graph, id); }

  bool isFloat() const
  {
    const auto dtype = type().dtype;
    return dtype == NC_FP32 || dtype == NC_BF16 || dtype == NC_FP16 || dtype == NC_FP64;
  }

  // A constant of this value's dtype, rounded to it; formulas compute in fp32, fp64 or integers.
  V constant(double value) const
  {
    const auto dtype = type().dtype;
    if (dtype == NC_FP32)
      value = static_cast<float>(value);
    return {graph,
            isFloat() ? nc_const_float(graph, dtype, value) : nc_const_int(graph, dtype, static_cast<int64_t>(value))};
  }
};

inline V unary(nc_unary_op op, V x)
{
  return {x.graph, nc_unary(x.graph, op, x.id)};
}

inline V binary(nc_binary_op op, V a, V b)
{
  return {a.graph, nc_binary(a.graph, op, a.id, b.id)};
}

inline V cast(V x, nc_dtype dtype)
{
  return x.type().dtype == dtype ? x : V{x.graph, nc_cast(x.graph, x.id, dtype)};
}

inline V select(V condition, V a, V b)
{
  return {condition.graph, nc_select(condition.graph, condition.id, a.id, b.id)};
}

inline V reduce(nc_reduce_op op, V x, uint32_t axes, bool keep)
{
  return axes ? V{x.graph, nc_reduce(x.graph, op, x.id, axes, keep)} : x;
}

inline V matmul(V a, V b)
{
  return {a.graph, nc_matmul(a.graph, a.id, b.id)};
}

inline V reshape(V x, c10::ArrayRef<int64_t> dims)
{
  return {x.graph, nc_reshape(x.graph, x.id, static_cast<uint32_t>(dims.size()), dims.data())};
}

inline V broadcast(V x, c10::ArrayRef<int64_t> dims)
{
  return {x.graph, nc_broadcast(x.graph, x.id, static_cast<uint32_t>(dims.size()), dims.data())};
}

inline V permute(V x, c10::ArrayRef<uint32_t> order)
{
  return {x.graph, nc_permute(x.graph, x.id, order.data())};
}

inline V take(V x, uint32_t dim, V index)
{
  return {x.graph, nc_take(x.graph, x.id, dim, index.id)};
}

inline V put(nc_put_op op, V x, uint32_t dim, V index, V rows)
{
  return {x.graph, nc_put(x.graph, op, x.id, dim, index.id, rows.id)};
}

inline V scan(nc_reduce_op op, V x, uint32_t dim)
{
  return {x.graph, nc_scan(x.graph, op, x.id, dim)};
}

// Index along dim in the shape dims.
V iota(nc_graph *graph, nc_dtype dtype, c10::ArrayRef<int64_t> dims, uint32_t dim);

inline V operator+(V a, V b)
{
  return binary(NC_ADD, a, b);
}

inline V operator-(V a, V b)
{
  return binary(NC_SUB, a, b);
}

inline V operator*(V a, V b)
{
  return binary(NC_MUL, a, b);
}

// Where x is extreme, the largest or the least of some of which it is one; of floats, where it is NaN, too.
inline V isExtreme(V x, V extreme)
{
  const V equal = binary(NC_EQ, x, extreme);
  return x.isFloat() ? binary(NC_OR, equal, binary(NC_NE, x, x)) : equal;
}

inline V operator/(V a, V b)
{
  return binary(NC_DIV, a, b);
}

inline V operator+(V a, double b)
{
  return a + a.constant(b);
}

inline V operator-(double a, V b)
{
  return b.constant(a) - b;
}

inline V operator*(V a, double b)
{
  return a * a.constant(b);
}

// PyTorch's dtype as the compiler's; 0 when it has none.
nc_dtype ncDtype(c10::ScalarType type);

bool hasDtype(c10::ScalarType type);

// Floats of up to 32 bits, which the compiler computes in fp32.
inline bool isShortFloat(c10::ScalarType type)
{
  return type == c10::ScalarType::Float || type == c10::ScalarType::BFloat16 || type == c10::ScalarType::Half;
}

// For moving bits: the type itself, or one of the compiler's with elements of as many bytes.
c10::ScalarType carrier(c10::ScalarType type);

// The type in which PyTorch computes: fp32 for half types, int32 for small integers.
c10::ScalarType computeType(c10::ScalarType type);

}  // namespace neuron
