"""Classifiers of tickets: one file each. Their libraries are imported inside methods."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.errors import TransectError
from transect.domain.registry import Plugin, Registry
from transect.text.options import Options, checked

__all__ = ["CLASSIFIERS", "MODEL", "STATE", "Classifier", "Diverged", "Fitted", "Task"]

# What a classifier leaves in its folder: that with which a longer run goes on, and what predicts.
STATE = "state.npz"
MODEL = "model.onnx"


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """Encoded tickets and what is to be done with them.

    `x` and `y` by part (`train`, `validation`, `test`, …): word numbers (n, length) int32, 0 where there
    is no word and 1 for an unknown one, and class numbers (n,). `vectors` (vocabulary, width)
    float32. `predicted` are the parts of which probabilities are wanted. `resume` is the folder of a shorter run of
    the same cell, or of an attempt that was killed; None begins anew. The state goes to `out`
    after an epoch when `keep_every_s` seconds or more went by since it last did; 0: after each.
    """

    x: dict[str, np.ndarray]
    y: dict[str, np.ndarray]
    vectors: np.ndarray
    classes: tuple[str, ...]
    options: dict[str, Any]
    hyperparameters: dict[str, Any]
    seed: int
    threads: int
    device: str
    out: Path
    predicted: tuple[str, ...] = ("validation", "test")
    resume: Path | None = None
    keep_every_s: float = 10.0


@dataclass(kw_only=True, slots=True)
class Fitted:
    """Probabilities (n, classes) by part, the path of training, and costs.

    `history` has a dict for each epoch: `epoch`, `updates`, `loss` (training), `validation_loss`,
    `validation_accuracy`, `seconds`. `details` of one with a history: `ended` and `best_epoch`.
    """

    probabilities: dict[str, np.ndarray]
    history: list[dict[str, Any]] = field(default_factory=list)
    parameters: int = 0
    details: dict[str, Any] = field(default_factory=dict)


class Diverged(TransectError):
    """Loss or weights became infinite or NaN. The state of the last good epoch is in the folder."""

    def __init__(self, message: str, history: list[dict[str, Any]]) -> None:
        super().__init__(message)
        self.history = history


class Classifier(Plugin, ABC):
    """Predicts a ticket's label from its words: fitted in one go, unless its class says more.

    A `model.onnx` is from word numbers `x` (batch, length) int64 to `probabilities` (batch, classes) float32. Any
    length is taken only where columns of padding change nothing.
    """

    # The folder under `envs/` that it runs in.
    environment: str
    # Whether `fit` leaves `model.onnx` in `task.out`.
    exports: bool = False
    # Those of `transect.domain.axes.text.HYPERPARAMETERS` that grids may vary.
    hyperparameters: tuple[str, ...] = ()
    # The model of the options that it has.
    options: type[Options] = Options

    @abstractmethod
    def fit(self, task: Task) -> Fitted:
        """Train on `train`, end early by `validation`, and return the probabilities of `task.predicted`.

        Raises BadInput for tickets that it cannot be trained on, and Diverged.
        """

    def check(self, options: dict[str, Any], where: str) -> None:
        """Raise BadInput, beginning with `where`, for options that cannot be used."""
        checked(self.options, options, where)

    def check_hyperparameters(self, options: dict[str, Any], values: dict[str, Any], width: int, where: str) -> None:
        """Raise BadInput for values of hyper-parameters that do not go together, or not with vectors of this width."""

    def usual(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return the value of each hyper-parameter where a grid gives none."""
        return {}

    def resolved(self, options: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
        """Return what it is trained with: options, what a preset gives, defaults, and `values` of hyper-parameters.

        Two cells that are trained alike have the same, however their study writes it: the report compares by it.
        """
        return checked(self.options, options, "options").model_dump()

    def needs_valid(self, options: dict[str, Any]) -> bool:
        """Whether it ends early by the part `validation`, which must then not be empty."""
        return False

    def supports(self, cell: Any) -> str | None:
        """Return why it cannot be trained with these hyper-parameters, or None."""
        if cell.device != "cpu":
            return f"this classifier is fitted on a cpu, not on {cell.device}"
        return None


CLASSIFIERS: Registry[Classifier] = Registry("classifier", "transect.text.classifiers", Classifier)
