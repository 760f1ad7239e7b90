# SPDX-License-Identifier: Apache-2.0
"""The example: trains, runs nothing on the CPU, gives the same losses every time."""

import os
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[3]


def run(*args: str, **env: str) -> str:
    done = subprocess.run(
        [sys.executable, *args],
        env={**os.environ, **env},
        cwd=TOP,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def losses(path: Path) -> list[float]:
    return [float.fromhex(line) for line in path.read_text().splitlines()]


def test_training(tmp_path):
    script = ("examples/digits.py", "--epochs", "2", "--steps", "12", "--losses")
    out = run("-m", "torch_neuronx.run", *script, str(tmp_path / "a"))
    assert "in training steps nothing on the CPU, over 24 steps" in out
    assert "device time" in out and "launches" in out and "instructions" in out
    run(*script, str(tmp_path / "b"), TORCH_NEURONX_FALLBACK="error")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    run(*script, str(tmp_path / "cpu"), "--device", "cpu")
    ours, cpu = losses(tmp_path / "a"), losses(tmp_path / "cpu")
    assert len(ours) == len(cpu) == 24
    assert abs(ours[0] - cpu[0]) < 1e-5
    assert all(abs(a - b) < 0.02 for a, b in zip(ours, cpu, strict=True))
    assert ours[-1] < 0.7 * ours[0]


def test_the_report_can_be_asked_for_by_environment():
    out = run("-c", "import torch; print((torch.ones(3, device='neuron') + 1).sum().item())", TORCH_NEURONX_REPORT="1")
    assert "launches" in out and "instructions" in out
