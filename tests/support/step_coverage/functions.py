"""Cases: activations, and functions of tensors that modules are written with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from step_coverage.case import CLASSES, case, functional, nn, normal, torch


def _each(*functions: Callable[[Any], Any]) -> Any:
    """Return a network that gives features to each function, and all results to a classifier."""

    class Each(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.features = nn.Linear(4, 6)
            self.inside = nn.ModuleList(map(_as_module, functions))
            self.head = nn.LazyLinear(CLASSES)

        def forward(self, x: Any) -> Any:
            features = self.features(x)
            return self.head(torch.cat([function(features).flatten(1) for function in self.inside], dim=1))

    return Each()


def _as_module(function: Callable[[Any], Any]) -> Any:

    class Function(nn.Module):
        def forward(self, x: Any) -> Any:
            return function(x)

    return function if isinstance(function, nn.Module) else Function()


@case("Activation", normal(3, 4))
def relu_family() -> Any:
    """ReLU, ReLU6, LeakyReLU, PReLU (one and several slopes), Threshold, Hardtanh."""
    return _each(
        nn.ReLU(),
        nn.ReLU6(),
        nn.LeakyReLU(0.1),
        nn.PReLU(),
        nn.PReLU(3),
        nn.Threshold(0.1, 0.2),
        nn.Hardtanh(-0.5, 0.5),
    )


@case("Activation", normal(3, 4))
def smooth_activations() -> Any:
    """GELU (both forms), SiLU, Mish, ELU, SELU, CELU, Softplus."""
    return _each(
        nn.GELU(),
        nn.GELU(approximate="tanh"),
        nn.SiLU(),
        nn.Mish(),
        nn.ELU(0.7),
        nn.SELU(),
        nn.CELU(1.3),
        nn.Softplus(),
        nn.Softplus(2, 1),
    )


@case("Activation", normal(3, 4))
def bounded_activations() -> Any:
    """Tanh, Sigmoid, LogSigmoid, Softsign, Tanhshrink, Hardswish, Hardshrink, Softshrink."""
    return _each(
        nn.Tanh(),
        nn.Sigmoid(),
        nn.LogSigmoid(),
        nn.Softsign(),
        nn.Tanhshrink(),
        nn.Hardswish(),
        nn.Hardshrink(0.3),
        nn.Softshrink(0.3),
    )


# PyTorch's own kernel takes a sixth in float32, whatever the tensors are.
@case("Activation", normal(3, 4), bound=1e-7)
def hardsigmoid() -> Any:
    """Hardsigmoid."""
    return _each(nn.Hardsigmoid())


@case("Activation", normal(3, 4))
def normalised_activations() -> Any:
    """Softmax, LogSoftmax, Softmin, GLU, normalize."""
    return _each(nn.Softmax(-1), nn.LogSoftmax(1), nn.Softmin(1), nn.GLU(-1), lambda x: functional.normalize(x, dim=-1))


@case("Function", normal(3, 4))
def shapes() -> Any:
    """cat, stack, split, chunk, unbind, slices with steps, flip, roll, repeat, expand, einsum, pad."""
    return _each(
        lambda x: torch.cat(x.split([2, 4], dim=-1)[::-1], dim=-1),
        lambda x: torch.stack(x.chunk(3, dim=-1), dim=1),
        lambda x: x.unbind(1)[1],
        lambda x: x[:, ::2, 1::2],
        lambda x: x.flip(1, 2),
        lambda x: x.roll((1, -2), (1, 2)),
        lambda x: x.repeat(1, 2, 1),
        lambda x: x[:, None, :1].expand(-1, 2, 3, 6),
        lambda x: torch.einsum("bij,bkj->bik", x, x),
        lambda x: functional.pad(x, (1, -1, 0, 2)),
        lambda x: x.unfold(2, 3, 2),
        lambda x: x.repeat_interleave(2, dim=1),
        lambda x: x.permute(0, 2, 1),
    )


@case("Function", normal(3, 4))
def reductions() -> Any:
    """mean, sum, amax, max of an axis, min, norm, var, std, logsumexp, cumsum, cumprod, prod."""
    return _each(
        lambda x: x.mean((1, 2), keepdim=True),
        lambda x: x.sum(-1),
        lambda x: x.amax(-1),
        lambda x: x.max(dim=1).values,
        lambda x: x.min(dim=-1).values,
        lambda x: x.norm(dim=-1),
        lambda x: x.var(dim=-1),
        lambda x: x.std(dim=1, correction=0),
        lambda x: x.logsumexp(-1),
        lambda x: x.cumsum(1),
        lambda x: torch.prod(x, dim=1),
        lambda x: x.abs().topk(2, dim=-1).values,
        lambda x: x.sort(dim=-1).values,
        lambda x: x.cumprod(2),
    )


@case("Function", normal(3, 4))
def selections() -> Any:
    """where, clamp, maximum, gather, index_select, indices of tensors, masked_fill, tril, scatter_reduce."""
    order = torch.tensor([2, 0, 1, 1])

    def mean_by_place(x: Any) -> Any:
        places = order.expand(x.shape[0], 3, 4)
        return torch.ones_like(x).scatter_reduce(2, places, x[:, :, :4], "mean", include_self=False)

    return _each(
        lambda x: torch.where(x > 0, x, 2 * x),
        lambda x: x.clamp(-0.5, 0.5),
        lambda x: torch.maximum(x, x.flip(1)),
        lambda x: torch.minimum(x, x.flip(2)),
        lambda x: x.index_select(1, order),
        lambda x: x[:, order],
        lambda x: x[:, order[:3], order[1:]],
        lambda x: x.gather(2, order.expand(x.shape[0], 3, 4)),
        lambda x: x.masked_fill(x > 1, 0.3),
        lambda x: x[:, :, :3].tril(-1),
        lambda x: x.clamp(min=0.1),
        mean_by_place,
    )


@case("Function", normal(3, 4))
def elementwise() -> Any:
    """exp, log, sqrt, rsqrt, pow, sin, cos, erf, reciprocal, abs, sign, atan, expm1, log1p."""
    return _each(
        lambda x: x.exp(),
        lambda x: (x * x + 1).log(),
        lambda x: (x * x + 1).sqrt(),
        lambda x: (x * x + 1).rsqrt(),
        lambda x: x**3,
        lambda x: (x.abs() + 0.5) ** 1.7,
        torch.sin,
        torch.cos,
        torch.erf,
        lambda x: 1 / (x.abs() + 1),
        torch.abs,
        lambda x: x * x.sign(),
        torch.atan,
        torch.expm1,
        lambda x: (x * x).log1p(),
        torch.sinh,
        lambda x: torch.atan2(x, x * x + 1),
        lambda x: torch.lerp(x, x.flip(1), 0.3),
        lambda x: torch.logaddexp(x, x.flip(2)),
    )


@case("Function", normal(3, 5, 4))
def resampling() -> Any:
    """Upsample (nearest, bilinear with and without aligned corners), PixelShuffle and back, Fold, Unfold."""
    return nn.Sequential(
        nn.Conv2d(3, 4, 3),
        nn.Upsample(scale_factor=2),
        nn.Conv2d(4, 4, 1),
        nn.Upsample(size=(7, 5), mode="bilinear"),
        nn.Conv2d(4, 4, 1),
        nn.Upsample(size=(4, 6), mode="bilinear", align_corners=True),
        nn.PixelShuffle(2),
        nn.PixelUnshuffle(2),
        nn.Unfold((2, 3), padding=1),
        nn.Tanh(),
        nn.Fold((4, 6), (2, 3), padding=1),
        nn.Flatten(),
        nn.LazyLinear(CLASSES),
    )
