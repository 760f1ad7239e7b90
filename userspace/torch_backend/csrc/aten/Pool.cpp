// SPDX-License-Identifier: Apache-2.0
//
// Max pooling in two dims, made of elementwise programs over strided views: the windows of one tap (a
// place in the window) are one view of the padded image, so forward is a maximum of as many views as
// there are taps. Backward gathers, so that no element is written twice: the places of the image with
// the same remainder by the stride are met by the same taps.
#include "Ops.h"

#include <limits>

#include <ATen/native/Pool.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/max_pool2d_with_indices_backward_ops.h>
#include <ATen/ops/max_pool2d_with_indices_ops.h>
#include <ATen/ops/zeros.h>

namespace neuron {
namespace {

using at::Tensor;

// More taps than this would make a program of too many slots.
constexpr int64_t kTapsMax = 64;

// One dim of the image and its windows.
struct Side {
  int64_t size, kernel, stride, padding, dilation, windows;

  // Size of the padded image: what the last window may need beyond the padding.
  int64_t padded() const { return std::max(size + 2 * padding, (windows - 1) * stride + dilation * (kernel - 1) + 1); }
};

struct Pool {
  Side rows, columns;
  int64_t images, channels;  // [N, C, H, W], or N = 1

  Pool(const Tensor &self, at::IntArrayRef kernel, at::IntArrayRef stride, at::IntArrayRef padding,
       at::IntArrayRef dilation, bool ceil)
  {
    if (self.dim() < 3 || self.numel() == 0 || !at::isFloatingType(self.scalar_type()) ||
        self.scalar_type() == at::kDouble)
      throw NotNative("max pooling of this shape or dtype");
    rows = side(self.size(-2), 0, kernel, stride, padding, dilation, ceil);
    columns = side(self.size(-1), 1, kernel, stride, padding, dilation, ceil);
    images = self.dim() == 4 ? self.size(0) : 1;
    channels = self.size(-3);
    if (rows.kernel * columns.kernel > kTapsMax || rows.size * columns.size >= 1 << 24)
      throw NotNative("max pooling with more than 64 taps or 2^24 places");
  }

  static Side side(int64_t size, size_t which, at::IntArrayRef kernel, at::IntArrayRef stride, at::IntArrayRef padding,
                   at::IntArrayRef dilation, bool ceil)
  {
    const auto of = [which](at::IntArrayRef list) { return list.size() == 1 ? list[0] : list[which]; };
    Side s{size, of(kernel), stride.empty() ? of(kernel) : of(stride), of(padding), of(dilation), 0};
    s.windows = at::native::pooling_output_shape<int64_t>(size, s.kernel, s.padding, s.stride, s.dilation, ceil);
    return s;
  }

  at::DimVector shape(int64_t height, int64_t width) const { return {images, channels, height, width}; }
};

// The index that PyTorch gives a place, row * width + column, in fp32, where it is exact: steps along
// the last two dims of shape.
V place(Graph &graph, at::IntArrayRef shape, const Side &rows, const Side &columns, double row, double column)
{
  const V i = iota(graph.raw(), NC_FP32, shape, 2), j = iota(graph.raw(), NC_FP32, shape, 3);
  const auto width = static_cast<double>(columns.size);
  return i * (static_cast<double>(rows.stride) * width) + j * static_cast<double>(columns.stride) +
         (row * width + column);
}

std::tuple<Tensor &, Tensor &> maxPool(const Tensor &self, at::IntArrayRef kernel, at::IntArrayRef stride,
                                       at::IntArrayRef padding, at::IntArrayRef dilation, bool ceil, Tensor &out,
                                       Tensor &indices)
{
  const Pool pool(self, kernel, stride, padding, dilation, ceil);
  const auto &[rows, columns] = std::tie(pool.rows, pool.columns);
  Tensor image = self.contiguous().view(pool.shape(rows.size, columns.size));
  if (rows.padded() != rows.size || columns.padded() != columns.size) {
    Tensor wide =
        at::full(pool.shape(rows.padded(), columns.padded()), -std::numeric_limits<double>::infinity(), self.options());
    wide.narrow(2, rows.padding, rows.size).narrow(3, columns.padding, columns.size).copy_(image);
    image = wide;
  }
  const auto shape = pool.shape(rows.windows, columns.windows);
  Op op("max_pool2d", self.device().index());
  for (const Side &side : {rows, columns})
    op.attributes({side.size, side.kernel, side.stride, side.padding, side.dilation});
  for (int64_t a = 0; a < rows.kernel; a++)
    for (int64_t b = 0; b < columns.kernel; b++)
      op.input(image.slice(2, a * rows.dilation, a * rows.dilation + (rows.windows - 1) * rows.stride + 1, rows.stride)
                   .slice(3, b * columns.dilation, b * columns.dilation + (columns.windows - 1) * columns.stride + 1,
                          columns.stride));
  op.output(out.dim() == 4 ? out : out.unsqueeze(0));
  op.output(indices.dim() == 4 ? indices : indices.unsqueeze(0));
  op.run([&](Graph &graph) {
    const auto taps = static_cast<int>(rows.kernel * columns.kernel);
    V best = graph.in(0, at::kFloat);
    for (int tap = 1; tap < taps; tap++)
      best = binary(NC_MAX, best, graph.in(tap, at::kFloat));
    // Of several the first; of NaNs, too, where the CPU takes the last.
    V offset;
    for (int tap = taps - 1; tap >= 0; tap--) {
      const V x = graph.in(tap, at::kFloat);
      const V step = x.constant(static_cast<double>(tap / columns.kernel * rows.dilation * columns.size +
                                                    tap % columns.kernel * columns.dilation));
      const V hit = isExtreme(x, best);
      offset = tap == taps - 1 ? broadcast(step, shape) : select(hit, step, offset);
    }
    graph.out(0, best);
    graph.out(1, place(graph, shape, rows, columns, -static_cast<double>(rows.padding),
                       -static_cast<double>(columns.padding)) +
                     offset);
  });
  return {out, indices};
}

// What places of one remainder have in common: a place is windows[first + i] of the tap `remainder`,
// window first + i - 1 of the tap `remainder + stride` and so on.
struct Class {
  int64_t remainder, start, first, count, taps;

