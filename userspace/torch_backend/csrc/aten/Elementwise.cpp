// SPDX-License-Identifier: Apache-2.0
//
// Elementwise operators: PyTorch's TensorIterator decides shapes, types and results, a formula does
// the rest. Here what they share, and those of three operands; see Unary.cpp, Binary.cpp, Activation.cpp.
#include "Ops.h"

#include <ATen/ScalarOps.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/addcdiv_ops.h>
#include <ATen/ops/addcmul_ops.h>
#include <ATen/ops/clamp_max_ops.h>
#include <ATen/ops/clamp_min_ops.h>
#include <ATen/ops/clamp_ops.h>
#include <ATen/ops/fill_ops.h>
#include <ATen/ops/lerp_ops.h>
#include <ATen/ops/masked_fill_ops.h>
#include <ATen/ops/result_type.h>
#include <ATen/ops/where_ops.h>
#include <ATen/ops/zero_ops.h>

namespace neuron {

at::ScalarType opType(const at::TensorIteratorBase &iter)
{
  return computeType(iter.common_dtype());
}

void overIterator(const char *name, at::TensorIteratorBase &iter, at::ArrayRef<at::Scalar> scalars,
                  at::ScalarType compute, c10::function_ref<V(c10::ArrayRef<V>)> formula)
{
  c10::SmallVector<at::Tensor, 4> operands;
  for (int i = iter.noutputs(); i < iter.ntensors(); i++)
    operands.push_back(iter.tensor(i));
  elementwise(name, iter.tensor(0), operands, scalars, compute, formula);
}

namespace {

using at::Scalar;
using at::Tensor;
using at::TensorIterator;
using Vs = c10::ArrayRef<V>;

// --- three operands

Tensor &addcmul(const Tensor &self, const Tensor &a, const Tensor &b, const Scalar &value, Tensor &out)
{
  auto iter = at::TensorIteratorConfig()
                  .promote_inputs_to_common_dtype(true)
                  .cast_common_dtype_to_outputs(true)
                  .enforce_safe_casting_to_output(true)
                  .allow_cpu_scalars(true)
                  .add_output(out)
                  .add_const_input(self)
                  .add_const_input(a)
                  .add_const_input(b)
                  .build();
  overIterator("addcmul", iter, {value}, opType(iter), [](Vs x) { return x[0] + x[3] * x[1] * x[2]; });
  return out;
}

Tensor &addcdiv(const Tensor &self, const Tensor &a, const Tensor &b, const Scalar &value, Tensor &out)
{
  auto iter = at::TensorIteratorConfig()
                  .promote_inputs_to_common_dtype(true)
                  .cast_common_dtype_to_outputs(true)
                  .enforce_safe_casting_to_output(true)
                  .allow_cpu_scalars(true)
                  .add_output(out)
                  .add_const_input(self)
                  .add_const_input(a)
                  .add_const_input(b)
                  .build();
  overIterator("addcdiv", iter, {value}, opType(iter), [](Vs x) { return x[0] + x[3] * (x[1] / x[2]); });
  return out;
}

// Both forms of PyTorch's lerp, chosen by the weight, so that the ends are exact.
V lerpFormula(V start, V end, V weight)
{
  const V difference = end - start;
  const V near = start + weight * difference;
  const V far = end - difference * (1.0 - weight);
  return select(binary(NC_LT, unary(NC_ABS, weight), weight.constant(0.5)), near, far);
}

Tensor &lerpScalar(const Tensor &self, const Tensor &end, const Scalar &weight, Tensor &out)
{
  const bool near = std::abs(weight.toDouble()) < 0.5;
  auto iter = TensorIterator::binary_op(out, self, end);
  if (near)
    overIterator("lerp", iter, {weight}, opType(iter), [](Vs x) { return x[0] + x[2] * (x[1] - x[0]); });
  else
    overIterator("lerp_far", iter, {weight}, opType(iter), [](Vs x) { return x[1] - (x[1] - x[0]) * (1.0 - x[2]); });
  return out;
}

Tensor &lerpTensor(const Tensor &self, const Tensor &end, const Tensor &weight, Tensor &out)
{
  auto iter = at::TensorIteratorConfig()
                  .allow_cpu_scalars(true)
                  .promote_inputs_to_common_dtype(true)
                  .enforce_safe_casting_to_output(true)
                  .cast_common_dtype_to_outputs(true)
                  .add_output(out)
                  .add_const_input(self)
                  .add_const_input(end)
                  .add_const_input(weight)
                  .build();
  overIterator("lerp_tensor", iter, {}, opType(iter), [](Vs x) { return lerpFormula(x[0], x[1], x[2]); });
  return out;
}

Tensor &whereOut(const Tensor &condition, const Tensor &self, const Tensor &other, Tensor &out)
{
  auto result = at::native::result_type(self, other);
  auto iter = at::TensorIteratorConfig()
                  .check_all_same_dtype(false)
                  .allow_cpu_scalars(true)
                  .declare_static_dtype(result)
                  .add_output(out)
                  .add_const_input(condition)
                  .add_const_input(self)
                  .add_const_input(other)
                  .build();
  const Tensor &to = iter.tensor(0);
  if (to.numel()) {
    Op op("where", to.device().index());
    op.attribute(static_cast<int64_t>(result));
    for (int i = 1; i < 4; i++)
      op.input(iter.tensor(i), to.sizes());
    op.output(to);
    op.run(
        [&](Graph &graph) { graph.out(0, select(graph.in(0, at::kBool), graph.in(1, result), graph.in(2, result))); });
  }
  out = to;
  return out;
}

Tensor where(const Tensor &condition, const Tensor &self, const Tensor &other)
{
  Tensor out;
  return whereOut(condition, self, other, out);
}

Tensor &maskedFillTensor(Tensor &self, const Tensor &mask, const Tensor &value)
{
  TORCH_CHECK(value.dim() == 0, "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
              value.dim(), " dimension(s).");
  TORCH_CHECK(mask.scalar_type() == at::kBool, "masked_fill_ only supports boolean masks, but got mask with dtype ",
              mask.scalar_type());
  if (self.numel() == 0)
    return self;
  Op op("masked_fill", self.device().index());
  op.input(self);
  op.input(mask, self.sizes());
  op.input(value, self.sizes());
  op.output(self);
  op.run([&](Graph &graph) { graph.out(0, select(graph.in(1), graph.in(2, self.scalar_type()), graph.in(0))); });
  return self;
}

Tensor &maskedFillScalar(Tensor &self, const Tensor &mask, const Scalar &value)
{
  return maskedFillTensor(self, mask, at::native::wrapped_scalar_tensor(value));
}

// --- clamp: NaN stays, as in PyTorch

Tensor &clampScalars(const Tensor &self, const std::optional<Scalar> &min, const std::optional<Scalar> &max,
                     Tensor &out)
{
  at::native::resize_output(out, self.sizes());
  const auto type = computeType(out.scalar_type());
  if (min && max)
    elementwise("clamp", out, {self}, {*min, *max}, type,
                [](Vs x) { return binary(NC_MIN, binary(NC_MAX, x[0], x[1]), x[2]); });
  else if (min)
    elementwise("clamp_min", out, {self}, {*min}, type, [](Vs x) { return binary(NC_MAX, x[0], x[1]); });
  else
    elementwise("clamp_max", out, {self}, {*max}, type, [](Vs x) { return binary(NC_MIN, x[0], x[1]); });
  return out;
}

Tensor &clampMin(const Tensor &self, const Scalar &min, Tensor &out)
{
  return clampScalars(self, min, std::nullopt, out);
}

Tensor &clampMax(const Tensor &self, const Scalar &max, Tensor &out)
{
  return clampScalars(self, std::nullopt, max, out);
}

Tensor &clampTensors(const Tensor &self, const std::optional<Tensor> &min, const std::optional<Tensor> &max,
                     Tensor &out)
{
  const bool hasMin = min && min->defined(), hasMax = max && max->defined();
  at::TensorIteratorConfig config;
  config.allow_cpu_scalars(true)
      .promote_inputs_to_common_dtype(true)
      .cast_common_dtype_to_outputs(true)
      .enforce_safe_casting_to_output(true);
  config.add_output(out).add_const_input(self);
  if (hasMin)
    config.add_const_input(*min);
  if (hasMax)
    config.add_const_input(*max);
  auto iter = config.build();
  if (hasMin && hasMax)
    overIterator("clamp_tensors", iter, {}, opType(iter),
                 [](Vs x) { return binary(NC_MIN, binary(NC_MAX, x[0], x[1]), x[2]); });
  else if (hasMin)
    overIterator("clamp_min", iter, {}, opType(iter), [](Vs x) { return binary(NC_MAX, x[0], x[1]); });
  else
    overIterator("clamp_max", iter, {}, opType(iter), [](Vs x) { return binary(NC_MIN, x[0], x[1]); });
  return out;
}

Tensor &clampMinTensor(const Tensor &self, const Tensor &min, Tensor &out)
{
  return clampTensors(self, min, std::nullopt, out);
}

Tensor &clampMaxTensor(const Tensor &self, const Tensor &max, Tensor &out)
{
  return clampTensors(self, std::nullopt, max, out);
}

// --- fill

Tensor &fillScalar(Tensor &self, const Scalar &value)
{
  elementwise("fill", self, {}, {value}, computeType(self.scalar_type()), [](Vs x) { return x[0]; });
  return self;
}

Tensor &fillTensor(Tensor &self, const Tensor &value)
{
  TORCH_CHECK(value.dim() == 0, "fill_ only supports 0-dimension value tensor but got tensor with ", value.dim(),
              " dimensions.");
  elementwise("fill_tensor", self, {value}, {}, computeType(self.scalar_type()), [](Vs x) { return x[0]; });
  return self;
}

Tensor &zero(Tensor &self)
{
  return fillScalar(self, 0);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
  NEURON_IMPL("addcmul.out", addcmul_out, addcmul);
  NEURON_IMPL("addcdiv.out", addcdiv_out, addcdiv);
  NEURON_IMPL("lerp.Scalar_out", lerp_Scalar_out, lerpScalar);
  NEURON_IMPL("lerp.Tensor_out", lerp_Tensor_out, lerpTensor);
  NEURON_IMPL("where.self", where_self, where);
  NEURON_IMPL("where.self_out", where_self_out, whereOut);
  NEURON_IMPL("masked_fill_.Tensor", masked_fill__Tensor, maskedFillTensor);
  NEURON_IMPL("masked_fill_.Scalar", masked_fill__Scalar, maskedFillScalar);
  NEURON_IMPL("clamp.out", clamp_out, clampScalars);
  NEURON_IMPL("clamp.Tensor_out", clamp_Tensor_out, clampTensors);
  NEURON_IMPL("clamp_min.Tensor_out", clamp_min_Tensor_out, clampMinTensor);
  NEURON_IMPL("clamp_max.Tensor_out", clamp_max_Tensor_out, clampMaxTensor);
  NEURON_IMPL("clamp_min.out", clamp_min_out, clampMin);
  NEURON_IMPL("clamp_max.out", clamp_max_out, clampMax);
  NEURON_IMPL("fill_.Scalar", fill__Scalar, fillScalar);
  NEURON_IMPL("fill_.Tensor", fill__Tensor, fillTensor);
  NEURON_IMPL("zero_", zero_, zero);
}

}  // namespace
}  // namespace neuron
