# SPDX-License-Identifier: Apache-2.0
"""Running sums, products, largest and least against the CPU."""

import pytest
import torch
from compare import same
from test_ops import ALL, FLOATS, HALVES, INTEGERS, ids, values

SHAPES = [((1,), 0), ((5,), 0), ((3000,), 0), ((7, 300), 1), ((300, 7), 0), ((2, 0, 3), 0), ((4, 130, 5), -2)]
shapes = pytest.mark.parametrize("shape, dim", SHAPES, ids=str)


def close(function, x, dim):
    """Against float64; PyTorch's CPU backend carries fp32 in it. The sizes of what is added up bound the error."""
    got = function(x.to("neuron"), dim)
    assert got.dtype == x.dtype and got.device.type == "neuron"
    wanted = function(x.double(), dim)
    carried = torch.finfo(torch.float64 if x.dtype == torch.float64 else torch.float32).eps
    bound = function(x.double().abs(), dim) * carried * x.shape[dim]
    assert ((got.cpu().double() - wanted).abs() <= bound + torch.finfo(x.dtype).eps * wanted.abs()).all()


@shapes
@pytest.mark.parametrize("dtype", FLOATS, **ids)
def test_sums_of_floats(dtype, shape, dim):
    close(torch.cumsum, values(dtype, *shape), dim)


@shapes
@pytest.mark.parametrize("dtype", FLOATS, **ids)
def test_products_of_floats(dtype, shape, dim):
    close(torch.cumprod, (0.99 + 0.02 * torch.rand(shape)).to(dtype), dim)


@shapes
@pytest.mark.parametrize("dtype", [*INTEGERS, torch.bool], **ids)
def test_integers_become_int64(dtype, shape, dim):
    same(lambda x: torch.cumsum(x, dim), values(dtype, *shape))
    same(lambda x: torch.cumprod(x, dim), values(dtype, *shape))


@shapes
@pytest.mark.parametrize("dtype", ALL, **ids)
def test_largest_and_least(dtype, shape, dim):
    if 0 in shape:
        pytest.skip("the CPU refuses some of these")
    same(lambda x: tuple(x.cummax(dim)), values(dtype, *shape))
    same(lambda x: tuple(x.cummin(dim)), values(dtype, *shape))


def test_dtype_and_place():
    def run(x):
        large = torch.zeros(12, 80, dtype=torch.int32, device=x.device)
        torch.cumsum(x, 0, dtype=torch.int32, out=large[::2, ::2])
        results = [large, x.cumsum(1, dtype=torch.int32), x.cumsum(0, dtype=torch.int8), x.t().cumsum(0),
                   x.cumsum(0, dtype=torch.float64), torch.cumsum(x, 0, out=torch.empty(0, device=x.device).long()),
                   x[:1].expand(5, 40).cumsum(0), x[0, 0].cumsum(0)]  # fmt: skip
        return [*results, x.cumsum_(1), x]

    same(run, torch.randint(-50, 50, (6, 40), dtype=torch.int32))
    x = values(torch.float32, 2, 6, 5, 4)
    same(lambda x: x.to(memory_format=torch.channels_last).cumsum(1), x, scale=4)


def test_nan_stays_from_where_it_comes_in():
    x = torch.ones(2000)
    x[1500], x[1700], x[1800] = float("inf"), float("nan"), float("nan")
    same(lambda x: [x.cumsum(0), x.cumprod(0), *x.cummax(0), *x.cummin(0)], x)


@pytest.mark.parametrize("dtype", [torch.float32, *HALVES], **ids)
def test_gradients(dtype):
    def run(x, weights):
        x = x.requires_grad_()
        (x.cumsum(0) * weights).sum().backward()
        return x.grad

    same(run, values(dtype, 6, 5), values(dtype, 6, 5), scale=16)


def test_gradients_of_extremes():
    def run(x, weights):
        x = x.requires_grad_()
        ((x.cummax(1).values + x.cummin(1).values) * weights).sum().backward()
        return x.grad

    same(run, values(torch.float32, 6, 5), values(torch.float32, 6, 5), scale=16)


def test_gradients_of_products(fallback):
    def run(x, weights):
        x = x.requires_grad_()
        (x.cumprod(1) * weights).sum().backward()
        return x.grad

    x = values(torch.float32, 6, 5)
    same(run, x, values(torch.float32, 6, 5), scale=32)
    x[2, 3] = 0
    same(run, x, values(torch.float32, 6, 5), scale=32)


def test_mistakes_are_those_of_the_cpu():
    for device in ("cpu", "neuron"):
        with pytest.raises(IndexError):
            torch.ones(3, device=device).cumsum(1)
    same(lambda x: torch.cumsum(x, 0, out=x.long()), values(torch.float32, 30))
