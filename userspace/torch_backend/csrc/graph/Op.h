// SPDX-License-Identifier: Apache-2.0
//
// One operator, from tensors to a launch. An Op collects operands and results; run() finds the
// program for their types in the cache, or has build() make its graph and compiles it, and launches.
// The key is all that the graph depends on: name, attributes, dtypes, shapes, strides, aliases, core.
// Values of scalars are not part of it; they travel in the launch.
//
// This is the only way to the device for operators, so that queueing several of them into one
// program changes this folder alone.
#pragma once

#include <exception>
#include <string>

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>
#include <c10/util/FunctionRef.h>
#include <c10/util/SmallVector.h>

#include "../runtime/Runtime.h"
#include "Value.h"

namespace neuron {

// Thrown when the device cannot do it; the registration then goes to the CPU fallback.
struct NotNative : std::exception {
  explicit NotNative(std::string why) : text(std::move(why)) {}
  const char *what() const noexcept override { return text.c_str(); }
  std::string text;
};

class Graph;

class Op {
 public:
  // name: a string literal; it names the program in errors and profiles.
  Op(const char *name, c10::DeviceIndex device);

  // Operands are numbered in the order of these calls.

  // A tensor seen with the shape sizes (broadcast). A 0-dim CPU tensor becomes a scalar.
  int input(const at::Tensor &tensor, at::IntArrayRef sizes);
  int input(const at::Tensor &tensor) { return input(tensor, tensor.sizes()); }
  // The same with its bytes taken for another dtype of the same size.
  int inputAs(const at::Tensor &tensor, at::IntArrayRef sizes, at::ScalarType type);
  int scalar(const at::Scalar &value, at::ScalarType type);

  // Results, numbered from 0. The tensor has the right shape already.
  int output(const at::Tensor &tensor) { return outputAs(tensor, tensor.scalar_type()); }
  int outputAs(const at::Tensor &tensor, at::ScalarType type);

  // What else the graph depends on.
  Op &attribute(int64_t value)
  {
    key_.push_back(value);
    return *this;
  }

  Op &attributes(at::IntArrayRef values)
  {
    key_.push_back(static_cast<int64_t>(values.size()));
    key_.append(values.begin(), values.end());
    return *this;
  }

  // Launches on the current stream of the device. build() gives each result to Graph::out().
  void run(c10::function_ref<void(Graph &)> build);

 private:
  friend class Graph;

  struct Operand {
    at::Tensor tensor;  // undefined: scalar
    c10::SmallVector<int64_t, 5> sizes, strides;
    at::ScalarType type;
    uint64_t bits = 0;
  };

  struct Result {
    at::Tensor tensor;  // where the launch writes
    at::Tensor wanted;  // where it goes afterwards, if that overlaps an operand otherwise than exactly
    at::ScalarType type;
    uint32_t alias;
  };

  void addType(at::ScalarType type, at::IntArrayRef sizes, at::IntArrayRef strides);
  void resolveAliases();
  nrtx_program_t *compile(c10::function_ref<void(Graph &)> build) const;
  void launch(nrtx_program_t *program) const;

  const char *name_;
  c10::DeviceIndex device_;
  c10::SmallVector<int64_t, 48> key_;
  c10::SmallVector<Operand, 4> operands_;
  c10::SmallVector<Result, 2> results_;
};

// The graph that build() fills.
class Graph {
 public:
  // Operand by number, as stored or in another dtype.
  V in(int operand) const { return {graph_, values_[operand]}; }
  V in(int operand, at::ScalarType type) const { return cast(in(operand), ncDtype(type)); }

  // Rounds to the result's dtype and stores.
  void out(int result, V value);

  nc_graph *raw() const { return graph_; }

 private:
  friend class Op;
  Graph(const Op &op, nc_graph *graph);

  const Op &op_;
  nc_graph *graph_;
  c10::SmallVector<nc_value, 4> values_;
  // Results in the order of their numbers; slots are made last.
  c10::SmallVector<nc_value, 2> results_;
};

// Elementwise: result = formula(operands broadcast to its shape, each in the type compute, then
// scalars in it).
void elementwise(const char *name, const at::Tensor &result, at::ArrayRef<at::Tensor> operands,
                 at::ArrayRef<at::Scalar> scalars, at::ScalarType compute,
                 c10::function_ref<V(c10::ArrayRef<V>)> formula);

// Number of programs in the cache and of those compiled so far.
struct CacheStats {
  uint64_t programs, hits, compiled;
};
CacheStats cacheStats();

}  // namespace neuron
