"""A module of torch as the reference computes it: autograd in the arrays' own precision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from transect.training.models import Arrays

if TYPE_CHECKING:
    from transect.training.module_model import ModuleModel
    from transect.training.workloads import Parameters


class TorchComputation:
    """The module's parameters and gradients are the arrays themselves, which others read and write."""

    def __init__(self, model: ModuleModel, parameters: Parameters, weights: Arrays, gradients: Arrays) -> None:
        import torch

        from transect.training.frameworks._torch_losses import loss_function
        from transect.training.frameworks._torch_modules import draw_from
        from transect.training.frameworks._torch_own_optimiser import make, rate_shares, set_rates

        self._torch, self._draw_from = torch, draw_from
        self._make_optimiser, self._rate_shares, self._set_rates = make, rate_shares, set_rates
        self._maker, self._rate = model.own_optimiser, parameters.learning_rate
        self._optimiser: torch.optim.Optimizer | None = None
        self.seed: int | None = None
        dtype = torch.from_numpy(next(iter(weights.values()))).dtype
        module = model.torch_module()
        self._module = module.to(dtype).train()
        self._loss = loss_function(parameters, model)
        for name, tensor in (*module.named_parameters(), *module.named_buffers()):
            if name in weights:
                tensor.data = torch.from_numpy(weights[name])
            if name in gradients:
                tensor.grad = torch.from_numpy(gradients[name])
        self._gradients = list(gradients.values())

    def loss(self, x: np.ndarray, y: np.ndarray) -> float:
        """Return the mean loss over the batch; autograd adds to gradients that begin as zeros."""
        for gradient in self._gradients:
            gradient.fill(0)
        if self.seed is not None:
            self._draw_from(self.seed)
            self.seed = None
        loss = self._loss(self._module(self._torch.from_numpy(x)), self._torch.from_numpy(y))
        loss.backward()
        return float(loss.item())

    def update(self, learning_rate: float) -> None:
        """Take a step of the optimiser that the user's function makes, of weights that are there before the first."""
        if self._optimiser is None:
            assert self._maker is not None
            self._optimiser = self._make_optimiser(self._maker, self._module, self._rate)
            self._shares = self._rate_shares(self._optimiser, self._rate)
        self._set_rates(self._optimiser, self._shares, learning_rate)
        self._optimiser.step()

    def outputs(self, x: np.ndarray) -> np.ndarray:
        """Return the outputs (n, ...), as in prediction."""
        self._module.eval()
        with self._torch.no_grad():
            outputs: Any = self._module(self._torch.from_numpy(x)).numpy()
        self._module.train()
        return np.asarray(outputs)
