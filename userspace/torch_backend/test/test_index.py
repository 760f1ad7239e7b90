# SPDX-License-Identifier: Apache-2.0
"""Rows by index against the CPU: index_select, index_add, index_copy, index_fill, x[i, j], embeddings."""

import pytest
import torch
from compare import same
from test_ops import ALL, FLOATS, HALVES, ids, values
from torch.nn import functional as F

ADDED = [torch.float32, *HALVES, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool]
INDEX = [torch.int64, torch.int32]


def indices(count, n, dtype=torch.int64):
    """With duplicates, from both ends."""
    index = torch.randint(n, (count,), dtype=dtype)
    index[0], index[-1] = n - 1, 0
    return index


LAYOUTS = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.transpose(0, -1),
    "sliced": lambda x: x[1:, ::2],
    "expanded": lambda x: x[:, :1].expand(-1, 6, *[-1] * (x.dim() - 2)),
    "channels last": lambda x: x.to(memory_format=torch.channels_last),
}


@pytest.mark.parametrize("dim", [0, 1, 2, -1])
@pytest.mark.parametrize("dtype", [*ALL, torch.complex64], **ids)
def test_index_select(dtype, dim):
    x = values(torch.float32, 5, 6, 7).to(dtype) if dtype.is_complex else values(dtype, 5, 6, 7)
    for kind in INDEX:
        same(lambda x, i: x.index_select(dim, i), x, indices(9, 5, kind))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dim", range(4))
def test_layouts(layout, dim):
    def run(x, index, rows):
        x = LAYOUTS[layout](x)
        where = index % x.shape[dim]
        rows = rows.narrow(dim, 0, 5).expand(*(5 if d == dim else n for d, n in enumerate(x.shape)))
        out = [x.index_select(dim, where), x.index_add(dim, where, rows), x[:, where % x.shape[1], :, where % 2],
               x.index_copy(dim, where[:1], rows.narrow(dim, 0, 1))]  # fmt: skip
        if layout != "expanded":
            x.index_add_(dim, where, rows)
            x[where % x.shape[0], :, where % x.shape[2]] = 3
            x[where % x.shape[0], 0] += 1
        return *out, x

    # The memory around a slice, too: x as it was given comes back changed in place.
    x, size = values(torch.float32, 4, 6, 5, 4), [1] * 4
    size[dim] = 5
    same(lambda x, *rest: (run(x, *rest), x), x, indices(5, 3), values(torch.float32, *size))


@pytest.mark.parametrize("dtype", ADDED, **ids)
@pytest.mark.parametrize("alpha", [1, 2])
def test_index_add(dtype, alpha):
    if dtype == torch.bool and alpha != 1:
        pytest.skip("the CPU has no such alpha")
    # In order, as on the CPU: equal to the last bit. Of halves it rounds some sums each time, we never do.
    for dim in range(2):
        same(lambda x, d, i, y: x.index_add(d, i, y, alpha=alpha), values(dtype, 4, 4), dim, indices(40, 4),
             values(dtype, *((40, 4) if dim == 0 else (4, 40))), scale=16 if dtype in HALVES else 0)  # fmt: skip


@pytest.mark.parametrize("dtype", HALVES, **ids)
def test_sums_of_halves_are_rounded_once(dtype):
    x, index, rows = values(dtype, 4, 4), indices(300, 4), values(dtype, 300, 4)
    for add in (lambda x, i, y: x.index_add(0, i, y), lambda x, i, y: x.index_put((i,), y, accumulate=True)):
        wanted = add(x.float(), index, rows.float()).to(dtype)
        assert torch.equal(add(*(t.to("neuron") for t in (x, index, rows))).cpu(), wanted)


def test_sums_of_large_integers_wrap():
    x = torch.tensor([2**63 - 1, -(2**63), 5])
    rows = torch.tensor([1, -1, 2**40, -(2**62), 2**62, 7])
    same(lambda x, i, y: x.index_add(0, i, y), x, torch.tensor([0, 1, 2, 0, 2, 1]), rows)


