"""Modules, losses and optimisers that do more than a graph can: what each is refused for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

Arguments = dict[str, Any]


class Keeping(nn.Module):
    """Keeps something for its next forward pass."""

    def __init__(self, keep: Callable[[Any, torch.Tensor], Any]) -> None:
        super().__init__()
        self.keep, self.calls, self.mean = keep, 0, torch.zeros(3)
        self.register_buffer("seen", torch.zeros(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.keep(self, x.detach())
        return x - self.mean - self.seen + self.calls


def counts(part: Any, x: torch.Tensor) -> None:
    part.calls += 1


def averages(part: Any, x: torch.Tensor) -> None:
    part.mean = 0.5 * part.mean + x.mean(0)


def swaps(part: Any, x: torch.Tensor) -> None:
    part.seen.data = x.mean(0)


def widens(part: Any, x: torch.Tensor) -> None:
    part.seen = x.mean(0).double()


def kept_faults(arguments: Callable[..., Arguments]) -> dict[str, Callable[[], Arguments]]:
    """Return what makes the arguments of an export, by case; `arguments(*parts)` makes good ones."""

    def infinite_buffer() -> Arguments:
        part = Keeping(lambda *_: None)
        part.seen.fill_(-torch.inf)
        return arguments(part)

    def written_parameter() -> Arguments:
        module = nn.Sequential(nn.Embedding(5, 2, max_norm=1.0), nn.Flatten(1), nn.Linear(6, 3))
        given = arguments()
        example = (torch.zeros(8, 3, dtype=torch.int64), given["example"][1])
        sgd = torch.optim.SGD(module.parameters(), lr=0.1)
        return given | {"module": module, "optimiser": sgd, "example": example}

    def parameters_in_a_list() -> Arguments:
        given = arguments()
        held = list(given["module"].parameters())
        return given | {"loss": lambda outputs, y: outputs.square().mean() + held[0].square().sum()}

    def gradient_hook() -> Arguments:
        given = arguments()
        given["module"][0].weight.register_hook(lambda gradient: gradient / 2)
        return given

    def step_hook() -> Arguments:
        given = arguments()
        given["optimiser"].register_step_pre_hook(lambda *_: None)
        return given

    return {
        "kept_number": lambda: arguments(Keeping(counts)),
        "kept_tensor": lambda: arguments(Keeping(averages)),
        "swapped_buffer": lambda: arguments(Keeping(swaps)),
        "widened_buffer": lambda: arguments(Keeping(widens)),
        "infinite_buffer": infinite_buffer,
        "written_parameter": written_parameter,
        "parameters_in_a_list": parameters_in_a_list,
        "gradient_hook": gradient_hook,
        "step_hook": step_hook,
        "no_shape_yet": lambda: arguments(nn.LazyLinear(3)),
        "dotted_name": lambda: arguments(names=("value.3", "y")),
    }
