# SPDX-License-Identifier: Apache-2.0
"""Runs a script and then reports what it did on the device: python -m torch_neuronx.run SCRIPT [ARG...].

With TORCH_NEURONX_REPORT=1 in the environment any process reports when it ends.

Operators that ran on the CPU are told apart: those inside a training step, which is from the first
forward pass of a module in training mode to the end of the optimizer's step, and the rest.
"""

import atexit
import runpy
import sys
import time

import torch
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.optim.optimizer import register_optimizer_step_post_hook


class _Steps:
    """Counts the fallbacks of training steps."""

    def __init__(self) -> None:
        self.steps = 0
        self.inside: dict[str, int] = {}
        self._mark: dict[str, int] = {}
        register_optimizer_step_post_hook(self._after_step)
        register_module_forward_pre_hook(self._before_forward)
        self._open = False

    def _before_forward(self, module: torch.nn.Module, args: object) -> None:
        if module.training and not self._open:
            self._open = True
            self._mark = torch.neuron.fallback_counts()

    def _after_step(self, *args: object) -> None:
        self.steps += 1
        self._open = False
        for name, count in torch.neuron.fallback_counts().items():
            if more := count - self._mark.get(name, 0):
                self.inside[name] = self.inside.get(name, 0) + more


def report(steps: _Steps, start: float) -> None:
    """Print the counters of all devices that did something."""
    seconds = time.monotonic() - start
    print("--- neuron")
    for index in range(torch.neuron.device_count()):
        torch.neuron.synchronize(index)
        stats = torch.neuron.stats(index)
        if not stats["launches"]:
            continue
        facts = torch.neuron.get_device_properties(index)
        kind = "virtual " if facts.virtual else ""
        print(f"device            neuron:{index}, {kind}{facts.name}, {facts.transport} transport")
        took = f"{stats['device_ns'] / 1e6:.2f} ms, as the device timed it ({seconds:.1f} s on the clock)"
        print(f"device time       {took}")
        print(f"launches          {stats['launches']}, of {stats['programs']} programs")
        print("instructions      " + ", ".join(f"{k} {v}" for k, v in stats["instructions"].items()))
        print(f"moved             {stats['dma_bytes']} bytes by programs, {stats['to_device_bytes']} to the device,"
              f" {stats['to_host_bytes']} to the host")  # fmt: skip
    counts = torch.neuron.fallback_counts()
    print("on the CPU        " + (", ".join(f"{k} {v}" for k, v in counts.items()) or "nothing"))
    inside = ", ".join(f"{k} {v}" for k, v in steps.inside.items()) or "nothing"
    print(f"in training steps {inside} on the CPU, over {steps.steps} steps")


def report_at_exit() -> None:
    """Report when this process ends."""
    atexit.register(report, _Steps(), time.monotonic())


def main() -> None:
    """Run the script named on the command line."""
    if len(sys.argv) < 2:
        sys.exit("usage: python -m torch_neuronx.run SCRIPT [ARG...]")
    sys.argv = sys.argv[1:]
    steps = _Steps()
    start = time.monotonic()
    runpy.run_path(sys.argv[0], run_name="__main__")
    report(steps, start)


if __name__ == "__main__":
    main()
