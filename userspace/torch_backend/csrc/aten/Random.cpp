// SPDX-License-Identifier: Apache-2.0
//
// Random numbers and dropout. Checks of arguments are PyTorch's templates; what a number is made of is the same for
// all dtypes: element i, in row-major order, of a draw depends on the generator's seed and offset and on i alone.
#include "Ops.h"

#include <cmath>
#include <limits>

#include <ATen/native/DistributionTemplates.h>
#include <ATen/ops/bernoulli_ops.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/exponential_ops.h>
#include <ATen/ops/native_dropout_backward_ops.h>
#include <ATen/ops/native_dropout_ops.h>
#include <ATen/ops/normal_ops.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/random_ops.h>
#include <ATen/ops/uniform_ops.h>
#include <ATen/ops/zeros_like.h>

#include "../graph/Random.h"

namespace neuron {
namespace {

using at::Generator;
using at::Tensor;
using OptionalGenerator = std::optional<Generator>;

// The parameter RNG of PyTorch's templates, which hand generators on to kernels by themselves.
struct AnyGenerator {};

Tensor flat(const Tensor &tensor)
{
  return tensor.is_contiguous() ? tensor.view(-1) : tensor;
}

// Bits of the fraction of a float, the one before the point included.
int digitsOf(at::ScalarType type)
{
  switch (type) {
  case at::kBFloat16:
    return std::numeric_limits<c10::BFloat16>::digits;
  case at::kHalf:
    return std::numeric_limits<c10::Half>::digits;
  case at::kDouble:
    return std::numeric_limits<double>::digits;
  default:
    return std::numeric_limits<float>::digits;
  }
}

// Fills a tensor with formula(bits, scalars), bits being as many numbers for each element as streams says.
void fill(const char *name, const Tensor &tensor, const OptionalGenerator &generator, uint32_t streams,
          at::ArrayRef<std::pair<at::Scalar, at::ScalarType>> scalars,
          c10::function_ref<V(c10::ArrayRef<V> bits, c10::ArrayRef<V> scalars)> formula, int64_t attribute = 0)
{
  const Tensor out = flat(tensor);
  const auto device = out.device().index();
  Op op(name, device);
  op.attribute(attribute);
  for (const auto &[value, type] : scalars)
    op.scalar(value, type);
  const Draw draw = nextDraw(generator, device);
  c10::SmallVector<RandomBits, 2> from;
  for (uint32_t i = 0; i < streams; i++)
    from.emplace_back(op, draw, i);
  op.output(out);
  op.run([&](Graph &graph) {
    c10::SmallVector<V, 2> bits;
    c10::SmallVector<V, 3> values;
    for (const auto &one : from)
      bits.push_back(one(graph, out.sizes()));
    for (size_t i = 0; i < scalars.size(); i++)
      values.push_back(graph.in(static_cast<int>(i)));
    graph.out(0, formula(bits, values));
  });
}

// --- uniform

// 53 bits of two numbers.
V unitIntervalDouble(V high, V low)
{
  const V upper = cast(binary(NC_LSR, high, high.constant(5)), NC_FP64);
  const V lower = cast(binary(NC_LSR, low, low.constant(6)), NC_FP64);
  return (upper * 0x1p26 + lower) * 0x1p-53;
}

template <typename>
struct UniformKernel {
  void operator()(at::TensorIteratorBase &iter, double from, double to, const OptionalGenerator &generator)
  {
    const auto type = iter.dtype();
    const auto compute = computeType(type);
    const bool wide = type == at::kDouble, plain = from == 0 && to == 1;
    fill(
        "uniform", iter.tensor(0), generator, wide ? 2 : 1, {{from, compute}, {to, compute}},
        [&](c10::ArrayRef<V> bits, c10::ArrayRef<V> limits) {
          const V u = wide ? unitIntervalDouble(bits[0], bits[1]) : unitInterval(bits[0], digitsOf(type));
          if (plain)
            return u;
          // The upper limit is none of them, even if a sum is rounded to it.
          const V y = cast(cast(u * (limits[1] - limits[0]) + limits[0], ncDtype(type)), ncDtype(compute));
          return select(binary(NC_LT, y, limits[1]), y, limits[0]);
        },
        plain);
  }
};

Tensor &uniform(Tensor &self, double from, double to, OptionalGenerator generator)
{
  return at::native::templates::uniform_impl_<UniformKernel, AnyGenerator>(self, from, to, std::move(generator));
}

// --- normal, exponential

void requireSingle(const at::ScalarType type)
{
  // Functions of the device are fp32: numbers would have 24 bits.
  if (type == at::kDouble)
    throw NotNative("logarithms in float64");
}

template <typename>
struct NormalKernel {
  void operator()(const Tensor &self, double mean, double std, const OptionalGenerator &generator)
  {
    requireSingle(self.scalar_type());
    fill("normal", self, generator, 2, {{mean, at::kFloat}, {std, at::kFloat}},
         [](c10::ArrayRef<V> bits, c10::ArrayRef<V> scalars) {
           // Box and Muller.
           const V radius = unary(NC_SQRT, unary(NC_LN, positiveUnit(bits[0])) * -2.0);
           const V angle = unitInterval(bits[1], 24) * (2 * M_PI);
           return radius * unary(NC_COS, angle) * scalars[1] + scalars[0];
         });
  }
};

Tensor &normal(Tensor &self, double mean, double std, OptionalGenerator generator)
{
  return at::native::templates::normal_impl_<NormalKernel, AnyGenerator>(self, mean, std, std::move(generator));
}

template <class Mean, class Std>
Tensor normalOf(Mean mean, Std std, OptionalGenerator generator)
{
  return at::native::templates::normal_impl<NormalKernel, AnyGenerator>(mean, std, std::move(generator));
}

template <class Mean, class Std>
Tensor &normalOut(Mean mean, Std std, OptionalGenerator generator, Tensor &out)
{
  return at::native::templates::normal_out_impl<NormalKernel, AnyGenerator>(out, mean, std, std::move(generator));
}

template <typename>
struct ExponentialKernel {
  void operator()(at::TensorIteratorBase &iter, double lambda, const OptionalGenerator &generator)
  {
    requireSingle(iter.dtype());
    fill("exponential", iter.tensor(0), generator, 1, {{-1 / lambda, at::kFloat}},
         [](c10::ArrayRef<V> bits, c10::ArrayRef<V> scalars) {
           return unary(NC_LN, positiveUnit(bits[0])) * scalars[0];
         });
  }
};

Tensor &exponential(Tensor &self, double lambda, OptionalGenerator generator)
{
  return at::native::templates::exponential_impl_<ExponentialKernel, AnyGenerator>(self, lambda, std::move(generator));
}

// --- integers

V wideBits(c10::ArrayRef<V> bits)
{
  const V high = cast(bits[0], NC_INT64), low = cast(bits[1], NC_INT64);
  return binary(NC_OR, binary(NC_SHL, high, high.constant(32)), binary(NC_AND, low, low.constant(UINT32_MAX)));
}

// Remainders of 32 bits by more than this would be too uneven: by up to this, one is at most 1/4096 more likely.
constexpr uint64_t kNarrowRange = 1 << 20;

// Numbers base, base + 1, ... base + range - 1; range 0: all of int64.
void fillIntegers(const Tensor &tensor, uint64_t range, int64_t base, const OptionalGenerator &generator)
{
  const bool wide = range == 0 || range > kNarrowRange;
  const bool unlimited = range == 0 || range > INT64_MAX;
  const bool power = range && (range & (range - 1)) == 0;
  const auto type = wide ? at::kLong : at::kInt;
  if (unlimited && range && !power)
    throw NotNative("random integers of more than 2^63 values");
  const auto divisor = static_cast<int64_t>(power ? range - 1 : range);
  fill(
      "random", tensor, generator, wide ? 2 : 1, {{divisor, type}, {base, at::kLong}},
      [&](c10::ArrayRef<V> bits, c10::ArrayRef<V> scalars) {
        V x = wide ? wideBits(bits) : bits[0];
        if (range)
          x = binary(power ? NC_AND : NC_MOD, x, scalars[0]);
        // Beyond int32, or where int64 is wanted anyway; what is narrower wraps to the same.
        const bool small = tensor.scalar_type() != at::kLong && tensor.scalar_type() != at::kDouble && !wide &&
                           tensor.scalar_type() != at::kFloat;
        return small ? x + cast(scalars[1], NC_INT32) : cast(x, NC_INT64) + scalars[1];
      },
      static_cast<int64_t>(wide) | power << 1 | (range == 0) << 2);
}

template <typename>
struct IntegersKernel {
  void operator()(at::TensorIteratorBase &iter, uint64_t range, int64_t base, const OptionalGenerator &generator)
  {
    fillIntegers(iter.tensor(0), range, base, generator);
  }

