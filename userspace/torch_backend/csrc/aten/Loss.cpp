// SPDX-License-Identifier: Apache-2.0
//
// Losses. A class index selects by comparison with an iota, which is exact and needs no gather.
#include "Ops.h"

#include <limits>

#include <ATen/ExpandUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/binary_cross_entropy_backward_ops.h>
#include <ATen/ops/binary_cross_entropy_ops.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/huber_loss_backward_ops.h>
#include <ATen/ops/huber_loss_ops.h>
#include <ATen/ops/mse_loss_backward_ops.h>
#include <ATen/ops/mse_loss_ops.h>
#include <ATen/ops/nll_loss2d_backward_ops.h>
#include <ATen/ops/nll_loss2d_forward_ops.h>
#include <ATen/ops/nll_loss_backward_ops.h>
#include <ATen/ops/nll_loss_forward_ops.h>
#include <ATen/ops/smooth_l1_loss_backward_ops.h>
#include <ATen/ops/smooth_l1_loss_ops.h>

namespace neuron {
namespace {

using at::Tensor;

// [rows], or [rows, height, width], with a dim of one class behind the rows: all of four dims.
Tensor withClass(const Tensor &x)
{
  const Tensor y = x.dim() == 0 ? x.unsqueeze(0) : x;
  return y.dim() == 1 ? y.unsqueeze(1).unsqueeze(2).unsqueeze(3) : y.unsqueeze(1);
}

// [classes], [rows, classes] or [rows, classes, height, width] in four dims.
Tensor inFourDims(const Tensor &x)
{
  const Tensor y = x.dim() == 1 ? x.unsqueeze(0) : x;
  return y.dim() == 2 ? y.unsqueeze(2).unsqueeze(3) : y;
}

// The parts that forward and backward share, of one place for each row and of images.
struct Nll {
  Tensor input, target, weight;
  at::IntArrayRef shape;

  Nll(const Tensor &self, const Tensor &labels, const std::optional<Tensor> &weights)
      : input(inFourDims(self)),
        target(withClass(labels)),
        weight(weights && weights->defined() ? weights->view({1, -1, 1, 1}) : Tensor()),
        shape(input.sizes())
  {
    if (input.numel() == 0)
      throw NotNative("nll_loss of nothing");
  }

