"""PyTorch modules made from the neutral layers: for training, export and eager inference."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from transect.domain.precisions import find_precision
from transect.training.layers import (
    BatchNorm2d,
    Branches,
    Conv2d,
    Flatten,
    GlobalAveragePool,
    Layer,
    LayerNorm,
    Linear,
    MaxPool2d,
    ReLU,
    Residual,
    Sigmoid,
    is_statistic,
)

if TYPE_CHECKING:
    import torch


def module_dtype(precision: str) -> torch.dtype:
    """Return the torch dtype in which a precision keeps weights. Raises BadInput when it is unknown."""
    import torch

    dtype = getattr(torch, find_precision(precision).stored)
    assert isinstance(dtype, torch.dtype)
    return dtype


def build_module(
    layers: tuple[Layer, ...], instead: Mapping[str, torch.nn.Module] = MappingProxyType({})
) -> torch.nn.Sequential:
    """Make nested `Sequential`s whose parameters have the neutral names.

    `instead` holds modules by the names of the layers (`0`, `4.body.1`) that they stand for. The
    layouts are the neutral ones, so weights are copied as they are. The weights drawn by torch are
    meant to be replaced by `load_weights`. Raises TypeError for an unknown layer.
    """
    import torch
    from torch import nn

    class Sum(nn.Module):
        """A residual layer."""

        def __init__(self, body: nn.Module, shortcut: nn.Module) -> None:
            super().__init__()
            self.body, self.shortcut = body, shortcut

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            total: torch.Tensor = self.body(x) + self.shortcut(x)
            return total

    class Join(nn.Module):
        """Branches from one input, joined along channels."""

        def __init__(self, branches: Iterable[nn.Module]) -> None:
            super().__init__()
            for number, branch in enumerate(branches):
                self.add_module(str(number), branch)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cat([branch(x) for branch in self.children()], 1)

    class Average(nn.Module):
        """Mean over height and width."""

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.mean(dim=(2, 3))

    def build(layer: Layer, name: str) -> Any:
        if name in instead:
            return instead[name]
        match layer:
            case Linear(inputs, outputs):
                return nn.Linear(inputs, outputs)
            case Conv2d(inputs, outputs, kernel, padding, stride, bias, groups):
                return nn.Conv2d(inputs, outputs, kernel, stride, padding, groups=groups, bias=bias)
            case BatchNorm2d(channels, momentum, epsilon):
                return nn.BatchNorm2d(channels, epsilon, momentum)
            case LayerNorm(features, epsilon):
                return nn.LayerNorm(features, epsilon, elementwise_affine=False)
            case MaxPool2d(size, stride, padding):
                return nn.MaxPool2d(size, stride or None, padding)
            case GlobalAveragePool():
                return Average()
            case ReLU():
                return nn.ReLU()
            case Sigmoid():
                return nn.Sigmoid()
            case Flatten():
                return nn.Flatten()
            case Residual(body, shortcut):
                return Sum(chain(body, f"{name}.body."), chain(shortcut, f"{name}.shortcut."))
            case Branches(branches):
                return Join(chain(branch, f"{name}.{number}.") for number, branch in enumerate(branches))
        raise TypeError(f"no torch module for layer {layer!r}: add it to {__name__}")

    def chain(parts: tuple[Layer, ...], prefix: str = "") -> nn.Sequential:
        return nn.Sequential(*(build(layer, f"{prefix}{i}") for i, layer in enumerate(parts)))

    return chain(layers)


def load_weights(module: torch.nn.Module, weights: dict[str, np.ndarray], dtype: torch.dtype) -> torch.nn.Module:
    """Bring the module to `dtype` and copy the weights, given in the neutral layout, into it.

    Parameters keep their identity, so an optimiser or a wrapper that holds them stays valid.
    Raises ValueError naming what is missing, too much, or of another shape.
    """
    import torch

    module.to(dtype)
    parameters = dict(module.named_parameters())
    # Of a user's module more may be given: whatever it saves.
    parameters |= {name: b for name, b in module.named_buffers() if is_statistic(name) or name in weights}
    if parameters.keys() != weights.keys():
        raise ValueError(
            f"weights do not fit the model: missing {sorted(parameters.keys() - weights.keys())}, "
            f"not in the model {sorted(weights.keys() - parameters.keys())}"
        )
    with torch.no_grad():
        for name, parameter in parameters.items():
            given = np.ascontiguousarray(weights[name])
            if given.shape != tuple(parameter.shape):  # copying would broadcast it
                raise ValueError(f"weight '{name}' has shape {given.shape}, the model takes {tuple(parameter.shape)}")
            copy_array(parameter, given)
    return module


def copy_array(tensor: Any, array: np.ndarray) -> None:
    """Fill a tensor, or this rank's part of one that is sharded; every rank has the whole array."""
    import torch

    value = torch.tensor(array)
    if hasattr(tensor, "placements"):
        from torch.distributed.tensor import distribute_tensor

        value = value.to(tensor.device, tensor.dtype)
        value = distribute_tensor(value, tensor.device_mesh, tensor.placements, src_data_rank=None)
    tensor.copy_(value)


def draw_from(seed: int) -> None:
    """Let all that modules draw from begin anew: torch's generators, Python's and numpy's."""
    import random

    import torch

    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed % 2**32)


def next_numbers() -> tuple[float, float, float]:
    """Draw one number of each: they tell whether something else has drawn."""
    import random

    import torch

    return float(torch.rand(1)), random.random(), float(np.random.rand())
