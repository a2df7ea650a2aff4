"""fio, which reads and writes files in every pattern, where a system has it (Debian: `apt-get install fio`)."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from transect.domain.axes.bench import BenchCell
from transect.hpc.benchmarks._files import FOLDER_MEANING, PLACE, OfFiles, place_of, target_folder
from transect.hpc.benchmarks._options import OptionError, one_of, size_bytes, whole
from transect.hpc.benchmarks.base import BENCHMARKS

_BLOCK, _TRANSFER, _SMALL, _SECONDS = "64m", "1m", "4k", 10
_FILES = ("per-process", "shared")
_ANSWERS = ("no", "yes")
# fio makes no folder, and leaves its files: it works in one that is made for it, whatever its name has in it.
_SCRIPT = (
    PLACE + 'shift; mkdir "$place" || exit; '
    'trap \'rm -rf "$place"\' EXIT; trap \'exit 143\' HUP INT TERM; cd "$place" && "$@"'
)


@BENCHMARKS.register("fio")
class Fio(OfFiles):
    """fio: jobs of one node write, read, and read and write 4 KiB at random places, in this order."""

    name = "fio"
    program = "fio"
    install = "apt-get install fio"
    options: ClassVar[dict[str, str]] = {
        "block": f"what each job writes and reads in a row, e.g. 4g; default {_BLOCK}",
        "transfer": f"what it moves at once; default {_TRANSFER}",
        "files": f"{' or '.join(_FILES)}; default {_FILES[0]}",
        "direct": f"yes: past the page cache, which some file systems refuse; default {_ANSWERS[0]}: what is written is "
        "synced, and pages are dropped before reading",
        "seconds": f"most for each random part; default {_SECONDS}",
        "folder": FOLDER_MEANING,
    }
    smoke: ClassVar[dict[str, int | float | str]] = {"block": "8m", "seconds": 1}

    def flags(self, cell: BenchCell) -> list[str]:
        """Return its jobs, as many of each kind as the cell has threads."""
        block, block_bytes = size_bytes(cell, "block", _BLOCK)
        transfer, transfer_bytes = size_bytes(cell, "transfer", _TRANSFER)
        if block_bytes % transfer_bytes:
            raise OptionError(f"option block: expected a multiple of the transfer size {transfer}, found '{block}'")
        shared = one_of(cell, "files", _FILES[0], _FILES) == "shared"
        direct = one_of(cell, "direct", _ANSWERS[0], _ANSWERS) == "yes"
        seconds = whole(cell, "seconds", _SECONDS)
        target_folder(cell)
        # Each part finds the files of the one before.
        where = ["--filename=data", f"--offset_increment={block}"] if shared else ["--filename_format=data.$jobnum"]
        common = ["--output-format=json", "--name=global", "--ioengine=psync", "--fallocate=none", "--group_reporting"]
        common += [f"--numjobs={cell.threads}", f"--size={block}", f"--direct={int(direct)}", "--invalidate=1", *where]
        small = ["--stonewall", f"--bs={_SMALL}", f"--runtime={seconds}"]
        return [
            *common,
            *["--name=write", "--rw=write", f"--bs={transfer}", "--end_fsync=1", "--create_on_open=1"],
            *["--name=read", "--stonewall", "--rw=read", f"--bs={transfer}"],
            *["--name=random-read", *small, "--rw=randread"],
            *["--name=random-write", *small, "--rw=randwrite", "--end_fsync=1", "--overwrite=1"],
        ]

    def command(self, cell: BenchCell, folder: Path, program: str, mpiexec: list[str]) -> list[str]:
        """Return the argument list: a shell that makes a folder, and removes it however fio ends."""
        place, target = place_of(cell), target_folder(cell)
        where = f"{target}/{place}" if target else place
        return ["sh", "-c", _SCRIPT, "transect", where, program, *self.flags(cell)]
