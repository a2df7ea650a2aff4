"""What a torch module computes."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from transect.onnx_models.models import Arrays, Built

if TYPE_CHECKING:
    import torch


def load_state(module: torch.nn.Module, weights: Arrays) -> torch.nn.Module:
    """Copy arrays into the parameters of the same names; return the module, for prediction."""
    import torch

    module.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
    return module.eval().requires_grad_(False)


def built_in_torch(
    module: torch.nn.Module,
    inputs: Arrays,
    calibration: Arrays,
    outputs: tuple[str, ...],
    *,
    batched: bool = True,
    exported: Any = None,
) -> Built:
    """Run a module in float32 and float64; `exported` is its form for the exporter, if another."""
    return Built(
        model=module if exported is None else exported,
        inputs=inputs,
        calibration=calibration,
        outputs=dict(zip(outputs, _run(module, inputs, double=False), strict=True)),
        exact=dict(zip(outputs, _run(copy.deepcopy(module).double(), inputs, double=True), strict=True)),
        batched=batched,
    )


def _run(module: torch.nn.Module, inputs: Arrays, *, double: bool) -> list[np.ndarray]:
    import torch

    given = [torch.from_numpy(array.copy()) for array in inputs.values()]
    if double:
        given = [tensor.double() if tensor.is_floating_point() else tensor for tensor in given]
    with torch.inference_mode():
        found = module(*given)
    return [output.numpy() for output in (found if isinstance(found, tuple) else (found,))]
