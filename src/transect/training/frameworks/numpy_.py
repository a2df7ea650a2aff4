"""The framework written from scratch: forward, backward and SGD with momentum in numpy."""

from __future__ import annotations

import numpy as np

from transect.domain.cell import Cell
from transect.training.frameworks import FRAMEWORKS, ModelPlan
from transect.training.frameworks._numpy_layers import Backward, forward, loss_and_gradient

__all__ = ["NumpyFramework", "NumpyTrainer"]

_DTYPES = {"fp32": np.float32, "fp64": np.float64}


class NumpyTrainer:
    """All weights, gradients and momenta are views into three flat buffers."""

    def __init__(self, plan: ModelPlan) -> None:
        self._plan = plan
        self.dtype = _DTYPES[plan.precision]
        size = sum(array.size for array in plan.weights.values())
        self.flat_weights, self.flat_gradient, self.flat_velocity = (
            np.zeros(size, self.dtype) for _ in range(3)
        )
        self._weights: dict[str, np.ndarray] = {}
        self._gradients: dict[str, np.ndarray] = {}
        start = 0
        for name, array in plan.weights.items():
            part = slice(start, start + array.size)
            self._weights[name] = self.flat_weights[part].reshape(array.shape)
            self._gradients[name] = self.flat_gradient[part].reshape(array.shape)
            start += array.size
        # Looked up once: in a small model two dictionary look-ups a layer cost 5 % of a step.
        self._steps = [
            (layer, self._weights.get(f"{i}.weight"), self._weights.get(f"{i}.bias"))
            for i, layer in enumerate(plan.layers)
        ]
        self._pairs = [
            (self._gradients.get(f"{i}.weight"), self._gradients.get(f"{i}.bias"))
            for i in range(len(plan.layers))
        ]
        self.load(plan.weights)

    def load(self, weights: dict[str, np.ndarray]) -> None:
        """Round the given weights to this trainer's precision."""
        for name, array in weights.items():
            self._weights[name][...] = array

    def batch(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Round to this trainer's precision."""
        return x.astype(self.dtype, copy=False), y

    def _forward(self, x: np.ndarray) -> tuple[np.ndarray, list[Backward]]:
        tape: list[Backward] = []
        for layer, weight, bias in self._steps:
            x, back = forward(layer, x, weight, bias)
            tape.append(back)
        return x, tape

    def forward_backward(self, x: object, y: object) -> float:
        """Compute the mean loss; gradients land in the flat buffer."""
        assert isinstance(x, np.ndarray) and isinstance(y, np.ndarray)
        outputs, tape = self._forward(x)
        loss, gradient = loss_and_gradient(self._plan.parameters.loss, outputs, y)
        for index in range(len(tape) - 1, -1, -1):
            back, pair = tape[index](gradient, index > 0)
            if pair is not None:
                weight, bias = self._pairs[index]
                assert weight is not None and bias is not None
                weight[...], bias[...] = pair
            if back is not None:
                gradient = back
        return loss

    def gradient(self) -> np.ndarray:
        """Return the buffer itself, not a copy."""
        return self.flat_gradient

    def set_gradient(self, flat: np.ndarray) -> None:
        """Copy, unless `flat` is the buffer itself."""
        if flat is not self.flat_gradient:
            self.flat_gradient[...] = flat

    def update(self) -> None:
        """Apply SGD with momentum and weight decay in place."""
        rule = self._plan.parameters
        gradient = self.flat_gradient
        if rule.weight_decay:
            gradient += rule.weight_decay * self.flat_weights
        if rule.momentum:
            self.flat_velocity *= rule.momentum
            self.flat_velocity += gradient
            gradient = self.flat_velocity
        self.flat_weights -= rule.learning_rate * gradient

    def finish_step(self) -> None:
        """Nothing runs behind the back of numpy."""

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Return the outputs (n, classes)."""
        return self._forward(self.batch(x, np.empty(0, np.int64))[0])[0]

    def weights(self) -> dict[str, np.ndarray]:
        """Return copies."""
        return {name: array.copy() for name, array in self._weights.items()}


@FRAMEWORKS.register("numpy")
class NumpyFramework:
    """Reference and baseline; float64 gives the trajectory that all others must follow."""

    environment = "base"

    def supports(self, cell: Cell) -> str | None:
        """CPU only, in float32 and float64."""
        if cell.device != "cpu":
            return f"numpy computes on the CPU, not on {cell.device}"
        if cell.precision not in _DTYPES:
            return f"numpy trains in {' or '.join(_DTYPES)}, not in {cell.precision}"
        return None

    def trainer(self, plan: ModelPlan) -> NumpyTrainer:
        """Build the flat buffers."""
        return NumpyTrainer(plan)

    def libraries(self) -> dict[str, str]:
        """Return numpy and the BLAS it uses."""
        config = np.show_config(mode="dicts")
        blas = config["Build Dependencies"]["blas"]
        return {"numpy": np.__version__, "blas": f"{blas['name']} {blas['version']}"}
