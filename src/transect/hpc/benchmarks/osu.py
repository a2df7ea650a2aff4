"""The OSU Micro-Benchmarks of MPI, where a system has them: a program for each test."""

from __future__ import annotations

import re
from pathlib import Path
from typing import ClassVar

from transect.domain.axes.bench import BenchCell
from transect.hpc.benchmarks._options import text, whole
from transect.hpc.benchmarks.base import BENCHMARKS, Benchmark

_TEST = "osu_allreduce"
# Where packages that keep PATH clean put them: pt2pt, collective, one-sided, startup.
_PLACES = "/usr/libexec/osu-micro-benchmarks/mpi"
# One sender and one receiver: the tests of pt2pt and one-sided, and their variants.
_PAIR = re.compile(
    r"osu_(?:latency|bw|bibw)(?:_m[tp]|_persistent)?"
    r"|osu_(?:put|get|acc|cas|fop|get_acc)_(?:latency|bw|bibw)"
)
_PAIRS = re.compile(r"osu_(?:mbw_mr|multi_lat)")


def _test(cell: BenchCell) -> str:
    return text(cell, "test", _TEST, r"osu_[a-z0-9_]+", "the name of a test, e.g. osu_latency")


@BENCHMARKS.register("osu")
class Osu(Benchmark):
    """One test of the OSU Micro-Benchmarks, over message sizes."""

    name = "osu"
    prefix_starts_ranks = True
    many_ranks = True
    least_ranks = 2
    threads = False
    program = _TEST
    options: ClassVar[dict[str, str]] = {
        "test": f"the program, e.g. osu_latency, osu_bw, osu_bcast; default {_TEST}",
        "max_bytes": "largest message; default 0: the test's own",
        "iterations": "for each size; default 0: the test's own",
    }
    smoke: ClassVar[dict[str, int | float | str]] = {"max_bytes": 65536, "iterations": 100}
    install = "spack install osu-micro-benchmarks"

    def programs(self, cell: BenchCell) -> tuple[str, ...]:
        """Return the test's name."""
        return (str(cell.option("test", _TEST)),)

    def find(self, cell: BenchCell) -> str | None:
        """Look on PATH, then in the folders of packages that do not put the tests there."""
        program = super().find(cell)
        if program is None:
            name = self.programs(cell)[0]
            program = next(map(str, sorted(Path(_PLACES).glob(f"*/{name}"))), None)
        return program

    def flags(self, cell: BenchCell) -> list[str]:
        """Return its options."""
        _test(cell)
        flags = []
        if largest := whole(cell, "max_bytes", 0, 0):
            flags += ["-m", str(largest)]
        if iterations := whole(cell, "iterations", 0, 0):
            flags += ["-i", str(iterations)]
        return flags

    def supports(self, cell: BenchCell) -> str | None:
        """Return why not: also a number of ranks that the test cannot use."""
        if (reason := super().supports(cell)) is not None:
            return reason
        test = _test(cell)
        if _PAIR.fullmatch(test) and cell.ranks != 2:
            return f"{test} runs on exactly 2 ranks, not on {cell.ranks}"
        if _PAIRS.fullmatch(test) and cell.ranks % 2:
            return f"{test} runs on pairs of ranks, not on {cell.ranks}"
        return None
