# SPDX-License-Identifier: Apache-2.0
"""scaled_dot_product_attention and the modules that are made of it, forward and backward, against the CPU.

The CPU computes in float64, on the operands that the device has. The kernel rounds the exponentials, and the
slopes of the gradient, to the operands' dtype before it multiplies; sums are fp32. So an error is up to a few
roundings of the largest element of a result: bounds are in units of it. In fp32 functions and sums over up to
some hundred keys make more of it than the roundings: 1e-5.
"""

import copy
from typing import Any

import pytest
import torch
from test_ops import ids, values
from test_random import bits
from torch import nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

DTYPES = [torch.float32, torch.bfloat16, torch.float16]
# Of the largest element: eps is the distance between 1 and the next number.
BOUND = {torch.float32: 1e-5, torch.bfloat16: 4 * 2**-8, torch.float16: 4 * 2**-11}


def attend(q: Any, k: Any, v: Any, weights: Any, **how: Any) -> list[Any]:
    """Result, and the gradients by q, k and v for that of the result."""
    q, k, v = (t.detach().requires_grad_() for t in (q, k, v))
    y = F.scaled_dot_product_attention(q, k, v, **how)
    y.backward(weights)
    return [y.detach(), q.grad, k.grad, v.grad]


def close(actual: Any, expected: Any, dtype: Any) -> None:
    for name, one, other in zip(("y", "dq", "dk", "dv"), actual, expected, strict=True):
        assert one.dtype == dtype and one.shape == other.shape
        error = (one.cpu().double() - other).abs().max().item()
        limit = BOUND[dtype] * other.abs().max().item()
        assert error <= limit, f"{name}: error {error:.3g}, limit {limit:.3g}"


def check(q: Any, k: Any, v: Any, mask: Any = None, **how: Any) -> None:
    weights = values(q.dtype, *q.shape[:-1], v.shape[-1])
    wide = mask.double() if mask is not None and mask.dtype != torch.bool else mask
    expected = attend(*(t.double() for t in (q, k, v, weights)), attn_mask=wide, **how)
    device = mask.to("neuron") if mask is not None else None
    actual = attend(*(t.to("neuron") for t in (q, k, v, weights)), attn_mask=device, **how)
    close(actual, expected, q.dtype)


def heads(dtype: Any, batch: int, heads: int, length: int, width: int) -> Any:
    """As a projection of a layer leaves them: heads beside each other in memory."""
    return values(dtype, batch, length, heads * width).view(batch, length, heads, width).transpose(1, 2)


SHAPES = {
    "one": dict(q=(1, 1, 1, 8), k=(1, 1, 1, 8)),
    "plain": dict(q=(2, 3, 40, 16), k=(2, 3, 40, 16)),
    "cross": dict(q=(2, 2, 33, 24), k=(2, 2, 140, 24)),
    "wide": dict(q=(1, 2, 130, 128), k=(1, 2, 130, 128)),
    "value": dict(q=(1, 2, 20, 32), k=(1, 2, 30, 32), width=48),
    "keys": dict(q=(1, 1, 20, 32), k=(1, 1, 1100, 32)),
}


@pytest.mark.parametrize("dtype", DTYPES, **ids)
@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
@pytest.mark.parametrize("name", SHAPES)
def test_attention(name, causal, dtype):
    shape = SHAPES[name]
    k = shape["k"]
    v = heads(dtype, *k[:3], shape.get("width", k[3]))
    check(heads(dtype, *shape["q"]), heads(dtype, *k), v, is_causal=causal)


@pytest.mark.parametrize("shape", [(24, 16), (3, 24, 16), (2, 1, 3, 24, 16)], ids=str)
def test_dimensions(shape):
    check(*(values(torch.float32, *shape) for _ in range(3)), is_causal=True, scale=0.3)


