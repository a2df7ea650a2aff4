"""STREAM, the memory benchmark of J. D. McCalpin, where a system has it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import ClassVar

from transect.domain.axes.bench import BenchCell
from transect.hpc.benchmarks._options import complaint, program_name
from transect.hpc.benchmarks.base import BENCHMARKS, Benchmark

_NAMES = ("stream_c.exe", "stream")


@BENCHMARKS.register("stream")
class Stream(Benchmark):
    """STREAM on the threads of one process; its arrays are as large as it was compiled for."""

    name = "stream"
    parser = "stream"
    environment = None
    program = "stream"
    options: ClassVar[dict[str, str]] = {
        "program": f"its name or path, where it goes by another; default: {' or '.join(_NAMES)}"
    }

    def programs(self, cell: BenchCell) -> tuple[str, ...]:
        """Return the names: STREAM's Makefile and Spack's package make `stream_c.exe`."""
        return (program_name(cell, _NAMES[0]),) if cell.option("program", "") else _NAMES

    def find(self, cell: BenchCell) -> str | None:
        """Leave out the `stream` of ImageMagick, which cuts pixels out of pictures."""
        for name in self.programs(cell):
            path = shutil.which(name)
            if path is not None and not _of_imagemagick(path):
                return path
        return None

    def supports(self, cell: BenchCell) -> str | None:
        """Return why not: it is one process, on the CPU."""
        if cell.device != "cpu":
            return f"STREAM measures the memory of the CPU, not of '{cell.device}'"
        if cell.ranks != 1:
            return f"STREAM is one process with threads; {cell.ranks} ranks were asked for"
        return complaint(lambda c: program_name(c, _NAMES[0]), cell)

    def command(self, cell: BenchCell, folder: Path, program: str, mpiexec: list[str]) -> list[str]:
        """Return the program: the launch layer sets OMP_NUM_THREADS."""
        return [program]

    def logs(self, folder: Path) -> list[Path]:
        """Return the kept standard output."""
        return [folder / "output.log"]

    def code_files(self) -> list[Path]:
        """Return this file."""
        return [Path(__file__)]


def _of_imagemagick(path: str) -> bool:
    name = Path(path).resolve().name
    return name == "magick" or name.startswith("stream-im")
