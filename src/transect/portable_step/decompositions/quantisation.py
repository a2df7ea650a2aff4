"""Rounding as an integer would hold a number, for training with quantisation in mind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transect.portable_step.decompositions import decomposes

if TYPE_CHECKING:
    from torch import Tensor


@decomposes("aten.fake_quantize_per_tensor_affine_cachemask.default")
def fake_quantize(self: Tensor, scale: float, zero_point: int, quant_min: int, quant_max: int) -> tuple[Tensor, Tensor]:
    """Return x rounded to scale * (q - zero point), q from `quant_min` to `quant_max`; and where x was in range."""
    return _quantized(self, scale, zero_point, quant_min, quant_max)


@decomposes("aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default")
def fake_quantize_by_tensors(
    self: Tensor, scale: Tensor, zero_point: Tensor, fake_quant_enabled: Tensor, quant_min: int, quant_max: int
) -> tuple[Tensor, Tensor]:
    """Do so with scale and zero point from tensors; x itself where it is not enabled."""
    import torch

    made, inside = _quantized(self, scale, zero_point, quant_min, quant_max)
    on = fake_quant_enabled != 0
    return torch.where(on, made, self), inside | ~on


def _quantized(
    x: Tensor, scale: Tensor | float, zero_point: Tensor | int, low: int, high: int
) -> tuple[Tensor, Tensor]:
    # By the reciprocal, as PyTorch's kernel does: a quotient would round some numbers the other way.
    places = (x * (1 / scale)).round() + zero_point
    return (places.clamp(low, high) - zero_point) * scale, (places >= low) & (places <= high)
