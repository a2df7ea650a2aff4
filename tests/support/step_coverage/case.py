"""One case of the coverage: a module, its data and its loss. Cases are listed without torch, too."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

CLASSES = 5


class _Lazy:
    """A module that is imported when something of it is used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self._name), name)


torch, nn, functional = _Lazy("torch"), _Lazy("torch.nn"), _Lazy("torch.nn.functional")


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One data tensor: its shape without the batch, and what its values are.

    `kind` is `normal`, `uniform` (in [0, 1]), or `integer` below `below`.
    """

    shape: tuple[int, ...]
    kind: str = "normal"
    below: int = 0

    def draw(self, batch: int, generator: torch.Generator) -> torch.Tensor:
        """Return a tensor of shape (batch, *shape), float64 or int64."""
        size = (batch, *self.shape)
        if self.kind == "integer":
            return torch.randint(self.below, size, generator=generator)
        if self.kind == "normal":
            return torch.randn(size, generator=generator, dtype=torch.float64)
        return torch.rand(size, generator=generator, dtype=torch.float64)


def normal(*shape: int) -> Sample:
    """Return standard normal values."""
    return Sample(shape=shape)


def uniform(*shape: int) -> Sample:
    """Return values between 0 and 1."""
    return Sample(shape=shape, kind="uniform")


def tokens(vocabulary: int, *shape: int) -> Sample:
    """Return whole numbers from 0 to `vocabulary` - 1."""
    return Sample(shape=shape, kind="integer", below=vocabulary)


def classes(*shape: int) -> Sample:
    """Return labels of `CLASSES` classes."""
    return tokens(CLASSES, *shape)


Loss = Callable[..., Any]


def cross_entropy(output: Any, target: Any) -> Any:
    """Return the mean cross entropy of logits (batch, classes, …)."""
    return functional.cross_entropy(output, target)


@dataclass(frozen=True, kw_only=True)
class Case:
    """A module that a training step is exported of and compared with PyTorch.

    `build` makes it (float32, fresh weights), `x` are the model's inputs and `y` the target, of
    which `loss` says the scalar to lower. `rate` is that of the compared trajectory, null where
    one step is enough. `bound` is the largest relative error of a gradient in float64, `least_batch` the
    shortest batch that the module takes in training.
    """

    name: str
    group: str
    what: str
    build: Callable[[], Any]
    x: tuple[Sample, ...]
    y: Sample
    loss: Loss = field(default=cross_entropy)
    batch: int = 3
    rate: float | None = 0.05
    bound: float = 1e-10
    least_batch: int = 1

    def module(self) -> torch.nn.Module:
        """Return the module with weights that depend on the case's name alone."""
        torch.manual_seed(sum(map(ord, self.name)))
        made: torch.nn.Module = self.build()
        with torch.no_grad():
            # A lazy layer learns its width here; the buffers of norms stay as they begin.
            made.eval()(
                *(value.float() if value.is_floating_point() else value for value in self.inputs(self.batch, seed=0))
            )
        return made.train()

    def inputs(self, batch: int, seed: int) -> tuple[torch.Tensor, ...]:
        """Return the model's inputs, float64 or int64."""
        generator = torch.Generator().manual_seed(seed)
        return tuple(part.draw(batch, generator) for part in self.x)

    def target(self, batch: int, seed: int) -> torch.Tensor:
        """Return the target, float64 or int64."""
        return self.y.draw(batch, torch.Generator().manual_seed(seed + 1_000_003))


CASES: dict[str, Case] = {}


def case(
    group: str, *x: Sample, y: Sample | None = None, **more: Any
) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Decorate a function that builds a module: its name and first line become a row."""

    def add(build: Callable[[], Any]) -> Callable[[], Any]:
        name = build.__name__.strip("_").replace("_", "-")
        what = (inspect.getdoc(build) or "").split("\n", 1)[0].rstrip(".")
        CASES[name] = Case(name=name, group=group, what=what, build=build, x=x, y=y or classes(), **more)
        return build

    return add