  // Weight of each place's class at its class, else 0.
  V weights(Graph &graph, int target, int ignored, int weight, at::ScalarType type) const
  {
    const V label = cast(graph.in(target), NC_INT32);
    const V index = iota(graph.raw(), NC_INT32, shape, 1);
    const V skip = binary(NC_EQ, label, graph.in(ignored));
    const V hit = binary(NC_AND, binary(NC_EQ, index, broadcast(label, shape)), broadcast(unary(NC_NOT, skip), shape));
    // A class that does not exist cannot stop the launch as it raises on the CPU: the loss is NaN then.
    const V wide = cast(graph.in(target), NC_INT64);
    const V wrong = binary(NC_AND, unary(NC_NOT, skip),
                           binary(NC_OR, binary(NC_LT, wide, wide.constant(0)),
                                  binary(NC_GE, wide, wide.constant(static_cast<double>(shape[1])))));
    V one = cast(hit, ncDtype(type));
    one = select(broadcast(wrong, shape), one.constant(std::numeric_limits<double>::quiet_NaN()), one);
    return weight < 0 ? one : one * graph.in(weight, type);
  }
};

std::tuple<Tensor &, Tensor &> nllForward(const Tensor &self, const Tensor &labels,
                                          const std::optional<Tensor> &weights, int64_t reduction, int64_t ignore,
                                          Tensor &out, Tensor &total)
{
  const Nll nll(self, labels, weights);
  const auto type = computeType(self.scalar_type());
  const bool none = reduction == at::Reduction::None;
  at::native::resize_output(out, none && self.dim() > 1 ? labels.sizes() : at::IntArrayRef());
  at::native::resize_output(total, {});
  Op op("nll_loss", self.device().index());
  op.attribute(reduction);
  const int input = op.input(nll.input);
  const int target = op.input(nll.target);
  const int ignored = op.scalar(ignore, at::kInt);
  const int weight = nll.weight.defined() ? op.input(nll.weight, nll.shape) : -1;
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
    const V sum = reshape(zero - reduce(NC_REDUCE_SUM, chosen, 15, false), {});
    const V all = reshape(reduce(NC_REDUCE_SUM, w, 15, false), {});
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
  at::native::resize_output(out, self.sizes());
  Op op("nll_loss_backward", self.device().index());
  op.attribute(reduction);
  const int dy = op.input(withClass(grad), nll.shape);
  const int target = op.input(nll.target);
  const int ignored = op.scalar(ignore, at::kInt);
  const int weight = nll.weight.defined() ? op.input(nll.weight, nll.shape) : -1;
  const int sum = reduction == at::Reduction::Mean ? op.input(total, nll.shape) : -1;
  op.output(inFourDims(out));
  op.run([&](Graph &graph) {
    const V w = nll.weights(graph, target, ignored, weight, type);
    V g = graph.in(dy, type);
    if (sum >= 0)
      g = g / graph.in(sum, type);
    graph.out(0, w.constant(0) - select(binary(NC_NE, w, w.constant(0)), g * w, w.constant(0)));
  });
  return out;
}

void checkImages(const Tensor &self, const Tensor &labels, const std::optional<Tensor> &weights)
{
  TORCH_CHECK(labels.dim() == 3,
              "only batches of spatial targets supported (3D tensors) but got targets of dimension: ", labels.dim());
  TORCH_CHECK(self.dim() == 4,
              "only batches of spatial inputs supported (4D tensors), but got input of dimension: ", self.dim());
  TORCH_CHECK(self.size(0) == labels.size(0) && self.size(2) == labels.size(1) && self.size(3) == labels.size(2),
              "nll_loss2d: an input of ", self.sizes(), " has targets of [", self.size(0), ", ", self.size(2), ", ",
              self.size(3), "], not of ", labels.sizes());
  TORCH_CHECK(!weights || !weights->defined() || weights->numel() == self.size(1), "nll_loss2d: ", self.size(1),
              " classes, but weights of ", weights->sizes());
}

std::tuple<Tensor &, Tensor &> nllOfImagesOut(const Tensor &self, const Tensor &labels,
                                              const std::optional<Tensor> &weights, int64_t reduction, int64_t ignore,
                                              Tensor &out, Tensor &total)
{
  checkImages(self, labels, weights);
  return nllForward(self, labels, weights, reduction, ignore, out, total);
}

std::tuple<Tensor, Tensor> nllOfImages(const Tensor &self, const Tensor &labels, const std::optional<Tensor> &weights,
                                       int64_t reduction, int64_t ignore)
{
  Tensor out = at::empty({0}, self.options()), total = at::empty({0}, self.options());
  nllOfImagesOut(self, labels, weights, reduction, ignore, out, total);
  return {out, total};
}

Tensor &nllOfImagesBackwardOut(const Tensor &grad, const Tensor &self, const Tensor &labels,
                               const std::optional<Tensor> &weights, int64_t reduction, int64_t ignore,
                               const Tensor &total, Tensor &out)
{
  checkImages(self, labels, weights);
  return nllBackward(grad, self, labels, weights, reduction, ignore, total, out);
}

Tensor nllOfImagesBackward(const Tensor &grad, const Tensor &self, const Tensor &labels,
                           const std::optional<Tensor> &weights, int64_t reduction, int64_t ignore, const Tensor &total)
{
  Tensor out = at::empty_like(self);
  return nllOfImagesBackwardOut(grad, self, labels, weights, reduction, ignore, total, out);
}

// --- losses of pairs: an elementwise formula, then the reduction

using Pair = c10::function_ref<V(c10::ArrayRef<V>)>;

// formula of input, target, further operands and scalars, each seen in the shape of input.
Tensor &pairLoss(const char *name, at::ArrayRef<Tensor> operands, at::ArrayRef<at::Scalar> scalars, int64_t reduction,
                 Tensor &out, Pair formula)
{
  const Tensor &self = operands[0];
  for (const Tensor &operand : operands)
    if (at::infer_size_dimvector(self.sizes(), operand.sizes()) != self.sizes())
      throw NotNative("loss with broadcasting of the input");
  const auto type = computeType(self.scalar_type());
  if (reduction == at::Reduction::None) {
    at::native::resize_output(out, self.sizes());
    elementwise(name, out, operands, scalars, type, formula);
    return out;
  }
  at::native::resize_output(out, {});
  if (self.numel() == 0)
    throw NotNative("loss of nothing");
  Op op(name, self.device().index());
  op.attribute(reduction);
  for (const Tensor &operand : operands)
    op.input(operand, self.sizes());
  for (const auto &value : scalars)
    op.scalar(value, type);
  op.output(out);
  const size_t count = operands.size() + scalars.size();
  op.run([&](Graph &graph) {
    c10::SmallVector<V, 6> values;
    for (size_t i = 0; i < count; i++)
      values.push_back(graph.in(static_cast<int>(i), type));
    const V all = formula(values);
    const V sum = reshape(reduce(NC_REDUCE_SUM, all, axesOf(std::nullopt, self.dim()), false), {});
    graph.out(0, reduction == at::Reduction::Mean ? sum / sum.constant(static_cast<double>(self.numel())) : sum);
  });
  return out;
}

// Gradient by the input: formula of grad, then as above.
Tensor &pairGradient(const char *name, const Tensor &grad, at::ArrayRef<Tensor> operands,
                     at::ArrayRef<at::Scalar> scalars, int64_t reduction, const Tensor &out, Pair formula)
{
  at::native::resize_output(out, operands[0].sizes());
  c10::SmallVector<Tensor, 4> all{grad};
  all.append(operands.begin(), operands.end());
  c10::SmallVector<at::Scalar, 3> values{
      reduction == at::Reduction::Mean ? 1.0 / static_cast<double>(operands[0].numel()) : 1.0};
  values.append(scalars.begin(), scalars.end());
  const size_t scale = all.size();
  elementwise(name, out, all, values, computeType(operands[0].scalar_type()), [&](c10::ArrayRef<V> x) {
    std::vector<V> own(x.begin() + 1, x.end());
    own.erase(own.begin() + static_cast<ptrdiff_t>(scale) - 1);
    return x[0] * x[scale] * formula(own);
  });
  return const_cast<Tensor &>(out);
}

Tensor &mseLoss(const Tensor &self, const Tensor &target, int64_t reduction, Tensor &out)
{
  return pairLoss("mse_loss", {self, target}, {}, reduction, out, [](c10::ArrayRef<V> x) {
    const V d = x[0] - x[1];
    return d * d;
  });
}

Tensor &mseLossBackward(const Tensor &grad, const Tensor &self, const Tensor &target, int64_t reduction, Tensor &out)
{
  return pairGradient("mse_loss_backward", grad, {self, target}, {}, reduction, out,
                      [](c10::ArrayRef<V> x) { return (x[0] - x[1]) * 2.0; });
}

Tensor mseLossBackwardNew(const Tensor &grad, const Tensor &self, const Tensor &target, int64_t reduction)
{
  Tensor out = at::empty_like(self);
  return mseLossBackward(grad, self, target, reduction, out);
}

// Quadratic below edge; scalars: edge, factor of the quadratic part (times d*d) and of the linear one.
V quadraticThenLinear(c10::ArrayRef<V> x)
{
  const V size = unary(NC_ABS, x[0] - x[1]);
  return select(binary(NC_LT, size, x[2]), size * size * x[3], (size - x[2] * 0.5) * x[4]);
}

V quadraticThenLinearSlope(c10::ArrayRef<V> x)
{
  const V d = x[0] - x[1];
  return select(binary(NC_LT, unary(NC_ABS, d), x[2]), d * x[3] * 2.0, unary(NC_SIGN, d) * x[4]);
}

Tensor &smoothL1Loss(const Tensor &self, const Tensor &target, int64_t reduction, double beta, Tensor &out)
{
  return pairLoss("smooth_l1_loss", {self, target}, {beta, beta > 0 ? 0.5 / beta : 0.0, 1.0}, reduction, out,
                  quadraticThenLinear);
}

Tensor &smoothL1LossBackward(const Tensor &grad, const Tensor &self, const Tensor &target, int64_t reduction,
                             double beta, Tensor &out)
{
  return pairGradient("smooth_l1_loss_backward", grad, {self, target}, {beta, beta > 0 ? 0.5 / beta : 0.0, 1.0},
                      reduction, out, quadraticThenLinearSlope);
}

Tensor &huberLossOut(const Tensor &self, const Tensor &target, int64_t reduction, double delta, Tensor &out)
{
  return pairLoss("huber_loss", {self, target}, {delta, 0.5, delta}, reduction, out, quadraticThenLinear);
}

Tensor huberLoss(const Tensor &self, const Tensor &target, int64_t reduction, double delta)
{
  Tensor out = at::empty({0}, self.options());
  return huberLossOut(self, target, reduction, delta, out);
}

Tensor &huberLossBackward(const Tensor &grad, const Tensor &self, const Tensor &target, int64_t reduction, double delta,
                          Tensor &out)
{
  return pairGradient("huber_loss_backward", grad, {self, target}, {delta, 0.5, delta}, reduction, out,
                      quadraticThenLinearSlope);
}

// Logarithms are cut off at -100, as PyTorch does, so that a certain and wrong guess has a finite loss.
V crossEntropy(c10::ArrayRef<V> x)
{
  const V floor = x[0].constant(-100);
  const V one = binary(NC_MAX, unary(NC_LN, x[0]), floor);
  const V other = binary(NC_MAX, unary(NC_LN, 1.0 - x[0]), floor);
  const V loss = (x[1] - x[1].constant(1)) * other - x[1] * one;
  return x.size() > 2 ? loss * x[2] : loss;
}

V crossEntropySlope(c10::ArrayRef<V> x)
{
  const V slope = (x[0] - x[1]) / binary(NC_MAX, (1.0 - x[0]) * x[0], x[0].constant(1e-12));
  return x.size() > 2 ? slope * x[2] : slope;
}

Tensor &binaryCrossEntropyOut(const Tensor &self, const Tensor &target, const std::optional<Tensor> &weight,
                              int64_t reduction, Tensor &out)
{
  if (weight && weight->defined())
    return pairLoss("weighted_bce", {self, target, *weight}, {}, reduction, out, crossEntropy);
  return pairLoss("bce", {self, target}, {}, reduction, out, crossEntropy);
}

Tensor binaryCrossEntropy(const Tensor &self, const Tensor &target, const std::optional<Tensor> &weight,
                          int64_t reduction)
{
  Tensor out = at::empty({0}, self.options());
  return binaryCrossEntropyOut(self, target, weight, reduction, out);
}

Tensor &binaryCrossEntropyBackwardOut(const Tensor &grad, const Tensor &self, const Tensor &target,
                                      const std::optional<Tensor> &weight, int64_t reduction, Tensor &out)
{
  if (weight && weight->defined())
    return pairGradient("weighted_bce_backward", grad, {self, target, *weight}, {}, reduction, out, crossEntropySlope);
  return pairGradient("bce_backward", grad, {self, target}, {}, reduction, out, crossEntropySlope);
}

Tensor binaryCrossEntropyBackward(const Tensor &grad, const Tensor &self, const Tensor &target,
                                  const std::optional<Tensor> &weight, int64_t reduction)
{
  Tensor out = at::empty_like(self);
  return binaryCrossEntropyBackwardOut(grad, self, target, weight, reduction, out);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
  NEURON_IMPL("nll_loss_forward.output", nll_loss_forward_output, nllForward);
  NEURON_IMPL("nll_loss_backward.grad_input", nll_loss_backward_grad_input, nllBackward);
  NEURON_IMPL("nll_loss2d_forward", nll_loss2d_forward, nllOfImages);
  NEURON_IMPL("nll_loss2d_forward.output", nll_loss2d_forward_output, nllOfImagesOut);
  NEURON_IMPL("nll_loss2d_backward", nll_loss2d_backward, nllOfImagesBackward);
  NEURON_IMPL("nll_loss2d_backward.grad_input", nll_loss2d_backward_grad_input, nllOfImagesBackwardOut);
  NEURON_IMPL("mse_loss.out", mse_loss_out, mseLoss);
  NEURON_IMPL("mse_loss_backward", mse_loss_backward, mseLossBackwardNew);
  NEURON_IMPL("mse_loss_backward.grad_input", mse_loss_backward_grad_input, mseLossBackward);
  NEURON_IMPL("smooth_l1_loss.out", smooth_l1_loss_out, smoothL1Loss);
  NEURON_IMPL("smooth_l1_loss_backward.grad_input", smooth_l1_loss_backward_grad_input, smoothL1LossBackward);
  NEURON_IMPL("huber_loss", huber_loss, huberLoss);
  NEURON_IMPL("huber_loss.out", huber_loss_out, huberLossOut);
  NEURON_IMPL("huber_loss_backward.out", huber_loss_backward_out, huberLossBackward);
  NEURON_IMPL("binary_cross_entropy", binary_cross_entropy, binaryCrossEntropy);
  NEURON_IMPL("binary_cross_entropy.out", binary_cross_entropy_out, binaryCrossEntropyOut);
  NEURON_IMPL("binary_cross_entropy_backward", binary_cross_entropy_backward, binaryCrossEntropyBackward);
  NEURON_IMPL("binary_cross_entropy_backward.grad_input", binary_cross_entropy_backward_grad_input,
              binaryCrossEntropyBackwardOut);
}

}  // namespace
}  // namespace neuron
