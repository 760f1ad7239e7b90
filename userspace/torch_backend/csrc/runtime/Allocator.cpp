// SPDX-License-Identifier: Apache-2.0
#include "Allocator.h"

#include <sys/mman.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <tuple>
#include <vector>

#include <c10/util/env.h>

#include "Stream.h"

namespace neuron {
namespace {

using c10::CachingAllocator::StatArray;
using c10::CachingAllocator::StatType;
using c10::CachingDeviceAllocator::DeviceStats;

constexpr size_t kGrain = 512;              // block sizes are multiples
constexpr size_t kSmall = size_t(1) << 20;  // up to here blocks share segments of kSmallSegment
constexpr size_t kSmallSegment = size_t(2) << 20;
constexpr size_t kLargeSegment = size_t(32) << 20;  // for blocks below kAlone
constexpr size_t kAlone = size_t(16) << 20;         // from here a block has its own segment
constexpr size_t kSegmentGrain = size_t(2) << 20;
constexpr size_t kReserved = size_t(1) << 44;  // addresses, all devices

struct Block;

struct Segment {
  nrtx_buffer_t *buffer;
  char *base;
  size_t size;
};

struct Block {
  Segment *segment;
  char *ptr;
  size_t size;
  size_t requested = 0;
  c10::DeviceIndex device;
  c10::StreamId stream;
  bool allocated = false;
  Block *prev = nullptr;  // neighbours in the segment
  Block *next = nullptr;
  std::set<c10::StreamId> users;    // other streams, by recordStream
  std::vector<nrtx_point> pending;  // what must be reached before it is free

  bool small() const { return segment->size <= kSmallSegment; }
};

struct BySize {
  bool operator()(const Block *a, const Block *b) const
  {
    return std::tie(a->stream, a->size, a->ptr) < std::tie(b->stream, b->size, b->ptr);
  }
};

// Unreadable addresses, handed out once each.
char *reserve(size_t size)
{
  static std::mutex mutex;
  static char *next = nullptr;
  static char *end = nullptr;
  std::lock_guard<std::mutex> lock(mutex);
  if (!next) {
    void *range = mmap(nullptr, kReserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    TORCH_CHECK(range != MAP_FAILED, "neuron: cannot reserve ", kReserved, " bytes of addresses");
    next = static_cast<char *>(range);
    end = next + kReserved;
  }
  TORCH_CHECK(size <= static_cast<size_t>(end - next), "neuron: out of device addresses");
  char *got = next;
  next += size;
  return got;
}

// All segments by address, for storages that others made around a pointer of ours (from_blob, DLPack).
struct Segments {
  std::mutex mutex;
  std::map<const char *, const Segment *> byBase;
};

Segments &segments()
{
  static auto &all = *new Segments;
  return all;
}

Place segmentOf(const void *ptr)
{
  const auto *at = static_cast<const char *>(ptr);
  auto &all = segments();
  std::lock_guard<std::mutex> lock(all.mutex);
  auto it = all.byBase.upper_bound(at);
  const Segment *segment = it == all.byBase.begin() ? nullptr : std::prev(it)->second;
  TORCH_CHECK(segment && at < segment->base + segment->size, "neuron: ", ptr, " is no address of neuron memory");
  return {segment->buffer, static_cast<uint64_t>(at - segment->base)};
}

class DeviceHeap {
 public:
  explicit DeviceHeap(c10::DeviceIndex device) : device_(device) {}

  Block *allocate(size_t requested, c10::StreamId stream)
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const size_t size = (std::max<size_t>(requested, 1) + kGrain - 1) / kGrain * kGrain;
    reapPending();
    Block *block = take(size, stream);
    if (!block)
      block = grow(size, requested, stream);
    split(block, size);
    block->allocated = true;
    block->requested = requested;
    count(*block, 1);
    return block;
  }

  void free(Block *block)
  {
    std::lock_guard<std::mutex> lock(mutex_);
    count(*block, -1);
    block->allocated = false;
    for (const auto id : block->users) {
      const c10::Stream stream(c10::Stream::UNSAFE, c10::Device(kNeuron, device_), id);
      block->pending.push_back(nrtx_stream_record(nativeStream(stream)));
    }
    block->users.clear();
    if (block->pending.empty())
      release(block);
    else
      waiting_.push_back(block);
  }

  void recordStream(Block *block, c10::StreamId stream)
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (stream != block->stream)
      block->users.insert(stream);
  }

