"""The axes of a benchmark cell."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from transect.domain.cell import Axis, Cell

__all__ = ["BenchCell", "Options"]

# Pairs of name and value, sorted by name.
Options = tuple[tuple[str, int | float | str], ...]


def _option_words(options: Options) -> str:
    return ".".join(f"{name}{value}" for name, value in options)


class BenchCell(Cell):
    """One benchmark with one problem."""

    always: ClassVar[tuple[str, ...]] = ("threads",)

    stage: Literal["bench"] = "bench"
    benchmark: Annotated[str, Axis(place=5, name=True)]
    options: Annotated[Options, Axis(place=170, word=_option_words, label=_option_words)] = ()

    def option(self, name: str, default: int | float | str) -> int | float | str:
        """Return an option of the benchmark, or its default."""
        return dict(self.options).get(name, default)
