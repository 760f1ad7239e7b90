# SPDX-License-Identifier: Apache-2.0
"""The device as PyTorch sees it: autoload, names, current device, counters, generator, layering."""

import copy
import io
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

BACKEND = Path(__file__).resolve().parents[1]


def python(code: str, **env: str) -> subprocess.CompletedProcess:
    """Run code in a fresh interpreter."""
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_autoload_and_accelerator():
    done = python(
        "import torch\n"
        "assert torch.accelerator.is_available()\n"
        "assert str(torch.accelerator.current_accelerator()) == 'neuron'\n"
        "print(torch.ones(2, device='neuron') + 1)"
    )
    assert done.returncode == 0, done.stderr
    assert "tensor([2., 2.], device='neuron:0')" in done.stdout


def test_names():
    x = torch.ones(2, device="neuron")
    assert x.is_neuron and x.device == torch.device("neuron", 0) and x.device.type == "neuron"
    assert torch.ones(2).neuron().is_neuron
    assert not torch.ones(2).is_neuron
    assert torch.nn.Linear(2, 2).to("neuron").weight.is_neuron
    assert "neuron" in repr(x)


def test_count_and_current():
    assert torch.neuron.is_available() and torch.neuron.device_error() == ""
    count = torch.neuron.device_count()
    assert count == torch.accelerator.device_count() >= 1
    assert torch.neuron.current_device() == 0
    last = count - 1
    with torch.neuron.device(last):
        assert torch.neuron.current_device() == last
        assert torch.ones(1, device="neuron").device.index == last
    assert torch.neuron.current_device() == 0
    for wrong in (count, -2, 1000):
        with pytest.raises((RuntimeError, ValueError, TypeError)):
            torch.ones(1, device=f"neuron:{wrong}") if wrong >= 0 else torch.neuron.set_device(wrong)
    with pytest.raises(ValueError, match="expected a neuron device"):
        torch.neuron.set_device("cpu")
    assert torch.neuron.current_device() == 0


def test_visible_cores():
    done = python("import torch; print(torch.neuron.device_count())", NEURON_RT_VISIBLE_CORES="0")
    assert done.stdout.strip() == "1", done.stderr


def test_properties():
    facts = torch.neuron.get_device_properties()
    assert facts.name == torch.neuron.get_device_name() and facts.name.startswith("Trainium")
    assert facts.total_memory > 2**30 and facts.sbuf_bytes_per_partition > 0 and facts.transport in ("model", "accel")


def test_stats_count_work():
    torch.neuron.synchronize()
    x = torch.ones(256, 256, device="neuron")
    torch.neuron.synchronize()
    torch.neuron.stats(reset=True)
    y = x + x
    torch.neuron.synchronize()
    stats = torch.neuron.stats()
    assert stats["launches"] == 1
    assert sum(stats["instructions"].values()) > 0 and stats["instructions"]["vector"] > 0
    assert stats["device_ns"] > 0 and stats["dma_bytes"] >= 3 * x.nbytes
    z = y + y  # the same program again
    again = torch.neuron.stats()
    assert again["programs"] == stats["programs"] and again["program_cache_hits"] == stats["program_cache_hits"] + 1
    del z


def test_new_scalars_compile_nothing():
    x = torch.ones(32, device="neuron")
    x.mul(1.5).add(x, alpha=0.25)
    before = torch.neuron.stats()["programs"]
    for k in range(2, 6):
        x.mul(k + 0.5).add(x, alpha=k / 8)
    assert torch.neuron.stats()["programs"] == before


def test_generator():
    torch.manual_seed(5)
    a = torch.randn(8, device="neuron")
    torch.neuron.manual_seed(5)
    b = torch.randn(8, device="neuron")
    assert torch.equal(a.cpu(), b.cpu())
    assert not torch.equal(b.cpu(), torch.randn(8, device="neuron").cpu())
    generator = torch.Generator(device="neuron")
    generator.manual_seed(7)
    state = generator.get_state()
    c = torch.rand(4, generator=generator, device="neuron")
    generator.set_state(state)
    assert torch.equal(c.cpu(), torch.rand(4, generator=generator, device="neuron").cpu())
    assert generator.initial_seed() == 7 and generator.device.type == "neuron"


