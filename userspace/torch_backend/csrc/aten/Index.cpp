// SPDX-License-Identifier: Apache-2.0
//
// Joining, triangles, comparison as a whole.
#include "Ops.h"

#include <ATen/WrapDimUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/all.h>
#include <ATen/ops/cat_ops.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/equal_ops.h>
#include <ATen/ops/eye_ops.h>
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
  NEURON_IMPL("eye.out", eye_out, eyeSquare);
  NEURON_IMPL("eye.m_out", eye_m_out, eye);
  NEURON_IMPL("equal", equal, equal);
}

}  // namespace
}  // namespace neuron
