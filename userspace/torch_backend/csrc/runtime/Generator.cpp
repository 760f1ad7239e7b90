// SPDX-License-Identifier: Apache-2.0
#include "Generator.h"

#include <cstring>
#include <vector>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Utils.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/core/GeneratorImpl.h>

#include <neuron_compiler.h>

namespace neuron {
namespace {

class NeuronGenerator final : public c10::GeneratorImpl {
 public:
  explicit NeuronGenerator(c10::DeviceIndex device, Draw next = {c10::default_rng_seed_val, 0})
      : c10::GeneratorImpl(c10::Device(kNeuron, device), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
        next_(next)
  {
  }

  void set_current_seed(uint64_t seed) override { next_ = {seed, 0}; }

  void set_offset(uint64_t offset) override { next_.offset = offset; }

  uint64_t get_offset() const override { return next_.offset; }

  uint64_t current_seed() const override { return next_.seed; }

  uint64_t seed() override
  {
    set_current_seed(c10::detail::getNonDeterministicRandom(true));
    return next_.seed;
  }

  void set_state(const c10::TensorImpl &state) override
  {
    at::detail::check_rng_state(state);
    TORCH_CHECK(state.numel() == sizeof(next_), "the state of a neuron generator has ", sizeof(next_),
                " bytes (seed and offset), not ", state.numel());
    std::memcpy(&next_, state.data_dtype_initialized<uint8_t>(), sizeof(next_));
  }

  c10::intrusive_ptr<c10::TensorImpl> get_state() const override
  {
    at::Tensor state = at::empty({static_cast<int64_t>(sizeof(next_))}, at::TensorOptions().dtype(at::kByte));
    std::memcpy(state.mutable_data_ptr(), &next_, sizeof(next_));
    return state.getIntrusivePtr();
  }

  Draw draw()
  {
    const Draw now = next_;
    next_.offset++;
    return now;
  }

 private:
  NeuronGenerator *clone_impl() const override { return new NeuronGenerator(device().index(), next_); }

  Draw next_;
};

Draw nextOf(const at::Generator &generator)
{
  auto *impl = static_cast<NeuronGenerator *>(generator.unsafeGetGeneratorImpl());
  std::lock_guard<std::mutex> lock(impl->mutex_);
  return impl->draw();
}

// Streams of a draw below this are for numbers of one operator (nc_random_key()).
constexpr uint32_t kStreamOfSeeds = UINT32_MAX;

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

Draw nextDraw(const std::optional<at::Generator> &generator, c10::DeviceIndex device)
{
  if (!generator || !generator->defined())
    return nextOf(defaultGenerator(device));
  TORCH_CHECK(generator->device().type() == kNeuron, "expected a neuron generator, but got one of ",
              generator->device());
  return nextOf(*generator);
}

at::Generator cpuGenerator(const at::Generator &generator)
{
  const Draw draw = nextOf(generator);
  uint32_t key[NC_KEY_WORDS];
  nc_random_key(draw.seed, draw.offset, kStreamOfSeeds, key);
  return at::detail::createCPUGenerator(key[0] | static_cast<uint64_t>(key[1]) << 32);
}

}  // namespace neuron