def test_result_lies_as_the_queries():
    q = heads(torch.bfloat16, 2, 4, 16, 8).to("neuron")
    y = F.scaled_dot_product_attention(q, q, q)
    assert y.stride() == q.stride() and y.transpose(1, 2).is_contiguous()


MASKS = {"full": (2, 3, 20, 30), "rows": (2, 1, 1, 30), "plane": (20, 30), "column": (1, 1, 20, 1)}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], **ids)
@pytest.mark.parametrize("kind", ["bool", "added", "float"])
@pytest.mark.parametrize("name", MASKS)
def test_masks(name, kind, dtype):
    if kind == "bool":
        mask = torch.rand(MASKS[name]) < 0.7
    else:
        mask = values(torch.float32 if kind == "float" else dtype, *MASKS[name])
    check(heads(dtype, 2, 3, 20, 16), heads(dtype, 2, 3, 30, 16), heads(dtype, 2, 3, 30, 16), mask)


def test_queries_without_keys():
    mask = torch.ones(20, 30, dtype=torch.bool)
    mask[3], mask[5, 1:] = False, False
    check(heads(torch.float32, 1, 2, 20, 16), *(heads(torch.float32, 1, 2, 30, 16) for _ in range(2)), mask)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], **ids)
def test_finite_mask_that_covers_a_whole_row(dtype):
    """The softmax of scores that are all the same: what the scores were is lost in the sum with the mask."""
    mask = torch.zeros(20, 30, dtype=dtype)
    mask[3], mask[5, 1:] = torch.finfo(dtype).min, torch.finfo(dtype).min
    check(heads(dtype, 1, 2, 20, 16), *(heads(dtype, 1, 2, 30, 16) for _ in range(2)), mask)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], **ids)
@pytest.mark.parametrize("kv", [1, 2])
def test_grouped_queries(kv, dtype):
    k, v = heads(dtype, 2, kv, 30, 16), heads(dtype, 2, kv, 30, 16)
    check(heads(dtype, 2, 4, 20, 16), k, v, enable_gqa=True)
    check(heads(dtype, 2, 4, 20, 16), k, v, torch.rand(2, 4, 20, 30) < 0.7, enable_gqa=True)


def test_many_heads_take_several_launches():
    q, k, v = (heads(torch.bfloat16, 3, 100, 8, 8).to("neuron") for _ in range(3))
    torch.neuron.synchronize()
    torch.neuron.stats(reset=True)
    y = F.scaled_dot_product_attention(q, k, v)
    torch.neuron.synchronize()
    assert torch.neuron.stats()["launches"] == 2
    expected = F.scaled_dot_product_attention(*(t.cpu().float() for t in (q, k, v)))
    torch.testing.assert_close(y.cpu().float(), expected, rtol=0, atol=BOUND[torch.bfloat16] * expected.abs().max())


def chosen(*operands: Any, **how: Any) -> SDPBackend:
    return SDPBackend(torch._fused_sdp_choice(*(t.to("neuron") for t in operands), **how))


def test_what_the_kernel_does_not_take_is_composed():
    q = heads(torch.float32, 2, 2, 20, 16)
    wide = heads(torch.float32, 1, 1, 10, 136)
    mask = torch.zeros(20, 20, requires_grad=True)
    assert chosen(q, q, q) == SDPBackend.OVERRIDEABLE
    assert chosen(wide, wide, wide) == SDPBackend.MATH
    assert chosen(q, q, q, scale=-1.0) == SDPBackend.MATH
    assert chosen(q, q[:1], q[:1]) == SDPBackend.MATH
    assert chosen(q, q, q, attn_mask=mask.to("neuron")) == SDPBackend.MATH
    more = [heads(torch.float32, 1, 1, 10, 136) for _ in range(2)]
    check(wide, *more)
    check(wide, *more, is_causal=True)
    k, v = (heads(torch.float32, 1, 2, 20, 16) for _ in range(2))
    check(q[:1], k, v, scale=-0.5)
    check(q, k, v)


