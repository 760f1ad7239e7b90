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


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], **ids)
def test_cross_entropy_of_images(reduction, dtype):
    x, y, w = values(dtype, 3, 5, 4, 7), torch.randint(5, (3, 4, 7)), torch.rand(5).to(dtype)
    y[0, :2] = 2
    same(with_gradient(lambda x, y: F.cross_entropy(x, y, reduction=reduction)), x, y, scale=16)
    same(
        with_gradient(lambda x, y, w: F.cross_entropy(x, y, w, ignore_index=2, reduction=reduction)),
        x, y, w, scale=16,
    )  # fmt: skip
    deep = values(dtype, 2, 5, 3, 2, 4), torch.randint(5, (2, 3, 2, 4))
    same(with_gradient(lambda x, y: F.cross_entropy(x, y, reduction=reduction)), *deep, scale=16)


def test_nll_of_images_that_lie_otherwise():
    x = values(torch.float32, 3, 4, 7, 5).log_softmax(3).permute(0, 3, 1, 2)
    y = torch.randint(5, (3, 7, 4)).transpose(1, 2)
    same(lambda x, y: F.nll_loss(x, y), x, y, scale=16)
    same(lambda x, y: F.nll_loss(x, y, reduction="none"), x[:, :, ::2], y[:, ::2], scale=16)


def test_nll_of_images_that_do_not_fit():
    x, y = torch.zeros(2, 5, 3, 4, device="neuron"), torch.zeros(2, 4, 3, dtype=torch.long, device="neuron")
    with pytest.raises(RuntimeError, match=r"targets of \[2, 3, 4\], not of \[2, 4, 3\]"):
        torch.ops.aten.nll_loss2d_forward(x, y, None, 1, -100)
    with pytest.raises(RuntimeError, match="4D tensors"):
        torch.ops.aten.nll_loss2d_forward(x[0], y, None, 1, -100)


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
