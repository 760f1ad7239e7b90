// SPDX-License-Identifier: Apache-2.0
//
// x[i, j, ...] with tensors as indices, reading and writing. Masks become indices by nonzero(), which runs on the
// CPU: how many there are decides about shapes.
#include "Rows.h"

#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/native/IndexingUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TensorAdvancedIndexingUtils.h>
#include <ATen/ops/_index_put_impl_ops.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/index_ops.h>
#include <ATen/ops/put_ops.h>
#include <ATen/ops/take_ops.h>

namespace neuron {
namespace {

using at::Tensor;
using Indices = c10::List<std::optional<Tensor>>;

// The indices with masks expanded and broadcast, next to each other, and the tensor that they are of: indexed
// dims that are apart go to the front, as NumPy has it.
struct Plan {
  Plan(const char *opName, Tensor self, const Indices &list) : name(opName), x(std::move(self))
  {
    TORCH_CHECK_INDEX(static_cast<int64_t>(list.size()) <= x.dim(), "too many indices for tensor of dimension ",
                      x.dim(), " (got ", list.size(), ")");
    at::native::checkIndexTensorTypes(list, /*allow_int=*/true);
    auto all = at::native::expandTensors(x, list, /*ensure_same_device=*/true);
    try {
      all = at::expand_outplace(all);
    } catch (const std::exception &) {
      TORCH_CHECK_INDEX(false, "shape mismatch: indexing tensors could not be broadcast together with shapes ",
                        at::native::shapes_as_str(all));
    }
    all.resize(x.dim());
    if (!at::native::hasContiguousSubspace(all))
      std::tie(x, all) = at::native::transposeToFront(x, all);
    for (int64_t d = 0; d < x.dim(); d++) {
      if (!all[d].defined())
        continue;
      from = indices.empty() ? d : from;
      indices.push_back(std::move(all[d]));
    }
    if (indices.empty())
      return;
    for (size_t i = 0; i < indices.size(); i++)
      TORCH_CHECK_INDEX(x.size(from + static_cast<int64_t>(i)) || !indices[i].numel(),
                        "index is out of bounds for dimension with size 0");
    shape = rowSizes(how(), x);
  }

  Indexed how() const { return {name, from, from + static_cast<int64_t>(indices.size()), indices, true}; }