  void emptyCache()
  {
    std::lock_guard<std::mutex> lock(mutex_);
    drop();
  }

  DeviceStats stats()
  {
    std::lock_guard<std::mutex> lock(mutex_);
    return stats_;
  }

  template <class F>
  void eachStat(F f)
  {
    std::lock_guard<std::mutex> lock(mutex_);
    for (auto *array :
         {&stats_.allocation, &stats_.segment, &stats_.active, &stats_.inactive_split, &stats_.allocated_bytes,
          &stats_.reserved_bytes, &stats_.active_bytes, &stats_.inactive_split_bytes, &stats_.requested_bytes})
      for (auto &stat : *array)
        f(stat);
  }

 private:
  StatArray &bump(StatArray &array, const Segment &segment, int64_t by)
  {
    const auto pool = segment.size <= kSmallSegment ? StatType::SMALL_POOL : StatType::LARGE_POOL;
    for (const auto type : {StatType::AGGREGATE, pool}) {
      auto &stat = array[static_cast<size_t>(type)];
      if (by > 0)
        stat.increase(by);
      else
        stat.decrease(-by);
    }
    return array;
  }

  void count(const Block &block, int sign)
  {
    bump(stats_.allocation, *block.segment, sign);
    bump(stats_.active, *block.segment, sign);
    bump(stats_.allocated_bytes, *block.segment, sign * static_cast<int64_t>(block.size));
    bump(stats_.active_bytes, *block.segment, sign * static_cast<int64_t>(block.size));
    bump(stats_.requested_bytes, *block.segment, sign * static_cast<int64_t>(block.requested));
  }

  // Best fit among the stream's free blocks of the right kind.
  Block *take(size_t size, c10::StreamId stream)
  {
    auto &pool = size <= kSmall ? small_ : large_;
    Block key{};
    key.stream = stream;
    key.size = size;
    const auto found = pool.lower_bound(&key);
    if (found == pool.end() || (*found)->stream != stream)
      return nullptr;
    // A huge segment must not be cut up for a small tensor.
    if (size >= kAlone && (*found)->size > size + size / 4)
      return nullptr;
    Block *block = *found;
    pool.erase(found);
    return block;
  }

  Block *grow(size_t size, size_t requested, c10::StreamId stream)
  {
    size_t bytes = size <= kSmall ? kSmallSegment : size < kAlone ? kLargeSegment : size;
    bytes = (bytes + kSegmentGrain - 1) / kSegmentGrain * kSegmentGrain;
    nrtx_buffer_t *buffer = nullptr;
    NRT_STATUS status = nrtx_buffer_alloc(device_, bytes, &buffer);
    if (status == NRT_RESOURCE) {
      stats_.num_alloc_retries++;
      finishPending();
      drop();
      if (Block *merged = take(size, stream))
        return merged;
      status = nrtx_buffer_alloc(device_, bytes, &buffer);
    }
    if (status == NRT_RESOURCE && bytes > size) {
      bytes = (size + kGrain - 1) / kGrain * kGrain;
      status = nrtx_buffer_alloc(device_, bytes, &buffer);
    }
    if (status == NRT_RESOURCE)
      outOfMemory(requested);
    checkStatus(status, "nrtx_buffer_alloc");
    auto *segment = new Segment{buffer, reserve(bytes), bytes};
    {
      std::lock_guard<std::mutex> guard(segments().mutex);
      segments().byBase[segment->base] = segment;
    }
    auto *block = new Block{};
    block->segment = segment;
    block->ptr = segment->base;
    block->size = bytes;
    block->device = device_;
    block->stream = stream;
    bump(stats_.segment, *segment, 1);
    bump(stats_.reserved_bytes, *segment, static_cast<int64_t>(bytes));
    stats_.num_device_alloc++;
    return block;
  }

