"""The probe of conjugate gradients, as a benchmark."""

from __future__ import annotations

from typing import ClassVar

from transect.domain.axes.bench import BenchCell
from transect.hpc.benchmarks._options import OptionError, fraction, whole
from transect.hpc.benchmarks._probes import Probe
from transect.hpc.benchmarks.base import BENCHMARKS
from transect.hpc.probes.cg import LEAST, MULTIPLE, SIDE

_FRACTION, _SECONDS = 0.2, 10
_SIDES = ("nx", "ny", "nz")


@BENCHMARKS.register("cg-probe")
class CgProbe(Probe):
    """Runs `transect.hpc.probes.cg` on all ranks of the cell."""

    name = "cg-probe"
    environment = "probes-c"
    # mpi4py as the program ends every rank when one raises; else the others wait for ever.
    python = ("-m", "mpi4py", "-m", "transect.hpc.probes.cg")
    prefix_starts_ranks = True
    many_ranks = True
    threads = False
    options: ClassVar[dict[str, str]] = {
        "nx": f"points of each rank's grid along x, a multiple of {MULTIPLE} from {LEAST} on; default {SIDE}, more where "
        "the caches are larger, less where memory_fraction is",
        "ny": "along y; default as nx",
        "nz": "along z; default as nx",
        "memory_fraction": f"share of a node's memory that its ranks may take, where a side is not given; default {_FRACTION}",
        "seconds": f"how long it runs sets of 50 iterations, one at least; default {_SECONDS}",
    }
    smoke: ClassVar[dict[str, int | float | str]] = {"nx": 16, "ny": 16, "nz": 16, "seconds": 1}

    def flags(self, cell: BenchCell) -> list[str]:
        """Return its place and its size."""
        flags = ["--ranks", str(cell.ranks), "--ranks-per-node", str(cell.ranks_per_node)]
        for name in _SIDES:
            side = whole(cell, name, 0, 0)
            if side and (side < LEAST or side % MULTIPLE):
                raise OptionError(f"option {name}: expected a multiple of {MULTIPLE} from {LEAST} on, found {side}")
            flags += [f"--{name}", str(side)]
        flags += ["--memory-fraction", str(fraction(cell, "memory_fraction", _FRACTION))]
        return [*flags, "--seconds", str(whole(cell, "seconds", _SECONDS))]
