"""nccl-tests, NVIDIA's benchmark of collectives between GPUs, where a system has it."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from transect.domain.axes.bench import BenchCell
from transect.hpc.benchmarks._options import OptionError, complaint, size_bytes, text, whole
from transect.hpc.benchmarks.base import BENCHMARKS, Benchmark

_TEST = "all_reduce_perf"
_LEAST, _MOST, _FACTOR = "8", "128m", 2


def _test(cell: BenchCell) -> str:
    expected = "the name of a test, e.g. all_gather_perf or all_reduce_perf_mpi"
    return text(cell, "test", _TEST, r"[a-z][a-z0-9_]*_perf(_mpi)?", expected)


def _flags(cell: BenchCell) -> list[str]:
    _test(cell)
    least, least_bytes = size_bytes(cell, "min_bytes", _LEAST)
    most, most_bytes = size_bytes(cell, "max_bytes", _MOST)
    if least_bytes > most_bytes:
        raise OptionError(f"option min_bytes: expected no more than max_bytes {most}, found '{least}'")
    factor = whole(cell, "factor", _FACTOR, 2)
    # -g 1: one GPU for each rank, which is all that rank.py lets it see.
    return ["-b", least, "-e", most, "-f", str(factor), "-g", "1"]


@BENCHMARKS.register("nccl-tests")
class NcclTests(Benchmark):
    """One test of nccl-tests, built with MPI, over message sizes; one GPU for each rank."""

    name = "nccl-tests"
    parser = "nccl-tests"
    environment = None
    prefix_starts_ranks = True
    program = _TEST
    options: ClassVar[dict[str, str]] = {
        "test": f"the program, e.g. all_gather_perf, sendrecv_perf; default {_TEST}",
        "min_bytes": f"smallest message; default {_LEAST}",
        "max_bytes": f"largest message, e.g. 8g; default {_MOST}",
        "factor": f"from one size to the next; default {_FACTOR}",
    }

    def programs(self, cell: BenchCell) -> tuple[str, ...]:
        """Return the test's name."""
        return (str(cell.option("test", _TEST)),)

    def supports(self, cell: BenchCell) -> str | None:
        """Return why not: it needs GPUs, two or more, each with a rank of one thread."""
        if cell.device != "cuda":
            return f"nccl-tests runs on GPUs, device 'cuda', not on '{cell.device}'"
        if cell.ranks < 2:
            return "nccl-tests runs on 2 or more ranks: one GPU has nobody to talk to"
        if cell.threads != 1:
            return f"nccl-tests runs one thread per rank; {cell.threads} were asked for"
        return complaint(_flags, cell)

    def command(self, cell: BenchCell, folder: Path, program: str, mpiexec: list[str]) -> list[str]:
        """Return the argument list; writes nothing."""
        return [*mpiexec, program, *_flags(cell)]

    def logs(self, folder: Path) -> list[Path]:
        """Return the kept standard output."""
        return [folder / "output.log"]

    def code_files(self) -> list[Path]:
        """Return this file."""
        return [Path(__file__)]
