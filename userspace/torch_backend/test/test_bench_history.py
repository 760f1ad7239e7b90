# SPDX-License-Identifier: Apache-2.0
"""The history of benchmarks: what is compared with what, and what a bad file does."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "bench"))
import history


def line(ms: float, **other: object) -> dict[str, object]:
    return {"name": "add", "machine": "m", "threads": 2, "transport": "model", "ms": ms, "ratio": 1.0} | other


def test_lines_come_back(tmp_path):
    path = tmp_path / "new" / "h"
    assert history.load(path) == []
    history.append(path, [line(1), line(2)])
    history.append(path, [line(3)])
    assert [one["ms"] for one in history.load(path)] == [1, 2, 3]


def test_lines_that_are_none_are_skipped(tmp_path):
    path = tmp_path / "h"
    path.write_bytes(b'{"name": "add", "ms": 1, "ratio": 2}\n{"name": "add"\n[]\n7\n{"ms": 2, "ratio": 1}\n'
                     b'{"name": "add", "ms": "x", "ratio": 1}\n{"name": "add", "ms": 3, "ratio": 0}\n\xff')  # fmt: skip
    assert [one["ms"] for one in history.load(path)] == [1]


def test_change_is_to_the_median():
    lines = [line(10), line(20), line(1000)]
    assert history.change(lines, line(22)) == "+10 % of 3"
    assert history.change(lines, line(15)) == "-25 % of 3"


def test_slower_is_both_time_and_ratio():
    lines = [line(20)] * 3
    assert history.change(lines, line(24, ratio=1.2)) == "+20 % of 3"
    assert history.change(lines, line(24.2, ratio=1.21)) == "+21 % of 3  SLOWER"
    assert history.change(lines, line(40, ratio=1.0)) == "+100 % of 3", "so was the CPU"
    assert history.change(lines, line(20, ratio=2.0)) == "+0 % of 3", "the CPU was faster"
    assert history.change(lines[:2], line(40, ratio=2.0)) == "+100 % of 2", "too few to tell"


def test_only_the_like_is_compared():
    other = [line(1, machine="n"), line(1, threads=1), line(1, transport="accel"), line(1, name="mul")]
    assert history.change(other, line(9)) == ""
    assert history.change([*other, line(9)], line(9)) == "+0 % of 1"


def test_where_it_is(monkeypatch):
    monkeypatch.delenv("NEURON_BENCH_HISTORY", raising=False)
    top = Path(__file__).resolve().parents[3]
    assert top not in history.path_of(None).parents
    monkeypatch.setenv("NEURON_BENCH_HISTORY", "/e")
    assert history.path_of(None) == Path("/e")
    assert history.path_of("/o") == Path("/o")


def test_what_a_line_holds():
    made = history.line_of({"name": "add", "neuron_median_s": 0.002, "ratio": 0.5}, 2, "model")
    assert made["ms"] == 2 and made["ratio"] == 0.5 and made["threads"] == 2 and made["machine"]
    assert history.former([made], made) == [made]