  [[noreturn]] void outOfMemory(size_t requested)
  {
    stats_.num_ooms++;
    struct nrtx_core_info info{};
    nrtx_core_info(device_, &info);
    const auto aggregate = static_cast<size_t>(StatType::AGGREGATE);
    TORCH_CHECK_WITH(
        OutOfMemoryError, false, "neuron:", static_cast<int>(device_), " is out of memory: tried to allocate ",
        requested, " bytes; of the device's ", info.hbm_bytes, " bytes of HBM ", info.hbm_free,
        " are free; this process has ", stats_.allocated_bytes[aggregate].current, " bytes in tensors and ",
        stats_.reserved_bytes[aggregate].current,
        " reserved on this core. Free tensors, or use smaller batches; HBM is shared by the cores of a device.");
  }

  void split(Block *block, size_t size)
  {
    const size_t rest = block->size - size;
    if (rest < kGrain || (!block->small() && rest < kSmall))
      return;
    auto *tail = new Block{};
    tail->segment = block->segment;
    tail->ptr = block->ptr + size;
    tail->size = rest;
    tail->device = device_;
    tail->stream = block->stream;
    tail->prev = block;
    tail->next = block->next;
    if (tail->next)
      tail->next->prev = tail;
    block->next = tail;
    block->size = size;
    pool(tail).insert(tail);
  }

  std::set<Block *, BySize> &pool(const Block *block) { return block->small() ? small_ : large_; }

  bool isFree(const Block *block) const { return block && !block->allocated && block->pending.empty(); }

  // Into the pool, one with its free neighbours.
  void release(Block *block)
  {
    if (isFree(block->next)) {
      Block *next = block->next;
      pool(next).erase(next);
      block->size += next->size;
      block->next = next->next;
      if (block->next)
        block->next->prev = block;
      delete next;
    }
    if (isFree(block->prev)) {
      Block *prev = block->prev;
      pool(prev).erase(prev);
      prev->size += block->size;
      prev->next = block->next;
      if (prev->next)
        prev->next->prev = prev;
      delete block;
      block = prev;
    }
    pool(block).insert(block);
  }

  void reapPending()
  {
    for (size_t i = 0; i < waiting_.size();) {
      Block *block = waiting_[i];
      while (!block->pending.empty() && nrtx_point_reached(block->pending.back()))
        block->pending.pop_back();
      if (!block->pending.empty()) {
        i++;
        continue;
      }
      waiting_.erase(waiting_.begin() + static_cast<ptrdiff_t>(i));
      release(block);
    }
  }

  void finishPending()
  {
    for (Block *block : waiting_)
      for (const auto &point : block->pending)
        nrtx_point_sync(point);
    reapPending();
  }

  // Gives whole free segments back to the device.
  void drop()
  {
    reapPending();
    for (auto *blocks : {&small_, &large_}) {
      for (auto it = blocks->begin(); it != blocks->end();) {
        Block *block = *it;
        if (block->prev || block->next) {
          ++it;
          continue;
        }
        it = blocks->erase(it);
        Segment *segment = block->segment;
        bump(stats_.segment, *segment, -1);
        bump(stats_.reserved_bytes, *segment, -static_cast<int64_t>(segment->size));
        stats_.num_device_free++;
        {
          std::lock_guard<std::mutex> guard(segments().mutex);
          segments().byBase.erase(segment->base);
        }
        nrtx_buffer_free(segment->buffer);
        delete segment;
        delete block;
      }
    }
  }

