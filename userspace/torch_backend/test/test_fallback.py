# SPDX-License-Identifier: Apache-2.0
"""Operators without a kernel: counted, warned of once, or refused."""

import os
import subprocess
import sys
import warnings

import pytest
import torch

neuron = torch.neuron


def test_error_names_operator_dtype_and_remedy():
    with pytest.raises(NotImplementedError) as error:
        torch.ones(3, 2, device="neuron").digamma()
    text = str(error.value)
    assert "digamma" in text and "Float [3, 2]" in text and "TORCH_NEURONX_FALLBACK" in text
    assert neuron.fallback_counts() == {}


def test_counts_and_results(fallback):
    x = torch.arange(1.0, 7.0).view(3, 2)
    for _ in range(3):
        y = x.to("neuron").digamma()
    assert y.device.type == "neuron" and torch.equal(y.cpu(), x.digamma())
    assert neuron.fallback_counts() == {"aten::digamma.out": 3}
    neuron.reset_fallback_counts()
    assert neuron.fallback_counts() == {}


def test_warns_once():
    neuron.set_fallback("warn")
    x = torch.ones(3, device="neuron")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        x.digamma(), x.digamma()
    assert len([w for w in caught if "aten::digamma" in str(w.message)]) == 1


def test_silent(fallback):
    torch.ones(3, device="neuron").digamma()
    assert sum(neuron.fallback_counts().values()) >= 1


def test_modes():
    for mode in ("warn", "silent", "error"):
        neuron.set_fallback(mode)
        assert neuron.get_fallback() == mode
    with pytest.raises(ValueError, match="sometimes"):
        neuron.set_fallback("sometimes")


@pytest.mark.parametrize("mode", ["error", "warn", "silent", "nonsense"])
def test_environment(mode):
    code = "import torch; torch.ones(2, device='neuron').digamma()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "TORCH_NEURONX_FALLBACK": mode},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert (done.returncode == 0) == (mode in ("warn", "silent"))
    assert ("runs on the CPU" in done.stderr) == (mode == "warn")
    if mode == "nonsense":
        assert "it may be warn, silent or error" in done.stderr


def test_results_in_place_and_out(fallback):
    x = torch.tensor([3.0, 1.0, 2.0], device="neuron")
    values, order = x.sort()
    assert values.tolist() == [1, 2, 3] and order.tolist() == [1, 2, 0]
    y = torch.zeros(2, 2, device="neuron")
    y.index_put_(
        (torch.tensor([0], device="neuron"), torch.tensor([1], device="neuron")), torch.tensor(5.0).to("neuron")
    )
    assert y.tolist() == [[0, 5], [0, 0]]
    assert x[torch.tensor([0, 2], device="neuron")].tolist() == [3, 2]
    assert x.normal_().device.type == "neuron"
    assert x[x > 100].numel() == 0


def test_convolutions_that_the_device_lacks(fallback):
    x = torch.randn(2, 3, 5, 6)
    net = torch.nn.ConvTranspose2d(3, 4, 3)
    expected = net(x)
    actual = net.to("neuron")(x.to("neuron").requires_grad_())
    torch.testing.assert_close(actual.cpu(), expected)
    actual.sum().backward()
    assert neuron.fallback_counts()["aten::convolution"] == 1
    assert neuron.fallback_counts()["aten::convolution_backward"] == 1


def test_float64_functions_fall_back_with_full_precision(fallback):
    x = torch.rand(5, dtype=torch.float64)
    assert torch.equal(x.to("neuron").exp().cpu(), x.exp())
    assert neuron.fallback_counts() == {"aten::exp.out": 1}


def test_printing_counts_nothing():
    text = repr(torch.tensor([1.5, 2.0], device="neuron"))
    assert text == "tensor([1.5000, 2.0000], device='neuron:0')"
    assert "..." in repr(torch.zeros(5000, device="neuron"))
    assert neuron.fallback_counts() == {}
