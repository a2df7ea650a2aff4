"""Many clients at once, on the first axis of numpy's arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from math import prod

import numpy as np

from transect.domain.axes.federate import FederateCell
from transect.domain.precisions import find_precision
from transect.federated.engines import ENGINES, Engine, Session, Task, Turn, Turned
from transect.federated.engines._pieces import pieces
from transect.federated.engines._stacked_layers import KINDS, run, stacked
from transect.training.frameworks._numpy_chain import chain
from transect.training.layered import LayeredModel
from transect.training.layers import Conv2d, Layer, inner, walk
from transect.training.losses import LOSSES
from transect.training.models import Model, called
from transect.training.optimisers import OPTIMISERS, group_rule
from transect.training.workloads import Parameters

# What a step of all clients of a stack reads and writes, about: more of them leave the second cache, fewer pay more for
# each call of numpy (tests/benchmarks/bench_federated.py).
_STACK_BYTES = 2**21
# Of the smallest models: calls are a hundredth of the time by then.
_MOST_CLIENTS = 512


class _Stack:
    """Arrays of as many clients as are trained at once."""

    def __init__(self, task: Task, clients: int, dtype: np.dtype) -> None:
        self._task, self._dtype = task, dtype
        assert isinstance(task.model, LayeredModel)
        self._loss, self._optimiser = LOSSES.get(task.parameters.loss), OPTIMISERS.get(task.parameters.optimiser)
        owners: dict[str, Layer] = {placed.name: placed.layer for placed in walk(task.model.layers, task.model.sample)}
        # Each weight's part of a flat model, its layer, its arrays here, and how it is updated.
        self._places: list[tuple[slice, Layer, str, np.ndarray]] = []
        self._updates: list[tuple[Parameters, np.ndarray, np.ndarray, list[np.ndarray]]] = []
        # Weights and gradients of what is trained, by name.
        self._trained: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        weights: dict[str, np.ndarray] = {}
        gradients: dict[str, np.ndarray] = {}
        start = 0
        for weight in task.model.weight_shapes():
            layer = owners[weight.name.rpartition(".")[0]]
            end = start + prod(weight.shape)
            shape = stacked(layer, weight.name, np.empty((clients, *weight.shape), bool)).shape
            weights[weight.name] = own = np.empty(shape, dtype)
            self._places.append((slice(start, end), layer, weight.name, own))
            if weight.trained:
                gradients[weight.name] = gradient = np.empty(shape, dtype)
                self._trained[weight.name] = own, gradient
                states = [np.empty(own.size, dtype) for _ in range(self._optimiser.states)]
                rule = group_rule(task.parameters, weight.shape)
                self._updates.append((rule, own.reshape(-1), gradient.reshape(-1), states))
            start = end
        self._chain = chain(task.model.layers, weights, gradients, run=run, channels=-1)
        self._clients = clients

    def train(self, turns: list[Turn], weights: np.ndarray, losses: np.ndarray) -> None:
        """Compute turns; write models (m, d) and losses (m,)."""
        for row, turn in zip(weights, turns, strict=True):
            row[...] = turn.given
        for target, found in self._arrays(weights):
            target[...] = found
        for *_, states in self._updates:
            for state in states:
                state[...] = 0
        rows = np.stack([turn.rows for turn in turns])
        added = self._terms(turns) if any(turn.extended for turn in turns) else []
        losses[...] = 0
        for step in range(rows.shape[1]):
            losses += self._step(rows[:, step], step + 1, added)
        losses /= rows.shape[1]
        for found, target in self._arrays(weights):
            target[...] = found

    def _arrays(self, flat: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield each weight here, and its views in models (m, d)."""
        shapes = (weight.shape for weight in self._task.model.weight_shapes())
        for (part, layer, name, own), shape in zip(self._places, shapes, strict=True):
            yield own, stacked(layer, name, flat[:, part].reshape(-1, *shape))

    def _terms(self, turns: list[Turn]) -> list[tuple[np.ndarray, ...]]:
        """Return weights and gradients of each trained array, and what turns have for it: mu, anchors, corrections."""
        anchors = np.stack([turn.pulled_to for turn in turns])
        corrections = np.zeros_like(anchors)
        for row, turn in zip(corrections, turns, strict=True):
            row[...] = 0 if turn.correction is None else turn.correction
        pulls = np.array([turn.mu for turn in turns], self._dtype)
        both = zip(self._arrays(anchors), self._arrays(corrections), strict=True)
        terms = zip((name for _, _, name, _ in self._places), both, strict=True)
        return [
            (*self._trained[name], pulls.reshape(-1, *[1] * (own.ndim - 1)), anchor.copy("C"), correction.copy("C"))
            for name, ((own, anchor), (_, correction)) in terms
            if name in self._trained
        ]

    def _step(self, rows: np.ndarray, number: int, added: list[tuple[np.ndarray, ...]]) -> np.ndarray:
        """Take a step with rows (m, batch); return losses (m,)."""
        task, rule = self._task, self._task.parameters
        x = task.x[rows.reshape(-1)].astype(self._dtype, copy=False)
        outputs, back = self._chain.forward(np.moveaxis(x, 1, -1) if x.ndim == 4 else x, True)
        losses, gradient = self._loss.each(rule, outputs.reshape(*rows.shape, *outputs.shape[1:]), task.y[rows])
        back(gradient.reshape(outputs.shape), False)
        for weights, gradients, pull, anchor, correction in added:
            gradients += pull * (weights - anchor) + correction
        if rule.clip_norm is not None:
            self._clip(rule.clip_norm)
        for own, weights, gradients, states in self._updates:
            self._optimiser.update(own, weights, gradients, states, rule.learning_rate, number)
        return losses

    def _clip(self, limit: float) -> None:
        """Scale each client's gradients, all together, to a norm of `limit` where it is larger."""
        gradients = [gradient.reshape(self._clients, -1) for _, _, gradient, _ in self._updates]
        norms = np.sqrt(sum(np.square(gradient).sum(axis=1) for gradient in gradients))
        factors = np.minimum(1, limit / np.where(norms > 0, norms, limit)).astype(self._dtype)
        for gradient in gradients:
            gradient *= factors[:, None]