@pytest.mark.parametrize("dtype", ALL, **ids)
def test_index_copy_and_fill(dtype):
    for dim in range(2):
        size = [6, 7]
        size[dim] = 3
        index = torch.tensor([4, 0, 2])
        same(torch.index_copy, values(dtype, 6, 7), dim, index, values(dtype, *size))
        same(torch.index_fill, values(dtype, 6, 7), dim, index - 1, 1)
        same(torch.index_fill, values(dtype, 6, 7), dim, index, values(dtype))


def test_the_last_of_equal_indices_stays():
    x, rows = torch.zeros(4, 3), values(torch.float32, 300, 3)
    same(lambda x, i, y: x.index_copy(0, i, y), x, torch.arange(300) % 3, rows)
    same(lambda x, i, y: x.index_put((i,), y), x, torch.arange(300) % 3, rows)


def test_many_rows():
    table, index = values(torch.float32, 1000, 65), torch.randint(1000, (3000,))
    same(lambda x, i: x.index_select(0, i), table, index)
    same(lambda x, i: x.index_select(1, i), table, index % 65)
    same(lambda x, i: x[i.view(30, 100)], table, index)
    same(lambda x, i, y: x.index_add(0, i, y), table, index, values(torch.float32, 3000, 65), scale=0)


GRADIENTS = {
    "index_select": lambda x, i, y: x.index_select(1, i),
    "index_add": lambda x, i, y: x.index_add(0, i, y, alpha=3),
    "index_copy": lambda x, i, y: x.index_copy(0, i[:2], y[:2]),
    "index": lambda x, i, y: x[i],
    "index of two": lambda x, i, y: x[i, -1 - i],
    "index_put": lambda x, i, y: x.index_put((i,), y, accumulate=True),
    "index_fill": lambda x, i, y: x.index_fill(1, i, 2.0),
    "take": lambda x, i, y: x.take(i),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], **ids)
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name, dtype):
    def run(x, index, y, weights):
        x, y = x.requires_grad_(), y.requires_grad_()
        result = GRADIENTS[name](x, index, y)
        (result * weights.flatten()[: result.numel()].view(result.shape)).sum().backward()
        return result.detach(), x.grad, y.grad if y.grad is not None else 0

    same(run, values(dtype, 3, 4), torch.tensor([2, 0, 1, 2, 2]), values(dtype, 5, 4), values(dtype, 40), scale=4)


# x[...] with tensors; a, b, c broadcast together.
EXPRESSIONS = {
    "a": lambda x, a, b, c: (a,),
    "a 0-dim": lambda x, a, b, c: (a[0],),
    "a 2-dim": lambda x, a, b, c: (c,),
    ": a": lambda x, a, b, c: (slice(None), a),
    "... a": lambda x, a, b, c: (Ellipsis, a),
    "a b": lambda x, a, b, c: (a, b),
    "a : b": lambda x, a, b, c: (a, slice(None), b),
    ": a b": lambda x, a, b, c: (slice(None), a, b),
    ": a : b": lambda x, a, b, c: (slice(None), a, slice(None), b),
    "a c b a": lambda x, a, b, c: (a, c, b, a),
    "a None b": lambda x, a, b, c: (a, None, b),
    "1: a": lambda x, a, b, c: (slice(1, None), a),
    "list": lambda x, a, b, c: ([2, -1],),
    "none": lambda x, a, b, c: (a[:0],),
    "none of two": lambda x, a, b, c: (a[:0], slice(None), a[:0]),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool], **ids)
