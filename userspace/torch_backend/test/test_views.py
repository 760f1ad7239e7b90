# SPDX-License-Identifier: Apache-2.0
"""Views, strides, copies in and out, conversions."""

import pytest
import torch
from compare import same
from test_ops import ALL, ids, values

VIEWS = {
    "transpose": lambda x: x.transpose(0, 2),
    "permute": lambda x: x.permute(2, 0, 1),
    "slice": lambda x: x[1:3, ::2, 3:],
    "step": lambda x: x[::2, 1::3],
    "select": lambda x: x[:, 2],
    "expand": lambda x: x[:, :1].expand(4, 6, 10),
    "unsqueeze": lambda x: x.unsqueeze(1).unsqueeze(-1),
    "reshape": lambda x: x.reshape(6, 40),
    "flatten": lambda x: x.transpose(0, 1).flatten(),
    "diagonal": lambda x: x.diagonal(0, 0, 2),
    "unfold": lambda x: x.unfold(2, 3, 2),
    "narrow": lambda x: x.narrow(1, 2, 3),
    "squeeze": lambda x: x[:1].squeeze(0),
    "channels_last": lambda x: x.unsqueeze(0).contiguous(memory_format=torch.channels_last),
    "as_strided": lambda x: x.as_strided((3, 4), (7, 2), 5),
    "movedim": lambda x: x.movedim(0, -1),
}


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool], **ids)
def test_view(name, dtype):
    view = VIEWS[name]
    x = values(dtype, 4, 6, 10)
    same(lambda a: view(a), x)  # by the copy to the host
    same(lambda a: view(a).contiguous(), x)  # by a copy on the device
    device = x.to("neuron")
    assert view(device).stride() == view(x).stride()
    if name not in ("expand", "unfold", "reshape", "flatten", "channels_last"):
        same(lambda a: (view(a).fill_(1), a)[1], x)  # writes through to the base


@pytest.mark.parametrize("source", ALL, **ids)
@pytest.mark.parametrize("target", ALL, **ids)
def test_conversion(source, target):
    x = values(source, 5, 9)
    if target == torch.uint8 and source != torch.bool:
        x = x.abs()
    same(lambda a: a.to(target), x)


@pytest.mark.parametrize("dtype", [*ALL, torch.uint16, torch.complex64, torch.float8_e4m3fn], **ids)
def test_round_trip(dtype):
    x = torch.randint(0, 100, (64,), dtype=torch.uint8).view(8, 8)
    x = (x > 50) if dtype == torch.bool else x.to(dtype)
    for layout in (x, x.t(), x[::2, 1:], x[0, 0]):
        assert torch.equal(layout.to("neuron").cpu().view(torch.uint8 if dtype.itemsize == 1 else dtype),
                           layout.contiguous().view(torch.uint8 if dtype.itemsize == 1 else dtype))  # fmt: skip


def test_copies_between_layouts_and_dtypes():
    x = values(torch.float32, 6, 8)
    target = torch.zeros(8, 6, dtype=torch.float64, device="neuron")
    target.t().copy_(x)  # host to a transposed device tensor of another dtype
    assert torch.equal(target.t().cpu(), x.double())
    host = torch.zeros(8, 6, dtype=torch.bfloat16)
    host.t().copy_(x.to("neuron"))
    assert torch.equal(host.t(), x.bfloat16())
    row = torch.zeros(3, 8, device="neuron")
    row.copy_(x[0])  # broadcast
    assert torch.equal(row.cpu(), x[0].expand(3, 8))
    same(lambda a: a.view(torch.int32), x)
    same(lambda a: a.bfloat16().view(torch.int16), x)


def test_shifted_copy():
    same(lambda a: (a[1:].copy_(a[:-1].clone()), a)[1], torch.arange(300.0))


def test_host_memory_may_change_after_the_copy():
    x = torch.arange(1000.0)
    y = x.to("neuron", non_blocking=True)
    x.zero_()
    assert torch.equal(y.cpu(), torch.arange(1000.0))


def test_joining_and_splitting():
    x, y = values(torch.float32, 3, 4), values(torch.float32, 2, 4)
    same(lambda a, b: torch.cat([a, b]), x, y)
    same(lambda a, b: torch.cat([a.t(), b.t()], 1), x, y)
    same(lambda a, b: torch.cat([a, b.long()]), x, y)
    same(lambda a, b: torch.stack([a[:2], b], 1), x, y)
    same(lambda a: a.chunk(2, 1), x)
    same(lambda a: a.split([1, 3], 1), x)
    same(lambda a: a.repeat(2, 3), x)
    same(lambda a: torch.cat([a, torch.empty(0, device=a.device)]), x)
    same(lambda a: a.tril(), x)
    same(lambda a: a.triu(1), x)


def test_single_index_a_row():
    x, index = values(torch.float32, 5, 7), torch.randint(7, (5, 1))
    same(lambda a, i: a.gather(1, i), x, index)
    same(lambda a, i: a.scatter(1, i, 3.0), x, index)
    same(lambda a, i: a.scatter(1, i, a[:, :1]), x, index)
    same(lambda a, i: a.scatter_add(1, i, a[:, :1]), x, index)
    same(lambda a, i: a.scatter_(0, i.t()[:, :7] % 5, 2.0), x[:, :5], index)
    assert torch.equal(torch.eye(4, 6, device="neuron").cpu(), torch.eye(4, 6))
    assert torch.equal(x.to("neuron"), x.to("neuron")) and not torch.equal(x.to("neuron"), (x + 1).to("neuron"))


def test_items():
    x = torch.tensor([[1, 2], [3, 4]], device="neuron")
    assert x[1, 0].item() == 3 and x.tolist() == [[1, 2], [3, 4]] and bool((x > 0).all())
    assert float(x.sum()) == 10.0 and len(x) == 2 and int(x[0, 1]) == 2
    assert x.numpy(force=True).sum() == 10
    with pytest.raises(TypeError):
        x.numpy()
    assert "3" in str(x)


def test_python_indexing_writes():
    def edit(a):
        a[0] = 7
        a[:, 1] = torch.tensor([1.0, 2.0, 3.0], device=a.device)
        a[1:, 2:] += 5
        return a

    same(edit, values(torch.float32, 3, 4))
