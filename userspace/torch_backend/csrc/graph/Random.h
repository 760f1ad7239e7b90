// SPDX-License-Identifier: Apache-2.0
//
// Random numbers in the graph of an operator.
#pragma once

#include "../runtime/Generator.h"
#include "Op.h"

namespace neuron {

// Numbers for each element of a shape. The key travels in the launch: one program for all draws.
class RandomBits {
 public:
  // Adds the key to the operator's operands. stream: 0, 1, ... for several numbers of one draw.
  RandomBits(Op &op, const Draw &draw, uint32_t stream = 0);

  // int32, each of the 2^32 values as likely as any.
  V operator()(const Graph &graph, at::IntArrayRef shape) const;
  // The key alone, for kernels that draw themselves.
  void key(const Graph &graph, nc_value words[NC_KEY_WORDS]) const;

 private:
  int first_;
};

// Uniform in [0, 1), multiples of 2^-digits; digits up to 24. fp32.
V unitInterval(V bits, int digits);
// Uniform in (0, 1], down to 2^-32, so that its logarithm has a tail. fp32.
V positiveUnit(V bits);

// Whether something of probability p > 0 happens; limit: an int32, nc_random_limit(p).
inline V happens(V bits, V limit)
{
  return binary(NC_LE, bits, limit);
}

}  // namespace neuron