# --- dropout

SEED = 1234567890123


def kept(p: float, *shape: int, offset: int = 0) -> Any:
    """What a draw leaves of weights, as docs/random.md has it: 1 / (1 - p) or 0."""
    signed = bits(SEED, offset, torch.Size(shape).numel()).to(torch.int32).view(shape).double()
    return ((signed + 0.5 + 2**31) / 2**32 < 1 - p).double() / (1 - p)


def dropped(q: Any, k: Any, v: Any, weights: Any, mask: Any, **how: Any) -> list[Any]:
    """attend(), composed, in float64; mask: of kept()."""
    q, k, v = (t.double().requires_grad_() for t in (q, k, v))
    all_k, all_v = (t.repeat_interleave(q.shape[-3] // t.shape[-3], -3) for t in (k, v))
    scores = q @ all_k.transpose(-2, -1) / q.shape[-1] ** 0.5
    if how.get("is_causal"):
        scores = scores.masked_fill(torch.ones(scores.shape[-2:]).triu(1).bool(), -torch.inf)
    if how.get("attn_mask") is not None:
        scores = scores.masked_fill(~how["attn_mask"], -torch.inf)
    y = (scores.softmax(-1) * mask) @ all_v
    y.backward(weights.double())
    return [y.detach(), q.grad, k.grad, v.grad]


def check_dropout(q: Any, k: Any, v: Any, p: float, **how: Any) -> None:
    weights = values(q.dtype, *q.shape[:-1], v.shape[-1])
    expected = dropped(q, k, v, weights, kept(p, *q.shape[:-1], k.shape[-2]), **how)
    device = {name: x.to("neuron") if isinstance(x, torch.Tensor) else x for name, x in how.items()}
    assert chosen(q, k, v, dropout_p=p, **device) == SDPBackend.OVERRIDEABLE
    torch.neuron.manual_seed(SEED)
    actual = attend(*(t.to("neuron") for t in (q, k, v, weights)), dropout_p=p, **device)
    close(actual, expected, q.dtype)


@pytest.mark.parametrize("dtype", DTYPES, **ids)
@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
@pytest.mark.parametrize("name", SHAPES)
def test_dropout(name, causal, dtype):
    shape = SHAPES[name]
    k = shape["k"]
    v = heads(dtype, *k[:3], shape.get("width", k[3]))
    # The gradient by the query of one key is 0, as is its bound: 1 / (1 - p) must not be rounded.
    p = 0.5 if name == "one" else 0.3
    check_dropout(heads(dtype, *shape["q"]), heads(dtype, *k), v, p, is_causal=causal)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], **ids)
def test_dropout_with_a_mask(dtype):
    mask = torch.rand(2, 1, 20, 30) < 0.7
    mask[..., 0] = True
    check_dropout(heads(dtype, 2, 3, 20, 16), *(heads(dtype, 2, 3, 30, 16) for _ in range(2)), 0.5, attn_mask=mask)


@pytest.mark.parametrize("kv", [1, 2])
def test_dropout_of_grouped_queries(kv):
    """Weights are numbered by the heads of the queries."""
    k, v = (heads(torch.float32, 2, kv, 30, 16) for _ in range(2))
    check_dropout(heads(torch.float32, 2, 4, 20, 16), k, v, 0.4, enable_gqa=True)


def test_dropout_in_several_launches_is_one_draw():
    check_dropout(*(heads(torch.float32, 3, 100, 8, 8) for _ in range(3)), 0.4)
    state = torch.neuron.get_rng_state()
    torch.neuron.manual_seed(SEED)
    torch.rand(1, device="neuron")
    assert torch.equal(torch.neuron.get_rng_state(), state)