  const c10::DeviceIndex device_;
  std::mutex mutex_;  // protects all below
  std::set<Block *, BySize> small_, large_;
  std::vector<Block *> waiting_;
  DeviceStats stats_;
};

DeviceHeap &heap(c10::DeviceIndex device)
{
  coreInfo(device);
  static auto &all = *new std::vector<std::unique_ptr<DeviceHeap>>([] {
    std::vector<std::unique_ptr<DeviceHeap>> made;
    for (int i = 0; i < deviceCount(); i++)
      made.push_back(std::make_unique<DeviceHeap>(static_cast<c10::DeviceIndex>(i)));
    return made;
  }());
  return *all[device];
}

void freeBlock(void *context)
{
  auto *block = static_cast<Block *>(context);
  heap(block->device).free(block);
}

class NeuronAllocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t size) override
  {
    const auto device = currentDevice();
    const c10::Device where(kNeuron, device);
    if (size == 0)
      return {nullptr, nullptr, &freeBlock, where};
    Block *block = heap(device).allocate(size, currentStream(device).id());
    return {block->ptr, block, &freeBlock, where};
  }

  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }

  void copy_data(void *, const void *, size_t) const override
  {
    TORCH_CHECK_NOT_IMPLEMENTED(false, "neuron memory is not copied by address; use Tensor.copy_()");
  }

  bool initialized() override { return deviceCount() > 0; }

  void emptyCache(c10::MempoolId_t) override
  {
    for (c10::DeviceIndex i = 0; i < deviceCount(); i++)
      heap(i).emptyCache();
  }

  void recordStream(const c10::DataPtr &ptr, c10::Stream stream) override
  {
    if (auto *block = static_cast<Block *>(ptr.get_context()))
      heap(block->device).recordStream(block, stream.id());
  }

  DeviceStats getDeviceStats(c10::DeviceIndex device) override { return heap(device).stats(); }

  void resetAccumulatedStats(c10::DeviceIndex device) override
  {
    heap(device).eachStat([](auto &stat) { stat.reset_accumulated(); });
  }

  void resetPeakStats(c10::DeviceIndex device) override
  {
    heap(device).eachStat([](auto &stat) { stat.reset_peak(); });
  }

  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex device) override
  {
    struct nrtx_core_info info{};
    NEURON_CHECK(nrtx_core_info(device, &info));
    return {info.hbm_free, info.hbm_bytes};
  }
};

NeuronAllocator &instance()
{
  static auto &it = *new NeuronAllocator;
  return it;
}

// --- host memory

std::mutex pinnedMutex;
std::map<const char *, size_t> &pinnedRanges()
{
  static auto &ranges = *new std::map<const char *, size_t>;
  return ranges;
}

void freePinned(void *ptr)
{
  size_t size = 0;
  {
    std::lock_guard<std::mutex> lock(pinnedMutex);
    auto &ranges = pinnedRanges();
    const auto it = ranges.find(static_cast<const char *>(ptr));
    size = it->second;
    ranges.erase(it);
  }
  munmap(ptr, size);
}

class HostAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t size) override
  {
    if (size == 0)
      return {nullptr, nullptr, &freePinned, c10::DeviceType::CPU};
    void *ptr = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    TORCH_CHECK(ptr != MAP_FAILED, "neuron: cannot allocate ", size, " bytes of host memory");
    std::lock_guard<std::mutex> lock(pinnedMutex);
    pinnedRanges()[static_cast<const char *>(ptr)] = size;
    return {ptr, ptr, &freePinned, c10::DeviceType::CPU};
  }

  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }

  void copy_data(void *dest, const void *src, size_t count) const override { default_copy_data(dest, src, count); }
};

}  // namespace

Place placeOf(const void *ptr, const c10::DataPtr &storage)
{
  if (storage.get_deleter() != &freeBlock)
    return segmentOf(ptr);
  TORCH_CHECK(storage.get_context(), "neuron: this storage has no memory");
  const auto *block = static_cast<const Block *>(storage.get_context());
  const auto *at = static_cast<const char *>(ptr);
  TORCH_INTERNAL_ASSERT(at >= block->ptr && at <= block->ptr + block->size);
  return {block->segment->buffer, static_cast<uint64_t>(at - block->segment->base)};
}

c10::DeviceAllocator &allocator()
{
  return instance();
}

void registerAllocator()
{
  c10::SetAllocator(kNeuron, &instance());
}

c10::Allocator *hostAllocator()
{
  static auto &it = *new HostAllocator;
  return &it;
}

bool isPinned(const void *ptr)
{
  const auto *at = static_cast<const char *>(ptr);
  std::lock_guard<std::mutex> lock(pinnedMutex);
  const auto &ranges = pinnedRanges();
  auto it = ranges.upper_bound(at);
  if (it == ranges.begin())
    return false;
  --it;
  return at < it->first + it->second;
}

}  // namespace neuron
