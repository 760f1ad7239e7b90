// SPDX-License-Identifier: Apache-2.0
//
// Images of large programs in a folder, for later processes: docs/program-cache.md. A file is told by its
// key: all that its program depends on, as bytes. What is not whole, has another key or was changed is no
// file and is written anew; nobody has to clean up, and everything may be deleted at any time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace neuron {

// Whether there is a folder. The others do nothing without one.
bool hasDiskCache();

// Identifies this library, compiler included: programs of another build are not taken.
const std::string &buildId();

std::optional<std::string> loadImage(std::string_view key);

// Counts an image of loadImage() as refused after all.
void refuseImage();

// Several processes may save one key at a time. Failures, such as a full disk, only mean that nothing is
// kept; the first is warned of where the folder was asked for.
void saveImage(std::string_view key, std::string_view image);

struct DiskCacheStats {
  uint64_t loaded, saved, refused;  // refused: files that were there and not as they should be
};
DiskCacheStats diskCacheStats();

}  // namespace neuron
