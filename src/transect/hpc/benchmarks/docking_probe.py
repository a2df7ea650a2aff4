"""The docking energy kernel, as a benchmark."""

from __future__ import annotations

import os
from pathlib import Path
from typing import ClassVar

from transect.hpc.benchmarks._options import OptionError, complaint, one_of, whole
from transect.hpc.benchmarks.base import BENCHMARKS, Benchmark
from transect.stages.bench.cell import BenchCell

__all__ = ["DockingProbe"]

_PROBES = Path(__file__).resolve().parents[1] / "probes"
_CODE = (
    "common.py", "docking.py", "_docking_deck.py", "_docking_energy.py", "_docking_numba.py",
    "_docking_numpy.py",
)  # fmt: skip
_IMPLEMENTATIONS = ("numba", "numpy")
_SYNTHETIC = "synthetic"
_FILES = ("ligand.in", "protein.in", "forcefield.in", "poses.in")
# numpy is some ten times slower: both take seconds on one core.
_POSES = {"numba": 16384, "numpy": 2048}
_ITERATIONS = 8


def _deck(cell: BenchCell) -> str:
    """Return `synthetic` or the deck's folder. Raises OptionError when that is no deck."""
    given = str(cell.option("deck", _SYNTHETIC))
    if given == _SYNTHETIC:
        return given
    folder = os.path.expandvars(given)
    if not folder.startswith("/"):
        raise OptionError(
            f"option deck: expected '{_SYNTHETIC}' or an absolute path, found {given!r}"
            + (", which no variable of the environment fills in" if "$" in folder else "")
        )
    missing = [name for name in _FILES if not (Path(folder) / name).is_file()]
    if missing:
        raise OptionError(f"option deck: {given} lacks {', '.join(missing)}")
    return folder


def _flags(cell: BenchCell) -> list[str]:
    implementation = one_of(cell, "implementation", _IMPLEMENTATIONS[0], _IMPLEMENTATIONS)
    poses = whole(cell, "poses", _POSES[implementation])
    flags = ["--implementation", implementation, "--deck", _deck(cell), "--poses", str(poses)]
    flags += ["--iterations", str(whole(cell, "iterations", _ITERATIONS))]
    return flags + (["--pin"] if one_of(cell, "pin", "none", ("none", "cores")) == "cores" else [])


@BENCHMARKS.register("docking-probe")
class DockingProbe(Benchmark):
    """Runs `transect.hpc.probes.docking`."""

    name = "docking-probe"
    parser = "docking-probe"
    environment = "docking"
    options: ClassVar[dict[str, str]] = {
        "implementation": f"{' or '.join(_IMPLEMENTATIONS)}; default {_IMPLEMENTATIONS[0]}",
        "deck": "absolute path of a deck of miniBUDE, in which $VARIABLES are filled in, or "
        f"{_SYNTHETIC}; default {_SYNTHETIC}",
        "poses": f"how many of the deck's poses; default {_POSES['numba']}, with numpy "
        f"{_POSES['numpy']}",
        "iterations": f"timed runs of the kernel; default {_ITERATIONS}",
        "pin": "cores: each thread on a CPU of its own; default none",
    }

    def supports(self, cell: BenchCell) -> str | None:
        """Return why not: it is one process, on the CPU, and its options have to hold."""
        if cell.device != "cpu":
            return f"its kernels run on the CPU, not on '{cell.device}'"
        if cell.ranks != 1:
            return f"it is one process with threads; {cell.ranks} ranks were asked for"
        return complaint(_flags, cell)

    def command(self, cell: BenchCell, folder: Path, program: str, mpiexec: list[str]) -> list[str]:
        """Return the argument list; writes nothing."""
        module = "transect.hpc.probes.docking"
        return [program, "-m", module, "--threads", str(cell.threads), *_flags(cell)]

    def logs(self, folder: Path) -> list[Path]:
        """Return the kept standard output."""
        return [folder / "output.log"]

    def files(self, cell: BenchCell) -> list[Path]:
        """Return the deck's folder."""
        given = str(cell.option("deck", _SYNTHETIC))
        return [] if given == _SYNTHETIC else [Path(os.path.expandvars(given))]

    def code_files(self) -> list[Path]:
        """Return the probe and this file: the probe imports numpy, so it is not imported here."""
        return [Path(__file__), *(_PROBES / name for name in _CODE)]
