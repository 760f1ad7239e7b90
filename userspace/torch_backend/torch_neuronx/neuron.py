# SPDX-License-Identifier: Apache-2.0
"""The module torch.neuron: devices, memory, streams, counters.

A device is one visible NeuronCore. Device arguments may be None (the current one), an index, a
string or a torch.device. Unless they say otherwise, functions may be called from any thread.
"""

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

from torch_neuronx import _C

Stream = torch.Stream
Event = torch.Event

_Device = torch.device | str | int | None


def _index(device: _Device = None) -> int:
    if device is None:
        return _C.current_device()
    if isinstance(device, int):
        return device
    device = torch.device(device)
    if device.type != "neuron":
        raise ValueError(f"expected a neuron device, got {device}")
    return _C.current_device() if device.index is None else device.index


def is_available() -> bool:
    """Whether at least one core can be used; device_error() says why not."""
    return _C.device_count() > 0


def is_initialized() -> bool:
    """Whether the runtime is up; it starts with the package."""
    return is_available()


def _is_in_bad_fork() -> bool:
    return False


def device_count() -> int:
    """Number of visible NeuronCores."""
    return _C.device_count()


def device_error() -> str:
    """Why there is no device; empty if there is one."""
    return _C.device_error()


def current_device() -> int:
    """Index of this thread's current device."""
    return _C.current_device()


def set_device(device: _Device) -> None:
    """Make a device this thread's current one."""
    _C.set_device(_index(device))


@contextlib.contextmanager
def device(device: _Device) -> Iterator[None]:
    """Context in which a device is the current one."""
    old = _C.exchange_device(_index(device))
    try:
        yield
    finally:
        _C.set_device(old)


class Properties(NamedTuple):
    """Facts of a device; sizes in bytes."""

    name: str
    transport: str
    virtual: bool
    arch: int
    device: int
    core: int
    total_memory: int
    sbuf_bytes_per_partition: int
    psum_bytes_per_partition: int
    serial: int


def get_device_properties(device: _Device = None) -> Properties:
    """Facts of a device: see Properties."""
    return Properties(**_C.properties(_index(device)))


def get_device_name(device: _Device = None) -> str:
    """Name of the accelerator, "Trainium2"."""
    return get_device_properties(device).name


def synchronize(device: _Device = None) -> None:
    """Wait for all work of a device; raises what failed there since the last wait."""
    _C.synchronize(_index(device))


def current_stream(device: _Device = None) -> torch.Stream:
    """This thread's stream on a device."""
    return torch.accelerator.current_stream(torch.device("neuron", _index(device)))


def set_stream(stream: torch.Stream) -> None:
    """Make a stream this thread's current one."""
    torch.accelerator.set_stream(stream)


def stream(stream: torch.Stream | None) -> contextlib.AbstractContextManager:
    """Context in which a stream is the current one; None changes nothing."""
    return contextlib.nullcontext() if stream is None else stream


# --- memory: counted by the caching allocator, for tensors of this process


def _memory(key: str, device: _Device) -> int:
    return torch.accelerator.memory_stats(_index(device)).get(key, 0)


def memory_stats(device: _Device = None) -> dict[str, Any]:
    """All counters of the allocator, in the format of torch.accelerator.memory_stats()."""
    return torch.accelerator.memory_stats(_index(device))


def memory_allocated(device: _Device = None) -> int:
    """Bytes in tensors now."""
    return _memory("allocated_bytes.all.current", device)


def max_memory_allocated(device: _Device = None) -> int:
    """Most bytes in tensors since the start or reset_peak_memory_stats()."""
    return _memory("allocated_bytes.all.peak", device)


def memory_reserved(device: _Device = None) -> int:
    """Bytes of HBM that the allocator holds now."""
    return _memory("reserved_bytes.all.current", device)


def max_memory_reserved(device: _Device = None) -> int:
    """Most bytes of HBM that the allocator held."""
    return _memory("reserved_bytes.all.peak", device)


def reset_peak_memory_stats(device: _Device = None) -> None:
    """Start the peaks anew from the current values."""
    torch.accelerator.reset_peak_memory_stats(_index(device))


def mem_get_info(device: _Device = None) -> tuple[int, int]:
    """Bytes of the device's HBM that are free, and in all."""
    return torch.accelerator.get_memory_info(_index(device))


def empty_cache() -> None:
    """Give HBM that no tensor uses back to the device."""
    torch.accelerator.empty_cache()


# --- random numbers


def manual_seed(seed: int) -> None:
    """Seed the current device's generator."""
    _C.manual_seed(_C.current_device(), seed)


def initial_seed() -> int:
    """Seed of the current device's generator."""
    return _C.default_generator(_C.current_device()).initial_seed()


def get_rng_state(device: _Device = None) -> torch.Tensor:
    """State of a device's generator, as bytes on the CPU."""
    return _C.default_generator(_index(device)).get_state()


def set_rng_state(state: torch.Tensor, device: _Device = None) -> None:
    """Restore a state from get_rng_state()."""
    _C.default_generator(_index(device)).set_state(state)


def manual_seed_all(seed: int) -> None:
    """Seed the generators of all devices; torch.manual_seed() does it too."""
    for index in range(device_count()):
        _C.manual_seed(index, seed)


# --- what ran


def stats(device: _Device = None, reset: bool = False) -> dict[str, Any]:
    """What this process's launches did on a device.

    launches; instructions completed by engine; device_ns, the time that launches took as the device
    timed them; dma_bytes moved by programs; bytes copied to_device and to_host; programs in the cache,
    of all devices; compile_ns, the host's time in making and loading programs, of all devices and never
    reset; launch_ns, the same in handing over launches, while time_launches(True). programs_loaded, _saved
    and _refused: files of the cache on disk, refused if they were not what they should be.
    Waits for nothing: synchronize() first.
    """
    return _C.stats(_index(device), reset)


def time_launches(on: bool) -> None:
    """Whether stats() counts launch_ns, at the price of reading the clock twice a launch."""
    _C.time_launches(on)


def fallback_counts() -> dict[str, int]:
    """Calls per operator that ran on the CPU because the device has no kernel."""
    return _C.fallback_counts()


def reset_fallback_counts() -> None:
    """Start counting anew."""
    _C.reset_fallback_counts()


def set_fallback(mode: str) -> None:
    """What happens to an operator without a kernel: "warn" (once each), "silent" or "error"."""
    _C.set_fallback(mode)


def get_fallback() -> str:
    """The mode that set_fallback() or TORCH_NEURONX_FALLBACK chose."""
    return _C.fallback_mode()


def get_amp_supported_dtype() -> list[torch.dtype]:
    """Types that autocast may use."""
    return [torch.bfloat16, torch.float16]
