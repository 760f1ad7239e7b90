// SPDX-License-Identifier: Apache-2.0
//
// Python bindings: torch_neuronx._C. Everything that PyTorch does not reach through its own
// interfaces; torch_neuronx/neuron.py gives it its public shape.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include "aten/Fallback.h"
#include "graph/DiskCache.h"
#include "graph/HostTimes.h"
#include "graph/Image.h"
#include "graph/Op.h"
#include "runtime/Allocator.h"
#include "runtime/Generator.h"
#include "runtime/Hooks.h"
#include "runtime/Stream.h"

namespace py = pybind11;
using namespace neuron;

namespace {

const char *const kEngines[] = {"tensor", "vector", "scalar", "gpsimd", "sync"};

py::dict properties(c10::DeviceIndex device)
{
  const auto &info = coreInfo(device);
  py::dict d;
  d["name"] = info.name;
  d["transport"] = info.transport;
  d["virtual"] = info.virtual_device != 0;
  d["arch"] = info.arch;
  d["device"] = info.device;
  d["core"] = info.core;
  d["total_memory"] = info.hbm_bytes;
  d["sbuf_bytes_per_partition"] = info.sbuf_bytes;
  d["psum_bytes_per_partition"] = info.psum_bytes;
  d["serial"] = info.serial;
  return d;
}

py::dict stats(c10::DeviceIndex device, bool reset)
{
  struct nrtx_stats s{};
  NEURON_CHECK(nrtx_stats(static_cast<uint32_t>(device), &s, reset));
  py::dict engines;
  for (int i = 0; i < 5; i++)
    engines[kEngines[i]] = s.insts[i];
  const auto programs = cacheStats();
  py::dict d;
  d["launches"] = s.launches;
  d["instructions"] = engines;
  d["device_ns"] = s.device_ns;
  d["dma_bytes"] = s.dma_bytes;
  d["to_device_bytes"] = s.to_device_bytes;
  d["to_host_bytes"] = s.to_host_bytes;
  d["programs"] = programs.programs;
  d["program_cache_hits"] = programs.hits;
  const auto times = hostTimes();
  d["compile_ns"] = times.compile;
  d["launch_ns"] = times.launch;
  const auto kept = diskCacheStats();
  d["programs_loaded"] = kept.loaded;
  d["programs_saved"] = kept.saved;
  d["programs_refused"] = kept.refused;
  return d;
}

void setFallback(const std::string &mode)
{
  if (mode == "warn")
    setFallbackMode(FallbackMode::Warn);
  else if (mode == "silent")
    setFallbackMode(FallbackMode::Silent);
  else if (mode == "error")
    setFallbackMode(FallbackMode::Error);
  else
    throw py::value_error("fallback mode '" + mode + "': it may be warn, silent or error");
}

std::string fallbackModeName()
{
  switch (fallbackMode()) {
  case FallbackMode::Silent:
    return "silent";
  case FallbackMode::Error:
    return "error";
  default:
    return "warn";
  }
}

}  // namespace

PYBIND11_MODULE(_C, m)
{
  registerAllocator();
  registerHooks();
  m.def("device_count", &deviceCount);
  m.def("device_error", &deviceError);
  m.def("current_device", &currentDevice);
  m.def("set_device", [](int device) { setCurrentDevice(static_cast<c10::DeviceIndex>(device)); });
  m.def("exchange_device", [](int device) { return exchangeDevice(static_cast<c10::DeviceIndex>(device)); });
  m.def("properties", [](int device) { return properties(static_cast<c10::DeviceIndex>(device)); });
  m.def("synchronize", [](int device) {
    py::gil_scoped_release release;
    synchronizeDevice(static_cast<c10::DeviceIndex>(device));
  });
  m.def("stats", [](int device, bool reset) { return stats(static_cast<c10::DeviceIndex>(device), reset); });
  m.def("default_generator", [](int device) { return defaultGenerator(static_cast<c10::DeviceIndex>(device)); });
  m.def("manual_seed", [](int device, uint64_t seed) {
    auto generator = defaultGenerator(static_cast<c10::DeviceIndex>(device));
    std::lock_guard<std::mutex> lock(generator.mutex());
    generator.set_current_seed(seed);
  });
  m.def("launch_image",
        [](const py::bytes &image, const std::vector<at::Tensor> &tensors) { launchImage(image, tensors); });
  m.def("time_launches", &timeLaunches);
  m.def("set_fallback", &setFallback);
  m.def("fallback_mode", &fallbackModeName);
  m.def("fallback_counts", &fallbackCounts);
  m.def("reset_fallback_counts", &resetFallbackCounts);
}
