"""What a runner in Python gives, an engine or a trainer, and what either may raise."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

# Execution providers that need a CUDA device.
ON_GPU = ("cuda", "tensorrt")


class Skip(Exception):
    """The provider is not there; exit code 3. Never answered by falling back."""


class Unsupported(Exception):
    """A value that this language cannot give or take: a case's verdict, else bad input."""


class Diverged(Exception):
    """A number of a training is not finite. `fields`: what the record has of the steps before."""

    def __init__(self, message: str, fields: dict[str, Any]) -> None:
        super().__init__(message)
        self.fields = fields


class CannotWrite(Exception):
    """A file cannot be written: which one, and the system's words."""


class Engine(Protocol):
    """One session. `facts` are fields of the record that it knows."""

    facts: dict[str, Any]
    session_ns: int
    output_names: list[str]
    output_types: dict[str, str]
    # Of the last step.
    results: list[Any]

    def check(self, tensors: dict[str, np.ndarray], dtypes: dict[str, str]) -> None:
        """Raise BadInput unless the model can take these inputs."""
        ...

    def step(self, feed: dict[str, np.ndarray]) -> tuple[int, int, int]:
        """Bind, run, copy to `results`; return the nanoseconds of each."""
        ...

    def end_profile(self) -> str:
        """Return the file of the profile."""
        ...


class Trainer(Protocol):
    """The sessions of a portable training step, and its state. `facts` as of an engine."""

    facts: dict[str, Any]
    session_ns: int
    # Of the last run, in the manifest's order.
    metrics: list[float]

    def start(self, state: dict[str, np.ndarray]) -> None:
        """Take the state to the device."""
        ...

    def run(self, graph: str, feed: dict[str, np.ndarray]) -> tuple[int, int, int]:
        """Bind, run, read the metrics; return the nanoseconds of each."""
        ...

    def state(self) -> dict[str, np.ndarray]:
        """Return the state, in host memory, until the next run."""
        ...


OpenEngine = Callable[[argparse.Namespace, "str | None"], Engine]
OpenTrainer = Callable[[argparse.Namespace, Any], Trainer]
