"""miniBUDE, the docking mini-app of the University of Bristol, where a system has it."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from transect.domain.axes.bench import BenchCell
from transect.domain.errors import MissingDependency
from transect.hpc.base import Run
from transect.hpc.benchmarks._decks import FOLDER, NAMED, PROGRAMS, named_deck
from transect.hpc.benchmarks._devices import not_on_gpu
from transect.hpc.benchmarks._options import OptionError, program_name, text, whole
from transect.hpc.benchmarks.base import BENCHMARKS, Benchmark

_NAMES = {"cpu": ("omp-bude", "bude", "minibude"), "cuda": ("cuda-bude", "bude", "minibude")}
_ITERATIONS = 8


def _deck(cell: BenchCell, program: str) -> list[str]:
    """Name the input deck: without it, miniBUDE looks for `../data/bm1` from where it runs.

    Raises MissingDependency where the cell names a deck that is not here.
    """
    given = str(cell.option("deck", ""))
    if given.startswith("/"):
        return ["--deck", given]
    try:
        return ["--deck", str(named_deck(given or NAMED[0], (program, *PROGRAMS)))]
    except OptionError as error:
        if given:
            raise MissingDependency(str(error)) from None
        return []


@BENCHMARKS.register("minibude")
class MiniBude(Benchmark):
    """miniBUDE on the threads of one process, or on one GPU, whose name its log has to tell."""

    name = "minibude"
    program = _NAMES["cpu"][0]
    devices = ("cpu", "cuda")
    options: ClassVar[dict[str, str]] = {
        "deck": f"{' or '.join(NAMED)}, of ${FOLDER} or of data beside the program or one folder up, or the absolute path of "
        "an input deck; default bm1, of that data",
        "iterations": f"timed runs of the kernel; default {_ITERATIONS}",
        "poses": "how many of the deck's poses; default 0: all",
        "ppwi": "poses per work item, a list such as 1,2,4 or all; default: the program's own",
        "program": f"its name or path, where it goes by another; default: {' or '.join(_NAMES['cpu'])}, on a GPU cuda-bude",
    }
    smoke: ClassVar[dict[str, int | float | str]] = {"iterations": 2, "poses": 1024}
    # No package registry has it.
    install = (
        "git clone https://github.com/UoB-HPC/miniBUDE && cmake -S miniBUDE -B miniBUDE/build -DMODEL=omp && "
        "cmake --build miniBUDE/build && export PATH=$PWD/miniBUDE/build:$PATH"
    )

    def programs(self, cell: BenchCell) -> tuple[str, ...]:
        """Return the names that its versions give it."""
        return (program_name(cell, self.program),) if cell.option("program", "") else _NAMES[cell.device]

    def install_for(self, cell: BenchCell) -> str:
        """Return the command; the number of a GPU's architecture is 90 for an H100."""
        return self.install.replace("omp", "cuda -DCUDA_ARCH=sm_90", 1) if cell.device == "cuda" else self.install

    def flags(self, cell: BenchCell) -> list[str]:
        """Return its options."""
        program_name(cell, self.program)
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
        if not deck.startswith("/") and deck not in NAMED:
            return f"option deck: expected {', '.join(NAMED)} or an absolute path, found {deck!r}"
        return super().supports(cell)

    def command(self, cell: BenchCell, folder: Path, program: str, mpiexec: list[str]) -> list[str]:
        """Return the argument list: the launch layer sets OMP_NUM_THREADS."""
        return [program, *self.flags(cell), *_deck(cell, program)]

    def files(self, cell: BenchCell) -> list[Path]:
        """Return the deck's folder, but for one that comes with a program of another name or out of modules."""
        given = str(cell.option("deck", ""))
        if given.startswith("/"):
            return [Path(given)]
        try:
            return [named_deck(given or NAMED[0], (*self.programs(cell), *PROGRAMS))]
        except OptionError:  # it is looked for again where the cell runs
            return []

    def contradicts(self, cell: BenchCell, run: Run) -> str | None:
        """Return what says that it did not run on the GPU that was asked for."""
        return not_on_gpu(cell, run)
