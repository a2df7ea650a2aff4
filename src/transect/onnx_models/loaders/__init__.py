"""Loaders: other frameworks that take an ONNX file for a model of their own. One file each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from transect.domain.registry import Plugin, Registry

__all__ = ["LOADERS", "Compute", "Loader"]

# From inputs by name, in the file's order, to outputs in the file's order.
Compute = Callable[[Mapping[str, np.ndarray]], Sequence[Any]]


class Loader(Plugin, ABC):
    """A library that makes a model of an ONNX file."""

    # The folder under `envs/` that it runs in.
    environment: str
    # How many rows it is given, None: all.
    rows: int | None = None
    # For types that its library does not have, or not by default, those that it gives in their place.
    stand_ins: ClassVar[Mapping[str, str]] = {}

    @abstractmethod
    def load(self, path: Path) -> Compute:
        """Make the framework's own model of a file. Raises whatever the framework raises."""


LOADERS: Registry[Loader] = Registry("loader", "transect.onnx_models.loaders", Loader)
