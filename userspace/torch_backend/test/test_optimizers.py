# SPDX-License-Identifier: Apache-2.0
"""Optimizers: the parameters after some steps, against the CPU."""

import copy

import pytest
import torch
from compare import assert_same
from torch import nn, optim

OPTIMIZERS = {
    "sgd": lambda p: optim.SGD(p, lr=0.1),
    "momentum": lambda p: optim.SGD(p, lr=0.1, momentum=0.9),
    "nesterov": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "dampening": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.1, maximize=True),
    "adam": lambda p: optim.Adam(p, lr=0.01),
    "adam_decay": lambda p: optim.Adam(p, lr=0.01, weight_decay=0.1),
    "amsgrad": lambda p: optim.Adam(p, lr=0.01, amsgrad=True),
    "adamw": lambda p: optim.AdamW(p, lr=0.01),
    "adamw_loop": lambda p: optim.AdamW(p, lr=0.01, foreach=False),
    "adamw_foreach": lambda p: optim.AdamW(p, lr=0.01, foreach=True),
    "adagrad": lambda p: optim.Adagrad(p, lr=0.05),
    "rmsprop": lambda p: optim.RMSprop(p, lr=0.01, momentum=0.5),
}


def train(make, device: str, dtype: torch.dtype, steps: int = 6) -> list[torch.Tensor]:
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(10, 16), nn.Tanh(), nn.Linear(16, 3)).to(dtype).to(device)
    x, y = torch.randn(8, 10).to(dtype).to(device), torch.randn(8, 3).to(dtype).to(device)
    optimizer = make(net.parameters())
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.mse_loss(net(x), y).backward()
        optimizer.step()
    return [p.detach() for p in net.parameters()]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps(name):
    make = OPTIMIZERS[name]
    assert_same(train(make, "neuron", torch.float32), train(make, "cpu", torch.float32), scale=200)


@pytest.mark.parametrize("name", ["sgd", "adamw"])
def test_steps_bfloat16(name):
    make = OPTIMIZERS[name]
    ours, cpu = (train(make, device, torch.bfloat16) for device in ("neuron", "cpu"))
    # Adam divides by the size of the gradient: where that is near 0, rounding decides about a step of lr.
    for one, other in zip(ours, cpu, strict=True):
        torch.testing.assert_close(one.cpu(), other, rtol=0.02, atol=0.02)


def test_new_learning_rates_compile_nothing():
    p = nn.Parameter(torch.ones(8, device="neuron"))
    optimizer = optim.SGD([p], lr=0.1, momentum=0.9)
    schedule = optim.lr_scheduler.ExponentialLR(optimizer, 0.9)

    def step():
        p.grad = torch.ones_like(p)
        optimizer.step()
        schedule.step()

    step(), step()
    before = torch.neuron.stats()["programs"]
    for _ in range(4):
        step()
    assert torch.neuron.stats()["programs"] == before


def test_gradient_clipping():
    net = nn.Linear(5, 5)
    other = copy.deepcopy(net).to("neuron")
    for module, device in ((net, "cpu"), (other, "neuron")):
        module(torch.ones(2, 5).to(device)).square().sum().backward()
        nn.utils.clip_grad_norm_(module.parameters(), 0.5)
    assert_same([p.grad for p in other.parameters()], [p.grad for p in net.parameters()], scale=16)


def test_state_survives_saving(tmp_path):
    p = nn.Parameter(torch.ones(4, device="neuron"))
    optimizer = optim.AdamW([p], lr=0.1)
    p.grad = torch.ones_like(p)
    optimizer.step()
    torch.save(optimizer.state_dict(), tmp_path / "o.pt")
    other = optim.AdamW([p], lr=0.1)
    other.load_state_dict(torch.load(tmp_path / "o.pt"))
    assert other.state[p]["exp_avg"].device.type == "neuron"
    assert torch.equal(other.state[p]["exp_avg"].cpu(), optimizer.state[p]["exp_avg"].cpu())
