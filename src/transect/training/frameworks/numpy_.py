"""The framework written from scratch: forward, backward and update in numpy."""

from __future__ import annotations

import numpy as np

from transect.domain.cell import Cell
from transect.domain.precisions import find_precision
from transect.training.frameworks import FRAMEWORKS, ModelPlan
from transect.training.frameworks._numpy_layers import Backward, forward, loss_and_gradient
from transect.training.layers import Layer, Residual, weight_shapes
from transect.training.optimisers import OPTIMISERS

__all__ = ["NumpyFramework", "NumpyTrainer"]

_PRECISIONS = ("fp32", "fp64")


class NumpyTrainer:
    """All trained weights and gradients are views into flat buffers, as long as the optimiser's states."""

    def __init__(self, plan: ModelPlan) -> None:
        self._plan = plan
        self.dtype = np.dtype(find_precision(plan.precision).stored)
        arrays = weight_shapes(plan.layers)
        size = sum(plan.weights[one.name].size for one in arrays if one.trained)
        self._optimiser = OPTIMISERS.get(plan.parameters.optimiser)
        self.flat_weights, self.flat_gradient, *self._states = (
            np.zeros(size, self.dtype) for _ in range(2 + self._optimiser.states)
        )
        self._updates = 0
        self._weights: dict[str, np.ndarray] = {}
        gradients: dict[str, np.ndarray] = {}
        start = 0
        for one in arrays:
            if not one.trained:
                self._weights[one.name] = np.zeros(one.shape, self.dtype)
                continue
            part = slice(start, start + plan.weights[one.name].size)
            self._weights[one.name] = self.flat_weights[part].reshape(one.shape)
            gradients[one.name] = self.flat_gradient[part].reshape(one.shape)
            start = part.stop
        self._steps = _chain(plan.layers, self._weights, gradients)
        self.load(plan.weights)

    def load(self, weights: dict[str, np.ndarray]) -> None:
        """Round the given weights to this trainer's precision."""
        for name, array in self._weights.items():
            array[...] = weights[name]

    def batch(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Round to this trainer's precision."""
        return x.astype(self.dtype, copy=False), y

    def forward_backward(self, x: object, y: object) -> float:
        """Compute the mean loss; gradients land in the flat buffer."""
        assert isinstance(x, np.ndarray) and isinstance(y, np.ndarray)
        outputs, back = self._steps.forward(x, True)
        loss, gradient = loss_and_gradient(self._plan.parameters.loss, outputs, y)
        back(gradient, False)
        return loss

    def gradient(self) -> np.ndarray:
        """Return the buffer itself, not a copy."""
        return self.flat_gradient

    def set_gradient(self, flat: np.ndarray) -> None:
        """Copy, unless `flat` is the buffer itself."""
        if flat is not self.flat_gradient:
            self.flat_gradient[...] = flat

    def update(self, learning_rate: float) -> None:
        """Apply the optimiser's own rule in place."""
        self._updates += 1
        self._optimiser.update(
            self._plan.parameters, self.flat_weights, self.flat_gradient, self._states,
            learning_rate, self._updates,
        )  # fmt: skip

    def finish_step(self) -> None:
        """Nothing runs behind the back of numpy."""

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Return the outputs (n, classes)."""
        return self._steps.forward(self.batch(x, np.empty(0, np.int64))[0], False)[0]

    def weights(self) -> dict[str, np.ndarray]:
        """Return copies."""
        return {name: array.copy() for name, array in self._weights.items()}


class _Leaf:
    """A layer with its arrays, looked up once: in a small model look-ups cost 5 % of a step."""

    def __init__(
        self, layer: Layer, weights: list[np.ndarray], gradients: list[np.ndarray]
    ) -> None:
        self.layer, self.weights, self.gradients = layer, weights, gradients

    def forward(self, x: np.ndarray, training: bool) -> tuple[np.ndarray, Backward]:
        return forward(self.layer, x, self.weights, training)


class _Chain:
    """Layers one after another."""

    def __init__(self, parts: list[_Leaf | _Sum]) -> None:
        self.parts = parts

    def forward(self, x: np.ndarray, training: bool) -> tuple[np.ndarray, Backward]:
        tape: list[Backward] = []
        for part in self.parts:
            x, back = part.forward(x, training)
            tape.append(back)

        def backward(g: np.ndarray, need: bool) -> tuple[np.ndarray | None, tuple[np.ndarray, ...]]:
            inner: np.ndarray | None = g
            for index in range(len(tape) - 1, -1, -1):
                inner, found = tape[index](g, need or index > 0)
                for target, value in zip(self.parts[index].gradients, found, strict=True):
                    target[...] = value
                if inner is not None:
                    g = inner
            return inner, ()

        return x, backward


class _Sum:
    """A residual layer. Its parts store their gradients themselves."""

    gradients: tuple[np.ndarray, ...] = ()

    def __init__(self, body: _Chain, shortcut: _Chain) -> None:
        self.body, self.shortcut = body, shortcut

    def forward(self, x: np.ndarray, training: bool) -> tuple[np.ndarray, Backward]:
        first, back_first = self.body.forward(x, training)
        second, back_second = self.shortcut.forward(x, training)

        def backward(g: np.ndarray, need: bool) -> tuple[np.ndarray | None, tuple[np.ndarray, ...]]:
            one, other = back_first(g, need)[0], back_second(g, need)[0]
            return (None if one is None or other is None else one + other), ()

        return first + second, backward


def _chain(
    layers: tuple[Layer, ...],
    weights: dict[str, np.ndarray],
    gradients: dict[str, np.ndarray],
    prefix: str = "",
) -> _Chain:
    parts: list[_Leaf | _Sum] = []
    for index, layer in enumerate(layers):
        name = f"{prefix}{index}."
        if isinstance(layer, Residual):
            body = _chain(layer.body, weights, gradients, f"{name}body.")
            parts.append(_Sum(body, _chain(layer.shortcut, weights, gradients, f"{name}shortcut.")))
            continue
        own = [one.name for one in weight_shapes((layer,))]
        names = [name + one.rpartition(".")[2] for one in own]
        parts.append(
            _Leaf(
                layer,
                [weights[one] for one in names],
                [gradients[one] for one in names if one in gradients],
            )
        )
    return _Chain(parts)


@FRAMEWORKS.register("numpy")
class NumpyFramework:
    """Reference and baseline; float64 gives the trajectory that all others must follow."""

    environment = "base"
    # It takes any rule from the rule's own file.
    optimisers = tuple(OPTIMISERS)

    def supports(self, cell: Cell) -> str | None:
        """CPU only, in float32 and float64."""
        if cell.device != "cpu":
            return f"numpy computes on the CPU, not on {cell.device}"
        if cell.precision not in _PRECISIONS:
            return f"numpy trains in {' or '.join(_PRECISIONS)}, not in {cell.precision}"
        return None

    def trainer(self, plan: ModelPlan) -> NumpyTrainer:
        """Build the flat buffers."""
        return NumpyTrainer(plan)

    def libraries(self) -> dict[str, str]:
        """Return numpy and the BLAS it uses."""
        config = np.show_config(mode="dicts")
        blas = config["Build Dependencies"]["blas"]
        return {"numpy": np.__version__, "blas": f"{blas['name']} {blas['version']}"}
