"""Layers of torch whose images are divided among ranks by rows, and the exchange of rows between them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from transect.training.layers import BatchNorm2d, Conv2d, GlobalAveragePool, Layer, MaxPool2d, Shape, shapes, walk
from transect.training.strategies._rows import Halo, Rows
from transect.training.strategies._torch_replicas import RankGroup

if TYPE_CHECKING:
    import torch


def _cut(x: Any, rows: Rows, first: int) -> Any:
    """Return some rows of x, whose own first one is row `first` of the image."""
    return x[:, :, rows[0] - first : rows[1] - first]


@cache
def _exchanges() -> tuple[Any, Any]:
    import torch

    def fetch(x: Any, halo: Halo, group: RankGroup) -> Any:
        first, last = halo.wanted
        out = x.new_empty((*x.shape[:2], last - first, x.shape[3]))
        _cut(out, halo.kept, first).copy_(_cut(x, halo.kept, halo.local[0]))
        sends = [(peer, _cut(x, rows, halo.local[0]).contiguous()) for peer, rows in halo.sends]
        buffers = [_cut(out, rows, first) for _, rows in halo.receives]
        found = [torch.empty_like(buffer, memory_format=torch.contiguous_format) for buffer in buffers]
        group.exchange(sends, [(peer, tensor) for (peer, _), tensor in zip(halo.receives, found, strict=True)])
        for buffer, tensor in zip(buffers, found, strict=True):
            buffer.copy_(tensor)
        return out

    def give_back(g: Any, halo: Halo, group: RankGroup) -> Any:
        """Return the sum of everybody's gradients of this rank's rows."""
        first = halo.wanted[0]
        total = g.new_zeros((*g.shape[:2], halo.local[1] - halo.local[0], g.shape[3]))
        _cut(total, halo.kept, halo.local[0]).copy_(_cut(g, halo.kept, first))
        sends = [(peer, _cut(g, rows, first).contiguous()) for peer, rows in halo.receives]
        places = [_cut(total, rows, halo.local[0]) for _, rows in halo.sends]
        found = [torch.empty_like(place, memory_format=torch.contiguous_format) for place in places]
        group.exchange(sends, [(peer, tensor) for (peer, _), tensor in zip(halo.sends, found, strict=True)])
        for place, tensor in zip(places, found, strict=True):
            place.add_(tensor)
        return total

    class Fetch(torch.autograd.Function):
        """Rows for ranks that go on with different ones: gradients are given back and added."""

        @staticmethod
        def forward(ctx: Any, x: Any, halo: Halo, group: RankGroup) -> Any:
            ctx.halo, ctx.group = halo, group
            return fetch(x, halo, group)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return give_back(g, ctx.halo, ctx.group), None, None

    class Gather(torch.autograd.Function):
        """All rows for ranks that all go on alike: each has the gradient of its own rows already."""

        @staticmethod
        def forward(ctx: Any, x: Any, halo: Halo, group: RankGroup) -> Any:
            ctx.halo = halo
            return fetch(x, halo, group)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return _cut(g, ctx.halo.local, 0).contiguous(), None, None

    return Fetch, Gather


def _with_halo(x: Any, halo: Halo, group: RankGroup, outside: float) -> Any:
    import torch

    if halo.sends or halo.receives or halo.local != halo.wanted:
        x = _exchanges()[0].apply(x, halo, group)
    if halo.above or halo.below:
        x = torch.nn.functional.pad(x, (0, 0, halo.above, halo.below), value=outside)
    return x


@cache
def _modules() -> dict[type, Any]:
    import torch
    from torch import nn
    from torch.nn import functional

    from transect.training.strategies._torch_sums import summed, summed_both_ways

    class Convolution(nn.Conv2d):
        def __init__(self, layer: Conv2d, height: int, group: RankGroup, part: int) -> None:
            kernel, pad, stride = layer.kernel, layer.padding, layer.stride
            super().__init__(layer.inputs, layer.outputs, kernel, stride, pad, groups=layer.groups, bias=layer.bias)
            self.halo = Halo.of_windows(height, kernel, pad, stride, len(group.ranks), part)
            self.group = group

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = _with_halo(x, self.halo, self.group, 0.0)
            # Rows are padded by what is there or by zeros, columns as ever.
            sides = (0, self.padding[1])
            return functional.conv2d(x, self.weight, self.bias, self.stride, sides, groups=self.groups)

    class Pool(nn.Module):
        def __init__(self, layer: MaxPool2d, height: int, group: RankGroup, part: int) -> None:
            super().__init__()
            size, pad, step = layer.size, layer.padding, layer.step
            self.halo = Halo.of_windows(height, size, pad, step, len(group.ranks), part)
            self.layer, self.group = layer, group

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = _with_halo(x, self.halo, self.group, -torch.inf)
            sides = (0, self.layer.padding)
            return functional.max_pool2d(x, self.layer.size, self.layer.step, sides)

    class Norm(nn.BatchNorm2d):
        """Normalises by mean and variance over all rows; torch's SyncBatchNorm is for GPUs."""

        def __init__(self, layer: BatchNorm2d, height: int, group: RankGroup, _: int) -> None:
            super().__init__(layer.channels, layer.epsilon, layer.momentum)
            self.height, self.group = height, group

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if not self.training:
                return super().forward(x)
            count = len(x) * self.height * x.shape[3]
            mean = summed_both_ways(x.sum((0, 2, 3)), self.group) / count
            centred = x - mean[:, None, None]
            variance = summed_both_ways(centred.square().sum((0, 2, 3)), self.group) / count
            with torch.no_grad():
                unbiased = variance * (count / max(1, count - 1))
                self.running_mean.lerp_(mean, self.momentum)
                self.running_var.lerp_(unbiased, self.momentum)
            scale = (variance + self.eps).rsqrt() * self.weight
            return centred * scale[:, None, None] + self.bias[:, None, None]

    class Average(nn.Module):
        def __init__(self, _: GlobalAveragePool, height: int, group: RankGroup, __: int) -> None:
            super().__init__()
            self.height, self.group = height, group

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            total: torch.Tensor = summed(x.sum((2, 3)), self.group)
            return total / (self.height * x.shape[3])

    return {Conv2d: Convolution, MaxPool2d: Pool, BatchNorm2d: Norm, GlobalAveragePool: Average}