def test_tensors_as_indices(name, dtype):
    expression = EXPRESSIONS[name]
    a, b, c = torch.tensor([0, -1, 2, 2]), torch.tensor([-3, 2, 1, 2]), torch.tensor([[1], [-2], [0]])
    x = values(dtype, 3, 4, 5, 3)
    shape = x[expression(x, a, b, c)].shape
    same(lambda x, *i: x[expression(x, *i)], x, a, b.to(torch.int32), c)

    def write(x, a, b, c, rows):
        x[expression(x, a, b, c)] = rows
        return x

    same(write, x, a, b, c, values(dtype, *shape))
    same(write, x, a, b, c, values(dtype))
    same(write, x, a, b, c, values(dtype, 1))

    def add(x, a, b, c, rows):
        return x.index_put_(tuple(i for i in expression(x, a, b, c)), rows, accumulate=True)

    if all(isinstance(i, torch.Tensor) for i in expression(x, a, b, c)):
        same(add, x, a, b, c, values(dtype, *shape), scale=0)


def test_numbers_as_values():
    def run(x, i):
        x[i] = 7
        x[i, 1] = torch.tensor(2.5)
        x[x > 1] = -1
        x[i[:0]] = 3
        return x

    same(run, values(torch.float32, 4, 5), torch.tensor([1, -1]))


def test_masks_need_the_cpu(fallback):
    x, mask = values(torch.float32, 4, 5), torch.tensor([True, False, True, True])
    same(lambda x, m: x[m], x, mask)
    same(lambda x, m: x[:, m[[0, 1, 2, 3, 0]]], x, mask)
    same(lambda x, m: x.index_put((m,), x[:3] * 2, accumulate=True), x, mask)
    same(lambda x, m: x.index_put((m, m.nonzero()[:, 0]), x[0, :3]), x, mask)
    assert {"aten::nonzero"} >= set(torch.neuron.fallback_counts())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64], **ids)
def test_empty_and_without_dims(dtype):
    none = torch.empty(0, dtype=torch.int64)
    same(lambda x, i: x.index_select(0, i), values(dtype, 3, 4), none)
    same(lambda x, i: x.index_select(1, i), values(dtype, 0, 4), torch.tensor([1, 1]))
    same(lambda x, i: x.index_select(0, i), values(dtype), torch.tensor(0))
    same(lambda x, i: x.index_select(0, i), values(dtype), torch.tensor([0]))
    same(lambda x, i: x.index_select(0, i), values(dtype, 3), torch.tensor(2))
    same(lambda x, i, y: x.index_copy(0, i, y), values(dtype), torch.tensor(0), values(dtype))
    same(lambda x, i, y: x.index_copy(0, i, y), values(dtype, 3), torch.tensor(1), values(dtype))
    same(lambda x, i, y: x.index_copy(0, i, y), values(dtype, 3, 2), none, values(dtype, 0, 2))
    same(lambda x, i, y: x.index_add(0, i, y), values(dtype, 3, 2), none, values(dtype, 0, 2))
    same(lambda x, i: x[i], values(dtype, 0, 3), none)
    same(lambda x, i: x.take(i), values(dtype, 3, 3), none.view(2, 0))
    if dtype != torch.float64:
        same(lambda x, i, y: x.index_add(0, i, y), values(dtype), torch.tensor(0), values(dtype))


def test_take_and_put():
    index = torch.tensor([[3, -1], [0, 7]])
    for dtype in (torch.float32, torch.float64, torch.bool):
        same(lambda x, i: x.take(i), values(dtype, 3, 4), index)
        same(lambda x, i: x.t().take(i), values(dtype, 3, 4), index)
        same(lambda x, i, y: x.put(i, y), values(dtype, 3, 4), index, values(dtype, 4))
        same(lambda x, i, y: x.t().put_(i, y), values(dtype, 3, 4), index, values(dtype, 4))
    same(lambda x, i, y: x.put_(i, y, accumulate=True), values(torch.float32, 3, 4), index % 2,
         values(torch.float32, 4))  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool], **ids)
def test_flip(dtype):
    for dims in ([0], [-1], [0, 2], [0, 1, 2], []):
        same(torch.flip, values(dtype, 5, 1, 130), dims)
        same(lambda x, d: x.transpose(0, 2)[::2].flip(d), values(dtype, 5, 3, 4), dims)
    same(lambda x: x.flip(0), values(dtype, 0, 3))
    same(lambda x: x.flip([]), values(dtype))


