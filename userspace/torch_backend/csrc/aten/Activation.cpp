// SPDX-License-Identifier: Apache-2.0
//
// Activation functions and their gradients.
#include "Ops.h"

#include <ATen/native/Resize.h>
#include <ATen/ops/elu_backward_ops.h>
#include <ATen/ops/elu_ops.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/gelu_backward_ops.h>
#include <ATen/ops/gelu_ops.h>
#include <ATen/ops/hardsigmoid_backward_ops.h>
#include <ATen/ops/hardsigmoid_ops.h>
#include <ATen/ops/hardswish_backward_ops.h>
#include <ATen/ops/hardswish_ops.h>
#include <ATen/ops/hardtanh_backward_ops.h>
#include <ATen/ops/hardtanh_ops.h>
#include <ATen/ops/leaky_relu_backward_ops.h>
#include <ATen/ops/leaky_relu_ops.h>
#include <ATen/ops/log_sigmoid_backward_ops.h>
#include <ATen/ops/log_sigmoid_forward_ops.h>
#include <ATen/ops/relu_ops.h>
#include <ATen/ops/sigmoid_backward_ops.h>
#include <ATen/ops/silu_backward_ops.h>
#include <ATen/ops/softplus_backward_ops.h>
#include <ATen/ops/softplus_ops.h>
#include <ATen/ops/tanh_backward_ops.h>
#include <ATen/ops/threshold_backward_ops.h>
#include <ATen/ops/threshold_ops.h>

