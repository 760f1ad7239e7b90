// SPDX-License-Identifier: Apache-2.0
//
// Reductions, softmax and what is made of them.
#include "Ops.h"

#include <ATen/WrapDimUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/native/ReduceOpsUtils.h>
#include <ATen/ops/_log_softmax_backward_data_ops.h>
#include <ATen/ops/_log_softmax_ops.h>
#include <ATen/ops/_softmax_backward_data_ops.h>
#include <ATen/ops/_softmax_ops.h>
#include <ATen/ops/all_ops.h>
#include <ATen/ops/amax_ops.h>
#include <ATen/ops/amin_ops.h>
#include <ATen/ops/any_ops.h>
#include <ATen/ops/argmax_ops.h>
#include <ATen/ops/argmin_ops.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_vector_norm_ops.h>
#include <ATen/ops/max_ops.h>
#include <ATen/ops/mean_ops.h>
#include <ATen/ops/min_ops.h>
#include <ATen/ops/native_layer_norm_backward_ops.h>
#include <ATen/ops/native_layer_norm_ops.h>
#include <ATen/ops/prod_ops.h>
#include <ATen/ops/std_mean_ops.h>
#include <ATen/ops/std_ops.h>
#include <ATen/ops/sum_ops.h>
#include <ATen/ops/var_mean_ops.h>
#include <ATen/ops/var_ops.h>

