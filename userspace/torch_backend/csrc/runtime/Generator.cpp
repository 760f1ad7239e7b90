// SPDX-License-Identifier: Apache-2.0
#include "Generator.h"

#include <vector>

#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/GeneratorImpl.h>

namespace neuron {
namespace {

class NeuronGenerator final : public c10::GeneratorImpl {
 public:
  explicit NeuronGenerator(c10::DeviceIndex device, at::Generator cpu = at::detail::createCPUGenerator())
      : c10::GeneratorImpl(c10::Device(kNeuron, device), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
        cpu_(std::move(cpu))
  {
  }

  void set_current_seed(uint64_t seed) override { cpu_.set_current_seed(seed); }

  void set_offset(uint64_t offset) override { cpu_.set_offset(offset); }

  uint64_t get_offset() const override { return cpu_.get_offset(); }

  uint64_t current_seed() const override { return cpu_.current_seed(); }

  uint64_t seed() override { return cpu_.seed(); }

  void set_state(const c10::TensorImpl &state) override { cpu_.unsafeGetGeneratorImpl()->set_state(state); }

  c10::intrusive_ptr<c10::TensorImpl> get_state() const override { return cpu_.unsafeGetGeneratorImpl()->get_state(); }

  const at::Generator &cpu() const { return cpu_; }

 private:
  NeuronGenerator *clone_impl() const override { return new NeuronGenerator(device().index(), cpu_.clone()); }

  at::Generator cpu_;
};

}  // namespace

at::Generator newGenerator(c10::DeviceIndex device)
{
  return at::make_generator<NeuronGenerator>(device < 0 ? currentDevice() : device);
}

const at::Generator &defaultGenerator(c10::DeviceIndex device)
{
  const auto index = device < 0 ? currentDevice() : device;
  coreInfo(index);
  static auto &all = *new std::vector<at::Generator>([] {
    std::vector<at::Generator> made;
    for (c10::DeviceIndex i = 0; i < deviceCount(); i++)
      made.push_back(newGenerator(i));
    return made;
  }());
  return all[index];
}

at::Generator cpuGeneratorOf(const at::Generator &generator)
{
  return static_cast<const NeuronGenerator *>(generator.unsafeGetGeneratorImpl())->cpu();
}

}  // namespace neuron
