# SPDX-License-Identifier: Apache-2.0
"""A program that goes wrong on the device becomes a Python exception, and the process goes on."""

import ctypes
import functools
import struct
from pathlib import Path

import pytest
import torch
from torch_neuronx import _C

FP32 = 0xA
ELEMENTS = 100_003


class Type(ctypes.Structure):
    """struct nc_type."""

    _fields_ = [("dtype", ctypes.c_int), ("ndim", ctypes.c_uint32), ("dims", ctypes.c_int64 * 8)]


class Target(ctypes.Structure):
    """struct nc_target."""

    _fields_ = [("arch", ctypes.c_uint32), ("sbuf", ctypes.c_uint32), ("psum", ctypes.c_uint32)]


class Program(ctypes.Structure):
    """struct nc_program."""

    _fields_ = [("image", ctypes.c_void_p), ("bytes", ctypes.c_size_t), ("slots", ctypes.c_uint32),
                ("scratch", ctypes.c_uint64)]  # fmt: skip


def compiled() -> bytes:
    """Image of a program that doubles ELEMENTS fp32 numbers."""
    library = Path(_C.__file__).parents[2] / "userspace/compiler/libneuron_compiler.so"
    nc = ctypes.CDLL(str(library))
    nc.nc_graph_create.restype = ctypes.c_void_p
    graph = ctypes.c_void_p(nc.nc_graph_create(b"victim"))
    kind = Type(FP32, 1, (ctypes.c_int64 * 8)(ELEMENTS))
    x = nc.nc_input(graph, ctypes.byref(kind), None)
    nc.nc_output(graph, nc.nc_binary(graph, 0, x, x), None, ctypes.c_uint32(0xFFFFFFFF))
    facts = torch.neuron.get_device_properties()
    target = Target(facts.arch, facts.sbuf_bytes_per_partition, facts.psum_bytes_per_partition)
    program, error = Program(), ctypes.create_string_buffer(512)
    assert nc.nc_compile(graph, ctypes.byref(target), ctypes.byref(program), error) == 0, error.value
    image = ctypes.string_at(program.image, program.bytes)
    nc.nc_program_free(ctypes.byref(program))
    nc.nc_graph_destroy(graph)
    return image


CHECKSUM = 12  # offset of the CRC-32C of an image in which it is 0


def crc32c(data: bytes) -> int:
    """Castagnoli's CRC, bit by bit."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


@functools.cache
def lying() -> bytes:
    """The same, saying that 4 bytes a slot are enough."""
    size = struct.pack("<Q", 4 * ELEMENTS)
    image = bytearray(compiled())
    assert struct.unpack_from("<I", image, CHECKSUM)[0] == crc32c(image[:CHECKSUM] + bytes(4) + image[CHECKSUM + 4 :])
    assert size in image
    image = image.replace(size, struct.pack("<Q", 4))
    image[CHECKSUM : CHECKSUM + 4] = bytes(4)
    struct.pack_into("<I", image, CHECKSUM, crc32c(image))
    return bytes(image)


def test_a_good_program_runs():
    x = torch.arange(ELEMENTS, dtype=torch.float32, device="neuron")
    y = torch.empty_like(x)
    _C.launch_image(compiled(), [x, y])
    assert torch.equal(y.cpu(), 2 * x.cpu())


def test_too_small_a_tensor_is_refused_before_the_launch():
    with pytest.raises(RuntimeError, match="slot"):
        _C.launch_image(compiled(), [torch.ones(4, device="neuron"), torch.ones(4, device="neuron")])
    torch.neuron.synchronize()


WAITS = {
    "synchronize": lambda x: torch.neuron.synchronize(),
    "item": lambda x: x[0].item(),
    "copy": lambda x: x.cpu(),
    "stream": lambda x: torch.neuron.current_stream().synchronize(),
}


@pytest.mark.parametrize("wait", WAITS)
def test_fault_surfaces_where_the_host_waits(wait):
    x, y = torch.ones(16, device="neuron"), torch.zeros(16, device="neuron")
    torch.neuron.synchronize()
    _C.launch_image(lying(), [x, y])
    with pytest.raises(torch.AcceleratorError) as error:
        WAITS[wait](y)
    text = str(error.value)
    for part in ("victim", "engine", "instruction", "slot", "limit 4"):
        assert part in text, text
    torch.neuron.synchronize()  # said once
    assert (x + 1).sum().item() == 32


def test_work_behind_a_fault_is_cancelled_and_other_streams_go_on():
    side = torch.Stream("neuron")
    x, y = torch.ones(16, device="neuron"), torch.zeros(16, device="neuron")
    torch.neuron.synchronize()
    with side:
        z = x * 3
    _C.launch_image(lying(), [x, y])
    y.fill_(7)
    with pytest.raises(torch.AcceleratorError):
        torch.neuron.synchronize()
    assert y.tolist() == [0.0] * 16
    side.synchronize()
    assert z.tolist() == [3.0] * 16


def test_bad_images_are_refused():
    image = bytearray(compiled())
    for bad in (b"", bytes(image[:100]), bytes(len(image))):
        with pytest.raises(RuntimeError):
            _C.launch_image(bad, [])
    assert torch.ones(2, device="neuron").sum().item() == 2
