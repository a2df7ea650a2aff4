"""Loaders: other frameworks that take an ONNX file for a model of their own. One file each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from transect.domain.registry import Registry

__all__ = ["LOADERS", "Compute", "Loader"]

# From inputs by name, in the file's order, to outputs in the file's order.
Compute = Callable[[Mapping[str, np.ndarray]], Sequence[Any]]


class Loader(ABC):
    """`environment`: the folder in `envs/`. `rows`: how many rows it is given, None: all.

    `stand_ins`: for types that its library does not have, or not by default, those that it gives in
    their place; empty where it has all.
    """

    environment: str
    rows: int | None = None
    stand_ins: ClassVar[Mapping[str, str]] = {}

    @abstractmethod
    def load(self, path: Path) -> Compute:
        """Make the framework's own model of a file. Raises whatever the framework raises."""


LOADERS: Registry[Loader] = Registry("loader", "transect.onnx_models.loaders")
