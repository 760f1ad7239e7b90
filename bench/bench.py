# SPDX-License-Identifier: Apache-2.0
"""Times of device neuron beside PyTorch's CPU backend: same process, same processors, in turns.

Each case runs on both devices in alternating rounds, so that what else the machine does meets both.
A round repeats the case until it takes long enough to time and ends when the device is done. Printed
are the median of the rounds, the spread (10th to 90th percentile) and the ratio neuron / CPU, below 1
when neuron is faster; then a JSON object a line with the same numbers in seconds. On the virtual
Trainium these are times of the model; device_s is what the device would have taken. With --history
each row also says how neuron's time compares with the median of earlier runs, and SLOWER if a case
has lost more than a fifth: see history.py.
"""

import argparse
import json
import os
import runpy
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

DIGITS = Path(__file__).parents[1] / "examples" / "digits.py"


class Times(NamedTuple):
    """Seconds for one run of a case."""

    median: float
    low: float
    high: float


def parse(names: list[str]) -> argparse.Namespace:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=0, help="processors to use (default all that this process may)")
    parser.add_argument("--rounds", type=int, default=9, help="rounds a device (default 9)")
    parser.add_argument("--round-ms", type=float, default=100, help="shortest round, in ms (default 100)")
    parser.add_argument("--history", nargs="?", const="", metavar="FILE",
                        help="compare with the runs in FILE and add this one (default: see history.py)")  # fmt: skip
    parser.add_argument("--where", type=int, metavar="RUNS", help="instead: where neuron's time goes, over RUNS runs")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)  # a case, for --where
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"only these cases, of {', '.join(names)}")
    args = parser.parse_args()
    if args.where is not None and args.where < 1:
        parser.error(f"--where {args.where}: at least one run")
    for name in args.cases:
        if name not in names:
            parser.error(f"no case '{name}'; there are {', '.join(names)}")
    return args


def limit_processors(count: int) -> int:
    """Keep the process on count processors; to be called before anything starts a thread."""
    usable = sorted(os.sched_getaffinity(0))
    count = min(count or len(usable), len(usable))
    os.sched_setaffinity(0, usable[:count])
    return count


# --- cases: each makes its operands on a device and returns what to time


def digits_step(device: str) -> Callable[[], Any]:
    """Forward, backward and AdamW step of examples/digits.py, batch of 64."""
    torch.manual_seed(0)
    net = runpy.run_path(str(DIGITS))["Net"]().to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    criterion = torch.nn.CrossEntropyLoss()
    x = torch.rand(64, 1, 8, 8).to(device)
    y = torch.randint(10, (64,)).to(device)

    def step() -> None:
        optimizer.zero_grad()
        criterion(net(x), y).backward()
        optimizer.step()

    return step


def gpt_step(device: str) -> Callable[[], Any]:
    """Forward, backward and AdamW step of a GPT of 3.3 million parameters, 8 x 128 tokens."""
    torch.manual_seed(0)
    net = models.Gpt().to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    text, following = (torch.randint(models.TOKENS, (8, 128)).to(device) for _ in range(2))

    def step() -> None:
        optimizer.zero_grad()
        models.gpt_loss(net(text), following).backward()
        optimizer.step()

    return step


def resnet_step(device: str) -> Callable[[], Any]:
    """Forward, backward and SGD step of ResNet-18, 8 x 3 x 224 x 224."""
    torch.manual_seed(0)
    net = models.ResNet18().to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    images, labels = torch.randn(8, 3, 224, 224).to(device), torch.randint(1000, (8,)).to(device)

    def step() -> None:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(images), labels).backward()
        optimizer.step()

    return step


def matmul(size: int, dtype: str) -> Callable[[str], Callable[[], Any]]:
    """Product of two square matrices."""

    def make(device: str) -> Callable[[], Any]:
        a, b = (torch.randn(size, size).to(getattr(torch, dtype)).to(device) for _ in range(2))
        return lambda: a @ b

    return make


def big(function: Callable[[Any], Any]) -> Callable[[str], Callable[[], Any]]:
    """A function of a 4096 x 4096 fp32 matrix."""

    def make(device: str) -> Callable[[], Any]:
        x = torch.randn(4096, 4096).to(device)
        return lambda: function(x)

    return make


def big_add(device: str) -> Callable[[], Any]:
    """Sum of two 4096 x 4096 fp32 matrices into a third."""
    a, b = (torch.randn(4096, 4096).to(device) for _ in range(2))
    out = torch.empty_like(a)
    return lambda: torch.add(a, b, out=out)


def small_add(device: str) -> Callable[[], Any]:
    """Sum of two 8 x 8 matrices."""
    a, b = (torch.randn(8, 8).to(device) for _ in range(2))
    return lambda: a + b


CASES: dict[str, Callable[[str], Callable[[], Any]]] = {
    "digits_step": digits_step,
    "gpt_step": gpt_step,
    "resnet18_step": resnet_step,
    "matmul_1024_fp32": matmul(1024, "float32"),
    "matmul_1024_bf16": matmul(1024, "bfloat16"),
    "matmul_2048_fp32": matmul(2048, "float32"),
    "matmul_2048_bf16": matmul(2048, "bfloat16"),
    "add_4096_fp32": big_add,
    "gelu_4096_fp32": big(lambda x: torch.nn.functional.gelu(x)),
    "softmax_4096_fp32": big(lambda x: torch.softmax(x, 1)),
    "layer_norm_4096_fp32": big(lambda x: torch.nn.functional.layer_norm(x, (4096,))),
    "small_add": small_add,  # until the results are there
    "small_add_dispatch": small_add,  # until the last call has returned
}


GENERATED = ["generate_op", "generate_gpt"]  # the compiler's time, of generate.py; PyTorch's CPU backend has none
NAMES = [*CASES, *GENERATED]


