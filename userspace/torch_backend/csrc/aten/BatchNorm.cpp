// SPDX-License-Identifier: Apache-2.0
//
// Batch norm: statistics over all but the channels, tensors seen as [images, channels, places].
#include "Ops.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/native_batch_norm_backward_ops.h>
#include <ATen/ops/native_batch_norm_ops.h>

namespace neuron {
namespace {

using at::Tensor;
using MaybeTensor = std::optional<Tensor>;

constexpr uint32_t kAxes = 1u << 0 | 1u << 2;

struct Batch {
  Tensor x;
  int64_t images, channels, places;
  at::ScalarType type;

  explicit Batch(const Tensor &input)
  {
    if (input.dim() < 2 || input.numel() == 0)
      throw NotNative("batch norm of an empty tensor");
    images = input.size(0);
    channels = input.size(1);
    places = input.numel() / images / channels;
    type = computeType(input.scalar_type());
    x = rows(input);
  }

  Tensor rows(const Tensor &tensor) const { return tensor.contiguous().view({images, channels, places}); }
  at::DimVector shape() const { return {images, channels, places}; }
  double count() const { return static_cast<double>(images * places); }
};

bool has(const MaybeTensor &tensor)
{
  return tensor && tensor->defined();
}

// A vector of one value a channel, as an operand; -1 for none.
int channelInput(Op &op, const MaybeTensor &vector, at::IntArrayRef shape)
{
  op.attribute(has(vector));
  return has(vector) ? op.input(vector->reshape({1, -1, 1}), shape) : -1;
}

// Of one value a channel: not repeated, so that a program may write it in place.
int channelState(Op &op, const Tensor &vector)
{
  return op.input(vector.view({1, -1, 1}));
}

V affine(Graph &graph, V x, int weight, int bias, at::ScalarType type)
{
  if (weight >= 0)
    x = x * graph.in(weight, type);
  return bias >= 0 ? x + graph.in(bias, type) : x;
}

Tensor normalizeWith(const Batch &batch, const Tensor &input, const MaybeTensor &weight, const MaybeTensor &bias,
                     const MaybeTensor &mean, const MaybeTensor &variance, double eps)
{
  Tensor y = at::empty(input.sizes(), input.options());
  const auto shape = batch.shape();
  Op op("batch_norm_inference", input.device().index());
  op.input(batch.x);
  op.scalar(eps, batch.type);
  channelInput(op, mean, shape);
  channelInput(op, variance, shape);
  const int w = channelInput(op, weight, shape);
  const int b = channelInput(op, bias, shape);
  op.output(y.view(shape));
  op.run([&](Graph &graph) {
    const V scale = unary(NC_RSQRT, graph.in(3, batch.type) + graph.in(1));
    graph.out(0, affine(graph, (graph.in(0, batch.type) - graph.in(2, batch.type)) * scale, w, b, batch.type));
  });
  return y;
}

std::tuple<Tensor, Tensor, Tensor> batchNorm(const Tensor &input, const MaybeTensor &weight, const MaybeTensor &bias,
                                             const MaybeTensor &mean, const MaybeTensor &variance, bool training,
                                             double momentum, double eps)
{
  const Batch batch(input);
  const auto statistics = input.options().dtype(batch.type);
  if (!training) {
    const Tensor none = at::empty({0}, statistics);
    return {normalizeWith(batch, input, weight, bias, mean, variance, eps), none, none};
  }
  const bool running = has(mean) && has(variance);
  if ((has(mean) || has(variance)) && (!running || !mean->is_contiguous() || !variance->is_contiguous()))
    throw NotNative("batch norm with these running statistics");
  Tensor y = at::empty(input.sizes(), input.options());
  Tensor saved = at::empty({batch.channels}, statistics), inverse = at::empty({batch.channels}, statistics);
  const auto shape = batch.shape();
  Op op("batch_norm", input.device().index());
  op.attribute(running);
  op.input(batch.x);
  op.scalar(eps, batch.type);
  op.scalar(momentum, batch.type);
  const int w = channelInput(op, weight, shape);
  const int b = channelInput(op, bias, shape);
  const int oldMean = running ? channelState(op, *mean) : -1;
  const int oldVariance = running ? channelState(op, *variance) : -1;
  op.output(y.view(shape));
  op.output(saved.view({1, -1, 1}));
  op.output(inverse.view({1, -1, 1}));
  if (running) {
    op.output(mean->view({1, -1, 1}));
    op.output(variance->view({1, -1, 1}));
  }
  op.run([&](Graph &graph) {
    const V x = graph.in(0, batch.type);
    const V average = reduce(NC_REDUCE_SUM, x, kAxes, true) * (1 / batch.count());
    const V centred = x - average;
    const V squares = reduce(NC_REDUCE_SUM, centred * centred, kAxes, true);
    const V scale = unary(NC_RSQRT, squares * (1 / batch.count()) + graph.in(1));
    graph.out(0, affine(graph, centred * scale, w, b, batch.type));
    graph.out(1, average);
    graph.out(2, scale);
    if (!running)
      return;
    const auto moved = [&](int old, V now) {
      const V before = graph.in(old, batch.type);
      return before + graph.in(2) * (now - before);
    };
    graph.out(3, moved(oldMean, average));
    graph.out(4, moved(oldVariance, squares * (1 / (batch.count() - 1))));
  });
  return {y, saved, inverse};
}

std::tuple<Tensor, Tensor, Tensor> batchNormBackward(const Tensor &grad, const Tensor &input, const MaybeTensor &weight,
                                                     const MaybeTensor &mean, const MaybeTensor &variance,
                                                     const MaybeTensor &saved, const MaybeTensor &inverse,
                                                     bool training, double eps, std::array<bool, 3> wanted)
{
  const Batch batch(input);
  const auto shape = batch.shape();
  const auto type = batch.type;
  Tensor dx, dweight, dbias;
  wanted[1] = wanted[1] && has(weight);
  wanted[2] = wanted[2] && has(weight);
  if (!wanted[0] && !wanted[1] && !wanted[2])
    return {dx, dweight, dbias};
  Op op("batch_norm_backward", input.device().index());
  op.attribute(training).attribute(wanted[0]).attribute(wanted[1]).attribute(wanted[2]);
  op.input(batch.x);
  op.input(batch.rows(grad));
  op.scalar(eps, type);
  channelInput(op, training ? saved : mean, shape);
  channelInput(op, training ? inverse : variance, shape);
  const int w = channelInput(op, weight, shape);
  if (wanted[0]) {
    dx = at::empty(input.sizes(), input.options());
    op.output(dx.view(shape));
  }
  for (int i = 1; i < 3; i++)
    if (wanted[i]) {
      Tensor &vector = i == 1 ? dweight : dbias;
      vector = at::empty(weight->sizes(), weight->options());
      op.output(vector.view({1, -1, 1}));
    }
  op.run([&](Graph &graph) {
    const V dy = graph.in(1, type);
    const V scale = training ? graph.in(4, type) : unary(NC_RSQRT, graph.in(4, type) + graph.in(2));
    const V normal = (graph.in(0, type) - graph.in(3, type)) * scale;
    const V sum = reduce(NC_REDUCE_SUM, dy, kAxes, true);
    const V product = reduce(NC_REDUCE_SUM, dy * normal, kAxes, true);
    int result = 0;
    if (wanted[0]) {
      const double share = 1 / batch.count();
      const V slope = training ? dy - sum * share - normal * (product * share) : dy;
      graph.out(result++, slope * (w >= 0 ? scale * graph.in(w, type) : scale));
    }
    if (wanted[1])
      graph.out(result++, product);
    if (wanted[2])
      graph.out(result++, sum);
  });
  return {dx, dweight, dbias};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
  NEURON_IMPL("native_batch_norm", native_batch_norm, batchNorm);
  NEURON_IMPL("native_batch_norm_backward", native_batch_norm_backward, batchNormBackward);
}

}  // namespace
}  // namespace neuron
