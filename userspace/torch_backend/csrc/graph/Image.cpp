// SPDX-License-Identifier: Apache-2.0
#include "Image.h"

#include <map>
#include <mutex>

#include "../runtime/Allocator.h"
#include "../runtime/Stream.h"

namespace neuron {

namespace {

// Loaded once a device and kept, so that a fault can name it and the next launch costs a look-up.
nrtx_program_t *programOf(c10::DeviceIndex device, const std::string &image)
{
  static std::mutex mutex;
  static auto &programs = *new std::map<std::pair<c10::DeviceIndex, std::string>, nrtx_program_t *>;
  std::lock_guard<std::mutex> lock(mutex);
  auto &program = programs[{device, image}];
  if (!program)
    NEURON_CHECK(nrtx_program_load(device, image.data(), image.size(), &program));
  return program;
}

}  // namespace

void launchImage(const std::string &image, const std::vector<at::Tensor> &tensors)
{
  const auto device = tensors.empty() ? currentDevice() : tensors[0].device().index();
  std::vector<nrtx_arg> args;
  for (const auto &tensor : tensors) {
    TORCH_CHECK(tensor.device() == c10::Device(kNeuron, device), "launch_image: tensor ", args.size(), " is on ",
                tensor.device(), ", expected neuron:", static_cast<int>(device));
    TORCH_CHECK(tensor.is_contiguous() && tensor.numel(), "launch_image: tensor ", args.size(),
                " must be contiguous and not empty");
    const Place place = placeOf(tensor.const_data_ptr(), tensor.storage().data_ptr());
    args.push_back({place.buffer, place.offset, tensor.nbytes()});
  }
  NEURON_CHECK(nrtx_launch(currentNativeStream(device), programOf(device, image), args.data(),
                           static_cast<uint32_t>(args.size())));
}

}  // namespace neuron
