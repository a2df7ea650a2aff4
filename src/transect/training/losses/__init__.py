"""Losses: what a training makes small. One file each, which says value and gradient in numpy.

In float64 they are what every framework's own implementation is held to.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from pydantic import AfterValidator

from transect.domain.errors import BadInput
from transect.domain.registry import Plugin, Registry

if TYPE_CHECKING:
    from transect.training.workloads import Parameters

__all__ = ["LOSSES", "Loss", "LossName", "Targets", "as_numbers", "check_targets", "unsupported_loss"]

# What a loss compares outputs (n, ...) with: class numbers (n,) beside outputs (n, classes); token numbers (n, time)
# beside (n, time, vocabulary); real numbers, or zeros and ones, of the outputs' own shape.
Targets = Literal["classes", "tokens", "numbers", "labels"]


class Loss(Plugin, ABC):
    """A mean over the samples of a batch."""

    # What it takes of a study's own workload. transect's own datasets have classes, which a loss of numbers or labels
    # takes as vectors of one 1 and zeros.
    targets: Targets = "classes"
    # The metric that tells how good a module's outputs are, a mean over test samples.
    score: str = "accuracy"
    # Whether its value is the logarithm of a sum of 1 and more: where it nearly vanishes, the rounding of that sum does not.
    rounds_at_one: bool = False
    # Which of a workload's hyper-parameters it reads.
    takes: tuple[str, ...] = ()

    def __init_subclass__(cls) -> None:
        """Drop an inherited `each` that is of another value."""
        super().__init_subclass__()
        if "value_and_gradient" in vars(cls) and "each" not in vars(cls):
            cls.each = Loss.each  # type: ignore[method-assign]

    @abstractmethod
    def operations(self, outputs: int) -> int:
        """Count the least operations for one sample of so many outputs, with the gradient."""

    @abstractmethod
    def value_and_gradient(self, rule: Parameters, outputs: np.ndarray, y: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the mean loss, and its gradient with respect to the outputs, like them."""

    def each(self, rule: Parameters, outputs: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the same of m batches, outputs (m, n, ...), each by itself: losses (m,), and gradients like outputs.

        A loss that does all at once gives each the same bits as alone.
        """
        found = [self.value_and_gradient(rule, *batch) for batch in zip(outputs, y, strict=True)]
        return np.array([loss for loss, _ in found]), np.stack([gradient for _, gradient in found])

    @abstractmethod
    def score_sum(self, outputs: np.ndarray, y: np.ndarray) -> float:
        """Return the sum of the samples' scores, for targets of its own kind."""


LOSSES: Registry[Loss] = Registry("loss", "transect.training.losses", Loss)


def as_numbers(outputs: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return targets of the outputs' shape and dtype: of class numbers (..., n) vectors of one 1 and zeros."""
    if y.shape == outputs.shape:
        return y.astype(outputs.dtype, copy=False)
    units: np.ndarray = np.eye(outputs.shape[-1], dtype=outputs.dtype)[y]
    return units


def check_targets(loss: str, output: tuple[int, ...], y: np.ndarray, classes: tuple[str, ...]) -> None:
    """Raise BadInput unless the loss can compare outputs (n, *output) with targets y (n, ...).

    `classes` are the names of class numbers; empty where targets are something else.
    """
    kind = LOSSES.get(loss).targets
    whole = y.dtype.kind in "iu"
    last = output[-1] if output else 0
    fits = {
        # Of some outputs there may be no sample.
        "classes": bool(classes) and len(output) == 1 and last >= len(classes),
        "tokens": whole and y.shape[1:] == output[:-1] != () and y.min() >= 0 and y.max() < last,
        "numbers": not whole and y.shape[1:] == output,
        "labels": y.shape[1:] == output and bool(np.isin(y, (0, 1)).all()),
    }
    if fits[kind]:
        return
    expected = {
        "classes": f"class numbers (n,) from 0 on for outputs (n, {len(classes) or 'classes'}), or more of them",
        "tokens": "token numbers (n, time) for outputs (n, time, vocabulary)",
        "numbers": f"real numbers of the outputs' shape, (n, {_axes(output)})",
        "labels": f"zeros and ones of the outputs' shape, (n, {_axes(output)})",
    }[kind]
    named = f", {len(classes)} classes" if classes else ""
    raise BadInput(
        f"the loss {loss} takes {expected}: outputs are (n, {_axes(output)}), "
        f"targets {y.dtype} of shape (n, {_axes(y.shape[1:])}){named}"
    )


def _axes(shape: tuple[int, ...]) -> str:
    return ", ".join(map(str, shape))


def _known(name: str) -> str:
    found = LOSSES.named(name)
    LOSSES.get(found)
    return found


LossName = Annotated[str, AfterValidator(_known)]


def unsupported_loss(framework: str, has: tuple[str, ...], loss: str) -> str | None:
    """Return the reason why a framework that `has` some losses cannot train by this one, or None."""
    return None if loss in has else f"{framework} cells minimise {' or '.join(has)}, not {loss}"
