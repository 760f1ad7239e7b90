# SPDX-License-Identifier: Apache-2.0
"""Time to make and load programs: the compiler's part of what an operator takes when it is new.

One operator: each of OPERATORS, on sizes that nothing has met in this process. A GPT: all programs of the
first training step of bench.py's gpt_step, in a process of its own. Both without programs kept on disk.
"""

from collections.abc import Callable
from typing import Any

import torch
import where

# Seconds that the project allows: the median operator, and the whole step.
TARGETS = {"generate_op": 200e-6, "generate_gpt": 2.0}


def empty(*shape: int) -> torch.Tensor:
    """An operand."""
    return torch.empty(shape, device="neuron")


# Each needs one program for n rows; empty operands need none.
OPERATORS: dict[str, Callable[[int], Any]] = {
    "add": lambda n: empty(n, 64) + empty(n, 64),
    "add of a row": lambda n: empty(n, 64) + empty(64),
    "gelu": lambda n: torch.nn.functional.gelu(empty(n, 64)),
    "sum": lambda n: empty(n, 64).sum(0),
    "softmax": lambda n: torch.softmax(empty(64, n), 1),
    "layer norm": lambda n: torch.nn.functional.layer_norm(empty(64, n), (n,)),
    "matmul": lambda n: empty(n, 96) @ empty(96, n),
    "transposed copy": lambda n: empty(n, 64).t().contiguous(),
    "comparison": lambda n: empty(n, 64) > 0,
    "cumsum": lambda n: empty(n, 64).cumsum(1),
}


def operators(neuron: Any, sizes: int) -> list[float]:
    """Seconds for each operator at so many sizes."""
    times = []
    for n in range(1001, 1001 + 2 * sizes, 2):
        for name, operator in OPERATORS.items():
            before = neuron.stats()
            operator(n)
            after = neuron.stats()
            if after["programs"] == before["programs"]:
                raise RuntimeError(f"{name} of {n} rows has made no program: its size isn't new")
            times.append((after["compile_ns"] - before["compile_ns"]) / 1e9)
    neuron.synchronize()
    return times


def gpt(command: list[str], runs: int) -> list[float]:
    """Seconds for the GPT's step in each of so many processes; the command runs its case alone, as where.py says."""
    return [where.measure(command, 1)["compiler"] / 1e3 for _ in range(runs)]
