// SPDX-License-Identifier: Apache-2.0
//
// Attention as PyTorch calls it. scaled_dot_product_attention() asks choose() and then calls forward(), whose
// gradient is backward(), or PyTorch's own composition of products and softmax, which takes everything.
#include "Ops.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include <ATen/Context.h>
#include <ATen/ExpandUtils.h>
#include <ATen/SDPBackend.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/ops/_fused_sdp_choice_ops.h>
#include <ATen/ops/_scaled_dot_product_fused_attention_overrideable_backward_ops.h>
#include <ATen/ops/_scaled_dot_product_fused_attention_overrideable_ops.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/sum.h>

#include "../graph/Random.h"

namespace neuron {
namespace {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

float scaleOf(const Tensor &query, std::optional<double> scale)
{
  return static_cast<float>(scale ? *scale : 1 / std::sqrt(static_cast<double>(query.size(-1))));
}

// Leading dims equal but for the heads, the last of them, of which a query may have a multiple of the keys'.
bool headsFit(const Tensor &query, const Tensor &other, bool grouped)
{
  const int64_t lead = query.dim() - 2;
  if (other.dim() != query.dim())
    return false;
  for (int64_t d = 0; d < lead; d++) {
    const bool heads = grouped && d == lead - 1 && d > 0;
    if (heads ? query.size(d) % other.size(d) != 0 : query.size(d) != other.size(d))
      return false;
  }
  return true;
}

// Does the mask have a place for each of the scores? It is added, or, of bool, becomes what is.
bool maskFits(const Tensor &query, const Tensor &key, const Tensor &mask)
{
  // The kernel makes no gradient of it.
  if (mask.requires_grad() || mask.dim() > query.dim() || mask.device() != query.device() ||
      !(mask.scalar_type() == at::kBool || isShortFloat(mask.scalar_type())))
    return false;
  for (int64_t d = 1; d <= mask.dim(); d++) {
    const int64_t size = d == 1 ? key.size(-2) : query.size(-d);
    if (mask.size(-d) != 1 && mask.size(-d) != size)
      return false;
  }
  return true;
}

// Whether forward() and backward() can do it.
bool kernelTakes(const Tensor &query, const Tensor &key, const Tensor &value, const OptionalTensor &mask,
                 double dropout, bool causal, std::optional<double> scale, bool grouped)
{
  if (query.is_nested() || key.is_nested() || value.is_nested() || query.dim() < 2 || query.dim() >= NC_DIMS_MAX)
    return false;
  if (!isShortFloat(query.scalar_type()) || key.scalar_type() != query.scalar_type() ||
      value.scalar_type() != query.scalar_type() || key.device() != query.device() || value.device() != query.device())
    return false;
  if (query.numel() == 0 || key.numel() == 0 || value.numel() == 0 || !(dropout < 1))
    return false;
  if (!headsFit(query, key, grouped) || !headsFit(query, value, grouped) ||
      key.sizes().slice(0, key.dim() - 1) != value.sizes().slice(0, value.dim() - 1) || query.size(-1) != key.size(-1))
    return false;
  if (query.size(-1) > NC_ATTENTION_HEAD_MAX || value.size(-1) > NC_ATTENTION_HEAD_MAX ||
      query.size(-2) > NC_ATTENTION_GRAD_QUERIES_MAX)
    return false;
  const float factor = scaleOf(query, scale);
  if (!(factor >= 1e-20f && factor <= 1e20f))
    return false;
  if (mask && mask->defined())
    return !causal && maskFits(query, key, *mask);
  return true;
}

int64_t choose(const Tensor &query, const Tensor &key, const Tensor &value, const OptionalTensor &mask, double dropout,
               bool causal, std::optional<double> scale, bool grouped)
{
  const auto &context = at::globalContext();
  if (context.userEnabledOverrideableSDP() && kernelTakes(query, key, value, mask, dropout, causal, scale, grouped))
    return static_cast<int64_t>(at::SDPBackend::overrideable);
  TORCH_CHECK(
      context.userEnabledMathSDP(),
      "scaled_dot_product_attention: the kernel of neuron does not take these operands, and the math backend is "
      "switched off");
  return static_cast<int64_t>(at::SDPBackend::math);
}

// --- operands: all with the same leading dims

// Keys or values once for each head of the queries, [..., heads of keys, queries for each, S, D]: a view.
Tensor spread(const Tensor &tensor, int64_t groups)
{
  Tensor one = tensor.unsqueeze(-3);
  at::DimVector sizes(one.sizes().begin(), one.sizes().end());
  sizes[sizes.size() - 3] = groups;
  return one.expand(sizes);
}

// The same of what queries have: dim is where their heads are.
Tensor grouped(const Tensor &tensor, int64_t dim, int64_t groups)
{
  return tensor.defined() ? tensor.unflatten(dim, {tensor.size(dim) / groups, groups}) : tensor;
}

// The kernel takes scores below -1e30 for those of keys that do not count. A finite mask does not mean that: where
// it covers a whole row PyTorch's softmax goes over the scores all the same.
Tensor finiteAboveInfinity(const Tensor &mask)
{
  if (mask.scalar_type() == at::kHalf)
    return mask;
  Tensor out = at::empty_like(mask);
  elementwise("attention_mask", out, {mask}, {}, at::kFloat, [](c10::ArrayRef<V> x) {
    const V never = x[0].constant(-std::numeric_limits<double>::infinity());
    return select(binary(NC_EQ, x[0], never), never, binary(NC_MAX, x[0], x[0].constant(-9e29)));
  });
  return out;
}

Tensor expandMask(const OptionalTensor &mask, const Tensor &query, const Tensor &key)
{
  if (!mask || !mask->defined())
    return Tensor();
  at::DimVector sizes(query.sizes().begin(), query.sizes().end());
  sizes.back() = key.size(-2);
  return finiteAboveInfinity(*mask).expand(sizes);
}

using Operands = c10::SmallVector<Tensor, 10>;

// Blocks of 128 queries with 1024 keys, about 5 us each, in one launch: many enough that what a launch costs beside
// them does not matter, and few enough for a small program.
constexpr int64_t kUnits = 256;

int64_t unitsOf(const Tensor &query, const Tensor &key)
{
  const int64_t blocks = (query.size(-2) + 127) / 128 * ((key.size(-2) + 1023) / 1024);
  return query.numel() / (query.size(-1) * query.size(-2)) * blocks;
}

// Calls run with parts of all operands, along their leading dims, of at most kUnits or as few as there can be, and
// how many places of these dims come before.
void bySlices(const Operands &all, int64_t units, c10::function_ref<void(const Operands &, int64_t)> run,
              int64_t before = 0)
{
  const Tensor &query = all[0];
  int64_t dim = 0;
  while (dim < query.dim() - 2 && query.size(dim) == 1)
    dim++;
  if (units <= kUnits || dim == query.dim() - 2) {
    run(all, before);
    return;
  }
  const int64_t size = query.size(dim);
  const int64_t pieces = std::min(size, (units + kUnits - 1) / kUnits);
  const int64_t length = (size + pieces - 1) / pieces;
  const int64_t inner = c10::multiply_integers(query.sizes().slice(dim + 1, query.dim() - dim - 3));
  for (int64_t start = 0; start < size; start += length) {
    const int64_t some = std::min(length, size - start);
    Operands part;
    for (const auto &tensor : all)
      part.push_back(tensor.defined() ? tensor.narrow(dim, start, some) : tensor);
    bySlices(part, (units * some + size - 1) / size, run, before + start * inner);
  }
}

struct How {
  struct nc_attention kernel{};
  Draw draw{};  // of dropout

