# SPDX-License-Identifier: Apache-2.0
"""Losses, their options and gradients, against the CPU."""

import pytest
import torch
from compare import same
from test_ops import ids, values
from torch.nn import functional as F

REDUCTIONS = ["mean", "sum", "none"]


def with_gradient(loss):
    """Loss and gradient by the first argument."""

    def run(x, *rest):
        x = x.requires_grad_()
        y = loss(x, *rest)
        y.backward(torch.ones_like(y))
        return y.detach(), x.grad

    return run


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], **ids)
def test_cross_entropy(reduction, dtype):
    x, y, w = values(dtype, 9, 11), torch.randint(11, (9,)), torch.rand(11).to(dtype)
    same(with_gradient(lambda x, y: F.cross_entropy(x, y, reduction=reduction)), x, y, scale=16)
    same(with_gradient(lambda x, y, w: F.cross_entropy(x, y, w, reduction=reduction)), x, y, w, scale=16)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_cross_entropy_options(reduction):
    x, y = values(torch.float32, 9, 11), torch.randint(11, (9,))
    y[::3] = -100
    same(with_gradient(lambda x, y: F.cross_entropy(x, y, reduction=reduction)), x, y, scale=16)
    y = y.clamp(min=0)
    same(with_gradient(lambda x, y: F.cross_entropy(x, y, ignore_index=4, reduction=reduction)), x, y, scale=16)
    same(with_gradient(lambda x, y: F.cross_entropy(x, y, label_smoothing=0.1, reduction=reduction)), x, y, scale=16)
    same(with_gradient(lambda x, y: F.cross_entropy(x, y, reduction=reduction)), x[0], y[0], scale=16)
    p = torch.rand(9, 11).softmax(1)
    same(with_gradient(lambda x, p: F.cross_entropy(x, p, reduction=reduction)), x, p, scale=16)


def test_cross_entropy_where_all_is_ignored():
    same(lambda x, y: F.cross_entropy(x, y), values(torch.float32, 3, 4), torch.full((3,), -100))


def test_nll_with_infinities():
    x = torch.tensor([[0.0, -float("inf")], [-1.0, -2.0]])
    same(with_gradient(lambda x, y: F.nll_loss(x, y)), x, torch.tensor([0, 1]))


PAIRS = {
    "mse": F.mse_loss,
    "l1": F.l1_loss,
    "smooth_l1": F.smooth_l1_loss,
    "smooth_l1_beta": lambda x, y, reduction: F.smooth_l1_loss(x, y, reduction=reduction, beta=0.3),
    "huber": lambda x, y, reduction: F.huber_loss(x, y, reduction=reduction, delta=0.7),
    "bce_logits": lambda x, y, reduction: F.binary_cross_entropy_with_logits(x, y.sigmoid(), reduction=reduction),
    "bce": lambda x, y, reduction: F.binary_cross_entropy(x.sigmoid(), y.sigmoid(), reduction=reduction),
    "kl": lambda x, y, reduction: F.kl_div(
        x.log_softmax(1), y.softmax(1), reduction=reduction.replace("mean", "batchmean")
    ),
}


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("name", PAIRS)
def test_pairs(name, reduction):
    x, y = values(torch.float32, 6, 7), values(torch.float32, 6, 7)
    same(with_gradient(lambda x, y: PAIRS[name](x, y, reduction=reduction)), x, y, scale=16)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], **ids)
def test_mse_of_halves(dtype):
    same(with_gradient(F.mse_loss), values(dtype, 6, 7), values(dtype, 6, 7), scale=4)
