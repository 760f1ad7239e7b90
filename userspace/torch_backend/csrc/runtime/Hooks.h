// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Storage.h>

namespace neuron {

void registerHooks();

// Gives the storage a block of at least bytes, contents kept (aten/Copy.cpp).
void resizeStorage(const c10::Storage &storage, size_t bytes);

}  // namespace neuron