def test_out():
    def run(x, i):
        large, wrong = torch.full((6, 8), 9.0, device=x.device), torch.empty(0, device=x.device)
        torch.index_select(x, 1, i, out=large[::2, :3])
        torch.index_select(x, 0, i, out=wrong)
        return large, wrong, torch.index_add(x, 0, i, x, out=torch.empty(3, 4, device=x.device)), \
            torch.take(x, i, out=torch.empty(3, device=x.device)), \
            torch.index_copy(x, 0, i, x + 1, out=torch.empty(4, 3, device=x.device).t())  # fmt: skip

    same(run, values(torch.float32, 3, 4), torch.tensor([2, 0, 1]))


# --- embeddings


@pytest.mark.parametrize("dtype", [torch.float32, *HALVES], **ids)
@pytest.mark.parametrize("padding", [None, 3])
@pytest.mark.parametrize("by_frequency", [False, True])
def test_embedding(dtype, padding, by_frequency):
    def run(table, index, weights):
        table = table.requires_grad_()
        y = F.embedding(index, table, padding, scale_grad_by_freq=by_frequency)
        (y * weights).sum().backward()
        return y.detach(), table.grad

    index = torch.randint(20, (5, 9))
    index[0, :3] = 3
    # The CPU rounds each sum of halves, we round once.
    same(run, values(dtype, 20, 33), index, values(dtype, 5, 9, 33), scale=1 if dtype == torch.float32 else 16)
    same(run, values(dtype, 20, 33), index[0].to(torch.int32), values(dtype, 9, 33), scale=16)


def test_embedding_of_nothing_and_of_doubles():
    table = values(torch.float64, 5, 3)
    same(lambda t, i: F.embedding(i, t), table, torch.tensor([[4, 0]]))
    same(lambda t, i: F.embedding(i, t), table, torch.empty(2, 0, dtype=torch.int64))


def test_rows_keep_their_infinities():
    table = values(torch.float32, 6, 4)
    table[1, 2], table[2, 0], table[3] = float("inf"), float("-inf"), float("nan")
    same(lambda t, i: t[i], table, torch.tensor([0, 1, 2, 3, 5, 1]))
    grad = table[[1, 2, 0, 0, 1, 2]]

    def run(table, index, grad):
        table = table.requires_grad_()
        F.embedding(index, table, padding_idx=1).backward(grad)
        return table.grad

    same(run, values(torch.float32, 4, 4), torch.tensor([0, 0, 1, 2, 2, 1]), grad)


# --- what names no row


WRONG = {
    "index_select": (lambda x, i: x.index_select(1, i), False),
    "embedding": (lambda x, i: F.embedding(i, x.t().contiguous()), False),
    "index_add": (lambda x, i: x.index_add(1, i, x[:, :2]), False),
    "index_add of int64": (lambda x, i: x.long().index_add(1, i, x[:, :2].long()), False),
    "index_copy": (lambda x, i: x.index_copy(1, i, x[:, :2]), False),
    "index_fill": (lambda x, i: x.index_fill(1, i, 1), True),
    "index": (lambda x, i: x[:, i], True),
    "index of two": (lambda x, i: x[i * 0, i], True),
    "index_put": (lambda x, i: x.index_put((i * 0, i), x[0, :2]), True),
    "take": (lambda x, i: x[0].take(i), True),
}
NAMES = {"embedding": "index_select", "index_add of int64": "index_add", "index of two": "index"}


@pytest.mark.parametrize("name", WRONG)
def test_an_index_that_names_no_row(name):
    run, wraps = WRONG[name]
    x = torch.arange(12.0).view(2, 6)
    good = torch.tensor([5, -6 if wraps else 0])
    same(run, x, good)
    for wrong in (6, -7 if wraps else -1, 2**31 - 1, -(2**31)):
        index = torch.tensor([3, wrong])
        with pytest.raises((IndexError, RuntimeError)):
            run(x, index)
        result = run(x.to("neuron"), index.to("neuron"))
        with pytest.raises(IndexError, match=f"{NAMES.get(name, name)}: index {wrong} is out of bounds for dimension "
                                             "with size 6"):  # fmt: skip
            result.cpu()
        torch.neuron.synchronize()  # said once
        same(run, x, good)


