# SPDX-License-Identifier: Apache-2.0
"""Where the time of a benchmark goes: the table of the report, and a case that runs alone."""

import sys
from pathlib import Path

import pytest
import torch

BENCH = Path(__file__).resolve().parents[3] / "bench"
sys.path.insert(0, str(BENCH))
import where  # noqa: E402

REPORT = """1 programs, 1 launches, 3.000 us of device time in all

program 'x': 1 launches
  12.0 us  sync dma

host time of all launches: 10.000 ms
  engine  opcode                          times           ms
  sync    dma                                 2        4.000   40.0 %
  tensor  matmul                              1        2.000   20.0 %
  gpsimd  dma_gather                          1        1.000   10.0 %
  tensor  transpose                           1        0.500    5.0 %
          sequencing                          0        2.500   25.0 %
"""


def test_parts_of_the_report():
    parts = where.device_parts(REPORT)
    assert parts == dict.fromkeys(where.PARTS, 0.0) | {"tensor": 2.5, "transfers": 5.0, "sequencing": 2.5}
    assert sum(parts.values()) == 10
    assert where.device_parts("a device that has none") == {}


def test_a_case_alone():
    parts = where.measure([str(BENCH / "bench.py"), "--alone", "--where", "3", "small_add"], 3)
    assert all(parts[key] >= 0 for key in [*where.HOST, *where.PARTS])
    assert parts["first"] > parts["compiler"] > 0 and parts["run"] >= parts["operators"] + parts["launch"]
    assert parts["operators"] > 0 and parts["launch"] > 0
    assert parts["vector"] > 0 and parts["transfers"] > 0 and parts["tensor"] == 0
    with pytest.raises(RuntimeError, match="no case 'none'"):
        where.measure([str(BENCH / "bench.py"), "--alone", "--where", "3", "none"], 3)


def test_launches_are_timed_when_asked():
    def launch_ns():
        before = torch.neuron.stats()["launch_ns"]
        torch.ones(3, device="neuron") + 1
        return torch.neuron.stats()["launch_ns"] - before

    assert launch_ns() == 0
    torch.neuron.time_launches(True)
    assert launch_ns() > 0
    torch.neuron.time_launches(False)
    assert launch_ns() == 0