  void operator()(at::TensorIteratorBase &iter, const OptionalGenerator &generator)
  {
    fillIntegers(iter.tensor(0), 0, 0, generator);
  }
};

// What random_() without limits gives: as many values as the type tells apart, from 0 on.
template <typename>
struct NaturalsKernel {
  void operator()(at::TensorIteratorBase &iter, const OptionalGenerator &generator)
  {
    fillIntegers(iter.tensor(0), range(iter.dtype()), 0, generator);
  }

  static uint64_t range(at::ScalarType type)
  {
    switch (type) {
    case at::kBool:
      return 2;
    case at::kByte:
      return 1 << 8;
    case at::kChar:
      return 1 << 7;
    case at::kShort:
      return 1 << 15;
    case at::kInt:
      return UINT64_C(1) << 31;
    case at::kLong:
      return UINT64_C(1) << 63;
    default:
      return (UINT64_C(1) << digitsOf(type)) + 1;
    }
  }
};

Tensor &random(Tensor &self, OptionalGenerator generator)
{
  return at::native::templates::random_impl<NaturalsKernel, AnyGenerator>(self, std::move(generator));
}

Tensor &randomFrom(Tensor &self, int64_t from, std::optional<int64_t> to, OptionalGenerator generator)
{
  return at::native::templates::random_from_to_impl<IntegersKernel, AnyGenerator>(self, from, to, std::move(generator));
}

Tensor &randomTo(Tensor &self, int64_t to, OptionalGenerator generator)
{
  return randomFrom(self, 0, to, std::move(generator));
}

// --- bernoulli

template <typename>
struct BernoulliKernel {
  void operator()(Tensor &self, double p, const OptionalGenerator &generator)
  {
    if (p == 0) {
      self.zero_();
      return;
    }
    fill("bernoulli", self, generator, 1, {{nc_random_limit(p), at::kInt}},
         [](c10::ArrayRef<V> bits, c10::ArrayRef<V> scalars) { return happens(bits[0], scalars[0]); });
  }

