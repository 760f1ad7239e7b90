// SPDX-License-Identifier: Apache-2.0
//
// PyTorch's own checks of arguments and shapes, for operators that have them as structured kernels.
#pragma once

#include <ATen/TensorMeta.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/Resize.h>

namespace neuron {

// Checks<at::meta::structured_gather>(out).meta(...) raises as on any backend, and gives out its shape.
template <class Meta>
struct Checks final : Meta {
  explicit Checks(const at::Tensor &result) : out(result) {}

  const at::Tensor &maybe_get_output(int64_t) override { return out; }

  void set_output_raw_strided(int64_t, at::IntArrayRef sizes, at::IntArrayRef, at::TensorOptions options) override
  {
    TORCH_CHECK(out.scalar_type() == c10::typeMetaToScalarType(options.dtype()), "Expected out tensor to have dtype ",
                options.dtype(), ", but got ", out.dtype(), " instead");
    at::native::resize_output(out, sizes);
  }

  void set_output_strided(int64_t n, at::IntArrayRef sizes, at::IntArrayRef strides, at::TensorOptions options) override
  {
    set_output_raw_strided(n, sizes, strides, options);
  }

  const at::Tensor &out;
};

}  // namespace neuron
