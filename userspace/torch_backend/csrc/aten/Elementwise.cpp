// SPDX-License-Identifier: Apache-2.0
//
// Elementwise operators: PyTorch's TensorIterator decides shapes, types and results, a formula does
// the rest.
#include "Ops.h"

#include <cmath>

#include <ATen/ScalarOps.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/abs_ops.h>
#include <ATen/ops/add_ops.h>
#include <ATen/ops/addcdiv_ops.h>
#include <ATen/ops/addcmul_ops.h>
#include <ATen/ops/atan_ops.h>
#include <ATen/ops/bitwise_and_ops.h>
#include <ATen/ops/bitwise_left_shift_ops.h>
#include <ATen/ops/bitwise_not_ops.h>
#include <ATen/ops/bitwise_or_ops.h>
#include <ATen/ops/bitwise_right_shift_ops.h>
#include <ATen/ops/bitwise_xor_ops.h>
#include <ATen/ops/ceil_ops.h>
#include <ATen/ops/clamp_max_ops.h>
#include <ATen/ops/clamp_min_ops.h>
#include <ATen/ops/clamp_ops.h>
#include <ATen/ops/cos_ops.h>
#include <ATen/ops/div_ops.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/eq_ops.h>
#include <ATen/ops/erf_ops.h>
#include <ATen/ops/exp_ops.h>
#include <ATen/ops/exp2_ops.h>
#include <ATen/ops/expm1_ops.h>
#include <ATen/ops/fill_ops.h>
#include <ATen/ops/floor_divide_ops.h>
#include <ATen/ops/floor_ops.h>
#include <ATen/ops/fmod_ops.h>
#include <ATen/ops/ge_ops.h>
#include <ATen/ops/gt_ops.h>
#include <ATen/ops/isnan_ops.h>
#include <ATen/ops/le_ops.h>
#include <ATen/ops/lerp_ops.h>
#include <ATen/ops/log1p_ops.h>
#include <ATen/ops/log_ops.h>
#include <ATen/ops/log2_ops.h>
#include <ATen/ops/log10_ops.h>
#include <ATen/ops/logical_and_ops.h>
#include <ATen/ops/logical_not_ops.h>
#include <ATen/ops/logical_or_ops.h>
#include <ATen/ops/logical_xor_ops.h>
#include <ATen/ops/lt_ops.h>
#include <ATen/ops/masked_fill_ops.h>
#include <ATen/ops/maximum_ops.h>
#include <ATen/ops/minimum_ops.h>
#include <ATen/ops/mish_ops.h>
#include <ATen/ops/mul_ops.h>
#include <ATen/ops/ne_ops.h>
#include <ATen/ops/neg_ops.h>
#include <ATen/ops/pow_ops.h>
#include <ATen/ops/reciprocal_ops.h>
#include <ATen/ops/remainder_ops.h>
#include <ATen/ops/result_type.h>
#include <ATen/ops/round_ops.h>
#include <ATen/ops/rsqrt_ops.h>
#include <ATen/ops/sgn_ops.h>
#include <ATen/ops/sigmoid_ops.h>
#include <ATen/ops/sign_ops.h>
#include <ATen/ops/silu_ops.h>
#include <ATen/ops/sin_ops.h>
#include <ATen/ops/sqrt_ops.h>
#include <ATen/ops/sub_ops.h>
#include <ATen/ops/tanh_ops.h>
#include <ATen/ops/trunc_ops.h>
#include <ATen/ops/where_ops.h>
#include <ATen/ops/xlogy_ops.h>
#include <ATen/ops/zero_ops.h>

