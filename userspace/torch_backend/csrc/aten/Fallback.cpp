// SPDX-License-Identifier: Apache-2.0
#include "Fallback.h"

#include <cstdlib>
#include <mutex>

#include <ATen/core/jit_type.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <c10/util/env.h>

#include "../runtime/Generator.h"

namespace neuron {
namespace {

FallbackMode initialMode()
{
  const auto value = c10::utils::get_env("TORCH_NEURONX_FALLBACK");
  if (!value || *value == "warn")
    return FallbackMode::Warn;
  if (*value == "silent")
    return FallbackMode::Silent;
  TORCH_CHECK(*value == "error", "TORCH_NEURONX_FALLBACK is '", *value, "'; it may be warn, silent or error");
  return FallbackMode::Error;
}

struct State {
  std::mutex mutex;
  FallbackMode mode = initialMode();
  std::map<std::string, uint64_t> counts;
  std::map<std::string, bool> warned;
};

State &state()
{
  static auto &it = *new State;
  return it;
}

std::string dtypesOf(const torch::jit::Stack &stack, size_t count)
{
  std::string text;
  for (size_t i = stack.size() - count; i < stack.size(); i++) {
    if (!stack[i].isTensor() || !stack[i].toTensor().defined())
      continue;
    const auto &tensor = stack[i].toTensor();
    text += (text.empty() ? "" : ", ") + std::string(c10::toString(tensor.scalar_type())) + " [";
    for (int64_t d = 0; d < tensor.dim(); d++)
      text += (d ? ", " : "") + std::to_string(tensor.size(d));
    text += "]";
  }
  return text;
}

// Counts the call; true: warn now.
bool countCall(const std::string &name, const std::string &operands)
{
  auto &all = state();
  std::lock_guard<std::mutex> lock(all.mutex);
  TORCH_CHECK_NOT_IMPLEMENTED(all.mode != FallbackMode::Error, name, " of (", operands,
                              ") has no kernel on neuron, and falling back to the CPU is switched off "
                              "(TORCH_NEURONX_FALLBACK=error). Use TORCH_NEURONX_FALLBACK=warn or "
                              "torch.neuron.set_fallback('warn') to allow it.");
  all.counts[name]++;
  if (all.mode != FallbackMode::Warn || all.warned[name])
    return false;
  return all.warned[name] = true;
}

}  // namespace

void setFallbackMode(FallbackMode mode)
{
  std::lock_guard<std::mutex> lock(state().mutex);
  state().mode = mode;
}

FallbackMode fallbackMode()
{
  std::lock_guard<std::mutex> lock(state().mutex);
  return state().mode;
}

std::map<std::string, uint64_t> fallbackCounts()
{
  std::lock_guard<std::mutex> lock(state().mutex);
  return state().counts;
}

void resetFallbackCounts()
{
  std::lock_guard<std::mutex> lock(state().mutex);
  state().counts.clear();
}

namespace {

void note(const std::string &name, const std::string &operands)
{
  if (countCall(name, operands))
    TORCH_WARN(name, " of (", operands,
               ") has no kernel on neuron and runs on the CPU. Said once per operator; "
               "torch.neuron.fallback_counts() counts them, TORCH_NEURONX_FALLBACK=error refuses them.");
}

std::string describe(const at::Tensor &tensor)
{
  torch::jit::Stack stack{tensor};
  return dtypesOf(stack, 1);
}

at::Tensor toCpu(const at::Tensor &tensor)
{
  return tensor.defined() ? tensor.cpu() : tensor;
}

at::Tensor backTo(const at::Tensor &tensor, c10::Device device)
{
  return tensor.defined() ? tensor.to(device) : tensor;
}

}  // namespace

at::Tensor fallbackConvolution(const at::Tensor &input, const at::Tensor &weight, const std::optional<at::Tensor> &bias,
                               at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation,
                               bool transposed, at::IntArrayRef outputPadding, int64_t groups)
{
  note("aten::convolution", describe(input));
  const auto result = at::convolution(toCpu(input), toCpu(weight), bias ? toCpu(*bias) : at::Tensor(), stride, padding,
                                      dilation, transposed, outputPadding, groups);
  return backTo(result, input.device());
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> fallbackConvolutionBackward(
    const at::Tensor &grad, const at::Tensor &input, const at::Tensor &weight, at::IntArrayRef stride,
    at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed, at::IntArrayRef outputPadding, int64_t groups,
    std::array<bool, 3> wanted)
{
  note("aten::convolution_backward", describe(input));
  const int64_t outputs = weight.size(transposed ? 1 : 0) * (transposed ? groups : 1);
  const auto [dx, dw, db] =
      at::convolution_backward(toCpu(grad), toCpu(input), toCpu(weight), at::IntArrayRef(outputs), stride, padding,
                               dilation, transposed, outputPadding, groups, wanted);
  return {backTo(dx, input.device()), backTo(dw, input.device()), backTo(db, input.device())};
}

namespace {

// The memory that a strided tensor reaches, as one row: that much always moves without a program.
at::Tensor window(const at::Tensor &tensor)
{
  int64_t last = 0;
  for (int64_t d = 0; d < tensor.dim(); d++)
    last += (tensor.size(d) - 1) * tensor.stride(d);
  return tensor.as_strided({last + 1}, {1}, tensor.storage_offset());
}

}  // namespace

void fallbackCopy(const at::Tensor &from, const at::Tensor &to)
{
  note("aten::copy_", describe(from) + " to " + describe(to));
  const at::Tensor source = window(from).cpu();
  const at::Tensor target = window(to).cpu();
  target.as_strided(to.sizes(), to.strides(), 0).copy_(source.as_strided(from.sizes(), from.strides(), 0));
  window(to).copy_(target);
}

namespace {

// Generator, or optional Generator.
bool isGenerator(const c10::Type &type)
{
  if (type.kind() == c10::TypeKind::GeneratorType)
    return true;
  const auto *optional = type.castRaw<c10::OptionalType>();
  return optional && optional->getElementType()->kind() == c10::TypeKind::GeneratorType;
}

}  // namespace

void fallback(const c10::OperatorHandle &op, torch::jit::Stack *stack)
{
  const auto &schema = op.schema();
  std::string name = schema.name();
  if (!schema.overload_name().empty())
    name += "." + schema.overload_name();
  const size_t count = schema.arguments().size();
  const std::string operands = dtypesOf(*stack, count);
  note(name, operands);
  for (size_t i = stack->size() - count; i < stack->size(); i++) {
    auto &value = (*stack)[i];
    const auto &argument = schema.arguments()[i - (stack->size() - count)];
    if (value.isGenerator() && value.toGenerator().defined() && value.toGenerator().device().type() == kNeuron)
      value = cpuGenerator(value.toGenerator());
    else if (value.isNone() && isGenerator(*argument.type()))
      value = cpuGenerator(defaultGenerator(currentDevice()));
  }
  at::native::cpu_fallback(op, stack);
}

}  // namespace neuron

namespace {

void fallbackKernel(const c10::OperatorHandle &op, torch::jit::Stack *stack)
{
  neuron::fallback(op, stack);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m)
{
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&fallbackKernel>());
}

}  // namespace
