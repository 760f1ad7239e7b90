// SPDX-License-Identifier: Apache-2.0
#include "Op.h"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <mutex>
#include <unordered_map>

#include <ATen/ExpandUtils.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/_local_scalar_dense.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#include <c10/util/hash.h>

#include "../runtime/Allocator.h"
#include "../runtime/Stream.h"
#include "DiskCache.h"
#include "HostTimes.h"

namespace neuron {
namespace {

using Key = c10::SmallVector<int64_t, 48>;

struct KeyHash {
  size_t operator()(const Key &key) const
  {
    uint64_t hash = 0xcbf29ce484222325u;
    for (const int64_t word : key) {
      hash = (hash ^ static_cast<uint64_t>(word)) * 0x9e3779b97f4a7c15u;
      hash ^= hash >> 29;
    }
    return hash;
  }
};

struct Entry {
  nrtx_program_t *program = nullptr;  // nullptr: the device cannot, and why
  std::string why;
};

struct Cache {
  std::mutex mutex;
  std::unordered_map<Key, Entry, KeyHash> entries;
  uint64_t hits = 0, compiled = 0;
  std::atomic<uint64_t> compileNs = 0, launchNs = 0;
  std::atomic<bool> timed = false;
};

uint64_t nowNs()
{
  return static_cast<uint64_t>(std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
}

// Never destroyed: launches may come as late as a destructor.
Cache &cache()
{
  static auto &it = *new Cache;
  return it;
}

uint64_t bitsOf(const at::Scalar &value, at::ScalarType type)
{
  uint64_t bits = 0;
  switch (type) {
  case at::kFloat: {
    const auto v = value.to<float>();
    std::memcpy(&bits, &v, sizeof(v));
    break;
  }
  case at::kDouble: {
    const auto v = value.to<double>();
    std::memcpy(&bits, &v, sizeof(v));
    break;
  }
  case at::kBool:
    bits = value.to<bool>();
    break;
  default: {
    // PyTorch checks ranges where it has to; the rest wraps.
    const auto v = value.isFloatingPoint() ? static_cast<int64_t>(value.to<double>()) : value.to<int64_t>();
    bits = static_cast<uint64_t>(v);
    break;
  }
  }
  return bits;
}

// First and one past the last byte that the tensor reaches.
std::pair<const char *, const char *> extent(const at::Tensor &tensor)
{
  const auto *begin = static_cast<const char *>(tensor.const_data_ptr());
  int64_t last = 0;
  for (int64_t d = 0; d < tensor.dim(); d++)
    last += (tensor.size(d) - 1) * tensor.stride(d);
  return {begin, begin + (last + 1) * static_cast<int64_t>(tensor.itemsize())};
}

// Strides of dims of size 1 mean nothing; one value for all keeps the cache small.
c10::SmallVector<int64_t, 5> plainStrides(const at::Tensor &tensor)
{
  c10::SmallVector<int64_t, 5> strides(tensor.strides().begin(), tensor.strides().end());
  for (int64_t d = 0; d < tensor.dim(); d++)
    if (tensor.size(d) == 1)
      strides[d] = 0;
  return strides;
}

// Calls into the runtime that need HBM, for a program or its scratch; our cache may hold what is free.
template <class F>
NRT_STATUS tryWithMemory(F call)
{
  const NRT_STATUS status = call();
  if (status != NRT_RESOURCE)
    return status;
  allocator().emptyCache();
  return call();
}

template <class F>
void withMemory(const char *what, F call)
{
  checkStatus(tryWithMemory(call), what);
}

// How many words at the start of a key have a meaning in this process only.
constexpr size_t kProcessWords = 2;

// All that a program depends on, for every process: what makes it, for what, of what.
std::string diskKey(const char *name, c10::ArrayRef<int64_t> key, const struct nrtx_core_info &info)
{
  const auto words = key.slice(kProcessWords);
  const int64_t head[] = {info.arch, info.sbuf_bytes, info.psum_bytes, static_cast<int64_t>(std::strlen(name))};
  std::string bytes = buildId();
  bytes.append(reinterpret_cast<const char *>(head), sizeof(head));
  bytes.append(name);
  bytes.append(reinterpret_cast<const char *>(words.data()), words.size() * sizeof(int64_t));
  return bytes;
}

// nullptr: there is none, or the device does not take it; it is made anew then.
nrtx_program_t *loadKept(c10::DeviceIndex device, std::string_view key)
{
  const auto image = loadImage(key);
  if (!image)
    return nullptr;
  nrtx_program_t *program = nullptr;
  if (tryWithMemory([&] { return nrtx_program_load(device, image->data(), image->size(), &program); }) == NRT_SUCCESS)
    return program;
  refuseImage();
  return nullptr;
}

struct nc_type makeType(at::ScalarType type, at::IntArrayRef sizes)
{
  struct nc_type made{};
  made.dtype = ncDtype(type);
  made.ndim = static_cast<uint32_t>(sizes.size());
  std::copy(sizes.begin(), sizes.end(), made.dims);
  return made;
}

}  // namespace

V iota(nc_graph *graph, nc_dtype dtype, c10::ArrayRef<int64_t> dims, uint32_t dim)
{
  struct nc_type type{};
  type.dtype = dtype;
  type.ndim = static_cast<uint32_t>(dims.size());
  std::copy(dims.begin(), dims.end(), type.dims);
  return {graph, nc_iota(graph, &type, dim)};
}

nc_dtype ncDtype(c10::ScalarType type)
{
  switch (type) {
  case at::kFloat:
    return NC_FP32;
  case at::kBFloat16:
    return NC_BF16;
  case at::kHalf:
    return NC_FP16;
  case at::kDouble:
    return NC_FP64;
  case at::kLong:
    return NC_INT64;
  case at::kInt:
    return NC_INT32;
  case at::kShort:
    return NC_INT16;
  case at::kChar:
    return NC_INT8;
  case at::kByte:
    return NC_UINT8;
  case at::kBool:
    return NC_BOOL;
  default:
    throw NotNative(std::string("dtype ") + c10::toString(type));
  }
}

bool hasDtype(c10::ScalarType type)
{
  try {
    ncDtype(type);
    return true;
  } catch (const NotNative &) {
    return false;
  }
}

c10::ScalarType carrier(c10::ScalarType type)
{
  if (hasDtype(type))
    return type;
  switch (c10::elementSize(type)) {
  case 1:
    return at::kByte;
  case 2:
    return at::kShort;
  case 4:
    return at::kInt;
  case 8:
    return at::kLong;
  default:
    throw NotNative(std::string("dtype ") + c10::toString(type));
  }
}

c10::ScalarType computeType(c10::ScalarType type)
{
  switch (type) {
  case at::kBFloat16:
  case at::kHalf:
    return at::kFloat;
  case at::kShort:
  case at::kChar:
  case at::kByte:
    return at::kInt;
  default:
    return type;
  }
}

Op::Op(const char *name, c10::DeviceIndex device) : name_(name), device_(device)
{
  // Only this process knows them; diskKey() has the name itself, and any device of the kind.
  key_.push_back(reinterpret_cast<int64_t>(name));
  key_.push_back(device);
  static_assert(kProcessWords == 2);
}

void Op::addType(at::ScalarType type, at::IntArrayRef sizes, at::IntArrayRef strides)
{
  if (sizes.size() > NC_DIMS_MAX)
    throw NotNative("more than 8 dimensions");
  key_.push_back(static_cast<int64_t>(type) << 8 | static_cast<int64_t>(sizes.size()));
  key_.append(sizes.begin(), sizes.end());
  key_.append(strides.begin(), strides.end());
}

int Op::input(const at::Tensor &tensor, at::IntArrayRef sizes)
{
  if (tensor.device().is_cpu() && tensor.dim() == 0)
    return scalar(at::_local_scalar_dense(tensor), computeType(tensor.scalar_type()));
  TORCH_CHECK(tensor.device() == c10::Device(kNeuron, device_), name_,
              ": expected all tensors on neuron:", static_cast<int>(device_), ", but one is on ", tensor.device());
  return inputAs(tensor, sizes, tensor.scalar_type());
}

int Op::inputAs(const at::Tensor &tensor, at::IntArrayRef sizes, at::ScalarType type)
{
  Operand operand{tensor, {}, {}, type};
  operand.sizes.append(sizes.begin(), sizes.end());
  const auto lead = static_cast<int64_t>(sizes.size()) - tensor.dim();
  for (int64_t d = 0; d < static_cast<int64_t>(sizes.size()); d++) {
    const bool own = d >= lead && tensor.size(d - lead) == sizes[d];
    operand.strides.push_back(own && sizes[d] != 1 ? tensor.stride(d - lead) : 0);
  }
  addType(operand.type, operand.sizes, operand.strides);
  operands_.push_back(std::move(operand));
  return static_cast<int>(operands_.size()) - 1;
}

int Op::scalar(const at::Scalar &value, at::ScalarType type)
{
  if (value.isComplex())
    throw NotNative("complex scalar");
  key_.push_back(-1 - static_cast<int64_t>(type));
  operands_.push_back(Operand{at::Tensor(), {}, {}, type, bitsOf(value, type)});
  return static_cast<int>(operands_.size()) - 1;
}

int Op::outputAs(const at::Tensor &tensor, at::ScalarType type)
{
  results_.push_back(Result{tensor, at::Tensor(), type, NC_NO_ALIAS});
  return static_cast<int>(results_.size()) - 1;
}

void Op::resolveAliases()
{
  for (auto &result : results_) {
    const auto [begin, end] = extent(result.tensor);
    bool clash = false;
    for (size_t i = 0; i < operands_.size(); i++) {
      const auto &operand = operands_[i];
      if (!operand.tensor.defined() ||
          operand.tensor.storage().unsafeGetStorageImpl() != result.tensor.storage().unsafeGetStorageImpl())
        continue;
      const auto [from, to] = extent(operand.tensor);
      if (to <= begin || end <= from)
        continue;
      const bool exact = from == begin && operand.type == result.type &&
                         result.tensor.sizes() == at::IntArrayRef(operand.sizes) &&
                         operand.tensor.strides() == result.tensor.strides() &&
                         result.tensor.is_non_overlapping_and_dense() && result.alias == NC_NO_ALIAS;
      if (exact)
        result.alias = static_cast<uint32_t>(i);
      else
        clash = true;
    }
    if (clash) {
      result.wanted = result.tensor;
      result.tensor = at::empty_strided(result.wanted.sizes(),
                                        at::infer_dense_strides(result.wanted.sizes(), result.wanted.strides()),
                                        result.wanted.options());
      result.alias = NC_NO_ALIAS;
    }
    key_.push_back(result.alias);
    addType(result.type, result.tensor.sizes(), plainStrides(result.tensor));
  }
}

void Op::run(c10::function_ref<void(Graph &)> build)
{
  resolveAliases();
  auto &all = cache();
  nrtx_program_t *program = nullptr;
  {
    std::lock_guard<std::mutex> lock(all.mutex);
    const auto found = all.entries.find(key_);
    if (found != all.entries.end()) {
      all.hits++;
      if (!found->second.program)
        throw NotNative(found->second.why);
      program = found->second.program;
    }
  }
  if (!program) {
    Entry entry;
    const uint64_t from = nowNs();
    try {
      entry.program = compile(build);
    } catch (const NotNative &error) {
      entry.why = error.text;
    }
    all.compileNs += nowNs() - from;
    std::lock_guard<std::mutex> lock(all.mutex);
    all.compiled++;
    const auto [it, fresh] = all.entries.emplace(key_, entry);
    if (!fresh)
      nrtx_program_unload(entry.program);
    if (!it->second.program)
      throw NotNative(it->second.why);
    program = it->second.program;
  }
  if (all.timed.load(std::memory_order_relaxed)) {
    const uint64_t from = nowNs();
    launch(program);
    all.launchNs += nowNs() - from;
  } else {
    launch(program);
  }
  for (const auto &result : results_)
    if (result.wanted.defined())
      result.wanted.copy_(result.tensor);
}

nrtx_program_t *Op::compile(c10::function_ref<void(Graph &)> build) const
{
  const auto &info = coreInfo(device_);
  const std::string kept = hasDiskCache() ? diskKey(name_, key_, info) : std::string();
  if (auto *program = loadKept(device_, kept))
    return program;
  const nc_target target{info.arch, info.sbuf_bytes, info.psum_bytes};
  std::unique_ptr<nc_graph, void (*)(nc_graph *)> graph(nc_graph_create(name_), nc_graph_destroy);
  TORCH_CHECK(graph, "neuron: out of host memory");
  Graph builder(*this, graph.get());
  build(builder);
  // A value that could not be made is 0; nc_compile() then says why.
  for (size_t i = 0; i < results_.size(); i++) {
    nc_output(graph.get(), builder.results_[i], plainStrides(results_[i].tensor).data(), results_[i].alias);
  }
  nc_program image{};
  char error[NC_ERROR_BYTES] = "";
  const int status = nc_compile(graph.get(), &target, &image, error);
  if (status == -EOPNOTSUPP || status == -E2BIG)
    throw NotNative(error);
  TORCH_CHECK(status == 0, "neuron: cannot compile ", name_, ": ", error);
  std::unique_ptr<nc_program, void (*)(nc_program *)> owner(&image, nc_program_free);
  nrtx_program_t *program = nullptr;
  withMemory("nrtx_program_load", [&] { return nrtx_program_load(device_, image.image, image.bytes, &program); });
  saveImage(kept, {static_cast<const char *>(image.image), image.bytes});
  return program;
}

void Op::launch(nrtx_program_t *program) const
{
  c10::SmallVector<nrtx_arg, 8> args;
  const auto add = [&args](const at::Tensor &tensor) {
    const auto [begin, end] = extent(tensor);
    const Place place = placeOf(begin, tensor.storage().data_ptr());
    args.push_back({place.buffer, place.offset, static_cast<uint64_t>(end - begin)});
  };
  for (const auto &operand : operands_) {
    if (operand.tensor.defined())
      add(operand.tensor);
    else
      args.push_back({nullptr, operand.bits, 8});
  }
  for (const auto &result : results_)
    add(result.tensor);
  withMemory("nrtx_launch", [&] {
    return nrtx_launch(currentNativeStream(device_), program, args.data(), static_cast<uint32_t>(args.size()));
  });
}

Graph::Graph(const Op &op, nc_graph *graph) : op_(op), graph_(graph)
{
  for (const auto &operand : op.operands_) {
    if (operand.tensor.defined()) {
      const auto type = makeType(operand.type, operand.sizes);
      values_.push_back(nc_input(graph, &type, operand.strides.data()));
    } else {
      values_.push_back(nc_scalar(graph, ncDtype(operand.type)));
    }
  }
  results_.resize(op.results_.size(), 0);
}

void Graph::out(int result, V value)
{
  const auto &tensor = op_.results_[result].tensor;
  value = cast(value, ncDtype(op_.results_[result].type));
  const auto type = value.type();
  if (tensor.sizes() != at::IntArrayRef(type.dims, type.ndim))
    value = broadcast(value, tensor.sizes());
  results_[result] = value.id;
}

void elementwise(const char *name, const at::Tensor &result, at::ArrayRef<at::Tensor> operands,
                 at::ArrayRef<at::Scalar> scalars, at::ScalarType compute,
                 c10::function_ref<V(c10::ArrayRef<V>)> formula)
{
  if (result.numel() == 0)
    return;
  Op op(name, result.device().index());
  op.attribute(static_cast<int64_t>(compute));
  for (const auto &operand : operands) {
    if (operand.device().is_cpu() && operand.dim() == 0)
      op.scalar(at::_local_scalar_dense(operand), compute);
    else
      op.input(operand, result.sizes());
  }
  for (const auto &value : scalars)
    op.scalar(value, compute);
  op.output(result);
  const size_t count = operands.size() + scalars.size();
  op.run([&](Graph &graph) {
    c10::SmallVector<V, 6> values;
    for (size_t i = 0; i < count; i++)
      values.push_back(graph.in(static_cast<int>(i), compute));
    graph.out(0, formula(values));
  });
}

CacheStats cacheStats()
{
  auto &all = cache();
  std::lock_guard<std::mutex> lock(all.mutex);
  return {all.entries.size(), all.hits, all.compiled};
}

HostTimes hostTimes()
{
  return {cache().compileNs, cache().launchNs};
}

void timeLaunches(bool on)
{
  cache().timed = on;
}

}  // namespace neuron
