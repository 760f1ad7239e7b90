// SPDX-License-Identifier: Apache-2.0
//
// Matrix products and convolutions.
#include "Ops.h"

#include <ATen/native/Resize.h>
#include <ATen/ops/addmm_ops.h>
#include <ATen/ops/addmv_ops.h>
#include <ATen/ops/baddbmm_ops.h>
#include <ATen/ops/bmm_ops.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward_overrideable_ops.h>
#include <ATen/ops/convolution_overrideable_ops.h>
#include <ATen/ops/dot_ops.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm_ops.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sum.h>

namespace neuron {
namespace {

using at::Scalar;
using at::Tensor;

// Types that the tensor engine takes; its sums are fp32.
void requireProduct(const Tensor &a)
{
  const auto type = a.scalar_type();
  if (!isShortFloat(type))
    throw NotNative(std::string("matrix product of ") + c10::toString(type));
}

// out = beta * self + alpha * a @ b; self undefined: without it.
Tensor &product(const char *name, const Tensor &self, const Tensor &a, const Tensor &b, const Scalar &beta,
                const Scalar &alpha, Tensor &out)
{
  at::DimVector shape(a.sizes().begin(), a.sizes().end());
  shape.back() = b.size(-1);
  at::native::resize_output(out, shape);
  if (out.numel() == 0)
    return out;
  const bool hasSelf = self.defined() && !beta.equal(0);
  if (a.size(-1) == 0)
    throw NotNative("product over nothing");
  requireProduct(a);
  const auto type = computeType(out.scalar_type());
  const bool scaleSelf = hasSelf && !beta.equal(1);
  const bool scaleProduct = !alpha.equal(1);
  Op op(name, out.device().index());
  op.attribute(scaleSelf).attribute(scaleProduct);
  op.input(a);
  op.input(b);
  int next = 2;
  const int selfAt = hasSelf ? next++ : -1;
  if (hasSelf)
    op.input(self, shape);
  const int betaAt = scaleSelf ? next++ : -1;
  if (scaleSelf)
    op.scalar(beta, type);
  const int alphaAt = scaleProduct ? next++ : -1;
  if (scaleProduct)
    op.scalar(alpha, type);
  op.output(out);
  op.run([&](Graph &graph) {
    V result = cast(matmul(graph.in(0), graph.in(1)), ncDtype(type));
    if (scaleProduct)
      result = result * graph.in(alphaAt);
    if (hasSelf)
      result = result + (scaleSelf ? graph.in(selfAt, type) * graph.in(betaAt) : graph.in(selfAt, type));
    graph.out(0, result);
  });
  return out;
}

Tensor &mm(const Tensor &a, const Tensor &b, Tensor &out)
{
  return product("mm", Tensor(), a, b, 1, 1, out);
}

Tensor &bmm(const Tensor &a, const Tensor &b, Tensor &out)
{
  return product("bmm", Tensor(), a, b, 1, 1, out);
}

Tensor &addmm(const Tensor &self, const Tensor &a, const Tensor &b, const Scalar &beta, const Scalar &alpha,
              Tensor &out)
{
  return product("addmm", self, a, b, beta, alpha, out);
}

Tensor &baddbmm(const Tensor &self, const Tensor &a, const Tensor &b, const Scalar &beta, const Scalar &alpha,
                Tensor &out)
{
  return product("baddbmm", self, a, b, beta, alpha, out);
}

Tensor &addmv(const Tensor &self, const Tensor &a, const Tensor &x, const Scalar &beta, const Scalar &alpha,
              Tensor &out)
{
  at::native::resize_output(out, {a.size(0)});
  Tensor column = out.unsqueeze(1);
  addmm(self.dim() == 1 ? self.unsqueeze(1) : self, a, x.unsqueeze(1), beta, alpha, column);
  return out;
}

Tensor dot(const Tensor &a, const Tensor &b)
{
  TORCH_CHECK(a.dim() == 1 && b.dim() == 1, "1D tensors expected, but got ", a.dim(), "D and ", b.dim(), "D tensors");
  TORCH_CHECK(a.scalar_type() == b.scalar_type(), "dot : expected both vectors to have same dtype, but found ",
              a.scalar_type(), " and ", b.scalar_type());
  TORCH_CHECK(a.numel() == b.numel(), "inconsistent tensor size, expected tensor [", a.numel(), "] and src [",
              b.numel(), "] to have the same number of elements");
  return at::sum(at::mul(a, b), a.scalar_type());
}

// --- convolution

struct ConvArgs {
  struct nc_conv2d conv{};

  ConvArgs(const Tensor &input, const Tensor &weight, at::IntArrayRef stride, at::IntArrayRef padding,
           at::IntArrayRef dilation, bool transposed, int64_t groups)
  {
    if (input.dim() != 4 || transposed)
      throw NotNative("convolutions other than 2-D");
    requireProduct(input);
    TORCH_CHECK(weight.scalar_type() == input.scalar_type(), "convolution of ", input.scalar_type(),
                " with a weight of ", weight.scalar_type());
    for (int i = 0; i < 2; i++) {
      conv.stride[i] = stride[i];
      conv.padding[i] = padding[i];
      conv.dilation[i] = dilation[i];
    }
    conv.groups = groups;
  }

