// SPDX-License-Identifier: Apache-2.0
//
// Random numbers. A neuron generator is a seed and the number of draws since it was set: what a draw gives
// depends on these two alone (docs/random.md), so they are the whole state.
#pragma once

#include <optional>

#include <ATen/core/Generator.h>

#include "Runtime.h"

namespace neuron {

const at::Generator &defaultGenerator(c10::DeviceIndex device);
at::Generator newGenerator(c10::DeviceIndex device);

// One draw, of as many numbers as an operator needs.
struct Draw {
  uint64_t seed, offset;
};

// The next draw of a generator, none meaning the device's default one. Any thread.
Draw nextDraw(const std::optional<at::Generator> &generator, c10::DeviceIndex device);

// For an operator that falls back: a CPU generator seeded by the next draw of the neuron one, so that seeds and
// states hold for it, too.
at::Generator cpuGenerator(const at::Generator &generator);

}  // namespace neuron