namespace neuron {

at::ScalarType opType(const at::TensorIteratorBase &iter)
{
  return computeType(iter.common_dtype());
}

at::Tensor operandOf(const at::TensorIteratorBase &iter, int index)
{
  return iter.tensor(index);
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

// --- one operand

template <class F>
Tensor &unaryFloat(const char *name, const Tensor &self, Tensor &out, F formula)
{
  auto iter = TensorIterator::unary_float_op(out, self);
  overIterator(name, iter, {}, opType(iter), formula);
  return out;
}

template <class F>
Tensor &unarySame(const char *name, const Tensor &self, Tensor &out, F formula)
{
  auto iter = TensorIterator::unary_op(out, self);
  overIterator(name, iter, {}, opType(iter), formula);
  return out;
}

#define UNARY_FLOAT(fn, OP)                                                  \
  Tensor &fn(const Tensor &self, Tensor &out)                                \
  {                                                                          \
    return unaryFloat(#fn, self, out, [](Vs x) { return unary(OP, x[0]); }); \
  }
UNARY_FLOAT(exp, NC_EXP)
UNARY_FLOAT(log, NC_LN)
UNARY_FLOAT(log1p, NC_LOG1P)
UNARY_FLOAT(expm1, NC_EXPM1)
UNARY_FLOAT(sqrt, NC_SQRT)
UNARY_FLOAT(rsqrt, NC_RSQRT)
UNARY_FLOAT(reciprocal, NC_RECIPROCAL)
UNARY_FLOAT(sigmoid, NC_SIGMOID)
UNARY_FLOAT(tanh, NC_TANH)
UNARY_FLOAT(erf, NC_ERF)
UNARY_FLOAT(sin, NC_SIN)
UNARY_FLOAT(cos, NC_COS)
UNARY_FLOAT(atan, NC_ARCTAN)
UNARY_FLOAT(silu, NC_SILU)
UNARY_FLOAT(mish, NC_MISH)
#undef UNARY_FLOAT

// Functions of another base: ln x / ln b and e^(x ln 2).
Tensor &log2(const Tensor &self, Tensor &out)
{
  return unaryFloat("log2", self, out, [](Vs x) { return unary(NC_LN, x[0]) * (1 / M_LN2); });
}

Tensor &log10(const Tensor &self, Tensor &out)
{
  return unaryFloat("log10", self, out, [](Vs x) { return unary(NC_LN, x[0]) * (1 / M_LN10); });
}

Tensor &exp2(const Tensor &self, Tensor &out)
{
  return unaryFloat("exp2", self, out, [](Vs x) { return unary(NC_EXP, x[0] * M_LN2); });
}

#define UNARY_SAME(fn, OP)                                                  \
  Tensor &fn(const Tensor &self, Tensor &out)                               \
  {                                                                         \
    return unarySame(#fn, self, out, [](Vs x) { return unary(OP, x[0]); }); \
  }
UNARY_SAME(neg, NC_NEG)
UNARY_SAME(abs, NC_ABS)
UNARY_SAME(sign, NC_SIGN)
#undef UNARY_SAME

// Whole numbers stay as they are.
#define ROUNDING(fn, OP)                                                                            \
  Tensor &fn(const Tensor &self, Tensor &out)                                                       \
  {                                                                                                 \
    return unarySame(#fn, self, out, [](Vs x) { return x[0].isFloat() ? unary(OP, x[0]) : x[0]; }); \
  }
ROUNDING(floor, NC_FLOOR)
ROUNDING(ceil, NC_CEIL)
ROUNDING(round, NC_ROUND)
ROUNDING(trunc, NC_TRUNC)
#undef ROUNDING

Tensor &bitwiseNot(const Tensor &self, Tensor &out)
{
  return unarySame("bitwise_not", self, out, [](Vs x) { return unary(NC_NOT, x[0]); });
}

Tensor &logicalNot(const Tensor &self, Tensor &out)
{
  auto iter = at::TensorIteratorConfig()
                  .check_all_same_dtype(false)
                  .add_output(out)
                  .add_const_input(self)
                  .declare_static_dtype_and_device(out.scalar_type(), self.device())
                  .build();
  overIterator("logical_not", iter, {}, self.scalar_type(), [](Vs x) { return binary(NC_EQ, x[0], x[0].constant(0)); });
  return out;
}

Tensor isnan(const Tensor &self)
{
  Tensor out = at::empty(self.sizes(), self.options().dtype(at::kBool));
  elementwise("isnan", out, {self}, {}, computeType(self.scalar_type()),
              [](Vs x) { return binary(NC_NE, x[0], x[0]); });
  return out;
}

// --- two operands

// compute: the type of the formula, by default the common one.
template <class F>
Tensor &binaryOp(const char *name, const Tensor &a, const Tensor &b, Tensor &out, at::ArrayRef<Scalar> scalars,
                 F formula)
{
  auto iter = TensorIterator::binary_op(out, a, b);
  overIterator(name, iter, scalars, opType(iter), formula);
  return out;
}

bool isBool(V x)
{
  return x.type().dtype == NC_BOOL;
}

V addOrOr(V a, V b)
{
  return isBool(a) ? binary(NC_OR, a, b) : a + b;
}

V mulOrAnd(V a, V b)
{
  return isBool(a) ? binary(NC_AND, a, b) : a * b;
}

Tensor &add(const Tensor &a, const Tensor &b, const Scalar &alpha, Tensor &out)
{
  if (alpha.equal(1))
    return binaryOp("add", a, b, out, {}, [](Vs x) { return addOrOr(x[0], x[1]); });
  return binaryOp("add_alpha", a, b, out, {alpha}, [](Vs x) { return addOrOr(x[0], mulOrAnd(x[1], x[2])); });
}

Tensor &sub(const Tensor &a, const Tensor &b, const Scalar &alpha, Tensor &out)
{
  if (alpha.equal(1))
    return binaryOp("sub", a, b, out, {}, [](Vs x) { return x[0] - x[1]; });
  return binaryOp("sub_alpha", a, b, out, {alpha}, [](Vs x) { return x[0] - x[1] * x[2]; });
}

Tensor &mul(const Tensor &a, const Tensor &b, Tensor &out)
{
  return binaryOp("mul", a, b, out, {}, [](Vs x) { return mulOrAnd(x[0], x[1]); });
}

Tensor &div(const Tensor &a, const Tensor &b, Tensor &out)
{
  auto iter = TensorIterator::binary_float_op(out, a, b);
  overIterator("div", iter, {}, opType(iter), [](Vs x) { return x[0] / x[1]; });
  return out;
}

// Python's floor division of integers from C's.
V floorDivide(V a, V b)
{
  const V quotient = a / b;
  const V zero = a.constant(0);
  const V rest = a - quotient * b;
  const V down =
      binary(NC_AND, binary(NC_NE, rest, zero), binary(NC_NE, binary(NC_LT, rest, zero), binary(NC_LT, b, zero)));
  return select(down, quotient + a.constant(-1), quotient);
}

// Without the remainder the quotient is whole up to its rounding; a/0 stays what it is.
V floorDivideFloats(V a, V b)
{
  const V whole = unary(NC_ROUND, (a - binary(NC_MOD, a, b)) / b);
  return select(binary(NC_EQ, b, b.constant(0)), a / b, whole);
}

Tensor &divMode(const Tensor &a, const Tensor &b, std::optional<c10::string_view> mode, Tensor &out)
{
  if (!mode)
    return div(a, b, out);
  auto iter = TensorIterator::binary_op(out, a, b);
  if (at::isIntegralType(iter.common_dtype(), true)) {
    // PyTorch raises on the CPU for a zero divisor; the device cannot look at values, and gives 0.
    if (*mode == "trunc")
      overIterator("div_trunc_int", iter, {}, opType(iter), [](Vs x) { return x[0] / x[1]; });
    else
      overIterator("div_floor_int", iter, {}, opType(iter), [](Vs x) { return floorDivide(x[0], x[1]); });
    return out;
  }
  if (*mode == "trunc")
    overIterator("div_trunc", iter, {}, opType(iter), [](Vs x) { return unary(NC_TRUNC, x[0] / x[1]); });
  else
    overIterator("div_floor", iter, {}, opType(iter), [](Vs x) { return floorDivideFloats(x[0], x[1]); });
  return out;
}

Tensor &floorDivideOut(const Tensor &a, const Tensor &b, Tensor &out)
{
  return divMode(a, b, "floor", out);
}

Tensor floorDivideNew(const Tensor &a, const Tensor &b)
{
  Tensor out;
  auto iter = TensorIterator::binary_op(out, a, b);
  Tensor result = iter.output();
  return divMode(a, b, "floor", result);
}

Tensor &floorDivideInPlace(Tensor &a, const Tensor &b)
{
  return divMode(a, b, "floor", a);
}

Tensor &maximum(const Tensor &a, const Tensor &b, Tensor &out)
{
  return binaryOp("maximum", a, b, out, {}, [](Vs x) { return binary(isBool(x[0]) ? NC_OR : NC_MAX, x[0], x[1]); });
}

Tensor &minimum(const Tensor &a, const Tensor &b, Tensor &out)
{
  return binaryOp("minimum", a, b, out, {}, [](Vs x) { return binary(isBool(x[0]) ? NC_AND : NC_MIN, x[0], x[1]); });
}

Tensor &remainder(const Tensor &a, const Tensor &b, Tensor &out)
{
  return binaryOp("remainder", a, b, out, {}, [](Vs x) { return binary(NC_MOD, x[0], x[1]); });
}

// C's remainder, with the sign of a, from Python's, with the sign of b.
Tensor &fmod(const Tensor &a, const Tensor &b, Tensor &out)
{
  return binaryOp("fmod", a, b, out, {}, [](Vs x) {
    const V size = binary(NC_MOD, unary(NC_ABS, x[0]), unary(NC_ABS, x[1]));
    return select(binary(NC_LT, x[0], x[0].constant(0)), x[0].constant(0) - size, size);
  });
}

// 0 where a is 0, even for the logarithm of 0.
Tensor &xlogy(const Tensor &a, const Tensor &b, Tensor &out)
{
  auto iter = TensorIterator::binary_float_op(out, a, b);
  overIterator("xlogy", iter, {}, opType(iter), [](Vs x) {
    const V zero = binary(NC_AND, binary(NC_EQ, x[0], x[0].constant(0)), binary(NC_EQ, x[1], x[1]));
    return select(zero, x[0].constant(0), x[0] * unary(NC_LN, x[1]));
  });
  return out;
}

Tensor &shiftLeft(const Tensor &a, const Tensor &b, Tensor &out)
{
  return binaryOp("shift_left", a, b, out, {}, [](Vs x) { return binary(NC_SHL, x[0], x[1]); });
}

Tensor &shiftRight(const Tensor &a, const Tensor &b, Tensor &out)
{
  return binaryOp("shift_right", a, b, out, {}, [](Vs x) { return binary(NC_SHR, x[0], x[1]); });
}

Tensor &powTensors(const Tensor &a, const Tensor &b, Tensor &out)
{
  auto iter = TensorIterator::binary_op(out, a, b);
  if (!at::isFloatingType(iter.common_dtype()))
    throw NotNative("power of integers");
  overIterator("pow", iter, {}, opType(iter), [](Vs x) { return binary(NC_POW, x[0], x[1]); });
  return out;
}

Tensor &powScalar(const Tensor &self, const Scalar &exponent, Tensor &out)
{
  at::native::resize_output(out, self.sizes());
  const auto type = out.scalar_type();
  if (exponent.equal(2))
    return elementwise("square", out, {self}, {}, computeType(type), [](Vs x) { return x[0] * x[0]; }), out;
  if (exponent.equal(1))
    return elementwise("pow_1", out, {self}, {}, computeType(type), [](Vs x) { return x[0]; }), out;
  if (!at::isFloatingType(type))
    throw NotNative("power of integers");
  if (exponent.equal(0.5))
    return elementwise("pow_half", out, {self}, {}, computeType(type), [](Vs x) { return unary(NC_SQRT, x[0]); }), out;
  if (exponent.equal(-1))
    return elementwise("pow_inverse", out, {self}, {}, computeType(type),
                       [](Vs x) { return unary(NC_RECIPROCAL, x[0]); }),
           out;
  if (exponent.equal(3))
    return elementwise("cube", out, {self}, {}, computeType(type), [](Vs x) { return x[0] * x[0] * x[0]; }), out;
  elementwise("pow_scalar", out, {self}, {exponent}, computeType(type),
              [](Vs x) { return binary(NC_POW, x[0], x[1]); });
  return out;
}

// --- comparisons and logic: computed in the common type of the operands, the result is bool

Tensor &compare(const char *name, nc_binary_op op, const Tensor &a, const Tensor &b, Tensor &out)
{
  auto iter = TensorIterator::comparison_op(out, a, b);
  auto type = opType(iter);
  if (type == at::kBool && op != NC_EQ && op != NC_NE)
    type = at::kInt;
  overIterator(name, iter, {}, type, [op](Vs x) { return binary(op, x[0], x[1]); });
  return out;
}

#define COMPARE(fn, OP)                                                    \
  Tensor &fn(const Tensor &a, const Tensor &b, Tensor &out)                \
  {                                                                        \
    return compare(#fn, OP, a, b, out);                                    \
  }                                                                        \
  Tensor &fn##Scalar(const Tensor &a, const Scalar &b, Tensor &out)        \
  {                                                                        \
    return compare(#fn, OP, a, at::native::wrapped_scalar_tensor(b), out); \
  }
COMPARE(eq, NC_EQ)
COMPARE(ne, NC_NE)
COMPARE(lt, NC_LT)
COMPARE(le, NC_LE)
COMPARE(gt, NC_GT)
COMPARE(ge, NC_GE)
#undef COMPARE

Tensor &logical(const char *name, nc_binary_op op, const Tensor &a, const Tensor &b, Tensor &out)
{
  auto iter = TensorIterator::comparison_op(out, a, b);
  overIterator(name, iter, {}, at::kBool, [op](Vs x) { return binary(op, x[0], x[1]); });
  return out;
}

Tensor &logicalAnd(const Tensor &a, const Tensor &b, Tensor &out)
{
  return logical("logical_and", NC_AND, a, b, out);
}

Tensor &logicalOr(const Tensor &a, const Tensor &b, Tensor &out)
{
  return logical("logical_or", NC_OR, a, b, out);
}

Tensor &logicalXor(const Tensor &a, const Tensor &b, Tensor &out)
{
  return logical("logical_xor", NC_XOR, a, b, out);
}

Tensor &bitwiseAnd(const Tensor &a, const Tensor &b, Tensor &out)
{
  return binaryOp("bitwise_and", a, b, out, {}, [](Vs x) { return binary(NC_AND, x[0], x[1]); });
}

Tensor &bitwiseOr(const Tensor &a, const Tensor &b, Tensor &out)
{
  return binaryOp("bitwise_or", a, b, out, {}, [](Vs x) { return binary(NC_OR, x[0], x[1]); });
}

Tensor &bitwiseXor(const Tensor &a, const Tensor &b, Tensor &out)
{
  return binaryOp("bitwise_xor", a, b, out, {}, [](Vs x) { return binary(NC_XOR, x[0], x[1]); });
}

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
  NEURON_IMPL("exp.out", exp_out, exp);
  NEURON_IMPL("log.out", log_out, log);
  NEURON_IMPL("log1p.out", log1p_out, log1p);
  NEURON_IMPL("expm1.out", expm1_out, expm1);
  NEURON_IMPL("log2.out", log2_out, log2);
  NEURON_IMPL("log10.out", log10_out, log10);
  NEURON_IMPL("exp2.out", exp2_out, exp2);
  NEURON_IMPL("sqrt.out", sqrt_out, sqrt);
  NEURON_IMPL("rsqrt.out", rsqrt_out, rsqrt);
  NEURON_IMPL("reciprocal.out", reciprocal_out, reciprocal);
  NEURON_IMPL("sigmoid.out", sigmoid_out, sigmoid);
  NEURON_IMPL("tanh.out", tanh_out, tanh);
  NEURON_IMPL("erf.out", erf_out, erf);
  NEURON_IMPL("sin.out", sin_out, sin);
  NEURON_IMPL("cos.out", cos_out, cos);
  NEURON_IMPL("atan.out", atan_out, atan);
  NEURON_IMPL("silu.out", silu_out, silu);
  NEURON_IMPL("mish.out", mish_out, mish);
  NEURON_IMPL("neg.out", neg_out, neg);
  NEURON_IMPL("abs.out", abs_out, abs);
  NEURON_IMPL("sign.out", sign_out, sign);
  NEURON_IMPL("sgn.out", sgn_out, sign);
  NEURON_IMPL("floor.out", floor_out, floor);
  NEURON_IMPL("ceil.out", ceil_out, ceil);
  NEURON_IMPL("round.out", round_out, round);
  NEURON_IMPL("trunc.out", trunc_out, trunc);
  NEURON_IMPL("bitwise_not.out", bitwise_not_out, bitwiseNot);
  NEURON_IMPL("logical_not.out", logical_not_out, logicalNot);
  NEURON_IMPL("isnan", isnan, isnan);

  NEURON_IMPL("add.out", add_out, add);
  NEURON_IMPL("sub.out", sub_out, sub);
  NEURON_IMPL("mul.out", mul_out, mul);
  NEURON_IMPL("div.out", div_out, div);
  NEURON_IMPL("div.out_mode", div_out_mode, divMode);
  NEURON_IMPL("floor_divide", floor_divide, floorDivideNew);
  NEURON_IMPL("floor_divide.out", floor_divide_out, floorDivideOut);
  NEURON_IMPL("floor_divide_.Tensor", floor_divide__Tensor, floorDivideInPlace);
  NEURON_IMPL("fmod.Tensor_out", fmod_Tensor_out, fmod);
  NEURON_IMPL("xlogy.OutTensor", xlogy_OutTensor, xlogy);
  NEURON_IMPL("bitwise_left_shift.Tensor_out", bitwise_left_shift_Tensor_out, shiftLeft);
  NEURON_IMPL("bitwise_right_shift.Tensor_out", bitwise_right_shift_Tensor_out, shiftRight);
  NEURON_IMPL("maximum.out", maximum_out, maximum);
  NEURON_IMPL("minimum.out", minimum_out, minimum);
  NEURON_IMPL("remainder.Tensor_out", remainder_Tensor_out, remainder);
  NEURON_IMPL("pow.Tensor_Tensor_out", pow_Tensor_Tensor_out, powTensors);
  NEURON_IMPL("pow.Tensor_Scalar_out", pow_Tensor_Scalar_out, powScalar);

  NEURON_IMPL("eq.Tensor_out", eq_Tensor_out, eq);
  NEURON_IMPL("ne.Tensor_out", ne_Tensor_out, ne);
  NEURON_IMPL("lt.Tensor_out", lt_Tensor_out, lt);
  NEURON_IMPL("le.Tensor_out", le_Tensor_out, le);
  NEURON_IMPL("gt.Tensor_out", gt_Tensor_out, gt);
  NEURON_IMPL("ge.Tensor_out", ge_Tensor_out, ge);
  NEURON_IMPL("eq.Scalar_out", eq_Scalar_out, eqScalar);
  NEURON_IMPL("ne.Scalar_out", ne_Scalar_out, neScalar);
  NEURON_IMPL("lt.Scalar_out", lt_Scalar_out, ltScalar);
  NEURON_IMPL("le.Scalar_out", le_Scalar_out, leScalar);
  NEURON_IMPL("gt.Scalar_out", gt_Scalar_out, gtScalar);
  NEURON_IMPL("ge.Scalar_out", ge_Scalar_out, geScalar);
  NEURON_IMPL("logical_and.out", logical_and_out, logicalAnd);
  NEURON_IMPL("logical_or.out", logical_or_out, logicalOr);
  NEURON_IMPL("logical_xor.out", logical_xor_out, logicalXor);
  NEURON_IMPL("bitwise_and.Tensor_out", bitwise_and_Tensor_out, bitwiseAnd);
  NEURON_IMPL("bitwise_or.Tensor_out", bitwise_or_Tensor_out, bitwiseOr);
  NEURON_IMPL("bitwise_xor.Tensor_out", bitwise_xor_Tensor_out, bitwiseXor);

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
