# SPDX-License-Identifier: Apache-2.0
"""What convolutional networks and transformers need beyond single layers: batch norm, pooling; and small
models of both kinds trained beside the CPU."""

import copy
import sys
from pathlib import Path

import pytest
import torch
from compare import same
from test_ops import ids, values
from torch import nn
from torch.nn import functional as F

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "bench"))
import models  # noqa: E402


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], **ids)
@pytest.mark.parametrize("shape", [(4, 5), (4, 5, 6), (3, 7, 5, 6), (2, 130, 9, 9)], ids=str)
@pytest.mark.parametrize("training", [True, False])
def test_batch_norm(dtype, shape, training):
    weights, channels = values(dtype, *shape), shape[1]

    def run(x, weight, bias, mean, variance, weights):
        x, weight, bias = (t.requires_grad_() for t in (x, weight, bias))
        y = F.batch_norm(x, mean, variance, weight, bias, training, 0.2)
        (y * weights).sum().backward()
        return y.detach(), x.grad, weight.grad, bias.grad, mean, variance

    affine = [values(dtype, channels) for _ in range(2)]
    same(run, values(dtype, *shape), *affine, values(dtype, channels), values(dtype, channels).abs() + 1, weights,
         scale=128 if dtype == torch.float32 else 32)  # fmt: skip


def test_batch_norm_without_parameters():
    def run(x):
        x = x.requires_grad_()
        y = F.batch_norm(x, None, None, training=True)
        y.square().mul(x).sum().backward()
        return y.detach(), x.grad

    same(run, values(torch.float32, 3, 4, 5), scale=128)


POOLS = [
    dict(kernel_size=2),
    dict(kernel_size=3, stride=2, padding=1),
    dict(kernel_size=3, stride=1, padding=1),
    dict(kernel_size=(3, 2), stride=(1, 3), padding=(1, 0)),
    dict(kernel_size=2, stride=3),
    dict(kernel_size=3, stride=2, ceil_mode=True),
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], **ids)
@pytest.mark.parametrize("arguments", POOLS, ids=str)
def test_max_pool(dtype, arguments):
    def gradient(x, weights):
        x = x.requires_grad_()
        y = F.max_pool2d(x, **arguments)
        (y * weights[: y.shape[0], : y.shape[1], : y.shape[2], : y.shape[3]]).sum().backward()
        return x.grad

    same(lambda x: F.max_pool2d(x, return_indices=True, **arguments), values(dtype, 2, 3, 11, 12), scale=0)
    # Where windows overlap, the CPU adds up to nine gradients in bf16 and rounds each sum; we round once.
    same(gradient, values(dtype, 2, 3, 11, 12), values(dtype, 2, 3, 13, 14), scale=16)


def test_max_pool_of_equal_ones_and_of_one_image():
    same(lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True), torch.zeros(1, 2, 9, 9))
    same(lambda x: F.max_pool2d(x, 2, dilation=2, return_indices=True), values(torch.float32, 3, 9, 9))


def test_signs_of_infinities():
    x = torch.tensor([1.0, float("inf"), float("-inf"), float("nan")])
    same(torch.isneginf, x)
    same(torch.isposinf, x)
    same(torch.isposinf, torch.tensor([1, 2]))


# Losses beside the CPU's. The first is one forward pass, whose sums are ordered otherwise: 3e-7 at most
# was measured. Then AdamW divides each gradient by its size, and so makes steps of the rounding of the
# smallest ones: 4e-6 at most within four steps and six seeds. Five times that.
LOSSES = 2e-5


def losses(net, loss, x, y, device, steps=4):
    """Of steps of AdamW, from the same weights on every device."""
    net = copy.deepcopy(net).to(device)
    x, y = x.to(device), y.to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    out = []
    for _ in range(steps):
        optimizer.zero_grad()
        value = loss(net(x), y)
        value.backward()
        optimizer.step()
        out.append(value.item())
    return out


def trained_like_on_the_cpu(net, loss, x, y):
    """Trains on both; what the device does not do would be counted."""
    torch.neuron.set_fallback("silent")
    cpu, neuron = (losses(net, loss, x, y, device) for device in ("cpu", "neuron"))
    assert torch.neuron.fallback_counts() == {}
    torch.testing.assert_close(neuron, cpu, rtol=LOSSES, atol=0)
    assert neuron[-1] < neuron[0]


def test_training_of_a_transformer():
    net = models.Gpt(width=32, layers=2, heads=2, context=16)
    trained_like_on_the_cpu(net, models.gpt_loss, torch.randint(256, (2, 16)), torch.randint(256, (2, 16)))


def test_training_of_a_residual_network():
    net = nn.Sequential(*list(models.ResNet18(10))[:5], models.Residual(64, 32, 2), nn.AdaptiveAvgPool2d(1),
                        nn.Flatten(), nn.Linear(32, 10))  # fmt: skip
    trained_like_on_the_cpu(net, F.cross_entropy, torch.randn(2, 3, 32, 32), torch.randint(10, (2,)))