def test_generator_state():
    state = torch.neuron.get_rng_state()
    a = torch.rand(4, device="neuron")
    with torch.random.fork_rng(devices=[0], device_type="neuron"):
        torch.rand(9, device="neuron")
    b = torch.rand(4, device="neuron")
    torch.neuron.set_rng_state(state)
    assert torch.equal(torch.rand(4, device="neuron").cpu(), a.cpu())
    assert torch.equal(torch.rand(4, device="neuron").cpu(), b.cpu())
    torch.manual_seed(11)
    assert torch.neuron.initial_seed() == 11


@pytest.mark.skipif(torch.neuron.device_count() < 2, reason="needs two cores")
def test_two_cores():
    a = torch.arange(5.0, device="neuron:0")
    b = a.to("neuron:1")
    assert (b + 1).device.index == 1 and torch.equal((b + 1).cpu(), a.cpu() + 1)
    net = torch.nn.Linear(5, 2).to("neuron:1")
    net(b).sum().backward()
    assert net.weight.grad.device.index == 1
    with pytest.raises(RuntimeError, match="same device"):
        a + b


def test_workers_made_by_fork_do_not_touch_the_device():
    assert torch.ones(3, device="neuron").sum().item() == 3
    loader = torch.utils.data.DataLoader(torch.arange(20.0), batch_size=5, num_workers=2)
    assert [batch.to("neuron").sum().item() for batch in loader] == [10, 35, 60, 85]


def test_serialisation(tmp_path):
    x = {
        "a": torch.arange(6, device="neuron").view(2, 3),
        "b": torch.ones(4, device="neuron", dtype=torch.bfloat16)[1:],
    }
    torch.save(x, tmp_path / "x.pt")
    for target in (None, "cpu", "neuron"):
        y = torch.load(tmp_path / "x.pt", map_location=target)
        assert y["a"].device.type == (target or "neuron")
        assert all(torch.equal(x[k].cpu(), y[k].cpu()) for k in x)
    buffer = io.BytesIO()
    net = torch.nn.Linear(3, 2).to("neuron")
    torch.save(net.state_dict(), buffer)
    buffer.seek(0)
    other = torch.nn.Linear(3, 2).to("neuron")
    other.load_state_dict(torch.load(buffer))
    assert torch.equal(net.weight.cpu(), other.weight.cpu())


def test_copies_of_objects():
    x = torch.arange(4.0, device="neuron")
    y = copy.deepcopy(x)
    y.add_(1)
    assert x.tolist() == [0, 1, 2, 3] and y.tolist() == [1, 2, 3, 4]
    z = pickle.loads(pickle.dumps(x))
    assert z.device == x.device and torch.equal(z.cpu(), x.cpu())


def test_pinned_memory():
    x = torch.arange(1000.0).pin_memory()
    assert x.is_pinned() and not torch.ones(1).is_pinned()
    assert torch.equal(x.to("neuron", non_blocking=True).cpu(), x)
    loader = torch.utils.data.DataLoader(torch.arange(10.0), batch_size=5, pin_memory=True)
    assert [batch.to("neuron").sum().item() for batch in loader] == [10, 35]


def test_cpu_kernels_are_called_by_the_fallback_alone():
    """No operator of ours calls PyTorch's CPU kernels or reads a tensor's memory."""
    pattern = re.compile(r"cpu_fallback|call_fallback_fn|\.cpu\(\)|DispatchKey::CPU|data_ptr<|redispatch")
    for source in (BACKEND / "csrc").rglob("*.cpp"):
        if source.name != "Fallback.cpp":
            found = [line for line in source.read_text().splitlines() if pattern.search(line)]
            assert not found, f"{source}: {found}"


def test_memory_of_tensors_is_unreadable_for_the_cpu():
    code = (
        "import ctypes, torch\n"
        "x = torch.ones(4, device='neuron')\n"
        "assert x.data_ptr() != 0 and x[1:].data_ptr() == x.data_ptr() + 4\n"
        "ctypes.string_at(x.data_ptr(), 4)"
    )
    assert python(code).returncode == -11


def test_fork_is_refused_or_works():
    """A child made by fork after the device was used gets an error, never a hang."""
    code = (
        "import os, torch\n"
        "x = torch.ones(2, device='neuron'); x.sum().item()\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    try:\n"
        "        torch.ones(2, device='neuron').sum().item()\n"
        "    except RuntimeError as error:\n"
        "        os._exit(3 if 'fork' in str(error) else 4)\n"
        "    os._exit(0)\n"
        "raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))"
    )
    assert python(code).returncode == 3
