// SPDX-License-Identifier: Apache-2.0
//
// Streams: PyTorch's ids to the runtime's streams. Id 0 is a device's default stream; a small pool of
// others is handed out in turn and shared, as PyTorch expects. All live until the process ends.
#pragma once

#include <c10/core/Stream.h>

#include "Runtime.h"

namespace neuron {

// Stream of the calling thread on a device; created at first use.
c10::Stream currentStream(c10::DeviceIndex device);
c10::Stream exchangeStream(c10::Stream stream);
c10::Stream defaultStream(c10::DeviceIndex device);
// The pool's next stream. priority < 0: high.
c10::Stream poolStream(c10::DeviceIndex device, int priority);

nrtx_stream_t *nativeStream(c10::Stream stream);
nrtx_stream_t *currentNativeStream(c10::DeviceIndex device);

// checkStatus() for calls that wait for a stream and return what a launch before met on the device: an index
// that names no row is Python's IndexError.
void checkStream(nrtx_stream_t *stream, NRT_STATUS status, const char *what);

// Waits for every stream of the device and raises the first error.
void synchronizeDevice(c10::DeviceIndex device);

}  // namespace neuron
