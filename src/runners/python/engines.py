"""What a program in Python gives, an engine or a trainer, and what either may raise."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from plan import Plan


class BadInput(ValueError):
    """What was given cannot be used; exit code 2."""


class Skip(Exception):
    """The provider is not there; exit code 3. Never answered by falling back."""


class Unsupported(Exception):
    """A value that this language cannot give or take: a case's verdict, else bad input."""


class Engine(Protocol):
    """One session. `facts` go into the result as they are, `session_ns` among them.

    A method `end_profile`, where there is one, returns the file of the profile that its maker was asked for.
    """

    facts: dict[str, Any]
    # Of the last step, in the model's order.
    results: list[Any]

    def step(self, feed: dict[str, np.ndarray]) -> tuple[int, int, int]:
        """Bind, run, copy to `results`; return the nanoseconds of each."""


class Trainer(Protocol):
    """The sessions of a training step, and its state. Tensors go by the numbers of their entries in the plan."""

    facts: dict[str, Any]
    # Of the last run, in the plan's order; what the plan does not name is left out.
    metrics: list[float]

    def run(self, graph: str, feed: dict[int, np.ndarray]) -> tuple[int, int, int]:
        """Bind, run, read the metrics; return the nanoseconds of each. `feed`: data, hyper-parameters, seed."""

    def state(self) -> dict[int, np.ndarray]:
        """Return the state, in host memory, until the next run."""


# Given the plan, the model's file, and the prefix of a profile or "".
OpenEngine = Callable[["Plan", str, str], Engine]
OpenTrainer = Callable[["Plan"], Trainer]
