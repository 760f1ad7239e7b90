// SPDX-License-Identifier: Apache-2.0
//
// Rules of csrc/: runtime/ knows devices, memory and order but no operator; graph/ turns nodes into
// programs and launches them; aten/ holds operators, each shape logic of PyTorch plus graph nodes,
// and reaches the device through graph/ alone. Nothing here includes hw/, uapi/ or the model, and no
// CPU kernel is called outside aten/Fallback.cpp.
#pragma once

#include <c10/core/Device.h>
#include <c10/util/Exception.h>

#include <nrt/nrt_stream.h>

namespace neuron {

constexpr c10::DeviceType kNeuron = c10::DeviceType::PrivateUse1;

// Raises the runtime's error text as a Python exception: torch.AcceleratorError for faults of a
// program, torch.OutOfMemoryError for full HBM, RuntimeError for the rest.
void checkStatus(NRT_STATUS status, const char *what);
#define NEURON_CHECK(call) ::neuron::checkStatus((call), #call)

// Number of visible cores; 0 when the runtime cannot start (the reason is in deviceError()).
c10::DeviceIndex deviceCount() noexcept;
const char *deviceError();

// The calling thread's current device.
c10::DeviceIndex currentDevice();
void setCurrentDevice(c10::DeviceIndex device);
c10::DeviceIndex exchangeDevice(c10::DeviceIndex device);

// Facts of a core, read once.
const struct nrtx_core_info &coreInfo(c10::DeviceIndex device);

}  // namespace neuron
