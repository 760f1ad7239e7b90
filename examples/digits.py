# SPDX-License-Identifier: Apache-2.0
"""Trains a classifier on scikit-learn's handwritten digits: 1,797 real images of 8 x 8 pixels.

Plain PyTorch. The device string is the only thing here that knows of Trainium.
"""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn


def parse() -> argparse.Namespace:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="neuron", help="any device that PyTorch has (default neuron)")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--steps", type=int, default=0, help="stop each epoch after this many steps")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--losses", help="write the loss of every step to this file, as exact hexadecimal floats")
    return parser.parse_args()


class Net(nn.Sequential):
    """Two convolutions, the second with stride 2, and two linear layers."""

    def __init__(self) -> None:
        super().__init__(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(32 * 4 * 4, 64),
            nn.ReLU(),
            nn.Linear(64, 10),
        )


def main() -> None:
    """Train, print loss and accuracy of each epoch."""
    args = parse()
    torch.manual_seed(0)
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(digits.target)
    order = torch.randperm(len(images))
    train, test = order[:1437], order[1437:]

    net = Net().to(args.device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(net.parameters(), lr=4e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)
    losses = []

    for epoch in range(args.epochs):
        net.train()
        batches = train[torch.randperm(len(train))].split(args.batch)
        first = len(losses)
        for index in batches[: args.steps or None]:
            x, y = images[index].to(args.device), labels[index].to(args.device)
            optimizer.zero_grad()
            loss = criterion(net(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        schedule.step()
        mean = torch.stack(losses[first:]).mean().item()
        net.eval()
        with torch.no_grad():
            right = net(images[test].to(args.device)).argmax(1) == labels[test].to(args.device)
        print(
            f"epoch {epoch + 1}: loss {mean:.4f}, test accuracy {100 * right.float().mean().item():.2f} %", flush=True
        )

    if args.losses:
        with open(args.losses, "w", encoding="utf-8") as out:
            out.writelines(f"{loss.item().hex()}\n" for loss in losses)


if __name__ == "__main__":
    main()
