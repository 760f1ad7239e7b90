# SPDX-License-Identifier: Apache-2.0
"""Comparison of the device with PyTorch's CPU backend.

Tolerances are relative and absolute, by dtype of the result. Both sides compute half types in fp32
and round once, but activation functions and the order of sums differ: two units in the last place.
Integers and booleans must agree exactly. Chains of operators (scale 16 and more) also round in
between and cancel: for them the error is measured against the largest value of the result.
"""

from collections.abc import Callable
from typing import Any

import torch

TOLERANCE = {
    torch.float32: (2e-6, 2e-6),
    torch.bfloat16: (1.6e-2, 1e-5),
    torch.float16: (2e-3, 1e-5),
    torch.float64: (4e-15, 1e-300),
}
CHAIN = 16


def to(value: Any, device: str) -> Any:
    """A copy with all tensors on a device, so that functions may write to their arguments."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone().to(device)
    if isinstance(value, (list, tuple)):
        return type(value)(to(item, device) for item in value)
    return value


def assert_same(actual: Any, expected: Any, scale: float = 1) -> None:
    """Results of the device and of the CPU: dtype, shape and values; scale widens the tolerance."""
    if isinstance(expected, (list, tuple)):
        assert len(actual) == len(expected)
        for one, other in zip(actual, expected, strict=True):
            assert_same(one, other, scale)
        return
    if not isinstance(expected, torch.Tensor):
        assert actual == expected
        return
    assert actual.device.type == "neuron"
    rtol, atol = TOLERANCE.get(expected.dtype, (0, 0))
    if scale >= CHAIN and expected.numel():
        largest = expected.abs().nan_to_num(0, 0, 0).max().item()
        atol, scale = rtol * scale / 32 * largest, 4
    torch.testing.assert_close(actual.cpu(), expected, rtol=rtol * scale, atol=atol * scale, equal_nan=True)


def same(function: Callable[..., Any], *args: Any, scale: float = 1) -> None:
    """Call function on the CPU and on the device and compare."""
    expected = function(*to(args, "cpu"))
    assert_same(function(*to(args, "neuron")), expected, scale)
