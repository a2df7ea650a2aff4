"""A list of layers in numpy, forwards and backwards."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from transect.training.frameworks._numpy_layers import Backward, forward
from transect.training.layers import Branches, Layer, inner, weight_shapes
from transect.training.losses import LOSSES
from transect.training.workloads import Parameters

# Runs a layer, as `_numpy_layers.forward` does.
Run = Callable[[Layer, np.ndarray, list[np.ndarray], bool], tuple[np.ndarray, Backward]]


class LayeredComputation:
    """Layers bound to arrays of weights and gradients, by their names."""

    def __init__(
        self,
        layers: tuple[Layer, ...],
        rule: Parameters,
        weights: dict[str, np.ndarray],
        gradients: dict[str, np.ndarray],
    ) -> None:
        self._steps, self._rule, self._loss = chain(layers, weights, gradients), rule, LOSSES.get(rule.loss)

    def forward(self, x: np.ndarray) -> tuple[np.ndarray, Backward]:
        """Return the outputs in training and the way back, on which gradients land in their arrays."""
        return self._steps.forward(x, True)

    def loss(self, x: np.ndarray, y: np.ndarray) -> float:
        """Return the mean loss; gradients land in their arrays."""
        outputs, back = self.forward(x)
        loss, gradient = self._loss.value_and_gradient(self._rule, outputs, y)
        back(gradient, False)
        return loss

    def outputs(self, x: np.ndarray) -> np.ndarray:
        """Return the outputs (n, classes), normalised by running statistics."""
        return self._steps.forward(x, False)[0]


class _Leaf:
    """A layer with its arrays, looked up once: in a small model look-ups cost 5 % of a step."""

    def __init__(self, run: Run, layer: Layer, weights: list[np.ndarray], gradients: list[np.ndarray]) -> None:
        self.run, self.layer, self.weights, self.gradients = run, layer, weights, gradients
        self.trained = bool(gradients)

    def forward(self, x: np.ndarray, training: bool) -> tuple[np.ndarray, Backward]:
        return self.run(self.layer, x, self.weights, training)


class Chain:
    """Layers one after another."""

    def __init__(self, parts: list[_Leaf | _Parallel]) -> None:
        self.parts = parts
        self.trained: bool = any(part.trained for part in parts)
        # Before it, nobody needs a gradient.
        self._first = next((i for i, part in enumerate(parts) if part.trained), len(parts))

    def forward(self, x: np.ndarray, training: bool) -> tuple[np.ndarray, Backward]:
        tape: list[Backward] = []
        for part in self.parts:
            x, back = part.forward(x, training)
            tape.append(back)

        def backward(g: np.ndarray, need: bool) -> tuple[np.ndarray | None, tuple[np.ndarray, ...]]:
            first = 0 if need else self._first
            inner: np.ndarray | None = g
            for index in range(len(tape) - 1, first - 1, -1):
                inner, gradients = tape[index](g, need or index > first)
                for target, value in zip(self.parts[index].gradients, gradients, strict=True):
                    target[...] = value
                if inner is not None:
                    g = inner
            return inner, ()

        return x, backward


class _Parallel:
    """Chains from one input, whose outputs are added, or joined along channels. They store their gradients themselves."""

    gradients: tuple[np.ndarray, ...] = ()

    def __init__(self, chains: list[Chain], joins: bool, channels: int) -> None:
        self.chains, self.joins, self._channels = chains, joins, channels
        self.trained = any(chain.trained for chain in chains)

    def forward(self, x: np.ndarray, training: bool) -> tuple[np.ndarray, Backward]:
        passes = [chain.forward(x, training) for chain in self.chains]
        outputs = [y for y, _ in passes]
        ends = np.cumsum([y.shape[self._channels] for y in outputs])

        def backward(g: np.ndarray, need: bool) -> tuple[np.ndarray | None, tuple[np.ndarray, ...]]:
            pieces = np.split(g, ends[:-1], axis=self._channels) if self.joins else [g] * len(passes)
            found: list[Any] = [back(piece, need)[0] for (_, back), piece in zip(passes, pieces, strict=True)]
            return (reduce(np.add, found) if need else None), ()

        joined = np.concatenate(outputs, axis=self._channels) if self.joins else reduce(np.add, outputs)
        return joined, backward


def chain(
    layers: tuple[Layer, ...],
    weights: dict[str, np.ndarray],
    gradients: dict[str, np.ndarray],
    prefix: str = "",
    run: Run = forward,
    channels: int = 1,
) -> Chain:
    """Bind layers to their arrays; `run` runs those that have no others inside, `channels` is the axis of an image's."""
    parts: list[_Leaf | _Parallel] = []
    for index, layer in enumerate(layers):
        name = f"{prefix}{index}."
        if chains := inner(layer):
            made = [chain(one, weights, gradients, f"{name}{part}.", run, channels) for part, one in chains.items()]
            parts.append(_Parallel(made, isinstance(layer, Branches), channels))
            continue
        weight_names = [weight.name for weight in weight_shapes((layer,))]
        names = [name + weight.rpartition(".")[2] for weight in weight_names]
        bound = [weights[weight] for weight in names]
        parts.append(_Leaf(run, layer, bound, [gradients[weight] for weight in names if weight in gradients]))
    return Chain(parts)
