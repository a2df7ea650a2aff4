"""Scores of a federation: the server's model on the test rows, or each client's own on rows like the client's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from transect.federated.flat import arrays_of
from transect.federated.partitions import Clients
from transect.federated.rounds import Plan, Round
from transect.training.frameworks import ModelPlan
from transect.training.frameworks._numpy_trainer import NumpyTrainer
from transect.training.models import Model
from transect.training.workloads import Parameters

_EVALUATION_BATCH = 512


class TestRows:
    """Scores models on the test rows, by class where targets are classes."""

    def __init__(
        self, model: Model, parameters: Parameters, weights: dict[str, np.ndarray], precision: str, data: dict[str, Any]
    ) -> None:
        plan = ModelPlan(
            model=model,
            parameters=parameters,
            weights=weights,
            batch=_EVALUATION_BATCH,
            precision=precision,
            device="cpu",
            threads=1,
        )
        self.model, self._trainer = model, NumpyTrainer(plan)
        self._x, self._y = data["x_test"], data["y_test"]
        classes = self._y.ndim == 1 and self._y.dtype.kind == "i"
        self.labels = np.unique(self._y) if classes else None
        self._groups = (
            [np.arange(len(self._y))] if self.labels is None else [np.flatnonzero(self._y == c) for c in self.labels]
        )
        self.sizes = np.array([len(group) for group in self._groups])

    def score(self, weights: np.ndarray) -> np.ndarray:
        """Return the mean score of a model's vector (d,) for each class, (classes,), or of all rows, (1,)."""
        self._trainer.load(arrays_of(self.model, weights))
        sums = [self._sum(group) for group in self._groups]
        return np.asarray(np.array(sums) / self.sizes)

    def _sum(self, rows: np.ndarray) -> float:
        parts = (rows[start : start + _EVALUATION_BATCH] for start in range(0, len(rows), _EVALUATION_BATCH))
        return sum(self.model.score_sum(self._trainer.predict(self._x[part]), self._y[part]) for part in parts)

    def mixes(self, clients: Clients, y: np.ndarray) -> np.ndarray | None:
        """Return each client's shares of the classes, (clients, classes), given the targets of all clients' rows.

        None where targets are no classes, or a client has one that is not tested.
        """
        if self.labels is None or not np.isin(y[clients.rows], self.labels).all():
            return None
        owner = np.repeat(np.arange(len(clients)), clients.sizes)
        place = np.searchsorted(self.labels, y[clients.rows])
        mix = np.zeros((len(clients), len(self.labels)))
        np.add.at(mix, (owner, place), 1.0)
        return np.asarray(mix / clients.sizes[:, None])


class Scores:
    """Scores of updates. `start` (d,) is the first model, `y` the targets of all clients' rows.

    A client's score is that of test rows in its mix of classes; where there are none, that of all test rows. Where a
    method personalises, that of an update is the mean over its clients, and at the end over all, weighted by their rows.
    """

    def __init__(self, tests: TestRows, plan: Plan, start: np.ndarray, y: np.ndarray) -> None:
        self.name = tests.model.score
        self._tests, self._plan, self._start = tests, plan, start
        self._mixes = tests.mixes(plan.clients, y)
        self._all = tests.sizes / tests.sizes.sum()

    def after(self, made: Round) -> float:
        """Return the score after an update."""
        if self._plan.method.personalises:
            return self._mean(self._own(made, made.clients), made.clients)
        return float(self._tests.score(made.model) @ self._all)

    def at_end(self, made: Round) -> tuple[float, np.ndarray | None]:
        """Return the score after the last update, and that of each client, (clients,): None where none can be told."""
        everyone = range(len(self._plan.clients))
        if self._plan.method.personalises:
            own = self._own(made, everyone)
            return self._mean(own, everyone), None if self._mixes is None else own
        scores = self._tests.score(made.model)
        return float(scores @ self._all), None if self._mixes is None else self._mixes @ scores

    def _own(self, made: Round, clients: Sequence[int]) -> np.ndarray:
        """Return the score of each client's own model, (n,)."""
        plan, rest = self._plan, self._plan.method.at_rest(self._plan.terms, self._start)
        found = []
        for client in clients:
            model = plan.method.model_of(plan.terms, made.model, made.kept.get(client, rest))
            found.append(self._tests.score(model) @ (self._all if self._mixes is None else self._mixes[client]))
        return np.array(found)

    def _mean(self, scores: np.ndarray, clients: Sequence[int]) -> float:
        rows = self._plan.clients.sizes[list(clients)]
        return float(scores @ rows / rows.sum())
