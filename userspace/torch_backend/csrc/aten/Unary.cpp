// SPDX-License-Identifier: Apache-2.0
//
// Elementwise operators of one operand.
#include "Ops.h"

#include <cmath>
#include <limits>

#include <ATen/ops/abs_ops.h>
#include <ATen/ops/atan_ops.h>
#include <ATen/ops/bitwise_not_ops.h>
#include <ATen/ops/ceil_ops.h>
#include <ATen/ops/cos_ops.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/erf_ops.h>
#include <ATen/ops/exp2_ops.h>
#include <ATen/ops/exp_ops.h>
#include <ATen/ops/expm1_ops.h>
#include <ATen/ops/floor_ops.h>
#include <ATen/ops/isnan_ops.h>
#include <ATen/ops/isneginf_ops.h>
#include <ATen/ops/isposinf_ops.h>
#include <ATen/ops/log10_ops.h>
#include <ATen/ops/log1p_ops.h>
#include <ATen/ops/log2_ops.h>
#include <ATen/ops/log_ops.h>
#include <ATen/ops/logical_not_ops.h>
#include <ATen/ops/mish_ops.h>
#include <ATen/ops/neg_ops.h>
#include <ATen/ops/reciprocal_ops.h>
#include <ATen/ops/round_ops.h>
#include <ATen/ops/rsqrt_ops.h>
#include <ATen/ops/sgn_ops.h>
#include <ATen/ops/sigmoid_ops.h>
#include <ATen/ops/sign_ops.h>
#include <ATen/ops/silu_ops.h>
#include <ATen/ops/sin_ops.h>
#include <ATen/ops/sqrt_ops.h>
#include <ATen/ops/tanh_ops.h>
#include <ATen/ops/trunc_ops.h>

namespace neuron {
namespace {

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

// Whether an element is the infinity of this sign.
template <int sign>
Tensor &isInfinity(const Tensor &self, Tensor &out)
{
  if (!at::isFloatingType(self.scalar_type()))
    return out.fill_(false);
  elementwise(sign < 0 ? "isneginf" : "isposinf", out, {self}, {}, computeType(self.scalar_type()),
              [](Vs x) { return binary(NC_EQ, x[0], x[0].constant(sign * std::numeric_limits<double>::infinity())); });
  return out;
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
  NEURON_IMPL("isneginf.out", isneginf_out, isInfinity<-1>);
  NEURON_IMPL("isposinf.out", isposinf_out, isInfinity<1>);
}

}  // namespace
}  // namespace neuron
