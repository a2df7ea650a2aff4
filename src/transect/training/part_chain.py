"""Several parts of a model as one: a stage of a pipeline, or a model taken layer by layer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from transect.training.frameworks import ModelPart, PartTrainer, ResumableTrainer, TrainingState


class PartList(ResumableTrainer):
    """Parts one after another, each with an optimiser of its own."""

    def __init__(self, parts: list[PartTrainer]) -> None:
        self.parts = parts
        self._flat: np.ndarray | None = None

    def batch(self, x: np.ndarray, y: np.ndarray) -> tuple[Any, Any]:
        """Bring it to the device: inputs as the first part has them, targets as the last."""
        if len(self.parts) == 1:
            return self.parts[0].batch(x, y)
        return self.parts[0].batch(x, y)[0], self.parts[-1].batch(x, y)[1]

    def gradient(self) -> np.ndarray:
        """Return all parts' in one buffer, a copy where there is more than one."""
        flats = [part.gradient() for part in self.parts]
        if len(flats) == 1:
            return flats[0]
        if self._flat is None:
            self._flat = np.empty(sum(flat.size for flat in flats), flats[0].dtype)
        np.concatenate(flats, out=self._flat)
        return self._flat

    def set_gradient(self, flat: np.ndarray) -> None:
        if len(self.parts) == 1:
            # Asking for its gradient would write into `flat`, where that is the part's own buffer.
            self.parts[0].set_gradient(flat)
            return
        start = 0
        for part in self.parts:
            size = part.gradient().size
            part.set_gradient(flat[start : start + size])
            start += size

    def update(self, learning_rate: float) -> None:
        for part in self.parts:
            part.update(learning_rate)

    def finish_step(self) -> None:
        for part in self.parts:
            part.finish_step()

    def predict(self, x: np.ndarray) -> np.ndarray:
        for part in self.parts:
            x = part.predict(x)
        return x

    def weights(self) -> dict[str, np.ndarray]:
        return {name: array for part in self.parts for name, array in part.weights().items()}

    def load(self, weights: dict[str, np.ndarray]) -> None:
        for part in self.parts:
            part.load(weights)

    def resume(self, state: TrainingState) -> None:
        for part in self.parts:
            part.resume(state)


class PartChain(PartList, PartTrainer):
    """Neighbouring parts, whose gradients are ready piece by piece."""

    def __init__(self, parts: list[PartTrainer]) -> None:
        super().__init__(parts)
        self.part = ModelPart(parts[0].part.first, parts[-1].part.last, parts[0].part.count)

    def begin_step(self) -> None:
        for part in self.parts:
            part.begin_step()

    def forward(self, i: int, x: Any) -> np.ndarray:
        for part in self.parts:
            x = part.forward(i, x)
        outputs: np.ndarray = x
        return outputs

    def loss(self, i: int, x: Any, y: Any, weight: float) -> float:
        for part in self.parts[:-1]:
            x = part.forward(i, x)
        return self.parts[-1].loss(i, x, y, weight)

    def backward(self, i: int, g: np.ndarray | None) -> np.ndarray | None:
        for _, inner in self.backwards(i, g):
            g = inner
        return g

    def backwards(self, i: int, g: np.ndarray | None) -> Iterator[tuple[PartTrainer, np.ndarray | None]]:
        """Go back part by part; yield each one once it is done, with the gradient of its inputs."""
        for part in reversed(self.parts):
            g = part.backward(i, g)
            yield part, g
