# SPDX-License-Identifier: Apache-2.0
"""Programs kept for later processes: taken when they are right, made anew when anything about them is not."""

import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest
import torch_neuronx

# Transposes of so odd shapes that their programs are large; and a small one, which is not kept.
SCRIPT = """
import json, os, resource, sys, torch
x = torch.arange(4096 * 300).view(-1, 300).float().to("neuron")
results = [(x[:8] + 1).cpu()]
exec(sys.argv[2])
results += [x[: 3500 + 13 * i].t().contiguous().cpu() for i in range(int(sys.argv[1]))]
right = all(torch.equal(r, x[: r.shape[1]].cpu().t()) for r in results[1:])
stats = torch.neuron.stats()
print(json.dumps([stats["programs_" + key] for key in ("loaded", "saved", "refused")] + [right]))
"""
HEADER = struct.Struct("<8sQQQ")  # magic, bytes of key, of image, sum
COUNT = 9


class Ran(NamedTuple):
    """Programs, whether the results were right, and what was said."""

    loaded: int
    saved: int
    refused: int
    right: bool
    said: str


def start(folder: Path | str | None, count: int = COUNT, before: str = "", **env: str) -> subprocess.Popen[str]:
    """SCRIPT with so many large programs."""
    all_env = os.environ | env
    del all_env["TORCH_NEURONX_CACHE"]
    if folder is not None:
        all_env["TORCH_NEURONX_CACHE"] = str(folder)
    return subprocess.Popen([sys.executable, "-c", SCRIPT, str(count), before], env=all_env,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # fmt: skip


def end(process: subprocess.Popen[str]) -> Ran:
    out, said = process.communicate()
    assert process.returncode == 0, said
    return Ran(*json.loads(out.splitlines()[-1]), said)


def run(folder: Path | str | None, count: int = COUNT, before: str = "", **env: str) -> Ran:
    return end(start(folder, count, before, **env))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with the programs of SCRIPT."""
    folder = tmp_path_factory.mktemp("cache") / "new" / "programs"
    assert run(folder)[:4] == (0, COUNT, 0, True)
    return folder


@pytest.fixture
def kept(made, tmp_path):
    """A copy of it."""
    return shutil.copytree(made, tmp_path / "programs")


def test_programs_are_taken(kept):
    files = sorted(kept.iterdir())
    assert len(files) == COUNT, "large programs and nothing else"
    before = [file.stat() for file in files]
    assert run(kept)[:4] == (COUNT, 0, 0, True)
    after = [file.stat() for file in files]
    assert [one.st_ino for one in after] == [one.st_ino for one in before], "not written again"
    assert all(b.st_mtime_ns > a.st_mtime_ns for a, b in zip(before, after, strict=True)), "and marked as used"


def fnv(data: bytes, value: int) -> int:
    """The checksum of DiskCache.cpp, of key and then image."""
    for word in (len(data), *(int.from_bytes(data[i : i + 8], "little") for i in range(0, len(data), 8))):
        value = (value ^ word) * 0x100000001B3 % 2**64
        value ^= value >> 32
    return value


def forge(data: bytes) -> bytes:
    """Another byte in the program's instructions, and the checksum of the file made to fit."""
    magic, key_bytes, image_bytes, total = HEADER.unpack_from(data)
    key, image = data[HEADER.size :][:key_bytes], bytearray(data[HEADER.size + key_bytes :])
    assert fnv(bytes(image), fnv(key, 0xCBF29CE484222325)) == total and len(image) == image_bytes
    image[20000] ^= 1
    return HEADER.pack(magic, key_bytes, image_bytes, fnv(bytes(image), fnv(key, 0xCBF29CE484222325))) + key + image


def flip(place: float):
    def spoil(data: bytes) -> bytes:
        at = int(place * (len(data) - 1))
        return data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :]

    return spoil


SPOIL = [
    flip(0),  # the magic
    lambda data: data[:9] + b"\xff" * 15 + data[24:],  # sizes
    lambda data: data[:40] + b"\xff" + data[41:],  # the key
    flip(0.7),  # the image
    flip(1),  # its end
    lambda data: data[:-1],
    lambda data: data + b"\0",
    lambda data: b"",
    forge,  # right for the file, not for the device
]


def test_spoiled_programs_are_made_anew(kept):
    files = sorted(kept.iterdir())
    for spoil, file in zip(SPOIL, files, strict=True):
        file.write_bytes(spoil(file.read_bytes()))
    assert run(kept)[:4] == (0, COUNT, COUNT, True)
    assert run(kept)[:4] == (COUNT, 0, 0, True)


def test_swapped_programs_are_made_anew(kept):
    first, second, third, *_ = sorted(kept.iterdir())
    first.rename(kept / "x")
    second.rename(first)
    (kept / "x").rename(second)
    third.unlink()
    third.mkdir()  # which nothing can be written over
    ran = run(kept)
    assert ran[:4] == (COUNT - 3, 2, 2, True)
    assert ran.said.count("cannot keep programs") == 1


