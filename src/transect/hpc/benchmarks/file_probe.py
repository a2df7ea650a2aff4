"""The probe of files, as a benchmark."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from transect.domain.axes.bench import BenchCell
from transect.hpc.benchmarks._files import FOLDER_MEANING, OfFiles, in_folder, target_folder
from transect.hpc.benchmarks._options import OptionError, size_bytes, whole
from transect.hpc.benchmarks._probes import Probe
from transect.hpc.benchmarks.base import BENCHMARKS
from transect.hpc.probes.files import LEAST_BYTES

_LIMIT, _SECONDS = "1g", 40


@BENCHMARKS.register("file-probe")
class FileProbe(OfFiles, Probe):
    """Runs `transect.hpc.probes.files` on all ranks of the cell."""

    name = "file-probe"
    environment = "base"
    # mpi4py as the program ends every rank when one raises; else the others wait for ever.
    python = ("-m", "mpi4py", "-m", "transect.hpc.probes.files")
    prefix_starts_ranks = True
    many_ranks = True
    threads = False
    options: ClassVar[dict[str, str]] = {
        "limit": f"most that each rank has on the disk at a time; default {_LIMIT}, 2m at least, and never more than a quarter of the free room",
        "seconds": f"budget over all phases, in whole seconds; default {_SECONDS}",
        "folder": FOLDER_MEANING,
    }
    smoke: ClassVar[dict[str, int | float | str]] = {"limit": "16m", "seconds": 3}

    def flags(self, cell: BenchCell) -> list[str]:
        """Return its ranks, its room and its time."""
        given, limit = size_bytes(cell, "limit", _LIMIT)
        if limit < LEAST_BYTES:
            raise OptionError(f"option limit: expected {LEAST_BYTES >> 20}m or more, found '{given}'")
        target_folder(cell)
        seconds = whole(cell, "seconds", _SECONDS)
        return ["--ranks", str(cell.ranks), "--limit", str(limit), "--seconds", str(seconds)]

    def command(self, cell: BenchCell, folder: Path, program: str, mpiexec: list[str]) -> list[str]:
        """Return the argument list; the probe removes its files itself."""
        return [*mpiexec, *in_folder(cell, folder, [program, *self.python, *self.flags(cell)], "--folder")]
