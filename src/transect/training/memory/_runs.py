"""Runs of layers of a torch module, each computed in one way: kept, recomputed or offloaded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any, Literal, NamedTuple

Action = Literal["keep", "recompute", "offload"]


class Run(NamedTuple):
    """Layers [first, last): one that is recomputed keeps the input of its first layer only."""

    action: Action
    first: int
    last: int


def layers_of(model: Any) -> tuple[list[Any], bool]:
    """Return a module's layers, and whether they form a chain, each the input of the next one.

    Those of a `Sequential`; of any other module those of its one list of layers, such as an encoder's.
    Raises TypeError where there is no such list.
    """
    from torch import nn

    if isinstance(model, nn.Sequential):
        return list(model), True
    lists = [child for child in model.children() if isinstance(child, nn.ModuleList)]
    if len(lists) != 1:
        raise TypeError(f"a {type(model).__name__} has no one list of layers")
    return list(lists[0]), False


def check_runs(runs: Sequence[Run], count: int) -> None:
    """Raise ValueError unless the runs cover `count` layers, one after another."""
    ends = [0, *(run.last for run in runs)]
    if [run.first for run in runs] != ends[:-1] or ends[-1] != count:
        raise ValueError(f"runs {[tuple(run) for run in runs]} do not cover {count} layers in order")


def compute_in_runs(model: Any, runs: Sequence[Run], offloading: Callable[[], AbstractContextManager[Any]]) -> None:
    """Make a module compute so. Its modules, parameters and their names stay; so do its numbers.

    `offloading()` surrounds what is offloaded. Without gradients it computes as ever.
    """
    import torch

    layers, chained = layers_of(model)
    check_runs(runs, len(layers))
    # Not within the first step: its import takes memory that a budget counts.
    from torch.utils.checkpoint import checkpoint

    def recompute(function: Any, modules: list[Any], *inputs: Any) -> Any:
        return checkpoint(
            function, *inputs, use_reentrant=False, context_fn=lambda: (nullcontext(), _frozen_statistics(modules))
        )

    def offload(function: Any, modules: list[Any], *inputs: Any) -> Any:
        with offloading():
            return function(*inputs)

    def keep(function: Any, modules: list[Any], *inputs: Any) -> Any:
        return function(*inputs)

    ways = {"recompute": recompute, "offload": offload, "keep": keep}
    steps = []
    for run in runs:
        inside = layers[run.first : run.last]
        if chained:
            steps.append(partial(ways[run.action], partial(_chain, inside), inside))
            continue
        for layer in inside:
            _replace(layer, partial(ways[run.action], layer.forward, [layer]))
    if chained:

        def forward(x: Any) -> Any:
            if not torch.is_grad_enabled():
                return _chain(layers, x)
            for step in steps:
                x = step(x)
            return x

        model.forward = forward


def _chain(layers: list[Any], x: Any) -> Any:
    for layer in layers:
        x = layer(x)
    return x


def _replace(layer: Any, way: Callable[..., Any]) -> None:
    import torch

    plain = layer.forward

    def forward(*inputs: Any) -> Any:
        return way(*inputs) if torch.is_grad_enabled() else plain(*inputs)

    layer.forward = forward


@contextmanager
def _frozen_statistics(modules: list[Any]) -> Iterator[None]:
    """Let batch norms count a batch that they have counted already in copies of their statistics."""
    from torch.nn.modules.batchnorm import _BatchNorm

    norms = [module for m in modules for module in m.modules() if isinstance(module, _BatchNorm)]
    kept = [dict(norm._buffers) for norm in norms]
    for norm, buffers in zip(norms, kept, strict=True):
        norm._buffers.update({n: None if b is None else b.clone() for n, b in buffers.items()})
    try:
        yield
    finally:
        for norm, buffers in zip(norms, kept, strict=True):
            norm._buffers.update(buffers)
