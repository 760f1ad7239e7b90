// SPDX-License-Identifier: Apache-2.0
#include "Stream.h"

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

namespace neuron {
namespace {

constexpr int kPool = 4;             // streams of each priority
constexpr int kIds = 1 + 2 * kPool;  // default, normal, high

struct DeviceStreams {
  std::mutex mutex;  // protects creation
  std::array<std::atomic<nrtx_stream_t *>, kIds> streams{};
  std::array<std::atomic<unsigned>, 2> next{};
};

DeviceStreams &of(c10::DeviceIndex device)
{
  coreInfo(device);
  static auto &all = *new std::vector<std::unique_ptr<DeviceStreams>>([] {
    std::vector<std::unique_ptr<DeviceStreams>> made;
    for (int i = 0; i < deviceCount(); i++)
      made.push_back(std::make_unique<DeviceStreams>());
    return made;
  }());
  return *all[device];
}

thread_local std::vector<c10::StreamId> currentIds;

c10::StreamId &currentId(c10::DeviceIndex device)
{
  if (currentIds.size() <= static_cast<size_t>(device))
    currentIds.resize(device + 1, 0);
  return currentIds[device];
}

c10::Stream make(c10::DeviceIndex device, c10::StreamId id)
{
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(kNeuron, device), id);
}

}  // namespace

c10::Stream currentStream(c10::DeviceIndex device)
{
  return make(device, currentId(device));
}

c10::Stream exchangeStream(c10::Stream stream)
{
  auto &id = currentId(stream.device_index());
  const auto old = make(stream.device_index(), id);
  id = stream.id();
  return old;
}

c10::Stream defaultStream(c10::DeviceIndex device)
{
  return make(device, 0);
}

c10::Stream poolStream(c10::DeviceIndex device, int priority)
{
  const int high = priority < 0;
  const unsigned index = of(device).next[high]++ % kPool;
  return make(device, 1 + high * kPool + index);
}

nrtx_stream_t *nativeStream(c10::Stream stream)
{
  auto &streams = of(stream.device_index());
  const auto id = stream.id();
  TORCH_CHECK(id >= 0 && id < kIds, "no neuron stream has the id ", id);
  auto *found = streams.streams[id].load(std::memory_order_acquire);
  if (found)
    return found;
  std::lock_guard<std::mutex> lock(streams.mutex);
  found = streams.streams[id].load(std::memory_order_relaxed);
  if (!found) {
    // The runtime's high priority needs a privilege on a real node; the default is good enough then.
    const uint32_t priority = id > kPool ? 2 : 0;
    if (nrtx_stream_create(stream.device_index(), priority, &found) != NRT_SUCCESS)
      NEURON_CHECK(nrtx_stream_create(stream.device_index(), 0, &found));
    streams.streams[id].store(found, std::memory_order_release);
  }
  return found;
}

nrtx_stream_t *currentNativeStream(c10::DeviceIndex device)
{
  return nativeStream(currentStream(device));
}

void checkStream(nrtx_stream_t *stream, NRT_STATUS status, const char *what)
{
  nrtx_fault fault{};
  if (status == NRT_EXEC_OOB)
    nrtx_stream_fault(stream, &fault);
  TORCH_CHECK_INDEX(!fault.bad_index, "neuron: ", fault.program, ": index ", static_cast<int64_t>(fault.value),
                    " is out of bounds for dimension with size ", fault.limit,
                    ". The call was before this one, which waited for it; what followed it on its stream was not run.");
  checkStatus(status, what);
}

void synchronizeDevice(c10::DeviceIndex device)
{
  NRT_STATUS first = NRT_SUCCESS;
  nrtx_stream_t *failed = nullptr;
  for (auto &stream : of(device).streams) {
    auto *native = stream.load(std::memory_order_acquire);
    if (!native || first != NRT_SUCCESS)
      continue;
    first = nrtx_stream_sync(native);
    failed = native;
  }
  checkStream(failed, first, "synchronize");
}

}  // namespace neuron