def test_dropout_follows_the_generator():
    q = heads(torch.float32, 2, 2, 40, 16).to("neuron")

    def run(p=0.5):
        return F.scaled_dot_product_attention(q, q, q, dropout_p=p).cpu()

    torch.manual_seed(5)
    one, two = run(), run()
    torch.manual_seed(5)
    assert torch.equal(run(), one) and torch.equal(run(), two) and not torch.equal(one, two)
    torch.manual_seed(6)
    assert not torch.equal(run(), one)
    state = torch.neuron.get_rng_state()
    torch.testing.assert_close(run(0.0), F.scaled_dot_product_attention(*(q.cpu() for _ in range(3))))
    assert torch.equal(torch.neuron.get_rng_state(), state)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_how_many_weights_dropout_leaves(p):
    q, v = torch.zeros(4, 128, 8, device="neuron"), torch.eye(128, device="neuron").expand(4, 128, 128)
    torch.neuron.manual_seed(1)
    y = F.scaled_dot_product_attention(q, q, v, dropout_p=p).cpu() * 128 * (1 - p)
    assert torch.all((y == 0) | ((y - 1).abs() < 1e-5))
    # Within 5 standard errors: of all, and of each query and key.
    for part, n in ((y.mean(), y.numel()), (y.mean(-1), 128), (y.mean((0, 1)), 512)):
        assert (part - (1 - p)).abs().max().item() < 5 * (p * (1 - p) / n) ** 0.5


def test_dropout_of_everything():
    q = heads(torch.float32, 1, 2, 20, 16)
    assert chosen(q, q, q, dropout_p=1.0) == SDPBackend.MATH
    y = F.scaled_dot_product_attention(*(q.to("neuron") for _ in range(3)), dropout_p=1.0)
    assert torch.all(y.cpu() == 0)


def test_gradient_of_a_mask():
    q, bias = heads(torch.float32, 1, 2, 20, 16), values(torch.float32, 2, 20, 20)

    def run(device):
        b = bias.to(device).requires_grad_()
        F.scaled_dot_product_attention(*(q.to(device) for _ in range(3)), attn_mask=b).square().sum().backward()
        return b.grad.cpu()

    torch.testing.assert_close(run("neuron"), run("cpu"), rtol=1e-4, atol=1e-5)


def test_backends_can_be_switched_off():
    q = heads(torch.float32, 1, 2, 20, 16).to("neuron")
    with sdpa_kernel(SDPBackend.MATH):
        assert chosen(q, q, q) == SDPBackend.MATH
    with sdpa_kernel(SDPBackend.OVERRIDEABLE):
        assert chosen(q, q, q) == SDPBackend.OVERRIDEABLE
        with pytest.raises(RuntimeError, match="math backend is switched off"):
            F.scaled_dot_product_attention(q, q, q, scale=-1.0)


def test_mistakes_are_pytorchs():
    q = heads(torch.float32, 1, 2, 20, 16).to("neuron")
    mask = torch.zeros(20, 20, device="neuron")
    with pytest.raises(RuntimeError, match="attn_mask"):
        F.scaled_dot_product_attention(q, q, q, attn_mask=mask, is_causal=True)
    with pytest.raises(RuntimeError):
        F.scaled_dot_product_attention(q, q[..., :8], q)


# --- modules

MODULES = {
    "encoder_layer": lambda: nn.TransformerEncoderLayer(32, 4, 64, 0.0, batch_first=True),
    "norm_first": lambda: nn.TransformerEncoderLayer(32, 4, 64, 0.0, "gelu", batch_first=True, norm_first=True),
    "decoder_layer": lambda: nn.TransformerDecoderLayer(32, 4, 64, 0.0, batch_first=True),
    "attention": lambda: nn.MultiheadAttention(32, 4, batch_first=True),
    "no_weights": lambda: nn.MultiheadAttention(32, 4, bias=False, batch_first=True),
}


def call(name: str, net: Any, x: Any, **how: Any) -> Any:
    if name == "decoder_layer":
        return net(x, x * 0.5)
    if name == "attention":
        return net(x, x, x, need_weights=True)[0]
    return net(x, x, x, need_weights=False)[0] if name == "no_weights" else net(x, **how)


