# SPDX-License-Identifier: Apache-2.0
"""Random numbers and dropout: reproducible, independent of layout, and distributed as they should be.

Seeds are fixed, so that a test gives the same numbers in every run. Bounds are for chances of about 1 in 10^6:
means within 5 standard errors, largest distance of the distribution functions (Kolmogorov) within 2.7 / sqrt(n).
"""

import copy
import math
from typing import Any

import pytest
import torch
from test_ops import ids
from torch import nn
from torch.nn import functional as F

N = 1 << 16
FLOATS = [torch.float32, torch.bfloat16, torch.float16]


def empty(*shape: int, dtype: Any = torch.float32) -> Any:
    return torch.empty(*shape, dtype=dtype, device="neuron")


def kolmogorov(x: Any, distribution: Any) -> None:
    """Values, up to how fine their dtype is, are distributed so."""
    step = torch.finfo(x.dtype).eps
    x = x.cpu().double().flatten().sort().values
    n = x.numel()
    place = torch.arange(n, dtype=torch.float64)
    expected = distribution(x)
    far = torch.maximum(expected - place / n, (place + 1) / n - expected).max().item()
    assert far < 2.7 / math.sqrt(n) + step


def moments(x: Any, mean: float, variance: float, fourth: float) -> None:
    """Mean and variance; fourth: central moment of the distribution."""
    x = x.cpu().double()
    n = x.numel()
    assert abs(x.mean().item() - mean) < 5 * math.sqrt(variance / n)
    assert abs(x.var().item() - variance) < 5 * math.sqrt((fourth - variance**2) / n)


# --- the bits, by docs/random.md


def philox(seed: int, offset: int, stream: int) -> list[int]:
    m = 0xFFFFFFFF
    c, k = [offset & m, offset >> 32, stream, 0], [seed & m, seed >> 32]
    for _ in range(10):
        p, q = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
        c = [q >> 32 ^ c[1] ^ k[0], q & m, p >> 32 ^ c[3] ^ k[1], p & m]
        k = [(k[0] + 0x9E3779B9) & m, (k[1] + 0xBB67AE85) & m]
    return c


def bits(seed: int, offset: int, n: int, stream: int = 0) -> Any:
    k = philox(seed, offset, stream)
    i = torch.arange(n)
    x = i ^ k[0]
    for shift, factor, word in ((17, 0xED5AD4BB, k[1]), (11, 0xAC4C1B51, k[2]), (15, 0x31848BAB, k[3])):
        # In two halves: a product of 64 bits would overflow.
        y = x ^ (x >> shift)
        x = (((y * (factor & 0xFFFF)) + ((y * (factor >> 16) & 0xFFFF) << 16)) & 0xFFFFFFFF) ^ word
    return x ^ (x >> 14) ^ i


@pytest.mark.parametrize("dtype", FLOATS, **ids)
def test_uniform_numbers_are_those_of_the_description(dtype):
    digits = {torch.float32: 24, torch.bfloat16: 8, torch.float16: 11}[dtype]
    torch.neuron.manual_seed(123456789012345)
    for offset in range(2):
        expected = (bits(123456789012345, offset, 5000) >> (32 - digits)).double() / 2**digits
        assert torch.equal(empty(5000, dtype=dtype).uniform_().cpu().double(), expected)


def test_the_index_counts_in_row_major_order_whatever_the_layout():
    torch.neuron.manual_seed(1)
    plain = torch.rand(40, 30, device="neuron").cpu()
    for tensor in (empty(30, 40).t(), empty(40, 60)[:, ::2], empty(40, 31)[:, 1:]):
        torch.neuron.manual_seed(1)
        assert torch.equal(tensor.uniform_().cpu(), plain)
    torch.neuron.manual_seed(1)
    assert torch.equal(torch.rand(1200, device="neuron").cpu(), plain.flatten())


# --- the generator


