"""STREAM, the memory benchmark of J. D. McCalpin, where a system has it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import ClassVar

from transect.domain.axes.bench import BenchCell
from transect.hpc.benchmarks._options import program_name
from transect.hpc.benchmarks.base import BENCHMARKS, Benchmark

_NAMES = ("stream_c.exe", "stream")


@BENCHMARKS.register("stream")
class Stream(Benchmark):
    """STREAM on the threads of one process; its arrays are as large as it was compiled for."""

    name = "stream"
    program = "stream"
    options: ClassVar[dict[str, str]] = {
        "program": f"its name or path, where it goes by another; default: {' or '.join(_NAMES)}"
    }
    # No `smoke`: its size is fixed when it is compiled.
    install = "spack install stream +openmp"

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

    def flags(self, cell: BenchCell) -> list[str]:
        """Return none: the launch layer sets OMP_NUM_THREADS."""
        program_name(cell, _NAMES[0])
        return []


def _of_imagemagick(path: str) -> bool:
    name = Path(path).resolve().name
    return name == "magick" or name.startswith("stream-im")
