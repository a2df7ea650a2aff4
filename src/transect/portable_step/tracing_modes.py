"""How torch is set while it traces: it answers as in an export, chooses nothing by the batch, and computes no length twice."""

from __future__ import annotations

import copy
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from transect.portable_step.cumulative import counting_batch_norms
from transect.portable_step.scalars import symbolic_functions


@contextmanager
def quiet() -> Iterator[None]:
    """Keep back what torch says while it traces and translates, and keep it from choosing kernels by the batch."""
    with _silent(), _plain_kernels():
        yield


@contextmanager
def traced() -> Iterator[None]:
    """What holds for a trace alone."""
    with _known_as_export(), _without_layouts(), _bare_wrappers(), _sums_kept():
        yield


@contextmanager
def _known_as_export() -> Iterator[None]:
    """Answer that this is an export to code that asks, and so leaves out what depends on values.

    `torch.compiler.is_compiling()` and `is_exporting()` are what libraries ask before they look into a
    mask for a faster kernel. torch's own transformer layers do not ask, and answers alike; nor does
    `affine_grid`, which looks for a length of 0.
    """
    import torch
    from torch._export.utils import _compiling_state_context
    from torch.nn import functional
    from torch.nn.modules import transformer

    detect, affine_grid = transformer._detect_is_causal_mask, functional.affine_grid
    transformer._detect_is_causal_mask = lambda mask, is_causal=None, size=None: is_causal is True
    functional.affine_grid = lambda theta, size, align_corners=None: torch.affine_grid_generator(
        theta, size, bool(align_corners)
    )
    try:
        with _compiling_state_context(), symbolic_functions(), counting_batch_norms():
            yield
    finally:
        transformer._detect_is_causal_mask, functional.affine_grid = detect, affine_grid


@contextmanager
def _without_layouts() -> Iterator[None]:
    """Keep torch from asking whether lengths are 1 for how results lie in memory, which a graph does not tell."""
    from torch.fx.experimental import _config, proxy_tensor

    noted = proxy_tensor._extract_tensor_metadata
    proxy_tensor._extract_tensor_metadata = lambda *_: None
    try:
        with _config.patch(backed_size_oblivious=True):
            yield
    finally:
        proxy_tensor._extract_tensor_metadata = noted


@contextmanager
def _bare_wrappers() -> Iterator[None]:
    """Keep the arithmetic by which torch wraps a tensor, such as its bytes, out of the trace: a third of its time.

    Nothing in a graph reads it.
    """
    from torch._subclasses.functional_tensor import FunctionalTensor
    from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing

    before, wrap = vars(FunctionalTensor)["__new__"], FunctionalTensor.__new__

    def wrap_untraced(cls: Any, elem: Any, mode: Any) -> Any:
        with disable_proxy_modes_tracing():
            return wrap(cls, elem, mode)

    FunctionalTensor.__new__ = wrap_untraced
    try:
        yield
    finally:
        FunctionalTensor.__new__ = before


@contextmanager
def _sums_kept() -> Iterator[None]:
    """Let torch compute with the same lengths once: for an encoder 250 different sums and products of 70,000.

    What is traced itself is left alone.
    """
    from torch.fx.experimental.proxy_tensor import get_proxy_mode
    from torch.fx.experimental.sym_node import SymNode

    before = {name: vars(SymNode)[name] for name in ("_add", "_sub", "_mul", "_eq", "_ne", "_ge", "_gt", "_le", "_lt")}
    kept: dict[Any, Any] = {}

    def once(name: str, compute: Callable[..., Any]) -> Callable[..., Any]:
        def known(self: Any, other: Any) -> Any:
            if get_proxy_mode():
                return compute(self, other)
            key = name, self._expr, other._expr, self.pytype, other.pytype
            if key not in kept:
                kept[key] = compute(self, other)
            # Another object: what a trace knows of one, such as whose stride it is, does not hold for all.
            return copy.copy(kept[key])

        return known

    for name, compute in before.items():
        setattr(SymNode, name, once(name, compute))
    try:
        yield
    finally:
        for name, compute in before.items():
            setattr(SymNode, name, compute)


@contextmanager
def _plain_kernels() -> Iterator[None]:
    """Keep torch from choosing kernels by the batch: a trace would hold for such a batch only."""
    import torch

    with torch.backends.nnpack.flags(enabled=False), torch.backends.mkldnn.flags(enabled=False):
        yield


@contextmanager
def _silent() -> Iterator[None]:
    """Keep back what torch says while it traces and exports: what matters of it is raised."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
