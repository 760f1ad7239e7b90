// SPDX-License-Identifier: Apache-2.0
//
// Help that several families of operators share.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/TensorIterator.h>
#include <torch/library.h>

#include "../graph/Op.h"
#include "Fallback.h"

// Registers fn for an operator; NAME is the C++ name of at::_ops (add_out), SCHEMA its name (add.out).
#define NEURON_IMPL(SCHEMA, NAME, fn) m.impl(SCHEMA, TORCH_FN((::neuron::Native<&fn, at::_ops::NAME>::call)))

namespace neuron {

// A 1-element value in the type that PyTorch computes in.
at::ScalarType opType(const at::TensorIteratorBase &iter);

// Runs a formula over an iterator: results get cast to their dtype.
void overIterator(const char *name, at::TensorIteratorBase &iter, at::ArrayRef<at::Scalar> scalars,
                  at::ScalarType compute, c10::function_ref<V(c10::ArrayRef<V>)> formula);

// Dims as a bit mask, none meaning all; negative ones wrapped.
uint32_t axesOf(at::OptionalIntArrayRef dims, int64_t ndim);

}  // namespace neuron
