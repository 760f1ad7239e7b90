// SPDX-License-Identifier: Apache-2.0
//
// Random numbers. Until they are drawn by the device, a neuron generator holds a CPU generator and
// the CPU fallback draws from it: seeding and state work as on any device.
#pragma once

#include <ATen/core/Generator.h>

#include "Runtime.h"

namespace neuron {

const at::Generator &defaultGenerator(c10::DeviceIndex device);
at::Generator newGenerator(c10::DeviceIndex device);
// The CPU generator that a neuron one stands for.
at::Generator cpuGeneratorOf(const at::Generator &generator);

}  // namespace neuron
