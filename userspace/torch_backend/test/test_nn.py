# SPDX-License-Identifier: Apache-2.0
"""Products, convolutions and modules, forward and backward, against the CPU."""

import copy

import pytest
import torch
from compare import assert_same, same, to
from test_ops import HALVES, ids, values
from torch import nn
from torch.nn import functional as F

MATRICES = [((3, 4), (4, 5)), ((1, 1), (1, 1)), ((130, 70), (70, 33)), ((64, 300), (300, 520)), ((7, 128), (128, 1))]


@pytest.mark.parametrize("dtype", [torch.float32, *HALVES], **ids)
@pytest.mark.parametrize("shapes", MATRICES, ids=str)
def test_mm(dtype, shapes):
    a, b = (values(dtype, *shape) for shape in shapes)
    scale = 4 * shapes[0][1] ** 0.5
    same(torch.mm, a, b, scale=scale)
    same(lambda a, b: a @ b.t().contiguous().t(), a, b, scale=scale)
    same(lambda a, b: b.t() @ a.t(), a, b, scale=scale)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], **ids)
def test_matmul_shapes(dtype):
    for left, right in (((2, 3, 4), (2, 4, 5)), ((2, 3, 4), (4, 5)), ((4,), (4,)), ((3, 4), (4,)), ((4,), (4, 5)),
                        ((2, 1, 3, 4), (1, 5, 4, 2))):  # fmt: skip
        same(torch.matmul, values(dtype, *left), values(dtype, *right), scale=16)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], **ids)
def test_products_with_sum(dtype):
    a, b = values(dtype, 5, 6), values(dtype, 6, 7)
    for self in (values(dtype, 5, 7), values(dtype, 7), values(dtype, 5, 1)):
        same(torch.addmm, self, a, b, scale=16)
        same(lambda s, a, b: torch.addmm(s, a, b, beta=0.5, alpha=2), self, a, b, scale=16)
        same(lambda s, a, b: torch.addmm(s, a, b, beta=0), self, a, b, scale=16)
    same(torch.baddbmm, values(dtype, 3, 5, 7), values(dtype, 3, 5, 6), values(dtype, 3, 6, 7), scale=16)
    nan = torch.full((5, 7), float("nan"), dtype=dtype)
    same(lambda s, a, b: torch.addmm(s, a, b, beta=0), nan, a, b, scale=16)  # beta = 0 ignores even NaN


def test_products_report_wrong_shapes():
    with pytest.raises(RuntimeError, match="cannot be multiplied|same|match|size"):
        torch.mm(torch.ones(2, 3, device="neuron"), torch.ones(4, 5, device="neuron"))


CONVOLUTIONS = {
    "plain": dict(x=(2, 3, 9, 10), w=(4, 3, 3, 3)),
    "padding": dict(x=(2, 3, 9, 10), w=(4, 3, 3, 3), padding=1),
    "stride": dict(x=(2, 3, 9, 10), w=(4, 3, 3, 3), stride=2, padding=1),
    "dilation": dict(x=(2, 3, 9, 10), w=(4, 3, 3, 3), dilation=2, padding=2),
    "groups": dict(x=(2, 4, 8, 8), w=(6, 2, 3, 3), groups=2, padding=1),
    "depthwise": dict(x=(2, 4, 8, 8), w=(4, 1, 3, 3), groups=4, padding=1),
    "pointwise": dict(x=(3, 5, 6, 7), w=(2, 5, 1, 1)),
    "uneven": dict(x=(1, 2, 12, 7), w=(3, 2, 5, 2), stride=(3, 1), padding=(2, 0)),
    "patches": dict(x=(2, 3, 16, 16), w=(8, 3, 4, 4), stride=4),
    "digits": dict(x=(64, 16, 8, 8), w=(32, 16, 3, 3), stride=2, padding=1),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], **ids)
def test_convolution(name, dtype):
    case = dict(CONVOLUTIONS[name])
    x, w = values(dtype, *case.pop("x")), values(dtype, *case.pop("w")) * 0.2
    b = values(dtype, w.shape[0])

    def run(x, w, b):
        x, w, b = (t.requires_grad_() for t in (x, w, b))
        y = F.conv2d(x, w, b, **case)
        y.backward(torch.ones_like(y) * 0.1)
        return y.detach(), x.grad, w.grad, b.grad

    same(run, x, w, b, scale=40)


MODULES = {
    "linear": (lambda: nn.Linear(12, 7), (5, 12)),
    "linear_3d": (lambda: nn.Linear(12, 7), (2, 5, 12)),
    "linear_1d": (lambda: nn.Linear(12, 7), (12,)),
    "no_bias": (lambda: nn.Linear(12, 7, bias=False), (5, 12)),
    "conv": (lambda: nn.Conv2d(3, 8, 3, padding=1), (2, 3, 8, 8)),
    "layer_norm": (lambda: nn.LayerNorm(24), (6, 24)),
    "rms_norm": (lambda: nn.RMSNorm(24), (6, 24)),
    "relu": (nn.ReLU, (4, 33)),
    "relu_in_place": (lambda: nn.Sequential(nn.Linear(9, 9), nn.ReLU(inplace=True)), (4, 9)),
    "gelu": (nn.GELU, (4, 33)),
    "gelu_tanh": (lambda: nn.GELU(approximate="tanh"), (4, 33)),
    "silu": (nn.SiLU, (4, 33)),
    "sigmoid": (nn.Sigmoid, (4, 33)),
    "tanh": (nn.Tanh, (4, 33)),
    "softplus": (nn.Softplus, (4, 33)),
    "log_sigmoid": (nn.LogSigmoid, (4, 33)),
    "leaky_relu": (nn.LeakyReLU, (4, 33)),
    "elu": (nn.ELU, (4, 33)),
    "selu": (nn.SELU, (4, 33)),
    "celu": (nn.CELU, (4, 33)),
    "hardtanh": (nn.Hardtanh, (4, 33)),
    "relu6": (nn.ReLU6, (4, 33)),
    "hardsigmoid": (nn.Hardsigmoid, (4, 33)),
    "hardswish": (nn.Hardswish, (4, 33)),
    "softmax": (lambda: nn.Softmax(-1), (4, 33)),
    "log_softmax": (lambda: nn.LogSoftmax(1), (4, 6, 5)),
    "flatten": (nn.Flatten, (3, 4, 5)),
    "mlp": (lambda: nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 4)), (8, 16)),
}  # fmt: skip


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], **ids)
def test_module(name, dtype):
    make, shape = MODULES[name]
    module, x = make().to(dtype), values(dtype, *shape)
    weights = values(dtype, *module(x).shape)

    def run(module, x, weights):
        module = copy.deepcopy(module).to(x.device)
        x = x.requires_grad_()
        y = module(x)
        (y * weights).sum().backward()
        return [y.detach(), x.grad, *(p.grad for p in module.parameters())]

    expected = run(module, x.clone(), weights)
    assert_same(run(module, to(x, "neuron"), to(weights, "neuron")), expected, scale=32)


def test_attention_from_parts():
    def attention(q, k, v):
        q, k, v = (t.requires_grad_() for t in (q, k, v))
        scores = (q @ k.transpose(-2, -1)) / 4
        mask = torch.ones(6, 6, dtype=torch.bool, device=q.device).tril()
        y = scores.masked_fill(~mask, float("-inf")).softmax(-1) @ v
        y.square().sum().backward()
        return y.detach(), q.grad, k.grad, v.grad

    same(attention, *(values(torch.float32, 2, 3, 6, 16) for _ in range(3)), scale=64)
