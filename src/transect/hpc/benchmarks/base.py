"""What transect can run itself: the interface and the registry."""

from __future__ import annotations

import importlib.util
import inspect
import shutil
from abc import ABC
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from transect.domain.axes.bench import BenchCell
from transect.domain.mpi_libraries import OWN
from transect.domain.record import Cause
from transect.domain.registry import Plugin, Registry
from transect.hpc.benchmarks._options import complaint

if TYPE_CHECKING:
    from transect.hpc.base import Run

# What logs call the number of ranks.
_RANKS = ("ranks", "processes", "tasks", "CommWorldProcs")


class Benchmark(Plugin, ABC):
    """What a cell of stage `bench` can run. Registered with `@BENCHMARKS.register(name)`.

    Required are `name`, and `program`, `python` or another `command`. The caller makes `folder`, runs `command` with it as the working directory, keeps standard
    output and error in `folder/output.log`, and ingests `logs`. `parser` is the one that is
    expected to read them.
    """

    # The name by which it is registered.
    name: ClassVar[str]
    # The parser that reads what it prints; one of the same name unless it says another.
    parser: ClassVar[str]
    # The environment whose Python runs it, or None for a program of the system.
    environment: ClassVar[str | None] = None
    # What that Python runs: `-m`, and a module of transect.
    python: ClassVar[tuple[str, ...]] = ()
    # On which devices it runs.
    devices: ClassVar[tuple[str, ...]] = ("cpu",)
    # Whether it takes several ranks; else it is one process.
    many_ranks: ClassVar[bool] = False
    # How many ranks it needs.
    least_ranks: ClassVar[int] = 1
    # Whether a rank may have several threads.
    threads: ClassVar[bool] = True
    # Whether `mpiexec` of `command` is to be a launcher that starts all ranks of the cell on all
    # its nodes already, e.g. `["srun", "--nodes=2", "--ntasks=2", "--mpi=pmix"]`.
    prefix_starts_ranks: ClassVar[bool] = False
    # What those ranks need to find each other, see `transect.launch.rendezvous`.
    rendezvous: ClassVar[str] = "mpi"
    # The program that has to be on PATH, unless the system file names modules or an image for it.
    program: ClassVar[str | None] = None
    # By which metric it is compared turn by turn (`measure/turns.py`); "": it takes no turns with others.
    turns_by: ClassVar[str] = ""
    # What `options` of a study may name, each with what it means and its default.
    options: ClassVar[dict[str, str]] = {}
    # The options that `size: smoke` of a study stands for: a run of seconds, which shows that it works.
    smoke: ClassVar[dict[str, int | float | str]] = {}
    # The command that brings a program that is not here, e.g. `apt-get install hpcc`; "": none is known.
    install: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        """Name the parser."""
        super().__init_subclass__()
        if "name" in vars(cls) and not hasattr(cls, "parser"):
            cls.parser = cls.name

    def programs(self, cell: BenchCell) -> tuple[str, ...]:
        """Return the names that the cell's program may have, the likeliest first; () for none.

        The same on every machine. Modules or an image are taken to bring the first.
        """
        return (self.program,) if self.program else ()

    def find(self, cell: BenchCell) -> str | None:
        """Return the path of the first of `programs` that this machine has, or None."""
        return next((path for name in self.programs(cell) if (path := shutil.which(name))), None)

    def install_for(self, cell: BenchCell) -> str:
        """Return the command that brings the program of a cell: `install`, unless devices have programs of their own."""
        return self.install

    def supports(self, cell: BenchCell) -> str | None:
        """Return why the cell cannot be run here, or None when it can.

        It is called on machines without the program too: a missing program is reported elsewhere.
        """
        if cell.device not in self.devices:
            return f"{self.name} runs on {' or '.join(self.devices)}, not on '{cell.device}'"
        if not self.many_ranks and cell.ranks != 1:
            return f"{self.name} is one process; {cell.ranks} ranks were asked for"
        if cell.ranks < self.least_ranks:
            return f"{self.name} runs on {self.least_ranks} or more ranks: one has no partner"
        if not self.threads and cell.threads != 1:
            return f"{self.name} runs one thread per rank; ask for {cell.threads} ranks instead"
        return complaint(self.flags, cell)

    def flags(self, cell: BenchCell) -> list[str]:
        """Return the program's arguments. Raises OptionError for an option that it cannot take."""
        return []

    def command(self, cell: BenchCell, folder: Path, program: str, mpiexec: list[str]) -> list[str]:
        """Return the argument list; may write input files into `folder`, which exists.

        `program` is what `find` returned, or the first of `programs` where modules or an image
        bring it; for a benchmark without a program the Python of its environment.
        `mpiexec` is the launcher with its options but without a number of ranks, e.g.
        `["mpiexec", "--oversubscribe"]`; with it where `prefix_starts_ranks` is set.
        """
        return [*(mpiexec if self.prefix_starts_ranks else ()), program, *self.python, *self.flags(cell)]

    def logs(self, folder: Path) -> list[Path]:
        """Return the outputs to ingest, after the run: the kept standard output."""
        return [folder / "output.log"]

    def iterations(self, run: Run) -> list[float]:
        """Return the metric `turns_by` of each iteration of a run, in order."""
        return []

    def by_launcher(self, cell: BenchCell) -> bool:
        """Tell whether the system's launcher starts all ranks of a cell; else `command` does, see `prefix_starts_ranks`."""
        return self.prefix_starts_ranks

    def contradicts(self, cell: BenchCell, run: Run) -> str | None:
        """Return what an `ok` run's own log says that is not the cell, such as another number of ranks, or None.

        A cell with such a run is `wrong-result`: ranks that did not find each other have results that look right.
        """
        told = {name: run.parameters[name] for name in _RANKS if name in run.parameters} if self.many_ranks else {}
        wrong = [f"{value} {name}" for name, value in told.items() if value != cell.ranks]
        return f"the cell has {cell.ranks} ranks, its log tells of {wrong[0]}" if wrong else None

    def environment_of(self, cell: BenchCell) -> str | None:
        """Return the environment of a cell, where its options choose among several."""
        return self.environment

    def mpi(self, cell: BenchCell) -> str:
        """Return the MPI library (`domain/mpi_libraries.py`) that its mpi4py is to load; `own`: whichever it finds."""
        return OWN

    def plugins(self, cell: BenchCell) -> list[tuple[Registry[Any], str]]:
        """Return the plug-ins that a cell's options name: their `supports` is asked as well."""
        return []

    def verdict(self, folder: Path, code: int) -> tuple[Cause, str] | None:
        """Return what an exit code other than 0 means by the log, or None: it crashed.

        `Cause.MISSING_DEPENDENCY` skips the cell; with any other cause it has failed.
        """
        return None

    def files(self, cell: BenchCell) -> list[Path]:
        """Return files and folders from outside that are read: the cell runs again when one changes."""
        return []

    def code_files(self) -> list[Path]:
        """Return the source files that the run depends on: part of the cell's fingerprint. What they import follows."""
        spec = importlib.util.find_spec(self.python[-1]) if self.python else None
        return [Path(inspect.getfile(type(self))), *([Path(spec.origin)] if spec and spec.origin else [])]


BENCHMARKS: Registry[Benchmark] = Registry("benchmark", "transect.hpc.benchmarks", Benchmark)
