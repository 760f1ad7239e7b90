# SPDX-License-Identifier: Apache-2.0
"""Elements by index against the CPU: gather, scatter, scatter_add, take_along_dim."""

import pytest
import torch
from compare import same
from test_index import ADDED, INDEX, LAYOUTS
from test_ops import ALL, HALVES, ids, values

SHAPES = [((5, 7), (5, 1)), ((5, 7), (3, 12)), ((4, 3, 6), (2, 3, 9)), ((9,), (30,)), ((2, 3, 4, 5), (2, 1, 4, 3))]


def elements(shape, size, dim, dtype=torch.int64):
    """An index into shape along dim, with duplicates; no larger than it along the others."""
    size = [n if d == dim else min(n, shape[d]) for d, n in enumerate(size)]
    return torch.randint(shape[dim], size, dtype=dtype)


@pytest.mark.parametrize("shape, size", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [*ALL, torch.complex64], **ids)
def test_gather(dtype, shape, size):
    x = torch.randn(shape, dtype=dtype) if dtype.is_complex else values(dtype, *shape)
    for dim in range(len(shape)):
        for kind in INDEX:
            same(torch.gather, x, dim, elements(shape, size, dim, kind))
    same(lambda x, i: x.take_along_dim(i), x, torch.tensor([[1, 0], [2, 2]]))


@pytest.mark.parametrize("shape, size", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ALL, **ids)
def test_scatter(dtype, shape, size):
    for dim in range(len(shape)):
        # Without duplicates: which of them stays is not defined.
        index = elements(shape, size, dim)
        index = torch.argsort(torch.rand([shape[dim] if d == dim else n for d, n in enumerate(index.shape)]), dim)
        source = values(dtype, *[n + 1 for n in index.shape])
        same(torch.scatter, values(dtype, *shape), dim, index, source)
        same(torch.scatter, values(dtype, *shape), dim, elements(shape, size, dim, torch.int32), 1)


@pytest.mark.parametrize("shape, size", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ADDED, **ids)
def test_scatter_add(dtype, shape, size):
    if dtype == torch.bool:
        pytest.skip("the CPU has no sums of bool by element")
    for dim in range(len(shape)):
        index = elements(shape, size, dim)
        # In order, as on the CPU: equal to the last bit. Of halves it rounds sums more than once.
        same(torch.scatter_add, values(dtype, *shape), dim, index,
             values(dtype, *[n + 1 for n in index.shape]), scale=16 if dtype in HALVES else 0)  # fmt: skip


def test_sums_of_float64_with_one_index_a_row():
    x, index = values(torch.float64, 5, 7), torch.randint(7, (5, 1))
    same(lambda x, i, y: x.scatter_add(1, i, y), x, index, values(torch.float64, 5, 1), scale=0)
    same(lambda x, i, y: x.scatter_add(1, i, y), x.long(), index, values(torch.int64, 5, 1))


def test_other_sums_fall_back(fallback):
    x, index = values(torch.float64, 5, 7), torch.randint(5, (6, 7))
    same(lambda x, i, y: x.scatter_add(0, i, y), x, index, values(torch.float64, 6, 7))
    same(lambda x, i, y: x.scatter_reduce(0, i, y, "prod"), x, index, values(torch.float64, 6, 7))
    assert set(torch.neuron.fallback_counts()) == {"aten::scatter_add.out", "aten::scatter_reduce.two_out"}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dim", range(4))
def test_layouts(layout, dim):
    def run(x, index, rows):
        x, rows = LAYOUTS[layout](x), rows[:, :, :3]
        where = index[:, :, :3].expand(-1, -1, -1, 2) % x.shape[dim]
        out = [x.gather(dim, where), x.scatter_add(dim, where, rows), x.long().scatter_add(dim, where, rows.long())]
        if layout != "expanded":
            x.scatter_add_(dim, where, rows)
            x.scatter_(dim, where, 5.0)
            x.char().scatter_add_(dim, where, rows.char())
        return *out, x

    x = values(torch.float32, 4, 6, 5, 4)
    same(lambda x, *rest: (run(x, *rest), x), x, torch.randint(6, (2, 2, 4, 1)), values(torch.float32, 2, 2, 4, 2))


def test_many_elements():
    x, index = values(torch.float32, 300, 200), torch.randint(200, (300, 1000))
    same(lambda x, i: x.gather(1, i), x, index)
    same(lambda x, i, y: x.scatter_add(1, i, y), x, index, values(torch.float32, 300, 1000), scale=0)


