# SPDX-License-Identifier: Apache-2.0
"""Reductions, extremes, softmax and norms against the CPU."""

import pytest
import torch
from compare import same
from test_ops import FLOATS, INTEGERS, choose_fallback, ids, values
from torch.nn import functional as F

DIMS = [None, 0, 1, -1, (0, 2), (0, 1, 2)]


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, torch.bool], **ids)
@pytest.mark.parametrize("dim", DIMS)
def test_sum(dtype, dim):
    x = values(dtype, 5, 6, 37)
    same(lambda a: a.sum() if dim is None else a.sum(dim), x, scale=16)
    if dim is not None:
        same(lambda a: a.sum(dim, keepdim=True), x, scale=16)


@pytest.mark.parametrize("dtype", FLOATS, **ids)
@pytest.mark.parametrize("dim", DIMS)
def test_mean(dtype, dim):
    same(lambda a: a.mean() if dim is None else a.mean(dim), values(dtype, 5, 6, 37), scale=8)


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int64, torch.int32], **ids)
def test_extremes(dtype):
    x = values(dtype, 7, 5, 33)
    for function in (torch.amax, torch.amin):
        for dim in (0, 1, 2, (0, 2)):
            same(lambda a, f=function, d=dim: f(a, d), x)
    same(torch.max, x)
    same(torch.min, x)
    for function in (torch.max, torch.min):
        for dim in (0, 1, 2):
            same(lambda a, f=function, d=dim: f(a, d).values, x)
    distinct = torch.randperm(7 * 5 * 33).view(7, 5, 33).to(torch.int32)
    for dim in (0, 1, 2):
        same(lambda a, d=dim: tuple(a.max(d)), distinct)
        same(lambda a, d=dim: tuple(a.min(d)), distinct)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.float64], **ids)
def test_arg(dtype):
    x = values(dtype, 9, 40)
    for function in (torch.argmax, torch.argmin):
        if dtype.is_floating_point:
            same(lambda a, f=function: f(a, 1), x.double().to(dtype) if dtype != torch.bfloat16 else x.float())
        same(function, torch.randperm(360).view(9, 40).to(dtype if dtype != torch.bfloat16 else torch.float32))


def test_first_of_equals():
    x = torch.tensor([[1.0, 3.0, 3.0], [2.0, 2.0, 1.0], [float("nan"), 5.0, float("nan")]])
    same(lambda a: a.argmax(1), x)
    same(lambda a: a.argmin(1), x)


@pytest.mark.parametrize("dtype", [torch.bool, torch.float32, torch.int64, torch.uint8], **ids)
def test_truth(dtype):
    for x in (values(dtype, 6, 8), torch.zeros(6, 8, dtype=dtype), torch.ones(6, 8, dtype=dtype)):
        for function in (torch.any, torch.all):
            same(function, x)
            same(lambda a, f=function: f(a, 1), x)
            same(lambda a, f=function: f(a, 0, keepdim=True), x)


def test_nan_and_empty():
    x = torch.tensor([[1.0, float("nan")], [2.0, 3.0]])
    same(lambda a: a.amax(1), x)
    same(lambda a: a.sum(1), x)
    same(lambda a: a.sum(0), torch.ones(0, 3))
    same(lambda a: a.mean(1), torch.ones(0, 3))
    with pytest.raises(RuntimeError):
        torch.ones(0, device="neuron").max()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64], **ids)
def test_product(dtype):
    same(lambda a: a.prod(1), values(dtype, 4, 5), scale=4)
    same(lambda a: a.prod(), values(dtype, 2, 5), scale=4)


@pytest.mark.parametrize("dtype", FLOATS, **ids)
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_softmax(dtype, dim):
    choose_fallback("softmax", dtype)
    x = values(dtype, 5, 6, 35)
    same(lambda a: F.softmax(a, dim), x, scale=4)
    same(lambda a: F.log_softmax(a, dim), x, scale=8)


def test_softmax_of_large_values():
    same(lambda a: F.softmax(a, 1), torch.tensor([[1000.0, 999.0, -1000.0]]), scale=4)
    same(lambda a: F.log_softmax(a, 1), torch.tensor([[1000.0, 999.0, -1000.0]]), scale=4)
    same(lambda a: F.softmax(a, 0), torch.tensor(3.0))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], **ids)
def test_layer_norm(dtype):
    x, w, b = values(dtype, 6, 10, 64), values(dtype, 64), values(dtype, 64)
    same(lambda x, w, b: F.layer_norm(x, (64,), w, b), x, w, b, scale=8)
    same(lambda x: F.layer_norm(x, (10, 64)), x, scale=8)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], **ids)
def test_norms(dtype):
    choose_fallback("norm", dtype)
    same(lambda a: torch.linalg.vector_norm(a), values(dtype, 5, 40), scale=4)
    same(lambda a: a.norm(dim=1), values(dtype, 5, 40), scale=4)
    same(lambda a: a.var(1), values(dtype, 5, 40), scale=8)
    same(lambda a: a.std(), values(dtype, 5, 40), scale=8)


def test_more_elements_than_an_int32_counts():
    ones = torch.ones(1, dtype=torch.int8, device="neuron").expand(2**31 + 5)
    assert ones.sum().item() == 2**31 + 5
    assert ones.max().item() == 1
