# SPDX-License-Identifier: Apache-2.0
"""Results of earlier runs, a JSON object a line, and what has become slower since.

The file is that of --history, else of NEURON_BENCH_HISTORY, else bench-history.jsonl in the cache that
env/run keeps outside the checkout (~/.cache/neuron on the host). Lines are only appended. Compared are
lines of one case, machine, number of threads and transport.
"""

import datetime
import json
import os
import platform
import statistics
import subprocess
from pathlib import Path
from typing import Any

# A case that takes more than this of its median is marked. Most machines are not alone with us: a slow
# hour of theirs slows the CPU backend too, so the ratio must have grown as much as the time.
SLOWER = 1.2
FEWEST = 3  # earlier runs that a mark takes
TOP = Path(__file__).resolve().parents[1]


def path_of(option: str | None) -> Path:
    """Where the history is."""
    if chosen := option or os.environ.get("NEURON_BENCH_HISTORY"):
        return Path(chosen)
    inside = Path("/var/cache/neuron")
    return (inside if inside.is_dir() else Path.home() / ".cache" / "neuron") / "bench-history.jsonl"


def machine() -> str:
    """Processor and how many the machine has; the name of a container's host tells nothing."""
    model = platform.machine()
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    return f"{model}, {os.cpu_count()} processors"


def revision() -> str:
    """Commit of the checkout, with a + if tracked files differ from it; empty outside of git."""
    git = ["git", "-c", f"safe.directory={TOP}", "-C", str(TOP)]
    try:
        done = subprocess.run([*git, "describe", "--always", "--abbrev=12", "--dirty=+", "--exclude=*"],
                              capture_output=True, text=True, check=True)  # fmt: skip
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


def line_of(result: dict[str, Any], threads: int, transport: str) -> dict[str, Any]:
    """What is kept of a result of bench.py."""
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "revision": revision(),
        "machine": machine(),
        "threads": threads,
        "transport": transport,
        "name": result["name"],
        "ms": result["neuron_median_s"] * 1e3,
        "ratio": result["ratio"],
    }


def positive(value: Any) -> bool:
    """Whether it can be divided by."""
    return isinstance(value, int | float) and value > 0


def load(path: Path) -> list[dict[str, Any]]:
    """All lines; what is no whole result, as a run that was killed leaves it, is skipped."""
    lines = []
    if path.exists():
        for text in path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                line = json.loads(text)
            except ValueError:
                continue
            if isinstance(line, dict) and "name" in line and all(positive(line.get(key)) for key in ("ms", "ratio")):
                lines.append(line)
    return lines


def former(lines: list[dict[str, Any]], now: dict[str, Any]) -> list[dict[str, Any]]:
    """Those that now is to be compared with."""
    same = ("name", "machine", "threads", "transport")
    return [line for line in lines if all(line.get(key) == now[key] for key in same)]


def change(lines: list[dict[str, Any]], now: dict[str, Any]) -> str:
    """Words on now beside the medians of its former lines; empty if there are none."""
    before = former(lines, now)
    if not before:
        return ""
    time, ratio = (now[key] / statistics.median(line[key] for line in before) for key in ("ms", "ratio"))
    words = f"{100 * (time - 1):+.0f} % of {len(before)}"
    return f"{words}  SLOWER" if len(before) >= FEWEST and min(time, ratio) > SLOWER else words


def append(path: Path, lines: list[dict[str, Any]]) -> None:
    """Adds lines in one write, so that two runs at once don't mix them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as out:
        out.write("".join(json.dumps(line) + "\n" for line in lines))
