# SPDX-License-Identifier: Apache-2.0
"""Autograd on the device: gradients of formulas, accumulation, hooks, no_grad, autocast."""

import pytest
import torch
from compare import same
from test_ops import values

FORMULAS = {
    "arithmetic": lambda a, b: a * b + a / (b * b + 1) - b,
    "broadcast": lambda a, b: a * b[0] + b[:, :1],
    "power": lambda a, b: a**3 + (b * b + 1) ** 0.5,
    "exponential": lambda a, b: (a.exp() + 1).log() * b.sigmoid(),
    "where": lambda a, b: torch.where(a > b, a * 2, b * 3),
    "clamp": lambda a, b: a.clamp(-0.5, 0.5) * b,
    "maximum": lambda a, b: torch.maximum(a, b) + torch.minimum(a, b) * 2,
    "extremes": lambda a, b: a.max(1).values + b.amin(1),
    "mean": lambda a, b: a.mean(0) * b.sum(0),
    "variance": lambda a, b: a.var(1) + b.std(1),
    "norm": lambda a, b: a.norm() * b.norm(dim=1),
    "views": lambda a, b: a.t().reshape(3, -1)[:, ::2] * b.flatten()[:30].view(3, 10),
    "cat": lambda a, b: torch.cat([a, b * 2]).t() @ torch.stack([a, b]).view(10, 6),
    "lerp": lambda a, b: torch.lerp(a, b, 0.3),
    "addcmul": lambda a, b: torch.addcmul(a, a, b, value=0.5) + torch.addcdiv(b, a, b * b + 1),
    "expand": lambda a, b: a.unsqueeze(0).expand(3, 5, 6) * b,
    "abs": lambda a, b: a.abs() * b.square() + (b * b + 1).rsqrt(),
    "gather": lambda a, b: a.gather(1, torch.arange(5, device=a.device).view(5, 1)) * b,
}


@pytest.mark.parametrize("name", FORMULAS)
def test_gradient(name):
    def run(a, b):
        a, b = a.requires_grad_(), b.requires_grad_()
        y = FORMULAS[name](a, b)
        y.square().sum().backward()
        return y.detach(), a.grad, b.grad

    shape = (5, 12) if name == "views" else (5, 6)
    same(run, values(torch.float32, *shape), values(torch.float32, *shape), scale=32)


def test_accumulation_and_zeroing():
    x = torch.ones(4, device="neuron", requires_grad=True)
    for _ in range(3):
        (x * 2).sum().backward()
    assert x.grad.tolist() == [6.0] * 4
    x.grad.zero_()
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3.0] * 4


def test_double_backward():
    def run(x):
        x = x.requires_grad_()
        (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
        g.sum().backward()
        return x.grad

    same(run, values(torch.float32, 7), scale=8)


def test_no_grad_and_detach():
    x = torch.ones(3, device="neuron", requires_grad=True)
    with torch.no_grad():
        assert not (x * 2).requires_grad
    with torch.inference_mode():
        assert (x * 2).is_inference()
    assert not x.detach().requires_grad


def test_hooks_and_retained_gradients():
    seen = []
    x = torch.ones(3, device="neuron", requires_grad=True)
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: seen.append(g.device.type))
    y.sum().backward()
    assert seen == ["neuron"] and y.grad.tolist() == [1.0] * 3


def test_gradient_over_devices():
    x = torch.ones(3, requires_grad=True)
    (x.to("neuron") * 3).sum().backward()
    assert x.grad.device.type == "cpu" and x.grad.tolist() == [3.0] * 3


def test_numerical_gradient(fallback):
    x = torch.randn(3, 4, dtype=torch.float64, device="neuron", requires_grad=True)
    assert torch.autograd.gradcheck(lambda t: (t * t + t).sum(1), x)


def test_autocast():
    net = torch.nn.Linear(8, 4).to("neuron")
    x = torch.randn(2, 8).to("neuron")
    with torch.autocast("neuron", dtype=torch.bfloat16):
        y = net(x)
        assert y.dtype == torch.bfloat16
        assert y.float().softmax(-1).dtype == torch.float32
    y.float().sum().backward()
    assert net.weight.grad.dtype == torch.float32


def test_checkpoint():
    from torch.utils.checkpoint import checkpoint

    net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh()).to("neuron")
    x = torch.randn(2, 4).to("neuron").requires_grad_()
    checkpoint(net, x, use_reentrant=False).sum().backward()
    other = x.detach().clone().requires_grad_()
    net(other).sum().backward()
    assert torch.equal(x.grad.cpu(), other.grad.cpu())
