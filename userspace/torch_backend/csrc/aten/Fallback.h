// SPDX-License-Identifier: Apache-2.0
//
// What the device does not do goes to the CPU: counted, warned of once per operator, or refused.
// The only place that calls CPU kernels.
#pragma once

#include <map>
#include <string>

#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/CPUFallback.h>

#include "../graph/Op.h"

namespace neuron {

enum class FallbackMode { Warn, Silent, Error };

void setFallbackMode(FallbackMode mode);
FallbackMode fallbackMode();

// Calls per operator since the start or the last reset.
std::map<std::string, uint64_t> fallbackCounts();
void resetFallbackCounts();

void fallback(const c10::OperatorHandle &op, torch::jit::Stack *stack);

// Convolutions that the device does not have: 1-D and 3-D, transposed, float64. The operators that
// PyTorch calls on us have no CPU kernel of their own, so the boxed fallback cannot do these.
at::Tensor fallbackConvolution(const at::Tensor &input, const at::Tensor &weight, const std::optional<at::Tensor> &bias,
                               at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation,
                               bool transposed, at::IntArrayRef outputPadding, int64_t groups);
std::tuple<at::Tensor, at::Tensor, at::Tensor> fallbackConvolutionBackward(
    const at::Tensor &grad, const at::Tensor &input, const at::Tensor &weight, at::IntArrayRef stride,
    at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed, at::IntArrayRef outputPadding, int64_t groups,
    std::array<bool, 3> wanted);

// A copy between neuron tensors that the device cannot do, through the CPU.
void fallbackCopy(const at::Tensor &from, const at::Tensor &to);

// Wraps a native operator: one that throws NotNative is done by the fallback.
template <auto fn, class Op>
struct Native;

template <class R, class... A, R (*fn)(A...), class Op>
struct Native<fn, Op> {
  static R call(A... args)
  {
    try {
      return fn(std::forward<A>(args)...);
    } catch (const NotNative &) {
      return at::native::call_fallback_fn<&fallback, Op>::call(std::forward<A>(args)...);
    }
  }
};

}  // namespace neuron
