// SPDX-License-Identifier: Apache-2.0
#include "Runtime.h"

#include <deque>
#include <mutex>
#include <string>

namespace neuron {
namespace {

thread_local c10::DeviceIndex current = 0;

struct Cores {
  std::string error;
  std::deque<struct nrtx_core_info> infos;

  Cores()
  {
    uint32_t count = 0;
    NRT_STATUS status = nrtx_core_count(&count);
    for (uint32_t i = 0; status == NRT_SUCCESS && i < count; i++) {
      infos.emplace_back();
      status = nrtx_core_info(i, &infos.back());
    }
    if (status != NRT_SUCCESS) {
      error = nrtx_error_text();
      infos.clear();
    }
  }
};

// Never destroyed: tensors may outlive static destruction.
Cores &cores()
{
  static Cores &all = *new Cores;
  return all;
}

}  // namespace

void checkStatus(NRT_STATUS status, const char *what)
{
  if (status == NRT_SUCCESS)
    return;
  const std::string text = nrtx_error_text();
  switch (status) {
  case NRT_RESOURCE:
    TORCH_CHECK_WITH(OutOfMemoryError, false, "neuron: ", text);
  case NRT_TIMEOUT:
  case NRT_EXEC_BAD_INPUT:
  case NRT_EXEC_COMPLETED_WITH_ERR:
  case NRT_EXEC_OOB:
  case NRT_HW_ERROR:
    throw c10::AcceleratorError({__func__, __FILE__, static_cast<uint32_t>(__LINE__)}, static_cast<int32_t>(status),
                                "neuron: " + text);
  default:
    TORCH_CHECK(false, "neuron: ", text, " (", what, ", status ", static_cast<int>(status), ")");
  }
}

c10::DeviceIndex deviceCount() noexcept
{
  return static_cast<c10::DeviceIndex>(cores().infos.size());
}

const char *deviceError()
{
  return cores().error.c_str();
}

const struct nrtx_core_info &coreInfo(c10::DeviceIndex device)
{
  auto &all = cores();
  TORCH_CHECK(!all.infos.empty(), "no neuron device: ", all.error);
  TORCH_CHECK(device >= 0 && static_cast<size_t>(device) < all.infos.size(), "neuron:", static_cast<int>(device),
              " does not exist: there are ", all.infos.size(), " visible cores, see NEURON_RT_VISIBLE_CORES");
  return all.infos[device];
}

c10::DeviceIndex currentDevice()
{
  return current;
}

void setCurrentDevice(c10::DeviceIndex device)
{
  coreInfo(device);
  current = device;
}

c10::DeviceIndex exchangeDevice(c10::DeviceIndex device)
{
  const auto old = current;
  setCurrentDevice(device);
  return old;
}

}  // namespace neuron
