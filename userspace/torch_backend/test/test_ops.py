# SPDX-License-Identifier: Apache-2.0
"""Elementwise operators against the CPU, over dtypes, broadcasting and layouts."""

import pytest
import torch
from compare import same
from torch.nn import functional as F

HALVES = [torch.bfloat16, torch.float16]
FLOATS = [torch.float32, *HALVES, torch.float64]
INTEGERS = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]
ALL = [*FLOATS, *INTEGERS, torch.bool]


def values(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    """Random numbers of both signs, small enough for products of every dtype."""
    if dtype == torch.bool:
        return torch.rand(shape) < 0.5
    if dtype.is_floating_point:
        return torch.randn(shape, dtype=torch.float64).to(dtype)
    low = 0 if dtype == torch.uint8 else -9
    return torch.randint(low, 10, shape, dtype=dtype)


def nonzero(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    x = values(dtype, *shape)
    return torch.where(x == 0, torch.ones_like(x), x)


ids = {"ids": lambda d: str(d).removeprefix("torch.") if isinstance(d, torch.dtype) else None}

ARITHMETIC = {
    "add": lambda a, b: a + b,
    "add_alpha": lambda a, b: torch.add(a, b, alpha=3),
    "mul": lambda a, b: a * b,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "eq": torch.eq,
    "ne": torch.ne,
    "lt": torch.lt,
    "le": torch.le,
    "gt": torch.gt,
    "ge": torch.ge,
    "logical_and": torch.logical_and,
    "logical_or": torch.logical_or,
    "logical_xor": torch.logical_xor,
    "where": lambda a, b: torch.where(a > b, a, b),
}


@pytest.mark.parametrize("name", ARITHMETIC)
@pytest.mark.parametrize("dtype", ALL, **ids)
def test_binary(name, dtype):
    same(ARITHMETIC[name], values(dtype, 5, 7), values(dtype, 5, 7))


@pytest.mark.parametrize("dtype", [d for d in ALL if d != torch.bool], **ids)
def test_subtraction(dtype):
    same(torch.sub, values(dtype, 4, 9), values(dtype, 4, 9))
    same(lambda a, b: torch.sub(a, b, alpha=2), values(dtype, 4, 9), values(dtype, 4, 9))
    same(lambda a: 3 - a, values(dtype, 4, 9))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool], **ids)
@pytest.mark.parametrize(
    "shapes", [((3, 1), (1, 4)), ((4,), (2, 3, 4)), ((), (3, 2)), ((1, 5, 1), (2, 1, 3)), ((), ())]
)
def test_broadcasting(dtype, shapes):
    same(lambda a, b: a + b, *(values(dtype, *shape) for shape in shapes))


@pytest.mark.parametrize("dtype", ALL, **ids)
def test_division(dtype):
    same(torch.true_divide, values(dtype, 6, 5), nonzero(dtype, 6, 5))


@pytest.mark.parametrize("dtype", INTEGERS, **ids)
def test_integer_division(dtype):
    for mode in ("trunc", "floor"):
        same(lambda a, b, m=mode: torch.div(a, b, rounding_mode=m), values(dtype, 8, 8), nonzero(dtype, 8, 8))


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8, torch.bool], **ids)
def test_shifts(dtype):
    if dtype != torch.bool:
        same(lambda a, b: torch.bitwise_left_shift(a, b.abs() % 5), values(dtype, 5, 5), values(dtype, 5, 5))
        same(lambda a, b: torch.bitwise_right_shift(a, b.abs() % 5), values(dtype, 5, 5), values(dtype, 5, 5))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.int32], **ids)
def test_remainders(dtype):
    a, b = values(dtype, 8, 8), nonzero(dtype, 8, 8)
    same(torch.remainder, a, b, scale=4)
    same(torch.fmod, a, b, scale=4)
    same(lambda a, b: a // b, a, b)
    same(lambda a: a % 3, a, scale=4)
    same(lambda a, b: torch.clamp(a, b - 1, b + 1), a, b)
    same(lambda a, b: torch.clamp(a, min=b), a, b)
    if dtype.is_floating_point:
        same(torch.xlogy, torch.where(a > 0, a, 0), b.abs(), scale=8)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8, torch.bool], **ids)
def test_bits(dtype):
    for op in (torch.bitwise_and, torch.bitwise_or, torch.bitwise_xor):
        same(op, values(dtype, 5, 5), values(dtype, 5, 5))
    same(torch.bitwise_not, values(dtype, 5, 5))


