// SPDX-License-Identifier: Apache-2.0
//
// Caching allocator of HBM. Segments come from the runtime; blocks are cut from them, reused in the
// order of the stream that allocated them, and merged with free neighbours.
//
// The data pointer of a tensor is an address in a reserved range that nobody can read or write: it is
// unique, allows pointer arithmetic, and a stray access by the CPU faults at once.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>

#include "Runtime.h"

namespace neuron {

// Where a tensor's bytes are.
struct Place {
  nrtx_buffer_t *buffer;
  uint64_t offset;
};

// ptr: any address inside memory of this allocator; throws for others.
Place placeOf(const void *ptr, const c10::DataPtr &storage);

c10::DeviceAllocator &allocator();
void registerAllocator();

// Page-aligned host memory; isPinned() knows it.
c10::Allocator *hostAllocator();
bool isPinned(const void *ptr);

}  // namespace neuron
