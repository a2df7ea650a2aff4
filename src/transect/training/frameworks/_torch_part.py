"""A part of a model in PyTorch: autograd's tape is cut where the part begins and ends."""

from __future__ import annotations

from typing import Any

import numpy as np

from transect.training.frameworks import ModelPart, ModelPlan, TellsKept
from transect.training.frameworks._torch_kept import kept_storages
from transect.training.frameworks._torch_trainer import TorchTrainer
from transect.training.parts import PartByTrainer


class TorchPart(PartByTrainer, TellsKept):
    """Gradients of micro-batches add up in `parameter.grad`, as autograd does it."""

    trainer: TorchTrainer

    def __init__(self, plan: ModelPlan, part: ModelPart) -> None:
        super().__init__(plan, part, TorchTrainer)
        # Of each micro-batch under way: what came in, and what to go back from with which weight.
        self._tapes: dict[int, tuple[Any, Any, float]] = {}

    def begin_step(self) -> None:
        """Forget gradients and tapes."""
        self.trainer.optimiser.zero_grad()
        self._tapes.clear()

    def _inputs(self, x: Any) -> Any:
        """Return a leaf of autograd's graph, whose gradient the part before will ask for."""
        if self.part.begins:
            return x
        inputs, _ = self.trainer.batch(x, np.empty(0, np.int64))
        return inputs.requires_grad_()

    def forward(self, i: int, x: Any) -> np.ndarray:
        """Return the outputs; on a CPU the array is the tensor's own memory."""
        inputs = self._inputs(x)
        outputs = self.trainer.compute(inputs)
        self._tapes[i] = inputs, outputs, 1.0
        return self._array(outputs)

    def loss(self, i: int, x: Any, y: Any, weight: float) -> float:
        """Return the mean loss as a Python number, which waits for the device."""
        inputs = self._inputs(x)
        loss = self.trainer.compute(inputs, y)
        self._tapes[i] = inputs, loss, weight
        number: float = loss.item()
        return number

    def backward(self, i: int, g: np.ndarray | None) -> np.ndarray | None:
        """Run autograd from the outputs or the loss to the inputs."""
        torch = self.trainer.torch
        inputs, end, weight = self._tapes.pop(i)
        # Layers without weights at the model's beginning leave nothing to compute.
        if end.requires_grad:
            given = torch.full_like(end, weight) if g is None else torch.from_numpy(g).to(end.device, end.dtype)
            torch.autograd.backward(end, given)
        return None if self.part.begins else self._array(inputs.grad)

    def kept(self, i: int) -> dict[int, int]:
        """Return address and bytes of each storage that the micro-batch's graph holds besides weights."""
        model = self.trainer.model
        return kept_storages(self._tapes[i][1], (*model.parameters(), *model.buffers()))

    def _array(self, tensor: Any) -> np.ndarray:
        array: np.ndarray = tensor.detach().to(self.trainer.dtype).contiguous().cpu().numpy()
        return array
