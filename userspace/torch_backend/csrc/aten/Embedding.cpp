// SPDX-License-Identifier: Apache-2.0
//
// Rows of a table by index, and their gradient, on the tensor engine: as a product with the matrix that
// has a one where a row is meant. Infinities and NaNs, which a product would carry into other rows, go
// beside it as numbers of how many of them were met. An index that does not exist cannot stop the launch
// as it raises on the CPU: its row is NaN.
#include "Ops.h"

#include <limits>

#include <ATen/WrapDimUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/embedding_dense_backward_ops.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/index_select_ops.h>

namespace neuron {
namespace {

using at::Tensor;

// Beyond, the matrix of ones costs more than the rows are worth.
constexpr int64_t kOnesMax = 1 << 24;

void requireOnes(const Tensor &values, const Tensor &index, int64_t rows)
{
  const auto type = values.scalar_type();
  if (type != at::kFloat && type != at::kBFloat16 && type != at::kHalf)
    throw NotNative(std::string("rows by index of ") + c10::toString(type));
  if (index.scalar_type() != at::kLong && index.scalar_type() != at::kInt)
    throw NotNative("index that is not an integer");
  if (values.numel() == 0 || index.numel() == 0 || rows * index.numel() > kOnesMax)
    throw NotNative("rows by index of an empty or very large table");
}

// ones @ x, where ones holds 0 and 1, exact also where x has infinities and NaNs.
V chosenSums(V ones, V x)
{
  const double infinity = std::numeric_limits<double>::infinity();
  const V zero = x.constant(0), one = x.constant(1), up = x.constant(infinity), down = x.constant(-infinity);
  const V nan = binary(NC_NE, x, x), isUp = binary(NC_EQ, x, up), isDown = binary(NC_EQ, x, down);
  const V odd = binary(NC_OR, nan, binary(NC_OR, isUp, isDown));
  const V sums = matmul(ones, select(odd, zero, x));
  const V ups = matmul(ones, select(binary(NC_OR, nan, isUp), one, zero));
  const V downs = matmul(ones, select(binary(NC_OR, nan, isDown), one, zero));
  const V hasDown = binary(NC_GT, downs, zero);
  const V withUp = select(hasDown, x.constant(std::numeric_limits<double>::quiet_NaN()), up);
  return select(binary(NC_GT, ups, zero), withUp, select(hasDown, down, sums));
}

Tensor &indexSelect(const Tensor &self, int64_t dim, const Tensor &index, Tensor &out)
{
  if (self.dim() == 0 || at::maybe_wrap_dim(dim, self.dim()) != 0 || index.dim() != 1)
    throw NotNative("rows by index along another dim than the first");
  const int64_t rows = self.size(0), count = index.numel();
  requireOnes(self, index, rows);
  at::DimVector shape(self.sizes().begin(), self.sizes().end());
  shape[0] = count;
  at::native::resize_output(out, shape);
  const int64_t width = self.numel() / rows;
  const Tensor result = out.is_contiguous() ? out : at::empty(shape, out.options());
  Op op("index_select", self.device().index());
  op.input(self.contiguous().view({rows, width}));
  op.input(index);
  op.output(result.view({count, width}));
  op.run([&](Graph &graph) {
    const int64_t ones[] = {count, rows}, column[] = {count, 1};
    const V label = reshape(cast(graph.in(1), NC_INT64), column);
    const V hit = binary(NC_EQ, iota(graph.raw(), NC_INT32, ones, 1), broadcast(cast(label, NC_INT32), ones));
    const V wrong = binary(NC_OR, binary(NC_LT, label, label.constant(0)),
                           binary(NC_GE, label, label.constant(static_cast<double>(rows))));
    const V found = chosenSums(cast(hit, NC_FP32), graph.in(0, at::kFloat));
    const int64_t wide[] = {count, width};
    graph.out(0, select(broadcast(wrong, wide), found.constant(std::numeric_limits<double>::quiet_NaN()), found));
  });
  if (!result.is_same(out))
    out.copy_(result);
  return out;
}

Tensor indexSelectNew(const Tensor &self, int64_t dim, const Tensor &index)
{
  Tensor out = at::empty({0}, self.options());
  return indexSelect(self, dim, index, out);
}

Tensor embeddingBackward(const Tensor &grad, const Tensor &indices, int64_t rows, int64_t padding, bool byFrequency)
{
  if (byFrequency)
    throw NotNative("embedding gradient scaled by frequency");
  requireOnes(grad, indices, rows);
  const int64_t count = indices.numel(), width = grad.size(-1);
  Tensor out = at::empty({rows, width}, grad.options());
  Op op("embedding_backward", grad.device().index());
  op.input(grad.contiguous().view({count, width}));
  op.input(indices.contiguous().view({1, count}));
  op.scalar(padding, at::kInt);
  op.output(out);
  op.run([&](Graph &graph) {
    const int64_t ones[] = {rows, count};
    const V label = broadcast(cast(graph.in(1), NC_INT32), ones);
    const V row = iota(graph.raw(), NC_INT32, ones, 0);
    const V hit = binary(NC_AND, binary(NC_EQ, row, label), binary(NC_NE, row, graph.in(2)));
    graph.out(0, chosenSums(cast(hit, NC_FP32), graph.in(0, at::kFloat)));
  });
  return out;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
  NEURON_IMPL("index_select", index_select, indexSelectNew);
  NEURON_IMPL("index_select.out", index_select_out, indexSelect);
  NEURON_IMPL("embedding_dense_backward", embedding_dense_backward, embeddingBackward);
}

}  // namespace
}  // namespace neuron
