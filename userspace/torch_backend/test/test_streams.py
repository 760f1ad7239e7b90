# SPDX-License-Identifier: Apache-2.0
"""Streams and events: order, waiting, device time."""

import threading

import pytest
import torch


def work(x: torch.Tensor, times: int = 10) -> torch.Tensor:
    for _ in range(times):
        x = x * 1.0 + 1
    return x


def test_current_stream_is_per_context():
    default = torch.neuron.current_stream()
    side = torch.Stream("neuron")
    assert side != default and side.device.type == "neuron"
    with side:
        assert torch.neuron.current_stream() == side
    assert torch.neuron.current_stream() == default
    with torch.neuron.stream(side), torch.neuron.stream(None):
        assert torch.neuron.current_stream() == side
    torch.neuron.set_stream(side)
    assert torch.accelerator.current_stream() == side
    torch.accelerator.set_stream(default)


def test_wait_event_orders_streams():
    side = torch.Stream("neuron")
    x = torch.zeros(256, 256, device="neuron")
    for _ in range(5):
        ready = torch.neuron.current_stream().record_event()
        with side:
            side.wait_event(ready)
            y = work(x)
            done = side.record_event()
        torch.neuron.current_stream().wait_event(done)
        x = y + 0
        y.record_stream(torch.neuron.current_stream())
    assert torch.equal(x.cpu(), torch.full((256, 256), 50.0))


def test_wait_stream():
    side = torch.Stream("neuron")
    x = work(torch.zeros(100, device="neuron"))
    side.wait_stream(torch.neuron.current_stream())
    with side:
        y = work(x)
    torch.neuron.current_stream().wait_stream(side)
    assert (y + 1).cpu().unique().tolist() == [21.0]


def test_query_and_synchronize():
    side = torch.Stream("neuron")
    with side:
        y = work(torch.zeros(512, 512, device="neuron"))
        event = side.record_event()
    event.synchronize()
    assert event.query()
    side.synchronize()
    assert side.query()
    torch.neuron.synchronize()
    del y


def test_elapsed_time_is_device_time():
    x = torch.ones(512, 512, device="neuron")
    times = []
    for repeat in (1, 20):
        torch.neuron.synchronize()
        torch.neuron.stats(reset=True)
        start, end = (torch.Event("neuron", enable_timing=True) for _ in range(2))
        start.record()
        y = work(x, repeat)
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
        torch.neuron.synchronize()
        busy = torch.neuron.stats()["device_ns"] / 1e6
        assert times[-1] == pytest.approx(busy, rel=0.5)
        del y
    assert times[1] > 5 * times[0] > 0


def test_elapsed_time_needs_recorded_events():
    a, b = torch.Event("neuron", enable_timing=True), torch.Event("neuron", enable_timing=True)
    with pytest.raises((RuntimeError, ValueError), match="recorded"):
        a.elapsed_time(b)


def test_timing_is_deterministic():
    def once():
        x = torch.ones(300, 300, device="neuron")
        torch.neuron.synchronize()
        torch.neuron.stats(reset=True)
        (x @ x).relu().sum()
        torch.neuron.synchronize()
        return torch.neuron.stats()["device_ns"]

    once()
    assert abs(once() - once()) <= 3  # a launch's end is rounded to ns


def test_threads_have_their_own_current_stream_and_share_the_device():
    results, errors = {}, []

    def run(index: int) -> None:
        try:
            with torch.Stream("neuron"):
                x = torch.full((64, 64), float(index), device="neuron")
                results[index] = work(x, 20).cpu().unique().tolist()
        except Exception as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert results == {i: [i + 20.0] for i in range(6)}