def settle(device: str) -> None:
    """Wait for the device's work."""
    if device != "cpu":
        torch.accelerator.synchronize()


def round_of(run: Callable[[], Any], device: str, repeats: int, wait: bool) -> float:
    """Seconds a run, over one round."""
    settle(device)
    start = time.perf_counter()
    for _ in range(repeats):
        run()
    if wait:
        settle(device)
    seconds = time.perf_counter() - start
    settle(device)
    return seconds / repeats


def calibrate(run: Callable[[], Any], device: str, seconds: float) -> int:
    """Runs that make a round; warms up on the way."""
    round_of(run, device, 2, True)
    return max(1, min(1000, round(seconds / round_of(run, device, 3, True))))


def summary(times: list[float]) -> Times:
    """Median, 10th and 90th percentile."""
    tenths = statistics.quantiles(times, n=10, method="inclusive")
    return Times(statistics.median(times), tenths[0], tenths[-1])


def measure(name: str, rounds: int, seconds: float) -> dict[str, Any]:
    """One case on both devices."""
    wait = not name.endswith("_dispatch")
    runs = {device: CASES[name](device) for device in ("cpu", "neuron")}
    repeats = {device: calibrate(run, device, seconds) for device, run in runs.items()}
    neuron = torch.get_device_module("neuron")
    before = neuron.stats()["device_ns"]
    times: dict[str, list[float]] = {device: [] for device in runs}
    for _ in range(rounds):
        for device, run in runs.items():
            times[device].append(round_of(run, device, repeats[device], wait))
    device_s = (neuron.stats()["device_ns"] - before) / 1e9 / rounds / repeats["neuron"]
    result: dict[str, Any] = {"name": name}
    for device, values in times.items():
        result |= {f"{device}_{key}_s": value for key, value in summary(values)._asdict().items()}
    return result | {"ratio": result["neuron_median_s"] / result["cpu_median_s"], "device_s": device_s}


def generation(name: str, rounds: int) -> dict[str, Any]:
    """A row of generate.py; its ratio is that to the target."""
    if name == "generate_op":
        times = generate.operators(torch.get_device_module("neuron"), max(rounds, 2))
    else:
        alone = [__file__, "--threads", str(threads), "--alone", "--where", "1", "gpt_step"]
        times = generate.gpt(alone, max(2, rounds // 3))
    result = {f"neuron_{key}_s": value for key, value in summary(times)._asdict().items()}
    target = generate.TARGETS[name]
    return {"name": name, "target_s": target} | result | {"ratio": result["neuron_median_s"] / target}


def where_it_goes() -> None:
    """The table of where.py, or one case of it."""
    if args.alone:
        run = CASES[args.cases[0]]("neuron")
        print(json.dumps(where.host_parts(run, torch.get_device_module("neuron"), args.where)))
        return
    print(where.head())
    results = []
    for name in [name for name in args.cases or CASES if name in CASES and not name.endswith("_dispatch")]:
        command = [__file__, "--threads", str(threads), "--alone", "--where", str(args.where), name]
        results.append({"name": name} | where.measure(command, args.where))
        print(where.row(name, results[-1]), flush=True)
    for result in results:
        print(json.dumps(result))


def human(seconds: float) -> str:
    """Seconds in a unit that suits them."""
    for unit, size in (("s", 1), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def row(result: dict[str, Any]) -> str:
    """A line of the table."""
    cells = [f"{result['name']:20}"]
    if "target_s" in result:
        cells.append(f"{human(result['target_s']):>9} (target)".ljust(32))
    for device in ("cpu", "neuron") if len(cells) == 1 else ("neuron",):
        median, low, high = (human(result[f"{device}_{key}_s"]) for key in Times._fields)
        cells.append(f"{median:>9} ({low} to {high})".ljust(32))
    device_time = human(result["device_s"]) if "device_s" in result else ""
    return " ".join([*cells, f"{result['ratio']:8.2f}", f"{device_time:>10}"])


def main() -> None:
    """Measure, then print the table and the JSON lines."""
    neuron = torch.get_device_module("neuron")
    neuron.set_fallback("error")
    if args.where:
        where_it_goes()
        return
    facts = neuron.get_device_properties()
    print(f"{threads} processors; {facts.name}{', virtual' if facts.virtual else ''}, {facts.transport} transport")
    print(f"{'':20} {'CPU: median (spread)':32} {'neuron: median (spread)':32} {'ratio':>8} {'device':>10}")
    path = None if args.history is None else history.path_of(args.history)
    former = history.load(path) if path else []
    results, lines, slower = [], [], []
    for name in args.cases or NAMES:
        new = name in GENERATED
        results.append(generation(name, args.rounds) if new else measure(name, args.rounds, args.round_ms / 1e3))
        lines.append(history.line_of(results[-1], threads, facts.transport))
        change = history.change(former, lines[-1])
        print(row(results[-1]), change, flush=True)
        if change.endswith("SLOWER"):
            slower.append(f"{name} {change}")
    for result in results:
        print(json.dumps(result | {"threads": threads, "transport": facts.transport}))
    if path:
        history.append(path, lines)
        print(f"{len(slower)} of {len(lines)} cases slower than in {path}", *slower, sep="\n  ")


# PyTorch and the runtime start their threads when they are loaded: first the processors are chosen.
args = parse(NAMES)
threads = limit_processors(args.threads)
os.environ["TORCH_NEURONX_CACHE"] = ""  # the compiler's time is that of making programs
import torch  # noqa: E402

sys.path.insert(0, str(Path(__file__).parent))
import generate  # noqa: E402
import history  # noqa: E402
import models  # noqa: E402
import where  # noqa: E402

torch.set_num_threads(threads)

if __name__ == "__main__":
    main()