def test_seeds_and_draws():
    torch.manual_seed(5)
    a, b = torch.rand(1000, device="neuron").cpu(), torch.rand(1000, device="neuron").cpu()
    torch.neuron.manual_seed(5)
    assert torch.equal(torch.rand(1000, device="neuron").cpu(), a)
    assert torch.equal(torch.rand(1000, device="neuron").cpu(), b)
    torch.neuron.manual_seed(6)
    c = torch.rand(1000, device="neuron").cpu()
    assert not torch.equal(a, b) and not torch.equal(a, c)


def test_state_is_saved_and_restored():
    generator = torch.Generator(device="neuron")
    generator.manual_seed(7)
    torch.rand(10, generator=generator, device="neuron")
    state = generator.get_state()
    assert state.device.type == "cpu" and state.dtype == torch.uint8 and state.numel() == 16
    expected = torch.rand(10, generator=generator, device="neuron").cpu()
    generator.set_state(state)
    assert torch.equal(torch.rand(10, generator=generator, device="neuron").cpu(), expected)
    assert generator.initial_seed() == 7 and generator.device.type == "neuron"
    with pytest.raises(RuntimeError, match="16 bytes"):
        generator.set_state(torch.zeros(8, dtype=torch.uint8))


def test_fork_rng_leaves_the_generator_alone():
    torch.manual_seed(3)
    expected = torch.rand(4, device="neuron").cpu()
    torch.manual_seed(3)
    with torch.random.fork_rng(devices=[0], device_type="neuron"):
        torch.rand(9, device="neuron")
    assert torch.equal(torch.rand(4, device="neuron").cpu(), expected)


def test_generators_of_other_devices_are_refused():
    with pytest.raises(RuntimeError, match="generator"):
        empty(3).uniform_(generator=torch.Generator())


def test_fallback_draws_from_the_generator(fallback):
    def draw():
        torch.neuron.manual_seed(9)
        return torch.randperm(50, device="neuron").cpu(), torch.randperm(50, device="neuron").cpu()

    one, other = draw(), draw()
    assert torch.equal(one[0], other[0]) and torch.equal(one[1], other[1]) and not torch.equal(*one)


# --- distributions


@pytest.mark.parametrize("dtype", FLOATS, **ids)
def test_uniform(dtype):
    x = torch.rand(N, dtype=dtype, device="neuron")
    assert x.min().item() >= 0 and x.max().item() < 1
    kolmogorov(x, lambda v: v)
    if dtype == torch.float32:
        moments(x, 1 / 2, 1 / 12, 1 / 80)
    y = empty(N, dtype=dtype).uniform_(-2, 3)
    assert y.min().item() >= -2 and y.max().item() < 3
    kolmogorov(y, lambda v: (v + 2) / 5)
    assert empty(9, dtype=dtype).uniform_(2, 2).tolist() == [2] * 9


def test_uniform_double():
    x = torch.rand(N, dtype=torch.float64, device="neuron")
    assert x.min().item() >= 0 and x.max().item() < 1
    kolmogorov(x, lambda v: v)
    assert (x.cpu() * 2**30 % 1 != 0).float().mean() > 0.99  # bits below those of a float


@pytest.mark.parametrize("dtype", FLOATS, **ids)
def test_normal(dtype):
    x = torch.randn(N, dtype=dtype, device="neuron")
    kolmogorov(x, lambda v: 0.5 * (1 + torch.erf(v / math.sqrt(2))))
    moments(x, 0, 1, 3)
    assert x.abs().max().item() > 3.9  # the largest of so many is rarely less
    y = empty(N, dtype=dtype).normal_(3, 0.5)
    kolmogorov(y, lambda v: 0.5 * (1 + torch.erf((v - 3) / 0.5 / math.sqrt(2))))


