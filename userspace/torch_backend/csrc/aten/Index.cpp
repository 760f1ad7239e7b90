// SPDX-License-Identifier: Apache-2.0
//
// Joining, triangles, gathering and scattering, comparison as a whole.
#include "Ops.h"

#include <ATen/ScalarOps.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/all.h>
#include <ATen/ops/cat_ops.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/equal_ops.h>
#include <ATen/ops/eye_ops.h>
#include <ATen/ops/gather_ops.h>
#include <ATen/ops/scatter_add_ops.h>
#include <ATen/ops/scatter_ops.h>
#include <ATen/ops/tril_ops.h>
#include <ATen/ops/triu_ops.h>

namespace neuron {
namespace {

using at::Tensor;

Tensor &cat(const at::ITensorListRef &tensors, int64_t dim, Tensor &out)
{
  const auto list = tensors.materialize();
  int64_t at = 0;
  // Legacy: 1-D empty tensors are skipped whatever the shape of the others.
  const auto skipped = [](const Tensor &t) { return t.dim() == 1 && t.size(0) == 0; };
  const Tensor *like = nullptr;
  int64_t length = 0;
  for (const Tensor &tensor : list) {
    if (skipped(tensor))
      continue;
    like = like ? like : &tensor;
    length += tensor.size(at::maybe_wrap_dim(dim, tensor.dim()));
  }
  if (!like)
    return out;
  const auto axis = at::maybe_wrap_dim(dim, like->dim());
  at::DimVector shape(like->sizes().begin(), like->sizes().end());
  shape[axis] = length;
  at::native::resize_output(out, shape);
  for (const Tensor &tensor : list) {
    if (skipped(tensor))
      continue;
    out.narrow(axis, at, tensor.size(axis)).copy_(tensor);
    at += tensor.size(axis);
  }
  return out;
}

Tensor &triangle(const char *name, nc_binary_op keep, const Tensor &self, int64_t diagonal, Tensor &out)
{
  at::native::resize_output(out, self.sizes());
  if (out.numel() == 0)
    return out;
  const auto type = computeType(self.scalar_type());
  Op op(name, self.device().index());
  op.input(self);
  op.scalar(diagonal, at::kInt);
  op.output(out);
  op.run([&](Graph &graph) {
    const auto n = static_cast<uint32_t>(self.dim());
    const V row = iota(graph.raw(), NC_INT32, self.sizes(), n - 2);
    const V column = iota(graph.raw(), NC_INT32, self.sizes(), n - 1);
    const V x = graph.in(0, type);
    graph.out(0, select(binary(keep, column - row, graph.in(1)), x, x.constant(0)));
  });
  return out;
}

Tensor &tril(const Tensor &self, int64_t diagonal, Tensor &out)
{
  return triangle("tril", NC_LE, self, diagonal, out);
}

Tensor &triu(const Tensor &self, int64_t diagonal, Tensor &out)
{
  return triangle("triu", NC_GE, self, diagonal, out);
}

// --- gather and scatter of one index a row, by comparison with an iota: what class labels and the
// gradients of extremes need. An index out of range selects nothing; PyTorch's CPU backend raises.

void requireSingle(const Tensor &self, const Tensor &index, int64_t dim)
{
  if (self.dim() == 0 || index.dim() != self.dim() || index.scalar_type() != at::kLong || self.numel() == 0)
    throw NotNative("index of another shape");
  for (int64_t d = 0; d < self.dim(); d++)
    if (index.size(d) != (d == dim ? 1 : self.size(d)))
      throw NotNative("more than one index a row");
}

// Where self's place along dim is the one that index names.
V chosen(Graph &graph, int index, const Tensor &self, int64_t dim)
{
  const V label = broadcast(cast(graph.in(index), NC_INT32), self.sizes());
  return binary(NC_EQ, iota(graph.raw(), NC_INT32, self.sizes(), static_cast<uint32_t>(dim)), label);
}

Tensor &gather(const Tensor &self, int64_t dim, const Tensor &index, bool, Tensor &out)
{
  dim = at::maybe_wrap_dim(dim, self.dim());
  requireSingle(self, index, dim);
  at::native::resize_output(out, index.sizes());
  auto type = computeType(self.scalar_type());
  type = type == at::kBool ? at::kInt : type;
  Op op("gather", self.device().index());
  op.attribute(dim);
  op.input(self);
  op.input(index);
  op.output(out);
  op.run([&](Graph &graph) {
    const V x = graph.in(0, type);
    const V picked = select(chosen(graph, 1, self, dim), x, x.constant(0));
    graph.out(0, reduce(NC_REDUCE_SUM, picked, 1u << dim, true));
  });
  return out;
}

Tensor &scatterWith(const char *name, const Tensor &self, int64_t dim, const Tensor &index, const Tensor &source,
                    Tensor &out, V (*combine)(V, V))
{
  dim = at::maybe_wrap_dim(dim, self.dim());
  requireSingle(self, index, dim);
  if (source.dim() && source.sizes() != index.sizes())
    throw NotNative("source of another shape");
  at::native::resize_output(out, self.sizes());
  const auto type = computeType(self.scalar_type());
  Op op(name, self.device().index());
  op.attribute(dim);
  op.input(self);
  op.input(index);
  op.input(source, self.sizes());
  op.output(out);
  op.run([&](Graph &graph) {
    const V x = graph.in(0, type);
    graph.out(0, select(chosen(graph, 1, self, dim), combine(x, graph.in(2, type)), x));
  });
  return out;
}

Tensor &scatterInto(const Tensor &self, int64_t dim, const Tensor &index, const Tensor &source, Tensor &out)
{
  return scatterWith("scatter", self, dim, index, source, out, [](V, V value) { return value; });
}

Tensor &scatterAdd(const Tensor &self, int64_t dim, const Tensor &index, const Tensor &source, Tensor &out)
{
  if (self.scalar_type() == at::kBool)
    throw NotNative("sum of bool");
  return scatterWith("scatter_add", self, dim, index, source, out, [](V x, V value) { return x + value; });
}

Tensor &scatterValue(const Tensor &self, int64_t dim, const Tensor &index, const at::Scalar &value, Tensor &out)
{
  return scatterInto(self, dim, index, at::native::wrapped_scalar_tensor(value), out);
}

Tensor &eye(int64_t rows, int64_t columns, Tensor &out)
{
  TORCH_CHECK(rows >= 0 && columns >= 0, "eye: sizes must not be negative, got ", rows, " x ", columns);
  at::native::resize_output(out, {rows, columns});
  if (out.numel() == 0)
    return out;
  Op op("eye", out.device().index());
  op.output(out);
  op.run([&](Graph &graph) {
    const V row = iota(graph.raw(), NC_INT32, out.sizes(), 0);
    const V column = iota(graph.raw(), NC_INT32, out.sizes(), 1);
    graph.out(0, binary(NC_EQ, row, column));
  });
  return out;
}

Tensor &eyeSquare(int64_t rows, Tensor &out)
{
  return eye(rows, rows, out);
}

bool equal(const Tensor &a, const Tensor &b)
{
  TORCH_CHECK(a.device() == b.device(), "equal: tensors on ", a.device(), " and ", b.device());
  return a.sizes() == b.sizes() && (a.numel() == 0 || at::all(at::eq(a, b)).item<bool>());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
  NEURON_IMPL("cat.out", cat_out, cat);
  NEURON_IMPL("tril.out", tril_out, tril);
  NEURON_IMPL("triu.out", triu_out, triu);
  NEURON_IMPL("gather.out", gather_out, gather);
  NEURON_IMPL("scatter.src_out", scatter_src_out, scatterInto);
  NEURON_IMPL("scatter_add.out", scatter_add_out, scatterAdd);
  NEURON_IMPL("scatter.value_out", scatter_value_out, scatterValue);
  NEURON_IMPL("eye.out", eye_out, eyeSquare);
  NEURON_IMPL("eye.m_out", eye_m_out, eye);
  NEURON_IMPL("equal", equal, equal);
}

}  // namespace
}  // namespace neuron
