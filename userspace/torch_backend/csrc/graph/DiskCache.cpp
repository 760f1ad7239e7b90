// SPDX-License-Identifier: Apache-2.0
#include "DiskCache.h"

#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <vector>

#include <c10/util/Exception.h>
#include <c10/util/ScopeExit.h>
#include <c10/util/env.h>

namespace neuron {
namespace {

namespace fs = std::filesystem;

// Smaller images take about as long to read as to make; measured, docs/program-cache.md.
constexpr size_t kLeastBytes = 32 << 10;
constexpr uint64_t kDefaultMiB = 512;
constexpr std::string_view kSuffix = ".program";

// Ends in the version of the format. The rest of the file: key, then image.
struct Header {
  char magic[8] = {'n', 'e', 'u', 'r', 'o', 'n', 'c', '1'};
  uint64_t keyBytes = 0, imageBytes = 0;
  uint64_t sum = 0;  // of both
};

struct State {
  fs::path folder;     // empty: none
  bool asked = false;  // for, by name
  uint64_t limit = 0;  // bytes of all files
  std::mutex mutex;
  std::optional<uint64_t> bytes;  // about how many there are; unknown before the first is saved
  std::atomic<uint64_t> loaded = 0, saved = 0, refused = 0;
  std::atomic<bool> warned = false;
};

fs::path defaultFolder()
{
  const auto named = c10::utils::get_env("XDG_CACHE_HOME");
  if (named && fs::path(*named).is_absolute())
    return fs::path(*named) / "torch_neuronx";
  const auto home = c10::utils::get_env("HOME").value_or("");
  return home.empty() ? fs::path() : fs::path(home) / ".cache" / "torch_neuronx";
}

uint64_t limitBytes()
{
  const auto text = c10::utils::get_env("TORCH_NEURONX_CACHE_MIB");
  uint64_t mib = kDefaultMiB;
  if (text) {
    const char *end = text->data() + text->size();
    const auto [at, error] = std::from_chars(text->data(), end, mib);
    TORCH_CHECK(error == std::errc() && at == end && mib <= UINT64_MAX >> 20, "TORCH_NEURONX_CACHE_MIB is '", *text,
                "', not a number of MiB");
  }
  return mib << 20;
}

State *makeState()
{
  auto *it = new State;
  const auto named = c10::utils::get_env("TORCH_NEURONX_CACHE");
  it->asked = named.has_value();
  it->folder = named ? fs::path(*named) : defaultFolder();
  it->limit = limitBytes();
  // Without an id, a program of another build could not be told from ours.
  if (buildId().empty())
    it->folder.clear();
  return it;
}

// Never destroyed: launches may come as late as a destructor.
State &state()
{
  static auto &it = *makeState();
  return it;
}

// FNV-1a, by words of 8 bytes with the length first: finds accidents, not forgeries. The folder is its
// owner's, as the library itself is; and a device checks each program that it loads.
uint64_t sumOf(std::string_view bytes, uint64_t hash = 0xcbf29ce484222325u)
{
  const auto add = [&hash](uint64_t word) {
    hash = (hash ^ word) * 0x100000001b3u;
    hash ^= hash >> 32;
  };
  add(bytes.size());
  for (size_t i = 0; i < bytes.size(); i += 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, std::min<size_t>(8, bytes.size() - i));
    add(word);
  }
  return hash;
}

fs::path pathOf(std::string_view key)
{
  char name[32];
  std::snprintf(name, sizeof(name), "%016llx", static_cast<unsigned long long>(sumOf(key)));
  return state().folder / std::string(name).append(kSuffix);
}

// Ours, whole or left behind half written: 16 digits, suffix, and of the latter more.
bool isOurs(const std::string &name)
{
  return name.find_first_not_of("0123456789abcdef") == 16 && name.compare(16, kSuffix.size(), kSuffix) == 0;
}

// The library that this code is in.
int findBuildId(dl_phdr_info *info, size_t, void *out)
{
  const auto here = reinterpret_cast<uintptr_t>(&findBuildId);
  bool mine = false;
  std::string id;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const auto &part = info->dlpi_phdr[i];
    const uintptr_t at = info->dlpi_addr + part.p_vaddr;
    mine |= part.p_type == PT_LOAD && here >= at && here < at + part.p_memsz;
    if (part.p_type != PT_NOTE)
      continue;
    for (uintptr_t note = at; note + sizeof(ElfW(Nhdr)) <= at + part.p_memsz;) {
      const auto *head = reinterpret_cast<const ElfW(Nhdr) *>(note);
      const char *name = reinterpret_cast<const char *>(head + 1);
      const char *bytes = name + (head->n_namesz + 3) / 4 * 4;
      if (head->n_type == NT_GNU_BUILD_ID && head->n_namesz == 4 && !std::memcmp(name, "GNU", 4))
        id.assign(bytes, head->n_descsz);
      note = reinterpret_cast<uintptr_t>(bytes) + (head->n_descsz + 3) / 4 * 4;
    }
  }
  if (mine)
    *static_cast<std::string *>(out) = id;
  return mine;
}