  Class(const Side &side, int64_t remainder) : remainder(remainder)
  {
    first = (side.padding - remainder + side.stride - 1) / side.stride;  // padding < kernel, so >= 0 or harmless
    first = std::max<int64_t>(first, 0);
    start = first * side.stride + remainder - side.padding;
    count = start < side.size ? (side.size - 1 - start) / side.stride + 1 : 0;
    taps = remainder < side.kernel ? (side.kernel - 1 - remainder) / side.stride + 1 : 0;
  }
};

// Windows that must be added before and behind, for views that begin or end outside.
int64_t before(const Side &side)
{
  return (side.kernel - 1) / side.stride;
}

int64_t behind(const Side &side)
{
  return std::max<int64_t>(0, (side.size - 1 + side.padding) / side.stride + 1 - side.windows);
}

Tensor widened(const Tensor &windows, const Pool &pool, at::ScalarType type, double value)
{
  const int64_t top = before(pool.rows), left = before(pool.columns);
  Tensor wide = at::full(
      pool.shape(top + pool.rows.windows + behind(pool.rows), left + pool.columns.windows + behind(pool.columns)),
      value, windows.options().dtype(type));
  wide.narrow(2, top, pool.rows.windows)
      .narrow(3, left, pool.columns.windows)
      .copy_(windows.reshape(pool.shape(pool.rows.windows, pool.columns.windows)));
  return wide;
}

void classGradient(const Pool &pool, const Class &row, const Class &column, const Tensor &dy, const Tensor &index,
                   const Tensor &dx)
{
  const auto shape = pool.shape(row.count, column.count);
  Op op("max_pool2d_backward", dx.device().index());
  for (const Side &side : {pool.rows, pool.columns})
    op.attributes({side.size, side.kernel, side.stride, side.padding});
  op.attribute(row.remainder).attribute(column.remainder);
  for (int64_t a = 0; a < row.taps; a++)
    for (int64_t b = 0; b < column.taps; b++)
      for (const Tensor &from : {dy, index})
        op.input(from.narrow(2, before(pool.rows) + row.first - a, row.count)
                     .narrow(3, before(pool.columns) + column.first - b, column.count));
  op.output(
      dx.slice(2, row.start, std::nullopt, pool.rows.stride).slice(3, column.start, std::nullopt, pool.columns.stride));
  op.run([&](Graph &graph) {
    const V here =
        place(graph, shape, pool.rows, pool.columns, static_cast<double>(row.start), static_cast<double>(column.start));
    V sum;
    for (int tap = 0; tap < static_cast<int>(row.taps * column.taps); tap++) {
      const V hit = binary(NC_EQ, graph.in(2 * tap + 1), here);
      const V part = select(hit, graph.in(2 * tap, at::kFloat), here.constant(0));
      sum = tap ? sum + part : part;
    }
    graph.out(0, sum);
  });
}

Tensor &maxPoolBackward(const Tensor &grad, const Tensor &self, at::IntArrayRef kernel, at::IntArrayRef stride,
                        at::IntArrayRef padding, at::IntArrayRef dilation, bool ceil, const Tensor &indices,
                        Tensor &out)
{
  const Pool pool(self, kernel, stride, padding, dilation, ceil);
  if (pool.rows.dilation != 1 || pool.columns.dilation != 1)
    throw NotNative("gradient of max pooling with dilation");
  const Tensor dx = out.dim() == 4 ? out : out.unsqueeze(0);
  if (pool.rows.stride > pool.rows.kernel || pool.columns.stride > pool.columns.kernel)
    dx.zero_();
  const Tensor dy = widened(grad, pool, grad.scalar_type(), 0);
  const Tensor index = widened(indices, pool, at::kFloat, -1);
  for (int64_t i = 0; i < pool.rows.stride; i++)
    for (int64_t j = 0; j < pool.columns.stride; j++) {
      const Class row(pool.rows, i), column(pool.columns, j);
      if (row.count && column.count && row.taps && column.taps)
        classGradient(pool, row, column, dy, index, dx);
    }
  return out;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
  NEURON_IMPL("max_pool2d_with_indices.out", max_pool2d_with_indices_out, maxPool);
  NEURON_IMPL("max_pool2d_with_indices_backward.grad_input", max_pool2d_with_indices_backward_grad_input,
              maxPoolBackward);
}

}  // namespace
}  // namespace neuron
