// SPDX-License-Identifier: Apache-2.0
//
// Rows by index: what index_select, index_put, scatter and their kind have in common. A row is what a
// tensor has at one place of its indexed dims; rows may be single elements.
#pragma once

#include "Ops.h"

namespace neuron {

// A tensor without dims is one of a single row.
inline at::Tensor atLeastOneDim(const at::Tensor &tensor)
{
  return tensor.dim() ? tensor : tensor.view({1});
}

// int32, of an integer beyond it the nearest: what names no row goes on naming none.
V narrow(V index);

// Counts from the end where it is negative, as PyTorch's; what names none of n rows stays as it is, so that the
// error tells it.
V wrapped(V index, int64_t n);

// Always 0, and ends the launch with an error if an element of index, int32 with one dim, names none of n
// rows. For indices that are computed with before nc_take() or nc_put() would check them.
V zeroIfWithin(V index, int64_t n);

// The dims from .. to - 1 of a tensor that are indexed by as many index tensors of one shape.
struct Indexed {
  const char *name;  // of the operator, a string literal
  int64_t from, to;
  at::ArrayRef<at::Tensor> indices;
  bool wrap;  // negative indices count from the end
};

// out = the rows of self; it has the shape of indices in place of the indexed dims, and is not empty.
void takeRows(const Indexed &how, const at::Tensor &self, const at::Tensor &out);

enum class Put { Copy, Add };

// out = self, which it may be, with scale times the rows in their places; neither is empty. rows broadcasts to what
// takeRows() gives. Of rows with one index the last stays, or they are added in order, floats in fp32,
// and rounded to the dtype once.
void putRows(const Indexed &how, Put put, const at::Tensor &self, const at::Tensor &rows, const at::Scalar &scale,
             const at::Tensor &out);

// Sizes of the rows of self.
at::DimVector rowSizes(const Indexed &how, const at::Tensor &self);

// Whether put() of so many rows has an Add for the dtype, and one that writes to these rows alone.
bool canAdd(at::ScalarType type, int64_t count);
bool addsInPlace(at::ScalarType type);

// nc_put() for any dtype for which canAdd(). x is of the dtype or of its carrier(), rows of x's dtype.
V put(Put how, V x, uint32_t dim, V index, V rows);

}  // namespace neuron