def test_processes_at_once(tmp_path):
    ran = [end(process) for process in [start(tmp_path) for _ in range(3)]]
    assert all(one.right and one.loaded + one.saved == COUNT and not one.refused for one in ran)
    assert len(list(tmp_path.iterdir())) == COUNT
    assert run(tmp_path)[:4] == (COUNT, 0, 0, True)


def test_another_build_has_its_own(kept, tmp_path):
    package = Path(torch_neuronx.__file__).parent
    shutil.copytree(package.parent, tmp_path / "python")
    library = next((tmp_path / "python" / package.name).glob("_C*.so"))
    data = bytearray(library.read_bytes())
    note = data.index(b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0")  # name and id of so many bytes, NT_GNU_BUILD_ID
    data[note + 16] ^= 1
    library.write_bytes(data)
    other = {"PYTHONPATH": str(tmp_path / "python")}
    assert run(kept, 2, **other)[:4] == (0, 2, 0, True)
    assert run(kept, 2, **other)[:4] == (2, 0, 0, True)
    assert run(kept, 2)[:4] == (2, 0, 0, True)


def test_another_chip_has_its_own(kept):
    assert run(kept, 2, NEURON_MODEL_CHIP="trn1")[:4] == (0, 2, 0, True)
    assert run(kept, 2)[:4] == (2, 0, 0, True)


def test_the_limit(kept):
    """What was not used for longest goes, and nothing that is not ours."""
    (kept / "notes.txt").write_bytes(b"x" * 2**20)
    half_written = kept / "0123456789abcdef.program.left"
    half_written.write_bytes(b"x" * 2**20)
    os.utime(half_written, (0, 0))
    size = max(file.stat().st_size for file in kept.glob("*.program"))
    ran = run(kept, COUNT + 30, TORCH_NEURONX_CACHE_MIB="1")
    assert ran.loaded == COUNT and ran.saved == 30 and ran.right
    left = list(kept.glob("*.program"))
    assert sum(file.stat().st_size for file in left) <= 2**20 and len(left) >= 2**19 // size
    assert not half_written.exists() and (kept / "notes.txt").exists()
    # The last ones are there.
    assert run(kept, COUNT + 30, TORCH_NEURONX_CACHE_MIB="1000").loaded == len(left)


def test_a_limit_that_is_none(tmp_path):
    assert run(tmp_path, 1, TORCH_NEURONX_CACHE_MIB="0")[:4] == (0, 0, 0, True)
    process = start(tmp_path, 1, TORCH_NEURONX_CACHE_MIB="1G")
    assert "TORCH_NEURONX_CACHE_MIB is '1G', not a number of MiB" in process.communicate()[1]
    assert process.returncode


def test_a_folder_that_cannot_be(tmp_path):
    (tmp_path / "file").write_text("")
    ran = run(tmp_path / "file", 2)
    assert ran[:4] == (0, 0, 0, True)
    assert ran.said.count("cannot keep programs") == 1


def test_a_file_system_that_is_full(tmp_path):
    ran = run(tmp_path, 2, before="resource.setrlimit(resource.RLIMIT_FSIZE, (9999, 9999))")
    assert ran[:4] == (0, 0, 0, True)
    assert ran.said.count("cannot keep programs") == 1 and not list(tmp_path.iterdir()), "nothing is left behind"


def test_a_folder_that_is_read_only(made):
    # Not below tmp_path, where another user cannot look for files.
    with tempfile.TemporaryDirectory() as name:
        folder = shutil.copytree(made, Path(name) / "programs")
        for file in sorted(folder.iterdir())[2:]:
            file.unlink()
        for path in [*folder.iterdir(), folder, folder.parent]:
            path.chmod(0o555)
        ran = run(folder, before="os.geteuid() or os.seteuid(65534)")
        folder.parent.chmod(0o755)
        folder.chmod(0o755)
        assert ran[:4] == (2, 0, 0, True)
        assert ran.said.count("cannot keep programs") == 1


def test_where_it_is(tmp_path):
    assert run("", 1)[:4] == (0, 0, 0, True)
    home, cache = tmp_path / "home", tmp_path / "cache"
    assert run(None, 1, HOME=str(home), XDG_CACHE_HOME="")[:4] == (0, 1, 0, True)
    assert len(list((home / ".cache" / "torch_neuronx").iterdir())) == 1
    assert run(None, 1, HOME=str(home), XDG_CACHE_HOME=str(cache))[:4] == (0, 1, 0, True)
    assert len(list((cache / "torch_neuronx").iterdir())) == 1
    # Nobody asked for it: not a word if it cannot be.
    (tmp_path / "file").write_text("")
    assert run(None, 1, XDG_CACHE_HOME=str(tmp_path / "file")) == (0, 0, 0, True, "")