def test_normal_with_tensors():
    mean, std = torch.tensor([0.0, 10.0]), torch.tensor([1.0, 2.0])
    a, b = mean.to("neuron"), std.to("neuron")
    for x in (
        torch.normal(a.expand(N, 2), b.expand(N, 2)),
        torch.normal(a.expand(N, 2), 1.0) * b - a * (b - 1),
        torch.normal(0.0, b.expand(N, 2)) + a,
    ):
        for i in range(2):
            moments((x[:, i] - mean[i].item()) / std[i].item(), 0, 1, 3)


def test_exponential():
    x = empty(N).exponential_(2.0)
    assert x.min().item() >= 0
    kolmogorov(x, lambda v: 1 - torch.exp(-2 * v))
    moments(x, 1 / 2, 1 / 4, 9 / 16)


def chi_square(count: Any) -> None:
    """Numbers of each of equally likely values: within 6 standard deviations of the degrees of freedom."""
    count = count.double()
    mean = count.sum() / count.numel()
    chi, degrees = ((count - mean) ** 2 / mean).sum().item(), count.numel() - 1
    assert abs(chi - degrees) < 6 * math.sqrt(2 * degrees)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.float32], **ids)
@pytest.mark.parametrize("limits", [(0, 10), (-7, 57), (100, 101)], ids=str)
def test_integers(limits, dtype):
    low, high = limits
    x = torch.randint(low, high, (N,), dtype=dtype, device="neuron").cpu()
    assert x.min() >= low and x.max() < high
    if high - low > 1:
        chi_square(torch.bincount((x - low).long(), minlength=high - low))


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool], **ids)
def test_all_natural_numbers_of_a_type(dtype):
    x = empty(N, dtype=dtype).random_().cpu()
    if dtype == torch.bool:
        chi_square(torch.bincount(x.long(), minlength=2))
        return
    top = torch.iinfo(dtype).max
    assert x.min() >= 0
    chi_square(torch.bincount((x.double() * 64 / (top + 1)).floor().long(), minlength=64))
    chi_square(torch.bincount(x.long() & 63, minlength=64))


def test_wide_ranges():
    x = torch.randint(-(2**40), 3 * 2**40, (N,), device="neuron").cpu()
    assert x.min() >= -(2**40) and x.max() < 3 * 2**40
    chi_square(torch.bincount((x + 2**40) >> 36, minlength=64))
    y = empty(N, dtype=torch.int64).random_(-(2**63), None).cpu()
    chi_square(torch.bincount((y >> 58) + 32, minlength=64))


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int64, torch.bool], **ids)
def test_bernoulli(dtype):
    for p in (0.0, 0.3, 1.0):
        x = empty(N, dtype=dtype).bernoulli_(p).cpu().double()
        assert set(x.unique().tolist()) <= {0, 1}
        assert abs(x.mean().item() - p) <= 5 * math.sqrt(p * (1 - p) / N)


def test_bernoulli_of_probabilities():
    p = torch.linspace(0, 1, 5).to("neuron").expand(N, 5)
    x = torch.bernoulli(p).cpu()
    assert set(x.unique().tolist()) == {0, 1} and x[:, 0].max() == 0 and x[:, 4].min() == 1
    assert torch.equal(empty(N, 5).bernoulli_(p).mean(0).cpu() > 0, torch.tensor([False, True, True, True, True]))
    for i in range(5):
        assert abs(x[:, i].mean().item() - i / 4) <= 5 * math.sqrt(i / 4 * (1 - i / 4) / N)


def test_wrong_arguments_are_refused():
    for call in (
        lambda x: x.uniform_(1, 0),
        lambda x: x.normal_(0, -1),
        lambda x: x.bernoulli_(1.5),
        lambda x: x.random_(3, 3),
        lambda x: F.dropout(x, 2),
    ):
        with pytest.raises((RuntimeError, ValueError)):
            call(empty(3))


@pytest.mark.parametrize("shape", [(0,), (), (1,), (3, 0), (2, 3, 4, 5)], ids=str)
def test_shapes(shape):
    for x in (torch.rand(shape, device="neuron"), torch.randn(shape, device="neuron")):
        assert x.shape == shape and not x.cpu().isnan().any()


