// SPDX-License-Identifier: Apache-2.0
#include "Image.h"

#include "../runtime/Allocator.h"
#include "../runtime/Stream.h"

namespace neuron {

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
  nrtx_program_t *program = nullptr;
  NEURON_CHECK(nrtx_program_load(device, image.data(), image.size(), &program));
  const NRT_STATUS status =
      nrtx_launch(currentNativeStream(device), program, args.data(), static_cast<uint32_t>(args.size()));
  // The text belongs to the thread's last call, so it is read before the program goes; it lives on in flight.
  try {
    checkStatus(status, "launch_image");
  } catch (...) {
    nrtx_program_unload(program);
    throw;
  }
  nrtx_program_unload(program);
}

}  // namespace neuron
