// SPDX-License-Identifier: Apache-2.0
//
// Creation, views and copies.
#include "Ops.h"

#include <ATen/EmptyTensor.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/_copy_from_and_resize_ops.h>
#include <ATen/ops/_copy_from_ops.h>
#include <ATen/ops/_local_scalar_dense_ops.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/arange_ops.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/empty.h>
#include <ATen/ExpandUtils.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/record_stream_ops.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>

#include "../runtime/Allocator.h"
#include "../runtime/Hooks.h"
#include "../runtime/Stream.h"

namespace neuron {
namespace {

using at::Tensor;

// --- creation

c10::Device deviceOf(std::optional<c10::Device> device)
{
  const auto index = device && device->has_index() ? device->index() : currentDevice();
  coreInfo(index);
  return {kNeuron, index};
}

Tensor empty(c10::IntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
             std::optional<c10::Device> device, std::optional<bool> pin, std::optional<at::MemoryFormat> format)
{
  TORCH_CHECK(at::layout_or_default(layout) == at::kStrided, "neuron tensors are strided, not ", *layout);
  TORCH_CHECK(!c10::pinned_memory_or_default(pin), "only host memory can be pinned");
  const c10::OptionalDeviceGuard guard(deviceOf(device));
  return at::detail::empty_generic(size, &allocator(), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                   c10::dtype_or_default(dtype), format);
}

Tensor emptyStrided(c10::IntArrayRef size, c10::IntArrayRef stride, std::optional<at::ScalarType> dtype,
                    std::optional<at::Layout> layout, std::optional<c10::Device> device, std::optional<bool> pin)
{
  TORCH_CHECK(at::layout_or_default(layout) == at::kStrided, "neuron tensors are strided, not ", *layout);
  TORCH_CHECK(!c10::pinned_memory_or_default(pin), "only host memory can be pinned");
  const c10::OptionalDeviceGuard guard(deviceOf(device));
  return at::detail::empty_strided_generic(
      size, stride, &allocator(), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), c10::dtype_or_default(dtype));
}

const Tensor &resize(const Tensor &self, c10::IntArrayRef size, std::optional<at::MemoryFormat> format)
{
  auto *impl = self.unsafeGetTensorImpl();
  const int64_t items = c10::multiply_integers(size);
  const size_t bytes = static_cast<size_t>(items + self.storage_offset()) * self.itemsize();
  if (items && bytes > self.storage().nbytes())
    resizeStorage(self.storage(), bytes);
  impl->set_sizes_contiguous(size);
  if (format && *format != at::MemoryFormat::Preserve)
    impl->empty_tensor_restride(*format);
  return self;
}

Tensor &setStorage(Tensor &self, at::Storage source, int64_t offset, c10::IntArrayRef size, c10::IntArrayRef stride)
{
  auto *impl = self.unsafeGetTensorImpl();
  impl->set_storage_keep_dtype(std::move(source));
  impl->set_storage_offset(offset);
  if (stride.empty() && !size.empty())
    impl->set_sizes_contiguous(size);
  else
    impl->set_sizes_and_strides(size, stride);
  return self;
}

Tensor &setStorageOnly(Tensor &self, at::Storage source)
{
  const auto items = static_cast<int64_t>(source.nbytes() / self.itemsize());
  return setStorage(self, std::move(source), 0, {items}, {});
}

// --- copies

Tensor emptyLike(const Tensor &tensor, at::ScalarType type, c10::Device device)
{
  return at::empty_strided(tensor.sizes(), at::infer_dense_strides(tensor.sizes(), tensor.strides()),
                           tensor.options().dtype(type).device(device).pinned_memory(false));
}

void copyNatively(const Tensor &from, const Tensor &to)
{
  // The cores of one device share its HBM; a copy between two cores waits for the source's stream.
  if (from.device() != to.device()) {
    const auto point = nrtx_stream_record(currentNativeStream(from.device().index()));
    NEURON_CHECK(nrtx_stream_wait(currentNativeStream(to.device().index()), point));
    TORCH_CHECK(coreInfo(from.device().index()).device == coreInfo(to.device().index()).device,
                "copies between neuron devices are not there yet; copy through the CPU");
    allocator().recordStream(from.storage().data_ptr(), currentStream(to.device().index()));
  }
  auto type = from.scalar_type();
  auto toType = to.scalar_type();
  if (type == toType)
    type = toType = carrier(type);
  Op op("copy", to.device().index());
  op.inputAs(from, to.sizes(), type);
  op.outputAs(to, toType);
  op.run([&](Graph &graph) { graph.out(0, graph.in(0)); });
}

// False when values were copied and not bits, so that nothing is left to put right.
bool copyOnDevice(const Tensor &from, const Tensor &to)
{
  try {
    copyNatively(from, to);
    return true;
  } catch (const NotNative &) {
    fallbackCopy(from, to);
    return false;
  }
}

void bytesToDevice(const Tensor &to, const void *bytes, size_t count)
{
  const Place place = placeOf(to.const_data_ptr(), to.storage().data_ptr());
  NEURON_CHECK(nrtx_copy_to_device(currentNativeStream(to.device().index()), place.buffer, place.offset, bytes, count));
}

void bytesToHost(void *bytes, const Tensor &from, size_t count)
{
  const Place place = placeOf(from.const_data_ptr(), from.storage().data_ptr());
  auto *stream = currentNativeStream(from.device().index());
  checkStream(stream, nrtx_copy_to_host(stream, bytes, place.buffer, place.offset, count), "copy to the host");
}

void copyToDevice(const Tensor &from, const Tensor &to)
{
  // Host memory goes over as it lies; layout and dtype are the device's work.
  const Tensor source = from.is_non_overlapping_and_dense() ? from : from.contiguous();
  const bool direct = source.scalar_type() == to.scalar_type() && source.sizes() == to.sizes() &&
                      source.strides() == to.strides() && to.is_non_overlapping_and_dense();
  const Tensor target = direct ? to : emptyLike(source, source.scalar_type(), to.device());
  bytesToDevice(target, source.const_data_ptr(), source.nbytes());
  if (!direct)
    to.copy_(target);
}

void copyToHost(const Tensor &from, const Tensor &to)
{
  Tensor source = from;
  if (source.scalar_type() != to.scalar_type() || !source.is_non_overlapping_and_dense()) {
    const auto type =
        hasDtype(to.scalar_type()) && hasDtype(from.scalar_type()) ? to.scalar_type() : from.scalar_type();
    source = emptyLike(from, type, from.device());
    source.copy_(from);
  }
  const bool direct =
      source.scalar_type() == to.scalar_type() && source.sizes() == to.sizes() && source.strides() == to.strides();
  const Tensor target = direct ? to : emptyLike(source, source.scalar_type(), at::kCPU);
  bytesToHost(target.mutable_data_ptr(), source, source.nbytes());
  if (!direct)
    to.copy_(target);
}

// Bits as they are stored: lazily conjugated or negated tensors are put right afterwards.
Tensor copyFrom(const Tensor &self, const Tensor &dst, bool)
{
  if (dst.numel() == 0)
    return dst;
  const Tensor from = self.sizes() == dst.sizes() ? self : self.expand(dst.sizes());
  if (from.device().is_cpu())
    copyToDevice(from.resolve_conj().resolve_neg(), dst);
  else if (dst.device().is_cpu())
    copyToHost(from, dst);
  else if (!copyOnDevice(from, dst))
    return dst;
  const bool fromHost = from.device().is_cpu();
  if ((!fromHost && from.is_conj()) != dst.is_conj())
    dst.conj_physical_();
  if ((!fromHost && from.is_neg()) != dst.is_neg())
    dst.neg_();
  return dst;
}

Tensor copyFromAndResize(const Tensor &self, const Tensor &dst)
{
  at::native::resize_output(dst, self.sizes());
  return copyFrom(self, dst, false);
}

at::Scalar localScalarDense(const Tensor &self)
{
  Tensor host = at::empty({}, self.options().device(at::kCPU));
  bytesToHost(host.mutable_data_ptr(), self, self.itemsize());
  return host.item();
}

void recordStream(Tensor &self, at::Stream stream)
{
  allocator().recordStream(self.storage().data_ptr(), stream);
}

// --- ranges

Tensor &arange(const at::Scalar &start, const at::Scalar &end, const at::Scalar &step, Tensor &out)
{
  const auto type = out.scalar_type();
  const bool whole = start.isIntegral(false) && end.isIntegral(false) && step.isIntegral(false);
  const double items =
      whole ? std::ceil(static_cast<double>(end.toLong() - start.toLong()) / static_cast<double>(step.toLong()))
            : std::ceil((end.toDouble() - start.toDouble()) / step.toDouble());
  TORCH_CHECK(step.toDouble() != 0, "step must be nonzero");
  TORCH_CHECK(items >= 0, "upper bound and lower bound inconsistent with step sign");
  const auto count = static_cast<int64_t>(items);
  if (out.numel() != count)
    out.resize_({count});
  if (count == 0)
    return out;
  // The index is exact in fp32 below 2^24 only; above, and for 64-bit types, GPSIMD counts.
  const auto compute = type == at::kLong || type == at::kDouble ? type
                       : count < (1 << 24)                      ? computeType(type)
                                                                : at::kDouble;
  Op op("arange", out.device().index());
  op.attribute(static_cast<int64_t>(compute));
  op.scalar(start, compute);
  op.scalar(step, compute);
  op.output(out);
  op.run([&](Graph &graph) {
    const int64_t dims[] = {count};
    const V index =
        cast(iota(graph.raw(), at::isFloatingType(compute) ? NC_INT32 : ncDtype(compute), dims, 0), ncDtype(compute));
    const V shape = graph.in(0) + index * graph.in(1);
    graph.out(0, out.dim() == 1 ? shape : reshape(shape, out.sizes()));
  });
  return out;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
  m.impl("empty.memory_format", TORCH_FN(empty));
  m.impl("empty_strided", TORCH_FN(emptyStrided));
  m.impl("resize_", TORCH_FN(resize));
  m.impl("set_.source_Storage_storage_offset", TORCH_FN(setStorage));
  m.impl("set_.source_Storage", TORCH_FN(setStorageOnly));
  m.impl("set_.source_Tensor", TORCH_FN(at::native::set_tensor_));
  m.impl("set_", TORCH_FN(at::native::set_cpu_));
  m.impl("view", TORCH_FN(at::native::view));
  m.impl("as_strided", TORCH_FN(at::native::as_strided_tensorimpl));
  m.impl("_reshape_alias", TORCH_FN(at::native::_reshape_alias));
  m.impl("unfold", TORCH_FN(at::native::unfold));
  m.impl("_copy_from", TORCH_FN(copyFrom));
  m.impl("_copy_from_and_resize", TORCH_FN(copyFromAndResize));
  m.impl("_local_scalar_dense", TORCH_FN(localScalarDense));
  m.impl("record_stream", TORCH_FN(recordStream));
  NEURON_IMPL("arange.start_out", arange_start_out, arange);
}

// copyFrom() sees to the bits that these keys stand for.
TORCH_LIBRARY_IMPL(aten, Conjugate, m)
{
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
}

TORCH_LIBRARY_IMPL(aten, Negative, m)
{
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
}

}  // namespace

void resizeStorage(const c10::Storage &storage, size_t bytes)
{
  const c10::DeviceGuard guard(storage.device());
  auto *impl = storage.unsafeGetStorageImpl();
  c10::DataPtr fresh = allocator().allocate(bytes);
  const size_t keep = std::min(bytes, impl->nbytes());
  if (keep) {
    auto *stream = currentNativeStream(storage.device().index());
    const Place from = placeOf(impl->data(), impl->data_ptr());
    const Place to = placeOf(fresh.get(), fresh);
    NEURON_CHECK(nrtx_copy_device(stream, to.buffer, to.offset, from.buffer, from.offset, keep));
  }
  impl->set_data_ptr_noswap(std::move(fresh));
  impl->set_nbytes(bytes);
}

}  // namespace neuron