def test_duplicates_always_give_the_same():
    x, index, rows = torch.zeros(5, device="neuron"), torch.randint(5, (4000,)), values(torch.float32, 4000)
    index, rows = index.to("neuron"), rows.to("neuron")
    for run in (lambda: x.scatter_add(0, index, rows), lambda: x.scatter(0, index, rows)):
        first = run().cpu()
        assert all(torch.equal(run().cpu(), first) for _ in range(3))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], **ids)
def test_gradients(dtype):
    def run(x, index, y, weights):
        x, y = x.requires_grad_(), y.requires_grad_()
        for result in (x.gather(1, index), x.scatter(1, index[:, :1], y[:, :1]), x.scatter_add(0, index % 3, y),
                       x.scatter(1, index, 0.0)):  # fmt: skip
            (result * weights).sum().backward()
        return x.grad, y.grad

    same(run, values(dtype, 3, 4), torch.randint(4, (3, 4)), values(dtype, 3, 4), values(dtype, 3, 4), scale=16)


def test_empty_and_without_dims():
    x = values(torch.float32, 3, 4)
    same(lambda x, i: x.gather(0, i), x, torch.empty(0, 4, dtype=torch.int64))
    same(lambda x, i: x.scatter(0, i, 2.0), x, torch.empty(0, dtype=torch.int64))
    same(lambda x, i: x[:0].gather(1, i), x, torch.empty(0, 2, dtype=torch.int64))
    same(lambda x, i: x[0, 0].gather(0, i), x, torch.tensor(0))
    same(lambda x, i: x[0, 0].gather(0, i), x, torch.tensor([0, 0]))
    same(lambda x, i: x[0, 0].scatter(0, i, 3.0), x, torch.tensor(0))
    same(lambda x, i: x[0].scatter_add(0, i, x[0, 1]), x, torch.tensor(2))


def test_out():
    def run(x, i):
        large = torch.full((6, 8), 9.0, device=x.device)
        torch.gather(x, 1, i, out=large[::2, :3])
        torch.scatter_add(x, 1, i, x, out=large[1::2, 4:])
        return large, torch.gather(x, 0, i, out=torch.empty(0, device=x.device))

    same(run, values(torch.float32, 3, 4), torch.randint(3, (3, 3)))


# The limit is the size of the dim: places within the tensor are no excuse.
WRONG = {
    "gather": lambda x, i: x.gather(1, i),
    "scatter": lambda x, i: x.scatter(1, i, 1.0),
    "scatter_add": lambda x, i: x.scatter_add(1, i, x[:, :2]),
    "scatter_add of float64": lambda x, i: x.double().scatter_add(1, i[:, :1], x.double()),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_index_out_of_bounds(name):
    run, x = WRONG[name], torch.arange(12.0).view(2, 6)
    same(run, x, torch.tensor([[0, 5], [5, 0]]))
    for wrong in (6, -1, 2**31 - 1, -(2**31)):
        index = torch.tensor([[wrong, 3], [0, 0]])
        with pytest.raises(RuntimeError):
            run(x, index)
        result = run(x.to("neuron"), index.to("neuron"))
        with pytest.raises(IndexError, match=f"{name.split()[0]}: index {wrong} is out of bounds for dimension with "
                                             "size 6"):  # fmt: skip
            result.cpu()
        same(run, x, torch.tensor([[0, 5], [5, 0]]))


MISTAKES = [
    lambda x, i: x.gather(0, i.float()),
    lambda x, i: x.gather(2, i),
    lambda x, i: x.gather(0, i[0]),
    lambda x, i: x.gather(0, torch.cat([i, i], 1)),
    lambda x, i: x.scatter(0, torch.cat([i, i], 1), 1),
    lambda x, i: x.scatter(0, i, x[:1]),
    lambda x, i: x.scatter_add(0, i, x.double()),
    lambda x, i: torch.gather(x, 0, i, out=x),
]


@pytest.mark.parametrize("number", range(len(MISTAKES)))
def test_mistakes_are_those_of_the_cpu(number):
    x, index = torch.ones(2, 3), torch.tensor([[0, 1, 0], [1, 1, 0]])
    for device in ("cpu", "neuron"):
        with pytest.raises((IndexError, RuntimeError)):
            MISTAKES[number](x.to(device), index.to(device))
