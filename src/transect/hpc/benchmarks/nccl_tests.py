"""nccl-tests, NVIDIA's benchmark of collectives between GPUs, where a system has it."""

from __future__ import annotations

from typing import ClassVar

from transect.domain.axes.bench import BenchCell
from transect.hpc.benchmarks._options import OptionError, size_bytes, text, whole
from transect.hpc.benchmarks.base import BENCHMARKS, Benchmark

_TEST = "all_reduce_perf"
_MIN_COUNT, _MAX_COUNT, _FACTOR = "8", "128m", 2


def _test(cell: BenchCell) -> str:
    expected = "the name of a test, e.g. all_gather_perf or all_reduce_perf_mpi"
    return text(cell, "test", _TEST, r"[a-z][a-z0-9_]*_perf(_mpi)?", expected)


@BENCHMARKS.register("nccl-tests")
class NcclTests(Benchmark):
    """One test of nccl-tests, built with MPI, over message sizes; one GPU for each rank."""

    name = "nccl-tests"
    devices = ("cuda",)
    prefix_starts_ranks = True
    many_ranks = True
    least_ranks = 2
    threads = False
    program = _TEST
    options: ClassVar[dict[str, str]] = {
        "test": f"the program, e.g. all_gather_perf, sendrecv_perf; default {_TEST}",
        "min_bytes": f"smallest message; default {_MIN_COUNT}",
        "max_bytes": f"largest message, e.g. 8g; default {_MAX_COUNT}",
        "factor": f"from one size to the next; default {_FACTOR}",
    }
    smoke: ClassVar[dict[str, int | float | str]] = {"max_bytes": "1m"}
    install = "spack install nccl-tests +mpi"

    def programs(self, cell: BenchCell) -> tuple[str, ...]:
        """Return the test's name."""
        return (str(cell.option("test", _TEST)),)

    def flags(self, cell: BenchCell) -> list[str]:
        """Return its options."""
        _test(cell)
        least, least_bytes = size_bytes(cell, "min_bytes", _MIN_COUNT)
        most, most_bytes = size_bytes(cell, "max_bytes", _MAX_COUNT)
        if least_bytes > most_bytes:
            raise OptionError(f"option min_bytes: expected no more than max_bytes {most}, found '{least}'")
        factor = whole(cell, "factor", _FACTOR, 2)
        # -g 1: one GPU for each rank, which is all that rank.py lets it see.
        return ["-b", least, "-e", most, "-f", str(factor), "-g", "1"]
