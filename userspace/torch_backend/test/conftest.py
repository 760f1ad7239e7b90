# SPDX-License-Identifier: Apache-2.0
"""What all tests of the device share."""

import os
import warnings
from collections.abc import Iterator

import pytest
import torch

DEVICE = "neuron"
# What the compiler makes is tested, not what it made once.
os.environ["TORCH_NEURONX_CACHE"] = ""


@pytest.fixture(autouse=True)
def native() -> Iterator[None]:
    """An operator that would run on the CPU fails the test; tests of the fallback choose otherwise."""
    torch.manual_seed(0)
    torch.neuron.set_fallback("error")
    torch.neuron.reset_fallback_counts()
    yield
    torch.neuron.synchronize()


@pytest.fixture
def fallback() -> Iterator[None]:
    """Operators may run on the CPU, without a word."""
    torch.neuron.set_fallback("silent")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield
    torch.neuron.set_fallback("error")