  void operator()(Tensor &self, const Tensor &p, const OptionalGenerator &generator)
  {
    TORCH_CHECK(at::isFloatingType(p.scalar_type()), "bernoulli expects probabilities, but got ", p.scalar_type());
    Op op("bernoulli_of", self.device().index());
    op.input(p, self.sizes());
    const RandomBits bits(op, nextDraw(generator, self.device().index()));
    op.output(self);
    op.run([&](Graph &graph) {
      graph.out(0, binary(NC_LT, unitInterval(bits(graph, self.sizes()), 24), graph.in(0, at::kFloat)));
    });
  }
};

Tensor &bernoulli(Tensor &self, double p, OptionalGenerator generator)
{
  return at::native::templates::bernoulli_impl_<BernoulliKernel, AnyGenerator>(self, p, std::move(generator));
}

Tensor &bernoulliOf(Tensor &self, const Tensor &p, OptionalGenerator generator)
{
  return at::native::templates::bernoulli_impl_<BernoulliKernel, AnyGenerator>(self, p, std::move(generator));
}

Tensor &bernoulliOut(const Tensor &p, OptionalGenerator generator, Tensor &out)
{
  return at::native::templates::bernoulli_out_impl<BernoulliKernel, AnyGenerator>(out, p, std::move(generator));
}

// --- dropout

std::tuple<Tensor, Tensor> dropout(const Tensor &input, double p, std::optional<bool> train)
{
  TORCH_CHECK(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got ", p);
  const auto maskOptions = input.options().dtype(at::kBool);
  if ((train && !*train) || p == 0 || input.numel() == 0)
    return {input.clone(), at::ones_like(input, maskOptions)};
  if (p == 1)
    return {at::zeros_like(input), at::zeros_like(input, maskOptions)};
  Tensor y = at::empty_like(input), mask = at::empty_like(input, maskOptions);
  const bool dense = input.is_contiguous();
  const Tensor x = dense ? input.view(-1) : input;
  const auto type = computeType(input.scalar_type());
  Op op("dropout", input.device().index());
  op.input(x);
  op.scalar(1 / (1 - p), type);
  op.scalar(nc_random_limit(1 - p), at::kInt);
  const RandomBits bits(op, nextDraw(std::nullopt, input.device().index()));
  op.output(dense ? y.view(-1) : y);
  op.output(dense ? mask.view(-1) : mask);
  op.run([&](Graph &graph) {
    const V kept = happens(bits(graph, x.sizes()), graph.in(2));
    const V scaled = graph.in(0, type) * graph.in(1);
    graph.out(0, select(kept, scaled, scaled.constant(0)));
    graph.out(1, kept);
  });
  return {y, mask};
}

Tensor dropoutBackward(const Tensor &grad, const Tensor &mask, double scale)
{
  Tensor out = at::empty_like(grad);
  elementwise("dropout_backward", out, {grad, mask}, {scale}, computeType(grad.scalar_type()), [](c10::ArrayRef<V> x) {
    return select(binary(NC_NE, x[1], x[1].constant(0)), x[0] * x[2], x[0].constant(0));
  });
  return out;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
  NEURON_IMPL("uniform_", uniform_, uniform);
  NEURON_IMPL("normal_", normal_, normal);
  m.impl("normal.Tensor_float", TORCH_FN((normalOf<const Tensor &, double>)));
  m.impl("normal.float_Tensor", TORCH_FN((normalOf<double, const Tensor &>)));
  m.impl("normal.Tensor_Tensor", TORCH_FN((normalOf<const Tensor &, const Tensor &>)));
  m.impl("normal.Tensor_float_out", TORCH_FN((normalOut<const Tensor &, double>)));
  m.impl("normal.float_Tensor_out", TORCH_FN((normalOut<double, const Tensor &>)));
  m.impl("normal.Tensor_Tensor_out", TORCH_FN((normalOut<const Tensor &, const Tensor &>)));
  NEURON_IMPL("exponential_", exponential_, exponential);
  NEURON_IMPL("random_", random_, random);
  NEURON_IMPL("random_.from", random__from, randomFrom);
  NEURON_IMPL("random_.to", random__to, randomTo);
  NEURON_IMPL("bernoulli_.float", bernoulli__float, bernoulli);
  NEURON_IMPL("bernoulli_.Tensor", bernoulli__Tensor, bernoulliOf);
  NEURON_IMPL("bernoulli.out", bernoulli_out, bernoulliOut);
  NEURON_IMPL("native_dropout", native_dropout, dropout);
  NEURON_IMPL("native_dropout_backward", native_dropout_backward, dropoutBackward);
}

}  // namespace
}  // namespace neuron