WAITS = {
    "synchronize": lambda x: torch.neuron.synchronize(),
    "item": lambda x: x.sum().item(),
    "copy": lambda x: x.cpu(),
    "stream": lambda x: torch.neuron.current_stream().synchronize(),
}


@pytest.mark.parametrize("wait", WAITS)
def test_who_waits_gets_the_error_and_all_goes_on(wait):
    table, kept = torch.arange(12.0, device="neuron").view(4, 3), torch.zeros(3, device="neuron")
    torch.neuron.synchronize()
    rows = table[torch.tensor([1, 4], device="neuron")]
    kept.fill_(1)
    with pytest.raises(IndexError, match="index 4 is out of bounds for dimension with size 4"):
        WAITS[wait](rows)
    # What followed on the stream was not run; what was before, and what comes now, is as ever.
    assert kept.tolist() == [0] * 3
    assert table[torch.tensor([1, 3], device="neuron")].sum().item() == 3 + 4 + 5 + 9 + 10 + 11


def test_far_beyond_32_bits():
    x = torch.ones(3, device="neuron")
    for wrong, told in ((2**40, 2**31 - 1), (-(2**40), -(2**31)), (2**32, 2**31 - 1)):
        with pytest.raises(IndexError, match=f"index {told} "):
            x[torch.tensor([wrong], device="neuron")].cpu()


def test_other_streams_go_on():
    side, table = torch.Stream("neuron"), torch.ones(9, 2, device="neuron")
    torch.neuron.synchronize()
    with side:
        wrong = table.index_select(0, torch.tensor([9], device="neuron"))
    assert table.index_select(0, torch.tensor([8], device="neuron")).tolist() == [[1, 1]]
    with pytest.raises(IndexError, match="index_select: index 9"):
        side.synchronize()
    assert wrong.shape == (1, 2)


MISTAKES = [
    lambda x, i: x.index_select(0, i.float()),
    lambda x, i: x.index_select(2, i),
    lambda x, i: x.index_select(0, i.view(1, 2)),
    lambda x, i: x[i, i, i],
    lambda x, i: x[i, torch.cat([i, i[:1]])],
    lambda x, i: x[x],
    lambda x, i: x.index_put((i,), x[:, :3]),
    lambda x, i: x.index_put((i,), i),
    lambda x, i: x.index_add(0, i, x[:1]),
    lambda x, i: x.index_copy(0, i, x.double()),
    lambda x, i: x[:0].index_select(0, i),
    lambda x, i: x[:0][i],
    lambda x, i: torch.index_select(x, 0, i, out=x),
    lambda x, i: x.take(i.int()),
]


@pytest.mark.parametrize("number", range(len(MISTAKES)))
def test_mistakes_are_those_of_the_cpu(number):
    x, index = torch.ones(2, 5), torch.tensor([0, 1])
    with pytest.raises((IndexError, RuntimeError)) as expected:
        MISTAKES[number](x, index)
    with pytest.raises((IndexError, RuntimeError)) as error:
        MISTAKES[number](x.to("neuron"), index.to("neuron"))
    assert error.type is expected.type


def test_float64_sums_fall_back(fallback):
    x, index = values(torch.float64, 3, 4), torch.tensor([2, 0, 2])
    same(lambda x, i: x.index_add(0, i, x), x, index)
    assert set(torch.neuron.fallback_counts()) == {"aten::index_add.out"}


def test_all_floats_are_read():
    for dtype in FLOATS:
        same(lambda x, i: x[i, i], values(dtype, 3, 4), torch.tensor([2, 0, -2]))