@pytest.mark.parametrize("name", MODULES)
def test_module(name):
    net, x = MODULES[name](), torch.randn(2, 12, 32)

    def run(device):
        mine, y = copy.deepcopy(net).to(device), x.to(device).requires_grad_()
        out = call(name, mine, y)
        out.square().mean().backward()
        return [t.detach().cpu() for t in (out, y.grad, *(p.grad for p in mine.parameters()))]

    for one, other in zip(run("neuron"), run("cpu"), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=2e-6)
    assert torch.neuron.fallback_counts() == {}


TRAINED = {
    "encoder_layer": lambda: nn.TransformerEncoderLayer(32, 4, 64, 0.2, "gelu", batch_first=True),
    "decoder_layer": lambda: nn.TransformerDecoderLayer(32, 4, 64, 0.2, "gelu", batch_first=True),
    "no_weights": lambda: nn.MultiheadAttention(32, 4, 0.2, batch_first=True),
}


@pytest.mark.parametrize("name", TRAINED)
def test_module_in_training_with_dropout(name):
    """Gradients against differences, which are of the same function only if both ways drop the same."""
    net, x, way = TRAINED[name]().to("neuron"), torch.randn(2, 12, 32), torch.randn(2, 12, 32)
    weights = torch.randn(2, 12, 32, device="neuron")

    def run(at):
        torch.neuron.manual_seed(SEED)
        with sdpa_kernel(SDPBackend.OVERRIDEABLE):
            return (call(name, net, at) * weights).sum()

    y = x.to("neuron").requires_grad_()
    run(y).backward()
    slope = (y.grad.cpu() * way).sum().item()
    step = 2**-7
    difference = (run((x + step * way).to("neuron")) - run((x - step * way).to("neuron"))).item() / (2 * step)
    assert slope == pytest.approx(difference, rel=1e-2, abs=0.05)
    assert run(y.detach()).item() != (call(name, net.eval(), y.detach()) * weights).sum().item()
    assert torch.neuron.fallback_counts() == {}


@pytest.mark.parametrize("name", MODULES)
def test_module_without_gradients(name):
    """PyTorch has ways of its own for inference."""
    net, x = MODULES[name]().eval(), torch.randn(2, 12, 32)
    with torch.no_grad():
        expected = call(name, net, x)
        actual = call(name, net.to("neuron"), x.to("neuron"))
    torch.testing.assert_close(actual.cpu(), expected, rtol=1e-4, atol=2e-6)


def test_encoder_without_gradients_and_with_padding():
    net = nn.TransformerEncoder(MODULES["encoder_layer"](), 2, enable_nested_tensor=False).eval()
    x = torch.randn(2, 12, 32)
    padding = torch.zeros(2, 12, dtype=torch.bool)
    padding[1, 8:] = True
    with torch.no_grad():
        expected = net(x, src_key_padding_mask=padding)
        actual = net.to("neuron")(x.to("neuron"), src_key_padding_mask=padding.to("neuron"))
    torch.testing.assert_close(actual.cpu()[~padding], expected[~padding], rtol=1e-4, atol=2e-6)


def test_padding_and_causal_masks_of_an_encoder():
    layer = MODULES["encoder_layer"]()
    padding = torch.zeros(2, 12, dtype=torch.bool)
    padding[1, 8:] = True
    causal = nn.Transformer.generate_square_subsequent_mask(12)
    x = torch.randn(2, 12, 32)
    expected = layer(x, causal, padding.float() * -1e9, is_causal=False)
    layer = layer.to("neuron")
    actual = layer(x.to("neuron"), causal.to("neuron"), (padding.float() * -1e9).to("neuron"), is_causal=False)
    torch.testing.assert_close(actual.cpu(), expected, rtol=1e-4, atol=2e-6)
