"""Modules, losses and optimisers that do more than a graph can: what each is refused for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn

Arguments = dict[str, Any]


class Keeping(nn.Module):
    """Keeps something for its next forward pass."""

    def __init__(self, keep: Callable[[Any, torch.Tensor], Any]) -> None:
        super().__init__()
        self.keep, self.numbers, self.mean = keep, [0], torch.zeros(3)
        self.register_buffer("seen", torch.zeros(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.keep(self, x.detach())
        return (x - self.mean - self.seen) * (1 + self.numbers[0])


def counts_in_a_list(part: Any, x: torch.Tensor) -> None:
    part.numbers[0] += 1


def counts_for_later(part: Any, x: torch.Tensor) -> None:
    """Show nothing until long after an export."""
    part.calls = getattr(part, "calls", 0) + 1
    part.mean = torch.zeros(3) + float(part.calls > 100)


def averages(part: Any, x: torch.Tensor) -> None:
    part.mean = 0.5 * part.mean + x.mean(0)


def swaps(part: Any, x: torch.Tensor) -> None:
    part.seen.data = x.mean(0)


def kept_faults(arguments: Callable[..., Arguments]) -> dict[str, Callable[[], Arguments]]:
    """Return what makes the arguments of an export, by case; `arguments(*parts)` makes good ones."""

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

    def in_the_loss() -> Arguments:
        class Annealed:
            def __init__(self) -> None:
                self.calls = 0

            def __call__(self, outputs: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
                self.calls += 1
                return nn.functional.cross_entropy(outputs, y) * min(1, self.calls / 5)

        return arguments(loss=Annealed())

    def own_generator() -> Arguments:
        generator = np.random.default_rng(0)
        return arguments(Keeping(lambda part, x: part.seen.fill_(generator.random())))

    def autocast() -> Arguments:
        class Short(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.inner = nn.Linear(3, 3)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                with torch.autocast("cpu", dtype=torch.bfloat16):
                    return self.inner(x).float()

        return arguments(Short())

    def kept_tensor_in_rows_that_differ() -> Arguments:
        # A batch that is longer repeats a row: this loss has no finite gradient there.
        def spread(outputs: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            squares = (outputs[:, None] - outputs[None]).square().sum(-1)
            return (squares + torch.eye(len(outputs))).sqrt().mean() + outputs.mean()

        given = arguments(Keeping(averages), loss=spread)
        return given | {"example": (torch.randn(8, 4), given["example"][1])}

    def kept_for_later() -> Arguments:
        part = Keeping(counts_for_later)
        part.calls = 0
        return arguments(part)

    return {
        "kept_for_later": kept_for_later,
        "torchscript": lambda: arguments(torch.jit.script(nn.Linear(3, 3))),
        "dotted_name": lambda: arguments(names=("value.3", "y")),
        "kept_in_a_list": lambda: arguments(Keeping(counts_in_a_list)),
        "kept_in_the_loss": in_the_loss,
        "own_generator": own_generator,
        "autocast": autocast,
        "kept_tensor_in_rows_that_differ": kept_tensor_in_rows_that_differ,
        "kept_tensor": lambda: arguments(Keeping(averages)),
        "swapped_buffer": lambda: arguments(Keeping(swaps)),
        "written_parameter": written_parameter,
        "parameters_in_a_list": parameters_in_a_list,
        "gradient_hook": gradient_hook,
        "step_hook": step_hook,
    }
