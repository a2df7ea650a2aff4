"""The gamma function's logarithm and its derivatives, which stand in likelihoods of counts and of rates.

From 10 on by Stirling's series (Abramowitz and Stegun, 6.1.40, 6.3.18 and 6.4.12), of which seven terms are exact to float64;
below by the recurrence, and below 0 by the reflection (6.1.15 to 6.1.17, 6.3.5 to 6.3.7).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from transect.portable_step.decompositions import decomposes

if TYPE_CHECKING:
    from torch import Tensor

# Bernoulli's numbers B2, B4, …, B14.
BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)
FAR = 10


@decomposes("aten.lgamma.default")
def lgamma(self: Tensor) -> Tensor:
    """Return log |gamma(x)|."""
    import torch

    x, below = _reflected(self)
    far, product = x, torch.ones_like(x)
    for _ in range(FAR):
        near = far < FAR
        product = torch.where(near, product * far, product)
        far = torch.where(near, far + 1, far)
    series = _series(far, [b / (2 * k * (2 * k - 1)) for k, b in enumerate(BERNOULLI, 1)]) * far
    found = (far - 0.5) * far.log() - far + math.log(2 * math.pi) / 2 + series - product.log()
    return torch.where(below, math.log(math.pi) - _sine(self).abs().log() - found, found)


@decomposes("aten.digamma.default")
def digamma(self: Tensor) -> Tensor:
    """Return the derivative of log gamma(x)."""
    import torch

    x, below = _reflected(self)
    far, total = x, torch.zeros_like(x)
    for _ in range(FAR):
        near = far < FAR
        total = torch.where(near, total + far.reciprocal(), total)
        far = torch.where(near, far + 1, far)
    series = _series(far, [b / (2 * k) for k, b in enumerate(BERNOULLI, 1)])
    found = far.log() - far.reciprocal() / 2 - series - total
    return torch.where(below, found - math.pi * _cosine(self) / _sine(self), found)


@decomposes("aten.polygamma.default")
def polygamma(n: int, self: Tensor) -> Any:
    """Return the second derivative of log gamma(x) for n = 1, the gradient of digamma."""
    import torch

    if n != 1:
        return NotImplemented
    x, below = _reflected(self)
    far, total = x, torch.zeros_like(x)
    for _ in range(FAR):
        near = far < FAR
        total = torch.where(near, total + far.reciprocal().square(), total)
        far = torch.where(near, far + 1, far)
    series = _series(far, list(BERNOULLI)) / far
    found = far.reciprocal() + far.reciprocal().square() / 2 + series + total
    return torch.where(below, (math.pi / _sine(self)).square() - found, found)


def _reflected(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return 1 - x in place of x below 0.5, and where that is."""
    import torch

    below = x < 0.5
    return torch.where(below, 1 - x, x), below


def _sine(x: Tensor) -> Tensor:
    """Return sin(pi x), exact at whole numbers."""
    import torch

    whole = x.round()
    sine = (math.pi * (x - whole)).sin()
    return torch.where((whole / 2).frac() == 0, sine, -sine)


def _cosine(x: Tensor) -> Tensor:
    """Return cos(pi x)."""
    import torch

    whole = x.round()
    cosine = (math.pi * (x - whole)).cos()
    return torch.where((whole / 2).frac() == 0, cosine, -cosine)


def _series(x: Tensor, terms: list[float]) -> Tensor:
    """Return the sum of terms[k] / x ** (2 k + 2)."""
    inverse = x.square().reciprocal()
    total = inverse * terms[-1]
    for term in reversed(terms[:-1]):
        total = inverse * (total + term)
    return total