def _instead(layers: tuple[Layer, ...], sample: Shape, group: RankGroup, part: int) -> Iterator[tuple[str, Any]]:
    classes = _modules()
    for name, layer, before, _ in (
        (placed.name, placed.layer, placed.before, placed.after) for placed in walk(layers, sample)
    ):
        if type(layer) in classes:
            yield name, classes[type(layer)](layer, before[1], group, part)


def module_by_rows(layers: tuple[Layer, ...], sample: Shape, first: int, group: RankGroup, part: int) -> Any:
    """Return a module from whole batches to whole outputs, under the neutral names.

    Its first `first` layers compute this rank's rows alone, the others all of them on every rank.
    """
    from torch import nn

    from transect.training.frameworks._torch_modules import build_module

    parts = len(group.ranks)
    begin = Halo.of_all(sample[1], parts, part).local
    end = shapes(layers[:first], sample)[-1]
    # What an average has left is whole already.
    all_rows = Halo.of_all(end[1], parts, part) if len(end) == 3 else None

    class ByRows(nn.Sequential):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = _cut(x, begin, 0)
            for number, module in enumerate(self):
                if number == first and all_rows is not None:
                    x = _exchanges()[1].apply(x, all_rows, group)
                x = module(x)
            return x

    built = build_module(layers, dict(_instead(layers[:first], sample, group, part)))
    return ByRows(OrderedDict(built.named_children()))
