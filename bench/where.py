# SPDX-License-Identifier: Apache-2.0
"""Where a case's time goes: operators, compiler, launches, and what the virtual device computes.

A case runs in a process of its own, since the device reports on all that it did when the process ends:
its engines' times are the mean of all runs, the first and the set-up included.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ENGINES = ["tensor", "vector", "scalar", "gpsimd", "sync"]
PARTS = [*ENGINES, "transfers", "sequencing"]
# Of the process, ms a run; docs/benchmarks.md says what each is.
HOST = ["first", "compiler", "run", "operators", "launch"]


def device_parts(report: str) -> dict[str, float]:
    """ms by part out of the report's table of host time, docs/report.md; empty if there is none."""
    _, found, table = report.partition("\nhost time of all launches: ")
    if not found:
        return {}
    parts = dict.fromkeys(PARTS, 0.0)
    for line in table.splitlines()[2:]:
        *names, _, ms, _, _ = line.split()
        part = "transfers" if names[-1].startswith("dma") else names[0]
        parts[part] += float(ms)
    return parts


def host_parts(run: Callable[[], Any], neuron: Any, repeats: int) -> dict[str, float]:
    """ms a run of the host, by HOST; in the process that has the case to itself."""

    def timed(count: int) -> tuple[float, float]:
        start = time.perf_counter()
        for _ in range(count):
            run()
        enqueued = time.perf_counter()
        neuron.synchronize()
        return 1e3 * (enqueued - start), 1e3 * (time.perf_counter() - start)

    before = neuron.stats()
    first = timed(1)[1]
    after = neuron.stats()
    neuron.time_launches(True)
    enqueue, wall = timed(repeats)
    launch = (neuron.stats()["launch_ns"] - after["launch_ns"]) / 1e6
    compiler = (after["compile_ns"] - before["compile_ns"]) / 1e6
    operators = (enqueue - launch) / repeats
    return {"first": first, "compiler": compiler, "run": wall / repeats, "operators": operators,
            "launch": launch / repeats}  # fmt: skip


def measure(command: list[str], repeats: int) -> dict[str, float]:
    """ms by HOST and PARTS of a command that runs a case alone, 1 + repeats times, and prints host_parts()."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report"
        done = subprocess.run([sys.executable, *command], env=os.environ | {"NEURON_REPORT": str(report)},
                              capture_output=True, text=True, check=False)  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr}")
        host = json.loads(done.stdout.splitlines()[-1])
        text = report.read_text(encoding="utf-8") if report.exists() else ""
    return host | {part: ms / (1 + repeats) for part, ms in device_parts(text).items()}


def head() -> str:
    """First line of the table."""
    return " ".join([f"{'ms':20}", *(f"{name:>10}" for name in [*HOST, *PARTS])])


def row(name: str, parts: dict[str, float]) -> str:
    """A line of it; a device that is not virtual has no parts."""
    cells = (f"{parts[key]:10.3f}" if key in parts else " " * 10 for key in [*HOST, *PARTS])
    return " ".join([f"{name:20}", *cells])