UNARY = {
    "neg": torch.neg, "abs": torch.abs, "sign": torch.sign, "square": torch.square,
    "relu": torch.relu, "floor": torch.floor, "ceil": torch.ceil, "round": torch.round, "trunc": torch.trunc,
    "exp": torch.exp, "sigmoid": torch.sigmoid, "tanh": torch.tanh, "erf": torch.erf, "sin": torch.sin,
    "cos": torch.cos, "atan": torch.atan, "expm1": torch.expm1, "silu": F.silu, "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "mish": F.mish, "reciprocal": torch.reciprocal,
    "isnan": torch.isnan, "isinf": torch.isinf, "isfinite": torch.isfinite, "logical_not": torch.logical_not,
    "clamp": lambda x: x.clamp(-0.5, 0.75), "clamp_min": lambda x: x.clamp(min=0.1),
    "clamp_max": lambda x: x.clamp(max=0.1), "hardtanh": F.hardtanh, "leaky_relu": F.leaky_relu, "elu": F.elu,
    "pow2": lambda x: x**2, "pow3": lambda x: x**3, "softplus": F.softplus, "hardswish": F.hardswish,
    "hardsigmoid": F.hardsigmoid, "relu6": F.relu6, "log_sigmoid": F.logsigmoid, "exp2": torch.exp2, "sgn": torch.sgn,
}  # fmt: skip
POSITIVE = {
    "log": torch.log, "log1p": torch.log1p, "sqrt": torch.sqrt, "rsqrt": torch.rsqrt, "pow": lambda x: x**1.7,
    "pow_half": lambda x: x**0.5, "pow_inverse": lambda x: x**-1, "log2": torch.log2, "log10": torch.log10,
}  # fmt: skip


# Functions that the device computes in fp64 too; the others go to the CPU rather than lose precision.
FP64 = {
    "neg", "abs", "sign", "square", "relu", "reciprocal", "isnan", "isinf", "isfinite", "logical_not", "clamp",
    "clamp_min", "clamp_max", "hardtanh", "leaky_relu", "pow2", "pow3", "hardswish", "hardsigmoid", "relu6",
    "pow_inverse",
}  # fmt: skip


def choose_fallback(name: str, dtype: torch.dtype) -> None:
    if dtype == torch.float64 and name not in FP64:
        torch.neuron.set_fallback("silent")


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", FLOATS, **ids)
def test_unary(name, dtype):
    choose_fallback(name, dtype)
    same(UNARY[name], values(dtype, 6, 33), scale=4)


@pytest.mark.parametrize("name", POSITIVE)
@pytest.mark.parametrize("dtype", FLOATS, **ids)
def test_positive(name, dtype):
    choose_fallback(name, dtype)
    same(POSITIVE[name], values(dtype, 6, 33).abs() + 0.1, scale=4)


@pytest.mark.parametrize("name", ["neg", "abs", "sign", "square", "relu", "exp", "sigmoid", "clamp", "pow2", "isnan"])
@pytest.mark.parametrize("dtype", INTEGERS, **ids)
def test_unary_integers(name, dtype):
    if name == "clamp":
        same(lambda x: x.clamp(1, 5), values(dtype, 4, 7))
    else:
        same(UNARY[name], values(dtype, 4, 7), scale=4)


@pytest.mark.parametrize("dtype", FLOATS, **ids)
def test_special_values(dtype):
    x = torch.tensor([0.0, -0.0, float("inf"), -float("inf"), float("nan"), 1.0, -1.0], dtype=dtype)
    for name in ("neg", "abs", "relu", "exp", "sigmoid", "tanh", "isnan", "isinf", "isfinite", "clamp", "reciprocal"):
        choose_fallback(name, dtype)
        same(UNARY[name], x, scale=4)
    for name in ("maximum", "minimum", "eq", "lt", "ge", "add", "mul"):
        same(ARITHMETIC[name], x.view(-1, 1), x.view(1, -1))


@pytest.mark.parametrize("dtype", FLOATS, **ids)
def test_ternary(dtype):
    a, b, c = (values(dtype, 5, 6) for _ in range(3))
    same(lambda a, b, c: torch.addcmul(a, b, c, value=0.3), a, b, c)
    same(lambda a, b, c: torch.addcdiv(a, b, c, value=0.3), a, b, c.abs() + 1)
    same(lambda a, b: torch.lerp(a, b, 0.3), a, b)
    same(lambda a, b: torch.lerp(a, b, 0.9), a, b)
    same(torch.lerp, a, b, c.sigmoid())