namespace neuron {
namespace {

using at::Scalar;
using at::Tensor;
using Vs = c10::ArrayRef<V>;

// out = formula of operands of one shape and dtype, which are also the result's.
template <class F>
Tensor &pointwise(const char *name, at::ArrayRef<Tensor> operands, at::ArrayRef<Scalar> scalars, const Tensor &out,
                  F formula)
{
  at::native::resize_output(out, operands[0].sizes());
  elementwise(name, out, operands, scalars, computeType(operands[0].scalar_type()), formula);
  return const_cast<Tensor &>(out);
}

V zeroOf(V x)
{
  return x.constant(0);
}

V clampedShift(V x)
{
  return binary(NC_MIN, binary(NC_MAX, x + 3, zeroOf(x)), x.constant(6));
}

// --- relu and kin

V reluFormula(Vs x)
{
  return x[0].isFloat() ? unary(NC_RELU, x[0]) : binary(NC_MAX, x[0], zeroOf(x[0]));
}

Tensor relu(const Tensor &self)
{
  Tensor out = at::empty_like(self);
  return pointwise("relu", {self}, {}, out, reluFormula);
}

Tensor &reluInPlace(Tensor &self)
{
  return pointwise("relu", {self}, {}, self, reluFormula);
}

Tensor &threshold(const Tensor &self, const Scalar &threshold, const Scalar &value, Tensor &out)
{
  return pointwise("threshold", {self}, {threshold, value}, out,
                   [](Vs x) { return select(binary(NC_LE, x[0], x[1]), x[2], x[0]); });
}

Tensor &thresholdBackward(const Tensor &grad, const Tensor &self, const Scalar &threshold, Tensor &out)
{
  return pointwise("threshold_backward", {self, grad}, {threshold}, out,
                   [](Vs x) { return select(binary(NC_LE, x[0], x[2]), zeroOf(x[0]), x[1]); });
}

Tensor &hardtanhOut(const Tensor &self, const Scalar &min, const Scalar &max, Tensor &out)
{
  return pointwise("hardtanh", {self}, {min, max}, out,
                   [](Vs x) { return binary(NC_MIN, binary(NC_MAX, x[0], x[1]), x[2]); });
}

Tensor hardtanh(const Tensor &self, const Scalar &min, const Scalar &max)
{
  Tensor out = at::empty_like(self);
  return hardtanhOut(self, min, max, out);
}

Tensor &hardtanhInPlace(Tensor &self, const Scalar &min, const Scalar &max)
{
  return hardtanhOut(self, min, max, self);
}

Tensor hardtanhBackward(const Tensor &grad, const Tensor &self, const Scalar &min, const Scalar &max)
{
  Tensor out = at::empty_like(grad);
  return pointwise("hardtanh_backward", {self, grad}, {min, max}, out, [](Vs x) {
    const V outside = binary(NC_OR, binary(NC_LE, x[0], x[2]), binary(NC_GE, x[0], x[3]));
    return select(outside, zeroOf(x[0]), x[1]);
  });
}

Tensor &leakyRelu(const Tensor &self, const Scalar &slope, Tensor &out)
{
  return pointwise("leaky_relu", {self}, {slope}, out,
                   [](Vs x) { return select(binary(NC_GT, x[0], zeroOf(x[0])), x[0], x[0] * x[1]); });
}

Tensor &leakyReluBackward(const Tensor &grad, const Tensor &self, const Scalar &slope, bool, Tensor &out)
{
  return pointwise("leaky_relu_backward", {self, grad}, {slope}, out,
                   [](Vs x) { return select(binary(NC_GT, x[0], zeroOf(x[0])), x[1], x[1] * x[2]); });
}

Tensor &elu(const Tensor &self, const Scalar &alpha, const Scalar &scale, const Scalar &inputScale, Tensor &out)
{
  return pointwise("elu", {self}, {alpha.toDouble() * scale.toDouble(), scale, inputScale}, out, [](Vs x) {
    return select(binary(NC_LT, x[0], zeroOf(x[0])), unary(NC_EXPM1, x[0] * x[3]) * x[1], x[0] * x[2]);
  });
}

Tensor &eluBackward(const Tensor &grad, const Scalar &alpha, const Scalar &scale, const Scalar &inputScale,
                    bool isResult, const Tensor &x, Tensor &out)
{
  const Scalar negative = alpha.toDouble() * scale.toDouble();
  if (isResult)
    return pointwise("elu_backward_result", {x, grad}, {negative, scale, inputScale}, out, [](Vs x) {
      return select(binary(NC_LE, x[0], zeroOf(x[0])), x[1] * x[4] * (x[0] + x[2]), x[1] * x[3]);
    });
  return pointwise("elu_backward", {x, grad}, {negative, scale, inputScale}, out, [](Vs x) {
    return select(binary(NC_LE, x[0], zeroOf(x[0])), x[1] * x[4] * x[2] * unary(NC_EXP, x[0] * x[4]), x[1] * x[3]);
  });
}

// --- smooth ones

Tensor &gelu(const Tensor &self, c10::string_view approximate, Tensor &out)
{
  if (approximate == "tanh")
    return pointwise("gelu_tanh", {self}, {}, out, [](Vs x) { return unary(NC_GELU_TANH, x[0]); });
  return pointwise("gelu", {self}, {}, out, [](Vs x) { return unary(NC_GELU, x[0]); });
}

Tensor &geluBackward(const Tensor &grad, const Tensor &self, c10::string_view approximate, Tensor &out)
{
  if (approximate == "tanh")
    return pointwise("gelu_tanh_backward", {self, grad}, {}, out,
                     [](Vs x) { return x[1] * unary(NC_DGELU_TANH, x[0]); });
  return pointwise("gelu_backward", {self, grad}, {}, out, [](Vs x) { return x[1] * unary(NC_DGELU, x[0]); });
}

Tensor &sigmoidBackward(const Tensor &grad, const Tensor &y, Tensor &out)
{
  return pointwise("sigmoid_backward", {y, grad}, {}, out, [](Vs x) { return x[1] * ((1.0 - x[0]) * x[0]); });
}

Tensor &tanhBackward(const Tensor &grad, const Tensor &y, Tensor &out)
{
  return pointwise("tanh_backward", {y, grad}, {}, out, [](Vs x) { return x[1] * (1.0 - x[0] * x[0]); });
}

Tensor &siluBackward(const Tensor &grad, const Tensor &self, Tensor &out)
{
  return pointwise("silu_backward", {self, grad}, {}, out, [](Vs x) { return x[1] * unary(NC_DSILU, x[0]); });
}

Tensor &softplus(const Tensor &self, const Scalar &beta, const Scalar &threshold, Tensor &out)
{
  return pointwise("softplus", {self}, {beta, threshold}, out, [](Vs x) {
    const V scaled = x[0] * x[1];
    return select(binary(NC_GT, scaled, x[2]), x[0], unary(NC_SOFTPLUS, scaled) / x[1]);
  });
}

Tensor &softplusBackward(const Tensor &grad, const Tensor &self, const Scalar &beta, const Scalar &threshold,
                         Tensor &out)
{
  return pointwise("softplus_backward", {self, grad}, {beta, threshold}, out, [](Vs x) {
    const V scaled = x[0] * x[2];
    return select(binary(NC_GT, scaled, x[3]), x[1], x[1] * unary(NC_SIGMOID, scaled));
  });
}

// PyTorch's CPU kernel leaves exp(-|x|) in the buffer for the gradient; ours needs none.
std::tuple<Tensor &, Tensor &> logSigmoidOut(const Tensor &self, Tensor &out, Tensor &buffer)
{
  at::native::resize_output(buffer, {0});
  pointwise("log_sigmoid", {self}, {}, out, [](Vs x) {
    const V zero = zeroOf(x[0]);
    return binary(NC_MIN, x[0], zero) - unary(NC_LOG1P, unary(NC_EXP, zero - unary(NC_ABS, x[0])));
  });
  return {out, buffer};
}

std::tuple<Tensor, Tensor> logSigmoid(const Tensor &self)
{
  Tensor out = at::empty_like(self), buffer = at::empty({0}, self.options());
  logSigmoidOut(self, out, buffer);
  return {out, buffer};
}

Tensor &logSigmoidBackwardOut(const Tensor &grad, const Tensor &self, const Tensor &, Tensor &out)
{
  return pointwise("log_sigmoid_backward", {self, grad}, {}, out,
                   [](Vs x) { return x[1] * unary(NC_SIGMOID, zeroOf(x[0]) - x[0]); });
}

Tensor logSigmoidBackward(const Tensor &grad, const Tensor &self, const Tensor &buffer)
{
  Tensor out = at::empty_like(grad);
  return logSigmoidBackwardOut(grad, self, buffer, out);
}

// --- piecewise linear ones

Tensor &hardsigmoid(const Tensor &self, Tensor &out)
{
  return pointwise("hardsigmoid", {self}, {}, out, [](Vs x) { return clampedShift(x[0]) / x[0].constant(6); });
}

Tensor &hardsigmoidBackward(const Tensor &grad, const Tensor &self, Tensor &out)
{
  return pointwise("hardsigmoid_backward", {self, grad}, {}, out, [](Vs x) {
    const V inside = binary(NC_LT, unary(NC_ABS, x[0]), x[0].constant(3));
    return select(inside, x[1] / x[1].constant(6), zeroOf(x[1]));
  });
}

Tensor &hardswishOut(const Tensor &self, Tensor &out)
{
  return pointwise("hardswish", {self}, {}, out, [](Vs x) { return x[0] * clampedShift(x[0]) / x[0].constant(6); });
}

Tensor hardswish(const Tensor &self)
{
  Tensor out = at::empty_like(self);
  return hardswishOut(self, out);
}

Tensor &hardswishInPlace(Tensor &self)
{
  return hardswishOut(self, self);
}

Tensor hardswishBackward(const Tensor &grad, const Tensor &self)
{
  Tensor out = at::empty_like(grad);
  return pointwise("hardswish_backward", {self, grad}, {}, out, [](Vs x) {
    const V middle = x[1] * (x[0] / x[0].constant(3) + 0.5);
    const V upper = select(binary(NC_LT, x[0], x[0].constant(3)), middle, x[1]);
    return select(binary(NC_LE, x[0], x[0].constant(-3)), zeroOf(x[0]), upper);
  });
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
  NEURON_IMPL("relu", relu, relu);
  NEURON_IMPL("relu_", relu_, reluInPlace);
  NEURON_IMPL("threshold.out", threshold_out, threshold);
  NEURON_IMPL("threshold_backward.grad_input", threshold_backward_grad_input, thresholdBackward);
  NEURON_IMPL("hardtanh", hardtanh, hardtanh);
  NEURON_IMPL("hardtanh_", hardtanh_, hardtanhInPlace);
  NEURON_IMPL("hardtanh.out", hardtanh_out, hardtanhOut);
  NEURON_IMPL("hardtanh_backward", hardtanh_backward, hardtanhBackward);
  NEURON_IMPL("leaky_relu.out", leaky_relu_out, leakyRelu);
  NEURON_IMPL("leaky_relu_backward.grad_input", leaky_relu_backward_grad_input, leakyReluBackward);
  NEURON_IMPL("elu.out", elu_out, elu);
  NEURON_IMPL("elu_backward.grad_input", elu_backward_grad_input, eluBackward);

  NEURON_IMPL("gelu.out", gelu_out, gelu);
  NEURON_IMPL("gelu_backward.grad_input", gelu_backward_grad_input, geluBackward);
  NEURON_IMPL("sigmoid_backward.grad_input", sigmoid_backward_grad_input, sigmoidBackward);
  NEURON_IMPL("tanh_backward.grad_input", tanh_backward_grad_input, tanhBackward);
  NEURON_IMPL("silu_backward.grad_input", silu_backward_grad_input, siluBackward);
  NEURON_IMPL("softplus.out", softplus_out, softplus);
  NEURON_IMPL("softplus_backward.grad_input", softplus_backward_grad_input, softplusBackward);
  NEURON_IMPL("log_sigmoid_forward", log_sigmoid_forward, logSigmoid);
  NEURON_IMPL("log_sigmoid_forward.output", log_sigmoid_forward_output, logSigmoidOut);
  NEURON_IMPL("log_sigmoid_backward", log_sigmoid_backward, logSigmoidBackward);
  NEURON_IMPL("log_sigmoid_backward.grad_input", log_sigmoid_backward_grad_input, logSigmoidBackwardOut);

  NEURON_IMPL("hardsigmoid.out", hardsigmoid_out, hardsigmoid);
  NEURON_IMPL("hardsigmoid_backward.grad_input", hardsigmoid_backward_grad_input, hardsigmoidBackward);
  NEURON_IMPL("hardswish", hardswish, hardswish);
  NEURON_IMPL("hardswish_", hardswish_, hardswishInPlace);
  NEURON_IMPL("hardswish.out", hardswish_out, hardswishOut);
  NEURON_IMPL("hardswish_backward", hardswish_backward, hardswishBackward);
}

}  // namespace
}  // namespace neuron