// A whole file; also marks it as used, for trim(). nullopt: there is none.
std::optional<std::string> read(const fs::path &path)
{
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return std::nullopt;
  const auto closing = c10::make_scope_exit([fd] { close(fd); });
  struct stat facts;
  if (fstat(fd, &facts) || !S_ISREG(facts.st_mode) || static_cast<uint64_t>(facts.st_size) > state().limit)
    return std::nullopt;
  std::string bytes(static_cast<size_t>(facts.st_size), '\0');
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::read(fd, bytes.data() + done, bytes.size() - done);
    if (n <= 0)
      break;
    done += static_cast<size_t>(n);
  }
  bytes.resize(done);
  futimens(fd, nullptr);
  return bytes;
}

[[noreturn]] void raise(const char *what)
{
  throw std::system_error(errno, std::generic_category(), what);
}

// Writes a new file beside path; returns its name.
fs::path writeBeside(const fs::path &path, std::initializer_list<std::string_view> parts)
{
  std::string name = path.string() + ".XXXXXX";
  const int fd = mkostemp(name.data(), O_CLOEXEC);
  if (fd < 0)
    raise("open");
  try {
    for (auto part : parts)
      while (!part.empty()) {
        const ssize_t n = ::write(fd, part.data(), part.size());
        if (n < 0)
          raise("write");
        part.remove_prefix(static_cast<size_t>(n));
      }
  } catch (...) {
    close(fd);
    unlink(name.c_str());
    throw;
  }
  if (close(fd))
    raise("close");
  return name;
}

struct Kept {
  fs::path path;
  fs::file_time_type used;
  uint64_t bytes;
};

std::vector<Kept> list()
{
  std::vector<Kept> all;
  for (const auto &entry : fs::directory_iterator(state().folder)) {
    // It may be gone by now: other processes trim, too.
    std::error_code error;
    if (!isOurs(entry.path().filename().string()) || !entry.is_regular_file(error))
      continue;
    const auto used = entry.last_write_time(error);
    const uint64_t bytes = error ? 0 : entry.file_size(error);
    if (!error)
      all.push_back({entry.path(), used, bytes});
  }
  return all;
}

// Removes what was not used for longest if there would be more than the limit, and some more, so that
// the folder is not read for every program. Returns how many bytes are left.
uint64_t trim(uint64_t more)
{
  auto all = list();
  uint64_t total = 0;
  for (const auto &one : all)
    total += one.bytes;
  if (total + more <= state().limit)
    return total;
  const uint64_t aim = state().limit - std::max(more, state().limit / 4);
  std::sort(all.begin(), all.end(), [](const Kept &a, const Kept &b) { return a.used < b.used; });
  for (const auto &one : all) {
    if (total <= aim)
      break;
    std::error_code ignored;
    fs::remove(one.path, ignored);
    total -= one.bytes;
  }
  return total;
}

void makeRoom(uint64_t bytes)
{
  std::lock_guard<std::mutex> lock(state().mutex);
  if (!state().bytes || *state().bytes + bytes > state().limit)
    state().bytes = trim(bytes);
  *state().bytes += bytes;
}

}  // namespace

const std::string &buildId()
{
  static const std::string id = [] {
    std::string found;
    dl_iterate_phdr(findBuildId, &found);
    return found;
  }();
  return id;
}

bool hasDiskCache()
{
  return !state().folder.empty() && state().limit;
}

std::optional<std::string> loadImage(std::string_view key)
{
  if (!hasDiskCache())
    return std::nullopt;
  auto file = read(pathOf(key));
  if (!file)
    return std::nullopt;
  Header header;
  const Header expected;
  const std::string_view rest = std::string_view(*file).substr(std::min(file->size(), sizeof(header)));
  if (file->size() >= sizeof(header))
    std::memcpy(&header, file->data(), sizeof(header));
  const bool whole = file->size() >= sizeof(header) &&
                     !std::memcmp(header.magic, expected.magic, sizeof(header.magic)) &&
                     header.keyBytes == key.size() && header.keyBytes <= rest.size() &&
                     header.imageBytes == rest.size() - header.keyBytes;
  if (!whole || rest.substr(0, key.size()) != key || header.sum != sumOf(rest.substr(key.size()), sumOf(key))) {
    state().refused++;
    return std::nullopt;
  }
  state().loaded++;
  return std::string(rest.substr(key.size()));
}

void refuseImage()
{
  state().loaded--;
  state().refused++;
}

void saveImage(std::string_view key, std::string_view image)
{
  const uint64_t bytes = sizeof(Header) + key.size() + image.size();
  if (!hasDiskCache() || image.size() < kLeastBytes || bytes > state().limit)
    return;
  Header header;
  header.keyBytes = key.size();
  header.imageBytes = image.size();
  header.sum = sumOf(image, sumOf(key));
  const auto path = pathOf(key);
  try {
    fs::create_directories(state().folder);
    makeRoom(bytes);
    fs::rename(writeBeside(path, {{reinterpret_cast<const char *>(&header), sizeof(header)}, key, image}), path);
    state().saved++;
  } catch (const std::exception &error) {
    if (state().asked && !state().warned.exchange(true))
      TORCH_WARN("TORCH_NEURONX_CACHE: cannot keep programs in ", state().folder.string(), ": ", error.what());
  }
}

DiskCacheStats diskCacheStats()
{
  return {state().loaded, state().saved, state().refused};
}

}  // namespace neuron
