"""A part of a model in PyTorch: autograd's tape is cut where the part begins and ends."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from transect.training.frameworks import ModelPart, ModelPlan, TellsKept
from transect.training.frameworks._torch_trainer import TorchTrainer
from transect.training.parts import PartByTrainer


class AutogradPart(PartByTrainer):
    """Gradients of micro-batches add up in `parameter.grad`, as autograd does it.

    Of each micro-batch under way the tape holds what came in, and what to go back from with which weight.
    """

    @abstractmethod
    def _outputs(self, x: Any) -> Any:
        """Return the part's outputs, a tensor of autograd."""

    @abstractmethod
    def _loss(self, x: Any, y: Any) -> Any:
        """Return the mean loss, a tensor of autograd."""

    def _leaf(self, x: Any) -> Any:
        return x if self.part.begins else self.native(x).requires_grad_()

    def forward(self, i: int, x: Any) -> np.ndarray:
        """Return the outputs; on a CPU the array is the tensor's own memory."""
        inputs = self._leaf(x)
        outputs = self._outputs(inputs)
        self.tapes[i] = inputs, outputs, 1.0
        return self._array(outputs)

    def loss(self, i: int, x: Any, y: Any, weight: float) -> float:
        inputs = self._leaf(x)
        loss = self._loss(inputs, y)
        self.tapes[i] = inputs, loss, weight
        return float(loss.item())

    def backward(self, i: int, g: np.ndarray | None) -> np.ndarray | None:
        import torch

        inputs, end, weight = self.tapes.pop(i)
        # Layers without weights at the model's beginning leave nothing to compute.
        if end.requires_grad:
            given = torch.full_like(end, weight) if g is None else torch.from_numpy(g).to(end.device, end.dtype)
            torch.autograd.backward(end, given)
        return None if self.part.begins else self._array(inputs.grad)

    def _array(self, tensor: Any) -> np.ndarray:
        array: np.ndarray = tensor.detach().contiguous().cpu().numpy()
        return array


class TorchPart(AutogradPart, TellsKept):
    """A part as the framework `torch` computes it."""

    trainer: TorchTrainer

    def __init__(self, plan: ModelPlan, part: ModelPart) -> None:
        super().__init__(plan, part, TorchTrainer)

    def begin_step(self) -> None:
        super().begin_step()
        self.trainer.optimiser.zero_grad()

    def _outputs(self, x: Any) -> Any:
        return self.trainer.compute(x)

    def _loss(self, x: Any, y: Any) -> Any:
        return self.trainer.compute(x, y)

    def kept(self, i: int) -> dict[int, int]:
        """Return address and bytes of each storage that the micro-batch's graph holds besides weights."""
        model = self.trainer.model
        return kept_storages(self.tapes[i][1], (*model.parameters(), *model.buffers()))

    def _array(self, tensor: Any) -> np.ndarray:
        return super()._array(tensor.detach().to(self.trainer.dtype))


def _saved(node: Any) -> Iterator[Any]:
    """Yield the tensors that a node of the graph has saved: attributes that autograd names `_saved_`."""
    import torch

    for name in dir(node):
        if name.startswith("_saved_"):
            value = getattr(node, name)
            several = value if isinstance(value, tuple | list) else (value,)
            yield from (tensor for tensor in several if isinstance(tensor, torch.Tensor))


def kept_storages(end: Any, weights: Iterable[Any]) -> dict[int, int]:
    """Return address and bytes of each storage that the graph behind a tensor holds.

    Those of `weights` are left out: they are there anyway.
    """
    weight_storages = {tensor.untyped_storage().data_ptr() for tensor in weights}
    found: dict[int, int] = {}
    todo, seen = [end.grad_fn], set()
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        todo += [behind for behind, _ in node.next_functions]
        for tensor in _saved(node):
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in weight_storages and storage.nbytes():
                found[storage.data_ptr()] = storage.nbytes()
    return found
