"""Modules and their exports for the tests of `transect check-export`: right, wrong in one place each, and unusable."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

X = torch.randn(3, 3, 8, 8, generator=torch.Generator().manual_seed(1))


class Net(nn.Module):
    """A convolution that exporters fold with its norm, and two outputs, one of integers."""

    def __init__(self, act: nn.Module | None = None, rows: int = -1) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv, self.bn, self.act = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), act or nn.GELU()
        self.pool, self.fc, self.drop, self.rows = nn.AdaptiveAvgPool2d(2), nn.Linear(32, 5), nn.Dropout(0.5), rows
        with torch.no_grad():
            self.bn.running_mean.normal_()
            self.bn.running_var.uniform_(0.5, 2)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return scores and the likeliest class."""
        scores = self.drop(self.fc(self.pool(self.act(self.bn(self.conv(x)))).reshape(self.rows, 32)))
        return scores, scores.argmax(1)


class Two(nn.Module):
    """Inputs of one shape that are told apart by their names alone, and an output that is not finite."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(4, 4)

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return a difference, and infinities beside numbers."""
        return {"difference": self.linear(a) - b, "edges": torch.where(a > 0, torch.inf, b)}


class Drawn(nn.Module):
    """It draws in evaluation too."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Add a random number."""
        return x + torch.rand(())


def right() -> tuple[nn.Module, torch.Tensor]:
    """A module and its only input; what it prints is no part of an answer."""
    print("a module prints")
    return Net(), X


def approximate() -> tuple[nn.Module, tuple[torch.Tensor]]:
    """A part that is off by 1e-4."""
    return Net(nn.GELU(approximate="tanh")), (X,)


def alone() -> nn.Module:
    """No example."""
    return Net()


def two() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """Two inputs."""
    return Two(), (torch.arange(8.0).reshape(2, 4) - 3, torch.ones(2, 4))


def drawn() -> tuple[nn.Module, torch.Tensor]:
    """Other outputs each time."""
    return Drawn(), X


def raises() -> None:
    """As where weights are missing."""
    raise RuntimeError("no weights")


def nothing() -> None:
    """No module."""


def empty() -> tuple[nn.Module, torch.Tensor]:
    """Return a module and inputs of no row."""
    module, example = right()
    return module, example[:0]


def sparse() -> tuple[nn.Module, torch.Tensor]:
    """Return a module and inputs that are no plain array."""
    module, example = right()
    return module, example.to_sparse()


def killed() -> None:
    """End this process."""
    os.kill(os.getpid(), signal.SIGKILL)


def step() -> Any:
    """What `transect export-step` takes: the last of the example is no input."""
    from transect.portable_step import Step

    module = Net()
    optimiser = torch.optim.SGD(module.parameters(), lr=0.1)
    target = torch.zeros(3, dtype=torch.int64)
    return Step(module=module, loss=nn.functional.cross_entropy, optimiser=optimiser, example=(X, target))


def _rounded(source: str, target: str) -> None:
    """Write a file whose weights are rounded to float16."""
    import onnx

    model = onnx.load(source)
    for tensor in model.graph.initializer:
        array = onnx.numpy_helper.to_array(tensor)
        if array.dtype == np.float32:
            tensor.CopyFrom(onnx.numpy_helper.from_array(array.astype(np.float16).astype(np.float32), tensor.name))
    onnx.save(model, target)


def write_all() -> None:
    """Write every file into the working folder."""
    usual = {"dynamo": True, "external_data": False, "verbose": False}
    names = {"input_names": ["x"], "output_names": ["scores", "class"]}
    dynamic = {"dynamic_shapes": ({0: torch.export.Dim("batch")},)}
    torch.onnx.export(Net().eval(), (X,), "right.onnx", **usual, **names, **dynamic)
    torch.onnx.export(Net().train(), (X,), "training.onnx", **usual, **names)
    # The old exporter takes the rows of the example for those of all.
    baked = {"dynamo": False, "dynamic_axes": {"x": {0: "batch"}}}
    torch.onnx.export(Net(rows=3).eval(), (X,), "baked.onnx", **baked, **names)
    torch.onnx.export(Two().eval(), two()[1], "two.onnx", **usual)
    # Names that say nothing of the order.
    torch.onnx.export(Two().eval(), two()[1], "swapped.onnx", **usual, input_names=["b", "a"])
    torch.onnx.export(Drawn().eval(), (X,), "drawn.onnx", **usual)
    _rounded("right.onnx", "rounded.onnx")
    a, b = (tensor.numpy() for tensor in two()[1])
    np.savez("two.npz", b=b, a=a)
    np.savez("one.npz", a=a)
    np.savez("objects.npz", a=np.array([{}], dtype=object), b=b)
    np.save("array.npy", a)
    Path("text.npz").write_text("no archive")
    Path("text.onnx").write_text("no model")


if __name__ == "__main__":
    sys.exit(write_all())
