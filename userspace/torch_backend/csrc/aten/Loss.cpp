// SPDX-License-Identifier: Apache-2.0
//
// Losses and indexing. A class index selects by comparison with an iota, which is exact and needs no
// gather.
#include "Ops.h"

#include <ATen/WrapDimUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/cat_ops.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mse_loss_ops.h>
#include <ATen/ops/nll_loss_backward_ops.h>
#include <ATen/ops/nll_loss_forward_ops.h>
#include <ATen/ops/tril_ops.h>
#include <ATen/ops/triu_ops.h>

namespace neuron {
namespace {

using at::Tensor;

// The parts that forward and backward share: [rows, classes] seen from [classes] or [rows, classes].
struct Nll {
  Tensor input, target, weight;
  int64_t rows, classes;

  Nll(const Tensor &self, const Tensor &labels, const std::optional<Tensor> &weights)
      : input(self.dim() == 1 ? self.unsqueeze(0) : self), target(labels.dim() == 0 ? labels.unsqueeze(0) : labels),
        weight(weights && weights->defined() ? *weights : Tensor()), rows(input.size(0)), classes(input.size(1))
  {
    if (rows == 0 || classes == 0)
      throw NotNative("nll_loss of nothing");
  }

  // Weight of each row's class in the column of its class, else 0: [rows, classes].
  V weights(Graph &graph, int target, int ignored, int weight, at::ScalarType type) const
  {
    const int64_t shape[] = {rows, classes};
    const int64_t column[] = {rows, 1};
    const V label = reshape(cast(graph.in(target), NC_INT32), column);
    const V index = iota(graph.raw(), NC_INT32, shape, 1);
    const V skip = binary(NC_EQ, label, graph.in(ignored));
    const V hit = binary(NC_AND, binary(NC_EQ, index, broadcast(label, shape)), broadcast(unary(NC_NOT, skip), shape));
    const V one = cast(hit, ncDtype(type));
    return weight < 0 ? one : one * graph.in(weight, type);
  }
};

std::tuple<Tensor &, Tensor &> nllForward(const Tensor &self, const Tensor &labels, const std::optional<Tensor> &weights,
                                          int64_t reduction, int64_t ignore, Tensor &out, Tensor &total)
{
  const Nll nll(self, labels, weights);
  const auto type = computeType(self.scalar_type());
  const bool none = reduction == at::Reduction::None;
  at::native::resize_output(out, none && self.dim() == 2 ? at::IntArrayRef(nll.rows) : at::IntArrayRef());
  at::native::resize_output(total, {});
  Op op("nll_loss", self.device().index());
  op.attribute(reduction);
  const int input = op.input(nll.input);
  const int target = op.input(nll.target);
  const int ignored = op.scalar(ignore, at::kInt);
  const int weight = nll.weight.defined() ? op.input(nll.weight.view({1, -1}), {nll.rows, nll.classes}) : -1;
  op.output(out);
  op.output(total);
  op.run([&](Graph &graph) {
    const V w = nll.weights(graph, target, ignored, weight, type);
    const V x = graph.in(input, type);
    // Only the chosen element counts, whatever the others are: an infinity times 0 would be NaN.
    const V chosen = select(binary(NC_NE, w, w.constant(0)), x * w, w.constant(0));
    const V zero = w.constant(0);
    if (none) {
      graph.out(0, reshape(zero - reduce(NC_REDUCE_SUM, chosen, 2, true), out.sizes()));
      graph.out(1, zero);
      return;
    }
    const V sum = reshape(zero - reduce(NC_REDUCE_SUM, chosen, 3, false), {});
    const V all = reshape(reduce(NC_REDUCE_SUM, w, 3, false), {});
    graph.out(0, reduction == at::Reduction::Mean ? sum / all : sum);
    graph.out(1, all);
  });
  return {out, total};
}

Tensor &nllBackward(const Tensor &grad, const Tensor &self, const Tensor &labels, const std::optional<Tensor> &weights,
                    int64_t reduction, int64_t ignore, const Tensor &total, Tensor &out)
{
  const Nll nll(self, labels, weights);
  const auto type = computeType(self.scalar_type());
  const bool none = reduction == at::Reduction::None;
  at::native::resize_output(out, self.sizes());
  const int64_t shape[] = {nll.rows, nll.classes};
  Op op("nll_loss_backward", self.device().index());
  op.attribute(reduction);
  const int dy = op.input(none && grad.dim() == 1 ? grad.unsqueeze(1) : grad, shape);
  const int target = op.input(nll.target);
  const int ignored = op.scalar(ignore, at::kInt);
  const int weight = nll.weight.defined() ? op.input(nll.weight.view({1, -1}), shape) : -1;
  const int sum = reduction == at::Reduction::Mean ? op.input(total, shape) : -1;
  op.output(self.dim() == 1 ? out.unsqueeze(0) : out);
  op.run([&](Graph &graph) {
    const V w = nll.weights(graph, target, ignored, weight, type);
    V g = graph.in(dy, type);
    if (sum >= 0)
      g = g / graph.in(sum, type);
    graph.out(0, w.constant(0) - select(binary(NC_NE, w, w.constant(0)), g * w, w.constant(0)));
  });
  return out;
}

Tensor &mseLoss(const Tensor &self, const Tensor &target, int64_t reduction, Tensor &out)
{
  if (self.sizes() != target.sizes())
    throw NotNative("mse_loss with broadcasting");
  const auto type = computeType(self.scalar_type());
  if (reduction == at::Reduction::None) {
    elementwise("mse_loss", out, {self, target}, {}, type, [](c10::ArrayRef<V> x) {
      const V d = x[0] - x[1];
      return d * d;
    });
    return out;
  }
  at::native::resize_output(out, {});
  if (self.numel() == 0)
    throw NotNative("mse_loss of nothing");
  Op op("mse_loss_reduced", self.device().index());
  op.attribute(reduction);
  op.input(self);
  op.input(target);
  op.output(out);
  op.run([&](Graph &graph) {
    const V d = graph.in(0, type) - graph.in(1, type);
    const V sum = reshape(reduce(NC_REDUCE_SUM, d * d, axesOf(std::nullopt, self.dim()), false), {});
    graph.out(0, reduction == at::Reduction::Mean ? sum / sum.constant(static_cast<double>(self.numel())) : sum);
  });
  return out;
}

// --- indexing

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

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
  NEURON_IMPL("nll_loss_forward.output", nll_loss_forward_output, nllForward);
  NEURON_IMPL("nll_loss_backward.grad_input", nll_loss_backward_grad_input, nllBackward);
  NEURON_IMPL("mse_loss.out", mse_loss_out, mseLoss);
  NEURON_IMPL("cat.out", cat_out, cat);
  NEURON_IMPL("tril.out", tril_out, tril);
  NEURON_IMPL("triu.out", triu_out, triu);
}

}  // namespace
}  // namespace neuron