  void key(Op &op) const
  {
    op.attributes(conv.stride).attributes(conv.padding).attributes(conv.dilation).attribute(conv.groups);
  }
};

Tensor convolutionNative(const Tensor &input, const Tensor &weight, const std::optional<Tensor> &bias,
                         at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
                         int64_t groups)
{
  const ConvArgs args(input, weight, stride, padding, dilation, transposed, groups);
  at::DimVector shape{input.size(0), weight.size(0)};
  for (int i = 0; i < 2; i++)
    shape.push_back((input.size(2 + i) + 2 * padding[i] - dilation[i] * (weight.size(2 + i) - 1) - 1) / stride[i] + 1);
  Tensor out = at::empty(shape, input.options());
  if (out.numel() == 0)
    return out;
  const bool hasBias = bias && bias->defined();
  const auto type = computeType(input.scalar_type());
  Op op("conv2d", input.device().index());
  args.key(op);
  op.input(input);
  op.input(weight);
  if (hasBias)
    op.input(bias->view({1, -1, 1, 1}), shape);
  op.output(out);
  op.run([&](Graph &graph) {
    V y{graph.raw(), nc_conv2d(graph.raw(), graph.in(0).id, graph.in(1).id, &args.conv)};
    if (hasBias)
      y = cast(y, ncDtype(type)) + graph.in(2, type);
    graph.out(0, y);
  });
  return out;
}

struct nc_type typeOf(const Tensor &tensor)
{
  struct nc_type type{};
  type.dtype = ncDtype(tensor.scalar_type());
  type.ndim = static_cast<uint32_t>(tensor.dim());
  std::copy(tensor.sizes().begin(), tensor.sizes().end(), type.dims);
  return type;
}

std::tuple<Tensor, Tensor, Tensor> convolutionBackwardNative(const Tensor &grad, const Tensor &input,
                                                             const Tensor &weight, at::IntArrayRef stride,
                                                             at::IntArrayRef padding, at::IntArrayRef dilation,
                                                             bool transposed, int64_t groups,
                                                             std::array<bool, 3> wanted)
{
  const ConvArgs args(input, weight, stride, padding, dilation, transposed, groups);
  Tensor dx, dw, db;
  if (wanted[0]) {
    dx = at::empty(input.sizes(), input.options());
    Op op("conv2d_grad_input", grad.device().index());
    args.key(op);
    op.input(grad);
    op.input(weight);
    op.output(dx);
    const auto type = typeOf(input);
    op.run([&](Graph &graph) {
      graph.out(0, V{graph.raw(), nc_conv2d_grad_x(graph.raw(), graph.in(0).id, graph.in(1).id, &type, &args.conv)});
    });
  }
  if (wanted[1]) {
    dw = at::empty(weight.sizes(), weight.options());
    Op op("conv2d_grad_weight", grad.device().index());
    args.key(op);
    op.input(grad);
    op.input(input);
    op.output(dw);
    const auto type = typeOf(weight);
    op.run([&](Graph &graph) {
      graph.out(0, V{graph.raw(), nc_conv2d_grad_w(graph.raw(), graph.in(0).id, graph.in(1).id, &type, &args.conv)});
    });
  }
  if (wanted[2])
    db = grad.sum({0, 2, 3});
  return {dx, dw, db};
}

Tensor convolution(const Tensor &input, const Tensor &weight, const std::optional<Tensor> &bias, at::IntArrayRef stride,
                   at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed, at::IntArrayRef outputPadding,
                   int64_t groups)
{
  try {
    return convolutionNative(input, weight, bias, stride, padding, dilation, transposed, groups);
  } catch (const NotNative &) {
    return fallbackConvolution(input, weight, bias, stride, padding, dilation, transposed, outputPadding, groups);
  }
}

std::tuple<Tensor, Tensor, Tensor> convolutionBackward(const Tensor &grad, const Tensor &input, const Tensor &weight,
                                                       at::IntArrayRef stride, at::IntArrayRef padding,
                                                       at::IntArrayRef dilation, bool transposed,
                                                       at::IntArrayRef outputPadding, int64_t groups,
                                                       std::array<bool, 3> wanted)
{
  try {
    return convolutionBackwardNative(grad, input, weight, stride, padding, dilation, transposed, groups, wanted);
  } catch (const NotNative &) {
    return fallbackConvolutionBackward(grad, input, weight, stride, padding, dilation, transposed, outputPadding,
                                       groups, wanted);
  }
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
  NEURON_IMPL("mm.out", mm_out, mm);
  NEURON_IMPL("bmm.out", bmm_out, bmm);
  NEURON_IMPL("addmm.out", addmm_out, addmm);
  NEURON_IMPL("addmv.out", addmv_out, addmv);
  NEURON_IMPL("dot", dot, dot);
  NEURON_IMPL("baddbmm.out", baddbmm_out, baddbmm);
  m.impl("convolution_overrideable", TORCH_FN(convolution));
  m.impl("convolution_backward_overrideable", TORCH_FN(convolutionBackward));
}

}  // namespace
}  // namespace neuron