  How(const Tensor &query, std::optional<double> scale, bool causal, double dropout)
  {
    kernel.scale = scaleOf(query, scale);
    kernel.causal = causal;
    kernel.dropout = std::max(dropout, 0.0);
  }

  bool drops() const { return kernel.dropout > 0; }

  void key(Op &op) const
  {
    int32_t bits;
    static_assert(sizeof(bits) == sizeof(kernel.scale));
    std::memcpy(&bits, &kernel.scale, sizeof(bits));
    int64_t probability;
    static_assert(sizeof(probability) == sizeof(kernel.dropout));
    std::memcpy(&probability, &kernel.dropout, sizeof(probability));
    op.attribute(bits).attribute(kernel.causal).attribute(probability);
  }
};

// What a launch needs for dropout beside its tensors: the draw's key, and the number of its first place.
class Dropped {
 public:
  Dropped(Op &op, const How &how, int64_t before) : how_(how)
  {
    if (!how.drops())
      return;
    bits_.emplace(op, how.draw);
    before_ = op.scalar(static_cast<int32_t>(before), at::kInt);
  }

  struct nc_attention kernel(const Graph &graph) const
  {
    struct nc_attention kernel = how_.kernel;
    if (bits_) {
      bits_->key(graph, kernel.key);
      kernel.batch = graph.in(before_).id;
    }
    return kernel;
  }

