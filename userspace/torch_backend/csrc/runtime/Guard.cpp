// SPDX-License-Identifier: Apache-2.0
//
// PyTorch's view of devices, streams and events (DeviceGuardImplInterface). An event is a point of a
// stream; its time is the device's.
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "Allocator.h"
#include "Stream.h"

namespace neuron {
namespace {

struct Event {
  nrtx_point point{};
  bool recorded = false;
};

struct GuardImpl final : public c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kNeuron; }

  c10::Device exchangeDevice(c10::Device device) const override
  {
    return {kNeuron, neuron::exchangeDevice(device.index())};
  }

  c10::Device getDevice() const override { return {kNeuron, currentDevice()}; }

  void setDevice(c10::Device device) const override { setCurrentDevice(device.index()); }

  void uncheckedSetDevice(c10::Device device) const noexcept override
  {
    if (device.index() >= 0 && device.index() < neuron::deviceCount())
      setCurrentDevice(device.index());
  }

  c10::Stream getStream(c10::Device device) const override
  {
    return currentStream(device.has_index() ? device.index() : currentDevice());
  }

  c10::Stream getDefaultStream(c10::Device device) const override
  {
    return defaultStream(device.has_index() ? device.index() : currentDevice());
  }

  c10::Stream getStreamFromGlobalPool(c10::Device device, bool isHighPriority) const override
  {
    return poolStream(device.has_index() ? device.index() : currentDevice(), isHighPriority ? -1 : 0);
  }

  c10::Stream getNewStream(c10::Device device, int priority) const override
  {
    return poolStream(device.has_index() ? device.index() : currentDevice(), priority);
  }

  c10::Stream exchangeStream(c10::Stream stream) const override { return neuron::exchangeStream(stream); }

  c10::DeviceIndex deviceCount() const noexcept override { return neuron::deviceCount(); }

  void record(void **event, const c10::Stream &stream, const c10::DeviceIndex device,
              const c10::EventFlag) const override
  {
    TORCH_CHECK(device == -1 || device == stream.device_index(), "an event of neuron:", static_cast<int>(device),
                " was recorded on a stream of neuron:", static_cast<int>(stream.device_index()));
    auto *it = static_cast<Event *>(*event);
    if (!it)
      *event = it = new Event;
    it->point = nrtx_stream_record(nativeStream(stream));
    it->recorded = true;
  }

  void block(void *event, const c10::Stream &stream) const override
  {
    if (const auto *it = static_cast<Event *>(event))
      NEURON_CHECK(nrtx_stream_wait(nativeStream(stream), it->point));
  }

  bool queryEvent(void *event) const override
  {
    const auto *it = static_cast<Event *>(event);
    return !it || nrtx_point_reached(it->point);
  }

  void destroyEvent(void *event, const c10::DeviceIndex) const noexcept override { delete static_cast<Event *>(event); }

  void synchronizeEvent(void *event) const override
  {
    if (const auto *it = static_cast<Event *>(event))
      nrtx_point_sync(it->point);
  }

  bool queryStream(const c10::Stream &stream) const override { return nrtx_stream_idle(nativeStream(stream)); }

  void synchronizeStream(const c10::Stream &stream) const override
  {
    auto *native = nativeStream(stream);
    checkStream(native, nrtx_stream_sync(native), "synchronize");
  }

  void synchronizeDevice(const c10::DeviceIndex device) const override
  {
    neuron::synchronizeDevice(device < 0 ? currentDevice() : device);
  }

  void recordDataPtrOnStream(const c10::DataPtr &ptr, const c10::Stream &stream) const override
  {
    allocator().recordStream(ptr, stream);
  }

  double elapsedTime(void *start, void *end, const c10::DeviceIndex) const override
  {
    const auto *from = static_cast<Event *>(start);
    const auto *to = static_cast<Event *>(end);
    TORCH_CHECK(from && to && from->recorded && to->recorded, "both events must be recorded before elapsed_time()");
    nrtx_point_sync(from->point);
    nrtx_point_sync(to->point);
    return (static_cast<double>(nrtx_point_device_ns(to->point)) -
            static_cast<double>(nrtx_point_device_ns(from->point))) /
           1e6;
  }
};

}  // namespace

C10_REGISTER_GUARD_IMPL(PrivateUse1, GuardImpl);

}  // namespace neuron
