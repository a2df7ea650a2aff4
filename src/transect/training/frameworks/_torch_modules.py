"""PyTorch modules made from the neutral layers: for training, export and eager inference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from transect.training.layers import Conv2d, Flatten, Layer, Linear, MaxPool2d, ReLU, Sigmoid

if TYPE_CHECKING:
    import torch

__all__ = ["DTYPES", "build_module", "load_weights", "module_dtype"]

# Names of `torch` dtypes per precision of a cell.
DTYPES = {"fp32": "float32", "fp64": "float64", "fp16": "float16", "bf16": "bfloat16"}


def module_dtype(precision: str) -> torch.dtype:
    """Return the torch dtype of a cell's precision. Raises KeyError for an unknown one."""
    import torch

    dtype = getattr(torch, DTYPES[precision])
    assert isinstance(dtype, torch.dtype)
    return dtype


def build_module(layers: tuple[Layer, ...]) -> torch.nn.Sequential:
    """Make a `Sequential` whose parameters are named `INDEX.weight` and `INDEX.bias`.

    The layouts are the neutral ones, so weights are copied as they are. The weights drawn by
    torch are meant to be replaced by `load_weights`. Raises TypeError for an unknown layer.
    """
    from torch import nn

    def build(layer: Layer) -> Any:
        match layer:
            case Linear(inputs, outputs):
                return nn.Linear(inputs, outputs)
            case Conv2d(inputs, outputs, kernel, padding):
                return nn.Conv2d(inputs, outputs, kernel, padding=padding)
            case MaxPool2d(size):
                return nn.MaxPool2d(size)
            case ReLU():
                return nn.ReLU()
            case Sigmoid():
                return nn.Sigmoid()
            case Flatten():
                return nn.Flatten()
        raise TypeError(f"no torch module for layer {layer!r}: add it to {__name__}")

    return nn.Sequential(*(build(layer) for layer in layers))


def load_weights(
    module: torch.nn.Module, weights: dict[str, np.ndarray], dtype: torch.dtype
) -> torch.nn.Module:
    """Bring the module to `dtype` and copy the weights, given in the neutral layout, into it.

    Parameters keep their identity, so an optimiser or a wrapper that holds them stays valid.
    Raises ValueError naming what is missing, too much, or of another shape.
    """
    import torch

    module.to(dtype)
    parameters = dict(module.named_parameters())
    if parameters.keys() != weights.keys():
        raise ValueError(
            f"weights do not fit the model: missing {sorted(parameters.keys() - weights.keys())}, "
            f"not in the model {sorted(weights.keys() - parameters.keys())}"
        )
    with torch.no_grad():
        for name, parameter in parameters.items():
            given = np.ascontiguousarray(weights[name])
            if given.shape != tuple(parameter.shape):
                raise ValueError(
                    f"weight '{name}' has shape {given.shape}, "
                    f"the model takes {tuple(parameter.shape)}"
                )
            parameter.copy_(torch.tensor(given))
    return module
