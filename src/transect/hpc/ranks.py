"""Keeps apart what ranks, or programs, print into one file with labels in front of their lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from transect.hpc.base import Run
from transect.hpc.block import Block
from transect.hpc.text import Line

MOST_OPEN = 512

Output = TypeVar("Output")


def _never(text: str) -> bool:
    return False


def per_rank(
    block: Block,
    new: Callable[[int], Output],
    *,
    read: Callable[[Output, Line, str], Iterable[Run] | None],
    close: Callable[[Output, bool], Iterable[Run]],
    begins: Callable[[Output, str], bool] = lambda output, text: False,
    over: Callable[[Output], bool] = lambda output: False,
    stops: Callable[[str], object] = _never,
    most: int = MOST_OPEN,
) -> Iterator[Run]:
    """Read a block with an output for each rank, and yield the runs of all.

    `new` makes the output that begins at a line, `begins` tells whether a line belongs to the next output of
    its rank, `read` takes a line in and may yield runs, `over` tells that an output is whole, `close` makes its
    runs; it is told whether no other output is open. A line that `stops` knows, from a rank that has printed
    nothing else, says why the first one stopped.
    """
    outputs: dict[int | None, Output] = {}
    for line in block:
        text, rank = line.text.strip(), line.rank
        if rank not in outputs and outputs and stops(text):
            rank = next(iter(outputs))
        output = outputs.get(rank)
        if output is None:
            if len(outputs) >= most:
                yield from close(outputs.pop(next(iter(outputs))), False)
            output = outputs[rank] = new(line.number)
        elif begins(output, text):
            yield from close(output, False)
            output = outputs[rank] = new(line.number)
        yield from read(output, line, text) or ()
        if over(output):
            yield from close(outputs.pop(rank), False)
    for output in outputs.values():
        yield from close(output, len(outputs) == 1)
