"""One case: a module as its user has it, the loss and an example. Listed without torch, and without the libraries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Example:
    """What `export_step` takes of a case. `data`: the inputs and, last, the target; `optimiser`: made of the module."""

    module: Any
    loss: Callable[[Any, Any], Any]
    data: tuple[Any, ...]
    dynamic: Mapping[str, Mapping[int, str]] | None = None
    optimiser: Callable[[Any], Any] | None = None


@dataclass(frozen=True, kw_only=True)
class Case:
    """`library`: the distribution that it needs beside torch, or `torch`. `refused`: why it may not pass, or nothing."""

    name: str
    library: str
    build: Callable[[], Example]
    refused: str = ""


CASES: dict[str, Case] = {}


def add(library: str, name: str, build: Callable[[], Example], refused: str = "") -> None:
    """Register a case under LIBRARY/NAME."""
    CASES[f"{library}/{name}"] = Case(name=name, library=library, build=build, refused=refused)


def classified(module: Any, *inputs: Any, classes: int = 5) -> Example:
    """Return a module of logits (batch, classes) with cross entropy."""
    import torch

    labels = torch.arange(len(inputs[0])) % classes
    return Example(module=module, loss=torch.nn.functional.cross_entropy, data=(*inputs, labels))


def without_dropout(module: Any) -> Any:
    """Let dropout keep all: its masks are others than torch's by design."""
    import torch

    for part in module.modules():
        if isinstance(part, torch.nn.modules.dropout._DropoutNd):
            part.p = 0.0
    return module
