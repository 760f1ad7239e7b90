// SPDX-License-Identifier: Apache-2.0
#include "Rows.h"

#include <limits>

namespace neuron {
namespace {

using at::Tensor;

// Sums of int64 are made in four parts of 16 bits, each in an int32 that so many rows can't overflow.
constexpr int64_t kInt64Rows = (1 << 15) - 2;

// [before, indexed, behind]
at::DimVector threeDims(at::IntArrayRef sizes, int64_t from, int64_t to)
{
  return {c10::multiply_integers(sizes.slice(0, from)), c10::multiply_integers(sizes.slice(from, to - from)),
          c10::multiply_integers(sizes.slice(to))};
}

V column(V x)
{
  const auto type = x.type();
  return type.ndim == 1 ? x : reshape(x, {c10::multiply_integers(at::IntArrayRef(type.dims, type.ndim))});
}

// One index for each row out of those of all dims; operands from first on.
V rowIndex(Graph &graph, int first, const Indexed &how, at::IntArrayRef sizes)
{
  if (how.indices.size() == 1) {
    const V index = column(graph.in(first));
    return how.wrap ? wrapped(index, sizes[how.from]) : index;
  }
  V sum{};
  for (size_t i = 0; i < how.indices.size(); i++) {
    const int64_t n = sizes[how.from + static_cast<int64_t>(i)];
    V index = narrow(column(graph.in(first + static_cast<int>(i))));
    index = how.wrap ? wrapped(index, n) : index;
    index = index + zeroIfWithin(index, n);
    sum = i ? sum * static_cast<double>(n) + index : index;
  }
  return sum;
}

void addOperands(Op &op, const Indexed &how)
{
  op.attributes({how.from, how.to, how.wrap});
  for (const auto &index : how.indices)
    op.input(atLeastOneDim(index));
}

V limb(V x, int i)
{
  const V shifted = i ? binary(NC_SHR, x, x.constant(16 * i)) : x;
  return cast(binary(NC_AND, shifted, x.constant(0xffff)), NC_INT32);
}

}  // namespace

V narrow(V index)
{
  if (index.type().dtype != NC_INT64)
    return cast(index, NC_INT32);
  const V least = index.constant(std::numeric_limits<int32_t>::min());
  const V most = index.constant(std::numeric_limits<int32_t>::max());
  return cast(binary(NC_MIN, binary(NC_MAX, index, least), most), NC_INT32);
}

V wrapped(V index, int64_t n)
{
  const V i = narrow(index), size = i.constant(static_cast<double>(n));
  const V fromEnd =
      binary(NC_AND, binary(NC_LT, i, i.constant(0)), binary(NC_GE, i, i.constant(-static_cast<double>(n))));
  return select(fromEnd, i + size, i);
}

V zeroIfWithin(V index, int64_t n)
{
  V zero{};
  // The least and the largest of them, each as one of n rows that are all itself.
  for (const auto op : {NC_REDUCE_MIN, NC_REDUCE_MAX}) {
    const V extreme = reduce(op, index, 1, true);
    const V difference = take(broadcast(extreme, {n}), 0, extreme) - extreme;
    zero = zero.id ? zero + difference : difference;
  }
  return zero;
}

bool canAdd(at::ScalarType type, int64_t count)
{
  return type != at::kDouble && hasDtype(type) && (type != at::kLong || count <= kInt64Rows);
}

bool addsInPlace(at::ScalarType type)
{
  return type == at::kFloat || type == at::kInt;
}

V put(Put how, V x, uint32_t dim, V index, V rows)
{
  const auto dtype = x.type().dtype;
  if (how == Put::Copy)
    return put(NC_PUT_COPY, x, dim, index, rows);
  if (dtype != NC_INT64) {
    const auto wide = x.isFloat() ? NC_FP32 : NC_INT32;
    return cast(put(NC_PUT_ADD, cast(x, wide), dim, index, cast(rows, wide)), dtype);
  }
  V sum{};
  for (int i = 0; i < 4; i++) {
    const V part = cast(put(NC_PUT_ADD, limb(x, i), dim, index, limb(rows, i)), NC_INT64);
    sum = i ? sum + binary(NC_SHL, part, part.constant(16 * i)) : part;
  }
  return sum;
}

at::DimVector rowSizes(const Indexed &how, const Tensor &self)
{
  at::DimVector sizes(self.sizes().slice(0, how.from));
  sizes.append(how.indices[0].sizes().begin(), how.indices[0].sizes().end());
  sizes.append(self.sizes().begin() + how.to, self.sizes().end());
  return sizes;
}

void takeRows(const Indexed &how, const Tensor &self, const Tensor &out)
{
  const auto bits = carrier(self.scalar_type());
  Op op(how.name, self.device().index());
  op.inputAs(self, self.sizes(), bits);
  addOperands(op, how);
  op.outputAs(out, bits);
  op.run([&](Graph &graph) {
    const V x = reshape(graph.in(0), threeDims(self.sizes(), how.from, how.to));
    graph.out(0, reshape(take(x, 1, rowIndex(graph, 1, how, self.sizes())), out.sizes()));
  });
}

void putRows(const Indexed &how, Put what, const Tensor &self, const Tensor &rows, const at::Scalar &scale,
             const Tensor &out)
{
  const int64_t count = how.indices[0].numel();
  const auto type = what == Put::Copy ? carrier(self.scalar_type()) : self.scalar_type();
  if (what == Put::Add && !canAdd(type, count))
    throw NotNative(std::string("sums by index of ") + c10::toString(type));
  const bool scaled = !scale.equal(1);
  const auto compute = computeType(type);
  Op op(how.name, self.device().index());
  op.attributes({static_cast<int64_t>(what), scaled});
  op.inputAs(self, self.sizes(), type);
  const at::DimVector sizes = rowSizes(how, self);
  if (rows.device().is_cpu() && rows.dim() == 0)
    op.scalar(rows.item(), compute);
  else
    op.inputAs(rows, sizes, type);
  if (scaled)
    op.scalar(scale, compute);
  addOperands(op, how);
  op.outputAs(out, type);
  op.run([&](Graph &graph) {
    at::DimVector dims = threeDims(self.sizes(), how.from, how.to);
    const V x = reshape(graph.in(0), dims);
    V values = graph.in(1, type);
    if (scaled)
      values = cast(graph.in(1, compute) * graph.in(2), ncDtype(type));
    dims[1] = count;
    values = reshape(broadcast(values, sizes), dims);
    const V index = rowIndex(graph, scaled ? 3 : 2, how, self.sizes());
    graph.out(0, reshape(put(what, x, 1, index, values), out.sizes()));
  });
}

}  // namespace neuron
