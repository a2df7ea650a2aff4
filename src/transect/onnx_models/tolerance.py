"""How far two correct float32 runs of one model may lie apart: a bound, not a guess."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from transect.training.layered import LayeredModel
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
    walk,
)
from transect.training.models import Model

if TYPE_CHECKING:
    import torch

UNIT_ROUNDOFF = 2.0**-24

# Runs that round alike but sum in another order err by like amounts: room for the tails.
_SAFETY = 32

TOLERANCE_RULE = (
    "min(worst_case, max(32 * framework_error, 2 (K+1) u * output_scale)); u = 2^-24; K is the "
    "longest accumulation; output_scale is the largest absolute output; framework_error is the "
    "framework's own largest distance to the same model in float64; worst_case, known of lists of "
    "layers, is twice the "
    "float32 error bound propagated layer by layer over the test set (but with a LayerNorm, which may "
    "divide by next to nothing): a sum of K products plus "
    "bias adds gamma(K+1) (|W||x| + |b|), gamma(n) = n u / (1 - n u), in any order of summation, "
    "|W| carries on the error of the layer before, sigmoid divides it by 4 and adds 4 u. "
    "Weights rounded to fp16 do not pass"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Tolerance:
    """The largest permitted absolute difference, and what it was made from (see the rule)."""

    tolerance: float
    worst_case: float | None
    framework_error: float
    longest_accumulation: int
    output_scale: float


def output_tolerance(model: Model, module: torch.nn.Module, x: np.ndarray, outputs: np.ndarray) -> Tolerance:
    """Derive the tolerance for float32 outputs (n, classes) of the model's `module` on x (n, ...).

    The module is not changed. Running error analysis: N. J. Higham, "Accuracy and Stability of
    Numerical Algorithms", 2nd ed., sections 3.1 and 3.3. Raises TypeError for a layer without
    a rule.
    """
    worst_case = None
    # A layer norm divides by what may be next to nothing: a bound for that would be none.
    if isinstance(model, LayeredModel) and not any(
        isinstance(placed.layer, LayerNorm) for placed in walk(model.layers, model.sample)
    ):
        exact, error, longest = _propagate(model.layers, module, x)
        worst_case = 2.0 * error
    else:
        exact, longest = _exact(module, x), model.longest_sum(1)
    framework_error = float(np.abs(outputs.astype(np.float64) - exact).max())
    scale = float(np.abs(exact).max())
    usual = max(_SAFETY * framework_error, 2 * (longest + 1) * UNIT_ROUNDOFF * scale)
    return Tolerance(
        tolerance=usual if worst_case is None else min(worst_case, usual),
        worst_case=worst_case,
        framework_error=framework_error,
        longest_accumulation=longest,
        output_scale=scale,
    )


def _exact(module: torch.nn.Module, x: np.ndarray) -> np.ndarray:
    import torch

    with torch.inference_mode():
        outputs: np.ndarray = _double(module)(_double_of(x)).numpy()
    return outputs


def _double_of(x: np.ndarray) -> Any:
    """Return a tensor in float64; integers stay."""
    import torch

    return torch.tensor(x, dtype=torch.float64 if x.dtype.kind == "f" else None)


def _propagate(layers: tuple[Layer, ...], module: torch.nn.Module, x: np.ndarray) -> tuple[np.ndarray, float, int]:
    """Return the float64 outputs, the bound of one float32 run's error, and the longest K."""
    import torch

    exact, absolute = _double(module), _double(module)
    for parameter in absolute.parameters():
        parameter.data.abs_()
    value = torch.tensor(x, dtype=torch.float64)
    with torch.inference_mode():
        value, error, longest = _chain(layers, exact, absolute, value, torch.zeros_like(value))
    return value.numpy(), float(error.max()), longest


def _chain(layers: Any, exact: Any, absolute: Any, value: Any, error: Any) -> tuple[Any, Any, int]:
    """Run layers one after another; return their value, its error bound, and the longest sum."""
    import torch

    longest = 1
    for layer, run, run_absolute in zip(layers, exact, absolute, strict=True):
        match layer:
            case Linear() | Conv2d():
                length = _accumulation(layer)
                longest = max(longest, length)
                # A convolution without bias may be folded with its batch norm: two roundings more.
                folded = 2 if isinstance(layer, Conv2d) and not layer.bias else 0
                terms = (length + 1 + folded) * UNIT_ROUNDOFF
                # The absolute model adds |b|, and the bias itself carries no error.
                carried = run_absolute(error) - run_absolute(torch.zeros_like(value))
                error = carried + terms / (1 - terms) * run_absolute(value.abs() + error)
            case BatchNorm2d():
                scale = (run.weight / (run.running_var + run.eps).sqrt()).abs().view(-1, 1, 1)
                mean, bias = run.running_mean.abs().view(-1, 1, 1), run.bias.abs().view(-1, 1, 1)
                error = scale * error + 6 * UNIT_ROUNDOFF * (scale * (value.abs() + error + mean) + bias)
            case GlobalAveragePool():
                area = value.shape[2] * value.shape[3]
                longest = max(longest, area)
                error = (error + (area + 1) * UNIT_ROUNDOFF * (value.abs() + error)).mean((2, 3))
            case Residual(body, shortcut):
                of_body = _chain(body, run.body, run_absolute.body, value, error)
                of_shortcut = _chain(shortcut, run.shortcut, run_absolute.shortcut, value, error)
                value, longest = of_body[0] + of_shortcut[0], max(longest, of_body[2], of_shortcut[2])
                error = of_body[1] + of_shortcut[1]
                error = error + UNIT_ROUNDOFF * (value.abs() + error)
                continue
            case Branches(branches):
                ends = [
                    _chain(branch, exact_branch, absolute_branch, value, error)
                    for branch, exact_branch, absolute_branch in zip(
                        branches, run.children(), run_absolute.children(), strict=True
                    )
                ]
                value, error = (torch.cat([end[place] for end in ends], 1) for place in (0, 1))
                longest = max(longest, *(end[2] for end in ends))
                continue
            case Sigmoid():
                error = error / 4 + 4 * UNIT_ROUNDOFF
            case MaxPool2d() | Flatten():
                error = run(error)
            case ReLU():
                pass
            case _:
                raise TypeError(f"no error rule for layer {layer!r}: add it to {__name__}")
        value = run(value)
    return value, error, longest


def _accumulation(layer: Linear | Conv2d) -> int:
    return layer.inputs // layer.groups * layer.kernel**2 if isinstance(layer, Conv2d) else layer.inputs


def _double(module: torch.nn.Module) -> Any:
    import copy

    return copy.deepcopy(module).double()
