"""IOR, the benchmark of parallel file systems, where a system has it."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from transect.domain.axes.bench import BenchCell
from transect.hpc.benchmarks._files import FOLDER_MEANING, OfFiles, in_folder, target_folder
from transect.hpc.benchmarks._options import OptionError, one_of, size_bytes
from transect.hpc.benchmarks._sizes import cells_memory
from transect.hpc.benchmarks.base import BENCHMARKS

_APIS = ("POSIX", "MPIIO", "HDF5", "NCMPI", "MMAP")
_FILES = ("per-process", "shared")
_TRANSFER = "1m"
# Of the memory of a cell: some seconds on a disk, on all cores of a node as on one. More may fill the disk of a large node.
_SHARE, _MOST = 1 / 16, 8 << 30


@BENCHMARKS.register("ior")
class Ior(OfFiles):
    """IOR: all ranks write, then read. On one node, reads may come out of its memory."""

    name = "ior"
    prefix_starts_ranks = True
    many_ranks = True
    threads = False
    program = "ior"
    options: ClassVar[dict[str, str]] = {
        "api": f"one of {', '.join(_APIS)}; default {_APIS[0]}",
        "block": "what each rank writes in a row, e.g. 4g; default: ranks on all cores write a sixteenth of the memory, 8 GiB at most",
        "transfer": f"what it writes at once; default {_TRANSFER}",
        "files": f"{' or '.join(_FILES)}; default {_FILES[0]}",
        "folder": FOLDER_MEANING,
    }
    smoke: ClassVar[dict[str, int | float | str]] = {"block": "4m", "transfer": "256k"}
    install = "spack install ior"

    def flags(self, cell: BenchCell) -> list[str]:
        """Return its options."""
        transfer, transfer_bytes = size_bytes(cell, "transfer", _TRANSFER)
        pieces = min(_MOST, int(cells_memory(cell) * _SHARE)) // cell.ranks_per_node // transfer_bytes
        block, block_bytes = size_bytes(cell, "block", str(max(1, pieces) * transfer_bytes))
        if block_bytes % transfer_bytes:
            raise OptionError(f"option block: expected a multiple of the transfer size {transfer}, found '{block}'")
        api = one_of(cell, "api", _APIS[0], _APIS)
        # -e: the write ends when the data are on the disk. -C: each rank reads what a rank of the
        # next node wrote, so that on several nodes no cache of the writer helps.
        flags = ["-a", api, "-w", "-r", "-e", "-C", "-b", block, "-t", transfer]
        if one_of(cell, "files", _FILES[0], _FILES) == "per-process":
            flags.append("-F")
        target_folder(cell)
        return flags

    def command(self, cell: BenchCell, folder: Path, program: str, mpiexec: list[str]) -> list[str]:
        """Return the argument list; IOR removes its files itself."""
        return [*mpiexec, *in_folder(cell, folder, [program, *self.flags(cell)], "-o")]
