// SPDX-License-Identifier: Apache-2.0
//
// Elements by index along one dim: gather, scatter, scatter_add. To the device an element is a row of one, of the
// memory that the tensor reaches: its place there is a sum of strides, with the index's in the place of the dim's.
#include "Rows.h"
#include "Structured.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/ScalarOps.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/ops/gather_meta.h>
#include <ATen/ops/gather_ops.h>
#include <ATen/ops/scatter_add_meta.h>
#include <ATen/ops/scatter_add_ops.h>
#include <ATen/ops/scatter_meta.h>
#include <ATen/ops/scatter_ops.h>

namespace neuron {
namespace {

using at::Tensor;

// The memory that the tensor reaches, in elements.
Tensor reach(const Tensor &tensor)
{
  int64_t last = 0;
  for (int64_t d = 0; d < tensor.dim(); d++)
    last += (tensor.size(d) - 1) * tensor.stride(d);
  return tensor.as_strided({last + 1}, {1}, tensor.storage_offset());
}

// Elements of x, one for each of index, which has dims.
struct Elements {
  Elements(const char *opName, const Tensor &tensor, int64_t wantedDim, const Tensor &indexTensor)
      : name(opName),
        x(atLeastOneDim(tensor)),
        index(atLeastOneDim(indexTensor)),
        dim(at::maybe_wrap_dim(wantedDim, x.dim()))
  {
    TORCH_CHECK_INDEX(!index.numel() || x.size(dim), name, ": index is out of bounds for dimension ", dim,
                      " with size 0");
  }

  // Adds the index, and what places() depends on beside it.
  void describe(Op &op) const
  {
    op.attributes({dim, x.size(dim)}).attributes(x.strides());
    op.input(index);
  }

  // Place of each in reach(x), with one dim.
  V places(Graph &graph, int operand) const
  {
    const int64_t count[] = {index.numel()};
    const V along = narrow(graph.in(operand));
    V place = along * static_cast<double>(x.stride(dim));
    for (int64_t d = 0; d < x.dim(); d++)
      if (d != dim && index.size(d) > 1 && x.stride(d))
        place = place +
                iota(graph.raw(), NC_INT32, index.sizes(), static_cast<uint32_t>(d)) * static_cast<double>(x.stride(d));
    return reshape(place, count) + zeroIfWithin(reshape(along, count), x.size(dim));
  }

  const char *name;
  Tensor x, index;
  int64_t dim;
};

Tensor &gather(const Tensor &self, int64_t dim, const Tensor &index, bool sparse, Tensor &out)
{
  Checks<at::meta::structured_gather>(out).meta(self, dim, index, sparse);
  if (index.numel() == 0)
    return out;
  const Elements of("gather", self, dim, index);
  const auto bits = carrier(self.scalar_type());
  const Tensor memory = reach(of.x);
  Op op(of.name, self.device().index());
  op.inputAs(memory, memory.sizes(), bits);
  of.describe(op);
  op.outputAs(out, bits);
  op.run([&](Graph &graph) { graph.out(0, reshape(take(graph.in(0), 0, of.places(graph, 1)), out.sizes())); });
  return out;
}

// Sums of dtypes that transfers don't add, if there is one index a row: by comparison with an iota.
void addCompared(const Elements &of, const Tensor &rows)
{
  for (int64_t d = 0; d < of.x.dim(); d++)
    if (of.index.size(d) != (d == of.dim ? 1 : of.x.size(d)))
      throw NotNative(std::string("sums by index of ") + c10::toString(of.x.scalar_type()));
  Op op(of.name, of.x.device().index());
  op.attribute(of.dim);
  op.input(of.x);
  op.input(of.index);
  op.input(rows, of.x.sizes());
  op.output(of.x);
  op.run([&](Graph &graph) {
    const V x = graph.in(0);
    const V label = narrow(graph.in(1));
    const V zero = zeroIfWithin(reshape(label, {of.index.numel()}), of.x.size(of.dim));
    const V place = iota(graph.raw(), NC_INT32, of.x.sizes(), static_cast<uint32_t>(of.dim)) + zero;
    graph.out(0, select(binary(NC_EQ, place, broadcast(label, of.x.sizes())), x + graph.in(2), x));
  });
}

// Writes rows, which have the index's shape or are one number, to elements of of.x.
void scatterTo(const Elements &of, Put how, const Tensor &rows)
{
  const int64_t count = of.index.numel();
  const auto type =
      how == Put::Copy && rows.device() == of.x.device() ? carrier(of.x.scalar_type()) : of.x.scalar_type();
  if (how == Put::Add && !canAdd(type, count)) {
    addCompared(of, rows);
    return;
  }
  const Tensor memory = reach(of.x);
  Op op(of.name, of.x.device().index());
  op.attribute(static_cast<int64_t>(how));
  op.inputAs(memory, memory.sizes(), type);
  if (rows.device().is_cpu())
    op.scalar(rows.item(), computeType(type));
  else
    op.inputAs(rows, of.index.sizes(), type);
  of.describe(op);
  op.outputAs(memory, type);
  op.run([&](Graph &graph) {
    const V values = reshape(broadcast(graph.in(1, type), of.index.sizes()), {count});
    graph.out(0, put(how, graph.in(0), 0, of.places(graph, 2), values));
  });
}

Tensor &scatter(const char *name, Put how, const Tensor &self, int64_t dim, const Tensor &index, const Tensor &rows,
                Tensor &out)
{
  if (!out.is_same(self))
    out.copy_(self);
  if (index.numel() == 0)
    return out;
  // What reach() has between the elements is not touched, unless sums are made in another dtype.
  const bool apart = how == Put::Add && !addsInPlace(self.scalar_type()) && !out.is_non_overlapping_and_dense();
  const Tensor target = apart ? out.contiguous() : out;
  const Elements of(name, target, dim, index);
  Tensor values = rows;
  if (rows.device() == out.device()) {
    const Tensor source = atLeastOneDim(rows);
    values = source.as_strided(of.index.sizes(), source.strides(), source.storage_offset());
  }
  scatterTo(of, how, values);
  if (apart)
    out.copy_(target);
  return out;
}

Tensor &scatterInto(const Tensor &self, int64_t dim, const Tensor &index, const Tensor &source, Tensor &out)
{
  Checks<at::meta::structured_scatter_src>(out).meta(self, dim, index, source);
  return scatter("scatter", Put::Copy, self, dim, index, source, out);
}

Tensor &scatterValue(const Tensor &self, int64_t dim, const Tensor &index, const at::Scalar &value, Tensor &out)
{
  Checks<at::meta::structured_scatter_value>(out).meta(self, dim, index, value);
  return scatter("scatter", Put::Copy, self, dim, index, c10::scalar_to_tensor(value), out);
}

Tensor &scatterAdd(const Tensor &self, int64_t dim, const Tensor &index, const Tensor &source, Tensor &out)
{
  Checks<at::meta::structured_scatter_add>(out).meta(self, dim, index, source);
  return scatter("scatter_add", Put::Add, self, dim, index, source, out);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
  NEURON_IMPL("gather.out", gather_out, gather);
  NEURON_IMPL("scatter.src_out", scatter_src_out, scatterInto);
  NEURON_IMPL("scatter.value_out", scatter_value_out, scatterValue);
  NEURON_IMPL("scatter_add.out", scatter_add_out, scatterAdd);
}

}  // namespace
}  // namespace neuron
