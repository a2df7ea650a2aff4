"""Which rows of images a rank holds, which it needs, and who sends what to whom: whole numbers only."""

from __future__ import annotations

from dataclasses import dataclass

from transect.training.layers import (
    BatchNorm2d,
    Conv2d,
    GlobalAveragePool,
    Layer,
    MaxPool2d,
    ReLU,
    Shape,
    Sigmoid,
    inner,
    shapes,
)
from transect.training.layout import Layout

# From a first row to before a last one.
Rows = tuple[int, int]


def rows_of(height: int, parts: int) -> list[Rows]:
    """Return what each rank holds; the first have one row more where they cannot have the same.

    >>> rows_of(8, 3)
    [(0, 3), (3, 6), (6, 8)]
    """
    return [(cut.start, cut.stop) for cut in Layout(1, 1, parts).micro(height)]


def _both(a: Rows, b: Rows) -> Rows:
    first = max(a[0], b[0])
    return first, max(first, min(a[1], b[1]))


@dataclass(frozen=True, slots=True)
class Halo:
    """Rows `local` of an image are on this rank, rows `wanted` are to be; `above` and `below` lie outside of it.

    `sends` and `receives` are rows with the number of the rank they go to or come from.
    """

    local: Rows
    wanted: Rows
    above: int
    below: int
    sends: tuple[tuple[int, Rows], ...]
    receives: tuple[tuple[int, Rows], ...]

    @classmethod
    def of_windows(cls, height: int, kernel: int, padding: int, stride: int, parts: int, part: int) -> Halo:
        """Return what a layer needs whose windows give rows that are divided as its input is."""
        after = (height + 2 * padding - kernel) // stride + 1
        asked = [
            (first * stride - padding, (last - 1) * stride - padding + kernel) for first, last in rows_of(after, parts)
        ]
        return cls._of(height, asked, part)

    @classmethod
    def of_all(cls, height: int, parts: int, part: int) -> Halo:
        """Return what it takes that everybody has all rows."""
        return cls._of(height, [(0, height)] * parts, part)

    @classmethod
    def _of(cls, height: int, asked: list[Rows], part: int) -> Halo:
        held = rows_of(height, len(asked))
        wanted = [(max(0, first), min(height, last)) for first, last in asked]
        others = [number for number in range(len(asked)) if number != part]
        sends = ((number, _both(held[part], wanted[number])) for number in others)
        receives = ((number, _both(held[number], wanted[part])) for number in others)
        first, last = asked[part]
        return cls(
            local=held[part],
            wanted=wanted[part],
            above=max(0, -first),
            below=max(0, last - height),
            sends=tuple(transfer for transfer in sends if transfer[1][0] < transfer[1][1]),
            receives=tuple(transfer for transfer in receives if transfer[1][0] < transfer[1][1]),
        )

    @property
    def kept(self) -> Rows:
        return _both(self.local, self.wanted)


def _by_rows(layer: Layer, before: Shape, parts: int) -> bool:
    if chains := inner(layer).values():
        return all(_run(chain, before, parts) == len(chain) for chain in chains)
    match layer:
        case Conv2d() | MaxPool2d() | BatchNorm2d() | ReLU() | Sigmoid():
            after = shapes((layer,), before)[-1]
            return len(before) == len(after) == 3 and min(before[1], after[1]) >= parts
        case GlobalAveragePool():
            return before[1] >= parts
    return False


def _run(chain: tuple[Layer, ...], sample: Shape, parts: int) -> int:
    for number, layer in enumerate(chain):
        if not _by_rows(layer, sample, parts):
            return number
        sample = shapes((layer,), sample)[-1]
        if isinstance(layer, GlobalAveragePool):
            return number + 1
    return len(chain)


def layers_by_rows(layers: tuple[Layer, ...], sample: Shape, parts: int) -> int:
    """Return how many of the model's first layers several ranks can compute by rows."""
    return _run(layers, sample, parts) if len(sample) == 3 else 0