 private:
  const How &how_;
  std::optional<RandomBits> bits_;
  int before_ = 0;
};

// A result in the layout of another tensor, so that heads which were split off join again without a copy.
Tensor emptyInLayout(at::IntArrayRef sizes, const Tensor &like)
{
  return at::empty_strided(sizes, at::infer_dense_strides(sizes, like.strides()), like.options());
}

void launchForward(const Operands &all, const How &how, int64_t before)
{
  const auto &[query, key, value, mask, y, lse] = std::tie(all[0], all[1], all[2], all[3], all[4], all[5]);
  Op op("attention", query.device().index());
  how.key(op);
  op.attribute(mask.defined());
  for (const auto &operand : {query, key, value})
    op.input(operand);
  if (mask.defined())
    op.input(mask);
  const Dropped dropped(op, how, before);
  op.output(y);
  op.output(lse);
  op.run([&](Graph &graph) {
    nc_graph *raw = graph.raw();
    const nc_value bias = mask.defined() ? graph.in(3).id : 0;
    const struct nc_attention kernel = dropped.kernel(graph);
    const nc_value result = nc_attention(raw, graph.in(0).id, graph.in(1).id, graph.in(2).id, bias, &kernel);
    graph.out(0, V{raw, result});
    graph.out(1, V{raw, nc_attention_lse(raw, result)});
  });
}

// A draw as PyTorch keeps it for backward(): seed and offset on the CPU, so that nobody waits for the device.
Tensor hostNumber(uint64_t number)
{
  return at::scalar_tensor(static_cast<int64_t>(number), at::TensorOptions().dtype(at::kLong));
}

std::tuple<Tensor, Tensor, Tensor, Tensor, c10::SymInt, c10::SymInt, Tensor, Tensor, Tensor> forward(
    const Tensor &query, const Tensor &key, const Tensor &value, const OptionalTensor &mask, double dropout,
    bool causal, bool, std::optional<double> scale)
{
  TORCH_CHECK(kernelTakes(query, key, value, mask, dropout, causal, scale, true), "attention of query ", query.sizes(),
              ", key ", key.sizes(), ", value ", value.sizes(), " of ", query.scalar_type(),
              " has no kernel on neuron; torch.nn.functional.scaled_dot_product_attention() does without");
  const int64_t heads = query.dim() - 3;
  at::DimVector sizes(query.sizes().begin(), query.sizes().end());
  sizes.back() = value.size(-1);
  Tensor y = emptyInLayout(sizes, query);
  sizes.pop_back();
  Tensor lse = at::empty(sizes, query.options().dtype(at::kFloat));
  Operands all{query, key, value, expandMask(mask, query, key), y, lse};
  const int64_t groups = heads >= 0 ? query.size(heads) / key.size(heads) : 1;
  if (groups > 1) {
    for (const int i : {0, 3, 4, 5})
      all[i] = grouped(all[i], heads, groups);
    for (const int i : {1, 2})
      all[i] = spread(all[i], groups);
  }
  How how(query, scale, causal, dropout);
  if (how.drops())
    how.draw = nextDraw(std::nullopt, query.device().index());
  bySlices(all, unitsOf(query, key), [&](const Operands &part, int64_t before) { launchForward(part, how, before); });
  return {y,
          lse,
          Tensor(),
          Tensor(),
          query.size(-2),
          key.size(-2),
          hostNumber(how.draw.seed),
          hostNumber(how.draw.offset),
          Tensor()};
}

void launchBackward(const Operands &all, const How &how, int64_t before)
{
  const Tensor &mask = all[6];
  Op op("attention_backward", all[0].device().index());
  how.key(op);
  op.attribute(mask.defined());
  for (int i = 0; i < 6; i++)
    op.input(all[i]);
  if (mask.defined())
    op.input(mask);
  const Dropped dropped(op, how, before);
  for (int i = 7; i < 10; i++)
    op.output(all[i]);
  op.run([&](Graph &graph) {
    nc_attention_operands of{};
    of.q = graph.in(0).id;
    of.k = graph.in(1).id;
    of.v = graph.in(2).id;
    of.y = graph.in(3).id;
    of.lse = graph.in(4).id;
    of.dy = graph.in(5).id;
    of.mask = mask.defined() ? graph.in(6).id : 0;
    const struct nc_attention kernel = dropped.kernel(graph);
    nc_value dk = 0, dv = 0;
    graph.out(0, V{graph.raw(), nc_attention_grad(graph.raw(), &of, &kernel, &dk, &dv)});
    graph.out(1, V{graph.raw(), dk});
    graph.out(2, V{graph.raw(), dv});
  });
}

std::tuple<Tensor, Tensor, Tensor, Tensor> backward(const Tensor &grad, const Tensor &query, const Tensor &key,
                                                    const Tensor &value, const Tensor &mask, std::array<bool, 4>,
                                                    const Tensor &y, const Tensor &lse, const Tensor &, const Tensor &,
                                                    c10::SymInt, c10::SymInt, double dropout, bool causal,
                                                    const Tensor &seed, const Tensor &offset,
                                                    std::optional<double> scale)
{
  const int64_t heads = query.dim() - 3;
  const int64_t groups = heads >= 0 ? query.size(heads) / key.size(heads) : 1;
  Operands all{query, key, value, y, lse, grad, expandMask(mask, query, key)};
  Tensor dq = emptyInLayout(query.sizes(), query), dk, dv;
  all.push_back(dq);
  if (groups > 1) {
    for (const int i : {0, 3, 4, 5, 6, 7})
      all[i] = grouped(all[i], heads, groups);
    for (const int i : {1, 2})
      all[i] = spread(all[i], groups);
    dk = at::empty(all[1].sizes(), key.options());
    dv = at::empty(all[2].sizes(), value.options());
  } else {
    dk = emptyInLayout(key.sizes(), key);
    dv = emptyInLayout(value.sizes(), value);
  }
  all.push_back(dk);
  all.push_back(dv);
  How how(query, scale, causal, dropout);
  if (how.drops())
    how.draw = {static_cast<uint64_t>(seed.item<int64_t>()), static_cast<uint64_t>(offset.item<int64_t>())};
  bySlices(all, unitsOf(query, key), [&](const Operands &part, int64_t before) { launchBackward(part, how, before); });
  if (groups > 1) {
    dk = dk.sum(-3);
    dv = dv.sum(-3);
  }
  return {dq, dk, dv, Tensor()};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
  m.impl("_fused_sdp_choice", TORCH_FN(choose));
  m.impl("_scaled_dot_product_fused_attention_overrideable", TORCH_FN(forward));
  m.impl("_scaled_dot_product_fused_attention_overrideable_backward", TORCH_FN(backward));
}

}  // namespace
}  // namespace neuron

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &neuron::choose)
}
