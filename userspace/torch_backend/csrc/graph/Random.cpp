// SPDX-License-Identifier: Apache-2.0
#include "Random.h"

#include <algorithm>
#include <cmath>

namespace neuron {

RandomBits::RandomBits(Op &op, const Draw &draw, uint32_t stream)
{
  uint32_t key[NC_KEY_WORDS];
  nc_random_key(draw.seed, draw.offset, stream, key);
  first_ = op.scalar(static_cast<int32_t>(key[0]), at::kInt);
  for (int i = 1; i < NC_KEY_WORDS; i++)
    op.scalar(static_cast<int32_t>(key[i]), at::kInt);
}

void RandomBits::key(const Graph &graph, nc_value words[NC_KEY_WORDS]) const
{
  for (int i = 0; i < NC_KEY_WORDS; i++)
    words[i] = graph.in(first_ + i).id;
}

V RandomBits::operator()(const Graph &graph, at::IntArrayRef shape) const
{
  struct nc_type type{};
  type.dtype = NC_INT32;
  type.ndim = static_cast<uint32_t>(shape.size());
  std::copy(shape.begin(), shape.end(), type.dims);
  nc_value words[NC_KEY_WORDS];
  key(graph, words);
  return {graph.raw(), nc_random(graph.raw(), &type, words)};
}

V unitInterval(V bits, int digits)
{
  return cast(binary(NC_LSR, bits, bits.constant(32 - digits)), NC_FP32) * std::ldexp(1, -digits);
}

V positiveUnit(V bits)
{
  return cast(binary(NC_LSR, bits, bits.constant(1)), NC_FP32) * 0x1p-31 + 0x1p-32;
}

}  // namespace neuron