  const char *name;
  Tensor x;
  int64_t from = 0;
  std::vector<Tensor> indices;  // none: all of x is meant
  at::DimVector shape;
};

Tensor &index(const Tensor &self, const Indices &list, Tensor &out)
{
  TORCH_CHECK(out.scalar_type() == self.scalar_type(), "index: expected out of dtype ", self.scalar_type(),
              ", but got ", out.scalar_type());
  const Plan plan("index", self, list);
  at::native::resize_output(out, plan.indices.empty() ? self.sizes() : at::IntArrayRef(plan.shape));
  at::assert_no_internal_overlap(out);
  at::assert_no_overlap(out, self);
  for (const auto &one : plan.indices)
    at::assert_no_overlap(out, one);
  if (plan.indices.empty())
    return out.copy_(self);
  if (out.numel())
    takeRows(plan.how(), plan.x, out);
  return out;
}

Tensor indexNew(const Tensor &self, const Indices &list)
{
  Tensor out = at::empty({0}, self.options());
  return index(self, list, out);
}

Tensor &indexPut(Tensor &self, const Indices &list, const Tensor &values, bool accumulate, bool)
{
  TORCH_CHECK_INDEX(static_cast<int64_t>(list.size()) <= self.dim(), "too many indices for tensor of dimension ",
                    self.dim(), " (got ", list.size(), ")");
  if (!accumulate && values.numel() == 1) {
    // One number where a mask says so needs no indices. PyTorch asks for one on the CPU; ours may be anywhere.
    const auto [fills, mask] = at::native::canDispatchToMaskedFill(self, list, at::empty({1}, at::kCPU));
    if (fills)
      return self.masked_fill_(mask, values.reshape({}));
  }
  at::assert_no_overlap(self, values);
  for (const std::optional<Tensor> one : list)
    if (one && one->defined())
      at::assert_no_overlap(self, *one);
  TORCH_CHECK(self.scalar_type() == values.scalar_type(),
              "Index put requires the source and destination dtypes match, got ", self.scalar_type(),
              " for the destination and ", values.scalar_type(), " for the source.");
  const bool one = values.device().is_cpu() && values.dim() == 0;
  const Tensor rows = one && !hasDtype(self.scalar_type()) ? values.to(self.device()) : values;
  const Plan plan("index_put", self, list);
  const at::IntArrayRef shape = plan.indices.empty() ? self.sizes() : at::IntArrayRef(plan.shape);
  TORCH_CHECK(at::is_expandable_to(rows.sizes(), shape), "shape mismatch: value tensor of shape ", rows.sizes(),
              " cannot be broadcast to indexing result of shape ", shape);
  if (plan.indices.empty())
    return accumulate ? self.add_(rows) : self.copy_(rows);
  if (self.numel() && plan.indices[0].numel())
    putRows(plan.how(), accumulate ? Put::Add : Put::Copy, plan.x, rows, 1, plan.x);
  return self;
}

// --- elements of the tensor as if it had one dim

Tensor &takeElements(const Tensor &self, const Tensor &index, Tensor &out)
{
  TORCH_CHECK(index.scalar_type() == at::kLong, "take(): Expected a long tensor for index, but got ",
              index.scalar_type());
  TORCH_CHECK_INDEX(self.numel() || !index.numel(), "take(): tried to take from an empty tensor");
  TORCH_CHECK(self.scalar_type() == out.scalar_type(), "take(): self and out expected to have the same dtype, but got ",
              "self.dtype = ", self.scalar_type(), " and out.dtype = ", out.scalar_type());
  at::native::resize_output(out, index.sizes());
  at::assert_no_internal_overlap(out);
  at::assert_no_overlap(out, index);
  at::assert_no_overlap(out, self);
  if (out.numel())
    takeRows({"take", 0, 1, index, true}, self.reshape({-1}), out);
  return out;
}

Tensor takeElementsNew(const Tensor &self, const Tensor &index)
{
  Tensor out = at::empty({0}, self.options());
  return takeElements(self, index, out);
}

Tensor &putElements(Tensor &self, const Tensor &index, const Tensor &source, bool accumulate)
{
  TORCH_CHECK(index.scalar_type() == at::kLong, "put_(): Expected a long tensor for index, but got ",
              index.scalar_type());
  TORCH_CHECK(self.scalar_type() == source.scalar_type(), "put_(): self and source expected to have the same dtype, ",
              "but got self.dtype = ", self.scalar_type(), " and source.dtype = ", source.scalar_type());
  TORCH_CHECK(index.numel() == source.numel(), "put_(): Expected source and index to have the same number of ",
              "elements, but got source.numel() = ", source.numel(), ", index.numel() = ", index.numel());
  TORCH_CHECK_INDEX(self.numel() || !index.numel(), "put_(): Tried to put elements into an empty tensor");
  at::assert_no_overlap(self, index);
  at::assert_no_overlap(self, source);
  if (!index.numel())
    return self;
  const Tensor x = self.contiguous().view({-1});
  putRows({"put", 0, 1, index, true}, accumulate ? Put::Add : Put::Copy, x, source.reshape(index.sizes()), 1, x);
  return self.is_contiguous() ? self : self.copy_(x.view(self.sizes()));
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
  NEURON_IMPL("index.Tensor", index_Tensor, indexNew);
  NEURON_IMPL("index.Tensor_out", index_Tensor_out, index);
  NEURON_IMPL("_index_put_impl_", _index_put_impl_, indexPut);
  NEURON_IMPL("take", take, takeElementsNew);
  NEURON_IMPL("take.out", take_out, takeElements);
  NEURON_IMPL("put_", put_, putElements);
}

}  // namespace
}  // namespace neuron
