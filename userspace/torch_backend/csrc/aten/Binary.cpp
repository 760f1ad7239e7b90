// SPDX-License-Identifier: Apache-2.0
//
// Elementwise operators of two operands, comparisons and logic.
#include "Ops.h"

#include <ATen/ScalarOps.h>
#include <ATen/native/BinaryOps.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/add_ops.h>
#include <ATen/ops/bitwise_and_ops.h>
#include <ATen/ops/bitwise_left_shift_ops.h>
#include <ATen/ops/bitwise_or_ops.h>
#include <ATen/ops/bitwise_right_shift_ops.h>
#include <ATen/ops/bitwise_xor_ops.h>
#include <ATen/ops/div_ops.h>
#include <ATen/ops/eq_ops.h>
#include <ATen/ops/floor_divide_ops.h>
#include <ATen/ops/fmod_ops.h>
#include <ATen/ops/ge_ops.h>
#include <ATen/ops/gt_ops.h>
#include <ATen/ops/le_ops.h>
#include <ATen/ops/logical_and_ops.h>
#include <ATen/ops/logical_or_ops.h>
#include <ATen/ops/logical_xor_ops.h>
#include <ATen/ops/lt_ops.h>
#include <ATen/ops/maximum_ops.h>
#include <ATen/ops/minimum_ops.h>
#include <ATen/ops/mul_ops.h>
#include <ATen/ops/ne_ops.h>
#include <ATen/ops/pow_ops.h>
#include <ATen/ops/remainder_ops.h>
#include <ATen/ops/sub_ops.h>
#include <ATen/ops/xlogy_ops.h>

namespace neuron {
namespace {

using at::Scalar;
using at::Tensor;
using at::TensorIterator;
using Vs = c10::ArrayRef<V>;

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

// The commonest operators come here directly: by way of PyTorch's structured ones each call would
// work out shapes and types twice.

void addOver(TensorIterator &iter, const Scalar &alpha)
{
  at::native::alpha_check(iter.dtype(), alpha);
  if (alpha.equal(1))
    overIterator("add", iter, {}, opType(iter), [](Vs x) { return addOrOr(x[0], x[1]); });
  else
    overIterator("add_alpha", iter, {alpha}, opType(iter), [](Vs x) { return addOrOr(x[0], mulOrAnd(x[1], x[2])); });
}

void subOver(TensorIterator &iter, const Scalar &alpha)
{
  at::native::sub_check(iter.tensor(1), iter.tensor(2));
  at::native::alpha_check(iter.dtype(), alpha);
  if (alpha.equal(1))
    overIterator("sub", iter, {}, opType(iter), [](Vs x) { return x[0] - x[1]; });
  else
    overIterator("sub_alpha", iter, {alpha}, opType(iter), [](Vs x) { return x[0] - x[1] * x[2]; });
}

void mulOver(TensorIterator &iter)
{
  overIterator("mul", iter, {}, opType(iter), [](Vs x) { return mulOrAnd(x[0], x[1]); });
}

void divOver(TensorIterator &iter)
{
  overIterator("div", iter, {}, opType(iter), [](Vs x) { return x[0] / x[1]; });
}

// over's three forms; rest: its scalar operands.
template <bool toFloat, auto over, class... Rest>
struct Binary {
  static Tensor &out(const Tensor &a, const Tensor &b, Rest... rest, Tensor &out)
  {
    auto iter = make(out, a, b);
    over(iter, rest...);
    return out;
  }
  static Tensor fresh(const Tensor &a, const Tensor &b, Rest... rest)
  {
    auto iter = make(Tensor(), a, b);
    over(iter, rest...);
    return iter.output();
  }
  static Tensor &inPlace(Tensor &a, const Tensor &b, Rest... rest) { return out(a, b, rest..., a); }

 private:
  static TensorIterator make(const Tensor &out, const Tensor &a, const Tensor &b)
  {
    if constexpr (toFloat)
      return TensorIterator::binary_float_op(const_cast<Tensor &>(out), a, b);
    else
      return TensorIterator::binary_op(const_cast<Tensor &>(out), a, b);
  }
};

using Add = Binary<false, &addOver, const Scalar &>;
using Sub = Binary<false, &subOver, const Scalar &>;
using Mul = Binary<false, &mulOver>;
using Div = Binary<true, &divOver>;

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
    return Div::out(a, b, out);
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
    // The quotient is rounded first, as PyTorch does: a half type just below a whole number becomes it.
    overIterator("div_trunc", iter, {}, opType(iter), [type = ncDtype(iter.common_dtype())](Vs x) {
      return unary(NC_TRUNC, cast(cast(x[0] / x[1], type), x[0].type().dtype));
    });
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

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
  NEURON_IMPL("add.Tensor", add_Tensor, Add::fresh);
  NEURON_IMPL("add_.Tensor", add__Tensor, Add::inPlace);
  NEURON_IMPL("add.out", add_out, Add::out);
  NEURON_IMPL("sub.Tensor", sub_Tensor, Sub::fresh);
  NEURON_IMPL("sub_.Tensor", sub__Tensor, Sub::inPlace);
  NEURON_IMPL("sub.out", sub_out, Sub::out);
  NEURON_IMPL("mul.Tensor", mul_Tensor, Mul::fresh);
  NEURON_IMPL("mul_.Tensor", mul__Tensor, Mul::inPlace);
  NEURON_IMPL("mul.out", mul_out, Mul::out);
  NEURON_IMPL("div.Tensor", div_Tensor, Div::fresh);
  NEURON_IMPL("div_.Tensor", div__Tensor, Div::inPlace);
  NEURON_IMPL("div.out", div_out, Div::out);
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
}

}  // namespace
}  // namespace neuron
