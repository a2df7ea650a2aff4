"""A cell: one point of a grid, with an id that a person can read and a machine can trust."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from transect.domain.files import canonical_json, digest

__all__ = ["CELL_PATTERN", "Cell"]

# Used as Snakemake's wildcard constraint as well.
CELL_PATTERN = r"[A-Za-z0-9_.+-]+~[0-9a-f]{8}"

_READABLE = (
    "benchmark", "source", "workload", "framework", "strategy", "exporter", "runtime", "provider",
)  # fmt: skip


class Cell(BaseModel):
    """One point of a grid. Frozen; every axis is a keyword.

    An axis at its default is left out of the hash, so an axis that is added later
    with a default keeps the ids of old cells.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    stage: str
    workload: str | None = None
    framework: str | None = None
    strategy: str | None = None
    exporter: str | None = None
    runtime: str | None = None
    provider: str | None = None
    benchmark: str | None = None
    source: str | None = None
    device: str = "cpu"
    nodes: int = Field(default=1, ge=1)
    ranks_per_node: int = Field(default=1, ge=1)
    threads: int = Field(default=1, ge=1)
    batch: int | None = Field(default=None, ge=1)
    precision: str = "fp32"
    network: str | None = None
    # What the gradients of ranks become: their mean or, as in one published study, their sum.
    reduce: Literal["mean", "sum"] = "mean"
    # How the learning rate follows the global batch: not at all, or in proportion.
    learning_rate_rule: Literal["none", "linear"] = "none"
    # Where batches come from: the data stage's arrays, image files, or random numbers.
    input: Literal["stored", "files", "synthetic"] = "stored"
    # Parts in which the reference cuts each batch, as ranks do.
    shards: int = Field(default=1, ge=1)
    # Pairs of name and value, sorted by name: a benchmark's problem.
    options: tuple[tuple[str, int | float | str], ...] = ()
    repeat: int = Field(default=0, ge=0)

    @property
    def ranks(self) -> int:
        """World size: nodes times ranks per node."""
        return self.nodes * self.ranks_per_node

    def axes(self) -> dict[str, Any]:
        """Return the axes that differ from their defaults."""
        return self.model_dump(exclude_defaults=True)

    @cached_property
    def id(self) -> str:
        """Readable id, `~`, and 8 hexadecimal digits of the hash of the non-default axes.

        >>> Cell(stage="train", workload="iris-mlp", framework="numpy", strategy="single",
        ...      batch=16).id
        'iris-mlp.numpy.single.n1x1.b16.fp32~9d0e5b5d'
        """
        parts = [value for axis in _READABLE if (value := getattr(self, axis))]
        if self.stage in ("train", "reference") or self.ranks > 1:
            parts.append(f"n{self.nodes}x{self.ranks_per_node}")
        if self.threads != 1 or self.stage in ("infer", "bench"):
            parts.append(f"t{self.threads}")
        if self.batch is not None:
            parts.append(f"b{self.batch}")
        if self.framework or self.runtime:
            parts.append(self.precision)
        if self.shards > 1:
            parts.append(f"s{self.shards}")
        parts += [
            word
            for word, plain in (
                (self.reduce, "mean"), (self.learning_rate_rule, "none"), (self.input, "stored"),
            )
            if word != plain
        ]  # fmt: skip
        parts += [f"{name}{value}" for name, value in self.options]
        if self.network:
            parts.append(self.network)
        if self.repeat:
            parts.append(f"r{self.repeat}")
        readable = re.sub(r"[^A-Za-z0-9_.+-]", "-", ".".join(parts)) or self.stage
        return f"{readable}~{digest([canonical_json(self.axes())])[:8]}"

    def option(self, name: str, default: int | float | str) -> int | float | str:
        """Return a benchmark option, or its default."""
        return dict(self.options).get(name, default)

    def without_repeat(self) -> Cell:
        """Return the same point with repeat 0: the key under which repeats are compared."""
        return self.model_copy(update={"repeat": 0})
