"""The framework written from scratch: forward, backward and update in numpy."""

from __future__ import annotations

import numpy as np

from transect.domain.precisions import find_precision

# Layered models ask for it by its name: its source is part of what a reference runs.
from transect.training.frameworks import (
    ModelPlan,
    ResumableTrainer,
    Trainer,
    TrainingState,
    _numpy_chain,  # noqa: F401
)
from transect.training.models import Drawing, Updating
from transect.training.optimisers import OPTIMISERS, OWN_OPTIMISER, update_cuts


class NumpyTrainer(Trainer, ResumableTrainer):
    """All trained weights and gradients are views into flat buffers, as long as the optimiser's states."""

    def __init__(self, plan: ModelPlan) -> None:
        self._plan = plan
        self.dtype = np.dtype(find_precision(plan.precision).stored)
        arrays = plan.model.weight_shapes()
        size = sum(plan.weights[weight.name].size for weight in arrays if weight.trained)
        self._optimiser = OPTIMISERS.get(plan.parameters.optimiser)
        self.flat_weights, self.flat_gradient, *self._states = (
            np.zeros(size, self.dtype) for _ in range(2 + self._optimiser.states)
        )
        self._cuts = update_cuts(plan.parameters, (weight.shape for weight in arrays if weight.trained))
        self._updates = 0
        # Of `ema`, after the first update.
        self.flat_average = np.empty(0, self.dtype)
        self._weights: dict[str, np.ndarray] = {}
        self._parts: dict[str, slice] = {}
        gradients: dict[str, np.ndarray] = {}
        start = 0
        for weight in arrays:
            if not weight.trained:
                self._weights[weight.name] = np.zeros(weight.shape, self.dtype)
                continue
            part = slice(start, start + plan.weights[weight.name].size)
            self._parts[weight.name] = part
            self._weights[weight.name] = self.flat_weights[part].reshape(weight.shape)
            gradients[weight.name] = self.flat_gradient[part].reshape(weight.shape)
            start = part.stop
        self.computation = plan.model.computation(plan.parameters, self._weights, gradients)
        self.load(plan.weights)

    def load(self, weights: dict[str, np.ndarray]) -> None:
        for name, array in self._weights.items():
            array[...] = weights[name]

    def resume(self, state: TrainingState) -> None:
        self.load(state.weights)
        for kept, given in zip(self._states, state.states, strict=True):
            for name, part in self._parts.items():
                kept[part] = given[name].reshape(-1)
        self._updates = state.updates

    def state(self) -> TrainingState:
        states = tuple(
            {name: kept[part].reshape(self._weights[name].shape).copy() for name, part in self._parts.items()}
            for kept in self._states
        )
        return TrainingState(weights=self.weights(), states=states, updates=self._updates)

    def batch(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Round to this trainer's precision; integers stay."""
        return (x.astype(self.dtype, copy=False) if x.dtype.kind == "f" else x), y

    def seed(self, seed: int) -> None:
        if isinstance(self.computation, Drawing):
            self.computation.seed = seed

    def forward_backward(self, x: np.ndarray, y: np.ndarray) -> float:
        """Compute the mean loss; gradients land in the flat buffer."""
        return self.computation.loss(x, y)

    def gradient(self) -> np.ndarray:
        return self.flat_gradient

    def set_gradient(self, flat: np.ndarray) -> None:
        if flat is not self.flat_gradient:
            self.flat_gradient[...] = flat

    def update(self, learning_rate: float) -> None:
        self._updates += 1
        if (limit := self._plan.parameters.clip_norm) is not None:
            norm = float(np.sqrt(np.square(self.flat_gradient).sum()))
            self.flat_gradient *= min(1.0, limit / norm) if norm else 1.0
        if self._plan.parameters.optimiser == OWN_OPTIMISER and isinstance(self.computation, Updating):
            self.computation.update(learning_rate)
            return
        for rule, cut in self._cuts:
            states = [state[cut] for state in self._states]
            self._optimiser.update(
                rule, self.flat_weights[cut], self.flat_gradient[cut], states, learning_rate, self._updates
            )

    def average(self) -> None:
        decay = self._plan.parameters.ema
        assert decay is not None
        if not self.flat_average.size:
            self.flat_average = self.flat_weights.copy()
        else:
            self.flat_average *= decay
            self.flat_average += (1 - decay) * self.flat_weights

    def exchange_averages(self) -> None:
        kept = self.flat_weights.copy()
        self.flat_weights[...] = self.flat_average
        self.flat_average[...] = kept

    def predict(self, x: np.ndarray) -> np.ndarray:
        return self.computation.outputs(self.batch(x, np.empty(0, np.int64))[0])

    def weights(self) -> dict[str, np.ndarray]:
        return {name: array.copy() for name, array in self._weights.items()}