@pytest.mark.parametrize("dtype", ALL, **ids)
def test_fill(dtype):
    for make in (torch.zeros, torch.ones, torch.empty):
        x = make(3, 4, dtype=dtype, device="neuron")
        assert x.dtype == dtype and x.shape == (3, 4)
    same(lambda x: x.fill_(1), values(dtype, 3, 4))
    same(lambda x: x.zero_(), values(dtype, 3, 4))
    same(lambda x: torch.full_like(x, 1), values(dtype, 3, 4))
    same(lambda x: x.masked_fill(x > 0, 1), values(dtype, 3, 4))
    same(lambda x, v: x.masked_fill(x > 0, v), values(dtype, 3, 4), torch.ones((), dtype=dtype))


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.int32, torch.float64], **ids)
def test_ranges(dtype):
    for args in ((7,), (2, 9), (3, 30, 4), (5, -5, -2)):
        expected = torch.arange(*args, dtype=dtype)
        assert torch.equal(torch.arange(*args, dtype=dtype, device="neuron").cpu(), expected)


def test_int64_is_not_narrowed():
    big = torch.tensor([2**53 + 1, -(2**62) - 3, 2**40 + 7])
    same(lambda a: a + 1, big)
    same(lambda a: a * 3, big)
    same(lambda a: a > 2**53, big)
    same(lambda a: a.sum(), big)
    same(lambda a: a // 7, big)


def test_float64_is_not_narrowed():
    x = torch.tensor([1 + 2**-50, 1e300, 1e-300], dtype=torch.float64)
    same(lambda a: a * 3 - a, x)
    same(lambda a: a - 1, x)


PAIRS = [
    (torch.int64, torch.float32), (torch.bfloat16, torch.float32), (torch.float16, torch.bfloat16),
    (torch.int32, torch.int64), (torch.bool, torch.int64), (torch.bool, torch.float32), (torch.uint8, torch.int8),
    (torch.float32, torch.float64),
]  # fmt: skip


@pytest.mark.parametrize("pair", PAIRS, ids=lambda p: "-".join(str(d).removeprefix("torch.") for d in p))
def test_promotion(pair):
    same(lambda a, b: a + b, values(pair[0], 3, 4), values(pair[1], 3, 4))
    same(lambda a, b: a * b, values(pair[0], 3, 4), values(pair[1], 3, 4))
    same(lambda a, b: a < b, values(pair[0], 3, 4), values(pair[1], 3, 4))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.int32, torch.bool], **ids)
def test_python_scalars(dtype):
    x = values(dtype, 3, 4)
    same(lambda a: a + 2, x)
    same(lambda a: a * 2.5, x)
    same(lambda a: 1 / (a.float().abs() + 1), x)
    same(lambda a: a > 0.5, x)


def test_empty_and_scalar_tensors():
    for shape in ((0,), (3, 0), (0, 4, 2), ()):
        same(lambda a: (a + 1).exp() * 2, values(torch.float32, *shape), scale=4)
        same(lambda a: a.sum(), values(torch.float32, *shape))


def test_out_and_in_place():
    a, b = values(torch.float32, 4, 5), values(torch.float32, 4, 5)
    same(lambda a, b: torch.add(a, b, out=torch.empty_like(a)), a, b)
    same(lambda a, b: a.add_(b, alpha=2).mul_(b).sub_(1), a.clone(), b)
    same(lambda a: a.add_(a), a.clone())
    same(lambda a: a.t().add_(1), a.clone())
    same(lambda a: a[:, ::2].mul_(3), a.clone())
    for device in ("cpu", "neuron"):
        c = a.to(device).flatten()
        with pytest.raises(RuntimeError, match="single memory location"):
            c[1:].add_(c[:-1])
    with pytest.raises(RuntimeError):
        torch.empty(3, dtype=torch.int64, device="neuron").add_(1.5)


@pytest.mark.parametrize("shape", [(1,), (127,), (129, 3), (128, 128), (300, 257), (2, 3, 4, 5, 6), (1, 1, 70000)])
def test_shapes(shape):
    x = values(torch.float32, *shape)
    same(lambda a: a * 2 + a, x)
    if len(shape) > 1:
        same(lambda a: a.transpose(0, -1) + 1, x)


def test_errors_name_the_mistake():
    a = torch.ones(3, device="neuron")
    with pytest.raises(RuntimeError, match="two bool tensors is not supported"):
        (a > 0) - (a > 1)
    with pytest.raises(RuntimeError, match="must not be a floating point"):
        torch.add(a.long(), a.long(), alpha=0.5)
    with pytest.raises(RuntimeError, match="can't be cast"):
        a.long().mul_(a)
    with pytest.raises(RuntimeError, match="must match the size"):
        a + torch.ones(4, device="neuron")
    with pytest.raises(RuntimeError, match="same device|all tensors"):
        a + torch.ones(3)
