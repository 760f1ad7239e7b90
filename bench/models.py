# SPDX-License-Identifier: Apache-2.0
"""Models that the benchmarks train: plain PyTorch, nothing of any device."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

TOKENS = 256  # bytes of text


class Block(nn.Module):
    """Causal attention and a perceptron, each behind a layer norm."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.back = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def attention(self, x: Tensor) -> Tensor:
        """[batch, tokens, width] to the same."""
        batch, tokens, width = x.shape
        q, k, v = (
            part.view(batch, tokens, self.heads, width // self.heads).transpose(1, 2)
            for part in self.qkv(x).split(width, dim=2)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(batch, tokens, width))

    def forward(self, x: Tensor) -> Tensor:
        """[batch, tokens, width] to the same."""
        x = x + self.attention(self.norm1(x))
        return x + self.back(F.gelu(self.wide(self.norm2(x))))


class Gpt(nn.Module):
    """A decoder of bytes; 3.3 million parameters unless told otherwise."""

    def __init__(self, width: int = 256, layers: int = 4, heads: int = 4, context: int = 128) -> None:
        super().__init__()
        self.token, self.place = nn.Embedding(TOKENS, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, TOKENS, bias=False)

    def forward(self, text: Tensor) -> Tensor:
        """[batch, tokens] of integers to [batch, tokens, TOKENS] of logits."""
        x = self.token(text) + self.place(torch.arange(text.shape[1], device=text.device))
        return self.head(self.norm(self.blocks(x)))


def gpt_loss(logits: Tensor, text: Tensor) -> Tensor:
    """Mean cross entropy of [batch, tokens, TOKENS] and the [batch, tokens] that are right."""
    return F.cross_entropy(logits.reshape(-1, TOKENS), text.reshape(-1))


class Residual(nn.Module):
    """Two 3 x 3 convolutions and a way around them."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        same = stride == 1 and inputs == outputs
        self.around = (
            nn.Identity()
            if same
            else nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))
        )

    def forward(self, x: Tensor) -> Tensor:
        """[batch, inputs, height, width] to [batch, outputs, height / stride, width / stride]."""
        return F.relu(self.body(x) + self.around(x))


class ResNet18(nn.Sequential):
    """He et al. 2015: 11.7 million parameters with 1000 classes."""

    def __init__(self, classes: int = 1000) -> None:
        stages = [(64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2)]
        super().__init__(
            nn.Conv2d(3, 64, 7, 2, 3, bias=False),
            nn.BatchNorm2d(64),
            nn.ReLU(),
            nn.MaxPool2d(3, 2, 1),
            *(block for i, o, s in stages for block in (Residual(i, o, s), Residual(o, o, 1))),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(512, classes),
        )
