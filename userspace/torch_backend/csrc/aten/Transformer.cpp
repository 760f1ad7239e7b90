// SPDX-License-Identifier: Apache-2.0
//
// What torch.nn's transformer modules call instead of their parts when no gradient is wanted: the same parts.
#include "Ops.h"

#include <cmath>
#include <limits>

#include <ATen/ops/_native_multi_head_attention_ops.h>
#include <ATen/ops/_transformer_encoder_layer_fwd_ops.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/softmax.h>

namespace neuron {
namespace {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

// The modules' masks say what does not count. Kinds: scores [L, S], keys [B, S], everything [B, heads, L, S].
constexpr int64_t kMaskOfKeys = 1;

// True where a key counts, in a shape that broadcasts to [B, heads, L, S].
OptionalTensor keep(const OptionalTensor &mask, std::optional<int64_t> kind)
{
  if (!mask || !mask->defined())
    return std::nullopt;
  TORCH_CHECK(kind, "multi-head attention: a mask of ", mask->sizes(), " without mask_type");
  const Tensor counts = mask->to(at::kBool).logical_not();
  return kind == kMaskOfKeys ? counts.view({counts.size(0), 1, 1, counts.size(1)}) : counts;
}

std::tuple<Tensor, Tensor> multiHeadAttention(const Tensor &query, const Tensor &key, const Tensor &value,
                                              int64_t width, int64_t heads, const Tensor &weight, const Tensor &bias,
                                              const Tensor &outWeight, const Tensor &outBias,
                                              const OptionalTensor &mask, bool needWeights, bool average,
                                              std::optional<int64_t> maskKind)
{
  TORCH_CHECK(query.dim() == 3 && key.dim() == 3 && value.dim() == 3, "multi-head attention: query ", query.sizes(),
              ", key ", key.sizes(), ", value ", value.sizes(), "; wanted are [batch, length, ", width, "]");
  TORCH_CHECK(heads > 0 && width % heads == 0, "multi-head attention: ", width, " do not divide by ", heads, " heads");
  const auto weights = weight.chunk(3), biases = bias.chunk(3);
  const Tensor *const from[] = {&query, &key, &value};
  Tensor projected[3];
  for (int i = 0; i < 3; i++) {
    const Tensor one = at::linear(*from[i], weights[i], biases[i]);
    projected[i] = one.view({one.size(0), one.size(1), heads, width / heads}).transpose(1, 2);
  }
  const auto &[q, k, v] = std::tie(projected[0], projected[1], projected[2]);
  const auto counts = keep(mask, maskKind);
  Tensor y, probabilities;
  if (needWeights) {
    Tensor scores = at::matmul(q, k.transpose(-2, -1)).div(std::sqrt(static_cast<double>(width / heads)));
    if (counts)
      scores = scores.masked_fill(counts->logical_not(), -std::numeric_limits<double>::infinity());
    probabilities = at::softmax(scores, -1);
    y = at::matmul(probabilities, v);
    if (average)
      probabilities = probabilities.mean(1);
  } else {
    y = at::scaled_dot_product_attention(q, k, v, counts);
  }
  y = y.transpose(1, 2).reshape({query.size(0), query.size(1), width});
  return {at::linear(y, outWeight, outBias), probabilities};
}

Tensor encoderLayer(const Tensor &x, int64_t width, int64_t heads, const Tensor &weight, const Tensor &bias,
                    const Tensor &outWeight, const Tensor &outBias, bool gelu, bool normFirst, double eps,
                    const Tensor &normWeight1, const Tensor &normBias1, const Tensor &normWeight2,
                    const Tensor &normBias2, const Tensor &weight1, const Tensor &bias1, const Tensor &weight2,
                    const Tensor &bias2, const OptionalTensor &mask, std::optional<int64_t> maskKind)
{
  const auto norm1 = [&](const Tensor &t) { return at::layer_norm(t, {width}, normWeight1, normBias1, eps); };
  const auto norm2 = [&](const Tensor &t) { return at::layer_norm(t, {width}, normWeight2, normBias2, eps); };
  const auto attention = [&](const Tensor &t) {
    return std::get<0>(
        multiHeadAttention(t, t, t, width, heads, weight, bias, outWeight, outBias, mask, false, false, maskKind));
  };
  const auto forward = [&](const Tensor &t) {
    const Tensor inner = at::linear(t, weight1, bias1);
    return at::linear(gelu ? at::gelu(inner) : at::relu(inner), weight2, bias2);
  };
  if (normFirst) {
    const Tensor y = x.add(attention(norm1(x)));
    return y.add(forward(norm2(y)));
  }
  const Tensor y = norm1(x.add(attention(x)));
  return norm2(y.add(forward(y)));
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
  m.impl("_native_multi_head_attention", TORCH_FN(multiHeadAttention));
  m.impl("_transformer_encoder_layer_fwd", TORCH_FN(encoderLayer));
}

}  // namespace
}  // namespace neuron
