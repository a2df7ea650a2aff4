"""HPL, the High-Performance Linpack, where a system has it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import ClassVar

from transect.domain.axes.bench import BenchCell
from transect.domain.files import write_atomic
from transect.hpc.benchmarks._linpack import linpack_input, near_square
from transect.hpc.benchmarks._options import OptionError, fraction, whole
from transect.hpc.benchmarks._sizes import cells_memory
from transect.hpc.benchmarks.base import BENCHMARKS, Benchmark

_NB = 192
_FRACTION = 0.2
_BYTES = 8


def order_for(memory: int, share: float, nb: int) -> int:
    """Return the largest N, a multiple of `nb`, whose matrix of doubles fits in the share.

    At least `nb`, however little memory there is.
    """
    return max(nb, math.isqrt(int(memory * share) // _BYTES) // nb * nb)


def grid(cell: BenchCell) -> tuple[int, int]:
    """Return (P, Q), near-square unless option P says otherwise. Raises OptionError."""
    p, q = near_square(cell.ranks)
    given = whole(cell, "P", p)
    if given == p:
        return p, q
    if cell.ranks % given:
        raise OptionError(f"option P: expected a divisor of the {cell.ranks} ranks, found {given}")
    return given, cell.ranks // given


@BENCHMARKS.register("hpl")
class Hpl(Benchmark):
    """High-Performance Linpack; its input file and the size of its problem are made here."""

    name = "hpl"
    prefix_starts_ranks = True
    many_ranks = True
    program = "xhpl"
    options: ClassVar[dict[str, str]] = {
        "N": "order of the matrix; default: from memory_fraction",
        "memory_fraction": "share of the memory of all nodes that the matrix takes, when N is not given and "
        "the cell uses all cores, of fewer cores less; rounded down to whole blocks; "
        f"default {_FRACTION}",
        "NB": f"block size; default {_NB}",
        "P": "process rows, Q follows; default: near-square, P <= Q",
    }
    smoke: ClassVar[dict[str, int | float | str]] = {"N": 1920, "NB": 128}
    install = "spack install hpl"

    def flags(self, cell: BenchCell) -> list[str]:
        """Return none, of options that make sense: xhpl takes no arguments."""
        grid(cell)
        whole(cell, "NB", _NB)
        whole(cell, "N", 1)
        fraction(cell, "memory_fraction", _FRACTION)
        return []

    def command(self, cell: BenchCell, folder: Path, program: str, mpiexec: list[str]) -> list[str]:
        """Write `HPL.dat` and return argv: xhpl takes no arguments."""
        p, q = grid(cell)
        nb = whole(cell, "NB", _NB)
        share = fraction(cell, "memory_fraction", _FRACTION)
        n = whole(cell, "N", order_for(cells_memory(cell) * cell.nodes, share, nb))
        write_atomic(folder / "HPL.dat", linpack_input(n=n, nb=nb, p=p, q=q, device=6))
        return [*mpiexec, program]
