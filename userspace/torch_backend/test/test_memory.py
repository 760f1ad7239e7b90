# SPDX-License-Identifier: Apache-2.0
"""Caching allocator: reuse, statistics, giving back, running out."""

import gc

import pytest
import torch

MIB = 2**20


@pytest.fixture(autouse=True)
def clean():
    gc.collect()
    torch.neuron.synchronize()
    torch.neuron.empty_cache()


def test_statistics_follow_tensors():
    before = torch.neuron.memory_allocated()
    torch.neuron.reset_peak_memory_stats()
    x = torch.empty(4 * MIB, dtype=torch.uint8, device="neuron")
    assert torch.neuron.memory_allocated() == before + 4 * MIB
    y = torch.empty(3, device="neuron")
    assert before + 4 * MIB < torch.neuron.memory_allocated() <= before + 4 * MIB + 512
    del x, y
    assert torch.neuron.memory_allocated() == before
    assert torch.neuron.max_memory_allocated() >= before + 4 * MIB
    assert torch.neuron.memory_reserved() >= 4 * MIB
    torch.neuron.reset_peak_memory_stats()
    assert torch.neuron.max_memory_allocated() == before


def test_memory_is_reused():
    x = torch.empty(1000, device="neuron")
    where = x.data_ptr()
    segments = torch.neuron.memory_stats()["segment.all.allocated"]
    for _ in range(50):
        del x
        x = torch.empty(1000, device="neuron")
        assert x.data_ptr() == where
    assert torch.neuron.memory_stats()["segment.all.allocated"] == segments


def test_blocks_do_not_overlap():
    gen = torch.Generator().manual_seed(3)
    live = []
    for step in range(400):
        if live and torch.rand((), generator=gen) < 0.45:
            live.pop(int(torch.randint(len(live), (), generator=gen)))
        size = int(torch.randint(1, 1 << int(torch.randint(1, 22, (), generator=gen)), (), generator=gen))
        live.append(torch.empty(size, dtype=torch.uint8, device="neuron"))
        spans = sorted((t.data_ptr(), t.data_ptr() + t.numel()) for t in live)
        assert all(end <= start for (_, end), (start, _) in zip(spans, spans[1:], strict=False)), step


def test_empty_cache_gives_hbm_back():
    free, total = torch.neuron.mem_get_info()
    x = torch.empty(64 * MIB, dtype=torch.uint8, device="neuron")
    assert torch.neuron.mem_get_info() == (free - 64 * MIB, total)
    del x
    assert torch.neuron.mem_get_info()[0] == free - 64 * MIB
    torch.neuron.empty_cache()
    assert torch.neuron.mem_get_info()[0] == free


def test_out_of_memory_names_sizes_and_recovers():
    _, total = torch.neuron.mem_get_info()
    with pytest.raises(torch.OutOfMemoryError) as error:
        torch.empty(total + 1, dtype=torch.uint8, device="neuron")
    text = str(error.value)
    assert str(total + 1) in text and str(total) in text and "free" in text and "reserved" in text
    assert torch.neuron.memory_stats()["num_ooms"] >= 1
    assert (torch.ones(2, device="neuron") + 1).tolist() == [2, 2]


def test_full_hbm_and_freeing_makes_it_work_again():
    free, _ = torch.neuron.mem_get_info()
    part = free // 16  # a buffer is contiguous: loaded programs may stand in the way of larger ones
    held = []
    with pytest.raises(torch.OutOfMemoryError):
        for _ in range(18):
            held.append(torch.empty(part, dtype=torch.uint8, device="neuron"))
    assert 8 <= len(held) <= 16
    held.pop()
    assert torch.empty(part, dtype=torch.uint8, device="neuron").numel() == part


def test_cached_blocks_are_given_up_before_out_of_memory():
    part = 2**30  # HBM of a buffer is contiguous: many small ones leave room for no large one
    held = []
    with pytest.raises(torch.OutOfMemoryError):
        while True:
            held.append(torch.empty(part, dtype=torch.uint8, device="neuron"))
    retries = torch.neuron.memory_stats()["num_alloc_retries"]
    held.clear()  # now cached
    big = torch.empty(3 * part, dtype=torch.uint8, device="neuron")
    assert torch.neuron.memory_stats()["num_alloc_retries"] == retries + 1
    del big


def test_record_stream_delays_reuse():
    side = torch.neuron.Stream("neuron")
    x = torch.empty(MIB, device="neuron")
    where = x.data_ptr()
    with side:
        for _ in range(20):
            y = x * 2
    x.record_stream(side)
    del x
    z = torch.empty(MIB, device="neuron")
    # Either the side stream was done already, or the block is another one.
    assert z.data_ptr() != where or side.query()
    side.synchronize()
    del y


def test_storage_resizes():
    x = torch.arange(4.0, device="neuron")
    x.resize_(8)
    assert x[:4].tolist() == [0, 1, 2, 3]
    x.untyped_storage().resize_(0)
    assert x.untyped_storage().nbytes() == 0


def test_nothing_leaks_in_a_training_step():
    net = torch.nn.Linear(16, 16).to("neuron")
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)

    def step():
        optimizer.zero_grad()
        net(torch.ones(4, 16).to("neuron")).square().mean().backward()
        optimizer.step()

    step()
    gc.collect()
    before = torch.neuron.memory_allocated()
    for _ in range(5):
        step()
    gc.collect()
    assert torch.neuron.memory_allocated() == before
