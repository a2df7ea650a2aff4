"""How a torch module's weights are changed: on a CPU by the rules of `training.optimisers` themselves.

torch.optim imports torch's compiler at its first step, which takes as long as training a small
classifier; on a GPU, where the rules do not run, it is used nevertheless.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from transect.text.classifiers._options import TrainingOptions
from transect.training.optimisers import OPTIMISERS, update_cuts
from transect.training.workloads import Parameters

if TYPE_CHECKING:
    import torch


def make_updates(options: TrainingOptions, module: torch.nn.Module) -> Updates:
    """Return what changes the weights of a module that lies on its device for good."""
    rule = Parameters(
        batch=options.batch,
        epochs=1,
        learning_rate=options.learning_rate,
        optimiser=options.optimiser,
        momentum=options.momentum,
        weight_decay=options.weight_decay,
        quality_target=1,
    )
    trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
    on_cpu = all(parameter.device.type == "cpu" for parameter in trained)
    return _ByRule(rule, trained) if on_cpu else _ByTorch(rule, trained)


class _ByRule:
    """All weights in one array, all gradients in another: parameters are views of them."""

    def __init__(self, rule: Parameters, parameters: list[torch.nn.Parameter]) -> None:
        import torch

        self._rule, self._optimiser = rule, OPTIMISERS.get(rule.optimiser)
        weights = torch.cat([parameter.detach().reshape(-1) for parameter in parameters])
        gradient = torch.zeros_like(weights)
        start = 0
        for weight in parameters:
            end = start + weight.numel()
            weight.data = weights[start:end].view(weight.shape)
            weight.grad = gradient[start:end].view(weight.shape)
            start = end
        self._weights, self._gradient = weights.numpy(), gradient.numpy()
        self._states = [np.zeros_like(self._weights) for _ in range(self._optimiser.states)]
        self._cuts = update_cuts(rule, (tuple(weight.shape) for weight in parameters))
        self._steps = 0

    def zero(self) -> None:
        """Forget the gradients."""
        self._gradient.fill(0)

    def step(self) -> None:
        self._steps += 1
        # What diverges is noticed at the end of the epoch.
        with np.errstate(all="ignore"):
            for rule, cut in self._cuts:
                states = [state[cut] for state in self._states]
                self._optimiser.update(
                    rule, self._weights[cut], self._gradient[cut], states, rule.learning_rate, self._steps
                )

    def state(self) -> dict[str, np.ndarray]:
        """Return copies of the state between steps, by name, for `load`."""
        kept = {f"state-{place}": array.copy() for place, array in enumerate(self._states)}
        return kept | {"steps": np.array(self._steps)}

    def load(self, state: dict[str, np.ndarray]) -> None:
        for place, array in enumerate(self._states):
            array[:] = state[f"state-{place}"]
        self._steps = int(state["steps"])


class _ByTorch:
    """torch's own optimiser of the same rule."""

    def __init__(self, rule: Parameters, parameters: list[torch.nn.Parameter]) -> None:
        from transect.training.frameworks._torch_optimisers import make_optimiser

        self._optimiser = make_optimiser(rule, list(parameters))

    def zero(self) -> None:
        self._optimiser.zero_grad()

    def step(self) -> None:
        self._optimiser.step()

    def state(self) -> dict[str, np.ndarray]:
        return {
            f"{place}.{name}": tensor.cpu().numpy().copy()
            for place, kept in self._optimiser.state_dict()["state"].items()
            for name, tensor in kept.items()
            # SGD without momentum keeps a None.
            if tensor is not None
        }

    def load(self, state: dict[str, np.ndarray]) -> None:
        import torch

        kept: dict[int, dict[str, torch.Tensor]] = {}
        for key, array in state.items():
            place, _, name = key.partition(".")
            kept.setdefault(int(place), {})[name] = torch.from_numpy(array)
        self._optimiser.load_state_dict(self._optimiser.state_dict() | {"state": kept})


Updates = _ByRule | _ByTorch
