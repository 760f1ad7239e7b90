// SPDX-License-Identifier: Apache-2.0
//
// Rows along one dim by a vector of indices or in reverse, and the gradient of embeddings.
#include "Rows.h"
#include "Structured.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/ScalarOps.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/WrapDimUtilsMulti.h>
#include <ATen/ops/embedding_dense_backward_ops.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/flip_ops.h>
#include <ATen/ops/index_add_meta.h>
#include <ATen/ops/index_add_ops.h>
#include <ATen/ops/index_copy_meta.h>
#include <ATen/ops/index_copy_ops.h>
#include <ATen/ops/index_fill_ops.h>
#include <ATen/ops/index_select_ops.h>
#include <ATen/ops/zeros.h>

namespace neuron {
namespace {

using at::Tensor;

Tensor &indexSelect(const Tensor &self, int64_t dim, const Tensor &index, Tensor &out)
{
  dim = at::maybe_wrap_dim(dim, self.dim());
  TORCH_CHECK_INDEX(index.dim() <= 1, "index_select(): Index is supposed to be a vector");
  TORCH_CHECK(self.dim() || index.numel() == 1, "index_select(): Index to scalar can have only 1 value, got ",
              index.numel(), " value(s)");
  TORCH_CHECK(index.scalar_type() == at::kLong || index.scalar_type() == at::kInt,
              "index_select(): Expected dtype int32 or int64 for index");
  TORCH_CHECK(self.scalar_type() == out.scalar_type(),
              "index_select(): self and result must have the same scalar type");
  at::assert_no_internal_overlap(out);
  at::assert_no_overlap(out, self);
  at::assert_no_overlap(out, index);
  at::DimVector shape(self.sizes());
  if (self.dim())
    shape[dim] = index.numel();
  at::native::resize_output(out, shape);
  if (out.numel() == 0)
    return out;
  const Tensor x = atLeastOneDim(self);
  TORCH_CHECK(x.size(dim), "index_select(): self indexing axis dim should be positive");
  const Tensor rows[] = {atLeastOneDim(index)};
  takeRows({"index_select", dim, dim + 1, rows, false}, x, atLeastOneDim(out));
  return out;
}

Tensor indexSelectNew(const Tensor &self, int64_t dim, const Tensor &index)
{
  Tensor out = at::empty({0}, self.options());
  return indexSelect(self, dim, index, out);
}

// out = self with source's rows, of which there is at least one.
Tensor &putAlong(const char *name, Put how, const Tensor &self, int64_t dim, const Tensor &index, const Tensor &source,
                 const at::Scalar &scale, bool wrap, Tensor &out)
{
  dim = at::maybe_wrap_dim(dim, self.dim());
  if (out.numel() == 0 || index.numel() == 0) {
    TORCH_CHECK_INDEX(index.numel() == 0 || !self.dim() || self.size(dim), name,
                      ": index is out of bounds for dimension ", dim, " with size 0");
    return out.is_same(self) ? out : out.copy_(self);
  }
  const Tensor rows[] = {atLeastOneDim(index)};
  putRows({name, dim, dim + 1, rows, wrap}, how, atLeastOneDim(self), source, scale, atLeastOneDim(out));
  return out;
}

Tensor &indexAdd(const Tensor &self, int64_t dim, const Tensor &index, const Tensor &source, const at::Scalar &alpha,
                 Tensor &out)
{
  Checks<at::meta::structured_index_add>(out).meta(self, dim, index, source, alpha);
  return putAlong("index_add", Put::Add, self, dim, index, atLeastOneDim(source), alpha, false, out);
}

Tensor &indexCopy(const Tensor &self, int64_t dim, const Tensor &index, const Tensor &source, Tensor &out)
{
  Checks<at::meta::structured_index_copy>(out).meta(self, dim, index, source);
  return putAlong("index_copy", Put::Copy, self, dim, index, atLeastOneDim(source), 1, false, out);
}

Tensor &indexFill(Tensor &self, int64_t dim, const Tensor &index, const Tensor &value)
{
  TORCH_CHECK(value.dim() == 0, "index_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
              value.dim(), " dimension(s).");
  TORCH_CHECK(index.scalar_type() == at::kLong || index.scalar_type() == at::kInt,
              "index_fill_(): Expected dtype int32 or int64 for index.");
  TORCH_CHECK(index.dim() <= 1, "Index has to be a vector/scalar");
  at::assert_no_overlap(self, index);
  if (!hasDtype(self.scalar_type()) || at::isComplexType(value.scalar_type()))
    throw NotNative(std::string("filling of ") + c10::toString(self.scalar_type()));
  const Tensor filling = value.device().is_cpu() ? value : value.to(self.scalar_type());
  return putAlong("index_fill", Put::Copy, self, dim, index, filling, 1, true, self);
}

Tensor &indexFillScalar(Tensor &self, int64_t dim, const Tensor &index, const at::Scalar &value)
{
  return indexFill(self, dim, index, c10::scalar_to_tensor(value));
}

// Rows in reverse, one dim after the other.
Tensor flip(const Tensor &self, at::IntArrayRef dims)
{
  const auto axes = at::dim_list_to_bitset(dims, self.dim());
  Tensor out = at::empty_like(self);
  if (axes.none() || out.numel() <= 1)
    return out.copy_(self);
  const auto bits = carrier(self.scalar_type());
  Op op("flip", self.device().index());
  op.attribute(static_cast<int64_t>(axes.to_ullong()));
  op.inputAs(self, self.sizes(), bits);
  op.outputAs(out, bits);
  op.run([&](Graph &graph) {
    V x = graph.in(0);
    for (int64_t d = 0; d < self.dim(); d++) {
      const int64_t n[] = {self.size(d)};
      if (!axes[d] || n[0] == 1)
        continue;
      const V place = iota(graph.raw(), NC_INT32, n, 0);
      x = take(x, static_cast<uint32_t>(d), static_cast<double>(n[0] - 1) - place);
    }
    graph.out(0, x);
  });
  return out;
}

// --- embeddings

// How many indices name the row that each names, as fp32 [count, 1].
V frequency(V index, int64_t rows, int64_t count)
{
  const V one{index.graph, nc_const_int(index.graph, NC_INT32, 1)};
  const V counts = put(NC_PUT_ADD, broadcast(one.constant(0), {rows, 1}), 0, index, broadcast(one, {count, 1}));
  return cast(take(counts, 0, index), NC_FP32);
}

// Sums of gradients are fp32 and rounded once. Indices that name no row are an error here, too.
Tensor embeddingBackward(const Tensor &grad, const Tensor &indices, int64_t rows, int64_t padding, bool byFrequency)
{
  TORCH_CHECK(indices.scalar_type() == at::kLong || indices.scalar_type() == at::kInt,
              "embedding_backward: expected indices of int32 or int64, but got ", indices.scalar_type());
  const auto type = grad.scalar_type();
  if (!isShortFloat(type))
    throw NotNative(std::string("gradient of rows of ") + c10::toString(type));
  const int64_t count = indices.numel(), width = grad.size(-1);
  const Tensor sums = at::zeros({rows, width}, grad.options().dtype(at::kFloat));
  if (count && sums.numel()) {
    Op op("embedding_backward", grad.device().index());
    op.attributes({padding, byFrequency});
    op.input(sums);
    op.input(grad);
    op.input(atLeastOneDim(indices));
    op.output(sums);
    op.run([&](Graph &graph) {
      const int64_t flat[] = {count, width};
      const V index = reshape(graph.in(2), {count});
      V values = reshape(graph.in(1, at::kFloat), flat);
      if (byFrequency)
        values = values * broadcast(unary(NC_RECIPROCAL, frequency(index, rows, count)), flat);
      if (padding >= 0) {
        const V label = broadcast(reshape(index, {count, 1}), flat);
        values = select(binary(NC_EQ, label, label.constant(static_cast<double>(padding))), values.constant(0), values);
      }
      graph.out(0, put(NC_PUT_ADD, graph.in(0), 0, index, values));
    });
  }
  return sums.to(type);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
  NEURON_IMPL("index_select", index_select, indexSelectNew);
  NEURON_IMPL("index_select.out", index_select_out, indexSelect);
  NEURON_IMPL("index_add.out", index_add_out, indexAdd);
  NEURON_IMPL("index_copy.out", index_copy_out, indexCopy);
  NEURON_IMPL("index_fill_.int_Scalar", index_fill__int_Scalar, indexFillScalar);
  NEURON_IMPL("index_fill_.int_Tensor", index_fill__int_Tensor, indexFill);
  NEURON_IMPL("flip", flip, flip);
  NEURON_IMPL("embedding_dense_backward", embedding_dense_backward, embeddingBackward);
}

}  // namespace
}  // namespace neuron