# --- dropout


@pytest.mark.parametrize("dtype", FLOATS, **ids)
@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_dropout(p, dtype):
    x = (torch.rand(64, 1024) + 1).to(dtype).to("neuron").requires_grad_()
    y = F.dropout(x, p)
    kept = y != 0
    assert abs(kept.float().mean().item() - (1 - p)) < 5 * math.sqrt(p * (1 - p) / x.numel())
    scale = 1 / (1 - p)
    rtol = 2 * torch.finfo(dtype).eps  # each of the two roundings in its own order
    torch.testing.assert_close(y.detach().cpu(), (x * kept * scale).detach().cpu(), rtol=rtol, atol=0)
    grad = torch.rand(64, 1024).to(dtype).to("neuron")
    y.backward(grad)
    assert torch.equal((x.grad != 0).cpu(), (kept & (grad != 0)).cpu())
    torch.testing.assert_close(x.grad.cpu(), (grad * kept * scale).cpu(), rtol=rtol, atol=0)


def test_dropout_again_from_the_same_state():
    x = torch.ones(100, 7, device="neuron")
    torch.neuron.manual_seed(2)
    one, other = F.dropout(x).cpu(), F.dropout(x).cpu()
    torch.neuron.manual_seed(2)
    assert torch.equal(F.dropout(x).cpu(), one) and not torch.equal(one, other)


def test_dropout_at_its_ends():
    x = torch.randn(5, 6).to("neuron")
    assert torch.equal(F.dropout(x, 0.5, training=False).cpu(), x.cpu())
    assert torch.equal(F.dropout(x, 0.0).cpu(), x.cpu())
    assert F.dropout(x, 1.0).cpu().abs().max() == 0
    assert F.dropout(empty(0)).numel() == 0
    assert F.dropout(x.clone(), 0.5, inplace=True).shape == x.shape


def test_modules_with_dropout():
    x = torch.randn(8, 16, 6, 6).to("neuron")
    for module in (nn.Dropout(0.3), nn.Dropout2d(0.3), nn.AlphaDropout(0.3), nn.FeatureAlphaDropout(0.3)):
        y = module(x).cpu()
        assert y.shape == x.shape and not y.isnan().any() and not torch.equal(y, x.cpu())
    channels = nn.Dropout2d(0.5)(torch.ones(8, 64, 6, 6, device="neuron")).cpu().flatten(2)
    assert torch.equal(channels.amax(2), channels.amin(2)) and channels.unique().tolist() == [0, 2]


def test_an_encoder_layer_with_dropout_trains():
    """Less with each step, by the same steps from the same seed."""
    layer = nn.TransformerEncoderLayer(32, 4, 64, 0.1, batch_first=True)
    x, y = torch.randn(4, 12, 32).to("neuron"), torch.randn(4, 12, 32).to("neuron")

    def losses():
        torch.neuron.manual_seed(4)
        net, out = copy.deepcopy(layer).to("neuron"), []
        optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
        for _ in range(12):
            optimizer.zero_grad()
            loss = F.mse_loss(net(x), y)
            loss.backward()
            optimizer.step()
            out.append(loss.item())
        return out

    one = losses()
    assert one == losses() and one[-1] < 0.8 * one[0]
    assert torch.neuron.fallback_counts() == {}


def test_initialisation_of_modules_on_the_device():
    with torch.device("neuron"):
        net = nn.Sequential(nn.Linear(64, 256), nn.LayerNorm(256), nn.Conv2d(3, 8, 3))
    bound = 1 / math.sqrt(64)
    kolmogorov(net[0].weight.detach(), lambda v: (v + bound) / (2 * bound))
    weight = nn.init.trunc_normal_(empty(200, 200), std=0.02)
    assert weight.abs().max().item() <= 2 and abs(weight.std().item() - 0.02) < 1e-3
