"""miniBUDE, the docking mini-app of the University of Bristol, where a system has it."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from transect.domain.axes.bench import BenchCell
from transect.hpc.benchmarks._options import program_name, text, whole
from transect.hpc.benchmarks.base import BENCHMARKS, Benchmark

# Version 2 names a program for each programming model, version 1 all of them `bude`.
_NAMES = ("omp-bude", "bude", "minibude")
_ITERATIONS = 8


def _deck(cell: BenchCell, program: str) -> list[str]:
    """Name the input deck: without it, miniBUDE looks for `../data/bm1` from where it runs."""
    given = str(cell.option("deck", ""))
    if given:
        return ["--deck", given]
    here = Path(program).resolve().parent
    for folder in (here, here.parent) if Path(program).is_absolute() else ():
        if (folder / "data" / "bm1").is_dir():
            return ["--deck", str(folder / "data" / "bm1")]
    return []


@BENCHMARKS.register("minibude")
class MiniBude(Benchmark):
    """miniBUDE on the threads of one process, on the CPU."""

    name = "minibude"
    program = _NAMES[0]
    options: ClassVar[dict[str, str]] = {
        "deck": "absolute path of an input deck; default: data/bm1 beside the program or one folder up",
        "iterations": f"timed runs of the kernel; default {_ITERATIONS}",
        "poses": "how many of the deck's poses; default 0: all",
        "ppwi": "poses per work item, a list such as 1,2,4 or all; default: the program's own",
        "program": f"its name or path, where it goes by another; default: {' or '.join(_NAMES)}",
    }

    def programs(self, cell: BenchCell) -> tuple[str, ...]:
        """Return the names that its versions give it."""
        return (program_name(cell, _NAMES[0]),) if cell.option("program", "") else _NAMES

    def flags(self, cell: BenchCell) -> list[str]:
        """Return its options."""
        program_name(cell, _NAMES[0])
        # The short names are those that versions 1 and 2 share.
        flags = ["-i", str(whole(cell, "iterations", _ITERATIONS))]
        if poses := whole(cell, "poses", 0, 0):
            flags += ["-n", str(poses)]
        if cell.option("ppwi", ""):
            flags += ["-p", text(cell, "ppwi", "", r"all|\d+(,\d+)*", "e.g. 4, or 1,2,4, or all")]
        return flags

    def supports(self, cell: BenchCell) -> str | None:
        """Return why not: also a deck that is no absolute path."""
        deck = str(cell.option("deck", "/"))
        if not deck.startswith("/"):
            return f"option deck: expected an absolute path, found {deck!r}"
        return super().supports(cell)

    def command(self, cell: BenchCell, folder: Path, program: str, mpiexec: list[str]) -> list[str]:
        """Return the argument list: the launch layer sets OMP_NUM_THREADS."""
        return [program, *self.flags(cell), *_deck(cell, program)]

    def files(self, cell: BenchCell) -> list[Path]:
        """Return the deck's folder, where the cell names one; the program's own comes with it."""
        given = str(cell.option("deck", ""))
        return [Path(given)] if given else []
