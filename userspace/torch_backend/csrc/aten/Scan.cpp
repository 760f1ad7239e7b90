// SPDX-License-Identifier: Apache-2.0
//
// Running sums, products, largest and least along a dim.
#include "Ops.h"
#include "Structured.h"

#include <ATen/WrapDimUtils.h>
#include <ATen/ops/_cummax_helper_ops.h>
#include <ATen/ops/_cummin_helper_ops.h>
#include <ATen/ops/cumprod_meta.h>
#include <ATen/ops/cumprod_ops.h>
#include <ATen/ops/cumsum_meta.h>
#include <ATen/ops/cumsum_ops.h>

namespace neuron {
namespace {

using at::Tensor;

// In the dtype of the result, which is int64 for integers and bool unless dtype says otherwise. Halves are carried
// in fp32 and rounded once; fp32, which PyTorch's CPU backend carries in fp64, is, too.
Tensor &running(const char *name, nc_reduce_op how, const Tensor &self, int64_t dim, Tensor &out)
{
  const auto axis = at::maybe_wrap_dim(dim, self.dim());
  if (self.dim() == 0)
    return out.copy_(self);
  if (out.numel() == 0)
    return out;
  if (out.scalar_type() == at::kBool)
    throw NotNative(std::string(name) + " in bool");
  Op op(name, self.device().index());
  op.attribute(axis);
  op.input(self);
  op.output(out);
  op.run([&](Graph &graph) { graph.out(0, scan(how, graph.in(0, out.scalar_type()), static_cast<uint32_t>(axis))); });
  return out;
}

Tensor &cumsum(const Tensor &self, int64_t dim, std::optional<at::ScalarType> dtype, Tensor &out)
{
  Checks<at::meta::structured_cumsum>(out).meta(self, dim, dtype);
  return running("cumsum", NC_REDUCE_SUM, self, dim, out);
}

Tensor &cumprod(const Tensor &self, int64_t dim, std::optional<at::ScalarType> dtype, Tensor &out)
{
  Checks<at::meta::structured_cumprod>(out).meta(self, dim, dtype);
  return running("cumprod", NC_REDUCE_PROD, self, dim, out);
}

// The index is that of the last element so far that is the extreme; a NaN is, and remains it until the next NaN.
void extremes(const char *name, nc_reduce_op how, const Tensor &self, Tensor &values, Tensor &indices, int64_t dim)
{
  const auto axis = static_cast<uint32_t>(dim);
  Op op(name, self.device().index());
  op.attribute(dim);
  op.input(self);
  op.output(values);
  op.output(indices);
  op.run([&](Graph &graph) {
    const V x = graph.in(0), extreme = scan(how, x, axis);
    const V place = iota(graph.raw(), NC_INT32, self.sizes(), axis);
    graph.out(0, extreme);
    graph.out(1, scan(NC_REDUCE_MAX, select(isExtreme(x, extreme), place, place.constant(0)), axis));
  });
}

void cummax(const Tensor &self, Tensor &values, Tensor &indices, int64_t dim)
{
  extremes("cummax", NC_REDUCE_MAX, self, values, indices, dim);
}

void cummin(const Tensor &self, Tensor &values, Tensor &indices, int64_t dim)
{
  extremes("cummin", NC_REDUCE_MIN, self, values, indices, dim);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
  NEURON_IMPL("cumsum.out", cumsum_out, cumsum);
  NEURON_IMPL("cumprod.out", cumprod_out, cumprod);
  NEURON_IMPL("_cummax_helper", _cummax_helper, cummax);
  NEURON_IMPL("_cummin_helper", _cummin_helper, cummin);
}

}  // namespace
}  // namespace neuron
