"""The probe of dense linear equations, as a benchmark."""

from __future__ import annotations

from typing import ClassVar

from transect.domain.axes.bench import BenchCell
from transect.hpc.benchmarks._options import fraction, whole
from transect.hpc.benchmarks._probes import Probe
from transect.hpc.benchmarks.base import BENCHMARKS

_FRACTION, _NB, _SECONDS, _RUNS = 0.2, 256, 18, 3


@BENCHMARKS.register("lu-probe")
class LuProbe(Probe):
    """Runs `transect.hpc.probes.lu` on all ranks of the cell."""

    name = "lu-probe"
    environment = "base"
    # mpi4py as the program ends every rank when one raises; else the others wait for ever.
    python = ("-m", "mpi4py", "-m", "transect.hpc.probes.lu")
    prefix_starts_ranks = True
    many_ranks = True
    options: ClassVar[dict[str, str]] = {
        "N": "order of the matrix; default: as large as memory_fraction and seconds allow",
        "memory_fraction": "share of the memory of all nodes that the matrix may take, when N is not given; "
        f"default {_FRACTION}",
        "seconds": f"budget of all runs, when N is not given; default {_SECONDS}",
        "NB": f"block size; default {_NB}",
        "runs": f"how often it is solved; default {_RUNS}",
    }
    smoke: ClassVar[dict[str, int | float | str]] = {"N": 512, "NB": 64, "runs": 2}

    def flags(self, cell: BenchCell) -> list[str]:
        """Return its place and its size."""
        flags = ["--ranks", str(cell.ranks), "--nodes", str(cell.nodes), "--threads", str(cell.threads)]
        flags += ["--order", str(whole(cell, "N", 0, 0)), "--block", str(whole(cell, "NB", _NB))]
        flags += ["--memory-fraction", str(fraction(cell, "memory_fraction", _FRACTION))]
        return [*flags, "--seconds", str(whole(cell, "seconds", _SECONDS)), "--runs", str(whole(cell, "runs", _RUNS))]