namespace neuron {

uint32_t axesOf(at::OptionalIntArrayRef dims, int64_t ndim)
{
  if (!dims || dims->empty())
    return ndim >= 32 ? ~0u : (1u << ndim) - 1;
  uint32_t axes = 0;
  for (const int64_t dim : *dims)
    axes |= 1u << at::maybe_wrap_dim(dim, ndim);
  return ndim == 0 ? 0 : axes;
}

namespace {

using at::Tensor;

// Shape after reducing the axes.
at::DimVector reducedShape(const Tensor &self, uint32_t axes, bool keep)
{
  at::DimVector shape;
  for (int64_t d = 0; d < self.dim(); d++) {
    if (!(axes >> d & 1))
      shape.push_back(self.size(d));
    else if (keep)
      shape.push_back(1);
  }
  return shape;
}

// result = formula(self in the type compute) where the formula reduces the axes, keeping dims.
void reduceInto(const char *name, const Tensor &self, uint32_t axes, bool keep, at::ScalarType compute,
                const Tensor &out, c10::function_ref<V(V)> formula)
{
  at::native::resize_output(out, reducedShape(self, axes, keep));
  if (out.numel() == 0)
    return;
  if (self.numel() == 0)
    throw NotNative("reduction of an empty tensor");
  Op op(name, self.device().index());
  op.attribute(axes).attribute(static_cast<int64_t>(compute));
  op.input(self);
  op.output(out);
  op.run([&](Graph &graph) { graph.out(0, reshape(formula(graph.in(0, compute)), out.sizes())); });
}

at::ScalarType sumType(const Tensor &out)
{
  return computeType(out.scalar_type());
}

Tensor &sum(const Tensor &self, at::OptionalIntArrayRef dims, bool keep, std::optional<at::ScalarType>, Tensor &out)
{
  const uint32_t axes = axesOf(dims, self.dim());
  if (self.numel() == 0) {
    at::native::resize_output(out, reducedShape(self, axes, keep));
    return out.zero_();
  }
  reduceInto("sum", self, axes, keep, sumType(out), out, [axes](V x) { return reduce(NC_REDUCE_SUM, x, axes, true); });
  return out;
}

Tensor &mean(const Tensor &self, at::OptionalIntArrayRef dims, bool keep, std::optional<at::ScalarType>, Tensor &out)
{
  const uint32_t axes = axesOf(dims, self.dim());
  double count = 1;
  for (int64_t d = 0; d < self.dim(); d++)
    if (axes >> d & 1)
      count *= static_cast<double>(self.size(d));
  reduceInto("mean", self, axes, keep, sumType(out), out,
             [&](V x) { return reduce(NC_REDUCE_SUM, x, axes, true) / x.constant(count); });
  return out;
}

Tensor &prod(const Tensor &self, int64_t dim, bool keep, std::optional<at::ScalarType>, Tensor &out)
{
  const int64_t dims[] = {dim};
  const uint32_t axes = axesOf(at::IntArrayRef(dims), self.dim());
  reduceInto("prod", self, axes, keep, sumType(out), out,
             [axes](V x) { return reduce(NC_REDUCE_PROD, x, axes, true); });
  return out;
}

Tensor prodAll(const Tensor &self, std::optional<at::ScalarType> type)
{
  const auto kind = type ? *type : at::isIntegralType(self.scalar_type(), true) ? at::kLong : self.scalar_type();
  Tensor out = at::empty({}, self.options().dtype(kind));
  if (self.numel() == 0)
    return out.fill_(1);
  const uint32_t axes = axesOf(std::nullopt, self.dim());
  reduceInto("prod", self, axes, false, sumType(out), out,
             [axes](V x) { return reduce(NC_REDUCE_PROD, x, axes, true); });
  return out;
}

// --- variance, in two passes: the mean, then the squares of what differs from it

Tensor &varianceInto(bool root, const Tensor &self, at::OptionalIntArrayRef dims,
                     const std::optional<at::Scalar> &correction, bool keep, Tensor &out, const Tensor &mean)
{
  const uint32_t axes = axesOf(dims, self.dim());
  const auto shape = reducedShape(self, axes, keep);
  at::native::resize_output(out, shape);
  if (self.numel() == 0 || !at::isFloatingType(self.scalar_type()))
    throw NotNative("variance of an empty tensor or of integers");
  const auto type = computeType(self.scalar_type());
  const double count = static_cast<double>(self.numel()) / static_cast<double>(out.numel());
  const double freedom = std::max(0.0, count - (correction ? correction->toDouble() : 1.0));
  Op op(root ? "std" : "var", self.device().index());
  op.attribute(axes);
  op.input(self);
  op.scalar(freedom, type);
  op.output(out);
  if (mean.defined())
    op.output(mean);
  op.run([&](Graph &graph) {
    const V x = graph.in(0, type);
    const V average = reduce(NC_REDUCE_SUM, x, axes, true) / x.constant(count);
    const V centred = x - average;
    const V variance = reduce(NC_REDUCE_SUM, centred * centred, axes, true) / graph.in(1);
    graph.out(0, reshape(root ? unary(NC_SQRT, variance) : variance, out.sizes()));
    if (mean.defined())
      graph.out(1, reshape(average, out.sizes()));
  });
  return out;
}

template <bool root>
Tensor &varianceOut(const Tensor &self, at::OptionalIntArrayRef dims, const std::optional<at::Scalar> &correction,
                    bool keep, Tensor &out)
{
  return varianceInto(root, self, dims, correction, keep, out, Tensor());
}

template <bool root>
Tensor variance(const Tensor &self, at::OptionalIntArrayRef dims, const std::optional<at::Scalar> &correction,
                bool keep)
{
  Tensor out = at::empty({0}, self.options());
  return varianceOut<root>(self, dims, correction, keep, out);
}

template <bool root>
std::tuple<Tensor, Tensor> varianceMean(const Tensor &self, at::OptionalIntArrayRef dims,
                                        const std::optional<at::Scalar> &correction, bool keep)
{
  const auto shape = reducedShape(self, axesOf(dims, self.dim()), keep);
  Tensor out = at::empty(shape, self.options()), mean = at::empty(shape, self.options());
  varianceInto(root, self, dims, correction, keep, out, mean);
  return {out, mean};
}

Tensor &extreme(const char *name, nc_reduce_op op, const Tensor &self, uint32_t axes, bool keep, Tensor &out)
{
  auto type = computeType(self.scalar_type());
  if (type == at::kBool)
    type = at::kInt;
  reduceInto(name, self, axes, keep, type, out, [=](V x) { return reduce(op, x, axes, true); });
  return out;
}

Tensor &amax(const Tensor &self, at::IntArrayRef dims, bool keep, Tensor &out)
{
  return extreme("amax", NC_REDUCE_MAX, self, axesOf(dims, self.dim()), keep, out);
}

Tensor &amin(const Tensor &self, at::IntArrayRef dims, bool keep, Tensor &out)
{
  return extreme("amin", NC_REDUCE_MIN, self, axesOf(dims, self.dim()), keep, out);
}

Tensor extremeOfAll(const Tensor &self, nc_reduce_op op)
{
  TORCH_CHECK(self.numel() > 0,
              "max(): Expected reduction dim to be specified for input.numel() == 0. "
              "Specify the reduction dim with the 'dim' argument.");
  Tensor out = at::empty({}, self.options());
  return extreme(op == NC_REDUCE_MAX ? "max" : "min", op, self, axesOf(std::nullopt, self.dim()), false, out);
}

Tensor max(const Tensor &self)
{
  return extremeOfAll(self, NC_REDUCE_MAX);
}

Tensor min(const Tensor &self)
{
  return extremeOfAll(self, NC_REDUCE_MIN);
}

// Any and all as extremes of x != 0.
Tensor &truth(const char *name, nc_reduce_op op, const Tensor &self, uint32_t axes, bool keep, Tensor &out)
{
  reduceInto(name, self, axes, keep, at::kBool, out, [=](V x) { return reduce(op, cast(x, NC_INT32), axes, true); });
  return out;
}

Tensor &any(const Tensor &self, int64_t dim, bool keep, Tensor &out)
{
  return truth("any", NC_REDUCE_MAX, self, axesOf(at::IntArrayRef(dim), self.dim()), keep, out);
}

Tensor &all(const Tensor &self, int64_t dim, bool keep, Tensor &out)
{
  return truth("all", NC_REDUCE_MIN, self, axesOf(at::IntArrayRef(dim), self.dim()), keep, out);
}

Tensor &anyAll(const Tensor &self, Tensor &out)
{
  return truth("any", NC_REDUCE_MAX, self, axesOf(std::nullopt, self.dim()), false, out);
}

Tensor &allAll(const Tensor &self, Tensor &out)
{
  return truth("all", NC_REDUCE_MIN, self, axesOf(std::nullopt, self.dim()), false, out);
}

// Index of the first element that is the extreme (NaN is both).
V indexOf(V x, V best, uint32_t dim)
{
  const auto type = x.type();
  const V position = iota(x.graph, NC_INT32, c10::ArrayRef<int64_t>(type.dims, type.ndim), dim);
  const V none = position.constant(static_cast<double>(type.dims[dim] - 1));
  return reduce(NC_REDUCE_MIN, select(isExtreme(x, best), position, none), 1u << dim, true);
}

Tensor &argExtreme(const char *name, nc_reduce_op op, const Tensor &self, std::optional<int64_t> dim, bool keep,
                   Tensor &out)
{
  const Tensor flat = dim ? self : self.reshape({-1});
  const auto axis = static_cast<uint32_t>(dim ? at::maybe_wrap_dim(*dim, self.dim()) : 0);
  if (self.dim() == 0 && dim)
    return out.zero_();
  at::DimVector shape = dim ? reducedShape(self, 1u << axis, keep) : at::DimVector(keep ? self.dim() : 0, 1);
  at::native::resize_output(out, shape);
  if (out.numel() == 0)
    return out;
  auto type = computeType(self.scalar_type());
  type = type == at::kBool ? at::kInt : type;
  Op launch(name, self.device().index());
  launch.attribute(axis);
  launch.input(flat);
  launch.output(out);
  launch.run([&](Graph &graph) {
    const V x = graph.in(0, type);
    graph.out(0, reshape(indexOf(x, reduce(op, x, 1u << axis, true), axis), out.sizes()));
  });
  return out;
}

Tensor &argmax(const Tensor &self, std::optional<int64_t> dim, bool keep, Tensor &out)
{
  return argExtreme("argmax", NC_REDUCE_MAX, self, dim, keep, out);
}

Tensor &argmin(const Tensor &self, std::optional<int64_t> dim, bool keep, Tensor &out)
{
  return argExtreme("argmin", NC_REDUCE_MIN, self, dim, keep, out);
}

std::tuple<Tensor &, Tensor &> extremeDim(const char *name, nc_reduce_op op, const Tensor &self, int64_t dim, bool keep,
                                          Tensor &values, Tensor &indices)
{
  const auto axis = static_cast<uint32_t>(at::maybe_wrap_dim(dim, self.dim()));
  if (self.dim() == 0)
    throw NotNative("extreme of a scalar along a dim");
  const auto shape = reducedShape(self, 1u << axis, keep);
  at::native::resize_output(values, shape);
  at::native::resize_output(indices, shape);
  if (values.numel() == 0)
    return {values, indices};
  auto type = computeType(self.scalar_type());
  type = type == at::kBool ? at::kInt : type;
  Op launch(name, self.device().index());
  launch.attribute(axis);
  launch.input(self);
  launch.output(values);
  launch.output(indices);
  launch.run([&](Graph &graph) {
    const V x = graph.in(0, type);
    const V best = reduce(op, x, 1u << axis, true);
    graph.out(0, reshape(best, shape));
    graph.out(1, reshape(indexOf(x, best, axis), shape));
  });
  return {values, indices};
}

std::tuple<Tensor &, Tensor &> maxDim(const Tensor &self, int64_t dim, bool keep, Tensor &values, Tensor &indices)
{
  return extremeDim("max_dim", NC_REDUCE_MAX, self, dim, keep, values, indices);
}

std::tuple<Tensor &, Tensor &> minDim(const Tensor &self, int64_t dim, bool keep, Tensor &values, Tensor &indices)
{
  return extremeDim("min_dim", NC_REDUCE_MIN, self, dim, keep, values, indices);
}

Tensor &vectorNorm(const Tensor &self, const at::Scalar &ord, at::OptionalIntArrayRef dims, bool keep,
                   std::optional<at::ScalarType>, Tensor &out)
{
  if (!ord.equal(2) || at::isComplexType(self.scalar_type()))
    throw NotNative("norms other than 2");
  const uint32_t axes = axesOf(dims, self.dim());
  if (self.numel() == 0)
    throw NotNative("norm of an empty tensor");
  reduceInto("vector_norm", self, axes, keep, sumType(out), out,
             [axes](V x) { return unary(NC_SQRT, reduce(NC_REDUCE_SUM, x * x, axes, true)); });
  return out;
}

// --- softmax

void softmaxInto(const char *name, const Tensor &self, int64_t dim, const Tensor &out,
                 c10::function_ref<V(V, uint32_t)> formula)
{
  at::native::resize_output(out, self.sizes());
  if (out.numel() == 0)
    return;
  const uint32_t axes = self.dim() ? 1u << at::maybe_wrap_dim(dim, self.dim()) : 0;
  const auto type = computeType(out.scalar_type());
  Op op(name, self.device().index());
  op.attribute(axes);
  op.input(self);
  op.output(out);
  op.run([&](Graph &graph) { graph.out(0, formula(graph.in(0, type), axes)); });
}

Tensor &softmax(const Tensor &self, int64_t dim, bool, Tensor &out)
{
  softmaxInto("softmax", self, dim, out, [](V x, uint32_t axes) {
    const V e = unary(NC_EXP, x - reduce(NC_REDUCE_MAX, x, axes, true));
    return e / reduce(NC_REDUCE_SUM, e, axes, true);
  });
  return out;
}

Tensor &logSoftmax(const Tensor &self, int64_t dim, bool, Tensor &out)
{
  softmaxInto("log_softmax", self, dim, out, [](V x, uint32_t axes) {
    const V shifted = x - reduce(NC_REDUCE_MAX, x, axes, true);
    return shifted - unary(NC_LN, reduce(NC_REDUCE_SUM, unary(NC_EXP, shifted), axes, true));
  });
  return out;
}

Tensor &softmaxGrad(const char *name, const Tensor &grad, const Tensor &y, int64_t dim, Tensor &out,
                    c10::function_ref<V(V, V, uint32_t)> formula)
{
  at::native::resize_output(out, grad.sizes());
  if (out.numel() == 0)
    return out;
  const uint32_t axes = grad.dim() ? 1u << at::maybe_wrap_dim(dim, grad.dim()) : 0;
  const auto type = computeType(grad.scalar_type());
  Op op(name, grad.device().index());
  op.attribute(axes);
  op.input(grad);
  op.input(y);
  op.output(out);
  op.run([&](Graph &graph) { graph.out(0, formula(graph.in(0, type), graph.in(1, type), axes)); });
  return out;
}

Tensor &softmaxBackward(const Tensor &grad, const Tensor &y, int64_t dim, at::ScalarType, Tensor &out)
{
  return softmaxGrad("softmax_backward", grad, y, dim, out,
                     [](V dy, V y, uint32_t axes) { return (dy - reduce(NC_REDUCE_SUM, dy * y, axes, true)) * y; });
}

Tensor &logSoftmaxBackward(const Tensor &grad, const Tensor &y, int64_t dim, at::ScalarType, Tensor &out)
{
  return softmaxGrad("log_softmax_backward", grad, y, dim, out, [](V dy, V y, uint32_t axes) {
    return dy - unary(NC_EXP, y) * reduce(NC_REDUCE_SUM, dy, axes, true);
  });
}

// --- layer norm: rows of the last dims, seen as [rows, columns]

std::tuple<Tensor, Tensor, Tensor> layerNorm(const Tensor &input, at::IntArrayRef normalized,
                                             const std::optional<Tensor> &weight, const std::optional<Tensor> &bias,
                                             double eps)
{
  const int64_t columns = c10::multiply_integers(normalized);
  const int64_t rows = columns ? input.numel() / columns : 0;
  const Tensor x = input.contiguous().view({rows, columns});
  Tensor y = at::empty(input.sizes(), input.options());
  at::DimVector shape(input.sizes().begin(), input.sizes().end());
  for (size_t d = shape.size() - normalized.size(); d < shape.size(); d++)
    shape[d] = 1;
  const auto stats = input.options().dtype(computeType(input.scalar_type()));
  Tensor mean = at::empty(shape, stats);
  Tensor rstd = at::empty(shape, stats);
  if (rows == 0 || columns == 0)
    throw NotNative("layer norm of an empty tensor");
  const bool hasWeight = weight && weight->defined();
  const bool hasBias = bias && bias->defined();
  const auto type = computeType(input.scalar_type());
  Op op("layer_norm", input.device().index());
  op.attribute(hasWeight).attribute(hasBias);
  op.input(x);
  op.scalar(eps, type);
  if (hasWeight)
    op.input(weight->reshape({1, columns}), {rows, columns});
  if (hasBias)
    op.input(bias->reshape({1, columns}), {rows, columns});
  op.output(y.view({rows, columns}));
  op.output(mean.view({rows, 1}));
  op.output(rstd.view({rows, 1}));
  op.run([&](Graph &graph) {
    const V v = graph.in(0, type);
    const V count = v.constant(static_cast<double>(columns));
    const V average = reduce(NC_REDUCE_SUM, v, 2, true) / count;
    const V centred = v - average;
    const V variance = reduce(NC_REDUCE_SUM, centred * centred, 2, true) / count;
    const V scale = unary(NC_RSQRT, variance + graph.in(1, type));
    V result = centred * scale;
    if (hasWeight)
      result = result * graph.in(2, type);
    if (hasBias)
      result = result + graph.in(hasWeight ? 3 : 2, type);
    graph.out(0, result);
    graph.out(1, average);
    graph.out(2, scale);
  });
  return {y, mean, rstd};
}

std::tuple<Tensor, Tensor, Tensor> layerNormBackward(const Tensor &grad, const Tensor &input,
                                                     at::IntArrayRef normalized, const Tensor &mean, const Tensor &rstd,
                                                     const std::optional<Tensor> &weight,
                                                     const std::optional<Tensor> &bias, std::array<bool, 3> wanted)
{
  const int64_t columns = c10::multiply_integers(normalized);
  const int64_t rows = columns ? input.numel() / columns : 0;
  if (rows == 0 || columns == 0)
    throw NotNative("layer norm of an empty tensor");
  const bool hasWeight = weight && weight->defined();
  const bool hasBias = bias && bias->defined();
  const auto type = computeType(input.scalar_type());
  Tensor dx, dweight, dbias;
  Op op("layer_norm_backward", input.device().index());
  op.attribute(hasWeight).attribute(wanted[0]).attribute(wanted[1] && hasWeight).attribute(wanted[2] && hasBias);
  op.input(grad.contiguous().view({rows, columns}));
  op.input(input.contiguous().view({rows, columns}));
  op.input(mean.view({rows, 1}));
  op.input(rstd.view({rows, 1}));
  if (hasWeight)
    op.input(weight->reshape({1, columns}), {rows, columns});
  int results = 0;
  if (wanted[0]) {
    dx = at::empty(input.sizes(), input.options());
    op.output(dx.view({rows, columns}));
    results++;
  }
  if (wanted[1] && hasWeight) {
    dweight = at::empty(normalized, weight->options());
    op.output(dweight.view({1, columns}));
    results++;
  }
  if (wanted[2] && hasBias) {
    dbias = at::empty(normalized, bias->options());
    op.output(dbias.view({1, columns}));
    results++;
  }
  if (!results)
    return {dx, dweight, dbias};
  op.run([&](Graph &graph) {
    const V dy = graph.in(0, type);
    const V scale = graph.in(3, type);
    const V normal = (graph.in(1, type) - graph.in(2, type)) * scale;
    const V count = dy.constant(static_cast<double>(columns));
    int result = 0;
    if (wanted[0]) {
      const V weighted = hasWeight ? dy * graph.in(4, type) : dy;
      const V one = reduce(NC_REDUCE_SUM, weighted, 2, true) / count;
      const V two = reduce(NC_REDUCE_SUM, weighted * normal, 2, true) / count;
      graph.out(result++, (weighted - one - normal * two) * scale);
    }
    if (wanted[1] && hasWeight)
      graph.out(result++, reduce(NC_REDUCE_SUM, dy * normal, 1, true));
    if (wanted[2] && hasBias)
      graph.out(result++, reduce(NC_REDUCE_SUM, dy, 1, true));
  });
  return {dx, dweight, dbias};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
  NEURON_IMPL("sum.IntList_out", sum_IntList_out, sum);
  NEURON_IMPL("mean.out", mean_out, mean);
  NEURON_IMPL("prod.int_out", prod_int_out, prod);
  NEURON_IMPL("prod", prod, prodAll);
  NEURON_IMPL("var.correction", var_correction, variance<false>);
  NEURON_IMPL("var.correction_out", var_correction_out, varianceOut<false>);
  NEURON_IMPL("var_mean.correction", var_mean_correction, varianceMean<false>);
  NEURON_IMPL("std.correction", std_correction, variance<true>);
  NEURON_IMPL("std.correction_out", std_correction_out, varianceOut<true>);
  NEURON_IMPL("std_mean.correction", std_mean_correction, varianceMean<true>);
  NEURON_IMPL("amax.out", amax_out, amax);
  NEURON_IMPL("amin.out", amin_out, amin);
  NEURON_IMPL("max", max, max);
  NEURON_IMPL("min", min, min);
  NEURON_IMPL("max.dim_max", max_dim_max, maxDim);
  NEURON_IMPL("min.dim_min", min_dim_min, minDim);
  NEURON_IMPL("any.out", any_out, any);
  NEURON_IMPL("all.out", all_out, all);
  NEURON_IMPL("any.all_out", any_all_out, anyAll);
  NEURON_IMPL("all.all_out", all_all_out, allAll);
  NEURON_IMPL("argmax.out", argmax_out, argmax);
  NEURON_IMPL("argmin.out", argmin_out, argmin);
  NEURON_IMPL("linalg_vector_norm.out", linalg_vector_norm_out, vectorNorm);
  NEURON_IMPL("_softmax.out", _softmax_out, softmax);
  NEURON_IMPL("_log_softmax.out", _log_softmax_out, logSoftmax);
  NEURON_IMPL("_softmax_backward_data.out", _softmax_backward_data_out, softmaxBackward);
  NEURON_IMPL("_log_softmax_backward_data.out", _log_softmax_backward_data_out, logSoftmaxBackward);
  NEURON_IMPL("native_layer_norm", native_layer_norm, layerNorm);
  NEURON_IMPL("native_layer_norm_backward", native_layer_norm_backward, layerNormBackward);
}

}  // namespace
}  // namespace neuron
