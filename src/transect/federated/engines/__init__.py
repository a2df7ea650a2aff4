"""Engines: who computes the clients' turns. One file each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.axes.federate import FederateCell, Federation
from transect.domain.options import settings
from transect.domain.registry import Plugin, Registry
from transect.federated.methods import METHODS
from transect.federated.turn import Turn, Turned
from transect.training.models import Model
from transect.training.workloads import Parameters

__all__ = ["ENGINES", "Engine", "Session", "Task", "Turn", "Turned", "no_federation", "reason_to_skip"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """What all turns of a simulation share.

    `weights` are the model's arrays by name, as `model.weight_shapes()` has them; `x`, `y` all training rows,
    x rounded to the cell's precision. `folders` are those of the cells that the cell takes, by role, `out` the cell's
    own, and `programs` how programs of other environments are started, by name.
    """

    cell: FederateCell
    model: Model
    parameters: Parameters
    weights: dict[str, np.ndarray]
    x: np.ndarray
    y: np.ndarray
    folders: Mapping[str, Path] = field(default_factory=dict)
    out: Path = Path()
    programs: Mapping[str, Any] = field(default_factory=dict)


class Session(ABC):
    """An engine at work."""

    @abstractmethod
    def turns(self, turns: Iterable[Turn]) -> Iterator[Turned]:
        """Compute turns, and yield what they came to in one or several pieces, in their order.

        A client begins with its given weights and an optimiser at rest, and takes a step for each row of `rows`, at the
        workload's learning rate, by the gradient and what the turn adds to it (`Turn.added`). All have as many steps and rows. A session may hold one piece at a time: what was
        yielded is not touched again, and turns may be made as they are taken.
        """


class Engine(Plugin, ABC):
    """A way to compute clients' turns."""

    def builds(self, cell: FederateCell, model: Model, parameters: Parameters) -> str | None:
        """Return why it cannot train the model by the cell's framework or runtime, or None."""
        return None

    @abstractmethod
    def session(self, task: Task) -> AbstractContextManager[Session]:
        """Return what computes turns until the context ends."""

    def libraries(self, cell: FederateCell) -> dict[str, str]:
        """Return the versions of what computes, for provenance."""
        return {"numpy": np.__version__}


ENGINES: Registry[Engine] = Registry("engine", "transect.federated.engines", Engine)


def reason_to_skip(cell: FederateCell, model: Model, parameters: Parameters) -> str | None:
    """Return what no client's turn has, or what method or engine say of model and hyper-parameters, or None."""
    return no_federation(cell, model, parameters) or ENGINES.get(cell.engine).builds(cell, model, parameters)


def no_federation(cell: Federation, model: Model, parameters: Parameters) -> str | None:
    """Return what no client's turn has, or what the method says of model and hyper-parameters, or None."""
    if parameters.schedule["name"] != "constant" or parameters.schedule["warmup_steps"] or parameters.warmup_steps:
        return "a client's turn has one learning rate: expected the schedule constant without a warm-up"
    if parameters.ema is not None:
        return "a client sends the weights of its last step: expected ema null"
    if parameters.accumulation > 1:
        return "a client takes each batch at once: expected accumulation 1"
    if parameters.reference_steps == 0:
        return "a client's turn is held to a reference: expected other reference_steps than 0"
    method = METHODS.get(cell.method)
    return method.refuses(settings(method.options, cell.method_options), model, parameters)
