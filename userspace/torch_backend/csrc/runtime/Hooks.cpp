// SPDX-License-Identifier: Apache-2.0
#include <ATen/detail/PrivateUse1HooksInterface.h>

#include "Allocator.h"
#include "Generator.h"
#include "Hooks.h"

namespace neuron {
namespace {

struct Hooks final : public at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }

  bool isAvailable() const override { return neuron::deviceCount() > 0; }

  bool hasPrimaryContext(c10::DeviceIndex device) const override
  {
    return device >= 0 && device < neuron::deviceCount();
  }

  c10::DeviceIndex deviceCount() const override { return neuron::deviceCount(); }

  void setCurrentDevice(c10::DeviceIndex device) const override { neuron::setCurrentDevice(device); }

  c10::DeviceIndex getCurrentDevice() const override { return currentDevice(); }

  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override { return neuron::exchangeDevice(device); }

  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override
  {
    return device < 0 ? currentDevice() : neuron::exchangeDevice(device);
  }

  const at::Generator &getDefaultGenerator(c10::DeviceIndex device) const override { return defaultGenerator(device); }

  at::Generator getNewGenerator(c10::DeviceIndex device) const override { return newGenerator(device); }

  bool isPinnedPtr(const void *data) const override { return isPinned(data); }

  c10::Allocator *getPinnedMemoryAllocator() const override { return hostAllocator(); }

  void resizePrivateUse1Bytes(const c10::Storage &storage, size_t bytes) const override
  {
    resizeStorage(storage, bytes);
  }
};

}  // namespace

void registerHooks()
{
  static Hooks hooks;
  at::RegisterPrivateUse1HooksInterface(&hooks);
}

}  // namespace neuron