class _Stacked(Session):
    def __init__(self, task: Task) -> None:
        self._task = task
        self._dtype = np.dtype(find_precision(task.cell.precision).stored)
        self._size = sum(array.size for array in task.weights.values())
        self._most = min(_MOST_CLIENTS, max(1, _STACK_BYTES // self._client_bytes()))
        self._stacks: dict[int, _Stack] = {}

    def _client_bytes(self) -> int:
        """Return about what a step of one client reads and writes: activations, windows, weights with what goes along."""
        assert isinstance(self._task.model, LayeredModel)
        numbers = 0
        for placed in walk(self._task.model.layers, self._task.model.sample):
            if inner(placed.layer):
                continue
            numbers += prod(placed.after)
            if isinstance(placed.layer, Conv2d):
                numbers += prod(placed.after[1:]) * placed.layer.kernel**2 * placed.layer.inputs
        states = OPTIMISERS.get(self._task.parameters.optimiser).states
        return self._dtype.itemsize * (self._task.cell.batch * numbers + self._size * (2 + states))

    def turns(self, turns: Iterable[Turn]) -> Iterator[Turned]:
        for piece, turned in pieces(turns, self._size, self._dtype):
            for start in range(0, len(piece), self._most):
                part = slice(start, start + self._most)
                some = piece[part]
                if len(some) not in self._stacks:
                    # The last one of a piece is smaller, and of the same size in most rounds.
                    self._stacks = {size: stack for size, stack in self._stacks.items() if size == self._most}
                    self._stacks[len(some)] = _Stack(self._task, len(some), self._dtype)
                self._stacks[len(some)].train(some, turned.weights[part], turned.losses[part])
            yield turned


@ENGINES.register("stacked")
class Stacked(Engine):
    """Layers, losses and optimisers compute all clients of a stack in one call of numpy."""

    def supports(self, cell: FederateCell) -> str | None:
        if cell.precision not in ("fp32", "fp64") or cell.device != "cpu":
            return f"numpy's arrays train in fp32 or fp64 on cpu, not in {cell.precision} on {cell.device}"
        return None

    def builds(self, cell: FederateCell, model: Model, parameters: Parameters) -> str | None:
        if not isinstance(model, LayeredModel):
            return f"it stacks transect's own layers, not {called(model)}"
        if OPTIMISERS.get(parameters.optimiser).by_array:
            return (
                f"the optimiser {parameters.optimiser} looks at each weight as a whole, and clients' lie in one array"
            )
        kinds = (placed.layer for placed in walk(model.layers, model.sample) if not inner(placed.layer))
        missing = sorted({type(layer).__name__ for layer in kinds if not isinstance(layer, KINDS)})
        return f"of transect's layers it does not stack {', '.join(missing)}" if missing else None

    @contextmanager
    def session(self, task: Task) -> Iterator[Session]:
        yield _Stacked(task)
