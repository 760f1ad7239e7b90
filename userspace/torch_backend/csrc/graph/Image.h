// SPDX-License-Identifier: Apache-2.0
//
// Programs that were not compiled here.
#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace neuron {

// Loads a program image and launches it on the current stream: a contiguous tensor per
// slot, in order, all of one device.
void launchImage(const std::string &image, const std::vector<at::Tensor> &tensors);

}  // namespace neuron
